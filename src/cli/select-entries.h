/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SELECT_ENTRIES_H
#define CK_CLI_SELECT_ENTRIES_H
/*
 * A look at the cache: one copy of what the database held, and the moment it was taken. Everything
 * a command says is said of this moment, so ages of one output fit together. And: which entries an
 * argument means.
 */
#include "cache/store/store.h"

struct ck_look {
	struct ck_dump *dump;
	uint64_t now;  /* CLOCK_BOOTTIME, ns */
	int64_t wall;  /* CLOCK_REALTIME at the same moment, ns */
	char boot[37]; /* of this boot; "" if the kernel does not tell */
};

/* ck_look_take - read ck_cli.state_dir. @what: enum ck_dump_what. Return: CK_EXIT_YES, or
 * CK_EXIT_TROUBLE and why on standard error */
int ck_look_take(struct ck_look *look, unsigned what);
/* ck_look_clocks - the clocks of now and this boot, for who reads something else than the
 * database */
void ck_look_clocks(struct ck_look *look);
/* ck_look_complain - say on standard error why the database could not be read, and what may help */
void ck_look_complain(int r, const struct ck_error *err);
void ck_look_fini(struct ck_look *look);

/* ck_look_clock - CLOCK_BOOTTIME, as all times in the database */
uint64_t ck_look_clock(void);
/* ck_look_this_boot - are times of @boot comparable with now? */
bool ck_look_this_boot(const struct ck_look *look, const char *boot);
/* ck_look_ago - how long ago @at was; 0 for what lies ahead */
uint64_t ck_look_ago(const struct ck_look *look, uint64_t at);
/* ck_look_wall - the wall clock's seconds of a moment of this boot, ahead or past */
int64_t ck_look_wall(const struct ck_look *look, uint64_t at);

/*
 * An argument ENTRY|POD means an entry by its row number or by a prefix of its runtime id, or all
 * entries of a pod by NAME or NAMESPACE/NAME. A row number wins over everything, because that is
 * what scripts use, and a whole id over ids that only begin with it. Of the rest, what fits more
 * than one id or pod is ambiguous, and so is what fits an id and a pod.
 */
struct ck_picked {
	bool *match; /* per row, or per line of history; free() */
	size_t n;    /* how many match; never 0 */
	bool pod;    /* named by its pod */
};
/* ck_look_pick, ck_look_pick_history - among the rows, or the lines of history. Return:
 * CK_EXIT_YES, CK_EXIT_NO (none fits) or CK_EXIT_TROUBLE (ambiguous); whatever is not yes has been
 * said on standard error */
int ck_look_pick(const struct ck_look *look, const char *arg, struct ck_picked *ret_picked);
int ck_look_pick_history(const struct ck_look *look, const char *arg, struct ck_picked *ret_picked);
/* ck_look_pick_all - the rows that any of @args means, as @ret_match (per row; free()). Return: the
 * worst answer for one */
int ck_look_pick_all(const struct ck_look *look, char **args, int n, bool **ret_match);
/* ck_pod_is - does @arg, NAME or NAMESPACE/NAME, mean the pod "NAMESPACE/NAME"? */
bool ck_pod_is(const char *pod, const char *arg);
/* ck_key_pod - "NAMESPACE/NAME"; free() */
char *ck_key_pod(const struct ck_key *key);
#endif
