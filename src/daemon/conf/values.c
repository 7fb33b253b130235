/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read one value of one key from text. Nothing is guessed: `10min`, `010` and `maybe` are errors
 * that say what is allowed. After an error the value is unchanged.
 */
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache/request/fingerprint.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/base/utf8.h"
#include "src/daemon/conf/conf-int.h"

struct reading { /* one value */
	struct ck_conf *conf;
	const struct ck_conf_key *key;
	const char *origin;
	struct ck_error *err;
};

const char *ck_conf_shown(const char *value, char *buf)
{
	ck_utf8_clean(value, true, buf, CK_CONF_SHOWN);
	return buf;
}

__attribute__((format(printf, 3, 4))) static int wrong(const struct reading *reading,
						       const char *value, const char *fmt, ...)
{
	char what[CK_ERROR_TEXT], shown[CK_CONF_SHOWN];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return ck_fail(reading->err, CK_EINVAL, "%s: %s: '%s' %s", reading->origin,
		       reading->key->name, ck_conf_shown(value, shown), what);
}

static int check_text(const struct reading *reading, const char *value)
{
	if (strlen(value) > CK_CONF_VALUE_MAX)
		return wrong(reading, value, "is too long: %u bytes at most", CK_CONF_VALUE_MAX);
	for (const char *s = value; *s;) {
		uint32_t c;
		size_t n = ck_utf8_next(s, &c);
		if (!n)
			return wrong(reading, value, "is not UTF-8");
		if (ck_utf8_unsafe(c))
			return wrong(reading, value, "contains an unprintable character");
		s += n;
	}
	return 0;
}

static int store_text(const struct reading *reading, char **where, const char *value)
{
	char *copy = ck_strdup(value);
	if (!copy)
		return ck_nomem(reading->err);
	free(*where);
	*where = copy;
	return 0;
}

static int read_path(const struct reading *reading, const char *value, size_t longest)
{
	if (*value != '/')
		return wrong(reading, value, "is not an absolute path");
	if (strlen(value) > longest)
		return wrong(reading, value, "is too long: %zu bytes at most", longest);
	return store_text(reading, ck_conf_key_at(reading->conf, reading->key), value);
}

static int read_socket(const struct reading *reading, const char *value)
{
	const char *path = strncmp(value, CK_CONF_UNIX, strlen(CK_CONF_UNIX))
				   ? value
				   : value + strlen(CK_CONF_UNIX);
	if (*path != '/' || path[strlen(path) - 1] == '/')
		return wrong(reading, value, "is not unix:///path or /path of a socket");
	return read_path(reading, path,
			 reading->key->type == CK_CONF_RUNTIME ? CK_SOCKET_PATH_MAX
							       : CK_LISTEN_PATH_MAX);
}

static int read_runtime(const struct reading *reading, const char *value)
{
	struct ck_conf *conf = reading->conf;
	bool simulator = strncmp(value, CK_CONF_SIM, strlen(CK_CONF_SIM)) == 0;
	const char *parameters = value + strlen(CK_CONF_SIM);
	int r = simulator ? store_text(reading, &conf->simulator, parameters)
			  : read_socket(reading, value);
	if (r < 0)
		return r;
	char **other = simulator ? &conf->runtime : &conf->simulator;
	free(*other);
	*other = NULL;
	return 0;
}

static int read_span(const struct reading *reading, const char *value)
{
	const struct ck_conf_key *key = reading->key;
	char least[CK_DURATION_TEXT], most[CK_DURATION_TEXT];
	uint64_t ns;
	if (!ck_duration_parse(value, &ns))
		return wrong(reading, value,
			     "is not a span of time such as 30s, 10m, 1h30m or 250ms");
	if (ns < key->least || ns > key->most)
		return wrong(reading, value, "is not between %s and %s",
			     ck_duration_print(key->least, least),
			     ck_duration_print(key->most, most));
	memcpy(ck_conf_key_at(reading->conf, key), &ns, sizeof(ns));
	return 0;
}

