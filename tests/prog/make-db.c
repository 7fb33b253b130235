/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: make-db DIR SCENE [hold|stuck|serve] - fill a state directory as its owner would, for the
 * tests of crikeep(1)
 *
 * SCENE: states (an entry in every state), hostile (names that attack a terminal), twins (ids and
 * pods that are alike), crowd (a sandbox with many containers, of a pod with a long name), offers
 * (sandboxes that are listed for the kubelet), slow (a creation that hangs), usual (a sandbox and a
 * container are created, and 26 sandboxes and 4 containers were), long (so many of them that the
 * history is full), empty. Without a third
 * word the owner ends; hold: it says "ready" and lives until it is killed; stuck: so does one that
 * cannot write any more; serve: it also answers requests, like an owner whose runtime confirms each
 * destroy, but for entries whose container is named "stubborn" or "used".
 *
 * Times are given as spans before and after now, chosen so that they have as many digits 25 seconds
 * later.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cache/store/store.h"
#include "cache/admin-request.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

#define S        CK_NS_PER_S
#define ROWS_MAX 96

static struct ck_store *store;
static struct ck_row rows[ROWS_MAX];
static size_t rows_n;
static uint64_t now;
static char boot[37];

struct plan { /* what differs from a plain sandbox */
	const char *namespace, *pod, *sandbox, *container; /* the latter two: of a container */
	uint32_t attempt;
	enum ck_state state;
	unsigned flags;
	enum ck_reason reason;
	enum ck_phase phase;
	const char *stage, *id, *told;
	uint32_t requests, tries;
	int grpc;
	unsigned age, due; /* seconds */
	bool imported, other_boot, other_key;
	const char *request; /* file to take a fingerprint of */
	const char *why;     /* what asked for its end, as in the history */
	enum ck_what last;   /* the last line of its history */
};

#define ID_API "9f3a4b21c0de9f3a4b21c0de9f3a4b21c0de9f3a4b21c0de9f3a4b21c0deffff"
#define ID_TWO "9f3b0000c0de9f3a4b21c0de9f3a4b21c0de9f3a4b21c0de9f3a4b21c0deffff"
#define ID_APP "77aa4b21c0de9f3a4b21c0de9f3a4b21c0de9f3a4b21c0de9f3a4b21c0deffff"
#define ID_OLD "c0ffee21c0de9f3a4b21c0de9f3a4b21c0de9f3a4b21c0de9f3a4b21c0deffff"

