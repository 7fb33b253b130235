/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep plugins: NRI plugins, as the status file in the state directory describes them. The
 * process that holds their connections rewrites the file when something changes. It can be read
 * when that process is gone; a warning then says that no plugin is connected.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "hooks/status-file.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/select-entries.h"

#define ALL_EVENTS 0x3fffu

enum { OPT_NO_TRUNC = 0x200, OPT_STATE };

struct arguments {
	char **names;
	int names_n;
	const char *state;
	bool quiet, no_trunc;
};

struct seen {
	struct ck_nri_status *status;
	struct ck_look look; /* only its times; no database is read */
	bool alive;          /* the process that wrote it, and with it the connections */
	bool known;          /* its times are of this boot */
	bool shown[CK_NRI_PLUGINS_MAX];
	size_t shown_n;
};

#define STATES "connected, registered, synchronizing, ready, overdue, absent or gone"

static const struct argp_option options[] = {
	{ "quiet", 'q', NULL, 0, "Print names only, one per line", 0 },
	{ "no-trunc", OPT_NO_TRUNC, NULL, 0, "Print whole texts, and every column on any terminal",
	  0 },
	{ "state", OPT_STATE, "STATE", 0,
	  "Only plugins in this state: connected, registered, synchronizing, ready, overdue, "
	  "absent or gone",
	  0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const states[] = { "connected", "registered", "synchronizing",
					      "ready",     "overdue",    CK_STATUS_ABSENT,
					      CK_STATUS_GONE };
	struct arguments *args = state->input;
	switch (key) {
	case 'q':
		args->quiet = true;
		return 0;
	case OPT_NO_TRUNC:
		args->no_trunc = true;
		return 0;
	case OPT_STATE:
		for (size_t i = 0; i < CK_COUNT(states) && !args->state; i++)
			args->state = strcmp(arg, states[i]) == 0 ? states[i] : NULL;
		if (!args->state)
			argp_error(state, "invalid state '%s'; expected " STATES, arg);
		return 0;
	case ARGP_KEY_ARGS:
		args->names = state->argv + state->next;
		args->names_n = state->argc - state->next;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- the file -------------------------------------------------------------------------------- */

/*
 * The writer mostly owns the database in the same directory, and whether a database has an owner is
 * known for certain. A runtime may use plugins without the cache. Then the best evidence is that a
 * process with the writer's number exists.
 */
static bool writer_lives(const struct seen *seen)
{
	long owner, pid = seen->status->pid;
	if (!seen->known || pid < 1)
		return false;
	if (ck_store_owner(ck_cli.state_dir, &owner))
		return !owner || owner == pid;
	return owner != pid && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static int take(struct seen *seen)
{
	CK_AUTO_FREE char *path = ck_text_format("%s/" CK_STATUS_FILE, ck_cli.state_dir);
	struct ck_error err = { 0 };
	int r = ck_status_read(path, &seen->status, &err);
	if (r == -CK_ENOTFOUND)
		ck_print_error("no plugin status in '%s': NRI is disabled, or --state-dir is wrong",
			       ck_cli.state_dir);
	else if (r < 0)
		ck_print_error("%s%s", err.text, ck_look_root_hint(&err));
	if (r < 0)
		return CK_EXIT_TROUBLE;
	ck_look_clocks(&seen->look);
	seen->known = ck_look_this_boot(&seen->look, seen->status->boot);
	seen->alive = writer_lives(seen);
	return CK_EXIT_YES;
}

/* a plugin is named "10-logger" or "logger" */
static bool is_called(const struct ck_nri_plugin *plugin, const char *name)
{
	return strcmp(plugin->name, name) == 0 ||
	       (strlen(plugin->name) > 3 && strcmp(plugin->name + 3, name) == 0);
}

/* required, and not connected */
static bool is_absent(const struct ck_nri_plugin *plugin)
{
	return strcmp(plugin->state, CK_STATUS_ABSENT) == 0;
}

static bool is_connected(const struct ck_nri_plugin *plugin)
{
	return !is_absent(plugin) && strcmp(plugin->state, CK_STATUS_GONE) != 0;
}

static int choose(const struct arguments *args, struct seen *seen)
{
	int worst = CK_EXIT_YES;
	for (int j = 0; j < args->names_n; j++) {
		bool found = false;
		for (size_t i = 0; i < seen->status->n; i++) {
			bool is = is_called(&seen->status->plugins[i], args->names[j]);
			seen->shown[i] = seen->shown[i] || is;
			found = found || (is && is_connected(&seen->status->plugins[i]));
		}
		if (!found || !seen->alive) {
			ck_print_error("plugin '%s' is not connected", args->names[j]);
			worst = CK_EXIT_NO;
		}
	}
	for (size_t i = 0; i < seen->status->n; i++) {
		seen->shown[i] =
			(seen->shown[i] || !args->names_n) &&
			(!args->state || strcmp(args->state, seen->status->plugins[i].state) == 0);
		seen->shown_n += seen->shown[i];
	}
	return worst;
}

/* ---- output ---------------------------------------------------------------------------------- */

static const struct {
	unsigned bit;
	const char *name;
} events[] = {
#define EVENT(name, value, text) { 1u << ((value)-1), text },
	CK_NRI_EVENTS(EVENT)
#undef EVENT
};

/* "all", "RunPodSandbox StopPodSandbox"; free() */
static char *event_names(unsigned mask)
{
	char *text = NULL;
	size_t len;
	FILE *out = ck_must(open_memstream(&text, &len));
	if ((mask & ALL_EVENTS) == ALL_EVENTS)
		fputs("all", out);
	for (size_t i = 0; i < CK_COUNT(events) && (mask & ALL_EVENTS) != ALL_EVENTS; i++)
		if (mask & events[i].bit)
			fprintf(out, "%s%s", mask & (events[i].bit - 1) ? " " : "", events[i].name);
	if (fclose(out))
		ck_text_nomem();
	return text;
}

static void add_span(struct ck_table *table, const struct seen *seen, uint64_t at)
{
	char span[CK_TEXT_SPAN];
	ck_table_cell(table,
		      at && seen->known ? ck_text_span(ck_look_ago(&seen->look, at), span) : NULL);
}

static void add_line(struct ck_table *table, const struct seen *seen,
		     const struct ck_nri_plugin *plugin)
{
	CK_AUTO_FREE char *names = event_names(plugin->events);
	ck_table_cell(table, plugin->name);
	ck_table_cellf(table, "%s%s", seen->alive ? "" : "was ", plugin->state);
	ck_table_cellf(table, "%s%s", ck_status_policy(plugin->policy),
		       plugin->keep_connected ? "+keep" : "");
	add_span(table, seen, plugin->since);
	ck_table_cellf(table, "%u", plugin->queued);
	add_span(table, seen, plugin->overdue_since);
	ck_table_cellf(table, "%" PRIu64, plugin->sent);
	ck_table_cellf(table, "%" PRIu64, plugin->late);
	ck_table_cellf(table, "%" PRIu64, plugin->failed);
	ck_table_cell(table, plugin->last_error);
	ck_table_cell(table, names);
}

static void print_table(const struct arguments *args, const struct seen *seen)
{
	static const struct ck_column columns[] = {
		{ "PLUGIN", 0, 0 },
		{ "STATE", 0, 0 },
		{ "POLICY", 0, 3 },
		{ "CONNECTED", CK_COLUMN_RIGHT, 4 },
		{ "QUEUE", CK_COLUMN_RIGHT, 0 },
		{ "OVERDUE", CK_COLUMN_RIGHT, 0 },
		{ "SENT", CK_COLUMN_RIGHT, 2 },
		{ "LATE", CK_COLUMN_RIGHT, 0 },
		{ "FAILED", CK_COLUMN_RIGHT, 0 },
		{ "LAST ERROR", CK_COLUMN_CUT, 1 },
		{ "EVENTS", CK_COLUMN_CUT, 5 },
	};
	struct ck_table *table = ck_table_new(columns, CK_COUNT(columns));
	for (size_t i = 0; i < seen->status->n; i++)
		if (seen->shown[i])
			add_line(table, seen, &seen->status->plugins[i]);
	ck_table_print(stdout, table, args->no_trunc ? 0 : ck_print_width(stdout));
}

static void put_ago(struct json_object *object, const char *name, const struct seen *seen,
		    uint64_t at)
{
	if (at && seen->known)
		ck_tree_put_seconds(object, name,
				    (int64_t)(ck_look_ago(&seen->look, at) & INT64_MAX));
	else
		ck_tree_put(object, name, NULL);
}

static struct json_object *plugin_tree(const struct seen *seen, const struct ck_nri_plugin *plugin)
{
	struct json_object *object = ck_tree_object(), *array = ck_tree_array();
	bool named = *plugin->name, indexed = strlen(plugin->name) > 3 && plugin->name[2] == '-';
	ck_tree_put_text(object, "name", named ? plugin->name : NULL);
	if (indexed)
		ck_tree_put_int(object, "index",
				(plugin->name[0] - '0') * 10 + plugin->name[1] - '0');
	else
		ck_tree_put(object, "index", NULL);
	ck_tree_put_text(object, "state", plugin->state);
	ck_tree_put_text(object, "policy", ck_status_policy(plugin->policy));
	ck_tree_put_bool(object, "keep_connected", plugin->keep_connected);
	ck_tree_put_bool(object, "launched", plugin->launched);
	ck_tree_put_known(object, "pid", plugin->pid);
	for (size_t i = 0; i < CK_COUNT(events); i++)
		if (plugin->events & events[i].bit)
			ck_tree_add(array, ck_tree_text(events[i].name));
	ck_tree_put(object, "events", array);
	ck_tree_put_bool(object, "adjusting", plugin->adjusting);
	put_ago(object, "connected_seconds_ago", seen, plugin->since);
	ck_tree_put_count(object, "queued", plugin->queued);
	put_ago(object, "overdue_seconds_ago", seen, plugin->overdue_since);
	ck_tree_put_count(object, "sent", plugin->sent);
	ck_tree_put_count(object, "late", plugin->late);
	ck_tree_put_count(object, "failed", plugin->failed);
	ck_tree_put_text(object, "last_error", *plugin->last_error ? plugin->last_error : NULL);
	return object;
}

static void print_tree(const struct seen *seen)
{
	struct json_object *tree = ck_tree_object(), *array = ck_tree_array();
	ck_tree_put_time(tree, "written_at", seen->status->wall);
	put_ago(tree, "written_seconds_ago", seen, seen->status->now);
	ck_tree_put_known(tree, "owner_pid", seen->status->pid);
	ck_tree_put_bool(tree, "owner_alive", seen->alive);
	for (size_t i = 0; i < seen->status->n; i++)
		if (seen->shown[i])
			ck_tree_add(array, plugin_tree(seen, &seen->status->plugins[i]));
	ck_tree_put(tree, "plugins", array);
	ck_tree_print(stdout, ck_cli.output, tree);
}

static void say_the_rest(const struct arguments *args, const struct seen *seen)
{
	char span[CK_TEXT_SPAN], clock[CK_TEXT_SPAN];
	const struct ck_nri_status *status = seen->status;
	if (!seen->alive && seen->known)
		ck_cli_hint(
			"no plugin is connected now: process %ld has ended; it wrote this status "
			"%s ago, at %s",
			status->pid, ck_text_span(ck_look_ago(&seen->look, status->now), span),
			ck_text_clock(status->wall, seen->look.wall / (int64_t)CK_NS_PER_S, clock));
	else if (!seen->alive)
		ck_cli_hint(
			"no plugin is connected now: this status was written before the last boot, "
			"at %s",
			ck_text_clock(status->wall, seen->look.wall / (int64_t)CK_NS_PER_S, clock));
	else if (!seen->shown_n && !args->names_n)
		ck_cli_hint("no plugin is %s", args->state ? args->state : "connected");
	for (size_t i = 0; i < status->n && seen->alive; i++)
		if (seen->shown[i] && is_absent(&status->plugins[i]))
			ck_cli_hint(
				"nothing is handed over to the kubelet until plugin %s connects",
				status->plugins[i].name);
	for (size_t i = 0; i < status->n && seen->alive; i++)
		if (seen->shown[i] && status->plugins[i].adjusting)
			ck_cli_hint("plugin %s wants to change containers: creates fail until "
				    "nri.adjust is set to before-create",
				    status->plugins[i].name);
}

static void print(const struct arguments *args, const struct seen *seen)
{
	if (args->quiet) {
		for (size_t i = 0; i < seen->status->n; i++)
			if (seen->shown[i] && seen->alive && *seen->status->plugins[i].name &&
			    (args->state || is_connected(&seen->status->plugins[i])))
				ck_print_line(stdout, "%s", seen->status->plugins[i].name);
	} else if (ck_cli.output != CK_OUTPUT_TABLE) {
		print_tree(seen);
	} else if (seen->shown_n) {
		print_table(args, seen);
	}
	if (!args->quiet)
		say_the_rest(args, seen);
}

int ck_cmd_plugins(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[PLUGIN...]",
		.doc = "List the connected NRI plugins, in the order in which they are called, "
		       "the required plugins that are absent, and plugins that are gone because of "
		       "an error. For each: its state and policy, "
		       "the events that wait for it, for how long an answer is overdue, how many "
		       "events it was sent, answered too late and answered with an error, its last "
		       "error, and the events it subscribed to. A PLUGIN is named NN-name or name."
		       "\v"
		       "If the owner is down, the last known state is shown, with a warning.\n"
		       "\n"
		       "Exit status: 0 if the named plugins are connected, or none is named; 1 if "
		       "one is not connected; 2 if there is no plugin status.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep plugins\n"
		       "  crikeep plugins --state overdue -q\n"
		       "  crikeep plugins 10-logger -o json",
		.children = ck_cli_children,
	};
	struct arguments args = { 0 };
	struct seen seen = { 0 };
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	int r = take(&seen);
	if (r == CK_EXIT_YES) {
		ck_cli_page();
		r = choose(&args, &seen);
		print(&args, &seen);
	}
	ck_status_free(seen.status);
	return r;
}
