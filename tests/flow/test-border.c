/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border of the library. It trusts no argument. And a host may trust it: signals, output, forks
 * and threads are left alone, and nearly every function may be called from a callback.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "src/crikeep-nri.h"
#include "tests/flow/fixture.h"

#define S CK_NS_PER_S

/* ---- arguments ------------------------------------------------------------------------------- */

static void refused(struct fixture *f, const struct ck_options *options)
{
	struct ck_cache *cache = NULL;
	f->err.text[0] = '\0';
	assert_int_equal(ck_cache_open(options, &cache, &f->err), -CK_EINVAL);
	assert_null(cache);
	assert_int_equal(f->err.code, CK_EINVAL);
	assert_true(f->err.text[0]);
}

static void options_are_checked(void **state)
{
	struct fixture *f = *state;
	struct ck_options o = f->options;
	struct ck_host host = f->host;
	struct ck_hooks hooks = { 0 };
	struct ck_cache *cache;
	refused(f, NULL);
	assert_int_equal(ck_cache_open(&o, NULL, NULL), -CK_EINVAL);
	o.size = sizeof(o) - 1; /* an older release never had a smaller one */
	refused(f, &o);
	o.size = 0;
	refused(f, &o);
	o = f->options;
	o.host = NULL;
	refused(f, &o);
	o.host = &host;
	host.size--;
	refused(f, &o);
	host = f->host;
	host.destroy = NULL;
	refused(f, &o);
	o = f->options;
	o.hooks = &hooks;
	refused(f, &o);
	o = f->options;
	o.mode = (enum ck_mode)3;
	refused(f, &o);
	o = f->options;
	o.hand_back = (enum ck_hand_back) - 1;
	refused(f, &o);
	o = f->options;
	o.on_annotation_change = (enum ck_annotation_change)2;
	refused(f, &o);
	o = f->options;
	o.ttl = CK_DURATION_MAX + 1;
	refused(f, &o);
	o = f->options;
	o.state_dir = "/proc/no/such/directory";
	assert_int_equal(ck_cache_open(&o, &cache, &f->err), -CK_EIO);
	assert_non_null(strstr(f->err.text, "open the cache '/proc/no/such/directory'"));
	o = f->options;
	o.size = sizeof(o) + 64; /* a newer host: nobody reads what it adds */
	assert_int_equal(ck_cache_open(&o, &cache, &f->err), 0);
	assert_int_equal(ck_cache_close(cache, NULL), 0);
}

static void a_directory_has_one_owner(void **state)
{
	struct fixture *f = *state;
	struct ck_cache *second;
	char pid[32];
	fx_open(f);
	assert_int_equal(ck_cache_open(&f->options, &second, &f->err), -CK_EOWNED);
	snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	assert_non_null(strstr(f->err.text, pid));
}

/* ---- missing arguments are refused ----------------------------------------------------------- */

