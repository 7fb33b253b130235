/* SPDX-License-Identifier: Apache-2.0 */
/* crikeep.yaml and the command line: what is read, what is refused and with which words, what is
 * printed and reloaded. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/edit-distance.h"
#include "src/base/duration.h"
#include "src/base/utf8.h"
#include "src/daemon/conf/conf-int.h"
#include "tests/unit/harness.h"

static struct ck_conf conf;
static struct ck_error err;

static int setup(void **state)
{
	(void)state;
	memset(&err, 0, sizeof(err));
	assert_int_equal(ck_conf_init(&conf, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ck_conf_fini(&conf);
	return 0;
}

static int read_text(const char *text)
{
	return ck_conf_file(&conf, "F", text, strlen(text), &err);
}

static void assert_read(const char *text)
{
	if (read_text(text) != 0)
		fail_msg("'%s': %s", text, err.text);
}

static void assert_refused(const char *text, const char *want)
{
	ck_conf_fini(&conf);
	assert_int_equal(ck_conf_init(&conf, &err), 0);
	if (read_text(text) != -CK_EINVAL)
		fail_msg("'%s' was read", text);
	assert_string_equal(err.text, want);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void defaults_are_those_of_the_limits(void **state)
{
	(void)state;
	assert_string_equal(conf.runtime, "/run/containerd/containerd.sock");
	assert_null(conf.simulator);
	assert_string_equal(conf.listen, "/run/crikeep/cri.sock");
	assert_string_equal(conf.unfiltered, "/run/crikeep/unfiltered.sock");
	assert_string_equal(conf.metrics, "/run/crikeep/metrics.sock");
	assert_string_equal(conf.state_dir, "/run/crikeep");
	assert_int_equal(conf.cri_socket.mode, 0600);
	assert_true(conf.cri_socket.group.gid == (gid_t)-1);
	assert_int_equal(conf.cri_socket.allow_uids.list[0], 0);
	assert_int_equal(conf.cri_socket.allow_uids.n, geteuid() ? 2 : 1);
	assert_int_equal(conf.unfiltered_socket.mode, 0660);
	assert_int_equal(conf.unfiltered_socket.allow_uids.n, geteuid() ? 2 : 1);
	assert_int_equal(conf.metrics_socket.mode, 0660);
	assert_int_equal(conf.metrics_socket.allow_uids.n, 0);
	assert_true(ck_access_allows(&conf.metrics_socket, 12345));
	assert_true(conf.ttl == CK_TTL && conf.create_deadline == CK_CREATE_DEADLINE &&
		    conf.lost_grace == CK_LOST_GRACE);
	assert_true(conf.supersede_wait == CK_SUPERSEDE_WAIT &&
		    conf.destroy_timeout == CK_DESTROY_TIMEOUT);
	assert_true(conf.start_timeout == CK_START_TIMEOUT);
	assert_true(conf.list_max == CK_LIST_MAX && conf.client_memory == CK_CLIENT_MEMORY);
	assert_int_equal(conf.connections, CK_CLIENTS_MAX);
	assert_int_equal(conf.process_connections, CK_PROCESS_CLIENTS);
	assert_int_equal(conf.process_calls, CK_PROCESS_CALLS);
	assert_string_equal(conf.ignore_annotations[0], "cni.projectcalico.org/*");
	assert_false(conf.nri.enabled);
	assert_string_equal(conf.nri.socket, "/var/run/nri/nri.sock");
	assert_string_equal(conf.nri.plugin_dir, "/opt/nri/plugins");
	assert_string_equal(conf.nri.config_dir, "/etc/nri/conf.d");
	assert_true(conf.nri.registration_timeout == CK_NRI_REGISTRATION_TIMEOUT);
	assert_true(conf.nri.request_timeout == CK_NRI_REQUEST_TIMEOUT &&
		    conf.nri.evict_grace == CK_NRI_EVICT_GRACE);
	assert_int_equal(conf.nri.policy, CK_NRI_ERROR);
	assert_int_equal(conf.nri.adjust, CK_NRI_ON_COMMIT);
	assert_null(conf.nri.policies[0]);
	assert_true(conf.confine);
	assert_false(conf.compare_sandbox_config);
	assert_int_equal(conf.log_level, CK_LOG_INFO);
	assert_int_equal(conf.log_target, CK_LOG_TO_AUTO);
	assert_int_equal(conf.log_format, CK_LOG_TEXT);
	assert_int_equal(ck_conf_check(&conf, NULL, NULL, &err), 0);
}

static const char every_key[] =
	"# all of them\n"
	"runtime: unix:///run/crio/crio.sock\n"
	"listen: \"/run/l.sock\"\n"
	"unfiltered: ''\n"
	"metrics: unix:///run/m.sock\n"
	"state_dir: /var/lib/crikeep\n"
	"start_timeout: 1h30m\n"
	"shadow: false\n"
	"confine: false\n"
	"cri_socket:\n"
	"  mode: 0600\n"
	"  group: 12345\n"
	"  allow_uids: [0, 1000, 4294967294]\n"
	"unfiltered_socket: {mode: 0640, group: 12, allow_uids: [0, 5]}\n"
	"metrics_socket: {mode: 0666, group: 13, allow_uids: [6]}\n"
	"cache: {ttl: 250ms, create_deadline: 2d, lost_grace: 2.5s, supersede_wait: 1s,\n"
	"  destroy_timeout: 1m1s, mode: strict, hand_back: offer, on_annotation_change: "
	"evict,\n"
	"  compare_sandbox_config: true, ignore_annotations: []}\n"
	"nri: {enabled: true, socket: '', plugin_dir: /p, config_dir: '', "
	"registration_timeout: 1s,\n"
	"  request_timeout: 100ms, policy: fail, policies: [10-a=ignore, "
	"b.c=required],\n"
	"  adjust: before-create, evict_grace: 0s}\n"
	"limits:\n"
	"  list_message: 16MiB\n"
	"  client_memory: 20971520\n"
	"  connections: 16\n"
	"  process_connections: 8192\n"
	"  process_calls: 300\n"
	"log:\n"
	"  level: debug\n"
	"  target: stderr\n"
	"  format: json\n";

static void every_key_is_read(void **state)
{
	(void)state;
	assert_read(every_key);
	assert_string_equal(conf.runtime, "/run/crio/crio.sock");
	assert_string_equal(conf.listen, "/run/l.sock");
	assert_string_equal(conf.unfiltered, "");
	assert_string_equal(conf.metrics, "/run/m.sock");
	assert_string_equal(conf.state_dir, "/var/lib/crikeep");
	assert_true(conf.start_timeout == 5400 * CK_NS_PER_S);
	assert_false(conf.confine);
	assert_int_equal(conf.cri_socket.mode, 0600);
	assert_int_equal(conf.cri_socket.group.gid, 12345);
	assert_int_equal(conf.cri_socket.allow_uids.n, 3);
	assert_true(conf.cri_socket.allow_uids.list[2] == 4294967294u);
	assert_int_equal(conf.unfiltered_socket.mode, 0640);
	assert_int_equal(conf.unfiltered_socket.group.gid, 12);
	assert_true(ck_access_allows(&conf.unfiltered_socket, 5));
	assert_false(ck_access_allows(&conf.unfiltered_socket, 6));
	assert_int_equal(conf.metrics_socket.mode, 0666);
	assert_int_equal(conf.metrics_socket.group.gid, 13);
	assert_true(ck_access_allows(&conf.metrics_socket, 6));
	assert_false(ck_access_allows(&conf.metrics_socket, 0));
	assert_true(conf.ttl == 250 * CK_NS_PER_MS && conf.create_deadline == 172800 * CK_NS_PER_S);
	assert_true(conf.lost_grace == 2500 * CK_NS_PER_MS &&
		    conf.destroy_timeout == 61 * CK_NS_PER_S);
	assert_int_equal(conf.mode, CK_MODE_STRICT);
	assert_int_equal(conf.hand_back, CK_OFFER);
	assert_int_equal(conf.on_annotation_change, CK_ANNOTATION_EVICT);
	assert_true(conf.compare_sandbox_config);
	assert_null(conf.ignore_annotations[0]);
	assert_true(conf.nri.enabled);
	assert_string_equal(conf.nri.socket, "");
	assert_string_equal(conf.nri.plugin_dir, "/p");
	assert_string_equal(conf.nri.config_dir, "");
	assert_true(conf.nri.registration_timeout == CK_NS_PER_S &&
		    conf.nri.request_timeout == 100 * CK_NS_PER_MS);
	assert_true(conf.nri.evict_grace == 0);
	assert_int_equal(conf.nri.policy, CK_NRI_FAIL);
	assert_int_equal(conf.nri.adjust, CK_NRI_BEFORE_CREATE);
	size_t len = 0;
	assert_int_equal(ck_conf_policy(conf.nri.policies[0], &len), CK_NRI_IGNORE);
	assert_int_equal(len, strlen("10-a"));
	assert_int_equal(ck_conf_policy(conf.nri.policies[1], &len), CK_NRI_REQUIRED);
	assert_int_equal(len, strlen("b.c"));
	assert_null(conf.nri.policies[2]);
	assert_int_equal(conf.list_max, 16u << 20);
	assert_int_equal(conf.client_memory, 20u << 20);
	assert_int_equal(conf.connections, 16);
	assert_int_equal(conf.process_connections, 8192);
	assert_int_equal(conf.process_calls, 300);
	assert_int_equal(conf.log_level, CK_LOG_DEBUG);
	assert_int_equal(conf.log_target, CK_LOG_TO_STDERR);
	assert_int_equal(conf.log_format, CK_LOG_JSON_LINES);
	assert_int_equal(ck_conf_check(&conf, NULL, NULL, &err), 0);
}

static void files_with_nothing_in_them_change_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"# a comment",
		"---\n",
		"---\n...\n",
		"%YAML 1.1\n---\n# none\n",
		"{}",
		"~",
		"cache:\n",
		"cache: ~\nlog: {}\ncri_socket: null\n",
		"\xef\xbb\xbf# a mark\n",
	};
	(void)state;
	CK_AUTO_FREE char *before = ck_conf_print(&conf);
	for (size_t i = 0; i < CK_COUNT(texts); i++) {
		assert_read(texts[i]);
		CK_AUTO_FREE char *after = ck_conf_print(&conf);
		assert_string_equal(after, before);
	}
}

static void the_simulator_takes_the_runtimes_place(void **state)
{
	(void)state;
	assert_read("runtime: \"sim:\"\n");
	assert_null(conf.runtime);
	assert_string_equal(conf.simulator, "");
	assert_read("runtime: unix:///run/x.sock\n");
	assert_null(conf.simulator);
	assert_string_equal(conf.runtime, "/run/x.sock");
}

static void a_refused_value_leaves_the_old_one(void **state)
{
	(void)state;
	assert_read("runtime: unix:///a\ncri_socket: {allow_uids: [7]}\ncache: {ttl: 1h, "
		    "ignore_annotations: [x]}\n");
	assert_int_equal(read_text("runtime: tcp://b"), -CK_EINVAL);
	assert_int_equal(read_text("cri_socket: {allow_uids: [8, x]}"), -CK_EINVAL);
	assert_int_equal(read_text("cache: {ttl: 1x}"), -CK_EINVAL);
	assert_int_equal(read_text("cache: {ignore_annotations: [y, \"*z\"]}"), -CK_EINVAL);
	assert_string_equal(conf.runtime, "/a");
	assert_int_equal(conf.cri_socket.allow_uids.list[0], 7);
	assert_true(conf.ttl == 3600 * CK_NS_PER_S);
	assert_string_equal(conf.ignore_annotations[0], "x");
}

/* ---- what is refused ------------------------------------------------------------------------- */

