/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: the database contains exactly what was committed. */
#include "tests/unit/harness.h"
#include "tests/unit/rows.h"
#include "src/base/fault.h"

struct fixture {
	struct place place;
	struct ck_store *store;
	struct rows rows;
	struct ck_error err;
};

static void must(struct fixture *f, int r)
{
	if (r < 0)
		fail_msg("%d: %s", r, f->err.text);
}

static void open_store(struct fixture *f)
{
	struct ck_store_opened opened;
	must(f, ck_store_open(f->place.dir, &f->store, &opened, &f->err));
	assert_false(opened.no_database);
	assert_false(opened.set_aside);
}

static void reopen(struct fixture *f)
{
	ck_store_close(f->store);
	open_store(f);
}

static void load(struct fixture *f)
{
	rows_fini(&f->rows);
	must(f, ck_store_load(f->store, rows_add, &f->rows, &f->err));
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	place_make(&f->place);
	open_store(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	rows_fini(&f->rows);
	ck_store_close(f->store);
	place_remove(&f->place);
	free(f);
	return 0;
}

static int insert(struct fixture *f, const struct ck_row *row)
{
	must(f, ck_store_begin(f->store, &f->err));
	int r = ck_store_insert(f->store, row, &f->err);
	if (r < 0)
		ck_store_rollback(f->store);
	return r < 0 ? r : ck_store_commit(f->store, &f->err);
}

static void assert_same_row(const struct ck_row *a, const struct ck_row *b)
{
	assert_int_equal(a->id, b->id);
	assert_true(ck_key_same(a->key, b->key));
	assert_string_equal(a->key->pod_name, b->key->pod_name);
	assert_int_equal(a->record.form, b->record.form);
	assert_memory_equal(a->record.key_id, b->record.key_id, CK_KEY_ID_BYTES);
	assert_memory_equal(a->record.salt, b->record.salt, CK_SALT_BYTES);
	assert_memory_equal(a->record.root, b->record.root, CK_ROOT_BYTES);
	assert_memory_equal(a->record.rest, b->record.rest, CK_DIGEST_BYTES);
	assert_memory_equal(a->record.image_id, b->record.image_id, CK_DIGEST_BYTES);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->reason, b->reason);
	assert_int_equal(a->phase, b->phase);
	assert_int_equal(a->origin, b->origin);
	assert_string_equal(a->stage, b->stage);
	assert_int_equal(!a->result, !b->result);
	if (a->result) {
		assert_string_equal(a->result->id, b->result->id);
		assert_int_equal(a->result->len, b->result->len);
		assert_memory_equal(a->result->bytes, b->result->bytes, a->result->len);
	}
	assert_string_equal(a->told ? a->told : "", b->told ? b->told : "");
	assert_int_equal(a->requests, b->requests);
	assert_int_equal(a->tries, b->tries);
	assert_int_equal(a->last_grpc, b->last_grpc);
	assert_int_equal(a->created, b->created);
	assert_int_equal(a->changed, b->changed);
	assert_int_equal(a->asked, b->asked);
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->interest, b->interest);
	assert_int_equal(a->existed, b->existed);
	assert_int_equal(a->due, b->due);
	assert_int_equal(a->staged, b->staged);
	assert_int_equal(a->searched, b->searched);
	assert_int_equal(a->absent, b->absent);
	assert_string_equal(a->boot, b->boot);
}

static void a_row_comes_back_as_it_was_written(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_EVICTING);
	struct ck_record loaded = { 0 };

	row.flags = CK_ENTRY_TOLD | CK_ENTRY_DELIVERED | CK_ENTRY_RESENT;
	row.reason = CK_REASON_MAX;
	row.phase = CK_PHASE_MAX;
	strcpy(row.stage, "sandbox network creation");
	row.told = strdup("10-cpu 20-net");
	row.requests = UINT32_MAX;
	row.tries = 7;
	row.last_grpc = -1;
	row.existed = INT64_MAX;
	row.due = 5;
	row.staged = 6;
	row.searched = 7;
	row.absent = 8;
	row.start = CK_START_MAX;
	assert_int_equal(insert(f, &row), 0);
	reopen(f);
	load(f);
	assert_int_equal(f->rows.n, 1);
	assert_same_row(&f->rows.row[0], &row);
	assert_null(f->rows.row[0].record.digests);
	must(f, ck_store_digests(f->store, row.id, &loaded, &f->err));
	assert_int_equal(loaded.digests_len, row.record.digests_len);
	assert_memory_equal(loaded.digests, row.record.digests, loaded.digests_len);
	free(loaded.digests);
	ck_row_fini(&row);
}

