/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_LOAD_H
#define CK_TESTS_LOAD_H
/*
 * Many calls at once, for the load tests and bench-daemon; the processes they go to are those of
 * tests/daemon/world.h.
 *
 * The client is one thread that waits for all its connections in load_turn(). It does what grpc-go
 * does: a deadline goes out as grpc-timeout and is kept by the client itself, which resets the
 * stream with CANCEL. Trouble of the test itself ends the program.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/bytes.h"
#include "src/rpc/grpc.h"
#include "tests/bench/measure.h"

#define LOAD_MS UINT64_C(1000000)
#define LOAD_S  UINT64_C(1000000000)

/* ---- a client -------------------------------------------------------------------------------- */

struct load_client {
	struct load_client *next; /* all that are open */
	int fd;                   /* -1: the connection is over */
	struct ck_h2 *h2;
	struct load_call *calls; /* under way, oldest first */
	struct ck_bytes rest;    /* not written yet */
	size_t written, open;
	uint64_t looked; /* when for deadlines */
	bool draining;   /* GOAWAY came */
	bool deaf;       /* reads nothing from its socket */
	bool hoards;     /* reads, but gives no window back: a reader that stalls above HTTP/2 */
};

struct load_call { /* what is set by load_call(), and during it by nobody else */
	struct load_call *prev, *next;
	struct load_client *client;
	struct ck_h2_stream *stream; /* NULL: over */
	struct ck_grpc_reader reader;
	struct ck_bytes reply; /* the last message */
	size_t received;       /* bytes of messages and their heads */
	unsigned messages;
	int code;       /* grpc-status; of its own deadline DEADLINE_EXCEEDED; -1: none came */
	uint32_t error; /* of HTTP/2, how the stream ended */
	uint64_t began, ended, deadline;
	char text[256]; /* the beginning of grpc-message */
	/* may be NULL; may begin the next call with the same struct */
	void (*over)(struct load_call *call);
	void *userdata;
};

void load_open(struct load_client *client, const char *path);
void load_close(struct load_client *client); /* its calls are over */
void load_forget_clients(void); /* of a test that failed */
/* load_call - @call: zeroed, or over; over and userdata are kept. @rpc: "Version", of
 * RuntimeService. @timeout: ns, 0 none */
void load_call(struct load_client *client, struct load_call *call, const char *rpc,
	       const void *request, size_t len, uint64_t timeout);
void load_cancel(struct load_call *call); /* over() is not called */
void load_call_fini(struct load_call *call);
/* load_turn - what is to be written on all connections, what has come, whose deadline is over.
 * Waits at most @ms for something */
void load_turn(int ms);
void load_flush(struct load_client *client); /* write now */
void load_wait(const struct load_call *call); /* until it is over */
int load_do(struct load_client *client, struct load_call *call, const char *rpc,
	    const void *request, size_t len);
/* what a kubelet sends for pod @i, as recorded from one, with its own name and uid.
 * ck_bytes_free() */
struct ck_bytes load_pod(unsigned long i);

/* load_keep - @n sandboxes of which nobody asks again. They are made in more than a second, and
 * late ones are kept */
struct world;
void load_keep(const struct world *w, unsigned n);

struct load_memory { /* KiB */
	unsigned long resident, anonymous, most;
};
struct load_memory load_memory(pid_t pid);
#endif
