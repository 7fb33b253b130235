/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/unit/harness.h"
#include "tests/unit/wire-build.h"
#include "src/base/wire.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/sim/sim.h"
#include "tests/flow/cri-client.h"

#define PATIENCE 20000 /* ms without anything to read */

/* ---- the simulated runtime ------------------------------------------------------------------- */

void sim_restart(struct sim *sim, const char *parameters)
{
	struct ck_error err;
	int fd = ck_unix_listen(sim->path, 0600, (gid_t)-1, &err);
	assert_true(fd >= 0);
	fflush(NULL);
	sim->pid = fork();
	assert_true(sim->pid >= 0);
	if (sim->pid == 0) { /* a test that fails leaves it behind */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(0);
		exit(ck_sim_serve(parameters, fd, -1)); /* not _exit(): leaks are looked for */
	}
	close(fd);
}

void sim_start(struct sim *sim, const char *parameters)
{
	static unsigned n;
	const char *dir = getenv("TMPDIR");
	snprintf(sim->path, sizeof(sim->path), "%s/sim-%d-%u", dir ? dir : "/tmp", (int)getpid(),
		 n++);
	sim_restart(sim, parameters);
}

void sim_kill(struct sim *sim)
{
	assert_int_equal(kill(sim->pid, SIGKILL), 0);
	assert_int_equal(waitpid(sim->pid, NULL, 0), sim->pid);
	unlink(sim->path);
}

void sim_stop(struct sim *sim)
{
	int status;
	assert_int_equal(kill(sim->pid, SIGTERM), 0);
	assert_int_equal(waitpid(sim->pid, &status, 0), sim->pid);
	assert_int_equal(status, 0);
	unlink(sim->path);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void take_message(struct cri_call *call)
{
	call->messages++;
	call->items += cri_count(&call->reader.message, "1");
	call->empty = call->empty || !call->reader.message.len;
	ck_bytes_free(&call->reply);
	call->reply = call->reader.message;
	call->reader.message = (struct ck_bytes){ 0 };
}

static void on_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	struct cri_call *call = userdata;
	(void)stream;
	int r = ck_grpc_status_read(headers, n, &call->status);
	assert_true(r >= 0);
	call->answered = call->answered || r > 0;
}

static void on_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		    void *userdata)
{
	struct cri_call *call = userdata;
	size_t used;
	if (!call->client->deaf)
		ck_h2_stream_consume(stream, n);
	for (size_t at = 0; at < n; at += used) {
		int r = ck_grpc_read(&call->reader, bytes + at, n - at, &used, NULL);
		assert_true(r >= 0);
		if (r > 0)
			take_message(call);
	}
}

static void on_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct cri_call *call = userdata;
	(void)stream;
	call->stream = NULL;
	call->error = error;
}

static const struct ck_h2_handler call_handler = { .headers = on_headers,
						   .data = on_data,
						   .closed = on_closed };

/* ---- the connection -------------------------------------------------------------------------- */

static void on_draining(struct ck_h2 *h2, void *userdata)
{
	(void)h2;
	((struct cri_client *)userdata)->draining = true;
}

void cri_open(struct cri_client *client, const char *path)
{
	static const struct ck_h2_owner owner = { .draining = on_draining };
	struct sockaddr_un address;
	*client = (struct cri_client){ .version = "v1", .root = "/" };
	assert_int_equal(ck_unix_address(path, &address, NULL), 0);
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(
		ck_h2_new(CK_H2_CLIENT, CK_STREAM_WINDOW, &owner, client, &client->h2, NULL), 0);
}

static void client_over(struct cri_client *client)
{
	ck_h2_free(CK_TAKE(client->h2)); /* calls hear closed() */
	close(client->fd);
	client->fd = -1;
}

void cri_close(struct cri_client *client)
{
	if (client->fd >= 0)
		client_over(client);
}

