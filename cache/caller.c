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
		*err = turn->m.err;
	return r;
}

/* ---- begin ----------------------------------------------------------------------------------- */

static struct ck_turn *turn_new(struct ck_cache *cache, enum ck_kind kind)
{
	struct ck_turn *turn = CK_NEW(struct ck_turn);
	if (!turn)
		return NULL;
	turn->cache = ck_cache_ref(cache);
	turn->kind = kind;
	pthread_cond_init(&turn->decided, NULL);
	return turn;
}

static void turn_auto(struct ck_turn **turn)
{
	if (*turn)
		ck_turn_free_impl(*turn);
}
#define TURN_AUTO __attribute__((cleanup(turn_auto)))

static void turn_link(struct ck_cache *cache, struct ck_turn *turn)
{
	DL_PREPEND(cache->turns, turn);
	turn->linked = true;
}

int ck_turn_begin_impl(struct ck_cache *cache, const struct ck_request *request,
		       struct ck_turn **ret_turn, struct ck_error *err)
{
	TURN_AUTO struct ck_turn *turn = turn_new(cache, request->kind);
	struct ck_key *key = NULL;
	if (!turn)
		return ck_nomem(err);
	int r = ck_key_from_request(request->kind, request->bytes, request->len, &key, err);
	if (r >= 0)
		r = ck_fingerprint_make(&cache->key, request->kind, request->bytes, request->len,
					&turn->fp, err);
	if (r >= 0) {
		turn->request = ck_memdup(request->bytes, request->len);
		turn->request_len = request->len;
		r = turn->request ? 0 : ck_nomem(err);
		if (request->key_only)
			ck_fingerprint_key_only(turn->fp);
	}
	if (r >= 0)
		r = ck_round_enter(cache, err);
	if (r < 0) {
		ck_key_free(key);
		return r;
	}
	turn_link(cache, turn);
	r = ck_machine_begin(cache->machine, &turn->m, key, turn->fp, request->timeout,
			     request->expired, err);
	bool attached = turn->m.state != CK_TURN_NONE; /* if not, nothing happened */
	ck_round_leave(cache);
	/* An outcome that comes after begin's own event is for wait and watch, even if it came in
	 * the same round: a failure has a status, and to read that the caller needs the turn. */
	if (attached && r != CK_WAIT)
		r = fetch(turn, err);
	if (r < 0)
		return r; /* nothing to wait for, and nothing that the caller must free */
	*ret_turn = CK_TAKE(turn);
	return r;
}

/* ---- wait ------------------------------------------------------------------------------------ */

int ck_turn_wait_impl(struct ck_turn *turn, struct ck_error *err)
{
	struct ck_cache *cache = turn->cache;
	bool decided = false;
	int r;
	pthread_mutex_lock(&cache->lock);
	turn->waiting++;
	for (;;) {
		decided = turn->is_ready && !turn->ending;
		r = decided ? ck_turn_fetch(turn) : CK_WAIT;
		if (decided)
			break;
		if (turn->closed)
			r = -CK_ECLOSED;
		else if (ck_cache_in_callback(cache))
			r = -CK_EDEADLK;
		else if (!cache->has_loop)
			r = -CK_ENOLOOP;
		else if (turn->left)
			r = -CK_EABANDONED;
		else {
			pthread_cond_wait(&turn->decided, &cache->lock);
			continue;
		}
		break;
	}
	turn->waiting--;
	if (r < 0 && decided && err) /* not decided: a round may be writing m.err */
		*err = turn->m.err;
	else if (r < 0)
		ck_fail(err, -r, "%s", ck_strerror(-r));
	pthread_mutex_unlock(&cache->lock);
	return r;
}

/* ---- what a creator says --------------------------------------------------------------------- */

static void ending_begins(struct ck_turn *turn)
{
	pthread_mutex_lock(&turn->cache->lock);
	turn->ending = true;
	pthread_mutex_unlock(&turn->cache->lock);
}

/* If the call did not return the outcome (hooks agreed in the same moment), it goes to whoever
 * waits or watches. */
static void ending_ends(struct ck_turn *turn)
{
	pthread_mutex_lock(&turn->cache->lock);
	turn->ending = false;
	if (turn->is_ready && !turn->closed)
		ck_turn_ready(turn, turn->outcome);
	ck_cache_wake(turn->cache);
	pthread_mutex_unlock(&turn->cache->lock);
}

