/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open, process, close. The host polls one descriptor: an epoll set of an eventfd (another thread
 * has left work), a timerfd on CLOCK_BOOTTIME, the listener and the connections.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "hooks/introduce.h"
#include "hooks/nri-int.h"
#include "hooks/status-file.h"

/* in one ck_nri_process(): work that makes more work must not block the host's event loop */
#define PASSES 64
#define EVENTS 64 /* descriptors looked at in one of them */

/* ---- open and close -------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(CK_TAKE_FD(*fd));
}

static void free_options(struct ck_nri *nri)
{
	for (size_t i = 0; i < nri->rules_n; i++)
		free((char *)nri->rules[i].name);
	for (size_t i = 0; i < nri->launched_n; i++) {
		free((char *)nri->launched[i].name);
		free((char *)nri->launched[i].config);
	}
	free(CK_TAKE(nri->rules));
	free(CK_TAKE(nri->launched));
	free(CK_TAKE(nri->allow_uids));
	free(CK_TAKE(nri->socket_path));
	free(CK_TAKE(nri->status_path));
	free(CK_TAKE(nri->runtime_name));
	free(CK_TAKE(nri->runtime_version));
	nri->rules_n = nri->launched_n = nri->allow_uids_n = 0;
}

static bool copy(char **at, const char *s)
{
	*at = ck_strdup(s);
	return *at || !s;
}

static int copy_options(struct ck_nri *nri, const struct ck_nri_options *options)
{
	bool whole = copy(&nri->socket_path, options->socket_path) &&
		     copy(&nri->status_path, options->status_path) &&
		     copy(&nri->runtime_name,
			  options->runtime_name ? options->runtime_name : "crikeep") &&
		     copy(&nri->runtime_version,
			  options->runtime_version ? options->runtime_version : ck_version());
	nri->rules = ck_alloc((options->rules_n + 1) * sizeof(*nri->rules));
	nri->launched = ck_alloc((options->launched_n + 1) * sizeof(*nri->launched));
	nri->allow_uids = ck_alloc((options->allow_uids_n + 1) * sizeof(*nri->allow_uids));
	if (!whole || !nri->rules || !nri->launched || !nri->allow_uids)
		return -CK_ENOMEM;
	for (; nri->rules_n < options->rules_n; nri->rules_n++) {
		struct ck_nri_rule *rule = &nri->rules[nri->rules_n];
		rule->policy = options->rules[nri->rules_n].policy;
		if (!(rule->name = ck_strdup(options->rules[nri->rules_n].name)))
			return -CK_ENOMEM;
	}
	for (; nri->launched_n < options->launched_n; nri->launched_n++) {
		struct ck_nri_launched *launched = &nri->launched[nri->launched_n];
		const struct ck_nri_launched *from = &options->launched[nri->launched_n];
		launched->name = ck_strdup(from->name);
		launched->config = ck_strdup(from->config);
		if (!launched->name || (from->config && !launched->config)) {
			nri->launched_n++;
			return -CK_ENOMEM;
		}
	}
	for (; nri->allow_uids_n < options->allow_uids_n; nri->allow_uids_n++)
		nri->allow_uids[nri->allow_uids_n] = options->allow_uids[nri->allow_uids_n];
	return 0;
}

static uint64_t or_default(uint64_t value, uint64_t by_default)
{
	return value ? value : by_default;
}

int ck_nri_open_impl(const struct ck_nri_options *options, struct ck_nri **ret_nri,
		     struct ck_error *err)
{
	struct ck_nri *nri = CK_NEW(struct ck_nri);
	if (!nri)
		return ck_nomem(err);
	nri->refs = 1;
	ck_host_process_mark(&nri->home);
	nri->host = *options->host;
	nri->socket_mode = options->socket_mode ? options->socket_mode : 0600;
	nri->registration_timeout =
		or_default(options->registration_timeout, CK_NRI_REGISTRATION_TIMEOUT);
	nri->request_timeout = or_default(options->request_timeout, CK_NRI_REQUEST_TIMEOUT);
	nri->synchronize_timeout =
		or_default(options->synchronize_timeout, CK_NRI_SYNCHRONIZE_TIMEOUT);
	nri->policy = options->policy ? options->policy : CK_NRI_ERROR;
	nri->adjust = options->adjust;
	nri->clock = options->clock;
	nri->clock_userdata = options->clock_userdata;
	nri->listen_fd = -1;
	pthread_mutex_init(&nri->lock, NULL);
	nri->epoll_fd = ck_fd_own(epoll_create1(EPOLL_CLOEXEC));
	nri->event_fd = ck_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	nri->timer_fd = ck_fd_own(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
	int r = copy_options(nri, options) < 0 ? ck_nomem(err) : 0;
	if (r >= 0 && (nri->epoll_fd < 0 || nri->event_fd < 0 || nri->timer_fd < 0 ||
		       ck_nri_watch(nri, nri->event_fd, EPOLLIN, nri, false) < 0 ||
		       ck_nri_watch(nri, nri->timer_fd, EPOLLIN, nri, false) < 0))
		r = ck_fail_errno(err, CK_EIO, errno, "make the loop's descriptors");
	if (r >= 0 && nri->socket_path)
		/* bound now, so that a wrong path is an error of the start */
		r = ck_nri_listen(nri, err);
	if (r < 0) {
		ck_nri_close_impl(nri);
		return r;
	}
	*ret_nri = nri;
	return 0;
}

