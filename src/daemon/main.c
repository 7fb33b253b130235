/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeepd: start and end.
 *
 *   read the configuration -> open the log -> find plugins -> start crikeep-sim
 *   -> start a launcher, if there are plugins to start -> confine the process
 *   -> open the cache, with its lock -> connect to the runtime -> reconcile with its lists
 *   -> let plugins in -> accept clients
 *
 * No client is served before the last step, also when systemd made the sockets: the first list that
 * a client gets must not show what is hidden.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "cache/cache.h"
#include "cache/request/redact.h"
#include "cache/store/store-int.h"
#include "src/base/duration.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/daemon/call.h"
#include "src/daemon/confine/confine.h"
#include "src/daemon/nri/launcher.h"
#include "src/daemon/nri/discover-plugins.h"
#include "src/daemon/simulator.h"

enum { EXIT_TROUBLE = 1, EXIT_USAGE = 2 };
enum { CRI, UNFILTERED, METRICS, SOCKETS };

struct ck_daemon_main {
	struct ck_daemon daemon; /* first: main_of() relies on it */
	struct ck_listener *listeners[SOCKETS]; /* not of METRICS */
	int passed[SOCKETS]; /* descriptors of socket activation; -1: none */
	bool made[SOCKETS];  /* bound by this process, which unlinks them at the end */
	struct ck_metrics_server *metrics_server;
	struct ck_plugins plugins;
	struct ck_launcher *launcher;
	struct ck_simulator simulator;
	struct ck_loop_timer *start_timer, *retry_timer, *stop_timer;
	sd_event_source *signals[4], *cache_source;
	int state_dir; /* of shadow: true; -1: none */
	bool serving;
	char last_trouble[CK_ERROR_TEXT]; /* why it does not serve yet */
};

static struct ck_daemon_main *main_of(struct ck_daemon *daemon)
{
	return (struct ck_daemon_main *)(void *)daemon;
}

static void quit(struct ck_daemon_main *m, int code)
{
	sd_event_exit(m->daemon.loop.event, code);
}

static int trouble(const struct ck_error *err)
{
	ck_log(CK_LOG_ERROR, "%s", err->text);
	return EXIT_TROUBLE;
}

/* ---- serving --------------------------------------------------------------------------------- */

static int listen_at(struct ck_daemon_main *m, int which, const char *path, struct ck_error *err)
{
	const struct ck_conf *conf = &m->daemon.conf;
	int fd = m->passed[which];
	if (fd < 0 && !*path)
		return 0;
	if (fd < 0) {
		const struct ck_access *access =
			which == CRI ? &conf->cri_socket : &conf->unfiltered_socket;
		fd = ck_unix_listen(path, access->mode, access->group.gid, err);
		m->made[which] = fd >= 0;
	}
	m->passed[which] = -1;
	return fd < 0 ? fd
		      : ck_listen_start(&m->daemon, fd, which == CRI, &m->listeners[which], err);
}

static void serve(struct ck_daemon_main *m)
{
	struct ck_daemon *daemon = &m->daemon;
	struct ck_error err;
	int r = listen_at(m, UNFILTERED, daemon->conf.unfiltered, &err);
	if (r >= 0)
		r = listen_at(m, CRI, daemon->conf.listen, &err);
	if (r < 0) {
		quit(m, trouble(&err));
		return;
	}
	m->serving = true;
	daemon->metrics.serving = 1;
	ck_loop_timer(&daemon->loop, &m->start_timer, UINT64_MAX, NULL, NULL);
	ck_log(CK_LOG_INFO, "serving unix://%s", daemon->conf.listen);
	sd_notify(0, "READY=1\nSTATUS=Serving");
}

static void reconcile(void *userdata);

