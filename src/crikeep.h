/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRIKEEP_H
#define CRIKEEP_H
/*
 * libcrikeep keeps the result of a RunPodSandbox or CreateContainer call whose caller has timed
 * out, and hands it back when the kubelet repeats the request.
 *
 * A host (a container runtime, or a proxy in front of one) opens one cache and passes every create
 * through a turn:
 *
 *	r = ck_turn_begin(cache, &request, &turn, &err);
 *	if (r == CK_WAIT)
 *		r = ck_turn_wait(turn, &err);
 *	if (r == CK_CREATE) {
 *		... make the sandbox ...
 *		r = ck_turn_finish(turn, &result, &err);
 *		if (r == CK_WAIT)
 *			r = ck_turn_wait(turn, &err);
 *	}
 *	if (r == CK_HAND_BACK)
 *		... answer with ck_turn_reply(turn) ...
 *	ck_turn_free(turn);
 *
 * Words. An entry is one row of the cache: slot (what the kubelet wants filled), attempt,
 * fingerprint of the request, state. A turn is one caller's passage through the cache. Hidden:
 * exists in the runtime, but is not committed; a host leaves it out of every list, status, event
 * and statistic. crikeep(1) shows the entries, libcrikeep(3) tells the whole story, and
 * crikeep-rules(7) has the rules by number, as (K6) or (H1).
 *
 * Returns. Negative: -CK_E..., an error, and @err says more. Zero or positive: an outcome the
 * caller must handle. A ret_ argument is written on success only, @err on failure only; @err may
 * always be NULL. Threads. Every function may be called from any thread unless its comment says
 * otherwise. Nothing here blocks but ck_turn_wait() and ck_cache_close(). No lock is held while the
 * host or a hook is called. 64 KiB of stack are enough. Ownership. Inputs are copied unless a
 * comment says otherwise. What is borrowed says until when. Every function that takes a cache, turn
 * or view may also return -CK_ECLOSED after ck_cache_close() began, -CK_EINVAL for a missing or
 * oversized argument, and -CK_EDEADLK from inside choose, released, committed or a function given
 * to ck_snapshot() or ck_entries().
 * Fork. In a child every call returns -CK_EFORK; the child must not use or free anything it
 * inherited. A child that does not exec keeps the state directory owned for as long as it lives.
 * Time. Nanoseconds of CLOCK_BOOTTIME as uint64_t; the wall clock is only shown, never used.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, value, what it means: the only codes that leave the library. Values are never reused.
 * Since: 0.1 */
#define CK_ERRORS(X) \
	X(NOMEM, 1, "out of memory") \
	X(INVAL, 2, "invalid argument") \
	X(MALFORMED, 3, "not a valid CRI request") \
	X(TOOBIG, 4, "over a limit") \
	X(IO, 5, "input or output failed") \
	X(FULL, 6, "no space left for the database") \
	X(DAMAGED, 7, "the database is damaged") \
	X(VERSION, 8, "made by a newer version") \
	X(OWNED, 9, "another process owns the state directory") \
	X(NOTFOUND, 10, "no such entry") \
	X(CONFLICT, 11, "the request differs from the one that made the committed resource") \
	X(ABANDONED, 12, "superseded: the kubelet has moved on") \
	X(UNAVAILABLE, 13, "something this needs is not available yet") \
	X(DEADLINE, 14, "the deadline had passed") \
	X(PRECONDITION, 15, "the sandbox is being stopped") \
	X(FAILED, 16, "the creation failed") \
	X(REFUSED, 17, "a plugin refused") \
	X(NOLOOP, 18, "no event loop: call ck_run_thread() or ck_process()") \
	X(DEADLK, 19, "not from a callback, and not twice at once") \
	X(FORK, 20, "in a child of the process that opened the cache") \
	X(CLOSED, 21, "the cache is closing") \
	X(STATE, 22, "the turn is not in a state for this call")

/* Codes: functions return them negated.   Since: 0.1 */
enum ck_errcode {
#define CK_ERROR_ENUM(name, value, text) CK_E##name = value,
	CK_ERRORS(CK_ERROR_ENUM)
#undef CK_ERROR_ENUM
};