/* Read digits without a sign, a blank or a leading zero, so that they have one meaning only.
 * Return: what follows them, or NULL */
static const char *read_digits(const char *s, uint64_t *ret_n)
{
	uint64_t n = 0;
	if (*s < '0' || *s > '9' || (*s == '0' && s[1] >= '0' && s[1] <= '9'))
		return NULL;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (n > UINT32_MAX)
			return NULL;
		n = n * 10 + (uint64_t)(*s - '0');
	}
	*ret_n = n;
	return s;
}

static int read_size(const struct reading *reading, const char *value)
{
	const struct ck_conf_key *key = reading->key;
	char least[CK_DURATION_TEXT], most[CK_DURATION_TEXT];
	uint64_t n;
	const char *rest = read_digits(value, &n);
	const struct ck_conf_unit *unit = rest ? ck_conf_units : NULL;
	while (unit && strcmp(unit->name, rest) != 0)
		unit = unit->bytes > 1 ? unit + 1 : NULL;
	if (!unit)
		return wrong(reading, value,
			     "is not a size such as 16MiB, 256KiB or a number of bytes");
	n *= unit->bytes; /* 2^33 GiB at most */
	if (n < key->least || n > key->most)
		return wrong(reading, value, "is not between %s and %s",
			     ck_conf_print_size(key->least, least),
			     ck_conf_print_size(key->most, most));
	size_t bytes = (size_t)n;
	memcpy(ck_conf_key_at(reading->conf, key), &bytes, sizeof(bytes));
	return 0;
}

static int read_count(const struct reading *reading, const char *value)
{
	const struct ck_conf_key *key = reading->key;
	uint64_t n;
	const char *rest = read_digits(value, &n);
	if (!rest || *rest)
		return wrong(reading, value, "is not a number");
	if (n < key->least || n > key->most)
		return wrong(reading, value, "is not between %u and %u", (unsigned)key->least,
			     (unsigned)key->most);
	unsigned count = (unsigned)n;
	memcpy(ck_conf_key_at(reading->conf, key), &count, sizeof(count));
	return 0;
}

static int read_mode(const struct reading *reading, const char *value)
{
	mode_t mode = 0;
	bool good = strlen(value) == 4 && *value == '0';
	for (const char *s = value; good && *s; s++) {
		good = *s >= '0' && *s <= '7';
		mode = (mode_t)(mode * 8 + (mode_t)(*s - '0'));
	}
	if (!good)
		return wrong(reading, value, "is not a mode such as 0660");
	memcpy(ck_conf_key_at(reading->conf, reading->key), &mode, sizeof(mode));
	return 0;
}

static int read_group(const struct reading *reading, const char *value)
{
	struct ck_conf *conf = reading->conf;
	struct ck_conf_group *where = ck_conf_key_at(conf, reading->key);
	gid_t gid = (gid_t)-1;
	uint64_t n;
	const char *end = read_digits(value, &n);
	if (end && !*end && n < (gid_t)-1) {
		gid = (gid_t)n;
	} else if (*value && !conf->confined) {
		struct group group, *found = NULL;
		CK_AUTO_FREE char *buf = ck_alloc(CK_REPLY_MAX);
		if (!buf)
			return ck_nomem(reading->err);
		int e = getgrnam_r(value, &group, buf, CK_REPLY_MAX, &found);
		if (!found)
			return wrong(reading, value, "is not a group of this machine%s%s",
				     e ? ": " : "", e ? strerror(e) : "");
		gid = found->gr_gid;
	}
	where->gid = gid;
	return store_text(reading, &where->name, value);
}

