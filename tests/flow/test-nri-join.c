/* SPDX-License-Identifier: Apache-2.0 */
/* How plugins come and go: the handshake and its refusals, the list of what there is, launched
 * plugins, the end. */
#define CK_TEST_SECONDS 120
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "hooks/introduce.h"
#include "tests/flow/nri-world.h"
#include "src/base/fault.h"

#define S CK_NS_PER_S

static struct nw *opened(void (*change)(struct nw *w))
{
	struct nw *w = nw_new();
	change(w);
	if (nw_open(w) < 0)
		fail_msg("open: %s", w->err.text);
	nw_start(w);
	return w;
}

/* whatever else goes on, this one is served */
static void still_serves(struct nw *w, const char *pod)
{
	struct plugin *p = nw_ready(w, "50-bystander");
	nw_run(w, pod);
	assert_int_equal(plugin_count(p, CK_NRI_RUN_POD_SANDBOX, pod), 1);
	assert_string_equal(p->wrong, "");
}

/* ---- the handshake --------------------------------------------------------------------------- */

static void a_plugin_is_told_who_it_talks_to(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	assert_string_equal(p->runtime_name, "crikeep");
	assert_string_equal(p->runtime_version, ck_version());
	assert_memory_equal(p->runtime_nri, "v0.", 3); /* or stubs guess, and warn */
	assert_int_equal(p->registration_timeout, 5000);
	assert_int_equal(p->request_timeout, 2000);
	assert_string_equal(p->config, "");
	assert_string_equal(plugin_story(p), "Synchronize()");
	assert_string_equal(p->wrong, "");
	const struct ck_nri_plugin *seen = nw_plugin(w, "10-net");
	assert_non_null(seen);
	assert_string_equal(seen->state, "ready");
	assert_int_equal(seen->events, 0x1fff);
	assert_int_equal(seen->pid, getpid());
	assert_int_equal(seen->launched, 0);
	assert_int_equal(seen->since, nw_now(w));
	nw_free(w);
}

static void bytes_may_come_one_by_one(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-net");
	p->at_most = 1;
	p->cut = 1;
	nw_settle(w);
	assert_true(p->synchronized);
	nw_run(w, "s1");
	assert_string_equal(plugin_story(p), "Synchronize() RunPodSandbox(s1)");
	assert_string_equal(p->wrong, "");
	nw_free(w);
}

static void odd_names_are_refused(void **state)
{
	static const struct {
		const char *index, *base;
	} names[] = { { "1", "net" },  { "100", "net" }, { "ab", "net" }, { "", "net" },
		      { "1 ", "net" }, { "-1", "net" },  { "10", "" },    { "10", "a/b" },
		      { "10", "a b" }, { "10", "a\tb" } };
	(void)state;
	struct nw *w = nw_started();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct plugin *p = nw_join(w, "10-net");
		snprintf(p->index, sizeof(p->index), "%s", names[i].index);
		snprintf(p->base, sizeof(p->base), "%s", names[i].base);
		nw_settle(w);
		if (p->registered || !p->ended)
			fail_msg("'%s' '%s': registered %d, ended %d", names[i].index,
				 names[i].base, p->registered, p->ended);
		assert_int_equal(p->answers_n, 1);
		assert_int_not_equal(p->answers[0].code, 0);
		assert_true(p->answers[0].text[0]); /* it says why */
	}
	struct plugin *p = nw_join(w, "10-net");
	memset(p->base, 'a', sizeof(p->base) - 1);
	nw_settle(w);
	assert_true(p->ended && !p->registered);
	assert_int_equal(nw_connected(w), 0);
	still_serves(w, "s1");
	nw_free(w);
}

static void a_plugin_registers_once(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	snprintf(p->base, sizeof(p->base), "other");
	plugin_register(p);
	nw_settle(w);
	const struct plugin_answer *answer = plugin_answer_to(p, 3);
	assert_true(p->ended || (answer && answer->code));
	assert_null(nw_plugin(w, "10-other"));
	still_serves(w, "s1");
	nw_free(w);
}

static void a_mask_of_unknown_events_is_refused(void **state)
{
	static const uint32_t masks[] = { 0x4000, 0x3fff | 0x8000, 0x80000000, 0xffffffff };
	(void)state;
	struct nw *w = nw_started();
	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		struct plugin *p = nw_join(w, "10-net");
		p->mask = masks[i];
		nw_settle(w);
		assert_true(p->ended);
		assert_int_equal(p->chunks, 0);
	}
	still_serves(w, "s1");
	nw_free(w);
}

static void no_mask_is_everything(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-net");
	p->mask = 0;
	nw_settle(w);
	assert_int_equal(nw_plugin(w, "10-net")->events, 0x3fff);
	nw_run(w, "s1");
	assert_string_equal(plugin_story(p), "Synchronize() RunPodSandbox(s1)");
	nw_free(w);
}

