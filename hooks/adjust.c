/* SPDX-License-Identifier: Apache-2.0 */
#include "hooks/adjust.h"

struct ck_adjust {
	struct ck_bytes seen; /* Container or LinuxResources */
};

static int adjust_new(const void *bytes, size_t len, struct ck_adjust **ret_adjust, struct ck_error *err)
{
	CK_AUTO(ck_adjust) *adjust = CK_NEW(struct ck_adjust);
	if (!adjust || ck_bytes_add(&adjust->seen, bytes, len) < 0)
		return ck_nomem(err);
	*ret_adjust = CK_TAKE(adjust);
	return 0;
}

int ck_adjust_create(const void *container, size_t len, struct ck_adjust **ret_adjust, struct ck_error *err)
{
	return adjust_new(container, len, ret_adjust, err);
}

int ck_adjust_update(const char *container_id, const void *resources, size_t len, struct ck_adjust **ret_adjust,
		     struct ck_error *err)
{
	(void)container_id;
	return adjust_new(resources, len, ret_adjust, err);
}

int ck_adjust_others(struct ck_adjust **ret_adjust, struct ck_error *err)
{
	return adjust_new(NULL, 0, ret_adjust, err);
}

void ck_adjust_free(struct ck_adjust *adjust)
{
	if (adjust)
		ck_bytes_free(&adjust->seen);
	free(adjust);
}

int ck_adjust_seen(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err)
{
	return ck_bytes_add(out, adjust->seen.p, adjust->seen.len) < 0 ? ck_nomem(err) : 0;
}

int ck_adjust_reply(struct ck_adjust *adjust, enum ck_adjust_reply what, const char *plugin, const void *reply, size_t len,
		    struct ck_error *err)
{
	(void)adjust, (void)what, (void)reply;
	return len ? ck_fail(err, CK_EINVAL, "plugin \"%s\": adjustments are not merged yet", plugin) : 0;
}

bool ck_adjust_is_empty(const struct ck_adjust *adjust)
{
	(void)adjust;
	return true;
}

int ck_adjust_result(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err)
{
	(void)adjust, (void)out, (void)err;
	return 0;
}

int ck_adjust_owners(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err)
{
	(void)adjust, (void)out, (void)err;
	return 0;
}

int ck_adjust_validation(const struct ck_adjust *adjust, const void *pod, size_t pod_len, const char *const *plugins, size_t n,
			 struct ck_bytes *out, struct ck_error *err)
{
	(void)plugins, (void)n;
	return ck_bytes_field(out, 1, pod, pod_len) < 0 || ck_bytes_field(out, 2, adjust->seen.p, adjust->seen.len) < 0
		       ? ck_nomem(err)
		       : 0;
}

size_t ck_adjust_others_n(const struct ck_adjust *adjust)
{
	(void)adjust;
	return 0;
}

int ck_adjust_other(struct ck_adjust *adjust, size_t i, struct ck_adjust_other *ret_other, struct ck_error *err)
{
	(void)adjust, (void)i, (void)ret_other;
	return ck_fail(err, CK_EINVAL, "there is no such change");
}

int ck_adjust_failed(struct ck_adjust *adjust, const bool *failed, struct ck_bytes *out, struct ck_error *err)
{
	(void)adjust, (void)failed, (void)out, (void)err;
	return 0;
}

size_t ck_adjust_evictions_n(const struct ck_adjust *adjust)
{
	(void)adjust;
	return 0;
}

struct ck_adjust_eviction ck_adjust_eviction(const struct ck_adjust *adjust, size_t i)
{
	(void)adjust, (void)i;
	return (struct ck_adjust_eviction){ 0 };
}
