/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "tests/daemon/stage.h"
#include "tests/unit/harness.h"

void stage_init(struct stage *s)
{
	*s = (struct stage){ .kubelet.fd = -1, .agent.fd = -1 };
	world_init(&s->w);
}

void stage_fini(struct stage *s)
{
	stage_leave(s);
	world_fini(&s->w);
}

int stage_set_up(void **state)
{
	struct stage *s = malloc(sizeof(*s));
	assert_non_null(s);
	stage_init(s);
	*state = s;
	return 0;
}

int stage_set_up_repeat(void **state)
{
	int r = stage_set_up(state);
	((struct stage *)*state)->w.repeat = true;
	return r;
}

int stage_tear_down(void **state)
{
	stage_fini(*state);
	free(*state);
	return 0;
}

void stage_again(struct stage *s)
{
	world_daemon(&s->w, s->flags);
	cri_open(&s->kubelet, s->w.cri);
	cri_open(&s->agent, s->w.unfiltered);
}

void stage_start(struct stage *s, const char *simulator, const char *const *flags)
{
	s->flags = flags;
	world_sim(&s->w, simulator);
	stage_again(s);
}

void stage_leave(struct stage *s)
{
	cri_close(&s->kubelet);
	cri_close(&s->agent);
}

void stage_kill(struct stage *s)
{
	stage_leave(s);
	assert_int_equal(world_kill(&s->w.daemon, SIGKILL), 128 + SIGKILL);
}

void stage_keep(struct stage *s, char *ret_id)
{
	assert_int_equal(pod_run(&s->kubelet, "late", 0, "300m", NULL), CK_GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(pod_n(&s->kubelet), 0); /* while it is made */
	world_until(&s->w, "create sandbox", 1, 10);
	world_until_logged(&s->w, "CREATING -> KEPT", 5);
	assert_int_equal(pod_n(&s->agent), 1);
	pod_id_of(&s->agent, 0, ret_id);
}
