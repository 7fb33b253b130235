/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of the cache for its host (struct ck_host), done by the runtime. Each job ends exactly
 * once, also if the runtime is down, if memory is gone, or when the daemon ends. The cache tries a
 * failed job again.
 *
 * Destroy. Stop, then Remove, within destroy_timeout. CRI-O uses the deadline of a call as the
 * grace period of processes. A long deadline does not delay anybody here, because nothing with a
 * grace period is destroyed: a container that runs is in use and not destroyed (K22), one that does
 * not run is stopped with a timeout of 0 and then removed, and a sandbox is removed after its
 * containers (K18). The time is for CNI and unmounting. With a shorter deadline, the runtime of a
 * slow node would begin again and again.
 *
 * List. One list of each kind is under way at a time. It serves the jobs that existed when it
 * began, because only a list that was begun later counts for the others (K24). Later jobs
 * share the next list. So 500 lost creations cost one list at a time. There is no label selector,
 * because objects made by crictl do not have the labels of the kubelet.
 *
 * Inspect. The status of one object. A runtime without PodSandboxStatus or ContainerStatus answers
 * UNIMPLEMENTED; then a list of the kind tells, as a list job would.
 */
#include <stdio.h>

#include <utlist.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cri/message.h"
#include "src/cri/uid-conflict.h"
#include "src/daemon/daemon.h"
#include "src/cri/filter.h"
#include "src/cri/objects.h"

struct call { /* the calls of a job that is not a list */
	struct call *prev, *next;
	struct ck_hosting *hosting;
	struct ck_job *job;
	enum ck_kind kind;
	const char *id; /* lives as long as the job */
	uint64_t deadline;
	bool removing; /* a destroy: stopped already */
	struct ck_unary_call *rpc;
};

struct wanted { /* a list job, or an inspect job if the runtime has no such call */
	struct wanted *next;
	struct ck_job *job;
	const struct ck_filter *filter; /* lives as long as the job */
	const char *id;                 /* inspect: this object's condition; as long as the job */
};

struct lister {
	struct ck_hosting *hosting;
	enum ck_kind kind;
	const struct ck_cri_method *method;
	struct ck_unary_call *rpc;
	struct wanted *asked, *waiting; /* served by @rpc; by the next list */
};

struct ck_hosting {
	struct ck_daemon *daemon;
	struct call *calls;
	struct lister lists[CK_CONTAINER + 1];
	const struct ck_cri_method *status[CK_CONTAINER + 1];
	struct ck_conflicts conflicts;
};

static void end_job(struct ck_job *job, int grpc)
{
	struct ck_answer answer = { .size = sizeof(answer), .grpc = grpc };
	ck_job_done(job, &answer);
}

/* @r: why a call could not be made */
static int grpc_of(int r)
{
	return r == -CK_ENOMEM ? CK_GRPC_RESOURCE_EXHAUSTED : CK_GRPC_UNAVAILABLE;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct call *call_new(struct ck_hosting *hosting, struct ck_job *job, enum ck_kind kind,
			     const char *id)
{
	struct call *call = CK_NEW(struct call);
	if (!call) {
		end_job(job, CK_GRPC_RESOURCE_EXHAUSTED);
		return NULL;
	}
	*call = (struct call){ .hosting = hosting, .job = job, .kind = kind, .id = id };
	DL_PREPEND(hosting->calls, call);
	return call;
}

static void call_over(struct call *call, const struct ck_answer *answer)
{
	struct ck_job *job = call->job;
	free(call);
	ck_job_done(job, answer);
}

static void call_end(struct call *call, const struct ck_answer *answer)
{
	DL_DELETE(call->hosting->calls, call);
	call_over(call, answer);
}

/* @message: the runtime's, or NULL */
static void call_fail(struct call *call, int grpc, const char *message)
{
	struct ck_answer answer = { .size = sizeof(answer), .grpc = grpc, .message = message };
	call_end(call, &answer);
}

/* call_start - frees @message. Ends the job if the call cannot be made */
static void call_start(struct call *call, const char *path, int r, struct ck_bytes *message,
		       ck_unary_cb *done)
{
	uint64_t now = ck_loop_now();
	struct ck_unary_options options = { .lane = CK_LANE_PASS,
					    .path = path,
					    .timeout = call->deadline - now };
	struct ck_error err = { 0 };
	bool late = now >= call->deadline;
	if (r == 0 && !late)
		r = ck_unary_start(call->hosting->daemon->upstream, &options, message->p,
				   message->len, done, call, &call->rpc, &err);
	ck_bytes_free(message);
	if (r < 0 || late)
		call_fail(call, r < 0 ? grpc_of(r) : CK_GRPC_DEADLINE_EXCEEDED,
			  r < 0 ? err.text : "there was no time left for it");
}

static void call_id(struct call *call, const char *path, ck_unary_cb *done)
{
	struct ck_bytes message = { 0 };
	int r = ck_cri_put_id(&message, call->id);
	call_start(call, path, r, &message, done);
}

/* ---- destroy --------------------------------------------------------------------------------- */

static void removed(struct ck_unary_reply *reply, void *userdata)
{
	struct call *call = userdata;
	call->rpc = NULL;
	/* NOT_FOUND confirms it, like success */
	call_fail(call, reply->status.code, reply->status.message);
}

static void stopped(struct ck_unary_reply *reply, void *userdata)
{
	struct call *call = userdata;
	call->rpc = NULL;
	if (reply->status.code != CK_GRPC_OK && reply->status.code != CK_GRPC_NOT_FOUND) {
		call_fail(call, reply->status.code, reply->status.message);
		return;
	}
	call_id(call, call->kind == CK_SANDBOX ? "RemovePodSandbox" : "RemoveContainer", removed);
}

static void host_destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct ck_hosting *hosting = userdata;
	struct call *call = call_new(hosting, job, kind, id);
	if (!call)
		return;
	call->deadline = ck_loop_now() + hosting->daemon->conf.destroy_timeout;
	/* a timeout of 0 is the default, and not on the wire */
	call_id(call, kind == CK_SANDBOX ? "StopPodSandbox" : "StopContainer", stopped);
}

