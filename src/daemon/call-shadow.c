/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With shadow: true, every call is passed on as it comes (call-pass.c), and creates are only
 * counted. A copy of a create's request is read, and the status of its answer.
 *
 *   request complete --> the runtime creates --> answered with OK    made
 *                                            --> answered otherwise  failed, or refused
 *                                            --> its client leaves   cut off: remembered
 *
 * Cut off is also what the runtime itself ends at the caller's deadline: either clock may be the
 * first. A create for a pod or container that was cut off before is one that full use would have
 * saved, unless the runtime refuses it. Its attempt does not matter: a runtime that does not undo
 * what was cut off shows it, and then the kubelet asks for the next attempt. Full use would have
 * hidden it.
 */
#include <utlist.h>

#include "cache/request/key.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/call.h"

struct ck_shadow { /* the oldest first */
	struct ck_shadow *prev, *next;
	struct ck_key *key;
	uint64_t until; /* full use would have kept it so long */
};

/* ---- what was cut off ------------------------------------------------------------------------ */

static void forget(struct ck_daemon *daemon, struct ck_shadow *cut)
{
	DL_DELETE(daemon->shadows, cut);
	daemon->shadows_n--;
	ck_key_free(cut->key);
	free(cut);
}

static struct ck_shadow *find(struct ck_daemon *daemon, const struct ck_key *key)
{
	struct ck_shadow *cut;
	uint64_t now = ck_loop_now();
	DL_FOREACH (daemon->shadows, cut)
		if (cut->until > now && ck_key_same_slot(cut->key, key))
			return cut;
	return NULL;
}

/* takes the key. Without memory it is not remembered, and then one fewer is counted */
static void remember(struct ck_daemon *daemon, struct ck_key *key)
{
	struct ck_shadow *cut = find(daemon, key); /* what counts is when it was asked for last */
	if (!cut && daemon->shadows_n == CK_SHADOWS_MAX)
		cut = daemon->shadows;
	if (cut)
		forget(daemon, cut);
	cut = CK_NEW(struct ck_shadow);
	if (!cut) {
		ck_key_free(key);
		return;
	}
	*cut = (struct ck_shadow){ .key = key, .until = ck_loop_now() + daemon->conf.ttl };
	DL_APPEND(daemon->shadows, cut);
	daemon->shadows_n++;
}

static void forget_old(struct ck_daemon *daemon)
{
	uint64_t now = ck_loop_now();
	while (daemon->shadows && daemon->shadows->until <= now)
		forget(daemon, daemon->shadows);
}

void ck_shadows_free(struct ck_daemon *daemon)
{
	while (daemon->shadows)
		forget(daemon, daemon->shadows);
}

/* ---- a create -------------------------------------------------------------------------------- */

static bool watched(const struct ck_call *call)
{
	return call->daemon->conf.shadow && call->method && call->method->class == CK_CRI_CREATE;
}

/* Not to be understood is no fault here: the runtime has the last word. */
static void drop_copy(struct ck_call *call)
{
	call->client->held -= call->reader.message.len;
	ck_grpc_reader_fini(&call->reader);
	call->reader = (struct ck_grpc_reader){ 0 };
}

void ck_shadow_data(struct ck_call *call, const unsigned char *bytes, size_t n)
{
	size_t used, before = call->reader.message.len;
	struct ck_error err;
	if (!watched(call) || call->shadow.unread)
		return;
	call->reader.max = CK_REQUEST_MAX;
	int r = ck_grpc_read(&call->reader, bytes, n, &used, &err);
	call->client->held += call->reader.message.len - before;
	call->shadow.whole = r > 0;
	/* the copy must not make the call too big for its client */
	if (r < 0 || used < n || call->client->held > call->daemon->conf.client_memory / 2) {
		call->shadow.unread = true;
		drop_copy(call);
	}
}

void ck_shadow_begin(struct ck_call *call)
{
	struct ck_daemon *daemon = call->daemon;
	struct ck_error err;
	if (!watched(call))
		return;
	call->shadow.begun_at = ck_loop_now();
	daemon->metrics.creates[call->method->kind]++;
	if (call->shadow.whole && !call->shadow.unread)
		ck_key_from_request(call->method->kind, call->reader.message.p,
				    call->reader.message.len, &call->shadow.key, &err);
	drop_copy(call);
	forget_old(daemon);
	call->shadow.again = call->shadow.key && find(daemon, call->shadow.key);
}

void ck_shadow_answered(struct ck_call *call, int grpc)
{
	call->shadow.answered = true;
	call->shadow.grpc = grpc;
}

static void made(struct ck_call *call)
{
	struct ck_daemon *daemon = call->daemon;
	struct ck_metrics *metrics = &daemon->metrics;
	enum ck_kind kind = call->method->kind;
	uint64_t took = ck_loop_now() - call->shadow.begun_at;
	struct ck_shadow *cut = call->shadow.key ? find(daemon, call->shadow.key) : NULL;
	metrics->answered[kind]++;
	ck_histogram_add(&metrics->runtime[kind], took);
	ck_histogram_add(&metrics->wait[kind], ck_loop_now() - call->began);
	metrics->shadow_saved[kind] += call->shadow.again;
	if (cut)
		forget(daemon, cut);
}

static bool cut_off(const struct ck_call *call)
{
	bool over = ck_call_left(call) == 0;
	if (call->pass.unsent) /* the runtime has not begun */
		return false;
	if (call->shadow.answered)
		return over && (call->shadow.grpc == CK_GRPC_DEADLINE_EXCEEDED ||
				call->shadow.grpc == CK_GRPC_CANCELLED);
	/* the client has left; or the runtime has ended the call at its deadline */
	return (call->pass.stream && !call->pass.ended) || over;
}

void ck_shadow_end(struct ck_call *call)
{
	struct ck_metrics *metrics = &call->daemon->metrics;
	if (!call->shadow.begun_at)
		return;
	if (call->shadow.answered && call->shadow.grpc == CK_GRPC_OK) {
		made(call);
	} else if (cut_off(call)) {
		metrics->shadow_cut[call->method->kind]++;
		metrics->shadow_saved[call->method->kind] += call->shadow.again;
		if (call->shadow.key)
			remember(call->daemon, CK_TAKE(call->shadow.key));
	}
	ck_key_free(call->shadow.key);
}