static void an_imported_row_has_no_fingerprint(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_COMMITTED);
	struct ck_record none = {0};

	ck_record_fini(&row.record);
	memset(&row.record, 0, sizeof(row.record));
	row.origin = CK_ORIGIN_RUNTIME;
	assert_int_equal(insert(f, &row), 0);
	load(f);
	assert_same_row(&f->rows.row[0], &row);
	assert_int_equal(ck_store_digests(f->store, row.id, &none, &f->err), -CK_ENOTFOUND);
	ck_row_fini(&row);
}

static void an_update_keeps_key_and_record(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_CREATING);

	assert_int_equal(insert(f, &row), 0);
	row.state = CK_STATE_KEPT;
	row.result = ck_shared_result_new("abc", "reply", 5);
	row.existed = 77;
	row.flags = CK_ENTRY_RESENT;
	row.searched = 78;
	row.absent = 79;
	memset(row.record.image_id, 9, sizeof(row.record.image_id));
	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_update(f->store, &row, &f->err));
	must(f, ck_store_commit(f->store, &f->err));
	load(f);
	row.flags = CK_ENTRY_RESENT; /* volatile is a property of memory */
	assert_same_row(&f->rows.row[0], &row);
	ck_row_fini(&row);
}

static void an_empty_reply_is_a_reply(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_CREATING);

	row.state = CK_STATE_KEPT;
	row.result = ck_shared_result_new("abc", "", 0);
	assert_int_equal(insert(f, &row), 0);
	load(f);
	assert_non_null(f->rows.row[0].result);
	assert_int_equal(f->rows.row[0].result->len, 0);
	assert_string_equal(f->rows.row[0].result->id, "abc");
	ck_row_fini(&row);
}

static void update_of_a_row_that_is_not_there_is_damage(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_CREATING);

	must(f, ck_store_begin(f->store, &f->err));
	assert_int_equal(ck_store_update(f->store, &row, &f->err), -CK_EDAMAGED);
	ck_row_fini(&row);
}

static void a_failed_statement_takes_the_whole_round_back(void **state)
{
	struct fixture *f = *state;
	struct ck_row first = row_make(f->store, "web", CK_STATE_KEPT);
	struct ck_row other = row_make(f->store, "db", CK_STATE_KEPT);
	struct ck_counters counters = {.kept = {0, 3}}, found;

	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_insert(f->store, &first, &f->err));
	must(f, ck_store_insert(f->store, &other, &f->err));
	must(f, ck_store_note(f->store, &first, CK_WHAT_BEGUN, 0, 0, 5, 0, NULL, &f->err));
	must(f, ck_store_counters(f->store, &counters, &f->err));
	ck_fault_arm(CK_FAULT_STORE, 1, false);
	assert_int_equal(ck_store_update(f->store, &first, &f->err), -CK_EIO);
	ck_fault_arm(0, 0, false);
	load(f);
	assert_int_equal(f->rows.n, 0);
	must(f, ck_store_load_counters(f->store, &found, &f->err));
	assert_int_equal(found.kept[CK_SANDBOX], 0);
	/* a failed write does not count as written: it is repeated */
	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_counters(f->store, &counters, &f->err));
	must(f, ck_store_commit(f->store, &f->err));
	reopen(f);
	must(f, ck_store_load_counters(f->store, &found, &f->err));
	assert_int_equal(found.kept[CK_SANDBOX], 3);
	ck_row_fini(&first);
	ck_row_fini(&other);
}

