/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that stop or remove a pod or container; and those that update one, if NRI plugins are to
 * be told. An identical stop or removal joins the one that runs (K35). Each call is a list of
 * steps, one after the other. A step tells plugins or asks the runtime. A step that fails ends the
 * list, and its error is the answer to the client.
 *
 * - StopPodSandbox: its containers are stopped and told as stopped; the pod is told as stopped; the
 *   runtime tears it down
 * - RemovePodSandbox: the same; its containers are told as removed, and removed; so is the pod
 * - StopContainer: the runtime stops it; told
 * - RemoveContainer: told as stopped, unless it was; told as removed; the runtime removes it
 * - Update...: plugins agree, and may ask for other resources; the runtime updates it; told
 *
 * Plugins have deadlines of their own, and so has the rest: a client that goes leaves the call to
 * its steps (H6, R41), but for what plugins are asked to agree to, which is not begun without it.
 * Two calls that end one pod go one after the other, so that no network is torn down while the
 * other's plugins are still being told (R19). A removal first waits until creations in its sandbox
 * have ended and been destroyed (K16). That nobody hears of one end twice is NRI's side.
 */
#include <stdio.h>

#include <utlist.h>

#include "cache/starts.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cri/message.h"
#include "src/daemon/nri/apply.h"
#include "src/daemon/call.h"
#include "src/cri/objects.h"
#include "src/daemon/nri/resources.h"

typedef void step_fn(struct ck_life *life);

struct ck_life {
	struct ck_life *prev, *next;
	struct ck_joined asked;
	const struct program *program;
	step_fn *const *at;
	struct ck_unary_call *rpc;
	struct ck_turn *turn;      /* of a removal */
	bool telling;              /* an event is under way; NRI calls back */
	bool cut;                  /* it ends when NRI calls back */
	bool in_order;             /* it ends a pod, and plugins are told */
	bool waits;                /* for an older one of the same pod */
	struct ck_objects members; /* containers of the pod */
	size_t member;
	bool member_stopped;          /* the one at @member: by us, just now */
	struct ck_unary_reply answer; /* the runtime's to the call itself */
};

struct program {
	const char *rpc;
	unsigned events; /* a plugin must have subscribed to one of them */
	bool agrees;     /* plugins may refuse it; not begun for a client that is gone */
	step_fn *const *steps;
	step_fn *const *untold; /* if no plugin listens; NULL: passed on as it comes */
};

/* ---- begin and end --------------------------------------------------------------------------- */

static void step(struct ck_life *life)
{
	(*life->at)(life);
}

static void next_step(struct ck_life *life)
{
	life->at++;
	step(life);
}

/* the oldest of those that are in order; NULL: none */
static struct ck_life *same_pod(const struct ck_daemon *daemon, const char *id)
{
	struct ck_life *life, *oldest = NULL;
	DL_FOREACH (daemon->lives, life)
		if (life->in_order && strcmp(life->asked.id, id) == 0)
			oldest = life;
	return oldest;
}

static void life_free(struct ck_life *life)
{
	DL_DELETE(life->asked.daemon->lives, life);
	ck_unary_cancel(life->rpc);
	ck_turn_free(life->turn);
	ck_joined_fini(&life->asked);
	ck_objects_fini(&life->members);
	ck_grpc_status_fini(&life->answer.status);
	ck_bytes_free(&life->answer.message);
	free(life);
}

/* its callers were answered, or are gone */
static void end(struct ck_life *life)
{
	struct ck_daemon *daemon = life->asked.daemon;
	char id[CK_ID_MAX + 1];
	bool in_order = life->in_order;
	snprintf(id, sizeof(id), "%s", life->asked.id);
	life_free(life);
	struct ck_life *waits = in_order ? same_pod(daemon, id) : NULL;
	if (!waits || !waits->waits)
		return;
	waits->waits = false;
	next_step(waits);
}

/* two that end one pod go one after the other */
static void wait_for_others(struct ck_life *life)
{
	life->waits = same_pod(life->asked.daemon, life->asked.id);
	life->in_order = true;
	if (!life->waits)
		next_step(life);
}

static void fail(struct ck_life *life, int grpc, const char *text)
{
	ck_joined_fail(&life->asked, grpc, text);
	end(life);
}

static void fail_status(struct ck_life *life, const struct ck_grpc_status *why)
{
	ck_joined_answer(&life->asked, &(struct ck_unary_reply){ .status = *why });
	end(life);
}

