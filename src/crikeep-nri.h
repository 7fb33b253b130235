/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRIKEEP_NRI_H
#define CRIKEEP_NRI_H
/*
 * The runtime side of NRI, the Node Resource Interface: a socket for plugins, plugins that are
 * launched, and the events that plugins are sent. Plugins hear of a new pod or container when it is
 * committed: when it is decided that the kubelet gets it.
 *
 * With the cache of crikeep.h:
 *
 *	ck_nri_open(&options, &nri, &err);
 *	hooks.size = sizeof(hooks);
 *	ck_nri_hooks(nri, &hooks);              and options.hooks = &hooks for ck_cache_open()
 *	ck_nri_start(nri, cache, &err);         plugins are launched and let in from here on
 *	... poll ck_nri_fd() beside ck_cache_fd(), and call ck_nri_process() ...
 *
 * Without the cache, the host calls choose and released of struct ck_hooks itself: choose inside
 * the critical section that makes an object visible. Before that, ck_nri_send() sends
 * RUN_POD_SANDBOX or CREATE_CONTAINER. ck_nri_host.snapshot lists the objects that exist. In both
 * cases the host sends all other events (start, update, stop, remove) with ck_nri_send().
 *
 * Terms. A plugin is called NN-name: an index of two digits and a name. A connection is one life of
 * a plugin; a plugin that returns is a new connection. A connection knows an object if it was
 * chosen for it, or had it in its Synchronize list. Each object reaches a connection in exactly one
 * of these ways. Only a connection that knows an object hears of its later events. A plugin is
 * overdue while it has owed an answer for longer than request_timeout.
 *
 * Bytes. Pods, containers, resources and adjustments are encoded messages of package
 * nri.pkg.api.v1alpha1. They are passed on as they are, with fields that this library does not
 * know. Their strings must be UTF-8, or plugins refuse the whole message. struct ck_nri_message
 * writes and reads them.
 *
 * Return values, errors, threads, ownership, fork and time are as in crikeep.h. Every function may
 * be called from any thread. Callbacks are called by ck_nri_process(), and for the last time by
 * ck_nri_close(), with no lock held. They may call every function but these two. There are two
 * exceptions: @fn of ck_nri_plugins() and options.clock are called with a lock held, and call no
 * function of this library. choose, released, and the @fn that host.snapshot is given return
 * quickly; the host may call them with a lock of its own held.
 * Source: containerd/nri pkg/api/api.proto and pkg/adaptation at v0.12. crikeep-nri(7) says what
 * plugins may rely on. crikeep-rules(7) is the rule book; rules are named by number, as in (H7).
 */
#include "crikeep.h" /* beside this one, wherever that is */

