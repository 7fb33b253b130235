/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated runtime lets be told to plugins: verbose statuses that
 * src/daemon/nri/describe.c reads, updates that show in them, and containers that end by
 * themselves.
 */
#include <limits.h>

#include "tests/unit/harness.h"
#include "tests/unit/wire-build.h"
#include "hooks/wire/nri.pb-c.h"
#include "src/base/mem.h"
#include "src/daemon/nri/describe.h"
#include "tests/flow/cri-client.h"
#include "tests/unit/message-text.h"

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

static uint64_t container_state(struct fixture *f, const char *id)
{
	struct ck_bytes reply = ask_id(f, "ContainerStatus", id);
	uint64_t number = cri_number(&reply, "1.3");
	ck_bytes_free(&reply);
	return number;
}

/* ---- what plugins are told of it ------------------------------------------------------------- */

static char *told(struct fixture *f, enum ck_kind kind, const char *id)
{
	struct ck_bytes reply = ask_id(
				f, kind == CK_SANDBOX ? "PodSandboxStatus" : "ContainerStatus", id),
			told = { 0 };
	struct ck_error err;
	int r = kind == CK_SANDBOX ? ck_describe_pod(reply.p, reply.len, &told, &err) :
				     ck_describe_container(reply.p, reply.len, NULL, &told, &err);
	assert_int_equal(r, 0);
	char *text = message_text(kind == CK_SANDBOX ? &ck__nri__pod_sandbox__descriptor
						     : &ck__nri__container__descriptor,
				  told.p, told.len);
	ck_bytes_free(&told);
	ck_bytes_free(&reply);
	return text;
}

static void assert_told(struct fixture *f, enum ck_kind kind, const char *id,
			const char *const *lines)
{
	char *text = told(f, kind, id);
	for (; *lines; lines++)
		if (!has_line(text, *lines))
			fail_msg("no line '%s' in:\n%s", *lines, text);
	free(text);
}

static struct ck_bytes uses(uint64_t quota, uint64_t memory, const char *unified, const char *value)
{
	struct ck_bytes uses = { 0 };
	if (quota)
		put_number(&uses, 2, quota);
	if (memory)
		put_number(&uses, 4, memory);
	if (unified)
		put_pair(&uses, 9, unified, value);
	return uses;
}

static const char *rich_pod(struct fixture *f)
{
	struct ck_bytes request = { 0 }, config = { 0 }, pod_linux = { 0 }, part, reply;
	cri_pod_config(&config, "rich", 0);
	put_text(&pod_linux, 1, "/kubepods/pod1");
	part = uses(0, 1 << 20, NULL, NULL);
	put(&pod_linux, 4, &part);
	part = uses(5000, 0, "memory.high", "7");
	put(&pod_linux, 5, &part);
	put(&config, 8, &pod_linux);
	put(&request, 1, &config);
	put_text(&request, 2, "crun");
	reply = ask(f, "RunPodSandbox", &request);
	const char *id = cri_text(&reply, "1");
	ck_bytes_free(&reply);
	return id;
}

/* of "rich": with what its request can say; @exit: its annotation, or NULL */
static const char *rich_container(struct fixture *f, const char *sandbox, const char *name,
				  const char *exit)
{
	struct ck_bytes request = { 0 }, config = { 0 }, part = { 0 }, inner = { 0 },
			number = { 0 }, reply;
	put_text(&request, 1, sandbox);
	put_text(&part, 1, name);
	put(&config, 1, &part);
	put_text(&part, 1, "busybox");
	put(&config, 2, &part);
	put_text(&config, 3, "/bin/serve");
	put_text(&config, 4, "-v");
	put_pair(&config, 6, "KEY", "a=b\xff");
	put_pair(&config, 7, "/data", "/srv");
	put_pair(&config, 8, "/dev/x", "/dev/y");
	if (exit)
		put_pair(&config, 10, "crikeep.sim/exit", exit);
	inner = uses(2000, 1 << 21, "cpu.weight", "5");
	put_number(&inner, 5, (uint64_t)-7);
	put(&part, 1, &inner);
	put_number(&number, 1, 1000);
	put(&inner, 5, &number);
	put(&part, 2, &inner);
	put(&config, 15, &part);
	put_text(&part, 1, "vendor.com/d=1");
	put(&config, 17, &part);
	put(&request, 2, &config);
	cri_pod_config(&config, "rich", 0);
	put(&request, 3, &config);
	reply = ask(f, "CreateContainer", &request);
	const char *id = cri_text(&reply, "1");
	ck_bytes_free(&reply);
	return id;
}

