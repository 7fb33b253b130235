/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side of the clients: who may connect, what a call must look like, reading its request,
 * sending its answer. The other call files do what the method asks for.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utlist.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/accept.h"
#include "src/daemon/call.h"
#include "src/cri/objects.h"

struct ck_listener {
	struct ck_daemon *daemon;
	struct ck_acceptor *acceptor;
	struct ck_peer *clients;
	bool filtered;
};

/* ---- the end of a call ----------------------------------------------------------------------- */

uint64_t ck_call_left(const struct ck_call *call)
{
	uint64_t now = ck_loop_now();
	if (!call->deadline)
		return UINT64_MAX;
	return call->deadline > now ? call->deadline - now : 0;
}

uint64_t ck_call_timeout(const struct ck_call *call)
{
	uint64_t left = ck_call_left(call);
	return left == UINT64_MAX ? 0 : left ? left : 1;
}

static void drop_request(struct ck_call *call)
{
	if (call->client)
		call->client->held -= call->reader.message.len + call->request.len;
	ck_grpc_reader_fini(&call->reader);
	ck_bytes_free(&call->request);
}

void ck_call_detach(struct ck_call *call)
{
	drop_request(call); /* it was sent, and is not sent again without a client */
	call->client->held -= call->headers_size + sizeof(*call);
	ck_client_detaches(call);
	call->client = NULL;
}

void ck_call_free(struct ck_call *call)
{
	struct ck_peer *client = call->client;
	ck_shadow_end(call);
	if (call->stream)
		ck_h2_stream_reset(call->stream, CK_H2_CANCEL);
	ck_pass_end(call);
	ck_unary_cancel(call->rpc);
	ck_consult_drop(call->create.consult);
	ck_turn_free(call->turn);
	ck_view_free(call->view);
	ck_objects_free(call->pass.objects);
	ck_loop_timer_free(call->timer);
	drop_request(call);
	if (client) {
		client->held -= call->pass.reader.message.len + call->pass.copy.len +
				call->pass.unsent + call->headers_size + sizeof(*call);
		ck_client_counts(client, -1);
		ck_pass_leave(call);
	}
	ck_client_left_call_ends(call);
	ck_grpc_reader_fini(&call->pass.reader);
	ck_bytes_free(&call->pass.copy);
	free(call->headers);
	DL_DELETE(call->daemon->metrics.calls_open, call);
	call->daemon->calls--;
	free(call);
	if (client)
		ck_pass_advance(client->process);
}

static void send_status(struct ck_call *call, int grpc, const char *message, const void *details,
			size_t details_len)
{
	struct ck_h2_stream *stream = CK_TAKE(call->stream);
	if (!stream)
		return;
	if (ck_grpc_answer(stream, call->begun, grpc, message, details, details_len) < 0)
		ck_h2_stream_reset(stream, CK_H2_INTERNAL_ERROR);
	else
		ck_h2_stream_forget(stream);
}

static void answer(struct ck_call *call, int grpc, const char *message, const void *details,
		   size_t details_len)
{
	if (call->stream && grpc != CK_GRPC_OK)
		call->daemon->metrics.errors[ck_metrics_method(call->method)]++;
	send_status(call, grpc, message, details, details_len);
}

void ck_call_pass_status(struct ck_call *call, const struct ck_grpc_status *status)
{
	send_status(call, status->code, status->message, status->details, status->details_len);
}

void ck_call_answer(struct ck_call *call, int grpc, const char *message)
{
	answer(call, grpc, message, NULL, 0);
}

void ck_call_answer_status(struct ck_call *call, const struct ck_status *status)
{
	answer(call, status->grpc, status->message, status->details, status->details_len);
}

void ck_call_answer_error(struct ck_call *call, const struct ck_error *err)
{
	answer(call, ck_error_grpc(err), err->text, NULL, 0);
}