int ck_nri_introduce(struct ck_nri *nri, const char *name, const char *version, bool starts_late)
{
	char *new_name = ck_strdup(name), *new_version = ck_strdup(version);
	bool whole = new_name && new_version;
	ck_nri_lock(nri);
	if (whole) {
		char *old_name = nri->runtime_name, *old_version = nri->runtime_version;
		nri->runtime_name = new_name;
		nri->runtime_version = new_version;
		nri->starts_late = starts_late;
		new_name = old_name;
		new_version = old_version;
	}
	ck_nri_unlock(nri);
	free(new_name);
	free(new_version);
	return whole ? 0 : -CK_ENOMEM;
}

static void launch(struct ck_nri *nri, unsigned i)
{
	struct ck_error err;
	struct ck_plugin *plugin;
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		ck_nri_log(nri, CK_LOG_ERROR, "plugin %s is not launched: %s",
			   nri->launched[i].name, strerror(errno));
		return;
	}
	fds[0] = ck_fd_own(fds[0]);
	fds[1] = ck_fd_own(fds[1]);
	if (fds[0] < 0 || fds[1] < 0) {
		ck_nri_log(nri, CK_LOG_ERROR, "plugin %s is not launched: %s",
			   nri->launched[i].name, strerror(errno));
		close_fd(&fds[0]);
		close_fd(&fds[1]);
		return;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK); /* not the plugin's end: it expects one that blocks */
	if (ck_plugin_add(nri, fds[0], (int)i, &plugin, &err) < 0) {
		ck_nri_log(nri, CK_LOG_ERROR, "plugin %s is not launched: %s",
			   nri->launched[i].name, err.text);
		close(fds[1]);
		return;
	}
	plugin->child_fd = fds[1];
	plugin->want_launch = true;
}

int ck_nri_start_impl(struct ck_nri *nri, ck_nri_snapshot_fn *snapshot, void *source,
		      struct ck_error *err)
{
	ck_nri_lock(nri);
	if (nri->started) {
		ck_nri_unlock(nri);
		return ck_fail(err, CK_ESTATE, "already started");
	}
	/* Not before: a plugin that connects earlier waits in the backlog, and does not wake the
	 * host's event loop. */
	if (nri->listen_fd >= 0 && ck_nri_watch(nri, nri->listen_fd, EPOLLIN, NULL, false) < 0) {
		ck_nri_unlock(nri);
		return ck_fail(err, CK_EIO, "watch '%s'", nri->socket_path);
	}
	nri->started = nri->changed = true;
	nri->started_at = ck_nri_now(nri);
	nri->snapshot = snapshot;
	nri->snapshot_source = source;
	for (unsigned i = 0; i < nri->launched_n; i++)
		launch(nri, i);
	nri->plugin_joined = true; /* dispatches may have waited for the start */
	ck_nri_unlock(nri);
	return 0;
}

