/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte selects a call of the table; the rest is its answer and its request. The filtered
 * answer is still a message, and has no hidden objects. A request that was rewritten does not
 * change when it is read again.
 */
#include <stdlib.h>
#include <string.h>

#include "src/base/wire.h"
#include "src/base/limits.h"
#include "src/cri/filter.h"
#include "src/cri/guard.h"
#include "src/cri/objects.h"
#include "tests/fuzz/fuzz.h"

enum who { NOBODY, EVERYBODY, SOME };

static void check(bool holds)
{
	if (!holds)
		abort();
}

static unsigned hash(const char *id, int kind)
{
	unsigned h = (unsigned)kind;
	while (*id)
		h = h * 31 + (unsigned char)*id++;
	return h;
}

static int hides(const struct ck_object *object, bool id_only, void *userdata)
{
	const enum who *who = userdata;

	(void)id_only;
	check(object->kind == CK_SANDBOX || object->kind == CK_CONTAINER);
	check(*object->id && strlen(object->id) <= CK_ID_MAX);
	check(object->pod_name && object->pod_namespace && object->pod_uid);
	check((object->kind == CK_CONTAINER) == (object->sandbox_id != NULL));
	check((object->kind == CK_CONTAINER) == (object->container_name != NULL));
	return *who == EVERYBODY || (*who == SOME && hash(object->id, object->kind) % 2);
}

static void check_filter(const struct ck_cri_method *method, const uint8_t *data, size_t size,
			 enum who who)
{
	struct ck_bytes out = { 0 }, again = { 0 };
	struct ck_filter_count count = { 0 }, left = { 0 };
	struct ck_error err;
	int r = ck_filter_response(method, data, size, hides, &who, &out, &count, &err);

	check(r >= 0 || r == -CK_EMALFORMED);
	if (r >= 0 && who == NOBODY)
		check(r == CK_FILTER_AS_IT_CAME && count.hidden == 0);
	if (r >= 0)
		check((r == CK_FILTER_AS_IT_CAME) == (count.hidden == 0));
	if (r == CK_FILTER_CUT) {
		check(out.len && out.len < size);
		check(ck_filter_response(method, out.p, out.len, hides, &who, &again, &left,
					 &err) == CK_FILTER_AS_IT_CAME);
		check(left.shown == count.shown && left.hidden == 0);
	}
	ck_bytes_free(&out);
}

/* their texts are whole when all are read */
static void check_objects(const struct ck_cri_method *method, const uint8_t *data, size_t size)
{
	struct ck_objects objects = { 0 };
	struct ck_error err;
	enum who who = NOBODY;
	int r = ck_objects_read(&objects, method, data, size, &err);

	check(r == 0 || r == -CK_EMALFORMED);
	for (size_t i = 0; i < objects.n; i++)
		hides(&objects.all[i], false, &who);
	ck_objects_fini(&objects);
}

static int resolve(enum ck_kind kind, const char *id, const char **ret_id, void *userdata)
{
	static char full[CK_ID_MAX + 8];
	size_t len = strlen(id);

	(void)userdata;
	check(kind == CK_SANDBOX || kind == CK_CONTAINER);
	check(len && len <= CK_ID_MAX);
	if (hash(id, kind) % 3 == 0)
		return 1;
	memcpy(full, id, len + 1);
	if (id[len - 1] != '!') /* such an id is complete */
		memcpy(full + len, "full!", 6);
	*ret_id = full;
	return hash(full, kind) % 3 == 0;
}

static void check_guard(const struct ck_cri_method *method, const uint8_t *data, size_t size)
{
	struct ck_bytes out = { 0 }, again = { 0 };
	char id[CK_ID_MAX + 1], id_again[CK_ID_MAX + 1];
	struct ck_error err;
	int r = ck_guard_request(method, data, size, resolve, NULL, id, &out, &err);

	check(r >= 0 || r == -CK_EMALFORMED || r == -CK_ETOOBIG);
	if (r == CK_IDS_REWRITTEN) {
		int second = ck_guard_request(method, out.p, out.len, resolve, NULL, id_again,
					      &again, &err);
		check(second == CK_IDS_UNCHANGED && !strcmp(id, id_again));
		check(ck_guard_has_filter(method, out.p, out.len));
	}
	ck_bytes_free(&out);
	ck_guard_has_filter(method, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;

	if (!size)
		return 0;
	while (ck_cri_method_at(n))
		n++;
	const struct ck_cri_method *method = ck_cri_method_at(data[0] % n);
	data++, size--;
	for (enum who who = NOBODY; who <= SOME; who++)
		check_filter(method, data, size, who);
	check_objects(method, data, size);
	check_guard(method, data, size);
	int type = ck_filter_event_type(data, size);
	check(type >= -1 && type <= 3);
	return 0;
}
