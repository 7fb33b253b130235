/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep list: one line per entry. By default, COMMITTED and GONE entries are left out. */
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/entry-text.h"

#define ID_SHOWN     13   /* as crictl cuts them */
#define WATCH_POLL   1000 /* ms */
#define SCREEN_OTHER 8u   /* lines of a screen that are no rows: titles, a warning, the cursor's */

enum { OPT_KIND = 0x200, OPT_STATE, OPT_POD, OPT_UID, OPT_NO_TRUNC, OPT_SORT };

struct arguments {
	int (*order)(const void *a, const void *b); /* of two rows */
	enum ck_kind kind; /* 0: any */
	unsigned states;   /* bits; 0: not asked for */
	const char *pod, *namespace, *uid;
	bool all, quiet, no_trunc, names, watch;
};

/* ---- the order ------------------------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_entry(const void *a, const void *b)
{
	const struct ck_row *x = a, *y = b;
	return compare_numbers(x->id, y->id);
}

static int by_pod(const void *a, const void *b)
{
	const struct ck_row *x = a, *y = b;
	int r = strcmp(x->key->pod_namespace, y->key->pod_namespace);
	r = r ? r : strcmp(x->key->pod_name, y->key->pod_name);
	return r ? r : by_entry(a, b);
}

static int by_state(const void *a, const void *b)
{
	const struct ck_row *x = a, *y = b;
	return x->state != y->state ? compare_numbers(x->state, y->state) : by_entry(a, b);
}

/* without a next step at last */
static int by_due(const void *a, const void *b)
{
	const struct ck_row *x = a, *y = b;
	return x->due != y->due ? compare_numbers(x->due - 1, y->due - 1) : by_entry(a, b);
}

static const struct {
	const char *name;
	int (*order)(const void *a, const void *b);
} orders[] = {
	{ "entry", by_entry }, { "pod", by_pod }, { "state", by_state }, { "due", by_due }
};

/* ---- the command line ------------------------------------------------------------------------ */

static const struct argp_option options[] = {
	{ "all", 'a', NULL, 0, "Also list COMMITTED and GONE entries", 0 },
	{ "quiet", 'q', NULL, 0, "Print row numbers only, one per line", 0 },
	{ "no-trunc", OPT_NO_TRUNC, NULL, 0, "Print whole ids, and every column on any terminal",
	  0 },
	{ "sort", OPT_SORT, "ORDER", 0,
	  "entry (default: the oldest first), pod, state or due (the next step)", 0 },
	{ "watch", 'w', NULL, 0, "Show the list anew each second, until interrupted", 0 },
	{ "output", 'o', "FORM", 0,
	  "table (default), wide (as --no-trunc), name (of each pod, once), json or yaml", -2 },
	{ NULL, 0, NULL, 0, "Select entries:", 1 },
	{ "kind", OPT_KIND, "KIND", 0, "sandbox or container", 1 },
	{ "state", OPT_STATE, "STATE,...", 0,
	  "creating, unknown, kept, committing, committed, ended, evicting, gone", 1 },
	{ "pod", OPT_POD, "POD", 0, "NAME, NAMESPACE/NAME or a unique beginning (not with -q)", 1 },
	{ "namespace", 'n', "NAME", 0, "Pods in this namespace", 1 },
	{ "uid", OPT_UID, "UID", 0, "The pod with this uid", 1 },
	{ 0 },
};

static unsigned parse_states(struct argp_state *state, char *list)
{
	unsigned states = 0;
	for (char *name; (name = strsep(&list, ","));) {
		unsigned bit = 0;
		for (int s = CK_STATE_CREATING; s <= CK_STATE_MAX; s++) {
			if (strcasecmp(name, ck_state_name((enum ck_state)s)) == 0)
				bit = 1u << s;
		}
		if (!bit)
			argp_error(state,
				   "invalid state '%s'; expected creating, unknown, kept, "
				   "committing, committed, ended, evicting or gone",
				   name);
		states |= bit;
	}
	return states;
}

