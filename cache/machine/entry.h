/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_MACHINE_ENTRY_H
#define CK_CACHE_MACHINE_ENTRY_H
/*
 * One row of the cache, as the database holds it: struct ck_row. The states and their moves are a
 * table.
 *
 *  (none) -> CREATING <-> UNKNOWN                                 nobody knows how it ends (K8)
 *               |            |
 *               |<-----------'
 *               |---> COMMITTING -> COMMITTED -> ENDED -> (none)  somebody waits: all at once
 *               |       ^  |  \___/  |                            nobody waits: handed back later
 *               |---> KEPT |         '-> KEPT (told)              a container's answer was lost
 *               v       v  v
 *            EVICTING <--'--'                                     given up, refused, expired, dead
 *               '---> GONE (a tombstone, hidden for a minute) -> (none)
 *
 * What is UNKNOWN, KEPT, COMMITTING or EVICTING is COMMITTED at once when the kubelet is found to
 * use it (K22). An ENDED container that nobody is known to have got is EVICTING once a list shows
 * that it was never started (K25).
 */
#include <stdbool.h>

#include "cache/machine/shared-answer.h"
#include "cache/request/fingerprint.h"
#include "cache/request/key.h"

#define CK_TO(state) (1u << CK_STATE_##state)
/* name, value in the database, what it may move to */
#define CK_STATES(X) \
	X(CREATING, 1, \
	  CK_TO(UNKNOWN) | CK_TO(COMMITTING) | CK_TO(KEPT) | CK_TO(EVICTING) | CK_TO(GONE)) \
	X(KEPT, 2, CK_TO(COMMITTING) | CK_TO(COMMITTED) | CK_TO(EVICTING)) \
	X(COMMITTING, 3, CK_TO(COMMITTED) | CK_TO(KEPT) | CK_TO(EVICTING)) \
	X(COMMITTED, 4, CK_TO(KEPT) | CK_TO(ENDED) | CK_TO(GONE)) \
	X(EVICTING, 5, CK_TO(COMMITTED) | CK_TO(GONE)) \
	X(GONE, 6, 0) \
	X(UNKNOWN, 7, \
	  CK_TO(CREATING) | CK_TO(COMMITTING) | CK_TO(COMMITTED) | CK_TO(KEPT) | \
		  CK_TO(EVICTING) | CK_TO(GONE)) \
	X(ENDED, 8, CK_TO(EVICTING) | CK_TO(GONE))

