/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache/store/file-locks.h"

/* The kernel writes no more at one moment than is read at once, and no more than a page. By itself
 * stdio reads 1,024 bytes of a file in /proc, which is a dozen locks. */
#define READ_AT_ONCE 16384u

bool ck_file_lock_parse(const char *line, struct ck_file_lock *ret)
{
	int end = 0;
	*ret = (struct ck_file_lock){ 0 };
	if (sscanf(line, "%" SCNu64 ":%n", &ret->id, &end) != 1 || !end)
		return false;
	line += end + strspn(line + end, " ");
	ret->waits = strncmp(line, "->", 2) == 0;
	line += ret->waits ? 2 : 0;
	return sscanf(line, "%7s %*s %7s %ld %x:%x:%" SCNu64 " %" SCNu64, ret->how, ret->kind,
		      &ret->pid, &ret->major, &ret->minor, &ret->inode, &ret->first) == 7;
}

bool ck_file_locks_find(bool (*wanted)(const struct ck_file_lock *lock, void *userdata),
			void *userdata, struct ck_file_lock *ret, bool *ret_all)
{
	char line[256], buffer[READ_AT_ONCE];
	bool found = false;
	size_t read = 0, page = (size_t)sysconf(_SC_PAGESIZE);
	FILE *file = fopen("/proc/locks", "re");

	if (file)
		setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	while (file && !found && fgets(line, sizeof(line), file)) {
		read += strlen(line);
		found = ck_file_lock_parse(line, ret) && wanted(ret, userdata);
	}
	if (file)
		fclose(file);
	*ret_all = read < (page < sizeof(buffer) ? page : sizeof(buffer)) - sizeof(line);
	return found;
}
