/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's answer to a create, with a reference count. */
#include "cache/machine/shared-answer.h"
#include "src/base/mem.h"

/* CRI's response to both calls has one field: the id, a string, number 1. */
#define RESPONSE_ID_TAG 0x0a
#define VARINT_MAX      10u

static size_t varint_put(unsigned char *p, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		p[n++] = (unsigned char)(value | 0x80);
	p[n++] = (unsigned char)value;
	return n;
}

struct ck_shared_result *ck_shared_result_new(const char *id, const void *bytes, size_t len)
{
	size_t id_len = strlen(id);
	unsigned char head[1 + VARINT_MAX] = { RESPONSE_ID_TAG };
	size_t head_len = 0;

	if (!bytes) {
		head_len = 1 + varint_put(head + 1, id_len);
		len = head_len + id_len;
	}
	struct ck_shared_result *result = ck_alloc(sizeof(*result) + len + id_len + 1);
	if (!result)
		return NULL;
	char *behind = (char *)result->bytes + len;
	memcpy(behind, id, id_len); /* NOLINT(bugprone-not-null-terminated-result): zeros follow */
	result->id = behind;
	result->refs = 1;
	result->len = len;
	if (!bytes) {
		memcpy(result->bytes, head, head_len);
		memcpy(result->bytes + head_len, id, id_len);
	} else {
		memcpy(result->bytes, bytes, len);
	}
	return result;
}

struct ck_shared_result *ck_shared_result_ref(struct ck_shared_result *result)
{
	if (result)
		__atomic_add_fetch(&result->refs, 1, __ATOMIC_RELAXED);
	return result;
}

void ck_shared_result_unref(struct ck_shared_result *result)
{
	/* the reads of other holders must come before the free */
	if (result && __atomic_sub_fetch(&result->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(result);
}

struct ck_shared_status *ck_shared_status_new(const struct ck_status *status)
{
	struct ck_shared_status *s = CK_NEW(struct ck_shared_status);
	if (!s)
		return NULL;
	s->refs = 1;
	s->grpc = status->grpc;
	s->message = ck_strdup(status->message ? status->message : "");
	s->details = status->details_len ? ck_memdup(status->details, status->details_len) : NULL;
	s->details_len = s->details ? status->details_len : 0;
	if (!s->message || (status->details_len && !s->details)) {
		ck_shared_status_unref(s);
		return NULL;
	}
	return s;
}

struct ck_shared_status *ck_shared_status_ref(struct ck_shared_status *s)
{
	__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

void ck_shared_status_unref(struct ck_shared_status *s)
{
	if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		return;
	free(s->message);
	free(s->details);
	free(s);
}
