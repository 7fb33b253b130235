/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_NRI_INT_H
#define CK_HOOKS_NRI_INT_H
/*
 * What the files of hooks/ share. Each file calls only files above it in this list:
 *
 *   nri-core.c        the lock, references, the clock, the log, the epoll set, shared bytes
 *   event-kinds.c     what the events are: which announce an object, which end it
 *   nri-objects.c     the pods and containers that plugins know, by id
 *   plugin-list.c     the connections in index order; policies; disconnecting one
 *   recipients.c      which connection knows which object; who is chosen at a commit
 *   host-calls.c      calls to the host: describe, update, evict
 *   plugin-queue.c    the events of one connection: queued, one in flight, sent
 *   unsolicited.c     changes and evictions that plugins ask for
 *   synchronize.c     the first list of a connection
 *   plugin.c          one connection from connect to close: handshake, requests, timers
 *   plugin-socket.c   the socket plugins connect to
 *   deliver.c         an event goes to one plugin after the other; the answers are merged
 *   describe-event.c  what plugins are told: the pod and the container of an event
 *   dispatch.c        one event from its begin to its callback
 *   nri.c             open, process, close
 *
 * The lock. The cache calls choose, released and the snapshot's function inside its critical
 * section, and they take the lock. The cache and the host may call us with a lock of their own
 * held. So nothing calls the cache or the host while it holds the lock. Such work is put on a list,
 * and ck_nri_process() does it without the lock: host_calls, ended, dispatches_done, want_snapshot,
 * want_launch, log.
 */
#include <pthread.h>
#include <stdbool.h>

#include "hooks/adjust/adjust.h"
#include "hooks/wire/ttrpc.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/hash.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/host-process.h"

#include <utlist.h>

struct ck_dispatch;
struct ck_nri_delivery;
struct ck_plugin;

#define CK_NRI_FOREVER UINT64_MAX
#define CK_NRI_SERVICE_PLUGIN  "nri.pkg.api.v1alpha1.Plugin"
#define CK_NRI_SERVICE_RUNTIME "nri.pkg.api.v1alpha1.Runtime"
#define CK_NRI_VERSION         "v0.12.5" /* the NRI version plugins are told we implement */

/* ---- nri-core.c ------------------------------------------------------------------------------ */

void ck_nri_ref(struct ck_nri *nri);
/* below the lock; true: it was the last reference, and both the nri and the lock are gone */
bool ck_nri_unref(struct ck_nri *nri);
void ck_nri_lock(struct ck_nri *nri);
void ck_nri_unlock(struct ck_nri *nri); /* wakes ck_nri_process() */
uint64_t ck_nri_now(const struct ck_nri *nri);
void ck_nri_log(struct ck_nri *nri, enum ck_log_level level, const char *fmt, ...) CK_PRINTF(3, 4);
/* ck_nri_watch - @what: a plugin, or NULL for the listener. 0, -CK_EIO */
int ck_nri_watch(struct ck_nri *nri, int fd, uint32_t events, void *what, bool again);

/* Bytes that an object, its events and the queues they wait in share. */
struct ck_blob {
	unsigned refs; /* below the lock */
	size_t len;
	unsigned char bytes[];
};
struct ck_blob *ck_blob_new(const void *p, size_t len); /* NULL: out of memory */
struct ck_blob *ck_blob_ref(struct ck_blob *blob);      /* NULL in, NULL out */
void ck_blob_unref(struct ck_blob *blob);

/* ---- event-kinds.c --------------------------------------------------------------------------- */

const char *ck_nri_event_name(enum ck_nri_event event); /* "RunPodSandbox" */
bool ck_nri_event_of_pod(enum ck_nri_event event);
bool ck_nri_event_announces(enum ck_nri_event event);
bool ck_nri_event_stops(enum ck_nri_event event);
bool ck_nri_event_removes(enum ck_nri_event event);
/* Stop, Remove and Post events: nobody can refuse them */
bool ck_nri_event_tears_down(enum ck_nri_event event);
/* the object may have changed since it was described; the host is asked again */
bool ck_nri_event_needs_fresh(enum ck_nri_event event);