static void begin_without_its_arguments_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ck_turn *other;
	struct ck_request request = { .size = sizeof(request), .kind = CK_SANDBOX };
	fx_open(f);
	assert_int_equal(ck_turn_begin(NULL, &request, &other, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_begin(f->cache, NULL, &other, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_begin(f->cache, &request, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_begin(f->cache, &request, &other, NULL), -CK_EMALFORMED);
	request.len = 3;
	assert_int_equal(ck_turn_begin(f->cache, &request, &other, NULL), -CK_EINVAL);
	request.bytes = "\x0a\x05x";
	assert_int_equal(ck_turn_begin(f->cache, &request, &other, &f->err), -CK_EMALFORMED);
	assert_int_equal(ck_error_grpc(&f->err), 3);
	request.len = CK_REQUEST_MAX + 1;
	assert_int_equal(ck_turn_begin(f->cache, &request, &other, &f->err), -CK_ETOOBIG);
	assert_int_equal(ck_error_grpc(&f->err), 8);
	request.kind = (enum ck_kind)3;
	assert_int_equal(ck_turn_begin(f->cache, &request, &other, NULL), -CK_EINVAL);
	request.kind = CK_SANDBOX;
	request.size--;
	assert_int_equal(ck_turn_begin(f->cache, &request, &other, NULL), -CK_EINVAL);
}

static void the_outcome_of_a_creation_without_its_arguments_is_refused(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_result result = { .size = sizeof(result), .id = "s1" };
	struct ck_status status = { .size = sizeof(status), .grpc = 2 };
	char long_id[CK_ID_MAX + 2];
	memset(long_id, 'x', sizeof(long_id) - 1);
	long_id[sizeof(long_id) - 1] = '\0';
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &ask);
	assert_int_equal(ck_turn_finish(NULL, &result, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_finish(turn, NULL, NULL), -CK_EINVAL);
	result.id = NULL;
	assert_int_equal(ck_turn_finish(turn, &result, NULL), -CK_EINVAL);
	result.id = "";
	assert_int_equal(ck_turn_finish(turn, &result, NULL), -CK_EINVAL);
	result.id = long_id;
	assert_int_equal(ck_turn_finish(turn, &result, NULL), -CK_EINVAL);
	result.id = "s1";
	result.reply_len = 1;
	assert_int_equal(ck_turn_finish(turn, &result, NULL), -CK_EINVAL);
	result.reply = "";
	result.reply_len = CK_REPLY_MAX + 1;
	assert_int_equal(ck_turn_finish(turn, &result, NULL), -CK_EINVAL);
	result.size = 8;
	assert_int_equal(ck_turn_finish(turn, &result, NULL), -CK_EINVAL);

	assert_int_equal(ck_turn_fail(NULL, &status, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_fail(turn, NULL, NULL), -CK_EINVAL);
	status.details_len = 1;
	assert_int_equal(ck_turn_fail(turn, &status, NULL), -CK_EINVAL);
	status.details_len = 0;
	status.grpc = 0;
	assert_int_equal(ck_turn_fail(turn, &status, NULL), -CK_EINVAL);
	status.size = 0;
	assert_int_equal(ck_turn_fail(turn, &status, NULL), -CK_EINVAL);
	ck_turn_free(turn);
}

static void a_call_about_a_turn_without_its_arguments_is_refused(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_status status = { .size = sizeof(status) };
	struct ck_reply reply = { .size = sizeof(reply) };
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &ask);
	assert_int_equal(ck_turn_wait(NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_watch(NULL, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_stage(NULL, "x"), -CK_EINVAL);
	assert_int_equal(ck_turn_stage(turn, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_lost(NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_reply(NULL, &reply), -CK_EINVAL);
	assert_int_equal(ck_turn_reply(turn, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_status(turn, NULL), -CK_EINVAL);
	assert_int_equal(ck_turn_status(NULL, &status), -CK_EINVAL);
	assert_null(ck_turn_error(NULL));
	assert_int_equal(ck_turn_answered(NULL, CK_LOST), -CK_EINVAL);
	assert_int_equal(ck_turn_answered(turn, (enum ck_delivery)0), -CK_EINVAL);
	ck_turn_leave(NULL);
	ck_turn_free(NULL);
	ck_turn_free(turn);
}

static void a_call_about_an_object_without_its_arguments_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ck_turn *other;
	char long_id[CK_ID_MAX + 2];
	memset(long_id, 'x', sizeof(long_id) - 1);
	long_id[sizeof(long_id) - 1] = '\0';
	fx_open(f);
	assert_int_equal(ck_sandbox_stopping(NULL, "s1"), -CK_EINVAL);
	assert_int_equal(ck_sandbox_stopping(f->cache, NULL), -CK_EINVAL);
	assert_int_equal(ck_sandbox_stopping(f->cache, ""), -CK_EINVAL);
	assert_int_equal(ck_sandbox_stopping(f->cache, long_id), -CK_EINVAL);
	assert_int_equal(ck_object_removed(f->cache, (enum ck_kind)0, "s1"), -CK_EINVAL);
	assert_int_equal(ck_object_seen(f->cache, CK_SANDBOX, NULL, CK_CONDITION_DEAD), -CK_EINVAL);
	assert_int_equal(ck_object_used(f->cache, CK_SANDBOX, ""), -CK_EINVAL);
	assert_int_equal(ck_container_starting(NULL, "c1"), -CK_EINVAL);
	assert_int_equal(ck_container_starting(f->cache, ""), -CK_EINVAL);
	assert_int_equal(ck_remove_begin(f->cache, CK_SANDBOX, "s1", 0, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_remove_begin(f->cache, CK_SANDBOX, "", 0, &other, NULL), -CK_EINVAL);
	assert_int_equal(ck_remove_begin(NULL, CK_SANDBOX, "s1", 0, &other, NULL), -CK_EINVAL);
}

static void a_view_without_its_arguments_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ck_object object = { .size = sizeof(object), .kind = CK_SANDBOX, .id = "s1" };
	struct ck_view *view;
	const char *id;
	fx_open(f);
	assert_int_equal(ck_view_begin(NULL, &view, NULL), -CK_EINVAL);
	assert_int_equal(ck_view_begin(f->cache, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_view_begin(f->cache, &view, NULL), 0);
	assert_int_equal(ck_view_hides(NULL, &object), -CK_EINVAL);
	assert_int_equal(ck_view_hides(view, NULL), -CK_EINVAL);
	object.size--;
	assert_int_equal(ck_view_hides(view, &object), -CK_EINVAL);
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &object, 1), -CK_EINVAL);
	object.size++;
	object.id = NULL;
	assert_int_equal(ck_view_hides(view, &object), -CK_EINVAL);
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &object, 1), -CK_EINVAL);
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, NULL, 1), -CK_EINVAL);
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, NULL, 0), 0);
	assert_int_equal(ck_view_resolve(view, CK_SANDBOX, NULL, &id), -CK_EINVAL);
	assert_int_equal(ck_view_resolve(view, CK_SANDBOX, "s", NULL), -CK_EINVAL);
	ck_view_free(view);
}

