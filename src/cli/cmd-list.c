/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep list: one line per entry. By default, COMMITTED and GONE entries are left out. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/entry-text.h"

#define ID_SHOWN 13 /* as crictl cuts them */

enum { OPT_KIND = 0x200, OPT_STATE, OPT_POD, OPT_NAMESPACE, OPT_UID, OPT_NO_TRUNC };

struct arguments {
	enum ck_kind kind; /* 0: any */
	unsigned states;   /* bits; 0: not asked for */
	const char *pod, *namespace, *uid;
	bool all, quiet, no_trunc;
};

static const struct argp_option options[] = {
	{ "all", 'a', NULL, 0, "Also list COMMITTED and GONE entries", 0 },
	{ "quiet", 'q', NULL, 0, "Print row numbers only, one per line", 0 },
	{ "no-trunc", OPT_NO_TRUNC, NULL, 0, "Print whole ids, and every column on any terminal",
	  0 },
	{ NULL, 0, NULL, 0, "Select entries:", 1 },
	{ "kind", OPT_KIND, "KIND", 0, "sandbox or container", 1 },
	{ "state", OPT_STATE, "STATE,...", 0,
	  "creating, unknown, kept, committing, committed, ended, evicting, gone", 1 },
	{ "pod", OPT_POD, "POD", 0, "NAME or NAMESPACE/NAME", 1 },
	{ "namespace", OPT_NAMESPACE, "NAME", 0, "Pods in this namespace", 1 },
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
	case OPT_NAMESPACE:
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

static bool wanted(const struct arguments *args, const struct ck_row *row)
{
	const struct ck_key *key = row->key;
	if (args->pod) {
		CK_AUTO_FREE char *pod = ck_key_pod(key);
		if (!ck_pod_is(pod, args->pod))
			return false;
	}
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

static void print_tree(const struct ck_look *look, const bool *shown)
{
	struct json_object *array = ck_tree_array();
	for (size_t i = 0; i < look->reader->rows_n; i++) {
		if (shown[i])
			ck_tree_add(array, ck_row_tree(look, &look->reader->rows[i], false));
	}
	ck_tree_print(stdout, ck_cli.output, array);
}

static void list(const struct arguments *args, const struct ck_look *look)
{
	const struct ck_reader *reader = look->reader;
	size_t n = 0, committed = 0, gone = 0;
	CK_AUTO_FREE bool *shown = ck_must(ck_alloc(reader->rows_n + 1));
	for (size_t i = 0; i < reader->rows_n; i++) {
		const struct ck_row *row = &reader->rows[i];
		if (!wanted(args, row))
			continue;
		shown[i] = state_wanted(args, row->state);
		n += shown[i];
		committed += !shown[i] && ck_state_visible(row->state);
		gone += !shown[i] && row->state == CK_STATE_GONE;
		if (shown[i] && args->quiet)
			printf("%" PRIu64 "\n", row->id);
	}
	if (args->quiet)
		return;
	if (ck_cli.output != CK_OUTPUT_TABLE)
		print_tree(look, shown);
	else if (n)
		print_table(args, look, shown);
	if (!n && !args->states && committed + gone)
		ck_cli_hint("nothing is being created, kept, handed over or evicted%s; --all "
			    "lists %zu more",
			    reader->owner_alive ? " (the owner is running)" : "", committed + gone);
	else if (!n)
		ck_cli_hint(reader->rows_n ? "no matching entries" : "no entries");
	ck_look_warn(look);
	if (!reader->owner_alive)
		ck_cli_hint("warning: no owner is running (crikeepd, or a runtime with "
			    "libcrikeep), so nothing is hidden; this is how the last one left it");
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
		       "  crikeep list --all --namespace prod\n"
		       "  crikeep list --state kept,evicting -o json\n"
		       "  crikeep list -q --pod prod/web-7d9f",
		.children = ck_cli_children,
	};
	struct arguments args = { 0 };
	struct ck_look look;
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	int r = ck_look_take(&look, CK_READ_ROWS);
	if (r == CK_EXIT_YES)
		list(&args, &look);
	ck_look_fini(&look);
	return r;
}
