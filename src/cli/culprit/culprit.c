/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/culprit/apart.h"
#include "src/cli/culprit/culprit.h"
#include "src/cli/culprit/unix-sockets.h"
#include "src/cli/output/text.h"

#define START_SLACK (50 * CK_NS_PER_MS) /* the start of a process is known to 10 ms */

struct suspect {
	const struct ck_process *process;
	enum ck_culprit_kind kind;
	bool has_child; /* among the suspects of its kind */
	bool was_there; /* before the creation, so it does not wait for its end */
	bool judged;
	enum ck_hang hang;
	struct ck_waiting waiting;
};

struct search {
	const struct ck_culprit_query *query;
	struct ck_apart *apart;
	struct ck_process *processes;
	size_t processes_n;
	struct suspect suspects[CK_SUSPECTS_MAX];
	size_t suspects_n;
	struct ck_unix_socket *sockets;
	size_t sockets_n;
	uint32_t *owned, *runtimes; /* sockets of the owner, of the runtime */
	size_t owned_n, runtimes_n;
	struct ck_process runtime; /* pid 0: unknown */
	uid_t user; /* of the runtime; 0 if that is unknown */
	struct ck_culprits found;
};

/* ---- whose process is it? -------------------------------------------------------------------- */

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* "K8S_POD_NAME=web" in "IgnoreUnknown=1;K8S_POD_NAME=web;..." */
static bool cni_arg_is(const char *args, const char *name, const char *value, bool or_missing)
{
	size_t name_len = strlen(name), value_len = strlen(value);
	for (; *args; args += strcspn(args, ";"), args += *args == ';') {
		if (strncmp(args, name, name_len) != 0 || args[name_len] != '=')
			continue;
		const char *at = args + name_len + 1;
		return strcspn(at, ";") == value_len && strncmp(at, value, value_len) == 0;
	}
	return or_missing;
}

static bool is_cni_of_pod(const struct search *search, long pid)
{
	const struct ck_culprit_query *query = search->query;
	size_t len = 0;
	CK_AUTO_FREE char *env = ck_process_file(pid, "environ", CK_PROCESS_TEXT_MAX, &len);
	const char *args = env ? ck_process_variable(env, len, "CNI_ARGS") : NULL;
	return args && ck_process_variable(env, len, "CNI_COMMAND") &&
	       cni_arg_is(args, "K8S_POD_NAME", query->pod, false) &&
	       cni_arg_is(args, "K8S_POD_NAMESPACE", query->pod_namespace, false) &&
	       cni_arg_is(args, "K8S_POD_UID", query->uid, true);
}

static const struct {
	const char *name; /* the beginning of it, if @begins */
	bool begins;
	enum ck_culprit_kind kind;
} programs[] = {
	{ "runc", false, CK_CULPRIT_OCI_RUNTIME },
	{ "crun", false, CK_CULPRIT_OCI_RUNTIME },
	{ "youki", false, CK_CULPRIT_OCI_RUNTIME },
	{ "runsc", false, CK_CULPRIT_OCI_RUNTIME },
	{ "conmon", false, CK_CULPRIT_MONITOR },
	{ "conmonrs", false, CK_CULPRIT_MONITOR },
	{ "containerd-shim", true, CK_CULPRIT_SHIM },
};

static bool is_program(const struct ck_process *process, enum ck_culprit_kind *ret_kind)
{
	for (size_t i = 0; i < CK_COUNT(programs); i++) {
		const char *name = programs[i].name;
		if (programs[i].begins ? strncmp(process->name, name, strlen(name)) != 0
				       : strcmp(process->name, name) != 0)
			continue;
		*ret_kind = programs[i].kind;
		return true;
	}
	return false;
}

/* an argument that is one of the ids, or the path of such a bundle */
static bool has_id(const struct search *search, const char *words, size_t len)
{
	const char *ids[] = { search->query->id, search->query->sandbox_id };
	for (size_t i = 0; i < CK_COUNT(ids); i++)
		for (size_t at = 0; ids[i] && at < len; at += strlen(words + at) + 1)
			if (same(words + at, ids[i]))
				return true;
	return false;
}

