/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guarded border: every exported function that is not a job's. It checks what comes in, and in
 * a forked child it does nothing; either here, before anything is touched, or in ck_round_enter().
 */

#include "cache/caller.h"
#include "cache/request/redact.h"
#include "cache/view.h"
#include "src/base/limits.h"

const char *ck_version(void)
{
	return PACKAGE_VERSION;
}

static int forked(struct ck_error *err)
{
	return ck_fail(err, CK_EFORK, "in a child of the process that opened the cache");
}

/* A function returns the codes that its manual page lists, and no other. */
#define CODE(name) (1u << CK_E##name)
static int documented(int r, unsigned codes)
{
	(void)CK_NEVER(r < 0 && !(codes & 1u << -r));
	return r;
}

static int bad(struct ck_error *err, const char *what)
{
	return ck_fail(err, CK_EINVAL, "%s", what);
}

/* Leave a round with its result. */
static int left(struct ck_cache *cache, int r)
{
	ck_round_leave(cache);
	return r;
}

static bool kind_ok(enum ck_kind kind)
{
	return kind == CK_SANDBOX || kind == CK_CONTAINER;
}

static bool id_ok(const char *id)
{
	return id && id[0] && strnlen(id, CK_ID_MAX + 1) <= CK_ID_MAX;
}

/* ---- the cache ------------------------------------------------------------------------------- */

int ck_cache_open(const struct ck_options *options, struct ck_cache **ret_cache,
		  struct ck_error *err)
{
	if (!options || options->size < CK_OPTIONS_SIZE_0_1 || !ret_cache)
		return bad(err, "options: size is not set, or ret_cache is missing");
	if (!options->host || options->host->size < CK_HOST_SIZE_0_1 ||
	    !options->host->destroy)
		return bad(err, "options.host: missing, size not set, or no destroy");
	if (options->hooks && options->hooks->size < CK_HOOKS_SIZE_0_1)
		return bad(err, "options.hooks: size is not set");
	if (options->mode < CK_MODE_NORMALIZED || options->mode > CK_MODE_STRICT ||
	    options->hand_back < CK_REPEAT || options->hand_back > CK_OFFER ||
	    options->on_annotation_change < CK_ANNOTATION_HAND_BACK ||
	    options->on_annotation_change > CK_ANNOTATION_EVICT)
		return bad(err, "options: mode, hand_back or on_annotation_change is not one of "
				"its values");
	const uint64_t durations[] = { options->ttl, options->create_deadline, options->lost_grace,
				       options->supersede_wait, options->destroy_timeout };
	for (size_t i = 0; i < CK_COUNT(durations); i++)
		if (durations[i] > CK_DURATION_MAX)
			return bad(err, "options: a duration is longer than a year");
	return documented(ck_cache_open_impl(options, ret_cache, err),
			  CODE(INVAL) | CODE(IO) | CODE(NOMEM) | CODE(OWNED) | CODE(VERSION));
}

int ck_cache_close(struct ck_cache *cache, struct ck_error *err)
{
	if (!cache)
		return 0;
	return ck_cache_in_child(cache) ? forked(err) : ck_cache_close_impl(cache, err);
}

int ck_cache_run_thread(struct ck_cache *cache, struct ck_error *err)
{
	if (!cache)
		return bad(err, "no cache");
	return ck_cache_in_child(cache) ? forked(err) : ck_event_loop_thread(cache, err);
}

void ck_cache_log_level(struct ck_cache *cache, enum ck_log_level level)
{
	if (cache)
		__atomic_store_n(&cache->log_level, level, __ATOMIC_RELAXED);
}

int ck_cache_fd(struct ck_cache *cache)
{
	if (!cache)
		return -CK_EINVAL;
	if (ck_cache_in_child(cache))
		return -CK_EFORK;
	pthread_mutex_lock(&cache->lock);
	cache->has_loop = true;
	pthread_mutex_unlock(&cache->lock);
	return cache->epoll_fd;
}

int ck_cache_process(struct ck_cache *cache, struct ck_error *err)
{
	if (!cache)
		return bad(err, "no cache");
	if (ck_cache_in_child(cache))
		return forked(err);
	int r = ck_event_loop_process(cache);
	return r < 0 ? ck_fail(err, -r,
			       "ck_cache_process() is running already, or the library's thread "
			       "runs the event loop")
		     : r;
}

