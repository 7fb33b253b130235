/* SPDX-License-Identifier: Apache-2.0 */
/* The process of the built-in runtime: it listens, serves whoever connects, and ends at SIGTERM or with its parent. */
#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utlist.h>

#include "src/base/limits.h"
#include "src/daemon/accept.h"
#include "src/rpc/address.h"
#include "src/daemon/log.h"
#include "src/daemon/sim-int.h"
#include "src/daemon/sim.h"

int ck_sim_check(const char *parameters, struct ck_error *err)
{
	struct ck_rt_conf conf = { 0 };
	int r = ck_rt_conf_parse(&conf, parameters, err);
	ck_rt_conf_fini(&conf);
	return r;
}

/* ---- clients ----------------------------------------------------------------------------------------------------------------- */

static void client_free(struct ck_rt_client *client)
{
	DL_DELETE(client->rt->clients, client);
	ck_conn_free(client->conn);
	free(client);
}

static void client_closed(struct ck_conn *conn, bool unread, const char *why, void *userdata)
{
	(void)conn;
	(void)unread;
	(void)why;
	client_free(userdata);
}

static void client_opened(struct ck_conn *conn, struct ck_h2_stream *stream, void *userdata)
{
	struct ck_rt_client *client = userdata;
	if (ck_rt_call_open(client->rt, stream) < 0)
		return;
	if (++client->calls == client->rt->conf.goaway)
		ck_conn_shut(conn);
}

static void accepted(int fd, void *userdata)
{
	struct ck_rt *rt = userdata;
	static const struct ck_conn_owner owner = { .opened = client_opened, .closed = client_closed };
	struct ck_rt_client *client = CK_NEW(struct ck_rt_client);
	if (!client) {
		close(fd);
		return;
	}
	client->rt = rt;
	if (ck_conn_new(&rt->loop, fd, CK_H2_SERVER, &owner, client, &client->conn, NULL) < 0)
		free(client);
	else
		DL_APPEND(rt->clients, client);
}

/* ---- the runtime --------------------------------------------------------------------------------------------------------------- */

static void rt_fini(struct ck_rt *rt)
{
	ck_acceptor_free(rt->acceptor);
	while (rt->clients)
		client_free(rt->clients);
	if (rt->loop.event)
		ck_loop_fini(&rt->loop); /* calls end with their connections */
	while (rt->calls)
		ck_rt_call_free(rt->calls);
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		while (rt->by_name[kind])
			ck_rt_object_free(rt->by_name[kind]);
	ck_rt_images_free(rt);
	ck_rt_keep_close(rt);
	ck_rt_conf_fini(&rt->conf);
}

static int rt_init(struct ck_rt *rt, const char *parameters, struct ck_error *err)
{
	*rt = (struct ck_rt){ .keep = { .log_fd = -1, .state_fd = -1 } };
	int r = ck_rt_conf_parse(&rt->conf, parameters, err);
	r = r < 0 ? r : ck_loop_init(&rt->loop, err);
	r = r < 0 ? r : ck_rt_keep_open(rt, err);
	if (r < 0)
		return r;
	bool fresh = !rt->list[CK_SANDBOX] && !rt->list[CK_CONTAINER];
	if ((fresh && ck_rt_premake(rt) < 0) || ck_rt_images_pull(rt, rt->conf.images) < 0)
		return ck_nomem(err);
	return 0;
}

static int rt_watch(struct ck_rt *rt, int fd, struct ck_error *err)
{
	static const int signals[] = { SIGTERM, SIGINT };
	sigset_t set;
	int r = 0;
	sigemptyset(&set);
	for (size_t i = 0; i < CK_COUNT(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < CK_COUNT(signals) && r >= 0; i++) /* without a handler: the loop ends */
		r = sd_event_add_signal(rt->loop.event, NULL, signals[i], NULL, NULL);
	if (r < 0) {
		close(fd);
		return ck_fail_errno(err, CK_EIO, -r, "watch signals");
	}
	return ck_accept_start(&rt->loop, fd, accepted, rt, &rt->acceptor, err);
}

/* as a program of its own it stays until somebody ends it, and leaves no socket behind */
int ck_sim_main(const char *parameters)
{
	struct ck_rt_conf conf = { 0 };
	struct ck_error err;
	int r = ck_rt_conf_parse(&conf, parameters, &err), fd = -1, status = 2;
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
	ck_rt_conf_fini(&conf);
	return status;
}

int ck_sim_serve(const char *parameters, int fd)
{
	struct ck_rt rt;
	struct ck_error err;
	ck_log_open(CK_LOG_TO_AUTO, CK_LOG_INFO);
	int r = rt_init(&rt, parameters, &err);
	if (r == 0)
		r = rt_watch(&rt, fd, &err);
	else
		close(fd);
	if (r < 0)
		ck_log(CK_LOG_ERROR, "%s", err.text);
	else
		r = ck_loop_run(&rt.loop);
	rt_fini(&rt);
	ck_log_close();
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* in the child: nothing of the parent but standard error and the socket, and no longer than the parent */
static int serve_for(pid_t parent, const char *parameters, int fd)
{
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
		return EXIT_FAILURE;
	prctl(PR_SET_NAME, "crikeepd-sim");
	ck_log_close();
	if (dup2(fd, STDERR_FILENO + 1) < 0 || close_range(STDERR_FILENO + 2, ~0u, 0) < 0)
		return EXIT_FAILURE;
	return ck_sim_serve(parameters, STDERR_FILENO + 1);
}

pid_t ck_sim_start(const char *parameters, const char *path, char **ret_path, struct ck_error *err)
{
	struct ck_rt_conf conf = { 0 };
	int r = ck_rt_conf_parse(&conf, parameters, err);
	CK_AUTO_FREE char *listen_path = r < 0 ? NULL : ck_strdup(conf.listen ? conf.listen : path);
	ck_rt_conf_fini(&conf);
	if (r < 0)
		return r;
	if (!listen_path)
		return ck_nomem(err);
	CK_AUTO_CLOSE int fd = ck_unix_listen(listen_path, 0600, (gid_t)-1, err);
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
