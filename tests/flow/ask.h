/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_ASK_H
#define CK_TESTS_ASK_H
/* The calls of a client on the loop of the world that serves them: they begin here, and
 * world_settle() moves them. */
#include "tests/flow/peer.h"

struct ask { /* a call of a client */
	struct world *w;
	struct ck_h2_stream *stream;
	struct ck_grpc_reader reader;
	bool deaf;     /* does not return window */
	bool over;
	uint32_t reset;
	int grpc;      /* -1: none yet */
	unsigned messages;
	size_t received; /* bytes of messages and their heads */
	char id[80];   /* field 1 of the last message */
	bool shows_kept;
};

extern const struct ck_h2_handler ask_handler; /* with a struct ask */
/* ask_connect - *@kubelet stays where it is until the connection ends. false: an armed fault */
bool ask_connect(struct world *w, struct ck_connection **kubelet);
/* ask_open - the call's headers, and nothing else yet. false: an armed fault, or the connection has
 * gone */
bool ask_open(struct world *w, struct ck_h2 *h2, struct ask *a, const char *rpc,
	      const char *timeout);
/* ask_begin - a whole request, which is freed; nothing moves yet */
void ask_begin(struct world *w, struct ck_h2 *h2, struct ask *a, const char *rpc,
	       struct ck_bytes *request, const char *timeout);
void ask_id(struct world *w, struct ck_h2 *h2, struct ask *a, const char *rpc, const char *id,
	    const char *timeout);
void ask_end(struct ask *a); /* reset it, unless it is over */
#endif
