/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of the table entry to and from a statement. What is read is checked: also for what the
 * rest of the program expects of an entry.
 */
#include "cache/request/digests.h"
#include "cache/store/store-int.h"

/* What a statement gets or gives. The texts are borrowed. */
struct image {
	struct ck_row row;
	struct ck_key key;
	struct ck_blob key_id, salt, root, rest, image_id, reply;
	const char *object, *told;
};

/* The columns, behind kind, in the order of every statement: what stays as it is, and from image_id
 * on what an update writes. */
#define NAMES(X) \
	X(attempt, NUMBER, key.attempt, 0, UINT32_MAX) \
	X(namespace, TEXT, key.pod_namespace, 0, CK_NAME_MAX_LEN) \
	X(name, TEXT, key.pod_name, 0, CK_NAME_MAX_LEN) \
	X(uid, TEXT, key.pod_uid, 0, CK_NAME_MAX_LEN) \
	X(sandbox, TEXT, key.sandbox_id, 0, CK_NAME_MAX_LEN) \
	X(container, TEXT, key.container, 0, CK_NAME_MAX_LEN) \
	X(form, NUMBER, row.record.form, 0, UINT32_MAX) \
	X(key_id, BLOB, key_id, CK_OR_NULL, CK_KEY_ID_BYTES) \
	X(salt, BLOB, salt, CK_OR_NULL, CK_SALT_BYTES) \
	X(root, BLOB, root, CK_OR_NULL, CK_ROOT_BYTES) \
	X(rest, BLOB, rest, CK_OR_NULL, CK_DIGEST_BYTES)
#define CHANGES(X) \
	X(state, NUMBER, row.state, CK_STATE_CREATING, CK_STATE_MAX) \
	X(flags, NUMBER, row.flags, 0, FLAGS_STORED) \
	X(reason, NUMBER, row.reason, 0, CK_REASON_MAX) \
	X(phase, NUMBER, row.phase, 0, CK_PHASE_MAX) \
	X(origin, NUMBER, row.origin, CK_ORIGIN_CACHE, CK_ORIGIN_RUNTIME) \
	X(stage, CHARS, row.stage, 0, 0) \
	X(object, TEXT, object, CK_OR_NULL, CK_ID_MAX) \
	X(reply, BLOB, reply, CK_OR_NULL, CK_REPLY_MAX) \
	X(told, TEXT, told, CK_OR_NULL, CK_TOLD_MAX) \
	X(requests, NUMBER, row.requests, 0, UINT32_MAX) \
	X(tries, NUMBER, row.tries, 0, UINT32_MAX) \
	X(last_grpc, NUMBER, row.last_grpc, INT32_MIN, INT32_MAX) \
	X(created, NUMBER, row.created, 0, INT64_MAX) \
	X(changed, NUMBER, row.changed, 0, INT64_MAX) \
	X(interest, NUMBER, row.interest, 0, INT64_MAX) \
	X(existed, NUMBER, row.existed, 0, INT64_MAX) \
	X(due, NUMBER, row.due, 0, INT64_MAX) \
	X(boot, CHARS, row.boot, 0, 0) \
	X(staged, NUMBER, row.staged, 0, INT64_MAX) \
	X(searched, NUMBER, row.searched, 0, INT64_MAX) \
	X(absent, NUMBER, row.absent, 0, INT64_MAX) \
	X(asked, NUMBER, row.asked, 0, INT64_MAX) \
	X(start, NUMBER, row.start, 0, CK_START_MAX)
#define ALL(X) \
	NAMES(X) \
	X(image_id, BLOB, image_id, CK_OR_NULL, CK_DIGEST_BYTES) CHANGES(X) \
		X(id, NUMBER, row.id, 1, INT64_MAX)

#define FLAGS_STORED (CK_ENTRY_TOLD | CK_ENTRY_DELIVERED | CK_ENTRY_RESENT)

#define COLUMN(...) CK_COLUMN(struct image, __VA_ARGS__)
static const struct ck_store_column columns[] = {
	/* clang-format off */
	COLUMN(kind, NUMBER, key.kind, CK_SANDBOX, CK_CONTAINER)
	ALL(COLUMN)
	/* clang-format on */
};

#define ONE(...)                      +1
#define NAME(name, ...)               ", " #name
#define PARAMETER(name, ...)          ", ?"
#define NAME_AND_PARAMETER(name, ...) ", " #name " = ?"

const char ck_row_select[] = "SELECT kind" ALL(NAME) " FROM entry ORDER BY id";
const char ck_row_insert[] = "INSERT INTO entry (kind" ALL(NAME) ") VALUES (?" ALL(PARAMETER) ")";
const char ck_row_update[] =
	"UPDATE entry SET image_id = ?" CHANGES(NAME_AND_PARAMETER) " WHERE id = ?";
const char ck_digests_select[] = "SELECT leaves FROM fingerprint WHERE entry = ?1";

/* the digests of a record; without a form there are none */
#define DIGESTS(X) X(key_id) X(salt) X(root) X(rest) X(image_id)

int ck_row_bind(sqlite3_stmt *stmt, const struct ck_row *row, bool whole)
{
	const struct ck_record *record = &row->record;
	const struct ck_shared_result *result = row->result;
	struct image image = { .row = *row, .key = *row->key, .told = row->told };
	size_t first = whole ? 0 : 1 NAMES(ONE);

	image.row.flags &= FLAGS_STORED;
#define SET(digest) image.digest = (struct ck_blob){ record->digest, sizeof(record->digest) };
	if (record->form) {
		DIGESTS(SET)
	}
#undef SET
	if (result) {
		image.object = result->id;
		image.reply = (struct ck_blob){ result->bytes, result->len };
	}
	return ck_columns_bind(stmt, columns + first, CK_COUNT(columns) - first, &image);
}

