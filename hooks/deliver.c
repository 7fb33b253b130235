/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event goes to one plugin after the other: what each is sent, what its answer does, what they
 * all want updated, and how the event ends.
 */
#include <stdarg.h>
#include <stdio.h>

#include "hooks/nri-int.h"
#include "src/base/duration.h"
#include "src/base/utf8.h"
#include "src/base/wire.h"

/* ---- the end --------------------------------------------------------------------------------- */

void ck_dispatch_refuse(struct ck_dispatch *dispatch, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(dispatch->refusal, sizeof(dispatch->refusal), fmt, args);
	va_end(args);
	dispatch->refused = true;
}

void ck_dispatch_note_told(struct ck_dispatch *dispatch, const struct ck_plugin *plugin)
{
	struct ck_bytes *names = &dispatch->told_names;
	if (ck_bytes_room(names, strlen(plugin->name) + 2) < 0)
		return;
	if (names->len)
		ck_bytes_add_text(names, " ");
	ck_bytes_add_text(names, plugin->name);
}

void ck_dispatch_withdraw(struct ck_dispatch *dispatch)
{
	struct ck_plugin *plugin;
	if (dispatch->object)
		DL_FOREACH (dispatch->nri->plugins, plugin)
			ck_plugin_unqueue(plugin, dispatch->object);
}

void ck_dispatch_end(struct ck_dispatch *dispatch)
{
	struct ck_nri *nri = dispatch->nri;
	struct ck_dispatch *other;
	ck_host_call_forget(CK_TAKE(dispatch->host_call));
	if (dispatch->at)
		CK_TAKE(dispatch->at)->dispatch = NULL;
	dispatch->phase = CK_DISPATCH_DONE;
	DL_DELETE(nri->dispatches, dispatch);
	DL_APPEND(nri->dispatches_done, dispatch);
	/* those that may have waited for it are looked at anew */
	DL_FOREACH (nri->dispatches, other)
		other->behind = other->behind && other->object != dispatch->object &&
				!ck_nri_object_is_in(dispatch->object, other->object);
	/* without a cache nobody releases it */
	if (dispatch->object && ck_nri_event_removes(dispatch->event) && !dispatch->object->entry)
		ck_nri_object_forget(nri, dispatch->object);
}

