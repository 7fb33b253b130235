/* SPDX-License-Identifier: Apache-2.0 */
/* Both whole lists of the runtime, one after the other. The cache compares its entries with them
 * (K24 to K27). */
#include "cache/request/redact.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/daemon.h"
#include "src/cri/objects.h"

struct ck_reconcile {
	struct ck_daemon *daemon;
	ck_reconciled_fn *done;
	const struct ck_cri_method *method; /* of the list under way */
	struct ck_view *view;               /* begun before the question */
	struct ck_unary_call *rpc;
};

static const char *const lists[] = { "/runtime.v1.RuntimeService/ListPodSandbox",
				     "/runtime.v1.RuntimeService/ListContainers" };

static int ask(struct ck_reconcile *reconcile, size_t which, struct ck_error *err);

void ck_reconcile_cancel(struct ck_daemon *daemon)
{
	struct ck_reconcile *reconcile = CK_TAKE(daemon->reconcile);
	if (!reconcile)
		return;
	ck_unary_cancel(reconcile->rpc);
	ck_view_free(reconcile->view);
	free(reconcile);
}

static void end(struct ck_reconcile *reconcile, const struct ck_error *err)
{
	struct ck_daemon *daemon = reconcile->daemon;
	ck_reconciled_fn *done = reconcile->done;
	ck_reconcile_cancel(daemon);
	done(daemon, err);
}

static int take_list(struct ck_reconcile *reconcile, struct ck_unary_reply *reply,
		     struct ck_error *err)
{
	struct ck_objects objects = { 0 };
	char why[CK_TEXT_MAX + 1];
	/* the reason is logged, and may repeat secrets of a request */
	if (reply->status.code != CK_GRPC_OK) {
		ck_redact(reply->status.message ? reply->status.message : "no reason given", NULL,
			  why);
		return ck_fail(err, CK_EUNAVAILABLE, "%s: %s", ck_grpc_name(reply->status.code),
			       why);
	}
	int r = ck_objects_read(&objects, reconcile->method, reply->message.p, reply->message.len,
				err);
	if (r >= 0)
		r = ck_view_listed(reconcile->view, reconcile->method->kind, objects.all,
				   objects.n);
	if (r < 0 && !err->code)
		ck_fail(err, -r, "%s", ck_strerror(-r));
	if (r >= 0 && reconcile->method->kind == CK_SANDBOX)
		ck_hosting_saw(reconcile->daemon, objects.all, objects.n);
	ck_objects_fini(&objects);
	return r;
}

static void answered(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_reconcile *reconcile = userdata;
	struct ck_error err = { 0 };
	bool first = reconcile->method->kind == CK_SANDBOX;
	reconcile->rpc = NULL;
	int r = take_list(reconcile, reply, &err);
	if (r >= 0 && first) {
		ck_view_free(CK_TAKE(reconcile->view));
		r = ask(reconcile, 1, &err);
		if (r >= 0)
			return;
	}
	if (r < 0)
		ck_context(&err, r, "the list failed: %s", reconcile->method->rpc);
	end(reconcile, r < 0 ? &err : NULL);
}

static int ask(struct ck_reconcile *reconcile, size_t which, struct ck_error *err)
{
	reconcile->method = ck_cri_method_find(lists[which], strlen(lists[which]));
	const struct ck_unary_options options = { .path = reconcile->method->rpc,
						  .timeout = CK_ASK_TIMEOUT,
						  .reply_max = reconcile->daemon->conf.list_max };
	int r = ck_view_begin(reconcile->daemon->cache, &reconcile->view, err);
	if (r >= 0)
		r = ck_unary_start(reconcile->daemon->upstream, &options, NULL, 0, answered,
				   reconcile, &reconcile->rpc, err);
	return r;
}

int ck_reconcile_begin(struct ck_daemon *daemon, ck_reconciled_fn *done, struct ck_error *err)
{
	ck_reconcile_cancel(daemon);
	struct ck_reconcile *reconcile = CK_NEW(struct ck_reconcile);
	if (!reconcile)
		return ck_nomem(err);
	*reconcile = (struct ck_reconcile){ .daemon = daemon, .done = done };
	daemon->reconcile = reconcile;
	int r = ask(reconcile, 0, err);
	if (r < 0)
		ck_reconcile_cancel(daemon);
	return r;
}
