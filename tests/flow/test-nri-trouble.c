/* SPDX-License-Identifier: Apache-2.0 */
/* What must not go wrong when something does: calls at odd moments, a host that cannot tell, memory
 * that is gone. */
#define CK_TEST_SECONDS 120
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "hooks/nri-int.h"
#include "src/base/fault.h"
#include "tests/flow/nri-world.h"

#define S CK_NS_PER_S

/* ---- before the start ------------------------------------------------------------------------ */

static void a_plugin_may_dial_before_the_start(void **state)
{
	(void)state;
	struct nw *w = nw_new();
	assert_int_equal(nw_open(w), 0);
	struct plugin *p = nw_join(w, "10-net");
	plugin_step(p);
	assert_int_equal(ck_nri_process(w->nri, &w->err), 0);
	struct pollfd pfd = { .fd = ck_nri_fd(w->nri), .events = POLLIN };
	/* or the host's loop would spin until the runtime is there */
	assert_int_equal(poll(&pfd, 1, 0), 0);
	nw_start(w);
	nw_settle(w);
	assert_true(p->synchronized);
	nw_free(w);
}

/* somebody lives there who speaks something else: a connect() fails, and yet the name is not
 * free */
static void another_kind_of_socket_is_left_alone(void **state)
{
	(void)state;
	struct nw *w = nw_new();
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", w->socket);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(nw_open(w) < 0);
	assert_int_equal(stat(w->socket, &st), 0);
	close(fd);
	nw_free(w);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* or the host's loop would go round once more for nothing */
static void what_the_host_answers_at_once_wakes_nobody(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_ready(w, "10-net");
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", NULL);
	unsigned asked = w->asked[NW_DESCRIBE];
	assert_int_equal(ck_nri_process(w->nri, &w->err), 0);
	assert_true(w->asked[NW_DESCRIBE] > asked);
	struct pollfd pfd = { .fd = ck_nri_fd(w->nri), .events = POLLIN };
	assert_int_equal(poll(&pfd, 1, 0), 0);
	nw_settle(w);
	nw_free(w);
}

static void release(const struct ck_nri_result *result, void *userdata)
{
	(void)result;
	nw_release(userdata, NW_DESCRIBE);
}

static void work_a_callback_leaves_is_done(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	nw_pod(w, "s1");
	nw_container(w, "c1", "s1");
	assert_int_equal(nw_choose(w, "c1", NULL, 0), 0);
	w->hold[NW_DESCRIBE] = true;
	/* its pod is asked for, and only then itself */
	nw_send(w, CK_NRI_CREATE_CONTAINER, "c1", NULL);
	nw_settle(w);
	const struct ck_nri_call nobodys = { .size = sizeof(nobodys),
					     .event = CK_NRI_START_CONTAINER,
					     .container_id = "c9" };
	assert_int_equal(ck_nri_send(w->nri, &nobodys, release, w, &w->err), 0);
	nw_settle(w);
	assert_int_equal(plugin_count(p, CK_NRI_CREATE_CONTAINER, "c1"), 1);
	nw_free(w);
}

/* ---- a host that cannot tell ----------------------------------------------------------------- */

static struct {
	void (*describe)(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata);
	const char *broken;
	int grpc;
} host;

static void describe_but_one(struct ck_nri_job *job, enum ck_kind kind, const char *id,
			     void *userdata)
{
	if (host.broken && !strcmp(id, host.broken))
		ck_nri_job_done(job, host.grpc, NULL, 0);
	else
		host.describe(job, kind, id, userdata);
}

/* @describe: in place of the world's, which is host.describe */
static struct nw *started_with(void (*describe)(struct ck_nri_job *job, enum ck_kind kind,
						const char *id, void *userdata))
{
	struct nw *w = nw_new();
	host.describe = w->host.describe;
	w->host.describe = describe;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	return w;
}

static struct nw *with_odd_host(const char *broken, int grpc)
{
	host.broken = NULL;
	struct nw *w = started_with(describe_but_one);
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_run(w, "s2");
	host.broken = broken;
	host.grpc = grpc;
	return w;
}

/* a stub whose start failed is not started again: one sick object must not cost a node its plugins
 * (R4) */
static void one_that_cannot_be_described_keeps_nobody_out(void **state)
{
	(void)state;
	struct nw *w = with_odd_host("s1", 2);
	struct plugin *p = nw_join(w, "10-net");
	nw_advance(w, 60 * S);
	/* a plugin would take it for gone, with what is in it (H1) */
	assert_string_equal(plugin_story(p), "Synchronize(s1 s2 c1)");
	assert_non_null(strstr(w->log, "not told all of s1"));
	host.broken = NULL;
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	assert_string_equal(plugin_story(p), "Synchronize(s1 s2 c1) StopPodSandbox(s1)");
	nw_free(w);
}

/* writes pods by names of fields, one of them wrong */
static void describe_by_name(struct ck_nri_job *job, enum ck_kind kind, const char *id,
			     void *userdata)
{
	struct ck_nri_message *pod = ck_nri_message_new(CK_NRI_POD_SANDBOX);
	(void)kind, (void)userdata;
	ck_nri_put_text(pod, "id", id);
	if (host.broken && !strcmp(id, host.broken))
		ck_nri_put_text(pod, "nmae", "web-0");
	ck_nri_job_described(job, pod);
}

static void what_a_host_writes_wrongly_is_logged(void **state)
{
	(void)state;
	for (int silent = 0; silent < 2; silent++) {
		struct nw *w = nw_new();
		host.broken = "s1";
		w->host.describe = describe_by_name;
		if (silent)
			w->host.log = NULL;
		assert_int_equal(nw_open(w), 0);
		nw_start(w);
		nw_run(w, "s1");
		nw_run(w, "s2");
		struct plugin *p = nw_join(w, "10-net");
		nw_advance(w, 60 * S);
		assert_string_equal(plugin_story(p), "Synchronize(s1 s2)");
		assert_int_equal(!strstr(w->log, "s1: PodSandbox: nmae: NRI has no such field"),
				 silent);
		nw_free(w);
	}
}

/* but where the runtime is away, half a list would never be put right (R3) */
static void no_half_list_while_the_runtime_is_away(void **state)
{
	(void)state;
	struct nw *w = with_odd_host("s1", 14);
	struct plugin *p = nw_join(w, "10-net");
	nw_advance(w, 60 * S);
	assert_true(p->ended);
	assert_int_equal(p->chunks, 0);
	nw_free(w);
}

/* what is known of a pod has to do when the runtime cannot tell of it while its container ends */
static void a_container_s_end_names_its_pod(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0); /* described by nobody so far */
	nw_create(w, "c1", "s1");
	struct ck_nri_object *object = ck_nri_object_find(w->nri, CK_SANDBOX, "s1");
	assert_non_null(object);
	object->described = false; /* as behind a restart */
	nw_find(w, "s1")->gone = true;
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", NULL);
	nw_settle(w);
	const struct plugin_heard *heard = plugin_last(p, CK_NRI_STOP_CONTAINER);
	assert_non_null(heard);
	assert_string_equal(heard->pod, "s1");
	nw_free(w);
}

