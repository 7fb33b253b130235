/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_NRI_INT_H
#define CK_HOOKS_NRI_INT_H
/*
 * What the files of hooks/ share.
 *
 *   nri.c     the whole: opened, turned (ck_nri_process), closed; everything else runs below its one lock
 *   plugin-socket.c  the socket plugins dial
 *   plugin.c  one connection: handshake, its queue, one event in flight, overdue
 *   synchronize.c    what there is, as its first list
 *   recipients.c    who knows which object
 *   event-kinds.c   what the events are, and who has still to hear of one
 *   dispatch.c    one event on its dispatch: describe-event.c what plugins are told, deliver.c among the plugins
 *   unsolicited.c  changes and evictions plugins ask for
 *   host-calls.c     questions to the host
 *
 * The lock. The cache calls choose, released and the snapshot's function inside its critical
 * section, and they take the lock; so under the lock nothing calls the cache, or the host, which
 * may. What has to be called is put on a list, and ck_nri_process() calls it when the lock is free:
 * jobs_ready, tours_done, want_snapshot, want_launch, log.
 */
#include <pthread.h>
#include <stdbool.h>

#include "hooks/adjust/adjust.h"
#include "hooks/wire/ttrpc.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/host-process.h"

/* uthash: a failed allocation leaves the element out (hh.tbl NULL) instead of ending the process */
#define HASH_NONFATAL_OOM    1
#define uthash_malloc(size)  ck_alloc(size)
#define uthash_free(p, size) free(p)
#include <uthash.h>

struct ck_plugin;
struct ck_nri_delivery;
struct ck_dispatch;

#define CK_NRI_FOREVER         UINT64_MAX
#define CK_NRI_SERVICE_PLUGIN  "nri.pkg.api.v1alpha1.Plugin"
#define CK_NRI_SERVICE_RUNTIME "nri.pkg.api.v1alpha1.Runtime"
#define CK_NRI_VERSION         "v0.12.2" /* what plugins are told we speak */

/* Bytes shared by an object, its events and the queues they wait in. */
struct ck_blob {
	unsigned refs; /* below the lock */
	size_t len;
	unsigned char bytes[];
};
struct ck_blob *ck_blob_new(const void *p, size_t len); /* NULL: out of memory */
struct ck_blob *ck_blob_ref(struct ck_blob *blob);      /* NULL in, NULL out */
void ck_blob_unref(struct ck_blob *blob);
/* a new reference in place of the old */
void ck_blob_set(struct ck_blob **at, struct ck_blob *blob);

/* ---- recipients.c: who knows which object ---------------------------------------------------- */

/* One connection and one object it knows. Made once, by choose or by a snapshot: so an object comes
 * to a connection once. */
struct ck_recipient {
	struct ck_recipient *next;
	struct ck_plugin *plugin;
	uint64_t serial; /* of that connection: an object out of the index may outlive it */
	bool listed;     /* by a snapshot: it comes with Synchronize, not as an event */
	/* its announcement has been passed by: bytes have gone out, or it is not subscribed */
	bool told;
	bool stopped; /* its Stop has */
	bool removed;
	unsigned announcing; /* announcements in the plugin's queue */
	unsigned stopping;   /* Stops */
};

struct ck_nri_object { /* an object, while somebody may have to hear of it */
	unsigned refs; /* the index, dispatches, queues */
	enum ck_kind kind;
	char *id;         /* the runtime's; "" while it is not made */
	char *nri_id;     /* the id plugins know it by; mostly the same */
	char *sandbox_id; /* containers */
	char *name;       /* containers asked about before they exist; "" else */
	uint32_t attempt;
	uint64_t entry; /* of the cache; 0: none */
	struct ck_blob
		*description; /* as it was described last; at first only what its key tells */
	bool described;       /* by the host, not only by its key */
	/* chosen for in this life: the cache's told list is no debt of an earlier one (H3) */
	bool ours;
	bool stop_begun;
	bool gone; /* out of the index */
	struct ck_recipient *recipients;
	struct ck_nri_object *prev, *next; /* of all in the index */
	UT_hash_handle by_id, by_nri_id;   /* by_nri_id: only where it is another id */
};