static int read_uids(const struct reading *reading, const char *const *items, size_t n)
{
	struct ck_conf_uids *where = ck_conf_key_at(reading->conf, reading->key);
	CK_AUTO_FREE uid_t *uids = ck_alloc((n + !n) * sizeof(*uids));
	if (!uids)
		return ck_nomem(reading->err);
	for (size_t i = 0; i < n; i++) {
		uint64_t uid;
		const char *end = read_digits(items[i], &uid);
		if (!end || *end || uid >= (uid_t)-1)
			return wrong(reading, items[i], "is not a uid such as 0 or 1000");
		uids[i] = (uid_t)uid;
	}
	free(where->list);
	where->list = CK_TAKE(uids);
	where->n = n;
	return 0;
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

static int store_list(const struct reading *reading, char ***where, const char *const *items,
		      size_t n)
{
	char **list = ck_alloc((n + 1) * sizeof(*list));
	int r = list ? 0 : ck_nomem(reading->err);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!(list[i] = ck_strdup(items[i])))
			r = ck_nomem(reading->err);
	if (r < 0) {
		free_list(list);
		return r;
	}
	free_list(*where);
	*where = list;
	return 0;
}

static int read_patterns(const struct reading *reading, const char *const *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *star = strchr(items[i], '*');
		if (!*items[i] || (star && star[1]))
			return wrong(reading, items[i],
				     "is not an annotation's name, or its beginning with one '*' "
				     "at the end");
	}
	return store_list(reading, &reading->conf->ignore_annotations, items, n);
}

/* NN-name, or a name of NRI: letters, digits, '_', '.', '+' and '-' */
enum ck_nri_policy ck_conf_policy(const char *item, size_t *ret_name_len)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
	static const struct {
		const char *word;
		enum ck_nri_policy policy;
	} policies[] = {
		{ "ignore", CK_NRI_IGNORE },
		{ "error", CK_NRI_ERROR },
		{ "fail", CK_NRI_FAIL },
		{ "required", CK_NRI_REQUIRED },
	};
	size_t len = strspn(item, allowed);
	if (!len || len > CK_NRI_NAME_MAX || item[len] != '=')
		return 0;
	for (size_t i = 0; i < CK_COUNT(policies); i++) {
		if (strcmp(policies[i].word, item + len + 1) == 0) {
			*ret_name_len = len;
			return policies[i].policy;
		}
	}
	return 0;
}

static int read_policies(const struct reading *reading, const char *const *items, size_t n)
{
	size_t len, other;
	for (size_t i = 0; i < n; i++) {
		if (!ck_conf_policy(items[i], &len))
			return wrong(reading, items[i],
				     "is not a plugin and its policy: NAME=ignore, =error, =fail "
				     "or =required");
		for (size_t j = 0; j < i; j++)
			if (ck_conf_policy(items[j], &other) && other == len &&
			    memcmp(items[i], items[j], len) == 0)
				return wrong(reading, items[i],
					     "is the second policy of this plugin");
	}
	return store_list(reading, &reading->conf->nri.policies, items, n);
}

static int read_word(const struct reading *reading, const char *value)
{
	char all[128] = "";
	for (const struct ck_conf_word *word = reading->key->words; word->word; word++) {
		if (strcmp(word->word, value) == 0) {
			memcpy(ck_conf_key_at(reading->conf, reading->key), &word->value,
			       sizeof(word->value));
			return 0;
		}
		size_t len = strlen(all);
		snprintf(all + len, sizeof(all) - len, "%s%s",
			 !len           ? ""
			 : word[1].word ? ", "
					: " or ",
			 word->word);
	}
	return wrong(reading, value, "is not %s", all);
}

static int read_bool(const struct reading *reading, const char *value)
{
	bool yes = strcmp(value, "true") == 0;
	if (!yes && strcmp(value, "false") != 0)
		return wrong(reading, value, "is neither true nor false");
	memcpy(ck_conf_key_at(reading->conf, reading->key), &yes, sizeof(yes));
	return 0;
}

