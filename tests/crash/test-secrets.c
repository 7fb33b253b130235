/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markers are where a request may contain secrets, through all that can happen to it: failed, late,
 * kept, handed back, conflicting, changed, evicted on request, killed, damaged and set aside.
 * Afterwards no file of the runtime or the cache, and nothing that crikeep prints, may contain a
 * marker.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/crash/world.h"
#include "tests/unit/cri-build.h"
#include "tests/unit/markers.h"

static struct world world;
static unsigned failures, files;

static void report(bool good, const char *name)
{
	printf("%s - %s\n", good ? "ok" : "not ok", name);
	failures += !good;
}

static bool clean(const char *name)
{
	const char *found = marker_in_files(world.dir, NULL, &files);
	if (found)
		printf("# %s: %s\n", name, found);
	return !found;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int create(const char *container, const char *sandbox_id, bool changed, unsigned deadline_ms,
		  const char *label, char answer[2048])
{
	struct pb *request = calloc(1, sizeof(*request)), *config = calloc(1, sizeof(*config)),
		  *sandbox = calloc(1, sizeof(*sandbox));
	char mount[64];
	build_sandbox_metadata(sandbox, "web", "uid-web", "ck", 0);
	pb_pair(sandbox, 7, "sandbox-note", marker_text(MARKER_POD_ANNOTATION));
	if (container) {
		pb_text(request, 1, sandbox_id);
		build_container_metadata(config, container, 0);
		pb_text(config, 3, "/bin/app");
		pb_text(config, 4, marker_text(MARKER_ARG));
		if (changed)
			pb_text(config, 4, "--verbose");
		pb_pair(config, 6, "PASSWORD", marker_text(MARKER_ENV));
		snprintf(mount, sizeof(mount), "/var/%s", marker_text(MARKER_MOUNT));
		pb_mount(config, "/secret", mount);
		pb_pair(config, 10, "note", marker_text(MARKER_ANNOTATION));
		pb_message(request, 2, config);
		pb_message(request, 3, sandbox);
	} else {
		pb_message(request, 1, sandbox);
	}
	int r = world_send(&world, "CREATE", container ? "container" : "sandbox", deadline_ms,
			   label, request->bytes, request->len, answer, 2048);
	free(request);
	free(config);
	free(sandbox);
	return r;
}

static bool obtain(const char *container, const char *sandbox_id, bool changed, char answer[2048])
{
	int r = -1;
	for (int i = 0; i < 100 && r != 0; i++) {
		r = create(container, sandbox_id, changed, 2000, "ok", answer);
		world_sleep(r ? 50 : 0);
	}
	return r == 0;
}

/* ---- crikeep --------------------------------------------------------------------------------- */

static char cli[512];

/* what it prints becomes a file like the others */
static bool run_cli(const char *arguments)
{
	static unsigned n;
	char command[2048];
	snprintf(command, sizeof(command), "%s --state-dir %s/state %s >%s/printed-%u 2>&1", cli,
		 world.dir, arguments, world.dir, ++n);
	int status = system(command);
	return status == 0 || status == 1 << 8; /* 1: no */
}

static bool print_everything(void)
{
	static const char *const commands[] = { "list", "show", "explain", "history", "stats" };
	static const char *const forms[] = { "table", "json", "yaml" };
	bool good = true;
	for (size_t c = 0; c < sizeof(commands) / sizeof(*commands); c++)
		for (size_t f = 0; f < 3; f++) {
			char arguments[128];
			bool of_pod =
				!strcmp(commands[c], "show") || !strcmp(commands[c], "explain");
			snprintf(arguments, sizeof(arguments), "%s -o %s%s", commands[c], forms[f],
				 of_pod ? " ck/web" : "");
			good = run_cli(arguments) && good;
		}
	return good;
}

/* ---- the story ------------------------------------------------------------------------------- */

static void overwrite_database(void)
{
	char path[160], junk[4096];
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal" };
	memset(junk, 'x', sizeof(junk));
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/state/%s", world.dir, names[i]);
		int fd = open(path, O_WRONLY);
		if (fd >= 0 && pwrite(fd, junk, sizeof(junk), 0) < 0)
			perror(path);
		if (fd >= 0)
			close(fd);
	}
}