static void fail_error(struct ck_life *life, const struct ck_error *err)
{
	fail(life, ck_error_grpc(err), err->text);
}

static void answer(struct ck_life *life)
{
	ck_joined_answer(&life->asked, &life->answer);
	end(life);
}

/* ---- asking the runtime ---------------------------------------------------------------------- */

static bool stops_container(const struct ck_life *life)
{
	const struct ck_cri_method *method = life->asked.method;
	return method->class == CK_CRI_STOP && method->kind == CK_CONTAINER;
}

/* StopContainer's grace period, in ns */
static uint64_t grace(const struct ck_life *life)
{
	struct ck_wire wire = ck_wire_begin(life->asked.request.p, life->asked.request.len);
	struct ck_wire_field field;
	struct ck_error err;
	uint64_t seconds = 0;
	if (!stops_container(life))
		return 0;
	while (ck_wire_next(&wire, &field, &err) > 0)
		if (field.number == CRI_StopContainerRequest_timeout &&
		    field.type == CK_WIRE_VARINT)
			seconds = field.value;
	return (int64_t)seconds < 0                      ? 0
	       : seconds > CK_DURATION_MAX / CK_NS_PER_S ? CK_DURATION_MAX
							 : seconds * CK_NS_PER_S;
}

/*
 * How long the runtime may take. A stop or removal goes on without its callers: it has
 * destroy_timeout more than the first one waits, or than the grace period. CRI-O takes what is left
 * as the grace period of containers that still run in a pod that is stopped: so they have at most
 * that much more.
 */
static uint64_t patience(const struct ck_life *life)
{
	uint64_t left = life->asked.left, least = grace(life);
	if (left == UINT64_MAX)
		left = CK_STOP_MAX;
	if (life->program->agrees)
		return left ? left : 1;
	return (left < least ? least : left) + life->asked.daemon->conf.destroy_timeout;
}

/* @message is freed; an error is answered */
static void ask(struct ck_life *life, const char *path, int r, struct ck_bytes *message,
		ck_unary_cb *done)
{
	struct ck_daemon *daemon = life->asked.daemon;
	const struct ck_unary_options options = { .path = path,
						  .timeout = patience(life),
						  .reply_max = daemon->conf.list_max };
	struct ck_error err;
	r = r < 0 ? ck_nomem(&err)
		  : ck_unary_start(daemon->upstream, &options, message->p, message->len, done, life,
				   &life->rpc, &err);
	ck_bytes_free(message);
	if (r < 0)
		fail_error(life, &err);
}

static void ask_id(struct ck_life *life, const char *path, const char *id, ck_unary_cb *done)
{
	struct ck_bytes message = { 0 };
	int r = ck_cri_put_id(&message, id);
	ask(life, path, r, &message, done);
}

/* false: it has failed, and was answered */
static bool went_well(struct ck_life *life, const struct ck_unary_reply *reply)
{
	life->rpc = NULL;
	if (reply->status.code == CK_GRPC_OK || reply->status.code == CK_GRPC_NOT_FOUND)
		return true;
	fail_status(life, &reply->status);
	return false;
}

static void forwarded(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_life *life = userdata;
	const struct ck_cri_method *method = life->asked.method;
	const char *id = life->asked.id;
	struct ck_cache *cache = life->asked.daemon->cache;
	int grpc = reply->status.code;
	life->rpc = NULL;
	life->answer =
		(struct ck_unary_reply){ .status = reply->status, .message = reply->message };
	reply->status = (struct ck_grpc_status){ 0 };
	reply->message = (struct ck_bytes){ 0 };
	if (method->class == CK_CRI_REMOVE && (grpc == CK_GRPC_OK || grpc == CK_GRPC_NOT_FOUND))
		ck_object_removed(cache, method->kind, id);
	if (grpc != CK_GRPC_OK) {
		answer(life);
		return;
	}
	if (stops_container(life))
		ck_start_stopped(cache, id);
	if (method->class == CK_CRI_STOP)
		ck_object_seen(cache, method->kind, id, CK_CONDITION_DEAD);
	next_step(life);
}

/* the call itself */
static void forward(struct ck_life *life)
{
	struct ck_error err;
	if (ck_joined_send(&life->asked, CK_LANE_PASS, patience(life), forwarded, life, &life->rpc,
			   &err) < 0)
		fail_error(life, &err);
}

/* ---- telling plugins ------------------------------------------------------------------------- */

