/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who belongs to which pod. Every entry is in up to three groups: its pod, its uid and, for a
 * container, its sandbox. A pod is a namespace and a name; its group is where slots, runtime names
 * and older attempts are looked for, and where turns wait. Groups are small and are walked. Single
 * entries are found by row number and by runtime id.
 */
#include "cache/machine/machine-int.h"

static size_t index_name(const struct ck_key *key, enum ck_index index, char *buf)
{
	const char *first = index == CK_BY_POD   ? key->pod_namespace
			    : index == CK_BY_UID ? key->pod_uid
						 : key->sandbox_id;
	size_t n = strlen(first);
	memcpy(buf, first, n);
	if (index != CK_BY_POD)
		return n;
	buf[n++] = 0; /* in neither */
	size_t more = strlen(key->pod_name);
	memcpy(buf + n, key->pod_name, more);
	return n + more;
}

struct ck_group *ck_group_find(struct ck_machine *m, enum ck_index index, const char *name,
			       size_t len)
{
	struct ck_group *group = NULL;
	HASH_FIND(hh, m->groups[index], name, (unsigned)len, group);
	return group;
}

static struct ck_group *group_get(struct ck_machine *m, enum ck_index index, const char *name,
				  size_t len)
{
	struct ck_group *group = ck_group_find(m, index, name, len);
	if (group)
		return group;
	group = ck_alloc(sizeof(*group) + len + 1);
	if (!group)
		return NULL;
	group->index = index;
	group->len = len;
	memcpy(group->name, name, len);
	HASH_ADD_KEYPTR(hh, m->groups[index], group->name, (unsigned)len, group);
	if (!group->hh.tbl) {
		free(group);
		return NULL;
	}
	return group;
}

struct ck_group *ck_pod_group(struct ck_machine *m, const struct ck_key *key, bool make)
{
	char name[2 * CK_NAME_MAX_LEN + 2];
	size_t len = index_name(key, CK_BY_POD, name);
	return make ? group_get(m, CK_BY_POD, name, len) : ck_group_find(m, CK_BY_POD, name, len);
}

void ck_group_put(struct ck_machine *m, struct ck_group *group)
{
	if (group->entries || group->turns || group->touched)
		return;
	HASH_DEL(m->groups[group->index], group);
	free(group);
}

struct ck_entry *ck_sandbox_containers(struct ck_machine *m, const char *sandbox_id)
{
	struct ck_group *group = ck_group_find(m, CK_BY_SANDBOX, sandbox_id, strlen(sandbox_id));
	return group ? group->entries : NULL;
}

static void link_leave(struct ck_machine *m, struct ck_entry *e, enum ck_index index)
{
	struct ck_link *link = &e->link[index];
	if (!link->group)
		return;
	DL_DELETE2(link->group->entries, e, link[index].prev, link[index].next);
	ck_group_put(m, link->group);
	*link = (struct ck_link){ 0 };
}

static int link_join(struct ck_machine *m, struct ck_entry *e, enum ck_index index)
{
	char name[2 * CK_NAME_MAX_LEN + 2];
	size_t len = index_name(e->row.key, index, name);
	if (len == 0)
		/* a sandbox is in no sandbox, and entries of unknown uids have nothing in common */
		return 0;
	struct ck_group *group = group_get(m, index, name, len);
	if (!group)
		return -CK_ENOMEM;
	e->link[index].group = group;
	DL_PREPEND2(group->entries, e, link[index].prev, link[index].next);
	return 0;
}

int ck_entry_new(struct ck_machine *m, struct ck_key *key, struct ck_entry **ret_entry)
{
	struct ck_entry *e = CK_NEW(struct ck_entry);
	if (!e || ck_timers_reserve(&m->timers, m->timed + 1) < 0) {
		free(e);
		return -CK_ENOMEM;
	}
	m->timed++;
	m->moves++;
	e->timer.of = CK_TIMER_ENTRY;
	e->row.key = key;
	e->row.id = m->ops.next_id(m->user);
	e->row.origin = CK_ORIGIN_CACHE;
	e->row.created = e->row.changed = e->row.interest = m->now;
	e->changed_seq = m->seq;
	int r = 0;
	HASH_ADD(by_row, m->by_row, row.id, sizeof(e->row.id), e);
	if (!e->by_row.tbl)
		r = -CK_ENOMEM;
	for (int index = 0; index < CK_INDEXES && r == 0; index++)
		r = link_join(m, e, (enum ck_index)index);
	if (r < 0) {
		e->row.key = NULL; /* stays the caller's */
		ck_entry_free(m, e);
		return r;
	}
	*ret_entry = e;
	return 0;
}

/* it is still found by its row number, but no longer by anything else */
void ck_entry_detach(struct ck_machine *m, struct ck_entry *e)
{
	e->detached = true;
	m->moves++;
	for (int index = 0; index < CK_INDEXES; index++)
		link_leave(m, e, (enum ck_index)index);
	if (e->by_object.tbl && !CK_NEVER(!e->row.key))
		HASH_DELETE(by_object, m->by_object[e->row.key->kind], e);
	e->by_object.tbl = NULL;
	ck_timer_unset(&m->timers, &e->timer);
}

void ck_entry_free(struct ck_machine *m, struct ck_entry *e)
{
	ck_entry_detach(m, e);
	if (e->by_row.tbl)
		HASH_DELETE(by_row, m->by_row, e);
	m->timed--;
	ck_row_fini(&e->row);
	free(e->seen);
	free(e);
}

struct ck_entry *ck_machine_entry(struct ck_machine *m, uint64_t row)
{
	struct ck_entry *e = NULL;
	HASH_FIND(by_row, m->by_row, &row, sizeof(row), e);
	return e;
}

struct ck_entry *ck_machine_entries(struct ck_machine *m)
{
	return m->by_row;
}

struct ck_entry *ck_machine_object(struct ck_machine *m, enum ck_kind kind, const char *id)
{
	struct ck_entry *e = NULL;
	HASH_FIND(by_object, m->by_object[kind], id, (unsigned)strlen(id), e);
	return e;
}

/* the key of a container says nothing of a pod */
struct ck_entry *ck_machine_same_key(const struct ck_entry *e, const struct ck_entry *after)
{
	enum ck_index index = e->row.key->kind == CK_CONTAINER ? CK_BY_SANDBOX : CK_BY_POD;
	const struct ck_group *group = e->link[index].group;
	if (CK_NEVER(!group))
		return NULL;
	struct ck_entry *other = after ? after->link[index].next : group->entries;
	while (other && (other == e || !ck_key_same(other->row.key, e->row.key)))
		other = other->link[index].next;
	return other;
}
