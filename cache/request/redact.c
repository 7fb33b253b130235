/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is split into words: runs of ASCII letters and digits, and UUIDs. Each is judged by the
 * list. Then the request is read once, value by value, and words that were kept are hidden where a
 * value has them. So memory is bounded by the text, however large the request is. A creation that
 * fails stops the daemon's one thread here, so hints pass over what no word of the text has.
 *
 * Nothing is decoded. A quoted or encoded value is made of pieces of itself and of words that no
 * list has. A word right behind '\' or '%' may begin with a part of the escape, so it is hidden.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cache/request/redact.h"
#include "cache/request/allowlist.h"
#include "cache/request/cri.pb-c.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/wire.h"

#define HIDDEN "***"
#define EDGE   4u /* letters of a word that a joint looks at: a cut word has them, too */
#define WINDOW 6u /* bytes of an id that are looked for: another text may touch it */
#define CODED  3u /* bytes that numbers spell, or one has in hexadecimal: WINDOW digits of it */

#define HINT_BITS 17u /* 16 KiB, half of a processor's nearest cache */

enum judgement {
	HIDE,
	LISTED,  /* a word of the list */
	TELLING, /* a number, an id, a plugin's name: stays only if no value has a part of it */
	JOINED,  /* several words of the list in one: RunPodSandbox */
	OWN,     /* of the entry itself, or a runtime's directory: stays */
};

struct word {
	unsigned at, len;
	enum judgement is;
	bool escape; /* right behind a character that begins an escape */
};

/* What hides one or two words if a value has it: two words that are neighbours, but for escapes
 * between them, or bytes. Both are in one sorted list. */
struct clue {
	unsigned char key[2 * EDGE];
	unsigned left, right;
	bool followed;
};

struct redaction {
	unsigned char text[CK_REDACT_READ];
	size_t len;
	bool cut; /* the text goes on */
	bool own[CK_REDACT_READ];
	struct word words[CK_REDACT_READ / 2];
	unsigned n_words;
	struct clue clues[CK_REDACT_CLUES + 1]; /* the last is written when there is no room */
	size_t n_clues;
	/* Bits of what clues have, by a hash: whole keys, the two letters where a joint's words
	 * meet, the first bytes of those that are bytes, words as hide_long_word() finds them. */
	uint64_t hints[(1u << HINT_BITS) / 64];
	bool any_bytes;             /* a clue is bytes */
	unsigned char letters[256]; /* in lower case, and digits; 0: what is in no word */
	size_t n_visited;           /* strings of the request */
};

struct value {
	const unsigned char *bytes;
	size_t len;
};

typedef void visit_fn(struct redaction *, struct value);

static const char *const directories[] = {
	/* clang-format off */
	"/etc/cni/net.d", "/opt/cni/bin", "/proc", "/sys/fs/cgroup",
	"/run/conmon", "/run/containerd", "/run/containers", "/run/crio", "/run/crun",
	"/run/netns", "/run/runc",
	"/var/lib", "/var/lib/cni", "/var/lib/containerd", "/var/lib/containers",
	"/var/lib/crio", "/var/lib/kubelet",
	"/var/run", "/var/run/containerd", "/var/run/crio", "/var/run/netns",
	/* clang-format on */
};

/* ---- the request's strings ------------------------------------------------------------------- */

static bool is_name(const ProtobufCMessageDescriptor *type, uint32_t number)
{
	static const struct {
		const ProtobufCMessageDescriptor *type;
		uint32_t number;
	} names[] = {
		{ &ck__cri__run_pod_sandbox_request__descriptor, 2 },  /* runtime_handler */
		{ &ck__cri__create_container_request__descriptor, 1 }, /* pod_sandbox_id */
		{ &ck__cri__pod_sandbox_metadata__descriptor, 1 },     /* name */
		{ &ck__cri__pod_sandbox_metadata__descriptor, 2 },     /* uid */
		{ &ck__cri__pod_sandbox_metadata__descriptor, 3 },     /* namespace */
		{ &ck__cri__container_metadata__descriptor, 1 },       /* name */
		{ &ck__cri__image_spec__descriptor, 1 },               /* image */
		{ &ck__cri__image_spec__descriptor, 18 },              /* user_specified_image */
		{ &ck__cri__image_spec__descriptor, 19 },              /* runtime_handler */
		{ &ck__cri__image_spec__descriptor, 20 },              /* image_ref */
	};

	for (size_t i = 0; i < CK_COUNT(names); i++)
		if (names[i].type == type && names[i].number == number)
			return true;
	return false;
}

