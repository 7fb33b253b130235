/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and containers as plugins are told of them, out of recorded statuses, of ones that nobody
 * would send, and of requests. */
#include "tests/unit/harness.h"

#include "hooks/wire/nri.pb-c.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/nri/describe.h"
#include "tests/unit/cri-build.h"
#include "tests/unit/message-text.h"
#include "tests/unit/wire-build.h"

static char *pod_text(const void *response, size_t len)
{
	struct ck_bytes pod = { 0 };
	struct ck_error err;
	assert_int_equal(ck_describe_pod(response, len, &pod, &err), 0);
	assert_int_equal(pod.p[0], 1 << 3 | 2); /* the id comes first */
	char *text = message_text(&ck__nri__pod_sandbox__descriptor, pod.p, pod.len);
	ck_bytes_free(&pod);
	return text;
}

static char *container_text(const void *response, size_t len, const char *sandbox_id)
{
	struct ck_bytes container = { 0 };
	struct ck_error err;
	assert_int_equal(ck_describe_container(response, len, sandbox_id, &container, &err), 0);
	assert_int_equal(container.p[0], 1 << 3 | 2);
	char *text = message_text(&ck__nri__container__descriptor, container.p, container.len);
	ck_bytes_free(&container);
	return text;
}

static void load(const char *name, struct pb *ret_response)
{
	char path[256];
	snprintf(path, sizeof(path), "status/%s.bin", name);
	FILE *f = data_open(path);
	ret_response->len = fread(ret_response->bytes, 1, sizeof(ret_response->bytes), f);
	assert_true(feof(f));
	fclose(f);
}

static void assert_lines(const char *text, const char *const *lines)
{
	for (; *lines; lines++)
		if (!has_line(text, *lines))
			fail_msg("no line '%s' in:\n%s", *lines, text);
}

static char *recorded_pod(const char *name)
{
	struct pb *response = test_malloc(sizeof(*response));
	load(name, response);
	char *text = pod_text(response->bytes, response->len);
	test_free(response);
	return text;
}

static char *recorded_container(const char *name, const char *sandbox_id)
{
	struct pb *response = test_malloc(sizeof(*response));
	load(name, response);
	char *text = container_text(response->bytes, response->len, sandbox_id);
	test_free(response);
	return text;
}

/* ---- recorded -------------------------------------------------------------------------------- */

#define NETNS "/run/containerd/io.containerd.grpc.v1.cri/netns/"

static void containerds_pod_is_told_whole(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"name: web",
		"uid: 4f1c2a3e-0b52-4f0e-9c55-7d1f3f6b2a10",
		"namespace: shop",
		"labels{app}: web",
		"annotations{example.com/team}: blue",
		"linux.pod_overhead.memory.limit.value: 33554432",
		"linux.pod_overhead.cpu.shares.value: 51",
		"linux.pod_resources.memory.limit.value: 268435456",
		"linux.pod_resources.cpu.shares.value: 1024",
		"linux.pod_resources.cpu.quota.value: 150000",
		"linux.pod_resources.cpu.period.value: 100000",
		"linux.pod_resources.hugepage_limits[0].page_size: 2MB",
		"linux.pod_resources.hugepage_limits[0].limit: 4194304",
		"linux.pod_resources.unified{memory.high}: 200000000",
		"linux.cgroup_parent: /kubepods/pod1",
		"linux.namespaces[0].type: pid",
		"linux.namespaces[4].type: network",
		"linux.resources.cpu.shares.value: 2",
		"linux.resources.devices[0].access: rwm",
		"pid: 140",
		"ips[0]: 10.88.0.7",
		"ips[1]: fd00:88::7",
		NULL,
	};
	char *text = recorded_pod("containerd-1.6.20-pod-ready");
	assert_lines(text, lines);
	assert_non_null(strstr(text, "\nlinux.namespaces[4].path: " NETNS "cni-"));
	assert_non_null(strstr(text, "\nlinux.cgroups_path: /kubepods/pod1/"));
	free(text);
	text = recorded_pod("containerd-1.6.20-pod-stopped");
	assert_null(strstr(text, "\npid: "));
	assert_non_null(strstr(text, "\nlinux.cgroups_path: /kubepods/pod1/"));
	free(text);
}

