/* SPDX-License-Identifier: Apache-2.0 */
/* What a host learns about its entries: all of them at once, the entry of a job, what was
 * committed, and when it may let callers in. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/flow/fixture.h"
#include "src/base/error.h"
#include "src/base/mem.h"

#define S CK_NS_PER_S

struct seen {
	char text[4096];
	size_t len;
	struct ck_cache *cache; /* called from inside the round, which is refused */
	int refused;
	int stop; /* what to return */
	uint64_t last;
};

static void see(struct seen *seen, const char *fmt, ...) CK_PRINTF(2, 3);
static void see(struct seen *seen, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(seen->text + seen->len, sizeof(seen->text) - seen->len, fmt, ap);
	va_end(ap);
	assert_in_range(n, 0, sizeof(seen->text) - seen->len - 1);
	seen->len += (size_t)n;
}

static int see_entry(const struct ck_entry_info *e, void *userdata)
{
	struct seen *seen = userdata;
	assert_int_equal(e->size, sizeof(*e));
	assert_true(e->entry > seen->last); /* oldest first */
	seen->last = e->entry;
	see(seen, "%d:%s %s/%s/%s", e->state, e->id, e->pod_namespace, e->pod_name, e->pod_uid);
	if (e->kind == CK_CONTAINER)
		see(seen, " %s in %s", e->container_name, e->sandbox_id);
	see(seen, " #%u%s%s", e->attempt, e->lost ? " lost" : "", e->ended ? " ended" : "");
	see(seen, "%s%s%s%s\n", *e->stage ? " at " : "", e->stage, *e->why ? ": " : "", e->why);
	if (seen->cache)
		seen->refused = ck_entries(seen->cache, see_entry, seen);
	return seen->stop;
}

static const char *entries(struct fixture *f)
{
	static struct seen seen;
	seen = (struct seen){ .text = "" };
	assert_int_equal(ck_entries(f->cache, see_entry, &seen), 0);
	return seen.text;
}

static void every_entry_is_shown_with_its_state(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), taken = fx_sandbox("taken"),
		      making = fx_sandbox("making");
	struct fx_ask app = fx_container("taken", "s2", "app");
	fx_open(f);
	assert_string_equal(entries(f), "");
	fx_keep(f, &kept, "s1");
	fx_commit(f, &taken, "s2");
	app.attempt = 3;
	fx_keep(f, &app, "c1");
	struct ck_turn *turn = fx_create(f, &making);
	assert_int_equal(ck_turn_stage(turn, "network creation"), 0);
	assert_string_equal(entries(f), "2:s1 shop/kept/uid-kept #0\n"
					"4:s2 shop/taken/uid-taken #0\n"
					"2:c1 shop/taken/uid-taken app in s2 #3\n"
					"1: shop/making/uid-making #0 at network creation\n");
	ck_turn_free(turn);
	f->fail[FX_DESTROY] = 14;
	kept.attempt = 1;
	turn = fx_wait(f, &kept);
	fx_settle(f);
	assert_non_null(strstr(
		entries(f), "5:s1 shop/kept/uid-kept #0: the kubelet asked for another attempt\n"));
	assert_non_null(
		strstr(entries(f), "7: shop/making/uid-making #0 lost at network creation\n"));
	ck_turn_free(turn);

	struct seen seen = { .cache = f->cache, .stop = 7 };
	assert_int_equal(ck_entries(f->cache, see_entry, &seen), 7); /* the first one ends it */
	assert_int_equal(seen.refused, -CK_EDEADLK);
	assert_null(strchr(strchr(seen.text, '\n') + 1, '\n'));
	assert_int_equal(ck_entries(NULL, see_entry, &seen), -CK_EINVAL);
	assert_int_equal(ck_entries(f->cache, NULL, NULL), -CK_EINVAL);
}

static void another_life_is_shown_what_the_last_one_left(void **state)
{
	struct fixture *f = *state;
	struct fx_ask kept = fx_sandbox("kept"), gone = fx_sandbox("gone");
	fx_open(f);
	fx_keep(f, &kept, "s1");
	fx_keep(f, &gone, "s2");
	gone.attempt = 1;
	struct ck_turn *turn = fx_wait(f, &gone);
	assert_int_equal(fx_decision(f, turn), CK_CREATE);
	fx_cut(f);
	ck_turn_free(turn);
	fx_open(f);
	/* a tombstone is no entry */
	assert_string_equal(entries(f),
			    "2:s1 shop/kept/uid-kept #0\n7: shop/gone/uid-gone #1 lost\n");
}

/* ---- what a job is about --------------------------------------------------------------------- */

static struct seen *asked_of;

