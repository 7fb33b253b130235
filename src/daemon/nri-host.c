/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NRI on the daemon's event loop. Its calls to the host become calls to the runtime. Each job ends
 * exactly once, also when the runtime is away, memory has run out or the daemon ends.
 *
 * Describing. A verbose status, made into NRI's words by describe.c. A container's does not have to
 * say which sandbox it is in; where it does not, the runtime's list does. Of one that cannot be
 * described, and that plugins know by an id of ours, this id is told.
 */
#include <stdio.h>
#include <systemd/sd-event.h>

#include <utlist.h>

#include "hooks/introduce.h"
#include "hooks/status-file.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/cri/message.h"
#include "src/daemon/nri/apply.h"
#include "src/daemon/call.h"
#include "src/daemon/daemon.h"
#include "src/daemon/nri/describe.h"
#include "src/daemon/nri/launcher.h"
#include "src/cri/objects.h"
#include "src/daemon/nri/discover-plugins.h"

struct job {
	struct job *prev, *next;
	struct ck_plugging *plugging;
	struct ck_nri_job *job;
	enum ck_kind kind;
	bool describes;
	const char *id; /* lives as long as the job */
	struct ck_bytes described; /* as it is known so far */
	struct ck_unary_call *rpc;
};

struct ck_plugging {
	struct ck_daemon *daemon;
	struct ck_launcher *launcher;
	const struct ck_plugins *plugins; /* to launch; borrowed */
	sd_event_source *source;
	struct job *jobs;
	bool started;
};

