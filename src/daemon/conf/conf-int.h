/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CONF_CONF_INT_H
#define CK_DAEMON_CONF_CONF_INT_H
/* What the parts of the configuration share: the table of keys (keys.c), the file (yaml.c), the
 * whole (conf.c). */
#include "src/base/bytes.h"
#include "src/daemon/conf/conf.h"

enum ck_conf_type {
	CK_CONF_RUNTIME, /* a socket, or sim:PARAMETERS */
	CK_CONF_SOCKET,
	CK_CONF_NO_SOCKET, /* or "" for none */
	CK_CONF_DIRECTORY,
	CK_CONF_NO_DIRECTORY, /* or "" for none */
	CK_CONF_SPAN,
	CK_CONF_SIZE,
	CK_CONF_COUNT,
	CK_CONF_MODE,
	CK_CONF_GROUP,
	CK_CONF_UIDS,
	CK_CONF_PATTERNS,
	CK_CONF_POLICIES,
	CK_CONF_WORD,
	CK_CONF_BOOL,
};

struct ck_conf_word {
	const char *word;
	int value;
};

struct ck_conf_key {
	const char *name; /* "cache.ttl" */
	enum ck_conf_type type;
	size_t offset; /* in struct ck_conf */
	/* default of spans, sizes, modes, words, booleans; limits of the first two */
	uint64_t number, least, most;
	const char *text; /* default of the others; NULL: see ck_conf_key_default() */
	const struct ck_conf_word *words; /* the last one has no word */
	bool reload;                      /* may change while the daemon runs */
	/* the option, "ttl", "SPAN"; NULL: only --set. An option without an argument means
	 * "true" */
	const char *flag, *arg;
	const char *help; /* one line */
};

struct ck_conf_setting { /* of the command line */
	char *key, *value, *origin;
};

extern const struct ck_conf_key ck_conf_keys[CK_CONF_KEYS];

/* ck_conf_remember - keep one setting of the command line for ck_conf_layers() */
int ck_conf_remember(struct ck_conf *conf, const char *key, const char *value, const char *origin,
		     struct ck_error *err);
/* ck_conf_layers - set the keys of the file, if there is one, then those of the command line */
int ck_conf_layers(struct ck_conf *conf, struct ck_error *err);

/* ck_conf_origin - the origin of a key's value: "FILE:12", "--ttl", "default" */
const char *ck_conf_origin(const struct ck_conf *conf, const char *name);
/* ck_conf_key_find - NULL: no such key */
const struct ck_conf_key *ck_conf_key_find(const char *name);
/* ck_conf_key_unknown - "no such key; did you mean 'cache.ttl'?" */
int ck_conf_key_unknown(const char *name, const char *origin, struct ck_error *err);
bool ck_conf_key_is_list(const struct ck_conf_key *key);
/* ck_conf_key_set - set the value to @items, which is one item unless the key is a list. @origin is
 * copied */
int ck_conf_key_set(struct ck_conf *conf, const struct ck_conf_key *key, const char *const *items,
		    size_t n, const char *origin, struct ck_error *err);
int ck_conf_key_default(struct ck_conf *conf, const struct ck_conf_key *key, struct ck_error *err);
/* ck_conf_key_print - the value as YAML, appended. 0, -CK_ENOMEM */
int ck_conf_key_print(const struct ck_conf *conf, const struct ck_conf_key *key,
		      struct ck_bytes *out);
/* ck_conf_key_free - free the value, but not the origin */
void ck_conf_key_free(struct ck_conf *conf, const struct ck_conf_key *key);
/* ck_conf_key_swap - exchange the values and origins of a key that may change at run time */
void ck_conf_key_swap(struct ck_conf *a, struct ck_conf *b, const struct ck_conf_key *key);
void *ck_conf_key_at(const struct ck_conf *conf, const struct ck_conf_key *key); /* the value */
/* ck_conf_shown - a value for an error text, cut and safe. Return: @buf (CK_CONF_SHOWN bytes) */
#define CK_CONF_SHOWN 64u
const char *ck_conf_shown(const char *value, char *buf);

#define CK_CONF_UNIX "unix://" /* a runtime begins with this or CK_CONF_SIM */
#define CK_CONF_SIM  "sim:"

extern const struct ck_conf_unit { /* of sizes, the largest first; the last one is a byte */
	const char *name;
	uint64_t bytes;
} ck_conf_units[];
const char *ck_conf_print_size(uint64_t bytes, char *buf); /* CK_DURATION_TEXT bytes */
#endif
