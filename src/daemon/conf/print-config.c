/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as crikeep.yaml, which gives the same values when it is read again; and other
 * functions that depend on the types of keys. */
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/daemon/conf/conf-int.h"

const struct ck_conf_unit ck_conf_units[] = {
	{ "GiB", 1u << 30 }, { "MiB", 1u << 20 }, { "KiB", 1u << 10 }, { "", 1 }
};

const char *ck_conf_print_size(uint64_t bytes, char *buf)
{
	const struct ck_conf_unit *unit = ck_conf_units;
	while (bytes % unit->bytes)
		unit++;
	snprintf(buf, CK_DURATION_TEXT, "%llu%s", (unsigned long long)(bytes / unit->bytes),
		 unit->name);
	return buf;
}

/* a scalar of YAML; with quotes, unless it has only one meaning without them */
static int print_text(const char *s, struct ck_bytes *out)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._:-";
	size_t n = strlen(s);
	bool path = *s == '/' || strncmp(s, CK_CONF_UNIX "/", strlen(CK_CONF_UNIX) + 1) == 0;
	if (path && strspn(s, plain) == n && s[n - 1] != ':')
		return ck_bytes_add(out, s, n);
	int r = ck_bytes_add(out, "\"", 1);
	for (; r == 0 && *s; s++) {
		if (*s == '"' || *s == '\\')
			r = ck_bytes_add(out, "\\", 1);
		r = r ? r : ck_bytes_add(out, s, 1);
	}
	return r ? r : ck_bytes_add(out, "\"", 1);
}

static int print_runtime(const struct ck_conf *conf, struct ck_bytes *out)
{
	char *text = NULL;
	bool sim = conf->simulator;
	if (asprintf(&text, "%s%s", sim ? CK_CONF_SIM : CK_CONF_UNIX,
		     sim ? conf->simulator : conf->runtime) < 0)
		return -CK_ENOMEM;
	int r = print_text(text, out);
	free(text);
	return r;
}

static int print_uids(const struct ck_conf_uids *uids, struct ck_bytes *out)
{
	int r = ck_bytes_add(out, "[", 1);
	for (size_t i = 0; r == 0 && i < uids->n; i++) {
		char text[CK_DURATION_TEXT];
		snprintf(text, sizeof(text), "%s%u", i ? ", " : "", (unsigned)uids->list[i]);
		r = ck_bytes_add_text(out, text);
	}
	return r ? r : ck_bytes_add(out, "]", 1);
}

static int print_list(char *const *list, struct ck_bytes *out)
{
	int r = ck_bytes_add(out, "[", 1);
	for (char *const *p = list; r == 0 && *p; p++) {
		r = p == list ? 0 : ck_bytes_add(out, ", ", 2);
		r = r ? r : print_text(*p, out);
	}
	return r ? r : ck_bytes_add(out, "]", 1);
}

static const char *word_of(const struct ck_conf_key *key, const void *where)
{
	int value;
	memcpy(&value, where, sizeof(value));
	const struct ck_conf_word *word = key->words;
	while (word[1].word && word->value != value)
		word++;
	return word->word;
}

int ck_conf_key_print(const struct ck_conf *conf, const struct ck_conf_key *key,
		      struct ck_bytes *out)
{
	const void *where = ck_conf_key_at(conf, key);
	char text[CK_DURATION_TEXT];
	switch (key->type) {
	case CK_CONF_RUNTIME:
		return print_runtime(conf, out);
	case CK_CONF_SOCKET:
	case CK_CONF_NO_SOCKET:
	case CK_CONF_DIRECTORY:
	case CK_CONF_NO_DIRECTORY:
	case CK_CONF_GROUP:
		return print_text(*(char *const *)where, out);
	case CK_CONF_SPAN:
		return ck_bytes_add_text(out, ck_duration_print(*(const uint64_t *)where, text));
	case CK_CONF_SIZE:
		return ck_bytes_add_text(out, ck_conf_print_size(*(const size_t *)where, text));
	case CK_CONF_COUNT:
		snprintf(text, sizeof(text), "%u", *(const unsigned *)where);
		return ck_bytes_add_text(out, text);
	case CK_CONF_MODE:
		snprintf(text, sizeof(text), "%04o", (unsigned)*(const mode_t *)where);
		return ck_bytes_add_text(out, text);
	case CK_CONF_UIDS:
		return print_uids(where, out);
	case CK_CONF_PATTERNS:
	case CK_CONF_POLICIES:
		return print_list(*(char **const *)where, out);
	case CK_CONF_WORD:
		return ck_bytes_add_text(out, word_of(key, where));
	case CK_CONF_BOOL:
		return ck_bytes_add_text(out, *(const bool *)where ? "true" : "false");
	}
	return -CK_EINVAL;
}

