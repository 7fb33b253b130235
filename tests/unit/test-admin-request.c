/* SPDX-License-Identifier: Apache-2.0 */
/* Admin requests: each arrives once, a malformed one is answered, files of others are left
 * alone. */
#include "tests/unit/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#include "cache/admin-request.h"
#include "src/base/limits.h"
#include "tests/unit/rows.h"

struct fixture {
	struct place place;
	struct ck_admin_requests *requests;
	struct ck_error err;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	place_make(&f->place);
	mkdir(f->place.dir, 0700);
	*state = f;
	return ck_admin_requests_open(f->place.dir, &f->requests, &f->err);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	ck_admin_requests_close(f->requests);
	place_remove(&f->place);
	free(f);
	return 0;
}

static bool readable(struct fixture *f)
{
	struct pollfd p = { ck_admin_requests_fd(f->requests), POLLIN, 0 };
	return poll(&p, 1, 0) == 1;
}

static void put(struct fixture *f, const char *name, const char *text, size_t len)
{
	char tmp[400];
	snprintf(tmp, sizeof(tmp), "%s/x", f->place.dir);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	char to[400];
	snprintf(to, sizeof(to), "%s/wishes/%s", f->place.dir, name);
	assert_int_equal(rename(tmp, to), 0);
}

#define NAME "0123456789abcdef0123456789abcdef"

static void a_request_is_taken_answered_and_fetched_once(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request request = { .verb = CK_ADMIN_EVICT, .entry = 42 }, taken;
	struct ck_admin_answer answer = { .done = true,
					  .text = "begun;\nthe history tells its end" },
			       got;
	char name[33];

	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_false(readable(f));
	assert_int_equal(ck_admin_request_make(f->place.dir, &request, name, &f->err), 0);
	assert_true(readable(f));
	assert_int_equal(ck_admin_answer_fetch(f->place.dir, name, &got, &f->err), 0);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 1);
	assert_int_equal(taken.verb, CK_ADMIN_EVICT);
	assert_int_equal(taken.entry, 42);
	assert_string_equal(taken.name, name);
	ck_admin_requests_answer(f->requests, &taken, &answer);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_int_equal(ck_admin_answer_fetch(f->place.dir, name, &got, &f->err), 1);
	assert_true(got.done);
	assert_string_equal(got.text, "begun;?the history tells its end");
	assert_int_equal(ck_admin_answer_fetch(f->place.dir, name, &got, &f->err), 0);
	assert_false(readable(f));
}

static void a_request_waits_for_an_owner(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request request = { .verb = CK_ADMIN_RELEASE, .entry = 7 }, taken;
	char name[33];

	ck_admin_requests_close(f->requests);
	assert_int_equal(ck_admin_request_make(f->place.dir, &request, name, &f->err), 0);
	assert_int_equal(ck_admin_requests_open(f->place.dir, &f->requests, &f->err), 0);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 1);
	assert_int_equal(taken.verb, CK_ADMIN_RELEASE);
}

static void a_malformed_request_is_answered_with_what_is_wrong(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request taken;
	struct ck_admin_answer got;

	put(f, NAME ".wish", "crikeep-wish 1\nverb destroy\nentry 1\n", 36);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_int_equal(ck_admin_answer_fetch(f->place.dir, NAME, &got, &f->err), 1);
	assert_false(got.done);
	assert_string_equal(got.text, "expected 'crikeep-wish 1', 'verb evict' or 'verb release', "
				      "and 'entry' with a number: three lines, and nothing else");
}