void ck_call_answer_message(struct ck_call *call, const void *message, size_t len)
{
	struct ck_h2_stream *stream = CK_TAKE(call->stream);
	if (!stream)
		return;
	if (ck_grpc_begin(stream) < 0 || ck_grpc_send(stream, message, len) < 0 ||
	    ck_grpc_answer(stream, true, CK_GRPC_OK, NULL, NULL, 0) < 0)
		ck_h2_stream_reset(stream, CK_H2_INTERNAL_ERROR);
	else
		ck_h2_stream_forget(stream);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static int resolve(enum ck_kind kind, const char *id, const char **ret_id, void *userdata)
{
	struct ck_call *call = userdata;
	struct ck_error err;
	if (!call->view) {
		int r = ck_view_begin(call->daemon->cache, &call->view, &err);
		if (r < 0)
			return r;
	}
	if (call->method->class == CK_CRI_START)
		ck_container_starting(call->daemon->cache, id);
	int r = ck_view_resolve(call->view, kind, id, ret_id);
	if (r != -CK_ENOTFOUND)
		return r < 0 ? r : 0;
	call->names_hidden = true;
	return 1;
}

int ck_call_shows(struct ck_view *view, const struct ck_object *object)
{
	const char *id;
	int r = ck_view_resolve(view, object->kind, object->id, &id);
	return r == 1 ? !strcmp(id, object->id) : r == -CK_ENOTFOUND ? 0 : r;
}

bool ck_call_guard(struct ck_call *call)
{
	struct ck_bytes rewritten = { 0 };
	struct ck_error err = { 0 };
	int r = ck_guard_request(call->method, call->request.p, call->request.len, resolve, call,
				 call->id, &rewritten, &err);
	if (r == CK_IDS_UNCHANGED)
		return true;
	if (r == CK_IDS_REWRITTEN) {
		call->client->held += rewritten.len - call->request.len;
		ck_bytes_free(&call->request);
		call->request = rewritten;
		return true;
	}
	if (r == CK_IDS_HIDDEN) { /* like a runtime that does not know the id */
		call->daemon->metrics.refused_hidden[ck_metrics_method(call->method)]++;
		ck_call_answer(call, CK_GRPC_NOT_FOUND,
			       "no such container or pod sandbox");
	} else if (err.code) {
		ck_call_answer_error(call, &err);
	} else {
		ck_call_answer(call, CK_GRPC_INTERNAL, ck_strerror(-r));
	}
	ck_call_free(call);
	return false;
}

/* ---- reading a request ----------------------------------------------------------------------- */

/* -CK_ETOOBIG: the calls of this client hold too much memory */
static int enough(const struct ck_peer *client, struct ck_error *err)
{
	size_t max = client->daemon->conf.client_memory;
	if (client->held <= max)
		return 0;
	return ck_fail(err, CK_ETOOBIG,
		       "this connection has more than %zu bytes of unfinished requests", max);
}

static void call_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		      void *userdata)
{
	struct ck_call *call = userdata;
	struct ck_peer *client = call->client;
	struct ck_error err = { 0 };
	size_t used, before = call->reader.message.len;
	if (call->pass.stream) { /* passed on; the window grows when the bytes are written */
		ck_shadow_data(call, bytes, n);
		int r = ck_pass_more(call, bytes, n, &err);
		if (r >= 0)
			r = enough(client, &err);
		if (r < 0) {
			ck_call_answer_error(call, &err);
			ck_call_free(call);
		}
		return;
	}
	ck_h2_stream_consume(stream, n);
	if (n == 0)
		return;
	int r = call->whole ? -CK_EMALFORMED : ck_grpc_read(&call->reader, bytes, n, &used, &err);
	if (r >= 0) {
		client->held += call->reader.message.len - before;
		if (enough(client, &err) < 0)
			r = -CK_ETOOBIG;
	} else {
		client->held -= before;
		ck_grpc_reader_fini(&call->reader);
	}
	if (r > 0 && used < n)
		r = -CK_EMALFORMED;
	if (r > 0) {
		call->whole = true;
		call->request = call->reader.message;
		call->reader.message = (struct ck_bytes){ 0 };
		return; /* the rest is done at the end of the stream */
	}
	if (r == 0)
		return;
	if (!err.code)
		ck_fail(&err, CK_EMALFORMED,
			"more than one message in the request of a unary call");
	ck_call_answer_error(call, &err);
	ck_call_free(call);
}