/* failed, late, handed back, conflicting, changed */
static bool scenes(char *ret_sandbox)
{
	char answer[2048];
	bool good = create(NULL, NULL, false, 2000, "fail-sandbox", answer) == 2 &&
		    strstr(answer, marker_text(MARKER_ERROR));
	good = obtain(NULL, NULL, false, ret_sandbox) && good;
	/* failed: the caller hears the runtime's own words */
	good = create("a", ret_sandbox, false, 2000, "fail-a", answer) == 2 && good;
	create("a", ret_sandbox, false, 60, "late", answer); /* late, kept */
	world_sleep(250);
	good = obtain("a", ret_sandbox, false, answer) && good; /* handed back */
	/* the text says what differs, not how */
	good = create("a", ret_sandbox, true, 2000, "conflict", answer) == 6 && good;
	good = !marker_in(answer, strlen(answer)) && good;
	create("b", ret_sandbox, false, 60, "late", answer);
	world_sleep(250);
	good = obtain("b", ret_sandbox, true, answer) && good; /* changed: the first is destroyed */
	create("c", ret_sandbox, false, 60, "late", answer);
	world_sleep(250);
	return good;
}

/* with an owner, without one, and with the next */
static bool crikeep_is_clean(const char *name, const char *const *args)
{
	bool good = print_everything();
	world_kill_it(&world);
	run_cli("evict ck/web"); /* the request waits for an owner */
	good = clean(name) && good;
	world_start(&world, NULL, args);
	world_sleep(300);
	run_cli("evict ck/web --wait=5s");
	return print_everything() && clean(name) && good;
}

static void tell(const char *program)
{
	char text[512], answer[2048], sandbox[2048], name[128];
	const char *build = getenv("CK_TEST_BUILDDIR");
	const char *const args[] = { "--create-ms", "100",    "--shim", "--plugin-ms",
				     "0",           "--fail", text,     NULL };
	if (!world_make(&world, program, 1))
		exit(99);
	snprintf(cli, sizeof(cli), "%s/crikeep", build ? build : ".");
	snprintf(text, sizeof(text), "cannot run %s %s (mount /var/%s: %s, %s): %s",
		 marker_text(MARKER_ARG), marker_text(MARKER_ENV), marker_text(MARKER_MOUNT),
		 marker_text(MARKER_ANNOTATION), marker_text(MARKER_POD_ANNOTATION),
		 marker_text(MARKER_ERROR));
	bool good = world_start(&world, NULL, args) && marker_control(world.dir);
	snprintf(name, sizeof(name), "%s: a marker is found in each of its forms", program);
	report(good, name);

	good = scenes(sandbox);
	snprintf(name, sizeof(name), "%s: failed, late, handed back, conflicting, changed",
		 program);
	report(good, name);
	snprintf(name, sizeof(name), "%s: no marker in any file", program);
	report(clean(name) && files > 5, name);

	snprintf(name, sizeof(name), "%s: crikeep prints no marker, and its requests hold none",
		 program);
	if (access(cli, X_OK) == 0)
		report(crikeep_is_clean(name, args), name);
	else
		printf("skip - %s: built without it\n", name);

	create("d", sandbox, false, 60, "late", answer); /* killed while it is being created */
	world_kill_it(&world);
	overwrite_database();
	good = world_start(&world, NULL, args);
	create("e", sandbox, false, 2000, "fail-e", answer);
	good = obtain("e", sandbox, false, answer) && good;
	if (access(cli, X_OK) == 0)
		good = print_everything() && good;
	good = world_stop(&world) == 0 && good;
	snprintf(name, sizeof(name),
		 "%s: no marker after kill -9 and damage, set-aside files included", program);
	report(clean(name) && good, name);
	world_remove(&world);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	tell("armed-blocking");
	tell("armed-loop");
	return failures > 0;
}