static void who_says_nothing_is_closed(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *mute = nw_join(w, "10-net");
	mute->mute = true;
	nw_settle(w);
	still_serves(w, "s1"); /* it blocks nobody meanwhile */
	nw_advance(w, 4900 * CK_NS_PER_MS);
	assert_false(mute->ended);
	nw_advance(w, 200 * CK_NS_PER_MS);
	assert_true(mute->ended);
	assert_int_equal(nw_connected(w), 1);
	nw_free(w);
}

static void who_does_not_answer_configure_is_closed(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-net");
	plugin_rule(p, PLUGIN_CONFIGURE, PLUGIN_HOLDS, 0);
	nw_settle(w);
	assert_true(p->registered);
	still_serves(w, "s1");
	nw_advance(w, 1900 * CK_NS_PER_MS);
	assert_false(p->ended);
	nw_advance(w, 200 * CK_NS_PER_MS);
	assert_true(p->ended);
	assert_int_equal(nw_connected(w), 1);
	nw_free(w);
}

static void errors_of_the_handshake_end_it(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	for (int call = PLUGIN_CONFIGURE; call <= PLUGIN_SYNCHRONIZE; call++)
		for (int does = PLUGIN_FAILS; does <= PLUGIN_SHUTS; does++) {
			if (does == PLUGIN_HOLDS)
				continue;
			struct plugin *p = nw_join(w, "10-net");
			p->rules[call] =
				(struct plugin_rule){ .does = (enum plugin_does)does,
						      .code = 2,
						      .text = "no",
						      .reply = "\xff\xff\xff\xff\xff\xff\xff\xff",
						      .len = 8 };
			nw_settle(w);
			if (!p->ended && p->fd >= 0)
				fail_msg("call %d, %d: still connected", call, does);
			assert_int_equal(nw_connected(w), 0);
		}
	still_serves(w, "s1");
	nw_free(w);
}

static void synchronize_has_time_of_its_own(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-net");
	plugin_rule(p, PLUGIN_SYNCHRONIZE, PLUGIN_HOLDS, 1);
	nw_settle(w);
	assert_string_equal(nw_plugin(w, "10-net")->state, "synchronizing");
	nw_advance(w, 3 * S); /* what critest's plugin needs, and more */
	assert_false(p->ended);
	assert_string_equal(nw_plugin(w, "10-net")->state, "overdue");
	plugin_release(p);
	nw_settle(w);
	assert_string_equal(nw_plugin(w, "10-net")->state, "ready");
	struct plugin *never = nw_join(w, "20-net");
	plugin_rule(never, PLUGIN_SYNCHRONIZE, PLUGIN_HOLDS, 0);
	nw_advance(w, 9900 * CK_NS_PER_MS);
	assert_false(never->ended);
	nw_advance(w, 200 * CK_NS_PER_MS);
	assert_true(never->ended);
	assert_false(p->ended);
	nw_free(w);
}

/* ---- who may, and what is no plugin ---------------------------------------------------------- */

static void other_users_are_turned_away(void **state)
{
	static const unsigned nobody[] = { 65534 };
	unsigned own[] = { 65534, getuid() };
	(void)state;
	for (int may = 0; may <= 1; may++) {
		struct nw *w = nw_new();
		w->options.allow_uids = may ? own : nobody;
		w->options.allow_uids_n = may ? 2 : 1;
		assert_int_equal(nw_open(w), 0);
		nw_start(w);
		struct plugin *p = nw_join(w, "10-net");
		nw_settle(w);
		assert_int_equal(p->ended, !may);
		assert_int_equal(p->registered, may);
		nw_free(w);
	}
}

