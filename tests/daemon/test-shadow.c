/* SPDX-License-Identifier: Apache-2.0 */
/* crikeepd with shadow: true: it counts what the runtime counts, and nobody notices it. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/daemon/stage.h"
#include "tests/daemon/tap.h"

#define CK_TEST_SECONDS 180
#include "tests/unit/harness.h"

static const char *const shadow[] = { "--shadow", NULL };

/* ---- counting -------------------------------------------------------------------------------- */

static unsigned metric(const struct world *w, const char *name, const char *kind)
{
	char series[128];
	snprintf(series, sizeof(series), "crikeepd_%s_total{kind=\"%s\"}", name, kind);
	return (unsigned)world_metric(w, series);
}

static unsigned runtime_did(const struct world *w, const char *what, const char *kind)
{
	char text[64];
	snprintf(text, sizeof(text), "%s %s", what, kind);
	return world_count(w, text);
}

/* What was sent has begun, or the runtime refused it. */
static void counts_are_the_runtimes(const struct world *w, const char *kind)
{
	unsigned begun = runtime_did(w, "begin", kind), refused = runtime_did(w, "refuse", kind),
		 rolled_back = runtime_did(w, "rollback", kind);
	assert_int_equal(metric(w, "creates", kind), begun + refused);
	assert_int_equal(metric(w, "shadow_cut", kind), rolled_back);
	assert_int_equal(metric(w, "answers", kind), runtime_did(w, "create", kind));
}

/* a call that its client gives up while the runtime is at work, as a kubelet's timer does */
static void give_up(struct stage *s, const char *rpc, struct ck_bytes request, const char *kind)
{
	struct cri_call call;
	unsigned before = runtime_did(&s->w, "begin", kind);
	char begin[32];
	snprintf(begin, sizeof(begin), "begin %s", kind);
	cri_start(&s->kubelet, &call, rpc, &request, "20S");
	world_until(&s->w, begin, before + 1, 10);
	cri_cancel(&call);
	cri_end(&call);
}

static void until_cut(const struct world *w, const char *kind, unsigned n)
{
	while (metric(w, "shadow_cut", kind) < n)
		poll(NULL, 0, 10);
}

/* by the runtime's timer, by the client's, by the end of its connection */
static void a_slow_sandbox_is_counted_each_time_it_is_made_anew(void **state)
{
	struct stage *s = *state;
	char id[POD_ID];
	stage_start(s, "create=1500ms,cancel=rollback", shadow);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), -1);
	world_until(&s->w, "rollback sandbox", 1, 10);
	give_up(s, "RunPodSandbox", cri_run_request("late", 0), "sandbox");
	world_until(&s->w, "rollback sandbox", 2, 10);
	assert_int_equal(metric(&s->w, "shadow_saved", "sandbox"), 1);
	struct cri_call call;
	struct ck_bytes request = cri_run_request("late", 0);
	cri_start(&s->kubelet, &call, "RunPodSandbox", &request, "20S");
	world_until(&s->w, "begin sandbox", 3, 10);
	call.stream = NULL;
	cri_end(&call);
	cri_close(&s->kubelet); /* the kubelet is started anew */
	world_until(&s->w, "rollback sandbox", 3, 10);
	cri_open(&s->kubelet, s->w.cri);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "20S", id), CK_GRPC_OK);
	counts_are_the_runtimes(&s->w, "sandbox");
	assert_int_equal(metric(&s->w, "shadow_cut", "sandbox"), 3);
	/* with full use: made once */
	assert_int_equal(metric(&s->w, "shadow_saved", "sandbox"), 3);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 4);
	/* it is done; what comes later has nothing to do with it */
	assert_int_equal(cri_do_id(&s->kubelet, "StopPodSandbox", id), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "RemovePodSandbox", id), CK_GRPC_OK);
	assert_int_equal(pod_run(&s->kubelet, "late", 1, "20S", id), CK_GRPC_OK);
	assert_int_equal(metric(&s->w, "shadow_saved", "sandbox"), 3);
}

/* The runtime goes on, and shows each: so the kubelet makes the next attempt (CreateContainer of
 * containerd). With full use the first one is hidden and handed back. */
