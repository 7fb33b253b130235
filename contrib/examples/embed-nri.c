/* SPDX-License-Identifier: Apache-2.0 */
/* usage: embed-nri SOCKET NAME... - NRI without the cache: a runtime of pods that are nothing but
 * names, and run until standard input ends. */
#include <crikeep-nri.h>
#include <poll.h>
#include <stdio.h>

static struct ck_nri *nri;
static char **pods;
static size_t running; /* so many of them do, or are about to */

/* A real runtime adds "labels", "pid", "ips", "linux.namespaces" and so on. Asked about what is
 * gone, it answers with ck_nri_job_done(job, 5, NULL, 0): NOT_FOUND. */
static void describe(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct ck_nri_message *pod = ck_nri_message_new(CK_NRI_POD_SANDBOX);
	(void)kind, (void)userdata;
	ck_nri_put_text(pod, "id", id);
	ck_nri_put_text(pod, "name", id);
	ck_nri_put_text(pod, "uid", id);
	ck_nri_put_text(pod, "namespace", "default");
	ck_nri_job_described(job, pod);
}

/* what a plugin that connects is told of */
static int snapshot(int (*fn)(const struct ck_told *object, void *arg), void *arg, void *userdata)
{
	struct ck_told pod = { .size = sizeof(pod), .kind = CK_SANDBOX };
	int r = 0;
	(void)userdata;
	for (size_t i = 0; i < running && r == 0; i++)
		r = (pod.id = pods[i], fn(&pod, arg));
	return r;
}

/* all who know the pod have answered, or run out of time */
static void told(const struct ck_nri_result *result, void *ret_answer)
{
	*(int *)ret_answer = result->refusal ? -1 : 1;
	if (result->refusal)
		printf("refused by %s\n", result->refusal);
}

/* Here it waits; a runtime that does more at once goes on in the callback. Return: 1, -1 no */
static int tell(const char *pod, enum ck_nri_event event)
{
	const struct ck_nri_call call = { .size = sizeof(call), .event = event, .pod_id = pod };
	struct pollfd fd = { ck_nri_fd(nri), POLLIN, 0 };
	int answer = ck_nri_send(nri, &call, told, &answer, NULL) < 0 ? -1 : 0;
	while (answer == 0 && poll(&fd, 1, -1) > 0)
		ck_nri_process(nri, NULL);
	return answer;
}

static void end(const char *pod)
{
	tell(pod, CK_NRI_STOP_POD_SANDBOX);
	tell(pod, CK_NRI_REMOVE_POD_SANDBOX);
	printf("%s is gone\n", pod);
}

int main(int argc, char **argv)
{
	const struct ck_nri_host host = { .size = sizeof(host), .describe = describe,
					  .snapshot = snapshot };
	const struct ck_nri_options options = { .size = sizeof(options), .host = &host,
						.socket_path = argv[1] };
	struct ck_error err;
	if (ck_nri_open(&options, &nri, &err) < 0 || ck_nri_start(nri, NULL, &err) < 0)
		return fprintf(stderr, "embed-nri: %s\n", err.text), 1;
	struct pollfd fds[] = { { ck_nri_fd(nri), POLLIN, 0 }, { 0, POLLIN, 0 } };
	pods = argv + 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 2; i < argc; i++) {
		pods[running++] = argv[i]; /* before the event */
		if (tell(argv[i], CK_NRI_RUN_POD_SANDBOX) > 0)
			printf("%s runs\n", argv[i]); /* from here on clients may see it */
		else
			end(pods[--running]);
	}
	while (poll(fds, 2, -1) > 0 && !fds[1].revents)
		ck_nri_process(nri, NULL);
	while (running)
		end(pods[--running]);
	ck_nri_close(nri);
	return 0;
}
