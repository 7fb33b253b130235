/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when, and who has the next turn. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "tests/world/world.h"

#define SAME_TIME 1000000u /* turns without the clock moving: somebody works without end */
/* everything must stay as it is for so long, when what is lost was looked for and all is expired */
#define SETTLED   (20 * S)
#define CREATE_DEADLINE (200 * S) /* longer than any creation takes */

#define BUSY_PACE (1500 * MS) /* 40 pods a minute */
#define BUSY_PODS 30

struct world w;

#define FAULT_TABLE(F) \
	F(KILL, "kill") \
	F(KILL_SOON, "kill-soon") /* at one of its next writes or sends */ \
	F(TERM, "stop") \
	F(BYPASS, "bypass") /* it is stopped, and the kubelet goes straight for a while */ \
	F(FREEZE, "freeze") \
	F(DISK, "disk") \
	F(MEMORY, "memory") \
	F(POWER_CUT, "power-cut") \
	F(PLUGINS, "plugins") \
	F(RUNTIME_KILL, "runtime-kill") \
	F(RUNTIME_FREEZE, "runtime-freeze") \
	F(RUNTIME_LISTS, "runtime-lists") /* for a while they lack what nobody waited for */ \
	F(HANG_UP, "hang-up") \
	F(KUBELET_KILL, "kubelet-kill") \
	F(KUBELET_FREEZE, "kubelet-freeze") \
	F(BREAK, "break") /* a container exits, a sandbox dies */ \
	F(CHURN, "churn") /* pods that are not wanted any more */ \
	F(SLOW, "slow") /* and failing calls of the runtime */

enum fault {
#define F(name, text) name,
	FAULT_TABLE(F)
#undef F
	FAULTS
};

const char *const fault_names[] = {
#define F(name, text) text,
	FAULT_TABLE(F)
#undef F
	NULL
};

static struct {
	unsigned faults, density; /* those of this seed, as bits; in per cent of what happens */
	uint64_t random; /* its own, so that a fault that is left out changes nothing else */
	uint64_t pace;                    /* between two events */
	struct ck_loop_timer *next, *runtime, *kubelet, *disk, *memory, *thaw, *calm,
		*look;
	bool kill, power, over, down; /* crikeepd dies now; by a power cut; the run ends; it is not
					 there */
	uint64_t frozen, disk_bad, start; /* disk_bad: until then not all is written */
	uint64_t content; /* since when everything is as it should be; 0: it is not */
	uint64_t limit, bypass; /* bypass: for how long, once it has ended */
	unsigned same;
} script;

enum { THE_SCRIPT, THE_KUBELET, THE_RUNTIME, THE_DAEMON, A_PLUGIN, WHO = A_PLUGIN + PLUGINS_N };
static struct pollfd who[WHO];
static bool touched[WHO];

uint64_t below(uint64_t n)
{
	return n ? random_next(&w.random) % n : 0;
}

