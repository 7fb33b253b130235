/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_DAEMON_H
#define CK_DAEMON_DAEMON_H
/*
 * What the parts of crikeepd share.
 *
 *   kubelet --> serve.c --> call-pass.c, call-create.c, call-start.c, call-lifecycle.c, ...
 *                                  |           |
 *                                  |           v
 *                                  |       the cache --> cache-host.c
 *                                  v                          |
 *                              upstream.c (the runtime) <-----'
 *
 *   main.c                start and end
 *   serve.c               clients, and the request of a call
 *   call-pass.c           calls that are passed on
 *   call-create.c         creates, through the cache
 *   call-shadow.c         creates, if they are only counted
 *   call-start.c          starts
 *   call-lifecycle.c      stop and remove
 *   call-events.c         GetContainerEvents; commit-events.c adds the events of commits
 *   cache-host.c          what the cache asks of the runtime
 *   held-connections.c    connections to the runtime that outlast this process
 *   runtime-lists.c       the lists of the runtime, at the start and after a reconnect
 *   nri-host.c            NRI plugins, and what they ask for
 *   nri-call-steps.c      which plugins are told what, and when, during a call
 *   nri-before-create.c   plugins that change a container before it is created
 *   nri-exits.c           containers that end by themselves
 *   simulator.c           runs crikeep-sim
 *   metrics.c             metrics; metrics-socket.c serves them, proc-stats.c has this process's
 */
#include "src/daemon/conf/conf.h"
#include "src/rpc/connection.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/daemon/metrics.h"
#include "src/cri/calls.h"
#include "src/rpc/upstream.h"

struct ck_consult;
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
struct ck_client_process;
struct ck_reconcile;
struct ck_shadow;
struct ck_starting;

/* held-connections.c: those of earlier lives; all zero: none */
struct ck_held {
	int fds[CK_HELD_MAX];
	sd_event_source *sources[CK_HELD_MAX];
	uint64_t since[CK_HELD_MAX]; /* when the life began that it is of; 0: not known */
	bool shadow[CK_HELD_MAX]; /* that life had shadow: true, and recorded nothing */
	unsigned n;
	struct ck_loop_timer *timer;
	uint64_t began; /* this life */
	uint64_t until; /* by then every call on them has reached its deadline */
};

struct ck_daemon {
	struct ck_loop loop;
	struct ck_conf conf;
	struct ck_metrics metrics;
	struct ck_cache *cache; /* NULL with shadow: true, and so is all that needs it */
	struct ck_upstream *upstream;
	struct ck_held held;
	struct ck_hosting *hosting; /* cache-host.c */
	struct ck_events *events;   /* call-events.c */
	struct ck_reconcile *reconcile;
	struct ck_nri *nri;             /* NULL: off */
	struct ck_plugging *plugging;   /* nri-host.c */
	struct ck_life *lives;          /* nri-call-steps.c */
	struct ck_starting *starts;        /* call-start.c */
	struct ck_exits *exits;         /* nri-exits.c */
	struct ck_consult *consults;    /* nri-before-create.c: being asked */
	struct ck_consulted *consulted; /* the same: were asked */
	uint64_t consulted_n;           /* number of the last one */
	/* nri-call-steps.c: has the runtime UpdatePodSandboxResources? Unknown again when it has
	 * been away */
	enum { CK_POD_UPDATES_UNKNOWN, CK_POD_UPDATES_MISSING, CK_POD_UPDATES_THERE } pod_updates;
	struct ck_shadow *shadows;      /* call-shadow.c: creates that were cut off */
	unsigned shadows_n;
	bool stopping;                  /* after SIGTERM: no new calls */
	unsigned creating;              /* creates and starts at the runtime */
	/* client-limits.c: that have connections, or calls that go on without them */
	struct ck_client_process *processes;
	unsigned connected_n; /* of these: that have connections */
	unsigned calls; /* under way, also those whose client has left */
	struct ck_loop_timer *burst_timer;
	bool burst; /* memory is to be given back; the timer does it when calls are few */
	uint64_t refused_at[CK_REFUSALS]; /* when the log said so; 0: never */
};

/* client-limits.c: what the metrics show */
struct ck_clients_use {
	unsigned calls;                              /* under way */
	unsigned process_connections, process_calls; /* of the process that has most */
};
void ck_clients_use(const struct ck_daemon *daemon, struct ck_clients_use *ret_use);

/* serve.c */
/* ck_listen_start - accept on @fd (taken). @filtered: the kubelet's socket. -CK_ENOMEM, -CK_EIO */
int ck_listen_start(struct ck_daemon *daemon, int fd, bool filtered,
		    struct ck_listener **ret_listener, struct ck_error *err);
/* ck_listen_stop - accept no more clients and no more calls; calls under way go on */
void ck_listen_stop(struct ck_listener *listener);
void ck_listener_free(struct ck_listener *listener);

