/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines never wait: full, closed and unread ends of every kind, a journal that is not there,
 * comes, and goes. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/log.h"
#include "src/base/utf8.h"
#include "tests/unit/harness.h"

#define FAR "/nonexistent/socket"

static uint64_t now = 1000 * CK_NS_PER_S;

static uint64_t clock_of_test(void)
{
	return now;
}

static uint64_t wall_clock_of_test(void)
{
	return 1700000000 * CK_NS_PER_S + 4567890;
}

static int setup(void **state)
{
	(void)state;
	ck_log_clock = clock_of_test;
	ck_log_wall_clock = wall_clock_of_test;
	unsetenv("JOURNAL_STREAM");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ck_log_format(CK_LOG_TEXT);
	ck_log_close();
	return 0;
}

/* what can be read now, up to the size of the buffer; borrowed */
static const char *drain(int fd)
{
	static char buf[1 << 18];
	size_t len = 0;
	ssize_t n;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	while ((n = read(fd, buf + len, sizeof(buf) - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	return buf;
}

/* lines, all different, until one is dropped */
static unsigned fill(void)
{
	unsigned n = 0;
	while (!ck_log_dropped() && n < 100000)
		ck_log(CK_LOG_INFO,
		       "line %u of many, which fill what they are written to until nothing more "
		       "fits",
		       n++);
	assert_true(ck_log_dropped() == 1);
	return n - 1; /* these were written */
}

struct journal {
	int fd;
	char path[108];
};

static void journal_name(struct journal *journal)
{
	const char *dir = getenv("TMPDIR");
	snprintf(journal->path, sizeof(journal->path), "%s/journal-%d", dir && *dir ? dir : "/tmp",
		 (int)getpid());
	unlink(journal->path);
	journal->fd = -1;
}

static void journal_bind(struct journal *journal)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	strcpy(address.sun_path, journal->path);
	journal->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(journal->fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void journal_close(struct journal *journal)
{
	close(journal->fd);
	unlink(journal->path);
}

static void assert_datagram(const struct journal *journal, const char *want)
{
	char buf[4096];
	ssize_t n = recv(journal->fd, buf, sizeof(buf) - 1, 0);
	if (!want) {
		assert_true(n < 0 && errno == EAGAIN);
		return;
	}
	assert_true(n >= 0);
	buf[n] = '\0';
	assert_string_equal(buf, want);
}

#define DATAGRAM(priority, text) \
	"PRIORITY=" #priority "\nSYSLOG_IDENTIFIER=crikeepd\nMESSAGE=" text "\n"

/* ---- the text -------------------------------------------------------------------------------- */

static void a_line_tells_its_level(void **state)
{
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_AUTO, CK_LOG_INFO, FAR, p[1]);
	ck_log(CK_LOG_ERROR, "one %d", 1);
	ck_log(CK_LOG_WARNING, "two");
	ck_log(CK_LOG_INFO, "three");
	ck_log(CK_LOG_DEBUG, "four");
	ck_log_level(CK_LOG_DEBUG);
	ck_log(CK_LOG_DEBUG, "five");
	assert_string_equal(drain(p[0]), "crikeepd: error: one 1\ncrikeepd: warning: "
					 "two\ncrikeepd: three\ncrikeepd: debug: five\n");
	assert_true(ck_log_dropped() == 0);
	close(p[0]);
	close(p[1]);
}

static void text_is_made_safe(void **state)
{
	int p[2];
	char longest[5000];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	ck_log(CK_LOG_INFO, "%s", "a\nPRIORITY=0\x1b[2Jb\xff\xe2\x80\xae caf\xc3\xa9");
	assert_string_equal(
		drain(p[0]),
		"crikeepd: a\\x0aPRIORITY=0\\x1b[2Jb\\xff\\xe2\\x80\\xae caf\xc3\xa9\n");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ck_log(CK_LOG_INFO, "%s", longest);
	const char *line = drain(p[0]);
	assert_true(strlen(line) < CK_LOG_LINE + 64 && line[strlen(line) - 1] == '\n');
	memset(longest, '\n', sizeof(longest) - 1);
	ck_log(CK_LOG_INFO, "%s", longest);
	line = drain(p[0]);
	assert_true(strlen(line) < CK_LOG_LINE + 64);
	assert_string_equal(line + strlen(line) - 8, "\\x0a...\n");
	close(p[0]);
	close(p[1]);
}

static void the_same_line_is_written_once_a_second(void **state)
{
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	for (int i = 0; i < 100; i++) {
		ck_log(CK_LOG_INFO, "again");
		ck_log(CK_LOG_INFO, "and again");
	}
	ck_log(CK_LOG_ERROR, "again"); /* another level is another line */
	assert_string_equal(drain(p[0]),
			    "crikeepd: again\ncrikeepd: and again\ncrikeepd: error: again\n");
	now += CK_NS_PER_S - 1;
	ck_log(CK_LOG_INFO, "again");
	assert_string_equal(drain(p[0]), "");
	now += 1;
	ck_log(CK_LOG_INFO, "again");
	assert_string_equal(drain(p[0]), "crikeepd: again (repeated 100 times)\n");
	now += CK_NS_PER_S;
	ck_log(CK_LOG_INFO, "again");
	assert_string_equal(drain(p[0]), "crikeepd: again\n");
	ck_log(CK_LOG_INFO, "again");
	now += CK_NS_PER_S;
	ck_log(CK_LOG_INFO, "again");
	assert_string_equal(drain(p[0]), "crikeepd: again (repeated once)\n");
	assert_true(ck_log_dropped() == 0);
	close(p[0]);
	close(p[1]);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

#define OBJECT(level, rest) \
	"{\"time\":\"2023-11-14T22:13:20.004567Z\",\"level\":\"" level "\",\"message\":" rest "}"

static void as_json_a_line_is_one_object(void **state)
{
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_DEBUG, FAR, p[1]);
	ck_log(CK_LOG_INFO, "as text");
	ck_log_format(CK_LOG_JSON_LINES);
	ck_log(CK_LOG_ERROR, "one %d", 1);
	ck_log(CK_LOG_WARNING, "two");
	ck_log(CK_LOG_INFO, "three");
	ck_log(CK_LOG_DEBUG, "four");
	assert_string_equal(drain(p[0]), "crikeepd: as text\n" OBJECT("error", "\"one 1\"")
					 "\n" OBJECT("warning", "\"two\"")
					 "\n" OBJECT("info", "\"three\"")
					 "\n" OBJECT("debug", "\"four\"") "\n");
	/* the text is what it is without JSON, and its quotes and backslashes are escaped */
	ck_log(CK_LOG_INFO, "%s", "a\n\"b\"\\\x1b[2J\xff\xe2\x80\xae caf\xc3\xa9");
	assert_string_equal(drain(p[0]), OBJECT("info", "\"a\\\\x0a\\\"b\\\"\\\\"
							"\\\\x1b[2J\\\\xff\\\\xe2\\\\x80"
							"\\\\xae caf\xc3\xa9\"") "\n");
	close(p[0]);
	close(p[1]);
}

static void as_json_a_line_says_what_it_is_about(void **state)
{
	static const struct ck_log_about all = {
		"container", "prod",	  "we\"b",	"u-1", "app", "4f\n\xff\xf3\xa0\x80\x81",
		3,	     2,	 11 * CK_NS_PER_S, 0 },
				  few = { .kind = "sandbox", .created_in = -1, .after = -1 };
	char members[CK_LOG_MEMBERS];
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	ck_log_members(&all, members);
	ck_log_with(CK_LOG_INFO, members, "text");
	assert_string_equal(drain(p[0]), "crikeepd: text\n");
	ck_log_format(CK_LOG_JSON_LINES);
	ck_log_with(CK_LOG_DEBUG, members, "not at this level");
	ck_log_with(CK_LOG_INFO, members, "json");
	assert_string_equal(
		drain(p[0]),
		OBJECT("info",
		       "\"json\",\"kind\":\"container\",\"namespace\":\"prod\",\"pod\":\"we\\\"b\","
		       "\"uid\":\"u-1\",\"container\":\"app\",\"attempt\":3,"
		       "\"id\":\"4f\\u000a\\ufffd\\udb40\\udc01\",\"created_in_seconds\":11.000,"
		       "\"after_seconds\":0.000,\"requests\":2") "\n");
	ck_log_members(&few, members);
	assert_string_equal(members, ",\"kind\":\"sandbox\",\"attempt\":0,\"requests\":0");
	close(p[0]);
	close(p[1]);
}

/* a name that is too long is left out, and a text that is too long is cut */
static void as_json_a_line_fits_into_a_pipe(void **state)
{
	char name[CK_NAME_MAX_LEN + 1], text[CK_LOG_LINE], members[CK_LOG_MEMBERS];
	int p[2];
	(void)state;
	memset(name, '"', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	struct ck_log_about about = { .kind = "sandbox", .pod = name, .id = "x" };
	about.uid = name + 800;
	ck_log_members(&about, members);
	assert_null(strstr(members, "\"pod\""));
	assert_non_null(strstr(members, "\"uid\""));
	assert_non_null(strstr(members, ",\"attempt\":0,\"id\":\"x\""));
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	ck_log_format(CK_LOG_JSON_LINES);
	memset(text, '\\', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_log_with(CK_LOG_INFO, members, text);
	const char *line = drain(p[0]);
	assert_true(strlen(line) > 3900 && strlen(line) <= PIPE_BUF);
	assert_non_null(strstr(line, "\\\\...\",\"kind\":\"sandbox\""));
	assert_string_equal(line + strlen(line) - 2, "}\n");
	close(p[0]);
	close(p[1]);
}

/* Return: the string behind @s, which begins with a quote; strict, as RFC 8259 has it */
static const char *after_string(const char *s)
{
	assert_int_equal(*s++, '"');
	while (*s != '"') {
		uint32_t c;
		size_t n = ck_utf8_next(s, &c);
		assert_true(n > 0 && !ck_utf8_unsafe(c));
		s += n;
		if (c != '\\')
			continue;
		assert_true(*s && strchr("\"\\u", *s));
		if (*s++ == 'u')
			for (int i = 0; i < 4; i++)
				assert_true(isxdigit((unsigned char)*s++));
	}
	return s + 1;
}

static void as_json_no_bytes_break_a_line(void **state)
{
	char bytes[700], members[CK_LOG_MEMBERS];
	uint32_t seed = 1;
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	ck_log_format(CK_LOG_JSON_LINES);
	for (int round = 0; round < 2000; round++) {
		size_t n = seed % sizeof(bytes);
		for (size_t i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			bytes[i] = (char)(seed >> 24 ? seed >> 24 : '"');
		}
		bytes[n] = '\0';
		seed = seed * 1664525 + 1013904223;
		struct ck_log_about about = { .kind = "x", .pod = bytes, .id = bytes + n / 2 };
		ck_log_members(&about, members);
		ck_log_with(CK_LOG_INFO, members, bytes);
		const char *s = drain(p[0]);
		assert_int_equal(*s++, '{');
		for (;;) {
			s = after_string(s);
			assert_int_equal(*s++, ':');
			s = *s == '"' ? after_string(s) : s + strspn(s, "0123456789.");
			if (*s != ',')
				break;
			s++;
		}
		assert_string_equal(s, "}\n");
		now += CK_NS_PER_S;
	}
	close(p[0]);
	close(p[1]);
}

static void as_json_what_was_dropped_is_told(void **state)
{
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	ck_log_format(CK_LOG_JSON_LINES);
	fill();
	drain(p[0]);
	ck_log(CK_LOG_INFO, "read again");
	assert_string_equal(drain(p[0]),
			    OBJECT("warning", "\"1 log line could not be written\"") "\n" OBJECT(
				    "info", "\"read again\"") "\n");
	close(p[0]);
	close(p[1]);
}

/* ---- standard error -------------------------------------------------------------------------- */

static void a_full_pipe_drops_counts_and_tells(void **state)
{
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	unsigned written = fill();
	assert_true(written > 100);
	ck_log(CK_LOG_INFO, "one more");
	assert_true(ck_log_dropped() == 2);
	assert_false(fcntl(p[1], F_GETFL) & O_NONBLOCK); /* it is others' pipe, too */

	const char *all = drain(p[0]);
	unsigned lines = 0;
	for (const char *s = all; (s = strchr(s, '\n')); s++)
		lines++;
	assert_int_equal(lines, written);
	assert_int_equal(all[strlen(all) - 1], '\n'); /* none was cut */
	ck_log(CK_LOG_INFO, "it goes on");
	assert_string_equal(
		drain(p[0]),
		"crikeepd: warning: 2 log lines could not be written\ncrikeepd: it goes on\n");
	ck_log(CK_LOG_INFO, "and on");
	assert_string_equal(drain(p[0]), "crikeepd: and on\n");
	assert_true(ck_log_dropped() == 2);
	close(p[0]);
	close(p[1]);
}

static void a_closed_pipe_costs_lines_only(void **state)
{
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	close(p[0]);
	ck_log(CK_LOG_INFO, "nobody reads");
	ck_log(CK_LOG_INFO, "this");
	assert_true(ck_log_dropped() == 2);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]); /* broken from the beginning */
	ck_log(CK_LOG_INFO, "nobody reads");
	assert_true(ck_log_dropped() == 1);
	close(p[1]);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]); /* no descriptor at all */
	ck_log(CK_LOG_INFO, "nobody reads");
	assert_true(ck_log_dropped() == 1);
}

static void a_pipe_that_cannot_be_opened_again_is_not_waited_for(void **state)
{
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	int flags = fcntl(p[1], F_GETFL);
	fcntl(p[1], F_SETFL, flags | O_NONBLOCK);
	while (write(p[1], "0123456789", 10) > 0)
		;
	while (write(p[1], "0", 1) > 0)
		;
	fcntl(p[1], F_SETFL, flags);
	close(p[0]); /* opening it without a reader fails */
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	ck_log(CK_LOG_INFO, "full and without a reader");
	assert_true(ck_log_dropped() == 1);
	close(p[1]);
}

static void a_socket_nobody_reads_drops(void **state)
{
	int s[2];
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	ck_log_open_at(CK_LOG_TO_AUTO, CK_LOG_INFO, FAR, s[1]);
	fill();
	assert_false(fcntl(s[1], F_GETFL) & O_NONBLOCK);
	drain(s[0]);
	ck_log(CK_LOG_INFO, "read again");
	assert_string_equal(
		drain(s[0]),
		"crikeepd: warning: 1 log line could not be written\ncrikeepd: read again\n");
	close(s[0]);
	ck_log(CK_LOG_INFO, "nobody is left");
	assert_true(ck_log_dropped() == 2);
	close(s[1]);
}

static void fill_a_terminal(int master, int terminal)
{
	struct termios raw;
	assert_int_equal(tcgetattr(terminal, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(terminal, TCSANOW, &raw), 0);
	ck_log_open_at(CK_LOG_TO_AUTO, CK_LOG_INFO, FAR, terminal);
	fill();
	assert_false(fcntl(terminal, F_GETFL) & O_NONBLOCK);
	const char *all = drain(master);
	bool cut = all[strlen(all) - 1] != '\n'; /* a terminal takes what fits */
	ck_log(CK_LOG_INFO, "read again");
	char want[256];
	snprintf(want, sizeof(want),
		 "%scrikeepd: warning: 1 log line could not be written\ncrikeepd: read again\n",
		 cut ? "\n" : "");
	assert_string_equal(drain(master), want);
}

static void terminal_open(int *ret_master, int *ret_terminal)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	*ret_master = master;
	*ret_terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(*ret_terminal >= 0);
}

static void a_stopped_terminal_drops_and_goes_on_with_a_whole_line(void **state)
{
	int master, terminal;
	(void)state;
	terminal_open(&master, &terminal);
	fill_a_terminal(master, terminal);
	close(terminal);
	close(master);
}

static void nor_is_a_terminal_of_somebody_else_waited_for(void **state)
{
	int master, terminal;
	uid_t uid = geteuid();
	(void)state;
	terminal_open(&master, &terminal);
	assert_int_equal(fchmod(terminal, 0), 0);
	if (uid == 0)
		assert_int_equal(seteuid(65534), 0); /* whom the mode stops */
	assert_true(open(ptsname(master), O_WRONLY | O_NOCTTY) < 0);
	fill_a_terminal(master, terminal);
	assert_int_equal(seteuid(uid), 0);
	close(terminal);
	close(master);
}

static void a_file_is_written_to_its_end(void **state)
{
	char path[128], buf[256] = "";
	const char *dir = getenv("TMPDIR");
	(void)state;
	snprintf(path, sizeof(path), "%s/log-%d", dir && *dir ? dir : "/tmp", (int)getpid());
	CK_AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, "before\n", 7) == 7);
	ck_log_open_at(CK_LOG_TO_AUTO, CK_LOG_INFO, FAR, fd);
	ck_log(CK_LOG_INFO, "a line");
	assert_int_equal(write(fd, "after\n", 6), 6); /* one offset for both */
	assert_true(pread(fd, buf, sizeof(buf) - 1, 0) > 0);
	assert_string_equal(buf, "before\ncrikeepd: a line\nafter\n");
	unlink(path);
}

