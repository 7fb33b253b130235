/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: feed the machine, write once, settle, answer. Opening and closing. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "cache/hidden-set.h"
#include "src/base/limits.h"

uint64_t ck_cache_now(const struct ck_cache *cache)
{
	struct timespec ts;
	if (cache->clock)
		return cache->clock(cache->clock_userdata);
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * CK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* ---- log lines wait for the crank: a host's log function must not be called from inside a round  */

void ck_cache_log(struct ck_cache *cache, enum ck_log_level level, const char *fmt, ...)
{
	if (!cache->host.log)
		return;
	pthread_mutex_lock(&cache->lock);
	if (cache->log_n == CK_LOG_LINES) {
		cache->log_lost++;
	} else {
		va_list ap;
		struct ck_log_line *line = &cache->log[cache->log_n++];
		line->level = level;
		va_start(ap, fmt);
		vsnprintf(line->text, sizeof(line->text), fmt, ap);
		va_end(ap);
		cache->pending = true;
	}
	pthread_mutex_unlock(&cache->lock);
}

static void log_history(struct ck_cache *cache, const struct ck_history_event *event)
{
	const struct ck_row *row = &event->entry->row;
	enum ck_log_level level = CK_LOG_INFO;
	char who[256];
	if (!cache->host.log)
		return;
	ck_key_print(row->key, who, sizeof(who));
	switch (event->what) {
	case CK_WHAT_MOVED:
		ck_cache_log(cache, CK_LOG_INFO, "%s: %s -> %s%s%s", who,
			     ck_state_name(event->from), ck_state_name(event->to),
			     row->reason ? ": " : "",
			     ck_reason_text(row->reason));
		return;
	case CK_WHAT_DUPLICATE:
	case CK_WHAT_IN_USE:
	case CK_WHAT_LOST:
	case CK_WHAT_RELABELLED:
	case CK_WHAT_DESTROY_FAILED:
	case CK_WHAT_RELEASED:
	case CK_WHAT_PLUGIN_ABSENT:
		level = CK_LOG_WARNING;
		break;
	case CK_WHAT_JOINED:
	case CK_WHAT_CALLER_GONE:
	case CK_WHAT_BEGUN:
	case CK_WHAT_TOLD:
	case CK_WHAT_STOP_TOLD:
	case CK_WHAT_REMOVE_TOLD:
		level = CK_LOG_DEBUG;
		break;
	default:
		break;
	}
	ck_cache_log(cache, level, "%s: %s%s%s%s%s", who, ck_what_text(event->what),
		     event->grpc ? ": " : "", event->grpc ? ck_grpc_name(event->grpc) : "",
		     event->detail[0] ? ": " : "", event->detail);
}

/* ---- writing a round ------------------------------------------------------------------------- */

static int write_entry(struct ck_store *store, const struct ck_entry *e, bool new_ones,
		       struct ck_error *err)
{
	bool unwanted = ck_machine_row_unwanted(e), is_new = !e->written;
	if (is_new != new_ones || (is_new && unwanted))
		return 0;
	return is_new     ? ck_store_insert(store, &e->row, err)
	       : unwanted ? ck_store_delete(store, e->row.id, err)
			  : ck_store_update(store, &e->row, err);
}

static int write_entries(struct ck_cache *cache, bool counters, struct ck_error *err)
{
	struct ck_store *store = cache->store;
	size_t n;
	int r = ck_store_begin(store, err);
	/* last: a row that goes or moves on frees its key for a new one */
	for (int new_ones = 0; new_ones <= 1; new_ones++) {
		for (struct ck_entry *e = ck_machine_dirty(cache->machine); e && r >= 0;
		     e = e->dirty_next) {
			snprintf(e->row.boot, sizeof(e->row.boot), "%s", cache->boot);
			r = write_entry(store, e, new_ones, err);
		}
	}
	const struct ck_history_event *history = ck_machine_history(cache->machine, &n);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = ck_store_note(store, &history[i].entry->row, history[i].what, history[i].from,
				  history[i].to, history[i].at, history[i].grpc,
				  history[i].detail[0] ? history[i].detail : NULL, err);
	if (counters && r >= 0)
		r = ck_store_counters(store, ck_machine_counters(cache->machine), err);
	if (r >= 0)
		r = ck_store_commit(store, err);
	else
		ck_store_rollback(store);
	return r;
}

/* the digests are in the database now; memory holds only the roots (K30) */
static void forget_digests(struct ck_cache *cache)
{
	for (struct ck_entry *e = ck_machine_dirty(cache->machine); e; e = e->dirty_next)
		ck_record_fini(&e->row.record);
}

/* what of the fingerprints can still be read goes along into the new file */
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

static void write_round(struct ck_cache *cache, uint64_t now)
{
	struct ck_error err = { 0 };
	size_t n;
	const struct ck_history_event *history = ck_machine_history(cache->machine, &n);
	/* once a second is enough for what people read */
	bool counters = uncounted(cache) && now >= cache->counters_at;
	if (!ck_machine_dirty(cache->machine) && !n && !cache->damaged && !counters) {
		ck_machine_settle(cache->machine, true, NULL);
		return;
	}
	for (size_t i = 0; i < n; i++)
		log_history(cache, &history[i]);
	if (cache->volatile_rounds && now < cache->retry_at &&
	    !cache->shut) { /* K32: retried each second, not each round; and at the end */
		ck_machine_settle(cache->machine, false, "the database cannot be written");
		return;
	}
	int r = cache->damaged ? ck_fail(&err, CK_EDAMAGED, "a fingerprint cannot be read")
			       : write_entries(cache, counters, &err);
	/* K33: what memory knows goes into a new file, now or as soon as there can be one */
	if (r == -CK_EDAMAGED) {
		char name[512] = "";
		ck_cache_log(cache, CK_LOG_ERROR, "the database is damaged: %s", err.text);
		cache->damaged = false;
		save_digests(cache);
		r = ck_store_set_aside(cache->store, name, &err);
		if (name[0]) {
			ck_cache_log(cache, CK_LOG_ERROR,
				     "the damaged database was set aside as %s", name);
			ck_machine_counters(cache->machine)->set_aside++;
		}
		ck_machine_all_dirty(cache->machine);
		if (r >= 0)
			r = write_entries(cache, true, &err);
	}
	if (r >= 0) {
		forget_digests(cache);
		if (counters) {
			cache->counted = *ck_machine_counters(cache->machine);
			cache->counters_at = now + CK_NS_PER_S;
		}
		if (cache->volatile_rounds)
			ck_cache_log(cache, CK_LOG_WARNING,
				     "the database can be written again; its history has a gap");
		cache->volatile_rounds = false;
	} else {
		if (!cache->volatile_rounds)
			ck_cache_log(cache, CK_LOG_ERROR,
				     "the database cannot be written, going on in memory: %s",
				     err.text);
		cache->volatile_rounds = true;
		cache->retry_at = now + CK_RETRY_WRITE;
	}
	ck_machine_settle(cache->machine, r >= 0, err.text);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void round_run(struct ck_cache *cache, struct ck_op *batch)
{
	struct ck_mturn *m;
	uint64_t now = ck_cache_now(cache);
	ck_machine_clock(cache->machine, now);
	for (struct ck_op *op = batch; op; op = op->next) {
		op->refused = cache->shut;
		if (!op->refused && op->run)
			op->run(cache, op);
	}
	write_round(cache, now);
	for (struct ck_op *op = batch; op; op = op->next)
		if (op->settled && !op->refused)
			op->settled(cache, op);
	pthread_mutex_lock(&cache->lock);
	while ((m = ck_machine_answered(cache->machine)))
		ck_turn_ready(cache, (struct ck_turn *)(void *)m, m->outcome);
	cache->due = ck_machine_due(cache->machine);
	if (cache->volatile_rounds && ck_machine_dirty(cache->machine) &&
	    cache->retry_at < cache->due)
		cache->due = cache->retry_at;
	if (!cache->volatile_rounds && uncounted(cache) && cache->counters_at < cache->due)
		cache->due = cache->counters_at;
	cache->pending = cache->pending || cache->callbacks || ck_machine_has_wants(cache->machine);
	pthread_mutex_unlock(&cache->lock);
}

bool ck_cache_in_round(const struct ck_cache *cache)
{
	return cache->busy && pthread_equal(cache->runner, pthread_self());
}

int ck_cache_do(struct ck_cache *cache, struct ck_op *op)
{
	op->done = op->refused = false;
	op->next = NULL;
	pthread_mutex_lock(&cache->lock);
	if (ck_cache_in_round(cache)) {
		pthread_mutex_unlock(&cache->lock);
		return -CK_EDEADLK;
	}
	if (cache->closed) {
		pthread_mutex_unlock(&cache->lock);
		return -CK_ECLOSED;
	}
	pthread_cond_init(&op->wake, NULL);
	cache->calls++;
	*cache->ops_end = op;
	cache->ops_end = &op->next;
	while (!op->done) {
		if (cache->busy) {
			pthread_cond_wait(&op->wake, &cache->lock);
			continue;
		}
		struct ck_op *batch = cache->ops;
		cache->ops = NULL;
		cache->ops_end = &cache->ops;
		cache->busy = true;
		cache->runner = pthread_self();
		pthread_mutex_unlock(&cache->lock);
		round_run(cache, batch);
		pthread_mutex_lock(&cache->lock);
		cache->busy = false;
		for (struct ck_op *next; batch; batch = next) {
			next = batch->next;
			/* its owner goes on when the lock is free, and takes it away */
			batch->done = true;
			if (batch != op)
				pthread_cond_signal(&batch->wake);
		}
		if (cache->ops) /* who came meanwhile: one of them runs the next round for all */
			pthread_cond_signal(&cache->ops->wake);
	}
	pthread_cond_destroy(&op->wake);
	cache->calls--;
	if (cache->closed)
		pthread_cond_broadcast(&cache->changed);
	ck_cache_wake(cache);
	pthread_mutex_unlock(&cache->lock);
	return op->refused ? -CK_ECLOSED : 0;
}

/* ---- what the machine asks us ---------------------------------------------------------------- */

static int op_record(void *user, const struct ck_fingerprint *fp, struct ck_record *ret_record)
{
	(void)user;
	return ck_record_make(fp, ret_record, NULL);
}

static enum ck_relation op_compare(void *user, struct ck_entry *e, const struct ck_fingerprint *fp,
				   struct ck_difference *ret)
{
	struct ck_cache *cache = user;
	struct ck_record *record = &e->row.record;
	enum ck_relation relation = ck_record_compare(record, fp, &cache->compare, ret);
	if (relation != CK_RELATION_NEEDS_DIGESTS)
		return relation;
	int r = ck_store_digests(cache->store, e->row.id, record, NULL);
	if (r == -CK_EDAMAGED)
		cache->damaged = true;
	if (r == -CK_EDAMAGED || r == -CK_ENOTFOUND)
		return CK_RELATION_NOT_COMPARABLE; /* gone with a damaged file */
	if (r < 0)
		/* cannot be read now: nothing is concluded from that */
		return CK_RELATION_NEEDS_DIGESTS;
	relation = ck_record_compare(record, fp, &cache->compare, ret);
	ck_record_fini(record);
	return relation;
}

static void op_set_image(void *user, struct ck_entry *e, const struct ck_fingerprint *fp)
{
	(void)user;
	ck_record_set_image_id(&e->row.record, fp);
}

void ck_told_fill(struct ck_told *told, const struct ck_entry *e)
{
	const struct ck_key *key = e->row.key;
	*told = (struct ck_told){
		.size = sizeof(*told),
		.entry = e->row.id,
		.kind = key->kind,
		.id = e->row.result ? e->row.result->id : "",
		.pod_name = key->pod_name,
		.pod_namespace = key->pod_namespace,
		.pod_uid = key->pod_uid,
		.sandbox_id = key->sandbox_id,
		.container_name = key->container,
		.attempt = key->attempt,
		.told = e->row.told ? e->row.told : "",
	};
}

static int op_choose(void *user, const struct ck_entry *e, char *names, size_t size)
{
	struct ck_cache *cache = user;
	struct ck_told told;
	ck_told_fill(&told, e);
	return cache->hooks.choose ? cache->hooks.choose(&told, names, size, cache->hooks.userdata)
				   : 0;
}

static void op_released(void *user, const struct ck_entry *e)
{
	struct ck_cache *cache = user;
	struct ck_told told;
	if (!cache->hooks.released)
		return;
	ck_told_fill(&told, e);
	told.gone = e->row.state == CK_STATE_GONE;
	cache->hooks.released(&told, cache->hooks.userdata);
}

static void op_committed(void *user, const struct ck_entry *e)
{
	struct ck_cache *cache = user;
	struct ck_told told;
	if (!cache->host.committed)
		return;
	ck_told_fill(&told, e);
	cache->host.committed(&told, cache->host.userdata);
}

static uint64_t op_jitter(void *user, uint64_t below)
{
	struct ck_cache *cache = user;
	cache->random =
		cache->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return below ? (cache->random >> 16) % below : 0;
}

static uint64_t op_next_id(void *user)
{
	struct ck_cache *cache = user;
	return ck_store_next_id(cache->store);
}

static const struct ck_machine_ops machine_ops = {
	.record = op_record,
	.compare = op_compare,
	.set_image = op_set_image,
	.choose = op_choose,
	.released = op_released,
	.committed = op_committed,
	.jitter = op_jitter,
	.next_id = op_next_id,
};

/* ---- open and close -------------------------------------------------------------------------- */

static int boot_id(char boot[37], struct ck_error *err)
{
	CK_AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, boot, 36);
	boot[n == 36 ? 36 : 0] = '\0';
	return n == 36 ? 0 : ck_fail(err, CK_EIO, "cannot read the boot id from /proc");
}

static int copy_patterns(struct ck_cache *cache, const char *const *patterns)
{
	size_t n = 0;
	if (!patterns)
		patterns = ck_ignore_annotations_default;
	while (patterns[n])
		n++;
	cache->patterns = ck_alloc((n + 1) * sizeof(char *));
	if (!cache->patterns)
		return -CK_ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!(cache->patterns[i] = ck_strdup(patterns[i])))
			return -CK_ENOMEM;
	cache->compare.ignore_annotations = (const char *const *)cache->patterns;
	return 0;
}

