/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection, from its first byte to its last. The plugin registers and is configured. Then it
 * is a recipient, and events are queued for it. It is told which objects exist (synchronize.c), and
 * after that it gets its events (plugin-queue.c).
 *
 *   CONNECTED -> REGISTERED -> LISTING -> SYNCHRONIZING -> READY    any -> CLOSED
 *       '-> REFUSED -> CLOSED
 *
 * While it is SYNCHRONIZING or READY it may be overdue, too.
 *
 * No connection is closed for a reason that passes: a plugin's stub cannot be started again after a
 * failed start.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hooks/nri-int.h"
#include "src/base/duration.h"
#include "src/base/wire.h"

#define READ_MAX    16384 /* bytes read at once: a host's threads may have small stacks */
#define READ_ROUNDS 64    /* reads in a row, while other connections wait */
#define ALL_EVENTS  0x3fffu

static const struct ck_ttrpc_ops ttrpc_ops;

/* ---- begin and end --------------------------------------------------------------------------- */

int ck_plugin_add(struct ck_nri *nri, int fd, int launched, struct ck_plugin **ret_plugin,
		  struct ck_error *err)
{
	struct ck_plugin *plugin = CK_NEW(struct ck_plugin);
	uint64_t now = ck_nri_now(nri);
	if (!plugin || !(plugin->ttrpc = ck_ttrpc_new(&ttrpc_ops, plugin))) {
		free(plugin);
		close(fd);
		return ck_nomem(err);
	}
	plugin->nri = nri;
	plugin->serial = ++nri->serial;
	plugin->launched = launched;
	plugin->fd = fd;
	plugin->child_fd = -1;
	plugin->policy = nri->policy;
	plugin->since = now;
	plugin->due = now + nri->registration_timeout;
	plugin->call_due = CK_NRI_FOREVER;
	if (launched >= 0) {
		snprintf(plugin->name, sizeof(plugin->name), "%s", nri->launched[launched].name);
		plugin->policy = ck_plugin_policy(nri, plugin->name);
	}
	int r = ck_nri_watch(nri, fd, EPOLLIN, plugin, false);
	if (r < 0) {
		ck_ttrpc_free(plugin->ttrpc);
		free(plugin);
		close(fd);
		return ck_fail(err, -r, "watch a plugin's connection");
	}
	ck_plugins_add(plugin);
	nri->changed = true;
	*ret_plugin = plugin;
	return 0;
}

static void plugin_free(struct ck_nri *nri, struct ck_plugin *plugin)
{
	ck_plugins_remove(plugin);
	ck_synchronize_fini(plugin);
	ck_recipients_plugin_gone(nri, plugin);
	ck_plugin_lose_events(plugin);
	ck_ttrpc_free(plugin->ttrpc);
	free(plugin);
}

