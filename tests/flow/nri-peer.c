/* SPDX-License-Identifier: Apache-2.0 */
/* The wire as facts of containerd/nri, pkg/net/multiplex and containerd/ttrpc tell it; the messages
 * from pkg/api/api.proto. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/flow/nri-peer.h"
#include "src/base/wire.h"

#define PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"

enum {
	TO_PLUGIN = 1,  /* mux connections: the runtime calls here */
	TO_RUNTIME = 2, /* and the plugin here */
	REQUEST = 1,
	RESPONSE = 2,
	GO_BUFFER = 4096,
	FRAME_MOST = 4194314,
	UNIMPLEMENTED = 12,
};

static const struct {
	const char *name;
	bool later; /* came with v0.12: an old plugin wants StateChange */
} calls[PLUGIN_CALLS] = {
	[CK_NRI_RUN_POD_SANDBOX] = { "RunPodSandbox", true },
	[CK_NRI_STOP_POD_SANDBOX] = { "StopPodSandbox", true },
	[CK_NRI_REMOVE_POD_SANDBOX] = { "RemovePodSandbox", true },
	[CK_NRI_CREATE_CONTAINER] = { "CreateContainer", false },
	[CK_NRI_POST_CREATE_CONTAINER] = { "PostCreateContainer", true },
	[CK_NRI_START_CONTAINER] = { "StartContainer", true },
	[CK_NRI_POST_START_CONTAINER] = { "PostStartContainer", true },
	[CK_NRI_UPDATE_CONTAINER] = { "UpdateContainer", false },
	[CK_NRI_POST_UPDATE_CONTAINER] = { "PostUpdateContainer", true },
	[CK_NRI_STOP_CONTAINER] = { "StopContainer", false },
	[CK_NRI_REMOVE_CONTAINER] = { "RemoveContainer", true },
	[CK_NRI_UPDATE_POD_SANDBOX] = { "UpdatePodSandbox", false },
	[CK_NRI_POST_UPDATE_POD_SANDBOX] = { "PostUpdatePodSandbox", true },
	[CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT] = { "ValidateContainerAdjustment", false },
	[PLUGIN_CONFIGURE] = { "Configure", false },
	[PLUGIN_SYNCHRONIZE] = { "Synchronize", false },
	[PLUGIN_SHUTDOWN] = { "Shutdown", false },
};

