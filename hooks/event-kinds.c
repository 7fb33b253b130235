/* SPDX-License-Identifier: Apache-2.0 */
/* What the events are: which announce an object, which end it, which can be refused. */
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
