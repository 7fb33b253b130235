/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both examples do in the same way, because nothing in it waits.
 *
 * The cache asks what exists. And the kubelet asks: what is hidden exists in no answer of ours,
 * lists leave it out, and a call that names it is told NOT_FOUND. The cache hears of what passes
 * by, so that it knows what became of what it handed over.
 */
#define _GNU_SOURCE 1

#include "toy.h"

/* ---- the cache asks: ck_host.inspect and ck_host.list, answered from within the call --------- */

void common_done(struct ck_job *job, int grpc)
{
	struct ck_answer answer = { .size = sizeof(answer), .grpc = grpc };
	ck_job_done(job, &answer);
}

void common_inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct ck_answer answer = { .size = sizeof(answer), .condition = CK_CONDITION_ABSENT };
	struct toy_object object;
	(void)kind;
	(void)userdata;
	if (toy_get(id, &object))
		answer.condition = object.o.condition;
	ck_job_done(job, &answer);
}

static void job_list_one(const struct ck_object *object, void *userdata)
{
	ck_job_listed(userdata, object);
}

void common_list(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	(void)filter; /* listing more than was asked for does no harm */
	(void)userdata;
	toy_each(job_list_one, job);
	common_done(job, 0);
}

/* ---- the kubelet asks ------------------------------------------------------------------------ */

bool common_hung_up(int fd)
{
	char c;
	return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

struct listing {
	struct ck_view *view; /* NULL: everything */
	FILE *out;
};

static void list_one(const struct ck_object *o, void *userdata)
{
	struct listing *listing = userdata;
	/* an error hides it too: a list that shows too much does harm */
	if (listing->view && ck_view_hides(listing->view, o))
		return;
	fprintf(listing->out, "%s %s %d %s %s %u\n",
		o->kind == CK_SANDBOX ? "sandbox" : "container", o->id, o->condition, o->pod_uid,
		*o->container_name ? o->container_name : "-", o->attempt);
}

bool common_may_see(struct ck_cache *cache, const char *id)
{
	struct ck_view *view;
	const char *full;
	if (ck_view_begin(cache, &view, NULL) < 0)
		return false;
	int r = ck_view_resolve(view, toy_kind(id), id, &full);
	ck_view_free(view);
	return r >= 0;
}

static void list(struct ck_cache *cache, FILE *out, bool all)
{
	struct listing listing = { NULL, out };
	/* before the objects are read (K21) */
	if (!all && ck_view_begin(cache, &listing.view, NULL) < 0) {
		fputs("error 14 cannot tell what is hidden\n", out);
		return;
	}
	fputs("ok\n", out);
	toy_each(list_one, &listing);
	ck_view_free(listing.view);
}

char *common_answer(struct ck_cache *cache, const struct wire_request *request)
{
	const char *id = request->what;
	char *answer = NULL;
	size_t size;
	FILE *out = open_memstream(&answer, &size);
	if (!out)
		return NULL;
	if (!strcmp(request->verb, "START"))
		/* who starts it has had the answer: it is visible from now on (K7) */
		ck_container_starting(cache, id);
	if (!strncmp(request->verb, "LIST", 4)) {
		list(cache, out, !strcmp(request->verb, "LIST-ALL"));
	} else if (!common_may_see(cache, id) || !toy_get(id, &(struct toy_object){ 0 })) {
		fprintf(out, "error 5 no such id: %s\n", id);
	} else if (!strcmp(request->verb, "START")) {
		toy_set(id, CK_CONDITION_RUNNING);
		ck_object_seen(cache, toy_kind(id), id, CK_CONDITION_RUNNING);
		fputs("ok\n", out);
	} else if (!strcmp(request->verb, "STOP")) {
		if (toy_kind(id) == CK_SANDBOX)
			/* before it is done: nothing new begins in it from now on (K16) */
			ck_sandbox_stopping(cache, id);
		toy_set(id, CK_CONDITION_DEAD);
		ck_object_seen(cache, toy_kind(id), id, CK_CONDITION_DEAD);
		/* who names the id has had the answer (K7) */
		ck_object_used(cache, toy_kind(id), id);
		fputs("ok\n", out);
	} else {
		fprintf(out, "error 12 what is %s?\n", request->verb);
	}
	if (fclose(out) == 0)
		return answer;
	free(answer);
	return NULL;
}
