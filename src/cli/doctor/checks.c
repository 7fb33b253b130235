/* SPDX-License-Identifier: Apache-2.0 */
/* The table of checks. Each says in one sentence how something is, and whether that is wrong. */
#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/duration.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/culprit/unix-sockets.h"
#include "src/cli/doctor/node.h"
#include "src/cli/output/text.h"

#define TIMEOUT_DEFAULT "2m" /* the kubelet's runtimeRequestTimeout */
/* A kubelet waits twice as long for a sandbox, and then pauses before it asks again. */
#define SANDBOX_FACTOR  2u
#define PAUSE           (15 * CK_NS_PER_S)
/* what a creation needs that is late for the kubelet, at least */
#define LATE_LEAST      (60 * CK_NS_PER_S)
/* the end of an endpoint by which the kubelet recognizes CRI-O */
#define CRIO_SUFFIX     "run/crio/crio.sock"
/* the beginning of 2020: no version of this program is older */
#define CLOCK_LEAST     INT64_C(1577836800)

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* Is the owner a runtime with libcrikeep? Then nothing of crikeepd matters. */
static bool embedded(const struct ck_node *node, FILE *out)
{
	if (node->embedded)
		fprintf(out, "the owner is %s (process %ld), not crikeepd",
			node->health.process.name, node->health.pid);
	return node->embedded;
}

/* Is it unknown how crikeepd is configured, or does that not matter? */
static bool unconfigured(const struct ck_node *node, FILE *out)
{
	if (embedded(node, out))
		return true;
	if (node->conf_read < 0)
		fprintf(out, "crikeepd's configuration is not valid");
	return node->conf_read < 0;
}

/* ---- the configuration ----------------------------------------------------------------------- */

static enum ck_verdict look_configuration(const struct ck_node *node, FILE *out)
{
	const struct ck_conf *conf = &node->conf;
	if (node->conf_read < 0) {
		fprintf(out, "%s", node->conf_err.text);
		return CK_VERDICT_WRONG;
	}
	fprintf(out, conf->file_read ? "%s is valid" : "there is no %s, so the defaults count",
		conf->file);
	return CK_VERDICT_OK;
}

static enum ck_verdict look_warnings(const struct ck_node *node, FILE *out)
{
	if (unconfigured(node, out))
		return CK_VERDICT_UNKNOWN;
	fprintf(out, "%s", *node->conf_warnings ? node->conf_warnings : "nothing is odd");
	return *node->conf_warnings ? CK_VERDICT_WARNING : CK_VERDICT_OK;
}

/* ---- the state directory --------------------------------------------------------------------- */

/* crikeepd makes it, but not what it is in */
static enum ck_verdict judge_no_state_dir(const char *dir, FILE *out)
{
	CK_AUTO_FREE char *copy = ck_must(ck_strdup(dir));
	const char *parent = dirname(copy);
	bool can = access(parent, F_OK) == 0;
	fprintf(out, can ? "%s does not exist yet" : "%s cannot be created: %s does not exist", dir,
		parent);
	return can ? CK_VERDICT_OK : CK_VERDICT_WRONG;
}