/* ---- nri-objects.c: the pods and containers plugins know ------------------------------------- */

#define CK_NRI_CONTAINER_PID 12u /* field of Container */

/* A pod or container, while some plugin may still have to hear of it. */
struct ck_nri_object {
	unsigned refs; /* the index's, dispatches', deliveries' */
	enum ck_kind kind;
	char *id;         /* the runtime's; "" while it is not created */
	char *nri_id;     /* the id plugins know it by; mostly the same */
	char *sandbox_id; /* containers */
	char *name;       /* containers plugins were asked about before they existed; "" else */
	uint32_t attempt;
	uint64_t entry;   /* of the cache; 0: none */
	struct ck_blob *description; /* the last one; at first only what its key tells */
	uint64_t pid;     /* of a container, as last described; 0: never */
	bool described;   /* by the host, not only by its key */
	/* chosen for in this life of the process: the told list of the cache is not used (H3) */
	bool ours;
	/* Its Stop was queued for somebody, its Remove is being sent: who joins from now on does
	 * not hear it (H1). A container that is described as stopped counts, too. */
	bool stop_begun, remove_begun;
	bool gone;        /* out of the index */
	struct ck_recipient *recipients;
	struct ck_nri_object *prev, *next; /* of nri->objects; gone: of nri->ended */
	UT_hash_handle by_id, by_nri_id;   /* by_nri_id: only where it is another id */
};

/* ck_nri_object_find - by either id; NULL: there is none */
struct ck_nri_object *ck_nri_object_find(struct ck_nri *nri, enum ck_kind kind, const char *id);
/* ck_nri_object_ensure - found or new; not a reference. @told NULL: only @kind and @id are known.
 * NULL: out of memory */
struct ck_nri_object *ck_nri_object_ensure(struct ck_nri *nri, enum ck_kind kind, const char *id,
					   const struct ck_told *told);
/* ck_nri_object_not_created - plugins are asked about it before it exists: its id is one that only
 * plugins know (H7). -CK_ENOMEM */
int ck_nri_object_not_created(struct ck_nri *nri, struct ck_nri_object *object, const char *name,
			      uint32_t attempt);
/* ck_nri_object_find_not_created - the one that @told names by its sandbox, name and attempt */
struct ck_nri_object *ck_nri_object_find_not_created(struct ck_nri *nri,
						     const struct ck_told *told);
/* ck_nri_object_created - it exists now, as @id. -CK_ENOMEM */
int ck_nri_object_created(struct ck_nri *nri, struct ck_nri_object *object, const char *id);
struct ck_nri_object *ck_nri_object_ref(struct ck_nri_object *object);
void ck_nri_object_unref(struct ck_nri_object *object);
/* ck_nri_object_forget - it leaves the index; nobody will ask for it any more */
void ck_nri_object_forget(struct ck_nri *nri, struct ck_nri_object *object);
/* ck_nri_object_described - copies the host's description, and takes the id plugins know it by from
 * it. -CK_ENOMEM, -CK_EMALFORMED */
int ck_nri_object_described(struct ck_nri *nri, struct ck_nri_object *object, const void *bytes,
			    size_t len, struct ck_error *err);
/* ck_nri_object_known - what the host knows of an object that it cannot describe. It takes the
 * place of the key alone, and the host is asked again as before. @bytes: NULL: nothing */
void ck_nri_object_known(struct ck_nri *nri, struct ck_nri_object *object, const void *bytes,
			 size_t len);
/* is @container one of @pod? Either may be NULL */
bool ck_nri_object_is_in(const struct ck_nri_object *container, const struct ck_nri_object *pod);
void ck_nri_objects_free(struct ck_nri *nri);

/* ---- plugin-list.c: who is connected --------------------------------------------------------- */

