/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first list of a plugin: the pods and containers that exist. The connection is a recipient
 * already, so an object that is committed now comes as an event. The snapshot is taken in the
 * cache's critical section and leaves these objects out. The host describes each object of the
 * list. The list is sent in messages of at most 4 MiB. Events wait in the queue until then.
 */
#include <stdio.h>

#include "hooks/nri-int.h"
#include "src/base/wire.h"

#define CONTAINER_STATE   4u /* a field of Container, and one of its values */
#define CONTAINER_STOPPED 4u

/* ---- the snapshot ---------------------------------------------------------------------------- */

static int grow(struct ck_plugin *plugin)
{
	size_t room = plugin->items_room ? 2 * plugin->items_room : 64;
	struct ck_synchronize_item *items = ck_realloc(plugin->items, room * sizeof(*items));
	if (!items)
		return -CK_ENOMEM;
	plugin->items = items;
	plugin->items_room = room;
	return 0;
}

/* inside the cache's critical section */
static int snapshot_has(const struct ck_told *told, void *userdata)
{
	struct ck_plugin *plugin = userdata;
	struct ck_nri *nri = plugin->nri;
	struct ck_recipient *recipient;
	int r = 0;
	if (!told->id || !*told->id)
		return 0;
	ck_nri_lock(nri);
	struct ck_nri_object *object = ck_nri_object_ensure(nri, told->kind, told->id, told);
	if (!object) {
		r = -CK_ENOMEM;
	} else if (object->remove_begun || ck_recipient_find(object, plugin)) {
		/* plugins are told that it is gone (H1), or it comes as an event */
	} else if ((plugin->items_n == plugin->items_room && grow(plugin) < 0) ||
		   !(recipient = ck_recipient_add(object, plugin))) {
		r = -CK_ENOMEM;
	} else {
		recipient->listed = true;
		recipient->stopped = object->stop_begun; /* then only Remove is to come */
		object->entry = told->entry;
		plugin->items[plugin->items_n++] =
			(struct ck_synchronize_item){ .object = ck_nri_object_ref(object) };
	}
	ck_nri_unlock(nri);
	return r;
}

int ck_synchronize_snapshot(struct ck_plugin *plugin)
{
	struct ck_nri *nri = plugin->nri;
	return nri->snapshot(snapshot_has, plugin, nri->snapshot_source);
}

/* ---- descriptions ---------------------------------------------------------------------------- */

/* It is not listed, so the plugin hears nothing of it. */
static void leave_out(struct ck_plugin *plugin, struct ck_synchronize_item *item)
{
	ck_recipient_drop(item->object, plugin);
	ck_nri_object_unref(CK_TAKE(item->object));
	ck_blob_unref(CK_TAKE(item->description));
}

/* does its description say so? */
static bool has_stopped(const struct ck_blob *container)
{
	struct ck_wire wire = ck_wire_begin(container->bytes, container->len);
	struct ck_wire_field field;
	uint64_t state = 0;
	while (ck_wire_next(&wire, &field, NULL) > 0)
		if (field.number == CONTAINER_STATE && field.type == CK_WIRE_VARINT)
			state = field.value;
	return state == CONTAINER_STOPPED;
}

/* as it is known now. A list that shows a container stopped tells what its Stop would tell. */
static void list(const struct ck_plugin *plugin, struct ck_synchronize_item *item)
{
	struct ck_nri_object *object = item->object;
	struct ck_recipient *recipient = ck_recipient_find(object, plugin);
	item->description = ck_blob_ref(object->description);
	if (object->kind == CK_CONTAINER && has_stopped(item->description))
		object->stop_begun = true;
	if (recipient && object->kind == CK_CONTAINER && has_stopped(item->description))
		recipient->stopped = true;
}

/* the host could not ask the runtime: this says nothing about the object */
static bool is_away(int grpc)
{
	return grpc == CK_GRPC_UNAVAILABLE || grpc == CK_GRPC_RESOURCE_EXHAUSTED;
}

static void described(struct ck_nri_job *host_call, int grpc, const void *bytes, size_t len)
{
	struct ck_plugin *plugin = host_call->owner;
	struct ck_synchronize_item *item = &plugin->items[host_call->i];
	struct ck_error err = { 0 };
	item->host_call = NULL;
	plugin->items_open--;
	if (grpc == CK_GRPC_NOT_FOUND) {
		leave_out(plugin, item);
	} else if (grpc != CK_GRPC_OK ||
		   ck_nri_object_described(plugin->nri, item->object, bytes, len, &err) < 0) {
		if (grpc != CK_GRPC_OK)
			ck_nri_object_known(plugin->nri, item->object, bytes, len);
		plugin->items_failed++;
		plugin->items_away += is_away(grpc) || err.code == CK_ENOMEM;
		ck_nri_log(plugin->nri, CK_LOG_DEBUG, "%.64s cannot be described: %s",
			   item->object->id, *err.text ? err.text : ck_grpc_name(grpc));
	} else {
		list(plugin, item);
	}
	ck_synchronize_continue(plugin);
}

