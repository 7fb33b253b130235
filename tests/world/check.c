/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold, as a kubelet and an operator would say it:
 *
 *	no name is asked for that is being made or exists, unless it may have been lost
 *	the kubelet gets what it asked for, alive
 *	what it got or was shown is in every list, until it ends it
 *	no container is shown that it was never given
 *	what it uses is not stopped or removed, and a container that ran is removed by it alone
 *	what was made is not thrown away while the kubelet asks for it, within the ttl
 *	a call that names what the kubelet has is not answered NOT_FOUND
 *	no two attempts of one container run at a time
 *	in the end every pod that is wanted runs, nothing else exists, and the database is sound
 *	and knows of nothing else; plugins: plugins.c
 *
 * These rules know neither entries nor states of crikeepd.
 */
#include <dirent.h>

#include "cache/store/store.h"
#include "src/base/error.h"
#include "src/base/hash.h"
#include "tests/world/world.h"

struct thing { /* that the runtime has made */
	UT_hash_handle by_id;
	enum ck_kind kind;
	char id[80], sandbox_id[80], name[96];
	char alias[80]; /* a container: what plugins know it by, if they were asked before; or "" */
	bool dead, gone;
	bool ends;     /* the kubelet has asked for its end, or the world has */
	bool removing; /* the kubelet has asked for its removal */
	bool has;      /* the kubelet has it */
	bool runs;     /* a container, as the kubelet knows */
	/* its creation was lost and went on for longer than lost_grace (K8), or was no business of
	 * crikeepd */
	bool late;
	bool started, left;
	bool in_list;  /* the runtime has listed it */
	bool slept;    /* it may have been given to a frozen kubelet, which never read that */
	bool given_up; /* another attempt was asked for meanwhile (K9) */
	bool straight; /* made while the kubelet went straight to the runtime */
	bool unwritten; /* crikeepd ended, and may not have written what it knew of it (K32) */
	unsigned lost; /* w.lost when it began */
	uint64_t began;
	uint64_t at;   /* it was made */
	uint64_t removed; /* it was removed */
	uint64_t used; /* since when it must be listed; 0: it need not be */
};

struct key { /* that the kubelet has asked for */
	UT_hash_handle by_name;
	char name[192]; /* with the id of a container's sandbox */
	char slot[96];
	uint64_t asked, before; /* the last time, and the time before */
	unsigned lost;          /* w.lost the first time */
	bool straight, slept;   /* the last time */
};

struct begun { /* creations that are under way or have made something, by name */
	UT_hash_handle by_name;
	char name[96], alias[80];
	unsigned lost; /* w.lost when it began */
	uint64_t at;
	bool making, straight;
	uint64_t left; /* when its caller went; 0: it has not */
	bool given_up, slept, unwritten;
};

struct slot {
	UT_hash_handle by_slot;
	char slot[96], name[192]; /* what was asked for last */
};

static struct thing *things, *removed;
static struct key *keys;
static struct begun *creations;
static struct slot *slots;
static bool unwritten; /* crikeepd ended last while it could not write */

static struct thing *thing_of(const char *id)
{
	struct thing *t;
	HASH_FIND(by_id, things, id, strlen(id), t);
	if (!t)
		HASH_FIND(by_id, removed, id, strlen(id), t);
	return t;
}

static bool in_use(const struct thing *t)
{
	const struct thing *in = t->kind == CK_CONTAINER ? thing_of(t->sandbox_id) : NULL;
	if (t->dead || t->gone || t->ends || (in && (in->ends || in->dead || in->gone)))
		return false;
	return t->kind == CK_SANDBOX ? t->has : t->runs;
}

static bool holds_something(const struct thing *sandbox)
{
	for (const struct thing *t = things; t; t = t->by_id.next)
		if (!strcmp(t->sandbox_id, sandbox->id) && in_use(t))
			return true;
	return false;
}

