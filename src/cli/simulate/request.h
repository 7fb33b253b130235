/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_REQUEST_H
#define CK_CLI_SIMULATE_REQUEST_H
/*
 * The bytes of a RunPodSandboxRequest or CreateContainerRequest as a kubelet writes them. All tries
 * of one create mean the same, but no two have the same bytes: maps and envs come in random order,
 * each try has a new termination-log file, and config.seen changes when the kubelet restarts.
 */
#include "src/base/wire-writer.h"
#include "src/cli/simulate/simulation.h"

/* ck_simulation_request_write - write the request of @call; @out may have been used before.
 * Return: 0, -CK_ENOMEM */
int ck_simulation_request_write(struct ck_writer *out, const struct ck_simulation_call *call);
#endif
