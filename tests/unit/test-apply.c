/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins' changes in the kubelet's requests: what CRI can say is said, and what it cannot is
 * refused by plugin and field. */
#include <unistd.h>

#include "tests/unit/harness.h"

#include "cache/request/cri.pb-c.h"
#include "hooks/adjust/adjust.h"
#include "hooks/wire/nri.pb-c.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/daemon/nri/apply.h"
#include "tests/unit/cri-build.h"
#include "tests/unit/proto-text.h"
#include "tests/unit/wire-build.h"

#define REQUEST (&ck__cri__create_container_request__descriptor)

/* merged by hooks/adjust/adjust.h, so that adjustment and owners are what they are in life.
 * @changes: "10-a", its adjust{}, ... NULL */
static int merged(const char *const *changes, struct ck_bytes *adjustment, struct ck_bytes *owners)
{
	struct ck_bytes container = { 0 };
	struct ck_adjust *adjust = NULL;
	int r = 0;
	must(ck_bytes_field_text(&container, 1, "c1"));
	assert_int_equal(ck_adjust_create(container.p, container.len, &adjust, NULL), 0);
	for (; r == 0 && *changes; changes += 2) {
		struct ck_bytes reply = { 0 };
		char text[2048];
		snprintf(text, sizeof(text),
			 "adjust{%s} update{container_id:'a' linux{resources{pids{limit:1}}}}",
			 changes[1]);
		text_proto(&ck__nri__create_container_response__descriptor, text, &reply);
		r = ck_adjust_reply(adjust, CK_REPLY_CREATE_CONTAINER, changes[0], reply.p,
				    reply.len, NULL);
		r = r == -CK_ECONFLICT ? 0 : r; /* over 'a' */
		ck_bytes_free(&reply);
	}
	assert_int_equal(ck_adjust_result(adjust, adjustment, NULL), 0);
	assert_int_equal(ck_adjust_owners(adjust, owners, NULL), 0);
	ck_adjust_free(adjust);
	ck_bytes_free(&container);
	return r;
}

static int apply(const char *request, const char *const *changes, struct ck_bytes *out,
		 struct ck_error *err)
{
	struct ck_bytes bytes = { 0 }, adjustment = { 0 }, owners = { 0 };
	text_proto(REQUEST, request, &bytes);
	assert_int_equal(merged(changes, &adjustment, &owners), 0);
	unsigned char *copy = exact_copy(bytes.p, bytes.len);
	int r = ck_apply_adjustment(copy, bytes.len, adjustment.p, adjustment.len, owners.p,
				    owners.len, out, err);
	free(copy);
	ck_bytes_free(&bytes);
	ck_bytes_free(&adjustment);
	ck_bytes_free(&owners);
	return r;
}

static void assert_text(const ProtobufCMessageDescriptor *type, struct ck_bytes *bytes,
			const char *expected)
{
	char *text = proto_text(type, bytes->p, bytes->len);
	assert_string_equal(text, expected);
	free(text);
	ck_bytes_free(bytes);
}

static void assert_applied(const char *request, const char *change, const char *expected)
{
	struct ck_bytes out = { 0 };
	struct ck_error err = { 0 };
	int r = apply(request, (const char *const[]){ "10-a", change, NULL }, &out, &err);
	if (r < 0)
		fail_msg("%s: %s", change, err.text);
	assert_text(REQUEST, &out, expected);
}

static void assert_refused(const char *request, const char *change, const char *expected)
{
	struct ck_bytes out = { 0 };
	struct ck_error err = { 0 };
	if (apply(request, (const char *const[]){ "10-a", change, NULL }, &out, &err) != -CK_EINVAL)
		fail_msg("%s: not refused", change);
	assert_string_equal(err.text, expected);
	assert_int_equal(out.len, 0);
	ck_bytes_free(&out);
}

