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
#include "src/base/edit-distance.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/select-entries.h"

#define CANDIDATES_SHOWN 8u
#define MISTAKE_LETTERS  3u /* of a name, for each mistake in it */

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

int ck_look_try(struct ck_look *look, unsigned what, struct ck_error *err)
{
	*look = (struct ck_look){ 0 };
	int r = ck_reader_open(ck_cli.state_dir, what, &look->reader, err);
	ck_look_clocks(look); /* after the copy, so that nothing in it is later than now */
	return r;
}

int ck_look_take(struct ck_look *look, unsigned what)
{
	struct ck_error err = { 0 };
	int r = ck_look_try(look, what, &err);
	if (r < 0)
		ck_look_complain(r, &err);
	return r < 0 ? CK_EXIT_TROUBLE : CK_EXIT_YES;
}

bool ck_owner_frozen(const struct ck_reader *reader, struct ck_process *ret_process)
{
	return reader->owner_alive && ck_process_see(reader->owner_pid, ret_process) &&
	       ck_process_stopped(ret_process);
}

static void warn(bool alive, long pid, bool degraded)
{
	struct ck_process process;
	if (!alive)
		ck_print_error("warning: no owner is running (crikeepd, or a runtime with "
			       "libcrikeep), so nothing is hidden; this is how the last one left "
			       "it");
	else if (ck_process_see(pid, &process) && ck_process_stopped(&process))
		ck_print_error("warning: the owner, process %ld (%s), is stopped by a signal or a "
			       "debugger and answers nobody",
			       pid, process.name);
	if (degraded)
		ck_print_error("warning: the owner cannot write the database now and goes on in "
			       "memory; this is the state of its last write");
}

void ck_look_warn(const struct ck_look *look)
{
	warn(look->reader->owner_alive, look->reader->owner_pid, look->reader->owner_degraded);
}

