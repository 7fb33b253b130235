/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <string.h>

#include "tests/flow/nri-world.h"

uint32_t nw_random(struct nw *w, uint32_t n)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 17;
	w->rng ^= w->rng << 5;
	return n ? w->rng % n : 0;
}

/* ---- the host -------------------------------------------------------------------------------- */

struct nw_object *nw_find(struct nw *w, const char *id)
{
	for (size_t i = 0; i < w->objects_n; i++)
		if (!strcmp(w->objects[i]->id, id))
			return w->objects[i];
	return NULL;
}

void nw_message(const struct nw_object *o, struct plugin_buffer *to)
{
	plugin_text(to, 1, o->id);
	if (o->told.kind == CK_SANDBOX) {
		plugin_text(to, 2, o->name);
		plugin_text(to, 3, "uid-1");
		plugin_text(to, 4, "shop");
		plugin_number(to, 9, 4711);
		plugin_text(to, 10, "10.0.0.7");
	} else {
		plugin_text(to, 2, o->pod);
		plugin_text(to, 3, o->name);
		plugin_number(to, 4, o->state);
		if (o->pid)
			plugin_number(to, 12, o->pid);
	}
	if (o->fat) {
		struct plugin_buffer pair = { .p = NULL };
		char *text = malloc(o->fat + 1);
		assert_non_null(text);
		memset(text, 'x', o->fat);
		text[o->fat] = '\0';
		plugin_text(&pair, 1, "fat");
		plugin_text(&pair, 2, text);
		plugin_bytes(to, 6, pair.p, pair.len);
		plugin_bytes_free(&pair);
		free(text);
	}
}

/* from the fixture's runtime, not from the host's table */
static void message_of_fixture(struct nw *w, const char *id, struct plugin_buffer *to)
{
	for (size_t i = 0; i < w->f->objects_n; i++) {
		const struct fx_object *o = &w->f->objects[i];
		if (strcmp(o->id, id))
			continue;
		plugin_text(to, 1, o->id);
		plugin_text(to, 2, o->kind == CK_SANDBOX ? o->name : o->sandbox);
		plugin_text(to, 3, o->kind == CK_SANDBOX ? o->uid : o->container);
		if (o->kind == CK_CONTAINER) /* stopped, or running */
			plugin_number(to, 4, o->condition == CK_CONDITION_DEAD ? 4 : 3);
	}
}

static void end(struct nw *w, const struct nw_held *held)
{
	struct plugin_buffer message = { .p = NULL };
	int grpc = w->fail[held->call];
	if (held->call == NW_DESCRIBE && !grpc) {
		struct nw_object *o = nw_find(w, held->id);
		if (w->f)
			message_of_fixture(w, held->id, &message);
		else if (o && !o->gone)
			nw_message(o, &message);
		grpc = message.len ? 0 : 5;
	}
	ck_nri_job_done(held->job, grpc, message.p, message.len);
	plugin_bytes_free(&message);
}

static void called(struct nw *w, enum nw_call call, struct ck_nri_job *job, enum ck_kind kind,
		   const char *id)
{
	struct nw_held held = { .call = call, .job = job, .kind = kind };
	snprintf(held.id, sizeof(held.id), "%s", id);
	w->asked[call]++;
	if (!w->hold[call])
		end(w, &held);
	else if (w->held_n < sizeof(w->held) / sizeof(*w->held))
		w->held[w->held_n++] = held;
	else
		abort(); /* a lost job would make the failure hard to understand */
}

size_t nw_release(struct nw *w, enum nw_call call)
{
	size_t n = 0;
	w->hold[call] = false;
	for (size_t i = 0; i < w->held_n;) {
		struct nw_held held = w->held[i];
		if (held.call != call) {
			i++;
			continue;
		}
		memmove(&w->held[i], &w->held[i + 1], (--w->held_n - i) * sizeof(held));
		end(w, &held);
		i = 0;
		n++;
	}
	return n;
}

static void host_describe(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct nw *w = userdata;
	if (w->in_call)
		w->in_call(w, w->in_call_data);
	called(w, NW_DESCRIBE, job, kind, id);
}

static void note(struct nw *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct nw *w, const char *format, ...)
{
	size_t n = strlen(w->changes);
	va_list args;
	va_start(args, format);
	vsnprintf(w->changes + n, sizeof(w->changes) - n, format, args);
	va_end(args);
}

static void host_update(struct ck_nri_job *job, const char *id, const void *resources, size_t len,
			void *userdata)
{
	struct nw *w = userdata;
	note(w, "%supdate %s [", w->changes[0] ? " " : "", id);
	for (size_t i = 0; i < len; i++)
		note(w, "%02x", ((const unsigned char *)resources)[i]);
	note(w, "]");
	called(w, NW_UPDATE, job, CK_CONTAINER, id);
}

