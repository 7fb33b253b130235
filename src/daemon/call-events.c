/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GetContainerEvents on the kubelet's socket. Each subscription has its own stream to the runtime,
 * and its messages are filtered one by one. The window of that stream grows as the client reads, so
 * a client that does not read stalls its own stream only. Events that crikeepd makes itself are
 * queued as well. A client that falls too far behind is cut off, and so is one for which an event
 * could not be queued. It must list again, as a kubelet does whenever its stream ends.
 *
 * An event is dropped if the cache knows its object to be hidden, by id or by key, or if it has
 * only an id that is not known to be visible. The cache is told of the end of a hidden object all
 * the same.
 *
 * Each event is sent exactly once. The runtime reported a creation while it was hidden. When it is
 * committed, its CREATED, and a sandbox's STARTED, are made again (commit-events.c). The runtime's
 * own event may arrive after the commit, because it is on another connection. So each subscription
 * remembers for which ids it has had CREATED and STARTED, and drops the second one. A later event
 * of the runtime may overtake a made one (STARTED of a container before its CREATED). A kubelet
 * only goes by the status and the time in each of them.
 */
#include <utlist.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cri/message.h"
#include "src/daemon/call.h"
#include "src/daemon/commit-events.h"
#include "src/cri/filter.h"

struct told { /* CREATED and STARTED that were sent to a subscriber */
	char *id;
	unsigned types;
};

struct sub {
	struct sub *prev, *next;
	struct ck_events *events;
	struct ck_h2_stream *client, *up;
	bool begun; /* response headers were sent */
	struct ck_grpc_reader reader;
	size_t owed;       /* bytes read from the runtime, by which its window has not grown yet */
	struct told *told; /* a ring */
	size_t told_at;
};

struct ck_events {
	struct ck_daemon *daemon;
	const struct ck_cri_method *method;
	struct ck_announcer *announcer;
	struct sub *subs;
};

/* ---- the end of a subscription --------------------------------------------------------------- */

/* resets the streams that are still there */
static void sub_free(struct ck_events *events, struct sub *sub)
{
	DL_DELETE(events->subs, sub);
	if (sub->client)
		ck_h2_stream_reset(sub->client, CK_H2_CANCEL);
	if (sub->up)
		ck_h2_stream_reset(sub->up, CK_H2_CANCEL);
	for (size_t i = 0; sub->told && i < CK_EVENTS_TOLD; i++)
		free(sub->told[i].id);
	free(sub->told);
	ck_grpc_reader_fini(&sub->reader);
	free(sub);
	if (!events->subs)
		ck_announcer_listen(events->announcer, false);
}

static void end(struct ck_events *events, struct sub *sub, int grpc, const char *message)
{
	if (ck_grpc_answer(sub->client, sub->begun, grpc, message, NULL, 0) == 0)
		ck_h2_stream_forget(CK_TAKE(sub->client));
	sub_free(events, sub);
}

/* A status would wait behind what the client does not read. A reset frees the queue, and a gRPC
 * client reads it as RESOURCE_EXHAUSTED. */
static void cut_off(struct sub *sub, const char *why)
{
	sub->events->daemon->metrics.clients_cut++;
	ck_log(CK_LOG_WARNING, "a subscription to events was cut off: %s", why);
	ck_h2_stream_reset(CK_TAKE(sub->client), CK_H2_ENHANCE_YOUR_CALM);
	sub_free(sub->events, sub);
}

/* ---- to the client --------------------------------------------------------------------------- */

static void give_back(struct sub *sub)
{
	if (!sub->owed || !sub->up || ck_h2_stream_queued(sub->client) > CK_STREAM_WINDOW / 2)
		return;
	ck_h2_stream_consume(sub->up, sub->owed);
	sub->owed = 0;
}

/* false: the subscription is over */
static bool queue(struct sub *sub, const void *message, size_t len)
{
	int r = 0;
	if (!sub->begun)
		r = ck_grpc_begin(sub->client);
	sub->begun = sub->begun || r == 0;
	if (r == 0)
		r = ck_grpc_send(sub->client, message, len);
	if (r == 0 && ck_h2_stream_queued(sub->client) <= CK_EVENTS_QUEUED)
		return true;
	cut_off(sub, r < 0 ? "out of memory" : "it does not read");
	return false;
}

/* true: this event of @id was not sent to @sub yet */
static bool first_time(struct sub *sub, const char *id, int type)
{
	unsigned bit = 1u << type;
	if (type != CK_EVENT_CREATED && type != CK_EVENT_STARTED)
		return true;
	for (size_t i = 0; i < CK_EVENTS_TOLD; i++) {
		struct told *told = &sub->told[i];
		if (!told->id || strcmp(told->id, id))
			continue;
		bool first = !(told->types & bit);
		told->types |= bit;
		return first;
	}
	struct told *told = &sub->told[sub->told_at];
	sub->told_at = (sub->told_at + 1) % CK_EVENTS_TOLD;
	free(told->id);
	/* without memory it may be sent twice, which does no harm */
	*told = (struct told){ .id = ck_strdup(id), .types = bit };
	return true;
}

