/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short run of a fuzz target without libFuzzer, for `make check`: each seed as it is, then seeds
 * changed by a generator with a set start, so that a run can be repeated. It covers much less than
 * libFuzzer; it shows that the target still works and that what was found once stays repaired.
 *
 * Seeds: tests/fuzz/corpus/NAME/, NAME being the program's name without "fuzz-", and the
 * directories named in tests/fuzz/corpus/NAME.dirs, relative to the source. `fuzz-NAME FILE...`
 * runs these files only, each once. Every input is also in ./fuzz-NAME.input while it runs, so
 * after a crash `fuzz-NAME fuzz-NAME.input` shows it again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define SEEDS_MAX 4096
#define INPUT_MAX 65536 /* longer seeds are run as they are and not changed */

struct seed {
	uint8_t *data;
	size_t size;
};

static struct seed seeds[SEEDS_MAX];
static size_t n_seeds;
static int input_fd = -1;
static unsigned long n_runs;

static void run(const uint8_t *data, size_t size)
{
	/* exactly as long as the input: the sanitizer sees the first byte too far */
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (input_fd >= 0 &&
	    (pwrite(input_fd, data, size, 0) < 0 || ftruncate(input_fd, (off_t)size) < 0))
		perror("the copy of the input");
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	n_runs++;
}

static void seed_add(const char *path)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	if (!f || fstat(fileno(f), &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	if (S_ISREG(st.st_mode) && n_seeds < SEEDS_MAX) {
		struct seed *seed = &seeds[n_seeds++];
		seed->size = (size_t)st.st_size;
		seed->data = malloc(seed->size + 1);
		if (!seed->data || fread(seed->data, 1, seed->size, f) != seed->size)
			abort();
	}
	fclose(f);
}

static void seeds_add_dir(const char *dir)
{
	struct dirent **entries;
	/* in order, or a run could not be repeated */
	int n = scandir(dir, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			seed_add(path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static void seeds_find(const char *srcdir, const char *name)
{
	char path[4096], line[1024];
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s", srcdir, name);
	seeds_add_dir(path);
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s.dirs", srcdir, name);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, sizeof(path), "%s/%s", srcdir, line);
		seeds_add_dir(path);
	}
	if (f)
		fclose(f);
}

static uint64_t random_state;

static size_t random_below(size_t n) /* xorshift64 */
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return n ? (size_t)(random_state % n) : 0;
}

/* one to four changes, of the kinds that break a parser of lengths and tags; returns the new
 * size */
static size_t change(uint8_t *p, size_t size)
{
	static const uint8_t telling[] = { 0x00, 0x01, 0x7f, 0x80, 0xff, 0x0a, 0x12, 0x08 };
	for (size_t n = 1 + random_below(4); n; n--) {
		size_t at = random_below(size), len = 1 + random_below(16);
		if (len > size - at)
			len = size - at;
		switch (random_below(6)) {
		case 0: /* flip a bit */
			if (size)
				p[at] ^= (uint8_t)(1u << random_below(8));
			break;
		case 1: /* a telling byte */
			if (size)
				p[at] = telling[random_below(sizeof(telling))];
			break;
		case 2: /* cut off */
			size = at;
			break;
		case 3: /* take out */
			memmove(p + at, p + at + len, size - at - len);
			size -= len;
			break;
		case 4: /* double */
			if (size + len <= INPUT_MAX) {
				memmove(p + at + len, p + at, size - at);
				size += len;
			}
			break;
		default: { /* copy a piece of another seed */
			const struct seed *other = &seeds[random_below(n_seeds)];
			size_t from = random_below(other->size);
			if (len > other->size - from)
				len = other->size - from;
			memcpy(p + at, other->data + from, len);
		}
		}
	}
	return size;
}

int main(int argc, char **argv)
{
	static uint8_t input[INPUT_MAX];
	const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	const char *name = strncmp(program, "fuzz-", 5) ? program : program + 5;
	const char *srcdir = getenv("CK_TEST_SRCDIR"), *scale = getenv("CK_TEST_SCALE"),
		   *start = getenv("CK_FUZZ_SEED");
	char path[4096];

	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			seed_add(argv[i]);
		for (size_t i = 0; i < n_seeds; i++)
			run(seeds[i].data, seeds[i].size);
		return 0;
	}

	seeds_find(srcdir ? srcdir : ".", name);
	if (n_seeds == 0) {
		printf("not ok - %s: no seeds in tests/fuzz/corpus/%s\n", name, name);
		return 1;
	}
	snprintf(path, sizeof(path), "%s.input", program);
	input_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	run(input, 0);
	for (size_t i = 0; i < n_seeds; i++)
		run(seeds[i].data, seeds[i].size);
	random_state =
		(start && *start ? strtoull(start, NULL, 10) : 1) * UINT64_C(0x9e3779b97f4a7c15) |
		1;
	/* a number of runs, not a time: a slow machine tests the same; 10 s end it where the target
	 * itself is slow */
	unsigned long rounds = 50000 * (scale && *scale ? strtoul(scale, NULL, 10) : 100) / 100;
	for (time_t end = time(NULL) + 10; rounds && time(NULL) < end; rounds--) {
		const struct seed *seed = &seeds[random_below(n_seeds)];
		size_t size = seed->size < INPUT_MAX ? seed->size : INPUT_MAX;
		memcpy(input, seed->data, size);
		run(input, change(input, size));
	}

	unlink(path);
	if (input_fd >= 0)
		close(input_fd);
	for (size_t i = 0; i < n_seeds; i++)
		free(seeds[i].data);
	printf("ok - %s: %lu inputs from %zu seeds\n", name, n_runs, n_seeds);
	return 0;
}
