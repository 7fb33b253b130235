/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_LOG_H
#define CK_BASE_LOG_H
/*
 * Log lines that never wait: to the journal's socket or to standard error, non-blocking; what
 * cannot be written is dropped and counted, and the count is said as soon as a line gets through.
 * One line is one write. Never a request's value. The same text at the same level within a second
 * is written once; the next time it says how often it was left out. Any thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/base/error.h"

enum ck_log_target { CK_LOG_TO_AUTO, CK_LOG_TO_JOURNAL, CK_LOG_TO_STDERR };

/* ck_log_open - before the process is confined. @name: of the program, stands in every line; static.
 * @target AUTO: the journal if standard error is connected to it (JOURNAL_STREAM), else standard
 * error. Never fails: lines that have nowhere to go are dropped and counted. SIGPIPE is ignored
 * from then on */
void ck_log_open(const char *name, enum ck_log_target target, enum ck_log_level level);
void ck_log_level(enum ck_log_level level);
void ck_log(enum ck_log_level level, const char *fmt, ...) CK_PRINTF(2, 3);
uint64_t ck_log_dropped(void); /* lines, since the start */
void ck_log_close(void);

/* a test's journal, standard error, and clock (ns) */
void ck_log_open_at(enum ck_log_target target, enum ck_log_level level, const char *journal,
		    int fd);
extern uint64_t (*ck_log_clock)(void);
#endif
