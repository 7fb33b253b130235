/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri.adjust before-create: plugins are asked about a container before the runtime creates it,
 * under an id of ours, and their changes go into the request. The request carries this id as an
 * annotation, so that it is found when the container is described later. If the container is never
 * created, hooks/ tells the plugins (H7).
 *
 * The cache may begin a creation a second time when the outcome of the first is unknown (K8). The
 * runtime may still be working on the first, so the second must be the same request, under the same
 * id. So the last requests are remembered.
 */
#include <sodium.h>
#include <stdio.h>

#include <utlist.h>

#include "cache/cache.h"
#include "cache/request/key.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/nri/apply.h"
#include "src/daemon/call.h"
#include "src/daemon/nri/describe.h"

struct ck_consult {
	struct ck_consult *prev, *next; /* of daemon->consults */
	struct ck_daemon *daemon;       /* NULL: nobody was asked */
	struct ck_call *call;           /* NULL: its client is gone */
	ck_consulted_fn *done;
	struct ck_key *key;
	struct ck_bytes request; /* a copy of the kubelet's, which may go with its call */
	char alias[CK_ALIAS_LEN + 1];
};

struct ck_consulted {              /* a request that was sent */
	struct ck_consulted *next; /* older */
	uint64_t number;
	struct ck_key *key;
	struct ck_bytes request;
};

/* ---- requests that were sent ----------------------------------------------------------------- */

static void consulted_free(struct ck_consulted *consulted)
{
	ck_key_free(consulted->key);
	ck_bytes_free(&consulted->request);
	free(consulted);
}

/* Takes out the one of this key, and frees those over CK_NRI_CONSULTED_MAX. NULL: there is none */
static struct ck_consulted *recall(struct ck_daemon *daemon, const struct ck_key *key)
{
	struct ck_consulted *found = NULL, *one, *next;
	unsigned n = 0;
	LL_FOREACH_SAFE (daemon->consulted, one, next) {
		if (!found && ck_key_same(one->key, key)) {
			LL_DELETE(daemon->consulted, one);
			found = one;
		} else if (n < CK_NRI_CONSULTED_MAX) {
			n++;
		} else {
			LL_DELETE(daemon->consulted, one);
			consulted_free(one);
		}
	}
	return found;
}

static void remember(struct ck_call *call, const struct ck_key *key, const struct ck_bytes *request)
{
	struct ck_daemon *daemon = call->daemon;
	struct ck_consulted *one = CK_NEW(struct ck_consulted);
	if (!one)
		return; /* a second try will ask the plugins again */
	if (ck_key_dup(key, &one->key) < 0 ||
	    ck_bytes_add(&one->request, request->p, request->len) < 0) {
		consulted_free(one);
		return;
	}
	one->number = call->create.consulted = ++daemon->consulted_n;
	LL_PREPEND(daemon->consulted, one);
}

void ck_consulted_drop(struct ck_daemon *daemon, uint64_t number)
{
	struct ck_consulted *one;
	LL_SEARCH_SCALAR(daemon->consulted, one, number, number);
	if (!one)
		return;
	LL_DELETE(daemon->consulted, one);
	consulted_free(one);
}

