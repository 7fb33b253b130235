/* SPDX-License-Identifier: Apache-2.0 */
/* Entering and leaving a round, and writing it; what a decided turn gets. cache.h has the rules. */
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>

#include <utlist.h>

#include "cache/hidden-set.h"
#include "src/base/clock.h"
#include "src/base/duration.h"
#include "src/base/limits.h"

/* ---- the cache itself ------------------------------------------------------------------------ */

uint64_t ck_cache_now(const struct ck_cache *cache)
{
	if (cache->clock)
		return cache->clock(cache->clock_userdata);
	return ck_clock_ns(CLOCK_BOOTTIME);
}

bool ck_cache_in_child(const struct ck_cache *cache)
{
	return ck_host_process_left(&cache->home);
}

struct ck_cache *ck_cache_ref(struct ck_cache *cache)
{
	__atomic_add_fetch(&cache->refs, 1, __ATOMIC_RELAXED);
	return cache;
}

void ck_cache_unref(struct ck_cache *cache)
{
	struct ck_log_line *line, *next;
	if (!cache || __atomic_sub_fetch(&cache->refs, 1, __ATOMIC_ACQ_REL))
		return;
	ck_hidden_set_unref(cache->hidden);
	ck_machine_free(cache->machine);
	ck_store_close(cache->store);
	for (char **p = cache->patterns; p && *p; p++)
		free(*p);
	free(cache->patterns);
	DL_FOREACH_SAFE (cache->log, line, next)
		free(line);
	ck_host_process_fini(&cache->home);
	pthread_cond_destroy(&cache->changed);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* The cheap questions come first: most rounds leave nothing new for the event loop. */
void ck_cache_wake(struct ck_cache *cache)
{
	if (cache->signalled || cache->event_fd < 0 ||
	    (cache->processing && pthread_equal(cache->process_thread, pthread_self())))
		return;
	if (!cache->pending && cache->due >= cache->armed)
		return;
	cache->signalled = true;
	eventfd_write(cache->event_fd, 1);
}

/* ---- writing a round ------------------------------------------------------------------------- */

static int write_entry(struct ck_cache *cache, struct ck_entry *e, struct ck_error *err)
{
	struct ck_store *store = cache->store;
	if (!e->has_row && e->detached)
		return 0;
	int r = !e->has_row   ? ck_store_insert(store, &e->row, err)
		: e->detached ? ck_store_delete(store, e->row.id, err)
			      : ck_store_update(store, &e->row, err);
	if (r != -CK_ECONFLICT) {
		if (r >= 0 && e->saved == CK_REFUSED)
			e->saved = CK_UNSAVED;
		return r;
	}
	/* a row that breaks a constraint stays in memory, and stops no other row */
	char who[256];
	if (e->saved != CK_REFUSED) {
		cache->refused_at = ck_cache_now(cache);
		ck_cache_log(cache, CK_LOG_ERROR,
			     "%s: the database refuses its row, it stays in memory: %s",
			     ck_key_print(e->row.key, who, sizeof(who)), err->text);
	}
	e->saved = CK_REFUSED;
	return 0;
}

static int write_entries(struct ck_cache *cache, bool counters, struct ck_error *err)
{
	struct ck_store *store = cache->store;
	size_t n;
	int r = ck_store_begin(store, err);
	for (struct ck_entry *e = ck_machine_dirty(cache->machine); e && r >= 0;
	     e = e->dirty_next) {
		snprintf(e->row.boot, sizeof(e->row.boot), "%s", cache->boot);
		r = write_entry(cache, e, err);
	}
	const struct ck_history_event *history = ck_machine_history(cache->machine, &n);
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct ck_row then = history[i].entry->row; /* borrows what it holds */
		then.reason = history[i].reason;
		r = ck_store_note(store, &then, history[i].what, history[i].from, history[i].to,
				  history[i].at, history[i].grpc,
				  history[i].detail[0] ? history[i].detail : NULL, err);
		if (r == -CK_ECONFLICT)
			r = 0; /* a line that cannot be written is missing */
	}
	if (counters && r >= 0)
		r = ck_store_counters(store, ck_machine_counters(cache->machine), err);
	if (r >= 0)
		r = ck_store_commit(store, err);
	else
		ck_store_rollback(store);
	return r;
}

/* Memory holds what is needed to answer (K30): the roots. The digests are in the database now. */
static void forget_digests(struct ck_cache *cache)
{
	for (struct ck_entry *e = ck_machine_dirty(cache->machine); e; e = e->dirty_next)
		if (e->saved != CK_REFUSED)
			ck_record_fini(&e->row.record);
}

/* The digests that can still be read go into the new file. */
static void save_digests(struct ck_cache *cache)
{
	for (struct ck_entry *e = ck_machine_entries(cache->machine); e; e = e->by_row.next)
		if (e->row.record.form && !e->row.record.digests && !e->detached)
			ck_store_digests(cache->store, e->row.id, &e->row.record, NULL);
}

