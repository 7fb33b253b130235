/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "tests/load/attacks.h"
#include "tests/load/load.h"

#define BURST      100u  /* frames or calls */
#define STREAMS    5000u /* of one connection, before it begins anew */
#define CONNECTIONS 60u  /* a process may have 64 */
#define CROWD      300u  /* connections that come and go at once */

enum { /* frames of HTTP/2 */
	DATA = 0,
	HEADERS = 1,
	PRIORITY = 2,
	RST_STREAM = 3,
	SETTINGS = 4,
	PING = 6,
	WINDOW_UPDATE = 8,
	CONTINUATION = 9,
	UNKNOWN = 0x7f,
};
enum { END_STREAM = 1, END_HEADERS = 4 };

/* ---- frames ---------------------------------------------------------------------------------- */

static void add(struct ck_bytes *to, const void *p, size_t n)
{
	measure_must(ck_bytes_add(to, p, n) == 0, "no memory");
}

static void add_byte(struct ck_bytes *to, unsigned byte)
{
	add(to, &(unsigned char){ (unsigned char)byte }, 1);
}

static void add_u32(struct ck_bytes *to, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		add_byte(to, value >> shift);
}

static void frame(struct attacker *a, unsigned type, unsigned flags, uint32_t stream,
		  const void *payload, size_t n)
{
	add_byte(&a->out, (unsigned)n >> 16);
	add_byte(&a->out, (unsigned)n >> 8);
	add_byte(&a->out, (unsigned)n);
	add_byte(&a->out, type);
	add_byte(&a->out, flags);
	add_u32(&a->out, stream);
	add(&a->out, payload, n);
}

static void frame_u32(struct attacker *a, unsigned type, uint32_t stream, uint32_t value)
{
	struct ck_bytes payload = { 0 };
	add_u32(&payload, value);
	frame(a, type, 0, stream, payload.p, payload.len);
	ck_bytes_free(&payload);
}

/* HPACK: a literal that is put into no table. Both texts are shorter than 127 bytes */
static void literal(struct ck_bytes *block, const char *name, const char *value)
{
	add_byte(block, 0);
	add_byte(block, (unsigned)strlen(name));
	add(block, name, strlen(name));
	add_byte(block, (unsigned)strlen(value));
	add(block, value, strlen(value));
}

static void request_headers(struct ck_bytes *block, const char *rpc)
{
	char path[100] = "/runtime.v1.RuntimeService/";
	strncat(path, rpc, sizeof(path) - strlen(path) - 1);
	literal(block, ":method", "POST");
	literal(block, ":scheme", "http");
	literal(block, ":path", path);
	literal(block, ":authority", "localhost");
	literal(block, "content-type", "application/grpc");
	literal(block, "te", "trailers");
}

/* the beginning of a call; returns its stream */
static uint32_t open_call(struct attacker *a, const char *rpc)
{
	struct ck_bytes block = { 0 };
	uint32_t stream = a->next_stream;
	a->next_stream += 2;
	request_headers(&block, rpc);
	frame(a, HEADERS, END_HEADERS, stream, block.p, block.len);
	ck_bytes_free(&block);
	return stream;
}

/* one message; its head says @flag and @says bytes */
static void message(struct attacker *a, uint32_t stream, unsigned flag, size_t says, const void *p,
		    size_t n, unsigned flags)
{
	struct ck_bytes bytes = { 0 };
	add_byte(&bytes, flag);
	add_u32(&bytes, (uint32_t)says);
	add(&bytes, p, n);
	frame(a, DATA, flags, stream, bytes.p, bytes.len);
	ck_bytes_free(&bytes);
}

static uint32_t whole_call(struct attacker *a, const char *rpc)
{
	uint32_t stream = open_call(a, rpc);
	message(a, stream, 0, 0, NULL, 0, END_STREAM);
	return stream;
}

