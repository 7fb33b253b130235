/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep compare: tell whether the second request repeats the first. The output names the fields
 * that differ, but never a value. No cache is opened: only the two files are read, and a random
 * digest key is used.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache/request/fingerprint.h"
#include "cache/request/key.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"

enum { OPT_MODE = 0x100, OPT_IGNORE, OPT_SANDBOX_CONFIG };

#define ANNOTATIONS_MAX 64

struct arguments {
	enum ck_kind kind;
	const char *files[2];
	struct ck_compare_rules rules;
	const char *annotations[ANNOTATIONS_MAX + 1];
};

struct side { /* one of the two requests */
	unsigned char *bytes;
	size_t len;
	struct ck_key *key;
	struct ck_fingerprint *fp;
};

static const struct argp_option options[] = {
	{ "mode", OPT_MODE, "MODE", 0,
	  "normalized (default), identity (compare the key only) or strict (compare every field)",
	  0 },
	{ "ignore-annotations", OPT_IGNORE, "PATTERNS", 0,
	  "Pod annotations to ignore, separated by commas; each may end in '*' (default: what CNI "
	  "plugins write)",
	  0 },
	{ "compare-sandbox-config", OPT_SANDBOX_CONFIG, NULL, 0,
	  "Also compare the parts of a container's sandbox_config that only RunPodSandbox uses",
	  0 },
	{ 0 },
};

static const char doc[] =
	"Tell whether the request in B.bin repeats the one in A.bin. Each file holds one bare "
	"protobuf message.\v"
	"Prints 'same', or 'different: ' and the fields that differ.\n"
	"\n"
	"Exit status: 0 if the requests are the same, 1 if they differ, 2 if they could not be "
	"compared.\n"
	"\n"
	"Examples:\n"
	"  crikeep compare RunPodSandbox first.bin second.bin\n"
	"  crikeep compare CreateContainer first.bin second.bin --mode strict\n"
	"  crikeep compare RunPodSandbox a.bin b.bin --ignore-annotations 'x.org/*'";

static int parse_mode(const char *name)
{
	static const char *const names[] = {
		[CK_MODE_NORMALIZED] = "normalized",
		[CK_MODE_IDENTITY] = "identity",
		[CK_MODE_STRICT] = "strict",
	};

	for (size_t i = 0; i < CK_COUNT(names); i++)
		if (!strcmp(name, names[i]))
			return (int)i;
	return -1;
}

static void parse_annotations(struct argp_state *state, char *list, struct arguments *args)
{
	size_t n = 0;
	char *save = NULL;

	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (n == ANNOTATIONS_MAX)
			argp_error(state, "more than %d patterns", ANNOTATIONS_MAX);
		args->annotations[n++] = p;
	}
	args->annotations[n] = NULL;
	args->rules.ignore_annotations = args->annotations;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	int mode;

	switch (key) {
	case OPT_MODE:
		mode = parse_mode(arg);
		if (mode < 0)
			argp_error(state,
				   "invalid mode '%s'; expected normalized, identity or strict",
				   arg);
		args->rules.mode = (enum ck_mode)mode;
		return 0;
	case OPT_IGNORE:
		parse_annotations(state, arg, args);
		return 0;
	case OPT_SANDBOX_CONFIG:
		args->rules.compare_sandbox_config = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 2)
			argp_error(state, "unexpected argument '%s'", arg);
		else if (state->arg_num)
			args->files[state->arg_num - 1] = arg;
		else if (!strcmp(arg, "RunPodSandbox"))
			args->kind = CK_SANDBOX;
		else if (!strcmp(arg, "CreateContainer"))
			args->kind = CK_CONTAINER;
		else
			argp_error(state,
				   "invalid call '%s'; expected RunPodSandbox or CreateContainer",
				   arg);
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num < 3)
			argp_error(state, "expected a call and two files");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int read_file(const char *path, struct side *side, struct ck_error *err)
{
	CK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t room = 0;

	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "open");
	for (;;) {
		if (side->len == room) {
			if (room > CK_REQUEST_MAX)
				return ck_fail(err, CK_ETOOBIG,
					       "more than the %u bytes of a request",
					       CK_REQUEST_MAX);
			room = room ? 2 * room : 65536;
			unsigned char *bytes = ck_realloc(side->bytes, room);
			if (!bytes)
				return ck_nomem(err);
			side->bytes = bytes;
		}
		ssize_t n = read(fd, side->bytes + side->len, room - side->len);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return ck_fail_errno(err, CK_EIO, errno, "read");
		side->len += n > 0 ? (size_t)n : 0;
	}
}

