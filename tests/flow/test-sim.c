/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated runtime, over its socket, with the simplest client there is: what it makes, shows,
 * counts and refuses, and what becomes of a creation whose caller leaves. How it fails is in
 * test-sim-trouble.c; what its verbose statuses tell, and what happens without a caller, in
 * test-sim-life.c.
 */
#include "tests/unit/harness.h"
#include "tests/unit/wire-build.h"
#include "src/base/mem.h"
#include "tests/flow/cri-client.h"

struct fixture {
	struct sim sim;
	struct cri_client client;
};

static void begin(struct fixture *f, const char *parameters)
{
	sim_start(&f->sim, parameters);
	cri_open(&f->client, f->sim.path);
}

static void end(struct fixture *f)
{
	cri_close(&f->client);
	sim_stop(&f->sim);
}

static struct ck_bytes ask(struct fixture *f, const char *rpc, struct ck_bytes *request)
{
	struct ck_bytes reply;
	assert_int_equal(cri_do(&f->client, rpc, request, &reply), CK_GRPC_OK);
	return reply;
}

static struct ck_bytes ask_id(struct fixture *f, const char *rpc, const char *id)
{
	struct ck_bytes request = { 0 };
	put_text(&request, 1, id);
	put_number(&request, 2, 1); /* verbose */
	return ask(f, rpc, &request);
}

/* what it counted: the JSON of Status, in which each number is looked for by its name */
static unsigned long counted(struct fixture *f, const char *kind, const char *what)
{
	struct ck_bytes request = { 0 }, reply;
	char name[64];
	put_number(&request, 1, 1);
	reply = ask(f, "Status", &request);
	assert_string_equal(cri_text(&reply, "2.1"), "sim");
	const char *json = cri_text(&reply, "2.2");
	ck_bytes_free(&reply);
	snprintf(name, sizeof(name), "\"%s\":{", kind);
	json = strstr(json, name);
	assert_non_null(json);
	snprintf(name, sizeof(name), "\"%s\":", what);
	json = strstr(json, name);
	return json ? strtoul(json + strlen(name), NULL, 10) : 0;
}

/* how many there are: all, or with a filter, which is used up */
static unsigned listed(struct fixture *f, const char *rpc, struct ck_bytes *filter)
{
	struct ck_bytes request = { 0 }, reply;
	if (filter)
		put(&request, 1, filter);
	reply = ask(f, rpc, &request);
	unsigned n = cri_count(&reply, "1");
	ck_bytes_free(&reply);
	return n;
}

/* ---- the runtime itself ---------------------------------------------------------------------- */

static void both_versions_of_the_api_are_served(void **state)
{
	static const char *const versions[] = { "v1", "v1alpha2" };
	struct fixture f;
	(void)state;
	begin(&f, "");
	for (size_t i = 0; i < CK_COUNT(versions); i++) {
		f.client.version = versions[i];
		struct ck_bytes reply = ask(&f, "Version", NULL);
		assert_string_equal(cri_text(&reply, "1"), "0.1.0");
		assert_string_equal(cri_text(&reply, "2"), "crikeep-sim");
		assert_true(*cri_text(&reply, "3"));
		assert_string_equal(cri_text(&reply, "4"), versions[i]);
		ck_bytes_free(&reply);
		reply = ask(&f, "ImageService/ListImages", NULL);
		ck_bytes_free(&reply);
	}
	end(&f);
}

static void it_is_ready_and_its_network_too(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "");
	struct ck_bytes reply = ask(&f, "Status", NULL);
	assert_string_equal(cri_text(&reply, "1.1#0.1"), "RuntimeReady");
	assert_int_equal(cri_number(&reply, "1.1#0.2"), 1);
	assert_string_equal(cri_text(&reply, "1.1#1.1"), "NetworkReady");
	assert_int_equal(cri_number(&reply, "1.1#1.2"), 1);
	assert_false(cri_has(&reply, "2")); /* counts are told only when asked for */
	ck_bytes_free(&reply);
	end(&f);
}