void ck_nri_stop_impl(struct ck_nri *nri)
{
	uint32_t call;
	ck_nri_lock(nri);
	ck_nri_unlisten(nri);
	for (struct ck_plugin *plugin = nri->stopping ? NULL : nri->plugins; plugin;
	     plugin = plugin->next) {
		if (plugin->state != CK_PLUGIN_READY)
			continue;
		/* nobody waits for its answer */
		ck_ttrpc_call(plugin->ttrpc, CK_NRI_SERVICE_PLUGIN, "Shutdown", NULL, 0,
			      nri->request_timeout, &call, NULL);
		ck_plugin_pump(plugin);
	}
	nri->stopping = true;
	ck_nri_unlock(nri);
}

static void write_log(struct ck_nri *nri);

void ck_nri_close_impl(struct ck_nri *nri)
{
	pthread_mutex_lock(&nri->lock);
	if (nri->processing && pthread_equal(nri->thread, pthread_self())) {
		/* called from a callback, against the rules: leave it open rather than in use after
		 * it was freed */
		pthread_mutex_unlock(&nri->lock);
		return;
	}
	nri->closed = true;
	nri->processing = true; /* so that ck_nri_unlock() wakes nobody */
	nri->thread = pthread_self();
	ck_nri_unlisten(nri);
	ck_dispatches_end_all(nri);
	for (struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		ck_plugin_close(plugin, CK_LOG_DEBUG, "closed");
	ck_plugins_free_closed(nri);
	ck_dispatches_call_back(nri);
	ck_nri_objects_free(nri);
	ck_host_calls_drop(nri);
	write_log(nri);
	close_fd(&nri->epoll_fd);
	close_fd(&nri->event_fd);
	close_fd(&nri->timer_fd);
	free_options(nri);
	if (!ck_nri_unref(nri)) /* host calls are under way */
		pthread_mutex_unlock(&nri->lock);
}

/* ---- who is there ---------------------------------------------------------------------------- */

static int each_connection(const struct ck_nri *nri, bool unregistered,
			   int (*fn)(const struct ck_nri_plugin *plugin, void *userdata),
			   void *userdata)
{
	struct ck_nri_plugin shown;
	int r = 0;
	for (struct ck_plugin *plugin = nri->plugins; plugin && r == 0; plugin = plugin->next) {
		if (plugin->state == CK_PLUGIN_CLOSED ||
		    ck_plugin_unregistered(plugin) != unregistered)
			continue;
		ck_plugin_show(plugin, &shown);
		r = fn(&shown, userdata);
	}
	return r;
}

/* those that have not registered last: they crowd nobody out of the status file */
static int each_plugin(const struct ck_nri *nri,
		       int (*fn)(const struct ck_nri_plugin *plugin, void *userdata),
		       void *userdata)
{
	struct ck_nri_plugin shown;
	int r = each_connection(nri, false, fn, userdata);
	/* nothing is committed while one of these is absent (H4), so show it */
	for (size_t i = 0; i < nri->rules_n && r == 0; i++) {
		if (nri->rules[i].policy != CK_NRI_REQUIRED ||
		    ck_plugins_has(nri, nri->rules[i].name))
			continue;
		shown = (struct ck_nri_plugin){
			.size = sizeof(shown),
			.name = nri->rules[i].name,
			.state = CK_STATUS_ABSENT,
			.policy = CK_NRI_REQUIRED,
			.last_error = "",
		};
		r = fn(&shown, userdata);
	}
	for (size_t i = 0; i < nri->gone_n && r == 0; i++) {
		shown = nri->gone[i].last;
		shown.name = nri->gone[i].name;
		shown.last_error = nri->gone[i].error;
		r = fn(&shown, userdata);
	}
	return r ? r : each_connection(nri, true, fn, userdata);
}

int ck_nri_plugins_impl(struct ck_nri *nri,
			int (*fn)(const struct ck_nri_plugin *plugin, void *userdata),
			void *userdata)
{
	pthread_mutex_lock(&nri->lock);
	int r = each_plugin(nri, fn, userdata);
	pthread_mutex_unlock(&nri->lock);
	return r;
}

struct shown {
	struct ck_nri_plugin plugins[CK_NRI_PLUGINS_MAX];
	size_t n;
};

static int add_shown(const struct ck_nri_plugin *plugin, void *userdata)
{
	struct shown *shown = userdata;
	shown->plugins[shown->n++] = *plugin;
	return shown->n == CK_COUNT(shown->plugins);
}

static void write_status(struct ck_nri *nri, uint64_t now)
{
	struct shown shown = { .n = 0 };
	struct ck_error err;
	if (!nri->status_path || !nri->changed || now < nri->status_due)
		return;
	each_plugin(nri, add_shown, &shown);
	nri->status_due = now + CK_NRI_STATUS_PAUSE;
	/* on failure it is tried again */
	nri->changed = ck_status_write(nri->status_path, now, shown.plugins, shown.n, &err) < 0;
	if (nri->changed && !nri->status_failed)
		ck_nri_log(nri, CK_LOG_WARNING, "%s", err.text);
	nri->status_failed = nri->changed;
}

/* ---- ck_nri_process() ------------------------------------------------------------------------ */

static uint64_t due_of(const struct ck_nri *nri)
{
	uint64_t due = ck_dispatches_due(nri), at;
	if (nri->dispatches_done || nri->plugin_closed || nri->plugin_joined || nri->log_n ||
	    ck_host_calls_ready(nri))
		return 0;
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next) {
		if (plugin->want_snapshot || plugin->want_launch)
			return 0;
		at = ck_plugin_due(plugin);
		due = at < due ? at : due;
	}
	if (nri->accept_again && nri->accept_again < due)
		due = nri->accept_again;
	if (nri->status_path && nri->changed && nri->status_due < due)
		due = nri->status_due;
	return due;
}