static void what_cri_can_say_is_said(void **state)
{
	(void)state;
	static const struct {
		const char *request, *change, *expected;
	} cases[] = {
		{ "config{annotations{key:'a' value:'1'} annotations{key:'b' value:'2'}}",
		  "annotations{key:'-a'} annotations{key:'b' value:'3'} annotations{key:'c' "
		  "value:'4'} annotations{key:'-d'}",
		  "config{annotations{key:'b' value:'3'} annotations{key:'c' value:'4'}}" },
		{ "config{envs{key:'A' value:'1'} envs{key:'B' value:'\\xff'} envs{key:'C' "
		  "value:'3'}}",
		  "env{key:'-A'} env{key:'C' value:'4'} env{key:'D'}",
		  "config{envs{key:'B' value:'\xff'} envs{key:'C' value:'4'} envs{key:'D'}}" },
		{ "config{command:'old' args:'x'}", "args:'new' args:'y'",
		  "config{command:'new' command:'y'}" },
		{ "config{mounts{container_path:'/a' host_path:'/h'} mounts{container_path:'/b' "
		  "image{image:'i'}}}",
		  "mounts{destination:'-/a'} mounts{destination:'/b' type:'bind' source:'/s' "
		  "options:'ro' options:'rslave'}"
		  "mounts{destination:'/c' source:'/s' options:'rbind' options:'ro' options:'rw' "
		  "options:'rshared'}"
		  "mounts{destination:'/d' source:'/s' type:'none' options:'bind' "
		  "options:'rshared' options:'rprivate'}",
		  "config{mounts{container_path:'/b' host_path:'/s' readonly:true "
		  "propagation:PROPAGATION_HOST_TO_CONTAINER} "
		  "mounts{container_path:'/c' host_path:'/s' "
		  "propagation:PROPAGATION_BIDIRECTIONAL} "
		  "mounts{container_path:'/d' host_path:'/s'}}" },
		{ "config{devices{container_path:'/dev/a' host_path:'/dev/b' permissions:'r'} "
		  "devices{container_path:'/dev/x'}}",
		  "linux{devices{path:'/dev/a'} devices{path:'-/dev/x'}}",
		  "config{devices{container_path:'/dev/a' host_path:'/dev/a' permissions:'rw'}}" },
		{ "config{tty:true}", "linux{devices{path:'/dev/null' type:'c' major:1 minor:3}}",
		  "config{devices{container_path:'/dev/null' host_path:'/dev/null' "
		  "permissions:'rw'} tty:true}" },
		{ "config{CDI_devices{name:'v/c=1'}}",
		  "CDI_devices{name:'v/c=1'} CDI_devices{name:'v/c=2'}",
		  "config{CDI_devices{name:'v/c=1'} CDI_devices{name:'v/c=2'}}" },
		{ "config{linux{resources{cpu_quota:1 cpu_shares:2 oom_score_adj:5 "
		  "hugepage_limits{page_size:'2Mi' limit:1} "
		  "hugepage_limits{page_size:'1Gi' limit:2} unified{key:'u' value:'1'}}}}",
		  "linux{resources{memory{limit{value:10} swap{value:-1}} "
		  "cpu{shares{value:3} period{value:4} cpus:'0-1' mems:'0'} "
		  "hugepage_limits{page_size:'2Mi' limit:7} unified{key:'u' value:'2'} "
		  "unified{key:'w' value:'3'}} "
		  "oom_score_adj{value:-7}}",
		  "config{linux{resources{cpu_period:4 cpu_quota:1 cpu_shares:3 "
		  "memory_limit_in_bytes:10 oom_score_adj:-7 "
		  "cpuset_cpus:'0-1' cpuset_mems:'0' hugepage_limits{page_size:'1Gi' limit:2} "
		  "hugepage_limits{page_size:'2Mi' limit:7} unified{key:'u' value:'2'} "
		  "unified{key:'w' value:'3'} "
		  "memory_swap_limit_in_bytes:-1}}}" },
		{ "config{linux{resources{oom_score_adj:5}}}", "linux{oom_score_adj{}}",
		  "config{linux{resources{}}}" },
		{ "config{}", "linux{resources{cpu{shares{value:3}}}}",
		  "config{linux{resources{cpu_shares:3}}}" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_applied(cases[i].request, cases[i].change, cases[i].expected);
}

/* at another path than on the host: it is found by its number */
static void a_device_is_found_by_its_number(void **state)
{
	(void)state;
	if (access("/sys/dev/char/1:3/uevent", R_OK) < 0)
		skip();
	assert_applied("config{}", "linux{devices{path:'/dev/nri-null' type:'c' major:1 minor:3}}",
		       "config{devices{container_path:'/dev/nri-null' host_path:'/dev/null' "
		       "permissions:'rw'}}");
	/* the host's device at this path is another one */
	assert_applied("config{}", "linux{devices{path:'/dev/zero' type:'c' major:1 minor:3}}",
		       "config{devices{container_path:'/dev/zero' host_path:'/dev/null' "
		       "permissions:'rw'}}");
}

#define CANNOT    " cannot be applied through CRI"
#define WHICH_CRI ", which CRI cannot express: "
#define NO_BIND   " wants mount /m" WHICH_CRI "it is not a bind mount of a path of the host"
#define NOT_IN_REQUEST \
	", which the request does not have: CRI cannot remove what is set by the image or the " \
	"runtime"
static const struct {
	const char *change, *expected;
} not_said_by_cri[] = {
	{ "env{key:'-X'}", " removes variable X" NOT_IN_REQUEST },
	{ "mounts{destination:'-/x'}", " removes mount /x" NOT_IN_REQUEST },
	{ "linux{devices{path:'-/dev/x'}}", " removes device /dev/x" NOT_IN_REQUEST },
	{ "mounts{destination:'/m' type:'tmpfs' source:'tmpfs'}", NO_BIND },
	{ "mounts{destination:'/m' source:'/s'}", NO_BIND },
	{ "mounts{destination:'/m' type:'bind'}", NO_BIND },
	{ "mounts{destination:'/m' type:'tmpfs' source:'/s' options:'bind'}", NO_BIND },
	{ "mounts{destination:'/m' type:'bind' source:'/s' options:'password=secret'}",
	  "option \"password\" of field Mounts /m" CANNOT },
	{ "hooks{prestart{path:'/h'}}", "field OciHooks" CANNOT },
	{ "rlimits{type:'RLIMIT_CORE'}", "field Rlimits RLIMIT_CORE" CANNOT },
	{ "linux{devices{path:'/dev/d' type:'c'}}",
	  " wants device /dev/d (char 0:0)" WHICH_CRI "the host has no such device" },
	{ "linux{devices{path:'/dev/d' major:1}}",
	  " wants device /dev/d (other 1:0)" WHICH_CRI "it is not a character or block device" },
	{ "linux{devices{path:'/dev/null' type:'b' major:4095 minor:3}}",
	  " wants device /dev/null (block 4095:3)" WHICH_CRI "the host has no such device" },
	{ "linux{devices{path:'/dev/null' type:'c' major:1 minor:199}}",
	  " wants device /dev/null (char 1:199)" WHICH_CRI "the host has no such device" },
	{ "linux{devices{path:'/dev/null' type:'c' major:1 minor:3 uid{value:12345}}}",
	  " wants device /dev/null (char 1:3)" WHICH_CRI
	  "the host's device has another mode or owner" },
	{ "linux{devices{path:'/dev/d' type:'p' minor:1}}",
	  " wants device /dev/d (other 0:1)" WHICH_CRI "it is not a character or block device" },
	{ "linux{devices{path:'/dev/d' file_mode{}}}",
	  " wants device /dev/d (other 0:0)" WHICH_CRI "it is not a character or block device" },
	{ "linux{devices{path:'/dev/d' uid{}}}",
	  " wants device /dev/d (other 0:0)" WHICH_CRI "it is not a character or block device" },
	{ "linux{devices{path:'/dev/d' gid{}}}",
	  " wants device /dev/d (other 0:0)" WHICH_CRI "it is not a character or block device" },
	{ "linux{devices{}}", " wants device  (other 0:0)" WHICH_CRI "it has no path" },
	{ "linux{devices{} devices{path:'/dev/null' type:'c' major:1 minor:3}}",
	  " wants device  (other 0:0)" WHICH_CRI "it has no path" },
	{ "linux{devices{type:'c' major:1 minor:3}}",
	  " wants device  (char 1:3)" WHICH_CRI "it has no path" },
	{ "linux{cgroups_path:'/c'}", "field CgroupsPath" CANNOT },
	{ "linux{io_priority{}}", "field IoPriority" CANNOT },
	{ "linux{seccomp_policy{}}", "field SeccompPolicy" CANNOT },
	{ "linux{namespaces{type:'ipc'}}", "field Namespace ipc" CANNOT },
	{ "linux{namespaces{type:'-ipc'}}", "field Namespace ipc" CANNOT },
	{ "linux{sysctl{key:'-s'}}", "field Sysctl s" CANNOT },
	{ "linux{net_devices{key:'e' value{}}}", "field LinuxNetDevices e" CANNOT },
	{ "linux{scheduler{}}", "field LinuxSched" CANNOT },
	{ "linux{rdt{clos_id{}}}", "field RdtClosID" CANNOT },
	{ "linux{rdt{schemata{}}}", "field RdtSchemata" CANNOT },
	{ "linux{rdt{enable_monitoring{}}}", "field RdtEnableMonitoring" CANNOT },
	{ "linux{rdt{remove:true}}", "field RdtClosID" CANNOT },
	{ "linux{memory_policy{}}", "field MemoryPolicy" CANNOT },
	{ "linux{resources{memory{reservation{value:1}}}}", "field MemReservation" CANNOT },
	{ "linux{resources{memory{kernel{value:1}}}}", "field MemKernelLimit" CANNOT },
	{ "linux{resources{memory{kernel_tcp{value:1}}}}", "field MemTCPLimit" CANNOT },
	{ "linux{resources{memory{swappiness{value:1}}}}", "field MemSwappiness" CANNOT },
	{ "linux{resources{memory{disable_oom_killer{value:true}}}}",
	  "field MemDisableOomKiller" CANNOT },
	{ "linux{resources{memory{use_hierarchy{value:true}}}}", "field MemUseHierarchy" CANNOT },
	{ "linux{resources{cpu{realtime_runtime{value:1}}}}", "field CPURealtimeRuntime" CANNOT },
	{ "linux{resources{cpu{realtime_period{value:1}}}}", "field CPURealtimePeriod" CANNOT },
	{ "linux{resources{blockio_class{}}}", "field BlockioClass" CANNOT },
	{ "linux{resources{rdt_class{}}}", "field RdtClass" CANNOT },
	{ "linux{resources{pids{limit:1}}}", "field PidsLimit" CANNOT },
	{ "linux{resources{devices{}}}", "field Devices" CANNOT },
	{ "99:1", "field 99, of an NRI later than this one's," CANNOT },
	{ "linux{99:1}", "field 99, of an NRI later than this one's," CANNOT },
	{ "linux{resources{99:''}}", "field 99, of an NRI later than this one's," CANNOT },
	{ "linux{resources{cpu{99:''}}}", "field 99, of an NRI later than this one's," CANNOT },
	{ "linux{resources{memory{99:1}}}", "field 99, of an NRI later than this one's," CANNOT },
	{ "mounts{destination:'/m' type:'bind' source:'/s' 99:1}",
	  "field 99, of an NRI later than this one's," CANNOT },
};

static void what_cri_cannot_say_is_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(not_said_by_cri) / sizeof(*not_said_by_cri); i++) {
		char expected[256];
		snprintf(expected, sizeof(expected), "plugin 10-a%s%s",
			 *not_said_by_cri[i].expected == ' ' ? "" : ": ",
			 not_said_by_cri[i].expected);
		assert_refused("pod_sandbox_id:'p' config{}", not_said_by_cri[i].change, expected);
	}
	assert_refused("config{}", "linux{resources{memory{limit{}}}}",
		       "plugin 10-a: field MemLimit cannot be set to 0 through CRI");
}