void ck_plugins_free_closed(struct ck_nri *nri)
{
	while (nri->plugin_closed) {
		nri->plugin_closed = false;
		for (struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next) {
			if (plugin->state != CK_PLUGIN_CLOSED)
				continue;
			plugin_free(nri, plugin);
			nri->plugin_closed = true; /* the list has changed: look again */
			break;
		}
	}
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void read_in(struct ck_plugin *plugin)
{
	unsigned char bytes[READ_MAX];
	struct ck_error err;
	for (int round = 0; round < READ_ROUNDS && plugin->state != CK_PLUGIN_CLOSED; round++) {
		ssize_t n = recv(plugin->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n > 0) {
			if (ck_ttrpc_feed(plugin->ttrpc, bytes, (size_t)n, &err) < 0)
				ck_plugin_close(plugin, CK_LOG_ERROR, "%s", err.text);
			if ((size_t)n < sizeof(bytes))
				break; /* that was all; else the socket is readable again */
		} else if (n == 0) {
			ck_plugin_close(
				plugin, plugin->launched >= 0 ? CK_LOG_WARNING : CK_LOG_INFO, "%s",
				plugin->launched >= 0 ? "it has ended, and is not launched again"
						      : "it has closed the connection");
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			ck_plugin_close(plugin, CK_LOG_WARNING, "its connection broke: %s",
					strerror(errno));
		}
	}
}

void ck_plugin_io(struct ck_plugin *plugin, uint32_t events)
{
	if (plugin->state == CK_PLUGIN_CLOSED)
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_in(plugin);
	ck_plugin_pump(plugin);
}

/* ---- our calls of the handshake -------------------------------------------------------------- */

static void configure(struct ck_plugin *plugin)
{
	struct ck_nri *nri = plugin->nri;
	struct ck_bytes message = { 0 };
	int r = 0;
	if (plugin->launched >= 0)
		r = ck_bytes_field_text(&message, 1, nri->launched[plugin->launched].config);
	if (r == 0)
		r = ck_bytes_field_text(&message, 2, nri->runtime_name);
	if (r == 0)
		r = ck_bytes_field_text(&message, 3, nri->runtime_version);
	if (r == 0)
		r = ck_bytes_field_number(&message, 4, nri->registration_timeout / CK_NS_PER_MS);
	if (r == 0)
		r = ck_bytes_field_number(&message, 5, nri->request_timeout / CK_NS_PER_MS);
	if (r == 0)
		r = ck_bytes_field_text(&message, 6, CK_NRI_VERSION);
	if (r == 0)
		ck_plugin_call(plugin, "Configure", &message, nri->request_timeout);
	else
		ck_plugin_close(plugin, CK_LOG_ERROR, "out of memory");
	ck_bytes_free(&message);
}

/* what the plugin asks for itself; it can only be stricter than the administrator. Return: whether
 * it can be read */
static bool read_failure_policy(struct ck_plugin *plugin, const struct ck_wire_field *message)
{
	struct ck_wire wire = ck_wire_begin(message->data, message->len);
	struct ck_wire_field field;
	bool fail_request = false;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0) {
		if (field.number == 1 && field.type == CK_WIRE_VARINT)
			fail_request = field.value;
		else if (field.number == 2 && field.type == CK_WIRE_VARINT)
			plugin->keep_connected = field.value;
	}
	if (fail_request && plugin->policy < CK_NRI_FAIL)
		plugin->policy = CK_NRI_FAIL;
	return r == 0;
}

/* its subscription and its failure policy. Return: whether it can be read */
static bool read_configuration(struct ck_plugin *plugin, const struct ck_ttrpc_answer *answer,
			       uint64_t *ret_events)
{
	struct ck_wire wire = ck_wire_begin(answer->payload, answer->len);
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0)
		if (field.number == 2 && field.type == CK_WIRE_VARINT)
			*ret_events = field.value;
		else if (field.number == 3 && field.type == CK_WIRE_BYTES &&
			 !read_failure_policy(plugin, &field))
			return false;
	return r == 0;
}

static void configured(struct ck_plugin *plugin, const struct ck_ttrpc_answer *answer)
{
	struct ck_nri *nri = plugin->nri;
	uint64_t events = 0;
	if (answer->code != CK_GRPC_OK) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "it cannot be configured: %s",
				ck_grpc_name(answer->code));
		return;
	}
	if (!read_configuration(plugin, answer, &events)) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "its answer to Configure cannot be read");
		return;
	}
	if (events & ~(uint64_t)ALL_EVENTS) {
		ck_plugin_close(plugin, CK_LOG_ERROR,
				"it subscribes to events that do not exist (0x%llx)",
				(unsigned long long)events);
		return;
	}
	plugin->events = events ? (unsigned)events : ALL_EVENTS;
	if (nri->starts_late && ck_plugin_wants(plugin, CK_NRI_START_CONTAINER))
		ck_nri_log(nri, CK_LOG_WARNING,
			   "plugin %s subscribes to StartContainer: before %s that event has no "
			   "pid and the cgroup does not exist; PostStartContainer has both",
			   plugin->name, nri->runtime_name);
	/* a recipient before its snapshot is taken, so that nothing is lost in between (R1, R2) */
	plugin->state = CK_PLUGIN_LISTING;
	plugin->want_snapshot = nri->changed = true;
}

/* ---- its calls, its answers ------------------------------------------------------------------ */

/* one field's text, into @buf; false: it is missing or no name */
static bool text_field(const struct ck_ttrpc_request *request, uint32_t number, char *buf,
		       size_t size)
{
	struct ck_wire wire = ck_wire_begin(request->payload, request->len);
	struct ck_wire_field field;
	int r;
	*buf = '\0';
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0) {
		if (field.number != number || field.type != CK_WIRE_BYTES)
			continue;
		if (field.len >= size || memchr(field.data, '\0', field.len))
			return false;
		memcpy(buf, field.data, field.len);
		buf[field.len] = '\0';
	}
	return r == 0 && *buf;
}

