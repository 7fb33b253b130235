/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep stats: sizes, entries by state, counters. crikeep check: is the database sound? */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/select-entries.h"
#include "src/cli/entry-text.h"

static error_t parse_nothing(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	argp_error(state, "unexpected argument '%s'", arg);
	return EINVAL;
}

/* ---- stats ----------------------------------------------------------------------------------- */

static const struct counter {
	const char *name, *what;
	size_t at;
} counters[] = {
#define COUNTER(name, kinds, what) { #name, what, offsetof(struct ck_counters, name) },
	CK_COUNTERS(COUNTER)
#undef COUNTER
};

struct stats {
	size_t by_state[CK_STATE_MAX + 1];
	size_t by_kind[CK_CONTAINER + 1];
	size_t retried;        /* EVICTING after a failed attempt */
	int64_t database, wal; /* bytes; -1: no such file */
	bool frozen;           /* the owner */
};

static int64_t file_size(const char *name)
{
	CK_AUTO_FREE char *path = ck_text_format("%s/%s", ck_cli.state_dir, name);
	struct stat st;
	/* Do not open the file: closing it would drop this process's SQLite locks. */
	return stat(path, &st) < 0 ? -1 : (int64_t)st.st_size;
}

static void count(const struct ck_reader *reader, struct stats *stats)
{
	*stats = (struct stats){ .database = file_size("crikeep.db"),
				 .wal = file_size("crikeep.db-wal") };
	for (size_t i = 0; i < reader->rows_n; i++) {
		const struct ck_row *row = &reader->rows[i];
		stats->by_state[row->state]++;
		stats->by_kind[row->key->kind]++;
		stats->retried += row->state == CK_STATE_EVICTING && row->tries;
	}
}

static uint64_t counter_value(const struct ck_reader *reader, const struct counter *counter)
{
	uint64_t values[CK_CONTAINER + 1];
	memcpy(values, (const char *)&reader->counters + counter->at, sizeof(values));
	return ck_counter_sum(values);
}

static const char *size_or_none(int64_t bytes, char *buf)
{
	return bytes < 0 ? "none" : ck_text_size((uint64_t)bytes, buf);
}

static void print_people(const struct ck_reader *reader, const struct stats *stats)
{
	char name[CK_STATE_WORD], size[CK_TEXT_SPAN], wal[CK_TEXT_SPAN];
	ck_print_line(stdout, "state directory  %s", ck_cli.state_dir);
	printf("owner            %s", reader->owner_alive ? "" : "none");
	if (reader->owner_pid)
		printf(reader->owner_alive ? "process %ld" : "; the last one was process %ld",
		       reader->owner_pid);
	else if (reader->owner_alive)
		printf("unknown process");
	if (stats->frozen)
		printf("; it is stopped by a signal or a debugger and answers nobody");
	if (reader->owner_degraded)
		printf("; it cannot write the database now, and goes on in memory");
	putchar('\n');
	ck_print_line(stdout, "database         %s, WAL %s, schema %d",
		      size_or_none(stats->database, size), size_or_none(stats->wal, wal),
		      reader->schema);
	/* the owner may know more */
	const char *as_of = reader->owner_degraded ? ", as last written" : "";
	printf("\nentries%s\n", as_of);
	for (int s = CK_STATE_CREATING; s <= CK_STATE_MAX; s++) {
		printf("  %-17s %10zu", ck_state_lower((enum ck_state)s, name),
		       stats->by_state[s]);
		if (s == CK_STATE_EVICTING && stats->retried)
			printf("  %zu of them after failed attempts", stats->retried);
		putchar('\n');
	}
	printf("\ncounters%s\n", as_of);
	for (size_t i = 0; i < CK_COUNT(counters); i++)
		printf("  %-17s %10" PRIu64 "  %s\n", counters[i].name,
		       counter_value(reader, &counters[i]), counters[i].what);
}

