/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is told what: choose, snapshot, overdue, disconnect and restart, for spin. README.md says how to run it. Three parties:
 *
 *	Pod(p)     the cache's entry, and the event that goes round for it
 *	Conn(c)    one connection: it joins, is synchronized, is sent its events
 *	Plugin(c)  the other end: it sees, and answers, refuses or hangs
 *
 * and Restart, which takes everything away but the rows on disk. All state is in variables and each step is one atomic{}, so
 * that a restart or a broken connection can come between any two. What is one step here must be one under a lock in C. Time is
 * not counted: a deadline is a step that may come at any moment while it is waited for. Every life is short, so every run ends;
 * then Check looks at who has seen what. Each #ifdef is a way to get the protocol wrong; tests/prog/test-protocol.sh wants spin to find them all.
 */
#ifndef PODS
#define PODS 1
#endif
#ifndef CONNS
#define CONNS 3
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif

#ifdef CALM /* a smaller world: nothing runs out, nobody hangs */
#define MAY_FAIL(p) false
#define MAY_HANG    false
#else
#define MAY_FAIL(p) (!trouble[p])
#define MAY_HANG    true
#endif

/* Connections in index order. The last is plugin b; those before it are the lives of plugin a, one after the other. */
#define NAME(c)    ((c) == CONNS - 1)
#define BIT(c)     (1 << NAME(c))
#define RETURNS(c) ((c) != 0 && (c) != CONNS - 1)
#define AT(c, p)   ((c) * PODS + (p))

/* ---- the entry, in the cache ------------------------------------------------------------------------------------------ */

mtype = { MADE, COMMITTING, COMMITTED, KEPT, EVICTING, GONE }; /* MADE: it exists, nobody was told; KEPT: told, not visible */
mtype = { NONE, RUN, STOP, REMOVE };

mtype state[PODS] = MADE;
byte told[PODS];      /* names: bits. On disk with COMMITTING */
bool written[PODS];   /* COMMITTING is on disk */
bool in_round;        /* the cache's critical section, from choose until the row is written */
bool abandoned[PODS]; /* the kubelet has moved on while the commit went round */
bool trouble[PODS];   /* the disk was full or memory out: once */

mtype job[PODS] = NONE; /* the event that goes round, one connection after the other */
byte at[PODS];
bool waits[PODS];       /* for the answer of connection at[p], or its deadline */
bool refused[PODS];
bool stopped[PODS];     /* STOP has gone round */

/* ---- connections, in hooks/ ------------------------------------------------------------------------------------------- */

mtype = { ABSENT, JOINED, LISTING, SYNCING, READY, CLOSED };
mtype = { STRANGER, CHOSEN, LISTED, TOLD }; /* of an object: not known; RUN will come; will be in the list; heard of */

mtype cs[CONNS] = ABSENT;
bool recipient[CONNS];   /* choose finds it */
mtype know[CONNS * PODS] = STRANGER;
bool stop_queued[CONNS * PODS], remove_queued[CONNS * PODS];
bool debt[CONNS * PODS]; /* it is owed the end, whatever it knows */
bool chosen_here[PODS];  /* choose was called in this life: who knows the object is known, and names do not count */
#ifdef LIST_PAYS_ALL
bool listed_here[PODS];  /* somebody got it in a list: no reason to owe the others nothing */
#endif
bool ending[PODS];       /* its Stop event has begun */
bool no_more_run[PODS];  /* RUN was cancelled or refused */

#ifdef TWO_IN_FLIGHT
#define WIRE 2
#else
#define WIRE 1 /* one event in flight (H5) */
#endif
chan queue[CONNS] = [3 * PODS] of { mtype, byte };
chan wire[CONNS] = [WIRE] of { mtype, byte };

#define CONNECTED(c) (cs[c] != ABSENT && cs[c] != CLOSED)

/* ---- what happened: for assertions only ------------------------------------------------------------------------------- */

