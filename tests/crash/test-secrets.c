/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests carry secrets: in env values, args, annotations and mount sources, and runtimes quote them in their errors. A 32-byte
 * marker stands in each of these, through all that can happen to a request: failed, late, kept, handed back, conflicting,
 * changed, evicted by wish, killed, damaged and set aside. Then no file of the runtime and of the cache, and nothing that
 * crikeep prints, may hold a marker: not as it is, nor in hexadecimal or base64.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/crash/world.h"
#include "tests/unit/cri-build.h"

#define MARKER 32

static const struct marker {
	const char *where;
	char text[MARKER + 1];
} markers[] = {
	{ "an env value", "S3cr3tEnvValue0123456789abcdefgh" },
	{ "an arg", "S3cr3tArgument0123456789abcdefgh" },
	{ "an annotation value", "S3cr3tAnnotate0123456789abcdefgh" },
	{ "a mount source", "S3cr3tMountSrc0123456789abcdefgh" },
	{ "a sandbox annotation value", "S3cr3tSandboxA0123456789abcdefgh" },
	{ "the runtime's error text", "S3cr3tErrorTxt0123456789abcdefgh" },
};

#define MARKERS (sizeof(markers) / sizeof(*markers))

static struct world world;
static unsigned failures, files;

static void report(bool good, const char *name)
{
	printf("%s - %s\n", good ? "ok" : "not ok", name);
	failures += !good;
}

/* ---- finding ------------------------------------------------------------------------------------------------------------ */

static void to_hex(const char *text, size_t len, bool upper, char *out)
{
	for (size_t i = 0; i < len; i++)
		sprintf(out + 2 * i, upper ? "%02X" : "%02x", (unsigned char)text[i]);
}

/* what of it is the same in base64 whatever follows; @text begins at a multiple of three bytes of what was encoded */
static void to_base64(const char *text, size_t len, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i + 2 < len; i += 3) {
		unsigned v = (unsigned)(unsigned char)text[i] << 16 | (unsigned)(unsigned char)text[i + 1] << 8 |
			     (unsigned char)text[i + 2];
		for (int k = 3; k >= 0; k--, v >>= 6)
			out[k] = digits[v & 63];
		out += 4;
	}
	*out = '\0';
}

/* the marker's name, if any form of it, or half of it, is in there */
static const char *find_marker(const char *bytes, size_t len)
{
	char form[2 * MARKER + 1];
	for (size_t m = 0; m < MARKERS; m++) {
		const char *text = markers[m].text;
		if (memmem(bytes, len, text, MARKER / 2)) /* its head is its own; the digits behind are not */
			return markers[m].where;
		for (int upper = 0; upper < 2; upper++) {
			to_hex(text, MARKER, upper, form);
			if (memmem(bytes, len, form, MARKER))
				return markers[m].where;
		}
		for (size_t shift = 0; shift < 3; shift++) {
			to_base64(text + shift, MARKER - 2 - shift, form);
			if (memmem(bytes, len, form, strlen(form)))
				return markers[m].where;
		}
	}
	return NULL;
}

static char found[512];

static int look_at(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode))
		return 0;
	char *bytes = malloc((size_t)st->st_size + 1);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 || !bytes ? -1 : read(fd, bytes, (size_t)st->st_size);
	const char *where = n > 0 ? find_marker(bytes, (size_t)n) : NULL;
	if (n < 0)
		snprintf(found, sizeof(found), "%s: %s", path, strerror(errno));
	else if (where && !found[0])
		snprintf(found, sizeof(found), "%s holds %s", path, where);
	files++;
	if (fd >= 0)
		close(fd);
	free(bytes);
	return 0;
}

static bool clean(const char *name)
{
	found[0] = '\0';
	files = 0;
	nftw(world.dir, look_at, 16, FTW_PHYS);
	if (found[0])
		printf("# %s: %s\n", name, found);
	return !found[0];
}

/* ---- requests ----------------------------------------------------------------------------------------------------------- */

static int create(const char *container, const char *sandbox_id, bool changed, unsigned deadline_ms, const char *label,
		  char answer[2048])
{
	struct pb *request = calloc(1, sizeof(*request)), *config = calloc(1, sizeof(*config)),
		  *sandbox = calloc(1, sizeof(*sandbox));
	char mount[64];
	build_sandbox_metadata(sandbox, "web", "uid-web", "ck", 0);
	pb_pair(sandbox, 7, "sandbox-note", markers[4].text);
	if (container) {
		pb_text(request, 1, sandbox_id);
		build_container_metadata(config, container, 0);
		pb_text(config, 3, "/bin/app");
		pb_text(config, 4, markers[1].text);
		if (changed)
			pb_text(config, 4, "--verbose");
		pb_pair(config, 6, "PASSWORD", markers[0].text);
		snprintf(mount, sizeof(mount), "/var/%s", markers[3].text);
		pb_mount(config, "/secret", mount);
		pb_pair(config, 10, "note", markers[2].text);
		pb_message(request, 2, config);
		pb_message(request, 3, sandbox);
	} else {
		pb_message(request, 1, sandbox);
	}
	int r = world_send(&world, "CREATE", container ? "container" : "sandbox", deadline_ms, label, request->bytes,
			   request->len, answer, 2048);
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

/* ---- crikeep ------------------------------------------------------------------------------------------------------------ */

static char cli[512];

/* what it prints becomes a file among the others */
static bool run_cli(const char *arguments)
{
	static unsigned n;
	char command[2048];
	snprintf(command, sizeof(command), "%s --state-dir %s/state %s >%s/printed-%u 2>&1", cli, world.dir, arguments, world.dir,
		 ++n);
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
			bool of_pod = !strcmp(commands[c], "show") || !strcmp(commands[c], "explain");
			snprintf(arguments, sizeof(arguments), "%s -o %s%s", commands[c], forms[f], of_pod ? " ck/web" : "");
			good = run_cli(arguments) && good;
		}
	return good;
}

