/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRIKEEP_H
#define CRIKEEP_H
/*
 * libcrikeep keeps the result of a RunPodSandbox or CreateContainer call whose caller has timed
 * out, and hands it back when the kubelet repeats the request.
 *
 * A host (a container runtime, or a proxy in front of one) opens one cache and passes every create
 * through a turn. With a thread for each call, that is one call, with a function that creates and
 * one that answers:
 *
 *	r = ck_create(cache, &request, create, answer, userdata, &err);
 *
 * With an event loop, or if answers are sent elsewhere, its steps are:
 *
 *	r = ck_turn_begin(cache, &request, &turn, &err);
 *	if (r == CK_WAIT)
 *		r = ck_turn_wait(turn, &err);
 *	if (r == CK_CREATE) {
 *		... create the sandbox ...
 *		r = ck_turn_finish(turn, &result, &err);
 *		if (r == CK_WAIT)
 *			r = ck_turn_wait(turn, &err);
 *	}
 *	if (r == CK_HAND_BACK) {
 *		... answer with ck_turn_reply(turn) ...
 *		ck_turn_answered(turn, sent ? CK_DELIVERED : CK_LOST);
 *	}
 *	ck_turn_free(turn);
 *
 * Do not leave out ck_turn_answered() then. Until it, or ck_object_used(), has said that the answer
 * arrived, a container that was not started counts as not answered. After a restart it is hidden,
 * and kept for a repeated request that the kubelet does not send (K25).
 *
 * Terms. An entry is one row of the cache: a slot (what the kubelet wants to fill), an attempt, the
 * fingerprint of the request, and a state. A turn is the request of one caller in the cache. Hidden
 * means: it exists in the runtime, but is not committed. A host leaves hidden objects out of every
 * list, status, event and statistic. crikeep(1) shows the entries, libcrikeep(3) explains
 * everything, and crikeep-rules(7) is the rule book: rules are named by number, as in (K6) or (H1).
 *
 * Return values. A negative value is an error, -CK_E..., and @err holds more. Zero or a positive
 * value is an outcome that the caller must handle. A ret_ argument is written on success only, @err
 * on failure only. @err may always be NULL.
 *
 * Threads. Every function may be called from any thread unless its comment says otherwise. No
 * function blocks except ck_create(), ck_turn_wait() and ck_cache_close(). No lock is held while
 * the host or a hook is called. 64 KiB of stack are enough.
 *
 * Ownership. Inputs are copied unless a comment says otherwise. The comment on borrowed data says
 * for how long it is valid.
 *
 * Errors of all functions. Every function that takes a cache, turn or view may also return
 * -CK_ECLOSED after ck_cache_close() began, -CK_EINVAL for a missing or oversized argument, and
 * -CK_EDEADLK from inside choose, released, committed or a function given to ck_snapshot() or
 * ck_entries().
 *
 * Fork. In a child every call returns -CK_EFORK. The child must not use or free anything that it
 * inherited. A child that does not exec keeps the state directory owned for as long as it lives.
 *
 * Time. Nanoseconds of CLOCK_BOOTTIME as uint64_t. The wall clock is only shown, never used.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors: functions return them negated. No others leave the library. Values are never reused.
 * ck_strerror(3) says what they mean. Since: 0.1 */
enum ck_errcode {
	CK_ENOMEM = 1,
	CK_EINVAL = 2,
	CK_EMALFORMED = 3,
	CK_ETOOBIG = 4,
	CK_EIO = 5,
	CK_EFULL = 6,
	CK_EDAMAGED = 7,
	CK_EVERSION = 8,
	CK_EOWNED = 9,
	CK_ENOTFOUND = 10,
	CK_ECONFLICT = 11,
	CK_EABANDONED = 12,
	CK_EUNAVAILABLE = 13,
	CK_EDEADLINE = 14,
	CK_EPRECONDITION = 15,
	CK_EFAILED = 16,
	CK_EREFUSED = 17,
	CK_ENOLOOP = 18,
	CK_EDEADLK = 19,
	CK_EFORK = 20,
	CK_ECLOSED = 21,
	CK_ESTATE = 22,
};

/*
 * Outcomes of a turn. Values are never reused, and none is an error code: ck_strerror() knows both.
 * Since: 0.1
 */
enum ck_outcome {
	/* create the resource; then ck_turn_finish(), ck_turn_fail() or ck_turn_lost() */
	CK_CREATE = 101,
	CK_WAIT = 102,      /* not decided yet: ck_turn_wait() or ck_turn_watch() */
	CK_HAND_BACK = 103, /* it exists: ck_turn_reply() */
	/*
	 * the deadline is near, and it is still being created; ck_turn_error() has the stage and
	 * the age
	 */
	CK_BUSY = 104,
	/* finished, but your caller is gone or out of time: kept for the repeated request */
	CK_KEPT = 105,
	CK_DRAINED = 106, /* ck_remove_begin(): the cache has nothing left of the sandbox */
};

