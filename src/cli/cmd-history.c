/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep history: what the owner recorded about every entry, oldest first. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/cli/cli.h"
#include "src/cli/entry-text.h"

#define LINES_DEFAULT 50

#define FOLLOW_POLL   1000 /* ms */

struct bound {
	uint64_t span; /* before now, ns; 0: see @wall */
	int64_t wall;  /* seconds; 0: no bound */
};

struct arguments {
	const char *pick;
	struct bound since, until;
	uint64_t lines; /* at most; 0: all */
	bool follow;
};

enum { OPT_SINCE = 0x200, OPT_UNTIL };

static const struct argp_option options[] = {
	{ "lines", 'n', "N", 0, "Show the last N lines (default: 50; 0: all)", 0 },
	{ "since", OPT_SINCE, "WHEN", 0,
	  "Show only what happened since WHEN: a span before now (10m, 1h30m, 2d) or a time "
	  "(14:07, \"2024-05-01 14:07\", 2024-05-01T12:07:00Z)",
	  0 },
	{ "until", OPT_UNTIL, "WHEN", 0, "Show only what happened until WHEN", 0 },
	{ "follow", 'f', NULL, 0, "Then show each line as it is written, until interrupted", 0 },
	{ 0 },
};

static struct bound parse_bound(struct argp_state *state, const char *arg)
{
	struct bound bound = { 0 };
	int64_t now = (int64_t)(ck_clock_ns(CLOCK_REALTIME) / CK_NS_PER_S);
	if ((!ck_duration_parse(arg, &bound.span) || !bound.span) &&
	    !ck_text_parse_time(arg, now, &bound.wall))
		argp_error(state,
			   "invalid time '%s'; expected a span like 30s or 1h30m, or a time like "
			   "14:07 or 2024-05-01T12:07:00Z",
			   arg);
	return bound;
}

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
		args->since = parse_bound(state, arg);
		return 0;
	case OPT_UNTIL:
		args->until = parse_bound(state, arg);
		return 0;
	case 'f':
		args->follow = true;
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

/* How long after @bound was it, in ns; negative: before it. A span is judged by a clock that never
 * jumps, if the line is of this boot. */
static int64_t after(const struct ck_look *look, const struct ck_history_row *line,
		     const struct bound *bound)
{
	int64_t now = look->wall / (int64_t)CK_NS_PER_S, span = (int64_t)bound->span;
	if (!bound->span)
		return line->wall < bound->wall ? -1 : line->wall > bound->wall;
	if (ck_look_this_boot(look, line->boot))
		return span - (int64_t)(ck_look_ago(look, line->at) & INT64_MAX);
	return line->wall - (now - span / (int64_t)CK_NS_PER_S);
}

static bool has(const struct bound *bound)
{
	return bound->span || bound->wall;
}

static bool in_time(const struct arguments *args, const struct ck_look *look,
		    const struct ck_history_row *line)
{
	return (!has(&args->since) || after(look, line, &args->since) >= 0) &&
	       (!has(&args->until) || after(look, line, &args->until) <= 0);
}

/* "KEPT -> EVICTING: nobody asked again in time", "destroying failed: UNAVAILABLE". The first move
 * of an entry has no state before the arrow. */
static char *event_text(const struct ck_history_row *line)
{
	bool moved = line->what == CK_WHAT_MOVED;
	const char *parts[] = {
		moved ? ck_reason_text(line->reason) : "",
		line->grpc ? ck_grpc_name(line->grpc) : "",
		line->detail ? line->detail : "",
	};
	char *text = NULL;
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
	return text;
}