#define SYNC_SEEN   1
#define RUN_SEEN    2
#define STOP_SEEN   4
#define REMOVE_SEEN 8
#define HEARD(c, p)       (seen[AT(c, p)] & (SYNC_SEEN | RUN_SEEN))
#define EXACTLY_ONE(c, p) (HEARD(c, p) == SYNC_SEEN || HEARD(c, p) == RUN_SEEN)
#define BOTH_ENDS(c, p)   ((seen[AT(c, p)] & STOP_SEEN) && (seen[AT(c, p)] & REMOVE_SEEN))

byte seen[CONNS * PODS];   /* by the plugin */
bool mortal[CONNS];        /* its connection breaks at some time */
bool hung[CONNS];          /* it answers nothing more. A slow one needs no mark: the deadline came first */
bool chosen[CONNS * PODS]; /* it was connected at choose */
bool owed[CONNS * PODS];   /* an earlier life has sent RUN to a plugin of its name, and it was there when the end began */
bool begun[PODS];          /* a commit was begun, and is on disk */
bool agreed[PODS];         /* plugins let it pass */
bool stays[PODS];          /* nobody ends it */
byte told_before[PODS];    /* names in the row at a restart */
byte sent_run[PODS], sent_before[PODS]; /* names of those that were sent RUN; that, in an earlier life */

/* ---- an event goes round ---------------------------------------------------------------------------------------------- */

inline begin(p, event)
{
	job[p] = event;
	at[p] = 0;
	waits[p] = false
}

/* connection @c has answered, or never will: whoever waits for that goes on */
inline over(c, p, event)
{
	if
	:: job[p] == event && at[p] == c && waits[p] -> waits[p] = false; at[p]++
	:: else
	fi
}

inline disconnect(c) /* nothing is repeated for it; an event that waited for it goes on */
{
	cs[c] = CLOSED;
	recipient[c] = false;
	i = 0;
	do
	:: i < PODS ->
		if
		:: waits[i] && at[i] == c -> waits[i] = false; at[i]++
		:: else
		fi;
		know[AT(c, i)] = STRANGER;
		debt[AT(c, i)] = false;
		stop_queued[AT(c, i)] = false;
		remove_queued[AT(c, i)] = false;
		seen[AT(c, i)] = 0;
		chosen[AT(c, i)] = false;
		owed[AT(c, i)] = false;
		i++
	:: else -> break
	od;
	mortal[c] = false;
	hung[c] = false;
	do
	:: queue[c] ? e, i
	:: empty(queue[c]) -> break
	od;
	do
	:: wire[c] ? e, i
	:: empty(wire[c]) -> break
	od;
	e = NONE;
	i = 0
}

/* Nobody is asked further: a RUN that was not sent is not sent any more. For the one in flight, its answer is waited for. */
inline take_back(p)
{
	no_more_run[p] = true;
	k = 0;
	do
	:: k < CONNS ->
#ifndef CANCEL_LEAVES_QUEUE
		if
		:: queue[k] ?? [RUN, eval(p)] -> queue[k] ?? RUN, eval(p); over(k, p, RUN)
		:: else
		fi;
#endif
		k++
	:: else -> k = 0; break
	od
}

/*
 * After a restart nobody remembers who knew an object: its end is owed to the names in its row, as far as they are connected and
 * did not get it in their list (H3). An object chosen in this life leaves no debts: who returns was told by its list (H9).
 */
#ifdef NO_DEBT
#define IN_DEBT(c, p) false
#elif defined(LIST_PAYS_ALL)
#define IN_DEBT(c, p) (state[p] == EVICTING && !chosen_here[p] && !listed_here[p] && (told[p] & BIT(c)))
#elif defined(DEBT_OF_THIS_LIFE)
#define IN_DEBT(c, p) (state[p] == EVICTING && (told[p] & BIT(c)))
#else
#define IN_DEBT(c, p) (state[p] == EVICTING && !chosen_here[p] && (told[p] & BIT(c)))
#endif

