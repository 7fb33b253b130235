/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NRI plugins: those of tests/flow/nri-peer.c, which share no code with crikeep. They are slow,
 * freeze, leave and come back. For each connection of each plugin must hold (crikeep-nri(7)):
 *
 *	an object comes in the first list or by its creation, never both and never twice
 *	a container comes when its pod is known
 *	nothing is told of what the connection does not know; only the end of what an earlier
 *	connection of the same name knew, or was about to be told when crikeepd ended (H3)
 *	an end comes once, Stop before Remove, and nothing after Remove; a pod is removed after its
 *	containers
 *	what was in use or known to another plugin when it connected, and is not being removed, is
 *	in its list
 *	if plugins are asked before, what is created while one has its list has an id for plugins
 *	in the end a connection knows everything there is; of all else that it was told of the
 *	beginning, it was told the end
 *
 * A container that plugins were asked about before it was created has an id of its own for them,
 * which is in the request that the runtime gets. What was made straight at the runtime, or was not
 * written (K32), or was lost for longer than anybody looks for it (K8), may be taken up after the
 * plugins had their lists, and is not told then.
 */
#include "src/base/error.h"
#include "src/base/hash.h"
#include "src/base/mem.h"
#include "tests/flow/nri-peer.h"
#include "tests/world/world.h"

struct known {
	UT_hash_handle by_id;
	char id[80], pod[80]; /* pod: of a container */
	enum ck_kind kind;
	bool here;      /* this connection knows it */
	uint64_t since; /* it was told of it */
	bool stopped, removed;
};

static struct guest {
	const char *name;
	struct plugin *plugin; /* NULL: it is not connected */
	uint64_t pause;        /* it does nothing before */
	uint64_t slow;         /* so long it needs for what it reads */
	uint64_t dialed;       /* when this connection began */
	uint64_t left;         /* when its last connection ended */
	uint64_t chosen;       /* the same, of those to an earlier life of crikeepd */
	uint64_t listed;       /* when it had its list; 0: not yet */
	size_t heard, items;   /* so many were looked at */
	struct known *known;
	struct ck_loop_timer *timer;
} guests[PLUGINS_N] = { { .name = "10-a" }, { .name = "20-b" }, { .name = "20-c" } };

static void nothing(void *userdata)
{
	(void)userdata;
}

static void rests(struct guest *g, uint64_t span)
{
	uint64_t until = kernel.now + span;
	if (until > g->pause) {
		g->pause = until;
		ck_loop_timer(&w.loop, &g->timer, until, nothing, NULL);
	}
}

/* ---- what it hears --------------------------------------------------------------------------- */

static struct known *known_of(struct guest *g, const char *id)
{
	struct known *k;
	HASH_FIND(by_id, g->known, id, strlen(id), k);
	return k;
}

static void begins(struct guest *g, enum ck_kind kind, const char *id, const char *pod,
		   const char *how)
{
	struct known *k = known_of(g, id);
	const struct known *in = kind == CK_CONTAINER ? known_of(g, pod) : NULL;
	trace("plugin %s is told of %.8s: %s", g->name, id, how);
	if (k && k->here)
		world_wrong("plugin %s is told twice of %.8s: %s", g->name, id, how);
	if (kind == CK_CONTAINER && *pod && !(in && in->here && !in->removed) &&
	    !check_may_be_untold(pod, g->dialed))
		world_wrong("plugin %s is told of %.8s, and not of its pod: %s", g->name, id, how);
	if (!k) {
		k = calloc(1, sizeof(*k));
		snprintf(k->id, sizeof(k->id), "%s", id);
		HASH_ADD(by_id, g->known, id, strlen(k->id), k);
	}
	k->kind = kind;
	snprintf(k->pod, sizeof(k->pod), "%s", kind == CK_CONTAINER ? pod : "");
	k->here = true;
	k->since = kernel.now;
	k->stopped = k->removed = false;
}

static bool is_end(int call)
{
	return call == CK_NRI_STOP_POD_SANDBOX || call == CK_NRI_REMOVE_POD_SANDBOX ||
	       call == CK_NRI_STOP_CONTAINER || call == CK_NRI_REMOVE_CONTAINER;
}