/* What there is may not be known to a later life of crikeepd (K32). */
static void nothing_is_written(void)
{
	for (struct begun *b = creations; b; b = b->by_name.next)
		b->unwritten = b->unwritten || b->making;
	for (struct thing *t = things; t; t = t->by_id.next)
		t->unwritten = true;
}

/* Databases that could not be read were set aside, and written anew. Digests of requests are in the
 * database only, so they are lost then (K31, K33). */
static unsigned set_aside(const char *state_dir)
{
	DIR *dir = opendir(state_dir);
	const struct dirent *file;
	unsigned n = 0;
	while (dir && (file = readdir(dir)))
		n += strstr(file->d_name, ".damaged-") != NULL;
	if (dir)
		closedir(dir);
	return n;
}

/* Asked when something looks wrong: what there was when a database was set aside is excused. */
static bool was_lost(const bool *is_unwritten)
{
	static unsigned seen;
	unsigned n = set_aside(w.state_dir);
	if (n > seen)
		nothing_is_written();
	seen = n;
	return w.excused || *is_unwritten;
}

/* That a sandbox was handed over may not have been written. What is in it shows that. */
static bool may_be_unwritten(const struct thing *t)
{
	return t->kind == CK_SANDBOX && !holds_something(t) && was_lost(&t->unwritten);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static void key_text(char text[192], const char *name, const char *sandbox_id)
{
	snprintf(text, 192, "%s@%s", name, sandbox_id);
}

static struct begun *begun_of(const char *name)
{
	struct begun *b;
	HASH_FIND(by_name, creations, name, strlen(name), b);
	return b;
}

/* what has this key, or will have it, need not be kept any more, also if it is asked for again */
static void gives_up(const char *key)
{
	char text[192], name[96];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(key, "@"), key);
	struct begun *b = begun_of(name);
	if (b)
		b->given_up = true;
	for (struct thing *t = things; t; t = t->by_id.next) {
		key_text(text, t->name, t->sandbox_id);
		t->given_up = t->given_up || !strcmp(text, key);
	}
}

/* what nobody asked for within the ttl may have been given up; no later request helps (K15) */
static void expires(const struct key *key)
{
	char text[192];
	for (struct thing *t = things; t; t = t->by_id.next) {
		key_text(text, t->name, t->sandbox_id);
		if (!strcmp(text, key->name) && kernel.now >= key->asked + w.ttl &&
		    kernel.now >= t->at + w.ttl)
			t->given_up = true;
	}
}

void check_asked(const char *slot, const char *name, const char *sandbox_id)
{
	char text[192];
	struct key *key;
	struct slot *s;
	key_text(text, name, sandbox_id);
	HASH_FIND(by_name, keys, text, strlen(text), key);
	if (!key) {
		key = calloc(1, sizeof(*key));
		snprintf(key->name, sizeof(key->name), "%s", text);
		snprintf(key->slot, sizeof(key->slot), "%s", slot);
		key->lost = w.lost;
		HASH_ADD(by_name, keys, name, strlen(key->name), key);
	}
	expires(key);
	key->before = key->asked;
	key->asked = kernel.now;
	key->straight = w.straight;
	key->slept = false;
	HASH_FIND(by_slot, slots, slot, strlen(slot), s);
	if (!s) {
		s = calloc(1, sizeof(*s));
		snprintf(s->slot, sizeof(s->slot), "%s", slot);
		HASH_ADD(by_slot, slots, slot, strlen(s->slot), s);
	}
	if (strcmp(s->name, text) != 0)
		gives_up(s->name);
	snprintf(s->name, sizeof(s->name), "%s", text);
}

void check_unread(const char *name, const char *sandbox_id)
{
	char text[192];
	struct key *key;
	key_text(text, name, sandbox_id);
	HASH_FIND(by_name, keys, text, strlen(text), key);
	if (key)
		key->asked = key->before;
}

