/* SPDX-License-Identifier: Apache-2.0 */
/* The process of the simulated runtime: its clients, its loop, its end. */
#include <signal.h>
#include <unistd.h>

#include <utlist.h>

#include "src/base/capabilities.h"
#include "src/base/log.h"
#include "src/rpc/accept.h"
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

static void client_free(struct ck_sim *sim, struct ck_sim_client *client)
{
	DL_DELETE(sim->clients, client);
	ck_connection_free(client->conn);
	free(client);
}

static void client_closed(struct ck_connection *conn, bool unread, const char *why, void *userdata)
{
	(void)conn;
	(void)unread;
	(void)why;
	struct ck_sim_client *client = userdata;
	client_free(client->sim, client);
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

void ck_sim_close(struct ck_sim *sim)
{
	ck_acceptor_free(sim->acceptor);
	while (sim->clients)
		client_free(sim, sim->clients);
	if (sim->loop.event)
		ck_loop_fini(&sim->loop); /* ends connections, and so their calls */
	while (sim->calls)
		ck_sim_call_free(sim->calls);
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		while (sim->by_name[kind])
			ck_sim_object_free(sim->by_name[kind]);
	ck_sim_images_free(sim);
	ck_sim_keep_close(sim);
	ck_sim_conf_fini(&sim->conf);
}

int ck_sim_open(struct ck_sim *sim, const char *parameters, struct ck_error *err)
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

int ck_sim_listen(struct ck_sim *sim, int fd, struct ck_error *err)
{
	return ck_accept_start(&sim->loop, fd, accepted, sim, &sim->acceptor, err);
}

static int parent_gone(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	(void)fd;
	(void)events;
	(void)userdata;
	return sd_event_exit(sd_event_source_get_event(source), EXIT_SUCCESS);
}

static int sim_watch(struct ck_sim *sim, int parent, struct ck_error *err)
{
	sd_event *event = sim->loop.event;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* without a handler, the signal ends the loop */
	int r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0 && parent < 0)
		r = sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
	else if (r >= 0)
		r = sd_event_add_io(event, NULL, parent, EPOLLIN, parent_gone, NULL);
	return r < 0 ? ck_fail_errno(err, CK_EIO, -r, "watch signals") : 0;
}

int ck_sim_serve(const char *parameters, int fd, int parent)
{
	struct ck_sim sim;
	struct ck_error err;
	ck_log_open("crikeep-sim", CK_LOG_TO_AUTO, CK_LOG_INFO);
	int r = ck_sim_open(&sim, parameters, &err);
	r = r < 0 ? r : ck_capabilities_drop(&err);
	r = r < 0 ? r : sim_watch(&sim, parent, &err);
	if (r < 0)
		close(fd);
	else
		r = ck_sim_listen(&sim, fd, &err);
	if (r < 0)
		ck_log(CK_LOG_ERROR, "%s", err.text);
	else
		r = ck_loop_run(&sim.loop);
	ck_sim_close(&sim);
	ck_log_close();
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
