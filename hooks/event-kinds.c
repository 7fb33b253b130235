/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the events are: which announce an object, which end it, which can be refused; and who has
 * still to hear of one.
 */
#include "hooks/nri-int.h"

const char *ck_nri_event_name(enum ck_nri_event event)
{
	static const char *const names[] = {
#define CK_NRI_EVENT_NAME(name, value, text) [value] = text,
		CK_NRI_EVENTS(CK_NRI_EVENT_NAME)
#undef CK_NRI_EVENT_NAME
	};
	return event > 0 && event < CK_COUNT(names) ? names[event] : "?";
}

bool ck_nri_event_announces(enum ck_nri_event event)
{
	return event == CK_NRI_RUN_POD_SANDBOX || event == CK_NRI_CREATE_CONTAINER;
}

bool ck_nri_event_stops(enum ck_nri_event event)
{
	return event == CK_NRI_STOP_POD_SANDBOX || event == CK_NRI_STOP_CONTAINER;
}

bool ck_nri_event_removes(enum ck_nri_event event)
{
	return event == CK_NRI_REMOVE_POD_SANDBOX || event == CK_NRI_REMOVE_CONTAINER;
}

bool ck_nri_event_of_pod(enum ck_nri_event event)
{
	return event <= CK_NRI_REMOVE_POD_SANDBOX || event == CK_NRI_UPDATE_POD_SANDBOX ||
	       event == CK_NRI_POST_UPDATE_POD_SANDBOX;
}

bool ck_nri_event_tears_down(enum ck_nri_event event)
{
	switch (event) {
	case CK_NRI_RUN_POD_SANDBOX:
	case CK_NRI_CREATE_CONTAINER:
	case CK_NRI_START_CONTAINER:
	case CK_NRI_UPDATE_CONTAINER:
	case CK_NRI_UPDATE_POD_SANDBOX:
	case CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT:
		return false;
	case CK_NRI_STOP_POD_SANDBOX:
		return !CK_BROKEN(R21);
	default:
		return true;
	}
}

/* the state it shows may have changed since it was described */
bool ck_nri_event_needs_fresh(enum ck_nri_event event)
{
	switch (event) {
	case CK_NRI_RUN_POD_SANDBOX:
	case CK_NRI_STOP_POD_SANDBOX:
	case CK_NRI_POST_UPDATE_POD_SANDBOX:
	case CK_NRI_CREATE_CONTAINER:
	case CK_NRI_POST_START_CONTAINER:
	case CK_NRI_POST_UPDATE_CONTAINER:
	case CK_NRI_STOP_CONTAINER:
		return true;
	default:
		return false;
	}
}

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

/* ---- who hears of it ------------------------------------------------------------------------- */

/* has this connection still to hear of this event? */
bool ck_recipient_needs(enum ck_nri_event event, const struct ck_recipient *recipient)
{
	if (ck_nri_event_announces(event))
		return !recipient->told && !recipient->listed && !recipient->announcing;
	if (!recipient->told && !recipient->listed && !recipient->announcing)
		return false;
	if (event == CK_NRI_POST_CREATE_CONTAINER)
		return !recipient->listed && !recipient->stopped;
	if (ck_nri_event_stops(event) && recipient->plugin->overdue_since && CK_BROKEN(R30))
		return false;
	if (event == CK_NRI_START_CONTAINER && CK_BROKEN(R34))
		return false;
	if (ck_nri_event_stops(event))
		return (!recipient->stopped && !recipient->stopping) || CK_BROKEN(R24);
	if (ck_nri_event_removes(event))
		return !recipient->removed || CK_BROKEN(R29);
	return !recipient->stopped;
}

/* the event passes by @k: its bytes go out, or it is not subscribed to it */
void ck_recipient_mark(enum ck_nri_event event, struct ck_recipient *recipient)
{
	if (ck_nri_event_announces(event))
		recipient->told = true;
	else if (ck_nri_event_stops(event))
		recipient->stopped = true;
	else if (ck_nri_event_removes(event))
		recipient->removed = recipient->stopped = true;
}

bool ck_nri_delivery_begin(const struct ck_nri_delivery *delivery, const struct ck_plugin *plugin)
{
	struct ck_recipient *recipient = ck_recipient_find(delivery->object, plugin);
	enum ck_nri_event event = delivery->event;
	if (!recipient)
		return false; /* it was left out of its list, because it had gone */
	recipient->announcing -= ck_nri_event_announces(event);
	recipient->stopping -= ck_nri_event_stops(event);
	if (ck_nri_event_announces(event)) {
		if (recipient->told)
			return false;
	} else if (!recipient->told) {
		return false;
	} else if (ck_nri_event_removes(event)
			   ? recipient->removed && !CK_BROKEN(R29)
			   : recipient->stopped && !(ck_nri_event_stops(event) && CK_BROKEN(R24))) {
		return false; /* once; and behind a Stop that was faster comes nothing but Remove */
	}
	ck_recipient_mark(event, recipient);
	return true;
}

void ck_nri_delivery_unsent(const struct ck_nri_delivery *delivery, const struct ck_plugin *plugin)
{
	struct ck_recipient *recipient = ck_recipient_find(delivery->object, plugin);
	if (recipient && ck_nri_event_announces(delivery->event))
		recipient->told = false; /* so it does not hear of its end either */
}

bool ck_dispatch_has_recipients(const struct ck_dispatch *dispatch, enum ck_nri_event event)
{
	for (const struct ck_recipient *recipient = dispatch->object->recipients; recipient;
	     recipient = recipient->next)
		if (ck_recipient_needs(event, recipient) && ck_plugin_joined(recipient->plugin) &&
		    ck_plugin_wants(recipient->plugin, event))
			return true;
	return false;
}

bool ck_dispatch_has_validators(const struct ck_dispatch *dispatch)
{
	if (dispatch->consulted && !dispatch->told)
		return false; /* that was validated then, and nothing has been changed since */
	for (const struct ck_recipient *recipient = dispatch->object->recipients; recipient;
	     recipient = recipient->next)
		if (ck_plugin_joined(recipient->plugin) &&
		    ck_plugin_wants(recipient->plugin, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT))
			return true;
	return false;
}
