/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_ADJUST_ADJUST_H
#define CK_HOOKS_ADJUST_ADJUST_H
/*
 * What plugins want to change about one container that is created or updated, and about other
 * containers at the same time. Answers are merged in the order in which plugins answer. Each field
 * has an owner; it is a conflict if two plugins set the same field. Each plugin is shown the
 * container as plugins before it have changed it. Messages in, messages out: no I/O, no clock.
 *
 * The behaviour is that of containerd/nri pkg/adaptation/result.go and pkg/api/owners.go at v0.12,
 * with these known errors corrected:
 * - The removal of an environment variable, a device or a sysctl that no plugin added is not lost.
 *   The removal of an annotation takes it over from the plugin that had set it. A removal has an
 *   owner, "-NN-name". It keeps other plugins from setting the item if somebody had set it before.
 * - A limit for a huge page size, or an rlimit, replaces the one the container had.
 * - Pids are merged like other resources. Evictions are kept, with the first reason for a
 *   container.
 * - An update whose failure is ignored changes nothing if it fails.
 * - Fields of a later NRI are passed on. Their owner, and that of rules for devices, is named as
 *   the owner of the field None.
 *
 * Answers are untrusted. A text that is not UTF-8 is malformed, because the next plugin could not
 * read it. The unpacked answers to one event may take only so much memory (limits.h).
 */
#include <stdbool.h>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/mem.h"

struct ck_adjust;
/* ck_adjust_create - for CreateContainer. @container: Container, encoded; copied. -CK_EMALFORMED,
 * -CK_ENOMEM */
int ck_adjust_create(const void *container, size_t len, struct ck_adjust **ret_adjust,
		     struct ck_error *err);
/* ck_adjust_update - for UpdateContainer. @resources: LinuxResources that were asked for */
int ck_adjust_update(const char *container_id, const void *resources, size_t len,
		     struct ck_adjust **ret_adjust, struct ck_error *err);
/* ck_adjust_others - for replies that can only update other containers: StopContainer, Synchronize,
 * UpdateContainers */
int ck_adjust_others(struct ck_adjust **ret_adjust, struct ck_error *err);
void ck_adjust_free(struct ck_adjust *adjust);
CK_AUTO_DEFINE(ck_adjust)

/* ck_adjust_seen - what the next plugin is shown: Container (create) or LinuxResources (update);
 * appended to @out */
int ck_adjust_seen(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err);
/*
 * ck_adjust_reply - one plugin ("NN-name") has answered
 * @reply: CreateContainerResponse, UpdateContainerResponse, StopContainerResponse,
 * SynchronizeResponse, UpdateContainersRequest
 * Return: 0; -CK_ECONFLICT: two plugins want one field, and @err names both and it; -CK_EMALFORMED;
 * -CK_EINVAL (an update or eviction of the container that is being created); -CK_ETOOBIG;
 * -CK_ENOMEM. After an error @adjust cannot be used any more, but has to be freed
 */
enum ck_adjust_reply {
	CK_REPLY_CREATE_CONTAINER,
	CK_REPLY_UPDATE_CONTAINER,
	CK_REPLY_STOP_CONTAINER,
	CK_REPLY_SYNCHRONIZE,
	CK_REPLY_UPDATE_CONTAINERS,
};
int ck_adjust_reply(struct ck_adjust *adjust, enum ck_adjust_reply what, const char *plugin,
		    const void *reply, size_t len, struct ck_error *err);

/* ck_adjust_is_empty - no plugin changes the container itself */
bool ck_adjust_is_empty(const struct ck_adjust *adjust);
/* ck_adjust_result - ContainerAdjustment (create) or LinuxResources (update: the requested ones,
 * with changes), appended to @out */
int ck_adjust_result(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err);
/* ck_adjust_owners - OwningPlugins, appended to @out; the container itself comes first */
int ck_adjust_owners(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err);
/* ck_adjust_validation - ValidateContainerAdjustmentRequest, appended to @out. @plugins: "NN-name"
 * of those that were asked */
int ck_adjust_validation(const struct ck_adjust *adjust, const void *pod, size_t pod_len,
			 const char *const *plugins, size_t n, struct ck_bytes *out,
			 struct ck_error *err);

/* Updates of other containers, in the order in which they were first named. If one plugin asks by
 * itself (SYNCHRONIZE, UPDATE_CONTAINERS) and sets a field twice, the last value counts. Borrowed
 * until the next reply. */
struct ck_adjust_other {
	const char *container_id;
	const char *plugins;   /* "10-a,20-b" */
	const void *resources; /* LinuxResources */
	size_t len;
	bool ignore_failure;
};
size_t ck_adjust_others_n(const struct ck_adjust *adjust);
int ck_adjust_other(struct ck_adjust *adjust, size_t i, struct ck_adjust_other *ret_other,
		    struct ck_error *err);
/* ck_adjust_failed - UpdateContainersResponse with the updates that @failed marks and whose failure
 * is not ignored. @failed has one value for each ck_adjust_other() */
int ck_adjust_failed(struct ck_adjust *adjust, const bool *failed, struct ck_bytes *out,
		     struct ck_error *err);
struct ck_adjust_eviction {
	const char *container_id, *reason, *plugin;
};
size_t ck_adjust_evictions_n(const struct ck_adjust *adjust);
struct ck_adjust_eviction ck_adjust_eviction(const struct ck_adjust *adjust, size_t i);
#endif
