/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet, as far as a runtime sees it:
 *   - it lists sandboxes and containers once a second. Each pod has a worker, which makes one call
 *     at a time and begins with a list that is newer than its last call;
 *   - a sandbox that is listed ready is adopted. If there is none, the last one is stopped, and one
 *     of the next attempt is asked for. A container's attempt is that of its newest one plus 1,
 *     also if that is only created;
 *   - a failed sync is repeated after 10 to 15 s, or at once when a list shows a change;
 *   - what is listed of a pod that is not wanted is stopped and removed, also if nobody knows why
 *     it is there. Of wanted pods what is old and dead is removed once a minute;
 *   - RunPodSandbox may take 2 T, other calls T. Then the call is given up.
 */
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/wire.h"
#include "src/cri/objects.h"
#include "src/rpc/upstream.h"
#include "tests/unit/wire-build.h"
#include "tests/world/world.h"

#define FORGOTTEN (300 * S) /* a pod that was not wanted for so long, and has nothing */

enum step { NOTHING, RUN, CREATE, START, STOP_CONTAINER, STOP, REMOVE_CONTAINER, REMOVE };

static const char *const calls[] = {
	[RUN] = "RunPodSandbox",
	[CREATE] = "CreateContainer",
	[START] = "StartContainer",
	[STOP_CONTAINER] = "StopContainer",
	[STOP] = "StopPodSandbox",
	[REMOVE_CONTAINER] = "RemoveContainer",
	[REMOVE] = "RemovePodSandbox",
};

struct pod {
	char name[24], uid[24];
	unsigned containers_n;
	bool wanted, ran;
	unsigned listed; /* objects of it in the last list */
	uint64_t left;   /* when it was no longer wanted */
	struct ck_unary_call *call;
	enum step step;
	uint64_t called; /* when the last one began */
	unsigned turns;  /* w.turns then */
	uint64_t ended;  /* when its last call ended: it wants a newer list */
	uint64_t pause;  /* it does nothing before */
	uint64_t collect;
	uint64_t seen;   /* a digest of what was listed of it */
	bool failed;     /* something in this sync */
	/* from the list at the beginning of a sync, and from what has succeeded since */
	char sandbox[80], stopped[80];
	uint32_t attempt;
	struct {
		char id[80];
		bool runs, tried;
		uint32_t attempt;
	} want[CONTAINERS_MAX];
	unsigned which;
};

static struct {
	struct ck_loop loop;
	struct ck_upstream *upstream; /* NULL: the kubelet is not there */
	struct ck_loop_timer *tick;
	uint64_t frozen, timeout;
	struct ck_unary_call *listing;
	struct ck_objects sandboxes, containers, fresh; /* fresh: sandboxes of the list under way */
	uint64_t listed, begins; /* when these lists began, the last one and the one under way */
	struct pod pods[PODS_MAX];
	unsigned n, uids, ran; /* ran: of pods whose place others have */
} k;

static const struct ck_object *object_of(enum ck_kind kind, const char *id)
{
	const struct ck_objects *objects = kind == CK_SANDBOX ? &k.sandboxes : &k.containers;
	for (size_t i = 0; i < objects->n; i++)
		if (!strcmp(objects->all[i].id, id))
			return &objects->all[i];
	return NULL;
}

static bool newer(const struct ck_object *a, const struct ck_object *b)
{
	return !b || a->created_at > b->created_at;
}

static unsigned number_of(const struct ck_object *container) /* "c1" */
{
	return container->container_name[1] == '1';
}

static struct pod *pod_of(const char *uid)
{
	for (unsigned i = 0; uid && i < k.n; i++)
		if (!strcmp(k.pods[i].uid, uid))
			return &k.pods[i];
	return NULL;
}

/* nothing of it will ever be seen again */
static bool is_over(const struct pod *pod)
{
	return !pod->wanted && !pod->call && !pod->listed && kernel.now > pod->left + FORGOTTEN;
}

