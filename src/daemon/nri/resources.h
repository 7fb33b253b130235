/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_RESOURCES_H
#define CK_DAEMON_NRI_RESOURCES_H
/*
 * What a container may use, as CRI's LinuxContainerResources and as NRI's LinuxResources. NRI
 * distinguishes 0 and not set, CRI does not. oom_score_adj is a resource in CRI, and a field of the
 * container in NRI. Bytes in, bytes out.
 */
#include "src/base/error.h"
#include "src/base/wire-writer.h"

/*
 * ck_resources_from_cri - the LinuxResources of a LinuxContainerResources; a value of 0 or "" is
 * left out
 * @ret_resources: appended to. Return: 0, -CK_EMALFORMED, -CK_ENOMEM
 */
int ck_resources_from_cri(const void *cri, size_t len, struct ck_bytes *ret_resources,
			  struct ck_error *err);
/*
 * ck_resources_to_cri - the LinuxContainerResources of a LinuxResources. A field that CRI lacks is
 * an error that names it. So is an explicit 0, which CRI would take for "do not change"
 * @ret_cri: appended to, so that it overrides earlier values (except huge pages, which are added).
 * Return: 0, -CK_EINVAL ("field PidsLimit cannot be applied through CRI"), -CK_EMALFORMED,
 * -CK_ENOMEM; @ret_cri is as it was then
 */
int ck_resources_to_cri(const void *resources, size_t len, struct ck_bytes *ret_cri,
			struct ck_error *err);
#endif
