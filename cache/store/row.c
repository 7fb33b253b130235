/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of the table entry to and from a statement. What is read is checked like input from the
 * network: type, length and range of every column, and what the rest of the program expects of an
 * entry.
 */
#include "cache/request/digests.h"
#include "cache/store/store-int.h"

/* The columns, in the order of every statement here. Parameter numbers are these + 1. */
#define COLUMNS(X) \
	X(id) X(kind) X(attempt) X(namespace) X(name) X(uid) X(sandbox) X(container) X(form) \
	X(key_id) X(salt) X(root) X(rest) X(image_id) X(state) X(flags) X(reason) X(phase) \
	X(origin) X(stage) X(object) X(reply) X(told) X(requests) X(tries) X(last_grpc) \
	X(created) X(changed) X(interest) X(existed) X(due) X(boot) X(staged) \
	X(searched) X(absent) X(asked) X(start)

enum column {
#define COLUMN_ENUM(name) COL_##name,
	COLUMNS(COLUMN_ENUM)
#undef COLUMN_ENUM
	COLUMNS_N,
};
_Static_assert(COLUMNS_N == 37, "the statements below have 37 columns");

#define NAMES \
	"id, kind, attempt, namespace, name, uid, sandbox, container, form, key_id, salt, root, " \
	"rest, image_id," \
	" state, flags, reason, phase, origin, stage, object, reply, told, requests, tries, " \
	"last_grpc," \
	" created, changed, interest, existed, due, boot, staged, searched, absent, asked, start"

const char ck_row_select[] = "SELECT " NAMES " FROM entry ORDER BY id";

const char ck_row_insert[] = "INSERT INTO entry (" NAMES
			     ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
			     " ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, "
			     "?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37)";

const char ck_row_update[] = "UPDATE entry SET image_id = ?14, state = ?15, flags = ?16, reason = "
			     "?17, phase = ?18, origin = ?19,"
			     " stage = ?20, object = ?21, reply = ?22, told = ?23, requests = ?24, "
			     "tries = ?25, last_grpc = ?26,"
			     " created = ?27, changed = ?28, interest = ?29, "
			     "existed = ?30, due = ?31, boot = ?32,"
			     " staged = ?33, searched = ?34, absent = ?35, asked = ?36, start = ?37"
			     " WHERE id = ?1";

const char ck_digests_select[] = "SELECT leaves FROM fingerprint WHERE entry = ?1";

#define FLAGS_STORED (CK_ENTRY_TOLD | CK_ENTRY_DELIVERED | CK_ENTRY_RESENT)

/* ---- to a statement -------------------------------------------------------------------------- */

struct binder {
	sqlite3_stmt *stmt;
	int rc; /* the first failure */
};

static void bind_number(struct binder *b, enum column col, uint64_t value)
{
	int rc = sqlite3_bind_int64(b->stmt, (int)col + 1,
				    value > INT64_MAX ? INT64_MAX : (sqlite3_int64)value);

	b->rc = b->rc ? b->rc : rc;
}

static void bind_text(struct binder *b, enum column col, const char *text)
{
	int rc = text ? sqlite3_bind_text(b->stmt, (int)col + 1, text, (int)strlen(text),
					  SQLITE_STATIC)
		      : sqlite3_bind_null(b->stmt, (int)col + 1);

	b->rc = b->rc ? b->rc : rc;
}

static void bind_blob(struct binder *b, enum column col, const void *bytes, size_t len)
{
	int rc = bytes ? sqlite3_bind_blob(b->stmt, (int)col + 1, bytes, (int)len, SQLITE_STATIC) :
			 sqlite3_bind_null(b->stmt, (int)col + 1);

	b->rc = b->rc ? b->rc : rc;
}

