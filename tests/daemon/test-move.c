/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet is moved straight to the runtime, back to crikeepd, and both once more. Each time it
 * uses, while crikeepd is away, what crikeepd had kept (K22, K25).
 */
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "tests/daemon/stage.h"
#include "tests/unit/wire-build.h"

#define CK_TEST_SECONDS 180
#include "tests/unit/harness.h"

#define MOVES 2

struct pod { /* as the kubelet sees it when it is straight at the runtime */
	char name[16];
	char sandbox[POD_ID], container[POD_ID];
};

struct move {
	struct stage s;
	struct cri_client straight; /* at the runtime's own socket, while crikeepd is away */
	bool container;             /* kept is a container, not a sandbox */
	enum { KEPT, UNKNOWN, GIVEN_UP } when; /* crikeepd goes */
	const char *runtime; /* the simulator's parameters while crikeepd is there */
	const char *alone;   /* and from then on when it is not; NULL: the same life */
	int signal;          /* that ends crikeepd */
	struct pod pods[MOVES];
	unsigned n;       /* of pods that are used */
	unsigned started; /* containers, in this life of the simulator */
	unsigned removed; /* by the kubelet */
};

/* ---- looking --------------------------------------------------------------------------------- */

/* how often the runtime was called so in this life of it, also when that changed nothing */
static unsigned calls(struct move *m, const char *rpc)
{
	struct cri_client client;
	struct ck_bytes request = { 0 }, reply;
	char name[64];
	cri_open(&client, m->s.w.runtime);
	put_number(&request, 1, 1); /* verbose */
	assert_int_equal(cri_do(&client, "Status", &request, &reply), CK_GRPC_OK);
	const char *json = cri_text(&reply, "2.2");
	ck_bytes_free(&reply);
	cri_close(&client);
	snprintf(name, sizeof(name), "\"%s\":", rpc);
	json = strstr(json, name);
	return json ? (unsigned)strtoul(json + strlen(name), NULL, 10) : 0;
}

/* what the runtime itself lists for this pod: the sandbox by its name, the container by its
 * sandbox */
static void find(struct move *m, bool container, const struct pod *pod, char *ret_id)
{
	const char *rpc = container ? "ListContainers" : "ListPodSandbox",
		   *at = container ? "2" : "2.1", *of = container ? pod->sandbox : pod->name;
	struct ck_bytes none = { 0 }, reply;
	char path[32];
	*ret_id = 0;
	assert_int_equal(cri_do(&m->straight, rpc, &none, &reply), CK_GRPC_OK);
	for (unsigned i = 0; i < cri_count(&reply, "1") && !*ret_id; i++) {
		snprintf(path, sizeof(path), "1#%u.%s", i, at);
		if (strcmp(cri_text(&reply, path), of))
			continue;
		snprintf(path, sizeof(path), "1#%u.1", i);
		snprintf(ret_id, POD_ID, "%s", cri_text(&reply, path));
	}
	ck_bytes_free(&reply);
	assert_true(*ret_id);
}

enum { LINE = 128 };
/* as crikeepd's log has it */
static void log_line(char line[LINE], bool container, const char *pod_name, const char *what)
{
	snprintf(line, LINE, "%s ns/%s%s attempt 0: %s", container ? "container" : "sandbox",
		 pod_name, container ? "/main" : "", what);
}

static void until_said(struct move *m, bool container, const char *pod_name, const char *what)
{
	char line[LINE];
	log_line(line, container, pod_name, what);
	world_until_logged(&m->s.w, line, 20);
}

/* It is found in use, and nobody thought that it might go. */
static void was_found_in_use(struct move *m, const struct pod *pod)
{
	char line[LINE];
	if (m->when == UNKNOWN) {
		until_said(m, m->container, pod->name, "CREATING -> UNKNOWN");
		log_line(line, m->container, pod->name, "UNKNOWN -> EVICTING");
		assert_false(world_logged(&m->s.w, line));
	}
	until_said(m, m->container, pod->name, "found in use");
	log_line(line, m->container, pod->name, "KEPT -> EVICTING");
	assert_int_equal(world_logged(&m->s.w, line), m->when == GIVEN_UP);
}