static const struct {
	const char *text, *want;
} wrong_values[] = {
	{ "\n\ncache:\n  ttl: 10min\n", "F:4: cache.ttl: '10min' is not a span of time "
					"such as 30s, 10m, 1h30m or 250ms" },
	{ "cache: {ttl: 600}",
	  "F:1: cache.ttl: '600' is not a span of time such as 30s, 10m, 1h30m or 250ms" },
	{ "cache: {ttl: -1s}",
	  "F:1: cache.ttl: '-1s' is not a span of time such as 30s, 10m, 1h30m or 250ms" },
	{ "cache: {ttl: 0s}", "F:1: cache.ttl: '0s' is not between 100ms and 365d" },
	{ "cache: {ttl: 366d}", "F:1: cache.ttl: '366d' is not between 100ms and 365d" },
	{ "cache:\n  compare_sandbox_config: maybe",
	  "F:2: cache.compare_sandbox_config: 'maybe' is neither true nor false" },
	{ "nri: {policies: [a]}", "F:1: nri.policies: 'a' is not a plugin and its policy: "
				  "NAME=ignore, =error, =fail or =required" },
	{ "nri: {policies: [a=b]}", "F:1: nri.policies: 'a=b' is not a plugin and its "
				    "policy: NAME=ignore, =error, =fail or =required" },
	{ "nri: {policies: [=fail]}", "F:1: nri.policies: '=fail' is not a plugin and its "
				      "policy: NAME=ignore, =error, =fail or =required" },
	{ "nri: {policies: [a/b=fail]}",
	  "F:1: nri.policies: 'a/b=fail' is not a plugin and its policy: NAME=ignore, "
	  "=error, =fail or =required" },
	{ "nri: {policies: [10-a=fail, a=fail, a=error]}",
	  "F:1: nri.policies: 'a=error' is the second policy of this plugin" },
	{ "nri: {policy: required}", "F:1: nri.policy: 'required' is not error, ignore or fail" },
	{ "nri: {plugin_dir: x}", "F:1: nri.plugin_dir: 'x' is not an absolute path" },
	{ "shadow: 1", "F:1: shadow: '1' is neither true nor false" },
	{ "confine: yes", "F:1: confine: 'yes' is neither true nor false" },
	{ "confine: True", "F:1: confine: 'True' is neither true nor false" },
	{ "cri_socket:\n  allow_uids: [0,\n    010]",
	  "F:2: cri_socket.allow_uids: '010' is not a uid such as 0 or 1000" },
	{ "cri_socket: {allow_uids: [-1]}",
	  "F:1: cri_socket.allow_uids: '-1' is not a uid such as 0 or 1000" },
	{ "cri_socket: {allow_uids: [4294967295]}",
	  "F:1: cri_socket.allow_uids: '4294967295' is not a uid such as 0 or 1000" },
	{ "cri_socket: {allow_uids: [root]}",
	  "F:1: cri_socket.allow_uids: 'root' is not a uid such as 0 or 1000" },
	{ "cri_socket: {allow_uids: 0}",
	  "F:1: cri_socket.allow_uids: expected a list: [ONE, OTHER]" },
	{ "cri_socket: {allow_uids: [0, ]}\nlisten: [/a]",
	  "F:2: listen: it takes one value, not a list" },
	{ "cri_socket: {allow_uids: [~]}",
	  "F:1: cri_socket.allow_uids: an item of the list has no value" },
	{ "cri_socket: {allow_uids: [[1]]}", "F:1: cri_socket.allow_uids: expected one value" },
	{ "cri_socket: {mode: 660}", "F:1: cri_socket.mode: '660' is not a mode such as 0660" },
	{ "cri_socket: {mode: 0680}", "F:1: cri_socket.mode: '0680' is not a mode such as 0660" },
	{ "cri_socket: {mode: 04755}", "F:1: cri_socket.mode: '04755' is not a mode such as 0660" },
	{ "cri_socket: {group: no-such-group-here}",
	  "F:1: cri_socket.group: 'no-such-group-here' is not a group of this machine" },
	{ "limits: {list_message: 16MB}", "F:1: limits.list_message: '16MB' is not a size "
					  "such as 16MiB, 256KiB or a number of bytes" },
	{ "limits: {list_message: 016}", "F:1: limits.list_message: '016' is not a size "
					 "such as 16MiB, 256KiB or a number of bytes" },
	{ "limits: {list_message: 1.5GiB}",
	  "F:1: limits.list_message: '1.5GiB' is not a size such as 16MiB, 256KiB or a "
	  "number of bytes" },
	{ "limits: {list_message: 2GiB}",
	  "F:1: limits.list_message: '2GiB' is not between 1MiB and 1GiB" },
	{ "limits: {list_message: 4294967295GiB}",
	  "F:1: limits.list_message: '4294967295GiB' is not between 1MiB and 1GiB" },
	{ "limits: {client_memory: 5}",
	  "F:1: limits.client_memory: '5' is not between 1MiB and 2GiB" },
	{ "limits: {connections: 15}",
	  "F:1: limits.connections: '15' is not between 16 and 8192" },
	{ "limits: {process_connections: 10KiB}",
	  "F:1: limits.process_connections: '10KiB' is not a number" },
	{ "limits: {process_calls: 4294967360}",
	  "F:1: limits.process_calls: '4294967360' is not between 256 and 16384" },
	{ "cache: {hand_back: ofer}", "F:1: cache.hand_back: 'ofer' is not repeat or offer" },
	{ "cache: {on_annotation_change: auto}",
	  "F:1: cache.on_annotation_change: 'auto' is not hand_back or evict" },
	{ "log: {level: warn}", "F:1: log.level: 'warn' is not error, warning, info or debug" },
	{ "listen: run/x", "F:1: listen: 'run/x' is not unix:///path or /path of a socket" },
	{ "listen: tcp://1.2.3.4:5",
	  "F:1: listen: 'tcp://1.2.3.4:5' is not unix:///path or /path of a socket" },
	{ "listen: /run/", "F:1: listen: '/run/' is not unix:///path or /path of a socket" },
	{ "listen: \"\"", "F:1: listen: '' is not unix:///path or /path of a socket" },
	{ "runtime: unix://run/x",
	  "F:1: runtime: 'unix://run/x' is not unix:///path or /path of a socket" },
	{ "state_dir: var", "F:1: state_dir: 'var' is not an absolute path" },
	{ "cache: {ignore_annotations: ['a*b']}",
	  "F:1: cache.ignore_annotations: 'a*b' is not an annotation's name, or its "
	  "beginning with one '*' at the end" },
	{ "cache: {ignore_annotations: ['']}",
	  "F:1: cache.ignore_annotations: '' is not an annotation's name, or its beginning "
	  "with one '*' at the end" },
	{ "listen: \"/a\\nb\"", "F:1: listen: '/a\\x0ab' contains an unprintable character" },
	{ "listen: \"/a\\x1b[31m\"",
	  "F:1: listen: '/a\\x1b[31m' contains an unprintable character" },
	{ "listen: \"/a\\0b\"", "F:1: listen: the value contains a NUL" },
	{ "\nlisten:\n", "F:2: listen: it has no value; remove the line to use the default" },
	{ "listen: null", "F:1: listen: it has no value; remove the line to use the default" },
	{ "listen: {a: b}", "F:1: listen: it takes a value, not keys below it" },
	{ "listen: "
	  "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	  "a"
	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	  "F:1: listen: '/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"
	  " is too long: 102 bytes at most" },
};