static const struct plan states[] = {
	{ .namespace = "prod",
	  .pod = "web-7d9f",
	  .state = CK_STATE_CREATING,
	  .stage = "sandbox network creation",
	  .requests = 4,
	  .age = 20,
	  .due = 582 },
	{ .namespace = "prod",
	  .pod = "api-0",
	  .state = CK_STATE_KEPT,
	  .id = ID_API,
	  .requests = 2,
	  .age = 30,
	  .due = 582,
	  .request = "001-RunPodSandbox-api.bin" },
	{ .namespace = "prod",
	  .pod = "db-0",
	  .state = CK_STATE_COMMITTED,
	  .flags = CK_ENTRY_TOLD,
	  .id = "db00000000000000",
	  .told = "10-net 20-audit",
	  .requests = 1,
	  .age = 30 },
	{ .namespace = "prod",
	  .pod = "db-0",
	  .sandbox = "db00000000000000",
	  .container = "app",
	  .state = CK_STATE_KEPT,
	  .flags = CK_ENTRY_TOLD,
	  .id = ID_APP,
	  .told = "10-net",
	  .requests = 3,
	  .age = 25,
	  .due = 572 },
	{ .namespace = "prod",
	  .pod = "db-0",
	  .sandbox = "db00000000000000",
	  .container = "stubborn",
	  .attempt = 1,
	  .state = CK_STATE_EVICTING,
	  .reason = CK_REASON_ATTEMPT,
	  .why = "attempt 2",
	  .phase = CK_PHASE_DESTROY,
	  .id = "e000000000000001",
	  .requests = 2,
	  .tries = 3,
	  .grpc = CK_GRPC_UNAVAILABLE,
	  .age = 31,
	  .due = 42 },
	{ .namespace = "prod",
	  .pod = "db-0",
	  .sandbox = "db00000000000000",
	  .container = "used",
	  .state = CK_STATE_UNKNOWN,
	  .requests = 2,
	  .age = 32,
	  .due = 45 },
	{ .namespace = "prod",
	  .pod = "job-x",
	  .state = CK_STATE_COMMITTING,
	  .flags = CK_ENTRY_TOLD,
	  .id = "0b0b0b0b0b0b0b0b",
	  .told = "10-net",
	  .requests = 1,
	  .age = 15 },
	{ .namespace = "prod",
	  .pod = "old",
	  .state = CK_STATE_GONE,
	  .reason = CK_REASON_CHANGED,
	  .why = "config.envs[LOG_LEVEL], config.mounts[/etc/hosts]",
	  .id = ID_OLD,
	  .requests = 1,
	  .age = 33,
	  .due = 48 },
	{ .namespace = "kube-system",
	  .pod = "dns",
	  .state = CK_STATE_COMMITTED,
	  .id = "d000000000000001",
	  .age = 31,
	  .imported = true },
	{ .namespace = "prod",
	  .pod = "past",
	  .state = CK_STATE_KEPT,
	  .id = "ab00000000000001",
	  .requests = 1,
	  .age = 31,
	  .due = 99,
	  .other_boot = true },
	{ .namespace = "prod",
	  .pod = "job-y",
	  .state = CK_STATE_ENDED,
	  .flags = CK_ENTRY_TOLD,
	  .id = "1e00000000000001",
	  .told = "10-net",
	  .requests = 1,
	  .age = 34 },
};

static const struct plan hostile[] = {
	{ .namespace = "pr\nod",
	  .pod = "\x1b]0;owned\a\x1b[2J",
	  .state = CK_STATE_CREATING,
	  .stage = "\x1b[31mred\x7f",
	  .age = 20 },
	{ .namespace = "\xff\xfe\xc0\xaf",
	  .pod = "\xe2\x80\xaegnp.exe\xc2\x9b"
		 "31m",
	  .state = CK_STATE_KEPT,
	  .id = "\x1b[1mid",
	  .age = 20,
	  .due = 582,
	  .told = "10-\x1b[5m" },
	{ .namespace = "true",
	  .pod = "1e3",
	  .sandbox = "null",
	  .container = "-n %s%n \"quoted\" \\x41",
	  .state = CK_STATE_KEPT,
	  .id = "0x10",
	  .age = 20,
	  .due = 582 },
};

static const struct plan twins[] = {
	{ .namespace = "prod",
	  .pod = "web",
	  .state = CK_STATE_KEPT,
	  .id = ID_API,
	  .age = 20,
	  .due = 582 },
	{ .namespace = "test",
	  .pod = "web",
	  .state = CK_STATE_KEPT,
	  .id = ID_TWO,
	  .age = 20,
	  .due = 582 },
	{ .namespace = "prod",
	  .pod = "9f3",
	  .state = CK_STATE_KEPT,
	  .id = "aaaa",
	  .age = 20,
	  .due = 582 },
	{ .namespace = "prod",
	  .pod = "one",
	  .state = CK_STATE_KEPT,
	  .id = "aaaabbbb",
	  .age = 20,
	  .due = 582 },
	{ .namespace = "prod",
	  .pod = "two",
	  .state = CK_STATE_KEPT,
	  .id = "1dcba",
	  .age = 20,
	  .due = 582,
	  .other_key = true },
};