/* by either id; NULL */
struct ck_nri_object *ck_nri_object_find(struct ck_nri *nri, enum ck_kind kind, const char *id);
/* ck_nri_object_ensure - found, or new; not a reference. @told NULL: only @kind and @id are known. NULL:
 * out of memory */
struct ck_nri_object *ck_nri_object_ensure(struct ck_nri *nri, enum ck_kind kind, const char *id,
					   const struct ck_told *told);
/* ck_nri_object_not_created - it is asked about before it exists: only plugins know its id (H7). -CK_ENOMEM */
int ck_nri_object_not_created(struct ck_nri *nri, struct ck_nri_object *object, const char *name,
			      uint32_t attempt);
void ck_nri_object_unref(struct ck_nri_object *object);
struct ck_nri_object *ck_nri_object_ref(struct ck_nri_object *object);
/* NULL: it does not know it */
struct ck_recipient *ck_recipient_find(const struct ck_nri_object *object,
				       const struct ck_plugin *plugin);
/* NULL: out of memory */
struct ck_recipient *ck_recipient_add(struct ck_nri_object *object, struct ck_plugin *plugin);
void ck_recipient_drop(struct ck_nri_object *object, const struct ck_plugin *plugin);
/* ck_nri_object_forget - the object has left the index: nobody will ask for it any more */
void ck_nri_object_forget(struct ck_nri *nri, struct ck_nri_object *object);
void ck_recipients_plugin_gone(struct ck_nri *nri, const struct ck_plugin *plugin);
/* ck_nri_object_described - takes what the host told, and the id plugins know it by; -CK_ENOMEM,
 * -CK_EMALFORMED */
int ck_nri_object_described(struct ck_nri *nri, struct ck_nri_object *object, const void *bytes,
			    size_t len, struct ck_error *err);
/* ck_nri_object_describe_by_key - what an object is called while nobody has described it: id, name, uid, namespace */
int ck_nri_object_describe_by_key(struct ck_nri_object *object, const struct ck_told *told);
/* ck_recipients_choose - for hooks.choose: who will be told. 0, 1 (required, absent: its name),
 * -CK_ENOMEM */
int ck_recipients_choose(struct ck_nri *nri, const struct ck_told *told, char *names, size_t size);
void ck_recipients_released(struct ck_nri *nri, const struct ck_told *told);
/* ck_recipients_add_all - all who are connected get to know it. -CK_ENOMEM */
int ck_recipients_add_all(struct ck_nri *nri, struct ck_nri_object *object);
/* a required plugin that is not connected (H4); NULL: none */
const char *ck_plugins_absent(const struct ck_nri *nri);
bool ck_plugins_has(const struct ck_nri *nri,
		    const char *name); /* "NN-name" or "name" is connected */
void ck_nri_objects_free(struct ck_nri *nri);

/* ---- host-calls.c: questions to the host ----------------------------------------------------- */

enum ck_host_call_kind { CK_HOST_CALL_DESCRIBE, CK_HOST_CALL_UPDATE, CK_HOST_CALL_EVICT };
/* how it ended; below the lock, from whatever thread ended it */
typedef void ck_host_call_fn(struct ck_nri_job *host_call, int grpc, const void *bytes, size_t len);

struct ck_nri_job {
	struct ck_nri_job *next; /* waiting to be started */
	struct ck_nri *nri;      /* a reference */
	enum ck_host_call_kind what;
	enum ck_kind kind;
	char *id, *text;       /* the object; an eviction's reason */
	struct ck_blob *blob;  /* resources */
	ck_host_call_fn *done; /* NULL: nobody waits for it any more */
	void *owner;
	size_t i; /* the owner's */
};
/* ck_host_call_new - to be started by the next ck_nri_process(). NULL: out of memory */
struct ck_nri_job *ck_host_call_new(struct ck_nri *nri, enum ck_host_call_kind what,
				    enum ck_kind kind, const char *id, const char *text,
				    struct ck_blob *blob, ck_host_call_fn *done, void *owner);
void ck_host_call_forget(struct ck_nri_job *host_call); /* its owner goes; NULL is fine */
/* from ck_nri_process(); gives up the lock for each */
void ck_host_calls_start(struct ck_nri *nri);
bool ck_host_calls_ready(const struct ck_nri *nri); /* is there one to start? */
void ck_host_calls_drop(struct ck_nri *nri);        /* at the end: those not started */