static void reconciled(struct ck_daemon *daemon, const struct ck_error *err)
{
	struct ck_daemon_main *m = main_of(daemon);
	if (err) {
		snprintf(m->last_trouble, sizeof(m->last_trouble), "%s", err->text);
		ck_log(CK_LOG_WARNING, "%s; asking again", err->text);
		ck_loop_timer(&daemon->loop, &m->retry_timer, ck_loop_now() + CK_RETRY_LIST,
			      reconcile, m);
	} else if (!m->serving && !daemon->stopping) {
		struct ck_error why;
		/* Before the first call is served, so plugins find what exists now. */
		if (ck_plugging_start(daemon, &why) < 0)
			quit(m, trouble(&why));
		else
			serve(m);
	}
}

static void reconcile(void *userdata)
{
	struct ck_daemon_main *m = userdata;
	struct ck_error err;
	if (m->daemon.conf.shadow) { /* nothing is hidden, so nobody needs to know what exists */
		reconciled(&m->daemon, NULL);
		return;
	}
	if (ck_upstream_is_up(m->daemon.upstream) &&
	    ck_reconcile_begin(&m->daemon, reconciled, &err) < 0)
		reconciled(&m->daemon, &err);
}

static void upstream_up(void *userdata)
{
	struct ck_daemon_main *m = userdata;
	struct ck_metrics *metrics = &m->daemon.metrics;
	metrics->upstream_connects++;
	metrics->upstream_up = 1;
	ck_log(CK_LOG_INFO, "connected to the runtime, which speaks %s",
	       ck_upstream_version(m->daemon.upstream));
	ck_plugging_introduce(&m->daemon);
	reconcile(m);
}

static void upstream_down(const char *why, void *userdata)
{
	struct ck_daemon_main *m = userdata;
	m->daemon.metrics.upstream_failures++;
	m->daemon.metrics.upstream_up = 0;
	m->daemon.metrics.upstream_silent = 0;
	ck_reconcile_cancel(&m->daemon);
	const char *how = m->daemon.metrics.upstream_connects ? "gone" : "not available";
	ck_log(CK_LOG_WARNING, "the runtime is %s: %s; trying again", how, why);
}

static void upstream_silent(bool silent, void *userdata)
{
	struct ck_daemon_main *m = userdata;
	struct ck_metrics *metrics = &m->daemon.metrics;
	char span[CK_DURATION_TEXT];
	if (silent) {
		metrics->upstream_silent = ck_loop_now() - CK_ANSWERS_LOOK;
		ck_log(CK_LOG_WARNING,
		       "the runtime does not answer: it may be stopped or stuck. Its calls go on "
		       "waiting");
	} else {
		uint64_t ns = ck_loop_now() - metrics->upstream_silent;
		metrics->upstream_silent = 0;
		ck_log(CK_LOG_INFO, "the runtime answers again, after %s",
		       ck_duration_print(ns - ns % CK_NS_PER_S, span));
	}
	metrics->upstream_up = !silent;
}

static void upstream_redact(const char *text, char *out)
{
	ck_redact(text, NULL, out);
}

static void upstream_carries(int fd, void *userdata)
{
	ck_held_give(&((struct ck_daemon_main *)userdata)->daemon, fd);
}

static const struct ck_upstream_owner upstream_owner = {
	.up = upstream_up,
	.down = upstream_down,
	.silent = upstream_silent,
	.carries = upstream_carries,
	.redact = upstream_redact,
};