static void wrong(struct plugin *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void wrong(struct plugin *p, const char *format, ...)
{
	va_list args;
	if (p->wrong[0])
		return; /* the first one tells most */
	va_start(args, format);
	vsnprintf(p->wrong, sizeof(p->wrong), format, args);
	va_end(args);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void *room_for(void *items, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return items;
	*room = *room ? 2 * *room : 16;
	items = realloc(items, *room * size);
	if (!items)
		abort();
	return items;
}

static void add(struct plugin_buffer *b, const void *bytes, size_t len)
{
	if (b->room - b->len < len) {
		b->room = 2 * b->room + len + 64;
		b->p = realloc(b->p, b->room);
		if (!b->p)
			abort();
	}
	if (len)
		memcpy(b->p + b->len, bytes, len);
	b->len += len;
}

static void take(struct plugin_buffer *b, size_t n)
{
	b->len -= n;
	if (b->len)
		memmove(b->p, b->p + n, b->len);
}

static unsigned char *copy(const void *bytes, size_t len)
{
	unsigned char *p = malloc(len + 1);
	if (!p)
		abort();
	if (len)
		memcpy(p, bytes, len);
	p[len] = '\0';
	return p;
}

static void put32(unsigned char *p, uint32_t value)
{
	p[0] = (unsigned char)(value >> 24), p[1] = (unsigned char)(value >> 16);
	p[2] = (unsigned char)(value >> 8), p[3] = (unsigned char)value;
}

static uint32_t get32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void plugin_varint(struct plugin_buffer *to, uint64_t value)
{
	do {
		unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		add(to, &byte, 1);
	} while (value >>= 7);
}

void plugin_number(struct plugin_buffer *to, uint32_t field, uint64_t value)
{
	plugin_varint(to, field << 3);
	plugin_varint(to, value);
}

void plugin_bytes(struct plugin_buffer *to, uint32_t field, const void *bytes, size_t len)
{
	plugin_varint(to, field << 3 | 2);
	plugin_varint(to, len);
	add(to, bytes, len);
}

void plugin_text(struct plugin_buffer *to, uint32_t field, const char *text)
{
	plugin_bytes(to, field, text, strlen(text));
}

void plugin_bytes_free(struct plugin_buffer *bytes)
{
	free(bytes->p);
	*bytes = (struct plugin_buffer){ .p = NULL };
}

/* the last field @number of a message; false: it is not there */
static bool field_of(const void *message, size_t len, uint32_t number,
		     struct ck_wire_field *ret_field)
{
	struct ck_wire wire = ck_wire_begin(message, len);
	struct ck_wire_field field;
	bool found = false;
	while (ck_wire_next(&wire, &field, NULL) == 1)
		if (field.number == number) {
			*ret_field = field;
			found = true;
		}
	return found;
}

static void text_of(const void *message, size_t len, uint32_t number, char *text, size_t size)
{
	struct ck_wire_field f;
	text[0] = '\0';
	if (field_of(message, len, number, &f) && f.type == CK_WIRE_BYTES)
		snprintf(text, size, "%.*s", (int)(f.len < size ? f.len : size - 1),
			 (const char *)f.data);
}

static int64_t number_of(const void *message, size_t len, uint32_t number)
{
	struct ck_wire_field f;
	return field_of(message, len, number, &f) && f.type == CK_WIRE_VARINT ? (int64_t)f.value
									      : 0;
}

/* ---- out ------------------------------------------------------------------------------------- */

void plugin_write(struct plugin *p, const void *bytes, size_t len)
{
	add(&p->out, bytes, len);
}

void plugin_frame(struct plugin *p, uint32_t conn, uint32_t length, const void *bytes, size_t len)
{
	unsigned char header[8];
	put32(header, conn);
	put32(header + 4, length);
	add(&p->out, header, sizeof(header));
	add(&p->out, bytes, len);
}

/* a ttrpc message, as Go's writer cuts it, or in pieces of p->cut */
static void message_out(struct plugin *p, uint32_t conn, uint32_t stream, unsigned type,
			const struct plugin_buffer *data)
{
	struct plugin_buffer message = { .p = NULL };
	unsigned char header[10];
	put32(header, (uint32_t)data->len);
	put32(header + 4, stream);
	header[8] = (unsigned char)type;
	header[9] = 0;
	add(&message, header, sizeof(header));
	add(&message, data->p, data->len);
	for (size_t at = 0, n; at < message.len; at += n) {
		size_t most = p->cut ? p->cut : at == 0 ? GO_BUFFER : FRAME_MOST;
		n = message.len - at < most ? message.len - at : most;
		plugin_frame(p, conn, (uint32_t)n, message.p + at, n);
	}
	plugin_bytes_free(&message);
}

uint32_t plugin_ask(struct plugin *p, const char *service, const char *method, const void *payload,
		    size_t len)
{
	struct plugin_buffer request = { .p = NULL };
	uint32_t stream = p->next_stream;
	p->next_stream += 2;
	plugin_text(&request, 1, service);
	plugin_text(&request, 2, method);
	if (len)
		plugin_bytes(&request, 3, payload, len);
	if (!strcmp(method, "RegisterPlugin"))
		plugin_number(&request, 4, UINT64_C(5000000000));
	message_out(p, TO_RUNTIME, stream, REQUEST, &request);
	plugin_bytes_free(&request);
	return stream;
}

void plugin_register(struct plugin *p)
{
	struct plugin_buffer message = { .p = NULL };
	if (p->base[0])
		plugin_text(&message, 1, p->base);
	if (p->index[0])
		plugin_text(&message, 2, p->index);
	if (p->version && !p->old)
		plugin_text(&message, 3, p->version);
	plugin_ask(p, PLUGIN_RUNTIME_SERVICE, "RegisterPlugin", message.p, message.len);
	plugin_bytes_free(&message);
}

static void status_out(struct plugin *p, uint32_t stream, int code, const char *text)
{
	struct plugin_buffer status = { .p = NULL }, response = { .p = NULL };
	plugin_number(&status, 1, (uint64_t)code);
	if (text && *text)
		plugin_text(&status, 2, text);
	plugin_bytes(&response, 1, status.p, status.len);
	message_out(p, TO_PLUGIN, stream, RESPONSE, &response);
	plugin_bytes_free(&status);
	plugin_bytes_free(&response);
}

static void response_out(struct plugin *p, uint32_t stream, const void *payload, size_t len)
{
	struct plugin_buffer response = { .p = NULL };
	if (len)
		plugin_bytes(&response, 2, payload, len);
	message_out(p, TO_PLUGIN, stream, RESPONSE, &response);
	plugin_bytes_free(&response);
}

/* what a stub answers by itself, with nothing said in a handler */
static void agree(struct plugin *p, const struct plugin_heard *heard)
{
	struct plugin_buffer payload = { .p = NULL };
	if (heard->call == PLUGIN_CONFIGURE) {
		if (p->mask)
			plugin_number(&payload, 2, (uint64_t)(int64_t)(int32_t)p->mask);
		if (p->fail_request || p->keep_connected) {
			const unsigned char policy[] = { 1 << 3, p->fail_request, 2 << 3,
							 p->keep_connected };
			plugin_bytes(&payload, 3, policy, sizeof(policy));
		}
		p->configured = true;
	}
	if (heard->call == PLUGIN_SYNCHRONIZE) {
		bool more = number_of(heard->payload, heard->len, 3);
		if (more && (!p->old || p->knows_pieces))
			plugin_number(&payload, 2, 1);
		if (!more)
			p->synchronized = true;
	}
	response_out(p, heard->stream, payload.p, payload.len);
	plugin_bytes_free(&payload);
}

static void write_now(struct plugin *p);

void plugin_close(struct plugin *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	p->out.len = 0;
}

void plugin_shut(struct plugin *p)
{
	write_now(p);
	if (p->fd >= 0)
		shutdown(p->fd, SHUT_WR);
}

static void answer(struct plugin *p, struct plugin_heard *heard, const struct plugin_rule *rule)
{
	size_t before = p->out.len;
	heard->answered = true;
	if (p->in_flight)
		p->in_flight--;
	switch (rule->does) {
	case PLUGIN_AGREES:
		if (rule->reply)
			response_out(p, heard->stream, rule->reply, rule->len);
		else
			agree(p, heard);
		break;
	case PLUGIN_FAILS:
		status_out(p, heard->stream, rule->code, rule->text);
		break;
	case PLUGIN_HOLDS:
		heard->answered = false;
		p->in_flight++;
		break;
	case PLUGIN_WRITES:
		plugin_write(p, rule->reply, rule->len);
		break;
	case PLUGIN_BREAKS_OFF:
		agree(p, heard);
		p->out.len -= (p->out.len - before) / 2;
		write_now(p);
		plugin_close(p);
		break;
	case PLUGIN_CLOSES:
		write_now(p);
		plugin_close(p);
		break;
	case PLUGIN_SHUTS:
		plugin_shut(p);
		break;
	}
}

static void follow(struct plugin *p, struct plugin_heard *heard)
{
	struct plugin_rule *rule = &p->rules[heard->call], now = *rule;
	if (now.times && --rule->times == 0)
		*rule = (struct plugin_rule){ .does = PLUGIN_AGREES };
	answer(p, heard, &now);
}

size_t plugin_release(struct plugin *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->heard_n && p->fd >= 0; i++)
		if (!p->heard[i].answered) {
			follow(p, &p->heard[i]);
			n += p->heard[i].answered;
		}
	return n;
}

/* ---- in -------------------------------------------------------------------------------------- */

static void remember_items(struct plugin *p, const struct plugin_heard *heard)
{
	struct ck_wire wire = ck_wire_begin(heard->payload, heard->len);
	struct ck_wire_field field;
	while (ck_wire_next(&wire, &field, NULL) == 1) {
		if (field.number != 1 && field.number != 2)
			continue;
		p->items = room_for(p->items, p->items_n, &p->items_room, sizeof(*p->items));
		struct plugin_item *item = &p->items[p->items_n++];
		*item = (struct plugin_item){ .kind = field.number == 1 ? CK_SANDBOX : CK_CONTAINER,
					      .at = heard->at,
					      .len = field.len };
		item->payload = copy(field.data, field.len);
		text_of(field.data, field.len, 1, item->id, sizeof(item->id));
		if (item->kind == CK_CONTAINER)
			text_of(field.data, field.len, 2, item->pod, sizeof(item->pod));
	}
	p->chunks++;
	if (!number_of(heard->payload, heard->len, 3))
		p->lists++;
}

static void remember_configure(struct plugin *p, const struct plugin_heard *heard)
{
	text_of(heard->payload, heard->len, 1, p->config, sizeof(p->config));
	text_of(heard->payload, heard->len, 2, p->runtime_name, sizeof(p->runtime_name));
	text_of(heard->payload, heard->len, 3, p->runtime_version, sizeof(p->runtime_version));
	text_of(heard->payload, heard->len, 6, p->runtime_nri, sizeof(p->runtime_nri));
	p->registration_timeout = number_of(heard->payload, heard->len, 4);
	p->request_timeout = number_of(heard->payload, heard->len, 5);
}

/* the ids in an event's message: field 1 is the pod, 2 the container; in StateChange they are 2 and
 * 3 */
static void read_ids(struct plugin_heard *heard, unsigned pod_field)
{
	bool container =
		heard->call >= CK_NRI_CREATE_CONTAINER && heard->call <= CK_NRI_REMOVE_CONTAINER;
	struct ck_wire_field field;
	if (field_of(heard->payload, heard->len, pod_field, &field) && field.type == CK_WIRE_BYTES)
		text_of(field.data, field.len, 1, heard->pod, sizeof(heard->pod));
	if (container && field_of(heard->payload, heard->len, pod_field + 1, &field) &&
	    field.type == CK_WIRE_BYTES)
		text_of(field.data, field.len, 1, heard->container, sizeof(heard->container));
}

static int call_named(const char *method)
{
	for (int i = 0; i < PLUGIN_CALLS; i++)
		if (calls[i].name && !strcmp(calls[i].name, method))
			return i;
	return 0;
}

static void requested(struct plugin *p, uint32_t stream, const unsigned char *data, size_t len)
{
	static uint64_t clock; /* of all plugins, which may have threads of their own */
	struct plugin_heard heard = { .stream = stream,
				      .at = __atomic_add_fetch(&clock, 1, __ATOMIC_RELAXED) };
	struct ck_wire_field field;
	char service[80], method[80], text[100];

	text_of(data, len, 1, service, sizeof(service));
	text_of(data, len, 2, method, sizeof(method));
	heard.timeout = number_of(data, len, 4);
	heard.call = call_named(method);
	heard.state_change = !strcmp(method, "StateChange");
	if (strcmp(service, PLUGIN_SERVICE) || (!heard.call && !heard.state_change))
		wrong(p, "a call of %s/%s", service, method);
	if (heard.call && p->old && calls[heard.call].later) {
		p->unimplemented++;
		snprintf(text, sizeof(text), "method %s", method);
		status_out(p, stream, UNIMPLEMENTED, text);
		return;
	}
	if (field_of(data, len, 3, &field) && field.type == CK_WIRE_BYTES) {
		heard.payload = copy(field.data, field.len);
		heard.len = field.len;
	} else {
		heard.payload = copy(NULL, 0);
	}
	if (heard.state_change)
		heard.call = (int)number_of(heard.payload, heard.len, 1);
	if (heard.call <= 0 || heard.call >= PLUGIN_CALLS || !calls[heard.call].name) {
		wrong(p, "event %d", heard.call);
		free(heard.payload);
		return;
	}
	if (heard.state_change && !calls[heard.call].later)
		wrong(p, "%s as StateChange", calls[heard.call].name);
	if (heard.call != PLUGIN_CONFIGURE && !p->configured)
		wrong(p, "%s before Configure was answered", method);
	if (heard.call < PLUGIN_CONFIGURE) {
		if (!p->synchronized)
			wrong(p, "%s before Synchronize was answered", method);
		if (!(p->mask ? p->mask >> (heard.call - 1) & 1 : 1))
			wrong(p, "%s without a subscription", method);
		read_ids(&heard, heard.state_change ? 2 : 1);
	}
	if (heard.call != PLUGIN_SHUTDOWN && heard.timeout <= 0)
		wrong(p, "%s with a timeout of %lld ns", method, (long long)heard.timeout);
	p->in_flight++;
	if (p->in_flight > p->in_flight_most)
		p->in_flight_most = p->in_flight;
	if (p->in_flight > 1 && heard.call != PLUGIN_SHUTDOWN)
		wrong(p, "%s while another call was not answered", method);
	if (heard.call == PLUGIN_CONFIGURE)
		remember_configure(p, &heard);
	if (heard.call == PLUGIN_SYNCHRONIZE)
		remember_items(p, &heard);
	p->heard = room_for(p->heard, p->heard_n, &p->heard_room, sizeof(*p->heard));
	p->heard[p->heard_n++] = heard;
	if (p->called)
		p->called(p, &p->heard[p->heard_n - 1], p->userdata);
	follow(p, &p->heard[p->heard_n - 1]);
}

static void responded(struct plugin *p, uint32_t stream, const unsigned char *data, size_t len)
{
	struct plugin_answer answered = { .stream = stream };
	struct ck_wire_field field;
	if (!(stream & 1) || stream >= p->next_stream || plugin_answer_to(p, stream))
		wrong(p, "an answer to call %u, which was not made or was answered", stream);
	if (field_of(data, len, 1, &field) && field.type == CK_WIRE_BYTES) {
		answered.code = (int)number_of(field.data, field.len, 1);
		text_of(field.data, field.len, 2, answered.text, sizeof(answered.text));
	}
	bool has = field_of(data, len, 2, &field) && field.type == CK_WIRE_BYTES;
	answered.payload = copy(has ? field.data : NULL, has ? field.len : 0);
	answered.len = has ? field.len : 0;
	p->answers = room_for(p->answers, p->answers_n, &p->answers_room, sizeof(*p->answers));
	p->answers[p->answers_n++] = answered;
	if (p->answers_n == 1 && stream == 1 && answered.code == 0)
		p->registered = true;
}

static void message_in(struct plugin *p, uint32_t conn, const unsigned char *header,
		       const unsigned char *data, size_t len)
{
	uint32_t stream = get32(header + 4);
	unsigned type = header[8], flags = header[9];
	if (flags)
		wrong(p, "flags 0x%x in a message of stream %u", flags, stream);
	if (conn == TO_PLUGIN && type == REQUEST) {
		if (stream != p->last_stream + 2 && !(stream == 1 && p->last_stream == 0))
			wrong(p, "stream %u after %u", stream, p->last_stream);
		p->last_stream = stream;
		requested(p, stream, data, len);
	} else if (conn == TO_RUNTIME && type == RESPONSE) {
		responded(p, stream, data, len);
	} else {
		wrong(p, "type %u on connection %u", type, conn);
	}
}

/* Go's reader has a buffer of 4096 bytes. When it is empty, and at least that much is missing of a
 * message, it reads the next frame straight into the message; a frame that is larger than where it
 * should go is an error that nobody hears of */
static void frame_in(struct plugin *p, uint32_t conn, const unsigned char *bytes, size_t len)
{
	if (conn != TO_PLUGIN && conn != TO_RUNTIME) {
		wrong(p, "a frame of connection %u", conn);
		return;
	}
	struct plugin_buffer *in = &p->conn[conn];
	size_t missing = in->len >= 10 ? 10 + (size_t)get32(in->p) - in->len : 0;
	if (len > (missing >= GO_BUFFER ? missing : GO_BUFFER))
		wrong(p,
		      "a frame of %zu bytes where %zu are missing of a message: Go's side would "
		      "fall silent",
		      len, missing);
	add(in, bytes, len);
	while (p->fd >= 0 && in->len >= 10 && in->len - 10 >= get32(in->p)) {
		size_t data_len = get32(in->p);
		unsigned char *message = copy(in->p, 10 + data_len);
		take(in, 10 + data_len);
		message_in(p, conn, message, message + 10, data_len);
		free(message);
	}
}

static bool trunk_in(struct plugin *p)
{
	bool any = false;
	while (p->fd >= 0 && p->trunk.len >= 8) {
		uint32_t conn = get32(p->trunk.p), len = get32(p->trunk.p + 4);
		if (len > FRAME_MOST)
			wrong(p, "a frame of %u bytes", len);
		if (p->trunk.len - 8 < len)
			break;
		unsigned char *frame = copy(p->trunk.p + 8, len);
		take(&p->trunk, 8 + (size_t)len);
		frame_in(p, conn, frame, len);
		free(frame);
		any = true;
	}
	return any;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static size_t read_now(struct plugin *p)
{
	unsigned char bytes[65536];
	size_t most = p->at_most && p->at_most < sizeof(bytes) ? p->at_most : sizeof(bytes),
	       total = 0;
	for (;;) {
		ssize_t n = p->fd < 0 || p->deaf || p->ended ? -1 : read(p->fd, bytes, most);
		if (n == 0 || (n < 0 && p->fd >= 0 && !p->deaf && !p->ended && errno != EAGAIN &&
			       errno != EINTR)) {
			p->ended = true;
			return total + 1;
		}
		if (n <= 0)
			return total;
		add(&p->trunk, bytes, (size_t)n);
		total += (size_t)n;
		if (p->at_most || (size_t)n < most) /* there is no more now */
			return total;
	}
}

static void write_some(struct plugin *p, size_t most)
{
	while (p->fd >= 0 && p->out.len) {
		size_t n = most && most < p->out.len ? most : p->out.len;
		ssize_t sent = send(p->fd, p->out.p, n, MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			p->out.len = 0; /* nobody is there any more: reading tells */
		if (sent <= 0)
			return;
		take(&p->out, (size_t)sent);
		if (most)
			return;
	}
}

static void write_now(struct plugin *p)
{
	write_some(p, 0);
}

bool plugin_step(struct plugin *p)
{
	if (p->fd < 0)
		return false;
	if (!p->began && !p->mute)
		plugin_register(p);
	p->began = true;
	bool moved = read_now(p) > 0;
	moved = trunk_in(p) || moved;
	size_t waiting = p->out.len;
	write_some(p, p->at_most);
	return moved || p->out.len != waiting;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct plugin *plugin_on(int fd, const char *name)
{
	struct plugin *p = calloc(1, sizeof(*p));
	const char *dash = strchr(name, '-');
	if (!p || !dash)
		abort();
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	snprintf(p->index, sizeof(p->index), "%.*s", (int)(dash - name), name);
	snprintf(p->base, sizeof(p->base), "%s", dash + 1);
	p->fd = fd;
	p->version = "v0.12.5";
	p->mask = 0x1fff;
	p->next_stream = 1;
	return p;
}

struct plugin *plugin_dial(const char *path, const char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || strlen(path) >= sizeof(to.sun_path))
		abort();
	memcpy(to.sun_path, path, strlen(path));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		close(fd);
		return NULL;
	}
	return plugin_on(fd, name);
}

void plugin_free(struct plugin *p)
{
	if (!p)
		return;
	plugin_close(p);
	for (size_t i = 0; i < p->heard_n; i++)
		free(p->heard[i].payload);
	for (size_t i = 0; i < p->items_n; i++)
		free(p->items[i].payload);
	for (size_t i = 0; i < p->answers_n; i++)
		free(p->answers[i].payload);
	free(p->heard);
	free(p->items);
	free(p->answers);
	plugin_bytes_free(&p->trunk);
	plugin_bytes_free(&p->conn[TO_PLUGIN]);
	plugin_bytes_free(&p->conn[TO_RUNTIME]);
	plugin_bytes_free(&p->out);
	free(p);
}

void plugin_rule(struct plugin *p, int call, enum plugin_does does, unsigned times)
{
	p->rules[call] = (struct plugin_rule){ .does = does, .times = times };
}

void plugin_replies(struct plugin *p, int call, const void *reply, size_t len)
{
	p->rules[call] = (struct plugin_rule){ .does = PLUGIN_AGREES, .reply = reply, .len = len };
}

void plugin_fails(struct plugin *p, int call, int code, const char *text)
{
	p->rules[call] = (struct plugin_rule){ .does = PLUGIN_FAILS, .code = code, .text = text };
}

/* ---- looking --------------------------------------------------------------------------------- */

const struct plugin_answer *plugin_answer_to(const struct plugin *p, uint32_t stream)
{
	for (size_t i = 0; i < p->answers_n; i++)
		if (p->answers[i].stream == stream)
			return &p->answers[i];
	return NULL;
}

static const char *subject(const struct plugin_heard *heard)
{
	return heard->container[0] ? heard->container : heard->pod;
}

unsigned plugin_count(const struct plugin *p, int call, const char *id)
{
	unsigned n = 0;
	for (size_t i = 0; i < p->heard_n; i++)
		n += p->heard[i].call == call && (!id || !strcmp(subject(&p->heard[i]), id));
	return n;
}

unsigned plugin_listed(const struct plugin *p, const char *id)
{
	unsigned n = 0;
	for (size_t i = 0; i < p->items_n; i++)
		n += !strcmp(p->items[i].id, id);
	return n;
}

const struct plugin_heard *plugin_last(const struct plugin *p, int call)
{
	for (size_t i = p->heard_n; i-- > 0;)
		if (p->heard[i].call == call)
			return &p->heard[i];
	return NULL;
}

static void tell(char *story, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void tell(char *story, size_t size, const char *format, ...)
{
	size_t n = strlen(story);
	va_list args;
	va_start(args, format);
	vsnprintf(story + n, size - n, format, args);
	va_end(args);
}

const char *plugin_story(const struct plugin *p)
{
	static char story[16384];
	story[0] = '\0';
	for (size_t i = 0; i < p->heard_n; i++) {
		const struct plugin_heard *heard = &p->heard[i];
		const char *gap = story[0] ? " " : "", *blank = "";
		if (heard->call == PLUGIN_CONFIGURE)
			continue;
		tell(story, sizeof(story), "%s%s(", gap, calls[heard->call].name);
		for (size_t k = 0; heard->call == PLUGIN_SYNCHRONIZE && k < p->items_n; k++)
			if (p->items[k].at == heard->at) {
				tell(story, sizeof(story), "%s%s", blank, p->items[k].id);
				blank = " ";
			}
		tell(story, sizeof(story), "%s)", subject(heard));
	}
	return story;
}