static void wrong_values_name_file_line_and_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < CK_COUNT(wrong_values); i++)
		assert_refused(wrong_values[i].text, wrong_values[i].want);
}

static void wrong_keys_name_the_nearest(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "cache:\n  tll: 1s", "F:2: cache.tll: no such key; did you mean 'cache.ttl'?" },
		{ "chace: {ttl: 1s}", "F:1: chace: no such key; did you mean 'cache'?" },
		{ "ttl: 1s", "F:1: ttl: no such key; did you mean 'cache.ttl'?" },
		/* the first of two as near */
		{ "mode: 1", "F:1: mode: no such key; did you mean 'cri_socket.mode'?" },
		{ "socket: {mode: 0600}",
		  "F:1: socket: no such key; did you mean 'cri_socket', 'unfiltered_socket' or "
		  "'metrics_socket'?" },
		{ "log: {ttl: 1s}", "F:1: log.ttl: no such key; did you mean 'cache.ttl'?" },
		{ "Listen: /x", "F:1: Listen: no such key; did you mean 'listen'?" },
		{ "foo: 1", "F:1: foo: no such key; crikeep.yaml(5) lists them" },
		{ "runtime-endpoint: /x",
		  "F:1: runtime-endpoint: no such key; crikeep.yaml(5) lists them" },
		{ "\"a\\x1b[1m\": 1", "F:1: a\\x1b[1m: no such key; crikeep.yaml(5) lists them" },
		{ "<<: {a: b}", "F:1: <<: no such key; crikeep.yaml(5) lists them" },
		{ "cache.ttl: 1s", "F:1: cache.ttl: key names have no dots here: write "
				   "the rest as a key below the section" },
		{ "cache: {cache.ttl: 1s}", "F:1: cache.ttl: key names have no dots here: "
					    "write the rest as a key below the section" },
		{ "cache: 5", "F:1: cache: it takes keys below it, not a value" },
		{ "cache: [ttl]", "F:1: cache: it takes keys below it, not a value" },
		{ "cache: {cache: {ttl: 1s}}",
		  "F:1: cache.cache: no such key; crikeep.yaml(5) lists them" },
		{ "\nlisten: /a\n\nlisten: /b", "F:4: listen: it is already on line 2" },
		{ "cache:\n  ttl: 1h\n  ttl: 1h", "F:3: cache.ttl: it is already on line 2" },
		{ "cache:\n  ttl: 1h\nlog: {}\ncache: {}", "F:4: cache: it is already on line 1" },
		{ "? [a, b]\n: c", "F:1: expected a key: NAME: VALUE" },
		{ "? {a: b}\n: c", "F:1: expected a key: NAME: VALUE" },
		{ "\"listen\\0\": /a", "F:1: the value contains a NUL" },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(cases); i++)
		assert_refused(cases[i].text, cases[i].want);
}

