/* SPDX-License-Identifier: Apache-2.0 */
/* Callers: a turn from begin to free, by waiting and by callback. */
#include <utlist.h>

#include "cache/caller.h"
#include "cache/request/redact.h"
#include "src/base/limits.h"

/* Takes the outcome of a turn after its round. */
static int fetch(struct ck_turn *turn, struct ck_error *err)
{
	pthread_mutex_lock(&turn->cache->lock);
	int r = ck_turn_fetch(turn);
	pthread_mutex_unlock(&turn->cache->lock);
	if (r < 0 && err)
		*err = *ck_turn_why(turn);
	return r;
}

/* ---- begin ----------------------------------------------------------------------------------- */

static struct ck_turn *turn_new(struct ck_cache *cache, enum ck_kind kind, bool removal)
{
	struct ck_turn *turn = CK_NEW(struct ck_turn);
	if (!turn)
		return NULL;
	turn->cache = ck_cache_ref(cache);
	turn->kind = kind;
	turn->is = removal ? CK_TURN_REMOVAL : CK_TURN_REQUEST;
	pthread_cond_init(&turn->decided, NULL);
	return turn;
}

static void turn_delete(struct ck_turn *turn)
{
	struct ck_cache *cache = turn->cache;
	if (turn->is == CK_TURN_REQUEST)
		ck_turn_fini(&turn->m);
	ck_fingerprint_free(turn->fp);
	free(turn->request);
	pthread_cond_destroy(&turn->decided);
	free(turn);
	ck_cache_unref(cache);
}

static void turn_auto(struct ck_turn **turn)
{
	if (*turn)
		turn_delete(*turn);
}
#define TURN_AUTO __attribute__((cleanup(turn_auto))) /* until it is in cache->turns */

struct begin {
	struct ck_turn *turn;
	struct ck_key *key; /* the machine takes it */
	const struct ck_request *request;
	struct ck_error *err;
	int r;
	bool attached;
};

static void begin(void *of)
{
	struct begin *b = of;
	struct ck_turn *turn = b->turn;
	DL_PREPEND(turn->cache->turns, turn);
	b->r = ck_machine_begin(turn->cache->machine, &turn->m, b->key, turn->fp,
				b->request->timeout, b->request->expired, b->err);
	b->attached = turn->m.state != CK_TURN_NEW; /* if not, nothing happened */
	/* A turn that goes on may be compared again. Its digests need less memory than the form of
	 * the request; without memory for them now they are made later. */
	if (b->attached && !ck_turn_decided(&turn->m))
		ck_fingerprint_digest(turn->fp, NULL);
}

int ck_turn_begin_impl(struct ck_cache *cache, const struct ck_request *request,
		       struct ck_turn **ret_turn, struct ck_error *err)
{
	TURN_AUTO struct ck_turn *turn = turn_new(cache, request->kind, false);
	struct begin b = { .turn = turn, .request = request, .err = err };
	if (!turn)
		return ck_nomem(err);
	int r = ck_key_from_request(request->kind, request->bytes, request->len, &b.key, err);
	if (r >= 0) {
		turn->request = ck_memdup(request->bytes, request->len);
		turn->request_len = request->len;
		r = turn->request ? 0 : ck_nomem(err);
	}
	if (r >= 0)
		r = ck_fingerprint_make(&cache->key, request->kind, turn->request,
					turn->request_len, &turn->fp, err);
	if (r >= 0 && request->key_only)
		ck_fingerprint_key_only(turn->fp);
	/* a small request's are made here, beside other threads, and not inside the round */
	if (r >= 0 && request->len <= CK_DIGESTS_EARLY)
		r = ck_fingerprint_digest(turn->fp, err);
	if (r >= 0)
		r = ck_round_call(cache, begin, &b, err);
	if (r < 0) {
		ck_key_free(b.key);
		return r;
	}
	r = b.r;
	/* An outcome that comes after begin's own event is for wait and watch, even if it came in
	 * the same round: a failure has a status, and to read that the caller needs the turn. */
	if (b.attached && r != CK_WAIT)
		r = fetch(turn, err);
	if (r < 0) /* nothing to wait for, and nothing that the caller must free */
		ck_turn_free_impl(CK_TAKE(turn));
	else
		*ret_turn = CK_TAKE(turn);
	return r;
}

