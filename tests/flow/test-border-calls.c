/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function may be called from where: all of both headers, from every callback of both. And
 * the sizes of structs: those of a newer host are longer, and none may be shorter.
 */
#include <string.h>

#include "tests/flow/nri-world.h"
#include "src/base/mem.h"

#define S CK_NS_PER_S

/* ---- each function of crikeep.h, from within ------------------------------------------------- */

enum where {
	DESTROY,
	INSPECT,
	LIST,
	RESOLVE,
	FIRE,
	CANCEL,
	DECIDED,
	CHOOSE,
	RELEASED,
	COMMITTED,
	SNAPSHOT,
	ENTRIES,
	WHERES
};

/* what it returns from a callback, and from inside the critical section, where nothing may wait */
#define IN_LOCK -CK_EDEADLK
#define CALLS(X) \
	X(begin, CK_CREATE, IN_LOCK) \
	X(stage, 0, IN_LOCK) \
	X(watch, 0, 0) \
	X(wait, -CK_EDEADLK, IN_LOCK) \
	X(reply, -CK_ESTATE, -CK_ESTATE) \
	X(status, -CK_ESTATE, -CK_ESTATE) \
	X(lost, 0, IN_LOCK) \
	X(fail, 0, IN_LOCK) \
	X(finish, CK_WAIT, IN_LOCK) \
	X(remove_begin, CK_DRAINED, IN_LOCK) \
	X(stopping, 0, IN_LOCK) \
	X(forget, -CK_ENOTFOUND, IN_LOCK) \
	X(seen, -CK_ENOTFOUND, IN_LOCK) \
	X(used, -CK_ENOTFOUND, IN_LOCK) \
	X(starting, -CK_ENOTFOUND, IN_LOCK) \
	X(view_begin, 0, IN_LOCK) \
	X(view_hides, 0, IN_LOCK) \
	X(view_resolve, 0, IN_LOCK) \
	X(view_listed, 0, IN_LOCK) \
	X(snapshot, 0, IN_LOCK) \
	X(entries, 0, IN_LOCK) \
	X(reconciled, 1, IN_LOCK) \
	X(run_thread, -CK_EDEADLK, IN_LOCK) \
	X(process, -CK_EDEADLK, IN_LOCK) \
	X(close, -CK_EDEADLK, IN_LOCK)

enum call {
#define CALL_ENUM(name, callback, locked) CALL_##name,
	CALLS(CALL_ENUM)
#undef CALL_ENUM
	CALLS_N
};

static struct {
	struct fixture *f;
	struct ck_host host; /* the fixture's; ours call these */
	struct ck_hooks hooks;
	enum where where;
	unsigned n;          /* how often all were called: once, at the first opportunity */
	bool armed;
	struct ck_turn *live[3]; /* these create something */
	struct ck_view *view;
	int got[CALLS_N];
} in;

static int no_told(const struct ck_told *told, void *userdata)
{
	(void)told, (void)userdata;
	return 0;
}

static int no_entry(const struct ck_entry_info *entry, void *userdata)
{
	(void)entry, (void)userdata;
	return 0;
}