static void containerds_container_is_told_whole(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"name: app",
		"state: 3",
		"labels{io.kubernetes.container.name}: app",
		"annotations{example.com/note}: tab\there",
		"annotations{io.kubernetes.container.restartCount}: 2",
		"args[0]: /bin/sleep",
		"args[1]: 600",
		"env[0]: PATH=/bin",
		"env[2]: GREETING=Gr\xc3\xbc\xc3\x9f" "e",
		"env[3]: EMPTY=",
		"mounts[6].destination: /data",
		"mounts[6].type: bind",
		"mounts[6].source: /tmp",
		"mounts[6].options[2]: ro",
		"linux.namespaces[4].type: network",
		"linux.namespaces[4].path: /proc/140/ns/net",
		"linux.devices[0].path: /dev/zero2",
		"linux.devices[0].major: 1",
		"linux.devices[0].minor: 5",
		"linux.devices[0].file_mode.value: 438",
		"linux.devices[0].uid: {}",
		"linux.resources.memory.limit.value: 134217728",
		"linux.resources.memory.swap.value: 134217728",
		"linux.resources.cpu.quota.value: 50000",
		"linux.resources.cpu.cpus: 0-1",
		"linux.oom_score_adj.value: 900",
		"linux.seccomp_profile: {}",
		"linux.seccomp_policy.default_action: SCMP_ACT_ERRNO",
		"pid: 193",
		"created_at: 1795302264978820425",
		"started_at: 1795302265195877776",
		"user.uid: 1000",
		"user.gid: 1001",
		"user.additional_gids[2]: 3000",
		"image.name: docker.io/lab/busybox:1",
		NULL,
	};
	char *text = recorded_container("containerd-1.6.20-container-running", NULL);
	assert_lines(text, lines);
	assert_non_null(strstr(text, "\npod_sandbox_id: a626975b42ec4ba9")); /* the info says so */
	assert_non_null(strstr(text, "\nimage.config_digest: sha256:420cc0e6b9b1d78d"));
	free(text);
	text = recorded_container("containerd-1.6.20-container-running", "as-we-know");
	assert_true(has_line(text, "pod_sandbox_id: as-we-know"));
	free(text);
}

static void a_life_of_a_container_is_seen_in_its_state(void **state)
{
	(void)state;
	static const char *const created[] = { "state: 1", "linux.resources.cpu.shares.value: 512",
					       NULL };
	static const char *const updated[] = {
		"state: 3",
		"linux.resources.cpu.shares.value: 256",
		"linux.resources.memory.limit.value: 67108864",
		"linux.resources.cpu.quota.value: 50000",
		NULL,
	};
	static const char *const exited[] = { "state: 4", "exit_code: 137", "status_reason: Error",
					      NULL };
	char *text = recorded_container("containerd-1.6.20-container-created", NULL);
	assert_lines(text, created);
	assert_null(strstr(text, "\nstarted_at: "));
	free(text);
	text = recorded_container("containerd-1.6.20-container-updated", NULL);
	assert_lines(text, updated);
	free(text);
	text = recorded_container("containerd-1.6.20-container-exited", NULL);
	assert_lines(text, exited);
	assert_non_null(strstr(text, "\nfinished_at: 1795302265"));
	assert_null(strstr(text, "\npid: "));
	free(text);
}

static void crios_pod_is_told_from_its_annotations(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"labels{app}: web",
		"runtime_handler: crun",
		"linux.pod_overhead.memory.limit.value: 33554432",
		"linux.pod_overhead.cpu.shares.value: 51",
		"linux.pod_resources.cpu.quota.value: -1",
		"linux.pod_resources.hugepage_limits[0].limit: 4194304",
		"linux.cgroup_parent: kubepods-pod1.slice",
		"linux.cgroups_path: kubepods-pod1.slice:crio:0011",
		"linux.namespaces[1].path: /var/run/netns/2b6d1f0c",
		"linux.resources.pids.limit: 1024",
		"ips[1]: fd00:85::9",
		NULL,
	};
	char *text = recorded_pod("crio-form-pod");
	assert_lines(text, lines);
	assert_true(has_line(text, "pid: 4711"));
	free(text);
	text = recorded_pod("crio-form-pod-without-infra");
	assert_lines(text, lines);
	assert_null(strstr(text, "\npid: "));
	free(text);
}

