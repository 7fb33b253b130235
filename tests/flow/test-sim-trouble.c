/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated runtime when something is wrong: failures it was told to have, requests that are
 * none, readers that stall, memory that is gone, its own death. What it does when all is well is in
 * test-sim.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/harness.h"
#include "tests/unit/wire-build.h"
#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/sim/sim.h"
#include "src/rpc/address.h"
#include "tests/flow/cri-client.h"

struct fixture {
	struct sim sim;
	struct cri_client client;
	char dir[80];
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

static const char *tmp(void)
{
	const char *dir = getenv("TMPDIR");
	return dir ? dir : "/tmp";
}

/* @parameters, and @key with a file in a new directory, f->dir */
static const char *in_dir(struct fixture *f, const char *parameters, const char *key,
			  const char *file)
{
	static char text[256];
	snprintf(f->dir, sizeof(f->dir), "%s/sim-XXXXXX", tmp());
	assert_non_null(mkdtemp(f->dir));
	snprintf(text, sizeof(text), "%s,%s=%s/%s", parameters, key, f->dir, file);
	return text;
}

static unsigned listed(struct fixture *f, const char *rpc)
{
	struct ck_bytes reply;
	assert_int_equal(cri_do(&f->client, rpc, NULL, &reply), CK_GRPC_OK);
	unsigned n = cri_count(&reply, "1");
	ck_bytes_free(&reply);
	return n;
}

static int run(struct fixture *f, const char *name)
{
	struct ck_bytes request = cri_run_request(name, 0);
	return cri_do(&f->client, "RunPodSandbox", &request, NULL);
}

/* ---- as it was told -------------------------------------------------------------------------- */

static void the_first_ones_fail_as_told(void **state)
{
	struct fixture f;
	(void)state;
	begin(&f, "fail.sandbox=2,fail.container=1,fail.list=1,fail.remove=1");
	assert_int_equal(run(&f, "web"), CK_GRPC_UNKNOWN);
	assert_int_equal(run(&f, "web"), CK_GRPC_UNKNOWN); /* its name is free again */
	const char *sandbox = cri_run(&f.client, "web");
	struct ck_bytes request = cri_create_request(sandbox, "web", "main", 0);
	assert_int_equal(cri_do(&f.client, "CreateContainer", &request, NULL), CK_GRPC_UNKNOWN);
	cri_create(&f.client, sandbox, "web", "main");
	assert_int_equal(cri_do(&f.client, "ListContainers", NULL, NULL), CK_GRPC_UNKNOWN);
	assert_int_equal(listed(&f, "ListContainers"), 1);
	assert_int_equal(cri_do_id(&f.client, "RemovePodSandbox", sandbox), CK_GRPC_UNKNOWN);
	assert_int_equal(listed(&f, "ListPodSandbox"), 1);
	assert_int_equal(cri_do_id(&f.client, "RemovePodSandbox", sandbox), CK_GRPC_OK);
	end(&f);
}

static void a_failures_text_is_as_long_as_told(void **state)
{
	struct fixture f;
	struct cri_call call;
	(void)state;
	begin(&f, "fail.sandbox=1,error_text=20000");
	struct ck_bytes request = cri_run_request("web", 0);
	cri_start(&f.client, &call, "RunPodSandbox", &request, NULL);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_UNKNOWN);
	assert_int_equal(strlen(call.status.message), 20000);
	cri_end(&call);
	end(&f);
}

static void a_text_that_no_block_takes_costs_its_call_only(void **state)
{
	struct fixture f;
	struct cri_call call;
	(void)state;
	begin(&f, "fail.sandbox=1,error_text=150000");
	struct ck_bytes request = cri_run_request("web", 0);
	cri_start(&f.client, &call, "RunPodSandbox", &request, NULL);
	cri_wait(&call);
	/* as servers in Go do, to a peer that takes 64 KiB of headers */
	assert_false(call.answered);
	assert_int_not_equal(call.error, CK_H2_NO_ERROR);
	cri_end(&call);
	assert_int_equal(run(&f, "web"), CK_GRPC_OK);
	end(&f);
}