/* The steps of reading. Return: NULL, or the name of the bad column; "": no memory. */

static const char *take_record(const struct image *image, struct ck_record *record)
{
#define TAKE(digest) \
	if (record->form ? image->digest.len != sizeof(record->digest) : !!image->digest.bytes) \
		return record->form ? #digest : "form"; \
	if (record->form) \
		memcpy(record->digest, image->digest.bytes, sizeof(record->digest));
	DIGESTS(TAKE)
#undef TAKE
	return NULL;
}

static const char *take_key(const struct ck_key *key, struct ck_row *row)
{
	struct ck_object object = {
		.size = sizeof(object),
		.kind = key->kind,
		.pod_name = key->pod_name,
		.pod_namespace = key->pod_namespace,
		.pod_uid = key->pod_uid,
		.attempt = key->attempt,
		.sandbox_id = key->sandbox_id,
		.container_name = key->container,
	};

	if (key->kind == CK_SANDBOX && (*key->sandbox_id || *key->container))
		return "kind";
	int r = ck_key_from_object(&object, &row->key, NULL);
	return r == -CK_ENOMEM ? "" : r < 0 ? "name" : NULL;
}

static const char *take_made(const struct image *image, struct ck_row *row)
{
	if (image->told && !(row->told = ck_strdup(image->told)))
		return "";
	if (!image->object && !image->reply.bytes) {
		/* what is kept or visible exists, and has an id */
		bool needs = row->state == CK_STATE_KEPT || row->state == CK_STATE_COMMITTING ||
			     ck_state_visible(row->state);
		return needs ? "object" : NULL;
	}
	if (!image->reply.bytes)
		return "reply";
	if (!image->object || !*image->object)
		return "object";
	row->result = ck_shared_result_new(image->object, image->reply.bytes, image->reply.len);
	return row->result ? NULL : "";
}

int ck_row_decode(sqlite3_stmt *stmt, struct ck_row *ret_row, struct ck_error *err)
{
	struct image image = { 0 };
	struct ck_row *row = &image.row;
	const char *wrong = ck_columns_read(stmt, columns, CK_COUNT(columns), &image);

	wrong = wrong ? wrong : take_record(&image, &row->record);
	wrong = wrong ? wrong : take_key(&image.key, row);
	wrong = wrong ? wrong : take_made(&image, row);
	if (!wrong) {
		*ret_row = *row;
		return 0;
	}
	uint64_t id = (uint64_t)sqlite3_column_int64(stmt, CK_COUNT(columns) - 1);
	ck_row_fini(row);
	return *wrong ? ck_column_fail(stmt, err, "entry %llu: column %s", (unsigned long long)id,
				       wrong)
		      : ck_nomem(err);
}

static int take_digests(sqlite3_stmt *stmt, struct ck_record *record, struct ck_error *err)
{
	struct ck_blob blob;

	if (!ck_column_blob(stmt, 0, 0, INT32_MAX, &blob))
		return ck_column_fail(stmt, err, "fingerprint");
	if (!ck_digests_check(blob.bytes, blob.len))
		return ck_fail(err, CK_EDAMAGED, "fingerprint: malformed");
	unsigned char *digests = ck_memdup(blob.bytes, blob.len);
	if (!digests)
		return ck_nomem(err);
	free(record->digests);
	record->digests = digests;
	record->digests_len = blob.len;
	return 0;
}

int ck_digests_read(sqlite3_stmt *stmt, uint64_t id, struct ck_record *record, struct ck_error *err)
{
	int rc = sqlite3_bind_int64(stmt, 1, (sqlite3_int64)id);
	int r;

	rc = rc ? rc : ck_sql_step(stmt);
	if (rc == SQLITE_ROW)
		r = take_digests(stmt, record, err);
	else if (rc == SQLITE_DONE)
		r = ck_fail(err, CK_ENOTFOUND, "entry %llu has no fingerprint",
			    (unsigned long long)id);
	else
		r = ck_sql_fail(err, sqlite3_db_handle(stmt), rc, "read a fingerprint");
	sqlite3_reset(stmt);
	return r;
}

/* ---- counters -------------------------------------------------------------------------------- */

const char *const ck_counter_kinds[] = { "", ".sandbox", ".container" };

static uint64_t *counter_find(struct ck_counters *counters, const char *name)
{
	size_t len = strcspn(name, ".");
	int kind = CK_CONTAINER;
	while (kind >= 0 && strcmp(name + len, ck_counter_kinds[kind]))
		kind--;
	if (kind < 0)
		return NULL;
#define COUNTER_FIND(member, kinds, text) \
	if (len == strlen(#member) && !memcmp(name, #member, len)) \
		return &counters->member[kind];
	CK_COUNTERS(COUNTER_FIND)
#undef COUNTER_FIND
	return NULL; /* a counter of another release */
}

static int read_counter(sqlite3_stmt *stmt, void *userdata, struct ck_error *err)
{
	const char *name;
	int64_t value;

	if (!ck_column_text(stmt, 0, CK_NAME_MAX_LEN, &name) ||
	    !ck_column_number(stmt, 1, 0, INT64_MAX, &value))
		return ck_column_fail(stmt, err, "counter");
	uint64_t *counter = counter_find(userdata, name);
	if (counter)
		*counter = (uint64_t)value;
	return 0;
}

int ck_counters_read(sqlite3 *db, struct ck_counters *ret_counters, struct ck_error *err)
{
	struct ck_counters counters = { 0 };
	int r = ck_sql_each(db, "SELECT name, value FROM counter", read_counter, &counters,
			    "read the counters", err);

	if (r >= 0)
		*ret_counters = counters;
	return r;
}
