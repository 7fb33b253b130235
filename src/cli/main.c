/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep: the table of commands, and what happens before and after a command. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/base/edit-distance.h"
#include "src/cli/cli.h"
#include "src/cli/output/pager.h"

#define NAME_LONGEST 16u /* of a command */

#ifndef CK_EXPORTER
int ck_cmd_exporter(int argc, char **argv)
{
	(void)argc, (void)argv;
	ck_print_error("this build has no exporter, which needs libmicrohttpd");
	return CK_EXIT_TROUBLE;
}
#endif

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "status", ck_cmd_status, "show how everything is, what is wrong, what to do next" },
	{ "doctor", ck_cmd_doctor, "check how this node is set up, and how to correct it" },
	{ "list", ck_cmd_list,
	  "list what is being created, kept, handed over or evicted (or: ls)" },
	{ "show", ck_cmd_show, "show everything stored about an entry" },
	{ "explain", ck_cmd_explain, "explain in plain words what is going on with a pod" },
	{ "history", ck_cmd_history, "show what happened, line by line" },
	{ "stats", ck_cmd_stats, "show sizes, entries by state, and counters" },
	{ "evict", ck_cmd_evict, "ask the owner of the database to give up an entry" },
	{ "check", ck_cmd_check, "check whether the database is sound" },
	{ "compare", ck_cmd_compare, "tell whether one request repeats another" },
	{ "pods", ck_cmd_pods, "list the sandboxes of a CRI endpoint, and uids in conflict" },
	{ "plugins", ck_cmd_plugins, "list the NRI plugins and their state" },
	{ "drive", ck_cmd_drive, "act as a kubelet: repeat a create request until it succeeds" },
	{ "simulate", ck_cmd_simulate, "simulate a slow node, with and without the cache" },
	{ "exporter", ck_cmd_exporter, "serve crikeepd's metrics over HTTP" },
};

/* ---- commands -------------------------------------------------------------------------------- */

static const struct command *nearest(const char *name)
{
	const struct command *best = NULL;
	size_t least = CK_EDIT_DISTANCE_MAX + 1;
	for (size_t i = 0; i < CK_COUNT(commands); i++) {
		size_t d = ck_edit_distance(name, commands[i].name);
		if (d < least) {
			least = d;
			best = &commands[i];
		}
	}
	return best;
}

static const struct command *find_command(const char *name)
{
	if (strcmp(name, "ls") == 0)
		name = "list";
	for (size_t i = 0; i < CK_COUNT(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int run(int argc, char **argv)
{
	static char help[] = "--help", title[sizeof("crikeep ") + NAME_LONGEST];
	char *help_argv[] = { NULL, help, NULL };
	const char *name = argv[0];
	if (strcmp(name, "help") == 0 && argc > 1) { /* crikeep help list */
		name = argv[1];
		argc = 2;
		argv = help_argv;
	}
	const struct command *command = find_command(name);
	if (!command) {
		const struct command *near = nearest(name);
		if (near)
			ck_print_error("unknown command '%s'; did you mean '%s'?", name,
				       near->name);
		else
			ck_print_error("unknown command '%s'; see 'crikeep --help'", name);
		return CK_EXIT_TROUBLE;
	}
	snprintf(title, sizeof(title), "crikeep %s", command->name);
	argv[0] = title;
	return command->run(argc, argv);
}

static error_t parse_main(int key, char *arg, struct argp_state *state)
{
	int *first = state->input;
	switch (key) {
	case ARGP_KEY_ARG: /* the command; what follows are its arguments */
		if (strcmp(arg, "help") == 0 && state->next == state->argc)
			argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		*first = state->next - 1;
		state->next = state->argc;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* add the list of commands, from their table */
static char *main_help(int key, const char *text, void *input)
{
	(void)input;
	if (key != ARGP_KEY_HELP_PRE_DOC)
		return (char *)text;
	char *all = NULL;
	size_t len;
	FILE *out = ck_must(open_memstream(&all, &len));
	fprintf(out, "%s\n\nCommands:\n", text);
	for (size_t i = 0; i < CK_COUNT(commands); i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].what);
	fputs("\nSee 'crikeep COMMAND --help' for each command.\n", out);
	if (fclose(out))
		ck_text_nomem();
	return all;
}

/* ---- before and after a command -------------------------------------------------------------- */

/* errno is that of the last write only. Whether a pipe still has a reader can be asked at any
 * time. */
static bool nobody_reads(int last_errno)
{
	struct pollfd out = { .fd = STDOUT_FILENO };
	return last_errno == EPIPE || (poll(&out, 1, 0) > 0 && out.revents & POLLERR);
}

/* At every exit, also that of --help: lost output is an error. A broken pipe is not reported,
 * because its reader has left on purpose. */
static void close_stdout(void)
{
	errno = 0;
	bool failed = fflush(stdout) || ferror(stdout);
	int e = errno;
	bool pipe_broken = failed && nobody_reads(e);
	errno = 0;
	if (fclose(stdout) && !failed) { /* a network file system reports errors only here */
		failed = true;
		e = errno;
	}
	if (ck_pager_end() && pipe_broken)
		return; /* somebody has seen enough */
	if (failed && !pipe_broken)
		ck_print_error("cannot write the output%s%s", e ? ": " : "", e ? strerror(e) : "");
	if (failed)
		_exit(CK_EXIT_TROUBLE);
}

static void print_version(FILE *out, struct argp_state *state)
{
	(void)state;
	fprintf(out, "crikeep %s\n", ck_version());
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_main,
		.args_doc = "[COMMAND [ARGUMENT...]]",
		.doc = "Inspect and manage the cache in which libcrikeep keeps late results for "
		       "the kubelet. Without COMMAND, status is shown."
		       "\v"
		       "Exit status: 0 for success or yes, 1 for no or not found, 2 for wrong "
		       "usage or a failure.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep status\n"
		       "  crikeep list\n"
		       "  crikeep explain prod/web-7d9f\n"
		       "  crikeep --state-dir /var/lib/crikeep history --since 10m",
		.children = ck_cli_children,
		.help_filter = main_help,
	};
	static char name[] = "crikeep";
	const char *dir = getenv("CRIKEEP_STATE_DIR");
	int first = 0;

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C"); /* JSON and SVG have no decimal comma */
	signal(SIGPIPE, SIG_IGN);   /* close_stdout() handles EPIPE */
	atexit(close_stdout);
	/* this note would follow the examples, which are to end every help text */
	setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
	argp_err_exit_status = CK_EXIT_TROUBLE;
	argp_program_version_hook = print_version;
	if (dir && *dir)
		ck_cli.state_dir = dir;
	if (argc > 0)
		argv[0] = name; /* messages begin with it, whatever the program was started as */
	error_t e = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &first);
	if (e) {
		ck_print_error("%s", strerror(e));
		return CK_EXIT_TROUBLE;
	}
	static char status[] = "status";
	char *status_argv[] = { status, NULL };
	return first ? run(argc - first, argv + first) : run(1, status_argv);
}
