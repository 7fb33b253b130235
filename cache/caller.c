/* SPDX-License-Identifier: Apache-2.0 */
/* Callers: a turn from begin to free, on both faces. src/api.c has checked the arguments. */
#include "cache/caller.h"
#include "cache/request/redact.h"
#include "src/base/limits.h"

/* ---- decided turns --------------------------------------------------------------------------- */

static void callback_queue(struct ck_cache *cache, struct ck_turn *turn)
{
	if (turn->queued)
		return;
	turn->queued = true;
	turn->queue_next = NULL;
	turn->queue_prev = cache->callbacks_last;
	if (cache->callbacks_last)
		cache->callbacks_last->queue_next = turn;
	else
		cache->callbacks = turn;
	cache->callbacks_last = turn;
	cache->pending = true;
}

void ck_callback_unqueue(struct ck_cache *cache, struct ck_turn *turn)
{
	if (!turn->queued)
		return;
	turn->queued = false;
	if (turn->queue_prev)
		turn->queue_prev->queue_next = turn->queue_next;
	else
		cache->callbacks = turn->queue_next;
	if (turn->queue_next)
		turn->queue_next->queue_prev = turn->queue_prev;
	else
		cache->callbacks_last = turn->queue_prev;
	turn->queue_prev = turn->queue_next = NULL;
}

void ck_turn_ready(struct ck_cache *cache, struct ck_turn *turn, int outcome)
{
	turn->is_ready = true;
	turn->outcome = outcome;
	if (turn->ending)
		return;
	if (turn->waiting)
		pthread_cond_broadcast(&turn->decided);
	if (turn->cb)
		callback_queue(cache, turn);
}

int ck_turn_fetch(struct ck_turn *turn)
{
	if (!turn->is_ready)
		return CK_WAIT;
	turn->is_ready = false;
	turn->creates = turn->creates || turn->outcome == CK_CREATE;
	ck_callback_unqueue(turn->cache, turn);
	return turn->outcome;
}

static int fetch_locked(struct ck_turn *turn, int r, struct ck_error *err)
{
	if (r < 0) {
		if (r == -CK_ECLOSED)
			return ck_fail(err, CK_ECLOSED, "the cache is closing");
		return ck_fail(err, -r, "not from inside a hook's choose or a snapshot");
	}
	pthread_mutex_lock(&turn->cache->lock);
	r = ck_turn_fetch(turn);
	pthread_mutex_unlock(&turn->cache->lock);
	if (r < 0 && err)
		*err = turn->m.err;
	return r;
}

/* ---- begin ----------------------------------------------------------------------------------- */

struct begin_op {
	struct ck_op op;
	struct ck_turn *turn;
	struct ck_key *key;
	uint64_t timeout;
	bool expired;
	int r;
	struct ck_error err;
};

static void turn_link(struct ck_cache *cache, struct ck_turn *turn)
{
	turn->next = cache->turns;
	if (turn->next)
		turn->next->prev = turn;
	cache->turns = turn;
	turn->linked = true;
}

static void turn_unlink(struct ck_cache *cache, struct ck_turn *turn)
{
	if (turn->prev)
		turn->prev->next = turn->next;
	else if (cache->turns == turn)
		cache->turns = turn->next;
	if (turn->next)
		turn->next->prev = turn->prev;
	turn->prev = turn->next = NULL;
}

static void run_begin(struct ck_cache *cache, struct ck_op *op)
{
	struct begin_op *begin = (struct begin_op *)(void *)op;
	turn_link(cache, begin->turn);
	begin->r = ck_machine_begin(cache->machine, &begin->turn->m, begin->key, begin->turn->fp,
				    begin->timeout, begin->expired, &begin->err);
}

static struct ck_turn *turn_new(struct ck_cache *cache)
{
	struct ck_turn *turn = CK_NEW(struct ck_turn);
	if (!turn)
		return NULL;
	turn->cache = ck_cache_ref(cache);
	pthread_cond_init(&turn->decided, NULL);
	return turn;
}

