/* SPDX-License-Identifier: Apache-2.0 */
/* The status file: its text, written to disk and read back. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hooks/status-file.h"
#include "src/base/mem.h"
#include "src/base/host-process.h"

#define STATE_MAX 15u /* letters; the longest is "synchronizing" */

static const char *const policies[] = {
	[CK_NRI_IGNORE] = "ignore",
	[CK_NRI_ERROR] = "error",
	[CK_NRI_FAIL] = "fail",
	[CK_NRI_REQUIRED] = "required",
};

const char *ck_status_policy(enum ck_nri_policy policy)
{
	return policy >= CK_NRI_IGNORE && policy <= CK_NRI_REQUIRED ? policies[policy] : "?";
}

void ck_status_free(struct ck_nri_status *status)
{
	if (status)
		free(status->text);
	free(status);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int add_number(struct ck_bytes *bytes, const char *name, uint64_t value)
{
	char word[64];
	snprintf(word, sizeof(word), " %s=%" PRIu64, name, value);
	return ck_bytes_add_text(bytes, word);
}

static bool is_plain(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '\\';
}

static int add_text(struct ck_bytes *bytes, const char *name, const char *value, size_t max)
{
	char c[5];
	int r = ck_bytes_add_text(bytes, " ");

	r = r < 0 ? r : ck_bytes_add_text(bytes, name);
	r = r < 0 ? r : ck_bytes_add_text(bytes, "=");
	for (size_t i = 0; r >= 0 && value && value[i] && i < max; i++) {
		snprintf(c, sizeof(c), is_plain((unsigned char)value[i]) ? "%c" : "\\x%02x",
			 (unsigned char)value[i]);
		r = ck_bytes_add_text(bytes, c);
	}
	return r;
}

static int add_plugin(struct ck_bytes *bytes, const struct ck_nri_plugin *plugin)
{
	int r = ck_bytes_add_text(bytes, "plugin");

#define ADD(call) r = r < 0 ? r : (call)
	ADD(add_text(bytes, "name", plugin->name, CK_NRI_NAME_MAX));
	ADD(add_text(bytes, "state", plugin->state, STATE_MAX));
	ADD(add_text(bytes, "policy", ck_status_policy(plugin->policy), SIZE_MAX));
	ADD(add_number(bytes, "keep", plugin->keep_connected != 0));
	ADD(add_number(bytes, "launched", plugin->launched != 0));
	ADD(add_number(bytes, "pid", plugin->pid > 0 ? (unsigned)plugin->pid : 0));
	ADD(add_number(bytes, "events", plugin->events));
	ADD(add_number(bytes, "adjusting", plugin->adjusting != 0));
	ADD(add_number(bytes, "queued", plugin->queued));
	ADD(add_number(bytes, "since", plugin->since));
	ADD(add_number(bytes, "overdue", plugin->overdue_since));
	ADD(add_number(bytes, "sent", plugin->sent));
	ADD(add_number(bytes, "late", plugin->late));
	ADD(add_number(bytes, "failed", plugin->failed));
	ADD(add_text(bytes, "error", plugin->last_error, CK_TEXT_MAX));
	ADD(ck_bytes_add_text(bytes, "\n"));
#undef ADD
	return r;
}

int ck_status_print(const struct ck_nri_status *status, struct ck_bytes *bytes)
{
	int r = ck_bytes_add_text(bytes, "crikeep-plugins 1");

	r = r < 0 ? r : add_text(bytes, "boot", status->boot, sizeof(status->boot) - 1);
	r = r < 0 ? r : add_number(bytes, "time", status->now);
	r = r < 0 ? r : add_number(bytes, "wall", status->wall > 0 ? (uint64_t)status->wall : 0);
	r = r < 0 ? r : add_number(bytes, "pid", status->pid > 0 ? (uint64_t)status->pid : 0);
	r = r < 0 ? r : add_number(bytes, "plugins", status->n);
	r = r < 0 ? r : ck_bytes_add_text(bytes, "\n");
	for (size_t i = 0; r >= 0 && i < status->n; i++)
		r = add_plugin(bytes, &status->plugins[i]);
	return r;
}

static void read_boot_id(char boot[37])
{
	CK_AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, boot, 36);
	boot[n > 0 ? n : 0] = '\0';
}

