/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a merged adjustment, applied to a request: they are refused with a reason, or the
 * result is a request that can be read. The same bytes as a request, with an empty adjustment: the
 * request is refused, or it keeps its meaning.
 */
#include "cache/request/cri.pb-c.h"
#include "src/base/arena.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/nri/apply.h"
#include "tests/fuzz/fuzz.h"

static void check(int r, const struct ck_bytes *out, const struct ck_error *err)
{
	struct ck_arena arena;
	Ck__Cri__CreateContainerRequest *request;
	if (r < 0) {
		if (err->code != -r || !*err->text || out->len)
			abort();
		return;
	}
	ck_arena_init(&arena, CK_APPLY_MAX);
	if (ck_unpack(&arena, &ck__cri__create_container_request__descriptor, out->p, out->len,
		      &request, NULL) < 0 ||
	    !request->config)
		abort();
	ck_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char request[] = "\x12\x0f"
				      "\x32\x06\x0a\x01"
				      "A"
				      "\x12\x01"
				      "1"
				      "\x3a\x05\x0a\x03"
				      "/m";
	CK_AUTO_BYTES struct ck_bytes first = { 0 }, second = { 0 }, third = { 0 };
	struct ck_error err = { 0 };
	check(ck_apply_adjustment(request, sizeof(request) - 2, data, size, NULL, 0, &first, &err),
	      &first, &err);
	check(ck_apply_adjustment(data, size, NULL, 0, NULL, 0, &second, &err), &second, &err);
	int r = ck_apply_update(data, size, data, size, &third, &err);
	if (r < 0 && (err.code != -r || third.len))
		abort();
	return 0;
}
