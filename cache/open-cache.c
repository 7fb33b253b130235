/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a cache. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <sodium.h>
#include <utlist.h>

#include "cache/hidden-set.h"
#include "src/base/limits.h"

/* ---- opening --------------------------------------------------------------------------------- */

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
		.is_runtime = o->is_runtime,
	};
	ck_hidden_set_unref(CK_TAKE(cache->hidden)); /* a new machine counts its moves from 0 */
	ck_machine_free(cache->machine);
	cache->machine = NULL;
	return ck_machine_new(&rules, &ck_machine_ops, cache, ck_cache_now(cache), &cache->machine);
}

struct restoring {
	struct ck_cache *cache;
	struct ck_error *err;
	size_t other_key; /* rows whose requests cannot be compared (K31) */
};

static int restore_row(struct ck_row *row, void *userdata)
{
	struct restoring *restoring = userdata;
	const struct ck_cache *cache = restoring->cache;
	bool compared = ck_state_open(row->state) || row->state == CK_STATE_COMMITTED;
	bool other_key = row->record.form && compared &&
			 memcmp(row->record.key_id, cache->key.id, sizeof(cache->key.id));
	restoring->other_key += other_key;
	uint64_t id = row->id;
	int r = ck_machine_restore(cache->machine, row, !strcmp(row->boot, cache->boot), other_key);
	return r != -CK_EDAMAGED ? r
				 : ck_fail(restoring->err, CK_EDAMAGED,
					   "entry %llu has the key of another one",
					   (unsigned long long)id);
}

/* What an earlier life left (K25). A damaged database is set aside; then the host's lists tell what
 * exists (K33). */
static int restore(struct ck_cache *cache, const struct ck_options *options, struct ck_error *err)
{
	struct ck_counters counters;
	struct ck_error why = { 0 };
	char name[512] = "";
	struct restoring restoring = { .cache = cache, .err = &why };
	int r = ck_store_load(cache->store, restore_row, &restoring, &why);
	if (r >= 0)
		r = ck_store_load_counters(cache->store, &cache->counted, &why);
	counters = cache->counted;
	if (r == -CK_EDAMAGED) {
		/* if that fails too, memory must do for now (K32) */
		ck_store_set_aside(cache->store, name, NULL);
		ck_cache_log(cache, CK_LOG_ERROR, "the database is damaged%s%s: %s",
			     name[0] ? " and was set aside as " : "", name, why.text);
		counters = (struct ck_counters){ .set_aside = { name[0] != '\0' } };
		r = machine_make(cache, options) < 0 ? ck_nomem(&why) : 0;
	}
	else if (restoring.other_key)
		ck_cache_log(cache, CK_LOG_WARNING,
			     "%zu result%s made under another digest key; when asked for, what is "
			     "not committed is evicted",
			     restoring.other_key, restoring.other_key == 1 ? " was" : "s were");
	if (r < 0 && err)
		*err = why;
	if (r >= 0) {
		struct ck_counters *now = ck_machine_counters(cache->machine);
#define ADD(counter, kinds, text) \
	for (int kind = 0; kind <= CK_CONTAINER; kind++) \
		now->counter[kind] += counters.counter[kind];
		CK_COUNTERS(ADD)
#undef ADD
	}
	return r;
}

static struct ck_cache *cache_new(const struct ck_options *options)
{
	struct ck_cache *cache = CK_NEW(struct ck_cache);
	if (!cache)
		return NULL;
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
	cache->compare.compare_sandbox_config = options->compare_sandbox_config;
	cache->due = cache->armed = CK_NEVER_DUE;
	cache->log_level = CK_LOG_DEBUG;
	pthread_mutex_init(&cache->lock, NULL);
	pthread_cond_init(&cache->changed, NULL);
	return cache;
}

