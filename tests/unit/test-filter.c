/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in answers. Each message is built twice from a small world: with everything, and without
 * what is hidden. The filter must make the second from the first, byte for byte.
 */
#include "tests/unit/harness.h"

#include "src/base/fault.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cri/filter.h"
#include "tests/unit/wire-build.h"

/* ---- the world: two sandboxes, three containers ---------------------------------------------- */

static const struct thing {
	enum ck_kind kind;
	const char *id, *name; /* of the pod or of the container */
	unsigned sandbox;      /* of a container: the sandbox it lies in */
	uint32_t attempt;
	unsigned state;
	uint64_t created_at;
} things[] = {
	{ CK_SANDBOX, "sandbox-0", "web-0", 0, 0, 0, 1000 },
	{ CK_SANDBOX, "sandbox-1", "web-1", 1, 7, 1, 1001 },
	{ CK_CONTAINER, "container-2", "init", 0, 0, 2, 2002 },
	{ CK_CONTAINER, "container-3", "app", 0, 3, 1, 2003 },
	{ CK_CONTAINER, "container-4", "app", 1, 0, 0, 2004 },
};
#define THINGS CK_COUNT(things)

struct world {
	unsigned hidden;  /* bits of things[] */
	bool unknown;     /* every message has unknown fields */
	unsigned subject; /* of an event: index of things[] */
};

static bool hidden(const struct world *w, unsigned i)
{
	return w->hidden >> i & 1;
}

/* is @i written? It must not be hidden, nor lie in a hidden sandbox */
static bool shown(const struct world *w, unsigned i)
{
	return !hidden(w, i) && !(things[i].kind == CK_CONTAINER && hidden(w, things[i].sandbox));
}

static void put_metadata(struct ck_bytes *to, uint32_t field, const struct world *w, unsigned i)
{
	struct ck_bytes inner = { 0 };
	char uid[16];

	snprintf(uid, sizeof(uid), "uid-%u", i);
	put_text(&inner, 1, things[i].name);
	if (things[i].kind == CK_SANDBOX) {
		put_text(&inner, 2, uid);
		put_text(&inner, 3, "shop");
	}
	if (w->unknown)
		put_unknown(&inner);
	if (things[i].attempt)
		put_number(&inner, things[i].kind == CK_SANDBOX ? 4 : 2, things[i].attempt);
	put(to, field, &inner);
}

static void put_labels(struct ck_bytes *to, uint32_t field, unsigned i)
{
	unsigned s = things[i].kind == CK_SANDBOX ? i : things[i].sandbox;
	char uid[16];

	snprintf(uid, sizeof(uid), "uid-%u", s);
	put_pair(to, field, "io.kubernetes.pod.uid", uid);
	put_pair(to, field, "app", "web");
	put_pair(to, field, "io.kubernetes.pod.name", things[s].name);
	put_pair(to, field, "io.kubernetes.pod.namespace", "shop");
}

/* where the fields of one object lie in a message of CRI */
struct form {
	uint32_t id, sandbox_id, metadata, state, created_at, labels;
};
static const struct form pod_sandbox = { 1, 0, 2, 3, 4, 5 },
			 pod_sandbox_status = { 1, 0, 2, 3, 4, 7 };
static const struct form container = { 1, 2, 3, 6, 7, 8 }, container_status = { 1, 0, 2, 3, 4, 12 };
static const struct form attributes = { 1, 0, 2, 0, 0, 3 };
static const struct world everything = { .hidden = 0 };

static void put_thing(struct ck_bytes *to, uint32_t field, const struct form *form,
		      const struct world *w, unsigned i)
{
	const struct thing *t = &things[i];
	struct ck_bytes inner = { 0 };

	if (form->labels)
		put_labels(&inner, form->labels, i);
	if (w->unknown)
		put_unknown(&inner);
	if (form->created_at)
		put_number(&inner, form->created_at, t->created_at);
	if (form->state && t->state)
		put_number(&inner, form->state, t->state);
	put_metadata(&inner, form->metadata, w, i);
	if (form->sandbox_id)
		put_text(&inner, form->sandbox_id, things[t->sandbox].id);
	put_text(&inner, form->id, t->id); /* its id comes last, which protobuf allows */
	put(to, field, &inner);
}

static void put_container_stats(struct ck_bytes *to, uint32_t field, const struct world *w,
				unsigned i)
{
	struct ck_bytes stats = { 0 };

	if (w->unknown)
		put_unknown(&stats);
	put_text(&stats, 2, "cpu");
	put_thing(&stats, 1, &attributes, w, i);
	put(to, field, &stats);
}

/* linux has the containers of the sandbox and windows has them again; both come before the
 * attributes, which protobuf allows too */
static void put_sandbox_stats(struct ck_bytes *to, uint32_t field, const struct world *w,
			      unsigned s)
{
	struct ck_bytes stats = { 0 };

	for (uint32_t os = 2; os <= 3; os++) {
		struct ck_bytes inner = { 0 };
		put_text(&inner, 1, "cpu");
		for (unsigned i = 0; i < THINGS; i++)
			if (things[i].kind == CK_CONTAINER && things[i].sandbox == s && shown(w, i))
				put_container_stats(&inner, 5, w, i);
		if (w->unknown)
			put_unknown(&inner);
		put(&stats, os, &inner);
	}
	put_thing(&stats, 1, &attributes, w, s);
	put(to, field, &stats);
}

