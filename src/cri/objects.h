/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_OBJECTS_H
#define CK_CRI_OBJECTS_H
/*
 * The objects of an answer, copied out of it: to reconcile with a whole list, to answer a job of
 * the cache, to look for conflicts.
 */
#include "src/cri/filter.h"

/* zeroed, then ck_objects_fini(); or on the heap, made by CK_NEW(), then ck_objects_free() */
struct ck_objects {
	struct ck_object *all;
	size_t n, room;
	struct ck_texts texts; /* their strings */
};
/* ck_objects_add - @object: inside ck_filter_keeping() with @objects->texts. 0, -CK_ENOMEM */
int ck_objects_add(struct ck_objects *objects, const struct ck_object *object);
/* ck_objects_read - all objects of one message of @method's answer, nested ones too. 0, or
 * -CK_EMALFORMED, -CK_ENOMEM: then @objects has those read so far, not all */
int ck_objects_read(struct ck_objects *objects, const struct ck_cri_method *method,
		    const void *message, size_t len, struct ck_error *err);
void ck_objects_fini(struct ck_objects *objects);
void ck_objects_free(struct ck_objects *objects); /* NULL is fine */
#endif