static void calls_are_counted_by_name(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "");
	for (int i = 0; i < 3; i++)
		listed(&f, "ListPodSandbox", NULL);
	assert_int_equal(counted(&f, "calls", "ListPodSandbox"), 3);
	assert_int_equal(counted(&f, "calls", "Status"), 2);
	end(&f);
}

/* ---- the life of a sandbox and of a container ------------------------------------------------ */

static void a_sandbox_is_made_shown_stopped_and_removed(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "");
	const char *id = cri_run(&f.client, "web");
	struct ck_bytes reply = ask_id(&f, "PodSandboxStatus", id);
	assert_string_equal(cri_text(&reply, "1.1"), id);
	assert_string_equal(cri_text(&reply, "1.2.1"), "web");
	assert_string_equal(cri_text(&reply, "1.2.2"), "uid-web");
	assert_string_equal(cri_text(&reply, "1.2.3"), "ns");
	assert_int_equal(cri_number(&reply, "1.3"), 0); /* READY */
	assert_true(cri_number(&reply, "1.4") > 0);
	assert_true(*cri_text(&reply, "1.5.1"));
	assert_int_equal(cri_count(&reply, "1.7"), 4); /* labels */
	assert_string_equal(cri_text(&reply, "1.8.2"), "annotation");
	assert_true(cri_has(&reply, "2")); /* verbose */
	ck_bytes_free(&reply);
	reply = ask(&f, "ListPodSandbox", NULL);
	assert_int_equal(cri_count(&reply, "1"), 1);
	assert_string_equal(cri_text(&reply, "1.1"), id);
	assert_string_equal(cri_text(&reply, "1.2.1"), "web");
	assert_true(cri_number(&reply, "1.4") > 0);
	ck_bytes_free(&reply);
	assert_int_equal(cri_do_id(&f.client, "StopPodSandbox", id), CK_GRPC_OK);
	reply = ask_id(&f, "PodSandboxStatus", id);
	assert_int_equal(cri_number(&reply, "1.3"), 1);
	ck_bytes_free(&reply);
	assert_int_equal(cri_do_id(&f.client, "RemovePodSandbox", id), CK_GRPC_OK);
	assert_int_equal(listed(&f, "ListPodSandbox", NULL), 0);
	assert_int_equal(cri_do_id(&f.client, "PodSandboxStatus", id), CK_GRPC_NOT_FOUND);
	assert_int_equal(counted(&f, "sandbox", "begun"), 1);
	assert_int_equal(counted(&f, "sandbox", "finished"), 1);
	assert_int_equal(counted(&f, "sandbox", "destroyed"), 1);
	assert_int_equal(counted(&f, "sandbox", "existing"), 0);
	end(&f);
}

static uint64_t container_state(struct fixture *f, const char *id)
{
	struct ck_bytes reply = ask_id(f, "ContainerStatus", id);
	uint64_t number = cri_number(&reply, "1.3");
	ck_bytes_free(&reply);
	return number;
}

static void a_container_is_made_started_stopped_and_removed(void **state)
{
	enum { CREATED, RUNNING, EXITED };
	struct fixture f;
	(void)state;
	begin(&f, "");
	const char *sandbox = cri_run(&f.client, "web"),
		   *id = cri_create(&f.client, sandbox, "web", "main");
	struct ck_bytes reply = ask_id(&f, "ContainerStatus", id);
	assert_string_equal(cri_text(&reply, "1.1"), id);
	assert_string_equal(cri_text(&reply, "1.2.1"), "main");
	assert_true(cri_number(&reply, "1.4") > 0);
	assert_string_equal(cri_text(&reply, "1.8.1"), "busybox");
	assert_memory_equal(cri_text(&reply, "1.9"), "sha256:", 7);
	assert_string_equal(cri_text(&reply, "1.15"), "/var/log/pods/of-it/main/0.log");
	ck_bytes_free(&reply);
	/* it does not run */
	assert_int_equal(cri_do_id(&f.client, "ExecSync", id), CK_GRPC_UNKNOWN);
	assert_int_equal(cri_do_id(&f.client, "StopContainer", id), CK_GRPC_OK);
	assert_int_equal(container_state(&f, id), CREATED);
	assert_int_equal(cri_do_id(&f.client, "StartContainer", id), CK_GRPC_OK);
	assert_int_equal(container_state(&f, id), RUNNING);
	assert_int_equal(cri_do_id(&f.client, "StartContainer", id), CK_GRPC_UNKNOWN);
	assert_int_equal(cri_do_id(&f.client, "ExecSync", id), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&f.client, "StopContainer", id), CK_GRPC_OK);
	assert_int_equal(container_state(&f, id), EXITED);
	assert_int_equal(cri_do_id(&f.client, "RemoveContainer", id), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&f.client, "ContainerStatus", id), CK_GRPC_NOT_FOUND);
	end(&f);
}

