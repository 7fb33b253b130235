/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: embed-nri SOCKET - NRI without the cache: a runtime of pods that are nothing but names,
 * told by lines of standard input: "run NAME", "stop NAME", "remove NAME". What to adopt:
 *
 *	describe()  says what an object is; a real runtime fills in pid, addresses, namespaces
 *	snapshot()  what a plugin that connects is told of
 *	tell()      sends an event; its callback says whether plugins agreed
 *	main()      ck_nri_fd() is one more descriptor of the loop
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crikeep-nri.h"

#define PODS_MAX     64
#define NAME_MAX_LEN 63

struct pod {
	char name[NAME_MAX_LEN + 1]; /* "" the place is free */
	/* plugins have been sent RunPodSandbox, or are being sent it */
	int told;
	enum ck_nri_event event;     /* that is on its way; 0: none */
};

static struct ck_nri *nri;
static struct pod pods[PODS_MAX];

static struct pod *find(const char *name)
{
	for (size_t i = 0; i < PODS_MAX; i++)
		if (strcmp(pods[i].name, name) == 0)
			return &pods[i];
	return NULL;
}

/* a PodSandbox with id, name, uid and namespace, fields 1 to 4, all of them strings of less than
 * 128 bytes */
static void describe(struct ck_nri_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	const char *const fields[] = { id, id, id, "default" };
	unsigned char message[4 * (NAME_MAX_LEN + 2)];
	size_t len = 0;
	(void)userdata;
	if (kind != CK_SANDBOX || !find(id)) {
		ck_nri_job_done(job, 5 /* NOT_FOUND */, NULL, 0);
		return;
	}
	for (unsigned i = 0; i < 4; i++) {
		size_t n = strlen(fields[i]);
		message[len++] = (unsigned char)((i + 1) << 3 | 2);
		message[len++] = (unsigned char)n;
		memcpy(message + len, fields[i], n);
		len += n;
	}
	ck_nri_job_done(job, 0, message, len);
}

static int snapshot(int (*fn)(const struct ck_told *object, void *arg), void *arg, void *userdata)
{
	int r = 0;
	(void)userdata;
	for (size_t i = 0; i < PODS_MAX && r == 0; i++) {
		const struct ck_told pod = { .size = sizeof(pod),
					     .kind = CK_SANDBOX,
					     .id = pods[i].name };
		if (pods[i].told)
			r = fn(&pod, arg);
	}
	return r;
}

static void print_log(enum ck_log_level level, const char *text, void *userdata)
{
	(void)userdata;
	if (level <= CK_LOG_WARNING)
		fprintf(stderr, "embed-nri: %s\n", text);
}

static void told(const struct ck_nri_result *result, void *userdata);

static void tell(struct pod *pod, enum ck_nri_event event)
{
	const struct ck_nri_call call = { .size = sizeof(call),
					  .event = event,
					  .pod_id = pod->name };
	struct ck_error err;
	pod->event = event;
	/* together with the event: whoever connects from here on has it in its list, the others
	 * hear of it */
	pod->told = 1;
	if (ck_nri_send(nri, &call, told, pod, &err) < 0) {
		fprintf(stderr, "embed-nri: %s\n", err.text);
		exit(1);
	}
}

/* all who know the pod have been told, and answered or run out of time */
static void told(const struct ck_nri_result *result, void *userdata)
{
	struct pod *pod = userdata;
	enum ck_nri_event event = pod->event;
	pod->event = 0;
	if (event == CK_NRI_RUN_POD_SANDBOX && result->refusal) {
		printf("%s is refused: %s\n", pod->name, result->refusal);
		/* who has heard of it hears its end: Stop, then Remove */
		tell(pod, CK_NRI_REMOVE_POD_SANDBOX);
	} else if (event == CK_NRI_RUN_POD_SANDBOX) {
		/* from here on clients may see it */
		printf("%s runs; plugins told: %u\n", pod->name, result->told);
	} else if (event == CK_NRI_STOP_POD_SANDBOX) {
		/* a real runtime takes its network down now */
		printf("%s has stopped\n", pod->name);
	} else {
		printf("%s is gone\n", pod->name);
		*pod = (struct pod){ 0 };
	}
	fflush(stdout);
}

static void obey(char *line)
{
	char *name = strchr(line, ' ');
	if (!name)
		return;
	*name++ = '\0';
	name[strcspn(name, "\n")] = '\0';
	struct pod *pod = find(name);
	if (!*name || strlen(name) > NAME_MAX_LEN || (pod && pod->event)) {
		printf("not now\n");
	} else if (strcmp(line, "run") == 0 && !pod && (pod = find(""))) {
		strcpy(pod->name, name);
		tell(pod, CK_NRI_RUN_POD_SANDBOX);
	} else if (strcmp(line, "stop") == 0 && pod) {
		tell(pod, CK_NRI_STOP_POD_SANDBOX);
	} else if (strcmp(line, "remove") == 0 && pod) {
		tell(pod, CK_NRI_REMOVE_POD_SANDBOX);
	}
}

int main(int argc, char **argv)
{
	const struct ck_nri_host host = {
		.size = sizeof(host), .describe = describe, .snapshot = snapshot, .log = print_log
	};
	const struct ck_nri_options options = { .size = sizeof(options),
						.host = &host,
						.socket_path = argc > 1 ? argv[1] : NULL };
	struct ck_error err;
	char line[128];
	int input = 1;
	if (ck_nri_open(&options, &nri, &err) < 0 || ck_nri_start(nri, NULL, &err) < 0) {
		fprintf(stderr, "embed-nri: %s\n", err.text);
		return 1;
	}
	setvbuf(stdin, NULL, _IONBF, 0); /* or poll() would not see what is in the buffer */
	for (int busy = 0; input || busy;) {
		struct pollfd fds[] = { { ck_nri_fd(nri), POLLIN, 0 },
					{ input ? 0 : -1, POLLIN, 0 } };
		poll(fds, 2, -1);
		if (fds[1].revents && (input = fgets(line, sizeof(line), stdin) != NULL))
			obey(line);
		ck_nri_process(nri, &err);
		busy = 0;
		for (size_t i = 0; i < PODS_MAX; i++)
			busy = busy || pods[i].event;
	}
	ck_nri_stop(nri);
	ck_nri_process(nri, &err);
	ck_nri_close(nri);
	return 0;
}