/* NRI has called back. false: that was the end */
static bool told(struct ck_life *life)
{
	life->telling = false;
	if (!life->cut)
		return true;
	life_free(life);
	return false;
}

static void goes_on(const struct ck_nri_result *result, void *userdata)
{
	struct ck_life *life = userdata;
	if (!told(life))
		return;
	(void)result;
	next_step(life); /* nobody can refuse an end (R21) */
}

static int tell(struct ck_life *life, struct ck_nri_call *call, ck_nri_cb *done,
		struct ck_error *err)
{
	call->size = sizeof(*call);
	int r = ck_nri_send(life->asked.daemon->nri, call, done, life, err);
	life->telling = r >= 0;
	return r;
}

/* Plugins cannot prevent this event. If there is no memory to tell them, it happens all the same.
 * */
static void tell_end(struct ck_life *life, enum ck_nri_event event, const char *pod_id,
		     const char *container_id, ck_nri_cb *done)
{
	struct ck_nri_call call = { .event = event,
				    .pod_id = pod_id,
				    .container_id = container_id };
	struct ck_error err = { 0 };
	if (tell(life, &call, done, &err) >= 0)
		return;
	const struct ck_nri_result result = { .size = sizeof(result) };
	ck_log(CK_LOG_ERROR,
	       "plugins cannot be told that a sandbox or container stops or is removed: %s",
	       err.text);
	done(&result, life);
}

static void tell_pod(struct ck_life *life, enum ck_nri_event event)
{
	tell_end(life, event, life->asked.id, NULL, goes_on);
}

static void tell_container(struct ck_life *life, enum ck_nri_event event)
{
	tell_end(life, event, NULL, life->asked.id, goes_on);
}

static void tell_stop_pod(struct ck_life *life)
{
	tell_pod(life, CK_NRI_STOP_POD_SANDBOX);
}

static void tell_remove_pod(struct ck_life *life)
{
	tell_pod(life, CK_NRI_REMOVE_POD_SANDBOX);
}

static void tell_stop(struct ck_life *life)
{
	tell_container(life, CK_NRI_STOP_CONTAINER);
}

static void tell_remove(struct ck_life *life)
{
	tell_container(life, CK_NRI_REMOVE_CONTAINER);
}

static void tell_post_update(struct ck_life *life)
{
	tell_container(life, CK_NRI_POST_UPDATE_CONTAINER);
}

static void tell_post_update_pod(struct ck_life *life)
{
	tell_pod(life, CK_NRI_POST_UPDATE_POD_SANDBOX);
}

/* ---- the containers of a pod ----------------------------------------------------------------- */

static void listed(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_life *life = userdata;
	struct ck_error err = { 0 };
	life->rpc = NULL;
	if (reply->status.code != CK_GRPC_OK) {
		fail_status(life, &reply->status);
		return;
	}
	if (ck_objects_read(&life->members, ck_cri_method_named("ListContainers"), reply->message.p,
			    reply->message.len, &err) < 0) {
		fail(life, CK_GRPC_INTERNAL, err.text);
		return;
	}
	next_step(life);
}

static void list(struct ck_life *life)
{
	struct ck_bytes message = { 0 };
	int r = ck_cri_put_inside(&message, CRI_ListContainersRequest_filter,
				  CRI_ContainerFilter_pod_sandbox_id, life->asked.id);
	ask(life, "ListContainers", r, &message, listed);
}

static bool listens(const struct ck_life *life, enum ck_nri_event event, const char *container_id)
{
	return ck_nri_listens(life->asked.daemon->nri, event, CK_CONTAINER, container_id) == 1;
}

static void stop_each(struct ck_life *life);
static void remove_each(struct ck_life *life);

static void next_member(const struct ck_nri_result *result, void *userdata)
{
	struct ck_life *life = userdata;
	(void)result;
	if (!told(life))
		return;
	life->member++;
	life->member_stopped = false;
	step(life);
}

static void member_stopped(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_life *life = userdata;
	if (!went_well(life, reply))
		return;
	ck_object_seen(life->asked.daemon->cache, CK_CONTAINER, life->members.all[life->member].id,
		       CK_CONDITION_DEAD);
	life->member_stopped = true;
	step(life);
}

/* Containers that still run are stopped without a grace period, as the runtimes do. All have been
 * told as stopped when the pod is (R18). */
