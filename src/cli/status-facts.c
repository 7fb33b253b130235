/* SPDX-License-Identifier: Apache-2.0 */
/* What `crikeep status` finds out. The database and /proc are read first: they are there even if
 * the owner hangs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "hooks/status-file.h"
#include "src/base/duration.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/cri-endpoint.h"
#include "src/cli/daemon-metrics.h"
#include "src/cli/status.h"
#include "src/cri/message.h"

/* ---- the state directory --------------------------------------------------------------------- */

static bool stat_file(const char *name, struct stat *ret)
{
	CK_AUTO_FREE char *path = ck_text_format("%s/%s", ck_cli.state_dir, name);
	/* Do not open the file: closing it would drop this process's SQLite locks. */
	return stat(path, ret) == 0;
}

static int64_t size_of(const char *name, int64_t *written)
{
	struct stat st;
	if (!stat_file(name, &st))
		return -1;
	if (written && st.st_mtime > *written)
		*written = st.st_mtime;
	return st.st_size;
}

static void look_at_files(struct ck_health *health)
{
	struct statvfs vfs;
	health->database = size_of("crikeep.db", &health->written);
	health->wal = size_of("crikeep.db-wal", &health->written);
	health->key = size_of("key", NULL);
	health->space = statvfs(ck_cli.state_dir, &vfs) < 0
				? -1
				: (int64_t)(vfs.f_bavail * (uint64_t)vfs.f_frsize);
}

/* The file may be an earlier owner's: then it says nothing of now. */
static void look_at_plugins(struct ck_health *health)
{
	CK_AUTO_FREE char *path = ck_text_format("%s/" CK_STATUS_FILE, ck_cli.state_dir);
	struct ck_error err;
	if (ck_status_read(path, &health->plugins, &err) < 0)
		return;
	if ((health->pid && health->plugins->pid != health->pid) ||
	    !ck_look_this_boot(&health->look, health->plugins->boot)) {
		ck_status_free(health->plugins);
		health->plugins = NULL;
	}
}

size_t ck_health_plugins(const struct ck_health *health, const char *state)
{
	size_t n = 0;
	for (size_t i = 0; health->plugins && i < health->plugins->n; i++) {
		const char *is = health->plugins->plugins[i].state;
		n += state ? strcmp(is, state) == 0
			   : strcmp(is, CK_STATUS_ABSENT) != 0 && strcmp(is, CK_STATUS_GONE) != 0;
	}
	return n;
}

/* ---- the owner ------------------------------------------------------------------------------- */

static void look_at_process(struct ck_health *health)
{
	health->seen = ck_process_see(health->pid, &health->process);
	if (health->seen && ck_process_stopped(&health->process))
		health->owner = CK_OWNER_FROZEN;
}

static void look_at_owner(struct ck_health *health)
{
	bool owned = ck_store_owner(ck_cli.state_dir, &health->pid);
	health->degraded = ck_store_owner_degraded(ck_cli.state_dir);
	health->owner = owned ? CK_OWNER_RUNNING : CK_OWNER_STOPPED;
	if (owned)
		look_at_process(health);
}

static void read_kinds(const struct ck_bytes *text, const char *name, uint64_t ret_values[3])
{
	static const char *const kinds[] = { [CK_SANDBOX] = "sandbox",
					     [CK_CONTAINER] = "container" };
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		CK_AUTO_FREE char *series = ck_text_format("%s{kind=\"%s\"}", name, kinds[kind]);
		ret_values[kind] = (uint64_t)ck_daemon_metrics_value(text, series);
	}
}

static void read_metrics(struct ck_health *health, const struct ck_bytes *text)
{
	const char *version = ck_daemon_metrics_find(text, "crikeepd_build_info{version=\"");
	health->metrics_pid = (long)ck_daemon_metrics_value(text, "crikeepd_pid");
	if (health->pid && health->metrics_pid != health->pid)
		return;
	health->metrics = true;
	if (version)
		snprintf(health->version, sizeof(health->version), "%.*s",
			 (int)strcspn(version, "\""), version);
	health->up = ck_daemon_metrics_value(text, "crikeepd_upstream_up") > 0 ||
		     ck_daemon_metrics_value(text, "crikeepd_upstream_silent_seconds") > 0;
	/* an older crikeepd does not tell */
	health->serving = !ck_daemon_metrics_find(text, "crikeepd_serving ") ||
			  ck_daemon_metrics_value(text, "crikeepd_serving") > 0;
	health->shadow = ck_daemon_metrics_value(text, "crikeepd_shadow") > 0;
	read_kinds(text, "crikeepd_shadow_cut_total", health->cut);
	read_kinds(text, "crikeepd_shadow_saved_total", health->saved);
	health->refused =
		(uint64_t)ck_daemon_metrics_value(text, "crikeepd_clients_refused_total");
	health->connects =
		(uint64_t)ck_daemon_metrics_value(text, "crikeepd_upstream_connects_total");
	health->failures =
		(uint64_t)ck_daemon_metrics_value(text, "crikeepd_upstream_failures_total");
	health->oldest_call =
		(uint64_t)(ck_daemon_metrics_value(text, "crikeepd_oldest_call_seconds") *
			   (double)CK_NS_PER_S);
	health->wal_pid = (long)ck_daemon_metrics_value(text, "crikeep_wal_held_by_pid");
}

