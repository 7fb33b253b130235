/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plugins are told when a client's calls move a pod or container on: life.c, exits.c,
 * consult.c and nri.c between a runtime and a plugin that do what the test says. Their two stories
 * are written down as one, so that a test sees what came before what.
 */
#define CK_TEST_SECONDS 120
#include "src/base/fault.h"
#include "src/daemon/nri/describe.h"
#include "tests/flow/ask.h"
#include "tests/flow/cri-client.h"
#include "tests/flow/nri-peer.h"

struct stage {
	struct world *w;
	struct plugin *plugin;
	struct ck_connection *kubelet;
	size_t heard;     /* of the runtime's, in the story already */
	char story[4096]; /* "StopContainer c1; told StopContainer c1; ..." */
};

/* ---- the story ------------------------------------------------------------------------------- */

static void tell(struct stage *s, const char *what, const char *id)
{
	size_t len = strlen(s->story);
	snprintf(s->story + len, sizeof(s->story) - len, "%s%s%s%s", len ? "; " : "", what,
		 *id ? " " : "", id);
}

/* what the runtime heard since then, but for questions */
static void take_heard(struct stage *s)
{
	char line[256];
	while (s->heard < s->w->peer.heard_len) {
		const char *from = s->w->peer.heard + s->heard, *end = strchr(from, '\n');
		snprintf(line, sizeof(line), "%.*s", (int)(end - from), from);
		s->heard += (size_t)(end - from) + 1;
		if (!strncmp(line, "List", 4) || strstr(line, "Status") ||
		    !strcmp(line, "UpdatePodSandboxResources")) /* of no pod */
			continue;
		if (strstr(line, " timeout 0"))
			*strstr(line, " timeout 0") = '\0';
		tell(s, line, "");
	}
}

static void called(struct plugin *plugin, const struct plugin_heard *heard, void *userdata)
{
	static const char *const names[] = {
#define NAME(name, value, text) [value] = "told " text,
		CK_NRI_EVENTS(NAME)
#undef NAME
	};
	struct stage *s = userdata;
	(void)plugin;
	if (heard->call >= (int)CK_COUNT(names))
		return;
	take_heard(s);
	tell(s, names[heard->call], *heard->container ? heard->container : heard->pod);
}

static const char *story(struct stage *s)
{
	static char told[sizeof(s->story)];
	world_settle(s->w);
	take_heard(s);
	memcpy(told, s->story, sizeof(told));
	s->story[0] = '\0';
	return told;
}

/* ---- two containers in a pod, one runs; all are committed before the plugin comes ------------ */

static bool step_plugin(struct world *w)
{
	struct stage *s = w->userdata;
	return s->plugin && plugin_step(s->plugin);
}

static void on_commit(struct ck_conf *conf)
{
	conf->nri.enabled = true;
	conf->nri.request_timeout = 60 * CK_NS_PER_S; /* nothing here is late */
}

static void before_create(struct ck_conf *conf)
{
	on_commit(conf);
	conf->nri.adjust = CK_NRI_BEFORE_CREATE;
}

static struct stage *stage_new(void (*configure)(struct ck_conf *conf))
{
	struct stage *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	s->w = world_new_with(configure);
	s->w->userdata = s;
	s->w->step = step_plugin;
	struct peer_object *pod = peer_sandbox(&s->w->peer, "s1", "web");
	snprintf(pod->ns, sizeof(pod->ns), "ns"); /* as cri-client.h has it */
	world_commit(s->w, pod);
	world_commit(s->w, peer_container(&s->w->peer, "c1", "s1", "main"));
	world_commit(s->w, peer_container(&s->w->peer, "c2", "s1", "side"));
	peer_has(&s->w->peer, "c1")->condition = CK_CONDITION_RUNNING;
	ck_object_seen(s->w->daemon.cache, CK_CONTAINER, "c1", CK_CONDITION_RUNNING);
	assert_true(ask_connect(s->w, &s->kubelet));
	story(s);
	return s;
}

static void plugin_meets(struct stage *s)
{
	s->plugin->called = called;
	s->plugin->userdata = s;
	world_settle(s->w);
	while (!s->plugin->synchronized && !s->plugin->ended) { /* an object is asked for again */
		assert_true(sd_event_run(s->w->daemon.loop.event, UINT64_MAX) >= 0);
		world_settle(s->w);
	}
	assert_true(s->plugin->synchronized);
}

static void plugin_comes_again(struct stage *s)
{
	s->plugin = plugin_dial(s->w->daemon.conf.nri.socket, "10-a");
	assert_non_null(s->plugin);
	plugin_meets(s);
}

static void plugin_comes(struct stage *s)
{
	plugin_comes_again(s);
	assert_int_equal(s->plugin->items_n, 3);
	story(s);
}

static int set_up(void **state)
{
	struct stage *s = stage_new(on_commit);
	plugin_comes(s);
	*state = s;
	return 0;
}

static int set_up_before_create(void **state)
{
	struct stage *s = stage_new(before_create);
	plugin_comes(s);
	*state = s;
	return 0;
}

static int set_up_before_create_alone(void **state)
{
	*state = stage_new(before_create);
	return 0;
}

static int set_up_without_plugin(void **state)
{
	*state = stage_new(on_commit);
	return 0;
}

static int tear_down(void **state)
{
	struct stage *s = *state;
	if (s->plugin) {
		assert_string_equal(s->plugin->wrong, "");
		plugin_free(CK_TAKE(s->plugin));
	}
	ck_connection_free(s->kubelet);
	world_settle(s->w);
	world_free(s->w);
	free(s);
	return 0;
}