/* as crikeepd judges it when it starts */
static enum ck_verdict look_state_dir(const struct ck_node *node, FILE *out)
{
	const char *dir = ck_cli.state_dir;
	struct statvfs vfs;
	struct stat st;
	(void)node;
	if (stat(dir, &st) < 0) {
		if (errno == ENOENT)
			return judge_no_state_dir(dir, out);
		fprintf(out, "%s: %s", dir, strerror(errno));
		return CK_VERDICT_WRONG;
	}
	unsigned mode = st.st_mode & 07777;
	bool other = st.st_uid != 0 && st.st_uid != geteuid(), open = mode & 022;
	bool fixed = statvfs(dir, &vfs) == 0 && vfs.f_flag & ST_RDONLY;
	if (!S_ISDIR(st.st_mode))
		fprintf(out, "%s is not a directory", dir);
	else if (other)
		fprintf(out, "%s belongs to user %u, not to root", dir, (unsigned)st.st_uid);
	else if (open)
		fprintf(out, "%s has mode %04o: others can write into it", dir, mode);
	else if (fixed)
		fprintf(out, "%s is on a file system that is mounted read-only", dir);
	else
		fprintf(out, "%s has mode %04o", dir, mode);
	return !S_ISDIR(st.st_mode) || other || open || fixed ? CK_VERDICT_WRONG : CK_VERDICT_OK;
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* 0, or the result of a path that is not there or is no socket */
static int find_socket(const struct ck_node *node, const char *path, struct stat *st, FILE *out)
{
	CK_AUTO_FREE char *whole = ck_text_format("%s%s", node->root, path);
	if (stat(whole, st) < 0) {
		fprintf(out, "%s: %s", path,
			errno == ENOENT ? "it does not exist" : strerror(errno));
		return -1;
	}
	if (S_ISSOCK(st->st_mode))
		return 0;
	fprintf(out, "%s: it is not a socket", path);
	return -1;
}

static enum ck_verdict judge_socket(const struct ck_node *node, FILE *out, const char *path,
				   const struct ck_access *access)
{
	struct stat st;
	if (unconfigured(node, out))
		return CK_VERDICT_UNKNOWN;
	if (!*path || node->health.owner == CK_OWNER_STOPPED) {
		fprintf(out, *path ? "crikeepd is not running" : "none is configured");
		return *path ? CK_VERDICT_UNKNOWN : CK_VERDICT_OK;
	}
	if (node->health.metrics && !node->health.serving) {
		fprintf(out, "crikeepd does not serve yet");
		return CK_VERDICT_UNKNOWN;
	}
	if (find_socket(node, path, &st, out) < 0)
		return CK_VERDICT_WRONG;
	unsigned mode = st.st_mode & 0777;
	fprintf(out, "%s has mode %04o and group %u", path, mode, (unsigned)st.st_gid);
	/* a socket of systemd has the rights of its unit */
	if (node->systemd && is(node->units[CK_UNIT_SOCKET].active, "active"))
		return CK_VERDICT_OK;
	bool other_group = access->group.gid != (gid_t)-1 && access->group.gid != st.st_gid;
	if (mode == access->mode && !other_group)
		return CK_VERDICT_OK;
	fprintf(out, ", but is configured to have mode %04o", (unsigned)access->mode);
	if (other_group)
		fprintf(out, " and group %s", access->group.name);
	return CK_VERDICT_WRONG;
}

static enum ck_verdict look_cri_socket(const struct ck_node *node, FILE *out)
{
	return judge_socket(node, out, node->conf.listen, &node->conf.cri_socket);
}

static enum ck_verdict look_unfiltered_socket(const struct ck_node *node, FILE *out)
{
	return judge_socket(node, out, node->conf.unfiltered, &node->conf.unfiltered_socket);
}

static enum ck_verdict look_metrics_socket(const struct ck_node *node, FILE *out)
{
	return judge_socket(node, out, node->conf.metrics, &node->conf.metrics_socket);
}

/* the process that listens there; 0: nobody, or it is not seen from here */
static long server_of(const struct ck_node *node, const char *path, struct ck_process *ret)
{
	CK_AUTO_FREE char *whole = ck_text_format("%s%s", node->root, path);
	long pid = ck_unix_server(whole);
	return pid && ck_process_see(pid, ret) ? pid : 0;
}

static enum ck_verdict judge_runtime(const struct ck_node *node, FILE *out)
{
	const char *path = node->conf.runtime;
	struct ck_process server;
	long pid = server_of(node, path, &server);
	fprintf(out, "%s exists", path);
	if (!pid || !ck_process_stopped(&server))
		return CK_VERDICT_OK;
	fprintf(out, ", but %s (process %ld), which listens there, is stopped by a signal or a "
		     "debugger",
		server.name, pid);
	return CK_VERDICT_WRONG;
}

static enum ck_verdict look_runtime_socket(const struct ck_node *node, FILE *out)
{
	struct stat st;
	if (unconfigured(node, out))
		return CK_VERDICT_UNKNOWN;
	if (!node->conf.runtime)
		fprintf(out, "the runtime is simulated");
	else if (find_socket(node, node->conf.runtime, &st, out) < 0)
		return CK_VERDICT_WRONG;
	else
		return judge_runtime(node, out);
	return CK_VERDICT_OK;
}

/* Who listens at a socket of this machine may answer nobody, or not be crikeepd. */
static enum ck_verdict look_cri_server(const struct ck_node *node, FILE *out)
{
	const struct ck_health *health = &node->health;
	struct ck_process server;
	long pid = 0;
	if (unconfigured(node, out))
		return CK_VERDICT_UNKNOWN;
	/* a connection would start the unit */
	if (node->systemd && is(node->units[CK_UNIT_SOCKET].active, "active"))
		fprintf(out, "systemd listens at %s", node->conf.listen);
	else if ((pid = server_of(node, node->conf.listen, &server)) <= 1)
		fprintf(out, "it is not known who listens at %s", node->conf.listen);
	else
		fprintf(out, "%s (process %ld) listens at %s", server.name, pid, node->conf.listen);
	if (pid <= 1)
		return CK_VERDICT_UNKNOWN;
	if (health->owner != CK_OWNER_STOPPED && health->pid == pid)
		return CK_VERDICT_OK;
	fprintf(out, ", and does not own %s", ck_cli.state_dir);
	return CK_VERDICT_WRONG;
}

/* ---- the kubelet ----------------------------------------------------------------------------- */

/* Is this endpoint the socket @path? /var/run is /run. */
static bool same_socket(const char *endpoint, const char *path)
{
	endpoint += strncmp(endpoint, "unix://", 7) ? 0 : 7;
	endpoint += strncmp(endpoint, "/var/run/", 9) ? 0 : 4;
	path += strncmp(path, "/var/run/", 9) ? 0 : 4;
	return is(endpoint, path);
}

/* false: nothing is known of it, or of what it should be */
static bool has_kubelet(const struct ck_node *node, FILE *out)
{
	if (unconfigured(node, out))
		return false;
	if (!node->kubelet.found)
		fprintf(out, "no process has the name kubelet, and there are no files for it");
	return node->kubelet.found;
}

static enum ck_verdict look_kubelet_endpoint(const struct ck_node *node, FILE *out)
{
	const struct ck_kubelet *kubelet = &node->kubelet;
	const struct ck_conf *conf = &node->conf;
	if (!has_kubelet(node, out))
		return CK_VERDICT_UNKNOWN;
	if (kubelet->pid)
		fprintf(out, "the kubelet (process %ld) uses ", kubelet->pid);
	else
		fprintf(out, "the kubelet is not running, and would use ");
	if (!kubelet->endpoint.value) {
		fprintf(out, "its default: no endpoint is configured");
		return CK_VERDICT_WRONG;
	}
	fprintf(out, "%s, from %s", kubelet->endpoint.value, kubelet->endpoint.from);
	if (same_socket(kubelet->endpoint.value, conf->listen))
		return CK_VERDICT_OK;
	if (conf->runtime && same_socket(kubelet->endpoint.value, conf->runtime))
		fprintf(out, ": that is the runtime itself, not crikeepd at %s", conf->listen);
	else
		fprintf(out, ", but crikeepd is at %s", conf->listen);
	return CK_VERDICT_WRONG;
}

static enum ck_verdict look_kubelet_files(const struct ck_node *node, FILE *out)
{
	const struct ck_kubelet *kubelet = &node->kubelet;
	if (!kubelet->started) {
		fprintf(out, kubelet->pid ? "it is not known when the kubelet started"
					  : "no process has the name kubelet");
		return CK_VERDICT_UNKNOWN;
	}
	fprintf(out, "the kubelet (process %ld) ", kubelet->pid);
	if (kubelet->newer)
		fprintf(out, "was started before %s was written last", kubelet->newer);
	else
		fprintf(out, "was started after its files were written");
	return kubelet->newer ? CK_VERDICT_WARNING : CK_VERDICT_OK;
}

/* The longest that the kubelet waits for a sandbox; 0: unknown, and @out says why */
static uint64_t sandbox_wait(const struct ck_node *node, FILE *out)
{
	const struct ck_from *timeout = &node->kubelet.timeout;
	uint64_t ns = 0;
	char wait[CK_TEXT_SPAN];
	if (!has_kubelet(node, out))
		return 0;
	const char *value = timeout->value ? timeout->value : TIMEOUT_DEFAULT;
	if (ck_duration_parse(value, &ns) && !ns) { /* 0 stands for the default */
		value = TIMEOUT_DEFAULT;
		ck_duration_parse(value, &ns);
	}
	if (!ns || ns > UINT64_MAX / (2 * SANDBOX_FACTOR)) {
		fprintf(out, "runtimeRequestTimeout %s, from %s, cannot be read", value,
			timeout->from);
		return 0;
	}
	fprintf(out, "the kubelet waits up to %s for a sandbox (runtimeRequestTimeout %s, %s)",
		ck_text_span(ns * SANDBOX_FACTOR, wait), value,
		timeout->value ? timeout->from : "the default");
	return ns * SANDBOX_FACTOR;
}

static enum ck_verdict look_create_deadline(const struct ck_node *node, FILE *out)
{
	char span[CK_TEXT_SPAN];
	uint64_t wait = sandbox_wait(node, out);
	if (!wait)
		return CK_VERDICT_UNKNOWN;
	fprintf(out, ", and the runtime may take %s (cache.create_deadline)",
		ck_text_span(node->conf.create_deadline, span));
	if (node->conf.create_deadline >= wait + LATE_LEAST)
		return CK_VERDICT_OK;
	fprintf(out, ", which leaves less than a minute to what is late");
	return CK_VERDICT_WRONG;
}

static enum ck_verdict look_ttl(const struct ck_node *node, FILE *out)
{
	char span[CK_TEXT_SPAN], pause[CK_TEXT_SPAN];
	uint64_t wait = sandbox_wait(node, out);
	if (!wait)
		return CK_VERDICT_UNKNOWN;
	fprintf(out, " and repeats it %s later, and a result is kept for %s (cache.ttl)",
		ck_text_span(PAUSE, pause), ck_text_span(node->conf.ttl, span));
	return node->conf.ttl >= wait + PAUSE ? CK_VERDICT_OK : CK_VERDICT_WRONG;
}

/* The kubelet looks at its endpoint only, whatever runtime is behind it. */
static enum ck_verdict look_statistics(const struct ck_node *node, FILE *out)
{
	const struct ck_kubelet *kubelet = &node->kubelet;
	const struct ck_conf *conf = &node->conf;
	const char *endpoint = kubelet->endpoint.value, *name = node->health.name;
	if (!has_kubelet(node, out))
		return CK_VERDICT_UNKNOWN;
	size_t len = endpoint ? strlen(endpoint) : 0, end = strlen(CRIO_SUFFIX);
	bool gate = kubelet->cri_stats.value && is(kubelet->cri_stats.value, "true");
	bool suffix = len >= end && is(endpoint + len - end, CRIO_SUFFIX);
	bool crio = name ? is(name, "cri-o") : conf->runtime && strstr(conf->runtime, "/crio/");
	fprintf(out, "the kubelet takes them from %s",
		suffix && !gate ? "cAdvisor" : "the runtime");
	if (gate || suffix == crio)
		return CK_VERDICT_OK;
	fprintf(out, ", because its endpoint %s in " CRIO_SUFFIX ", and the runtime is %s",
		suffix ? "ends" : "does not end", crio ? "CRI-O" : "not CRI-O");
	return CK_VERDICT_WARNING;
}

static enum ck_verdict look_crictl(const struct ck_node *node, FILE *out)
{
	const char *endpoint = node->crictl.value;
	if (unconfigured(node, out))
		return CK_VERDICT_UNKNOWN;
	if (!endpoint) {
		fprintf(out, "/etc/crictl.yaml names no runtime-endpoint");
		return CK_VERDICT_UNKNOWN;
	}
	fprintf(out, "crictl uses %s, from /etc/crictl.yaml", endpoint);
	if (!node->conf.runtime || !same_socket(endpoint, node->conf.runtime))
		return CK_VERDICT_OK;
	fprintf(out, ": it sees and can remove what is hidden from the kubelet");
	return CK_VERDICT_WARNING;
}

/* ---- systemd's units ------------------------------------------------------------------------- */

/* false: there is nothing to judge */
static bool has_unit(const struct ck_node *node, FILE *out)
{
	if (embedded(node, out))
		return false;
	if (!node->systemd)
		fprintf(out, "systemd is not running here, or does not answer");
	else if (is(node->units[CK_UNIT_SERVICE].load, "not-found"))
		fprintf(out, "crikeepd.service is not installed");
	else
		return true;
	return false;
}

static enum ck_verdict look_unit(const struct ck_node *node, FILE *out)
{
	const struct ck_unit_state *unit = &node->units[CK_UNIT_SERVICE];
	if (!has_unit(node, out))
		return CK_VERDICT_UNKNOWN;
	const struct ck_health *health = &node->health;
	fprintf(out, "crikeepd.service is %s", unit->active);
	if (*unit->result && !is(unit->result, "success"))
		fprintf(out, " (%s)", unit->result);
	/* a unit that has ended has no process */
	if (health->owner != CK_OWNER_STOPPED && health->seen &&
	    (is(unit->active, "failed") || is(unit->active, "inactive")))
		fprintf(out, ": another %s (process %ld) owns %s", health->process.name,
			health->pid, ck_cli.state_dir);
	return is(unit->active, "active") ? CK_VERDICT_OK : CK_VERDICT_WRONG;
}

static enum ck_verdict look_enabled(const struct ck_node *node, FILE *out)
{
	const char *service = node->units[CK_UNIT_SERVICE].file,
		   *socket = node->units[CK_UNIT_SOCKET].file;
	if (!has_unit(node, out))
		return CK_VERDICT_UNKNOWN;
	fprintf(out, "crikeepd.service is %s, crikeepd.socket is %s",
		*service ? service : "of unknown state", *socket ? socket : "not installed");
	return is(service, "enabled") || is(socket, "enabled") ? CK_VERDICT_OK : CK_VERDICT_WRONG;
}

static enum ck_verdict look_bypass(const struct ck_node *node, FILE *out)
{
	const char *bypass = node->units[CK_UNIT_BYPASS].active;
	if (!has_unit(node, out))
		return CK_VERDICT_UNKNOWN;
	fprintf(out, "crikeepd-bypass.socket is %s", *bypass ? bypass : "not installed");
	if (!is(bypass, "active"))
		return CK_VERDICT_OK;
	fprintf(out, ": the kubelet is connected to the runtime without crikeepd");
	return CK_VERDICT_WRONG;
}

/* ---- the clock ------------------------------------------------------------------------------- */

static enum ck_verdict look_clock(const struct ck_node *node, FILE *out)
{
	int64_t now = node->health.look.wall / (int64_t)CK_NS_PER_S;
	char text[CK_TEXT_SPAN];
	fprintf(out, "the wall clock says %s", ck_text_time(now, text));
	return now >= CLOCK_LEAST ? CK_VERDICT_OK : CK_VERDICT_WRONG;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define SOCKET_REMEDY \
	"Restart crikeepd: it creates its sockets anew, with the rights that are configured."

const struct ck_check ck_checks[] = {
	{ "configuration", look_configuration,
	  "Correct that line. 'crikeepd --check-config' checks it again; then 'systemctl restart "
	  "crikeepd'." },
	{ "configuration_odd", look_warnings, "crikeep.yaml(5) explains these keys." },
	{ "state_dir", look_state_dir,
	  "Make it a directory of root with mode 0700 that can be written, or name another one by "
	  "the key 'state_dir' in crikeep.yaml; then 'systemctl restart crikeepd'." },
	{ "cri_socket", look_cri_socket, SOCKET_REMEDY },
	{ "cri_server", look_cri_server,
	  "End that process, or let one of both use another socket (key 'listen'); then "
	  "'systemctl restart crikeepd'." },
	{ "unfiltered_socket", look_unfiltered_socket, SOCKET_REMEDY },
	{ "metrics_socket", look_metrics_socket, SOCKET_REMEDY },
	{ "runtime_socket", look_runtime_socket,
	  "Start the runtime ('kill -CONT' if it is stopped), or set the key 'runtime' in "
	  "crikeep.yaml to its socket." },
	{ "kubelet_endpoint", look_kubelet_endpoint,
	  "If the endpoint is from the kubelet's command line, change --container-runtime-endpoint "
	  "there (kubeadm: /var/lib/kubelet/kubeadm-flags.env): it overrides the kubelet's "
	  "configuration file. Else set containerRuntimeEndpoint in that file. The value is "
	  "unix:// and crikeepd's socket. Then restart the kubelet; running pods go on." },
	{ "kubelet_files", look_kubelet_files,
	  "Restart the kubelet: it reads its configuration when it starts, so it may not have what "
	  "was said above." },
	{ "create_deadline", look_create_deadline,
	  "Set cache.create_deadline in crikeep.yaml to at least four times runtimeRequestTimeout, "
	  "and restart crikeepd." },
	{ "ttl", look_ttl,
	  "Set cache.ttl in crikeep.yaml to more than that sum, and restart crikeepd." },
	{ "statistics", look_statistics,
	  "If the statistics of pods should stay what they were, let crikeepd listen on the "
	  "runtime's old path, and the runtime on another: an example is in crikeepd(8)." },
	{ "crictl_endpoint", look_crictl,
	  "Set runtime-endpoint in /etc/crictl.yaml to crikeepd's socket, or to its unfiltered "
	  "one, which is read-only." },
	{ "unit", look_unit,
	  "'journalctl -u crikeepd' tells why. Correct that, and end another owner if one is "
	  "named; then 'systemctl restart crikeepd'." },
	{ "unit_enabled", look_enabled,
	  "'systemctl enable crikeepd': else it does not start at the next boot." },
	{ "bypass", look_bypass,
	  "'journalctl -u crikeepd' tells why crikeepd failed. Correct that; then 'systemctl start "
	  "crikeepd' takes the socket back." },
	{ "clock", look_clock,
	  "Set the clock; 'timedatectl' tells whether it is synchronized. The times in the history "
	  "and in the log are wrong until then." },
};
const size_t ck_checks_n = CK_COUNT(ck_checks);