/* A runtime with libcrikeep has no such socket, and crikeepd may be configured to have none. */
static void ask_owner(struct ck_health *health)
{
	CK_AUTO_BYTES struct ck_bytes text = { 0 };
	struct ck_error err = { 0 };
	int r = ck_daemon_metrics_fetch(health->metrics_path, &text, &err);
	if (r == 0)
		read_metrics(health, &text);
	if (r == 0 || (err.sys && err.sys != EAGAIN))
		return;
	health->owner = CK_OWNER_SILENT; /* somebody listens, and does not accept or write */
	snprintf(health->metrics_why, sizeof(health->metrics_why), "%s", err.text);
	look_at_process(health);         /* a signal may take effect only now */
}

/* ---- the runtime, asked through crikeepd ----------------------------------------------------- */

static void read_version(struct ck_health *health, const struct ck_unary *call)
{
	const struct ck_bytes *reply = &call->reply;
	health->runtime = CK_RUNTIME_ANSWERS;
	health->answer_ns = ck_duration_between(call->began, call->ended);
	health->name = ck_cri_read_text(reply->p, reply->len, CRI_VersionResponse_runtime_name);
	health->runtime_version =
		ck_cri_read_text(reply->p, reply->len, CRI_VersionResponse_runtime_version);
	health->api =
		ck_cri_read_text(reply->p, reply->len, CRI_VersionResponse_runtime_api_version);
}

static void judge_answer(struct ck_health *health, const struct ck_unary *call)
{
	const char *text = call->status.message ? call->status.message : "";
	if (call->status.code == CK_GRPC_OK) {
		read_version(health, call);
	} else if (health->metrics && !health->up) {
		health->runtime = CK_RUNTIME_DISCONNECTED;
		snprintf(health->why, sizeof(health->why), "%s",
			 call->status.code == CK_GRPC_DEADLINE_EXCEEDED ? "" : text);
	} else if (call->status.code == CK_GRPC_DEADLINE_EXCEEDED) {
		health->runtime = CK_RUNTIME_SILENT;
	} else {
		health->runtime = CK_RUNTIME_FAILS;
		snprintf(health->why, sizeof(health->why), "%s%s%s",
			 ck_grpc_name(call->status.code), *text ? ": " : "", text);
	}
}

static void ask_version(struct ck_health *health, struct ck_client *client)
{
	struct ck_unary call = { 0 };
	struct ck_error err;
	char path[CK_CRI_PATH];
	uint64_t until = ck_client_now() + CK_VERSION_WAIT;
	do {
		ck_unary_fini(&call);
		if (ck_unary_begin(client, &call, ck_cri_path("Version", path), NULL, 0,
				   CK_VERSION_WAIT, &err) < 0)
			ck_text_nomem();
		if (!ck_client_wait(client, &call, until))
			call.status.code = CK_GRPC_DEADLINE_EXCEEDED;
	} while (ck_cri_newer_than_server(&call));
	judge_answer(health, &call);
	ck_unary_fini(&call);
}

static void ask_runtime(struct ck_health *health)
{
	struct ck_client *client = NULL;
	struct ck_error err;
	bool whose = ck_cri.endpoint || !health->metrics_pid || health->metrics;
	health->endpoint = ck_must(ck_strdup(ck_cri_endpoint()));
	if (!whose) {
		snprintf(health->why, sizeof(health->why),
			 "process %ld serves %s, and it is not the owner", health->metrics_pid,
			 health->metrics_path);
		return;
	}
	if (health->metrics && health->up && !health->serving) {
		health->runtime = CK_RUNTIME_UNTOLD;
		return;
	}
	if (ck_client_new(health->endpoint, &client, &err) >= 0 &&
	    ck_client_dial(client, &err) >= 0) {
		ask_version(health, client);
	} else {
		health->runtime = health->metrics && health->up ? CK_RUNTIME_UNREACHABLE
				  : health->metrics             ? CK_RUNTIME_DISCONNECTED
								: CK_RUNTIME_UNKNOWN;
		/* crikeepd listens there once it has been connected */
		if (health->runtime != CK_RUNTIME_DISCONNECTED || health->connects)
			snprintf(health->why, sizeof(health->why), "%s", err.text);
	}
	ck_client_free(client);
}

/* ---- all ------------------------------------------------------------------------------------- */

int ck_health_take(struct ck_health *health)
{
	struct ck_error *err = &health->read_err;
	look_at_owner(health);
	health->read = ck_look_try(&health->look,
				   CK_READ_ROWS | CK_READ_HISTORY | CK_READ_COUNTERS, err);
	if (health->read < 0 && (err->sys == EACCES || err->sys == EPERM))
		return -CK_EIO;
	look_at_files(health);
	if (health->owner == CK_OWNER_RUNNING)
		ask_owner(health);
	if (health->owner == CK_OWNER_RUNNING)
		ask_runtime(health);
	if (health->owner != CK_OWNER_STOPPED)
		look_at_plugins(health);
	return 0;
}

void ck_health_fini(struct ck_health *health)
{
	ck_look_fini(&health->look);
	ck_status_free(health->plugins);
	free(health->endpoint);
	free(health->name);
	free(health->runtime_version);
	free(health->api);
}