static void a_connection_ends_after_so_many_calls(void **state)
{
	struct fixture f;
	struct cri_call last;
	(void)state;
	begin(&f, "goaway=3,create=100ms");
	assert_int_equal(listed(&f, "ListPodSandbox"), 0);
	assert_int_equal(listed(&f, "ListPodSandbox"), 0);
	assert_false(f.client.draining);
	struct ck_bytes request = cri_run_request("web", 0);
	cri_start(&f.client, &last, "RunPodSandbox", &request, NULL);
	cri_wait(&last);
	assert_int_equal(last.status.code, CK_GRPC_OK); /* what was under way ended well */
	assert_true(f.client.draining);
	cri_end(&last);
	cri_close(&f.client);
	cri_open(&f.client, f.sim.path);
	assert_int_equal(listed(&f, "ListPodSandbox"), 1);
	end(&f);
}

static void calls_take_as_long_as_told(void **state)
{
	static const char *const rpcs[] = { "ListPodSandbox", "StopPodSandbox",
					    "RemovePodSandbox" };
	struct fixture f;
	(void)state;
	begin(&f, "list=100ms,stop=100ms,remove=100ms");
	for (size_t i = 0; i < CK_COUNT(rpcs); i++) {
		struct cri_call call;
		cri_start(&f.client, &call, rpcs[i], NULL, NULL);
		/* overtakes it */
		assert_int_equal(cri_do(&f.client, "Version", NULL, NULL), CK_GRPC_OK);
		assert_non_null(call.stream);
		cri_wait(&call);
		assert_int_equal(call.status.code, CK_GRPC_OK);
		cri_end(&call);
		/* and not longer than its caller waits */
		cri_start(&f.client, &call, rpcs[i], NULL, "10m");
		cri_wait(&call);
		assert_int_equal(call.error, CK_H2_CANCEL);
		cri_end(&call);
	}
	end(&f);
}

static void what_removes_goes_on_without_its_caller_only_with_finish(void **state)
{
	static const char *const parameters[] = { "remove=100ms", "remove=100ms,cancel=finish" };
	(void)state;
	for (unsigned i = 0; i < CK_COUNT(parameters); i++) {
		struct fixture f;
		struct cri_call call, after;
		struct ck_bytes request = { 0 };
		begin(&f, parameters[i]);
		put_text(&request, 1, cri_run(&f.client, "web"));
		cri_start(&f.client, &call, "RemovePodSandbox", &request, "10m");
		cri_wait(&call);
		cri_end(&call);
		/* of nobody: due after the other */
		cri_start(&f.client, &after, "RemovePodSandbox", NULL, NULL);
		cri_wait(&after);
		cri_end(&after);
		assert_int_equal(listed(&f, "ListPodSandbox"), 1 - i);
		end(&f);
	}
}

/* ---- requests that are none ------------------------------------------------------------------ */

static void a_request_that_is_too_long_is_refused_and_the_connection_goes_on(void **state)
{
	struct fixture f;
	char *text = malloc(3u << 20);
	(void)state;
	assert_non_null(text);
	memset(text, 'x', (3u << 20) - 1);
	text[(3u << 20) - 1] = '\0';
	begin(&f, "max_message=1MiB");
	for (int i = 0; i < 3; i++) {
		struct ck_bytes request = { 0 };
		put_text(&request, 1, text);
		assert_int_equal(cri_do(&f.client, "RunPodSandbox", &request, NULL),
				 CK_GRPC_RESOURCE_EXHAUSTED);
	}
	assert_int_equal(run(&f, "web"), CK_GRPC_OK);
	end(&f);
	free(text);
}

static void seventeen_mebibytes_are_taken(void **state)
{
	enum { SIZE = 17 << 20 };
	struct fixture f;
	struct ck_bytes request = { 0 }, config = { 0 }, reply;
	char *text = malloc(SIZE + 1);
	(void)state;
	assert_non_null(text);
	memset(text, 'x', SIZE);
	text[SIZE] = '\0';
	begin(&f, "");
	cri_pod_config(&config, "web", 0);
	put_pair(&config, 7, "long", text);
	put(&request, 1, &config);
	assert_int_equal(cri_do(&f.client, "RunPodSandbox", &request, NULL), CK_GRPC_OK);
	assert_int_equal(cri_do(&f.client, "ListPodSandbox", NULL, &reply), CK_GRPC_OK);
	assert_true(reply.len > SIZE);
	ck_bytes_free(&reply);
	end(&f);
	free(text);
}