static void the_socket_is_its_owner_s_only(void **state)
{
	struct stat st;
	(void)state;
	struct nw *w = nw_started();
	assert_int_equal(stat(w->socket, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	nw_free(w);
}

static void garbage_costs_its_own_connection(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} garbage[] = {
		{ "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35 },
		{ "\x00\x00\x00\x02\xff\xff\xff\xff", 8 }, /* a frame of 4 GiB */
		{ "\x00\x00\x00\x02\x00\x40\x00\x0b", 8 }, /* of one byte more than Go writes */
		/* a message of 4 GiB */
		{ "\x00\x00\x00\x02\x00\x00\x00\x0a\xff\xff\xff\xff\x00\x00\x00\x01\x01\x00", 18 },
		/* calls us where we call */
		{ "\x00\x00\x00\x01\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00", 18 },
	};
	(void)state;
	struct nw *w = nw_started();
	struct plugin *bystander = nw_ready(w, "50-bystander");
	for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++)
		for (int later = 0; later <= 1; later++) {
			char pod[16];
			struct plugin *p = nw_join(w, "10-net");
			p->mute = !later;
			if (later)
				nw_settle(w);
			plugin_write(p, garbage[i].bytes, garbage[i].len);
			nw_settle(w);
			snprintf(pod, sizeof(pod), "s%zu-%d", i, later);
			nw_run(w, pod);
			assert_int_equal(plugin_count(bystander, CK_NRI_RUN_POD_SANDBOX, pod), 1);
			/* at the latest when it should have registered, or answered */
			nw_advance(w, 20 * S);
			if (!later)
				assert_true(p->ended);
			plugin_close(p);
			nw_settle(w);
			assert_int_equal(nw_connected(w), 1);
		}
	nw_free(w);
}

static void random_bytes_cost_their_own_connection(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *bystander = nw_ready(w, "50-bystander");
	w->rng = 4711;
	for (unsigned i = 0; i < 200; i++) {
		unsigned char bytes[200];
		struct plugin *p = nw_join(w, "10-net");
		p->mute = nw_random(w, 2);
		nw_settle(w);
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = nw_random(w, 3) ? (unsigned char)nw_random(w, 4)
						   : (unsigned char)nw_random(w, 256);
		bytes[0] = bytes[1] = bytes[2] = bytes[4] = bytes[5] = bytes[6] = 0;
		plugin_write(p, bytes, 1 + nw_random(w, sizeof(bytes)));
		nw_settle(w);
		plugin_close(p);
		nw_settle(w);
	}
	nw_run(w, "s1");
	assert_int_equal(plugin_count(bystander, CK_NRI_RUN_POD_SANDBOX, "s1"), 1);
	assert_int_equal(nw_connected(w), 1);
	nw_free(w);
}

static void unknown_calls_are_answered_so(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	uint32_t service = plugin_ask(p, "nri.pkg.api.v1alpha1.HostFunctions", "Log", NULL, 0);
	uint32_t method = plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "Explode", NULL, 0);
	nw_settle(w);
	assert_int_equal(plugin_answer_to(p, service)->code, 12);
	assert_int_equal(plugin_answer_to(p, method)->code, 12);
	assert_false(p->ended);
	nw_free(w);
}

static void calls_before_registration_are_refused(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-net");
	p->mute = true;
	nw_settle(w);
	uint32_t stream = plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers",
				     "\x0a\x04\x0a\x02"
				     "c1",
				     6);
	nw_settle(w);
	const struct plugin_answer *answer = plugin_answer_to(p, stream);
	assert_true(p->ended || (answer && answer->code));
	assert_string_equal(w->changes, "");
	nw_free(w);
}

static unsigned logged(const struct nw *w, const char *text)
{
	unsigned n = 0;
	for (const char *at = w->log; (at = strstr(at, text)); at++)
		n++;
	return n;
}

static void the_host_may_introduce_its_runtime_later(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *early = nw_ready(w, "10-early");
	assert_int_equal(ck_nri_introduce(w->nri, "containerd", "v9", true), 0);
	struct plugin *late = nw_ready(w, "20-late");
	assert_string_equal(early->runtime_name, "crikeep");
	assert_string_equal(late->runtime_name, "containerd");
	assert_string_equal(late->runtime_version, "v9");
	nw_free(w);
}

static void who_wants_a_pid_too_early_is_warned_about(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	static const char text[] = "subscribes to StartContainer: before containerd that event has "
				   "no pid";
	assert_int_equal(ck_nri_introduce(w->nri, "containerd", "v9", true), 0);
	struct plugin *p = nw_join(w, "10-a");
	p->mask = 0x1fff & ~(1u << (CK_NRI_START_CONTAINER - 1));
	nw_settle(w);
	assert_true(p->synchronized);
	assert_int_equal(logged(w, text), 0);
	nw_ready(w, "20-b");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_send(w, CK_NRI_START_CONTAINER, "c1", NULL);
	nw_settle(w);
	assert_int_equal(logged(w, text), 1);
	assert_int_equal(ck_nri_introduce(w->nri, "cri-o", "1.30", false), 0);
	nw_ready(w, "30-c");
	assert_int_equal(logged(w, "subscribes to StartContainer"), 1);
	nw_free(w);
}

static void there_is_room_for_so_many(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	for (unsigned i = 0; i < CK_NRI_PLUGINS_MAX; i++)
		nw_ready(w, "10-net");
	struct plugin *more = nw_join(w, "11-more");
	nw_settle(w);
	assert_true(more->ended);
	assert_int_equal(nw_connected(w), CK_NRI_PLUGINS_MAX);
	plugin_close(w->plugins[0]);
	nw_settle(w);
	nw_ready(w, "11-more");
	nw_free(w);
}

