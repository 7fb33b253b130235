/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep evict: ask the owner to give up entries. Only the owner writes the database, so this
 * writes an admin request for each entry and waits a moment for the owner's answer; with --wait it
 * waits until the entry is gone. Requests that the rules refuse in any case are refused here. The
 * owner knows more, so it decides about the others. It says first what will be destroyed, and asks
 * if it can.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "cache/admin-request.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/cli/cli.h"
#include "src/cli/entry-text.h"

/* An owner answers within milliseconds. If it takes this long, it is stuck. */
#define ANSWER_WAIT  (5 * CK_NS_PER_S)
#define WAIT_DEFAULT (30 * CK_NS_PER_S)
#define POLL_MIN     (20 * CK_NS_PER_MS)
#define POLL_MAX     (500 * CK_NS_PER_MS)

enum { OPT_RELEASE = 0x200, OPT_WAIT, OPT_DRY_RUN };

struct arguments {
	char **picks;
	int n;
	bool release, dry_run, wait, yes;
	uint64_t wait_ns;
};

/* name, word for machines, exit status */
#define RESULTS(X) \
	X(PLANNED, "planned", CK_EXIT_YES)   /* all there is with --dry-run */ \
	X(LEFT, "left", CK_EXIT_YES)         /* there is no owner: for the next one */ \
	X(ACCEPTED, "accepted", CK_EXIT_YES) /* by the owner */ \
	X(GONE, "gone", CK_EXIT_YES) \
	X(REFUSED, "refused", CK_EXIT_NO) \
	X(IN_USE, "in_use", CK_EXIT_NO)         /* committed instead of destroyed */ \
	X(NOT_GONE, "not_gone", CK_EXIT_NO)     /* when --wait ended */ \
	X(UNANSWERED, "unanswered", CK_EXIT_NO) /* the owner lives but does not answer */ \
	X(UNTOLD, "untold", CK_EXIT_TROUBLE)    /* the request could not be written */

enum result {
#define RESULT_ENUM(name, word, status) RESULT_##name,
	RESULTS(RESULT_ENUM)
#undef RESULT_ENUM
};

struct task { /* one entry to give up */
	uint64_t entry;
	enum result result;
	bool pending;     /* waiting for the answer, or with --wait for the end */
	char request[33]; /* its name */
	char *who, *text;
	const struct ck_row *row; /* borrowed from the copy that was read first */
};

