/* SPDX-License-Identifier: Apache-2.0 */
/* A path of any bytes finds a call of the table only if it is the path of that call. */
#include <stdlib.h>
#include <string.h>

#include "src/cri/calls.h"
#include "tests/fuzz/fuzz.h"

static bool begins(const uint8_t *data, size_t size, const char *text)
{
	return size >= strlen(text) && !memcmp(data, text, strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const services[] = {
		"/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/",
		"/runtime.v1alpha2.RuntimeService/", "/runtime.v1alpha2.ImageService/",
	};
	const struct ck_cri_method *method = ck_cri_method_find((const char *)data, size);
	bool known = false;

	for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++) {
		size_t n = strlen(services[i]);
		if (!begins(data, size, services[i]))
			continue;
		for (size_t k = 0; ck_cri_method_at(k); k++)
			known |= size - n == strlen(ck_cri_method_at(k)->rpc) &&
				 begins(data + n, size - n, ck_cri_method_at(k)->rpc);
		if (method &&
		    (size - n != strlen(method->rpc) || !begins(data + n, size - n, method->rpc)))
			abort();
	}
	if (method && !known)
		abort();
	return 0;
}