/* @r: why a call was not made */
static int grpc_of(int r)
{
	return r == -CK_ENOMEM ? CK_GRPC_RESOURCE_EXHAUSTED : CK_GRPC_UNAVAILABLE;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct job *job_new(struct ck_plugging *plugging, struct ck_nri_job *nri_job,
			   enum ck_kind kind, const char *id)
{
	struct job *job = CK_NEW(struct job);
	if (!job) {
		ck_nri_job_done(nri_job, CK_GRPC_RESOURCE_EXHAUSTED, NULL, 0);
		return NULL;
	}
	*job = (struct job){ .plugging = plugging, .job = nri_job, .kind = kind, .id = id };
	DL_PREPEND(plugging->jobs, job);
	return job;
}

static void job_over(struct job *job, int grpc, const struct ck_bytes *bytes)
{
	ck_unary_cancel(job->rpc);
	ck_nri_job_done(job->job, grpc, bytes ? bytes->p : NULL, bytes ? bytes->len : 0);
	ck_bytes_free(&job->described);
	free(job);
}

static void job_end(struct job *job, int grpc, const struct ck_bytes *bytes)
{
	DL_DELETE(job->plugging->jobs, job);
	job_over(job, grpc, bytes);
}

/* @grpc: not OK */
static void job_failed(struct job *job, int grpc)
{
	ck_bytes_free(&job->described);
	bool last = job->describes && job->kind == CK_CONTAINER &&
		    ck_consulted_last(job->plugging->daemon, job->id, &job->described);
	job_end(job, grpc, last ? &job->described : NULL);
}

/* job_start - @message is freed; ends the job if the call cannot be made */
static void job_start(struct job *job, const char *path, uint64_t timeout, int r,
		      struct ck_bytes *message, ck_unary_cb *done)
{
	struct ck_daemon *daemon = job->plugging->daemon;
	const struct ck_unary_options options = { .path = path,
						  .timeout = timeout,
						  .reply_max = daemon->conf.list_max };
	struct ck_error err;
	if (r == 0)
		r = ck_unary_start(daemon->upstream, &options, message->p, message->len, done, job,
				   &job->rpc, &err);
	ck_bytes_free(message);
	if (r < 0)
		job_failed(job, grpc_of(r));
}

/* ---- describe -------------------------------------------------------------------------------- */

static bool says_sandbox(const struct ck_bytes *container)
{
	struct ck_wire wire = ck_wire_begin(container->p, container->len);
	struct ck_wire_field field;
	while (ck_wire_next(&wire, &field, NULL) > 0)
		if (field.number == 2 && field.type == CK_WIRE_BYTES && field.len)
			return true;
	return false;
}

/* UNAVAILABLE is how long the runtime answers nobody; an object that hangs is another matter */
static int describe_code(const struct job *job, int grpc)
{
	if (grpc == CK_GRPC_OK || grpc == CK_GRPC_NOT_FOUND)
		return grpc;
	if (!ck_upstream_answers(job->plugging->daemon->upstream))
		return CK_GRPC_UNAVAILABLE;
	return grpc == CK_GRPC_UNAVAILABLE ? CK_GRPC_UNKNOWN : grpc;
}

static void unreadable(struct job *job, const char *what, const struct ck_error *err)
{
	ck_log(CK_LOG_ERROR,
	       "plugins cannot be told about a %s: %s from the runtime cannot be read: %s",
	       job->kind == CK_SANDBOX ? "pod sandbox" : "container", what, err->text);
	job_failed(job, err->code == CK_ENOMEM ? CK_GRPC_RESOURCE_EXHAUSTED : CK_GRPC_INTERNAL);
}

static void listed(struct ck_unary_reply *reply, void *userdata)
{
	struct job *job = userdata;
	struct ck_objects objects = { 0 };
	struct ck_error err = { 0 };
	int r = 0, grpc = reply->status.code;
	job->rpc = NULL;
	if (grpc == CK_GRPC_OK)
		r = ck_objects_read(&objects, ck_cri_method_named("ListContainers"),
				    reply->message.p, reply->message.len, &err);
	if (grpc == CK_GRPC_OK && r >= 0)
		grpc = CK_GRPC_NOT_FOUND;
	for (size_t i = 0; r >= 0 && grpc == CK_GRPC_NOT_FOUND && i < objects.n; i++) {
		if (strcmp(objects.all[i].id, job->id) != 0 || !objects.all[i].sandbox_id)
			continue;
		grpc = CK_GRPC_OK;
		if (ck_bytes_field_text(&job->described, 2, objects.all[i].sandbox_id) < 0)
			r = ck_nomem(&err);
	}
	ck_objects_fini(&objects);
	if (r < 0)
		unreadable(job, "a list", &err);
	else if (grpc != CK_GRPC_OK)
		job_failed(job, describe_code(job, grpc));
	else
		job_end(job, CK_GRPC_OK, &job->described);
}

/* a list of this one container */
static void ask_sandbox(struct job *job)
{
	struct ck_bytes message = { 0 };
	int r = ck_cri_put_inside(&message, CRI_ListContainersRequest_filter,
				  CRI_ContainerFilter_id, job->id);
	job_start(job, "ListContainers", CK_ASK_TIMEOUT, r, &message, listed);
}

static void described(struct ck_unary_reply *reply, void *userdata)
{
	struct job *job = userdata;
	struct ck_error err = { 0 };
	int r;
	job->rpc = NULL;
	if (reply->status.code != CK_GRPC_OK) {
		job_failed(job, describe_code(job, reply->status.code));
		return;
	}
	if (job->kind == CK_SANDBOX)
		r = ck_describe_pod(reply->message.p, reply->message.len, &job->described, &err);
	else
		r = ck_describe_container(reply->message.p, reply->message.len, NULL,
					  &job->described, &err);
	if (r < 0)
		unreadable(job, "a status", &err);
	else if (job->kind == CK_CONTAINER && !says_sandbox(&job->described))
		ask_sandbox(job);
	else
		job_end(job, CK_GRPC_OK, &job->described);
}

static void host_describe(struct ck_nri_job *nri_job, enum ck_kind kind, const char *id,
			  void *userdata)
{
	struct job *job = job_new(userdata, nri_job, kind, id);
	struct ck_bytes message = { 0 };
	if (!job)
		return;
	job->describes = true;
	int r = ck_cri_put_id(&message, id);
	if (r == 0) /* both kinds of requests have the same field numbers */
		r = ck_bytes_field_number(&message, CRI_PodSandboxStatusRequest_verbose, true);
	job_start(job, kind == CK_SANDBOX ? "PodSandboxStatus" : "ContainerStatus", CK_ASK_TIMEOUT,
		  r, &message, described);
}

/* ---- what plugins want of other containers --------------------------------------------------- */

static void updated(struct ck_unary_reply *reply, void *userdata)
{
	struct job *job = userdata;
	job->rpc = NULL;
	if (reply->status.code != CK_GRPC_OK)
		ck_log(CK_LOG_WARNING, "container %s was not updated for a plugin: %s", job->id,
		       ck_grpc_name(reply->status.code));
	job_end(job, reply->status.code, NULL);
}

static void host_update(struct ck_nri_job *nri_job, const char *container_id, const void *resources,
			size_t len, void *userdata)
{
	struct job *job = job_new(userdata, nri_job, CK_CONTAINER, container_id);
	struct ck_bytes message = { 0 };
	struct ck_error err = { 0 };
	if (!job)
		return;
	int r = ck_apply_resources(container_id, resources, len, &message, &err);
	if (r < 0 && r != -CK_ENOMEM) {
		ck_log(CK_LOG_WARNING, "container %s was not updated for a plugin: %s",
		       container_id, err.text);
		ck_bytes_free(&message);
		job_end(job, CK_GRPC_INVALID_ARGUMENT, NULL);
		return;
	}
	job_start(job, "UpdateContainerResources", CK_ASK_TIMEOUT, r, &message, updated);
}

static void evicted(struct ck_unary_reply *reply, void *userdata)
{
	struct job *job = userdata;
	struct ck_daemon *daemon = job->plugging->daemon;
	job->rpc = NULL;
	if (reply->status.code == CK_GRPC_OK) {
		ck_object_seen(daemon->cache, CK_CONTAINER, job->id, CK_CONDITION_DEAD);
		ck_exits_saw(daemon, job->id);
	} else {
		ck_log(CK_LOG_WARNING, "container %s was not evicted: %s", job->id,
		       ck_grpc_name(reply->status.code));
	}
	job_end(job, reply->status.code, NULL);
}

static void host_evict(struct ck_nri_job *nri_job, const char *container_id, const char *reason,
		       void *userdata)
{
	struct ck_plugging *plugging = userdata;
	uint64_t grace = plugging->daemon->conf.nri.evict_grace;
	struct job *job = job_new(plugging, nri_job, CK_CONTAINER, container_id);
	struct ck_bytes message = { 0 };
	if (!job)
		return;
	(void)reason; /* not logged: it may repeat secrets of the container */
	ck_log(CK_LOG_INFO, "a plugin evicts container %s", container_id);
	int r = ck_cri_put_id(&message, container_id);
	if (r == 0) /* in whole seconds, rounded up */
		r = ck_bytes_field_number(&message, CRI_StopContainerRequest_timeout,
					  (grace + CK_NS_PER_S - 1) / CK_NS_PER_S);
	job_start(job, "StopContainer", grace + CK_ASK_TIMEOUT, r, &message, evicted);
}

static int host_launch(unsigned i, int fd, void *userdata)
{
	struct ck_plugging *plugging = userdata;
	struct ck_error err = { 0 };
	pid_t pid = ck_launcher_run(plugging->launcher, i, fd, &err);
	if (pid >= 0)
		return 0;
	ck_log(CK_LOG_ERROR, "plugin %s was not launched: %s", plugging->plugins->launched[i].name,
	       err.text);
	return (int)pid;
}

static void host_log(enum ck_log_level level, const char *text, void *userdata)
{
	(void)userdata;
	ck_log(level, "nri: %s", text);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct ck_daemon *daemon = userdata;
	(void)source;
	(void)fd;
	(void)events;
	if (daemon->nri)
		ck_nri_process(daemon->nri, NULL);
	return 0;
}

/* the policies of single plugins; the names are cut out of the configuration at '=' */
static int make_rules(const struct ck_conf *conf, struct ck_nri_rule **ret_rules, size_t *ret_n,
		      char **ret_names)
{
	size_t n = 0, size = 1, len;
	for (char **p = conf->nri.policies; *p; p++, n++)
		size += strlen(*p) + 1;
	struct ck_nri_rule *rules = ck_alloc((n + 1) * sizeof(*rules));
	char *names = ck_alloc(size), *at = names;
	if (!rules || !names) {
		free(rules);
		free(names);
		return -CK_ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		rules[i].policy = ck_conf_policy(conf->nri.policies[i], &len);
		rules[i].name = at;
		memcpy(at, conf->nri.policies[i], len);
		at += len + 1;
	}
	*ret_rules = rules;
	*ret_n = n;
	*ret_names = names;
	return 0;
}

static int open_nri(struct ck_plugging *plugging, const struct ck_plugins *plugins,
		    struct ck_error *err)
{
	struct ck_daemon *daemon = plugging->daemon;
	const struct ck_conf *conf = &daemon->conf;
	const struct ck_nri_host host = {
		.size = sizeof(host),
		.userdata = plugging,
		.describe = host_describe,
		.update = host_update,
		.evict = host_evict,
		.launch = host_launch,
		.log = host_log,
	};
	CK_AUTO_FREE struct ck_nri_rule *rules = NULL;
	CK_AUTO_FREE char *names = NULL;
	size_t rules_n = 0;
	char status[CK_PATH_MAX + sizeof(CK_STATUS_FILE)];
	if (make_rules(conf, &rules, &rules_n, &names) < 0)
		return ck_nomem(err);
	snprintf(status, sizeof(status), "%s/" CK_STATUS_FILE, conf->state_dir);
	const struct ck_nri_options options = {
		.size = sizeof(options),
		.host = &host,
		.socket_path = *conf->nri.socket ? conf->nri.socket : NULL,
		.status_path = status,
		.registration_timeout = conf->nri.registration_timeout,
		.request_timeout = conf->nri.request_timeout,
		.policy = conf->nri.policy,
		.rules = rules,
		.rules_n = rules_n,
		.launched = plugins->launched,
		.launched_n = plugins->n,
		.adjust = conf->nri.adjust,
	};
	int r = ck_nri_open(&options, &daemon->nri, err);
	if (r == -CK_EOWNED)
		return ck_fail(
			err, CK_EOWNED,
			"another process serves NRI at '%s': turn the runtime's own NRI off, or "
			"set nri.socket to another path",
			conf->nri.socket);
	return r;
}

int ck_plugging_new(struct ck_daemon *daemon, const struct ck_plugins *plugins,
		    struct ck_launcher *launcher, struct ck_hooks *ret_hooks, struct ck_error *err)
{
	struct ck_plugging *plugging = CK_NEW(struct ck_plugging);
	if (!plugging)
		return ck_nomem(err);
	*plugging =
		(struct ck_plugging){ .daemon = daemon, .launcher = launcher, .plugins = plugins };
	daemon->plugging = plugging;
	int r = open_nri(plugging, plugins, err);
	if (r >= 0) {
		r = sd_event_add_io(daemon->loop.event, &plugging->source, ck_nri_fd(daemon->nri),
				    EPOLLIN, ready, daemon);
		r = r < 0 ? ck_fail_errno(err, CK_EIO, -r, "watch NRI") : 0;
	}
	ret_hooks->size = sizeof(*ret_hooks);
	if (r >= 0)
		r = ck_nri_hooks(daemon->nri, ret_hooks);
	daemon->metrics.nri = daemon->nri;
	return r;
}

/* plain ASCII: a plugin refuses a message with bytes that are not UTF-8 */
static void plain(const struct ck_fields *answer, uint32_t number, char *buf, size_t size)
{
	const struct ck_wire_field *field = ck_fields_get(answer, number);
	char text[CK_TEXT_MAX + 1] = "";
	if (field && field->len && field->len < sizeof(text))
		memcpy(text, field->data, field->len);
	ck_utf8_clean(text, true, buf, size);
}

void ck_plugging_introduce(struct ck_daemon *daemon)
{
	const struct ck_bytes *message = ck_upstream_introduced(daemon->upstream);
	struct ck_fields answer;
	char name[CK_TEXT_MAX + 1], version[CK_TEXT_MAX + 1];
	daemon->pod_updates = CK_POD_UPDATES_UNKNOWN;
	if (!daemon->nri ||
	    ck_fields_read(ck_wire_begin(message->p, message->len), &answer, NULL) < 0)
		return;
	plain(&answer, CRI_VersionResponse_runtime_name, name, sizeof(name));
	plain(&answer, CRI_VersionResponse_runtime_version, version, sizeof(version));
	/* containerd makes the process when it starts the container; CRI-O when it creates it */
	if (*name && ck_nri_introduce(daemon->nri, name, version, !strcmp(name, "containerd")) < 0)
		ck_log(CK_LOG_WARNING, "plugins are not told of the runtime: out of memory");
}

int ck_plugging_start(struct ck_daemon *daemon, struct ck_error *err)
{
	if (!daemon->plugging || daemon->plugging->started)
		return 0;
	int r = ck_nri_start(daemon->nri, daemon->cache, err);
	if (r >= 0)
		r = ck_exits_new(daemon, err);
	daemon->plugging->started = r >= 0;
	if (r >= 0 && *daemon->conf.nri.socket)
		ck_log(CK_LOG_INFO, "serving NRI plugins at unix://%s", daemon->conf.nri.socket);
	if (r >= 0 && daemon->conf.nri.adjust == CK_NRI_BEFORE_CREATE)
		ck_log(CK_LOG_INFO,
		       "with nri.adjust before-create, plugins know containers by ids that differ "
		       "from the runtime's: they cannot look them up in CRI, the runtime or "
		       "cgroupfs by id");
	return r;
}

void ck_plugging_quiet(struct ck_plugging *plugging)
{
	if (!plugging)
		return;
	plugging->source = sd_event_source_disable_unref(plugging->source);
	for (struct job *job; (job = plugging->jobs);) {
		DL_DELETE(plugging->jobs, job);
		job_over(job, CK_GRPC_UNAVAILABLE, NULL);
	}
}

void ck_plugging_free(struct ck_plugging *plugging)
{
	if (!plugging)
		return;
	struct ck_daemon *daemon = plugging->daemon;
	ck_plugging_quiet(plugging);
	daemon->metrics.nri = NULL;
	daemon->plugging = NULL;
	ck_nri_close(CK_TAKE(daemon->nri));
	free(plugging);
}


static int want(const struct ck_nri_plugin *plugin, void *userdata)
{
	*(unsigned *)userdata |= plugin->events;
	return 0;
}

bool ck_plugging_wanted(const struct ck_daemon *daemon, unsigned events)
{
	unsigned all = 0;
	if (daemon->nri)
		ck_nri_plugins(daemon->nri, want, &all);
	return all & events;
}
