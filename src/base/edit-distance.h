/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_EDIT_DISTANCE_H
#define CK_BASE_EDIT_DISTANCE_H
/* How far a mistyped name is from one that exists: "did you mean ...?" */
#include <stddef.h>

#define CK_EDIT_DISTANCE_MAX 2u /* more than two mistakes make another word */

/* ck_edit_distance - letters to add, drop or change to make @b of @a; two that changed places count
 * as one slip, as in "lsit". SIZE_MAX: one of them is too long to be a name */
size_t ck_edit_distance(const char *a, const char *b);
#endif
