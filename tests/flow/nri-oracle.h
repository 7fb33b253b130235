/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_NRI_ORACLE_H
#define CK_TESTS_NRI_ORACLE_H
/*
 * Watches what plugins hear while random things happen to pods and containers. It sits between the
 * cache and struct ck_hooks, and at the plugins' end; it knows nothing of what is between the two.
 * Ids are "pN" or "cN" with N below OBJECTS.
 *
 * What it requires, for each connection and each object:
 *	once    an object comes in a list or as RunPodSandbox (CreateContainer), never both, and
 *	        never twice; Stop once, Remove once
 *	order   the announcement, other events, Stop, Remove, and nothing after that
 *	begun   nothing comes before its commit was begun. Stop and Remove come only to
 *	        connections that know the object, or whose name an earlier life has told of it
 *	joins   after a connection had the Stop of an object, one that joins is sent no Stop of
 *	        it. After one had its Remove, it is in no list. A container that a list shows
 *	        stopped has no Stop either
 *	all     when everything has settled: a connection that lives knows everything that is
 *	        told and whose Remove was not sent, unless it was chosen for a commit that was
 *	        given up. A connection that was there when a commit was begun has heard of it, if
 *	        it was committed. A connection that knew an object that is gone had its Remove;
 *	        and its Stop, if it had its list before that was sent. So had one whose name an
 *	        earlier life has told of it, and that had a list without it
 */
#include "tests/flow/nri-world.h"

enum { OBJECTS = 512 };

struct fact { /* what happened to one object */
	bool chosen, cancelled, committed, gone;
	/* in this life: its Stop or its Remove was sent, and the number of the last call heard
	 * then; its Remove was; the cache sent it */
	bool end_sent, remove_sent, remove_fired;
	uint64_t end_at;
	/* when a connection of this life first heard its Stop, its Remove; 0: never */
	uint64_t stop_at, remove_at;
	unsigned life;       /* in which it was chosen first */
	char told[256];      /* the names in its row */
	bool active[NW_PLUGINS]; /* surely connected when it was chosen */
	/* named in the row, and connected while Remove of an object of an earlier life waits for
	 * those who return */
	bool owed[NW_PLUGINS];
	bool listed;         /* in the cache's snapshot, at the last check */
	uint64_t chosen_no;  /* oracle.steps, when it was chosen last */
	unsigned pod;        /* of a container; 0: not known */
};

struct oracle {
	struct nw *w;
	struct ck_hooks real; /* the hooks' own */
	struct fact *facts;   /* OBJECTS of them */
	unsigned life;
	unsigned life_of[NW_PLUGINS];
	uint64_t joined_at[NW_PLUGINS]; /* the number of the last call heard before it came */
	uint64_t steps, join_no[NW_PLUGINS]; /* the order of choices and of connections */
	bool active[NW_PLUGINS]; /* configured when all had settled the last time */
	bool picky[NW_PLUGINS];  /* has not subscribed to everything */
	char complaint[512];
	/* counters, for the report at the end */
	uint64_t chosen, runs, lists, stops, removes, cancels, debts;
};

void oracle_init(struct oracle *o, struct nw *w);
void oracle_fini(struct oracle *o);
/* oracle_between - hooks for ck_cache_open() in this life, in place of the real ones */
void oracle_between(struct oracle *o, struct ck_hooks *ret_hooks);
void oracle_settled(struct oracle *o);     /* everything that was written has been read */
void oracle_committed(struct oracle *o, const char *id);
/* the host sends its Stop, or its Remove */
void oracle_ends(struct oracle *o, const char *id, enum ck_hook_event event);
void oracle_joined(struct oracle *o, const struct plugin *plugin);
/* oracle_check - @quiet: nothing is held back, and all has settled. false: there is a complaint */
bool oracle_check(struct oracle *o, bool quiet);
void oracle_complain(struct oracle *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
#endif
