/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep drive: act as a kubelet for one pod. The same message is sent again and again, each time
 * with a deadline and after a pause, until an id comes back. The output says how many requests that
 * took, which errors they got, and how long each try and the whole took.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cache/request/key.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/cli/cli.h"
#include "src/cli/cri-endpoint.h"
#include "src/cri/numbers.h"

#define DEADLINE_DEFAULT (2 * CK_NS_PER_S)
#define RETRY_DEFAULT    (500 * CK_NS_PER_MS)
#define RETRY_MIN        (10 * CK_NS_PER_MS) /* do not flood a socket that refuses at once */
#define GIVE_UP_DEFAULT  (60 * CK_NS_PER_S)
#define PROGRESS_EVERY   (100 * CK_NS_PER_MS)
#define FILE_MAX         (64u << 20) /* above every limit, so that limits can be tested */
#define TEXT_SHOWN       200         /* of an error's text, in a table */

enum {
	OPT_REQUEST = 0x200,
	OPT_RPC,
	OPT_POD,
	OPT_NAMESPACE,
	OPT_UID,
	OPT_ATTEMPT,
	OPT_CONTAINER,
	OPT_IMAGE,
	OPT_SANDBOX,
	OPT_HOST_NETWORK,
	OPT_HANDLER,
	OPT_DEADLINE,
	OPT_RETRY,
	OPT_GIVE_UP,
};

struct arguments {
	struct ck_cri_pod pod;
	const char *request, *rpc, *sandbox;
	uint64_t deadline, retry, give_up;
	uint32_t attempt;
	bool described; /* an option describes a pod */
};

struct
try {
	uint64_t at, took; /* @at: time since the first try of its step */
	int code;
	char *text;
};

struct step { /* one message, repeated until its id comes back */
	const char *rpc;
	enum ck_kind kind;
	struct ck_bytes request;
	struct ck_key *key; /* NULL: the request cannot be read */
	struct try *tries;
	size_t n;
	uint64_t began, ended;
	char *id; /* NULL: gave up */
};

static const struct argp_option options[] = {
	{ "deadline", OPT_DEADLINE, "SPAN", 0, "Deadline of each request (default: 2s)", 0 },
	{ "retry", OPT_RETRY, "SPAN", 0, "Pause before the next request (default: 500ms)", 0 },
	{ "give-up", OPT_GIVE_UP, "SPAN", 0, "Send no more requests after SPAN (default: 60s)", 0 },
	{ NULL, 0, NULL, 0, "Send a recorded request:", 1 },
	{ "request", OPT_REQUEST, "FILE", 0, "File with one CRI message, without the gRPC header",
	  1 },
	{ "rpc", OPT_RPC, "RPC", 0,
	  "RunPodSandbox or CreateContainer, if the message alone does not tell", 1 },
	{ NULL, 0, NULL, 0, "Or describe the request:", 2 },
	{ "pod", OPT_POD, "NAME", 0, "Create a sandbox for a pod of this name", 2 },
	{ "namespace", OPT_NAMESPACE, "NAME", 0, "Namespace of the pod (default: default)", 2 },
	{ "uid", OPT_UID, "UID", 0, "Uid of the pod (default: a new one)", 2 },
	{ "container", OPT_CONTAINER, "NAME", 0, "Then create a container in the sandbox", 2 },
	{ "image", OPT_IMAGE, "IMAGE", 0, "Image of the container", 2 },
	{ "sandbox", OPT_SANDBOX, "ID", 0, "Create the container in this sandbox", 2 },
	{ "attempt", OPT_ATTEMPT, "N", 0,
	  "Attempt of the container if one is given, else of the sandbox (default: 0)", 2 },
	{ "host-network", OPT_HOST_NETWORK, NULL, 0, "The pod uses the node's network", 2 },
	{ "runtime-handler", OPT_HANDLER, "NAME", 0, "Runtime handler, as in a RuntimeClass", 2 },
	{ 0 },
};

static void parse_span(struct argp_state *state, const char *arg, uint64_t *ret_ns)
{
	if (!ck_duration_parse(arg, ret_ns) || !*ret_ns)
		argp_error(state, "invalid time span '%s'; expected one like 2s or 500ms", arg);
}