/* Bytes of the text of an error; longer texts are cut. Since: 0.1 */
#define CK_ERROR_TEXT 512

/*
 * An error, on the caller's stack; there is nothing to free. It has no size, and never grows.
 * Since: 0.1
 */
struct ck_error {
	int code;                 /* enum ck_errcode */
	int sys;                  /* errno, or 0 */
	/* SQLite's extended result code, or with CK_EFAILED the runtime's gRPC code; or 0 */
	int sub;
	/*
	 * from the general to the detail: "open the cache '/run/crikeep': lock: ..."; never a value
	 * of a request
	 */
	char text[CK_ERROR_TEXT];
};

/*
 * ck_strerror - the meaning of an error code, negated or not, or of an outcome. Static. This and
 * the next two may be called from anywhere. Since: 0.1
 */
const char *ck_strerror(int code);
/*
 * ck_error_grpc - the gRPC status code (google.rpc.Code) with which a CRI server answers this
 * error; 0 for NULL. Since: 0.1
 */
int ck_error_grpc(const struct ck_error *err);
/* ck_version - "0.1.0". Static.   Since: 0.1 */
const char *ck_version(void);

/* What a request creates: RunPodSandbox a pod sandbox, CreateContainer a container. Since: 0.1 */
enum ck_kind { CK_SANDBOX = 1, CK_CONTAINER = 2 };
/* How requests are compared: libcrikeep(3), "THE SAME REQUEST".   Since: 0.1 */
enum ck_mode { CK_MODE_NORMALIZED = 0, CK_MODE_IDENTITY = 1, CK_MODE_STRICT = 2 };
/*
 * A late result is kept for the repeated request; or a late sandbox is committed, and the kubelet
 * finds it in a list (K2). Since: 0.1
 */
enum ck_hand_back { CK_REPEAT = 0, CK_OFFER = 1 };
/* If only labels and annotations of the pod differ (K12). Since: 0.1 */
enum ck_annotation_change { CK_ANNOTATION_HAND_BACK = 0, CK_ANNOTATION_EVICT = 1 };
/* syslog(3)'s numbers.   Since: 0.1 */
enum ck_log_level { CK_LOG_ERROR = 3, CK_LOG_WARNING = 4, CK_LOG_INFO = 6, CK_LOG_DEBUG = 7 };

/* The condition of a resource in the runtime. Since: 0.1 */
enum ck_condition {
	CK_CONDITION_UNKNOWN = 0, /* the question failed; nothing is concluded */
	CK_CONDITION_READY = 1,   /* sandbox READY, container CREATED */
	CK_CONDITION_RUNNING = 2, /* container RUNNING */
	CK_CONDITION_DEAD = 3,    /* sandbox NOTREADY, container EXITED */
	CK_CONDITION_ABSENT = 4,  /* NOT_FOUND */
	/* container EXITED, and its status tells that it was started: it was in use (K22) */
	CK_CONDITION_RAN = 5,
};

/*
 * The states of an entry, with the numbers of the database; see libcrikeep(3). Values are never
 * reused. Since: 0.1
 */
enum ck_state {
	CK_STATE_CREATING = 1,   /* a creation is running */
	/* the resource exists, but is hidden until its request is repeated */
	CK_STATE_KEPT = 2,
	CK_STATE_COMMITTING = 3, /* plugins are being told about it */
	CK_STATE_COMMITTED = 4,  /* it belongs to the kubelet and is visible */
	CK_STATE_EVICTING = 5,   /* it was given up and is being destroyed */
	CK_STATE_GONE = 6,       /* destroyed; its id stays hidden for a minute */
	CK_STATE_UNKNOWN = 7,    /* the outcome of its creation is unknown (K8) */
	CK_STATE_ENDED = 8,      /* it was committed and has stopped or exited since */
};

/*
 * Opaque. Any number of threads may use a cache, a turn and a job at the same time, but only one
 * thread may wait for a turn, or fill and end a job. Only one thread at a time may use a view.
 * Since: 0.1
 */
struct ck_cache;
struct ck_turn;
struct ck_job;
struct ck_view;
struct ck_told;

/* ---- the host: what the cache asks the program that embeds it to do -------------------------- */

/* One sandbox or container in the runtime. Strings are borrowed for the call. Since: 0.1 */
struct ck_object {
	size_t size; /* sizeof(struct ck_object) */
	enum ck_kind kind;
	enum ck_condition condition;
	const char *id;
	/* sandbox: its metadata; container: the io.kubernetes.pod.* labels */
	const char *pod_name, *pod_namespace, *pod_uid;
	const char *sandbox_id, *container_name;        /* containers only */
	uint32_t attempt;
	/* the runtime's wall clock; only compared with that of another object */
	uint64_t created_at;
};

/*
 * The objects that a list job needs. A NULL member does not restrict; a longer list does no harm.
 * Borrowed until the job ends. Since: 0.1
 */
