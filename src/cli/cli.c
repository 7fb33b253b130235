/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands share: the state directory, the form of the output, and hints. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/output/pager.h"

enum { OPT_STATE_DIR = 0x100, OPT_NO_PAGER };

struct ck_cli ck_cli = { .state_dir = CK_CLI_STATE_DIR, .output = CK_OUTPUT_TABLE };

void ck_cli_hint(const char *fmt, ...)
{
	va_list ap;
	if (ck_cli.output != CK_OUTPUT_TABLE)
		return;
	va_start(ap, fmt);
	ck_print_verror(fmt, ap);
	va_end(ap);
}

void ck_cli_page(void)
{
	if (!ck_cli.no_pager)
		ck_pager_start();
}

/* ---- the options of every command ------------------------------------------------------------ */

static const struct argp_option base_options[] = {
	{ "state-dir", OPT_STATE_DIR, "DIR", 0,
	  "Directory of the database (default: $CRIKEEP_STATE_DIR, else " CK_CLI_STATE_DIR ")",
	  -2 },
	{ "no-pager", OPT_NO_PAGER, NULL, 0, "Do not use a pager", -2 },
	{ NULL, 'h', NULL, OPTION_HIDDEN, NULL, -1 },
	{ 0 },
};

static const struct argp_option output_options[] = {
	{ "output", 'o', "FORM", 0, "table (default), json or yaml", -2 },
	{ 0 },
};

bool ck_cli_set_output(const char *form)
{
	static const char *const forms[] = {
		[CK_OUTPUT_TABLE] = "table", [CK_OUTPUT_JSON] = "json", [CK_OUTPUT_YAML] = "yaml"
	};
	for (size_t i = 0; i < CK_COUNT(forms); i++) {
		if (strcmp(form, forms[i]) == 0) {
			ck_cli.output = (enum ck_output)i;
			return true;
		}
	}
	return false;
}

static error_t parse_base(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case OPT_STATE_DIR:
		if (!*arg)
			argp_error(state, "--state-dir needs a directory");
		ck_cli.state_dir = arg;
		return 0;
	case OPT_NO_PAGER:
		ck_cli.no_pager = true;
		return 0;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_output(int key, char *arg, struct argp_state *state)
{
	if (key != 'o')
		return ARGP_ERR_UNKNOWN;
	if (!ck_cli_set_output(arg))
		argp_error(state, "invalid output form '%s'; expected table, json or yaml", arg);
	return 0;
}

static const struct argp base_argp = { .options = base_options, .parser = parse_base };
const struct argp_child ck_cli_base_children[] = { { &base_argp, 0, NULL, 0 }, { 0 } };
const struct argp ck_cli_argp = { .options = output_options,
				  .parser = parse_output,
				  .children = ck_cli_base_children };
const struct argp_child ck_cli_children[] = { { &ck_cli_argp, 0, NULL, 0 }, { 0 } };