/* ---- event-kinds.c --------------------------------------------------------------------------- */

const char *ck_nri_event_name(enum ck_nri_event event); /* "RunPodSandbox" */
bool ck_nri_event_of_pod(enum ck_nri_event event);
bool ck_nri_event_announces(enum ck_nri_event event);
bool ck_nri_event_stops(enum ck_nri_event event);
bool ck_nri_event_removes(enum ck_nri_event event);
/* or follows something: nobody can refuse it */
bool ck_nri_event_tears_down(enum ck_nri_event event);
/* what was described before may have changed */
bool ck_nri_event_needs_fresh(enum ck_nri_event event);
/* ck_recipient_needs - has this connection still to hear of this event? */
bool ck_recipient_needs(enum ck_nri_event event, const struct ck_recipient *recipient);
/* ck_recipient_mark - the event passes by: its bytes go out, or the connection is not subscribed to
 * it */
void ck_recipient_mark(enum ck_nri_event event, struct ck_recipient *recipient);
/* has to hear of it, and wants to */
bool ck_dispatch_has_recipients(const struct ck_dispatch *dispatch, enum ck_nri_event event);
bool ck_dispatch_has_validators(const struct ck_dispatch *dispatch);

/* ---- dispatch.c, describe-event.c, deliver.c ------------------------------------------------- */

/* An event in a plugin's queue. It outlives its dispatch when the dispatch does not wait for it any
 * longer. */
struct ck_nri_delivery {
	struct ck_nri_delivery *next;
	struct ck_dispatch *dispatch; /* which waits for it; NULL: it is only delivered */
	enum ck_nri_event event;
	struct ck_nri_object *object;
	/* container: the container as this plugin sees it; extra: fields behind these */
	struct ck_blob *pod, *container, *extra;
};

enum ck_dispatch_phase {
	CK_DISPATCH_NEW,          /* described next */
	CK_DISPATCH_AWAIT_RETURN, /* waits for plugins of an earlier life to come back (H3) */
	CK_DISPATCH_DESCRIBE,     /* the host is asked */
	CK_DISPATCH_DELIVER,
	CK_DISPATCH_UPDATE, /* what plugins want of other containers is carried out */
	CK_DISPATCH_DONE,   /* on tours_done */
};

struct ck_dispatch {
	struct ck_dispatch *prev, *next; /* of nri->dispatches, or of tours_done */
	struct ck_nri *nri;
	/* then: what follows this one for the same caller; 0: nothing */
	enum ck_nri_event event, then;
	enum ck_dispatch_phase phase;
	bool before_create, cancelled;
	bool inherited; /* nobody of this life knew the object when it began (H3) */
	bool consulted; /* plugins were asked about this container before it was made */
	bool behind; /* another event of this object is on its dispatch; they never overlap (R30) */
	struct ck_nri_object *object;    /* NULL: nobody knows the object */
	char *pod_id, *names;            /* names: told list of the cache (H3) */
	struct ck_blob *pod, *container; /* as described for this event */
	struct ck_blob *resources, *overhead;
	struct ck_nri_job *host_call;
	uint64_t began, due, pause; /* due: of the phase, or of @at */
	struct ck_nri_delivery *at;     /* which is waited for */
	/* of the last plugin it was with, and that connection's number */
	char index[3];
	uint64_t serial;
	struct ck_adjust *adjust;
	size_t changes, change_i; /* of other containers */
	unsigned told;
	enum ck_nri_event asked; /* what it began as */
	/* who was sent that, for the history; as far as there was memory */
	struct ck_bytes told_names;
	size_t told_before; /* their length without the one that is waited for */
	bool refused;
	char refusal[CK_ERROR_TEXT];
	struct ck_bytes adjustment, owners, result_resources;
	ck_nri_cb *cb;
	void *userdata;
};

/* ck_dispatch_note_told - for the history: @plugin is among those who were sent it */
void ck_dispatch_note_told(struct ck_dispatch *dispatch, const struct ck_plugin *plugin);
/* ck_dispatch_begin - @told: from the cache, NULL: the host's own. -CK_ENOMEM */
int ck_dispatch_begin(struct ck_nri *nri, const struct ck_nri_call *call,
		      const struct ck_told *told, enum ck_nri_event then, ck_nri_cb *cb,
		      void *userdata, struct ck_error *err);
