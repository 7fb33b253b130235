/* SPDX-License-Identifier: Apache-2.0 */
/* The status file of plugins: what is written is read as it was, whatever the texts hold; what is
 * malformed is refused. */
#include "tests/unit/harness.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hooks/status-file.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "tests/unit/rows.h"

struct fixture {
	struct place place;
	char path[400];
	struct ck_nri_status *status;
	struct ck_error err;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	place_make(&f->place);
	mkdir(f->place.dir, 0700);
	snprintf(f->path, sizeof(f->path), "%s/" CK_STATUS_FILE, f->place.dir);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	ck_fault_arm(0, 0, false);
	ck_status_free(f->status);
	place_remove(&f->place);
	free(f);
	return 0;
}

static struct ck_nri_plugin plugin(const char *name, const char *error)
{
	return (struct ck_nri_plugin){ .size = sizeof(struct ck_nri_plugin),
				       .name = name,
				       .state = "ready",
				       .policy = CK_NRI_ERROR,
				       .launched = 1,
				       .pid = 812,
				       .events = 0x3fff,
				       .queued = 3,
				       .since = 17,
				       .sent = 41,
				       .late = 2,
				       .failed = 1,
				       .last_error = error };
}

static void assert_same(const struct ck_nri_plugin *a, const struct ck_nri_plugin *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->state, b->state);
	assert_int_equal(a->policy, b->policy);
	assert_int_equal(a->keep_connected, b->keep_connected);
	assert_int_equal(a->launched, b->launched);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->events, b->events);
	assert_int_equal(a->adjusting, b->adjusting);
	assert_int_equal(a->queued, b->queued);
	assert_true(a->since == b->since && a->overdue_since == b->overdue_since);
	assert_true(a->sent == b->sent && a->late == b->late && a->failed == b->failed);
	assert_string_equal(a->last_error, b->last_error);
}

