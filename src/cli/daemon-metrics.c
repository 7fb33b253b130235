/* SPDX-License-Identifier: Apache-2.0 */
/* Read crikeepd's metrics from their socket. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/daemon-metrics.h"
#include "src/cli/output/text.h"

#define READ_MAX 16384u

static int read_some(int fd, struct ck_bytes *text, uint64_t until, struct ck_error *err)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	uint64_t now = ck_clock_ns(CLOCK_MONOTONIC);
	int ready = now >= until ? 0 : poll(&poll_fd, 1, (int)((until - now) / CK_NS_PER_MS + 1));
	if (ready < 0 && errno == EINTR)
		return 1;
	if (ready <= 0)
		return ck_fail(err, CK_EIO, "it does not answer");
	if (text->len >= CK_METRICS_MAX)
		return ck_fail(err, CK_ETOOBIG, "its answer has more than %u bytes",
			       CK_METRICS_MAX);
	if (ck_bytes_room(text, READ_MAX) < 0)
		return ck_nomem(err);
	ssize_t n = read(fd, text->p + text->len, READ_MAX);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN
			       ? 1
			       : ck_fail_errno(err, CK_EIO, errno, "read");
	text->len += (size_t)n;
	return n > 0;
}

/* read the socket until its end */
int ck_daemon_metrics_fetch(const char *path, struct ck_bytes *text, struct ck_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint64_t until = ck_clock_ns(CLOCK_MONOTONIC) + CK_METRICS_WAIT;
	size_t end = strlen(CK_METRICS_END);
	CK_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "make a socket");
	memcpy(address.sun_path, path, strlen(path));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "connect");
	int r;
	do
		r = read_some(fd, text, until, err);
	while (r > 0);
	if (r == 0 && (text->len < end || memcmp(text->p + text->len - end, CK_METRICS_END, end)))
		r = ck_fail(err, CK_EIO, "its answer is not whole");
	if (r == 0 && ck_bytes_room(text, 1) < 0)
		r = ck_nomem(err);
	if (r == 0)
		text->p[text->len] = '\0';
	return r;
}

const char *ck_daemon_metrics_find(const struct ck_bytes *text, const char *series)
{
	size_t len = strlen(series);
	for (const char *line = (const char *)text->p; line && *line;
	     line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, series, len) == 0)
			return line + len;
	return NULL;
}

double ck_daemon_metrics_value(const struct ck_bytes *text, const char *series)
{
	CK_AUTO_FREE char *start = ck_text_format("%s ", series);
	const char *value = ck_daemon_metrics_find(text, start);
	return value ? strtod(value, NULL) : 0;
}
