/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "cache/request/redact.h"
#include "src/base/wire.h"
#include "src/base/fault.h"
#include "src/daemon/nri/describe.h"
#include "src/rpc/address.h"
#include "tests/flow/peer.h"

/* ---- protobuf, written without the allocator whose failing is tested ------------------------- */

struct out {
	unsigned char *p;
	size_t len, room;
};

static void raw(struct out *o, const void *p, size_t n)
{
	if (o->len + n > o->room) {
		o->room = 2 * (o->len + n);
		o->p = realloc(o->p, o->room);
		assert_non_null(o->p);
	}
	if (n)
		memcpy(o->p + o->len, p, n);
	o->len += n;
}

static void varint(struct out *o, uint64_t value)
{
	do {
		unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		raw(o, &byte, 1);
	} while (value >>= 7);
}

static void bytes(struct out *o, uint32_t field, const void *p, size_t n)
{
	varint(o, field << 3 | 2);
	varint(o, n);
	raw(o, p, n);
}

static void text(struct out *o, uint32_t field, const char *s)
{
	if (s[0])
		bytes(o, field, s, strlen(s));
}

static void number(struct out *o, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	varint(o, field << 3);
	varint(o, value);
}

static void done(struct out *o)
{
	free(o->p);
	*o = (struct out){ 0 };
}

static void message(struct out *o, uint32_t field, struct out *inner)
{
	bytes(o, field, inner->p, inner->len);
	done(inner);
}

static void pair(struct out *o, uint32_t field, const char *key, const char *value)
{
	struct out inner = { 0 };
	text(&inner, 1, key);
	text(&inner, 2, value);
	message(o, field, &inner);
}

static void find_text(const void *in, size_t len, uint32_t field, char *to, size_t size)
{
	struct ck_wire wire = ck_wire_begin(in, len);
	struct ck_wire_field f;
	to[0] = '\0';
	while (ck_wire_next(&wire, &f, NULL) > 0)
		if (f.number == field && f.type == CK_WIRE_BYTES)
			snprintf(to, size, "%.*s", (int)f.len, (const char *)f.data);
}

static bool find_message(const void *in, size_t len, uint32_t field, const void **ret_bytes,
			 size_t *ret_len)
{
	struct ck_wire wire = ck_wire_begin(in, len);
	struct ck_wire_field f;
	bool found = false;
	while (ck_wire_next(&wire, &f, NULL) > 0) {
		if (f.number != field || f.type != CK_WIRE_BYTES)
			continue;
		*ret_bytes = f.data;
		*ret_len = f.len;
		found = true;
	}
	return found;
}

static uint32_t find_number(const void *in, size_t len, uint32_t field)
{
	struct ck_wire wire = ck_wire_begin(in, len);
	struct ck_wire_field f;
	uint64_t value = 0;
	while (ck_wire_next(&wire, &f, NULL) > 0)
		if (f.number == field && f.type == CK_WIRE_VARINT)
			value = f.value;
	return (uint32_t)value;
}

/* ---- objects as CRI writes them -------------------------------------------------------------- */

static uint64_t state_of(const struct peer_object *o)
{
	if (o->kind == CK_SANDBOX)
		return o->condition != CK_CONDITION_READY;
	return o->condition == CK_CONDITION_READY     ? 0
	       : o->condition == CK_CONDITION_RUNNING ? 1
						      : 2;
}

static void sandbox_metadata(struct out *b, const struct peer_object *o)
{
	struct out metadata = { 0 };
	text(&metadata, 1, o->name);
	text(&metadata, 2, o->uid);
	text(&metadata, 3, o->ns);
	number(&metadata, 4, o->kind == CK_SANDBOX ? o->attempt : 0);
	message(b, 2, &metadata);
}

/* PodSandbox and PodSandboxStatus have the same numbers this far */
static void sandbox(struct out *b, uint32_t field, const struct peer_object *o, const char *padding)
{
	struct out inner = { 0 };
	text(&inner, 1, o->id);
	sandbox_metadata(&inner, o);
	number(&inner, 3, state_of(o));
	number(&inner, 4, o->created_at);
	if (padding)
		pair(&inner, 8, "padding", padding);
	message(b, field, &inner);
}

static void container(struct out *b, uint32_t field, const struct peer_object *o, bool status)
{
	struct out inner = { 0 }, metadata = { 0 };
	uint32_t labels = status ? 12 : 8, annotations = labels + 1;
	text(&metadata, 1, o->container);
	number(&metadata, 2, o->attempt);
	text(&inner, 1, o->id);
	if (!status)
		text(&inner, 2, o->sandbox);
	message(&inner, status ? 2 : 3, &metadata);
	number(&inner, status ? 3 : 6, state_of(o));
	number(&inner, status ? 4 : 7, o->created_at);
	pair(&inner, labels, "io.kubernetes.pod.name", o->name);
	pair(&inner, labels, "io.kubernetes.pod.namespace", o->ns);
	pair(&inner, labels, "io.kubernetes.pod.uid", o->uid);
	if (*o->nri_id)
		pair(&inner, annotations, CK_ALIAS_ANNOTATION, o->nri_id);
	message(b, field, &inner);
}