struct ck_filter {
	size_t size;
	enum ck_kind kind;
	const char *pod_uid;    /* for sandboxes: label io.kubernetes.pod.uid */
	const char *sandbox_id; /* for containers: of this sandbox */
};

/* The result of a job. Copied. NULL, or a size that is not set, counts as a failure. Since: 0.1 */
struct ck_answer {
	size_t size;
	/*
	 * 0: it was done or answered; 5 (NOT_FOUND) confirms a destroy; else it failed and is tried
	 * again
	 */
	int grpc;
	enum ck_condition condition; /* inspect */
	const char *image_id;        /* resolve_image; NULL: it has none */
	/* the runtime's own words about a failed destroy, or NULL; redacted, for log and history */
	const char *message;
};

/*
 * Functions of the host. Each starts a job and returns at once. ck_job_done() ends the job exactly
 * once, during that call or later, from any thread. They are called only by ck_cache_process() or
 * the library's own thread. inspect, list and resolve_image may be NULL. Then a kept result is
 * handed back without asking (K6), lost creations are given up after their grace (K8), nothing is
 * reconciled (K24), a sandbox is destroyed without asking what is in it (K22), and image references
 * are compared byte by byte (E5). destroy is called until it succeeds (K17, K18). @filter and @id
 * are valid as long as the job. Since: 0.1
 */
struct ck_host {
	size_t size;
	void *userdata;
	/* stop, then remove */
	void (*destroy)(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata);
	void (*inspect)(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata);
	void (*list)(struct ck_job *job, const struct ck_filter *filter, void *userdata);
	void (*resolve_image)(struct ck_job *job, const char *image, void *userdata);
	/* called from any thread; must not block or call this library */
	void (*log)(enum ck_log_level level, const char *text, void *userdata);
	/*
	 * An entry that was hidden is visible from now on. That is on disk, or cannot be written
	 * (K32): the runtime can send its own CREATED event. Called from any thread, inside the
	 * cache's critical section, like choose of struct ck_hooks. May be NULL.
	 */
	void (*committed)(const struct ck_told *entry, void *userdata);
};

/*
 * ck_job_entry - the entry of a destroy or inspect job, for a host that knows its resources by
 * name, or has lost its memory of them. Borrowed until ck_job_done(). Return: NULL for other jobs.
 * Since: 0.1
 */
const struct ck_told *ck_job_entry(const struct ck_job *job);
/*
 * ck_job_listed - add one object to the answer of a list job, before ck_job_done(). Copied.
 * Return: 0, -CK_ENOMEM (the list then counts as failed), -CK_EINVAL (not a list job, or not a
 * valid object), -CK_EFORK. Since: 0.1
 */
int ck_job_listed(struct ck_job *job, const struct ck_object *object);
/*
 * ck_job_done - end a job; @job is freed. A job must be ended even after ck_cache_close().
 * Since: 0.1
 */
void ck_job_done(struct ck_job *job, const struct ck_answer *answer);

/* ---- hooks: called when a resource is committed, and when it ends ---------------------------- */

/*
 * RUN is sent with the commit, and may be refused. The other two, in this order, say that a
 * resource ends, to those who were told RUN. Since: 0.1
 */
enum ck_hook_event { CK_HOOK_RUN = 1, CK_HOOK_STOP = 2, CK_HOOK_REMOVE = 3 };

/* An entry, for hooks. Borrowed for the call. Since: 0.1 */
struct ck_told {
	size_t size;
	uint64_t entry; /* does not change, and is not used again while the history has it */
	enum ck_kind kind;
	const char *id;
	const char *pod_name, *pod_namespace, *pod_uid, *sandbox_id, *container_name;
	uint32_t attempt;
	const char *told; /* names of those that know about it, separated by ' ' */
	/* released: 1 if the entry is gone, told or not; 0 if its commit was not written */
	int gone;
};

/*
 * choose: write the names of those to tell ("NN-name", separated by ' ') to @names and return 0; if
 * a required one is absent, write its name and return 1. Called inside the cache's critical
 * section: no I/O, no waiting, no call of this library.
 * fire: tell them, and end the job with ck_hook_done(). Called outside of it, by
 * ck_cache_process().
 * cancel: tell nobody else about this entry's RUN; its job must still be ended.
 * released: the entry is gone, or its commit was not written. Called inside the critical section.
 * Any of them may be called while jobs of other entries run. For each entry the order is choose,
 * RUN, STOP, REMOVE. Since: 0.1
 */
struct ck_hooks {
	size_t size;
	void *userdata;
	int (*choose)(const struct ck_told *entry, char *names, size_t names_size, void *userdata);
	void (*fire)(struct ck_job *job, enum ck_hook_event event, const struct ck_told *entry,
		     void *userdata);
	void (*cancel)(uint64_t entry, void *userdata);
	void (*released)(const struct ck_told *entry, void *userdata);
};

