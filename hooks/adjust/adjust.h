/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_ADJUST_ADJUST_H
#define CK_HOOKS_ADJUST_ADJUST_H
/*
 * What plugins want to change about one container that is created or updated, and about others
 * along with it: merged in the order they answer, with the owner of each field, and a conflict
 * where two want the same. Each plugin sees the container as those before it have changed it. Pure:
 * messages in, messages out.
 *
 * Source: facts of containerd/nri pkg/adaptation/result.go and pkg/api/owners.go at v0.12, its
 * known slips mended:
 * - removing an environment variable, a device or a sysctl nobody added is not lost, and removing
 *   an annotation takes it from the plugin that had set it; what was removed has an owner,
 *   "-NN-name", which keeps others out if somebody had set it before
 * - a limit of a size of huge pages, or of one rlimit, replaces the one the container had
 * - pids are merged like any other resource, evictions are kept (the first reason for a container)
 * - an update that may fail, and fails, leaves nothing of itself behind
 * - fields of a later NRI are carried on; whose they are, and whose rules for devices, is told as
 *   the owner of the field None
 *
 * Answers are untrusted: a text that is not UTF-8 is malformed, because the next plugin could not
 * read it; what all answers to one event take unpacked has a bound (limits.h).
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
/* ck_adjust_others - for replies that can only change others: StopContainer, Synchronize,
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
 * -CK_ENOMEM. After an error the whole is of no use any more
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

/* ck_adjust_is_empty - nobody wants to change the container itself */
bool ck_adjust_is_empty(const struct ck_adjust *adjust);
/* ck_adjust_result - ContainerAdjustment (create) or LinuxResources (update; asked for and
 * changed), appended to @out */
int ck_adjust_result(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err);
/* ck_adjust_owners - OwningPlugins, appended to @out; what concerns the container itself comes
 * first */
int ck_adjust_owners(const struct ck_adjust *adjust, struct ck_bytes *out, struct ck_error *err);
/* ck_adjust_validation - ValidateContainerAdjustmentRequest, appended to @out. @plugins: "NN-name"
 * of those that were asked */
int ck_adjust_validation(const struct ck_adjust *adjust, const void *pod, size_t pod_len,
			 const char *const *plugins, size_t n, struct ck_bytes *out,
			 struct ck_error *err);

/* Changes of other containers, in the order they were first named. In what one plugin asks for by
 * itself (SYNCHRONIZE, UPDATE_CONTAINERS), the last word on a field counts. Borrowed until the next
 * reply */
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
/* ck_adjust_failed - UpdateContainersResponse with those others[@i] of which @failed[@i] is true
 * and failure is not ignored */
int ck_adjust_failed(struct ck_adjust *adjust, const bool *failed, struct ck_bytes *out,
		     struct ck_error *err);
struct ck_adjust_eviction {
	const char *container_id, *reason, *plugin;
};
size_t ck_adjust_evictions_n(const struct ck_adjust *adjust);
struct ck_adjust_eviction ck_adjust_eviction(const struct ck_adjust *adjust, size_t i);
#endif
