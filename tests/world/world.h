/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_WORLD_H
#define CK_TESTS_WORLD_H
/*
 * A node in one process and from one seed: crikeepd as it is, with its start-up, configuration,
 * sockets, HTTP/2, gRPC, filter, machine and SQLite; before it a kubelet, behind it a runtime.
 *
 *   kubelet.c   pods that come and go, a worker for each, a list every second, time-outs
 *        |      (over src/rpc, on a real socket)
 *   crikeepd    main() of src/daemon/main.c; crikeepd.c  ---  plugins.c  NRI plugins
 *        |
 *   runtime.c   the simulated runtime of src/sim, slow, failing, frozen or dead
 *
 *   kernel.c    the clock, random numbers, memory, and kill -9
 *   disk.c      full, slow, read-only, torn, and a power cut
 *   script.c    what happens when, and who has the next turn
 *   check.c     what must hold
 *
 * crikeepd waits for events by sd_event_run(), and the world takes its turns in there: kubelet and
 * runtime move until nobody has anything to do, then the clock jumps to the next timer of anybody.
 * So nothing waits, and nothing but the seed decides.
 *
 * A run has two phases. First everything goes wrong that the seed chooses, and nothing may be lost,
 * hidden or made twice. Then the faults end, and everything must come to its end.
 *
 * A seed replays exactly with the same source. CK_WORLD_SEED=n runs one, and with CK_WORLD_TRACE=1
 * prints each thing that happens, and crikeepd's log. CK_WORLDS=n runs so many from CK_WORLD_FIRST
 * on, in CK_WORLD_JOBS processes, until CK_WORLD_WRONG of them fail. A failing one is made smaller
 * in CK_WORLD_SHRINKS tries: CK_WORLD_FAULTS=kill,slow leaves out all other faults, CK_WORLD_PODS=n
 * and CK_WORLD_SECONDS=n are limits. test-faults puts old faults back in (faults.tsv);
 * tests/mutants/test-world is the same with a mutant of tests/mutants/machine.tsv:
 * CRIKEEP_BREAK=IN_USE_LISTED CK_WORLD_WRONG=1 tells which seed finds it.
 *
 * Not here: a service manager that keeps connections, several requests for the same key with
 * different content, plugins that refuse, a clock that begins anew with a boot.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/crikeep.h"
#include "src/rpc/connection.h"

#define S  CK_NS_PER_S
#define MS CK_NS_PER_MS
#define BOOTED (1000 * S) /* the clock at the beginning */

int crikeepd_main(int argc, char **argv);

/* ---- kernel.c -------------------------------------------------------------------------------- */

enum disk { /* disk.c */
	DISK_WELL,
	DISK_FULL,
	DISK_READ_ONLY,
	DISK_FAILING,
	DISK_TORN,
	DISK_BLIND,
	DISK_SLOW,
	DISKS
};

struct kernel {
	bool on;
	uint64_t now;    /* ns of CLOCK_BOOTTIME */
	uint64_t random; /* of getrandom() */
	enum disk disk;
	bool journal;       /* there may be a power cut */
	unsigned boots;     /* so many */
	unsigned scarce;    /* so many of 1000 allocations of crikeepd fail */
	bool in_daemon;     /* crikeepd's code is running */
	bool dead;          /* and it was killed meanwhile: nobody sees what it still does */
	unsigned die_after; /* so many writes and sends of crikeepd; 0: it lives */
	const char *state_dir, *copy_dir;
};
extern struct kernel kernel;

uint64_t random_next(uint64_t *state);
uint64_t kernel_next(void); /* when the next timer is due */
void kernel_advance(uint64_t to);
/* one turn, without waiting. @ready: it may have something to read. Nearly half of all turns have
 * nothing, and the kernel is not asked */
int kernel_event_run(sd_event *event, bool ready);
void kernel_die(void);  /* whoever is running now; its files are copied */
void kernel_bury(void); /* it has been freed: its files are again what they were when it died */

/* is this the write or send at which crikeepd dies? */
bool kernel_may_die(void);

/* ---- disk.c ---------------------------------------------------------------------------------- */

void disk_copy(const char *from_path, const char *to_path); /* all files of a directory */
void disk_loses_power(const char *dir); /* some of what was written lately is not there any more */
void disk_close(void);

/* ---- script.c -------------------------------------------------------------------------------- */

enum { PODS_MAX = 400, CONTAINERS_MAX = 2 };

struct world_options { /* what of a seed is left out, to find the smallest run that fails */
	unsigned faults;  /* as bits, by the place of the name */
	unsigned pods;    /* that are wanted at a time; 0: as it is */
	unsigned seconds; /* until the faults end, at most; 0: as the seed says */
	bool busy;        /* instead: 40 pods a minute on a slow node, no faults, so many seconds */
};
extern const char *const fault_names[]; /* NULL at the end */

struct world {
	uint64_t seed, random;
	struct world_options options; /* as they are in this run */
	char dir[128], cri[160], nri[160], runtime[160], state_dir[160], copy_dir[160], conf[160];
	bool trace;
	uint64_t hash; /* of all that was traced */
	struct ck_loop loop; /* of the script */
	bool calm;           /* the second phase */
	uint64_t calm_at, calm_cpu; /* when it began */
	bool straight;       /* the kubelet goes straight to the runtime */
	bool bypassed;       /* it did, once at least */
	bool excused;        /* crikeepd ended while it could not write (K32) */
	bool untold;         /* plugins may not have been told, for want of memory: that refuses */
	bool plugins;        /* there are some */
	bool asks_before;    /* they are asked before a container is created */
	uint64_t ttl;
	unsigned turns;      /* of crikeepd: it has read what was sent to it before */
	uint64_t killed_at;  /* the last time */
	/* how often what happened. lost: that a creation may have been */
	unsigned pods, kills, stops, deaths, restarts, freezes, disks, scarce, cuts, guests, lost;
	char wrong[512]; /* what did not hold; "": all did */
};
extern struct world w;

