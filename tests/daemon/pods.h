/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_DAEMON_PODS_H
#define CK_TESTS_DAEMON_PODS_H
/* What tests of crikeepd ask of it, as a kubelet would: over tests/flow/cri-client.h, with
 * deadlines. */
#include "tests/flow/cri-client.h"

#define POD_ID 65

/*
 * pod_run, pod_create - a status, -1: reset
 * @timeout: "500m"; NULL: none     @ret_id: POD_ID bytes, "" if there is none; may be NULL
 */
int pod_run(struct cri_client *client, const char *name, unsigned attempt, const char *timeout,
	    char *ret_id);
int pod_create(struct cri_client *client, const char *sandbox_id, const char *pod_name,
	       unsigned attempt, const char *timeout, char *ret_id);
/* pod_shown, container_shown - does a list without a filter have this id? */
bool pod_shown(struct cri_client *client, const char *id);
bool container_shown(struct cri_client *client, const char *id);
unsigned pod_n(struct cri_client *client);                      /* how many sandboxes are listed */
/* of the i-th that is listed */
void pod_id_of(struct cri_client *client, unsigned i, char *ret_id);
#endif