static void put_sandbox_metrics(struct ck_bytes *to, uint32_t field, const struct world *w,
				unsigned s)
{
	struct ck_bytes metrics = { 0 };

	put_text(&metrics, 2, "metric");
	for (unsigned i = 0; i < THINGS; i++) {
		struct ck_bytes inner = { 0 };
		if (things[i].kind != CK_CONTAINER || things[i].sandbox != s || !shown(w, i))
			continue;
		put_text(&inner, 2, "metric");
		put_text(&inner, 1, things[i].id);
		if (w->unknown)
			put_unknown(&inner);
		put(&metrics, 3, &inner);
	}
	if (w->unknown)
		put_unknown(&metrics);
	put_text(&metrics, 1, things[s].id);
	put(to, field, &metrics);
}

static void build_list_sandboxes(struct ck_bytes *to, const struct world *w)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (things[i].kind == CK_SANDBOX && shown(w, i))
			put_thing(to, 1, &pod_sandbox, w, i);
}

static void build_list_containers(struct ck_bytes *to, const struct world *w)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (things[i].kind == CK_CONTAINER &&
		    !hidden(w, i)) /* a list of containers has no sandboxes around them */
			put_thing(to, 1, &container, w, i);
}

static void build_list_container_stats(struct ck_bytes *to, const struct world *w)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (things[i].kind == CK_CONTAINER && !hidden(w, i))
			put_container_stats(to, 1, w, i);
}

static void build_list_sandbox_stats(struct ck_bytes *to, const struct world *w)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (things[i].kind == CK_SANDBOX && shown(w, i))
			put_sandbox_stats(to, 1, w, i);
}

static void build_list_metrics(struct ck_bytes *to, const struct world *w)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (things[i].kind == CK_SANDBOX && shown(w, i))
			put_sandbox_metrics(to, 1, w, i);
}

/* of sandbox-0 and container-3; nothing is left if that one is hidden */
static void put_status(struct ck_bytes *to, const struct world *w, uint32_t status,
		       uint32_t containers)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (things[i].kind == CK_CONTAINER && things[i].sandbox == 0 && shown(w, i))
			put_thing(to, containers, &container_status, w, i);
	put_thing(to, status, &pod_sandbox_status, w, 0);
}

static void build_sandbox_status(struct ck_bytes *to, const struct world *w)
{
	if (hidden(w, 0))
		return;
	put_pair(to, 2, "info", "{}");
	put_status(to, w, 1, 3);
}

static void build_container_status(struct ck_bytes *to, const struct world *w)
{
	if (!hidden(w, 3))
		put_thing(to, 1, &container_status, w, 3);
}

static void build_container_stats(struct ck_bytes *to, const struct world *w)
{
	if (!hidden(w, 3))
		put_container_stats(to, 1, w, 3);
}

static void build_sandbox_stats(struct ck_bytes *to, const struct world *w)
{
	if (!hidden(w, 0))
		put_sandbox_stats(to, 1, w, 0);
}

static void build_event(struct ck_bytes *to, const struct world *w)
{
	if (hidden(w, 0) || hidden(w, w->subject))
		return;
	put_status(to, w, 4, 5);
	put_number(to, 2, 1);
	put_number(to, 3, 12345);
	put_text(to, 1, things[w->subject].id);
}

#define SANDBOXES  0x03u
#define CONTAINERS 0x1cu
#define IN_FIRST   0x0cu /* containers of sandbox-0 */

static const struct answer {
	const char *rpc;
	void (*build)(struct ck_bytes *to, const struct world *w);
	unsigned about;   /* things that can be in it */
	unsigned whole;   /* the thing that it is about; 0: it is a list */
	unsigned subject; /* of an event */
	bool stateless, id_only;
} answers[] = {
	{ .rpc = "ListPodSandbox", .build = build_list_sandboxes, .about = SANDBOXES },
	{ .rpc = "StreamPodSandboxes", .build = build_list_sandboxes, .about = SANDBOXES },
	{ .rpc = "ListContainers", .build = build_list_containers, .about = CONTAINERS },
	{ .rpc = "StreamContainers", .build = build_list_containers, .about = CONTAINERS },
	{ .rpc = "ListContainerStats",
	  .build = build_list_container_stats,
	  .about = CONTAINERS,
	  .stateless = true },
	{ .rpc = "StreamContainerStats",
	  .build = build_list_container_stats,
	  .about = CONTAINERS,
	  .stateless = true },
	{ .rpc = "ListPodSandboxStats",
	  .build = build_list_sandbox_stats,
	  .about = SANDBOXES | CONTAINERS,
	  .stateless = true },
	{ .rpc = "StreamPodSandboxStats",
	  .build = build_list_sandbox_stats,
	  .about = SANDBOXES | CONTAINERS,
	  .stateless = true },
	{ .rpc = "ListPodSandboxMetrics",
	  .build = build_list_metrics,
	  .about = SANDBOXES | CONTAINERS,
	  .id_only = true },
	{ .rpc = "StreamPodSandboxMetrics",
	  .build = build_list_metrics,
	  .about = SANDBOXES | CONTAINERS,
	  .id_only = true },
	{ .rpc = "PodSandboxStatus",
	  .build = build_sandbox_status,
	  .about = 1 | IN_FIRST,
	  .whole = 1 },
	{ .rpc = "ContainerStatus", .build = build_container_status, .about = 8, .whole = 8 },
	{ .rpc = "ContainerStats",
	  .build = build_container_stats,
	  .about = 8,
	  .whole = 8,
	  .stateless = true },
	{ .rpc = "PodSandboxStats",
	  .build = build_sandbox_stats,
	  .about = 1 | IN_FIRST,
	  .whole = 1,
	  .stateless = true },
	{ .rpc = "GetContainerEvents", .build = build_event, .about = 1 | IN_FIRST, .whole = 1 },
	{ .rpc = "GetContainerEvents",
	  .build = build_event,
	  .about = 1 | IN_FIRST,
	  .whole = 1 | 8,
	  .subject = 3 },
};
#define FOR_ANSWERS(a) for (const struct answer *a = answers; a < answers + CK_COUNT(answers); a++)