static void stop_each(struct ck_life *life)
{
	for (; life->member < life->members.n; life->member++, life->member_stopped = false) {
		const struct ck_object *member = &life->members.all[life->member];
		if (member->condition != CK_CONDITION_DEAD && !life->member_stopped) {
			/* a time-out of 0, which is not encoded */
			ask_id(life, "StopContainer", member->id, member_stopped);
			return;
		}
		if (listens(life, CK_NRI_STOP_CONTAINER, member->id)) {
			tell_end(life, CK_NRI_STOP_CONTAINER, life->asked.id, member->id,
				 next_member);
			return;
		}
	}
	life->member = 0;
	next_step(life);
}

static void pod_stopped(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_life *life = userdata;
	if (!went_well(life, reply))
		return;
	ck_object_seen(life->asked.daemon->cache, CK_SANDBOX, life->asked.id, CK_CONDITION_DEAD);
	next_step(life);
}

static void stop_pod(struct ck_life *life)
{
	ask_id(life, "StopPodSandbox", life->asked.id, pod_stopped);
}

static void member_removed(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_life *life = userdata;
	if (!went_well(life, reply))
		return;
	ck_object_removed(life->asked.daemon->cache, CK_CONTAINER,
			  life->members.all[life->member].id);
	life->member++;
	step(life);
}

static void remove_member(const struct ck_nri_result *result, void *userdata)
{
	struct ck_life *life = userdata;
	(void)result;
	if (!told(life))
		return;
	ask_id(life, "RemoveContainer", life->members.all[life->member].id, member_removed);
}

/* all of them are removed before plugins are told of the pod's removal (R26) */
static void remove_each(struct ck_life *life)
{
	if (life->member == life->members.n) {
		next_step(life);
		return;
	}
	const char *id = life->members.all[life->member].id;
	if (listens(life, CK_NRI_STOP_CONTAINER, id) || listens(life, CK_NRI_REMOVE_CONTAINER, id))
		tell_end(life, CK_NRI_REMOVE_CONTAINER, life->asked.id, id, remove_member);
	else
		ask_id(life, "RemoveContainer", id, member_removed);
}

/* ---- a container that is removed without having been stopped --------------------------------- */

static void stopped_first(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_life *life = userdata;
	if (went_well(life, reply))
		tell_stop(life);
}

static void stop_first(struct ck_life *life)
{
	if (listens(life, CK_NRI_STOP_CONTAINER, life->asked.id))
		ask_id(life, "StopContainer", life->asked.id, stopped_first);
	else
		next_step(life);
}

/* ---- what plugins agree to ------------------------------------------------------------------- */

/* field @number of the request; several pieces of a message are concatenated */
static int field_of(const struct ck_bytes *request, uint32_t number, struct ck_bytes *out,
		    bool *ret_there, struct ck_error *err)
{
	struct ck_wire wire = ck_wire_begin(request->p, request->len);
	struct ck_wire_field field;
	int r;
	while ((r = ck_cri_each(&wire, number, &field, err)) > 0) {
		*ret_there = true;
		if (ck_bytes_add(out, field.data, field.len) < 0)
			return ck_nomem(err);
	}
	return r;
}

/* LinuxResources of the request's field @number; nothing if it is absent */
static int resources_of(const struct ck_bytes *request, uint32_t number, struct ck_bytes *out,
			struct ck_error *err)
{
	CK_AUTO_BYTES struct ck_bytes cri = { 0 };
	bool there = false;
	int r = field_of(request, number, &cri, &there, err);
	if (r >= 0 && there)
		r = ck_resources_from_cri(cri.p, cri.len, out, err);
	return r;
}

/* the client's request with other resources in the place of its own */
static int replace_resources(struct ck_life *life, const void *resources, size_t len,
			     struct ck_error *err)
{
	CK_AUTO_BYTES struct ck_bytes rewritten = { 0 };
	struct ck_bytes *request = &life->asked.request;
	int r = ck_apply_update(request->p, request->len, resources, len, &rewritten, err);
	if (r < 0)
		return r;
	ck_bytes_free(request);
	*request = rewritten;
	rewritten = (struct ck_bytes){ 0 };
	return 0;
}

static void agreed(const struct ck_nri_result *result, void *userdata)
{
	struct ck_life *life = userdata;
	struct ck_error err = { 0 };
	if (!told(life))
		return;
	if (result->refusal) {
		fail(life, CK_GRPC_UNKNOWN, result->refusal);
		return;
	}
	if (!life->asked.callers) { /* nobody waits for it any more, and it has not begun */
		end(life);
		return;
	}
	if (result->resources &&
	    replace_resources(life, result->resources, result->resources_len, &err) < 0) {
		fail_error(life, &err);
		return;
	}
	next_step(life);
}