/* ---- wait ------------------------------------------------------------------------------------ */

int ck_turn_wait_impl(struct ck_turn *turn, struct ck_error *err)
{
	struct ck_cache *cache = turn->cache;
	int r;
	pthread_mutex_lock(&cache->lock);
	turn->waiting++;
	while ((r = ck_turn_fetch(turn)) == CK_WAIT) {
		if (turn->left)
			r = -CK_EABANDONED;
		else if (ck_cache_in_callback(cache))
			r = -CK_EDEADLK;
		else if (!cache->has_loop)
			r = -CK_ENOLOOP;
		if (r != CK_WAIT) {
			ck_fail(err, -r, "%s", ck_strerror(-r));
			err = NULL; /* that of the turn is not written yet */
			break;
		}
		pthread_cond_wait(&turn->decided, &cache->lock);
	}
	turn->waiting--;
	if (r < 0 && err)
		*err = *ck_turn_why(turn);
	pthread_mutex_unlock(&cache->lock);
	return r;
}

/* ---- what a creator says --------------------------------------------------------------------- */

/* Inside the round that decides it: the call that is running returns it; nobody is called back. */
static void expect(struct ck_turn *turn)
{
	pthread_mutex_lock(&turn->cache->lock);
	if (turn->news == CK_NEWS_OPEN)
		turn->news = CK_NEWS_EXPECTED;
	pthread_mutex_unlock(&turn->cache->lock);
}

struct finish {
	struct ck_turn *turn;
	struct ck_shared_result *result;
	struct ck_error why;
	int r;
	bool decided;
};

static void finish_inside(void *of)
{
	struct finish *f = of;
	f->r = ck_machine_finish(f->turn->cache->machine, &f->turn->m, f->result, &f->why);
	f->decided = f->r != CK_WAIT && !f->why.code;
	if (f->decided)
		expect(f->turn);
}

int ck_turn_finish_impl(struct ck_turn *turn, const struct ck_result *result, struct ck_error *err)
{
	struct finish f = { .turn = turn };
	if (turn->is == CK_TURN_REMOVAL)
		return ck_fail(err, CK_ESTATE, CK_NOT_CREATING);
	f.result = ck_shared_result_new(result->id, result->reply, result->reply_len);
	if (!f.result)
		return ck_nomem(err);
	int r = ck_round_call(turn->cache, finish_inside, &f, err);
	ck_shared_result_unref(f.result);
	if (r < 0)
		return r;
	r = f.r;
	if (f.decided)
		r = fetch(turn, err); /* as it is now that the round is on disk */
	else if (r < 0 && err)
		*err = f.why;
	return r == CK_BUSY ? CK_KEPT /* its caller's time was up before */ : r;
}

int ck_turn_fail_impl(struct ck_turn *turn, const struct ck_status *why, struct ck_error *err)
{
	struct ck_cache *cache = turn->cache;
	char text[CK_TEXT_MAX + 1];
	if (turn->is == CK_TURN_REMOVAL)
		return ck_fail(err, CK_ESTATE, CK_NOT_CREATING);
	struct ck_known known = { turn->kind, turn->request, turn->request_len, NULL, 0 };
	ck_redact(why->message ? why->message : "", &known, text);
	struct ck_shared_status *status = ck_shared_status_new(why);
	if (!status)
		return ck_nomem(err);
	int r = ck_round_enter(cache, err);
	if (r >= 0) {
		r = ck_machine_fail(cache->machine, &turn->m, status, text);
		bool decided = r == 0 && turn->m.state == CK_TURN_DECIDED;
		if (decided)
			expect(turn);
		ck_round_leave(cache);
		if (decided)
			fetch(turn, NULL); /* the creator knows the outcome */
		else if (r == -CK_ESTATE)
			ck_fail(err, CK_ESTATE, CK_NOT_CREATING);
	}
	ck_shared_status_unref(status);
	return r;
}

/* ---- the caller goes ------------------------------------------------------------------------- */