static const struct plan offers[] = {
	{ .namespace = "prod",
	  .pod = "waits",
	  .state = CK_STATE_KEPT,
	  .id = ID_API,
	  .requests = 1,
	  .age = 20,
	  .due = 582,
	  .last = CK_WHAT_OFFER_WAITS },
	{ .namespace = "prod",
	  .pod = "listed",
	  .state = CK_STATE_COMMITTED,
	  .flags = CK_ENTRY_TOLD,
	  .id = ID_TWO,
	  .requests = 1,
	  .age = 20,
	  .last = CK_WHAT_OFFERED },
};

static const struct plan slow[] = {
	{ .namespace = "prod",
	  .pod = "slow",
	  .state = CK_STATE_CREATING,
	  .stage = "sandbox network creation",
	  .requests = 4,
	  .age = 80,
	  .due = 582 },
};

static const struct plan usual[] = {
	{ .namespace = "prod",
	  .pod = "slow",
	  .state = CK_STATE_CREATING,
	  .requests = 4,
	  .age = 80,
	  .due = 582 },
	{ .namespace = "prod",
	  .pod = "other",
	  .sandbox = ID_TWO,
	  .container = "app",
	  .state = CK_STATE_CREATING,
	  .requests = 1,
	  .age = 20,
	  .due = 582 },
	{ .namespace = "prod",
	  .pod = "gone",
	  .state = CK_STATE_EVICTING,
	  .reason = CK_REASON_ADMIN,
	  .phase = CK_PHASE_CREATION,
	  .requests = 1,
	  .age = 20,
	  .due = 582 },
};

static void must(int r, const struct ck_error *err, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "make-db: %s: %s\n", what, err->text);
	exit(1);
}

static uint64_t boottime(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

/* a machine that has just booted: no time lies before that */
static uint64_t ago(unsigned seconds)
{
	return now > seconds * S ? now - seconds * S : 1;
}

static void fingerprint(struct ck_row *row, const char *file)
{
	static unsigned char bytes[65536];
	char path[4096];
	struct ck_fingerprint *fp;
	struct ck_error err;
	snprintf(path, sizeof(path), "%s/kubelet-retries/%s", getenv("CK_TEST_DATA"), file);
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		exit(1);
	}
	size_t len = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	must(ck_fingerprint_make(ck_store_key(store), row->key->kind, bytes, len, &fp, &err), &err,
	     "fingerprint");
	must(ck_record_make(fp, &row->record, &err), &err, "record");
	ck_fingerprint_free(fp);
}

static void note(const struct ck_row *row, enum ck_what what, enum ck_state from, enum ck_state to,
		 int grpc, const char *detail)
{
	struct ck_error err;
	must(ck_store_note(store, row, what, from, to, ago(12), grpc, detail, &err), &err, "note");
}

static void note_move(const struct ck_row *row, enum ck_state from, enum ck_state to, uint64_t at)
{
	struct ck_error err;
	must(ck_store_note(store, row, CK_WHAT_MOVED, from, to, at, 0, NULL, &err), &err, "note");
}