static void a_row_that_breaks_a_constraint_is_left_out_alone(void **state)
{
	struct fixture *f = *state;
	struct ck_row first = row_make(f->store, "web", CK_STATE_KEPT);
	struct ck_row second = row_make(f->store, "web", CK_STATE_CREATING);
	struct ck_row other = row_make(f->store, "db", CK_STATE_KEPT);

	second.key->kind = 3;
	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_insert(f->store, &first, &f->err));
	assert_int_equal(ck_store_insert(f->store, &second, &f->err), -CK_ECONFLICT);
	assert_int_equal(ck_store_insert(f->store, &first, &f->err), -CK_ECONFLICT);
	must(f, ck_store_insert(f->store, &other, &f->err));
	must(f, ck_store_note(f->store, &first, CK_WHAT_BEGUN, 0, 0, 5, 0, NULL, &f->err));
	must(f, ck_store_commit(f->store, &f->err));
	reopen(f);
	load(f);
	assert_int_equal(f->rows.n, 2);
	ck_row_fini(&first);
	ck_row_fini(&second);
	ck_row_fini(&other);
}

static void a_line_of_history_whose_number_is_taken_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_KEPT);

	assert_int_equal(insert(f, &row), 0);
	must(f, ck_sql_exec(f->store->db,
			    "INSERT INTO history VALUES (1, 9, 'x', 1, NULL, 1, 0, 0, 0, 0, 0, 0, "
			    "NULL, '')",
			    &f->err));
	must(f, ck_store_begin(f->store, &f->err));
	assert_int_equal(
		ck_store_note(f->store, &row, CK_WHAT_BEGUN, 0, 0, 5, 0, NULL, &f->err),
		-CK_ECONFLICT);
	must(f, ck_store_note(f->store, &row, CK_WHAT_BEGUN, 0, 0, 5, 0, NULL, &f->err));
	must(f, ck_store_commit(f->store, &f->err));
	ck_row_fini(&row);
}

static void a_rolled_back_round_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_KEPT);

	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_insert(f->store, &row, &f->err));
	ck_store_rollback(f->store);
	load(f);
	assert_int_equal(f->rows.n, 0);
	ck_row_fini(&row);
}

/* of a row that is gone a line of history remains */
static void ids_are_never_used_twice(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_KEPT);
	struct ck_record loaded = { 0 };

	assert_int_equal(insert(f, &row), 0);
	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_note(f->store, &row, CK_WHAT_BEGUN, 0, 0, 5, 0, NULL, &f->err));
	must(f, ck_store_delete(f->store, row.id, &f->err));
	must(f, ck_store_commit(f->store, &f->err));
	assert_int_equal(ck_store_digests(f->store, row.id, &loaded, &f->err), -CK_ENOTFOUND);
	reopen(f);
	load(f);
	assert_int_equal(f->rows.n, 0);
	assert_true(ck_store_next_id(f->store) > row.id);
	ck_row_fini(&row);
}

static void the_wal_is_written_back_when_it_is_due(void **state)
{
	struct fixture *f = *state;
	const unsigned many = 1u << 20;

	f->store->frames = f->store->next_try = many;
	ck_checkpoint_bound(f->store);
	assert_true(f->store->next_try > many); /* it has tried */
	f->store->frames = f->store->next_try - 1;
	const unsigned next = f->store->next_try;
	ck_checkpoint_bound(f->store);
	assert_int_equal(f->store->next_try, next);
}

static void counters_count_on_after_a_restart(void **state)
{
	struct fixture *f = *state;
	struct ck_counters counters = {.requests = {0, 10, 5}, .set_aside = {UINT64_MAX}}, found;

	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_counters(f->store, &counters, &f->err));
	must(f, ck_store_commit(f->store, &f->err));
	counters.requests[CK_SANDBOX] = 11;
	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_counters(f->store, &counters, &f->err));
	must(f, ck_store_commit(f->store, &f->err));
	reopen(f);
	must(f, ck_store_load_counters(f->store, &found, &f->err));
	assert_int_equal(found.requests[CK_SANDBOX], 11);
	assert_int_equal(found.requests[CK_CONTAINER], 5);
	assert_int_equal(found.requests[0], 0);
	assert_int_equal(ck_counter_sum(found.created), 0);
	assert_int_equal(found.set_aside[0], INT64_MAX);
}