static void late_containers_count_although_their_attempts_differ(void **state)
{
	struct stage *s = *state;
	char sandbox[POD_ID], id[POD_ID];
	stage_start(s, "create.container=1s,cancel=finish", shadow);
	assert_int_equal(pod_run(&s->kubelet, "web", 0, "20S", sandbox), CK_GRPC_OK);
	for (unsigned attempt = 0; attempt < 3; attempt++) {
		give_up(s, "CreateContainer", cri_create_request(sandbox, "web", "main", attempt),
			"container");
		world_until(&s->w, "create container", attempt + 1, 10);
	}
	until_cut(&s->w, "container", 3);
	assert_int_equal(metric(&s->w, "shadow_saved", "container"), 2);
	assert_int_equal(pod_create(&s->kubelet, sandbox, "web", 3, "20S", id), CK_GRPC_OK);
	assert_int_equal(metric(&s->w, "creates", "container"), 4);
	assert_int_equal(world_count(&s->w, "begin container"), 4);
	assert_int_equal(metric(&s->w, "shadow_saved", "container"), 3);
	assert_int_equal(metric(&s->w, "answers", "container"), 1);
	/* another container of the pod has nothing to do with it */
	struct ck_bytes other = cri_create_request(sandbox, "web", "other", 0);
	assert_int_equal(cri_do(&s->kubelet, "CreateContainer", &other, NULL), CK_GRPC_OK);
	assert_int_equal(metric(&s->w, "shadow_saved", "container"), 3);
}

#define PODS  20u
#define TIMES 3u

static void start_all(struct stage *s, struct cri_call calls[PODS], const char *timeout)
{
	for (unsigned i = 0; i < PODS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "p%u", i);
		struct ck_bytes request = cri_run_request(name, 0);
		cri_start(&s->kubelet, &calls[i], "RunPodSandbox", &request, timeout);
	}
}

static void twenty_pods_at_once_are_counted(void **state)
{
	struct stage *s = *state;
	struct cri_call calls[PODS];
	stage_start(s, "create=1500ms,cancel=rollback", shadow);
	for (unsigned n = 1; n <= TIMES; n++) {
		start_all(s, calls, "20S");
		world_until(&s->w, "begin sandbox", n * PODS, 20);
		for (unsigned i = 0; i < PODS; i++) {
			cri_cancel(&calls[i]);
			cri_end(&calls[i]);
		}
		world_until(&s->w, "rollback sandbox", n * PODS, 20);
	}
	start_all(s, calls, "60S");
	for (unsigned i = 0; i < PODS; i++) {
		cri_wait(&calls[i]);
		assert_int_equal(calls[i].status.code, CK_GRPC_OK);
		cri_end(&calls[i]);
	}
	counts_are_the_runtimes(&s->w, "sandbox");
	assert_int_equal(metric(&s->w, "shadow_cut", "sandbox"), TIMES * PODS);
	assert_int_equal(metric(&s->w, "shadow_saved", "sandbox"), TIMES * PODS);
}

/* It was still being made, so no creation began that could have been saved. */
static void a_repetition_that_the_runtime_refuses_saves_nothing(void **state)
{
	struct stage *s = *state;
	stage_start(s, "create=3s,cancel=finish", shadow);
	give_up(s, "RunPodSandbox", cri_run_request("late", 0), "sandbox");
	until_cut(&s->w, "sandbox", 1);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "20S", NULL), CK_GRPC_UNKNOWN);
	assert_int_equal(world_count(&s->w, "refuse sandbox"), 1);
	assert_int_equal(metric(&s->w, "creates", "sandbox"), 2);
	assert_int_equal(metric(&s->w, "shadow_cut", "sandbox"), 1);
	assert_int_equal(metric(&s->w, "shadow_saved", "sandbox"), 0);
	world_until(&s->w, "create sandbox", 1, 10);
	assert_int_equal(pod_n(&s->kubelet), 1); /* the kubelet finds it */
}

static void what_is_not_repeated_in_time_saves_nothing(void **state)
{
	static const char *const flags[] = { "--shadow", "--ttl=1s", NULL };
	struct stage *s = *state;
	stage_start(s, "create=1500ms,cancel=rollback", flags);
	give_up(s, "RunPodSandbox", cri_run_request("late", 0), "sandbox");
	until_cut(&s->w, "sandbox", 1);
	/* takes longer than the result would have been kept */
	assert_int_equal(pod_run(&s->kubelet, "other", 0, "20S", NULL), CK_GRPC_OK);
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "20S", NULL), CK_GRPC_OK);
	assert_int_equal(metric(&s->w, "shadow_saved", "sandbox"), 0);
}

/* ---- nobody notices it ----------------------------------------------------------------------- */

static bool exists(const struct world *w, const char *leaf)
{
	char path[WORLD_PATH + 32];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", w->state, leaf);
	return lstat(path, &st) == 0;
}