static bool uncounted(const struct ck_cache *cache)
{
	return memcmp(ck_machine_counters(cache->machine), &cache->counted, sizeof(cache->counted));
}

/* The database is damaged: memory goes into a new file, now, or as soon as there can be one
 * (K33). */
static int set_aside(struct ck_cache *cache, struct ck_error *err)
{
	char name[512] = "";
	ck_cache_log(cache, CK_LOG_ERROR, "the database is damaged: %s", err->text);
	cache->damaged = false;
	save_digests(cache);
	int r = ck_store_set_aside(cache->store, name, err);
	if (name[0]) {
		ck_cache_log(cache, CK_LOG_ERROR, "the damaged database was set aside as %s", name);
		ck_machine_counters(cache->machine)->set_aside[0]++;
	}
	ck_machine_all_dirty(cache->machine);
	return r < 0 ? r : write_entries(cache, true, err);
}

static void degraded(struct ck_cache *cache, bool is)
{
	if (cache->volatile_rounds != is)
		ck_store_set_degraded(cache->store, is);
	cache->volatile_rounds = is;
}

/* rows that the database refuses: with each round that writes, and after pauses that double */
static uint64_t next_try(const struct ck_cache *cache, uint64_t now)
{
	uint64_t pause = ck_duration_between(cache->refused_at, now);
	pause = pause < CK_RETRY_WRITE ? CK_RETRY_WRITE : pause;
	return now + (pause < CK_BACKOFF_MAX ? pause : CK_BACKOFF_MAX);
}

static void writing_worked(struct ck_cache *cache, bool counters)
{
	uint64_t now = ck_cache_now(cache);
	forget_digests(cache);
	if (counters) {
		cache->counted = *ck_machine_counters(cache->machine);
		cache->counters_wait = false;
		cache->counters_at = now + CK_NS_PER_S;
	}
	if (cache->volatile_rounds)
		ck_cache_log(cache, CK_LOG_WARNING,
			     "the database can be written again; its history has a gap");
	cache->retry_at = next_try(cache, now);
	degraded(cache, false);
	uint64_t wal;
	long pid;
	if (ck_store_pinned(cache->store, &wal, &pid))
		ck_cache_log(cache, CK_LOG_WARNING,
			     "the database's WAL has %llu MiB and cannot start anew: process %ld "
			     "reads the database",
			     (unsigned long long)(wal >> 20), pid);
}

static void writing_failed(struct ck_cache *cache, const struct ck_error *err)
{
	if (!cache->volatile_rounds)
		ck_cache_log(cache, CK_LOG_ERROR,
			     "the database cannot be written, going on in memory: %s", err->text);
	ck_machine_counters(cache->machine)->write_failures[0]++;
	cache->retry_at = ck_cache_now(cache) + CK_RETRY_WRITE;
	degraded(cache, true);
}

static bool try_to_write(struct ck_cache *cache, bool counters)
{
	struct ck_error err = { 0 };
	/* tried again each second, not in each round; and at the end (K32) */
	if (cache->volatile_rounds && ck_cache_now(cache) < cache->retry_at && !cache->shut)
		return false;
	int r = cache->damaged ? ck_fail(&err, CK_EDAMAGED, "a fingerprint cannot be read")
			       : write_entries(cache, counters, &err);
	if (r == -CK_EDAMAGED)
		r = set_aside(cache, &err);
	if (r < 0)
		writing_failed(cache, &err);
	else
		writing_worked(cache, counters);
	return r >= 0;
}

static bool has_rows(const struct ck_cache *cache)
{
	const struct ck_entry *e = ck_machine_dirty(cache->machine);
	while (e && e->saved == CK_REFUSED && !cache->shut && ck_cache_now(cache) < cache->retry_at)
		e = e->dirty_next;
	return e;
}

/* People read the counters: once a second is enough. Alone they are written by the event loop, a
 * second later, and no caller waits for that; or with the next rows. */
static bool counters_due(struct ck_cache *cache, bool rows)
{
	uint64_t now = ck_cache_now(cache);
	bool due = now >= cache->counters_at;
	if (!uncounted(cache) || !(due || cache->counters_wait))
		return false;
	if (rows || (due && cache->counters_wait) || cache->shut)
		return true;
	if (!cache->counters_wait)
		cache->counters_at = now + CK_NS_PER_S;
	cache->counters_wait = true;
	return false;
}