static void first_settings(struct attacker *a, const void *payload, size_t n)
{
	if (a->bursts)
		return;
	a->out.len = 0;
	add(&a->out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	frame(a, SETTINGS, 0, 0, payload, n);
}

/* ---- attacks --------------------------------------------------------------------------------- */

/* to compare with */
static void nothing(struct attacker *a)
{
	poll(NULL, 0, 20);
	a->reached = true;
}

static void reset_at_once(struct attacker *a, const char *rpc)
{
	CK_AUTO_BYTES struct ck_bytes pod = load_pod(7);
	for (unsigned i = 0; i < BURST; i++) {
		bool create = !strcmp(rpc, "RunPodSandbox");
		uint32_t stream = open_call(a, rpc);
		message(a, stream, 0, create ? pod.len : 0, pod.p, create ? pod.len : 0,
			END_STREAM);
		frame_u32(a, RST_STREAM, stream, 8);
	}
}

static void reset_version(struct attacker *a)
{
	reset_at_once(a, "Version");
}

static void reset_list(struct attacker *a)
{
	reset_at_once(a, "ListPodSandbox");
}

static void reset_create(struct attacker *a)
{
	reset_at_once(a, "RunPodSandbox");
}

static void continuations(struct attacker *a, size_t n)
{
	static const unsigned char nothing[16384];
	struct ck_bytes block = { 0 };
	if (!a->bursts) {
		request_headers(&block, "Version");
		frame(a, HEADERS, 0, 1, block.p, block.len);
	}
	for (unsigned i = 0; i < BURST; i++)
		frame(a, CONTINUATION, 0, 1, nothing, n);
	ck_bytes_free(&block);
}

static void continuation_full(struct attacker *a)
{
	continuations(a, 16384);
}

static void continuation_empty(struct attacker *a)
{
	continuations(a, 0);
}

/* A header of 4,000 bytes goes into the table, and is then named by one byte each time. */
static void add_bomb(struct ck_bytes *block)
{
	add_byte(block, 0x40);
	add_byte(block, 1);
	add(block, "x", 1);
	add_byte(block, 0x7f); /* 4,000 in HPACK's numbers */
	add_byte(block, ((4000 - 127) & 0x7f) | 0x80);
	add_byte(block, (4000 - 127) >> 7);
	for (unsigned i = 0; i < 4000; i++)
		add(block, "y", 1);
	for (unsigned i = 0; i < 10000; i++)
		add_byte(block, 0x80 | 62);
}

static void hpack_bomb(struct attacker *a)
{
	struct ck_bytes block = { 0 };
	request_headers(&block, "Version");
	add_bomb(&block);
	for (unsigned i = 0; i < BURST / 10; i++) {
		frame(a, HEADERS, END_HEADERS | END_STREAM, a->next_stream, block.p, block.len);
		a->next_stream += 2;
	}
	ck_bytes_free(&block);
}

/* of calls that are over, because one with a greater number has begun */
static void hpack_bomb_closed(struct attacker *a)
{
	struct ck_bytes block = { 0 };
	request_headers(&block, "Version");
	if (!a->bursts)
		frame(a, HEADERS, END_HEADERS | END_STREAM, 2 * STREAMS - 1, block.p, block.len);
	add_bomb(&block);
	for (unsigned i = 0; i < BURST / 10; i++) {
		frame(a, HEADERS, END_HEADERS | END_STREAM, a->next_stream, block.p, block.len);
		a->next_stream += 2;
	}
	ck_bytes_free(&block);
}

static void many_frames(struct attacker *a, unsigned type, size_t n)
{
	static const unsigned char zeros[64];
	for (unsigned i = 0; i < BURST; i++)
		frame(a, type, 0, 0, zeros, n);
}

static void pings(struct attacker *a)
{
	many_frames(a, PING, 8);
}

static void pings_of_the_deaf(struct attacker *a)
{
	a->reads_nothing = true;
	many_frames(a, PING, 8);
}

static void settings(struct attacker *a)
{
	many_frames(a, SETTINGS, 0);
}

static void unknown_frames(struct attacker *a)
{
	many_frames(a, UNKNOWN, 64);
}

static void window_updates(struct attacker *a)
{
	for (unsigned i = 0; i < BURST; i++)
		frame_u32(a, WINDOW_UPDATE, 0, 1);
}

static void priorities(struct attacker *a)
{
	for (unsigned i = 0; i < BURST; i++)
		frame(a, PRIORITY, 0, a->next_stream + 2 * i, "\0\0\0\0\x10", 5);
}

static void empty_data(struct attacker *a)
{
	if (!a->bursts)
		open_call(a, "UpdateRuntimeConfig");
	for (unsigned i = 0; i < BURST; i++)
		frame(a, DATA, 0, 1, NULL, 0);
}

static void calls_without_a_window(struct attacker *a, const char *rpc)
{
	first_settings(a, "\0\x04\0\0\0\0", 6); /* INITIAL_WINDOW_SIZE 0 */
	for (unsigned i = 0; i < BURST; i++)
		whole_call(a, rpc);
}

static void window_0_version(struct attacker *a)
{
	calls_without_a_window(a, "Version");
}

static void window_0_lists(struct attacker *a)
{
	calls_without_a_window(a, "ListPodSandbox");
}

static void lists_of_the_deaf(struct attacker *a)
{
	a->reads_nothing = true;
	for (unsigned i = 0; i < BURST; i++)
		whole_call(a, "ListPodSandbox");
}

static void lists(struct attacker *a)
{
	for (unsigned i = 0; i < BURST; i++)
		whole_call(a, "ListPodSandbox");
}

static void begun_and_left(struct attacker *a)
{
	for (unsigned i = 0; i < BURST; i++)
		message(a, open_call(a, "RunPodSandbox"), 0, 1000, "half", 4, 0);
}

/* more than a window, which nobody has given */
static void beyond_the_window(struct attacker *a)
{
	static const unsigned char zeros[16384];
	uint32_t stream = open_call(a, "RunPodSandbox");
	for (unsigned i = 0; i < BURST; i++)
		frame(a, DATA, 0, stream, zeros, sizeof(zeros));
}

static void bad_grpc(struct attacker *a)
{
	message(a, open_call(a, "RunPodSandbox"), 0, 0xffffffff, "x", 1, END_STREAM);
	message(a, open_call(a, "RunPodSandbox"), 1, 1, "x", 1, END_STREAM);
	message(a, open_call(a, "ListPodSandbox"), 7, 1, "x", 1, END_STREAM);
	message(a, open_call(a, "ListContainers"), 0, 3, "\xff\xff\xff", 3, END_STREAM);
	message(a, open_call(a, "NoSuchCall"), 0, 0, NULL, 0, END_STREAM);
	uint32_t twice = open_call(a, "ListPodSandbox");
	message(a, twice, 0, 0, NULL, 0, 0);
	message(a, twice, 0, 0, NULL, 0, END_STREAM);
	frame(a, DATA, END_STREAM, open_call(a, "CreateContainer"), NULL, 0);
}

static void random_bytes(struct attacker *a)
{
	for (unsigned i = 0; i < 1000; i++)
		add_byte(&a->out, (unsigned)rand());
}

static void http_1(struct attacker *a)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	a->out.len = 0;
	add(&a->out, text, sizeof(text) - 1);
}

