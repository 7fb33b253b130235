/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in answers. An object is read whole first, because its id may lie behind the objects
 * nested in it. Then the owner is asked about it. Then the nested objects are walked. Until
 * something is cut, only the strings of the current object are allocated. After a cut each message
 * around it is written anew, at most once for each level.
 */
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cri/filter.h"
#include "src/cri/message.h"
#include "src/cri/shapes.h"

#define TEXTS_FIRST 512u         /* of a status */
#define TEXTS_MOST  (32u << 10) /* of a list, at once */

struct span {
	const unsigned char *at; /* into the message; NULL: absent */
	size_t len;
};

/* of one object; the last occurrence counts, and pieces of a message are merged */
struct seen {
	struct span texts[CK_USE_TEXTS];
	struct span subject;
	uint64_t attempt, state, created_at, started_at;
};

struct walk {
	ck_hides_fn *hides;
	void *userdata;
	struct ck_filter_count *count;
	struct ck_error *err;
	struct ck_texts *texts; /* with the strings of the object that is asked about */
	bool keeps;             /* them, for the next ones too */
	bool has_nul;           /* somewhere in the message; few have, so texts need no look */
	struct span subject;     /* of an event */
	bool subject_met, subject_hidden;
};

static bool same(struct span a, const char *text, size_t len)
{
	return a.len == len && !memcmp(a.at, text, len);
}

/* ---- reading an object ----------------------------------------------------------------------- */

static int read_label(struct ck_wire wire, struct seen *seen, struct ck_error *err)
{
	static const struct {
		const char *key;
		enum ck_use use;
	} known[] = {
		{ "io.kubernetes.pod.name", CK_USE_POD_NAME },
		{ "io.kubernetes.pod.namespace", CK_USE_POD_NAMESPACE },
		{ "io.kubernetes.pod.uid", CK_USE_POD_UID },
	};
	struct span key = { 0 }, value = { 0 };
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.type == CK_WIRE_BYTES && field.number == CK_MAP_KEY)
			key = (struct span){ field.data, field.len };
		else if (field.type == CK_WIRE_BYTES && field.number == CK_MAP_VALUE)
			value = (struct span){ field.data, field.len };
	}
	for (size_t i = 0; i < CK_COUNT(known); i++)
		if (same(key, known[i].key, strlen(known[i].key)))
			seen->texts[known[i].use] = value;
	return r;
}

static int read_object(const struct ck_shape *shape, struct ck_wire wire, struct seen *seen,
		       struct ck_error *err)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		const struct ck_place *place = ck_shape_find(shape, &field);
		if (!place)
			continue;
		if (place->use < CK_USE_TEXTS)
			seen->texts[place->use] = (struct span){ field.data, field.len };
		else if (place->use == CK_USE_SUBJECT)
			seen->subject = (struct span){ field.data, field.len };
		else if (place->use == CK_USE_ATTEMPT)
			seen->attempt = field.value;
		else if (place->use == CK_USE_STATE)
			seen->state = field.value;
		else if (place->use == CK_USE_CREATED_AT)
			seen->created_at = field.value;
		else if (place->use == CK_USE_STARTED_AT)
			seen->started_at = field.value;
		else if (place->use == CK_USE_LABELS)
			r = read_label(ck_wire_inside(&wire, &field), seen, err);
		else if (place->use == CK_USE_INSIDE)
			r = read_object(place->inside, ck_wire_inside(&wire, &field), seen, err);
		if (r < 0)
			return r;
	}
	return r;
}