static const char whole_spec[] =
	"id: 2233223322332233223322332233223322332233223322332233223322332233\n"
	"pod_sandbox_id: 0011001100110011001100110011001100110011001100110011001100110011\n"
	"name: app\n"
	"state: 3\n"
	"labels{app}: web\n"
	"annotations{note}: kept\n"
	"args[0]: serve\n"
	"args[1]: \n"
	"args[2]: -v\n"
	"env[0]: A=1\n"
	"env[1]: B=\n"
	"mounts[0].destination: /data\n"
	"mounts[0].type: bind\n"
	"mounts[0].source: /srv/data\n"
	"mounts[0].options[0]: rbind\n"
	"mounts[0].options[1]: ro\n"
	"hooks.prestart[0].path: /usr/libexec/old\n"
	"hooks.create_runtime[0].path: /usr/libexec/hook\n"
	"hooks.create_runtime[0].args[0]: hook\n"
	"hooks.create_runtime[0].args[1]: -x\n"
	"hooks.create_runtime[0].env[0]: K=V\n"
	"hooks.create_runtime[0].timeout: {}\n"
	"hooks.poststop[0].path: /usr/libexec/end\n"
	"linux.namespaces[0].type: pid\n"
	"linux.namespaces[1].type: network\n"
	"linux.namespaces[1].path: /var/run/netns/2b6d1f0c\n"
	"linux.devices[0].path: /dev/fuse\n"
	"linux.devices[0].type: c\n"
	"linux.devices[0].major: 10\n"
	"linux.devices[0].minor: 229\n"
	"linux.devices[0].file_mode.value: 438\n"
	"linux.devices[0].uid: {}\n"
	"linux.devices[0].gid: {}\n"
	"linux.resources.memory.limit: {}\n"
	"linux.resources.memory.swap.value: -1\n"
	"linux.resources.memory.swappiness: {}\n"
	"linux.resources.memory.disable_oom_killer: {}\n"
	"linux.resources.memory.use_hierarchy.value: true\n"
	"linux.resources.cpu.shares.value: 2\n"
	"linux.resources.cpu.quota.value: -1\n"
	"linux.resources.cpu.period.value: 100000\n"
	"linux.resources.cpu.realtime_runtime.value: 950000\n"
	"linux.resources.cpu.realtime_period.value: 1000000\n"
	"linux.resources.cpu.cpus: 0-3\n"
	"linux.resources.cpu.mems: 0\n"
	"linux.resources.hugepage_limits[0].page_size: 1GB\n"
	"linux.resources.hugepage_limits[0].limit: 1073741824\n"
	"linux.resources.unified{memory.high}: 1000\n"
	"linux.resources.devices[0].access: rwm\n"
	"linux.resources.devices[1].allow: true\n"
	"linux.resources.devices[1].type: c\n"
	"linux.resources.devices[1].major.value: 10\n"
	"linux.resources.devices[1].minor: {}\n"
	"linux.resources.devices[1].access: rw\n"
	"linux.resources.pids.limit: -1\n"
	"linux.oom_score_adj.value: -997\n"
	"linux.cgroups_path: kubepods-pod1.slice:crio:2233\n"
	"linux.io_priority.class: 2\n"
	"linux.io_priority.priority: 4\n"
	"linux.seccomp_policy.default_action: SCMP_ACT_ERRNO\n"
	"linux.seccomp_policy.default_errno: {}\n"
	"linux.seccomp_policy.architectures[0]: SCMP_ARCH_X86_64\n"
	"linux.seccomp_policy.flags[0]: SECCOMP_FILTER_FLAG_LOG\n"
	"linux.seccomp_policy.listener_path: /run/l\n"
	"linux.seccomp_policy.listener_metadata: m\n"
	"linux.seccomp_policy.syscalls[0].names[0]: personality\n"
	"linux.seccomp_policy.syscalls[0].names[1]: clone\n"
	"linux.seccomp_policy.syscalls[0].action: SCMP_ACT_ALLOW\n"
	"linux.seccomp_policy.syscalls[0].errno_ret.value: 1\n"
	"linux.seccomp_policy.syscalls[0].args[0].value: 8\n"
	"linux.seccomp_policy.syscalls[0].args[0].value_two: 9\n"
	"linux.seccomp_policy.syscalls[0].args[0].op: SCMP_CMP_MASKED_EQ\n"
	"linux.sysctl{net.core.somaxconn}: 512\n"
	"linux.net_devices{eth7}.name: net0\n"
	"linux.net_devices{eth8}: {}\n"
	"linux.scheduler.policy: 2\n"
	"linux.scheduler.priority: 10\n"
	"linux.scheduler.flags[0]: 0\n"
	"linux.scheduler.flags[1]: 4\n"
	"linux.rdt.clos_id.value: gold\n"
	"linux.rdt.schemata.value[0]: L3:0=f\n"
	"linux.rdt.enable_monitoring.value: true\n"
	"pid: 4712\n"
	"rlimits[0].type: RLIMIT_NOFILE\n"
	"rlimits[0].hard: 18446744073709551615\n"
	"rlimits[0].soft: 1024\n"
	"created_at: 1700000001000000000\n"
	"started_at: 1700000002000000000\n"
	"user.uid: 7\n"
	"user.gid: 8\n"
	"user.additional_gids[0]: 8\n"
	"user.additional_gids[1]: 9\n"
	"image.name: quay.io/shop/app:1\n"
	"image.digest: "
	"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
	"image.config_digest: "
	"sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n";