/* This connection does not know it. But one to an earlier life of crikeepd may have been chosen,
 * and it was gone before this one had its list (H3). If plugins are asked before, a crikeepd that
 * comes back does not know whether they were asked then, and tells the id that they would have. */
static bool may_end(const struct guest *g, const struct known *k, const char *id)
{
	return k || check_was_there(id, g->chosen, g->listed) ||
	       (w.asks_before && check_is_nobodys(id));
}

/* RemovePodSandbox comes after its containers are removed (R26) */
static void pod_is_removed(const struct guest *g, const char *pod)
{
	for (const struct known *k = g->known; k; k = k->by_id.next)
		if (k->here && !k->removed && !strcmp(k->pod, pod))
			world_wrong("plugin %s is told that pod %.8s ends before %.8s", g->name,
				    pod, k->id);
}

static void goes_on(struct guest *g, int call, const char *id)
{
	struct known *k = known_of(g, id);
	bool remove = call == CK_NRI_REMOVE_POD_SANDBOX || call == CK_NRI_REMOVE_CONTAINER;
	if (!(k && k->here) && !(is_end(call) && may_end(g, k, id)))
		world_wrong("plugin %s is told %d of %.8s, which it does not know", g->name, call,
			    id);
	else if (k && k->removed)
		world_wrong("plugin %s is told %d of %.8s after its end", g->name, call, id);
	else if (is_end(call) && !remove && k && k->stopped)
		world_wrong("plugin %s is told twice that %.8s stops", g->name, id);
	else
		trace("plugin %s is told %d of %.8s", g->name, call, id);
	if (call == CK_NRI_REMOVE_POD_SANDBOX)
		pod_is_removed(g, id);
	if (!k)
		return;
	k->stopped = k->stopped || is_end(call);
	k->removed = k->removed || remove;
}