static void start_expired(void *userdata)
{
	struct ck_daemon_main *m = userdata;
	const char *why = ck_upstream_is_up(m->daemon.upstream)
				  ? m->last_trouble
				  : ck_upstream_why(m->daemon.upstream);
	if (*why)
		ck_log(CK_LOG_ERROR, "the runtime was not available within start_timeout: %s", why);
	else
		ck_log(CK_LOG_ERROR,
		       "the runtime at unix://%s did not answer a list within start_timeout",
		       m->daemon.conf.runtime);
	quit(m, EXIT_TROUBLE);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void stopped(void *userdata)
{
	quit(userdata, EXIT_SUCCESS);
}

/* What the runtime makes for us it goes on making, so there is nothing to wait for. */
static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct ck_daemon_main *m = userdata;
	struct ck_daemon *daemon = &m->daemon;
	(void)source;
	(void)info;
	if (daemon->stopping)
		return 0;
	daemon->stopping = true;
	sd_notify(0, "STOPPING=1");
	for (int i = 0; i < SOCKETS; i++)
		if (m->listeners[i])
			ck_listen_stop(m->listeners[i]);
	if (daemon->nri)
		ck_nri_stop(daemon->nri);
	if (daemon->creating)
		ck_log(CK_LOG_INFO,
		       "stopping with %u creations and starts under way; the next start finds out "
		       "how they end",
		       daemon->creating);
	else
		ck_log(CK_LOG_INFO, "stopping: accepting no calls");
	if (ck_loop_timer(&daemon->loop, &m->stop_timer, ck_loop_now() + CK_STOP_SETTLE, stopped,
			  m) < 0)
		stopped(m);
	return 0;
}

static void odd(const char *text, void *userdata)
{
	(void)userdata;
	ck_log(CK_LOG_WARNING, "%s", text);
}

static void cannot_change(const char *key, void *userdata)
{
	(void)userdata;
	ck_log(CK_LOG_WARNING, "%s: changed in the configuration, but needs a restart", key);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
	struct ck_daemon_main *m = userdata;
	struct ck_conf fresh = { 0 };
	struct ck_error err;
	(void)source;
	(void)info;
	if (ck_conf_again(&m->daemon.conf, &fresh, odd, NULL, &err) < 0) {
		ck_log(CK_LOG_ERROR, "not reloaded: %s", err.text);
	} else {
		ck_conf_reload(&m->daemon.conf, &fresh, cannot_change, NULL);
		ck_log_level(m->daemon.conf.log_level);
		ck_cache_log_level(m->daemon.cache, m->daemon.conf.log_level);
		ck_log_format(m->daemon.conf.log_format);
		ck_log(CK_LOG_INFO, "reloaded the configuration");
	}
	ck_conf_fini(&fresh);
	return 0;
}

static int on_child(sd_event_source *source, const siginfo_t *info, void *userdata)
{
	(void)source;
	ck_log(CK_LOG_ERROR, "the simulator ended (%s %d)",
	       info->si_code == CLD_EXITED ? "status" : "signal", info->si_status);
	quit(userdata, EXIT_TROUBLE);
	return 0;
}

static int add_signals(struct ck_daemon_main *m, struct ck_error *err)
{
	sd_event *event = m->daemon.loop.event;
	int r = sd_event_add_signal(event, &m->signals[0], SIGTERM, on_stop, m);
	if (r >= 0)
		r = sd_event_add_signal(event, &m->signals[1], SIGINT, on_stop, m);
	if (r >= 0)
		r = sd_event_add_signal(event, &m->signals[2], SIGHUP, on_reload, m);
	if (r >= 0 && m->simulator.pid > 0)
		r = sd_event_add_child(event, &m->signals[3], m->simulator.pid, WEXITED, on_child,
				       m);
	return r < 0 ? ck_fail_errno(err, CK_EIO, -r, "watch signals") : 0;
}

/* SQLite maps crikeep.db-shm into memory. If the file is cut short, so is that memory. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	static const char words[] =
		"crikeepd: crikeep.db-shm, which is mapped into memory, was cut short by somebody; "
		"ending, and the next start makes it anew\n";
	(void)context;
	signal(number, SIG_DFL);
	/* anything else comes again, and ends the process */
	if (info->si_code == BUS_ADRERR && write(STDERR_FILENO, words, sizeof(words) - 1))
		_exit(EXIT_TROUBLE);
}

static void catch_bus_errors(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	sigaction(SIGBUS, &action, NULL);
}

static void block_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static int cache_ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct ck_daemon *daemon = userdata;
	(void)source;
	(void)fd;
	(void)events;
	ck_cache_process(daemon->cache, NULL);
	return 0;
}

