/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_DAEMON_H
#define CK_DAEMON_DAEMON_H
/*
 * What the parts of crikeepd share.
 *
 *   kubelet --> serve.c (a call) --+-> call-pass.c (passed on)
 *                                  +-> call-create.c (through the cache)
 *                                  +-> call-lifecycle.c (stop, remove, start)
 *                                  '-> call-events.c (GetContainerEvents)
 *                                        |
 *                                        v
 *                                   upstream.c (the runtime) <-- cache-host.c (what the cache asks)
 *
 *   nri-host.c        NRI: plugins, and what they ask for
 *   nri-call-steps.c  what plugins are told at each step of a call
 *   nri-exits.c       containers that end by themselves
 *   runtime-lists.c   lists at start and after a reconnect
 *   main.c            start and end
 */
#include "src/daemon/conf/conf.h"
#include "src/rpc/connection.h"
#include "src/base/log.h"
#include "src/daemon/metrics.h"
#include "src/cri/calls.h"
#include "src/rpc/upstream.h"

struct ck_consulted;
struct ck_events;
struct ck_exits;
struct ck_hosting;
struct ck_launcher;
struct ck_life;
struct ck_listener;
struct ck_nri;
struct ck_plugging;
struct ck_plugins;
struct ck_reconcile;

struct ck_daemon {
	struct ck_loop loop;
	struct ck_conf conf;
	struct ck_metrics metrics;
	struct ck_cache *cache;
	struct ck_upstream *upstream;
	struct ck_hosting *hosting; /* cache-host.c */
	struct ck_events *events;   /* call-events.c */
	struct ck_reconcile *reconcile;
	struct ck_nri *nri;           /* NULL: off */
	struct ck_plugging *plugging; /* nri-host.c */
	struct ck_life *lives;        /* nri-call-steps.c: calls that go through steps */
	struct ck_exits *exits;       /* nri-exits.c */
	struct ck_consulted *consulted; /* nri-before-create.c */
	uint64_t consulted_n;           /* the last one's number */
	bool stopping;              /* SIGTERM came: no new calls */
	unsigned creating;          /* create calls at the runtime */
};

/* serve.c */
/* ck_listen_start - accept on @fd (taken). @filtered: the kubelet's. -CK_ENOMEM, -CK_EIO */
int ck_listen_start(struct ck_daemon *daemon, int fd, bool filtered,
		    struct ck_listener **ret_listener, struct ck_error *err);
/* ck_listen_stop - accept nobody and take no new call any more; calls under way go on */
void ck_listen_stop(struct ck_listener *listener);
void ck_listener_free(struct ck_listener *listener);

/* main.c: a create at the runtime ended while crikeepd is stopping */
void ck_daemon_drained(struct ck_daemon *daemon);

/* runtime-lists.c: both whole lists of the runtime, given to the cache (K24): at start, and on each
 * reconnect. @done: both succeeded, or why not; not called from inside. One at a time: beginning
 * anew drops the one under way */
typedef void ck_reconciled_fn(struct ck_daemon *daemon, const struct ck_error *err);
int ck_reconcile_begin(struct ck_daemon *daemon, ck_reconciled_fn *done, struct ck_error *err);
void ck_reconcile_cancel(struct ck_daemon *daemon);

/* cache-host.c: struct ck_host for this daemon's upstream */
/* sets daemon->hosting */
int ck_hosting_new(struct ck_daemon *daemon, struct ck_host *ret_host, struct ck_error *err);
/* ck_hosting_free - before the upstream; jobs under way end as UNAVAILABLE */
void ck_hosting_free(struct ck_hosting *hosting);
/* ck_hosting_saw - a whole list of sandboxes, hidden ones included, that passes by: uid conflicts
 * are counted and logged once */
void ck_hosting_saw(struct ck_daemon *daemon, const struct ck_object *objects, size_t n);

/*
 * nri-host.c: struct ck_nri_host for this daemon, and its NRI on the loop. Sets daemon->nri and
 * daemon->plugging; @plugins and @launcher are borrowed. @ret_hooks: for ck_cache_open(). 0,
 * -CK_EOWNED (somebody serves NRI there), -CK_EIO, -CK_ENOMEM
 */
struct ck_hooks;
int ck_plugging_new(struct ck_daemon *daemon, const struct ck_plugins *plugins,
		    struct ck_launcher *launcher, struct ck_hooks *ret_hooks, struct ck_error *err);
/* ck_plugging_start - the cache is reconciled: plugins are launched and let in. Once; later ones do
 * nothing. 0, -CK_EIO */
int ck_plugging_start(struct ck_daemon *daemon, struct ck_error *err);
/* ck_plugging_quiet - before the upstream is freed: jobs end as UNAVAILABLE, and nothing is turned
 * any more */
void ck_plugging_quiet(struct ck_plugging *plugging);
/* ck_plugging_free - after the cache was closed; who waits for an event is called back */
void ck_plugging_free(struct ck_plugging *plugging);
/* ck_plugging_wanted - is any of these events (CK_NRI_BIT) subscribed to by any connected plugin?
 * Without NRI: no */
#define CK_NRI_BIT(event) (1u << (CK_NRI_##event - 1))
bool ck_plugging_wanted(const struct ck_daemon *daemon, unsigned events);

/* nri-exits.c: a container that ends by itself is seen in what passes by, or in a list of our own
 * while plugins want to know */
int ck_exits_new(struct ck_daemon *daemon, struct ck_error *err); /* sets daemon->exits */
void ck_exits_free(struct ck_exits *exits);
/* ck_exits_saw - this container was seen dead: plugins that have not heard of it are told */
void ck_exits_saw(struct ck_daemon *daemon, const char *container_id);

/* call-events.c: subscriptions. Commits it learns of from the cache, not as a hook: it has nothing
 * to refuse and nobody to name */
int ck_events_new(struct ck_daemon *daemon, struct ck_error *err); /* sets daemon->events */
/* ck_events_committed - of struct ck_host; NULL is fine */
void ck_events_committed(struct ck_events *events, const struct ck_told *entry);
/* ck_events_free - before the cache is closed and the upstream freed; subscriptions end as
 * UNAVAILABLE */
void ck_events_free(struct ck_events *events);
/* a client's GetContainerEvents, to be filtered: takes the stream over, unless it fails; its
 * request headers were read, and are passed on; its message is in @request. Nothing in it may let
 * the runtime compress what it sends */
int ck_events_subscribe(struct ck_daemon *daemon, struct ck_h2_stream *client,
			const struct ck_h2_header *headers, size_t n, const void *request,
			size_t len, struct ck_error *err);
#endif
