/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_MACHINE_SHARED_ANSWER_H
#define CK_CACHE_MACHINE_SHARED_ANSWER_H
/* The runtime's answer to a create: a result or a status. An entry and the turns that wait for it
 * share it; the last one frees it, on any thread. */
#include "src/crikeep.h"

struct ck_shared_result {
	unsigned refs; /* atomic */
	size_t len;
	const char *id; /* lies behind the bytes */
	unsigned char bytes[];
};

/* ck_shared_result_new - @bytes NULL: make a response with field 1 = id. NULL: out of memory */
struct ck_shared_result *ck_shared_result_new(const char *id, const void *bytes, size_t len);
struct ck_shared_result *ck_shared_result_ref(struct ck_shared_result *result);
void ck_shared_result_unref(struct ck_shared_result *result);

struct ck_shared_status {
	unsigned refs; /* atomic */
	int grpc;
	char *message;
	void *details;
	size_t details_len;
};

/* NULL: out of memory */
struct ck_shared_status *ck_shared_status_new(const struct ck_status *status);
struct ck_shared_status *ck_shared_status_ref(struct ck_shared_status *status);
void ck_shared_status_unref(struct ck_shared_status *status);
#endif