static void what_is_no_request_is_refused(void **state)
{
	static const struct {
		const char *rpc;
		const char *bytes;
		size_t len;
		int code;
	} cases[] = {
		{ "RunPodSandbox", "\x0a\x05\x0a", 3, CK_GRPC_INTERNAL }, /* cut */
		/* cut inside */
		{ "RunPodSandbox", "\x0a\x02\x0a\x05", 4, CK_GRPC_INTERNAL },
		/* and deeper */
		{ "RunPodSandbox", "\x0a\x06\x0a\x04\x0a\x09xy", 8, CK_GRPC_INTERNAL },
		{ "RunPodSandbox", "", 0, CK_GRPC_INVALID_ARGUMENT },
		/* a number where a message is */
		{ "RunPodSandbox", "\x08\x07", 2, CK_GRPC_INVALID_ARGUMENT },
		{ "RunPodSandbox", "\x0a\x02\x08\x07", 4, CK_GRPC_INVALID_ARGUMENT },
		{ "CreateContainer", "", 0, CK_GRPC_NOT_FOUND },
		{ "ListPodSandbox", "\x0a\xff", 2, CK_GRPC_INTERNAL },
		{ "ListPodSandbox", "\x0a\x03\x12\x01\x0a", 5, CK_GRPC_INTERNAL },
		{ "StopPodSandbox", "\xff", 1, CK_GRPC_INTERNAL },
		{ "ImageService/ImageStatus", "", 0, CK_GRPC_INVALID_ARGUMENT },
		{ "ImageService/PullImage", "\x0a", 1, CK_GRPC_INTERNAL },
		{ "Exec", "", 0, CK_GRPC_UNIMPLEMENTED },
		{ "CheckpointContainer", "", 0, CK_GRPC_UNIMPLEMENTED },
		{ "ImageService/Version", "", 0, CK_GRPC_UNIMPLEMENTED },
		{ "Nothing", "", 0, CK_GRPC_UNIMPLEMENTED },
	};
	struct fixture f;
	(void)state;
	begin(&f, "");
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		struct ck_bytes request = { 0 };
		must(ck_bytes_add(&request, cases[i].bytes, cases[i].len));
		assert_int_equal(cri_do(&f.client, cases[i].rpc, &request, NULL), cases[i].code);
	}
	f.client.version = "v2";
	assert_int_equal(cri_do(&f.client, "Version", NULL, NULL), CK_GRPC_UNIMPLEMENTED);
	end(&f);
}

static void random_bytes_cost_their_connection_only(void **state)
{
	static const char junk[] =
		"GET / HTTP/1.1\r\nHost: junk\r\n\r\nand a lot more that is no frame";
	struct fixture f;
	char byte;
	(void)state;
	begin(&f, "");
	int fd = ck_unix_connect(f.sim.path, NULL);
	assert_true(fd >= 0);
	assert_true(send(fd, junk, sizeof(junk), MSG_NOSIGNAL) > 0);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0); /* now it waits */
	while (recv(fd, &byte, 1, 0) > 0) {
		/* SETTINGS, GOAWAY, the end */
	}
	close(fd);
	assert_int_equal(listed(&f, "ListPodSandbox"), 0);
	end(&f);
}