enum ck_plugin_state {
	CK_PLUGIN_CONNECTED,     /* RegisterPlugin has not come */
	CK_PLUGIN_REGISTERED,    /* Configure is sent */
	CK_PLUGIN_LISTING,       /* a recipient; the host describes the objects of its list */
	CK_PLUGIN_SYNCHRONIZING, /* Synchronize is sent */
	CK_PLUGIN_READY,
	CK_PLUGIN_REFUSED,       /* closed when its answer is sent */
	CK_PLUGIN_CLOSED,        /* freed by ck_plugins_free_closed() */
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
	enum ck_nri_policy policy; /* the stronger of the administrator's and its own */
	bool keep_connected;       /* it asks not to be disconnected because it is overdue */
	int launched; /* number, -1: external */
	int fd;       /* -1: closed */
	int child_fd; /* to be given to the launcher; -1: done */
	int pid;
	struct ck_ttrpc *ttrpc;
	bool writing; /* epoll watches for room to write */
	bool pumping;
	unsigned events;
	bool old;       /* its stub has no methods of their own for nine events: StateChange */
	bool adjusting; /* wants to change containers that exist (H7) */
	bool want_snapshot, want_launch;
	uint64_t since, due; /* due: of the handshake's step */
	uint32_t call;       /* in flight; 0: none */
	uint64_t call_due;   /* of it */
	/* since then it has owed an answer, to an event or to Synchronize, for longer than
	 * request_timeout: its events wait, and nobody waits for it but events that its silence
	 * fails (H5). 0: it does not */
	uint64_t overdue_since;
	/* the event in flight; NULL: call is of the handshake, or it was forgotten */
	struct ck_nri_delivery *in_flight;
	struct ck_nri_delivery *queue;
	unsigned queued;
	uint64_t sent, late, failed;
	char last_error[CK_TEXT_MAX + 1];
	struct ck_synchronize_item *items; /* what Synchronize will hold */
	size_t items_n, items_room, items_asked, items_open, items_sent;
	/* away: of those that failed, because the runtime cannot be asked */
	size_t items_failed, items_away;
	uint64_t listing, pause; /* since when; before those that failed are asked again */
};

/* A connection that has ended with an error, until its plugin registers again. */
struct ck_nri_gone {
	struct ck_nri_plugin last; /* without its texts, which are these */
	char name[CK_NRI_NAME_MAX + 1], error[CK_TEXT_MAX + 1];
};

/* ck_plugins_add - at its place: by index, the older connection first; unregistered ones before
 * all */
void ck_plugins_add(struct ck_plugin *plugin);
void ck_plugins_remove(struct ck_plugin *plugin);
/* ck_plugin_unregistered - it dialled the socket, and has not registered or was refused */
bool ck_plugin_unregistered(const struct ck_plugin *plugin);
/* how many of those there are, or of all others; each kind has seats of its own */
unsigned ck_plugins_count(const struct ck_nri *nri, bool unregistered);
/* NULL: that connection is gone */
struct ck_plugin *ck_plugin_find(const struct ck_nri *nri, uint64_t serial);
bool ck_plugins_has(const struct ck_nri *nri, const char *name); /* "NN-name" or "name" is there */
/* a required plugin that is not connected (H4); NULL: none */
const char *ck_plugins_absent(const struct ck_nri *nri);
enum ck_nri_policy ck_plugin_policy(const struct ck_nri *nri, const char *name);
/* ck_plugin_close - @fmt: why. With CK_LOG_WARNING and CK_LOG_ERROR that is its last error */
void ck_plugin_close(struct ck_plugin *plugin, enum ck_log_level level, const char *fmt, ...)
	CK_PRINTF(3, 4);
/* ck_plugins_forget_gone - a plugin of this name is back: its last error is no longer shown */
void ck_plugins_forget_gone(struct ck_nri *nri, const char *name);
/* ck_plugin_show - as ck_nri_plugins() tells; borrowed */
void ck_plugin_show(const struct ck_plugin *plugin, struct ck_nri_plugin *ret_shown);
/* is it a recipient? From the moment on in which its snapshot is taken */
bool ck_plugin_joined(const struct ck_plugin *plugin);
static inline bool ck_plugin_wants(const struct ck_plugin *plugin, enum ck_nri_event event)
{
	return plugin->events & 1u << (event - 1);
}

/* ---- recipients.c: which connection knows which object --------------------------------------- */

/* One connection and one object it knows. Made once, by choose or by a snapshot: so an object
 * reaches a connection once. */