#define OR(value, fallback) ((value) ? (value) : (fallback))

static int machine_make(struct ck_cache *cache, const struct ck_options *o)
{
	struct ck_rules rules = {
		.ttl = OR(o->ttl, CK_TTL),
		.create_deadline = OR(o->create_deadline, CK_CREATE_DEADLINE),
		.lost_grace = OR(o->lost_grace, CK_LOST_GRACE),
		.supersede_wait = OR(o->supersede_wait, CK_SUPERSEDE_WAIT),
		.destroy_timeout = OR(o->destroy_timeout, CK_DESTROY_TIMEOUT),
		.hand_back = o->hand_back,
		.on_annotation_change = o->on_annotation_change,
		.can_inspect = cache->host.inspect,
		.can_list = cache->host.list,
		.can_resolve = cache->host.resolve_image,
		.hooks = cache->has_hooks,
	};
	ck_hidden_set_unref(CK_TAKE(cache->hidden)); /* another machine counts its moves anew */
	ck_machine_free(cache->machine);
	cache->machine = NULL;
	return ck_machine_new(&rules, &machine_ops, cache, ck_cache_now(cache), &cache->machine);
}

static int restore_row(struct ck_row *row, void *userdata)
{
	struct ck_cache *cache = userdata;
	return ck_machine_restore(cache->machine, row, !strcmp(row->boot, cache->boot));
}