static void bind_identity(struct binder *b, const struct ck_row *row)
{
	const struct ck_key *key = row->key;
	const struct ck_record *record = &row->record;

	bind_number(b, COL_kind, key->kind);
	bind_number(b, COL_attempt, key->attempt);
	bind_text(b, COL_namespace, key->pod_namespace);
	bind_text(b, COL_name, key->pod_name);
	bind_text(b, COL_uid, key->pod_uid);
	bind_text(b, COL_sandbox, key->sandbox_id);
	bind_text(b, COL_container, key->container);
	bind_number(b, COL_form, record->form);
	bind_blob(b, COL_key_id, record->form ? record->key_id : NULL, sizeof(record->key_id));
	bind_blob(b, COL_salt, record->form ? record->salt : NULL, sizeof(record->salt));
	bind_blob(b, COL_root, record->form ? record->root : NULL, sizeof(record->root));
	bind_blob(b, COL_rest, record->form ? record->rest : NULL, sizeof(record->rest));
}

int ck_row_bind(sqlite3_stmt *stmt, const struct ck_row *row, bool whole)
{
	struct binder b = {stmt, SQLITE_OK};
	const struct ck_record *record = &row->record;

	bind_number(&b, COL_id, row->id);
	if (whole)
		bind_identity(&b, row);
	bind_blob(&b, COL_image_id, record->form ? record->image_id : NULL,
		  sizeof(record->image_id));
	bind_number(&b, COL_state, row->state);
	bind_number(&b, COL_flags, row->flags & FLAGS_STORED);
	bind_number(&b, COL_reason, row->reason);
	bind_number(&b, COL_phase, row->phase);
	bind_number(&b, COL_origin, row->origin);
	bind_text(&b, COL_stage, row->stage);
	bind_text(&b, COL_object, row->result ? row->result->id : NULL);
	bind_blob(&b, COL_reply, row->result ? row->result->bytes : NULL,
		  row->result ? row->result->len : 0);
	bind_text(&b, COL_told, row->told);
	bind_number(&b, COL_requests, row->requests);
	bind_number(&b, COL_tries, row->tries);
	int rc = sqlite3_bind_int(stmt, COL_last_grpc + 1, row->last_grpc);
	b.rc = b.rc ? b.rc : rc;
	bind_number(&b, COL_created, row->created);
	bind_number(&b, COL_changed, row->changed);
	bind_number(&b, COL_asked, row->asked);
	bind_number(&b, COL_interest, row->interest);
	bind_number(&b, COL_existed, row->existed);
	bind_number(&b, COL_due, row->due);
	bind_text(&b, COL_boot, row->boot);
	bind_number(&b, COL_staged, row->staged);
	bind_number(&b, COL_searched, row->searched);
	bind_number(&b, COL_absent, row->absent);
	bind_number(&b, COL_start, row->start);
	return b.rc;
}

/* ---- from a statement ------------------------------------------------------------------------ */

static bool read_number(sqlite3_stmt *stmt, enum column col, uint64_t min, uint64_t max,
			uint64_t *ret_value)
{
	int64_t value;

	if (!ck_column_number(stmt, (int)col, (int64_t)min, (int64_t)max, &value))
		return false;
	*ret_value = (uint64_t)value;
	return true;
}