static const struct ck_cache_logger logger = { ck_log_members, ck_log_with };

/* Only the lock: what full use left in the database stays as it is. */
static int own_state_dir(struct ck_daemon_main *m, struct ck_error *err)
{
	CK_AUTO_FREE char *path = NULL;
	int r = ck_state_dir_open(m->daemon.conf.state_dir, true, &path, &m->state_dir, err);
	return r < 0 ? r : ck_state_dir_own(m->state_dir, path, err);
}

static int open_cache(struct ck_daemon_main *m, struct ck_error *err)
{
	struct ck_daemon *daemon = &m->daemon;
	const struct ck_conf *conf = &daemon->conf;
	if (conf->shadow) {
		ck_log(CK_LOG_INFO, "shadow: creations are only counted; nothing is kept");
		return own_state_dir(m, err);
	}
	struct ck_host host;
	struct ck_hooks hooks;
	int r = ck_hosting_new(daemon, &host, err);
	if (r >= 0)
		r = ck_events_new(daemon, err);
	if (r >= 0 && conf->nri.enabled)
		r = ck_plugging_new(daemon, &m->plugins, m->launcher, &hooks, err);
	if (r < 0)
		return r;
	const struct ck_options options = {
		.size = sizeof(options),
		.state_dir = conf->state_dir,
		.host = &host,
		.hooks = daemon->nri ? &hooks : NULL,
		.ttl = conf->ttl,
		.create_deadline = conf->create_deadline,
		.lost_grace = conf->lost_grace,
		.supersede_wait = conf->supersede_wait,
		.destroy_timeout = conf->destroy_timeout,
		.mode = conf->mode,
		.hand_back = conf->hand_back,
		.on_annotation_change = conf->on_annotation_change,
		.ignore_annotations = (const char *const *)conf->ignore_annotations,
		.compare_sandbox_config = conf->compare_sandbox_config,
	};
	ck_cache_logger = &logger;
	r = ck_cache_open(&options, &daemon->cache, err);
	if (r < 0)
		return r;
	ck_cache_log_level(daemon->cache, conf->log_level);
	r = sd_event_add_io(daemon->loop.event, &m->cache_source, ck_cache_fd(daemon->cache),
			    EPOLLIN, cache_ready, daemon);
	return r < 0 ? ck_fail_errno(err, CK_EIO, -r, "watch the cache") : 0;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* The directory must exist before the process is confined to it. The cache checks its owner and
 * mode. */
static int make_state_dir(const char *path, struct ck_error *err)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return ck_fail_errno(err, CK_EIO, errno,
				     "cannot create the state directory '%s'", path);
	return 0;
}

/* Ask before the simulator starts: its socket is in this directory, and its error would only say
 * that another process listens there. */
static int check_owner(const char *path, struct ck_error *err)
{
	CK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long pid;
	return fd >= 0 && ck_state_dir_owned(fd, &pid) && pid
		       ? ck_fail(err, CK_EOWNED, "'%s' is owned by process %ld", path, pid)
		       : 0;
}

/* The unit of the socket says where, and the configuration says so too, unless somebody has changed
 * only one of them. */
static void check_path(int fd, const char *key, const char *path)
{
	struct sockaddr_un at = { 0 };
	socklen_t len = sizeof(at) - 1;
	if (getsockname(fd, (struct sockaddr *)&at, &len) == 0 && strcmp(at.sun_path, path) != 0)
		ck_log(CK_LOG_WARNING,
		       "%s: '%s' is not used, because the service manager listens at '%s'", key,
		       path, at.sun_path);
}