struct peer_object *peer_has(struct peer *peer, const char *id)
{
	for (size_t i = 0; i < peer->objects_n; i++)
		if (!strcmp(peer->objects[i].id, id))
			return &peer->objects[i];
	return NULL;
}

static struct peer_object *object_new(struct peer *peer)
{
	if (peer->objects_n == peer->objects_room) {
		peer->objects_room = peer->objects_room ? 2 * peer->objects_room : 16;
		peer->objects = realloc(peer->objects, peer->objects_room * sizeof(*peer->objects));
		assert_non_null(peer->objects);
	}
	struct peer_object *o = &peer->objects[peer->objects_n++];
	*o = (struct peer_object){ .condition = CK_CONDITION_READY, .created_at = peer->objects_n };
	return o;
}

struct peer_object *peer_sandbox(struct peer *peer, const char *id, const char *name)
{
	struct peer_object *o = object_new(peer);
	o->kind = CK_SANDBOX;
	snprintf(o->id, sizeof(o->id), "%s", id);
	snprintf(o->name, sizeof(o->name), "%s", name);
	snprintf(o->ns, sizeof(o->ns), "shop");
	snprintf(o->uid, sizeof(o->uid), "uid-%s", name);
	return o;
}

struct peer_object *peer_container(struct peer *peer, const char *id, const char *sandbox_id,
				   const char *name)
{
	struct peer_object *o = object_new(peer), *pod = peer_has(peer, sandbox_id);
	o->kind = CK_CONTAINER;
	snprintf(o->id, sizeof(o->id), "%s", id);
	snprintf(o->sandbox, sizeof(o->sandbox), "%s", sandbox_id);
	snprintf(o->container, sizeof(o->container), "%s", name);
	snprintf(o->image, sizeof(o->image), "registry/app:1");
	if (pod) {
		memcpy(o->name, pod->name, sizeof(o->name));
		memcpy(o->ns, pod->ns, sizeof(o->ns));
		memcpy(o->uid, pod->uid, sizeof(o->uid));
	}
	return o;
}

/* ---- the runtime's side of a call ------------------------------------------------------------ */

struct peer_line {
	struct peer_line *prev, *next;
	struct peer *peer;
	struct ck_connection *conn;
};

struct peer_call {
	struct peer_call *prev, *next;
	struct peer *peer;
	struct ck_h2_stream *stream;
	struct ck_grpc_reader reader;
	char rpc[32];
	uint64_t timeout;
	bool whole, listens, begun; /* listens: to events; begun: headers were sent */
	struct out rest;            /* of its answer; p is NULL: none */
};

struct peer_plan *peer_plan(struct peer *peer, const char *rpc)
{
	for (size_t i = 0; i < peer->plans_n; i++)
		if (!strcmp(peer->plans[i].rpc, rpc))
			return &peer->plans[i];
	assert_true(peer->plans_n < CK_COUNT(peer->plans));
	struct peer_plan *plan = &peer->plans[peer->plans_n++];
	*plan = (struct peer_plan){ 0 };
	snprintf(plan->rpc, sizeof(plan->rpc), "%s", rpc);
	return plan;
}

static void call_free(struct peer_call *call)
{
	*(call->prev ? &call->prev->next : &call->peer->calls) = call->next;
	if (call->next)
		call->next->prev = call->prev;
	if (call->stream)
		ck_h2_stream_reset(call->stream, CK_H2_CANCEL);
	ck_grpc_reader_fini(&call->reader);
	done(&call->rest);
	free(call);
}

static void reply_part(struct peer_call *call, const struct out *answer, size_t n)
{
	unsigned char head[CK_GRPC_HEAD];
	ck_grpc_head(head, answer->len);
	raw(&call->rest, head, sizeof(head));
	raw(&call->rest, answer->p, answer->len);
	n -= 1; /* 1: nothing */
	assert_true(n < call->rest.len);
	assert_int_equal(ck_grpc_begin(call->stream), 0);
	assert_int_equal(ck_h2_stream_send(call->stream, call->rest.p, n), 0);
	call->rest.len -= n;
	memmove(call->rest.p, call->rest.p + n, call->rest.len);
}

static void reply_rest(struct peer_call *call)
{
	assert_int_equal(ck_h2_stream_send(call->stream, call->rest.p, call->rest.len), 0);
	assert_int_equal(ck_grpc_answer(call->stream, true, CK_GRPC_OK, NULL, NULL, 0), 0);
	ck_h2_stream_forget(CK_TAKE(call->stream));
	call_free(call);
}