/* ---- inspect --------------------------------------------------------------------------------- */

static enum ck_condition condition_in(const struct call *call, const struct ck_unary_reply *reply)
{
	struct ck_objects objects = { 0 };
	struct ck_error err = { 0 };
	enum ck_condition condition = CK_CONDITION_UNKNOWN;
	if (ck_objects_read(&objects, call->hosting->status[call->kind], reply->message.p,
			    reply->message.len, &err) < 0)
		ck_log(CK_LOG_WARNING, "a status from the runtime cannot be read: %s", err.text);
	else /* the status of a sandbox may contain those of its containers */
		for (size_t i = 0; i < objects.n; i++)
			if (objects.all[i].kind == call->kind &&
			    !strcmp(objects.all[i].id, call->id))
				condition = objects.all[i].condition;
	ck_objects_fini(&objects);
	return condition;
}

static void ask_list(struct ck_hosting *hosting, struct ck_job *job, const struct ck_filter *filter,
		     const char *id);

static void inspect_by_list(struct call *call)
{
	static const struct ck_filter all[] = {
		[CK_SANDBOX] = { .size = sizeof(all[0]), .kind = CK_SANDBOX },
		[CK_CONTAINER] = { .size = sizeof(all[0]), .kind = CK_CONTAINER },
	};
	struct call copy = *call;
	DL_DELETE(call->hosting->calls, call);
	free(call);
	ask_list(copy.hosting, copy.job, &all[copy.kind], copy.id);
}

static void inspected(struct ck_unary_reply *reply, void *userdata)
{
	struct call *call = userdata;
	struct ck_answer answer = { .size = sizeof(answer), .condition = CK_CONDITION_UNKNOWN };
	call->rpc = NULL;
	if (reply->status.code == CK_GRPC_UNIMPLEMENTED) {
		inspect_by_list(call);
		return;
	}
	if (reply->status.code == CK_GRPC_OK)
		answer.condition = condition_in(call, reply);
	else if (reply->status.code == CK_GRPC_NOT_FOUND)
		answer.condition = CK_CONDITION_ABSENT;
	call_end(call, &answer);
}

static void host_inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct call *call = call_new(userdata, job, kind, id);
	if (!call)
		return;
	call->deadline = ck_loop_now() + CK_ASK_TIMEOUT;
	call_id(call, kind == CK_SANDBOX ? "PodSandboxStatus" : "ContainerStatus", inspected);
}

/* ---- resolve_image --------------------------------------------------------------------------- */

/* Image.id in ImageStatusResponse.image. Both fields may occur more than once; the last id counts.
 * false: there is none */
static bool image_id_in(const struct ck_unary_reply *reply, char id[CK_ID_MAX + 1])
{
	struct ck_wire response = ck_wire_begin(reply->message.p, reply->message.len);
	struct ck_wire_field image, found = { 0 };
	int r;
	while ((r = ck_cri_each(&response, CRI_ImageStatusResponse_image, &image, NULL)) > 0)
		if (ck_cri_last(ck_wire_inside(&response, &image), CRI_Image_id, &found, NULL) < 0)
			return false;
	if (r < 0 || !ck_cri_is_id(found.data, found.len))
		return false;
	memcpy(id, found.data, found.len);
	id[found.len] = '\0';
	return true;
}

