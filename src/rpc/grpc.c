/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <stdio.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/grpc.h"

#define ANSWER_ROOM 512u /* of a block of trailers: for all but the text and the details */
#define BASE64      sodium_base64_VARIANT_ORIGINAL_NO_PADDING

/* ---- messages -------------------------------------------------------------------------------- */

static size_t at_most(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int head_read(struct ck_grpc_reader *reader, struct ck_error *err)
{
	const unsigned char *h = reader->head;
	reader->expected = (size_t)h[1] << 24 | (size_t)h[2] << 16 | (size_t)h[3] << 8 | h[4];
	if (h[0])
		return ck_fail(err, CK_EMALFORMED, "a compressed message, which was not agreed on");
	if (reader->expected > reader->max)
		return ck_fail(err, CK_ETOOBIG, "a message of %zu bytes; the limit is %zu",
			       reader->expected, reader->max);
	return 0;
}

int ck_grpc_read(struct ck_grpc_reader *reader, const void *bytes, size_t n, size_t *ret_used,
		 struct ck_error *err)
{
	size_t used = 0;
	if (!reader->head_len)
		reader->message.len = 0;
	if (reader->head_len < CK_GRPC_HEAD) {
		used = at_most(n, CK_GRPC_HEAD - reader->head_len);
		if (used)
			memcpy(reader->head + reader->head_len, bytes, used);
		reader->head_len += (unsigned)used;
		if (reader->head_len == CK_GRPC_HEAD) {
			int r = head_read(reader, err);
			if (r < 0)
				return r;
		}
	}
	if (reader->head_len == CK_GRPC_HEAD) {
		size_t part = at_most(n - used, reader->expected - reader->message.len);
		if (ck_bytes_add(&reader->message, (const unsigned char *)bytes + used, part) < 0)
			return ck_nomem(err);
		used += part;
	}
	*ret_used = used;
	if (reader->head_len < CK_GRPC_HEAD || reader->message.len < reader->expected)
		return 0;
	reader->head_len = 0;
	return 1;
}

bool ck_grpc_reader_inside(const struct ck_grpc_reader *reader)
{
	return reader->head_len != 0;
}

void ck_grpc_reader_fini(struct ck_grpc_reader *reader)
{
	ck_bytes_free(&reader->message);
}

void ck_grpc_head(unsigned char head[CK_GRPC_HEAD], size_t len)
{
	head[0] = 0;
	for (int i = 4; i > 0; i--, len >>= 8)
		head[i] = (unsigned char)len;
}

int ck_grpc_send(struct ck_h2_stream *stream, const void *message, size_t len)
{
	unsigned char head[CK_GRPC_HEAD];
	ck_grpc_head(head, len);
	int r = ck_h2_stream_send(stream, head, sizeof(head));
	return r < 0 ? r : ck_h2_stream_send(stream, message, len);
}

/* ---- timeouts -------------------------------------------------------------------------------- */

static const struct unit {
	char letter;
	uint64_t ns;
} units[] = { { 'n', 1 },
	      { 'u', 1000 },
	      { 'm', CK_NS_PER_MS },
	      { 'S', CK_NS_PER_S },
	      { 'M', 60 * CK_NS_PER_S },
	      { 'H', 3600 * CK_NS_PER_S } };

bool ck_grpc_timeout_parse(const char *s, size_t len, uint64_t *ret_ns)
{
	uint64_t value = 0;
	if (len < 2 || len > 9)
		return false;
	for (size_t i = 0; i + 1 < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(s[i] - '0');
	}
	for (size_t u = 0; u < CK_COUNT(units); u++) {
		if (units[u].letter != s[len - 1])
			continue;
		*ret_ns = value > CK_DURATION_MAX / units[u].ns ? CK_DURATION_MAX
								: value * units[u].ns;
		return true;
	}
	return false;
}

const char *ck_grpc_timeout_print(uint64_t ns, char buf[CK_GRPC_TIMEOUT])
{
	size_t u = 0;
	ns = ns < CK_DURATION_MAX ? ns : CK_DURATION_MAX;
	while (u + 1 < CK_COUNT(units) && (ns + units[u].ns - 1) / units[u].ns > 99999999)
		u++;
	snprintf(buf, CK_GRPC_TIMEOUT, "%u%c", (unsigned)((ns + units[u].ns - 1) / units[u].ns),
		 units[u].letter);
	return buf;
}

/* ---- statuses -------------------------------------------------------------------------------- */

const struct ck_h2_header *ck_h2_find(const struct ck_h2_header *headers, size_t n,
				      const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (headers[i].name_len == len && !memcmp(headers[i].name, name, len))
			return &headers[i];
	return NULL;
}

bool ck_h2_is(const struct ck_h2_header *header, const char *value)
{
	return header && header->value_len == strlen(value) &&
	       !memcmp(header->value, value, header->value_len);
}

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Anything that is not a percent code stays as it is. A NUL would end the text and becomes a
 * question mark. */
static char *percent_decode(const char *s, size_t len)
{
	char *text = ck_alloc(len + 1), *p = text;
	for (size_t i = 0; text && i < len; i++) {
		bool code = s[i] == '%' && i + 2 < len && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0;
		char c = code ? (char)(unsigned char)(hex(s[i + 1]) * 16 + hex(s[i + 2])) : s[i];
		*p++ = c ? c : '?';
		i += code ? 2 : 0;
	}
	return text;
}

static int status_code(const struct ck_h2_header *header)
{
	int code = 0;
	if (!header->value_len || header->value_len > 2)
		return CK_GRPC_UNKNOWN;
	for (size_t i = 0; i < header->value_len; i++) {
		if (header->value[i] < '0' || header->value[i] > '9')
			return CK_GRPC_UNKNOWN;
		code = code * 10 + (header->value[i] - '0');
	}
	return code <= CK_GRPC_UNAUTHENTICATED ? code : CK_GRPC_UNKNOWN;
}

int ck_grpc_status_read(const struct ck_h2_header *headers, size_t n, struct ck_grpc_status *status)
{
	const struct ck_h2_header *code = ck_h2_find(headers, n, "grpc-status");
	const struct ck_h2_header *message = ck_h2_find(headers, n, "grpc-message");
	const struct ck_h2_header *details = ck_h2_find(headers, n, "grpc-status-details-bin");
	if (!code)
		return 0;
	struct ck_grpc_status read = { .code = status_code(code) };
	if (message && message->value_len) {
		read.message =
			percent_decode(message->value, at_most(message->value_len, CK_STATUS_MAX));
		if (!read.message)
			return -CK_ENOMEM;
	}
	if (details && details->value_len && details->value_len <= CK_STATUS_MAX) {
		size_t len = details->value_len;
		/* gRPC writes no padding, but must read it */
		while (len && details->value[len - 1] == '=')
			len--;
		read.details = ck_alloc(len);
		if (!read.details) {
			ck_grpc_status_fini(&read);
			return -CK_ENOMEM;
		}
		if (sodium_base642bin(read.details, len, details->value, len, NULL,
				      &read.details_len, NULL, BASE64) ||
		    !read.details_len) {
			free(read.details); /* unreadable; the code and the text matter more */
			read.details = NULL;
			read.details_len = 0;
		}
	}
	*status = read;
	return 1;
}

void ck_grpc_status_fini(struct ck_grpc_status *status)
{
	free(status->message);
	free(status->details);
	*status = (struct ck_grpc_status){ 0 };
}

int ck_grpc_http(const struct ck_h2_header *status)
{
	int http = 0;
	for (size_t i = 0; i < status->value_len && status->value_len == 3; i++) {
		if (status->value[i] < '0' || status->value[i] > '9')
			return 502;
		http = http * 10 + (status->value[i] - '0');
	}
	return http ? http : 502;
}

int ck_grpc_from_http(int http)
{
	switch (http) {
	case 400:
		return CK_GRPC_INTERNAL;
	case 401:
		return CK_GRPC_UNAUTHENTICATED;
	case 403:
		return CK_GRPC_PERMISSION_DENIED;
	case 404:
		return CK_GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return CK_GRPC_UNAVAILABLE;
	}
	return CK_GRPC_UNKNOWN;
}

/* the text is cut at @max, between two characters of UTF-8 */
static int percent_encode(struct ck_bytes *out, const char *text, size_t max)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t whole = 0; /* of out: characters that are complete */
	for (const char *s = text; *s; s++) {
		unsigned char c = (unsigned char)*s;
		bool plain = c >= ' ' && c <= '~' && c != '%';
		if ((c & 0xc0) != 0x80)
			whole = out->len;
		if (out->len + 3 > max) {
			out->len = whole;
			return 0;
		}
		const char code[] = { '%', digits[c >> 4], digits[c & 15] };
		int r = plain ? ck_bytes_add(out, s, 1) : ck_bytes_add(out, code, sizeof(code));
		if (r < 0)
			return r;
	}
	return 0;
}