static void reply(struct peer_call *call, int grpc, const struct out *answer)
{
	size_t part = peer_plan(call->peer, call->rpc)->part;
	if (part && grpc == 0) {
		reply_part(call, answer, part);
		return;
	}
	bool mute = peer_plan(call->peer, call->rpc)->mute;
	bool begun = grpc == 0 && !mute && ck_grpc_begin(call->stream) == 0 &&
		     ck_grpc_send(call->stream, answer->p, answer->len) == 0;
	if (ck_grpc_answer(call->stream, begun, grpc, grpc ? "as the test says" : NULL, NULL, 0) ==
	    0)
		ck_h2_stream_forget(CK_TAKE(call->stream));
	call_free(call);
}

static int status_answer(struct peer *peer, const char *id, enum ck_kind kind, struct out *answer)
{
	struct peer_object *there = peer_has(peer, id), other;
	if (!there || there->kind != kind)
		return CK_GRPC_NOT_FOUND;
	other = *there;
	if (peer_plan(peer, kind == CK_SANDBOX ? "PodSandboxStatus" : "ContainerStatus")->other_id)
		snprintf(other.id, sizeof(other.id), "another");
	if (kind == CK_CONTAINER)
		container(answer, 1, &other, true);
	else
		sandbox(answer, 1, &other, peer->padding);
	for (size_t i = 0;
	     i < peer->objects_n && kind == CK_SANDBOX && !peer->no_containers_statuses; i++)
		if (peer->objects[i].kind == CK_CONTAINER && !strcmp(peer->objects[i].sandbox, id))
			container(answer, 3, &peer->objects[i], true);
	return CK_GRPC_OK;
}

static void list_answer(struct peer *peer, enum ck_kind kind, const char *in, struct out *answer)
{
	for (size_t i = 0; i < peer->objects_n; i++) {
		struct peer_object *o = &peer->objects[i];
		if (o->kind == kind && kind == CK_SANDBOX)
			sandbox(answer, 1, o, NULL);
		else if (o->kind == kind && (!in[0] || !strcmp(o->sandbox, in)))
			container(answer, 1, o, false);
	}
}

static void remove_object(struct peer *peer, const char *id)
{
	struct peer_object *o = peer_has(peer, id);
	if (o)
		*o = peer->objects[--peer->objects_n];
}

/* the value of @key in the pairs of @field */
static void find_pair(const void *in, size_t len, uint32_t field, const char *key, char *to,
		      size_t size)
{
	struct ck_wire wire = ck_wire_begin(in, len);
	struct ck_wire_field f;
	char name[64];
	while (ck_wire_next(&wire, &f, NULL) > 0) {
		if (f.number != field || f.type != CK_WIRE_BYTES)
			continue;
		find_text(f.data, f.len, 1, name, sizeof(name));
		if (!strcmp(name, key))
			find_text(f.data, f.len, 2, to, size);
	}
}

/* RunPodSandbox, CreateContainer: "made-N" */
static void make(struct peer *peer, const char *rpc, const struct ck_bytes *request,
		 struct out *answer)
{
	const void *config = "", *metadata = "";
	size_t config_len = 0, metadata_len = 0;
	char id[80], name[64], in[80];
	struct peer_object *o;
	bool sandbox = rpc[0] == 'R';
	snprintf(id, sizeof(id), "made-%u", ++peer->made);
	find_message(request->p, request->len, sandbox ? 1 : 2, &config, &config_len);
	find_message(config, config_len, 1, &metadata, &metadata_len);
	find_text(metadata, metadata_len, 1, name, sizeof(name));
	find_text(request->p, request->len, 1, in, sizeof(in));
	if (sandbox) {
		o = peer_sandbox(peer, id, name);
		find_text(metadata, metadata_len, 2, o->uid, sizeof(o->uid));
		find_text(metadata, metadata_len, 3, o->ns, sizeof(o->ns));
	} else {
		o = peer_container(peer, id, in, name);
		find_pair(config, config_len, 10, CK_ALIAS_ANNOTATION, o->nri_id,
			  sizeof(o->nri_id));
	}
	o->attempt = find_number(metadata, metadata_len, sandbox ? 4 : 2);
	text(answer, 1, id);
}