void ck_round_write(struct ck_cache *cache)
{
	bool on_disk = true;
	size_t n;
	const struct ck_history_event *history = ck_machine_history(cache->machine, &n);
	bool rows = has_rows(cache) || n || cache->damaged || cache->volatile_rounds;
	bool counters = counters_due(cache, rows);
	if (rows || counters)
		on_disk = try_to_write(cache, counters);
	/* what has happened, when it is on disk or known not to be */
	for (size_t i = 0; i < n; i++)
		ck_cache_log_event(cache, &history[i]);
	ck_machine_settle(cache->machine, on_disk);
}

/* ---- decided turns --------------------------------------------------------------------------- */

void ck_turn_queue_callback(struct ck_turn *turn)
{
	if (turn->queue_prev) /* it is in the list: the first one's is the last */
		return;
	DL_APPEND2(turn->cache->callbacks, turn, queue_prev, queue_next);
	turn->cache->pending = true;
}

void ck_turn_unqueue_callback(struct ck_turn *turn)
{
	if (!turn->queue_prev)
		return;
	DL_DELETE2(turn->cache->callbacks, turn, queue_prev, queue_next);
	turn->queue_prev = NULL;
}

void ck_turn_ready(struct ck_turn *turn, int outcome)
{
	turn->outcome = outcome;
	turn->news = turn->news == CK_NEWS_EXPECTED ? CK_NEWS_HEARD : CK_NEWS_READY;
	if (turn->waiting)
		pthread_cond_broadcast(&turn->decided);
	if (turn->cb && turn->news == CK_NEWS_READY)
		ck_turn_queue_callback(turn);
}

int ck_turn_fetch(struct ck_turn *turn)
{
	if (turn->news == CK_NEWS_OPEN || turn->news == CK_NEWS_EXPECTED)
		return CK_WAIT;
	ck_turn_unqueue_callback(turn);
	turn->begun = turn->begun || turn->outcome == CK_CREATE;
	turn->news = turn->outcome == CK_CREATE ? CK_NEWS_OPEN : CK_NEWS_HEARD;
	return turn->outcome;
}

bool ck_turn_is_decided(const struct ck_turn *turn)
{
	return turn->news == CK_NEWS_HEARD ||
	       (turn->news == CK_NEWS_READY && turn->outcome != CK_CREATE);
}