static void call_end(struct ck_h2_stream *stream, void *userdata)
{
	struct ck_call *call = userdata;
	(void)stream;
	if (call->pass.stream) {
		ck_h2_stream_end(call->pass.stream);
		ck_shadow_begin(call);
	} else if (!call->whole) {
		ck_call_answer(call, CK_GRPC_INVALID_ARGUMENT,
			       "the request ended before its message was whole");
		ck_call_free(call);
	} else {
		call->ops->request(call);
	}
}

static void call_sent(struct ck_h2_stream *stream, size_t n, void *userdata)
{
	(void)stream;
	ck_pass_sent(userdata, n);
}

static void call_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct ck_call *call = userdata;
	(void)stream;
	call->stream = NULL;
	call->reset = error != CK_H2_NO_ERROR;
	call->ops->left(call);
}

static void call_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
			 void *userdata);

static const struct ck_h2_handler call_handler = {
	.headers = call_headers,
	.data = call_data,
	.end = call_end,
	.sent = call_sent,
	.closed = call_closed,
};

/* ---- the beginning of a call ----------------------------------------------------------------- */

static int keep_headers(struct ck_call *call, const struct ck_h2_header *headers, size_t n)
{
	size_t size = 0;
	for (size_t i = 0; i < n; i++)
		size += headers[i].name_len + headers[i].value_len;
	size += n * sizeof(*headers);
	call->headers = ck_alloc(size);
	if (!call->headers)
		return -CK_ENOMEM;
	call->headers_size = size;
	call->client->held += size;
	char *text = (char *)(call->headers + n);
	for (size_t i = 0; i < n; i++) {
		const struct ck_h2_header *h = &headers[i];
		if (ck_h2_find(h, 1, "grpc-accept-encoding"))
			continue; /* the answer is parsed, so it must not be compressed */
		struct ck_h2_header *to = &call->headers[call->headers_n++];
		*to = (struct ck_h2_header){ text, text + h->name_len, h->name_len, h->value_len };
		memcpy(text, h->name, h->name_len);
		if (h->value_len)
			memcpy(text + h->name_len, h->value, h->value_len);
		text += h->name_len + h->value_len;
	}
	return 0;
}

static const struct ck_call_ops *ops_of(const struct ck_call *call)
{
	if (!call->client->filtered || !call->method)
		return &ck_pass_ops;
	switch (call->method->class) {
	case CK_CRI_CREATE:
		return &ck_create_ops;
	case CK_CRI_START:
	case CK_CRI_STOP:
	case CK_CRI_REMOVE:
	case CK_CRI_EVENTS:
		return &ck_act_ops;
	case CK_CRI_PASS:
	case CK_CRI_GUARD:
	case CK_CRI_STATUS:
	case CK_CRI_FILTER:
		break;
	}
	return &ck_pass_ops;
}

static bool starts_with(const struct ck_h2_header *header, const char *prefix)
{
	size_t len = strlen(prefix);
	return header && header->value_len >= len && !memcmp(header->value, prefix, len);
}

/* A request that is not a gRPC call gets a status of HTTP. */
static void refuse_http(struct ck_call *call, const char *status)
{
	const struct ck_h2_header answered[] = { { ":status", status, sizeof(":status") - 1,
						   strlen(status) } };
	if (ck_h2_stream_headers(call->stream, answered, 1, true) < 0)
		ck_h2_stream_reset(call->stream, CK_H2_INTERNAL_ERROR);
	else
		ck_h2_stream_forget(call->stream);
	call->stream = NULL;
	ck_call_free(call);
}

