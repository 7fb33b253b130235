/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator can look up afterwards: the history of a real cache names the plugins that were
 * really sent an event, and the status file shows the connections as they are.
 */
#include <string.h>
#include <sys/stat.h>

#include "hooks/status-file.h"
#include "src/base/bytes.h"
#include "src/base/mem.h"
#include "src/crikeep-nri.h"
#include "tests/flow/fixture.h"
#include "tests/flow/nri-peer.h"

#define S       CK_NS_PER_S
#define PLUGINS 3

struct story {
	struct fixture *f;
	struct ck_nri *nri;
	struct ck_hooks hooks;
	char socket[300], file[300];
	struct plugin *plugins[PLUGINS];
	struct ck_nri_status *status;
};

static bool asked_before; /* then plugins have another id for containers */

static void describe(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	CK_AUTO_BYTES struct ck_bytes bytes = { 0 };
	(void)userdata;
	ck_bytes_field_text(&bytes, 1, asked_before && kind == CK_CONTAINER ? "an-id-of-ours" : id);
	if (kind == CK_CONTAINER)
		ck_bytes_field_number(&bytes, 4, 1); /* created */
	ck_nri_job_done(job, 0, bytes.p, bytes.len);
}

static void no_log(enum ck_log_level level, const char *text, void *userdata)
{
	(void)level, (void)text, (void)userdata;
}

static uint64_t now(void *userdata)
{
	return fx_now(userdata);
}

/* everybody does what can be done now */
static void settle(struct story *s)
{
	for (int quiet = 0; quiet < 3;) {
		bool moved = false;
		fx_settle(s->f);
		assert_int_equal(ck_nri_process(s->nri, &s->f->err), 0);
		for (size_t i = 0; i < PLUGINS; i++)
			moved = (s->plugins[i] && plugin_step(s->plugins[i])) || moved;
		quiet = moved ? 0 : quiet + 1;
	}
}

static void join(struct story *s, size_t i, const char *name, uint32_t mask)
{
	s->plugins[i] = plugin_dial(s->socket, name);
	assert_non_null(s->plugins[i]);
	s->plugins[i]->mask = mask;
	settle(s);
	assert_true(s->plugins[i]->synchronized);
}

static int set_up_with(void **state, const struct ck_nri_rule *rule)
{
	static const struct ck_nri_host host = { .size = sizeof(host),
						 .describe = describe,
						 .log = no_log };
	struct story *s = calloc(1, sizeof(*s));
	asked_before = false;
	s->f = fixture_new();
	snprintf(s->socket, sizeof(s->socket), "%s/nri.sock", s->f->dir);
	snprintf(s->file, sizeof(s->file), "%s/" CK_STATUS_FILE, s->f->dir);
	const struct ck_nri_options options = { .size = sizeof(options),
						.host = &host,
						.socket_path = s->socket,
						.status_path = s->file,
						.rules = rule,
						.rules_n = 1,
						.clock = now,
						.clock_userdata = s->f };
	assert_int_equal(ck_nri_open(&options, &s->nri, &s->f->err), 0);
	s->hooks.size = sizeof(s->hooks);
	assert_int_equal(ck_nri_hooks(s->nri, &s->hooks), 0);
	s->f->options.hooks = &s->hooks;
	fx_open(s->f);
	assert_int_equal(ck_nri_start(s->nri, s->f->cache, &s->f->err), 0);
	*state = s;
	return 0;
}

static int set_up(void **state)
{
	static const struct ck_nri_rule slow = { "slow", CK_NRI_IGNORE };
	return set_up_with(state, &slow);
}

static int set_up_required(void **state)
{
	static const struct ck_nri_rule must = { "must", CK_NRI_REQUIRED };
	return set_up_with(state, &must);
}

static int tear_down(void **state)
{
	struct story *s = *state;
	for (size_t i = 0; i < PLUGINS; i++)
		plugin_free(s->plugins[i]);
	ck_nri_close(s->nri);
	ck_status_free(s->status);
	fixture_free(s->f);
	free(s);
	return 0;
}