static void add(const struct plan *plan)
{
	struct ck_row *row = &rows[rows_n++];
	struct ck_object object = { .size = sizeof(object),
				    .kind = plan->container ? CK_CONTAINER : CK_SANDBOX,
				    .pod_namespace = plan->namespace,
				    .pod_name = plan->pod,
				    .pod_uid = plan->pod,
				    .sandbox_id = plan->sandbox,
				    .container_name = plan->container,
				    .attempt = plan->attempt };
	struct ck_error err;
	must(ck_key_from_object(&object, &row->key, &err), &err, "key");
	row->id = ck_store_next_id(store);
	row->state = plan->state;
	row->flags = plan->flags;
	row->reason = plan->reason;
	row->phase = plan->phase;
	row->origin = plan->imported ? CK_ORIGIN_RUNTIME : CK_ORIGIN_CACHE;
	if (plan->stage)
		strcpy(row->stage, plan->stage);
	row->result = plan->id ? ck_shared_result_new(plan->id, NULL, 0) : NULL;
	row->told = ck_strdup(plan->told);
	row->requests = plan->requests;
	row->tries = plan->tries;
	row->last_grpc = plan->grpc;
	row->created = row->changed = row->interest = ago(plan->age);
	row->asked = plan->requests ? ago(plan->age) : 0;
	row->staged = plan->stage ? row->created : 0;
	row->existed = plan->id ? row->created : 0;
	row->due = plan->due ? now + plan->due * S : 0;
	strcpy(row->boot, plan->other_boot ? "00000000-0000-0000-0000-000000000000" : boot);
	if (plan->request)
		fingerprint(row, plan->request);
	must(ck_store_insert(store, row, &err), &err, "insert");
	note(row, CK_WHAT_MOVED, 0, plan->imported ? CK_STATE_COMMITTED : CK_STATE_CREATING, 0,
	     NULL);
	if (plan->state == CK_STATE_KEPT)
		note(row, CK_WHAT_MOVED, CK_STATE_CREATING, CK_STATE_KEPT, 0, NULL);
	if (plan->state == CK_STATE_EVICTING || plan->state == CK_STATE_GONE)
		note(row, CK_WHAT_MOVED, CK_STATE_KEPT, CK_STATE_EVICTING, 0, plan->why);
	if (plan->other_key)
		note(row, CK_WHAT_RESTORED, 0, 0, 0, CK_OTHER_KEY);
	if (plan->told && ck_state_visible(plan->state))
		note(row, CK_WHAT_TOLD, 0, 0, 0, plan->told);
	if (plan->tries)
		note(row, CK_WHAT_DESTROY_FAILED, 0, 0, plan->grpc, "unlink ***: device busy");
	if (plan->state == CK_STATE_UNKNOWN)
		note(row, CK_WHAT_MOVED, CK_STATE_CREATING, CK_STATE_UNKNOWN, 0, NULL);
	if (plan->told && plan->state == CK_STATE_KEPT)
		note(row, CK_WHAT_ANSWER_LOST, 0, 0, 0, "\x1b[7mthe stream\nended");
	if (plan->last)
		note(row, plan->last, 0, 0, 0, NULL);
}

/* creations that failed: no row is left of them */
static void add_failures(void)
{
	static const struct {
		const char *pod, *sandbox, *container;
		uint32_t attempt;
	} failed[] = { { "db-0", "db00000000000000", "init", 0 },
		       { "db-0", "db00000000000000", "init", 1 },
		       { "crash-0", NULL, NULL, 0 } };
	for (size_t i = 0; i < CK_COUNT(failed); i++) {
		struct ck_object object = { .size = sizeof(object),
					    .kind = failed[i].container ? CK_CONTAINER : CK_SANDBOX,
					    .pod_namespace = "prod",
					    .pod_name = failed[i].pod,
					    .pod_uid = failed[i].pod,
					    .sandbox_id = failed[i].sandbox,
					    .container_name = failed[i].container,
					    .attempt = failed[i].attempt };
		struct ck_row row = { .id = 1000 + i };
		struct ck_error err;
		must(ck_key_from_object(&object, &row.key, &err), &err, "key");
		strcpy(row.boot, boot);
		note(&row, CK_WHAT_FAILED, 0, 0, CK_GRPC_NOT_FOUND, "no such image");
		note(&row, CK_WHAT_MOVED, CK_STATE_CREATING, CK_STATE_GONE, 0, NULL);
		ck_row_fini(&row);
	}
}