/* would the kubelet ask for it once more, and get it? */
static bool still_asked(const struct thing *t)
{
	char text[192];
	struct key *key;
	struct slot *s;
	const struct thing *in = t->kind == CK_CONTAINER ? thing_of(t->sandbox_id) : NULL;
	if (t->dead || t->ends || t->given_up || (in && (in->dead || in->ends || in->gone)))
		return false;
	key_text(text, t->name, t->sandbox_id);
	HASH_FIND(by_name, keys, text, strlen(text), key);
	if (!key)
		return false;
	HASH_FIND(by_slot, slots, key->slot, strlen(key->slot), s);
	return !strcmp(s->name, key->name) && kernel.now < key->asked + w.ttl;
}

/* ---- what the runtime does ------------------------------------------------------------------- */

/* the key of this name that was asked for last, or NULL */
static struct key *last_key(const char *name)
{
	size_t len = strlen(name);
	struct key *last = NULL;
	for (struct key *key = keys; key; key = key->by_name.next)
		if (!strncmp(key->name, name, len) && key->name[len] == '@' &&
		    (!last || key->asked >= last->asked))
			last = key;
	return last;
}

static void begins(const char *name)
{
	const struct key *key = last_key(name);
	struct begun *b = begun_of(name);
	if (!b) {
		b = calloc(1, sizeof(*b));
		snprintf(b->name, sizeof(b->name), "%s", name);
		HASH_ADD(by_name, creations, name, strlen(b->name), b);
	}
	b->lost = w.lost;
	b->at = kernel.now;
	b->straight = w.straight;
	b->making = true;
	b->left = 0;
	b->alias[0] = '\0';
	b->given_up = b->unwritten = false;
	b->slept = key && key->slept; /* it may begin after its kubelet has gone */
}

static bool was_listed(const char *name)
{
	for (const struct thing *t = things; t; t = t->by_id.next)
		if (t->in_list && !strcmp(t->name, name))
			return true;
	return false;
}

/* Does crikeepd know how it ends? What it has lost, it looks for in lists for a while (K8). */
static bool is_followed(const struct begun *b, uint64_t span)
{
	bool looked_for = !b->left || kernel.now <= b->left + span;
	return b->lost == w.lost && (looked_for || was_listed(b->name));
}

static void made(enum ck_kind kind, const char *id, const char *name, const char *sandbox_id)
{
	struct thing *t = calloc(1, sizeof(*t));
	const struct begun *b = begun_of(name);
	t->late = b->straight ||
		  (!is_followed(b, CK_LOST_GRACE) && kernel.now > b->at + CK_LOST_GRACE);
	t->lost = b->lost;
	t->left = b->left;
	t->given_up = b->given_up;
	t->slept = b->slept;
	t->unwritten = b->unwritten;
	t->straight = b->straight;
	t->began = b->at;
	t->at = kernel.now;
	memcpy(t->alias, b->alias, sizeof(t->alias));
	t->kind = kind;
	snprintf(t->id, sizeof(t->id), "%s", id);
	snprintf(t->name, sizeof(t->name), "%s", name);
	snprintf(t->sandbox_id, sizeof(t->sandbox_id), "%s", sandbox_id);
	HASH_ADD(by_id, things, id, strlen(t->id), t);
}

/* two attempts of one container */
static bool have_one_slot(const struct thing *a, const struct thing *b)
{
	size_t len = (size_t)(strrchr(a->name, '_') - a->name);
	return a->kind == CK_CONTAINER && !strcmp(a->sandbox_id, b->sandbox_id) &&
	       !strncmp(a->name, b->name, len + 1);
}

/* Of what was not written, the kubelet creates the next attempt when it finds it (K32). */
static bool may_run_twice(const struct thing *t)
{
	const struct thing *const heads[] = { things, removed };
	for (size_t i = 0; i < CK_COUNT(heads); i++)
		for (const struct thing *o = heads[i]; o; o = o->by_id.next)
			if (o->unwritten && have_one_slot(o, t))
				return true;
	return false;
}

bool check_may_run_twice(const char *id)
{
	const struct thing *t = thing_of(id);
	return t && may_run_twice(t);
}

/* The kubelet goes by the newest attempt. If it made that straight at the runtime, and it appears
 * while an older one runs, the older one holds nothing back any more (K34). */
