/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NRI of a real, confined crikeepd: its socket, plugins it launches, its restart and its end. A
 * plugin here is a child that answers everything with yes and writes down what it hears.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/daemon/stage.h"
#include "tests/flow/nri-peer.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

static char socket_path[WORLD_PATH + 16], plugin_dir[WORLD_PATH + 16], config_dir[WORLD_PATH + 16],
	heard[WORLD_PATH + 16];

static const char *const *nri_flags(struct stage *s)
{
	static const char *const flags[] = { "--nri",     "--nri-socket",
					     socket_path, "--nri-plugin-dir",
					     plugin_dir,  "--nri-config-dir",
					     config_dir,  NULL };
	snprintf(socket_path, sizeof(socket_path), "%s/nri/nri.sock", s->w.dir);
	snprintf(plugin_dir, sizeof(plugin_dir), "%s/plugins", s->w.dir);
	snprintf(config_dir, sizeof(config_dir), "%s/conf.d", s->w.dir);
	snprintf(heard, sizeof(heard), "%s/heard", s->w.dir);
	return flags;
}

/* ---- a plugin -------------------------------------------------------------------------------- */

static void called(struct plugin *plugin, const struct plugin_heard *call, void *userdata)
{
	static const char *const names[PLUGIN_CALLS] = {
#define NAME(name, value, text) [value] = text,
		CK_NRI_EVENTS(NAME)
#undef NAME
			[PLUGIN_CONFIGURE] = "Configure",
		[PLUGIN_SYNCHRONIZE] = "Synchronize",
		[PLUGIN_SHUTDOWN] = "Shutdown",
	};
	int fd = *(int *)userdata;
	if (call->call == PLUGIN_CONFIGURE)
		dprintf(fd, "runtime %s %s\n", plugin->runtime_name, plugin->runtime_version);
	dprintf(fd, "%s %s\n", names[call->call], *call->container ? call->container : call->pod);
}

/* one connection, to its end; a line for each call, and for each pod of a list. @holds: it never
 * answers this one; -1: it answers all */
static pid_t plugin_start_holding(int holds)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, (long)SIGKILL, 0L, 0L, 0L);
	int fd = open(heard, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct plugin *plugin = plugin_dial(socket_path, "10-a");
	if (fd < 0 || !plugin)
		_exit(1);
	plugin->called = called;
	plugin->userdata = &fd;
	if (holds >= 0)
		plugin_rule(plugin, holds, PLUGIN_HOLDS, 0);
	for (size_t items = 0; !plugin->ended && plugin->fd >= 0;) {
		struct pollfd poll_fd = { .fd = plugin->fd, .events = POLLIN };
		while (plugin_step(plugin))
			;
		for (; items < plugin->items_n; items++)
			dprintf(fd, "listed %s\n", plugin->items[items].id);
		poll(&poll_fd, 1, 1000);
	}
	_exit(*plugin->wrong ? 2 : 0);
}

static pid_t plugin_start(void)
{
	return plugin_start_holding(-1);
}

/* @end: the line ends with it */
static void until_heard_with(const char *line, const char *end)
{
	unsigned long slow = ck_test_env("CK_TEST_SLOW", 1); /* 0 under gdb: no limit */
	unsigned long tries = slow ? 2000 * slow : ULONG_MAX;
	for (unsigned long i = 0;; i++) {
		char *text = world_file(heard), whole[256];
		snprintf(whole, sizeof(whole), "%s%s", line, end);
		bool there = strstr(text, whole) != NULL;
		if (!there && i == tries)
			fail_msg("not heard: '%s'; but\n%s", line, text);
		free(text);
		if (there)
			return;
		poll(NULL, 0, 10);
	}
}

static void until_heard(const char *line)
{
	until_heard_with(line, "\n");
}