/*
 * ck_hook_done - all recipients have had the event; @job is freed. Called exactly once, from any
 * thread, also after ck_cache_close().
 * @told: the names, separated by ' ', of those to which the event was really sent, for the history;
 * "" for none. NULL: not known; the history names the chosen ones for a RUN that was not refused,
 * and otherwise none
 * @refusal: NULL, or "plugin NN-name: its text"; copied, and redacted but for the names told.
 * Since: 0.1
 */
void ck_hook_done(struct ck_job *job, const char *told, const char *refusal);
/*
 * ck_snapshot - call @fn for every entry that hooks were told about and that is not gone, in one
 * consistent pass inside the critical section (H1). Its CK_HOOK_STOP may have been fired already
 * Return: 0, or the value of @fn if not 0 (the pass ends there), -CK_EINVAL, -CK_EFORK,
 * -CK_ECLOSED, -CK_EDEADLK. Since: 0.1
 */
int ck_snapshot(struct ck_cache *cache, int (*fn)(const struct ck_told *entry, void *userdata),
		void *userdata);

/* ---- the cache ------------------------------------------------------------------------------- */

/* Durations are in nanoseconds; 0 means the default in brackets. Strings are copied. Since: 0.1 */
struct ck_options {
	/* sizeof(struct ck_options): later releases add members at the end */
	size_t size;
	/*
	 * the directory of the database, the key, the lock and admin requests; created with mode
	 * 0700 if absent ["/run/crikeep"]
	 */
	const char *state_dir;
	const struct ck_host *host;                /* copied; required */
	const struct ck_hooks *hooks;              /* copied; NULL: none */
	/* how long a result is kept after its last request [10 min] (K15) */
	uint64_t ttl;
	/* after this, the outcome of a creation is unknown [15 min] (K8) */
	uint64_t create_deadline;
	/* a lost creation that a caller waits for fails after so long an absence [30 s] */
	uint64_t lost_grace;
	/* how long a new attempt waits for the ports of the old one [20 s] (K10) */
	uint64_t supersede_wait;
	/* after this, a destroy without an answer has failed [60 s] (K18) */
	uint64_t destroy_timeout;
	enum ck_mode mode;                         /* [normalized] */
	enum ck_hand_back hand_back;               /* [repeat] */
	/* what to do if only labels and annotations of the pod differ [hand_back] (K12) */
	enum ck_annotation_change on_annotation_change;
	/* NULL-terminated patterns, one '*' at the end; NULL: what CNI plugins write */
	const char *const *ignore_annotations;
	/* 1: also compare the parts of CreateContainer that only RunPodSandbox uses */
	int compare_sandbox_config;
	/*
	 * 1: the host is the runtime, so a creation that has not finished ends with its process.
	 * That it has begun is then written after 0.2 s, or as soon as its caller goes, or anything
	 * else happens to it (K29)
	 */
	int is_runtime;
	/* a clock for tests and simulations, used with ck_cache_timeout(); NULL: the kernel's */
	uint64_t (*clock)(void *userdata);
	void *clock_userdata;
};

/*
 * ck_cache_open - open or create the database in state_dir, own it, and take up what an earlier
 * process left (K25)
 * Return: 0, -CK_EINVAL, -CK_ENOMEM, -CK_EOWNED (@err names the owner's pid), -CK_EVERSION,
 * -CK_EIO. A damaged database is set aside (K33). Without disk space, the cache continues in memory
 * (K32). Both are successes, and are logged through ck_host.log. Since: 0.1
 */
int ck_cache_open(const struct ck_options *options, struct ck_cache **ret_cache,
		  struct ck_error *err);
/*
 * ck_cache_close - end the library's thread, give every waiting turn -CK_ECLOSED, make running
 * creations lost (K8), and free the cache. It blocks until every other call has returned. Running
 * jobs may end later, but must be ended. Turns and views stay valid, and each must be freed.
 * Watched turns are not called back any more. Not from a callback. @cache may be NULL.
 * Return: 0, -CK_EDEADLK, -CK_EFORK, -CK_ECLOSED. Since: 0.1
 */
int ck_cache_close(struct ck_cache *cache, struct ck_error *err);
/*
 * ck_cache_log_level - make log lines up to @level only [CK_LOG_DEBUG]. A line that nobody reads
 * costs time and wakes the event loop, and at CK_LOG_DEBUG each creation makes some. From any
 * thread. @cache may be NULL. Since: 0.1
 */
void ck_cache_log_level(struct ck_cache *cache, enum ck_log_level level);

/*
 * Timers, jobs, hooks, callbacks and admin requests happen in an event loop. Run it with exactly
 * one of ck_cache_run_thread() and ck_cache_process().
 */
/*
 * ck_cache_run_thread - run the event loop in a thread of the library, with all signals blocked.
 * Return: 0, -CK_EDEADLK, -CK_ENOMEM, -CK_EFORK. Since: 0.1
 */
