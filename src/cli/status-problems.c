/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong, and what to do next. Only what is certain is a problem: a slow creation is one
 * only when most would have ended long ago. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/status-file.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/entry-text.h"
#include "src/cli/failing.h"
#include "src/cli/status.h"

#define FAILING_LEAST 2u /* once may be chance */
/* a kubelet repeats within 5 minutes; of a pod that is deleted nobody asks again */
#define FAILING_RECENT (600 * CK_NS_PER_S)

static void CK_PRINTF(5, 6) add(struct ck_problems *problems, const char *what, uint64_t entry,
				char *hint, const char *fmt, ...)
{
	va_list ap;
	problems->all =
		ck_must(ck_realloc(problems->all, (problems->n + 1) * sizeof(*problems->all)));
	va_start(ap, fmt);
	problems->all[problems->n++] =
		(struct ck_problem){ what, entry, ck_text_vformat(fmt, ap), hint };
	va_end(ap);
}

#define HINT(...) ck_text_format(__VA_ARGS__)

void ck_problems_fini(struct ck_problems *problems)
{
	for (size_t i = 0; i < problems->n; i++) {
		free(problems->all[i].text);
		free(problems->all[i].hint);
	}
	free(problems->all);
	*problems = (struct ck_problems){ 0 };
}

/* ---- the owner and the runtime --------------------------------------------------------------- */

/* "crikeepd (process 812)", "process 812" */
static const char *owner_name(const struct ck_health *health, char buf[64])
{
	if (health->seen)
		snprintf(buf, 64, "%s (process %ld)", health->process.name, health->pid);
	else if (health->pid)
		snprintf(buf, 64, "process %ld", health->pid);
	else
		snprintf(buf, 64, "the owner");
	return buf;
}

static void judge_owner(const struct ck_health *health, struct ck_problems *problems)
{
	char name[64];
	owner_name(health, name);
	switch (health->owner) {
	case CK_OWNER_RUNNING:
		break;
	case CK_OWNER_STOPPED:
		add(problems, "owner_stopped", 0,
		    HINT("'systemctl start crikeepd', or start the runtime that has libcrikeep. "
			 "'journalctl -u crikeepd' tells why it ended, and 'crikeep doctor' what "
			 "keeps it from starting."),
		    "No owner is running (crikeepd, or a runtime with libcrikeep): no late result "
		    "is kept or handed over, and nothing is hidden from the kubelet.");
		break;
	case CK_OWNER_FROZEN:
		add(problems, "owner_frozen", 0,
		    HINT("'kill -CONT %ld' lets it go on.", health->pid),
		    "The owner, %s, is stopped by a signal or a debugger and answers nobody.",
		    name);
		break;
	case CK_OWNER_SILENT:
		add(problems, "owner_silent", 0,
		    HINT("See its log and 'ps -o stat,wchan,time -p %ld': in state D it waits for "
			 "a disk. A restart loses nothing that is kept.",
			 health->pid),
		    "The owner, %s, does not tell its metrics at %s: %s.", name,
		    health->metrics_path, health->metrics_why);
		break;
	}
}

static void judge_runtime(const struct ck_health *health, struct ck_problems *problems)
{
	const char *why = health->why;
	switch (health->runtime) {
	case CK_RUNTIME_UNKNOWN:
	case CK_RUNTIME_ANSWERS:
		break;
	case CK_RUNTIME_SILENT:
		add(problems, "runtime_silent", 0,
		    HINT("'crikeep doctor' tells whether its process is stopped, 'crikeep explain "
			 "POD' what a creation waits for. See also the runtime's log."),
		    health->metrics ? "The runtime is connected, but does not answer: Version got "
				      "no answer within %u seconds."
				    : "The runtime or crikeepd does not answer: Version got no "
				      "answer within %u seconds.",
		    (unsigned)(CK_VERSION_WAIT / CK_NS_PER_S));
		break;
	case CK_RUNTIME_FAILS:
		add(problems, "runtime_failing", 0, HINT("See the runtime's log."),
		    "The runtime cannot be used: Version fails with %s", why);
		break;
	case CK_RUNTIME_DISCONNECTED:
		add(problems, "runtime_disconnected", 0,
		    HINT("Start the runtime; crikeepd connects by itself. 'journalctl -u crikeepd' "
			 "names the socket and the cause."),
		    "crikeepd has %s%s%s",
		    health->connects ? "lost the connection to the runtime"
				     : "not reached the runtime since it started",
		    *why ? ": " : ".", why);
		break;
	case CK_RUNTIME_UNTOLD:
		add(problems, "runtime_untold", 0,
		    HINT("Look in the runtime's log. crikeepd asks again and again, and serves as "
			 "soon as it is told; its log names the last error."),
		    "crikeepd does not serve anybody yet: the runtime has not told it what exists "
		    "since it started.");
		break;
	case CK_RUNTIME_UNREACHABLE:
		add(problems, "socket_unreachable", 0,
		    HINT("If crikeepd is configured to listen elsewhere, name that with "
			 "--endpoint. Else restart crikeepd."),
		    "Nobody can connect to crikeepd: %s", why);
		break;
	}
}

