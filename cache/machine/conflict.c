/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that contradict what is known (K9): one uid has one name, one sandbox has one pod. */
#include "cache/machine/machine-int.h"

/* an entry by which the uid belongs to another name; one uid has one name (K9) */
static struct ck_entry *uid_of_another_name(struct ck_machine *m, const struct ck_key *key)
{
	struct ck_group *uid = ck_group_find(m, CK_BY_UID, key->pod_uid, strlen(key->pod_uid));
	for (struct ck_entry *e = uid ? uid->entries : NULL; e; e = e->link[CK_BY_UID].next)
		if (ck_state_is_current(e->row.state) &&
		    (strcmp(e->row.key->pod_name, key->pod_name) ||
		     strcmp(e->row.key->pod_namespace, key->pod_namespace)))
			return e;
	return NULL;
}

bool ck_uid_has_another_name(struct ck_machine *m, const struct ck_key *key, struct ck_error *err)
{
	struct ck_entry *e = uid_of_another_name(m, key);
	if (!e)
		return false;
	ck_history_add(m, e, CK_WHAT_CONFLICT, 0,
		       "its pod's uid was requested with another name or namespace");
	ck_fail(err, CK_EINVAL, "pod uid %.64s belongs to a pod of another name or namespace",
		key->pod_uid);
	return true;
}

/* Names that the runtime did not tell fit every pod. */
static bool fits(const struct ck_entry *e, const char *known, const char *asked)
{
	return !strcmp(known, asked) || (e->row.origin == CK_ORIGIN_RUNTIME && !*known);
}

/* An evicted entry counts, because it can be found in use and stay. A container of the runtime does
 * not: it says its pod in labels only, and it keeps no key. */
static bool is_of_another_pod(const struct ck_entry *e, const struct ck_key *key)
{
	const struct ck_key *own = e->row.key;
	if (e->row.state == CK_STATE_GONE || e->row.state == CK_STATE_ENDED ||
	    (own->kind == CK_CONTAINER && e->row.origin == CK_ORIGIN_RUNTIME))
		return false;
	return !fits(e, own->pod_namespace, key->pod_namespace) ||
	       !fits(e, own->pod_name, key->pod_name) || !fits(e, own->pod_uid, key->pod_uid);
}

bool ck_sandbox_has_another_pod(struct ck_machine *m, const struct ck_key *key,
				struct ck_error *err)
{
	if (key->kind != CK_CONTAINER)
		return false;
	struct ck_entry *e = ck_machine_object(m, CK_SANDBOX, key->sandbox_id);
	if (!e || !is_of_another_pod(e, key)) {
		e = ck_sandbox_containers(m, key->sandbox_id);
		while (e && !is_of_another_pod(e, key))
			e = e->link[CK_BY_SANDBOX].next;
	}
	if (!e)
		return false;
	const struct ck_key *own = e->row.key;
	char who[3 * CK_NAME_MAX_LEN];
	ck_history_add(m, e, CK_WHAT_CONFLICT, 0, "its sandbox was requested with another pod");
	ck_fail(err, CK_EINVAL, "%s: the sandbox belongs to a pod of another%s%s%s",
		ck_key_print(key, who, sizeof(who)),
		fits(e, own->pod_namespace, key->pod_namespace) ? "" : " namespace",
		fits(e, own->pod_name, key->pod_name) ? "" : " name",
		fits(e, own->pod_uid, key->pod_uid) ? "" : " uid");
	return true;
}
