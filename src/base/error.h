/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_ERROR_H
#define CK_BASE_ERROR_H
/* Filling struct ck_error. An error gains one phrase of context per level on its way up: "open
 * '/run/x': lock: ...". */
#include "src/crikeep.h"

#define CK_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* ck_fail - set @err (may be NULL) and return -@code */
int ck_fail(struct ck_error *err, int code, const char *fmt, ...) CK_PRINTF(3, 4);
/* ck_fail_errno - the same, ": strerror(sys)" appended */
int ck_fail_errno(struct ck_error *err, int code, int sys, const char *fmt, ...) CK_PRINTF(4, 5);
/* ck_context - put "phrase: " before the text; returns @r, so that it can be returned */
int ck_context(struct ck_error *err, int r, const char *fmt, ...) CK_PRINTF(3, 4);
/* ck_nomem - out of memory: -CK_ENOMEM. It needs no memory itself */
static inline int ck_nomem(struct ck_error *err)
{
	ck_fail(err, CK_ENOMEM, "out of memory");
	return -CK_ENOMEM;
}
/* ck_grpc_name - "NOT_FOUND" for 5; "UNKNOWN" for numbers that gRPC does not define */
const char *ck_grpc_name(int grpc);

enum ck_grpc { /* google.rpc.Code */
	CK_GRPC_OK = 0,
	CK_GRPC_CANCELLED = 1,
	CK_GRPC_UNKNOWN = 2,
	CK_GRPC_INVALID_ARGUMENT = 3,
	CK_GRPC_DEADLINE_EXCEEDED = 4,
	CK_GRPC_NOT_FOUND = 5,
	CK_GRPC_ALREADY_EXISTS = 6,
	CK_GRPC_PERMISSION_DENIED = 7,
	CK_GRPC_RESOURCE_EXHAUSTED = 8,
	CK_GRPC_FAILED_PRECONDITION = 9,
	CK_GRPC_ABORTED = 10,
	CK_GRPC_OUT_OF_RANGE = 11,
	CK_GRPC_UNIMPLEMENTED = 12,
	CK_GRPC_INTERNAL = 13,
	CK_GRPC_UNAVAILABLE = 14,
	CK_GRPC_DATA_LOSS = 15,
	CK_GRPC_UNAUTHENTICATED = 16,
};
#endif
