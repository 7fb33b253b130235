/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: src/sim as it is, on a loop of its own, with parameters that change all the time.
 * What exists outlives its death, in its state file; what is being made does not. */
#include <utlist.h>

#include "src/base/error.h"
#include "src/cri/filter.h"
#include "src/rpc/address.h"
#include "src/sim/sim-int.h"
#include "tests/world/world.h"

#define LATE_IN_LISTS (5 * S)

static struct {
	struct ck_sim sim;
	bool up;
	bool booted;     /* while it was not there: everything has ended */
	uint64_t frozen; /* until then */
	uint64_t partly; /* until then, lists lack something */
	bool finish;     /* as CRI-O; else it rolls back, as containerd */
	unsigned slow;   /* per cent of creations that take longer than the kubelet waits */
	unsigned failing;
} r;

void __real_ck_sim_log(struct ck_sim *sim, const char *verb, const struct ck_sim_object *object);
void __wrap_ck_sim_log(struct ck_sim *sim, const char *verb, const struct ck_sim_object *object);

static uint64_t creation_time(void)
{
	if (!chance(w.calm ? 5 : r.slow))
		return below(500 * MS);
	return S + below((chance(10) ? 60 : 12) * S);
}

void runtime_changes(void)
{
	struct ck_sim_conf *conf = &r.sim.conf;
	unsigned failing = w.calm ? 0 : r.failing;
	conf->create[CK_SANDBOX] = creation_time();
	conf->create[CK_CONTAINER] = creation_time();
	conf->start = chance(w.calm ? 0 : r.slow / 2) ? below(20 * S) : below(200 * MS);
	conf->stop = chance(w.calm ? 0 : r.slow / 2) ? below(40 * S) : below(100 * MS);
	conf->remove = chance(w.calm ? 0 : r.slow / 2) ? below(40 * S) : below(100 * MS);
	conf->list = chance(w.calm ? 0 : r.slow / 4) ? below(10 * S) : below(20 * MS);
	conf->fail[CK_SANDBOX] = chance(failing);
	conf->fail[CK_CONTAINER] = chance(failing);
	conf->fail_start = chance(failing);
	conf->fail_remove = chance(failing);
	conf->fail_list = chance(failing);
}

/* what plugins know a container by, if they were asked before it was created; "" */
static void read_alias(const struct ck_sim_object *container, char to[80])
{
	struct ck_wire config = ck_wire_begin(container->config.p, container->config.len);
	struct ck_wire_field pair, key, value;
	to[0] = '\0';
	while (ck_wire_next(&config, &pair, NULL) == 1) {
		struct ck_wire in = ck_wire_begin(pair.data, pair.len);
		if (pair.number == CRI_ContainerConfig_annotations &&
		    ck_wire_next(&in, &key, NULL) == 1 && ck_wire_next(&in, &value, NULL) == 1 &&
		    key.len == strlen(CK_ALIAS_ANNOTATION) &&
		    !memcmp(key.data, CK_ALIAS_ANNOTATION, key.len))
			snprintf(to, 80, "%.*s", (int)value.len, (const char *)value.data);
	}
}

void __wrap_ck_sim_log(struct ck_sim *sim, const char *verb, const struct ck_sim_object *object)
{
	char alias[80];
	trace("runtime %s %s %.8s", verb, object->name, object->id);
	check_runtime(verb, object->kind, object->id, object->name, object->sandbox_id);
	if (object->kind == CK_CONTAINER && !strcmp(verb, "begin")) {
		read_alias(object, alias);
		check_alias(object->name, alias);
	}
	runtime_changes();
	__real_ck_sim_log(sim, verb, object);
}

static void breaks(struct ck_sim_object *object)
{
	struct ck_sim_object *container;
	check_breaks(object->id);
	DL_FOREACH (r.sim.list[CK_CONTAINER], container)
		if (!strcmp(container->sandbox_id, object->id))
			check_breaks(container->id);
	if (object->kind == CK_CONTAINER)
		ck_sim_container_exit(object, 1);
	else
		ck_sim_object_stop(object);
}

static void everything_ends(void)
{
	struct ck_sim_object *object;
	for (int kind = CK_CONTAINER; kind >= CK_SANDBOX; kind--)
		DL_FOREACH (r.sim.list[kind], object)
			breaks(object);
}

