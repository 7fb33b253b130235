/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts messages together from a connection's bytes, and reads and writes the two envelopes. An
 * incoming message is held once; one that is too long is skipped and not held at all. A peer that
 * sends calls and does not read the answers is disconnected.
 */
#include <stdio.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/base/wire.h"
#include "hooks/wire/ttrpc.h"

#define HEAD        10u
#define REQUEST     1u /* types of messages; 3 is streamed data, which NRI does not use */
#define RESPONSE    2u
#define CONNECTIONS 2u
#define TEXT        (CK_TEXT_MAX + 1) /* with its NUL */

enum { SERVICE = 1, METHOD = 2, PAYLOAD = 3, TIMEOUT = 4 };                     /* of a request */
enum { STATUS = 1, RESPONSE_PAYLOAD = 2, STATUS_CODE = 1, STATUS_MESSAGE = 2 }; /* of a response */

struct message { /* an incoming one */
	unsigned char head[HEAD];
	unsigned head_len;
	uint32_t len, stream; /* once the head is complete */
	unsigned type;
	uint32_t left;        /* of len */
	struct ck_bytes body; /* empty while the message is skipped */
};

struct ck_ttrpc {
	const struct ck_ttrpc_ops *ops;
	void *userdata;
	struct ck_mux mux;
	struct message in[CONNECTIONS];

	uint32_t call_next; /* odd and ascending, as ttrpc requires */
	uint32_t *calls;    /* our calls that wait for an answer */
	size_t calls_n, calls_room;

	uint32_t request_last;                 /* the peer's numbers must ascend as well */
	uint32_t requests[CK_TTRPC_CALLS_MAX]; /* the peer's calls without an answer */
	size_t requests_n;
};

struct ck_ttrpc *ck_ttrpc_new(const struct ck_ttrpc_ops *ops, void *userdata)
{
	struct ck_ttrpc *ttrpc = CK_NEW(struct ck_ttrpc);
	if (!ttrpc)
		return NULL;
	ttrpc->ops = ops;
	ttrpc->userdata = userdata;
	ttrpc->call_next = 1;
	return ttrpc;
}

void ck_ttrpc_free(struct ck_ttrpc *ttrpc)
{
	if (!ttrpc)
		return;
	for (size_t i = 0; i < CONNECTIONS; i++)
		ck_bytes_free(&ttrpc->in[i].body);
	ck_mux_fini(&ttrpc->mux);
	free(ttrpc->calls);
	free(ttrpc);
}

const unsigned char *ck_ttrpc_out(const struct ck_ttrpc *ttrpc, size_t *ret_len)
{
	return ck_mux_out(&ttrpc->mux, ret_len);
}

void ck_ttrpc_sent(struct ck_ttrpc *ttrpc, size_t n)
{
	ck_mux_sent(&ttrpc->mux, n);
}

/* ---- helpers --------------------------------------------------------------------------------- */

/* does not keep the order */
static bool number_drop(uint32_t *list, size_t *n, uint32_t number)
{
	for (size_t i = 0; i < *n; i++) {
		if (list[i] == number) {
			list[i] = list[--*n];
			return true;
		}
	}
	return false;
}

/* A peer's string, cleaned so that it can be shown and sent back. A NUL is replaced, or
 * "Configure\0x" would be taken for Configure. */
static void text_take(const unsigned char *p, size_t n, char text[TEXT])
{
	/* longer than TEXT, so that a character cut at its end does not reach @text */
	char copy[TEXT + 8];
	n = n < sizeof(copy) ? n : sizeof(copy) - 1;
	for (size_t i = 0; i < n; i++)
		copy[i] = p[i] ? (char)p[i] : '?';
	copy[n] = '\0';
	ck_utf8_clean(copy, false, text, TEXT);
}

