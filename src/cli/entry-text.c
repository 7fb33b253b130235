/* SPDX-License-Identifier: Apache-2.0 */
/* A row in words: its state and its next step, for people; and everything in it as a tree, for
 * machines. */
#include <inttypes.h>
#include <string.h>

#include "cache/request/digests.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/entry-text.h"

/* Leave out flags that are usual in this state: most committed entries are told, and containers
 * delivered. */
static unsigned telling_flags(const struct ck_row *row)
{
	unsigned usual = 0;
	switch (row->state) {
	case CK_STATE_COMMITTING:
		usual = CK_ENTRY_TOLD;
		break;
	case CK_STATE_COMMITTED:
	case CK_STATE_ENDED:
		usual = CK_ENTRY_TOLD | CK_ENTRY_DELIVERED;
		break;
	default:
		break;
	}
	return row->flags & ~usual;
}

const char *ck_row_state(const struct ck_row *row, char *buf)
{
	static const struct {
		unsigned flag;
		const char *word;
	} flags[] = {
#define FLAG_WORD(name, bit, word) { CK_ENTRY_##name, word },
		CK_FLAGS(FLAG_WORD)
#undef FLAG_WORD
	};
	unsigned set = telling_flags(row);
	int n = snprintf(buf, CK_ROW_WORDS, "%s", ck_state_name(row->state));
	const char *before = " (";
	for (size_t i = 0; i < CK_COUNT(flags); i++) {
		if (!(set & flags[i].flag))
			continue;
		n += snprintf(buf + n, CK_ROW_WORDS - (size_t)n, "%s%s", before, flags[i].word);
		before = ", ";
	}
	if (*before == ',')
		snprintf(buf + n, CK_ROW_WORDS - (size_t)n, ")");
	return buf;
}

const char *ck_state_lower(enum ck_state state, char buf[CK_STATE_WORD])
{
	const char *name = ck_state_name(state);
	size_t n = 0;
	for (; name[n] && n + 1 < CK_STATE_WORD; n++)
		buf[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] - 'A' + 'a' : name[n]);
	buf[n] = '\0';
	return buf;
}

/* "expires in 9m12s", or "expires now" if the time has passed */
static const char *due(const struct ck_look *look, const struct ck_row *row, const char *what,
		       char *buf)
{
	char span[CK_TEXT_SPAN];
	if (!row->due)
		snprintf(buf, CK_ROW_WORDS, "%s", what);
	else if (row->due <= look->now)
		snprintf(buf, CK_ROW_WORDS, "%s now", what);
	else
		snprintf(buf, CK_ROW_WORDS, "%s in %s", what,
			 ck_text_span(row->due - look->now, span));
	return buf;
}

static const char *next_of_eviction(const struct ck_look *look, const struct ck_row *row, char *buf)
{
	char what[32];
	switch (row->phase) {
	case CK_PHASE_CREATION:
		return due(look, row, "deadline", buf);
	case CK_PHASE_FIND:
		return due(look, row, "looks for its id", buf);
	case CK_PHASE_HOOKS:
		return due(look, row, "hooks", buf);
	case CK_PHASE_CHECK:
		return due(look, row, "asks if in use", buf);
	case CK_PHASE_STOP:
		return due(look, row, "Stop events", buf);
	case CK_PHASE_REMOVE:
		return due(look, row, "Remove events", buf);
	default:
		snprintf(what, sizeof(what), "try %" PRIu64, (uint64_t)row->tries + 1);
		return due(look, row, what, buf);
	}
}

const char *ck_row_next(const struct ck_look *look, const struct ck_row *row, char *buf)
{
	*buf = '\0';
	if (ck_state_visible(row->state))
		return buf;
	if (!look->reader->owner_alive) {
		snprintf(buf, CK_ROW_WORDS, "waits for an owner");
		return buf;
	}
	if (!ck_look_this_boot(look, row->boot))
		return buf;
	switch (row->state) {
	case CK_STATE_CREATING:
		return row->due ? due(look, row, "deadline", buf) : buf;
	case CK_STATE_UNKNOWN:
		return due(look, row, "asks again", buf);
	case CK_STATE_KEPT: /* no TTL while the runtime is asked whether it is alive (K6) */
		return row->due ? due(look, row, "expires", buf) : strcpy(buf, "being asked for");
	case CK_STATE_COMMITTING:
		return due(look, row, "hooks", buf);
	case CK_STATE_EVICTING:
		return next_of_eviction(look, row, buf);
	case CK_STATE_GONE:
		return row->due ? due(look, row, "forgotten", buf) : buf;
	default:
		return buf;
	}
}

