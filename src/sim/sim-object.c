/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that exist or are being created, found by id, by a prefix of an id, or by name. This file
 * does not deal with calls. */
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include <utlist.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/sim/sim-int.h"

uint64_t ck_sim_wall(void)
{
	return ck_clock_ns(CLOCK_REALTIME);
}

static void random_id(char id[CK_SIM_ID + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char random[CK_SIM_ID / 2];
	while (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		/* interrupted while the kernel had no random numbers yet */
	}
	for (size_t i = 0; i < sizeof(random); i++) {
		id[2 * i] = digits[random[i] >> 4];
		id[2 * i + 1] = digits[random[i] & 15];
	}
	id[CK_SIM_ID] = '\0';
}

int ck_sim_object_new(struct ck_sim *sim, enum ck_kind kind, const char *name,
		      struct ck_sim_object **ret_object)
{
	struct ck_sim_object *object;
	HASH_FIND(by_name, sim->by_name[kind], name, strlen(name), object);
	if (object) {
		*ret_object = object;
		return -CK_ECONFLICT;
	}
	object = CK_NEW(struct ck_sim_object);
	if (!object)
		return -CK_ENOMEM;
	*object = (struct ck_sim_object){
		.sim = sim, .kind = kind, .name = ck_strdup(name), .number = ++sim->numbers
	};
	random_id(object->id);
	if (object->name)
		HASH_ADD_KEYPTR(by_name, sim->by_name[kind], object->name, strlen(object->name),
				object);
	if (!object->name || !object->by_name.tbl) {
		ck_sim_object_free(object);
		return -CK_ENOMEM;
	}
	*ret_object = object;
	return 0;
}

int ck_sim_object_exists(struct ck_sim_object *object)
{
	struct ck_sim *sim = object->sim;
	if (ck_sim_uses_begin(object) < 0)
		return -CK_ENOMEM;
	HASH_ADD(by_id, sim->by_id[object->kind], id, CK_SIM_ID, object);
	if (!object->by_id.tbl)
		return -CK_ENOMEM;
	DL_APPEND(sim->list[object->kind], object);
	object->exists = true;
	sim->count[object->kind].existing++;
	return 0;
}

static void object_unlist(struct ck_sim_object *object)
{
	struct ck_sim *sim = object->sim;
	HASH_DELETE(by_id, sim->by_id[object->kind], object);
	DL_DELETE(sim->list[object->kind], object);
	sim->count[object->kind].existing--;
	object->exists = false;
}

void ck_sim_object_free(struct ck_sim_object *object)
{
	if (object->by_name.tbl)
		HASH_DELETE(by_name, object->sim->by_name[object->kind], object);
	if (object->exists)
		object_unlist(object);
	ck_loop_timer_free(object->timer);
	ck_bytes_free(&object->config);
	for (int i = 0; i < CK_SIM_USES; i++)
		ck_bytes_free(&object->uses[i]);
	free(object->handler);
	free(object->name);
	free(object);
}

int ck_sim_object_find(struct ck_sim *sim, enum ck_kind kind, const char *id, size_t len,
		       struct ck_sim_object **ret_object)
{
	struct ck_sim_object *object, *found = NULL;
	if (len == CK_SIM_ID) {
		HASH_FIND(by_id, sim->by_id[kind], id, CK_SIM_ID, found);
	} else if (len && len < CK_SIM_ID) {
		DL_FOREACH (sim->list[kind], object) {
			if (strncmp(object->id, id, len) != 0)
				continue;
			if (found)
				return -CK_ECONFLICT;
			found = object;
		}
	}
	if (!found)
		return -CK_ENOTFOUND;
	*ret_object = found;
	return 0;
}

/* ---- changes of state ------------------------------------------------------------------------ */

static void changed(struct ck_sim_object *object, enum ck_sim_change change, const char *verb,
		    int event)
{
	ck_sim_log(object->sim, verb, object);
	ck_sim_keep(object, change);
	ck_sim_event(object, event);
}

void ck_sim_container_start(struct ck_sim_object *container)
{
	container->state = CK_SIM_RUNNING;
	container->started_at = ck_sim_wall();
	changed(container, CK_SIM_STARTED, "start", CK_SIM_IS_STARTED);
	ck_sim_container_exit_plan(container);
}

static bool is_of(const struct ck_sim_object *container, const struct ck_sim_object *sandbox)
{
	return sandbox->kind == CK_SANDBOX && !strcmp(container->sandbox_id, sandbox->id);
}

static void ended(struct ck_sim_object *object, unsigned state, uint32_t code, const char *verb)
{
	ck_loop_timer_free(CK_TAKE(object->timer));
	object->state = state;
	object->exit_code = code;
	object->finished_at = ck_sim_wall();
	changed(object, CK_SIM_STOPPED, verb, CK_SIM_IS_STOPPED);
}

void ck_sim_container_exit(struct ck_sim_object *container, uint32_t code)
{
	if (container->state == CK_SIM_RUNNING)
		ended(container, CK_SIM_EXITED, code, "exit");
}

void ck_sim_object_stop(struct ck_sim_object *object)
{
	enum { KILLED = 128 + 9 };
	struct ck_sim_object *container;
	DL_FOREACH (object->sim->list[CK_CONTAINER], container) {
		if (is_of(container, object))
			ck_sim_object_stop(container);
	}
	/* a container that never ran stays CREATED, as in containerd */
	if (object->kind == CK_CONTAINER ? object->state != CK_SIM_RUNNING
					 : object->state != CK_SIM_READY)
		return;
	if (object->kind == CK_CONTAINER)
		ended(object, CK_SIM_EXITED, KILLED, "stop");
	else
		ended(object, CK_SIM_NOTREADY, 0, "stop");
}

void ck_sim_object_remove(struct ck_sim_object *object)
{
	struct ck_sim_object *container, *next;
	ck_sim_object_stop(object);
	DL_FOREACH_SAFE (object->sim->list[CK_CONTAINER], container, next) {
		if (is_of(container, object))
			ck_sim_object_remove(container);
	}
	object->sim->count[object->kind].destroyed++;
	object_unlist(object);
	changed(object, CK_SIM_REMOVED, "remove", CK_SIM_IS_DELETED);
	ck_sim_object_free(object);
}
