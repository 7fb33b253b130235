/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of world.h: what there is, and how a round ends. It uses the machine as machine.h says;
 * oracle.c judges whether the machine keeps the rules. Nothing here is random, so that a script
 * always plays the same. world-events.c is what can happen.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/model/oracle.h"
#include "tests/model/world-int.h"

/* ---- names ----------------------------------------------------------------------------------- */

static const char *numbered(char *buf, const char *what, unsigned n, bool other)
{
	snprintf(buf, WORLD_ID, "%s%u%s", what, n, other ? "-b" : "");
	return buf;
}

bool same_pod(const struct ck_key *a, const struct ck_key *b)
{
	return !strcmp(a->pod_namespace, b->pod_namespace) && !strcmp(a->pod_name, b->pod_name) &&
	       !strcmp(a->pod_uid, b->pod_uid);
}

/* Keys are numbered in the order of their first use. Equal keys, slots, names and pods have equal
 * numbers; a container that two pods ask for has two. */
int world_key(struct world *w, const struct ck_key *key)
{
	for (int i = 0; i < w->keys_n; i++)
		if (ck_key_same(w->keys[i].key, key) && same_pod(w->keys[i].key, key))
			return i;
	if (w->keys_n == WORLD_KEYS)
		abort(); /* a history is too long for the world */
	int n = w->keys_n++;
	memset(&w->keys[n], 0, sizeof(w->keys[n]));
	if (ck_key_dup(key, &w->keys[n].key) < 0)
		abort();
	w->keys[n].slot = w->keys[n].name = w->keys[n].pod = n;
	for (int i = n - 1; i >= 0; i--) {
		const struct ck_key *other = w->keys[i].key;
		if (ck_key_same_slot(other, key))
			w->keys[n].slot = w->keys[i].slot;
		if (ck_key_same_runtime_name(other, key))
			w->keys[n].name = w->keys[i].name;
		if (!strcmp(other->pod_name, key->pod_name) &&
		    !strcmp(other->pod_namespace, key->pod_namespace))
			w->keys[n].pod = w->keys[i].pod;
	}
	return n;
}

struct ck_key *key_of_request(struct world *w, const struct request *req)
{
	char name[WORLD_ID], uid[WORLD_ID], sandbox[WORLD_ID];
	struct object *in = req->kind == CK_CONTAINER ? world_object(w, req->in) : NULL;
	struct ck_object o = {
		.size = sizeof(o),
		.kind = req->kind,
		.attempt = req->attempt,
		.pod_namespace = "ns",
		.pod_name = numbered(name, "pod", req->pod, req->name),
		.pod_uid = numbered(uid, "uid", req->pod, req->uid),
	};
	if (req->kind == CK_CONTAINER) {
		o.sandbox_id = in && in->kind == CK_SANDBOX
				       ? in->id
				       : numbered(sandbox, "unknown", req->pod, false);
		o.container_name = "main";
	}
	struct ck_key *key = NULL;
	if (ck_key_from_object(&o, &key, NULL) < 0)
		abort();
	return key;
}

/* ---- what the machine asks from inside an event ---------------------------------------------- */

static int op_record(void *user, const struct ck_fingerprint *fp, struct ck_record *ret)
{
	const struct fp *mine = (const void *)fp;
	struct world *w = user;

	memset(ret, 0, sizeof(*ret));
	ret->form = 1;
	ret->key_id[0] = w->digest_key;
	ret->root[0] = mine->base;
	ret->root[1] = mine->cosmetic;
	return 0;
}

static enum ck_relation relation(struct fp a, struct fp b)
{
	if (a.base != b.base)
		return a.base + b.base == 2 ? CK_RELATION_IMAGE : CK_RELATION_DIFFERENT;
	return a.cosmetic != b.cosmetic ? CK_RELATION_COSMETIC : CK_RELATION_SAME;
}