static void a_slow_list_is_called_so(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_join(w, "10-net");
	plugin_rule(p, PLUGIN_SYNCHRONIZE, PLUGIN_HOLDS, 0);
	nw_advance(w, 11 * S);
	assert_true(p->ended);
	assert_non_null(strstr(w->log, "Synchronize: no answer within 10s"));
	assert_null(strstr(w->log, "has not registered"));
	nw_free(w);
}

/* ---- what cannot be sent --------------------------------------------------------------------- */

static void who_could_not_be_told_is_not_told_of_the_end(void **state)
{
	static const struct ck_nri_rule rules[] = { { "10-net", CK_NRI_IGNORE },
						    { "20-cpu", CK_NRI_ERROR } };
	(void)state;
	struct nw *w = nw_new();
	w->options.rules = rules;
	w->options.rules_n = 2;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	struct plugin *p = nw_ready(w, "10-net"), *q = nw_ready(w, "20-cpu");
	struct nw_sent sent;
	nw_pod(w, "s1")->fat = 5 << 20;
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	assert_non_null(strstr(sent.refusal, "20-cpu"));
	assert_int_equal(sent.told, 0);
	/* it is counted, and no reason to break the connection: they owe us nothing */
	assert_int_equal(nw_plugin(w, "10-net")->failed, 1);
	assert_int_equal(nw_connected(w), 2);
	nw_find(w, "s1")->fat = 0; /* now it would fit */
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
	nw_settle(w);
	assert_string_equal(plugin_story(p), "Synchronize()");
	assert_string_equal(plugin_story(q), "Synchronize()");
	nw_sent_free(&sent);
	nw_free(w);
}