static struct pod *free_place(void)
{
	for (unsigned i = 0; i < k.n; i++)
		if (is_over(&k.pods[i])) {
			k.ran += k.pods[i].ran;
			k.pods[i] = (struct pod){ .name = "" };
			return &k.pods[i];
		}
	return k.n < PODS_MAX ? &k.pods[k.n++] : NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void put_pod(struct ck_bytes *to, uint32_t field, const struct pod *pod, uint32_t attempt)
{
	struct ck_bytes metadata = { 0 }, config = { 0 };
	put_text(&metadata, 1, pod->name);
	put_text(&metadata, 2, pod->uid);
	put_text(&metadata, 3, "ns");
	put_number(&metadata, 4, attempt);
	put(&config, 1, &metadata);
	put_pair(&config, 6, "io.kubernetes.pod.name", pod->name);
	put_pair(&config, 6, "io.kubernetes.pod.namespace", "ns");
	put_pair(&config, 6, "io.kubernetes.pod.uid", pod->uid);
	put(to, field, &config);
}

static struct ck_bytes run_request(const struct pod *pod, char name[96], char slot[96])
{
	struct ck_bytes request = { 0 };
	snprintf(slot, 96, "%s", pod->name);
	snprintf(name, 96, "%s_ns_%s_%u", pod->name, pod->uid, (unsigned)pod->attempt);
	put_pod(&request, 1, pod, pod->attempt);
	return request;
}

static struct ck_bytes create_request(const struct pod *pod, char name[96], char slot[96])
{
	struct ck_bytes metadata = { 0 }, image = { 0 }, config = { 0 }, request = { 0 };
	char own[8];
	unsigned attempt = pod->want[pod->which].attempt;
	snprintf(own, sizeof(own), "c%u", pod->which);
	snprintf(slot, 96, "%s_%s_%.16s", own, pod->name, pod->sandbox);
	snprintf(name, 96, "%s_%s_ns_%s_%u", own, pod->name, pod->uid, attempt);
	put_text(&request, 1, pod->sandbox);
	put_text(&metadata, 1, own);
	put_number(&metadata, 2, attempt);
	put(&config, 1, &metadata);
	put_text(&image, 1, "busybox");
	put(&config, 2, &image);
	put_pair(&config, 9, "io.kubernetes.container.name", own);
	put_pair(&config, 9, "io.kubernetes.pod.name", pod->name);
	put_pair(&config, 9, "io.kubernetes.pod.namespace", "ns");
	put_pair(&config, 9, "io.kubernetes.pod.uid", pod->uid);
	put(&request, 2, &config);
	put_pod(&request, 3, pod, 0);
	return request;
}

/* ---- a worker -------------------------------------------------------------------------------- */

static void sync_on(struct pod *pod);

static void sync_ends(struct pod *pod)
{
	pod->step = NOTHING;
	pod->ended = kernel.now;
	pod->pause = pod->failed ? kernel.now + 10 * S + below(5 * S) : 0;
}

static void succeeded(struct pod *pod, const struct ck_bytes *answer, const char *name)
{
	struct ck_wire wire = ck_wire_begin(answer->p, answer->len);
	struct ck_wire_field id;
	if (pod->step == START) {
		pod->want[pod->which].runs = true;
		check_runs(pod->want[pod->which].id);
	}
	if (pod->step != RUN && pod->step != CREATE)
		return;
	char *to = pod->step == RUN ? pod->sandbox : pod->want[pod->which].id;
	if (ck_wire_next(&wire, &id, NULL) != 1 || id.number != 1)
		world_wrong("an answer without an id");
	else
		snprintf(to, sizeof(pod->sandbox), "%.*s", (int)id.len, (const char *)id.data);
	check_given(to, name);
}

static void name_of_call(const struct pod *pod, char name[96])
{
	char slot[96];
	struct ck_bytes request = { 0 };
	*name = '\0';
	if (pod->step == RUN)
		request = run_request(pod, name, slot);
	else if (pod->step == CREATE)
		request = create_request(pod, name, slot);
	ck_bytes_free(&request);
}

static void gives_up(const struct pod *pod)
{
	char name[96];
	name_of_call(pod, name);
	if (k.frozen > pod->called)
		check_slept(name);
	/* it was not read, or could not be without memory; or crikeepd was killed before it could
	 * write that it was */
	if (w.turns == pod->turns || kernel.scarce || w.killed_at == pod->called)
		check_unread(name, pod->step == CREATE ? pod->sandbox : "");
}

static void answered(struct ck_unary_reply *reply, void *userdata)
{
	struct pod *pod = userdata;
	char name[96];
	pod->call = NULL;
	trace("kubelet %s %s: %d", calls[pod->step], pod->name, reply->status.code);
	name_of_call(pod, name);
	if (pod->step == START && reply->status.code == CK_GRPC_NOT_FOUND)
		check_unknown(pod->want[pod->which].id);
	if (reply->status.code == CK_GRPC_OK)
		succeeded(pod, &reply->message, name);
	else
		gives_up(pod);
	pod->failed = pod->failed || reply->status.code != CK_GRPC_OK;
	/* a failed sandbox ends the sync, a failed container does not stop the next one */
	if (pod->step == STOP || (pod->failed && pod->step == RUN) || pod->step > START ||
	    !pod->wanted)
		sync_ends(pod);
	else
		sync_on(pod);
}

static void call(struct pod *pod, enum step step, const char *id)
{
	char name[96], slot[96];
	struct ck_unary_options options = { .path = calls[step],
					    .timeout = k.timeout * (step == RUN ? 2 : 1) };
	struct ck_bytes request = { 0 };
	struct ck_error err;
	pod->step = step;
	pod->called = kernel.now;
	pod->turns = w.turns;
	if (step == RUN)
		request = run_request(pod, name, slot);
	else if (step == CREATE)
		request = create_request(pod, name, slot);
	else
		put_text(&request, 1, id);
	if (step == STOP_CONTAINER)
		put_number(&request, 2, 10);
	int r = ck_unary_start(k.upstream, &options, request.p, request.len, answered, pod,
			       &pod->call, &err);
	ck_bytes_free(&request);
	trace("kubelet %s %s%s", calls[step], pod->name, r < 0 ? ": no connection" : "");
	if (r < 0) {
		pod->failed = true;
		sync_ends(pod);
	} else if (step == RUN || step == CREATE) {
		check_asked(slot, name, step == RUN ? "" : pod->sandbox);
	} else if (step > START) {
		check_ends(id, step == REMOVE_CONTAINER || step == REMOVE);
	}
}

/* what the last list says about the pod */
static void read_list(struct pod *pod)
{
	const struct ck_object *last = NULL, *newest[CONTAINERS_MAX] = { NULL };
	pod->sandbox[0] = '\0';
	pod->which = 0;
	pod->failed = false;
	memset(pod->want, 0, sizeof(pod->want));
	for (size_t i = 0; i < k.sandboxes.n; i++) {
		const struct ck_object *o = &k.sandboxes.all[i];
		if (!strcmp(o->pod_uid, pod->uid) && newer(o, last))
			last = o;
	}
	pod->attempt = last ? last->attempt + 1 : 0;
	if (last && last->condition == CK_CONDITION_READY)
		snprintf(pod->sandbox, sizeof(pod->sandbox), "%s", last->id);
	for (size_t i = 0; i < k.containers.n; i++) {
		const struct ck_object *o = &k.containers.all[i];
		unsigned c = number_of(o);
		if (strcmp(o->pod_uid, pod->uid) != 0 || !newer(o, newest[c]))
			continue;
		newest[c] = o;
		pod->want[c].attempt = o->attempt + 1;
		pod->want[c].runs = o->condition == CK_CONDITION_RUNNING &&
				    !strcmp(o->sandbox_id, pod->sandbox);
	}
	if (last && !*pod->sandbox && strcmp(pod->stopped, last->id) != 0) {
		snprintf(pod->stopped, sizeof(pod->stopped), "%s", last->id);
		call(pod, STOP, last->id);
	}
}

static bool is_of(const struct pod *pod, const struct ck_object *o)
{
	return !strcmp(o->pod_uid, pod->uid);
}

/* the first one that is to be stopped, or removed. @all: also what is in use */
static bool clean(struct pod *pod, bool all, bool stop, enum ck_kind kind)
{
	const struct ck_objects *objects = kind == CK_SANDBOX ? &k.sandboxes : &k.containers;
	enum ck_condition alive = kind == CK_SANDBOX ? CK_CONDITION_READY : CK_CONDITION_RUNNING;
	for (size_t i = 0; i < objects->n; i++) {
		const struct ck_object *o = &objects->all[i];
		if (!is_of(pod, o) || (stop && o->condition != alive))
			continue;
		bool old = kind == CK_SANDBOX ? strcmp(o->id, pod->sandbox) != 0
					      : o->attempt + 1 < pod->want[number_of(o)].attempt;
		/* two may have been started, one after the other: straight at the runtime, or of
		 * what was not written (K32) */
		bool leave = o->condition == alive && !w.bypassed && !check_may_run_twice(o->id);
		if (!all && (!old || leave))
			continue;
		if (stop)
			call(pod, kind == CK_SANDBOX ? STOP : STOP_CONTAINER, o->id);
		else
			call(pod, kind == CK_SANDBOX ? REMOVE : REMOVE_CONTAINER, o->id);
		return true;
	}
	return false;
}

static bool clean_up(struct pod *pod, bool all)
{
	if (clean(pod, all, true, CK_CONTAINER) || (all && clean(pod, true, true, CK_SANDBOX)))
		return true;
	return clean(pod, all, false, CK_CONTAINER) || clean(pod, all, false, CK_SANDBOX);
}

static void sync_on(struct pod *pod)
{
	if (!*pod->sandbox) {
		call(pod, RUN, NULL);
		return;
	}
	for (; pod->which < pod->containers_n; pod->which++) {
		if (pod->want[pod->which].runs)
			continue;
		if (!pod->want[pod->which].tried) {
			pod->want[pod->which].tried = true;
			call(pod, CREATE, NULL);
			return;
		}
		if (*pod->want[pod->which].id && pod->step == CREATE) {
			call(pod, START, pod->want[pod->which].id);
			return;
		}
	}
	pod->ran = pod->ran || !pod->failed;
	sync_ends(pod);
}

static uint64_t digest(const struct pod *pod)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < k.sandboxes.n + k.containers.n; i++) {
		const struct ck_object *o = i < k.sandboxes.n
						    ? &k.sandboxes.all[i]
						    : &k.containers.all[i - k.sandboxes.n];
		if (!is_of(pod, o) ||
		    (o->kind == CK_CONTAINER && o->condition == CK_CONDITION_READY))
			continue;
		uint64_t one = (uint64_t)o->condition;
		for (const char *c = o->id; *c; c++)
			one = one * 31 + (unsigned char)*c;
		sum += random_next(&one);
	}
	return sum;
}

