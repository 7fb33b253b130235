/* SPDX-License-Identifier: Apache-2.0 */
/* The process of the simulated runtime: it listens, serves whoever connects, and ends at SIGTERM or
 * with its parent. */
#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include "src/base/limits.h"
#include "src/rpc/accept.h"
#include "src/rpc/address.h"
#include "src/base/log.h"
#include "src/sim/sim-int.h"
#include "src/sim/sim.h"

int ck_sim_check(const char *parameters, struct ck_error *err)
{
	struct ck_sim_conf conf = { 0 };
	int r = ck_sim_conf_parse(&conf, parameters, err);
	ck_sim_conf_fini(&conf);
	return r;
}

/* ---- clients --------------------------------------------------------------------------------- */

static void client_free(struct ck_sim_client *client)
{
	DL_DELETE(client->sim->clients, client);
	ck_connection_free(client->conn);
	free(client);
}

static void client_closed(struct ck_connection *conn, bool unread, const char *why, void *userdata)
{
	(void)conn;
	(void)unread;
	(void)why;
	client_free(userdata);
}

static void client_opened(struct ck_connection *conn, struct ck_h2_stream *stream, void *userdata)
{
	struct ck_sim_client *client = userdata;
	if (ck_sim_call_open(client->sim, stream) < 0)
		return;
	if (++client->calls == client->sim->conf.goaway)
		ck_connection_shut(conn);
}

static void accepted(int fd, void *userdata)
{
	struct ck_sim *sim = userdata;
	static const struct ck_connection_owner owner = { .opened = client_opened,
							  .closed = client_closed };
	struct ck_sim_client *client = CK_NEW(struct ck_sim_client);
	if (!client) {
		close(fd);
		return;
	}
	client->sim = sim;
	if (ck_connection_new(&sim->loop, fd, CK_H2_SERVER, &owner, client, &client->conn, NULL) <
	    0)
		free(client);
	else
		DL_APPEND(sim->clients, client);
}

/* ---- the runtime ----------------------------------------------------------------------------- */

static void sim_fini(struct ck_sim *sim)
{
	ck_acceptor_free(sim->acceptor);
	while (sim->clients)
		client_free(sim->clients);
	if (sim->loop.event)
		ck_loop_fini(&sim->loop); /* calls end with their connections */
	while (sim->calls)
		ck_sim_call_free(sim->calls);
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		while (sim->by_name[kind])
			ck_sim_object_free(sim->by_name[kind]);
	ck_sim_images_free(sim);
	ck_sim_keep_close(sim);
	ck_sim_conf_fini(&sim->conf);
}

static int sim_init(struct ck_sim *sim, const char *parameters, struct ck_error *err)
{
	*sim = (struct ck_sim){ .keep = { .log_fd = -1, .state_fd = -1 } };
	int r = ck_sim_conf_parse(&sim->conf, parameters, err);
	r = r < 0 ? r : ck_loop_init(&sim->loop, err);
	r = r < 0 ? r : ck_sim_keep_open(sim, err);
	if (r < 0)
		return r;
	bool fresh = !sim->list[CK_SANDBOX] && !sim->list[CK_CONTAINER];
	if ((fresh && ck_sim_premake(sim) < 0) || ck_sim_images_pull(sim, sim->conf.images) < 0)
		return ck_nomem(err);
	return 0;
}

static int parent_gone(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	(void)fd;
	(void)events;
	(void)userdata;
	return sd_event_exit(sd_event_source_get_event(source), EXIT_SUCCESS);
}