static void plugin_ends(pid_t pid)
{
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static char *line_of(const char *what, const char *id)
{
	static char line[256];
	snprintf(line, sizeof(line), "%s %s", what, id);
	return line;
}

/* ---- what holds ------------------------------------------------------------------------------ */

static void a_pods_life_is_told(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID], id[POD_ID], *figures;
	stage_start(s, "", nri_flags(s));
	pid_t plugin = plugin_start();
	until_heard("runtime crikeep-sim " PACKAGE_VERSION);
	until_heard("Synchronize ");
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", pod), CK_GRPC_OK);
	until_heard(line_of("RunPodSandbox", pod));
	assert_int_equal(pod_create(&s->kubelet, pod, "web", 0, "20S", id), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", id), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "RemovePodSandbox", pod), CK_GRPC_OK);
	static const char *const events[] = { "CreateContainer", "PostCreateContainer",
					      "StartContainer",  "PostStartContainer",
					      "StopContainer",   "RemoveContainer" };
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		until_heard(line_of(events[i], id));
	until_heard(line_of("StopPodSandbox", pod));
	until_heard(line_of("RemovePodSandbox", pod));
	assert_int_equal(world_metric(&s->w, "crikeepd_nri_plugins{state=\"ready\"}"), 1);
	assert_int_equal(world_metric(&s->w, "crikeepd_nri_events_total{plugin=\"10-a\"}"), 9);
	assert_int_equal(world_metric(&s->w, "crikeepd_nri_refused_total{kind=\"container\"}"), 0);
	figures = world_metrics(&s->w);
	assert_null(strstr(figures, pod));
	free(figures);
	stage_leave(s);
	assert_int_equal(world_kill(&s->w.daemon, SIGTERM), 0);
	until_heard("Shutdown ");
	plugin_ends(plugin);
}

/* before any other request: a kubelet takes it from its list, and starts containers in it (K2) */
static void a_late_pod_is_told_when_it_is_offered(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID], id[POD_ID];
	stage_start(s, "create=500ms", nri_flags(s));
	pid_t plugin = plugin_start();
	until_heard("Synchronize ");
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "200m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&s->w, "sandbox ns/late attempt 0: listed for the kubelet", 10);
	assert_int_equal(pod_n(&s->kubelet), 1);
	pod_id_of(&s->kubelet, 0, pod);
	until_heard(line_of("RunPodSandbox", pod));
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "20S", id), CK_GRPC_OK);
	assert_string_equal(id, pod);
	assert_int_equal(cri_do_id(&s->kubelet, "StopPodSandbox", pod), CK_GRPC_OK);
	until_heard(line_of("StopPodSandbox", pod));
	char *text = world_file(heard), *told = strstr(text, "RunPodSandbox");
	assert_null(strstr(told + 1, "RunPodSandbox")); /* nor by the answer */
	free(text);
	kill(plugin, SIGKILL);
	assert_int_equal(waitpid(plugin, NULL, 0), plugin);
}

static void after_a_restart_what_there_is_is_listed(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID];
	stage_start(s, "", nri_flags(s));
	pid_t plugin = plugin_start();
	until_heard("Synchronize ");
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", pod), CK_GRPC_OK);
	stage_kill(s);
	plugin_ends(plugin);
	unlink(heard);
	stage_again(s); /* the socket of its earlier life does not keep it from starting */
	plugin = plugin_start();
	until_heard(line_of("listed", pod));
	assert_int_equal(cri_do_id(&s->kubelet, "StopPodSandbox", pod), CK_GRPC_OK);
	until_heard(line_of("StopPodSandbox", pod));
	char *text = world_file(heard);
	assert_null(strstr(text, "RunPodSandbox"));
	free(text);
	kill(plugin, SIGKILL);
	assert_int_equal(waitpid(plugin, NULL, 0), plugin);
}

/* K7, H1: plugins hear of a life that goes on, and of one that has begun to end */
static void after_a_restart_a_start_is_told_and_a_stopped_pod_is_listed(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID], stopped[POD_ID], id[POD_ID];
	unsigned tries = 0;
	stage_start(s, "", nri_flags(s));
	pid_t plugin = plugin_start();
	until_heard("Synchronize ");
	assert_int_equal(pod_run(&s->kubelet, "old", 0, "20S", stopped), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "StopPodSandbox", stopped), CK_GRPC_OK);
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", pod), CK_GRPC_OK);
	do { /* a kill that comes after CK_ANSWER_SETTLE finds the answer confirmed */
		assert_true(tries < 20);
		assert_int_equal(pod_create(&s->kubelet, pod, "web", tries++, "20S", id),
				 CK_GRPC_OK);
		stage_kill(s);
		plugin_ends(plugin);
		unlink(heard);
		stage_again(s);
		plugin = plugin_start();
		until_heard(line_of("listed", id));
	} while (container_shown(&s->kubelet, id));
	world_until_logged(&s->w, "COMMITTED -> KEPT", 20);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", id), CK_GRPC_OK);
	until_heard(line_of("PostStartContainer", id));
	char *text = world_file(heard);
	assert_null(strstr(text, "CreateContainer"));
	assert_non_null(strstr(text, line_of("listed", stopped)));
	free(text);
	kill(plugin, SIGKILL);
	assert_int_equal(waitpid(plugin, NULL, 0), plugin);
}

static const char *const *before_create(struct stage *s)
{
	static const char *flags[16];
	size_t n = 0;
	for (const char *const *flag = nri_flags(s); *flag; flag++)
		flags[n++] = *flag;
	flags[n++] = "--nri-adjust=before-create";
	flags[n++] = "--set";
	flags[n++] = "nri.request_timeout=1m";
	flags[n] = NULL;
	return flags;
}