/* a call to its end. Its status */
static int call(struct stage *s, const char *rpc, const char *id)
{
	struct ask a;
	ask_id(s->w, ck_connection_h2(s->kubelet), &a, rpc, id, "100S");
	world_settle(s->w);
	int grpc = a.grpc;
	ask_end(&a);
	return grpc;
}

static void begin(struct stage *s, struct ask *a, const char *rpc, const char *id)
{
	ask_id(s->w, ck_connection_h2(s->kubelet), a, rpc, id, "100S");
	world_settle(s->w);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static void containers_are_stopped_then_the_pod_then_its_network(void **state)
{
	struct stage *s = *state;
	assert_int_equal(call(s, "StopPodSandbox", "s1"), CK_GRPC_OK);
	assert_string_equal(
		story(s),
		"StopContainer c1; told StopContainer c1; StopContainer c2; told StopContainer c2; "
		"told StopPodSandbox s1; StopPodSandbox s1");
	assert_int_equal(call(s, "StopPodSandbox", "s1"), CK_GRPC_OK); /* R23 */
	assert_string_equal(story(s), "StopPodSandbox s1");
	assert_int_equal(call(s, "RemovePodSandbox", "s1"), CK_GRPC_OK);
	assert_string_equal(story(s),
			    "StopPodSandbox s1; told RemoveContainer c1; RemoveContainer c1; told "
			    "RemoveContainer c2; "
			    "RemoveContainer c2; told RemovePodSandbox s1; RemovePodSandbox s1");
	assert_int_equal(call(s, "RemovePodSandbox", "s1"), CK_GRPC_OK);
	assert_null(strstr(story(s), "told")); /* R29 */
}

static void a_running_pod_that_is_removed_is_stopped_first(void **state)
{
	struct stage *s = *state;
	assert_int_equal(call(s, "RemovePodSandbox", "s1"), CK_GRPC_OK);
	assert_string_equal(
		story(s),
		"StopContainer c1; told StopContainer c1; StopContainer c2; told StopContainer c2; "
		"told StopPodSandbox s1; StopPodSandbox s1; "
		"told RemoveContainer c1; RemoveContainer c1; told RemoveContainer c2; "
		"RemoveContainer c2; "
		"told RemovePodSandbox s1; RemovePodSandbox s1");
}

static void without_a_plugin_that_listens_nothing_is_asked_for(void **state)
{
	struct stage *s = *state;
	unsigned lists = peer_heard(&s->w->peer, "ListContainers s1");
	assert_int_equal(call(s, "StopPodSandbox", "s1"), CK_GRPC_OK);
	assert_string_equal(story(s), "StopPodSandbox s1");
	assert_int_equal(call(s, "StartContainer", "c1"), CK_GRPC_OK);
	assert_int_equal(call(s, "RemoveContainer", "c1"), CK_GRPC_OK);
	assert_string_equal(story(s), "StartContainer c1; RemoveContainer c1");
	assert_int_equal(peer_heard(&s->w->peer, "ListContainers s1"), lists);
}

static void plugins_errors_fail_no_end(void **state)
{
	struct stage *s = *state;
	for (int event = CK_NRI_STOP_POD_SANDBOX; event < CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT;
	     event++)
		plugin_fails(s->plugin, event, CK_GRPC_UNKNOWN, "no");
	assert_int_equal(call(s, "StopContainer", "c1"), CK_GRPC_OK);
	assert_string_equal(story(s), "StopContainer c1; told StopContainer c1");
	assert_int_equal(call(s, "RemovePodSandbox", "s1"), CK_GRPC_OK);
	assert_true(strstr(story(s), "told RemovePodSandbox s1; RemovePodSandbox s1") != NULL);
}

static void what_the_runtime_cannot_stop_is_not_told(void **state)
{
	struct stage *s = *state;
	peer_plan(&s->w->peer, "StopContainer")->grpc = CK_GRPC_INTERNAL;
	assert_int_equal(call(s, "StopPodSandbox", "s1"), CK_GRPC_INTERNAL);
	assert_string_equal(story(s), "StopContainer c1");
	assert_int_equal(call(s, "StopContainer", "c1"), CK_GRPC_INTERNAL);
	assert_string_equal(story(s), "StopContainer c1");
	peer_plan(&s->w->peer, "StopContainer")->grpc = 0;
	peer_plan(&s->w->peer, "StopPodSandbox")->grpc = CK_GRPC_INTERNAL;
	assert_int_equal(call(s, "StopPodSandbox", "s1"), CK_GRPC_INTERNAL);
	assert_string_equal(
		story(s),
		"StopContainer c1; told StopContainer c1; StopContainer c2; told StopContainer c2; "
		"told StopPodSandbox s1; StopPodSandbox s1");
	peer_plan(&s->w->peer, "StopPodSandbox")->grpc = 0;
	assert_int_equal(call(s, "StopPodSandbox", "s1"), CK_GRPC_OK); /* R24 */
	assert_string_equal(story(s), "StopPodSandbox s1");
	peer_plan(&s->w->peer, "ListContainers")->grpc = CK_GRPC_UNAVAILABLE;
	assert_int_equal(call(s, "RemovePodSandbox", "s1"), CK_GRPC_UNAVAILABLE);
	peer_plan(&s->w->peer, "ListContainers")->grpc = 0;
	peer_plan(&s->w->peer, "ListContainers")->garble = true;
	assert_int_equal(call(s, "RemovePodSandbox", "s1"), CK_GRPC_INTERNAL);
	assert_string_equal(story(s), "");
}

static void an_end_goes_on_when_its_client_has_gone(void **state)
{
	struct stage *s = *state;
	struct ask a;
	plugin_rule(s->plugin, CK_NRI_STOP_CONTAINER, PLUGIN_HOLDS, 1);
	begin(s, &a, "RemovePodSandbox", "s1");
	assert_string_equal(story(s), "StopContainer c1; told StopContainer c1");
	ask_end(&a); /* RST_STREAM */
	assert_string_equal(story(s), "");
	plugin_release(s->plugin);
	assert_string_equal(story(s), "StopContainer c2; told StopContainer c2; told "
				      "StopPodSandbox s1; StopPodSandbox s1; "
				      "told RemoveContainer c1; RemoveContainer c1; told "
				      "RemoveContainer c2; RemoveContainer c2; "
				      "told RemovePodSandbox s1; RemovePodSandbox s1");
	assert_null(s->w->daemon.lives);
}

static void two_ends_of_one_pod_go_one_after_the_other(void **state)
{
	struct stage *s = *state;
	struct ask first, second, third;
	plugin_rule(s->plugin, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 1);
	begin(s, &first, "StopPodSandbox", "s1");
	assert_non_null(strstr(story(s), "told StopPodSandbox s1"));
	begin(s, &second, "StopPodSandbox", "s1");
	begin(s, &third, "RemovePodSandbox", "s1");
	assert_string_equal(story(s), ""); /* the network stands while plugins are told (R19) */
	assert_int_equal(first.grpc, -1);
	plugin_release(s->plugin);
	/* the second joined the first; a removal stops the pod by itself */
	assert_string_equal(story(s), "StopPodSandbox s1; StopPodSandbox s1; "
				      "told RemoveContainer c1; RemoveContainer c1; told "
				      "RemoveContainer c2; RemoveContainer c2; "
				      "told RemovePodSandbox s1; RemovePodSandbox s1");
	assert_int_equal(first.grpc, CK_GRPC_OK);
	assert_int_equal(second.grpc, CK_GRPC_OK);
	assert_int_equal(third.grpc, CK_GRPC_OK);
	ask_end(&first);
	ask_end(&second);
	ask_end(&third);
}

/* ---- containers ------------------------------------------------------------------------------ */

static void a_start_is_agreed_to_and_told(void **state)
{
	struct stage *s = *state;
	struct ask a;
	plugin_rule(s->plugin, CK_NRI_POST_START_CONTAINER, PLUGIN_HOLDS, 1);
	begin(s, &a, "StartContainer", "c2");
	assert_string_equal(
		story(s), "told StartContainer c2; StartContainer c2; told PostStartContainer c2");
	assert_int_equal(a.grpc, -1);
	plugin_release(s->plugin);
	world_settle(s->w);
	assert_int_equal(a.grpc, CK_GRPC_OK);
	assert_int_equal(a.messages, 1);
	ask_end(&a);
}

static void a_refused_start_is_not_passed_on(void **state)
{
	struct stage *s = *state;
	plugin_fails(s->plugin, CK_NRI_START_CONTAINER, CK_GRPC_INTERNAL, "not today");
	assert_int_equal(call(s, "StartContainer", "c2"), CK_GRPC_UNKNOWN);
	assert_string_equal(story(s), "told StartContainer c2");
	plugin_rule(s->plugin, CK_NRI_START_CONTAINER, PLUGIN_AGREES, 0);
	peer_plan(&s->w->peer, "StartContainer")->grpc = CK_GRPC_INTERNAL;
	assert_int_equal(call(s, "StartContainer", "c2"), CK_GRPC_INTERNAL);
	assert_string_equal(story(s), "told StartContainer c2; StartContainer c2");
}

static void a_start_goes_on_when_its_caller_leaves(void **state)
{
	struct stage *s = *state;
	struct ask a;
	plugin_rule(s->plugin, CK_NRI_START_CONTAINER, PLUGIN_HOLDS, 1);
	begin(s, &a, "StartContainer", "c2");
	ask_end(&a);
	world_settle(s->w);
	assert_string_equal(story(s), "told StartContainer c2");
	plugin_release(s->plugin);
	assert_string_equal(story(s), "StartContainer c2; told PostStartContainer c2");
	assert_null(s->w->daemon.starts);
}

static void plugins_hear_once_of_a_start_that_others_join(void **state)
{
	struct stage *s = *state;
	struct ask first, second;
	plugin_rule(s->plugin, CK_NRI_START_CONTAINER, PLUGIN_HOLDS, 1);
	begin(s, &first, "StartContainer", "c2");
	begin(s, &second, "StartContainer", "c2");
	plugin_release(s->plugin);
	assert_string_equal(
		story(s), "told StartContainer c2; StartContainer c2; told PostStartContainer c2");
	world_settle(s->w);
	assert_int_equal(first.grpc, CK_GRPC_OK);
	assert_int_equal(second.grpc, CK_GRPC_OK);
	ask_end(&first);
	ask_end(&second);
}

static void a_stop_ends_a_start_that_plugins_are_asked_about(void **state)
{
	struct stage *s = *state;
	struct ask start, stop;
	plugin_rule(s->plugin, CK_NRI_START_CONTAINER, PLUGIN_HOLDS, 1);
	begin(s, &start, "StartContainer", "c2");
	begin(s, &stop, "StopContainer", "c2");
	assert_string_equal(story(s), "told StartContainer c2; StopContainer c2");
	assert_int_equal(start.grpc, CK_GRPC_ABORTED);
	plugin_release(s->plugin);
	assert_string_equal(story(s), "told StopContainer c2");
	assert_int_equal(stop.grpc, CK_GRPC_OK);
	assert_null(s->w->daemon.starts);
	ask_end(&start);
	ask_end(&stop);
}

static void a_removal_is_told_as_an_end_first(void **state)
{
	struct stage *s = *state;
	assert_int_equal(call(s, "RemoveContainer", "c1"), CK_GRPC_OK);
	assert_string_equal(story(s), "StopContainer c1; told StopContainer c1; told "
				      "RemoveContainer c1; RemoveContainer c1");
	assert_int_equal(call(s, "StopContainer", "c2"), CK_GRPC_OK);
	assert_int_equal(call(s, "RemoveContainer", "c2"), CK_GRPC_OK);
	assert_string_equal(story(s), "StopContainer c2; told StopContainer c2; told "
				      "RemoveContainer c2; RemoveContainer c2");
}

static void an_end_that_is_seen_is_told_once(void **state)
{
	struct stage *s = *state;
	peer_has(&s->w->peer, "c1")->condition = CK_CONDITION_DEAD;
	assert_int_equal(call(s, "ContainerStatus", "c1"), CK_GRPC_OK);
	assert_string_equal(story(s), "told StopContainer c1");
	assert_int_equal(call(s, "ContainerStatus", "c1"), CK_GRPC_OK);
	assert_int_equal(call(s, "StopContainer", "c1"), CK_GRPC_OK);
	assert_string_equal(story(s), "StopContainer c1");
	peer_has(&s->w->peer, "c2")->condition = CK_CONDITION_DEAD;
	struct ask a;
	struct ck_bytes all = { 0 };
	ask_begin(s->w, ck_connection_h2(s->kubelet), &a, "ListContainers", &all, NULL);
	assert_string_equal(story(s), "told StopContainer c2");
	ask_end(&a);
}

static void an_end_nobody_asks_about_is_looked_for(void **state)
{
	struct stage *s = *state;
	peer_has(&s->w->peer, "c1")->condition = CK_CONDITION_DEAD;
	for (int i = 0; !plugin_count(s->plugin, CK_NRI_STOP_CONTAINER, "c1") && i < 100; i++) {
		assert_true(sd_event_run(s->w->daemon.loop.event, 200 * 1000) >= 0);
		world_settle(s->w);
	}
	assert_int_equal(plugin_count(s->plugin, CK_NRI_STOP_CONTAINER, "c1"), 1);
}

/* ---- updates --------------------------------------------------------------------------------- */

static void number_in(struct plugin_buffer *to, uint32_t field, uint64_t value)
{
	struct plugin_buffer inside = { 0 };
	plugin_number(&inside, 1, value);
	plugin_bytes(to, field, inside.p, inside.len);
	plugin_bytes_free(&inside);
}

/* UpdateContainerResponse, CreateContainerResponse or UpdateContainersRequest with one
 * ContainerUpdate: cpu shares of @id */
static void an_update(struct plugin_buffer *to, uint32_t field, const char *id, uint64_t shares)
{
	struct plugin_buffer cpu = { 0 }, resources = { 0 }, linux_part = { 0 }, update = { 0 };
	number_in(&cpu, 1, shares);
	plugin_bytes(&resources, 2, cpu.p, cpu.len);
	plugin_bytes(&linux_part, 1, resources.p, resources.len);
	plugin_text(&update, 1, id);
	plugin_bytes(&update, 2, linux_part.p, linux_part.len);
	plugin_bytes(to, field, update.p, update.len);
	plugin_bytes_free(&cpu);
	plugin_bytes_free(&resources);
	plugin_bytes_free(&linux_part);
	plugin_bytes_free(&update);
}

/* UpdateContainerResources: period 1000, shares 100, oom_score_adj 5 */
static void update(struct stage *s, struct ask *a, const char *id)
{
	struct ck_bytes request = { 0 }, resources = { 0 };
	ck_bytes_field_text(&request, 1, id);
	ck_bytes_field_number(&resources, 1, 1000);
	ck_bytes_field_number(&resources, 3, 100);
	ck_bytes_field_number(&resources, 5, 5);
	ck_bytes_field(&request, 2, resources.p, resources.len);
	ck_bytes_field_text(&request, 99, "new in CRI");
	ck_bytes_free(&resources);
	ask_begin(s->w, ck_connection_h2(s->kubelet), a, "UpdateContainerResources", &request,
		  "100S");
	world_settle(s->w);
}

static void an_update_goes_out_as_plugins_want_it(void **state)
{
	struct stage *s = *state;
	struct plugin_buffer reply = { 0 };
	struct ask a;
	an_update(&reply, 1, "c1", 222);
	plugin_replies(s->plugin, CK_NRI_UPDATE_CONTAINER, reply.p, reply.len);
	peer_plan(&s->w->peer, "UpdateContainerResources")->hold = true;
	update(s, &a, "c1");
	const struct ck_bytes *sent = peer_request(&s->w->peer, "UpdateContainerResources");
	assert_non_null(sent);
	assert_string_equal(cri_text(sent, "1"), "c1");
	assert_int_equal(cri_number(sent, "2.1"), 1000);
	assert_int_equal(cri_number(sent, "2.3"), 222);
	assert_int_equal(cri_number(sent, "2.5"), 5);
	assert_string_equal(cri_text(sent, "99"), "new in CRI");
	peer_release(&s->w->peer, "UpdateContainerResources");
	assert_string_equal(story(s), "told UpdateContainer c1; UpdateContainerResources c1; told "
				      "PostUpdateContainer c1");
	assert_int_equal(a.grpc, CK_GRPC_OK);
	ask_end(&a);
	plugin_bytes_free(&reply);
}

static void a_refused_update_is_not_passed_on(void **state)
{
	struct stage *s = *state;
	struct ask a;
	plugin_fails(s->plugin, CK_NRI_UPDATE_CONTAINER, CK_GRPC_UNKNOWN, "no");
	update(s, &a, "c1");
	assert_int_equal(a.grpc, CK_GRPC_UNKNOWN);
	ask_end(&a);
	plugin_fails(s->plugin, CK_NRI_UPDATE_POD_SANDBOX, CK_GRPC_UNKNOWN, "no");
	assert_int_equal(call(s, "UpdatePodSandboxResources", "s1"), CK_GRPC_UNKNOWN);
	assert_string_equal(story(s), "told UpdateContainer c1; told UpdatePodSandbox s1");
	plugin_rule(s->plugin, CK_NRI_UPDATE_POD_SANDBOX, PLUGIN_AGREES, 0);
	assert_int_equal(call(s, "UpdatePodSandboxResources", "s1"), CK_GRPC_OK);
	assert_string_equal(story(s), "told UpdatePodSandbox s1; UpdatePodSandboxResources s1; "
				      "told PostUpdatePodSandbox s1");
}

/* it is found out once, before plugins hear of the first */
static void a_runtime_without_pod_updates_tells_plugins_of_none(void **state)
{
	struct stage *s = *state;
	peer_plan(&s->w->peer, "UpdatePodSandboxResources")->grpc = CK_GRPC_UNAVAILABLE;
	assert_int_equal(call(s, "UpdatePodSandboxResources", "s1"), CK_GRPC_UNAVAILABLE);
	assert_string_equal(story(s), "");
	peer_plan(&s->w->peer, "UpdatePodSandboxResources")->grpc = CK_GRPC_UNIMPLEMENTED;
	assert_int_equal(call(s, "UpdatePodSandboxResources", "s1"), CK_GRPC_UNIMPLEMENTED);
	assert_int_equal(call(s, "UpdatePodSandboxResources", "s1"), CK_GRPC_UNIMPLEMENTED);
	assert_string_equal(story(s), "UpdatePodSandboxResources s1; UpdatePodSandboxResources s1");
	/* another runtime comes, which has it */
	peer_plan(&s->w->peer, "UpdatePodSandboxResources")->grpc = 0;
	ck_plugging_introduce(&s->w->daemon);
	assert_int_equal(call(s, "UpdatePodSandboxResources", "s1"), CK_GRPC_OK);
	assert_string_equal(story(s), "told UpdatePodSandbox s1; UpdatePodSandboxResources s1; "
				      "told PostUpdatePodSandbox s1");
}

static void a_plugins_own_update_and_eviction_go_to_the_runtime(void **state)
{
	struct stage *s = *state;
	struct plugin_buffer request = { 0 }, eviction = { 0 };
	an_update(&request, 1, "c1", 333);
	plugin_text(&eviction, 1, "c2");
	plugin_text(&eviction, 2, "too loud");
	plugin_bytes(&request, 2, eviction.p, eviction.len);
	peer_plan(&s->w->peer, "UpdateContainerResources")->hold = true;
	uint32_t stream = plugin_ask(s->plugin, PLUGIN_RUNTIME_SERVICE, "UpdateContainers",
				     request.p, request.len);
	world_settle(s->w);
	const struct ck_bytes *sent = peer_request(&s->w->peer, "UpdateContainerResources");
	assert_non_null(sent);
	assert_int_equal(cri_number(sent, "2.3"), 333);
	peer_release(&s->w->peer, "UpdateContainerResources");
	const char *told = story(s);
	assert_non_null(strstr(told, "UpdateContainerResources c1"));
	assert_non_null(strstr(told, "StopContainer c2; told StopContainer c2"));
	/* with a grace */
	assert_int_equal(peer_heard(&s->w->peer, "StopContainer c2 timeout 0"), 0);
	assert_non_null(plugin_answer_to(s->plugin, stream));
	assert_int_equal(plugin_answer_to(s->plugin, stream)->code, 0);
	plugin_bytes_free(&request);
	plugin_bytes_free(&eviction);
}

/* ---- containers that plugins change ---------------------------------------------------------- */

static void create(struct stage *s, struct ask *a, const char *name, unsigned attempt)
{
	struct ck_bytes request = cri_create_request("s1", "web", name, attempt);
	ask_begin(s->w, ck_connection_h2(s->kubelet), a, "CreateContainer", &request, "100S");
	world_settle(s->w);
}

/* CreateContainerResponse: an annotation, and with @rlimit what CRI cannot express */
static void an_adjustment(struct plugin_buffer *reply, bool rlimit)
{
	struct plugin_buffer pair = { 0 }, adjust = { 0 }, limit = { 0 };
	plugin_text(&pair, 1, "seen-by");
	plugin_text(&pair, 2, "10-a");
	plugin_bytes(&adjust, 2, pair.p, pair.len);
	plugin_text(&limit, 1, "RLIMIT_NOFILE");
	plugin_number(&limit, 2, 7);
	plugin_number(&limit, 3, 7);
	if (rlimit)
		plugin_bytes(&adjust, 7, limit.p, limit.len);
	plugin_bytes(reply, 1, adjust.p, adjust.len);
	plugin_bytes_free(&pair);
	plugin_bytes_free(&limit);
	plugin_bytes_free(&adjust);
}

/* the value of an annotation in a CreateContainerRequest; "": none */
static const char *annotation(const struct ck_bytes *request, const char *key)
{
	for (unsigned i = 0; i < cri_count(request, "2.10"); i++) {
		char path[32];
		snprintf(path, sizeof(path), "2.10#%u.1", i);
		if (strcmp(cri_text(request, path), key) != 0)
			continue;
		snprintf(path, sizeof(path), "2.10#%u.2", i);
		return cri_text(request, path);
	}
	return "";
}

static void what_plugins_change_is_in_the_request(void **state)
{
	struct stage *s = *state;
	struct plugin_buffer reply = { 0 };
	struct ask a;
	an_adjustment(&reply, false);
	plugin_replies(s->plugin, CK_NRI_CREATE_CONTAINER, reply.p, reply.len);
	peer_plan(&s->w->peer, "CreateContainer")->hold = true;
	create(s, &a, "new", 0);
	const struct ck_bytes *sent = peer_request(&s->w->peer, "CreateContainer");
	const struct plugin_heard *asked = plugin_last(s->plugin, CK_NRI_CREATE_CONTAINER);
	assert_non_null(sent);
	assert_non_null(asked);
	assert_string_equal(annotation(sent, "seen-by"), "10-a");
	assert_int_equal(strlen(asked->container), CK_ALIAS_LEN);
	assert_string_equal(annotation(sent, CK_ALIAS_ANNOTATION), asked->container);
	peer_release(&s->w->peer, "CreateContainer");
	world_settle(s->w);
	assert_int_equal(a.grpc, CK_GRPC_OK);
	assert_int_equal(plugin_count(s->plugin, CK_NRI_CREATE_CONTAINER, NULL), 1);
	assert_int_equal(plugin_count(s->plugin, CK_NRI_POST_CREATE_CONTAINER, NULL), 1);
	ask_end(&a);
	plugin_bytes_free(&reply);
}

/* before-create, and no plugin is asked: the request is the kubelet's own, and plugins know the
 * container by its id */
static void without_anybody_to_ask_there_is_no_other_id(void **state)
{
	struct stage *s = *state;
	struct ask a;
	peer_plan(&s->w->peer, "CreateContainer")->hold = true;
	create(s, &a, "alone", 0);
	const struct ck_bytes *sent = peer_request(&s->w->peer, "CreateContainer");
	assert_non_null(sent);
	assert_null(memmem(sent->p, sent->len, "crikeep.io", 10));
	peer_release(&s->w->peer, "CreateContainer");
	world_settle(s->w);
	assert_int_equal(a.grpc, CK_GRPC_OK);
	ask_end(&a);
	s->plugin = plugin_dial(s->w->daemon.conf.nri.socket, "10-a");
	assert_non_null(s->plugin);
	s->plugin->mask = CK_NRI_BIT(START_CONTAINER);
	plugin_meets(s);
	peer_plan(&s->w->peer, "CreateContainer")->hold = true;
	create(s, &a, "new", 0);
	sent = peer_request(&s->w->peer, "CreateContainer");
	assert_non_null(sent);
	assert_null(memmem(sent->p, sent->len, "crikeep.io", 10));
	peer_release(&s->w->peer, "CreateContainer");
	world_settle(s->w);
	assert_int_equal(a.grpc, CK_GRPC_OK);
	ask_end(&a);
	const char *id = s->w->peer.objects[s->w->peer.objects_n - 1].id;
	assert_int_equal(call(s, "StartContainer", id), CK_GRPC_OK);
	assert_string_equal(plugin_last(s->plugin, CK_NRI_START_CONTAINER)->container, id);
}

static void a_container_plugins_refuse_is_not_made(void **state)
{
	struct stage *s = *state;
	struct plugin_buffer reply = { 0 };
	struct ask a;
	plugin_fails(s->plugin, CK_NRI_CREATE_CONTAINER, CK_GRPC_UNKNOWN, "no");
	create(s, &a, "new", 0);
	assert_int_equal(a.grpc, CK_GRPC_UNKNOWN);
	ask_end(&a);
	an_adjustment(&reply, true);
	plugin_rule(s->plugin, CK_NRI_CREATE_CONTAINER, PLUGIN_AGREES, 0);
	plugin_replies(s->plugin, CK_NRI_CREATE_CONTAINER, reply.p, reply.len);
	create(s, &a, "new", 0);
	assert_int_equal(a.grpc, CK_GRPC_INVALID_ARGUMENT); /* what CRI cannot express */
	ask_end(&a);
	/* the runtime has heard nothing of it */
	assert_null(strstr(story(s), "; CreateContainer"));
	assert_int_equal(s->w->peer.made, 0);
	/* it is undone (H7) */
	assert_int_equal(plugin_count(s->plugin, CK_NRI_STOP_CONTAINER, NULL), 2);
	assert_int_equal(plugin_count(s->plugin, CK_NRI_REMOVE_CONTAINER, NULL), 2);
	assert_int_equal(s->w->daemon.metrics.nri_refused[CK_CONTAINER], 2);
	plugin_bytes_free(&reply);
}

static void a_creation_whose_client_goes_is_asked_about_and_made(void **state)
{
	struct stage *s = *state;
	struct ask a;
	plugin_rule(s->plugin, CK_NRI_CREATE_CONTAINER, PLUGIN_HOLDS, 1);
	create(s, &a, "new", 0);
	ask_end(&a);
	world_settle(s->w);
	plugin_release(s->plugin);
	world_settle(s->w);
	assert_int_equal(s->w->peer.made, 1); /* kept */
	create(s, &a, "new", 0);
	assert_int_equal(a.grpc, CK_GRPC_OK);
	ask_end(&a);
	assert_int_equal(s->w->peer.made, 1);
	assert_int_equal(plugin_count(s->plugin, CK_NRI_CREATE_CONTAINER, NULL), 1);
}

static void a_creation_superseded_while_plugins_are_asked_is_not_made(void **state)
{
	struct stage *s = *state;
	struct ask old, new;
	plugin_rule(s->plugin, CK_NRI_CREATE_CONTAINER, PLUGIN_HOLDS, 1);
	create(s, &old, "new", 0);
	create(s, &new, "new", 1);
	assert_int_equal(old.grpc, CK_GRPC_ABORTED);
	plugin_release(s->plugin);
	world_settle(s->w);
	assert_int_equal(s->w->peer.made, 1);
	assert_int_equal(new.grpc, CK_GRPC_OK);
	assert_null(s->w->daemon.consulted);
	ask_end(&old);
	ask_end(&new);
}

/* it was not begun, so there is nothing to wait for */
static void a_pod_is_removed_while_plugins_are_asked_about_a_container(void **state)
{
	struct stage *s = *state;
	struct ask made;
	plugin_rule(s->plugin, CK_NRI_CREATE_CONTAINER, PLUGIN_HOLDS, 1);
	create(s, &made, "new", 0);
	struct ask removed;
	begin(s, &removed, "RemovePodSandbox", "s1");
	assert_int_equal(made.grpc, CK_GRPC_ABORTED);
	plugin_release(s->plugin);
	world_settle(s->w);
	assert_int_equal(removed.grpc, CK_GRPC_OK);
	assert_int_equal(s->w->peer.made, 0);
	const char *told = strstr(story(s), "told CreateContainer ");
	assert_non_null(told);
	char alias[CK_ALIAS_LEN + 1];
	snprintf(alias, sizeof(alias), "%s", told + strlen("told CreateContainer "));
	assert_int_equal(plugin_count(s->plugin, CK_NRI_STOP_CONTAINER, alias), 1);
	assert_int_equal(plugin_count(s->plugin, CK_NRI_REMOVE_CONTAINER, alias), 1);
	ask_end(&made);
	ask_end(&removed);
}

static void a_creation_begun_again_is_the_same(void **state)
{
	struct stage *s = *state;
	struct plugin_buffer reply = { 0 };
	struct ask a;
	an_adjustment(&reply, false);
	plugin_replies(s->plugin, CK_NRI_CREATE_CONTAINER, reply.p, reply.len);
	peer_plan(&s->w->peer, "CreateContainer")->hold = true;
	create(s, &a, "new", 0);
	char alias[CK_ALIAS_LEN + 1];
	snprintf(alias, sizeof(alias), "%s",
		 annotation(peer_request(&s->w->peer, "CreateContainer"), CK_ALIAS_ANNOTATION));
	peer_hang_up(&s->w->peer); /* nobody knows how it ends (K8) */
	world_connect(s->w);
	for (int i = 0; !peer_request(&s->w->peer, "CreateContainer") && i < 30; i++)
		/* absent from lists for so long, it is asked for once again */
		world_advance(s->w, CK_NS_PER_S);
	const struct ck_bytes *sent = peer_request(&s->w->peer, "CreateContainer");
	assert_non_null(sent);
	assert_string_equal(annotation(sent, CK_ALIAS_ANNOTATION), alias);
	assert_string_equal(annotation(sent, "seen-by"), "10-a");
	assert_int_equal(plugin_count(s->plugin, CK_NRI_CREATE_CONTAINER, NULL), 1);
	peer_release(&s->w->peer, "CreateContainer");
	world_settle(s->w);
	assert_int_equal(a.grpc, CK_GRPC_OK);
	ask_end(&a);
	plugin_bytes_free(&reply);
}

static void on_commit_a_change_comes_too_late_and_the_next_fails_early(void **state)
{
	struct stage *s = *state;
	struct plugin_buffer reply = { 0 };
	struct ask a;
	an_adjustment(&reply, false);
	plugin_replies(s->plugin, CK_NRI_CREATE_CONTAINER, reply.p, reply.len);
	create(s, &a, "new", 0);
	assert_int_equal(a.grpc, CK_GRPC_UNKNOWN);
	ask_end(&a);
	assert_int_equal(s->w->peer.made, 1);
	create(s, &a, "other", 0);
	assert_int_equal(a.grpc, CK_GRPC_FAILED_PRECONDITION);
	ask_end(&a);
	assert_int_equal(s->w->peer.made, 1);
	assert_int_equal(s->w->daemon.metrics.nri_refused[CK_CONTAINER], 2);
	plugin_bytes_free(&reply);
}

/* ---- the end, and faults --------------------------------------------------------------------- */

static void the_daemon_ends_whatever_is_under_way(void **state)
{
	struct stage *s = *state;
	struct ask asks[4];
	plugin_rule(s->plugin, CK_NRI_STOP_CONTAINER, PLUGIN_HOLDS, 0);
	plugin_rule(s->plugin, CK_NRI_START_CONTAINER, PLUGIN_HOLDS, 0);
	plugin_rule(s->plugin, CK_NRI_CREATE_CONTAINER, PLUGIN_HOLDS, 0);
	peer_plan(&s->w->peer, "RemoveContainer")->hold = true;
	begin(s, &asks[0], "StopPodSandbox", "s1");
	begin(s, &asks[1], "StopPodSandbox", "s1");
	begin(s, &asks[2], "StartContainer", "c2");
	begin(s, &asks[3], "RemoveContainer", "c1");
	for (size_t i = 0; i < CK_COUNT(asks); i++) {
		assert_int_equal(asks[i].grpc, -1);
		ask_end(&asks[i]);
	}
	/* tear_down() ends it */
}

/* any one allocation of ours fails: the client hears something, nobody is told twice, and a repeat
 * succeeds */
static void no_memory_leaves_nothing_behind(void **state)
{
	(void)state;
	bool hit = true;
	unsigned step = 1 + 900 / (unsigned)ck_test_rounds(100); /* each is a world of its own */
	for (unsigned nth = 1; hit; nth += step) {
		struct stage *s = stage_new(on_commit);
		struct ask a;
		plugin_comes(s);
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		begin(s, &a, "RemovePodSandbox", "s1");
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		world_settle(s->w);
		ask_end(&a);
		if (!s->kubelet)
			assert_true(ask_connect(s->w, &s->kubelet));
		world_connect(s->w);
		call(s, "RemovePodSandbox", "s1");
		assert_null(peer_has(&s->w->peer, "s1"));
		assert_true(plugin_count(s->plugin, CK_NRI_STOP_POD_SANDBOX, "s1") <= 1);
		assert_true(plugin_count(s->plugin, CK_NRI_REMOVE_POD_SANDBOX, "s1") <= 1);
		void *stage = s;
		tear_down(&stage);
	}
}

static void no_memory_while_plugins_are_asked_is_survived(void **state)
{
	(void)state;
	bool hit = true;
	unsigned step = 1 + 900 / (unsigned)ck_test_rounds(100);
	struct plugin_buffer reply = { 0 };
	an_adjustment(&reply, false);
	for (unsigned nth = 1; hit; nth += step) {
		struct stage *s = stage_new(before_create);
		struct ask a;
		plugin_comes(s);
		plugin_replies(s->plugin, CK_NRI_CREATE_CONTAINER, reply.p, reply.len);
		struct ck_bytes request = cri_create_request("s1", "web", "new", 0);
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		ask_begin(s->w, ck_connection_h2(s->kubelet), &a, "CreateContainer", &request,
			  "100S");
		world_settle(s->w);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		world_settle(s->w);
		int grpc = a.grpc;
		ask_end(&a);
		world_connect(s->w);
		if (s->plugin->ended) { /* it was what had to go */
			plugin_free(CK_TAKE(s->plugin));
			plugin_comes_again(s);
		}
		if (!s->kubelet) /* its connection may have had to go, too, or goes only now */
			assert_true(ask_connect(s->w, &s->kubelet));
		create(s, &a, "new", 1); /* the kubelet's next try */
		for (int i = 0; a.grpc == -1 && i < 40; i++) {
			/* to plugins, by the real clock */
			assert_true(sd_event_run(s->w->daemon.loop.event, 100 * 1000) >= 0);
			world_advance(s->w, CK_NS_PER_S);
		}
		assert_true(grpc == CK_GRPC_OK || a.grpc == CK_GRPC_OK);
		ask_end(&a);
		void *stage = s;
		tear_down(&stage);
	}
	plugin_bytes_free(&reply);
}

#define TEST(name)        cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_BEFORE(name) cmocka_unit_test_setup_teardown(name, set_up_before_create, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(containers_are_stopped_then_the_pod_then_its_network),
		TEST(a_running_pod_that_is_removed_is_stopped_first),
		cmocka_unit_test_setup_teardown(without_a_plugin_that_listens_nothing_is_asked_for,
						set_up_without_plugin, tear_down),
		TEST(plugins_errors_fail_no_end),
		TEST(what_the_runtime_cannot_stop_is_not_told),
		TEST(an_end_goes_on_when_its_client_has_gone),
		TEST(two_ends_of_one_pod_go_one_after_the_other),
		TEST(a_start_is_agreed_to_and_told),
		TEST(a_refused_start_is_not_passed_on),
		TEST(a_start_goes_on_when_its_caller_leaves),
		TEST(plugins_hear_once_of_a_start_that_others_join),
		TEST(a_stop_ends_a_start_that_plugins_are_asked_about),
		TEST(a_removal_is_told_as_an_end_first),
		TEST(an_end_that_is_seen_is_told_once),
		TEST(an_end_nobody_asks_about_is_looked_for),
		TEST(an_update_goes_out_as_plugins_want_it),
		TEST(a_refused_update_is_not_passed_on),
		TEST(a_runtime_without_pod_updates_tells_plugins_of_none),
		TEST(a_plugins_own_update_and_eviction_go_to_the_runtime),
		TEST_BEFORE(what_plugins_change_is_in_the_request),
		TEST_BEFORE(a_container_plugins_refuse_is_not_made),
		TEST_BEFORE(a_creation_whose_client_goes_is_asked_about_and_made),
		TEST_BEFORE(a_creation_superseded_while_plugins_are_asked_is_not_made),
		TEST_BEFORE(a_pod_is_removed_while_plugins_are_asked_about_a_container),
		TEST_BEFORE(a_creation_begun_again_is_the_same),
		cmocka_unit_test_setup_teardown(without_anybody_to_ask_there_is_no_other_id,
						set_up_before_create_alone, tear_down),
		TEST(on_commit_a_change_comes_too_late_and_the_next_fails_early),
		TEST(the_daemon_ends_whatever_is_under_way),
		cmocka_unit_test(no_memory_leaves_nothing_behind),
		cmocka_unit_test(no_memory_while_plugins_are_asked_is_survived),
	};
	return CK_TEST_MAIN(tests);
}