/* Outcomes of a turn. Values are never reused.   Since: 0.1 */
enum ck_outcome {
	CK_OK = 0,
	/* the resource is yours to make; then ck_turn_finish() or ck_turn_fail() */
	CK_CREATE = 1,
	CK_WAIT = 2,      /* not decided yet: ck_turn_wait() or ck_turn_watch() */
	CK_HAND_BACK = 3, /* here it is: ck_turn_reply() */
	/* the deadline is near and it is still being made; ck_turn_error() tells stage and age */
	CK_BUSY = 4,
	/* finished, but your caller is gone or out of time: kept for its repetition */
	CK_KEPT = 5,
	/* finished, but nobody may have it any more: it will be destroyed through ck_host */
	CK_ABANDONED = 6,
	CK_DRAINED = 7,   /* ck_remove_begin(): nothing of the sandbox is left in the cache */
};

/* Bytes of an error's text: a sentence with a path in it; longer ones are cut.   Since: 0.1 */
#define CK_ERROR_TEXT 512

/* An error, on the caller's stack; nothing to free. It has no size, and never grows.
 * Since: 0.1 */
struct ck_error {
	int code;                 /* enum ck_errcode */
	int sys;                  /* errno, or 0 */
	/* SQLite's extended result code, or with CK_EFAILED the runtime's gRPC code; or 0 */
	int sub;
	/* from the outside in: "open the cache '/run/crikeep': lock: ..."; never a request's
	 * value */
	char text[CK_ERROR_TEXT];
};

/* ck_strerror - the meaning of a code, negated or not, in a few words. Static; from anywhere, as
 * the next two.   Since: 0.1 */
const char *ck_strerror(int code);
/* ck_error_grpc - the gRPC status code (google.rpc.Code) a CRI server answers with for this error;
 * 0 for NULL.   Since: 0.1 */
int ck_error_grpc(const struct ck_error *err);
/* ck_version - "0.1.0". Static.   Since: 0.1 */
const char *ck_version(void);

/* What a request asks for: RunPodSandbox a pod sandbox, CreateContainer a container.
 * Since: 0.1 */
enum ck_kind { CK_SANDBOX = 1, CK_CONTAINER = 2 };
/* How requests are compared: libcrikeep(3), "THE SAME REQUEST".   Since: 0.1 */
enum ck_mode { CK_MODE_NORMALIZED = 0, CK_MODE_IDENTITY = 1, CK_MODE_STRICT = 2 };
/* What is finished too late is kept for its repetition, or, a sandbox, committed for the kubelet to
 * find (K2).   Since: 0.1 */
enum ck_hand_back { CK_REPEAT = 0, CK_OFFER = 1 };
/* If only labels and annotations differ: evict once, then hand back (K12); or always the one or the
 * other.   Since: 0.1 */
enum ck_annotation_change {
	CK_ANNOTATION_AUTO = 0,
	CK_ANNOTATION_EVICT = 1,
	CK_ANNOTATION_HAND_BACK = 2
};
/* syslog(3)'s numbers.   Since: 0.1 */
enum ck_log_level { CK_LOG_ERROR = 3, CK_LOG_WARNING = 4, CK_LOG_INFO = 6, CK_LOG_DEBUG = 7 };

/* How a resource looks in the runtime. CRI's words in brackets.   Since: 0.1 */
enum ck_condition {
	CK_CONDITION_UNKNOWN = 0, /* the question failed: nothing is concluded from it */
	CK_CONDITION_READY = 1,   /* sandbox READY, container CREATED */
	CK_CONDITION_RUNNING = 2, /* container RUNNING */
	CK_CONDITION_DEAD = 3,    /* sandbox NOTREADY, container EXITED */
	CK_CONDITION_ABSENT = 4,  /* NOT_FOUND */
};

/* The states of an entry, with the database's numbers; libcrikeep(3) has their story. Values are
 * never reused.   Since: 0.1 */
enum ck_state {
	CK_STATE_CREATING = 1,   /* a creation runs, or nobody knows how it ended */
	/* the resource exists, and is hidden until its request is repeated */
	CK_STATE_KEPT = 2,
	CK_STATE_COMMITTING = 3, /* plugins are being told of it */
	CK_STATE_COMMITTED = 4,  /* the kubelet's: visible */
	CK_STATE_EVICTING = 5,   /* given up: being destroyed */
	CK_STATE_GONE = 6,       /* destroyed; its id stays hidden for a minute */
};

