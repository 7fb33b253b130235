/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_STORE_FILE_LOCKS_H
#define CK_STORE_FILE_LOCKS_H
/* The locks on files that processes hold or wait for, as /proc/locks lists them. */
#include <stdbool.h>
#include <stdint.h>

struct ck_file_lock {
	uint64_t id;  /* in this reading; who waits for the lock has the same */
	bool waits;
	char how[8];  /* POSIX, FLOCK, OFDLCK, LEASE */
	char kind[8]; /* READ, WRITE */
	long pid;     /* -1: the kernel does not say */
	unsigned major, minor;
	uint64_t inode, first;
};

/* ck_file_lock_parse - from a line of the list */
bool ck_file_lock_parse(const char *line, struct ck_file_lock *ret);

/* ck_file_locks_find - the first lock that @wanted takes. Who waits for a lock follows it, written
 * at the same moment. @ret_all: is the list so short that the kernel wrote all of it at one moment?
 * Else a line may be left out, because another one went away meanwhile */
bool ck_file_locks_find(bool (*wanted)(const struct ck_file_lock *lock, void *userdata),
			void *userdata, struct ck_file_lock *ret, bool *ret_all);
#endif