/* Keys of maps and names of variables are no values. What cri.proto does not know is one. @fn gets
 * the names, or all else. false: the request is malformed, or has too many fields. */
static bool visit(struct redaction *r, const ProtobufCMessageDescriptor *type, struct ck_wire wire,
		  bool names, visit_fn *fn)
{
	struct ck_wire_field field;
	int more;

	while ((more = ck_wire_next(&wire, &field, NULL)) > 0) {
		const ProtobufCFieldDescriptor *known =
			protobuf_c_message_descriptor_get_field(type, field.number);
		if (++r->n_visited > 2 * CK_FIELDS_MAX) /* there are two visits */
			return false;
		if (field.type != CK_WIRE_BYTES || (known && !strcmp(known->name, "key")))
			continue;
		if (known && known->type == PROTOBUF_C_TYPE_MESSAGE) {
			struct ck_wire inside = ck_wire_inside(&wire, &field);
			if (!visit(r, known->descriptor, inside, names, fn))
				return false;
		} else if (is_name(type, field.number) == names) {
			fn(r, (struct value){ field.data, field.len });
		}
	}
	return more == 0;
}

static bool visit_all(struct redaction *r, const struct ck_known *known, bool names, visit_fn *fn)
{
	return !known->request ||
	       visit(r,
		     known->kind == CK_SANDBOX ? &ck__cri__run_pod_sandbox_request__descriptor
					       : &ck__cri__create_container_request__descriptor,
		     ck_wire_begin(known->request, known->len), names, fn);
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool next_word(struct value in, size_t *at, size_t *ret_len)
{
	size_t n = 0;

	while (*at < in.len && !ck_in_word(in.bytes[*at]))
		(*at)++;
	while (*at + n < in.len && ck_in_word(in.bytes[*at + n]))
		n++;
	*ret_len = n;
	return n;
}

/* A host begins a refusal with "plugin NN-name"; the operator has chosen the name. The length of
 * that; 0: the text begins otherwise. */
static size_t plugin(const struct redaction *r)
{
	static const char begins[] = "plugin ";
	const unsigned char *s = r->text;
	size_t n = sizeof(begins) - 1;

	if (r->len < n + 3 || memcmp(s, begins, n) != 0 || !ck_digit(s[n]) || !ck_digit(s[n + 1]) ||
	    s[n + 2] != '-')
		return 0;
	while (n < r->len && (ck_in_word(s[n]) || s[n] == '-' || s[n] == '_' || s[n] == '.'))
		n++;
	return n;
}

static enum judgement judge(const struct redaction *r, const struct word *word)
{
	const unsigned char *s = r->text + word->at;

	if (!memchr(r->own + word->at, false, word->len))
		return OWN;
	if (word->escape || (r->cut && word->at + word->len == r->len))
		return HIDE;
	if (ck_allowed_word(s, word->len))
		return LISTED;
	if (ck_allowed_name(s, word->len))
		return JOINED;
	return ck_allowed_number(s, word->len) || ck_allowed_id(s, word->len) ||
			       ck_uuid_begins(s, word->len) ||
			       (word->at < plugin(r) && word->len <= CK_ID_DIGITS)
		       ? TELLING
		       : HIDE;
}

static void split(struct redaction *r)
{
	struct value text = { r->text, r->len };

	for (size_t at = 0, len; next_word(text, &at, &len); at += len) {
		unsigned char before = at ? r->text[at - 1] : ' ';
		if (ck_uuid_begins(r->text + at, r->len - at))
			len = CK_UUID_LEN;
		struct word *word = &r->words[r->n_words++];
		*word = (struct word){ (unsigned)at, (unsigned)len, HIDE,
				       before == '\\' || before == '%' };
		word->is = judge(r, word);
	}
}

/* ---- what is the entry's own ----------------------------------------------------------------- */

static void mark_own(struct redaction *r, struct value name)
{
	const unsigned char *p = r->text, *end = r->text + r->len;

	if (!name.len)
		return;
	for (; (p = memmem(p, (size_t)(end - p), name.bytes, name.len)); p++)
		if ((p == r->text || !ck_in_word(p[-1])) &&
		    (p + name.len == end || !ck_in_word(p[name.len])))
			memset(r->own + (p - r->text), true, name.len);
}

static void mark_own_names(struct redaction *r, const char *names)
{
	for (size_t n; names && *names; names += n + !!names[n]) {
		n = strcspn(names, " ");
		mark_own(r, (struct value){ (const unsigned char *)names, n });
	}
}

/* ---- what a value has ------------------------------------------------------------------------ */

static void hide(struct redaction *r, unsigned word)
{
	if (r->words[word].is != OWN)
		r->words[word].is = HIDE;
}

static unsigned hash(uint64_t value)
{
	return (unsigned)(value * 0x9e3779b97f4a7c15u >> (64 - HINT_BITS));
}

static void add_hint(struct redaction *r, uint64_t value)
{
	r->hints[hash(value) / 64] |= UINT64_C(1) << hash(value) % 64;
}

static unsigned hinted(const struct redaction *r, uint64_t value)
{
	return r->hints[hash(value) / 64] >> hash(value) % 64 & 1;
}

static uint64_t whole(const unsigned char key[2 * EDGE])
{
	uint64_t value;

	memcpy(&value, key, sizeof(value));
	return value;
}

/* The last letter of a word and the first of the next, both in lower case */
static uint64_t meeting(unsigned char left, unsigned char right)
{
	return (uint64_t)left << 8 | right;
}

static uint64_t long_word(const unsigned char *s, size_t len)
{
	return (uint64_t)len << 16 | meeting(ck_lower(s[len - 1]), ck_lower(s[0]));
}

static void joint_key(const unsigned char *left, size_t left_len, const unsigned char *right,
		      size_t right_len, unsigned char key[2 * EDGE])
{
	memset(key, 0, 2 * EDGE);
	for (size_t i = 0; i < EDGE && i < left_len; i++)
		key[i] = ck_lower(left[left_len - 1 - i]);
	for (size_t i = 0; i < EDGE && i < right_len; i++)
		key[EDGE + i] = ck_lower(right[i]);
}

static void bytes_key(const unsigned char *s, size_t len, unsigned char key[2 * EDGE])
{
	memset(key, 0, 2 * EDGE);
	for (size_t i = 0; i < len; i++)
		key[i] = ck_lower(s[i]);
	key[2 * EDGE - 1] = (unsigned char)(0x80 | len); /* no letter */
}

static struct clue *add_clue(struct redaction *r, unsigned left, unsigned right)
{
	struct clue *clue = &r->clues[r->n_clues];

	if (r->n_clues < CK_REDACT_CLUES) {
		r->n_clues++;
	} else {
		hide(r, left);
		hide(r, right);
	}
	clue->left = left;
	clue->right = right;
	return clue;
}

static int compare_clues(const void *a, const void *b)
{
	return memcmp(((const struct clue *)a)->key, ((const struct clue *)b)->key, 2 * EDGE);
}

/* @skip: bytes of the right word that are an escape's */
static void add_joint(struct redaction *r, unsigned left, unsigned right, unsigned skip)
{
	const struct word *a = &r->words[left], *b = &r->words[right];

	if ((a->is != HIDE && a->is != OWN) || (b->is != HIDE && b->is != OWN))
		joint_key(r->text + a->at, a->len, r->text + b->at + skip, b->len - skip,
			  add_clue(r, left, right)->key);
}

/* Each word with the one before it; and with the last two that are no escapes, because one of
 * these may be an escape of another language ("&quot;"). */
static void join_words(struct redaction *r)
{
	/* none, "n", "0a" after '%', "x0a" or "012", "u000a" */
	static const unsigned escapes[] = { 0, 1, 2, 3, 5 };
	unsigned before[2] = { 0 }, known = 0;

	for (unsigned i = 0; i < r->n_words; i++) {
		const struct word *word = &r->words[i];
		if (i && r->words[i - 1].escape)
			add_joint(r, i - 1, i, 0);
		if (known > 1 && r->words[before[0]].is == HIDE)
			add_joint(r, before[1], i, 0);
		for (size_t k = 0; known && k < (word->escape ? CK_COUNT(escapes) : 1); k++)
			if (escapes[k] < word->len)
				add_joint(r, before[0], i, escapes[k]);
		if (!word->escape) {
			before[1] = before[0];
			before[0] = i;
			known++;
		}
	}
}

static void join_parts(struct redaction *r, unsigned word)
{
	const unsigned char *s = r->text + r->words[word].at;
	size_t len = r->words[word].len;

	for (size_t n = ck_name_part(s, len); n < len; n = ck_name_part(s, len)) {
		joint_key(s, n, s + n, ck_name_part(s + n, len - n), add_clue(r, word, word)->key);
		s += n;
		len -= n;
	}
}

static void add_bytes(struct redaction *r, unsigned word, const unsigned char *s, size_t len,
		      size_t window)
{
	for (size_t i = 0; i == 0 || i + window <= len; i++)
		bytes_key(s + i, len < window ? len : window, add_clue(r, word, word)->key);
}

/* A number or id may be a value in hexadecimal, cut within a byte at either end. */
static void add_decoded(struct redaction *r, unsigned word, const unsigned char *s, size_t len,
			size_t window)
{
	unsigned char bytes[CK_ID_DIGITS / 2];

	for (size_t at = 0, digits; at < len; at += digits + 1) {
		for (digits = 0; at + digits < len && ck_hex_digit(s[at + digits]);)
			digits++;
		for (size_t i = at; i < at + 2 && at + digits >= i + 2 * CODED; i++) {
			size_t n = 0;
			for (size_t k = i; k + 1 < at + digits && n < sizeof(bytes); k += 2)
				bytes[n++] = (unsigned char)(ck_hex_value(s[k]) << 4 |
							     ck_hex_value(s[k + 1]));
			add_bytes(r, word, bytes, n, window);
		}
	}
}

/* The one or two bytes that a word spells: "104", "68" or "6875". How many; 0: it spells none. */
static size_t spelled(const unsigned char *s, size_t len, bool hex, unsigned char bytes[2])
{
	unsigned n = 0;

	if (hex ? len != 2 && len != 4 : len > 3)
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (hex ? !ck_hex_digit(s[i]) : !ck_digit(s[i]))
			return 0;
		n = n * (hex ? 16 : 10) + ck_hex_value(s[i]);
	}
	bytes[0] = (unsigned char)(len == 4 ? n >> 8 : n);
	bytes[1] = (unsigned char)n;
	return len == 4 ? 2 : n <= 0xff;
}