/*
 * Opaque. A cache, a turn and a job may be used by any number of threads at once, except that one
 * turn is waited for by one and
 * one job is filled and ended by one; a view by one thread at a time.   Since: 0.1
 */
struct ck_cache;
struct ck_turn;
struct ck_job;
struct ck_view;
struct ck_told;

/* ---- the host: what the cache asks of the program that embeds it ----------------------------- */

/* One sandbox or container as the runtime lists it. Strings are borrowed for the call.
 * Since: 0.1 */
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
 * Which objects a list job wants; a NULL member does not restrict. Listing more than was asked for
 * does no harm. Borrowed until
 * the job ends.   Since: 0.1
 */
struct ck_filter {
	size_t size;
	enum ck_kind kind;
	const char *pod_uid;    /* for sandboxes: label io.kubernetes.pod.uid */
	const char *sandbox_id; /* for containers: of this sandbox */
};

/* How a job ended. Copied. NULL, or a size that is not set, counts as a failure.   Since: 0.1 */
struct ck_answer {
	size_t size;
	/* 0: it was done or answered; 5 (NOT_FOUND) confirms a destroy; else it failed, and is
	 * tried again */
	int grpc;
	enum ck_condition condition; /* inspect */
	const char *image_id;        /* resolve_image; NULL: it has none */
};

/*
 * Calls to the host. Each returns at once, having started the job or not; ck_job_done() ends it,
 * later or from within the call, from any thread, exactly once. They come only from ck_process() or
 * the library's own thread. inspect, list and resolve_image may be NULL: then K6 serves what it
 * has, lost creations are given up after their grace without asking, nothing is reconciled, and
 * image references are equal only byte by byte. @filter and @id live as long as the job.
 * Source: K6 (inspect), K8, K22, K24 (list), K17, K18 (destroy), libcrikeep(3), "THE SAME REQUEST" (resolve_image).   Since: 0.1
 */
struct ck_host {
	size_t size;
	void *userdata;
	/* stop, then remove */
	void (*destroy)(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata);
	void (*inspect)(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata);
	void (*list)(struct ck_job *job, const struct ck_filter *filter, void *userdata);
	void (*resolve_image)(struct ck_job *job, const char *image, void *userdata);
	/* from any thread; must not block or call back */
	void (*log)(enum ck_log_level level, const char *text, void *userdata);
	/*
	 * an entry that was hidden is visible from now on, and that is on disk: time for the
	 * runtime's own CREATED event. From any thread, inside the cache's critical section, as
	 * choose of struct ck_hooks is. May be NULL
	 */
	void (*committed)(const struct ck_told *entry, void *userdata);
};

/*
 * ck_job_entry - what a destroy or inspect job is about: the names that were asked for with it, for
 * a host that knows its
 * resources by name, or has lost its memory of them. Borrowed until ck_job_done(). Return: NULL for other jobs.   Since: 0.1
 */
const struct ck_told *ck_job_entry(const struct ck_job *job);
/*
 * ck_job_listed - one object of a list job's answer, before its ck_job_done(). Copied.
 * Return: 0, -CK_ENOMEM (the list then counts as failed), -CK_EINVAL (not a list job, or no object
 * of ours), -CK_EFORK. Since: 0.1
 */
int ck_job_listed(struct ck_job *job, const struct ck_object *object);
/* ck_job_stopped - a destroy job has stopped the sandbox: its ports and addresses are free (K10).
 * Optional.        Since: 0.1 */
void ck_job_stopped(struct ck_job *job);
/* ck_job_done - the job ended; @job is gone afterwards. A job must be ended even after
 * ck_cache_close() was called. Since: 0.1 */
void ck_job_done(struct ck_job *job, const struct ck_answer *answer);

/* ---- the hooks: what fires when a resource is committed -------------------------------------- */

/* RUN is sent with the commit, and may be refused; the others tell of the end to those who know, in
 * this order.   Since: 0.1 */
enum ck_hook_event { CK_HOOK_RUN = 1, CK_HOOK_STOP = 2, CK_HOOK_REMOVE = 3 };