/* idle connections have seats of their own, and the oldest makes room */
static void who_does_not_register_keeps_nobody_out(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *idle[CK_NRI_UNREGISTERED_MAX + 10];
	for (unsigned i = 0; i < CK_NRI_PLUGINS_MAX - 1; i++)
		nw_ready(w, "10-net");
	for (unsigned i = 0; i < CK_NRI_UNREGISTERED_MAX + 10; i++) {
		idle[i] = nw_join(w, "20-idle");
		idle[i]->mute = true;
		nw_settle(w);
	}
	for (unsigned i = 0; i < CK_NRI_UNREGISTERED_MAX + 10; i++)
		assert_int_equal(idle[i]->ended, i < 10);
	struct plugin *last = nw_ready(w, "30-last");
	assert_true(idle[10]->ended && !idle[11]->ended && !last->ended);
	for (unsigned i = 0; i < CK_NRI_PLUGINS_MAX - 1; i++)
		assert_false(w->plugins[i]->ended);
	nw_free(w);
}

/* its registration lies unread in its socket while others connect */
static void who_has_just_registered_does_not_make_room(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-net");
	plugin_step(p);
	for (unsigned i = 0; i < CK_NRI_UNREGISTERED_MAX; i++)
		nw_join(w, "20-idle")->mute = true;
	nw_settle(w);
	assert_true(p->synchronized && !p->ended);
	nw_free(w);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void the_list_holds_what_is_there(void **state)
{
	struct plugin_buffer message = { .p = NULL };
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_pod(w, "s2"); /* made, and not committed */
	struct plugin *p = nw_ready(w, "10-net");
	assert_string_equal(plugin_story(p), "Synchronize(s1 c1)");
	nw_message(nw_find(w, "s1"), &message);
	assert_int_equal(p->items[0].len, message.len);
	/* as the host says it, all of it */
	assert_memory_equal(p->items[0].payload, message.p, message.len);
	plugin_bytes_free(&message);
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s2", NULL);
	nw_settle(w);
	assert_string_equal(plugin_story(p), "Synchronize(s1 c1) RunPodSandbox(s2)");
	nw_free(w);
}

static void what_comes_within_the_list_is_not_lost(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	struct plugin *p = nw_join(w, "10-net");
	plugin_rule(p, PLUGIN_SYNCHRONIZE, PLUGIN_HOLDS, 1);
	nw_settle(w);
	nw_create(w, "c1", "s1");
	assert_string_equal(plugin_story(p), "Synchronize(s1)");
	plugin_release(p);
	nw_settle(w);
	assert_string_equal(plugin_story(p), "Synchronize(s1) CreateContainer(c1)");
	assert_string_equal(p->wrong, "");
	nw_free(w);
}

static void what_comes_while_the_host_describes_is_not_lost(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	w->hold[NW_DESCRIBE] = true;
	struct plugin *p = nw_join(w, "10-net");
	nw_settle(w);
	assert_int_equal(p->chunks, 0);
	nw_pod(w, "s2");
	assert_int_equal(nw_choose(w, "s2", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s2", NULL);
	nw_settle(w);
	nw_release(w, NW_DESCRIBE);
	nw_settle(w);
	assert_string_equal(plugin_story(p), "Synchronize(s1) RunPodSandbox(s2)");
	nw_free(w);
}

static void what_is_gone_by_then_is_left_out(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	nw_run(w, "s2");
	w->hold[NW_DESCRIBE] = true;
	struct plugin *p = nw_join(w, "10-net");
	nw_settle(w);
	nw_find(w, "s1")->gone = true;
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	nw_release(w, NW_DESCRIBE);
	nw_settle(w);
	/* and so it hears nothing of its end */
	assert_string_equal(plugin_story(p), "Synchronize(s2)");
	nw_free(w);
}

static void the_host_is_asked_again(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	w->fail[NW_DESCRIBE] = 14;
	struct plugin *p = nw_join(w, "10-net");
	nw_settle(w);
	assert_int_equal(p->chunks, 0);
	unsigned asked = w->asked[NW_DESCRIBE];
	nw_advance(w, 600 * CK_NS_PER_MS);
	assert_in_range(w->asked[NW_DESCRIBE], asked + 1, asked + 3);
	w->fail[NW_DESCRIBE] = 0;
	nw_advance(w, 3 * S);
	assert_string_equal(plugin_story(p), "Synchronize(s1)");
	nw_free(w);
}

/* on both sides of the plugin that is being asked */
static void what_is_being_stopped_is_listed(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	nw_run(w, "s2");
	struct plugin *p = nw_ready(w, "10-net");
	plugin_rule(p, CK_NRI_STOP_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	struct plugin *early = nw_ready(w, "05-early"), *late = nw_ready(w, "20-late");
	plugin_release(p);
	nw_settle(w);
	struct plugin *later = nw_ready(w, "10-later");
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", NULL); /* the kubelet says it again */
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	assert_string_equal(plugin_story(p),
			    "Synchronize(s1 s2) StopPodSandbox(s1) RemovePodSandbox(s1)");
	assert_string_equal(plugin_story(early), "Synchronize(s1 s2) RemovePodSandbox(s1)");
	assert_string_equal(plugin_story(late), "Synchronize(s1 s2) RemovePodSandbox(s1)");
	assert_string_equal(plugin_story(later), "Synchronize(s1 s2) RemovePodSandbox(s1)");
	nw_free(w);
}

static void who_joins_before_a_stop_is_sent_hears_it(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	struct plugin *p = nw_ready(w, "10-net");
	w->hold[NW_DESCRIBE] = true;
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	struct plugin *early = nw_join(w, "05-early"), *late = nw_join(w, "20-late");
	nw_settle(w);
	assert_int_equal(plugin_count(p, CK_NRI_STOP_POD_SANDBOX, "s1"), 0);
	nw_release(w, NW_DESCRIBE);
	nw_settle(w);
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	const char *both = "Synchronize(s1) StopPodSandbox(s1) RemovePodSandbox(s1)";
	assert_string_equal(plugin_story(p), both);
	assert_string_equal(plugin_story(early), both);
	assert_string_equal(plugin_story(late), both);
	nw_free(w);
}

/* It was never stopped, and nobody subscribed to its Stop. */
static void who_joins_while_a_remove_is_prepared_hears_no_stop_after_it(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-net");
	p->mask = 1u << (CK_NRI_REMOVE_POD_SANDBOX - 1);
	nw_settle(w);
	nw_run(w, "s1");
	w->hold[NW_DESCRIBE] = true;
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	struct plugin *late = nw_join(w, "20-late");
	nw_settle(w);
	nw_release(w, NW_DESCRIBE);
	nw_settle(w);
	assert_string_equal(plugin_story(late), "Synchronize(s1) RemovePodSandbox(s1)");
	nw_free(w);
}

static void what_plugins_were_told_is_removed_is_not_listed(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	nw_run(w, "s2");
	struct plugin *p = nw_ready(w, "10-net");
	plugin_rule(p, CK_NRI_REMOVE_POD_SANDBOX, PLUGIN_HOLDS, 1);
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	struct plugin *early = nw_ready(w, "05-early"), *late = nw_ready(w, "20-late");
	plugin_release(p);
	nw_settle(w);
	assert_string_equal(plugin_story(early), "Synchronize(s2)");
	assert_string_equal(plugin_story(late), "Synchronize(s2)");
	nw_free(w);
}

static const struct plugin_item *item_of(const struct plugin *p, const char *id)
{
	for (size_t i = 0; i < p->items_n; i++)
		if (!strcmp(p->items[i].id, id))
			return &p->items[i];
	fail_msg("%s is not in the list of %s-%s", id, p->index, p->base);
	return NULL;
}

/* Its state says what StopContainer would say, whether that was sent or not. */
static void a_stopped_container_is_listed_with_its_state(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	nw_create(w, "c1", "s1")->state = 4;
	nw_create(w, "c2", "s1")->state = 3;
	nw_create(w, "c3", "s1")->state = 4;
	struct plugin *p = nw_ready(w, "10-net");
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", NULL);
	nw_settle(w);
	struct plugin *late = nw_ready(w, "20-late");
	const struct plugin_item *stopped = item_of(late, "c1"), *running = item_of(late, "c2");
	assert_non_null(memmem(stopped->payload, stopped->len, "\x20\4", 2));
	assert_non_null(memmem(running->payload, running->len, "\x20\3", 2));
	static const char *const ids[] = { "c1", "c2", "c3" };
	for (unsigned i = 0; i < 3; i++) {
		nw_send(w, CK_NRI_STOP_CONTAINER, ids[i], NULL); /* it is seen in a list, say */
		nw_send(w, CK_NRI_REMOVE_CONTAINER, ids[i], NULL);
		nw_settle(w);
	}
	const char *story = "Synchronize(s1 c1 c2 c3) RemoveContainer(c1) StopContainer(c2) "
			    "RemoveContainer(c2) RemoveContainer(c3)";
	assert_string_equal(plugin_story(p), story);
	assert_string_equal(plugin_story(late), story);
	nw_free(w);
}

/* A plugin would take it for gone. What is known of it is its id and its names. */
static void what_the_runtime_never_describes_is_listed_all_the_same(void **state)
{
	struct plugin_buffer message = { .p = NULL };
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	w->fail[NW_DESCRIBE] = 13;
	struct plugin *p = nw_join(w, "10-net");
	nw_advance(w, CK_NRI_DESCRIBE_MAX + 2 * S);
	assert_string_equal(plugin_story(p), "Synchronize(s1)");
	plugin_text(&message, 1, "s1");
	assert_memory_equal(p->items[0].payload, message.p, message.len);
	plugin_bytes_free(&message);
	assert_non_null(strstr(w->log, "10-net is not told all of s1"));
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	assert_string_equal(plugin_story(p),
			    "Synchronize(s1) StopPodSandbox(s1) RemovePodSandbox(s1)");
	nw_free(w);
}

static void a_long_list_comes_in_pieces(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	for (unsigned i = 0; i < 12; i++) {
		char id[16];
		snprintf(id, sizeof(id), "s%u", i);
		nw_run(w, id)->fat = 1 << 20;
	}
	nw_create(w, "c1", "s1");
	struct plugin *p = nw_ready(w, "10-net");
	assert_int_equal(p->lists, 1);
	assert_in_range(p->chunks, 4, 13);
	assert_int_equal(p->items_n, 13);
	for (unsigned i = 0; i < 12; i++) {
		char id[16];
		snprintf(id, sizeof(id), "s%u", i);
		assert_int_equal(plugin_listed(p, id), 1);
	}
	assert_int_equal(plugin_listed(p, "c1"), 1);
	assert_string_equal(p->wrong, "");
	nw_free(w);
}

static void who_cannot_take_pieces_is_closed_or_gets_it_whole(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s0");
	nw_create(w, "c0", "s0");
	struct plugin *p = nw_join(w, "10-old");
	p->old = true;
	p->mask = 0x7ff;
	nw_settle(w);
	assert_int_equal(p->chunks, 1);
	assert_int_equal(p->items_n, 2);
	for (unsigned i = 1; i < 12; i++) {
		char id[16];
		snprintf(id, sizeof(id), "s%u", i);
		nw_run(w, id)->fat = 1 << 20;
	}
	struct plugin *old = nw_join(w, "20-old");
	old->old = true;
	old->mask = 0x7ff;
	nw_settle(w);
	assert_true(old->ended); /* it took the first piece for everything */
	assert_int_equal(old->chunks, 1);
	struct plugin *able = nw_join(w, "30-able");
	able->old = able->knows_pieces = true;
	able->mask = 0x7ff;
	nw_settle(w);
	assert_false(able->ended);
	assert_int_equal(able->items_n, 13);
	assert_false(p->ended);
	nw_free(w);
}

static void what_fits_no_message_hangs_nobody(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_run(w, "s1");
	nw_run(w, "s2")->fat = 5 << 20;
	struct plugin *p = nw_join(w, "10-net");
	nw_advance(w, 40 * S);
	assert_true(p->ended || (p->synchronized && plugin_listed(p, "s1") == 1));
	assert_string_equal(p->wrong, "");
	nw_free(w);
}

static void a_returning_plugin_is_another_connection(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *first = nw_ready(w, "10-net");
	nw_run(w, "s1");
	plugin_close(first);
	nw_settle(w);
	assert_int_equal(nw_connected(w), 0);
	nw_run(w, "s2");
	struct plugin *again = nw_ready(w, "10-net");
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	assert_string_equal(plugin_story(again),
			    "Synchronize(s1 s2) StopPodSandbox(s1) RemovePodSandbox(s1)");
	nw_free(w);
}

/* ---- launched, and the end ------------------------------------------------------------------- */

static const struct ck_nri_launched two[] = { { "10-cpu", "cores: 2\n" }, { "20-net", NULL } };

static void launch_two(struct nw *w)
{
	w->options.launched = two;
	w->options.launched_n = 2;
}

static void launched_plugins_are_who_their_files_say(void **state)
{
	(void)state;
	struct nw *w = opened(launch_two);
	nw_settle(w);
	assert_true(w->launched[0] >= 0 && w->launched[1] >= 0);
	struct plugin *cpu = plugin_on(w->launched[0], "77-somebody"),
		      *net = plugin_on(w->launched[1], "20-net");
	w->launched[0] = w->launched[1] = -1;
	nw_adopt(w, cpu);
	nw_adopt(w, net);
	nw_settle(w);
	assert_true(cpu->synchronized && net->synchronized);
	assert_string_equal(cpu->config, "cores: 2\n");
	assert_string_equal(net->config, "");
	assert_null(nw_plugin(w, "77-somebody"));
	assert_non_null(nw_plugin(w, "10-cpu"));
	assert_int_equal(nw_plugin(w, "10-cpu")->launched, 1);
	nw_free(w);
}

static void one_that_cannot_be_launched_stops_nobody(void **state)
{
	(void)state;
	struct nw *w = nw_new();
	launch_two(w);
	w->launch_fails = -CK_EIO;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	nw_settle(w);
	assert_int_equal(nw_connected(w), 0);
	assert_non_null(strstr(w->log, "10-cpu"));
	still_serves(w, "s1");
	nw_free(w);
}

static void a_socket_is_not_needed(void **state)
{
	(void)state;
	struct nw *w = nw_new();
	launch_two(w);
	w->options.socket_path = NULL;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	nw_settle(w);
	nw_adopt(w, plugin_on(w->launched[1], "20-net"));
	w->launched[1] = -1;
	nw_settle(w);
	nw_run(w, "s1");
	assert_string_equal(plugin_story(w->plugins[0]), "Synchronize() RunPodSandbox(s1)");
	assert_int_not_equal(access(w->socket, F_OK), 0);
	nw_free(w);
}

static void at_the_end_plugins_are_told(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	nw_run(w, "s1");
	ck_nri_stop(w->nri);
	nw_settle(w);
	assert_int_equal(plugin_count(p, PLUGIN_SHUTDOWN, NULL), 1);
	struct plugin *late = plugin_dial(w->socket, "20-late");
	if (late) {
		nw_adopt(w, late);
		nw_settle(w);
		assert_false(late->registered);
	}
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", NULL); /* events still go out */
	nw_settle(w);
	assert_int_equal(plugin_count(p, CK_NRI_STOP_POD_SANDBOX, "s1"), 1);
	nw_close(w);
	plugin_step(p);
	assert_true(p->ended);
	nw_free(w);
}

static void a_live_socket_is_left_alone(void **state)
{
	(void)state;
	struct nw *w = nw_started(), *other = nw_new();
	other->options.socket_path = w->socket;
	assert_int_equal(nw_open(other), -CK_EOWNED);
	nw_free(other);
	still_serves(w, "s1");
	nw_free(w);
}

static void a_dead_socket_is_replaced(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	(void)state;
	struct nw *w = nw_new();
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(at.sun_path, w->socket, strlen(w->socket));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	if (nw_open(w) < 0)
		fail_msg("open: %s", w->err.text);
	nw_start(w);
	nw_ready(w, "10-net");
	nw_free(w);
}

static void a_file_in_the_way_stays(void **state)
{
	(void)state;
	struct nw *w = nw_new();
	FILE *file = fopen(w->socket, "w");
	assert_non_null(file);
	fclose(file);
	if (nw_open(w) == 0) /* either refuses */
		assert_true(ck_nri_start(w->nri, NULL, &w->err) < 0);
	struct stat st;
	assert_int_equal(stat(w->socket, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	nw_free(w);
}

static void odd_options_are_refused(void **state)
{
	static const struct ck_nri_rule required[] = { { "10-net", CK_NRI_REQUIRED },
						       { "x", (enum ck_nri_policy)9 } };
	(void)state;
	struct nw *w = nw_new();
	w->options.policy = CK_NRI_REQUIRED; /* of plugins nobody named */
	assert_int_equal(nw_open(w), -CK_EINVAL);
	w->options.policy = (enum ck_nri_policy)0;
	w->options.rules = required;
	w->options.rules_n = 2;
	assert_int_equal(nw_open(w), -CK_EINVAL);
	w->options.rules_n = 1;
	w->host.describe = NULL;
	assert_int_equal(nw_open(w), -CK_EINVAL);
	w->options.host = NULL;
	assert_int_equal(nw_open(w), -CK_EINVAL);
	w->options.host = &w->host;
	w->options.size = 0;
	assert_int_equal(nw_open(w), -CK_EINVAL);
	w->nri = NULL;
	nw_free(w);
}

static void start_wants_to_know_what_there_is(void **state)
{
	(void)state;
	struct nw *w = nw_new();
	w->host.snapshot = NULL;
	assert_int_equal(nw_open(w), 0);
	assert_int_equal(ck_nri_start(w->nri, NULL, &w->err), -CK_EINVAL);
	nw_free(w);
	w = nw_started();
	assert_int_equal(ck_nri_start(w->nri, NULL, &w->err), -CK_ESTATE);
	nw_free(w);
}

/* ---- without memory -------------------------------------------------------------------------- */

/* a whole life; what fails may end a connection or an event, and nothing else */
static void short_life(struct nw *w)
{
	struct nw_sent sent[3] = { { .ended = 0 } };
	int sends[3] = { -1, -1, -1 };
	if (nw_open(w) < 0)
		return;
	if (ck_nri_start(w->nri, NULL, &w->err) == 0) {
		nw_pod(w, "s1");
		nw_find(w, "s1")->visible = true;
		struct plugin *p = plugin_dial(w->socket, "10-net");
		if (p)
			nw_adopt(w, p);
		nw_settle(w);
		nw_pod(w, "s2");
		if (nw_choose(w, "s2", NULL, 0) == 0) {
			struct ck_nri_call call = nw_call_of(w, CK_NRI_RUN_POD_SANDBOX, "s2");
			sends[0] = nw_send_call(w, &call, &sent[0]);
			nw_settle(w);
		}
		struct ck_nri_call stop = nw_call_of(w, CK_NRI_STOP_POD_SANDBOX, "s1");
		sends[1] = nw_send_call(w, &stop, &sent[1]);
		stop.event = CK_NRI_REMOVE_POD_SANDBOX;
		sends[2] = nw_send_call(w, &stop, &sent[2]);
		if (p)
			plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers",
				   "\x0a\x04\x0a\x02"
				   "c1",
				   6);
		nw_advance(w, 40 * S);
	}
	nw_close(w);
	for (unsigned i = 0; i < 3; i++) {
		/* each callback once, whatever happened */
		assert_int_equal(sent[i].ended, sends[i] == 0);
		nw_sent_free(&sent[i]);
	}
}

/* @forever: it does not come back */
static unsigned lives_without(bool forever)
{
	unsigned n = 0;
	bool hit = true;
	while (hit) {
		struct nw *w = nw_new();
		ck_fault_arm(CK_FAULT_ALLOC, ++n, forever);
		short_life(w);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		nw_free(w);
		assert_true(n < 5000);
	}
	return n - 1;
}

static void memory_may_be_gone_at_any_time(void **state)
{
	(void)state;
	assert_true(lives_without(false) > 50);
	assert_true(lives_without(true) > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plugin_is_told_who_it_talks_to),
		cmocka_unit_test(bytes_may_come_one_by_one),
		cmocka_unit_test(odd_names_are_refused),
		cmocka_unit_test(a_plugin_registers_once),
		cmocka_unit_test(a_mask_of_unknown_events_is_refused),
		cmocka_unit_test(no_mask_is_everything),
		cmocka_unit_test(who_says_nothing_is_closed),
		cmocka_unit_test(who_does_not_answer_configure_is_closed),
		cmocka_unit_test(errors_of_the_handshake_end_it),
		cmocka_unit_test(synchronize_has_time_of_its_own),
		cmocka_unit_test(other_users_are_turned_away),
		cmocka_unit_test(the_socket_is_its_owner_s_only),
		cmocka_unit_test(garbage_costs_its_own_connection),
		cmocka_unit_test(random_bytes_cost_their_own_connection),
		cmocka_unit_test(unknown_calls_are_answered_so),
		cmocka_unit_test(calls_before_registration_are_refused),
		cmocka_unit_test(the_host_may_introduce_its_runtime_later),
		cmocka_unit_test(who_wants_a_pid_too_early_is_warned_about),
		cmocka_unit_test(there_is_room_for_so_many),
		cmocka_unit_test(who_does_not_register_keeps_nobody_out),
		cmocka_unit_test(who_has_just_registered_does_not_make_room),
		cmocka_unit_test(the_list_holds_what_is_there),
		cmocka_unit_test(what_comes_within_the_list_is_not_lost),
		cmocka_unit_test(what_comes_while_the_host_describes_is_not_lost),
		cmocka_unit_test(what_is_gone_by_then_is_left_out),
		cmocka_unit_test(the_host_is_asked_again),
		cmocka_unit_test(what_is_being_stopped_is_listed),
		cmocka_unit_test(who_joins_before_a_stop_is_sent_hears_it),
		cmocka_unit_test(who_joins_while_a_remove_is_prepared_hears_no_stop_after_it),
		cmocka_unit_test(what_plugins_were_told_is_removed_is_not_listed),
		cmocka_unit_test(a_stopped_container_is_listed_with_its_state),
		cmocka_unit_test(what_the_runtime_never_describes_is_listed_all_the_same),
		cmocka_unit_test(a_long_list_comes_in_pieces),
		cmocka_unit_test(who_cannot_take_pieces_is_closed_or_gets_it_whole),
		cmocka_unit_test(what_fits_no_message_hangs_nobody),
		cmocka_unit_test(a_returning_plugin_is_another_connection),
		cmocka_unit_test(launched_plugins_are_who_their_files_say),
		cmocka_unit_test(one_that_cannot_be_launched_stops_nobody),
		cmocka_unit_test(a_socket_is_not_needed),
		cmocka_unit_test(at_the_end_plugins_are_told),
		cmocka_unit_test(a_live_socket_is_left_alone),
		cmocka_unit_test(a_dead_socket_is_replaced),
		cmocka_unit_test(a_file_in_the_way_stays),
		cmocka_unit_test(odd_options_are_refused),
		cmocka_unit_test(start_wants_to_know_what_there_is),
		cmocka_unit_test(memory_may_be_gone_at_any_time),
	};
	return CK_TEST_MAIN(tests);
}
