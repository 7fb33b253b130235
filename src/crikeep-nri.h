/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRIKEEP_NRI_H
#define CRIKEEP_NRI_H
/*
 * The runtime side of NRI, the Node Resource Interface: a socket for plugins, the plugins it
 * launches, and the events they are sent. Of a pod or container that is made, plugins hear when it
 * is committed: when it is decided that the kubelet gets it.
 *
 * With the cache of crikeep.h:
 *
 *	ck_nri_open(&options, &nri, &err);
 *	hooks.size = sizeof(hooks);
 *	ck_nri_hooks(nri, &hooks);              and options.hooks = &hooks for ck_cache_open()
 *	ck_nri_start(nri, cache, &err);         plugins are launched and let in from here on
 *	... poll ck_nri_fd() beside ck_fd(), and call ck_nri_process() ...
 *
 * Without it: choose and released of struct ck_hooks are called by you, choose inside the critical
 * section that makes an object visible; ck_nri_send() sends RUN_POD_SANDBOX or CREATE_CONTAINER
 * before it, and ck_nri_host.snapshot lists what there is. Everything else of an object's life
 * (start, update, stop, remove) is a ck_nri_send() in both cases.
 *
 * Words. A plugin is NN-name: an index of two digits and a name. A connection is one life of a
 * plugin: when it returns, it is another one. A connection knows an object if it was chosen for it,
 * or had it in its Synchronize list; each object reaches a connection in exactly one of these ways,
 * and only who knows an object hears of the rest of its life. A plugin is overdue while it owes an
 * answer for longer than request_timeout.
 *
 * Bytes. Pods, containers, resources and adjustments are messages of package nri.pkg.api.v1alpha1,
 * encoded. They are passed on as they are, fields this library never heard of included. Their
 * strings must be UTF-8, or plugins refuse the whole message.
 *
 * Returns, errors, threads, ownership, fork and time are as in crikeep.h. Every function may be
 * called from any thread. Callbacks come from ck_nri_process(), and a last time from
 * ck_nri_close(), with no lock held; they may call everything but these two. Not so @fn of
 * ck_nri_plugins() and options.clock: they come from below a lock, and call nothing of this
 * library. choose, released and the @fn that host.snapshot is given are quick, and may be called
 * with a lock of the host's held.
 * Source: containerd/nri pkg/api/api.proto and pkg/adaptation at v0.12. crikeep-nri(7) tells what
 * plugins may rely on, crikeep-rules(7) has the rules by number, as (H7).
 */
#include "crikeep.h" /* beside this one, wherever that is */

