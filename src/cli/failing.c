/* SPDX-License-Identifier: Apache-2.0 */
/* Creations that have failed, read from the history, the newest line first. What succeeded later
 * than it failed is known, too, but not told. */
#include <string.h>

#include "src/base/hash.h"
#include "src/base/mem.h"
#include "src/cli/failing.h"
#include "src/cli/output/print.h"

bool ck_what_is_problem(enum ck_what what)
{
	return what == CK_WHAT_FAILED || what == CK_WHAT_CONFLICT || what == CK_WHAT_REFUSED ||
	       what == CK_WHAT_PLUGIN_ABSENT || what == CK_WHAT_ANSWER_LOST ||
	       what == CK_WHAT_DUPLICATE || what == CK_WHAT_IN_USE;
}

/* -1: it failed; 1: it succeeded; 0: neither */
static int outcome(const struct ck_history_row *line)
{
	if (line->what == CK_WHAT_FAILED || line->what == CK_WHAT_REFUSED)
		return -1;
	return line->what == CK_WHAT_MOVED &&
	       (line->to == CK_STATE_KEPT || line->to == CK_STATE_COMMITTING ||
		line->to == CK_STATE_COMMITTED);
}

/* "container prod/web/app" of "container prod/web/app attempt 1" */
static char *without_attempt(const char *who)
{
	static const char attempt[] = " attempt ";
	const char *end = NULL;
	for (const char *at = who; (at = strstr(at, attempt)); at++)
		end = at;
	return ck_must(ck_strndup(who, end ? (size_t)(end - who) : strlen(who)));
}

struct known { /* a name whose last outcome is known */
	struct ck_failing failing;
	uint64_t entry; /* of the oldest failure: a plugin refuses what had succeeded before */
	bool over; /* older failures do not count */
	UT_hash_handle hh;
};

static void read_line(struct known **known, const struct ck_history_row *line, int how)
{
	CK_AUTO_FREE char *who = without_attempt(line->who);
	size_t len = strlen(who);
	struct known *it;
	HASH_FIND(hh, *known, who, len, it);
	if (!it) {
		it = ck_must(CK_NEW(struct known));
		it->failing = (struct ck_failing){ .who = CK_TAKE(who), .last = line };
		HASH_ADD_KEYPTR(hh, *known, it->failing.who, len, it);
		ck_must(it->hh.tbl);
	}
	if (how > 0 && it->entry == line->entry)
		return;
	it->over = it->over || how > 0;
	it->failing.n += !it->over;
	it->entry = line->entry;
}

static bool is_recent(const struct ck_look *look, const struct ck_history_row *line,
		      uint64_t within)
{
	return !within ||
	       (ck_look_this_boot(look, line->boot) && ck_look_ago(look, line->at) <= within);
}

void ck_failings_find(const struct ck_look *look, uint64_t within, struct ck_failings *ret)
{
	const struct ck_reader *reader = look->reader;
	struct known *known = NULL;
	for (size_t i = reader->history_n;
	     i-- > 0 && is_recent(look, &reader->history[i], within);) {
		const struct ck_history_row *line = &reader->history[i];
		int how = outcome(line);
		if (how)
			read_line(&known, line, how);
	}
	size_t n = HASH_COUNT(known);
	*ret = (struct ck_failings){ .all = ck_must(ck_alloc((n + 1) * sizeof(*ret->all))) };
	struct known *first = known;
	HASH_CLEAR(hh, known); /* the list stays */
	for (struct known *it = first, *next; it; it = next) { /* as they were added */
		next = it->hh.next;
		if (it->failing.n)
			ret->all[ret->n++] = it->failing;
		else
			free(it->failing.who);
		free(it);
	}
}

void ck_failings_fini(struct ck_failings *failings)
{
	for (size_t i = 0; i < failings->n; i++)
		free(failings->all[i].who);
	free(failings->all);
	*failings = (struct ck_failings){ 0 };
}

char *ck_failing_text(const struct ck_look *look, const struct ck_failing *failing)
{
	const struct ck_history_row *last = failing->last;
	const char *code = last->grpc ? ck_grpc_name(last->grpc) : ck_what_text(last->what);
	char span[CK_TEXT_SPAN], times[48] = "", ago[CK_TEXT_SPAN + 32] = "";
	if (failing->n > 1)
		snprintf(times, sizeof(times), " %zu times in a row", failing->n);
	if (ck_look_this_boot(look, last->boot))
		snprintf(ago, sizeof(ago), "%s%s ago", failing->n > 1 ? ", most recently " : " ",
			 ck_text_span(ck_look_ago(look, last->at), span));
	return ck_text_format("Creating %s failed%s%s: %s%s%s.", failing->who, times, ago,
			      code, last->detail ? ": " : "",
			      last->detail ? last->detail : "");
}