static void call_each(enum where where)
{
	static const struct fx_ask ask = {
		.kind = CK_SANDBOX, .name = "within", .ns = "shop", .uid = "within"
	};
	const struct ck_result result = { .size = sizeof(result), .id = "x1" };
	const struct ck_object object = { .size = sizeof(object),
					  .kind = CK_SANDBOX,
					  .id = "nothing" };
	const struct ck_status failed = { .size = sizeof(failed), .grpc = 13 };
	struct ck_status status = { .size = sizeof(status) };
	struct ck_reply reply = { .size = sizeof(reply) };
	struct ck_cache *cache = in.f->cache;
	struct ck_turn *turn = NULL;
	struct ck_view *view = NULL;
	const char *id;
	int *got = in.got;
	if (!in.armed || in.where != where || in.n++)
		return;
	got[CALL_begin] = fx_begin(in.f, &ask, &turn);
	ck_turn_free(turn);
	got[CALL_stage] = ck_turn_stage(in.live[0], "from within");
	got[CALL_watch] = ck_turn_watch(in.live[0], NULL, NULL);
	got[CALL_wait] = ck_turn_wait(in.live[0], NULL);
	got[CALL_reply] = ck_turn_reply(in.live[0], &reply);
	got[CALL_status] = ck_turn_status(in.live[0], &status);
	got[CALL_lost] = ck_turn_lost(in.live[0], NULL);
	got[CALL_fail] = ck_turn_fail(in.live[1], &failed, NULL);
	got[CALL_finish] = ck_turn_finish(in.live[2], &result, NULL);
	ck_turn_leave(in.live[2]);
	got[CALL_remove_begin] = ck_remove_begin(cache, CK_SANDBOX, "none", 0, &turn, NULL);
	if (got[CALL_remove_begin] >= 0)
		ck_turn_free(turn);
	got[CALL_stopping] = ck_sandbox_stopping(cache, "none");
	got[CALL_forget] = ck_object_removed(cache, CK_SANDBOX, "nothing");
	got[CALL_seen] = ck_object_seen(cache, CK_SANDBOX, "nothing", CK_CONDITION_DEAD);
	got[CALL_used] = ck_object_used(cache, CK_SANDBOX, "nothing");
	got[CALL_starting] = ck_container_starting(cache, "nothing");
	got[CALL_view_begin] = ck_view_begin(cache, &view, NULL);
	ck_view_free(view);
	got[CALL_view_hides] = ck_view_hides(in.view, &object);
	got[CALL_view_resolve] = ck_view_resolve(in.view, CK_SANDBOX, "nothing", &id);
	got[CALL_view_listed] = ck_view_listed(in.view, CK_SANDBOX, NULL, 0);
	got[CALL_snapshot] = ck_snapshot(cache, no_told, NULL);
	got[CALL_entries] = ck_entries(cache, no_entry, NULL);
	got[CALL_reconciled] = ck_reconciled(cache);
	got[CALL_run_thread] = ck_cache_run_thread(cache, NULL);
	got[CALL_process] = ck_cache_process(cache, NULL);
	got[CALL_close] = ck_cache_close(cache, NULL);
}

static void destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	assert_string_equal(ck_job_entry(job)->id, id);
	call_each(DESTROY);
	in.host.destroy(job, kind, id, userdata);
}

static void inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	call_each(INSPECT);
	in.host.inspect(job, kind, id, userdata);
}

static void list(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	call_each(LIST);
	in.host.list(job, filter, userdata);
}

static void resolve(struct ck_job *job, const char *image, void *userdata)
{
	const struct ck_answer answer = { .size = sizeof(answer), .image_id = "sha256:0123" };
	(void)image, (void)userdata;
	call_each(RESOLVE);
	ck_job_done(job, &answer);
}

static void committed(const struct ck_told *entry, void *userdata)
{
	(void)entry, (void)userdata;
	call_each(COMMITTED);
}

static int choose(const struct ck_told *entry, char *names, size_t size, void *userdata)
{
	call_each(CHOOSE);
	return in.hooks.choose(entry, names, size, userdata);
}

static void fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *entry,
		 void *userdata)
{
	call_each(FIRE);
	in.hooks.fire(job, event, entry, userdata);
}

static void cancel(uint64_t entry, void *userdata)
{
	call_each(CANCEL);
	in.hooks.cancel(entry, userdata);
}

static void released(const struct ck_told *entry, void *userdata)
{
	call_each(RELEASED);
	in.hooks.released(entry, userdata);
}

static void decided(struct ck_turn *turn, int outcome, void *userdata)
{
	(void)turn;
	*(int *)userdata = outcome;
	call_each(DECIDED);
}

static int snapshot_fn(const struct ck_told *entry, void *userdata)
{
	(void)entry, (void)userdata;
	call_each(SNAPSHOT);
	return 0;
}

static int entries_fn(const struct ck_entry_info *entry, void *userdata)
{
	(void)entry, (void)userdata;
	call_each(ENTRIES);
	return 0;
}

static struct ck_turn *watched(struct ck_turn *turn, int *ret_outcome)
{
	*ret_outcome = 0;
	assert_int_equal(ck_turn_watch(turn, decided, ret_outcome), 0);
	return turn;
}

