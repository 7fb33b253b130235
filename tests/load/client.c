/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include "tests/unit/cri-build.h"
#include "src/base/wire.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "tests/daemon/world.h"
#include "tests/load/load.h"

#define LOOK_AGAIN (2 * LOAD_MS) /* deadlines are kept to that */
#define PATIENCE   (60 * LOAD_S) /* for one call of which the test waits for the end */

static struct load_client *clients;

/* ---- a call ---------------------------------------------------------------------------------- */

static void call_over(struct load_call *call)
{
	call->stream = NULL;
	call->ended = measure_now();
	DL_DELETE(call->client->calls, call);
	call->client->open--;
	if (call->over)
		call->over(call);
}

static void on_headers(struct ck_h2_stream *stream, const struct ck_h2_header *headers, size_t n,
		       void *userdata)
{
	struct load_call *call = userdata;
	struct ck_grpc_status status = { 0 };
	(void)stream;
	if (ck_grpc_status_read(headers, n, &status) > 0) {
		call->code = status.code;
		snprintf(call->text, sizeof(call->text), "%s",
			 status.message ? status.message : "");
	}
	ck_grpc_status_fini(&status);
}

static void on_data(struct ck_h2_stream *stream, const unsigned char *bytes, size_t n,
		    void *userdata)
{
	struct load_call *call = userdata;
	struct ck_error err;
	call->received += n;
	if (!call->client->hoards)
		ck_h2_stream_consume(stream, n);
	for (size_t at = 0, used; at < n; at += used) {
		int r = ck_grpc_read(&call->reader, bytes + at, n - at, &used, &err);
		measure_must(r >= 0, "an answer: %s", err.text);
		if (r == 0)
			continue;
		call->messages++;
		struct ck_bytes before = call->reply; /* its room is used for the next */
		call->reply = call->reader.message;
		before.len = 0;
		call->reader.message = before;
	}
}

static void on_closed(struct ck_h2_stream *stream, uint32_t error, void *userdata)
{
	struct load_call *call = userdata;
	(void)stream;
	call->error = error;
	call_over(call);
}

static const struct ck_h2_handler call_handler = { .headers = on_headers,
						   .data = on_data,
						   .closed = on_closed };

static struct ck_h2_header header(const char *name, const char *value)
{
	return (struct ck_h2_header){ name, value, strlen(name), strlen(value) };
}

void load_call(struct load_client *client, struct load_call *call, const char *rpc,
	       const void *request, size_t len, uint64_t timeout)
{
	char path[128], text[CK_GRPC_TIMEOUT];
	struct ck_error err;
	snprintf(path, sizeof(path), "/runtime.v1.RuntimeService/%s", rpc);
	const struct ck_h2_header headers[] = {
		header(":method", "POST"),
		header(":scheme", "http"),
		header(":path", path),
		header(":authority", "localhost"),
		header("content-type", "application/grpc"),
		header("user-agent", "grpc-go/1.58.3"),
		header("te", "trailers"),
		header("grpc-timeout", timeout ? ck_grpc_timeout_print(timeout, text) : ""),
	};
	call->client = client;
	call->reader.max = CK_LIST_MAX + (1u << 20);
	call->reader.message.len = call->reply.len = 0;
	call->received = call->messages = 0;
	call->code = -1;
	call->error = 0;
	call->text[0] = '\0';
	call->began = measure_now();
	call->deadline = timeout ? call->began + timeout : UINT64_MAX;
	int r = ck_h2_open(client->h2, headers, CK_COUNT(headers) - !timeout, &call_handler, call,
			   &call->stream, &err);
	measure_must(r == 0, "%s: %s", rpc, err.text);
	measure_must(ck_grpc_send(call->stream, request, len) == 0, "no memory");
	ck_h2_stream_end(call->stream);
	DL_APPEND(client->calls, call);
	client->open++;
}

void load_cancel(struct load_call *call)
{
	void (*over)(struct load_call *) = call->over;
	if (!call->stream)
		return;
	ck_h2_stream_reset(call->stream, CK_H2_CANCEL);
	call->over = NULL;
	call_over(call);
	call->over = over;
}