int ck_cache_run_thread(struct ck_cache *cache, struct ck_error *err);
/*
 * ck_cache_fd - a descriptor that becomes readable when ck_cache_process() is due. Borrowed, for
 * poll(2) and epoll(7). Return: the descriptor, -CK_EFORK. Since: 0.1
 */
int ck_cache_fd(struct ck_cache *cache);
/*
 * ck_cache_process - do what is due; never blocks. Return: how much was done, -CK_EDEADLK,
 * -CK_EFORK. Since: 0.1
 */
int ck_cache_process(struct ck_cache *cache, struct ck_error *err);
/*
 * ck_cache_timeout - when ck_cache_process() is due next, by the cache's own clock: a time, 0 for
 * now, UINT64_MAX for never. Since: 0.1
 */
uint64_t ck_cache_timeout(struct ck_cache *cache);

/*
 * ck_reconciled - have the host's first lists succeeded? Until then requests wait, and nothing
 * expires or is destroyed (K24, K25). A host that accepts callers only after that calls this after
 * each ck_cache_process().
 * Return: 1 (at once without host.list), 0, -CK_EINVAL, -CK_ECLOSED, -CK_EFORK. Since: 0.1
 */
int ck_reconciled(struct ck_cache *cache);

/* An entry as in `crikeep list`. Borrowed for the call. Absent strings are "". Since: 0.1 */
struct ck_entry_info {
	size_t size;
	uint64_t entry; /* does not change, and is not used again while the history has it */
	enum ck_kind kind;
	enum ck_state state;
	const char *id; /* "" if unknown */
	const char *pod_name, *pod_namespace, *pod_uid, *sandbox_id, *container_name;
	uint32_t attempt;
	int lost;          /* 1: its state is UNKNOWN */
	int told;          /* its commit has begun: plugins know about it, if there are any */
	int ended;         /* 1: its state is ENDED */
	uint32_t requests; /* how often it was requested */
	const char *stage; /* the last known stage of the creation */
	const char *why;   /* EVICTING: the reason in a few words */
	uint32_t tries;    /* EVICTING: destroys that failed; the last with gRPC code last_grpc */
	int last_grpc;
	uint64_t created, changed; /* when it began; last move: times of that boot */
};
/*
 * ck_entries - call @fn for every entry except tombstones, oldest first, in one consistent pass
 * inside the critical section: to see what an earlier process left, or for the host's own metrics
 * @fn: must not call this library
 * Return: 0, or the value of @fn if not 0 (the pass ends there), -CK_EINVAL, -CK_EFORK,
 * -CK_ECLOSED, -CK_EDEADLK. Since: 0.1
 */
int ck_entries(struct ck_cache *cache, int (*fn)(const struct ck_entry_info *entry, void *userdata),
	       void *userdata);

/* ---- turns ----------------------------------------------------------------------------------- */

/* The request of a caller. Copied. Since: 0.1 */
struct ck_request {
	size_t size;
	enum ck_kind kind;
	/* RunPodSandboxRequest or CreateContainerRequest of runtime.v1 or v1alpha2, as it came */
	const void *bytes;
	size_t len;        /* at most 16 MiB */
	/*
	 * the rest of the caller's deadline, in ns; 0: none. Take it from grpc-timeout, and
	 * subtract the time that has passed
	 */
	uint64_t timeout;
	/*
	 * 1: the deadline had passed, or the call was reset, before the request was read. It then
	 * abandons nothing (K9)
	 */
	int expired;
	/*
	 * 1: compare like CK_MODE_IDENTITY, for a caller that knows only the name; the result is
	 * kept as usual
	 */
	int key_only;
};

/* The result of a creation. Copied. Since: 0.1 */
struct ck_result {
	size_t size;
	/*
	 * the runtime's id; at most 1024 bytes. No other object of the kind has it. One that the
	 * cache destroyed may have had it: while that is under way, the result is refused
	 */
	const char *id;
	/* the bytes of the response, handed out unchanged; NULL: made from the id */
	const void *reply;
	size_t reply_len;  /* at most 64 KiB */
};

/*
 * Borrowed from the turn until ck_turn_free(). The caller sets size, here and in struct ck_status.
 * Since: 0.1
 */
struct ck_reply {
	size_t size;
	const char *id;
	const void *bytes; /* RunPodSandboxResponse or CreateContainerResponse */
	size_t len;
};

/*
 * A gRPC status of the runtime. All callers that wait for the same creation get it unchanged (K4).
 * Since: 0.1
 */
struct ck_status {
	size_t size;
	int grpc; /* not 0 */
	const char *message;
	/* grpc-status-details-bin, decoded; or NULL. Left out if longer than 64 KiB */
	const void *details;
	size_t details_len;
};