/* ---- the state directory --------------------------------------------------------------------- */

static void judge_database(const struct ck_health *health, struct ck_problems *problems)
{
	char space[CK_TEXT_SPAN];
	ck_text_size(health->space < 0 ? 0 : (uint64_t)health->space, space);
	if (health->degraded)
		add(problems, "database_not_written", 0,
		    HINT("Make space in %s, and do not restart the owner before that. It writes as "
			 "soon as it can. Its log names the cause.",
			 ck_cli.state_dir),
		    "The owner is degraded: it cannot write the database and goes on in memory (%s "
		    "are free). Pods start as usual. If it ends now, what it has learnt since then "
		    "is lost.",
		    space);
	else if (health->space >= 0 && health->space < (int64_t)CK_WAL_LIMIT)
		add(problems, "space_low", 0, HINT("Make space in %s.", ck_cli.state_dir),
		    "Only %s are free for the database; its log alone may need %u MiB.", space,
		    CK_WAL_LIMIT >> 20);
	if (health->read < 0 &&
	    (health->read != -CK_ENOTFOUND || health->owner != CK_OWNER_STOPPED))
		add(problems,
		    health->read == -CK_ENOTFOUND ? "database_missing" : "database_unreadable", 0,
		    health->read_err.sys == ENOTDIR
			    ? HINT("'crikeep doctor' tells how that directory must be.")
			    : HINT("'crikeep check' tells what is wrong. The owner sets a damaged "
				   "database aside, and continues with a new one."),
		    "The database cannot be read: %s", health->read_err.text);
	if (health->wal_pid)
		add(problems, "log_held", 0,
		    HINT("End process %ld, or let it go on.", health->wal_pid),
		    "Process %ld reads the database and makes its write-ahead log grow.",
		    health->wal_pid);
}

static bool made_under_other_key(const struct ck_look *look, const struct ck_row *row)
{
	for (size_t i = look->reader->history_n; i-- > 0;) {
		const struct ck_history_row *line = &look->reader->history[i];
		if (line->entry == row->id && line->what == CK_WHAT_RESTORED)
			return line->detail;
	}
	return false;
}

/* Without a database there need not be a key. */
static void judge_key(const struct ck_health *health, struct ck_problems *problems)
{
	const struct ck_look *look = &health->look;
	size_t other = 0;
	if (health->read == 0 && health->key != CK_KEY_BYTES)
		add(problems, health->key < 0 ? "key_missing" : "key_damaged", 0,
		    HINT("Nothing needs to be done: the next owner makes a new key. Do not restart "
			 "the owner while results are kept."),
		    health->key < 0 ? "The key of all digests, %s/key, is missing: the next owner "
				      "cannot hand over what is kept now."
				    : "The key of all digests, %s/key, is damaged: the next owner "
				      "cannot hand over what is kept now.",
		    ck_cli.state_dir);
	for (size_t i = 0; look->reader && i < look->reader->rows_n; i++)
		other += look->reader->rows[i].state == CK_STATE_KEPT &&
			 made_under_other_key(look, &look->reader->rows[i]);
	if (other)
		add(problems, "key_replaced", 0,
		    HINT("Nothing needs to be done: the next request for each evicts it, or it "
			 "expires."),
		    "The key of all digests was replaced: %zu kept result%s cannot be compared "
		    "with any request, and will not be handed over.",
		    other, other == 1 ? "" : "s");
}

/* ---- plugins --------------------------------------------------------------------------------- */