static void a_call_without_its_cache_or_job_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ck_object object = { .size = sizeof(object), .kind = CK_SANDBOX, .id = "s1" };
	fx_open(f);
	assert_int_equal(ck_snapshot(f->cache, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_cache_fd(NULL), -CK_EINVAL);
	assert_int_equal(ck_cache_process(NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_cache_run_thread(NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_cache_close(NULL, NULL), 0);
	assert_true(ck_cache_timeout(NULL) == UINT64_MAX);
	assert_int_equal(ck_job_listed(NULL, &object), -CK_EINVAL);
	ck_job_done(NULL, NULL);
	ck_hook_done(NULL, "10-a", NULL);
	assert_string_equal(ck_version(), "0.1.0");
}

/* what is behind the members that the library knows is neither read nor written */
static void a_larger_struct_is_taken_and_a_smaller_one_refused(void **state)
{
	struct fixture *f = *state;
	unsigned char bytes[512];
	struct fx_ask ask = fx_sandbox("web");
	struct {
		struct ck_request known;
		char more[64];
	} request = { .known = { .kind = CK_SANDBOX, .bytes = bytes } };
	struct {
		struct ck_result known;
		char more[64];
	} result = { .known = { .id = "s1" } };
	struct {
		struct ck_reply known;
		char more[64];
	} reply, before;
	struct ck_turn *turn;
	fx_open(f);
	memset(request.more, 0xff, sizeof(request.more));
	memset(result.more, 0xff, sizeof(result.more));
	memset(&reply, 0xff, sizeof(reply));
	before = reply;
	request.known.len = fx_bytes(&ask, bytes, sizeof(bytes));
	request.known.size = CK_REQUEST_SIZE_0_1 - 1;
	assert_int_equal(ck_turn_begin(f->cache, &request.known, &turn, NULL), -CK_EINVAL);
	request.known.size = sizeof(request);
	assert_int_equal(ck_turn_begin(f->cache, &request.known, &turn, NULL), CK_CREATE);
	result.known.size = CK_RESULT_SIZE_0_1 - 1;
	assert_int_equal(ck_turn_finish(turn, &result.known, NULL), -CK_EINVAL);
	result.known.size = sizeof(result);
	assert_int_equal(ck_turn_finish(turn, &result.known, NULL), CK_HAND_BACK);
	reply.known.size = CK_REPLY_SIZE_0_1 - 1;
	assert_int_equal(ck_turn_reply(turn, &reply.known), -CK_EINVAL);
	reply.known.size = sizeof(reply);
	assert_int_equal(ck_turn_reply(turn, &reply.known), 0);
	assert_int_equal(reply.known.size, sizeof(reply.known));
	assert_memory_equal(reply.more, before.more, sizeof(reply.more));
	ck_turn_free(turn);
}

/* 0.1 is the first release: what it has is all there is. A later one may be larger. */
static void the_sizes_of_release_0_1_are_those_of_its_structs(void **state)
{
	(void)state;
	assert_in_range(sizeof(struct ck_object), CK_OBJECT_SIZE_0_1,
			CK_OBJECT_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_filter), CK_FILTER_SIZE_0_1,
			CK_FILTER_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_answer), CK_ANSWER_SIZE_0_1,
			CK_ANSWER_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_host), CK_HOST_SIZE_0_1,
			CK_HOST_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_told), CK_TOLD_SIZE_0_1,
			CK_TOLD_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_hooks), CK_HOOKS_SIZE_0_1,
			CK_HOOKS_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_options), CK_OPTIONS_SIZE_0_1,
			CK_OPTIONS_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_entry_info), CK_ENTRY_INFO_SIZE_0_1,
			CK_ENTRY_INFO_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_request), CK_REQUEST_SIZE_0_1,
			CK_REQUEST_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_result), CK_RESULT_SIZE_0_1,
			CK_RESULT_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_reply), CK_REPLY_SIZE_0_1,
			CK_REPLY_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_status), CK_STATUS_SIZE_0_1,
			CK_STATUS_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_nri_host), CK_NRI_HOST_SIZE_0_1,
			CK_NRI_HOST_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_nri_options), CK_NRI_OPTIONS_SIZE_0_1,
			CK_NRI_OPTIONS_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_nri_call), CK_NRI_CALL_SIZE_0_1,
			CK_NRI_CALL_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_nri_result), CK_NRI_RESULT_SIZE_0_1,
			CK_NRI_RESULT_SIZE_0_1 + sizeof(void *) - 1);
	assert_in_range(sizeof(struct ck_nri_plugin), CK_NRI_PLUGIN_SIZE_0_1,
			CK_NRI_PLUGIN_SIZE_0_1 + sizeof(void *) - 1);
}