static bool is_index(const char *index)
{
	return strlen(index) == 2 && index[0] >= '0' && index[0] <= '9' && index[1] >= '0' &&
	       index[1] <= '9';
}

static bool is_base_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_.+-", *p))
			return false;
	return *name && strlen(name) <= CK_NRI_NAME_MAX - 3;
}

static void refuse_registration(struct ck_plugin *plugin, const struct ck_ttrpc_request *request,
				int grpc, const char *why)
{
	ck_nri_log(plugin->nri, CK_LOG_WARNING, "refused a plugin (pid %d): %s", plugin->pid, why);
	ck_ttrpc_answer(plugin->ttrpc, request->stream, grpc, why, NULL, 0);
	plugin->state = CK_PLUGIN_REFUSED;
}

static void registered(struct ck_plugin *plugin, const struct ck_ttrpc_request *request)
{
	char name[CK_NRI_NAME_MAX + 1], index[8];
	struct ck_nri *nri = plugin->nri;
	if (plugin->state != CK_PLUGIN_CONNECTED) {
		ck_ttrpc_answer(plugin->ttrpc, request->stream, CK_GRPC_FAILED_PRECONDITION,
				"this connection is already registered", NULL, 0);
		return;
	}
	if (plugin->launched < 0) { /* a launched plugin has the name of its file */
		if (!text_field(request, 2, index, sizeof(index)) || !is_index(index)) {
			refuse_registration(plugin, request, CK_GRPC_INVALID_ARGUMENT,
					    "the plugin's index is not two digits");
			return;
		}
		if (!text_field(request, 1, name, sizeof(name)) || !is_base_name(name)) {
			refuse_registration(plugin, request, CK_GRPC_INVALID_ARGUMENT,
					    "the plugin's name is empty, too long, or not of A-Z "
					    "a-z 0-9 _ . + -");
			return;
		}
		if (ck_plugins_count(nri, false) >= CK_NRI_PLUGINS_MAX) {
			refuse_registration(plugin, request, CK_GRPC_RESOURCE_EXHAUSTED,
					    "there is no room for more plugins");
			return;
		}
		ck_plugins_remove(plugin);
		snprintf(plugin->name, sizeof(plugin->name), "%.2s-%.*s", index,
			 (int)(CK_NRI_NAME_MAX - 3), name);
		plugin->policy = ck_plugin_policy(nri, plugin->name);
		ck_plugins_add(plugin);
	}
	ck_plugins_forget_gone(nri, plugin->name);
	plugin->state = CK_PLUGIN_REGISTERED;
	plugin->due = CK_NRI_FOREVER;
	nri->changed = true;
	if (ck_ttrpc_answer(plugin->ttrpc, request->stream, CK_GRPC_OK, NULL, NULL, 0) < 0)
		ck_plugin_close(plugin, CK_LOG_ERROR, "out of memory");
	else
		/* at once: a registered stub waits for this without a limit */
		configure(plugin);
}

static void on_request(const struct ck_ttrpc_request *request, void *userdata)
{
	struct ck_plugin *plugin = userdata;
	char text[CK_TEXT_MAX];
	if (plugin->state == CK_PLUGIN_CLOSED || plugin->state == CK_PLUGIN_REFUSED)
		return;
	if (strcmp(request->service, CK_NRI_SERVICE_RUNTIME)) {
		snprintf(text, sizeof(text), "service %.128s", request->service);
	} else if (!strcmp(request->method, "RegisterPlugin")) {
		registered(plugin, request);
		return;
	} else if (!strcmp(request->method, "UpdateContainers")) {
		ck_update_requested(plugin, request);
		return;
	} else {
		snprintf(text, sizeof(text), "method %.128s", request->method);
	}
	ck_ttrpc_answer(plugin->ttrpc, request->stream, CK_GRPC_UNIMPLEMENTED, text, NULL, 0);
}

