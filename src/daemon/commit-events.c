/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   commit --> queued --> PodSandboxStatus --> the event
 *                                |                ^
 *                                '--> ListContainers --> ContainerStatus of each container, if the
 *                                                        first answer contains no containers
 *
 * CRI-O fills them in, containerd leaves them out. A kubelet takes the containers in an event for
 * all containers of the pod.
 *
 * Each answer is filtered by a view begun before its question, as if the kubelet had asked: what
 * was abandoned meanwhile is in no event. An event carries the time of its first question, because
 * the kubelet orders what it knows of a pod by these times.
 */
#include <stdio.h>
#include <time.h>

#include <utlist.h>

#include "cache/cache.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/wire-writer.h"
#include "src/cri/message.h"
#include "src/daemon/commit-events.h"
#include "src/cri/objects.h"

struct announcement {
	struct announcement *prev, *next; /* of queued or running */
	struct ck_announcer *announcer; /* while it runs */
	char *id, *sandbox;
	bool sandbox_met, met; /* an answer had the status of its sandbox; and its own */
	/* A container that runs was found in use (K22), so its STARTED was held back too. */
	bool running;
	bool whole; /* the first answer had the containers, so no other call is needed */
	struct ck_unary_call *rpc;
	struct ck_view *view;
	uint64_t asked_at;            /* wall clock */
	struct ck_bytes body;         /* the event's statuses */
	struct ck_objects containers; /* of the sandbox, to be asked for one by one */
	size_t asked;                 /* of these */
};

struct ck_announcer {
	struct ck_daemon *daemon;
	ck_announce_fn *fn;
	void *userdata;
	const struct ck_cri_method *sandbox_status, *container_status, *containers;
	/* A commit is reported during a round of the cache. The work is done after it. */
	struct ck_loop_timer *begin;
	struct announcement *queued, *running;
	unsigned running_n;
	bool listening;
	unsigned lost; /* commits without an event, for lack of memory */
};

static void announcement_free(struct announcement *a)
{
	ck_unary_cancel(a->rpc);
	ck_view_free(a->view);
	ck_bytes_free(&a->body);
	ck_objects_fini(&a->containers);
	free(a->id);
	free(a->sandbox);
	free(a);
}

/* ---- the event ------------------------------------------------------------------------------- */

static void pump(void *userdata);

static bool is_sandbox(const struct announcement *a)
{
	return !strcmp(a->id, a->sandbox);
}

static int send_event(struct announcement *a, enum ck_event_type type)
{
	struct ck_writer event = { .r = 0 };
	ck_writer_text(&event, CRI_ContainerEventResponse_container_id, a->id);
	ck_writer_number(&event, CRI_ContainerEventResponse_container_event_type, type);
	ck_writer_number(&event, CRI_ContainerEventResponse_created_at, a->asked_at);
	if (event.r == 0)
		event.r = ck_bytes_add(&event.bytes, a->body.p, a->body.len);
	if (event.r == 0)
		a->announcer->fn(a->id, type, event.bytes.p, event.bytes.len,
				 a->announcer->userdata);
	ck_bytes_free(&event.bytes);
	return event.r;
}