uint64_t below(uint64_t n); /* a random number */
static inline bool chance(unsigned percent)
{
	return below(100) < percent;
}
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
void world_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t world_cpu(void); /* ns that this process has used */
/* loop_turn - did anything happen? */
bool loop_turn(struct ck_loop *loop);
void world_run(uint64_t seed, const struct world_options *options);

/* ---- runtime.c ------------------------------------------------------------------------------- */

void runtime_open(bool slow);
void runtime_start(void);
void runtime_kill(void);
bool runtime_up(void);
bool runtime_turn(void);
int runtime_fd(void); /* readable: it has something to do. -1: it is not there */
void runtime_freeze(uint64_t until);
void runtime_changes(void);  /* the next calls take another time, or fail */
void runtime_boots(void);    /* it is killed, and everything has ended */
/* until then, lists lack what was made after its caller had left, for a while */
void runtime_lists_partly(uint64_t until);
void runtime_hangs_up(void); /* each connection ends */
void runtime_breaks_something(void); /* a container exits, a sandbox dies */
void runtime_close(void);
/* everything there is; false: one is still being made */
bool runtime_each(void (*one)(enum ck_kind kind, const char *id, const char *name, bool alive));

/* ---- kubelet.c ------------------------------------------------------------------------------- */

struct pod;
void kubelet_open(void);
void kubelet_start(void);
void kubelet_kill(void);
bool kubelet_up(void);
bool kubelet_turn(void);
int kubelet_fd(void);
void kubelet_freeze(uint64_t until);
void kubelet_add_pod(void);
void kubelet_delete_pod(void);
unsigned kubelet_pods(void); /* that are wanted */
bool kubelet_content(char *why, size_t size); /* every wanted pod runs */
/* is the object with this name part of a pod that is wanted? */
bool kubelet_wants(enum ck_kind kind, const char *id);
unsigned kubelet_ran(void); /* pods that ran at least once */
void kubelet_close(void);

/* ---- plugins.c ------------------------------------------------------------------------------- */

#define PLUGINS_N 3u
bool plugins_turn(void);
int plugins_fd(unsigned i);
void plugins_trouble(void); /* one of them */
void plugins_die(void);     /* they come back by themselves */
void plugins_daemon_ends(void);
/* a container is created without an id for plugins. @since: it was asked for */
void plugins_not_asked(const char *name, uint64_t since);
/* in the end. @exists: by the id that plugins know */
void plugins_check(bool (*exists)(enum ck_kind kind, const char *plugin_id));
void plugins_close(void);

/* ---- check.c --------------------------------------------------------------------------------- */

void check_close(void);
/* the runtime's own words: begin, refuse, create, fail, rollback, start, stop, exit, remove */
void check_runtime(const char *verb, enum ck_kind kind, const char *id, const char *name,
		   const char *sandbox_id);
/* the kubelet's: it asks for the object of this name, for the same content */
void check_asked(const char *slot, const char *name, const char *sandbox_id);
/* crikeepd did not read that before the kubelet had given it up */
void check_unread(const char *name, const char *sandbox_id);
void check_given(const char *id, const char *name);    /* and got this id */
/* the kubelet was frozen during the call, and gave it up: an answer may have come meanwhile */
void check_slept(const char *name);
void check_ends(const char *id, bool removes); /* it is about to stop or remove this one */
void check_runs(const char *id);     /* StartContainer succeeded, or it was listed running */
void check_left(const char *name);   /* the caller of its creation has gone */
void check_in_list(const char *id);  /* of the runtime */
/* may a runtime that lists partly not list it yet? */
bool check_may_lack(const char *id);
void check_daemon_ends(bool writes);     /* false: what it knew may not be written (K32) */
bool check_may_run_twice(const char *id); /* another attempt of this container may run as well */
void check_breaks(const char *id);   /* the world itself ends it */
/* plugins know what is being made with this name by an id of crikeepd's */
void check_alias(const char *name, const char *alias);
const char *check_plugin_id(const char *id); /* what plugins know it by */
/* it had begun by @at, and was gone by @until */
bool check_was_there(const char *plugin_id, uint64_t at, uint64_t until);
/* check_is_nobodys - nothing that the runtime has made is known to plugins by this id */
bool check_is_nobodys(const char *plugin_id);
/* crikeepd had no part in it, or forgot it: it may be found when plugins had their lists (K27).
 * @since: when the connection that was not told began */
bool check_may_be_untold(const char *id, uint64_t since);
/* was it in use before @since, or is it @known to another plugin? Then a plugin's list has it until
 * it is removed (H1) */
bool check_must_be_in_list(const char *id, uint64_t since, bool known);
/* a whole list of this kind that began at @began */
void check_listed(enum ck_kind kind, const struct ck_object *all, size_t n, uint64_t began);
void check_unknown(const char *id); /* NOT_FOUND, says the answer to StartContainer */
void check_end(void);
void check_database(const char *state_dir); /* when crikeepd has ended after that */
#endif
