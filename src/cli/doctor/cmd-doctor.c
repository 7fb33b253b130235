/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep doctor: every check of the table and every problem of `crikeep status`, each with what to
 * do about it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/doctor/node.h"

enum { OPT_CONFIG = 0x500, OPT_ROOT };

static const struct argp_option options[] = {
	{ "config", OPT_CONFIG, "FILE", 0,
	  "crikeepd's configuration (default: that of the running crikeepd, or " CK_CONF_PATH ")",
	  0 },
	{ "root", OPT_ROOT, "DIR", 0,
	  "Where the node's files are, such as /host in a debug pod (default: /)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ck_node *node = state->input;
	int fd;
	switch (key) {
	case OPT_CONFIG:
		node->config = arg;
		return 0;
	case OPT_ROOT:
		fd = open(arg, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			argp_error(state, "--root: '%s': %s", arg, strerror(errno));
		else
			close(fd);
		node->root = strcmp(arg, "/") == 0 ? "" : arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'; 'crikeep explain' tells of a pod",
			   arg);
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- what was found -------------------------------------------------------------------------- */

static const char *const words[] = { [CK_VERDICT_WRONG] = "wrong",
				     [CK_VERDICT_WARNING] = "warning",
				     [CK_VERDICT_UNKNOWN] = "unknown",
				     [CK_VERDICT_OK] = "ok" };

struct finding {
	const char *name, *remedy; /* borrowed */
	enum ck_verdict verdict;
	char *text;
};

struct findings {
	struct finding *all;
	size_t n;
};

static char *look(const struct ck_check *check, const struct ck_node *node,
		  enum ck_verdict *ret_verdict)
{
	char *text = NULL;
	size_t len;
	FILE *out = ck_must(open_memstream(&text, &len));
	*ret_verdict = check->look(node, out);
	if (fclose(out))
		ck_text_nomem();
	return text;
}

static char *well_text(const struct ck_health *health)
{
	char space[CK_TEXT_SPAN];
	ck_text_size(health->space < 0 ? 0 : (uint64_t)health->space, space);
	return ck_text_format("'crikeep status' finds no problem; %s are free in %s",
			      health->space < 0 ? "unknown bytes" : space, ck_cli.state_dir);
}

static void find_all(const struct ck_node *node, struct findings *ret)
{
	const struct ck_problems *problems = &node->problems;
	ret->all = ck_must(ck_alloc((ck_checks_n + problems->n + 1) * sizeof(*ret->all)));
	for (size_t i = 0; i < ck_checks_n; i++) {
		struct finding *finding = &ret->all[ret->n++];
		finding->name = ck_checks[i].name;
		finding->remedy = ck_checks[i].remedy;
		finding->text = look(&ck_checks[i], node, &finding->verdict);
	}
	for (size_t i = 0; i < problems->n; i++)
		ret->all[ret->n++] =
			(struct finding){ problems->all[i].what, problems->all[i].hint,
					  CK_VERDICT_WRONG,
					  ck_must(ck_strdup(problems->all[i].text)) };
	if (!problems->n)
		ret->all[ret->n++] = (struct finding){ "status", NULL, CK_VERDICT_OK,
						       well_text(&node->health) };
}

static bool is_finding(const struct finding *finding)
{
	return finding->verdict == CK_VERDICT_WRONG || finding->verdict == CK_VERDICT_WARNING;
}

/* ---- telling --------------------------------------------------------------------------------- */

static void print_one(const struct finding *finding)
{
	static const enum ck_colour colours[] = { [CK_VERDICT_WRONG] = CK_COLOUR_RED,
						  [CK_VERDICT_WARNING] = CK_COLOUR_YELLOW,
						  [CK_VERDICT_UNKNOWN] = CK_COLOUR_NONE,
						  [CK_VERDICT_OK] = CK_COLOUR_NONE };
	size_t width = ck_print_prose_width();
	CK_AUTO_FREE char *text = ck_text_format("%s: %s: %s", words[finding->verdict],
						 finding->name, finding->text);
	ck_print_coloured(stdout, colours[finding->verdict], text, 0, width);
	if (!is_finding(finding))
		return;
	CK_AUTO_FREE char *remedy = ck_text_format("Remedy: %s", finding->remedy);
	ck_print_folded(stdout, remedy, 4, width);
}

/* the worst first; an empty line stands before what is known to be well */
static void print_people(const struct findings *findings)
{
	bool any = false;
	for (int verdict = CK_VERDICT_WRONG; verdict <= CK_VERDICT_OK; verdict++) {
		if (any && verdict == CK_VERDICT_OK)
			putchar('\n');
		for (size_t i = 0; i < findings->n; i++) {
			if ((int)findings->all[i].verdict != verdict)
				continue;
			print_one(&findings->all[i]);
			any = true;
		}
	}
}

static void print_tree(const struct findings *findings)
{
	struct json_object *tree = ck_tree_object(), *array = ck_tree_array();
	for (size_t i = 0; i < findings->n; i++) {
		const struct finding *finding = &findings->all[i];
		struct json_object *object = ck_tree_object();
		ck_tree_put_text(object, "name", finding->name);
		ck_tree_put_text(object, "result", words[finding->verdict]);
		ck_tree_put_text(object, "text", finding->text);
		ck_tree_put_text(object, "remedy", is_finding(finding) ? finding->remedy : NULL);
		ck_tree_add(array, object);
	}
	ck_tree_put(tree, "checks", array);
	ck_tree_print(stdout, ck_cli.output, tree);
}

static int tell(const struct ck_node *node)
{
	struct findings findings = { 0 };
	int code = CK_EXIT_YES;
	find_all(node, &findings);
	if (ck_cli.output == CK_OUTPUT_TABLE)
		print_people(&findings);
	else
		print_tree(&findings);
	for (size_t i = 0; i < findings.n; i++) {
		if (findings.all[i].verdict == CK_VERDICT_WRONG)
			code = CK_EXIT_NO;
		free(findings.all[i].text);
	}
	free(findings.all);
	return code;
}

int ck_cmd_doctor(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Check how this node is set up: crikeepd's configuration, its sockets and "
		       "units, the kubelet's endpoint and timeout, the clock, and all that "
		       "'crikeep status' checks. Each finding comes with its remedy."
		       "\v"
		       "Nothing is changed. What is not known is called unknown, and is no "
		       "finding.\n"
		       "\n"
		       "Exit status: 0 if nothing is wrong, although there may be warnings; 1 if "
		       "something is wrong; 2 if you may not look.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep doctor\n"
		       "  crikeep doctor -o json\n"
		       "  crikeep doctor --root /host",
		.children = ck_cli_children,
	};
	struct ck_node node = { .root = "" };
	if (argp_parse(&argp, argc, argv, 0, NULL, &node))
		return CK_EXIT_TROUBLE;
	int r = ck_node_read(&node);
	ck_cli_page();
	if (r < 0)
		ck_look_complain(r, &node.health.read_err);
	int code = r < 0 ? CK_EXIT_TROUBLE : tell(&node);
	ck_node_fini(&node);
	return code;
}
