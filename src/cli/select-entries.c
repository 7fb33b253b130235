/* SPDX-License-Identifier: Apache-2.0 */
/* Read a copy of the database, and find the entries that an argument means. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/duration.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/select-entries.h"

#define CANDIDATES_SHOWN 8u

uint64_t ck_look_clock(void)
{
	return ck_clock_ns(CLOCK_BOOTTIME);
}

static void read_boot_id(char *boot, size_t size)
{
	CK_AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, boot, size - 1);
	boot[n > 0 ? n : 0] = '\0';
	boot[strcspn(boot, "\n")] = '\0';
}

const char *ck_look_root_hint(const struct ck_error *err)
{
	bool barred = err->sys == EACCES || err->sys == EPERM;
	return barred && geteuid() ? " (run crikeep as root, or as the owner's user)" : "";
}

void ck_look_complain(int r, const struct ck_error *err)
{
	if (r == -CK_ENOTFOUND)
		ck_print_error("no database in '%s': its owner has not run yet, or --state-dir is "
			       "wrong",
			       ck_cli.state_dir);
	else if (r == -CK_EDAMAGED)
		ck_print_error(
			"%s (the owner sets a damaged database aside and creates a new one)",
			err->text);
	else
		ck_print_error("%s%s", err->text, ck_look_root_hint(err));
}

void ck_look_clocks(struct ck_look *look)
{
	look->now = ck_look_clock();
	look->wall = (int64_t)ck_clock_ns(CLOCK_REALTIME);
	read_boot_id(look->boot, sizeof(look->boot));
}

int ck_look_take(struct ck_look *look, unsigned what)
{
	struct ck_error err = { 0 };
	*look = (struct ck_look){ 0 };
	int r = ck_reader_open(ck_cli.state_dir, what, &look->reader, &err);
	if (r < 0) {
		ck_look_complain(r, &err);
		return CK_EXIT_TROUBLE;
	}
	ck_look_clocks(look); /* after the copy, so that nothing in it is later than now */
	return CK_EXIT_YES;
}

void ck_look_warn(const struct ck_look *look)
{
	if (look->reader->owner_degraded)
		ck_cli_hint("warning: the owner cannot write the database now and goes on in "
			    "memory; this is the state of its last write");
}

void ck_look_fini(struct ck_look *look)
{
	ck_reader_free(look->reader);
	look->reader = NULL;
}

bool ck_look_this_boot(const struct ck_look *look, const char *boot)
{
	return *look->boot && strcmp(look->boot, boot) == 0;
}

uint64_t ck_look_ago(const struct ck_look *look, uint64_t at)
{
	return ck_duration_between(at, look->now);
}

int64_t ck_look_wall(const struct ck_look *look, uint64_t at)
{
	/* the row may be damaged: @at can be any number */
	int64_t offset = at > INT64_MAX ? INT64_MAX / 2 : (int64_t)at - (int64_t)look->now;
	return (look->wall / (int64_t)CK_NS_PER_MS + offset / (int64_t)CK_NS_PER_MS) / 1000;
}

/* ---- which entries --------------------------------------------------------------------------- */

struct subject { /* an argument can mean this row, or this line of history */
	uint64_t entry;
	const char *id; /* borrowed; NULL: none */
	char *pod;      /* "NAMESPACE/NAME" */
};

enum fit { FIT_NONE, FIT_ENTRY, FIT_ID, FIT_POD };

bool ck_pod_is(const char *pod, const char *arg)
{
	const char *slash = strchr(pod, '/');
	return strcmp(pod, arg) == 0 || (slash && strcmp(slash + 1, arg) == 0);
}

char *ck_key_pod(const struct ck_key *key)
{
	return ck_text_format("%s/%s", key->pod_namespace, key->pod_name);
}

/* the pod in "container NAMESPACE/NAME/CONTAINER attempt 1": the entry and its key may be gone */
char *ck_history_pod(const struct ck_history_row *line)
{
	const char *start = line->who + strcspn(line->who, " ");
	start += *start == ' ';
	const char *slash = start + strcspn(start, "/");
	size_t n = *slash ? (size_t)(slash - start) + 1 + strcspn(slash + 1, "/ ") : strlen(start);
	return ck_must(ck_strndup(start, n));
}

