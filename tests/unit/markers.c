/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/markers.h"

static const struct {
	const char *where;
	char text[MARKER_LEN + 1];
} markers[MARKERS] = {
	[MARKER_ENV] = { "an env value", "S3cr3tEnvValue0123456789abcdefgh" },
	[MARKER_ARG] = { "an arg", "S3cr3tArgument0123456789abcdefgh" },
	[MARKER_ANNOTATION] = { "an annotation value", "S3cr3tAnnotate0123456789abcdefgh" },
	[MARKER_MOUNT] = { "a mount source", "S3cr3tMountSrc0123456789abcdefgh" },
	[MARKER_POD_ANNOTATION] = { "a sandbox annotation value",
				    "S3cr3tSandboxA0123456789abcdefgh" },
	[MARKER_ERROR] = { "the runtime's error text", "S3cr3tErrorTxt0123456789abcdefgh" },
	[MARKER_COMMAND] = { "a command", "S3cr3tCommandX0123456789abcdefgh" },
	[MARKER_ESCAPED] = { "an escaped value", "\"\n\\\tr3tQuote.x0123456789.abcde/f" },
};

const char *marker_text(enum marker marker)
{
	return markers[marker].text;
}

static void to_hex(const char *text, size_t len, bool upper, char *out)
{
	for (size_t i = 0; i < len; i++)
		sprintf(out + 2 * i, upper ? "%02X" : "%02x", (unsigned char)text[i]);
}

/* what of it is the same in base64 whatever follows; @text begins at a multiple of three bytes of
 * what was encoded */
static void to_base64(const char *text, size_t len, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i + 2 < len; i += 3) {
		unsigned v = (unsigned)(unsigned char)text[i] << 16 |
			     (unsigned)(unsigned char)text[i + 1] << 8 | (unsigned char)text[i + 2];
		for (int k = 3; k >= 0; k--, v >>= 6)
			out[k] = digits[v & 63];
		out += 4;
	}
	*out = '\0';
}

const char *marker_in(const void *bytes, size_t len)
{
	char form[2 * MARKER_LEN + 1];
	for (size_t m = 0; m < MARKERS; m++) {
		const char *text = markers[m].text;
		/* its head is its own; the digits behind are not. What is escaped, or cut, is in
		 * the first four bytes */
		if (memmem(bytes, len, text + 4, MARKER_LEN / 2 - 4))
			return markers[m].where;
		for (int upper = 0; upper < 2; upper++) {
			to_hex(text, MARKER_LEN, upper, form);
			if (memmem(bytes, len, form, MARKER_LEN))
				return markers[m].where;
		}
		for (size_t shift = 0; shift < 3; shift++) {
			to_base64(text + shift, MARKER_LEN - 2 - shift, form);
			if (memmem(bytes, len, form, strlen(form)))
				return markers[m].where;
		}
	}
	return NULL;
}

static const char *skipped;
static unsigned files;
static char found[4096 + 64];

static int look_at(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode) || (skipped && !strcmp(path, skipped)))
		return 0;
	char *bytes = malloc((size_t)st->st_size + 1);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 || !bytes ? -1 : read(fd, bytes, (size_t)st->st_size);
	const char *where = n > 0 ? marker_in(bytes, (size_t)n) : NULL;
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

const char *marker_in_files(const char *dir, const char *skip, unsigned *ret_files)
{
	found[0] = '\0';
	files = 0;
	skipped = skip;
	nftw(dir, look_at, 16, FTW_PHYS);
	*ret_files = files;
	return found[0] ? found : NULL;
}

bool marker_control(const char *dir)
{
	char path[256], text[2 * MARKER_LEN + 1];
	unsigned n;
	bool good = true;
	snprintf(path, sizeof(path), "%s/control", dir);
	for (size_t m = 0; m < MARKERS; m++)
		for (int form = 0; form < 6; form++) {
			snprintf(text, sizeof(text), "%s", markers[m].text);
			if (form == 1 || form == 2)
				to_hex(markers[m].text, MARKER_LEN, form == 2, text);
			if (form >= 3) {
				char shifted[MARKER_LEN + 4];
				snprintf(shifted, sizeof(shifted), "%.*s%s", form - 3, "  ",
					 markers[m].text);
				to_base64(shifted, MARKER_LEN + (size_t)(form - 3), text);
			}
			FILE *f = fopen(path, "w");
			fprintf(f, "before%sbehind", text);
			fclose(f);
			const char *there = marker_in_files(dir, NULL, &n);
			good = good && there && strstr(there, markers[m].where);
		}
	unlink(path);
	return good;
}

