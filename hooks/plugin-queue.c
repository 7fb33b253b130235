/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of one connection. They wait in order, and one is in flight: a Go plugin may handle
 * two requests in another order than it receives them (R33). A plugin that is late gets the rest
 * when it answers (H5).
 */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "hooks/nri-int.h"

void ck_nri_delivery_free(struct ck_nri_delivery *delivery)
{
	if (!delivery)
		return;
	ck_nri_object_unref(delivery->object);
	ck_blob_unref(delivery->pod);
	ck_blob_unref(delivery->container);
	ck_blob_unref(delivery->extra);
	free(delivery);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void write_out(struct ck_plugin *plugin)
{
	const unsigned char *p;
	size_t len;
	while (plugin->state != CK_PLUGIN_CLOSED && (p = ck_ttrpc_out(plugin->ttrpc, &len)) &&
	       len) {
		ssize_t n = send(plugin->fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0) {
			ck_ttrpc_sent(plugin->ttrpc, (size_t)n);
		} else if (errno == EAGAIN) {
			if (!plugin->writing)
				ck_nri_watch(plugin->nri, plugin->fd, EPOLLIN | EPOLLOUT, plugin,
					     true);
			plugin->writing = true;
			return;
		} else if (errno != EINTR) {
			ck_plugin_close(plugin, CK_LOG_WARNING, "its connection broke: %s",
					strerror(errno));
		}
	}
	if (plugin->state == CK_PLUGIN_CLOSED)
		return;
	if (plugin->writing)
		ck_nri_watch(plugin->nri, plugin->fd, EPOLLIN, plugin, true);
	plugin->writing = false;
	if (plugin->state == CK_PLUGIN_REFUSED)
		ck_plugin_close(plugin, CK_LOG_WARNING, "refused");
}

int ck_plugin_call(struct ck_plugin *plugin, const char *method, const struct ck_bytes *message,
		   uint64_t timeout)
{
	struct ck_error err;
	int r = ck_ttrpc_call(plugin->ttrpc, CK_NRI_SERVICE_PLUGIN, method, message->p,
			      message->len, timeout, &plugin->call, &err);
	if (r < 0) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "%s: %s", method, err.text);
		return r;
	}
	plugin->call_due = ck_nri_now(plugin->nri) + timeout;
	return 0;
}

/* ---- one event ------------------------------------------------------------------------------- */

/* it is next: it counts as sent, or something has made it needless (false) */
static bool begin(const struct ck_nri_delivery *delivery, const struct ck_plugin *plugin)
{
	struct ck_recipient *recipient = ck_recipient_find(delivery->object, plugin);
	enum ck_nri_event event = delivery->event;
	if (!recipient)
		return false; /* left out of the plugin's list: it had gone */
	recipient->announcing -= ck_nri_event_announces(event);
	recipient->stopping -= ck_nri_event_stops(event);
	if (ck_nri_event_announces(event)) {
		if (recipient->told)
			return false;
	} else if (!recipient->told) {
		return false;
	} else if (ck_nri_event_removes(event) ? recipient->removed : recipient->stopped) {
		return false; /* each is sent once; after a Stop comes nothing but Remove */
	}
	ck_recipient_mark(event, recipient);
	return true;
}

/* it counts as sent, but cannot be sent */
static void take_back(const struct ck_nri_delivery *delivery, const struct ck_plugin *plugin)
{
	struct ck_recipient *recipient = ck_recipient_find(delivery->object, plugin);
	if (recipient && ck_nri_event_announces(delivery->event))
		recipient->told = false; /* so the plugin does not hear of its end either */
}

/* does a stub of before v0.12 know this event as a StateChange only? */
static bool has_fallback(enum ck_nri_event event)
{
	switch (event) {
	case CK_NRI_CREATE_CONTAINER:
	case CK_NRI_UPDATE_CONTAINER:
	case CK_NRI_STOP_CONTAINER:
	case CK_NRI_UPDATE_POD_SANDBOX:
	case CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT:
		return false;
	default:
		return true;
	}
}