static int set_up(struct ck_cache *cache, const struct ck_options *options, const char *dir,
		  struct ck_error *err)
{
	struct ck_store_opened opened = { 0 };
	if (sodium_init() < 0)
		return ck_fail(err, CK_EIO, "libsodium finds no source of randomness");
	randombytes_buf(&cache->random, sizeof(cache->random));
	if (copy_patterns(cache, options->ignore_annotations) < 0)
		return ck_nomem(err);
	int r = boot_id(cache->boot, err);
	if (r >= 0)
		r = ck_store_open(dir, &cache->store, &opened, err);
	if (r < 0)
		return r;
	if (opened.mode_mended)
		ck_cache_log(cache, CK_LOG_WARNING,
			     "state directory '%s' had mode %04o; its owner may read it again", dir,
			     opened.mode);
	if (opened.key_made && !opened.fresh)
		ck_cache_log(cache, CK_LOG_WARNING,
			     "the digest key was missing or not valid, and was made anew");
	if (opened.set_aside)
		ck_cache_log(cache, CK_LOG_ERROR, "the damaged database was set aside as %s: %s",
			     opened.set_aside_as, opened.why.text);
	if (opened.no_database)
		ck_cache_log(cache, CK_LOG_ERROR, "there is no database, going on in memory: %s",
			     opened.why.text);
	if (machine_make(cache, options) < 0)
		return ck_nomem(err);
	cache->key = *ck_store_key(cache->store);
	r = restore(cache, options, err); /* also from a database that can only be read */
	if (r < 0)
		return r;
	ck_machine_counters(cache->machine)->set_aside[0] += opened.set_aside;
	r = ck_event_loop_open(cache, dir, err);
	if (r < 0)
		return r;
	/* what the restart itself changed is on disk before anything else happens */
	r = ck_round_enter(cache, err);
	if (r >= 0)
		ck_round_leave(cache);
	return r;
}

int ck_cache_open_impl(const struct ck_options *options, struct ck_cache **ret_cache,
		       struct ck_error *err)
{
	const char *dir = options->state_dir ? options->state_dir : "/run/crikeep";
	struct ck_cache *cache = cache_new(options);
	if (!cache)
		return ck_nomem(err);
	int r = set_up(cache, options, dir, err);
	if (r < 0) {
		ck_event_loop_close(cache);
		ck_cache_unref(cache);
		return ck_context(err, r, "open the cache '%.200s'", dir);
	}
	*ret_cache = cache;
	return 0;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* In the last round: turns stay, without a part in anything. What was decided stays, too: somebody
 * may be reading it. */
static void shut(struct ck_cache *cache)
{
	struct ck_turn *turn, *next;
	cache->shut = true;
	cache->counters_at = 0; /* this round writes the counters */
	DL_FOREACH_SAFE (cache->turns, turn, next) {
		if (turn->is == CK_TURN_REMOVAL) {
			ck_machine_remove_end(cache->machine, &turn->removal);
		} else {
			if (turn->resolving)
				ck_job_forget_turn(turn->resolving);
			ck_machine_part(cache->machine, &turn->m);
		}
		DL_DELETE(cache->turns, turn);
		pthread_mutex_lock(&cache->lock);
		if (turn->news == CK_NEWS_EXPECTED) {
			ck_turn_ready(turn, ck_turn_outcome(&turn->m));
		} else if (!ck_turn_is_decided(turn)) {
			ck_fail(ck_turn_why(turn), CK_ECLOSED, "the cache is closing");
			ck_turn_ready(turn, -CK_ECLOSED);
		}
		pthread_mutex_unlock(&cache->lock);
	}
}

int ck_cache_close_impl(struct ck_cache *cache, struct ck_error *err)
{
	pthread_mutex_lock(&cache->lock);
	bool inside = ck_cache_in_callback(cache);
	pthread_mutex_unlock(&cache->lock);
	if (inside)
		return ck_fail(err, CK_EDEADLK, "the cache cannot be closed from a callback");
	ck_event_loop_close(cache);
	int r = ck_round_enter(cache, NULL);
	if (r < 0)
		return ck_fail(err, -r, "the cache is closed already");
	shut(cache);
	ck_round_leave(cache);
	pthread_mutex_lock(&cache->lock);
	cache->closed = true;
	while (cache->calls)
		pthread_cond_wait(&cache->changed, &cache->lock);
	while (cache->callbacks)
		ck_turn_unqueue_callback(cache->callbacks);
	pthread_mutex_unlock(&cache->lock);
	ck_cache_log_write(cache); /* the event loop is gone */
	ck_machine_free(cache->machine);
	cache->machine = NULL;
	ck_store_close(cache->store);
	cache->store = NULL;
	ck_cache_unref(cache);
	return 0;
}