static bool read_u32(sqlite3_stmt *stmt, enum column col, uint32_t *ret_value)
{
	uint64_t value;

	if (!read_number(stmt, col, 0, UINT32_MAX, &value))
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

static bool read_digest(sqlite3_stmt *stmt, enum column col, unsigned char *to, size_t len)
{
	const void *bytes;
	size_t n;

	if (!ck_column_blob(stmt, (int)col, len, len, &bytes, &n))
		return false;
	memcpy(to, bytes, len);
	return true;
}

/* The steps of reading. Return: NULL, or the name of the bad column; "": no memory. */

static const char *read_key(sqlite3_stmt *stmt, struct ck_row *row)
{
	struct ck_object object = {.size = sizeof(object)};
	uint64_t kind;

	if (!read_number(stmt, COL_kind, CK_SANDBOX, CK_CONTAINER, &kind))
		return "kind";
	object.kind = (enum ck_kind)kind;
	if (!read_u32(stmt, COL_attempt, &object.attempt))
		return "attempt";
#define READ_NAME(col, member)                                                          \
	if (!ck_column_text(stmt, COL_##col, CK_NAME_MAX_LEN, &object.member))          \
		return #col;
	READ_NAME(namespace, pod_namespace)
	READ_NAME(name, pod_name)
	READ_NAME(uid, pod_uid)
	READ_NAME(sandbox, sandbox_id)
	READ_NAME(container, container_name)
#undef READ_NAME
	if (object.kind == CK_SANDBOX && (*object.sandbox_id || *object.container_name))
		return "kind";
	int r = ck_key_from_object(&object, &row->key, NULL);
	return r == -CK_ENOMEM ? "" : r < 0 ? "name" : NULL;
}

static const char *read_record(sqlite3_stmt *stmt, struct ck_record *record)
{
	if (!read_u32(stmt, COL_form, &record->form))
		return "form";
	if (!record->form) {
		for (enum column col = COL_key_id; col <= COL_image_id; col++)
			if (!ck_column_null(stmt, (int)col))
				return "form";
		return NULL;
	}
#define READ_DIGEST(member)                                                                \
	if (!read_digest(stmt, COL_##member, record->member, sizeof(record->member)))      \
		return #member;
	READ_DIGEST(key_id)
	READ_DIGEST(salt)
	READ_DIGEST(root)
	READ_DIGEST(rest)
	READ_DIGEST(image_id)
#undef READ_DIGEST
	return NULL;
}

static const char *read_state(sqlite3_stmt *stmt, struct ck_row *row)
{
	uint64_t value;
	int64_t grpc;

#define READ_ENUM(col, min, max, to)                              \
	if (!read_number(stmt, COL_##col, min, max, &value))      \
		return #col;                                      \
	to;
	READ_ENUM(state, CK_STATE_CREATING, CK_STATE_MAX, row->state = (enum ck_state)value)
	READ_ENUM(flags, 0, FLAGS_STORED, row->flags = (unsigned)value)
	READ_ENUM(reason, 0, CK_REASON_MAX, row->reason = (enum ck_reason)value)
	READ_ENUM(phase, 0, CK_PHASE_MAX, row->phase = (enum ck_phase)value)
	READ_ENUM(origin, CK_ORIGIN_CACHE, CK_ORIGIN_RUNTIME, row->origin = (enum ck_origin)value)
	READ_ENUM(start, 0, CK_START_MAX, row->start = (enum ck_start)value)
#undef READ_ENUM
#define READ_U32(member)                                      \
	if (!read_u32(stmt, COL_##member, &row->member))      \
		return #member;
	READ_U32(requests)
	READ_U32(tries)
#undef READ_U32
	if (!ck_column_number(stmt, COL_last_grpc, INT32_MIN, INT32_MAX, &grpc))
		return "last_grpc";
	row->last_grpc = (int)grpc;
#define READ_TIME(member)                                                         \
	if (!read_number(stmt, COL_##member, 0, INT64_MAX, &row->member))         \
		return #member;
	READ_TIME(created)
	READ_TIME(changed)
	READ_TIME(asked)
	READ_TIME(interest)
	READ_TIME(existed)
	READ_TIME(due)
	READ_TIME(staged)
	READ_TIME(searched)
	READ_TIME(absent)
#undef READ_TIME
	return NULL;
}

static const char *read_texts(sqlite3_stmt *stmt, struct ck_row *row)
{
	const char *text;

	if (!ck_column_text(stmt, COL_stage, CK_STAGE_MAX, &text))
		return "stage";
	strcpy(row->stage, text);
	if (!ck_column_text(stmt, COL_boot, sizeof(row->boot) - 1, &text))
		return "boot";
	strcpy(row->boot, text);
	if (ck_column_null(stmt, COL_told))
		return NULL;
	if (!ck_column_text(stmt, COL_told, CK_TOLD_MAX, &text))
		return "told";
	row->told = ck_strdup(text);
	return row->told ? NULL : "";
}

static const char *read_made(sqlite3_stmt *stmt, struct ck_row *row)
{
	const char *id;
	const void *reply;
	size_t len;

	if (ck_column_null(stmt, COL_object) && ck_column_null(stmt, COL_reply)) {
		/* what is kept or visible exists, and has an id */
		bool needs = row->state == CK_STATE_KEPT || row->state == CK_STATE_COMMITTING ||
			     ck_state_visible(row->state);
		return needs ? "object" : NULL;
	}
	if (!ck_column_blob(stmt, COL_reply, 0, CK_REPLY_MAX, &reply, &len))
		return "reply";
	if (!ck_column_text(stmt, COL_object, CK_ID_MAX, &id) || !*id)
		return "object";
	row->result = ck_shared_result_new(id, reply, len);
	return row->result ? NULL : "";
}

int ck_row_decode(sqlite3_stmt *stmt, struct ck_row *ret_row, struct ck_error *err)
{
	struct ck_row row = {0};
	const char *wrong = NULL;

	if (!read_number(stmt, COL_id, 1, INT64_MAX, &row.id))
		wrong = "id";
	wrong = wrong ? wrong : read_state(stmt, &row);
	wrong = wrong ? wrong : read_record(stmt, &row.record);
	wrong = wrong ? wrong : read_texts(stmt, &row);
	wrong = wrong ? wrong : read_key(stmt, &row);
	wrong = wrong ? wrong : read_made(stmt, &row);
	if (!wrong) {
		*ret_row = row;
		return 0;
	}
	uint64_t id = row.id;
	ck_row_fini(&row);
	/* a text that could not be read for lack of memory is not damaged */
	if (!*wrong || sqlite3_errcode(sqlite3_db_handle(stmt)) == SQLITE_NOMEM)
		return ck_nomem(err);
	return ck_fail(err, CK_EDAMAGED, "entry %llu: column %s", (unsigned long long)id, wrong);
}

int ck_digests_decode(sqlite3_stmt *stmt, struct ck_record *record, struct ck_error *err)
{
	const void *bytes;
	size_t len;

	if (!ck_column_blob(stmt, 0, 0, INT32_MAX, &bytes, &len))
		return sqlite3_errcode(sqlite3_db_handle(stmt)) == SQLITE_NOMEM
			       ? ck_nomem(err)
			       : ck_fail(err, CK_EDAMAGED, "fingerprint");
	if (!ck_digests_check(bytes, len))
		return ck_fail(err, CK_EDAMAGED, "fingerprint: malformed");
	unsigned char *digests = ck_memdup(bytes, len);
	if (!digests)
		return ck_nomem(err);
	free(record->digests);
	record->digests = digests;
	record->digests_len = len;
	return 0;
}

/* ---- counters -------------------------------------------------------------------------------- */

static uint64_t *counter_find(struct ck_counters *counters, const char *name)
{
#define COUNTER_FIND(member, text) \
	if (!strcmp(name, #member)) \
		return &counters->member;
	CK_COUNTERS(COUNTER_FIND)
#undef COUNTER_FIND
	return NULL; /* a counter of another release */
}

int ck_counters_read(sqlite3 *db, struct ck_counters *ret_counters, struct ck_error *err)
{
	struct ck_counters counters = {0};
	sqlite3_stmt *stmt = NULL;
	int rc;
	int r = ck_sql_prepare(db, "SELECT name, value FROM counter", &stmt, err);

	while (r >= 0 && (rc = ck_sql_step(stmt)) != SQLITE_DONE) {
		const char *name;
		int64_t value;
		if (rc != SQLITE_ROW)
			r = ck_sql_fail(err, db, rc, "read the counters");
		else if (!ck_column_text(stmt, 0, CK_NAME_MAX_LEN, &name) ||
			 !ck_column_number(stmt, 1, 0, INT64_MAX, &value))
			r = sqlite3_errcode(db) == SQLITE_NOMEM
				    ? ck_nomem(err)
				    : ck_fail(err, CK_EDAMAGED, "counter");
		else if (counter_find(&counters, name))
			*counter_find(&counters, name) = (uint64_t)value;
	}
	sqlite3_finalize(stmt);
	if (r >= 0)
		*ret_counters = counters;
	return r;
}
