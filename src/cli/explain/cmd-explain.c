/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep explain: what is going on with an entry, for somebody who was woken by it. One paragraph
 * names the entry, its state and its age, its requests, its last problem and the next step. A hint
 * follows if something can be done. The text must be readable without the rule book.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/entry-text.h"
#include "src/cli/explain/earlier.h"
#include "src/cli/explain/usual.h"
#include "src/cli/explain/whom.h"
#include "src/cli/failing.h"

#define EARLIER_SHOWN 3u /* the history has them all */

enum { OPT_RUNTIME = 0x200 };

struct arguments {
	char **picks;
	const char *endpoint; /* of the runtime; NULL: it is found */
};

static const struct argp_option options[] = {
	{ "runtime", OPT_RUNTIME, "URL", 0,
	  "The runtime's socket, unix:///PATH, if no owner is connected to it now", 0 },
	{ 0 },
};

struct story { /* a paragraph that is being written */
	const struct ck_look *look;
	const struct ck_row *row; /* NULL: it is about no entry */
	bool now_known; /* the row's times are of this boot */
	const struct ck_culprits *culprits; /* for whom it waits */
	FILE *out;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	switch (key) {
	case OPT_RUNTIME:
		args->endpoint = arg;
		return 0;
	case ARGP_KEY_ARGS:
		args->picks = state->argv + state->next;
		if (state->argc - state->next > 1)
			argp_error(state, "expected one entry or pod");
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no entry or pod given");
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

/* "for 6m12s", or "since before the last boot" */
static const char *since(const struct story *story, uint64_t at, char *buf)
{
	char span[CK_TEXT_SPAN];
	if (!story->now_known)
		return strcpy(buf, "since before the last boot");
	sprintf(buf, "for %s", ck_text_span(ck_look_ago(story->look, at), span));
	return buf;
}

/* "in 12s", "shortly" */
static const char *when(const struct story *story, char *buf)
{
	char span[CK_TEXT_SPAN];
	uint64_t due = story->row->due;
	if (!due || due <= story->look->now)
		return strcpy(buf, "shortly");
	sprintf(buf, "in %s", ck_text_span(due - story->look->now, span));
	return buf;
}

/* the newest line of the entry's history that is @wanted, or NULL */
static const struct ck_history_row *newest(const struct story *story,
					   bool (*wanted)(const struct story *story,
							  const struct ck_history_row *line))
{
	const struct ck_reader *reader = story->look->reader;
	for (size_t i = reader->history_n; i-- > 0;)
		if (reader->history[i].entry == story->row->id &&
		    wanted(story, &reader->history[i]))
			return &reader->history[i];
	return NULL;
}

static bool says_what_asked(const struct story *story, const struct ck_history_row *line)
{
	return line->what == CK_WHAT_MOVED && line->to == CK_STATE_EVICTING &&
	       line->reason == story->row->reason && line->detail;
}

/* Why it is or was evicted: "the request changed: config.envs[LOG_LEVEL]". The history knows what
 * asked for it. */
static void tell_reason(const struct story *story)
{
	const struct ck_history_row *line = newest(story, says_what_asked);
	if (story->row->reason)
		fprintf(story->out, " Reason: %s%s%s.", ck_reason_text(story->row->reason),
			line ? ": " : "", line ? line->detail : "");
}

/* ---- what it is ------------------------------------------------------------------------------ */

/* A request that comes later joins it all the same. */
static void tell_callers(const struct story *story)
{
	const struct ck_history_row *last;
	char span[CK_TEXT_SPAN];
	int n = story->look->reader->owner_alive
			? ck_whom_callers(story->look, story->row, &last)
			: -1;
	if (n > 0)
		fprintf(story->out, n == 1 ? " One caller waits for it now."
					   : " %d callers wait for it now.",
			n);
	else if (n == 0 && last && ck_look_this_boot(story->look, last->boot))
		fprintf(story->out,
			" No caller waits for it now: the last one timed out or went %s ago.",
			ck_text_span(ck_look_ago(story->look, last->at), span));
}

/* is the runtime creating it, as far as is known? */
static bool is_being_created(const struct ck_row *row)
{
	return row->state == CK_STATE_CREATING ||
	       (row->state == CK_STATE_EVICTING && row->phase == CK_PHASE_CREATION);
}

/* "7.2s", "1m12s" */
static const char *took(uint64_t ns, char *buf)
{
	if (ns >= 60 * CK_NS_PER_S)
		return ck_text_span(ns, buf);
	snprintf(buf, CK_TEXT_SPAN, "%.1fs", (double)ns / (double)CK_NS_PER_S);
	return buf;
}

static void tell_usual(const struct story *story)
{
	bool container = story->row->key->kind == CK_CONTAINER;
	char median[CK_TEXT_SPAN], longest[CK_TEXT_SPAN];
	struct ck_usual usual;
	ck_usual_find(story->look, story->row->key->kind, &usual);
	if (usual.n < CK_USUAL_LEAST)
		fprintf(story->out,
			" How long that usually takes on this node is not known: the history has "
			"%zu %s that %s created.",
			usual.n,
			container ? usual.n == 1 ? "container" : "containers"
			: usual.n == 1 ? "sandbox" : "sandboxes",
			usual.n == 1 ? "was" : "were");
	else
		fprintf(story->out,
			" Of the last %zu %s that were created on this node, half took at most %s, "
			"and the slowest %s.",
			usual.n, container ? "containers" : "sandboxes", took(usual.median, median),
			took(usual.longest, longest));
}

static void tell_creating(const struct story *story)
{
	const struct ck_row *row = story->row;
	char span[48];
	if (row->state == CK_STATE_UNKNOWN)
		fprintf(story->out, " It was being created, but the call to the runtime ended "
				    "without an answer.");
	else
		fprintf(story->out, " The runtime is creating it.");
	if (is_being_created(row))
		tell_usual(story);
	if (*row->stage)
		fprintf(story->out, " It has been in stage \"%s\" %s.", row->stage,
			since(story, row->staged, span));
	if (row->flags & CK_ENTRY_RESENT)
		fprintf(story->out, " The request was sent to the runtime a second time.");
	tell_callers(story);
}

static bool says_more_than_that_it_was_asked_for(const struct story *story,
						 const struct ck_history_row *line)
{
	(void)story;
	return line->what != CK_WHAT_MOVED && line->what != CK_WHAT_JOINED &&
	       line->what != CK_WHAT_CALLER_GONE;
}

static bool last_said(const struct story *story, enum ck_what what)
{
	const struct ck_history_row *line = newest(story, says_more_than_that_it_was_asked_for);
	return line && line->what == what;
}

/* it is kept because a required plugin was absent when it was last asked for */
static bool lacks_plugin(const struct story *story)
{
	return last_said(story, CK_WHAT_PLUGIN_ABSENT);
}

static bool is_restart(const struct story *story, const struct ck_history_row *line)
{
	(void)story;
	return line->what == CK_WHAT_RESTORED;
}

/* the key file was lost or replaced before the last start of the owner */
static bool other_key(const struct story *story)
{
	const struct ck_history_row *line = newest(story, is_restart);
	return line && line->detail;
}

static void tell_kept(const struct story *story)
{
	const struct ck_row *row = story->row;
	/* without names, there were no plugins when it was committed */
	bool told = row->flags & CK_ENTRY_TOLD && row->told && *row->told;
	fprintf(story->out, " It was created, but %s.",
		lacks_plugin(story) ? "a required plugin is not connected"
				    : "no caller was still waiting for it");
	fprintf(story->out, " %s, and %s.",
		story->look->reader->owner_alive
			? "It is hidden from the kubelet"
			: "As long as no owner is running, nothing hides it from the kubelet",
		told ? "plugins know about it" : "no plugin knows about it");
}

static void tell_start(const struct story *story)
{
	char span[48];
	switch (story->row->start) {
	case CK_START_NONE:
		break;
	case CK_START_CALLED:
		fprintf(story->out,
			" The runtime has been starting it %s; a request for another attempt "
			"waits for that.",
			since(story, story->row->staged, span));
		break;
	case CK_START_LOST:
		fprintf(story->out,
			" The call that starts it ended without an answer, so the runtime is asked "
			"whether it runs; a request for another attempt waits for that.");
		break;
	case CK_START_UNHEARD:
		fprintf(story->out,
			" It was started when nobody waited for that any more; as long as it runs "
			"and is the newest attempt, a request for another attempt is a conflict.");
		break;
	}
}

static bool is_hand_over(const struct story *story, const struct ck_history_row *line)
{
	(void)story;
	return line->what == CK_WHAT_HANDED_BACK || line->what == CK_WHAT_OFFERED;
}

static void tell_committed(const struct story *story)
{
	const struct ck_row *row = story->row;
	if (row->origin == CK_ORIGIN_RUNTIME) {
		fprintf(story->out, " It was found in the runtime and only recorded. It is never "
				    "handed back and never destroyed.");
		tell_start(story);
		return;
	}
	const struct ck_history_row *line = newest(story, is_hand_over);
	if (row->flags & CK_ENTRY_DELIVERED)
		fprintf(story->out, " It belongs to the kubelet, which knows its id.");
	else if (line && line->what == CK_WHAT_OFFERED)
		fprintf(story->out, " It belongs to the kubelet, which finds it in its lists: no "
				    "caller was still waiting for it when it was created.");
	else if (row->key->kind == CK_SANDBOX) /* that its answer arrived is not noted */
		fprintf(story->out, " It belongs to the kubelet, which was given its id, or finds "
				    "it in its lists.");
	else
		fprintf(story->out, " It belongs to the kubelet. It is not known whether the "
				    "answer was received.");
	tell_start(story);
	if (row->state == CK_STATE_ENDED)
		fprintf(story->out, " It has stopped since then and is never handed back again.");
}

static bool is_failed_destroy(const struct story *story, const struct ck_history_row *line)
{
	(void)story;
	return line->what == CK_WHAT_DESTROY_FAILED;
}

static void tell_evicting(const struct story *story)
{
	static const char *const phases[] = {
		[CK_PHASE_CREATION] = "The runtime is still creating it.",
		[CK_PHASE_HOOKS] = "A plugin is still being told about it.",
		[CK_PHASE_FIND] = "Its id is not known, so the runtime is asked for it by name.",
		[CK_PHASE_CHECK] = "The runtime is asked whether anything uses it.",
		[CK_PHASE_STOP] = "Plugins are being told that it stops.",
		[CK_PHASE_DESTROY] = "The runtime is asked to stop and remove it.",
		[CK_PHASE_REMOVE] = "It is destroyed, and plugins are being told.",
	};
	const struct ck_row *row = story->row;
	tell_reason(story);
	if (row->phase > CK_PHASE_NONE && row->phase <= CK_PHASE_MAX)
		fprintf(story->out, " %s", phases[row->phase]);
	if (is_being_created(row))
		tell_usual(story);
	if (row->tries) {
		/* in the runtime's words, if it said any */
		const struct ck_history_row *line = newest(story, is_failed_destroy);
		const char *why = line ? line->detail : NULL;
		fprintf(story->out, " %" PRIu32 " attempt%s failed, the last with %s%s%s.",
			row->tries, row->tries == 1 ? "" : "s", ck_grpc_name(row->last_grpc),
			why ? ": " : "", why ? why : "");
	}
}

static void tell_gone(const struct story *story)
{
	if (story->row->reason == CK_REASON_RELEASED) {
		fprintf(story->out, " It was released by an administrator, without confirmation "
				    "that it was destroyed, and may still exist.");
	} else {
		fprintf(story->out, story->row->reason == CK_REASON_ABSENT ? " It is gone."
									   : " It was destroyed.");
		tell_reason(story);
	}
	const char *absent = ck_absent_plugin(story->look, story->row->id);
	if (absent)
		fprintf(story->out, " It had not been handed over: %s.", absent);
	if (story->look->reader->owner_alive)
		fprintf(story->out, " Its id stays hidden until it is forgotten.");
}

static void tell_state(const struct story *story)
{
	const struct ck_row *row = story->row;
	char span[48];
	fprintf(story->out, "has been in state %s %s.", ck_state_name(row->state),
		since(story, row->state == CK_STATE_CREATING ? row->created : row->changed, span));
	switch (row->state) {
	case CK_STATE_CREATING:
	case CK_STATE_UNKNOWN:
		tell_creating(story);
		break;
	case CK_STATE_KEPT:
		tell_kept(story);
		break;
	case CK_STATE_COMMITTING:
		fprintf(story->out,
			" It was created, and plugins are being told before the kubelet gets it.");
		break;
	case CK_STATE_COMMITTED:
	case CK_STATE_ENDED:
		tell_committed(story);
		break;
	case CK_STATE_EVICTING:
		tell_evicting(story);
		break;
	case CK_STATE_GONE:
		tell_gone(story);
		break;
	}
}

/* ---- its requests and its last problem ------------------------------------------------------- */

static void tell_requests(const struct story *story)
{
	const struct ck_row *row = story->row;
	char span[CK_TEXT_SPAN];
	if (!row->requests)
		return;
	fprintf(story->out,
		row->requests == 1 ? " It was requested once"
				   : " It was requested %" PRIu32 " times",
		row->requests);
	if (story->now_known)
		fprintf(story->out, "%s %s ago", row->requests == 1 ? "," : ", most recently",
			ck_text_span(ck_look_ago(story->look, row->asked), span));
	fprintf(story->out, ".");
}

static bool is_problem(const struct story *story, const struct ck_history_row *line)
{
	(void)story;
	return ck_what_is_problem(line->what);
}

/* Failed attempts to destroy it are not looked for here: the row counts them. */
static void tell_problem(const struct story *story)
{
	const struct ck_history_row *line = newest(story, is_problem);
	char span[CK_TEXT_SPAN];
	if (!line)
		return;
	fprintf(story->out, " Last problem");
	if (ck_look_this_boot(story->look, line->boot))
		fprintf(story->out, ", %s ago",
			ck_text_span(ck_look_ago(story->look, line->at), span));
	fprintf(story->out, ": %s", ck_what_text(line->what));
	if (line->grpc)
		fprintf(story->out, ", %s", ck_grpc_name(line->grpc));
	if (line->detail)
		fprintf(story->out, ": %s", line->detail);
	fprintf(story->out, ".");
}

/* ---- which plugins know ---------------------------------------------------------------------- */

/* "10-net 20-audit" as "10-net, 20-audit" */
static void tell_names(const struct story *story, const char *names)
{
	for (; *names; names++) {
		if (*names == ' ')
			fputc(',', story->out);
		fputc(*names, story->out);
	}
}

/* what plugins are told; NULL: this is about something else */
static const char *told_what(enum ck_what what)
{
	return what == CK_WHAT_TOLD          ? "about it"
	       : what == CK_WHAT_STOP_TOLD   ? "that it stops"
	       : what == CK_WHAT_REMOVE_TOLD ? "that it is gone"
					     : NULL;
}

static bool is_told(const struct story *story, const struct ck_history_row *line)
{
	(void)story;
	return told_what(line->what);
}

/* What plugins were told last. Before they are told anything: who will be told. */
static void tell_plugins(const struct story *story)
{
	const struct ck_history_row *line = newest(story, is_told);
	const char *told = story->row->told;
	char span[CK_TEXT_SPAN];
	if (!line && (!(story->row->flags & CK_ENTRY_TOLD) || !told || !*told))
		return;
	if (!line) {
		fprintf(story->out, " Plugins chosen to be told about it: ");
		tell_names(story, told);
		fprintf(story->out, ".");
		return;
	}
	fprintf(story->out, " Plugins were told %s", told_what(line->what));
	if (ck_look_this_boot(story->look, line->boot))
		fprintf(story->out, " %s ago",
			ck_text_span(ck_look_ago(story->look, line->at), span));
	if (line->detail) {
		fprintf(story->out, ": ");
		tell_names(story, line->detail);
	}
	fprintf(story->out, ".");
}

/* ---- what happens next ----------------------------------------------------------------------- */

static void tell_next_without_owner(const struct story *story)
{
	static const char *const plans[] = {
		[CK_STATE_UNKNOWN] = "Then the runtime is asked whether it exists.",
		[CK_STATE_CREATING] = "Then the runtime is asked whether it exists.",
		[CK_STATE_KEPT] = "Then it is hidden and kept as before, unless the kubelet uses "
				  "it by then.",
		[CK_STATE_COMMITTING] = "Then it is kept for the next identical request.",
		[CK_STATE_EVICTING] = "Then its eviction continues, unless the kubelet uses it by "
				      "then.",
		[CK_STATE_GONE] = "Then it is forgotten.",
	};
	fprintf(story->out, " Next: nothing happens until the database has an owner again. %s",
		plans[story->row->state]);
}

static void tell_next_of_kept(const struct story *story, const char *at)
{
	if (other_key(story)) {
		fprintf(story->out, " Next: it was " CK_OTHER_KEY ", so no request can be "
				    "compared with its request; the next one evicts it.");
	} else if (last_said(story, CK_WHAT_OFFER_WAITS)) {
		fprintf(story->out, " Next: it is listed for the kubelet soon: many became ready "
				    "at once, and are listed one after another.");
	} else {
		fprintf(story->out, " Next: an identical request gets it%s;",
			lacks_plugin(story) ? " once that plugin is connected" : "");
		if (story->row->due)
			fprintf(story->out, " if none comes, it is evicted %s.", at);
		else
			fprintf(story->out, " one is waiting now, so it does not expire.");
	}
}

static void tell_next(const struct story *story)
{
	const struct ck_row *row = story->row;
	char at[48];
	when(story, at);
	switch (row->state) {
	case CK_STATE_CREATING:
		fprintf(story->out, " Next: when it is ready, a waiting request gets it; "
				    "if none is waiting, it is %s.",
			row->key->kind == CK_SANDBOX
				? "listed for the kubelet, or kept with hand_back: repeat"
				: "kept");
		if (row->due)
			fprintf(story->out,
				" Without an answer from the runtime, its outcome counts as "
				"unknown %s.",
				at);
		break;
	case CK_STATE_UNKNOWN:
		fprintf(story->out,
			" Next: the runtime is asked again %s; if the runtime has it, it is "
			"treated as just created.",
			at);
		break;
	case CK_STATE_KEPT:
		tell_next_of_kept(story, at);
		break;
	case CK_STATE_COMMITTING:
		fprintf(story->out, " Next: when all plugins have agreed, a waiting request gets "
				    "it; if one refuses, it is evicted.");
		break;
	case CK_STATE_EVICTING:
		if (row->phase < CK_PHASE_CHECK)
			fprintf(story->out, " Next: it is destroyed as soon as that has ended.");
		else if (row->tries && row->due)
			fprintf(story->out,
				" Next: try %" PRIu64
				" %s, and so on until the runtime confirms that it is gone.",
				(uint64_t)row->tries + 1, at);
		else
			fprintf(story->out, " Next: a new request for it waits until it is gone, "
					    "and then creates it anew.");
		break;
	case CK_STATE_GONE:
		fprintf(story->out, " Next: it is forgotten %s.", at);
		break;
	default:
		break;
	}
}

/* ---- what to do ------------------------------------------------------------------------------ */

/* of the first that has one */
static void tell_culprit_hint(const struct story *story)
{
	char *hint = NULL;
	for (size_t i = 0; i < story->culprits->n && !hint; i++)
		hint = ck_culprit_hint(&story->culprits->all[i]);
	fprintf(story->out, "%s", ck_or_empty(hint));
	free(hint);
}

/* crikeepd hides it, so its own socket would say that it is gone. */
static void tell_destroy_hint(const struct story *story)
{
	const struct ck_row *row = story->row;
	fprintf(story->out,
		"find in the runtime's log why it cannot be removed, and correct that; the tries "
		"go on.");
	if (!row->result)
		return;
	fprintf(story->out,
		" To learn whether it still exists, ask the runtime at its own socket, because "
		"crikeepd hides it: 'crictl -r unix://SOCKET %s %s'. Only if it is not found "
		"there, 'crikeep evict --release %" PRIu64 "' forgets it. If it exists after that, "
		"the kubelet sees it, and nothing may ever remove it.",
		row->key->kind == CK_SANDBOX ? "inspectp" : "inspect", row->result->id, row->id);
}

static void tell_hint(const struct story *story)
{
	const struct ck_row *row = story->row;
	uint64_t age = story->now_known ? ck_look_ago(story->look, row->created) : 0;
	if (!ck_state_visible(row->state) && !story->look->reader->owner_alive)
		fprintf(story->out,
			"start the database's owner: crikeepd, or a runtime with libcrikeep.");
	else if (story->look->reader->owner_degraded)
		fprintf(story->out,
			"the owner cannot write the database, so this may be out of date. The "
			"usual cause is a full disk; the owner's log names it.");
	else if (story->culprits->n)
		tell_culprit_hint(story);
	else if (row->state == CK_STATE_UNKNOWN)
		fprintf(story->out, "check that the runtime is running and answers.");
	else if (row->state == CK_STATE_CREATING && age >= CK_SLOW_CREATION &&
		 strstr(row->stage, "network"))
		fprintf(story->out, "check the CNI plugin: this stage waits for it.");
	else if (row->state == CK_STATE_CREATING && age >= CK_SLOW_CREATION)
		fprintf(story->out, "check what the runtime is waiting for: network plugin, image "
				    "storage or disk.");
	else if (row->state == CK_STATE_KEPT && lacks_plugin(story))
		fprintf(story->out,
			"start that plugin, for which every pod of this node waits; or take it out "
			"of nri.policies in crikeep.yaml. 'crikeep plugins' shows which are "
			"connected.");
	else if (row->state == CK_STATE_EVICTING && row->tries >= CK_STUBBORN)
		tell_destroy_hint(story);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static char *tell(const struct ck_look *look, const struct ck_row *row,
		  const struct ck_culprits *culprits, void (*part)(const struct story *story))
{
	char *text = NULL;
	size_t len;
	struct story story = { look, row, row && ck_look_this_boot(look, row->boot), culprits,
			       ck_must(open_memstream(&text, &len)) };
	part(&story);
	if (fclose(story.out))
		ck_text_nomem();
	return text;
}

static void tell_all(const struct story *story)
{
	const struct ck_row *row = story->row;
	const struct ck_key *key = row->key;
	bool container = key->kind == CK_CONTAINER;
	fprintf(story->out, "Entry %" PRIu64 ": %s %s/%s%s%s, attempt %" PRIu32, row->id,
		ck_kind_word(key->kind), key->pod_namespace, key->pod_name, container ? "/" : "",
		key->container, key->attempt);
	if (row->result)
		fprintf(story->out, ", id %.13s", row->result->id);
	fprintf(story->out, ", ");
	tell_state(story);
	tell_plugins(story);
	tell_requests(story);
	tell_problem(story);
	if (ck_state_visible(row->state))
		return;
	if (!story->now_known && row->state != CK_STATE_GONE)
		fprintf(story->out, " Next: it is evicted when an owner opens the database, "
				    "because no sandbox or container survives a reboot.");
	else if (story->look->reader->owner_alive)
		tell_next(story);
	else
		tell_next_without_owner(story);
}

static void tell_owner(const struct story *story)
{
	const struct ck_reader *reader = story->look->reader;
	struct ck_process process;
	if (ck_owner_frozen(reader, &process))
		fprintf(story->out,
			"The owner of the database, process %ld (%s), is stopped by a signal or a "
			"debugger and answers nobody.",
			reader->owner_pid, process.name);
	else if (reader->owner_alive && reader->owner_pid)
		fprintf(story->out, "The owner of the database, process %ld, is running.",
			reader->owner_pid);
	else if (reader->owner_alive)
		fprintf(story->out, "The owner of the database is running.");
	else if (reader->owner_pid)
		fprintf(story->out, "The database has no owner now. The last one was process %ld.",
			reader->owner_pid);
	else
		fprintf(story->out, "The database has no owner now.");
	if (reader->owner_degraded)
		fprintf(story->out, " It cannot write the database now, and goes on in memory: "
				    "what is told here is the state of its last write.");
}

static void tell_whom(const struct ck_look *look, const struct ck_culprits *culprits, size_t width)
{
	for (size_t i = 0; i < culprits->n; i++) {
		CK_AUTO_FREE char *text = ck_culprit_text(&culprits->all[i], look->now);
		CK_AUTO_FREE char *whole = ck_text_format("Waits for: %s", text);
		ck_print_folded(stdout, whole, 2, width);
	}
	if (*culprits->unknown) {
		CK_AUTO_FREE char *whole = ck_text_format("Waits for: %s", culprits->unknown);
		ck_print_folded(stdout, whole, 2, width);
	}
}

static void explain_to_people(const struct ck_look *look, const struct ck_row *row,
			      const struct ck_culprits *culprits)
{
	size_t width = ck_print_prose_width();
	CK_AUTO_FREE char *text = tell(look, row, culprits, tell_all),
			  *hint = tell(look, row, culprits, tell_hint);
	ck_print_folded(stdout, text, 0, width);
	tell_whom(look, culprits, width);
	if (*hint) {
		CK_AUTO_FREE char *advice = ck_text_format("Hint: %s", hint);
		ck_print_folded(stdout, advice, 2, width);
	}
	putchar('\n');
}

static void put_text(struct json_object *object, const struct ck_look *look, const char *text,
		     const char *hint)
{
	struct ck_process owner;
	ck_tree_put_text(object, "text", text);
	ck_tree_put_text(object, "hint", *hint ? hint : NULL);
	ck_tree_put_bool(object, "owner_alive", look->reader->owner_alive);
	ck_tree_put_known(object, "owner_pid", look->reader->owner_pid);
	ck_tree_put_bool(object, "owner_frozen", ck_owner_frozen(look->reader, &owner));
	ck_tree_put_bool(object, "owner_degraded", look->reader->owner_degraded);
}

static struct json_object *usual_tree(const struct ck_look *look, const struct ck_row *row)
{
	struct json_object *object = ck_tree_object();
	struct ck_usual usual;
	ck_usual_find(look, row->key->kind, &usual);
	bool known = usual.n >= CK_USUAL_LEAST;
	ck_tree_put_count(object, "creations", usual.n);
	ck_tree_put(object, "median_seconds",
		    known ? ck_tree_seconds((int64_t)usual.median) : NULL);
	ck_tree_put(object, "longest_seconds",
		    known ? ck_tree_seconds((int64_t)usual.longest) : NULL);
	return object;
}

static struct json_object *explain_to_machines(const struct ck_look *look, const struct ck_row *row,
					       const struct ck_culprits *culprits)
{
	CK_AUTO_FREE char *text = tell(look, row, culprits, tell_all),
			  *hint = tell(look, row, culprits, tell_hint);
	struct json_object *object = ck_row_tree(look, row, false), *array = ck_tree_array();
	put_text(object, look, text, hint);
	for (size_t i = 0; i < culprits->n; i++)
		ck_tree_add(array, ck_culprit_tree(&culprits->all[i], look->now));
	ck_tree_put(object, "waits_for", array);
	ck_tree_put_text(object, "waits_for_unknown",
			 *culprits->unknown ? culprits->unknown : NULL);
	ck_tree_put(object, "usual", is_being_created(row) ? usual_tree(look, row) : NULL);
	return object;
}

/* No row is left of it, so it has no more than the history knows. */
static struct json_object *failing_to_machines(const struct ck_look *look,
					       const struct ck_failing *failing)
{
	CK_AUTO_FREE char *text = ck_failing_text(look, failing);
	struct json_object *object = ck_tree_object();
	ck_tree_put_count(object, "entry", failing->last->entry);
	ck_tree_put_text(object, "kind", ck_kind_word(failing->last->kind));
	ck_tree_put_text(object, "who", failing->who);
	ck_tree_put_text(object, "state", NULL);
	ck_tree_put_count(object, "failures", failing->n);
	ck_tree_put_text(object, "code",
			 failing->last->grpc ? ck_grpc_name(failing->last->grpc) : NULL);
	ck_tree_put_text(object, "detail", failing->last->detail);
	put_text(object, look, text, "");
	return object;
}

/* the rows that @match means, one after the other */
static void explain_rows(const struct ck_look *look, const bool *match, const char *endpoint,
			 struct json_object *array)
{
	for (size_t i = 0; i < look->reader->rows_n; i++) {
		const struct ck_row *row = &look->reader->rows[i];
		struct ck_culprits culprits;
		if (!match[i])
			continue;
		ck_whom_find(look, row, endpoint, &culprits);
		if (array)
			ck_tree_add(array, explain_to_machines(look, row, &culprits));
		else
			explain_to_people(look, row, &culprits);
	}
}

/* @match: of these */
static void tell_earlier(const struct ck_look *look, const struct ck_earlier *earlier,
			 const bool *match)
{
	size_t n = 0;
	for (size_t i = 0; i < earlier->n && n < EARLIER_SHOWN; i++) {
		if (!match[i])
			continue;
		CK_AUTO_FREE char *text = ck_earlier_text(look, earlier->all[i]);
		ck_print_folded(stdout, text, 0, ck_print_prose_width());
		putchar('\n');
		n++;
	}
}

/* @match: of rows, then of failures, then of earlier entries */
static void tell_people(const struct ck_look *look, const bool *match, const char *endpoint,
			const struct ck_failings *failings, const struct ck_earlier *earlier)
{
	size_t rows_n = look->reader->rows_n;
	explain_rows(look, match, endpoint, NULL);
	for (size_t i = 0; i < failings->n; i++) {
		if (!match[rows_n + i])
			continue;
		CK_AUTO_FREE char *text = ck_failing_text(look, &failings->all[i]);
		ck_print_folded(stdout, text, 0, ck_print_prose_width());
		putchar('\n');
	}
	tell_earlier(look, earlier, match + rows_n + failings->n);
	CK_AUTO_FREE char *owner = tell(look, NULL, NULL, tell_owner);
	ck_print_folded(stdout, owner, 0, ck_print_prose_width());
}

static void tell_machines(const struct ck_look *look, const bool *match, const char *endpoint,
			  const struct ck_failings *failings)
{
	struct json_object *array = ck_tree_array();
	explain_rows(look, match, endpoint, array);
	for (size_t i = 0; i < failings->n; i++)
		if (match[look->reader->rows_n + i])
			ck_tree_add(array, failing_to_machines(look, &failings->all[i]));
	ck_tree_print(stdout, ck_cli.output, array);
}

/* The rows, the failures and the earlier entries that @arg means. A pod of which nothing could be
 * created yet, or nothing is left, has no row. */
static int pick(const struct ck_look *look, const char *arg, const struct ck_failings *failings,
		const struct ck_earlier *earlier, struct ck_picked *picked)
{
	size_t n = failings->n + earlier->n;
	char **pods = ck_must(ck_alloc((n + 1) * sizeof(*pods)));
	for (size_t i = 0; i < n; i++)
		pods[i] = ck_history_pod(i < failings->n ? failings->all[i].last
							 : earlier->all[i - failings->n]);
	int r = ck_look_pick_among(look, pods, n, arg, CK_PICK_TO_READ, picked);
	for (size_t i = 0; i < n; i++)
		free(pods[i]);
	free(pods);
	return r;
}

/* Programs read what is gone from the history. */
static int explain(const struct arguments *args, const struct ck_look *look)
{
	struct ck_failings failings;
	struct ck_earlier earlier = { 0 };
	struct ck_picked picked = { 0 };
	bool people = ck_cli.output == CK_OUTPUT_TABLE;
	ck_failings_find(look, 0, &failings);
	if (people)
		ck_earlier_find(look, &earlier);
	int r = pick(look, args->picks[0], &failings, &earlier, &picked);
	if (r != CK_EXIT_YES)
		ck_look_warn(look);
	else
		ck_cli_page();
	if (r == CK_EXIT_YES && people)
		tell_people(look, picked.match, args->endpoint, &failings, &earlier);
	else if (r == CK_EXIT_YES)
		tell_machines(look, picked.match, args->endpoint, &failings);
	ck_failings_fini(&failings);
	ck_earlier_fini(&earlier);
	free(picked.match);
	return r;
}

int ck_cmd_explain(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "ENTRY|POD",
		.doc = "Explain in plain words what is going on with an entry, or with every entry "
		       "of a pod: its state and age, its requests, its last problem, what happens "
		       "next and when, and what could help. For a pod, also creations that have "
		       "failed and not succeeded since, and entries that were evicted. As root, "
		       "also which process the runtime waits for: a CNI plugin, runc, crun, "
		       "conmon, a shim, an NRI plugin."
		       "\v"
		       "Exit status: 0 if there is such an entry, 1 if not.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep explain web-7d9f\n"
		       "  crikeep explain prod/web-7d9f\n"
		       "  crikeep explain 12",
		.children = ck_cli_children,
	};
	struct arguments args = { 0 };
	struct ck_look look;
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	int r = ck_look_take(&look, CK_READ_ROWS | CK_READ_HISTORY);
	if (r == CK_EXIT_YES)
		r = explain(&args, &look);
	ck_look_fini(&look);
	return r;
}
