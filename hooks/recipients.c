/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which connection knows which object. A connection enters an object's list once: when the object
 * is committed, or when the connection takes its snapshot. Whichever comes second finds it there.
 * All promises of "exactly once" (R1, H2) rest on this list.
 */
#include "hooks/nri-int.h"

struct ck_recipient *ck_recipient_find(const struct ck_nri_object *object,
				       const struct ck_plugin *plugin)
{
	struct ck_recipient *recipient;
	LL_SEARCH_SCALAR(object->recipients, recipient, serial, plugin->serial);
	return recipient;
}

struct ck_recipient *ck_recipient_add(struct ck_nri_object *object, struct ck_plugin *plugin)
{
	struct ck_recipient *recipient = CK_NEW(struct ck_recipient);
	if (!recipient)
		return NULL;
	recipient->plugin = plugin;
	recipient->serial = plugin->serial;
	LL_PREPEND(object->recipients, recipient);
	return recipient;
}

void ck_recipient_drop(struct ck_nri_object *object, const struct ck_plugin *plugin)
{
	struct ck_recipient *recipient = ck_recipient_find(object, plugin);
	if (recipient)
		LL_DELETE(object->recipients, recipient);
	free(recipient);
}

void ck_recipients_plugin_gone(struct ck_nri *nri, const struct ck_plugin *plugin)
{
	struct ck_nri_object *object;
	struct ck_dispatch *dispatch;
	DL_FOREACH (nri->objects, object)
		ck_recipient_drop(object, plugin);
	/* Dispatches hold objects that are out of the index. Deliveries do too, but these look only
	 * for the recipient of their own connection. */
	DL_FOREACH (nri->ended, object)
		ck_recipient_drop(object, plugin);
	DL_FOREACH (nri->dispatches, dispatch)
		if (dispatch->object)
			ck_recipient_drop(dispatch->object, plugin);
}

/* ---- who hears of an event ------------------------------------------------------------------- */

bool ck_recipient_consulted(const struct ck_recipient *recipient)
{
	return recipient && (recipient->told || recipient->announcing) && !recipient->listed &&
	       (ck_plugin_wants(recipient->plugin, CK_NRI_CREATE_CONTAINER) ||
		ck_plugin_wants(recipient->plugin, CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT));
}

bool ck_recipient_needs(enum ck_nri_event event, const struct ck_recipient *recipient)
{
	if (ck_nri_event_announces(event))
		return !recipient->told && !recipient->listed && !recipient->announcing;
	if (!recipient->told && !recipient->listed && !recipient->announcing)
		return false;
	if (event == CK_NRI_POST_CREATE_CONTAINER)
		return !recipient->listed && !recipient->stopped;
	if (ck_nri_event_stops(event))
		return !recipient->stopped && !recipient->stopping;
	if (ck_nri_event_removes(event))
		return !recipient->removed;
	return !recipient->stopped;
}

void ck_recipient_mark(enum ck_nri_event event, struct ck_recipient *recipient)
{
	if (ck_nri_event_announces(event))
		recipient->told = true;
	else if (ck_nri_event_stops(event))
		recipient->stopped = true;
	else if (ck_nri_event_removes(event))
		recipient->removed = recipient->stopped = true;
}

/* ---- the cache's calls: choose, released ----------------------------------------------------- */

int ck_recipients_add_all(struct ck_nri *nri, struct ck_nri_object *object)
{
	object->ours = true;
	for (struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_plugin_joined(plugin) && !ck_recipient_find(object, plugin) &&
		    !ck_recipient_add(object, plugin))
			return -CK_ENOMEM;
	return 0;
}

static void add_name(char *names, size_t size, const char *name)
{
	size_t len = strlen(names), n = strlen(name);
	if (len + n + 2 > size)
		return; /* cannot happen: the cache has room for CK_NRI_PLUGINS_MAX names */
	if (len)
		names[len++] = ' ';
	memcpy(names + len, name, n + 1);
}

int ck_recipients_choose(struct ck_nri *nri, const struct ck_told *told, char *names, size_t size)
{
	const char *absent = ck_plugins_absent(nri);
	bool anybody = false;
	names[0] = '\0';
	if (absent) {
		add_name(names, size, absent);
		return 1;
	}
	struct ck_nri_object *object = ck_nri_object_find(nri, told->kind, told->id);
	if (!object)
		object = ck_nri_object_find_not_created(nri, told);
	if (object && !*object->id && ck_nri_object_created(nri, object, told->id) < 0)
		goto nomem;
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		anybody = anybody || ck_plugin_joined(plugin);
	if (!anybody && !object)
		return 0;
	if (!object)
		object = ck_nri_object_ensure(nri, told->kind, told->id, told);
	if (!object || ck_recipients_add_all(nri, object) < 0)
		goto nomem;
	object->entry = told->entry;
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_recipient_find(object, plugin))
			add_name(names, size, plugin->name);
	return 0;
nomem:
	names[0] = '\0';
	add_name(names, size, "(out of memory)");
	return 1;
}

/* Its commit was not written: a connection that has not heard of it does not know it. If memory was
 * gone, a snapshot may have found it in between. A plugin whose list was sent with it would get it
 * twice, so it is disconnected. */
static void unchoose(struct ck_nri *nri, struct ck_nri_object *object)
{
	struct ck_recipient **at = &object->recipients;
	for (struct ck_recipient *recipient; (recipient = *at);) {
		if (recipient->listed && recipient->told)
			ck_plugin_close(
				recipient->plugin, CK_LOG_ERROR,
				"out of memory: it was told about an object that is not committed");
		if (recipient->told || recipient->announcing) {
			at = &recipient->next;
			continue;
		}
		*at = recipient->next;
		free(recipient);
	}
	if (!object->recipients && object->refs == 1)
		ck_nri_object_forget(nri, object);
}

/* somebody was told that it exists, and not that it is gone */
static bool owes_its_end(const struct ck_nri_object *object)
{
	const struct ck_recipient *recipient;
	LL_FOREACH (object->recipients, recipient)
		if ((recipient->told || recipient->listed || recipient->announcing) &&
		    !recipient->removed)
			return true;
	return false;
}

void ck_recipients_released(struct ck_nri *nri, const struct ck_told *told)
{
	struct ck_nri_object *object = ck_nri_object_find(nri, told->kind, told->id);
	if (!object)
		object = ck_nri_object_find_not_created(nri, told);
	if (!object)
		return;
	if (!told->gone) {
		unchoose(nri, object);
		return;
	}
	/* It was never created (H7), or has vanished from the runtime: its Stop and Remove begin in
	 * the next ck_nri_process(). */
	if (owes_its_end(object)) {
		ck_nri_object_ref(object);
		ck_nri_object_forget(nri, object);
		DL_APPEND(nri->ended, object);
	} else {
		ck_nri_object_forget(nri, object);
	}
}
