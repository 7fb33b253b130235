/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_DESCRIBE_H
#define CK_DAEMON_NRI_DESCRIBE_H
/*
 * What plugins are told of a pod or a container: NRI's PodSandbox and Container, made of CRI's
 * answers. CRI itself says too little (no pid, no namespaces, no arguments), so the statuses are
 * asked for with verbose: containerd and CRI-O then add an info "info", JSON with the pid and the
 * OCI runtime spec; containerd adds the CRI config it was made with. That is no part of CRI: what
 * is missing or unreadable there is left out, or taken from the status. Where both tell something,
 * labels and annotations are the status's, as the kubelet gave them; mounts, user and resources are
 * the spec's, which has all of them.
 *
 * Pure: bytes in, bytes out, all of them untrusted. Texts become valid UTF-8 (bad bytes U+FFFD), or
 * a plugin would refuse the whole message. The id is the first field. What comes out may hold
 * secrets: env, args, annotations.
 */
#include "src/base/bytes.h"
#include "src/base/error.h"

/*
 * With nri.adjust before-create, plugins are told of a container before the runtime has chosen its
 * id: under an id of ours, which is written into this annotation and is the container's for plugins
 * from then on. They are not shown the annotation.
 */
#define CK_ALIAS_ANNOTATION "crikeep.io/nri-id"
#define CK_ALIAS_LEN        64u /* hex digits, lower case: as containerd's and CRI-O's ids look */

/*
 * ck_describe_pod - PodSandbox of a PodSandboxStatusResponse
 * @ret_pod: empty before; yours. Return: 0, -CK_EMALFORMED (not the message, or without a status
 * and id), -CK_ENOMEM
 */
int ck_describe_pod(const void *response, size_t len, struct ck_bytes *ret_pod,
		    struct ck_error *err);
/*
 * ck_describe_container - Container of a ContainerStatusResponse; its id is the alias where there
 * is one
 * @sandbox_id: the status does not tell it; NULL: as the info says ("sandboxID"), "" if it does
 * not. Return: as above
 */
int ck_describe_container(const void *response, size_t len, const char *sandbox_id,
			  struct ck_bytes *ret_container, struct ck_error *err);
/*
 * ck_describe_request - Container of a CreateContainerRequest: what is known before it exists. The
 * image's defaults are not: without command and args, there are no args; env is what the request
 * sets
 * @id: what plugins are to call it. Return: 0, -CK_EMALFORMED (not the message, or without a
 * config), -CK_ENOMEM
 */
int ck_describe_request(const void *request, size_t len, const char *id,
			struct ck_bytes *ret_container, struct ck_error *err);
#endif