static void all_are_shown(struct move *m)
{
	struct cri_client *kubelet = &m->s.kubelet;
	for (unsigned i = 0; i < m->n; i++) {
		const struct pod *pod = &m->pods[i];
		assert_true(pod_shown(kubelet, pod->sandbox));
		assert_true(container_shown(kubelet, pod->container));
		assert_int_equal(cri_do_id(kubelet, "PodSandboxStatus", pod->sandbox), CK_GRPC_OK);
		assert_int_equal(cri_do_id(kubelet, "ContainerStatus", pod->container), CK_GRPC_OK);
	}
}

static unsigned happened_to(struct move *m, const char *what, const char *id)
{
	char text[128];
	snprintf(text, sizeof(text), "%s %s", what, id);
	return world_count(&m->s.w, text);
}

/* by whom it may be, crikeepd included */
static void all_are_untouched(struct move *m)
{
	for (unsigned i = 0; i < m->n; i++) {
		assert_int_equal(happened_to(m, "stop sandbox", m->pods[i].sandbox), 0);
		assert_int_equal(happened_to(m, "remove sandbox", m->pods[i].sandbox), 0);
		assert_int_equal(happened_to(m, "stop container", m->pods[i].container), 0);
		assert_int_equal(happened_to(m, "remove container", m->pods[i].container), 0);
	}
	assert_int_equal(calls(m, "StartContainer"), m->started);
	assert_int_equal(calls(m, "StopContainer"), 0);
	assert_int_equal(calls(m, "RemoveContainer"), m->removed);
}

/* ---- moving ---------------------------------------------------------------------------------- */

static void runtime_again(struct move *m, const char *parameters)
{
	if (!m->alone)
		return;
	assert_int_equal(world_kill(&m->s.w.sim, SIGTERM), 0);
	world_sim(&m->s.w, parameters);
	m->started = 0;
}

static void leave(struct move *m)
{
	stage_leave(&m->s);
	assert_int_equal(world_kill(&m->s.w.daemon, m->signal),
			 m->signal == SIGKILL ? 128 + SIGKILL : 0);
}

static int ask(struct move *m, struct pod *pod)
{
	struct cri_client *kubelet = &m->s.kubelet;
	return m->container ? pod_create(kubelet, pod->sandbox, pod->name, 0, "300m", NULL)
			    : pod_run(kubelet, pod->name, 0, "300m", NULL);
}

/* the same container, but made in another way, for which this one must go first */
static void ask_for_another_container(struct move *m, struct pod *pod)
{
	enum { NEWER_FIELD = 99 };
	struct ck_bytes request = cri_create_request(pod->sandbox, pod->name, "main", 0);
	struct cri_call call;
	put_number(&request, NEWER_FIELD, 1);
	cri_start(&m->s.kubelet, &call, "CreateContainer", &request, "1S");
	cri_wait(&call);
	cri_end(&call);
}

/* Otherwise the runtime undoes it when crikeepd ends. */
static void until_all_is_made(struct move *m)
{
	const struct world *w = &m->s.w;
	world_until(w, "create sandbox", world_count(w, "begin sandbox"), 20);
	world_until(w, "create container", world_count(w, "begin container"), 20);
}

/* Something else is asked for. The runtime does not manage to destroy this one. */
static void give_up(struct move *m, struct pod *pod)
{
	if (m->container)
		ask_for_another_container(m, pod);
	else
		pod_run(&m->s.kubelet, pod->name, 1, "1S", NULL);
	until_said(m, m->container, pod->name, "KEPT -> EVICTING");
	while (!calls(m, m->container ? "RemoveContainer" : "StopPodSandbox"))
		poll(NULL, 0, 10);
	until_all_is_made(m);
}

