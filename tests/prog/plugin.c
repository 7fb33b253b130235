/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: plugin SOCKET NN-NAME agrees|holds|fails|adjusts - an NRI plugin, for the tests of
 * crikeep(1), until its connection ends
 *
 * It agrees to everything, or does not answer when it is told of a sandbox, or refuses each, or
 * wants to change each container.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tests/flow/nri-peer.h"

/* CreateContainerResponse { adjust: { hostname: "x" } } */
static const unsigned char adjust[] = { 0x0a, 0x08, 0x12, 0x06, 0x0a, 0x01, 'a', 0x12, 0x01, 'b' };

int main(int argc, char **argv)
{
	struct plugin *plugin = argc == 4 ? plugin_dial(argv[1], argv[2]) : NULL;
	if (!plugin) {
		fprintf(stderr, "plugin: wrong usage, or nobody listens there\n");
		return 1;
	}
	if (strcmp(argv[3], "holds") == 0)
		plugin_rule(plugin, CK_NRI_RUN_POD_SANDBOX, PLUGIN_HOLDS, 0);
	else if (strcmp(argv[3], "fails") == 0)
		plugin_fails(plugin, CK_NRI_RUN_POD_SANDBOX, 9, "no address is left in pool-7");
	else if (strcmp(argv[3], "adjusts") == 0)
		plugin_replies(plugin, CK_NRI_CREATE_CONTAINER, adjust, sizeof(adjust));
	while (!plugin->ended && plugin->fd >= 0) {
		struct pollfd poll_fd = { .fd = plugin->fd, .events = POLLIN };
		while (plugin_step(plugin))
			;
		poll(&poll_fd, 1, 1000);
	}
	plugin_free(plugin);
	return 0;
}
