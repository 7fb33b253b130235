/* SPDX-License-Identifier: Apache-2.0 */
/* A request or an answer in any bytes: refused, or one that says only what its text says. */
#include <stdlib.h>
#include <string.h>

#include "cache/admin-request.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_admin_request request = { .name = "" };
	struct ck_admin_answer answer;
	struct ck_error err;

	if (ck_admin_request_parse((const char *)data, size, &request, &err) >= 0) {
		if (!request.entry ||
		    (request.verb != CK_ADMIN_EVICT && request.verb != CK_ADMIN_RELEASE) ||
		    *request.name)
			abort();
	} else if (err.code != CK_EMALFORMED || !memchr(err.text, '\0', sizeof(err.text))) {
		abort();
	}
	if (ck_admin_answer_parse((const char *)data, size, &answer, &err) >= 0 &&
	    (!*answer.text || strchr(answer.text, '\n')))
		abort();
	return 0;
}
