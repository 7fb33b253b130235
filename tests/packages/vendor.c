/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vendor FIRST SECOND - a host as small as can be, compiled by test-deb.sh against the packages: a
 * request is made, its caller leaves, the result is kept; the second request, which must be the
 * same, gets it. The files are RunPodSandbox requests.
 */
#include <crikeep-nri.h>
#include <crikeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct ck_answer answer = { .size = sizeof(answer) };
	(void)kind;
	(void)id;
	(void)userdata;
	ck_job_done(job, &answer);
}

static int die(const char *what, int r, const struct ck_error *err)
{
	fprintf(stderr, "%s: %d %s\n", what, r, r < 0 ? err->text : "");
	exit(1);
}

static struct ck_turn *begin(struct ck_cache *cache, const char *path, int want)
{
	static unsigned char bytes[1 << 20];
	struct ck_error err;
	struct ck_turn *turn = NULL;
	FILE *file = fopen(path, "rb");
	struct ck_request request = { .size = sizeof(request), .kind = CK_SANDBOX, .bytes = bytes };
	int r;
	if (!file) {
		perror(path);
		exit(1);
	}
	request.len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	r = ck_turn_begin(cache, &request, &turn, &err);
	if (r == CK_WAIT)
		r = ck_turn_wait(turn, &err);
	if (r != want)
		die(path, r, &err);
	return turn;
}

int main(int argc, char **argv)
{
	struct ck_host host = { .size = sizeof(host), .destroy = destroy };
	struct ck_options options = { .size = sizeof(options), .host = &host };
	struct ck_result result = { .size = sizeof(result), .id = "sandbox-1" };
	struct ck_reply reply = { .size = sizeof(reply) };
	struct ck_error err;
	struct ck_cache *cache;
	struct ck_turn *turn;
	char dir[] = "/tmp/vendor.XXXXXX";
	int r;
	if (argc != 3 || !(options.state_dir = mkdtemp(dir)))
		return 2;
	if ((r = ck_cache_open(&options, &cache, &err)) < 0 ||
	    (r = ck_cache_run_thread(cache, &err)) < 0)
		die("open", r, &err);
	turn = begin(cache, argv[1], CK_CREATE);
	ck_turn_leave(turn);
	r = ck_turn_finish(turn, &result, &err);
	if (r == CK_WAIT)
		r = ck_turn_wait(turn, &err);
	if (r != CK_KEPT)
		die("finish", r, &err);
	ck_turn_free(turn);
	turn = begin(cache, argv[2], CK_HAND_BACK);
	if ((r = ck_turn_reply(turn, &reply)) < 0 || strcmp(reply.id, result.id) != 0)
		die("reply", r, &err);
	ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
	if ((r = ck_cache_close(cache, &err)) < 0)
		die("close", r, &err);
	printf("libcrikeep %s handed %s back\n", ck_version(), result.id);
	return 0;
}