static bool goes_by_another(const struct thing *t)
{
	for (const struct thing *o = things; o; o = o->by_id.next)
		if (o != t && o->straight && have_one_slot(o, t))
			return true;
	return false;
}

/* no two attempts of a container run at a time, in one sandbox (K34) */
static void starts(struct thing *t)
{
	t->started = true;
	for (struct thing *o = things; o; o = o->by_id.next)
		if (o != t && o->started && !o->dead && have_one_slot(o, t) && !o->late &&
		    !t->late && !o->ends && (o->has || o->lost == w.lost) && !may_run_twice(t) &&
		    !goes_by_another(t))
			world_wrong("%s starts while %s runs", t->name, o->name);
}

/* A container was never in use, or the kubelet has asked for its removal, or for that of its
 * sandbox. */
static bool may_go(const struct thing *t)
{
	const struct thing *in = thing_of(t->sandbox_id);
	return t->kind == CK_SANDBOX || !t->used || t->removing || (in && in->removing);
}

static void ended(struct thing *t, const char *verb)
{
	if (!strcmp(verb, "remove") && !may_go(t) && !(t->dead && w.cuts) &&
	    !was_lost(&t->unwritten))
		world_wrong("%s was used, and the kubelet did not remove it", t->name);
	else if (in_use(t) && !may_be_unwritten(t))
		world_wrong("%s is used, and there was a %s of it", t->name, verb);
	else if (still_asked(t) && !t->late && !w.straight && !w.untold && !was_lost(&t->unwritten))
		world_wrong("%s was made and is asked for, and there was a %s of it", t->name,
			    verb);
	t->dead = true;
	t->gone = !strcmp(verb, "remove");
	if (!t->gone)
		return;
	t->removed = kernel.now;
	HASH_DELETE(by_id, things, t);
	HASH_ADD(by_id, removed, id, strlen(t->id), t);
}

void check_runtime(const char *verb, enum ck_kind kind, const char *id, const char *name,
		   const char *sandbox_id)
{
	struct thing *t = thing_of(id);
	struct begun *b = begun_of(name);
	if (!strcmp(verb, "refuse")) {
		if (b && is_followed(b, CK_RESEND_AFTER) && !w.straight && !was_lost(&b->unwritten))
			world_wrong("%s is asked for twice", name);
		return;
	}
	if (!strcmp(verb, "begin"))
		begins(name);
	else if (!strcmp(verb, "create"))
		made(kind, id, name, sandbox_id);
	else if (t && !strcmp(verb, "start"))
		starts(t);
	else if (t && (!strcmp(verb, "stop") || !strcmp(verb, "exit") || !strcmp(verb, "remove")))
		ended(t, verb);
	if (b && strcmp(verb, "begin") != 0)
		b->making = false;
}

void check_left(const char *name)
{
	struct begun *b = begun_of(name);
	if (!b)
		return;
	trace("%s: its caller has left", name);
	b->left = kernel.now;
	if (b->at != kernel.now)
		return;
	/* who had asked for it had ended before it began: crikeepd, or a kubelet at the runtime */
	b->lost--;
	b->unwritten = unwritten;
	const struct key *key = last_key(name);
	b->straight = key && key->straight;
}

void check_daemon_ends(bool writes)
{
	unwritten = !writes;
	if (!writes)
		nothing_is_written();
}

void check_in_list(const char *id)
{
	struct thing *t = thing_of(id);
	if (t)
		t->in_list = true;
}

bool check_may_lack(const char *id)
{
	const struct thing *t = thing_of(id);
	return t && t->left && !t->in_list;
}

/* ---- what plugins know it by ----------------------------------------------------------------- */

void check_alias(const char *name, const char *alias)
{
	struct begun *b = begun_of(name);
	const struct key *key = last_key(name);
	snprintf(b->alias, sizeof(b->alias), "%s", alias);
	trace("plugins know %s as %.8s", name, alias);
	/* a request that may have been lost is sent again as it was */
	if (w.asks_before && !*alias && key && !key->straight && key->lost == w.lost)
		plugins_not_asked(name, key->asked);
}