static void a_listener_that_does_not_read_is_given_up(void **state)
{
	enum { SIZE = 1 << 20 };
	struct fixture f;
	struct cri_client stalled;
	struct cri_call events;
	char *text = malloc(SIZE + 1);
	(void)state;
	assert_non_null(text);
	memset(text, 'x', SIZE);
	text[SIZE] = '\0';
	begin(&f, "");
	cri_open(&stalled, f.sim.path);
	stalled.deaf = true;
	cri_start(&stalled, &events, "GetContainerEvents", NULL, NULL);
	assert_int_equal(cri_do(&stalled, "Version", NULL, NULL), CK_GRPC_OK);
	for (unsigned i = 0; i < 12; i++) { /* each is told in two events of a MiB */
		char name[16];
		struct ck_bytes request = { 0 }, config = { 0 };
		snprintf(name, sizeof(name), "p%u", i);
		cri_pod_config(&config, name, 0);
		put_pair(&config, 7, "long", text);
		put(&request, 1, &config);
		assert_int_equal(cri_do(&f.client, "RunPodSandbox", &request, NULL), CK_GRPC_OK);
	}
	assert_int_equal(listed(&f, "ListPodSandbox"), 12);
	stalled.deaf = false;
	/* it reads on, and hears how it ended */
	ck_h2_stream_consume(events.stream, CK_STREAM_WINDOW);
	cri_wait(&events);
	assert_int_equal(events.status.code, CK_GRPC_RESOURCE_EXHAUSTED);
	assert_true(events.messages > CK_SIM_EVENTS_MAX / SIZE && events.messages < 20);
	cri_end(&events);
	cri_close(&stalled);
	end(&f);
	free(text);
}

/* ---- the log and the state file -------------------------------------------------------------- */

static void check_line(FILE *file, const char *expected)
{
	char line[512];
	assert_non_null(fgets(line, sizeof(line), file));
	double seconds;
	int at = 0;
	assert_int_equal(sscanf(line, "%lf %n", &seconds, &at), 1);
	assert_true(seconds >= 0 && at > 0);
	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(line + at, expected);
}

static void each_thing_that_happens_is_a_line_of_the_log(void **state)
{
	static const char *const verbs[] = { "begin", "create", "stop", "remove" };
	struct fixture f;
	char path[128], expected[256];
	(void)state;
	begin(&f, in_dir(&f, "fail.sandbox=1", "log", "log"));
	snprintf(path, sizeof(path), "%s/log", f.dir);
	assert_int_equal(run(&f, "web"), CK_GRPC_UNKNOWN);
	const char *id = cri_run(&f.client, "web");
	cri_do_id(&f.client, "RemovePodSandbox", id);
	FILE *file = fopen(path, "r"); /* written at once, not at the end */
	assert_non_null(file);
	char line[512], failed[65];
	assert_non_null(fgets(line, sizeof(line), file));
	assert_int_equal(sscanf(line, "%*f begin sandbox %64s", failed), 1);
	snprintf(expected, sizeof(expected), "fail sandbox %s web_ns_uid-web_0", failed);
	check_line(file, expected);
	for (size_t i = 0; i < CK_COUNT(verbs); i++) {
		snprintf(expected, sizeof(expected), "%s sandbox %s web_ns_uid-web_0", verbs[i],
			 id);
		check_line(file, expected);
	}
	assert_null(fgets(line, sizeof(line), file));
	fclose(file);
	end(&f);
	unlink(path);
	rmdir(f.dir);
}