static void what_is_not_a_small_file_is_refused(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request taken;
	struct ck_admin_answer got;
	char path[400], *big = calloc(1, CK_ADMIN_REQUEST_MAX + 1);

	put(f, NAME ".wish", big, CK_ADMIN_REQUEST_MAX + 1);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_int_equal(ck_admin_answer_fetch(f->place.dir, NAME, &got, &f->err), 1);
	free(big);
	snprintf(path, sizeof(path), "%s/wishes/%s.wish", f->place.dir, NAME);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	f->requests = (ck_admin_requests_close(f->requests), NULL);
	assert_int_equal(ck_admin_requests_open(f->place.dir, &f->requests, &f->err), 0);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_int_equal(ck_admin_answer_fetch(f->place.dir, NAME, &got, &f->err), 1);
	assert_int_equal(mkfifo(path, 0600), 0); /* opening it must not wait for a writer */
	f->requests = (ck_admin_requests_close(f->requests), NULL);
	assert_int_equal(ck_admin_requests_open(f->place.dir, &f->requests, &f->err), 0);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_int_equal(ck_admin_answer_fetch(f->place.dir, NAME, &got, &f->err), 1);
	assert_false(got.done);
}

static void other_names_are_left_alone(void **state)
{
	static const char *const names[] = {
		"note.wish",   "0123456789ABCDEF0123456789abcdef.wish",
		NAME "0.wish", NAME ".wish.bak",
		NAME,
	};
	struct fixture *f = *state;
	struct ck_admin_request taken;
	char path[400];

	for (size_t i = 0; i < CK_COUNT(names); i++)
		put(f, names[i], "crikeep-wish 1\nverb evict\nentry 1\n", 34);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	for (size_t i = 0; i < CK_COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/wishes/%s", f->place.dir, names[i]);
		assert_int_equal(access(path, F_OK), 0);
	}
	assert_int_equal(ck_admin_answer_fetch(f->place.dir, "../../etc/passwd",
					       &(struct ck_admin_answer){ 0 }, &f->err),
			 -CK_EINVAL);
}

static void more_requests_than_a_round_looks_at_all_get_through(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request taken;
	unsigned n = 0;

	for (unsigned i = 0; i < 3 * CK_ADMIN_REQUESTS_MAX; i++) {
		char name[64];
		snprintf(name, sizeof(name), "%032x.wish", i);
		put(f, name, i % 2 ? "bad\n" : "crikeep-wish 1\nverb evict\nentry 1\n",
		    i % 2 ? 4 : 34);
	}
	while (ck_admin_requests_take(f->requests, &taken) == 1) {
		n++;
		ck_admin_requests_answer(f->requests, &taken, &(struct ck_admin_answer){ 0 });
	}
	assert_int_equal(n, 3 * CK_ADMIN_REQUESTS_MAX / 2);
}

static void an_answer_nobody_fetches_is_removed(void **state)
{
	struct fixture *f = *state;
	struct timespec old[2] = {{time(NULL) - 3700, 0}, {time(NULL) - 3700, 0}};
	struct ck_admin_request taken;
	char path[400];

	put(f, NAME ".answer", "x", 1);
	snprintf(path, sizeof(path), "%s/wishes/%s.answer", f->place.dir, NAME);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	put(f, "fedcba9876543210fedcba9876543210.answer", "x", 1);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void a_directory_others_can_write_into_is_not_believed(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request taken, request = { .verb = CK_ADMIN_EVICT, .entry = 1 };
	char path[400], name[33];

	snprintf(path, sizeof(path), "%s/wishes", f->place.dir);
	put(f, NAME ".wish", "crikeep-wish 1\nverb evict\nentry 1\n", 34);
	ck_admin_requests_close(f->requests);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(ck_admin_requests_open(f->place.dir, &f->requests, &f->err), 0);
	assert_int_equal(ck_admin_requests_fd(f->requests), -1);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 0);
	assert_int_equal(ck_admin_request_make(f->place.dir, &request, name, &f->err), -CK_EIO);
}

