/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: everything that is in a consistent copy (copy.c), checked, as plain structs. Also the
 * full check of a database. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cache/store/store-int.h"

#define READ_ENTRIES "read the entries"
#define READ_HISTORY "read the history"

/* @owner: NULL, or what gets what is known of the owner */
static int open_copy(const char *dir, sqlite3 **ret_copy, struct ck_reader *owner,
		     struct ck_error *err)
{
	CK_AUTO_FREE char *path = NULL;
	CK_AUTO_CLOSE int dirfd = -1;
	int r = ck_state_dir_open(dir, false, &path, &dirfd, err);

	if (r < 0)
		return r;
	if (owner) {
		owner->owner_alive = ck_state_dir_owned(dirfd, &owner->owner_pid);
		owner->owner_degraded = ck_state_dir_degraded(dirfd);
	}
	r = ck_copy_open(path, dirfd, ret_copy, err);
	return ck_context(err, r, "'%s'", dir);
}

static int check_version(sqlite3 *db, int *ret_version, struct ck_error *err)
{
	int r = ck_schema_check(db, ret_version, err);

	return r == 1 ? ck_fail(err, CK_ENOTFOUND, "there is no database yet") : r;
}

/* ---- rows and lines, one after the other ----------------------------------------------------- */

static int add_row(sqlite3_stmt *stmt, void *userdata, struct ck_error *err)
{
	struct ck_reader *reader = userdata;
	struct ck_row *rows = ck_grown(reader->rows, reader->rows_n, sizeof(*rows));

	if (!rows)
		return ck_nomem(err);
	reader->rows = rows;
	int r = ck_row_decode(stmt, &rows[reader->rows_n], err);
	reader->rows_n += r >= 0;
	return r;
}

static int read_digests(sqlite3 *db, struct ck_reader *reader, struct ck_error *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = ck_sql_prepare(db, ck_digests_select, &stmt, err);

	for (size_t i = 0; r >= 0 && i < reader->rows_n; i++) {
		r = ck_digests_read(stmt, reader->rows[i].id, &reader->rows[i].record, err);
		r = r == -CK_ENOTFOUND ? 0 : r;
	}
	sqlite3_finalize(stmt);
	return r;
}

static int add_line(sqlite3_stmt *stmt, void *userdata, struct ck_error *err)
{
	struct ck_reader *reader = userdata;
	struct ck_history_row *rows = ck_grown(reader->history, reader->history_n, sizeof(*rows));

	if (!rows)
		return ck_nomem(err);
	reader->history = rows;
	int r = ck_history_decode(stmt, &rows[reader->history_n], err);
	reader->history_n += r >= 0;
	return r;
}

int ck_reader_open(const char *dir, unsigned what, struct ck_reader **ret_reader,
		   struct ck_error *err)
{
	sqlite3 *copy = NULL;
	struct ck_reader *reader = CK_NEW(struct ck_reader);