const char *ck_row_age(const struct ck_look *look, const struct ck_row *row, uint64_t at, char *buf)
{
	if (!ck_look_this_boot(look, row->boot))
		return strcpy(buf, "before boot");
	return ck_text_span(ck_look_ago(look, at), buf);
}

char *ck_key_text(const struct ck_key *key)
{
	char who[4 * CK_NAME_MAX_LEN];
	return ck_text_format("%s", ck_key_print(key, who, sizeof(who)));
}

const char *ck_kind_word(enum ck_kind kind)
{
	return kind == CK_SANDBOX ? "sandbox" : "container";
}

const char *ck_phase_word(enum ck_phase phase)
{
	static const char *const words[] = {
		[CK_PHASE_CREATION] = "creation", [CK_PHASE_FIND] = "find",
		[CK_PHASE_HOOKS] = "hooks",       [CK_PHASE_CHECK] = "check",
		[CK_PHASE_STOP] = "stop",         [CK_PHASE_DESTROY] = "destroy",
		[CK_PHASE_REMOVE] = "remove",
	};
	return phase > 0 && phase < CK_COUNT(words) ? words[phase] : NULL;
}

static const char *start_word(enum ck_start start)
{
	static const char *const words[] = {
		[CK_START_CALLED] = "called",
		[CK_START_LOST] = "lost",
		[CK_START_UNHEARD] = "unheard",
	};
	return words[start];
}

/* ---- as a tree ------------------------------------------------------------------------------- */

struct json_object *ck_flag_tree(unsigned flags)
{
	struct json_object *array = ck_tree_array();
#define FLAG_ADD(name, bit, word) \
	if (flags & CK_ENTRY_##name) \
		ck_tree_add(array, ck_tree_text(word));
	CK_FLAGS(FLAG_ADD)
#undef FLAG_ADD
	return array;
}

/* "NAME_at", RFC 3339, and "NAME_seconds_ago"; both are null if it has not happened, or happened
 * before the last boot */
static void put_past(const struct ck_look *look, const struct ck_row *row,
		     struct json_object *object, const char *name, uint64_t at)
{
	char at_name[48], ago_name[48];
	snprintf(at_name, sizeof(at_name), "%s_at", name);
	snprintf(ago_name, sizeof(ago_name), "%s_seconds_ago", name);
	if (!at || !ck_look_this_boot(look, row->boot)) {
		ck_tree_put(object, at_name, NULL);
		ck_tree_put(object, ago_name, NULL);
		return;
	}
	ck_tree_put_time(object, at_name, ck_look_wall(look, at));
	uint64_t ago = ck_look_ago(look, at);
	ck_tree_put_seconds(object, ago_name, ago > INT64_MAX ? INT64_MAX : (int64_t)ago);
}

static void put_due(const struct ck_look *look, const struct ck_row *row,
		    struct json_object *object)
{
	bool known = row->due && row->due <= INT64_MAX && look->reader->owner_alive &&
		     ck_look_this_boot(look, row->boot);
	if (known) {
		ck_tree_put_time(object, "due_at", ck_look_wall(look, row->due));
		ck_tree_put_seconds(object, "due_in_seconds",
				    (int64_t)row->due - (int64_t)look->now);
	} else {
		ck_tree_put(object, "due_at", NULL);
		ck_tree_put(object, "due_in_seconds", NULL);
	}
}

static struct json_object *told_tree(const char *told)
{
	struct json_object *array = ck_tree_array();
	CK_AUTO_FREE char *copy = told ? ck_must(ck_strdup(told)) : NULL;
	char *rest = copy;
	for (char *name; (name = strsep(&rest, " "));) {
		if (*name)
			ck_tree_add(array, ck_tree_text(name));
	}
	return array;
}

static const char *or_null(const char *s)
{
	return s && *s ? s : NULL;
}

/* the whole name of a field; its key may be long */
static struct json_object *field_name_tree(enum ck_kind kind, const struct ck_field_name *name)
{
	char small[256];
	size_t need = ck_field_name_print(kind, name, small, sizeof(small));
	if (need < sizeof(small))
		return ck_tree_text(small);
	CK_AUTO_FREE char *large = ck_must(ck_alloc(need + 1));
	ck_field_name_print(kind, name, large, need + 1);
	return ck_tree_text(large);
}

static struct json_object *digests_tree(const struct ck_row *row)
{
	struct json_object *array = ck_tree_array();
	struct ck_digests digests;
	struct ck_field_digest digest;
	if (!row->record.digests ||
	    !ck_digests_begin(&digests, row->record.digests, row->record.digests_len))
		return array;
	while (ck_digests_next(&digests, &digest) == 1) {
		struct json_object *object = ck_tree_object();
		ck_tree_put(object, "name", field_name_tree(digests.kind, &digest.name));
		ck_tree_put_hex(object, "digest", digest.bytes, CK_DIGEST_BYTES);
		ck_tree_add(array, object);
	}
	return array;
}

static void put_raw(struct json_object *object, const struct ck_row *row)
{
	const struct ck_record *record = &row->record;
	if (row->result)
		ck_tree_put_hex(object, "reply", row->result->bytes, row->result->len);
	else
		ck_tree_put(object, "reply", NULL);
	ck_tree_put_int(object, "form", record->form);
	ck_tree_put_hex(object, "key_id", record->key_id, sizeof(record->key_id));
	ck_tree_put_hex(object, "salt", record->salt, sizeof(record->salt));
	ck_tree_put_hex(object, "root", record->root, sizeof(record->root));
	ck_tree_put_hex(object, "rest", record->rest, sizeof(record->rest));
	ck_tree_put_hex(object, "image_id", record->image_id, sizeof(record->image_id));
	ck_tree_put(object, "leaves", digests_tree(row));
}

struct json_object *ck_row_tree(const struct ck_look *look, const struct ck_row *row, bool raw)
{
	const struct ck_key *key = row->key;
	bool container = key->kind == CK_CONTAINER;
	struct json_object *object = ck_tree_object();
	char next[CK_ROW_WORDS];