static void hears(struct guest *g, const struct plugin_heard *heard)
{
	if (heard->call == CK_NRI_RUN_POD_SANDBOX)
		begins(g, CK_SANDBOX, heard->pod, "", "it runs");
	else if (heard->call == CK_NRI_CREATE_CONTAINER && *heard->container)
		begins(g, CK_CONTAINER, heard->container, heard->pod, "it is created");
	else if (heard->call < PLUGIN_CONFIGURE &&
		 heard->call != CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		goes_on(g, heard->call, *heard->container ? heard->container : heard->pod);
}

static struct guest *asked;

/* Does another connection to this life of crikeepd know it, since before this one began? Of a
 * container that plugins were asked about before, a new one hears when it is handed over. */
static bool others_know(enum ck_kind kind, const char *plugin_id)
{
	if (kind == CK_CONTAINER && w.asks_before)
		return false;
	for (size_t i = 0; i < CK_COUNT(guests); i++) {
		struct guest *g = &guests[i];
		const struct known *k = g->plugin && g != asked ? known_of(g, plugin_id) : NULL;
		if (k && k->here && !k->removed && k->since > g->chosen && k->since < asked->dialed)
			return true;
	}
	return false;
}

static void is_in_list(enum ck_kind kind, const char *id, const char *name, bool alive)
{
	const char *plugin_id = check_plugin_id(id);
	const struct known *k = known_of(asked, plugin_id);
	(void)alive;
	if (!(k && k->here) &&
	    check_must_be_in_list(id, asked->dialed, others_know(kind, plugin_id)))
		world_wrong("plugin %s has a list without %s", asked->name, name);
}

static void look(struct guest *g)
{
	struct plugin *p = g->plugin;
	/* a list is one moment; what comes after it was sent after it */
	bool first = p->lists && !g->listed;
	if (first)
		g->listed = kernel.now;
	for (; g->items < p->items_n; g->items++) {
		const struct plugin_item *item = &p->items[g->items];
		begins(g, item->kind, item->id, item->pod, "it is in the list");
	}
	if (first) {
		asked = g;
		runtime_each(is_in_list);
	}
	for (; g->heard < p->heard_n; g->heard++)
		hears(g, &p->heard[g->heard]);
	if (*p->wrong)
		world_wrong("plugin %s: %s", g->name, p->wrong);
}

/* ---- what it does ---------------------------------------------------------------------------- */

static void leaves(struct guest *g, const char *how)
{
	if (!g->plugin)
		return;
	trace("plugin %s %s", g->name, how);
	for (struct known *k = g->known; k; k = k->by_id.next)
		k->here = k->stopped = k->removed = false;
	plugin_free(CK_TAKE(g->plugin));
	g->left = kernel.now;
}

static void dials(struct guest *g)
{
	g->plugin = plugin_dial(w.nri, g->name);
	g->dialed = kernel.now;
	g->heard = g->items = 0;
	g->listed = 0;
	if (g->plugin)
		trace("plugin %s connects", g->name);
	else
		rests(g, S);
}

static bool guest_turn(struct guest *g)
{
	if (kernel.now < g->pause)
		return false;
	if (!g->plugin)
		dials(g);
	if (!g->plugin)
		return false;
	bool moved = plugin_step(g->plugin);
	look(g);
	if (g->plugin->ended) {
		leaves(g, "is disconnected");
		rests(g, S + below(3 * S));
	} else if (moved && g->slow && !w.calm) {
		rests(g, below(g->slow));
	}
	return moved;
}

int plugins_fd(unsigned i)
{
	return guests[i].plugin ? guests[i].plugin->fd : -1;
}

bool plugins_turn(void)
{
	bool moved = false;
	for (size_t i = 0; w.plugins && i < CK_COUNT(guests); i++)
		moved = guest_turn(&guests[i]) || moved;
	return moved;
}

void plugins_trouble(void)
{
	struct guest *g = &guests[below(CK_COUNT(guests))];
	uint64_t span = below(60 * S);
	if (!w.plugins)
		return;
	w.guests++;
	switch (below(3)) {
	case 0:
		leaves(g, "leaves");
		rests(g, span);
		break;
	case 1:
		trace("plugin %s is frozen for %.1f s", g->name, (double)span / 1e9);
		rests(g, span);
		break;
	default:
		g->slow = chance(30) ? 0 : below(3 * S);
		trace("plugin %s is slow: %.1f s", g->name, (double)g->slow / 1e9);
	}
}

void plugins_die(void)
{
	for (size_t i = 0; i < CK_COUNT(guests); i++)
		leaves(&guests[i], "is killed");
}

void plugins_not_asked(const char *name, uint64_t since)
{
	for (size_t i = 0; i < CK_COUNT(guests); i++) {
		const struct guest *g = &guests[i];
		/* who rests may be disconnected, and does not know it yet */
		if (g->plugin && g->pause <= kernel.now && g->listed > g->chosen &&
		    g->listed < since)
			world_wrong("no plugin was asked about %s, and %s has its list", name,
				    g->name);
	}
}

void plugins_daemon_ends(void)
{
	for (size_t i = 0; i < CK_COUNT(guests); i++)
		guests[i].chosen = guests[i].plugin ? kernel.now : guests[i].left;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void is_known(enum ck_kind kind, const char *id, const char *name, bool alive)
{
	const struct known *k = known_of(asked, check_plugin_id(id));
	(void)kind, (void)alive;
	if (!(k && k->here) && check_may_be_untold(id, asked->dialed))
		return;
	if (!k || !k->here || k->removed)
		world_wrong("in the end plugin %s does not know %s", asked->name, name);
}

static void check_guest(bool (*exists)(enum ck_kind kind, const char *plugin_id))
{
	runtime_each(is_known);
	for (struct known *k = asked->known; k; k = k->by_id.next)
		if (k->here && !k->removed && !exists(k->kind, k->id))
			world_wrong("in the end plugin %s waits for the end of %.8s", asked->name,
				    k->id);
}

void plugins_check(bool (*exists)(enum ck_kind kind, const char *plugin_id))
{
	for (size_t i = 0; w.plugins && i < CK_COUNT(guests); i++) {
		asked = &guests[i];
		if (!asked->plugin || !asked->plugin->synchronized)
			world_wrong("in the end plugin %s is not served", asked->name);
		else
			check_guest(exists);
	}
}

void plugins_close(void)
{
	for (size_t i = 0; i < CK_COUNT(guests); i++) {
		struct guest *g = &guests[i];
		leaves(g, "goes");
		for (struct known *k = g->known, *next; k; k = next) {
			next = k->by_id.next;
			HASH_DELETE(by_id, g->known, k);
			free(k);
		}
		ck_loop_timer_free(CK_TAKE(g->timer));
		*g = (struct guest){ .name = g->name };
	}
}