/* evicted, and forgotten: no row is left of them */
static void add_evicted(void)
{
	static const struct {
		const char *absent, *asked;
		enum ck_reason reason;
	} evicted[] = {
		{ NULL, "config.image.user_specified_image", CK_REASON_CHANGED },
		{ "required plugin 10-net is absent", NULL, CK_REASON_TTL },
	};
	for (size_t i = 0; i < CK_COUNT(evicted); i++) {
		struct ck_object object = { .size = sizeof(object),
					    .kind = CK_SANDBOX,
					    .pod_namespace = "prod",
					    .pod_name = "left",
					    .pod_uid = "left",
					    .attempt = (uint32_t)i };
		struct ck_row row = { .id = 1100 + i, .reason = evicted[i].reason };
		struct ck_error err;
		must(ck_key_from_object(&object, &row.key, &err), &err, "key");
		strcpy(row.boot, boot);
		if (evicted[i].absent)
			note(&row, CK_WHAT_PLUGIN_ABSENT, 0, 0, 0, evicted[i].absent);
		note(&row, CK_WHAT_MOVED, CK_STATE_KEPT, CK_STATE_EVICTING, 0, evicted[i].asked);
		note(&row, CK_WHAT_MOVED, CK_STATE_EVICTING, CK_STATE_GONE, 0, NULL);
		ck_row_fini(&row);
	}
}

/* A creation that has ended as @to, after @took; no row is left of it. @whole: its beginning is in
 * the history, too */
static void add_ended(bool container, enum ck_state to, uint64_t took, bool whole)
{
	static uint64_t id = 2000;
	struct ck_object object = { .size = sizeof(object),
				    .kind = container ? CK_CONTAINER : CK_SANDBOX,
				    .pod_namespace = "prod",
				    .pod_name = "past",
				    .pod_uid = "past",
				    .sandbox_id = container ? ID_OLD : NULL,
				    .container_name = container ? "app" : NULL };
	struct ck_row row = { .id = id++ };
	struct ck_error err;
	must(ck_key_from_object(&object, &row.key, &err), &err, "key");
	strcpy(row.boot, boot);
	if (whole)
		note_move(&row, 0, CK_STATE_CREATING, ago(100));
	note_move(&row, CK_STATE_CREATING, to, ago(100) + took);
	ck_row_fini(&row);
}

/* a minute is the longest of those that count */
static void add_past(void)
{
	for (unsigned i = 0; i < 26; i++)
		add_ended(false, i % 2 ? CK_STATE_COMMITTING : CK_STATE_KEPT,
			  i == 7 ? 60 * S : (i + 1) * 100 * CK_NS_PER_MS, true);
	add_ended(false, CK_STATE_UNKNOWN, 90 * S, true);
	add_ended(false, CK_STATE_GONE, 90 * S, true);
	add_ended(false, CK_STATE_KEPT, 90 * S, false);
	for (unsigned i = 0; i < 4; i++)
		add_ended(true, CK_STATE_COMMITTED, S, true);
}

static void update(struct ck_row *row, enum ck_state to)
{
	struct ck_error err;
	note(row, CK_WHAT_MOVED, row->state, to, 0, NULL);
	row->state = to;
	must(ck_store_update(store, row, &err), &err, "update");
}

static bool named(const struct ck_row *row, const char *container)
{
	return strcmp(row->key->container, container) == 0;
}

static void obey(struct ck_row *row, const struct ck_admin_request *request,
		 struct ck_admin_answer *answer)
{
	answer->done = true;
	row->reason =
		request->verb == CK_ADMIN_RELEASE ? CK_REASON_RELEASED : CK_REASON_ADMIN;
	if (request->verb == CK_ADMIN_RELEASE) {
		note(row, CK_WHAT_RELEASED, 0, 0, 0, NULL);
		update(row, CK_STATE_GONE);
		strcpy(answer->text, "released");
		return;
	}
	strcpy(answer->text, "eviction begun");
	if (row->state != CK_STATE_EVICTING)
		update(row, CK_STATE_EVICTING);
	if (named(row, "used")) {
		row->result = ck_shared_result_new("5ed0", NULL, 0);
		update(row, CK_STATE_COMMITTED);
	} else if (!named(row, "stubborn")) {
		update(row, CK_STATE_GONE);
	}
}

