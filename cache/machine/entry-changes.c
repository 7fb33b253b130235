/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in an entry, and what each change queues: a row to write, a want, a line of history,
 * turns to be placed anew. */
#include <stdio.h>

#include "cache/machine/machine-int.h"

void ck_dirty(struct ck_machine *m, struct ck_entry *e)
{
	if (e->saved != CK_SAVED || e->row_waits)
		return;
	e->saved = CK_UNSAVED;
	DL_APPEND2(m->dirty, e, dirty_prev, dirty_next);
}

void ck_interest(struct ck_machine *m, struct ck_entry *e)
{
	e->row.interest = m->now;
	ck_dirty(m, e);
}

void ck_want(struct ck_machine *m, struct ck_entry *e, enum ck_want want)
{
	if (!e->wants)
		DL_APPEND2(m->wanting, e, wanting_prev, wanting_next);
	e->wants |= want;
}

void ck_unwant(struct ck_machine *m, struct ck_entry *e, unsigned wants)
{
	if (e->wants && !(e->wants & ~wants))
		DL_DELETE2(m->wanting, e, wanting_prev, wanting_next);
	e->wants &= ~wants;
}

unsigned ck_machine_take_wants(struct ck_machine *m, struct ck_entry *e)
{
	unsigned wants = e->wants;
	ck_unwant(m, e, wants);
	e->outstanding |= wants & ~(unsigned)CK_WANT_CANCEL; /* a cancel has no answer of its own */
	if (wants & CK_WANT_DESTROY)
		e->destroy_calls++;
	return wants;
}

void ck_touch(struct ck_machine *m, struct ck_group *pod)
{
	if (CK_NEVER(!pod) || pod->touched)
		return;
	pod->touched = true;
	LL_PREPEND2(m->touched, pod, touched_next);
}

struct ck_group *ck_take_touched(struct ck_machine *m)
{
	struct ck_group *pod = m->touched;
	if (pod) {
		LL_DELETE2(m->touched, pod, touched_next);
		pod->touched = false;
	}
	return pod;
}

/* as much of @detail as fits, up to a blank */
static void detail_set(struct ck_history_event *event, const char *detail)
{
	static const char more[] = " ...";
	size_t size = sizeof(event->detail), len = strlen(detail);
	if (len < size) {
		memcpy(event->detail, detail, len + 1);
		return;
	}
	for (len = size - sizeof(more); len && detail[len] != ' ';)
		len--;
	snprintf(event->detail, size, "%.*s%s", (int)len, detail, more);
}

/* history is a help, not a promise: without memory a line is left out, and this is NULL */
static struct ck_history_event *history_line_at(struct ck_machine *m, struct ck_entry *e,
						enum ck_what what, int grpc, uint64_t at)
{
	if (m->history_n == m->history_room) {
		size_t room = m->history_room ? 2 * m->history_room : 16;
		struct ck_history_event *history = ck_realloc(m->history, room * sizeof(*history));
		if (!history)
			return NULL;
		m->history = history;
		m->history_room = room;
	}
	struct ck_history_event *event = &m->history[m->history_n++];
	*event = (struct ck_history_event){
		.entry = e, .what = what, .reason = e->row.reason, .grpc = grpc, .at = at
	};
	return event;
}

void ck_write_begun(struct ck_machine *m, struct ck_entry *e)
{
	if (!e->row_waits)
		return;
	e->row_waits = false;
	ck_dirty(m, e);
	history_line_at(m, e, CK_WHAT_BEGUN, 0, e->row.created);
}

/* An entry's first line comes before any other one. */
static struct ck_history_event *history_line(struct ck_machine *m, struct ck_entry *e,
					     enum ck_what what, int grpc)
{
	ck_write_begun(m, e);
	return history_line_at(m, e, what, grpc, m->now);
}

void ck_history_add(struct ck_machine *m, struct ck_entry *e, enum ck_what what, int grpc,
		    const char *detail)
{
	struct ck_history_event *event = history_line(m, e, what, grpc);
	if (event && detail)
		detail_set(event, detail);
}

void ck_history_explain(struct ck_machine *m, const struct ck_entry *e, const char *detail)
{
	struct ck_history_event *last = m->history_n ? &m->history[m->history_n - 1] : NULL;
	if (last && last->entry == e && last->what == CK_WHAT_MOVED)
		detail_set(last, detail);
}