static void head_write(unsigned char head[HEAD], size_t len, uint32_t stream, unsigned type)
{
	for (int i = 3; i >= 0; i--, len >>= 8, stream >>= 8) {
		head[i] = (unsigned char)len;
		head[4 + i] = (unsigned char)stream;
	}
	head[8] = (unsigned char)type;
	head[9] = 0; /* flags: none for a unary call */
}

static int send(struct ck_ttrpc *ttrpc, enum ck_mux_conn conn, uint32_t stream, unsigned type,
		const struct ck_bytes *envelope)
{
	unsigned char head[HEAD];
	head_write(head, envelope->len, stream, type);
	return ck_mux_send(&ttrpc->mux, conn, head, HEAD, envelope->p, envelope->len);
}

/* ---- our calls ------------------------------------------------------------------------------- */

static int call_room(struct ck_ttrpc *ttrpc)
{
	if (ttrpc->calls_n < ttrpc->calls_room)
		return 0;
	size_t room = ttrpc->calls_room ? 2 * ttrpc->calls_room : 4;
	uint32_t *calls = ck_realloc(ttrpc->calls, room * sizeof(*calls));
	if (!calls)
		return -CK_ENOMEM;
	ttrpc->calls = calls;
	ttrpc->calls_room = room;
	return 0;
}

int ck_ttrpc_call(struct ck_ttrpc *ttrpc, const char *service, const char *method,
		  const void *payload, size_t len, uint64_t timeout, uint32_t *ret_call,
		  struct ck_error *err)
{
	CK_AUTO_BYTES struct ck_bytes envelope = { 0 };
	int r = 0;
	if (ttrpc->call_next > UINT32_MAX - 2)
		return ck_fail(err, CK_ECLOSED, "%s: this connection has used up its numbers",
			       method);
	if (len <= CK_TTRPC_MAX) {
		r = ck_bytes_field_text(&envelope, SERVICE, service);
		r = r < 0 ? r : ck_bytes_field_text(&envelope, METHOD, method);
		r = r < 0 || !len ? r : ck_bytes_field(&envelope, PAYLOAD, payload, len);
		r = r < 0 ? r
			  : ck_bytes_field_number(&envelope, TIMEOUT,
						  timeout < INT64_MAX ? timeout : INT64_MAX);
	}
	if (r == 0 && (len > CK_TTRPC_MAX || envelope.len > CK_TTRPC_MAX))
		return ck_fail(err, CK_ETOOBIG, "%s: a message of %zu bytes; the limit is %u",
			       method, len, CK_TTRPC_MAX);
	r = r < 0 ? r : call_room(ttrpc);
	r = r < 0 ? r : send(ttrpc, CK_MUX_PLUGIN, ttrpc->call_next, REQUEST, &envelope);
	if (r < 0)
		return ck_nomem(err);
	*ret_call = ttrpc->calls[ttrpc->calls_n++] = ttrpc->call_next;
	ttrpc->call_next += 2;
	return 0;
}

void ck_ttrpc_forget(struct ck_ttrpc *ttrpc, uint32_t call)
{
	number_drop(ttrpc->calls, &ttrpc->calls_n, call);
}

/* two statuses in one answer are merged, as in protobuf */
static int status_read(struct ck_wire wire, struct ck_ttrpc_answer *answer, char text[TEXT],
		       struct ck_error *err)
{
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number == STATUS_CODE && field.type == CK_WIRE_VARINT)
			answer->code = (int32_t)(uint32_t)field.value;
		else if (field.number == STATUS_MESSAGE && field.type == CK_WIRE_BYTES)
			text_take(field.data, field.len, text);
	}
	return r;
}

static int response_read(const struct ck_bytes *body, struct ck_ttrpc_answer *answer,
			 char text[TEXT], struct ck_error *err)
{
	struct ck_wire wire = ck_wire_begin(body->p, body->len);
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.type != CK_WIRE_BYTES)
			continue;
		if (field.number == STATUS)
			r = status_read(ck_wire_inside(&wire, &field), answer, text, err);
		if (r < 0)
			return r;
		if (field.number == RESPONSE_PAYLOAD) {
			answer->payload = field.data;
			answer->len = field.len;
		}
	}
	return r;
}

