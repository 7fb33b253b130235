/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is split into words: runs of ASCII letters and digits, and UUIDs. Each is judged by the
 * list. What would tell that a value has a word, or a few in a row, is a clue: a number of 64 bits.
 * Then the request is read once, value by value. Each clue that is met there hides its words. So
 * memory is bounded by the text, however large the request is. A creation that fails stops the
 * daemon's one thread here, so most bytes of the request cost one look into a small table.
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

#define HIDDEN  "***"
#define EDGE    4u /* letters of a word that a joint looks at: a cut word has them, too */
#define PIECE   6u /* characters of an id: another text may touch it */
#define HEX     8u /* hexadecimal digits: three bytes are whole, wherever they are cut */
#define SPELLED 3u /* decimal numbers, a byte each */

#define CLUE_BITS 12u
#define HINT_BITS 15u /* 4 KiB: a processor's nearest cache has room for the request, too */

enum judgement {
	HIDE,
	LISTED, /* a word of the list */
	JOINED, /* several words of the list in one: RunPodSandbox */
	NUMBER,
	NAME, /* an id, a plugin's name */
	OWN,  /* of the entry itself, or a runtime's directory: stays */
};

struct word {
	unsigned at, len;
	enum judgement is;
	bool escape; /* right behind a character that begins an escape */
};

/* If a value has the key, the words from left to right are hidden. */
struct clue {
	uint64_t key;
	uint16_t left, right;
	uint16_t next; /* of the same hash; 0: none */
};

struct redaction {
	unsigned char text[CK_REDACT_READ];
	size_t len;
	bool cut; /* the text goes on */
	bool own[CK_REDACT_READ];
	struct word words[CK_REDACT_READ / 2];
	unsigned n_words;
	struct clue clues[CK_REDACT_CLUES + 1]; /* from 1 on */
	uint16_t n_clues;
	uint16_t first[1u << CLUE_BITS]; /* of those with one hash */
	/* what most bytes of a request are asked for first, and few have; case does not count */
	uint64_t meet[64];                      /* letters left of a joint; a bit for each right */
	uint64_t hints[(1u << HINT_BITS) / 64]; /* by the hash of what begins a row */
	uint64_t lengths;                       /* of long words */
	bool rows;                              /* there are clues of rows */
	size_t n_visited;                       /* strings of the request */
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

/* The next word of @rest, which begins behind it then; empty: there is none */
static struct value next_word(struct value *rest)
{
	size_t at = 0, end;

	while (at < rest->len && !ck_in_word(rest->bytes[at]))
		at++;
	for (end = at; end < rest->len && ck_in_word(rest->bytes[end]);)
		end++;
	struct value word = { rest->bytes + at, end - at };
	*rest = (struct value){ rest->bytes + end, rest->len - end };
	return word;
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