/* Is it asked? RUN: who was chosen. Stop and Remove: who knows the object, however. */
#define WANTED(c, p) (recipient[c] && (job[p] == RUN -> know[AT(c, p)] == CHOSEN && !no_more_run[p] : \
	know[AT(c, p)] != STRANGER || IN_DEBT(c, p)))

inline put(c, p) /* the event that goes round, to the next */
{
	if
	:: WANTED(c, p) ->
		waits[p] = true;
		debt[AT(c, p)] = debt[AT(c, p)] || (job[p] != RUN && IN_DEBT(c, p));
		if
		:: job[p] == RUN -> queue[c] ! RUN, p
		:: else
		fi;
		if /* Remove comes after Stop, whatever else happened */
#ifdef REMOVE_WITHOUT_STOP
		:: job[p] == STOP && !stop_queued[AT(c, p)] -> stop_queued[AT(c, p)] = true; queue[c] ! STOP, p
#else
		:: job[p] != RUN && !stop_queued[AT(c, p)] -> stop_queued[AT(c, p)] = true; queue[c] ! STOP, p
#endif
		:: else
		fi;
		if
		:: job[p] == REMOVE && !remove_queued[AT(c, p)] -> remove_queued[AT(c, p)] = true; queue[c] ! REMOVE, p
		:: else
		fi
	:: else -> at[p]++
	fi
}

/* ---- the entry's life ------------------------------------------------------------------------------------------------- */

inline choose(p) /* all who are connected, whatever they have subscribed to: that only filters what is sent */
{
	in_round = true;
	state[p] = COMMITTING;
	chosen_here[p] = true;
	k = 0;
	do
	:: k < CONNS ->
		if
		:: recipient[k] -> know[AT(k, p)] = CHOSEN; chosen[AT(k, p)] = true; told[p] = told[p] | BIT(k)
		:: else
		fi;
		k++
	:: else -> k = 0; break
	od
}

/*
 * Choose is taken back; nobody was sent RUN. But if a round has ended since, a snapshot may have found the object, and the
 * cache will not fire its end, for it was not told. Who has it only in hand leaves it out; who has sent the list is closed.
 */
inline release(p)
{
	trouble[p] = true;
	state[p] = MADE;
	written[p] = false;
	told[p] = 0;
	chosen_here[p] = false;
	k = 0;
	do
	:: k < CONNS ->
#ifndef RELEASE_FORGETS
		if
		:: know[AT(k, p)] == TOLD -> disconnect(k)
		:: else
		fi;
#endif
		know[AT(k, p)] = STRANGER;
		chosen[AT(k, p)] = false;
		k++
	:: else -> k = 0; break
	od
}

inline run_is_over(p)
{
	job[p] = NONE;
	at[p] = 0;
	if
	:: refused[p] || abandoned[p] -> state[p] = EVICTING
	:: else ->
		agreed[p] = true;
		if
		:: state[p] = COMMITTED; stays[p] = true
		:: state[p] = COMMITTED
		:: state[p] = KEPT /* a container for which nobody waits any more (K7) */
		fi
	fi
}

inline end_begins(p)
{
	ending[p] = true;
	begin(p, STOP);
	k = 0;
	do
	:: k < CONNS ->
		owed[AT(k, p)] = (state[p] == EVICTING && recipient[k] && (sent_before[p] & BIT(k)));
		k++
	:: else -> k = 0; break
	od
}

#ifdef FIRE_BEFORE_WRITE
#define ON_DISK(p) true
#else
#define ON_DISK(p) written[p] /* no effect before its row is on disk (K29) */
#endif

inline is_gone(p) /* what nobody asks about any more is made equal: fewer states */
{
	state[p] = GONE;
	job[p] = NONE;
	at[p] = 0;
	refused[p] = false;
	abandoned[p] = false;
	stopped[p] = false;
	written[p] = false
}

