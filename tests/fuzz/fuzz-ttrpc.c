/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a plugin, to a runtime that has made some calls: what is told and what is answered
 * does not depend on how they were cut, texts are fit to be shown, each of our calls is answered
 * once at most, and what goes out is whole. Seeds: Go plugins' side of their lives, and (mux/) the
 * other side, which a confused peer might send back.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/wire/ttrpc.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/base/wire.h"
#include "tests/fuzz/fuzz.h"

#define CALLS 40 /* a recorded life has 30 */

struct end {
	struct ck_ttrpc *ttrpc;
	uint64_t told;
	uint32_t last_request;
	unsigned owed, calls;
	bool answered[CALLS];
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static uint64_t mix(uint64_t digest, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		digest = (digest ^ ((const unsigned char *)p)[i]) * UINT64_C(1099511628211);
	/* where one ends and the next begins counts, too */
	return (digest ^ n) * UINT64_C(1099511628211);
}

static void check_text(const char *text)
{
	check(strlen(text) <= CK_TEXT_MAX);
	for (uint32_t c; *text;) {
		size_t n = ck_utf8_next(text, &c);
		check(n && !ck_utf8_unsafe(c));
		text += n;
	}
}

static void on_answered(uint32_t call, bool known, const struct ck_ttrpc_answer *answer,
			void *userdata)
{
	struct end *end = userdata;
	check_text(answer->message);
	check(!answer->code || !answer->len);
	check(answer->code || !*answer->message);
	if (known) {
		check(call % 2 == 1 && call / 2 < end->calls && call != 5 &&
		      !end->answered[call / 2]);
		end->answered[call / 2] = true;
	}
	end->told = mix(end->told, &call, sizeof(call));
	end->told = mix(end->told, &known, sizeof(known));
	end->told = mix(end->told, &answer->code, sizeof(answer->code));
	end->told = mix(end->told, answer->message, strlen(answer->message));
	end->told = mix(end->told, answer->payload, answer->len);
	/* as StateChange goes out then */
	if (answer->code == CK_GRPC_UNIMPLEMENTED && end->calls < CALLS) {
		check(ck_ttrpc_call(end->ttrpc, "s", "again", "x", 1, 0, &call, NULL) == 0);
		check(call == 2 * end->calls++ + 1);
	}
}

static void on_requested(const struct ck_ttrpc_request *request, void *userdata)
{
	struct end *end = userdata;
	check_text(request->service);
	check_text(request->method);
	check(request->stream % 2 == 1 && request->stream > end->last_request);
	end->last_request = request->stream;
	end->told = mix(end->told, &request->stream, sizeof(request->stream));
	end->told = mix(end->told, request->service, strlen(request->service));
	end->told = mix(end->told, request->method, strlen(request->method));
	end->told = mix(end->told, request->payload, request->len);
	if (request->len % 3 == 0)
		check(ck_ttrpc_answer(end->ttrpc, request->stream, 0, NULL, request->payload,
				      request->len) == 0);
	else if (request->len % 3 == 1)
		check(ck_ttrpc_answer(end->ttrpc, request->stream, 2, request->method, NULL, 0) ==
		      0);
	else
		check(++end->owed <= CK_TTRPC_CALLS_MAX);
}

static const struct ck_ttrpc_ops ops = { on_answered, on_requested };

/* ---- what goes out --------------------------------------------------------------------------- */

struct out {
	struct ck_bytes bytes[2];
};

static int on_out(uint32_t conn, const unsigned char *p, size_t n, void *userdata,
		  struct ck_error *err)
{
	struct out *out = userdata;
	(void)err;
	check(ck_bytes_add(&out->bytes[conn - 1], p, n) == 0);
	return 0;
}

/* whole messages of one type, with envelopes that can be read */
static void check_messages(const struct ck_bytes *bytes, unsigned type)
{
	for (size_t at = 0; at < bytes->len;) {
		const unsigned char *p = bytes->p + at;
		check(bytes->len - at >= 10 && p[8] == type && p[9] == 0);
		size_t len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
		check(len <= CK_TTRPC_MAX && len <= bytes->len - at - 10);
		struct ck_wire wire = ck_wire_begin(p + 10, len);
		struct ck_wire_field field;
		int r;
		while ((r = ck_wire_next(&wire, &field, NULL)) > 0)
			check(field.number >= 1 && field.number <= 4);
		check(r == 0);
		at += 10 + len;
	}
}

static void check_out(struct end *end)
{
	struct ck_mux mux = { .header_len = 0 };
	struct out out = { .bytes = { { 0 } } };
	size_t n;
	const unsigned char *p = ck_ttrpc_out(end->ttrpc, &n);
	check(ck_mux_feed(&mux, p, n, on_out, &out, NULL) == 0 && !mux.header_len);
	check_messages(&out.bytes[0], 1);
	check_messages(&out.bytes[1], 2);
	end->told = mix(end->told, p, n);
	ck_bytes_free(&out.bytes[0]);
	ck_bytes_free(&out.bytes[1]);
	ck_mux_fini(&mux);
}

static uint64_t life(const uint8_t *data, size_t size, size_t piece)
{
	struct end end = { .calls = 0 };
	int r = 0;
	uint32_t call;
	end.ttrpc = ck_ttrpc_new(&ops, &end);
	check(end.ttrpc != NULL);
	while (end.calls < CALLS / 2) {
		check(ck_ttrpc_call(end.ttrpc, "service", "method", data, size % 100, end.calls,
				    &call, NULL) == 0);
		check(call == 2 * end.calls++ + 1);
	}
	ck_ttrpc_forget(end.ttrpc, 5);
	for (size_t at = 0; at < size && r == 0; at += piece)
		r = ck_ttrpc_feed(end.ttrpc, data + at, size - at < piece ? size - at : piece,
				  NULL);
	check(r == 0 || r == -CK_EMALFORMED);
	check_out(&end);
	ck_ttrpc_free(end.ttrpc);
	return mix(end.told, &r, sizeof(r));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t whole = life(data, size, SIZE_MAX / 2);
	check(life(data, size, 1) == whole && life(data, size, 13) == whole);
	return 0;
}
