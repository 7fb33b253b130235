/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep simulate: a slow node in virtual time, with the rules of containerd, of CRI-O and of this
 * library. It answers two questions before anything is installed: would crikeep help on a node this
 * slow, and what would it change?
 */
#include <argp.h>
#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/cli/cli.h"
#include "src/cli/simulate/plot.h"
#include "src/cli/simulate/report.h"
#include "src/cli/simulate/simulation.h"

enum {
	OPT_CREATE = 0x100,
	OPT_JITTER,
	OPT_SLOW,
	OPT_DEADLINE,
	OPT_PODS,
	OPT_CONTAINERS,
	OPT_GIVE_UP,
	OPT_POLICY,
	OPT_HAND_BACK,
	OPT_RESTART,
	OPT_KUBELET_RESTART,
	OPT_SEED,
	OPT_PLOT,
	OPT_TRACE,
};

#define SPAN_MAX (24 * 3600 * CK_NS_PER_S)

struct arguments {
	struct ck_simulation_options sim;
	const struct ck_simulation_policy *policies[3];
	size_t n;
	const char *plot; /* where the SVG goes, or NULL */
};

static const struct argp_option options[] = {
	{ "create", OPT_CREATE, "SPAN", 0, "How long a create takes [5s]", 0 },
	{ "jitter", OPT_JITTER, "PERCENT", 0, "Each create takes up to PERCENT less or more [10%]",
	  0 },
	{ "slow", OPT_SLOW, "KIND", 0,
	  "Which creates are slow: sandbox, container or both [both]; others take 100 ms", 0 },
	{ "deadline", OPT_DEADLINE, "SPAN", 0,
	  "How long the kubelet waits for one create [2s]. A kubelet waits runtimeRequestTimeout "
	  "for "
	  "a container and twice that for a sandbox; here both have the same deadline",
	  0 },
	{ "pods", OPT_PODS, "N", 0, "Number of pods, all created within one second [20]", 0 },
	{ "containers", OPT_CONTAINERS, "N", 0,
	  "Number of containers of each pod, created one after another [1]", 0 },
	{ "give-up", OPT_GIVE_UP, "SPAN", 0, "Delete a pod that is not ready after SPAN [10m]", 0 },
	{ "policy", OPT_POLICY, "POLICY", 0, "Policy to simulate: none, ram, crikeep or all [all]",
	  0 },
	{ "hand-back", OPT_HAND_BACK, "HOW", 0,
	  "Setting of crikeep: offer (late sandboxes are listed at once), or repeat [offer]", 0 },
	{ "restart-at", OPT_RESTART, "SPAN", 0,
	  "Restart the runtime after SPAN, and with it whatever keeps results", 0 },
	{ "kubelet-restart-at", OPT_KUBELET_RESTART, "SPAN", 0, "Restart the kubelet after SPAN",
	  0 },
	{ "seed", OPT_SEED, "N", 0,
	  "Seed of all random numbers: the same seed gives the same results [1]", 0 },
	{ "plot", OPT_PLOT, "FILE", 0, "Also write the plot to FILE, as SVG", 0 },
	{ "trace", OPT_TRACE, NULL, 0,
	  "Write each create, as the kubelet sees it, to standard error: policy, time, pod, call, "
	  "duration, result",
	  0 },
	{ 0 },
};

static const char doc[] =
	"Simulate a slow node. The policies differ in what happens to a create that takes longer "
	"than the kubelet's deadline: nothing keeps its result (none, like containerd), memory "
	"keeps it (ram, like CRI-O), or crikeep keeps it.\v"
	"A SPAN is like 30s, 1m30s or 250ms. Time is virtual: hours take a moment.\n"
	"\n"
	"Examples:\n"
	"  crikeep simulate --create 5s --deadline 2s --pods 20\n"
	"  crikeep simulate --create 150s --deadline 2m --give-up 1h --plot node.svg\n"
	"  crikeep simulate --slow container --policy none --pods 1 --trace\n"
	"  crikeep simulate --hand-back repeat --restart-at 10s -o json";

/* ---- arguments ------------------------------------------------------------------------------- */

static uint64_t parse_span(struct argp_state *state, const char *what, const char *arg)
{
	uint64_t ns = 0;
	if (!ck_duration_parse(arg, &ns) || ns < CK_NS_PER_MS || ns > SPAN_MAX)
		argp_error(state, "invalid %s '%s'; expected a time span from 1ms to 24h", what,
			   arg);
	return ns;
}

static uint64_t parse_count(struct argp_state *state, const char *what, const char *arg,
			    uint64_t least, uint64_t most)
{
	char *rest = NULL;
	errno = 0;
	unsigned long long n = strtoull(arg, &rest, 10);
	if (*arg < '0' || *arg > '9' || *rest || errno || n < least || n > most)
		argp_error(state, "invalid %s '%s'; expected a number from %llu to %llu", what, arg,
			   (unsigned long long)least, (unsigned long long)most);
	return n;
}

static double parse_percent(struct argp_state *state, const char *arg)
{
	char *rest = NULL;
	double percent = strtod(arg, &rest);
	if (*arg < '0' || *arg > '9' || (*rest && strcmp(rest, "%") != 0) || !isfinite(percent) ||
	    percent > 100)
		argp_error(state, "invalid --jitter '%s'; expected a percentage from 0 to 100",
			   arg);
	return percent / 100;
}

static size_t parse_word(struct argp_state *state, const char *what, const char *arg,
			 const char *const *words)
{
	size_t i = 0;
	while (words[i] && strcmp(words[i], arg) != 0)
		i++;
	if (!words[i])
		argp_error(state, "invalid %s '%s'; see --help for the choices", what, arg);
	return i;
}