static void objects_outlive_a_killed_runtime(void **state)
{
	struct fixture f;
	struct cri_call call;
	struct ck_bytes before[3], after[3];
	(void)state;
	const char *parameters = in_dir(&f, "create.container=0s", "state", "state");
	begin(&f, parameters);
	const char *ready = cri_run(&f.client, "ready"), *stopped = cri_run(&f.client, "stopped");
	const char *gone = cri_run(&f.client, "gone");
	const char *running = cri_create(&f.client, ready, "ready", "running");
	const char *exited = cri_create(&f.client, ready, "ready", "exited");
	cri_create(&f.client, gone, "gone", "gone");
	cri_do_id(&f.client, "StartContainer", running);
	cri_do_id(&f.client, "StartContainer", exited);
	cri_do_id(&f.client, "StopContainer", exited);
	cri_do_id(&f.client, "StopPodSandbox", stopped);
	cri_do_id(&f.client, "RemovePodSandbox", gone);
	static const char *const lists[] = { "ListPodSandbox", "ListContainers" };
	for (size_t i = 0; i < CK_COUNT(lists); i++)
		cri_do(&f.client, lists[i], NULL, &before[i]);
	assert_int_equal(cri_count(&before[0], "1"), 2);
	assert_int_equal(cri_count(&before[1], "1"), 2);
	sim_kill(&f.sim);
	cri_close(&f.client);

	sim_restart(&f.sim, parameters);
	cri_open(&f.client, f.sim.path);
	for (size_t i = 0; i < CK_COUNT(lists); i++) {
		cri_do(&f.client, lists[i], NULL, &after[i]);
		assert_int_equal(after[i].len, before[i].len);
		assert_memory_equal(after[i].p, before[i].p, after[i].len);
		ck_bytes_free(&before[i]);
		ck_bytes_free(&after[i]);
	}
	struct ck_bytes request = cri_run_request("ready", 0); /* names are reserved again */
	cri_start(&f.client, &call, "RunPodSandbox", &request, NULL);
	cri_wait(&call);
	assert_int_equal(call.status.code, CK_GRPC_UNKNOWN);
	assert_non_null(strstr(call.status.message, ready));
	cri_end(&call);
	assert_int_equal(run(&f, "gone"), CK_GRPC_OK);
	assert_int_equal(cri_do_id(&f.client, "StopContainer", running), CK_GRPC_OK);
	end(&f);
	char path[128];
	snprintf(path, sizeof(path), "%s/state", f.dir);
	unlink(path);
	rmdir(f.dir);
}

static void a_state_file_that_was_cut_is_used_up_to_there(void **state)
{
	struct fixture f;
	struct stat st;
	char path[128];
	(void)state;
	const char *parameters = in_dir(&f, "", "state", "state");
	snprintf(path, sizeof(path), "%s/state", f.dir);
	begin(&f, parameters);
	cri_run(&f.client, "first");
	assert_int_equal(stat(path, &st), 0);
	off_t first = st.st_size;
	cri_run(&f.client, "second");
	end(&f);
	assert_int_equal(stat(path, &st), 0);
	for (off_t size = st.st_size - 1; size > first; size -= 17) {
		assert_int_equal(truncate(path, size), 0);
		begin(&f, parameters);
		assert_int_equal(listed(&f, "ListPodSandbox"), 1);
		assert_int_equal(run(&f, "second"), CK_GRPC_OK);
		end(&f);
		begin(&f, parameters); /* what was written behind the cut is found */
		assert_int_equal(listed(&f, "ListPodSandbox"), 2);
		end(&f);
	}
	unlink(path);
	rmdir(f.dir);
}

/* ---- the program, as crikeepd starts it ------------------------------------------------------ */

struct program {
	pid_t pid;
	int fd;         /* our end of the socket: it lives as long as this */
	char said[512]; /* the packet */
	int status;
};

static void program_start(struct program *program, const char *option, const char *parameters)
{
	char path[4096];
	int fds[2];
	const char *build = getenv("CK_TEST_BUILDDIR");
	snprintf(path, sizeof(path), "%s/crikeep-sim", build ? build : ".");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	fflush(NULL);
	program->pid = fork();
	assert_true(program->pid >= 0);
	if (program->pid == 0) {
		dup2(fcntl(fds[1], F_DUPFD_CLOEXEC, 4), 3);
		execl(path, "crikeep-sim", "--parent=3", option, parameters, NULL);
		_exit(127);
	}
	close(fds[1]);
	program->fd = fds[0];
	ssize_t n = recv(program->fd, program->said, sizeof(program->said) - 1, 0);
	assert_true(n >= 0);
	program->said[n] = '\0';
}

static void program_wait(struct program *program)
{
	assert_int_equal(waitpid(program->pid, &program->status, 0), program->pid);
	assert_true(WIFEXITED(program->status));
	program->status = WEXITSTATUS(program->status);
	close(program->fd);
}

