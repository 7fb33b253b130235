/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep pods: list the sandboxes of a CRI endpoint, and find uids in conflict. A script that
 * takes a failed list for an empty one releases the addresses of running pods. So only a list that
 * succeeded prints anything that can be read as "none". A failed list, a socket that cannot be
 * reached and a uid in conflict can be told apart.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/cli/cli.h"
#include "src/cli/cri-endpoint.h"
#include "src/cri/message.h"

#define ID_SHOWN        13 /* as crictl cuts them */
#define TIMEOUT_DEFAULT (10 * CK_NS_PER_S)

enum { OPT_NO_TRUNC = 0x200, OPT_TIMEOUT };

struct arguments {
	bool all, quiet, no_trunc;
	uint64_t timeout;
};

struct pod {
	char *id, *name, *uid, *namespace, *handler;
	uint64_t state, attempt; /* READY is 0 */
	int64_t created;         /* wall clock, ns */
};

struct pods {
	struct pod *all;
	size_t n;
};

static const struct argp_option options[] = {
	{ "all", 'a', NULL, 0, "Also list sandboxes that are not READY", 0 },
	{ "quiet", 'q', NULL, 0, "Print ids only, one per line", 0 },
	{ "no-trunc", OPT_NO_TRUNC, NULL, 0, "Print whole ids, and every column on any terminal",
	  0 },
	{ "timeout", OPT_TIMEOUT, "SPAN", 0, "Wait for the list for at most SPAN (default: 10s)",
	  0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	switch (key) {
	case 'a':
		args->all = true;
		return 0;
	case 'q':
		args->quiet = true;
		return 0;
	case OPT_NO_TRUNC:
		args->no_trunc = true;
		return 0;
	case OPT_TIMEOUT:
		if (!ck_duration_parse(arg, &args->timeout) || !args->timeout)
			argp_error(state, "invalid time span '%s'; expected one like 10s", arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'; all sandboxes are listed", arg);
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* a copy of the text at @number; NULL: absent */
static char *text_of(const struct ck_fields *fields, uint32_t number)
{
	const struct ck_wire_field *field = ck_fields_get(fields, number);
	return field ? ck_must(ck_strndup((const char *)field->data, field->len)) : NULL;
}

static int read_pod(struct ck_wire wire, struct pod *pod, struct ck_error *err)
{
	struct ck_fields fields, metadata;
	int r = ck_fields_read(wire, &fields, err);
	r = r < 0 ? r : ck_fields_inside(&fields, CRI_PodSandbox_metadata, &metadata, err);
	if (r < 0)
		return r;
	pod->id = text_of(&fields, CRI_PodSandbox_id);
	pod->name = text_of(&metadata, CRI_PodSandboxMetadata_name);
	pod->uid = text_of(&metadata, CRI_PodSandboxMetadata_uid);
	pod->namespace = text_of(&metadata, CRI_PodSandboxMetadata_namespace);
	pod->attempt = ck_fields_number(&metadata, CRI_PodSandboxMetadata_attempt);
	pod->state = ck_fields_number(&fields, CRI_PodSandbox_state);
	pod->created = (int64_t)ck_fields_number(&fields, CRI_PodSandbox_created_at);
	pod->handler = text_of(&fields, CRI_PodSandbox_runtime_handler);
	return pod->id ? 0 : ck_fail(err, CK_EMALFORMED, "a sandbox without an id");
}

static int read_list(const struct ck_bytes *reply, struct pods *pods, struct ck_error *err)
{
	struct ck_wire wire = ck_wire_begin(reply->p, reply->len);
	struct ck_wire_field f;
	int r;
	while ((r = ck_cri_each(&wire, CRI_ListPodSandboxResponse_items, &f, err)) > 0) {
		if ((pods->n & (pods->n - 1)) == 0) { /* grows at powers of two */
			size_t room = pods->n ? 2 * pods->n : 1;
			pods->all = ck_must(ck_realloc(pods->all, room * sizeof(*pods->all)));
		}
		struct pod *pod = &pods->all[pods->n++];
		*pod = (struct pod){ 0 };
		r = read_pod(ck_wire_inside(&wire, &f), pod, err);
		if (r < 0)
			break;
	}
	return r;
}

static void pods_fini(struct pods *pods)
{
	for (size_t i = 0; i < pods->n; i++) {
		struct pod *pod = &pods->all[i];
		free(pod->id);
		free(pod->name);
		free(pod->uid);
		free(pod->namespace);
		free(pod->handler);
	}
	free(pods->all);
}

static int by_identity(const void *a, const void *b)
{
	const struct pod *one = a, *other = b;
	const char *const texts[][2] = {
		{ one->namespace, other->namespace },
		{ one->name, other->name },
		{ one->uid, other->uid },
	};
	int r = 0;
	for (size_t i = 0; i < CK_COUNT(texts) && !r; i++)
		r = strcmp(texts[i][0] ? texts[i][0] : "", texts[i][1] ? texts[i][1] : "");
	r = r ? r : one->attempt < other->attempt ? -1 : one->attempt > other->attempt;
	return r ? r : strcmp(one->id, other->id);
}

static int ask(const struct arguments *args, struct pods *pods)
{
	struct ck_client *client = ck_cri_connect();
	struct ck_unary call = { 0 };
	struct ck_error err = { 0 };
	char path[CK_CRI_PATH];
	int r;
	if (!client)
		return CK_EXIT_TROUBLE;
	do {
		ck_unary_fini(&call);
		r = ck_unary_begin(client, &call, ck_cri_path("ListPodSandbox", path), NULL, 0,
				   args->timeout, &err);
		if (r == 0)
			ck_client_wait(client, &call, UINT64_MAX);
	} while (r == 0 && ck_cri_newer_than_server(&call));
	if (r == 0 && call.status.code)
		r = ck_fail(&err, CK_EUNAVAILABLE, "%s%s%s", ck_grpc_name(call.status.code),
			    call.status.message ? ": " : "",
			    call.status.message ? call.status.message : "");
	else if (r == 0)
		r = read_list(&call.reply, pods, &err);
	if (r < 0)
		ck_print_error("cannot list sandboxes: %s", err.text);
	else if (pods->n)
		qsort(pods->all, pods->n, sizeof(*pods->all), by_identity);
	ck_unary_fini(&call);
	ck_client_free(client);
	return r < 0 ? CK_EXIT_TROUBLE : CK_EXIT_YES;
}

/* ---- conflicts: a uid names one pod for ever, and a pod has one READY sandbox ---------------- */

static bool same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

enum conflict { NONE, TWO_READY, TWO_PODS };

/* the conflict of the uid of the pod at @at; NONE but for the first sandbox with that uid */
static enum conflict conflict_at(const struct pods *pods, size_t at)
{
	const struct pod *pod = &pods->all[at];
	size_t ready = 0;
	bool two_pods = false;
	if (!pod->uid || !*pod->uid) /* without a uid there is no identity to compare */
		return NONE;
	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *other = &pods->all[i];
		if (!same(other->uid, pod->uid))
			continue;
		if (i < at)
			return NONE;
		ready += !other->state;
		two_pods = two_pods || !same(other->name, pod->name) ||
			   !same(other->namespace, pod->namespace);
	}
	return two_pods ? TWO_PODS : ready > 1 ? TWO_READY : NONE;
}

static bool in_conflict(const struct pods *pods, size_t i, size_t at, enum conflict conflict)
{
	return same(pods->all[i].uid, pods->all[at].uid) &&
	       (conflict == TWO_PODS || !pods->all[i].state);
}

static void say_conflict(const struct pods *pods, size_t at, enum conflict conflict)
{
	ck_print_line(stdout, "conflict: uid %s %s:", pods->all[at].uid,
		      conflict == TWO_READY ? "has more than one READY sandbox"
					    : "belongs to more than one pod");
	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *pod = &pods->all[i];
		if (in_conflict(pods, i, at, conflict))
			ck_print_line(stdout, "  %s  %s/%s attempt %" PRIu64 "  %s", pod->id,
				      pod->namespace ? pod->namespace : "",
				      pod->name ? pod->name : "", pod->attempt,
				      pod->state ? "NOTREADY" : "READY");
	}
}

static void add_conflict(struct json_object *array, const struct pods *pods, size_t at,
			 enum conflict conflict)
{
	struct json_object *object = ck_tree_object(), *ids = ck_tree_array();
	for (size_t i = 0; i < pods->n; i++) {
		if (in_conflict(pods, i, at, conflict))
			ck_tree_add(ids, ck_tree_text(pods->all[i].id));
	}
	ck_tree_put_text(object, "uid", pods->all[at].uid);
	ck_tree_put_text(object, "what", conflict == TWO_READY ? "two_ready" : "two_pods");
	ck_tree_put(object, "ids", ids);
	ck_tree_add(array, object);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_table(const struct arguments *args, const struct pods *pods)
{
	static const struct ck_column columns[] = {
		{ "ID", 0, 0 },
		{ "STATE", 0, 0 },
		{ "NAMESPACE", CK_COLUMN_CUT, 1 },
		{ "POD", CK_COLUMN_CUT, 0 },
		{ "ATTEMPT", CK_COLUMN_RIGHT, 2 },
		{ "AGE", CK_COLUMN_RIGHT, 3 },
		{ "UID", 0, 4 },
		{ "RUNTIME", 0, 5 },
	};
	struct ck_table *table = NULL;
	int64_t now = (int64_t)ck_clock_ns(CLOCK_REALTIME);
	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *pod = &pods->all[i];
		char age[CK_TEXT_SPAN];
		if (pod->state && !args->all)
			continue;
		table = table ? table : ck_table_new(columns, CK_COUNT(columns));
		ck_table_cellf(table, "%.*s", args->no_trunc ? (int)strlen(pod->id) : ID_SHOWN,
			       pod->id);
		ck_table_cell(table, pod->state ? "NOTREADY" : "READY");
		ck_table_cell(table, pod->namespace);
		ck_table_cell(table, pod->name);
		ck_table_cellf(table, "%" PRIu64, pod->attempt);
		bool dated = pod->created > 0 && pod->created <= now;
		ck_table_cell(table,
			      dated ? ck_text_span((uint64_t)(now - pod->created), age) : "");
		ck_table_cell(table, pod->uid);
		ck_table_cell(table, pod->handler);
	}
	if (table)
		ck_table_print(stdout, table, args->no_trunc ? 0 : ck_print_width(stdout));
	else if (pods->n)
		ck_cli_hint("no sandbox is READY; --all lists %zu that are not", pods->n);
	else
		ck_cli_hint("no sandboxes; those that crikeepd hides are in 'crikeep list'");
}

static struct json_object *pod_tree(const struct pod *pod)
{
	struct json_object *object = ck_tree_object();
	ck_tree_put_text(object, "id", pod->id);
	ck_tree_put_text(object, "state", pod->state ? "NOTREADY" : "READY");
	ck_tree_put_text(object, "namespace", pod->namespace ? pod->namespace : "");
	ck_tree_put_text(object, "pod", pod->name ? pod->name : "");
	ck_tree_put_text(object, "uid", pod->uid ? pod->uid : "");
	ck_tree_put_count(object, "attempt", pod->attempt);
	ck_tree_put_time(object, "created_at", pod->created / (int64_t)CK_NS_PER_S);
	ck_tree_put_text(object, "runtime_handler", pod->handler ? pod->handler : "");
	return object;
}

static void print_tree(const struct arguments *args, const struct pods *pods)
{
	struct json_object *tree = ck_tree_object(), *list = ck_tree_array(),
			   *conflicts = ck_tree_array();
	for (size_t i = 0; i < pods->n; i++) {
		if (args->all || !pods->all[i].state)
			ck_tree_add(list, pod_tree(&pods->all[i]));
		enum conflict conflict = conflict_at(pods, i);
		if (conflict)
			add_conflict(conflicts, pods, i, conflict);
	}
	ck_tree_put(tree, "pods", list);
	ck_tree_put(tree, "conflicts", conflicts);
	ck_tree_print(stdout, ck_cli.output, tree);
}

static int print(const struct arguments *args, const struct pods *pods)
{
	int status = CK_EXIT_YES;
	if (args->quiet) {
		for (size_t i = 0; i < pods->n; i++) {
			if (args->all || !pods->all[i].state)
				ck_print_line(stdout, "%s", pods->all[i].id);
		}
	} else if (ck_cli.output == CK_OUTPUT_TABLE) {
		print_table(args, pods);
	} else {
		print_tree(args, pods);
	}
	for (size_t i = 0; i < pods->n; i++) {
		enum conflict conflict = conflict_at(pods, i);
		if (conflict && !args->quiet && ck_cli.output == CK_OUTPUT_TABLE)
			say_conflict(pods, i, conflict);
		status = conflict ? CK_EXIT_NO : status;
	}
	return status;
}

int ck_cmd_pods(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "List the READY sandboxes of a CRI endpoint, and find uids in conflict: two "
		       "READY sandboxes with one uid, or one uid with two names or namespaces. "
		       "crikeepd's unfiltered socket also shows the sandboxes that crikeepd hides."
		       "\v"
		       "Exit status: 0 if the list succeeded and no uid is in conflict, 1 if one "
		       "is, 2 if the list failed. A failed list is never shown as an empty one.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep pods\n"
		       "  crikeep pods --endpoint unix:///run/containerd/containerd.sock --all\n"
		       "  crikeep pods -o json",
		.children = ck_cri_children,
	};
	struct arguments args = { .timeout = TIMEOUT_DEFAULT };
	struct pods pods = { 0 };
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	int r = ask(&args, &pods);
	ck_cli_page();
	if (r == CK_EXIT_YES)
		r = print(&args, &pods);
	pods_fini(&pods);
	return r;
}
