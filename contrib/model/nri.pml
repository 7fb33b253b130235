/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is told what: choose, snapshot, late plugins, disconnection and restart, for spin. README.md
 * says how to run it. Three parties:
 *
 *	Pod(p)     the cache's entry, and the event that is dispatched for it
 *	Conn(c)    one connection: it joins, is synchronized, is sent its events
 *	Plugin(c)  the other end: it sees events, and answers, refuses or hangs
 *
 * and Restart, which takes away everything but the rows on disk. All state is in variables, and
 * each step is one atomic{}. So a restart or a broken connection can come between any two steps.
 * One step here must be one critical section in C. There is no clock: a deadline is a step that may
 * come at any moment of a wait. Every life is short, so every run ends. At the end, Check compares
 * who has seen what. Each #ifdef is a way to get the protocol wrong; tests/prog/test-protocol.sh
 * requires that spin finds each of them.
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

/* Connections in index order. The last is plugin b; the others are the lives of plugin a. */
#define NAME(c)    ((c) == CONNS - 1)
#define BIT(c)     (1 << NAME(c))
#define RETURNS(c) ((c) != 0 && (c) != CONNS - 1)
#define AT(c, p)   ((c) * PODS + (p))

/* ---- the entry, in the cache ----------------------------------------------------------------- */

/* MADE: it exists, nobody was told; KEPT: plugins were told, it is not visible */
mtype = { MADE, COMMITTING, COMMITTED, KEPT, EVICTING, GONE };
mtype = { NONE, RUN, STOP, REMOVE };

mtype state[PODS] = MADE;
byte told[PODS];      /* names: bits. On disk with COMMITTING */
bool tried[PODS];     /* COMMITTING is on disk, or could not be written (K32) */
bool written[PODS];   /* COMMITTING, or a later state, is on disk */
bool in_round;        /* the cache's critical section, from choose until that was tried */
bool abandoned[PODS]; /* the kubelet has moved on while plugins were asked */
bool trouble[PODS];   /* the disk was full or memory out: once */

mtype dispatched[PODS] = NONE; /* the event, sent to one connection after the other */
byte at[PODS];                 /* the connection it is at */
bool waits[PODS];              /* for the answer of connection at[p], or its deadline */
bool refused[PODS];
bool stopped[PODS];            /* all have been sent STOP */

/* ---- connections, in hooks/ ------------------------------------------------------------------ */

mtype = { ABSENT, JOINED, LISTING, SYNCING, READY, CLOSED };
/* of a pod: not known; RUN will come; it will be in the list; it was sent */
mtype = { UNKNOWN, CHOSEN, LISTED, TOLD };

mtype cs[CONNS] = ABSENT;
bool joined[CONNS];      /* a recipient: choose finds it */
mtype knows[CONNS * PODS] = UNKNOWN;
bool stop_queued[CONNS * PODS], remove_queued[CONNS * PODS];
bool debt[CONNS * PODS]; /* it must hear the end, because of an earlier life */
bool chosen_here[PODS];  /* choose was called in this life, so the names in the row do not count */
bool stopping[PODS];     /* its Stop was queued for somebody: who joins now does not hear it */
bool removing[PODS];     /* its Remove is being sent: who joins now does not hear of the pod */
bool no_more_run[PODS];  /* RUN was cancelled or refused */

#ifdef TWO_IN_FLIGHT
#define WIRE 2
#else
#define WIRE 1 /* one event in flight (H5) */
#endif
chan queue[CONNS] = [3 * PODS] of { mtype, byte };
chan wire[CONNS] = [WIRE] of { mtype, byte };

#define CONNECTED(c) (cs[c] != ABSENT && cs[c] != CLOSED)
#define HAD_LIST(c)  (cs[c] == SYNCING || cs[c] == READY)

/* ---- what happened: for assertions only ------------------------------------------------------ */

#define SYNC_SEEN   1
#define RUN_SEEN    2
#define STOP_SEEN   4
#define REMOVE_SEEN 8
#define HEARD(c, p)       (seen[AT(c, p)] & (SYNC_SEEN | RUN_SEEN))
#define EXACTLY_ONE(c, p) (HEARD(c, p) == SYNC_SEEN || HEARD(c, p) == RUN_SEEN)
/* Stop, if it joined before that was sent; and Remove */
#define ITS_END(c, p) (seen[AT(c, p)] & REMOVE_SEEN && \
	(no_stop[AT(c, p)] -> !(seen[AT(c, p)] & STOP_SEEN) : seen[AT(c, p)] & STOP_SEEN))

