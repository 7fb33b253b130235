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

void ck_queued_free(struct ck_queued *delivery)
{
	if (!delivery)
		return;
	ck_know_unref(delivery->known);
	ck_blob_unref(delivery->pod);
	ck_blob_unref(delivery->object);
	ck_blob_unref(delivery->extra);
	free(delivery);
}

/* ---- who hears of it ------------------------------------------------------------------------- */

/* has this connection still to hear of this event? */
bool ck_tour_owes(enum ck_nri_event event, const struct ck_knower *k)
{
	if (ck_nri_event_announces(event))
		return !k->told && !k->listed && !k->announcing;
	if (!k->told && !k->listed && !k->announcing)
		return false;
	if (event == CK_NRI_POST_CREATE_CONTAINER)
		return !k->listed && !k->stopped;
	if (ck_nri_event_stops(event) && k->plugin->overdue_since && CK_BROKEN(R30))
		return false;
	if (event == CK_NRI_START_CONTAINER && CK_BROKEN(R34))
		return false;
	if (ck_nri_event_stops(event))
		return (!k->stopped && !k->stopping) || CK_BROKEN(R24);
	if (ck_nri_event_removes(event))
		return !k->removed || CK_BROKEN(R29);
	return !k->stopped;
}

/* the event passes by @k: its bytes go out, or it is not subscribed to it */
void ck_tour_passes(enum ck_nri_event event, struct ck_knower *k)
{
	if (ck_nri_event_announces(event))
		k->told = true;
	else if (ck_nri_event_stops(event))
		k->stopped = true;
	else if (ck_nri_event_removes(event))
		k->removed = k->stopped = true;
}

bool ck_queued_passes(const struct ck_queued *delivery, const struct ck_plugin *plugin)
{
	struct ck_knower *k = ck_know_who(delivery->known, plugin);
	enum ck_nri_event event = delivery->event;
	if (!k)
		return false; /* it was left out of its list, because it had gone */
	k->announcing -= ck_nri_event_announces(event);
	k->stopping -= ck_nri_event_stops(event);
	if (ck_nri_event_announces(event)) {
		if (k->told)
			return false;
	} else if (!k->told) {
		return false;
	} else if (ck_nri_event_removes(event)
			   ? k->removed && !CK_BROKEN(R29)
			   : k->stopped && !(ck_nri_event_stops(event) && CK_BROKEN(R24))) {
		return false; /* once; and behind a Stop that was faster comes nothing but Remove */
	}
	ck_tour_passes(event, k);
	return true;
}

void ck_queued_unsent(const struct ck_queued *delivery, const struct ck_plugin *plugin)
{
	struct ck_knower *k = ck_know_who(delivery->known, plugin);
	if (k && ck_nri_event_announces(delivery->event))
		k->told = false; /* so it does not hear of its end either */
}

bool ck_tour_anybody(const struct ck_tour *tour, enum ck_nri_event event)
{
	for (const struct ck_knower *k = tour->known->knowers; k; k = k->next)
		if (ck_tour_owes(event, k) && ck_plugin_joined(k->plugin) &&
		    ck_plugin_wants(k->plugin, event))
			return true;
	return false;
}

bool ck_tour_validators(const struct ck_tour *tour)
{
	if (tour->consulted && !tour->told)
		return false; /* that was validated then, and nothing has been changed since */
	for (const struct ck_knower *k = tour->known->knowers; k; k = k->next)
		if (ck_plugin_joined(k->plugin) &&
		    ck_plugin_wants(k->plugin, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT))
			return true;
	return false;
}