static void judge_plugin(const struct ck_health *health, const struct ck_nri_plugin *plugin,
			 struct ck_problems *problems)
{
	char span[CK_TEXT_SPAN];
	bool said = *plugin->last_error;
	if (!strcmp(plugin->state, CK_STATUS_ABSENT))
		add(problems, "plugin_absent", 0,
		    HINT("Start plugin %s; if it is not needed any more, take it out of "
			 "nri.policies in crikeep.yaml.",
			 plugin->name),
		    "Plugin %s is required and not connected: no pod and no container is handed "
		    "over without it.",
		    plugin->name);
	else if (!strcmp(plugin->state, CK_STATUS_GONE))
		add(problems, "plugin_gone", 0, HINT("Look in the log of plugin %s.", plugin->name),
		    "Plugin %s was disconnected with an error and is not back%s%s", plugin->name,
		    said ? ": " : ".", plugin->last_error);
	else if (!strcmp(plugin->state, "overdue"))
		add(problems, "plugin_overdue", 0,
		    HINT("Look in the log of plugin %s, process %d.", plugin->name, plugin->pid),
		    "Plugin %s has owed an answer for %s, and %u events wait for it%s%s",
		    plugin->name,
		    ck_text_span(ck_look_ago(&health->look, plugin->overdue_since), span),
		    plugin->queued, said ? ". Its last error: " : ".", plugin->last_error);
	else if (plugin->adjusting)
		add(problems, "plugin_adjusts", 0, HINT("Set nri.adjust to before-create."),
		    "Plugin %s wants to change containers, so creates fail.", plugin->name);
}

/* ---- entries --------------------------------------------------------------------------------- */

static const char *last_destroy_error(const struct ck_look *look, const struct ck_row *row)
{
	for (size_t i = look->reader->history_n; i-- > 0;) {
		const struct ck_history_row *line = &look->reader->history[i];
		if (line->entry == row->id && line->what == CK_WHAT_DESTROY_FAILED)
			return line->detail;
	}
	return NULL;
}

static void judge_row(const struct ck_health *health, const struct ck_row *row,
		      struct ck_problems *problems)
{
	const struct ck_look *look = &health->look;
	bool dated = ck_look_this_boot(look, row->boot);
	bool owned = health->owner != CK_OWNER_STOPPED; /* else nothing is under way */
	uint64_t age = dated && owned ? ck_look_ago(look, row->created) : 0;
	char span[CK_TEXT_SPAN];
	CK_AUTO_FREE char *who = ck_key_text(row->key);
	if (!dated && !owned)
		return; /* nothing survives a reboot */
	if (row->state == CK_STATE_CREATING && age >= CK_SLOW_CREATION) {
		add(problems, "creation_slow", row->id,
		    HINT("'crikeep explain %" PRIu64 "'", row->id),
		    "The runtime has been creating %s for %s%s%s.", who, ck_text_span(age, span),
		    *row->stage ? ", in stage: " : "", row->stage);
	} else if (row->state == CK_STATE_UNKNOWN) {
		add(problems, "outcome_unknown", row->id,
		    HINT("'crikeep explain %" PRIu64 "'", row->id),
		    "Nobody knows whether %s was created: the call ended without an answer.", who);
	} else if (row->state == CK_STATE_EVICTING && row->tries >= CK_STUBBORN) {
		const char *said = last_destroy_error(look, row);
		add(problems, "destroy_failing", row->id,
		    HINT("See the runtime's log; 'crikeep explain %" PRIu64 "' tells more.",
			 row->id),
		    "The runtime has failed %" PRIu32 " times to destroy %s: %s%s%s", row->tries,
		    who, ck_grpc_name(row->last_grpc), said ? ": " : "", said ? said : "");
	}
}

static void judge_failures(const struct ck_health *health, struct ck_problems *problems)
{
	const struct ck_look *look = &health->look;
	struct ck_failings failings;
	ck_failings_find(look, FAILING_RECENT, &failings);
	for (size_t i = 0; i < failings.n; i++) {
		const struct ck_failing *failing = &failings.all[i];
		if (failing->n < FAILING_LEAST)
			continue;
		CK_AUTO_FREE char *text = ck_failing_text(look, failing),
				  *pod = ck_history_pod(failing->last);
		add(problems, "creation_failing", 0, HINT("'crikeep explain %s'", pod), "%s", text);
	}
	ck_failings_fini(&failings);
}

void ck_problems_find(const struct ck_health *health, struct ck_problems *ret)
{
	const struct ck_reader *reader = health->look.reader;
	*ret = (struct ck_problems){ 0 };
	judge_owner(health, ret);
	judge_runtime(health, ret);
	if (health->shadow)
		return; /* the rest is about what is kept */
	judge_database(health, ret);
	judge_key(health, ret);
	for (size_t i = 0; health->plugins && i < health->plugins->n; i++)
		judge_plugin(health, &health->plugins->plugins[i], ret);
	for (size_t i = 0; reader && i < reader->rows_n; i++)
		judge_row(health, &reader->rows[i], ret);
	if (reader)
		judge_failures(health, ret);
}