static void serve(const char *dir)
{
	struct ck_admin_requests *requests;
	struct ck_admin_request request;
	struct ck_error err;
	must(ck_admin_requests_open(dir, &requests, &err), &err, "wishes");
	struct pollfd p = { .fd = ck_admin_requests_fd(requests), .events = POLLIN };
	puts("ready");
	fflush(stdout);
	for (;;) {
		while (ck_admin_requests_take(requests, &request)) {
			struct ck_admin_answer answer = { .text = "no such entry" };
			now = boottime();
			must(ck_store_begin(store, &err), &err, "begin");
			for (size_t i = 0; i < rows_n; i++) {
				if (rows[i].id == request.entry)
					obey(&rows[i], &request, &answer);
			}
			must(ck_store_commit(store, &err), &err, "commit");
			ck_admin_requests_answer(requests, &request, &answer);
		}
		poll(&p, 1, -1);
	}
}

static void add_crowd(void)
{
	char pod[254], container[16];
	struct plan plan = { .namespace = "prod",
			     .pod = pod,
			     .state = CK_STATE_KEPT,
			     .id = ID_API,
			     .age = 20,
			     .due = 582 };
	memset(pod, 'p', 253);
	pod[253] = '\0';
	add(&plan);
	plan.sandbox = ID_API;
	plan.container = container;
	plan.id = ID_APP;
	for (int i = 0; i < 80; i++) {
		snprintf(container, sizeof(container), "c-%d", i);
		add(&plan);
	}
}

static void fill(const char *scene)
{
	static const struct {
		const char *name;
		const struct plan *plans;
		size_t n;
	} scenes[] = { { "states", states, CK_COUNT(states) },
		       { "hostile", hostile, CK_COUNT(hostile) },
		       { "twins", twins, CK_COUNT(twins) },
		       { "offers", offers, CK_COUNT(offers) },
		       { "slow", slow, CK_COUNT(slow) },
		       { "usual", usual, CK_COUNT(usual) },
		       { "long", usual, CK_COUNT(usual) },
		       { "empty", NULL, 0 } };
	struct ck_error err;
	must(ck_store_begin(store, &err), &err, "begin");
	for (size_t i = 0; i < CK_COUNT(scenes); i++) {
		for (size_t j = 0; strcmp(scenes[i].name, scene) == 0 && j < scenes[i].n; j++)
			add(&scenes[i].plans[j]);
	}
	if (strcmp(scene, "states") == 0) {
		add_evicted();
		add_failures();
	}
	if (strcmp(scene, "usual") == 0)
		add_past();
	for (unsigned i = 0; strcmp(scene, "long") == 0 && i < CK_HISTORY_ROWS / 2; i++)
		add_ended(i % 2, CK_STATE_COMMITTING, S, true);
	if (strcmp(scene, "crowd") == 0)
		add_crowd();
	struct ck_counters counters = {
		.requests = { 0, 12, 5 },
		.created = { 0, 7, 4 },
		.kept = { 0, 3, 1 },
		.handed_back = { 0, 1 },
		.saved = { 0, 1 },
		.saved_ms = { 0, 15250 },
	};
	must(ck_store_counters(store, &counters, &err), &err, "counters");
	must(ck_store_commit(store, &err), &err, "commit");
}

int main(int argc, char **argv)
{
	struct ck_store_opened opened;
	struct ck_error err;
	if (argc < 3)
		return 2;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
	if (!f || !fgets(boot, sizeof(boot), f))
		return 1;
	fclose(f);
	now = boottime();
	must(ck_store_open(argv[1], &store, &opened, &err), &err, "open");
	fill(argv[2]);
	if (argc > 3 && strcmp(argv[3], "serve") == 0)
		serve(argv[1]);
	bool stuck = argc > 3 && strcmp(argv[3], "stuck") == 0;
	ck_store_set_degraded(store, stuck);
	if (stuck || (argc > 3 && strcmp(argv[3], "hold") == 0)) {
		puts("ready");
		fflush(stdout);
		for (;;)
			pause();
	}
	ck_store_close(store);
	for (size_t i = 0; i < rows_n; i++)
		ck_row_fini(&rows[i]);
	return 0;
}
