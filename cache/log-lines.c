/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's log is told. The ordinary path is told at level debug. One line at level info or
 * above tells of each rescue, each failure and each administrative act. A line begins with kind,
 * pod and attempt, and ends with fields: name=value. crikeepd also gets them as members of a JSON
 * object.
 */
#include <stdarg.h>
#include <stdio.h>
#include <utlist.h>

#include "cache/cache.h"
#include "src/base/duration.h"
#include "src/base/log.h"
#include "src/base/mem.h"

const struct ck_cache_logger *ck_cache_logger;

static bool is_wanted(const struct ck_cache *cache, enum ck_log_level level)
{
	return cache->host.log && level <= __atomic_load_n(&cache->log_level, __ATOMIC_RELAXED);
}

static struct ck_log_line *make_line(enum ck_log_level level, const char *members, const char *text)
{
	size_t text_size = strlen(text) + 1, members_size = strlen(members) + 1;
	struct ck_log_line *line = ck_alloc(sizeof(*line) + text_size + members_size);
	if (!line)
		return NULL;
	line->level = level;
	memcpy(line->text, text, text_size);
	line->members = memcpy(line->text + text_size, members, members_size);
	return line;
}

static void CK_PRINTF(4, 0) add_line(struct ck_cache *cache, enum ck_log_level level,
				     const char *members, const char *fmt, va_list ap)
{
	char text[CK_ERROR_TEXT];
	vsnprintf(text, sizeof(text), fmt, ap);
	struct ck_log_line *line = make_line(level, members, text);
	pthread_mutex_lock(&cache->lock);
	/* lines for debugging leave room for those that matter */
	if (line && cache->log_n < (level == CK_LOG_DEBUG ? CK_LOG_LINES / 2 : CK_LOG_LINES)) {
		DL_APPEND(cache->log, line);
		line = NULL;
		cache->log_n++;
		cache->pending = true;
	} else if (level != CK_LOG_DEBUG) { /* nobody need know of those */
		cache->log_lost++;
		cache->pending = true;
	}
	pthread_mutex_unlock(&cache->lock);
	free(line);
}

void ck_cache_log(struct ck_cache *cache, enum ck_log_level level, const char *fmt, ...)
{
	va_list ap;
	if (!is_wanted(cache, level))
		return;
	va_start(ap, fmt);
	add_line(cache, level, "", fmt, ap);
	va_end(ap);
}

static void write_line(struct ck_cache *cache, const struct ck_log_line *line)
{
	if (ck_cache_logger)
		ck_cache_logger->write(line->level, line->members, line->text);
	else
		cache->host.log(line->level, line->text, cache->host.userdata);
}

void ck_cache_log_write(struct ck_cache *cache)
{
	struct ck_log_line *line, *next;
	pthread_mutex_lock(&cache->lock);
	struct ck_log_line *lines = CK_TAKE(cache->log);
	unsigned lost = cache->log_lost;
	cache->log_n = cache->log_lost = 0;
	pthread_mutex_unlock(&cache->lock);
	DL_FOREACH_SAFE (lines, line, next) {
		write_line(cache, line);
		free(line);
	}
	if (lost) {
		char text[64];
		snprintf(text, sizeof(text), "%u lines of this log were dropped", lost);
		cache->host.log(CK_LOG_WARNING, text, cache->host.userdata);
	}
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
static void find_about(const struct ck_history_event *event, struct ck_log_about *ret)
{
	const struct ck_row *row = &event->entry->row;
	const struct ck_key *key = row->key;
	bool timed = row->origin == CK_ORIGIN_CACHE && row->created &&
		     row->reason != CK_REASON_REBOOT;
	*ret = (struct ck_log_about){
		.kind = key->kind == CK_SANDBOX ? "sandbox" : "container",
		.pod_namespace = key->pod_namespace,
		.pod = key->pod_name,
		.uid = key->pod_uid,
		.container = key->container,
		.id = row->result ? row->result->id : NULL,
		.attempt = key->attempt,
		.requests = row->requests,
		.created_in = -1,
		.after = -1,
	};
	if (timed && row->existed)
		ret->created_in = (int64_t)ck_duration_between(row->created, row->existed);
	if (timed)
		ret->after = (int64_t)ck_duration_between(row->created, event->at);
}

static void print_fields(const struct ck_log_about *about, char text[FIELDS_MAX])
{
	size_t n = 0;
	text[0] = '\0';
	if (about->id)
		n += (size_t)snprintf(text + n, FIELDS_MAX - n, " id=%s", about->id);
	if (about->created_in >= 0)
		n += (size_t)snprintf(text + n, FIELDS_MAX - n, " created_in=%.1fs",
				      (double)about->created_in / 1e9);
	if (about->after >= 0)
		n += (size_t)snprintf(text + n, FIELDS_MAX - n, " after=%.1fs",
				      (double)about->after / 1e9);
	if (about->requests > 1)
		snprintf(text + n, FIELDS_MAX - n, " requests=%u", about->requests);
}

static void log_about(struct ck_cache *cache, const struct ck_history_event *event,
		      const struct ck_log_about *about, const char *fmt, ...) CK_PRINTF(4, 5);
static void log_about(struct ck_cache *cache, const struct ck_history_event *event,
		      const struct ck_log_about *about, const char *fmt, ...)
{
	char members[CK_LOG_MEMBERS] = "";
	va_list ap;
	if (ck_cache_logger)
		ck_cache_logger->members(about, members);
	va_start(ap, fmt);
	add_line(cache, level_of(event), members, fmt, ap);
	va_end(ap);
}

void ck_cache_log_event(struct ck_cache *cache, const struct ck_history_event *event)
{
	const char *detail = event->detail, *colon = detail[0] ? ": " : "";
	char who[256], fields[FIELDS_MAX];
	struct ck_log_about about;
	if (!is_wanted(cache, level_of(event)))
		return;
	ck_key_print(event->entry->row.key, who, sizeof(who));
	find_about(event, &about);
	print_fields(&about, fields);
	if (event->what == CK_WHAT_MOVED)
		log_about(cache, event, &about, "%s: %s -> %s%s%s%s%s%s", who,
			  ck_state_name(event->from), ck_state_name(event->to),
			  event->reason ? ": " : "", ck_reason_text(event->reason), colon, detail,
			  fields);
	else
		log_about(cache, event, &about, "%s: %s%s%s%s%s%s%s", who,
			  event->what == CK_WHAT_HANDED_BACK && is_rescue(event->entry)
				  ? "late, and "
				  : "",
			  ck_what_text(event->what), event->grpc ? ": " : "",
			  event->grpc ? ck_grpc_name(event->grpc) : "", colon, detail, fields);
}
