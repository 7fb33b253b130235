/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CONF_CONF_H
#define CK_DAEMON_CONF_CONF_H
/*
 * The configuration of crikeepd: defaults, then crikeep.yaml, then the command line; the later
 * value counts. crikeep.yaml(5) is the reference. Each key is one entry of the table in keys.c. The
 * error of a wrong key or value names the file, the line and the key.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/crikeep-nri.h"

#define CK_CONF_PATH "/etc/crikeep/crikeep.yaml"
#define CK_CONF_KEYS 46u

struct ck_conf_nri { /* plugins: as in struct ck_nri_options, except for the paths */
	bool enabled;
	char *socket;     /* plugins connect to it; "": none can */
	char *plugin_dir; /* of plugins to launch; "": none */
	char *config_dir; /* their drop-in files */
	uint64_t registration_timeout, request_timeout;
	enum ck_nri_policy policy;
	char **policies; /* "NAME=POLICY", NULL-terminated: ck_conf_policy() */
	enum ck_nri_adjust adjust;
	uint64_t evict_grace; /* for a container that a plugin wants stopped */
};

struct ck_access { /* who may use a socket */
	mode_t mode;
	struct ck_conf_group {
		char *name; /* as it was written; "" : the group of the process */
		gid_t gid;  /* (gid_t)-1: of the process */
	} group;
	struct ck_conf_uids {
		uid_t *list;
		size_t n;   /* 0, for metrics: whoever can open the socket */
	} allow_uids;
};
/* ck_access_allows - may this user connect? */
bool ck_access_allows(const struct ck_access *access, uid_t uid);

/* zeroed, then ck_conf_init(); ck_conf_fini(). It owns its strings; paths lack "unix://" */
struct ck_conf {
	char *file; /* the path, even if there is no file; NULL: none is read */
	/* sockets */
	char *runtime;    /* path of the runtime's socket; NULL if it is the simulator */
	char *simulator;  /* its parameters, which only crikeep-sim knows; NULL: a real runtime */
	char *listen;     /* the kubelet's */
	char *unfiltered; /* for node agents; "" : none */
	char *metrics;    /* "" : none */
	struct ck_access cri_socket, unfiltered_socket, metrics_socket;
	/* the cache: as in struct ck_options */
	char *state_dir;
	uint64_t ttl, create_deadline, lost_grace, supersede_wait, destroy_timeout;
	uint64_t start_deadline; /* 0: create_deadline */
	enum ck_mode mode;
	enum ck_hand_back hand_back;
	enum ck_annotation_change on_annotation_change;
	char **ignore_annotations; /* NULL-terminated */
	bool compare_sandbox_config;
	struct ck_conf_nri nri;
	/* the daemon */
	uint64_t start_timeout; /* for the runtime to answer at the start */
	size_t list_max;        /* the longest message that is parsed, except creates */
	size_t client_memory;   /* the most that is held for one client */
	unsigned connections, process_connections; /* of clients: in all, of one process */
	unsigned process_calls;                    /* of one process, under way */
	bool shadow;            /* only count what would be saved */
	bool confine;           /* drop capabilities, seccomp, Landlock */
	enum ck_log_level log_level;
	enum ck_log_target log_target;
	enum ck_log_format log_format;
	/* the origin of all this */
	bool file_must_exist; /* --config */
	bool file_read;
	bool confined;               /* the process can no longer look up names of groups */
	char *origins[CK_CONF_KEYS]; /* of each key: "FILE:12", "--ttl"; NULL: the default */
	/* the settings of the command line, in order, for ck_conf_again() */
	struct ck_conf_setting *settings;
	size_t settings_n;
};

int ck_conf_init(struct ck_conf *conf, struct ck_error *err); /* the defaults */
void ck_conf_fini(struct ck_conf *conf);
/* ck_conf_file - 0, -CK_EINVAL ("/etc/crikeep/crikeep.yaml:12: cache.ttl: ..."), -CK_EIO,
 * -CK_ENOMEM. @text NULL: read @path */
int ck_conf_file(struct ck_conf *conf, const char *path, const char *text, size_t len,
		 struct ck_error *err);
/* ck_conf_set - one key, as on the command line: "cache.ttl", "10m". Errors begin with @origin
 * instead of file and line */
int ck_conf_set(struct ck_conf *conf, const char *key, const char *value, const char *origin,
		struct ck_error *err);
/* ck_conf_check - rules between keys: two sockets must not have one path, a list must fit into
 * client_memory ... @warn (may be NULL) is called for values that are allowed but odd. 0, or
 * -CK_EINVAL: text as from ck_conf_file() */
typedef void ck_conf_warn_cb(const char *text, void *userdata);
int ck_conf_check(const struct ck_conf *conf, ck_conf_warn_cb *warn, void *userdata,
		  struct ck_error *err);
/* ck_conf_again - for SIGHUP: fill @fresh, which is zeroed, from the defaults, the file as it is
 * now, and the same command line, and check it. ck_conf_fini(@fresh) in any case */
int ck_conf_again(const struct ck_conf *conf, struct ck_conf *fresh, ck_conf_warn_cb *warn,
		  void *userdata, struct ck_error *err);
/* ck_conf_reload - take the keys that may change at run time from @fresh. @fixed is called for each
 * other key that differs */
void ck_conf_reload(struct ck_conf *conf, struct ck_conf *fresh,
		    void (*fixed)(const char *key, void *userdata), void *userdata);
/* ck_conf_policy - the policy in an item of nri.policies, and the length of its name; 0: not a
 * valid item */
enum ck_nri_policy ck_conf_policy(const char *item, size_t *ret_name_len);
/* ck_conf_print - all keys as crikeep.yaml, also defaults. To be freed; NULL: out of memory */
char *ck_conf_print(const struct ck_conf *conf);

/* ck_conf_read - read the file and the command line of another process, which is running, or whose
 * only argument is its name. @root: "", or where the files of its machine are. Prints nothing, and
 * leaves ck_conf_check() to the caller. 0, or as ck_conf_file() */
int ck_conf_read(struct ck_conf *conf, const char *root, int argc, char **argv,
		 struct ck_error *err);

struct ck_args {
	bool check; /* --check-config was given, and is done */
	bool print; /* --print-config was given, and is done */
};
/* checks the parameters of the simulator: 0, -CK_EINVAL, -CK_EIO, -CK_ENOMEM */
typedef int ck_conf_simulator_cb(const char *parameters, struct ck_error *err);
/* ck_conf_args - read the file and the command line, check the result, and do what --check-config
 * and --print-config ask for. @conf: after ck_conf_init(). 0, or -CK_EINVAL, -CK_ENOMEM after one
 * line on standard error. --help and --version end the process, and so does an unknown option, with
 * status 2 */
int ck_conf_args(struct ck_conf *conf, int argc, char **argv, ck_conf_simulator_cb *check_simulator,
		 struct ck_args *ret_args);
#endif