/* H7, K8: the runtime may still be working on what an earlier life asked plugins about */
static void the_next_life_asks_about_a_container_under_the_same_id(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID], asked[128] = "";
	struct cri_call call;
	stage_start(s, "create.container=30s", before_create(s));
	pid_t plugin = plugin_start();
	until_heard("Synchronize ");
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", pod), CK_GRPC_OK);
	struct ck_bytes request = cri_create_request(pod, "web", "main", 0);
	cri_start(&s->kubelet, &call, "CreateContainer", &request, NULL);
	world_until(&s->w, "begin container", 1, 20);
	char *text = world_file(heard);
	assert_int_equal(sscanf(strstr(text, "CreateContainer "), "%*s %127s", asked), 1);
	free(text);
	cri_end(&call);
	stage_kill(s);
	plugin_ends(plugin);
	unlink(heard);
	stage_again(s);
	plugin = plugin_start();
	until_heard(line_of("listed", pod));
	request = cri_create_request(pod, "web", "main", 0);
	cri_start(&s->kubelet, &call, "CreateContainer", &request, NULL);
	until_heard_with("CreateContainer ", "");
	until_heard_with(line_of("CreateContainer", asked), "");
	cri_cancel(&call);
	cri_end(&call);
	kill(plugin, SIGKILL);
	assert_int_equal(waitpid(plugin, NULL, 0), plugin);
}

/* H3, H7: it has vanished from the runtime, and the id that plugins know with it */
static void after_a_restart_the_end_of_what_is_gone_has_the_id_that_plugins_know(void **state)
{
	struct stage *s = *state;
	struct cri_client runtime;
	char pod[POD_ID], id[POD_ID], asked[128] = "";
	unsigned tries = 0;
	stage_start(s, "", before_create(s));
	pid_t plugin = plugin_start();
	until_heard("Synchronize ");
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", pod), CK_GRPC_OK);
	do { /* a kill that comes after CK_ANSWER_SETTLE finds the answer confirmed */
		assert_true(tries < 20);
		assert_int_equal(pod_create(&s->kubelet, pod, "web", tries++, "20S", id),
				 CK_GRPC_OK);
		stage_kill(s);
		plugin_ends(plugin);
		char *text = world_file(heard);
		assert_int_equal(sscanf(strstr(text, "CreateContainer "), "%*s %127s", asked), 1);
		free(text);
		unlink(heard);
		stage_again(s);
		plugin = plugin_start();
		until_heard(line_of("listed", asked));
	} while (container_shown(&s->kubelet, id));
	world_until_logged(&s->w, "COMMITTED -> KEPT", 20);
	stage_kill(s);
	plugin_ends(plugin);
	unlink(heard);
	cri_open(&runtime, s->w.runtime);
	assert_int_equal(cri_do_id(&runtime, "RemoveContainer", id), CK_GRPC_OK);
	cri_close(&runtime);
	stage_again(s);
	plugin = plugin_start();
	until_heard(line_of("StopContainer", asked));
	until_heard(line_of("RemoveContainer", asked));
	kill(plugin, SIGKILL);
	assert_int_equal(waitpid(plugin, NULL, 0), plugin);
}

static void without_nri_nobody_can_dial(void **state)
{
	struct stage *s = *state;
	nri_flags(s);
	stage_start(s, "", NULL);
	assert_int_equal(access(socket_path, F_OK), -1);
	char *figures = world_metrics(&s->w);
	assert_null(strstr(figures, "crikeepd_nri"));
	free(figures);
}

static void a_live_socket_is_not_taken(void **state)
{
	struct stage *s = *state;
	char other[WORLD_PATH + 16], listen[WORLD_PATH + 16];
	stage_start(s, "", nri_flags(s));
	snprintf(other, sizeof(other), "%s/other", s->w.dir);
	snprintf(listen, sizeof(listen), "%s/other.sock", s->w.dir);
	struct world second = s->w;
	second.daemon = second.sim = 0;
	const char *const flags[] = { "--nri",     "--nri-socket",
				      socket_path, "--nri-plugin-dir",
				      "",          "--state-dir",
				      other,       "--listen",
				      listen,      "--unfiltered",
				      "",          "--metrics",
				      "",          NULL };
	assert_int_equal(world_daemon_fails(&second, flags), 1);
	assert_true(world_logged(&s->w, "turn the runtime's own NRI off"));
	pid_t plugin = plugin_start(); /* the first one serves on */
	until_heard("Synchronize ");
	kill(plugin, SIGKILL);
	assert_int_equal(waitpid(plugin, NULL, 0), plugin);
}