static int take_socket(struct ck_daemon_main *m, int fd, const char *name)
{
	const struct ck_conf *conf = &m->daemon.conf;
	const struct {
		const char *name, *key, *path;
	} sockets[] = {
		[CRI] = { "cri", "listen", conf->listen },
		[UNFILTERED] = { "unfiltered", "unfiltered", conf->unfiltered },
		[METRICS] = { "metrics", "metrics", conf->metrics },
	};
	int which = SOCKETS - 1;
	if (ck_held_passed(&m->daemon, fd, name))
		return 0;
	while (which != CRI && strcmp(name, sockets[which].name) != 0)
		which--;
	if (sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) <= 0 || m->passed[which] >= 0) {
		ck_log(CK_LOG_ERROR,
		       "socket activation: '%s' is not a single listening unix stream socket named "
		       "cri, unfiltered or metrics",
		       name);
		return -CK_EINVAL;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	check_path(fd, sockets[which].key, sockets[which].path);
	m->passed[which] = fd;
	return 0;
}

static int take_sockets(struct ck_daemon_main *m)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names), r = 0;
	for (int i = 0; i < n; i++) {
		if (take_socket(m, SD_LISTEN_FDS_START + i, names[i]) < 0)
			r = -CK_EINVAL;
		free(names[i]);
	}
	free(names);
	return r;
}

/* do not wait for a runtime at a path that is not a socket */
static int check_runtime(const char *path, struct ck_error *err)
{
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return ck_fail(err, CK_EINVAL, "the runtime at unix://%s is not a socket", path);
	return 0;
}

static void odd_plugin(enum ck_log_level level, const char *text, void *userdata)
{
	(void)userdata;
	ck_log(level, "%s", text);
}

/* Find the plugins to launch and check the directory of the socket, while the process may still
 * open any path. */
static int find_plugins(struct ck_daemon_main *m, struct ck_error *err)
{
	const struct ck_conf_nri *nri = &m->daemon.conf.nri;
	if (!nri->enabled)
		return 0;
	int r = *nri->socket ? ck_plugins_socket_dir(nri->socket, err) : 0;
	return r < 0 ? r
		     : ck_plugins_find(&m->plugins, nri->plugin_dir, nri->config_dir, odd_plugin,
				       NULL, err);
}

static int start(struct ck_daemon_main *m, struct ck_error *err)
{
	struct ck_daemon *daemon = &m->daemon;
	struct ck_conf *conf = &daemon->conf;
	char confined[256] = "not confined (confine: false)";
	int r = make_state_dir(conf->state_dir, err);
	if (r >= 0 && conf->simulator)
		r = check_owner(conf->state_dir, err);
	if (r >= 0 && conf->simulator) {
		char path[CK_PATH_MAX];
		snprintf(path, sizeof(path), "%s/sim.sock", conf->state_dir);
		r = ck_simulator_start(conf->simulator, path, &m->simulator, &conf->runtime, err);
	}
	if (r >= 0)
		r = check_runtime(conf->runtime, err);
	if (r >= 0)
		r = find_plugins(m, err);
	if (r >= 0 && m->plugins.n) /* a confined process cannot exec plugins */
		r = ck_launcher_start(m->plugins.items, m->plugins.n, &m->launcher, err);
	if (r >= 0)
		r = ck_loop_init(&daemon->loop, err);
	if (r >= 0)
		r = add_signals(m, err);
	/* The first timer reads the boot id, which a confined process may not be able to. */
	if (r >= 0 && ck_loop_timer(&daemon->loop, &m->start_timer,
				    ck_loop_now() + conf->start_timeout, start_expired, m) < 0)
		r = ck_nomem(err);
	/* without it, nobody would ask for a list again */
	if (r >= 0 && ck_loop_timer_new(&daemon->loop, &m->retry_timer) < 0)
		r = ck_nomem(err);
	if (r >= 0 && conf->confine)
		r = ck_confine(conf, confined, sizeof(confined), err);
	if (r < 0)
		return r;
	ck_log(CK_LOG_INFO, "crikeepd %s: %s", ck_version(), confined);
	sd_event_set_watchdog(daemon->loop.event, true);
	r = open_cache(m, err);
	if (r >= 0)
		r = ck_held_begin(daemon, err);
	daemon->metrics.daemon = daemon;
	if (r >= 0 && (*conf->metrics || m->passed[METRICS] >= 0))
		r = ck_metrics_serve(&daemon->loop, conf, CK_TAKE_FD(m->passed[METRICS]),
				     &daemon->metrics, daemon->cache, &m->metrics_server, err);
	if (r >= 0)
		r = ck_upstream_new(&daemon->loop, conf->runtime, &upstream_owner, m,
				    &daemon->upstream, err);
	return r;
}