static const struct ck_cri_method *method(const char *rpc)
{
	char path[128];
	int len = snprintf(path, sizeof(path), "/runtime.v1.RuntimeService/%s", rpc);
	const struct ck_cri_method *found = ck_cri_method_find(path, (size_t)len);
	assert_non_null(found);
	return found;
}

static struct ck_bytes build(const struct answer *answer, unsigned hidden, bool unknown)
{
	struct world w = { .hidden = hidden, .unknown = unknown, .subject = answer->subject };
	struct ck_bytes message = { 0 };

	answer->build(&message, &w);
	return message;
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct asked {
	unsigned hidden;
	const struct answer *answer; /* if set, every object is compared with the world */
	bool nobody_tells_the_pod;   /* its labels and its sandbox are not in the message */
	unsigned n, shown;
	int fail_at, error; /* the n-th question fails */
};

static void compare(const struct asked *asked, const struct ck_object *object, bool id_only,
		    const struct thing *t)
{
	const struct answer *answer = asked->answer;
	bool in_pod = t->kind == CK_CONTAINER;
	unsigned s = in_pod ? t->sandbox : (unsigned)(t - things);
	char uid[16];

	assert_int_equal(object->size, sizeof(*object));
	assert_int_equal(object->kind, t->kind);
	assert_int_equal(id_only, answer->id_only);
	if (!in_pod) {
		assert_null(object->sandbox_id);
		assert_null(object->container_name);
	} else {
		bool alone = strstr(answer->rpc, "Stats") && !strstr(answer->rpc, "Pod");
		alone = alone || !strcmp(answer->rpc, "ContainerStatus");
		assert_string_equal(object->sandbox_id, alone ? "" : things[s].id);
		assert_string_equal(object->container_name, id_only ? "" : t->name);
	}
	snprintf(uid, sizeof(uid), "uid-%u", s);
	assert_string_equal(object->pod_name, id_only ? "" : things[s].name);
	assert_string_equal(object->pod_namespace, id_only ? "" : "shop");
	assert_string_equal(object->pod_uid, id_only ? "" : uid);
	assert_int_equal(object->attempt, id_only ? 0 : t->attempt);
	assert_int_equal(object->created_at, id_only || answer->stateless ? 0 : t->created_at);
	enum ck_condition condition = t->state == 0             ? CK_CONDITION_READY
				      : t->state == 1 && in_pod ? CK_CONDITION_RUNNING
								: CK_CONDITION_DEAD;
	assert_int_equal(object->condition,
			 id_only || answer->stateless ? CK_CONDITION_UNKNOWN : condition);
}

static int hides(const struct ck_object *object, bool id_only, void *userdata)
{
	struct asked *asked = userdata;

	if (++asked->n == (unsigned)asked->fail_at)
		return asked->error;
	for (unsigned i = 0; i < THINGS; i++) {
		if (strcmp(object->id, things[i].id) || object->kind != things[i].kind)
			continue;
		if (asked->answer)
			compare(asked, object, id_only, &things[i]);
		asked->shown += !(asked->hidden >> i & 1);
		return asked->hidden >> i & 1;
	}
	assert_null(asked->answer); /* then the message has no other objects */
	return id_only;
}

struct run {
	struct asked asked;
	struct ck_filter_count count;
	struct ck_error err;
	struct ck_bytes out;
	int r;
};

static void filter(struct run *run, const struct ck_cri_method *method, const void *message,
		   size_t len)
{
	unsigned char *copy = exact_copy(message, len);

	run->r = ck_filter_response(method, copy, len, hides, &run->asked, &run->out, &run->count,
				    &run->err);
	assert_int_equal(run->out.p != NULL, run->r == CK_FILTER_CUT);
	assert_int_equal(run->err.code, run->r < 0 ? -run->r : 0);
	if (run->r < 0)
		assert_true(*run->err.text);
	free(copy);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_answer_has_a_message_here(void **state)
{
	(void)state;
	for (size_t i = 0; ck_cri_method_at(i); i++) {
		bool found = false;
		FOR_ANSWERS(answer)
			found |= !strcmp(answer->rpc, ck_cri_method_at(i)->rpc);
		assert_int_equal(found, ck_cri_method_at(i)->response != NULL);
	}
}

static void whatever_is_hidden_is_cut_and_nothing_else(void **state)
{
	(void)state;
	FOR_ANSWERS(answer) {
		for (unsigned bits = 0; bits < 1u << THINGS; bits++) {
			for (int unknown = 0; unknown <= 1; unknown++) {
				struct ck_bytes message = build(answer, 0, unknown),
						expected = build(answer, bits, unknown);
				struct run run = { .asked = { .hidden = bits, .answer = answer } };
				filter(&run, method(answer->rpc), message.p, message.len);
				assert_int_equal(run.count.shown + run.count.hidden, run.asked.n);
				assert_int_equal(run.count.shown, run.asked.shown);
				if (message.len == expected.len) {
					assert_int_equal(run.r, CK_FILTER_AS_IT_CAME);
				} else if (!expected.len) {
					assert_int_equal(run.r, CK_FILTER_EMPTIED);
				} else {
					assert_int_equal(run.r, CK_FILTER_CUT);
					assert_int_equal(run.out.len, expected.len);
					assert_memory_equal(run.out.p, expected.p, expected.len);
				}
				ck_bytes_free(&run.out);
				ck_bytes_free(&expected);
				ck_bytes_free(&message);
			}
		}
	}
}

static void a_list_of_hidden_objects_keeps_what_nobody_knows(void **state)
{
	(void)state;
	FOR_ANSWERS(answer) {
		struct ck_bytes message = { 0 }, unknown = { 0 };
		if (answer->whole)
			continue;
		put_unknown(&unknown);
		must(ck_bytes_add(&message, unknown.p, unknown.len));
		answer->build(&message, &everything);
		struct run run = { .asked = { .hidden = ~0u, .answer = answer } };
		filter(&run, method(answer->rpc), message.p, message.len);
		assert_int_equal(run.r, CK_FILTER_CUT);
		assert_int_equal(run.out.len, unknown.len);
		assert_memory_equal(run.out.p, unknown.p, unknown.len);
		ck_bytes_free(&run.out);
		ck_bytes_free(&unknown);
		ck_bytes_free(&message);
	}
}

static void an_empty_message_comes_as_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; ck_cri_method_at(i); i++) {
		struct run run = { .asked = { .hidden = ~0u } };
		filter(&run, ck_cri_method_at(i), "", 0);
		assert_int_equal(run.r, CK_FILTER_AS_IT_CAME);
		assert_int_equal(run.asked.n, 0);
		if (ck_cri_method_at(i)->response)
			continue;
		/* a message without a shape need not be well-formed */
		filter(&run, ck_cri_method_at(i), "\xff", 1);
		assert_int_equal(run.r, CK_FILTER_AS_IT_CAME);
	}
}