#ifdef __cplusplus
extern "C" {
#endif

/* Events, with the protocol's numbers; in a subscription the bit 1 << (event - 1).   Since: 0.1 */
#define CK_NRI_EVENTS(X)                                                                  \
	X(RUN_POD_SANDBOX, 1, "RunPodSandbox")                                            \
	X(STOP_POD_SANDBOX, 2, "StopPodSandbox")                                          \
	X(REMOVE_POD_SANDBOX, 3, "RemovePodSandbox")                                      \
	X(CREATE_CONTAINER, 4, "CreateContainer")                                         \
	X(POST_CREATE_CONTAINER, 5, "PostCreateContainer")                                \
	X(START_CONTAINER, 6, "StartContainer")                                           \
	X(POST_START_CONTAINER, 7, "PostStartContainer")                                  \
	X(UPDATE_CONTAINER, 8, "UpdateContainer")                                         \
	X(POST_UPDATE_CONTAINER, 9, "PostUpdateContainer")                                \
	X(STOP_CONTAINER, 10, "StopContainer")                                            \
	X(REMOVE_CONTAINER, 11, "RemoveContainer")                                        \
	X(UPDATE_POD_SANDBOX, 12, "UpdatePodSandbox")                                     \
	X(POST_UPDATE_POD_SANDBOX, 13, "PostUpdatePodSandbox")                            \
	X(VALIDATE_CONTAINER_ADJUSTMENT, 14, "ValidateContainerAdjustment")

/* Since: 0.1 */
enum ck_nri_event {
#define CK_NRI_EVENT_ENUM(name, value, text) CK_NRI_##name = value,
	CK_NRI_EVENTS(CK_NRI_EVENT_ENUM)
#undef CK_NRI_EVENT_ENUM
};

/*
 * What a plugin's failure does to the event that asked it. Each value includes those before it.
 * Teardown (Stop..., Remove...,
 * Post...) is never failed by anybody. Values are never reused.   Since: 0.1
 */
enum ck_nri_policy {
	CK_NRI_IGNORE = 1,   /* nothing; while it is overdue it is not waited for */
	/* an error it answers with fails the event; the default, and what containerd and CRI-O
	 * do */
	CK_NRI_ERROR = 2,
	CK_NRI_FAIL = 3,     /* so does no answer in time, or a connection that breaks */
	CK_NRI_REQUIRED = 4, /* and nothing is committed while it is not connected */
};

/* When CreateContainer goes out (H7).   Since: 0.1 */
enum ck_nri_adjust {
	/* with the commit; what a plugin wants to change comes too late, and fails the create */
	CK_NRI_ON_COMMIT = 0,
	CK_NRI_BEFORE_CREATE = 1, /* the host sends it before it creates, and applies the answer */
};

/* Opaque. Both may be used by any thread; one job is ended by one.   Since: 0.1 */
struct ck_nri;
struct ck_nri_job;

/* ---- the host -------------------------------------------------------------------------------- */

/*
 * What is asked of the program that embeds this. Each of the first three returns at once, having
 * started the job or not; ck_nri_job_done() ends it, later or from within the call, from any
 * thread, exactly once. @id and the other arguments live as
 * long as the job. describe and log may not be NULL.   Since: 0.1
 */
struct ck_nri_host {
	size_t size;
	void *userdata;
	/* the PodSandbox or Container with this id as it is now, complete: pid, addresses,
	 * namespaces, resources */
	void (*describe)(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata);
	/* a plugin changes a container: @resources is a LinuxResources; only what is present in it
	 * changes */
	void (*update)(struct ck_nri_job *job, const char *container_id, const void *resources,
		       size_t len, void *userdata);
	/* a plugin wants a container stopped; @reason is its text */
	void (*evict)(struct ck_nri_job *job, const char *container_id, const char *reason,
		      void *userdata);
	/* start launched[@i] with @fd (taken) as its descriptor 3 and the environment of
	 * ck_nri_launched. Return: 0, -CK_E... */
	int (*launch)(unsigned i, int fd, void *userdata);
	/* without a cache: as ck_snapshot(); objects whose end has begun may be left out */
	int (*snapshot)(int (*fn)(const struct ck_told *object, void *arg), void *arg,
			void *userdata);
	void (*log)(enum ck_log_level level, const char *text, void *userdata);
};

/*
 * ck_nri_job_done - the job ended; @job is gone afterwards. A job must be ended even after
 * ck_nri_close() was called.
 * @grpc: 0: done; 5 (NOT_FOUND): there is no such object; else it failed, and a description that is
 * needed is asked for again
 * @bytes: describe: the PodSandbox or Container; copied      Since: 0.1
 */
void ck_nri_job_done(struct ck_nri_job *job, int grpc, const void *bytes, size_t len);

/* ---- open and close -------------------------------------------------------------------------- */

/*
 * A plugin of the host's, started by ck_nri_start(). NRI_PLUGIN_NAME and NRI_PLUGIN_IDX are the
 * parts of its name. An element of
 * an array, without a size: this and struct ck_nri_rule never grow.   Since: 0.1
 */
struct ck_nri_launched {
	const char *name;   /* "NN-name" */
	const char *config; /* its drop-in configuration, as it is; NULL: none */
};

/* A policy of a single plugin.   Since: 0.1 */
struct ck_nri_rule {
	const char *name; /* "NN-name", or "name": with every index */
	enum ck_nri_policy policy;
};

/* All durations in nanoseconds; 0 is the default in brackets. Strings and arrays are copied.  
 * Since: 0.1 */
struct ck_nri_options {
	size_t size;
	const struct ck_nri_host *host; /* copied; required */
	const char *socket_path;        /* plugins dial it; NULL: only those that are launched */
	unsigned socket_mode;           /* [0600] */
	/* rewritten when something changed, for `crikeep plugins`; NULL: nowhere */
	const char *status_path;
	const char *runtime_name, *runtime_version; /* ["crikeep", ck_version()] */
	uint64_t registration_timeout;  /* from the connection to RegisterPlugin [5 s] */
	/* for one event; then the plugin is overdue, and the event goes on [2 s] */
	uint64_t request_timeout;
	uint64_t synchronize_timeout;   /* for the whole list of what there is [10 s] */
	/* overdue for longer than this, a plugin is disconnected [10 s] */
	uint64_t late_max;
	int disconnect_at_once;         /* 1: as late_max 0 would: what Go's runtime side does */
	/* of plugins without a rule [CK_NRI_ERROR]; not CK_NRI_REQUIRED */
	enum ck_nri_policy policy;
	const struct ck_nri_rule *rules;
	size_t rules_n;
	const struct ck_nri_launched *launched;
	size_t launched_n;
	enum ck_nri_adjust adjust;      /* [on commit] */
	const unsigned *allow_uids;     /* who may connect [0 and our own] */
	size_t allow_uids_n;
	/* a test's clock, steered with ck_nri_timeout(); NULL: the kernel's */
	uint64_t (*clock)(void *userdata);
	void *clock_userdata;
};

/*
 * ck_nri_open - make it; nobody is let in yet, so that ck_nri_hooks() can go into ck_cache_open()
 * first
 * Return: 0, -CK_EINVAL, -CK_ENOMEM, -CK_EIO, -CK_EOWNED (a live runtime listens at socket_path, H10).   Since: 0.1
 */
int ck_nri_open(const struct ck_nri_options *options, struct ck_nri **ret_nri,
		struct ck_error *err);
/*
 * ck_nri_start - launch plugins and let others in
 * @cache: whose entries they are told of; NULL: host.snapshot is asked
 * Return: 0, -CK_ESTATE (twice), -CK_EIO, -CK_EINVAL (neither a cache nor a snapshot).   Since: 0.1
 */
int ck_nri_start(struct ck_nri *nri, struct ck_cache *cache, struct ck_error *err);
/*
 * ck_nri_stop - the end is near: connected plugins are sent Shutdown, nobody else is let in. Events still go out.   Since: 0.1
 */
void ck_nri_stop(struct ck_nri *nri);
/*
 * ck_nri_close - disconnect everybody and free; events under way end with what was answered. Not
 * from a callback. NULL is
 * fine. A cache it serves is closed first, and from then on this is the only call.   Since: 0.1
 */
void ck_nri_close(struct ck_nri *nri);

/* ck_nri_fd - becomes readable when ck_nri_process() is due. Borrowed, for poll(2) and epoll(7).
 * Return: the descriptor,
 * -CK_EINVAL, -CK_EFORK.   Since: 0.1 */
int ck_nri_fd(struct ck_nri *nri);
/* ck_nri_process - do what is due; never blocks. One thread at a time. Return: 0, -CK_EDEADLK
 * (called from within itself),
 * -CK_EFORK.   Since: 0.1 */
int ck_nri_process(struct ck_nri *nri, struct ck_error *err);
/* ck_nri_timeout - when it is due next by its own clock: a time, UINT64_MAX never, 0 now.   Since:
 * 0.1 */
uint64_t ck_nri_timeout(struct ck_nri *nri);

/* ck_nri_hooks - what to give to ck_cache_open(). Set ret_hooks->size. Valid until ck_nri_close().
 * Return: 0, -CK_EINVAL,
 * -CK_EFORK.   Since: 0.1 */
int ck_nri_hooks(struct ck_nri *nri, struct ck_hooks *ret_hooks);

/* ---- events ---------------------------------------------------------------------------------- */

/* One event of one object. Everything is copied.   Since: 0.1 */
struct ck_nri_call {
	size_t size;
	/* not VALIDATE_CONTAINER_ADJUSTMENT, which follows CREATE_CONTAINER by itself */
	enum ck_nri_event event;
	const char *pod_id;
	const char *container_id; /* NULL for events of pods */
	/*
	 * CREATE_CONTAINER before the container exists: its name and attempt, by which choose finds
	 * out that these plugins know it, and released that it will never exist: then they are sent
	 * Stop and Remove. NULL: it exists
	 */
	const char *container_name;
	uint32_t attempt;
	/* what plugins are told; NULL: host.describe is asked */
	const void *pod;
	size_t pod_len;
	const void *container;
	size_t container_len;
	/* UPDATE_CONTAINER, UPDATE_POD_SANDBOX: LinuxResources asked for; UPDATE_POD_SANDBOX: those
	 * of the overhead */
	const void *resources;
	size_t resources_len;
	const void *overhead;
	size_t overhead_len;
};

/* How it ended. Borrowed for the callback.   Since: 0.1 */
struct ck_nri_result {
	size_t size;
	/* NULL: agreed. Else "plugin NN-name: its text"; the text may repeat what the container was
	 * given */
	const char *refusal;
	/* CREATE_CONTAINER: merged ContainerAdjustment, empty if nobody wants anything, and
	 * OwningPlugins: who wants what */
	const void *adjustment;
	size_t adjustment_len;
	const void *owners;
	size_t owners_len;
	/* UPDATE_CONTAINER: LinuxResources to ask the runtime for; NULL: those that were asked
	 * for */
	const void *resources;
	size_t resources_len;
	unsigned told;          /* connections that were sent it */
	const char *told_names; /* theirs, separated by ' ' */
};
typedef void ck_nri_cb(const struct ck_nri_result *result, void *userdata);

/*
 * ck_nri_send - send an event to all who know the object and have subscribed to it, one after the
 * other by index @cb comes exactly once, from ck_nri_process(); from ck_nri_close() if it had not
 * come by then. Each recipient has request_timeout, counted from when the event is queued for it.
 * Stop... and Remove... reach each connection once, however often they are sent, and Remove... is
 * preceded by Stop.... CREATE_CONTAINER of an object nobody knows chooses all who are connected.
 * Updates and evictions of other containers that plugins answer with are carried out before @cb.
 * Return: 0, -CK_EINVAL, -CK_ENOMEM, -CK_EFORK, -CK_ECLOSED.   Since: 0.1
 */
int ck_nri_send(struct ck_nri *nri, const struct ck_nri_call *call, ck_nri_cb *cb, void *userdata,
		struct ck_error *err);

/*
 * ck_nri_adjusting - with CK_NRI_ON_COMMIT: a connected plugin has tried to change a container, so
 * creates are going to fail
 * Return: 1 and its name, 0, -CK_EINVAL, -CK_EFORK.   Since: 0.1
 */
int ck_nri_adjusting(struct ck_nri *nri, char *name, size_t size);
/* ck_nri_listens - does a connected plugin that knows this object want this event, and has not had
 * it? What happens again and
 * again to an object (Update...) it has never had. Return: 1, 0.   Since: 0.1 */
int ck_nri_listens(struct ck_nri *nri, enum ck_nri_event event, enum ck_kind kind, const char *id);

/* ---- who is there ---------------------------------------------------------------------------- */

/* A connected plugin. Borrowed for the call.   Since: 0.1 */
struct ck_nri_plugin {
	size_t size;
	const char *name;  /* "NN-name"; "" while it has not registered */
	/* "connected", "registered", "synchronizing", "ready", "overdue", "absent" */
	const char *state;
	enum ck_nri_policy policy;
	int launched;
	int pid;           /* of the peer; 0: not known */
	unsigned events;   /* subscription */
	int adjusting;     /* it has answered with an adjustment that came too late */
	unsigned queued;   /* events that wait for it */
	uint64_t since;    /* connected */
	uint64_t overdue_since; /* 0: it is not */
	uint64_t sent, late, failed; /* events sent, not answered in time, answered with an error */
	/* "RunPodSandbox: UNKNOWN"; without its text, which may repeat secrets. "" none */
	const char *last_error;
};
/*
 * ck_nri_plugins - each connection, in index order; then each required plugin that is absent, by
 * the name of its rule
 * @fn: comes from below the lock, and calls nothing of this library
 * Return: 0, or what @fn returned if not 0, -CK_EFORK.   Since: 0.1
 */
int ck_nri_plugins(struct ck_nri *nri,
		   int (*fn)(const struct ck_nri_plugin *plugin, void *userdata), void *userdata);

#ifdef __cplusplus
}
#endif
#endif