/* of its arguments, or where it was started */
static char *bundle_of(const char *words, size_t len)
{
	static const char *const options[] = { "--bundle", "-bundle", "-b" };
	for (size_t at = 0; at < len; at += strlen(words + at) + 1) {
		const char *value = words + at + strlen(words + at) + 1;
		for (size_t i = 0; i < CK_COUNT(options) && value < words + len; i++)
			if (same(words + at, options[i]) && *value == '/')
				return ck_text_format("root%s/config.json", value);
		if (strncmp(words + at, "--bundle=/", 10) == 0)
			return ck_text_format("root%s/config.json", words + at + 9);
	}
	return ck_must(ck_strdup("cwd/config.json"));
}

static const char *annotation(struct json_object *annotations, const char *const names[2])
{
	for (size_t i = 0; i < 2; i++) {
		struct json_object *value;
		if (json_object_object_get_ex(annotations, names[i], &value) &&
		    json_object_is_type(value, json_type_string))
			return json_object_get_string(value);
	}
	return NULL;
}

/* containerd and CRI-O name pod and container in the bundle, by these annotations */
static bool annotations_fit(const struct ck_culprit_query *query, struct json_object *annotations)
{
	static const char *const pods[] = { "io.kubernetes.cri.sandbox-name",
					    "io.kubernetes.pod.name" },
				 *const spaces[] = { "io.kubernetes.cri.sandbox-namespace",
						     "io.kubernetes.pod.namespace" },
				 *const uids[] = { "io.kubernetes.cri.sandbox-uid",
						   "io.kubernetes.pod.uid" },
				 *const kinds[] = { "io.kubernetes.cri.container-type",
						    "io.kubernetes.cri-o.ContainerType" },
				 *const containers[] = { "io.kubernetes.cri.container-name",
							 "io.kubernetes.container.name" };
	const char *uid = annotation(annotations, uids), *kind = annotation(annotations, kinds);
	return same(annotation(annotations, pods), query->pod) &&
	       same(annotation(annotations, spaces), query->pod_namespace) &&
	       (!uid || same(uid, query->uid)) &&
	       (query->container ? same(annotation(annotations, containers), query->container)
				 : same(kind, "sandbox"));
}

static bool is_bundle_of_pod(const struct search *search, long pid, const char *words, size_t len)
{
	CK_AUTO_FREE char *path = bundle_of(words, len);
	CK_AUTO_FREE char *text = ck_process_foreign_file(pid, path, CK_BUNDLE_MAX);
	struct json_object *bundle = text ? json_tokener_parse(text) : NULL, *annotations;
	bool fits = json_object_object_get_ex(bundle, "annotations", &annotations) &&
		    annotations_fit(search->query, annotations);
	json_object_put(bundle);
	return fits;
}

/* A container can call its processes as it likes, but they are in a namespace of its own. */
static bool is_on_node(long pid)
{
	CK_AUTO_FREE char *its = ck_process_link(pid, "ns/pid");
	CK_AUTO_FREE char *ours = ck_process_link((long)getpid(), "ns/pid");
	return same(its, ours);
}

/* Anybody else can call a process runc, too, and choose where its bundle is. Both: who starts a
 * program that is setuid chooses its name and arguments as well. */
static bool is_of_runtime(const struct search *search, long pid)
{
	uid_t real, effective;
	return ck_process_users(pid, &real, &effective) &&
	       (real == 0 || real == search->user) &&
	       (effective == 0 || effective == search->user);
}

static bool is_suspect(const struct search *search, const struct ck_process *process,
		       enum ck_culprit_kind *ret_kind)
{
	bool young = process->started + START_SLACK >= search->query->since;
	bool program = is_program(process, ret_kind);
	size_t len = 0;
	CK_AUTO_FREE char *words = NULL;
	if ((!program && !young) || !is_of_runtime(search, process->pid))
		return false;
	if (program) {
		words = ck_process_file(process->pid, "cmdline", CK_PROCESS_TEXT_MAX, &len);
		return words && is_on_node(process->pid) &&
		       (has_id(search, words, len) ||
			(young && is_bundle_of_pod(search, process->pid, words, len)));
	}
	*ret_kind = CK_CULPRIT_CNI_PLUGIN;
	return is_cni_of_pod(search, process->pid) && is_on_node(process->pid);
}