static void a_sandbox_takes_its_containers_with_it(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "");
	const char *first = cri_run(&f.client, "first"), *second = cri_run(&f.client, "second");
	const char *main_id = cri_create(&f.client, first, "first", "main");
	cri_create(&f.client, first, "first", "side");
	const char *other = cri_create(&f.client, second, "second", "main");
	cri_do_id(&f.client, "StartContainer", main_id);
	struct ck_bytes reply = ask_id(&f, "PodSandboxStatus", first);
	assert_int_equal(cri_count(&reply, "3"), 2); /* containers_statuses */
	ck_bytes_free(&reply);
	assert_int_equal(cri_do_id(&f.client, "StopPodSandbox", first), CK_GRPC_OK);
	assert_int_equal(container_state(&f, main_id), 2);
	struct ck_bytes late = cri_create_request(first, "first", "late", 0);
	assert_int_equal(cri_do(&f.client, "CreateContainer", &late, NULL), CK_GRPC_UNKNOWN);
	assert_int_equal(cri_do_id(&f.client, "RemovePodSandbox", first), CK_GRPC_OK);
	reply = ask(&f, "ListContainers", NULL);
	assert_int_equal(cri_count(&reply, "1"), 1);
	assert_string_equal(cri_text(&reply, "1.1"), other);
	ck_bytes_free(&reply);
	assert_int_equal(counted(&f, "container", "destroyed"), 2);
	end(&f);
}

static void what_is_unknown_can_be_stopped_and_removed_but_not_shown(void **state)
{
	static const char *const fine[] = { "StopPodSandbox", "RemovePodSandbox", "StopContainer",
					    "RemoveContainer" };
	static const char *const not_found[] = {
		"PodSandboxStatus",         "ContainerStatus",    "ContainerStats",
		"PodSandboxStats",          "StartContainer",     "ExecSync",
		"UpdateContainerResources", "ReopenContainerLog", "UpdatePodSandboxResources",
	};
	struct fixture f;
	(void)state;
	begin(&f, "");
	for (size_t i = 0; i < CK_COUNT(fine); i++) {
		assert_int_equal(cri_do_id(&f.client, fine[i], "feed"), CK_GRPC_OK);
		assert_int_equal(cri_do_id(&f.client, fine[i], ""), CK_GRPC_OK);
	}
	for (size_t i = 0; i < CK_COUNT(not_found); i++)
		assert_int_equal(cri_do_id(&f.client, not_found[i], "feed"), CK_GRPC_NOT_FOUND);
	end(&f);
}

/* ---- ids and filters ------------------------------------------------------------------------- */

static void the_beginning_of_an_id_will_do_if_only_one_has_it(void **state)
{
	struct fixture f;
	char first[16][65], prefix[65];
	unsigned twins[2] = { 0, 0 };
	(void)state;
	begin(&f, "");
	for (unsigned i = 0; i < 17; i++) { /* of 17 ids two begin with the same of 16 digits */
		char name[16];
		snprintf(name, sizeof(name), "p%u", i);
		const char *id = cri_run(&f.client, name);
		for (unsigned k = 0; k < i && k < 16; k++)
			if (first[k][0] == id[0])
				twins[0] = k, twins[1] = i;
		if (i < 16)
			snprintf(first[i], sizeof(first[i]), "%s", id);
	}
	assert_int_not_equal(twins[1], 0);
	snprintf(prefix, sizeof(prefix), "%.1s", first[twins[0]]);
	assert_int_equal(cri_do_id(&f.client, "PodSandboxStatus", prefix), CK_GRPC_UNKNOWN);
	assert_int_equal(cri_do_id(&f.client, "StopPodSandbox", prefix), CK_GRPC_UNKNOWN);
	struct ck_bytes filter = { 0 };
	put_text(&filter, 1, prefix);
	assert_int_equal(listed(&f, "ListPodSandbox", &filter), 0);
	snprintf(prefix, sizeof(prefix), "%.20s", first[twins[0]]);
	struct ck_bytes reply = ask_id(&f, "PodSandboxStatus", prefix);
	assert_string_equal(cri_text(&reply, "1.1"), first[twins[0]]);
	ck_bytes_free(&reply);
	end(&f);
}