/* K25; what cannot be read is set aside, and the host's lists tell what exists (K33) */
static int restore(struct ck_cache *cache, const struct ck_options *options, struct ck_error *err)
{
	struct ck_counters counters = { 0 };
	struct ck_error why = { 0 };
	char name[512] = "";
	int r = ck_store_load(cache->store, restore_row, cache, &why);
	if (r >= 0)
		r = ck_store_load_counters(cache->store, &counters, &why);
	if (r == -CK_EDAMAGED) {
		ck_store_set_aside(cache->store, name,
				   NULL); /* where that is not possible either, memory must do for now (K32) */
		ck_cache_log(cache, CK_LOG_ERROR, "the database is damaged%s%s: %s",
			     name[0] ? " and was set aside as " : "", name, why.text);
		counters = (struct ck_counters){ .set_aside = name[0] != '\0' };
		r = machine_make(cache, options) < 0 ? ck_nomem(&why) : 0;
	}
	if (r < 0 && err)
		*err = why;
	if (r >= 0) {
		struct ck_counters *now = ck_machine_counters(cache->machine);
#define ADD(counter, text) now->counter += counters.counter;
		CK_COUNTERS(ADD)
#undef ADD
	}
	return r;
}

bool ck_cache_in_child(const struct ck_cache *cache)
{
	return ck_host_process_left(&cache->home);
}