/* Inside a round: decided because its caller has left. Another decision is still to come. */
static bool left_decides(const struct ck_turn *turn)
{
	return turn->is == CK_TURN_REQUEST
		       ? ck_turn_decided(&turn->m) && !ck_turn_answered_now(&turn->m)
		       : turn->removal.state == CK_REMOVAL_DONE && !turn->removal.removed_prev;
}

void ck_turn_leave_impl(struct ck_turn *turn)
{
	struct ck_cache *cache = turn->cache;
	if (ck_round_enter(cache, NULL) < 0)
		return;
	if (turn->is == CK_TURN_REMOVAL)
		ck_machine_remove_leave(cache->machine, &turn->removal);
	else
		ck_machine_leave(cache->machine, &turn->m);
	pthread_mutex_lock(&cache->lock);
	turn->left = true;
	if (turn->news == CK_NEWS_OPEN && left_decides(turn)) { /* nobody is called back */
		turn->news = CK_NEWS_HEARD;
		turn->outcome = -CK_EABANDONED;
	}
	pthread_cond_broadcast(&turn->decided);
	pthread_mutex_unlock(&cache->lock);
	ck_round_leave(cache);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void part(void *of)
{
	struct ck_turn *turn = of;
	struct ck_cache *cache = turn->cache;
	DL_DELETE(cache->turns, turn);
	if (turn->is == CK_TURN_REMOVAL) {
		ck_machine_remove_end(cache->machine, &turn->removal);
		return;
	}
	if (turn->resolving)
		ck_job_forget_turn(turn->resolving);
	pthread_mutex_lock(&cache->lock);
	/* decided, perhaps in this very round, and nobody fetched it */
	bool unheard = turn->news == CK_NEWS_READY || ck_turn_answered_now(&turn->m);
	bool begun = turn->begun;
	pthread_mutex_unlock(&cache->lock);
	if (unheard) /* if it was handed a result, nobody was answered (K7) */
		ck_machine_answer_reported(cache->machine, &turn->m, false);
	if (!begun) /* also if its caller heard that it was superseded, or nothing at all */
		ck_machine_unheard(cache->machine, &turn->m);
	ck_machine_drop(cache->machine, &turn->m);
}

static void parted(void *of)
{
	turn_delete(of);
}

/* From now on nobody is called back. */
static void call_nobody(struct ck_turn *turn)
{
	struct ck_cache *cache = turn->cache;
	pthread_mutex_lock(&cache->lock);
	turn->cb = NULL;
	ck_turn_unqueue_callback(turn);
	while (cache->in_callback == turn && !pthread_equal(cache->process_thread, pthread_self()))
		pthread_cond_wait(&cache->changed, &cache->lock);
	if (cache->in_callback == turn)
		/* freed by its own callback: another turn may get this address */
		cache->in_callback = NULL;
	pthread_mutex_unlock(&cache->lock);
}

void ck_turn_free_impl(struct ck_turn *turn)
{
	call_nobody(turn);
	turn->freeing = (struct ck_round_call){ .run = part, .of = turn, .after = parted };
	/* -CK_EDEADLK: the host called from inside choose or a snapshot, against the rules. Lost
	 * memory is better than freed memory in use. */
	if (ck_round_post(turn->cache, &turn->freeing) == -CK_ECLOSED)
		turn_delete(turn); /* the turn has no part in the cache any more */
}

/* ---- removal --------------------------------------------------------------------------------- */

int ck_remove_begin_impl(struct ck_cache *cache, enum ck_kind kind, const char *id,
			 uint64_t timeout, struct ck_turn **ret_turn, struct ck_error *err)
{
	TURN_AUTO struct ck_turn *turn = turn_new(cache, kind, true);
	if (!turn)
		return ck_nomem(err);
	int r = ck_round_enter(cache, err);
	if (r < 0)
		return r;
	DL_PREPEND(cache->turns, turn);
	r = ck_machine_remove_begin(cache->machine, &turn->removal, kind, id, timeout, err);
	ck_round_leave(cache);
	if (r < 0) {
		ck_turn_free_impl(CK_TAKE(turn));
		return r;
	}
	if (r != CK_WAIT)
		fetch(turn, NULL); /* nothing to wait for: the outcome is returned here */
	*ret_turn = CK_TAKE(turn);
	return r;
}
