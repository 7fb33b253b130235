/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_EXAMPLE_WIRE_H
#define CK_EXAMPLE_WIRE_H
/*
 * What stands in for CRI over gRPC in the examples: one call per connection on a unix socket.
 *
 *	CREATE sandbox|container TIMEOUT-MS LABEL LENGTH \n
 *	                         then LENGTH bytes: RunPodSandboxRequest or CreateContainerRequest
 *	LIST - 0 - 0 \n          what a kubelet may see: lines of
 *	                         KIND ID CONDITION POD-UID CONTAINER ATTEMPT
 *	LIST-ALL - 0 - 0 \n      everything that exists
 *	START | STOP ID 0 - 0 \n
 *	REMOVE ID TIMEOUT-MS - 0 \n
 *
 * The answer is "ok [ID]\n" and what follows, or "error GRPC-CODE TEXT\n", then end of file. A
 * caller whose deadline has passed closes its connection. One that closes without having read its
 * answer resets it, so a server knows what arrived, as it does of an HTTP/2 stream. LABEL says in
 * the runtime's log of creations who asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WIRE_HEAD_MAX 512
#define WIRE_BODY_MAX (16u << 20)

struct wire_request {
	char verb[16], what[128], label[128]; /* @what: the kind of a CREATE, else an id */
	unsigned timeout_ms;
	const char *body; /* in the buffer that was parsed */
	size_t len;
};

static inline unsigned long long wire_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (unsigned long long)ts.tv_sec * 1000 + (unsigned long long)ts.tv_nsec / 1000000;
}

/* 1: a whole request; 0: read on; -1: not one */
static inline int wire_parse(const char *buf, size_t len, struct wire_request *ret)
{
	char head[WIRE_HEAD_MAX];
	const char *end = memchr(buf, '\n', len < WIRE_HEAD_MAX ? len : WIRE_HEAD_MAX);
	if (!end)
		return len < WIRE_HEAD_MAX ? 0 : -1;
	memcpy(head, buf, (size_t)(end - buf));
	head[end - buf] = '\0';
	if (sscanf(head, "%15s %127s %u %127s %zu", ret->verb, ret->what, &ret->timeout_ms,
		   ret->label, &ret->len) != 5 ||
	    ret->len > WIRE_BODY_MAX)
		return -1;
	ret->body = end + 1;
	return len - (size_t)(ret->body - buf) >= ret->len;
}

static inline int wire_address(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return snprintf(ret->sun_path, sizeof(ret->sun_path), "%s", path) <
			       (int)sizeof(ret->sun_path)
		       ? 0
		       : -ENAMETOOLONG;
}

static inline int wire_send(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n < 0 ? 0 : n;
		len -= n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

/* Read a whole request. Return: the buffer that holds it, to be freed; NULL: none came. */
static inline char *wire_receive(int fd, struct wire_request *ret)
{
	const size_t max = WIRE_HEAD_MAX + WIRE_BODY_MAX;
	size_t len = 0, size = 4096;
	char *buf = (char *)malloc(size);
	ssize_t n = 1;
	int r = 0;
	while (buf && r == 0 && (n = recv(fd, buf + len, size - len, 0)) > 0) {
		len += (size_t)n;
		r = wire_parse(buf, len, ret);
		if (r == 0 && len == size && size < max) {
			char *larger = (char *)realloc(buf, size * 2);
			if (!larger)
				break;
			buf = larger;
			size *= 2;
		}
	}
	if (r == 1)
		return buf;
	free(buf);
	return NULL;
}

/* ---- the caller's side ----------------------------------------------------------------------- */

/* Send a request. Return: the connection, or -errno. */
static inline int wire_begin(const char *path, const struct wire_request *request)
{
	char head[WIRE_HEAD_MAX];
	struct sockaddr_un address;
	int n = snprintf(head, sizeof(head), "%s %s %u %s %zu\n", request->verb, request->what,
			 request->timeout_ms, request->label, request->len);
	int r = wire_address(path, &address);
	int fd = r < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return r < 0 ? r : -errno;
	r = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0
		    ? -errno
		    : wire_send(fd, head, (size_t)n);
	if (r == 0)
		r = wire_send(fd, request->body, request->len);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

/*
 * Read the answer until @deadline_ms of wire_now_ms(), and close. Return: its length,
 * NUL-terminated; -ETIMEDOUT, at the deadline; -ECONNRESET, the runtime went away.
 */
static inline int wire_end(int fd, unsigned long long deadline_ms, char *answer, size_t size)
{
	size_t len = 0;
	int r = 0;
	while (r == 0) {
		unsigned long long now = wire_now_ms();
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		if (now >= deadline_ms || poll(&ready, 1, (int)(deadline_ms - now)) == 0) {
			r = -ETIMEDOUT;
			break;
		}
		ssize_t n = recv(fd, answer + len, size - 1 - len, 0);
		if (n < 0 && errno != EINTR)
			r = -ECONNRESET;
		if (n == 0) /* a whole line, or the runtime died over it */
			r = len && memchr(answer, '\n', len) ? 1 : -ECONNRESET;
		len += n > 0 ? (size_t)n : 0;
		if (len == size - 1)
			r = -EMSGSIZE;
	}
	close(fd);
	answer[len] = '\0';
	return r < 0 ? r : (int)len;
}

/* both in one; @deadline_ms is also when nobody waits any more */
static inline int wire_call(const char *path, const struct wire_request *request,
			    unsigned long long deadline_ms, char *answer, size_t size)
{
	int fd = wire_begin(path, request);
	return fd < 0 ? fd : wire_end(fd, deadline_ms, answer, size);
}
#endif