/* @parent: a pidfd, or -1 */
static int sim_watch(struct ck_sim *sim, int fd, int parent, struct ck_error *err)
{
	static const int signals[] = { SIGTERM, SIGINT };
	sigset_t set;
	int r = 0;
	sigemptyset(&set);
	for (size_t i = 0; i < CK_COUNT(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* without a handler: the loop ends */
	for (size_t i = 0; i < CK_COUNT(signals) && r >= 0; i++)
		r = sd_event_add_signal(sim->loop.event, NULL, signals[i], NULL, NULL);
	if (r >= 0 && parent >= 0)
		r = sd_event_add_io(sim->loop.event, NULL, parent, EPOLLIN, parent_gone, NULL);
	if (r < 0) {
		close(fd);
		return ck_fail_errno(err, CK_EIO, -r, "watch signals");
	}
	return ck_accept_start(&sim->loop, fd, accepted, sim, &sim->acceptor, err);
}

/* as a program of its own it stays until somebody ends it, and leaves no socket behind */
int ck_sim_main(const char *parameters)
{
	struct ck_sim_conf conf = { 0 };
	struct ck_error err;
	int r = ck_sim_conf_parse(&conf, parameters, &err), fd = -1, status = 2;
	if (r >= 0 && !conf.listen)
		r = ck_fail(&err, CK_EINVAL, "--sim: listen=PATH is needed");
	if (r >= 0) {
		status = EXIT_FAILURE;
		fd = r = ck_unix_listen(conf.listen, 0600, (gid_t)-1, &err);
	}
	if (r < 0) {
		fprintf(stderr, "crikeepd: %s\n", err.text);
	} else {
		status = ck_sim_serve(parameters, fd);
		unlink(conf.listen);
	}
	ck_sim_conf_fini(&conf);
	return status;
}

static int serve(const char *parameters, int fd, int parent)
{
	struct ck_sim sim;
	struct ck_error err;
	ck_log_open(CK_LOG_TO_AUTO, CK_LOG_INFO);
	int r = sim_init(&sim, parameters, &err);
	if (r == 0)
		r = sim_watch(&sim, fd, parent, &err);
	else
		close(fd);
	if (r < 0)
		ck_log(CK_LOG_ERROR, "%s", err.text);
	else
		r = ck_loop_run(&sim.loop);
	sim_fini(&sim);
	ck_log_close();
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int ck_sim_serve(const char *parameters, int fd)
{
	return serve(parameters, fd, -1);
}

/*
 * In the child: nothing of the parent but standard error and the socket, and no longer than the
 * parent. Not by PR_SET_PDEATHSIG: the parent is confined by then, and a Landlock that scopes
 * signals holds that one back, too.
 */
static int serve_for(pid_t parent, const char *parameters, int fd)
{
	enum { LISTENING = STDERR_FILENO + 1, PARENT, OTHERS };
	int pidfd = pidfd_open(parent, 0);
	if (pidfd < 0 || getppid() != parent)
		return EXIT_FAILURE;
	prctl(PR_SET_NAME, "crikeepd-sim");
	ck_log_close();
	/* both aside first: either may have the other's place */
	fd = fcntl(fd, F_DUPFD, OTHERS);
	pidfd = fcntl(pidfd, F_DUPFD, OTHERS);
	if (dup2(fd, LISTENING) < 0 || dup2(pidfd, PARENT) < 0 || close_range(OTHERS, ~0u, 0) < 0)
		return EXIT_FAILURE;
	return serve(parameters, LISTENING, PARENT);
}

/* the simulator of an earlier daemon at this path hears of its parent's end when we do, and needs a
 * moment */
static int listen_after(const char *path, struct ck_error *err)
{
	int fd = -1, other;
	for (int tries = 0; tries < 20; tries++) {
		fd = ck_unix_listen(path, 0600, (gid_t)-1, err);
		other = fd < 0 ? ck_unix_connect(path, NULL) : -1;
		if (other < 0)
			break;
		close(other);
		nanosleep(&(struct timespec){ .tv_nsec = (long)(100 * CK_NS_PER_MS) }, NULL);
	}
	return fd;
}

pid_t ck_sim_start(const char *parameters, const char *path, char **ret_path, struct ck_error *err)
{
	struct ck_sim_conf conf = { 0 };
	int r = ck_sim_conf_parse(&conf, parameters, err);
	CK_AUTO_FREE char *listen_path = r < 0 ? NULL : ck_strdup(conf.listen ? conf.listen : path);
	ck_sim_conf_fini(&conf);
	if (r < 0)
		return r;
	if (!listen_path)
		return ck_nomem(err);
	CK_AUTO_CLOSE int fd = listen_after(listen_path, err);
	if (fd < 0)
		return fd;
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		return ck_fail_errno(err, CK_EIO, errno, "start the simulator");
	if (pid == 0)
		_exit(serve_for(parent, parameters, fd));
	*ret_path = CK_TAKE(listen_path);
	return pid;
}