/* in this life each callback comes at least once */
static void story(struct fixture *f)
{
	struct fx_ask kept = fx_sandbox("kept"), app = fx_container("kept", "s1", "app"),
		      old = fx_sandbox("old"), lost = fx_sandbox("lost");
	struct ck_turn *turns[8];
	int outcomes[8], n = 0;
	fx_keep(f, &kept, "s1");
	fx_settle(f);
	/* inspected, chosen for, told, committed, decided */
	turns[n] = watched(fx_wait(f, &kept), &outcomes[n]);
	fx_settle(f);
	assert_int_equal(outcomes[n++], CK_HAND_BACK);
	fx_keep(f, &app, "c1");
	app.image = "registry/app@sha256:0123";
	turns[n] = watched(fx_wait(f, &app), &outcomes[n]); /* its image is resolved */
	fx_settle(f);
	assert_int_equal(outcomes[n++], CK_HAND_BACK);

	f->hold[FX_RUN] = true;
	turns[n] = fx_create(f, &old);
	assert_int_equal(fx_make(f, turns[n++], &old, "s2"), CK_WAIT);
	fx_settle(f);
	/* the kubelet moves on while plugins are told: cancelled, destroyed, released */
	old.attempt = 1;
	turns[n] = watched(fx_wait(f, &old), &outcomes[n]);
	fx_settle(f);
	fx_release(f, FX_RUN);
	fx_settle(f);
	assert_int_equal(outcomes[n++], CK_CREATE);
	assert_true(fx_was_destroyed(f, "s2"));

	turns[n] = fx_create(f, &lost);
	assert_int_equal(ck_turn_lost(turns[n++], NULL), 0);
	turns[n] = watched(fx_wait(f, &lost), &outcomes[n]); /* the host is asked what exists */
	n++;
	fx_settle(f);
	assert_int_equal(ck_snapshot(f->cache, snapshot_fn, NULL), 0);
	assert_int_equal(ck_entries(f->cache, entries_fn, NULL), 0);
	while (n--)
		ck_turn_free(turns[n]);
}

static void call_from(enum where where)
{
	static const char *const names[] = { "a", "b", "c" };
	static const char *const wheres[] = { "destroy",  "inspect",   "list",     "resolve_image",
					      "fire",     "cancel",    "a turn's", "choose",
					      "released", "committed", "snapshot", "entries" };
	static const struct {
		const char *name;
		int callback, locked;
	} calls[] = {
#define CALL_ENTRY(name, callback, locked) { #name, callback, locked },
		CALLS(CALL_ENTRY)
#undef CALL_ENTRY
	};
	struct fixture *f = fixture_new();
	memset(&in, 0, sizeof(in));
	in.f = f;
	in.where = where;
	fx_with_hooks(f, "10-cpu");
	in.host = f->host;
	in.hooks = f->hooks;
	f->host.destroy = destroy;
	f->host.inspect = inspect;
	f->host.list = list;
	f->host.resolve_image = resolve;
	f->host.committed = committed;
	f->hooks.choose = choose;
	f->hooks.fire = fire;
	f->hooks.cancel = cancel;
	f->hooks.released = released;
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	fx_settle(f);
	for (size_t i = 0; i < CK_COUNT(in.live); i++) {
		struct fx_ask ask = fx_sandbox(names[i]);
		ask.timeout = 0;
		in.live[i] = fx_create(f, &ask);
	}
	assert_int_equal(ck_view_begin(f->cache, &in.view, NULL), 0);
	in.armed = true;
	story(f);
	in.armed = false;
	if (in.n == 0)
		fail_msg("%s never came", wheres[where]);
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		int expected = where < CHOOSE ? calls[i].callback : calls[i].locked;
		if (in.got[i] != expected)
			fail_msg("from %s: %s returned %d, not %d", wheres[where], calls[i].name,
				 in.got[i], expected);
	}
	for (size_t i = 0; i < CK_COUNT(in.live); i++)
		ck_turn_free(in.live[i]);
	ck_view_free(in.view);
	fixture_free(f);
}

static void all_but_wait_process_and_close_may_be_called_from_every_callback(void **state)
{
	(void)state;
	for (int where = 0; where < CHOOSE; where++)
		call_from((enum where)where);
}

static void what_would_need_the_lock_is_refused_inside_it(void **state)
{
	(void)state;
	for (int where = CHOOSE; where < WHERES; where++)
		call_from((enum where)where);
}