static int details_encode(struct ck_bytes *out, const void *details, size_t len, size_t max)
{
	size_t size = len / 3 * 4 + 5; /* with a NUL, which libsodium wants room for */
	if (!len || len > max || size > max)
		return 0; /* details are left out, not cut */
	int r = ck_bytes_room(out, size);
	if (r < 0)
		return r;
	sodium_bin2base64((char *)out->p, out->room, details, len, BASE64);
	out->len = strlen((char *)out->p);
	return 0;
}

static const struct ck_h2_header response[] = {
	CK_H2_HEADER(":status", "200"),
	CK_H2_HEADER("content-type", "application/grpc"),
};

int ck_grpc_begin(struct ck_h2_stream *stream)
{
	return ck_h2_stream_headers(stream, response, CK_COUNT(response), false);
}

int ck_grpc_answer(struct ck_h2_stream *stream, bool begun, int code, const char *message,
		   const void *details, size_t details_len)
{
	size_t room = CK_HEADER_LIST_MAX - ANSWER_ROOM, n = 0;
	struct ck_h2_header headers[5];
	struct ck_bytes text = { 0 }, base64 = { 0 };
	char number[12];
	if (!begun) {
		memcpy(headers, response, sizeof(response));
		n = CK_COUNT(response);
	}
	int len = snprintf(number, sizeof(number), "%d", code);
	headers[n++] = (struct ck_h2_header){ "grpc-status", number, sizeof("grpc-status") - 1,
					      (size_t)len };
	int r = details_encode(&base64, details, details_len, room / 2);
	if (r == 0 && message)
		r = percent_encode(&text, message, room - base64.len);
	if (r == 0 && text.len)
		headers[n++] = (struct ck_h2_header){ "grpc-message", (char *)text.p,
						      sizeof("grpc-message") - 1, text.len };
	if (r == 0 && base64.len)
		headers[n++] =
			(struct ck_h2_header){ "grpc-status-details-bin", (char *)base64.p,
					       sizeof("grpc-status-details-bin") - 1, base64.len };
	if (r == 0)
		r = ck_h2_stream_headers(stream, headers, n, true);
	ck_bytes_free(&text);
	ck_bytes_free(&base64);
	return r;
}