/* An entry as hooks see it. Borrowed for the call.   Since: 0.1 */
struct ck_told {
	size_t size;
	uint64_t entry; /* stable for the life of the entry */
	enum ck_kind kind;
	const char *id;
	const char *pod_name, *pod_namespace, *pod_uid, *sandbox_id, *container_name;
	uint32_t attempt;
	const char *told; /* names of those who know of it, separated by ' ' */
	/* released: 1 the entry is gone, told or not; 0 its commit was not written */
	int gone;
};

/*
 * choose: inside the cache's critical section: no I/O, no waiting, no call into the library. Picks
 * who will be told, writes their names ("NN-name", separated by ' ') to @names and returns 0; or,
 * where a required one is absent, its name and 1. fire: outside of it, from ck_process(): tells
 * them, and ends the job with ck_hook_done(). cancel: tell nobody further of this entry's RUN; its
 * job still has to end. released: the entry is gone, or its commit was not written; also critical.
 * Any may be called while jobs of other entries run; per entry the order is choose, RUN, STOP, REMOVE.           Since: 0.1
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
 * ck_hook_told - before ck_hook_done(): names, separated by ' ', of those the event was really sent
 * to; "" nobody. Optional; the
 * history shows them. Not called, it names for a RUN that nobody refused those who were chosen, else nobody.   Since: 0.1
 */
void ck_hook_told(struct ck_job *job, const char *names);
/*
 * ck_hook_done - the event went through its recipients; @job is gone afterwards. From any thread,
 * exactly once, also after ck_cache_close(). @refusal: NULL, or "plugin NN-name: its text"; copied;
 * what the request contained is redacted in it. Since: 0.1
 */
void ck_hook_done(struct ck_job *job, const char *refusal);
/*
 * ck_snapshot - every told entry that is not being torn down, in one consistent pass inside the
 * critical section (H1).
 * Return: 0, or what @fn returned if not 0 (the pass ends there), -CK_EINVAL, -CK_EFORK,
 * -CK_ECLOSED,
 * -CK_EDEADLK.   Since: 0.1
 */
int ck_snapshot(struct ck_cache *cache, int (*fn)(const struct ck_told *entry, void *userdata),
		void *userdata);

/* ---- the cache ------------------------------------------------------------------------------- */

/* All durations in nanoseconds; 0 is the default in brackets. Strings are copied.   Since: 0.1 */
struct ck_options {
	/* sizeof(struct ck_options): later releases add members at the end */
	size_t size;
	/* database, key, lock, wishes; made 0700 if absent ["/run/crikeep"] */
	const char *state_dir;
	const struct ck_host *host;                /* copied; required */
	const struct ck_hooks *hooks;              /* copied; NULL: nobody is told */
	/* how long a result is kept after the last interest [10 min] (K15) */
	uint64_t ttl;
	/* after this a creation's end is unknown [15 min] (K8) */
	uint64_t create_deadline;
	/* absence for this long ends a lost creation somebody waits for [30 s] */
	uint64_t lost_grace;
	/* a new attempt waits this long for the old one's ports [20 s] (K10) */
	uint64_t supersede_wait;
	/* a destroy without an answer has failed [60 s] (K18) */
	uint64_t destroy_timeout;
	enum ck_mode mode;                         /* [normalized] */
	enum ck_hand_back hand_back;               /* [repeat] */
	enum ck_annotation_change on_annotation_change; /* [auto: K12] */
	/* NULL-terminated patterns, one '*' at the end; NULL: what CNI plugins write */
	const char *const *ignore_annotations;
	/* 1: CreateContainer's copy of what only RunPodSandbox consumes counts too */
	int compare_sandbox_config;
	/* a test's or simulator's clock, steered with ck_timeout(); NULL: the kernel's */
	uint64_t (*clock)(void *userdata);
	void *clock_userdata;
};

/*
 * ck_cache_open - open or make the database in state_dir, own it, and take up what an earlier life
 * left (K25)
 * Return: 0, -CK_EINVAL, -CK_ENOMEM, -CK_EOWNED (@err names the owner's pid), -CK_EVERSION,
 * -CK_EIO. A damaged database is set aside, and a disk without space is worked around in memory
 * (K32, K33): both succeed and say so through ck_host.log. Since: 0.1
 */
