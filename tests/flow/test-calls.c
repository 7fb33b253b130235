/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call at a time through serve.c, pass.c, act.c, create.c, rpc.c and upstream.c, where what
 * matters is the moment: what is reset before it is looked at, answered before it is whole, refused
 * while nobody listens, read later or never, or out of memory anywhere.
 */
#define CK_TEST_SECONDS 120
#include <sys/socket.h>

#include "tests/flow/ask.h"
#include "src/base/fault.h"
#include "src/rpc/address.h"
#include "tests/flow/cri-client.h"

#define S  CK_NS_PER_S
#define MS CK_NS_PER_MS

/* a client that reads when the test says so */
struct raw {
	int fd;
	struct ck_h2 *h2;
	struct ck_bytes rest;
};

static void raw_open(struct world *w, struct raw *raw)
{
	static const struct ck_h2_owner owner = { .opened = NULL };
	char path[300];
	snprintf(path, sizeof(path), "%s/cri.sock", w->dir);
	*raw = (struct raw){ .fd = ck_unix_connect(path, &w->err) };
	assert_true(raw->fd >= 0);
	assert_int_equal(
		ck_h2_new(CK_H2_CLIENT, 4 * CK_STREAM_WINDOW, &owner, NULL, &raw->h2, &w->err), 0);
}