struct ck_recipient {
	struct ck_recipient *next;
	struct ck_plugin *plugin;
	uint64_t serial; /* of that connection: an object out of the index may outlive it */
	bool listed;  /* by a snapshot: the object comes with Synchronize, not as an event */
	bool told;    /* its announcement was sent, or the plugin has not subscribed to it */
	bool stopped; /* the same of its Stop */
	bool removed;
	unsigned announcing; /* announcements in the plugin's queue */
	unsigned stopping;   /* Stops */
};

/* NULL: this connection does not know the object */
struct ck_recipient *ck_recipient_find(const struct ck_nri_object *object,
				       const struct ck_plugin *plugin);
/* NULL: out of memory */
struct ck_recipient *ck_recipient_add(struct ck_nri_object *object, struct ck_plugin *plugin);
void ck_recipient_drop(struct ck_nri_object *object, const struct ck_plugin *plugin);
/* ck_recipient_consulted - was it asked about the container before that was created, or will be?
 * NULL is fine */
bool ck_recipient_consulted(const struct ck_recipient *recipient);
/* ck_recipient_needs - has this connection still to hear of this event? */
bool ck_recipient_needs(enum ck_nri_event event, const struct ck_recipient *recipient);
/* ck_recipient_mark - the event is sent, or the plugin has not subscribed to it */
void ck_recipient_mark(enum ck_nri_event event, struct ck_recipient *recipient);
/* ck_recipients_choose - for hooks.choose: who will be told. 0, 1 (a required plugin is absent: its
 * name) */
int ck_recipients_choose(struct ck_nri *nri, const struct ck_told *told, char *names, size_t size);
/* ck_recipients_released - for hooks.released */
void ck_recipients_released(struct ck_nri *nri, const struct ck_told *told);
/* ck_recipients_add_all - all who are connected get to know it. -CK_ENOMEM */
int ck_recipients_add_all(struct ck_nri *nri, struct ck_nri_object *object);
void ck_recipients_plugin_gone(struct ck_nri *nri, const struct ck_plugin *plugin);

/* ---- host-calls.c: calls to the host; it sees one as a struct ck_nri_job --------------------- */

enum ck_host_call_kind { CK_HOST_CALL_DESCRIBE, CK_HOST_CALL_UPDATE, CK_HOST_CALL_EVICT };
/* how it ended; below the lock, from whatever thread ended it */
typedef void ck_host_call_fn(struct ck_nri_job *host_call, int grpc, const void *bytes, size_t len);

struct ck_nri_job {
	struct ck_nri_job *prev, *next; /* of nri->host_calls: to be started */
	struct ck_nri *nri;      /* a reference */
	enum ck_host_call_kind what;
	enum ck_kind kind;
	char *id, *text;         /* the object; an eviction's reason */
	struct ck_blob *blob;    /* resources */
	ck_host_call_fn *done;   /* NULL: nobody waits for it any more */
	void *owner;
	size_t i;                /* the owner's */
};
/* ck_host_call_new - to be started by the next ck_nri_process(). NULL: out of memory */
struct ck_nri_job *ck_host_call_new(struct ck_nri *nri, enum ck_host_call_kind what,
				    enum ck_kind kind, const char *id, const char *text,
				    struct ck_blob *blob, ck_host_call_fn *done, void *owner);
void ck_host_call_forget(struct ck_nri_job *host_call); /* its owner goes; NULL is fine */
/* ck_host_call_fail - the host could not write what it was asked for. Without the lock */
void ck_host_call_fail(struct ck_nri_job *host_call, const char *why);
/* from ck_nri_process(); gives up the lock for each */
void ck_host_calls_start(struct ck_nri *nri);
bool ck_host_calls_ready(const struct ck_nri *nri); /* is there one to start? */
void ck_host_calls_drop(struct ck_nri *nri);        /* at the end: those not started */

/* ---- plugin-queue.c: the events of one connection -------------------------------------------- */

/* instead of an answer's code: something has made the event needless; the connection is gone; it
 * cannot be sent */
