/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_LOG_H
#define CK_BASE_LOG_H
/*
 * Log lines that never block, to the journal's socket or to standard error. A line that cannot be
 * written is dropped and counted; the next line that can be written is preceded by the count. One
 * line is one write. A line never has a value of a request in it. The same text at the same level
 * is written once a second; the next time it says how often it was left out. Any thread.
 *
 * As JSON, a line is one object of valid UTF-8: time, level, message, and what the line is about.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/base/error.h"
#include "src/base/limits.h"

enum ck_log_target { CK_LOG_TO_AUTO, CK_LOG_TO_JOURNAL, CK_LOG_TO_STDERR };
enum ck_log_format { CK_LOG_TEXT, CK_LOG_JSON_LINES };

/* what a line is about. NULL and "": not known; spans in ns, below 0: not known */
struct ck_log_about {
	const char *kind, *pod_namespace, *pod, *uid, *container, *id;
	uint32_t attempt, requests;
	int64_t created_in, after;
};

/* ck_log_open - call it before the process is confined. @name: the program's, static.
 * @target AUTO: the journal if standard error is connected to it (JOURNAL_STREAM), else standard
 * error. It never fails: lines that cannot be written are dropped and counted. SIGPIPE is ignored
 * from then on */
void ck_log_open(const char *name, enum ck_log_target target, enum ck_log_level level);
void ck_log_level(enum ck_log_level level);
void ck_log_format(enum ck_log_format format); /* CK_LOG_TEXT until it is called */
void ck_log(enum ck_log_level level, const char *fmt, ...) CK_PRINTF(2, 3);
/* ck_log_members - the members of a JSON object for @about, each with a comma before it. One that
 * does not fit is left out */
void ck_log_members(const struct ck_log_about *about, char buf[CK_LOG_MEMBERS]);
/* ck_log_with - @members: of ck_log_members(), or ""; they are written as JSON only */
void ck_log_with(enum ck_log_level level, const char *members, const char *text);
uint64_t ck_log_dropped(void); /* lines, since the start */
void ck_log_close(void);

/* for tests: another journal, standard error and clocks (ns) */
void ck_log_open_at(enum ck_log_target target, enum ck_log_level level, const char *journal,
		    int fd);
extern uint64_t (*ck_log_clock)(void), (*ck_log_wall_clock)(void);
#endif