static int file_write(const char *path, const struct ck_bytes *bytes, struct ck_error *err)
{
	CK_AUTO_FREE char *tmp = ck_alloc(strlen(path) + sizeof(".new"));

	if (!tmp)
		return ck_nomem(err);
	sprintf(tmp, "%s.new", path);
	unlink(tmp); /* left by a process that died while writing */
	CK_AUTO_CLOSE int fd =
		ck_fd_own(open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "make '%s'", tmp);
	ssize_t n = write(fd, bytes->p, bytes->len);
	if (n == (ssize_t)bytes->len && rename(tmp, path) == 0)
		return 0;
	int sys = n >= 0 && n < (ssize_t)bytes->len ? ENOSPC : errno;
	unlink(tmp);
	return ck_fail_errno(err, CK_EIO, sys, "write '%s'", path);
}

int ck_status_write(const char *path, uint64_t now, const struct ck_nri_plugin *plugins, size_t n,
		    struct ck_error *err)
{
	CK_AUTO_BYTES struct ck_bytes bytes = { 0 };
	CK_AUTO_FREE struct ck_nri_status *status = CK_NEW(struct ck_nri_status);

	if (!status)
		return ck_nomem(err);
	read_boot_id(status->boot);
	status->now = now;
	status->wall = (int64_t)time(NULL);
	status->pid = (long)getpid();
	status->n = n < CK_NRI_PLUGINS_MAX ? n : CK_NRI_PLUGINS_MAX;
	if (status->n)
		memcpy(status->plugins, plugins, status->n * sizeof(*plugins));
	if (ck_status_print(status, &bytes) < 0)
		return ck_nomem(err);
	return file_write(path, &bytes, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The text is a copy of ours. Values are unescaped in place and end with a NUL. */
struct reader {
	char *at, *end;
	unsigned line;
	bool line_ended; /* with the last word */
	struct ck_error *err;
};

static int malformed(const struct reader *reader, const char *expected)
{
	return ck_fail(reader->err, CK_EMALFORMED, "line %u: expected %s", reader->line, expected);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Return: the length, -1: a wrong escape, or a NUL */
static ssize_t unescape(char *at, size_t len)
{
	char *to = at;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)at[i];
		if (c == '\\') {
			int high = len - i >= 4 && at[i + 1] == 'x' ? hex_digit(at[i + 2]) : -1;
			int low = high < 0 ? -1 : hex_digit(at[i + 3]);
			if (low < 0 || (high == 0 && low == 0))
				return -1;
			c = (unsigned char)(high * 16 + low);
			i += 3;
		} else if (!is_plain(c)) {
			return -1;
		}
		*to++ = (char)c;
	}
	return to - at;
}

/* the next word must be "@name=value", or "@name" if @ret_value is NULL */
static int read_word(struct reader *reader, const char *name, char **ret_value, size_t max)
{
	size_t name_len = strlen(name), left = (size_t)(reader->end - reader->at);

	if (reader->line_ended) {
		reader->line_ended = false;
		reader->line++;
	} else if (reader->line == 0) {
		reader->line = 1;
	}
	char *value = reader->at + name_len + (ret_value != NULL);
	if (left <= name_len || memcmp(reader->at, name, name_len) ||
	    (ret_value && reader->at[name_len] != '='))
		return malformed(reader, name);
	char *stop = value;
	while (stop < reader->end && *stop != ' ' && *stop != '\n')
		stop++;
	if (stop == reader->end || (!ret_value && stop != value))
		return malformed(reader, name);
	reader->line_ended = *stop == '\n';
	reader->at = stop + 1;
	ssize_t len = unescape(value, (size_t)(stop - value));
	if (len < 0 || (size_t)len > max)
		return malformed(reader, name);
	if (ret_value) {
		value[len] = '\0';
		*ret_value = value;
	}
	return 0;
}

static int read_text(struct reader *reader, const char *name, const char **ret_text, size_t max)
{
	char *value = NULL;
	int r = read_word(reader, name, &value, max);

	if (r < 0 || CK_NEVER(!value))
		return r;
	*ret_text = value;
	return 0;
}

static int read_number(struct reader *reader, const char *name, uint64_t max, uint64_t *ret_number)
{
	char *value, *end;
	int r = read_word(reader, name, &value, 20);

	if (r < 0)
		return r;
	errno = 0;
	uint64_t number = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || (*value == '0' && value[1]) || *end || errno ||
	    number > max)
		return malformed(reader, name);
	*ret_number = number;
	return 0;
}

static int read_policy(struct reader *reader, enum ck_nri_policy *ret_policy)
{
	const char *text;
	int r = read_text(reader, "policy", &text, STATE_MAX);

	if (r < 0)
		return r;
	for (size_t i = CK_NRI_IGNORE; i < CK_COUNT(policies); i++) {
		if (strcmp(text, policies[i]) == 0) {
			*ret_policy = (enum ck_nri_policy)i;
			return 0;
		}
	}
	return malformed(reader, "a policy");
}