bool ck_look_is_row(const char *arg)
{
	return *arg && strspn(arg, "0123456789") == strlen(arg);
}

/* A number is a row and nothing else. A row number does not begin with 0, an id may. */
static bool row_is(uint64_t entry, const char *arg)
{
	errno = 0;
	return *arg != '0' && entry == strtoull(arg, NULL, 10) && !errno;
}

static bool same_thing(const struct subject *a, const struct subject *b, enum fit fit)
{
	return fit == FIT_POD ? strcmp(a->pod, b->pod) == 0 : strcmp(a->id, b->id) == 0;
}

/* a whole id, or the beginning of one; @pick_for says how much of it must be given */
static bool id_fits(const char *id, const char *arg, bool whole, enum ck_pick_for pick_for)
{
	size_t len = strlen(arg);
	if (!id || !len)
		return false;
	if (whole)
		return strcmp(id, arg) == 0;
	return strncmp(id, arg, len) == 0 &&
	       (pick_for == CK_PICK_TO_READ || len >= CK_ID_PREFIX_MIN);
}

static enum fit fit_of(const struct subject *subject, const char *arg, bool whole_id,
		       enum ck_pick_for pick_for)
{
	if (ck_look_is_row(arg))
		return row_is(subject->entry, arg) ? FIT_ENTRY : FIT_NONE;
	if (id_fits(subject->id, arg, whole_id, pick_for))
		return FIT_ID;
	return (pick_for == CK_PICK_TO_READ ? ck_pod_is(subject->pod, arg)
					    : strcmp(subject->pod, arg) == 0)
		       ? FIT_POD
		       : FIT_NONE;
}

/* Tell in @fits how the argument fits each subject. Return: how the first fits that does. */
static enum fit find_fits(const struct subject *subjects, size_t n, const char *arg,
			  enum ck_pick_for pick_for, enum fit *fits)
{
	enum fit best = FIT_NONE;
	bool whole_id = false;
	for (size_t i = 0; i < n; i++)
		whole_id = whole_id || (subjects[i].id && strcmp(subjects[i].id, arg) == 0);
	for (size_t i = 0; i < n; i++) {
		fits[i] = fit_of(&subjects[i], arg, whole_id, pick_for);
		if (fits[i] && !best)
			best = fits[i];
	}
	return best;
}

/* Count what the argument could mean. More than one meaning is an error, which names them. */
static size_t name_candidates(const struct subject *subjects, size_t n, const char *arg,
			      const enum fit *fits)
{
	CK_AUTO_FREE char *text = NULL;
	size_t things = 0, len;
	FILE *out = ck_must(open_memstream(&text, &len));
	for (size_t i = 0; i < n; i++) {
		bool seen = fits[i] == FIT_NONE;
		for (size_t j = 0; j < i && !seen; j++)
			seen = fits[i] == fits[j] &&
			       (fits[i] == FIT_ENTRY ||
				same_thing(&subjects[i], &subjects[j], fits[i]));
		if (seen || things++ >= CANDIDATES_SHOWN)
			continue;
		fputs(things > 1 ? ", " : "", out);
		if (fits[i] == FIT_POD)
			fprintf(out, "pod %s", subjects[i].pod);
		else
			fprintf(out, "entry %" PRIu64 " (%.13s)", subjects[i].entry,
				subjects[i].id ? subjects[i].id : "");
	}
	if (things > CANDIDATES_SHOWN)
		fprintf(out, " and %zu more", things - CANDIDATES_SHOWN);
	if (fclose(out))
		ck_text_nomem();
	if (things > 1)
		ck_print_error("'%s' is ambiguous; it could be %s", arg, text);
	return things;
}

/* Nothing fits well enough to be changed. Does the argument mean something to somebody who only
 * reads? Then say what is missing. */
static int refuse_short_name(const struct subject *subjects, size_t n, const char *arg,
			     enum fit *fits)
{
	enum fit best = find_fits(subjects, n, arg, CK_PICK_TO_READ, fits);
	size_t i = 0;
	while (i < n && fits[i] == FIT_NONE)
		i++;
	if (best == FIT_POD)
		ck_print_error("'%s' is not the whole name of a pod: give NAMESPACE/NAME, like %s",
			       arg, subjects[i].pod);
	else if (best == FIT_ID)
		ck_print_error("'%s' is too short for an id: give at least %u characters of it, or "
			       "the row number",
			       arg, CK_ID_PREFIX_MIN);
	return best ? CK_EXIT_TROUBLE : CK_EXIT_NO;
}