int ck_turn_begin_impl(struct ck_cache *cache, const struct ck_request *request,
		       struct ck_turn **ret_turn, struct ck_error *err)
{
	CK_AUTO(ck_turn) *turn = turn_new(cache);
	struct begin_op begin = { .op.run = run_begin,
				  .turn = turn,
				  .timeout = request->timeout,
				  .expired = request->expired };
	if (!turn)
		return ck_nomem(err);
	turn->kind = request->kind;
	int r = ck_key_from_request(request->kind, request->bytes, request->len, &begin.key, err);
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
	if (r < 0) {
		ck_key_free(begin.key);
		return r;
	}
	r = ck_cache_do(cache, &begin.op);
	if (r < 0) {
		ck_key_free(begin.key);
		return fetch_locked(turn, r, err);
	}
	if (begin.r < 0 && turn->m.state == CK_TURN_NONE) { /* not attached: nothing happened */
		if (err)
			*err = begin.err;
		return begin.r;
	}
	/* what is decided after its own event is for wait and watch: a failure comes with a status,
	 * which needs the turn */
	r = begin.r == CK_WAIT ? CK_WAIT : fetch_locked(turn, 0, err);
	/* decided at once, and not well: nothing to wait for, nothing to free for the caller */
	if (r < 0)
		return r;
	*ret_turn = CK_TAKE(turn);
	return r;
}

/* ---- wait, watch ----------------------------------------------------------------------------- */