/* all of it: each field of the spec that has a place is there */
static void every_field_of_the_spec_arrives(void **state)
{
	(void)state;
	char *text = recorded_container("crio-form-container", NULL);
	assert_string_equal(text, whole_spec);
	free(text);
}

/* ---- without an info, or with a bad one ------------------------------------------------------ */

/* a status with what CRI itself can tell; @info: NULL, or the JSON */
static void build_status(struct ck_bytes *response, const char *annotation, const char *value,
			 const char *info)
{
	struct ck_bytes status = { 0 }, part = { 0 }, inner = { 0 };
	put_text(&status, 1, "c1");
	put_text(&part, 1, "app");
	put(&status, 2, &part);
	put_number(&status, 3, 1);
	if (annotation)
		put_pair(&status, 13, annotation, value);
	put_pair(&status, 13, "kept", "yes");
	put_text(&part, 1, "/data");
	put_text(&part, 2, "/srv");
	put_number(&part, 3, 1);
	put_number(&part, 5, 2);
	put(&status, 14, &part);
	put_number(&inner, 3, 128);
	put_number(&inner, 5, (uint64_t)-5);
	put_number(&inner, 10, 4096);
	put(&part, 1, &inner);
	put(&status, 16, &part);
	put_number(&inner, 1, 65534);
	must(ck_bytes_field(&inner, 3, "\x05\x06", 2)); /* packed */
	put_number(&inner, 3, 300);                     /* and not */
	put(&part, 1, &inner);
	put(&status, 18, &part);
	put(response, 1, &status);
	if (info)
		put_pair(response, 2, "info", info);
}

static char *status_text(const char *annotation, const char *value, const char *info)
{
	struct ck_bytes response = { 0 };
	build_status(&response, annotation, value, info);
	char *text = container_text(response.p, response.len, "s1");
	ck_bytes_free(&response);
	return text;
}

