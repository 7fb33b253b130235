/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_FILTER_H
#define CK_CRI_FILTER_H
/*
 * Objects in answers. Hidden objects are cut out of the wire form, and so is the annotation that is
 * crikeep's own. Everything else is copied byte for byte, so fields that this code does not know
 * survive. Pure: bytes in, bytes out.
 */
#include "src/base/bytes.h"
#include "src/cri/calls.h"

/*
 * Called for one object of an answer. @object: its strings are copies and borrowed for the call;
 * they are never NULL where its kind has them. Its condition is the message's, or
 * CK_CONDITION_UNKNOWN. A container in a sandbox's message has the id and the pod of that sandbox.
 * @id_only: the message has only the id (metrics; an event without statuses). Hide the object then
 * unless it is known to be visible. Such an event is asked about as a container first and, if that
 * is hidden, as a sandbox. An object without an id, or with an id that is longer than CK_ID_MAX or
 * has a NUL in it, is shown without a call.
 * Return: 1 hide it, 0 show it, or an error.
 */
typedef int ck_hides_fn(const struct ck_object *object, bool id_only, void *userdata);

/*
 * With nri.adjust before-create, plugins are told of a container before the runtime has chosen its
 * id. They get an id of ours, and know the container by it from then on. It is kept in this
 * annotation, which neither plugins nor clients are shown.
 */
#define CK_ALIAS_ANNOTATION "crikeep.io/nri-id"

enum ck_filtered { CK_FILTER_AS_IT_CAME = 0, CK_FILTER_CUT = 1, CK_FILTER_EMPTIED = 2 };

/* texts of objects that are kept, all of them until ck_texts_fini() */
struct ck_texts { /* zeroed */
	struct ck_texts_block *last;
};
void ck_texts_fini(struct ck_texts *texts);

struct ck_filter_count { unsigned shown, hidden; }; /* objects, at any depth */

/*
 * ck_filter_response - walk one message of @method's answer. A hidden object is cut out with all
 * that is nested in it. CK_FILTER_EMPTIED: the object that the message is about (a status, an
 * event) is hidden, or all of a list was. A stream then drops the message, a list answers an empty
 * one, and a status is NOT_FOUND. @ret_message is set with CK_FILTER_CUT. @count: added to; may be
 * NULL. Return: enum ck_filtered, -CK_EMALFORMED, -CK_ENOMEM, or @hides' error.
 */
int ck_filter_response(const struct ck_cri_method *method, const void *message, size_t len,
		       ck_hides_fn *hides, void *userdata, struct ck_bytes *ret_message,
		       struct ck_filter_count *count, struct ck_error *err);

/* ck_filter_keeping - the same. The strings of each object stay where they are, in @texts */
int ck_filter_keeping(const struct ck_cri_method *method, const void *message, size_t len,
		      ck_hides_fn *hides, void *userdata, struct ck_texts *texts,
		      struct ck_bytes *ret_message, struct ck_filter_count *count,
		      struct ck_error *err);

/* ck_filter_event_type - one of CRI's ContainerEventType (0 CREATED, 1 STARTED, 2 STOPPED, 3
 * DELETED), or -1: it is no event, or of another type */
int ck_filter_event_type(const void *message, size_t len);
#endif
