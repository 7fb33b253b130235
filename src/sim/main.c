/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep-sim, the simulated runtime as a program. crikeepd starts it for sim:PARAMETERS, with
 * --parent: src/daemon/simulator.c has the other side of that socket.
 */
#include <argp.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/rpc/address.h"
#include "src/sim/sim-int.h"
#include "src/sim/sim.h"

enum { EXIT_USAGE = 2 };
enum { OPT_CHECK = 0x100, OPT_LISTEN, OPT_PARENT };

struct args {
	const char *parameters;
	const char *listen; /* NULL: the parameters say it */
	int parent;         /* -1: none */
	bool check;
};

static error_t parse(int opt, char *arg, struct argp_state *state)
{
	struct args *args = state->input;
	char *end;
	switch (opt) {
	case OPT_CHECK:
		args->check = true;
		return 0;
	case OPT_LISTEN:
		args->listen = arg;
		return 0;
	case OPT_PARENT:
		args->parent = (int)strtoul(arg, &end, 10);
		if (*arg < '0' || *arg > '9' || *end || args->parent < 0)
			argp_error(state, "--parent needs the number of a descriptor");
		return 0;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "the parameters are one word, separated by commas");
		args->parameters = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void print_version(FILE *out, struct argp_state *state)
{
	(void)state;
	fprintf(out, "crikeep-sim %s\n", PACKAGE_VERSION);
}

static void parse_args(int argc, char **argv, struct args *ret_args)
{
	static char name[] = "crikeep-sim";
	static const struct argp_option options[] = {
		{ "listen", OPT_LISTEN, "PATH", 0,
		  "listen at PATH, unless the parameters have listen=", 0 },
		{ "check", OPT_CHECK, NULL, 0, "check the parameters and exit", 0 },
		{ "parent", OPT_PARENT, "FD", 0,
		  "send \"ready PATH\" or \"error TEXT\" to this SOCK_SEQPACKET socket, and exit "
		  "when its other side is closed",
		  0 },
		{ NULL, 'h', NULL, OPTION_HIDDEN, NULL, -1 },
		{ 0 },
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[PARAMETERS]",
		.doc = "Serve CRI as a container runtime does, with objects in memory. "
		       "crikeepd runs this program for --runtime=sim:PARAMETERS."
		       "\v"
		       "Parameters are separated by commas; crikeepd(8) describes them.\n"
		       "\n"
		       "Exit status: 0 it was asked to end, 1 trouble with the environment, "
		       "2 wrong usage or parameters.\n"
		       "\n"
		       "Example:\n"
		       "  crikeep-sim --listen=/tmp/sim.sock create=5s,log=/tmp/sim.log",
	};
	setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
	argp_err_exit_status = EXIT_USAGE;
	argp_program_version_hook = print_version;
	if (argc > 0)
		argv[0] = name;
	argp_parse(&argp, argc, argv, 0, NULL, ret_args);
}

/* to the parent, or to a person */
static void say(const struct args *args, const char *what, const char *text)
{
	char packet[CK_PATH_MAX + 8];
	int n = snprintf(packet, sizeof(packet), "%s %s", what, text);
	if (args->parent >= 0)
		(void)!send(args->parent, packet, (size_t)n, MSG_NOSIGNAL);
	else if (strcmp(what, "error") == 0)
		fprintf(stderr, "crikeep-sim: %s\n", text);
}

/* An earlier runtime at this path, whose parent has ended just now, ends a moment after it. */
static int listen_after(const char *path, struct ck_error *err)
{
	int fd = -1, other;
	for (int tries = 0; tries < 20; tries++) {
		fd = ck_unix_listen(path, 0600, (gid_t)-1, err);
		other = fd < 0 ? ck_unix_connect(path, NULL) : -1;
		if (other < 0)
			break;
		close(other);
		nanosleep(&(struct timespec){ .tv_nsec = (long)(100 * CK_NS_PER_MS) }, NULL);
	}
	return fd;
}

static int listen_at(const struct args *args, const char *path, struct ck_error *err)
{
	if (args->parent >= 0)
		return listen_after(path, err);
	return ck_unix_listen(path, 0600, (gid_t)-1, err);
}

int main(int argc, char **argv)
{
	struct args args = { .parameters = "", .parent = -1 };
	struct ck_sim_conf conf = { 0 };
	struct ck_error err;
	int fd = -1, status = EXIT_SUCCESS;
	parse_args(argc, argv, &args);
	/* by itself the threshold rises to the longest list, and that memory is never given back */
	mallopt(M_MMAP_THRESHOLD, CK_MAP_FROM);
	int r = ck_sim_conf_parse(&conf, args.parameters, &err);
	const char *path = conf.listen ? conf.listen : args.listen;
	if (r >= 0 && !args.check) {
		if (path)
			fd = r = listen_at(&args, path, &err);
		else
			r = ck_fail(&err, CK_EINVAL, "listen=PATH is needed");
	}
	if (r < 0) {
		status = r == -CK_EINVAL ? EXIT_USAGE : EXIT_FAILURE;
		say(&args, "error", err.text);
	} else {
		say(&args, "ready", args.check ? "" : path);
	}
	if (fd >= 0) {
		status = ck_sim_serve(args.parameters, fd, args.parent);
		if (args.parent < 0)
			unlink(path);
	}
	ck_sim_conf_fini(&conf);
	return status;
}
