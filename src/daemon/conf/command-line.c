/* SPDX-License-Identifier: Apache-2.0 */
/* crikeepd's command line: options for keys that are changed often, made from the table of keys,
 * and --set for every key. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/daemon/conf/conf-int.h"

#define STATUS_USAGE 2

enum { OPT_KEY = 0x100, OPT_CONFIG = 0x200, OPT_SET, OPT_CHECK, OPT_PRINT };

struct parsing {
	struct ck_conf *conf;
	struct ck_args *args;
	ck_conf_simulator_cb *check_simulator;
	const char *config;
	struct ck_error err;
};

/* errors before the log is open */
static int complain(const char *text)
{
	fprintf(stderr, "crikeepd: %s\n", text);
	return -CK_EINVAL;
}

static int remember(struct parsing *parsing, const char *key, const char *value, const char *origin)
{
	return ck_conf_remember(parsing->conf, key, value, origin, &parsing->err) < 0 ? ENOMEM : 0;
}

/* KEY=VALUE */
static int remember_set(struct parsing *parsing, struct argp_state *state, const char *arg)
{
	const char *equals = strchr(arg, '=');
	if (!equals || equals == arg) {
		argp_error(state, "--set needs KEY=VALUE");
		return EINVAL;
	}
	CK_AUTO_FREE char *key = ck_strndup(arg, (size_t)(equals - arg));
	return key ? remember(parsing, key, equals + 1, "--set") : ENOMEM;
}