#define CK_STATE_CHECK(name, value, to) \
	_Static_assert(CK_STATE_##name == (value), "enum ck_state of crikeep.h");
CK_STATES(CK_STATE_CHECK)
#undef CK_STATE_CHECK
#define CK_STATE_MAX CK_STATE_ENDED

/*
 * Flags of a row: name, bit, word for people.
 *
 * TOLD       its commit has begun, and with it its hooks. They are never run again; an eviction
 *            owes Stop and Remove. Without hooks: it was committed, and is kept again (K7)
 * DELIVERED  a container: somebody is known to have it. The caller has the answer, or it was used
 *            or ran. A sandbox is never taken back, and does not need it
 * RESENT     the request of a lost creation was sent for a second time (K8)
 */
#define CK_FLAGS(X) \
	X(TOLD, 0, "told") \
	X(DELIVERED, 1, "delivered") \
	X(RESENT, 2, "resent")

enum ck_flag {
#define CK_FLAG_ENUM(name, bit, word) CK_ENTRY_##name = 1 << (bit),
	CK_FLAGS(CK_FLAG_ENUM)
#undef CK_FLAG_ENUM
};

/* why an entry was evicted: name, value in the database, words for people */
#define CK_REASONS(X) \
	X(NONE, 0, "") \
	X(TTL, 1, "nobody asked again in time") \
	X(ATTEMPT, 2, "the kubelet asked for another attempt") \
	X(POD_REPLACED, 3, "a pod of the same name but another uid was asked for") \
	X(CHANGED, 4, "the request changed") \
	X(RELABELLED, 5, "labels or annotations of the pod changed") \
	X(NOT_COMPARABLE, 6, "made under another digest key or form version") \
	X(DEAD, 7, "it died before anybody took it") \
	X(SANDBOX_STOPPED, 8, "its sandbox was stopped") \
	X(SANDBOX_EVICTED, 9, "its sandbox is evicted") \
	X(ABSENT, 10, "the runtime no longer lists it") \
	X(REFUSED, 11, "a plugin refused it") \
	X(ADMIN, 12, "evicted by an administrator") \
	X(REBOOT, 13, "left over from before the last boot") \
	X(DUPLICATE, 14, "a second object of the same key") \
	X(RELEASED, 15, "released by an administrator without confirmation")

enum ck_reason {
#define CK_REASON_ENUM(name, value, text) CK_REASON_##name = value,
	CK_REASONS(CK_REASON_ENUM)
#undef CK_REASON_ENUM
		CK_REASON_MAX = CK_REASON_RELEASED,
};

/* How far an EVICTING entry is: what is under way ends first (K8, K13), then comes the question
 * whether it is in use (K22), then Stop, the destroy and Remove (K20). It begins in CREATION, FIND,
 * HOOKS or CHECK. */
enum ck_phase {
	CK_PHASE_NONE = 0,
	CK_PHASE_CREATION = 1, /* it is still being created */
	CK_PHASE_FIND = 2,     /* its id is not known: the host is asked by key */
	CK_PHASE_HOOKS = 3,    /* a plugin is still being told of it */
	CK_PHASE_CHECK = 4,    /* is it in use? */
	CK_PHASE_STOP = 5,     /* if plugins were told: Stop events */
	CK_PHASE_DESTROY = 6,  /* the host destroys it; tried until it succeeds */
	CK_PHASE_REMOVE = 7,   /* it is destroyed; if plugins were told: Remove events */
	CK_PHASE_MAX = CK_PHASE_REMOVE,
};

enum ck_origin {
	CK_ORIGIN_CACHE = 1,
	CK_ORIGIN_RUNTIME = 2 /* listed without a row: imported, never served (K27) */
};

/* The start of a COMMITTED container (K34). Nothing else has one. start.c draws it. */
enum ck_start {
	CK_START_NONE = 0,
	CK_START_CALLED = 1,  /* the host has begun it, and has not said how it ended */
	CK_START_LOST = 2,    /* it is not known how it ends: the host is asked for its status */
	CK_START_UNHEARD = 3, /* it was started, and its caller had gone by then */
	CK_START_MAX = CK_START_UNHEARD,
};

/* What the database holds of an entry. Times are CLOCK_BOOTTIME of the boot @boot. */
struct ck_row {
	uint64_t id; /* surrogate key; not used again while a line of the history has it */
	struct ck_key *key;
	struct ck_record record; /* form 0: none (imported) */
	enum ck_state state;
	unsigned flags; /* enum ck_flag */
	enum ck_reason reason;
	enum ck_phase phase;
	enum ck_origin origin;
	enum ck_start start;
	char stage[CK_STAGE_MAX + 1];
	struct ck_shared_result *result; /* the runtime's id and reply, once known */
	char *told;                      /* names of the plugins told, or NULL */
	uint32_t requests;               /* how often it was asked for */
	uint32_t tries;                  /* failed destroys */
	int last_grpc;                   /* of the last failed destroy */
	uint64_t created;  /* when its creation began */
	uint64_t changed;  /* when it moved last */
	uint64_t asked;    /* when it was asked for last; 0: never */
	uint64_t interest; /* when somebody cared about it last; the TTL counts from here (K15) */
	uint64_t existed;  /* the result became known; 0: not yet */
	uint64_t staged;   /* @stage began, or its start; 0: none */
	uint64_t searched; /* the host is asked for its id since; 0: it is not (K8) */
	uint64_t absent;   /* ... and no list has shown it since; 0: not known to be absent */
	/* when its TTL ends, or the next try or question is due; 0: nothing is planned */
	uint64_t due;
	char boot[37]; /* /proc/sys/kernel/random/boot_id */
};

void ck_row_fini(struct ck_row *row); /* frees what it holds, not the row */

const char *ck_state_name(enum ck_state state);               /* "KEPT"; "?" for anything else */
const char *ck_reason_text(enum ck_reason reason);            /* "" for none */
const char *ck_reason_name(enum ck_reason reason);            /* "TTL", for programs */
bool ck_state_may_move(enum ck_state from, enum ck_state to); /* from 0: a new entry */
/* uncommitted, and can still become COMMITTED */
static inline bool ck_state_open(enum ck_state state)
{
	return state == CK_STATE_CREATING || state == CK_STATE_UNKNOWN || state == CK_STATE_KEPT ||
	       state == CK_STATE_COMMITTING;
}
/* no other entry that the cache created, of the same key, can be so */
static inline bool ck_state_is_current(enum ck_state state)
{
	return ck_state_open(state) || state == CK_STATE_COMMITTED;
}
/* the kubelet's, and shown in lists */
static inline bool ck_state_visible(enum ck_state state)
{
	return state == CK_STATE_COMMITTED || state == CK_STATE_ENDED;
}

/* what happened to an entry, for history, explain and the log: name, value in the database,
 * words for people */
#define CK_WHATS(X) \
	X(MOVED, 1, "moved") /* from -> to, reason; to EVICTING, detail: what asks for it */ \
	X(BEGUN, 2, "creation begun") \
	X(JOINED, 3, "a repeated request joined") \
	X(BUSY, 4, "a waiting request ran out of time") \
	X(CALLER_GONE, 5, "the caller has gone") \
	X(HANDED_BACK, 6, "handed over") \
	X(ANSWER_LOST, 7, "the answer was lost") \
	X(CONFLICT, 8, "a different request") /* detail: paths */ \
	X(RELABELLED, 9, "handed back although labels or annotations differ") \
	X(RESENT, 11, "asked for a second time") \
	X(FAILED, 12, "the creation failed")       /* grpc, detail: redacted text */ \
	X(DESTROY_FAILED, 13, "destroying failed") /* grpc, detail: redacted text */ \
	X(IN_USE, 14, "found in use") \
	X(IMPORTED, 15, "found in the runtime") \
	X(DUPLICATE, 16, "two objects of one key") \
	X(RELEASED, 17, "released by an administrator without confirmation") \
	X(REFUSED, 18, "a plugin refused")      /* detail: redacted text */ \
	X(PLUGIN_ABSENT, 19, "not handed over") /* detail: which plugin */ \
	X(RESTORED, 20, "taken up after a restart") /* detail: CK_OTHER_KEY, or none */ \
	X(TOLD, 21, "plugins were told of it") /* detail of the three: names */ \
	X(STOP_TOLD, 22, "plugins were told that it stops") \
	X(REMOVE_TOLD, 23, "plugins were told that it is gone") \
	X(STARTED, 24, "its start was requested, so its answer had arrived") \
	X(NOT_TOLD, 25, "it is in use, and no plugin was told") /* detail: which one is absent */ \
	X(START_BEGUN, 26, "its start was requested") \
	X(START_FAILED, 27, "it was not started") /* grpc, or detail */ \
	X(START_LOST, 28, "its start ended without an answer") \
	X(START_UNHEARD, 29, "it was started, and its caller had gone by then") \
	X(OFFER_WAITS, 30, "many became ready at once, so it is listed a little later") \
	X(OFFERED, 31, "listed for the kubelet, because no caller waited")

enum ck_what {
#define CK_WHAT_ENUM(name, value, text) CK_WHAT_##name = value,
	CK_WHATS(CK_WHAT_ENUM)
#undef CK_WHAT_ENUM
		CK_WHAT_MAX = CK_WHAT_OFFERED,
};
const char *ck_what_text(enum ck_what what);
const char *ck_what_name(enum ck_what what); /* "DESTROY_FAILED", for programs */
/* of a row whose request cannot be compared with any other: the key file was lost (K31) */
#define CK_OTHER_KEY "made under another digest key"

/* counters, kept in the database: name (part of that of a metric), whether it is counted by kind,
 * words for `crikeep stats` */
#define CK_COUNTERS(X) \
	X(requests, true, "creates requested") \
	X(created, true, "creations begun") \
	X(failed, true, "creations that failed") \
	X(joined, true, "repeated requests that joined a running creation") \
	X(kept, true, "results kept because the caller was gone") \
	X(handed_back, true, "kept results handed back") \
	X(in_time, true, "results handed over in time") \
	X(saved, true, "creations used though their caller had gone") \
	X(saved_ms, true, "milliseconds the runtime took for these") \
	X(busy, true, "waiting requests that ran out of time") \
	X(superseded, true, "requests aborted because the kubelet moved on") \
	X(conflicts, true, "requests that differ from a committed resource") \
	X(changed, true, "results evicted because the request changed") \
	X(relabelled, true, "results handed back although labels differ") \
	X(not_comparable, true, "results made under another key or form version") \
	X(lost, true, "creations whose outcome became unknown") \
	X(resent, true, "lost creations requested a second time") \
	X(evicted, true, "results evicted") \
	X(destroyed, true, "evicted results whose destruction was confirmed") \
	X(released, true, "evicted results released without confirmation") \
	X(destroy_failures, true, "failed attempts to destroy") \
	X(in_use, true, "hidden resources found in use and committed") \
	X(imported, true, "resources found in the runtime without a row") \
	X(duplicates, true, "times two objects of one key were seen") \
	X(answers_lost, true, "answers that were lost on their way") \
	X(starts_lost, false, "starts whose outcome became unknown") \
	X(starts_unheard, false, "containers started after their caller had gone") \
	X(write_failures, false, "rounds that could not be written") \
	X(set_aside, false, "damaged databases set aside")

/* By kind. [0]: of what has no kind, and what an earlier release did not tell apart */
struct ck_counters {
#define CK_COUNTER_MEMBER(name, kinds, text) uint64_t name[CK_CONTAINER + 1];
	CK_COUNTERS(CK_COUNTER_MEMBER)
#undef CK_COUNTER_MEMBER
};

static inline uint64_t ck_counter_sum(const uint64_t counter[CK_CONTAINER + 1])
{
	return counter[0] + counter[CK_SANDBOX] + counter[CK_CONTAINER];
}
#endif