static void put(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[WORLD_PATH + 64];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void plugins_are_launched_with_what_they_are_promised(void **state)
{
	struct stage *s = *state;
	char script[1024];
	nri_flags(s);
	assert_int_equal(mkdir(plugin_dir, 0700), 0);
	assert_int_equal(mkdir(config_dir, 0700), 0);
	snprintf(script, sizeof(script),
		 "#!/bin/sh\n(tr '\\0' '\\n' </proc/$$/environ; for i in 0 1 2; do readlink "
		 "/proc/$$/fd/$i; done\n"
		 "readlink /proc/$$/fd/3 | sed 's/:.*//'; echo done) >>'%s'\n",
		 heard);
	put(plugin_dir, "30-env", script, 0755);
	put(plugin_dir, "odd", script, 0755);
	put(plugin_dir, "40-not-executable", script, 0644);
	put(plugin_dir, "50-unreadable", script, 0755);
	put(config_dir, "50-unreadable.conf", "\xff", 0644);
	stage_start(s, "", nri_flags(s));
	until_heard("done");
	char *text = world_file(heard);
	assert_string_equal(text, "NRI_PLUGIN_NAME=env\nNRI_PLUGIN_IDX=30\nNRI_PLUGIN_SOCKET=3\n/"
				  "dev/null\n/dev/null\n/dev/null\n"
				  "socket\ndone\n");
	free(text);
	world_until_logged(&s->w, "odd: can be executed, but is not named as a plugin", 10);
	world_until_logged(&s->w, "50-unreadable.conf: not UTF-8", 10);
	world_until_logged(&s->w, "30-env", 10); /* it has gone without having registered */
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", NULL), CK_GRPC_OK);
}

static void a_required_plugin_that_is_absent_holds_back_what_is_made(void **state)
{
	struct stage *s = *state;
	static const char *flags[16];
	size_t n = 0;
	for (const char *const *flag = nri_flags(s); *flag; flag++)
		flags[n++] = *flag;
	flags[n++] = "--set";
	flags[n++] = "nri.policies=10-a=required";
	flags[n] = NULL;
	stage_start(s, "", flags);
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", NULL), CK_GRPC_UNAVAILABLE);
	assert_int_equal(world_metric(&s->w, "crikeepd_nri_plugins{state=\"absent\"}"), 1);
	assert_int_equal(pod_n(&s->kubelet), 0);
	assert_int_equal(pod_n(&s->agent), 1);
	pid_t plugin = plugin_start();
	until_heard("Synchronize ");
	char pod[POD_ID];
	int r = CK_GRPC_UNAVAILABLE;
	for (int i = 0; r == CK_GRPC_UNAVAILABLE && i < 50; i++) /* it may not be a recipient yet */
		r = pod_run(&s->kubelet, "web", 0, "20S", pod);
	assert_int_equal(r, CK_GRPC_OK);
	until_heard(line_of("RunPodSandbox", pod));
	assert_int_equal(world_count(&s->w, "begin sandbox"), 1);
	kill(plugin, SIGKILL);
	assert_int_equal(waitpid(plugin, NULL, 0), plugin);
}

/* the plugin's connection ends after that to the runtime, and nothing is created for its answer */
static void an_end_while_a_plugin_is_asked_creates_nothing(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID];
	stage_start(s, "", before_create(s));
	pid_t plugin = plugin_start_holding(CK_NRI_CREATE_CONTAINER);
	until_heard("Synchronize ");
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", pod), CK_GRPC_OK);
	struct ck_bytes request = cri_create_request(pod, "web", "main", 0);
	struct cri_call call;
	cri_start(&s->kubelet, &call, "CreateContainer", &request, NULL);
	until_heard_with("CreateContainer ", "");
	cri_cancel(&call);
	cri_end(&call);
	world_until_logged(&s->w, "the caller has gone", 10);
	stage_leave(s);
	assert_int_equal(world_kill(&s->w.daemon, SIGTERM), 0);
	plugin_ends(plugin);
	assert_int_equal(world_count(&s->w, "begin container"), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ON_STAGE(a_pods_life_is_told),
		ON_STAGE(a_late_pod_is_told_when_it_is_offered),
		ON_STAGE(after_a_restart_what_there_is_is_listed),
		ON_STAGE(after_a_restart_a_start_is_told_and_a_stopped_pod_is_listed),
		ON_STAGE(without_nri_nobody_can_dial),
		ON_STAGE(a_live_socket_is_not_taken),
		ON_STAGE(plugins_are_launched_with_what_they_are_promised),
		ON_STAGE(a_required_plugin_that_is_absent_holds_back_what_is_made),
		ON_STAGE(an_end_while_a_plugin_is_asked_creates_nothing),
		ON_STAGE(the_next_life_asks_about_a_container_under_the_same_id),
		ON_STAGE(after_a_restart_the_end_of_what_is_gone_has_the_id_that_plugins_know),
	};
	return CK_TEST_MAIN(tests);
}