static enum ck_condition condition(enum ck_kind kind, const struct seen *seen)
{
	static const enum ck_condition sandbox[] = {
		[CRI_PodSandboxState_SANDBOX_READY] = CK_CONDITION_READY,
		[CRI_PodSandboxState_SANDBOX_NOTREADY] = CK_CONDITION_DEAD,
	};
	static const enum ck_condition container[] = {
		[CRI_ContainerState_CONTAINER_CREATED] = CK_CONDITION_READY,
		[CRI_ContainerState_CONTAINER_RUNNING] = CK_CONDITION_RUNNING,
		[CRI_ContainerState_CONTAINER_EXITED] = CK_CONDITION_DEAD,
	};
	uint64_t state = seen->state;
	if (kind == CK_SANDBOX)
		return state < CK_COUNT(sandbox) ? sandbox[state] : CK_CONDITION_UNKNOWN;
	/* only a status has it; one that was never started has 0, or a time before the epoch */
	if (state == CRI_ContainerState_CONTAINER_EXITED && (int64_t)seen->started_at > 0)
		return CK_CONDITION_RAN;
	return state < CK_COUNT(container) ? container[state] : CK_CONDITION_UNKNOWN;
}

/* what a container's message leaves out is taken from the sandbox around it */
static void inherit(struct seen *seen, const struct seen *around)
{
	static const enum ck_use of_pod[] = { CK_USE_POD_NAME, CK_USE_POD_NAMESPACE,
					      CK_USE_POD_UID };
	for (size_t i = 0; i < CK_COUNT(of_pod); i++)
		if (!seen->texts[of_pod[i]].len)
			seen->texts[of_pod[i]] = around->texts[of_pod[i]];
	if (!seen->texts[CK_USE_SANDBOX_ID].len)
		seen->texts[CK_USE_SANDBOX_ID] = around->texts[CK_USE_ID];
}

/* ---- asking about it ------------------------------------------------------------------------- */

struct ck_texts_block {
	struct ck_texts_block *before;
	size_t used, room;
	char texts[];
};

/* NULL: no memory */
static char *texts_room(struct ck_texts *texts, size_t n)
{
	struct ck_texts_block *last = texts->last;
	if (!last || last->room - last->used < n) {
		size_t room = last ? 2 * last->room : TEXTS_FIRST;
		room = room < TEXTS_MOST ? room : TEXTS_MOST;
		room = room > n ? room : n;
		struct ck_texts_block *block = ck_realloc(NULL, sizeof(*block) + room);
		if (!block)
			return NULL;
		*block = (struct ck_texts_block){ .before = last, .room = room };
		texts->last = last = block;
	}
	last->used += n;
	return last->texts + last->used - n;
}

void ck_texts_fini(struct ck_texts *texts)
{
	while (texts->last) {
		struct ck_texts_block *block = texts->last;
		texts->last = block->before;
		free(block);
	}
}

/* Return: 1 it is hidden, 0, or an error */
static int ask(struct walk *w, enum ck_kind kind, unsigned flags, const struct seen *seen)
{
	const char *texts[CK_USE_TEXTS];
	size_t len = 0;

	for (unsigned i = 0; i < CK_USE_TEXTS; i++)
		len += seen->texts[i].len + 1;
	if (!w->keeps && w->texts->last)
		w->texts->last->used = 0;
	char *to = texts_room(w->texts, len);
	if (!to)
		return ck_nomem(w->err);
	/* a name with a NUL in it is none of ours and is left out */
	for (unsigned i = 0; i < CK_USE_TEXTS; i++) {
		struct span span = seen->texts[i];
		texts[i] = to;
		if (span.len && !(w->has_nul && memchr(span.at, '\0', span.len))) {
			memcpy(to, span.at, span.len);
			to += span.len;
		}
		*to++ = '\0';
	}
	bool container = kind == CK_CONTAINER;
	struct ck_object object = {
		.size = sizeof(object),
		.kind = kind,
		.condition = flags & CK_SHAPE_STATE ? condition(kind, seen)
						    : CK_CONDITION_UNKNOWN,
		.id = texts[CK_USE_ID],
		.pod_name = texts[CK_USE_POD_NAME],
		.pod_namespace = texts[CK_USE_POD_NAMESPACE],
		.pod_uid = texts[CK_USE_POD_UID],
		.sandbox_id = container ? texts[CK_USE_SANDBOX_ID] : NULL,
		.container_name = container ? texts[CK_USE_CONTAINER_NAME] : NULL,
		.attempt = (uint32_t)seen->attempt,
		.created_at = (int64_t)seen->created_at > 0 ? seen->created_at : 0,
	};
	int r = w->hides(&object, flags & CK_SHAPE_ID_ONLY, w->userdata);
	if (r < 0)
		return ck_fail(w->err, -r, "look up an object: %s", ck_strerror(-r));
	return r > 0;
}

