/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_WIRE_NRI_MESSAGE_H
#define CK_HOOKS_WIRE_NRI_MESSAGE_H
/*
 * Messages of NRI by the names of their fields, behind ck_nri_message_new() and the functions with
 * it in crikeep-nri.h, which say what a path is. What NRI has is written down once, in nri.proto.
 *
 * Texts and numbers come from a host or from a runtime's JSON. So texts have a length, and each
 * byte that is not UTF-8, and NUL, becomes U+FFFD. A message has a bound (limits.h).
 */
#include <stdbool.h>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/mem.h"

int ck_message_new(enum ck_nri_type type, struct ck_nri_message **ret_message,
		   struct ck_error *err);
int ck_message_read(enum ck_nri_type type, const void *bytes, size_t len,
		    struct ck_nri_message **ret_message, struct ck_error *err);
void ck_message_free(struct ck_nri_message *message);
static inline void ck_message_free_auto(struct ck_nri_message **message)
{
	ck_message_free(*message);
}
#define CK_AUTO_MESSAGE __attribute__((cleanup(ck_message_free_auto))) struct ck_nri_message

/* The first failure is kept, and nothing is written after it. @message may be NULL, as an item is
 * after a failure. */
struct ck_nri_message *ck_message_item(struct ck_nri_message *message, const char *path);
void ck_message_text(struct ck_nri_message *message, const char *path, const void *text,
		     size_t len);
void ck_message_number(struct ck_nri_message *message, const char *path, int64_t number);
/* ck_message_fail - keep this failure, if it is the first */
void ck_message_fail(struct ck_nri_message *message, const struct ck_error *err);
/* ck_message_failed - has anything failed? 0, or the error */
int ck_message_failed(const struct ck_nri_message *message, struct ck_error *err);
/* ck_message_borrow - @ret_bytes are valid until the next call, or ck_message_free() */
int ck_message_borrow(struct ck_nri_message *message, const void **ret_bytes, size_t *ret_len,
		      struct ck_error *err);
/* ck_message_bytes - append the encoded message to @out. 0, or the first failure */
int ck_message_bytes(const struct ck_nri_message *message, struct ck_bytes *out,
		     struct ck_error *err);

/* ck_message_offer - the same, but a number that is out of range is left out */
void ck_message_offer(struct ck_nri_message *message, const char *path, int64_t number);

/* What a field takes, for JSON, in which anything can stand anywhere. @name: of a field of @message
 * itself, which may be NULL. *@ret_list: is it a list? */
enum ck_takes { CK_TAKES_NOTHING, CK_TAKES_TEXT, CK_TAKES_NUMBER, CK_TAKES_BOOL, CK_TAKES_MESSAGE };
enum ck_takes ck_message_takes(const struct ck_nri_message *message, const char *name,
			       bool *ret_list);

/* as ck_nri_get_text() and so on; @message may be NULL */
const char *ck_message_get_text(struct ck_nri_message *message, const char *path, size_t i);
bool ck_message_get_number(struct ck_nri_message *message, const char *path, size_t i,
			   int64_t *ret_number);
size_t ck_message_count(struct ck_nri_message *message, const char *path);
struct ck_nri_message *ck_message_get_item(struct ck_nri_message *message, const char *path,
					   size_t i);
int ck_message_check(const struct ck_nri_message *message, struct ck_error *err);
#endif