static void refuse(struct ck_call *call, int grpc, const char *text)
{
	ck_call_answer(call, grpc, text);
	ck_call_free(call);
}

static void call_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
			 void *userdata)
{
	struct ck_call *call = userdata;
	struct ck_daemon *daemon = call->daemon;
	const struct ck_h2_header *path = ck_h2_find(headers, n, ":path"),
				  *timeout = ck_h2_find(headers, n, "grpc-timeout");
	struct ck_error err;
	uint64_t ns = 0;
	(void)stream;
	if (call->began)
		return; /* gRPC has no trailers in a request */
	call->began = ck_loop_now();
	if (!path || !ck_h2_is(ck_h2_find(headers, n, ":method"), "POST")) {
		refuse_http(call, "405");
		return;
	}
	if (!starts_with(ck_h2_find(headers, n, "content-type"), "application/grpc")) {
		refuse_http(call, "415");
		return;
	}
	/* Older gRPC servers take "runtime.v1.RuntimeService/..." too. A call would go round the
	 * filter then, as one that nobody here knows. */
	if (!path->value_len || path->value[0] != '/') {
		refuse(call, CK_GRPC_UNIMPLEMENTED, "the method's path does not begin with \"/\"");
		return;
	}
	call->method = ck_cri_method_find(path->value, path->value_len);
	daemon->metrics.calls[ck_metrics_method(call->method)]++;
	if (timeout && !ck_grpc_timeout_parse(timeout->value, timeout->value_len, &ns)) {
		refuse(call, CK_GRPC_INVALID_ARGUMENT,
		       "grpc-timeout is not 1 to 8 digits and a unit");
		return;
	}
	if (timeout)
		call->deadline = call->began + (ns ? ns : 1);
	if (daemon->stopping) {
		refuse(call, CK_GRPC_UNAVAILABLE, "crikeepd is stopping");
		return;
	}
	if (ck_client_may_call(call->client, &err) < 0) {
		ck_refused(daemon, CK_REFUSED_CALL, err.text);
		refuse(call, CK_GRPC_RESOURCE_EXHAUSTED, err.text);
		return;
	}
	if (!call->client->listener->filtered && (!call->method || !call->method->read_only)) {
		refuse(call, CK_GRPC_PERMISSION_DENIED, "this socket answers read-only calls only");
		return;
	}
	call->ops = ops_of(call);
	bool gathered =
		call->client->filtered && call->method && call->method->class != CK_CRI_PASS;
	if (!gathered && (daemon->conf.shadow || !ck_pass_must_wait(call))) {
		ck_pass_begin(call, headers, n);
		return;
	}
	call->reader.max =
		call->method->class == CK_CRI_CREATE ? CK_REQUEST_MAX : daemon->conf.list_max;
	int r = keep_headers(call, headers, n) < 0 ? ck_nomem(&err) : enough(call->client, &err);
	if (r < 0)
		refuse(call, CK_GRPC_RESOURCE_EXHAUSTED, err.text);
}

static void client_opened(struct ck_connection *conn, struct ck_h2_stream *stream, void *userdata)
{
	struct ck_peer *client = userdata;
	struct ck_call *call = CK_NEW(struct ck_call);
	(void)conn;
	if (!call)
		return; /* the stream is refused */
	call->client = client;
	client->held += sizeof(*call);
	client->daemon->calls++;
	ck_client_counts(client, 1);
	call->daemon = client->daemon;
	DL_APPEND(call->daemon->metrics.calls_open, call);
	call->stream = stream;
	call->ops = &ck_pass_ops;
	ck_h2_stream_handle(stream, &call_handler, call);
}

/* ---- clients --------------------------------------------------------------------------------- */

static void client_free(struct ck_peer *client)
{
	DL_DELETE(client->listener->clients, client);
	ck_client_leaves(client);
	ck_connection_free(client->conn);
	free(client);
}