static int decide(struct walk *w, enum ck_kind kind, unsigned flags, const struct seen *seen)
{
	int hidden = ask(w, kind, flags, seen);
	if (hidden < 0)
		return hidden;
	if (w->count)
		hidden ? w->count->hidden++ : w->count->shown++;
	struct span id = seen->texts[CK_USE_ID];
	if (w->subject.len && same(w->subject, (const char *)id.at, id.len)) {
		w->subject_met = true;
		w->subject_hidden |= hidden;
	}
	return hidden;
}

/* is this entry of a map of annotations crikeep's own? */
static int is_own(struct ck_wire entry, struct ck_error *err)
{
	struct span key = { 0 };
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&entry, &field, err)) > 0)
		if (field.type == CK_WIRE_BYTES && field.number == CK_MAP_KEY)
			key = (struct span){ field.data, field.len };
	return r < 0 ? r : same(key, CK_ALIAS_ANNOTATION, strlen(CK_ALIAS_ANNOTATION));
}

/* ---- cutting --------------------------------------------------------------------------------- */

static int walk_object(struct walk *w, const struct ck_shape *shape, struct ck_wire wire,
		       const struct seen *around, struct ck_bytes *out);

/* the objects that lie in a message, at any depth; @around: what it is about, or NULL */
static int walk_inside(struct walk *w, const struct ck_shape *shape, struct ck_wire wire,
		       const struct seen *around, struct ck_bytes *out)
{
	const unsigned char *begin = wire.p;
	struct ck_wire_field field;
	bool cut = false;
	int r;

	if (!(shape->flags & CK_SHAPE_HOLDS))
		return CK_FILTER_AS_IT_CAME;
	for (const unsigned char *from = begin; (r = ck_wire_next(&wire, &field, w->err)) > 0;
	     from = wire.p) {
		CK_AUTO_BYTES struct ck_bytes inner = { 0 };
		const struct ck_place *place = ck_shape_find(shape, &field);
		int found = CK_FILTER_AS_IT_CAME;
		if (place && place->use == CK_USE_OBJECT)
			found = walk_object(w, place->inside, ck_wire_inside(&wire, &field), around,
					&inner);
		else if (place && place->use == CK_USE_INSIDE)
			found = walk_inside(w, place->inside, ck_wire_inside(&wire, &field), around,
					&inner);
		else if (place && place->use == CK_USE_ANNOTATIONS &&
			 (found = is_own(ck_wire_inside(&wire, &field), w->err)) > 0)
			found = CK_FILTER_EMPTIED;
		if (found < 0)
			return found;
		/* all the room at once: the result is never longer than what was read */
		if (found != CK_FILTER_AS_IT_CAME && !cut) {
			if (ck_bytes_room(out, (size_t)(wire.end - begin)) < 0)
				return ck_nomem(w->err);
			ck_bytes_add(out, begin, (size_t)(from - begin));
			cut = true;
		}
		if (found == CK_FILTER_CUT)
			ck_bytes_field(out, field.number, inner.p, inner.len);
		else if (found == CK_FILTER_AS_IT_CAME && cut)
			ck_bytes_add(out, from, (size_t)(wire.p - from));
	}
	return r < 0 ? r : cut ? CK_FILTER_CUT : CK_FILTER_AS_IT_CAME;
}