#define RUN         (1u << (CK_NRI_RUN_POD_SANDBOX - 1))
#define STOP        (1u << (CK_NRI_STOP_POD_SANDBOX - 1))
#define REMOVE      (1u << (CK_NRI_REMOVE_POD_SANDBOX - 1))
#define CREATE      (1u << (CK_NRI_CREATE_CONTAINER - 1))
#define VALIDATE    (1u << (CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT - 1))
#define POST_CREATE (1u << (CK_NRI_POST_CREATE_CONTAINER - 1))

static struct ck_turn *make(struct story *s, const struct fx_ask *ask, const char *id)
{
	struct ck_turn *turn = fx_create(s->f, ask);
	assert_int_equal(fx_make(s->f, turn, ask, id), CK_WAIT);
	settle(s);
	return turn;
}

static void the_history_names_who_was_sent_what(void **state)
{
	struct story *s = *state;
	struct fx_ask pod = fx_sandbox("web"), next = pod;
	next.attempt = 1;
	join(s, 0, "10-net", RUN | STOP | REMOVE);
	join(s, 1, "20-quiet", STOP);
	struct ck_turn *turn = make(s, &pod, "s1");
	fx_answered_with(s->f, turn, "s1");
	ck_turn_free(turn);
	assert_string_equal(fx_told(s->f), "TOLD s1: 10-net"); /* both were chosen */
	ck_object_removed(s->f->cache, CK_SANDBOX, "s1");
	plugin_fails(s->plugins[0], CK_NRI_RUN_POD_SANDBOX, 2, "not here");
	join(s, 2, "30-late", RUN | STOP | REMOVE);
	turn = make(s, &next, "s2");
	assert_int_equal(fx_decision(s->f, turn), -CK_EREFUSED);
	ck_turn_free(turn);
	settle(s);
	/* the last one was not asked any more, and so it is not told of the end either */
	const char *told =
		"TOLD s1: 10-net|TOLD s2: 10-net|STOP_TOLD s2: 10-net|REMOVE_TOLD s2: 10-net";
	assert_string_equal(fx_told(s->f), told);
	assert_int_equal(plugin_count(s->plugins[2], CK_NRI_STOP_POD_SANDBOX, "s2"), 0);
}

/* another attempt: the one that is being asked is waited for, and no other is asked (K13) */
static void what_is_given_up_meanwhile_is_told_no_further(void **state)
{
	struct story *s = *state;
	struct fx_ask pod = fx_sandbox("web"), next = pod;
	next.attempt = 1;
	join(s, 0, "10-net", RUN | STOP | REMOVE);
	join(s, 1, "20-cpu", RUN | STOP | REMOVE);
	plugin_rule(s->plugins[0], CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 1);
	struct ck_turn *turn = make(s, &pod, "s1"), *newer = fx_wait(s->f, &next);
	settle(s);
	plugin_release(s->plugins[0]);
	settle(s);
	assert_int_equal(fx_decision(s->f, turn), -CK_EABANDONED);
	assert_int_equal(plugin_count(s->plugins[0], CK_NRI_STOP_POD_SANDBOX, "s1"), 1);
	assert_int_equal(plugin_count(s->plugins[1], CK_NRI_RUN_POD_SANDBOX, "s1"), 0);
	ck_turn_free(turn);
	ck_turn_free(newer);
}

static void a_container_is_told_of_in_one_line(void **state)
{
	struct story *s = *state;
	struct fx_ask app = fx_container("web", "s0", "app");
	join(s, 0, "10-net", CREATE | POST_CREATE);
	struct ck_turn *turn = make(s, &app, "c1");
	fx_answered_with(s->f, turn, "c1");
	ck_turn_free(turn);
	assert_int_equal(plugin_count(s->plugins[0], CK_NRI_POST_CREATE_CONTAINER, "c1"), 1);
	assert_string_equal(fx_told(s->f), "TOLD c1: 10-net");
}

static void ignore(const struct ck_nri_result *result, void *userdata)
{
	(void)userdata;
	assert_null(result->refusal);
}

static void ask_before(struct story *s)
{
	static const char container[] = "\x0a\x0d" "an-id-of-ours";
	const struct ck_nri_call call = { .size = sizeof(call),
					  .event = CK_NRI_CREATE_CONTAINER,
					  .pod_id = "s0",
					  .container_id = "an-id-of-ours",
					  .container_name = "app",
					  .container = container,
					  .container_len = sizeof(container) - 1 };
	asked_before = true;
	assert_int_equal(ck_nri_send(s->nri, &call, ignore, NULL, &s->f->err), 0);
	settle(s);
}