static void each_code_and_each_outcome_has_its_own_text(void **state)
{
	(void)state;
	assert_string_equal(ck_strerror(0), "success");
	assert_string_equal(ck_strerror(CK_EOWNED), "another process owns the state directory");
	assert_string_equal(ck_strerror(CK_KEPT), "made too late for this caller, and kept");
	for (int i = CK_ENOMEM; i <= CK_DRAINED; i++) {
		bool known = i <= CK_ESTATE || i >= CK_CREATE;
		assert_true(known == !!strcmp(ck_strerror(i), "unknown error"));
		for (int j = CK_ENOMEM; known && j < i; j++)
			assert_string_not_equal(ck_strerror(i), ck_strerror(j));
		if (i <= CK_ESTATE)
			assert_ptr_equal(ck_strerror(-i), ck_strerror(i));
		else
			assert_string_equal(ck_strerror(-i), "unknown error");
	}
	assert_string_equal(ck_strerror(CK_DRAINED + 1), "unknown error");
	assert_string_equal(ck_strerror(INT_MIN), "unknown error");
}

/* ---- what callers and hosts may do ----------------------------------------------------------- */

static void names_of_any_bytes_survive_a_restart(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("we\xff\x01"
				       "b\n");
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &ask);
	assert_int_equal(ck_turn_stage(turn, "a stage\nof \xff many bytes, and of more than "
					     "sixty-four of them, which are cut"),
			 0);
	fx_advance(f, 11 * S);
	assert_int_equal(fx_make(f, turn, &ask, "s\x80\x01|1"), CK_KEPT);
	ck_turn_free(turn);
	fx_reopen(f);
	assert_null(strstr(f->log, "damaged"));
	turn = fx_wait(f, &ask);
	fx_answered_with(f, turn, "s\x80\x01|1");
	ck_turn_free(turn);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static int none_told(const struct ck_told *told, void *userdata)
{
	(void)told, (void)userdata;
	return 0;
}

static int none_listed(const struct ck_entry_info *entry, void *userdata)
{
	(void)entry, (void)userdata;
	return 0;
}

static int in_child(struct fixture *f, struct ck_turn *turn, struct ck_view *view,
		    struct ck_job *job)
{
	struct ck_request request = { .size = sizeof(request), .kind = CK_SANDBOX };
	struct ck_result result = { .size = sizeof(result), .id = "s1" };
	struct ck_status status = { .size = sizeof(status), .grpc = 2 };
	struct ck_object object = { .size = sizeof(object), .kind = CK_SANDBOX, .id = "s1" };
	struct ck_answer answer = { .size = sizeof(answer) };
	struct ck_turn *other;
	struct ck_view *new_view;
	struct ck_reply reply = { .size = sizeof(reply) };
	const char *id;
	const int answers[] = {
		ck_turn_begin(f->cache, &request, &other, NULL),
		ck_turn_wait(turn, NULL),
		ck_turn_watch(turn, NULL, NULL),
		ck_turn_stage(turn, "x"),
		ck_turn_finish(turn, &result, NULL),
		ck_turn_fail(turn, &status, NULL),
		ck_turn_lost(turn, NULL),
		ck_turn_reply(turn, &reply),
		ck_turn_status(turn, &status),
		ck_turn_answered(turn, CK_LOST),
		ck_sandbox_stopping(f->cache, "s1"),
		ck_object_removed(f->cache, CK_SANDBOX, "s1"),
		ck_object_seen(f->cache, CK_SANDBOX, "s1", CK_CONDITION_DEAD),
		ck_object_used(f->cache, CK_SANDBOX, "s1"),
		ck_container_starting(f->cache, "c1"),
		ck_remove_begin(f->cache, CK_SANDBOX, "s1", 0, &other, NULL),
		ck_view_begin(f->cache, &new_view, NULL),
		ck_view_hides(view, &object),
		ck_view_resolve(view, CK_SANDBOX, "s", &id),
		ck_view_listed(view, CK_SANDBOX, &object, 1),
		ck_snapshot(f->cache, none_told, NULL),
		ck_entries(f->cache, none_listed, NULL),
		ck_reconciled(f->cache),
		ck_cache_fd(f->cache),
		ck_cache_process(f->cache, NULL),
		ck_cache_run_thread(f->cache, NULL),
		ck_job_listed(job, &object),
		ck_cache_close(f->cache, NULL),
	};
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (answers[i] != -CK_EFORK)
			return (int)i + 1;
	ck_hook_done(job, "10-a", NULL);
	ck_job_done(job, &answer);
	ck_turn_leave(turn);
	ck_turn_free(turn);
	ck_view_free(view);
	if (ck_job_entry(job))
		return 98;
	return ck_cache_timeout(f->cache) != UINT64_MAX || ck_turn_error(turn) ? 99 : 0;
}

