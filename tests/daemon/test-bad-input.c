/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong from outside, one stated outcome each: bytes, sizes, paths, users. Nobody else
 * notices. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cri/calls.h"
#include "src/rpc/address.h"
#include "tests/daemon/stage.h"

#define CK_TEST_SECONDS 120
#include "tests/unit/harness.h"

/* ---- messages -------------------------------------------------------------------------------- */

static void truncated_requests_are_invalid_and_do_not_reach_the_runtime(void **state)
{
	struct stage *s = *state;
	stage_start(s, NULL, NULL);
	struct ck_bytes whole = cri_run_request("pod", 0);
	for (size_t cut = 1; cut < whole.len; cut += 7) {
		struct ck_bytes part = { 0 };
		assert_int_equal(ck_bytes_add(&part, whole.p, whole.len - cut), 0);
		assert_int_equal(cri_do(&s->kubelet, "RunPodSandbox", &part, NULL),
				 CK_GRPC_INVALID_ARGUMENT);
	}
	ck_bytes_free(&whole);
	static const char *const others[] = { "PodSandboxStatus", "ListContainers",
					      "StopPodSandbox", "CreateContainer" };
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct ck_bytes part = { 0 };
		/* field 1 says 64 bytes and has 4 */
		assert_int_equal(ck_bytes_add(&part, "\x0a\x40half", 6), 0);
		assert_int_equal(cri_do(&s->kubelet, others[i], &part, NULL),
				 CK_GRPC_INVALID_ARGUMENT);
	}
	assert_int_equal(world_count(&s->w, "begin sandbox"), 0);
	assert_int_equal(pod_n(&s->kubelet), 0);
}

/* older gRPC servers would take it, and then a list would go round the filter */
static void a_path_without_its_slash_does_not_reach_the_runtime(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	struct ck_bytes empty = { 0 };
	stage_start(s, NULL, NULL);
	s->kubelet.root = "";
	cri_start(&s->kubelet, &call, "ListPodSandbox", &empty, NULL);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_UNIMPLEMENTED);
	assert_non_null(strstr(call.status.message, "does not begin with \"/\""));
	cri_end(&call);
	s->kubelet.root = "/";
	assert_int_equal(pod_n(&s->kubelet), 0);
}

static void a_hidden_pod_cannot_be_checkpointed(void **state)
{
	struct stage *s = *state;
	char pod[POD_ID];
	stage_start(s, "create=800ms", NULL);
	stage_keep(s, pod);
	assert_int_equal(cri_do_id(&s->kubelet, "CheckpointPod", pod), CK_GRPC_NOT_FOUND);
	/* what the simulator says to any id */
	assert_int_equal(cri_do_id(&s->kubelet, "CheckpointPod", "other"), CK_GRPC_UNIMPLEMENTED);
	assert_int_equal(
		world_metric(&s->w, "crikeepd_hidden_refused_total{rpc=\"CheckpointPod\"}"), 1);
}

static struct ck_bytes padded(struct ck_bytes request, size_t len)
{
	char *zeros = calloc(1, len);
	assert_non_null(zeros);
	assert_int_equal(ck_bytes_field(&request, 1000, zeros, len), 0); /* a field of the future */
	free(zeros);
	return request;
}

static void seventeen_mebibytes_pass_and_a_create_of_that_size_is_refused(void **state)
{
	struct stage *s = *state;
	struct cri_call call;
	stage_start(s, NULL, NULL);
	struct ck_bytes version = padded((struct ck_bytes){ 0 }, 17u << 20), guarded = { 0 },
			create = padded(cri_run_request("pod", 0), 17u << 20);
	assert_int_equal(cri_do(&s->kubelet, "Version", &version, NULL), CK_GRPC_OK);
	assert_int_equal(ck_bytes_field_text(&guarded, 1, "unknown"), 0);
	guarded = padded(guarded, 17u << 20);
	/* says the runtime */
	assert_int_equal(cri_do(&s->kubelet, "PodSandboxStatus", &guarded, NULL),
			 CK_GRPC_NOT_FOUND);
	cri_start(&s->kubelet, &call, "RunPodSandbox", &create, NULL);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_RESOURCE_EXHAUSTED);
	cri_end(&call);
	assert_int_equal(world_count(&s->w, "begin sandbox"), 0);
	assert_int_equal(pod_n(&s->kubelet), 0); /* the connection lives */
}