/* ---- the list is sent ------------------------------------------------------------------------ */

static void too_large(struct ck_plugin *plugin, struct ck_synchronize_item *item)
{
	ck_nri_log(plugin->nri, CK_LOG_ERROR,
		   "plugin %s is not told of %.64s: its description has %zu bytes", plugin->name,
		   item->object->id, item->description->len);
	leave_out(plugin, item);
}

/* the plugin has still to be told; a container only with its pod */
static bool belongs(const struct ck_plugin *plugin, const struct ck_nri_object *object)
{
	const struct ck_nri_object *pod = NULL;
	if (!ck_recipient_find(object, plugin))
		return false;
	if (object->kind == CK_CONTAINER && *object->sandbox_id)
		pod = ck_nri_object_find(plugin->nri, CK_SANDBOX, object->sandbox_id);
	return object->kind == CK_SANDBOX || !*object->sandbox_id ||
	       (pod && ck_recipient_find(pod, plugin));
}

/* the next of the list: pods first, so that no container comes before its pod */
static struct ck_synchronize_item *next_item(struct ck_plugin *plugin)
{
	for (; plugin->items_sent < 2 * plugin->items_n; plugin->items_sent++) {
		struct ck_synchronize_item *item =
			&plugin->items[plugin->items_sent % plugin->items_n];
		enum ck_kind kind =
			plugin->items_sent < plugin->items_n ? CK_SANDBOX : CK_CONTAINER;
		if (!item->object || !item->description || item->object->kind != kind)
			continue;
		if (belongs(plugin, item->object))
			return item;
		leave_out(plugin, item);
	}
	return NULL;
}

/* nobody waits longer for its answer than for that to an event (H5) */
static void called(struct ck_plugin *plugin, uint64_t left)
{
	struct ck_nri *nri = plugin->nri;
	nri->changed = true;
	if (nri->request_timeout < left)
		plugin->call_due = ck_nri_now(nri) + nri->request_timeout;
}

static void send_next(struct ck_plugin *plugin)
{
	struct ck_bytes message = { 0 };
	struct ck_synchronize_item *item;
	int r = 0;
	bool more = false;
	while (r == 0 && (item = next_item(plugin))) {
		size_t size = item->description->len + 16, room = CK_TTRPC_MAX - CK_TTRPC_ENVELOPE;
		if (size > room) {
			too_large(plugin, item);
			continue;
		}
		if (message.len + size > room) {
			more = true;
			break;
		}
		r = ck_bytes_field(&message, item->object->kind == CK_SANDBOX ? 1 : 2,
				   item->description->bytes, item->description->len);
		struct ck_recipient *recipient = ck_recipient_find(item->object, plugin);
		if (recipient)
			recipient->told = true;
		plugin->items_sent++;
	}
	if (r == 0 && more)
		r = ck_bytes_field_number(&message, 3, 1);
	uint64_t left = plugin->due - ck_nri_now(plugin->nri);
	if (r < 0)
		ck_plugin_close(plugin, CK_LOG_ERROR, "out of memory");
	else if (ck_plugin_call(plugin, "Synchronize", &message, left) == 0)
		called(plugin, left);
	ck_bytes_free(&message);
}

/* One broken object must not keep plugins from connecting (R4), and what is not in the list counts
 * as gone. So it is listed as it was described last; at first that is by its id and its names, or
 * by what the host knows of it. */
static void list_failed(struct ck_plugin *plugin)
{
	for (size_t i = 0; i < plugin->items_n; i++) {
		struct ck_synchronize_item *item = &plugin->items[i];
		if (!item->object || item->description)
			continue;
		ck_nri_log(plugin->nri, CK_LOG_ERROR,
			   "plugin %s is not told all of %.64s: the runtime does not describe it",
			   plugin->name, item->object->id);
		list(plugin, item);
	}
	plugin->items_failed = 0;
}

/* true: the host is asked again later, or the plugin is disconnected. While the runtime is busy or
 * away the list is not sent: nobody would complete half a list later (R3). */
static bool wait_for_host(struct ck_plugin *plugin)
{
	uint64_t now = ck_nri_now(plugin->nri);
	if (now - plugin->listing >= CK_NRI_DESCRIBE_MAX && !plugin->items_away) {
		list_failed(plugin);
		return false;
	}
	if (now - plugin->listing >= CK_NRI_DESCRIBE_MAX) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "the runtime does not describe %zu objects",
				plugin->items_failed);
		return true;
	}
	plugin->pause = plugin->pause ? 2 * plugin->pause : CK_NRI_DESCRIBE_AGAIN;
	if (plugin->pause > 8 * CK_NRI_DESCRIBE_AGAIN)
		plugin->pause = 8 * CK_NRI_DESCRIBE_AGAIN;
	plugin->due = now + plugin->pause;
	return true;
}