static void without_an_info_the_status_is_told(void **state)
{
	(void)state;
	static const char *const bad[] = {
		NULL,   "",        "{",          "[]",           "nonsense", "null",
		"{\"a\":\"\xff\"}", "{\"runtimeSpec\":[], \"config\":7, \"pid\":\"140\"}",
		"{\"runtimeSpec\":{\"process\":null,\"linux\":\"\"},\"pid\":-1}",
		"{\"pid\":18446744073709551616}",
	};
	static const char all[] =
		"id: c1\n"
		"pod_sandbox_id: s1\n"
		"name: app\n"
		"state: 3\n"
		"annotations{kept}: yes\n"
		"mounts[0].destination: /data\n"
		"mounts[0].type: bind\n"
		"mounts[0].source: /srv\n"
		"mounts[0].options[0]: rbind\n"
		"mounts[0].options[1]: rshared\n"
		"mounts[0].options[2]: ro\n"
		"linux.resources.memory.swap.value: 4096\n"
		"linux.resources.cpu.shares.value: 128\n"
		"linux.oom_score_adj.value: -5\n"
		"user.uid: 65534\n"
		"user.additional_gids[0]: 5\n"
		"user.additional_gids[1]: 6\n"
		"user.additional_gids[2]: 300\n"
		"image: {}\n";
	for (size_t i = 0; i < CK_COUNT(bad); i++) {
		char *text = status_text(NULL, NULL, bad[i]);
		assert_string_equal(text, all);
		free(text);
	}
}

static void an_alias_is_the_id_and_is_not_shown(void **state)
{
	(void)state;
	char alias[CK_ALIAS_LEN + 1];
	memset(alias, 'a', CK_ALIAS_LEN);
	alias[CK_ALIAS_LEN] = '\0';
	char *text = status_text(CK_ALIAS_ANNOTATION, alias, NULL);
	char line[CK_ALIAS_LEN + 8];
	snprintf(line, sizeof(line), "id: %s", alias);
	assert_true(has_line(text, line));
	assert_null(strstr(text, CK_ALIAS_ANNOTATION));
	assert_true(has_line(text, "annotations{kept}: yes"));
	free(text);
	/* somebody else's value under our name is none */
	static const char *const others[] = { "", "c2", "AAAA" };
	for (size_t i = 0; i < CK_COUNT(others); i++) {
		text = status_text(CK_ALIAS_ANNOTATION, others[i], NULL);
		assert_true(has_line(text, "id: c1"));
		assert_null(strstr(text, CK_ALIAS_ANNOTATION));
		free(text);
	}
	alias[7] = 'G';
	text = status_text(CK_ALIAS_ANNOTATION, alias, NULL);
	assert_true(has_line(text, "id: c1"));
	free(text);
}

/* a reader in Go refuses the whole message for one bad byte */
static void texts_become_utf8(void **state)
{
	(void)state;
	static const struct {
		const char *text, *told;
	} cases[] = {
		{ "plain", "plain" },
		{ "\xc3\xbc", "\xc3\xbc" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "a\xff", "a\xef\xbf\xbd" },
		{ "\xff\xfe" "b", "\xef\xbf\xbd\xef\xbf\xbd" "b" },
		{ "cut\xc3", "cut\xef\xbf\xbd" },
		{ "cut\xf0\x9f\x98", "cut\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd" },         /* a NUL, written too long */
		/* half a pair of UTF-16 */
		{ "\xed\xa0\x80x", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx" },
	};
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		char line[128], info[256];
		snprintf(info, sizeof(info), "{\"runtimeSpec\":{\"process\":{\"args\":[\"%s\"]}}}",
			 cases[i].text);
		char *text = status_text("note", cases[i].text, info);
		snprintf(line, sizeof(line), "annotations{note}: %s", cases[i].told);
		assert_true(has_line(text, line));
		snprintf(line, sizeof(line), "args[0]: %s", cases[i].told);
		assert_true(has_line(text, line));
		free(text);
		text = status_text(cases[i].text, "value", NULL);
		snprintf(line, sizeof(line), "annotations{%s}: value", cases[i].told);
		assert_true(has_line(text, line));
		free(text);
	}
}

