/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids in requests. The request is walked once to find the ids that count. If one of them must be
 * written out, a second walk copies everything else. Only the last occurrence of a field counts,
 * for the runtime as well, so only that one is replaced. In a list of ids each counts; the second
 * walk looks it up again.
 */
#include <string.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/cri/guard.h"
#include "src/cri/shapes.h"

/* CreateContainer names a sandbox and a container; so do filters of containers */
#define REFS_MAX 2u

struct ref { /* an id of the request */
	const struct ck_place *place;
	const unsigned char *at; /* in the request */
	size_t len;
	char id[CK_ID_MAX + 1];  /* in full */
	bool longer;             /* than the id in the request */
};

struct guard {
	const struct ck_cri_method *method;
	ck_resolve_fn *resolve;
	void *userdata;
	struct ref ref[REFS_MAX];
	unsigned n, listed;      /* ids in a list of ids are not kept: there may be many */
	bool hidden, longer;     /* any of them */
};

static int resolve_ref(struct guard *guard, struct ref *ref, struct ck_error *err)
{
	const char *full = NULL;
	if (ref->len > CK_ID_MAX)
		return ck_fail(err, CK_ETOOBIG, "an id of %zu bytes, of at most %u", ref->len,
			       CK_ID_MAX);
	if (ref->len && memchr(ref->at, '\0', ref->len))
		return ck_fail(err, CK_EMALFORMED, "a NUL inside an id");
	memcpy(ref->id, ref->at, ref->len);
	ref->id[ref->len] = '\0';
	if (!ref->len) /* in a filter: no restriction; elsewhere the runtime decides */
		return 0;
	int r = guard->resolve(ref->place->kind, ref->id, &full, guard->userdata);
	if (r < 0)
		return ck_fail(err, -r, "look up an id: %s", ck_strerror(-r));
	if (r > 0) {
		guard->hidden |= guard->method->class != CK_CRI_FILTER;
		return 0;
	}
	size_t len = strlen(full);
	if (len > CK_ID_MAX)
		return ck_fail(err, CK_ETOOBIG, "an id of %zu bytes, of at most %u", len,
			       CK_ID_MAX);
	ref->longer = len != ref->len || memcmp(full, ref->at, len);
	memmove(ref->id, full, len + 1);
	guard->longer |= ref->longer;
	return 0;
}

static struct ref ref_of(const struct ck_place *place, const struct ck_wire_field *field)
{
	return (struct ref){ .place = place, .at = field->data, .len = field->len };
}

static int note(struct guard *guard, const struct ck_place *place,
		const struct ck_wire_field *field, struct ck_error *err)
{
	unsigned i = 0;
	if (place->use == CK_USE_LISTED) {
		struct ref ref = ref_of(place, field);
		if (++guard->listed > CK_LISTED_IDS_MAX)
			return ck_fail(err, CK_ETOOBIG, "more than %u ids", CK_LISTED_IDS_MAX);
		return resolve_ref(guard, &ref, err);
	}
	while (i < guard->n && guard->ref[i].place != place)
		i++;
	if (i == REFS_MAX)
		return ck_fail(err, CK_ETOOBIG, "more than %u ids", REFS_MAX);
	guard->n = i == guard->n ? i + 1 : guard->n;
	guard->ref[i] = ref_of(place, field);
	return 0;
}

static int collect(struct guard *guard, const struct ck_shape *shape, struct ck_wire wire,
		   struct ck_error *err)
{
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		const struct ck_place *place = ck_shape_find(shape, &field);
		if (!place)
			continue;
		r = place->use == CK_USE_INSIDE
			    ? collect(guard, place->inside, ck_wire_inside(&wire, &field), err)
			    : note(guard, place, &field, err);
		if (r < 0)
			return r;
	}
	return r;
}

/* the id in this field that must be written out; the field is the id or a message around it */
static const struct ref *written_in(const struct guard *guard, const struct ck_wire_field *field)
{
	for (unsigned i = 0; i < guard->n; i++) {
		const struct ref *ref = &guard->ref[i];
		if (ref->longer && ref->at >= field->data && ref->at < field->data + field->len)
			return ref;
	}
	return NULL;
}

static int rewrite(struct guard *guard, const struct ck_shape *shape, struct ck_wire wire,
		   struct ck_bytes *out)
{
	struct ck_wire_field field;
	struct ref listed;
	int r = ck_bytes_room(out, (size_t)(wire.end - wire.p));
	while (r >= 0) {
		const unsigned char *from = wire.p;
		r = ck_wire_next(&wire, &field, NULL);
		if (r <= 0)
			break;
		const struct ck_place *place = ck_shape_find(shape, &field);
		const struct ref *ref = place ? written_in(guard, &field) : NULL;
		if (place && place->use == CK_USE_LISTED) {
			listed = ref_of(place, &field);
			r = resolve_ref(guard, &listed, NULL);
			if (r < 0)
				break;
			ref = listed.longer ? &listed : NULL;
		}
		if (ref && place->use == CK_USE_INSIDE) {
			CK_AUTO_BYTES struct ck_bytes inner = { 0 };
			r = rewrite(guard, place->inside, ck_wire_inside(&wire, &field), &inner);
			r = r < 0 ? r : ck_bytes_field(out, field.number, inner.p, inner.len);
		} else if (ref) {
			r = ck_bytes_field(out, field.number, ref->id, strlen(ref->id));
		} else {
			r = ck_bytes_add(out, from, (size_t)(wire.p - from));
		}
	}
	return r;
}

int ck_guard_request(const struct ck_cri_method *method, const void *request, size_t len,
		     ck_resolve_fn *resolve, void *userdata, char *ret_id,
		     struct ck_bytes *ret_request, struct ck_error *err)
{
	struct ck_wire wire = ck_wire_begin(request, len);
	struct guard guard = { .method = method, .resolve = resolve, .userdata = userdata };
	const struct ref *acts_on = NULL;

	int r = method->request ? collect(&guard, method->request, wire, err) : 0;
	for (unsigned i = 0; i < guard.n && r >= 0; i++) {
		r = resolve_ref(&guard, &guard.ref[i], err);
		if (guard.ref[i].place->use == CK_USE_ACTS_ON)
			acts_on = &guard.ref[i];
	}
	if (r < 0)
		return r;
	bool rewritten = guard.longer && !guard.hidden;
	if (rewritten) {
		CK_AUTO_BYTES struct ck_bytes out = { 0 };
		if (rewrite(&guard, method->request, wire, &out) < 0)
			return ck_nomem(err);
		*ret_request = out;
		out = (struct ck_bytes){ 0 };
	}
	strcpy(ret_id, acts_on ? acts_on->id : "");
	return guard.hidden ? CK_IDS_HIDDEN : rewritten ? CK_IDS_REWRITTEN : CK_IDS_UNCHANGED;
}

bool ck_guard_has_filter(const struct ck_cri_method *method, const void *request, size_t len)
{
	struct ck_wire wire = ck_wire_begin(request, len);
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0)
		if (!method->request || !ck_shape_find(method->request, &field) || field.len)
			return true;
	return r < 0; /* nobody knows whether a request that cannot be read asks for everything */
}