void ck_dispatch_cancel(struct ck_nri *nri, uint64_t entry);
/* from plugin.c: a delivery was answered (code 0), refused, skipped (-1), its plugin is gone (-2),
 * or it cannot be sent (-3) */
enum { CK_NRI_DELIVERY_NEEDLESS = -1, CK_NRI_DELIVERY_LOST = -2, CK_NRI_DELIVERY_UNSENT = -3 };
void ck_dispatch_answered(struct ck_nri_delivery *delivery, struct ck_plugin *plugin,
			  const struct ck_ttrpc_answer *answer, int code);
void ck_dispatches_timers(struct ck_nri *nri, uint64_t now);
uint64_t ck_dispatches_due(const struct ck_nri *nri);
void ck_dispatches_plugins_changed(struct ck_nri *nri); /* somebody has joined: debts may be paid */
/* from ck_nri_process(); gives up the lock for each */
void ck_dispatches_call_back(struct ck_nri *nri);
void ck_dispatches_end_all(struct ck_nri *nri);
void ck_nri_delivery_free(struct ck_nri_delivery *delivery);
/* ck_nri_delivery_begin - plugin.c, when it is the delivery's turn: noted, or false: something has made
 * it needless */
bool ck_nri_delivery_begin(const struct ck_nri_delivery *delivery, const struct ck_plugin *plugin);
/* it has passed, and cannot be sent */
void ck_nri_delivery_unsent(const struct ck_nri_delivery *delivery, const struct ck_plugin *plugin);
/* the steps: each may end the dispatch, which is freed when it has called back */
void ck_dispatch_step(struct ck_dispatch *dispatch);
void ck_dispatch_describe(struct ck_dispatch *dispatch); /* pod, then container; then it goes out */
void ck_dispatch_deliver(
	struct ck_dispatch *dispatch); /* to the next plugin, if none is waited for */
void ck_dispatch_refuse(struct ck_dispatch *dispatch, const char *fmt, ...) CK_PRINTF(2, 3);
void ck_dispatch_end_refused(struct ck_dispatch *dispatch);
void ck_dispatch_done(struct ck_dispatch *dispatch);
/* the plugin it is with has not answered: it goes on without */
void ck_dispatch_timed_out(struct ck_dispatch *dispatch);

/* ---- plugin.c: one connection ---------------------------------------------------------------- */

enum ck_plugin_state {
	CK_PLUGIN_CONNECTED,     /* RegisterPlugin has not come */
	CK_PLUGIN_REGISTERED,    /* Configure is out */
	CK_PLUGIN_LISTING,       /* a recipient; the host describes what it will be told of */
	CK_PLUGIN_SYNCHRONIZING, /* Synchronize is out */
	CK_PLUGIN_READY,
	CK_PLUGIN_REFUSED, /* closed when its answer is out */
	CK_PLUGIN_CLOSED,  /* freed by ck_nri_process() */
};

struct ck_synchronize_item {
	struct ck_nri_object *object; /* NULL: left out */
	struct ck_blob *description;  /* NULL: not described yet */
	struct ck_nri_job *host_call;
};

struct ck_plugin {
	struct ck_plugin *prev, *next; /* by index, then by age */
	struct ck_nri *nri;
	uint64_t serial;
	enum ck_plugin_state state;
	char name[CK_NRI_NAME_MAX + 1]; /* "NN-name"; "" not registered */
	enum ck_nri_policy policy;
	int launched; /* number, -1: external */
	int fd;       /* -1: closed */
	int child_fd; /* to be given to the launcher; -1: done */
	int pid;
	struct ck_ttrpc *ttrpc;
	bool writing; /* epoll watches for room */
	bool pumping;
	unsigned events;
	bool old;       /* its stub knows no calls of their own for nine events: StateChange */
	bool adjusting; /* wants to change containers that exist (H7) */
	bool want_snapshot, want_launch;
	uint64_t since, due; /* due: of the handshake's step */
	uint32_t call;       /* in flight; 0: none */
	uint64_t call_due;   /* of it */
	uint64_t overdue_since;
	/* the event in flight; NULL: call is of the handshake, or it was forgotten */
	struct ck_nri_delivery *in_flight;
	struct ck_nri_delivery *queue, **queue_end;
	unsigned queued;
	uint64_t sent, late, failed;
	char last_error[64];
	struct ck_synchronize_item *items; /* what Synchronize will hold: pods first */
	size_t items_n, items_room, items_asked, items_open, items_sent;
	/* away: of those that failed, because the runtime cannot be asked */
	size_t items_failed, items_away;
	uint64_t listing, pause; /* since when; before those that failed are asked again */
};

