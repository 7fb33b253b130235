/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin's failure does to the event that asked it: each policy, with each way to fail; and
 * what nobody can fail. */
#define CK_TEST_SECONDS 120
#include <string.h>

#include "src/base/mem.h"
#include "tests/flow/nri-world.h"

#define S  CK_NS_PER_S
#define MS CK_NS_PER_MS

enum failure { ANSWERS_AN_ERROR, DOES_NOT_ANSWER, BREAKS_OFF, IS_ABSENT, FAILURES };

static const struct ck_nri_rule rules[] = {
	{ "10-ignore", CK_NRI_IGNORE },
	{ "fail", CK_NRI_FAIL },
	{ "required", CK_NRI_REQUIRED },
};
/* by policy */
static const char *const plugins[] = { NULL, "10-ignore", "10-other", "10-fail", "10-required" };

static struct nw *with_rules(void)
{
	struct nw *w = nw_new();
	w->options.rules = rules;
	w->options.rules_n = 2;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	return w;
}

static struct nw *with_required(void)
{
	struct nw *w = nw_new();
	w->options.rules = rules;
	w->options.rules_n = 3;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	return w;
}

static void fail_at(struct plugin *p, int call, enum failure how)
{
	switch (how) {
	case ANSWERS_AN_ERROR:
		plugin_fails(p, call, 2, "no more than 3 of these");
		break;
	case DOES_NOT_ANSWER:
		plugin_rule(p, call, PLUGIN_HOLDS, 0);
		break;
	case BREAKS_OFF:
		plugin_rule(p, call, PLUGIN_BREAKS_OFF, 0);
		break;
	default:
		break;
	}
}

static struct nw *world_of(enum ck_nri_policy policy)
{
	return policy == CK_NRI_REQUIRED ? with_required() : with_rules();
}

/* ---- what can be refused --------------------------------------------------------------------- */

static const bool refuses[CK_NRI_REQUIRED + 1][FAILURES] = {
	/*                    error  silence loss   absence: in choose */
	[CK_NRI_IGNORE] = { false, false, false, false },
	[CK_NRI_ERROR] = { true, false, false, false },
	[CK_NRI_FAIL] = { true, true, true, false },
	[CK_NRI_REQUIRED] = { true, true, true, true },
};

static void policies_decide_about(enum ck_nri_event event)
{
	bool pod = event == CK_NRI_RUN_POD_SANDBOX;
	for (int policy = CK_NRI_IGNORE; policy <= CK_NRI_REQUIRED; policy++)
		for (int how = 0; how < IS_ABSENT; how++) {
			struct nw *w = world_of((enum ck_nri_policy)policy);
			struct nw_sent sent;
			struct plugin *first = nw_ready(w, "05-first"),
				      *p = nw_ready(w, plugins[policy]),
				      *after = nw_ready(w, "90-after");
			assert_int_equal(nw_plugin(w, plugins[policy])->policy, policy);
			nw_run(w, "s0");
			const char *id = pod ? "s1" : "c1";
			if (pod)
				nw_pod(w, id);
			else
				nw_container(w, id, "s0");
			fail_at(p, event, (enum failure)how);
			assert_int_equal(nw_choose(w, id, NULL, 0), 0);
			nw_send(w, event, id, &sent);
			nw_advance(w, 2100 * MS);
			bool refused = refuses[policy][how];
			if (sent.ended != 1 || refused != (sent.refusal[0] != '\0'))
				fail_msg("event %d, policy %d, failure %d: ended %u, '%s'",
					 (int)event, policy, how, sent.ended, sent.refusal);
			if (refused) {
				char name[64];
				snprintf(name, sizeof(name), "plugin %s", plugins[policy]);
				assert_non_null(strstr(sent.refusal, name));
				if (how == ANSWERS_AN_ERROR)
					assert_non_null(
						strstr(sent.refusal, "no more than 3 of these"));
			}
			assert_int_equal(plugin_count(first, event, id), 1);
			/* what is refused is not told further */
			assert_int_equal(plugin_count(after, event, id), !refused);
			if (how == ANSWERS_AN_ERROR)
				assert_int_equal(nw_plugin(w, plugins[policy])->failed, 1);
			nw_sent_free(&sent);
			nw_free(w);
		}
}