/* ---- suspects -------------------------------------------------------------------------------- */

static struct suspect *find_suspect(struct search *search, long pid)
{
	for (size_t i = 0; i < search->suspects_n; i++)
		if (search->suspects[i].process->pid == pid)
			return &search->suspects[i];
	return NULL;
}

static void add_suspect(struct search *search, const struct ck_process *process,
			enum ck_culprit_kind kind)
{
	if (search->suspects_n < CK_SUSPECTS_MAX && !find_suspect(search, process->pid))
		search->suspects[search->suspects_n++] = (struct suspect){
			.process = process,
			.kind = kind,
			.was_there = process->started + START_SLACK < search->query->since,
		};
}

/* Children of plugins and of runc work for them, whatever they are. Those of shims and monitors
 * are the containers. */
static void add_children(struct search *search)
{
	for (size_t before = 0; before < search->suspects_n;) {
		before = search->suspects_n;
		for (size_t i = 0; i < search->processes_n; i++) {
			const struct ck_process *process = &search->processes[i];
			const struct suspect *parent = find_suspect(search, process->parent);
			if (parent && (parent->kind == CK_CULPRIT_CNI_PLUGIN ||
				       parent->kind == CK_CULPRIT_OCI_RUNTIME))
				add_suspect(search, process, parent->kind);
		}
	}
	for (size_t i = 0; i < search->suspects_n; i++) {
		const struct suspect *child = &search->suspects[i];
		struct suspect *parent = find_suspect(search, child->process->parent);
		if (parent)
			parent->has_child = true;
	}
}

/* ---- the runtime ----------------------------------------------------------------------------- */