static void pod_step(struct pod *pod)
{
	if (!pod->wanted && !pod->listed && !pod->call)
		return;
	uint64_t seen = digest(pod);
	if (seen != pod->seen)
		pod->pause = 0;
	pod->seen = seen;
	if (pod->call || kernel.now < pod->pause || k.listed <= pod->ended)
		return;
	if (!pod->wanted) {
		pod->failed = false;
		clean_up(pod, true);
		return;
	}
	read_list(pod);
	if (!pod->call && pod->step == NOTHING && kernel.now >= pod->collect && pod->ran) {
		pod->collect = kernel.now + 60 * S;
		clean_up(pod, false);
	}
	if (!pod->call && pod->step == NOTHING)
		sync_on(pod);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* a pod that was forgotten, because nothing of it was listed for long */
static void find_again(const struct ck_object *o)
{
	struct pod *pod = pod_of(o->pod_uid) ? NULL : free_place();
	if (!pod)
		return;
	snprintf(pod->name, sizeof(pod->name), "%s", o->pod_name);
	snprintf(pod->uid, sizeof(pod->uid), "%s", o->pod_uid);
	pod->listed = 1;
	trace("pod %s is listed and not wanted, uid %s", pod->name, pod->uid);
}

static void count_listed(void)
{
	const struct ck_objects *const lists[] = { &k.sandboxes, &k.containers };
	for (unsigned i = 0; i < k.n; i++)
		k.pods[i].listed = 0;
	for (size_t l = 0; l < CK_COUNT(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++) {
			struct pod *pod = pod_of(lists[l]->all[i].pod_uid);
			if (pod)
				pod->listed++;
		}
	for (size_t l = 0; l < CK_COUNT(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++)
			find_again(&lists[l]->all[i]);
}

static void list(const char *rpc);

static void listed(struct ck_unary_reply *reply, void *userdata)
{
	const struct ck_cri_method *method = userdata;
	struct ck_objects *to = method->kind == CK_SANDBOX ? &k.fresh : &k.containers;
	struct ck_objects now = { 0 };
	k.listing = NULL;
	if (reply->status.code != CK_GRPC_OK ||
	    ck_objects_read(&now, method, reply->message.p, reply->message.len, NULL) < 0) {
		trace("kubelet %s: %d", method->rpc, reply->status.code);
		ck_objects_fini(&now);
		return;
	}
	check_listed(method->kind, now.all, now.n, k.begins);
	ck_objects_fini(to);
	*to = now;
	if (method->kind == CK_SANDBOX) {
		list("ListContainers");
		return;
	}
	ck_objects_fini(&k.sandboxes);
	k.sandboxes = k.fresh;
	k.fresh = (struct ck_objects){ 0 };
	k.listed = k.begins;
	count_listed();
	for (unsigned i = 0; i < k.n; i++)
		pod_step(&k.pods[i]);
}

static void list(const char *rpc)
{
	const struct ck_unary_options options = { .path = rpc, .timeout = k.timeout };
	const struct ck_cri_method *method = ck_cri_method_named(rpc);
	struct ck_error err;
	if (method->kind == CK_SANDBOX)
		k.begins = kernel.now;
	ck_unary_start(k.upstream, &options, NULL, 0, listed, (void *)(uintptr_t)method,
		       &k.listing, &err);
}

static void tick(void *userdata)
{
	(void)userdata;
	if (!k.listing)
		list("ListPodSandbox");
	ck_loop_timer(&k.loop, &k.tick, kernel.now + S, tick, NULL);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void up(void *userdata)
{
	(void)userdata;
}

static void down(const char *why, void *userdata)
{
	(void)why, (void)userdata;
}

static void redact(const char *text, char *out)
{
	(void)text;
	out[0] = '\0';
}

void kubelet_open(void)
{
	static const uint64_t timeouts[] = { 2, 5, 10, 30 };
	k.timeout = timeouts[below(CK_COUNT(timeouts))] * S;
	kubelet_start();
}

void kubelet_start(void)
{
	static const struct ck_upstream_owner owner = { .up = up, .down = down, .redact = redact };
	struct ck_error err = { 0 };
	const char *path = w.straight ? w.runtime : w.cri;
	if (ck_loop_init(&k.loop, &err) < 0 ||
	    ck_upstream_new(&k.loop, path, &owner, NULL, &k.upstream, &err) < 0)
		world_wrong("the kubelet does not start: %s", err.text);
	k.listed = 0;
	ck_loop_timer(&k.loop, &k.tick, kernel.now + below(S), tick, NULL);
	trace("kubelet is up");
}

void kubelet_kill(void)
{
	if (!k.upstream)
		return;
	trace("kubelet is killed");
	kernel.dead = true; /* it says nothing about its end */
	for (unsigned i = 0; i < k.n; i++) {
		struct pod *pod = &k.pods[i];
		if (pod->call)
			gives_up(pod);
		ck_unary_cancel(CK_TAKE(pod->call));
		pod->ended = pod->pause = pod->seen = 0;
		pod->step = NOTHING;
		pod->stopped[0] = '\0';
	}
	ck_unary_cancel(CK_TAKE(k.listing));
	ck_upstream_free(CK_TAKE(k.upstream));
	ck_loop_timer_free(CK_TAKE(k.tick));
	ck_loop_fini(&k.loop);
	kernel.dead = false;
	ck_objects_fini(&k.sandboxes);
	ck_objects_fini(&k.containers);
	ck_objects_fini(&k.fresh);
	k.frozen = 0;
}

void kubelet_close(void)
{
	kubelet_kill();
	memset(&k, 0, sizeof(k));
}

bool kubelet_up(void)
{
	return k.upstream;
}

void kubelet_freeze(uint64_t until)
{
	trace("kubelet is frozen for %.1f s", (double)(until - kernel.now) / 1e9);
	k.frozen = until;
}

int kubelet_fd(void)
{
	return k.upstream ? sd_event_get_fd(k.loop.event) : -1;
}

bool kubelet_turn(void)
{
	return k.upstream && kernel.now >= k.frozen && loop_turn(&k.loop);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static struct pod *wanted_named(const char *name)
{
	for (unsigned i = 0; i < k.n; i++)
		if (k.pods[i].wanted && !strcmp(k.pods[i].name, name))
			return &k.pods[i];
	return NULL;
}

void kubelet_add_pod(void)
{
	char name[sizeof(k.pods->name)];
	snprintf(name, sizeof(name), "p%u",
		 w.options.busy ? k.uids % PODS_MAX : (unsigned)below(12));
	struct pod *pod = wanted_named(name) ? NULL : free_place();
	if (!pod)
		return;
	memcpy(pod->name, name, sizeof(name));
	snprintf(pod->uid, sizeof(pod->uid), "u%u", ++k.uids);
	pod->containers_n = 1 + (unsigned)below(CONTAINERS_MAX);
	pod->wanted = true;
	trace("pod %s is wanted, uid %s", pod->name, pod->uid);
}

void kubelet_delete_pod(void)
{
	uint64_t which = below(kubelet_pods());
	struct pod *pod = NULL;
	for (unsigned i = 0; i < k.n && !pod; i++)
		if (k.pods[i].wanted && which-- == 0)
			pod = &k.pods[i];
	if (!pod)
		return;
	trace("pod %s is not wanted, uid %s", pod->name, pod->uid);
	pod->wanted = false;
	pod->left = kernel.now;
	pod->pause = 0;
	if (!pod->call || chance(50))
		return;
	gives_up(pod);
	ck_unary_cancel(CK_TAKE(pod->call)); /* a newer kubelet ends the call */
	sync_ends(pod);
}

unsigned kubelet_pods(void)
{
	unsigned n = 0;
	for (unsigned i = 0; i < k.n; i++)
		n += k.pods[i].wanted;
	return n;
}

unsigned kubelet_ran(void)
{
	unsigned n = k.ran;
	for (unsigned i = 0; i < k.n; i++)
		n += k.pods[i].ran;
	return n;
}

bool kubelet_wants(enum ck_kind kind, const char *id)
{
	const struct ck_object *o = object_of(kind, id);
	const struct pod *pod = o ? pod_of(o->pod_uid) : NULL;
	return pod && pod->wanted &&
	       !strcmp(kind == CK_SANDBOX ? o->id : o->sandbox_id, pod->sandbox);
}

bool kubelet_content(char *why, size_t size)
{
	for (unsigned i = 0; i < k.n; i++) {
		struct pod *pod = &k.pods[i];
		unsigned running = 0, all = 0, ready = 0;
		for (size_t j = 0; j < k.containers.n; j++) {
			running += is_of(pod, &k.containers.all[j]) &&
				   k.containers.all[j].condition == CK_CONDITION_RUNNING;
			all += is_of(pod, &k.containers.all[j]);
		}
		for (size_t j = 0; j < k.sandboxes.n; j++) {
			ready += is_of(pod, &k.sandboxes.all[j]) &&
				 k.sandboxes.all[j].condition == CK_CONDITION_READY;
			all += is_of(pod, &k.sandboxes.all[j]);
		}
		unsigned should = pod->wanted ? pod->containers_n : 0;
		if (running == should && ready == pod->wanted && all == running + ready &&
		    !pod->call)
			continue;
		snprintf(why, size,
			 "pod %s (uid %s, %s) has %u of %u containers running, %u ready sandboxes, "
			 "%u objects in all, and calls %s",
			 pod->name, pod->uid, pod->wanted ? "wanted" : "not wanted", running,
			 should, ready, all, pod->call ? calls[pod->step] : "nothing");
		return false;
	}
	return true;
}