int ck_cache_open(const struct ck_options *options, struct ck_cache **ret_cache,
		  struct ck_error *err);
/*
 * ck_cache_close - end the library's thread, give every waiting turn -CK_ECLOSED, let creations
 * become lost (K8), free Blocks until every other call has returned. Jobs under way may end later,
 * and must. Turns and views stay valid until they are freed, which must be done for each; watched
 * turns are not called back any more. Not from a callback. NULL is fine.
 * Return: 0, -CK_EDEADLK, -CK_EFORK, -CK_ECLOSED.   Since: 0.1
 */
int ck_cache_close(struct ck_cache *cache, struct ck_error *err);

/* Exactly one of these turns the crank: timers, jobs, hooks, callbacks, wishes. */
/*
 * ck_run_thread - a thread of the library's own does it; all signals blocked. Return: 0,
 * -CK_EDEADLK, -CK_ENOMEM,
 * -CK_EFORK.  Since: 0.1
 */
int ck_run_thread(struct ck_cache *cache, struct ck_error *err);
/*
 * ck_fd - becomes readable when ck_process() is due. Borrowed, for poll(2) and epoll(7). Return:
 * the descriptor,
 * -CK_EFORK.  Since: 0.1
 */
int ck_fd(struct ck_cache *cache);
/*
 * ck_process - do what is due; never blocks. Return: the number of things done, -CK_EDEADLK, -CK_EFORK.  Since: 0.1
 */
int ck_process(struct ck_cache *cache, struct ck_error *err);
/*
 * ck_timeout - when ck_process() is due next by the cache's own clock: a time, UINT64_MAX never, 0 now.  Since: 0.1
 */
uint64_t ck_timeout(struct ck_cache *cache);

/*
 * ck_reconciled - have the host's first lists succeeded? Until then requests wait and nothing
 * expires or is destroyed (K24, K25). A host that lets callers in only afterwards asks this after
 * each ck_process(). Return: 1 (at once without host.list), 0,
 * -CK_EINVAL, -CK_ECLOSED, -CK_EFORK.   Since: 0.1
 */
int ck_reconciled(struct ck_cache *cache);

/* An entry as `crikeep list` shows it. Borrowed for the call. Absent strings are "".
 * Since: 0.1 */
struct ck_entry_info {
	size_t size;
	uint64_t entry; /* stable for the life of the entry */
	enum ck_kind kind;
	enum ck_state state;
	const char *id; /* "" not known yet */
	const char *pod_name, *pod_namespace, *pod_uid, *sandbox_id, *container_name;
	uint32_t attempt;
	int lost;          /* CREATING: nobody knows how it will end (K8) */
	int told;          /* plugins know of it */
	int ended;         /* COMMITTED: stopped or exited, never handed back */
	uint32_t requests; /* how often it was asked for */
	const char *stage; /* where the creation is, or was last */
	const char *why;   /* EVICTING: the reason in a few words */
	uint32_t tries;    /* EVICTING: destroys that failed; the last with gRPC code last_grpc */
	int last_grpc;
	uint64_t created, changed; /* begun; last move: times of the boot in which they happened */
};
/*
 * ck_entries - every entry but tombstones, in one consistent pass inside the critical section,
 * oldest first What a host does with an earlier life's entries after ck_cache_open(), and a source
 * for its own metrics.
 * @fn: calls nothing of this library. Return: 0, or what @fn returned if not 0 (the pass ends
 * there), -CK_EINVAL, -CK_EFORK,
 * -CK_ECLOSED, -CK_EDEADLK.   Since: 0.1
 */
int ck_entries(struct ck_cache *cache, int (*fn)(const struct ck_entry_info *entry, void *userdata),
	       void *userdata);

/* ---- turns ----------------------------------------------------------------------------------- */

/* What a caller asks for. Copied.   Since: 0.1 */
struct ck_request {
	size_t size;
	enum ck_kind kind;
	/* RunPodSandboxRequest or CreateContainerRequest of runtime.v1 or v1alpha2, as it came */
	const void *bytes;
	size_t len;        /* at most 16 MiB */
	/* what is left of the caller's deadline, in ns; 0: none. Take it from grpc-timeout, less
	 * what has passed */
	uint64_t timeout;
	/* 1: the deadline had passed, or the call was reset, before it was read: moves nothing on
	 * (K9) */
	int expired;
	/* 1: compared as CK_MODE_IDENTITY does, for a caller that knows only the name; what it
	 * makes is kept as usual */
	int key_only;
};