static void yaml_beyond_plain_keys_is_refused(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "listen: &a /x", "F:1: listen: anchors (&) are not allowed here" },
		{ "listen: *a", "F:1: listen: aliases (*) are not allowed here" },
		{ "cache: &c {ttl: 1s}", "F:1: cache: anchors (&) are not allowed here" },
		{ "&k listen: /x", "F:1: anchors (&) are not allowed here" },
		{ "listen: !!str /x", "F:1: listen: tags (!) are not allowed here" },
		{ "cri_socket: {allow_uids: !x [1]}",
		  "F:1: cri_socket.allow_uids: tags (!) are not allowed here" },
		{ "listen: /x\n---\nlisten: /y", "F:2: only one document is allowed" },
		{ "- listen", "F:1: expected lines of the form NAME: VALUE" },
		{ "listen", "F:1: expected lines of the form NAME: VALUE" },
		{ "listen: /x\n\truntime: /y",
		  "F:2: found a tab character that violates indentation while scanning a plain"
		  " scalar (indent with blanks, not with tabs)" },
		{ "cache:\n\tttl: 1s", "F:2: found character that cannot start any token while "
				       "scanning for the next token"
				       " (indent with blanks, not with tabs)" },
		{ "cache:\n  ttl: 1s\n listen: /x",
		  "F:3: did not find expected key while parsing a block mapping" },
		{ "listen: 'a",
		  "F:1: found unexpected end of stream while scanning a quoted scalar" },
		{ "cri_socket: {allow_uids: [1}",
		  "F:1: did not find expected ',' or ']' while parsing a flow sequence" },
		{ "a: b\nlisten: \xff",
		  "F:2: invalid leading UTF-8 octet; the file must be UTF-8" },
		{ "\n\n\x80", "F:3: invalid leading UTF-8 octet; the file must be UTF-8" },
		{ "\xff\xfel\n", "F:1: invalid leading UTF-8 octet; the file must be UTF-8" },
		{ "a: \x01", "F:1: control characters are not allowed; the file must be UTF-8" },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(cases); i++)
		assert_refused(cases[i].text, cases[i].want);
}

