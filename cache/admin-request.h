/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_ADMIN_REQUEST_H
#define CK_CACHE_ADMIN_REQUEST_H
/*
 * Only the owner writes the database. Others ask by a wish: a small file renamed into
 * state_dir/wishes/ as NAME.wish; the owner watches the directory, answers by renaming NAME.answer
 * into it and unlinks the wish. Without an owner wishes wait. Names are 32 hex digits; anything
 * else in the directory is left alone.
 *
 *	crikeep-wish 1          crikeep-answer 1
 *	verb evict              done yes
 *	entry 42                text begun; the history tells its end
 *
 * Lines in this order, each ended by a newline, nothing else. A wish is untrusted: at most
 * CK_WISH_MAX bytes, a regular file, every byte checked; a bad one is answered with its error. An
 * answer nobody fetched in an hour is removed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "src/crikeep.h"

enum ck_wish_verb { CK_WISH_EVICT = 1, CK_WISH_RELEASE = 2 };

struct ck_wish {
	enum ck_wish_verb verb;
	uint64_t entry; /* row id */
	char name[33];
};

struct ck_wish_answer {
	bool done;      /* taken up; for an eviction: begun, the history tells its end */
	char text[256]; /* one sentence for people */
};

/* parsing and printing, without files; for tests and fuzzing. -CK_EMALFORMED with what is wrong and
 * where */
int ck_wish_parse(const char *text, size_t len, struct ck_wish *ret_wish, struct ck_error *err);
int ck_wish_answer_parse(const char *text, size_t len, struct ck_wish_answer *ret_answer,
			 struct ck_error *err);

/* the asking side. @ret_name: 33 bytes. -CK_EIO, -CK_ENOTFOUND (no such state directory) */
int ck_wish_make(const char *state_dir, const struct ck_wish *wish, char *ret_name,
		 struct ck_error *err);
/* 1: @ret_answer is filled and the answer removed; 0: none yet; negative as above */
int ck_wish_fetch(const char *state_dir, const char *name, struct ck_wish_answer *ret_answer,
		  struct ck_error *err);

/* the owner's side */
struct ck_wishes;
/* ck_wishes_open - make and watch the directory; @ret_wishes works (finds nothing) even where it
 * cannot be made */
int ck_wishes_open(const char *state_dir, struct ck_wishes **ret_wishes, struct ck_error *err);
/* inotify; readable when there may be wishes; -1: none */
int ck_wishes_fd(const struct ck_wishes *wishes);
/* ck_wishes_take - 1: the next wish, to be answered before the next call; 0: none now. Bad ones are
 * answered and passed over */
int ck_wishes_take(struct ck_wishes *wishes, struct ck_wish *ret_wish);
void ck_wishes_answer(struct ck_wishes *wishes, const struct ck_wish *wish,
		      const struct ck_wish_answer *answer);
void ck_wishes_close(struct ck_wishes *wishes);
#endif
