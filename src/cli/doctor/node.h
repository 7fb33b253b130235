/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_DOCTOR_NODE_H
#define CK_CLI_DOCTOR_NODE_H
/*
 * `crikeep doctor`: how a node is set up, and what is wrong with that. First everything is read
 * (ck_node_read), then a table of checks judges it. A check that lacks what it needs says so; it
 * never guesses.
 */
#include <stdio.h>

#include "src/cli/status.h"
#include "src/daemon/conf/conf.h"

struct ck_from { /* a value, and the option or file that it is from */
	char *value, *from; /* NULL: not set */
};

#define CK_CRI_STATS_GATE "PodAndContainerStatsFromCRI" /* a feature gate of the kubelet */

struct ck_kubelet {
	bool found; /* it runs, or files for it exist */
	long pid;   /* 0: it does not run, so these are the values of its next start */
	int64_t started; /* wall clock, seconds; 0: unknown */
	char *newer; /* a file that was read here and is newer than the process; NULL: none */
	struct ck_from endpoint, timeout;
	struct ck_from cri_stats; /* "true": the feature gate is on */
};
/* ck_kubelet_read - from its command line, or the files that make it, and from its configuration.
 * @look: for the clocks */
void ck_kubelet_read(struct ck_kubelet *kubelet, const char *root, const struct ck_look *look);
void ck_kubelet_fini(struct ck_kubelet *kubelet);

enum ck_unit { CK_UNIT_SERVICE, CK_UNIT_SOCKET, CK_UNIT_BYPASS, CK_UNITS };
struct ck_unit_state { /* as `systemctl show` says; "": unknown */
	char id[32], load[32], active[32], file[32], result[32];
};

struct ck_node {
	const char *root, *config; /* given; @root: "" or where its files are; @config: NULL: not */
	struct ck_conf conf;
	int conf_read;             /* 0, or its error; then conf has the defaults */
	struct ck_error conf_err;
	char *conf_warnings;       /* "": none */
	char *state_dir, *endpoint, *metrics; /* below @root, of @conf; used by @health */
	struct ck_health health;
	struct ck_problems problems;
	bool embedded;             /* the owner is another program: crikeepd is not used */
	struct ck_kubelet kubelet;
	struct ck_from crictl;     /* its endpoint */
	bool systemd;              /* it runs, and told what follows */
	struct ck_unit_state units[CK_UNITS];
};
/* ck_node_read - 0, or -CK_EIO: no permission to look (health.read_err). ck_node_fini() anyway */
int ck_node_read(struct ck_node *node);
void ck_node_fini(struct ck_node *node);

/* ck_node_file - the text of a file below @root, with a NUL after it; NULL: it cannot be read */
char *ck_node_file(const char *root, const char *path, size_t *ret_len);
/* ck_node_process - the first process of this name. Return: its id, or 0. @ret_words: its command
 * line, each word with a NUL after it */
long ck_node_process(const char *root, const char *name, char **ret_words, size_t *ret_len);
/* ck_node_yaml - a value at the top of a YAML text, or in the section @section of it unless that is
 * NULL; NULL: not there */
char *ck_node_yaml(const char *text, size_t len, const char *section, const char *key);
/* ck_node_set - replace a value; @value: taken; NULL or "": nothing is done */
void ck_node_set(struct ck_from *what, char *value, const char *from);

enum ck_verdict { CK_VERDICT_WRONG, CK_VERDICT_WARNING, CK_VERDICT_UNKNOWN, CK_VERDICT_OK };
struct ck_check {
	const char *name; /* for programs; crikeep(1) lists them */
	/* say in one sentence how it is; the remedy follows if it is wrong */
	enum ck_verdict (*look)(const struct ck_node *node, FILE *out);
	const char *remedy;
};
extern const struct ck_check ck_checks[];
extern const size_t ck_checks_n;
#endif
