/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many connections and calls a process may have. Whoever may connect is root, as the kubelet
 * is, so a uid says nothing; the process does. The table of connections always has a place for
 * somebody who holds less than others: it is taken from the process that holds most.
 */
#include <malloc.h>
#include <stdio.h>
#include <sys/socket.h>

#include <utlist.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/daemon/call.h"

static struct ck_client_process *process_of(struct ck_daemon *daemon, const struct ucred *who)
{
	struct ck_client_process *process;
	DL_FOREACH (daemon->processes, process)
		if (who->pid && process->pid == who->pid && process->uid == who->uid)
			return process;
	process = CK_NEW(struct ck_client_process);
	if (!process)
		return NULL;
	process->pid = who->pid;
	process->uid = who->uid;
	DL_PREPEND(daemon->processes, process);
	return process;
}

static void forget_if_gone(struct ck_daemon *daemon, struct ck_client_process *process)
{
	if (process->clients || process->left_n)
		return;
	DL_DELETE(daemon->processes, process);
	ck_loop_timer_free(process->grows_old);
	free(process);
}

static unsigned clients_of_uid(const struct ck_daemon *daemon, uid_t uid)
{
	const struct ck_client_process *process;
	unsigned n = 0;
	DL_FOREACH (daemon->processes, process)
		n += process->uid == uid ? process->clients_n : 0;
	return n;
}

static struct ck_client_process *holds_most(struct ck_daemon *daemon)
{
	struct ck_client_process *process, *most = daemon->processes;
	DL_FOREACH (daemon->processes, process)
		if (process->clients_n > most->clients_n)
			most = process;
	return most;
}

/* 0, or why it is refused */
static int admit(struct ck_daemon *daemon, const struct ck_client_process *process,
		 struct ck_error *err)
{
	unsigned all = daemon->conf.connections, own = daemon->conf.process_connections,
		 of_uid = process->uid ? clients_of_uid(daemon, process->uid) : 0;
	if (process->clients_n >= own)
		return ck_fail(err, CK_ETOOBIG, "process %d has %u connections, and %u are allowed",
			       (int)process->pid, process->clients_n, own);
	/* the processes of root are not taken together: the kubelet is one of them */
	if (of_uid >= own)
		return ck_fail(err, CK_ETOOBIG, "user %u has %u connections, and %u are allowed",
			       (unsigned)process->uid, of_uid, own);
	if (daemon->metrics.clients < all)
		return 0;
	struct ck_client_process *most = holds_most(daemon);
	if (most->clients_n <= process->clients_n + 1)
		return ck_fail(err, CK_ETOOBIG, "all %u connections are taken", all);
	char text[CK_ERROR_TEXT];
	snprintf(text, sizeof(text),
		 "all %u connections are taken, and process %d has most of them, %u",
		 all, (int)most->pid, most->clients_n);
	ck_refused(daemon, CK_REFUSED_CLIENT, text);
	struct ck_peer *newest = most->clients;
	ck_client_leaves(newest); /* its place is free at once */
	ck_connection_refuse(newest->conn, text);
	ck_pass_advance(most); /* its places at the runtime are free, too */
	return 0;
}

int ck_client_comes(struct ck_peer *client, const struct ucred *who, struct ck_error *err)
{
	struct ck_daemon *daemon = client->daemon;
	struct ck_client_process *process = process_of(daemon, who);
	if (!process)
		return ck_nomem(err);
	int r = admit(daemon, process, err);
	if (r < 0) {
		forget_if_gone(daemon, process);
		return r;
	}
	client->process = process;
	daemon->connected_n += process->clients_n++ == 0;
	DL_PREPEND2(process->clients, client, of_process.prev, of_process.next);
	daemon->metrics.clients++;
	return 0;
}

/* By itself malloc keeps what many calls or connections needed. */
static void give_memory_back(void *userdata)
{
	struct ck_daemon *daemon = userdata;
	daemon->burst = daemon->calls > CK_BURST_CALLS &&
			ck_loop_timer(&daemon->loop, &daemon->burst_timer,
				      ck_loop_now() + CK_BURST_LOOK, give_memory_back, daemon) >= 0;
	if (!daemon->burst)
		malloc_trim(0);
}

static void look_for_memory(struct ck_daemon *daemon)
{
	if (!daemon->burst)
		daemon->burst = ck_loop_timer(&daemon->loop, &daemon->burst_timer,
					      ck_loop_now() + CK_BURST_LOOK, give_memory_back,
					      daemon) >= 0;
}

void ck_client_leaves(struct ck_peer *client)
{
	struct ck_client_process *process = client->process;
	if (!process)
		return;
	process->calls -= client->calls;
	ck_pass_forget(client);
	client->process = NULL;
	client->daemon->connected_n -= --process->clients_n == 0;
	DL_DELETE2(process->clients, client, of_process.prev, of_process.next);
	client->daemon->metrics.clients--;
	look_for_memory(client->daemon);
	forget_if_gone(client->daemon, process);
}

int ck_client_may_call(const struct ck_peer *client, struct ck_error *err)
{
	const struct ck_daemon *daemon = client->daemon;
	const struct ck_client_process *process = client->process;
	if (!process) /* it has just lost its place */
		return ck_fail(err, CK_ETOOBIG, "this connection is being closed");
	if (process->calls > daemon->conf.process_calls)
		return ck_fail(err, CK_ETOOBIG,
			       "process %d has %u calls under way, and more are not allowed",
			       (int)process->pid, daemon->conf.process_calls);
	/* those who have left, and whose calls go on, have no share */
	if (daemon->calls > CK_CALLS_MAX && process->calls > CK_CALLS_MAX / daemon->connected_n)
		return ck_fail(err, CK_ETOOBIG,
			       "all processes together have %u calls under way, and process %d "
			       "has more than its share",
			       CK_CALLS_MAX, (int)process->pid);
	return 0;
}

void ck_client_counts(struct ck_peer *client, int calls)
{
	struct ck_daemon *daemon = client->daemon;
	client->calls += (unsigned)calls;
	if (client->process)
		client->process->calls += (unsigned)calls;
	if (daemon->calls > CK_BURST_CALLS)
		look_for_memory(daemon);
}

void ck_client_detaches(struct ck_call *call)
{
	struct ck_client_process *process = call->client->process;
	ck_client_counts(call->client, -1);
	if (!process)
		return;
	call->left_by = process;
	process->left_n++;
	process->calls++;
}

void ck_client_left_call_ends(struct ck_call *call)
{
	struct ck_client_process *process = CK_TAKE(call->left_by);
	if (!process)
		return;
	process->left_n--;
	process->calls--;
	forget_if_gone(call->daemon, process);
}

void ck_clients_use(const struct ck_daemon *daemon, struct ck_clients_use *ret_use)
{
	const struct ck_client_process *process;
	*ret_use = (struct ck_clients_use){ .calls = daemon->calls };
	DL_FOREACH (daemon->processes, process) {
		if (process->clients_n > ret_use->process_connections)
			ret_use->process_connections = process->clients_n;
		if (process->calls > ret_use->process_calls)
			ret_use->process_calls = process->calls;
	}
}

void ck_refused(struct ck_daemon *daemon, enum ck_refusal cause, const char *text)
{
	uint64_t now = ck_loop_now(), *said = &daemon->refused_at[cause];
	daemon->metrics.refused[cause]++;
	if (*said && now - *said < CK_REFUSAL_PAUSE)
		return;
	*said = now;
	ck_log(CK_LOG_WARNING, "refused a %s: %s",
	       cause == CK_REFUSED_CALL ? "call" : "connection", text);
}
