/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep history: what the owner recorded about every entry, oldest first. */
#include <inttypes.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/cli/cli.h"
#include "src/cli/entry-text.h"

#define LINES_DEFAULT 50

struct arguments {
	const char *pick;
	uint64_t since; /* ns; 0: no limit */
	uint64_t lines; /* at most; 0: all */
};

enum { OPT_SINCE = 0x200 };

static const struct argp_option options[] = {
	{ "lines", 'n', "N", 0, "Show the last N lines (default: 50; 0: all)", 0 },
	{ "since", OPT_SINCE, "SPAN", 0, "Show only the last SPAN: 10m, 1h30m, 2d ...", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	char *end;
	switch (key) {
	case 'n':
		args->lines = strtoull(arg, &end, 10);
		if (*arg < '0' || *arg > '9' || *end)
			argp_error(state, "invalid number of lines '%s'", arg);
		return 0;
	case OPT_SINCE:
		if (!ck_duration_parse(arg, &args->since) || !args->since)
			argp_error(state, "invalid time span '%s'; expected one like 30s or 1h30m",
				   arg);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 0)
			argp_error(state, "unexpected argument '%s'; expected one entry or pod",
				   arg);
		args->pick = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* Lines of this boot are judged by a clock that never jumps, older ones by the wall clock. */
static bool recent(const struct ck_look *look, const struct ck_history_row *line, uint64_t since)
{
	if (ck_look_this_boot(look, line->boot))
		return ck_look_ago(look, line->at) <= since;
	int64_t now = look->wall / (int64_t)CK_NS_PER_S;
	return line->wall >= now || (uint64_t)(now - line->wall) <= since / CK_NS_PER_S;
}

/* "KEPT -> EVICTING: nobody asked again in time", "destroying failed: UNAVAILABLE". The first move
 * of an entry has no state before the arrow. */
static void add_event(struct ck_table *table, const struct ck_history_row *line)
{
	bool moved = line->what == CK_WHAT_MOVED;
	const char *parts[] = {
		moved ? ck_reason_text(line->reason) : "",
		line->grpc ? ck_grpc_name(line->grpc) : "",
		line->detail ? line->detail : "",
	};
	CK_AUTO_FREE char *text = NULL;
	size_t len;
	FILE *out = ck_must(open_memstream(&text, &len));
	if (moved)
		fprintf(out, "%s%s-> %s", line->from ? ck_state_name(line->from) : "",
			line->from ? " " : "", ck_state_name(line->to));
	else
		fputs(ck_what_text(line->what), out);
	for (size_t i = 0; i < CK_COUNT(parts); i++)
		fprintf(out, "%s%s", *parts[i] ? ": " : "", parts[i]);
	if (fclose(out))
		ck_text_nomem();
	ck_table_cell(table, text);
}

/* The kind is left out: only a container has three names. */
static void add_line(struct ck_table *table, const struct ck_look *look,
		     const struct ck_history_row *line)
{
	char clock[CK_TEXT_SPAN];
	const char *who = line->who + strcspn(line->who, " ");
	const char *attempt = strrchr(line->who, ' ');
	who += *who == ' ';
	/* without " attempt" */
	int len = attempt && attempt - who > 8 ? (int)(attempt - who) - 8 : (int)strlen(who);
	ck_table_cell(table, ck_text_clock(line->wall, look->wall / (int64_t)CK_NS_PER_S, clock));
	ck_table_cellf(table, "%" PRIu64, line->entry);
	ck_table_cellf(table, "%.*s", len, who);
	ck_table_cell(table, attempt ? attempt + 1 : NULL);
	add_event(table, line);
}

static struct json_object *line_tree(const struct ck_look *look, const struct ck_history_row *line)
{
	bool moved = line->what == CK_WHAT_MOVED;
	struct json_object *object = ck_tree_object();
	ck_tree_put_count(object, "seq", line->seq);
	ck_tree_put_time(object, "at", line->wall);
	if (ck_look_this_boot(look, line->boot))
		ck_tree_put_seconds(object, "seconds_ago",
				    (int64_t)(ck_look_ago(look, line->at) & INT64_MAX));
	else
		ck_tree_put(object, "seconds_ago", NULL);
	ck_tree_put_count(object, "entry", line->entry);
	ck_tree_put_text(object, "kind", ck_kind_word(line->kind));
	ck_tree_put_text(object, "who", line->who);
	ck_tree_put_text(object, "id", line->object);
	ck_tree_put_text(object, "what", ck_what_text(line->what));
	ck_tree_put_text(object, "from", moved && line->from ? ck_state_name(line->from) : NULL);
	ck_tree_put_text(object, "to", moved ? ck_state_name(line->to) : NULL);
	ck_tree_put_text(object, "reason", line->reason ? ck_reason_name(line->reason) : NULL);
	ck_tree_put_text(object, "code", line->grpc ? ck_grpc_name(line->grpc) : NULL);
	ck_tree_put_text(object, "detail", line->detail);
	return object;
}

static void print(const struct ck_look *look, const bool *shown, size_t n)
{
	static const struct ck_column columns[] = {
		{ "TIME", 0, 0 },
		{ "ENTRY", CK_COLUMN_RIGHT, 0 },
		{ "WHO", 0, 0 },
		{ "ATTEMPT", CK_COLUMN_RIGHT, 1 },
		{ "EVENT", CK_COLUMN_CUT, 0 },
	};
	const struct ck_reader *reader = look->reader;
	bool tree = ck_cli.output != CK_OUTPUT_TABLE;
	if (!n && !tree)
		return;
	struct json_object *array = tree ? ck_tree_array() : NULL;
	struct ck_table *table = tree ? NULL : ck_table_new(columns, CK_COUNT(columns));
	for (size_t i = 0; i < reader->history_n; i++) {
		if (!shown[i])
			continue;
		if (tree)
			ck_tree_add(array, line_tree(look, &reader->history[i]));
		else
			add_line(table, look, &reader->history[i]);
	}
	if (tree)
		ck_tree_print(stdout, ck_cli.output, array);
	else
		ck_table_print(stdout, table, ck_print_width(stdout));
}

static int history(const struct arguments *args, const struct ck_look *look)
{
	const struct ck_reader *reader = look->reader;
	struct ck_picked picked = { 0 };
	size_t n = 0, older = 0;
	CK_AUTO_FREE bool *shown = ck_must(ck_alloc(reader->history_n + 1));
	int r = args->pick ? ck_look_pick_history(look, args->pick, &picked) : CK_EXIT_YES;
	if (r != CK_EXIT_YES)
		return r;
	for (size_t i = reader->history_n; i-- > 0;) {
		if ((picked.match && !picked.match[i]) ||
		    (args->since && !recent(look, &reader->history[i], args->since)))
			continue;
		shown[i] = !args->lines || n < args->lines;
		n += shown[i];
		older += !shown[i];
	}
	free(picked.match);
	print(look, shown, n);
	if (older)
		ck_cli_hint("%zu older lines are left out; -n 0 shows them", older);
	else if (!n)
		ck_cli_hint("nothing has happened%s", args->since ? " in that time" : " yet");
	return CK_EXIT_YES;
}

int ck_cmd_history(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[ENTRY|POD]",
		.doc = "Show what happened to all entries, to one entry or to those of a pod, "
		       "oldest first. Entries that are long gone are included."
		       "\v"
		       "TIME is local time; -o json prints UTC.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep history --since 10m\n"
		       "  crikeep history prod/web-7d9f -n 0\n"
		       "  crikeep history 12 -o json",
		.children = ck_cli_children,
	};
	struct arguments args = { .lines = LINES_DEFAULT };
	struct ck_look look;
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	int r = ck_look_take(&look, CK_READ_HISTORY);
	if (r == CK_EXIT_YES) {
		ck_look_warn(&look);
		r = history(&args, &look);
	}
	ck_look_fini(&look);
	return r;
}