/* @why: there is no event; NULL: all answers have come */
static void finish(struct announcement *a, const char *why)
{
	struct ck_announcer *announcer = a->announcer;
	if (!why && !a->met)
		why = "it is hidden again or gone";
	bool started = is_sandbox(a) || a->running;
	if (!why && (send_event(a, CK_EVENT_CREATED) < 0 ||
		     (started && send_event(a, CK_EVENT_STARTED) < 0)))
		why = "out of memory";
	if (why)
		ck_log(CK_LOG_INFO, "no event was sent for the committed %s %s: %s",
		       is_sandbox(a) ? "sandbox" : "container", a->id, why);
	DL_DELETE(announcer->running, a);
	announcer->running_n--;
	announcement_free(a);
	if (announcer->queued)
		ck_loop_timer(&announcer->daemon->loop, &announcer->begin, 0, pump, announcer);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* @r, @message: as made; freed */
static void ask(struct announcement *a, const char *rpc, int r, struct ck_bytes *message,
		ck_unary_cb *answered)
{
	struct ck_daemon *daemon = a->announcer->daemon;
	struct ck_unary_options options = { .path = rpc,
					    .timeout = CK_ASK_TIMEOUT,
					    .reply_max = daemon->conf.list_max };
	struct ck_error err = { 0 };
	ck_view_free(CK_TAKE(a->view));
	r = r < 0 ? ck_nomem(&err) : ck_view_begin(daemon->cache, &a->view, &err);
	if (r == 0)
		r = ck_unary_start(daemon->upstream, &options, message->p, message->len, answered,
				   a, &a->rpc, &err);
	ck_bytes_free(message);
	if (r < 0)
		finish(a, err.text);
}

static void ask_id(struct announcement *a, const char *rpc, const char *id, ck_unary_cb *answered)
{
	struct ck_bytes message = { 0 };
	int r = ck_cri_put_id(&message, id);
	ask(a, rpc, r, &message, answered);
}

static int hides(const struct ck_object *object, bool id_only, void *userdata)
{
	struct announcement *a = userdata;
	(void)id_only; /* these answers have no such objects */
	int r = ck_view_hides(a->view, object);
	if (r != 0)
		return r;
	a->whole = a->whole || object->kind == CK_CONTAINER;
	a->sandbox_met =
		a->sandbox_met || (object->kind == CK_SANDBOX && !strcmp(object->id, a->sandbox));
	if (!strcmp(object->id, a->id) && a->sandbox_met) {
		a->met = true;
		a->running =
			object->kind == CK_CONTAINER && object->condition == CK_CONDITION_RUNNING;
	}
	return 0;
}

static int gather(const struct ck_object *object, bool id_only, void *userdata)
{
	struct announcement *a = userdata;
	(void)id_only;
	int r = ck_view_hides(a->view, object);
	return r == 0 ? ck_objects_add(&a->containers, object) : r;
}

/* The answer without hidden objects, borrowed from @reply or @cut. 0; -CK_ENOTFOUND: nothing is
 * left, or the object is gone; or another error */
static int answer(struct announcement *a, struct ck_unary_reply *reply,
		  const struct ck_cri_method *method, ck_hides_fn *fn, struct ck_bytes *cut,
		  struct ck_wire *ret_bytes, struct ck_error *err)
{
	a->rpc = NULL;
	if (reply->status.code == CK_GRPC_NOT_FOUND)
		return ck_fail(err, CK_ENOTFOUND, "it is gone");
	if (reply->status.code != CK_GRPC_OK)
		return ck_fail(err, CK_EUNAVAILABLE, "%s: %s", method->rpc,
			       ck_grpc_name(reply->status.code));
	int r = ck_filter_keeping(method, reply->message.p, reply->message.len, fn, a,
				  &a->containers.texts, cut, NULL, err);
	if (r == CK_FILTER_EMPTIED)
		return ck_fail(err, CK_ENOTFOUND, "it is hidden again");
	*ret_bytes = r == CK_FILTER_CUT ? ck_wire_begin(cut->p, cut->len)
					: ck_wire_begin(reply->message.p, reply->message.len);
	return r < 0 ? r : 0;
}

/* Copy each field @from of @wire to a field @to of @into. Pieces of one message stay pieces, which
 * a reader merges. @to 0: copy their bytes, end to end. */
static int copy_fields(struct ck_wire wire, uint32_t from, uint32_t to, struct ck_bytes *into,
		       struct ck_error *err)
{
	struct ck_wire_field field;
	int r;
	while ((r = ck_cri_each(&wire, from, &field, err)) > 0) {
		r = to ? ck_bytes_field(into, to, field.data, field.len)
		       : ck_bytes_add(into, field.data, field.len);
		if (r < 0)
			return ck_nomem(err);
	}
	return r;
}

static void next_container(struct announcement *a);

static void container_told(struct ck_unary_reply *reply, void *userdata)
{
	struct announcement *a = userdata;
	struct ck_bytes cut = { 0 }, status = { 0 };
	struct ck_error err = { 0 };
	struct ck_wire wire;
	int r = answer(a, reply, a->announcer->container_status, hides, &cut, &wire, &err);
	if (r == 0)
		r = copy_fields(wire, CRI_ContainerStatusResponse_status, 0, &status, &err);
	if (r == 0 && ck_bytes_field(&a->body, CRI_ContainerEventResponse_containers_statuses,
				     status.p, status.len) < 0)
		r = ck_nomem(&err);
	ck_bytes_free(&cut);
	ck_bytes_free(&status);
	if (r == 0 || r == -CK_ENOTFOUND) /* a container that has gone since is left out */
		next_container(a);
	else
		finish(a, err.text);
}

static void next_container(struct announcement *a)
{
	if (a->asked == a->containers.n)
		finish(a, NULL);
	else
		ask_id(a, "ContainerStatus", a->containers.all[a->asked++].id, container_told);
}

static void containers_told(struct ck_unary_reply *reply, void *userdata)
{
	struct announcement *a = userdata;
	struct ck_bytes cut = { 0 };
	struct ck_error err = { 0 };
	struct ck_wire wire;
	int r = answer(a, reply, a->announcer->containers, gather, &cut, &wire, &err);
	ck_bytes_free(&cut);
	if (r == 0 || r == -CK_ENOTFOUND) /* nothing left: a sandbox without containers */
		next_container(a);
	else
		finish(a, err.text);
}

static void ask_containers(struct announcement *a)
{
	struct ck_bytes message = { 0 };
	int r = ck_cri_put_inside(&message, CRI_ListContainersRequest_filter,
				  CRI_ContainerFilter_pod_sandbox_id, a->sandbox);
	ask(a, "ListContainers", r, &message, containers_told);
}

static void sandbox_told(struct ck_unary_reply *reply, void *userdata)
{
	struct announcement *a = userdata;
	struct ck_bytes cut = { 0 };
	struct ck_error err = { 0 };
	struct ck_wire wire;
	int r = answer(a, reply, a->announcer->sandbox_status, hides, &cut, &wire, &err);
	if (r == 0)
		r = copy_fields(wire, CRI_PodSandboxStatusResponse_status,
				CRI_ContainerEventResponse_pod_sandbox_status, &a->body, &err);
	if (r == 0)
		r = copy_fields(wire, CRI_PodSandboxStatusResponse_containers_statuses,
				CRI_ContainerEventResponse_containers_statuses, &a->body, &err);
	ck_bytes_free(&cut);
	if (r < 0)
		finish(a, err.text);
	else if (a->whole)
		finish(a, NULL);
	else
		ask_containers(a);
}

/* ---- commits --------------------------------------------------------------------------------- */

static void drop_all(struct ck_announcer *announcer)
{
	struct announcement *a, *next;
	DL_CONCAT(announcer->running, announcer->queued);
	DL_FOREACH_SAFE (announcer->running, a, next)
		announcement_free(a);
	announcer->queued = announcer->running = NULL;
	announcer->running_n = 0;
}

static void pump(void *userdata)
{
	struct ck_announcer *announcer = userdata;
	if (!announcer->listening)
		drop_all(announcer);
	if (announcer->lost)
		ck_log(CK_LOG_WARNING, "out of memory: no events were sent for %u commits",
		       announcer->lost);
	announcer->lost = 0;
	while (announcer->queued && announcer->running_n < CK_ANNOUNCE_MAX) {
		struct announcement *a = announcer->queued;
		DL_DELETE(announcer->queued, a);
		DL_PREPEND(announcer->running, a); /* in no order */
		a->announcer = announcer;
		announcer->running_n++;
		a->asked_at = ck_clock_ns(CLOCK_REALTIME);
		ask_id(a, "PodSandboxStatus", a->sandbox, sandbox_told);
	}
}

void ck_announcer_committed(struct ck_announcer *announcer, const struct ck_told *entry)
{
	if (!announcer->listening)
		return;
	struct announcement *a = CK_NEW(struct announcement);
	char *id = ck_strdup(entry->id),
	     *sandbox = ck_strdup(entry->kind == CK_SANDBOX ? entry->id : entry->sandbox_id);
	if (a && id && sandbox) {
		*a = (struct announcement){ .id = id, .sandbox = sandbox };
		DL_APPEND(announcer->queued, a);
	} else {
		announcer->lost++;
		free(a);
		free(id);
		free(sandbox);
	}
	ck_loop_timer(&announcer->daemon->loop, &announcer->begin, 0, pump, announcer);
}

void ck_announcer_listen(struct ck_announcer *announcer, bool wanted)
{
	if (wanted == announcer->listening)
		return;
	announcer->listening = wanted;
	/* Not here: an event that is being sent may have cut off the last subscriber. */
	if (!wanted)
		ck_loop_timer(&announcer->daemon->loop, &announcer->begin, 0, pump, announcer);
}

int ck_announcer_new(struct ck_daemon *daemon, ck_announce_fn *fn, void *userdata,
		     struct ck_announcer **ret_announcer, struct ck_error *err)
{
	struct ck_announcer *announcer = CK_NEW(struct ck_announcer);
	if (!announcer)
		return ck_nomem(err);
	*announcer = (struct ck_announcer){
		.daemon = daemon,
		.fn = fn,
		.userdata = userdata,
		.sandbox_status = ck_cri_method_named("PodSandboxStatus"),
		.container_status = ck_cri_method_named("ContainerStatus"),
		.containers = ck_cri_method_named("ListContainers"),
	};
	/* created here, so that setting it later needs no memory */
	if (ck_loop_timer(&daemon->loop, &announcer->begin, 0, pump, announcer) < 0) {
		free(announcer);
		return ck_nomem(err);
	}
	*ret_announcer = announcer;
	return 0;
}

void ck_announcer_free(struct ck_announcer *announcer)
{
	if (!announcer)
		return;
	ck_announcer_listen(announcer, false);
	drop_all(announcer);
	ck_loop_timer_free(announcer->begin);
	free(announcer);
}
