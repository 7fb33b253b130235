/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections in the order in which plugins are asked: by index. Names, policies, who is
 * connected, and how a connection is closed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "hooks/nri-int.h"
#include "hooks/status-file.h"

/* "10-a" is called "10-a" and "a" */
static bool name_is(const char *full, const char *name)
{
	return !strcmp(full, name) || (strlen(full) > 3 && !strcmp(full + 3, name));
}

enum ck_nri_policy ck_plugin_policy(const struct ck_nri *nri, const char *name)
{
	for (size_t i = 0; i < nri->rules_n; i++)
		if (!strcmp(name, nri->rules[i].name))
			return nri->rules[i].policy;
	for (size_t i = 0; i < nri->rules_n; i++)
		if (name_is(name, nri->rules[i].name))
			return nri->rules[i].policy;
	return nri->policy;
}

static int by_index(const struct ck_plugin *a, const struct ck_plugin *b)
{
	int order = strncmp(a->name, b->name, 2);
	if (order)
		return order;
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}

void ck_plugins_add(struct ck_plugin *plugin)
{
	DL_INSERT_INORDER(plugin->nri->plugins, plugin, by_index);
}

void ck_plugins_remove(struct ck_plugin *plugin)
{
	DL_DELETE(plugin->nri->plugins, plugin);
}

bool ck_plugin_unregistered(const struct ck_plugin *plugin)
{
	return plugin->launched < 0 &&
	       (plugin->state == CK_PLUGIN_CONNECTED || plugin->state == CK_PLUGIN_REFUSED);
}

unsigned ck_plugins_count(const struct ck_nri *nri, bool unregistered)
{
	const struct ck_plugin *plugin;
	unsigned n = 0;
	DL_FOREACH (nri->plugins, plugin)
		n += plugin->state != CK_PLUGIN_CLOSED &&
		     ck_plugin_unregistered(plugin) == unregistered;
	return n;
}

struct ck_plugin *ck_plugin_find(const struct ck_nri *nri, uint64_t serial)
{
	struct ck_plugin *plugin;
	DL_SEARCH_SCALAR(nri->plugins, plugin, serial, serial);
	return plugin;
}

bool ck_plugin_joined(const struct ck_plugin *plugin)
{
	return plugin->state >= CK_PLUGIN_LISTING && plugin->state <= CK_PLUGIN_READY;
}

bool ck_plugins_has(const struct ck_nri *nri, const char *name)
{
	const struct ck_plugin *plugin;
	DL_FOREACH (nri->plugins, plugin)
		if (ck_plugin_joined(plugin) && name_is(plugin->name, name))
			return true;
	return false;
}

const char *ck_plugins_absent(const struct ck_nri *nri)
{
	for (size_t i = 0; i < nri->rules_n; i++)
		if (nri->rules[i].policy == CK_NRI_REQUIRED &&
		    !ck_plugins_has(nri, nri->rules[i].name))
			return nri->rules[i].name;
	return NULL;
}

/* ---- what is shown of them ------------------------------------------------------------------- */

static const char *state_name(const struct ck_plugin *plugin)
{
	if (plugin->overdue_since && ck_plugin_joined(plugin))
		return "overdue";
	switch (plugin->state) {
	case CK_PLUGIN_CONNECTED:
	case CK_PLUGIN_REFUSED:
		break;
	case CK_PLUGIN_REGISTERED:
		return "registered";
	case CK_PLUGIN_LISTING:
	case CK_PLUGIN_SYNCHRONIZING:
		return "synchronizing";
	case CK_PLUGIN_READY:
		return "ready";
	case CK_PLUGIN_CLOSED:
		return CK_STATUS_GONE;
	}
	return "connected";
}

void ck_plugin_show(const struct ck_plugin *plugin, struct ck_nri_plugin *ret_shown)
{
	*ret_shown = (struct ck_nri_plugin){
		.size = sizeof(*ret_shown),
		.name = plugin->name,
		.state = state_name(plugin),
		.policy = plugin->policy,
		.keep_connected = plugin->keep_connected,
		.launched = plugin->launched >= 0,
		.pid = plugin->pid,
		.events = plugin->events,
		.adjusting = plugin->adjusting,
		.queued = plugin->queued,
		.since = plugin->since,
		.overdue_since = plugin->overdue_since,
		.sent = plugin->sent,
		.late = plugin->late,
		.failed = plugin->failed,
		.last_error = plugin->last_error,
	};
}

void ck_plugins_forget_gone(struct ck_nri *nri, const char *name)
{
	for (size_t i = 0; i < nri->gone_n; i++) {
		if (strcmp(nri->gone[i].name, name) != 0)
			continue;
		memmove(&nri->gone[i], &nri->gone[i + 1],
			(--nri->gone_n - i) * sizeof(nri->gone[i]));
		return; /* there is one of each name */
	}
}

/* why it has gone is still shown when it has */
static void remember_gone(const struct ck_plugin *plugin)
{
	struct ck_nri *nri = plugin->nri;
	if (!*plugin->name || !*plugin->last_error || nri->closed)
		return;
	ck_plugins_forget_gone(nri, plugin->name);
	if (nri->gone_n == CK_NRI_GONE_MAX)
		memmove(&nri->gone[0], &nri->gone[1], --nri->gone_n * sizeof(nri->gone[0]));
	struct ck_nri_gone *gone = &nri->gone[nri->gone_n++];
	ck_plugin_show(plugin, &gone->last);
	gone->last.events = gone->last.queued = 0;
	gone->last.since = gone->last.overdue_since = 0;
	gone->last.adjusting = gone->last.pid = 0;
	memcpy(gone->name, plugin->name, sizeof(gone->name));
	memcpy(gone->error, plugin->last_error, sizeof(gone->error));
}

/* ---- the end --------------------------------------------------------------------------------- */

void ck_plugin_close(struct ck_plugin *plugin, enum ck_log_level level, const char *fmt, ...)
{
	char why[CK_ERROR_TEXT];
	va_list args;
	if (plugin->state == CK_PLUGIN_CLOSED)
		return;
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	ck_nri_log(plugin->nri, level, "plugin %s: %s; disconnected",
		   *plugin->name ? plugin->name : "(not registered)", why);
	if (level <= CK_LOG_WARNING)
		snprintf(plugin->last_error, sizeof(plugin->last_error), "%.*s", (int)CK_TEXT_MAX,
			 why);
	plugin->state = CK_PLUGIN_CLOSED;
	remember_gone(plugin);
	plugin->nri->plugin_closed = plugin->nri->changed = true;
	close(CK_TAKE_FD(plugin->fd)); /* which removes it from the epoll set */
	if (plugin->child_fd >= 0)
		close(CK_TAKE_FD(plugin->child_fd));
}