byte seen[CONNS * PODS];   /* by the plugin */
bool mortal[CONNS];        /* its connection breaks at some time */
bool hung[CONNS];          /* it answers no more. A late one needs no mark: its deadline came */
bool chosen[CONNS * PODS]; /* it was connected at choose */
/* an earlier life has sent RUN to a plugin of this name, which was connected when the end began */
bool owed[CONNS * PODS];
bool no_stop[CONNS * PODS]; /* it joined when the Stop was being sent, or was */
bool begun[PODS];          /* a commit was begun, and its write was tried */
bool agreed[PODS];         /* plugins let it pass */
bool stays[PODS];          /* nobody removes it */
byte told_before[PODS];    /* names in the row at a restart */
byte sent_run[PODS];       /* names of those that were sent RUN */
byte sent_before[PODS];    /* the same, in an earlier life */

/* ---- an event is dispatched ------------------------------------------------------------------ */

inline begin(p, event)
{
	dispatched[p] = event;
	removing[p] = removing[p] || event == REMOVE;
	at[p] = 0;
	waits[p] = false
}

/* connection @c has answered, or never will: a dispatch that waits for it goes on */
inline over(c, p, event)
{
	if
	:: dispatched[p] == event && at[p] == c && waits[p] -> waits[p] = false; at[p]++
	:: else
	fi
}

inline disconnect(c) /* a dispatch that waited for it goes on; nothing is sent again */
{
	cs[c] = CLOSED;
	joined[c] = false;
	i = 0;
	do
	:: i < PODS ->
		if
		:: waits[i] && at[i] == c -> waits[i] = false; at[i]++
		:: else
		fi;
		knows[AT(c, i)] = UNKNOWN;
		debt[AT(c, i)] = false;
		stop_queued[AT(c, i)] = false;
		remove_queued[AT(c, i)] = false;
		seen[AT(c, i)] = 0;
		chosen[AT(c, i)] = false;
		owed[AT(c, i)] = false;
		no_stop[AT(c, i)] = false;
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

/* No further plugin is told: a queued RUN is not sent. One in flight is waited for. */
inline withdraw(p)
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
 * After a restart nobody remembers which connection knew an object. The names in its row hear of
 * its end, as far as they are connected and did not get it in their list (H3). For an object that
 * was chosen for in this life the names do not count: a plugin that returns was told by its list
 * (H9).
 *
 * Here nobody misses an event without such a debt, because a list holds all that plugins were told
 * of until its Remove is sent. The switches show what a debt must not do.
 */
#ifdef DEBT_OF_THIS_LIFE
#define IN_DEBT(c, p) (state[p] == EVICTING && (told[p] & BIT(c)))
#else
#define IN_DEBT(c, p) (state[p] == EVICTING && !chosen_here[p] && (told[p] & BIT(c)))
#endif

/* A connection whose snapshot is still to come gets what exists from that. */
#ifdef DEBT_BEFORE_SNAPSHOT
#define PAYS_DEBT(c, p) IN_DEBT(c, p)
#else
#define PAYS_DEBT(c, p) (cs[c] != JOINED && IN_DEBT(c, p))
#endif

/* Is it sent the event? RUN: if it was chosen. Stop and Remove: if it knows the object. */
#define WANTED(c, p) (joined[c] && \
	(dispatched[p] == RUN -> knows[AT(c, p)] == CHOSEN && !no_more_run[p] : \
	knows[AT(c, p)] != UNKNOWN || PAYS_DEBT(c, p)))

inline put(c, p) /* the event is queued for the next connection */
{
	if
	:: WANTED(c, p) ->
		waits[p] = true;
		stopping[p] = stopping[p] || dispatched[p] == STOP;
		debt[AT(c, p)] = debt[AT(c, p)] || (dispatched[p] != RUN && PAYS_DEBT(c, p));
		if
		:: dispatched[p] == RUN -> queue[c] ! RUN, p
		:: else
		fi;
		if /* Remove comes after Stop in any case */
#ifdef REMOVE_WITHOUT_STOP
		:: dispatched[p] == STOP && !stop_queued[AT(c, p)] ->
			stop_queued[AT(c, p)] = true;
			queue[c] ! STOP, p
#else
		:: dispatched[p] != RUN && !stop_queued[AT(c, p)] ->
			stop_queued[AT(c, p)] = true;
			queue[c] ! STOP, p
#endif
		:: else
		fi;
		if
		:: dispatched[p] == REMOVE && !remove_queued[AT(c, p)] ->
			remove_queued[AT(c, p)] = true;
			queue[c] ! REMOVE, p
		:: else
		fi
	:: else -> at[p]++
	fi
}