void ck_dispatch_end_refused(struct ck_dispatch *dispatch)
{
	if (ck_nri_event_announces(dispatch->event) ||
	    dispatch->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		ck_dispatch_withdraw(dispatch);
	ck_dispatch_end(dispatch);
}

/* ---- who hears of it ------------------------------------------------------------------------- */

bool ck_dispatch_has_recipients(const struct ck_dispatch *dispatch, enum ck_nri_event event)
{
	const struct ck_recipient *recipient;
	LL_FOREACH (dispatch->object->recipients, recipient)
		if (ck_recipient_needs(event, recipient) && ck_plugin_joined(recipient->plugin) &&
		    ck_plugin_wants(recipient->plugin, event))
			return true;
	return false;
}

bool ck_dispatch_has_validators(const struct ck_dispatch *dispatch)
{
	const struct ck_recipient *recipient;
	if (dispatch->consulted && !dispatch->told)
		return false; /* validated before it was created; nothing has changed since */
	LL_FOREACH (dispatch->object->recipients, recipient)
		if (ck_plugin_joined(recipient->plugin) &&
		    ck_plugin_wants(recipient->plugin, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT))
			return true;
	return false;
}

/* ---- one plugin after the other -------------------------------------------------------------- */

static bool is_before(const struct ck_dispatch *dispatch, const struct ck_plugin *plugin)
{
	int order = strncmp(plugin->name, dispatch->index, 2);
	return order < 0 || (order == 0 && plugin->serial <= dispatch->serial);
}

static struct ck_plugin *next_plugin(struct ck_dispatch *dispatch,
				     struct ck_recipient **ret_recipient)
{
	struct ck_plugin *plugin;
	DL_FOREACH (dispatch->nri->plugins, plugin) {
		if (!ck_plugin_joined(plugin) || is_before(dispatch, plugin))
			continue;
		*ret_recipient = ck_recipient_find(dispatch->object, plugin);
		if (*ret_recipient && ck_recipient_needs(dispatch->event, *ret_recipient))
			return plugin;
	}
	return NULL;
}

static int add_extra(struct ck_nri_delivery *delivery, const struct ck_bytes *bytes)
{
	delivery->extra = ck_blob_new(bytes->p, bytes->len);
	return delivery->extra ? 0 : -CK_ENOMEM;
}

static int fill_validation(struct ck_dispatch *dispatch, struct ck_nri_delivery *delivery,
			   struct ck_error *err)
{
	const char *names[CK_NRI_PLUGINS_MAX];
	size_t n = 0;
	struct ck_bytes bytes = { 0 };
	const struct ck_plugin *plugin;
	DL_FOREACH (dispatch->nri->plugins, plugin)
		/* one that has not answered was not consulted */
		if (ck_plugin_joined(plugin) && ck_recipient_find(dispatch->object, plugin) &&
		    !plugin->overdue_since && n < CK_COUNT(names))
			names[n++] = plugin->name;
	int r = ck_adjust_validation(dispatch->adjust, dispatch->pod ? dispatch->pod->bytes : NULL,
				     dispatch->pod ? dispatch->pod->len : 0, names, n, &bytes, err);
	if (r >= 0)
		r = add_extra(delivery, &bytes);
	ck_bytes_free(&bytes);
	return r;
}

/* what this plugin is sent: the container as plugins before it have changed it */
static int fill(struct ck_dispatch *dispatch, struct ck_nri_delivery *delivery,
		struct ck_error *err)
{
	struct ck_bytes bytes = { 0 }, seen = { 0 };
	int r = 0;
	delivery->pod = ck_blob_ref(dispatch->pod);
	delivery->container = ck_blob_ref(dispatch->container);
	switch (dispatch->event) {
	case CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT:
		return fill_validation(dispatch, delivery, err);
	case CK_NRI_CREATE_CONTAINER:
		r = ck_adjust_seen(dispatch->adjust, &seen, err);
		ck_blob_unref(CK_TAKE(delivery->container));
		if (r >= 0 && !(delivery->container = ck_blob_new(seen.p, seen.len)))
			r = ck_nomem(err);
		break;
	case CK_NRI_UPDATE_CONTAINER:
		r = ck_adjust_seen(dispatch->adjust, &seen, err);
		if (r >= 0)
			r = ck_bytes_field(&bytes, 3, seen.p, seen.len);
		break;
	case CK_NRI_UPDATE_POD_SANDBOX:
		if (dispatch->overhead)
			r = ck_bytes_field(&bytes, 2, dispatch->overhead->bytes,
					   dispatch->overhead->len);
		if (r >= 0 && dispatch->resources)
			r = ck_bytes_field(&bytes, 3, dispatch->resources->bytes,
					   dispatch->resources->len);
		break;
	default:
		break;
	}
	if (r >= 0 && bytes.len)
		r = add_extra(delivery, &bytes);
	ck_bytes_free(&bytes);
	ck_bytes_free(&seen);
	return r;
}

/* for the history: the first event, not one that follows it */
static void note_told(struct ck_dispatch *dispatch, const struct ck_plugin *plugin)
{
	dispatch->told_before = dispatch->told_names.len;
	if (dispatch->event == dispatch->asked)
		ck_dispatch_note_told(dispatch, plugin);
}

static void answered(struct ck_nri_delivery *delivery, struct ck_plugin *plugin,
		     const struct ck_ttrpc_answer *answer, int code);

static bool may_refuse(const struct ck_dispatch *dispatch, const struct ck_plugin *plugin,
		       enum ck_nri_policy policy)
{
	return !ck_nri_event_tears_down(dispatch->event) && plugin->policy >= policy;
}

/* It owes an answer for too long. Or it has no list yet, because the host takes so long to describe
 * what there is. */
static bool is_late(const struct ck_plugin *plugin)
{
	const struct ck_nri *nri = plugin->nri;
	return plugin->overdue_since ||
	       (plugin->state == CK_PLUGIN_LISTING && plugin->listing &&
		ck_nri_now(nri) - plugin->listing >= nri->request_timeout);
}

/* one that hangs harms itself: a late plugin is waited for only where its silence fails the event
 * (H5) */
static bool is_waited_for(const struct ck_dispatch *dispatch, const struct ck_plugin *plugin)
{
	return !is_late(plugin) || may_refuse(dispatch, plugin, CK_NRI_FAIL);
}

bool ck_dispatch_waits(const struct ck_dispatch *dispatch)
{
	const struct ck_plugin *plugin = ck_plugin_find(dispatch->nri, dispatch->serial);
	return !plugin || is_waited_for(dispatch, plugin);
}

/* true: the dispatch waits for this plugin, or has gone on already */
static bool deliver_to(struct ck_dispatch *dispatch, struct ck_plugin *plugin,
		       struct ck_recipient *recipient)
{
	struct ck_nri *nri = dispatch->nri;
	struct ck_error err = { 0 };
	struct ck_nri_delivery *delivery = CK_NEW(struct ck_nri_delivery);
	if (delivery) {
		delivery->done = answered;
		delivery->event = dispatch->event;
		delivery->object = ck_nri_object_ref(dispatch->object);
	}
	if (!delivery || fill(dispatch, delivery, &err) < 0) {
		const char *why = *err.text ? err.text : "out of memory";
		ck_nri_delivery_free(delivery);
		ck_nri_log(nri, CK_LOG_ERROR, "%s to plugin %s: %s",
			   ck_nri_event_name(dispatch->event), plugin->name, why);
		if (!ck_nri_event_tears_down(dispatch->event))
			ck_dispatch_refuse(dispatch, "plugin %s cannot be told: %s", plugin->name,
					   why);
		else /* nobody would tell it later; with a new connection it gets a new list */
			ck_plugin_close(plugin, CK_LOG_ERROR, "it cannot be told: %s", why);
		return false;
	}
	recipient->announcing += ck_nri_event_announces(dispatch->event);
	recipient->stopping += ck_nri_event_stops(dispatch->event);
	if (ck_nri_event_stops(dispatch->event))
		dispatch->object->stop_begun = true;
	dispatch->told += dispatch->event == dispatch->asked;
	note_told(dispatch, plugin);
	bool waits = is_waited_for(dispatch, plugin);
	if (waits) {
		delivery->dispatch = dispatch;
		dispatch->at = delivery;
		dispatch->due = ck_nri_now(nri) + nri->request_timeout;
	}
	/* may answer at once, and then the dispatch has moved on, or ended */
	ck_plugin_enqueue(plugin, delivery);
	return waits;
}

static void update_others(struct ck_dispatch *dispatch);

/* all have answered and agreed */
static void all_agreed(struct ck_dispatch *dispatch)
{
	struct ck_error err = { 0 };
	int r = 0;
	if (dispatch->event == CK_NRI_CREATE_CONTAINER && dispatch->adjust &&
	    ck_dispatch_has_validators(dispatch)) {
		dispatch->event = CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT;
		dispatch->index[0] = '\0';
		dispatch->serial = 0;
		ck_dispatch_deliver(dispatch);
		return;
	}
	if (dispatch->event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		dispatch->event = CK_NRI_CREATE_CONTAINER;
	if (dispatch->adjust && dispatch->event == CK_NRI_CREATE_CONTAINER) {
		r = ck_adjust_result(dispatch->adjust, &dispatch->adjustment, &err);
		if (r >= 0)
			r = ck_adjust_owners(dispatch->adjust, &dispatch->owners, &err);
	} else if (dispatch->adjust && dispatch->event == CK_NRI_UPDATE_CONTAINER &&
		   !ck_adjust_is_empty(dispatch->adjust)) {
		r = ck_adjust_result(dispatch->adjust, &dispatch->result_resources, &err);
	}
	if (r < 0) {
		ck_dispatch_refuse(dispatch, "%s", err.text);
		ck_dispatch_end_refused(dispatch);
		return;
	}
	dispatch->phase = CK_DISPATCH_UPDATE;
	dispatch->updates = dispatch->adjust ? ck_adjust_others_n(dispatch->adjust) : 0;
	dispatch->update_i = 0;
	update_others(dispatch);
}

static void next_event(struct ck_dispatch *dispatch)
{
	if (!dispatch->then || dispatch->cancelled) {
		ck_dispatch_end(dispatch);
		return;
	}
	dispatch->event = dispatch->then;
	dispatch->then = 0;
	dispatch->index[0] = '\0';
	dispatch->serial = 0;
	dispatch->phase = CK_DISPATCH_NEW; /* for the next ck_dispatches_timers() */
	ck_adjust_free(CK_TAKE(dispatch->adjust));
}

static void updated(struct ck_nri_job *host_call, int grpc, const void *bytes, size_t len)
{
	struct ck_dispatch *dispatch = host_call->owner;
	struct ck_adjust_other other = { 0 };
	(void)bytes;
	(void)len;
	dispatch->host_call = NULL;
	/* a container that has just gone is skipped, as an unknown one is */
	if (grpc != CK_GRPC_OK && grpc != CK_GRPC_NOT_FOUND &&
	    ck_adjust_other(dispatch->adjust, dispatch->update_i, &other, NULL) >= 0 &&
	    !other.ignore_failure) {
		if (ck_nri_event_tears_down(dispatch->event))
			ck_nri_log(dispatch->nri, CK_LOG_WARNING,
				   "plugin %s: updating container %.64s: %s", other.plugins,
				   other.container_id, ck_grpc_name(grpc));
		else
			ck_dispatch_refuse(dispatch, "plugin %s: updating container %.64s: %s",
					   other.plugins, other.container_id, ck_grpc_name(grpc));
	}
	dispatch->update_i++;
	update_others(dispatch);
}

/* one after the other; unknown containers are skipped */
static void update_others(struct ck_dispatch *dispatch)
{
	struct ck_nri *nri = dispatch->nri;
	struct ck_adjust_other other;
	struct ck_error err;
	for (; dispatch->update_i < dispatch->updates && !dispatch->refused; dispatch->update_i++) {
		if (ck_adjust_other(dispatch->adjust, dispatch->update_i, &other, &err) < 0)
			continue;
		const char *id = ck_update_target(nri, NULL, other.container_id);
		if (!id)
			continue;
		struct ck_blob *blob = ck_blob_new(other.resources, other.len);
		if (blob)
			dispatch->host_call =
				ck_host_call_new(nri, CK_HOST_CALL_UPDATE, CK_CONTAINER, id, NULL,
						 blob, updated, dispatch);
		ck_blob_unref(blob);
		if (dispatch->host_call)
			return;
	}
	if (dispatch->refused) {
		ck_dispatch_end_refused(dispatch);
		return;
	}
	if (dispatch->adjust)
		ck_update_evictions(nri, NULL, dispatch->adjust);
	next_event(dispatch);
}

void ck_dispatch_deliver(struct ck_dispatch *dispatch)
{
	struct ck_recipient *recipient = NULL;
	struct ck_plugin *plugin;
	if (ck_nri_event_removes(dispatch->event))
		dispatch->object->remove_begun = true;
	while (!dispatch->at && !dispatch->refused && !dispatch->cancelled &&
	       dispatch->phase == CK_DISPATCH_DELIVER &&
	       (plugin = next_plugin(dispatch, &recipient))) {
		enum ck_nri_event event = dispatch->event;
		memcpy(dispatch->index, plugin->name, 2);
		dispatch->serial = plugin->serial;
		/* a verdict for which nobody waits is not asked for */
		bool needless = event == CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT &&
				!is_waited_for(dispatch, plugin);
		if (ck_plugin_wants(plugin, event) && !needless) {
			dispatch->due = CK_NRI_FOREVER;
			if (deliver_to(dispatch, plugin, recipient))
				return;
			continue;
		}
		ck_recipient_mark(event, recipient);
	}
	if (dispatch->at || dispatch->phase != CK_DISPATCH_DELIVER)
		return;
	dispatch->due = CK_NRI_FOREVER;
	if (dispatch->refused)
		ck_dispatch_end_refused(dispatch);
	else if (dispatch->cancelled)
		ck_dispatch_end(dispatch);
	else
		all_agreed(dispatch);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void merge(struct ck_dispatch *dispatch, struct ck_plugin *plugin, enum ck_adjust_reply what,
		  const struct ck_ttrpc_answer *answer)
{
	struct ck_error err = { 0 };
	if (!dispatch->adjust)
		return;
	int r = ck_adjust_reply(dispatch->adjust, what, plugin->name, answer->payload, answer->len,
				&err);
	if (r == -CK_EMALFORMED) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "its answer cannot be read: %s", err.text);
		if (may_refuse(dispatch, plugin, CK_NRI_FAIL))
			ck_dispatch_refuse(dispatch, "plugin %s: its answer cannot be read",
					   plugin->name);
	} else if (r < 0) {
		if (ck_nri_event_tears_down(dispatch->event))
			ck_adjust_free(CK_TAKE(dispatch->adjust));
		else
			ck_dispatch_refuse(dispatch, "%s", err.text);
	} else if (dispatch->event == CK_NRI_CREATE_CONTAINER && !dispatch->before_create &&
		   !ck_adjust_is_empty(dispatch->adjust)) {
		plugin->adjusting = true;
		ck_dispatch_refuse(
			dispatch, "plugin %s wants to change the container, which exists already%s",
			plugin->name,
			dispatch->nri->adjust == CK_NRI_BEFORE_CREATE
				? ""
				: ": set adjust to before-create");
	}
}

static void validated(struct ck_dispatch *dispatch, struct ck_plugin *plugin,
		      const struct ck_ttrpc_answer *answer)
{
	struct ck_wire wire = ck_wire_begin(answer->payload, answer->len);
	struct ck_wire_field field;
	char reason[CK_TEXT_MAX + 1] = "", clean[CK_TEXT_MAX + 1];
	bool rejected = false;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0) {
		if (field.number == 1 && field.type == CK_WIRE_VARINT)
			rejected = field.value;
		else if (field.number == 2 && field.type == CK_WIRE_BYTES)
			snprintf(reason, sizeof(reason), "%.*s",
				 field.len < CK_TEXT_MAX ? (int)field.len : (int)CK_TEXT_MAX,
				 (const char *)field.data);
	}
	if (!rejected && r == 0)
		return;
	ck_utf8_clean(reason, false, clean, sizeof(clean));
	ck_dispatch_refuse(dispatch, "plugin %s rejects it: %s", plugin->name,
			   r < 0 ? "its answer cannot be read" : clean);
}

