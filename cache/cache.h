/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_CACHE_H
#define CK_CACHE_CACHE_H
/*
 * Around the machine: rounds, jobs, the event loop. Each file calls only those below it:
 *
 *   src/api.c       the guarded border
 *   open-cache.c    opening and closing
 *   event-loop.c    ck_cache_process() and the library's thread: timers, jobs, callbacks, log
 *                   lines, requests of an administrator
 *   caller.c        turns      view.c   filters for lists      gauges.c   figures for metrics
 *   starts.c        starts of containers
 *   host-jobs.c     what host and hooks are asked
 *   rounds.c        entering and leaving a round, writing it, decided turns
 *   machine-ops.c   what the machine asks
 *   hidden-set.c    what is hidden at one moment
 *
 * THE ROUND. One thread at a time owns machine and store: between ck_round_enter() and
 * ck_round_leave(), by plain code. The others wait, and their turn comes in the order in which they
 * came. A round ends with one transaction. Whoever leaves while others wait lets them in first and
 * sleeps; the last one writes the round, settles the machine and wakes the rest. So under load many
 * callers share one transaction, and a caller that is alone writes its own and waits for nobody. A
 * thread is at most once in a round, because it sleeps until the round is written: so every round
 * ends.
 *
 * To wake a thread costs more than most callers do inside. So the frequent ones give a function to
 * ck_round_call(): whoever leaves before them runs it, and they sleep once, not twice. With
 * ck_round_post() they do not sleep at all, because nobody needs the result. It frees turns. There
 * are only so many of them, so rounds still end.
 *
 * Only entering fails: in a forked child, after the cache was closed, and on a thread that is in
 * the round already. That is a call from hooks.choose, hooks.released or host.committed, or from
 * the function given to ck_snapshot() or ck_entries().
 *
 * When ck_round_leave() returns, everything the caller did is on disk, or is known not to be. In
 * the second case memory decides, and the rows are written when that is possible again (K32). So a
 * caller fetches the outcome of its turn, and answers, after it left (K29).
 *
 * Inside a round nobody waits for anything but the store. Host and hooks are called by the event
 * loop, outside of rounds, except for the functions named above.
 *
 * THE LOCK guards the small state that all threads share: decided turns, callbacks, log lines,
 * flags. It may be taken inside a round. While it is held nothing is called but functions that say
 * "lock held".
 */
#include <pthread.h>
#include <semaphore.h>

#include "cache/machine/machine.h"
#include "cache/store/store.h"
#include "cache/admin-request.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/host-process.h"

struct ck_hidden_set;

/*
 * How much of the decision its caller has heard. CK_CREATE decides nothing: once it is heard, the
 * turn is open again.
 *
 *   OPEN ---> READY ---> HEARD   ck_turn_wait() or a callback takes it
 *    | ^--------'          ^     CK_CREATE
 *    '----> EXPECTED ------'     ck_turn_finish() and ck_turn_fail() return it, once it is on disk
 */
enum ck_news {
	CK_NEWS_OPEN,     /* not decided */
	CK_NEWS_READY,    /* @outcome has come, and nobody has heard it */
	CK_NEWS_EXPECTED, /* decided in this round, by a call that returns it */
	CK_NEWS_HEARD,    /* @outcome is the decision; ck_turn_wait() returns it again */
};

/* Who enters a round: on the stack of a thread, or part of what is posted. */
struct ck_round_call {
	struct ck_round_call *prev, *next; /* in cache->entering, then in cache->inside */
	void (*run)(void *of);             /* NULL: the thread goes on inside */
	void *of;
	/* of what is posted: called when the round is written; NULL: a thread waits */
	void (*after)(void *of);
	pthread_t thread;
	sem_t woken; /* the round is the thread's, or it is over */
	bool owns;   /* ... the first of the two */
	bool shut;   /* @run was not called: the cache was closed meanwhile */
};

