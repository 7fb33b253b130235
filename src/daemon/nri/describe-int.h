/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_DESCRIBE_INT_H
#define CK_DAEMON_NRI_DESCRIBE_INT_H
/*
 * What the files behind describe.h share: describe.c reads CRI's answers, describe-json.c reads the
 * JSON in them. A missing JSON value is NULL, and every function here accepts NULL. A value of an
 * unexpected type counts as missing.
 */
#include <json-c/json_types.h>

#include "hooks/wire/nri-message.h"

/* ck_info_parse - json_object_put() when done. NULL: no JSON, too large (limits.h), or out of
 * memory */
struct json_object *ck_info_parse(const void *text, size_t len);
/* ck_info_at - the value at "a.b.c" below @json, borrowed; its keys have no dots */
struct json_object *ck_info_at(struct json_object *json, const char *path);
/* one key, which may contain dots */
struct json_object *ck_info_key(struct json_object *json, const char *key);
const char *ck_info_text(struct json_object *json, size_t *ret_len);        /* NULL: none */
uint64_t ck_info_number(struct json_object *json);

/* Fields of @to, from one object of an OCI runtime spec, or of CRI's config as JSON. */
/* Container: args, env, user, rlimits */
void ck_info_process(struct ck_nri_message *to, struct json_object *process);
/* Container: mounts, hooks */
void ck_info_outside(struct ck_nri_message *to, struct json_object *spec);
/* LinuxContainer */
void ck_info_linux(struct ck_nri_message *to, struct json_object *oci_linux);
/* LinuxContainer: what runs in it, how */
void ck_info_linux_process(struct ck_nri_message *to, struct json_object *process);
/* LinuxContainer: of a CRI security context */
void ck_info_seccomp_profile(struct ck_nri_message *to, struct json_object *context);
/* Container: of a ContainerConfig */
void ck_info_cdi(struct ck_nri_message *to, struct json_object *config);
/* LinuxPodSandbox */
void ck_info_pod_linux(struct ck_nri_message *to, struct json_object *oci_linux);
/* ck_info_resources - LinuxResources at @path of a LinuxContainerResources; nothing if there is
 * none */
void ck_info_resources(struct ck_nri_message *to, const char *path, struct json_object *cri);
#endif