static void client_write(struct cri_client *client)
{
	const unsigned char *p;
	ptrdiff_t n;
	while (client->fd >= 0 && (n = ck_h2_next(client->h2, &p, NULL)) != 0) {
		assert_true(n > 0);
		for (ptrdiff_t done = 0; done < n;) {
			ssize_t written =
				send(client->fd, p + done, (size_t)(n - done), MSG_NOSIGNAL);
			if (written < 0 && errno != EINTR) {
				client_over(client);
				return;
			}
			done += written < 0 ? 0 : written;
		}
	}
}

/* what is to be written, then what comes next */
static void client_turn(struct cri_client *client)
{
	static unsigned char buf[65536];
	client_write(client);
	if (client->fd < 0)
		return;
	struct pollfd poll_fd = { .fd = client->fd, .events = POLLIN };
	assert_int_equal(poll(&poll_fd, 1, PATIENCE), 1);
	ssize_t n = recv(client->fd, buf, sizeof(buf), 0);
	if (n <= 0)
		client_over(client);
	else
		assert_int_equal(ck_h2_feed(client->h2, buf, (size_t)n, NULL), 0);
	client_write(client);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct ck_h2_header header(const char *name, const char *value)
{
	return (struct ck_h2_header){ name, value, strlen(name), strlen(value) };
}

void cri_start(struct cri_client *client, struct cri_call *call, const char *rpc,
	       struct ck_bytes *request, const char *timeout)
{
	char path[128];
	*call = (struct cri_call){ .client = client, .reader.max = CK_LIST_MAX + (1u << 20) };
	snprintf(path, sizeof(path), "%sruntime.%s.%s%s", client->root, client->version,
		 strchr(rpc, '/') ? "" : "RuntimeService/", rpc);
	struct ck_h2_header headers[] = {
		header(":method", "POST"),
		header(":scheme", "http"),
		header(":path", path),
		header(":authority", "localhost"),
		header("content-type", "application/grpc"),
		header("te", "trailers"),
		header("grpc-timeout", timeout ? timeout : ""),
	};
	if (client->fd >= 0) { /* else it is over before it began */
		assert_int_equal(ck_h2_open(client->h2, headers, timeout ? 7 : 6, &call_handler,
					    call, &call->stream, NULL),
				 0);
		assert_int_equal(ck_grpc_send(call->stream, request ? request->p : NULL,
					      request ? request->len : 0),
				 0);
		ck_h2_stream_end(call->stream);
	}
	if (request)
		ck_bytes_free(request);
	client_write(client);
}

void cri_wait(struct cri_call *call)
{
	while (call->stream)
		client_turn(call->client);
}

void cri_wait_messages(struct cri_call *call, unsigned n)
{
	while (call->stream && call->messages < n)
		client_turn(call->client);
}

void cri_cancel(struct cri_call *call)
{
	ck_h2_stream_reset(CK_TAKE(call->stream), CK_H2_CANCEL);
	client_write(call->client);
}

void cri_end(struct cri_call *call)
{
	if (call->stream)
		cri_cancel(call);
	ck_grpc_reader_fini(&call->reader);
	ck_grpc_status_fini(&call->status);
	ck_bytes_free(&call->reply);
}

int cri_do(struct cri_client *client, const char *rpc, struct ck_bytes *request,
	   struct ck_bytes *ret_reply)
{
	struct cri_call call;
	cri_start(client, &call, rpc, request, NULL);
	cri_wait(&call);
	int code = call.answered ? call.status.code : -1;
	if (ret_reply)
		*ret_reply = call.reply, call.reply = (struct ck_bytes){ 0 };
	cri_end(&call);
	return code;
}

int cri_do_id(struct cri_client *client, const char *rpc, const char *id)
{
	struct ck_bytes request = { 0 };
	put_text(&request, 1, id);
	return cri_do(client, rpc, &request, NULL);
}

/* ---- looking into a message ------------------------------------------------------------------ */

/* the field at @path (its number is 0 if it is not there), and how many there are like it */
static unsigned look(const struct ck_bytes *message, const char *path,
		     struct ck_wire_field *ret_field)
{
	struct ck_wire_field inside = { .data = message->p, .len = message->len }, field;
	for (;;) {
		char *end;
		unsigned long number = strtoul(path, &end, 10),
			      index = *end == '#' ? strtoul(end + 1, &end, 10) : 0;
		struct ck_wire wire = ck_wire_begin(inside.data, inside.len);
		unsigned n = 0;
		int r;
		*ret_field = (struct ck_wire_field){ .number = 0 };
		while ((r = ck_wire_next(&wire, &field, NULL)) > 0)
			if (field.number == number && n++ == index)
				*ret_field = field;
		assert_int_equal(r, 0);
		if (!*end)
			return n;
		if (!ret_field->number)
			return 0;
		inside = *ret_field;
		path = end + 1;
	}
}

bool cri_has(const struct ck_bytes *message, const char *path)
{
	struct ck_wire_field field;
	look(message, path, &field);
	return field.number;
}

unsigned cri_count(const struct ck_bytes *message, const char *path)
{
	struct ck_wire_field field;
	return look(message, path, &field);
}

uint64_t cri_number(const struct ck_bytes *message, const char *path)
{
	struct ck_wire_field field;
	look(message, path, &field);
	return field.value;
}

const char *cri_text(const struct ck_bytes *message, const char *path)
{
	static char texts[256][1024];
	static unsigned next;
	char *text = texts[next++ % CK_COUNT(texts)];
	struct ck_wire_field field;
	look(message, path, &field);
	snprintf(text, sizeof(texts[0]), "%.*s", (int)field.len,
		 field.data ? (const char *)field.data : "");
	return text;
}

/* ---- requests -------------------------------------------------------------------------------- */

void cri_pod_config(struct ck_bytes *config, const char *name, unsigned attempt)
{
	struct ck_bytes metadata = { 0 };
	char uid[128];
	snprintf(uid, sizeof(uid), "uid-%s", name);
	put_text(&metadata, 1, name);
	put_text(&metadata, 2, uid);
	put_text(&metadata, 3, "ns");
	put_number(&metadata, 4, attempt);
	put(config, 1, &metadata);
	put_text(config, 3, "/var/log/pods/of-it");
	put_pair(config, 6, "app", name);
	put_pair(config, 6, "io.kubernetes.pod.name", name);
	put_pair(config, 6, "io.kubernetes.pod.namespace", "ns");
	put_pair(config, 6, "io.kubernetes.pod.uid", uid);
	put_pair(config, 7, "an", "annotation");
}

struct ck_bytes cri_run_request(const char *name, unsigned attempt)
{
	struct ck_bytes config = { 0 }, request = { 0 };
	cri_pod_config(&config, name, attempt);
	put(&request, 1, &config);
	return request;
}

struct ck_bytes cri_create_request(const char *sandbox_id, const char *pod_name, const char *name,
				   unsigned attempt)
{
	struct ck_bytes metadata = { 0 }, image = { 0 }, config = { 0 }, pod = { 0 },
			request = { 0 };
	put_text(&request, 1, sandbox_id);
	put_text(&metadata, 1, name);
	put_number(&metadata, 2, attempt);
	put(&config, 1, &metadata);
	put_text(&image, 1, "busybox");
	put(&config, 2, &image);
	put_pair(&config, 9, "io.kubernetes.container.name", name);
	put_pair(&config, 9, "io.kubernetes.pod.name", pod_name);
	put_text(&config, 11, "main/0.log");
	put(&request, 2, &config);
	cri_pod_config(&pod, pod_name, 0);
	put(&request, 3, &pod);
	return request;
}

static const char *made(struct cri_client *client, const char *rpc, struct ck_bytes *request)
{
	struct ck_bytes reply;
	assert_int_equal(cri_do(client, rpc, request, &reply), CK_GRPC_OK);
	const char *id = cri_text(&reply, "1");
	ck_bytes_free(&reply);
	assert_int_equal(strlen(id), 64);
	return id;
}

const char *cri_run(struct cri_client *client, const char *name)
{
	struct ck_bytes request = cri_run_request(name, 0);
	return made(client, "RunPodSandbox", &request);
}

const char *cri_create(struct cri_client *client, const char *sandbox_id, const char *pod_name,
		       const char *name)
{
	struct ck_bytes request = cri_create_request(sandbox_id, pod_name, name, 0);
	return made(client, "CreateContainer", &request);
}