static void a_forked_child_is_refused_and_the_parent_unharmed(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), ask = fx_sandbox("web");
	struct ck_view *view;
	int status;
	fx_open(f);
	fx_keep(f, &kept, "s1");
	f->hold[FX_INSPECT] = true;
	struct ck_turn *waiting = fx_wait(f, &kept), *turn = fx_create(f, &ask);
	fx_settle(f);
	assert_int_equal(f->held_n, 1);
	assert_int_equal(ck_view_begin(f->cache, &view, NULL), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(in_child(f, turn, view, f->held[0].job));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("in the child call %d was not refused", WEXITSTATUS(status));
	ck_view_free(view);
	assert_int_equal(fx_release(f, FX_INSPECT), 1);
	fx_answered_with(f, waiting, "s1");
	assert_int_equal(fx_make(f, turn, &ask, "s2"), CK_HAND_BACK);
	ck_turn_free(turn);
	ck_turn_free(waiting);
	assert_string_equal(fx_rows(f), "COMMITTED s1|COMMITTED s2");
}

/* ---- from a callback ------------------------------------------------------------------------- */

struct inside {
	struct fixture *f;
	struct ck_turn *turn;
	int n, begun, stage, view, forget, wait, process, close, snapshot;
};

static void call_everything(struct inside *in)
{
	struct fixture *f = in->f;
	struct fx_ask ask = fx_sandbox("inside");
	struct ck_view *view;
	struct ck_turn *turn;
	in->n++;
	in->begun = fx_begin(f, &ask, &turn);
	if (in->begun >= 0) {
		in->stage = ck_turn_stage(turn, "from a callback");
		in->wait = ck_turn_wait(turn, NULL);
		ck_turn_leave(turn);
		ck_turn_free(turn);
	}
	in->view = ck_view_begin(f->cache, &view, NULL);
	if (in->view >= 0)
		ck_view_free(view);
	in->forget = ck_object_removed(f->cache, CK_SANDBOX, "none");
	in->snapshot = ck_snapshot(f->cache, none_told, NULL);
	in->process = ck_cache_process(f->cache, NULL);
	in->close = ck_cache_close(f->cache, NULL);
}

static void decided_inside(struct ck_turn *turn, int outcome, void *userdata)
{
	struct inside *in = userdata;
	assert_int_equal(outcome, CK_HAND_BACK);
	call_everything(in);
	ck_turn_free(turn); /* its own */
}

static void all_but_close_process_and_wait_may_be_called_from_a_callback(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct inside in = { .f = f };
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	assert_int_equal(ck_turn_watch(again, decided_inside, &in), 0);
	assert_int_equal(fx_make(f, creator, &ask, "s1"), CK_HAND_BACK);
	fx_settle(f);
	ck_turn_free(creator);
	assert_int_equal(in.n, 1);
	assert_int_equal(in.begun, CK_CREATE);
	assert_int_equal(in.stage, 0);
	assert_int_equal(in.view, 0);
	assert_int_equal(in.forget, -CK_ENOTFOUND);
	assert_int_equal(in.snapshot, 0);
	assert_int_equal(in.wait, -CK_EDEADLK);
	assert_int_equal(in.process, -CK_EDEADLK);
	assert_int_equal(in.close, -CK_EDEADLK);
}

static void destroy_inside(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct inside *in = userdata;
	struct ck_answer answer = { .size = sizeof(answer), .grpc = 5 };
	(void)kind, (void)id;
	call_everything(in);
	ck_job_done(job, &answer);
}

static void the_same_holds_for_calls_of_the_host(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct inside in = { .f = f };
	f->host = (struct ck_host){ .size = sizeof(f->host),
				    .destroy = destroy_inside,
				    .userdata = &in };
	fx_open(f);
	fx_keep(f, &ask, "s1");
	fx_advance(f, 601 * S);
	assert_int_equal(in.n, 1);
	assert_int_equal(in.begun, CK_CREATE);
	assert_int_equal(in.wait, -CK_EDEADLK);
	assert_int_equal(in.process, -CK_EDEADLK);
	assert_int_equal(in.close, -CK_EDEADLK);
	assert_int_equal(in.view, 0);
}

static int choose_inside(const struct ck_told *told, char *names, size_t size, void *userdata)
{
	(void)told, (void)names, (void)size;
	call_everything(userdata);
	return 0;
}

static int snapshot_inside(const struct ck_told *told, void *userdata)
{
	(void)told;
	call_everything(userdata);
	return 0;
}

static void refused_in_the_critical_section(const struct inside *in)
{
	assert_int_equal(in->n, 1);
	assert_int_equal(in->begun, -CK_EDEADLK);
	assert_int_equal(in->view, -CK_EDEADLK);
	assert_int_equal(in->forget, -CK_EDEADLK);
	assert_int_equal(in->snapshot, -CK_EDEADLK);
	assert_int_equal(in->process, -CK_EDEADLK);
	assert_int_equal(in->close, -CK_EDEADLK);
}

