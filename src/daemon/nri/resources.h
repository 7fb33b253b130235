/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_RESOURCES_H
#define CK_DAEMON_NRI_RESOURCES_H
/*
 * What a container may use, in CRI's words (LinuxContainerResources) and in NRI's (LinuxResources).
 * CRI knows no difference between 0 and not set, NRI does; oom_score_adj is a resource in CRI, and
 * a field of the container's own in NRI. Pure.
 */
#include "src/base/error.h"
#include "src/base/wire-writer.h"

/*
 * ck_resources_from_cri - the LinuxResources of a LinuxContainerResources; what is 0 or "" there is
 * absent here
 * @ret_resources: added to. Return: 0, -CK_EMALFORMED, -CK_ENOMEM
 */
int ck_resources_from_cri(const void *cri, size_t len, struct ck_bytes *ret_resources,
			  struct ck_error *err);
/*
 * ck_resources_to_cri - the LinuxContainerResources of a LinuxResources. What has no place there is
 * an error that names it, and so is a 0 that is meant, which CRI would read as "leave it"
 * @ret_cri: added to; what is added overrides what was there (but huge pages, which are added).
 * Return: 0, -CK_EINVAL ("field PidsLimit cannot be applied through CRI"), -CK_EMALFORMED,
 * -CK_ENOMEM; @ret_cri is as it was then
 */
int ck_resources_to_cri(const void *resources, size_t len, struct ck_bytes *ret_cri,
			struct ck_error *err);
#endif