/* ---- jobs that end after the cache is gone --------------------------------------------------- */

static struct ck_job *late[8];
static enum {
	LATE_NONE,
	LATE_LIST,
	LATE_DESTROY,
	LATE_INSPECT,
	LATE_RESOLVE,
	LATE_HOOK
} late_what[8];
static unsigned late_n;

static void hold_destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)kind, (void)id, (void)userdata;
	late_what[late_n] = LATE_DESTROY;
	late[late_n++] = job;
}

static void hold_inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)kind, (void)id, (void)userdata;
	late_what[late_n] = LATE_INSPECT;
	late[late_n++] = job;
}

static void hold_resolve(struct ck_job *job, const char *image, void *userdata)
{
	(void)image, (void)userdata;
	late_what[late_n] = LATE_RESOLVE;
	late[late_n++] = job;
}

static void list_or_hold(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	/* only by key: before a sandbox is destroyed, its containers are listed */
	if (!filter->pod_uid) {
		in.host.list(job, filter, userdata);
		return;
	}
	late_what[late_n] = LATE_LIST;
	late[late_n++] = job;
}

static void hold_fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *entry,
		      void *userdata)
{
	(void)event, (void)entry, (void)userdata;
	late_what[late_n] = LATE_HOOK;
	late[late_n++] = job;
}

static void jobs_of_every_kind_may_end_after_the_close(void **state)
{
	struct fixture *f = fixture_new();
	struct fx_ask a = fx_sandbox("a"), b = fx_sandbox("b"), c = fx_container("a", "s9", "app"),
		      d = fx_sandbox("d"), e = fx_sandbox("e");
	const struct ck_object object = { .size = sizeof(object), .kind = CK_SANDBOX, .id = "s1" };
	const struct ck_answer answer = { .size = sizeof(answer),
					  .condition = CK_CONDITION_READY,
					  .image_id = "sha256:0" };
	struct ck_turn *turns[8];
	unsigned kinds = 0, n = 0;
	(void)state;
	late_n = 0;
	in.host = f->host;
	fx_with_hooks(f, "10-cpu");
	f->host.inspect = hold_inspect;
	f->host.list = list_or_hold;
	f->host.resolve_image = hold_resolve;
	f->host.destroy = hold_destroy;
	f->hooks.fire = hold_fire;
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	fx_settle(f);
	fx_keep(f, &a, "s1"); /* kept results are inspected when they are requested again */
	turns[n++] = fx_wait(f, &a);
	fx_keep(f, &c, "c1");
	c.image = "registry/app@sha256:0"; /* and their image is resolved */
	turns[n++] = fx_wait(f, &c);
	fx_keep(f, &d, "s4"); /* given up */
	d.attempt = 1;
	assert_true(fx_begin(f, &d, &turns[n++]) >= 0);
	turns[n] = fx_create(f, &e); /* lost */
	assert_int_equal(ck_turn_lost(turns[n++], NULL), 0);
	turns[n++] = fx_wait(f, &e);
	turns[n] = fx_create(f, &b); /* told */
	assert_int_equal(fx_make(f, turns[n++], &b, "s2"), CK_WAIT);
	fx_advance(f, S);
	for (unsigned i = 0; i < late_n; i++)
		kinds |= 1u << late_what[i];
	assert_int_equal(kinds, 1u << LATE_LIST | 1u << LATE_DESTROY | 1u << LATE_INSPECT |
					1u << LATE_RESOLVE | 1u << LATE_HOOK);
	assert_int_equal(ck_cache_close(f->cache, &f->err), 0);
	f->cache = NULL;
	for (unsigned i = 0; i < late_n; i++) {
		assert_int_equal(ck_job_listed(late[i], &object),
				 late_what[i] == LATE_LIST ? 0 : -CK_EINVAL);
		if (late_what[i] == LATE_HOOK)
			ck_hook_done(late[i], "10-cpu", NULL);
		else
			ck_job_done(late[i], &answer);
	}
	while (n--)
		ck_turn_free(turns[n]); /* and they are the last that hold it */
	assert_non_null(strstr(fx_rows(f), "KEPT s1"));
	fixture_free(f);
}

/* ---- each function of crikeep-nri.h, from within --------------------------------------------- */