#ifdef __cplusplus
extern "C" {
#endif

/* Events, with the protocol's numbers. In a subscription, bit 1 << (event - 1).   Since: 0.1 */
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
 * What a plugin's failure does to the event. Each value includes those before it. No plugin can
 * fail Stop..., Remove... and Post... events. A plugin may ask for CK_NRI_FAIL itself (fail_request
 * of NRI v0.12.4); the stronger policy is valid. While a plugin is overdue, only events that its
 * silence fails wait for it. Values are never reused.   Since: 0.1
 */
enum ck_nri_policy {
	CK_NRI_IGNORE = 1,   /* nothing */
	/* an error as its answer fails the event: the default, as in containerd and CRI-O */
	CK_NRI_ERROR = 2,
	CK_NRI_FAIL = 3,     /* a late answer or a broken connection fails it, too */
	CK_NRI_REQUIRED = 4, /* and nothing is committed while the plugin is not connected */
};

/* When CreateContainer is sent (H7).   Since: 0.1 */
enum ck_nri_adjust {
	/* with the commit; an adjustment comes too late then, and fails the creation */
	CK_NRI_ON_COMMIT = 0,
	CK_NRI_BEFORE_CREATE = 1, /* the host sends it before it creates, and applies the answer */
};

/* Opaque. Any thread may use both; one thread ends a job.   Since: 0.1 */
struct ck_nri;
struct ck_nri_job;

/* ---- the host -------------------------------------------------------------------------------- */

/*
 * What the host does for plugins. The first three functions start a job and return at once.
 * ck_nri_job_done() ends each job exactly once: later or from within the function, from any thread.
 * @id and the other arguments live as long as the job. Only describe must not be NULL.
 * Since: 0.1
 */
struct ck_nri_host {
	size_t size;
	void *userdata;
	/* the PodSandbox or Container of this id as it is now, complete: pid, addresses,
	 * namespaces, resources */
	void (*describe)(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata);
	/* a plugin updates a container: @resources is a LinuxResources; only the fields that are
	 * present change */
	void (*update)(struct ck_nri_job *job, const char *container_id, const void *resources,
		       size_t len, void *userdata);
	/* a plugin wants a container stopped; @reason is its text */
	void (*evict)(struct ck_nri_job *job, const char *container_id, const char *reason,
		      void *userdata);
	/* start launched[@i] with @fd (taken) as its descriptor 3, and the environment of
	 * ck_nri_launched. Return: 0, -CK_E... */
	int (*launch)(unsigned i, int fd, void *userdata);
	/* without a cache: as ck_snapshot(). An object is in it from its announcement on until the
	 * host sends its Remove, also while it stops */
	int (*snapshot)(int (*fn)(const struct ck_told *object, void *arg), void *arg,
			void *userdata);
	void (*log)(enum ck_log_level level, const char *text, void *userdata);
};

/*
 * ck_nri_job_done - end a job; @job is freed. A job must be ended even after ck_nri_close().
 * @grpc: 0: done; 5 (NOT_FOUND): there is no such object; else it failed. The host is asked again
 * for a description that is needed: for 30 s, or, while @grpc is 14 (UNAVAILABLE: the runtime
 * answers nobody), without end
 * @bytes: describe: the PodSandbox or Container; copied. With another @grpc than 0, what the host
 * still knows of it, at least its id as plugins know it; until there is a description, what needs
 * none is told with that. NULL: nothing   Since: 0.1
 */
void ck_nri_job_done(struct ck_nri_job *job, int grpc, const void *bytes, size_t len);

/* ---- open and close -------------------------------------------------------------------------- */

/*
 * A plugin that ck_nri_start() launches. NRI_PLUGIN_NAME and NRI_PLUGIN_IDX in its environment are
 * the parts of its name. This and struct ck_nri_rule are elements of arrays: they have no size and
 * never grow.   Since: 0.1
 */
struct ck_nri_launched {
	const char *name;   /* "NN-name" */
	const char *config; /* the text of its drop-in configuration; NULL: none */
};

/* The policy of one plugin.   Since: 0.1 */
struct ck_nri_rule {
	const char *name; /* "NN-name", or "name" for every index */
	enum ck_nri_policy policy;
};

/* Durations are in nanoseconds; 0 means the default in brackets. Strings and arrays are copied.
 * Since: 0.1 */
struct ck_nri_options {
	size_t size;
	const struct ck_nri_host *host; /* copied; required */
	const char *socket_path;        /* plugins connect to it; NULL: only launched plugins */
	unsigned socket_mode;           /* [0600] */
	/* rewritten after each change, for `crikeep plugins`; NULL: not written */
	const char *status_path;
	const char *runtime_name, *runtime_version; /* ["crikeep", ck_version()] */
	uint64_t registration_timeout;  /* from the connection to RegisterPlugin [5 s] */
	/* for one event; then the plugin is overdue, and the event goes on [2 s]. A plugin that is
	 * overdue for five times as long is disconnected */
	uint64_t request_timeout;
	uint64_t synchronize_timeout;   /* for the whole first list [10 s] */
	/* of plugins without a rule [CK_NRI_ERROR]; not CK_NRI_REQUIRED */
	enum ck_nri_policy policy;
	const struct ck_nri_rule *rules;
	size_t rules_n;
	const struct ck_nri_launched *launched;
	size_t launched_n;
	enum ck_nri_adjust adjust;      /* [on commit] */
	const unsigned *allow_uids;     /* who may connect [0 and our own] */
	size_t allow_uids_n;
	/* a test's clock, used with ck_nri_timeout(); NULL: the kernel's */
	uint64_t (*clock)(void *userdata);
	void *clock_userdata;
};

/*
 * ck_nri_open - create it. No plugin is accepted before ck_nri_start(), so ck_nri_hooks() can be
 * given to ck_cache_open() first
 * Return: 0, -CK_EINVAL, -CK_ENOMEM, -CK_EIO, -CK_EOWNED (a live runtime listens at socket_path,
 * H10).   Since: 0.1
 */
int ck_nri_open(const struct ck_nri_options *options, struct ck_nri **ret_nri,
		struct ck_error *err);
/*
 * ck_nri_start - launch plugins, and accept those that connect
 * @cache: plugins are told of its entries; NULL: of what host.snapshot lists
 * Return: 0, -CK_ESTATE (twice), -CK_EIO, -CK_EINVAL (neither a cache nor a snapshot).   Since: 0.1
 */
int ck_nri_start(struct ck_nri *nri, struct ck_cache *cache, struct ck_error *err);
/*
 * ck_nri_stop - send Shutdown to connected plugins, and accept no more. Events are still sent.
 * Since: 0.1
 */
void ck_nri_stop(struct ck_nri *nri);
/*
 * ck_nri_close - disconnect all plugins and free. Events under way end with the answers so far. Not
 * from a callback. NULL is fine. Close the cache that it serves first; after that this is the only
 * call.   Since: 0.1
 */
void ck_nri_close(struct ck_nri *nri);

/* ck_nri_fd - readable when ck_nri_process() is due. Borrowed, for poll(2) and epoll(7).
 * Return: the descriptor, -CK_EINVAL, -CK_EFORK.   Since: 0.1 */
int ck_nri_fd(struct ck_nri *nri);
/* ck_nri_process - do what is due; never blocks. One thread at a time.
 * Return: 0, -CK_EDEADLK (it is running already), -CK_EFORK.   Since: 0.1 */
int ck_nri_process(struct ck_nri *nri, struct ck_error *err);
/* ck_nri_timeout - when it is due next, by its own clock: a time, UINT64_MAX never, 0 now.
 * Since: 0.1 */
uint64_t ck_nri_timeout(struct ck_nri *nri);

/* ck_nri_hooks - the hooks for ck_cache_open(). Set ret_hooks->size. Valid until ck_nri_close().
 * Return: 0, -CK_EINVAL, -CK_EFORK.   Since: 0.1 */
int ck_nri_hooks(struct ck_nri *nri, struct ck_hooks *ret_hooks);

/* ---- events ---------------------------------------------------------------------------------- */

/* One event of one object. Everything is copied.   Since: 0.1 */
struct ck_nri_call {
	size_t size;
	/* not VALIDATE_CONTAINER_ADJUSTMENT: it follows CREATE_CONTAINER by itself */
	enum ck_nri_event event;
	const char *pod_id;
	const char *container_id; /* NULL for events of pods */
	/*
	 * CREATE_CONTAINER before the container exists: its name and attempt. By these choose finds
	 * that plugins know it already. If it will never exist, released finds it, and plugins are
	 * sent Stop and Remove. NULL: it exists
	 */
	const char *container_name;
	uint32_t attempt;
	/* what plugins are told; NULL: host.describe is asked */
	const void *pod;
	size_t pod_len;
	const void *container;
	size_t container_len;
	/* UPDATE_CONTAINER, UPDATE_POD_SANDBOX: the requested LinuxResources. UPDATE_POD_SANDBOX:
	 * those of the overhead */
	const void *resources;
	size_t resources_len;
	const void *overhead;
	size_t overhead_len;
};

/* How it ended. Borrowed for the callback.   Since: 0.1 */
struct ck_nri_result {
	size_t size;
	/* NULL: no plugin refused. Else "plugin NN-name: its text"; the text may repeat what the
	 * container was given */
	const char *refusal;
	/* CREATE_CONTAINER: the merged ContainerAdjustment, empty if no plugin changes anything,
	 * and OwningPlugins: which plugin set what */
	const void *adjustment;
	size_t adjustment_len;
	const void *owners;
	size_t owners_len;
	/* UPDATE_CONTAINER: LinuxResources for the runtime; NULL: the requested ones */
	const void *resources;
	size_t resources_len;
	unsigned told;          /* connections that were sent the event */
	const char *told_names; /* their names, separated by ' ' */
};
typedef void ck_nri_cb(const struct ck_nri_result *result, void *userdata);

/*
 * ck_nri_send - send an event to the plugins that know the object and have subscribed to the event,
 * one after the other by index. @cb is called exactly once, by ck_nri_process() or at last by
 * ck_nri_close(). Each plugin has request_timeout, counted from when the event is queued for it.
 * Stop... and Remove... reach each connection once, however often they are sent. Stop... is sent
 * before Remove.... With a cache, its history says who was told, before @cb is called.
 * CREATE_CONTAINER of an object that no plugin knows chooses all connected plugins. The updates and
 * evictions of other containers that plugins answer with are carried out before @cb.
 * Return: 0, -CK_EINVAL, -CK_ENOMEM, -CK_EFORK, -CK_ECLOSED.   Since: 0.1
 */
int ck_nri_send(struct ck_nri *nri, const struct ck_nri_call *call, ck_nri_cb *cb, void *userdata,
		struct ck_error *err);

/*
 * ck_nri_adjusting - with CK_NRI_ON_COMMIT: has a connected plugin tried to change a container?
 * Then further creations will fail
 * Return: 1 and its name, 0, -CK_EINVAL, -CK_EFORK.   Since: 0.1
 */
int ck_nri_adjusting(struct ck_nri *nri, char *name, size_t size);
/* ck_nri_listens - has a connected plugin that knows this object subscribed to this event, and not
 * yet heard it? Events that an object has repeatedly (Update...) count as not yet heard.
 * Return: 1, 0.   Since: 0.1 */
int ck_nri_listens(struct ck_nri *nri, enum ck_nri_event event, enum ck_kind kind, const char *id);

/* ---- who is there ---------------------------------------------------------------------------- */

/* A plugin: connected, or not any more. Borrowed for the call.   Since: 0.1 */
struct ck_nri_plugin {
	size_t size;
	const char *name;  /* "NN-name"; "" while it has not registered */
	/* "connected", "registered", "synchronizing", "ready", "overdue", "absent", "gone" */
	const char *state;
	/* the stronger of its rule's and the one it asks for itself with fail_request */
	enum ck_nri_policy policy;
	int keep_connected; /* it asks not to be disconnected because it is overdue */
	int launched;
	int pid;           /* of the peer; 0: unknown */
	unsigned events;   /* its subscription */
	int adjusting;     /* it has answered with an adjustment that came too late */
	unsigned queued;   /* events that wait for it */
	uint64_t since;    /* when it connected */
	uint64_t overdue_since; /* 0: it is not */
	uint64_t sent, late, failed; /* events sent, not answered in time, answered with an error */
	/* "RunPodSandbox: UNKNOWN", or why it was disconnected; without the plugin's text, which
	 * may repeat secrets; "" none */
	const char *last_error;
};
/*
 * ck_nri_plugins - call @fn for each plugin in index order, then for each required plugin that is
 * absent, by the name of its rule, then for the last plugins whose connections have ended with an
 * error and that have not registered again, and at last for connections that have not registered
 * @fn: is called with a lock held, and calls no function of this library
 * Return: 0, or what @fn returned if not 0, -CK_EFORK.   Since: 0.1
 */
int ck_nri_plugins(struct ck_nri *nri,
		   int (*fn)(const struct ck_nri_plugin *plugin, void *userdata), void *userdata);

/* ---- messages -------------------------------------------------------------------------------- */

/*
 * A message of NRI, written and read by the names of its fields, so that a host needs no protobuf:
 *
 *	struct ck_nri_message *pod = ck_nri_message_new(CK_NRI_POD_SANDBOX);
 *	ck_nri_put_text(pod, "name", "web-0");
 *	ck_nri_put_pair(pod, "labels", "app", "web");
 *	ck_nri_put_number(pod, "linux.resources.memory.limit", 1 << 30);
 *	ck_nri_job_described(job, pod);
 *
 * A path is names of NRI's api.proto with '.' between them; messages on the way are made. The
 * value of an Optional... goes by the name of its field. Enumerations and truth values are
 * numbers, and so are uint64, cast to int64_t.
 *
 * The first failure is kept, and nothing is written after it; functions that need the whole return
 * it. A wrong path fails even where nothing is set, so one run finds it. A message is used by one
 * thread at a time, and may be used in a child.   Since: 0.1
 */
struct ck_nri_message;

/* PodSandbox, Container, LinuxResources, ContainerAdjustment, OwningPlugins.   Since: 0.1 */
enum ck_nri_type {
	CK_NRI_POD_SANDBOX = 1,
	CK_NRI_CONTAINER = 2,
	CK_NRI_RESOURCES = 3,
	CK_NRI_ADJUSTMENT = 4,
	CK_NRI_OWNERS = 5,
};

/* ck_nri_message_new - an empty one. NULL (no memory, no such type) fails where it is used.
 * Since: 0.1 */
struct ck_nri_message *ck_nri_message_new(enum ck_nri_type type);
/*
 * ck_nri_message_read - an encoded one; @bytes are copied. They may come from a plugin
 * Return: 0, -CK_EINVAL, -CK_EMALFORMED ("byte 12: ..."), -CK_ETOOBIG, -CK_ENOMEM.   Since: 0.1
 */
int ck_nri_message_read(enum ck_nri_type type, const void *bytes, size_t len,
			struct ck_nri_message **ret_message, struct ck_error *err);
/* ck_nri_message_free - free it with all its items. @message may be NULL, and is no item.
 * Since: 0.1 */
void ck_nri_message_free(struct ck_nri_message *message);
/*
 * ck_nri_message_bytes - encode it, for struct ck_nri_call
 * @ret_bytes: borrowed until the next call with this message
 * Return: 0, or the first failure: -CK_EINVAL ("PodSandbox: nmae: NRI has no such field"),
 * -CK_ETOOBIG, -CK_ENOMEM.   Since: 0.1
 */
int ck_nri_message_bytes(struct ck_nri_message *message, const void **ret_bytes, size_t *ret_len,
			 struct ck_error *err);
/* ck_nri_job_described - end a job of describe as ck_nri_job_done() does, with @message, which is
 * freed. A failure is logged.   Since: 0.1 */
void ck_nri_job_described(struct ck_nri_job *job, struct ck_nri_message *message);

/* ck_nri_put_text - set a text; in a list, add one. NULL does nothing. Each byte that is not UTF-8
 * becomes U+FFFD.   Since: 0.1 */
void ck_nri_put_text(struct ck_nri_message *message, const char *path, const char *text);
/* ck_nri_put_number - set a number; in a list, add one. 0 in an Optional... is a value.
 * Since: 0.1 */
void ck_nri_put_number(struct ck_nri_message *message, const char *path, int64_t number);
/* ck_nri_put_pair - add to a map of texts, or to the env of an adjustment. The value may be NULL.
 * Since: 0.1 */
void ck_nri_put_pair(struct ck_nri_message *message, const char *path, const char *key,
		     const char *value);
/* ck_nri_put_item - add a message to a list ("mounts"); of one that is in no list ("linux"), make
 * sure it is there. Return: it, for paths from there; freed with @message. NULL: it failed.
 * Since: 0.1 */
struct ck_nri_message *ck_nri_put_item(struct ck_nri_message *message, const char *path);

/* ck_nri_get_count - how many there are in a list; 0 or 1 of what is no list. @message may be NULL,
 * here and below; then nothing is set.   Since: 0.1 */
size_t ck_nri_get_count(struct ck_nri_message *message, const char *path);
/* ck_nri_get_text - number @i of a list; of what is no list, 0. Borrowed until
 * ck_nri_message_free(). NULL: it is not set.   Since: 0.1 */
const char *ck_nri_get_text(struct ck_nri_message *message, const char *path, size_t i);
/* ck_nri_get_number - @ret_number: NULL to ask only whether it is set. Return: 1; 0: it is not set,
 * and *@ret_number is 0. What is not Optional... is set with the message that it is in.
 * Since: 0.1 */
int ck_nri_get_number(struct ck_nri_message *message, const char *path, size_t i,
		      int64_t *ret_number);
/* ck_nri_get_item - message @i of a list; of a map it has "key" and "value". NULL: it is not set.
 * Since: 0.1 */
struct ck_nri_message *ck_nri_get_item(struct ck_nri_message *message, const char *path, size_t i);
/*
 * ck_nri_message_check - after reading: has everything that is set been read, and each list from
 * its first value on? A runtime that applies what it has read, and refuses the rest, drops no
 * plugin's wish in silence
 * Return: 0, -CK_EFAILED ("ContainerAdjustment: linux.seccomp_policy is set, and was not read";
 * also a field of a later NRI), or the first failure.   Since: 0.1
 */
int ck_nri_message_check(const struct ck_nri_message *message, struct ck_error *err);

/* Sizes of release 0.1, as in crikeep.h. Since: 0.1 */
#define CK_NRI_HOST_SIZE_0_1 CK_SIZE_UP_TO(struct ck_nri_host, log)
#define CK_NRI_OPTIONS_SIZE_0_1 CK_SIZE_UP_TO(struct ck_nri_options, clock_userdata)
#define CK_NRI_CALL_SIZE_0_1 CK_SIZE_UP_TO(struct ck_nri_call, overhead_len)
#define CK_NRI_RESULT_SIZE_0_1 CK_SIZE_UP_TO(struct ck_nri_result, told_names)
#define CK_NRI_PLUGIN_SIZE_0_1 CK_SIZE_UP_TO(struct ck_nri_plugin, last_error)

#ifdef __cplusplus
}
#endif
#endif
