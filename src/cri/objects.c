/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cri/objects.h"

#define ROOM_MIN 64u /* a small node's pods */

int ck_objects_add(struct ck_objects *objects, const struct ck_object *object)
{
	if (objects->n == objects->room) {
		size_t room = objects->room ? 2 * objects->room : ROOM_MIN;
		struct ck_object *grown = ck_realloc(objects->all, room * sizeof(*grown));
		if (!grown)
			return -CK_ENOMEM;
		objects->all = grown;
		objects->room = room;
	}
	objects->all[objects->n++] = *object;
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
	int r = ck_filter_keeping(method, message, len, gather, objects, &objects->texts,
				  &uncut, NULL, err);
	ck_bytes_free(&uncut);
	return r < 0 ? r : 0;
}

void ck_objects_fini(struct ck_objects *objects)
{
	free(objects->all);
	ck_texts_fini(&objects->texts);
	*objects = (struct ck_objects){ 0 };
}

void ck_objects_free(struct ck_objects *objects)
{
	if (objects)
		ck_objects_fini(objects);
	free(objects);
}