enum nri_where { DESCRIBE, UPDATE, EVICT, LAUNCH, NRI_SNAPSHOT, NRI_LOG, SENT, NRI_WHERES };

static struct {
	struct nw *w;
	struct ck_nri_host host;
	enum nri_where where;
	unsigned n, sent;
	int send, adjusting, listens, plugins, fd, hooks, start, process;
} nin;

static void count_sent(const struct ck_nri_result *result, void *userdata)
{
	(void)result, (void)userdata;
	nin.sent++;
}

static int count_plugin(const struct ck_nri_plugin *plugin, void *userdata)
{
	(void)plugin, (void)userdata;
	return 0;
}

static void call_each_of_nri(enum nri_where where)
{
	struct ck_nri *nri = nin.w->nri;
	struct ck_hooks hooks = { .size = sizeof(hooks) };
	char name[64];
	if (nin.where != where || !nri || nin.n++)
		return;
	const struct ck_nri_call call = { .size = sizeof(call),
					  .event = CK_NRI_POST_UPDATE_POD_SANDBOX,
					  .pod_id = "s1" };
	nin.send = ck_nri_send(nri, &call, count_sent, NULL, NULL);
	nin.adjusting = ck_nri_adjusting(nri, name, sizeof(name));
	nin.listens = ck_nri_listens(nri, CK_NRI_RUN_POD_SANDBOX, CK_SANDBOX, "none");
	nin.plugins = ck_nri_plugins(nri, count_plugin, NULL);
	nin.fd = ck_nri_fd(nri);
	ck_nri_timeout(nri);
	nin.hooks = ck_nri_hooks(nri, &hooks);
	nin.start = ck_nri_start(nri, NULL, NULL);
	nin.process = ck_nri_process(nri, NULL);
	ck_nri_close(nri); /* this breaks the rules: nothing happens */
}

static void describe(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	call_each_of_nri(DESCRIBE);
	nin.host.describe(job, kind, id, userdata);
}

static void update(struct ck_nri_job *job, const char *id, const void *resources, size_t len,
		   void *userdata)
{
	call_each_of_nri(UPDATE);
	nin.host.update(job, id, resources, len, userdata);
}

static void evict(struct ck_nri_job *job, const char *id, const char *reason, void *userdata)
{
	call_each_of_nri(EVICT);
	nin.host.evict(job, id, reason, userdata);
}

static int launch(unsigned i, int fd, void *userdata)
{
	call_each_of_nri(LAUNCH);
	return nin.host.launch(i, fd, userdata);
}

static int nri_snapshot(int (*fn)(const struct ck_told *object, void *arg), void *arg,
			void *userdata)
{
	call_each_of_nri(NRI_SNAPSHOT);
	return nin.host.snapshot(fn, arg, userdata);
}

static void nri_log(enum ck_log_level level, const char *text, void *userdata)
{
	call_each_of_nri(NRI_LOG);
	nin.host.log(level, text, userdata);
}

static void event_sent(const struct ck_nri_result *result, void *userdata)
{
	(void)result;
	++*(unsigned *)userdata;
	call_each_of_nri(SENT);
}

/* UpdateContainersRequest: @field 1 an update, 2 an eviction, of container c1 */
static void ask_of_container(struct plugin *p, uint32_t field)
{
	struct plugin_buffer one = { .p = NULL }, request = { .p = NULL };
	plugin_text(&one, 1, "c1");
	if (field == 1)
		plugin_bytes(&one, 2, "\x0a\x07\x12\x05\x0a\x03\x08\x80\x04", 9); /* cpu.shares */
	else
		plugin_text(&one, 2, "too old");
	plugin_bytes(&request, field, one.p, one.len);
	plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers", request.p, request.len);
	plugin_bytes_free(&one);
	plugin_bytes_free(&request);
}