	if (!memchr(r->own + word->at, 0, word->len))
		return OWN;
	if (word->escape || (r->cut && word->at + word->len == r->len))
		return HIDE;
	if (ck_allowed_word(s, word->len))
		return LISTED;
	if (ck_allowed_name(s, word->len))
		return JOINED;
	if (ck_allowed_number(s, word->len))
		return NUMBER;
	return ck_allowed_id(s, word->len) || ck_uuid_begins(s, word->len) ||
			       (word->at < plugin(r) && word->len <= CK_ID_DIGITS)
		       ? NAME
		       : HIDE;
}

static void split(struct redaction *r)
{
	struct value rest = { r->text, r->len }, found;

	while ((found = next_word(&rest)).len) {
		size_t at = (size_t)(found.bytes - r->text);
		unsigned char before = at ? r->text[at - 1] : ' ';
		if (ck_uuid_begins(found.bytes, r->len - at)) {
			found.len = CK_UUID_LEN;
			rest = (struct value){ found.bytes + found.len, r->len - at - found.len };
		}
		struct word *word = &r->words[r->n_words++];
		*word = (struct word){ (unsigned)at, (unsigned)found.len, HIDE,
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

/* ---- clues ----------------------------------------------------------------------------------- */

/* What kind of clue a key is. The four letters left of a joint and the four right of it, all in
 * lower case, have no bit above the lowest seven of a byte. */
#define LONE UINT64_C(0x80)            /* a long word that is a whole value */
#define ROW  (UINT64_C(1) << 63)       /* bytes that a value has in a row, from bit 32 on three: */
#define SAME (ROW | UINT64_C(1) << 56) /* these and up to three more, in lower case */
#define CODE (ROW | UINT64_C(2) << 56) /* of eight hexadecimal digits the first six */
#define HALF (ROW | UINT64_C(3) << 56) /* and the six in the middle */

/* three bytes, in either case */
static uint64_t beginning(uint64_t bytes)
{
	return (bytes & 0xffffff) | 0x202020;
}

static uint64_t hash(uint64_t value, unsigned bits)
{
	return value * 0x9e3779b97f4a7c15u >> (64 - bits);
}

static void hide(struct redaction *r, unsigned left, unsigned right)
{
	for (; left <= right; left++)
		if (r->words[left].is != OWN)
			r->words[left].is = HIDE;
}

/* Of a letter, in either case, or a digit: a number below 64; 0: another byte */
static unsigned letter(unsigned char c)
{
	return -(unsigned)ck_in_word(c) & ((c & 31u) | (~(unsigned)c >> 1 & 32));
}

static void add_clue(struct redaction *r, uint64_t key, unsigned left, unsigned right)
{
	uint16_t *first = &r->first[hash(key, CLUE_BITS)];
	unsigned i = left;

	while (i <= right && (r->words[i].is == HIDE || r->words[i].is == OWN))
		i++;
	if (i > right)
		return;
	if (r->n_clues == CK_REDACT_CLUES) {
		hide(r, left, right);
		return;
	}
	r->clues[++r->n_clues] = (struct clue){ key, (uint16_t)left, (uint16_t)right, *first };
	*first = r->n_clues;
	if (key & ROW) {
		uint64_t bit = hash(key >> 32 & 0xffffff, HINT_BITS);
		r->hints[bit / 64] |= UINT64_C(1) << bit % 64;
		r->rows = true;
	} else if (!(key & LONE)) {
		r->meet[letter(key >> 32 & 0xff)] |= UINT64_C(1) << letter(key >> 24 & 0xff);
	}
}

/* A value has @key. What this hides is not looked for again. */
static void follow(struct redaction *r, uint64_t key)
{
	for (uint16_t *at = &r->first[hash(key, CLUE_BITS)]; *at;) {
		struct clue *clue = &r->clues[*at];
		if (clue->key == key) {
			hide(r, clue->left, clue->right);
			*at = clue->next;
		} else {
			at = &clue->next;
		}
	}
}

/* In lower case; more than eight characters are mixed. */
static uint64_t pack(const unsigned char *s, size_t len)
{
	uint64_t key = 0;

	while (len--)
		key = (key << 8 | key >> 56) ^ ck_lower(*s++);
	return key;
}

/* Two words meet, or two parts of a name: the end of the first, the beginning of the second */
static uint64_t joint(struct value left, struct value right)
{
	size_t n = left.len < EDGE ? left.len : EDGE, m = right.len < EDGE ? right.len : EDGE;

	return pack(left.bytes + left.len - n, n) << 32 | pack(right.bytes, m) << 8 * (EDGE - m);
}

/* Where two words meet at @at, or two parts of a name; 0: neither */
static uint64_t joint_at(struct value in, size_t at)
{
	const unsigned char *s = in.bytes;
	size_t end = at, left = 1, right = 1;
	bool part = ck_in_word(s[at - 1]);

	if (part && !ck_part_begins(s, in.len, at))
		return 0;
	while (!ck_in_word(s[end - 1]))
		end--;
	while (left < EDGE && left < end && ck_in_word(s[end - left - 1]) &&
	       !(part && ck_part_begins(s, in.len, end - left)))
		left++;
	while (right < EDGE && at + right < in.len && ck_in_word(s[at + right]) &&
	       !(part && ck_part_begins(s, in.len, at + right)))
		right++;
	return joint((struct value){ s + end - left, left }, (struct value){ s + at, right });
}

/* ---- the text's ------------------------------------------------------------------------------ */

static struct value bytes_of(const struct redaction *r, unsigned word)
{
	return (struct value){ r->text + r->words[word].at, r->words[word].len };
}

/* Each word with the one before it. Words between that are hidden may be escapes, one of them of
 * another language ("&quot;"). */
static void add_joints(struct redaction *r, unsigned word)
{
	/* none, "n", "0a" after '%', "x0a" or "012", "u000a" */
	static const unsigned escapes[] = { 0, 1, 2, 3, 5 };
	struct value right = bytes_of(r, word);
	unsigned others = 0;

	for (unsigned left = word; left-- > 0;) {
		for (size_t k = 0; k < (r->words[word].escape ? CK_COUNT(escapes) : 1); k++) {
			unsigned skip = escapes[k];
			struct value rest = { right.bytes + skip, right.len - skip };
			if (skip < right.len)
				add_clue(r, joint(bytes_of(r, left), rest), left, word);
		}
		if (!r->words[left].escape && (r->words[left].is != HIDE || others++))
			break;
	}
	for (size_t at = 1; r->words[word].is == JOINED && at < right.len; at++)
		if (ck_part_begins(right.bytes, right.len, at))
			add_clue(r, joint_at(right, at), word, word);
	if (right.len >= CK_REDACT_LONG) {
		add_clue(r, LONE | pack(right.bytes, right.len), word, word);
		r->lengths |= UINT64_C(1) << right.len % 64;
	}
}

/* The last units of a row, and the words they are of */
struct row {
	uint64_t units;
	unsigned n;
	uint16_t words[HEX];
};

/* Of the last @n characters */
static void add_same(struct redaction *r, struct row *row, unsigned char c, unsigned word,
		     unsigned n)
{
	row->units = row->units << 8 | ck_lower(c);
	row->words[row->n++ % HEX] = (uint16_t)word;
	if (row->n < n)
		return;
	uint64_t all = row->units << 8 * (PIECE - n);
	add_clue(r, SAME | beginning(all >> 24) << 32 | (all & 0xffffff),
		 row->words[(row->n - n) % HEX], word);
}

static void add_digit(struct redaction *r, struct row *row, unsigned digit, unsigned word)
{
	row->units = row->units << 4 | digit;
	row->words[row->n++ % HEX] = (uint16_t)word;
	if (row->n < HEX)
		return;
	uint64_t all = row->units & 0xffffffff;
	unsigned left = row->words[row->n % HEX];
	add_clue(r, CODE | beginning(all >> 8) << 32 | all, left, word);
	add_clue(r, HALF | beginning(all >> 4) << 32 | all, left, word);
}

/* Characters that a value may have; of a number all between its first digit and its last. A comma
 * between two words only makes groups of digits, or, with @commas, is one of the characters. */
static void add_characters(struct redaction *r, bool commas)
{
	struct row row = { .n = 0 };

	for (unsigned i = 0, end = 0; i < r->n_words; i++) {
		const struct word *word = &r->words[i];
		const unsigned char *s = r->text + word->at;
		bool number = word->is == NUMBER, counts = number || word->is == NAME;
		bool after = word->at == end + 1 && r->text[end] == ',';
		unsigned from = 0, to = word->len, n = number ? CK_REDACT_MIN : PIECE;
		end = word->at + word->len;
		if (!after || !counts)
			row.n = 0;
		if (!counts || (commas && !after && (end == r->len || r->text[end] != ',')))
			continue;
		if (row.n && commas)
			add_same(r, &row, ',', i, n);
		for (; number && !ck_digit(s[from]); row.n = 0)
			from++;
		while (number && !ck_digit(s[to - 1]))
			to--;
		for (unsigned k = from; k < to; k++)
			add_same(r, &row, s[k], i, n);
		if (to < word->len)
			row.n = 0;
	}
}

/* A value may be there as "68756e74", "68 75 6e 74" or "[104 117 110 116]". */
static void add_digits(struct redaction *r)
{
	struct row hex = { .n = 0 }, decimal = { .n = 0 };

	for (unsigned i = 0; i < r->n_words; i++) {
		struct value word = bytes_of(r, i);
		unsigned number = 0;
		for (size_t k = 0; k < word.len; k++) {
			unsigned char c = word.bytes[k];
			if (ck_hex_digit(c))
				add_digit(r, &hex, ck_hex_value(c), i);
			else if (ck_in_word(c))
				hex.n = 0;
			number = ck_digit(c) && k < 3 ? 10 * number + ck_hex_value(c) : 256;
		}
		if (number < 256)
			add_same(r, &decimal, (unsigned char)number, i, SPELLED);
		else
			decimal.n = 0;
	}
}

/* ---- a value's ------------------------------------------------------------------------------- */

/* Asked of every byte, so all but the last step is done without a branch. */
static void follow_joints(struct redaction *r, struct value value)
{
	unsigned before = 0, last = 0; /* letters; 0: another byte, or none yet */

	for (size_t i = 0; i < value.len; i++) {
		unsigned here = letter(value.bytes[i]);
		/* a word, or a capital */
		unsigned begins = (!before) | (!(value.bytes[i] & 0x20));
		if ((r->meet[last] >> here) & begins) {
			uint64_t key = joint_at(value, i);
			if (key)
				follow(r, key);
		}
		before = here;
		last = here ? here : last;
	}
}

static void follow_rows(struct redaction *r, struct value value)
{
	uint64_t all = 0;

	for (size_t i = 0; i < value.len + PIECE - SPELLED; i++) {
		all = all << 8 | (i < value.len ? value.bytes[i] : 0);
		uint64_t begin = beginning(all >> 24), low = all | 0x202020;
		uint64_t bit = hash(begin, HINT_BITS);
		if (!(r->hints[bit / 64] >> bit % 64 & 1))
			continue;
		begin <<= 32;
		follow(r, SAME | begin);
		follow(r, SAME | begin | (low & 0xff0000));
		follow(r, SAME | begin | (low & 0xffffff));
		follow(r, CODE | begin | (all >> 16 & 0xffffffff));
		follow(r, HALF | begin | (all >> 20 & 0xffffffff));
	}
}

static void follow_lone(struct redaction *r, struct value value)
{
	struct value word = next_word(&value);

	if (word.len >= CK_REDACT_LONG && r->lengths >> word.len % 64 & 1 && !next_word(&value).len)
		follow(r, LONE | pack(word.bytes, word.len));
}

static void follow_value(struct redaction *r, struct value value)
{
	const unsigned char *end = value.bytes + value.len;
	const unsigned char *equals = memchr(value.bytes, '=', value.len);

	follow_joints(r, value);
	if (r->rows)
		follow_rows(r, value);
	follow_lone(r, value);
	if (equals)
		follow_lone(r, (struct value){ equals + 1, (size_t)(end - equals - 1) });
}

/* ---- what is shown --------------------------------------------------------------------------- */

enum piece { STARS = 0, BLANK = 1, MARK = 2, WORD = BLANK | MARK };

struct shown {
	char *out;
	size_t len;
	size_t stars;   /* where the last "***" ends; 0: there is none */
	unsigned since; /* enum piece of what follows it */
	bool full;
};

/* One "***" for hidden words with only blanks, or only punctuation, between them. */
static void show(struct shown *shown, enum piece is, const void *bytes, size_t len)
{
	bool joins = is == STARS && shown->stars && shown->since != WORD;

	shown->full = shown->full || (!joins && shown->len + len > CK_TEXT_MAX);
	if (shown->full)
		return;
	if (joins) {
		shown->len = shown->stars;
	} else {
		memcpy(shown->out + shown->len, bytes, len);
		shown->len += len;
	}
	shown->since |= is;
	if (is == STARS) {
		shown->stars = shown->len;
		shown->since = 0;
	}
}

/* What is between two words. '\' comes from quoting and says nothing. */
static void show_gap(struct shown *shown, const struct redaction *r, size_t from, size_t to)
{
	size_t row = 0;

	for (size_t i = from; i < to; i++) {
		unsigned char c = r->text[i];
		bool own = r->own[i] && c > ' ' && c < 0x7f;
		bool prose = strchr(".,:;()[]{}\"'/=-_<>$#", c) && c && row < CK_REDACT_ROW;
		if (strchr(" \t\n\r", c) && c)
			show(shown, BLANK, " ", 1);
		else if (own || prose)
			show(shown, MARK, &c, 1);
		else if (c != '\\')
			show(shown, STARS, HIDDEN, sizeof(HIDDEN) - 1);
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
		at = word->at + word->len;
		if (word->is == HIDE)
			show(&shown, STARS, HIDDEN, sizeof(HIDDEN) - 1);
		else
			show(&shown, WORD, r->text + word->at, word->len);
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
	for (unsigned i = 0; i < r->n_words; i++)
		add_joints(r, i);
	add_characters(r, false);
	add_characters(r, true);
	add_digits(r);
	return visit_all(r, known, false, follow_value);
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
