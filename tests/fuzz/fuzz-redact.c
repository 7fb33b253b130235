/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input chooses a marker, a field of a request that holds it, and a text that repeats it:
 * as it is, quoted by Go once or twice, in JSON, percent-encoded, in base64 or in hexadecimal, cut
 * at either end, amid other bytes. No six bytes of it in a row may be shown, but for those of one
 * listed word or one of the entry's names, with words of at most three letters beside it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/request/redact.h"
#include "cache/request/words.h"
#include "src/base/limits.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/cri-build.h"

#define PIECE 6u

struct input {
	const uint8_t *p, *end;
};

struct text {
	unsigned char bytes[8192];
	size_t len;
};

static unsigned take(struct input *in, unsigned below)
{
	return in->p < in->end ? *in->p++ % below : 0;
}

static void add(struct text *text, const void *bytes, size_t len)
{
	if (text->len + len < sizeof(text->bytes)) {
		memcpy(text->bytes + text->len, bytes, len);
		text->len += len;
	}
}

/* @before, and @value in @n hexadecimal digits */
static void add_hex(struct text *text, const char *before, unsigned value, unsigned n, bool upper)
{
	add(text, before, strlen(before));
	while (n--)
		add(text, &(upper ? "0123456789ABCDEF" : "0123456789abcdef")[value >> 4 * n & 15],
		    1);
}

/* ---- the marker and the request -------------------------------------------------------------- */

static void make_marker(struct input *in, struct text *marker)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static const char others[] = " \"\\'\n\t/=:,.-_%&+;<>{}[]()#@!$^`|~?\1\x1b\xc3\xa9";
	unsigned words = 0;

	while (ck_word(words))
		words++;
	for (unsigned n = 1 + take(in, 8); n; n--) {
		const char *word = ck_word((take(in, 256) << 8 | take(in, 256)) % words);
		switch (take(in, 4)) {
		case 0:
			add(marker, word, strlen(word));
			break;
		case 1:
			for (unsigned k = 1 + take(in, 12); k; k--)
				add(marker, &letters[take(in, sizeof(letters) - 1)], 1);
			break;
		case 2:
			for (unsigned k = 1 + take(in, 12); k; k--)
				add(marker, &letters[52 + take(in, 10)], 1);
			break;
		}
		for (unsigned k = take(in, 3); k; k--)
			add(marker, &others[take(in, sizeof(others) - 1)], 1);
	}
}

static enum ck_kind make_request(struct input *in, const struct text *marker, struct pb *request)
{
	struct pb config = { .len = 0 }, sandbox = { .len = 0 }, entry = { .len = 0 };
	unsigned where = take(in, 6);
	struct pb *map = &config;
	uint32_t field = 4; /* args */

	if (where == 0) {
		pb_bytes(&config, field, marker->bytes, marker->len);
	} else {
		field = where == 1 ? 6 : where == 2 ? 7 : where == 3 ? 10 : 7;
		map = where > 3 ? &sandbox : &config;
		pb_text(&entry, 1, "some-key");
		pb_bytes(&entry, 2, marker->bytes, marker->len);
		pb_message(map, field, &entry);
	}
	if (where == 5)
		build_sandbox(request, &sandbox);
	else
		build_container(request, &config, &sandbox);
	return where == 5 ? CK_SANDBOX : CK_CONTAINER;
}

/* ---- its forms ------------------------------------------------------------------------------- */

static void quote(const struct text *from, bool json, struct text *to)
{
	for (size_t i = 0; i < from->len; i++) {
		unsigned char c = from->bytes[i];
		if (c == '"')
			add(to, "\\\"", 2);
		else if (c == '\\')
			add(to, "\\\\", 2);
		else if (c == '\n' || c == '\t')
			add(to, c == '\n' ? "\\n" : "\\t", 2);
		else if (json && (c == '<' || c == '>' || c == '&'))
			add_hex(to, "\\u", c, 4, false);
		else if (!json && c == 0xc3 && i + 1 < from->len && from->bytes[i + 1] == 0xa9 &&
			 ++i)
			add_hex(to, "\\u", 0xe9, 4, false);
		else if (c < ' ' || (!json && c > 0x7e))
			add_hex(to, json ? "\\u" : "\\x", c, json ? 4 : 2, false);
		else
			add(to, &c, 1);
	}
}

