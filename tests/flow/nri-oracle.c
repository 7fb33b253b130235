/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/flow/nri-oracle.h"

void oracle_complain(struct oracle *o, const char *format, ...)
{
	va_list args;
	if (o->complaint[0])
		return; /* the first complaint is kept */
	va_start(args, format);
	vsnprintf(o->complaint, sizeof(o->complaint), format, args);
	va_end(args);
}

static unsigned number_of(const char *id)
{
	unsigned n = *id ? (unsigned)strtoul(id + 1, NULL, 10) : 0;
	return n < OBJECTS ? n : 0; /* no object has 0 */
}

static struct fact *fact_of(struct oracle *o, const char *id)
{
	return &o->facts[number_of(id)];
}

static const char *name_of(const struct plugin *p)
{
	static char name[400];
	snprintf(name, sizeof(name), "%s-%s", p->index, p->base);
	return name;
}

static bool names_it(const char *told, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = strstr(told, name); at; at = strstr(at + 1, name))
		if ((at == told || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
			return true;
	return false;
}

/* ---- between cache and hooks ----------------------------------------------------------------- */

static int between_choose(const struct ck_told *entry, char *names, size_t size, void *userdata)
{
	struct oracle *o = userdata;
	struct fact *fact = fact_of(o, entry->id);
	int r = o->real.choose(entry, names, size, o->real.userdata);
	if (r)
		return r;
	if (!fact->chosen)
		fact->life = o->life;
	fact->chosen = true;
	fact->chosen_no = ++o->steps;
	fact->pod = entry->sandbox_id ? number_of(entry->sandbox_id) : 0;
	memcpy(fact->active, o->active, sizeof(fact->active));
	snprintf(fact->told, sizeof(fact->told), "%s", names);
	o->chosen++;
	return 0;
}

/* the number of the last call that any connection heard */
static uint64_t heard_last(const struct oracle *o)
{
	uint64_t at = 0;
	for (size_t i = 0; i < o->w->plugins_n; i++) {
		const struct plugin *p = o->w->plugins[i];
		if (p->heard_n && p->heard[p->heard_n - 1].at > at)
			at = p->heard[p->heard_n - 1].at;
	}
	return at;
}

void oracle_ends(struct oracle *o, const char *id, enum ck_hook_event event)
{
	struct fact *fact = fact_of(o, id);
	if (!fact->end_sent)
		fact->end_at = heard_last(o);
	fact->end_sent = true;
	fact->remove_sent = fact->remove_sent || event == CK_HOOK_REMOVE;
}

static void between_fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *entry,
			 void *userdata)
{
	struct oracle *o = userdata;
	struct fact *fact = fact_of(o, entry->id);
	fact->remove_fired = fact->remove_fired || event == CK_HOOK_REMOVE;
	if (event != CK_HOOK_RUN)
		oracle_ends(o, entry->id, event);
	if (!fact->chosen)
		oracle_complain(o, "event %d of %s, which was never chosen for", (int)event,
				entry->id);
	o->real.fire(job, event, entry, o->real.userdata);
}

static void between_cancel(uint64_t entry, void *userdata)
{
	struct oracle *o = userdata;
	o->cancels++;
	o->real.cancel(entry, o->real.userdata);
}

static void between_released(const struct ck_told *entry, void *userdata)
{
	struct oracle *o = userdata;
	if (entry->gone && entry->id)
		fact_of(o, entry->id)->gone = true;
	o->real.released(entry, o->real.userdata);
}

void oracle_between(struct oracle *o, struct ck_hooks *ret_hooks)
{
	o->real = o->w->hooks;
	o->life++;
	memset(o->active, 0, sizeof(o->active));
	for (unsigned i = 0; i < OBJECTS; i++)
		o->facts[i].end_sent = o->facts[i].remove_sent = o->facts[i].remove_fired = false;
	*ret_hooks = (struct ck_hooks){ .size = sizeof(*ret_hooks),
					.userdata = o,
					.choose = between_choose,
					.fire = between_fire,
					.cancel = between_cancel,
					.released = between_released };
}

void oracle_init(struct oracle *o, struct nw *w)
{
	*o = (struct oracle){ .w = w };
	o->facts = calloc(OBJECTS, sizeof(*o->facts));
	assert_non_null(o->facts);
}

void oracle_fini(struct oracle *o)
{
	free(o->facts);
	o->facts = NULL;
}

static bool lives(const struct plugin *p)
{
	return p->fd >= 0 && !p->ended;
}

void oracle_committed(struct oracle *o, const char *id)
{
	fact_of(o, id)->committed = true;
}

void oracle_joined(struct oracle *o, const struct plugin *plugin)
{
	size_t i = o->w->plugins_n - 1;
	o->joined_at[i] = heard_last(o);
	o->join_no[i] = ++o->steps;
	o->life_of[i] = o->life;
	o->picky[i] = (plugin->mask & 0x7ff) != 0x7ff;
}

/* ---- at the plugins' end --------------------------------------------------------------------- */