struct ck_error *ck_turn_why(struct ck_turn *turn)
{
	return turn->is == CK_TURN_REQUEST ? &turn->m.decision.err : &turn->removal.err;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

bool ck_cache_in_round(const struct ck_cache *cache)
{
	return cache->owned && pthread_equal(cache->owner, pthread_self());
}

bool ck_cache_in_callback(const struct ck_cache *cache)
{
	return ck_cache_in_round(cache) ||
	       (cache->processing && pthread_equal(cache->process_thread, pthread_self()));
}

/* Write the round; then its turns have their outcomes. Still inside of it, with the lock held. */
static void end_round(struct ck_cache *cache)
{
	struct ck_mturn *m;
	struct ck_removal *removal;
	pthread_mutex_unlock(&cache->lock);
	ck_round_write(cache);
	pthread_mutex_lock(&cache->lock);
	while ((m = ck_machine_answered(cache->machine)))
		ck_turn_ready(CK_OWNER_OF(m, struct ck_turn, m), ck_turn_outcome(m));
	while ((removal = ck_machine_removed(cache->machine)))
		ck_turn_ready(CK_OWNER_OF(removal, struct ck_turn, removal), removal->outcome);
	cache->due = ck_machine_due(cache->machine);
	/* a row that is still dirty could not be written, or the database refuses it */
	if ((cache->volatile_rounds || ck_machine_dirty(cache->machine)) &&
	    cache->retry_at < cache->due)
		cache->due = cache->retry_at;
	if (!cache->volatile_rounds && uncounted(cache) && cache->counters_at < cache->due)
		cache->due = cache->counters_at;
	cache->pending = cache->pending || cache->callbacks || ck_machine_has_wants(cache->machine);
}

/* Lock held, by the owner; free while it runs. */
static void run_inside(struct ck_cache *cache, struct ck_round_call *call)
{
	pthread_mutex_unlock(&cache->lock);
	call->shut = cache->shut;
	if (!call->shut) {
		ck_machine_clock(cache->machine, ck_cache_now(cache));
		call->run(call->of);
	}
	pthread_mutex_lock(&cache->lock);
}

/* Run what waits, up to @end or to a thread that goes on inside. */
static void run_waiting(struct ck_cache *cache, const struct ck_round_call *end)
{
	struct ck_round_call *next;
	while ((next = cache->entering) && next != end && next->run) {
		DL_DELETE(cache->entering, next);
		run_inside(cache, next);
		DL_APPEND(cache->inside, next);
	}
}

static struct ck_round_call *first_thread(struct ck_cache *cache)
{
	struct ck_round_call *call = cache->entering;
	while (call && call->after)
		call = call->next;
	return call;
}

/* Lock not held: whoever is woken needs it. */
static void wake_all(struct ck_round_call *call)
{
	for (struct ck_round_call *next; call; call = next) {
		next = call->next; /* @call may be gone afterwards */
		if (call->after)
			call->after(call->of);
		else
			sem_post(&call->woken);
	}
}

static void sleep_until_woken(struct ck_round_call *call)
{
	while (sem_wait(&call->woken) < 0)
		; /* a signal */
}

/* The lock is held, and free afterwards. Others follow within this round, or it ends; then a thread
 * that came meanwhile has the next one. @me is woken when this one is over. */
static void leave(struct ck_cache *cache, struct ck_round_call *me)
{
	struct ck_round_call *over = NULL, *call, *next;
	DL_APPEND(cache->inside, me);
	do {
		run_waiting(cache, NULL);
		if (!cache->entering) {
			end_round(cache);
			DL_CONCAT(over, cache->inside);
			cache->inside = NULL;
		}
		next = first_thread(cache);
	} while (!next && cache->entering); /* what was posted while it was written */
	cache->owned = next;
	if (next) {
		cache->owner = next->thread;
		next->owns = true;
	}
	DL_FOREACH (over, call)
		cache->calls--;
	if (cache->closed)
		pthread_cond_broadcast(&cache->changed);
	ck_cache_wake(cache);
	pthread_mutex_unlock(&cache->lock);
	wake_all(over);
	if (next)
		sem_post(&next->woken);
}

/* The lock is held on success. Return: 1: the round is this thread's; 0: @call waits in the
 * queue. */
static int ask(struct ck_cache *cache, struct ck_round_call *call, struct ck_error *err)
{
	if (ck_cache_in_child(cache))
		return ck_fail(err, CK_EFORK, "in a child of the process that opened the cache");
	pthread_mutex_lock(&cache->lock);
	if (ck_cache_in_round(cache)) {
		pthread_mutex_unlock(&cache->lock);
		return ck_fail(err, CK_EDEADLK, "not from inside a hook's choose or a snapshot");
	}
	if (cache->closed) {
		pthread_mutex_unlock(&cache->lock);
		return ck_fail(err, CK_ECLOSED, "the cache is closing");
	}
	cache->calls++;
	call->thread = pthread_self();
	if (cache->owned) {
		DL_APPEND(cache->entering, call);
		return 0;
	}
	cache->owned = true;
	cache->owner = call->thread;
	return 1;
}

/* Wait in the queue. True: the round is this thread's, and the lock is held; false: another thread
 * ran @me, and the round is over. */
static bool wait_to_enter(struct ck_cache *cache, struct ck_round_call *me)
{
	pthread_mutex_unlock(&cache->lock);
	sleep_until_woken(me);
	if (!me->owns)
		return false;
	pthread_mutex_lock(&cache->lock);
	run_waiting(cache, me); /* what was posted before */
	DL_DELETE(cache->entering, me);
	return true;
}

int ck_round_enter(struct ck_cache *cache, struct ck_error *err)
{
	struct ck_round_call me = { .run = NULL };
	sem_init(&me.woken, 0, 0);
	int r = ask(cache, &me, err);
	if (r == 0)
		wait_to_enter(cache, &me);
	sem_destroy(&me.woken);
	if (r < 0)
		return r;
	pthread_mutex_unlock(&cache->lock);
	if (cache->shut) {
		ck_round_leave(cache);
		return ck_fail(err, CK_ECLOSED, "the cache is closing");
	}
	ck_machine_clock(cache->machine, ck_cache_now(cache));
	return 0;
}

void ck_round_leave(struct ck_cache *cache)
{
	struct ck_round_call me = { .run = NULL };
	sem_init(&me.woken, 0, 0);
	pthread_mutex_lock(&cache->lock);
	leave(cache, &me);
	sleep_until_woken(&me);
	sem_destroy(&me.woken);
}

int ck_round_call(struct ck_cache *cache, void (*run)(void *of), void *of, struct ck_error *err)
{
	struct ck_round_call me = { .run = run, .of = of };
	sem_init(&me.woken, 0, 0);
	int r = ask(cache, &me, err);
	if (r == 1 || (r == 0 && wait_to_enter(cache, &me))) {
		run_inside(cache, &me);
		leave(cache, &me);
		sleep_until_woken(&me);
	}
	sem_destroy(&me.woken);
	return r < 0 ? r : me.shut ? ck_fail(err, CK_ECLOSED, "the cache is closing") : 0;
}

int ck_round_post(struct ck_cache *cache, struct ck_round_call *call)
{
	int r = ask(cache, call, NULL);
	if (r < 0)
		return r;
	if (r == 1) {
		run_inside(cache, call);
		leave(cache, call);
	} else {
		pthread_mutex_unlock(&cache->lock);
	}
	return 0;
}