static void program_run(struct program *program, const char *option, const char *parameters)
{
	program_start(program, option, parameters);
	program_wait(program);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void wrong_parameters_are_named(void **state)
{
	static const char *const fine[] = {
		"",
		",",
		"create=5s",
		"create.sandbox=250ms,create.container=1m30s",
		"cancel=finish,cancel=rollback",
		"padding=1KiB,sandboxes=2,containers=3",
		"max_message=1GiB",
		"images=a+b",
		"log=/x,state=/y,listen=/z",
		"exit=0s,exit=1m",
	};
	static const struct {
		const char *parameters, *named;
	} wrong[] = {
		{ "creat=5s", "'creat'" },
		{ "create", "create=" },
		{ "create=5", "create=5:" },
		{ "create=-1s", "create=-1s:" },
		{ "create=400d", "create=400d:" },
		{ "cancel=maybe", "cancel=maybe:" },
		{ "exit", "exit=" },
		{ "exit=5", "exit=5:" },
		{ "sandboxes=1000001", "sandboxes=" },
		{ "sandboxes=x", "sandboxes=x:" },
		{ "padding=1GB", "padding=1GB:" },
		{ "padding=2GiB", "padding=2GiB:" },
		{ "containers=1", "sandboxes=" },
		{ "listen=", "listen=:" },
		{ "fail.sandbox=1x", "fail.sandbox=1x:" },
		{ "create=5s,,nonsense=1", "'nonsense'" },
		{ "padding=99999999999999999999", "padding=" },
	};
	struct ck_error err;
	struct program program;
	(void)state;
	for (size_t i = 0; i < CK_COUNT(fine); i++) {
		assert_int_equal(ck_sim_check(fine[i], &err), 0);
		program_run(&program, "--check", fine[i]);
		assert_int_equal(program.status, 0);
		assert_string_equal(program.said, "ready ");
	}
	for (size_t i = 0; i < CK_COUNT(wrong); i++) {
		assert_int_equal(ck_sim_check(wrong[i].parameters, &err), -CK_EINVAL);
		assert_non_null(strstr(err.text, wrong[i].named));
		program_run(&program, "--check", wrong[i].parameters);
		assert_int_equal(program.status, 2);
		assert_int_equal(strncmp(program.said, "error ", 6), 0);
		assert_string_equal(program.said + 6, err.text);
		program_run(&program, "--listen=/nowhere", wrong[i].parameters);
		assert_int_equal(program.status, 2);
	}
}

static void a_socket_that_cannot_be_made_is_an_error_of_the_start(void **state)
{
	struct program program;
	(void)state;
	program_run(&program, "--listen=/proc/nowhere/s", "");
	assert_int_equal(program.status, 1);
	assert_int_equal(strncmp(program.said, "error ", 6), 0);
	assert_non_null(strstr(program.said, "/proc/nowhere/s"));
}

static void without_a_path_it_does_not_start(void **state)
{
	struct program program;
	(void)state;
	program_run(&program, "--", "create=5s");
	assert_int_equal(program.status, 2);
	assert_string_equal(program.said, "error listen=PATH is needed");
}

static void a_file_that_cannot_be_opened_ends_it_at_once(void **state)
{
	static const char *const parameters[] = { "log=/proc/nowhere/log",
						  "state=/proc/nowhere/state" };
	(void)state;
	for (size_t i = 0; i < CK_COUNT(parameters); i++) {
		struct sim sim;
		int status;
		sim_start(&sim, parameters[i]);
		assert_int_equal(waitpid(sim.pid, &status, 0), sim.pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
		unlink(sim.path);
	}
}

/* ---- its process ----------------------------------------------------------------------------- */

static void it_listens_when_it_says_so(void **state)
{
	char option[128], path[108], said[128];
	struct program program;
	struct cri_client client;
	(void)state;
	snprintf(path, sizeof(path), "%s/sim-ready-%d", tmp(), (int)getpid());
	snprintf(option, sizeof(option), "--listen=%s.not", path);
	snprintf(said, sizeof(said), "listen=%s", path); /* the parameters count for more */
	program_start(&program, option, said);
	snprintf(said, sizeof(said), "ready %s", path);
	assert_string_equal(program.said, said);
	cri_open(&client, path);
	assert_int_equal(cri_do(&client, "Version", NULL, NULL), CK_GRPC_OK);
	cri_close(&client);
	shutdown(program.fd, SHUT_RDWR); /* as when the parent has ended */
	program_wait(&program);
	assert_int_equal(program.status, 0);
	unlink(path);
}

static void it_ends_with_its_parent(void **state)
{
	int pipes[2], status;
	char byte, option[128], path[108];
	(void)state;
	snprintf(path, sizeof(path), "%s/sim-parent-%d", tmp(), (int)getpid());
	snprintf(option, sizeof(option), "--listen=%s", path);
	assert_int_equal(pipe(pipes), 0);
	fflush(NULL);
	pid_t parent = fork();
	if (parent == 0) {
		struct program program;
		program_start(&program, option, "");
		dprintf(pipes[1], "%c", strncmp(program.said, "ready ", 6) == 0 ? 'y' : 'n');
		pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	struct cri_client client;
	struct cri_call events;
	cri_open(&client, path);
	cri_start(&client, &events, "GetContainerEvents", NULL, NULL);
	assert_int_equal(cri_do(&client, "Version", NULL, NULL), CK_GRPC_OK); /* it serves */
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	cri_wait(&events); /* the end of the connection */
	assert_false(events.answered);
	cri_end(&events);
	cri_close(&client);
	close(pipes[0]);
	unlink(path);
}

/* a number in base 16 of a line of /proc/PID/status */
static unsigned long long proc_status(pid_t pid, const char *name)
{
	char path[64], line[256];
	unsigned long long value = ~0ULL;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, 16);
	fclose(file);
	return value;
}

/* Its files were opened before, and stay in use. */
static void it_serves_without_capabilities(void **state)
{
	struct fixture f;
	struct program program;
	struct cri_client client;
	struct stat st;
	char option[128], path[108], parameters[256];
	(void)state;
	snprintf(parameters, sizeof(parameters), "%s",
		 in_dir(&f, "cancel=finish", "state", "state"));
	snprintf(path, sizeof(path), "%s/sim.sock", f.dir);
	snprintf(option, sizeof(option), "--listen=%s", path);
	program_start(&program, option, parameters);
	cri_open(&client, path);
	cri_run(&client, "web"); /* served: its start is over */
	assert_int_equal(proc_status(program.pid, "CapEff"), 0);
	assert_int_equal(proc_status(program.pid, "CapPrm"), 0);
	assert_int_equal(proc_status(program.pid, "CapInh"), 0);
	assert_int_equal(proc_status(program.pid, "CapAmb"), 0);
	assert_int_equal(proc_status(program.pid, "NoNewPrivs"), 1);
	if (geteuid() == 0) /* others may not lower it, and gain nothing from it */
		assert_int_equal(proc_status(program.pid, "CapBnd"), 0);
	cri_close(&client);
	close(program.fd);
	program.fd = -1;
	program_wait(&program);
	assert_int_equal(program.status, 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/state", f.dir);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 0);
	unlink(path);
	rmdir(f.dir);
}

/* ---- memory that is gone --------------------------------------------------------------------- */

/* true: it was served, be it with errors */
static bool a_life(struct cri_client *client)
{
	struct cri_call events;
	char sandbox[65] = "none", container[65] = "none";
	struct ck_bytes request = cri_run_request("web", 0), reply = { 0 };
	cri_start(client, &events, "GetContainerEvents", NULL, NULL);
	if (cri_do(client, "RunPodSandbox", &request, &reply) == CK_GRPC_OK)
		snprintf(sandbox, sizeof(sandbox), "%s", cri_text(&reply, "1"));
	ck_bytes_free(&reply);
	request = cri_create_request(sandbox, "web", "main", 0);
	if (cri_do(client, "CreateContainer", &request, &reply) == CK_GRPC_OK)
		snprintf(container, sizeof(container), "%s", cri_text(&reply, "1"));
	ck_bytes_free(&reply);
	static const struct {
		const char *rpc;
		bool of_container;
	} calls[] = {
		{ "StartContainer", true },           { "ContainerStatus", true },
		{ "ListContainers", false },          { "PodSandboxStatus", false },
		{ "ListPodSandboxStats", false },     { "StreamPodSandboxes", false },
		{ "ImageService/ListImages", false }, { "Status", false },
		{ "StopPodSandbox", false },          { "RemovePodSandbox", false },
	};
	bool served = strcmp(sandbox, "none") != 0;
	for (size_t i = 0; i < CK_COUNT(calls); i++)
		served = cri_do_id(client, calls[i].rpc,
				   calls[i].of_container ? container : sandbox) >= 0 ||
			 served;
	cri_end(&events);
	return served;
}

/* the n-th allocation fails: answers may be errors, connections may end, the process goes on and
 * forgets nothing */
static void any_allocation_may_fail(void **state)
{
	unsigned n = 1, survived = 0;
	bool hit = true;
	(void)state;
	for (; hit; n += ck_test_env("CK_TEST_SLOW", 1) > 1 ? 7 : 1) {
		struct ck_error err;
		struct sim sim;
		int pipes[2], status;
		char byte = 0;
		snprintf(sim.path, sizeof(sim.path), "%s/sim-fault-%d", tmp(), (int)getpid());
		assert_int_equal(pipe(pipes), 0);
		int fd = ck_unix_listen(sim.path, 0600, (gid_t)-1, &err);
		assert_true(fd >= 0);
		fflush(NULL);
		sim.pid = fork();
		if (sim.pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sigset_t term; /* may come while it ends by itself */
			sigemptyset(&term);
			sigaddset(&term, SIGTERM);
			sigprocmask(SIG_BLOCK, &term, NULL);
			close(pipes[0]);
			ck_fault_arm(CK_FAULT_ALLOC, n, false);
			int code = ck_sim_serve("images=busybox,sandboxes=1,containers=1", fd, -1);
			dprintf(pipes[1], "%c", ck_fault_hit() ? 'h' : '-');
			exit(code);
		}
		close(pipes[1]);
		struct cri_client client;
		cri_open(&client, sim.path);
		close(fd); /* the child may have ended by now */
		bool served = a_life(&client);
		cri_close(&client);
		kill(sim.pid, SIGTERM);
		assert_int_equal(read(pipes[0], &byte, 1), 1);
		close(pipes[0]);
		assert_int_equal(waitpid(sim.pid, &status, 0), sim.pid);
		assert_true(WIFEXITED(status));
		if (served || byte != 'h') /* it may refuse to start, or drop its only client */
			assert_int_equal(WEXITSTATUS(status), EXIT_SUCCESS);
		survived += served;
		hit = byte == 'h';
		unlink(sim.path);
	}
	assert_true(survived > 20);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_ones_fail_as_told),
		cmocka_unit_test(a_failures_text_is_as_long_as_told),
		cmocka_unit_test(a_text_that_no_block_takes_costs_its_call_only),
		cmocka_unit_test(a_connection_ends_after_so_many_calls),
		cmocka_unit_test(calls_take_as_long_as_told),
		cmocka_unit_test(what_removes_goes_on_without_its_caller_only_with_finish),
		cmocka_unit_test(a_request_that_is_too_long_is_refused_and_the_connection_goes_on),
		cmocka_unit_test(seventeen_mebibytes_are_taken),
		cmocka_unit_test(what_is_no_request_is_refused),
		cmocka_unit_test(random_bytes_cost_their_connection_only),
		cmocka_unit_test(a_listener_that_does_not_read_is_given_up),
		cmocka_unit_test(each_thing_that_happens_is_a_line_of_the_log),
		cmocka_unit_test(objects_outlive_a_killed_runtime),
		cmocka_unit_test(a_state_file_that_was_cut_is_used_up_to_there),
		cmocka_unit_test(wrong_parameters_are_named),
		cmocka_unit_test(a_socket_that_cannot_be_made_is_an_error_of_the_start),
		cmocka_unit_test(a_file_that_cannot_be_opened_ends_it_at_once),
		cmocka_unit_test(without_a_path_it_does_not_start),
		cmocka_unit_test(it_listens_when_it_says_so),
		cmocka_unit_test(it_ends_with_its_parent),
		cmocka_unit_test(it_serves_without_capabilities),
		cmocka_unit_test(any_allocation_may_fail),
	};
	return CK_TEST_MAIN(tests);
}