void ck_consulted_forget(struct ck_daemon *daemon)
{
	struct ck_consulted *one, *next;
	LL_FOREACH_SAFE (daemon->consulted, one, next)
		consulted_free(one);
	daemon->consulted = NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void consult_free(struct ck_consult *consult)
{
	if (consult->call)
		consult->call->create.consult = NULL;
	if (consult->daemon)
		DL_DELETE(consult->daemon->consults, consult);
	ck_key_free(consult->key);
	ck_bytes_free(&consult->request);
	free(consult);
}

void ck_consult_drop(struct ck_consult *consult)
{
	if (consult)
		consult->call = NULL; /* freed when NRI calls back */
}

void ck_consults_end(struct ck_daemon *daemon)
{
	struct ck_consult *consult;
	struct ck_error err;
	ck_fail(&err, CK_EUNAVAILABLE, "crikeepd ends");
	DL_FOREACH (daemon->consults, consult) {
		struct ck_call *call = CK_TAKE(consult->call);
		if (!call)
			continue;
		call->create.consult = NULL;
		consult->done(call, NULL, &err);
	}
}

/* Does a plugin hear of the id that it is asked about? */
static bool asks_before(const struct ck_daemon *daemon)
{
	return ck_plugging_wanted(daemon,
				  CK_NRI_BIT(CREATE_CONTAINER) |
					  CK_NRI_BIT(VALIDATE_CONTAINER_ADJUSTMENT));
}

/* the request for the runtime. 0, or an error */
static int adjusted(const struct ck_consult *consult, const struct ck_nri_result *result,
		    struct ck_bytes *out, struct ck_error *err)
{
	CK_AUTO_BYTES struct ck_bytes changed = { 0 };
	/* where nobody has heard of the id, it is not needed */
	bool known = asks_before(consult->call->daemon);
	int r = ck_apply_adjustment(consult->request.p, consult->request.len, result->adjustment,
				    result->adjustment_len, result->owners, result->owners_len,
				    known ? &changed : out, err);
	return r < 0 || !known ? r
			       : ck_apply_alias(changed.p, changed.len, consult->alias, out, err);
}

static void answered(const struct ck_nri_result *result, void *userdata)
{
	struct ck_consult *consult = userdata;
	struct ck_call *call = consult->call;
	CK_AUTO_BYTES struct ck_bytes request = { 0 };
	struct ck_error err = { 0 };
	if (!call) {
		consult_free(consult);
		return;
	}
	ck_consulted_fn *done = consult->done;
	int r = result->refusal ? ck_fail(&err, CK_EREFUSED, "%s", result->refusal)
				: adjusted(consult, result, &request, &err);
	if (r >= 0 && request.len > CK_REQUEST_MAX)
		r = ck_fail(&err, CK_ETOOBIG, "with what plugins add, the request is over %u bytes",
			    CK_REQUEST_MAX);
	if (r >= 0)
		remember(call, consult->key, &request);
	consult_free(consult);
	done(call, &request, r < 0 ? &err : NULL);
}

/* The same for each try of one entry, also in the next life of crikeepd: the runtime may still be
 * working on the request of the life before, and plugins are then told of what it creates. Sandbox
 * ids are unique, and an entry that ended has another number than the next one. */
static void name_it(const struct ck_key *key, uint64_t row, char ret_alias[CK_ALIAS_LEN + 1])
{
	unsigned char hash[CK_ALIAS_LEN / 2];
	crypto_generichash_state state;
	crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	crypto_generichash_update(&state, (const unsigned char *)key->sandbox_id,
				  strlen(key->sandbox_id) + 1);
	crypto_generichash_update(&state, (const unsigned char *)key->container,
				  strlen(key->container) + 1);
	crypto_generichash_update(&state, (const unsigned char *)&key->attempt,
				  sizeof(key->attempt));
	crypto_generichash_update(&state, (const unsigned char *)&row, sizeof(row));
	crypto_generichash_final(&state, hash, sizeof(hash));
	sodium_bin2hex(ret_alias, CK_ALIAS_LEN + 1, hash, sizeof(hash));
}

/* @info: of a container that was asked about in an earlier life */
static int describe_last(const struct ck_entry_info *info, struct ck_bytes *ret_container)
{
	char alias[CK_ALIAS_LEN + 1];
	const struct ck_key key = {
		.sandbox_id = info->sandbox_id,
		.container = info->container_name,
		.attempt = info->attempt,
	};
	name_it(&key, info->entry, alias);
	int r = ck_bytes_field_text(ret_container, 1, alias);
	if (r == 0)
		r = ck_bytes_field_text(ret_container, 2, info->sandbox_id);
	if (r == 0)
		r = ck_bytes_field_text(ret_container, 3, info->container_name);
	return r;
}

struct last {
	const char *id;
	struct ck_bytes *container;
};

static int find_last(const struct ck_entry_info *info, void *userdata)
{
	const struct last *last = userdata;
	if (info->kind != CK_CONTAINER || strcmp(info->id, last->id) != 0)
		return 0;
	int r = describe_last(info, last->container);
	return r < 0 ? r : 1;
}

bool ck_consulted_last(struct ck_daemon *daemon, const char *id, struct ck_bytes *ret_container)
{
	struct last last = { .id = id, .container = ret_container };
	return daemon->conf.nri.adjust == CK_NRI_BEFORE_CREATE && asks_before(daemon) &&
	       ck_entries(daemon->cache, find_last, &last) == 1;
}

static int begin(struct ck_consult *consult, struct ck_error *err)
{
	struct ck_call *call = consult->call;
	CK_AUTO_BYTES struct ck_bytes container = { 0 };
	name_it(consult->key, call->turn->m.row, consult->alias);
	int r = ck_describe_request(call->request.p, call->request.len, consult->alias, &container,
				    err);
	if (r >= 0 && ck_bytes_add(&consult->request, call->request.p, call->request.len) < 0)
		r = ck_nomem(err);
	if (r < 0)
		return r;
	const struct ck_nri_call event = {
		.size = sizeof(event),
		.event = CK_NRI_CREATE_CONTAINER,
		.pod_id = consult->key->sandbox_id,
		.container_id = consult->alias,
		.container_name = consult->key->container,
		.attempt = consult->key->attempt,
		.container = container.p,
		.container_len = container.len,
	};
	return ck_nri_send(call->daemon->nri, &event, answered, consult, err);
}

int ck_consult_begin(struct ck_call *call, struct ck_bytes *ret_request, ck_consulted_fn *done,
		     struct ck_error *err)
{
	struct ck_daemon *daemon = call->daemon;
	struct ck_consult *consult = CK_NEW(struct ck_consult);
	if (!consult)
		return ck_nomem(err);
	int r = ck_key_from_request(CK_CONTAINER, call->request.p, call->request.len, &consult->key,
				    err);
	struct ck_consulted *before = r < 0 ? NULL : recall(daemon, consult->key);
	/* plugins know the container, and the runtime may have created it */
	if (before && call->turn->m.again) {
		LL_PREPEND(daemon->consulted, before);
		call->create.consulted = before->number;
		r = ck_bytes_add(ret_request, before->request.p, before->request.len) < 0
			    ? ck_nomem(err)
			    : 1;
	} else if (r >= 0) {
		if (before)
			consulted_free(before);
		consult->call = call;
		consult->done = done;
		r = begin(consult, err);
		if (r >= 0) {
			call->create.consult = consult;
			consult->daemon = daemon;
			DL_APPEND(daemon->consults, consult);
			return 0;
		}
		consult->call = NULL;
	}
	consult_free(consult);
	return r;
}