proctype Pod(byte p)
{
	byte k, i;
	mtype e;
end:	do
	/* it exists, and is committed; or it times out, and nobody has ever heard of it */
	:: atomic { state[p] == MADE && !in_round -> choose(p) }
	:: atomic { state[p] == MADE && !in_round && !trouble[p] -> state[p] = GONE }
	:: atomic { state[p] == COMMITTING && !written[p] -> written[p] = true; begun[p] = true; in_round = false }
	:: atomic { state[p] == COMMITTING && !written[p] && MAY_FAIL(p) && job[p] == NONE -> release(p); in_round = false }
	:: atomic { state[p] == COMMITTING && written[p] && MAY_FAIL(p) && job[p] == NONE -> release(p) }
	/* the commit goes round. The kubelet may move on meanwhile */
	:: atomic { state[p] == COMMITTING && ON_DISK(p) && job[p] == NONE -> begin(p, RUN) }
	:: atomic { job[p] == RUN && !abandoned[p] -> abandoned[p] = true; take_back(p) }
	:: atomic { job[p] == RUN && at[p] == CONNS -> run_is_over(p) }
	:: atomic { state[p] == KEPT -> state[p] = COMMITTED }
	:: atomic { state[p] == KEPT -> state[p] = EVICTING }
	/* the end: by the cache, from the row; or by the kubelet, of which the row knows nothing */
	:: atomic { state[p] == EVICTING && job[p] == NONE && !stopped[p] -> end_begins(p) }
	:: atomic { state[p] == COMMITTED && job[p] == NONE && !stopped[p] && !stays[p] -> end_begins(p) }
	:: atomic { job[p] == STOP && at[p] == CONNS -> job[p] = NONE; at[p] = 0; stopped[p] = true }
	:: atomic { job[p] == NONE && stopped[p] && state[p] != GONE -> begin(p, REMOVE) }
	:: atomic { job[p] == REMOVE && at[p] == CONNS -> is_gone(p) }
	/* any event */
	:: atomic { job[p] != NONE && !waits[p] && at[p] < CONNS -> put(at[p], p) }
#ifndef NO_DEADLINE
	:: atomic { waits[p] -> waits[p] = false; at[p]++ } /* the event stays in the queue */
#endif
	od
}

/* ---- what a plugin sees ------------------------------------------------------------------------------------------------ */

inline sees_sync(c, p)
{
	assert(!(seen[AT(c, p)])); /* R1: not both; nor after its end */
	assert(begun[p]);          /* R38 */
	seen[AT(c, p)] = SYNC_SEEN
}

inline sees(c, p, event)
{
	assert(begun[p]);
	if
	:: event == RUN -> assert(!seen[AT(c, p)]); seen[AT(c, p)] = RUN_SEEN
	:: event == STOP ->
		assert(HEARD(c, p) || (told_before[p] & BIT(c)));
		assert(!(seen[AT(c, p)] & (STOP_SEEN | REMOVE_SEEN)));
		seen[AT(c, p)] = seen[AT(c, p)] | STOP_SEEN
	:: event == REMOVE ->
		assert((seen[AT(c, p)] & STOP_SEEN) && !(seen[AT(c, p)] & REMOVE_SEEN));
		seen[AT(c, p)] = seen[AT(c, p)] | REMOVE_SEEN
	fi
}

/* ---- one connection --------------------------------------------------------------------------------------------------- */

#ifdef LIST_ENDING
#define IN_SNAPSHOT(p) (state[p] == COMMITTING || state[p] == COMMITTED || state[p] == KEPT || state[p] == EVICTING)
#else
#define IN_SNAPSHOT(p) ((state[p] == COMMITTING || state[p] == COMMITTED || state[p] == KEPT) && !ending[p])
#endif
#ifdef NO_SKIP
#define COMES_AS_RUN(c, p) false
#else
#define COMES_AS_RUN(c, p) (know[AT(c, p)] == CHOSEN)
#endif

