/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "hooks/status-file.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/explain/whom.h"

/* when what is at the runtime began; 0: nothing is */
static uint64_t since(const struct ck_row *row)
{
	switch (row->state) {
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
		return row->created;
	case CK_STATE_EVICTING:
		return row->phase == CK_PHASE_CREATION  ? row->created
		       : row->phase == CK_PHASE_DESTROY ? row->changed
							: 0;
	default:
		return row->start == CK_START_CALLED || row->start == CK_START_LOST ? row->staged
										    : 0;
	}
}

static bool waits_for_plugins(const struct ck_row *row)
{
	return row->state == CK_STATE_COMMITTING ||
	       (row->state == CK_STATE_EVICTING &&
		(row->phase == CK_PHASE_HOOKS || row->phase == CK_PHASE_STOP ||
		 row->phase == CK_PHASE_REMOVE));
}

static void find_plugins(const struct ck_look *look, struct ck_culprits *ret)
{
	CK_AUTO_FREE char *path = ck_text_format("%s/" CK_STATUS_FILE, ck_cli.state_dir);
	const struct ck_reader *reader = look->reader;
	struct ck_nri_status *status = NULL;
	struct ck_error err;
	*ret = (struct ck_culprits){ 0 };
	if (!reader->owner_alive || ck_status_read(path, &status, &err) < 0 ||
	    !ck_look_this_boot(look, status->boot) ||
	    (reader->owner_pid && status->pid != reader->owner_pid)) {
		ck_status_free(status);
		return;
	}
	CK_AUTO_FREE struct ck_culprit_plugin *connected = NULL;
	size_t n = 0;
	for (size_t i = 0; i < status->n; i++) {
		const struct ck_nri_plugin *plugin = &status->plugins[i];
		if (strcmp(plugin->state, CK_STATUS_ABSENT) == 0 ||
		    strcmp(plugin->state, CK_STATUS_GONE) == 0)
			continue;
		connected = ck_must(ck_grown(connected, n, sizeof(*connected)));
		connected[n++] = (struct ck_culprit_plugin){
			plugin->name, plugin->pid, strcmp(plugin->state, "overdue") == 0
		};
	}
	if (n)
		ck_culprits_plugins(connected, n, ret);
	ck_status_free(status);
	if (!ret->n && !*ret->unknown)
		snprintf(ret->unknown, sizeof(ret->unknown),
			 "unknown. No plugin is overdue or stopped.");
}

void ck_whom_find(const struct ck_look *look, const struct ck_row *row, const char *endpoint,
		  struct ck_culprits *ret)
{
	const struct ck_key *key = row->key;
	const struct ck_reader *reader = look->reader;
	bool container = key->kind == CK_CONTAINER;
	struct ck_culprit_query query = {
		.pod_namespace = key->pod_namespace,
		.pod = key->pod_name,
		.uid = key->pod_uid,
		.container = container ? key->container : NULL,
		.sandbox_id = container ? key->sandbox_id : NULL,
		.id = row->result ? row->result->id : NULL,
		.endpoint = endpoint,
		.since = since(row),
		.owner = reader->owner_alive ? reader->owner_pid : 0,
	};
	struct ck_process owner;
	*ret = (struct ck_culprits){ 0 };
	if (!ck_look_this_boot(look, row->boot))
		return;
	if (waits_for_plugins(row)) {
		find_plugins(look, ret);
		return;
	}
	if (!query.since)
		return;
	ck_culprits_find(&query, ret);
	/* else its end may have come without being noticed */
	bool goes_on = row->state == CK_STATE_CREATING && reader->owner_alive &&
		       !ck_owner_frozen(reader, &owner);
	if (!goes_on && *ret->unknown)
		*ret = (struct ck_culprits){ 0 };
}

int ck_whom_callers(const struct ck_look *look, const struct ck_row *row,
		    const struct ck_history_row **ret_last)
{
	const struct ck_reader *reader = look->reader;
	int callers = -1;
	*ret_last = NULL;
	for (size_t i = 0; i < reader->history_n; i++) {
		const struct ck_history_row *line = &reader->history[i];
		if (line->entry != row->id)
			continue;
		switch (line->what) {
		case CK_WHAT_BEGUN:
			callers = 1;
			break;
		case CK_WHAT_RESTORED: /* whoever waited has lost the connection */
			callers = 0;
			break;
		case CK_WHAT_JOINED:
			callers += callers >= 0;
			break;
		case CK_WHAT_BUSY:
		case CK_WHAT_CALLER_GONE:
			callers -= callers > 0;
			*ret_last = line;
			break;
		default:
			break;
		}
	}
	return callers;
}