static void a_full_disk_costs_lines_only(void **state)
{
	(void)state;
	CK_AUTO_CLOSE int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ck_log_open_at(CK_LOG_TO_AUTO, CK_LOG_INFO, FAR, fd);
	ck_log(CK_LOG_INFO, "no space");
	assert_true(ck_log_dropped() == 1);
}

/* ---- the journal ----------------------------------------------------------------------------- */

static void the_journal_gets_datagrams(void **state)
{
	struct journal journal;
	(void)state;
	journal_name(&journal);
	journal_bind(&journal);
	ck_log_open_at(CK_LOG_TO_JOURNAL, CK_LOG_INFO, journal.path, STDERR_FILENO);
	ck_log(CK_LOG_WARNING, "a %s", "text\nPRIORITY=0");
	assert_datagram(&journal, DATAGRAM(4, "a text\\x0aPRIORITY=0"));
	assert_datagram(&journal, NULL);
	ck_log_format(CK_LOG_JSON_LINES);
	ck_log(CK_LOG_INFO, "a\nb");
	assert_datagram(&journal, DATAGRAM(6, OBJECT("info", "\"a\\\\x0ab\"")));
	journal_close(&journal);
}

static void a_journal_that_does_not_read_costs_lines_only(void **state)
{
	struct journal journal;
	char buf[4096];
	(void)state;
	journal_name(&journal);
	journal_bind(&journal);
	ck_log_open_at(CK_LOG_TO_JOURNAL, CK_LOG_INFO, journal.path, STDERR_FILENO);
	unsigned written = fill();
	for (unsigned i = 0; i < written; i++)
		assert_true(recv(journal.fd, buf, sizeof(buf), 0) > 0);
	assert_datagram(&journal, NULL);
	ck_log(CK_LOG_INFO, "read again");
	assert_datagram(&journal, DATAGRAM(4, "1 log line could not be written"));
	assert_datagram(&journal, DATAGRAM(6, "read again"));
	journal_close(&journal);
}