const char *check_plugin_id(const char *id)
{
	const struct thing *t = thing_of(id);
	return t && *t->alias ? t->alias : id;
}

/* the thing that plugins know by this id */
static const struct thing *told_as(const char *id)
{
	const struct thing *const heads[] = { things, removed };
	for (size_t i = 0; i < CK_COUNT(heads); i++)
		for (const struct thing *t = heads[i]; t; t = t->by_id.next)
			if (!strcmp(*t->alias ? t->alias : t->id, id))
				return t;
	return NULL;
}

bool check_was_there(const char *plugin_id, uint64_t at, uint64_t until)
{
	const struct thing *t = told_as(plugin_id);
	return t && t->began <= at && t->gone && t->removed <= until;
}

bool check_is_nobodys(const char *plugin_id)
{
	return !told_as(plugin_id) && !thing_of(plugin_id);
}

bool check_may_be_untold(const char *id, uint64_t since)
{
	const struct thing *t = thing_of(id);
	/* given up before it was made, and found (K8, K27): it is in the lists from then on */
	bool found = t && t->late && !(t->used && t->used < since);
	return t && (t->straight || was_lost(&t->unwritten) || found);
}

bool check_must_be_in_list(const char *id, uint64_t since, bool known)
{
	struct thing *t = thing_of(id), *in = t ? thing_of(t->sandbox_id) : NULL;
	if (!t || t->removing || (in && in->removing))
		return false;
	/* What was kept, and used straight at the runtime, may be dead when crikeepd comes back.
	 * What a power cut ended is given up if it is not known that somebody had it. */
	if (t->dead && (w.cuts || (w.bypassed && t->kind == CK_SANDBOX)))
		return false;
	bool used = t->used && t->used < since && !check_may_be_untold(id, since);
	return (known || used) && !was_lost(&t->unwritten);
}

void check_breaks(const char *id)
{
	struct thing *t = thing_of(id);
	if (t)
		t->ends = true;
}

/* ---- what the kubelet does and sees ---------------------------------------------------------- */

void check_slept(const char *name)
{
	struct begun *b = begun_of(name);
	struct key *key = last_key(name);
	if (b)
		b->slept = true;
	if (key)
		key->slept = true;
	for (struct thing *t = things; t; t = t->by_id.next)
		t->slept = t->slept || !strcmp(t->name, name);
}

void check_ends(const char *id, bool removes)
{
	struct thing *t = thing_of(id);
	check_breaks(id);
	if (t)
		t->removing = t->removing || removes;
}

void check_given(const char *id, const char *name)
{
	struct thing *t = thing_of(id);
	if (!t)
		world_wrong("the kubelet gets %s as %.8s, which was never made", name, id);
	else if (strcmp(t->name, name) != 0)
		world_wrong("the kubelet gets %s as %s", t->name, name);
	else if (t->gone || (t->dead && !t->ends))
		world_wrong("the kubelet gets %s, which has ended", name);
	/* straight at the runtime a sandbox is not in use before something runs in it (K22) */
	if (!t || (w.straight && t->kind == CK_SANDBOX))
		return;
	t->has = true;
	if (t->kind == CK_SANDBOX && !t->used)
		t->used = kernel.now;
}

void check_runs(const char *id)
{
	struct thing *t = thing_of(id);
	if (!t)
		return;
	struct thing *in = thing_of(t->sandbox_id);
	t->runs = true;
	if (!t->used)
		t->used = kernel.now;
	if (in)
		in->has = true;
	if (in && !in->used)
		in->used = kernel.now;
}

void check_unknown(const char *id)
{
	const struct thing *t = thing_of(id);
	const struct thing *in = t ? thing_of(t->sandbox_id) : NULL;
	if (t && !t->dead && !t->ends && in && !in->dead && !in->ends && !w.straight &&
	    !was_lost(&t->unwritten))
		world_wrong("the kubelet has %s, and its start hears NOT_FOUND", t->name);
}

