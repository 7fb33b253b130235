/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/mem.h"
#include "src/base/fault.h"

void *ck_alloc(size_t size)
{
	return ck_fault(CK_FAULT_ALLOC) ? NULL : calloc(1, size ? size : 1);
}

void *ck_realloc(void *p, size_t size)
{
	return ck_fault(CK_FAULT_ALLOC) ? NULL : realloc(p, size ? size : 1);
}

void *ck_memdup(const void *p, size_t n)
{
	void *copy = ck_alloc(n);
	if (copy && n)
		memcpy(copy, p, n);
	return copy;
}

char *ck_strndup(const char *s, size_t n)
{
	char *copy = ck_alloc(n + 1);
	if (copy && n)
		memcpy(copy, s, n);
	return copy;
}

char *ck_strdup(const char *s)
{
	return s ? ck_strndup(s, strlen(s)) : NULL;
}

void *ck_grown(void *array, size_t n, size_t size)
{
	bool full = n == 0 || (n >= 16 && !(n & (n - 1)));
	return full ? ck_realloc(array, (n ? 2 * n : 16) * size) : array;
}
