/* SPDX-License-Identifier: Apache-2.0 */
/* How events go round: who hears of what, in which order, how long is waited for whom, and what
 * plugins ask for meanwhile. */
#define CK_TEST_SECONDS 120
#include <poll.h>
#include <string.h>

#include "tests/flow/nri-world.h"

#define S  CK_NS_PER_S
#define MS CK_NS_PER_MS

/* the host's own: what is wrong with the wire is wrong in every test */
static void finish(struct nw *w)
{
	for (size_t i = 0; i < w->plugins_n; i++)
		if (w->plugins[i]->wrong[0])
			fail_msg("%s-%s: %s", w->plugins[i]->index, w->plugins[i]->base,
				 w->plugins[i]->wrong);
	nw_free(w);
}

/* ---- who, and in which order ----------------------------------------------------------------- */

static void plugins_are_told_by_index_one_after_the_other(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *last = nw_ready(w, "12-c"), *first = nw_ready(w, "05-b"),
		      *second = nw_ready(w, "10-a");
	plugin_rule(first, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 1);
	plugin_rule(second, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_int_equal(plugin_count(first, CK_NRI_RUN_POD_SANDBOX, "s1"), 1);
	assert_int_equal(plugin_count(second, CK_NRI_RUN_POD_SANDBOX, NULL), 0);
	plugin_release(first);
	nw_settle(w);
	assert_int_equal(plugin_count(second, CK_NRI_RUN_POD_SANDBOX, "s1"), 1);
	assert_int_equal(plugin_count(last, CK_NRI_RUN_POD_SANDBOX, NULL), 0);
	assert_int_equal(sent.ended, 0);
	plugin_release(second);
	nw_settle(w);
	assert_int_equal(plugin_count(last, CK_NRI_RUN_POD_SANDBOX, "s1"), 1);
	assert_int_equal(sent.ended, 1);
	assert_int_equal(sent.told, 3);
	assert_string_equal(sent.refusal, "");
	finish(w);
}

static void plugins_of_one_index_are_all_told(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *slow = nw_join(w, "10-a"), *p[4] = { slow };
	slow->mute = true; /* accepted first, and the last to register */
	nw_settle(w);
	for (unsigned i = 1; i < 4; i++)
		p[i] = nw_ready(w, i == 1 ? "10-a" : i == 2 ? "10-b" : "10-aa");
	plugin_register(slow);
	nw_settle(w);
	nw_run(w, "s1");
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(
			plugin_story(p[i]),
			"Synchronize() RunPodSandbox(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	finish(w);
}

static void choose_names_those_who_will_be_told(void **state)
{
	char names[CK_TOLD_MAX];
	(void)state;
	struct nw *w = nw_started();
	nw_ready(w, "20-b");
	nw_ready(w, "10-a");
	struct plugin *mute = nw_join(w, "30-c");
	mute->mute = true;
	nw_settle(w);
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", names, sizeof(names)), 0);
	assert_string_equal(names, "10-a 20-b");
	finish(w);
}

static void who_has_not_subscribed_is_not_asked(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *other = nw_ready(w, "20-b"), *p = nw_join(w, "10-a");
	p->mask = 1u << (CK_NRI_STOP_POD_SANDBOX - 1);
	nw_settle(w);
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_int_equal(sent.told, 2);
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_int_equal(sent.told, 1);
	assert_string_equal(plugin_story(p), "Synchronize() StopPodSandbox(s1)");
	assert_int_equal(plugin_count(other, CK_NRI_REMOVE_POD_SANDBOX, "s1"), 1);
	finish(w);
}

static void a_whole_life_is_told_in_order(void **state)
{
	static const enum ck_nri_event events[] = {
		CK_NRI_POST_CREATE_CONTAINER, CK_NRI_START_CONTAINER,
		CK_NRI_POST_START_CONTAINER,  CK_NRI_UPDATE_CONTAINER,
		CK_NRI_POST_UPDATE_CONTAINER, CK_NRI_STOP_CONTAINER,
		CK_NRI_REMOVE_CONTAINER
	};
	(void)state;
	for (int old = 0; old <= 1; old++) {
		struct nw *w = nw_started();
		struct plugin *p = nw_join(w, "10-a");
		p->old = old;
		p->mask = old ? 0x7ff : 0x1fff;
		nw_settle(w);
		nw_run(w, "s1");
		nw_create(w, "c1", "s1");
		for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
			struct nw_sent sent;
			nw_send(w, events[i], "c1", &sent);
			nw_settle(w);
			assert_int_equal(sent.ended, 1);
			assert_int_equal(sent.told, 1);
			assert_string_equal(plugin_last(p, events[i])->pod, "s1");
			assert_string_equal(plugin_last(p, events[i])->container, "c1");
		}
		if (!old) {
			nw_send(w, CK_NRI_UPDATE_POD_SANDBOX, "s1", NULL);
			nw_send(w, CK_NRI_POST_UPDATE_POD_SANDBOX, "s1", NULL);
		}
		nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", NULL);
		nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
		nw_settle(w);
		const char *story = plugin_story(p);
		if (old)
			assert_string_equal(
				story,
				"Synchronize() RunPodSandbox(s1) CreateContainer(c1) "
				"PostCreateContainer(c1) "
				"StartContainer(c1) PostStartContainer(c1) UpdateContainer(c1) "
				"PostUpdateContainer(c1) StopContainer(c1) RemoveContainer(c1) "
				"StopPodSandbox(s1) RemovePodSandbox(s1)");
		else
			assert_string_equal(
				story,
				"Synchronize() RunPodSandbox(s1) CreateContainer(c1) "
				"PostCreateContainer(c1) "
				"StartContainer(c1) PostStartContainer(c1) UpdateContainer(c1) "
				"PostUpdateContainer(c1) StopContainer(c1) RemoveContainer(c1) "
				"UpdatePodSandbox(s1) PostUpdatePodSandbox(s1) StopPodSandbox(s1) "
				"RemovePodSandbox(s1)");
		assert_int_equal(p->unimplemented, old); /* tried once, and then no more */
		assert_int_equal(plugin_last(p, CK_NRI_START_CONTAINER)->state_change, old);
		assert_int_equal(plugin_last(p, CK_NRI_CREATE_CONTAINER)->state_change, 0);
		finish(w);
	}
}

static void an_old_stub_has_one_deadline_for_both_tries(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-a");
	p->old = true;
	p->mask = 0x7ff;
	nw_settle(w);
	plugin_rule(p, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_true(plugin_last(p, CK_NRI_RUN_POD_SANDBOX)->state_change);
	assert_in_range(plugin_last(p, CK_NRI_RUN_POD_SANDBOX)->timeout, 1, 2 * S);
	nw_advance(w, 2 * S);
	assert_int_equal(sent.ended, 1);
	finish(w);
}

static void an_event_carries_what_the_host_says_or_what_is_given(void **state)
{
	struct plugin_buffer pod = { .p = NULL };
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	const struct plugin_heard *heard = plugin_last(p, CK_NRI_RUN_POD_SANDBOX);
	nw_message(nw_find(w, "s1"), &pod);
	assert_int_equal(heard->len, pod.len + 2); /* field 1 of the request */
	assert_memory_equal(heard->payload + 2, pod.p, pod.len);
	assert_int_equal(heard->timeout, 2 * S);
	nw_pod(w, "s2");
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	unsigned asked = w->asked[NW_DESCRIBE];
	struct ck_nri_call call = nw_call_of(w, CK_NRI_RUN_POD_SANDBOX, "s2");
	call.pod = "\x0a\x02s2\xfa\x3e\x01x"; /* with a field nobody has heard of */
	call.pod_len = 8;
	assert_int_equal(nw_send_call(w, &call, &sent), 0);
	nw_settle(w);
	assert_int_equal(w->asked[NW_DESCRIBE], asked);
	heard = plugin_last(p, CK_NRI_RUN_POD_SANDBOX);
	assert_int_equal(heard->len, 10);
	assert_memory_equal(heard->payload + 2, "\x0a\x02s2\xfa\x3e\x01x", 8);
	plugin_bytes_free(&pod);
	finish(w);
}

static void resources_go_along(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	struct ck_nri_call call = nw_call_of(w, CK_NRI_UPDATE_CONTAINER, "c1");
	call.resources = "\x12\x05\x0a\x03\x08\x80\x04"; /* cpu { shares { 512 } } */
	call.resources_len = 7;
	assert_int_equal(nw_send_call(w, &call, &sent), 0);
	nw_settle(w);
	const struct plugin_heard *heard = plugin_last(p, CK_NRI_UPDATE_CONTAINER);
	assert_true(heard->len > 9);
	assert_memory_equal(heard->payload + heard->len - 9, "\x1a\x07\x12\x05\x0a\x03\x08\x80\x04",
			    9);
	assert_false(sent.has_resources); /* nobody wants others */
	nw_sent_free(&sent);
	struct ck_nri_call of_pod = nw_call_of(w, CK_NRI_UPDATE_POD_SANDBOX, "s1");
	of_pod.resources = call.resources;
	of_pod.resources_len = 7;
	of_pod.overhead = "\x12\x04\x0a\x02\x08\x02";
	of_pod.overhead_len = 6;
	assert_int_equal(nw_send_call(w, &of_pod, &sent), 0);
	nw_settle(w);
	heard = plugin_last(p, CK_NRI_UPDATE_POD_SANDBOX);
	assert_true(heard->len > 17);
	assert_memory_equal(heard->payload + heard->len - 17,
			    "\x12\x06\x12\x04\x0a\x02\x08\x02\x1a\x07\x12\x05\x0a\x03\x08\x80\x04",
			    17);
	finish(w);
}

/* the runtime forgets it when the process has ended; for this event it is remembered, though the
 * plugin hears of nothing before */
static void the_stop_has_the_last_pid(void **state)
{
	struct plugin_buffer pid = { .p = NULL };
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-a");
	p->mask = 1u << (CK_NRI_STOP_CONTAINER - 1) | 1u << (CK_NRI_REMOVE_CONTAINER - 1);
	nw_settle(w);
	nw_run(w, "s1");
	nw_create(w, "c1", "s1")->pid = 4242;
	nw_send(w, CK_NRI_START_CONTAINER, "c1", NULL);
	nw_settle(w);
	nw_send(w, CK_NRI_POST_START_CONTAINER, "c1", NULL);
	nw_settle(w);
	nw_find(w, "c1")->pid = 0;
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", NULL);
	nw_settle(w);
	plugin_number(&pid, 12, 4242);
	const struct plugin_heard *heard = plugin_last(p, CK_NRI_STOP_CONTAINER);
	assert_non_null(memmem(heard->payload, heard->len, pid.p, pid.len));
	nw_send(w, CK_NRI_REMOVE_CONTAINER, "c1", NULL);
	nw_settle(w);
	heard = plugin_last(p, CK_NRI_REMOVE_CONTAINER);
	assert_null(memmem(heard->payload, heard->len, pid.p, pid.len));
	plugin_bytes_free(&pid);
	finish(w);
}

/* ---- once ------------------------------------------------------------------------------------ */

static void the_end_is_told_once(void **state)
{
	struct nw_sent sent[5];
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", &sent[0]);
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", &sent[1]); /* while the first goes round */
	nw_settle(w);
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", &sent[2]);
	nw_send(w, CK_NRI_REMOVE_CONTAINER, "c1", &sent[3]);
	nw_settle(w);
	nw_send(w, CK_NRI_REMOVE_CONTAINER, "c1", &sent[4]);
	nw_settle(w);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(sent[i].ended, 1);
		assert_false(sent[i].within);
	}
	assert_string_equal(plugin_story(p), "Synchronize() RunPodSandbox(s1) CreateContainer(c1) "
					     "StopContainer(c1) RemoveContainer(c1)");
	finish(w);
}

static void remove_is_preceded_by_stop(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *a = nw_ready(w, "10-a"), *b = nw_ready(w, "20-b");
	plugin_rule(a, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_run(w, "s1");
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_string_equal(plugin_story(a), "Synchronize() RunPodSandbox(s1) StopPodSandbox(s1)");
	assert_int_equal(plugin_count(b, CK_NRI_STOP_POD_SANDBOX, NULL), 0);
	plugin_release(a);
	nw_settle(w);
	assert_string_equal(
		plugin_story(a),
		"Synchronize() RunPodSandbox(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_string_equal(
		plugin_story(b),
		"Synchronize() RunPodSandbox(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_int_equal(sent.ended, 1);
	finish(w);
}

static void nobody_hears_of_what_nobody_knows(void **state)
{
	static const enum ck_nri_event events[] = { CK_NRI_STOP_POD_SANDBOX,
						    CK_NRI_REMOVE_POD_SANDBOX,
						    CK_NRI_UPDATE_POD_SANDBOX };
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s0"); /* before anybody came, and gone by then */
	nw_find(w, "s0")->visible = false;
	nw_released(w, "s0", true);
	struct plugin *p = nw_ready(w, "10-a");
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
		struct nw_sent sent;
		nw_send(w, events[i], "s0", &sent);
		nw_settle(w);
		assert_int_equal(sent.ended, 1);
		assert_int_equal(sent.told, 0);
		assert_string_equal(sent.refusal, "");
	}
	assert_string_equal(plugin_story(p), "Synchronize()");
	finish(w);
}

/* R24, H1: who joins between Stop and Remove hears of the Remove; and of the Stop, if nobody was
 * sent it. Who joins between that and the host's forgetting hears nothing. */
static void who_joins_within_a_removal_hears_the_rest_of_it(void **state)
{
	(void)state;
	for (int known = 0; known <= 1; known++) {
		struct nw *w = nw_started();
		if (known)
			nw_ready(w, "05-before");
		nw_run(w, "s1");
		nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", NULL);
		nw_settle(w);
		struct plugin *between = nw_ready(w, "10-a");
		nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
		nw_settle(w);
		struct plugin *after = nw_ready(w, "20-b");
		nw_released(w, "s1", true);
		nw_settle(w);
		assert_string_equal(plugin_story(between),
				    known ? "Synchronize(s1) RemovePodSandbox(s1)"
					  : "Synchronize(s1) StopPodSandbox(s1) "
					    "RemovePodSandbox(s1)");
		assert_string_equal(plugin_story(after), "Synchronize()");
		finish(w);
	}
}

/* Plugins are asked about container c1 of s1 under an id of ours, before it is created. */
static void ask_before(struct nw *w)
{
	struct nw_sent sent;
	struct nw_object *o = nw_container(w, "c1", "s1");
	struct ck_nri_call call = nw_call_of(w, CK_NRI_CREATE_CONTAINER, "c1");
	call.container_id = "id-for-plugins";
	call.container_name = o->name;
	call.container = "\x0a\x0eid-for-plugins";
	call.container_len = 16;
	assert_int_equal(nw_send_call(w, &call, &sent), 0);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	nw_sent_free(&sent);
}

static void a_container_that_never_came_to_be_is_undone(void **state)
{
	char names[CK_TOLD_MAX];
	(void)state;
	for (int made = 0; made <= 1; made++) {
		struct nw *w = nw_new();
		w->options.adjust = CK_NRI_BEFORE_CREATE;
		assert_int_equal(nw_open(w), 0);
		nw_start(w);
		struct plugin *p = nw_ready(w, "10-a");
		nw_run(w, "s1");
		ask_before(w);
		assert_int_equal(plugin_count(p, CK_NRI_CREATE_CONTAINER, "id-for-plugins"), 1);
		struct plugin *late = nw_ready(w, "20-late"); /* between the event and the commit */
		assert_int_equal(plugin_listed(late, "c1") + plugin_listed(late, "id-for-plugins"),
				 0);
		if (made) {
			assert_int_equal(nw_choose(w, "c1", names, sizeof(names)), 0);
			assert_string_equal(names, "10-a 20-late");
		} else {
			nw_released(w, "c1", true);
		}
		nw_settle(w);
		assert_int_equal(plugin_count(p, CK_NRI_STOP_CONTAINER, "id-for-plugins"), !made);
		assert_int_equal(plugin_count(p, CK_NRI_REMOVE_CONTAINER, "id-for-plugins"), !made);
		assert_int_equal(plugin_count(late, CK_NRI_STOP_CONTAINER, NULL), 0);
		finish(w);
	}
}

/* one plugin is slow, and is not asked yet; @other: and another one is */
static struct nw *asked_before(bool other)
{
	struct nw *w = nw_new();
	w->options.adjust = CK_NRI_BEFORE_CREATE;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	struct plugin *slow = nw_ready(w, "05-slow");
	if (other)
		nw_ready(w, "10-a");
	plugin_rule(slow, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_run(w, "s1");
	nw_advance(w, 2010 * MS); /* from now on its events wait */
	ask_before(w);
	return w;
}

static void commit_asked(struct nw *w)
{
	struct nw_sent sent;
	assert_int_equal(nw_choose(w, "c1", NULL, 0), 0);
	nw_send(w, CK_NRI_CREATE_CONTAINER, "c1", &sent);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	assert_string_equal(sent.refusal, "");
	nw_sent_free(&sent);
}

/* The runtime has created it for an earlier request, about which nobody was asked. */
static void a_container_of_an_earlier_request_has_its_own_id(void **state)
{
	(void)state;
	struct nw *w = asked_before(true);
	struct plugin *joins = nw_ready(w, "20-b");
	commit_asked(w);
	plugin_release(w->plugins[0]);
	nw_settle(w);
	assert_string_equal(plugin_story(joins), "Synchronize(s1) CreateContainer(c1)");
	assert_string_equal(plugin_story(w->plugins[0]),
			    "Synchronize() RunPodSandbox(s1) CreateContainer(c1)");
	assert_string_equal(plugin_story(w->plugins[1]),
			    "Synchronize() RunPodSandbox(s1) CreateContainer(id-for-plugins) "
			    "CreateContainer(c1) "
			    "StopContainer(id-for-plugins) RemoveContainer(id-for-plugins)");
	finish(w);
}

static void who_was_not_even_asked_hears_its_own_id(void **state)
{
	(void)state;
	struct nw *w = asked_before(false);
	commit_asked(w);
	nw_send(w, CK_NRI_POST_CREATE_CONTAINER, "c1", NULL);
	plugin_release(w->plugins[0]);
	nw_settle(w);
	assert_string_equal(plugin_story(w->plugins[0]),
			    "Synchronize() RunPodSandbox(s1) CreateContainer(c1) "
			    "PostCreateContainer(c1)");
	finish(w);
}

/* its id is looked at, and nothing is undone for that */
static void who_was_asked_needs_no_description(void **state)
{
	static const int codes[] = { 5, 13, 0 };
	struct nw_sent sent;
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct nw *w = asked_before(true);
		w->fail[NW_DESCRIBE] = codes[i];
		if (codes[i]) {
			commit_asked(w);
		} else { /* but it is waited for while the runtime is away */
			w->fail[NW_DESCRIBE] = 14;
			assert_int_equal(nw_choose(w, "c1", NULL, 0), 0);
			nw_send(w, CK_NRI_CREATE_CONTAINER, "c1", &sent);
			nw_advance(w, 2 * CK_NRI_DESCRIBE_MAX);
			assert_int_equal(sent.ended, 0);
			w->fail[NW_DESCRIBE] = 13;
			nw_advance(w, 5 * S);
			assert_int_equal(sent.ended, 1);
			assert_string_equal(sent.refusal, "");
			nw_sent_free(&sent);
		}
		assert_string_equal(plugin_story(w->plugins[1]),
				    "Synchronize() RunPodSandbox(s1) "
				    "CreateContainer(id-for-plugins)");
		finish(w);
	}
}

/* ---- time ------------------------------------------------------------------------------------ */

static void who_is_late_gets_the_rest_when_it_answers(void **state)
{
	struct nw_sent run[3];
	(void)state;
	struct nw *w = nw_started();
	struct plugin *slow = nw_ready(w, "10-a"), *other = nw_ready(w, "20-b");
	plugin_rule(slow, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 1);
	for (unsigned i = 0; i < 3; i++) {
		char id[8];
		snprintf(id, sizeof(id), "s%u", i);
		nw_pod(w, id);
		assert_int_equal(nw_choose(w, id, NULL, 0), 0);
		nw_send(w, CK_NRI_RUN_POD_SANDBOX, id, &run[i]);
		nw_settle(w);
		/* the first waits for it; when it is overdue, the others do not */
		assert_int_equal(run[i].ended, i > 0);
		assert_int_equal(plugin_count(other, CK_NRI_RUN_POD_SANDBOX, id), i > 0);
		nw_advance(w, 1990 * MS);
		assert_int_equal(run[i].ended, i > 0);
		nw_advance(w, 20 * MS);
		assert_int_equal(run[i].ended, 1);
		assert_string_equal(run[i].refusal, "");
		assert_int_equal(plugin_count(other, CK_NRI_RUN_POD_SANDBOX, id), 1);
	}
	const struct ck_nri_plugin *seen = nw_plugin(w, "10-a");
	assert_string_equal(seen->state, "overdue");
	assert_int_equal(seen->queued, 2);
	assert_int_equal(seen->sent, 1);
	assert_int_equal(seen->late, 1);
	assert_string_equal(plugin_story(slow), "Synchronize() RunPodSandbox(s0)");
	plugin_release(slow);
	nw_settle(w);
	assert_string_equal(plugin_story(slow),
			    "Synchronize() RunPodSandbox(s0) RunPodSandbox(s1) RunPodSandbox(s2)");
	assert_string_equal(nw_plugin(w, "10-a")->state, "ready");
	finish(w);
}

static bool file_says(const char *path, const char *word)
{
	char text[4096];
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[n] = '\0';
	if (file)
		fclose(file);
	return strstr(text, word);
}

static void what_waits_for_a_plugin_is_in_the_status_file(void **state)
{
	char path[sizeof(((struct nw *)NULL)->dir) + 16];
	(void)state;
	struct nw *w = nw_new();
	snprintf(path, sizeof(path), "%s/status", w->dir);
	w->options.status_path = path;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	struct plugin *slow = nw_ready(w, "10-a");
	plugin_rule(slow, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 1);
	for (unsigned i = 0; i < 2; i++) {
		const char *id = i ? "s1" : "s0";
		nw_pod(w, id);
		assert_int_equal(nw_choose(w, id, NULL, 0), 0);
		nw_send(w, CK_NRI_RUN_POD_SANDBOX, id, NULL);
		nw_advance(w, 3 * S); /* it is overdue */
		assert_true(file_says(path, i ? " queued=1 " : " queued=0 "));
	}
	plugin_release(slow);
	nw_settle(w);
	finish(w);
}

static void who_is_late_for_too_long_is_closed(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *slow = nw_ready(w, "10-a");
	plugin_rule(slow, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	nw_run(w, "s1");
	nw_advance(w, 2010 * MS);
	assert_string_equal(nw_plugin(w, "10-a")->state, "overdue");
	nw_advance(w, 9900 * MS);
	assert_false(slow->ended);
	nw_advance(w, 200 * MS);
	assert_true(slow->ended);
	/* it may come back, and has it in its list (R42) */
	struct plugin *again = nw_ready(w, "10-a");
	assert_string_equal(plugin_story(again), "Synchronize(s1)");
	finish(w);
}

static void a_queue_has_an_end(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *slow = nw_ready(w, "10-a"), *other = nw_ready(w, "20-b");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	plugin_rule(slow, CK_NRI_POST_UPDATE_CONTAINER, PLUGIN_HOLDS, 0);
	nw_send(w, CK_NRI_POST_UPDATE_CONTAINER, "c1", NULL);
	nw_advance(w, 3 * S); /* it is overdue, and teardown goes on without it */
	for (unsigned i = 0; i <= CK_NRI_QUEUE_MAX + 1; i++)
		nw_send(w, CK_NRI_POST_UPDATE_CONTAINER, "c1", NULL);
	for (unsigned i = 0; i < 8 && !slow->ended; i++)
		nw_advance(w, 900 * MS);
	assert_true(slow->ended ||
		    plugin_count(other, CK_NRI_POST_UPDATE_CONTAINER, "c1") < CK_NRI_QUEUE_MAX);
	assert_false(other->ended);
	finish(w);
}

static void a_teardown_is_told_late_before_it_is_told_removed(void **state)
{
	struct nw_sent stop, remove;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *slow = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_run(w, "s2");
	plugin_rule(slow, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", NULL);
	nw_advance(w, 2 * S);
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s2", &stop);
	nw_settle(w);
	nw_advance(w, 2 * S); /* one deadline, and it goes on */
	assert_int_equal(stop.ended, 1);
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s2", &remove);
	nw_settle(w);
	nw_advance(w, 2 * S);
	assert_int_equal(remove.ended, 1);
	assert_int_equal(plugin_count(slow, CK_NRI_STOP_POD_SANDBOX, "s2"), 0);
	nw_released(w, "s2", true);
	plugin_release(slow);
	nw_settle(w);
	assert_string_equal(plugin_story(slow),
			    "Synchronize() RunPodSandbox(s1) RunPodSandbox(s2) StopPodSandbox(s1) "
			    "StopPodSandbox(s2) RemovePodSandbox(s2)");
	finish(w);
}

static void a_plugin_that_does_not_read_delays_as_one_that_does_not_answer(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *deaf = nw_ready(w, "10-a"), *other = nw_ready(w, "20-b");
	deaf->deaf = true;
	nw_pod(w, "s1")->fat = 2 << 20; /* more than a socket takes */
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &sent);
	nw_advance(w, 1990 * MS);
	assert_int_equal(sent.ended, 0);
	nw_advance(w, 20 * MS);
	assert_int_equal(sent.ended, 1);
	assert_int_equal(plugin_count(other, CK_NRI_RUN_POD_SANDBOX, "s1"), 1);
	deaf->deaf = false;
	nw_settle(w);
	assert_int_equal(plugin_count(deaf, CK_NRI_RUN_POD_SANDBOX, "s1"), 1);
	assert_string_equal(nw_plugin(w, "10-a")->state, "ready");
	finish(w);
}

/* a plugin is to be told of s1, which the host does not describe */
static struct nw *not_described(struct nw_sent *sent)
{
	struct nw *w = nw_started();
	nw_ready(w, "10-a");
	w->fail[NW_DESCRIBE] = 13;
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", sent);
	return w;
}

static void is_told_if(struct nw *w, const struct nw_sent *sent, int described)
{
	assert_int_equal(sent->ended, 1);
	assert_int_equal(plugin_count(w->plugins[0], CK_NRI_RUN_POD_SANDBOX, "s1"), described);
	assert_int_equal(sent->refusal[0] == '\0', described);
	finish(w);
}

static void the_host_is_asked_until_it_can_tell(void **state)
{
	struct nw_sent sent;
	(void)state;
	for (int ever = 0; ever <= 1; ever++) {
		struct nw *w = not_described(&sent);
		nw_advance(w, 20 * S);
		/* half a description would never be put right (R3) */
		assert_int_equal(sent.ended, 0);
		assert_int_equal(plugin_count(w->plugins[0], CK_NRI_RUN_POD_SANDBOX, NULL), 0);
		/* after pauses that double up to 8 times the first one */
		assert_in_range(w->asked[NW_DESCRIBE], 10,
				4 + 20 * S / (8 * CK_NRI_DESCRIBE_AGAIN));
		if (ever)
			w->fail[NW_DESCRIBE] = 0;
		nw_advance(w, 20 * S);
		is_told_if(w, &sent, ever);
	}
}

/* A runtime that hangs, or is away, has finished the work all the same. */
static void a_runtime_that_does_not_answer_is_waited_for(void **state)
{
	struct nw_sent sent;
	(void)state;
	for (int ever = 0; ever <= 1; ever++) {
		struct nw *w = not_described(&sent);
		nw_advance(w, CK_NRI_DESCRIBE_MAX / 2);
		w->fail[NW_DESCRIBE] = 14;
		nw_advance(w, 10 * CK_NRI_DESCRIBE_MAX);
		assert_int_equal(sent.ended, 0);
		/* its first answers are not held against it; and an object that hangs is */
		w->fail[NW_DESCRIBE] = 4;
		nw_advance(w, CK_NRI_DESCRIBE_MAX / 2);
		assert_int_equal(sent.ended, 0);
		if (ever)
			w->fail[NW_DESCRIBE] = 0;
		nw_advance(w, CK_NRI_DESCRIBE_MAX);
		is_told_if(w, &sent, ever);
	}
}

/* ---- what plugins ask for -------------------------------------------------------------------- */

/* an update of @id: cpu shares 512 */
static void update_of(struct plugin_buffer *to, const char *id, bool ignore_failure)
{
	struct plugin_buffer update = { .p = NULL };
	plugin_text(&update, 1, id);
	plugin_bytes(&update, 2, "\x0a\x07\x12\x05\x0a\x03\x08\x80\x04", 9);
	if (ignore_failure)
		plugin_number(&update, 3, 1);
	plugin_bytes(to, 1, update.p, update.len);
	plugin_bytes_free(&update);
}

static void eviction_of(struct plugin_buffer *to, uint32_t field, const char *id,
			const char *reason)
{
	struct plugin_buffer eviction = { .p = NULL };
	plugin_text(&eviction, 1, id);
	plugin_text(&eviction, 2, reason);
	plugin_bytes(to, field, eviction.p, eviction.len);
	plugin_bytes_free(&eviction);
}

static void update_from_inside(struct plugin *p, const struct plugin_heard *heard, void *userdata)
{
	struct plugin_buffer request = { .p = NULL };
	if (heard->call != CK_NRI_STOP_POD_SANDBOX)
		return;
	update_of(&request, "c1", false);
	*(uint32_t *)userdata = plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers",
					   request.p, request.len);
	plugin_bytes_free(&request);
}

static void an_update_from_inside_an_event_is_served_at_once(void **state)
{
	uint32_t stream = 0;
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	p->called = update_from_inside;
	p->userdata = &stream;
	plugin_rule(p, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_int_equal(sent.ended, 0);
	assert_string_equal(w->changes, "update c1 [12050a03088004]");
	assert_non_null(plugin_answer_to(p, stream));
	assert_int_equal(plugin_answer_to(p, stream)->code, 0);
	plugin_release(p);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	finish(w);
}

static void updates_that_fail_are_named(void **state)
{
	struct plugin_buffer request = { .p = NULL };
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_create(w, "c2", "s1");
	update_of(&request, "c1", false);
	update_of(&request, "c2", true);
	update_of(&request, "c9", false); /* nobody knows it */
	w->fail[NW_UPDATE] = 13;
	uint32_t stream =
		plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers", request.p, request.len);
	nw_settle(w);
	assert_string_equal(w->changes, "update c1 [12050a03088004] update c2 [12050a03088004]");
	const struct plugin_answer *answer = plugin_answer_to(p, stream);
	assert_non_null(answer);
	assert_true(answer->code || (answer->len > 6 && !memcmp(answer->payload + 2,
								"\x0a\x02"
								"c1",
								4)));
	assert_null(memmem(answer->payload, answer->len, "c2", 2));
	assert_null(memmem(answer->payload, answer->len, "c9", 2));
	plugin_bytes_free(&request);
	finish(w);
}

static void a_host_that_can_change_nothing_says_so(void **state)
{
	struct plugin_buffer request = { .p = NULL };
	(void)state;
	struct nw *w = nw_new();
	w->host.update = NULL;
	w->host.evict = NULL;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	update_of(&request, "c1", false);
	eviction_of(&request, 2, "c1", "because");
	uint32_t stream =
		plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers", request.p, request.len);
	nw_settle(w);
	const struct plugin_answer *answer = plugin_answer_to(p, stream);
	assert_non_null(answer);
	assert_non_null(memmem(answer->payload, answer->len, "c1", 2)); /* it has failed */
	assert_non_null(strstr(w->log, "evicting container c1 for a plugin: UNIMPLEMENTED"));
	plugin_bytes_free(&request);
	finish(w);
}

static void what_a_plugin_was_not_told_of_it_cannot_change(void **state)
{
	struct plugin_buffer request = { .p = NULL };
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_container(w, "c1", "s1"); /* made, and not committed */
	update_of(&request, "c1", false);
	eviction_of(&request, 2, "c1", "because");
	plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers", request.p, request.len);
	nw_settle(w);
	assert_string_equal(w->changes, "");
	assert_int_equal(p->answers[p->answers_n - 1].code, 0);
	plugin_bytes_free(&request);
	finish(w);
}

static void an_update_that_cannot_be_read_is_the_plugins_fault(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	uint32_t bad = plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers", "\x0a\x7f", 2);
	nw_settle(w);
	assert_int_equal(plugin_answer_to(p, bad)->code, 3);
	finish(w);
}

static void evictions_reach_the_host(void **state)
{
	struct plugin_buffer asked = { .p = NULL }, answered = { .p = NULL };
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_create(w, "c2", "s1");
	eviction_of(&asked, 2, "c1", "no memory left");
	plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers", asked.p, asked.len);
	nw_settle(w);
	assert_string_equal(w->changes, "evict c1 [no memory left]");
	eviction_of(&answered, 3, "c2", "too loud");
	plugin_replies(p, CK_NRI_CREATE_CONTAINER, answered.p, answered.len);
	nw_create(w, "c3", "s1");
	assert_string_equal(w->changes, "evict c1 [no memory left] evict c2 [too loud]");
	assert_null(strstr(w->log, "evicting container"));
	w->fail[NW_EVICT] = 14; /* nobody waits for it, so the log says it */
	plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers", asked.p, asked.len);
	nw_settle(w);
	assert_non_null(strstr(w->log, "evicting container c1 for a plugin: UNAVAILABLE"));
	plugin_bytes_free(&asked);
	plugin_bytes_free(&answered);
	finish(w);
}

static void updates_of_others_come_before_the_event_ends(void **state)
{
	struct plugin_buffer reply = { .p = NULL };
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_create(w, "c2", "s1");
	update_of(&reply, "c1", false);
	plugin_replies(p, CK_NRI_STOP_CONTAINER, reply.p, reply.len);
	w->hold[NW_UPDATE] = true;
	nw_send(w, CK_NRI_STOP_CONTAINER, "c2", &sent);
	nw_settle(w);
	assert_string_equal(w->changes, "update c1 [12050a03088004]");
	assert_int_equal(sent.ended, 0);
	nw_release(w, NW_UPDATE);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	plugin_bytes_free(&reply);
	finish(w);
}

static void updates_come_with_the_list_too(void **state)
{
	struct plugin_buffer reply = { .p = NULL };
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	update_of(&reply, "c1", false);
	struct plugin *p = nw_join(w, "10-a");
	plugin_replies(p, PLUGIN_SYNCHRONIZE, reply.p, reply.len);
	nw_settle(w);
	assert_string_equal(nw_plugin(w, "10-a")->state, "ready");
	assert_string_equal(w->changes, "update c1 [12050a03088004]");
	plugin_bytes_free(&reply);
	p->synchronized = true; /* it answered with what it was given */
	nw_free(w);
}

/* ---- the border ------------------------------------------------------------------------------ */

static void process_within(struct nw *w, void *userdata)
{
	*(int *)userdata = ck_nri_process(w->nri, &w->err);
}

static void process_is_not_called_from_within(void **state)
{
	int r = 0;
	(void)state;
	struct nw *w = nw_started();
	nw_ready(w, "10-a");
	w->in_call = process_within;
	w->in_call_data = &r;
	nw_run(w, "s1");
	assert_int_equal(r, -CK_EDEADLK);
	finish(w);
}

static void send_within(struct nw *w, void *userdata)
{
	struct nw_sent *sent = userdata;
	w->in_call = NULL;
	nw_send(w, CK_NRI_POST_UPDATE_POD_SANDBOX, "s1", sent);
}

static void everything_else_may_be(void **state)
{
	struct nw_sent sent = { .ended = 0 };
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	w->in_call = send_within;
	w->in_call_data = &sent;
	nw_run(w, "s2");
	assert_int_equal(sent.ended, 1);
	assert_int_equal(plugin_count(p, CK_NRI_POST_UPDATE_POD_SANDBOX, "s1"), 1);
	finish(w);
}

static void each_callback_comes_once_also_at_the_close(void **state)
{
	struct nw_sent sent[6];
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	nw_run(w, "s1");
	nw_run(w, "s2");
	nw_create(w, "c1", "s1");
	plugin_rule(p, CK_NRI_POST_UPDATE_POD_SANDBOX, PLUGIN_HOLDS, 0);
	nw_send(w, CK_NRI_POST_UPDATE_POD_SANDBOX, "s1", &sent[0]); /* waits for its answer */
	nw_settle(w);
	w->hold[NW_DESCRIBE] = true;
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s2", &sent[1]); /* is described */
	nw_settle(w);
	nw_send(w, CK_NRI_START_CONTAINER, "c1", &sent[2]); /* queued behind the first */
	nw_settle(w);
	nw_send(w, CK_NRI_POST_START_CONTAINER, "c1", &sent[3]);
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s2", &sent[4]); /* not looked at yet */
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", &sent[5]);
	nw_close(w); /* and the host's answers come afterwards */
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(sent[i].ended, 1);
		nw_sent_free(&sent[i]);
	}
	finish(w);
}

static void who_listens_can_be_asked(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-a");
	p->mask = 1u << (CK_NRI_STOP_POD_SANDBOX - 1);
	nw_settle(w);
	nw_run(w, "s1");
	assert_int_equal(ck_nri_listens(w->nri, CK_NRI_STOP_POD_SANDBOX, CK_SANDBOX, "s1"), 1);
	assert_int_equal(ck_nri_listens(w->nri, CK_NRI_REMOVE_POD_SANDBOX, CK_SANDBOX, "s1"), 0);
	assert_int_equal(ck_nri_listens(w->nri, CK_NRI_STOP_POD_SANDBOX, CK_SANDBOX, "s9"), 0);
	assert_int_equal(ck_nri_listens(w->nri, CK_NRI_STOP_POD_SANDBOX, CK_CONTAINER, "s1"), 0);
	finish(w);
}

static void odd_calls_are_refused(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct nw_sent sent;
	nw_run(w, "s1");
	struct ck_nri_call call = nw_call_of(w, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, "s1");
	assert_int_equal(nw_send_call(w, &call, &sent), -CK_EINVAL);
	call.event = (enum ck_nri_event)99;
	assert_int_equal(nw_send_call(w, &call, &sent), -CK_EINVAL);
	call.event = CK_NRI_STOP_POD_SANDBOX;
	call.pod_id = "";
	assert_int_equal(nw_send_call(w, &call, &sent), -CK_EINVAL);
	call.pod_id = NULL;
	assert_int_equal(nw_send_call(w, &call, &sent), -CK_EINVAL);
	call.event = CK_NRI_STOP_CONTAINER; /* without a container */
	call.pod_id = "s1";
	assert_int_equal(nw_send_call(w, &call, &sent), -CK_EINVAL);
	call.size = 0;
	assert_int_equal(nw_send_call(w, &call, &sent), -CK_EINVAL);
	finish(w);
}

static bool is_due(struct nw *w)
{
	struct pollfd fd = { .fd = ck_nri_fd(w->nri), .events = POLLIN };
	return poll(&fd, 1, 0) > 0;
}

/* a host asks for each call of a kubelet whether plugins listen */
static void a_question_wakes_nobody(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	char name[64];
	nw_ready(w, "10-net");
	nw_run(w, "s1");
	nw_pod(w, "s2");
	nw_settle(w);
	assert_false(is_due(w));
	assert_int_equal(ck_nri_listens(w->nri, CK_NRI_STOP_POD_SANDBOX, CK_SANDBOX, "s1"), 1);
	assert_int_equal(ck_nri_adjusting(w->nri, name, sizeof(name)), 0);
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	assert_false(is_due(w));
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL); /* the host is to describe it */
	assert_true(is_due(w));
	nw_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plugins_are_told_by_index_one_after_the_other),
		cmocka_unit_test(a_question_wakes_nobody),
		cmocka_unit_test(plugins_of_one_index_are_all_told),
		cmocka_unit_test(choose_names_those_who_will_be_told),
		cmocka_unit_test(who_has_not_subscribed_is_not_asked),
		cmocka_unit_test(a_whole_life_is_told_in_order),
		cmocka_unit_test(an_old_stub_has_one_deadline_for_both_tries),
		cmocka_unit_test(an_event_carries_what_the_host_says_or_what_is_given),
		cmocka_unit_test(resources_go_along),
		cmocka_unit_test(the_stop_has_the_last_pid),
		cmocka_unit_test(the_end_is_told_once),
		cmocka_unit_test(remove_is_preceded_by_stop),
		cmocka_unit_test(nobody_hears_of_what_nobody_knows),
		cmocka_unit_test(who_joins_within_a_removal_hears_the_rest_of_it),
		cmocka_unit_test(a_container_that_never_came_to_be_is_undone),
		cmocka_unit_test(a_container_of_an_earlier_request_has_its_own_id),
		cmocka_unit_test(who_was_not_even_asked_hears_its_own_id),
		cmocka_unit_test(who_was_asked_needs_no_description),
		cmocka_unit_test(who_is_late_gets_the_rest_when_it_answers),
		cmocka_unit_test(what_waits_for_a_plugin_is_in_the_status_file),
		cmocka_unit_test(who_is_late_for_too_long_is_closed),
		cmocka_unit_test(a_queue_has_an_end),
		cmocka_unit_test(a_teardown_is_told_late_before_it_is_told_removed),
		cmocka_unit_test(a_plugin_that_does_not_read_delays_as_one_that_does_not_answer),
		cmocka_unit_test(the_host_is_asked_until_it_can_tell),
		cmocka_unit_test(a_runtime_that_does_not_answer_is_waited_for),
		cmocka_unit_test(an_update_from_inside_an_event_is_served_at_once),
		cmocka_unit_test(updates_that_fail_are_named),
		cmocka_unit_test(a_host_that_can_change_nothing_says_so),
		cmocka_unit_test(what_a_plugin_was_not_told_of_it_cannot_change),
		cmocka_unit_test(an_update_that_cannot_be_read_is_the_plugins_fault),
		cmocka_unit_test(evictions_reach_the_host),
		cmocka_unit_test(updates_of_others_come_before_the_event_ends),
		cmocka_unit_test(updates_come_with_the_list_too),
		cmocka_unit_test(process_is_not_called_from_within),
		cmocka_unit_test(everything_else_may_be),
		cmocka_unit_test(each_callback_comes_once_also_at_the_close),
		cmocka_unit_test(who_listens_can_be_asked),
		cmocka_unit_test(odd_calls_are_refused),
	};
	return CK_TEST_MAIN(tests);
}
