/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_DAEMON_TAP_H
#define CK_TESTS_DAEMON_TAP_H
/*
 * A tap: a socket before another one. Every byte is passed on as it came, both ways, and a copy is
 * kept. One before crikeepd and one behind it tell what crikeepd does to a call: nothing of theirs
 * is in the way. A thread of the test's runs it.
 */
#include <pthread.h>
#include <stddef.h>

#define TAP_CONNS 32

struct tap_conn; /* of it: the copies of both directions */

struct tap {
	const char *to;
	int listener, stop[2];
	pthread_t thread;
	struct tap_conn *conns[TAP_CONNS];
	size_t n;
};

/* tap_start - at @path, which is not there yet, before the socket @to. Both are borrowed */
void tap_start(struct tap *tap, const char *path, const char *to);
/* tap_stop - its connections end, and nothing more is copied */
void tap_stop(struct tap *tap);
void tap_free(struct tap *tap);

/* one call: the names and values of all its headers and trailers in their order, every byte of its
 * messages, how each side ended it */
struct tap_call {
	unsigned char *bytes;
	size_t len;
	char path[96];
};
/* tap_calls - of all connections, after tap_stop(), sorted by their bytes. Return: how many */
size_t tap_calls(const struct tap *tap, struct tap_call **ret_calls);
void tap_calls_free(struct tap_call *calls, size_t n);
#endif
