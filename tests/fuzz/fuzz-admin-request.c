/* SPDX-License-Identifier: Apache-2.0 */
/* A wish or an answer in any bytes: refused, or one that says only what its text says. */
#include <stdlib.h>
#include <string.h>

#include "cache/admin-request.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_wish wish;
	struct ck_wish_answer answer;
	struct ck_error err;

	if (ck_wish_parse((const char *)data, size, &wish, &err) >= 0) {
		if (!wish.entry || (wish.verb != CK_WISH_EVICT && wish.verb != CK_WISH_RELEASE) ||
		    *wish.name)
			abort();
	} else if (err.code != CK_EMALFORMED || !memchr(err.text, '\0', sizeof(err.text))) {
		abort();
	}
	if (ck_wish_answer_parse((const char *)data, size, &answer, &err) >= 0 &&
	    (!*answer.text || strchr(answer.text, '\n')))
		abort();
	return 0;
}