static void nothing_is_kept_and_nothing_is_hidden(void **state)
{
	struct stage *s = *state;
	stage_start(s, "create=1s,cancel=finish", shadow);
	assert_int_equal(world_metric(&s->w, "crikeepd_shadow"), 1);
	give_up(s, "RunPodSandbox", cri_run_request("late", 0), "sandbox");
	world_until(&s->w, "create sandbox", 1, 10);
	assert_int_equal(pod_n(&s->kubelet), 1);
	assert_int_equal(pod_n(&s->agent), 1);
	assert_false(exists(&s->w, "crikeep.db"));
	assert_false(exists(&s->w, "key"));
	/* the other socket is as narrow as ever */
	struct ck_bytes request = cri_run_request("other", 0);
	assert_int_equal(cri_do(&s->agent, "RunPodSandbox", &request, NULL),
			 CK_GRPC_PERMISSION_DENIED);
	/* it is told to read its configuration again, and serves on */
	kill(s->w.daemon, SIGHUP);
	world_until_logged(&s->w, "reloaded the configuration", 10);
	assert_int_equal(pod_n(&s->kubelet), 1);
	/* a second one is refused all the same */
	struct world second = s->w;
	snprintf(second.cri, sizeof(second.cri), "%s/second.sock", s->w.dir);
	assert_int_equal(world_daemon_fails(&second, shadow), 1);
}

static void calls_of_all_kinds(struct stage *s)
{
	static const char *const whole[] = { "Version",
					     "Status",
					     "ListPodSandbox",
					     "ListContainers",
					     "ListPodSandboxStats",
					     "ListContainerStats",
					     "ListPodSandboxMetrics",
					     "ImageService/ListImages",
					     "ImageService/ImageFsInfo",
					     "StreamPodSandboxes",
					     "NoSuchCall",
					     "NoSuchService/NoSuchCall" };
	static const char *const on[] = { "StartContainer",    "ContainerStatus", "ExecSync",
					  "Attach",            "ContainerStats",  "StopContainer",
					  "ReopenContainerLog", "RemoveContainer" };
	char sandbox[POD_ID], id[POD_ID];
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
			cri_do(&s->kubelet, whole[i], NULL, NULL);
		assert_int_equal(pod_run(&s->kubelet, round ? "b" : "a", 0, "20S", sandbox),
				 CK_GRPC_OK);
		assert_int_equal(pod_create(&s->kubelet, sandbox, round ? "b" : "a", 0, "20S", id),
				 CK_GRPC_OK);
		for (size_t i = 0; i < sizeof(on) / sizeof(*on); i++)
			cri_do_id(&s->kubelet, on[i], id);
		cri_do_id(&s->kubelet, "StartContainer", "nobody");
		cri_do_id(&s->kubelet, "PodSandboxStatus", sandbox);
	}
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "100m", NULL), -1);
	give_up(s, "RunPodSandbox", cri_run_request("late", 0), "sandbox");
	/* no request of CRI's: the runtime says so */
	struct ck_bytes odd = { 0 };
	assert_int_equal(ck_bytes_add(&odd, "\xff\xff", 2), 0);
	cri_do(&s->kubelet, "RunPodSandbox", &odd, NULL);
	assert_int_equal(cri_do_id(&s->kubelet, "StopPodSandbox", sandbox), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "RemovePodSandbox", sandbox), CK_GRPC_OK);
}