static void host_evict(struct ck_nri_job *job, const char *id, const char *reason, void *userdata)
{
	struct nw *w = userdata;
	note(w, "%sevict %s [%s]", w->changes[0] ? " " : "", id, reason);
	called(w, NW_EVICT, job, CK_CONTAINER, id);
}

static int host_launch(unsigned i, int fd, void *userdata)
{
	struct nw *w = userdata;
	if (w->launch_fails || i >= sizeof(w->launched) / sizeof(*w->launched)) {
		close(fd);
		return w->launch_fails;
	}
	w->launched[i] = fd;
	return 0;
}

static int host_snapshot(int (*fn)(const struct ck_told *object, void *arg), void *arg,
			 void *userdata)
{
	struct nw *w = userdata;
	for (size_t i = 0; i < w->objects_n; i++) {
		int r = w->objects[i]->visible && !w->objects[i]->gone
				? fn(&w->objects[i]->told, arg)
				: 0;
		if (r)
			return r;
	}
	return 0;
}

static void host_log(enum ck_log_level level, const char *text, void *userdata)
{
	struct nw *w = userdata;
	size_t n = strlen(w->log);
	snprintf(w->log + n, sizeof(w->log) - n, "<%d> %s\n", (int)level, text);
}

/* ---- life ------------------------------------------------------------------------------------ */

static uint64_t read_clock(void *userdata)
{
	return nw_now(userdata);
}

struct nw *nw_new(void)
{
	struct nw *w = calloc(1, sizeof(*w));
	const char *tmp = getenv("TMPDIR");
	assert_non_null(w);
	if (!tmp || strlen(tmp) > 30)
		tmp = "/tmp";
	snprintf(w->dir, sizeof(w->dir), "%s/crikeep-nri.XXXXXX", tmp);
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->socket, sizeof(w->socket), "%s/nri.sock", w->dir);
	w->now = 1000 * CK_NS_PER_S;
	for (size_t i = 0; i < sizeof(w->launched) / sizeof(*w->launched); i++)
		w->launched[i] = -1;
	w->host = (struct ck_nri_host){ .size = sizeof(w->host),
					.userdata = w,
					.describe = host_describe,
					.update = host_update,
					.evict = host_evict,
					.launch = host_launch,
					.snapshot = host_snapshot,
					.log = host_log };
	w->options = (struct ck_nri_options){ .size = sizeof(w->options),
					      .host = &w->host,
					      .socket_path = w->socket,
					      .clock = read_clock,
					      .clock_userdata = w };
	return w;
}

void nw_over(struct nw *w, struct fixture *f)
{
	w->f = f;
	w->host.snapshot = NULL;
}

int nw_open(struct nw *w)
{
	int r = ck_nri_open(&w->options, &w->nri, &w->err);
	if (r == 0) {
		w->hooks.size = sizeof(w->hooks);
		assert_int_equal(ck_nri_hooks(w->nri, &w->hooks), 0);
	}
	return r;
}

void nw_start(struct nw *w)
{
	if (ck_nri_start(w->nri, w->f ? w->f->cache : NULL, &w->err) < 0)
		fail_msg("start: %s", w->err.text);
}

struct nw *nw_started(void)
{
	struct nw *w = nw_new();
	if (nw_open(w) < 0)
		fail_msg("open: %s", w->err.text);
	nw_start(w);
	return w;
}

void nw_close(struct nw *w)
{
	ck_nri_close(w->nri);
	w->nri = NULL;
	for (int call = 0; call < NW_CALLS; call++)
		nw_release(w, (enum nw_call)call);
}

void nw_free(struct nw *w)
{
	if (!w)
		return;
	if (w->nri)
		nw_close(w);
	for (size_t i = 0; i < w->plugins_n; i++)
		plugin_free(w->plugins[i]);
	for (size_t i = 0; i < w->objects_n; i++)
		free(w->objects[i]);
	for (size_t i = 0; i < sizeof(w->launched) / sizeof(*w->launched); i++)
		if (w->launched[i] >= 0)
			close(w->launched[i]);
	unlink(w->socket);
	rmdir(w->dir);
	free(w);
}

/* ---- time and turns -------------------------------------------------------------------------- */

uint64_t nw_now(const struct nw *w)
{
	return w->f ? fx_now(w->f) : w->now;
}

void nw_set_now(struct nw *w, uint64_t now)
{
	if (w->f)
		__atomic_store_n(&w->f->now, now, __ATOMIC_SEQ_CST);
	else
		w->now = now;
}

static bool nri_due(struct nw *w)
{
	struct pollfd pfd = { .fd = ck_nri_fd(w->nri), .events = POLLIN };
	return ck_nri_timeout(w->nri) <= nw_now(w) || poll(&pfd, 1, 0) > 0;
}

