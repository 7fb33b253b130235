/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markers stand where requests may hold secrets, through all that crikeepd does with one: refused
 * by a runtime that quotes it, late, kept, handed back, conflicting, changed, evicted, killed. Then
 * no file of crikeepd, nothing it logs at its most talkative, no metric, nothing that crikeep
 * prints and no answer to anybody else may hold one.
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "tests/daemon/stage.h"
#include "tests/unit/markers.h"
#include "tests/unit/wire-build.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

/* ---- requests -------------------------------------------------------------------------------- */

static void put_pod(struct ck_bytes *request, uint32_t field, const char *name)
{
	struct ck_bytes config = { 0 };
	put_pair(&config, 7, "note", marker_text(MARKER_POD_ANNOTATION));
	cri_pod_config(&config, name, 0);
	put(request, field, &config);
}

/* what is secret comes first: of a long text only the beginning is kept */
static struct ck_bytes container_request(const char *sandbox_id, const char *pod, bool changed)
{
	struct ck_bytes metadata = { 0 }, image = { 0 }, config = { 0 }, mount = { 0 },
			request = { 0 };
	char path[64];
	put_pair(&config, 6, "PASSWORD", marker_text(MARKER_ENV));
	put_pair(&config, 6, "TOKEN", marker_text(MARKER_ESCAPED));
	put_text(&config, 3, marker_text(MARKER_COMMAND));
	put_text(&config, 4, marker_text(MARKER_ARG));
	if (changed)
		put_text(&config, 4, "--verbose");
	snprintf(path, sizeof(path), "/var/%s", marker_text(MARKER_MOUNT));
	put_text(&mount, 1, "/secret");
	put_text(&mount, 2, path);
	put(&config, 7, &mount);
	put_pair(&config, 10, "note", marker_text(MARKER_ANNOTATION));
	put_text(&metadata, 1, "main");
	put(&config, 1, &metadata);
	put_text(&image, 1, "busybox");
	put(&config, 2, &image);
	put(&request, 2, &config);
	put_pod(&request, 3, pod);
	put_text(&request, 1, sandbox_id);
	return request;
}

/* its status. @ret_id: POD_ID bytes; @ret_quoted: was a marker in the text? Each may be NULL */
static int ask(struct stage *s, const char *rpc, struct ck_bytes *request, const char *timeout,
	       char *ret_id, bool *ret_quoted)
{
	struct cri_call call;
	cri_start(&s->kubelet, &call, rpc, request, timeout);
	cri_wait(&call);
	int code = call.answered ? call.status.code : -1;
	const char *text = call.answered && call.status.message ? call.status.message : "";
	if (ret_id)
		snprintf(ret_id, POD_ID, "%s",
			 code == CK_GRPC_OK ? cri_text(&call.reply, "1") : "");
	if (ret_quoted)
		*ret_quoted = marker_in(text, strlen(text));
	cri_end(&call);
	return code;
}

static int run(struct stage *s, const char *pod, const char *timeout, char *ret_id,
	       bool *ret_quoted)
{
	struct ck_bytes request = { 0 };
	put_pod(&request, 1, pod);
	return ask(s, "RunPodSandbox", &request, timeout, ret_id, ret_quoted);
}