/* What was made. Copied.   Since: 0.1 */
struct ck_result {
	size_t size;
	const char *id;    /* the runtime's id; at most 1024 bytes */
	/* the response's bytes, handed out as they are; NULL: made from the id */
	const void *reply;
	size_t reply_len;  /* at most 64 KiB */
};

/* Borrowed from the turn until ck_turn_free(). Who asks sets size, here and in struct ck_status.
 * Since: 0.1 */
struct ck_reply {
	size_t size;
	const char *id;
	const void *bytes; /* RunPodSandboxResponse or CreateContainerResponse */
	size_t len;
};

/* A gRPC status as the runtime gave it; handed unchanged to everybody who waits for the same
 * creation (K4).   Since: 0.1 */
struct ck_status {
	size_t size;
	int grpc; /* not 0 */
	const char *message;
	/* grpc-status-details-bin, decoded; or NULL. Over 64 KiB they are left out */
	const void *details;
	size_t details_len;
};

/*
 * ck_turn_begin - a caller comes with a request
 * @ret_turn is written with an outcome only: an error needs no ck_turn_free().
 * Return: CK_CREATE, CK_WAIT, CK_HAND_BACK, or -CK_ECONFLICT (text: differing field paths),
 * -CK_EPRECONDITION, -CK_EDEADLINE, -CK_EMALFORMED, -CK_EINVAL (one uid, two names: K9),
 * -CK_ETOOBIG, -CK_EUNAVAILABLE, -CK_ENOMEM, -CK_ECLOSED, -CK_EFORK, -CK_EABANDONED (by a call that
 * came in the same moment).
 * A begun creation is in the database before CK_CREATE is returned, unless that cannot be written (K32).   Since: 0.1
 */
int ck_turn_begin(struct ck_cache *cache, const struct ck_request *request,
		  struct ck_turn **ret_turn, struct ck_error *err);
/*
 * ck_turn_wait - block until the turn is decided
 * Return: CK_CREATE, CK_HAND_BACK, CK_BUSY, CK_KEPT, CK_ABANDONED, CK_DRAINED, or -CK_EFAILED
 * (ck_turn_status()), -CK_EABANDONED, -CK_ECONFLICT, -CK_EUNAVAILABLE, -CK_EREFUSED,
 * -CK_EPRECONDITION, -CK_ENOLOOP, -CK_EDEADLK, -CK_ECLOSED, -CK_ENOMEM, -CK_EFORK. Returns at the
 * latest when the caller's deadline is near (K3), or when the turn is left. Not so after CK_CREATE:
 * what is to be made has no end but ck_turn_finish() and the like, so who waits meanwhile, in
 * another thread, only
 * hears that it was abandoned (-CK_EABANDONED), or that the turn was left.   Since: 0.1
 */
int ck_turn_wait(struct ck_turn *turn, struct ck_error *err);
/*
 * ck_turn_watch - the callback face: @cb is called once per decision from ck_process(), with what
 * ck_turn_wait() would return Set it before the turn can be decided again, that is: right after
 * ck_turn_begin() or ck_turn_finish() returned CK_WAIT, or, for a creator that wants to hear that
 * its creation was abandoned (-CK_EABANDONED: stop making it, then ck_turn_free()), after
 * CK_CREATE. What ck_turn_finish() and ck_turn_fail() themselves decide is for their caller: @cb
 * does not come for it.
 * Return: 0, -CK_EFORK, -CK_EINVAL.   Since: 0.1
 */
typedef void ck_turn_cb(struct ck_turn *turn, int outcome, void *userdata);
int ck_turn_watch(struct ck_turn *turn, ck_turn_cb *cb, void *userdata);
/*
 * ck_turn_leave - the caller is gone. Idempotent; a creator goes on making what it makes.
 * ck_turn_wait() then returns. Since: 0.1
 */