	if (!reader)
		return ck_nomem(err);
	int r = open_copy(dir, &copy, reader, err);
	if (r >= 0)
		r = check_version(copy, &reader->schema, err);
	if (r >= 0 && what & (CK_READ_ROWS | CK_READ_DIGESTS))
		r = ck_sql_each(copy, ck_row_select, add_row, reader, READ_ENTRIES, err);
	if (r >= 0 && what & CK_READ_DIGESTS)
		r = read_digests(copy, reader, err);
	if (r >= 0 && what & CK_READ_HISTORY)
		r = ck_sql_each(copy, ck_history_select, add_line, reader, READ_HISTORY, err);
	if (r >= 0 && what & CK_READ_COUNTERS)
		r = ck_counters_read(copy, &reader->counters, err);
	sqlite3_close(copy);
	if (r < 0) {
		ck_reader_free(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

void ck_reader_free(struct ck_reader *reader)
{
	if (!reader)
		return;
	for (size_t i = 0; i < reader->rows_n; i++)
		ck_row_fini(&reader->rows[i]);
	for (size_t i = 0; i < reader->history_n; i++)
		ck_history_row_fini(&reader->history[i]);
	free(reader->rows);
	free(reader->history);
	free(reader);
}

/* ---- the check ------------------------------------------------------------------------------- */

struct report {
	void (*say)(const char *finding, void *userdata);
	void *userdata;
	int findings;
	sqlite3_stmt *digests;
};

static void CK_PRINTF(2, 3) found(struct report *report, const char *fmt, ...)
{
	char text[CK_ERROR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report->say(text, report->userdata);
	report->findings++;
}

/* Damage is a finding; anything else ends the check. */
static int finding_or_error(struct report *report, int r, const struct ck_error *why,
			    struct ck_error *err)
{
	if (r == -CK_EDAMAGED)
		found(report, "%s", why->text);
	else if (r < 0 && err)
		*err = *why;
	return r == -CK_EDAMAGED ? 0 : r;
}

/* Every answer to these questions is a finding. */
static const struct {
	const char *sql, *text; /* the text gets the first column */
} questions[] = {
	{ "PRAGMA integrity_check", "%s" },
	{ "SELECT id FROM entry WHERE form <> 0 AND id NOT IN (SELECT entry FROM fingerprint)",
	  "entry %s: the fingerprint is missing" },
	{ "SELECT entry FROM fingerprint WHERE entry NOT IN (SELECT id FROM entry)",
	  "fingerprint %s: the entry is missing" },
	{ "SELECT count(*) FROM history HAVING count(*) > 100000 + 16",
	  "the history has %s lines" },
	{ "SELECT count(*) FROM entry WHERE kind = 1 AND state IN (1, 2, 3, 4, 7) "
	  "AND origin = 1"
	  " GROUP BY uid, name, namespace, attempt HAVING count(*) > 1",
	  "%s entries have the key of one sandbox" },
	{ "SELECT count(*) FROM entry WHERE kind = 2 AND state IN (1, 2, 3, 4, 7) "
	  "AND origin = 1"
	  " GROUP BY sandbox, container, attempt HAVING count(*) > 1",
	  "%s entries have the key of one container" },
};
_Static_assert(CK_HISTORY_ROWS == 100000, "the question about the history says it as a number");
_Static_assert(CK_STATE_CREATING == 1 && CK_STATE_KEPT == 2 && CK_STATE_COMMITTING == 3 &&
		       CK_STATE_COMMITTED == 4 && CK_STATE_UNKNOWN == 7,
	       "the questions about keys say these as numbers");

struct answer {
	struct report *report;
	const char *text;
};

static int answer(sqlite3_stmt *stmt, void *userdata, struct ck_error *err)
{
	const struct answer *to = userdata;
	const char *is = (const char *)sqlite3_column_text(stmt, 0);
	const char *rest = strstr(to->text, "%s") + 2;

	(void)err;
	if (!is || strcmp(is, "ok"))
		found(to->report, "%.*s%s%s", (int)(rest - 2 - to->text), to->text, is ? is : "?",
		      rest);
	return 0;
}

static int check_row(sqlite3_stmt *stmt, void *userdata, struct ck_error *err)
{
	struct report *report = userdata;
	struct ck_row row = {0};
	struct ck_error why;
	int r = finding_or_error(report, ck_row_decode(stmt, &row, &why), &why, err);

	if (r >= 0 && row.id) {
		r = ck_digests_read(report->digests, row.id, &row.record, &why);
		/* a row without any is the answer to a question */
		r = r == -CK_ENOTFOUND
			    ? 0
			    : ck_context(&why, r, "entry %llu", (unsigned long long)row.id);
		r = finding_or_error(report, r, &why, err);
	}
	ck_row_fini(&row);
	return r;
}

static int check_line(sqlite3_stmt *stmt, void *userdata, struct ck_error *err)
{
	struct ck_history_row row = {0};
	struct ck_error why;
	int r = finding_or_error(userdata, ck_history_decode(stmt, &row, &why), &why, err);

	if (row.what == CK_WHAT_MOVED && !ck_state_may_move(row.from, row.to))
		found(userdata, "history line %llu: entry %llu moved from %s to %s",
		      (unsigned long long)row.seq, (unsigned long long)row.entry,
		      row.from ? ck_state_name(row.from) : "nothing", ck_state_name(row.to));
	ck_history_row_fini(&row);
	return r;
}

static int check_all(sqlite3 *db, struct report *report, struct ck_error *err)
{
	struct ck_counters counters;
	int version;
	int r = check_version(db, &version, err);

	for (size_t i = 0; r >= 0 && i < CK_COUNT(questions); i++) {
		struct answer to = { report, questions[i].text };
		r = ck_sql_each(db, questions[i].sql, answer, &to, "check", err);
	}
	if (r >= 0)
		r = ck_sql_prepare(db, ck_digests_select, &report->digests, err);
	if (r >= 0)
		r = ck_sql_each(db, ck_row_select, check_row, report, READ_ENTRIES, err);
	sqlite3_finalize(report->digests);
	if (r >= 0)
		r = ck_sql_each(db, ck_history_select, check_line, report, READ_HISTORY, err);
	return r < 0 ? r : ck_counters_read(db, &counters, err);
}

/* The owner bounds the WAL, unless somebody reads it all the time. */
static void check_wal(const char *dir, struct report *report)
{
	CK_AUTO_CLOSE int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int64_t wal = dirfd < 0 ? -1 : ck_state_dir_size(dirfd, CK_DB_WAL);
	long pid = wal < (int64_t)CK_WAL_PINNED ? 0 : ck_lock_holder(dirfd, false);

	if (pid)
		found(report, "the WAL has %lld MiB: process %ld reads the database",
		      (long long)(wal >> 20), pid);
}

int ck_reader_check(const char *dir, void (*say)(const char *finding, void *userdata),
		    void *userdata, struct ck_error *err)
{
	struct report report = { .say = say, .userdata = userdata };
	sqlite3 *copy = NULL;
	struct ck_error why;
	int r = open_copy(dir, &copy, NULL, &why);

	if (r >= 0)
		r = check_all(copy, &report, &why);
	sqlite3_close(copy);
	if (r >= 0)
		check_wal(dir, &report);
	r = finding_or_error(&report, r, &why, err);
	return r < 0 ? r : report.findings;
}