/* who was asked before it was made is told of it, and what was validated then is not validated once
 * more */
static void who_was_asked_before_the_creation_is_named_at_the_commit(void **state)
{
	struct story *s = *state;
	struct fx_ask app = fx_container("web", "s0", "app");
	join(s, 0, "10-net", CREATE | POST_CREATE);
	join(s, 1, "20-judge", VALIDATE);
	ask_before(s);
	assert_int_equal(plugin_count(s->plugins[1], CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, NULL),
			 1);
	join(s, 2, "30-late", CREATE);
	struct ck_turn *turn = make(s, &app, "c1");
	fx_answered_with(s->f, turn, "c1");
	ck_turn_free(turn);
	assert_int_equal(plugin_count(s->plugins[0], CK_NRI_CREATE_CONTAINER, NULL), 1);
	assert_int_equal(plugin_count(s->plugins[2], CK_NRI_CREATE_CONTAINER, NULL), 1);
	/* there was somebody new to ask */
	assert_int_equal(plugin_count(s->plugins[1], CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, NULL),
			 2);
	assert_string_equal(fx_told(s->f), "TOLD c1: 10-net 30-late");
}

static void what_was_validated_before_the_creation_is_not_validated_again(void **state)
{
	struct story *s = *state;
	struct fx_ask app = fx_container("web", "s0", "app");
	join(s, 0, "10-net", CREATE | POST_CREATE);
	join(s, 1, "20-judge", VALIDATE);
	ask_before(s);
	struct ck_turn *turn = make(s, &app, "c1");
	fx_answered_with(s->f, turn, "c1");
	ck_turn_free(turn);
	assert_int_equal(plugin_count(s->plugins[1], CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT, NULL),
			 1);
	assert_string_equal(fx_told(s->f), "TOLD c1: 10-net");
	/* as it is now, not as it was asked for */
	const struct plugin_heard *heard = plugin_last(s->plugins[0], CK_NRI_POST_CREATE_CONTAINER);
	assert_non_null(memmem(heard->payload, heard->len, "\x20\x01", 2));
}

static void end(struct story *s, enum ck_nri_event event)
{
	const struct ck_nri_call call = { .size = sizeof(call), .event = event, .pod_id = "s1" };
	assert_int_equal(ck_nri_send(s->nri, &call, ignore, NULL, &s->f->err), 0);
	settle(s);
}

/* the kubelet wants it to end: no hook is fired, and the history says it all the same */
static void an_end_that_the_host_sends_is_in_the_history(void **state)
{
	struct story *s = *state;
	struct fx_ask pod = fx_sandbox("web");
	join(s, 0, "10-net", RUN | STOP | REMOVE);
	join(s, 1, "20-late", RUN | STOP);
	struct ck_turn *turn = make(s, &pod, "s1");
	fx_answered_with(s->f, turn, "s1");
	ck_turn_free(turn);
	assert_string_equal(fx_told(s->f), "TOLD s1: 10-net 20-late");
	end(s, CK_NRI_STOP_POD_SANDBOX);
	assert_string_equal(fx_told(s->f), "TOLD s1: 10-net 20-late|STOP_TOLD s1: 10-net 20-late");
	end(s, CK_NRI_REMOVE_POD_SANDBOX);
	end(s, CK_NRI_STOP_POD_SANDBOX); /* nobody is told twice, and that is no line */
	assert_string_equal(fx_told(s->f), "TOLD s1: 10-net 20-late|STOP_TOLD s1: 10-net 20-late|"
					   "REMOVE_TOLD s1: 10-net");
}

static void an_end_may_outlive_the_cache(void **state)
{
	struct story *s = *state;
	const struct ck_nri_call call = { .size = sizeof(call),
					  .event = CK_NRI_STOP_POD_SANDBOX,
					  .pod_id = "s1" };
	assert_int_equal(ck_nri_send(s->nri, &call, ignore, NULL, &s->f->err), 0);
	assert_int_equal(ck_cache_close(s->f->cache, &s->f->err), 0);
	s->f->cache = NULL; /* ck_nri_close() calls back */
}