/* a call acts, and is answered, at the same moment */
static void act(struct peer_call *call)
{
	struct peer *peer = call->peer;
	struct peer_plan *plan = peer_plan(peer, call->rpc);
	const struct ck_bytes *request = &call->reader.message;
	struct out answer = { 0 };
	const void *filter = NULL;
	size_t filter_len = 0;
	char id[80], in[80] = "";
	int grpc = plan->grpc;
	find_text(request->p, request->len, 1, id, sizeof(id));
	if (find_message(request->p, request->len, 1, &filter, &filter_len))
		find_text(filter, filter_len, 3, in, sizeof(in));
	if (plan->hang_up) {
		peer_hang_up(peer);
		return;
	}
	struct peer_object *o = peer_has(peer, id);
	if (grpc) {
		;
	} else if (plan->garble) {
		raw(&answer, "\x0a\xff\xff\x03", 4);
	} else if (!strncmp(call->rpc, "Stop", 4)) {
		if (o)
			o->condition = CK_CONDITION_DEAD;
	} else if (!strncmp(call->rpc, "Remove", 6)) {
		remove_object(peer, id);
	} else if (!strcmp(call->rpc, "ListPodSandbox")) {
		list_answer(peer, CK_SANDBOX, "", &answer);
	} else if (!strcmp(call->rpc, "ListContainers")) {
		list_answer(peer, CK_CONTAINER, in, &answer);
	} else if (!strcmp(call->rpc, "PodSandboxStatus")) {
		grpc = status_answer(peer, id, CK_SANDBOX, &answer);
	} else if (!strcmp(call->rpc, "ContainerStatus")) {
		grpc = status_answer(peer, id, CK_CONTAINER, &answer);
	} else if (!strcmp(call->rpc, "RunPodSandbox") || !strcmp(call->rpc, "CreateContainer")) {
		make(peer, call->rpc, request, &answer);
	} else if (!strcmp(call->rpc, "ImageStatus") && peer->image_id[0]) {
		struct out image = { 0 };
		text(&image, 1, peer->image_id);
		message(&answer, 1, &image);
	}
	reply(call, grpc, &answer);
	done(&answer);
}

size_t peer_release(struct peer *peer, const char *rpc)
{
	size_t n = 0;
	peer_plan(peer, rpc)->hold = false;
	peer_plan(peer, rpc)->part = 0;
	for (struct peer_call *call = peer->calls, *next; call; call = next) {
		next = call->next;
		if (call->whole && !strcmp(call->rpc, rpc)) {
			if (call->rest.p)
				reply_rest(call);
			else
				act(call);
			n++;
		}
	}
	return n;
}

const struct ck_bytes *peer_request(const struct peer *peer, const char *rpc)
{
	for (const struct peer_call *call = peer->calls; call; call = call->next)
		if (call->whole && !strcmp(call->rpc, rpc))
			return &call->reader.message;
	return NULL;
}

static void heard(struct peer_call *call)
{
	char id[80] = "", in[80] = "", line[256];
	const void *inner;
	size_t len;
	const struct ck_bytes *request = &call->reader.message;
	if (strncmp(call->rpc, "List", 4) && strcmp(call->rpc, "ImageStatus"))
		find_text(request->p, request->len, 1, id, sizeof(id));
	else if (find_message(request->p, request->len, 1, &inner, &len))
		find_text(inner, len, call->rpc[0] == 'I' ? 1 : 3, in, sizeof(in));
	int n = snprintf(
		line, sizeof(line), "%s%s%s%s%s\n", call->rpc, id[0] || in[0] ? " " : "", id, in,
		!strcmp(call->rpc, "StopContainer") && !find_number(request->p, request->len, 2)
			? " timeout 0"
			: "");
	call->peer->heard = realloc(call->peer->heard, call->peer->heard_len + (size_t)n + 1);
	assert_non_null(call->peer->heard);
	memcpy(call->peer->heard + call->peer->heard_len, line, (size_t)n + 1);
	call->peer->heard_len += (size_t)n;
}

static void call_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
			 void *userdata)
{
	struct peer_call *call = userdata;
	const struct ck_h2_header *path = ck_h2_find(headers, n, ":path"),
				  *timeout = ck_h2_find(headers, n, "grpc-timeout");
	(void)stream;
	if (!path)
		return;
	const char *name = memrchr(path->value, '/', path->value_len);
	assert_non_null(name);
	snprintf(call->rpc, sizeof(call->rpc), "%.*s",
		 (int)(path->value_len - (size_t)(name + 1 - path->value)), name + 1);
	if (!strcmp(call->rpc, "GetContainerEvents") &&
	    ck_h2_find(headers, n, "grpc-accept-encoding"))
		call->peer->may_compress = true;
	if (timeout)
		ck_grpc_timeout_parse(timeout->value, timeout->value_len, &call->timeout);
	if (peer_plan(call->peer, call->rpc)->early)
		act(call);
}

static void call_data(struct ck_h2_stream *stream, const unsigned char *in, size_t n,
		      void *userdata)
{
	struct peer_call *call = userdata;
	size_t used;
	if (!peer_plan(call->peer, call->rpc)->deaf)
		ck_h2_stream_consume(stream, n);
	if (!call->whole && ck_grpc_read(&call->reader, in, n, &used, NULL) == 1)
		call->whole = true;
}