static int read_value(const struct reading *reading, const char *const *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = check_text(reading, items[i]);
		if (r < 0)
			return r;
	}
	switch (reading->key->type) {
	case CK_CONF_RUNTIME:
		return read_runtime(reading, *items);
	case CK_CONF_NO_SOCKET:
		if (!**items)
			return store_text(reading, ck_conf_key_at(reading->conf, reading->key), "");
		return read_socket(reading, *items);
	case CK_CONF_SOCKET:
		return read_socket(reading, *items);
	case CK_CONF_NO_DIRECTORY:
		if (!**items)
			return store_text(reading, ck_conf_key_at(reading->conf, reading->key), "");
		return read_path(reading, *items, CK_CONF_VALUE_MAX);
	case CK_CONF_DIRECTORY:
		return read_path(reading, *items, CK_CONF_VALUE_MAX);
	case CK_CONF_SPAN:
		return read_span(reading, *items);
	case CK_CONF_SIZE:
		return read_size(reading, *items);
	case CK_CONF_COUNT:
		return read_count(reading, *items);
	case CK_CONF_MODE:
		return read_mode(reading, *items);
	case CK_CONF_GROUP:
		return read_group(reading, *items);
	case CK_CONF_UIDS:
		return read_uids(reading, items, n);
	case CK_CONF_PATTERNS:
		return read_patterns(reading, items, n);
	case CK_CONF_POLICIES:
		return read_policies(reading, items, n);
	case CK_CONF_WORD:
		return read_word(reading, *items);
	case CK_CONF_BOOL:
		return read_bool(reading, *items);
	}
	return ck_fail(reading->err, CK_EINVAL, "%s: %s: no type", reading->origin,
		       reading->key->name);
}

int ck_conf_key_set(struct ck_conf *conf, const struct ck_conf_key *key, const char *const *items,
		    size_t n, const char *origin, struct ck_error *err)
{
	const struct reading reading = { conf, key, origin, err };
	if (CK_NEVER(n != 1 && !ck_conf_key_is_list(key)))
		return ck_fail(err, CK_EINVAL, "%s: %s: expected one value", origin, key->name);
	if (n > CK_CONF_ITEMS_MAX)
		return ck_fail(err, CK_EINVAL, "%s: %s: %zu items; at most %u are allowed", origin,
			       key->name, n, CK_CONF_ITEMS_MAX);
	CK_AUTO_FREE char *copy = ck_strdup(origin);
	if (!copy)
		return ck_nomem(err);
	int r = read_value(&reading, items, n);
	if (r < 0)
		return r;
	char **where = &conf->origins[key - ck_conf_keys];
	free(*where);
	*where = CK_TAKE(copy);
	return 0;
}

/* ---- defaults -------------------------------------------------------------------------------- */

static size_t count(const char *const *list)
{
	size_t n = 0;
	while (list[n])
		n++;
	return n;
}

static int default_text(const struct reading *reading)
{
	const struct ck_conf_key *key = reading->key;
	if (key->type == CK_CONF_PATTERNS)
		return read_patterns(reading, ck_ignore_annotations_default,
				     count(ck_ignore_annotations_default));
	if (key->type == CK_CONF_POLICIES)
		return read_policies(reading, NULL, 0);
	if (key->type == CK_CONF_UIDS) {
		char own[CK_DURATION_TEXT];
		snprintf(own, sizeof(own), "%u", (unsigned)geteuid());
		const char *const uids[] = { "0", own };
		return read_uids(reading, uids, !key->number ? 0 : geteuid() ? 2 : 1);
	}
	return read_value(reading, &key->text, 1);
}

int ck_conf_key_default(struct ck_conf *conf, const struct ck_conf_key *key, struct ck_error *err)
{
	const struct reading reading = { conf, key, "default", err };
	void *where = ck_conf_key_at(conf, key);
	const int word = (int)key->number;
	switch (key->type) {
	case CK_CONF_SPAN:
		*(uint64_t *)where = key->number;
		return 0;
	case CK_CONF_SIZE:
		*(size_t *)where = (size_t)key->number;
		return 0;
	case CK_CONF_COUNT:
		*(unsigned *)where = (unsigned)key->number;
		return 0;
	case CK_CONF_MODE:
		*(mode_t *)where = (mode_t)key->number;
		return 0;
	case CK_CONF_WORD:
		memcpy(where, &word, sizeof(word));
		return 0;
	case CK_CONF_BOOL:
		*(bool *)where = key->number;
		return 0;
	default:
		return default_text(&reading);
	}
}