/* ck_plugin_add - @fd is taken, also on failure. @launched: its number, -1: from the socket.
 * -CK_ENOMEM, -CK_EIO */
int ck_plugin_add(struct ck_nri *nri, int fd, int launched, struct ck_plugin **ret_plugin,
		  struct ck_error *err);
void ck_plugin_close(struct ck_plugin *plugin, enum ck_log_level level, const char *fmt, ...)
	CK_PRINTF(3, 4);
/* ck_plugins_free_closed - those CLOSED: their dispatches go on without them. Not while somebody walks
 * nri->plugins */
void ck_plugins_free_closed(struct ck_nri *nri);
void ck_plugin_io(struct ck_plugin *plugin, uint32_t events); /* epoll's */
void ck_plugin_timers(struct ck_plugin *plugin, uint64_t now);
uint64_t ck_plugin_due(const struct ck_plugin *plugin);
/* ck_plugin_enqueue - the delivery is taken; it may be answered from inside */
void ck_plugin_enqueue(struct ck_plugin *plugin, struct ck_nri_delivery *delivery);
/* ck_plugin_unqueue - those of @known that were not sent, announcements only, are taken out and
 * answered as skipped */
void ck_plugin_unqueue(struct ck_plugin *plugin, const struct ck_nri_object *object);
/* send what is next, if nothing is in flight; write */
void ck_plugin_pump(struct ck_plugin *plugin);
void ck_plugin_ready(struct ck_plugin *plugin); /* from synchronize.c: it has its list */
/* is it a recipient? From the moment on in which its snapshot is taken */
static inline bool ck_plugin_joined(const struct ck_plugin *plugin)
{
	return plugin->state >= (CK_BROKEN(R2) ? CK_PLUGIN_READY : CK_PLUGIN_LISTING) &&
	       plugin->state <= CK_PLUGIN_READY;
}
static inline bool ck_plugin_wants(const struct ck_plugin *plugin, enum ck_nri_event event)
{
	return plugin->events & 1u << (event - 1);
}
enum ck_nri_policy ck_plugin_policy(const struct ck_nri *nri, const char *name);
bool ck_plugin_name_is(const char *full, const char *name); /* "10-a" is called "10-a" and "a" */
/* ck_plugin_call - a call of the handshake; its answer is ck_synchronize_answered()'s or plugin.c's.
 * Negative: it was closed */
int ck_plugin_call(struct ck_plugin *plugin, const char *method, const struct ck_bytes *message,
		   uint64_t timeout);

/* ---- synchronize.c --------------------------------------------------------------------------- */

/* ck_synchronize_snapshot - from ck_nri_process(), without the lock: what there is, as the cache or the
 * host tells */
int ck_synchronize_snapshot(struct ck_plugin *plugin);
void ck_synchronize_continue(
	struct ck_plugin *plugin); /* ask for descriptions; when all are there, send */
void ck_synchronize_ask_again(struct ck_plugin *plugin); /* those the host could not describe */
void ck_synchronize_answered(struct ck_plugin *plugin, const struct ck_ttrpc_answer *answer);
void ck_synchronize_fini(struct ck_plugin *plugin);

/* ---- unsolicited.c --------------------------------------------------------------------------- */

/* ck_update_requested - the plugin called UpdateContainers */
void ck_update_requested(struct ck_plugin *plugin, const struct ck_ttrpc_request *request);
/* ck_update_plain - changes nobody waits for: @adjust's; each is tried, failures are logged */
void ck_update_plain(struct ck_nri *nri, const struct ck_plugin *plugin, struct ck_adjust *adjust);
void ck_update_evictions(struct ck_nri *nri, const struct ck_plugin *plugin,
			 const struct ck_adjust *adjust);
