/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_CRI_ENDPOINT_H
#define CK_CLI_CRI_ENDPOINT_H
/* What the commands that speak CRI share: the endpoint and the version, the messages they send, and
 * what they read of answers. */
#include <argp.h>
#include <stdbool.h>

#include "src/base/bytes.h"
#include "src/rpc/client.h"

#define CK_CRI_PATH 96u /* room for such a path */

struct ck_cri {
	const char *endpoint; /* $CONTAINER_RUNTIME_ENDPOINT, else crikeepd's socket */
	/* "v1" or "v1alpha2"; NULL: v1, or v1alpha2 if the runtime has no v1 */
	const char *api;
};
extern struct ck_cri ck_cri;
/* --endpoint, --api, and the options of every command */
extern const struct argp_child ck_cri_children[];

/* ck_cri_endpoint - the one that is asked */
const char *ck_cri_endpoint(void);
/* ck_cri_connect - a client of the endpoint, or NULL after an error message */
struct ck_client *ck_cri_connect(void);
/* ck_cri_path - "/runtime.v1.RuntimeService/Version" for "Version". Return: @buf */
const char *ck_cri_path(const char *rpc, char buf[CK_CRI_PATH]);
/* ck_cri_newer_than_server - the call failed because the server has not even heard of v1; from now
 * on v1alpha2 is asked for */
bool ck_cri_newer_than_server(const struct ck_unary *call);

struct ck_cri_pod { /* container, image: NULL if no container is created */
	const char *name, *namespace, *uid, *runtime_handler;
	const char *container, *image;
	uint32_t attempt, container_attempt;
	bool host_network;
};
/* The same pod always makes the same bytes. Out of memory, the program ends. */
void ck_cri_make_sandbox(const struct ck_cri_pod *pod, struct ck_bytes *ret_request);
void ck_cri_make_container(const struct ck_cri_pod *pod, const char *sandbox_id,
			   struct ck_bytes *ret_request);

/* ck_cri_read_text - the last field @number of a message, as a string; free it. NULL: there is
 * none, or @message is malformed */
char *ck_cri_read_text(const void *message, size_t len, uint32_t number);
#endif