static int (*parse_order(struct argp_state *state, const char *name))(const void *, const void *)
{
	for (size_t i = 0; i < CK_COUNT(orders); i++) {
		if (strcmp(name, orders[i].name) == 0)
			return orders[i].order;
	}
	argp_error(state, "invalid order '%s'; expected entry, pod, state or due", name);
	return by_entry;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	switch (key) {
	case 'a':
		args->all = true;
		return 0;
	case 'q':
		args->quiet = true;
		return 0;
	case OPT_NO_TRUNC:
		args->no_trunc = true;
		return 0;
	case 'o':
		args->no_trunc = args->no_trunc || strcmp(arg, "wide") == 0;
		args->names = strcmp(arg, "name") == 0;
		if (!ck_cli_set_output(args->names || strcmp(arg, "wide") == 0 ? "table" : arg))
			argp_error(state,
				   "invalid output form '%s'; expected table, wide, name, json or "
				   "yaml",
				   arg);
		return 0;
	case 'w':
		args->watch = true;
		return 0;
	case OPT_SORT:
		args->order = parse_order(state, arg);
		return 0;
	case OPT_KIND:
		if (strcasecmp(arg, "sandbox") != 0 && strcasecmp(arg, "container") != 0)
			argp_error(state, "invalid kind '%s'; expected sandbox or container", arg);
		args->kind = strcasecmp(arg, "sandbox") == 0 ? CK_SANDBOX : CK_CONTAINER;
		return 0;
	case OPT_STATE:
		args->states |= parse_states(state, arg);
		return 0;
	case OPT_POD:
		args->pod = arg;
		return 0;
	case 'n':
		args->namespace = arg;
		return 0;
	case OPT_UID:
		args->uid = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state,
			   "unexpected argument '%s'; filter with --pod, --namespace or --uid",
			   arg);
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

/* not asked: the pod and the state */
static bool wanted(const struct arguments *args, const struct ck_row *row)
{
	const struct ck_key *key = row->key;
	return (!args->kind || args->kind == key->kind) &&
	       (!args->namespace || strcmp(args->namespace, key->pod_namespace) == 0) &&
	       (!args->uid || strcmp(args->uid, key->pod_uid) == 0);
}

static bool state_wanted(const struct arguments *args, enum ck_state state)
{
	if (args->states)
		return args->states & 1u << state;
	return args->all || (!ck_state_visible(state) && state != CK_STATE_GONE);
}

static void add_line(struct ck_table *table, const struct ck_look *look, const struct ck_row *row,
		     bool whole)
{
	const struct ck_key *key = row->key;
	const char *id = row->result ? row->result->id : "";
	char words[CK_ROW_WORDS];
	ck_table_cellf(table, "%" PRIu64, row->id);
	ck_table_cell(table, ck_kind_word(key->kind));
	ck_table_cell(table, key->pod_namespace);
	ck_table_cell(table, key->pod_name);
	ck_table_cell(table, key->container);
	ck_table_cellf(table, "%" PRIu32, key->attempt);
	ck_table_cell(table, ck_row_state(row, words));
	ck_table_cell(table, ck_row_age(look, row, row->created, words));
	ck_table_cell(table, ck_row_next(look, row, words));
	ck_table_cellf(table, "%.*s", whole ? (int)strlen(id) : ID_SHOWN, id);
}

static void print_table(const struct arguments *args, const struct ck_look *look, const bool *shown)
{
	static const struct ck_column columns[] = {
		{ "ENTRY", CK_COLUMN_RIGHT, 0 },
		{ "KIND", 0, 3 },
		{ "NAMESPACE", CK_COLUMN_CUT, 1 },
		{ "POD", CK_COLUMN_CUT, 0 },
		{ "CONTAINER", CK_COLUMN_CUT, 0 },
		{ "ATTEMPT", CK_COLUMN_RIGHT, 2 },
		{ "STATE", 0, 0 },
		{ "AGE", CK_COLUMN_RIGHT, 0 },
		{ "NEXT", 0, 0 },
		{ "ID", 0, 4 },
	};
	struct ck_table *table = ck_table_new(columns, CK_COUNT(columns));
	for (size_t i = 0; i < look->reader->rows_n; i++) {
		if (shown[i])
			add_line(table, look, &look->reader->rows[i], args->no_trunc);
	}
	ck_table_print(stdout, table, args->no_trunc ? 0 : ck_print_width(stdout));
}

static bool same_pod(const struct ck_key *a, const struct ck_key *b)
{
	return strcmp(a->pod_namespace, b->pod_namespace) == 0 &&
	       strcmp(a->pod_name, b->pod_name) == 0;
}

/* "NAMESPACE/NAME" of each pod, in the order of its first entry */
static void print_names(const struct ck_look *look, const bool *shown)
{
	const struct ck_row *rows = look->reader->rows;
	for (size_t i = 0; i < look->reader->rows_n; i++) {
		bool seen = !shown[i];
		for (size_t j = 0; j < i && !seen; j++)
			seen = shown[j] && same_pod(rows[i].key, rows[j].key);
		if (!seen)
			ck_print_line(stdout, "%s/%s", rows[i].key->pod_namespace,
				      rows[i].key->pod_name);
	}
}

static void print_tree(const struct ck_look *look, const bool *shown)
{
	struct json_object *array = ck_tree_array();
	for (size_t i = 0; i < look->reader->rows_n; i++) {
		if (shown[i])
			ck_tree_add(array, ck_row_tree(look, &look->reader->rows[i], false));
	}
	ck_tree_print(stdout, ck_cli.output, array);
}

/* Leave those of one pod. A script that prints rows to act on them must not get those of another
 * pod whose name only begins so. Return: as ck_look_complete_pod() */
static int filter_by_pod(const struct arguments *args, const struct ck_look *look, bool *filter,
			 char **ret_pod)
{
	int r = CK_EXIT_YES;
	if (args->quiet)
		*ret_pod = ck_must(ck_strdup(args->pod));
	else
		r = ck_look_complete_pod(look, filter, args->pod, ret_pod);
	for (size_t i = 0; i < look->reader->rows_n; i++) {
		CK_AUTO_FREE char *pod = ck_key_pod(look->reader->rows[i].key);
		filter[i] = filter[i] && r == CK_EXIT_YES && ck_pod_is(pod, *ret_pod);
	}
	return r;
}

/* The rows that fit on the screen. Return: how many do not */
static size_t cut_to_screen(const struct ck_look *look, bool *shown)
{
	struct winsize size = { 0 };
	size_t left = 0, too_many = 0;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	left = size.ws_row > SCREEN_OTHER ? size.ws_row - SCREEN_OTHER : 1;
	for (size_t i = 0; i < look->reader->rows_n; i++) {
		too_many += shown[i] && !left;
		shown[i] = shown[i] && left;
		left -= shown[i];
	}
	return too_many;
}

static void print(const struct arguments *args, const struct ck_look *look, const bool *filter,
		  const char *near)
{
	const struct ck_reader *reader = look->reader;
	size_t n = 0, committed = 0, gone = 0;
	CK_AUTO_FREE bool *shown = ck_must(ck_alloc(reader->rows_n + 1));
	for (size_t i = 0; i < reader->rows_n; i++) {
		const struct ck_row *row = &reader->rows[i];
		if (!filter[i])
			continue;
		shown[i] = state_wanted(args, row->state);
		n += shown[i];
		committed += !shown[i] && ck_state_visible(row->state);
		gone += !shown[i] && row->state == CK_STATE_GONE;
		if (shown[i] && args->quiet)
			printf("%" PRIu64 "\n", row->id);
	}
	ck_look_warn(look);
	size_t too_many = args->watch ? cut_to_screen(look, shown) : 0;
	if (args->quiet)
		return;
	if (ck_cli.output != CK_OUTPUT_TABLE)
		print_tree(look, shown);
	else if (args->names)
		print_names(look, shown);
	else if (n)
		print_table(args, look, shown);
	if (too_many)
		printf("and %zu more\n", too_many);
	if (!n && !args->states && committed + gone)
		ck_cli_hint("nothing is being created, kept, handed over or evicted%s; --all "
			    "lists %zu more",
			    reader->owner_alive ? " (the owner is running)" : "", committed + gone);
	else if (!n && *near)
		ck_cli_hint("no matching entries; did you mean pod %s?", near);
	else if (!n)
		ck_cli_hint(reader->rows_n ? "no matching entries" : "no entries");
}

static void sort(const struct arguments *args, const struct ck_look *look)
{
	struct ck_reader *reader = look->reader;
	for (size_t i = 0; i < reader->rows_n; i++)
		if (!ck_look_this_boot(look, reader->rows[i].boot))
			reader->rows[i].due = 0; /* of a clock that is no more */
	if (reader->rows_n)
		qsort(reader->rows, reader->rows_n, sizeof(*reader->rows), args->order);
}

static int list(const struct arguments *args, const struct ck_look *look)
{
	CK_AUTO_FREE bool *filter = ck_must(ck_alloc(look->reader->rows_n + 1));
	CK_AUTO_FREE char *pod = NULL;
	sort(args, look);
	for (size_t i = 0; i < look->reader->rows_n; i++)
		filter[i] = wanted(args, &look->reader->rows[i]);
	int r = args->pod ? filter_by_pod(args, look, filter, &pod) : CK_EXIT_YES;
	if (r == CK_EXIT_TROUBLE)
		return r;
	print(args, look, filter, r == CK_EXIT_NO ? pod : "");
	return CK_EXIT_YES;
}

static int list_once(const struct arguments *args)
{
	struct ck_look look;
	int r = ck_look_take(&look, CK_READ_ROWS);
	if (r == CK_EXIT_YES)
		r = list(args, &look);
	ck_look_fini(&look);
	return r;
}

/* until a signal, or until the terminal is gone */
static int watch(const struct arguments *args)
{
	struct pollfd terminal = { .fd = STDOUT_FILENO };
	char now[CK_TEXT_SPAN];
	int r;
	do {
		int64_t wall = (int64_t)(ck_clock_ns(CLOCK_REALTIME) / CK_NS_PER_S);
		printf("\033[H\033[2Jcrikeep list, %s at %s\n\n", ck_cli.state_dir,
		       ck_text_clock(wall, wall, now));
		fflush(stdout); /* before what is on standard error */
		r = list_once(args);
		fflush(stdout);
	} while (r == CK_EXIT_YES && !ferror(stdout) && poll(&terminal, 1, WATCH_POLL) == 0);
	return r;
}

int ck_cmd_list(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "List entries, oldest first. By default, only those are listed that are "
		       "being created, kept, handed over or evicted. COMMITTED entries belong to "
		       "the kubelet, and GONE entries only stay hidden for another minute: --all "
		       "lists both."
		       "\v"
		       "AGE is the time since the first request. On a narrow terminal, the columns "
		       "ID, KIND, ATTEMPT and NAMESPACE are left out, in this order.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep list --all -n prod --sort pod\n"
		       "  crikeep list --state kept,evicting -o json\n"
		       "  crikeep list -q --pod prod/web-7d9f\n"
		       "  crikeep list -o name\n"
		       "  crikeep list --watch --sort due",
		.children = ck_cli_base_children,
	};
	struct arguments args = { .order = by_entry };
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	if (!args.watch) {
		ck_cli_page();
		return list_once(&args);
	}
	if (isatty(STDOUT_FILENO) && ck_cli.output == CK_OUTPUT_TABLE && !args.quiet)
		return watch(&args);
	ck_print_error("--watch shows a table on a terminal; 'crikeep history --follow' is for "
		       "programs");
	return CK_EXIT_TROUBLE;
}
