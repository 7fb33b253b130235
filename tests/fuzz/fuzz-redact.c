/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input chooses a marker, a field of a request that holds it, and a text that repeats it:
 * as it is, quoted by Go once or twice, in JSON, percent-encoded, in base64 or in hexadecimal, cut
 * at either end, amid other bytes. No six bytes of it in a row may be shown, and no eight digits in
 * hexadecimal, but for those of one listed word, one number of at most three digits, five
 * characters of an id or one of the entry's names, with words of at most three letters beside it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/request/redact.h"
#include "cache/request/allowlist.h"
#include "cache/request/words.h"
#include "src/base/limits.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/cri-build.h"

#define PIECE 6u
#define HEX   8u /* digits */

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

/* a word of the list, which goes on behind it */
static const char *a_word(unsigned n)
{
	static const char *words[8192];
	static unsigned n_words;

	for (size_t i = 0; (i || !n_words) && ck_words(i); i++)
		for (const char *p = ck_words(i); *p; p += strspn(p, " ")) {
			words[n_words++] = p;
			p += strcspn(p, " ");
		}
	return words[n % n_words];
}

static void make_marker(struct input *in, struct text *marker)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static const char others[] = " \"\\'\n\t/=:,.-_%&+;<>{}[]()#@!$^`|~?\1\x1b\xc3\xa9";

	for (unsigned n = 1 + take(in, 8); n; n--) {
		const char *word = a_word(take(in, 256) << 8 | take(in, 256));
		switch (take(in, 4)) {
		case 0:
			add(marker, word, strcspn(word, " "));
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

/* Return: from how many bytes on a piece of the form tells of the marker; 0: in quotes, some are
 * escapes and tell nothing */
static size_t encode(struct input *in, const struct text *marker, struct text *to)
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
	return how < 6 ? 0 : how == 6 ? PIECE : HEX;
}

/* ---- what is shown --------------------------------------------------------------------------- */

/* Is out[at] in an id, or in the name of a plugin? */
static bool in_name(const char *out, size_t at)
{
	const unsigned char *s = (const unsigned char *)out;
	size_t len = strlen(out);

	for (size_t i = at > CK_ID_DIGITS ? at - CK_ID_DIGITS : 0; i <= at; i++) {
		if (i && ck_in_word(s[i - 1]))
			continue;
		if (at < i + CK_UUID_LEN && ck_uuid_begins(s + i, len - i))
			return true;
		if (at < i + CK_ID_DIGITS && i + CK_ID_DIGITS <= len &&
		    ck_allowed_id(s + i, CK_ID_DIGITS))
			return true;
	}
	return !strncmp(out, "plugin ", 7) && at < 7 + strcspn(out + 7, " :");
}

/* the word from @start to @end, of which the marker has what is between @from and @to */
static bool may_stay(const char *out, size_t start, size_t end, size_t from, size_t to)
{
	static const char *const names[] = { "web", "uid", "shop", "app", "sandbox" };
	const unsigned char *word = (const unsigned char *)out + start;
	size_t len = end - start, digits = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], word, len))
			return true;
	for (size_t i = from; i < to; i++)
		digits += ck_digit((unsigned char)out[i]);
	return ck_word_listed(word, len) ||
	       (digits < CK_REDACT_MIN && ck_allowed_number(word, len)) ||
	       (to - from < PIECE && in_name(out, start));
}

/* Where the word at out[at] ends, or the part of it if it is a name of several; @at: nowhere */
static size_t word_at(const char *out, size_t at, size_t *ret_start)
{
	const unsigned char *s = (const unsigned char *)out;
	size_t start = at, end = at, part = at + 1;

	while (ck_in_word(s[end]))
		end++;
	while (end > at && start && ck_in_word(s[start - 1]))
		start--;
	if (end > at && ck_allowed_name(s + start, end - start)) {
		for (; part < end && !ck_part_begins(s, end, part); part++)
			;
		end = part;
		for (part = at; part > start && !ck_part_begins(s, end, part); part--)
			;
		start = part;
	}
	*ret_start = start;
	return end;
}

/* out[from] up to out[to] is a piece of the marker: is it of one word that may stay, with other
 * words of at most three letters, or so many letters of them? */
static bool excused(const char *out, size_t from, size_t to)
{
	size_t longer = 0, start, end;

	for (size_t i = from; i < to; i = i < end ? end : i + 1) {
		if (out[i] == '*')
			return true; /* the marker has none */
		end = word_at(out, i, &start);
		size_t last = end < to ? end : to;
		if (last <= i + 3)
			continue;
		if (!may_stay(out, start, end, i, last))
			return false;
		longer++;
	}
	return longer <= 1;
}

/* no @piece bytes in a row */
static void check(const struct text *marker, size_t piece, const char *out)
{
	size_t len = strlen(out);

	for (size_t i = 0; i + piece <= len; i++) {
		const unsigned char *at = memmem(marker->bytes, marker->len, out + i, piece);
		size_t from = i, to = i + piece;
		if (!at)
			continue;
		const unsigned char *end = at + piece;
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
	size_t piece = encode(&in, &marker, &form);
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
	check(&marker, PIECE, out);
	/* base64 is not looked for in the name that the operator gave a plugin */
	if (piece == PIECE && !strncmp(out, "plugin ", 7))
		check(&form, piece, out + 7 + strcspn(out + 7, " :"));
	else if (piece)
		check(&form, piece, out);
	return 0;
}
