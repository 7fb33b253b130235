/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_HOST_PROCESS_H
#define CK_BASE_HOST_PROCESS_H
/* The library runs in the host's process. It must cope with the host's forks, closed standard
 * streams, signals and stack sizes. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* The process that something was opened in, to recognize a forked child. Zeroed: none yet. */
struct ck_host_process {
	pid_t pid;
	/* 1, and 0 in a child, because the kernel wipes it at fork; NULL: the kernel cannot */
	const unsigned char *here;
};

void ck_host_process_mark(struct ck_host_process *home);
void ck_host_process_fini(struct ck_host_process *home);
/* ck_host_process_left - is this a child? It makes no system call where the kernel wipes, and is
 * right in a child that has the same pid in another namespace */
bool ck_host_process_left(const struct ck_host_process *home);

/*
 * ck_fd_own - move a file to a descriptor above 2. A host may have closed its standard streams and
 * still print, so none of our files or sockets may be descriptor 1.
 * @fd: taken; -1 is passed through with its errno     Return: the descriptor, or -1
 */
int ck_fd_own(int fd);

/* ck_thread_start - start a thread that gets no signals and whose stack is large enough, whatever
 * the host's default is. Return: errno */
int ck_thread_start(pthread_t *ret_thread, void *(*main)(void *userdata), void *userdata);
#endif