void ck_entry_schedule(struct ck_machine *m, struct ck_entry *e, uint64_t due)
{
	ck_timer_set(&m->timers, &e->timer, due);
	/* shown to people; not worth a write of its own */
	e->row.due = due == CK_NEVER_DUE ? 0 : due;
}

void ck_entry_move(struct ck_machine *m, struct ck_entry *e, enum ck_state to)
{
	if (CK_NEVER(!ck_state_may_move(e->row.state, to)))
		return;
	enum ck_state from = e->row.state;
	struct ck_history_event *event = history_line(m, e, CK_WHAT_MOVED, 0);
	if (event) {
		event->from = from;
		event->to = to;
	}
	e->row.state = to;
	e->row.start = CK_START_NONE;
	memset(&e->in, 0, sizeof(e->in));
	e->was_kept = e->was_kept || to == CK_STATE_KEPT;
	m->moves++;
	e->fresh = to == CK_STATE_COMMITTED || (e->fresh && to == CK_STATE_ENDED);
	e->row.changed = m->now;
	e->changed_seq = m->seq;
	ck_entry_schedule(m, e, CK_NEVER_DUE);
	ck_dirty(m, e);
	ck_touch(m, ck_pod_of(e));
}

int ck_entry_set_result(struct ck_machine *m, struct ck_entry *e, struct ck_shared_result *result)
{
	HASH_ADD_KEYPTR(by_object, m->by_object[e->row.key->kind], result->id,
			(unsigned)strlen(result->id), e);
	if (!e->by_object.tbl)
		return -CK_ENOMEM;
	e->row.result = ck_shared_result_ref(result);
	m->moves++;
	if (!e->row.existed) {
		e->row.existed = m->now;
		ck_dirty(m, e);
	}
	return 0;
}

struct ck_entry *ck_entry_known(struct ck_machine *m, struct ck_key *key, const char *id)
{
	struct ck_entry *e = NULL;
	struct ck_shared_result *result = ck_shared_result_new(id, NULL, 0);
	if (!result || ck_entry_new(m, key, &e) < 0) {
		ck_key_free(key);
	} else if (ck_entry_set_result(m, e, result) < 0) {
		ck_entry_free(m, e);
		e = NULL;
	}
	ck_shared_result_unref(result);
	return e;
}

/* A list that began before may still show it, and must neither bring it back nor take it for what a
 * lost creation of its key has made (K24). */
static void forgotten(struct ck_machine *m, const struct ck_entry *e)
{
	m->forgot_seq = m->seq;
	for (struct ck_entry *lost = ck_pod_of(e)->entries; lost; lost = lost->link[CK_BY_POD].next)
		if (lost->row.state == CK_STATE_UNKNOWN && ck_key_same(lost->row.key, e->row.key))
			lost->changed_seq = m->seq;
}

void ck_entry_drop(struct ck_machine *m, struct ck_entry *e)
{
	if (ck_state_visible(e->row.state))
		forgotten(m, e);
	struct ck_group *pod = ck_pod_of(e);
	ck_entry_move(m, e, CK_STATE_GONE);
	ck_unwant(m, e, ~0u);
	ck_touch(m, pod); /* a touched group is not freed before the event ends */
	if (m->rules.hooks)
		m->ops.released(m->user, e);
	ck_entry_detach(m, e);
	ck_dirty(m, e);
}

bool ck_entry_choose(struct ck_machine *m, struct ck_entry *e, struct ck_error *err)
{
	char names[CK_TOLD_MAX + 1] = "";
	if (m->ops.choose(m->user, e, names, sizeof(names))) {
		ck_fail(err, CK_EUNAVAILABLE, "required plugin %s is absent", names);
		return false;
	}
	char *told = ck_strdup(names);
	if (!told) {
		m->ops.released(m->user, e);
		ck_nomem(err);
		return false;
	}
	free(e->row.told);
	e->row.told = told;
	e->row.flags |= CK_ENTRY_TOLD;
	ck_dirty(m, e);
	return true;
}

void ck_untell(struct ck_machine *m, struct ck_entry *e)
{
	ck_unwant(m, e, CK_WANT_RUN);
	e->row.flags &= ~(unsigned)CK_ENTRY_TOLD;
	free(e->row.told);
	e->row.told = NULL;
	ck_dirty(m, e);
	m->ops.released(m->user, e);
}