static void announced(const char *id, enum ck_event_type type, const void *message, size_t len,
		      void *userdata)
{
	struct ck_events *events = userdata;
	struct sub *sub, *next;
	DL_FOREACH_SAFE (events->subs, sub, next) {
		if (first_time(sub, id, type) && queue(sub, message, len))
			events->daemon->metrics.events_made++;
	}
}

/* ---- one event of the runtime ---------------------------------------------------------------- */

struct look {
	struct ck_view *view;
	int type;
	bool sandbox_shown;
};

static int hides(const struct ck_object *object, bool id_only, void *userdata)
{
	struct look *look = userdata;
	int r = ck_view_hides(look->view, object);
	if (r != 0 || !id_only) {
		look->sandbox_shown = look->sandbox_shown || (r == 0 && object->kind == CK_SANDBOX);
		return r;
	}
	r = ck_call_shows(look->view, object);
	if (r < 0)
		return r;
	/* The event comes after the answer to the removal, when the container is not known any
	 * more. So DELETED is sent for each container that is not known to be hidden, if its pod is
	 * visible. */
	return !r && !(look->type == CK_EVENT_DELETED && look->sandbox_shown &&
		       object->kind == CK_CONTAINER);
}

/* the id in the event; "": none, or not a valid one */
static void subject(const void *message, size_t len, char id[CK_ID_MAX + 1])
{
	struct ck_wire_field field = { 0 };
	ck_cri_last(ck_wire_begin(message, len), CRI_ContainerEventResponse_container_id, &field,
		    NULL);
	if (!ck_cri_is_id(field.data, field.len))
		field.len = 0;
	else
		memcpy(id, field.data, field.len);
	id[field.len] = '\0';
}

/* A sandbox that stops ends what is being created in it (K16), so the cache is told of hidden
 * objects too. A deleted object is at least dead; the next list, or its destruction, tells the
 * rest. */
static void tell_cache(struct ck_daemon *daemon, int type, const char *id)
{
	if (type != CK_EVENT_STOPPED && type != CK_EVENT_DELETED)
		return;
	if (ck_object_seen(daemon->cache, CK_CONTAINER, id, CK_CONDITION_DEAD) == -CK_ENOTFOUND)
		ck_object_seen(daemon->cache, CK_SANDBOX, id, CK_CONDITION_DEAD);
	else
		ck_exits_saw(daemon, id);
}

/* false: the subscription is over */
static bool event(struct sub *sub, const void *message, size_t len)
{
	struct ck_events *events = sub->events;
	struct ck_daemon *daemon = events->daemon;
	struct look look = { .type = ck_filter_event_type(message, len) };
	struct ck_bytes cut = { 0 };
	struct ck_error err = { 0 };
	char id[CK_ID_MAX + 1];
	int r = ck_view_begin(daemon->cache, &look.view, &err);
	if (r == 0)
		r = ck_filter_response(events->method, message, len, hides, &look, &cut, NULL,
				       &err);
	ck_view_free(look.view);
	if (r < 0 && r != -CK_EMALFORMED) {
		cut_off(sub, err.text);
		return false;
	}
	subject(message, len, id);
	if (r == -CK_EMALFORMED) { /* its object is not known */
		ck_log(CK_LOG_WARNING,
		       "an event of the runtime was dropped because it cannot be read: %s",
		       err.text);
		r = CK_FILTER_EMPTIED;
	} else {
		tell_cache(daemon, look.type, id);
	}
	bool over = false;
	if (r == CK_FILTER_EMPTIED) {
		daemon->metrics.events_hidden++;
	} else if (first_time(sub, id, look.type)) {
		over = !queue(sub, r == CK_FILTER_CUT ? cut.p : message,
			      r == CK_FILTER_CUT ? cut.len : len);
		daemon->metrics.events_sent += !over;
	}
	ck_bytes_free(&cut);
	return !over;
}

/* ---- the stream to the runtime --------------------------------------------------------------- */

static void up_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	struct sub *sub = userdata;
	bool last = ck_h2_find(headers, n, "grpc-status") != NULL;
	(void)stream;
	if (sub->begun && !last)
		return; /* a made event has sent the headers */
	if (ck_h2_stream_headers(sub->client, headers, n, last && !sub->begun) < 0) {
		cut_off(sub, "out of memory");
		return;
	}
	sub->begun = true;
	if (!last)
		return;
	ck_h2_stream_forget(CK_TAKE(sub->client));
	ck_h2_stream_forget(CK_TAKE(sub->up));
	sub_free(sub->events, sub);
}