inline snapshot(c) /* a round of the cache's own, after the one of any choose that has not found @c */
{
	cs[c] = LISTING;
	i = 0;
	do
	:: i < PODS ->
		if
		:: IN_SNAPSHOT(i) && !COMES_AS_RUN(c, i) ->
			know[AT(c, i)] = LISTED;
#ifdef LIST_PAYS_ALL
			listed_here[i] = true
#endif
		:: else
		fi;
		i++
	:: else -> i = 0; break
	od
}

/*
 * The list goes out, before any event, when each object on it was described. That took time, in which some may have gone: they
 * are left out, and what is queued of them will not be sent.
 */
inline synchronize(c)
{
	cs[c] = SYNCING;
	i = 0;
	do
	:: i < PODS ->
		if
		:: know[AT(c, i)] == LISTED -> know[AT(c, i)] = TOLD; sees_sync(c, i)
		:: know[AT(c, i)] == LISTED && (ending[i] || state[i] == EVICTING || state[i] == GONE) -> know[AT(c, i)] = STRANGER
		:: know[AT(c, i)] != LISTED
		fi;
		i++
	:: else -> i = 0; break
	od
}

#ifdef STOP_WITHOUT_TOLD
#define IS_TOLD(c, p) true
#else
#define IS_TOLD(c, p) (know[AT(c, p)] == TOLD || debt[AT(c, p)])
#endif

inline send_next(c)
{
	queue[c] ? e, i;
	if
	:: e == RUN ->
		assert(!no_more_run[i]);
		know[AT(c, i)] = TOLD;
		sent_run[i] = sent_run[i] | BIT(c);
		wire[c] ! e, i
	:: e != RUN && IS_TOLD(c, i) -> wire[c] ! e, i
	:: else -> over(c, i, e) /* nobody tells it the end of what it never heard of */
	fi;
	e = NONE;
	i = 0
}

#ifdef EVENT_BEFORE_SYNC
#define SENDS(c) (cs[c] == READY || cs[c] == LISTING)
#else
#define SENDS(c) (cs[c] == READY)
#endif
#ifdef SNAPSHOT_IN_ROUND
#define ROUND_FREE true
#else
#define ROUND_FREE (!in_round)
#endif

proctype Conn(byte c)
{
	byte i;
	mtype e;
end:	do
	:: atomic { cs[c] == ABSENT && (!RETURNS(c) || cs[c - 1] == CLOSED) ->
		cs[c] = JOINED;
#ifndef SNAPSHOT_BEFORE_JOIN
		recipient[c] = true;
#endif
		if
		:: mortal[c] = true
		:: skip
		fi
	   }
	:: atomic { cs[c] == JOINED && ROUND_FREE -> snapshot(c) }
#ifdef SNAPSHOT_BEFORE_JOIN
	:: atomic { cs[c] == LISTING && !recipient[c] -> recipient[c] = true }
#endif
	:: atomic { cs[c] == LISTING && recipient[c] -> synchronize(c) }
	:: atomic { SENDS(c) && !hung[c] && nfull(wire[c]) && nempty(queue[c]) -> send_next(c) }
	/* it broke, was overdue for too long, or too much was queued for it */
	:: atomic { CONNECTED(c) && mortal[c] -> disconnect(c) }
	od
}

/* ---- its other end ---------------------------------------------------------------------------------------------------- */

proctype Plugin(byte c)
{
	byte p, k;
	mtype e;
end:	do
	:: atomic { cs[c] == SYNCING && !hung[c] -> cs[c] = READY }
	:: atomic { cs[c] == SYNCING && !hung[c] && MAY_HANG -> hung[c] = true }
	:: atomic { !hung[c] && nempty(wire[c]) ->
		if /* each event is handled by a goroutine of its own */
		:: len(wire[c]) == 2 -> wire[c] ? e, p; wire[c] ! e, p
		:: skip
		fi;
		wire[c] ? e, p;
		sees(c, p, e);
		if
		:: over(c, p, e)
		:: e == RUN && job[p] == RUN && at[p] == c && waits[p] -> refused[p] = true; take_back(p); over(c, p, e)
		:: MAY_HANG -> hung[c] = true
		fi;
		e = NONE;
		p = 0
	   }
	od
}