uint64_t ck_nri_timeout_impl(struct ck_nri *nri)
{
	pthread_mutex_lock(&nri->lock);
	uint64_t due = nri->signalled ? 0 : due_of(nri);
	pthread_mutex_unlock(&nri->lock);
	return due;
}

static void look_at_descriptors(struct ck_nri *nri)
{
	struct epoll_event events[EVENTS];
	uint64_t count;
	int n = epoll_wait(nri->epoll_fd, events, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		void *what = events[i].data.ptr;
		/* the eventfd or the timer: their work is looked for in any case */
		if (what == nri) {
			eventfd_read(nri->event_fd, &count);
			while (read(nri->timer_fd, &count, sizeof(count)) > 0)
				nri->armed = 0;
		} else if (!what) {
			if (nri->listen_fd >= 0)
				ck_nri_accept(nri);
		} else {
			/* no plugin is freed before ck_plugins_free_closed() */
			ck_plugin_io(what, events[i].events);
		}
	}
	ck_plugins_free_closed(nri);
}

static void run_timers(struct ck_nri *nri)
{
	uint64_t now = ck_nri_now(nri);
	for (struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		ck_plugin_timers(plugin, now);
	ck_plugins_free_closed(nri);
	ck_dispatches_timers(nri, now);
	ck_plugins_free_closed(nri);
	if (nri->accept_again && nri->accept_again <= now && nri->listen_fd >= 0) {
		nri->accept_again = 0;
		ck_nri_watch(nri, nri->listen_fd, EPOLLIN, NULL, false);
	}
	write_status(nri, now);
}

static void take_snapshot(struct ck_nri *nri, struct ck_plugin *plugin)
{
	pthread_mutex_unlock(&nri->lock);
	int r = ck_synchronize_snapshot(plugin);
	pthread_mutex_lock(&nri->lock);
	plugin->want_snapshot = false;
	nri->plugin_joined = true;
	if (r < 0)
		ck_plugin_close(plugin, CK_LOG_ERROR, "existing objects cannot be listed: %s",
				ck_strerror(-r));
	else
		ck_synchronize_continue(plugin);
}

static void launch_it(struct ck_nri *nri, struct ck_plugin *plugin)
{
	unsigned i = (unsigned)plugin->launched;
	int fd = CK_TAKE_FD(plugin->child_fd);
	plugin->want_launch = false;
	if (!nri->host.launch) {
		close(fd);
		ck_plugin_close(plugin, CK_LOG_ERROR, "the host cannot launch plugins");
		return;
	}
	pthread_mutex_unlock(&nri->lock);
	int r = nri->host.launch(i, fd, nri->host.userdata);
	pthread_mutex_lock(&nri->lock);
	if (r < 0)
		ck_plugin_close(plugin, CK_LOG_ERROR, "it cannot be launched");
}

/* What plugins wait for from outside. The list changes only in ck_plugins_free_closed() and when a
 * plugin registers, both in this thread. */
static void run_wants(struct ck_nri *nri)
{
	for (struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next) {
		if (plugin->state == CK_PLUGIN_CLOSED)
			continue;
		if (plugin->want_launch)
			launch_it(nri, plugin);
		if (plugin->want_snapshot)
			take_snapshot(nri, plugin);
	}
	ck_plugins_free_closed(nri);
}

static void write_log(struct ck_nri *nri)
{
	while (nri->log_n || nri->log_lost) {
		enum ck_log_level level = CK_LOG_WARNING;
		char text[CK_ERROR_TEXT];
		if (nri->log_n) {
			level = nri->log[0].level;
			memcpy(text, nri->log[0].text, sizeof(text));
			memmove(nri->log, nri->log + 1, --nri->log_n * sizeof(nri->log[0]));
		} else {
			snprintf(text, sizeof(text), "%u lines of this log were dropped",
				 nri->log_lost);
			nri->log_lost = 0;
		}
		pthread_mutex_unlock(&nri->lock);
		nri->host.log(level, text, nri->host.userdata);
		pthread_mutex_lock(&nri->lock);
	}
}

static void rearm(struct ck_nri *nri, uint64_t due)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(due / CK_NS_PER_S),
					       .tv_nsec = (long)(due % CK_NS_PER_S) } };
	if (nri->clock || due == CK_NRI_FOREVER)
		return; /* a test's clock uses ck_nri_timeout(); or there is nothing to wait for */
	if (nri->armed && nri->armed <= due)
		return; /* waking too early once is cheaper than setting the timer often */
	if (due == 0)
		at.it_value.tv_nsec = 1; /* zero would disarm it */
	timerfd_settime(nri->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	nri->armed = due;
}