void runtime_start(void)
{
	char text[256];
	struct ck_error err = { 0 };
	snprintf(text, sizeof(text), "cancel=%s,state=%s/runtime.state,images=busybox",
		 r.finish ? "finish" : "rollback", w.dir);
	int fd = ck_unix_listen(w.runtime, 0600, (gid_t)-1, &err);
	if (fd < 0 || ck_sim_open(&r.sim, text, &err) < 0 || ck_sim_listen(&r.sim, fd, &err) < 0)
		world_wrong("the runtime does not start: %s", err.text);
	if (r.booted)
		everything_ends(); /* nobody has seen it yet */
	r.booted = false;
	r.up = true;
	runtime_changes();
	trace("runtime is up");
}

void runtime_kill(void)
{
	if (!r.up)
		return;
	trace("runtime is killed");
	r.up = false;
	r.frozen = 0;
	w.lost++;
	kernel.dead = true; /* nobody hears its last words */
	unlink(w.runtime);
	ck_sim_close(&r.sim);
	kernel.dead = false;
}

void runtime_open(bool slow)
{
	r.finish = chance(50);
	r.slow = w.options.busy ? 30 : slow ? (unsigned)below(90) : 0;
	r.failing = slow && !w.options.busy && chance(50) ? (unsigned)below(20) : 0;
	runtime_start();
}

void runtime_close(void)
{
	runtime_kill();
	memset(&r, 0, sizeof(r));
}

bool runtime_up(void)
{
	return r.up;
}

void runtime_freeze(uint64_t until)
{
	trace("runtime is frozen for %.1f s", (double)(until - kernel.now) / 1e9);
	r.frozen = until;
}

int runtime_fd(void)
{
	return r.up ? sd_event_get_fd(r.sim.loop.event) : -1;
}

bool runtime_turn(void)
{
	return r.up && kernel.now >= r.frozen && loop_turn(&r.sim.loop);
}

void runtime_hangs_up(void)
{
	struct ck_sim_client *client, *next;
	trace("runtime hangs up");
	w.lost++;
	DL_FOREACH_SAFE (r.sim.clients, client, next)
		ck_connection_end(client->conn, "the world hangs up");
}

void runtime_boots(void)
{
	r.booted = !r.up;
	if (r.up)
		everything_ends();
	runtime_kill();
}

void runtime_lists_partly(uint64_t until)
{
	trace("runtime lists partly for %.1f s", (double)(until - kernel.now) / 1e9);
	r.partly = until;
}

/* what ended after its caller had left, a short time ago, may not be listed yet */
static bool is_late(const struct ck_sim_object *object)
{
	return check_may_lack(object->id) && ck_sim_wall() < object->created_at + LATE_IN_LISTS;
}

void __real_ck_sim_create_left(struct ck_sim_object *object);
void __wrap_ck_sim_create_left(struct ck_sim_object *object);
void __wrap_ck_sim_create_left(struct ck_sim_object *object)
{
	check_left(object->name);
	__real_ck_sim_create_left(object);
}

int __real_ck_sim_list_objects(struct ck_sim_call *call);
int __wrap_ck_sim_list_objects(struct ck_sim_call *call);
int __wrap_ck_sim_list_objects(struct ck_sim_call *call)
{
	struct ck_sim_object **list = &r.sim.list[call->method->kind], *left = NULL, *it, *next;
	if (kernel.now < r.partly && !w.calm)
		DL_FOREACH_SAFE (*list, it, next)
			if (is_late(it)) {
				DL_DELETE(*list, it);
				DL_APPEND(left, it);
			}
	int result = __real_ck_sim_list_objects(call);
	DL_FOREACH (*list, it)
		check_in_list(it->id);
	DL_FOREACH_SAFE (left, it, next) {
		DL_DELETE(left, it);
		DL_APPEND(*list, it);
	}
	return result;
}

void runtime_breaks_something(void)
{
	enum ck_kind kind = chance(70) ? CK_CONTAINER : CK_SANDBOX;
	uint64_t n = r.up ? r.sim.count[kind].existing : 0, which = n ? below(n) : 0;
	struct ck_sim_object *object;
	if (!n)
		return;
	DL_FOREACH (r.sim.list[kind], object)
		if (which-- == 0)
			break;
	trace("world breaks %s", object->name);
	breaks(object);
}

bool runtime_each(void (*one)(enum ck_kind kind, const char *id, const char *name, bool alive))
{
	bool making = false;
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		struct ck_sim_object *object;
		for (object = r.sim.by_name[kind]; object; object = object->by_name.next)
			making = making || !object->exists;
		DL_FOREACH (r.sim.list[kind], object)
			one(object->kind, object->id, object->name,
			    kind == CK_SANDBOX ? object->state == CK_SIM_READY
					       : object->state == CK_SIM_RUNNING);
	}
	return !making;
}