static void sizes_of_files_lists_and_depth_are_limited(void **state)
{
	(void)state;
	CK_AUTO_FREE char *text = ck_alloc(CK_CONF_FILE_MAX + 2);
	memset(text, '#', CK_CONF_FILE_MAX);
	assert_read(text);
	memset(text, '#', CK_CONF_FILE_MAX + 1);
	assert_refused(text, "F: longer than 262144 bytes");

	size_t n = (size_t)sprintf(text, "cri_socket:\n  allow_uids: [0");
	for (unsigned i = 1; i < CK_CONF_ITEMS_MAX; i++)
		n += (size_t)sprintf(text + n, ",%u", i);
	strcpy(text + n, "]");
	assert_read(text);
	assert_int_equal(conf.cri_socket.allow_uids.n, CK_CONF_ITEMS_MAX);
	for (unsigned i = 0; i < 1000; i++)
		n += (size_t)sprintf(text + n, ",%u", i);
	strcpy(text + n, "]");
	assert_refused(text, "F:2: cri_socket.allow_uids: 257 items; at most 256 are allowed");

	memset(text, '[', 100000);
	text[100000] = '\0';
	assert_refused(text, "F:1: expected lines of the form NAME: VALUE");
	memcpy(text, "listen: ", 8);
	assert_refused(text, "F:1: listen: it takes one value, not a list");

	memcpy(text, "runtime: sim:", 13);
	memset(text + 13, 'x', CK_CONF_VALUE_MAX);
	text[13 + CK_CONF_VALUE_MAX] = '\0';
	assert_refused(
		text,
		"F:1: runtime: 'sim:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
		" is too long: 4096 bytes at most");

	char path[CK_SOCKET_PATH_MAX + 3]; /* exactly what fits */
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[CK_LISTEN_PATH_MAX] = path[CK_SOCKET_PATH_MAX + 1] = '\0';
	assert_int_equal(ck_conf_set(&conf, "listen", path, "T", &err), 0);
	path[CK_LISTEN_PATH_MAX] = 'x';
	assert_int_equal(ck_conf_set(&conf, "runtime", path, "T", &err), -CK_EINVAL);
	path[CK_SOCKET_PATH_MAX] = '\0';
	assert_int_equal(ck_conf_set(&conf, "runtime", path, "T", &err), 0);
	assert_int_equal(ck_conf_set(&conf, "listen", path, "T", &err), -CK_EINVAL);

	memcpy(text, "state_dir: /", 12);
	memset(text + 12, 'x', CK_CONF_VALUE_MAX);
	text[12 + CK_CONF_VALUE_MAX] = '\0';
	assert_refused(
		text,
		"F:1: state_dir: '/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
		" is too long: 4096 bytes at most");
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static char *in_tmp(const char *name)
{
	static char path[4096];
	const char *dir = getenv("TMPDIR");
	snprintf(path, sizeof(path), "%s/conf-%d-%s", dir && *dir ? dir : "/tmp", (int)getpid(),
		 name);
	return path;
}

static void files_that_cannot_be_read_are_named(void **state)
{
	char want[CK_ERROR_TEXT], *path = in_tmp("missing");
	(void)state;
	snprintf(want, sizeof(want), "%s: No such file or directory", path);
	assert_int_equal(ck_conf_file(&conf, path, NULL, 0, &err), -CK_EIO);
	assert_string_equal(err.text, want);
	assert_int_equal(err.sys, ENOENT);
	assert_int_equal(ck_conf_file(&conf, "/", NULL, 0, &err), -CK_EINVAL);
	assert_string_equal(err.text, "/: not a regular file");
	path = in_tmp("fifo");
	assert_int_equal(mkfifo(path, 0600), 0);
	/* and does not wait for a writer */
	assert_int_equal(ck_conf_file(&conf, path, NULL, 0, &err), -CK_EINVAL);
	unlink(path);
}

/* ---- one key --------------------------------------------------------------------------------- */

static void keys_are_set_as_on_the_command_line(void **state)
{
	(void)state;
	assert_int_equal(ck_conf_set(&conf, "cache.ttl", "90s", "--ttl", &err), 0);
	assert_true(conf.ttl == 90 * CK_NS_PER_S);
	assert_int_equal(ck_conf_set(&conf, "cri_socket.allow_uids", "3,1,2", "--set", &err), 0);
	assert_int_equal(conf.cri_socket.allow_uids.n, 3);
	assert_int_equal(conf.cri_socket.allow_uids.list[1], 1);
	assert_int_equal(ck_conf_set(&conf, "cache.ignore_annotations", "", "--set", &err), 0);
	assert_null(conf.ignore_annotations[0]);
	assert_int_equal(ck_conf_set(&conf, "cache.ignore_annotations", "a,b/*", "--set", &err), 0);
	assert_string_equal(conf.ignore_annotations[1], "b/*");
	assert_int_equal(ck_conf_set(&conf, "cri_socket.group", "", "--set", &err), 0);
	assert_true(conf.cri_socket.group.gid == (gid_t)-1);

	assert_int_equal(ck_conf_set(&conf, "cache.ttl", "010", "--ttl", &err), -CK_EINVAL);
	assert_string_equal(
		err.text,
		"--ttl: cache.ttl: '010' is not a span of time such as 30s, 10m, 1h30m or 250ms");
	assert_int_equal(ck_conf_set(&conf, "cache.tl", "1s", "--set", &err), -CK_EINVAL);
	assert_string_equal(err.text, "--set: cache.tl: no such key; did you mean 'cache.ttl'?");
	assert_int_equal(ck_conf_set(&conf, "cri_socket.allow_uids", "1,,2", "--set", &err),
			 -CK_EINVAL);
	assert_string_equal(err.text,
			    "--set: cri_socket.allow_uids: '' is not a uid such as 0 or 1000");
	CK_AUTO_FREE char *many = ck_alloc(2 * CK_CONF_ITEMS_MAX + 200);
	for (unsigned i = 0; i < CK_CONF_ITEMS_MAX + 50; i++)
		strcpy(many + 2 * i, "5,");
	assert_int_equal(ck_conf_set(&conf, "cri_socket.allow_uids", many, "--set", &err),
			 -CK_EINVAL);
	assert_string_equal(err.text,
			    "--set: cri_socket.allow_uids: 257 items; at most 256 are allowed");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void collect(const char *text, void *userdata)
{
	char *all = userdata;
	strcat(strcat(all, text), "\n");
}

static void assert_checked(const char *text, const char *error, const char *warnings)
{
	char all[4096] = "";
	ck_conf_fini(&conf);
	assert_int_equal(ck_conf_init(&conf, &err), 0);
	err.text[0] = '\0';
	assert_read(text);
	assert_int_equal(ck_conf_check(&conf, collect, all, &err), *error ? -CK_EINVAL : 0);
	assert_string_equal(err.text, error);
	assert_string_equal(all, warnings);
}

static void what_only_the_whole_tells_is_checked(void **state)
{
	(void)state;
	assert_checked(
		"\nlisten: /run/containerd/containerd.sock",
		"F:2: listen: the same as runtime (default), '/run/containerd/containerd.sock':"
		" crikeepd would call itself",
		"");
	assert_checked("runtime: /a\nmetrics: /a",
		       "F:2: metrics: the same as runtime (F:1), '/a': crikeepd would call itself",
		       "");
	assert_checked("listen: /a\nunfiltered: /a",
		       "F:2: unfiltered: the same as listen (F:1), '/a': each needs its own path",
		       "");
	assert_checked("state_dir: /run/crikeep/cri.sock",
		       "F:1: state_dir: the same as listen (default), '/run/crikeep/cri.sock': "
		       "each needs its own path",
		       "");
	assert_checked("unfiltered: ''\nmetrics: ''", "", "");
	assert_checked("runtime: 'sim:'\nlisten: /run/containerd/containerd.sock", "", "");
	assert_checked("limits: {list_message: 1GiB}",
		       "F:1: limits.list_message: one message of limits.list_message must fit into "
		       "limits.client_memory",
		       "");
	assert_checked("limits: {client_memory: 2MiB}",
		       "F:1: limits.client_memory: one message of limits.list_message must fit "
		       "into limits.client_memory",
		       "");
	assert_checked("cri_socket: {allow_uids: []}",
		       "F:1: cri_socket.allow_uids: no user may connect", "");
	assert_checked("unfiltered_socket: {allow_uids: []}",
		       "F:1: unfiltered_socket.allow_uids: no user may connect", "");
	assert_checked("metrics_socket: {allow_uids: []}", "", ""); /* whoever can open it */
	assert_checked("cache: {ttl: 254s}", "",
		       "F:1: cache.ttl: a kubelet may take 4m15s to repeat a request; the "
		       "result could be gone by then\n");
	assert_checked("nri: {enabled: true, socket: /run/crikeep/cri.sock}",
		       "F:1: nri.socket: the same as listen (default), '/run/crikeep/cri.sock': "
		       "each needs its own path",
		       "");
	assert_checked("nri: {socket: /run/crikeep/cri.sock}", "", ""); /* nobody makes it */
	assert_checked("nri: {enabled: true, socket: '', plugin_dir: ''}", "",
		       "F:1: nri.enabled: without nri.socket and nri.plugin_dir there can be "
		       "no plugins\n");
	assert_checked("nri: {policies: [a=required]}", "",
		       "F:1: nri.policies: nri.enabled is false, so no plugin is required\n");
	assert_checked(
		"confine: false\ncri_socket: {mode: 0666, allow_uids: [1]}", "",
		"F:2: cri_socket.allow_uids: a kubelet cannot connect without uid 0\n"
		"F:2: cri_socket.mode: every user may open the socket; only allow_uids keeps "
		"them out\n"
		"F:1: confine: the daemon keeps all its privileges\n");
}

static void one_socket_under_two_names_is_found(void **state)
{
	char text[8192], target[4096], *link = in_tmp("link");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)state;
	snprintf(target, sizeof(target), "%s", in_tmp("sock"));
	link = in_tmp("link");
	unlink(link);
	assert_int_equal(symlink(target, link), 0);
	assert_true(strlen(target) < sizeof(address.sun_path));
	strcpy(address.sun_path, target);
	CK_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	snprintf(text, sizeof(text), "runtime: %s\nlisten: %s\n", target, link);
	assert_read(text);
	assert_int_equal(ck_conf_check(&conf, NULL, NULL, &err), -CK_EINVAL);
	assert_non_null(strstr(err.text, "crikeepd would call itself"));
	unlink(link);
	write_file(link, ""); /* now it is another */
	assert_int_equal(ck_conf_check(&conf, NULL, NULL, &err), 0);
	unlink(link);
	unlink(target);
}

static void what_is_printed_reads_the_same(void **state)
{
	static const char *const texts[] = {
		"",
		"runtime: 'sim:create=5s,images=\"a\\b\"'\nlisten: '/a b: # c'\nunfiltered: "
		"''\nmetrics: '/ends-with-colon:'\n",
		"cache: {ttl: 1d2h3m4s5ms, lost_grace: 100.000001ms, mode: identity, "
		"ignore_annotations: [\"*\", a, \"it's\"]}",
		"cri_socket: {mode: 0000, group: 7, allow_uids: [0, 1]}\nlimits: {list_message: "
		"1048577, client_memory: 1GiB, connections: 100, process_calls: 4096}",
		"nri: {enabled: true, socket: '', policies: [10-a=fail, b=required], policy: "
		"ignore, adjust: before-create}",
		"confine: false\nlog: {level: error, target: journal}\ncache: {ignore_annotations: "
		"[]}",
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(texts); i++) {
		assert_read(texts[i]);
		CK_AUTO_FREE char *first = ck_conf_print(&conf);
		ck_conf_fini(&conf);
		assert_int_equal(ck_conf_init(&conf, &err), 0);
		assert_read(first);
		for (size_t k = 0; k < CK_CONF_KEYS; k++) { /* the origins are others now */
			free(conf.origins[k]);
			conf.origins[k] = NULL;
		}
		CK_AUTO_FREE char *second = ck_conf_print(&conf);
		char *from = first;
		for (char *to = first; (*to = *from); to++) { /* without " # F:1" */
			if (strncmp(from, " # F:", 5) == 0)
				from += strcspn(from, "\n"), to--;
			else
				from++;
		}
		assert_string_equal(first, second);
	}
}

static void where_a_value_comes_from_is_printed(void **state)
{
	(void)state;
	assert_read("\nlisten: /x\ncache:\n  ttl: 5m\n");
	assert_int_equal(ck_conf_set(&conf, "cache.ttl", "7m", "--ttl", &err), 0);
	CK_AUTO_FREE char *text = ck_conf_print(&conf);
	assert_non_null(strstr(text, "\nlisten: /x # F:2\n"));
	assert_non_null(strstr(text, "\ncache:\n  ttl: 7m # --ttl\n  create_deadline: 15m\n"));
}

/* ---- SIGHUP ---------------------------------------------------------------------------------- */

static void reloading_changes_what_may_change(void **state)
{
	struct ck_conf fresh = { 0 };
	char fixed[4096] = "", *path = in_tmp("reload.yaml");
	(void)state;
	write_file(path, "listen: /a\nlog: {level: info}\n"
			 "cri_socket: {allow_uids: [1], group: 0}\n");
	conf.file = ck_strdup(path);
	conf.file_must_exist = true;
	assert_int_equal(ck_conf_remember(&conf, "start_timeout", "5s", "--set", &err), 0);
	assert_int_equal(ck_conf_layers(&conf, &err), 0);

	write_file(path, "listen: /b\nlog: {level: debug}\ncri_socket: {allow_uids: [2, 3], group: "
			 "some-name}\nstart_timeout: 9s\n"
			 "cache: {ttl: 1h}\nlimits: {client_memory: 512MiB, process_calls: 299}\n");
	assert_int_equal(ck_conf_again(&conf, &fresh, NULL, NULL, &err), 0);
	ck_conf_reload(&conf, &fresh, collect, fixed);
	ck_conf_fini(&fresh);
	assert_string_equal(fixed, "listen\ncri_socket.group\ncache.ttl\n");
	assert_string_equal(conf.listen, "/a");
	assert_int_equal(conf.log_level, CK_LOG_DEBUG);
	assert_int_equal(conf.cri_socket.allow_uids.n, 2);
	assert_int_equal(conf.cri_socket.allow_uids.list[1], 3);
	assert_int_equal(conf.client_memory, 512u << 20);
	assert_int_equal(conf.process_calls, 299);
	/* the command line stays above the file */
	assert_true(conf.start_timeout == 5 * CK_NS_PER_S);

	write_file(path, "log: {level: loud}\n");
	assert_int_equal(ck_conf_again(&conf, &fresh, NULL, NULL, &err), -CK_EINVAL);
	assert_non_null(
		strstr(err.text, ":1: log.level: 'loud' is not error, warning, info or debug"));
	ck_conf_fini(&fresh);
	conf.file_must_exist = false; /* but if it does, it must be right */
	assert_int_equal(ck_conf_again(&conf, &fresh, NULL, NULL, &err), -CK_EINVAL);
	ck_conf_fini(&fresh);
	conf.file_must_exist = true;
	unlink(path);
	assert_int_equal(ck_conf_again(&conf, &fresh, NULL, NULL, &err), -CK_EIO);
	ck_conf_fini(&fresh);
	conf.file_must_exist = false;
	assert_int_equal(ck_conf_again(&conf, &fresh, NULL, NULL, &err), 0);
	ck_conf_fini(&fresh);
}

/* ---- the command line ------------------------------------------------------------------------ */

struct answer {
	int status; /* 1000: it returned 0 */
	char out[16384];
};

/* stands for crikeep-sim */
static int check_simulator(const char *parameters, struct ck_error *why)
{
	return strncmp(parameters, "wrong", 5)
		       ? 0
		       : ck_fail(why, CK_EINVAL, "simulator: there is no parameter '%s'",
				 parameters);
}

/* in a child, because some options end the process */
static void ask(struct answer *answer, const char *const *arguments)
{
	char *argv[16] = { (char *)(uintptr_t) "x", NULL };
	int argc = 1, to[2];
	for (; arguments[argc - 1]; argc++)
		argv[argc] = (char *)(uintptr_t)arguments[argc - 1];
	assert_int_equal(pipe(to), 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct ck_args args = { 0 };
		dup2(to[1], STDOUT_FILENO);
		dup2(to[1], STDERR_FILENO);
		int r = ck_conf_args(&conf, argc, argv, check_simulator, &args);
		char *text = r < 0 ? NULL : ck_conf_print(&conf);
		if (r == 0)
			printf("check %d print %d\n%s", args.check, args.print, text);
		fflush(stdout);
		free(text);
		ck_conf_fini(&conf);
		_exit(r < 0 ? -r : 100);
	}
	close(to[1]);
	size_t len = 0;
	ssize_t n;
	while ((n = read(to[0], answer->out + len, sizeof(answer->out) - 1 - len)) > 0)
		len += (size_t)n;
	answer->out[len] = '\0';
	close(to[0]);
	assert_int_equal(waitpid(pid, &answer->status, 0), pid);
	assert_true(WIFEXITED(answer->status));
	answer->status = WEXITSTATUS(answer->status);
}

#define ASK(answer, ...) ask(answer, (const char *const[]){ __VA_ARGS__, NULL })

static void flags_stand_above_the_file(void **state)
{
	struct answer answer;
	char path[4096];
	(void)state;
	snprintf(path, sizeof(path), "%s", in_tmp("flags.yaml"));
	write_file(path, "listen: /a\ncache: {ttl: 1h, lost_grace: 7s}\n");
	ASK(&answer, "--ttl=20m", "--config", path, "--set", "log.level=debug", "--log-level",
	    "error", "--check-config");
	assert_int_equal(answer.status, 100);
	assert_non_null(strstr(answer.out, "The configuration is good ("));
	assert_non_null(strstr(answer.out, "check 1 print 0\n"));
	assert_non_null(strstr(answer.out, "\nlisten: /a # "));
	assert_non_null(strstr(answer.out, "\n  ttl: 20m # --ttl\n"));
	assert_non_null(strstr(answer.out, "\n  level: error # --log-level\n")); /* the later one */
	unlink(path);
	ASK(&answer, "--nri", "--nri-socket=/n", "--set", "nri.policies=10-a=fail,b=required",
	    "--nri-adjust", "before-create");
	assert_non_null(
		strstr(answer.out, "\n  enabled: true # --nri\n  socket: /n # --nri-socket\n"));
	assert_non_null(
		strstr(answer.out, "\n  policies: [\"10-a=fail\", \"b=required\"] # --set\n"));
	assert_non_null(strstr(answer.out, "\n  adjust: before-create # --nri-adjust\n"));
	ASK(&answer, "--config", path);
	assert_int_equal(answer.status, CK_EINVAL);
	assert_non_null(strstr(answer.out, ": No such file or directory\n"));
}

static void wrong_parameters_of_the_simulator_name_their_origin(void **state)
{
	static const char *const asked[] = { "--check-config", "--print-config", "--nri" };
	struct answer answer;
	char path[4096], want[8192];
	(void)state;
	snprintf(path, sizeof(path), "%s", in_tmp("simulator.yaml"));
	write_file(path, "listen: /a\nruntime: sim:wrong=\xc2\xa0\x01\n");
	ASK(&answer, "--config", path); /* what cannot be seen is refused before */
	assert_int_equal(answer.status, CK_EINVAL);
	write_file(path, "listen: /a\nruntime: sim:wrong=5s\n");
	for (size_t i = 0; i < CK_COUNT(asked); i++) {
		ASK(&answer, "--config", path, asked[i]);
		assert_int_equal(answer.status, CK_EINVAL);
		snprintf(want, sizeof(want),
			 "crikeepd: %s:2: runtime: simulator: there is no parameter 'wrong=5s'\n",
			 path);
		assert_string_equal(answer.out, want);
		ASK(&answer, "--runtime=sim:wrong", "--config", path, asked[i]);
		assert_int_equal(answer.status, CK_EINVAL);
		assert_string_equal(answer.out, "crikeepd: --runtime: runtime: simulator: "
						"there is no parameter 'wrong'\n");
		ASK(&answer, "--runtime=sim:right", "--config", path, asked[i]);
		assert_int_equal(answer.status, 100);
	}
	unlink(path);
}

static void wrong_usage_says_why(void **state)
{
	struct answer answer;
	(void)state;
	ASK(&answer, "--ttl", "10min");
	assert_int_equal(answer.status, CK_EINVAL);
	assert_string_equal(answer.out, "crikeepd: --ttl: cache.ttl: '10min' is not a span of time "
					"such as 30s, 10m, 1h30m or 250ms\n");
	ASK(&answer, "--set", "cache.ttl");
	assert_int_equal(answer.status, 2);
	assert_non_null(strstr(answer.out, "--set needs KEY=VALUE\n"));
	ASK(&answer, "--set", "log.level=loud");
	assert_int_equal(answer.status, CK_EINVAL);
	ASK(&answer, "--bogus");
	assert_int_equal(answer.status, 2);
	ASK(&answer, "more");
	assert_int_equal(answer.status, 2);
	ASK(&answer, "--runtime", "sim:", "--listen", "/a", "--metrics", "/a", "--print-config");
	assert_int_equal(answer.status, CK_EINVAL);
	assert_string_equal(answer.out, "crikeepd: --metrics: metrics: the same as listen "
					"(--listen), '/a': each needs its own path\n");
}

static void help_fits_80_columns(void **state)
{
	struct answer answer;
	(void)state;
	ASK(&answer, "--help");
	assert_int_equal(answer.status, 0);
	size_t lines = 0;
	for (char *line = strtok(answer.out, "\n"); line; line = strtok(NULL, "\n"), lines++)
		assert_true(strlen(line) <= 80);
	assert_true(lines > 30);
	ASK(&answer, "--version");
	assert_int_equal(answer.status, 0);
	assert_int_equal(strncmp(answer.out, "crikeepd ", 9), 0);
}

/* ---- faults, and the ground it stands on ----------------------------------------------------- */

static void no_memory_is_an_error(void **state)
{
	static const char text[] =
		"runtime: 'sim:create=1s'\nlisten: /a\n"
		"cri_socket: {allow_uids: [1, 2], group: root}\n"
		"cache: {ttl: 1h, ignore_annotations: [a, b]}\nnri: {policies: [a=fail, "
		"b=error]}\n";
	bool hit = true;
	(void)state;
	for (unsigned nth = 1; hit; nth++) {
		struct ck_conf one = { 0 }, fresh = { 0 };
		char fixed[4096] = "";
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		int r = ck_conf_init(&one, &err);
		r = r ? r : ck_conf_file(&one, "F", text, sizeof(text) - 1, &err);
		r = r ? r : ck_conf_remember(&one, "cri_socket.allow_uids", "5", "--set", &err);
		r = r ? r : ck_conf_layers(&one, &err);
		r = r ? r : ck_conf_again(&one, &fresh, NULL, NULL, &err);
		if (r == 0)
			ck_conf_reload(&one, &fresh, collect, fixed);
		if (r == 0)
			free(ck_conf_print(&one));
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_true(r == 0 || (r == -CK_ENOMEM && hit));
		ck_conf_fini(&one);
		ck_conf_fini(&fresh);
	}
}

static void spans_are_printed_as_they_are_read(void **state)
{
	static const char *const spans[] = {
		"0s",    "1ms",         "250ms", "1s",    "1m",
		"1h30m", "1d2h3m4s5ms", "2d",    "0.5ms", "1s0.000001ms",
	};
	char buf[CK_DURATION_TEXT];
	uint64_t ns;
	(void)state;
	for (size_t i = 0; i < CK_COUNT(spans); i++) {
		assert_true(ck_duration_parse(spans[i], &ns));
		assert_string_equal(ck_duration_print(ns, buf), spans[i]);
	}
	assert_true(ck_duration_parse(ck_duration_print(INT64_MAX, buf), &ns));
	assert_true(ns == INT64_MAX);
}

static void text_is_cut_between_characters(void **state)
{
	char buf[16];
	(void)state;
	assert_int_equal(ck_utf8_clean("0123456789abcde", false, buf, 16), 15);
	assert_string_equal(buf, "0123456789abcde");
	assert_int_equal(ck_utf8_clean("0123456789abcdef", false, buf, 16), 15);
	assert_string_equal(buf, "0123456789ab...");
	assert_int_equal(ck_utf8_clean("0123456789a\xc3\xa9xyz", false, buf, 16), 14);
	assert_string_equal(buf, "0123456789a...");
	assert_int_equal(ck_utf8_clean("01234567\x1b\xff", false, buf, 16), 15);
	assert_string_equal(buf, "01234567\\x1b...");
	assert_int_equal(ck_utf8_clean("\xc3\xa9", true, buf, 16), 8);
	assert_string_equal(buf, "\\xc3\\xa9");
	assert_int_equal(ck_utf8_clean("abcdef", false, buf, 4), 3);
	assert_string_equal(buf, "...");
}

static void slips_are_counted(void **state)
{
	char name[80];
	(void)state;
	assert_int_equal(ck_edit_distance("list", "list"), 0);
	assert_int_equal(ck_edit_distance("lsit", "list"), 1);
	assert_int_equal(ck_edit_distance("", "ab"), 2);
	assert_int_equal(ck_edit_distance("kitten", "sitting"), 3);
	memset(name, 'a', sizeof(name));
	name[64] = '\0';
	assert_true(ck_edit_distance(name, "a") == SIZE_MAX &&
		    ck_edit_distance("a", name) == SIZE_MAX);
	name[63] = '\0';
	assert_int_equal(ck_edit_distance(name, name), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(defaults_are_those_of_the_limits),
		TEST(every_key_is_read),
		TEST(files_with_nothing_in_them_change_nothing),
		TEST(the_simulator_takes_the_runtimes_place),
		TEST(a_refused_value_leaves_the_old_one),
		TEST(wrong_values_name_file_line_and_key),
		TEST(wrong_keys_name_the_nearest),
		TEST(yaml_beyond_plain_keys_is_refused),
		TEST(sizes_of_files_lists_and_depth_are_limited),
		TEST(files_that_cannot_be_read_are_named),
		TEST(keys_are_set_as_on_the_command_line),
		TEST(what_only_the_whole_tells_is_checked),
		TEST(one_socket_under_two_names_is_found),
		TEST(what_is_printed_reads_the_same),
		TEST(where_a_value_comes_from_is_printed),
		TEST(reloading_changes_what_may_change),
		TEST(flags_stand_above_the_file),
		TEST(wrong_parameters_of_the_simulator_name_their_origin),
		TEST(wrong_usage_says_why),
		TEST(help_fits_80_columns),
		TEST(no_memory_is_an_error),
		cmocka_unit_test(spans_are_printed_as_they_are_read),
		cmocka_unit_test(text_is_cut_between_characters),
		cmocka_unit_test(slips_are_counted),
	};
	return CK_TEST_MAIN(tests);
}