static void a_journal_may_come_and_go(void **state)
{
	struct journal journal;
	(void)state;
	journal_name(&journal);
	ck_log_open_at(CK_LOG_TO_JOURNAL, CK_LOG_INFO, journal.path, STDERR_FILENO);
	ck_log(CK_LOG_INFO, "not there");
	assert_true(ck_log_dropped() == 1);
	journal_bind(&journal);
	ck_log(CK_LOG_INFO, "not looked for yet");
	assert_true(ck_log_dropped() == 2);
	now += CK_NS_PER_S;
	ck_log(CK_LOG_INFO, "there");
	assert_datagram(&journal, DATAGRAM(4, "2 log lines could not be written"));
	assert_datagram(&journal, DATAGRAM(6, "there"));

	journal_close(&journal); /* restarted */
	journal_bind(&journal);
	now += CK_NS_PER_S;
	ck_log(CK_LOG_INFO, "there again");
	assert_datagram(&journal, DATAGRAM(6, "there again"));
	assert_true(ck_log_dropped() == 2);
	journal_close(&journal);
}

static void auto_goes_where_standard_error_goes(void **state)
{
	struct journal journal;
	struct stat st;
	char stream[64];
	int s[2];
	(void)state;
	journal_name(&journal);
	journal_bind(&journal);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(fstat(s[1], &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	ck_log_open_at(CK_LOG_TO_AUTO, CK_LOG_INFO, journal.path, s[1]);
	ck_log(CK_LOG_INFO, "to the journal");
	assert_datagram(&journal, DATAGRAM(6, "to the journal"));
	assert_string_equal(drain(s[0]), "");

	/* its socket cannot be reached: the stream can */
	ck_log_open_at(CK_LOG_TO_AUTO, CK_LOG_INFO, FAR, s[1]);
	ck_log(CK_LOG_WARNING, "with its level");
	assert_string_equal(drain(s[0]), "<4>crikeepd: warning: with its level\n");
	ck_log_format(CK_LOG_JSON_LINES);
	ck_log(CK_LOG_WARNING, "as JSON");
	assert_string_equal(drain(s[0]), "<4>" OBJECT("warning", "\"as JSON\"") "\n");
	ck_log_format(CK_LOG_TEXT);

	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino + 1);
	/* of somebody above us, whose standard error was another */
	setenv("JOURNAL_STREAM", stream, 1);
	ck_log_open_at(CK_LOG_TO_AUTO, CK_LOG_INFO, journal.path, s[1]);
	ck_log(CK_LOG_INFO, "to standard error");
	assert_string_equal(drain(s[0]), "crikeepd: to standard error\n");
	assert_datagram(&journal, NULL);
	journal_close(&journal);
	close(s[0]);
	close(s[1]);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *log_many(void *userdata)
{
	for (int i = 0; i < 100; i++)
		ck_log(CK_LOG_INFO, "thread %s line %d", (const char *)userdata, i);
	return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
	static char a[] = "a", b[] = "b";
	pthread_t threads[2];
	int p[2];
	(void)state;
	assert_int_equal(pipe(p), 0);
	ck_log_open_at(CK_LOG_TO_STDERR, CK_LOG_INFO, FAR, p[1]);
	assert_int_equal(pthread_create(&threads[0], NULL, log_many, a), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, log_many, b), 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	unsigned lines = 0;
	char *all = (char *)(uintptr_t)drain(p[0]);
	for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		char who, end;
		int i;
		assert_int_equal(sscanf(line, "crikeepd: thread %c line %d%c", &who, &i, &end), 2);
	}
	assert_int_equal(lines, 200);
	close(p[0]);
	close(p[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_line_tells_its_level),
		TEST(text_is_made_safe),
		TEST(the_same_line_is_written_once_a_second),
		TEST(as_json_a_line_is_one_object),
		TEST(as_json_a_line_says_what_it_is_about),
		TEST(as_json_a_line_fits_into_a_pipe),
		TEST(as_json_no_bytes_break_a_line),
		TEST(as_json_what_was_dropped_is_told),
		TEST(a_full_pipe_drops_counts_and_tells),
		TEST(a_closed_pipe_costs_lines_only),
		TEST(a_pipe_that_cannot_be_opened_again_is_not_waited_for),
		TEST(a_socket_nobody_reads_drops),
		TEST(a_stopped_terminal_drops_and_goes_on_with_a_whole_line),
		TEST(nor_is_a_terminal_of_somebody_else_waited_for),
		TEST(a_file_is_written_to_its_end),
		TEST(a_full_disk_costs_lines_only),
		TEST(the_journal_gets_datagrams),
		TEST(a_journal_that_does_not_read_costs_lines_only),
		TEST(a_journal_may_come_and_go),
		TEST(auto_goes_where_standard_error_goes),
		TEST(lines_of_threads_do_not_mix),
	};
	return CK_TEST_MAIN(tests);
}