static void a_runtime_with_a_lower_limit_says_so_itself(void **state)
{
	struct stage *s = *state;
	stage_start(s, "max_message=16MiB", NULL);
	struct ck_bytes version = padded((struct ck_bytes){ 0 }, 17u << 20);
	assert_int_equal(cri_do(&s->kubelet, "Version", &version, NULL),
			 CK_GRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(pod_n(&s->kubelet), 0);
}

/* some that are no HTTP/2 at all, and some that begin well */
static void random_bytes_cost_their_connection_only(void **state)
{
	struct stage *s = *state;
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	unsigned seed = 1;
	stage_start(s, NULL, NULL);
	for (int i = 0; i < 200; i++) {
		unsigned char bytes[4096];
		int fd = ck_unix_connect(s->w.cri, NULL);
		assert_true(fd >= 0);
		if (i % 2)
			assert_true(send(fd, preface, sizeof(preface) - 1, MSG_NOSIGNAL) > 0);
		for (size_t b = 0; b < sizeof(bytes); b++)
			bytes[b] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16);
		send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
		close(fd);
	}
	assert_int_equal(pod_run(&s->kubelet, "pod", 0, "5S", NULL), CK_GRPC_OK);
	assert_int_equal(pod_n(&s->kubelet), 1);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static void the_unfiltered_socket_refuses_every_call_not_on_its_list(void **state)
{
	struct stage *s = *state;
	unsigned refused = 0, answered = 0;
	stage_start(s, NULL, NULL);
	for (size_t i = 0; ck_cri_method_at(i); i++) {
		const struct ck_cri_method *method = ck_cri_method_at(i);
		char rpc[64];
		if (method->class == CK_CRI_EVENTS)
			continue; /* endless */
		snprintf(rpc, sizeof(rpc), "%s%s",
			 strstr(method->rpc, "Image") ? "ImageService/" : "", method->rpc);
		int code = cri_do_id(&s->agent, rpc, "x");
		if (method->read_only)
			assert_int_not_equal(code, CK_GRPC_PERMISSION_DENIED);
		else
			assert_int_equal(code, CK_GRPC_PERMISSION_DENIED);
		refused += !method->read_only;
		answered += method->read_only;
	}
	assert_true(refused > 10);
	assert_true(answered > 10);
	assert_int_equal(cri_do_id(&s->agent, "HibernatePodSandbox", "x"),
			 CK_GRPC_PERMISSION_DENIED);
}

/* what a user of no rights reads from this socket: bytes, 0 if it is closed at once, -1 if he
 * cannot open it */
static int read_by_nobody(const char *path, bool asks)
{
	int status = 0;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char c;
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		int fd = ck_unix_connect(path, NULL);
		if (fd < 0)
			_exit(3);
		fcntl(fd, F_SETFL, 0);
		if (asks && write(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24) != 24)
			_exit(4);
		_exit(read(fd, &c, 1) == 1 ? 10 : 11);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_in_range(WEXITSTATUS(status), 3, 11);
	return WEXITSTATUS(status) == 3 ? -1 : WEXITSTATUS(status) == 10;
}

static void a_user_who_may_not_connect_is_closed_with_one_line_in_the_log(void **state)
{
	struct stage *s = *state;
	if (geteuid() != 0) {
		print_message("# only root can become another user\n");
		skip();
	}
	stage_start(s, NULL, NULL);
	assert_int_equal(chmod(s->w.dir, 0711), 0);
	assert_int_equal(chmod(s->w.cri, 0666), 0);
	assert_int_equal(read_by_nobody(s->w.cri, false), 0);
	char *log = world_file(s->w.log), *line = strstr(log, "refused a connection: user 65534 ");
	assert_non_null(line);
	assert_null(strstr(line + 1, "refused a connection"));
	free(log);
	assert_int_equal(world_metric(&s->w, "crikeepd_clients_refused_total"), 1);
	assert_int_equal(pod_n(&s->kubelet), 0);
}

static void each_socket_has_rights_of_its_own(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--set", "unfiltered_socket.mode=0666",
					     "--set", "unfiltered_socket.allow_uids=0,65534",
					     "--set", "metrics_socket.mode=0666",
					     NULL };
	static const char *const strict[] = { "--set", "metrics_socket.mode=0666",
					      "--set", "metrics_socket.allow_uids=0", NULL };
	struct stat st;
	if (geteuid() != 0) {
		print_message("# only root can become another user\n");
		skip();
	}
	stage_start(s, NULL, flags);
	assert_int_equal(chmod(s->w.dir, 0711), 0);
	assert_int_equal(stat(s->w.cri, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(read_by_nobody(s->w.cri, true), -1);
	assert_int_equal(read_by_nobody(s->w.unfiltered, true), 1);
	assert_int_equal(read_by_nobody(s->w.metrics, false), 1);
	stage_kill(s);
	s->flags = strict;
	stage_again(s);
	assert_int_equal(read_by_nobody(s->w.unfiltered, true), -1);
	assert_int_equal(read_by_nobody(s->w.metrics, false), 0);
}

/* ---- a runtime that is not there ------------------------------------------------------------- */

static void without_a_runtime_it_ends_within_start_timeout_and_says_which_and_why(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--set", "start_timeout=1s", NULL };
	assert_int_equal(world_daemon_fails(&s->w, flags), 1);
	assert_true(world_logged(&s->w, s->w.runtime));
	assert_true(world_logged(&s->w, "no such file"));
	assert_int_not_equal(access(s->w.cri, F_OK), 0);
}

static void a_regular_file_in_its_place_ends_it_at_once(void **state)
{
	struct stage *s = *state;
	int fd = open(s->w.runtime, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(world_daemon_fails(&s->w, NULL), 1); /* start_timeout is a minute */
	assert_true(world_logged(&s->w, s->w.runtime));
	assert_true(world_logged(&s->w, "not a socket"));
}

/* R2.7: no list is not an empty list */
static void while_its_lists_fail_nobody_is_served(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--set", "start_timeout=2s", NULL };
	world_sim(&s->w, "fail.list=1000");
	assert_int_equal(world_daemon_fails(&s->w, flags), 1);
	assert_true(world_logged(&s->w, "the list failed"));
	assert_int_not_equal(access(s->w.cri, F_OK), 0);
}

static void while_its_lists_do_not_come_it_says_so(void **state)
{
	struct stage *s = *state;
	static const char *const flags[] = { "--set", "start_timeout=2s", NULL };
	world_sim(&s->w, "list=1h");
	assert_int_equal(world_daemon_fails(&s->w, flags), 1);
	assert_true(world_logged(&s->w, "did not answer a list"));
	assert_int_not_equal(access(s->w.cri, F_OK), 0);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static void with_few_descriptors(void)
{
	const struct rlimit few = { 48, 48 };
	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		_exit(126);
}

static void whoever_finds_no_descriptor_left_waits_and_the_log_says_so_once(void **state)
{
	struct stage *s = *state;
	int idle[64];
	s->w.before = with_few_descriptors;
	stage_start(s, NULL, NULL);
	for (size_t i = 0; i < CK_COUNT(idle); i++)
		assert_true((idle[i] = ck_unix_connect(s->w.cri, NULL)) >= 0);
	world_until_logged(&s->w, "cannot accept clients", 10);
	assert_int_equal(pod_n(&s->kubelet), 0); /* who is in is served */
	for (size_t i = 0; i < CK_COUNT(idle); i++)
		close(idle[i]);
	struct cri_client late;
	cri_open(&late, s->w.cri);
	assert_int_equal(pod_n(&late), 0);
	cri_close(&late);
	char *log = world_file(s->w.log), *line = strstr(log, "cannot accept clients");
	assert_non_null(line);
	assert_null(strstr(line + 1, "cannot accept clients"));
	free(log);
}

/* ---- the end of a connection ----------------------------------------------------------------- */

static void a_client_whose_goaway_came_is_let_go(void **state)
{
	struct stage *s = *state;
	const unsigned char *bytes;
	struct ck_error err;
	stage_start(s, NULL, NULL);
	assert_int_equal(pod_n(&s->kubelet), 0);
	double before = world_metric(&s->w, "crikeepd_clients");
	ck_h2_goaway(s->kubelet.h2);
	ptrdiff_t n = ck_h2_next(s->kubelet.h2, &bytes, &err);
	assert_true(n > 0 && send(s->kubelet.fd, bytes, (size_t)n, MSG_NOSIGNAL) == n);
	while (world_metric(&s->w, "crikeepd_clients") > before - 0.5)
		poll(NULL, 0, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STAGE(truncated_requests_are_invalid_and_do_not_reach_the_runtime),
		ON_STAGE(a_path_without_its_slash_does_not_reach_the_runtime),
		ON_REPEAT_STAGE(a_hidden_pod_cannot_be_checkpointed),
		ON_STAGE(seventeen_mebibytes_pass_and_a_create_of_that_size_is_refused),
		ON_STAGE(a_runtime_with_a_lower_limit_says_so_itself),
		ON_STAGE(random_bytes_cost_their_connection_only),
		ON_STAGE(the_unfiltered_socket_refuses_every_call_not_on_its_list),
		ON_STAGE(a_user_who_may_not_connect_is_closed_with_one_line_in_the_log),
		ON_STAGE(each_socket_has_rights_of_its_own),
		ON_STAGE(whoever_finds_no_descriptor_left_waits_and_the_log_says_so_once),
		ON_STAGE(without_a_runtime_it_ends_within_start_timeout_and_says_which_and_why),
		ON_STAGE(a_regular_file_in_its_place_ends_it_at_once),
		ON_STAGE(while_its_lists_fail_nobody_is_served),
		ON_STAGE(while_its_lists_do_not_come_it_says_so),
		ON_STAGE(a_client_whose_goaway_came_is_let_go),
	};
	return CK_TEST_MAIN(tests);
}