void trace(const char *format, ...)
{
	char text[512];
	va_list args;
	int n = snprintf(text, sizeof(text), "%.6f ", (double)kernel.now / 1e9);
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	for (const char *c = text; *c; c++)
		w.hash = (w.hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	if (w.trace)
		printf("%s\n", text);
}

void world_wrong(const char *format, ...)
{
	char text[sizeof(w.wrong)];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	trace("WRONG: %s", text);
	if (!*w.wrong)
		memcpy(w.wrong, text, sizeof(text));
	script.over = true;
}

uint64_t world_cpu(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * S +
	       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* as look_who_can_move() found it */
static bool is_ready(sd_event *event)
{
	int fd = sd_event_get_fd(event);
	for (unsigned i = 0; i < WHO; i++)
		if (who[i].fd == fd)
			return who[i].revents;
	return true;
}

bool loop_turn(struct ck_loop *loop)
{
	ck_loop_flush(loop);
	bool moved = kernel_event_run(loop->event, is_ready(loop->event)) > 0;
	ck_loop_flush(loop);
	return moved;
}

/* Who has something to read can move. One call tells who, so that nobody else need be asked. */
static void look_who_can_move(void)
{
	who[THE_SCRIPT].fd = sd_event_get_fd(w.loop.event);
	who[THE_KUBELET].fd = kubelet_fd();
	who[THE_RUNTIME].fd = runtime_fd();
	for (unsigned i = 0; i < PLUGINS_N; i++)
		who[A_PLUGIN + i].fd = plugins_fd(i);
	for (unsigned i = 0; i < WHO; i++)
		who[i].events = POLLIN;
	poll(who, WHO, 0);
}

/* They are asked all the same: the script has done something to them, or they have just moved. */
static void touch(unsigned first, unsigned n)
{
	memset(touched + first, true, n);
}

static bool can_move(unsigned first, unsigned n)
{
	bool can = false;
	for (unsigned i = first; i < first + n; i++) {
		can = can || touched[i] || who[i].revents;
		touched[i] = false;
	}
	return can;
}

static bool moves(unsigned first, unsigned n, bool moved)
{
	if (moved)
		touch(first, n);
	return moved;
}

/* one turn of everybody but crikeepd, or else the clock moves. false: that is the end */
static bool others(void)
{
	bool moved = can_move(THE_SCRIPT, 1) && moves(THE_SCRIPT, WHO, loop_turn(&w.loop));
	moved = (can_move(THE_KUBELET, 1) && moves(THE_KUBELET, 1, kubelet_turn())) || moved;
	moved = (can_move(THE_RUNTIME, 1) && moves(THE_RUNTIME, 1, runtime_turn())) || moved;
	moved = (can_move(A_PLUGIN, PLUGINS_N) && moves(A_PLUGIN, PLUGINS_N, plugins_turn())) ||
		moved;
	touched[THE_SCRIPT] = touched[THE_SCRIPT] || moved; /* they may have set its timers */
	script.same = moved ? script.same + 1 : 0;
	if (script.same > SAME_TIME)
		world_wrong("somebody works without end");
	if (moved || script.over)
		return !script.over;
	uint64_t next = kernel_next();
	if (next == UINT64_MAX)
		world_wrong("nobody has anything to do");
	else
		kernel_advance(next);
	return !script.over;
}

static int daemon_ends(sd_event *event)
{
	if (!kernel.dead && (script.kill || script.power))
		kernel_die();
	if (script.power)
		disk_loses_power(w.copy_dir);
	script.power = false;
	sd_event_exit(event, 0);
	kernel.in_daemon = true;
	return kernel_event_run(event, true);
}

/* crikeepd waits for something */
int sd_event_run(sd_event *event, uint64_t timeout)
{
	(void)timeout;
	kernel.in_daemon = false;
	who[THE_DAEMON].fd = sd_event_get_fd(event);
	touch(THE_DAEMON, 1);
	for (;;) {
		if (kernel.dead || script.kill || script.over)
			return daemon_ends(event);
		look_who_can_move();
		if (kernel.now >= script.frozen && can_move(THE_DAEMON, 1)) {
			kernel.in_daemon = true;
			w.turns++;
			int r = kernel_event_run(event, is_ready(event));
			if (r != 0 || sd_event_get_state(event) == SD_EVENT_FINISHED)
				return r;
			kernel.in_daemon = false;
		}
		others();
	}
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void again(struct ck_loop_timer **timer, uint64_t after, ck_timer_cb *fn)
{
	ck_loop_timer(&w.loop, timer, kernel.now + after, fn, NULL);
}

static void runtime_returns(void *userdata)
{
	(void)userdata;
	if (!runtime_up())
		runtime_start();
}

static void kubelet_returns(void *userdata)
{
	(void)userdata;
	if (!kubelet_up())
		kubelet_start();
}

static void disk_returns(void *userdata)
{
	(void)userdata;
	if (kernel.disk)
		trace("disk is well");
	kernel.disk = DISK_WELL;
	script.disk_bad = kernel.now + 3 * S;
}

static void memory_returns(void *userdata)
{
	(void)userdata;
	kernel.scarce = 0;
}

static void nothing(void *userdata)
{
	(void)userdata;
}

static void disk_trouble(void)
{
	kernel.disk = 1 + (enum disk)below(DISKS - 1);
	trace("disk has trouble %d", (int)kernel.disk);
	w.disks++;
	/* a slow one is written to; but what an earlier trouble left may not be written yet */
	if (kernel.disk != DISK_SLOW || script.disk_bad > kernel.now)
		script.disk_bad = UINT64_MAX;
	again(&script.disk, below(60 * S), disk_returns);
}

static void memory_fails(void)
{
	kernel.scarce = 1 + (unsigned)below(20);
	trace("memory is scarce: %u", kernel.scarce);
	w.scarce++;
	w.untold = w.plugins;
	again(&script.memory, below(10 * S), memory_returns);
}

/* everybody is killed, and everything has ended */
static void power_is_cut(void)
{
	trace("power is cut");
	w.cuts++;
	kernel.boots++;
	runtime_boots();
	kubelet_kill();
	plugins_die();
	again(&script.runtime, below(10 * S), runtime_returns);
	again(&script.kubelet, below(10 * S), kubelet_returns);
	script.frozen = 0;
	if (script.down)
		disk_loses_power(w.state_dir);
	else
		script.kill = script.power = true;
}

static void daemon_trouble(enum fault fault)
{
	if (script.down)
		return;
	if (fault == KILL) {
		trace("crikeepd is killed");
		script.kill = true;
	} else if (fault == KILL_SOON) {
		kernel.die_after = 1 + (unsigned)below(300);
	} else if (fault == TERM || fault == BYPASS) {
		trace("crikeepd is stopped");
		w.stops++;
		script.bypass = fault == BYPASS ? S + below(120 * S) : 0;
		kill(getpid(), SIGTERM);
	} else {
		script.frozen = kernel.now + below(20 * S);
		trace("crikeepd is frozen for %.1f s", (double)(script.frozen - kernel.now) / 1e9);
		w.freezes++;
		again(&script.thaw, script.frozen - kernel.now, nothing);
	}
}

static void trouble(enum fault fault)
{
	uint64_t span = below(20 * S);
	if (fault <= FREEZE) {
		daemon_trouble(fault);
	} else if (fault == DISK) {
		disk_trouble();
	} else if (fault == MEMORY) {
		memory_fails();
	} else if (fault == POWER_CUT && chance(30)) {
		power_is_cut();
	} else if (fault == PLUGINS) {
		plugins_trouble();
	} else if (fault == RUNTIME_LISTS) {
		runtime_lists_partly(kernel.now + 3 * span);
	} else if (fault == RUNTIME_KILL) {
		w.deaths++;
		runtime_kill();
		again(&script.runtime, span, runtime_returns);
	} else if (fault == HANG_UP && runtime_up()) {
		runtime_hangs_up();
	} else if (fault == KUBELET_KILL) {
		w.restarts++;
		kubelet_kill();
		again(&script.kubelet, span, kubelet_returns);
	} else if (fault == BREAK) {
		runtime_breaks_something();
	} else if (fault == RUNTIME_FREEZE && runtime_up()) {
		runtime_freeze(kernel.now + 2 * span);
		again(&script.runtime, 2 * span, runtime_returns);
	} else if (fault == KUBELET_FREEZE && kubelet_up()) {
		kubelet_freeze(kernel.now + span);
		again(&script.kubelet, span, kubelet_returns);
	}
}

static bool has_fault(enum fault fault)
{
	return w.options.faults & 1u << fault;
}

/* one of those that the seed has; FAULTS: there is none. What options leave out has its turn, and
 * does not happen, so that all else stays as it is */
static enum fault any_fault(void)
{
	unsigned all = script.faults & ((1u << CHURN) - 1);
	unsigned n = (unsigned)__builtin_popcount(all), which = (unsigned)below(n), fault = 0;
	if (!n)
		return FAULTS;
	for (; !(all & 1u << fault) || which-- > 0; fault++)
		;
	return has_fault((enum fault)fault) ? (enum fault)fault : FAULTS;
}

static void happens(void)
{
	bool faulty = chance(script.density);
	enum fault fault = any_fault();
	if (faulty && fault != FAULTS)
		trouble(fault);
	else if (!faulty && chance(60) && kubelet_pods() < w.options.pods)
		kubelet_add_pod();
	else if (!faulty && has_fault(CHURN))
		kubelet_delete_pod();
}

static void busy(void)
{
	kubelet_add_pod();
	if (kubelet_pods() > BUSY_PODS)
		kubelet_delete_pod();
}

static void next_event(void *userdata)
{
	uint64_t random = w.random;
	(void)userdata;
	if (w.calm)
		return;
	w.random = script.random;
	if (w.options.busy)
		busy();
	else
		happens();
	again(&script.next, w.options.busy ? BUSY_PACE : below(2 * script.pace), next_event);
	script.random = w.random;
	w.random = random;
	runtime_changes();
}

static void look(void *userdata)
{
	char why[256];
	(void)userdata;
	if (w.straight || !kubelet_content(why, sizeof(why)))
		script.content = 0; /* crikeepd gives nothing up while it is away */
	else if (!script.content)
		script.content = kernel.now;
	else if (kernel.now > script.content + CREATE_DEADLINE + w.ttl + SETTLED)
		script.over = true;
	script.over = script.over || kernel.now > script.limit;
	again(&script.look, 5 * S, look);
}

static void calm(void *userdata)
{
	(void)userdata;
	trace("the faults end");
	w.calm = true;
	w.calm_at = kernel.now;
	w.calm_cpu = world_cpu();
	runtime_changes();
	kernel.die_after = 0;
	disk_returns(NULL);
	memory_returns(NULL);
	script.limit = kernel.now + 3600 * S;
	/* who is down or frozen returns by itself, in two minutes at most */
	look(NULL);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void configure(void)
{
	static const char *const ways[] = { "offer", "repeat" };
	static const unsigned ttls[] = { 60, 300, 600 };
	unsigned ttl = ttls[below(CK_COUNT(ttls))];
	FILE *f = fopen(w.conf, "we");
	w.ttl = ttl * S;
	fprintf(f,
		"runtime: unix://%s\nlisten: %s\nunfiltered: \"\"\nmetrics: \"\"\nstate_dir: %s\n"
		"confine: false\nlog:\n  target: stderr\n  level: debug\n"
		"cache:\n  ttl: %us\n  create_deadline: %us\n  hand_back: %s\n",
		w.runtime, w.cri, w.state_dir, ttl,
		(unsigned)(CREATE_DEADLINE / S), ways[below(2)]);
	if (w.plugins)
		fprintf(f,
			"nri:\n  enabled: true\n  socket: %s\n  plugin_dir: \"\"\n"
			"  config_dir: \"\"\n  adjust: %s\n",
			w.nri, w.asks_before ? "before-create" : "on-commit");
	fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void name_files(void)
{
	const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
	snprintf(w.dir, sizeof(w.dir), "%s/world-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(w.dir))
		abort();
	snprintf(w.cri, sizeof(w.cri), "%s/cri.sock", w.dir);
	snprintf(w.nri, sizeof(w.nri), "%s/nri.sock", w.dir);
	snprintf(w.runtime, sizeof(w.runtime), "%s/runtime.sock", w.dir);
	snprintf(w.state_dir, sizeof(w.state_dir), "%s/state", w.dir);
	snprintf(w.copy_dir, sizeof(w.copy_dir), "%s/copy", w.dir);
	snprintf(w.conf, sizeof(w.conf), "%s/crikeep.yaml", w.dir);
	mkdir(w.copy_dir, 0700);
}

/* what the seed says, and the options leave */
static void choose(const struct world_options *options)
{
	unsigned faults = (unsigned)(random_next(&w.random) & random_next(&w.random));
	faults |= chance(80) ? 1u << CHURN : 0;
	faults |= chance(80) ? 1u << SLOW : 0;
	script.faults = faults;
	script.density = 5 + (unsigned)below(45);
	w.plugins = chance(50);
	w.asks_before = chance(50);
	w.options = *options;
	w.options.faults &= faults;
	if (!options->pods)
		w.options.pods = 8;
	uint64_t seconds = 300 + below(900);
	if (options->busy) {
		w.options.faults = 1u << SLOW;
		w.plugins = false;
		seconds = options->seconds;
	}
	if (!options->seconds || seconds < options->seconds)
		w.options.seconds = (unsigned)seconds;
	script.pace = S + below(15 * S);
	script.random = random_next(&w.random);
}

static void open_world(uint64_t seed, const struct world_options *options)
{
	struct ck_error err;
	memset(&w, 0, sizeof(w));
	memset(&script, 0, sizeof(script));
	w.seed = w.random = seed;
	w.hash = UINT64_C(0xcbf29ce484222325);
	w.trace = getenv("CK_WORLD_TRACE");
	name_files();
	random_next(&w.random);
	kernel = (struct kernel){ .on = true,
				  .now = BOOTED,
				  .random = random_next(&w.random),
				  .state_dir = w.state_dir,
				  .copy_dir = w.copy_dir };
	script.down = true;
	choose(options);
	kernel.journal = has_fault(POWER_CUT);
	configure();
	if (ck_loop_init(&w.loop, &err) < 0)
		abort();
	runtime_open(has_fault(SLOW));
	kubelet_open();
	next_event(NULL);
	again(&script.calm, w.options.seconds * S, calm);
	touch(THE_SCRIPT, WHO);
}

static void close_world(void)
{
	struct ck_loop_timer *const timers[] = { script.next, script.runtime, script.kubelet,
						 script.disk, script.memory,  script.thaw,
						 script.calm, script.look };
	kubelet_close();
	runtime_close();
	plugins_close();
	disk_close();
	for (size_t i = 0; i < CK_COUNT(timers); i++)
		ck_loop_timer_free(timers[i]);
	ck_loop_fini(&w.loop);
	check_close();
	kernel.on = false;
	nftw(w.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void go_straight(bool straight)
{
	trace(straight ? "kubelet goes straight to the runtime" : "kubelet comes back");
	w.lost++;
	kubelet_kill();
	w.straight = straight;
	w.bypassed = true;
	kubelet_start();
	touch(THE_SCRIPT, WHO);
}

static void live(void)
{
	char config[200];
	snprintf(config, sizeof(config), "--config=%s", w.conf);
	char *const argv[] = { (char[]){ "crikeepd" }, config, NULL };
	script.down = script.kill = false;
	if (w.straight)
		go_straight(false);
	kernel.in_daemon = true;
	int code = crikeepd_main(2, (char **)(uintptr_t)argv);
	kernel.in_daemon = false;
	who[THE_DAEMON].fd = -1;
	touch(THE_SCRIPT, WHO);
	w.lost++;
	script.down = true;
	w.excused = w.excused || kernel.now < script.disk_bad;
	check_daemon_ends(kernel.now >= script.disk_bad);
	plugins_daemon_ends();
	if (kernel.dead) {
		w.kills++;
		w.killed_at = kernel.now;
		kernel_bury();
	}
	trace("crikeepd has ended: %d", code);
	script.start = kernel.now + (script.bypass ? script.bypass : below(5 * S));
	if (script.bypass)
		go_straight(true);
	script.bypass = 0;
	again(&script.thaw, script.start - kernel.now, nothing);
}

void world_run(uint64_t seed, const struct world_options *options)
{
	open_world(seed, options);
	while (!script.over) {
		live();
		while (!script.over && kernel.now < script.start) {
			look_who_can_move();
			others();
		}
	}
	if (!*w.wrong)
		check_end();
	if (!*w.wrong)
		check_database(w.state_dir);
	w.pods = kubelet_ran();
	close_world();
}