static void call_end(struct ck_h2_stream *stream, void *userdata)
{
	struct peer_call *call = userdata;
	(void)stream;
	if (!call->whole) { /* an armed fault took its message */
		call_free(call);
		return;
	}
	heard(call);
	if (!strcmp(call->rpc, "GetContainerEvents") && !peer_plan(call->peer, call->rpc)->grpc)
		call->listens = true;
	else if (!peer_plan(call->peer, call->rpc)->hold)
		act(call);
}

static void call_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct peer_call *call = userdata;
	(void)stream;
	(void)error;
	call->stream = NULL;
	call_free(call);
}

static const struct ck_h2_handler call_handler = {
	.headers = call_headers,
	.data = call_data,
	.end = call_end,
	.closed = call_closed,
};

static void line_opened(struct ck_connection *conn, struct ck_h2_stream *stream, void *userdata)
{
	struct peer_line *line = userdata;
	struct peer_call *call = calloc(1, sizeof(*call)), **end = &line->peer->calls;
	(void)conn;
	assert_non_null(call);
	*call = (struct peer_call){ .peer = line->peer,
				    .stream = stream,
				    .reader.max = CK_REQUEST_MAX };
	for (; *end; end = &(*end)->next)
		call->prev = *end;
	*end = call;
	ck_h2_stream_handle(stream, &call_handler, call);
}

static void line_closed(struct ck_connection *conn, bool unread, const char *why, void *userdata)
{
	struct peer_line *line = userdata;
	(void)unread;
	(void)why;
	ck_connection_free(conn);
	*(line->prev ? &line->prev->next : &line->peer->lines) = line->next;
	if (line->next)
		line->next->prev = line->prev;
	free(line);
}

static const struct ck_connection_owner line_owner = { .opened = line_opened,
						       .closed = line_closed };

static int line_accept(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct peer *peer = userdata;
	struct peer_line *line = calloc(1, sizeof(*line));
	(void)source;
	(void)events;
	assert_non_null(line);
	*line = (struct peer_line){ .peer = peer, .next = peer->lines };
	int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (conn < 0 || ck_connection_new(peer->loop, conn, CK_H2_SERVER, &line_owner, line,
					  &line->conn, NULL) < 0) {
		free(line); /* an armed fault */
		return 0;
	}
	if (line->next)
		line->next->prev = line;
	peer->lines = line;
	return 0;
}

void peer_hang_up(struct peer *peer)
{
	for (struct peer_line *line = peer->lines; line; line = line->next)
		ck_connection_end(line->conn, "the test hangs up");
}

void peer_goaway(struct peer *peer)
{
	for (struct peer_line *line = peer->lines; line; line = line->next)
		ck_connection_shut(line->conn);
}

void peer_stop_listening(struct peer *peer)
{
	peer->source = sd_event_source_disable_unref(peer->source);
	close(peer->fd);
	peer->fd = -1;
}

void peer_listen(struct peer *peer, const char *path)
{
	peer->fd = ck_unix_listen(path, 0600, (gid_t)-1, NULL);
	assert_true(peer->fd >= 0);
	assert_true(sd_event_add_io(peer->loop->event, &peer->source, peer->fd, EPOLLIN,
				    line_accept, peer) >= 0);
}

size_t peer_streams(const struct peer *peer)
{
	size_t n = 0;
	for (const struct peer_line *line = peer->lines; line; line = line->next)
		n += ck_connection_h2(line->conn) ? ck_h2_streams(ck_connection_h2(line->conn)) : 0;
	return n;
}

unsigned peer_heard(const struct peer *peer, const char *line)
{
	unsigned n = 0;
	size_t len = strlen(line);
	for (const char *at = peer->heard; at && (at = strstr(at, line)); at += len)
		n += (at == peer->heard || at[-1] == '\n') && (at[len] == '\n' || at[len] == ' ');
	return n;
}

uint64_t peer_timeout(const struct peer *peer, const char *rpc)
{
	for (const struct peer_call *call = peer->calls; call; call = call->next)
		if (!strcmp(call->rpc, rpc))
			return call->timeout;
	return 0;
}

size_t peer_subscribers(const struct peer *peer)
{
	size_t n = 0;
	for (const struct peer_call *call = peer->calls; call; call = call->next)
		n += call->listens;
	return n;
}

void peer_event_bytes(struct peer *peer, const void *event, size_t len)
{
	for (struct peer_call *call = peer->calls; call; call = call->next) {
		if (!call->listens)
			continue;
		if (!call->begun)
			/* an armed fault shows as an event that never comes */
			ck_grpc_begin(call->stream);
		call->begun = true;
		ck_grpc_send(call->stream, event, len);
	}
}

