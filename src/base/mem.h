/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_MEM_H
#define CK_BASE_MEM_H
/* Allocation that can be made to fail, and locals that clean up after themselves. No function here
 * aborts. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *ck_alloc(size_t size); /* zeroed; NULL when memory is gone or a fault is armed */
void *ck_realloc(void *p, size_t size);
char *ck_strdup(const char *s); /* NULL in, NULL out */
char *ck_strndup(const char *s, size_t n);
void *ck_memdup(const void *p, size_t n);

/* ck_grown - @array, with room for one element more than @n. Its room is always a power of two, and
 * at least 16. NULL: no memory, and @array is as it was */
void *ck_grown(void *array, size_t n, size_t size);

#define CK_NEW(type) ((type *)ck_alloc(sizeof(type)))

/* CK_AUTO(ck_turn) *t: ck_turn_free(t) is called on every way out, unless CK_TAKE(t) took it. The
 * header of the type has CK_AUTO_DEFINE. */
#define CK_AUTO_DEFINE(name)                                \
	static inline void name##_auto(struct name **p)     \
	{                                                   \
		name##_free(*p);                            \
	}
#define CK_AUTO(name) __attribute__((cleanup(name##_auto))) struct name
#define CK_TAKE(p) __extension__({ __typeof__(p) ck_taken_ = (p); (p) = NULL; ck_taken_; })

static inline void ck_free_auto(void *p)
{
	free(*(void **)p);
}
#define CK_AUTO_FREE __attribute__((cleanup(ck_free_auto)))

static inline void ck_close_auto(int *fd)
{
	extern int close(int);
	if (*fd >= 0)
		close(*fd);
}
#define CK_AUTO_CLOSE __attribute__((cleanup(ck_close_auto)))
#define CK_TAKE_FD(fd) __extension__({ int ck_taken_ = (fd); (fd) = -1; ck_taken_; })

/* a name that is left out counts as empty */
static inline const char *ck_or_empty(const char *s)
{
	return s ? s : "";
}

/* the struct whose @member @p points to */
#define CK_OWNER_OF(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

#define CK_COUNT(a) (sizeof(a) / sizeof(*(a)))

/* CK_NEVER(x): x cannot be true. If it is, a test build aborts, and a release takes the caller's
 * error path. */
#ifdef CK_TESTING
#define CK_NEVER(x) ((x) ? (abort(), 1) : 0)
#else
#define CK_NEVER(x) (__builtin_expect(!!(x), 0))
#endif
#endif