static void filters_are_honoured(void **state)
{
	struct fixture f;
	struct ck_bytes filter = { 0 }, value = { 0 };
	char prefix[16];
	(void)state;
	begin(&f, "");
	const char *a = cri_run(&f.client, "a"), *b = cri_run(&f.client, "b");
	const char *c = cri_create(&f.client, a, "a", "main");
	cri_create(&f.client, b, "b", "main");
	cri_do_id(&f.client, "StartContainer", c);
	cri_do_id(&f.client, "StopPodSandbox", b);
	snprintf(prefix, sizeof(prefix), "%.12s", a);

	assert_int_equal(listed(&f, "ListPodSandbox", NULL), 2);
	put_text(&filter, 1, prefix);
	assert_int_equal(listed(&f, "ListPodSandbox", &filter), 1);
	put_text(&filter, 1, "0123456789abcdef"); /* nobody's: an empty list, not an error */
	assert_int_equal(listed(&f, "ListPodSandbox", &filter), 0);
	put(&filter, 2, &value); /* READY is 0, and not on the wire */
	assert_int_equal(listed(&f, "ListPodSandbox", &filter), 1);
	put_pair(&filter, 3, "app", "b");
	assert_int_equal(listed(&f, "ListPodSandbox", &filter), 1);
	put_pair(&filter, 3, "app", "b");
	put_pair(&filter, 3, "io.kubernetes.pod.name", "a"); /* all of them must hold */
	assert_int_equal(listed(&f, "ListPodSandbox", &filter), 0);

	put_text(&filter, 3, prefix);
	assert_int_equal(listed(&f, "ListContainers", &filter), 1);
	put_number(&value, 1, 1);
	put(&filter, 2, &value);
	assert_int_equal(listed(&f, "ListContainers", &filter), 1);
	put_pair(&filter, 4, "io.kubernetes.pod.name", "b");
	assert_int_equal(listed(&f, "ListContainers", &filter), 1);
	put_text(&filter, 2, prefix);
	assert_int_equal(listed(&f, "ListContainerStats", &filter), 1);
	put_pair(&filter, 2, "app", "a");
	assert_int_equal(listed(&f, "ListPodSandboxStats", &filter), 1);
	end(&f);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void a_name_is_reserved_from_the_beginning_to_the_removal(void **state)
{
	struct fixture f;
	struct cri_call first, second;
	char text[512];
	(void)state;
	begin(&f, "create.sandbox=150ms");
	struct ck_bytes request = cri_run_request("web", 0);
	cri_start(&f.client, &first, "RunPodSandbox", &request, NULL);
	request = cri_run_request("web", 0);
	cri_start(&f.client, &second, "RunPodSandbox", &request, NULL);
	cri_wait(&second);
	assert_non_null(first.stream); /* the refusal did not wait for it */
	cri_wait(&first);
	assert_int_equal(first.status.code, CK_GRPC_OK);
	assert_int_equal(second.status.code, CK_GRPC_UNKNOWN);
	const char *id = cri_text(&first.reply, "1");
	snprintf(text, sizeof(text),
		 "failed to reserve sandbox name \"web_ns_uid-web_0\": name \"web_ns_uid-web_0\" "
		 "is reserved for \"%s\"",
		 id);
	assert_string_equal(second.status.message, text);
	request = cri_run_request("web", 0);
	assert_int_equal(cri_do(&f.client, "RunPodSandbox", &request, NULL), CK_GRPC_UNKNOWN);
	request = cri_run_request("web", 1); /* another attempt has another name */
	assert_int_equal(cri_do(&f.client, "RunPodSandbox", &request, NULL), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&f.client, "RemovePodSandbox", id), CK_GRPC_OK);
	request = cri_run_request("web", 0);
	assert_int_equal(cri_do(&f.client, "RunPodSandbox", &request, NULL), CK_GRPC_OK);
	assert_int_equal(counted(&f, "sandbox", "refused"), 2);
	cri_end(&first);
	cri_end(&second);
	end(&f);
}

