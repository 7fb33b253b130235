/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_KEY_H
#define CK_CACHE_REQUEST_KEY_H
/*
 * What a create request is for: kind, slot and attempt, read from its bytes. The slot of a sandbox
 * is (namespace, name, uid); the slot of a container is (pod sandbox id, container name). A
 * container's key also has its pod's name, namespace and uid, because the runtime builds its own
 * name from them. Source: CRI's PodSandboxMetadata and ContainerMetadata.
 */
#include <stdbool.h>
#include "src/crikeep.h"

/* one block of memory with the strings behind it; they are never NULL; free with ck_key_free() */
struct ck_key {
	enum ck_kind kind;
	uint32_t attempt;
	const char *pod_namespace, *pod_name, *pod_uid;
	const char *sandbox_id, *container; /* "" for a sandbox */
};

/* ck_key_from_request - -CK_EMALFORMED (truncated, no metadata, a NUL inside a name), -CK_ETOOBIG,
 * -CK_ENOMEM */
int ck_key_from_request(enum ck_kind kind, const void *bytes, size_t len, struct ck_key **ret_key,
			struct ck_error *err);
/* ck_key_from_object - the key of an object that the runtime lists; NULL members count as "".
 * -CK_EINVAL, -CK_ETOOBIG, -CK_ENOMEM */
int ck_key_from_object(const struct ck_object *object, struct ck_key **ret_key,
		       struct ck_error *err);
int ck_key_dup(const struct ck_key *key, struct ck_key **ret_key);
void ck_key_free(struct ck_key *key);
bool ck_key_same(const struct ck_key *a, const struct ck_key *b);          /* slot and attempt */
bool ck_key_same_slot(const struct ck_key *a, const struct ck_key *b);
/* The runtime refuses a second object with the same one: sandbox (name, namespace, uid, attempt),
 * container (container, pod name, namespace, uid, attempt; not the sandbox). */
bool ck_key_same_runtime_name(const struct ck_key *a, const struct ck_key *b);
/* ck_key_print - "sandbox ns/name attempt 0" or "container ns/name/ctr attempt 1"; for people.
 * Returns @buf */
const char *ck_key_print(const struct ck_key *key, char *buf, size_t size);
#endif