struct seen { /* of one object, by one connection */
	unsigned listed, run, stop, remove;
	bool stopped; /* the list shows a container so */
	uint64_t known_at, stop_at, remove_at, last_at;
};

static void count(struct seen *s, const struct plugin_heard *heard)
{
	switch (heard->call) {
	case CK_NRI_RUN_POD_SANDBOX:
	case CK_NRI_CREATE_CONTAINER:
		s->run++;
		s->known_at = s->known_at ? s->known_at : heard->at;
		break;
	case CK_NRI_STOP_POD_SANDBOX:
	case CK_NRI_STOP_CONTAINER:
		s->stop++;
		s->stop_at = heard->at;
		break;
	case CK_NRI_REMOVE_POD_SANDBOX:
	case CK_NRI_REMOVE_CONTAINER:
		s->remove++;
		s->remove_at = heard->at;
		break;
	default:
		break;
	}
	s->last_at = heard->at;
}

/* In the list that it had, it is stopped, or its end may have begun. That of an earlier life is
 * forgotten. */
static bool may_lack_stop(const struct oracle *o, size_t i, const struct fact *fact,
			  const struct seen *s)
{
	return s->listed && (s->stopped || o->life_of[i] != o->life ||
			     (fact->end_sent && fact->end_at < s->known_at));
}

/* what holds at any time, with events on their way */
static void check_once_and_order(struct oracle *o, size_t i, unsigned object, const struct seen *s)
{
	const struct plugin *p = o->w->plugins[i];
	const struct fact *fact = &o->facts[object];
	unsigned known = s->listed + s->run;
	if (!fact->chosen)
		oracle_complain(o, "%s (connection %zu) heard of %u, for which no commit was begun",
				name_of(p), i, object);
	else if (known > 1)
		oracle_complain(o,
				"%s (connection %zu) was told %u times that %u exists: %u in lists",
				name_of(p), i, known, object, s->listed);
	else if (s->listed && fact->remove_at && fact->remove_at <= o->joined_at[i])
		oracle_complain(o, "%s (connection %zu) was told of %u in a list, after its Remove",
				name_of(p), i, object);
	else if (s->listed && s->stop && fact->stop_at && fact->stop_at <= o->joined_at[i])
		oracle_complain(o, "%s (connection %zu) joined after the Stop of %u, and heard it",
				name_of(p), i, object);
	else if (s->stopped && s->stop)
		oracle_complain(o, "%s (connection %zu): Stop of %u, which its list shows stopped",
				name_of(p), i, object);
	else if (s->stop > 1 || s->remove > 1)
		oracle_complain(o, "%s (connection %zu): %u has %u Stop, %u Remove", name_of(p), i,
				object, s->stop, s->remove);
	else if (s->remove && !s->stop && !o->picky[i] && !may_lack_stop(o, i, fact, s))
		oracle_complain(o, "%s (connection %zu): %u has a Remove and no Stop", name_of(p),
				i, object);
	else if (s->remove && s->remove_at < s->stop_at)
		oracle_complain(o, "%s (connection %zu): Remove of %u before its Stop", name_of(p),
				i, object);
	else if (s->stop && known && s->stop_at < s->known_at)
		oracle_complain(o, "%s (connection %zu): Stop of %u before it was known",
				name_of(p), i, object);
	else if (s->remove && s->last_at > s->remove_at)
		oracle_complain(o, "%s (connection %zu): something of %u after its Remove",
				name_of(p), i, object);
	else if (s->stop && !known && !o->picky[i]) {
		if (fact->life >= o->life_of[i] || !names_it(fact->told, name_of(p)))
			oracle_complain(o,
					"%s (connection %zu): Stop of %u, which it does not know",
					name_of(p), i, object);
		o->debts++;
	} else if (s->last_at && !known && !s->stop && !o->picky[i])
		oracle_complain(o, "%s (connection %zu): an event of %u, which it does not know",
				name_of(p), i, object);
	o->runs += s->run;
	o->lists += s->listed;
	o->stops += s->stop;
	o->removes += s->remove;
}

/* a container begins before the end of its pod does */
static void check_pod(struct oracle *o, size_t i, unsigned object, const struct seen *seen)
{
	const struct seen *s = &seen[object], *pod = &seen[o->facts[object].pod];
	if (o->facts[object].pod && s->run && pod->stop && pod->stop_at < s->known_at)
		oracle_complain(o, "%s (connection %zu): %u begins after the Stop of its pod %u",
				name_of(o->w->plugins[i]), i, object, o->facts[object].pod);
}