/* a value that NRI has no place for counts as missing: a flag that is not known is not the first */
static void values_that_do_not_fit_are_left_out(void **state)
{
	(void)state;
	char *text = status_text(NULL, NULL,
				 "{\"runtimeSpec\":{\"process\":{\"user\":{\"uid\":-1,\"gid\":8,"
				 "\"additionalGids\":[4294967296,9,\"x\"]},"
				 "\"env\":[\"A=a\\u0000b\",7],"
				 "\"scheduler\":{\"policy\":\"SCHED_NEW\",\"nice\":3,"
				 "\"flags\":[\"SCHED_FLAG_NEW\",\"SCHED_FLAG_RECLAIM\"]}}}}");
	assert_null(strstr(text, "user.uid"));
	assert_true(has_line(text, "user.gid: 8"));
	assert_true(has_line(text, "user.additional_gids[0]: 9"));
	assert_null(strstr(text, "user.additional_gids[1]"));
	/* protobuf has a NUL in a text, C does not */
	assert_true(has_line(text, "env[0]: A=a\xEF\xBF\xBD" "b"));
	assert_null(strstr(text, "env[1]"));
	assert_null(strstr(text, "linux.scheduler.policy"));
	assert_true(has_line(text, "linux.scheduler.nice: 3"));
	assert_true(has_line(text, "linux.scheduler.flags[0]: 1"));
	assert_null(strstr(text, "linux.scheduler.flags[1]"));
	free(text);
}