/* of several plugins, the one that asked for the change */
static void the_right_plugin_is_named(void **state)
{
	(void)state;
	static const struct {
		const char *changes[7], *plugin;
	} cases[] = {
		{ { "10-a", "rlimits{type:'A'}", "20-b", "rlimits{type:'B'}", NULL }, "10-a" },
		{ { "10-a", "env{key:'A'}", "20-b", "mounts{destination:'/b'}", NULL }, "20-b" },
		{ { "10-a", "env{key:'A'}", "20-b", "env{key:'-A'}", NULL }, "20-b" },
		{ { "10-a", "hooks{prestart{}}", "20-b", "hooks{poststop{}}", NULL }, "10-a,20-b" },
		{ { "10-a", "linux{resources{cpu{shares{value:1}}}}", "20-b",
		    "linux{resources{pids{}}}", NULL },
		  "20-b" },
		{ { "10-a", "linux{resources{devices{}}}", "20-b", "env{key:'A'}", NULL }, "10-a" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ck_bytes out = { 0 };
		struct ck_error err = { 0 };
		char expected[64];
		assert_int_equal(apply("config{}", cases[i].changes, &out, &err), -CK_EINVAL);
		snprintf(expected, sizeof(expected), "plugin %s", cases[i].plugin);
		assert_memory_equal(err.text, expected, strlen(expected));
		assert_non_null(strchr(": ", err.text[strlen(expected)]));
		ck_bytes_free(&out);
	}
}

/* an empty adjustment: what a recorded request says stays, down to fields that nobody knows */
static void everything_else_survives(void **state)
{
	(void)state;
	static const char *const names[] = { "011-CreateContainer-api-main.bin",
					     "028-CreateContainer-web-side.bin" };
	struct pb *request = calloc(1, sizeof(*request));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct ck_bytes out = { 0 };
		load_recorded(names[i], request);
		assert_int_equal(ck_apply_adjustment(request->bytes, request->len, NULL, 0, NULL, 0,
						     &out, NULL),
				 0);
		char *before = proto_text(REQUEST, request->bytes, request->len);
		assert_text(REQUEST, &out, before);
		free(before);
	}
	free(request);
	assert_applied("pod_sandbox_id:'p' config{linux{resources{97:1} 98:2} "
		       "mounts{container_path:'/m' 96:'x'} 99:'y'} 100:'z'",
		       "args:'a' linux{resources{cpu{shares{value:1}}}}",
		       "pod_sandbox_id:'p' config{command:'a' mounts{container_path:'/m' 96:'x'} "
		       "linux{resources{cpu_shares:1 97:1} 98:2} 99:'y'} 100:'z'");
}