/* The kind is left out: only a container has three names. */
static void add_line(struct ck_table *table, const struct ck_look *look,
		     const struct ck_history_row *line)
{
	char clock[CK_TEXT_SPAN];
	CK_AUTO_FREE char *event = event_text(line);
	const char *who = line->who + strcspn(line->who, " ");
	const char *attempt = strrchr(line->who, ' ');
	who += *who == ' ';
	/* without " attempt" */
	int len = attempt && attempt - who > 8 ? (int)(attempt - who) - 8 : (int)strlen(who);
	ck_table_cell(table, ck_text_clock(line->wall, look->wall / (int64_t)CK_NS_PER_S, clock));
	ck_table_cellf(table, "%" PRIu64, line->entry);
	ck_table_cellf(table, "%.*s", len, who);
	ck_table_cell(table, attempt ? attempt + 1 : NULL);
	ck_table_cell(table, event);
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
	ck_tree_put_text(object, "what", ck_what_name(line->what));
	ck_tree_put_text(object, "text", ck_what_text(line->what));
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
		{ "EVENT", CK_COLUMN_FOLD, 0 },
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

/* Mark the last lines that are asked for and have numbers above @last. Return: how many;
 * @ret_older: those that are too many */
static size_t choose(const struct arguments *args, const struct ck_look *look, const bool *match,
		     uint64_t last, bool *shown, size_t *ret_older)
{
	size_t n = 0;
	*ret_older = 0;
	for (size_t i = look->reader->history_n; i-- > 0;) {
		const struct ck_history_row *line = &look->reader->history[i];
		if (line->seq <= last || (match && !match[i]) || !in_time(args, look, line))
			continue;
		shown[i] = !args->lines || n < args->lines;
		n += shown[i];
		*ret_older += !shown[i];
	}
	return n;
}

static int history(const struct arguments *args, const struct ck_look *look)
{
	const struct ck_reader *reader = look->reader;
	struct ck_picked picked = { 0 };
	size_t older;
	CK_AUTO_FREE bool *shown = ck_must(ck_alloc(reader->history_n + 1));
	ck_look_warn(look);
	int r = args->pick ? ck_look_pick_history(look, args->pick, &picked) : CK_EXIT_YES;
	if (r != CK_EXIT_YES)
		return r;
	size_t n = choose(args, look, picked.match, 0, shown, &older);
	free(picked.match);
	print(look, shown, n);
	if (older)
		ck_cli_hint("%zu older lines are left out; -n 0 shows them", older);
	else if (!n && reader->owner_degraded)
		ck_cli_hint("nothing was written before the database could be written no more");
	else if (!n)
		ck_cli_hint("nothing has happened%s",
			    has(&args->since) || has(&args->until) ? " in that time" : " yet");
	return CK_EXIT_YES;
}

/* ---- following ------------------------------------------------------------------------------- */

/* "14:07:10 12 container prod/web/app attempt 0: KEPT -> EVICTING: ..." */
static void print_plain(const struct ck_look *look, const struct ck_history_row *line)
{
	char clock[CK_TEXT_SPAN];
	CK_AUTO_FREE char *event = event_text(line);
	CK_AUTO_FREE char *text = ck_text_format(
		"%s %" PRIu64 " %s: %s",
		ck_text_clock(line->wall, look->wall / (int64_t)CK_NS_PER_S, clock), line->entry,
		line->who, event);
	size_t width = ck_print_width(stdout);
	ck_print_folded(stdout, text, 0, width ? width : SIZE_MAX);
}

struct subject { /* what is followed: later lines are not compared with what was typed */
	char *pod;      /* NULL: all, or */
	uint64_t entry; /* 0: all */
};

static int find_subject(const struct ck_look *look, const char *arg, struct subject *ret)
{
	struct ck_picked picked = { 0 };
	size_t i = 0;
	int r = ck_look_pick_history(look, arg, &picked);
	if (r != CK_EXIT_YES)
		return r;
	while (!picked.match[i])
		i++;
	const struct ck_history_row *line = &look->reader->history[i];
	if (picked.pod)
		ret->pod = ck_history_pod(line);
	else
		ret->entry = line->entry;
	free(picked.match);
	return r;
}

static bool is_of(const struct subject *subject, const struct ck_history_row *line)
{
	CK_AUTO_FREE char *pod = subject->pod ? ck_history_pod(line) : NULL;
	return (!pod || strcmp(pod, subject->pod) == 0) &&
	       (!subject->entry || subject->entry == line->entry);
}

/* Print what is new after line @last. Return: the number of the last line */
static uint64_t print_new(const struct arguments *args, const struct ck_look *look,
			  const struct subject *subject, uint64_t last)
{
	const struct ck_reader *reader = look->reader;
	CK_AUTO_FREE bool *shown = ck_must(ck_alloc(reader->history_n + 1));
	CK_AUTO_FREE bool *match = ck_must(ck_alloc(reader->history_n + 1));
	uint64_t newest = reader->history_n ? reader->history[reader->history_n - 1].seq : 0;
	size_t older;
	for (size_t i = 0; i < reader->history_n; i++)
		match[i] = is_of(subject, &reader->history[i]);
	/* in another database, as the old one was damaged, the numbers begin anew */
	choose(args, look, match, newest < last ? 0 : last, shown, &older);
	for (size_t i = 0; i < reader->history_n; i++) {
		if (!shown[i])
			continue;
		if (ck_cli.output == CK_OUTPUT_TABLE)
			print_plain(look, &reader->history[i]);
		else
			ck_tree_print(stdout, ck_cli.output, line_tree(look, &reader->history[i]));
	}
	fflush(stdout);
	return newest;
}

/* Has the database been written since? @seen: what was seen last */
static bool changed(struct stat seen[2])
{
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal" };
	bool new = false;
	for (size_t i = 0; i < CK_COUNT(names); i++) {
		CK_AUTO_FREE char *path = ck_text_format("%s/%s", ck_cli.state_dir, names[i]);
		struct stat st = { 0 };
		stat(path, &st);
		new = new || st.st_ino != seen[i].st_ino || st.st_size != seen[i].st_size ||
		      st.st_mtim.tv_sec != seen[i].st_mtim.tv_sec ||
		      st.st_mtim.tv_nsec != seen[i].st_mtim.tv_nsec;
		seen[i] = st;
	}
	return new;
}

/* Say it when the owner ends. Return: does it live? */
static bool watch_owner(bool alive)
{
	long pid;
	bool lives = ck_store_owner(ck_cli.state_dir, &pid);
	if (alive && !lives)
		ck_look_warn_unread();
	return lives;
}

/* until a signal, or until nobody reads any more */
static int follow(struct arguments *args)
{
	struct pollfd out = { .fd = STDOUT_FILENO };
	struct subject subject = { 0 };
	struct stat seen[2] = { 0 };
	uint64_t last = 0;
	bool first = true, alive = true;
	int r = CK_EXIT_YES;
	do {
		struct ck_look look;
		alive = watch_owner(alive);
		if (!changed(seen) && !first)
			continue;
		r = ck_look_take(&look, CK_READ_HISTORY);
		if (r == CK_EXIT_YES && first && args->pick)
			r = find_subject(&look, args->pick, &subject);
		if (r == CK_EXIT_YES)
			last = print_new(args, &look, &subject, last);
		ck_look_fini(&look);
		first = false;
		args->lines = 0; /* all, from now on */
	} while (r == CK_EXIT_YES && !ferror(stdout) && poll(&out, 1, FOLLOW_POLL) == 0);
	free(subject.pod);
	return r;
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
		       "TIME is local time; -o json prints UTC. With --follow, each line stands "
		       "for itself, and -o json prints objects, not an array.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep history --since 10m\n"
		       "  crikeep history --since 14:00 --until 14:07 -n 0\n"
		       "  crikeep history -f prod/web-7d9f\n"
		       "  crikeep history prod/web-7d9f -n 0\n"
		       "  crikeep history 12 -o json",
		.children = ck_cli_children,
	};
	struct arguments args = { .lines = LINES_DEFAULT };
	struct ck_look look;
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	if (args.follow && ck_cli.output == CK_OUTPUT_YAML)
		ck_print_error("--follow prints a table or JSON, not YAML");
	if (args.follow)
		return ck_cli.output == CK_OUTPUT_YAML ? CK_EXIT_TROUBLE : follow(&args);
	int r = ck_look_take(&look, CK_READ_HISTORY);
	ck_cli_page();
	if (r == CK_EXIT_YES)
		r = history(&args, &look);
	ck_look_fini(&look);
	return r;
}