static int build(const struct ck_nri_delivery *delivery, bool as_state_change,
		 struct ck_bytes *message)
{
	uint32_t field = 1;
	int r = 0;
	if (as_state_change)
		r = ck_bytes_field_number(message, field++, (uint64_t)delivery->event);
	if (delivery->event != CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT) {
		if (r == 0 && delivery->pod)
			r = ck_bytes_field(message, field, delivery->pod->bytes,
					   delivery->pod->len);
		if (r == 0 && delivery->container)
			r = ck_bytes_field(message, field + 1, delivery->container->bytes,
					   delivery->container->len);
	}
	if (r == 0 && delivery->extra)
		r = ck_bytes_add(message, delivery->extra->bytes, delivery->extra->len);
	return r;
}

/* @r: why it was not sent. Nobody would announce it a second time */
static bool is_sent_again(const struct ck_nri_delivery *delivery, int r)
{
	return r == -CK_ENOMEM && ck_nri_event_announces(delivery->event);
}

static int send_event(struct ck_plugin *plugin, const struct ck_nri_delivery *delivery,
		      uint64_t timeout)
{
	struct ck_bytes message = { 0 };
	struct ck_error err;
	bool as_state_change = plugin->old && has_fallback(delivery->event);
	const char *method = as_state_change ? "StateChange" : ck_nri_event_name(delivery->event);
	int r = build(delivery, as_state_change, &message);
	r = r < 0 ? ck_nomem(&err)
		  : ck_ttrpc_call(plugin->ttrpc, CK_NRI_SERVICE_PLUGIN, method, message.p,
				  message.len, timeout, &plugin->call, &err);
	ck_bytes_free(&message);
	if (r < 0)
		ck_nri_log(plugin->nri, is_sent_again(delivery, r) ? CK_LOG_DEBUG : CK_LOG_ERROR,
			   "plugin %s: %s cannot be sent: %s", plugin->name, method, err.text);
	return r;
}

static void failed(struct ck_plugin *plugin, enum ck_nri_event event, int code)
{
	plugin->failed++;
	plugin->nri->changed = true;
	snprintf(plugin->last_error, sizeof(plugin->last_error), "%s: %s", ck_nri_event_name(event),
		 ck_grpc_name(code));
	ck_nri_log(plugin->nri, CK_LOG_WARNING, "plugin %s: %s", plugin->name, plugin->last_error);
}

/* @code: of the answer, or one of ck_nri_delivery_fn */
static void done(struct ck_plugin *plugin, struct ck_nri_delivery *delivery,
		 const struct ck_ttrpc_answer *answer, int code)
{
	delivery->done(delivery, plugin, answer, code);
	ck_nri_delivery_free(delivery);
}

/* too large, or out of memory, or the connection has used up its numbers */
static void unsent(struct ck_plugin *plugin, struct ck_nri_delivery *delivery, int r)
{
	const struct ck_ttrpc_answer answer = { .code = CK_GRPC_RESOURCE_EXHAUSTED, .message = "" };
	bool ends = ck_nri_event_stops(delivery->event) || ck_nri_event_removes(delivery->event);
	take_back(delivery, plugin);
	failed(plugin, delivery->event, answer.code);
	done(plugin, delivery, &answer, CK_NRI_DELIVERY_UNSENT);
	/* nobody would tell it later; with a new connection it gets a new list */
	if (ends || r == -CK_ECLOSED)
		ck_plugin_close(plugin, CK_LOG_ERROR, "it cannot be told");
}

/* when there may be memory again, what is sent again is the next one */
static void send_failed(struct ck_plugin *plugin, struct ck_nri_delivery *delivery, int r)
{
	struct ck_recipient *recipient = ck_recipient_find(delivery->object, plugin);
	if (!recipient || !is_sent_again(delivery, r)) {
		unsent(plugin, delivery, r);
		return;
	}
	take_back(delivery, plugin);
	recipient->announcing++;
	DL_PREPEND(plugin->queue, delivery);
	plugin->queued++;
	plugin->due = ck_nri_now(plugin->nri) + CK_NRI_DESCRIBE_AGAIN;
}