static void the_alias_is_an_annotation(void **state)
{
	(void)state;
	struct ck_bytes request = { 0 }, out = { 0 };
	text_proto(REQUEST,
		   "config{annotations{key:'crikeep.io/nri-id' value:'other'} "
		   "annotations{key:'a'}} 99:1",
		   &request);
	assert_int_equal(ck_apply_alias(request.p, request.len, "0123", &out, NULL), 0);
	assert_text(REQUEST, &out,
		    "config{annotations{key:'a'} annotations{key:'crikeep.io/nri-id' "
		    "value:'0123'}} 99:1");
	assert_int_equal(ck_apply_alias("", 0, "0123", &out, NULL), -CK_EMALFORMED);
	ck_bytes_free(&request);
}

/* field 1: the id, 2: linux, 4: annotations */
static void an_update_is_changed(void **state)
{
	(void)state;
	struct ck_bytes request = { 0 }, cri = { 0 }, resources = { 0 }, out = { 0 },
			expected = { 0 };
	struct ck_error err = { 0 };
	const ProtobufCMessageDescriptor *type = &ck__cri__linux_container_resources__descriptor;
	text_proto(type,
		   "cpu_quota:1 oom_score_adj:5 hugepage_limits{page_size:'2Mi' limit:1} 99:1",
		   &cri);
	put_text(&request, 1, "c1");
	put(&request, 2, &cri);
	put_pair(&request, 4, "k", "v");
	text_proto(&ck__nri__linux_resources__descriptor,
		   "cpu{quota{value:2} shares{value:3}} hugepage_limits{page_size:'2Mi' limit:4}",
		   &resources);
	assert_int_equal(
		ck_apply_update(request.p, request.len, resources.p, resources.len, &out, &err), 0);
	text_proto(type,
		   "cpu_quota:2 cpu_shares:3 oom_score_adj:5 hugepage_limits{page_size:'2Mi' "
		   "limit:4} 99:1",
		   &cri);
	put_text(&expected, 1, "c1");
	put_pair(&expected, 4, "k", "v");
	put(&expected, 2, &cri);
	assert_int_equal(out.len, expected.len);
	assert_memory_equal(out.p, expected.p, out.len);
	ck_bytes_free(&out);
	ck_bytes_free(&expected);
	ck_bytes_free(&resources);
	/* malformed, or impossible: nothing is added */
	must(ck_bytes_add_text(&out, "x"));
	assert_int_equal(ck_apply_update("\xff", 1, NULL, 0, &out, &err), -CK_EMALFORMED);
	text_proto(&ck__nri__linux_resources__descriptor, "pids{}", &resources);
	assert_int_equal(
		ck_apply_update(request.p, request.len, resources.p, resources.len, &out, &err),
		-CK_EINVAL);
	assert_string_equal(err.text, "field PidsLimit cannot be applied through CRI");
	assert_int_equal(out.len, 1);
	ck_bytes_free(&resources);
	ck_bytes_free(&request);
	ck_bytes_free(&out);
}