static int finish(struct ck_turn *turn, struct ck_shared_result *result, struct ck_error *err)
{
	struct ck_error why = { 0 };
	int r = ck_round_enter(turn->cache, err);
	if (r < 0)
		return r;
	int at_once = ck_machine_finish(turn->cache->machine, &turn->m, result, &why);
	ck_round_leave(turn->cache);
	if (at_once == CK_WAIT)
		return CK_WAIT;
	/* what it was decided to be once the round was on disk */
	r = fetch(turn, err);
	if (r == CK_WAIT) {
		/* it failed at once, or somebody has heard earlier that it was abandoned */
		r = at_once;
		if (r < 0 && err)
			*err = why.code ? why : turn->m.err;
	} else if (r < 0 && r == at_once && why.code && err) {
		*err = why;
	}
	return r == -CK_EABANDONED ? CK_ABANDONED : r;
}

int ck_turn_finish_impl(struct ck_turn *turn, const struct ck_result *result, struct ck_error *err)
{
	struct ck_shared_result *shared =
		ck_shared_result_new(result->id, result->reply, result->reply_len);
	if (!shared)
		return ck_nomem(err);
	ending_begins(turn);
	int r = finish(turn, shared, err);
	ending_ends(turn);
	ck_shared_result_unref(shared);
	return r;
}

int ck_turn_fail_impl(struct ck_turn *turn, const struct ck_status *why, struct ck_error *err)
{
	struct ck_cache *cache = turn->cache;
	char text[CK_TEXT_MAX + 1];
	ck_redact(why->message ? why->message : "", turn->kind, turn->request, turn->request_len,
		  text);
	struct ck_shared_status *status = ck_shared_status_new(why);
	if (!status)
		return ck_nomem(err);
	ending_begins(turn);
	int r = ck_round_enter(cache, err);
	if (r >= 0) {
		r = ck_machine_fail(cache->machine, &turn->m, status, text);
		ck_round_leave(cache);
		if (r == -CK_ESTATE)
			ck_fail(err, CK_ESTATE, CK_NOT_CREATING);
	}
	if (r >= 0)
		fetch(turn, NULL); /* the creator knows the outcome */
	ending_ends(turn);
	ck_shared_status_unref(status);
	return r;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void turn_part(struct ck_cache *cache, struct ck_turn *turn)
{
	if (turn->resolving)
		ck_job_forget_turn(turn->resolving);
	pthread_mutex_lock(&cache->lock);
	/* decided, perhaps in this very round, and nobody fetched it */
	bool unheard = turn->is_ready || turn->m.answered_queued;
	bool begun = turn->creates;
	pthread_mutex_unlock(&cache->lock);
	if (unheard) /* if it was handed a result, nobody was answered (K7) */
		ck_machine_answer_reported(cache->machine, &turn->m, false);
	if (!begun) /* also if its caller heard that it was superseded, or nothing at all */
		ck_machine_unheard(cache->machine, &turn->m);
	ck_machine_drop(cache->machine, &turn->m);
	DL_DELETE(cache->turns, turn);
}

void ck_turn_free_impl(struct ck_turn *turn)
{
	struct ck_cache *cache = turn->cache;
	if (turn->linked) {
		int r = ck_round_enter(cache, NULL);
		/* The host called from inside choose or a snapshot, against the rules. Lost memory
		 * is better than freed memory in use. */
		if (r == -CK_EDEADLK)
			return;
		if (r >= 0) { /* else the cache was closed: the turn has no part in it any more */
			turn_part(cache, turn);
			ck_round_leave(cache);
		}
	}
	pthread_mutex_lock(&cache->lock);
	ck_turn_unqueue_callback(turn);
	while (cache->in_callback == turn && !pthread_equal(cache->process_thread, pthread_self()))
		pthread_cond_wait(&cache->changed, &cache->lock);
	if (cache->in_callback == turn)
		/* freed by its own callback: another turn may get this address */
		cache->in_callback = NULL;
	pthread_mutex_unlock(&cache->lock);
	ck_key_free(turn->m.key);
	ck_shared_result_unref(turn->m.result);
	ck_shared_status_unref(turn->m.status);
	ck_fingerprint_free(turn->fp);
	free(turn->m.drain);
	free(turn->request);
	pthread_cond_destroy(&turn->decided);
	free(turn);
	ck_cache_unref(cache);
}

/* ---- removal --------------------------------------------------------------------------------- */

int ck_remove_begin_impl(struct ck_cache *cache, enum ck_kind kind, const char *id,
			 uint64_t timeout, struct ck_turn **ret_turn, struct ck_error *err)
{
	TURN_AUTO struct ck_turn *turn = turn_new(cache, kind);
	if (!turn)
		return ck_nomem(err);
	int r = ck_round_enter(cache, err);
	if (r < 0)
		return r;
	turn_link(cache, turn);
	r = ck_machine_drain(cache->machine, &turn->m, kind, id, timeout, err);
	ck_round_leave(cache);
	if (r < 0)
		return r;
	if (r != CK_WAIT)
		fetch(turn, NULL); /* nothing to wait for: the outcome is returned here */
	*ret_turn = CK_TAKE(turn);
	return r;
}
