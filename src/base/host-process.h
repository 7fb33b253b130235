/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_HOST_PROCESS_H
#define CK_BASE_HOST_PROCESS_H
/* The process around us is the host's: its forks, its first three descriptors, its signals, its
 * threads' stacks. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* Where something was opened, to know a forked child by. Zeroed: nowhere yet. */
struct ck_host_process {
	pid_t pid;
	/* 1, and 0 in a child: the kernel wipes it at fork; NULL: it does not know how */
	const unsigned char *here;
};

void ck_host_process_mark(struct ck_host_process *home);
void ck_host_process_fini(struct ck_host_process *home);
/* No system call where the kernel wipes, and right in a child that has the same pid in another
 * namespace */
bool ck_host_process_left(const struct ck_host_process *home);

/*
 * ck_fd_own - the same file behind a descriptor above 2
 * A host may have closed its standard streams and print all the same: then descriptor 1 must not be
 * a socket or a file of ours.
 * @fd: taken; -1 is passed through with its errno     Return: the descriptor, or -1
 */
int ck_fd_own(int fd);

/* ck_thread_start - a thread that takes no signals, on a stack that is large enough whatever the
 * host's default. Return: errno */
int ck_thread_start(pthread_t *ret_thread, void *(*main)(void *userdata), void *userdata);
#endif