static void up_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		    void *userdata)
{
	struct sub *sub = userdata;
	struct ck_error err;
	size_t used;
	(void)stream;
	sub->owed += n;
	while (n) {
		int r = ck_grpc_read(&sub->reader, bytes, n, &used, &err);
		if (r < 0) {
			end(sub->events, sub, CK_GRPC_INTERNAL, err.text);
			return;
		}
		if (r > 0 && !event(sub, sub->reader.message.p, sub->reader.message.len))
			return;
		bytes += used;
		n -= used;
	}
	give_back(sub);
}

static void up_end(struct ck_h2_stream *stream, void *userdata)
{
	struct sub *sub = userdata;
	(void)stream;
	ck_h2_stream_forget(CK_TAKE(sub->up));
	end(sub->events, sub, CK_GRPC_UNAVAILABLE, "the runtime's events ended without a status");
}

static void up_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct sub *sub = userdata;
	(void)stream;
	(void)error;
	sub->up = NULL;
	end(sub->events, sub, CK_GRPC_UNAVAILABLE, "the runtime's connection ended");
}

static const struct ck_h2_handler up_handler = {
	.headers = up_headers,
	.data = up_data,
	.end = up_end,
	.closed = up_closed,
};

/* ---- the client's stream --------------------------------------------------------------------- */

static void client_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
			void *userdata)
{
	(void)bytes;
	(void)userdata;
	ck_h2_stream_consume(stream, n); /* more than the one request */
}

static void client_sent(struct ck_h2_stream *stream, size_t n, void *userdata)
{
	(void)stream;
	(void)n;
	give_back(userdata);
}

static void client_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct sub *sub = userdata;
	(void)stream;
	(void)error;
	sub->client = NULL;
	sub_free(sub->events, sub);
}

static const struct ck_h2_handler client_handler = {
	.data = client_data,
	.sent = client_sent,
	.closed = client_closed,
};

static unsigned subs_of(const struct ck_events *events, const struct ck_h2 *h2)
{
	const struct sub *sub;
	unsigned n = 0;
	DL_FOREACH (events->subs, sub)
		n += ck_h2_stream_h2(sub->client) == h2;
	return n;
}

int ck_events_subscribe(struct ck_daemon *daemon, struct ck_h2_stream *client,
			const struct ck_h2_header *headers, size_t n, const void *request,
			size_t len, struct ck_error *err)
{
	struct ck_events *events = daemon->events;
	if (subs_of(events, ck_h2_stream_h2(client)) >= CK_CLIENT_SUBS)
		return ck_fail(err, CK_ETOOBIG,
			       "this connection has %u subscriptions to events, and more are not "
			       "allowed",
			       CK_CLIENT_SUBS);
	struct sub *sub = CK_NEW(struct sub);
	if (!sub)
		return ck_nomem(err);
	*sub = (struct sub){ .events = events, .reader.max = CK_REQUEST_MAX };
	DL_PREPEND(events->subs, sub);
	int r = 0;
	if (!(sub->told = ck_alloc(CK_EVENTS_TOLD * sizeof(*sub->told))))
		r = ck_nomem(err);
	if (r == 0) {
		ck_announcer_listen(events->announcer, true);
		r = ck_upstream_open(daemon->upstream, CK_LANE_PASS, headers, n, &up_handler, sub,
				     &sub->up, err);
	}
	if (r == 0 && ck_grpc_send(sub->up, request, len) < 0)
		r = ck_nomem(err);
	if (r < 0) {
		sub_free(sub->events, sub);
		return r;
	}
	ck_h2_stream_end(sub->up);
	sub->client = client;
	ck_h2_stream_handle(client, &client_handler, sub);
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

int ck_events_new(struct ck_daemon *daemon, struct ck_error *err)
{
	struct ck_events *events = CK_NEW(struct ck_events);
	if (!events)
		return ck_nomem(err);
	*events = (struct ck_events){
		.daemon = daemon,
		.method = ck_cri_method_named("GetContainerEvents"),
	};
	int r = ck_announcer_new(daemon, announced, events, &events->announcer, err);
	if (r < 0) {
		free(events);
		return r;
	}
	daemon->events = events;
	return 0;
}

void ck_events_committed(struct ck_events *events, const struct ck_told *entry)
{
	if (events)
		ck_announcer_committed(events->announcer, entry);
}

void ck_events_free(struct ck_events *events)
{
	if (!events)
		return;
	while (events->subs)
		end(events, events->subs, CK_GRPC_UNAVAILABLE, "crikeepd is stopping");
	ck_announcer_free(events->announcer);
	events->daemon->events = NULL;
	free(events);
}