/* ---- the entry's life ------------------------------------------------------------------------ */

inline choose(p) /* all that have joined; a subscription only filters what is sent */
{
	in_round = true;
	state[p] = COMMITTING;
	chosen_here[p] = true;
	k = 0;
	do
	:: k < CONNS ->
		if
		:: joined[k] ->
			knows[AT(k, p)] = CHOSEN;
			chosen[AT(k, p)] = true;
			told[p] = told[p] | BIT(k)
		:: else
		fi;
		k++
	:: else -> k = 0; break
	od
}

/*
 * Choose is undone; RUN was sent to nobody. But if a round has ended since, a snapshot may have
 * found the object, and the cache will not send its end, because it was not told. A connection
 * whose list was not sent yet leaves the object out; one whose list was sent is closed.
 */
inline release(p)
{
	trouble[p] = true;
	state[p] = MADE;
	tried[p] = false;
	written[p] = false;
	told[p] = 0;
	chosen_here[p] = false;
	k = 0;
	do
	:: k < CONNS ->
#ifndef RELEASE_FORGETS
		if
		:: knows[AT(k, p)] == TOLD -> disconnect(k)
		:: else
		fi;
#endif
		knows[AT(k, p)] = UNKNOWN;
		chosen[AT(k, p)] = false;
		k++
	:: else -> k = 0; break
	od
}

inline run_is_over(p)
{
	dispatched[p] = NONE;
	at[p] = 0;
	if
	:: refused[p] || abandoned[p] -> state[p] = EVICTING
	:: else ->
		agreed[p] = true;
		if
		:: state[p] = COMMITTED; stays[p] = true
		:: state[p] = COMMITTED
		:: state[p] = KEPT /* a container that nobody waits for any more (K7) */
		fi
	fi
}

inline end_begins(p)
{
	begin(p, STOP);
	k = 0;
	do
	:: k < CONNS ->
		owed[AT(k, p)] =
			(state[p] == EVICTING && HAD_LIST(k) && (sent_before[p] & BIT(k)));
		k++
	:: else -> k = 0; break
	od
}

#ifdef FIRE_BEFORE_WRITE
#define MAY_FIRE(p) true
#else
#define MAY_FIRE(p) tried[p] /* no effect before its row is on disk or known not to be (K29) */
#endif

inline is_gone(p) /* variables that nobody reads any more are reset: fewer states */
{
	state[p] = GONE;
	dispatched[p] = NONE;
	at[p] = 0;
	refused[p] = false;
	abandoned[p] = false;
	stopped[p] = false;
	tried[p] = false;
	written[p] = false
}

