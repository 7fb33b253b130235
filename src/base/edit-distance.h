/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_EDIT_DISTANCE_H
#define CK_BASE_EDIT_DISTANCE_H
/* The distance between a mistyped name and an existing one, for "did you mean ...?" */
#include <stddef.h>

#define CK_EDIT_DISTANCE_MAX 2u /* more than two mistakes make another word */

/* ck_edit_distance - how many letters to add, drop or change to make @b of @a. Two letters in each
 * other's place count as one mistake, as in "lsit". SIZE_MAX: one text is too long to be a name */
size_t ck_edit_distance(const char *a, const char *b);
#endif