static int load(const char *path, enum ck_kind kind, const struct ck_digest_key *key,
		struct side *side)
{
	struct ck_error err;
	int r = read_file(path, side, &err);

	if (r == 0)
		r = ck_key_from_request(kind, side->bytes, side->len, &side->key, &err);
	if (r == 0)
		r = ck_fingerprint_make(key, kind, side->bytes, side->len, &side->fp, &err);
	if (r == 0)
		r = ck_fingerprint_digest(side->fp, &err);
	if (r < 0)
		ck_print_error("%s: %s", path, err.text);
	return r;
}

static void unload(struct side *side)
{
	ck_fingerprint_free(side->fp);
	ck_key_free(side->key);
	free(side->bytes);
}

static void name_path(struct ck_difference *difference, bool differs, const char *path)
{
	size_t len = strlen(difference->text);

	if (differs)
		snprintf(difference->text + len, sizeof(difference->text) - len, "%s%s",
			 difference->count++ ? ", " : "", path);
}

/* The mode identity compares the key only, so it names only fields of the key. */
static bool compare_keys(const struct ck_key *a, const struct ck_key *b,
			 struct ck_difference *difference)
{
	if (a->kind == CK_SANDBOX) {
		name_path(difference, strcmp(a->pod_name, b->pod_name), "config.metadata.name");
		name_path(difference, strcmp(a->pod_uid, b->pod_uid), "config.metadata.uid");
		name_path(difference, strcmp(a->pod_namespace, b->pod_namespace),
			  "config.metadata.namespace");
	} else {
		name_path(difference, strcmp(a->sandbox_id, b->sandbox_id), "pod_sandbox_id");
		name_path(difference, strcmp(a->container, b->container), "config.metadata.name");
	}
	name_path(difference, a->attempt != b->attempt, "config.metadata.attempt");
	return !difference->count;
}

static int compare(const struct arguments *args, const struct side *a, const struct side *b)
{
	struct ck_difference difference = { "", 0 };
	bool same;

	if (args->rules.mode == CK_MODE_IDENTITY)
		same = compare_keys(a->key, b->key, &difference);
	else /* if the keys differ, their fields are among the paths named */
		same = ck_fingerprints_compare(a->fp, b->fp, &args->rules, &difference) ==
		       CK_RELATION_SAME;
	if (ck_cli.output != CK_OUTPUT_TABLE) {
		struct json_object *tree = ck_tree_object();
		ck_tree_put_bool(tree, "same", same);
		ck_tree_put_text(tree, "difference", same ? NULL : difference.text);
		ck_tree_print(stdout, ck_cli.output, tree);
	} else if (same) {
		puts("same");
	} else {
		printf("different: %s\n", difference.text);
	}
	return same ? CK_EXIT_YES : CK_EXIT_NO;
}

int ck_cmd_compare(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "RunPodSandbox|CreateContainer A.bin B.bin",
		.doc = doc,
		.children = ck_cli_children,
	};
	struct arguments args = { 0 };
	struct side a = { 0 }, b = { 0 };
	struct ck_digest_key key;
	int status = CK_EXIT_TROUBLE;

	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	do
		randombytes_buf(key.bytes, sizeof(key.bytes));
	while (!ck_digest_key_derive(&key));
	if (load(args.files[0], args.kind, &key, &a) == 0 &&
	    load(args.files[1], args.kind, &key, &b) == 0)
		status = compare(&args, &a, &b);
	unload(&a);
	unload(&b);
	return status;
}