static void a_plugins_own_update_is_a_request(void **state)
{
	(void)state;
	struct ck_bytes resources = { 0 }, out = { 0 }, cri = { 0 }, expected = { 0 };
	text_proto(&ck__nri__linux_resources__descriptor, "cpu{shares{value:3}}", &resources);
	assert_int_equal(ck_apply_resources("c1", resources.p, resources.len, &out, NULL), 0);
	text_proto(&ck__cri__linux_container_resources__descriptor, "cpu_shares:3", &cri);
	put_text(&expected, 1, "c1");
	put(&expected, 2, &cri);
	assert_int_equal(out.len, expected.len);
	assert_memory_equal(out.p, expected.p, out.len);
	ck_bytes_free(&resources);
	ck_bytes_free(&expected);
	ck_bytes_free(&out);
}

static void malformed_bytes_are_told(void **state)
{
	(void)state;
	struct ck_bytes out = { 0 };
	assert_int_equal(ck_apply_adjustment("\xff", 1, NULL, 0, NULL, 0, &out, NULL),
			 -CK_EMALFORMED);
	assert_int_equal(ck_apply_adjustment("\x12\0", 2, "\xff", 1, NULL, 0, &out, NULL),
			 -CK_EMALFORMED);
	assert_int_equal(ck_apply_adjustment("\x12\0", 2, NULL, 0, "\xff", 1, &out, NULL),
			 -CK_EMALFORMED);
	/* no config */
	assert_int_equal(ck_apply_adjustment("", 0, NULL, 0, NULL, 0, &out, NULL), -CK_EMALFORMED);
	assert_int_equal(out.len, 0);
	ck_bytes_free(&out);
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	static const char *const changes[] = {
		"10-a",
		"annotations{key:'a'} env{key:'b'} args:'c' mounts{destination:'/m' type:'bind' "
		"source:'/'} "
		"CDI_devices{name:'d'} linux{devices{path:'/d'} oom_score_adj{value:1} "
		"resources{cpu{shares{value:1}} hugepage_limits{page_size:'x' limit:1} "
		"unified{key:'k'}}}",
		NULL,
	};
	struct ck_bytes request = { 0 }, adjustment = { 0 }, owners = { 0 }, resources = { 0 };
	text_proto(REQUEST, "config{}", &request);
	text_proto(&ck__nri__linux_resources__descriptor, "cpu{shares{value:3}} unified{key:'k'}",
		   &resources);
	assert_int_equal(merged(changes, &adjustment, &owners), 0);
	bool hit = true;
	for (unsigned nth = 1; hit; nth++) {
		struct ck_bytes out = { 0 }, second = { 0 }, third = { 0 };
		struct ck_error err = { 0 };
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		int r = ck_apply_adjustment(request.p, request.len, adjustment.p, adjustment.len,
					    owners.p, owners.len, &out, &err);
		r = r < 0 ? r : ck_apply_alias(out.p, out.len, "alias", &second, &err);
		r = r < 0 ? r : ck_apply_resources("c1", resources.p, resources.len, &third, &err);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_int_equal(r, hit ? -CK_ENOMEM : 0);
		assert_int_equal(err.code, hit ? CK_ENOMEM : 0);
		ck_bytes_free(&out);
		ck_bytes_free(&second);
		ck_bytes_free(&third);
	}
	ck_bytes_free(&request);
	ck_bytes_free(&adjustment);
	ck_bytes_free(&owners);
	ck_bytes_free(&resources);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cri_can_say_is_said),
		cmocka_unit_test(a_device_is_found_by_its_number),
		cmocka_unit_test(what_cri_cannot_say_is_refused_by_name),
		cmocka_unit_test(the_right_plugin_is_named),
		cmocka_unit_test(everything_else_survives),
		cmocka_unit_test(the_alias_is_an_annotation),
		cmocka_unit_test(an_update_is_changed),
		cmocka_unit_test(a_plugins_own_update_is_a_request),
		cmocka_unit_test(malformed_bytes_are_told),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return CK_TEST_MAIN(tests);
}