void ck_synchronize_ask_again(struct ck_plugin *plugin)
{
	plugin->due = CK_NRI_FOREVER;
	plugin->items_asked = plugin->items_failed = plugin->items_away = 0;
	ck_synchronize_continue(plugin);
}

void ck_synchronize_continue(struct ck_plugin *plugin)
{
	struct ck_nri *nri = plugin->nri;
	if (plugin->state != CK_PLUGIN_LISTING || plugin->want_snapshot)
		return;
	if (!plugin->listing)
		plugin->listing = ck_nri_now(nri);
	for (;
	     plugin->items_asked < plugin->items_n && plugin->items_open < CK_NRI_DESCRIBE_AT_ONCE;
	     plugin->items_asked++) {
		struct ck_synchronize_item *item = &plugin->items[plugin->items_asked];
		if (!item->object || item->description)
			continue; /* it has been described */
		item->host_call = ck_host_call_new(nri, CK_HOST_CALL_DESCRIBE, item->object->kind,
						   item->object->id, NULL, NULL, described, plugin);
		if (!item->host_call) {
			ck_plugin_close(plugin, CK_LOG_ERROR, "out of memory");
			return;
		}
		item->host_call->i = plugin->items_asked;
		plugin->items_open++;
	}
	if (plugin->items_open || plugin->items_asked < plugin->items_n)
		return;
	if (plugin->items_failed && wait_for_host(plugin))
		return;
	plugin->state = CK_PLUGIN_SYNCHRONIZING;
	plugin->due = ck_nri_now(nri) + nri->synchronize_timeout;
	send_next(plugin);
	ck_plugin_pump(plugin);
}

/* ---- its answer ------------------------------------------------------------------------------ */

static bool read_answer(const struct ck_ttrpc_answer *answer, bool *ret_more, bool *ret_updates)
{
	struct ck_wire wire = ck_wire_begin(answer->payload, answer->len);
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0) {
		if (field.number == 2 && field.type == CK_WIRE_VARINT)
			*ret_more = field.value;
		*ret_updates = *ret_updates || field.number == 1;
	}
	return r == 0;
}

static void ready(struct ck_plugin *plugin)
{
	plugin->state = CK_PLUGIN_READY;
	plugin->nri->changed = true;
	ck_nri_log(plugin->nri, CK_LOG_INFO, "plugin %s: connected%s", plugin->name,
		   plugin->launched >= 0 ? ", launched" : "");
	ck_plugin_pump(plugin);
}

void ck_synchronize_answered(struct ck_plugin *plugin, const struct ck_ttrpc_answer *answer)
{
	struct ck_error err;
	bool more = false, updates = false, pieces = next_item(plugin);
	if (answer->code != CK_GRPC_OK) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "it cannot be synchronized: %s",
				ck_grpc_name(answer->code));
		return;
	}
	if (!read_answer(answer, &more, &updates)) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "its answer to Synchronize cannot be read");
		return;
	}
	if (pieces && (!more || updates)) { /* it took the first message for the whole list */
		ck_plugin_close(plugin, CK_LOG_ERROR,
				"it is too old for the list of this node, which does not fit into "
				"one message");
		return;
	}
	if (pieces) {
		send_next(plugin);
		return;
	}
	plugin->due = CK_NRI_FOREVER;
	if (updates) {
		CK_AUTO(ck_adjust) *adjust = NULL;
		if (ck_adjust_others(&adjust, &err) < 0 ||
		    ck_adjust_reply(adjust, CK_REPLY_SYNCHRONIZE, plugin->name, answer->payload,
				    answer->len, &err) < 0)
			ck_nri_log(plugin->nri, CK_LOG_ERROR,
				   "plugin %s: updates with Synchronize: %s", plugin->name,
				   err.text);
		else
			ck_update_plain(plugin->nri, plugin, adjust);
	}
	ck_synchronize_fini(plugin);
	ready(plugin);
}

void ck_synchronize_fini(struct ck_plugin *plugin)
{
	for (size_t i = 0; i < plugin->items_n; i++) {
		ck_host_call_forget(plugin->items[i].host_call);
		ck_nri_object_unref(plugin->items[i].object);
		ck_blob_unref(plugin->items[i].description);
	}
	free(CK_TAKE(plugin->items));
	plugin->items_n = plugin->items_room = plugin->items_asked = plugin->items_open =
		plugin->items_sent = 0;
	plugin->items_failed = 0;
}