static void plugins_can_be_told_all_of_a_pod(void **state)
{
	static const char *const lines[] = {
		"name: rich",
		"namespace: ns",
		"runtime_handler: crun",
		"linux.pod_overhead.memory.limit.value: 1048576",
		"linux.pod_resources.cpu.quota.value: 5000",
		"linux.pod_resources.unified{memory.high}: 7",
		"linux.cgroup_parent: /kubepods/pod1",
		"linux.namespaces[4].type: network",
		"linux.resources.cpu.shares.value: 2",
		"pid: 10001",
		"ips[0]: 10.64.0.1",
		NULL,
	};
	static const char *const updated[] = {
		"linux.pod_overhead.memory.limit.value: 3",
		"linux.pod_resources.cpu.quota.value: 5000",
		"linux.pod_resources.memory.limit.value: 4",
		"linux.pod_resources.unified{memory.high}: 8",
		NULL,
	};
	struct fixture f;
	struct ck_bytes request = { 0 }, part;
	char line[128];
	(void)state;
	begin(&f, "");
	const char *id = rich_pod(&f);
	assert_told(&f, CK_SANDBOX, id, lines);
	char *text = told(&f, CK_SANDBOX, id);
	snprintf(line, sizeof(line), "linux.cgroups_path: /kubepods/pod1/%s", id);
	assert_true(has_line(text, line));
	free(text);
	put_text(&request, 1, id);
	part = uses(0, 3, NULL, NULL);
	put(&request, 2, &part);
	part = uses(0, 4, "memory.high", "8");
	put(&request, 3, &part);
	assert_int_equal(cri_do(&f.client, "UpdatePodSandboxResources", &request, NULL),
			 CK_GRPC_OK);
	assert_told(&f, CK_SANDBOX, id, updated);
	assert_int_equal(cri_do_id(&f.client, "StopPodSandbox", id), CK_GRPC_OK);
	text = told(&f, CK_SANDBOX, id);
	assert_null(strstr(text, "\npid: "));
	free(text);
	end(&f);
}

static void plugins_can_be_told_all_of_a_container(void **state)
{
	static const char *const lines[] = {
		"name: main",
		"state: 1",
		"args[0]: /bin/serve",
		"args[1]: -v",
		"env[1]: KEY=a=b\xef\xbf\xbd",
		"mounts[0].destination: /data",
		"mounts[0].options[2]: rw",
		"linux.namespaces[4].path: /proc/10001/ns/net",
		"linux.devices[0].path: /dev/x",
		"linux.resources.cpu.quota.value: 2000",
		"linux.resources.memory.limit.value: 2097152",
		"linux.resources.unified{cpu.weight}: 5",
		"linux.oom_score_adj.value: -7",
		"CDI_devices[0].name: vendor.com/d=1",
		"user.uid: 1000",
		NULL,
	};
	static const char *const updated[] = {
		"state: 3",
		"pid: 10002",
		"linux.resources.cpu.quota.value: 2000",
		"linux.resources.memory.limit.value: 9",
		"linux.resources.unified{cpu.weight}: 5",
		"linux.resources.unified{memory.high}: 10",
		NULL,
	};
	struct fixture f;
	struct ck_bytes request = { 0 }, part;
	char line[128];
	(void)state;
	begin(&f, "");
	const char *sandbox = rich_pod(&f), *id = rich_container(&f, sandbox, "main", NULL);
	assert_told(&f, CK_CONTAINER, id, lines);
	assert_int_equal(cri_do_id(&f.client, "StartContainer", id), CK_GRPC_OK);
	put_text(&request, 1, id);
	part = uses(0, 9, "memory.high", "10");
	put(&request, 2, &part);
	assert_int_equal(cri_do(&f.client, "UpdateContainerResources", &request, NULL), CK_GRPC_OK);
	assert_told(&f, CK_CONTAINER, id, updated);
	char *text = told(&f, CK_CONTAINER, id);
	snprintf(line, sizeof(line), "pod_sandbox_id: %s", sandbox);
	assert_true(has_line(text, line));
	free(text);
	struct ck_bytes reply = ask_id(&f, "ContainerStatus", id);
	assert_int_equal(cri_number(&reply, "1.16.1.4"), 9); /* in the status itself, too */
	assert_int_equal(cri_count(&reply, "1.16.1.9"), 2);
	ck_bytes_free(&reply);
	put_text(&request, 1, id);
	put_text(&request, 2, "\xff");
	assert_int_equal(cri_do(&f.client, "UpdateContainerResources", &request, NULL),
			 CK_GRPC_INTERNAL);
	end(&f);
}

/* ---- ends that nobody asked for -------------------------------------------------------------- */