/* Neighbours may be a value byte by byte, as "[104 117 110]" or "68 75 6e". */
static void add_spelled(struct redaction *r, unsigned word, bool hex)
{
	unsigned char bytes[CODED + 1];
	unsigned next = word;

	for (size_t n = 0, more; n < CODED; n += more, next++) {
		more = next == r->n_words ? 0
					  : spelled(r->text + r->words[next].at,
						    r->words[next].len, hex, bytes + n);
		if (!more)
			return;
	}
	for (; word < next; word++)
		bytes_key(bytes, CODED, add_clue(r, word, word)->key);
}

static void add_hints(struct redaction *r)
{
	for (size_t i = 0; i < r->n_clues; i++) {
		const unsigned char *key = r->clues[i].key;
		bool bytes = key[2 * EDGE - 1] & 0x80;
		add_hint(r, whole(key));
		add_hint(r, bytes ? (uint64_t)key[0] << 16 | key[1] << 8 | key[2]
				  : meeting(key[0], key[EDGE]));
		r->any_bytes = r->any_bytes || bytes;
	}
	for (unsigned c = 0; c < sizeof(r->letters); c++)
		r->letters[c] = ck_in_word((unsigned char)c) ? ck_lower((unsigned char)c) : 0;
	for (unsigned i = 0; i < r->n_words; i++)
		add_hint(r, long_word(r->text + r->words[i].at, r->words[i].len));
}