void ck_turn_leave(struct ck_turn *turn);
/*
 * ck_turn_stage - where the creation is: "sandbox network creation". Cut at 64 bytes. Return: 0,
 * -CK_ESTATE, -CK_EFORK. Since: 0.1
 */
int ck_turn_stage(struct ck_turn *turn, const char *stage);
/*
 * ck_turn_finish - the resource exists; does not block
 * Return: CK_HAND_BACK (answer your caller), CK_WAIT (hooks run: wait or watch), CK_KEPT,
 * CK_ABANDONED, or -CK_EUNAVAILABLE (kept, but the commit could not be written or a required plugin
 * is absent), -CK_ESTATE, -CK_EINVAL,
 * -CK_ENOMEM, -CK_EFORK.   Since: 0.1
 */
int ck_turn_finish(struct ck_turn *turn, const struct ck_result *result, struct ck_error *err);
/*
 * ck_turn_fail - the creation failed for certain; wakes everybody who waits for it with this status
 * Not for DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE or a lost connection, which leave the end open:
 * those are ck_turn_lost(). Where ck_turn_again() is 1 (K8), a runtime that says the name is
 * reserved or exists, in whatever words, is still at the first creation: that is ck_turn_lost()
 * too. ALREADY_EXISTS is taken for it here.
 * Return: 0, -CK_ESTATE, -CK_EINVAL, -CK_EFORK.   Since: 0.1
 */
int ck_turn_fail(struct ck_turn *turn, const struct ck_status *why, struct ck_error *err);
/*
 * ck_turn_lost - nobody knows how the creation ends; the host is asked until it is known. Return:
 * 0, -CK_ESTATE,
 * -CK_EFORK.  Since: 0.1
 */
int ck_turn_lost(struct ck_turn *turn, struct ck_error *err);
/*
 * ck_turn_again - after CK_CREATE: was the same asked of the host before, by whomever, and nobody
 * knows how that ended?
 * Return: 1, 0, -CK_EFORK, -CK_EINVAL.   Since: 0.1
 */
int ck_turn_again(struct ck_turn *turn);
/*
 * ck_turn_reply - what to answer, after CK_HAND_BACK. Set ret_reply->size. Return: 0, -CK_ESTATE,
 * -CK_EINVAL, -CK_EFORK. Since: 0.1
 */
int ck_turn_reply(struct ck_turn *turn, struct ck_reply *ret_reply);
/*
 * ck_turn_status - the runtime's status, after -CK_EFAILED; borrowed until ck_turn_free(). Set
 * ret_status->size.
 * Return: 0, -CK_ESTATE, -CK_EINVAL, -CK_EFORK.   Since: 0.1
 */
int ck_turn_status(struct ck_turn *turn, struct ck_status *ret_status);
/*
 * ck_turn_error - why the turn was decided as it was, after CK_BUSY or an error; borrowed until
 * ck_turn_free(). NULL in a child. Since: 0.1
 */
const struct ck_error *ck_turn_error(struct ck_turn *turn);
/*
 * ck_turn_answered - the answer arrived (CK_DELIVERED), or its stream broke before the deadline + 1
 * s (CK_LOST) (K7).
 * Return: 0, -CK_EINVAL, -CK_ECLOSED, -CK_EDEADLK, -CK_EFORK.   Since: 0.1
 */
enum ck_delivery { CK_DELIVERED = 1, CK_LOST = 2 };
int ck_turn_answered(struct ck_turn *turn, enum ck_delivery delivery);
/*
 * ck_turn_free - end the turn. NULL is fine. A creator that has not finished becomes lost (K8); one
 * that nobody had told that it
 * is to create has begun nothing, and the next may. Not while ck_turn_wait() runs.  Since: 0.1
 */
void ck_turn_free(struct ck_turn *turn);

/* ---- what the host sees pass by -------------------------------------------------------------- */

/*
 * ck_stopping - StopPodSandbox for @id is about to be forwarded (K16). Return: 0, -CK_EFORK,
 * -CK_ENOMEM, -CK_EINVAL. Since: 0.1
 */