/*
 * held-connections.c: a runtime may undo a creation or start when the connection that carries it
 * ends. So the service manager gets a duplicate of each such connection, and passes it to the next
 * life. That keeps it open until everything is decided that began before the life after its own,
 * and only reads it dry.
 */
/* ck_held_passed - the service manager has passed @fd. false: @name is not that of such a
 * connection; else it is taken */
bool ck_held_passed(struct ck_daemon *daemon, int fd, const char *name);
/* ck_held_begin - with the cache open. -CK_EIO, -CK_ENOMEM */
int ck_held_begin(struct ck_daemon *daemon, struct ck_error *err);
/* ck_held_give - a duplicate of @fd to the service manager */
void ck_held_give(struct ck_daemon *daemon, int fd);
/* ck_held_free - the service manager still holds what is left */
void ck_held_free(struct ck_daemon *daemon);

/* runtime-lists.c: give both whole lists of the runtime to the cache, at the start and after each
 * reconnect. Only lists that succeed say what exists (K24). @done: later, with NULL or the error.
 * There is one at a time: a new one cancels the one under way. */
typedef void ck_reconciled_fn(struct ck_daemon *daemon, const struct ck_error *err);
int ck_reconcile_begin(struct ck_daemon *daemon, ck_reconciled_fn *done, struct ck_error *err);
void ck_reconcile_cancel(struct ck_daemon *daemon);

/* cache-host.c: struct ck_host for this daemon's upstream. Sets daemon->hosting. */
int ck_hosting_new(struct ck_daemon *daemon, struct ck_host *ret_host, struct ck_error *err);
/* ck_hosting_free - before the upstream; jobs under way end as UNAVAILABLE */
void ck_hosting_free(struct ck_hosting *hosting);
/* ck_hosting_saw - look for uid conflicts in a whole list of sandboxes, with the hidden ones. Each
 * conflict is counted and logged once */
void ck_hosting_saw(struct ck_daemon *daemon, const struct ck_object *objects, size_t n);

/*
 * nri-host.c: struct ck_nri_host for this daemon, and NRI on its loop. Sets daemon->nri and
 * daemon->plugging. @plugins and @launcher are borrowed. @ret_hooks: for ck_cache_open(). 0,
 * -CK_EOWNED: another process serves NRI at this path, -CK_EIO, -CK_ENOMEM
 */
struct ck_hooks;
int ck_plugging_new(struct ck_daemon *daemon, const struct ck_plugins *plugins,
		    struct ck_launcher *launcher, struct ck_hooks *ret_hooks, struct ck_error *err);
/* ck_plugging_introduce - the runtime is up: what plugins that register from now on are told of it.
 * No plugin is let in before that */
void ck_plugging_introduce(struct ck_daemon *daemon);
/* ck_plugging_start - launch plugins and let them in, after the first reconciliation. Later calls
 * do nothing. 0, -CK_EIO */
int ck_plugging_start(struct ck_daemon *daemon, struct ck_error *err);
/* ck_plugging_quiet - before the upstream is freed: jobs end as UNAVAILABLE, and NRI gets no more
 * turns of the loop */
void ck_plugging_quiet(struct ck_plugging *plugging);
/* ck_plugging_free - after the cache is closed; callers that wait for an event are called back */
void ck_plugging_free(struct ck_plugging *plugging);
/* ck_plugging_wanted - true if a connected plugin subscribes to one of these events (CK_NRI_BIT) */
#define CK_NRI_BIT(event) (1u << (CK_NRI_##event - 1))
bool ck_plugging_wanted(const struct ck_daemon *daemon, unsigned events);

/* nri-exits.c: finds containers that end by themselves, in answers that are passed on, and in lists
 * of our own while plugins want to know */
int ck_exits_new(struct ck_daemon *daemon, struct ck_error *err); /* sets daemon->exits */
void ck_exits_free(struct ck_exits *exits);
/* ck_exits_saw - this container was seen dead: tell the plugins that were not told yet */
void ck_exits_saw(struct ck_daemon *daemon, const char *container_id);

/* call-events.c: subscriptions to events. The cache tells it of commits directly, not as a hook,
 * because it refuses nothing. */
int ck_events_new(struct ck_daemon *daemon, struct ck_error *err); /* sets daemon->events */
/* ck_events_committed - of struct ck_host; NULL is fine */
void ck_events_committed(struct ck_events *events, const struct ck_told *entry);
/* ck_events_free - before the cache is closed and the upstream freed; subscriptions end as
 * UNAVAILABLE */
void ck_events_free(struct ck_events *events);
/* ck_events_subscribe - a client's GetContainerEvents, which is filtered. Takes the stream over,
 * unless it fails. @headers, @request: they go to the runtime. They must not allow it to compress
 * its messages */
int ck_events_subscribe(struct ck_daemon *daemon, struct ck_h2_stream *client,
			const struct ck_h2_header *headers, size_t n, const void *request,
			size_t len, struct ck_error *err);
#endif