proctype Pod(byte p)
{
	byte k, i;
	mtype e;
end:	do
	/* it exists and is committed; or it times out, and no plugin has heard of it */
	:: atomic { state[p] == MADE && !in_round -> choose(p) }
	:: atomic { state[p] == MADE && !in_round && !trouble[p] -> state[p] = GONE }
	:: atomic { state[p] == COMMITTING && !tried[p] ->
		tried[p] = true;
		begun[p] = true;
		in_round = false;
		if
		:: written[p] = true
		:: MAY_FAIL(p) -> trouble[p] = true /* the disk is full: it goes on in memory */
		fi
	   }
	:: atomic { tried[p] && !written[p] -> written[p] = true } /* there is room again */
	:: atomic { state[p] == COMMITTING && tried[p] && MAY_FAIL(p) && dispatched[p] == NONE ->
		release(p)
	   }
	/* plugins are told of the commit. The kubelet may move on meanwhile */
	:: atomic { state[p] == COMMITTING && MAY_FIRE(p) && dispatched[p] == NONE -> begin(p, RUN) }
	:: atomic { dispatched[p] == RUN && !abandoned[p] -> abandoned[p] = true; withdraw(p) }
	:: atomic { dispatched[p] == RUN && at[p] == CONNS -> run_is_over(p) }
	:: atomic { state[p] == KEPT -> state[p] = COMMITTED }
	:: atomic { state[p] == KEPT -> state[p] = EVICTING }
	/* the end: the cache's, with the names in the row; or the kubelet's, without them */
	:: atomic { state[p] == EVICTING && dispatched[p] == NONE && !stopped[p] -> end_begins(p) }
	:: atomic { state[p] == COMMITTED && dispatched[p] == NONE && !stopped[p] && !stays[p] ->
		end_begins(p)
	   }
	:: atomic { dispatched[p] == STOP && at[p] == CONNS ->
		dispatched[p] = NONE;
		at[p] = 0;
		stopped[p] = true
	   }
	:: atomic { dispatched[p] == NONE && stopped[p] && state[p] != GONE -> begin(p, REMOVE) }
	:: atomic { dispatched[p] == REMOVE && at[p] == CONNS -> is_gone(p) }
	/* any event */
	:: atomic { dispatched[p] != NONE && !waits[p] && at[p] < CONNS -> put(at[p], p) }
#ifndef NO_DEADLINE
	:: atomic { waits[p] -> waits[p] = false; at[p]++ } /* the event stays in the queue */
#endif
	od
}

/* ---- what a plugin sees ---------------------------------------------------------------------- */

inline sees_sync(c, p)
{
	assert(!(seen[AT(c, p)])); /* R1: not both; and not after its end */
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
		assert(!(seen[AT(c, p)] & (STOP_SEEN | REMOVE_SEEN)) && !no_stop[AT(c, p)]);
		seen[AT(c, p)] = seen[AT(c, p)] | STOP_SEEN
	:: event == REMOVE ->
		assert(seen[AT(c, p)] & STOP_SEEN || no_stop[AT(c, p)]);
		assert(!(seen[AT(c, p)] & REMOVE_SEEN));
		seen[AT(c, p)] = seen[AT(c, p)] | REMOVE_SEEN
	fi
}

/* ---- one connection -------------------------------------------------------------------------- */

#define EXISTS(p) (state[p] == COMMITTING || state[p] == COMMITTED || state[p] == KEPT || \
	state[p] == EVICTING)
#ifdef LIST_REMOVED
#define IN_SNAPSHOT(p) EXISTS(p)
#elif defined(LIST_NO_STOPPED)
#define IN_SNAPSHOT(p) (EXISTS(p) && !stopping[p])
#elif defined(LIST_NO_EVICTED)
#define IN_SNAPSHOT(p) (EXISTS(p) && !removing[p] && state[p] != EVICTING)
#else
#define IN_SNAPSHOT(p) (EXISTS(p) && !removing[p])
#endif
#ifdef LATE_HEARS_STOP
#define IS_LATE(p) false
#else
#define IS_LATE(p) stopping[p]
#endif
#ifdef NO_SKIP
#define COMES_AS_RUN(c, p) false
#else
#define COMES_AS_RUN(c, p) (knows[AT(c, p)] == CHOSEN)
#endif

inline snapshot(c) /* a round of the cache's: each choose before it has not found @c */
{
	cs[c] = LISTING;
	i = 0;
	do
	:: i < PODS ->
		if
		:: IN_SNAPSHOT(i) && !COMES_AS_RUN(c, i) ->
			knows[AT(c, i)] = LISTED;
			stop_queued[AT(c, i)] = IS_LATE(i); /* so it is not queued again */
			no_stop[AT(c, i)] = stopping[i];
		:: else
		fi;
		i++
	:: else -> i = 0; break
	od
}

/*
 * The list is sent before any event, when each object on it has been described. That takes time,
 * and some objects may go. They are left out, and their queued events will not be sent.
 */
inline synchronize(c)
{
	cs[c] = SYNCING;
	i = 0;
	do
	:: i < PODS ->
		if
		:: knows[AT(c, i)] == LISTED -> knows[AT(c, i)] = TOLD; sees_sync(c, i)
		:: knows[AT(c, i)] == LISTED && (removing[i] || state[i] == GONE) ->
			knows[AT(c, i)] = UNKNOWN
		:: knows[AT(c, i)] != LISTED ->
			/* what its earlier life was told of, and this list has not, is gone (H1) */
			assert(!(sent_run[i] & BIT(c)) || knows[AT(c, i)] == CHOSEN ||
				removing[i] || state[i] == GONE)
		fi;
		i++
	:: else -> i = 0; break
	od
}