static void ask_plugins(struct ck_life *life, struct ck_nri_call *call)
{
	struct ck_error err = { 0 };
	if (tell(life, call, agreed, &err) < 0)
		fail_error(life, &err);
}

static void ask_update(struct ck_life *life)
{
	CK_AUTO_BYTES struct ck_bytes resources = { 0 };
	struct ck_nri_call call = { .event = CK_NRI_UPDATE_CONTAINER,
				    .container_id = life->asked.id };
	struct ck_error err = { 0 };
	if (resources_of(&life->asked.request, CRI_UpdateContainerResourcesRequest_linux,
			 &resources, &err) < 0) {
		fail_error(life, &err);
		return;
	}
	call.resources = resources.p;
	call.resources_len = resources.len;
	ask_plugins(life, &call);
}

static void probed(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_life *life = userdata;
	int grpc = reply->status.code;
	life->rpc = NULL;
	if (grpc == CK_GRPC_UNAVAILABLE || grpc == CK_GRPC_DEADLINE_EXCEEDED) { /* says nothing */
		fail_status(life, &reply->status);
		return;
	}
	life->asked.daemon->pod_updates =
		grpc == CK_GRPC_UNIMPLEMENTED ? CK_POD_UPDATES_MISSING : CK_POD_UPDATES_THERE;
	if (grpc == CK_GRPC_UNIMPLEMENTED)
		ck_log(CK_LOG_INFO, "the runtime has no UpdatePodSandboxResources: plugins are not "
				    "told UpdatePodSandbox");
	step(life);
}

/* A runtime from before this call must not let plugins hear of an update that never comes. Only its
 * answer tells: so it is asked once, for the pod without an id, which no runtime has. */
static void probe_update_pod(struct ck_life *life)
{
	static step_fn *const pass_on[] = { forward, answer };
	struct ck_bytes nothing = { 0 };
	switch (life->asked.daemon->pod_updates) {
	case CK_POD_UPDATES_UNKNOWN:
		ask(life, "UpdatePodSandboxResources", 0, &nothing, probed);
		break;
	case CK_POD_UPDATES_MISSING:
		life->at = pass_on;
		step(life);
		break;
	case CK_POD_UPDATES_THERE:
		next_step(life);
		break;
	}
}

static void ask_update_pod(struct ck_life *life)
{
	CK_AUTO_BYTES struct ck_bytes overhead = { 0 }, resources = { 0 };
	struct ck_nri_call call = { .event = CK_NRI_UPDATE_POD_SANDBOX, .pod_id = life->asked.id };
	struct ck_error err = { 0 };
	if (resources_of(&life->asked.request, CRI_UpdatePodSandboxResourcesRequest_overhead,
			 &overhead, &err) < 0 ||
	    resources_of(&life->asked.request, CRI_UpdatePodSandboxResourcesRequest_resources,
			 &resources, &err) < 0) {
		fail_error(life, &err);
		return;
	}
	call.overhead = overhead.p;
	call.overhead_len = overhead.len;
	call.resources = resources.p;
	call.resources_len = resources.len;
	ask_plugins(life, &call);
}

/* ---- the programs ---------------------------------------------------------------------------- */

static step_fn *const stop_pod_steps[] = { wait_for_others, list,    stop_each,
					   tell_stop_pod,   forward, answer };
static step_fn *const remove_pod_steps[] = { wait_for_others, list,     stop_each,
					     tell_stop_pod,   stop_pod, remove_each,
					     tell_remove_pod, forward,  answer };
static step_fn *const stop_steps[] = { forward, tell_stop, answer };
static step_fn *const remove_steps[] = { stop_first, tell_remove, forward, answer };
static step_fn *const update_steps[] = { ask_update, forward, tell_post_update, answer };
static step_fn *const update_pod_steps[] = { probe_update_pod, ask_update_pod, forward,
					     tell_post_update_pod, answer };

#define ENDS_CONTAINER (CK_NRI_BIT(STOP_CONTAINER) | CK_NRI_BIT(REMOVE_CONTAINER))
#define ENDS_POD       (CK_NRI_BIT(STOP_POD_SANDBOX) | CK_NRI_BIT(REMOVE_POD_SANDBOX))