static void everything_of_nri_but_process_and_close_may_be_called(void **state)
{
	static const char *const wheres[] = { "describe", "update", "evict",         "launch",
					      "snapshot", "log",    "a sent event's" };
	static const struct ck_nri_launched launched = { .name = "20-b" };
	(void)state;
	for (int where = 0; where < NRI_WHERES; where++) {
		unsigned ended = 0;
		memset(&nin, 0, sizeof(nin));
		nin.where = (enum nri_where)where;
		struct nw *w = nin.w = nw_new();
		nin.host = w->host;
		w->host.describe = describe;
		w->host.update = update;
		w->host.evict = evict;
		w->host.launch = launch;
		w->host.snapshot = nri_snapshot;
		w->host.log = nri_log;
		w->options.launched = &launched;
		w->options.launched_n = 1;
		assert_int_equal(nw_open(w), 0);
		nw_start(w);
		struct plugin *p = nw_ready(w, "10-a");
		nw_run(w, "s1");
		nw_create(w, "c1", "s1");
		struct ck_nri_call call = nw_call_of(w, CK_NRI_POST_UPDATE_POD_SANDBOX, "s1");
		assert_int_equal(ck_nri_send(w->nri, &call, event_sent, &ended, NULL), 0);
		nw_settle(w);
		ask_of_container(p, 1);
		ask_of_container(p, 2);
		nw_settle(w);
		if (nin.n == 0)
			fail_msg("%s never came: %s", wheres[where], w->log);
		assert_int_equal(ended, 1);
		assert_int_equal(nin.send, 0);
		assert_int_equal(nin.sent, 1);
		assert_int_equal(nin.adjusting, 0);
		assert_int_equal(nin.listens, 0);
		assert_int_equal(nin.plugins, 0);
		assert_true(nin.fd > 2);
		assert_int_equal(nin.hooks, 0);
		assert_int_equal(nin.start, -CK_ESTATE);
		assert_int_equal(nin.process, -CK_EDEADLK);
		assert_false(p->ended);
		nw_free(w);
	}
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* of a newer release; nobody reads what comes behind */
#define LONGER(type)          \
	struct {              \
		struct type s; \
		char more[24]; \
	}

static void longer_options(struct fixture *f)
{
	LONGER(ck_host) host = { .s = f->host };
	LONGER(ck_hooks) hooks = { .s = { .size = sizeof(hooks) } };
	LONGER(ck_options) options = { .s = f->options };
	memset(host.more, 0xff, sizeof(host.more));
	memset(options.more, 0xff, sizeof(options.more));
	host.s.size = sizeof(host);
	options.s.size = sizeof(options);
	options.s.host = &host.s;
	options.s.hooks = &hooks.s;
	hooks.s.size = sizeof(struct ck_hooks) - 1;
	assert_int_equal(ck_cache_open(&options.s, &f->cache, NULL), -CK_EINVAL);
	hooks.s.size = sizeof(hooks);
	assert_int_equal(ck_cache_open(&options.s, &f->cache, NULL), 0);
	fx_settle(f);
}

static void longer_request_result_and_reply(struct fixture *f)
{
	struct fx_ask ask = fx_sandbox("web");
	unsigned char bytes[256];
	LONGER(ck_request)
	request = { .s = { .size = sizeof(request), .kind = CK_SANDBOX, .bytes = bytes } };
	LONGER(ck_result) result = { .s = { .size = sizeof(result), .id = "s1" } };
	LONGER(ck_reply) reply = { .s = { .size = sizeof(reply) } };
	struct ck_turn *turn;
	memset(request.more, 0xff, sizeof(request.more));
	request.s.len = fx_bytes(&ask, bytes, sizeof(bytes));
	request.s.size = sizeof(request.s) - 1;
	assert_int_equal(ck_turn_begin(f->cache, &request.s, &turn, NULL), -CK_EINVAL);
	request.s.size = sizeof(request);
	assert_int_equal(ck_turn_begin(f->cache, &request.s, &turn, NULL), CK_CREATE);
	result.s.size = sizeof(result.s) - 1;
	assert_int_equal(ck_turn_finish(turn, &result.s, NULL), -CK_EINVAL);
	result.s.size = sizeof(result);
	int r = ck_turn_finish(turn, &result.s, NULL);
	if (r == CK_WAIT)
		r = fx_decision(f, turn);
	assert_int_equal(r, CK_HAND_BACK);
	reply.s.size = sizeof(reply.s) - 1;
	assert_int_equal(ck_turn_reply(turn, &reply.s), -CK_EINVAL);
	reply.s.size = sizeof(reply);
	memset(reply.more, 0x5a, sizeof(reply.more));
	assert_int_equal(ck_turn_reply(turn, &reply.s), 0);
	assert_int_equal(reply.s.size, sizeof(struct ck_reply)); /* this much of it is filled */
	for (size_t i = 0; i < sizeof(reply.more); i++)
		assert_int_equal(reply.more[i], 0x5a);
	ck_turn_free(turn);
}

static void longer_status(struct fixture *f)
{
	struct fx_ask ask = fx_sandbox("other");
	LONGER(ck_status) status = { .s = { .size = sizeof(status), .grpc = 13, .message = "no" } };
	struct ck_turn *failing = fx_create(f, &ask), *waiting = fx_wait(f, &ask);
	status.s.size = sizeof(status.s) - 1;
	assert_int_equal(ck_turn_fail(failing, &status.s, NULL), -CK_EINVAL);
	status.s.size = sizeof(status);
	assert_int_equal(ck_turn_fail(failing, &status.s, NULL), 0);
	assert_int_equal(fx_decision(f, waiting), -CK_EFAILED);
	status.s.size = sizeof(status.s) - 1;
	assert_int_equal(ck_turn_status(waiting, &status.s), -CK_EINVAL);
	status.s.size = sizeof(status);
	assert_int_equal(ck_turn_status(waiting, &status.s), 0);
	ck_turn_free(waiting);
	ck_turn_free(failing);
}

static void longer_objects(struct fixture *f)
{
	LONGER(ck_object)
	objects[2] = { { .s = { .size = sizeof(objects[0]), .kind = CK_SANDBOX, .id = "s1" } },
		       { .s = { .size = sizeof(objects[0]), .kind = CK_SANDBOX, .id = "s2" } } };
	struct ck_view *view;
	assert_int_equal(ck_view_begin(f->cache, &view, NULL), 0);
	assert_int_equal(ck_view_hides(view, &objects[0].s), 0);
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &objects[0].s, 2), 0);
	objects[1].s.size = sizeof(struct ck_object); /* all are as long as the first */
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &objects[0].s, 2), -CK_EINVAL);
	objects[0].s.size = sizeof(struct ck_object) - 8;
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &objects[0].s, 1), -CK_EINVAL);
	ck_view_free(view);
}