static void objects_that_tell_nothing_are_shown_with_what_is_known_inside(void **state)
{
	static const char *const lists[] = { "ListPodSandbox", "ListContainers",
					     "ListPodSandboxStats", "ListPodSandboxMetrics" };
	struct ck_bytes message = { 0 }, linux_stats = { 0 }, stats = { 0 };

	(void)state;
	for (size_t i = 0; i < CK_COUNT(lists); i++) { /* empty items */
		struct run run = { .asked = { .hidden = ~0u } };
		filter(&run, method(lists[i]), "\x0a\x00\x0a\x00", 4);
		assert_int_equal(run.r, CK_FILTER_AS_IT_CAME);
		assert_int_equal(run.asked.n, 0);
	}
	/* statistics that have containers, but no attributes */
	put_container_stats(&linux_stats, 5, &everything, 2);
	put(&stats, 2, &linux_stats);
	put(&message, 1, &stats);
	struct run run = { .asked = { .hidden = 4 } };
	filter(&run, method("ListPodSandboxStats"), message.p, message.len);
	assert_int_equal(run.r, CK_FILTER_CUT);
	assert_int_equal(run.out.len, 4);
	assert_memory_equal(run.out.p, "\x0a\x02\x12\x00", 4);
	ck_bytes_free(&run.out);
	ck_bytes_free(&message);
}

static void an_id_that_cannot_be_is_nobodys(void **state)
{
	char id[CK_ID_MAX + 2];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct ck_bytes message = { 0 }, item = { 0 };
		memset(id, 'i', sizeof(id));
		id[CK_ID_MAX + (i == 0)] = '\0';
		put_text(&item, 1, id);
		if (i == 2) /* a NUL behind a known id */
			item.p[item.len - 3] = '\0';
		put(&message, 1, &item);
		struct run run = { .asked = { .hidden = ~0u } };
		filter(&run, method("ListPodSandbox"), message.p, message.len);
		assert_int_equal(run.r, CK_FILTER_AS_IT_CAME);
		assert_int_equal(run.asked.n, i == 1);
		ck_bytes_free(&message);
	}
}

static int copy_object(const struct ck_object *object, bool id_only, void *userdata)
{
	struct ck_object *copy = userdata;

	assert_false(id_only);
	assert_null(copy->id); /* only one object */
	*copy = *object;
	copy->id = strdup(object->id);
	copy->pod_name = strdup(object->pod_name);
	copy->pod_namespace = strdup(object->pod_namespace);
	copy->pod_uid = strdup(object->pod_uid);
	copy->sandbox_id = object->sandbox_id ? strdup(object->sandbox_id) : NULL;
	copy->container_name = object->container_name ? strdup(object->container_name) : NULL;
	return 0;
}