static const struct argp_option options[] = {
	{ "wait", OPT_WAIT, "SPAN", OPTION_ARG_OPTIONAL,
	  "Wait until the entries are gone, for at most SPAN (default: 30s)", 0 },
	{ "dry-run", OPT_DRY_RUN, NULL, 0, "Only print what would be done", 0 },
	{ "yes", 'y', NULL, 0, "Do not ask. Without a terminal, nothing is asked", 0 },
	{ "release", OPT_RELEASE, NULL, 0,
	  "Forget an entry that cannot be destroyed, without confirmation that it is gone. If it "
	  "still exists, the runtime's lists show it again after a minute. Takes entries, not pods",
	  0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	switch (key) {
	case OPT_WAIT:
		args->wait = true;
		if (arg && (!ck_duration_parse(arg, &args->wait_ns) || !args->wait_ns))
			argp_error(state, "invalid time span '%s'; expected one like 30s or 2m",
				   arg);
		return 0;
	case OPT_DRY_RUN:
		args->dry_run = true;
		return 0;
	case 'y':
		args->yes = true;
		return 0;
	case OPT_RELEASE:
		args->release = true;
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

static void CK_PRINTF(3, 4) task_set(struct task *task, enum result result, const char *fmt, ...)
{
	va_list ap;
	task->result = result;
	free(task->text);
	va_start(ap, fmt);
	task->text = ck_text_vformat(fmt, ap);
	va_end(ap);
}

/* ---- what to ask for ------------------------------------------------------------------------- */

/* what an eviction does to an entry, after "would" or "will" */
static const char *effect(const struct ck_row *row, bool release)
{
	if (release)
		return "be forgotten, whether it still exists or not";
	switch (row->state) {
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
		return "be destroyed as soon as its creation ends";
	case CK_STATE_COMMITTING:
		return "be destroyed as soon as its plugins have answered";
	case CK_STATE_EVICTING:
		return row->phase < CK_PHASE_CHECK
			       ? "be destroyed, as before, when what is under way has ended"
			       : "be destroyed, as before; the next try comes now";
	default:
		return "be destroyed";
	}
}

static const char *would(const struct arguments *args)
{
	return args->dry_run ? "would" : "will";
}

/* the container is destroyed with the sandbox */
static bool goes_with(const struct ck_row *container, const struct ck_row *sandbox)
{
	return sandbox->key->kind == CK_SANDBOX && sandbox->result &&
	       container->key->kind == CK_CONTAINER && !ck_state_visible(container->state) &&
	       container->state != CK_STATE_GONE &&
	       strcmp(container->key->sandbox_id, sandbox->result->id) == 0;
}

/* ", with its containers: entries 4, 5" */
static void tell_containers(FILE *out, const struct ck_look *look, const struct ck_row *sandbox)
{
	bool any = false;
	for (size_t i = 0; i < look->reader->rows_n; i++) {
		const struct ck_row *c = &look->reader->rows[i];
		if (!goes_with(c, sandbox))
			continue;
		fprintf(out, "%s %" PRIu64, any ? "," : ", with its containers: entries", c->id);
		any = true;
	}
}

/* What will happen, and to whom: "id 77aa4b21c0de9, KEPT: would be destroyed; it was requested 3
 * times, most recently 25s ago" */
static char *plan_text(const struct ck_look *look, const struct ck_row *row,
		       const struct arguments *args)
{
	CK_AUTO_FREE char *text = NULL;
	char words[CK_ROW_WORDS];
	size_t len;
	FILE *out = ck_must(open_memstream(&text, &len));
	if (row->result)
		fprintf(out, "id %.13s, ", row->result->id);
	fprintf(out, "%s: %s %s", ck_row_state(row, words), would(args),
		effect(row, args->release));
	if (!args->release)
		tell_containers(out, look, row);
	if (row->requests)
		fprintf(out, "; it was requested %" PRIu32 " time%s", row->requests,
			row->requests == 1 ? "" : "s");
	if (row->requests && ck_look_this_boot(look, row->boot))
		fprintf(out, ", most recently %s ago", ck_row_age(look, row, row->asked, words));
	if (fclose(out))
		ck_text_nomem();
	return CK_TAKE(text);
}

/* decide what can be decided without the owner */
static void plan(struct task *task, const struct arguments *args, const struct ck_look *look,
		 const struct ck_row *row)
{
	task->entry = row->id;
	task->row = row;
	task->who = ck_key_text(row->key);
	if (ck_state_visible(row->state)) {
		task_set(task, RESULT_REFUSED,
			 "it is committed; it belongs to the kubelet, and only the kubelet may "
			 "remove it");
	} else if (row->state == CK_STATE_GONE) {
		task_set(task, RESULT_GONE, "it is already gone");
	} else if (args->release && row->state != CK_STATE_EVICTING) {
		task_set(task, RESULT_REFUSED,
			 "it is in state %s; only an entry in state EVICTING can be released",
			 ck_state_name(row->state));
	} else {
		CK_AUTO_FREE char *text = plan_text(look, row, args);
		task_set(task, RESULT_PLANNED, "%s", text);
		task->pending = !args->dry_run;
	}
}

/* Committed entries of a pod are skipped: an operator who evicts a pod wants its leftovers gone. */
static size_t make_tasks(const struct ck_look *look, const struct arguments *args,
			 struct task *tasks, int *worst)
{
	const struct ck_reader *reader = look->reader;
	size_t n = 0;
	CK_AUTO_FREE bool *taken = ck_must(ck_alloc(reader->rows_n + 1));
	for (int a = 0; a < args->n; a++) {
		struct ck_picked picked = { 0 };
		size_t before = n;
		int r = ck_look_pick(look, args->picks[a], CK_PICK_TO_CHANGE, &picked);
		if (r == CK_EXIT_YES && picked.pod && args->release) {
			ck_print_error("--release takes entries, but '%s' is a pod",
				       args->picks[a]);
			r = CK_EXIT_TROUBLE;
		}
		for (size_t i = 0; r == CK_EXIT_YES && i < reader->rows_n; i++) {
			if (!picked.match[i] || taken[i] ||
			    (picked.pod && ck_state_visible(reader->rows[i].state)))
				continue;
			taken[i] = true;
			plan(&tasks[n++], args, look, &reader->rows[i]);
		}
		if (r == CK_EXIT_YES && picked.pod && n == before) {
			ck_print_error("nothing to evict: every entry of pod '%s' is committed",
				       args->picks[a]);
			r = CK_EXIT_NO;
		}
		free(picked.match);
		*worst = r > *worst ? r : *worst;
	}
	return n;
}

static bool is_task(const struct task *tasks, size_t n, const struct ck_row *row)
{
	for (size_t i = 0; i < n; i++) {
		if (tasks[i].row == row)
			return true;
	}
	return false;
}

/* One line for the entry of task @i, and one for each container that goes with it and is no task
 * itself */
static void print_plan(FILE *out, const struct ck_look *look, const struct arguments *args,
		       const struct task *tasks, size_t n, size_t i)
{
	const struct task *task = &tasks[i];
	ck_print_line(out, "entry %" PRIu64 ", %s, %s", task->entry, task->who, task->text);
	for (size_t k = 0; !args->release && k < look->reader->rows_n; k++) {
		const struct ck_row *c = &look->reader->rows[k];
		char words[CK_ROW_WORDS];
		if (!goes_with(c, task->row) || is_task(tasks, n, c))
			continue;
		CK_AUTO_FREE char *who = ck_key_text(c->key);
		ck_print_line(out,
			      "entry %" PRIu64 ", %s, %s%.13s%s%s: %s go with its sandbox, "
			      "entry %" PRIu64,
			      c->id, who, c->result ? "id " : "", c->result ? c->result->id : "",
			      c->result ? ", " : "", ck_row_state(c, words), would(args),
			      task->entry);
	}
}

/* Say what will be destroyed, and for whom; ask on a terminal. A program that reads a tree finds it
 * there, and is told nothing else. */
static bool confirmed(const struct arguments *args, const struct ck_look *look,
		      const struct task *tasks, size_t n)
{
	char answer[16] = "";
	size_t count = 0;
	bool ask = !args->yes && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	for (size_t i = 0; (ask || ck_cli.output == CK_OUTPUT_TABLE) && i < n; i++) {
		if (!tasks[i].pending)
			continue;
		print_plan(stderr, look, args, tasks, n, i);
		count++;
	}
	if (!ask)
		return true;
	fprintf(stderr, "%s %s? [y/N] ", args->release ? "Forget" : "Evict",
		count == 1 ? "this entry" : "these entries");
	fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		fputc('\n', stderr);
	answer[strcspn(answer, "\r\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

static void write_requests(const struct arguments *args, struct task *tasks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct task *task = &tasks[i];
		struct ck_admin_request request = { .verb = args->release ? CK_ADMIN_RELEASE
									  : CK_ADMIN_EVICT,
						    .entry = task->entry };
		struct ck_error err = { 0 };
		if (task->pending &&
		    ck_admin_request_make(ck_cli.state_dir, &request, task->request, &err) < 0) {
			task_set(task, RESULT_UNTOLD, "%s%s", err.text, ck_look_root_hint(&err));
			task->pending = false;
		}
	}
}

/* ---- waiting --------------------------------------------------------------------------------- */

static size_t pending(const struct task *tasks, size_t n)
{
	size_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += tasks[i].pending;
	return sum;
}

/* Each pause is twice the one before: an owner mostly answers at once, a runtime may be slow. */
static bool pause_until(uint64_t deadline, uint64_t *pause)
{
	uint64_t now = ck_look_clock();
	if (now >= deadline)
		return false;
	uint64_t ns = *pause < deadline - now ? *pause : deadline - now;
	nanosleep(&(struct timespec){ .tv_sec = (time_t)(ns / CK_NS_PER_S),
				      .tv_nsec = (long)(ns % CK_NS_PER_S) },
		  NULL);
	*pause = *pause < POLL_MAX / 2 ? *pause * 2 : POLL_MAX;
	return true;
}

static void fetch_answers(struct task *tasks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct task *task = &tasks[i];
		struct ck_admin_answer answer;
		struct ck_error err = { 0 };
		int r = task->pending ? ck_admin_answer_fetch(ck_cli.state_dir, task->request,
							      &answer, &err)
				      : 0;
		if (r < 0)
			task_set(task, RESULT_UNTOLD, "%s", err.text);
		else if (r > 0)
			task_set(task, answer.done ? RESULT_ACCEPTED : RESULT_REFUSED, "%s",
				 answer.text);
		task->pending = task->pending && r == 0;
	}
}

static void wait_for_answers(struct task *tasks, size_t n, long owner)
{
	uint64_t deadline = ck_look_clock() + ANSWER_WAIT, pause = POLL_MIN;
	do
		fetch_answers(tasks, n);
	while (pending(tasks, n) && pause_until(deadline, &pause));
	for (size_t i = 0; i < n; i++) {
		if (tasks[i].pending)
			task_set(&tasks[i], RESULT_UNANSWERED,
				 "the owner, process %ld, does not answer; the request stays "
				 "queued",
				 owner);
		tasks[i].pending = false;
	}
}

/* A new entry does not get a row number of the history, so one without a row is gone. */
static void judge(struct task *task, const struct ck_look *look, bool release)
{
	const struct ck_row *row = NULL;
	for (size_t i = 0; i < look->reader->rows_n && !row; i++)
		row = look->reader->rows[i].id == task->entry ? &look->reader->rows[i] : NULL;
	task->pending = false;
	if (!row || row->state == CK_STATE_GONE)
		task_set(task, RESULT_GONE,
			 release ? "it is forgotten, and may still exist" : "it is gone");
	else if (ck_state_visible(row->state))
		task_set(task, RESULT_IN_USE,
			 "it is in use, so it was committed instead of destroyed");
	else if (row->tries)
		task_set(task, RESULT_NOT_GONE,
			 "not gone yet: in state %s after %" PRIu32
			 " failed attempt%s, the last with %s",
			 ck_state_name(row->state), row->tries, row->tries == 1 ? "" : "s",
			 ck_grpc_name(row->last_grpc));
	else
		task_set(task, RESULT_NOT_GONE, "not gone yet: in state %s",
			 ck_state_name(row->state));
	task->pending = task->result == RESULT_NOT_GONE;
}

static int wait_for_the_end(const struct arguments *args, struct task *tasks, size_t n)
{
	uint64_t deadline = ck_look_clock() + args->wait_ns, pause = POLL_MIN;
	bool again = true;
	for (size_t i = 0; i < n; i++)
		tasks[i].pending = tasks[i].result == RESULT_ACCEPTED;
	while (again && pending(tasks, n)) {
		struct ck_look look;
		int r = ck_look_take(&look, CK_READ_ROWS);
		if (r != CK_EXIT_YES)
			return r;
		for (size_t i = 0; i < n; i++) {
			if (tasks[i].pending)
				judge(&tasks[i], &look, args->release);
		}
		bool alive = look.reader->owner_alive;
		ck_look_fini(&look);
		if (!alive && pending(tasks, n)) {
			ck_print_error("the owner has ended; the eviction continues when the "
				       "database has an owner again");
			return CK_EXIT_TROUBLE;
		}
		again = pause_until(deadline, &pause);
	}
	return CK_EXIT_YES;
}

/* ---- telling --------------------------------------------------------------------------------- */

static struct json_object *tree(const struct task *task, const char *result)
{
	struct json_object *object = ck_tree_object();
	ck_tree_put_count(object, "entry", task->entry);
	ck_tree_put_text(object, "who", task->who);
	ck_tree_put_text(object, "id", task->row->result ? task->row->result->id : NULL);
	ck_tree_put_text(object, "result", result);
	ck_tree_put_text(object, "text", task->text);
	return object;
}

static int print(const struct ck_look *look, const struct arguments *args,
		 const struct task *tasks, size_t n)
{
	static const struct {
		const char *word;
		int status;
	} results[] = {
#define RESULT_ROW(name, word, status) { word, status },
		RESULTS(RESULT_ROW)
#undef RESULT_ROW
	};
	struct json_object *array = ck_cli.output == CK_OUTPUT_TABLE ? NULL : ck_tree_array();
	int worst = CK_EXIT_YES;
	for (size_t i = 0; i < n; i++) {
		const struct task *task = &tasks[i];
		int status = results[task->result].status;
		worst = status > worst ? status : worst;
		if (array)
			ck_tree_add(array, tree(task, results[task->result].word));
		else if (task->result == RESULT_PLANNED)
			print_plan(stdout, look, args, tasks, n, i);
		else if (status == CK_EXIT_YES)
			ck_print_line(stdout, "entry %" PRIu64 ", %s: %s", task->entry, task->who,
				      task->text);
		else
			ck_print_error("entry %" PRIu64 ", %s: %s", task->entry, task->who,
				       task->text);
	}
	if (array)
		ck_tree_print(stdout, ck_cli.output, array);
	return worst;
}

/* Return: what --wait adds to the exit status */
static int carry_out(const struct arguments *args, const struct ck_reader *reader,
		     struct task *tasks, size_t n)
{
	write_requests(args, tasks, n);
	if (reader->owner_alive) {
		wait_for_answers(tasks, n, reader->owner_pid);
		return args->wait ? wait_for_the_end(args, tasks, n) : CK_EXIT_YES;
	}
	size_t left = 0;
	for (size_t i = 0; i < n; i++) {
		if (!tasks[i].pending)
			continue;
		task_set(&tasks[i], RESULT_LEFT,
			 "the database has no owner now; the next owner will carry out the "
			 "request");
		left++;
	}
	return left && args->wait ? CK_EXIT_TROUBLE : CK_EXIT_YES;
}

static int evict(const struct arguments *args, const struct ck_look *look)
{
	int worst = CK_EXIT_YES, r = CK_EXIT_YES;
	struct task *tasks = ck_must(ck_alloc((look->reader->rows_n + 1) * sizeof(*tasks)));
	size_t n = make_tasks(look, args, tasks, &worst);
	if (!n || args->dry_run)
		ck_look_warn(look);
	/* an argument that cannot be right puts the others in doubt */
	bool sure = worst != CK_EXIT_TROUBLE;
	if (pending(tasks, n) && (!sure || !confirmed(args, look, tasks, n))) {
		ck_print_error("nothing was %s", args->release ? "released" : "evicted");
		worst = sure ? CK_EXIT_NO : worst;
	} else {
		if (pending(tasks, n))
			r = carry_out(args, look->reader, tasks, n);
		worst = r > worst ? r : worst;
		r = print(look, args, tasks, n);
		worst = r > worst ? r : worst;
	}
	for (size_t i = 0; i < n; i++) {
		free(tasks[i].who);
		free(tasks[i].text);
	}
	free(tasks);
	return worst;
}

int ck_cmd_evict(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "ENTRY|POD...",
		.doc = "Ask the owner of the database to give up entries and to have the runtime "
		       "destroy what exists of them. A pod stands for all its entries that are not "
		       "committed. Committed entries belong to the kubelet and are refused."
		       "\v"
		       "ENTRY is a row number, or at least 4 characters of a runtime id. POD is "
		       "NAMESPACE/NAME. On a terminal, crikeep asks. Before, it prints on standard "
		       "error what will be destroyed. With -o json or yaml it prints that only if "
		       "it asks.\n"
		       "\n"
		       "Exit status: 0 if every request was accepted, or was left for the next "
		       "owner because there is none now; with --wait, 0 if every entry is gone. 1 "
		       "if an entry was not found, refused or not gone in time, if the owner did "
		       "not answer, or if you said no. 2 if a request could not be written, or if "
		       "--wait was given and there is no owner.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep evict 12 --wait\n"
		       "  crikeep evict prod/web-7d9f --dry-run\n"
		       "  crikeep evict --release 12",
		.children = ck_cli_children,
	};
	struct arguments args = { .wait_ns = WAIT_DEFAULT };
	struct ck_look look;
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	int worst = ck_look_take(&look, CK_READ_ROWS);
	if (worst != CK_EXIT_YES)
		return worst;
	worst = evict(&args, &look);
	ck_look_fini(&look);
	return worst;
}