static void note_job(struct ck_job *job, const char *what)
{
	const struct ck_told *e = ck_job_entry(job);
	if (!e)
		see(asked_of, "%s of nothing\n", what);
	else
		see(asked_of, "%s %s %s/%s/%s %s#%u\n", what, e->id, e->pod_namespace, e->pod_name,
		    e->pod_uid, e->kind == CK_CONTAINER ? e->container_name : "", e->attempt);
}

static void destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	const struct ck_answer done = { .size = sizeof(done) };
	(void)kind, (void)id, (void)userdata;
	note_job(job, "destroy");
	ck_job_done(job, &done);
}

static void inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	const struct ck_answer dead = { .size = sizeof(dead), .condition = CK_CONDITION_DEAD };
	(void)kind, (void)id, (void)userdata;
	note_job(job, "inspect");
	ck_job_done(job, &dead);
}

static void list(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	const struct ck_answer done = { .size = sizeof(done) };
	(void)filter, (void)userdata;
	note_job(job, "list");
	ck_job_done(job, &done);
}

static void a_job_says_what_it_is_about(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), app = fx_container("web", "s0", "app");
	struct seen seen = { .text = "" };
	asked_of = &seen;
	f->host.destroy = destroy;
	f->host.inspect = inspect;
	f->host.list = list;
	fx_open(f);
	fx_settle(f);
	fx_keep(f, &pod, "s1");
	fx_keep(f, &app, "c1");
	struct ck_turn *turn = fx_wait(f, &pod);
	fx_settle(f);
	ck_turn_free(turn);
	assert_non_null(strstr(seen.text, "list of nothing\n"));
	assert_non_null(strstr(seen.text, "inspect s1 shop/web/uid-web #0\n"));
	assert_non_null(strstr(seen.text, "destroy s1 shop/web/uid-web #0\n"));
	turn = fx_wait(f, &app);
	fx_settle(f);
	ck_turn_free(turn);
	assert_non_null(strstr(seen.text, "destroy c1 shop/web/uid-web app#0\n"));
	assert_null(ck_job_entry(NULL));
}

/* ---- commits --------------------------------------------------------------------------------- */

struct commits {
	struct ck_cache *cache;
	struct seen seen;
	int refused;
};

static struct commits *commits;

static void committed(const struct ck_told *entry, void *userdata)
{
	(void)userdata;
	see(&commits->seen, "%s %s/%s\n", entry->id, entry->pod_namespace, entry->pod_name);
	commits->refused = ck_object_used(commits->cache, CK_SANDBOX, entry->id);
}

static void the_host_hears_of_each_commit_once_and_after_it_is_on_disk(void **state)
{
	struct fixture *f = *state;
	struct fx_ask soon = fx_sandbox("soon"), late = fx_sandbox("late"),
		      full = fx_sandbox("full");
	struct commits heard = { .cache = NULL };
	commits = &heard;
	f->host.committed = committed;
	fx_open(f);
	heard.cache = f->cache;
	fx_commit(f, &soon, "s1");
	assert_string_equal(heard.seen.text, "s1 shop/soon\n");
	assert_int_equal(heard.refused, -CK_EDEADLK);
	fx_keep(f, &late, "s2");
	assert_string_equal(heard.seen.text, "s1 shop/soon\n");
	struct ck_turn *turn = fx_wait(f, &late);
	fx_answered_with(f, turn, "s2");
	ck_turn_free(turn);
	assert_string_equal(heard.seen.text, "s1 shop/soon\ns2 shop/late\n");
	/* once more: it is already visible */
	assert_int_equal(fx_begin(f, &late, &turn), CK_HAND_BACK);
	ck_turn_free(turn);
	fx_keep(f, &full, "s3");
	full.attempt = 1;
	turn = fx_wait(f, &full);
	fx_settle(f);
	ck_turn_free(turn);
	assert_string_equal(heard.seen.text, "s1 shop/soon\ns2 shop/late\n");
}

/* ---- first lists ----------------------------------------------------------------------------- */

static void the_host_is_told_when_its_first_lists_are_done(void **state)
{
	struct fixture *f = *state;
	f->fail[FX_LIST] = 14;
	fx_open(f);
	assert_int_equal(ck_reconciled(f->cache), 0);
	fx_advance(f, 5 * S);
	assert_int_equal(ck_reconciled(f->cache), 0);
	f->fail[FX_LIST] = 0;
	fx_advance(f, 10 * S);
	assert_int_equal(ck_reconciled(f->cache), 1);
	f->fail[FX_LIST] = 14; /* a later failure changes nothing */
	fx_advance(f, 60 * S);
	assert_int_equal(ck_reconciled(f->cache), 1);
	fx_close(f);
	f->host.list = NULL;
	fx_open(f);
	assert_int_equal(ck_reconciled(f->cache), 1);
	assert_int_equal(ck_reconciled(NULL), -CK_EINVAL);
}

/* ---- by name only ---------------------------------------------------------------------------- */