static void a_containers_name_does_not_tell_its_sandbox(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "");
	const char *sandbox = cri_run(&f.client, "web");
	struct ck_bytes request = cri_run_request("web", 1);
	struct ck_bytes reply = ask(&f, "RunPodSandbox", &request);
	const char *next = cri_text(&reply, "1");
	ck_bytes_free(&reply);
	cri_create(&f.client, sandbox, "web", "main");
	request = cri_create_request(next, "web", "main", 0);
	assert_int_equal(cri_do(&f.client, "CreateContainer", &request, NULL), CK_GRPC_UNKNOWN);
	end(&f);
}

/* ---- a caller who leaves --------------------------------------------------------------------- */

static void wait_for_count(struct fixture *f, const char *what, unsigned long n)
{
	for (unsigned i = 0; counted(f, "sandbox", what) != n; i++) {
		assert_true(i < 2000);
		usleep(5000); /* a process of its own: there is no clock to set */
	}
}

static void leave(struct fixture *f, const char *name, const char *timeout)
{
	struct cri_call call;
	struct ck_bytes request = cri_run_request(name, 0);
	cri_start(&f->client, &call, "RunPodSandbox", &request, timeout);
	wait_for_count(f, "begun", 1);
	if (timeout) {
		cri_wait(&call); /* the runtime's own timer ends it */
		assert_false(call.answered);
		assert_int_equal(call.error, CK_H2_CANCEL);
	}
	cri_end(&call);
}

static void a_cancelled_creation_is_rolled_back(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "create=10m");
	leave(&f, "web", NULL);
	wait_for_count(&f, "rolled_back", 1);
	assert_int_equal(listed(&f, "ListPodSandbox", NULL), 0);
	assert_int_equal(counted(&f, "sandbox", "existing"), 0);
	end(&f);
}

static void a_creation_past_its_deadline_is_rolled_back(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "create=10m");
	leave(&f, "web", "60m");
	wait_for_count(&f, "rolled_back", 1);
	end(&f);
}

static void a_rollback_takes_as_long_as_a_removal_and_keeps_the_name(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "create=10m,remove=300ms");
	leave(&f, "web", NULL);
	struct ck_bytes request = cri_run_request("web", 0);
	assert_int_equal(cri_do(&f.client, "RunPodSandbox", &request, NULL), CK_GRPC_UNKNOWN);
	wait_for_count(&f, "rolled_back", 1);
	end(&f);
}

static void with_finish_a_creation_ends_well_without_its_caller(void **state)
{
	static const char *const timeouts[] = { NULL, "30m" };
	(void)state;
	for (size_t i = 0; i < CK_COUNT(timeouts); i++) {
		struct fixture f;
		begin(&f, "create=150ms,cancel=finish");
		leave(&f, "web", timeouts[i]);
		assert_int_equal(listed(&f, "ListPodSandbox", NULL), 0);
		wait_for_count(&f, "finished", 1);
		assert_int_equal(listed(&f, "ListPodSandbox", NULL), 1);
		end(&f);
	}
}

static void with_finish_a_creation_outlives_its_callers_connection(void **state)
{
	struct fixture f;
	struct cri_call call;
	(void)state;
	begin(&f, "create=150ms,cancel=finish");
	struct ck_bytes request = cri_run_request("web", 0);
	cri_start(&f.client, &call, "RunPodSandbox", &request, NULL);
	wait_for_count(&f, "begun", 1);
	cri_close(&f.client);
	cri_end(&call);
	cri_open(&f.client, f.sim.path);
	wait_for_count(&f, "finished", 1);
	assert_int_equal(listed(&f, "ListPodSandbox", NULL), 1);
	end(&f);
}

