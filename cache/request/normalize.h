/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_NORMALIZE_H
#define CK_CACHE_REQUEST_NORMALIZE_H
/*
 * The normalized form of a create request: its fields in the order of their names, each written out
 * as bytes. Two fields have equal bytes exactly if they mean the same. Two encodings of one request
 * have one normalized form: the order of fields, map entries and sets does not matter, nor do
 * packed or unpacked numbers, defaults that are sent or omitted, and messages in pieces.
 *
 * It holds the request's values in clear. It lives only until fingerprint.c has made its digests.
 */
#include "cache/request/fields.h"

struct ck_normalized_field {
	const struct ck_field_name *name; /* keys point into the request */
	unsigned char flags;
	const unsigned char *bytes; /* fields follow one another without a gap */
	size_t len;
};

struct ck_normalized {
	struct ck_normalized_field *fields;
	size_t n;
	const unsigned char *image; /* config.image.image, in the request; NULL: none */
	size_t image_len;
	struct ck_request_fields memory; /* holds all of it */
};

/* ck_normalize - @bytes must outlive @ret_form. -CK_EMALFORMED, -CK_ETOOBIG, -CK_ENOMEM */
int ck_normalize(enum ck_kind kind, const void *bytes, size_t len, struct ck_normalized *ret_form,
		 struct ck_error *err);
void ck_normalized_fini(struct ck_normalized *form);
#endif