/*
 * ck_turn_begin - begin the turn of a caller with a request
 * @ret_turn is written with an outcome only: after an error there is no turn to free.
 * Return: CK_CREATE, CK_WAIT, CK_HAND_BACK, or -CK_ECONFLICT (the text names the fields that
 * differ), -CK_EPRECONDITION, -CK_EDEADLINE, -CK_EMALFORMED, -CK_EINVAL (one uid with two names, or
 * one sandbox with two pods: K9), -CK_ETOOBIG, -CK_EUNAVAILABLE, -CK_ENOMEM, -CK_EIO (libsodium
 * does not start), -CK_ECLOSED, -CK_EFORK, -CK_EABANDONED (by a call at the same time). The
 * creation is in the database before CK_CREATE is returned, unless it cannot be written (K32), or
 * the host is the runtime (K29).
 * Since: 0.1
 */
int ck_turn_begin(struct ck_cache *cache, const struct ck_request *request,
		  struct ck_turn **ret_turn, struct ck_error *err);
/*
 * ck_turn_wait - block until the turn is decided. A turn is decided once. From then on this
 * returns the decision at once, as often as it is called, whoever heard it before: the caller of
 * ck_turn_begin(), ck_turn_finish() or ck_remove_begin(), or a callback; also without an event
 * loop, from a callback, and after ck_cache_close(). CK_CREATE is no decision, and is returned
 * once.
 * Return: CK_CREATE, CK_HAND_BACK, CK_BUSY, CK_KEPT, CK_DRAINED, or -CK_EFAILED
 * (ck_turn_status()), -CK_EABANDONED, -CK_ECONFLICT, -CK_EUNAVAILABLE, -CK_EREFUSED,
 * -CK_EPRECONDITION, -CK_EINVAL (as ck_turn_begin()), -CK_ENOLOOP, -CK_EDEADLK, -CK_ECLOSED,
 * -CK_ENOMEM, -CK_EFORK.
 * It returns at the latest when the caller's deadline is near (K3), or when the caller leaves the
 * turn. After CK_CREATE only ck_turn_finish() and the like end the creation. Another thread that
 * waits meanwhile is told what they decide, that it was abandoned (-CK_EABANDONED), or that the
 * caller left the turn. Since: 0.1
 */
int ck_turn_wait(struct ck_turn *turn, struct ck_error *err);
/*
 * ck_turn_watch - let @cb be called by ck_cache_process(), once for each decision, with the value
 * that ck_turn_wait() would return. Call it before the turn can be decided again: right after
 * ck_turn_begin(), ck_turn_finish() or ck_turn_fail() returned CK_WAIT. A creator may call it after
 * CK_CREATE, to be told that its creation was abandoned (-CK_EABANDONED: stop creating, then
 * ck_turn_free()). The results of ck_turn_finish() and ck_turn_fail() are for their caller: @cb is
 * not called for them. NULL for @cb ends the watch.
 * Return: 0, -CK_EFORK, -CK_EINVAL. Since: 0.1
 */
typedef void ck_turn_cb(struct ck_turn *turn, int outcome, void *userdata);
int ck_turn_watch(struct ck_turn *turn, ck_turn_cb *cb, void *userdata);
/*
 * ck_turn_leave - the caller is gone. It may be called more than once. A creator continues;
 * ck_turn_wait() returns. Since: 0.1
 */
void ck_turn_leave(struct ck_turn *turn);
/*
 * ck_turn_stage - set the stage of the creation: "sandbox network creation". Cut at 64 bytes.
 * Return: 0, -CK_ESTATE, -CK_EFORK. Since: 0.1
 */
int ck_turn_stage(struct ck_turn *turn, const char *stage);
/*
 * ck_turn_finish - the resource exists; does not block
 * Return: CK_HAND_BACK (answer your caller), CK_WAIT (hooks run: wait or watch), CK_KEPT, or
 * -CK_EABANDONED (not handed out: it will be destroyed through ck_host), -CK_EUNAVAILABLE (kept,
 * because a required plugin is absent), -CK_ESTATE, -CK_EINVAL (also: the id is that of another
 * entry), -CK_ENOMEM, -CK_EFORK. Since: 0.1
 */
int ck_turn_finish(struct ck_turn *turn, const struct ck_result *result, struct ck_error *err);
/*
 * ck_turn_fail - the creation failed for certain; all waiting callers are woken with this status.
 * Not for DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE or a lost connection, which leave the outcome
 * open: call ck_turn_lost().
 * Return: 0; CK_WAIT: the runtime was asked for the same before, and this status does not say that
 * the first request has ended (the name is taken, or the second one got nowhere): the outcome is
 * unknown, as after ck_turn_lost() (K8). -CK_ESTATE, -CK_EINVAL, -CK_ENOMEM, -CK_EFORK. Since: 0.1
 */
int ck_turn_fail(struct ck_turn *turn, const struct ck_status *why, struct ck_error *err);
/*
 * ck_turn_lost - the outcome of the creation is unknown; the host is asked until it is known.
 * Return: 0, -CK_ESTATE, -CK_EFORK. Since: 0.1
 */
