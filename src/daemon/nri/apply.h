/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_APPLY_H
#define CK_DAEMON_NRI_APPLY_H
/*
 * Applies what plugins want to the kubelet's requests, before the runtime gets them. CRI can
 * express less than NRI. A change that it cannot express fails with the names of the plugin and the
 * field; none is dropped in silence. Fields of a later CRI are kept.
 *
 *	annotations, env   set; removed if the request has them. The removal of a variable that
 *	                   the request lacks fails: the image may set it
 *	mounts             binds with the options rw, ro, bind, rbind, rprivate, rslave, rshared;
 *	                   removed if the request has them
 *	args               the whole argv: they become the command, without further args
 *	devices            the host's device of that path, or the one with those numbers at another
 *	                   path; with the same mode and owner
 *	CDI devices, oom_score_adj, and the resources that ck_resources_to_cri() knows
 *
 * Bytes in, bytes out. Only a device with numbers is looked up in /dev and /sys. Errors name
 * fields, keys and devices, never other values.
 */
#include "src/base/bytes.h"
#include "src/base/error.h"

/*
 * ck_apply_adjustment - a CreateContainerRequest with a ContainerAdjustment
 * @owners: its OwningPlugins, as ck_adjust_owners() writes them: the container's own entry is the
 * first
 * @ret_request: appended to. Return: 0, -CK_EINVAL ("plugin 10-a: field Rlimits cannot be applied
 * through CRI"), -CK_EMALFORMED, -CK_ETOOBIG, -CK_ENOMEM
 */
int ck_apply_adjustment(const void *request, size_t len, const void *adjustment,
			size_t adjustment_len, const void *owners, size_t owners_len,
			struct ck_bytes *ret_request, struct ck_error *err);
/* ck_apply_alias - a CreateContainerRequest with the annotation CK_ALIAS_ANNOTATION. @ret_request:
 * appended to */
int ck_apply_alias(const void *request, size_t len, const char *alias, struct ck_bytes *ret_request,
		   struct ck_error *err);
/*
 * ck_apply_update - an UpdateContainerResourcesRequest with the LinuxResources that plugins have
 * agreed on. Fields that LinuxResources lacks (oom_score_adj, annotations) stay. @ret_request:
 * appended to. Return: as ck_resources_to_cri()
 */
int ck_apply_update(const void *request, size_t len, const void *resources, size_t resources_len,
		    struct ck_bytes *ret_request, struct ck_error *err);
/* ck_apply_resources - a plugin's own update: the UpdateContainerResourcesRequest of a
 * LinuxResources. As above */
int ck_apply_resources(const char *container_id, const void *resources, size_t len,
		       struct ck_bytes *ret_request, struct ck_error *err);
#endif