static void agreed(struct ck_dispatch *dispatch, struct ck_plugin *plugin,
		   const struct ck_ttrpc_answer *answer)
{
	switch (dispatch->event) {
	case CK_NRI_CREATE_CONTAINER:
		merge(dispatch, plugin, CK_REPLY_CREATE_CONTAINER, answer);
		break;
	case CK_NRI_UPDATE_CONTAINER:
		merge(dispatch, plugin, CK_REPLY_UPDATE_CONTAINER, answer);
		break;
	case CK_NRI_STOP_CONTAINER:
		merge(dispatch, plugin, CK_REPLY_STOP_CONTAINER, answer);
		break;
	case CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT:
		validated(dispatch, plugin, answer);
		break;
	default:
		break;
	}
}

static void answered(struct ck_nri_delivery *delivery, struct ck_plugin *plugin,
		     const struct ck_ttrpc_answer *answer, int code)
{
	struct ck_dispatch *dispatch = delivery->dispatch;
	if (!dispatch)
		return; /* nobody waits for it */
	delivery->dispatch = NULL;
	dispatch->at = NULL;
	if (code == CK_NRI_DELIVERY_NEEDLESS || code == CK_NRI_DELIVERY_UNSENT) {
		dispatch->told -= dispatch->event == dispatch->asked;
		dispatch->told_names.len = dispatch->told_before;
	}
	if (code == CK_GRPC_OK) {
		agreed(dispatch, plugin, answer);
	} else if (code == CK_NRI_DELIVERY_LOST) {
		if (may_refuse(dispatch, plugin, CK_NRI_FAIL))
			ck_dispatch_refuse(dispatch, "plugin %s: its connection broke",
					   plugin->name);
	} else if (code != CK_NRI_DELIVERY_NEEDLESS) {
		if (may_refuse(dispatch, plugin, CK_NRI_ERROR))
			ck_dispatch_refuse(dispatch, "plugin %s: %s", plugin->name,
					   *answer->message ? answer->message
							    : ck_grpc_name(answer->code));
	}
	ck_dispatch_deliver(dispatch);
}

void ck_dispatch_timed_out(struct ck_dispatch *dispatch)
{
	struct ck_plugin *plugin = ck_plugin_find(dispatch->nri, dispatch->serial);
	char span[CK_DURATION_TEXT];
	CK_TAKE(dispatch->at)->dispatch = NULL; /* it stays queued, and is delivered */
	if (plugin && may_refuse(dispatch, plugin, CK_NRI_FAIL))
		ck_dispatch_refuse(dispatch, "plugin %s: no answer within %s", plugin->name,
				   ck_duration_print(dispatch->nri->request_timeout, span));
	ck_dispatch_deliver(dispatch);
}