static void percent(const struct text *from, bool upper, struct text *to)
{
	for (size_t i = 0; i < from->len; i++) {
		unsigned char c = from->bytes[i];
		if (c &&
		    strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", c))
			add(to, &c, 1);
		else
			add_hex(to, "%", c, 2, upper);
	}
}

static void base64(const struct text *from, size_t shift, const char *digits, struct text *to)
{
	for (size_t i = shift; i < from->len; i += 3) {
		unsigned v = 0;
		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < from->len ? from->bytes[i + k] : 0);
		for (int k = 18; k >= 0; k -= 6)
			add(to, &digits[v >> k & 63], 1);
	}
}

/* Return: is every byte of the form a part of the marker? In quotes, some are escapes. */
static bool encode(struct input *in, const struct text *marker, struct text *to)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	struct text once = { .len = 0 };
	unsigned how = take(in, 9);

	if (how == 0) {
		add(to, marker->bytes, marker->len);
	} else if (how <= 2) {
		quote(marker, how == 2, to);
	} else if (how == 3) {
		quote(marker, false, &once);
		quote(&once, false, to);
	} else if (how <= 5) {
		percent(marker, how == 4, to);
	} else if (how == 6) {
		base64(marker, take(in, 3), digits + take(in, 2) * 64, to);
	} else {
		for (size_t i = 0; i < marker->len; i++)
			add_hex(to, "", marker->bytes[i], 2, how == 8);
	}
	return how >= 6;
}

/* ---- what is shown --------------------------------------------------------------------------- */

static bool in_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool may_stay(const char *word, size_t len)
{
	static const char *const names[] = { "web", "uid", "shop", "app", "sandbox" };
	char lower[CK_WORD_MAX];

	if (len <= 3)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], word, len))
			return true;
	for (size_t i = 0; i < len && len <= sizeof(lower); i++)
		lower[i] = (char)(word[i] | 0x20);
	return len <= sizeof(lower) && ck_word_listed(lower, len);
}

/* out[from] up to out[to] is a piece of the marker: is it of one word that may stay, with other
 * words of at most three letters, or so many letters of them? */
static bool excused(const char *out, size_t from, size_t to)
{
	size_t longer = 0;

	for (size_t i = from, end; i < to; i = end + 1) {
		size_t start = i;
		for (end = i; in_word(out[end]); end++)
			;
		while (start && in_word(out[start - 1]))
			start--;
		if (out[i] == '*')
			return true; /* the marker has none */
		if ((end < to ? end : to) <= i + 3)
			continue;
		if (!may_stay(out + start, end - start))
			return false;
		longer++;
	}
	return longer <= 1;
}

static void check(const struct text *marker, const char *out)
{
	size_t len = strlen(out);

	for (size_t i = 0; i + PIECE <= len; i++) {
		const unsigned char *at = memmem(marker->bytes, marker->len, out + i, PIECE);
		size_t from = i, to = i + PIECE;
		if (!at)
			continue;
		const unsigned char *end = at + PIECE;
		for (; from && at > marker->bytes && at[-1] == (unsigned char)out[from - 1]; at--)
			from--;
		for (; end < marker->bytes + marker->len && *end == (unsigned char)out[to]; end++)
			to++;
		if (!excused(out, from, to)) {
			fprintf(stderr, "'%.*s' shows '%s'\n", (int)marker->len,
				(const char *)marker->bytes, out);
			abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pb request;
	struct input in = { data, data + size };
	struct text marker = { .len = 0 }, form = { .len = 0 }, text = { .len = 0 };
	char out[CK_TEXT_MAX + 1];

	make_marker(&in, &marker);
	struct ck_known known = { .kind = make_request(&in, &marker, &request) };
	known.request = request.bytes;
	known.len = request.len;
	bool all = encode(&in, &marker, &form);
	size_t from = take(&in, 4) ? 0 : take(&in, 64), to = take(&in, 4) ? 0 : take(&in, 64);
	size_t filler = take(&in, 64);
	if (filler > (size_t)(in.end - in.p))
		filler = (size_t)(in.end - in.p);
	add(&text, in.p, filler);
	in.p += filler;
	if (from + to < form.len)
		add(&text, form.bytes + from, form.len - from - to);
	add(&text, in.p, (size_t)(in.end - in.p));
	add(&text, "", 1);
	text.bytes[text.len - !!text.len] = '\0';
	ck_redact((const char *)text.bytes, &known, out);
	if (strlen(out) > CK_TEXT_MAX)
		abort();
	for (const char *p = out; *p; p++)
		if (*p < ' ' || *p > '~')
			abort();
	check(&marker, out);
	if (all)
		check(&form, out);
	return 0;
}
