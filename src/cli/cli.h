/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_H
#define CK_CLI_H
/*
 * crikeep(1): inspects the cache. Each command is one function. It gets its own arguments, with
 * "crikeep COMMAND" as argv[0], parses them by argp with ck_cli_children, and returns the
 * exit status. No command writes the database: it reads a copy (ck_reader_open) or writes an admin
 * request for the owner.
 *
 * Standard output carries only the answer; errors and hints are lines on standard error. main.c
 * closes standard output at exit and turns a failure of that into CK_EXIT_TROUBLE, so a command
 * need not check what it prints.
 */
#include <argp.h>
#include <stdbool.h>

#include "src/base/error.h"
#include "src/cli/output/print.h"

enum ck_exit {
	CK_EXIT_YES = 0,
	CK_EXIT_NO = 1,      /* no, or not found */
	CK_EXIT_TROUBLE = 2, /* the command could not run, or its output could not be written */
};

#define CK_CLI_STATE_DIR "/run/crikeep" /* the default */

/* What all commands share; set while arguments are parsed. */
struct ck_cli {
	const char *state_dir;
	enum ck_output output;
	bool no_pager;
};
extern struct ck_cli ck_cli;

/* --state-dir, --output, -h */
extern const struct argp ck_cli_argp;
extern const struct argp_child ck_cli_children[];
/* the same without --output, for a command that has more forms */
extern const struct argp_child ck_cli_base_children[];

/* ck_cli_set_output - "table", "json", "yaml"; false: none of them */
bool ck_cli_set_output(const char *form);
/* ck_cli_page - what is printed from now on goes through a pager if it is for a terminal. For
 * commands that look, end by themselves and ask nothing */
void ck_cli_page(void);
/* ck_cli_hint - like ck_print_error(), but prints nothing with -o json or yaml */
void ck_cli_hint(const char *fmt, ...) CK_PRINTF(1, 2);

int ck_cmd_status(int argc, char **argv);
int ck_cmd_doctor(int argc, char **argv);
int ck_cmd_list(int argc, char **argv);
int ck_cmd_show(int argc, char **argv);
int ck_cmd_explain(int argc, char **argv);
int ck_cmd_history(int argc, char **argv);
int ck_cmd_stats(int argc, char **argv);
int ck_cmd_check(int argc, char **argv);
int ck_cmd_evict(int argc, char **argv);
int ck_cmd_compare(int argc, char **argv);
int ck_cmd_pods(int argc, char **argv);
int ck_cmd_plugins(int argc, char **argv);
int ck_cmd_drive(int argc, char **argv);
int ck_cmd_simulate(int argc, char **argv);
int ck_cmd_exporter(int argc, char **argv);
#endif
