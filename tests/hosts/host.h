/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_HOST_H
#define CK_TESTS_HOST_H
/* The least a host needs, for the programs of this directory, which see of crikeep what is
 * installed. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include <crikeep.h>

/* RunPodSandbox for the pod "web", uid "u1", namespace "shop" */
#define HOST_REQUEST "\x0a\x11\x0a\x0f\x0a\x03web\x12\x02u1\x1a\x04shop"

/* the last line a program prints says what went wrong; the script compares it with what it
 * expects */
#define HOST_EXPECT(what)                                                       \
	do {                                                                    \
		if (!(what)) {                                                  \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #what);       \
			exit(1);                                                \
		}                                                               \
	} while (0)

static inline unsigned host_count(const char *dir)
{
	unsigned n = 0;
	DIR *d = opendir(dir);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}
#endif