static struct json_object *stats_tree(const struct ck_reader *reader, const struct stats *stats)
{
	char name[CK_STATE_WORD];
	struct json_object *tree = ck_tree_object(), *entries = ck_tree_object(),
			   *values = ck_tree_object();
	ck_tree_put_text(tree, "state_dir", ck_cli.state_dir);
	ck_tree_put_bool(tree, "owner_alive", reader->owner_alive);
	ck_tree_put_known(tree, "owner_pid", reader->owner_pid);
	ck_tree_put_bool(tree, "owner_frozen", stats->frozen);
	ck_tree_put_bool(tree, "owner_degraded", reader->owner_degraded);
	ck_tree_put_int(tree, "schema", reader->schema);
	ck_tree_put_int(tree, "database_bytes", stats->database < 0 ? 0 : stats->database);
	ck_tree_put_int(tree, "wal_bytes", stats->wal < 0 ? 0 : stats->wal);
	for (int s = CK_STATE_CREATING; s <= CK_STATE_MAX; s++)
		ck_tree_put_count(entries,
				  ck_state_lower((enum ck_state)s, name),
				  stats->by_state[s]);
	ck_tree_put_count(entries, "retried", stats->retried);
	ck_tree_put(tree, "entries", entries);
	for (size_t i = 0; i < CK_COUNT(counters); i++)
		ck_tree_put_count(values, counters[i].name, counter_value(reader, &counters[i]));
	ck_tree_put(tree, "counters", values);
	return tree;
}

int ck_cmd_stats(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_nothing,
		.doc = "Show the owner of the database, its size, the number of entries in each "
		       "state, and the counters since the database was created."
		       "\v"
		       "Examples:\n"
		       "  crikeep stats\n"
		       "  crikeep stats -o json",
		.children = ck_cli_children,
	};
	struct ck_look look;
	struct stats stats;
	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return CK_EXIT_TROUBLE;
	int r = ck_look_take(&look, CK_READ_ROWS | CK_READ_COUNTERS);
	if (r == CK_EXIT_YES) {
		struct ck_process owner;
		count(look.reader, &stats);
		stats.frozen = ck_owner_frozen(look.reader, &owner);
		ck_cli_page();
		if (ck_cli.output == CK_OUTPUT_TABLE)
			print_people(look.reader, &stats);
		else
			ck_tree_print(stdout, ck_cli.output, stats_tree(look.reader, &stats));
	}
	ck_look_fini(&look);
	return r;
}

/* ---- check ----------------------------------------------------------------------------------- */

static void add_finding(const char *finding, void *userdata)
{
	if (ck_cli.output == CK_OUTPUT_TABLE) {
		ck_print_line(stdout, "%s", finding);
		return;
	}
	struct json_object *object = ck_tree_object();
	ck_tree_put_text(object, "finding", finding);
	ck_tree_add(userdata, object);
}

int ck_cmd_check(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_nothing,
		.doc = "Check the database: SQLite's integrity check, the schema, every row, and "
		       "what must hold between rows. Every finding is printed. Nothing is "
		       "repaired: the owner sets a damaged database aside itself."
		       "\v"
		       "Exit status: 0 if the database is sound, 1 if there are findings, 2 if it "
		       "could not be checked.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep check\n"
		       "  crikeep check --state-dir /var/lib/crikeep -o json",
		.children = ck_cli_children,
	};
	struct ck_error err = { 0 };
	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return CK_EXIT_TROUBLE;
	bool tree = ck_cli.output != CK_OUTPUT_TABLE;
	struct json_object *findings = tree ? ck_tree_array() : NULL;
	ck_cli_page();
	int r = ck_reader_check(ck_cli.state_dir, add_finding, findings, &err);
	if (r < 0)
		ck_look_complain(r, &err);
	else if (tree)
		ck_tree_print(stdout, ck_cli.output, findings);
	else if (r == 0)
		printf("sound\n");
	if (r >= 0)
		ck_look_warn_unread();
	if (r < 0 && tree)
		json_object_put(findings);
	return r < 0 ? CK_EXIT_TROUBLE : r ? CK_EXIT_NO : CK_EXIT_YES;
}