/* false: the socket is full */
static bool raw_write(struct raw *raw)
{
	const unsigned char *p;
	for (ptrdiff_t n; (n = ck_h2_next(raw->h2, &p, NULL)) > 0;)
		assert_int_equal(ck_bytes_add(&raw->rest, p, (size_t)n), 0);
	size_t done = 0;
	while (done < raw->rest.len) {
		ssize_t n = send(raw->fd, raw->rest.p + done, raw->rest.len - done,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	if (done)
		memmove(raw->rest.p, raw->rest.p + done, raw->rest.len -= done);
	return !raw->rest.len;
}

static void raw_read(struct raw *raw)
{
	static unsigned char in[65536];
	for (ssize_t n; (n = recv(raw->fd, in, sizeof(in), MSG_DONTWAIT)) > 0;)
		assert_int_equal(ck_h2_feed(raw->h2, in, (size_t)n, NULL), 0);
}

static void raw_close(struct raw *raw)
{
	close(raw->fd);
	ck_h2_free(raw->h2);
	ck_bytes_free(&raw->rest);
}

/* turns the loop for real time */
static void wait_for(struct world *w, uint64_t ns)
{
	uint64_t until = ck_loop_now() + ns;
	world_settle(w);
	for (uint64_t now; (now = ck_loop_now()) < until; world_settle(w))
		assert_true(sd_event_run(w->daemon.loop.event, (until - now) / 1000 + 1) >= 0);
}

/* ---- GOAWAY ---------------------------------------------------------------------------------- */

static void ignored(struct ck_unary_reply *reply, void *userdata)
{
	*(int *)userdata = reply->status.code;
}

static void a_goaway_with_nobody_listening_any_more_is_come_back_from(void **state)
{
	struct world *w = world_new();
	struct ck_unary_options options = { .path = "Version", .timeout = 10 * S };
	char path[300];
	int grpc = -1;
	(void)state;
	snprintf(path, sizeof(path), "%s/runtime.sock", w->dir);
	peer_stop_listening(&w->peer);
	peer_plan(&w->peer, "PullImage")->hold = true;
	struct ck_connection *kubelet;
	struct ask pull;
	assert_true(ask_connect(w, &kubelet));
	/* the old connection has a call that takes its time */
	ask_id(w, ck_connection_h2(kubelet), &pull, "PullImage", "", NULL);
	world_settle(w);
	peer_goaway(&w->peer);
	/* crosses it */
	assert_int_equal(ck_unary_start(w->daemon.upstream, &options, NULL, 0, ignored, &grpc, NULL,
					&w->err),
			 0);
	world_settle(w);
	assert_int_equal(grpc, CK_GRPC_UNAVAILABLE);
	assert_int_equal(w->downs, 1);
	peer_listen(&w->peer, path);
	wait_for(w, 300 * CK_NS_PER_MS);
	assert_int_equal(w->ups, 2);
	peer_release(&w->peer, "PullImage");
	world_settle(w);
	assert_int_equal(pull.grpc, CK_GRPC_OK);
	ask_end(&pull);
	ck_connection_free(kubelet);
	world_free(w);
}

/* ---- K7: whether an answer arrived ----------------------------------------------------------- */

/* *@padding: what fills a socket */
static void stuff(struct world *w, struct raw *raw, struct ask *status, char **padding)
{
	size_t len = 3 * CK_STREAM_WINDOW / 2;
	*padding = malloc(len + 1);
	assert_non_null(*padding);
	memset(*padding, 'x', len);
	(*padding)[len] = '\0';
	struct peer_object *pod = peer_sandbox(&w->peer, "s1", "web");
	snprintf(pod->ns, sizeof(pod->ns), "ns"); /* as in the requests of cri-client.h */
	world_commit(w, pod);
	w->peer.padding = *padding;
	raw_open(w, raw);
	ask_id(w, raw->h2, status, "PodSandboxStatus", "s1", NULL);
	raw_write(raw);
	world_settle(w);
}

static void an_answer_without_a_deadline_waits_until_it_is_read(void **state)
{
	struct world *w = world_new();
	struct ask status, run;
	struct raw raw;
	char *padding;
	(void)state;
	stuff(w, &raw, &status, &padding);
	struct ck_bytes request = cri_run_request("late", 0);
	ask_begin(w, raw.h2, &run, "RunPodSandbox", &request, NULL);
	raw_write(&raw);
	wait_for(w, CK_ANSWER_SETTLE + CK_ANSWER_SETTLE / 2);
	assert_int_equal(peer_heard(&w->peer, "RunPodSandbox"), 1);
	for (int i = 0; i < 100 && !run.over; i++) {
		raw_read(&raw);
		world_settle(w);
	}
	assert_int_equal(status.grpc, CK_GRPC_OK);
	assert_int_equal(run.grpc, CK_GRPC_OK);
	assert_string_equal(run.id, "made-1");
	raw_close(&raw);
	ask_end(&run);
	ask_end(&status);
	world_free(w);
	free(padding);
}

static void an_answer_whose_stream_is_reset_unwritten_was_not_taken(void **state)
{
	struct world *w = world_new();
	struct ask status, create;
	struct raw raw;
	char *padding;
	(void)state;
	stuff(w, &raw, &status, &padding);
	struct ck_bytes request = cri_create_request("s1", "web", "app", 0);
	ask_begin(w, raw.h2, &create, "CreateContainer", &request, "100S");
	raw_write(&raw);
	world_settle(w);
	assert_int_equal(world_hides(w, peer_has(&w->peer, "made-1")), 0);
	ask_end(&create);
	raw_write(&raw);
	world_settle(w);
	assert_int_equal(world_hides(w, peer_has(&w->peer, "made-1")), 1);
	ask_end(&status);
	raw_close(&raw);
	world_free(w);
	free(padding);
}

/* @names: a call on another connection names the container meanwhile */
static void lose_the_answer(bool names)
{
	struct world *w = world_new();
	struct ask status, create, stop = { .grpc = -1 };
	struct ck_connection *other;
	struct raw raw;
	char *padding;
	stuff(w, &raw, &status, &padding);
	struct ck_bytes request = cri_create_request("s1", "web", "app", 0);
	ask_begin(w, raw.h2, &create, "CreateContainer", &request, NULL);
	raw_write(&raw);
	world_settle(w);
	assert_non_null(peer_has(&w->peer, "made-1"));
	assert_true(ask_connect(w, &other));
	if (names) {
		ask_id(w, ck_connection_h2(other), &stop, "StopContainer", "made-1", NULL);
		world_settle(w);
		assert_int_equal(stop.grpc, CK_GRPC_OK);
	}
	raw_close(&raw); /* with the answer unread */
	world_settle(w);
	assert_int_equal(world_hides(w, peer_has(&w->peer, "made-1")), !names);
	ask_end(&create);
	ask_end(&status);
	ask_end(&stop);
	ck_connection_free(other);
	world_free(w);
	free(padding);
}

static void a_container_whose_answer_was_not_read_is_hidden_again(void **state)
{
	(void)state;
	lose_the_answer(false);
}

/* whichever call: its caller knows the id */
static void a_container_that_a_call_has_named_stays(void **state)
{
	(void)state;
	lose_the_answer(true);
}

/* a container made and answered, the answer not read; w->daemon has done with the stream */
static struct world *answered(struct raw *raw, struct ask *create)
{
	struct world *w = world_new();
	struct peer_object *pod = peer_sandbox(&w->peer, "s1", "web");
	snprintf(pod->ns, sizeof(pod->ns), "ns");
	world_commit(w, pod);
	raw_open(w, raw);
	struct ck_bytes request = cri_create_request("s1", "web", "app", 0);
	ask_begin(w, raw->h2, create, "CreateContainer", &request, "10S");
	raw_write(raw);
	world_settle(w);
	assert_int_equal(world_hides(w, peer_has(&w->peer, "made-1")), 0);
	return w;
}

static void a_reset_that_crosses_the_answer_says_that_it_was_not_taken(void **state)
{
	struct ask create;
	struct raw raw;
	(void)state;
	struct world *w = answered(&raw, &create);
	ask_end(&create);
	raw_write(&raw);
	world_settle(w);
	assert_int_equal(world_hides(w, peer_has(&w->peer, "made-1")), 1);
	raw_close(&raw);
	world_free(w);
}

static void who_has_read_the_answer_may_go_with_other_things_unread(void **state)
{
	struct ask create, version;
	struct raw raw;
	(void)state;
	struct world *w = answered(&raw, &create);
	raw_read(&raw);
	assert_int_equal(create.grpc, CK_GRPC_OK);
	ask_id(w, raw.h2, &version, "Version", "", NULL); /* a sign of life */
	raw_write(&raw);
	world_settle(w);
	raw_close(&raw);
	world_settle(w);
	assert_int_equal(world_hides(w, peer_has(&w->peer, "made-1")), 0);
	ask_end(&create);
	ask_end(&version);
	world_free(w);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void a_client_that_takes_no_answers_is_not_listened_to(void **state)
{
	struct world *w = world_new();
	struct raw raw;
	unsigned n = 0, most = 200000;
	static struct ask calls[200000];
	(void)state;
	raw_open(w, &raw);
	for (; n < most; n++) {
		if (!ask_open(w, raw.h2, &calls[n], "RunPodSandbox", "no timeout"))
			break;
		ck_h2_stream_end(calls[n].stream);
		if (n % 64 == 0 && !raw_write(&raw))
			break;
		if (n % 64 == 0)
			world_settle(w);
	}
	assert_true(n < 50000);
	/* it reads after all, and gets every one */
	for (int i = 0; i < 1000 && !calls[n - 1].over; i++) {
		raw_read(&raw);
		raw_write(&raw);
		world_settle(w);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(calls[i].grpc, CK_GRPC_INVALID_ARGUMENT);
	raw_close(&raw);
	world_free(w);
}

static void calls_that_are_never_whole_are_limited(void **state)
{
	static struct ask calls[256];
	static char fill[3000];
	struct world *w = world_new();
	struct ck_connection *kubelet;
	unsigned refused = 0;
	(void)state;
	memset(fill, 'x', sizeof(fill));
	w->daemon.conf.client_memory = 4u << 20;
	assert_true(ask_connect(w, &kubelet));
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		struct ck_h2_header headers[23] = {
			CK_H2_HEADER(":method", "POST"),
			CK_H2_HEADER(":path", "/runtime.v1.RuntimeService/RunPodSandbox"),
			CK_H2_HEADER("content-type", "application/grpc"),
		};
		/* a byte on the wire, from the second on */
		for (size_t j = 3; j < CK_COUNT(headers); j++)
			headers[j] = (struct ck_h2_header){ "x", fill, 1, sizeof(fill) };
		calls[i] = (struct ask){ .w = w, .grpc = -1, .reader.max = CK_REQUEST_MAX };
		assert_int_equal(ck_h2_open(ck_connection_h2(kubelet), headers, CK_COUNT(headers),
					    &ask_handler, &calls[i], &calls[i].stream, NULL),
				 0);
		world_settle(w);
		refused += calls[i].grpc == CK_GRPC_RESOURCE_EXHAUSTED;
	}
	assert_true(refused > 180 && refused < 200);
	for (size_t i = 0; i < CK_COUNT(calls); i++)
		ask_end(&calls[i]);
	struct ask run;
	struct ck_bytes request = cri_run_request("pod", 0);
	ask_begin(w, ck_connection_h2(kubelet), &run, "RunPodSandbox", &request, NULL);
	world_settle(w);
	assert_int_equal(run.grpc, CK_GRPC_OK);
	ask_end(&run);
	world_settle(w);
	ck_connection_free(kubelet);
	world_free(w);
}

static void requests_for_a_runtime_that_does_not_read_are_limited(void **state)
{
	struct world *w = world_new();
	static struct ask calls[64];
	static unsigned char part[600000];
	struct ck_connection *kubelet;
	unsigned refused = 0;
	(void)state;
	w->daemon.conf.client_memory = 4u << 20;
	peer_plan(&w->peer, "PullImage")->deaf = true;
	assert_true(ask_connect(w, &kubelet));
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		assert_true(ask_open(w, ck_connection_h2(kubelet), &calls[i], "PullImage", NULL));
		ck_h2_stream_send(calls[i].stream, "\0\0\x10\0\0", 5);
		ck_h2_stream_send(calls[i].stream, part, sizeof(part));
		world_settle(w);
		refused += calls[i].grpc == CK_GRPC_RESOURCE_EXHAUSTED;
	}
	assert_true(refused > 30 && refused < 50); /* and what was refused is not held any more */
	for (size_t i = 0; i < CK_COUNT(calls); i++)
		ask_end(&calls[i]);
	world_settle(w);
	ck_connection_free(kubelet);
	world_free(w);
}

/* ---- an answer before the request is whole --------------------------------------------------- */

static void a_call_answered_early_leaves_nothing_open(void **state)
{
	struct world *w = world_new();
	struct ck_connection *kubelet;
	struct ask pull;
	(void)state;
	peer_plan(&w->peer, "PullImage")->early = true;
	peer_plan(&w->peer, "PullImage")->grpc = CK_GRPC_RESOURCE_EXHAUSTED;
	assert_true(ask_connect(w, &kubelet));
	size_t before = peer_streams(&w->peer);
	assert_true(ask_open(w, ck_connection_h2(kubelet), &pull, "PullImage", NULL));
	ck_h2_stream_send(pull.stream, "\0\0\1", 3);
	world_settle(w);
	assert_int_equal(pull.grpc, CK_GRPC_RESOURCE_EXHAUSTED);
	ask_end(&pull);
	world_settle(w);
	assert_int_equal(peer_streams(&w->peer), before);
	ck_connection_free(kubelet);
	world_free(w);
}

/* ---- K9: a request that was reset before it was looked at ------------------------------------ */

static void a_request_reset_before_it_is_read_moves_nothing_on(void **state)
{
	struct world *w = world_new();
	struct peer_object o = {
		.kind = CK_SANDBOX, .id = "s1", .name = "web", .ns = "ns", .uid = "uid-web"
	};
	struct ck_connection *kubelet;
	struct ask run;
	(void)state;
	*peer_sandbox(&w->peer, "s1", "web") = o;
	peer_has(&w->peer, "s1")->condition = CK_CONDITION_READY;
	world_keep(w, &o);
	assert_true(ask_connect(w, &kubelet));
	world_settle(w);
	struct ck_bytes request = cri_run_request("web", 1);
	ask_begin(w, ck_connection_h2(kubelet), &run, "RunPodSandbox", &request, "10S");
	ck_loop_flush(&w->daemon.loop); /* written, and not read before the loop turns */
	ask_end(&run);
	world_settle(w);
	assert_int_equal(peer_heard(&w->peer, "RunPodSandbox"), 0);
	world_advance(w, S);
	assert_int_equal(peer_heard(&w->peer, "StopPodSandbox"), 0);
	assert_non_null(peer_has(&w->peer, "s1"));
	ck_connection_free(kubelet);
	world_free(w);
}

static void what_is_abandoned_while_it_is_made_is_cancelled(void **state) /* K9 */
{
	struct world *w = world_new();
	struct ask first, second;
	struct ck_connection *kubelet;
	(void)state;
	peer_plan(&w->peer, "RunPodSandbox")->hold = true;
	assert_true(ask_connect(w, &kubelet));
	struct ck_bytes request = cri_run_request("pod", 0);
	ask_begin(w, ck_connection_h2(kubelet), &first, "RunPodSandbox", &request, "100S");
	world_settle(w);
	size_t before = peer_streams(&w->peer);
	request = cri_run_request("pod", 1);
	ask_begin(w, ck_connection_h2(kubelet), &second, "RunPodSandbox", &request, "100S");
	world_settle(w);
	assert_int_equal(first.grpc, CK_GRPC_ABORTED);
	/* the second waits for what became of the first */
	assert_int_equal(peer_heard(&w->peer, "RunPodSandbox"), 1);
	assert_int_equal(peer_streams(&w->peer), before - 1);
	assert_int_equal(w->daemon.creating, 0);
	ask_end(&first);
	ask_end(&second);
	ck_connection_free(kubelet);
	world_free(w);
}

/* ---- what the runtime says ------------------------------------------------------------------- */

static void a_create_answered_without_an_id_is_found(void **state) /* K8 */
{
	struct world *w = world_new();
	struct ck_connection *kubelet;
	struct ask run;
	(void)state;
	peer_plan(&w->peer, "RunPodSandbox")->mute = true;
	assert_true(ask_connect(w, &kubelet));
	struct ck_bytes request = cri_run_request("pod", 0);
	ask_begin(w, ck_connection_h2(kubelet), &run, "RunPodSandbox", &request, "100S");
	world_settle(w);
	assert_false(run.over);
	world_advance(w, S);
	assert_int_equal(run.grpc, CK_GRPC_OK);
	assert_string_equal(run.id, "made-1");
	ask_end(&run);
	ck_connection_free(kubelet);
	world_free(w);
}

static void a_question_that_has_waited_is_sent_with_what_is_left(void **state)
{
	static struct ask lists[CK_ASKING_MAX + 1];
	struct world *w = world_new();
	struct ck_connection *agent;
	(void)state;
	peer_plan(&w->peer, "ListContainers")->hold = true;
	assert_true(ask_connect(w, &agent));
	for (size_t i = 0; i < CK_COUNT(lists); i++) {
		struct ck_bytes request = { 0 };
		ask_begin(w, ck_connection_h2(agent), &lists[i], "ListContainers", &request,
			  "100S");
	}
	world_settle(w);
	assert_int_equal(peer_timeout(&w->peer, "ListContainers"), 100 * S);
	while (!w->daemon.metrics.calls_waiting || w->daemon.metrics.calls_waiting > 1)
		wait_for(w, 10 * MS);
	peer_release(&w->peer, "ListContainers");
	peer_plan(&w->peer, "ListContainers")->hold = true;
	while (w->daemon.metrics.calls_waiting || !peer_timeout(&w->peer, "ListContainers"))
		wait_for(w, 10 * MS);
	assert_in_range(peer_timeout(&w->peer, "ListContainers"), 1, 100 * S - MS);
	for (size_t i = 0; i < CK_COUNT(lists); i++)
		ask_end(&lists[i]);
	world_settle(w);
	ck_connection_free(agent);
	world_free(w);
}

static void a_create_may_take_longer_than_its_caller_waits(void **state)
{
	struct world *w = world_new();
	struct ck_connection *kubelet;
	struct ask run, longer;
	(void)state;
	peer_plan(&w->peer, "RunPodSandbox")->hold = true;
	assert_true(ask_connect(w, &kubelet));
	struct ck_bytes request = cri_run_request("pod", 0);
	ask_begin(w, ck_connection_h2(kubelet), &run, "RunPodSandbox", &request, "2S");
	world_settle(w);
	assert_int_equal(peer_timeout(&w->peer, "RunPodSandbox"), CK_CREATE_DEADLINE);
	ask_end(&run); /* it goes on without */
	peer_release(&w->peer, "RunPodSandbox");
	peer_plan(&w->peer, "RunPodSandbox")->hold = true;
	world_settle(w);
	request = cri_run_request("other", 0);
	ask_begin(w, ck_connection_h2(kubelet), &longer, "RunPodSandbox", &request, "2H");
	world_settle(w);
	assert_true(peer_timeout(&w->peer, "RunPodSandbox") > 2 * 3600 * S);
	ask_end(&longer);
	world_settle(w);
	ck_connection_free(kubelet);
	world_free(w);
}

static int do_id(struct world *w, struct ck_connection *kubelet, const char *rpc, const char *id)
{
	struct ask a;
	ask_id(w, ck_connection_h2(kubelet), &a, rpc, id, NULL);
	world_settle(w);
	int grpc = a.grpc;
	ask_end(&a);
	return grpc;
}

static void a_pod_that_is_removed_is_stopped_first(void **state)
{
	struct world *w = world_new();
	struct ck_connection *kubelet;
	(void)state;
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	assert_true(ask_connect(w, &kubelet));
	peer_plan(&w->peer, "StopPodSandbox")->grpc = CK_GRPC_INTERNAL;
	assert_int_equal(do_id(w, kubelet, "RemovePodSandbox", "s1"), CK_GRPC_INTERNAL);
	assert_int_equal(peer_heard(&w->peer, "RemovePodSandbox"), 0);
	/* some say so to what is stopped */
	peer_plan(&w->peer, "StopPodSandbox")->grpc = CK_GRPC_NOT_FOUND;
	assert_int_equal(do_id(w, kubelet, "RemovePodSandbox", "s1"), CK_GRPC_OK);
	assert_int_equal(peer_heard(&w->peer, "StopPodSandbox s1"), 2);
	assert_int_equal(peer_heard(&w->peer, "RemovePodSandbox s1"), 1);
	assert_null(peer_has(&w->peer, "s1"));
	ck_connection_free(kubelet);
	world_free(w);
}

/* ---- what a request may be ------------------------------------------------------------------- */

static void a_unary_request_of_two_messages_is_malformed(void **state)
{
	struct world *w = world_new();
	struct ck_connection *kubelet;
	struct ask list;
	(void)state;
	assert_true(ask_connect(w, &kubelet));
	unsigned before = peer_heard(&w->peer, "ListPodSandbox");
	assert_true(ask_open(w, ck_connection_h2(kubelet), &list, "ListPodSandbox", NULL));
	ck_h2_stream_send(list.stream, "\0\0\0\0\0\0\0\0\0\0", 10);
	ck_h2_stream_end(list.stream);
	world_settle(w);
	assert_int_equal(list.grpc, CK_GRPC_INVALID_ARGUMENT);
	assert_int_equal(peer_heard(&w->peer, "ListPodSandbox"), before);
	ask_end(&list);
	ck_connection_free(kubelet);
	world_free(w);
}

static void a_list_of_a_hidden_id_is_empty_whatever_the_runtime_says(void **state)
{
	struct world *w = world_new();
	struct peer_object kept = *peer_sandbox(&w->peer, "kept", "old");
	struct ck_bytes filter = { 0 }, request = { 0 };
	struct ck_connection *kubelet;
	struct ask list;
	(void)state;
	world_keep(w, &kept);
	peer_plan(&w->peer, "ListPodSandbox")->grpc = CK_GRPC_NOT_FOUND;
	assert_true(ask_connect(w, &kubelet));
	ck_bytes_field_text(&filter, 1, "kept");
	ck_bytes_field(&request, 1, filter.p, filter.len);
	ck_bytes_free(&filter);
	ask_begin(w, ck_connection_h2(kubelet), &list, "ListPodSandbox", &request, NULL);
	world_settle(w);
	assert_int_equal(list.grpc, CK_GRPC_OK);
	assert_int_equal(list.messages, 1);
	assert_string_equal(list.id, "");
	ask_end(&list);
	ck_connection_free(kubelet);
	world_free(w);
}

/* which of the two counts is not the same for everybody: hidden must be hidden from whoever is
 * asked */
static void a_request_with_two_paths_is_reset(void **state)
{
	static const struct ck_h2_header headers[] = {
		CK_H2_HEADER(":method", "POST"),
		CK_H2_HEADER(":path", "/runtime.v1.RuntimeService/Version"),
		CK_H2_HEADER(":path", "/runtime.v1.RuntimeService/ListPodSandbox"),
		CK_H2_HEADER("content-type", "application/grpc"),
	};
	struct world *w = world_new();
	struct ask a = { .w = w, .grpc = -1, .reader.max = CK_REQUEST_MAX };
	struct ck_connection *kubelet;
	(void)state;
	assert_true(ask_connect(w, &kubelet));
	assert_int_equal(ck_h2_open(ck_connection_h2(kubelet), headers, CK_COUNT(headers),
				    &ask_handler, &a, &a.stream, NULL),
			 0);
	ck_grpc_send(a.stream, NULL, 0);
	ck_h2_stream_end(a.stream);
	world_settle(w);
	assert_true(a.over);
	assert_int_equal(a.reset, CK_H2_PROTOCOL_ERROR);
	ask_end(&a);
	ck_connection_free(kubelet);
	world_free(w);
}

static void a_create_whose_time_is_over_is_not_begun(void **state)
{
	struct world *w = world_new();
	struct ck_connection *kubelet;
	struct ask run;
	(void)state;
	assert_true(ask_connect(w, &kubelet));
	struct ck_bytes request = cri_run_request("pod", 0);
	ask_begin(w, ck_connection_h2(kubelet), &run, "RunPodSandbox", &request, "0n");
	world_settle(w);
	assert_int_equal(run.grpc, CK_GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(peer_heard(&w->peer, "RunPodSandbox"), 0);
	ask_end(&run);
	ck_connection_free(kubelet);
	world_free(w);
}

/* ---- lists that are passed on as they come --------------------------------------------------- */

struct listing { /* a list whose answer has begun */
	struct world *w;
	struct ck_connection *kubelet;
	struct ask list;
};

/* the runtime has made its answer, and sent so many bytes of it */
static void list_begin(struct listing *l, size_t part)
{
	assert_true(ask_connect(l->w, &l->kubelet));
	peer_plan(&l->w->peer, "ListPodSandbox")->part = part + 1;
	ask_id(l->w, ck_connection_h2(l->kubelet), &l->list, "ListPodSandbox", "", NULL);
	world_settle(l->w);
	assert_int_equal(l->list.messages, 0);
}

static void list_end(struct listing *l)
{
	assert_int_equal(peer_release(&l->w->peer, "ListPodSandbox"), 1);
	world_settle(l->w);
	assert_int_equal(l->list.grpc, CK_GRPC_OK);
	assert_int_equal(l->list.messages, 1);
	assert_non_null(strstr(l->list.id, "s1")); /* in the first sandbox */
	assert_false(l->list.shows_kept);
}

static int count(const struct ck_entry_info *entry, void *userdata)
{
	*(unsigned *)userdata += entry->kind == CK_SANDBOX;
	return 0;
}

static unsigned sandboxes_known(struct world *w)
{
	unsigned n = 0;
	assert_int_equal(ck_entries(w->daemon.cache, count, &n), 0);
	return n;
}

static void listing_fini(struct listing *l)
{
	ask_end(&l->list);
	ck_connection_free(l->kubelet);
	world_free(l->w);
}

static void a_list_is_passed_on_as_it_comes_while_nothing_is_hidden(void **state)
{
	(void)state;
	/* cut in its head, behind that, and in a sandbox */
	for (size_t part = 1; part < 40; part++) {
		struct listing l = { .w = world_new() };
		world_commit(l.w, peer_sandbox(&l.w->peer, "s1", "web"));
		peer_sandbox(&l.w->peer, "s2", "stranger");
		list_begin(&l, part);
		assert_int_equal(l.list.received, part < CK_GRPC_HEAD ? 0 : part);
		list_end(&l);
		/* the cache has learned from it all the same */
		assert_int_equal(sandboxes_known(l.w), 2);
		listing_fini(&l);
	}
}

static void what_is_hidden_when_a_list_begins_is_not_passed_on(void **state)
{
	struct listing l = { .w = world_new() };
	struct peer_object kept;
	(void)state;
	world_commit(l.w, peer_sandbox(&l.w->peer, "s1", "web"));
	kept = *peer_sandbox(&l.w->peer, "kept", "old");
	world_keep(l.w, &kept);
	list_begin(&l, 20);
	assert_int_equal(l.list.received, 0);
	list_end(&l);
	listing_fini(&l);
}

/* it is hidden by its key while the runtime makes it; its id is not known yet */
static void what_is_being_made_when_a_list_begins_is_not_passed_on(void **state)
{
	struct listing l = { .w = world_new() };
	struct peer_object made;
	(void)state;
	world_commit(l.w, peer_sandbox(&l.w->peer, "s1", "web"));
	made = *peer_sandbox(&l.w->peer, "kept", "new");
	struct ck_turn *turn = world_begin(l.w, &made);
	assert_non_null(turn);
	list_begin(&l, 20);
	assert_int_equal(l.list.received, 0);
	list_end(&l);
	ck_turn_free(turn);
	listing_fini(&l);
}

/* The runtime listed it before it was destroyed, and answers after that (K21). */
static void what_was_destroyed_before_an_answer_came_is_not_passed_on(void **state)
{
	struct listing l = { .w = world_new() };
	struct peer_object kept;
	(void)state;
	world_commit(l.w, peer_sandbox(&l.w->peer, "s1", "web"));
	kept = *peer_sandbox(&l.w->peer, "kept", "old");
	world_keep(l.w, &kept);
	list_begin(&l, 0);
	world_advance(l.w, 2 * CK_TTL);
	assert_null(peer_has(&l.w->peer, "kept"));
	list_end(&l);
	listing_fini(&l);
}

/* What became hidden later was made later: the list, which the runtime has made, has it not. */
static void what_is_hidden_while_a_list_is_passed_on_is_not_in_the_next(void **state)
{
	struct listing l = { .w = world_new() };
	struct peer_object kept;
	(void)state;
	world_commit(l.w, peer_sandbox(&l.w->peer, "s1", "web"));
	list_begin(&l, 20);
	assert_int_equal(l.list.received, 20);
	kept = *peer_sandbox(&l.w->peer, "kept", "old");
	world_keep(l.w, &kept);
	list_end(&l);
	/* the older list says nothing of it (K24) */
	assert_true(world_hides(l.w, &kept));
	ask_end(&l.list);
	ask_id(l.w, ck_connection_h2(l.kubelet), &l.list, "ListPodSandbox", "", NULL);
	world_settle(l.w);
	assert_int_equal(l.list.messages, 1);
	assert_false(l.list.shows_kept);
	listing_fini(&l);
}

static void little_memory(struct ck_conf *conf)
{
	conf->client_memory = 4096;
}

static void lists_that_were_passed_on_hold_no_memory(void **state)
{
	struct listing l = { .w = world_new_with(little_memory) };
	(void)state;
	world_commit(l.w, peer_sandbox(&l.w->peer, "s1", "web"));
	list_begin(&l, 20);
	assert_int_equal(l.list.received, 20);
	list_end(&l);
	for (unsigned i = 0; i < 200; i++) { /* 8 KB in all, on one connection */
		ask_end(&l.list);
		ask_id(l.w, ck_connection_h2(l.kubelet), &l.list, "ListPodSandbox", "", NULL);
		world_settle(l.w);
		assert_int_equal(l.list.grpc, CK_GRPC_OK);
	}
	listing_fini(&l);
}

static void half_a_list_is_an_error(void **state)
{
	struct listing l = { .w = world_new() };
	(void)state;
	world_commit(l.w, peer_sandbox(&l.w->peer, "s1", "web"));
	list_begin(&l, 20);
	peer_hang_up(&l.w->peer);
	world_settle(l.w);
	assert_int_equal(l.list.messages, 0);
	assert_int_equal(l.list.grpc, CK_GRPC_UNAVAILABLE);
	assert_int_equal(sandboxes_known(l.w), 1); /* no answer is not an empty list (K24) */
	listing_fini(&l);
}

/* ---- without memory -------------------------------------------------------------------------- */

static unsigned named(const struct world *w, const char *name)
{
	unsigned n = 0;
	for (size_t i = 0; i < w->peer.objects_n; i++)
		n += w->peer.objects[i].kind == CK_SANDBOX &&
		     !strcmp(w->peer.objects[i].name, name);
	return n;
}

static void call_all(struct world *w, struct ck_connection **kubelet, struct ck_bytes *run,
		     struct ck_bytes *create)
{
	static const struct {
		const char *rpc, *id;
	} calls[] = { { "RunPodSandbox", NULL },      { "ListPodSandbox", "" },
		      { "PodSandboxStatus", "kept" }, { "CreateContainer", NULL },
		      { "PullImage", "x" },           { "PodSandboxStatus", "s1" },
		      { "StopPodSandbox", "s1" },     { "RemovePodSandbox", "s1" },
		      { "StreamPodSandboxes", "" } };
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		struct ask a;
		struct ck_h2 *h2 = *kubelet ? ck_connection_h2(*kubelet) : NULL;
		if (calls[i].id)
			ask_id(w, h2, &a, calls[i].rpc, calls[i].id, NULL);
		else
			ask_begin(w, h2, &a, calls[i].rpc, i == 0 ? run : create, NULL);
		world_settle(w);
		assert_false(a.shows_kept);
		ask_end(&a);
	}
	world_settle(w);
}

static void whatever_allocation_fails_each_call_ends_and_the_next_one_works(void **state)
{
	unsigned nth = 1;
	(void)state;
	for (bool hit = true; hit; nth++) {
		struct world *w = world_new();
		struct peer_object kept = *peer_sandbox(&w->peer, "kept", "old"),
				   *pod = peer_sandbox(&w->peer, "s1", "web");
		struct ck_connection *kubelet = NULL, *next;
		struct ask run;
		snprintf(pod->ns, sizeof(pod->ns), "ns");
		world_commit(w, pod);
		world_keep(w, &kept);
		assert_true(ask_connect(w, &kubelet));
		struct ck_bytes request = cri_run_request("pod", 0),
				create = cri_create_request("s1", "web", "app", 0);
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		call_all(w, &kubelet, &request, &create);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		world_connect(w);
		assert_true(ask_connect(w, &next));
		request = cri_run_request("pod", 0);
		ask_begin(w, ck_connection_h2(next), &run, "RunPodSandbox", &request, NULL);
		world_advance(w, 60 * S);
		if (run.grpc != CK_GRPC_OK)
			fail_msg("allocation %u: status %d: %s", nth, run.grpc, w->peer.heard);
		ask_end(&run);
		world_advance(w, 2 * CK_TTL);
		assert_int_equal(named(w, "pod"), 1);
		assert_int_equal(named(w, "old"), 0);
		ck_connection_free(kubelet);
		ck_connection_free(next);
		world_settle(w);
		world_free(w);
	}
	printf("        %u allocations\n", nth - 2);
	assert_true(nth > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_goaway_with_nobody_listening_any_more_is_come_back_from),
		cmocka_unit_test(an_answer_without_a_deadline_waits_until_it_is_read),
		cmocka_unit_test(a_container_whose_answer_was_not_read_is_hidden_again),
		cmocka_unit_test(an_answer_whose_stream_is_reset_unwritten_was_not_taken),
		cmocka_unit_test(a_container_that_a_call_has_named_stays),
		cmocka_unit_test(a_reset_that_crosses_the_answer_says_that_it_was_not_taken),
		cmocka_unit_test(who_has_read_the_answer_may_go_with_other_things_unread),
		cmocka_unit_test(a_unary_request_of_two_messages_is_malformed),
		cmocka_unit_test(a_list_of_a_hidden_id_is_empty_whatever_the_runtime_says),
		cmocka_unit_test(a_list_is_passed_on_as_it_comes_while_nothing_is_hidden),
		cmocka_unit_test(what_is_hidden_when_a_list_begins_is_not_passed_on),
		cmocka_unit_test(what_is_being_made_when_a_list_begins_is_not_passed_on),
		cmocka_unit_test(what_was_destroyed_before_an_answer_came_is_not_passed_on),
		cmocka_unit_test(what_is_hidden_while_a_list_is_passed_on_is_not_in_the_next),
		cmocka_unit_test(lists_that_were_passed_on_hold_no_memory),
		cmocka_unit_test(half_a_list_is_an_error),
		cmocka_unit_test(a_request_with_two_paths_is_reset),
		cmocka_unit_test(what_is_abandoned_while_it_is_made_is_cancelled),
		cmocka_unit_test(a_create_answered_without_an_id_is_found),
		cmocka_unit_test(a_question_that_has_waited_is_sent_with_what_is_left),
		cmocka_unit_test(a_create_may_take_longer_than_its_caller_waits),
		cmocka_unit_test(a_pod_that_is_removed_is_stopped_first),
		cmocka_unit_test(a_create_whose_time_is_over_is_not_begun),
		cmocka_unit_test(a_client_that_takes_no_answers_is_not_listened_to),
		cmocka_unit_test(calls_that_are_never_whole_are_limited),
		cmocka_unit_test(requests_for_a_runtime_that_does_not_read_are_limited),
		cmocka_unit_test(a_call_answered_early_leaves_nothing_open),
		cmocka_unit_test(a_request_reset_before_it_is_read_moves_nothing_on),
		cmocka_unit_test(whatever_allocation_fails_each_call_ends_and_the_next_one_works),
	};
	return CK_TEST_MAIN(tests);
}
