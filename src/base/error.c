/* SPDX-License-Identifier: Apache-2.0 */
/* Filling struct ck_error. It has a fixed size, so this also works without memory. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"

CK_PRINTF(4, 0)
static void error_vset(struct ck_error *err, int code, int sys, const char *fmt, va_list ap)
{
	err->code = code;
	err->sys = sys;
	err->sub = 0;
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
}

int ck_fail(struct ck_error *err, int code, const char *fmt, ...)
{
	if (err) {
		va_list ap;
		va_start(ap, fmt);
		error_vset(err, code, 0, fmt, ap);
		va_end(ap);
	}
	return -code;
}

int ck_fail_errno(struct ck_error *err, int code, int sys, const char *fmt, ...)
{
	if (err) {
		va_list ap;
		va_start(ap, fmt);
		error_vset(err, code, sys, fmt, ap);
		va_end(ap);
		size_t n = strlen(err->text);
		const char *reason = strerrordesc_np(sys);
		snprintf(err->text + n, sizeof(err->text) - n, ": %s",
			 reason ? reason : "unknown error");
	}
	return -code;
}

int ck_context(struct ck_error *err, int r, const char *fmt, ...)
{
	if (err && r < 0) {
		char inner[CK_ERROR_TEXT];
		va_list ap;
		memcpy(inner, err->text, sizeof(inner));
		va_start(ap, fmt);
		int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
		if (n >= 0 && (size_t)n < sizeof(err->text))
			snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", inner);
	}
	return r;
}

const char *ck_strerror(int code)
{
	static const char *const errors[] = {
		[0] = "success",
		[CK_ENOMEM] = "out of memory",
		[CK_EINVAL] = "invalid argument",
		[CK_EMALFORMED] = "not a valid CRI request",
		[CK_ETOOBIG] = "over a limit",
		[CK_EIO] = "input or output failed",
		[CK_EFULL] = "no space left for the database",
		[CK_EDAMAGED] = "the database is damaged",
		[CK_EVERSION] = "created by a newer version",
		[CK_EOWNED] = "another process owns the state directory",
		[CK_ENOTFOUND] = "no such entry",
		[CK_ECONFLICT] =
			"the request differs from the one that created the committed resource",
		[CK_EABANDONED] = "superseded: the kubelet has moved on",
		[CK_EUNAVAILABLE] = "something this needs is not available yet",
		[CK_EDEADLINE] = "the deadline had passed",
		[CK_EPRECONDITION] = "the sandbox is being stopped",
		[CK_EFAILED] = "the creation failed",
		[CK_EREFUSED] = "a plugin refused",
		[CK_ENOLOOP] = "no event loop: call ck_cache_run_thread() or ck_cache_process()",
		[CK_EDEADLK] = "not from a callback, and not twice at once",
		[CK_EFORK] = "in a child of the process that opened the cache",
		[CK_ECLOSED] = "the cache is closing",
		[CK_ESTATE] = "the turn is not in a state for this call",
	};
	static const char *const outcomes[] = { "create it",
						"not decided yet",
						"it exists",
						"it is still being created",
						"made too late for this caller, and kept",
						"nothing of it is left in the cache" };
	size_t error = code < 0 ? -(size_t)code : (size_t)code, outcome = error - CK_CREATE;
	return error < CK_COUNT(errors)                   ? errors[error]
	       : code > 0 && outcome < CK_COUNT(outcomes) ? outcomes[outcome]
							  : "unknown error";
}

/* the text for the caller */
int ck_error_grpc(const struct ck_error *err)
{
	switch (err ? err->code : 0) {
	case 0:
		return CK_GRPC_OK;
	case CK_EMALFORMED:
	case CK_EINVAL:
		return CK_GRPC_INVALID_ARGUMENT;
	case CK_ETOOBIG:
		return CK_GRPC_RESOURCE_EXHAUSTED;
	case CK_ENOTFOUND:
		return CK_GRPC_NOT_FOUND;
	case CK_ECONFLICT:
		return CK_GRPC_ALREADY_EXISTS;
	case CK_EABANDONED:
		return CK_GRPC_ABORTED;
	case CK_EDEADLINE:
		return CK_GRPC_DEADLINE_EXCEEDED;
	case CK_EPRECONDITION:
		return CK_GRPC_FAILED_PRECONDITION;
	case CK_EFAILED:
		return err->sub ? err->sub : CK_GRPC_UNKNOWN;
	case CK_EREFUSED:
		return CK_GRPC_UNKNOWN;
	case CK_EUNAVAILABLE:
	case CK_ENOMEM:
	case CK_ECLOSED:
	case CK_EIO:
	case CK_EFULL:
		return CK_GRPC_UNAVAILABLE;
	}
	return CK_GRPC_INTERNAL;
}

const char *ck_grpc_name(int grpc)
{
	static const char *const names[] = {
		"OK",
		"CANCELLED",
		"UNKNOWN",
		"INVALID_ARGUMENT",
		"DEADLINE_EXCEEDED",
		"NOT_FOUND",
		"ALREADY_EXISTS",
		"PERMISSION_DENIED",
		"RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION",
		"ABORTED",
		"OUT_OF_RANGE",
		"UNIMPLEMENTED",
		"INTERNAL",
		"UNAVAILABLE",
		"DATA_LOSS",
		"UNAUTHENTICATED",
	};
	return grpc >= 0 && grpc < (int)(sizeof(names) / sizeof(*names)) ? names[grpc] : "UNKNOWN";
}