int ck_turn_lost(struct ck_turn *turn, struct ck_error *err);
/*
 * ck_turn_reply - the answer, after CK_HAND_BACK. Set ret_reply->size. Return: 0, -CK_ESTATE,
 * -CK_EINVAL, -CK_EFORK. Since: 0.1
 */
int ck_turn_reply(struct ck_turn *turn, struct ck_reply *ret_reply);
/*
 * ck_turn_status - the runtime's status, after -CK_EFAILED; borrowed until ck_turn_free(). Set
 * ret_status->size.
 * Return: 0, -CK_ESTATE, -CK_EINVAL, -CK_EFORK. Since: 0.1
 */
int ck_turn_status(struct ck_turn *turn, struct ck_status *ret_status);
/*
 * ck_turn_error - the reason of the decision, after CK_BUSY or an error; borrowed until
 * ck_turn_free(). NULL in a child. Since: 0.1
 */
const struct ck_error *ck_turn_error(struct ck_turn *turn);
/*
 * ck_turn_answered - the answer arrived (CK_DELIVERED), or its stream broke before the deadline
 * plus 1 s (CK_LOST) (K7).
 * Return: 0, -CK_EINVAL, -CK_ECLOSED, -CK_EDEADLK, -CK_EFORK. Since: 0.1
 */
enum ck_delivery { CK_DELIVERED = 1, CK_LOST = 2 };
int ck_turn_answered(struct ck_turn *turn, enum ck_delivery delivery);
/*
 * ck_turn_free - end the turn. @turn may be NULL. A creation that has not finished becomes lost
 * (K8). If the host has not received CK_CREATE, nothing has begun, and the next turn may create.
 * Not while ck_turn_wait() runs. Since: 0.1
 */
void ck_turn_free(struct ck_turn *turn);
/*
 * ck_create - the whole turn of one caller: begin it, wait, have it created if need be, and answer.
 * It blocks, also past the deadline while @create runs, and needs an event loop in another thread.
 * Both functions are called in this thread.
 * @create: create it, and say how that ended: ck_turn_finish(), ck_turn_fail() or ck_turn_lost().
 * What these return need not be looked at. Without them the outcome is unknown (K8), and @create
 * may be called once more.
 * @answer: called exactly once. The caller gets @reply, or if that is NULL, @status; both are
 * borrowed for the call. Return CK_DELIVERED if it was sent, CK_LOST if not.
 * Return: CK_HAND_BACK after a reply; CK_BUSY, CK_KEPT and the errors of ck_turn_begin() and
 * ck_turn_wait() after a status, and @err says why. Nobody is answered in a child (-CK_EFORK), or
 * without a function for it (-CK_EINVAL). Since: 0.1
 */
typedef void ck_create_cb(struct ck_turn *turn, void *userdata);
typedef enum ck_delivery ck_answer_cb(const struct ck_reply *reply, const struct ck_status *status,
				      void *userdata);
int ck_create(struct ck_cache *cache, const struct ck_request *request, ck_create_cb *create,
	      ck_answer_cb *answer, void *userdata, struct ck_error *err);

/* ---- calls and events that the host sees ----------------------------------------------------- */

/*
 * ck_sandbox_stopping - StopPodSandbox for @id is about to be forwarded (K16). Return: 0,
 * -CK_EFORK, -CK_ENOMEM, -CK_EINVAL. Since: 0.1
 */
int ck_sandbox_stopping(struct ck_cache *cache, const char *sandbox_id);
/*
 * ck_remove_begin - RemovePodSandbox or RemoveContainer for @id is about to be forwarded
 * For a sandbox it includes ck_sandbox_stopping(). The turn is only for waiting: ck_turn_wait(),
 * ck_turn_watch(), ck_turn_leave(), ck_turn_error() and ck_turn_free(); functions that create or
 * answer return -CK_ESTATE, or do nothing. It is decided CK_DRAINED when nothing of it is
 * being created or destroyed any more, or CK_BUSY near the deadline. After CK_DRAINED forward the
 * call, call ck_object_removed() if it succeeded, and ck_turn_free(). After CK_BUSY forward
 * nothing, and answer with ck_turn_error(): the kubelet tries again.
 * Return: CK_WAIT, CK_DRAINED, -CK_ENOMEM, -CK_EINVAL, -CK_EFORK, -CK_ECLOSED. Since: 0.1
 */
int ck_remove_begin(struct ck_cache *cache, enum ck_kind kind, const char *id, uint64_t timeout,
		    struct ck_turn **ret_turn, struct ck_error *err);
/*
 * ck_object_removed - the runtime has removed a resource: it is forgotten, or given up if it was
 * not committed yet. Return: 0, -CK_ENOTFOUND, -CK_EFORK.
 * Since: 0.1
 */
int ck_object_removed(struct ck_cache *cache, enum ck_kind kind, const char *id);
/*
 * ck_object_seen - an event or status showed the condition of a resource. Return: 0, -CK_ENOTFOUND,
 * -CK_EFORK. Since: 0.1
 */