static void policies_decide_about_a_pod(void **state)
{
	(void)state;
	policies_decide_about(CK_NRI_RUN_POD_SANDBOX);
}

static void policies_decide_about_a_container(void **state)
{
	(void)state;
	policies_decide_about(CK_NRI_CREATE_CONTAINER);
}

static void what_was_refused_is_undone_for_those_who_heard_of_it(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = with_rules();
	struct plugin *told = nw_ready(w, "05-first"), *refusing = nw_ready(w, "10-other"),
		      *not_told = nw_ready(w, "90-after");
	plugin_fails(refusing, CK_NRI_RUN_POD_SANDBOX, 2, "no");
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_string_equal(sent.refusal, "plugin 10-other: no");
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	nw_released(w, "s1", true);
	nw_settle(w);
	assert_string_equal(
		plugin_story(told),
		"Synchronize() RunPodSandbox(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_string_equal(
		plugin_story(refusing),
		"Synchronize() RunPodSandbox(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_string_equal(plugin_story(not_told), "Synchronize()");
	nw_free(w);
}

/* also for one that was late, and was not waited for */
static void what_was_refused_is_not_told_later(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = with_rules();
	struct plugin *late = nw_ready(w, plugins[CK_NRI_IGNORE]), *refusing = nw_ready(w, "90-no");
	plugin_rule(late, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", NULL);
	nw_advance(w, 2100 * MS);
	plugin_fails(refusing, CK_NRI_RUN_POD_SANDBOX, 2, "no");
	nw_pod(w, "s2");
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s2", &sent);
	nw_settle(w);
	assert_string_equal(sent.refusal, "plugin 90-no: no");
	plugin_rule(late, CK_NRI_RUN_POD_SANDBOX, PLUGIN_AGREES, 0);
	plugin_release(late);
	nw_settle(w);
	assert_string_equal(plugin_story(late), "Synchronize() RunPodSandbox(s1)");
	nw_sent_free(&sent);
	nw_free(w);
}

static void validate_answers(const char *reply, size_t len, const char *refusal)
{
	struct nw_sent sent;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-judge");
	p->mask = 1u << (CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT - 1);
	nw_settle(w);
	plugin_replies(p, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, reply, len);
	nw_run(w, "s1");
	nw_container(w, "c1", "s1");
	assert_int_equal(nw_choose(w, "c1", NULL, 0), 0);
	nw_send(w, CK_NRI_CREATE_CONTAINER, "c1", &sent);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	assert_string_equal(sent.refusal, refusal);
	nw_sent_free(&sent);
	nw_free(w);
}

static void a_validator_rejects_by_its_own_field_alone(void **state)
{
	static const char rejects[] = "\x08\x01\x12\x03mad", agrees[] = "\x08\x00\x12\x03mad",
			  /* fields of a later NRI */
		later[] = "\x0a\x01x\x28\x01";
	(void)state;
	validate_answers(rejects, sizeof(rejects) - 1, "plugin 10-judge rejects it: mad");
	validate_answers(agrees, sizeof(agrees) - 1, "");
	validate_answers(later, sizeof(later) - 1, "");
	validate_answers("\x08", 1, "plugin 10-judge rejects it: its answer cannot be read");
}

static void a_refusal_is_not_remembered(void **state)
{
	(void)state;
	struct nw *w = with_rules();
	struct plugin *p = nw_ready(w, "10-other");
	struct nw_sent sent;
	plugin_rule(p, CK_NRI_RUN_POD_SANDBOX, PLUGIN_FAILS, 1);
	p->rules[CK_NRI_RUN_POD_SANDBOX].code = 9;
	for (unsigned i = 0; i < 2; i++) {
		const char *id = i ? "s2" : "s1";
		nw_pod(w, id);
		assert_int_equal(nw_choose(w, id, NULL, 0), 0);
		nw_send(w, CK_NRI_RUN_POD_SANDBOX, id, &sent);
		nw_settle(w);
		assert_int_equal(sent.refusal[0] != '\0', i == 0);
	}
	nw_free(w);
}

/* ---- what cannot ----------------------------------------------------------------------------- */

static void nobody_fails_a_teardown(void **state)
{
	static const enum ck_nri_event events[] = {
		CK_NRI_STOP_POD_SANDBOX,      CK_NRI_REMOVE_POD_SANDBOX,
		CK_NRI_STOP_CONTAINER,        CK_NRI_REMOVE_CONTAINER,
		CK_NRI_POST_CREATE_CONTAINER, CK_NRI_POST_START_CONTAINER,
		CK_NRI_POST_UPDATE_CONTAINER, CK_NRI_POST_UPDATE_POD_SANDBOX
	};
	(void)state;
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		for (int policy = CK_NRI_IGNORE; policy <= CK_NRI_REQUIRED; policy++)
			for (int how = 0; how < IS_ABSENT; how++) {
				struct nw *w = world_of((enum ck_nri_policy)policy);
				struct nw_sent sent;
				bool pod = events[i] <= CK_NRI_REMOVE_POD_SANDBOX ||
					   events[i] == CK_NRI_POST_UPDATE_POD_SANDBOX;
				const char *id = pod ? "s1" : "c1";
				struct plugin *p = nw_ready(w, plugins[policy]),
					      *after = nw_ready(w, "90-after");
				nw_run(w, "s1");
				nw_create(w, "c1", "s1");
				fail_at(p, events[i], (enum failure)how);
				nw_send(w, events[i], id, &sent);
				nw_advance(w, 2100 * MS); /* at most its own deadline */
				if (sent.ended != 1 || sent.refusal[0])
					fail_msg("event %d, policy %d, failure %d: ended %u, '%s'",
						 (int)events[i], policy, how, sent.ended,
						 sent.refusal);
				/* R22, R28 */
				assert_int_equal(plugin_count(after, events[i], id), 1);
				nw_free(w);
			}
}

/* ---- required -------------------------------------------------------------------------------- */

static void nothing_is_committed_without_a_required_plugin(void **state)
{
	char names[CK_TOLD_MAX];
	(void)state;
	struct nw *w = with_required();
	struct plugin *other = nw_ready(w, "05-first");
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", names, sizeof(names)), 1);
	assert_string_equal(names, "required");
	nw_settle(w);
	assert_string_equal(plugin_story(other), "Synchronize()"); /* before any event */
	struct plugin *required = nw_ready(w, "33-required");      /* with any index */
	assert_string_equal(plugin_story(required), "Synchronize()");
	assert_int_equal(nw_choose(w, "s1", names, sizeof(names)), 0);
	assert_string_equal(names, "05-first 33-required");
	plugin_close(required);
	nw_settle(w);
	nw_pod(w, "s2");
	assert_int_equal(nw_choose(w, "s2", names, sizeof(names)), 1);
	nw_free(w);
}

static void a_create_before_it_exists_wants_it_too(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_new();
	w->options.rules = rules;
	w->options.rules_n = 3;
	w->options.adjust = CK_NRI_BEFORE_CREATE;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	struct plugin *other = nw_ready(w, "05-first");
	nw_container(w, "c1", "s1");
	struct ck_nri_call call = nw_call_of(w, CK_NRI_CREATE_CONTAINER, "c1");
	call.container_name = "app";
	call.container = "\x0a\x02"
			 "c1";
	call.container_len = 4;
	call.pod = "\x0a\x02s1";
	call.pod_len = 4;
	assert_int_equal(nw_send_call(w, &call, &sent), 0);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	assert_non_null(strstr(sent.refusal, "required"));
	assert_string_equal(plugin_story(other), "Synchronize()");
	nw_sent_free(&sent);
	nw_free(w);
}

/* ---- how long is waited ---------------------------------------------------------------------- */

static void who_is_ignored_is_waited_for_once(void **state)
{
	struct nw_sent first, second;
	(void)state;
	struct nw *w = with_rules();
	struct plugin *slow = nw_ready(w, "10-ignore"), *after = nw_ready(w, "90-after");
	plugin_rule(slow, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_pod(w, "s1");
	nw_pod(w, "s2");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &first);
	nw_settle(w);
	assert_int_equal(first.ended, 0);
	nw_advance(w, 2 * S);
	assert_int_equal(first.ended, 1);
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s2", &second);
	nw_settle(w); /* it is overdue: no time passes for the second */
	assert_int_equal(second.ended, 1);
	assert_int_equal(plugin_count(after, CK_NRI_RUN_POD_SANDBOX, "s2"), 1);
	assert_int_equal(plugin_count(slow, CK_NRI_RUN_POD_SANDBOX, "s2"), 0);
	plugin_release(slow);
	nw_settle(w);
	/* and it has it all the same */
	assert_int_equal(plugin_count(slow, CK_NRI_RUN_POD_SANDBOX, "s2"), 1);
	nw_free(w);
}

static void each_is_waited_for_its_own_deadline_only(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = with_rules();
	struct plugin *p[3] = { nw_ready(w, "10-a"), nw_ready(w, "20-b"), nw_ready(w, "30-c") };
	for (unsigned i = 0; i < 3; i++)
		plugin_rule(p[i], CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &sent);
	for (unsigned i = 0; i < 3; i++) {
		nw_advance(w, 1990 * MS);
		assert_int_equal(plugin_count(p[i], CK_NRI_RUN_POD_SANDBOX, "s1"), 1);
		assert_int_equal(i < 2 ? plugin_count(p[i + 1], CK_NRI_RUN_POD_SANDBOX, "s1")
				       : sent.ended,
				 0);
		nw_advance(w, 10 * MS);
		assert_int_equal(i < 2 ? plugin_count(p[i + 1], CK_NRI_RUN_POD_SANDBOX, "s1")
				       : sent.ended,
				 1);
	}
	assert_string_equal(sent.refusal, "");
	nw_free(w);
}

static void a_stalled_plugin_holds_up_one_pod_after_the_other_not_all(void **state)
{
	struct nw_sent stalled, other;
	(void)state;
	struct nw *w = with_rules();
	struct plugin *picky = nw_join(w, "10-a");
	picky->mask = 1u << (CK_NRI_STOP_POD_SANDBOX - 1); /* is not asked about new pods */
	nw_settle(w);
	struct plugin *all = nw_ready(w, "20-b");
	nw_run(w, "s1");
	plugin_rule(picky, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 0);
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", &stalled);
	nw_settle(w);
	nw_pod(w, "s2");
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s2", &other);
	nw_settle(w);
	assert_int_equal(stalled.ended, 0);
	assert_int_equal(other.ended, 1); /* N8 of Go's side: everybody would wait */
	assert_int_equal(plugin_count(all, CK_NRI_RUN_POD_SANDBOX, "s2"), 1);
	nw_free(w);
}

/* ---- a plugin that hangs harms itself -------------------------------------------------------- */

#define EVERYTHING 0x3fffu

/* an event, until it has ended */
static void tell(struct nw *w, enum ck_nri_event event, const char *id)
{
	struct nw_sent sent;
	nw_send(w, event, id, &sent);
	nw_settle(w);
	for (unsigned i = 0; !sent.ended && i < 1000; i++)
		nw_advance(w, 10 * MS);
	assert_int_equal(sent.ended, 1);
	if (sent.refusal[0])
		fail_msg("event %d of %s: %s", (int)event, id, sent.refusal);
	nw_sent_free(&sent);
}

/* in time order: the whole life of pod number @i, and of a container in it */
static void live(struct nw *w, unsigned i)
{
	char pod[16], container[16];
	snprintf(pod, sizeof(pod), "s%u", i);
	snprintf(container, sizeof(container), "c%u", i);
	nw_pod(w, pod);
	assert_int_equal(nw_choose(w, pod, NULL, 0), 0);
	tell(w, CK_NRI_RUN_POD_SANDBOX, pod);
	nw_container(w, container, pod);
	assert_int_equal(nw_choose(w, container, NULL, 0), 0);
	tell(w, CK_NRI_CREATE_CONTAINER, container);
	for (int event = CK_NRI_POST_CREATE_CONTAINER; event <= CK_NRI_REMOVE_CONTAINER; event++)
		tell(w, (enum ck_nri_event)event, container);
	tell(w, CK_NRI_STOP_POD_SANDBOX, pod);
	tell(w, CK_NRI_REMOVE_POD_SANDBOX, pod);
}

static void a_frozen_plugin_costs_one_deadline(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p[3];
	for (unsigned i = 0; i < 3; i++) {
		p[i] = nw_join(w, i == 0 ? "10-good" : i == 1 ? "20-frozen" : "30-good");
		p[i]->mask = EVERYTHING;
		nw_settle(w);
	}
	p[1]->deaf = true; /* as after SIGSTOP */
	uint64_t began = nw_now(w);
	for (unsigned i = 0; i < 20; i++)
		live(w, i);
	uint64_t took = nw_now(w) - began;
	if (took > CK_NRI_REQUEST_TIMEOUT)
		fail_msg("20 pods took %llu ms", (unsigned long long)(took / MS));
	for (unsigned i = 0; i < 3; i += 2)
		for (int event = 1; event <= CK_NRI_REMOVE_CONTAINER; event++)
			assert_int_equal(plugin_count(p[i], event, NULL), 20);
	assert_int_equal(plugin_count(p[2], CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, NULL), 20);
	nw_free(w);
}

/* the deadline of the first is the deadline of all that wait for the same plugin */
static void those_who_wait_for_it_already_go_on(void **state)
{
	struct nw_sent sent[4];
	(void)state;
	struct nw *w = nw_started();
	struct plugin *frozen = nw_ready(w, "20-frozen"), *good = nw_ready(w, "30-good");
	frozen->deaf = true;
	for (unsigned i = 0; i < 4; i++) {
		char pod[16];
		snprintf(pod, sizeof(pod), "s%u", i);
		nw_pod(w, pod);
		assert_int_equal(nw_choose(w, pod, NULL, 0), 0);
		nw_send(w, CK_NRI_RUN_POD_SANDBOX, pod, &sent[i]);
		nw_settle(w);
		nw_advance(w, 500 * MS);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(sent[i].ended, 1);
	assert_int_equal(plugin_count(good, CK_NRI_RUN_POD_SANDBOX, NULL), 4);
	nw_free(w);
}

/* one that can fail an event is waited for each time, but not at an end, which it cannot fail */
static void who_can_fail_it_is_waited_for(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = with_rules();
	struct plugin *slow = nw_ready(w, "10-fail");
	nw_run(w, "s1");
	slow->deaf = true;
	for (unsigned i = 2; i < 4; i++) {
		const char *id = i == 2 ? "s2" : "s3";
		nw_pod(w, id);
		assert_int_equal(nw_choose(w, id, NULL, 0), 0);
		nw_send(w, CK_NRI_RUN_POD_SANDBOX, id, &sent);
		nw_advance(w, 1990 * MS);
		assert_int_equal(sent.ended, 0);
		nw_advance(w, 10 * MS);
		assert_int_equal(sent.ended, 1);
		assert_string_equal(sent.refusal, "plugin 10-fail: no answer within 2s");
	}
	assert_string_equal(nw_plugin(w, "10-fail")->state, "overdue");
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	nw_free(w);
}

/* A validator that hangs is no exception: by default its silence fails nothing. */
static void a_validator_that_hangs_fails_nothing_by_default(void **state)
{
	(void)state;
	for (int policy = CK_NRI_IGNORE; policy <= CK_NRI_FAIL; policy++) {
		struct nw *w = with_rules();
		struct nw_sent sent;
		struct plugin *p = nw_join(w, plugins[policy]);
		p->mask = 1u << (CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT - 1);
		nw_settle(w);
		nw_run(w, "s1");
		plugin_rule(p, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, PLUGIN_HOLDS, 0);
		for (unsigned i = 0; i < 2; i++) {
			const char *id = i ? "c2" : "c1";
			nw_container(w, id, "s1");
			assert_int_equal(nw_choose(w, id, NULL, 0), 0);
			nw_send(w, CK_NRI_CREATE_CONTAINER, id, &sent);
			nw_settle(w);
			assert_int_equal(sent.ended, i == 1 && policy < CK_NRI_FAIL);
			nw_advance(w, 2 * S);
			assert_int_equal(sent.ended, 1);
			assert_int_equal(sent.refusal[0] != '\0', policy == CK_NRI_FAIL);
			nw_sent_free(&sent);
		}
		/* nor is it asked when nobody waits for what it says */
		plugin_rule(p, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, PLUGIN_AGREES, 0);
		plugin_release(p);
		nw_settle(w);
		assert_int_equal(plugin_count(p, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, NULL),
				 policy < CK_NRI_FAIL ? 1 : 2);
		nw_free(w);
	}
}

/* ---- what a plugin asks for itself ----------------------------------------------------------- */

/* with its own policy; it is synchronized */
static struct plugin *picky(struct nw *w, const char *name, bool fail_request, bool keep_connected)
{
	struct plugin *p = nw_join(w, name);
	p->fail_request = fail_request;
	p->keep_connected = keep_connected;
	nw_settle(w);
	assert_true(p->synchronized);
	return p;
}

static void a_plugin_may_ask_for_a_stronger_policy(void **state)
{
	static const enum ck_nri_policy with_it[] = {
		[CK_NRI_IGNORE] = CK_NRI_FAIL,
		[CK_NRI_ERROR] = CK_NRI_FAIL,
		[CK_NRI_FAIL] = CK_NRI_FAIL,
		[CK_NRI_REQUIRED] = CK_NRI_REQUIRED,
	};
	(void)state;
	for (int policy = CK_NRI_IGNORE; policy <= CK_NRI_REQUIRED; policy++)
		for (int asks = 0; asks <= 1; asks++) {
			struct nw *w = world_of((enum ck_nri_policy)policy);
			struct nw_sent sent;
			struct plugin *p = picky(w, plugins[policy], asks, false);
			enum ck_nri_policy is = asks ? with_it[policy] : (enum ck_nri_policy)policy;
			assert_int_equal(nw_plugin(w, plugins[policy])->policy, is);
			assert_int_equal(nw_plugin(w, plugins[policy])->keep_connected, 0);
			plugin_rule(p, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
			nw_pod(w, "s1");
			assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
			nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &sent);
			nw_advance(w, 2 * S);
			assert_int_equal(sent.ended, 1);
			assert_int_equal(sent.refusal[0] != '\0', is >= CK_NRI_FAIL);
			nw_free(w);
		}
}

static void who_asks_to_be_kept_is_skipped_and_not_disconnected(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = picky(w, "10-a", false, true);
	assert_int_equal(nw_plugin(w, "10-a")->keep_connected, 1);
	assert_int_equal(nw_plugin(w, "10-a")->policy, CK_NRI_ERROR);
	plugin_rule(p, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_run(w, "s1");
	nw_advance(w, 3600 * S);
	assert_false(p->ended);
	assert_string_equal(nw_plugin(w, "10-a")->state, "overdue");
	nw_pod(w, "s2");
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s2", &sent);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	plugin_rule(p, PLUGIN_SYNCHRONIZE, PLUGIN_AGREES, 0);
	plugin_release(p);
	nw_settle(w);
	assert_string_equal(plugin_story(p), "Synchronize() RunPodSandbox(s1) RunPodSandbox(s2)");
	assert_string_equal(nw_plugin(w, "10-a")->state, "ready");
	nw_free(w);
}

static void a_failure_policy_that_cannot_be_read_is_not_ignored(void **state)
{
	static const unsigned char cut[] = { 3 << 3 | 2, 1, 1 << 3 };
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-a");
	plugin_replies(p, PLUGIN_CONFIGURE, cut, sizeof(cut));
	nw_settle(w);
	assert_true(p->ended);
	assert_string_equal(nw_plugin(w, "10-a")->last_error,
			    "its answer to Configure cannot be read");
	nw_free(w);
}

static void why_a_plugin_was_disconnected_is_seen(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *slow = nw_ready(w, "10-a"), *other = nw_ready(w, "20-b");
	plugin_rule(slow, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	nw_run(w, "s1");
	nw_advance(w, 2 * S + CK_NRI_OVERDUE_TIMES * CK_NRI_REQUEST_TIMEOUT);
	assert_true(slow->ended);
	plugin_close(other); /* as it wanted: there is nothing to say of it */
	nw_settle(w);
	assert_null(nw_plugin(w, "20-b"));
	const struct ck_nri_plugin *gone = nw_plugin(w, "10-a");
	assert_non_null(gone);
	assert_string_equal(gone->state, "gone");
	assert_string_equal(gone->last_error, "RunPodSandbox: no answer within 12s");
	assert_int_equal(gone->late, 1);
	assert_int_equal(gone->events, 0);
	nw_ready(w, "10-a");
	assert_string_equal(nw_plugin(w, "10-a")->state, "ready");
	assert_int_equal(nw_connected(w), 1);
	/* the oldest make room */
	for (unsigned i = 0; i <= CK_NRI_GONE_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%02u-broken", i);
		plugin_write(nw_ready(w, name), "\0\0\0\3\xff\xff\xff\xff", 8);
		nw_settle(w);
	}
	assert_null(nw_plugin(w, "00-broken"));
	assert_string_equal(nw_plugin(w, "01-broken")->state, "gone");
	assert_int_equal(nw_connected(w), 1);
	nw_free(w);
}

/* ---- a plugin that hangs in Synchronize ------------------------------------------------------ */

static struct plugin *hangs(struct nw *w, const char *name)
{
	struct plugin *p = nw_join(w, name);
	p->mask = 0x3fff; /* it would validate, too */
	plugin_rule(p, PLUGIN_SYNCHRONIZE, PLUGIN_HOLDS, 0);
	nw_settle(w);
	assert_string_equal(nw_plugin(w, name)->state, "synchronizing");
	return p;
}

static void run_pod(struct nw *w, const char *id, struct nw_sent *sent)
{
	nw_pod(w, id);
	assert_int_equal(nw_choose(w, id, NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, id, sent);
	nw_settle(w);
}

/* one time-out, once: then it is overdue, and what goes on goes on without it */
static void who_hangs_in_synchronize_harms_nobody_else(void **state)
{
	struct nw_sent first, others[20];
	(void)state;
	struct nw *w = nw_started();
	struct plugin *well = nw_ready(w, "20-b"), *hung = hangs(w, "10-a");
	nw_advance(w, S);
	run_pod(w, "s1", &first);
	nw_advance(w, S - MS);
	assert_int_equal(first.ended, 0);
	nw_advance(w, MS); /* two seconds after Synchronize, one after the event */
	assert_int_equal(first.ended, 1);
	assert_string_equal(first.refusal, "");
	const struct ck_nri_plugin *seen = nw_plugin(w, "10-a");
	assert_string_equal(seen->state, "overdue");
	assert_true(seen->overdue_since == nw_now(w));
	assert_int_equal(seen->late, 1);
	assert_string_equal(seen->last_error, "Synchronize: no answer within 2s");
	for (unsigned i = 0; i < 10; i++) { /* no time passes for them */
		char pod[16], container[16];
		snprintf(pod, sizeof(pod), "p%u", i);
		snprintf(container, sizeof(container), "c%u", i);
		run_pod(w, pod, &others[2 * i]);
		nw_container(w, container, pod);
		assert_int_equal(nw_choose(w, container, NULL, 0), 0);
		nw_send(w, CK_NRI_CREATE_CONTAINER, container, &others[2 * i + 1]);
		nw_settle(w);
	}
	for (unsigned i = 0; i < CK_COUNT(others); i++) {
		assert_int_equal(others[i].ended, 1);
		assert_string_equal(others[i].refusal, "");
		nw_sent_free(&others[i]);
	}
	assert_int_equal(plugin_count(well, CK_NRI_RUN_POD_SANDBOX, NULL), 11);
	assert_int_equal(plugin_count(well, CK_NRI_CREATE_CONTAINER, NULL), 10);
	nw_advance(w, CK_NRI_SYNCHRONIZE_TIMEOUT - CK_NRI_REQUEST_TIMEOUT - MS);
	assert_false(hung->ended);
	nw_advance(w, MS);
	assert_true(hung->ended);
	seen = nw_plugin(w, "10-a");
	assert_string_equal(seen->state, "gone");
	assert_string_equal(seen->last_error, "Synchronize: no answer within 10s");
	nw_sent_free(&first);
	nw_free(w);
}

static void who_answers_synchronize_late_misses_nothing(void **state)
{
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = hangs(w, "10-a");
	run_pod(w, "s1", &sent);
	nw_advance(w, 5 * S);
	assert_int_equal(sent.ended, 1);
	plugin_rule(p, PLUGIN_SYNCHRONIZE, PLUGIN_AGREES, 0);
	plugin_release(p);
	nw_settle(w);
	assert_string_equal(nw_plugin(w, "10-a")->state, "ready");
	assert_true(nw_plugin(w, "10-a")->overdue_since == 0);
	assert_string_equal(plugin_story(p), "Synchronize() RunPodSandbox(s1)");
	nw_sent_free(&sent);
	nw_free(w);
}

/* its silence fails the event: that is what this policy says */
static void with_fail_who_hangs_in_synchronize_fails_each_event(void **state)
{
	struct nw_sent first, second;
	(void)state;
	struct nw *w = with_rules();
	hangs(w, "10-fail");
	run_pod(w, "s1", &first);
	nw_advance(w, CK_NRI_REQUEST_TIMEOUT);
	assert_string_equal(first.refusal, "plugin 10-fail: no answer within 2s");
	run_pod(w, "s2", &second);
	assert_int_equal(second.ended, 0);
	nw_advance(w, CK_NRI_REQUEST_TIMEOUT);
	assert_string_equal(second.refusal, "plugin 10-fail: no answer within 2s");
	nw_sent_free(&first);
	nw_sent_free(&second);
	nw_free(w);
}

/* nobody waits for a list either that the host does not complete */
static void a_host_that_describes_slowly_delays_no_event_for_long(void **state)
{
	struct plugin_buffer pod = { .p = NULL };
	struct nw_sent sent;
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	w->hold[NW_DESCRIBE] = true;
	struct plugin *p = nw_join(w, "10-a");
	nw_advance(w, CK_NRI_REQUEST_TIMEOUT);
	nw_message(nw_pod(w, "s2"), &pod);
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	struct ck_nri_call call = nw_call_of(w, CK_NRI_RUN_POD_SANDBOX, "s2");
	call.pod = pod.p;
	call.pod_len = pod.len;
	assert_int_equal(nw_send_call(w, &call, &sent), 0);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	assert_string_equal(nw_plugin(w, "10-a")->state, "synchronizing"); /* it owes nothing */
	nw_release(w, NW_DESCRIBE);
	nw_settle(w);
	assert_string_equal(plugin_story(p), "Synchronize(s1) RunPodSandbox(s2)");
	plugin_bytes_free(&pod);
	nw_sent_free(&sent);
	nw_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_decide_about_a_pod),
		cmocka_unit_test(policies_decide_about_a_container),
		cmocka_unit_test(what_was_refused_is_undone_for_those_who_heard_of_it),
		cmocka_unit_test(what_was_refused_is_not_told_later),
		cmocka_unit_test(a_validator_rejects_by_its_own_field_alone),
		cmocka_unit_test(a_refusal_is_not_remembered),
		cmocka_unit_test(nobody_fails_a_teardown),
		cmocka_unit_test(nothing_is_committed_without_a_required_plugin),
		cmocka_unit_test(a_create_before_it_exists_wants_it_too),
		cmocka_unit_test(who_is_ignored_is_waited_for_once),
		cmocka_unit_test(each_is_waited_for_its_own_deadline_only),
		cmocka_unit_test(a_stalled_plugin_holds_up_one_pod_after_the_other_not_all),
		cmocka_unit_test(a_frozen_plugin_costs_one_deadline),
		cmocka_unit_test(those_who_wait_for_it_already_go_on),
		cmocka_unit_test(who_can_fail_it_is_waited_for),
		cmocka_unit_test(a_validator_that_hangs_fails_nothing_by_default),
		cmocka_unit_test(a_plugin_may_ask_for_a_stronger_policy),
		cmocka_unit_test(who_asks_to_be_kept_is_skipped_and_not_disconnected),
		cmocka_unit_test(a_failure_policy_that_cannot_be_read_is_not_ignored),
		cmocka_unit_test(why_a_plugin_was_disconnected_is_seen),
		cmocka_unit_test(who_hangs_in_synchronize_harms_nobody_else),
		cmocka_unit_test(who_answers_synchronize_late_misses_nothing),
		cmocka_unit_test(with_fail_who_hangs_in_synchronize_fails_each_event),
		cmocka_unit_test(a_host_that_describes_slowly_delays_no_event_for_long),
	};
	return CK_TEST_MAIN(tests);
}