static int create(struct stage *s, const char *sandbox, const char *pod, bool changed,
		  const char *timeout, bool *ret_quoted)
{
	struct ck_bytes request = container_request(sandbox, pod, changed);
	return ask(s, "CreateContainer", &request, timeout, NULL, ret_quoted);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* what they print becomes files among the others */
static void print_everything(struct stage *s)
{
	static const char *const commands[] = { "list --all", "show ns/pod", "explain ns/pod",
						"history", "stats" };
	static const char *const forms[] = { "table", "json", "yaml" };
	const char *build = getenv("CK_TEST_BUILDDIR");
	char command[1024];
	snprintf(command, sizeof(command), "%s/crikeep", build ? build : ".");
	if (access(command, X_OK) != 0)
		return; /* built without it */
	for (size_t c = 0; c < CK_COUNT(commands); c++)
		for (size_t i = 0; i < CK_COUNT(forms); i++) {
			snprintf(command, sizeof(command),
				 "'%s/crikeep' %s -o %s --state-dir '%s' >>'%s/printed' 2>&1",
				 build ? build : ".", commands[c], forms[i], s->w.state, s->w.dir);
			int status = system(command); /* NOLINT: paths of ours */
			assert_true(status == 0 || status == 1 << 8);
		}
}

static void keep_metrics(struct stage *s)
{
	char path[WORLD_PATH + 16], *text = world_metrics(&s->w);
	snprintf(path, sizeof(path), "%s/metrics", s->w.dir);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	free(text);
}

static void assert_no_marker(struct stage *s)
{
	unsigned files;
	keep_metrics(s);
	print_everything(s);
	/* the runtime itself knows them */
	const char *found = marker_in_files(s->w.dir, s->w.runtime_state, &files);
	if (found)
		fail_msg("%s", found);
	assert_true(files > 5);
}

static void a_marker_is_found_in_each_of_its_forms(void **state)
{
	struct stage *s = *state;
	assert_true(marker_control(s->w.dir));
}

/* ---- what happens to requests ---------------------------------------------------------------- */

static void nothing_of_a_request_is_written_whatever_becomes_of_it(void **state)
{
	struct stage *s = *state;
	char sandbox[POD_ID];
	bool quoted;
	stage_start(s, "create=800ms", NULL);
	assert_int_equal(run(s, "pod", "20S", sandbox, NULL), CK_GRPC_OK);
	assert_int_equal(create(s, sandbox, "pod", false, "100m", &quoted),
			 CK_GRPC_DEADLINE_EXCEEDED);
	assert_false(quoted);
	/* waits, and is told so */
	assert_int_equal(create(s, sandbox, "pod", false, "270m", &quoted), CK_GRPC_UNAVAILABLE);
	assert_false(quoted);
	world_until_logged(&s->w, "CREATING -> KEPT", 10);
	assert_no_marker(s);
	assert_int_equal(create(s, sandbox, "pod", false, "20S", NULL), CK_GRPC_OK);
	assert_int_equal(create(s, sandbox, "pod", true, "20S", &quoted), CK_GRPC_ALREADY_EXISTS);
	assert_false(quoted);
	assert_no_marker(s);
	assert_int_equal(run(s, "late", "100m", NULL, NULL), CK_GRPC_DEADLINE_EXCEEDED);
	stage_kill(s);
	stage_again(s); /* it is made, or taken back, by now: whichever */
	assert_int_not_equal(run(s, "late", "100m", NULL, &quoted), CK_GRPC_OK);
	assert_false(quoted);
	assert_no_marker(s);
}

static void what_differs_is_named_without_a_value_and_evicted(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--set", "log.format=json", NULL };
	char sandbox[POD_ID];
	stage_start(s, "create.container=400ms", flags);
	assert_int_equal(run(s, "pod", "20S", sandbox, NULL), CK_GRPC_OK);
	assert_int_equal(create(s, sandbox, "pod", false, "100m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&s->w, "CREATING -> KEPT", 10);
	assert_int_equal(create(s, sandbox, "pod", true, "20S", NULL), CK_GRPC_OK);
	world_until(&s->w, "remove container", 1, 10);
	assert_no_marker(s);
}

/* the caller hears the runtime's own words, nobody else does */
static void a_runtime_that_quotes_is_heard_by_its_caller_only(void **state)
{
	struct stage *s = *state;
	char sandbox[POD_ID];
	bool quoted;
	stage_start(s, "create=300ms,fail.sandbox=1,fail.container=1,error_text=quote", NULL);
	assert_int_equal(run(s, "pod", "20S", NULL, &quoted), CK_GRPC_UNKNOWN);
	assert_true(quoted);
	assert_int_equal(run(s, "pod", "20S", sandbox, NULL), CK_GRPC_OK);
	assert_int_equal(create(s, sandbox, "pod", false, "20S", &quoted), CK_GRPC_UNKNOWN);
	assert_true(quoted);
	assert_no_marker(s);
}

static void a_runtime_that_quotes_others_is_not_believed_either(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--ttl", "1s", "--set", "log.format=json", NULL };
	char sandbox[POD_ID];
	stage_start(s, "create=400ms,fail.remove=2,error_text=quote", flags);
	assert_int_equal(run(s, "pod", "20S", sandbox, NULL), CK_GRPC_OK);
	assert_int_equal(create(s, sandbox, "pod", false, "100m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	world_until_logged(&s->w, "destroying failed", 20);
	assert_no_marker(s);
	world_until(&s->w, "remove container", 1, 20);
	assert_no_marker(s);
}

static void values_in_other_forms_are_not_shown_either(void **state)
{
	static const char *const forms[] = { "go", "percent", "hex", "base64" };
	struct stage *s = *state;
	char sandbox[POD_ID], parameters[128];
	bool quoted;
	for (size_t i = 0; i < CK_COUNT(forms); i++) {
		snprintf(parameters, sizeof(parameters), "fail.container=1,error_text=quote-%s",
			 forms[i]);
		stage_start(s, parameters, NULL);
		if (i == 0) /* the runtime remembers it */
			assert_int_equal(run(s, "pod", "20S", sandbox, NULL), CK_GRPC_OK);
		assert_int_equal(create(s, sandbox, "pod", false, "20S", &quoted), CK_GRPC_UNKNOWN);
		assert_true(quoted);
		assert_no_marker(s);
		stage_leave(s);
		world_kill(&s->w.daemon, SIGTERM);
		world_kill(&s->w.sim, SIGTERM);
	}
	stage_start(s, NULL, NULL); /* for the end of the test */
}

static void a_list_that_fails_with_what_others_asked_for_is_logged_without_it(void **state)
{
	struct stage *s = *state;
	stage_start(s, NULL, NULL);
	assert_int_equal(run(s, "pod", "20S", NULL, NULL), CK_GRPC_OK);
	stage_leave(s);
	world_kill(&s->w.daemon, SIGTERM);
	world_kill(&s->w.sim, SIGTERM);
	stage_start(s, "fail.list=4,error_text=quote", NULL); /* it remembers */
	world_until_logged(&s->w, "asking again", 10);
	assert_no_marker(s);
}

/* ---- core files ------------------------------------------------------------------------------ */

static char dumps[WORLD_PATH + 8];

static void may_dump(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	if (chdir(dumps) < 0 || setrlimit(RLIMIT_CORE, &all) < 0)
		_exit(126);
}

static void what_crashes_leaves_no_memory_behind(void **state)
{
	struct stage *s = *state;
	snprintf(dumps, sizeof(dumps), "%s/dumps", s->w.dir);
	assert_int_equal(mkdir(dumps, 0700), 0);
	s->w.before = may_dump;
	stage_start(s, "create=5s", NULL);
	assert_int_equal(run(s, "pod", "100m", NULL, NULL), CK_GRPC_DEADLINE_EXCEEDED);
	stage_leave(s);
	assert_int_equal(world_kill(&s->w.daemon, SIGQUIT), 128 + SIGQUIT);
	assert_int_equal(rmdir(dumps), 0); /* there is nothing in it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STAGE(a_marker_is_found_in_each_of_its_forms),
		ON_STAGE(nothing_of_a_request_is_written_whatever_becomes_of_it),
		ON_STAGE(what_differs_is_named_without_a_value_and_evicted),
		ON_STAGE(a_runtime_that_quotes_is_heard_by_its_caller_only),
		ON_STAGE(a_runtime_that_quotes_others_is_not_believed_either),
		ON_STAGE(values_in_other_forms_are_not_shown_either),
		ON_STAGE(a_list_that_fails_with_what_others_asked_for_is_logged_without_it),
		ON_STAGE(what_crashes_leaves_no_memory_behind),
	};
	return CK_TEST_MAIN(tests);
}
