/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_REQUEST_H
#define CK_CLI_SIMULATE_REQUEST_H
/*
 * The bytes of a RunPodSandboxRequest or CreateContainerRequest as a kubelet writes them. No two
 * tries of one create are equal byte by byte, and all of them mean the same: maps and envs come in
 * random order, the termination-log file is a new one each time, and config.seen changes with the
 * kubelet's life.
 */
#include "src/cli/simulate/simulation.h"

struct ck_simulation_request {
	unsigned char *bytes;
	size_t len, room;
	bool failed; /* out of memory; bytes are incomplete */
};

/* ck_simulation_request_write - the request of @call, into an empty or used @request. Return: 0,
 * -CK_ENOMEM */
int ck_simulation_request_write(struct ck_simulation_request *request,
				const struct ck_simulation_call *call);
void ck_simulation_request_fini(struct ck_simulation_request *request);
#endif
