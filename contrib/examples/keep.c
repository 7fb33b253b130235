/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest host: what is made too late for its caller is kept, and handed back. */
#include <crikeep.h>
#include <stdio.h>
#include <unistd.h>

static void destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	const struct ck_answer done = { .size = sizeof(done) };
	(void)kind, (void)id, (void)userdata; /* there is nothing to destroy */
	ck_job_done(job, &done);
}

static void create(struct ck_turn *turn, void *id)
{
	const struct ck_result made = { .size = sizeof(made), .id = id };
	sleep(2); /* its caller waits for 1 s */
	ck_turn_finish(turn, &made, NULL);
}

static enum ck_delivery answer(const struct ck_reply *reply, const struct ck_status *why, void *id)
{
	int n = printf("%s: %s\n", (char *)id, reply ? "yours" : why->message);
	return n < 0 ? CK_LOST : CK_DELIVERED;
}

int main(void)
{
	static char id[] = "77d1", web[] = "\n\x1b\n\x19\n\5web-0\x12\7u-web-0\x1a\7default";
	const struct ck_request run = { .size = sizeof(run), .kind = CK_SANDBOX, .bytes = web,
					.len = sizeof(web) - 1, .timeout = 1000000000 };
	const struct ck_host host = { .size = sizeof(host), .destroy = destroy };
	const struct ck_options at = { .size = sizeof(at), .state_dir = "state", .host = &host };
	struct ck_cache *cache;
	struct ck_error err;
	if (ck_cache_open(&at, &cache, &err) < 0 || ck_cache_run_thread(cache, &err) < 0)
		return fprintf(stderr, "%s\n", err.text), 1;
	for (int i = 0; i < 2; i++) /* the kubelet repeats its request */
		ck_create(cache, &run, create, answer, id, NULL);
	return ck_cache_close(cache, NULL) < 0;
}