static void on_answer(uint32_t call, bool known, const struct ck_ttrpc_answer *answer,
		      void *userdata)
{
	struct ck_plugin *plugin = userdata;
	struct ck_nri *nri = plugin->nri;
	if (plugin->state == CK_PLUGIN_CLOSED || !known || call != plugin->call)
		return;
	plugin->call = 0;
	struct ck_nri_delivery *delivery = CK_TAKE(plugin->in_flight);
	if (delivery && ck_plugin_resend(plugin, delivery, answer->code)) {
		if (plugin->call)
			return;
		delivery = NULL; /* it could not be sent again */
	}
	plugin->call_due = CK_NRI_FOREVER;
	if (plugin->overdue_since) {
		ck_nri_log(nri, CK_LOG_INFO, "plugin %s: answers again", plugin->name);
		plugin->overdue_since = 0;
		nri->changed = true;
	}
	if (delivery)
		ck_plugin_event_answered(plugin, delivery, answer);
	else if (plugin->state == CK_PLUGIN_REGISTERED)
		configured(plugin, answer);
	else if (plugin->state == CK_PLUGIN_SYNCHRONIZING)
		ck_synchronize_answered(plugin, answer);
	ck_plugin_pump(plugin);
}

static const struct ck_ttrpc_ops ttrpc_ops = { .answered = on_answer, .requested = on_request };

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t ck_plugin_due(const struct ck_plugin *plugin)
{
	uint64_t due = plugin->due;
	if (plugin->state == CK_PLUGIN_CLOSED)
		return 0;
	if (plugin->call && plugin->call_due < due)
		due = plugin->call_due;
	return due;
}

/* the call that it owes an answer to */
static const char *call_name(const struct ck_plugin *plugin)
{
	switch (plugin->state) {
	case CK_PLUGIN_REGISTERED:
		return "Configure";
	case CK_PLUGIN_SYNCHRONIZING:
		return "Synchronize";
	default:
		return ck_nri_event_name(plugin->in_flight->event);
	}
}

static void overdue(struct ck_plugin *plugin, uint64_t now)
{
	struct ck_nri *nri = plugin->nri;
	char span[CK_DURATION_TEXT];
	plugin->overdue_since = now;
	if (plugin->state == CK_PLUGIN_SYNCHRONIZING)
		plugin->call_due = plugin->due;
	else
		plugin->call_due = plugin->keep_connected
					   ? CK_NRI_FOREVER
					   : now + CK_NRI_OVERDUE_TIMES * nri->request_timeout;
	plugin->late++;
	nri->plugin_overdue = nri->changed = true;
	snprintf(plugin->last_error, sizeof(plugin->last_error), "%s: no answer within %s",
		 call_name(plugin), ck_duration_print(nri->request_timeout, span));
	ck_nri_log(nri, CK_LOG_WARNING, "plugin %s: overdue: %s; its events wait", plugin->name,
		   plugin->last_error);
}

/* a call was not answered by call_due */
static void unanswered(struct ck_plugin *plugin, uint64_t now)
{
	const struct ck_nri *nri = plugin->nri;
	uint64_t given = plugin->state == CK_PLUGIN_READY
				 ? (1 + CK_NRI_OVERDUE_TIMES) * nri->request_timeout
			 : plugin->state == CK_PLUGIN_SYNCHRONIZING ? nri->synchronize_timeout
								    : nri->request_timeout;
	char span[CK_DURATION_TEXT];
	if (ck_plugin_joined(plugin) && !plugin->overdue_since && now < plugin->due)
		overdue(plugin, now);
	else
		ck_plugin_close(plugin, CK_LOG_ERROR, "%s: no answer within %s", call_name(plugin),
				ck_duration_print(given, span));
}

void ck_plugin_timers(struct ck_plugin *plugin, uint64_t now)
{
	char span[CK_DURATION_TEXT];
	if (plugin->state == CK_PLUGIN_CLOSED)
		return;
	if (plugin->due <= now && plugin->state == CK_PLUGIN_LISTING) {
		ck_synchronize_ask_again(plugin);
	} else if (plugin->due <= now && plugin->state == CK_PLUGIN_READY) {
		plugin->due = CK_NRI_FOREVER;
		ck_plugin_pump(plugin);
	} else if (plugin->call && plugin->call_due <= now) {
		unanswered(plugin, now);
	} else if (plugin->due <= now) {
		ck_plugin_close(plugin, CK_LOG_ERROR, "it has not registered within %s",
				ck_duration_print(plugin->nri->registration_timeout, span));
	}
}
