/* SPDX-License-Identifier: Apache-2.0 */
/* The key file in any bytes: a key of exactly 32 bytes that are not all the same, or none. */
#include <stdlib.h>
#include <string.h>

#include "cache/store/store-int.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_digest_key key, again;
	bool good = ck_state_dir_parse_key(data, size, &key);
	bool constant = true;

	for (size_t i = 1; i < size; i++)
		constant = constant && data[i] == data[0];
	if (good != (size == CK_KEY_BYTES && !constant))
		abort();
	if (good && (memcmp(key.bytes, data, size) || !ck_state_dir_parse_key(data, size, &again) ||
		     memcmp(key.id, again.id, sizeof(key.id))))
		abort();
	return 0;
}