enum {
	CK_NRI_DELIVERY_NEEDLESS = -1,
	CK_NRI_DELIVERY_LOST = -2,
	CK_NRI_DELIVERY_UNSENT = -3,
};
/* @answer: NULL with CK_NRI_DELIVERY_NEEDLESS and CK_NRI_DELIVERY_LOST */
typedef void ck_nri_delivery_fn(struct ck_nri_delivery *delivery, struct ck_plugin *plugin,
				const struct ck_ttrpc_answer *answer, int code);

/* An event in a plugin's queue. It outlives its dispatch when that waits for it no longer. */
struct ck_nri_delivery {
	struct ck_nri_delivery *prev, *next;
	ck_nri_delivery_fn *done;
	struct ck_dispatch *dispatch; /* which waits for it; NULL: it is only delivered */
	enum ck_nri_event event;
	struct ck_nri_object *object;
	struct ck_blob *pod;
	struct ck_blob *container; /* as this plugin is to see it */
	struct ck_blob *extra;     /* fields behind these */
};
void ck_nri_delivery_free(struct ck_nri_delivery *delivery);

/* ck_plugin_enqueue - @delivery is taken; it may be answered from inside */
void ck_plugin_enqueue(struct ck_plugin *plugin, struct ck_nri_delivery *delivery);
/* ck_plugin_unqueue - announcements of @object that were not sent are taken out; they end as
 * needless */
void ck_plugin_unqueue(struct ck_plugin *plugin, const struct ck_nri_object *object);
/* ck_plugin_lose_events - the connection is gone: what is in flight or queued ends as lost */
void ck_plugin_lose_events(struct ck_plugin *plugin);
/* ck_plugin_pump - send what is next, if nothing is in flight; write */
void ck_plugin_pump(struct ck_plugin *plugin);
/* ck_plugin_resend - an old plugin does not implement the event's method: the event is sent once
 * more as a StateChange, within the same time. true: @delivery is taken */
bool ck_plugin_resend(struct ck_plugin *plugin, struct ck_nri_delivery *delivery, int code);
/* ck_plugin_event_answered - @delivery is taken */
void ck_plugin_event_answered(struct ck_plugin *plugin, struct ck_nri_delivery *delivery,
			      const struct ck_ttrpc_answer *answer);
/* ck_plugin_call - a call of the handshake. Negative: it was closed */
int ck_plugin_call(struct ck_plugin *plugin, const char *method, const struct ck_bytes *message,
		   uint64_t timeout);

/* ---- unsolicited.c --------------------------------------------------------------------------- */

/* ck_update_requested - the plugin called UpdateContainers */
void ck_update_requested(struct ck_plugin *plugin, const struct ck_ttrpc_request *request);
/* ck_update_plain - changes nobody waits for: each is tried, failures are logged */
void ck_update_plain(struct ck_nri *nri, const struct ck_plugin *plugin, struct ck_adjust *adjust);
void ck_update_evictions(struct ck_nri *nri, const struct ck_plugin *plugin,
			 const struct ck_adjust *adjust);
/* ck_update_target - the runtime's id of a container this plugin (NULL: anybody) knows; NULL: it
 * does not (H8) */
const char *ck_update_target(struct ck_nri *nri, const struct ck_plugin *plugin, const char *id);

/* ---- synchronize.c --------------------------------------------------------------------------- */

/* ck_synchronize_snapshot - from ck_nri_process(), without the lock: what there is, as the cache or
 * the host tells */
int ck_synchronize_snapshot(struct ck_plugin *plugin);
/* ck_synchronize_continue - ask for descriptions; when all are there, send */
void ck_synchronize_continue(struct ck_plugin *plugin);
/* ck_synchronize_ask_again - for descriptions the host could not give */
void ck_synchronize_ask_again(struct ck_plugin *plugin);
void ck_synchronize_answered(struct ck_plugin *plugin, const struct ck_ttrpc_answer *answer);
void ck_synchronize_fini(struct ck_plugin *plugin);

/* ---- plugin.c: one connection ---------------------------------------------------------------- */

/* ck_plugin_add - @fd is taken, also on failure. @launched: its number, -1: from the socket.
 * -CK_ENOMEM, -CK_EIO */