static void a_container_may_come_to_be_in_a_sandbox_that_has_gone(void **state)
{
	struct fixture f;
	struct cri_call call;
	(void)state;
	begin(&f, "create.container=200ms");
	const char *sandbox = cri_run(&f.client, "web");
	struct ck_bytes request = cri_create_request(sandbox, "web", "main", 0);
	cri_start(&f.client, &call, "CreateContainer", &request, NULL);
	assert_int_equal(cri_do_id(&f.client, "RemovePodSandbox", sandbox), CK_GRPC_OK);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_OK);
	struct ck_bytes reply = ask(&f, "ListContainers", NULL);
	assert_string_equal(cri_text(&reply, "1.2"), sandbox);
	ck_bytes_free(&reply);
	assert_int_equal(cri_do_id(&f.client, "StartContainer", cri_text(&call.reply, "1")),
			 CK_GRPC_UNKNOWN);
	cri_end(&call);
	end(&f);
}

static void a_thousand_creations_at_once_take_no_longer_than_one(void **state)
{
	enum { N = 1000 };
	static struct cri_call calls[N];
	struct fixture f;
	(void)state;
	begin(&f, "create=500ms");
	for (unsigned i = 0; i < N; i++) {
		char name[16];
		snprintf(name, sizeof(name), "p%u", i);
		struct ck_bytes request = cri_run_request(name, 0);
		cri_start(&f.client, &calls[i], "RunPodSandbox", &request, NULL);
	}
	wait_for_count(&f, "begun", N);
	for (unsigned i = 0; i < N; i++) {
		cri_wait(&calls[i]);
		assert_int_equal(calls[i].status.code, CK_GRPC_OK);
		cri_end(&calls[i]);
	}
	assert_int_equal(counted(&f, "sandbox", "existing"), N);
	end(&f);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void a_streamed_list_comes_in_messages_none_of_which_is_empty(void **state)
{
	static const struct {
		const char *rpc;
		unsigned items, messages;
	} streams[] = {
		{ "StreamPodSandboxes", 250, 3 },
		{ "StreamContainers", 500, 5 },
		{ "StreamContainerStats", 500, 5 },
		{ "StreamPodSandboxStats", 250, 3 },
		{ "StreamPodSandboxMetrics", 250, 3 },
		{ "ImageService/StreamImages", 2, 1 },
	};
	struct fixture f;
	(void)state;
	begin(&f, "sandboxes=250,containers=500,images=busybox+registry.k8s.io/pause:3.9");
	for (size_t i = 0; i < CK_COUNT(streams); i++) {
		struct cri_call call;
		cri_start(&f.client, &call, streams[i].rpc, NULL, NULL);
		cri_wait(&call);
		assert_int_equal(call.status.code, CK_GRPC_OK);
		assert_int_equal(call.items, streams[i].items);
		assert_int_equal(call.messages, streams[i].messages);
		assert_false(call.empty);
		cri_end(&call);
	}
	end(&f);
	begin(&f, "");
	for (size_t i = 0; i < CK_COUNT(streams); i++) {
		struct cri_call call;
		cri_start(&f.client, &call, streams[i].rpc, NULL, NULL);
		cri_wait(&call);
		assert_int_equal(call.status.code, CK_GRPC_OK);
		assert_int_equal(call.messages, 0);
		cri_end(&call);
	}
	end(&f);
}

static void check_event(struct cri_call *events, unsigned n, const char *id, uint64_t type)
{
	cri_wait_messages(events, n);
	assert_int_equal(events->messages, n); /* one at a time: each is looked at */
	assert_string_equal(cri_text(&events->reply, "1"), id);
	assert_int_equal(cri_number(&events->reply, "2"), type);
	assert_true(cri_number(&events->reply, "3") > 0);
}

static void changes_are_told_to_who_listens(void **state)
{
	enum { CREATED, STARTED, STOPPED, DELETED };
	struct fixture f;
	struct cri_client listener;
	struct cri_call events;
	(void)state;
	begin(&f, "");
	const char *sandbox = cri_run(&f.client, "web"), *other = cri_run(&f.client, "other");
	cri_open(&listener, f.sim.path);
	cri_start(&listener, &events, "GetContainerEvents", NULL, NULL);
	/* it has been heard by now */
	assert_int_equal(cri_do(&listener, "Version", NULL, NULL), CK_GRPC_OK);
	const char *id = cri_create(&f.client, sandbox, "web", "main");
	check_event(&events, 1, id, CREATED);
	assert_string_equal(cri_text(&events.reply, "4.1"), sandbox);
	assert_string_equal(cri_text(&events.reply, "5.1"), id);
	cri_do_id(&f.client, "StartContainer", id);
	check_event(&events, 2, id, STARTED);
	cri_do_id(&f.client, "StopContainer", id);
	check_event(&events, 3, id, STOPPED);
	cri_do_id(&f.client, "RemoveContainer", id);
	check_event(&events, 4, id, DELETED);
	assert_int_equal(cri_count(&events.reply, "5"), 0);
	cri_do_id(&f.client, "StopPodSandbox", sandbox);
	check_event(&events, 5, sandbox, STOPPED);
	cri_do_id(&f.client, "RemovePodSandbox", sandbox);
	check_event(&events, 6, sandbox, DELETED);
	assert_false(cri_has(&events.reply, "4"));
	cri_do_id(&f.client, "StopPodSandbox", other);
	check_event(&events, 7, other, STOPPED);
	cri_end(&events);
	cri_close(&listener);
	end(&f);
}

/* ---- images ---------------------------------------------------------------------------------- */

static struct ck_bytes image_request(const char *name)
{
	struct ck_bytes spec = { 0 }, request = { 0 };
	put_text(&spec, 1, name);
	put(&request, 1, &spec);
	return request;
}

static void an_image_has_one_id_under_all_its_names(void **state)
{
	static const char *const names[] = { "busybox", "busybox:latest", "library/busybox",
					     "docker.io/library/busybox:latest" };
	struct fixture f;
	(void)state;
	begin(&f, "");
	struct ck_bytes request = image_request("busybox"),
			reply = ask(&f, "ImageService/ImageStatus", &request);
	assert_false(cri_has(&reply, "1"));
	ck_bytes_free(&reply);
	request = image_request("busybox");
	reply = ask(&f, "ImageService/PullImage", &request);
	const char *id = cri_text(&reply, "1");
	ck_bytes_free(&reply);
	for (size_t i = 0; i < CK_COUNT(names); i++) {
		request = image_request(names[i]);
		reply = ask(&f, "ImageService/ImageStatus", &request);
		assert_string_equal(cri_text(&reply, "1.1"), id);
		assert_string_equal(cri_text(&reply, "1.2"), "docker.io/library/busybox:latest");
		ck_bytes_free(&reply);
	}
	char digest[128], short_id[16];
	snprintf(digest, sizeof(digest), "docker.io/library/busybox@%s", id);
	snprintf(short_id, sizeof(short_id), "%.13s", id + 7);
	const char *const ids[] = { id, digest, short_id };
	for (size_t i = 0; i < CK_COUNT(ids); i++) {
		request = image_request(ids[i]);
		reply = ask(&f, "ImageService/ImageStatus", &request);
		assert_string_equal(cri_text(&reply, "1.1"), id);
		assert_string_equal(cri_text(&reply, "1.3"), digest);
		ck_bytes_free(&reply);
	}
	request = image_request(id);
	assert_int_equal(cri_do(&f.client, "ImageService/RemoveImage", &request, NULL), CK_GRPC_OK);
	assert_int_equal(listed(&f, "ImageService/ListImages", NULL), 0);
	end(&f);
}

static void a_container_names_the_id_of_its_image(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "images=busybox");
	struct ck_bytes request = image_request("busybox"),
			image = ask(&f, "ImageService/ImageStatus", &request);
	const char *sandbox = cri_run(&f.client, "web"),
		   *id = cri_create(&f.client, sandbox, "web", "main");
	struct ck_bytes reply = ask_id(&f, "ContainerStatus", id);
	assert_string_equal(cri_text(&reply, "1.9"), cri_text(&image, "1.1"));
	ck_bytes_free(&reply);
	ck_bytes_free(&image);
	end(&f);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void statistics_and_metrics_name_what_they_are_of(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "sandboxes=1,containers=2");
	struct ck_bytes reply = ask(&f, "ListPodSandboxStats", NULL);
	assert_string_equal(cri_text(&reply, "1.1.2.1"), "made-0");
	/* linux: cpu, memory, network, processes, containers */
	assert_true(cri_has(&reply, "1.2.1.2"));
	assert_true(cri_number(&reply, "1.2.2.2.1") > 0);
	assert_string_equal(cri_text(&reply, "1.2.3.2.1"), "eth0");
	assert_int_equal(cri_number(&reply, "1.2.4.2.1"), 3);
	assert_int_equal(cri_count(&reply, "1.2.5"), 2);
	assert_string_equal(cri_text(&reply, "1.2.5#1.1.2.1"), "c1");
	const char *sandbox = cri_text(&reply, "1.1.1");
	ck_bytes_free(&reply);
	reply = ask(&f, "ListPodSandboxMetrics", NULL);
	assert_string_equal(cri_text(&reply, "1.1"), sandbox);
	assert_int_equal(cri_count(&reply, "1.3"), 2);
	const char *container = cri_text(&reply, "1.3.1");
	assert_true(cri_number(&reply, "1.3.2.5.1") > 0);
	ck_bytes_free(&reply);
	reply = ask_id(&f, "ContainerStats", container);
	assert_string_equal(cri_text(&reply, "1.1.1"), container);
	assert_true(cri_number(&reply, "1.3.2.1") > 0);
	ck_bytes_free(&reply);
	reply = ask_id(&f, "PodSandboxStats", sandbox);
	assert_string_equal(cri_text(&reply, "1.1.1"), sandbox);
	ck_bytes_free(&reply);
	reply = ask(&f, "ListMetricDescriptors", NULL);
	assert_int_equal(cri_count(&reply, "1"), 1);
	ck_bytes_free(&reply);
	end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_versions_of_the_api_are_served),
		cmocka_unit_test(it_is_ready_and_its_network_too),
		cmocka_unit_test(calls_are_counted_by_name),
		cmocka_unit_test(a_sandbox_is_made_shown_stopped_and_removed),
		cmocka_unit_test(a_container_is_made_started_stopped_and_removed),
		cmocka_unit_test(a_sandbox_takes_its_containers_with_it),
		cmocka_unit_test(what_is_unknown_can_be_stopped_and_removed_but_not_shown),
		cmocka_unit_test(the_beginning_of_an_id_will_do_if_only_one_has_it),
		cmocka_unit_test(filters_are_honoured),
		cmocka_unit_test(a_name_is_reserved_from_the_beginning_to_the_removal),
		cmocka_unit_test(a_containers_name_does_not_tell_its_sandbox),
		cmocka_unit_test(a_cancelled_creation_is_rolled_back),
		cmocka_unit_test(a_creation_past_its_deadline_is_rolled_back),
		cmocka_unit_test(a_rollback_takes_as_long_as_a_removal_and_keeps_the_name),
		cmocka_unit_test(with_finish_a_creation_ends_well_without_its_caller),
		cmocka_unit_test(with_finish_a_creation_outlives_its_callers_connection),
		cmocka_unit_test(a_container_may_come_to_be_in_a_sandbox_that_has_gone),
		cmocka_unit_test(a_thousand_creations_at_once_take_no_longer_than_one),
		cmocka_unit_test(a_streamed_list_comes_in_messages_none_of_which_is_empty),
		cmocka_unit_test(changes_are_told_to_who_listens),
		cmocka_unit_test(an_image_has_one_id_under_all_its_names),
		cmocka_unit_test(a_container_names_the_id_of_its_image),
		cmocka_unit_test(statistics_and_metrics_name_what_they_are_of),
	};
	return CK_TEST_MAIN(tests);
}