static void check_shown(const struct ck_object *o)
{
	struct thing *t = thing_of(o->id);
	if (!t) {
		world_wrong("a list has %.8s, which was never made", o->id);
		return;
	}
	if (t->kind == CK_CONTAINER && o->condition == CK_CONDITION_RUNNING)
		check_runs(t->id);
	else if (w.straight) /* a sandbox that nothing runs in is not in use yet (K22) */
		t->has = t->has || t->kind == CK_CONTAINER;
	else if (t->kind == CK_SANDBOX && o->condition == CK_CONDITION_READY)
		check_given(t->id, t->name);
	else if (t->kind == CK_CONTAINER && o->condition == CK_CONDITION_READY && !t->has &&
		 !t->ends && !t->late && !t->slept && !was_lost(&t->unwritten))
		world_wrong("a list has %s, which was given to nobody", t->name);
}

void check_listed(enum ck_kind kind, const struct ck_object *all, size_t n, uint64_t began)
{
	for (struct thing *t = things; t; t = t->by_id.next) {
		bool listed = false;
		if (t->kind != kind || !t->used || t->used >= began || !in_use(t))
			continue;
		for (size_t i = 0; i < n && !listed; i++)
			listed = !strcmp(all[i].id, t->id);
		if (!listed && !may_be_unwritten(t))
			world_wrong("%s is used, and a list does not have it", t->name);
	}
	for (size_t i = 0; i < n; i++)
		if (all[i].kind == kind)
			check_shown(&all[i]);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void is_wanted(enum ck_kind kind, const char *id, const char *name, bool alive)
{
	if (!alive || !kubelet_wants(kind, id))
		world_wrong("in the end there is %s, which %s", name,
			    alive ? "nobody wants" : "has ended");
}

static bool is_there(enum ck_kind kind, const char *plugin_id)
{
	const struct thing *t = told_as(plugin_id);
	return t && t->kind == kind && !t->gone;
}

void check_end(void)
{
	char why[256] = "";
	if (!kubelet_content(why, sizeof(why)))
		world_wrong("in the end %s", why);
	else if (!runtime_each(is_wanted))
		world_wrong("in the end something is still being made");
	plugins_check(is_there);
}

static void finding(const char *text, void *userdata)
{
	const char *state_dir = userdata;
	bool lost = strstr(text, "the fingerprint is missing") && set_aside(state_dir);
	/* nothing is synced, so a power cut may leave pages that nobody uses, or that two use */
	if (!w.cuts && !lost)
		world_wrong("the database: %s", text);
}

void check_database(const char *state_dir)
{
	struct ck_reader *reader;
	struct ck_error err = { 0 };
	if (ck_reader_check(state_dir, finding, (void *)(uintptr_t)state_dir, &err) < 0 ||
	    ck_reader_open(state_dir, CK_READ_ROWS, &reader, &err) < 0) {
		if (!w.cuts || err.code != CK_EDAMAGED)
			world_wrong("the database cannot be read: %s", err.text);
		return;
	}
	for (size_t i = 0; i < reader->rows_n; i++) {
		enum ck_state state = reader->rows[i].state;
		if (state != CK_STATE_COMMITTED && state != CK_STATE_ENDED &&
		    state != CK_STATE_GONE)
			world_wrong("in the end an entry of pod %s is %d",
				    reader->rows[i].key->pod_name, (int)state);
	}
	ck_reader_free(reader);
}

void check_close(void)
{
	unwritten = false;
#define FREE(handle, head, type) \
	for (struct type *it = (head), *next; it; it = next) { \
		next = it->handle.next; \
		HASH_DELETE(handle, head, it); \
		free(it); \
	}
	FREE(by_id, things, thing)
	FREE(by_id, removed, thing)
	FREE(by_name, keys, key)
	FREE(by_name, creations, begun)
	FREE(by_slot, slots, slot)
#undef FREE
}