void peer_event(struct peer *peer, const char *id, const char *sandbox_id, int type)
{
	struct out event = { 0 };
	struct peer_object *pod = peer_has(peer, sandbox_id);
	text(&event, 1, id);
	number(&event, 2, (uint64_t)type);
	number(&event, 3, 1);
	if (pod)
		sandbox(&event, 4, pod, peer->padding);
	for (size_t i = 0; i < peer->objects_n; i++)
		if (peer->objects[i].kind == CK_CONTAINER &&
		    !strcmp(peer->objects[i].sandbox, sandbox_id))
			container(&event, 5, &peer->objects[i], true);
	peer_event_bytes(peer, event.p, event.len);
	done(&event);
}

/* ---- the daemon's side ----------------------------------------------------------------------- */

static void up(void *userdata)
{
	((struct world *)userdata)->ups++;
}

static void down(const char *why, void *userdata)
{
	(void)why;
	((struct world *)userdata)->downs++;
}

static void redact(const char *text, char *out)
{
	ck_redact(text, NULL, out);
}

static const struct ck_upstream_owner upstream_owner = { .up = up, .down = down, .redact = redact };

static uint64_t clock_of(void *userdata)
{
	return ((struct world *)userdata)->now;
}

void world_settle(struct world *w)
{
	for (int idle = 0; idle < 3;) {
		int done = w->daemon.cache ? ck_cache_process(w->daemon.cache, NULL) : 0;
		ck_loop_flush(&w->daemon.loop);
		int r = sd_event_run(w->daemon.loop.event, 0);
		assert_true(r >= 0);
		bool moved = w->step && w->step(w);
		idle = done > 0 || r > 0 || moved ? 0 : idle + 1;
	}
}

void world_connect(struct world *w)
{
	world_settle(w);
	while (!ck_upstream_is_up(w->daemon.upstream)) {
		assert_true(sd_event_run(w->daemon.loop.event, UINT64_MAX) >= 0);
		world_settle(w);
	}
}

void world_advance(struct world *w, uint64_t by)
{
	uint64_t until = w->now + by;
	world_settle(w);
	for (uint64_t due; (due = ck_cache_timeout(w->daemon.cache)) <= until;) {
		w->now = due > w->now ? due : w->now;
		world_settle(w);
	}
	w->now = until;
	world_settle(w);
}

struct world *world_new(void)
{
	return world_new_with(NULL);
}