static void nothing_may_be_called_from_choose_or_a_snapshot(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct inside in = { .f = f };
	f->hooks = (struct ck_hooks){ .size = sizeof(f->hooks),
				      .choose = choose_inside,
				      .userdata = &in };
	f->options.hooks = &f->hooks;
	fx_open(f);
	fx_commit(f, &ask, "s1");
	refused_in_the_critical_section(&in);
	in = (struct inside){ .f = f };
	assert_int_equal(ck_snapshot(f->cache, snapshot_inside, &in), 0);
	refused_in_the_critical_section(&in);
}

static int free_inside(const struct ck_told *told, void *userdata)
{
	(void)told;
	assert_int_equal(ck_turn_answered(userdata, CK_DELIVERED), -CK_EDEADLK);
	ck_turn_free(userdata);
	return 0;
}

static void a_turn_freed_in_a_snapshot_is_lost_but_not_dangling(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), other = fx_sandbox("other");
	fx_open(f);
	fx_commit(f, &ask, "s1");
	struct ck_turn *turn = fx_create(f, &other);
	assert_int_equal(ck_snapshot(f->cache, free_inside, turn), 0);
	assert_int_equal(ck_turn_stage(turn, "still there"), 0);
	ck_turn_free(turn);
}

/* ---- the event loop -------------------------------------------------------------------------- */

static void waiting_without_the_event_loop_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_turn *turn;
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	assert_int_equal(fx_begin(f, &ask, &turn), CK_WAIT); /* for the first list */
	assert_int_equal(ck_turn_wait(turn, &f->err), -CK_ENOLOOP);
	assert_int_equal(f->err.code, CK_ENOLOOP);
	assert_int_equal(ck_cache_run_thread(f->cache, &f->err), 0);
	assert_int_equal(ck_turn_wait(turn, &f->err), CK_CREATE);
	assert_int_equal(ck_cache_run_thread(f->cache, &f->err), -CK_EDEADLK);
	assert_int_equal(ck_cache_process(f->cache, &f->err), -CK_EDEADLK);
	ck_turn_free(turn);
	f->threaded = true;
}

static void the_descriptor_says_when(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct pollfd fd = { .events = POLLIN };
	struct fx_ear ear;
	f->options.clock = NULL; /* timers are the kernel's */
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	fd.fd = ck_cache_fd(f->cache);
	assert_int_equal(poll(&fd, 1, 0), 1); /* the first list is requested */
	for (int i = 0; i < 10 && poll(&fd, 1, 0) == 1; i++)
		assert_true(ck_cache_process(f->cache, NULL) >= 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	struct ck_turn *creator = fx_create(f, &ask);
	ask.timeout = 300 * CK_NS_PER_MS; /* the margin starts after 50 ms */
	struct ck_turn *again = fx_wait(f, &ask);
	fx_listen(&ear, again);
	for (int i = 0; i < 10 && !ear.n; i++) {
		assert_int_equal(poll(&fd, 1, 10000), 1);
		assert_true(ck_cache_process(f->cache, NULL) >= 0);
	}
	assert_int_equal(ear.outcome, CK_BUSY);
	assert_int_equal(ck_cache_process(f->cache, NULL), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	ck_turn_free(again);
	assert_int_equal(fx_make(f, creator, &ask, "s1"), CK_HAND_BACK);
	ck_turn_free(creator);
}

static void a_callback_runs_once_per_decision(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct fx_ear ear;
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask), *again = fx_wait(f, &ask);
	assert_int_equal(fx_make(f, creator, &ask, "s1"), CK_HAND_BACK);
	fx_listen(&ear, again);     /* decided before it was watched */
	assert_int_equal(ear.n, 0); /* and it is heard only from ck_cache_process() */
	assert_true(ck_cache_timeout(f->cache) == 0);
	fx_settle(f);
	fx_settle(f);
	assert_int_equal(ear.n, 1);
	assert_int_equal(ear.outcome, CK_HAND_BACK);
	ck_turn_watch(again, NULL, NULL);
	ck_turn_free(creator);
	ck_turn_free(again);
}

/* ---- close ----------------------------------------------------------------------------------- */

struct waiter {
	pthread_t thread;
	struct ck_turn *turn;
	struct ck_error err;
	int outcome;
};

static void *wait_for_turn(void *userdata)
{
	struct waiter *w = userdata;
	w->outcome = ck_turn_wait(w->turn, &w->err);
	return NULL;
}

static void close_ends_waiting_threads_and_keeps_turns_valid(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), done = fx_sandbox("done"), kept = fx_sandbox("kept");
	struct waiter waiters[4] = { 0 };
	struct ck_reply reply = { .size = sizeof(reply) };
	struct ck_view *view;
	struct fx_ear ear;
	struct ck_object o = { .size = sizeof(o), .kind = CK_SANDBOX, .id = "s1" };
	f->threaded = true;
	fx_open(f);
	fx_keep(f, &kept, "s2");
	struct ck_turn *creator = fx_create(f, &ask), *finished = fx_create(f, &done);
	assert_int_equal(fx_make(f, finished, &done, "s1"), CK_HAND_BACK);
	for (int i = 0; i < 4; i++) {
		waiters[i].turn = fx_wait(f, &ask);
		pthread_create(&waiters[i].thread, NULL, wait_for_turn, &waiters[i]);
	}
	f->hold[FX_INSPECT] = true;
	struct ck_turn *asking = fx_wait(f, &kept);
	fx_listen(&ear, asking);
	fx_wait_asked(f, FX_INSPECT, 1);
	assert_int_equal(ck_view_begin(f->cache, &view, NULL), 0);
	fx_cut(f); /* the inspection is answered after the cache was closed */
	for (int i = 0; i < 4; i++) {
		pthread_join(waiters[i].thread, NULL);
		assert_int_equal(waiters[i].outcome, -CK_ECLOSED);
		assert_int_equal(waiters[i].err.code, CK_ECLOSED);
		assert_int_equal(ck_turn_wait(waiters[i].turn, NULL), -CK_ECLOSED);
		ck_turn_free(waiters[i].turn);
	}
	assert_int_equal(ck_turn_reply(finished, &reply), 0); /* borrowed until the turn is freed */
	assert_string_equal(reply.id, "s1");
	ck_turn_answered(finished, CK_DELIVERED);
	ck_turn_free(finished);
	assert_int_equal(fx_finish(f, creator, "s3"), -CK_ECLOSED);
	assert_int_equal(ck_turn_stage(creator, "x"), -CK_ECLOSED);
	ck_turn_leave(creator);
	ck_turn_free(creator);
	ck_turn_free(asking);
	assert_int_equal(ck_view_hides(view, &o), -CK_ECLOSED);
	ck_view_free(view);
	assert_string_equal(fx_rows(f), "KEPT s2|UNKNOWN -|COMMITTED s1");
}