/* Creations that are still under way become lost (K8). The next start looks for their results
 * (K25). */
static void end(struct ck_daemon_main *m)
{
	struct ck_daemon *daemon = &m->daemon;
	const char *paths[] = { daemon->conf.listen, daemon->conf.unfiltered };
	for (size_t i = 0; i < CK_COUNT(paths); i++) {
		ck_listener_free(m->listeners[i]);
		if (m->made[i])
			unlink(paths[i]);
	}
	ck_shadows_free(daemon);
	ck_metrics_server_free(m->metrics_server);
	ck_reconcile_cancel(daemon);
	ck_exits_free(daemon->exits);
	ck_events_free(daemon->events);
	ck_hosting_free(daemon->hosting);
	ck_plugging_quiet(daemon->plugging);
	ck_lives_end(daemon);
	ck_starts_end(daemon);
	ck_consults_end(daemon);
	ck_upstream_free(daemon->upstream);
	ck_held_free(daemon);
	if (daemon->loop.event)
		ck_loop_flush(&daemon->loop);
	sd_event_source_disable_unref(m->cache_source);
	if (daemon->cache)
		/* before plugins end: the cache records none of their last events */
		ck_cache_close(CK_TAKE(daemon->cache), NULL);
	ck_plugging_free(daemon->plugging);
	ck_consulted_forget(daemon);
	for (size_t i = 0; i < CK_COUNT(m->signals); i++)
		sd_event_source_disable_unref(m->signals[i]);
	ck_loop_timer_free(m->start_timer);
	ck_loop_timer_free(daemon->burst_timer);
	ck_loop_timer_free(m->retry_timer);
	ck_loop_timer_free(m->stop_timer);
	if (daemon->loop.event)
		ck_loop_fini(&daemon->loop);
	ck_launcher_free(m->launcher);
	if (m->state_dir >= 0)
		close(m->state_dir);
	if (m->simulator.fd >= 0)
		close(m->simulator.fd);
	ck_plugins_fini(&m->plugins);
	ck_conf_fini(&daemon->conf);
}

int main(int argc, char **argv)
{
	struct ck_daemon_main m = { .passed = { -1, -1, -1 },
				    .state_dir = -1,
				    .simulator.fd = -1 };
	struct ck_args args = { 0 };
	struct ck_error err = { 0 };
	int code = EXIT_TROUBLE;
	if (ck_conf_init(&m.daemon.conf, &err) < 0 ||
	    ck_conf_args(&m.daemon.conf, argc, argv, ck_simulator_check, &args) < 0) {
		ck_conf_fini(&m.daemon.conf);
		return EXIT_USAGE;
	}
	/* by itself the threshold rises to the longest list, and that memory is never given back */
	mallopt(M_MMAP_THRESHOLD, CK_MAP_FROM);
	mallopt(M_TRIM_THRESHOLD, 2 * CK_MAP_FROM);
	if (args.check || args.print) {
		ck_conf_fini(&m.daemon.conf);
		return EXIT_SUCCESS;
	}
	block_signals();
	catch_bus_errors();
	ck_log_format(m.daemon.conf.log_format);
	ck_log_open("crikeepd", m.daemon.conf.log_target, m.daemon.conf.log_level);
	ck_conf_check(&m.daemon.conf, odd, NULL, NULL);
	if (take_sockets(&m) >= 0) {
		int r = start(&m, &err);
		code = r < 0 ? trouble(&err) : ck_loop_run(&m.daemon.loop);
	}
	if (code < 0)
		code = EXIT_TROUBLE;
	end(&m);
	ck_log_close();
	return code;
}