/* Besides the pod's there is a kept sandbox that nobody will use. */
static void keep(struct move *m, struct pod *pod)
{
	char unused[32];
	snprintf(pod->name, sizeof(pod->name), "used-%u", m->n);
	snprintf(unused, sizeof(unused), "unused-%u", m->n);
	if (m->container)
		assert_int_equal(pod_run(&m->s.kubelet, pod->name, 0, "20S", pod->sandbox),
				 CK_GRPC_OK);
	assert_int_equal(pod_run(&m->s.kubelet, unused, 0, "300m", NULL),
			 CK_GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(ask(m, pod), CK_GRPC_DEADLINE_EXCEEDED);
	if (m->when == UNKNOWN)
		return; /* killed before the runtime has made them */
	until_said(m, false, unused, "CREATING -> KEPT");
	until_said(m, m->container, pod->name, "CREATING -> KEPT");
	if (m->when == GIVEN_UP)
		give_up(m, pod);
}

/* The kubelet sees all that the runtime has. */
static void use(struct move *m, struct pod *pod)
{
	const struct world *w = &m->s.w;
	until_all_is_made(m);
	cri_open(&m->straight, w->runtime);
	if (!m->container) {
		find(m, false, pod, pod->sandbox);
		assert_int_equal(pod_create(&m->straight, pod->sandbox, pod->name, 0, "20S", NULL),
				 CK_GRPC_OK);
	}
	find(m, true, pod, pod->container);
	assert_int_equal(cri_do_id(&m->straight, "StartContainer", pod->container), CK_GRPC_OK);
	cri_close(&m->straight);
	m->started++;
	m->n++;
}

/* from the first answer on, and when the time of what is kept is over: what nobody used goes */
static void back(struct move *m)
{
	static const char *const soon[] = { "--ttl", "500ms", NULL };
	unsigned removed = world_count(&m->s.w, "remove sandbox");
	m->s.flags = soon;
	stage_again(&m->s);
	do
		all_are_shown(m);
	while (world_count(&m->s.w, "remove sandbox") == removed);
	all_are_shown(m);
	all_are_untouched(m);
	was_found_in_use(m, &m->pods[m->n - 1]);
	leave(m);
}

/* in its whole life the kubelet sees one sandbox and one container of each pod, and ends them */
static void kubelet_ends_all(struct move *m)
{
	struct cri_client *kubelet = &m->s.kubelet;
	char id[POD_ID];
	for (unsigned i = 0; i < m->n; i++) {
		struct pod *pod = &m->pods[i];
		assert_int_equal(pod_run(kubelet, pod->name, 0, "20S", id), CK_GRPC_OK);
		assert_string_equal(id, pod->sandbox);
		assert_int_equal(cri_do_id(kubelet, "StopContainer", pod->container), CK_GRPC_OK);
		assert_int_equal(cri_do_id(kubelet, "StopPodSandbox", pod->sandbox), CK_GRPC_OK);
		assert_int_equal(cri_do_id(kubelet, "RemovePodSandbox", pod->sandbox), CK_GRPC_OK);
		assert_int_equal(happened_to(m, "stop container", pod->container), 1);
	}
	assert_int_equal(pod_n(kubelet), 0);
}

static void move_it(struct move *m)
{
	stage_start(&m->s, m->runtime, NULL);
	while (m->n < MOVES) {
		struct pod *pod = &m->pods[m->n];
		keep(m, pod);
		leave(m);
		runtime_again(m, m->alone);
		use(m, pod);
		back(m);
		m->s.flags = NULL;
		runtime_again(m, m->n < MOVES ? m->runtime : m->alone);
		stage_again(&m->s);
		all_are_shown(m);
	}
	all_are_untouched(m);
	kubelet_ends_all(m);
}

static void a_kept_sandbox_that_is_used_meanwhile_is_shown(void **state)
{
	struct move *m = *state;
	m->runtime = "create=500ms,list=20ms";
	m->when = KEPT;
	m->signal = SIGTERM;
	move_it(m);
}

static void a_kept_sandbox_that_is_used_after_a_kill_is_shown(void **state)
{
	struct move *m = *state;
	m->runtime = "create=500ms,list=20ms";
	m->when = KEPT;
	m->signal = SIGKILL;
	move_it(m);
}

static void a_kept_container_that_is_started_meanwhile_is_shown(void **state)
{
	struct move *m = *state;
	m->runtime = "create=500ms,list=20ms";
	m->container = true;
	m->when = KEPT;
	m->signal = SIGTERM;
	move_it(m);
}

static void a_kept_container_that_is_started_after_a_kill_is_shown(void **state)
{
	struct move *m = *state;
	m->runtime = "create=500ms,list=20ms";
	m->container = true;
	m->when = KEPT;
	m->signal = SIGKILL;
	move_it(m);
}

static void a_sandbox_whose_outcome_is_unknown_is_shown_if_it_is_used(void **state)
{
	struct move *m = *state;
	m->runtime = "create.sandbox=1500ms,list=20ms,cancel=finish";
	m->when = UNKNOWN;
	m->signal = SIGKILL;
	move_it(m);
}

static void a_container_whose_outcome_is_unknown_is_shown_if_it_runs(void **state)
{
	struct move *m = *state;
	m->runtime = "create.container=1500ms,create.sandbox=600ms,list=20ms,cancel=finish";
	m->container = true;
	m->when = UNKNOWN;
	m->signal = SIGKILL;
	move_it(m);
}

static void a_sandbox_that_was_given_up_is_shown_if_it_is_used(void **state)
{
	struct move *m = *state;
	m->runtime = "create=500ms,list=20ms,stop=60s";
	m->alone = "list=20ms";
	m->when = GIVEN_UP;
	m->signal = SIGTERM;
	move_it(m);
}

static void a_container_that_was_given_up_is_shown_if_it_runs(void **state)
{
	struct move *m = *state;
	m->runtime = "create=500ms,list=20ms,fail.remove=1000";
	m->alone = "list=20ms";
	m->container = true;
	m->when = GIVEN_UP;
	m->signal = SIGKILL;
	move_it(m);
}

/* ---- removed meanwhile ----------------------------------------------------------------------- */

static void remove_straight(struct move *m, const struct pod *pod, char *ret_id)
{
	cri_open(&m->straight, m->s.w.runtime);
	find(m, true, pod, ret_id);
	assert_int_equal(cri_do_id(&m->straight, "RemoveContainer", ret_id), CK_GRPC_OK);
	cri_close(&m->straight);
	m->removed++;
}

static void no_container_is_hidden(struct move *m)
{
	static const char *const states[] = { "unknown", "kept", "evicting" };
	char name[64];
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "crikeep_entries{kind=\"container\",state=\"%s\"}",
			 states[i]);
		assert_int_equal(world_metric(&m->s.w, name), 0);
	}
}