void ck_look_warn_unread(void)
{
	long pid;
	bool alive = ck_store_owner(ck_cli.state_dir, &pid);
	warn(alive, pid, ck_store_owner_degraded(ck_cli.state_dir));
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

struct subject { /* an argument can mean this row, this line of history, or this pod */
	uint64_t entry; /* 0: none */
	const char *id; /* borrowed; NULL: none */
	char *pod;      /* "NAMESPACE/NAME" */
};

enum fit { FIT_NONE, FIT_ENTRY, FIT_ID, FIT_POD };

/* NAME of "NAMESPACE/NAME" */
static const char *pod_name(const char *pod)
{
	const char *slash = strchr(pod, '/');
	return slash ? slash + 1 : pod;
}

bool ck_pod_is(const char *pod, const char *arg)
{
	return strcmp(pod, arg) == 0 || strcmp(pod_name(pod), arg) == 0;
}

/* Is @arg the beginning of NAME, or NAMESPACE/ and that? */
static bool pod_begins(const char *pod, const char *arg)
{
	const char *name = strchr(arg, '/') ? pod : pod_name(pod);
	return *pod_name(arg) && strncmp(name, arg, strlen(arg)) == 0;
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

struct whole { /* what an argument names in full; then beginnings do not count */
	bool id, pod;
};

static bool pod_fits(const char *pod, const char *arg, struct whole whole,
		     enum ck_pick_for pick_for)
{
	if (pick_for == CK_PICK_TO_CHANGE)
		return strcmp(pod, arg) == 0;
	return whole.id || whole.pod ? ck_pod_is(pod, arg) : pod_begins(pod, arg);
}

static enum fit fit_of(const struct subject *subject, const char *arg, struct whole whole,
		       enum ck_pick_for pick_for)
{
	if (ck_look_is_row(arg))
		return row_is(subject->entry, arg) ? FIT_ENTRY : FIT_NONE;
	if (id_fits(subject->id, arg, whole.id, pick_for))
		return FIT_ID;
	return pod_fits(subject->pod, arg, whole, pick_for) ? FIT_POD : FIT_NONE;
}

/* Tell in @fits how the argument fits each subject. Return: how the first fits that does. */
static enum fit find_fits(const struct subject *subjects, size_t n, const char *arg,
			  enum ck_pick_for pick_for, enum fit *fits)
{
	enum fit best = FIT_NONE;
	struct whole whole = { false, false };
	for (size_t i = 0; i < n; i++) {
		whole.id = whole.id || (subjects[i].id && strcmp(subjects[i].id, arg) == 0);
		whole.pod = whole.pod || ck_pod_is(subjects[i].pod, arg);
	}
	for (size_t i = 0; i < n; i++) {
		fits[i] = fit_of(&subjects[i], arg, whole, pick_for);
		if (fits[i] && !best)
			best = fits[i];
	}
	return best;
}

/* How far is @arg from a pod's name, or from as much of its beginning? The namespace does not
 * count: whoever has that wrong has the name right. */
static size_t mistakes(const char *pod, const char *arg)
{
	const char *wanted = pod_name(arg), *name = pod_name(pod);
	CK_AUTO_FREE char *start = ck_must(ck_strndup(name, strnlen(name, strlen(wanted))));
	size_t whole = ck_edit_distance(wanted, name), begin = ck_edit_distance(wanted, start);
	return whole < begin ? whole : begin;
}

/* The pod whose name is nearest to a mistyped one, or NULL */
static const char *nearest_pod(const struct subject *subjects, size_t n, const char *arg)
{
	size_t least = CK_EDIT_DISTANCE_MAX + 1;
	const char *nearest = NULL;
	for (size_t i = 0; i < n; i++) {
		size_t d = mistakes(subjects[i].pod, arg);
		/* in a short name, two mistakes make another one */
		if (d < least && d * MISTAKE_LETTERS <= strlen(pod_name(arg))) {
			least = d;
			nearest = subjects[i].pod;
		}
	}
	return nearest;
}

static void say_not_found(const struct subject *subjects, size_t n, const char *arg,
			  const char *where, const char *otherwise)
{
	const char *nearest = nearest_pod(subjects, n, arg);
	if (ck_look_is_row(arg))
		ck_print_error("no entry %s in the %s%s", arg, where, otherwise);
	else if (nearest)
		ck_print_error("no entry or pod '%s' in the %s; did you mean pod %s?", arg, where,
			       nearest);
	else
		ck_print_error("no entry or pod '%s' in the %s%s", arg, where, otherwise);
}

/* Count what the argument could mean, up to CANDIDATES_SHOWN + 1. More than one meaning is an
 * error, which names them. */
static size_t name_candidates(const struct subject *subjects, size_t n, const char *arg,
			      const enum fit *fits)
{
	CK_AUTO_FREE char *text = NULL;
	size_t shown[CANDIDATES_SHOWN], things = 0, len;
	FILE *out = ck_must(open_memstream(&text, &len));
	for (size_t i = 0; i < n && things <= CANDIDATES_SHOWN; i++) {
		bool seen = fits[i] == FIT_NONE;
		for (size_t j = 0; j < things && !seen; j++)
			seen = fits[i] == fits[shown[j]] &&
			       (fits[i] == FIT_ENTRY ||
				same_thing(&subjects[i], &subjects[shown[j]], fits[i]));
		if (seen || things++ == CANDIDATES_SHOWN)
			continue;
		shown[things - 1] = i;
		fputs(things > 1 ? ", " : "", out);
		if (fits[i] == FIT_POD)
			fprintf(out, "pod %s", subjects[i].pod);
		else
			fprintf(out, "entry %" PRIu64 " (%.13s)", subjects[i].entry,
				subjects[i].id ? subjects[i].id : "");
	}
	if (things > CANDIDATES_SHOWN)
		fputs(" and more", out);
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

/* of all rows, and of pods that have none */
static struct subject *row_subjects(const struct ck_look *look, char *const *pods, size_t pods_n)
{
	size_t n = look->reader->rows_n;
	struct subject *subjects = ck_must(ck_alloc((n + pods_n + 1) * sizeof(*subjects)));
	for (size_t i = 0; i < n; i++) {
		const struct ck_row *row = &look->reader->rows[i];
		subjects[i] = (struct subject){ row->id, row->result ? row->result->id : NULL,
						ck_key_pod(row->key) };
	}
	for (size_t i = 0; i < pods_n; i++)
		subjects[n + i] = (struct subject){ 0, NULL, ck_must(ck_strdup(pods[i])) };
	return subjects;
}

int ck_look_pick(const struct ck_look *look, const char *arg, enum ck_pick_for pick_for,
		 struct ck_picked *ret_picked)
{
	return ck_look_pick_among(look, NULL, 0, arg, pick_for, ret_picked);
}

int ck_look_pick_among(const struct ck_look *look, char *const *pods, size_t pods_n,
		       const char *arg, enum ck_pick_for pick_for, struct ck_picked *ret_picked)
{
	size_t n = look->reader->rows_n + pods_n;
	struct subject *subjects = row_subjects(look, pods, pods_n);
	int r = pick(subjects, n, arg, pick_for, ret_picked);
	if (r == CK_EXIT_NO)
		say_not_found(subjects, n, arg, "cache", "; 'crikeep history' shows past ones");
	subjects_free(subjects, n);
	return r;
}

int ck_look_pick_all(const struct ck_look *look, char **args, int n, bool **ret_match)
{
	bool *match = ck_must(ck_alloc(look->reader->rows_n + 1));
	int worst = CK_EXIT_YES;
	for (int i = 0; i < n; i++) {
		struct ck_picked picked = { 0 };
		int r = ck_look_pick(look, args[i], CK_PICK_TO_READ, &picked);
		size_t rows_n = r != CK_EXIT_YES || CK_NEVER(!picked.match) ? 0
									     : look->reader->rows_n;
		for (size_t j = 0; j < rows_n; j++)
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
	if (r == CK_EXIT_NO)
		say_not_found(subjects, n, arg, "history", "");
	subjects_free(subjects, n);
	return r;
}

int ck_look_complete_pod(const struct ck_look *look, const bool *among, const char *arg,
			 char **ret_pod)
{
	size_t rows_n = look->reader->rows_n, n = 0, first = SIZE_MAX, things = 1;
	struct subject *subjects = ck_must(ck_alloc((rows_n + 1) * sizeof(*subjects)));
	CK_AUTO_FREE enum fit *fits = ck_must(ck_alloc((rows_n + 1) * sizeof(*fits)));
	bool whole = false;
	for (size_t i = 0; i < rows_n; i++) {
		if (!among[i])
			continue;
		subjects[n].pod = ck_key_pod(look->reader->rows[i].key);
		whole = whole || ck_pod_is(subjects[n].pod, arg);
		fits[n] = pod_begins(subjects[n].pod, arg) ? FIT_POD : FIT_NONE;
		/* cppcheck-suppress arrayIndexThenCheck ; it compares with another n */
		first = fits[n] && first > n ? n : first;
		n++;
	}
	const char *pod = first < n ? subjects[first].pod : nearest_pod(subjects, n, arg);
	if (!whole)
		things = name_candidates(subjects, n, arg, fits);
	*ret_pod = ck_must(ck_strdup(whole ? arg : pod ? pod : ""));
	subjects_free(subjects, n);
	return things > 1 ? CK_EXIT_TROUBLE : things ? CK_EXIT_YES : CK_EXIT_NO;
}
