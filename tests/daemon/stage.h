/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_DAEMON_STAGE_H
#define CK_TESTS_DAEMON_STAGE_H
/* What most tests of crikeepd begin with: both processes, and a client at each of its sockets. */
#include "tests/daemon/pods.h"
#include "tests/daemon/world.h"

struct stage {
	struct world w;
	struct cri_client kubelet, agent; /* on the filtered and the unfiltered socket */
	const char *const *flags;         /* crikeepd's: for its next life, too. Borrowed */
};

void stage_init(struct stage *s); /* nothing runs */
void stage_fini(struct stage *s);
int stage_set_up(void **state); /* *state is a stage */
int stage_tear_down(void **state);
#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_set_up, stage_tear_down)
int stage_set_up_repeat(void **state); /* what is late is kept for the same request */
#define ON_REPEAT_STAGE(test) \
	cmocka_unit_test_setup_teardown(test, stage_set_up_repeat, stage_tear_down)

/* stage_start - everything, in the order in which a node does it. @simulator, @flags: as for
 * world_sim() and world_daemon() */
void stage_start(struct stage *s, const char *simulator, const char *const *flags);
void stage_kill(struct stage *s);  /* kill -9 of crikeepd, and its clients' connections */
void stage_again(struct stage *s); /* its next life, with new clients */
void stage_leave(struct stage *s); /* the clients go */

/* stage_keep - with world.repeat: the sandbox "late" is made too late, and kept. Its id, by the
 * unfiltered socket */
void stage_keep(struct stage *s, char *ret_id);
#endif