static void longer_structs_are_taken_and_shorter_ones_refused(void **state)
{
	struct fixture *f = fixture_new();
	(void)state;
	longer_options(f);
	longer_request_result_and_reply(f);
	longer_status(f);
	longer_objects(f);
	fixture_free(f);
}

static void list_in_a_short_struct(struct ck_job *job, const struct ck_filter *filter,
				   void *userdata)
{
	const struct ck_object object = { .size = sizeof(object) - 1,
					  .kind = CK_SANDBOX,
					  .id = "s1" };
	const struct ck_answer answer = { .size = sizeof(answer) - 1 };
	unsigned *n = userdata;
	(void)filter;
	++*n;
	assert_int_equal(ck_job_listed(job, &object), -CK_EINVAL);
	ck_job_done(job, &answer); /* it counts as a failure */
}

static void a_short_answer_is_a_failed_one(void **state)
{
	struct fixture *f = fixture_new();
	unsigned lists = 0;
	(void)state;
	f->host = (struct ck_host){ .size = sizeof(f->host),
				    .destroy = f->host.destroy,
				    .list = list_in_a_short_struct,
				    .userdata = &lists };
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	fx_settle(f);
	assert_int_equal(lists, 2);
	assert_int_equal(ck_reconciled(f->cache), 0);
	fx_advance(f, 6 * S);
	assert_true(lists > 2);
	fixture_free(f);
}