static void counters_of_other_releases_do_no_harm(void **state)
{
	struct fixture *f = *state;
	struct ck_counters found;

	must(f, ck_sql_exec(f->store->db,
			    "INSERT INTO counter VALUES ('created', 7), ('created.container', 2),"
			    " ('created.pod', 4), ('cre', 8), ('created.', 16), ('.sandbox', 32),"
			    " ('', 64)",
			    &f->err));
	must(f, ck_store_load_counters(f->store, &found, &f->err));
	assert_int_equal(found.created[0], 7); /* before kinds were told apart */
	assert_int_equal(found.created[CK_SANDBOX], 0);
	assert_int_equal(found.created[CK_CONTAINER], 2);
	assert_int_equal(ck_counter_sum(found.requests), 0);
}

static int64_t number(struct fixture *f, const char *sql)
{
	int64_t value;
	must(f, ck_sql_number(f->store->db, sql, &value, &f->err));
	return value;
}

static void history_is_bounded_and_has_no_gaps(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_KEPT);

	for (unsigned i = 0; i < CK_HISTORY_ROWS + 500; i += 500) {
		must(f, ck_store_begin(f->store, &f->err));
		for (unsigned k = 0; k < 500; k++)
			must(f, ck_store_note(f->store, &row, CK_WHAT_BUSY, 0, 0, i + k, 0, "text",
					      &f->err));
		must(f, ck_store_commit(f->store, &f->err));
		if (i % 10000 == 0) {
			must(f, ck_store_begin(f->store, &f->err));
			must(f, ck_store_note(f->store, &row, CK_WHAT_BUSY, 0, 0, 1, 0, NULL,
					      &f->err));
			ck_store_rollback(f->store);
		}
	}
	assert_int_equal(number(f, "SELECT count(*) FROM history"), CK_HISTORY_ROWS);
	assert_int_equal(number(f, "SELECT max(seq) - min(seq) + 1 FROM history"), CK_HISTORY_ROWS);
	assert_int_equal(number(f, "SELECT max(seq) FROM history"), CK_HISTORY_ROWS + 500);
	/* trimming reads only the left end of the tree */
	assert_int_equal(
		number(f, "SELECT count(*) FROM (SELECT 1 FROM history WHERE seq <= 500 AND seq <"
			  " (SELECT min(seq) FROM history) + 16)"),
		0);
	ck_row_fini(&row);
}

static char crashes[256];

static void record_crash_point(const char *when, const char *what)
{
	size_t n = strlen(crashes);
	snprintf(crashes + n, sizeof(crashes) - n, "%s %s;", when, what);
}

static void crash_points_name_the_moves_of_a_round(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_CREATING);

	crashes[0] = '\0';
	ck_crash_hook = record_crash_point;
	assert_int_equal(insert(f, &row), 0);
	row.state = CK_STATE_KEPT;
	row.result = ck_shared_result_new("abc", NULL, 0);
	must(f, ck_store_begin(f->store, &f->err));
	must(f, ck_store_update(f->store, &row, &f->err));
	must(f, ck_store_note(f->store, &row, CK_WHAT_MOVED, CK_STATE_CREATING, CK_STATE_KEPT, 1, 0,
			      NULL, &f->err));
	must(f, ck_store_note(f->store, &row, CK_WHAT_CALLER_GONE, 0, 0, 1, 0, NULL, &f->err));
	must(f, ck_store_note(f->store, &row, CK_WHAT_MOVED, CK_STATE_KEPT, CK_STATE_EVICTING, 1, 0,
			      NULL, &f->err));
	must(f, ck_store_commit(f->store, &f->err));
	ck_crash_hook = NULL;
	assert_string_equal(
		crashes, "before >CREATING;after >CREATING;"
			 "before CREATING>KEPT,KEPT>EVICTING;after CREATING>KEPT,KEPT>EVICTING;");
	ck_row_fini(&row);
}

static void a_full_list_of_moves_is_cut_at_a_move(void **state)
{
	struct fixture *f = *state;

	f->store->moves_len = 0;
	ck_crash_hook = record_crash_point; /* without one nothing is listed */
	for (int i = 0; i < 100; i++)
		ck_store_add_move(f->store, CK_STATE_CREATING, CK_STATE_COMMITTING);
	ck_crash_hook = NULL;
	assert_true(strlen(f->store->moves) == f->store->moves_len);
	assert_string_equal(strrchr(f->store->moves, ','), ",CREATING>COMMITTING");
}

