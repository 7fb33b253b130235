/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep show: everything in a row. For people, the tree is printed as lines "name: value". */
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/entry-text.h"

enum { OPT_RAW = 0x200 };

#define NAME_WIDTH 19 /* of the longest name: created_seconds_ago */

struct arguments {
	char **picks;
	int n;
	bool raw;
};

static const struct argp_option options[] = {
	{ "raw", OPT_RAW, NULL, 0,
	  "Also show the reply and the fingerprint: names in clear, values as keyed digests", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	(void)arg;
	switch (key) {
	case OPT_RAW:
		args->raw = true;
		return 0;
	case ARGP_KEY_ARGS:
		args->picks = state->argv + state->next;
		args->n = state->argc - state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no entry or pod given");
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

static void print_value(const char *name, const char *value)
{
	ck_print_line(stdout, "%s:%*s %s", name, NAME_WIDTH - (int)strlen(name), "",
		      value && *value ? value : "-");
}

/* flags, told */
static void print_words(const char *name, struct json_object *array)
{
	CK_AUTO_FREE char *words = NULL;
	size_t len;
	FILE *out = ck_must(open_memstream(&words, &len));
	for (size_t i = 0; i < json_object_array_length(array); i++)
		fprintf(out, "%s%s", i ? ", " : "",
			json_object_get_string(json_object_array_get_idx(array, i)));
	if (fclose(out))
		ck_text_nomem();
	print_value(name, words);
}

static void print_leaves(struct json_object *leaves)
{
	printf("leaves:\n");
	for (size_t i = 0; i < json_object_array_length(leaves); i++) {
		struct json_object *leaf = json_object_array_get_idx(leaves, i);
		ck_print_line(stdout, "  %s %s",
			      json_object_get_string(json_object_object_get(leaf, "digest")),
			      json_object_get_string(json_object_object_get(leaf, "name")));
	}
}

static void print_lines(struct json_object *entry)
{
	json_object_object_foreach(entry, name, value)
	{
		if (strcmp(name, "leaves") == 0)
			print_leaves(value);
		else if (json_object_is_type(value, json_type_array))
			print_words(name, value);
		else
			print_value(name, json_object_get_string(value));
	}
}

static void print_people(struct json_object *array)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		if (i)
			putchar('\n');
		print_lines(json_object_array_get_idx(array, i));
	}
	json_object_put(array);
}

int ck_cmd_show(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "ENTRY|POD...",
		.doc = "Show everything that is stored about an entry, or about all entries of a "
		       "pod. Values of requests are not stored, so no secret can appear."
		       "\v"
		       "An entry is named by its row number or by the beginning of its runtime id, "
		       "a pod by NAME, NAMESPACE/NAME, or the beginning of one if it is unique.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep show 12\n"
		       "  crikeep show 9f3a prod/web-7d9f -o json\n"
		       "  crikeep show 12 --raw",
		.children = ck_cli_children,
	};
	struct arguments args = { 0 };
	struct ck_look look;
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	int r = ck_look_take(&look, CK_READ_ROWS | (args.raw ? CK_READ_DIGESTS : 0));
	if (r != CK_EXIT_YES)
		return r;
	CK_AUTO_FREE bool *match = NULL;
	r = ck_look_pick_all(&look, args.picks, args.n, &match);
	struct json_object *array = ck_tree_array();
	for (size_t i = 0; i < look.reader->rows_n; i++) {
		if (match[i])
			ck_tree_add(array, ck_row_tree(&look, &look.reader->rows[i], args.raw));
	}
	ck_cli_page();
	ck_look_warn(&look);
	if (ck_cli.output == CK_OUTPUT_TABLE)
		print_people(array);
	else
		ck_tree_print(stdout, ck_cli.output, array);
	ck_look_fini(&look);
	return r;
}