static void client_closed(struct ck_connection *conn, bool unread, const char *why, void *userdata)
{
	struct ck_peer *client = userdata;
	(void)conn;
	(void)why;
	ck_create_conn_gone(client, unread);
	client_free(client);
}

static void client_late_reset(struct ck_connection *conn, int32_t id, uint32_t error,
			      void *userdata)
{
	(void)conn;
	(void)error;
	ck_create_late_reset(userdata, id);
}

static void client_all_read(struct ck_connection *conn, void *userdata)
{
	(void)conn;
	ck_create_all_read(userdata);
}

static const struct ck_connection_owner client_owner = {
	.all_read = client_all_read,
	.opened = client_opened,
	.late_reset = client_late_reset,
	.closed = client_closed,
};

/* The mode of the socket decides who can open it; allow_uids decides whom we serve. */
static bool may_connect(const struct ck_listener *listener, int fd, struct ucred *ret_peer)
{
	struct ck_daemon *daemon = listener->daemon;
	const struct ck_conf *conf = &daemon->conf;
	socklen_t len = sizeof(*ret_peer);
	char text[128];
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret_peer, &len) < 0)
		return false;
	if (ck_access_allows(listener->filtered ? &conf->cri_socket : &conf->unfiltered_socket,
			     ret_peer->uid))
		return true;
	snprintf(text, sizeof(text), "user %u (process %d) is not in %s.allow_uids",
		 (unsigned)ret_peer->uid, (int)ret_peer->pid,
		 listener->filtered ? "cri_socket" : "unfiltered_socket");
	ck_refused(daemon, CK_REFUSED_UID, text);
	return false;
}

static void accepted(int fd, void *userdata)
{
	struct ck_listener *listener = userdata;
	struct ck_daemon *daemon = listener->daemon;
	struct ucred peer = { 0 };
	struct ck_error err;
	if (!may_connect(listener, fd, &peer)) {
		close(fd);
		return;
	}
	struct ck_peer *client = CK_NEW(struct ck_peer);
	if (!client) {
		close(fd);
		return;
	}
	client->listener = listener;
	client->daemon = daemon;
	client->filtered = listener->filtered && !daemon->conf.shadow;
	if (ck_connection_new(&daemon->loop, fd, CK_H2_SERVER, &client_owner, client, &client->conn,
			      &err) < 0) {
		ck_log(CK_LOG_ERROR, "a connection could not be served: %s", err.text);
		free(client);
		return;
	}
	DL_PREPEND(listener->clients, client);
	daemon->metrics.clients_total++;
	if (ck_client_comes(client, &peer, &err) < 0) {
		ck_refused(daemon, CK_REFUSED_CLIENT, err.text);
		ck_connection_refuse(client->conn, err.text);
	}
}

int ck_listen_start(struct ck_daemon *daemon, int fd, bool filtered,
		    struct ck_listener **ret_listener, struct ck_error *err)
{
	struct ck_listener *listener = CK_NEW(struct ck_listener);
	if (!listener) {
		close(fd);
		return ck_nomem(err);
	}
	*listener = (struct ck_listener){ .daemon = daemon, .filtered = filtered };
	int r = ck_accept_start(&daemon->loop, fd, accepted, listener, &listener->acceptor, err);
	if (r < 0) {
		free(listener);
		return r;
	}
	*ret_listener = listener;
	return 0;
}

void ck_listen_stop(struct ck_listener *listener)
{
	struct ck_peer *client;
	ck_acceptor_free(CK_TAKE(listener->acceptor));
	DL_FOREACH (listener->clients, client)
		ck_connection_shut(client->conn);
}

void ck_listener_free(struct ck_listener *listener)
{
	if (!listener)
		return;
	ck_acceptor_free(listener->acceptor);
	struct ck_peer *client;
	DL_FOREACH (listener->clients, client)
		ck_connection_end(client->conn, "crikeepd ends");
	ck_loop_flush(&listener->daemon->loop); /* ends their calls */
	free(listener);
}
