/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the text. The request's strings (the secrets) are sorted, and each knows the
 * longest other secret that it starts with. At every byte of the text, a binary search and a walk
 * down that chain find the longest secret that starts there, and the bytes that it covers are
 * hidden. So of overlapping secrets nothing shows. When in doubt, the whole text is hidden.
 */
#include <stdbool.h>
#include <string.h>

#include "cache/request/redact.h"
#include "src/base/wire.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

#define HIDDEN     "***"
#define TEXT_READ  4096u /* bytes of text that are read; at most CK_TEXT_MAX are shown */
#define FIRST_ROOM 256u

struct secret {
	const unsigned char *bytes;
	size_t len;
	ptrdiff_t shorter; /* index of the longest other secret that this one starts with, or -1 */
};

struct secrets {
	struct secret *v;
	size_t n, room;
};

/* ---- the request's strings ------------------------------------------------------------------- */

/* Where the secrets are: paths of field numbers from the request down, each to a string.
 * RunPodSandboxRequest and CreateContainerRequest. */
static const char *const sandbox_paths[] = {
	"\1\7\2", /* config.annotations, values */
	NULL,
};
static const char *const container_paths[] = {
	"\2\3",    /* config.command */
	"\2\4",    /* config.args */
	"\2\6\2",  /* config.envs, values */
	"\2\7\2",  /* config.mounts, host_path */
	"\2\12\2", /* config.annotations, values */
	"\3\7\2",  /* sandbox_config.annotations, values */
	NULL,
};

static bool add_secret(struct secrets *secrets, const struct ck_wire_field *field)
{
	/* a text cannot contain a NUL */
	size_t len = strnlen((const char *)field->data, field->len);

	if (len < CK_REDACT_MIN)
		return true;
	if (secrets->n == CK_FIELDS_MAX)
		return false;
	if (secrets->n == secrets->room) {
		size_t room = secrets->room ? 2 * secrets->room : FIRST_ROOM;
		struct secret *v = ck_realloc(secrets->v, room * sizeof(*v));
		if (!v)
			return false;
		secrets->v = v;
		secrets->room = room;
	}
	secrets->v[secrets->n++] = (struct secret){ field->data, len, -1 };
	return true;
}

static bool collect(struct secrets *secrets, struct ck_wire wire, const char *path)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, NULL)) > 0) {
		if (field.number != (unsigned char)path[0] || field.type != CK_WIRE_BYTES)
			continue;
		if (path[1] ? !collect(secrets, ck_wire_inside(&wire, &field), path + 1)
			    : !add_secret(secrets, &field))
			return false;
	}
	return r == 0;
}

static int compare_bytes(const unsigned char *a, size_t a_len, const unsigned char *b, size_t b_len)
{
	size_t len = a_len < b_len ? a_len : b_len;
	int r = memcmp(a, b, len);

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

static int compare_secrets(const void *a, const void *b)
{
	const struct secret *x = a, *y = b;

	return compare_bytes(x->bytes, x->len, y->bytes, y->len);
}

static void link_secrets(struct secrets *secrets)
{
	struct secret *v = secrets->v;
	size_t n = 0;

	if (secrets->n)
		qsort(v, secrets->n, sizeof(*v), compare_secrets);
	for (size_t i = 0; i < secrets->n; i++) {
		if (n && !compare_secrets(&v[n - 1], &v[i]))
			continue;
		/* v is sorted: a shorter secret that v[i] starts with is the one before it, or in
		 * that one's chain */
		ptrdiff_t j = (ptrdiff_t)n - 1;
		while (j >= 0 && (v[j].len > v[i].len || memcmp(v[j].bytes, v[i].bytes, v[j].len)))
			j = v[j].shorter;
		v[n] = v[i];
		v[n++].shorter = j;
	}
	secrets->n = n;
}

/* The length of the longest secret that @text starts with; 0: it starts with none. */
static size_t secret_at(const struct secrets *secrets, const unsigned char *text, size_t len)
{
	size_t low = 0, high = secrets->n, common = 0;

	/* the last secret that is not greater than the text starts with every other that matches */
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (compare_bytes(secrets->v[mid].bytes, secrets->v[mid].len, text, len) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return 0;
	const struct secret *found = &secrets->v[low - 1];
	while (common < found->len && common < len && found->bytes[common] == text[common])
		common++;
	for (ptrdiff_t i = (ptrdiff_t)low - 1; i >= 0; i = secrets->v[i].shorter)
		if (secrets->v[i].len <= common)
			return secrets->v[i].len;
	return 0;
}

/* ---- the text -------------------------------------------------------------------------------- */

static bool ends_word(unsigned char c)
{
	return c <= ' ' || c == '.' || c == '/' || c == 0x7f;
}

/* The bytes of the character at @s; 0: it is bad UTF-8 or a control character. */
static size_t printable(const unsigned char *s, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80   ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;
	uint32_t c;

	if (n == 1)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (!n || n > len)
		return 0;
	c = s[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || c < 0xa0)
		return 0;
	return n;
}

static void hide(bool *hidden, size_t from, size_t n, size_t len)
{
	for (size_t i = from; i < from + n && i < len; i++)
		hidden[i] = true;
}

static void redact_text(const struct secrets *secrets, const unsigned char *text, size_t len,
			char *out)
{
	bool hidden[TEXT_READ] = { false };
	size_t shown = len < TEXT_READ ? len : TEXT_READ, word = 0, n = 0, step;
	bool hiding = false;

	for (size_t i = 0; i < shown; i++) {
		hide(hidden, i, secret_at(secrets, text + i, len - i), shown);
		if (ends_word(text[i]))
			word = 0;
		else if (++word == CK_REDACT_WORD)
			hide(hidden, i + 1 - word, word, shown);
		else if (word > CK_REDACT_WORD)
			hidden[i] = true;
	}
	for (size_t i = 0; i < shown; i += step) {
		size_t good = printable(text + i, len - i);
		const char *show = good ? (const char *)text + i : "?";
		step = good ? good : 1;
		bool hide_it = memchr(hidden + i, true, step < shown - i ? step : shown - i);
		size_t size = step;
		if (hide_it) { /* one "***" for each run of hidden bytes */
			show = HIDDEN;
			size = hiding ? 0 : sizeof(HIDDEN) - 1;
		}
		if (n + size > CK_TEXT_MAX)
			break;
		memcpy(out + n, show, size);
		n += size;
		hiding = hide_it;
	}
	out[n] = '\0';
}

void ck_redact(const char *text, enum ck_kind kind, const void *request, size_t len, char *out)
{
	const char *const *paths = kind == CK_SANDBOX ? sandbox_paths : container_paths;
	struct secrets secrets = { 0 };
	bool known = true;

	for (; request && known && *paths; paths++)
		known = collect(&secrets, ck_wire_begin(request, len), *paths);
	if (known) {
		link_secrets(&secrets);
		redact_text(&secrets, (const unsigned char *)text, strlen(text), out);
	} else {
		/* some of the request's strings are not known */
		memcpy(out, HIDDEN, sizeof(HIDDEN));
	}
	free(secrets.v);
}
