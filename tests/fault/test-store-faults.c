/* SPDX-License-Identifier: Apache-2.0 */
/*
 * K29, K32: one life of a store, in which each of our allocations, each store call and each
 * allocation of SQLite fails in turn. The next life finds exactly what this one believes to have
 * committed: each round complete, or not at all.
 */
#define CK_TEST_SECONDS 300
#include "tests/unit/harness.h"

#include "src/base/fault.h"
#include "tests/unit/rows.h"

/* ---- SQLite's allocations -------------------------------------------------------------------- */

static sqlite3_mem_methods real;
static unsigned fail_at; /* 1: the next; 0: none */
static bool failed;

static bool fails(void)
{
	if (!fail_at || --fail_at)
		return false;
	failed = true;
	return true;
}

static void *faulty_malloc(int n)
{
	return fails() ? NULL : real.xMalloc(n);
}

static void *faulty_realloc(void *p, int n)
{
	return fails() ? NULL : real.xRealloc(p, n);
}

static int install(void **state)
{
	sqlite3_mem_methods faulty;

	(void)state;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
	faulty = real;
	faulty.xMalloc = faulty_malloc;
	faulty.xRealloc = faulty_realloc;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &faulty), SQLITE_OK);
	return sqlite3_initialize();
}

/* ---- a life ---------------------------------------------------------------------------------- */

/* What is in the database according to what the caller was told. */
struct believed {
	bool created, kept;   /* the row is there; and was moved on */
	bool second;	      /* another row, with what came in its round */
	unsigned lines;	      /* of history */
	uint64_t counter;
};

static bool documented(int r)
{
	switch (r) {
	case 0:
	case -CK_ENOMEM:
	case -CK_EIO:
	case -CK_EFULL:
	case -CK_EDAMAGED:
		return true;
	}
	return false;
}