static void nri_takes_longer_structs_too(void **state)
{
	struct nw *w = nw_new();
	LONGER(ck_nri_host) host = { .s = w->host };
	LONGER(ck_nri_options) options = { .s = w->options };
	LONGER(ck_hooks) hooks = { .s = { .size = sizeof(hooks) } };
	(void)state;
	memset(host.more, 0xff, sizeof(host.more));
	memset(options.more, 0xff, sizeof(options.more));
	memset(hooks.more, 0x5a, sizeof(hooks.more));
	options.s.host = &host.s;
	options.s.size = sizeof(options.s) - 1;
	assert_int_equal(ck_nri_open(&options.s, &w->nri, NULL), -CK_EINVAL);
	options.s.size = sizeof(options);
	host.s.size = sizeof(host.s) - 1;
	assert_int_equal(ck_nri_open(&options.s, &w->nri, NULL), -CK_EINVAL);
	host.s.size = sizeof(host);
	assert_int_equal(ck_nri_open(&options.s, &w->nri, NULL), 0);
	hooks.s.size = sizeof(hooks.s) - 1;
	assert_int_equal(ck_nri_hooks(w->nri, &hooks.s), -CK_EINVAL);
	hooks.s.size = sizeof(hooks);
	assert_int_equal(ck_nri_hooks(w->nri, &hooks.s), 0);
	assert_int_equal(hooks.s.size, sizeof(struct ck_hooks));
	w->hooks = hooks.s;
	for (size_t i = 0; i < sizeof(hooks.more); i++)
		assert_int_equal(hooks.more[i], 0x5a);
	nw_start(w);
	nw_ready(w, "10-a");
	nw_run(w, "s1");
	LONGER(ck_nri_call) call = { .s = nw_call_of(w, CK_NRI_POST_UPDATE_POD_SANDBOX, "s1") };
	struct nw_sent sent = { .ended = 0 };
	memset(call.more, 0xff, sizeof(call.more));
	call.s.size = sizeof(call.s) - 1;
	assert_int_equal(nw_send_call(w, &call.s, &sent), -CK_EINVAL);
	call.s.size = sizeof(call);
	assert_int_equal(nw_send_call(w, &call.s, &sent), 0);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	nw_sent_free(&sent);
	nw_free(w);
}

/* everything else is right; the texts are not used */
static void errors_may_be_null(void **state)
{
	const struct ck_nri_options options = { .size = 1 };
	struct ck_nri *nri;
	struct nw *w = nw_started();
	struct ck_hooks hooks = { .size = sizeof(hooks) };
	char name[8];
	(void)state;
	assert_int_equal(ck_nri_open(NULL, &nri, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_open(&options, &nri, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_open(&w->options, NULL, NULL), -CK_EINVAL);
	/* the socket is taken */
	assert_int_equal(ck_nri_open(&w->options, &nri, NULL), -CK_EOWNED);
	assert_int_equal(ck_nri_start(NULL, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_start(w->nri, NULL, NULL), -CK_ESTATE);
	assert_int_equal(ck_nri_process(NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_send(NULL, NULL, NULL, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_send(w->nri, NULL, count_sent, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_hooks(NULL, &hooks), -CK_EINVAL);
	assert_int_equal(ck_nri_hooks(w->nri, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_adjusting(NULL, name, sizeof(name)), -CK_EINVAL);
	assert_int_equal(ck_nri_adjusting(w->nri, NULL, 0), -CK_EINVAL);
	assert_int_equal(ck_nri_listens(NULL, CK_NRI_RUN_POD_SANDBOX, CK_SANDBOX, "s1"), 0);
	assert_int_equal(ck_nri_plugins(NULL, count_plugin, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_plugins(w->nri, NULL, NULL), -CK_EINVAL);
	assert_int_equal(ck_nri_fd(NULL), -CK_EINVAL);
	assert_true(ck_nri_timeout(NULL) == UINT64_MAX);
	ck_nri_job_done(NULL, 0, NULL, 0);
	ck_nri_stop(NULL);
	ck_nri_close(NULL);
	assert_int_equal(ck_entries(NULL, no_entry, NULL), -CK_EINVAL);
	assert_int_equal(ck_reconciled(NULL), -CK_EINVAL);
	assert_null(ck_job_entry(NULL));
	nw_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_but_wait_process_and_close_may_be_called_from_every_callback),
		cmocka_unit_test(what_would_need_the_lock_is_refused_inside_it),
		cmocka_unit_test(jobs_of_every_kind_may_end_after_the_close),
		cmocka_unit_test(everything_of_nri_but_process_and_close_may_be_called),
		cmocka_unit_test(longer_structs_are_taken_and_shorter_ones_refused),
		cmocka_unit_test(a_short_answer_is_a_failed_one),
		cmocka_unit_test(nri_takes_longer_structs_too),
		cmocka_unit_test(errors_may_be_null),
	};
	return CK_TEST_MAIN(tests);
}