static void find_clues(struct redaction *r)
{
	for (unsigned i = 0; i < r->n_words; i++) {
		const unsigned char *s = r->text + r->words[i].at;
		size_t len = r->words[i].len;
		add_spelled(r, i, false);
		add_spelled(r, i, true);
		if (r->words[i].is == JOINED)
			join_parts(r, i);
		if (r->words[i].is != TELLING)
			continue;
		if (!ck_allowed_number(s, len)) {
			add_decoded(r, i, s, len, WINDOW);
			add_bytes(r, i, s, len, WINDOW);
			continue;
		}
		for (; !ck_digit(s[0]); len--) /* "v" */
			s++;
		add_decoded(r, i, s, len, CODED); /* with its unit, which may be a digit */
		while (!ck_digit(s[len - 1]))
			len--;
		if (len >= CK_REDACT_MIN)
			add_bytes(r, i, s, len, CK_REDACT_MIN);
	}
	join_words(r);
	qsort(r->clues, r->n_clues, sizeof(*r->clues), compare_clues);
	add_hints(r);
}

static void follow(struct redaction *r, const unsigned char key[2 * EDGE])
{
	size_t low = 0, high = r->n_clues;

	if (!hinted(r, whole(key)))
		return;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (memcmp(r->clues[mid].key, key, 2 * EDGE) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < r->n_clues && !r->clues[low].followed &&
	       !memcmp(r->clues[low].key, key, 2 * EDGE);
	     low++) {
		r->clues[low].followed = true;
		hide(r, r->clues[low].left);
		hide(r, r->clues[low].right);
	}
}