static void what_is_withdrawn_unsent_was_not_told(void **state)
{
	struct story *s = *state;
	struct fx_ask first = fx_sandbox("web"), second = fx_sandbox("db"), bumped = second;
	bumped.attempt = 1;
	join(s, 0, "10-net", RUN | STOP | REMOVE);
	plugin_rule(s->plugins[0], CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	struct ck_turn *held = make(s, &first, "s1");
	struct ck_turn *behind = make(s, &second, "s2"); /* its event waits behind that one */
	struct ck_turn *newer = fx_wait(s->f, &bumped);
	settle(s);
	assert_int_equal(fx_decision(s->f, newer), CK_CREATE);
	fx_advance(s->f, CK_NRI_REQUEST_TIMEOUT);
	settle(s);
	fx_answered_with(s->f, held, "s1");
	ck_turn_free(held);
	ck_turn_free(behind);
	ck_turn_free(newer);
	assert_true(fx_was_destroyed(s->f, "s2"));
	assert_string_equal(fx_told(s->f), "TOLD s1: 10-net");
}

/* a pod that a plugin has to agree to is not handed over while the plugin is still in its hook */
static void what_a_plugin_did_not_agree_to_in_time_is_undone(void **state)
{
	struct story *s = *state;
	struct fx_ask pod = fx_sandbox("web");
	s->plugins[0] = plugin_dial(s->socket, "10-net");
	s->plugins[0]->fail_request = true;
	settle(s);
	plugin_rule(s->plugins[0], CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	struct ck_turn *turn = make(s, &pod, "s1");
	fx_advance(s->f, CK_NRI_REQUEST_TIMEOUT);
	settle(s);
	assert_int_equal(fx_decision(s->f, turn), -CK_EREFUSED);
	assert_non_null(strstr(ck_turn_error(turn)->text, "plugin 10-net: no answer within 2s"));
	ck_turn_free(turn);
	settle(s);
	assert_true(fx_was_destroyed(s->f, "s1"));
	plugin_rule(s->plugins[0], CK_NRI_RUN_POD_SANDBOX, PLUGIN_AGREES, 0);
	plugin_release(s->plugins[0]);
	settle(s);
	assert_string_equal(
		plugin_story(s->plugins[0]),
		"Synchronize() RunPodSandbox(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
}

static void without_plugins_nothing_is_said(void **state)
{
	struct story *s = *state;
	struct fx_ask pod = fx_sandbox("web");
	fx_commit(s->f, &pod, "s1");
	assert_string_equal(fx_told(s->f), "");
}

static const struct ck_nri_plugin *seen(struct story *s, size_t n, const char *name)
{
	fx_advance(s->f, CK_NRI_STATUS_PAUSE);
	settle(s);
	ck_status_free(s->status);
	s->status = NULL;
	if (ck_status_read(s->file, &s->status, &s->f->err) < 0)
		fail_msg("%s", s->f->err.text);
	assert_int_equal(s->status->n, n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s->status->plugins[i].name, name))
			return &s->status->plugins[i];
	fail_msg("no %s", name);
	return NULL;
}

static void the_status_file_shows_who_is_connected(void **state)
{
	struct story *s = *state;
	struct fx_ask pod = fx_sandbox("web");
	join(s, 0, "10-slow", RUN | STOP);
	uint64_t joined = fx_now(s->f);
	const struct ck_nri_plugin *plugin = seen(s, 1, "10-slow");
	assert_string_equal(plugin->state, "ready");
	assert_int_equal(plugin->policy, CK_NRI_IGNORE);
	assert_int_equal(plugin->events, RUN | STOP);
	assert_int_equal(plugin->pid, getpid());
	assert_true(plugin->since == joined);
	plugin_rule(s->plugins[0], CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	struct ck_turn *turn = make(s, &pod, "s1");
	fx_advance(s->f, CK_NRI_REQUEST_TIMEOUT);
	settle(s);
	fx_answered_with(s->f, turn, "s1");
	ck_turn_free(turn);
	plugin = seen(s, 1, "10-slow");
	assert_string_equal(plugin->state, "overdue");
	assert_int_equal(plugin->sent, 1);
	assert_int_equal(plugin->late, 1);
	assert_true(plugin->overdue_since == joined + CK_NRI_STATUS_PAUSE + CK_NRI_REQUEST_TIMEOUT);
	assert_non_null(strstr(plugin->last_error, "RunPodSandbox"));
	join(s, 1, "05-first", RUN);
	seen(s, 2, "10-slow");
	assert_string_equal(s->status->plugins[0].name, "05-first"); /* as they are called */
	plugin_free(s->plugins[0]);
	s->plugins[0] = NULL;
	settle(s);
	plugin = seen(s, 2, "10-slow"); /* what was wrong with it can still be seen */
	assert_string_equal(plugin->state, CK_STATUS_GONE);
	assert_int_equal(plugin->late, 1);
	assert_non_null(strstr(plugin->last_error, "RunPodSandbox"));
	assert_string_equal(s->status->plugins[0].name, "05-first");
	join(s, 0, "10-slow", RUN);
	assert_string_equal(seen(s, 2, "10-slow")->state, "ready");
}

/* why nothing is handed over is to be seen where one looks for it */
static void the_status_file_shows_which_required_plugin_is_absent(void **state)
{
	struct story *s = *state;
	settle(s);
	assert_string_equal(seen(s, 1, "must")->state, CK_STATUS_ABSENT);
	assert_int_equal(s->status->plugins[0].policy, CK_NRI_REQUIRED);
	join(s, 0, "10-must", RUN);
	assert_string_equal(seen(s, 1, "10-must")->state, "ready");
	plugin_close(s->plugins[0]);
	settle(s);
	seen(s, 1, "must");
}

/* one line says that it is missed, the other one why it has gone */
static void a_required_plugin_with_an_error_is_absent_and_gone(void **state)
{
	struct story *s = *state;
	struct fx_ask pod = fx_sandbox("web");
	join(s, 0, "10-must", RUN);
	plugin_rule(s->plugins[0], CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	struct ck_turn *turn = make(s, &pod, "s1");
	fx_advance(s->f, CK_NRI_REQUEST_TIMEOUT);
	settle(s);
	ck_turn_free(turn);
	plugin_free(s->plugins[0]);
	s->plugins[0] = NULL;
	settle(s);
	assert_string_equal(seen(s, 2, "must")->state, CK_STATUS_ABSENT);
	const struct ck_nri_plugin *gone = seen(s, 2, "10-must");
	assert_string_equal(gone->state, CK_STATUS_GONE);
	assert_int_equal(gone->policy, CK_NRI_REQUIRED);
	assert_non_null(strstr(gone->last_error, "RunPodSandbox"));
	join(s, 0, "10-must", RUN);
	assert_string_equal(seen(s, 1, "10-must")->state, "ready");
}

/* a full disk, say: what could not be written is, once it can be, without anything else having to
 * happen */
static void the_status_file_is_written_once_it_can_be(void **state)
{
	struct story *s = *state;
	settle(s);
	unlink(s->file);
	assert_int_equal(mkdir(s->file, 0700), 0);
	join(s, 0, "10-net", RUN);
	fx_advance(s->f, CK_NRI_STATUS_PAUSE);
	settle(s);
	assert_int_equal(rmdir(s->file), 0);
	seen(s, 1, "10-net");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_history_names_who_was_sent_what, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_given_up_meanwhile_is_told_no_further,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_container_is_told_of_in_one_line, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			who_was_asked_before_the_creation_is_named_at_the_commit, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			what_was_validated_before_the_creation_is_not_validated_again, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(an_end_that_the_host_sends_is_in_the_history,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_end_may_outlive_the_cache, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_withdrawn_unsent_was_not_told, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_a_plugin_did_not_agree_to_in_time_is_undone,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_plugins_nothing_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_status_file_shows_who_is_connected, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			the_status_file_shows_which_required_plugin_is_absent, set_up_required,
			tear_down),
		cmocka_unit_test_setup_teardown(a_required_plugin_with_an_error_is_absent_and_gone,
						set_up_required, tear_down),
		cmocka_unit_test_setup_teardown(the_status_file_is_written_once_it_can_be, set_up,
						tear_down),
	};
	return CK_TEST_MAIN(tests);
}