enum ck_relation world_compare(struct world *w, const struct ck_entry *e, const struct fp *fp)
{
	const struct ck_record *record = &e->row.record;
	if (w->config.rules.mode == CK_MODE_IDENTITY)
		return CK_RELATION_SAME;
	if (!record->form || record->key_id[0] != w->digest_key)
		return CK_RELATION_NOT_COMPARABLE;
	enum ck_relation r = relation((struct fp){ record->root[0], record->root[1] }, *fp);
	return w->unreadable && r != CK_RELATION_SAME ? CK_RELATION_NEEDS_DIGESTS : r;
}

static enum ck_relation op_compare(void *user, struct ck_entry *e, const struct ck_fingerprint *fp,
				   struct ck_difference *ret)
{
	enum ck_relation r = world_compare(user, e, (const void *)fp);
	if (ret && r != CK_RELATION_NOT_COMPARABLE) {
		bool same = r == CK_RELATION_SAME;
		snprintf(ret->text, sizeof(ret->text), "%s", same ? "" : "config.differs");
		ret->count = !same;
	}
	return r;
}

static int op_choose(void *user, const struct ck_entry *e, char *names, size_t size)
{
	struct world *w = user;
	struct shadow *s = &w->shadows[e->row.id];

	if (w->plugin_absent) {
		snprintf(names, size, "10-required");
		return 1;
	}
	snprintf(names, size, "%s", w->config.told);
	if (s->hooks_chosen)
		oracle_fail(w, "H2: entry %u: recipients are chosen twice", (unsigned)e->row.id);
	s->hooks_chosen = true;
	return 0;
}

static void op_released(void *user, const struct ck_entry *e)
{
	struct world *w = user;
	w->shadows[e->row.id].hooks_chosen = false;
}

static uint64_t op_jitter(void *user, uint64_t below)
{
	struct world *w = user;
	return below ? (++w->jitter_count * UINT64_C(0x9e3779b97f4a7c15) >> 11) % below : 0;
}

static uint64_t op_next_id(void *user)
{
	struct world *w = user;
	if (w->rows_n + 1 == WORLD_ROWS)
		abort();
	return ++w->rows_n;
}

static const struct ck_machine_ops ops = {
	.record = op_record,
	.compare = op_compare,
	.choose = op_choose,
	.released = op_released,
	.jitter = op_jitter,
	.next_id = op_next_id,
};

/* ---- the database ---------------------------------------------------------------------------- */

void row_copy(struct ck_row *to, const struct ck_row *from)
{
	*to = *from;
	to->record.digests = NULL;
	to->record.digests_len = 0;
	to->result = from->result ? ck_shared_result_ref(from->result) : NULL;
	to->told = from->told ? strdup(from->told) : NULL;
	if (ck_key_dup(from->key, &to->key) < 0)
		abort();
}

void row_forget(struct stored *stored)
{
	if (stored->used)
		ck_row_fini(&stored->row);
	stored->used = false;
}

void write_rows(struct world *w)
{
	for (struct ck_entry *e = ck_machine_dirty(w->m); e; e = e->dirty_next) {
		struct stored *stored = &w->db[e->row.id];
		row_forget(stored);
		if (e->detached)
			continue;
		row_copy(&stored->row, &e->row);
		stored->used = true;
		stored->boot = w->boot;
	}
	oracle_written(w);
}

/* ---- the runtime ----------------------------------------------------------------------------- */

struct object *world_object(struct world *w, int label)
{
	if (label < 0)
		return NULL;
	for (unsigned i = w->objects_n; i-- > 0;)
		if (w->objects[i].label == label)
			return &w->objects[i];
	return NULL;
}

struct object *world_object_of(struct world *w, const char *id)
{
	for (unsigned i = 0; i < w->objects_n; i++)
		if (!strcmp(w->objects[i].id, id))
			return &w->objects[i];
	return NULL;
}

bool alive(const struct object *o)
{
	return o->condition != CK_CONDITION_ABSENT;
}