static int by_inode(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static bool is_among(uint32_t inode, const uint32_t *all, size_t n)
{
	return n && bsearch(&inode, all, n, sizeof(*all), by_inode);
}

/* the path of the socket at which the owner is a client */
static const char *upstream_of_owner(const struct search *search)
{
	for (size_t i = 0; i < search->sockets_n; i++) {
		const struct ck_unix_socket *server = &search->sockets[i];
		/* where a service writes its log and says that it is ready */
		if (is_among(server->peer, search->owned, search->owned_n) &&
		    strncmp(server->path, "/run/systemd/", 13) != 0)
			return server->path;
	}
	return NULL;
}

static void set_runtime(struct search *search, long pid)
{
	uid_t real;
	if (!ck_process_see(pid, &search->runtime) ||
	    !ck_process_users(pid, &real, &search->user)) {
		search->runtime = (struct ck_process){ 0 };
		search->user = 0;
	}
}

static void find_runtime(struct search *search)
{
	static const char scheme[] = "unix://";
	struct ck_process owner;
	const char *endpoint = search->query->endpoint, *path;
	long pid = 0;
	search->sockets_n = ck_unix_sockets_list(&search->sockets);
	search->owned_n = ck_process_sockets(search->query->owner, &search->owned);
	path = upstream_of_owner(search);
	if (endpoint)
		path = strncmp(endpoint, scheme, strlen(scheme)) == 0 ? endpoint + strlen(scheme)
								      : endpoint;
	pid = path ? ck_unix_server(path) : 0;
	if (!pid && !path && ck_process_see(search->query->owner, &owner) &&
	    strcmp(owner.name, "crikeepd") != 0)
		pid = owner.pid; /* it has the library */
	set_runtime(search, pid);
}

/* if it is still unknown: who has started a CNI plugin, or is at the usual place */
static void guess_runtime(struct search *search)
{
	static const char *const usual[] = { "/run/containerd/containerd.sock",
					     "/run/crio/crio.sock" };
	for (size_t i = 0; i < search->suspects_n && !search->runtime.pid; i++)
		if (search->suspects[i].kind == CK_CULPRIT_CNI_PLUGIN &&
		    !find_suspect(search, search->suspects[i].process->parent))
			set_runtime(search, search->suspects[i].process->parent);
	for (size_t i = 0; i < CK_COUNT(usual); i++)
		if (!search->runtime.pid && !search->query->owner)
			set_runtime(search, ck_unix_server(usual[i]));
}

/* ---- culprits -------------------------------------------------------------------------------- */

static struct ck_culprit *add(struct ck_culprits *ret, enum ck_culprit_kind kind,
			      enum ck_hang hang, const struct ck_process *process)
{
	if (ret->n == CK_CULPRITS_MAX)
		return NULL;
	struct ck_culprit *culprit = &ret->all[ret->n++];
	*culprit = (struct ck_culprit){ .kind = kind, .hang = hang, .certain = true };
	culprit->chain[0] = *process;
	culprit->chain_n = 1;
	return culprit;
}

/* Is it in state D, and has not moved in the meantime? Any process is in state D now and then. */
static bool stays_in_disk(long pid, struct ck_waiting *waiting)
{
	const struct timespec pause = { 0, (long)CK_CULPRIT_LOOK };
	struct ck_waiting again;
	if (waiting->what != CK_WAITS_DISK)
		return false;
	nanosleep(&pause, NULL);
	ck_process_waiting(pid, &again);
	return again.what == CK_WAITS_DISK && again.thread == waiting->thread &&
	       again.switches == waiting->switches;
}

static enum ck_hang hang_of(const struct ck_process *process, struct ck_waiting *waiting)
{
	*waiting = (struct ck_waiting){ 0 };
	if (ck_process_stopped(process))
		return CK_HANG_STOPPED;
	ck_process_waiting(process->pid, waiting);
	if (stays_in_disk(process->pid, waiting))
		return CK_HANG_DISK;
	if (waiting->what == CK_WAITS_LOCK)
		return CK_HANG_LOCK;
	*waiting = (struct ck_waiting){ 0 };
	return CK_HANG_RUNS;
}

/* from whom the runtime, a shim or a monitor started, to @last */
static void set_chain(struct search *search, const struct suspect *last, struct ck_culprit *culprit)
{
	const struct suspect *at = last;
	size_t n = 0;
	for (; at && at->kind == last->kind && n < CK_ANCESTORS_MAX; n++) {
		memmove(culprit->chain + 1, culprit->chain,
			(CK_ANCESTORS_MAX - 1) * sizeof(*culprit->chain));
		culprit->chain[0] = *at->process;
		at = find_suspect(search, at->process->parent);
	}
	culprit->chain_n = n;
}

/* Nobody waits for the child of a plugin that was killed, unless by a lock or a mount. */
static bool is_left_over(struct search *search, const struct suspect *suspect)
{
	const struct suspect *at = suspect, *parent;
	for (unsigned n = 0; n < CK_ANCESTORS_MAX; n++, at = parent) {
		parent = find_suspect(search, at->process->parent);
		if (!parent)
			break;
	}
	return at->kind == CK_CULPRIT_CNI_PLUGIN && at->process->parent == 1 &&
	       search->runtime.pid != 1;
}

static bool is_at_work(struct search *search, const struct suspect *suspect)
{
	return !suspect->has_child && !suspect->was_there &&
	       suspect->kind != CK_CULPRIT_SHIM && suspect->kind != CK_CULPRIT_MONITOR &&
	       !is_left_over(search, suspect);
}

static void name_suspect(struct search *search, const struct suspect *suspect)
{
	struct ck_culprit *culprit =
		add(&search->found, suspect->kind, suspect->hang, suspect->process);
	if (!culprit)
		return;
	set_chain(search, suspect, culprit);
	culprit->certain = !is_left_over(search, suspect);
	culprit->waiting = suspect->waiting;
	if (suspect->hang == CK_HANG_LOCK &&
	    !ck_process_see(ck_lock_keeper(suspect->process->pid), &culprit->holder))
		culprit->holder = (struct ck_process){ 0 };
}

/* the runtime if it is stopped, and those who hang worst. @all: of all suspects, else of those who
 * have been judged so far, of whom nobody is blamed who runs */
static void name_worst(struct search *search, bool all)
{
	enum ck_hang worst = CK_HANG_RUNS;
	search->found = (struct ck_culprits){ 0 };
	if (search->runtime.pid && ck_process_stopped(&search->runtime))
		add(&search->found, CK_CULPRIT_RUNTIME, CK_HANG_STOPPED, &search->runtime);
	for (size_t i = 0; i < search->suspects_n; i++)
		if (search->suspects[i].judged && search->suspects[i].hang < worst)
			worst = search->suspects[i].hang;
	for (size_t i = 0; i < search->suspects_n; i++) {
		const struct suspect *suspect = &search->suspects[i];
		if (suspect->judged && suspect->hang == worst &&
		    (worst != CK_HANG_RUNS || (all && is_at_work(search, suspect))))
			name_suspect(search, suspect);
	}
	ck_apart_tell(search->apart, &search->found);
}

static void judge_suspects(struct search *search)
{
	for (size_t i = 0; i < search->suspects_n; i++) {
		struct suspect *suspect = &search->suspects[i];
		if (suspect->judged)
			continue;
		atomic_store(&search->apart->at, suspect->process->pid);
		suspect->hang = hang_of(suspect->process, &suspect->waiting);
		suspect->judged = true;
		if (suspect->hang != CK_HANG_RUNS)
			name_worst(search, false);
	}
}

/* Each one is judged at once: the look at the next one may not end. */
static void find_suspects(struct search *search)
{
	search->processes_n = ck_processes_list(&search->processes);
	for (size_t i = 0; i < search->processes_n; i++) {
		enum ck_culprit_kind kind = CK_CULPRIT_RUNTIME;
		atomic_store(&search->apart->at, search->processes[i].pid);
		if (is_suspect(search, &search->processes[i], &kind))
			add_suspect(search, &search->processes[i], kind);
		judge_suspects(search);
	}
	add_children(search);
	judge_suspects(search);
}

/* NRI's own is /var/run/nri/nri.sock */
static bool is_nri_socket(const char *path)
{
	return strncmp(strrchr(path, '/') + 1, "nri", 3) == 0;
}

static bool is_client_of_nri(const struct search *search, const struct ck_process *process)
{
	CK_AUTO_FREE uint32_t *its = NULL;
	size_t its_n = ck_process_sockets(process->pid, &its), len = 0;
	CK_AUTO_FREE char *env =
		process->parent == search->runtime.pid
			? ck_process_file(process->pid, "environ", CK_PROCESS_TEXT_MAX, &len)
			: NULL;
	if (env && ck_process_variable(env, len, "NRI_PLUGIN_NAME"))
		return true; /* started by the runtime */
	for (size_t i = 0; i < search->sockets_n; i++) {
		const struct ck_unix_socket *server = &search->sockets[i];
		if (is_nri_socket(server->path) && is_among(server->peer, its, its_n) &&
		    is_among(server->inode, search->runtimes, search->runtimes_n))
			return true;
	}
	return false;
}

static void judge_nri_plugins(struct search *search)
{
	search->runtimes_n = ck_process_sockets(search->runtime.pid, &search->runtimes);
	for (size_t i = 0; i < search->processes_n && search->runtime.pid; i++) {
		const struct ck_process *process = &search->processes[i];
		atomic_store(&search->apart->at, process->pid);
		if (ck_process_stopped(process) && is_client_of_nri(search, process))
			add(&search->found, CK_CULPRIT_NRI_PLUGIN, CK_HANG_STOPPED, process);
	}
}

/* It makes most of a container by itself, in threads that nobody can tell from each other. */
static void judge_runtime_threads(struct search *search)
{
	struct ck_waiting waiting;
	enum ck_hang hang = hang_of(&search->runtime, &waiting);
	if (hang != CK_HANG_DISK && hang != CK_HANG_LOCK)
		return;
	struct ck_culprit *culprit =
		add(&search->found, CK_CULPRIT_RUNTIME, hang, &search->runtime);
	const char *id = search->query->id;
	culprit->certain = id && strstr(waiting.path, id);
	culprit->waiting = waiting;
}

static void tell_why_unknown(struct search *search)
{
	const struct ck_process *runtime = &search->runtime;
	CK_AUTO_FREE char *state =
		runtime->pid ? ck_text_format("the runtime's process, %s (%ld), is not stopped: it "
					      "is at work itself, or waits for something that "
					      "cannot be seen here. Its log may tell",
					      runtime->name, runtime->pid)
			     : ck_must(ck_strdup("the runtime's process was not found"));
	snprintf(search->found.unknown, sizeof(search->found.unknown),
		 "unknown. No CNI plugin, runc, crun, conmon or shim is busy with it, and %s.",
		 state);
}

static void search_all(struct ck_apart *apart, void *userdata)
{
	struct search *search = ck_must(CK_NEW(struct search));
	search->query = userdata;
	search->apart = apart;
	find_runtime(search);
	name_worst(search, false);
	find_suspects(search);
	guess_runtime(search);
	name_worst(search, true);
	if (!search->found.n)
		judge_nri_plugins(search);
	if (!search->found.n && search->runtime.pid) {
		atomic_store(&apart->at, search->runtime.pid);
		judge_runtime_threads(search);
	}
	if (!search->found.n)
		tell_why_unknown(search);
	ck_apart_tell(apart, &search->found);
	free(search->processes);
	free(search->sockets);
	free(search->owned);
	free(search->runtimes);
	free(search);
}

/* ---- in a child process ---------------------------------------------------------------------- */

static void look(void (*work)(struct ck_apart *apart, void *userdata), void *userdata,
		 struct ck_culprits *ret)
{
	struct ck_process process;
	long at;
	enum ck_apart_end end = ck_apart_run(work, userdata, CK_CULPRIT_WAIT, ret, &at);
	if (end == CK_APART_DONE || ret->n || *ret->unknown)
		return;
	if (end == CK_APART_FAILED)
		snprintf(ret->unknown, sizeof(ret->unknown),
			 "unknown. The process that looks for it has failed.");
	else if (at)
		snprintf(ret->unknown, sizeof(ret->unknown),
			 "unknown. Process %ld (%s) cannot be looked at: that does not end, as "
			 "when its memory waits for a disk.",
			 at, ck_process_see(at, &process) ? process.name : "?");
	else
		snprintf(ret->unknown, sizeof(ret->unknown),
			 "unknown. The look at the processes of this node does not end.");
}

void ck_culprits_find(const struct ck_culprit_query *query, struct ck_culprits *ret)
{
	struct ck_culprit_query copy = *query;
	if (!geteuid()) {
		look(search_all, &copy, ret);
		return;
	}
	*ret = (struct ck_culprits){ 0 };
	snprintf(ret->unknown, sizeof(ret->unknown),
		 "unknown: only root can look at the processes of the runtime.");
}

struct plugins {
	const struct ck_culprit_plugin *all;
	size_t n;
};

static void judge_plugins(struct ck_apart *apart, void *userdata)
{
	const struct plugins *plugins = userdata;
	struct ck_culprits found = { 0 };
	for (size_t i = 0; i < plugins->n; i++) {
		const struct ck_culprit_plugin *plugin = &plugins->all[i];
		struct ck_process process;
		struct ck_waiting waiting;
		struct ck_culprit *culprit = NULL;
		atomic_store(&apart->at, plugin->pid);
		if (!ck_process_see(plugin->pid, &process))
			process = (struct ck_process){ .pid = plugin->pid };
		snprintf(process.name, sizeof(process.name), "%s", plugin->name);
		enum ck_hang hang = hang_of(&process, &waiting);
		if (plugin->overdue || hang < CK_HANG_LOCK)
			culprit = add(&found, CK_CULPRIT_NRI_PLUGIN, hang, &process);
		if (culprit)
			culprit->waiting = waiting;
		ck_apart_tell(apart, &found);
	}
}

void ck_culprits_plugins(const struct ck_culprit_plugin *plugins, size_t n,
			 struct ck_culprits *ret)
{
	struct plugins all = { plugins, n };
	look(judge_plugins, &all, ret);
}