	ck_tree_put_count(object, "entry", row->id);
	ck_tree_put_text(object, "kind", ck_kind_word(key->kind));
	ck_tree_put_text(object, "namespace", key->pod_namespace);
	ck_tree_put_text(object, "pod", key->pod_name);
	ck_tree_put_text(object, "uid", key->pod_uid);
	ck_tree_put_text(object, "sandbox_id", container ? key->sandbox_id : NULL);
	ck_tree_put_text(object, "container", container ? key->container : NULL);
	ck_tree_put_int(object, "attempt", key->attempt);
	ck_tree_put_text(object, "state", ck_state_name(row->state));
	ck_tree_put(object, "flags", ck_flag_tree(row->flags));
	ck_tree_put_text(object, "reason", row->reason ? ck_reason_name(row->reason) : NULL);
	ck_tree_put_text(object, "phase", ck_phase_word(row->phase));
	ck_tree_put_text(object, "stage", or_null(row->stage));
	ck_tree_put_text(object, "start", start_word(row->start));
	put_past(look, row, object, "staged", row->staged);
	ck_tree_put_text(object, "origin", row->origin == CK_ORIGIN_RUNTIME ? "runtime" : "cache");
	ck_tree_put_text(object, "id", row->result ? row->result->id : NULL);
	ck_tree_put(object, "told", told_tree(row->told));
	ck_tree_put_int(object, "requests", row->requests);
	ck_tree_put_int(object, "tries", row->tries);
	ck_tree_put_text(object, "last_code", row->last_grpc ? ck_grpc_name(row->last_grpc) : NULL);
	put_past(look, row, object, "created", row->created);
	put_past(look, row, object, "changed", row->changed);
	put_past(look, row, object, "asked", row->asked);
	put_past(look, row, object, "existed", row->existed);
	put_due(look, row, object);
	ck_tree_put_text(object, "next", or_null(ck_row_next(look, row, next)));
	ck_tree_put_bool(object, "this_boot", ck_look_this_boot(look, row->boot));
	if (raw)
		put_raw(object, row);
	return object;
}