int ck_object_seen(struct ck_cache *cache, enum ck_kind kind, const char *id,
		   enum ck_condition condition);
/*
 * ck_object_used - a call named the id of a committed resource, so its answer has arrived (K7).
 * Return: 0, -CK_ENOTFOUND, -CK_EFORK. Since: 0.1
 */
int ck_object_used(struct ck_cache *cache, enum ck_kind kind, const char *id);
/*
 * ck_container_starting - StartContainer for @container_id is about to be forwarded. Call it before
 * the id is looked up with ck_view_resolve(). A caller that names the full id of a container which
 * was handed over, and was kept again because its answer was not confirmed, has that answer: it is
 * committed now (K7). Otherwise as ck_object_used(). Return: 0, -CK_ENOTFOUND (it is hidden or
 * unknown), -CK_EFORK.
 * Since: 0.1
 */
int ck_container_starting(struct ck_cache *cache, const char *container_id);

/*
 * ck_view_begin - begin one consistent filter for one list, before the list is requested. Ask it
 * when the answer has come. The first question fixes all answers of ck_view_hides(). One thread at
 * a time.
 * Return: 0, -CK_ENOMEM, -CK_EINVAL, -CK_EFORK, -CK_ECLOSED. Since: 0.1
 */
int ck_view_begin(struct ck_cache *cache, struct ck_view **ret_view, struct ck_error *err);
/*
 * ck_view_hides - must this object be left out? An object whose id is not known yet is hidden by
 * its key.
 * Return: 1 leave it out, 0 show it, -CK_EINVAL, -CK_ENOMEM, -CK_EFORK. Since: 0.1
 */
int ck_view_hides(struct ck_view *view, const struct ck_object *object);
/*
 * ck_view_resolve - find the object that a call names by an id or the beginning of one; or, of an
 * object of which only the id is known, whether it may be shown
 * @ret_id: with 1 the visible id, with 0 @prefix; borrowed until the next call for this view
 * Return: 1 the committed object with the id @prefix, or else the only one whose id begins so; 0 no
 * object of the cache, or several: for the runtime to judge; -CK_ENOTFOUND it fits hidden ids only,
 * so tell the caller that nothing of that name exists. -CK_EINVAL, -CK_ENOMEM, -CK_EFORK.
 * Since: 0.1
 */
int ck_view_resolve(struct ck_view *view, enum ck_kind kind, const char *prefix,
		    const char **ret_id);
/*
 * ck_view_listed - give the cache the whole, unfiltered, successful answer of that list, to
 * reconcile with (K24 to K27)
 * All @objects have the size of the first. Copied. Return: 0, -CK_ENOMEM, -CK_EINVAL, -CK_EFORK.
 * Since: 0.1
 */
int ck_view_listed(struct ck_view *view, enum ck_kind kind, const struct ck_object *objects,
		   size_t n);
/* ck_view_free - end the view. @view may be NULL. Since: 0.1 */
void ck_view_free(struct ck_view *view);

/*
 * Sizes. A struct that begins with its size grows at its end only. Set sizeof(struct ...). The
 * library refuses a size below that of release 0.1, as given here (-CK_EINVAL); takes members that
 * a smaller struct does not have as 0; and neither reads nor writes what it does not know of a
 * larger one. What it gives to a host says in size how much of it there is. Since: 0.1
 */
#define CK_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#define CK_OBJECT_SIZE_0_1 CK_SIZE_UP_TO(struct ck_object, created_at)
#define CK_FILTER_SIZE_0_1 CK_SIZE_UP_TO(struct ck_filter, sandbox_id)
#define CK_ANSWER_SIZE_0_1 CK_SIZE_UP_TO(struct ck_answer, message)
#define CK_HOST_SIZE_0_1 CK_SIZE_UP_TO(struct ck_host, committed)
#define CK_TOLD_SIZE_0_1 CK_SIZE_UP_TO(struct ck_told, gone)
#define CK_HOOKS_SIZE_0_1 CK_SIZE_UP_TO(struct ck_hooks, released)
#define CK_OPTIONS_SIZE_0_1 CK_SIZE_UP_TO(struct ck_options, clock_userdata)
#define CK_ENTRY_INFO_SIZE_0_1 CK_SIZE_UP_TO(struct ck_entry_info, changed)
#define CK_REQUEST_SIZE_0_1 CK_SIZE_UP_TO(struct ck_request, key_only)
#define CK_RESULT_SIZE_0_1 CK_SIZE_UP_TO(struct ck_result, reply_len)
#define CK_REPLY_SIZE_0_1 CK_SIZE_UP_TO(struct ck_reply, len)
#define CK_STATUS_SIZE_0_1 CK_SIZE_UP_TO(struct ck_status, details_len)

#ifdef __cplusplus
}
#endif
#endif
