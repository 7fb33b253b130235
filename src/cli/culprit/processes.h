/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_CULPRIT_PROCESSES_H
#define CK_CLI_CULPRIT_PROCESSES_H
/*
 * What /proc tells of processes and of what their threads wait for. Everything may change or
 * vanish at any time, so each answer may be missing. No file is opened by the path that a process
 * waits at: whoever looks there would wait, too.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/limits.h"

struct ck_process {
	long pid, parent;
	char name[64];
	char state;       /* as in ps(1): 'T', 'D' ... */
	bool kernel;      /* a thread of the kernel */
	uint64_t started; /* CLOCK_BOOTTIME, ns */
};
/* ck_process_parse - from the line of /proc/PID/stat; false: it is none */
bool ck_process_parse(const char *line, struct ck_process *ret);
bool ck_process_see(long pid, struct ck_process *ret);
/* ck_process_stopped - by a signal or by a debugger? */
bool ck_process_stopped(const struct ck_process *process);

/* ck_processes_list - those of this process namespace, at most CK_PROCESSES_MAX, without threads of
 * the kernel and without what has ended. Return: how many; free() */
size_t ck_processes_list(struct ck_process **ret);

/* ck_process_file - at most @max bytes of /proc/PID/NAME, with a NUL after them; NULL: they cannot
 * be read. free() */
char *ck_process_file(long pid, const char *name, size_t max, size_t *ret_len);
/* ck_process_foreign_file - the same of a file whose name somebody else has chosen: "root/NAME" or
 * "cwd/NAME". NULL: also if it is no regular file, but a link, say, or longer than @max. free() */
char *ck_process_foreign_file(long pid, const char *name, size_t max);
bool ck_process_users(long pid, uid_t *ret_real, uid_t *ret_effective);
/* ck_process_link - where /proc/PID/NAME points to; NULL: unknown. free() */
char *ck_process_link(long pid, const char *name);
/* ck_process_variable - the value of a variable in an environment of @len bytes, or NULL */
const char *ck_process_variable(const char *environment, size_t len, const char *name);
/* ck_process_sockets - the inodes of the sockets that it has open, in ascending order. Return: how
 * many; free() */
size_t ck_process_sockets(long pid, uint32_t **ret);

enum ck_waits {
	CK_WAITS_UNKNOWN, /* for anything, or it runs */
	CK_WAITS_DISK,    /* state D: nothing but its end ends it, no signal either */
	CK_WAITS_LOCK,    /* on a file */
};
struct ck_waiting {
	enum ck_waits what;
	char where[64]; /* the kernel's function; "": unknown */
	char path[CK_PATH_MAX]; /* of the file that its system call names; "": unknown */
	long thread;
	uint64_t switches; /* how often the thread has gone to sleep */
};
/* ck_process_waiting - what the thread waits for that waits in state D or for a lock */
void ck_process_waiting(long pid, struct ck_waiting *ret);
/* ck_lock_keeper - the process that holds the lock for which @pid waits; 0: unknown */
long ck_lock_keeper(long pid);
#endif