static int read_plugin(struct reader *reader, struct ck_nri_plugin *plugin)
{
	uint64_t keep = 0, launched = 0, pid = 0, events = 0, adjusting = 0, queued = 0;
	int r = read_word(reader, "plugin", NULL, 0);

	plugin->size = sizeof(*plugin);
#define READ(call) \
	r = r < 0 ? r : reader->line_ended ? malformed(reader, "more of this line") : (call)
	READ(read_text(reader, "name", &plugin->name, CK_NRI_NAME_MAX));
	READ(read_text(reader, "state", &plugin->state, STATE_MAX));
	READ(read_policy(reader, &plugin->policy));
	READ(read_number(reader, "keep", 1, &keep));
	READ(read_number(reader, "launched", 1, &launched));
	READ(read_number(reader, "pid", INT_MAX, &pid));
	READ(read_number(reader, "events", UINT_MAX, &events));
	READ(read_number(reader, "adjusting", 1, &adjusting));
	READ(read_number(reader, "queued", UINT_MAX, &queued));
	READ(read_number(reader, "since", UINT64_MAX, &plugin->since));
	READ(read_number(reader, "overdue", UINT64_MAX, &plugin->overdue_since));
	READ(read_number(reader, "sent", UINT64_MAX, &plugin->sent));
	READ(read_number(reader, "late", UINT64_MAX, &plugin->late));
	READ(read_number(reader, "failed", UINT64_MAX, &plugin->failed));
	READ(read_text(reader, "error", &plugin->last_error, CK_TEXT_MAX));
	if (r < 0)
		return r;
	plugin->keep_connected = (int)keep;
	plugin->launched = (int)launched;
	plugin->pid = (int)pid;
	plugin->events = (unsigned)events;
	plugin->adjusting = (int)adjusting;
	plugin->queued = (unsigned)queued;
	return reader->line_ended ? 0 : malformed(reader, "the end of the line");
}

static int read_header(struct reader *reader, struct ck_nri_status *status)
{
	const char *boot = "";
	uint64_t wall = 0, pid = 0, n = 0;
	int r = read_word(reader, "crikeep-plugins", NULL, 0);

	READ(read_word(reader, "1", NULL, 0));
	READ(read_text(reader, "boot", &boot, sizeof(status->boot) - 1));
	READ(read_number(reader, "time", UINT64_MAX, &status->now));
	READ(read_number(reader, "wall", INT64_MAX, &wall));
	READ(read_number(reader, "pid", INT_MAX, &pid));
	READ(read_number(reader, "plugins", CK_NRI_PLUGINS_MAX, &n));
#undef READ
	if (r < 0)
		return r;
	strcpy(status->boot, boot);
	status->wall = (int64_t)wall;
	status->pid = (long)pid;
	status->n = (size_t)n;
	return reader->line_ended ? 0 : malformed(reader, "the end of the line");
}

int ck_status_parse(const char *text, size_t len, struct ck_nri_status **ret_status,
		    struct ck_error *err)
{
	struct ck_nri_status *status = CK_NEW(struct ck_nri_status);

	if (!status || !(status->text = ck_alloc(len + 1))) {
		ck_status_free(status);
		return ck_nomem(err);
	}
	if (len)
		memcpy(status->text, text, len);
	struct reader reader = { .at = status->text, .end = status->text + len, .err = err };
	int r = read_header(&reader, status);
	for (size_t i = 0; r >= 0 && i < status->n; i++)
		r = read_plugin(&reader, &status->plugins[i]);
	if (r >= 0 && reader.at != reader.end) {
		reader.line++;
		r = malformed(&reader, "the end");
	}
	if (r < 0) {
		ck_status_free(status);
		return r;
	}
	*ret_status = status;
	return 0;
}

int ck_status_read(const char *path, struct ck_nri_status **ret_status, struct ck_error *err)
{
	struct stat st;
	CK_AUTO_FREE char *text = ck_alloc(CK_STATUS_FILE_MAX);

	if (!text)
		return ck_nomem(err);
	CK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return ck_fail(err, CK_ENOTFOUND, "there is no '%s'", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return ck_fail(err, CK_EMALFORMED, "'%s' is not a file", path);
	if (st.st_size > CK_STATUS_FILE_MAX)
		return ck_fail(err, CK_EMALFORMED, "'%s' is longer than %u bytes", path,
			       CK_STATUS_FILE_MAX);
	size_t len = 0;
	ssize_t n;
	while ((n = read(fd, text + len, CK_STATUS_FILE_MAX - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return ck_fail_errno(err, CK_EIO, errno, "read '%s'", path);
	int r = ck_status_parse(text, len, ret_status, err);
	return r < 0 ? ck_context(err, r, "'%s'", path) : 0;
}