#define TRY(call)                                              \
	do {                                                   \
		int try_ = (call);                             \
		if (!documented(try_))                         \
			fail_msg("%s: %d", #call, try_);       \
		if (try_ < 0)                                  \
			return;                                \
	} while (0)

static void first_round(struct ck_store *store, const struct ck_row *row, struct believed *b)
{
	struct ck_counters counters = {.requests = {0, 1}};

	TRY(ck_store_begin(store, NULL));
	TRY(ck_store_insert(store, row, NULL));
	TRY(ck_store_note(store, row, CK_WHAT_BEGUN, 0, 0, 1, 0, NULL, NULL));
	TRY(ck_store_counters(store, &counters, NULL));
	TRY(ck_store_commit(store, NULL));
	b->created = true;
	b->lines++;
	b->counter = 1;
}

static void second_round(struct ck_store *store, struct ck_row *row, const struct ck_row *other,
			 struct believed *b)
{
	struct ck_counters counters = {.requests = {0, 2}};

	row->state = CK_STATE_KEPT;
	row->result = ck_shared_result_ref(other->result);
	TRY(ck_store_begin(store, NULL));
	TRY(ck_store_update(store, row, NULL));
	TRY(ck_store_insert(store, other, NULL));
	TRY(ck_store_note(store, row, CK_WHAT_MOVED, CK_STATE_CREATING, CK_STATE_KEPT, 1, 0, "text",
			  NULL));
	TRY(ck_store_note(store, other, CK_WHAT_BEGUN, 0, 0, 1, 0, NULL, NULL));
	TRY(ck_store_counters(store, &counters, NULL));
	TRY(ck_store_commit(store, NULL));
	b->kept = b->second = true;
	b->lines += 2;
	b->counter = 2;
}

static void third_round(struct ck_store *store, const struct ck_row *other, struct believed *b)
{
	TRY(ck_store_begin(store, NULL));
	TRY(ck_store_delete(store, other->id, NULL));
	TRY(ck_store_commit(store, NULL));
	b->second = false;
}

static void read_back(struct ck_store *store, const struct ck_row *row)
{
	struct rows rows = {.n = 0};
	struct ck_record record = {0};
	struct ck_counters counters;
	int r = ck_store_load(store, rows_add, &rows, NULL);

	rows_fini(&rows);
	TRY(r);
	TRY(ck_store_load_counters(store, &counters, NULL));
	r = ck_store_digests(store, row->id, &record, NULL);
	free(record.digests);
	TRY(r == -CK_ENOTFOUND ? 0 : r);
}

/* made before, so that only the store's own calls count */
static void life(const char *dir, struct ck_row *row, const struct ck_row *other,
		 struct believed *b)
{
	struct ck_store_opened opened = {0};
	struct ck_store *store;

	TRY(ck_store_open(dir, &store, &opened, NULL));
	if (opened.set_aside) /* a fault is not damage */
		fail_msg("set aside: %s", opened.why.text);
	first_round(store, row, b);
	if (b->created) {
		second_round(store, row, other, b);
		ck_store_idle(store);
		read_back(store, row);
		if (b->second)
			third_round(store, other, b);
	}
	ck_store_close(store);
}

static void life_with_damage(const char *dir, struct ck_row *row, const struct ck_row *other,
			     struct believed *b)
{
	struct ck_store_opened opened = {0};
	struct ck_store *store;
	char name[512];

	(void)other;
	TRY(ck_store_open(dir, &store, &opened, NULL));
	first_round(store, row, b);
	int r = ck_store_set_aside(store, name, NULL);
	if (!documented(r))
		fail_msg("set aside: %d", r);
	*b = (struct believed){0};
	/* even if that call failed: a later round finds an empty database */
	first_round(store, row, b);
	ck_store_close(store);
}

static int64_t number(sqlite3 *db, const char *sql)
{
	int64_t value = -1;
	assert_int_equal(ck_sql_number(db, sql, &value, NULL), 0);
	return value;
}

static void check(const char *dir, const struct believed *b)
{
	struct ck_store_opened opened = {0};
	struct ck_store *store;
	struct ck_counters counters;
	struct rows rows = {.n = 0};
	struct ck_error err;

	if (ck_store_open(dir, &store, &opened, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(opened.set_aside);
	assert_false(opened.no_database);
	assert_int_equal(ck_store_load(store, rows_add, &rows, NULL), 0);
	assert_int_equal(rows.n, b->created + b->second);
	if (b->created)
		assert_int_equal(rows.row[0].state, b->kept ? CK_STATE_KEPT : CK_STATE_CREATING);
	assert_int_equal(number(store->db, "SELECT count(*) FROM fingerprint"),
			 b->created + b->second);
	assert_int_equal(number(store->db, "SELECT count(*) FROM history"), b->lines);
	assert_int_equal(number(store->db, "SELECT ifnull(max(seq), 0) FROM history"), b->lines);
	assert_int_equal(ck_store_load_counters(store, &counters, NULL), 0);
	assert_int_equal(counters.requests[CK_SANDBOX], b->counter);
	rows_fini(&rows);
	ck_store_close(store);
}

/* ---- each in turn ---------------------------------------------------------------------------- */

enum source { OURS, STORE, SQLITES };

static void arm(enum source source, unsigned nth)
{
	failed = false;
	if (source == SQLITES)
		fail_at = nth;
	else
		ck_fault_arm(source == OURS ? CK_FAULT_ALLOC : CK_FAULT_STORE, nth, false);
}

static bool disarm(enum source source)
{
	bool hit = source == SQLITES ? failed : ck_fault_hit();
	fail_at = 0;
	ck_fault_arm(0, 0, false);
	return hit;
}

/* on a tmpfs, if there is one: then there is no helper thread, whose allocations would be counted,
 * too */
static void make_place(struct place *place)
{
	place_make_in(place, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

typedef void life_fn(const char *dir, struct ck_row *row, const struct ck_row *other,
		     struct believed *b);

/* Every @step-th. SQLite allocates some 2,000 times in a life: a scaled down run takes fewer. */
static void every(unsigned step, enum source source, life_fn *fn, bool existing)
{
	bool hit = true;
	unsigned n;

	for (n = 1; hit; n += step) {
		struct believed b = {0};
		struct place place;
		struct ck_store_opened opened;
		struct ck_store *store;
		make_place(&place);
		mkdir(place.dir, 0700);
		/* rows need a key, so there was an earlier life; its database exists only if the
		 * test wants it */
		assert_int_equal(ck_store_open(place.dir, &store, &opened, NULL), 0);
		struct ck_row row = row_make(store, "web", CK_STATE_CREATING),
			      other = row_make(store, "db", CK_STATE_KEPT);
		ck_store_close(store);
		if (!existing)
			unlink(place_file(&place, "crikeep.db"));
		sqlite3_int64 memory = sqlite3_memory_used();
		arm(source, n);
		fn(place.dir, &row, &other, &b);
		hit = disarm(source);
		assert_int_equal(sqlite3_memory_used(), memory);
		check(place.dir, &b);
		ck_row_fini(&row);
		ck_row_fini(&other);
		place_remove(&place);
	}
	assert_true(n > 3); /* there was something to fail */
}

static void each_allocation_of_ours(void **state)
{
	(void)state;
	every(1, OURS, life, true);
	every(1, OURS, life, false);
	every(1, OURS, life_with_damage, true);
}

static void each_store_call(void **state)
{
	(void)state;
	every(1, STORE, life, true);
	every(1, STORE, life, false);
	every(1, STORE, life_with_damage, true);
}

static void each_allocation_of_sqlite(void **state)
{
	unsigned step = (unsigned)(100 / ck_test_rounds(100));

	(void)state;
	every(step, SQLITES, life, true);
	every(step * 5, SQLITES, life, false);
	every(step * 5, SQLITES, life_with_damage, true);
}

/* ---- readers --------------------------------------------------------------------------------- */

static void say_nothing(const char *finding, void *userdata)
{
	(void)finding, (void)userdata;
}

static int read_all(const char *dir)
{
	struct ck_reader *reader;
	struct ck_error err;
	int r = ck_reader_open(dir,
			       CK_READ_ROWS | CK_READ_DIGESTS | CK_READ_HISTORY | CK_READ_COUNTERS,
			       &reader, &err);

	if (!documented(r) || r == -CK_EDAMAGED)
		fail_msg("read: %d, %s", r, err.text);
	if (r < 0)
		return r;
	assert_int_equal(reader->rows_n, 1);
	ck_reader_free(reader);
	r = ck_reader_check(dir, say_nothing, NULL, NULL);
	if (!documented(r)) /* findings would be a positive number, but there are none */
		fail_msg("check: %d", r);
	return r;
}

static void each_fault_of_a_reader(void **state)
{
	struct believed b = {0};
	struct place place;
	struct ck_store_opened opened;
	struct ck_store *store;

	(void)state;
	make_place(&place);
	assert_int_equal(ck_store_open(place.dir, &store, &opened, NULL), 0);
	struct ck_row row = row_make(store, "web", CK_STATE_CREATING),
		      other = row_make(store, "db", CK_STATE_KEPT);
	ck_store_close(store);
	life(place.dir, &row, &other, &b);
	for (enum source source = OURS; source <= SQLITES; source++) {
		bool hit = true;
		for (unsigned n = 1; hit; n++) {
			sqlite3_int64 memory = sqlite3_memory_used();
			arm(source, n);
			int r = read_all(place.dir);
			hit = disarm(source);
			assert_true(r == 0 || hit);
			assert_int_equal(sqlite3_memory_used(), memory);
		}
	}
	ck_row_fini(&row);
	ck_row_fini(&other);
	place_remove(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_of_ours),
		cmocka_unit_test(each_store_call),
		cmocka_unit_test(each_allocation_of_sqlite),
		cmocka_unit_test(each_fault_of_a_reader),
	};
	return CK_TEST_MAIN(tests, install, NULL);
}