static void object_free(struct ck_object *object)
{
	free((char *)object->id);
	free((char *)object->pod_name);
	free((char *)object->pod_namespace);
	free((char *)object->pod_uid);
	free((char *)object->sandbox_id);
	free((char *)object->container_name);
}

static struct ck_object read_one(const char *rpc, const struct ck_bytes *message)
{
	struct ck_object object = { 0 };
	int r = ck_filter_response(method(rpc), message->p, message->len, copy_object, &object,
				   NULL, NULL, NULL);
	assert_int_equal(r, CK_FILTER_AS_IT_CAME);
	assert_non_null(object.id);
	return object;
}

static int remember(const struct ck_object *object, bool id_only, void *userdata)
{
	enum ck_condition *condition = userdata;

	(void)id_only;
	*condition = object->condition;
	return 0;
}

/* CRI-O's time of what was never started lies before the epoch */
static void a_status_tells_whether_what_has_exited_was_started(void **state)
{
	static const struct {
		unsigned state;
		int64_t started_at;
		enum ck_condition condition;
	} rows[] = {
		{ 2, 1000, CK_CONDITION_RAN },
		{ 2, 0, CK_CONDITION_DEAD },
		{ 2, -6795364578871345152, CK_CONDITION_DEAD },
		{ 1, 1000, CK_CONDITION_RUNNING },
		{ 0, 0, CK_CONDITION_READY },
		{ 3, 1000, CK_CONDITION_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < CK_COUNT(rows); i++) {
		struct ck_bytes status = { 0 }, answer = { 0 }, out = { 0 };
		enum ck_condition condition = CK_CONDITION_ABSENT;
		struct ck_error err;
		put_text(&status, 1, "c1");
		put_number(&status, 3, rows[i].state);
		put_number(&status, 5, (uint64_t)rows[i].started_at);
		put(&answer, 1, &status);
		assert_int_equal(ck_filter_response(ck_cri_method_named("ContainerStatus"),
						    answer.p, answer.len, remember, &condition,
						    &out, NULL, &err),
				 CK_FILTER_AS_IT_CAME);
		assert_int_equal(condition, rows[i].condition);
		free(answer.p);
	}
}

static void a_status_in_pieces_is_one(void **state)
{
	struct ck_bytes message = { 0 }, piece = { 0 }, metadata = { 0 };

	(void)state;
	put_text(&metadata, 1, "old");
	put_text(&metadata, 2, "uid");
	put(&piece, 2, &metadata);
	put_text(&piece, 1, "old-id");
	put_number(&piece, 3, 0);
	put(&message, 1, &piece);
	put_text(&metadata, 1, "name");
	put_text(&metadata, 3, "ns");
	put(&piece, 2, &metadata);
	/* a number of 32 bits loses its upper half */
	put_number(&metadata, 4, (UINT64_C(1) << 32) + 5);
	put(&piece, 2, &metadata);
	put_text(&piece, 1, "id");
	put(&message, 1, &piece);
	put_number(&piece, 4, 99);
	put_number(&piece, 3, 1);
	put(&message, 1, &piece);
	struct ck_object object = read_one("PodSandboxStatus", &message);
	assert_string_equal(object.id, "id");
	assert_string_equal(object.pod_name, "name");
	assert_string_equal(object.pod_namespace, "ns");
	assert_string_equal(object.pod_uid, "uid");
	assert_int_equal(object.attempt, 5);
	assert_int_equal(object.created_at, 99);
	assert_int_equal(object.condition, CK_CONDITION_DEAD);
	object_free(&object);
	ck_bytes_free(&message);
}

static void labels_are_a_map(void **state)
{
	static const unsigned char nul[] = { 0x0a, 22,  'i', 'o', '.',  'k', 'u', 'b', 'e', 'r',
					     'n',  'e', 't', 'e', 's',  '.', 'p', 'o', 'd', '.',
					     'n',  'a', 'm', 'e', 0x12, 2,   'a', 0 };
	struct ck_bytes message = { 0 }, item = { 0 }, pair = { 0 };

	(void)state;
	put_text(&item, 1, "id");
	put_pair(&item, 8, "io.kubernetes.pod.uid", "old");
	put_pair(&item, 8, "", "no key");
	put_pair(&item, 8, "io.kubernetes.pod.uid", "uid"); /* the later entry counts */
	/* value before key, key twice, an unknown field */
	put_text(&pair, 2, "ns");
	put_text(&pair, 1, "io.kubernetes.pod.uid");
	put_unknown(&pair);
	put_text(&pair, 1, "io.kubernetes.pod.namespace");
	put(&item, 8, &pair);
	must(ck_bytes_field(&item, 8, nul, sizeof(nul))); /* no pod is called "a\0" */
	put(&message, 1, &item);
	struct ck_object object = read_one("ListContainers", &message);
	assert_string_equal(object.pod_uid, "uid");
	assert_string_equal(object.pod_namespace, "ns");
	assert_string_equal(object.pod_name, "");
	assert_string_equal(object.sandbox_id, "");
	assert_string_equal(object.container_name, "");
	object_free(&object);
	ck_bytes_free(&message);
}

static int shows_all(const struct ck_object *object, bool id_only, void *userdata)
{
	(void)object;
	(void)id_only;
	(void)userdata;
	return 0;
}

/* wherever a container's annotations are; those of others are passed on as they are */
static void our_own_annotation_is_cut(void **state)
{
	static const struct {
		const char *rpc;
		uint32_t outer[2]; /* from the message to the one with the annotations; 0: none */
		uint32_t annotations;
	} cases[] = {
		{ "ListContainers", { 1, 0 }, 9 },
		{ "StreamContainers", { 1, 0 }, 9 },
		{ "ContainerStatus", { 1, 0 }, 13 },
		{ "PodSandboxStatus", { 3, 0 }, 13 },
		{ "GetContainerEvents", { 5, 0 }, 13 },
		{ "ContainerStats", { 1, 1 }, 4 },
		{ "ListContainerStats", { 1, 1 }, 4 },
	};
	(void)state;
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		struct ck_bytes made[2] = { 0 }, out = { 0 };
		for (int own = 0; own < 2; own++) {
			struct ck_bytes inner = { 0 }, around = { 0 };
			put_text(&inner, 1, "id");
			put_pair(&inner, cases[i].annotations, "a", "1");
			if (own)
				put_pair(&inner, cases[i].annotations, CK_ALIAS_ANNOTATION, "2");
			put_pair(&inner, cases[i].annotations, "crikeep.io/nri-id2", "3");
			put_unknown(&inner);
			if (cases[i].outer[1])
				put(&around, cases[i].outer[1], &inner);
			put(&made[own], cases[i].outer[0], cases[i].outer[1] ? &around : &inner);
		}
		const struct ck_cri_method *method = ck_cri_method_named(cases[i].rpc);
		assert_int_equal(ck_filter_response(method, made[0].p, made[0].len, shows_all, NULL,
						    &out, NULL, NULL),
				 CK_FILTER_AS_IT_CAME);
		assert_int_equal(ck_filter_response(method, made[1].p, made[1].len, shows_all, NULL,
						    &out, NULL, NULL),
				 CK_FILTER_CUT);
		assert_int_equal(out.len, made[0].len);
		assert_memory_equal(out.p, made[0].p, out.len);
		ck_bytes_free(&out);
		ck_bytes_free(&made[0]);
		ck_bytes_free(&made[1]);
	}
}