/* ---- the story ---------------------------------------------------------------------------------------------------------- */

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

static bool control_is_found(void)
{
	char path[160], text[2 * MARKER + 1];
	bool good = true;
	snprintf(path, sizeof(path), "%s/control", world.dir);
	for (size_t m = 0; m < MARKERS; m++)
		for (int form = 0; form < 6; form++) {
			snprintf(text, sizeof(text), "%s", markers[m].text);
			if (form == 1 || form == 2)
				to_hex(markers[m].text, MARKER, form == 2, text);
			if (form >= 3) {
				char shifted[MARKER + 4];
				snprintf(shifted, sizeof(shifted), "%.*s%s", form - 3, "  ", markers[m].text);
				to_base64(shifted, MARKER + (size_t)(form - 3), text);
			}
			FILE *f = fopen(path, "w");
			fprintf(f, "before%sbehind", text);
			fclose(f);
			nftw(world.dir, look_at, 16, FTW_PHYS);
			good = good && strstr(found, markers[m].where);
			found[0] = '\0';
		}
	unlink(path);
	return good;
}

static void tell(const char *program)
{
	char text[512], answer[2048], sandbox[2048], name[128];
	const char *build = getenv("CK_TEST_BUILDDIR");
	const char *const args[] = { "--create-ms", "100", "--shim", "--plugin-ms", "0", "--fail", text, NULL };
	if (!world_make(&world, program, 1))
		exit(99);
	snprintf(cli, sizeof(cli), "%s/crikeep", build ? build : ".");
	snprintf(text, sizeof(text), "cannot run %s %s (mount /var/%s: %s, %s): %s", markers[1].text, markers[0].text,
		 markers[3].text, markers[2].text, markers[4].text, markers[5].text);
	bool good = world_start(&world, NULL, args) && control_is_found();
	snprintf(name, sizeof(name), "%s: a marker is found in each of its forms", program);
	report(good, name);

	good = create(NULL, NULL, false, 2000, "fail-sandbox", answer) == 2 && strstr(answer, markers[5].text);
	good = obtain(NULL, NULL, false, sandbox) && good;
	/* failed: the caller hears the runtime's own words */
	good = create("a", sandbox, false, 2000, "fail-a", answer) == 2 && good;
	create("a", sandbox, false, 60, "late", answer); /* late, kept */
	world_sleep(250);
	good = obtain("a", sandbox, false, answer) && good;                       /* handed back */
	good = create("a", sandbox, true, 2000, "conflict", answer) == 6 && good; /* says what differs, not how */
	good = !find_marker(answer, strlen(answer)) && good;
	create("b", sandbox, false, 60, "late", answer);
	world_sleep(250);
	good = obtain("b", sandbox, true, answer) && good; /* changed: the first is destroyed */
	create("c", sandbox, false, 60, "late", answer);
	world_sleep(250);
	snprintf(name, sizeof(name), "%s: failed, late, handed back, conflicting, changed", program);
	report(good, name);
	snprintf(name, sizeof(name), "%s: no marker in any file", program);
	report(clean(name) && files > 5, name);

	snprintf(name, sizeof(name), "%s: crikeep prints no marker, and its wishes hold none", program);
	if (access(cli, X_OK) == 0) {
		good = print_everything();
		world_kill_it(&world);
		run_cli("evict ck/web"); /* the wish lies there until somebody owns the database */
		good = clean(name) && good;
		world_start(&world, NULL, args);
		world_sleep(300);
		run_cli("evict ck/web --wait=5s");
		report(print_everything() && clean(name) && good, name);
	} else {
		printf("skip - %s: built without it\n", name);
	}

	create("d", sandbox, false, 60, "late", answer); /* killed while it is made */
	world_kill_it(&world);
	overwrite_database();
	good = world_start(&world, NULL, args);
	create("e", sandbox, false, 2000, "fail-e", answer);
	good = obtain("e", sandbox, false, answer) && good;
	if (access(cli, X_OK) == 0)
		good = print_everything() && good;
	good = world_stop(&world) == 0 && good;
	snprintf(name, sizeof(name), "%s: no marker after kill -9 and damage, set-aside files included", program);
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