/* ck_update_target - the runtime's id of a container this plugin (NULL: anybody) knows; NULL: it
 * does not (H8) */
const char *ck_update_target(struct ck_nri *nri, const struct ck_plugin *plugin, const char *id);

/* ---- plugin-socket.c ------------------------------------------------------------------------- */

int ck_nri_listen(struct ck_nri *nri, struct ck_error *err); /* sets nri->listen_fd */
void ck_nri_accept(struct ck_nri *nri);
void ck_nri_unlisten(struct ck_nri *nri);

/* ---- nri.c ----------------------------------------------------------------------------------- */

#define CK_NRI_LOG_LINES 16u

typedef int ck_nri_snapshot_fn(int (*fn)(const struct ck_told *object, void *arg), void *arg,
			       void *source);

struct ck_nri {
	unsigned refs; /* the opener's, and one per job; below the lock */
	struct ck_host_process home;
	pthread_mutex_t lock;
	pthread_t thread; /* in ck_nri_process() */
	bool processing, started, stopping, closed;
	/* options */
	struct ck_nri_host host;
	char *socket_path, *status_path, *runtime_name, *runtime_version;
	unsigned socket_mode;
	uint64_t registration_timeout, request_timeout, synchronize_timeout, late_max;
	enum ck_nri_policy policy;
	struct ck_nri_rule *rules;
	size_t rules_n;
	struct ck_nri_launched *launched;
	size_t launched_n;
	enum ck_nri_adjust adjust;
	unsigned *allow_uids;
	size_t allow_uids_n;
	uint64_t (*clock)(void *userdata);
	void *clock_userdata;
	/* where snapshots come from: api-nri.c */
	ck_nri_snapshot_fn *snapshot;
	void *snapshot_source;
	/* the loop */
	int epoll_fd, event_fd, timer_fd, listen_fd;
	uint64_t started_at;
	uint64_t armed;        /* the timer; 0: not */
	uint64_t accept_again; /* descriptors have run out; 0: they have not */
	bool signalled;
	/* what there is */
	struct ck_plugin *plugins; /* unregistered ones first */
	size_t plugins_n;
	uint64_t serial;
	struct ck_nri_object *objects; /* all objects; and two ways to find one */
	struct ck_nri_object *by_id, *by_nri_id;
	unsigned not_created; /* of them: asked about before they exist (H7) */
	bool free_closed;     /* a plugin is CLOSED */
	struct ck_dispatch *dispatches, *dispatches_done;
	struct ck_nri_job *host_calls, **host_calls_end;
	unsigned describing;
	/* the status file */
	bool changed;
	uint64_t status_due;
	bool status_failed; /* the last time, and that was said */
	/* lines for the host's log */
	struct {
		enum ck_log_level level;
		char text[CK_ERROR_TEXT];
	} log[CK_NRI_LOG_LINES];
	unsigned log_n, log_lost;
};

int ck_nri_open_impl(const struct ck_nri_options *options, struct ck_nri **ret_nri,
		     struct ck_error *err);
int ck_nri_start_impl(struct ck_nri *nri, ck_nri_snapshot_fn *snapshot, void *source,
		      struct ck_error *err);
void ck_nri_stop_impl(struct ck_nri *nri);
void ck_nri_close_impl(struct ck_nri *nri);
int ck_nri_process_impl(struct ck_nri *nri);
uint64_t ck_nri_timeout_impl(struct ck_nri *nri);
int ck_nri_plugins_impl(struct ck_nri *nri,
			int (*fn)(const struct ck_nri_plugin *plugin, void *userdata),
			void *userdata);

void ck_nri_ref(struct ck_nri *nri);
/* below the lock; true: it was the last, and both are gone */
bool ck_nri_unref(struct ck_nri *nri);
void ck_nri_lock(struct ck_nri *nri);
void ck_nri_unlock(struct ck_nri *nri); /* wakes ck_nri_process() */
uint64_t ck_nri_now(const struct ck_nri *nri);
void ck_nri_log(struct ck_nri *nri, enum ck_log_level level, const char *fmt, ...) CK_PRINTF(3, 4);
/* ck_nri_watch - @what: a plugin, or NULL for the listener. 0, -CK_EIO */
int ck_nri_watch(struct ck_nri *nri, int fd, uint32_t events, void *what, bool again);
#endif