struct ck_turn {
	enum { CK_TURN_REQUEST, CK_TURN_REMOVAL } is;
	union {
		struct ck_mturn m;         /* of ck_turn_begin() */
		struct ck_removal removal; /* of ck_remove_begin() */
	};
	struct ck_cache *cache; /* a reference */
	struct ck_fingerprint *fp;
	enum ck_kind kind;
	void *request; /* the runtime's texts are redacted with it; in memory only */
	size_t request_len;

	/* owned by the round */
	struct ck_job *resolving;    /* resolves its image reference; NULL: none does */
	struct ck_turn *prev, *next; /* in cache->turns */
	struct ck_round_call freeing;

	/* guarded by the lock */
	pthread_cond_t decided;
	enum ck_news news;
	int outcome;
	bool begun; /* CK_CREATE was heard, some time */
	bool left;  /* ck_turn_leave() was called: nobody waits for what is not decided */
	ck_turn_cb *cb;
	void *userdata;
	struct ck_turn *queue_prev, *queue_next; /* in cache->callbacks; or NULL */
	unsigned waiting;                        /* threads in ck_turn_wait() */
};

struct ck_log_line {
	struct ck_log_line *prev, *next;
	enum ck_log_level level;
	const char *members; /* what it is about; "" without ck_cache_logger */
	char text[];
};
#define CK_LOG_LINES 64 /* that wait for the event loop; further ones are only counted */

struct ck_cache {
	unsigned refs; /* atomic: the host's, and one of every turn, job and view */
	struct ck_host_process home;
	struct ck_host host;
	struct ck_hooks hooks;
	bool has_hooks;
	uint64_t (*clock)(void *userdata); /* NULL: the kernel's */
	void *clock_userdata;
	struct ck_compare_rules compare;
	char **patterns; /* of compare.ignore_annotations */
	char boot[37];
	struct ck_digest_key key; /* a copy of the store's, readable outside of rounds */

	/* owned by the round */
	struct ck_machine *machine;
	struct ck_store *store;
	struct ck_turn *turns;
	struct ck_hidden_set *hidden; /* from the last question; NULL: nobody has asked */
	uint64_t random;              /* state of the jitter's generator */
	bool volatile_rounds;         /* the last round could not be written */
	bool damaged;      /* found while reading: the next round sets the database aside */
	unsigned unlisted; /* kinds (1 << kind) whose last whole list failed; logged once */
	bool shut;         /* the turns are gone: no more callers */
	uint64_t retry_at, counters_at;
	bool counters_wait; /* for counters_at, or for rows to be written with */
	uint64_t refused_at; /* when the database last refused a row that it had taken so far */
	struct ck_counters counted; /* as they are in the database */

	/* guarded by the lock */
	pthread_mutex_t lock;
	bool owned; /* somebody is in the round: @owner */
	pthread_t owner;
	struct ck_round_call *entering; /* wait to enter, first come first */
	struct ck_round_call *inside;   /* have left, and wait for the end of the round */
	unsigned calls; /* whose round is not over; ck_cache_close() waits for them */
	bool closed;
	pthread_cond_t changed; /* the last call ended, or a callback or a ck_cache_process() */
	struct ck_turn *callbacks;
	struct ck_turn *in_callback; /* its callback is running */
	bool pending; /* the event loop has work now: wants, lists, callbacks or log lines */
	uint64_t due; /* the machine's next timer */
	struct ck_log_line *log;
	unsigned log_n, log_lost;
	enum ck_log_level log_level; /* lines above it are not made; atomic */

	/* the event loop; guarded by the lock */
	bool has_loop; /* somebody runs it, or has asked for the descriptor */
	bool threaded, stop;
	pthread_t thread; /* the library's, if @threaded */
	bool processing;  /* @process_thread is in ck_cache_process() */
	pthread_t process_thread;
	int epoll_fd, event_fd, timer_fd;
	bool signalled; /* event_fd was written and not read */
	uint64_t armed; /* timer_fd is set to this time */
	struct ck_admin_requests *admin_requests;
	bool gap; /* timers wait for the next ck_cache_process() (K15) */
};

/* machine-ops.c */
extern const struct ck_machine_ops ck_machine_ops;
void ck_told_fill(struct ck_told *told, const struct ck_entry *e);

