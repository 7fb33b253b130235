/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's log is told. The ordinary path is told at level debug. One line at level info or
 * above tells of each rescue, each failure and each administrative act. A line begins with kind,
 * pod and attempt, and ends with fields: name=value.
 */
#include <stdarg.h>
#include <stdio.h>

#include "cache/cache.h"
#include "src/base/duration.h"

void ck_cache_log(struct ck_cache *cache, enum ck_log_level level, const char *fmt, ...)
{
	if (!cache->host.log)
		return;
	pthread_mutex_lock(&cache->lock);
	/* lines for debugging leave room for those that matter */
	if (cache->log_n >= (level == CK_LOG_DEBUG ? CK_LOG_LINES / 2 : CK_LOG_LINES)) {
		cache->log_lost += level != CK_LOG_DEBUG; /* nobody need know of those */
	} else {
		va_list ap;
		struct ck_log_line *line = &cache->log[cache->log_n++];
		line->level = level;
		va_start(ap, fmt);
		vsnprintf(line->text, sizeof(line->text), fmt, ap);
		va_end(ap);
		cache->pending = true;
	}
	pthread_mutex_unlock(&cache->lock);
}

/* was it too late for its first caller, or asked for again? */
static bool is_rescue(const struct ck_entry *e)
{
	return e->was_kept || e->row.requests > 1;
}

static enum ck_log_level level_of_move(const struct ck_history_event *event)
{
	switch (event->to) {
	case CK_STATE_UNKNOWN:
		return CK_LOG_WARNING;
	case CK_STATE_EVICTING:
		return CK_LOG_INFO;
	default:
		return CK_LOG_DEBUG;
	}
}

static enum ck_log_level level_of(const struct ck_history_event *event)
{
	switch (event->what) {
	case CK_WHAT_MOVED:
		return level_of_move(event);
	case CK_WHAT_HANDED_BACK:
		return is_rescue(event->entry) ? CK_LOG_INFO : CK_LOG_DEBUG;
	case CK_WHAT_DUPLICATE:
	case CK_WHAT_IN_USE:
	case CK_WHAT_RELABELLED:
	case CK_WHAT_DESTROY_FAILED:
	case CK_WHAT_RELEASED:
	case CK_WHAT_PLUGIN_ABSENT:
	case CK_WHAT_NOT_TOLD:
	case CK_WHAT_START_LOST:
		return CK_LOG_WARNING;
	case CK_WHAT_CONFLICT:
	case CK_WHAT_RESENT:
	case CK_WHAT_FAILED:
	case CK_WHAT_REFUSED:
	case CK_WHAT_START_FAILED:
	case CK_WHAT_START_UNHEARD:
	case CK_WHAT_OFFERED:
		return CK_LOG_INFO;
	case CK_WHAT_BEGUN:
	case CK_WHAT_JOINED:
	case CK_WHAT_BUSY:
	case CK_WHAT_CALLER_GONE:
	case CK_WHAT_ANSWER_LOST:
	case CK_WHAT_IMPORTED:
	case CK_WHAT_RESTORED:
	case CK_WHAT_STARTED:
	case CK_WHAT_START_BEGUN:
	case CK_WHAT_TOLD:
	case CK_WHAT_STOP_TOLD:
	case CK_WHAT_REMOVE_TOLD:
	case CK_WHAT_OFFER_WAITS:
		break;
	}
	return CK_LOG_DEBUG;
}

#define FIELDS_MAX (CK_ID_MAX + 128u)

/* The times of a row from an earlier boot say nothing, and those of an imported one are of its
 * import. */
static void print_fields(const struct ck_history_event *event, char text[FIELDS_MAX])
{
	const struct ck_row *row = &event->entry->row;
	bool timed = row->origin == CK_ORIGIN_CACHE && row->created &&
		     row->reason != CK_REASON_REBOOT;
	size_t n = 0;
	text[0] = '\0';
	if (row->result)
		n += (size_t)snprintf(text + n, FIELDS_MAX - n, " id=%s", row->result->id);
	if (timed && row->existed)
		n += (size_t)snprintf(
			text + n, FIELDS_MAX - n, " created_in=%.1fs",
			(double)ck_duration_between(row->created, row->existed) / 1e9);
	if (timed)
		n += (size_t)snprintf(text + n, FIELDS_MAX - n, " after=%.1fs",
				      (double)ck_duration_between(row->created, event->at) / 1e9);
	if (row->requests > 1)
		snprintf(text + n, FIELDS_MAX - n, " requests=%u", row->requests);
}

void ck_cache_log_event(struct ck_cache *cache, const struct ck_history_event *event)
{
	const char *detail = event->detail, *colon = detail[0] ? ": " : "";
	char who[256], fields[FIELDS_MAX];
	if (!cache->host.log)
		return;
	ck_key_print(event->entry->row.key, who, sizeof(who));
	print_fields(event, fields);
	if (event->what == CK_WHAT_MOVED)
		ck_cache_log(cache, level_of(event), "%s: %s -> %s%s%s%s%s%s", who,
			     ck_state_name(event->from), ck_state_name(event->to),
			     event->reason ? ": " : "", ck_reason_text(event->reason), colon,
			     detail, fields);
	else
		ck_cache_log(cache, level_of(event), "%s: %s%s%s%s%s%s%s", who,
			     event->what == CK_WHAT_HANDED_BACK && is_rescue(event->entry)
				     ? "late, and "
				     : "",
			     ck_what_text(event->what), event->grpc ? ": " : "",
			     event->grpc ? ck_grpc_name(event->grpc) : "", colon, detail, fields);
}