/* the name of the section, if @key is its first, and the name of the key, indented */
static int print_name(const struct ck_conf_key *key, struct ck_bytes *out)
{
	const char *dot = strchr(key->name, '.');
	size_t section = dot ? (size_t)(dot - key->name) : 0;
	int r = 0;
	/* the table begins with keys that are not in a section */
	if (dot && strncmp(key[-1].name, key->name, section + 1) != 0) {
		r = ck_bytes_add(out, key->name, section);
		r = r ? r : ck_bytes_add_text(out, ":\n");
	}
	r = r || !dot ? r : ck_bytes_add_text(out, "  ");
	r = r ? r : ck_bytes_add_text(out, dot ? dot + 1 : key->name);
	return r ? r : ck_bytes_add_text(out, ": ");
}

char *ck_conf_print(const struct ck_conf *conf)
{
	struct ck_bytes out = { 0 };
	int r = 0;
	for (size_t i = 0; r == 0 && i < CK_CONF_KEYS; i++) {
		const struct ck_conf_key *key = &ck_conf_keys[i];
		const char *origin = conf->origins[i];
		r = print_name(key, &out);
		r = r ? r : ck_conf_key_print(conf, key, &out);
		r = r || !origin ? r : ck_bytes_add_text(&out, " # ");
		r = r || !origin ? r : ck_bytes_add_text(&out, origin);
		r = r ? r : ck_bytes_add(&out, "\n", 1);
	}
	r = r ? r : ck_bytes_add(&out, "", 1);
	if (r < 0)
		ck_bytes_free(&out);
	return (char *)out.p;
}

/* ---- freeing and swapping -------------------------------------------------------------------- */

void ck_conf_key_free(struct ck_conf *conf, const struct ck_conf_key *key)
{
	char **text = ck_conf_key_at(conf, key), ***list;
	struct ck_conf_uids *uids;
	switch (key->type) {
	case CK_CONF_RUNTIME:
		free(conf->simulator);
		conf->simulator = NULL;
		/* fall through */
	case CK_CONF_SOCKET:
	case CK_CONF_NO_SOCKET:
	case CK_CONF_DIRECTORY:
	case CK_CONF_NO_DIRECTORY:
	case CK_CONF_GROUP:
		free(*text);
		*text = NULL;
		return;
	case CK_CONF_UIDS:
		uids = ck_conf_key_at(conf, key);
		free(uids->list);
		*uids = (struct ck_conf_uids){ 0 };
		return;
	case CK_CONF_PATTERNS:
	case CK_CONF_POLICIES:
		list = ck_conf_key_at(conf, key);
		for (char **p = *list; p && *p; p++)
			free(*p);
		free(*list);
		*list = NULL;
		return;
	default:
		return;
	}
}

static void swap(void *a, void *b, size_t size)
{
	unsigned char between[sizeof(struct ck_conf_uids)];
	if (CK_NEVER(size > sizeof(between)))
		return;
	memcpy(between, a, size);
	memcpy(a, b, size);
	memcpy(b, between, size);
}

void ck_conf_key_swap(struct ck_conf *a, struct ck_conf *b, const struct ck_conf_key *key)
{
	static const size_t sizes[] = {
		/* the types of keys that may change at run time */
		[CK_CONF_SPAN] = sizeof(uint64_t),
		[CK_CONF_SIZE] = sizeof(size_t),
		[CK_CONF_COUNT] = sizeof(unsigned),
		[CK_CONF_WORD] = sizeof(int),
		[CK_CONF_UIDS] = sizeof(struct ck_conf_uids),
	};
	size_t i = (size_t)(key - ck_conf_keys);
	swap(ck_conf_key_at(a, key), ck_conf_key_at(b, key), sizes[key->type]);
	swap(&a->origins[i], &b->origins[i], sizeof(a->origins[i]));
}