/* ---- the queue ------------------------------------------------------------------------------- */

void ck_plugin_pump(struct ck_plugin *plugin)
{
	struct ck_nri *nri = plugin->nri;
	if (plugin->pumping)
		return; /* a caller further up goes on */
	plugin->pumping = true;
	while (plugin->state == CK_PLUGIN_READY && plugin->queue && !plugin->call &&
	       plugin->due == CK_NRI_FOREVER) {
		struct ck_nri_delivery *delivery = plugin->queue;
		DL_DELETE(plugin->queue, delivery);
		plugin->queued--;
		if (!begin(delivery, plugin)) {
			done(plugin, delivery, NULL, CK_NRI_DELIVERY_NEEDLESS);
			continue;
		}
		int r = send_event(plugin, delivery, nri->request_timeout);
		if (r < 0) {
			send_failed(plugin, delivery, r);
			continue;
		}
		plugin->sent++;
		nri->changed = true;
		plugin->call_due = ck_nri_now(nri) + nri->request_timeout;
		plugin->in_flight = delivery;
	}
	plugin->pumping = false;
	if (plugin->state != CK_PLUGIN_CLOSED)
		write_out(plugin);
}

void ck_plugin_enqueue(struct ck_plugin *plugin, struct ck_nri_delivery *delivery)
{
	DL_APPEND(plugin->queue, delivery);
	plugin->queued++;
	plugin->nri->changed = true;
	if (plugin->queued > CK_NRI_QUEUE_MAX)
		/* its events end as lost when it is freed */
		ck_plugin_close(plugin, CK_LOG_ERROR, "%u events wait for it", plugin->queued);
	else
		ck_plugin_pump(plugin);
}

void ck_plugin_unqueue(struct ck_plugin *plugin, const struct ck_nri_object *object)
{
	struct ck_nri_delivery *taken = NULL, *delivery, *next;
	struct ck_recipient *recipient = ck_recipient_find(object, plugin);
	DL_FOREACH_SAFE (plugin->queue, delivery, next) {
		if (delivery->object != object || !ck_nri_event_announces(delivery->event))
			continue;
		DL_DELETE(plugin->queue, delivery);
		DL_APPEND(taken, delivery);
		plugin->queued--;
		if (recipient)
			recipient->announcing--;
	}
	DL_FOREACH_SAFE (taken, delivery, next)
		done(plugin, delivery, NULL, CK_NRI_DELIVERY_NEEDLESS);
}

void ck_plugin_lose_events(struct ck_plugin *plugin)
{
	struct ck_nri_delivery *first = CK_TAKE(plugin->in_flight), *queue = CK_TAKE(plugin->queue);
	struct ck_nri_delivery *delivery, *next;
	if (first)
		done(plugin, first, NULL, CK_NRI_DELIVERY_LOST);
	DL_FOREACH_SAFE (queue, delivery, next)
		done(plugin, delivery, NULL, CK_NRI_DELIVERY_LOST);
}

bool ck_plugin_resend(struct ck_plugin *plugin, struct ck_nri_delivery *delivery, int code)
{
	uint64_t now = ck_nri_now(plugin->nri);
	if (code != CK_GRPC_UNIMPLEMENTED || plugin->old || !has_fallback(delivery->event))
		return false;
	plugin->old = true;
	uint64_t left = plugin->call_due > now ? plugin->call_due - now : CK_NS_PER_MS;
	int r = send_event(plugin, delivery, left);
	if (r < 0)
		send_failed(plugin, delivery, r);
	else
		plugin->in_flight = delivery;
	return true;
}

void ck_plugin_event_answered(struct ck_plugin *plugin, struct ck_nri_delivery *delivery,
			      const struct ck_ttrpc_answer *answer)
{
	if (answer->code != CK_GRPC_OK)
		failed(plugin, delivery->event, answer->code);
	done(plugin, delivery, answer, answer->code);
}