/* Remove is preceded by Stop, and that is another event */
static void told_counts_the_event_itself(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct nw_sent sent;
	nw_ready(w, "10-net");
	nw_ready(w, "20-cpu");
	nw_run(w, "s1");
	nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_int_equal(sent.told, 2);
	nw_sent_free(&sent);
	nw_free(w);
}

/* ---- without memory -------------------------------------------------------------------------- */

static void without_any_memory_it_waits(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	nw_pod(w, "s1");
	nw_container(w, "c1", "s1");
	assert_int_equal(nw_choose(w, "c1", NULL, 0), 0);
	nw_send(w, CK_NRI_CREATE_CONTAINER, "c1", NULL);
	nw_settle(w);
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", NULL);
	ck_fault_arm(CK_FAULT_ALLOC, 1, true);
	assert_int_equal(ck_nri_process(w->nri, &w->err), 0);
	ck_fault_arm(0, 0, false);
	nw_advance(w, 5 * S);
	assert_int_equal(plugin_count(p, CK_NRI_STOP_CONTAINER, "c1"), 1);
	nw_free(w);
}

/* whatever fails: nobody is left out of the next try, and nothing ends the process */
static void a_send_that_failed_chose_nobody(void **state)
{
	(void)state;
	bool hit = true;
	for (unsigned n = 1; hit; n++) {
		struct nw_sent sent;
		struct nw *w = nw_started();
		struct plugin *p = nw_ready(w, "10-net"), *q = nw_ready(w, "20-cpu");
		nw_pod(w, "s1");
		struct ck_nri_call run = nw_call_of(w, CK_NRI_RUN_POD_SANDBOX, "s1");
		ck_fault_arm(CK_FAULT_ALLOC, n, false);
		int r = nw_send_call(w, &run, &sent);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		if (r < 0)
			assert_int_equal(nw_send_call(w, &run, &sent), 0);
		nw_advance(w, 5 * S); /* what needs memory is tried again */
		assert_int_equal(sent.ended, 1);
		/* refused is what has begun, and then could not be sent */
		assert_true(!sent.refusal[0] || (hit && r == 0));
		unsigned told = sent.refusal[0] ? 0 : 1;
		assert_in_range(plugin_count(p, CK_NRI_RUN_POD_SANDBOX, "s1"), told, 1);
		assert_in_range(plugin_count(q, CK_NRI_RUN_POD_SANDBOX, "s1"), told, 1);
		nw_send(w, CK_NRI_REMOVE_POD_SANDBOX, "s1", NULL);
		nw_settle(w);
		assert_int_equal(plugin_count(p, CK_NRI_REMOVE_POD_SANDBOX, "s1"),
				 plugin_count(p, CK_NRI_RUN_POD_SANDBOX, "s1"));
		assert_int_equal(plugin_count(q, CK_NRI_REMOVE_POD_SANDBOX, "s1"),
				 plugin_count(q, CK_NRI_RUN_POD_SANDBOX, "s1"));
		nw_sent_free(&sent);
		nw_free(w);
	}
}