static step_fn *const untold_steps[] = { forward, answer };
/* plugins are told at the stop, so a pod is stopped even if the runtime would do so by itself */
static step_fn *const untold_remove_pod_steps[] = { stop_pod, forward, answer };

static const struct program programs[] = {
	{ "StopPodSandbox", CK_NRI_BIT(STOP_CONTAINER) | CK_NRI_BIT(STOP_POD_SANDBOX), false,
	  stop_pod_steps, untold_steps },
	{ "RemovePodSandbox", ENDS_CONTAINER | ENDS_POD, false, remove_pod_steps,
	  untold_remove_pod_steps },
	{ "StopContainer", CK_NRI_BIT(STOP_CONTAINER), false, stop_steps, untold_steps },
	{ "RemoveContainer", ENDS_CONTAINER, false, remove_steps, untold_steps },
	{ "UpdateContainerResources",
	  CK_NRI_BIT(UPDATE_CONTAINER) | CK_NRI_BIT(POST_UPDATE_CONTAINER), true, update_steps,
	  NULL },
	{ "UpdatePodSandboxResources",
	  CK_NRI_BIT(UPDATE_POD_SANDBOX) | CK_NRI_BIT(POST_UPDATE_POD_SANDBOX), true,
	  update_pod_steps, NULL },
};

static const struct program *program_of(const struct ck_call *call)
{
	for (size_t i = 0; i < CK_COUNT(programs); i++)
		if (strcmp(programs[i].rpc, call->method->rpc) == 0)
			return &programs[i];
	return NULL;
}

static bool told_of(const struct ck_daemon *daemon, const struct program *program)
{
	return daemon->nri && ck_plugging_wanted(daemon, program->events);
}

static void choose_steps(struct ck_life *life)
{
	life->at = told_of(life->asked.daemon, life->program) ? life->program->steps
							      : life->program->untold;
	step(life);
}

static void drained(struct ck_turn *turn, int outcome, void *userdata)
{
	struct ck_life *life = userdata;
	const struct ck_error *err = ck_turn_error(turn);
	if (outcome == CK_DRAINED)
		choose_steps(life);
	else if (err && err->code)
		fail_error(life, err);
	else
		fail(life, CK_GRPC_UNAVAILABLE, "creations in this pod sandbox have not ended yet");
}

/* @timeout: of the first caller */
static void drain(struct ck_life *life, uint64_t timeout)
{
	struct ck_joined *asked = &life->asked;
	struct ck_error err = { 0 };
	int r = ck_remove_begin(asked->daemon->cache, asked->method->kind, asked->id, timeout,
				&life->turn, &err);
	if (r < 0)
		fail_error(life, &err);
	else if (r == CK_WAIT)
		ck_turn_watch(life->turn, drained, life);
	else
		drained(life->turn, r, life);
}

/* the same request is under way: one call at the runtime for both (K35) */
static bool joins(struct ck_call *call)
{
	struct ck_life *life;
	DL_FOREACH (call->daemon->lives, life) {
		const struct ck_bytes *request = &life->asked.request;
		if (life->program->agrees || life->cut || life->asked.method != call->method ||
		    request->len != call->request.len ||
		    (request->len && memcmp(request->p, call->request.p, request->len) != 0))
			continue;
		call->daemon->metrics.teardowns_joined[call->method->kind]++;
		ck_join(&life->asked, call);
		return true;
	}
	return false;
}

bool ck_life_begin(struct ck_call *call)
{
	struct ck_daemon *daemon = call->daemon;
	const struct program *program = program_of(call);
	bool removes = call->method->class == CK_CRI_REMOVE;
	if (!program || (!program->untold && !told_of(daemon, program)))
		return false;
	if (!program->agrees && joins(call))
		return true;
	struct ck_life *life = CK_NEW(struct ck_life);
	if (!life) {
		ck_call_answer(call, CK_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		ck_call_free(call);
		return true;
	}
	life->program = program;
	ck_joined_begin(&life->asked, call);
	DL_PREPEND(daemon->lives, life);
	if (removes)
		drain(life, ck_call_timeout(call));
	else
		choose_steps(life);
	return true;
}

void ck_lives_end(struct ck_daemon *daemon)
{
	struct ck_life *life, *next;
	DL_FOREACH_SAFE (daemon->lives, life, next) {
		if (life->telling)
			life->cut = true;
		else
			life_free(life);
	}
}