struct object *object_new(struct world *w, int label, const struct request *req, int key,
			  uint64_t row)
{
	if (w->objects_n == WORLD_OBJECTS)
		abort();
	struct object *o = &w->objects[w->objects_n++];
	*o = (struct object){
		.label = label,
		.key = key,
		.req = *req,
		.kind = w->keys[key].key->kind,
		.condition = CK_CONDITION_READY,
		.row = row,
		.created_at = 1000 + w->objects_n,
	};
	numbered(o->id, o->kind == CK_SANDBOX ? "s" : "c", w->objects_n, false);
	return o;
}

void object_gone(struct world *w, struct object *o)
{
	o->condition = CK_CONDITION_ABSENT;
	/* its containers go with it */
	for (unsigned i = 0; o->kind == CK_SANDBOX && i < w->objects_n; i++)
		if (w->objects[i].kind == CK_CONTAINER &&
		    !strcmp(w->keys[w->objects[i].key].key->sandbox_id, o->id))
			w->objects[i].condition = CK_CONDITION_ABSENT;
}

bool name_in_use(const struct world *w, int key)
{
	int name = w->keys[key].name;
	for (unsigned i = 0; i < w->objects_n; i++)
		if (alive(&w->objects[i]) && w->keys[w->objects[i].key].name == name)
			return true;
	for (unsigned i = 0; i < w->creations_n; i++)
		if (w->creations[i].state == CREATION_RUNNING && !w->creations[i].reserved &&
		    w->keys[w->creations[i].key].name == name)
			return true;
	return false;
}

struct creation *world_creation(struct world *w, int label)
{
	for (unsigned i = w->creations_n; i-- > 0;)
		if (w->creations[i].label == label && !w->creations[i].told)
			return &w->creations[i];
	return NULL;
}

static void creation_start(struct world *w, struct caller *c, int label)
{
	oracle_create(w, c);
	c->making = true;
	c->making_row = c->turn.row;
	if (w->creations_n == WORLD_LABELS)
		abort();
	w->creations[w->creations_n++] = (struct creation){
		.state = CREATION_RUNNING,
		.label = label,
		.key = c->key,
		.req = c->req,
		.row = c->turn.row,
		.reserved = name_in_use(w, c->key),
	};
}

/* ---- jobs ------------------------------------------------------------------------------------ */

struct job *world_job(struct world *w, unsigned want, unsigned nth)
{
	for (unsigned i = 0; i < w->jobs_n; i++)
		if (want ? (w->jobs[i].want & want) != 0 : !w->jobs[i].want)
			if (nth-- == 0)
				return &w->jobs[i];
	return NULL;
}

void job_remove(struct world *w, struct job *job)
{
	size_t after = w->jobs_n - (size_t)(job - w->jobs) - 1;
	memmove(job, job + 1, after * sizeof(*job));
	w->jobs_n--;
}

void snapshot(struct world *w, struct job *job)
{
	job->n = 0;
	for (unsigned i = 0; i < w->objects_n; i++) {
		if (!alive(&w->objects[i]) || w->objects[i].kind != job->kind)
			continue;
		job->object[job->n] = (unsigned char)i;
		job->condition[job->n++] = (unsigned char)w->objects[i].condition;
	}
}

static struct job *job_new(struct world *w, unsigned want, uint64_t row, enum ck_kind kind)
{
	bool again = false;
	for (unsigned i = 0; i < w->jobs_n; i++) {
		if (!want || w->jobs[i].row != row || w->jobs[i].want != want)
			continue;
		again = true;
		/* questions and destroys are repeated when their time is up */
		if (want > CK_WANT_DESTROY)
			oracle_fail(w, "H5: entry %u: want %u twice at once", (unsigned)row, want);
	}
	if (w->jobs_n == WORLD_JOBS)
		abort();
	struct job *job = &w->jobs[w->jobs_n++];
	job->want = want;
	job->again = again;
	job->row = row;
	job->kind = kind;
	job->begun_at = w->now;
	job->begun_event = w->event;
	job->begun_seq = ck_machine_seq(w->m);
	snapshot(w, job);
	return job;
}

