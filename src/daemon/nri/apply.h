/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_APPLY_H
#define CK_DAEMON_NRI_APPLY_H
/*
 * What plugins want, applied to the kubelet's requests before the runtime gets them. CRI can say
 * less than NRI: what it cannot say fails, naming plugin and field, and nothing is left out in
 * silence. Fields of a later CRI survive.
 *
 *	annotations, env     set; removed if the request has them. A variable it has not may be the image's: that fails
 *	mounts               binds: options rw, ro, bind, rbind, rprivate, rslave, rshared; removed if the request has them
 *	args                 the whole argv: they become the command, and there are no further args
 *	devices              those of the host by their path; numbers, mode and owner have to be what the host has there
 *	CDI devices, oom_score_adj, and what ck_resources_to_cri() knows of resources
 *
 * Bytes in, bytes out; only a device given by numbers is looked for in /dev. Errors name fields and
 * keys, never values.
 */
#include "src/base/bytes.h"
#include "src/base/error.h"

/*
 * ck_apply_adjustment - a CreateContainerRequest with a ContainerAdjustment
 * @owners: OwningPlugins of it, as ck_adjust_owners() writes them: the container's own entry is the
 * first
 * @ret_request: added to. Return: 0, -CK_EINVAL ("plugin 10-a: field Rlimits cannot be applied
 * through CRI"), -CK_EMALFORMED, -CK_ETOOBIG, -CK_ENOMEM
 */
int ck_apply_adjustment(const void *request, size_t len, const void *adjustment,
			size_t adjustment_len, const void *owners, size_t owners_len,
			struct ck_bytes *ret_request, struct ck_error *err);
/* ck_apply_alias - a CreateContainerRequest with the annotation CK_ALIAS_ANNOTATION. @ret_request:
 * added to */
int ck_apply_alias(const void *request, size_t len, const char *alias, struct ck_bytes *ret_request,
		   struct ck_error *err);
/*
 * ck_apply_update - an UpdateContainerResourcesRequest with the LinuxResources that came of it What
 * it has and they have not (oom_score_adj, annotations) stays. @ret_request: added to. Return: as
 * ck_resources_to_cri()
 */
int ck_apply_update(const void *request, size_t len, const void *resources, size_t resources_len,
		    struct ck_bytes *ret_request, struct ck_error *err);
/* ck_apply_resources - a plugin's own update: the UpdateContainerResourcesRequest of a
 * LinuxResources. As above */
int ck_apply_resources(const char *container_id, const void *resources, size_t len,
		       struct ck_bytes *ret_request, struct ck_error *err);
#endif
