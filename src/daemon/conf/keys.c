/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of crikeep.yaml. This table is the only list of them. The reader of the file, the
 * command line, --print-config and --help use it, in its order.
 */
#include <stdint.h>
#include <string.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/edit-distance.h"
#include "src/daemon/conf/conf-int.h"

static const struct ck_conf_word modes[] = { { "normalized", CK_MODE_NORMALIZED },
					     { "identity", CK_MODE_IDENTITY },
					     { "strict", CK_MODE_STRICT },
					     { 0 } };
static const struct ck_conf_word hand_backs[] = { { "repeat", CK_REPEAT },
						  { "offer", CK_OFFER },
						  { 0 } };
static const struct ck_conf_word changes[] = { { "hand_back", CK_ANNOTATION_HAND_BACK },
					       { "evict", CK_ANNOTATION_EVICT },
					       { 0 } };
static const struct ck_conf_word levels[] = { { "error", CK_LOG_ERROR },
					      { "warning", CK_LOG_WARNING },
					      { "info", CK_LOG_INFO },
					      { "debug", CK_LOG_DEBUG },
					      { 0 } };
static const struct ck_conf_word targets[] = { { "auto", CK_LOG_TO_AUTO },
					       { "journal", CK_LOG_TO_JOURNAL },
					       { "stderr", CK_LOG_TO_STDERR },
					       { 0 } };
static const struct ck_conf_word formats[] = { { "text", CK_LOG_TEXT },
					       { "json", CK_LOG_JSON_LINES },
					       { 0 } };
static const struct ck_conf_word policies[] = {
	{ "error", CK_NRI_ERROR }, { "ignore", CK_NRI_IGNORE }, { "fail", CK_NRI_FAIL }, { 0 }
};
static const struct ck_conf_word adjusts[] = { { "on-commit", CK_NRI_ON_COMMIT },
					       { "before-create", CK_NRI_BEFORE_CREATE },
					       { 0 } };

/* the least duration of the cache: for the library, 0 means its default */
#define SHORTEST (100 * CK_NS_PER_MS)

#define AT(member)                .offset = offsetof(struct ck_conf, member)
#define TEXT(t, member, standard) .type = CK_CONF_##t, AT(member), .text = (standard)
#define SPAN(member, standard, min) \
	.type = CK_CONF_SPAN, AT(member), .number = (standard), .least = (min), \
	.most = CK_DURATION_MAX
#define SIZE(member, standard, min, max) \
	.type = CK_CONF_SIZE, AT(member), .number = (standard), .least = (min), .most = (max)
#define NUMBER(member, standard, min, max) \
	.type = CK_CONF_COUNT, AT(member), .number = (standard), .least = (min), .most = (max)
#define WORD(member, list, standard) \
	.type = CK_CONF_WORD, AT(member), .words = (list), .number = (standard)
#define BOOL(member, standard) .type = CK_CONF_BOOL, AT(member), .number = (standard)
#define FLAG(name, argument)   .flag = (name), .arg = (argument)
/* who may use a socket. @own: of the default uids, root and the daemon's */
#define ACCESS(section, member, standard, own, who) \
	{ section ".mode", .type = CK_CONF_MODE, AT(member.mode), .number = (standard), \
	  .help = "mode of the socket" }, \
	{ section ".group", TEXT(GROUP, member.group, ""), \
	  .help = "group of the socket, a name or number; \"\": the daemon's own" }, \
	{ section ".allow_uids", TEXT(UIDS, member.allow_uids, NULL), .number = (own), \
	  .reload = true, .help = who }

