/* SPDX-License-Identifier: Apache-2.0 */
/* A host that loads the library while it runs, keeps its names to itself, and lets it go again. */
#include <dlfcn.h>
#include <string.h>

#include "host.h"

static void no_destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)job, (void)kind, (void)id, (void)userdata;
}

static void *function(void *library, const char *name)
{
	void *at = dlvsym(library, name, "CRIKEEP_0.1");
	if (!at)
		printf("%s\n", name);
	HOST_EXPECT(at);
	HOST_EXPECT(!dlsym(RTLD_DEFAULT, name));
	return at;
}

#define FUNCTION(library, name) (__extension__(__typeof__(&name)) function(library, #name))

static int is_mapped(const char *what)
{
	char line[4096];
	int found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		found |= !!strstr(line, what);
	fclose(maps);
	return found;
}

/* the first life makes the pod, each other is handed it */
static void live(const char *path, const char *dir, int first)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		printf("%s\n", dlerror());
	HOST_EXPECT(library);
	const struct ck_host host = { .size = sizeof(host), .destroy = no_destroy };
	const struct ck_options options = { .size = sizeof(options),
					    .state_dir = dir,
					    .host = &host };
	const struct ck_request request = { .size = sizeof(request),
					    .kind = CK_SANDBOX,
					    .bytes = HOST_REQUEST,
					    .len = sizeof(HOST_REQUEST) - 1 };
	const struct ck_result result = { .size = sizeof(result), .id = "s1" };
	struct ck_cache *cache;
	struct ck_turn *turn;
	struct ck_error err;
	int r = FUNCTION(library, ck_cache_open)(&options, &cache, &err);
	if (r < 0)
		printf("%s\n", err.text);
	HOST_EXPECT(r == 0);
	HOST_EXPECT(FUNCTION(library, ck_cache_run_thread)(cache, &err) == 0);
	HOST_EXPECT(host_count("/proc/self/task") > 3); /* with . and .. */
	r = FUNCTION(library, ck_turn_begin)(cache, &request, &turn, &err);
	HOST_EXPECT(r == (first ? CK_CREATE : CK_HAND_BACK));
	if (first)
		HOST_EXPECT(FUNCTION(library, ck_turn_finish)(turn, &result, &err) == CK_HAND_BACK);
	FUNCTION(library, ck_turn_free)(turn);
	HOST_EXPECT(FUNCTION(library, ck_cache_close)(cache, &err) == 0);
	/* nothing runs that could return into what is unmapped */
	HOST_EXPECT(host_count("/proc/self/task") == 3);
	HOST_EXPECT(dlclose(library) == 0);
	HOST_EXPECT(!is_mapped("libcrikeep"));
}

int main(int argc, char **argv)
{
	unsigned descriptors = 0;
	(void)argc;
	for (int i = 0; i < 20; i++) {
		live(argv[2], argv[1], i == 0);
		if (i == 0)
			descriptors = host_count("/proc/self/fd");
	}
	HOST_EXPECT(host_count("/proc/self/fd") == descriptors);
	puts("loaded 20 times");
	return 0;
}
