/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_STATUS_H
#define CK_CLI_STATUS_H
/*
 * `crikeep status`: what is known of the owner, the runtime and the state directory at one moment,
 * and what is wrong. Facts come from the state directory, from /proc, from crikeepd's metrics
 * socket, and from one call Version through crikeepd to the runtime. Each of them may be missing,
 * and none is waited for longer than CK_METRICS_WAIT.
 */
#include "src/cli/select-entries.h"

enum ck_owner_state {
	CK_OWNER_STOPPED, /* nobody owns the state directory */
	CK_OWNER_RUNNING,
	CK_OWNER_FROZEN,  /* by a signal or a debugger */
	CK_OWNER_SILENT,  /* somebody listens at its metrics socket, and tells no metrics */
};

enum ck_runtime_state {
	CK_RUNTIME_UNKNOWN,      /* it could not be asked; why says so */
	CK_RUNTIME_ANSWERS,
	CK_RUNTIME_SILENT,       /* no answer to Version in time */
	CK_RUNTIME_FAILS,        /* why: its error */
	CK_RUNTIME_DISCONNECTED, /* crikeepd says so; why: its reason, or "" */
	CK_RUNTIME_UNREACHABLE,  /* crikeepd's own socket; why: the reason */
	CK_RUNTIME_UNTOLD,       /* connected; it has not told what exists, so nobody is served */
};

struct ck_health {
	const char *metrics_path; /* given */
	struct ck_look look;      /* its reader is NULL if the database cannot be read */
	int read;                 /* 0, or the error of reading it */
	struct ck_error read_err;

	enum ck_owner_state owner;
	long pid;                 /* of the owner, or of the last one; 0: unknown */
	bool seen;                /* /proc has it */
	struct ck_process process;
	int64_t written;          /* when the database was last written, seconds; 0: unknown */
	bool degraded;

	bool metrics;             /* the owner told them; the rest of this block is theirs */
	long metrics_pid;         /* not the owner's: metrics is false; 0: nobody answered */
	char metrics_why[CK_ERROR_TEXT]; /* of CK_OWNER_SILENT */
	char version[32];
	bool up;          /* connected to the runtime */
	bool serving;     /* clients, because the runtime has told what exists */
	uint64_t refused; /* connections of users who are not allowed */
	/* it only counts: then the database is of earlier, and nothing is said of it */
	bool shadow;
	uint64_t cut[3], saved[3]; /* by kind: crikeepd_shadow_... */
	uint64_t connects, failures, oldest_call; /* ns */
	long wal_pid;

	enum ck_runtime_state runtime;
	char *endpoint;           /* as it was asked for */
	char *name, *runtime_version, *api; /* NULL: unknown */
	uint64_t answer_ns;
	char why[CK_ERROR_TEXT];

	int64_t database, wal, space; /* bytes; -1: unknown */
	int64_t key;                  /* its length; -1: there is none */
	struct ck_nri_status *plugins; /* of the owner; NULL: NRI is off or it cannot be read */
};

/* ck_health_take - 0, or -CK_EIO (no permission to look; @health->read_err says why). Call
 * ck_health_fini() in any case */
int ck_health_take(struct ck_health *health);
void ck_health_fini(struct ck_health *health);

struct ck_problem {
	const char *what;  /* a word for programs; crikeep(1) lists them */
	uint64_t entry;    /* 0: of none */
	char *text, *hint; /* hint: what to do next; never NULL */
};
struct ck_problems {
	struct ck_problem *all; /* the worst first */
	size_t n;
};
void ck_problems_find(const struct ck_health *health, struct ck_problems *ret);
void ck_problems_fini(struct ck_problems *problems);
/* ck_health_plugins - how many are in @state; NULL: how many are connected */
size_t ck_health_plugins(const struct ck_health *health, const char *state);
#endif
