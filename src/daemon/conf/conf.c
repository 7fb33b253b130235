/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as a whole: defaults, single keys, rules between keys, and what SIGHUP
 * changes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/daemon/conf/conf-int.h"

/* a kubelet's longest deadline for a sandbox, and its pause before the next try */
#define KUBELET_WAIT (255 * CK_NS_PER_S)

int ck_conf_init(struct ck_conf *conf, struct ck_error *err)
{
	for (size_t i = 0; i < CK_CONF_KEYS; i++) {
		int r = ck_conf_key_default(conf, &ck_conf_keys[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

void ck_conf_fini(struct ck_conf *conf)
{
	for (size_t i = 0; i < CK_CONF_KEYS; i++) {
		ck_conf_key_free(conf, &ck_conf_keys[i]);
		free(conf->origins[i]);
	}
	for (size_t i = 0; i < conf->settings_n; i++) {
		free(conf->settings[i].key);
		free(conf->settings[i].value);
		free(conf->settings[i].origin);
	}
	free(conf->settings);
	free(conf->file);
	*conf = (struct ck_conf){ 0 };
}

/* ---- one key, as on the command line --------------------------------------------------------- */

/* split "a,b" in @copy, which is changed, into at most CK_CONF_ITEMS_MAX + 1 items */
static size_t split(char *copy, const char **items)
{
	size_t n = 0;
	while (*copy && n <= CK_CONF_ITEMS_MAX) {
		items[n++] = copy;
		copy += strcspn(copy, ",");
		if (*copy)
			*copy++ = '\0';
	}
	return n;
}

int ck_conf_set(struct ck_conf *conf, const char *key_name, const char *value, const char *origin,
		struct ck_error *err)
{
	const struct ck_conf_key *key = ck_conf_key_find(key_name);
	if (!key)
		return ck_conf_key_unknown(key_name, origin, err);
	if (!ck_conf_key_is_list(key))
		return ck_conf_key_set(conf, key, &value, 1, origin, err);
	CK_AUTO_FREE char *copy = ck_strdup(value);
	CK_AUTO_FREE const char **items = ck_alloc((CK_CONF_ITEMS_MAX + 1) * sizeof(*items));
	if (!copy || !items)
		return ck_nomem(err);
	return ck_conf_key_set(conf, key, items, split(copy, items), origin, err);
}

int ck_conf_remember(struct ck_conf *conf, const char *key, const char *value, const char *origin,
		     struct ck_error *err)
{
	struct ck_conf_setting *grown =
		ck_realloc(conf->settings, (conf->settings_n + 1) * sizeof(*grown));
	if (!grown)
		return ck_nomem(err);
	conf->settings = grown;
	struct ck_conf_setting *setting = &grown[conf->settings_n++];
	*setting = (struct ck_conf_setting){ ck_strdup(key), ck_strdup(value), ck_strdup(origin) };
	return setting->key && setting->value && setting->origin ? 0 : ck_nomem(err);
}

int ck_conf_layers(struct ck_conf *conf, struct ck_error *err)
{
	int r = 0;
	if (conf->file) {
		struct ck_error why = { 0 };
		r = ck_conf_file(conf, conf->file, NULL, 0, &why);
		conf->file_read = r == 0;
		if (r < 0 && why.sys == ENOENT && !conf->file_must_exist)
			r = 0;
		else if (r < 0 && err)
			*err = why;
	}
	for (size_t i = 0; r == 0 && i < conf->settings_n; i++)
		r = ck_conf_set(conf, conf->settings[i].key, conf->settings[i].value,
				conf->settings[i].origin, err);
	return r;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct check {
	const struct ck_conf *conf;
	ck_conf_warn_cb *warn;
	void *userdata;
	struct ck_error *err;
};

const char *ck_conf_origin(const struct ck_conf *conf, const char *name)
{
	const struct ck_conf_key *key = ck_conf_key_find(name);
	const char *origin = key ? conf->origins[key - ck_conf_keys] : NULL;
	return origin ? origin : "default";
}

static const char *origin(const struct check *check, const char *name)
{
	return ck_conf_origin(check->conf, name);
}

static void warn(const struct check *check, const char *name, const char *what)
{
	char text[CK_ERROR_TEXT];
	if (!check->warn)
		return;
	snprintf(text, sizeof(text), "%s: %s: %s", origin(check, name), name, what);
	check->warn(text, check->userdata);
}

/* /var/run and /run are the same; paths that do not exist yet are compared by name */
static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;
	if (strcmp(a, b) == 0)
		return true;
	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static int check_paths(const struct check *check)
{
	const struct ck_conf *conf = check->conf;
	const struct {
		const char *name, *path;
	} all[] = {
		{ "runtime", conf->runtime },
		{ "listen", conf->listen },
		{ "unfiltered", conf->unfiltered },
		{ "metrics", conf->metrics },
		{ "state_dir", conf->state_dir },
		{ "nri.socket", conf->nri.enabled ? conf->nri.socket : "" },
	};
	for (size_t i = 0; i < CK_COUNT(all); i++) {
		for (size_t j = i + 1; j < CK_COUNT(all); j++) {
			if (!all[i].path || !*all[i].path || !*all[j].path ||
			    !same_file(all[i].path, all[j].path))
				continue;
			const char *why =
				i ? "each needs its own path" : "crikeepd would call itself";
			return ck_fail(check->err, CK_EINVAL,
				       "%s: %s: the same as %s (%s), '%s': %s",
				       origin(check, all[j].name), all[j].name, all[i].name,
				       origin(check, all[i].name), all[i].path, why);
		}
	}
	return 0;
}

static int check_errors(const struct check *check)
{
	const struct ck_conf *conf = check->conf;
	int r = check_paths(check);
	if (r < 0)
		return r;
	if (conf->client_memory < conf->list_max) {
		bool memory_is_default =
			!conf->origins[ck_conf_key_find("limits.client_memory") - ck_conf_keys];
		const char *name =
			memory_is_default ? "limits.list_message" : "limits.client_memory";
		return ck_fail(check->err, CK_EINVAL,
			       "%s: %s: one message of limits.list_message must fit into "
			       "limits.client_memory",
			       origin(check, name), name);
	}
	if (conf->shadow && conf->nri.enabled)
		return ck_fail(check->err, CK_EINVAL,
			       "%s: shadow: not with nri.enabled (%s): no plugin would be told of "
			       "anything",
			       origin(check, "shadow"), origin(check, "nri.enabled"));
	static const char *const uids[] = { "cri_socket.allow_uids",
					    "unfiltered_socket.allow_uids" };
	for (size_t i = 0; i < CK_COUNT(uids); i++) {
		const struct ck_conf_uids *allowed =
			ck_conf_key_at(conf, ck_conf_key_find(uids[i]));
		if (!allowed->n)
			return ck_fail(check->err, CK_EINVAL, "%s: %s: no user may connect",
				       origin(check, uids[i]), uids[i]);
	}
	return 0;
}

bool ck_access_allows(const struct ck_access *access, uid_t uid)
{
	for (size_t i = 0; i < access->allow_uids.n; i++)
		if (access->allow_uids.list[i] == uid)
			return true;
	return !access->allow_uids.n;
}

int ck_conf_check(const struct ck_conf *conf, ck_conf_warn_cb *warn_fn, void *userdata,
		  struct ck_error *err)
{
	const struct check check = { conf, warn_fn, userdata, err };
	int r = check_errors(&check);
	if (r < 0)
		return r;
	if (conf->ttl < KUBELET_WAIT)
		warn(&check, "cache.ttl",
		     "a kubelet may take 4m15s to repeat a request; the result could be gone by "
		     "then");
	if (!ck_access_allows(&conf->cri_socket, 0))
		warn(&check, "cri_socket.allow_uids", "a kubelet cannot connect without uid 0");
	if (conf->cri_socket.mode & 2)
		warn(&check, "cri_socket.mode",
		     "every user may open the socket; only allow_uids keeps them out");
	if (conf->unfiltered_socket.mode & 2)
		warn(&check, "unfiltered_socket.mode",
		     "every user may open the socket; only allow_uids keeps them out");
	if (conf->nri.enabled && !*conf->nri.socket && !*conf->nri.plugin_dir)
		warn(&check, "nri.enabled",
		     "without nri.socket and nri.plugin_dir there can be no plugins");
	if (!conf->nri.enabled && conf->nri.policies[0])
		warn(&check, "nri.policies", "nri.enabled is false, so no plugin is required");
	if (conf->shadow && !*conf->metrics)
		warn(&check, "shadow", "nobody can read what is counted, because metrics is \"\"");
	if (!conf->confine)
		warn(&check, "confine", "the daemon keeps all its privileges");
	return 0;
}

/* ---- SIGHUP ---------------------------------------------------------------------------------- */

int ck_conf_again(const struct ck_conf *conf, struct ck_conf *fresh, ck_conf_warn_cb *warn_fn,
		  void *userdata, struct ck_error *err)
{
	int r = ck_conf_init(fresh, err);
	fresh->confined = true;
	fresh->file_must_exist = conf->file_must_exist;
	fresh->file = ck_strdup(conf->file);
	if (r == 0 && conf->file && !fresh->file)
		r = ck_nomem(err);
	for (size_t i = 0; r == 0 && i < conf->settings_n; i++) {
		const struct ck_conf_setting *setting = &conf->settings[i];
		r = ck_conf_remember(fresh, setting->key, setting->value, setting->origin, err);
	}
	r = r ? r : ck_conf_layers(fresh, err);
	return r ? r : ck_conf_check(fresh, warn_fn, userdata, err);
}

static bool same_value(const struct ck_conf *a, const struct ck_conf *b,
		       const struct ck_conf_key *key)
{
	struct ck_bytes of_a = { 0 }, of_b = { 0 };
	int r = ck_conf_key_print(a, key, &of_a);
	r = r ? r : ck_conf_key_print(b, key, &of_b);
	bool same = r == 0 && of_a.len == of_b.len && memcmp(of_a.p, of_b.p, of_a.len) == 0;
	ck_bytes_free(&of_a);
	ck_bytes_free(&of_b);
	return same;
}

void ck_conf_reload(struct ck_conf *conf, struct ck_conf *fresh,
		    void (*fixed)(const char *key, void *userdata), void *userdata)
{
	for (size_t i = 0; i < CK_CONF_KEYS; i++) {
		const struct ck_conf_key *key = &ck_conf_keys[i];
		if (key->reload)
			ck_conf_key_swap(conf, fresh, key);
		else if (!same_value(conf, fresh, key))
			fixed(key->name, userdata);
	}
}