int ck_turn_wait_impl(struct ck_turn *turn, struct ck_error *err)
{
	struct ck_cache *cache = turn->cache;
	bool decided = false;
	int r;
	pthread_mutex_lock(&cache->lock);
	turn->waiting++;
	for (;;) {
		bool inside =
			ck_cache_in_round(cache) ||
			(cache->processing && pthread_equal(cache->process_thread, pthread_self()));
		decided = turn->is_ready && !turn->ending;
		r = decided ? ck_turn_fetch(turn) : CK_WAIT;
		if (decided)
			break;
		if (turn->closed)
			r = -CK_ECLOSED;
		else if (inside)
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
	if (r < 0 && decided && err) /* else the round may be writing it */
		*err = turn->m.err;
	else if (r < 0)
		ck_fail(err, -r, "%s", ck_strerror(-r));
	pthread_mutex_unlock(&cache->lock);
	return r;
}

void ck_turn_watch_impl(struct ck_turn *turn, ck_turn_cb *cb, void *userdata)
{
	struct ck_cache *cache = turn->cache;
	pthread_mutex_lock(&cache->lock);
	turn->cb = cb;
	turn->userdata = userdata;
	if (!cb)
		ck_callback_unqueue(cache, turn);
	else if (turn->is_ready && !turn->ending)
		callback_queue(cache, turn);
	ck_cache_wake(cache);
	pthread_mutex_unlock(&cache->lock);
}

/* ---- what a creator says --------------------------------------------------------------------- */

struct turn_op {
	struct ck_op op;
	struct ck_turn *turn;
	struct ck_shared_result *result;
	struct ck_shared_status *status;
	const char *text;
	bool delivered;
	int r;
	struct ck_error err;
};

static void ending_begins(struct ck_turn *turn)
{
	pthread_mutex_lock(&turn->cache->lock);
	turn->ending = true;
	pthread_mutex_unlock(&turn->cache->lock);
}

/* what its call did not return, as hooks had agreed in the same moment, is for whoever waits or
 * watches */
static void ending_ends(struct ck_turn *turn)
{
	pthread_mutex_lock(&turn->cache->lock);
	turn->ending = false;
	if (turn->is_ready && !turn->closed)
		ck_turn_ready(turn->cache, turn, turn->outcome);
	ck_cache_wake(turn->cache);
	pthread_mutex_unlock(&turn->cache->lock);
}

static void run_finish(struct ck_cache *cache, struct ck_op *op)
{
	struct turn_op *finish = (struct turn_op *)(void *)op;
	finish->r = ck_machine_finish(cache->machine, &finish->turn->m, finish->result,
				      &finish->err);
}

static int finish_outcome(struct turn_op *finish, int r, struct ck_error *err)
{
	if (r < 0)
		return fetch_locked(finish->turn, r, err);
	if (finish->r == CK_WAIT)
		return CK_WAIT;
	/* what it was decided to be, after the round is on disk */
	r = fetch_locked(finish->turn, 0, err);
	if (r == CK_WAIT) {
		/* it failed at once; or somebody has heard before that it was abandoned */
		r = finish->r;
		if (r < 0 && err)
			*err = finish->err.code ? finish->err : finish->turn->m.err;
	} else if (finish->r < 0 && finish->err.code && r == finish->r && err) {
		*err = finish->err;
	}
	return r == -CK_EABANDONED ? CK_ABANDONED : r;
}

int ck_turn_finish_impl(struct ck_turn *turn, const struct ck_result *result, struct ck_error *err)
{
	struct turn_op finish = { .op.run = run_finish, .turn = turn };
	finish.result = ck_shared_result_new(result->id, result->reply, result->reply_len);
	if (!finish.result)
		return ck_nomem(err);
	ending_begins(turn);
	int r = ck_cache_do(turn->cache, &finish.op);
	ck_shared_result_unref(finish.result);
	r = finish_outcome(&finish, r, err);
	ending_ends(turn);
	return r;
}

static void run_fail(struct ck_cache *cache, struct ck_op *op)
{
	struct turn_op *fail = (struct turn_op *)(void *)op;
	fail->r = ck_machine_fail(cache->machine, &fail->turn->m, fail->status, fail->text);
}

static int turn_do(struct ck_turn *turn, struct turn_op *op, struct ck_error *err)
{
	int r = ck_cache_do(turn->cache, &op->op);
	if (r < 0)
		return fetch_locked(turn, r, err);
	if (op->r == -CK_ESTATE)
		return ck_fail(err, CK_ESTATE, "the turn is not creating anything");
	return op->r;
}

int ck_turn_fail_impl(struct ck_turn *turn, const struct ck_status *why, struct ck_error *err)
{
	char redacted[CK_TEXT_MAX + 1];
	struct turn_op fail = { .op.run = run_fail, .turn = turn, .text = redacted };
	ck_redact(why->message ? why->message : "", turn->kind, turn->request, turn->request_len,
		  redacted);
	fail.status = ck_shared_status_new(why);
	if (!fail.status)
		return ck_nomem(err);
	ending_begins(turn);
	int r = turn_do(turn, &fail, err);
	ck_shared_status_unref(fail.status);
	pthread_mutex_lock(&turn->cache->lock);
	if (r >= 0)
		ck_turn_fetch(turn); /* the creator knows already */
	pthread_mutex_unlock(&turn->cache->lock);
	ending_ends(turn);
	return r;
}

static void run_lost(struct ck_cache *cache, struct ck_op *op)
{
	struct turn_op *lost = (struct turn_op *)(void *)op;
	lost->r = ck_machine_lost(cache->machine, &lost->turn->m);
}

int ck_turn_lost_impl(struct ck_turn *turn, struct ck_error *err)
{
	struct turn_op lost = { .op.run = run_lost, .turn = turn };
	return turn_do(turn, &lost, err);
}

static void run_stage(struct ck_cache *cache, struct ck_op *op)
{
	struct turn_op *stage = (struct turn_op *)(void *)op;
	stage->r = ck_machine_stage(cache->machine, &stage->turn->m, stage->text);
}

int ck_turn_stage_impl(struct ck_turn *turn, const char *text)
{
	char redacted[CK_TEXT_MAX + 1];
	struct turn_op stage = { .op.run = run_stage, .turn = turn, .text = redacted };
	ck_redact(text, turn->kind, turn->request, turn->request_len, redacted);
	return turn_do(turn, &stage, NULL);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void run_leave(struct ck_cache *cache, struct ck_op *op)
{
	struct ck_turn *turn = ((struct turn_op *)(void *)op)->turn;
	ck_machine_leave(cache->machine, &turn->m);
	pthread_mutex_lock(&cache->lock);
	turn->left = true;
	pthread_cond_broadcast(&turn->decided);
	pthread_mutex_unlock(&cache->lock);
}

void ck_turn_leave_impl(struct ck_turn *turn)
{
	struct turn_op leave = { .op.run = run_leave, .turn = turn };
	ck_cache_do(turn->cache, &leave.op);
}

static void run_answered(struct ck_cache *cache, struct ck_op *op)
{
	struct turn_op *answered = (struct turn_op *)(void *)op;
	ck_machine_answer_reported(cache->machine, &answered->turn->m, answered->delivered);
}

int ck_turn_answered_impl(struct ck_turn *turn, bool delivered)
{
	struct turn_op answered = { .op.run = run_answered, .turn = turn, .delivered = delivered };
	return ck_cache_do(turn->cache, &answered.op);
}

static void run_free(struct ck_cache *cache, struct ck_op *op)
{
	struct ck_turn *turn = ((struct turn_op *)(void *)op)->turn;
	if (turn->resolving)
		ck_job_forget_turn(turn->resolving);
	pthread_mutex_lock(&cache->lock);
	/* decided, perhaps by this very round, and nobody looked */
	bool unheard = turn->is_ready || turn->m.answered_queued;
	bool begun = turn->creates;
	pthread_mutex_unlock(&cache->lock);
	if (unheard) /* if it was handed back, nobody was answered (K7) */
		ck_machine_answer_reported(cache->machine, &turn->m, false);
	if (!begun) /* also if what its caller heard is that it was superseded, or nothing at all */
		ck_machine_unheard(cache->machine, &turn->m);
	ck_machine_drop(cache->machine, &turn->m);
	turn_unlink(cache, turn);
}

void ck_turn_free_impl(struct ck_turn *turn)
{
	struct ck_cache *cache = turn->cache;
	struct turn_op end = { .op.run = run_free, .turn = turn };
	if (turn->linked && ck_cache_do(cache, &end.op) == -CK_EDEADLK)
		/* from inside choose or a snapshot, against the rules: lost memory is better than
		 * freed memory in use */
		return;
	pthread_mutex_lock(&cache->lock);
	ck_callback_unqueue(cache, turn);
	while (cache->in_callback == turn && !pthread_equal(cache->process_thread, pthread_self()))
		pthread_cond_wait(&cache->changed, &cache->lock);
	if (cache->in_callback == turn)
		/* freed by its own callback: the next turn at this address is another one */
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

struct drain_op {
	struct ck_op op;
	struct ck_turn *turn;
	enum ck_kind kind;
	const char *id;
	uint64_t timeout;
	int r;
	struct ck_error err;
};

static void run_drain(struct ck_cache *cache, struct ck_op *op)
{
	struct drain_op *drain = (struct drain_op *)(void *)op;
	turn_link(cache, drain->turn);
	drain->r = ck_machine_drain(cache->machine, &drain->turn->m, drain->kind, drain->id,
				    drain->timeout, &drain->err);
}

int ck_remove_begin_impl(struct ck_cache *cache, enum ck_kind kind, const char *id,
			 uint64_t timeout, struct ck_turn **ret_turn, struct ck_error *err)
{
	CK_AUTO(ck_turn) *turn = turn_new(cache);
	struct drain_op drain = {
		.op.run = run_drain, .turn = turn, .kind = kind, .id = id, .timeout = timeout
	};
	if (!turn)
		return ck_nomem(err);
	turn->kind = kind;
	int r = ck_cache_do(cache, &drain.op);
	if (r < 0)
		return fetch_locked(turn, r, err);
	if (drain.r < 0) {
		if (err)
			*err = drain.err;
		return drain.r;
	}
	if (drain.r != CK_WAIT)
		/* nothing to drain; decided with an answer, or without one */
		fetch_locked(turn, 0, err);
	*ret_turn = CK_TAKE(turn);
	return drain.r;
}