static void close_right_after_open_is_fine(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
		if (i % 2)
			assert_int_equal(ck_cache_run_thread(f->cache, &f->err), 0);
		assert_int_equal(ck_cache_close(f->cache, &f->err), 0);
		f->cache = NULL;
	}
}

static void counters_are_not_lost_at_the_end(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct ck_turn *turn;
	fx_open(f);
	fx_commit(f, &ask, "s1");
	for (int i = 0; i < 5; i++) { /* this changes nothing and writes nothing */
		assert_int_equal(fx_begin(f, &ask, &turn), CK_HAND_BACK);
		ck_turn_free(turn);
	}
	fx_close(f);
	assert_int_equal(fx_counter(f, "requests"), 6);
}

/* ---- freeing --------------------------------------------------------------------------------- */

struct slow {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool entered, go, left, freed;
	struct ck_turn *turn;
};

static void slow_callback(struct ck_turn *turn, int outcome, void *userdata)
{
	struct slow *slow = userdata;
	(void)turn, (void)outcome;
	pthread_mutex_lock(&slow->lock);
	slow->entered = true;
	pthread_cond_broadcast(&slow->changed);
	while (!slow->go)
		pthread_cond_wait(&slow->changed, &slow->lock);
	slow->left = true;
	assert_false(slow->freed);
	pthread_mutex_unlock(&slow->lock);
}

static void *free_meanwhile(void *userdata)
{
	struct slow *slow = userdata;
	pthread_mutex_lock(&slow->lock);
	slow->go = true;
	pthread_cond_broadcast(&slow->changed);
	pthread_mutex_unlock(&slow->lock);
	ck_turn_free(slow->turn);
	pthread_mutex_lock(&slow->lock);
	slow->freed = slow->left; /* never before the callback had returned */
	pthread_mutex_unlock(&slow->lock);
	return NULL;
}

static void a_turn_freed_by_another_thread_waits_for_its_callback(void **state)
{
	struct fixture *f = *state;
	struct slow slow = { .lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER };
	struct fx_ask ask = fx_sandbox("web");
	pthread_t thread;
	f->threaded = true;
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask);
	slow.turn = fx_wait(f, &ask);
	ck_turn_watch(slow.turn, slow_callback, &slow);
	assert_int_equal(fx_make(f, creator, &ask, "s1"), CK_HAND_BACK);
	pthread_mutex_lock(&slow.lock);
	while (!slow.entered)
		pthread_cond_wait(&slow.changed, &slow.lock);
	pthread_mutex_unlock(&slow.lock);
	pthread_create(&thread, NULL, free_meanwhile, &slow);
	pthread_join(thread, NULL);
	assert_true(slow.freed);
	ck_turn_free(creator);
}

static void leaving_wakes_the_thread_that_waits(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web");
	struct waiter waiter = { 0 };
	f->threaded = true;
	fx_open(f);
	struct ck_turn *creator = fx_create(f, &ask);
	waiter.turn = fx_wait(f, &ask);
	pthread_create(&waiter.thread, NULL, wait_for_turn, &waiter);
	ck_turn_leave(waiter.turn);
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.outcome, -CK_EABANDONED);
	ck_turn_free(waiter.turn);
	ck_turn_free(creator);
}