static error_t parse(int opt, char *arg, struct argp_state *state)
{
	struct parsing *parsing = state->input;
	if (opt >= OPT_KEY && opt < OPT_KEY + (int)CK_CONF_KEYS) {
		const struct ck_conf_key *key = &ck_conf_keys[opt - OPT_KEY];
		char origin[CK_CONF_SHOWN];
		snprintf(origin, sizeof(origin), "--%s", key->flag);
		return remember(parsing, key->name, key->arg ? arg : "true", origin);
	}
	switch (opt) {
	case OPT_CONFIG:
		parsing->config = arg;
		return 0;
	case OPT_SET:
		return remember_set(parsing, state, arg);
	case OPT_CHECK:
		parsing->args->check = true;
		return 0;
	case OPT_PRINT:
		parsing->args->print = true;
		return 0;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

static void print_version(FILE *out, struct argp_state *state)
{
	(void)state;
	fprintf(out, "crikeepd %s\n", ck_version());
}

/* the options of the table, in its order, and then those that are no keys */
static void make_options(struct argp_option *options)
{
	static const struct argp_option others[] = {
		{ "set", OPT_SET, "KEY=VALUE", 0,
		  "set any key of crikeep.yaml, like cache.lost_grace=1m; lists as a,b", 2 },
		{ "config", OPT_CONFIG, "FILE", 0,
		  "read FILE, which must exist, instead of " CK_CONF_PATH, 3 },
		{ "check-config", OPT_CHECK, NULL, 0, "check the configuration and exit", 3 },
		{ "print-config", OPT_PRINT, NULL, 0,
		  "print the whole configuration as crikeep.yaml and exit", 3 },
		{ NULL, 'h', NULL, OPTION_HIDDEN, NULL, -1 },
	};
	for (size_t i = 0; i < CK_CONF_KEYS; i++) {
		const struct ck_conf_key *key = &ck_conf_keys[i];
		if (key->flag)
			*options++ = (struct argp_option){ .name = key->flag,
							   .key = OPT_KEY + (int)i,
							   .arg = key->arg,
							   .doc = key->help,
							   .group = 1 };
	}
	memcpy(options, others, sizeof(others));
}

/* @root: "", or where the machine's files are */
static int layers(struct parsing *parsing, const char *root)
{
	struct ck_conf *conf = parsing->conf;
	conf->file_must_exist = parsing->config;
	const char *path = parsing->config ? parsing->config : CK_CONF_PATH;
	if (asprintf(&conf->file, "%s%s", root, path) < 0) {
		conf->file = NULL;
		return ck_nomem(&parsing->err);
	}
	return ck_conf_layers(conf, &parsing->err);
}

static void say_odd(const char *text, void *userdata)
{
	(void)userdata;
	fprintf(stderr, "crikeepd: warning: %s\n", text);
}

/* the error names the origin and the key, like all errors of a value */
static int check_simulator(struct parsing *parsing)
{
	const struct ck_conf *conf = parsing->conf;
	struct ck_error why;
	char shown[CK_ERROR_TEXT];
	int r = conf->simulator ? parsing->check_simulator(conf->simulator, &why) : 0;
	if (r == 0)
		return 0;
	ck_utf8_clean(why.text, true, shown, sizeof(shown));
	return ck_fail(&parsing->err, -r, "%s: runtime: %s", ck_conf_origin(conf, "runtime"),
		       shown);
}

/* --check-config, --print-config. Warnings are printed here, or logged when the daemon starts. */
static int show(struct parsing *parsing)
{
	const struct ck_conf *conf = parsing->conf;
	const struct ck_args *args = parsing->args;
	int r = ck_conf_check(conf, args->check ? say_odd : NULL, NULL, &parsing->err);
	r = r < 0 ? r : check_simulator(parsing);
	if (r < 0)
		return r;
	if (args->print) {
		CK_AUTO_FREE char *text = ck_conf_print(conf);
		if (!text)
			return ck_nomem(&parsing->err);
		fputs(text, stdout);
	} else if (args->check) {
		printf("The configuration is good (%s%s).\n", conf->file_read ? "" : "there is no ",
		       conf->file);
	}
	return 0;
}

int ck_conf_read(struct ck_conf *conf, const char *root, int argc, char **argv,
		 struct ck_error *err)
{
	struct argp_option options[CK_CONF_KEYS + 8] = { 0 };
	const struct argp argp = { .options = options, .parser = parse };
	struct ck_args args = { 0 };
	struct parsing parsing = { .conf = conf, .args = &args };
	make_options(options);
	conf->confined = *root; /* its groups are not this system's */
	error_t e = argp_parse(&argp, argc, argv, ARGP_SILENT, NULL, &parsing);
	int r = e == ENOMEM ? ck_nomem(&parsing.err)
		: e ? ck_fail(&parsing.err, CK_EINVAL, "its command line cannot be read")
		    : layers(&parsing, root);
	*err = parsing.err;
	return r;
}

int ck_conf_args(struct ck_conf *conf, int argc, char **argv, ck_conf_simulator_cb *simulator_cb,
		 struct ck_args *ret_args)
{
	static char name[] = "crikeepd";
	struct argp_option options[CK_CONF_KEYS + 8] = { 0 };
	const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Serve CRI between the kubelet and a runtime: keep what is created too "
		       "late, and hand it back when the kubelet repeats the request."
		       "\v"
		       "Options override the configuration file, which overrides the defaults. "
		       "--print-config prints all keys and where each value comes from; "
		       "crikeep.yaml(5) explains them.\n"
		       "\n"
		       "Exit status: 0 if it was asked to end, 1 for trouble with the runtime or "
		       "the environment, 2 for wrong usage or configuration.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeepd --runtime unix:///run/containerd/containerd.sock\n"
		       "  crikeepd --runtime sim:create=5s --state-dir /tmp/keep \\\n"
		       "    --listen /tmp/keep.sock --unfiltered '' --metrics ''\n"
		       "  crikeepd --config ./crikeep.yaml --check-config",
	};
	struct ck_args args = { 0 };
	struct parsing parsing = { .conf = conf, .args = &args, .check_simulator = simulator_cb };
	make_options(options);
	setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
	argp_err_exit_status = STATUS_USAGE;
	argp_program_version_hook = print_version;
	if (argc > 0)
		argv[0] = name; /* messages begin with it, whatever the program was started as */
	error_t e = argp_parse(&argp, argc, argv, 0, NULL, &parsing);
	if (e)
		return complain(strerror(e));
	int r = layers(&parsing, "");
	r = r ? r : show(&parsing);
	if (r < 0) {
		complain(parsing.err.text);
		return r == -CK_ENOMEM ? r : -CK_EINVAL;
	}
	*ret_args = args;
	return 0;
}