/* Sets a column of the only row to something that the schema forbids, as a forged file may contain
 * it. */
static void a_forged_value_is_never_taken(void **state)
{
	static const char *const forged[] = {
		"kind = 3",
		"kind = 2, state = 99",
		"state = 0",
		"state = 9",
		"flags = 8",
		"flags = -1",
		"reason = 16",
		"phase = 8",
		"origin = 3",
		"attempt = -1",
		"attempt = 4294967296",
		"form = -1",
		"form = 0",
		"salt = x'00'",
		"root = NULL",
		"key_id = x''",
		"name = 'a' || char(0) || 'b'",
		"name = CAST(zeroblob(1025) AS TEXT)",
		"namespace = printf('%.*c', 1025, 'x')",
		"sandbox = 'x'",
		"container = 'x'",
		"stage = printf('%.*c', 65, 'x')",
		"boot = printf('%.*c', 37, 'x')",
		"object = NULL",
		"object = ''",
		"object = printf('%.*c', 1025, 'x')",
		"reply = NULL",
		"reply = zeroblob(65537)",
		"object = NULL, reply = NULL",
		"told = printf('%.*c', 4097, 'x')",
		"requests = -1",
		"tries = 4294967296",
		"last_grpc = 4294967296",
		"created = -1",
		"due = -9223372036854775808",
	};
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_KEPT);

	assert_int_equal(insert(f, &row), 0);
	sqlite3_exec(f->store->db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
	for (size_t i = 0; i < CK_COUNT(forged); i++) {
		char sql[256];
		snprintf(sql, sizeof(sql), "BEGIN; UPDATE entry SET %s", forged[i]);
		int rc = sqlite3_exec(f->store->db, sql, NULL, NULL, NULL);
		if (rc == SQLITE_OK) { /* even strict tables accept it */
			f->err.text[0] = '\0';
			if (ck_store_load(f->store, rows_add, &f->rows, &f->err) != -CK_EDAMAGED)
				fail_msg("%s was taken", forged[i]);
		}
		sqlite3_exec(f->store->db, "ROLLBACK", NULL, NULL, NULL);
	}
	assert_int_equal(f->rows.n, 0);
	load(f);
	assert_int_equal(f->rows.n, 1);
	ck_row_fini(&row);
}

static void malformed_leaves_are_damage(void **state)
{
	struct fixture *f = *state;
	struct ck_row row = row_make(f->store, "web", CK_STATE_KEPT);
	struct ck_record record = {0};

	assert_int_equal(insert(f, &row), 0);
	assert_int_equal(sqlite3_exec(f->store->db, "UPDATE fingerprint SET leaves = x'ffffffffff'",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(ck_store_digests(f->store, row.id, &record, &f->err), -CK_EDAMAGED);
	assert_null(record.digests);
	ck_row_fini(&row);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_comes_back_as_it_was_written),
		TEST(an_imported_row_has_no_fingerprint),
		TEST(an_update_keeps_key_and_record),
		TEST(an_empty_reply_is_a_reply),
		TEST(update_of_a_row_that_is_not_there_is_damage),
		TEST(a_failed_statement_takes_the_whole_round_back),
		TEST(a_row_that_breaks_a_constraint_is_left_out_alone),
		TEST(a_line_of_history_whose_number_is_taken_is_left_out),
		TEST(a_rolled_back_round_leaves_nothing),
		TEST(ids_are_never_used_twice),
		TEST(the_wal_is_written_back_when_it_is_due),
		TEST(counters_count_on_after_a_restart),
		TEST(counters_of_other_releases_do_no_harm),
		TEST(history_is_bounded_and_has_no_gaps),
		TEST(crash_points_name_the_moves_of_a_round),
		TEST(a_full_list_of_moves_is_cut_at_a_move),
		TEST(a_forged_value_is_never_taken),
		TEST(malformed_leaves_are_damage),
	};
	return CK_TEST_MAIN(tests);
}
