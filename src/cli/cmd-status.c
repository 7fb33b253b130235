/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep status: how the daemon, the runtime and the cache are, what is wrong, and what to do
 * next. It is the first command of somebody who was woken, so it runs when no command is given, and
 * answers whatever is broken.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "hooks/status-file.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/cri-endpoint.h"
#include "src/cli/daemon-metrics.h"
#include "src/cli/entry-text.h"
#include "src/cli/failing.h"
#include "src/cli/status.h"

#define ERRORS_SHOWN 5u
#define FACT_INDENT  12u /* of what stands behind "   Runtime: " */

enum { OPT_SOCKET = 0x500 };

static const struct argp_option options[] = {
	{ "socket", OPT_SOCKET, "PATH", 0,
	  "crikeepd's metrics socket (default: " CK_METRICS_SOCKET ")", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ck_health *health = state->input;
	size_t room = sizeof(((struct sockaddr_un *)0)->sun_path);
	switch (key) {
	case OPT_SOCKET:
		if (!*arg || strlen(arg) >= room)
			argp_error(state, "the path of a socket must have 1 to %zu bytes",
				   room - 1);
		health->metrics_path = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'; 'crikeep explain' tells of a pod",
			   arg);
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- the last errors ------------------------------------------------------------------------- */

struct shown { /* lines of history that differ in nothing but their time are one */
	const struct ck_history_row *last;
	size_t n;
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_error(const struct ck_history_row *line)
{
	return ck_what_is_problem(line->what) || line->what == CK_WHAT_DESTROY_FAILED ||
	       line->what == CK_WHAT_START_FAILED || line->what == CK_WHAT_START_LOST;
}

/* of this boot, the newest first. Return: how many */
static size_t find_errors(const struct ck_look *look, struct shown shown[ERRORS_SHOWN])
{
	size_t n = 0, i = look->reader ? look->reader->history_n : 0;
	while (i-- > 0) {
		const struct ck_history_row *line = &look->reader->history[i];
		size_t j = 0;
		if (!is_error(line) || !ck_look_this_boot(look, line->boot))
			continue;
		while (j < n &&
		       !(shown[j].last->what == line->what && shown[j].last->grpc == line->grpc &&
			 same_text(shown[j].last->who, line->who) &&
			 same_text(shown[j].last->detail, line->detail)))
			j++;
		if (j == ERRORS_SHOWN)
			continue;
		if (j == n)
			shown[n++] = (struct shown){ .last = line };
		shown[j].n++;
	}
	return n;
}

static void print_errors(const struct ck_look *look)
{
	struct shown shown[ERRORS_SHOWN];
	size_t n = find_errors(look, shown);
	if (n)
		printf("\nLast errors:\n");
	for (size_t i = 0; i < n; i++) {
		const struct ck_history_row *line = shown[i].last;
		char clock[CK_TEXT_SPAN], times[32] = "";
		if (shown[i].n > 1)
			snprintf(times, sizeof(times), ", %zu times", shown[i].n);
		CK_AUTO_FREE char *text = ck_text_format(
			"%s %s: %s%s%s%s%s%s",
			ck_text_clock(line->wall, look->wall / (int64_t)CK_NS_PER_S, clock),
			line->who, ck_what_text(line->what), times, line->grpc ? ": " : "",
			line->grpc ? ck_grpc_name(line->grpc) : "", line->detail ? ": " : "",
			line->detail ? line->detail : "");
		ck_print_folded(stdout, text, 2, ck_print_prose_width());
	}
}

static struct json_object *errors_tree(const struct ck_look *look)
{
	struct shown shown[ERRORS_SHOWN];
	size_t n = find_errors(look, shown);
	struct json_object *array = ck_tree_array();
	for (size_t i = 0; i < n; i++) {
		const struct ck_history_row *line = shown[i].last;
		struct json_object *object = ck_tree_object();
		ck_tree_put_time(object, "at", line->wall);
		ck_tree_put_seconds(object, "seconds_ago",
				    (int64_t)(ck_look_ago(look, line->at) & INT64_MAX));
		ck_tree_put_count(object, "times", shown[i].n);
		ck_tree_put_count(object, "entry", line->entry);
		ck_tree_put_text(object, "who", line->who);
		ck_tree_put_text(object, "what", ck_what_name(line->what));
		ck_tree_put_text(object, "text", ck_what_text(line->what));
		ck_tree_put_text(object, "code", line->grpc ? ck_grpc_name(line->grpc) : NULL);
		ck_tree_put_text(object, "detail", line->detail);
		ck_tree_add(array, object);
	}
	return array;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_text(const char *name, const char *text,
		       void (*fold)(FILE *out, const char *text, size_t indent, size_t width))
{
	if (FACT_INDENT + strlen(text) <= ck_print_prose_width()) {
		ck_print_line(stdout, "%10s: %s", name, text);
	} else {
		ck_print_line(stdout, "%10s:", name);
		fold(stdout, text, FACT_INDENT, ck_print_prose_width());
	}
}

static void CK_PRINTF(2, 3) print_fact(const char *name, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	CK_AUTO_FREE char *text = ck_text_vformat(fmt, ap);
	va_end(ap);
	print_text(name, text, ck_print_folded);
}

static void print_owner(const struct ck_health *health)
{
	static const char *const words[] = {
		[CK_OWNER_RUNNING] = "running",
		[CK_OWNER_FROZEN] = "frozen",
		[CK_OWNER_SILENT] = "running, but does not answer",
	};
	char clock[CK_TEXT_SPAN], span[CK_TEXT_SPAN];
	int64_t now = health->look.wall / (int64_t)CK_NS_PER_S;
	ck_print_line(stdout, "%s%s%s - cache of late create results",
		      health->seen ? health->process.name : "crikeepd", *health->version ? " " : "",
		      health->version);
	if (health->owner == CK_OWNER_STOPPED && health->written)
		print_fact(
			"State", "stopped; the database was last written at %s, %s ago",
			ck_text_clock(health->written, now, clock),
			ck_text_span((uint64_t)(now > health->written ? now - health->written : 0) *
					     CK_NS_PER_S,
				     span));
	else if (health->owner == CK_OWNER_STOPPED)
		print_fact("State", "stopped; it has not run with this state directory");
	else if (health->seen)
		print_fact("State", "%s (process %ld) since %s, %s ago", words[health->owner],
			   health->pid,
			   ck_text_clock(ck_look_wall(&health->look, health->process.started), now,
					 clock),
			   ck_text_span(ck_look_ago(&health->look, health->process.started), span));
	else
		print_fact("State", "%s", words[health->owner]);
}

static void print_runtime(const struct ck_health *health)
{
	const char *name = health->name ? health->name : "unnamed";
	if (health->owner != CK_OWNER_RUNNING)
		return;
	switch (health->runtime) {
	case CK_RUNTIME_ANSWERS:
		print_fact("Runtime", "%s %s (CRI %s), answered in %" PRIu64 " ms", name,
			   health->runtime_version ? health->runtime_version : "",
			   health->api ? health->api : "unknown", health->answer_ns / CK_NS_PER_MS);
		break;
	case CK_RUNTIME_SILENT:
		print_fact("Runtime", "connected, but does not answer");
		break;
	case CK_RUNTIME_FAILS:
		print_fact("Runtime", "answers with an error");
		break;
	case CK_RUNTIME_DISCONNECTED:
		print_fact("Runtime", "not connected");
		break;
	case CK_RUNTIME_UNREACHABLE:
	case CK_RUNTIME_UNTOLD:
		print_fact("Runtime", "connected");
		break;
	case CK_RUNTIME_UNKNOWN:
		print_fact("Runtime", "not asked: %s", health->why);
		break;
	}
}

static void print_calls(const struct ck_health *health)
{
	char span[CK_TEXT_SPAN];
	if (health->metrics && health->oldest_call)
		print_fact("Calls", "the oldest one without an answer began %s ago",
			   ck_text_span(health->oldest_call, span));
	else if (health->metrics)
		print_fact("Calls", "all are answered");
	if (health->metrics && health->refused)
		print_fact("Refused",
			   "%" PRIu64 " connection%s of users who are not in allow_uids; the log "
			   "names them",
			   health->refused, health->refused == 1 ? "" : "s");
}

/* "3 (2 sandboxes, 1 container)" */
static char *count_text(const uint64_t counts[3])
{
	uint64_t sandboxes = counts[CK_SANDBOX], containers = counts[CK_CONTAINER];
	return ck_text_format("%" PRIu64 " (%" PRIu64 " sandbox%s, %" PRIu64 " container%s)",
			      sandboxes + containers, sandboxes, sandboxes == 1 ? "" : "es",
			      containers, containers == 1 ? "" : "s");
}

static void print_shadow(const struct ck_health *health)
{
	CK_AUTO_FREE char *cut = count_text(health->cut), *saved = count_text(health->saved);
	print_fact("Shadow", "it only counts, and keeps, hides and changes nothing");
	print_fact("Cut off", "%s, because their call ended", cut);
	print_fact("Would save", "%s", saved);
}

static const char *size_or(int64_t bytes, const char *none, char *buf)
{
	return bytes < 0 ? none : ck_text_size((uint64_t)bytes, buf);
}

static const char *key_word(const struct ck_health *health)
{
	if (health->key < 0)
		return "missing";
	return health->key == CK_KEY_BYTES ? "present" : "damaged";
}

static void print_state_dir(const struct ck_health *health)
{
	char db[CK_TEXT_SPAN], wal[CK_TEXT_SPAN], space[CK_TEXT_SPAN];
	print_fact("Database", "%s: %s, log %s; %s free%s", ck_cli.state_dir,
		   size_or(health->database, "none", db), size_or(health->wal, "none", wal),
		   size_or(health->space, "unknown", space),
		   health->degraded ? "; it cannot be written" : "");
	if (health->look.reader && health->look.reader->counters.set_aside[0])
		print_fact("Set aside",
			   "%" PRIu64 " damaged database%s (crikeep.db.damaged-*): what was kept "
			   "in it is lost",
			   health->look.reader->counters.set_aside[0],
			   health->look.reader->counters.set_aside[0] == 1 ? "" : "s");
	if (health->database >= 0)
		print_fact("Key", "%s", key_word(health));
}

static void print_plugins(const struct ck_health *health)
{
	static const char *const states[] = { "overdue", CK_STATUS_ABSENT, CK_STATUS_GONE };
	CK_AUTO_FREE char *text = NULL;
	size_t len;
	if (!health->plugins)
		return;
	FILE *out = ck_must(open_memstream(&text, &len));
	fprintf(out, "%zu connected", ck_health_plugins(health, NULL));
	for (size_t i = 0; i < CK_COUNT(states); i++)
		if (ck_health_plugins(health, states[i]))
			fprintf(out, ", %zu %s", ck_health_plugins(health, states[i]), states[i]);
	if (fclose(out))
		ck_text_nomem();
	print_fact("Plugins", "%s", text);
}

static size_t count_state(const struct ck_health *health, enum ck_state state)
{
	size_t n = 0;
	for (size_t i = 0; i < health->look.reader->rows_n; i++)
		n += health->look.reader->rows[i].state == state;
	return n;
}

static void print_entries(const struct ck_health *health)
{
	CK_AUTO_FREE char *text = NULL;
	size_t len, all = 0;
	if (!health->look.reader)
		return;
	FILE *out = ck_must(open_memstream(&text, &len));
	for (int s = CK_STATE_CREATING; s <= CK_STATE_MAX; s++) {
		size_t n = count_state(health, (enum ck_state)s);
		char word[CK_STATE_WORD];
		if (n)
			fprintf(out, "%s%zu %s", all ? ", " : "", n,
				ck_state_lower((enum ck_state)s, word));
		all += n;
	}
	if (fclose(out))
		ck_text_nomem();
	CK_AUTO_FREE char *whole = ck_text_format("%s%s", all ? text : "none",
						  health->degraded ? ", as last written" : "");
	print_text("Entries", whole, ck_print_list);
}

static void print_problems(const struct ck_problems *problems)
{
	puts(problems->n ? "\nProblems:"
			 : "\nProblems: none here. 'crikeep doctor' also checks the kubelet and "
			   "the node.");
	for (size_t i = 0; i < problems->n; i++) {
		const struct ck_problem *problem = &problems->all[i];
		CK_AUTO_FREE char *hint = ck_text_format("Hint: %s", problem->hint);
		ck_print_coloured(stdout, CK_COLOUR_RED, problem->text, 2, ck_print_prose_width());
		ck_print_folded(stdout, hint, 4, ck_print_prose_width());
	}
}

static void print_people(const struct ck_health *health, const struct ck_problems *problems)
{
	print_owner(health);
	print_runtime(health);
	print_calls(health);
	if (health->shadow) {
		print_shadow(health);
		print_problems(problems);
		return;
	}
	print_state_dir(health);
	print_plugins(health);
	print_entries(health);
	print_problems(problems);
	print_errors(&health->look);
}

/* ---- for machines ---------------------------------------------------------------------------- */

static void put_size(struct json_object *object, const char *name, int64_t bytes)
{
	ck_tree_put(object, name, NULL);
	if (bytes >= 0)
		ck_tree_put_int(object, name, bytes);
}

static struct json_object *kinds_tree(const uint64_t counts[3])
{
	struct json_object *object = ck_tree_object();
	ck_tree_put_count(object, "sandboxes", counts[CK_SANDBOX]);
	ck_tree_put_count(object, "containers", counts[CK_CONTAINER]);
	return object;
}

static struct json_object *shadow_tree(const struct ck_health *health)
{
	if (!health->shadow)
		return NULL;
	struct json_object *object = ck_tree_object();
	ck_tree_put(object, "cut_off", kinds_tree(health->cut));
	ck_tree_put(object, "saved", kinds_tree(health->saved));
	return object;
}

static struct json_object *owner_tree(const struct ck_health *health)
{
	static const char *const words[] = { "stopped", "running", "frozen", "silent" };
	struct json_object *object = ck_tree_object();
	ck_tree_put_text(object, "state", words[health->owner]);
	ck_tree_put_text(object, "name", health->seen ? health->process.name : NULL);
	ck_tree_put_known(object, "pid", health->pid);
	ck_tree_put_text(object, "version", *health->version ? health->version : NULL);
	ck_tree_put(object, "refused", NULL);
	if (health->metrics)
		ck_tree_put_count(object, "refused", health->refused);
	ck_tree_put(object, "started_at", NULL);
	if (health->seen)
		ck_tree_put_time(object, "started_at",
				 ck_look_wall(&health->look, health->process.started));
	ck_tree_put(object, "shadow", shadow_tree(health));
	return object;
}

static struct json_object *runtime_tree(const struct ck_health *health)
{
	static const char *const words[] = { "unknown", "answers",      "silent",
					     "failing", "disconnected", "unreachable",
					     "untold" };
	struct json_object *object = ck_tree_object();
	ck_tree_put_text(object, "state", words[health->runtime]);
	ck_tree_put_text(object, "endpoint", health->endpoint);
	ck_tree_put_text(object, "name", health->name);
	ck_tree_put_text(object, "version", health->runtime_version);
	ck_tree_put_text(object, "api", health->api);
	ck_tree_put_text(object, "detail", *health->why ? health->why : NULL);
	ck_tree_put(object, "answer_seconds", NULL);
	ck_tree_put(object, "oldest_call_seconds", NULL);
	if (health->runtime == CK_RUNTIME_ANSWERS)
		ck_tree_put_seconds(object, "answer_seconds", (int64_t)health->answer_ns);
	if (health->metrics)
		ck_tree_put_seconds(object, "oldest_call_seconds", (int64_t)health->oldest_call);
	return object;
}

static struct json_object *database_tree(const struct ck_health *health)
{
	struct json_object *object = ck_tree_object();
	ck_tree_put_text(object, "state_dir", ck_cli.state_dir);
	ck_tree_put_bool(object, "readable", health->read == 0);
	ck_tree_put_bool(object, "degraded", health->degraded);
	put_size(object, "bytes", health->database);
	put_size(object, "log_bytes", health->wal);
	put_size(object, "free_bytes", health->space);
	ck_tree_put(object, "set_aside", NULL);
	if (health->look.reader)
		ck_tree_put_count(object, "set_aside", health->look.reader->counters.set_aside[0]);
	ck_tree_put(object, "written_at", NULL);
	if (health->written)
		ck_tree_put_time(object, "written_at", health->written);
	return object;
}

static struct json_object *plugins_tree(const struct ck_health *health)
{
	struct json_object *object = ck_tree_object();
	if (!health->plugins) {
		json_object_put(object);
		return NULL;
	}
	ck_tree_put_count(object, "connected", ck_health_plugins(health, NULL));
	ck_tree_put_count(object, "overdue", ck_health_plugins(health, "overdue"));
	ck_tree_put_count(object, "absent", ck_health_plugins(health, CK_STATUS_ABSENT));
	ck_tree_put_count(object, "gone", ck_health_plugins(health, CK_STATUS_GONE));
	return object;
}

static struct json_object *entries_tree(const struct ck_health *health)
{
	if (!health->look.reader)
		return NULL;
	struct json_object *object = ck_tree_object();
	for (int s = CK_STATE_CREATING; s <= CK_STATE_MAX; s++) {
		char name[CK_STATE_WORD];
		ck_tree_put_count(object, ck_state_lower((enum ck_state)s, name),
				  count_state(health, (enum ck_state)s));
	}
	return object;
}

static void print_tree(const struct ck_health *health, const struct ck_problems *problems)
{
	struct json_object *tree = ck_tree_object(), *array = ck_tree_array();
	for (size_t i = 0; i < problems->n; i++) {
		struct json_object *object = ck_tree_object();
		ck_tree_put_text(object, "what", problems->all[i].what);
		ck_tree_put_known(object, "entry", (int64_t)problems->all[i].entry);
		ck_tree_put_text(object, "text", problems->all[i].text);
		ck_tree_put_text(object, "hint", problems->all[i].hint);
		ck_tree_add(array, object);
	}
	ck_tree_put(tree, "owner", owner_tree(health));
	ck_tree_put(tree, "runtime", runtime_tree(health));
	ck_tree_put(tree, "database", database_tree(health));
	ck_tree_put_text(tree, "key", key_word(health));
	ck_tree_put(tree, "plugins", plugins_tree(health));
	ck_tree_put(tree, "entries", entries_tree(health));
	ck_tree_put(tree, "problems", array);
	ck_tree_put(tree, "last_errors", errors_tree(&health->look));
	ck_tree_print(stdout, ck_cli.output, tree);
}

int ck_cmd_status(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Show how crikeepd, the runtime and the cache are, what is wrong, and what "
		       "to do next. 'crikeep' without a command does the same."
		       "\v"
		       "The runtime is asked through crikeepd for its version. A runtime with "
		       "libcrikeep has no metrics; name its socket with --endpoint.\n"
		       "\n"
		       "Exit status: 0 if there is no problem, 1 if there is one, 2 if you may not "
		       "look.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep status\n"
		       "  crikeep status -o json",
		.children = ck_cri_children,
	};
	struct ck_health health = { .metrics_path = CK_METRICS_SOCKET };
	struct ck_problems problems = { 0 };
	if (argp_parse(&argp, argc, argv, 0, NULL, &health))
		return CK_EXIT_TROUBLE;
	int r = ck_health_take(&health);
	if (r < 0)
		ck_look_complain(r, &health.read_err);
	else
		ck_problems_find(&health, &problems);
	ck_cli_page();
	if (r == 0 && ck_cli.output == CK_OUTPUT_TABLE)
		print_people(&health, &problems);
	else if (r == 0)
		print_tree(&health, &problems);
	int code = r < 0 ? CK_EXIT_TROUBLE : problems.n ? CK_EXIT_NO : CK_EXIT_YES;
	ck_problems_fini(&problems);
	ck_health_fini(&health);
	return code;
}