static bool same(const struct tap_call *a, const struct tap_call *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

/* Each call before crikeepd is one behind it, in every byte. What is left behind it are crikeepd's
 * own questions whether the runtime is there. */
static void compare(const struct tap *before, const struct tap *behind)
{
	struct tap_call *asked, *came;
	size_t n = tap_calls(before, &asked), m = tap_calls(behind, &came), at = 0, own = 0;
	for (size_t i = 0; i < m; i++) {
		if (at < n && same(&asked[at], &came[i]))
			at++;
		else if (!strcmp(came[i].path, "/runtime.v1.RuntimeService/Version"))
			own++;
		else
			fail_msg("%s differs:\n%.*s\nbefore:\n%.*s", came[i].path,
				 (int)came[i].len, (const char *)came[i].bytes,
				 at < n ? (int)asked[at].len : 0,
				 at < n ? (const char *)asked[at].bytes : "");
	}
	assert_int_equal(at, n);
	assert_int_equal(n + own, m);
	assert_true(n > 50);
	tap_calls_free(asked, n);
	tap_calls_free(came, m);
}

static void every_byte_of_every_call_is_what_was_sent(void **state)
{
	struct stage *s = *state;
	struct world *w = &s->w;
	struct tap before, behind;
	char front[WORLD_PATH + 8], back[WORLD_PATH + 8], runtime[WORLD_PATH];
	struct cri_call events;
	snprintf(front, sizeof(front), "%s/front", w->dir);
	snprintf(back, sizeof(back), "%s/back", w->dir);
	snprintf(runtime, sizeof(runtime), "%s", w->runtime);
	/* lists longer than a window, with annotations; errors with long texts */
	world_sim(w, "create=400ms,cancel=rollback,sandboxes=200,containers=200,padding=4KiB,"
		     "fail.start=1,error_text=3KiB");
	tap_start(&behind, back, runtime);
	snprintf(w->runtime, sizeof(w->runtime), "%.*s", WORLD_PATH - 1, back);
	world_daemon(w, shadow);
	tap_start(&before, front, w->cri);
	cri_open(&s->kubelet, front);
	struct cri_client other;
	cri_open(&other, front);
	cri_start(&other, &events, "GetContainerEvents", NULL, NULL);
	calls_of_all_kinds(s);
	cri_wait_messages(&events, 6);
	cri_cancel(&events);
	cri_end(&events);
	assert_int_equal(cri_do(&other, "Status", NULL, NULL), CK_GRPC_OK); /* after it */
	until_cut(w, "sandbox", 2);
	world_until(w, "rollback sandbox", 2, 10);
	cri_close(&other);
	cri_close(&s->kubelet);
	assert_int_equal(world_kill(&w->daemon, SIGTERM), 0);
	tap_stop(&before);
	tap_stop(&behind);
	compare(&before, &behind);
	tap_free(&before);
	tap_free(&behind);
}

/* ---- from one to the other ------------------------------------------------------------------- */

static void configure(const struct world *w, const char *text)
{
	FILE *file = fopen(w->config, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void restart(struct stage *s, const char *config)
{
	stage_leave(s);
	assert_int_equal(world_kill(&s->w.daemon, SIGTERM), 0);
	configure(&s->w, config);
	stage_again(s);
}

/* What full use had kept is shown, and the kubelet uses one of two. Full use finds that out. */
static void full_use_then_shadow_then_full_use(void **state)
{
	struct stage *s = *state;
	char late[POD_ID], container[POD_ID];
	stage_start(s, "create=1s", NULL);
	stage_keep(s, late);
	assert_int_equal(world_metric(&s->w, "crikeepd_shadow"), 0);
	restart(s, "shadow: true\n");
	assert_true(pod_shown(&s->kubelet, late));
	assert_int_equal(pod_create(&s->kubelet, late, "late", 0, "20S", container), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&s->kubelet, "StartContainer", container), CK_GRPC_OK);
	assert_int_equal(metric(&s->w, "creates", "container"), 1);
	restart(s, "shadow: false\ncache: {ttl: 1s}\n");
	assert_true(pod_shown(&s->kubelet, late));
	assert_true(container_shown(&s->kubelet, container));
	/* a whole life of what is kept */
	assert_int_equal(pod_run(&s->kubelet, "other", 0, "500m", NULL),
			 CK_GRPC_DEADLINE_EXCEEDED);
	world_until(&s->w, "remove sandbox", 1, 20);
	assert_true(pod_shown(&s->kubelet, late));
	assert_true(container_shown(&s->kubelet, container));
	assert_int_equal(world_count(&s->w, "remove container"), 0);
	restart(s, "shadow: true\n");
	assert_int_equal(pod_n(&s->kubelet), 1);
}

static void a_changed_key_needs_a_restart(void **state)
{
	struct stage *s = *state;
	stage_start(s, NULL, NULL);
	configure(&s->w, "shadow: true\n");
	kill(s->w.daemon, SIGHUP);
	world_until_logged(&s->w, "shadow: changed in the configuration, but needs a restart", 10);
	assert_int_equal(world_metric(&s->w, "crikeepd_shadow"), 0);
}

static void plugins_and_shadow_are_refused_together(void **state)
{
	static const char *const flags[] = { "--shadow", "--nri", NULL };
	struct stage *s = *state;
	world_sim(&s->w, NULL);
	assert_int_equal(world_daemon_fails(&s->w, flags), 2);
	assert_true(world_logged(&s->w, "--shadow: shadow: not with nri.enabled"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STAGE(a_slow_sandbox_is_counted_each_time_it_is_made_anew),
		ON_STAGE(late_containers_count_although_their_attempts_differ),
		ON_STAGE(twenty_pods_at_once_are_counted),
		ON_STAGE(a_repetition_that_the_runtime_refuses_saves_nothing),
		ON_STAGE(what_is_not_repeated_in_time_saves_nothing),
		ON_STAGE(nothing_is_kept_and_nothing_is_hidden),
		ON_STAGE(every_byte_of_every_call_is_what_was_sent),
		ON_REPEAT_STAGE(full_use_then_shadow_then_full_use),
		ON_STAGE(a_changed_key_needs_a_restart),
		ON_STAGE(plugins_and_shadow_are_refused_together),
	};
	return CK_TEST_MAIN(tests);
}