static int walk_object(struct walk *w, const struct ck_shape *shape, struct ck_wire wire,
		       const struct seen *around, struct ck_bytes *out)
{
	struct seen seen = { 0 };
	int r = read_object(shape, wire, &seen, w->err);
	if (r < 0)
		return r;
	if (around)
		inherit(&seen, around);
	if (seen.subject.len)
		w->subject = seen.subject;
	/* an object whose id crikeep cannot know is shown unasked */
	if (ck_cri_is_id(seen.texts[CK_USE_ID].at, seen.texts[CK_USE_ID].len)) {
		r = decide(w, shape->object, shape->flags, &seen);
		if (r != 0)
			return r < 0 ? r : CK_FILTER_EMPTIED;
	}
	return walk_inside(w, shape, wire, &seen, out);
}

/*
 * The statuses of this event do not include its subject: only the id is known, and without a
 * sandbox not even the kind. An object asked about by its id alone is hidden unless it is known to
 * be visible, so the event is shown if either kind is.
 */
static int decide_subject(struct walk *w)
{
	struct seen seen = { .texts[CK_USE_ID] = w->subject };
	if (!ck_cri_is_id(w->subject.at, w->subject.len))
		return 0;
	int r = ask(w, CK_CONTAINER, CK_SHAPE_ID_ONLY, &seen);
	if (r > 0)
		r = ask(w, CK_SANDBOX, CK_SHAPE_ID_ONLY, &seen);
	if (r >= 0 && w->count)
		r ? w->count->hidden++ : w->count->shown++;
	return r;
}

static int walk(struct walk *w, const struct ck_cri_method *method, const void *message, size_t len,
		struct ck_bytes *ret_message)
{
	const struct ck_shape *shape = method->response;
	struct ck_wire wire = ck_wire_begin(message, len);
	CK_AUTO_BYTES struct ck_bytes out = { 0 };

	if (!shape)
		return CK_FILTER_AS_IT_CAME;
	w->has_nul = len && memchr(message, '\0', len);
	int r = shape->object ? walk_object(w, shape, wire, NULL, &out)
			      : walk_inside(w, shape, wire, NULL, &out);
	if (r >= 0 && r != CK_FILTER_EMPTIED && w->subject.len && !w->subject_met) {
		int hidden = decide_subject(w);
		w->subject_hidden = hidden > 0;
		r = hidden < 0 ? hidden : r;
	}
	if (r < 0)
		return r;
	if (w->subject_hidden || (r == CK_FILTER_CUT && !out.len))
		return CK_FILTER_EMPTIED;
	if (r == CK_FILTER_CUT) {
		*ret_message = out;
		out = (struct ck_bytes){ 0 };
	}
	return r;
}

int ck_filter_keeping(const struct ck_cri_method *method, const void *message, size_t len,
		      ck_hides_fn *hides, void *userdata, struct ck_texts *texts,
		      struct ck_bytes *ret_message, struct ck_filter_count *count,
		      struct ck_error *err)
{
	struct walk w = { .hides = hides,
			  .userdata = userdata,
			  .count = count,
			  .err = err,
			  .texts = texts,
			  .keeps = true };
	return walk(&w, method, message, len, ret_message);
}

int ck_filter_response(const struct ck_cri_method *method, const void *message, size_t len,
		       ck_hides_fn *hides, void *userdata, struct ck_bytes *ret_message,
		       struct ck_filter_count *count, struct ck_error *err)
{
	struct ck_texts texts = { 0 };
	struct walk w = { .hides = hides,
			  .userdata = userdata,
			  .count = count,
			  .err = err,
			  .texts = &texts };
	int r = walk(&w, method, message, len, ret_message);
	ck_texts_fini(&texts);
	return r;
}

int ck_filter_event_type(const void *message, size_t len)
{
	struct ck_wire wire = ck_wire_begin(message, len);
	struct ck_wire_field field;
	uint64_t type = 0;
	int r;

	while ((r = ck_wire_next(&wire, &field, NULL)) > 0)
		if (field.number == CRI_ContainerEventResponse_container_event_type &&
		    field.type == CK_WIRE_VARINT)
			type = field.value;
	return r < 0 || type > CRI_ContainerEventType_CONTAINER_DELETED_EVENT ? -1 : (int)type;
}
