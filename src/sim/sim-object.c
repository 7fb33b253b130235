/* SPDX-License-Identifier: Apache-2.0 */
/* What exists, or is being made: found by id, by the beginning of an id, by name. Nothing here
 * knows of calls. */
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include <utlist.h>

#include "src/base/limits.h"
#include "src/sim/sim-int.h"

uint64_t ck_rt_wall(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * CK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void random_id(char id[CK_RT_ID + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char random[CK_RT_ID / 2];
	while (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		/* interrupted before the pool was filled */
	}
	for (size_t i = 0; i < sizeof(random); i++) {
		id[2 * i] = digits[random[i] >> 4];
		id[2 * i + 1] = digits[random[i] & 15];
	}
	id[CK_RT_ID] = '\0';
}

int ck_rt_object_new(struct ck_rt *rt, enum ck_kind kind, const char *name,
		     struct ck_rt_object **ret_object)
{
	struct ck_rt_object *object;
	HASH_FIND(by_name, rt->by_name[kind], name, strlen(name), object);
	if (object) {
		*ret_object = object;
		return -CK_ECONFLICT;
	}
	object = CK_NEW(struct ck_rt_object);
	if (!object)
		return -CK_ENOMEM;
	*object = (struct ck_rt_object){ .rt = rt, .kind = kind, .name = ck_strdup(name), .number = ++rt->numbers };
	random_id(object->id);
	if (object->name)
		HASH_ADD_KEYPTR(by_name, rt->by_name[kind], object->name, strlen(object->name),
				object);
	if (!object->name || !object->by_name.tbl) {
		ck_rt_object_free(object);
		return -CK_ENOMEM;
	}
	*ret_object = object;
	return 0;
}

int ck_rt_object_exists(struct ck_rt_object *object)
{
	struct ck_rt *rt = object->rt;
	if (ck_rt_uses_begin(object) < 0)
		return -CK_ENOMEM;
	HASH_ADD(by_id, rt->by_id[object->kind], id, CK_RT_ID, object);
	if (!object->by_id.tbl)
		return -CK_ENOMEM;
	DL_APPEND(rt->list[object->kind], object);
	object->exists = true;
	rt->count[object->kind].existing++;
	return 0;
}

static void object_unlist(struct ck_rt_object *object)
{
	struct ck_rt *rt = object->rt;
	HASH_DELETE(by_id, rt->by_id[object->kind], object);
	DL_DELETE(rt->list[object->kind], object);
	rt->count[object->kind].existing--;
	object->exists = false;
}

void ck_rt_object_free(struct ck_rt_object *object)
{
	if (object->by_name.tbl)
		HASH_DELETE(by_name, object->rt->by_name[object->kind], object);
	if (object->exists)
		object_unlist(object);
	ck_loop_timer_free(object->timer);
	ck_bytes_free(&object->config);
	for (int i = 0; i < CK_RT_USES; i++)
		ck_bytes_free(&object->uses[i]);
	free(object->handler);
	free(object->name);
	free(object);
}

int ck_rt_find(struct ck_rt *rt, enum ck_kind kind, const char *id, size_t len,
	       struct ck_rt_object **ret_object)
{
	struct ck_rt_object *object, *found = NULL;
	if (len == CK_RT_ID) {
		HASH_FIND(by_id, rt->by_id[kind], id, CK_RT_ID, found);
	} else if (len && len < CK_RT_ID) {
		DL_FOREACH(rt->list[kind], object) {
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

static void changed(struct ck_rt_object *object, enum ck_rt_change change, const char *verb,
		    int event)
{
	ck_rt_log(object->rt, verb, object);
	ck_rt_keep(object, change);
	ck_rt_event(object, event);
}

void ck_rt_start(struct ck_rt_object *container)
{
	container->state = CK_RT_RUNNING;
	container->started_at = ck_rt_wall();
	changed(container, CK_RT_STARTED, "start", CK_RT_IS_STARTED);
	ck_rt_exit_plan(container);
}

static bool is_of(const struct ck_rt_object *container, const struct ck_rt_object *sandbox)
{
	return sandbox->kind == CK_SANDBOX && !strcmp(container->sandbox_id, sandbox->id);
}

static void ended(struct ck_rt_object *object, unsigned state, uint32_t code, const char *verb)
{
	ck_loop_timer_free(CK_TAKE(object->timer));
	object->state = state;
	object->exit_code = code;
	object->finished_at = ck_rt_wall();
	changed(object, CK_RT_STOPPED, verb, CK_RT_IS_STOPPED);
}

void ck_rt_exit(struct ck_rt_object *container, uint32_t code)
{
	if (container->state == CK_RT_RUNNING)
		ended(container, CK_RT_EXITED, code, "exit");
}

void ck_rt_stop(struct ck_rt_object *object)
{
	enum { KILLED = 128 + 9 };
	struct ck_rt_object *container;
	DL_FOREACH(object->rt->list[CK_CONTAINER], container) {
		if (is_of(container, object))
			ck_rt_stop(container);
	}
	/* a container that never ran stays CREATED, as in containerd */
	if (object->kind == CK_CONTAINER ? object->state != CK_RT_RUNNING
					 : object->state != CK_RT_READY)
		return;
	if (object->kind == CK_CONTAINER)
		ended(object, CK_RT_EXITED, KILLED, "stop");
	else
		ended(object, CK_RT_NOTREADY, 0, "stop");
}

void ck_rt_remove(struct ck_rt_object *object)
{
	struct ck_rt_object *container, *next;
	ck_rt_stop(object);
	DL_FOREACH_SAFE(object->rt->list[CK_CONTAINER], container, next) {
		if (is_of(container, object))
			ck_rt_remove(container);
	}
	object->rt->count[object->kind].destroyed++;
	object_unlist(object);
	changed(object, CK_RT_REMOVED, "remove", CK_RT_IS_DELETED);
	ck_rt_object_free(object);
}
