/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing log lines without blocking. sd_journal_send() would wait for a journal that does not
 * read, so lines are written to its socket directly. Standard error stays blocking for other
 * processes that share it: a pipe or terminal is opened once more, and on a socket each call says
 * that it must not block. Another user's terminal cannot be opened; it is made non-blocking for the
 * one call.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/base/log.h"

#define JOURNAL_PATH "/run/systemd/journal/socket"

enum way {
	NOWHERE,
	JOURNAL,
	SOCKET, /* standard error is a socket */
	FILE_,  /* opened by us, non-blocking; or a regular file */
	SHARED, /* a terminal or pipe that cannot be opened again */
};

struct line { /* written within the last second */
	enum ck_log_level level;
	uint64_t at;
	unsigned left_out;
	char text[CK_LOG_LINE];
};

static struct {
	pthread_mutex_t lock;
	const char *name; /* of the program */
	enum way way;
	enum ck_log_level level;
	enum ck_log_format format;
	int fd;
	bool prefix;      /* "<6>": standard error leads to the journal */
	bool in_line;     /* the last line was written in part */
	uint64_t dialled; /* when the journal was last connected to */
	struct sockaddr_un journal;
	uint64_t dropped, told; /* lines dropped, and how many of them were reported */
	struct line lines[CK_LOG_SAME];
} sink = { .lock = PTHREAD_MUTEX_INITIALIZER, .name = "crikeepd", .level = CK_LOG_INFO, .fd = -1 };

static uint64_t kernel_clock(void)
{
	return ck_clock_ns(CLOCK_MONOTONIC);
}

static uint64_t kernel_wall_clock(void)
{
	return ck_clock_ns(CLOCK_REALTIME);
}

uint64_t (*ck_log_clock)(void) = kernel_clock;
uint64_t (*ck_log_wall_clock)(void) = kernel_wall_clock;

/* ---- opening --------------------------------------------------------------------------------- */

