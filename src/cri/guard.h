/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_GUARD_H
#define CK_CRI_GUARD_H
/*
 * Ids in requests. A call that names a hidden id, or a prefix of hidden ids only, is refused with
 * NOT_FOUND. A prefix that hidden and visible ids share is written out in full, because the
 * runtime would call it ambiguous. Pure: bytes in, bytes out.
 */
#include "src/base/bytes.h"
#include "src/cri/calls.h"

/* what is known of @id. Return: 0 and @ret_id (borrowed: @id itself, or the id in full), 1: it is
 * hidden, or an error */
typedef int ck_resolve_fn(enum ck_kind kind, const char *id, const char **ret_id, void *userdata);

enum ck_guarded { CK_IDS_UNCHANGED = 0, CK_IDS_REWRITTEN = 1, CK_IDS_HIDDEN = 2 };

/*
 * ck_guard_request - walk @method's request. The last occurrence of a field counts, as for the
 * runtime. A hidden id in the filter of a list stays as it is, because the answer is filtered.
 * @ret_id: the id that the call acts on, in full; as it came if it is hidden; "" if there is none.
 * It is of method->kind, for CreateContainer of the sandbox. CK_ID_MAX + 1 bytes.
 * Return: enum ck_guarded, @ret_request set with CK_IDS_REWRITTEN; -CK_EMALFORMED, -CK_ETOOBIG
 * (an id over CK_ID_MAX), -CK_ENOMEM, or what @resolve returned.
 */
int ck_guard_request(const struct ck_cri_method *method, const void *request, size_t len,
		     ck_resolve_fn *resolve, void *userdata, char *ret_id,
		     struct ck_bytes *ret_request, struct ck_error *err);
/* ck_guard_has_filter - does the request of a list restrict it in any way? Unknown fields count as
 * restrictions. */
bool ck_guard_has_filter(const struct ck_cri_method *method, const void *request, size_t len);
#endif