int ck_cache_open_impl(const struct ck_options *options, struct ck_cache **ret_cache,
		       struct ck_error *err)
{
	const char *dir = options->state_dir ? options->state_dir : "/run/crikeep";
	struct ck_store_opened opened = { 0 };
	struct ck_cache *cache = CK_NEW(struct ck_cache);
	if (!cache)
		return ck_nomem(err);
	cache->refs = 1;
	ck_host_process_mark(&cache->home);
	cache->epoll_fd = cache->event_fd = cache->timer_fd = -1;
	cache->host = *options->host;
	cache->has_hooks = options->hooks;
	if (options->hooks)
		cache->hooks = *options->hooks;
	cache->clock = options->clock;
	cache->clock_userdata = options->clock_userdata;
	cache->compare.mode = options->mode;
	cache->compare.on_annotation_change = options->on_annotation_change;
	cache->compare.compare_sandbox_config = options->compare_sandbox_config;
	cache->ops_end = &cache->ops;
	cache->due = cache->armed = CK_NEVER_DUE;
	pthread_mutex_init(&cache->lock, NULL);
	pthread_cond_init(&cache->changed, NULL);
	if (sodium_init() < 0) {
		ck_cache_unref(cache);
		return ck_fail(err, CK_EIO, "libsodium finds no source of randomness");
	}
	randombytes_buf(&cache->random, sizeof(cache->random));
	cache->log = ck_alloc(CK_LOG_LINES * sizeof(*cache->log));
	int r = cache->log && copy_patterns(cache, options->ignore_annotations) == 0
			? 0
			: ck_nomem(err);
	if (r >= 0)
		r = boot_id(cache->boot, err);
	if (r >= 0)
		r = ck_store_open(dir, &cache->store, &opened, err);
	if (r >= 0 && opened.set_aside)
		ck_cache_log(cache, CK_LOG_ERROR, "the damaged database was set aside as %s: %s",
			     opened.set_aside_as, opened.why.text);
	if (r >= 0 && opened.no_database)
		ck_cache_log(cache, CK_LOG_ERROR, "there is no database, going on in memory: %s",
			     opened.why.text);
	if (r >= 0 && machine_make(cache, options) < 0)
		r = ck_nomem(err);
	if (r >= 0) {
		cache->key = *ck_store_key(cache->store);
		r = restore(cache, options, err); /* also from a database that can only be read */
	}
	if (r >= 0)
		ck_machine_counters(cache->machine)->set_aside += opened.set_aside;
	if (r >= 0)
		r = ck_event_loop_open(cache, dir, err);
	if (r >= 0) { /* what the restart itself changed is written before anything else happens */
		struct ck_op op = { .run = NULL };
		r = ck_cache_do(cache, &op);
	}
	if (r < 0) {
		ck_cache_unref(cache);
		return ck_context(err, r, "open the cache '%.200s'", dir);
	}
	*ret_cache = cache;
	return 0;
}