static void what_is_written_is_read(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	struct ck_nri_plugin plugins[] = {
		plugin("", ""), plugin("10-logger", ""),
		plugin("20-a b", "RunPodSandbox: \\ = \x01\xff\n\tplugins=9 \xc3\xa4")
	};
	plugins[0].state = "connected";
	plugins[0].launched = plugins[0].pid = 0;
	plugins[2].adjusting = plugins[2].keep_connected = 1;
	plugins[2].policy = CK_NRI_REQUIRED;
	plugins[2].pid = INT_MAX;
	plugins[2].queued = UINT_MAX;
	plugins[2].overdue_since = plugins[2].sent = UINT64_MAX;
	assert_int_equal(ck_status_write(f->path, 1234, plugins, 3, &f->err), 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(ck_status_read(f->path, &f->status, &f->err), 0);
	assert_int_equal(f->status->now, 1234);
	assert_int_equal(f->status->pid, getpid());
	assert_true(f->status->wall <= time(NULL) && f->status->wall > time(NULL) - 60);
	assert_int_equal(strlen(f->status->boot), 36);
	assert_int_equal(f->status->n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_same(&f->status->plugins[i], &plugins[i]);
}

static void what_is_written_last_is_read(void **state)
{
	struct fixture *f = *state;
	struct ck_nri_plugin one = plugin("10-logger", "");
	char left[420];
	snprintf(left, sizeof(left), "%s.new", f->path);
	close(open(left, O_WRONLY | O_CREAT, 0644)); /* of somebody who died */
	assert_int_equal(ck_status_write(f->path, 1, &one, 1, &f->err), 0);
	assert_int_equal(ck_status_write(f->path, 2, NULL, 0, &f->err), 0);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(ck_status_read(f->path, &f->status, &f->err), 0);
	assert_int_equal(f->status->now, 2);
	assert_int_equal(f->status->n, 0);
}

/* names and errors are others' texts, and the limits are of plugins and of what is shown: the file
 * stays within its own */
static void the_longest_file_can_be_read(void **state)
{
	struct fixture *f = *state;
	struct ck_nri_plugin plugins[CK_NRI_PLUGINS_MAX + 5];
	char name[CK_NRI_NAME_MAX + 9], error[CK_TEXT_MAX + 9];
	struct stat st;
	memset(name, '\x01', sizeof(name) - 1);
	memset(error, '\xff', sizeof(error) - 1);
	name[sizeof(name) - 1] = error[sizeof(error) - 1] = '\0';
	for (size_t i = 0; i < CK_COUNT(plugins); i++) {
		plugins[i] = plugin(name, error);
		plugins[i].state = "synchronizing";
		plugins[i].since = plugins[i].overdue_since = plugins[i].sent = plugins[i].late =
			plugins[i].failed = UINT64_MAX;
		plugins[i].events = plugins[i].queued = UINT_MAX;
	}
	assert_int_equal(ck_status_write(f->path, UINT64_MAX, plugins, CK_COUNT(plugins), &f->err),
			 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_true(st.st_size < CK_STATUS_FILE_MAX / 2);
	assert_int_equal(ck_status_read(f->path, &f->status, &f->err), 0);
	assert_int_equal(f->status->n, CK_NRI_PLUGINS_MAX);
	assert_int_equal(strlen(f->status->plugins[59].name), CK_NRI_NAME_MAX);
	assert_int_equal(strlen(f->status->plugins[59].last_error), CK_TEXT_MAX);
}

#define HEAD   "crikeep-plugins 1 boot=b time=5 wall=6 pid=7 plugins=1\n"
#define FIRST \
	"plugin name=10-a state=ready policy=error keep=0 launched=0 pid=0 events=1 adjusting=0 " \
	"queued=0 "
#define SECOND "since=1 overdue=0 sent=0 late=0 failed=0 error="

static int parse(struct fixture *f, const char *text)
{
	ck_status_free(f->status);
	f->status = NULL;
	memset(&f->err, 0, sizeof(f->err));
	return ck_status_parse(text, strlen(text), &f->status, &f->err);
}

static void what_is_malformed_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text;
		int line;
	} bad[] = {
		{ "", 1 },
		{ "crikeep-plugins", 1 },
		{ "crikeep-plugins 1\n", 1 },
		{ "crikeep-plugins 2 boot=b time=5 wall=6 pid=7 plugins=0\n", 1 },
		{ "crikeep-plugins=1 boot=b time=5 wall=6 pid=7 plugins=0\n", 1 },
		{ "crikeep-plugins 1 boot=0123456789012345678901234567890123456 time=5 wall=6 "
		  "pid=7 plugins=0\n",
		  1 },
		{ "crikeep-plugins 1 boot=b time=05 wall=6 pid=7 plugins=0\n", 1 },
		{ "crikeep-plugins 1 boot=b time=+5 wall=6 pid=7 plugins=0\n", 1 },
		{ "crikeep-plugins 1 boot=b time= wall=6 pid=7 plugins=0\n", 1 },
		{ "crikeep-plugins 1 boot=b time=18446744073709551616 wall=6 pid=7 plugins=0\n",
		  1 },
		{ "crikeep-plugins 1 boot=b time=5 wall=9223372036854775808 pid=7 plugins=0\n", 1 },
		{ "crikeep-plugins 1 boot=b time=5 wall=6 pid=2147483648 plugins=0\n", 1 },
		{ "crikeep-plugins 1 boot=b time=5 wall=6 pid=7 plugins=61\n", 1 },
		{ "crikeep-plugins 1 boot=b time=5 wall=6 pid=7 plugins=0", 1 },
		{ "crikeep-plugins 1 boot=b time=5 wall=6 pid=7 plugins=0 \n", 1 },
		{ "crikeep-plugins 1 boot=b time=5 wall=6 pid=7\nplugins=0\n", 1 },
		{ "crikeep-plugins 1 boot=b time=5 wall=6 pid=7 plugins=0\n\n", 2 },
		{ HEAD, 2 },
		{ HEAD FIRST SECOND, 2 },
		{ HEAD "x" FIRST SECOND "\n", 2 },
		{ HEAD FIRST "\n" SECOND "\n", 2 },
		{ HEAD FIRST SECOND "\n" FIRST SECOND "\n", 3 },
		{ HEAD FIRST SECOND "a b\n", 2 },
		{ HEAD FIRST SECOND "\\\n", 2 },
		{ HEAD FIRST SECOND "\\x4\n", 2 },
		{ HEAD FIRST SECOND "\\xAA\n", 2 },
		{ HEAD FIRST SECOND "\\y41\n", 2 },
		{ HEAD FIRST SECOND "a\\x00b\n", 2 },
		{ HEAD FIRST SECOND "\t\n", 2 },
		{ HEAD FIRST SECOND "\xc3\xa4\n", 2 },
		{ HEAD "plugin name=10-a state=0123456789abcdef policy=error", 2 },
		{ HEAD "plugin name=10-a state=ready policy=errors keep=0 launched=0 pid=0", 2 },
		{ HEAD "plugin name=10-a state=ready policy=error keep=0 launched=2 pid=0", 2 },
		{ HEAD "plugin state=ready name=10-a policy=error keep=0 launched=0 pid=0", 2 },
	};
	struct fixture *f = *state;
	/* else all would be refused for one thing */
	assert_int_equal(parse(f, HEAD FIRST SECOND "\n"), 0);
	assert_int_equal(parse(f, HEAD FIRST SECOND "\\x41\\x20\n"), 0);
	assert_string_equal(f->status->plugins[0].last_error, "A ");
	for (size_t i = 0; i < CK_COUNT(bad); i++) {
		char line[16];
		if (parse(f, bad[i].text) != -CK_EMALFORMED)
			fail_msg("taken: %s", bad[i].text);
		snprintf(line, sizeof(line), "line %d:", bad[i].line);
		if (!strstr(f->err.text, line))
			fail_msg("%s is not of %s: %s", f->err.text, line, bad[i].text);
	}
}

static void what_is_no_file_is_refused(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(ck_status_read(f->path, &f->status, &f->err), -CK_ENOTFOUND);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(ck_status_read(f->path, &f->status, &f->err), -CK_EMALFORMED);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(symlink("/etc/hostname", f->path), 0);
	assert_int_equal(ck_status_read(f->path, &f->status, &f->err), -CK_EIO);
	assert_int_equal(unlink(f->path), 0);
	close(open(f->path, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(truncate(f->path, CK_STATUS_FILE_MAX + 1), 0);
	assert_int_equal(ck_status_read(f->path, &f->status, &f->err), -CK_EMALFORMED);
	assert_int_equal(ck_status_write("/nowhere/at/all", 1, NULL, 0, &f->err), -CK_EIO);
}

static void without_memory_the_old_file_stays(void **state)
{
	struct fixture *f = *state;
	struct ck_nri_plugin one = plugin("10-logger", "");
	int r = -CK_ENOMEM;
	assert_int_equal(ck_status_write(f->path, 1, NULL, 0, &f->err), 0);
	for (unsigned n = 1; r < 0; n++) {
		ck_fault_arm(CK_FAULT_ALLOC, n, false);
		r = ck_status_write(f->path, 2, &one, 1, &f->err);
		bool hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_int_equal(r, hit ? -CK_ENOMEM : 0);
		ck_status_free(f->status);
		f->status = NULL;
		assert_int_equal(ck_status_read(f->path, &f->status, &f->err), 0);
		assert_int_equal(f->status->n, hit ? 0 : 1);
	}
	for (unsigned n = 1;; n++) {
		struct ck_nri_status *status = NULL;
		ck_fault_arm(CK_FAULT_ALLOC, n, false);
		r = ck_status_read(f->path, &status, &f->err);
		bool hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_int_equal(r, hit ? -CK_ENOMEM : 0);
		ck_status_free(status);
		if (!hit)
			break;
		assert_null(status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_written_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_written_last_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_longest_file_can_be_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_malformed_is_refused_with_its_line, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_memory_the_old_file_stays, set_up,
						tear_down),
	};
	return CK_TEST_MAIN(tests);
}