static bool turn_hooks(struct nw *w)
{
	if (!w->nri || !nri_due(w))
		return false;
	assert_int_equal(ck_nri_process(w->nri, &w->err), 0);
	return true;
}

static bool turn_cache(struct nw *w)
{
	if (!w->f || !w->f->cache || ck_cache_timeout(w->f->cache) > nw_now(w))
		return false;
	assert_true(ck_cache_process(w->f->cache, &w->err) >= 0);
	return true;
}

bool nw_turn(struct nw *w)
{
	bool any = turn_cache(w);
	any = turn_hooks(w) || any;
	for (size_t i = 0; i < w->plugins_n; i++)
		any = plugin_step(w->plugins[i]) || any;
	return any;
}

static void release_one(struct nw *w)
{
	if (!w->held_n)
		return;
	size_t i = nw_random(w, (uint32_t)w->held_n);
	struct nw_held held = w->held[i];
	memmove(&w->held[i], &w->held[i + 1], (--w->held_n - i) * sizeof(held));
	end(w, &held);
}

void nw_shuffle(struct nw *w, unsigned n)
{
	while (n--)
		switch (nw_random(w, 6)) {
		case 0:
			turn_cache(w);
			break;
		case 1:
		case 2:
			turn_hooks(w);
			break;
		case 3:
			release_one(w);
			break;
		default:
			if (w->plugins_n)
				plugin_step(w->plugins[nw_random(w, (uint32_t)w->plugins_n)]);
		}
}

void nw_settle(struct nw *w)
{
	for (unsigned n = 0; nw_turn(w); n++)
		assert_true(n < 100000); /* it would never end */
}

void nw_advance(struct nw *w, uint64_t by)
{
	uint64_t target = nw_now(w) + by;
	nw_settle(w);
	for (unsigned n = 0;; n++) {
		uint64_t due = w->nri ? ck_nri_timeout(w->nri) : UINT64_MAX;
		if (w->f && w->f->cache && ck_cache_timeout(w->f->cache) < due)
			due = ck_cache_timeout(w->f->cache);
		if (due > target)
			break;
		if (due > nw_now(w))
			nw_set_now(w, due);
		nw_settle(w);
		assert_true(n < 100000); /* something is due and does not get done */
	}
	nw_set_now(w, target);
	nw_settle(w);
}

/* ---- plugins --------------------------------------------------------------------------------- */

void nw_adopt(struct nw *w, struct plugin *plugin)
{
	assert_non_null(plugin);
	assert_true(w->plugins_n < NW_PLUGINS);
	w->plugins[w->plugins_n++] = plugin;
}

struct plugin *nw_join(struct nw *w, const char *name)
{
	struct plugin *plugin = plugin_dial(w->socket, name);
	nw_adopt(w, plugin);
	return plugin;
}

struct plugin *nw_ready(struct nw *w, const char *name)
{
	struct plugin *plugin = nw_join(w, name);
	nw_settle(w);
	if (!plugin->synchronized || plugin->ended)
		fail_msg("%s: registered %d, configured %d, synchronized %d, ended %d, %s\n%s",
			 name, plugin->registered, plugin->configured, plugin->synchronized,
			 plugin->ended, plugin->wrong, w->log);
	return plugin;
}

struct look {
	const char *name;
	struct ck_nri_plugin *found;
	size_t n;
};

static int look(const struct ck_nri_plugin *plugin, void *userdata)
{
	static char error[600], name[80], state[32];
	static struct ck_nri_plugin copy;
	struct look *l = userdata;
	l->n += strcmp(plugin->state, "gone") != 0;
	if (!l->name || strcmp(plugin->name, l->name))
		return 0;
	copy = *plugin; /* its texts are borrowed for this call */
	snprintf(error, sizeof(error), "%s", plugin->last_error);
	snprintf(name, sizeof(name), "%s", plugin->name);
	snprintf(state, sizeof(state), "%s", plugin->state);
	copy.last_error = error;
	copy.name = name;
	copy.state = state;
	l->found = &copy;
	return 0;
}

struct ck_nri_plugin *nw_plugin(struct nw *w, const char *name)
{
	struct look l = { .name = name };
	assert_int_equal(ck_nri_plugins(w->nri, look, &l), 0);
	return l.found;
}

size_t nw_connected(struct nw *w)
{
	struct look l = { .name = NULL };
	assert_int_equal(ck_nri_plugins(w->nri, look, &l), 0);
	return l.n;
}

/* ---- objects --------------------------------------------------------------------------------- */