/* ---- restart ---------------------------------------------------------------------------------------------------------- */

proctype Restart()
{
	byte c, p, i, n;
	mtype e;
end:	do
	:: atomic { n < RESTARTS ->
		n++;
		in_round = false;
		do
		:: c < CONNS ->
			if
			:: CONNECTED(c) -> disconnect(c)
			:: else
			fi;
			c++
		:: else -> c = 0; break
		od;
		do
		:: p < PODS ->
			if
			:: state[p] == COMMITTING && written[p] -> state[p] = KEPT
			:: state[p] == COMMITTING && !written[p] -> state[p] = MADE; told[p] = 0
			:: else
			fi;
			job[p] = NONE;
			at[p] = 0;
			waits[p] = false;
			abandoned[p] = false;
			refused[p] = false;
			no_more_run[p] = false;
			stopped[p] = false;
			ending[p] = false;
			chosen_here[p] = false;
#ifdef LIST_PAYS_ALL
			listed_here[p] = false;
#endif
			told_before[p] = told[p];
			sent_before[p] = sent_run[p];
			p++
		:: else -> p = 0; break
		od
	   }
	od
}

/* ---- the verdict, when nothing can happen any more --------------------------------------------------------------------- */

proctype Check()
{
	byte c, p;
end:	atomic { timeout ->
		do
		:: p < PODS ->
			assert(state[p] == GONE || (state[p] == COMMITTED && stays[p])); /* nobody held it up for ever */
			c = 0;
			do
			:: c < CONNS ->
				if
				:: !CONNECTED(c) || hung[c] /* it was never there, or did not live until the event was due */
				:: else ->
					assert(cs[c] == READY && empty(queue[c]));
					assert(!(chosen[AT(c, p)] && agreed[p]) || EXACTLY_ONE(c, p));       /* R1 */
					assert(state[p] == GONE || EXACTLY_ONE(c, p));                        /* R1, R5 */
					assert(!(state[p] == GONE && HEARD(c, p)) || BOTH_ENDS(c, p));        /* R7, R14 */
					assert(!(state[p] == GONE && owed[AT(c, p)]) || BOTH_ENDS(c, p))      /* H3 */
				fi;
				c++
			:: else -> break
			od;
			p++
		:: else -> break
		od
	}
}

init {
	byte n;
	atomic {
		do
		:: n < PODS -> run Pod(n); n++
		:: else -> n = 0; break
		od;
		do
		:: n < CONNS -> run Conn(n); run Plugin(n); n++
		:: else -> n = 0; break
		od;
		if
		:: RESTARTS -> run Restart()
		:: else
		fi;
		run Check()
	}
}

/* The same once more, for the first pod and the first life of plugin a, as formulas. */
#define COMMIT_UNDER_WAY (state[0] == COMMITTING)
#define UNDO_UNDER_WAY   (state[0] == EVICTING)
#define HAS_RUN          (seen[0] & RUN_SEEN)
#define HAS_SYNC         (seen[0] & SYNC_SEEN)
#define HAS_STOP         (seen[0] & STOP_SEEN)
#define HAS_REMOVE       (seen[0] & REMOVE_SEEN)
#define IS_THERE         (cs[0] != CLOSED && !hung[0])
ltl commit_ends { [] (COMMIT_UNDER_WAY -> <> !COMMIT_UNDER_WAY) }
ltl undo_ends   { [] (UNDO_UNDER_WAY -> <> !UNDO_UNDER_WAY) }
ltl never_both  { [] !(HAS_RUN && HAS_SYNC) }
ltl order       { (!HAS_STOP U (HAS_RUN || HAS_SYNC || [] !HAS_STOP)) && [] (HAS_REMOVE -> HAS_STOP) }
ltl told_once   { [] ((HAS_RUN && UNDO_UNDER_WAY) -> <> (HAS_REMOVE || !IS_THERE)) }
