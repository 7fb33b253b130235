/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_FILTER_H
#define CK_CRI_FILTER_H
/*
 * Objects in answers. What is hidden is cut out of the wire form; all else is copied byte for byte,
 * so fields nobody knows yet survive. Pure: bytes in, bytes out.
 */
#include "src/base/bytes.h"
#include "src/cri/calls.h"

/*
 * One object of an answer. @object: its strings are copies, borrowed for the call, never NULL where
 * its kind has them; @object->condition as the message tells it, or CK_CONDITION_UNKNOWN. What lies
 * in a sandbox's message has that sandbox's id and pod. @id_only: the message has no more than its
 * id (metrics; an event without statuses): leave it out unless it is known to be visible. Such an
 * event is asked about as a container and, if that is to be left out, as a sandbox. An object
 * without an id, or with one over CK_ID_MAX or with a NUL inside, is nobody's: shown unasked.
 * Return: 1 leave it out, 0 show it, or an error.
 */
typedef int ck_hides_fn(const struct ck_object *object, bool id_only, void *userdata);

enum ck_filtered { CK_FILTER_AS_IT_CAME = 0, CK_FILTER_CUT = 1, CK_FILTER_EMPTIED = 2 };

struct ck_filter_count { unsigned shown, hidden; }; /* objects, at any depth */

/*
 * ck_filter_response - walk one message of @method's answer. Hidden objects go with all that is
 * nested in them; a single object that is hidden (a status, an event) empties the message.
 * CK_FILTER_EMPTIED: nothing is left of a message that had something, or the object it is about is
 * hidden; a stream drops it, a list answers an empty message, a status is NOT_FOUND. @ret_message
 * is set with CK_FILTER_CUT. @count: added to; may be NULL. Return: enum ck_filtered,
 * -CK_EMALFORMED, -CK_ENOMEM, or @hides' error.
 */
int ck_filter_response(const struct ck_cri_method *method, const void *message, size_t len,
		       ck_hides_fn *hides, void *userdata, struct ck_bytes *ret_message,
		       struct ck_filter_count *count, struct ck_error *err);

/* an event's type, or -1: enum ContainerEventType of CRI (0 CREATED, 1 STARTED, 2 STOPPED, 3
 * DELETED) */
int ck_filter_event_type(const void *message, size_t len);
#endif