/* the same request makes another one, which the kubelet starts */
static void made_anew(struct move *m, struct pod *pod, const char *removed)
{
	struct cri_client *kubelet = &m->s.kubelet;
	assert_false(container_shown(kubelet, removed));
	assert_int_equal(pod_create(kubelet, pod->sandbox, pod->name, 0, "20S", pod->container),
			 CK_GRPC_OK);
	assert_string_not_equal(pod->container, removed);
	assert_int_equal(cri_do_id(kubelet, "StartContainer", pod->container), CK_GRPC_OK);
	m->started++;
	m->n++;
}

static void a_kept_container_that_is_removed_meanwhile_is_gone(void **state)
{
	struct move *m = *state;
	char removed[POD_ID];
	m->container = true;
	m->when = KEPT;
	m->signal = SIGTERM;
	stage_start(&m->s, "create=500ms,list=20ms", NULL);
	while (m->n < MOVES) {
		struct pod *pod = &m->pods[m->n];
		keep(m, pod);
		leave(m);
		remove_straight(m, pod, removed);
		stage_again(&m->s);
		no_container_is_hidden(m);
		made_anew(m, pod, removed);
		all_are_shown(m);
		all_are_untouched(m);
	}
	assert_int_equal(world_count(&m->s.w, "begin container"), 2 * MOVES);
	kubelet_ends_all(m);
}

static int set_up(void **state)
{
	struct move *m = calloc(1, sizeof(*m));
	assert_non_null(m);
	stage_init(&m->s);
	m->s.w.repeat = true;
	*state = m;
	return 0;
}

static int tear_down(void **state)
{
	struct move *m = *state;
	stage_fini(&m->s);
	free(m);
	return 0;
}

#define MOVED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MOVED(a_kept_sandbox_that_is_used_meanwhile_is_shown),
		MOVED(a_kept_sandbox_that_is_used_after_a_kill_is_shown),
		MOVED(a_kept_container_that_is_started_meanwhile_is_shown),
		MOVED(a_kept_container_that_is_started_after_a_kill_is_shown),
		MOVED(a_sandbox_whose_outcome_is_unknown_is_shown_if_it_is_used),
		MOVED(a_container_whose_outcome_is_unknown_is_shown_if_it_runs),
		MOVED(a_sandbox_that_was_given_up_is_shown_if_it_is_used),
		MOVED(a_container_that_was_given_up_is_shown_if_it_runs),
		MOVED(a_kept_container_that_is_removed_meanwhile_is_gone),
	};
	return CK_TEST_MAIN(tests);
}
