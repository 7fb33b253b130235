/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SELECT_ENTRIES_H
#define CK_CLI_SELECT_ENTRIES_H
/*
 * One copy of the database and the time at which it was taken. A command computes all ages from
 * this time, so the ages in one output fit together. And: which entries an argument means.
 */
#include "cache/store/store.h"
#include "src/cli/culprit/processes.h"

struct ck_look {
	struct ck_reader *reader;
	uint64_t now;  /* CLOCK_BOOTTIME, ns */
	int64_t wall;  /* CLOCK_REALTIME at the same moment, ns */
	char boot[37]; /* of this boot; "" if it cannot be read */
};

/* ck_look_try - read ck_cli.state_dir. @what: enum ck_reader_what. 0, or as ck_reader_open() */
int ck_look_try(struct ck_look *look, unsigned what, struct ck_error *err);
/* ck_look_take - read ck_cli.state_dir. @what: enum ck_reader_what. Return: CK_EXIT_YES, or
 * CK_EXIT_TROUBLE after printing the reason to standard error */
int ck_look_take(struct ck_look *look, unsigned what);
/* ck_look_clocks - set the times and the boot only, for a command that reads no database */
void ck_look_clocks(struct ck_look *look);
/* ck_look_root_hint - for the end of a message: " (run crikeep as root ...)", or "" if it would not
 * help */
const char *ck_look_root_hint(const struct ck_error *err);
/* ck_look_complain - print why the database could not be read to standard error */
void ck_look_complain(int r, const struct ck_error *err);
/* ck_look_warn - say on standard error if there is no owner, if it is frozen, or if it knows more
 * than the database, which it cannot write. For each answer that says nothing of the owner, in
 * every form of the output */
void ck_look_warn(const struct ck_look *look);
/* ck_look_warn_unread - the same, without a copy of the database */
void ck_look_warn_unread(void);
void ck_look_fini(struct ck_look *look);

/* ck_owner_frozen - is the owner stopped by a signal or by a debugger? */
bool ck_owner_frozen(const struct ck_reader *reader, struct ck_process *ret_process);

/* ck_look_clock - CLOCK_BOOTTIME, the clock of all times in the database */
uint64_t ck_look_clock(void);
/* ck_look_this_boot - is @boot this boot, so that its times can be compared with now? */
bool ck_look_this_boot(const struct ck_look *look, const char *boot);
/* ck_look_ago - how long ago @at was; 0 if it is in the future */
uint64_t ck_look_ago(const struct ck_look *look, uint64_t at);
/* ck_look_wall - a time of this boot, past or future, as seconds of the wall clock */
int64_t ck_look_wall(const struct ck_look *look, uint64_t at);

/*
 * An argument ENTRY|POD names an entry by its row number or by its runtime id, or all entries of a
 * pod. A number is a row number and nothing else: rows vanish, and a number that was one must not
 * mean something else later. Who only reads may give the beginning of an id, and of a pod NAME or
 * NAMESPACE/NAME, where the beginning of NAME is enough. Who changes something gives
 * NAMESPACE/NAME, or at least CK_ID_PREFIX_MIN characters of an id. A whole id or name wins over
 * names that only begin with it, a whole id also over such ids. Any other argument that fits more
 * than one id or pod, or an id and a pod, is ambiguous. If nothing fits, the pod with the nearest
 * name is proposed.
 */
enum ck_pick_for { CK_PICK_TO_READ, CK_PICK_TO_CHANGE };
struct ck_picked {
	bool *match; /* per row and then per further pod, or per line of history; free() */
	size_t n;    /* how many match; never 0 */
	bool pod;    /* the argument names a pod */
};
/* ck_look_pick, ck_look_pick_history - pick rows, or lines of history. Return: CK_EXIT_YES,
 * CK_EXIT_NO (none fits) or CK_EXIT_TROUBLE (ambiguous, or too short to change something); the last
 * two print the reason to standard error */
int ck_look_pick(const struct ck_look *look, const char *arg, enum ck_pick_for pick_for,
		 struct ck_picked *ret_picked);
int ck_look_pick_history(const struct ck_look *look, const char *arg, struct ck_picked *ret_picked);
/* ck_look_pick_among - to read: rows, or some of @pods, "NAMESPACE/NAME", of which no row need be
 * left */
int ck_look_pick_among(const struct ck_look *look, char *const *pods, size_t pods_n,
		       const char *arg, enum ck_pick_for pick_for, struct ck_picked *ret_picked);
/* ck_look_complete_pod - the pod of which @arg is the beginning, of the rows @among; @arg itself if
 * it is a whole name. Return: CK_EXIT_YES, CK_EXIT_TROUBLE (ambiguous; printed), or CK_EXIT_NO with
 * the nearest name or "" in @ret_pod. free() it in any case */
int ck_look_complete_pod(const struct ck_look *look, const bool *among, const char *arg,
			 char **ret_pod);
/* ck_look_is_row - is @arg a number, and so a row and nothing else? */
bool ck_look_is_row(const char *arg);
/* ck_look_pick_all - the rows that any of @args means, as @ret_match (per row; free()). Return: the
 * worst result of one argument */
int ck_look_pick_all(const struct ck_look *look, char **args, int n, bool **ret_match);
/* ck_pod_is - does @arg, NAME or NAMESPACE/NAME, mean the pod "NAMESPACE/NAME"? */
bool ck_pod_is(const char *pod, const char *arg);
/* ck_history_pod - "NAMESPACE/NAME" of a line, whose entry may be gone; free() */
char *ck_history_pod(const struct ck_history_row *line);
/* ck_key_pod - "NAMESPACE/NAME"; free() */
char *ck_key_pod(const struct ck_key *key);
#endif