static void resolved(struct ck_unary_reply *reply, void *userdata)
{
	struct call *call = userdata;
	char id[CK_ID_MAX + 1];
	struct ck_answer answer = { .size = sizeof(answer), .grpc = reply->status.code };
	call->rpc = NULL;
	if (reply->status.code == CK_GRPC_OK && image_id_in(reply, id))
		answer.image_id = id;
	call_end(call, &answer);
}

static void host_resolve_image(struct ck_job *job, const char *image, void *userdata)
{
	struct ck_hosting *hosting = userdata;
	struct call *call = call_new(hosting, job, CK_CONTAINER, image);
	if (!call)
		return;
	const char *version = ck_upstream_version(hosting->daemon->upstream);
	struct ck_bytes message = { 0 };
	char path[64];
	call->deadline = ck_loop_now() + CK_ASK_TIMEOUT;
	snprintf(path, sizeof(path), "/%.20s.ImageService/ImageStatus",
		 version ? version : "runtime.v1");
	int r = ck_cri_put_inside(&message, CRI_ImageStatusRequest_image, CRI_ImageSpec_image,
				  image);
	call_start(call, path, r, &message, resolved);
}

/* ---- list ------------------------------------------------------------------------------------ */

static void tell_conflict(enum ck_conflict_what what, const struct ck_object *a,
			  const struct ck_object *b, void *userdata)
{
	struct ck_daemon *daemon = userdata;
	daemon->metrics.uid_conflicts++;
	if (what == CK_CONFLICT_READY)
		ck_log(CK_LOG_WARNING,
		       "uid conflict: pod uid %s of %s/%s has two ready sandboxes, %s and %s",
		       a->pod_uid, ck_or_empty(a->pod_namespace), ck_or_empty(a->pod_name), a->id,
		       b->id);
	else
		ck_log(CK_LOG_WARNING,
		       "uid conflict: pod uid %s belongs to %s/%s (sandbox %s) and to %s/%s "
		       "(sandbox %s)",
		       a->pod_uid, ck_or_empty(a->pod_namespace), ck_or_empty(a->pod_name), a->id,
		       ck_or_empty(b->pod_namespace), ck_or_empty(b->pod_name), b->id);
}

void ck_hosting_saw(struct ck_daemon *daemon, const struct ck_object *objects, size_t n)
{
	if (ck_conflicts_look(&daemon->hosting->conflicts, objects, n, tell_conflict, daemon) < 0)
		ck_log(CK_LOG_WARNING, "out of memory: a list was not checked for uid conflicts");
}

static bool wants_it(const struct ck_filter *filter, const struct ck_object *o)
{
	if (o->kind != filter->kind)
		return false;
	if (filter->pod_uid && strcmp(filter->pod_uid, o->pod_uid ? o->pod_uid : ""))
		return false;
	return !filter->sandbox_id ||
	       !strcmp(filter->sandbox_id, o->sandbox_id ? o->sandbox_id : "");
}

static void end_inspect(const struct wanted *wanted, int grpc, const struct ck_objects *objects)
{
	struct ck_answer answer = { .size = sizeof(answer),
				    .grpc = grpc,
				    .condition = CK_CONDITION_ABSENT };
	for (size_t i = 0; grpc == CK_GRPC_OK && i < objects->n; i++)
		if (objects->all[i].kind == wanted->filter->kind &&
		    !strcmp(objects->all[i].id, wanted->id))
			answer.condition = objects->all[i].condition;
	ck_job_done(wanted->job, &answer);
}

static void end_list(struct lister *list, int grpc, const struct ck_objects *objects)
{
	struct wanted *asked = CK_TAKE(list->asked), *wanted, *next;
	const size_t n = grpc == CK_GRPC_OK && objects ? objects->n : 0;
	LL_FOREACH_SAFE (asked, wanted, next) {
		for (size_t i = 0; !wanted->id && i < n; i++)
			if (wants_it(wanted->filter, &objects->all[i]))
				/* without memory, the job counts as failed */
				ck_job_listed(wanted->job, &objects->all[i]);
		if (wanted->id)
			end_inspect(wanted, grpc, objects);
		else
			end_job(wanted->job, grpc);
		free(wanted);
	}
}

static void list_start(struct lister *list);

static void listed(struct ck_unary_reply *reply, void *userdata)
{
	struct lister *list = userdata;
	struct ck_objects objects = { 0 };
	struct ck_error err = { 0 };
	int grpc = reply->status.code;
	list->rpc = NULL;
	if (grpc == CK_GRPC_OK) {
		int r = ck_objects_read(&objects, list->method, reply->message.p,
					reply->message.len, &err);
		if (r < 0) {
			ck_log(CK_LOG_ERROR, "%s: the runtime's answer cannot be read: %s",
			       list->method->rpc, err.text);
			grpc = r == -CK_ENOMEM ? CK_GRPC_RESOURCE_EXHAUSTED : CK_GRPC_INTERNAL;
		} else if (list->kind == CK_SANDBOX) {
			ck_hosting_saw(list->hosting->daemon, objects.all, objects.n);
		}
	}
	end_list(list, grpc, &objects);
	ck_objects_fini(&objects);
	if (list->waiting && !list->rpc)
		list_start(list);
}