static struct ck_object listed_object(struct world *w, unsigned i, enum ck_condition condition)
{
	const struct object *o = &w->objects[i];
	const struct ck_key *key = w->keys[o->key].key;
	return (struct ck_object){
		.size = sizeof(struct ck_object),
		.kind = o->kind,
		.condition = condition,
		.id = o->id,
		.pod_name = key->pod_name,
		.pod_namespace = key->pod_namespace,
		.pod_uid = key->pod_uid,
		.sandbox_id = o->kind == CK_CONTAINER ? key->sandbox_id : NULL,
		.container_name = o->kind == CK_CONTAINER ? key->container : NULL,
		.attempt = key->attempt,
		.created_at = o->created_at,
	};
}

size_t listed_objects(struct world *w, const struct job *job, struct ck_object *o)
{
	for (unsigned i = 0; i < job->n; i++)
		o[i] = listed_object(w, job->object[i], job->condition[i]);
	return job->n;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void hear(struct world *w, struct caller *c)
{
	int label = (int)(c - w->callers);

	c->fresh = false;
	if (ck_turn_outcome(&c->turn) == CK_CREATE &&
	    (!c->making || c->making_row != c->turn.row)) {
		c->heard = CK_CREATE;
		creation_start(w, c, label);
	} else if (ck_turn_decided(&c->turn) && (c->heard == CK_WAIT || c->heard == CK_CREATE)) {
		c->heard = c->turn.decision.outcome;
		c->row = c->turn.row;
		if (c->heard == CK_HAND_BACK && c->turn.decision.result)
			snprintf(c->id, sizeof(c->id), "%s", c->turn.decision.result->id);
		oracle_heard(w, c);
	}
}

static void hear_removal(struct world *w, struct caller *c)
{
	c->fresh = false;
	c->heard = c->removal.outcome;
	oracle_heard(w, c);
}

static void take_wants(struct world *w, struct ck_entry *e)
{
	unsigned wants = ck_machine_take_wants(w->m, e);
	for (unsigned bit = 1; bit <= CK_WANT_CANCEL; bit <<= 1) {
		if (!(wants & bit))
			continue;
		oracle_wanted(w, e, bit);
		if (bit == CK_WANT_CANCEL)
			continue;
		enum ck_kind kind = e->row.key->kind;
		if (bit == CK_WANT_LIST && e->row.state == CK_STATE_EVICTING &&
		    e->row.phase != CK_PHASE_FIND)
			kind = CK_CONTAINER;
		job_new(w, bit, e->row.id, kind);
	}
}

void close_round(struct world *w)
{
	bool written = !w->disk_broken;
	struct ck_mturn *t;
	struct ck_removal *r;
	struct ck_entry *e;

	if (w->failure[0])
		return;
	if (written)
		write_rows(w);
	oracle_settling(w, written);
	ck_machine_settle(w->m, written);
	w->history_seen = 0;
	oracle_settled(w);
	while ((t = ck_machine_answered(w->m)))
		hear(w, (struct caller *)(void *)((char *)t - offsetof(struct caller, turn)));
	while ((r = ck_machine_removed(w->m)))
		hear_removal(
			w, (struct caller *)(void *)((char *)r - offsetof(struct caller, removal)));
	for (unsigned i = 0; i < WORLD_LABELS; i++)
		if (w->callers[i].used && w->callers[i].fresh && !w->callers[i].drain)
			hear(w, &w->callers[i]);
	while ((e = ck_machine_wanting(w->m)))
		take_wants(w, e);
	unsigned lists = ck_machine_take_lists(w->m);
	for (unsigned kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		if (lists & 1u << kind)
			job_new(w, 0, 0, (enum ck_kind)kind);
	oracle_round(w);
	w->in_round = 0;
}

void feed(struct world *w)
{
	oracle_feeding(w);
	w->event++;
	w->in_round++;
}

void fed(struct world *w)
{
	oracle_observe(w);
	if (!w->more)
		close_round(w);
}

/* ---- begin and end --------------------------------------------------------------------------- */

struct world_config world_config(void)
{
	return (struct world_config){
		.rules = {
			.ttl = CK_TTL,
			.create_deadline = CK_CREATE_DEADLINE,
			.lost_grace = CK_LOST_GRACE,
			.supersede_wait = CK_SUPERSEDE_WAIT,
			.destroy_timeout = CK_DESTROY_TIMEOUT,
			.can_inspect = true,
			.can_list = true,
			.hooks = true,
		},
		.pods = 2,
		.told = "10-logger 20-device",
	};
}

void machine_start(struct world *w)
{
	if (ck_machine_new(&w->config.rules, &ops, w, w->now, &w->m) < 0)
		abort();
	w->life++;
	w->opened = w->now;
	w->offers = 0;
	w->list_done[CK_SANDBOX] = w->list_done[CK_CONTAINER] = false;
	w->history_seen = 0;
	w->jobs_n = 0;
	w->in_round = 0;
	for (unsigned i = 0; i < WORLD_VIEWS; i++)
		w->views[i].open = false;
	for (unsigned i = 0; i < w->objects_n; i++)
		w->objects[i].listed = false;
}

void machine_end(struct world *w)
{
	for (unsigned i = 0; i < WORLD_LABELS; i++) {
		if (w->callers[i].used && w->callers[i].drain)
			ck_machine_remove_end(w->m, &w->callers[i].removal);
		else if (w->callers[i].used)
			ck_machine_drop(w->m, &w->callers[i].turn);
		w->callers[i].used = w->callers[i].making = false;
		w->callers[i].heard = CK_WAIT;
	}
	ck_machine_free(w->m);
	w->m = NULL;
}

void world_init(struct world *w, const struct world_config *config, coverage *cells)
{
	memset(w, 0, sizeof(*w));
	w->config = *config;
	w->cells = cells ? *cells : NULL;
	w->now = 1000 * S;
	machine_start(w);
	close_round(w);
}

void world_fini(struct world *w)
{
	if (w->m)
		machine_end(w);
	for (unsigned i = 0; i < WORLD_ROWS; i++)
		row_forget(&w->db[i]);
	for (int i = 0; i < w->keys_n; i++)
		ck_key_free(w->keys[i].key);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct ck_entry *world_key_entry(struct world *w, int key)
{
	struct ck_entry *best = NULL;
	FOR_ENTRIES (e, w) {
		if (e->row.state == CK_STATE_GONE || !ck_key_same(e->row.key, w->keys[key].key) ||
		    !same_pod(e->row.key, w->keys[key].key))
			continue;
		bool ended = e->row.state == CK_STATE_ENDED;
		if (!best || best->row.state == CK_STATE_EVICTING ||
		    (!ended && e->row.state != CK_STATE_EVICTING))
			best = e;
	}
	return best;
}

struct ck_entry *world_entry(struct world *w, int label)
{
	struct object *o = world_object(w, label);
	struct ck_entry *e = o ? ck_machine_object(w->m, o->kind, o->id) : NULL;
	if (e)
		return e;
	for (unsigned i = w->creations_n; i-- > 0;)
		if (w->creations[i].label == label)
			return ck_machine_entry(w->m, w->creations[i].row);
	struct caller *c = caller(w, label);
	return c ? world_key_entry(w, c->key) : NULL;
}

bool world_shown(struct world *w, int label)
{
	struct object *o = world_object(w, label);
	return o && alive(o) && oracle_shown(w, o);
}

bool world_serving(const struct world *w)
{
	return w->config.rules.skip_first_list ||
	       (w->list_done[CK_SANDBOX] && w->list_done[CK_CONTAINER]);
}

int world_outcome(struct world *w, int label)
{
	return w->callers[label].heard;
}

void world_print(struct world *w, FILE *to)
{
	static const char *const conditions[] = { "UNKNOWN", "READY", "RUNNING", "DEAD", "ABSENT" };
	static const char *const wants[] = {
		"inspect", "list", "destroy", "run", "stop", "remove"
	};

	fprintf(to, "        %.3f s%s%s:", (double)w->now / (double)S,
		w->disk_broken ? ", disk full" : "", w->plugin_absent ? ", plugin absent" : "");
	for (unsigned i = 0; i < w->objects_n; i++)
		fprintf(to, " %s %s", w->objects[i].id, conditions[w->objects[i].condition]);
	for (unsigned i = 0; i < w->jobs_n; i++)
		fprintf(to, " [%s %u]",
			w->jobs[i].want ? wants[__builtin_ctz(w->jobs[i].want)] : "whole list",
			(unsigned)w->jobs[i].row);
	fputc('\n', to);
	FOR_ENTRIES (e, w) {
		const struct stored *stored = &w->db[e->row.id];
		fprintf(to, "        entry %u %s %s", (unsigned)e->row.id,
			e->row.result ? e->row.result->id : "-", ck_state_name(e->row.state));
#define PRINT_FLAG(name, bit, word) \
	if (e->row.flags & CK_ENTRY_##name) \
		fprintf(to, " %s", word);
		CK_FLAGS(PRINT_FLAG)
#undef PRINT_FLAG
		fprintf(to, ", phase %d, tries %u, reason %s, on disk %s", (int)e->row.phase,
			e->row.tries, ck_reason_name(e->row.reason),
			stored->used ? ck_state_name(stored->row.state) : "nothing");
		if (e->timer.at)
			fprintf(to, ", due %.3f s", (double)e->timer.due / (double)S);
		fputc('\n', to);
	}
	for (unsigned i = 0; i < WORLD_LABELS; i++) {
#define STATE_WORD(name, to) #name,
		static const char *const states[] = { CK_TURN_STATES(STATE_WORD) };
#undef STATE_WORD
		const struct caller *c = &w->callers[i];
		if (c->used)
			fprintf(to, "        #%u %s%s, entry %u, heard %d\n", i,
				states[c->turn.state], c->here ? "" : ", has left",
				(unsigned)c->turn.row, c->heard);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool answer_jobs(struct world *w)
{
	bool any = false;
	for (unsigned limit = 4 * WORLD_JOBS; w->jobs_n && limit && !w->failure[0]; limit--) {
		unsigned want = w->jobs[0].want;
		any = true;
		if (!want)
			world_listed(w, 0, HOW_FRESH);
		else if (want == CK_WANT_INSPECT)
			world_inspected(w, 0, true);
		else if (want == CK_WANT_LIST)
			world_listed_entry(w, 0, HOW_FRESH);
		else if (want == CK_WANT_DESTROY)
			world_destroyed(w, 0, HOW_OK);
		else
			world_hooked(w, 0, true);
	}
	return any;
}

static bool settled_down(struct world *w)
{
	FOR_ENTRIES (e, w)
		if (!ck_state_visible(e->row.state) || e->row.start == CK_START_LOST)
			return false;
	return !w->jobs_n;
}

void world_drain(struct world *w)
{
	w->more = false;
	w->plugin_absent = false;
	if (w->in_round || w->disk_broken)
		world_disk(w, false);
	for (int i = 0; i < WORLD_LABELS; i++) {
		world_drop(w, i);
		struct creation *creation = world_creation(w, i);
		if (creation && creation->state == CREATION_RUNNING)
			world_finish(w, i, false);
	}
	for (unsigned i = 0; i < w->objects_n; i++)
		world_start_end(w, w->objects[i].label, CK_START_OPEN);
	for (unsigned i = 0; i < WORLD_VIEWS; i++)
		world_view_close(w, i, HOW_FAILED);
	for (unsigned n = 0; n < 2000 && !w->failure[0]; n++) {
		bool any = answer_jobs(w);
		if (settled_down(w))
			break;
		if (!any && ck_machine_due(w->m) == CK_NEVER_DUE)
			break;
		world_next(w);
	}
	if (!w->failure[0])
		oracle_drained(w);
}
