/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_NRI_ORACLE_H
#define CK_TESTS_NRI_ORACLE_H
/*
 * Watches what plugins hear while random things happen to pods and containers. It stands at the
 * seam of the cache (struct ck_hooks) and at the plugins' end, and knows nothing of what is between
 * the two. Ids are "pN" or "cN" with N below OBJECTS.
 *
 * What it holds against what was heard, of each connection and each object:
 *	once    in a list or as RunPodSandbox (CreateContainer), never both and never twice; Stop once, Remove once
 *	order   known, then the rest of its life, then Stop, then Remove, and nothing after it
 *	begun   nothing of what no commit was begun for; Stop and Remove only to who knew it, or is owed it by an earlier life; in
 *	        no list of who came after somebody had its Stop
 *	all     when everything has settled: who lives knows all that is told and not being torn down, but for containers of pods
 *	        that were being torn down when it came; who was there when a commit was begun, and lives, heard of it if it was
 *	        committed; who knew what is gone had its Stop and its Remove, and so had who was there when an earlier life's
 *	        debt was paid
 */
#include "tests/flow/nri-world.h"

enum { OBJECTS = 512 };

struct fact { /* what happened to one object */
	bool chosen, cancelled, committed, gone;
	bool ended_by_host;  /* its Stop was sent by the host, in this life */
	uint64_t stop_at;    /* when the first one in this life heard of its Stop; 0: nobody has */
	unsigned life;       /* in which it was chosen first */
	char told[256];      /* names its row tells */
	bool active[NW_PLUGINS]; /* was there for certain when it was chosen */
	/* and when Stop or Remove of something of an earlier life went out, and is named in its
	 * row */
	bool owed[NW_PLUGINS];
	bool listed;         /* in the cache's snapshot, at the last check */
	unsigned pod;        /* of a container; 0: not known */
};

struct oracle {
	struct nw *w;
	struct ck_hooks real; /* the hooks' own */
	struct fact *facts;   /* OBJECTS of them */
	unsigned life;
	unsigned life_of[NW_PLUGINS];
	uint64_t joined_at[NW_PLUGINS]; /* the last that was heard before it came */
	bool active[NW_PLUGINS]; /* configured when all had settled last */
	bool picky[NW_PLUGINS];  /* has not subscribed to everything */
	char complaint[512];
	/* what was met, so that a run can say what it has seen */
	uint64_t chosen, runs, lists, stops, removes, cancels, debts;
};

void oracle_init(struct oracle *o, struct nw *w);
void oracle_fini(struct oracle *o);
/* oracle_between - what goes to ck_cache_open() in the place of the hooks, in this life */
void oracle_between(struct oracle *o, struct ck_hooks *ret_hooks);
void oracle_settled(struct oracle *o);     /* everything that was written has been read */
void oracle_committed(struct oracle *o, const char *id);
void oracle_stopped(struct oracle *o, const char *id); /* the host sends its Stop, or Remove */
void oracle_joined(struct oracle *o, const struct plugin *plugin);
/* oracle_check - @quiet: all has been let go and has settled. false: there is a complaint */
bool oracle_check(struct oracle *o, bool quiet);
void oracle_complain(struct oracle *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
#endif