struct world *world_new_with(void (*configure)(struct ck_conf *conf))
{
	static const struct ck_plugins none;
	struct ck_hooks hooks;
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	const char *tmp = getenv("TMPDIR");
	char path[300];
	struct ck_daemon *d = &w->daemon;
	struct ck_host host;
	w->now = 1000 * CK_NS_PER_S;
	snprintf(w->dir, sizeof(w->dir), "%s/peer-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	ck_log_open("test", CK_LOG_TO_STDERR, CK_LOG_ERROR);
	assert_int_equal(ck_conf_init(&d->conf, &w->err), 0);
	if (configure) {
		free(d->conf.nri.socket);
		assert_true(asprintf(&d->conf.nri.socket, "%s/nri.sock", w->dir) > 0);
		free(d->conf.state_dir);
		assert_true(asprintf(&d->conf.state_dir, "%s", w->dir) > 0);
		configure(&d->conf);
	}
	assert_int_equal(ck_loop_init(&d->loop, &w->err), 0);

	w->peer = (struct peer){ .loop = &d->loop };
	snprintf(path, sizeof(path), "%s/runtime.sock", w->dir);
	peer_listen(&w->peer, path);

	assert_int_equal(ck_hosting_new(d, &host, &w->err), 0);
	assert_int_equal(ck_events_new(d, &w->err), 0);
	assert_int_equal(ck_upstream_new(&d->loop, path, &upstream_owner, w, &d->upstream, &w->err),
			 0);
	world_settle(w);
	assert_int_equal(w->ups, 1);

	if (d->conf.nri.enabled && ck_plugging_new(d, &none, NULL, &hooks, &w->err) < 0)
		fail_msg("%s", w->err.text);
	snprintf(path, sizeof(path), "%s/state", w->dir);
	struct ck_options options = {
		.size = sizeof(options),
		.state_dir = path,
		.host = &host,
		.hooks = d->nri ? &hooks : NULL,
		.clock = clock_of,
		.clock_userdata = w,
	};
	if (ck_cache_open(&options, &d->cache, &w->err) < 0)
		fail_msg("%s", w->err.text);
	if (ck_plugging_start(d, &w->err) < 0)
		fail_msg("%s", w->err.text);
	snprintf(path, sizeof(path), "%s/cri.sock", w->dir);
	int fd = ck_unix_listen(path, 0600, (gid_t)-1, &w->err);
	assert_true(fd >= 0);
	assert_int_equal(ck_listen_start(d, fd, true, &w->listener, &w->err), 0);
	world_settle(w);
	return w;
}

void world_free(struct world *w)
{
	struct ck_daemon *d = &w->daemon;
	char command[300];
	ck_listener_free(w->listener);
	ck_exits_free(d->exits);
	ck_events_free(d->events);
	ck_hosting_free(d->hosting);
	ck_plugging_quiet(d->plugging);
	ck_lives_end(d);
	ck_upstream_free(d->upstream);
	for (struct peer_line *line = w->peer.lines; line; line = line->next)
		ck_connection_end(line->conn, "the world ends");
	ck_loop_flush(&d->loop);
	if (d->cache)
		assert_int_equal(ck_cache_close(d->cache, NULL), 0);
	ck_plugging_free(d->plugging);
	ck_consulted_forget(d);
	ck_loop_timer_free(d->burst_timer);
	if (w->peer.fd >= 0)
		peer_stop_listening(&w->peer);
	ck_loop_fini(&d->loop);
	ck_conf_fini(&d->conf);
	ck_log_close();
	free(w->peer.objects);
	free(w->peer.heard);
	snprintf(command, sizeof(command), "rm -rf '%s'", w->dir);
	assert_int_equal(system(command), 0);
	free(w);
}

/* ---- creates, straight in the cache ---------------------------------------------------------- */

struct ck_turn *world_begin(struct world *w, const struct peer_object *o)
{
	struct out request = { 0 }, config = { 0 }, pod = { 0 }, metadata = { 0 };
	struct ck_turn *turn = NULL;
	text(&metadata, 1, o->name);
	text(&metadata, 2, o->uid);
	text(&metadata, 3, o->ns);
	number(&metadata, 4, o->kind == CK_SANDBOX ? o->attempt : 0);
	message(&pod, 1, &metadata);
	if (o->kind == CK_CONTAINER) {
		struct out image = { 0 };
		text(&request, 1, o->sandbox);
		text(&metadata, 1, o->container);
		number(&metadata, 2, o->attempt);
		message(&config, 1, &metadata);
		text(&image, 1, o->image);
		message(&config, 2, &image);
		message(&request, 2, &config);
		message(&request, 3, &pod);
	} else {
		message(&request, 1, &pod);
	}
	struct ck_request ask = { .size = sizeof(ask),
				  .kind = o->kind,
				  .bytes = request.p,
				  .len = request.len,
				  .timeout = 10 * CK_NS_PER_S };
	if (ck_turn_begin(w->daemon.cache, &ask, &turn, &w->err) < 0)
		turn = NULL;
	done(&request);
	return turn;
}

static void turn_decided(struct ck_turn *turn, int outcome, void *userdata)
{
	struct world_ear *ear = userdata;
	(void)turn;
	ear->n++;
	ear->outcome = outcome;
}

void world_listen(struct world_ear *ear, struct ck_turn *turn)
{
	*ear = (struct world_ear){ 0 };
	assert_int_equal(ck_turn_watch(turn, turn_decided, ear), 0);
}

static int finish(struct world *w, struct ck_turn *turn, const struct peer_object *o)
{
	struct ck_result result = { .size = sizeof(result), .id = o->id };
	assert_non_null(turn);
	return ck_turn_finish(turn, &result, &w->err);
}

void world_commit(struct world *w, const struct peer_object *o)
{
	struct ck_turn *turn = world_begin(w, o);
	assert_int_equal(finish(w, turn, o), CK_HAND_BACK);
	ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
}

void world_keep(struct world *w, const struct peer_object *o)
{
	struct ck_turn *turn = world_begin(w, o);
	assert_non_null(turn);
	ck_turn_leave(turn);
	assert_int_equal(finish(w, turn, o), CK_KEPT);
	ck_turn_free(turn);
}

int world_hides(struct world *w, const struct peer_object *o)
{
	struct ck_view *view;
	struct ck_object object = {
		.size = sizeof(object),
		.kind = o->kind,
		.condition = o->condition,
		.id = o->id,
		.pod_name = o->name,
		.pod_namespace = o->ns,
		.pod_uid = o->uid,
		.sandbox_id = o->kind == CK_CONTAINER ? o->sandbox : NULL,
		.container_name = o->kind == CK_CONTAINER ? o->container : NULL,
		.attempt = o->attempt,
	};
	assert_int_equal(ck_view_begin(w->daemon.cache, &view, &w->err), 0);
	int r = ck_view_hides(view, &object);
	ck_view_free(view);
	return r;
}

/* ---- a client -------------------------------------------------------------------------------- */

static void told(struct client *c, const void *event, size_t len)
{
	static const char *const types[] = { "CREATED", "STARTED", "STOPPED", "DELETED" };
	struct ck_wire wire = ck_wire_begin(event, len);
	struct ck_wire_field f;
	char id[80] = "", in[80] = "", containers[512] = "";
	uint64_t type = 0;
	while (ck_wire_next(&wire, &f, NULL) > 0) {
		if (f.number == 1 && f.type == CK_WIRE_BYTES)
			snprintf(id, sizeof(id), "%.*s", (int)f.len, (const char *)f.data);
		else if (f.number == 2)
			type = f.value;
		else if (f.number == 3)
			c->created_at = f.value;
		else if (f.number == 4)
			find_text(f.data, f.len, 1, in, sizeof(in));
		else if (f.number == 5) {
			char one[80];
			find_text(f.data, f.len, 1, one, sizeof(one));
			snprintf(containers + strlen(containers),
				 sizeof(containers) - strlen(containers), " %s", one);
		}
	}
	size_t at = strlen(c->seen);
	snprintf(c->seen + at, sizeof(c->seen) - at, "%s %s[%s%s]\n", type < 4 ? types[type] : "?",
		 id, in, containers);
}

static void client_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers,
			   size_t n, void *userdata)
{
	struct client *c = userdata;
	struct ck_grpc_status status = { 0 };
	(void)stream;
	c->headers = true;
	if (ck_grpc_status_read(headers, n, &status) == 1)
		c->grpc = status.code;
	ck_grpc_status_fini(&status);
}