void load_call_fini(struct load_call *call)
{
	load_cancel(call);
	ck_grpc_reader_fini(&call->reader);
	ck_bytes_free(&call->reply);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void on_draining(struct ck_h2 *h2, void *userdata)
{
	(void)h2;
	((struct load_client *)userdata)->draining = true;
}

void load_open(struct load_client *client, const char *path)
{
	static const struct ck_h2_owner owner = { .draining = on_draining };
	struct ck_error err;
	*client = (struct load_client){ .fd = ck_unix_connect(path, &err) };
	measure_must(client->fd >= 0, "%s", err.text);
	int r = ck_h2_new(CK_H2_CLIENT, CK_STREAM_WINDOW, &owner, client, &client->h2, &err);
	measure_must(r == 0, "%s", err.text);
	LL_PREPEND(clients, client);
}

static void client_over(struct load_client *client)
{
	close(client->fd);
	client->fd = -1;
	ck_h2_free(CK_TAKE(client->h2)); /* calls hear closed() */
	ck_bytes_free(&client->rest);
}

void load_forget_clients(void)
{
	clients = NULL;
}

void load_close(struct load_client *client)
{
	if (client->fd >= 0)
		client_over(client);
	LL_DELETE(clients, client);
}

/* false: the socket takes no more now */
static bool write_some(struct load_client *client, const unsigned char *p, size_t n, size_t *done)
{
	while (*done < n) {
		ssize_t written =
			send(client->fd, p + *done, n - *done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (written < 0 && errno == EAGAIN)
			return false;
		if (written < 0) { /* the reading side tells why */
			*done = n;
			return false;
		}
		*done += (size_t)written;
	}
	return true;
}

void load_flush(struct load_client *client)
{
	const unsigned char *p;
	struct ck_error err;
	ptrdiff_t n;
	if (client->fd < 0)
		return;
	if (client->rest.len) {
		if (!write_some(client, client->rest.p, client->rest.len, &client->written))
			return;
		client->rest.len = client->written = 0;
	}
	while ((n = ck_h2_next(client->h2, &p, &err)) != 0) {
		size_t done = 0;
		measure_must(n > 0, "%s", err.text);
		if (write_some(client, p, (size_t)n, &done))
			continue;
		measure_must(ck_bytes_add(&client->rest, p + done, (size_t)n - done) == 0,
			     "no memory");
		return;
	}
}

static void client_read(struct load_client *client)
{
	static unsigned char buf[65536];
	struct ck_error err;
	ssize_t n = recv(client->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		client_over(client);
		return;
	}
	measure_must(ck_h2_feed(client->h2, buf, (size_t)n, &err) == 0, "%s", err.text);
	load_flush(client);
}

static void client_expire(struct load_client *client, uint64_t now)
{
	struct load_call *call, *next;
	client->looked = now;
	DL_FOREACH_SAFE(client->calls, call, next) {
		if (call->deadline > now)
			continue;
		ck_h2_stream_reset(call->stream, CK_H2_CANCEL);
		call->code = CK_GRPC_DEADLINE_EXCEEDED;
		call_over(call);
	}
}

void load_turn(int ms)
{
	struct pollfd fds[64];
	struct load_client *client, *next;
	nfds_t n = 0;
	LL_FOREACH(clients, client) {
		load_flush(client);
		if (client->fd < 0)
			continue;
		measure_must(n < CK_COUNT(fds), "too many connections");
		short events =
			(short)((client->deaf ? 0 : POLLIN) | (client->rest.len ? POLLOUT : 0));
		fds[n++] = (struct pollfd){ .fd = client->fd, .events = events };
	}
	if (ms)
		poll(fds, n, ms);
	uint64_t now = ms ? measure_now() : 0;
	LL_FOREACH_SAFE(clients, client, next) {
		if (client->fd >= 0 && !client->deaf)
			client_read(client);
		if (client->fd >= 0 && now - client->looked >= LOOK_AGAIN && ms)
			client_expire(client, now);
	}
}

void load_wait(const struct load_call *call)
{
	uint64_t until = measure_now() + PATIENCE;
	while (call->stream) {
		load_turn(2);
		measure_must(measure_now() < until, "a call has not ended");
	}
}

int load_do(struct load_client *client, struct load_call *call, const char *rpc,
	    const void *request, size_t len)
{
	load_call(client, call, rpc, request, len, 0);
	load_wait(call);
	return call->code;
}

/* a message with field 1 written anew, and all its other fields */
static struct ck_bytes with_first(struct ck_wire wire, const void *first, size_t len)
{
	struct ck_bytes out = { 0 };
	struct ck_wire_field field;
	int r = ck_bytes_field(&out, 1, first, len);
	for (const unsigned char *from = wire.p;
	     r >= 0 && (r = ck_wire_next(&wire, &field, NULL)) > 0; from = wire.p)
		if (field.number != 1)
			r = ck_bytes_add(&out, from, (size_t)(wire.p - from));
	measure_must(r >= 0, "no memory");
	return out;
}

struct ck_bytes load_pod(unsigned long i)
{
	static struct pb recorded;
	struct pb metadata = { .len = 0 };
	struct ck_wire_field config = { .len = 0 };
	char name[32], uid[48];
	if (!recorded.len)
		load_recorded("002-RunPodSandbox-web.bin", &recorded);
	struct ck_wire wire = ck_wire_begin(recorded.bytes, recorded.len);
	measure_must(ck_wire_next(&wire, &config, NULL) > 0 && config.number == 1,
		     "a recorded request begins with its configuration");
	snprintf(name, sizeof(name), "pod-%lu", i);
	snprintf(uid, sizeof(uid), "0f9d8c7b-0000-4000-8000-%012lu", i);
	pb_text(&metadata, 1, name);
	pb_text(&metadata, 2, uid);
	pb_text(&metadata, 3, "shop");
	CK_AUTO_BYTES struct ck_bytes inner =
		with_first(ck_wire_begin(config.data, config.len), metadata.bytes, metadata.len);
	return with_first(ck_wire_begin(recorded.bytes, recorded.len), inner.p, inner.len);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* of a process that does not want to be looked at (crikeepd) smaps_rollup needs a capability;
 * status is open to all, and may lag behind by some dozen pages */
struct load_memory load_memory(pid_t pid)
{
	struct load_memory memory = { 0 };
	unsigned long rss = 0, anonymous = 0;
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	measure_must(f, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "VmHWM: %lu", &memory.most);
		sscanf(line, "VmRSS: %lu", &memory.resident);
		sscanf(line, "RssAnon: %lu", &memory.anonymous);
	}
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Rss: %lu", &rss);
		sscanf(line, "Anonymous: %lu", &anonymous);
	}
	if (f)
		fclose(f);
	if (rss) {
		memory.resident = rss;
		memory.anonymous = anonymous;
	}
	return memory;
}

/* on a busy machine a request may come too late to be begun, and another one is made */
void load_keep(const struct world *w, unsigned n)
{
	struct load_call *call = calloc(n, sizeof(*call));
	struct load_client client;
	unsigned long pod = 0;
	measure_must(call, "no memory");
	load_open(&client, w->cri);
	for (unsigned have = 0; have < n;) {
		for (unsigned i = have; i < n; i++) {
			struct ck_bytes request = load_pod(pod++);
			load_call(&client, &call[i], "RunPodSandbox", request.p, request.len,
				  LOAD_S);
			ck_bytes_free(&request);
		}
		for (unsigned i = have; i < n; i++)
			load_wait(&call[i]);
		while (world_metric(w, "crikeep_entries{kind=\"sandbox\",state=\"creating\"}") > 0)
			nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		have = (unsigned)world_metric(w,
					      "crikeep_entries{kind=\"sandbox\",state=\"kept\"}");
	}
	for (unsigned i = 0; i < n; i++)
		load_call_fini(&call[i]);
	free(call);
	load_close(&client);
}