static int pick(struct subject *subjects, size_t n, const char *arg, enum ck_pick_for pick_for,
		struct ck_picked *ret_picked)
{
	CK_AUTO_FREE enum fit *fits = ck_must(ck_alloc((n + 1) * sizeof(*fits)));
	CK_AUTO_FREE bool *match = ck_must(ck_alloc(n + 1));
	enum fit best = find_fits(subjects, n, arg, pick_for, fits);
	if (!best)
		return refuse_short_name(subjects, n, arg, fits);
	if (name_candidates(subjects, n, arg, fits) > 1)
		return CK_EXIT_TROUBLE;
	*ret_picked = (struct ck_picked){ .pod = best == FIT_POD };
	for (size_t i = 0; i < n; i++) {
		match[i] = fits[i] != FIT_NONE;
		ret_picked->n += match[i];
	}
	ret_picked->match = CK_TAKE(match);
	return CK_EXIT_YES;
}

static void subjects_free(struct subject *subjects, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(subjects[i].pod);
	free(subjects);
}

static struct subject *row_subjects(const struct ck_look *look)
{
	size_t n = look->reader->rows_n;
	struct subject *subjects = ck_must(ck_alloc((n + 1) * sizeof(*subjects)));
	for (size_t i = 0; i < n; i++) {
		const struct ck_row *row = &look->reader->rows[i];
		subjects[i] = (struct subject){ row->id, row->result ? row->result->id : NULL,
						ck_key_pod(row->key) };
	}
	return subjects;
}

bool ck_look_has(const struct ck_look *look, const char *arg)
{
	size_t n = look->reader->rows_n;
	CK_AUTO_FREE enum fit *fits = ck_must(ck_alloc((n + 1) * sizeof(*fits)));
	struct subject *subjects = row_subjects(look);
	enum fit best = find_fits(subjects, n, arg, CK_PICK_TO_READ, fits);
	subjects_free(subjects, n);
	return best != FIT_NONE;
}

int ck_look_pick(const struct ck_look *look, const char *arg, enum ck_pick_for pick_for,
		 struct ck_picked *ret_picked)
{
	size_t n = look->reader->rows_n;
	struct subject *subjects = row_subjects(look);
	int r = pick(subjects, n, arg, pick_for, ret_picked);
	subjects_free(subjects, n);
	if (r == CK_EXIT_NO && ck_look_is_row(arg))
		ck_print_error("no entry %s in the cache; 'crikeep history' shows past ones", arg);
	else if (r == CK_EXIT_NO)
		ck_print_error(
			"no entry or pod '%s' in the cache; 'crikeep history' shows past ones",
			arg);
	return r;
}

int ck_look_pick_all(const struct ck_look *look, char **args, int n, bool **ret_match)
{
	bool *match = ck_must(ck_alloc(look->reader->rows_n + 1));
	int worst = CK_EXIT_YES;
	for (int i = 0; i < n; i++) {
		struct ck_picked picked = { 0 };
		int r = ck_look_pick(look, args[i], CK_PICK_TO_READ, &picked);
		for (size_t j = 0; r == CK_EXIT_YES && j < look->reader->rows_n; j++)
			match[j] = match[j] || picked.match[j];
		free(picked.match);
		worst = r > worst ? r : worst;
	}
	*ret_match = match;
	return worst;
}

int ck_look_pick_history(const struct ck_look *look, const char *arg, struct ck_picked *ret_picked)
{
	size_t n = look->reader->history_n;
	struct subject *subjects = ck_must(ck_alloc((n + 1) * sizeof(*subjects)));
	for (size_t i = 0; i < n; i++) {
		const struct ck_history_row *line = &look->reader->history[i];
		subjects[i] = (struct subject){ line->entry, line->object, ck_history_pod(line) };
	}
	int r = pick(subjects, n, arg, CK_PICK_TO_READ, ret_picked);
	subjects_free(subjects, n);
	if (r == CK_EXIT_NO)
		ck_print_error("no entry%s '%s' in the history",
			       ck_look_is_row(arg) ? "" : " or pod", arg);
	return r;
}