/* Both are in a word: does a part begin here, as ck_name_part() has it? */
static bool part_begins(struct value in, size_t at)
{
	const unsigned char *s = in.bytes + at;

	return ck_upper(s[0]) &&
	       (!ck_upper(s[-1]) || (at + 1 < in.len && ck_in_word(s[1]) && !ck_upper(s[1])));
}

/* A word with a word before it is at @at, or a letter that may begin a part */
static void follow_joint(struct redaction *r, struct value in, size_t at)
{
	const unsigned char *s = in.bytes;
	bool parts = ck_in_word(s[at - 1]);
	size_t left_end = at, left = 1, right = 1;
	unsigned char key[2 * EDGE];

	if (parts && !part_begins(in, at))
		return;
	while (!ck_in_word(s[left_end - 1]))
		left_end--;
	while (left < EDGE && left < left_end && ck_in_word(s[left_end - left - 1]) &&
	       !(parts && part_begins(in, left_end - left)))
		left++;
	while (right < EDGE && at + right < in.len && ck_in_word(s[at + right]) &&
	       !(parts && part_begins(in, at + right)))
		right++;
	joint_key(s + left_end - left, left, s + at, right, key);
	follow(r, key);
}

/* Asked of every byte, so all but the last step is done without a branch. */
static void follow_joints(struct redaction *r, struct value value)
{
	unsigned char before = 0, last = 0; /* letter or digit; 0: another byte, or none yet */

	for (size_t i = 0; i < value.len; i++) {
		unsigned char byte = value.bytes[i], letter = r->letters[byte];
		unsigned begins = !before | (letter != byte); /* a word, or a capital */
		if (hinted(r, meeting(last, letter)) & begins & !!letter & !!last)
			follow_joint(r, value, i);
		before = letter;
		last = letter ? letter : last;
	}
}

static void follow_bytes(struct redaction *r, struct value value)
{
	unsigned char key[2 * EDGE];
	uint32_t first = 0; /* CODED bytes */

	for (size_t i = 0; r->any_bytes && i < value.len; i++) {
		first = (first << 8 | ck_lower(value.bytes[i])) & 0xffffff;
		if (i + 1 < CODED || !hinted(r, first))
			continue;
		size_t at = i + 1 - CODED;
		for (size_t n = CODED; n <= WINDOW && at + n <= value.len; n++) {
			bytes_key(value.bytes + at, n, key);
			follow(r, key);
		}
	}
}

/* A value, or what follows its '=', that is one long word */
static void hide_lone_word(struct redaction *r, struct value value)
{
	size_t at = 0, len, next, n;

	if (!next_word(value, &at, &len))
		return;
	const unsigned char *s = value.bytes + at;
	next = at + len;
	if (len < CK_REDACT_LONG || !hinted(r, long_word(s, len)) || next_word(value, &next, &n))
		return;
	for (unsigned i = 0; i < r->n_words; i++) {
		for (n = 0; r->words[i].len == len && n < len &&
			    ck_lower(r->text[r->words[i].at + n]) == ck_lower(s[n]);)
			n++;
		if (n == len)
			hide(r, i);
	}
}

