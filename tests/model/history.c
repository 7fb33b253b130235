/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories. The next step depends on the world: a question gets an answer, a creation ends,
 * and now and then something unexpected happens. script.c plays, shortens and prints histories.
 */
#include <string.h>

#include "src/base/mem.h"
#include "tests/model/history.h"
#include "tests/model/script.h"
#include "tests/model/world-int.h"

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t chance;

/* xorshift64* */
static unsigned below(unsigned n)
{
	chance ^= chance >> 12;
	chance ^= chance << 25;
	chance ^= chance >> 27;
	return (unsigned)(((chance * UINT64_C(0x2545f4914f6cdd1d) >> 32) * n) >> 32);
}

static bool percent(unsigned n)
{
	return below(100) < n;
}

/* splitmix64, so that neighbouring seeds have nothing in common */
static void chance_seed(uint64_t seed)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
	chance = (seed ^ (seed >> 31)) | 1;
}

static struct world_config random_config(uint64_t seed)
{
	struct world_config config = world_config();
	struct ck_rules *rules = &config.rules;

	rules->hooks = percent(65);
	if (percent(25))
		config.told = "";
	rules->hand_back = percent(25) ? CK_OFFER : CK_REPEAT;
	rules->on_annotation_change = percent(30) ? CK_ANNOTATION_EVICT : CK_ANNOTATION_HAND_BACK;
	rules->can_inspect = percent(85);
	rules->can_list = percent(90);
	rules->skip_first_list = !rules->can_list || percent(20);
	rules->is_runtime = seed % 4 == 0;
	if (percent(50))
		rules->ttl = 20 * S;
	if (percent(50))
		rules->create_deadline = 60 * S;
	if (percent(30))
		rules->lost_grace = 8 * S;
	if (percent(5))
		rules->mode = CK_MODE_IDENTITY;
	config.pods = percent(8) ? WORLD_PODS : 2;
	return config;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int free_label(struct world *w)
{
	for (int tries = 0; tries < 8; tries++) {
		int label = (int)below(WORLD_LABELS);
		if (!w->callers[label].used && !world_creation(w, label) && !world_object(w, label))
			return label;
	}
	return -1;
}

static int any_caller(struct world *w, bool (*is)(const struct caller *))
{
	int from = (int)below(WORLD_LABELS);
	for (int i = 0; i < WORLD_LABELS; i++) {
		int label = (from + i) % WORLD_LABELS;
		if (w->callers[label].used && is(&w->callers[label]))
			return label;
	}
	return -1;
}

static bool is_here(const struct caller *c)
{
	return c->here && (c->drain ? c->removal.state == CK_REMOVAL_WAITING
				    : ck_turn_waits(&c->turn) || c->making);
}

static bool is_making(const struct caller *c)
{
	return c->making;
}

static bool is_any(const struct caller *c)
{
	(void)c;
	return true;
}

static bool is_handed(const struct caller *c)
{
	return c->heard == CK_HAND_BACK && !c->reported;
}

static int any_creation(struct world *w)
{
	unsigned from = w->creations_n ? below(w->creations_n) : 0;
	for (unsigned i = 0; i < w->creations_n; i++) {
		const struct creation *c = &w->creations[(from + i) % w->creations_n];
		if (!c->told && (c->state == CREATION_RUNNING || w->callers[c->label].making))
			return c->label;
	}
	return -1;
}

/* @kind 0: of any kind */
static int any_object(struct world *w, enum ck_kind kind)
{
	unsigned from = w->objects_n ? below(w->objects_n) : 0;
	for (unsigned i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[(from + i) % w->objects_n];
		if ((!kind || o->kind == kind) &&
		    (o->condition != CK_CONDITION_ABSENT || percent(5)))
			return o->label;
	}
	return -1;
}

/* an object of an entry that is being made or committed, for somebody else to act on; by chance
 * alone this would be too rare */
static int any_hidden(struct world *w)
{
	unsigned from = w->objects_n ? below(w->objects_n) : 0;
	for (unsigned i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[(from + i) % w->objects_n];
		struct ck_entry *e = ck_machine_object(w->m, o->kind, o->id);
		if (o->condition == CK_CONDITION_READY &&
		    (!e || e->row.state == CK_STATE_COMMITTING))
			return o->label;
	}
	return -1;
}

/* a container with an entry that hides it */
static int any_kept(struct world *w)
{
	unsigned from = w->objects_n ? below(w->objects_n) : 0;
	for (unsigned i = 0; i < w->objects_n; i++) {
		const struct object *o = &w->objects[(from + i) % w->objects_n];
		struct ck_entry *e = ck_machine_object(w->m, o->kind, o->id);
		if (o->kind == CK_CONTAINER && e && ck_machine_hidden(e))
			return o->label;
	}
	return -1;
}

/* a sandbox whose destruction is under way */
static int any_destroyed(struct world *w)
{
	const struct job *job = world_job(w, CK_WANT_DESTROY, 0);
	const struct object *o =
		job && job->kind == CK_SANDBOX ? world_object_of(w, w->shadows[job->row].id) : NULL;
	return o ? o->label : -1;
}

static void random_request(struct world *w, struct request *req)
{
	memset(req, 0, sizeof(*req));
	req->kind = percent(60) ? CK_SANDBOX : CK_CONTAINER;
	req->pod = (unsigned char)below(w->config.pods);
	req->in = -1;
	if (req->kind == CK_CONTAINER) { /* mostly in a sandbox that was handed to a caller */
		for (int tries = 0; tries < 6; tries++) {
			int destroyed = percent(50) ? any_destroyed(w) : -1;
			int label = destroyed < 0 ? any_object(w, CK_SANDBOX) : destroyed;
			struct object *o = label >= 0 ? world_object(w, label) : NULL;
			struct ck_entry *e = o ? ck_machine_object(w->m, CK_SANDBOX, o->id) : NULL;
			if (!o || (destroyed < 0 && e && ck_machine_hidden(e) && percent(90)))
				continue;
			req->in = label;
			req->pod = w->callers[label].req.pod;
			req->uid = w->callers[label].req.uid;
			break;
		}
		if (req->in < 0 && percent(70))
			req->kind = CK_SANDBOX;
	}
}

static void vary(struct request *req)
{
	unsigned n = below(100);
	if (n < 35)
		req->attempt = (unsigned char)((req->attempt + 1 + below(2)) % 3);
	else if (n < 62)
		req->fp.base = (unsigned char)((req->fp.base + 1 + below(2)) % 3);
	else if (n < 84)
		req->fp.cosmetic ^= 1;
	else if (n < 92 && req->kind == CK_CONTAINER) /* another pod than that of its sandbox */
		req->pod ^= 1;
	else if (n < 97)
		req->uid ^= 1;
	else
		req->name ^= 1;
}

static void make_begin(struct world *w, struct step *s)
{
	static const uint64_t timeouts[] = { 0,      200 * MS, 400 * MS, 2 * S,
						     10 * S, 10 * S,   120 * S,  240 * S };
	int like = any_caller(w, is_any);

	s->op = STEP_BEGIN;
	s->label = free_label(w);
	if (s->label < 0)
		s->op = STEP_NONE;
	if (like >= 0 && !w->callers[like].drain && percent(w->config.pods > 2 ? 15 : 75)) {
		s->req = w->callers[like].req;
		if (percent(40))
			vary(&s->req);
	} else {
		random_request(w, &s->req);
	}
	s->time = timeouts[below(CK_COUNT(timeouts))];
	if (percent(2))
		s->time = 100 * MS;
	s->arg = percent(3);
}

static void make_answer(struct world *w, struct step *s)
{
	if (!w->jobs_n)
		return;
	const struct job *job = &w->jobs[percent(50) ? 0 : below(w->jobs_n)];
	unsigned group = job->want & (CK_WANT_RUN | CK_WANT_STOP | CK_WANT_REMOVE)
				 ? CK_WANT_RUN | CK_WANT_STOP | CK_WANT_REMOVE
				 : job->want;
	while (world_job(w, group, s->nth) != job)
		s->nth++;
	switch (job->want) {
	case 0:
		s->op = STEP_LISTED;
		s->arg = percent(12) ? HOW_FAILED : percent(60) ? HOW_FRESH : HOW_OK;
		break;
	case CK_WANT_INSPECT:
		s->op = STEP_INSPECTED;
		s->arg = percent(80);
		break;
	case CK_WANT_LIST:
		s->op = STEP_LISTED_ENTRY;
		s->arg = percent(12) ? HOW_FAILED : percent(60) ? HOW_FRESH : HOW_OK;
		break;
	case CK_WANT_DESTROY:
		s->op = STEP_DESTROYED;
		s->arg = percent(55) ? HOW_OK : percent(50) ? HOW_FAILED : HOW_DONE_UNHEARD;
		break;
	default:
		s->op = STEP_HOOKED;
		s->arg = percent(85);
		break;
	}
}

static void make_time(struct world *w, struct step *s)
{
	static const uint64_t spans[] = { 10 * MS, 250 * MS, 600 * MS, 1 * S,  3 * S,
					  6 * S,   11 * S,   22 * S,   65 * S, 300 * S };

	(void)w;
	s->op = percent(55) ? STEP_NEXT : percent(80) ? STEP_TIME : STEP_STALL;
	s->time = spans[below(CK_COUNT(spans))];
}

static void make_object_step(struct world *w, struct step *s)
{
	unsigned n = below(100);

	s->label = any_object(w, 0);
	if (n < 26) {
		s->op = STEP_CONDITION;
		s->arg = percent(50)   ? CK_CONDITION_DEAD
			 : percent(50) ? CK_CONDITION_RUNNING
				       : CK_CONDITION_ABSENT;
		if (percent(50))
			s->label = any_hidden(w);
	} else if (n < 46) {
		s->op = STEP_SEEN;
	} else if (n < 52) {
		s->op = percent(40) ? STEP_USED : STEP_STARTING;
		if (s->op == STEP_STARTING && percent(70))
			s->label = any_kept(w);
	} else if (n < 68) {
		s->op = STEP_STOPPING;
		s->label = any_destroyed(w);
		if (s->label < 0 || percent(50))
			s->label = any_object(w, CK_SANDBOX);
	} else if (n < 80) {
		s->op = STEP_FORGET;
	} else if (n < 88) {
		s->op = STEP_REMOVE_BEGIN;
		s->req.in = any_object(w, CK_SANDBOX);
		s->label = free_label(w);
		s->time = 10 * S;
		if (s->label < 0)
			s->op = STEP_NONE;
	} else {
		s->op = STEP_EXTERNAL;
		s->label = free_label(w);
		random_request(w, &s->req);
		s->arg = percent(80) ? CK_CONDITION_READY : CK_CONDITION_DEAD;
		s->nth = percent(60);
		int like = any_caller(w, is_any);
		if (s->nth && like >= 0 && !w->callers[like].drain)
			s->req = w->callers[like].req;
		if (s->label < 0)
			s->op = STEP_NONE;
	}
}

static void make_trouble(struct world *w, struct step *s)
{
	unsigned n = below(100);

	if (n < 30) {
		s->op = STEP_EVICT;
		s->nth = below(8);
		s->arg = percent(25);
	} else if (n < 50) {
		s->op = STEP_DISK;
		s->arg = !w->disk_broken;
	} else if (n < 55) {
		s->op = STEP_NEW_DATABASE;
	} else if (n < 70) {
		s->op = STEP_PLUGIN;
		s->arg = !w->plugin_absent;
	} else if (n < 95) {
		s->op = STEP_CRASH;
		s->arg = (percent(30) ? CRASH_LATE : 0u) | (percent(15) ? CRASH_REBOOT : 0u) |
			 (percent(10) ? CRASH_NEW_KEY : 0u);
	} else {
		s->op = STEP_CRASH;
	}
}

static void make_view(struct world *w, struct step *s)
{
	int label = percent(50) ? any_hidden(w) : -1;

	s->op = percent(50) ? STEP_VIEW_OPEN : STEP_VIEW_CLOSE;
	s->nth = below(2);
	s->req.kind = percent(60) ? CK_SANDBOX : CK_CONTAINER;
	s->arg = percent(80) ? HOW_OK : HOW_FAILED;
	if (label < 0)
		return;
	s->req.kind = world_object(w, label)->kind;
	if (percent(30)) {
		s->op = STEP_CONDITION;
		s->label = label;
		s->arg = percent(50) ? CK_CONDITION_DEAD : CK_CONDITION_ABSENT;
	}
}

static void make_listing(struct world *w, struct step *s, enum ck_kind kind)
{
	s->op = w->views[0].open ? STEP_VIEW_CLOSE : STEP_VIEW_OPEN;
	s->req.kind = kind;
	s->arg = HOW_OK;
}

/* the result of a creation dies before its caller hears of it, and a list shows this */
static bool make_stillborn(struct world *w, struct step *s, const struct ck_entry *e)
{
	for (unsigned i = 0; i < w->creations_n; i++) {
		const struct creation *c = &w->creations[i];
		if (c->row != e->row.id || c->told || c->reserved ||
		    e->row.state == CK_STATE_UNKNOWN)
			continue;
		s->label = c->label;
		if (c->state == CREATION_MADE &&
		    w->objects[c->object].condition == CK_CONDITION_DEAD && percent(70)) {
			make_listing(w, s, e->row.key->kind);
		} else if (c->state == CREATION_MADE &&
			   w->objects[c->object].condition == CK_CONDITION_READY) {
			s->op = STEP_CONDITION;
			s->arg = CK_CONDITION_DEAD;
		} else {
			s->op = STEP_FINISH;
			s->arg = c->state == CREATION_MADE;
		}
		return true;
	}
	return false;
}

/* An object vanishes unexpectedly: while it is made, while its hooks run, after a destroy that
 * seems to have failed. By chance alone this would be rarer than one in ten thousand. */
static bool make_absence(struct world *w, struct step *s)
{
	FOR_ENTRIES (e, w) {
		struct object *o = e->row.result ? world_object_of(w, e->row.result->id) : NULL;
		if ((e->row.state == CK_STATE_CREATING || e->row.state == CK_STATE_UNKNOWN) &&
		    percent(20))
			return make_stillborn(w, s, e);
		if (!o || (e->row.state != CK_STATE_COMMITTING &&
			   (e->row.state != CK_STATE_EVICTING || e->row.phase != CK_PHASE_DESTROY)))
			continue;
		s->label = o->label;
		if (o->condition == CK_CONDITION_ABSENT) {
			make_listing(w, s, o->kind);
		} else if (e->row.state == CK_STATE_EVICTING) {
			s->op = STEP_DESTROYED;
			s->arg = HOW_DONE_UNHEARD;
		} else if (o->kind == CK_CONTAINER && percent(30)) {
			s->op = STEP_FORGET;
			s->label = o->req.in;
		} else {
			s->op = STEP_CONDITION;
			s->arg = CK_CONDITION_ABSENT;
		}
		return true;
	}
	return false;
}

/* A second object of a key appears, and a caller asks for the first while the second is destroyed
 * (K26). */
static bool make_twin(struct world *w, struct step *s)
{
	FOR_ENTRIES (e, w) {
		struct object *o = e->row.state == CK_STATE_KEPT
					   ? world_object_of(w, e->row.result->id)
					   : NULL;
		bool twin = false, evicted = false;
		if (!o || o->condition != CK_CONDITION_READY)
			continue;
		for (unsigned i = 0; i < w->objects_n; i++)
			twin = twin || (&w->objects[i] != o && w->objects[i].key == o->key &&
					w->objects[i].condition != CK_CONDITION_ABSENT);
		FOR_ENTRIES (other, w)
			evicted = evicted || (other->row.state == CK_STATE_EVICTING &&
					      other->row.reason == CK_REASON_DUPLICATE);
		s->req = o->req;
		s->op = !twin              ? STEP_EXTERNAL
			: evicted          ? STEP_BEGIN
			: w->views[0].open ? STEP_VIEW_CLOSE
					   : STEP_VIEW_OPEN;
		s->arg = !twin ? CK_CONDITION_READY : evicted ? false : HOW_OK;
		s->nth = !twin; /* for EXTERNAL any object, else view 0 */
		s->time = 10 * S;
		s->label = !twin || evicted ? free_label(w) : -1;
		return s->label >= 0 || (twin && !evicted);
	}
	return false;
}

/* the object of this entry, also if nobody has been told its id; or NULL */
static const struct object *made_for(struct world *w, const struct ck_entry *e)
{
	if (e->row.result)
		return world_object_of(w, e->row.result->id);
	for (unsigned i = 0; i < w->objects_n; i++)
		if (w->objects[i].row == e->row.id &&
		    w->objects[i].condition != CK_CONDITION_ABSENT)
			return &w->objects[i];
	return NULL;
}

static bool has_container(const struct world *w, const struct object *sandbox)
{
	for (unsigned i = 0; i < w->objects_n; i++)
		if (w->objects[i].condition != CK_CONDITION_ABSENT &&
		    !strcmp(w->keys[w->objects[i].key].key->sandbox_id, sandbox->id))
			return true;
	return false;
}

/* A kubelet straight at the runtime uses what is hidden from it, and then a list shows this, often
 * the first one of the next life (K22). */
static bool make_use(struct world *w, struct step *s)
{
	FOR_ENTRIES (e, w) {
		const struct object *o = made_for(w, e);
		if (!o || o->condition == CK_CONDITION_ABSENT ||
		    ck_state_visible(e->row.state) || e->row.state == CK_STATE_CREATING ||
		    percent(30))
			continue;
		if (o->kind == CK_CONTAINER && o->condition == CK_CONDITION_READY) {
			s->op = STEP_CONDITION;
			s->label = o->label;
			s->arg = CK_CONDITION_RUNNING;
		} else if (o->kind == CK_SANDBOX && !has_container(w, o)) {
			s->op = STEP_EXTERNAL;
			s->label = free_label(w);
			s->req = o->req;
			s->req.kind = CK_CONTAINER;
			s->req.in = o->label;
			s->arg = CK_CONDITION_READY + below(3);
		} else if (percent(50)) {
			make_listing(w, s, CK_CONTAINER);
		} else {
			s->op = STEP_CRASH;
		}
		return s->op != STEP_EXTERNAL || s->label >= 0;
	}
	return false;
}

/* A container is started, and another attempt of it is asked for before, at or after the end of the
 * start (K34). */
static bool make_start(struct world *w, struct step *s)
{
	FOR_ENTRIES (e, w) {
		const struct object *o = e->row.result ? world_object_of(w, e->row.result->id)
						       : NULL;
		if (!o || o->kind != CK_CONTAINER || e->row.state != CK_STATE_COMMITTED ||
		    percent(40))
			continue;
		s->label = o->label;
		if (!e->row.start && !e->running) {
			s->op = STEP_START_BEGIN;
		} else if (o->called && percent(45)) {
			s->op = STEP_START_END;
			s->arg = percent(30) ? (unsigned)CK_START_REFUSED : below(4);
		} else if (e->row.start == CK_START_LOST && percent(50)) {
			s->op = percent(20) ? STEP_CONDITION : percent(50) ? STEP_START_BEGIN
									   : STEP_NEXT;
			s->arg = CK_CONDITION_RUNNING;
		} else if (e->row.start && percent(12)) {
			s->op = STEP_CRASH;
		} else {
			s->op = STEP_BEGIN;
			s->label = free_label(w);
			s->req = o->req;
			s->req.attempt = (unsigned char)((s->req.attempt + 1 + below(2)) % 3);
			s->time = percent(50) ? 10 * S : 120 * S;
			return s->label >= 0;
		}
		return true;
	}
	return false;
}

static bool forlorn; /* creations are lost, and their lists show nothing for long */

static void make_step(struct world *w, struct step *s)
{
	unsigned n = below(100);

	memset(s, 0, sizeof(*s));
	s->label = -1;
	s->req.in = -1;
	s->more = percent(10);
	if (percent(4) && (percent(70) ? make_absence(w, s) : make_twin(w, s))) {
		return;
	} else if (percent(4) && make_use(w, s)) {
		return;
	} else if (percent(8) && make_start(w, s)) {
		return;
	} else if (n < 24) {
		make_begin(w, s);
	} else if (n < 52) {
		make_answer(w, s);
	} else if (n < 64 && forlorn) {
		s->op = percent(40) ? STEP_NEXT : percent(50) ? STEP_TIME : STEP_LOSE;
		s->time = 6 * S;
		s->label = any_caller(w, is_making);
	} else if (n < 64) {
		s->label = any_creation(w);
		s->op = percent(75) ? STEP_FINISH : STEP_FAIL;
		s->arg = percent(75);
	} else if (n < 74) {
		make_time(w, s);
	} else if (n < 79) {
		s->op = STEP_LEAVE;
		s->label = any_caller(w, is_here);
	} else if (n < 82) {
		s->op = STEP_DROP;
		s->label = any_caller(w, is_any);
	} else if (n < 85) {
		s->op = STEP_LOSE;
		s->label = any_caller(w, is_making);
	} else if (n < 87) {
		s->op = STEP_REPORT;
		s->label = any_caller(w, is_handed);
		s->arg = percent(40);
	} else if (n < 88) {
		s->op = STEP_STAGE;
		s->label = any_caller(w, is_making);
	} else if (n < 93) {
		make_object_step(w, s);
	} else if (n < 96) {
		make_view(w, s);
	} else {
		make_trouble(w, s);
	}
}

static unsigned length;
static bool prompt; /* the first lists come at once */

static const struct step *next_random(struct world *w, struct history *h, unsigned i)
{
	struct step *s = &h->steps[i];

	if (i == length)
		return NULL;
	make_step(w, s);
	if (prompt && i < 2)
		*s = (struct step){ .op = STEP_LISTED, .label = -1 };
	h->n = i + 1;
	return s;
}

bool history_make(struct history *h, uint64_t seed, coverage *cells)
{
	chance_seed(seed);
	h->seed = seed;
	h->n = 0;
	h->config = random_config(seed);
	length = 30 + below(HISTORY_STEPS - 30);
	prompt = percent(75);
	forlorn = percent(12);
	return script_play(h, cells, next_random, NULL);
}