/* log-lines.c */
/* ck_cache_log - any thread. The line is written by the event loop: a host's log function must not
 * be called from inside a round */
void ck_cache_log(struct ck_cache *cache, enum ck_log_level level, const char *fmt, ...)
	CK_PRINTF(3, 4);
void ck_cache_log_event(struct ck_cache *cache, const struct ck_history_event *event);
/* ck_cache_log_write - what waits; the lock is not held */
void ck_cache_log_write(struct ck_cache *cache);
/* for crikeepd, which sets it before it opens the cache: called instead of host.log */
struct ck_cache_logger {
	void (*members)(const struct ck_log_about *about, char buf[CK_LOG_MEMBERS]);
	void (*write)(enum ck_log_level level, const char *members, const char *text);
};
extern const struct ck_cache_logger *ck_cache_logger;

/* rounds.c */
uint64_t ck_cache_now(const struct ck_cache *cache);
struct ck_cache *ck_cache_ref(struct ck_cache *cache);
void ck_cache_unref(struct ck_cache *cache);
/* is this a forked child? No system call: it is asked for each object of a list */
bool ck_cache_in_child(const struct ck_cache *cache);
/* wake the event loop if it has something to do; lock held */
void ck_cache_wake(struct ck_cache *cache);
/* is this thread inside a round? lock held */
bool ck_cache_in_round(const struct ck_cache *cache);
/* ... or in a callback of the event loop? lock held */
bool ck_cache_in_callback(const struct ck_cache *cache);

/* ck_round_enter - own machine and store. 0, -CK_EFORK, -CK_ECLOSED, -CK_EDEADLK */
int ck_round_enter(struct ck_cache *cache, struct ck_error *err);
/* ck_round_call - enter, @run, leave; @run may be called by another thread. Errors as
 * ck_round_enter(): @run was not called */
int ck_round_call(struct ck_cache *cache, void (*run)(void *of), void *of, struct ck_error *err);
/* ck_round_post - the same, perhaps later. @call has run, of and after, and its memory stays until
 * after is called: outside of the round, when it is written. Errors: neither was called */
int ck_round_post(struct ck_cache *cache, struct ck_round_call *call);
/* ck_round_write - inside a round: what it has changed so far is on disk now, or known not to be */
void ck_round_write(struct ck_cache *cache);
/* ck_round_leave - returns when the round is written, or known not to be */
void ck_round_leave(struct ck_cache *cache);

/* decided turns; lock held */
void ck_turn_ready(struct ck_turn *turn, int outcome);
/* what is decided, or CK_CREATE, which is taken; CK_WAIT: nothing */
int ck_turn_fetch(struct ck_turn *turn);
/* does the host know its decision, or may it? Then it does not change any more */
bool ck_turn_is_decided(const struct ck_turn *turn);
/* the reason of its decision; code 0: none */
struct ck_error *ck_turn_why(struct ck_turn *turn);
void ck_turn_queue_callback(struct ck_turn *turn);
void ck_turn_unqueue_callback(struct ck_turn *turn);

/* host-jobs.c */
/* inside a round, when what is wanted is on disk: the jobs for it, in a list */
struct ck_job *ck_jobs_collect(struct ck_cache *cache);
void ck_jobs_start(struct ck_cache *cache, struct ck_job *jobs);
void ck_job_forget_turn(struct ck_job *job); /* inside a round: its turn goes */

/* event-loop.c */
int ck_event_loop_open(struct ck_cache *cache, const char *state_dir, struct ck_error *err);
void ck_event_loop_close(struct ck_cache *cache); /* waits until nobody is in it */
int ck_event_loop_process(struct ck_cache *cache);
int ck_event_loop_thread(struct ck_cache *cache, struct ck_error *err);
uint64_t ck_event_loop_timeout(struct ck_cache *cache);

/* open-cache.c */
int ck_cache_open_impl(const struct ck_options *options, struct ck_cache **ret_cache,
		       struct ck_error *err);
int ck_cache_close_impl(struct ck_cache *cache, struct ck_error *err);
#endif