static int response(struct ck_ttrpc *ttrpc, const struct message *message)
{
	char text[TEXT] = "";
	struct ck_ttrpc_answer answer = { .message = text, .payload = "" };
	struct ck_error why = { 0 };
	if (message->len > CK_TTRPC_MAX) {
		answer.code = CK_GRPC_RESOURCE_EXHAUSTED;
		snprintf(text, sizeof(text), "a response of %zu bytes; the limit is %u",
			 (size_t)message->len, CK_TTRPC_MAX);
	} else if (response_read(&message->body, &answer, text, &why) < 0) {
		answer.code = CK_GRPC_INTERNAL;
		snprintf(text, sizeof(text), "a response that cannot be read: %.100s", why.text);
	}
	if (answer.code) {
		answer.payload = "";
		answer.len = 0;
	} else {
		text[0] = '\0';
	}
	bool known = number_drop(ttrpc->calls, &ttrpc->calls_n, message->stream);
	ttrpc->ops->answered(message->stream, known, &answer, ttrpc->userdata);
	return 0;
}

/* ---- the peer's calls ------------------------------------------------------------------------ */

static int error_send(struct ck_ttrpc *ttrpc, uint32_t stream, int code, const char *message)
{
	CK_AUTO_BYTES struct ck_bytes envelope = { 0 };
	CK_AUTO_BYTES struct ck_bytes status = { 0 };
	char text[TEXT];
	ck_utf8_clean(message ? message : "", false, text, sizeof(text));
	/* a negative number is extended to 64 bits: that is how an int32 is written */
	int r = ck_bytes_field_number(&status, STATUS_CODE, (uint64_t)(int64_t)code);
	r = r < 0 ? r : ck_bytes_field_text(&status, STATUS_MESSAGE, text);
	r = r < 0 ? r : ck_bytes_field(&envelope, STATUS, status.p, status.len);
	return r < 0 ? r : send(ttrpc, CK_MUX_RUNTIME, stream, RESPONSE, &envelope);
}

static int payload_send(struct ck_ttrpc *ttrpc, uint32_t stream, const void *payload, size_t len)
{
	CK_AUTO_BYTES struct ck_bytes envelope = { 0 };
	int r = 0;
	if (len && len <= CK_TTRPC_MAX)
		r = ck_bytes_field(&envelope, RESPONSE_PAYLOAD, payload, len);
	if (len > CK_TTRPC_MAX || envelope.len > CK_TTRPC_MAX)
		return error_send(ttrpc, stream, CK_GRPC_RESOURCE_EXHAUSTED,
				  "the response is over 4 MiB");
	return r < 0 ? r : send(ttrpc, CK_MUX_RUNTIME, stream, RESPONSE, &envelope);
}

int ck_ttrpc_answer(struct ck_ttrpc *ttrpc, uint32_t stream, int code, const char *message,
		    const void *payload, size_t len)
{
	if (!number_drop(ttrpc->requests, &ttrpc->requests_n, stream))
		return -CK_EINVAL;
	int r = code ? error_send(ttrpc, stream, code, message)
		     : payload_send(ttrpc, stream, payload, len);
	if (r < 0)
		/* the answer is still due; its place in the list is free */
		ttrpc->requests[ttrpc->requests_n++] = stream;
	return r;
}

static int request_read(const struct ck_bytes *body, struct ck_ttrpc_request *request,
			char service[TEXT], char method[TEXT], struct ck_error *err)
{
	struct ck_wire wire = ck_wire_begin(body->p, body->len);
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.type != CK_WIRE_BYTES)
			continue;
		if (field.number == SERVICE)
			text_take(field.data, field.len, service);
		else if (field.number == METHOD)
			text_take(field.data, field.len, method);
		else if (field.number == PAYLOAD) {
			request->payload = field.data;
			request->len = field.len;
		}
	}
	return r;
}