static struct nw_object *object(struct nw *w, enum ck_kind kind, const char *id, const char *pod)
{
	struct nw_object *o = calloc(1, sizeof(*o));
	assert_non_null(o);
	assert_true(w->objects_n < NW_OBJECTS);
	snprintf(o->id, sizeof(o->id), "%s", id);
	snprintf(o->pod, sizeof(o->pod), "%s", pod);
	snprintf(o->name, sizeof(o->name), "name-%s", id);
	o->told = (struct ck_told){ .size = sizeof(o->told),
				    .entry = w->objects_n + 1,
				    .kind = kind,
				    .id = o->id,
				    .pod_name = kind == CK_SANDBOX ? o->name : pod,
				    .pod_namespace = "shop",
				    .pod_uid = "uid-1",
				    .sandbox_id = kind == CK_SANDBOX ? NULL : o->pod,
				    .container_name = kind == CK_SANDBOX ? NULL : o->name,
				    .told = "" };
	w->objects[w->objects_n++] = o;
	return o;
}

struct nw_object *nw_pod(struct nw *w, const char *id)
{
	return object(w, CK_SANDBOX, id, "");
}

struct nw_object *nw_container(struct nw *w, const char *id, const char *pod)
{
	return object(w, CK_CONTAINER, id, pod);
}

int nw_choose(struct nw *w, const char *id, char *names, size_t size)
{
	struct nw_object *o = nw_find(w, id);
	char own[CK_TOLD_MAX];
	assert_non_null(o);
	int r = w->hooks.choose(&o->told, names ? names : own, names ? size : sizeof(own),
				w->hooks.userdata);
	o->visible = r == 0;
	return r;
}

void nw_released(struct nw *w, const char *id, bool gone)
{
	struct nw_object *o = nw_find(w, id);
	struct ck_told told = o->told;
	told.gone = gone;
	o->visible = false;
	o->gone = o->gone || gone;
	w->hooks.released(&told, w->hooks.userdata);
}

struct nw_object *nw_run(struct nw *w, const char *id)
{
	struct nw_object *o = nw_pod(w, id);
	assert_int_equal(nw_choose(w, id, NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, id, NULL);
	nw_settle(w);
	return o;
}

struct nw_object *nw_create(struct nw *w, const char *id, const char *pod)
{
	struct nw_object *o = nw_container(w, id, pod);
	assert_int_equal(nw_choose(w, id, NULL, 0), 0);
	nw_send(w, CK_NRI_CREATE_CONTAINER, id, NULL);
	nw_settle(w);
	return o;
}

/* ---- events ---------------------------------------------------------------------------------- */

struct ck_nri_call nw_call_of(const struct nw *w, enum ck_nri_event event, const char *id)
{
	struct nw_object *o = nw_find((struct nw *)w, id);
	assert_non_null(o);
	struct ck_nri_call call = { .size = sizeof(call), .event = event, .pod_id = o->id };
	if (o->told.kind == CK_CONTAINER) {
		call.pod_id = o->pod;
		call.container_id = o->id;
	}
	return call;
}

static struct nw *sending; /* within ck_nri_send(): no callback may come then */

static void keep(struct plugin_buffer *to, const void *bytes, size_t len)
{
	plugin_bytes_free(to);
	if (!len)
		return;
	to->p = malloc(len);
	assert_non_null(to->p);
	memcpy(to->p, bytes, len);
	to->len = to->room = len;
}

static void ended(const struct ck_nri_result *result, void *userdata)
{
	struct nw_sent *sent = userdata;
	sent->ended++;
	sent->within = sent->within || sending;
	snprintf(sent->refusal, sizeof(sent->refusal), "%s",
		 result->refusal ? result->refusal : "");
	sent->told = result->told;
	sent->has_resources = result->resources != NULL;
	keep(&sent->adjustment, result->adjustment, result->adjustment_len);
	keep(&sent->owners, result->owners, result->owners_len);
	keep(&sent->resources, result->resources, result->resources_len);
}

static void ended_unseen(const struct ck_nri_result *result, void *userdata)
{
	(void)result, (void)userdata;
}

int nw_send_call(struct nw *w, const struct ck_nri_call *call, struct nw_sent *sent)
{
	if (sent)
		*sent = (struct nw_sent){ .ended = 0 };
	sending = w;
	int r = ck_nri_send(w->nri, call, sent ? ended : ended_unseen, sent, &w->err);
	sending = NULL;
	return r;
}

void nw_send(struct nw *w, enum ck_nri_event event, const char *id, struct nw_sent *sent)
{
	struct ck_nri_call call = nw_call_of(w, event, id);
	if (nw_send_call(w, &call, sent) < 0)
		fail_msg("send event %d of %s: %s", (int)event, id, w->err.text);
}

void nw_sent_free(struct nw_sent *sent)
{
	plugin_bytes_free(&sent->adjustment);
	plugin_bytes_free(&sent->owners);
	plugin_bytes_free(&sent->resources);
}