static void hide_value(struct redaction *r, struct value value)
{
	const unsigned char *end = value.bytes + value.len;
	const unsigned char *equals = memchr(value.bytes, '=', value.len);

	follow_joints(r, value);
	follow_bytes(r, value);
	hide_lone_word(r, value);
	if (equals)
		hide_lone_word(r, (struct value){ equals + 1, (size_t)(end - equals - 1) });
}

/* ---- what is shown --------------------------------------------------------------------------- */

struct shown {
	char *out;
	size_t len;
	size_t gap;  /* of the bytes, how many follow the last "***"; 0: it is the last */
	bool hidden; /* there is a "***" */
	bool full;
};

static void show(struct shown *shown, const void *bytes, size_t len)
{
	if (shown->full || shown->len + len > CK_TEXT_MAX) {
		shown->full = true;
		return;
	}
	memcpy(shown->out + shown->len, bytes, len);
	shown->len += len;
	shown->gap += len;
}

/* One "***" for hidden words with only blanks, or only punctuation, between them. */
static void show_hidden(struct shown *shown)
{
	const char *gap = shown->out + shown->len - shown->gap;
	size_t blanks = 0, others = 0;

	for (size_t i = 0; shown->hidden && i < shown->gap; i++) {
		if (ck_in_word((unsigned char)gap[i]))
			blanks = others = 1;
		else if (gap[i] == ' ')
			blanks++;
		else
			others++;
	}
	if (shown->full)
		return;
	if (shown->hidden && (!blanks || !others)) {
		shown->len -= shown->gap;
	} else {
		show(shown, HIDDEN, sizeof(HIDDEN) - 1);
		shown->hidden = true;
	}
	shown->gap = 0;
}

/* What is between two words. '\' comes from quoting and says nothing. */
static void show_gap(struct shown *shown, const struct redaction *r, size_t from, size_t to)
{
	size_t row = 0;

	for (size_t i = from; i < to; i++) {
		unsigned char c = r->text[i];
		bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
		bool own = r->own[i] && c > ' ' && c < 0x7f;
		bool prose = strchr(".,:;()[]{}\"'/=-_<>$#", c) && c && row < CK_REDACT_ROW;
		if (blank)
			show(shown, " ", 1);
		else if (own || prose)
			show(shown, &c, 1);
		else if (c != '\\')
			show_hidden(shown);
		row += prose;
	}
}

static void show_all(const struct redaction *r, char *out)
{
	struct shown shown = { .out = out };
	size_t at = 0;

	for (size_t i = 0; i < r->n_words; i++) {
		const struct word *word = &r->words[i];
		show_gap(&shown, r, at, word->at);
		if (word->is == HIDE)
			show_hidden(&shown);
		else
			show(&shown, r->text + word->at, word->len);
		at = word->at + word->len;
	}
	show_gap(&shown, r, at, r->len);
	out[shown.len] = '\0';
}

static bool redact(struct redaction *r, const char *text, const struct ck_known *known)
{
	r->len = strnlen(text, sizeof(r->text));
	r->cut = r->len == sizeof(r->text) && text[r->len];
	memcpy(r->text, text, r->len);
	for (size_t i = 0; i < CK_COUNT(directories); i++)
		mark_own_names(r, directories[i]);
	for (size_t i = 0; i < known->n; i++)
		mark_own_names(r, known->names[i]);
	if (!visit_all(r, known, true, mark_own))
		return false;
	split(r);
	if (!known->request)
		return true;
	find_clues(r);
	return visit_all(r, known, false, hide_value);
}

void ck_redact(const char *text, const struct ck_known *known, char *out)
{
	static const struct ck_known nothing;
	CK_AUTO_FREE struct redaction *r = CK_NEW(struct redaction);

	if (r && redact(r, text, known ? known : &nothing))
		show_all(r, out);
	else
		memcpy(out, HIDDEN, sizeof(HIDDEN));
}