static void an_info_without_end_is_left_out(void **state)
{
	(void)state;
	const size_t n = CK_INFO_MAX + 64;
	char *info = calloc(1, n);
	assert_non_null(info);
	/* one part too many; the same as a text is bearable */
	int at = snprintf(info, n, "{\"pid\":5,\"x\":[");
	memset(info + at, ' ', 2 * CK_INFO_PARTS_MAX);
	for (unsigned i = 0; i < CK_INFO_PARTS_MAX; i++)
		memcpy(info + at + 2 * i, "1,", 2);
	strcpy(info + at + 2 * CK_INFO_PARTS_MAX, "1]}");
	char *text = status_text(NULL, NULL, info);
	assert_null(strstr(text, "\npid: "));
	free(text);
	info[at - 1] = '"', info[at] = '\\', info[at + 1] = '"';
	strcpy(info + at + 2 * CK_INFO_PARTS_MAX, "\"}");
	text = status_text(NULL, NULL, info);
	assert_true(has_line(text, "pid: 5"));
	free(text);
	/* too deep */
	at = snprintf(info, n, "{\"pid\":5,\"x\":");
	for (unsigned i = 0; i < CK_INFO_DEPTH_MAX; i++)
		info[at + i] = '[', info[at + CK_INFO_DEPTH_MAX + i] = ']';
	strcpy(info + at + 2 * CK_INFO_DEPTH_MAX, "}");
	text = status_text(NULL, NULL, info);
	assert_null(strstr(text, "\npid: "));
	free(text);
	/* too long */
	memset(info, ' ', n - 1);
	strcpy(info + n - 16, "{\"pid\":5}");
	text = status_text(NULL, NULL, info);
	assert_null(strstr(text, "\npid: "));
	free(text);
	free(info);
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char whole_request[] =
	"id: ours\n"
	"pod_sandbox_id: s1\n"
	"name: app\n"
	"labels{label}: l\n"
	"annotations{note}: n\n"
	"args[0]: /bin/sh\n"
	"args[1]: -c\n"
	"args[2]: \n"
	"env[0]: K=V=\xef\xbf\xbd\n"
	"env[1]: EMPTY=\n"
	"mounts[0].destination: /data\n"
	"mounts[0].type: bind\n"
	"mounts[0].source: /srv\n"
	"mounts[0].options[0]: rbind\n"
	"mounts[0].options[1]: rprivate\n"
	"mounts[0].options[2]: rw\n"
	"linux.devices[0].path: /dev/fuse\n"
	"linux.resources.memory.limit.value: 1048576\n"
	"linux.resources.cpu.quota.value: -1\n"
	"linux.oom_score_adj.value: 900\n"
	"linux.seccomp_profile.profile_type: 2\n"
	"linux.seccomp_profile.localhost_ref: profile.json\n"
	"CDI_devices[0].name: vendor.com/device=gpu\n"
	"user.uid: 1000\n"
	"user.gid: 1001\n"
	"user.additional_gids[0]: 7\n"
	"image.name: busybox:1\n"
	"image.config_digest: "
	"sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n";

static void a_request_is_told_as_far_as_it_goes(void **state)
{
	(void)state;
	struct ck_bytes request = { 0 }, config = { 0 }, part = { 0 }, inner = { 0 },
			number = { 0 };
	put_text(&request, 1, "s1");
	put_text(&part, 1, "app");
	put(&config, 1, &part);
	put_text(&part, 1,
		 "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
	put_text(&part, 18, "busybox:1");
	put(&config, 2, &part);
	put_text(&config, 3, "/bin/sh");
	put_text(&config, 4, "-c");
	put_text(&config, 4, "");
	put_pair(&config, 6, "K", "V=\xff");
	put_pair(&config, 6, "EMPTY", "");
	put_pair(&config, 7, "/data", "/srv");
	put_text(&part, 1, "/dev/fuse");
	put_text(&part, 2, "/dev/fuse7");
	put_text(&part, 3, "rw");
	put(&config, 8, &part);
	put_pair(&config, 9, "label", "l");
	put_pair(&config, 10, "note", "n");
	put_pair(&config, 10, CK_ALIAS_ANNOTATION, "not shown");
	put_number(&inner, 2, (uint64_t)-1);
	put_number(&inner, 4, 1 << 20);
	put_number(&inner, 5, 900);
	put(&part, 1, &inner); /* resources */
	put_number(&number, 1, 1000);
	put(&inner, 5, &number);
	must(ck_bytes_field(&inner, 8, "\x07", 1));
	put_number(&number, 1, 1001);
	put(&inner, 12, &number);
	put_number(&number, 1, 2);
	put_text(&number, 2, "profile.json");
	put(&inner, 15, &number);
	put(&part, 2, &inner); /* security context */
	put(&config, 15, &part);
	put_text(&part, 1, "vendor.com/device=gpu");
	put(&config, 17, &part);
	put(&request, 2, &config);
	struct ck_bytes container = { 0 };
	struct ck_error err;
	assert_int_equal(ck_describe_request(request.p, request.len, "ours", &container, &err), 0);
	char *text = message_text(&ck__nri__container__descriptor, container.p, container.len);
	assert_string_equal(text, whole_request);
	free(text);
	ck_bytes_free(&container);
	ck_bytes_free(&request);
}

static void a_kubelets_request_is_told(void **state)
{
	(void)state;
	struct pb *request = test_malloc(sizeof(*request));
	struct ck_bytes container = { 0 };
	struct ck_error err;
	load_recorded("025-CreateContainer-web-app.bin", request);
	assert_int_equal(
		ck_describe_request(request->bytes, request->len, "ours", &container, &err), 0);
	char *text = message_text(&ck__nri__container__descriptor, container.p, container.len);
	assert_true(has_line(text, "name: app"));
	assert_true(has_line(text, "labels{io.kubernetes.container.name}: app"));
	assert_non_null(strstr(text, "\nenv[0]: "));
	assert_non_null(strstr(text, "\nlinux.oom_score_adj.value: "));
	free(text);
	ck_bytes_free(&container);
	test_free(request);
}

/* ---- what cannot be told --------------------------------------------------------------------- */

static void messages_without_sense_are_malformed(void **state)
{
	(void)state;
	struct ck_bytes out = { 0 }, empty_id = { 0 }, part = { 0 };
	struct ck_error err;
	put_text(&part, 1, "");
	put(&empty_id, 1, &part);
	assert_int_equal(ck_describe_pod("", 0, &out, &err), -CK_EMALFORMED);
	assert_int_equal(ck_describe_container("", 0, "s1", &out, &err), -CK_EMALFORMED);
	assert_int_equal(ck_describe_request("", 0, "c1", &out, &err), -CK_EMALFORMED);
	assert_int_equal(ck_describe_pod(empty_id.p, empty_id.len, &out, &err), -CK_EMALFORMED);
	assert_int_equal(ck_describe_container(empty_id.p, empty_id.len, NULL, &out, &err),
			 -CK_EMALFORMED);
	assert_null(out.p);
	ck_bytes_free(&empty_id);
}

typedef int describe_fn(const void *bytes, size_t len, struct ck_bytes *ret_bytes,
			struct ck_error *err);
static int container_alone(const void *bytes, size_t len, struct ck_bytes *ret_bytes,
			   struct ck_error *err)
{
	return ck_describe_container(bytes, len, NULL, ret_bytes, err);
}

static int request_alone(const void *bytes, size_t len, struct ck_bytes *ret_bytes,
			 struct ck_error *err)
{
	return ck_describe_request(bytes, len, "c1", ret_bytes, err);
}

static const struct {
	const char *file;
	describe_fn *describe;
} inputs[] = {
	{ "status/containerd-1.6.20-pod-ready.bin", ck_describe_pod },
	{ "status/crio-form-pod.bin", ck_describe_pod },
	{ "status/crio-form-container.bin", container_alone },
	{ "kubelet-retries/025-CreateContainer-web-app.bin", request_alone },
};

static size_t input(size_t i, struct pb *ret_bytes)
{
	FILE *f = data_open(inputs[i].file);
	ret_bytes->len = fread(ret_bytes->bytes, 1, sizeof(ret_bytes->bytes), f);
	fclose(f);
	return ret_bytes->len;
}

static void a_message_that_was_cut_is_malformed(void **state)
{
	(void)state;
	struct pb *bytes = test_malloc(sizeof(*bytes));
	for (size_t i = 0; i < CK_COUNT(inputs); i++) {
		size_t whole = input(i, bytes);
		for (size_t len = 0; len < whole; len++) {
			unsigned char *copy = exact_copy(bytes->bytes, len);
			struct ck_bytes out = { 0 };
			struct ck_error err = { 0 };
			int r = inputs[i].describe(copy, len, &out, &err);
			bool border = len && is_border(bytes->bytes, whole, len);
			assert_true(r == -CK_EMALFORMED || (border && r == 0));
			assert_true(r == 0 || (!out.p && err.text[0]));
			ck_bytes_free(&out);
			free(copy);
		}
	}
	test_free(bytes);
}

static void no_allocation_is_taken_for_granted(void **state)
{
	(void)state;
	struct pb *bytes = test_malloc(sizeof(*bytes));
	for (size_t i = 0; i < CK_COUNT(inputs); i++) {
		size_t len = input(i, bytes);
		bool hit = true;
		for (unsigned n = 1; hit; n++) {
			struct ck_bytes out = { 0 };
			struct ck_error err;
			ck_fault_arm(CK_FAULT_ALLOC, n, false);
			int r = inputs[i].describe(bytes->bytes, len, &out, &err);
			hit = ck_fault_hit();
			ck_fault_arm(0, 0, false);
			assert_int_equal(r, hit ? -CK_ENOMEM : 0);
			assert_true(r == 0 || !out.p);
			ck_bytes_free(&out);
		}
	}
	test_free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containerds_pod_is_told_whole),
		cmocka_unit_test(containerds_container_is_told_whole),
		cmocka_unit_test(a_life_of_a_container_is_seen_in_its_state),
		cmocka_unit_test(crios_pod_is_told_from_its_annotations),
		cmocka_unit_test(every_field_of_the_spec_arrives),
		cmocka_unit_test(without_an_info_the_status_is_told),
		cmocka_unit_test(an_alias_is_the_id_and_is_not_shown),
		cmocka_unit_test(texts_become_utf8),
		cmocka_unit_test(values_that_do_not_fit_are_left_out),
		cmocka_unit_test(an_info_without_end_is_left_out),
		cmocka_unit_test(a_request_is_told_as_far_as_it_goes),
		cmocka_unit_test(a_kubelets_request_is_told),
		cmocka_unit_test(messages_without_sense_are_malformed),
		cmocka_unit_test(a_message_that_was_cut_is_malformed),
		cmocka_unit_test(no_allocation_is_taken_for_granted),
	};

	return CK_TEST_MAIN(tests);
}