/* root's, when crikeepd has given up root */
static void a_directory_of_root_is_believed(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request request = { .verb = CK_ADMIN_EVICT, .entry = 1 };
	char path[400], name[33];

	if (geteuid() != 0)
		return; /* nobody else can have such a directory */
	snprintf(path, sizeof(path), "%s/wishes", f->place.dir);
	assert_int_equal(chmod(f->place.top, 0755), 0);
	assert_int_equal(chmod(f->place.dir, 0755), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(seteuid(65534), 0);
	int r = ck_admin_request_make(f->place.dir, &request, name, &f->err);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(r, -CK_EIO); /* it may not write there, which comes after that */
	assert_int_equal(f->err.sys, EACCES);
}

static void an_answer_that_cannot_be_written_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request taken;
	char path[400];

	put(f, NAME ".wish", "crikeep-wish 1\nverb evict\nentry 1\n", 34);
	assert_int_equal(ck_admin_requests_take(f->requests, &taken), 1);
	snprintf(path, sizeof(path), "%s/wishes/%s.answer", f->place.dir, NAME);
	assert_int_equal(mkdir(path, 0700), 0);
	ck_admin_requests_answer(f->requests, &taken, &(struct ck_admin_answer){ 0 });
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/wishes/%s.tmp", f->place.dir, NAME);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void without_a_state_directory_there_is_nobody_to_ask(void **state)
{
	struct fixture *f = *state;
	struct ck_admin_request request = { .verb = CK_ADMIN_EVICT, .entry = 1 };
	char name[33];

	assert_int_equal(ck_admin_request_make("/nonexistent/crikeep", &request, name, &f->err),
			 -CK_ENOTFOUND);
}

static void only_the_exact_text_is_a_request(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"crikeep-wish 2\nverb evict\nentry 1\n",
		"crikeep-wish 1\nverb evict\nentry 1",
		"crikeep-wish 1\nverb evict\nentry 1\n\n",
		"crikeep-wish 1\nentry 1\nverb evict\n",
		"crikeep-wish 1\nverb evict\nentry 0\n",
		"crikeep-wish 1\nverb evict\nentry 01\n",
		"crikeep-wish 1\nverb evict\nentry -1\n",
		"crikeep-wish 1\nverb evict\nentry 1 \n",
		"crikeep-wish 1\r\nverb evict\nentry 1\n",
		"crikeep-wish 1\nverb evict\nentry 9999999999999999999\n",
		"crikeep-wish 1\nverb  evict\nentry 1\n",
		"crikeep-wish 1\nverb\nentry 1\n",
		"crikeep-wish 1\nverb evict\nentry \n",
		"crikeep-wish 1\nverb evict\nentry 1\n2\n",
	};
	struct ck_admin_request request;
	struct ck_admin_answer answer;
	struct ck_error err;
	char text[400];

	(void)state;
	for (size_t i = 0; i < CK_COUNT(bad); i++)
		assert_int_equal(ck_admin_request_parse(bad[i], strlen(bad[i]), &request, &err),
				 -CK_EMALFORMED);
	snprintf(text, sizeof(text), "crikeep-wish 1\nverb evict\nentry %d\n", 999999999);
	assert_int_equal(ck_admin_request_parse(text, strlen(text), &request, &err), 0);
	assert_int_equal(request.entry, 999999999);
	snprintf(text, sizeof(text), "crikeep-answer 1\ndone yes\ntext %0255d\n", 0);
	assert_int_equal(ck_admin_answer_parse(text, strlen(text), &answer, &err), 0);
	assert_int_equal(strlen(answer.text), 255);
	snprintf(text, sizeof(text), "crikeep-answer 1\ndone yes\ntext %0256d\n", 0);
	assert_int_equal(ck_admin_answer_parse(text, strlen(text), &answer, &err), -CK_EMALFORMED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_taken_answered_and_fetched_once),
		TEST(a_request_waits_for_an_owner),
		TEST(a_malformed_request_is_answered_with_what_is_wrong),
		TEST(what_is_not_a_small_file_is_refused),
		TEST(other_names_are_left_alone),
		TEST(more_requests_than_a_round_looks_at_all_get_through),
		TEST(an_answer_nobody_fetches_is_removed),
		TEST(a_directory_others_can_write_into_is_not_believed),
		TEST(a_directory_of_root_is_believed),
		TEST(an_answer_that_cannot_be_written_leaves_nothing),
		TEST(without_a_state_directory_there_is_nobody_to_ask),
		TEST(only_the_exact_text_is_a_request),
	};
	return CK_TEST_MAIN(tests);
}