#ifdef STOP_WITHOUT_TOLD
#define IS_TOLD(c, p) true
#else
#define IS_TOLD(c, p) (knows[AT(c, p)] == TOLD || debt[AT(c, p)])
#endif

inline send_next(c)
{
	queue[c] ? e, i;
	if
	:: e == RUN ->
		assert(!no_more_run[i]);
		knows[AT(c, i)] = TOLD;
		sent_run[i] = sent_run[i] | BIT(c);
		wire[c] ! e, i
	:: e != RUN && IS_TOLD(c, i) -> wire[c] ! e, i
	:: else -> over(c, i, e) /* it never heard of the object, so it does not hear its end */
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
		joined[c] = true;
#endif
		if
		:: mortal[c] = true
		:: skip
		fi
	   }
	:: atomic { cs[c] == JOINED && ROUND_FREE -> snapshot(c) }
#ifdef SNAPSHOT_BEFORE_JOIN
	:: atomic { cs[c] == LISTING && !joined[c] -> joined[c] = true }
#endif
	:: atomic { cs[c] == LISTING && joined[c] -> synchronize(c) }
	:: atomic { SENDS(c) && !hung[c] && nfull(wire[c]) && nempty(queue[c]) -> send_next(c) }
	/* it broke, was overdue for too long, or too much was queued for it */
	:: atomic { CONNECTED(c) && mortal[c] -> disconnect(c) }
	od
}

/* ---- its other end --------------------------------------------------------------------------- */

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
		:: e == RUN && dispatched[p] == RUN && at[p] == c && waits[p] ->
			refused[p] = true;
			withdraw(p);
			over(c, p, e)
		:: MAY_HANG -> hung[c] = true
		fi;
		e = NONE;
		p = 0
	   }
	od
}

/* ---- restart --------------------------------------------------------------------------------- */

/* Its row is older than its commit: nobody knows any more who was told. If the kubelet has it, or
 * asks for it again, it is committed anew. */
inline unwritten(p)
{
	state[p] = MADE;
	told[p] = 0;
	sent_run[p] = 0;
	tried[p] = false;
	begun[p] = false;
	agreed[p] = false;
	stays[p] = false
}

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
			:: state[p] != GONE && !written[p] -> unwritten(p)
			:: state[p] == COMMITTING && written[p] -> state[p] = KEPT
			:: else
			fi;
			dispatched[p] = NONE;
			at[p] = 0;
			waits[p] = false;
			abandoned[p] = false;
			refused[p] = false;
			no_more_run[p] = false;
			stopped[p] = false;
			stopping[p] = false;
			removing[p] = false;
			chosen_here[p] = false;
			told_before[p] = told[p];
			sent_before[p] = sent_run[p];
			p++
		:: else -> p = 0; break
		od
	   }
	od
}

/* ---- the checks, when no step is possible any more ------------------------------------------- */

proctype Check()
{
	byte c, p;
end:	atomic { timeout ->
		do
		:: p < PODS ->
			/* no plugin held it up for ever */
			assert(state[p] == GONE || (state[p] == COMMITTED && stays[p]));
			c = 0;
			do
			:: c < CONNS ->
				if
				:: !CONNECTED(c) || hung[c] /* it missed the event */
				:: else ->
					assert(cs[c] == READY && empty(queue[c]));
					/* R1 */
					assert(!(chosen[AT(c, p)] && agreed[p]) ||
						EXACTLY_ONE(c, p));
					/* R1, R5 */
					assert(state[p] == GONE || EXACTLY_ONE(c, p));
					/* R7, R14 */
					assert(!(state[p] == GONE && HEARD(c, p)) ||
						ITS_END(c, p));
					/* H3 */
					assert(!(state[p] == GONE && owed[AT(c, p)]) ||
						ITS_END(c, p))
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

/* The same as formulas, for the first pod and the first life of plugin a. */
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
ltl order       { (!HAS_STOP U (HAS_RUN || HAS_SYNC || [] !HAS_STOP)) &&
	[] (HAS_REMOVE -> (HAS_STOP || no_stop[0])) }
ltl told_once   { [] ((HAS_RUN && UNDO_UNDER_WAY) -> <> (HAS_REMOVE || !IS_THERE)) }