static void parse_slow(struct argp_state *state, const char *arg, struct ck_simulation_options *sim)
{
	static const char *const words[] = { "sandbox", "container", "both", NULL };
	size_t i = parse_word(state, "--slow", arg, words);
	sim->slow[CK_SANDBOX] = i != 1;
	sim->slow[CK_CONTAINER] = i != 0;
}

static void parse_policy(struct argp_state *state, const char *arg, struct arguments *args)
{
	static const char *const words[] = { "none", "ram", "crikeep", "all", NULL };
	static const struct ck_simulation_policy *const policies[] = {
		&ck_simulation_policy_none, &ck_simulation_policy_ram, &ck_simulation_policy_crikeep
	};
	size_t i = parse_word(state, "--policy", arg, words);
	bool all = i == CK_COUNT(policies);
	args->n = all ? CK_COUNT(policies) : 1;
	for (size_t p = 0; p < args->n; p++)
		args->policies[p] = policies[all ? p : i];
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const hand_back[] = { "repeat", "offer", NULL };
	struct arguments *args = state->input;
	struct ck_simulation_options *sim = &args->sim;
	switch (key) {
	case OPT_CREATE: sim->create = parse_span(state, "--create", arg); return 0;
	case OPT_JITTER: sim->jitter = parse_percent(state, arg); return 0;
	case OPT_SLOW: parse_slow(state, arg, sim); return 0;
	case OPT_DEADLINE: sim->deadline = parse_span(state, "--deadline", arg); return 0;
	case OPT_PODS:
		sim->pods = (unsigned)parse_count(state, "--pods", arg, 1, CK_SIMULATION_PODS_MAX);
		return 0;
	case OPT_CONTAINERS:
		sim->containers = (unsigned)parse_count(state, "--containers", arg, 1,
							CK_SIMULATION_CONTAINERS_MAX);
		return 0;
	case OPT_GIVE_UP: sim->give_up = parse_span(state, "--give-up", arg); return 0;
	case OPT_POLICY: parse_policy(state, arg, args); return 0;
	case OPT_HAND_BACK:
		sim->hand_back =
			(enum ck_hand_back)parse_word(state, "--hand-back", arg, hand_back);
		return 0;
	case OPT_RESTART: sim->restart_at = parse_span(state, "--restart-at", arg); return 0;
	case OPT_KUBELET_RESTART:
		sim->kubelet_restart_at = parse_span(state, "--kubelet-restart-at", arg);
		return 0;
	case OPT_SEED: sim->seed = parse_count(state, "--seed", arg, 0, INT64_MAX); return 0;
	case OPT_PLOT: args->plot = arg; return 0;
	case OPT_TRACE: sim->trace = true; return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void interrupt(int signal)
{
	(void)signal;
	ck_simulation_interrupt();
}

/* The policy crikeep has a directory to remove, so the first signal ends the run in order. A second
 * one ends it at once (SA_RESETHAND). */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static int write_svg(const char *path, const struct ck_plot *plot)
{
	FILE *out = fopen(path, "we");
	int r = out ? 0 : -1;
	if (out) {
		ck_plot_svg(out, plot);
		r = ferror(out) ? -1 : 0;
		if (fclose(out) != 0)
			r = -1;
	}
	if (r < 0)
		ck_print_error("cannot write '%s': %s", path, strerror(errno));
	return r;
}

static int print(const struct arguments *args, const struct ck_simulation_result *results)
{
	struct ck_plot plot;
	ck_plot_scale(&plot, &args->sim, results, args->n);
	if (ck_cli.output != CK_OUTPUT_TABLE) {
		ck_tree_print(stdout, ck_cli.output,
			      ck_simulation_tree(&args->sim, results, args->n));
	} else {
		ck_simulation_report(stdout, &args->sim, results, args->n);
		putchar('\n');
		ck_plot_terminal(stdout, &plot, strcmp(nl_langinfo(CODESET), "UTF-8") == 0);
	}
	return args->plot && write_svg(args->plot, &plot) < 0 ? CK_EXIT_TROUBLE : CK_EXIT_YES;
}

int ck_cmd_simulate(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse, .doc = doc, .children = ck_cli_children,
	};
	struct arguments args = {
		.sim = {
			.create = 5 * CK_NS_PER_S,
			.jitter = 0.1,
			.slow = { [CK_SANDBOX] = true, [CK_CONTAINER] = true },
			.deadline = 2 * CK_NS_PER_S,
			.hand_back = CK_OFFER, /* as crikeepd */
			.give_up = 600 * CK_NS_PER_S,
			.pods = 20,
			.containers = 1,
			.seed = 1,
		},
		.policies = { &ck_simulation_policy_none, &ck_simulation_policy_ram,
			      &ck_simulation_policy_crikeep },
		.n = 3,
	};
	struct ck_simulation_result results[3] = { { 0 } };
	int status = CK_EXIT_YES;

	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	catch_signals();
	for (size_t i = 0; i < args.n && status == CK_EXIT_YES; i++) {
		struct ck_error err;
		if (ck_simulation_run(&args.sim, args.policies[i], &results[i], &err) < 0) {
			ck_print_error("cannot simulate '%s': %s", args.policies[i]->name,
				       err.text);
			status = CK_EXIT_TROUBLE;
		}
	}
	if (status == CK_EXIT_YES)
		status = print(&args, results);
	for (size_t i = 0; i < args.n; i++)
		ck_simulation_result_fini(&results[i]);
	return status;
}