/* the sandbox whose containers all these jobs want; NULL: several sandboxes, or all */
static const char *one_sandbox(const struct wanted *wanted)
{
	const char *id = wanted->filter->sandbox_id;
	for (; wanted && id; wanted = wanted->next)
		if (!wanted->filter->sandbox_id || strcmp(wanted->filter->sandbox_id, id))
			id = NULL;
	return id;
}

static void list_start(struct lister *list)
{
	struct ck_daemon *daemon = list->hosting->daemon;
	struct ck_unary_options options = { .lane = CK_LANE_PASS,
					    .path = list->method->rpc,
					    .timeout = CK_ASK_TIMEOUT,
					    .reply_max = daemon->conf.list_max };
	struct ck_bytes message = { 0 };
	struct ck_error err;
	int r = 0;
	list->asked = CK_TAKE(list->waiting);
	const char *sandbox = list->kind == CK_CONTAINER ? one_sandbox(list->asked) : NULL;
	if (sandbox)
		r = ck_cri_put_inside(&message, CRI_ListContainersRequest_filter,
				      CRI_ContainerFilter_pod_sandbox_id, sandbox);
	if (r == 0)
		r = ck_unary_start(daemon->upstream, &options, message.p, message.len, listed, list,
				   &list->rpc, &err);
	ck_bytes_free(&message);
	if (r < 0)
		end_list(list, grpc_of(r), NULL);
}

static void ask_list(struct ck_hosting *hosting, struct ck_job *job, const struct ck_filter *filter,
		     const char *id)
{
	struct lister *list = &hosting->lists[filter->kind];
	struct wanted *wanted = CK_NEW(struct wanted);
	if (!wanted) {
		end_job(job, CK_GRPC_RESOURCE_EXHAUSTED);
		return;
	}
	*wanted = (struct wanted){ .job = job, .filter = filter, .id = id };
	LL_PREPEND(list->waiting, wanted);
	if (!list->rpc)
		list_start(list);
}

static void host_list(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	ask_list(userdata, job, filter, NULL);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void host_log(enum ck_log_level level, const char *text, void *userdata)
{
	(void)userdata;
	ck_log(level, "%s", text);
}

static void host_committed(const struct ck_told *entry, void *userdata)
{
	struct ck_hosting *hosting = userdata;
	ck_events_committed(hosting->daemon->events, entry);
}

int ck_hosting_new(struct ck_daemon *daemon, struct ck_host *ret_host, struct ck_error *err)
{
	struct ck_hosting *hosting = CK_NEW(struct ck_hosting);
	if (!hosting)
		return ck_nomem(err);
	hosting->daemon = daemon;
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		struct lister *list = &hosting->lists[kind];
		list->hosting = hosting;
		list->kind = (enum ck_kind)kind;
		list->method = ck_cri_method_named(kind == CK_SANDBOX ? "ListPodSandbox"
								      : "ListContainers");
		hosting->status[kind] = ck_cri_method_named(kind == CK_SANDBOX ? "PodSandboxStatus"
									       : "ContainerStatus");
	}
	*ret_host = (struct ck_host){
		.size = sizeof(*ret_host),
		.userdata = hosting,
		.destroy = host_destroy,
		.inspect = host_inspect,
		.list = host_list,
		.resolve_image = host_resolve_image,
		.log = host_log,
		.committed = host_committed,
	};
	daemon->hosting = hosting;
	return 0;
}

void ck_hosting_free(struct ck_hosting *hosting)
{
	if (!hosting)
		return;
	const struct ck_answer answer = { .size = sizeof(answer), .grpc = CK_GRPC_UNAVAILABLE };
	for (struct call *call; (call = hosting->calls);) {
		DL_DELETE(hosting->calls, call);
		ck_unary_cancel(call->rpc);
		call_over(call, &answer);
	}
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		struct lister *list = &hosting->lists[kind];
		ck_unary_cancel(list->rpc);
		end_list(list, CK_GRPC_UNAVAILABLE, NULL);
		list->asked = CK_TAKE(list->waiting);
		end_list(list, CK_GRPC_UNAVAILABLE, NULL);
	}
	ck_conflicts_fini(&hosting->conflicts);
	hosting->daemon->hosting = NULL;
	free(hosting);
}