/* true: its @n-th allocation has failed. Nobody announces it a second time */
static bool is_told_without_memory(unsigned n, bool old)
{
	static const struct ck_nri_rule rules[] = { { "10-net", CK_NRI_IGNORE } };
	struct nw_sent sent;
	struct nw *w = nw_new();
	w->options.rules = rules;
	w->options.rules_n = 1;
	assert_int_equal(nw_open(w), 0);
	nw_start(w);
	struct plugin *p = nw_join(w, "10-net");
	p->old = old;
	nw_settle(w);
	nw_pod(w, "s1");
	assert_int_equal(nw_choose(w, "s1", NULL, 0), 0);
	nw_send(w, CK_NRI_RUN_POD_SANDBOX, "s1", &sent);
	ck_fault_arm(CK_FAULT_ALLOC, n, false);
	nw_settle(w);
	bool hit = ck_fault_hit();
	ck_fault_arm(0, 0, false);
	nw_advance(w, 5 * S);
	assert_int_equal(sent.ended, 1);
	assert_false(p->ended);
	assert_int_equal(plugin_count(p, CK_NRI_RUN_POD_SANDBOX, "s1"), !sent.refusal[0]);
	nw_sent_free(&sent);
	nw_free(w);
	return hit;
}

static void an_announcement_waits_for_memory(void **state)
{
	(void)state;
	for (int old = 0; old <= 1; old++)
		for (unsigned n = 1; is_told_without_memory(n, old);)
			n++;
}

/* nobody tells of this end a second time: it is told when there is memory again, and in order; or
 * who cannot be told is disconnected */
static void an_end_outlives_want_of_memory(void **state)
{
	(void)state;
	bool hit = true;
	for (unsigned n = 1; hit; n++) {
		struct nw *w = nw_started();
		struct plugin *p = nw_ready(w, "10-net"), *q = nw_ready(w, "20-cpu");
		nw_run(w, "s1");
		nw_create(w, "c1", "s1");
		nw_released(w, "c1", true);
		nw_released(w, "s1", true);
		ck_fault_arm(CK_FAULT_ALLOC, n, false);
		ck_nri_process(w->nri, &w->err);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		nw_advance(w, 5 * S);
		for (int i = 0; i < 2; i++) {
			const struct plugin *at = i ? q : p;
			if (hit && at->ended)
				continue;
			assert_int_equal(plugin_count(at, CK_NRI_STOP_CONTAINER, "c1"), 1);
			assert_int_equal(plugin_count(at, CK_NRI_REMOVE_CONTAINER, "c1"), 1);
			assert_int_equal(plugin_count(at, CK_NRI_REMOVE_POD_SANDBOX, "s1"), 1);
			assert_true(plugin_last(at, CK_NRI_STOP_POD_SANDBOX)->at >
				    plugin_last(at, CK_NRI_REMOVE_CONTAINER)->at);
		}
		nw_free(w);
	}
}

