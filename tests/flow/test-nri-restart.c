/* SPDX-License-Identifier: Apache-2.0 */
/* What an earlier life has told (H3): over a cache that is closed in the middle of a commit, and
 * opened again. */
#define CK_TEST_SECONDS 60
#include <string.h>

#include "tests/flow/nri-world.h"

#define S CK_NS_PER_S

static void life(struct nw *w)
{
	if (nw_open(w) < 0)
		fail_msg("open: %s", w->err.text);
	w->f->options.hooks = &w->hooks;
	fx_open(w->f);
	nw_start(w);
}

/* 10-a and 20-b were told of s1, and the end came before they had agreed: it is kept, and named to
 * both in its row */
static struct nw *told_in_an_earlier_life(struct fixture *f)
{
	struct fx_ask pod = fx_sandbox("web");
	struct nw *w = nw_new();
	nw_over(w, f);
	life(w);
	struct plugin *a = nw_ready(w, "10-a"), *b = nw_ready(w, "20-b");
	plugin_rule(b, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	struct ck_turn *turn = fx_create(f, &pod);
	assert_int_equal(fx_make(f, turn, &pod, "s1"), CK_WAIT);
	nw_settle(w);
	assert_string_equal(plugin_story(a), "Synchronize() RunPodSandbox(s1)");
	assert_string_equal(plugin_story(b), "Synchronize() RunPodSandbox(s1)");
	fx_cut(f); /* first: else the commit would end with what was answered */
	nw_close(w);
	ck_turn_free(turn);
	life(w);
	assert_string_equal(fx_rows(f), "KEPT s1");
	return w;
}

static void done(struct nw *w, struct fixture *f)
{
	nw_close(w);
	f->options.hooks = NULL;
	fixture_free(f);
	nw_free(w);
}

static void who_is_back_in_time_has_it_in_the_list(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	struct nw *w = told_in_an_earlier_life(f);
	struct plugin *a = nw_ready(w, "10-a"), *b = nw_ready(w, "20-b"), *c = nw_ready(w, "30-c");
	nw_advance(w, 800 * S);
	assert_true(fx_was_destroyed(f, "s1"));
	assert_string_equal(plugin_story(a),
			    "Synchronize(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_string_equal(plugin_story(b),
			    "Synchronize(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_string_equal(plugin_story(c),
			    "Synchronize(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	done(w, f);
}

static void who_is_back_later_hears_the_end(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	struct nw *w = told_in_an_earlier_life(f);
	f->hold[FX_DESTROY] = true;
	nw_advance(w, 800 * S);
	assert_string_equal(fx_rows(f), "EVICTING s1");
	/* there was nobody to be sent its Stop */
	struct plugin *a = nw_ready(w, "10-a"), *c = nw_ready(w, "30-c");
	fx_release(f, FX_DESTROY);
	nw_settle(w);
	const char *both = "Synchronize(s1) StopPodSandbox(s1) RemovePodSandbox(s1)";
	assert_string_equal(plugin_story(a), both);
	assert_string_equal(plugin_story(c), both);
	done(w, f);
}

/* it is gone, and so in no list: what they were told before is owed to those of these names */
static void who_is_back_when_it_is_destroyed_hears_the_end(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	struct nw *w = told_in_an_earlier_life(f);
	f->hold[FX_DESTROY] = true;
	nw_advance(w, 800 * S);
	assert_string_equal(fx_rows(f), "EVICTING s1");
	fx_cut(f);
	nw_close(w);
	fx_release(f, FX_DESTROY);
	life(w);
	nw_settle(w);
	nw_advance(w, S);
	assert_true(fx_was_destroyed(f, "s1"));
	struct plugin *a = nw_ready(w, "10-a"), *c = nw_ready(w, "30-c"), *b = nw_ready(w, "20-b");
	nw_settle(w);
	const char *owed = "Synchronize() StopPodSandbox(s1) RemovePodSandbox(s1)";
	assert_string_equal(plugin_story(a), owed);
	assert_string_equal(plugin_story(b), owed);
	assert_string_equal(plugin_story(c), "Synchronize()");
	done(w, f);
}

static void who_is_back_after_another_one_had_its_stop_hears_the_rest(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	struct nw *w = told_in_an_earlier_life(f);
	struct plugin *b = nw_ready(w, "20-b");
	assert_int_equal(plugin_listed(b, "s1"), 1);
	f->hold[FX_DESTROY] = true;
	nw_advance(w, 800 * S);
	assert_string_equal(fx_rows(f), "EVICTING s1");
	struct plugin *a = nw_ready(w, "10-a");
	fx_release(f, FX_DESTROY);
	nw_settle(w);
	assert_string_equal(plugin_story(b),
			    "Synchronize(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_string_equal(plugin_story(a), "Synchronize(s1) RemovePodSandbox(s1)");
	done(w, f);
}

static void who_is_back_between_stop_and_remove_never_hears_half(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	struct nw *w = told_in_an_earlier_life(f);
	f->hold[FX_DESTROY] = true;
	nw_advance(w, 800 * S);
	struct plugin *a = nw_ready(w, "10-a");
	plugin_rule(a, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 1);
	fx_release(f, FX_DESTROY);
	nw_settle(w);
	assert_string_equal(plugin_story(a), "Synchronize(s1) StopPodSandbox(s1)");
	struct plugin *b = nw_ready(w, "20-b");
	plugin_release(a);
	nw_settle(w);
	assert_string_equal(plugin_story(a),
			    "Synchronize(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_int_equal(plugin_count(b, CK_NRI_STOP_POD_SANDBOX, "s1"),
			 plugin_count(b, CK_NRI_REMOVE_POD_SANDBOX, "s1"));
	done(w, f);
}

static void who_drops_and_returns_in_one_life_hears_the_rest(void **state) /* H9 */
{
	(void)state;
	struct fixture *f = fixture_new();
	struct fx_ask pod = fx_sandbox("web");
	struct nw *w = nw_new();
	nw_over(w, f);
	life(w);
	struct plugin *a = nw_ready(w, "10-a");
	plugin_fails(a, CK_NRI_RUN_POD_SANDBOX, 2, "no");
	f->hold[FX_DESTROY] = true;
	struct ck_turn *turn = fx_create(f, &pod);
	fx_make(f, turn, &pod, "s1");
	nw_settle(w);
	ck_turn_free(turn);
	assert_string_equal(plugin_story(a), "Synchronize() RunPodSandbox(s1) StopPodSandbox(s1)");
	plugin_close(a);
	nw_settle(w);
	a = nw_ready(w, "10-a");
	fx_release(f, FX_DESTROY);
	nw_settle(w);
	assert_true(fx_was_destroyed(f, "s1"));
	assert_string_equal(plugin_story(a), "Synchronize(s1) RemovePodSandbox(s1)");
	done(w, f);
}

/* H1: in this life, and in the next */
static void a_pod_whose_stop_has_begun_is_in_the_list(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	struct fx_ask pod = fx_sandbox("web"), other = fx_sandbox("other");
	struct nw *w = nw_new();
	nw_over(w, f);
	f->host.list = NULL;
	life(w);
	fx_commit(f, &pod, "s1");
	fx_commit(f, &other, "s2");
	assert_int_equal(ck_sandbox_stopping(f->cache, "s1"), 0);
	struct plugin *before = nw_ready(w, "10-a");
	assert_string_equal(plugin_story(before), "Synchronize(s1 s2)");
	fx_cut(f);
	nw_close(w);
	life(w);
	struct plugin *after = nw_ready(w, "10-a");
	assert_string_equal(plugin_story(after), "Synchronize(s1 s2)");
	done(w, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_back_in_time_has_it_in_the_list),
		cmocka_unit_test(who_is_back_later_hears_the_end),
		cmocka_unit_test(who_is_back_when_it_is_destroyed_hears_the_end),
		cmocka_unit_test(who_is_back_after_another_one_had_its_stop_hears_the_rest),
		cmocka_unit_test(who_is_back_between_stop_and_remove_never_hears_half),
		cmocka_unit_test(who_drops_and_returns_in_one_life_hears_the_rest),
		cmocka_unit_test(a_pod_whose_stop_has_begun_is_in_the_list),
	};
	return CK_TEST_MAIN(tests);
}