int ck_stopping(struct ck_cache *cache, const char *sandbox_id);
/*
 * ck_remove_begin - RemovePodSandbox or RemoveContainer for @id is about to be forwarded For a
 * sandbox: as ck_stopping(), and the turn is decided, CK_DRAINED, when nothing of it is being made
 * or destroyed any more, or CK_BUSY near the deadline. After CK_DRAINED forward the call,
 * ck_forget() if it succeeded, and ck_turn_free(); after CK_BUSY forward nothing, and answer with
 * ck_turn_error(): it is asked for again. Return: CK_WAIT, CK_DRAINED, -CK_ENOMEM, -CK_EINVAL,
 * -CK_EFORK, -CK_ECLOSED.   Since: 0.1
 */
int ck_remove_begin(struct ck_cache *cache, enum ck_kind kind, const char *id, uint64_t timeout,
		    struct ck_turn **ret_turn, struct ck_error *err);
/*
 * ck_forget - the runtime has removed a committed resource. Return: 0, -CK_ENOTFOUND, -CK_EFORK.  Since: 0.1
 */
int ck_forget(struct ck_cache *cache, enum ck_kind kind, const char *id);
/*
 * ck_seen - an event or status told the condition of a resource. Return: 0, -CK_ENOTFOUND, -CK_EFORK.  Since: 0.1
 */
int ck_seen(struct ck_cache *cache, enum ck_kind kind, const char *id, enum ck_condition condition);
/*
 * ck_used - a call named the id of a committed resource: its answer has arrived (K7). Return: 0,
 * -CK_ENOTFOUND, -CK_EFORK. Since: 0.1
 */
int ck_used(struct ck_cache *cache, enum ck_kind kind, const char *id);
/*
 * ck_note_told - for the history: plugins were told of this by the host itself, because the kubelet
 * wants the resource to end. What hooks.fire tells is noted without it. Call it before ck_forget().
 * @names: copied; "NN-name", separated by ' ', as of struct ck_nri_result; "" for nobody, which
 * notes nothing
 * Return: 0, -CK_ENOTFOUND, -CK_EINVAL, -CK_EFORK.   Since: 0.1
 */
int ck_note_told(struct ck_cache *cache, enum ck_kind kind, const char *id,
		 enum ck_hook_event event, const char *names);

/*
 * ck_view_begin - one consistent filter for one list. Begin it before the list is asked for, ask it
 * when the answer is there: what ck_view_hides() says no longer changes after its first question.
 * One thread at a time.
 * Return: 0, -CK_ENOMEM, -CK_EINVAL, -CK_EFORK, -CK_ECLOSED.   Since: 0.1
 */
int ck_view_begin(struct ck_cache *cache, struct ck_view **ret_view, struct ck_error *err);
/*
 * ck_view_hides - is this object to be left out? One whose id is not known yet is hidden by its
 * key.
 * Return: 1 leave it out, 0 show it, -CK_EINVAL, -CK_ENOMEM, -CK_EFORK.   Since: 0.1
 */
int ck_view_hides(struct ck_view *view, const struct ck_object *object);
/*
 * ck_view_shows - for an object of which only the id is known: is it known as committed? Return: 1
 * yes, 0 no (hidden, or never
 * heard of), -CK_EINVAL, -CK_ENOMEM, -CK_EFORK.   Since: 0.1
 */
int ck_view_shows(struct ck_view *view, enum ck_kind kind, const char *id);
/*
 * ck_view_resolve - what a call names by an id or the beginning of one
 * @ret_id: with 0 only: the one visible id that begins so, else @prefix itself; borrowed until the
 * next call for this view
 * Return: 1 if @prefix names hidden ids only, 0 otherwise, -CK_EINVAL, -CK_ENOMEM, -CK_EFORK.   Since: 0.1
 */
int ck_view_resolve(struct ck_view *view, enum ck_kind kind, const char *prefix,
		    const char **ret_id);
/*
 * ck_view_listed - the whole, unfiltered, successful answer of that list, to be reconciled with
 * (K24 to K27)
 * All @objects have the size of the first. Copied. Return: 0, -CK_ENOMEM, -CK_EINVAL, -CK_EFORK.   Since: 0.1
 */
int ck_view_listed(struct ck_view *view, enum ck_kind kind, const struct ck_object *objects,
		   size_t n);
/* ck_view_free - end the view. NULL is fine.   Since: 0.1 */
void ck_view_free(struct ck_view *view);

#ifdef __cplusplus
}
#endif
#endif