/* what is sent meanwhile does not overtake it */
static void an_end_that_waits_for_memory_is_not_overtaken(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	struct nw_sent sent;
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	struct ck_nri_call stop = nw_call_of(w, CK_NRI_STOP_POD_SANDBOX, "s1");
	nw_released(w, "c1", true);
	ck_fault_arm(CK_FAULT_ALLOC, 1, false);
	int r = nw_send_call(w, &stop, &sent);
	ck_fault_arm(0, 0, false);
	nw_advance(w, 5 * S);
	assert_int_equal(plugin_count(p, CK_NRI_REMOVE_CONTAINER, "c1"), 1);
	if (r == 0)
		assert_true(plugin_last(p, CK_NRI_STOP_POD_SANDBOX)->at >
			    plugin_last(p, CK_NRI_REMOVE_CONTAINER)->at);
	nw_sent_free(&sent);
	nw_free(w);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* both vanish from the runtime at once; also then nothing of a pod ends before what is in it (R18,
 * R26) */
static void a_pod_ends_behind_its_containers(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	struct plugin *q = nw_ready(w, "20-cpu");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	nw_create(w, "c2", "s1");
	nw_released(w, "c1", true);
	nw_released(w, "c2", true);
	nw_released(w, "s1", true);
	nw_settle(w);
	for (int i = 0; i < 2; i++) {
		const struct plugin *at = i ? q : p;
		assert_true(plugin_last(at, CK_NRI_STOP_POD_SANDBOX)->at >
			    plugin_last(at, CK_NRI_REMOVE_CONTAINER)->at);
		assert_int_equal(plugin_count(at, CK_NRI_REMOVE_CONTAINER, NULL), 2);
		assert_int_equal(plugin_count(at, CK_NRI_REMOVE_POD_SANDBOX, "s1"), 1);
	}
	nw_free(w);
}

/* an overdue plugin's queue may hold what was overtaken by the end */
static void behind_a_stop_comes_nothing_but_remove(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	plugin_rule(p, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	nw_run(w, "s2");
	nw_send(w, CK_NRI_STOP_CONTAINER, "c1", NULL);
	nw_send(w, CK_NRI_UPDATE_CONTAINER, "c1", NULL);
	nw_send(w, CK_NRI_REMOVE_CONTAINER, "c1", NULL);
	nw_advance(w, 8 * S);
	plugin_rule(p, CK_NRI_RUN_POD_SANDBOX, PLUGIN_AGREES, 0);
	plugin_release(p);
	nw_settle(w);
	assert_int_equal(plugin_count(p, CK_NRI_STOP_CONTAINER, "c1"), 1);
	assert_int_equal(plugin_count(p, CK_NRI_REMOVE_CONTAINER, "c1"), 1);
	assert_int_equal(plugin_count(p, CK_NRI_UPDATE_CONTAINER, "c1"), 0);
	nw_free(w);
}

/* anybody can name an id, and many would fill the memory */
static void the_end_of_what_nobody_knows_is_not_remembered(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	nw_pod(w, "s1");
	for (int i = 0; i < 2; i++) {
		struct nw_sent sent;
		nw_send(w, i ? CK_NRI_REMOVE_POD_SANDBOX : CK_NRI_STOP_POD_SANDBOX, "s1", &sent);
		nw_settle(w);
		assert_int_equal(sent.ended, 1);
		assert_int_equal(sent.told, 0);
		assert_null(w->nri->objects);
		nw_sent_free(&sent);
	}
	assert_int_equal(plugin_count(p, CK_NRI_STOP_POD_SANDBOX, NULL), 0);
	nw_free(w);
}

static void unseen(const struct ck_nri_result *result, void *userdata)
{
	(void)result, (void)userdata;
}

/* two of one name: each is told of what its name was told of in an earlier life (H3) */
static void debts_are_paid_to_all_of_a_name(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net"), *q = nw_ready(w, "10-net");
	struct nw_object *o = nw_pod(w, "s1");
	o->told.told = "10-net 10-net";
	const struct ck_nri_call stop = nw_call_of(w, CK_NRI_STOP_POD_SANDBOX, "s1");
	ck_nri_lock(w->nri);
	assert_int_equal(ck_dispatch_begin(w->nri, &stop, &o->told, (enum ck_nri_event)0, unseen,
					   NULL, &w->err),
			 0);
	ck_nri_unlock(w->nri);
	nw_settle(w);
	assert_int_equal(plugin_count(p, CK_NRI_STOP_POD_SANDBOX, "s1"), 1);
	assert_int_equal(plugin_count(q, CK_NRI_STOP_POD_SANDBOX, "s1"), 1);
	nw_free(w);
}

/* a container that cannot be described while host.grpc is not 0, and of which its host still knows
 * what plugins call it */
static void describe_last(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct nw_object o = { .id = "an-id-of-ours", .pod = "s1", .name = "main" };
	struct plugin_buffer last = { .p = NULL };
	o.told.kind = CK_CONTAINER;
	nw_message(&o, &last);
	if (kind == CK_CONTAINER && host.grpc)
		ck_nri_job_done(job, host.grpc, last.p, last.len);
	else
		host.describe(job, kind, id, userdata);
	plugin_bytes_free(&last);
}

/* a container of an earlier life ends, and a plugin is told with the id that its host gives */
static struct nw *end_one_not_described(int code)
{
	struct nw *w = started_with(describe_last);
	host.grpc = code;
	struct plugin *p = nw_ready(w, "10-net");
	nw_pod(w, "s1");
	struct nw_object *o = nw_container(w, "c1", "s1");
	o->told.told = "10-net";
	const struct ck_nri_call stop = nw_call_of(w, CK_NRI_STOP_CONTAINER, "c1");
	ck_nri_lock(w->nri);
	assert_int_equal(ck_dispatch_begin(w->nri, &stop, &o->told, CK_NRI_REMOVE_CONTAINER, unseen,
					   NULL, &w->err),
			 0);
	ck_nri_unlock(w->nri);
	nw_settle(w);
	assert_string_equal(plugin_story(p), "Synchronize() StopContainer(an-id-of-ours) "
					     "RemoveContainer(an-id-of-ours)");
	return w;
}

static void the_end_of_what_is_gone_is_told_as_the_host_says(void **state)
{
	(void)state;
	struct nw *w = end_one_not_described(5 /* NOT_FOUND */);
	/* it is no description for what begins */
	nw_container(w, "c2", "s1");
	assert_int_equal(nw_choose(w, "c2", NULL, 0), 0);
	struct nw_sent sent;
	nw_send(w, CK_NRI_CREATE_CONTAINER, "c2", &sent);
	nw_settle(w);
	assert_string_equal(sent.refusal, "it is gone");
	nw_sent_free(&sent);
	nw_free(w);
}

static void while_the_runtime_is_away_an_end_is_told_as_the_host_says(void **state)
{
	(void)state;
	nw_free(end_one_not_described(14 /* UNAVAILABLE */));
	nw_free(end_one_not_described(2 /* UNKNOWN */));
}

static void what_a_host_knows_takes_the_place_of_a_key_alone(void **state)
{
	(void)state;
	struct nw *w = nw_started();
	nw_ready(w, "10-net");
	nw_pod(w, "s1");
	nw_container(w, "c1", "s1");
	assert_int_equal(nw_choose(w, "c1", NULL, 0), 0);
	struct ck_nri_object *object = ck_nri_object_find(w->nri, CK_CONTAINER, "c1");
	const struct ck_blob *key = object->description;
	ck_nri_object_known(w->nri, object, NULL, 0);
	assert_ptr_equal(object->description, key);
	ck_nri_object_known(w->nri, object, "\x0a\x04ours", 6);
	assert_string_equal(object->nri_id, "ours");
	assert_false(object->described);
	/* as one has it that plugins were asked about, with all that its request tells */
	const struct ck_blob *fuller = object->description;
	ck_nri_object_known(w->nri, object, "\x0a\x05other", 7);
	assert_ptr_equal(object->description, fuller);
	assert_string_equal(object->nri_id, "ours");
	nw_free(w);
}

/* It is asked for again as long as one that the host knows nothing of. */
static void the_list_and_the_end_name_it_in_the_same_way(void **state)
{
	(void)state;
	for (int described = 0; described < 2; described++) {
		host.grpc = 0;
		struct nw *w = started_with(describe_last);
		nw_run(w, "s1");
		nw_create(w, "c1", "s1");
		host.grpc = 2 /* UNKNOWN */;
		struct plugin *p = nw_join(w, "10-net");
		nw_advance(w, 5 * S);
		if (described)
			host.grpc = 0;
		nw_advance(w, 60 * S);
		nw_send(w, CK_NRI_STOP_CONTAINER, "c1", NULL);
		nw_settle(w);
		assert_string_equal(plugin_story(p),
				    described ? "Synchronize(s1 c1) StopContainer(c1)"
					      : "Synchronize(s1 an-id-of-ours) "
						"StopContainer(an-id-of-ours)");
		nw_free(w);
	}
}

/* ---- what plugins want changed --------------------------------------------------------------- */

/* a container that has just gone is as one nobody knows: skipped */
static void an_update_of_what_has_just_gone_is_no_failure(void **state)
{
	static const unsigned char update[] = "\x12\x0f\x0a\x02"
					      "c1\x12\x09\x0a\x07\x12\x05\x0a\x03\x08\x80\x04";
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-net");
	struct nw_sent sent;
	nw_run(w, "s1");
	nw_create(w, "c1", "s1");
	w->fail[NW_UPDATE] = 5;
	plugin_replies(p, CK_NRI_CREATE_CONTAINER, update, sizeof(update) - 1);
	nw_container(w, "c2", "s1");
	assert_int_equal(nw_choose(w, "c2", NULL, 0), 0);
	nw_send(w, CK_NRI_CREATE_CONTAINER, "c2", &sent);
	nw_settle(w);
	assert_int_equal(w->asked[NW_UPDATE], 1);
	assert_string_equal(sent.refusal, "");
	nw_sent_free(&sent);
	unsigned char request[sizeof(update) - 1];
	memcpy(request, update, sizeof(request));
	request[0] = 0x0a; /* the same as a call of its own */
	uint32_t stream =
		plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "UpdateContainers", request, sizeof(request));
	nw_settle(w);
	assert_int_equal(w->asked[NW_UPDATE], 2);
	assert_int_equal(plugin_answer_to(p, stream)->len, 0); /* nothing failed */
	nw_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plugin_may_dial_before_the_start),
		cmocka_unit_test(what_the_host_answers_at_once_wakes_nobody),
		cmocka_unit_test(another_kind_of_socket_is_left_alone),
		cmocka_unit_test(work_a_callback_leaves_is_done),
		cmocka_unit_test(one_that_cannot_be_described_keeps_nobody_out),
		cmocka_unit_test(what_a_host_writes_wrongly_is_logged),
		cmocka_unit_test(no_half_list_while_the_runtime_is_away),
		cmocka_unit_test(a_container_s_end_names_its_pod),
		cmocka_unit_test(a_slow_list_is_called_so),
		cmocka_unit_test(who_could_not_be_told_is_not_told_of_the_end),
		cmocka_unit_test(told_counts_the_event_itself),
		cmocka_unit_test(a_send_that_failed_chose_nobody),
		cmocka_unit_test(an_announcement_waits_for_memory),
		cmocka_unit_test(an_end_outlives_want_of_memory),
		cmocka_unit_test(an_end_that_waits_for_memory_is_not_overtaken),
		cmocka_unit_test(a_pod_ends_behind_its_containers),
		cmocka_unit_test(behind_a_stop_comes_nothing_but_remove),
		cmocka_unit_test(the_end_of_what_nobody_knows_is_not_remembered),
		cmocka_unit_test(debts_are_paid_to_all_of_a_name),
		cmocka_unit_test(the_end_of_what_is_gone_is_told_as_the_host_says),
		cmocka_unit_test(while_the_runtime_is_away_an_end_is_told_as_the_host_says),
		cmocka_unit_test(what_a_host_knows_takes_the_place_of_a_key_alone),
		cmocka_unit_test(the_list_and_the_end_name_it_in_the_same_way),
		cmocka_unit_test(an_update_of_what_has_just_gone_is_no_failure),
		cmocka_unit_test(without_any_memory_it_waits),
	};
	return CK_TEST_MAIN(tests);
}