static int begin_by_key(struct fixture *f, const struct fx_ask *ask, struct ck_turn **ret_turn)
{
	unsigned char bytes[4096];
	struct ck_request request = { .size = sizeof(request),
				      .kind = ask->kind,
				      .bytes = bytes,
				      .timeout = ask->timeout,
				      .key_only = 1 };
	request.len = fx_bytes(ask, bytes, sizeof(bytes));
	return ck_turn_begin(f->cache, &request, ret_turn, &f->err);
}

static void who_knows_only_the_name_gets_what_is_kept_under_it(void **state)
{
	struct fixture *f = *state;
	struct fx_ask pod = fx_sandbox("web"), bare = fx_sandbox("web");
	struct ck_turn *turn, *other;
	pod.env = NULL;
	pod.label = "a";
	pod.note = "b";
	pod.image = "nginx";
	f->options.on_annotation_change = CK_ANNOTATION_EVICT;
	fx_open(f);
	fx_keep(f, &pod, "s1");
	assert_int_equal(begin_by_key(f, &bare, &turn), CK_WAIT);
	fx_answered_with(f, turn, "s1");
	ck_turn_free(turn);
	assert_int_equal(f->asked[FX_DESTROY], 0);

	/* while it is being created, a repeated request joins, too; another attempt is another
	 * creation */
	pod.attempt = bare.attempt = 1;
	turn = fx_create(f, &pod);
	assert_int_equal(begin_by_key(f, &bare, &other), CK_WAIT);
	assert_int_equal(fx_make(f, turn, &pod, "s2"), CK_HAND_BACK);
	fx_answered_with(f, other, "s2");
	ck_turn_free(turn);
	ck_turn_free(other);

	/* its result has a fingerprint like any other */
	struct fx_ask next = fx_sandbox("next"), changed = fx_sandbox("next");
	assert_int_equal(begin_by_key(f, &next, &turn), CK_CREATE);
	fx_advance(f, 20 * S);
	assert_int_equal(fx_make(f, turn, &next, "s3"), CK_KEPT);
	ck_turn_free(turn);
	changed.label = "other";
	changed.uid = next.uid;
	changed.annotation = "x";
	changed.note = "c";
	turn = fx_wait(f, &changed);
	fx_settle(f);
	assert_true(fx_was_destroyed(f, "s3"));
	ck_turn_free(turn);
}

/* ---- lists of a newer host ------------------------------------------------------------------- */

static void objects_longer_than_ours_are_stepped_over(void **state)
{
	struct fixture *f = *state;
	struct newer {
		struct ck_object object;
		uint64_t added[3];
	} objects[3] = {
		{ .object = { .kind = CK_SANDBOX, .condition = CK_CONDITION_READY, .id = "s1" } },
		{ .object = { .kind = CK_SANDBOX, .condition = CK_CONDITION_READY, .id = "s2" } },
		{ .object = { .kind = CK_SANDBOX, .condition = CK_CONDITION_READY, .id = "s3" } }
	};
	struct ck_view *view;
	for (size_t i = 0; i < CK_COUNT(objects); i++) {
		objects[i].object.size = sizeof(objects[i]);
		objects[i].added[0] = objects[i].added[2] = UINT64_MAX;
	}
	fx_open(f);
	fx_settle(f);
	assert_int_equal(ck_view_begin(f->cache, &view, NULL), 0);
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &objects[0].object, CK_COUNT(objects)),
			 0);
	ck_view_free(view);
	/* imported (K27) */
	assert_string_equal(entries(f), "4:s1 // #0\n4:s2 // #0\n4:s3 // #0\n");

	assert_int_equal(ck_view_begin(f->cache, &view, NULL), 0);
	objects[1].object.size = sizeof(struct ck_object); /* not all of one size */
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &objects[0].object, CK_COUNT(objects)),
			 -CK_EINVAL);
	objects[1].object.size = sizeof(objects[1]);
	/* a header that is older than any that ever existed */
	objects[0].object.size = sizeof(struct ck_object) - 8;
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &objects[0].object, 1), -CK_EINVAL);
	objects[0].object.size = sizeof(struct ck_object) + 1; /* no object ends there */
	assert_int_equal(ck_view_listed(view, CK_SANDBOX, &objects[0].object, 1), -CK_EINVAL);
	ck_view_free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_FIXTURE(every_entry_is_shown_with_its_state),
		ON_FIXTURE(another_life_is_shown_what_the_last_one_left),
		ON_FIXTURE(a_job_says_what_it_is_about),
		ON_FIXTURE(the_host_hears_of_each_commit_once_and_after_it_is_on_disk),
		ON_FIXTURE(the_host_is_told_when_its_first_lists_are_done),
		ON_FIXTURE(who_knows_only_the_name_gets_what_is_kept_under_it),
		ON_FIXTURE(objects_longer_than_ours_are_stepped_over),
	};
	return CK_TEST_MAIN(tests);
}