static void hang_up(struct attacker *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	a->out.len = 0;
}

/* @n connections at once, which say @said */
static void crowd(struct attacker *a, unsigned n, const void *said, size_t len)
{
	int fds[CROWD];
	hang_up(a);
	for (unsigned i = 0; i < n; i++) {
		fds[i] = ck_unix_connect(a->socket, NULL);
		if (fds[i] >= 0 && len)
			send(fds[i], said, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		a->reached = a->reached || fds[i] >= 0;
	}
	poll(NULL, 0, 20);
	for (unsigned i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void connections_come_and_go(struct attacker *a)
{
	crowd(a, CROWD, NULL, 0);
}

static void connections_say_half(struct attacker *a)
{
	crowd(a, CONNECTIONS, "PRI * HTTP/2.0\r\n\r\nSM", 20);
}

static void connections_begin_a_frame(struct attacker *a)
{
	crowd(a, CONNECTIONS, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x40\x01", 28);
}

#define ATTACK(name) { #name, name }
const struct attack attacks[] = {
	ATTACK(nothing),
	ATTACK(reset_version),
	ATTACK(reset_list),
	ATTACK(reset_create),
	ATTACK(continuation_full),
	ATTACK(continuation_empty),
	ATTACK(hpack_bomb),
	ATTACK(hpack_bomb_closed),
	ATTACK(pings),
	ATTACK(pings_of_the_deaf),
	ATTACK(settings),
	ATTACK(unknown_frames),
	ATTACK(window_updates),
	ATTACK(priorities),
	ATTACK(empty_data),
	ATTACK(window_0_version),
	ATTACK(window_0_lists),
	ATTACK(lists_of_the_deaf),
	ATTACK(lists),
	ATTACK(begun_and_left),
	ATTACK(beyond_the_window),
	ATTACK(bad_grpc),
	ATTACK(random_bytes),
	ATTACK(http_1),
	ATTACK(connections_come_and_go),
	ATTACK(connections_say_half),
	ATTACK(connections_begin_a_frame),
};
const size_t attacks_n = CK_COUNT(attacks);

/* ---- the process ----------------------------------------------------------------------------- */

/* what has come is read and thrown away. false: the connection is over */
static bool read_away(struct attacker *a)
{
	static char away[65536];
	ssize_t n = recv(a->fd, away, sizeof(away), MSG_DONTWAIT);
	return n > 0 || (n < 0 && errno == EAGAIN);
}

/* false: the connection is over, or stalls for a second */
static bool write_burst(struct attacker *a)
{
	for (size_t done = 0; done < a->out.len;) {
		ssize_t n = send(a->fd, a->out.p + done, a->out.len - done,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			return false;
		done += n > 0 ? (size_t)n : 0;
		a->reached = a->reached || n > 0;
		if (!a->reads_nothing && !read_away(a))
			return false;
		struct pollfd room = { .fd = a->fd, .events = POLLOUT };
		if (n < 0 && poll(&room, 1, 1000) == 0)
			return false;
	}
	return true;
}

static void attack_for_ever(const struct attack *attack, struct attacker *a,
			    volatile unsigned long *bursts)
{
	for (;; *bursts += a->reached) {
		a->reached = false;
		if (a->fd < 0 || a->next_stream > 2 * STREAMS) {
			hang_up(a);
			a->fd = ck_unix_connect(a->socket, NULL);
			a->next_stream = 1;
			a->bursts = 0;
			first_settings(a, NULL, 0);
		}
		attack->burst(a);
		a->bursts++;
		if (a->fd >= 0 && !write_burst(a))
			hang_up(a);
		a->out.len = 0;
	}
}

pid_t attack_begin(const struct attack *attack, const char *socket,
		   const volatile unsigned long **ret_bursts)
{
	struct attacker a = { .socket = socket, .fd = -1 };
	volatile unsigned long *bursts = mmap(NULL, sizeof(*bursts), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	measure_must(bursts != MAP_FAILED, "no memory");
	pid_t parent = getpid(), pid = fork();
	measure_must(pid >= 0, "fork");
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
			attack_for_ever(attack, &a, bursts);
		_exit(1);
	}
	*ret_bursts = bursts;
	return pid;
}

void attack_end(pid_t pid, const volatile unsigned long *bursts)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap((void *)(uintptr_t)bursts, sizeof(*bursts));
}
