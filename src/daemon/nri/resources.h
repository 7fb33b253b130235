/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_RESOURCES_H
#define CK_DAEMON_NRI_RESOURCES_H
/*
 * What a container may use, as CRI's LinuxContainerResources and as NRI's LinuxResources. NRI
 * distinguishes 0 and not set, CRI does not. oom_score_adj is a resource in CRI, and a field of the
 * container in NRI. Bytes in, bytes out.
 */
#include "hooks/wire/nri-message.h"
#include "src/base/error.h"

/* the single values of LinuxContainerResources: their names and numbers in CRI, and their paths in
 * LinuxResources */
struct ck_resource {
	const char *name;
	uint32_t cri; /* 0: the end */
	bool text;
	const char *path;
};
extern const struct ck_resource ck_resources[];

/*
 * ck_resources_put - write the values of a LinuxContainerResources into @to, a LinuxResources; a
 * value of 0 or "" is left out. Return: 0, -CK_EMALFORMED
 */
int ck_resources_put(struct ck_nri_message *to, const void *cri, size_t len, struct ck_error *err);
/*
 * ck_resources_from_cri - the same, encoded
 * @ret_resources: appended to. Return: 0, -CK_EMALFORMED, -CK_ETOOBIG, -CK_ENOMEM
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