static void a_state_is_read_as_cri_numbers_it(void **state)
{
	static const struct {
		const char *rpc;
		uint32_t field;
		uint64_t state;
		enum ck_condition condition;
	} rows[] = {
		{ "ListPodSandbox", 3, 0, CK_CONDITION_READY },
		{ "ListPodSandbox", 3, 1, CK_CONDITION_DEAD },
		{ "ListPodSandbox", 3, 2, CK_CONDITION_UNKNOWN },
		{ "PodSandboxStatus", 3, 0, CK_CONDITION_READY },
		{ "PodSandboxStatus", 3, 1, CK_CONDITION_DEAD },
		{ "PodSandboxStatus", 3, UINT64_MAX, CK_CONDITION_UNKNOWN },
		{ "ListContainers", 6, 0, CK_CONDITION_READY },
		{ "ListContainers", 6, 1, CK_CONDITION_RUNNING },
		{ "ListContainers", 6, 2, CK_CONDITION_DEAD },
		{ "ListContainers", 6, 3, CK_CONDITION_UNKNOWN },
		{ "ListContainers", 6, 4, CK_CONDITION_UNKNOWN },
		{ "ContainerStatus", 3, 0, CK_CONDITION_READY },
		{ "ContainerStatus", 3, 1, CK_CONDITION_RUNNING },
		{ "ContainerStatus", 3, 2, CK_CONDITION_DEAD },
		{ "ContainerStatus", 3, 3, CK_CONDITION_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < CK_COUNT(rows); i++) {
		for (int written = rows[i].state != 0; written <= 1; written++) {
			struct ck_bytes message = { 0 }, item = { 0 };
			put_text(&item, 1, "id");
			if (written)
				put_number(&item, rows[i].field, rows[i].state);
			put_number(&item, 4, UINT64_MAX); /* before 1970: no time */
			put_text(&item, rows[i].field, "a state is a number");
			put(&message, 1, &item);
			struct ck_object object = read_one(rows[i].rpc, &message);
			assert_int_equal(object.condition, rows[i].condition);
			assert_int_equal(object.created_at, 0);
			object_free(&object);
			ck_bytes_free(&message);
		}
	}
}

static void a_container_in_a_sandbox_has_its_pod_without_labels(void **state)
{
	struct ck_bytes message = { 0 }, status = { 0 };
	struct asked asked = { .answer = &answers[10] };

	(void)state;
	assert_string_equal(answers[10].rpc, "PodSandboxStatus");
	put_text(&status, 1, things[3].id);
	put_metadata(&status, 2, &everything, 3);
	put_number(&status, 3, things[3].state);
	put_number(&status, 4, things[3].created_at);
	put(&message, 3, &status);
	put_thing(&message, 1, &pod_sandbox_status, &everything, 0);
	int r = ck_filter_response(method("PodSandboxStatus"), message.p, message.len, hides,
				   &asked, NULL, NULL, NULL);
	assert_int_equal(r, CK_FILTER_AS_IT_CAME);
	assert_int_equal(asked.n, 2);
	ck_bytes_free(&message);
}

static int note_container(const struct ck_object *object, bool id_only, void *userdata)
{
	(void)id_only;
	if (object->kind == CK_CONTAINER)
		snprintf(userdata, 64, "%s %s %s", object->pod_name, object->pod_namespace,
			 object->pod_uid);
	return 0;
}

static void labels_of_a_container_come_before_what_its_sandbox_says(void **state)
{
	struct ck_bytes message = { 0 }, status = { 0 };
	char pod[64] = "";

	(void)state;
	put_text(&status, 1, "container");
	put_pair(&status, 12, "io.kubernetes.pod.name", "by-label");
	put(&message, 3, &status);
	put_thing(&message, 1, &pod_sandbox_status, &everything, 0);
	int r = ck_filter_response(method("PodSandboxStatus"), message.p, message.len,
				   note_container, pod, NULL, NULL, NULL);
	assert_int_equal(r, CK_FILTER_AS_IT_CAME);
	assert_string_equal(pod, "by-label shop uid-0");
	ck_bytes_free(&message);
}

/* what an event is about, and which statuses its message has */
static void an_event_is_hidden_with_what_it_is_about(void **state)
{
	static const struct {
		const char *about;
		unsigned in, hidden; /* bits of things[] */
		int r;
		unsigned n; /* questions */
	} rows[] = {
		{ "sandbox-0", 1, 0, CK_FILTER_AS_IT_CAME, 1 },
		{ "sandbox-0", 1, 1, CK_FILTER_EMPTIED, 1 },
		{ "sandbox-0", 1 | 8, 8, CK_FILTER_CUT, 2 },
		{ "container-3", 1 | 8, 0, CK_FILTER_AS_IT_CAME, 2 },
		{ "container-3", 1 | 8, 8, CK_FILTER_EMPTIED, 2 },
		{ "container-3", 1 | 8, 1, CK_FILTER_EMPTIED, 1 },
		/* its status is missing, so it is asked about by id alone */
		{ "container-3", 1 | 4, 4, CK_FILTER_CUT, 3 },
		/* as a container, then as a sandbox */
		{ "container-3", 1 | 4, 8, CK_FILTER_EMPTIED, 4 },
		/* without the sandbox's status */
		{ "container-3", 8, 8, CK_FILTER_EMPTIED, 1 },
		{ "container-3", 8, 0, CK_FILTER_AS_IT_CAME, 1 },
		{ "container-3", 0, 0, CK_FILTER_AS_IT_CAME, 1 },
		{ "container-3", 0, 8, CK_FILTER_EMPTIED, 2 },
		{ "sandbox-0", 0, 0, CK_FILTER_AS_IT_CAME, 2 },
		{ "sandbox-0", 0, 1, CK_FILTER_EMPTIED, 2 },
		/* an object that is not known by its id alone is not shown */
		{ "stranger", 0, 0, CK_FILTER_EMPTIED, 2 },
		{ "stranger", 1, 0, CK_FILTER_EMPTIED, 3 },
		{ "", 1, 0, CK_FILTER_AS_IT_CAME, 1 },
		{ "", 0, 0, CK_FILTER_AS_IT_CAME, 0 },
	};

	(void)state;
	for (size_t i = 0; i < CK_COUNT(rows); i++) {
		struct ck_bytes message = { 0 };
		put_text(&message, 1, "overruled");
		if (rows[i].in & 1)
			put_thing(&message, 4, &pod_sandbox_status, &everything, 0);
		for (unsigned t = 1; t < THINGS; t++)
			if (rows[i].in >> t & 1)
				put_thing(&message, 5, &container_status, &everything, t);
		put_text(&message, 1, rows[i].about);
		struct run run = { .asked = { .hidden = rows[i].hidden } };
		filter(&run, method("GetContainerEvents"), message.p, message.len);
		assert_int_equal(run.r, rows[i].r);
		assert_int_equal(run.asked.n, rows[i].n);
		assert_int_equal(run.count.hidden, rows[i].r != CK_FILTER_AS_IT_CAME);
		ck_bytes_free(&run.out);
		ck_bytes_free(&message);
	}
}

static void an_events_type_is_the_last_one_written(void **state)
{
	(void)state;
	assert_int_equal(ck_filter_event_type("", 0), 0);
	assert_int_equal(ck_filter_event_type("\x10\x01", 2), 1);
	assert_int_equal(ck_filter_event_type("\x10\x01\x10\x03", 4), 3);
	assert_int_equal(ck_filter_event_type("\x10\x03\x10\x00", 4), 0);
	assert_int_equal(ck_filter_event_type("\x10\x04", 2), -1);
	assert_int_equal(ck_filter_event_type("\x10\x02\x12\x01x", 5), 2);
	assert_int_equal(ck_filter_event_type("\x10", 1), -1);
	assert_int_equal(ck_filter_event_type("\x10\x01\x10", 3), -1);
}

static void a_failed_question_is_an_error_wherever_it_is(void **state)
{
	(void)state;
	FOR_ANSWERS(answer) {
		struct ck_bytes message = build(answer, 0, true);
		struct run all = { .asked = { .hidden = CONTAINERS } };
		filter(&all, method(answer->rpc), message.p, message.len);
		ck_bytes_free(&all.out);
		for (unsigned n = 1; n <= all.asked.n; n++) {
			struct run run = { .asked = { .hidden = CONTAINERS,
						      .fail_at = (int)n,
						      .error = -CK_EFORK } };
			filter(&run, method(answer->rpc), message.p, message.len);
			assert_int_equal(run.r, -CK_EFORK);
			assert_int_equal(run.asked.n, n);
		}
		ck_bytes_free(&message);
	}
}

static void a_cut_off_answer_is_malformed_wherever_it_is_cut(void **state)
{
	(void)state;
	FOR_ANSWERS(answer) {
		struct ck_bytes message = build(answer, 0, true);
		for (size_t len = 0; len < message.len; len++) {
			struct run run = { .asked = { .hidden = CONTAINERS } };
			filter(&run, method(answer->rpc), message.p, len);
			assert_int_equal(run.r == -CK_EMALFORMED,
					 !is_border(message.p, message.len, len));
			ck_bytes_free(&run.out);
		}
		ck_bytes_free(&message);
	}
}

/* with any one byte changed the result is an error or a message; nothing is read past the end, and
 * the message is not longer than before */
static void a_changed_byte_breaks_nothing(void **state)
{
	(void)state;
	FOR_ANSWERS(answer) {
		struct ck_bytes message = build(answer, 0, false);
		for (size_t at = 0; at < message.len; at++) {
			unsigned char byte = message.p[at];
			for (unsigned bit = 0; bit < 8; bit++) {
				struct run run = { .asked = { .hidden = CONTAINERS } };
				message.p[at] = (unsigned char)(byte ^ 1u << bit);
				filter(&run, method(answer->rpc), message.p, message.len);
				assert_true(run.out.len <= message.len);
				ck_bytes_free(&run.out);
			}
			message.p[at] = byte;
		}
		ck_bytes_free(&message);
	}
}

static void memory_may_end_anywhere(void **state)
{
	(void)state;
	FOR_ANSWERS(answer) {
		struct ck_bytes message = build(answer, 0, true);
		unsigned n = 0;
		for (bool hit = true; hit;) {
			struct run run = { .asked = { .hidden = CONTAINERS } };
			ck_fault_arm(CK_FAULT_ALLOC, ++n, false);
			filter(&run, method(answer->rpc), message.p, message.len);
			hit = ck_fault_hit();
			ck_fault_arm(0, 0, false);
			assert_int_equal(run.r == -CK_ENOMEM, hit);
			ck_bytes_free(&run.out);
		}
		assert_true(n > 1);
		ck_bytes_free(&message);
	}
}

static int hides_every_third(const struct ck_object *object, bool id_only, void *userdata)
{
	unsigned *n = userdata;

	(void)object;
	(void)id_only;
	return (*n)++ % 3 == 0;
}

static void a_long_list_is_cut_in_one_go_and_a_handful_of_allocations(void **state)
{
	unsigned items = 10000, n = 0;
	struct ck_bytes message = { 0 }, expected = { 0 }, out = { 0 };
	struct ck_filter_count count = { 0 };

	(void)state;
	for (unsigned i = 0; i < items; i++) {
		size_t before = message.len;
		put_thing(&message, 1, &container, &(struct world){ .unknown = true }, 2 + i % 3);
		if (i % 3)
			must(ck_bytes_add(&expected, message.p + before, message.len - before));
	}
	ck_fault_arm(CK_FAULT_ALLOC, 4, false);
	int r = ck_filter_response(method("ListContainers"), message.p, message.len,
				   hides_every_third, &n, &out, &count, NULL);
	assert_false(ck_fault_hit());
	ck_fault_arm(0, 0, false);
	assert_int_equal(r, CK_FILTER_CUT);
	assert_int_equal(count.hidden, 3334);
	assert_int_equal(count.shown, 6666);
	assert_int_equal(out.len, expected.len);
	assert_memory_equal(out.p, expected.p, expected.len);
	ck_bytes_free(&message);
	ck_bytes_free(&expected);
	ck_bytes_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_answer_has_a_message_here),
		cmocka_unit_test(whatever_is_hidden_is_cut_and_nothing_else),
		cmocka_unit_test(a_list_of_hidden_objects_keeps_what_nobody_knows),
		cmocka_unit_test(an_empty_message_comes_as_it_is),
		cmocka_unit_test(objects_that_tell_nothing_are_shown_with_what_is_known_inside),
		cmocka_unit_test(an_id_that_cannot_be_is_nobodys),
		cmocka_unit_test(a_status_tells_whether_what_has_exited_was_started),
		cmocka_unit_test(a_status_in_pieces_is_one),
		cmocka_unit_test(labels_are_a_map),
		cmocka_unit_test(our_own_annotation_is_cut),
		cmocka_unit_test(a_state_is_read_as_cri_numbers_it),
		cmocka_unit_test(a_container_in_a_sandbox_has_its_pod_without_labels),
		cmocka_unit_test(labels_of_a_container_come_before_what_its_sandbox_says),
		cmocka_unit_test(an_event_is_hidden_with_what_it_is_about),
		cmocka_unit_test(an_events_type_is_the_last_one_written),
		cmocka_unit_test(a_failed_question_is_an_error_wherever_it_is),
		cmocka_unit_test(a_cut_off_answer_is_malformed_wherever_it_is_cut),
		cmocka_unit_test(a_changed_byte_breaks_nothing),
		cmocka_unit_test(memory_may_end_anywhere),
		cmocka_unit_test(a_long_list_is_cut_in_one_go_and_a_handful_of_allocations),
	};
	return CK_TEST_MAIN(tests);
}
