/* SPDX-License-Identifier: Apache-2.0 */
/* GetContainerEvents through crikeepd: what is hidden is in no event, and each commit is told of exactly once. */
#include "tests/flow/peer.h"

static void a_commit_in_time_is_told_of(void **state)
{
	(void)state;
	struct world *w = world_new();
	struct client *c = client_subscribe(w);
	assert_int_equal(peer_subscribers(&w->peer), 1);
	world_commit(w, peer_sandbox(&w->peer, "s1", "web"));
	world_settle(w);
	assert_string_equal(c->seen, "CREATED s1[s1]\nSTARTED s1[s1]\n");
	client_free(c);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_commit_in_time_is_told_of),
	};
	return CK_TEST_MAIN(tests);
}