int ck_plugin_add(struct ck_nri *nri, int fd, int launched, struct ck_plugin **ret_plugin,
		  struct ck_error *err);
/* ck_plugins_free_closed - dispatches go on without them. Not while somebody walks nri->plugins */
void ck_plugins_free_closed(struct ck_nri *nri);
void ck_plugin_io(struct ck_plugin *plugin, uint32_t events); /* epoll's */
void ck_plugin_timers(struct ck_plugin *plugin, uint64_t now);
uint64_t ck_plugin_due(const struct ck_plugin *plugin);

/* ---- plugin-socket.c ------------------------------------------------------------------------- */

int ck_nri_listen(struct ck_nri *nri, struct ck_error *err); /* sets nri->listen_fd */
void ck_nri_accept(struct ck_nri *nri);
void ck_nri_unlisten(struct ck_nri *nri);

/* ---- deliver.c, describe-event.c, dispatch.c: one event -------------------------------------- */

enum ck_dispatch_phase {
	CK_DISPATCH_NEW,          /* described next */
	CK_DISPATCH_AWAIT_RETURN, /* plugins of before a restart may return (H3) */
	CK_DISPATCH_DESCRIBE,     /* the host is asked */
	CK_DISPATCH_DELIVER,
	CK_DISPATCH_UPDATE,       /* what plugins want of other containers is carried out */
	CK_DISPATCH_DONE,         /* on dispatches_done */
};

struct ck_dispatch {
	struct ck_dispatch *prev, *next; /* of nri->dispatches, or of dispatches_done */
	struct ck_nri *nri;
	/* then: the event that follows for the same caller; 0: none */
	enum ck_nri_event event, then;
	enum ck_nri_event asked; /* the first event */
	enum ck_dispatch_phase phase;
	bool before_create, cancelled;
	bool inherited; /* nobody of this life knew the object when it began (H3) */
	bool consulted; /* plugins were asked about this container before it was created */
	bool behind;    /* waits for another event of this object: they never overlap (R30) */
	struct ck_nri_object *object;    /* NULL: nobody knows the object */
	char *pod_id, *names;            /* names: told list of the cache (H3) */
	struct ck_blob *pod, *container; /* as described for this event */
	struct ck_blob *resources, *overhead;
	struct ck_nri_job *host_call;
	uint64_t began, due, pause;      /* due: of the phase, or of @at */
	uint64_t asking; /* since when a description is asked for; 0: not yet, or nobody answers */
	struct ck_nri_delivery *at;      /* which is waited for */
	/* of the last plugin it was with, and that connection's number */
	char index[3];
	uint64_t serial;
	struct ck_adjust *adjust;
	size_t updates, update_i;        /* of other containers */
	unsigned told;
	/* who was sent the first event, for the history; as far as there was memory */
	struct ck_bytes told_names;
	size_t told_before;              /* their length without the one that is waited for */
	bool refused;
	char refusal[CK_ERROR_TEXT];
	struct ck_bytes adjustment, owners, result_resources;
	ck_nri_cb *cb;
	void *userdata;
};

/* ck_dispatch_deliver - to the next plugin, if none is waited for; may end the dispatch */
void ck_dispatch_deliver(struct ck_dispatch *dispatch);
/* ck_dispatch_waits - is the plugin it is with still waited for? (H5) */
bool ck_dispatch_waits(const struct ck_dispatch *dispatch);
/* ck_dispatch_timed_out - the plugin it is with has not answered: it goes on without */
void ck_dispatch_timed_out(struct ck_dispatch *dispatch);
/* has anybody still to hear of it, and subscribed to it? */
bool ck_dispatch_has_recipients(const struct ck_dispatch *dispatch, enum ck_nri_event event);
bool ck_dispatch_has_validators(const struct ck_dispatch *dispatch);
/* ck_dispatch_note_told - for the history: @plugin is among those who were sent it */
void ck_dispatch_note_told(struct ck_dispatch *dispatch, const struct ck_plugin *plugin);
void ck_dispatch_refuse(struct ck_dispatch *dispatch, const char *fmt, ...) CK_PRINTF(2, 3);
/* ck_dispatch_withdraw - who was not sent it yet is not sent it: it is undone. May end the
 * dispatch */