/* ---- the process around it ------------------------------------------------------------------- */

static void read_signals(struct sigaction actions[65], sigset_t *mask)
{
	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &actions[i]);
	pthread_sigmask(SIG_BLOCK, NULL, mask);
}

/* in every thread but this one: are all signals blocked that can be blocked? */
static unsigned threads_that_take_signals(unsigned *ret_threads)
{
	unsigned bad = 0;
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	*ret_threads = 0;
	while ((entry = readdir(dir))) {
		char path[300], line[256];
		unsigned long long blocked = 0;
		if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		FILE *status = fopen(path, "r");
		while (status && fgets(line, sizeof(line), status))
			sscanf(line, "SigBlk: %llx", &blocked);
		if (status)
			fclose(status);
		++*ret_threads;
		bad += !(blocked >> (SIGCHLD - 1) & 1) || !(blocked >> (SIGTERM - 1) & 1) ||
		       !(blocked >> (SIGALRM - 1) & 1);
	}
	closedir(dir);
	return bad;
}

static void signals_are_left_alone(void **state)
{
	struct fixture *f = *state;
	static struct sigaction before[65], after[65];
	sigset_t mask_before, mask_after;
	/* a sanitizer may have one of its own */
	unsigned threads, others, taking = threads_that_take_signals(&others);
	read_signals(before, &mask_before);
	f->threaded = true;
	fx_open(f);
	assert_int_equal(threads_that_take_signals(&threads), taking);
	assert_int_equal(threads, others + 1);
	fx_close(f);
	read_signals(after, &mask_after);
	for (int i = 1; i < 65; i++) {
		assert_ptr_equal(before[i].sa_handler, after[i].sa_handler);
		assert_int_equal(before[i].sa_flags, after[i].sa_flags);
		assert_int_equal(sigismember(&mask_before, i), sigismember(&mask_after, i));
	}
}

static void nothing_is_printed(void **state)
{
	struct fixture *f = *state;
	struct fx_ask ask = fx_sandbox("web"), changed = ask;
	struct ck_turn *turn;
	char path[512];
	fflush(NULL);
	snprintf(path, sizeof(path), "%s/../crikeep-printed.%ld", f->dir, (long)getpid());
	int out = dup(1), err = dup(2),
	    to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	dup2(to, 1);
	dup2(to, 2);
	f->host.log = NULL; /* and there is no log function */
	fx_open(f);
	fx_commit(f, &ask, "s1");
	changed.env = "other";
	int r = fx_begin(f, &changed, &turn);
	f->fail[FX_LIST] = 14;
	fx_reopen(f);
	fx_close(f);
	fflush(NULL);
	off_t printed = lseek(to, 0, SEEK_END);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	close(to);
	unlink(path);
	assert_int_equal(r, -CK_ECONFLICT);
	assert_int_equal(printed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_FIXTURE(options_are_checked),
		ON_FIXTURE(a_directory_has_one_owner),
		ON_FIXTURE(begin_without_its_arguments_is_refused),
		ON_FIXTURE(the_outcome_of_a_creation_without_its_arguments_is_refused),
		ON_FIXTURE(a_call_about_a_turn_without_its_arguments_is_refused),
		ON_FIXTURE(a_call_about_an_object_without_its_arguments_is_refused),
		ON_FIXTURE(a_view_without_its_arguments_is_refused),
		ON_FIXTURE(a_call_without_its_cache_or_job_is_refused),
		cmocka_unit_test(each_code_and_each_outcome_has_its_own_text),
		cmocka_unit_test(the_sizes_of_release_0_1_are_those_of_its_structs),
		ON_FIXTURE(a_larger_struct_is_taken_and_a_smaller_one_refused),
		ON_FIXTURE(names_of_any_bytes_survive_a_restart),
		ON_FIXTURE(a_forked_child_is_refused_and_the_parent_unharmed),
		ON_FIXTURE(all_but_close_process_and_wait_may_be_called_from_a_callback),
		ON_FIXTURE(the_same_holds_for_calls_of_the_host),
		ON_FIXTURE(nothing_may_be_called_from_choose_or_a_snapshot),
		ON_FIXTURE(a_turn_freed_in_a_snapshot_is_lost_but_not_dangling),
		ON_FIXTURE(waiting_without_the_event_loop_is_an_error),
		ON_FIXTURE(the_descriptor_says_when),
		ON_FIXTURE(a_callback_runs_once_per_decision),
		ON_FIXTURE(close_ends_waiting_threads_and_keeps_turns_valid),
		ON_FIXTURE(close_right_after_open_is_fine),
		ON_FIXTURE(counters_are_not_lost_at_the_end),
		ON_FIXTURE(a_turn_freed_by_another_thread_waits_for_its_callback),
		ON_FIXTURE(leaving_wakes_the_thread_that_waits),
		ON_FIXTURE(signals_are_left_alone),
		ON_FIXTURE(nothing_is_printed),
	};
	return CK_TEST_MAIN(tests);
}
