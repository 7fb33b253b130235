/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_CONF_CONF_H
#define CK_DAEMON_CONF_CONF_H
/*
 * What crikeepd was told: defaults, below crikeep.yaml, below the command line. crikeep.yaml(5) is
 * the reference; each key is one line of the table in conf.c. A wrong key or value names file, line
 * and key; nothing is guessed.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/crikeep-nri.h"

#define CK_CONF_PATH "/etc/crikeep/crikeep.yaml"
#define CK_CONF_KEYS 36u

struct ck_conf_nri { /* plugins: as in struct ck_nri_options, but for the first three paths */
	bool enabled;
	char *socket;     /* plugins dial it; "": none may */
	char *plugin_dir; /* plugins that are launched; "": none */
	char *config_dir; /* their drop-in files */
	uint64_t registration_timeout, request_timeout;
	uint64_t late_max; /* 0: an overdue plugin is disconnected at once */
	enum ck_nri_policy policy;
	char **policies; /* "NAME=POLICY", NULL-terminated: ck_conf_policy() */
	enum ck_nri_adjust adjust;
	uint64_t evict_grace; /* of a container a plugin wants stopped */
};

/* zeroed, then ck_conf_init(); ck_conf_fini(). Strings are its own; paths without "unix://" */
struct ck_conf {
	char *file; /* where it was read, or would be; NULL: none was asked for */
	/* sockets */
	char *runtime;    /* path of the runtime's socket; NULL if it is the simulator */
	char *simulator;  /* its parameters, which only crikeep-sim knows; NULL: a real runtime */
	char *listen;     /* the kubelet's */
	char *unfiltered; /* for node agents; "" : none */
	char *metrics;    /* "" : none */
	mode_t socket_mode;
	char *socket_group; /* as it was written; "" : as it is */
	gid_t socket_gid;   /* of that group; (gid_t)-1: as it is */
	uid_t *allow_uids;  /* who may connect; default: 0 and the daemon's own */
	size_t allow_uids_n;
	/* the cache: as in struct ck_options */
	char *state_dir;
	uint64_t ttl, create_deadline, lost_grace, supersede_wait, destroy_timeout;
	enum ck_mode mode;
	enum ck_hand_back hand_back;
	enum ck_annotation_change on_annotation_change;
	char **ignore_annotations; /* NULL-terminated */
	bool compare_sandbox_config;
	struct ck_conf_nri nri;
	/* the daemon */
	uint64_t start_timeout; /* for the runtime to answer at start */
	uint64_t stop_wait;     /* after SIGTERM creations in flight are waited for */
	size_t list_max;        /* longest message that is taken apart, creates excepted */
	size_t client_memory;   /* held for one client */
	bool confine;           /* drop capabilities, seccomp, Landlock */
	enum ck_log_level log_level;
	enum ck_log_target log_target;
	/* where all this comes from */
	bool file_must_exist; /* --config */
	bool file_read;
	bool confined;               /* this process can no longer look up names of groups */
	char *origins[CK_CONF_KEYS]; /* of each key: "FILE:12", "--ttl"; NULL: the default */
	/* the command line's, in order: ck_conf_again() needs them */
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
/* ck_conf_check - what only the whole tells: two sockets at one path, no room for one list ...
 * @warn (may be NULL) is called for what is odd. 0, or -CK_EINVAL: text as from ck_conf_file() */
typedef void ck_conf_warn_cb(const char *text, void *userdata);
int ck_conf_check(const struct ck_conf *conf, ck_conf_warn_cb *warn, void *userdata,
		  struct ck_error *err);
/* ck_conf_again - SIGHUP: @fresh, zeroed, is made as @conf was: defaults, the file as it is now,
 * the same command line, checks. ck_conf_fini(@fresh) in any case */
int ck_conf_again(const struct ck_conf *conf, struct ck_conf *fresh, ck_conf_warn_cb *warn,
		  void *userdata, struct ck_error *err);
/* ck_conf_reload - takes over from @fresh what may change while it runs; @fixed is called for each
 * key that differs and may not */
void ck_conf_reload(struct ck_conf *conf, struct ck_conf *fresh,
		    void (*fixed)(const char *key, void *userdata), void *userdata);
/* ck_conf_policy - an item of nri.policies: what it says, and how long its name is; 0: it is
 * none */
enum ck_nri_policy ck_conf_policy(const char *item, size_t *ret_name_len);
/* ck_conf_print - the whole as crikeep.yaml, defaults included; to be freed; NULL: out of memory */
char *ck_conf_print(const struct ck_conf *conf);

struct ck_args {    /* what main() does beside */
	bool check; /* --check-config, which has been done */
	bool print; /* --print-config, the same */
};
/* says what is wrong in the parameters of the simulator: 0, -CK_EINVAL, -CK_EIO, -CK_ENOMEM */
typedef int ck_conf_simulator_cb(const char *parameters, struct ck_error *err);
/* ck_conf_args - the command line: reads the file, then what stands above it, checks the whole, and
 * does what --check-config and --print-config ask for. 0, or -CK_EINVAL, -CK_ENOMEM after one line
 * on standard error. --help, --version, and with status 2 what is no option of ours, end the
 * process. @conf: after ck_conf_init() */
int ck_conf_args(struct ck_conf *conf, int argc, char **argv, ck_conf_simulator_cb *check_simulator,
		 struct ck_args *ret_args);
#endif