const struct ck_conf_key ck_conf_keys[] = {
	/* the keys of a section must follow each other */
	{ "runtime", TEXT(RUNTIME, runtime, "unix:///run/containerd/containerd.sock"),
	  FLAG("runtime", "ENDPOINT"),
	  .help = "the runtime: unix:///path of its socket, or sim:PARAMETERS" },
	{ "listen", TEXT(SOCKET, listen, "/run/crikeep/cri.sock"), FLAG("listen", "PATH"),
	  .help = "the kubelet's socket" },
	{ "unfiltered", TEXT(NO_SOCKET, unfiltered, "/run/crikeep/unfiltered.sock"),
	  FLAG("unfiltered", "PATH"),
	  .help = "read-only socket that hides nothing, for node agents; \"\" for none" },
	{ "metrics", TEXT(NO_SOCKET, metrics, "/run/crikeep/metrics.sock"), FLAG("metrics", "PATH"),
	  .help = "socket that serves metrics; \"\" for none" },
	{ "state_dir", TEXT(DIRECTORY, state_dir, "/run/crikeep"), FLAG("state-dir", "DIR"),
	  .help = "directory of the database" },
	{ "start_timeout", SPAN(start_timeout, CK_START_TIMEOUT, 0), .reload = true,
	  .help = "how long the runtime may take to answer at the start" },
	{ "shadow", BOOL(shadow, 0), FLAG("shadow", NULL),
	  .help = "only count the creations that would be saved: change, keep and hide nothing" },
	{ "confine", BOOL(confine, 1),
	  .help = "give up all privileges: capabilities, system calls, paths" },

	ACCESS("cri_socket", cri_socket, 0600, true,
	       "uids that may connect; default: root and the daemon's own"),
	ACCESS("unfiltered_socket", unfiltered_socket, 0660, true,
	       "uids that may connect; default: root and the daemon's own"),
	ACCESS("metrics_socket", metrics_socket, 0660, false,
	       "uids that may connect; default: whoever can open the socket"),

	{ "cache.ttl", SPAN(ttl, CK_TTL, SHORTEST), FLAG("ttl", "SPAN"),
	  .help = "how long a result is kept after its last request" },
	{ "cache.create_deadline", SPAN(create_deadline, CK_CREATE_DEADLINE, SHORTEST),
	  FLAG("create-deadline", "SPAN"), .help = "how long the runtime may take for a creation" },
	{ "cache.start_deadline", SPAN(start_deadline, 0, 0), .reload = true,
	  .help = "how long the runtime may take for a start; 0: as for a creation" },
	{ "cache.lost_grace", SPAN(lost_grace, CK_LOST_GRACE, SHORTEST),
	  .help = "how long a lost creation may be absent before it has failed" },
	{ "cache.supersede_wait", SPAN(supersede_wait, CK_SUPERSEDE_WAIT, SHORTEST),
	  .help = "how long a new attempt waits for the old one to stop" },
	{ "cache.destroy_timeout", SPAN(destroy_timeout, CK_DESTROY_TIMEOUT, SHORTEST),
	  .help = "how long a removal may take before it has failed" },
	{ "cache.mode", WORD(mode, modes, CK_MODE_NORMALIZED),
	  .help = "which requests are the same: normalized, identity, strict" },
	{ "cache.hand_back", WORD(hand_back, hand_backs, CK_OFFER), FLAG("hand-back", "HOW"),
	  .help = "how to hand over late sandboxes: repeat (to a repeated request), offer (in "
		  "lists)" },
	{ "cache.on_annotation_change",
	  WORD(on_annotation_change, changes, CK_ANNOTATION_HAND_BACK),
	  .help = "if only labels and annotations differ: hand_back, evict" },
	{ "cache.ignore_annotations", TEXT(PATTERNS, ignore_annotations, NULL),
	  .help = "annotations to ignore; default: what CNI plugins write" },
	{ "cache.compare_sandbox_config", BOOL(compare_sandbox_config, 0),
	  .help = "for containers, also compare what only RunPodSandbox uses" },

	{ "nri.enabled", BOOL(nri.enabled, 0), FLAG("nri", NULL), .help = "serve NRI plugins" },
	{ "nri.socket", TEXT(NO_SOCKET, nri.socket, "/var/run/nri/nri.sock"),
	  FLAG("nri-socket", "PATH"), .help = "socket that plugins dial; \"\" for none" },
	{ "nri.plugin_dir", TEXT(NO_DIRECTORY, nri.plugin_dir, "/opt/nri/plugins"),
	  FLAG("nri-plugin-dir", "DIR"),
	  .help = "directory of plugins to launch, NN-name; \"\" for none" },
	{ "nri.config_dir", TEXT(NO_DIRECTORY, nri.config_dir, "/etc/nri/conf.d"),
	  FLAG("nri-config-dir", "DIR"),
	  .help = "directory of their NN-name.conf or name.conf; \"\" for none" },
	{ "nri.registration_timeout",
	  SPAN(nri.registration_timeout, CK_NRI_REGISTRATION_TIMEOUT, SHORTEST),
	  .help = "how long a plugin may take to register" },
	{ "nri.request_timeout", SPAN(nri.request_timeout, CK_NRI_REQUEST_TIMEOUT, SHORTEST),
	  .help = "how long a plugin may take for one event before it is overdue" },
	{ "nri.policy", WORD(nri.policy, policies, CK_NRI_ERROR), FLAG("nri-policy", "POLICY"),
	  .help = "what the failure of a plugin does: ignore, error, fail" },
	{ "nri.policies", TEXT(POLICIES, nri.policies, NULL),
	  .help = "policies of single plugins, NAME=POLICY; also required" },
	{ "nri.adjust", WORD(nri.adjust, adjusts, CK_NRI_ON_COMMIT), FLAG("nri-adjust", "WHEN"),
	  .help = "when plugins get CreateContainer: on-commit, before-create" },
	{ "nri.evict_grace", SPAN(nri.evict_grace, CK_NRI_EVICT_GRACE, 0),
	  .help = "time for a container's processes to end if a plugin evicts it" },

	{ "limits.list_message", SIZE(list_max, CK_LIST_MAX, 1u << 20, 1u << 30), .reload = true,
	  .help = "longest answer that is filtered" },
	{ "limits.client_memory", SIZE(client_memory, CK_CLIENT_MEMORY, 1u << 20, 1u << 31),
	  .reload = true, .help = "memory for one client that does not read" },
	{ "limits.connections", NUMBER(connections, CK_CLIENTS_MAX, 16, CK_CLIENTS_MOST),
	  .reload = true, .help = "connections of all clients" },
	{ "limits.process_connections",
	  NUMBER(process_connections, CK_PROCESS_CLIENTS, 4, CK_CLIENTS_MOST), .reload = true,
	  .help = "connections of one process, or of one user who is not root" },
	{ "limits.process_calls",
	  NUMBER(process_calls, CK_PROCESS_CALLS, CK_PROCESS_CALLS_LEAST, CK_CALLS_MAX),
	  .reload = true, .help = "calls of one process that are under way" },

	{ "log.level", WORD(log_level, levels, CK_LOG_INFO), .reload = true,
	  FLAG("log-level", "LEVEL"), .help = "error, warning, info or debug" },
	{ "log.target", WORD(log_target, targets, CK_LOG_TO_AUTO),
	  .help = "auto, journal or stderr" },
	{ "log.format", WORD(log_format, formats, CK_LOG_TEXT), .reload = true,
	  .help = "text, or json: one object a line" },
};
_Static_assert(CK_COUNT(ck_conf_keys) == CK_CONF_KEYS, "CK_CONF_KEYS");
_Static_assert(sizeof(enum ck_log_level) == sizeof(int) && sizeof(enum ck_mode) == sizeof(int) &&
		       sizeof(enum ck_nri_policy) == sizeof(int) &&
		       sizeof(enum ck_nri_adjust) == sizeof(int),
	       "words are stored as int");