/* what holds when nothing is held back and all has settled */
static void check_all(struct oracle *o, size_t i, unsigned object, const struct seen *seen)
{
	const struct plugin *p = o->w->plugins[i];
	const struct fact *fact = &o->facts[object];
	const struct seen *s = &seen[object], *pod = &seen[fact->pod];
	unsigned known = s->listed + s->run;
	bool orphan = fact->pod && !pod->listed && !pod->run;
	if (o->picky[i] || !fact->chosen)
		return;
	if (known && orphan)
		oracle_complain(o, "%s (connection %zu) knows %u, and not its pod %u", name_of(p),
				i, object, fact->pod);
	else if (fact->listed && !fact->remove_sent && !known &&
		 (fact->committed || fact->chosen_no < o->join_no[i]))
		oracle_complain(o, "%s (connection %zu) was never told of %u, which is there",
				name_of(p), i, object);
	else if (fact->committed && fact->active[i] && !known)
		oracle_complain(
			o, "%s (connection %zu) was there when %u was chosen for, and never told",
			name_of(p), i, object);
	else if (fact->gone && fact->owed[i] && !known && !s->stop)
		oracle_complain(
			o, "%s (connection %zu) was there for the debt of %u, and heard nothing",
			name_of(p), i, object);
	else if (fact->gone && known && ((!s->stop && !may_lack_stop(o, i, fact, s)) || !s->remove))
		oracle_complain(o, "%s (connection %zu) knew %u, which is gone: %u Stop, %u Remove",
				name_of(p), i, object, s->stop, s->remove);
}

static void check_connection(struct oracle *o, size_t i, bool quiet)
{
	static struct seen seen[OBJECTS];
	const struct plugin *p = o->w->plugins[i];

	memset(seen, 0, sizeof(seen));
	if (p->wrong[0])
		oracle_complain(o, "%s (connection %zu): %s", name_of(p), i, p->wrong);
	for (size_t k = 0; k < p->items_n; k++) {
		const struct plugin_item *item = &p->items[k];
		struct seen *s = &seen[number_of(item->id)];
		s->listed++;
		s->stopped = item->kind == CK_CONTAINER && item->len > 2 &&
			     !memcmp(item->payload + item->len - 2, "\x20\4", 2);
		s->known_at = s->known_at ? s->known_at : item->at;
	}
	for (size_t k = 0; k < p->heard_n; k++) {
		const struct plugin_heard *heard = &p->heard[k];
		if (heard->call < PLUGIN_CONFIGURE)
			count(&seen[number_of(heard->container[0] ? heard->container : heard->pod)],
			      heard);
	}
	for (unsigned object = 0; object < OBJECTS; object++) {
		const struct seen *s = &seen[object];
		if (s->listed || s->last_at)
			check_once_and_order(o, i, object, s);
		check_pod(o, i, object, seen);
		if (quiet && lives(p) && p->synchronized)
			check_all(o, i, object, seen);
	}
}

static void note_first(uint64_t *first, uint64_t at)
{
	if (!*first || at < *first)
		*first = at;
}

static void note_ends(struct oracle *o, const struct plugin *p)
{
	for (size_t k = 0; k < p->heard_n; k++) {
		const struct plugin_heard *heard = &p->heard[k];
		struct fact *fact = fact_of(o, heard->container[0] ? heard->container : heard->pod);
		if (heard->call == CK_NRI_STOP_POD_SANDBOX || heard->call == CK_NRI_STOP_CONTAINER)
			note_first(&fact->stop_at, heard->at);
		else if (heard->call == CK_NRI_REMOVE_POD_SANDBOX ||
			 heard->call == CK_NRI_REMOVE_CONTAINER)
			note_first(&fact->remove_at, heard->at);
	}
}

static void note_all_ends(struct oracle *o)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		o->facts[i].stop_at = o->facts[i].remove_at = 0;
	for (size_t i = 0; i < o->w->plugins_n; i++)
		if (o->life_of[i] == o->life)
			note_ends(o, o->w->plugins[i]);
}

/* Remove of an object of an earlier life was begun, and nobody has heard anything: it waits for
 * plugins that return */
static void note_debts(struct oracle *o, size_t i)
{
	const struct plugin *p = o->w->plugins[i];
	for (unsigned object = 0; object < OBJECTS; object++) {
		struct fact *fact = &o->facts[object];
		if (fact->remove_fired && fact->life < o->life && !fact->gone && !fact->stop_at &&
		    !fact->remove_at && names_it(fact->told, name_of(p)))
			fact->owed[i] = true;
	}
}

void oracle_settled(struct oracle *o)
{
	note_all_ends(o);
	for (size_t i = 0; i < o->w->plugins_n; i++) {
		const struct plugin *p = o->w->plugins[i];
		o->active[i] = lives(p) && p->configured;
		if (o->active[i] && p->synchronized && o->life_of[i] == o->life &&
		    !o->w->hold[NW_DESCRIBE] && !o->w->fail[NW_DESCRIBE])
			note_debts(o, i);
	}
}

static int note_listed(const struct ck_told *entry, void *userdata)
{
	struct oracle *o = userdata;
	fact_of(o, entry->id)->listed = true;
	return 0;
}

bool oracle_check(struct oracle *o, bool quiet)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		o->facts[i].listed = false;
	note_all_ends(o);
	if (quiet && ck_snapshot(o->w->f->cache, note_listed, o) < 0)
		oracle_complain(o, "no snapshot");
	o->runs = o->lists = o->stops = o->removes = o->debts = 0;
	for (size_t i = 0; i < o->w->plugins_n; i++)
		check_connection(o, i, quiet);
	return !o->complaint[0];
}