static int request(struct ck_ttrpc *ttrpc, const struct message *message)
{
	char service[TEXT] = "", method[TEXT] = "";
	struct ck_ttrpc_request request = {
		.stream = message->stream, .service = service, .method = method, .payload = ""
	};
	struct ck_error why = { 0 };
	if (message->stream % 2 == 0 || message->stream <= ttrpc->request_last)
		return error_send(ttrpc, message->stream, CK_GRPC_INVALID_ARGUMENT,
				  "stream ids are odd and ascend");
	ttrpc->request_last = message->stream;
	if (message->len > CK_TTRPC_MAX)
		return error_send(ttrpc, message->stream, CK_GRPC_RESOURCE_EXHAUSTED,
				  "the request is over 4 MiB");
	if (request_read(&message->body, &request, service, method, &why) < 0)
		return error_send(ttrpc, message->stream, CK_GRPC_INVALID_ARGUMENT, why.text);
	if (ttrpc->requests_n == CK_TTRPC_CALLS_MAX)
		return error_send(ttrpc, message->stream, CK_GRPC_RESOURCE_EXHAUSTED,
				  "too many calls wait for an answer");
	ttrpc->requests[ttrpc->requests_n++] = message->stream;
	ttrpc->ops->requested(&request, ttrpc->userdata);
	return 0;
}

/* ---- bytes in -------------------------------------------------------------------------------- */

static uint32_t word(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static size_t head_feed(struct message *message, const unsigned char *p, size_t n)
{
	size_t used = HEAD - message->head_len;
	used = used < n ? used : n;
	memcpy(message->head + message->head_len, p, used);
	message->head_len += (unsigned)used;
	if (message->head_len == HEAD) {
		message->len = message->left = word(message->head);
		message->stream = word(message->head + 4);
		message->type = message->head[8]; /* flags mean nothing in a unary call */
	}
	return used;
}

/* other types are of later versions: they are not answered, as in Go */
static int message_done(struct ck_ttrpc *ttrpc, uint32_t conn, struct message *message,
			struct ck_error *err)
{
	size_t waiting;
	int r = 0;
	if (conn == CK_MUX_PLUGIN && message->type == RESPONSE)
		r = response(ttrpc, message);
	if (conn == CK_MUX_RUNTIME && message->type == REQUEST) {
		ck_mux_out(&ttrpc->mux, &waiting);
		if (waiting > CK_TTRPC_OUT_MAX)
			return ck_fail(err, CK_EMALFORMED,
				       "it calls and reads no answers: %zu bytes wait", waiting);
		r = request(ttrpc, message);
	}
	message->head_len = 0;
	message->body.len = 0;
	if (message->body.room > CK_SOCKET_READ) /* long ones are rare */
		ck_bytes_free(&message->body);
	return r < 0 ? ck_nomem(err) : 0;
}

static int take(uint32_t conn, const unsigned char *p, size_t n, void *userdata,
		struct ck_error *err)
{
	struct ck_ttrpc *ttrpc = userdata;
	struct message *message = &ttrpc->in[conn == CK_MUX_RUNTIME];
	while (n) {
		size_t used;
		if (message->head_len < HEAD) {
			used = head_feed(message, p, n);
		} else {
			used = n < message->left ? n : message->left;
			if (message->len <= CK_TTRPC_MAX &&
			    ck_bytes_add(&message->body, p, used) < 0)
				return ck_nomem(err);
			message->left -= (uint32_t)used;
		}
		p += used;
		n -= used;
		if (message->head_len == HEAD && !message->left) {
			int r = message_done(ttrpc, conn, message, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int ck_ttrpc_feed(struct ck_ttrpc *ttrpc, const void *p, size_t n, struct ck_error *err)
{
	return ck_mux_feed(&ttrpc->mux, p, n, take, ttrpc, err);
}
