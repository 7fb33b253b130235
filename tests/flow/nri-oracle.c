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
	fact->pod = entry->sandbox_id ? number_of(entry->sandbox_id) : 0;
	memcpy(fact->active, o->active, sizeof(fact->active));
	snprintf(fact->told, sizeof(fact->told), "%s", names);
	o->chosen++;
	return 0;
}

static void between_fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *entry,
			 void *userdata)
{
	struct oracle *o = userdata;
	struct fact *fact = fact_of(o, entry->id);
	for (size_t i = 0; i < o->w->plugins_n && event != CK_HOOK_RUN && fact->life < o->life; i++)
		fact->owed[i] = o->active[i] && names_it(entry->told, name_of(o->w->plugins[i]));
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
		o->facts[i].ended_by_host = false;
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

void oracle_settled(struct oracle *o)
{
	for (size_t i = 0; i < o->w->plugins_n; i++)
		o->active[i] = lives(o->w->plugins[i]) && o->w->plugins[i]->configured;
}

void oracle_committed(struct oracle *o, const char *id)
{
	fact_of(o, id)->committed = true;
}

void oracle_stopped(struct oracle *o, const char *id)
{
	fact_of(o, id)->ended_by_host = true;
}

void oracle_joined(struct oracle *o, const struct plugin *plugin)
{
	size_t i = o->w->plugins_n - 1;
	for (size_t k = 0; k < i; k++) {
		const struct plugin *p = o->w->plugins[k];
		if (p->heard_n && p->heard[p->heard_n - 1].at > o->joined_at[i])
			o->joined_at[i] = p->heard[p->heard_n - 1].at;
	}
	o->life_of[i] = o->life;
	o->picky[i] = (plugin->mask & 0x7ff) != 0x7ff;
}

/* ---- at the plugins' end --------------------------------------------------------------------- */

struct seen { /* of one object, by one connection */
	unsigned listed, run, stop, remove;
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
	else if (s->listed && fact->stop_at && fact->stop_at <= o->joined_at[i])
		oracle_complain(o, "%s (connection %zu) was told of %u in a list, after its Stop",
				name_of(p), i, object);
	else if (s->stop > 1 || s->remove > 1)
		oracle_complain(o, "%s (connection %zu): %u has %u Stop, %u Remove", name_of(p), i,
				object, s->stop, s->remove);
	else if (s->remove && !s->stop && !o->picky[i])
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
	else if (fact->listed && !fact->ended_by_host && !known && !orphan)
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
	else if (fact->gone && known && (!s->stop || !s->remove))
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
		struct seen *s = &seen[number_of(p->items[k].id)];
		s->listed++;
		s->known_at = s->known_at ? s->known_at : p->items[k].at;
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
		if (quiet && lives(p) && p->synchronized)
			check_all(o, i, object, seen);
	}
}

static void note_stops(struct oracle *o, const struct plugin *p)
{
	for (size_t k = 0; k < p->heard_n; k++) {
		const struct plugin_heard *heard = &p->heard[k];
		if (heard->call != CK_NRI_STOP_POD_SANDBOX && heard->call != CK_NRI_STOP_CONTAINER)
			continue;
		struct fact *fact = fact_of(o, heard->container[0] ? heard->container : heard->pod);
		if (!fact->stop_at || heard->at < fact->stop_at)
			fact->stop_at = heard->at;
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
		o->facts[i].listed = false, o->facts[i].stop_at = 0;
	for (size_t i = 0; i < o->w->plugins_n; i++)
		if (o->life_of[i] == o->life)
			note_stops(o, o->w->plugins[i]);
	if (quiet && ck_snapshot(o->w->f->cache, note_listed, o) < 0)
		oracle_complain(o, "no snapshot");
	o->runs = o->lists = o->stops = o->removes = o->debts = 0;
	for (size_t i = 0; i < o->w->plugins_n; i++)
		check_connection(o, i, quiet);
	return !o->complaint[0];
}