/* until its event has come */
static void wait_for_end(struct fixture *f, struct cri_call *events, const char *id)
{
	enum { STOPPED = 2 };
	for (unsigned n = events->messages;;) {
		if (n && !strcmp(cri_text(&events->reply, "1"), id) &&
		    cri_number(&events->reply, "2") == STOPPED)
			break;
		cri_wait_messages(events, ++n);
	}
	assert_int_equal(container_state(f, id), 2);
}

static void a_container_ends_by_itself_when_it_was_told_to(void **state)
{
	struct fixture f;
	struct cri_call events;
	(void)state;
	begin(&f, "");
	const char *sandbox = rich_pod(&f);
	const char *well = rich_container(&f, sandbox, "well", "0s"),
		   *ill = rich_container(&f, sandbox, "ill", "20ms:3");
	const char *never = rich_container(&f, sandbox, "never", NULL),
		   *bad = rich_container(&f, sandbox, "bad", "soon");
	cri_start(&f.client, &events, "GetContainerEvents", NULL, NULL);
	cri_do_id(&f.client, "StartContainer", never);
	cri_do_id(&f.client, "StartContainer", bad);
	cri_do_id(&f.client, "StartContainer", well);
	wait_for_end(&f, &events, well);
	struct ck_bytes reply = ask_id(&f, "ContainerStatus", well);
	assert_int_equal(cri_number(&reply, "1.7"), 0);
	assert_string_equal(cri_text(&reply, "1.10"), "Completed");
	assert_true(cri_number(&reply, "1.6") >= cri_number(&reply, "1.5"));
	ck_bytes_free(&reply);
	cri_do_id(&f.client, "StartContainer", ill);
	wait_for_end(&f, &events, ill);
	reply = ask_id(&f, "ContainerStatus", ill);
	assert_int_equal(cri_number(&reply, "1.7"), 3);
	assert_string_equal(cri_text(&reply, "1.10"), "Error");
	ck_bytes_free(&reply);
	assert_int_equal(container_state(&f, never), 1);
	assert_int_equal(container_state(&f, bad), 1);
	/* what has ended stays so */
	assert_int_equal(cri_do_id(&f.client, "StopContainer", well), CK_GRPC_OK);
	reply = ask_id(&f, "ContainerStatus", well);
	assert_int_equal(cri_number(&reply, "1.7"), 0);
	ck_bytes_free(&reply);
	cri_end(&events);
	end(&f);
}

static void every_container_ends_by_itself_with_exit(void **state)
{
	struct fixture f;
	struct cri_call events;
	char dir[PATH_MAX], parameters[PATH_MAX + 32];
	(void)state;
	snprintf(dir, sizeof(dir), "%s/sim.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(parameters, sizeof(parameters), "exit=1h,state=%s/state", dir);
	begin(&f, parameters);
	const char *sandbox = rich_pod(&f), *first = rich_container(&f, sandbox, "first", NULL);
	const char *mine = rich_container(&f, sandbox, "mine", "0s:7");
	struct ck_bytes request = { 0 }, part = uses(0, 11, NULL, NULL);
	put_text(&request, 1, first);
	put(&request, 2, &part);
	assert_int_equal(cri_do(&f.client, "UpdateContainerResources", &request, NULL), CK_GRPC_OK);
	cri_start(&f.client, &events, "GetContainerEvents", NULL, NULL);
	cri_do_id(&f.client, "StartContainer", first);
	cri_do_id(&f.client, "StartContainer", mine);
	wait_for_end(&f, &events, mine);
	assert_int_equal(container_state(&f, first), 1);
	cri_end(&events);
	cri_close(&f.client);
	sim_kill(&f.sim);
	/* what is known after a kill, and what was due meanwhile */
	snprintf(parameters, sizeof(parameters), "exit=1ms,state=%s/state", dir);
	sim_restart(&f.sim, parameters);
	cri_open(&f.client, f.sim.path);
	struct ck_bytes reply = ask_id(&f, "ContainerStatus", mine);
	assert_int_equal(cri_number(&reply, "1.7"), 7);
	ck_bytes_free(&reply);
	reply = ask_id(&f, "ContainerStatus", first);
	assert_int_equal(cri_number(&reply, "1.16.1.4"), 11);
	assert_int_equal(cri_number(&reply, "1.16.1.2"), 2000);
	ck_bytes_free(&reply);
	while (container_state(&f, first) != 2) { /* the group's time limit ends this */
	}
	end(&f);
	snprintf(parameters, sizeof(parameters), "%s/state", dir);
	assert_int_equal(unlink(parameters), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plugins_can_be_told_all_of_a_pod),
		cmocka_unit_test(plugins_can_be_told_all_of_a_container),
		cmocka_unit_test(a_container_ends_by_itself_when_it_was_told_to),
		cmocka_unit_test(every_container_ends_by_itself_with_exit),
	};

	return CK_TEST_MAIN(tests);
}