void ck_dispatch_withdraw(struct ck_dispatch *dispatch);
/* ck_dispatch_end_refused, ck_dispatch_end - it is freed when it has called back */
void ck_dispatch_end_refused(struct ck_dispatch *dispatch);
void ck_dispatch_end(struct ck_dispatch *dispatch);

/* ck_dispatch_describe - pod, then container; then it is delivered. May end the dispatch */
void ck_dispatch_describe(struct ck_dispatch *dispatch);

/* ck_dispatch_begin - @told: from the cache, NULL: the host's own. -CK_ENOMEM */
int ck_dispatch_begin(struct ck_nri *nri, const struct ck_nri_call *call,
		      const struct ck_told *told, enum ck_nri_event then, ck_nri_cb *cb,
		      void *userdata, struct ck_error *err);
/* ck_dispatch_cancel - the entry was abandoned: nobody further is told of its commit */
void ck_dispatch_cancel(struct ck_nri *nri, uint64_t entry);
void ck_dispatches_timers(struct ck_nri *nri, uint64_t now);
uint64_t ck_dispatches_due(const struct ck_nri *nri);
/* from ck_nri_process(); gives up the lock for each */
void ck_dispatches_call_back(struct ck_nri *nri);
void ck_dispatches_end_all(struct ck_nri *nri);

/* ---- nri.c ----------------------------------------------------------------------------------- */

#define CK_NRI_LOG_LINES 16u

typedef int ck_nri_snapshot_fn(int (*fn)(const struct ck_told *object, void *arg), void *arg,
			       void *source);

struct ck_nri {
	unsigned refs; /* the opener's, and one per host call; below the lock */
	struct ck_host_process home;
	pthread_mutex_t lock;
	pthread_t thread; /* in ck_nri_process() */
	bool processing, started, stopping, closed;
	/* options */
	struct ck_nri_host host;
	char *socket_path, *status_path, *runtime_name, *runtime_version;
	bool starts_late; /* introduce.h */
	unsigned socket_mode;
	uint64_t registration_timeout, request_timeout, synchronize_timeout;
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
	/* the event loop */
	int epoll_fd, event_fd, timer_fd, listen_fd;
	uint64_t started_at;
	uint64_t armed;        /* the timer; 0: not */
	uint64_t accept_again; /* descriptors have run out; 0: they have not */
	bool signalled;
	/* what there is */
	struct ck_plugin *plugins; /* in index order, unregistered ones first */
	uint64_t serial;
	bool plugin_closed; /* one is CLOSED */
	bool plugin_joined; /* one has its snapshot: dispatches may wait for it (H3) */
	bool plugin_overdue; /* one has become overdue: dispatches may no longer wait for it (H5) */
	struct ck_nri_gone gone[CK_NRI_GONE_MAX]; /* the oldest first */
	size_t gone_n;
	struct ck_nri_object *objects; /* all in the index; and two ways to find one */
	struct ck_nri_object *by_id, *by_nri_id;
	unsigned not_created; /* of them: plugins were asked before they exist (H7) */
	struct ck_nri_object *ended; /* out of the index: Stop and Remove begin next */
	uint64_t ended_due;          /* ... but not before: there was no memory */
	struct ck_dispatch *dispatches, *dispatches_done;
	struct ck_nri_job *host_calls; /* to be started */
	unsigned describing;
	/* the status file */
	bool changed;
	uint64_t status_due;
	bool status_failed; /* the last time, and that was logged */
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
/* ck_nri_send_now - what has just begun is sent from this thread: to wake ck_nri_process() for it
 * costs more than to send it. Where I/O is allowed, and not inside of ck_nri_process() */
void ck_nri_send_now(struct ck_nri *nri);
/* ck_nri_leave - ck_nri_unlock() that wakes ck_nri_process() only if it has something to do */
void ck_nri_leave(struct ck_nri *nri);
uint64_t ck_nri_timeout_impl(struct ck_nri *nri);
int ck_nri_plugins_impl(struct ck_nri *nri,
			int (*fn)(const struct ck_nri_plugin *plugin, void *userdata),
			void *userdata);
#endif
