/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_DESCRIBE_H
#define CK_DAEMON_NRI_DESCRIBE_H
/*
 * What plugins are told of a pod or a container: NRI's PodSandbox and Container, from CRI's
 * answers. CRI itself says too little (no pid, no namespaces, no arguments). So the statuses are
 * requested with verbose: containerd and CRI-O then add "info", JSON with the pid and the OCI
 * runtime spec. containerd also adds the CRI config of the request. This JSON is no part of CRI:
 * what is missing or cannot be read is left out, or taken from the status. If both have a value,
 * labels and annotations are taken from the status, as the kubelet gave them; mounts, user and
 * resources are taken from the spec, which has all of them.
 *
 * Bytes in, bytes out, and all input is untrusted. Texts are made valid UTF-8 (bad bytes become
 * U+FFFD), or a plugin would refuse the whole message. The id is the first field. The result may
 * contain secrets: env, args, annotations.
 */
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/cri/filter.h" /* CK_ALIAS_ANNOTATION */

#define CK_ALIAS_LEN 64u /* lower case hex digits, like ids of containerd and CRI-O */

/*
 * ck_describe_pod - PodSandbox of a PodSandboxStatusResponse
 * @ret_pod: empty before; yours. Return: 0, -CK_EMALFORMED (not the message, or without a status
 * and id), -CK_ETOOBIG, -CK_ENOMEM
 */
int ck_describe_pod(const void *response, size_t len, struct ck_bytes *ret_pod,
		    struct ck_error *err);
/*
 * ck_describe_container - Container of a ContainerStatusResponse; its id is the alias, if it has
 * one
 * @sandbox_id: the status does not have it. NULL: it is taken from the info ("sandboxID"), else ""
 * Return: as above
 */
int ck_describe_container(const void *response, size_t len, const char *sandbox_id,
			  struct ck_bytes *ret_container, struct ck_error *err);
/*
 * ck_describe_request - Container of a CreateContainerRequest, before it exists. The defaults of
 * the image are unknown: without command and args there are no args, and env is the request's
 * @id: the one that plugins get. Return: 0, -CK_EMALFORMED (not the message, or without a
 * config), -CK_ETOOBIG, -CK_ENOMEM
 */
int ck_describe_request(const void *request, size_t len, const char *id,
			struct ck_bytes *ret_container, struct ck_error *err);
#endif
