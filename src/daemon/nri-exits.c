/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers that end by themselves. Plugins are told as soon as it is seen (R35), not when the
 * kubelet removes the container. It is seen in a client's list, status or event; a kubelet lists
 * each second. If no client does, we list exited containers once a second, while a connected plugin
 * has subscribed to their end.
 *
 * GetContainerEvents is not used for this. Before containerd 2.0 all its callers read from one
 * queue, so we would take events away from the kubelet (containerd issue 7318).
 */
#include <stdio.h>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/wire-writer.h"
#include "src/cri/message.h"
#include "src/daemon/daemon.h"
#include "src/cri/objects.h"

struct ck_exits {
	struct ck_daemon *daemon;
	struct ck_loop_timer *timer;
	struct ck_unary_call *rpc;
	struct ck_bytes request; /* ListContainers of what has exited */
};

static void told(const struct ck_nri_result *result, void *userdata)
{
	(void)result; /* nobody can refuse an end */
	(void)userdata;
}

void ck_exits_saw(struct ck_daemon *daemon, const char *container_id)
{
	struct ck_error err = { 0 };
	const struct ck_nri_call call = { .size = sizeof(call),
					  .event = CK_NRI_STOP_CONTAINER,
					  .container_id = container_id };
	if (!daemon->nri ||
	    ck_nri_listens(daemon->nri, CK_NRI_STOP_CONTAINER, CK_CONTAINER, container_id) != 1)
		return;
	if (ck_nri_send(daemon->nri, &call, told, NULL, &err) >= 0)
		return;
	ck_log(CK_LOG_WARNING, "plugins could not yet be told that a container has ended: %s",
	       err.text);
}

static void listed(struct ck_unary_reply *reply, void *userdata)
{
	struct ck_exits *exits = userdata;
	struct ck_objects objects = { 0 };
	struct ck_error err = { 0 };
	exits->rpc = NULL;
	if (reply->status.code != CK_GRPC_OK)
		return; /* asked again soon */
	if (ck_objects_read(&objects, ck_cri_method_named("ListContainers"), reply->message.p,
			    reply->message.len, &err) < 0)
		ck_log(CK_LOG_WARNING, "ListContainers: the runtime's answer cannot be read: %s",
		       err.text);
	for (size_t i = 0; i < objects.n; i++)
		if (objects.all[i].kind == CK_CONTAINER &&
		    objects.all[i].condition == CK_CONDITION_DEAD)
			ck_exits_saw(exits->daemon, objects.all[i].id);
	ck_objects_fini(&objects);
}

static void look(void *userdata)
{
	struct ck_exits *exits = userdata;
	struct ck_daemon *daemon = exits->daemon;
	const struct ck_unary_options options = { .path = "ListContainers",
						  .timeout = CK_ASK_TIMEOUT,
						  .reply_max = daemon->conf.list_max };
	struct ck_error err;
	ck_loop_timer(&daemon->loop, &exits->timer, ck_loop_now() + CK_NRI_EXITS_PAUSE, look,
		      exits);
	if (exits->rpc || !ck_upstream_is_up(daemon->upstream) ||
	    !ck_plugging_wanted(daemon, CK_NRI_BIT(STOP_CONTAINER)))
		return;
	ck_unary_start(daemon->upstream, &options, exits->request.p, exits->request.len, listed,
		       exits, &exits->rpc, &err);
}

int ck_exits_new(struct ck_daemon *daemon, struct ck_error *err)
{
	struct ck_writer request = { .r = 0 };
	struct ck_exits *exits = CK_NEW(struct ck_exits);
	if (!exits)
		return ck_nomem(err);
	exits->daemon = daemon;
	size_t filter = ck_writer_open(&request, CRI_ListContainersRequest_filter),
	       state = ck_writer_open(&request, CRI_ContainerFilter_state);
	ck_writer_number(&request, CRI_ContainerStateValue_state,
			 CRI_ContainerState_CONTAINER_EXITED);
	ck_writer_close(&request, state);
	ck_writer_close(&request, filter);
	exits->request = request.bytes;
	int r = request.r;
	if (r == 0)
		r = ck_loop_timer(&daemon->loop, &exits->timer, ck_loop_now() + CK_NRI_EXITS_PAUSE,
				  look, exits);
	if (r < 0) {
		ck_exits_free(exits);
		return ck_nomem(err);
	}
	daemon->exits = exits;
	return 0;
}

void ck_exits_free(struct ck_exits *exits)
{
	if (!exits)
		return;
	ck_unary_cancel(exits->rpc);
	ck_loop_timer_free(exits->timer);
	ck_bytes_free(&exits->request);
	free(exits);
}