/* JOURNAL_STREAM is "device:inode" of the stream that systemd gave us */
static bool is_journal_stream(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;
	char end;
	return stream && sscanf(stream, "%llu:%llu%c", &dev, &ino, &end) == 2 &&
	       fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static bool open_journal(const char *path)
{
	if (strlen(path) >= sizeof(sink.journal.sun_path))
		return false;
	sink.journal = (struct sockaddr_un){ .sun_family = AF_UNIX };
	strcpy(sink.journal.sun_path, path);
	sink.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	sink.way = sink.fd < 0 ? NOWHERE : JOURNAL;
	sink.dialled = ck_log_clock();
	return sink.fd >= 0 &&
	       connect(sink.fd, (struct sockaddr *)&sink.journal, sizeof(sink.journal)) == 0;
}

static void open_stderr(int fd)
{
	char self[sizeof("/proc/self/fd/") + 12];
	struct stat st;
	sink.way = NOWHERE;
	if (fstat(fd, &st) < 0)
		return;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	/* a regular file opened again would have another offset */
	bool again = S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode);
	sink.fd = again ? open(self, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	sink.way = S_ISSOCK(st.st_mode) ? SOCKET : again && sink.fd < 0 ? SHARED : FILE_;
	if (sink.fd < 0)
		sink.fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (sink.fd < 0)
		sink.way = NOWHERE;
}

void ck_log_open_at(enum ck_log_target target, enum ck_log_level level, const char *journal, int fd)
{
	bool stream = is_journal_stream(fd);
	ck_log_close();
	signal(SIGPIPE, SIG_IGN);
	pthread_mutex_lock(&sink.lock);
	sink.level = level;
	bool wanted = target == CK_LOG_TO_JOURNAL || (target == CK_LOG_TO_AUTO && stream);
	if (wanted && !open_journal(journal) && target == CK_LOG_TO_AUTO) {
		if (sink.fd >= 0)
			close(sink.fd);
		sink.fd = -1;
		wanted = false;
	}
	if (!wanted) {
		open_stderr(fd);
		sink.prefix = stream;
	}
	pthread_mutex_unlock(&sink.lock);
}

void ck_log_open(const char *name, enum ck_log_target target, enum ck_log_level level)
{
	sink.name = name;
	ck_log_open_at(target, level, JOURNAL_PATH, STDERR_FILENO);
}

void ck_log_close(void)
{
	pthread_mutex_lock(&sink.lock);
	if (sink.fd >= 0)
		close(sink.fd);
	sink.fd = -1;
	sink.way = NOWHERE;
	sink.prefix = sink.in_line = false;
	sink.dropped = sink.told = 0;
	memset(sink.lines, 0, sizeof(sink.lines));
	pthread_mutex_unlock(&sink.lock);
}

void ck_log_level(enum ck_log_level level)
{
	pthread_mutex_lock(&sink.lock);
	sink.level = level;
	pthread_mutex_unlock(&sink.lock);
}

void ck_log_format(enum ck_log_format format)
{
	pthread_mutex_lock(&sink.lock);
	sink.format = format;
	pthread_mutex_unlock(&sink.lock);
}

uint64_t ck_log_dropped(void)
{
	pthread_mutex_lock(&sink.lock);
	uint64_t n = sink.dropped;
	pthread_mutex_unlock(&sink.lock);
	return n;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* One character as it stands in a JSON string. A byte that is no UTF-8 becomes U+FFFD. @ret_len: of
 * @out, at most 12. Return: the length of the character in @s */
static size_t json_char(const char *s, char out[13], size_t *ret_len)
{
	uint32_t c;
	size_t n = ck_utf8_next(s, &c), len = n;
	if (!n)
		c = 0xFFFD;
	if (c == '"' || c == '\\')
		len = (size_t)sprintf(out, "\\%c", (char)c);
	else if (n && !ck_utf8_unsafe(c))
		memcpy(out, s, n);
	else if (c <= 0xFFFF)
		len = (size_t)sprintf(out, "\\u%04x", (unsigned)c);
	else
		len = (size_t)sprintf(out, "\\u%04x\\u%04x",
				      0xD800u | ((c - 0x10000) >> 10 & 0x3FF),
				      0xDC00u | ((c - 0x10000) & 0x3FF));
	*ret_len = len;
	return n ? n : 1;
}

/* @s between quotes. What does not fit into @size is cut and ends in "...". Return: is it whole? */
static bool json_text(const char *s, char *buf, size_t size, size_t *ret_len)
{
	static const char end[] = "...\"";
	size_t len = 1, keep = 1, n;
	char out[13];
	buf[0] = '"';
	while (*s) {
		s += json_char(s, out, &n);
		if (len + n + sizeof("\"") > size) {
			memcpy(buf + keep, end, sizeof(end));
			*ret_len = keep + sizeof(end) - 1;
			return false;
		}
		memcpy(buf + len, out, n);
		len += n;
		keep = len + sizeof(end) <= size ? len : keep;
	}
	memcpy(buf + len, "\"", sizeof("\""));
	*ret_len = len + 1;
	return true;
}

/* the members of an object, of which each is written as a whole or not at all */
struct members {
	char *buf; /* of CK_LOG_MEMBERS */
	size_t len;
};

static void put_member(struct members *members, const char *name, const char *value)
{
	size_t left = CK_LOG_MEMBERS - members->len;
	int n = snprintf(members->buf + members->len, left, ",\"%s\":%s", name, value);
	if ((size_t)n < left)
		members->len += (size_t)n;
	members->buf[members->len] = '\0';
}

static void put_text(struct members *members, const char *name, const char *s)
{
	char value[CK_LOG_MEMBERS];
	size_t len;
	if (s && *s && json_text(s, value, sizeof(value), &len))
		put_member(members, name, value);
}

static void put_seconds(struct members *members, const char *name, int64_t ns)
{
	char value[32];
	snprintf(value, sizeof(value), "%.3f", (double)ns / (double)CK_NS_PER_S);
	if (ns >= 0)
		put_member(members, name, value);
}

void ck_log_members(const struct ck_log_about *about, char buf[CK_LOG_MEMBERS])
{
	struct members members = { .buf = buf };
	char number[16];
	buf[0] = '\0';
	put_text(&members, "kind", about->kind);
	put_text(&members, "namespace", about->pod_namespace);
	put_text(&members, "pod", about->pod);
	put_text(&members, "uid", about->uid);
	put_text(&members, "container", about->container);
	snprintf(number, sizeof(number), "%" PRIu32, about->attempt);
	put_member(&members, "attempt", number);
	put_text(&members, "id", about->id);
	put_seconds(&members, "created_in_seconds", about->created_in);
	put_seconds(&members, "after_seconds", about->after);
	snprintf(number, sizeof(number), "%" PRIu32, about->requests);
	put_member(&members, "requests", number);
}

static void print_json(enum ck_log_level level, const char *members, const char *text,
		       char line[CK_LOG_JSON])
{
	static const char *const words[] = {
		[CK_LOG_ERROR] = "error",
		[CK_LOG_WARNING] = "warning",
		[CK_LOG_INFO] = "info",
		[CK_LOG_DEBUG] = "debug",
	};
	uint64_t ns = ck_log_wall_clock();
	time_t seconds = (time_t)(ns / CK_NS_PER_S);
	bool known = (size_t)level < CK_COUNT(words) && words[level];
	struct tm tm = { 0 };
	size_t len, text_len, tail = strlen(members) + sizeof("}");
	gmtime_r(&seconds, &tm);
	len = strftime(line, CK_LOG_JSON, "{\"time\":\"%Y-%m-%dT%H:%M:%S", &tm);
	len += (size_t)snprintf(line + len, CK_LOG_JSON - len,
				".%06uZ\",\"level\":\"%s\",\"message\":",
				(unsigned)(ns % CK_NS_PER_S / 1000), known ? words[level] : "info");
	json_text(text, line + len, CK_LOG_JSON - len - tail, &text_len);
	len += text_len;
	snprintf(line + len, CK_LOG_JSON - len, "%s}", members);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A journal that was not there, or has gone, is tried again once a second. Connecting a datagram
 * socket takes no time. */
static bool dial_again(int e, uint64_t now)
{
	if ((e != ECONNREFUSED && e != ENOTCONN && e != EDESTADDRREQ && e != ECONNRESET) ||
	    now - sink.dialled < CK_NS_PER_S)
		return false;
	sink.dialled = now;
	return connect(sink.fd, (struct sockaddr *)&sink.journal, sizeof(sink.journal)) == 0;
}

static bool write_journal(enum ck_log_level level, const char *text, uint64_t now)
{
	char line[CK_LOG_JSON + 96]; /* a text has no newline: it was made safe */
	int n = snprintf(line, sizeof(line), "PRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nMESSAGE=%s\n",
			 (int)level, sink.name, text);
	for (;;) {
		if (send(sink.fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n)
			return true;
		if (!dial_again(errno, now))
			return false;
	}
}

static ssize_t write_some(const char *p, size_t n)
{
	if (sink.way == SOCKET)
		return send(sink.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	int flags = sink.way == SHARED ? fcntl(sink.fd, F_GETFL) : 0;
	if (sink.way == SHARED)
		fcntl(sink.fd, F_SETFL, flags | O_NONBLOCK);
	ssize_t done = write(sink.fd, p, n);
	if (sink.way == SHARED)
		fcntl(sink.fd, F_SETFL, flags);
	return done;
}

/* @json: @text is an object */
static bool write_stderr(enum ck_log_level level, const char *text, bool json)
{
	static const char *const words[] = {
		[CK_LOG_ERROR] = "error: ",
		[CK_LOG_WARNING] = "warning: ",
		[CK_LOG_INFO] = "",
		[CK_LOG_DEBUG] = "debug: ",
	};
	char line[CK_LOG_JSON + 64], prefix[8] = "";
	bool known = (size_t)level < CK_COUNT(words) && words[level];
	if (sink.prefix)
		snprintf(prefix, sizeof(prefix), "<%d>", (int)level & 7);
	/* end a line that was written in part, so that this one is whole */
	int n = snprintf(line, sizeof(line), "%s%s%s%s%s%s\n", sink.in_line ? "\n" : "", prefix,
			 json ? "" : sink.name, json ? "" : ": ",
			 json || !known ? "" : words[level], text);
	ssize_t done = write_some(line, (size_t)n);
	if (done > 0)
		sink.in_line = done < n;
	return done == n;
}

static bool write_line(enum ck_log_level level, const char *members, const char *text, uint64_t now)
{
	char object[CK_LOG_JSON];
	bool done = false, json = sink.format == CK_LOG_JSON_LINES;
	if (json) {
		print_json(level, members, text, object);
		text = object;
	}
	if (sink.way == JOURNAL)
		done = write_journal(level, text, now);
	else if (sink.way != NOWHERE)
		done = write_stderr(level, text, json);
	sink.dropped += !done;
	return done;
}

/* report how many lines were dropped, before the first line that can be written */
static bool tell_dropped(uint64_t now)
{
	char text[96];
	uint64_t before = sink.dropped;
	if (before == sink.told)
		return true;
	snprintf(text, sizeof(text), "%llu log line%s could not be written",
		 (unsigned long long)(before - sink.told), before - sink.told == 1 ? "" : "s");
	bool done = write_line(CK_LOG_WARNING, "", text, now);
	sink.dropped = before; /* this line does not count */
	if (done)
		sink.told = before;
	return done;
}

/* Was this text written within the last second? If not, it is remembered as written now;
 * @ret_left_out: how often it was left out since the last time. */
static bool is_repeated(enum ck_log_level level, const char *text, uint64_t now,
			unsigned *ret_left_out)
{
	struct line *oldest = &sink.lines[0], *found = NULL;
	for (size_t i = 0; i < CK_LOG_SAME && !found; i++) {
		struct line *line = &sink.lines[i];
		if (line->level == level && strcmp(line->text, text) == 0)
			found = line;
		else if (line->at < oldest->at)
			oldest = line;
	}
	if (found && now - found->at < CK_NS_PER_S) {
		found->left_out++;
		return true;
	}
	*ret_left_out = found ? found->left_out : 0;
	if (!found) {
		found = oldest;
		found->level = level;
		strcpy(found->text, text);
	}
	found->at = now;
	found->left_out = 0;
	return false;
}

static void write_safe(enum ck_log_level level, const char *members, const char *safe)
{
	char more[CK_LOG_LINE];
	unsigned left_out = 0;
	uint64_t now = ck_log_clock();
	if (is_repeated(level, safe, now, &left_out))
		return;
	if (left_out) {
		if (left_out == 1)
			snprintf(more, sizeof(more), "%.*s (repeated once)",
				 (int)(CK_LOG_LINE - 64), safe);
		else
			snprintf(more, sizeof(more), "%.*s (repeated %u times)",
				 (int)(CK_LOG_LINE - 64), safe, left_out);
		safe = more;
	}
	if (tell_dropped(now))
		write_line(level, members, safe, now);
	else
		sink.dropped++;
}

void ck_log(enum ck_log_level level, const char *fmt, ...)
{
	char text[CK_LOG_LINE], safe[CK_LOG_LINE];
	int e = errno;
	va_list ap;
	pthread_mutex_lock(&sink.lock);
	if (level <= sink.level) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		ck_utf8_clean(text, false, safe, sizeof(safe));
		write_safe(level, "", safe);
	}
	pthread_mutex_unlock(&sink.lock);
	errno = e;
}

void ck_log_with(enum ck_log_level level, const char *members, const char *text)
{
	char safe[CK_LOG_LINE];
	int e = errno;
	pthread_mutex_lock(&sink.lock);
	if (level <= sink.level) {
		ck_utf8_clean(text, false, safe, sizeof(safe));
		write_safe(level, members, safe);
	}
	pthread_mutex_unlock(&sink.lock);
	errno = e;
}