uint64_t ck_cache_timeout(struct ck_cache *cache)
{
	return !cache || ck_cache_in_child(cache) ? UINT64_MAX : ck_event_loop_timeout(cache);
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* ck_turn_begin(3), ck_turn_finish(3) */
#define TURN_CODES \
	(CODE(ABANDONED) | CODE(CLOSED) | CODE(CONFLICT) | CODE(DEADLINE) | CODE(DEADLK) | \
	 CODE(FAILED) | CODE(FORK) | CODE(INVAL) | CODE(IO) | CODE(MALFORMED) | CODE(NOLOOP) | \
	 CODE(NOMEM) | CODE(PRECONDITION) | CODE(REFUSED) | CODE(TOOBIG) | CODE(UNAVAILABLE))
#define FINISH_CODES \
	(CODE(ABANDONED) | CODE(CLOSED) | CODE(DEADLK) | CODE(FORK) | CODE(INVAL) | CODE(NOMEM) | \
	 CODE(STATE) | CODE(UNAVAILABLE))

int ck_turn_begin(struct ck_cache *cache, const struct ck_request *request,
		  struct ck_turn **ret_turn, struct ck_error *err)
{
	if (!cache)
		return bad(err, "no cache");
	if (!request || request->size < CK_REQUEST_SIZE_0_1 || !ret_turn ||
	    !kind_ok(request->kind) || (!request->bytes && request->len))
		return bad(err, "request: size is not set, no kind, or something is missing");
	if (ck_cache_in_child(cache))
		return forked(err);
	if (request->len > CK_REQUEST_MAX)
		return ck_fail(err, CK_ETOOBIG, "a request of %zu bytes; at most %u", request->len,
			       CK_REQUEST_MAX);
	struct ck_request checked = *request;
	if (checked.timeout > CK_DURATION_MAX)
		checked.timeout = CK_DURATION_MAX;
	return documented(ck_turn_begin_impl(cache, &checked, ret_turn, err), TURN_CODES);
}

int ck_turn_wait(struct ck_turn *turn, struct ck_error *err)
{
	if (!turn)
		return bad(err, "no turn");
	return ck_cache_in_child(turn->cache) ? forked(err)
				     : documented(ck_turn_wait_impl(turn, err), TURN_CODES);
}

int ck_turn_watch(struct ck_turn *turn, ck_turn_cb *cb, void *userdata)
{
	if (!turn)
		return -CK_EINVAL;
	struct ck_cache *cache = turn->cache;
	if (ck_cache_in_child(cache))
		return -CK_EFORK;
	pthread_mutex_lock(&cache->lock);
	turn->cb = cb;
	turn->userdata = userdata;
	if (!cb)
		ck_turn_unqueue_callback(turn);
	else if (turn->news == CK_NEWS_READY)
		ck_turn_queue_callback(turn);
	ck_cache_wake(cache);
	pthread_mutex_unlock(&cache->lock);
	return 0;
}

void ck_turn_leave(struct ck_turn *turn)
{
	if (turn)
		ck_turn_leave_impl(turn);
}

int ck_turn_stage(struct ck_turn *turn, const char *stage)
{
	char text[CK_TEXT_MAX + 1];
	if (!turn || !stage)
		return -CK_EINVAL;
	if (turn->is == CK_TURN_REMOVAL)
		return ck_cache_in_child(turn->cache) ? -CK_EFORK : -CK_ESTATE;
	struct ck_known known = { turn->kind, turn->request, turn->request_len, NULL, 0 };
	ck_redact(stage, &known, text);
	int r = ck_round_enter(turn->cache, NULL);
	if (r >= 0)
		r = left(turn->cache, ck_machine_stage(turn->cache->machine, &turn->m, text));
	return documented(r, FINISH_CODES);
}

int ck_turn_finish(struct ck_turn *turn, const struct ck_result *result, struct ck_error *err)
{
	if (!turn || !result || result->size < CK_RESULT_SIZE_0_1 || !id_ok(result->id) ||
	    (!result->reply && result->reply_len) || result->reply_len > CK_REPLY_MAX)
		return bad(err, "result: size is not set, the id is missing or over 1024 bytes, or "
				"the reply is over 64 KiB");
	return ck_cache_in_child(turn->cache)
		       ? forked(err)
		       : documented(ck_turn_finish_impl(turn, result, err),
				    FINISH_CODES | TURN_CODES);
}

int ck_turn_fail(struct ck_turn *turn, const struct ck_status *why, struct ck_error *err)
{
	if (!turn || !why || why->size < CK_STATUS_SIZE_0_1 || why->grpc <= 0 ||
	    (!why->details && why->details_len))
		return bad(err,
			   "status: size is not set, grpc is not an error, or details are missing");
	if (ck_cache_in_child(turn->cache))
		return forked(err);
	struct ck_status checked = *why;
	if (checked.details_len > CK_STATUS_MAX) /* it would not fit into a trailer either */
		checked.details_len = 0, checked.details = NULL;
	return documented(ck_turn_fail_impl(turn, &checked, err), FINISH_CODES);
}

int ck_turn_lost(struct ck_turn *turn, struct ck_error *err)
{
	if (!turn)
		return bad(err, "no turn");
	if (turn->is == CK_TURN_REMOVAL)
		return ck_cache_in_child(turn->cache) ? forked(err)
					     : ck_fail(err, CK_ESTATE, CK_NOT_CREATING);
	int r = ck_round_enter(turn->cache, err);
	if (r < 0)
		return r;
	r = left(turn->cache, ck_machine_lost(turn->cache->machine, &turn->m));
	if (r == -CK_ESTATE)
		ck_fail(err, CK_ESTATE, CK_NOT_CREATING);
	return documented(r, FINISH_CODES);
}

/* From then on the decision does not change, and may be read without the lock. */
static bool decided(struct ck_turn *turn)
{
	pthread_mutex_lock(&turn->cache->lock);
	bool is = ck_turn_is_decided(turn);
	pthread_mutex_unlock(&turn->cache->lock);
	return is;
}

int ck_turn_reply(struct ck_turn *turn, struct ck_reply *ret_reply)
{
	if (!turn || !ret_reply || ret_reply->size < CK_REPLY_SIZE_0_1)
		return -CK_EINVAL;
	if (ck_cache_in_child(turn->cache))
		return -CK_EFORK;
	const struct ck_shared_result *result =
		decided(turn) && turn->is == CK_TURN_REQUEST ? turn->m.decision.result : NULL;
	if (!result)
		return -CK_ESTATE;
	*ret_reply = (struct ck_reply){
		.size = sizeof(*ret_reply),
		.id = result->id,
		.bytes = result->bytes,
		.len = result->len,
	};
	return 0;
}

int ck_turn_status(struct ck_turn *turn, struct ck_status *ret_status)
{
	if (!turn || !ret_status || ret_status->size < CK_STATUS_SIZE_0_1)
		return -CK_EINVAL;
	if (ck_cache_in_child(turn->cache))
		return -CK_EFORK;
	const struct ck_shared_status *status =
		decided(turn) && turn->is == CK_TURN_REQUEST ? turn->m.decision.status : NULL;
	if (!status)
		return -CK_ESTATE;
	*ret_status = (struct ck_status){ .size = sizeof(*ret_status),
					  .grpc = status->grpc,
					  .message = status->message,
					  .details = status->details,
					  .details_len = status->details_len };
	return 0;
}

const struct ck_error *ck_turn_error(struct ck_turn *turn)
{
	static const struct ck_error none;
	if (!turn || ck_cache_in_child(turn->cache))
		return NULL;
	return decided(turn) ? ck_turn_why(turn) : &none;
}

int ck_turn_answered(struct ck_turn *turn, enum ck_delivery delivery)
{
	if (!turn || (delivery != CK_DELIVERED && delivery != CK_LOST))
		return -CK_EINVAL;
	int r = ck_round_enter(turn->cache, NULL);
	if (r < 0)
		return r;
	if (turn->is == CK_TURN_REQUEST)
		ck_machine_answer_reported(turn->cache->machine, &turn->m,
					   delivery == CK_DELIVERED);
	return left(turn->cache, 0);
}

void ck_turn_free(struct ck_turn *turn)
{
	if (turn && !ck_cache_in_child(turn->cache))
		ck_turn_free_impl(turn);
}

/* The answer of a turn that is decided; without one, of what its beginning returned. */
static void answer_with(struct ck_turn *turn, int r, ck_answer_cb *answer, void *userdata,
			struct ck_error *why)
{
	struct ck_reply reply = { .size = sizeof(reply) };
	struct ck_status status = { .size = sizeof(status) };
	if (r == CK_HAND_BACK && ck_turn_reply(turn, &reply) == 0) {
		bool sent = answer(&reply, NULL, userdata) == CK_DELIVERED;
		ck_turn_answered(turn, sent ? CK_DELIVERED : CK_LOST);
		return;
	}
	const struct ck_error *error = r > 0 ? ck_turn_error(turn) : NULL;
	if (error)
		*why = *error;
	if (r != -CK_EFAILED || ck_turn_status(turn, &status) < 0) {
		status.grpc = ck_error_grpc(why);
		status.message = why->text;
	}
	answer(NULL, &status, userdata);
}

int ck_create(struct ck_cache *cache, const struct ck_request *request, ck_create_cb *create,
	      ck_answer_cb *answer, void *userdata, struct ck_error *err)
{
	struct ck_turn *turn = NULL;
	struct ck_error why = { 0 };
	if (!create || !answer)
		return bad(err, "no function that creates, or none that answers");
	int r = ck_turn_begin(cache, request, &turn, &why);
	while (r == CK_CREATE || r == CK_WAIT) {
		if (r == CK_CREATE) {
			create(turn, userdata);
			ck_turn_lost(turn, NULL); /* if it has not said how that ended */
		}
		r = ck_turn_wait(turn, &why);
	}
	if (r != -CK_EFORK) /* the parent answers */
		answer_with(turn, r, answer, userdata, &why);
	if (r != CK_HAND_BACK && err)
		*err = why;
	ck_turn_free(turn);
	return r;
}

/* ---- what the host sees pass by -------------------------------------------------------------- */

static int enter_about(struct ck_cache *cache, enum ck_kind kind, const char *id)
{
	if (!cache || !kind_ok(kind) || !id_ok(id))
		return -CK_EINVAL;
	return ck_round_enter(cache, NULL);
}

/* ck_sandbox_stopping(3) */
#define OBJECT_CODES \
	(CODE(CLOSED) | CODE(DEADLK) | CODE(FORK) | CODE(INVAL) | CODE(NOMEM) | CODE(NOTFOUND))

int ck_sandbox_stopping(struct ck_cache *cache, const char *sandbox_id)
{
	int r = enter_about(cache, CK_SANDBOX, sandbox_id);
	if (r >= 0)
		r = left(cache, ck_machine_stopping(cache->machine, sandbox_id));
	return documented(r, OBJECT_CODES);
}

int ck_object_removed(struct ck_cache *cache, enum ck_kind kind, const char *id)
{
	int r = enter_about(cache, kind, id);
	if (r >= 0)
		r = left(cache, ck_machine_forget(cache->machine, kind, id));
	return documented(r, OBJECT_CODES);
}

int ck_object_seen(struct ck_cache *cache, enum ck_kind kind, const char *id,
		   enum ck_condition condition)
{
	int r = enter_about(cache, kind, id);
	if (r >= 0)
		r = left(cache, ck_machine_seen(cache->machine, kind, id, condition));
	return documented(r, OBJECT_CODES);
}

int ck_object_used(struct ck_cache *cache, enum ck_kind kind, const char *id)
{
	int r = enter_about(cache, kind, id);
	if (r >= 0)
		r = left(cache, ck_machine_used(cache->machine, kind, id));
	return documented(r, OBJECT_CODES);
}

int ck_container_starting(struct ck_cache *cache, const char *container_id)
{
	int r = enter_about(cache, CK_CONTAINER, container_id);
	if (r >= 0)
		r = left(cache, ck_machine_starting(cache->machine, container_id));
	return documented(r, OBJECT_CODES);
}

int ck_remove_begin(struct ck_cache *cache, enum ck_kind kind, const char *id, uint64_t timeout,
		    struct ck_turn **ret_turn, struct ck_error *err)
{
	if (!cache || !kind_ok(kind) || !id_ok(id) || !ret_turn)
		return bad(err, "no cache, kind, id or ret_turn");
	if (ck_cache_in_child(cache))
		return forked(err);
	if (timeout > CK_DURATION_MAX)
		timeout = CK_DURATION_MAX;
	return documented(ck_remove_begin_impl(cache, kind, id, timeout, ret_turn, err),
			  OBJECT_CODES);
}

/* ---- views and snapshots --------------------------------------------------------------------- */

int ck_view_begin(struct ck_cache *cache, struct ck_view **ret_view, struct ck_error *err)
{
	if (!cache || !ret_view)
		return bad(err, "no cache or ret_view");
	return ck_cache_in_child(cache) ? forked(err)
			       : documented(ck_view_begin_impl(cache, ret_view, err),
					    CODE(CLOSED) | CODE(DEADLK) | CODE(FORK) | CODE(INVAL) |
						    CODE(NOMEM));
}

int ck_view_hides(struct ck_view *view, const struct ck_object *object)
{
	if (!view || !object || object->size < CK_OBJECT_SIZE_0_1 || !kind_ok(object->kind) ||
	    !object->id)
		return -CK_EINVAL;
	return ck_cache_in_child(view->cache) ? -CK_EFORK : ck_view_hides_impl(view, object);
}

int ck_view_resolve(struct ck_view *view, enum ck_kind kind, const char *prefix,
		    const char **ret_id)
{
	if (!view || !kind_ok(kind) || !prefix || !ret_id)
		return -CK_EINVAL;
	return ck_view_resolve_impl(view, kind, prefix, ret_id);
}

static const struct ck_object *nth(const struct ck_object *objects, size_t stride, size_t i)
{
	return (const struct ck_object *)(const void *)((const char *)objects + i * stride);
}

int ck_view_listed(struct ck_view *view, enum ck_kind kind, const struct ck_object *objects,
		   size_t n)
{
	if (!view || !kind_ok(kind) || (!objects && n))
		return -CK_EINVAL;
	size_t stride = n ? objects[0].size : 0;
	for (size_t i = 0; i < n; i++) {
		const struct ck_object *o = nth(objects, stride, i);
		if (o->size < CK_OBJECT_SIZE_0_1 || o->size != stride ||
		    stride % _Alignof(struct ck_object))
			return -CK_EINVAL;
		if (!kind_ok(o->kind) || !id_ok(o->id))
			return -CK_EINVAL;
	}
	CK_AUTO_FREE struct ck_object *narrow = NULL;
	if (n && stride != sizeof(*objects)) { /* a newer host's objects are longer than ours */
		narrow = ck_alloc(n * sizeof(*narrow));
		if (!narrow)
			return -CK_ENOMEM;
		for (size_t i = 0; i < n; i++)
			narrow[i] = *nth(objects, stride, i);
		objects = narrow;
	}
	int r = ck_round_enter(view->cache, NULL);
	if (r < 0)
		return r;
	ck_machine_listed(view->cache->machine, kind, view->seq, true, objects, n);
	return left(view->cache, 0);
}

void ck_view_free(struct ck_view *view)
{
	if (view && !ck_cache_in_child(view->cache))
		ck_view_free_impl(view);
}

int ck_reconciled(struct ck_cache *cache)
{
	int r = cache ? ck_round_enter(cache, NULL) : -CK_EINVAL;
	return r < 0 ? r : left(cache, ck_machine_reconciled(cache->machine));
}

int ck_entries(struct ck_cache *cache, int (*fn)(const struct ck_entry_info *entry, void *userdata),
	       void *userdata)
{
	int r = cache && fn ? ck_round_enter(cache, NULL) : -CK_EINVAL;
	if (r < 0)
		return r;
	for (const struct ck_entry *e = ck_machine_entries(cache->machine); e && !r;
	     e = e->by_row.next) {
		const struct ck_row *row = &e->row;
		if (row->state == CK_STATE_GONE || e->detached)
			continue;
		const struct ck_entry_info info = {
			.size = sizeof(info),
			.entry = row->id,
			.kind = row->key->kind,
			.state = row->state,
			.id = row->result ? row->result->id : "",
			.pod_name = row->key->pod_name,
			.pod_namespace = row->key->pod_namespace,
			.pod_uid = row->key->pod_uid,
			.sandbox_id = row->key->sandbox_id,
			.container_name = row->key->container,
			.attempt = row->key->attempt,
			.lost = row->state == CK_STATE_UNKNOWN,
			.told = !!(row->flags & CK_ENTRY_TOLD),
			.ended = row->state == CK_STATE_ENDED,
			.requests = row->requests,
			.stage = row->stage,
			.why = ck_reason_text(row->reason),
			.tries = row->tries,
			.last_grpc = row->last_grpc,
			.created = row->created,
			.changed = row->changed,
		};
		r = fn(&info, userdata);
	}
	return left(cache, r);
}

int ck_snapshot(struct ck_cache *cache, int (*fn)(const struct ck_told *entry, void *userdata),
		void *userdata)
{
	int r = cache && fn ? ck_round_enter(cache, NULL) : -CK_EINVAL;
	if (r < 0)
		return r;
	for (const struct ck_entry *e = ck_machine_entries(cache->machine); e && !r;
	     e = e->by_row.next) {
		struct ck_told told;
		if (e->detached || !ck_machine_told(e))
			continue;
		ck_told_fill(&told, e);
		r = fn(&told, userdata);
	}
	return left(cache, r);
}