static void client_data(struct ck_h2_stream *stream, const unsigned char *in, size_t n,
			void *userdata)
{
	struct client *c = userdata;
	if (c->reads)
		ck_h2_stream_consume(stream, n);
	else
		c->unread += n;
	while (n) {
		size_t used;
		int r = ck_grpc_read(&c->reader, in, n, &used, NULL);
		if (r < 0) {
			assert_true(r == -CK_ENOMEM && ck_fault_hit());
			ck_h2_stream_reset(CK_TAKE(c->stream), CK_H2_CANCEL);
			c->ended = true;
			return;
		}
		if (r == 1)
			told(c, c->reader.message.p, c->reader.message.len);
		in += used;
		n -= used;
	}
}

static void client_end(struct ck_h2_stream *stream, void *userdata)
{
	(void)stream;
	((struct client *)userdata)->ended = true;
}

static void client_stream_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct client *c = userdata;
	(void)stream;
	c->stream = NULL;
	c->ended = true;
	c->reset = error;
}

static const struct ck_h2_handler client_handler = {
	.headers = client_headers,
	.data = client_data,
	.end = client_end,
	.closed = client_stream_closed,
};

static void client_conn_closed(struct ck_connection *conn, bool unread, const char *why,
			       void *userdata)
{
	struct client *c = userdata;
	(void)unread;
	(void)why;
	ck_connection_free(conn);
	c->conn = NULL;
}

static const struct ck_connection_owner client_owner = { .closed = client_conn_closed };

struct client *client_subscribe(struct world *w)
{
	static const struct ck_h2_header headers[] = {
		CK_H2_HEADER(":method", "POST"),
		CK_H2_HEADER(":scheme", "http"),
		CK_H2_HEADER(":path", "/runtime.v1.RuntimeService/GetContainerEvents"),
		CK_H2_HEADER(":authority", "/run/crikeep/cri.sock"),
		CK_H2_HEADER("content-type", "application/grpc"),
		CK_H2_HEADER("te", "trailers"),
		CK_H2_HEADER("grpc-accept-encoding", "gzip"),
	};
	struct client *c = calloc(1, sizeof(*c));
	char path[300];
	assert_non_null(c);
	*c = (struct client){ .w = w, .reads = true, .grpc = -1, .reader.max = CK_REQUEST_MAX };
	snprintf(path, sizeof(path), "%s/cri.sock", w->dir);
	int fd = ck_unix_connect(path, &w->err);
	assert_true(fd >= 0);
	if (ck_connection_new(&w->daemon.loop, fd, CK_H2_CLIENT, &client_owner, c, &c->conn,
			      &w->err) < 0 ||
	    ck_h2_open(ck_connection_h2(c->conn), headers, CK_COUNT(headers), &client_handler, c,
		       &c->stream, &w->err) < 0 ||
	    ck_grpc_send(c->stream, NULL, 0) < 0) {
		assert_true(ck_fault_hit());
		return c;
	}
	ck_h2_stream_end(c->stream);
	world_settle(w);
	return c;
}

void client_stop_reading(struct client *c)
{
	c->reads = false;
}

void client_read_on(struct client *c)
{
	c->reads = true;
	ck_h2_stream_consume(c->stream, c->unread);
	c->unread = 0;
}

void client_free(struct client *c)
{
	if (c->stream)
		ck_h2_stream_reset(c->stream, CK_H2_CANCEL);
	ck_connection_free(c->conn);
	world_settle(c->w);
	ck_grpc_reader_fini(&c->reader);
	free(c);
}

unsigned client_saw(const struct client *c, const char *line)
{
	unsigned n = 0;
	size_t len = strlen(line);
	for (const char *at = c->seen; (at = strstr(at, line)); at += len)
		n += (at == c->seen || at[-1] == '\n') && at[len] == '\n';
	return n;
}