void ck_nri_send_now(struct ck_nri *nri)
{
	if (!nri->processing)
		ck_dispatches_timers(nri, ck_nri_now(nri));
}

void ck_nri_leave(struct ck_nri *nri)
{
	uint64_t due = nri->processing || nri->signalled ? 0 : due_of(nri);
	if (due <= ck_nri_now(nri)) {
		ck_nri_unlock(nri);
		return;
	}
	rearm(nri, due);
	pthread_mutex_unlock(&nri->lock);
}

int ck_nri_process_impl(struct ck_nri *nri)
{
	pthread_mutex_lock(&nri->lock);
	if (nri->processing) {
		pthread_mutex_unlock(&nri->lock);
		return -CK_EDEADLK;
	}
	nri->processing = true;
	nri->thread = pthread_self();
	nri->signalled = false;
	look_at_descriptors(nri);
	uint64_t due = 0;
	for (int pass = 0; pass < PASSES && due <= ck_nri_now(nri); pass++) {
		run_timers(nri);
		run_wants(nri);
		ck_host_calls_start(nri);
		ck_dispatches_call_back(nri);
		ck_plugins_free_closed(nri);
		write_log(nri);
		due = due_of(nri);
	}
	rearm(nri, due);
	nri->processing = false;
	pthread_mutex_unlock(&nri->lock);
	return 0;
}