static void run_close(struct ck_cache *cache, struct ck_op *op)
{
	(void)op;
	cache->shut = true;
	cache->counters_at = 0; /* the last round writes them */
	for (struct ck_turn *turn = cache->turns, *next; turn; turn = next) {
		next = turn->next;
		if (turn->resolving)
			ck_job_forget_turn(turn->resolving);
		enum ck_turn_state state = turn->m.state;
		/* what it was given stays with it, and may be read meanwhile */
		ck_machine_part(cache->machine, &turn->m);
		turn->prev = turn->next = NULL;
		pthread_mutex_lock(&cache->lock);
		turn->closed = true;
		if (state != CK_TURN_DECIDED) {
			ck_fail(&turn->m.err, CK_ECLOSED, "the cache is closing");
			turn->is_ready = true;
			turn->outcome = -CK_ECLOSED;
		}
		pthread_cond_broadcast(&turn->decided);
		pthread_mutex_unlock(&cache->lock);
	}
	cache->turns = NULL;
}

int ck_cache_close_impl(struct ck_cache *cache, struct ck_error *err)
{
	pthread_mutex_lock(&cache->lock);
	if (ck_cache_in_round(cache) ||
	    (cache->processing && pthread_equal(cache->process_thread, pthread_self()))) {
		pthread_mutex_unlock(&cache->lock);
		return ck_fail(err, CK_EDEADLK, "the cache cannot be closed from a callback");
	}
	pthread_mutex_unlock(&cache->lock);
	ck_event_loop_close(cache);
	struct ck_op op = { .run = run_close };
	int r = ck_cache_do(cache, &op);
	if (r < 0)
		return ck_fail(err, -r, "the cache is closed already");
	pthread_mutex_lock(&cache->lock);
	cache->closed = true;
	while (cache->calls || cache->ops)
		pthread_cond_wait(&cache->changed, &cache->lock);
	cache->callbacks = cache->callbacks_last = NULL;
	pthread_mutex_unlock(&cache->lock);
	if (cache->host.log) /* nobody turns the crank any more */
		for (unsigned i = 0; i < cache->log_n; i++)
			cache->host.log(cache->log[i].level, cache->log[i].text,
					cache->host.userdata);
	cache->log_n = 0;
	ck_machine_free(cache->machine);
	cache->machine = NULL;
	ck_store_close(cache->store);
	cache->store = NULL;
	ck_cache_unref(cache);
	return 0;
}

struct ck_cache *ck_cache_ref(struct ck_cache *cache)
{
	__atomic_add_fetch(&cache->refs, 1, __ATOMIC_RELAXED);
	return cache;
}

void ck_cache_unref(struct ck_cache *cache)
{
	if (!cache || __atomic_sub_fetch(&cache->refs, 1, __ATOMIC_ACQ_REL))
		return;
	ck_event_loop_close(cache);
	ck_hidden_set_unref(cache->hidden);
	ck_machine_free(cache->machine);
	if (cache->store)
		ck_store_close(cache->store);
	for (char **p = cache->patterns; p && *p; p++)
		free(*p);
	free(cache->patterns);
	free(cache->log);
	ck_host_process_fini(&cache->home);
	pthread_cond_destroy(&cache->changed);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}