static void check(struct argp_state *state, const struct arguments *args)
{
	if (!args->request == !args->described)
		argp_error(state, args->request
					  ? "--request cannot be combined with options that "
					    "describe a pod"
					  : "no request given; use --request FILE or --pod NAME");
	if (args->rpc && !args->request)
		argp_error(state, "--rpc needs --request");
	if (args->described && !args->pod.name)
		argp_error(state, "the pod has no name; use --pod NAME");
	if (!args->pod.container != !args->pod.image)
		argp_error(state, "--container and --image must be given together");
	if (args->sandbox && (!args->pod.container || !args->pod.uid))
		argp_error(state, "--sandbox needs --container and the --uid of its pod");
}

/* an option that describes the pod or the container */
static void describe(int key, char *arg, struct argp_state *state, struct arguments *args)
{
	char *end;
	switch (key) {
	case OPT_POD:
		args->pod.name = arg;
		break;
	case OPT_NAMESPACE:
		args->pod.namespace = arg;
		break;
	case OPT_UID:
		args->pod.uid = arg;
		break;
	case OPT_CONTAINER:
		args->pod.container = arg;
		break;
	case OPT_IMAGE:
		args->pod.image = arg;
		break;
	case OPT_SANDBOX:
		args->sandbox = arg;
		break;
	case OPT_ATTEMPT:
		errno = 0;
		unsigned long n = strtoul(arg, &end, 10);
		if (*arg < '0' || *arg > '9' || *end || errno || n > UINT32_MAX)
			argp_error(state, "invalid attempt '%s'; expected a number", arg);
		args->attempt = (uint32_t)n;
		break;
	case OPT_HOST_NETWORK:
		args->pod.host_network = true;
		break;
	case OPT_HANDLER:
		args->pod.runtime_handler = arg;
		break;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	switch (key) {
	case OPT_DEADLINE:
		parse_span(state, arg, &args->deadline);
		return 0;
	case OPT_RETRY:
		parse_span(state, arg, &args->retry);
		return 0;
	case OPT_GIVE_UP:
		parse_span(state, arg, &args->give_up);
		return 0;
	case OPT_REQUEST:
		args->request = arg;
		return 0;
	case OPT_RPC:
		if (strcmp(arg, "RunPodSandbox") != 0 && strcmp(arg, "CreateContainer") != 0)
			argp_error(state,
				   "invalid RPC '%s'; expected RunPodSandbox or CreateContainer",
				   arg);
		args->rpc = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'; use --pod NAME", arg);
		return EINVAL;
	case ARGP_KEY_END:
		check(state, args);
		return 0;
	}
	if (key < OPT_REQUEST || key > OPT_GIVE_UP)
		return ARGP_ERR_UNKNOWN;
	args->described = true;
	describe(key, arg, state, args);
	return 0;
}

/* ---- what to send ---------------------------------------------------------------------------- */

static const char *new_uid(char buf[37])
{
	unsigned char r[16] = { 0 };
	time_t now = time(NULL);
	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		memcpy(r, &now, sizeof(now));
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40); /* version 4, like the API server's */
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	char *p = buf;
	for (size_t i = 0; i < sizeof(r); i++)
		p += sprintf(p, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", r[i]);
	return buf;
}

static int read_file(const char *path, struct ck_bytes *ret_bytes)
{
	FILE *in = fopen(path, "re");
	size_t n = 1;
	while (in && n && ret_bytes->len <= FILE_MAX) {
		if (ck_bytes_room(ret_bytes, 65536) < 0)
			ck_text_nomem();
		n = fread(ret_bytes->p + ret_bytes->len, 1, 65536, in);
		ret_bytes->len += n;
	}
	bool failed = !in || ferror(in);
	int e = errno;
	if (in)
		fclose(in);
	if (failed)
		ck_print_error("cannot read '%s': %s", path, strerror(e));
	else if (ret_bytes->len > FILE_MAX)
		ck_print_error("'%s' is longer than %u MiB", path, FILE_MAX >> 20);
	return failed || ret_bytes->len > FILE_MAX ? CK_EXIT_TROUBLE : CK_EXIT_YES;
}

static void step_is(struct step *step, enum ck_kind kind)
{
	step->kind = kind;
	step->rpc = kind == CK_SANDBOX ? "RunPodSandbox" : "CreateContainer";
	ck_key_free(step->key);
	step->key = NULL;
	if (ck_key_from_request(kind, step->request.p, step->request.len, &step->key, NULL) ==
	    -CK_ENOMEM)
		ck_text_nomem();
}

/* Field 1 is a message in one request and an id in the other. So a key can be read from only one of
 * the two kinds. */
static int step_from_file(struct step *step, const struct arguments *args)
{
	int r = read_file(args->request, &step->request);
	if (r != CK_EXIT_YES)
		return r;
	if (args->rpc) {
		step_is(step, strcmp(args->rpc, "RunPodSandbox") == 0 ? CK_SANDBOX : CK_CONTAINER);
		return r;
	}
	step_is(step, CK_SANDBOX);
	if (!step->key)
		step_is(step, CK_CONTAINER);
	if (step->key)
		return r;
	ck_print_error("'%s' is neither a RunPodSandboxRequest nor a CreateContainerRequest; use "
		       "--rpc to send it anyway",
		       args->request);
	return CK_EXIT_TROUBLE;
}

/* ---- driving --------------------------------------------------------------------------------- */

static void progress(const struct step *step, const char *now)
{
	static int terminal = -1;
	if (terminal < 0)
		terminal = ck_cli.output == CK_OUTPUT_TABLE && isatty(STDERR_FILENO);
	if (!terminal)
		return;
	if (!now) {
		fputs("\r\033[K", stderr);
		return;
	}
	uint64_t ns = ck_client_now() - step->began;
	fprintf(stderr, "\r%s  %" PRIu64 ".%" PRIu64 "s  request %zu%s%s  %s\033[K", step->rpc,
		ns / CK_NS_PER_S, ns / (100 * CK_NS_PER_MS) % 10, step->n + 1,
		step->n ? "  last " : "",
		step->n ? ck_grpc_name(step->tries[step->n - 1].code) : "", now);
}

static struct try *step_try(struct step *step)
{
	if ((step->n & (step->n - 1)) == 0) { /* grows at powers of two */
		size_t room = step->n ? 2 * step->n : 1;
		step->tries = ck_must(ck_realloc(step->tries, room * sizeof(*step->tries)));
	}
	step->tries[step->n] = (struct try){ 0 };
	return &step->tries[step->n];
}

static void ask(struct ck_client *client, struct step *step, const struct arguments *args)
{
	struct ck_unary call = { 0 };
	struct ck_error err = { 0 };
	char path[CK_CRI_PATH];
	struct try *try = step_try(step);
	if (ck_unary_begin(client, &call, ck_cri_path(step->rpc, path), step->request.p,
			   step->request.len, args->deadline, &err) < 0)
		ck_text_nomem();
	progress(step, "waiting");
	while (!ck_client_wait(client, &call, ck_client_now() + PROGRESS_EVERY))
		progress(step, "waiting");
	if (!call.status.code) {
		/* the id of a container stands at the same place */
		step->id = ck_cri_read_text(call.reply.p, call.reply.len,
					    CRI_RunPodSandboxResponse_pod_sandbox_id);
		if (!step->id || !*step->id) { /* a kubelet could not use it */
			free(CK_TAKE(step->id));
			call.status.code = CK_GRPC_INTERNAL;
			call.status.message = ck_strdup("the answer has no id");
		}
	}
	try->at = call.began - step->began;
	try->took = call.ended - call.began;
	try->code = call.status.code;
	try->text = CK_TAKE(call.status.message);
	ck_cri_newer_than_server(&call); /* the next try uses v1alpha2 */
	step->n++;
	ck_unary_fini(&call);
}

static void rest(const struct step *step, uint64_t until)
{
	for (uint64_t now; (now = ck_client_now()) < until;) {
		uint64_t ns = until - now < PROGRESS_EVERY ? until - now : PROGRESS_EVERY;
		progress(step, "pausing");
		nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
	}
}

static int drive(struct ck_client *client, struct step *step, const struct arguments *args)
{
	step->began = ck_client_now();
	for (;;) {
		ask(client, step, args);
		step->ended = ck_client_now();
		if (step->id || step->ended + args->retry > step->began + args->give_up)
			break;
		rest(step, step->ended + args->retry);
	}
	progress(step, NULL);
	return step->id ? CK_EXIT_YES : CK_EXIT_NO;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_step(const struct step *step)
{
	static const struct ck_column columns[] = {
		{ "REQUEST", CK_COLUMN_RIGHT, 0 },
		{ "AT", CK_COLUMN_RIGHT, 0 },
		{ "TOOK", CK_COLUMN_RIGHT, 0 },
		{ "ANSWER", CK_COLUMN_CUT, 0 },
	};
	char who[256] = "";
	double seconds = (double)(step->ended - step->began) / (double)CK_NS_PER_S;
	struct ck_table *table = ck_table_new(columns, CK_COUNT(columns));
	if (step->key)
		ck_key_print(step->key, who, sizeof(who));
	ck_print_line(stdout, "%s%s%s%s%s", step->rpc, *who ? ": " : "", who,
		      step->key ? ", uid " : "", step->key ? step->key->pod_uid : "");
	for (size_t i = 0; i < step->n; i++) {
		const struct try *try = &step->tries[i];
		ck_table_cellf(table, "%zu", i + 1);
		ck_table_cellf(table, "%.3fs", (double)try->at / (double)CK_NS_PER_S);
		ck_table_cellf(table, "%.3fs", (double)try->took / (double)CK_NS_PER_S);
		ck_table_cellf(table, "%s%s%.*s", ck_grpc_name(try->code), try->text ? ": " : "",
			       TEXT_SHOWN, try->text ? try->text : "");
	}
	ck_table_print(stdout, table, ck_print_width(stdout));
	if (step->id)
		ck_print_line(stdout, "%s after %.3fs, requests: %zu", step->id, seconds, step->n);
	else
		ck_print_error("gave up after %.3fs, requests: %zu", seconds, step->n);
}

static void put_errors(struct json_object *object, const struct step *steps, size_t n)
{
	struct json_object *errors = ck_tree_object();
	for (int code = 1; code <= CK_GRPC_UNAUTHENTICATED; code++) {
		uint64_t sum = 0;
		for (size_t s = 0; s < n; s++)
			for (size_t i = 0; i < steps[s].n; i++)
				sum += steps[s].tries[i].code == code;
		if (sum)
			ck_tree_put_count(errors, ck_grpc_name(code), sum);
	}
	ck_tree_put(object, "errors", errors);
}

static struct json_object *step_tree(const struct step *step)
{
	struct json_object *object = ck_tree_object(), *tries = ck_tree_array();
	const struct ck_key *key = step->key;
	ck_tree_put_text(object, "rpc", step->rpc);
	ck_tree_put_text(object, "namespace", key ? key->pod_namespace : NULL);
	ck_tree_put_text(object, "pod", key ? key->pod_name : NULL);
	ck_tree_put_text(object, "uid", key ? key->pod_uid : NULL);
	if (step->kind == CK_CONTAINER) {
		ck_tree_put_text(object, "sandbox_id", key ? key->sandbox_id : NULL);
		ck_tree_put_text(object, "container", key ? key->container : NULL);
	}
	if (key)
		ck_tree_put_count(object, "attempt", key->attempt);
	ck_tree_put_text(object, "id", step->id);
	ck_tree_put_count(object, "requests", step->n);
	put_errors(object, step, 1);
	ck_tree_put_seconds(object, "seconds", (int64_t)(step->ended - step->began));
	for (size_t i = 0; i < step->n; i++) {
		const struct try *try = &step->tries[i];
		struct json_object *one = ck_tree_object();
		ck_tree_put_seconds(one, "at_seconds", (int64_t)try->at);
		ck_tree_put_seconds(one, "seconds", (int64_t)try->took);
		ck_tree_put_text(one, "code", ck_grpc_name(try->code));
		ck_tree_put_text(one, "text", try->text);
		ck_tree_add(tries, one);
	}
	ck_tree_put(object, "tries", tries);
	return object;
}

/* the sums over all steps, and the id of the last step */
static void print_tree(const struct arguments *args, const struct step *steps, size_t n)
{
	struct json_object *tree = ck_tree_object(), *list = ck_tree_array();
	uint64_t requests = 0;
	for (size_t s = 0; s < n; s++)
		requests += steps[s].n;
	ck_tree_put_text(tree, "endpoint", ck_cri.endpoint);
	ck_tree_put_seconds(tree, "deadline_seconds", (int64_t)args->deadline);
	ck_tree_put_seconds(tree, "retry_seconds", (int64_t)args->retry);
	ck_tree_put_text(tree, "id", steps[n - 1].id);
	ck_tree_put_count(tree, "requests", requests);
	put_errors(tree, steps, n);
	ck_tree_put_seconds(tree, "seconds", (int64_t)(steps[n - 1].ended - steps[0].began));
	for (size_t s = 0; s < n; s++)
		ck_tree_add(list, step_tree(&steps[s]));
	ck_tree_put(tree, "steps", list);
	ck_tree_print(stdout, ck_cli.output, tree);
}

static void step_fini(struct step *step)
{
	for (size_t i = 0; i < step->n; i++)
		free(step->tries[i].text);
	free(step->tries);
	free(step->id);
	ck_key_free(step->key);
	ck_bytes_free(&step->request);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int run(struct ck_client *client, struct arguments *args, struct step *steps, size_t *ret_n)
{
	const char *sandbox = args->sandbox;
	struct step *step = steps;
	int r = CK_EXIT_YES;
	if (args->request) {
		*ret_n = 1;
		return drive(client, step, args);
	}
	if (!sandbox) {
		ck_cri_make_sandbox(&args->pod, &step->request);
		step_is(step, CK_SANDBOX);
		r = drive(client, step, args);
		sandbox = step->id;
		step++;
	}
	if (r == CK_EXIT_YES && args->pod.container) {
		ck_cri_make_container(&args->pod, sandbox, &step->request);
		step_is(step, CK_CONTAINER);
		r = drive(client, step, args);
		step++;
	}
	*ret_n = (size_t)(step - steps);
	return r;
}

int ck_cmd_drive(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Act as a kubelet for one pod: send one create request, the same bytes each "
		       "time, with a deadline, until an id comes back. Then print the number of "
		       "requests, their errors, and the time they took."
		       "\v"
		       "With --container, the sandbox is created first. What was created is not "
		       "removed.\n"
		       "\n"
		       "Exit status: 0 if an id came back, 1 if not, 2 if the request or the "
		       "endpoint cannot be used.\n"
		       "\n"
		       "Examples:\n"
		       "  crikeep drive --pod web-0 --deadline 2s --retry 500ms\n"
		       "  crikeep drive --pod web-0 --container app --image busybox -o json\n"
		       "  crikeep drive --request run-pod-sandbox.bin",
		.children = ck_cri_children,
	};
	struct arguments args = { .deadline = DEADLINE_DEFAULT,
				  .retry = RETRY_DEFAULT,
				  .give_up = GIVE_UP_DEFAULT };
	struct step steps[2] = { { 0 } };
	char uid[37];
	size_t n = 0;
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	args.retry = args.retry > RETRY_MIN ? args.retry : RETRY_MIN;
	args.pod.namespace = args.pod.namespace ? args.pod.namespace : "default";
	args.pod.uid = args.pod.uid ? args.pod.uid : new_uid(uid);
	*(args.pod.container ? &args.pod.container_attempt : &args.pod.attempt) = args.attempt;
	int r = args.request ? step_from_file(&steps[0], &args) : CK_EXIT_YES;
	struct ck_client *client = r == CK_EXIT_YES ? ck_cri_connect() : NULL;
	r = client ? run(client, &args, steps, &n) : CK_EXIT_TROUBLE;
	if (n && ck_cli.output != CK_OUTPUT_TABLE)
		print_tree(&args, steps, n);
	for (size_t s = 0; s < CK_COUNT(steps); s++) {
		if (s < n && ck_cli.output == CK_OUTPUT_TABLE)
			print_step(&steps[s]);
		step_fini(&steps[s]);
	}
	ck_client_free(client);
	return r;
}
