/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cri/objects.h"

#define ROOM_MIN 64u /* a small node's pods */

int ck_objects_add(struct ck_objects *objects, const struct ck_object *o)
{
	const char *texts[] = { o->id,      o->pod_name,   o->pod_namespace,
				o->pod_uid, o->sandbox_id, o->container_name };
	size_t len[CK_COUNT(texts)], sum = 0;
	for (size_t i = 0; i < CK_COUNT(texts); i++)
		sum += len[i] = texts[i] ? strlen(texts[i]) + 1 : 0;
	if (objects->n == objects->room) {
		size_t room = objects->room ? 2 * objects->room : ROOM_MIN;
		struct ck_object *grown = ck_realloc(objects->all, room * sizeof(*grown));
		if (!grown)
			return -CK_ENOMEM;
		objects->all = grown;
		objects->room = room;
	}
	char *block = ck_alloc(sum + 1); /* all its strings; the id is first and frees them */
	if (!block)
		return -CK_ENOMEM;
	struct ck_object *copy = &objects->all[objects->n++];
	const char **into[] = { &copy->id,      &copy->pod_name,   &copy->pod_namespace,
				&copy->pod_uid, &copy->sandbox_id, &copy->container_name };
	*copy = *o;
	for (size_t i = 0; i < CK_COUNT(texts); i++) {
		*into[i] = i == 0 || len[i] ? memcpy(block, len[i] ? texts[i] : "", len[i]) : NULL;
		block += len[i];
	}
	return 0;
}

static int gather(const struct ck_object *object, bool id_only, void *userdata)
{
	(void)id_only;
	return ck_objects_add(userdata, object);
}

int ck_objects_read(struct ck_objects *objects, const struct ck_cri_method *method,
		    const void *message, size_t len, struct ck_error *err)
{
	struct ck_bytes uncut = { 0 }; /* nothing is hidden, so nothing is cut */
	int r = ck_filter_response(method, message, len, gather, objects, &uncut, NULL, err);
	ck_bytes_free(&uncut);
	return r < 0 ? r : 0;
}

void ck_objects_fini(struct ck_objects *objects)
{
	for (size_t i = 0; i < objects->n; i++)
		free((char *)objects->all[i].id);
	free(objects->all);
	*objects = (struct ck_objects){ 0 };
}

void ck_objects_free(struct ck_objects *objects)
{
	if (objects)
		ck_objects_fini(objects);
	free(objects);
}
