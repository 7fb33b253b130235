/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_CACHE_H
#define CK_CACHE_CACHE_H
/*
 * Around the machine: rounds, jobs, the crank. Who may touch what:
 *
 *   lock       guards the small shared state below: queue, ready turns, flags. Never held while anything else is called.
 *   the round  one thread at a time owns machine and store. A caller puts an operation on the queue; if nobody runs a round it
 *              takes the whole queue, feeds it to the machine, commits once, settles, and tells the
 *              others. So under load many operations share one transaction, and alone a caller does
 *              its own without a hand-over.
 *   the crank  ck_process() or the library's thread: timers, host jobs, hooks, callbacks, wishes, log lines. Host and hooks are
 *              called from nowhere else (but hooks.choose and .released, inside the round).
 *
 *   rounds.c rounds, open, close    host-jobs.c what the host is asked    event-loop.c the crank    view.c filters for lists
 *   caller.c callers             src/api.c the guarded border
 */
#include <pthread.h>

#include "cache/machine/machine.h"
#include "cache/store/store.h"
#include "cache/admin-request.h"
#include "src/base/error.h"
#include "src/base/host-process.h"

struct ck_hidden_set;

struct ck_op { /* one operation of a round; lies on its caller's stack or in a job */
	struct ck_op *next;
	void (*run)(struct ck_cache *cache, struct ck_op *op); /* inside the round; or NULL */
	/* the same, once the round is on disk or known not to be */
	void (*settled)(struct ck_cache *cache, struct ck_op *op);
	/* its owner: it is done, or the round is free and it is the first in the queue */
	pthread_cond_t wake;
	bool done;
	bool refused; /* it came after the cache was closed, and has not run */
};

struct ck_turn {
	struct ck_mturn m;
	struct ck_cache *cache; /* a reference */
	struct ck_fingerprint *fp;
	enum ck_kind kind;
	void *request; /* to redact the runtime's texts with; in memory only */
	size_t request_len;
	struct ck_job *resolving; /* its image reference is asked for */
	struct ck_turn *prev, *next; /* all turns of the cache; guarded by the round */
	bool linked;                 /* was among them once */
	/* guarded by lock */
	pthread_cond_t decided;
	bool is_ready, closed, left; /* is_ready: @outcome has not been fetched */
	bool creates;                /* CK_CREATE was, once */
	/* ck_turn_finish() or ck_turn_fail() runs: what it decides nobody else hears */
	bool ending;
	int outcome;
	ck_turn_cb *cb;
	void *userdata;
	bool queued; /* in cache->callbacks */
	struct ck_turn *queue_prev, *queue_next;
	unsigned waiting; /* threads in ck_turn_wait() */
};

struct ck_log_line {
	enum ck_log_level level;
	char text[CK_ERROR_TEXT];
};
#define CK_LOG_LINES 64 /* waiting for the crank; more are counted, not kept */

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
	struct ck_digest_key key; /* the store's; here it can be read outside of rounds */
	uint64_t random; /* state of the jitter's generator */

	/* owned by the round */
	struct ck_machine *machine;
	struct ck_store *store;
	struct ck_turn *turns;
	struct ck_hidden_set
		*hidden;      /* what was hidden when last somebody asked; NULL: nobody did */
	bool volatile_rounds; /* the last round could not be written */
	bool damaged;         /* seen while reading: the next round sets the database aside */
	unsigned unlisted;    /* kinds (1 << kind) whose last whole list failed: said once */
	bool shut;            /* turns were taken leave of: what comes now is refused */
	uint64_t retry_at, counters_at;
	struct ck_counters counted; /* as they lie in the database */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* the last call returned, a callback or the crank's turn ended */
	struct ck_op *ops, **ops_end;
	bool busy; /* a round runs, by: */
	pthread_t runner;
	bool closed;
	unsigned calls; /* inside the library; ck_cache_close() waits for them */
	struct ck_turn *callbacks, *callbacks_last;
	struct ck_turn *in_callback; /* its callback runs, by the crank */
	bool pending;  /* wants, lists or callbacks: the crank has work now */
	uint64_t due;  /* the machine's next timer */
	struct ck_log_line *log;
	unsigned log_n, log_lost;

	/* the crank */
	bool has_loop; /* somebody turns it, or said so */
	bool threaded, stop, processing;
	pthread_t thread, process_thread;
	int epoll_fd, event_fd, timer_fd;
	bool signalled; /* event_fd was written and not read */
	uint64_t armed; /* timer_fd is set for this time */
	struct ck_admin_requests *admin_requests;
	bool gap; /* timers wait one turn of the crank (K15); guarded by lock */
};

/* rounds.c */
uint64_t ck_cache_now(const struct ck_cache *cache);
struct ck_cache *ck_cache_ref(struct ck_cache *cache);
void ck_cache_unref(struct ck_cache *cache);
int ck_cache_open_impl(const struct ck_options *options, struct ck_cache **ret_cache,
		       struct ck_error *err);
int ck_cache_close_impl(struct ck_cache *cache, struct ck_error *err);
/* of the process that opened it. No system call: asked for each object of a list */
bool ck_cache_in_child(const struct ck_cache *cache);
/* 0, -CK_ECLOSED, -CK_EDEADLK (from inside the round) */
int ck_cache_do(struct ck_cache *cache, struct ck_op *op);
/* is this thread running it? lock held */
bool ck_cache_in_round(const struct ck_cache *cache);
void ck_cache_log(struct ck_cache *cache, enum ck_log_level level, const char *fmt, ...)
	CK_PRINTF(3, 4);
void ck_cache_wake(struct ck_cache *cache); /* the crank; lock held */
void ck_told_fill(struct ck_told *told, const struct ck_entry *e);

/* host-jobs.c */
/* inside the round: what is wanted now, chained */
struct ck_job *ck_jobs_collect(struct ck_cache *cache);
void ck_jobs_start(struct ck_cache *cache, struct ck_job *jobs);
void ck_job_forget_turn(struct ck_job *job); /* inside the round: its turn is freed */

/* event-loop.c */
int ck_event_loop_open(struct ck_cache *cache, const char *state_dir, struct ck_error *err);
void ck_event_loop_close(struct ck_cache *cache);
int ck_event_loop_process(struct ck_cache *cache);
int ck_event_loop_thread(struct ck_cache *cache, struct ck_error *err);
uint64_t ck_event_loop_timeout(struct ck_cache *cache);

/* caller.c */
void ck_turn_ready(struct ck_cache *cache, struct ck_turn *turn, int outcome); /* lock held */
int ck_turn_fetch(struct ck_turn *turn); /* lock held: the outcome, taken; or CK_WAIT */
#endif