void *ck_conf_key_at(const struct ck_conf *conf, const struct ck_conf_key *key)
{
	return (char *)(uintptr_t)conf + key->offset;
}

const struct ck_conf_key *ck_conf_key_find(const char *name)
{
	for (size_t i = 0; i < CK_CONF_KEYS; i++) {
		if (strcmp(ck_conf_keys[i].name, name) == 0)
			return &ck_conf_keys[i];
	}
	return NULL;
}

/* the distance of @name from a key; 1 if only its section is wrong */
static size_t distance(const char *name, const char *leaf, const char *known)
{
	const char *dot = strchr(known, '.');
	return strcmp(leaf, dot ? dot + 1 : known) == 0 ? 1 : ck_edit_distance(name, known);
}

/* the same for the section of a key; @ret_section: the length of its name */
static size_t section_distance(const char *name, const char *known, size_t *ret_section)
{
	char section[CK_CONF_SHOWN] = "";
	*ret_section = strcspn(known, ".");
	if (!known[*ret_section] || *ret_section >= sizeof(section))
		return SIZE_MAX;
	memcpy(section, known, *ret_section);
	return ck_edit_distance(name, section);
}

int ck_conf_key_unknown(const char *name, const char *origin, struct ck_error *err)
{
	const char *best = NULL, *leaf = strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
	size_t least = CK_EDIT_DISTANCE_MAX + 1, best_len = 0;
	char shown[CK_CONF_SHOWN];
	if (!strcmp(name, "socket") || !strncmp(name, "socket.", 7))
		return ck_fail(err, CK_EINVAL,
			       "%s: %s: no such key; did you mean 'cri_socket', "
			       "'unfiltered_socket' or 'metrics_socket'?",
			       origin, ck_conf_shown(name, shown));
	for (size_t i = 0; i < CK_CONF_KEYS; i++) {
		const char *known = ck_conf_keys[i].name;
		size_t section, d = distance(name, leaf, known),
				of_section = section_distance(name, known, &section);
		if (d >= least && of_section >= least)
			continue;
		best = known;
		best_len = d <= of_section ? strlen(known) : section;
		least = d <= of_section ? d : of_section;
	}
	ck_conf_shown(name, shown);
	if (best &&
	    2 * least <= strlen(name)) /* with half of it different, it is no typing error */
		return ck_fail(err, CK_EINVAL, "%s: %s: no such key; did you mean '%.*s'?", origin,
			       shown, (int)best_len, best);
	return ck_fail(err, CK_EINVAL, "%s: %s: no such key; crikeep.yaml(5) lists them", origin,
		       shown);
}

bool ck_conf_key_is_list(const struct ck_conf_key *key)
{
	return key->type == CK_CONF_UIDS || key->type == CK_CONF_PATTERNS ||
	       key->type == CK_CONF_POLICIES;
}
