/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in memory: the tables of states, reasons and events as text, the shared result, and
 * freeing. */
#include "cache/machine/entry.h"
#include "src/base/mem.h"

/* The response CRI defines for both calls has one field: 1, a string, the id. */
#define RESPONSE_ID_TAG 0x0a
#define VARINT_MAX	10u

static size_t varint_put(unsigned char *p, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		p[n++] = (unsigned char)(value | 0x80);
	p[n++] = (unsigned char)value;
	return n;
}

struct ck_made *ck_made_new(const char *id, const void *bytes, size_t len)
{
	size_t id_len = strlen(id);
	unsigned char head[1 + VARINT_MAX] = { RESPONSE_ID_TAG };
	size_t head_len = 0;

	if (!bytes) {
		head_len = 1 + varint_put(head + 1, id_len);
		len = head_len + id_len;
	}
	struct ck_made *made = ck_alloc(sizeof(*made) + len + id_len + 1);
	if (!made)
		return NULL;
	char *behind = (char *)made->bytes + len;
	memcpy(behind, id, id_len);
	made->id = behind;
	made->refs = 1;
	made->len = len;
	if (!bytes) {
		memcpy(made->bytes, head, head_len);
		memcpy(made->bytes + head_len, id, id_len);
	} else if (len) {
		memcpy(made->bytes, bytes, len);
	}
	return made;
}

struct ck_made *ck_made_ref(struct ck_made *made)
{
	if (made)
		__atomic_add_fetch(&made->refs, 1, __ATOMIC_RELAXED);
	return made;
}

void ck_made_unref(struct ck_made *made)
{
	/* what other holders read must not move behind the free */
	if (made && __atomic_sub_fetch(&made->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(made);
}

void ck_row_fini(struct ck_row *row)
{
	ck_key_free(row->key);
	ck_record_fini(&row->record);
	ck_made_unref(row->made);
	free(row->told);
	*row = (struct ck_row){ 0 };
}

const char *ck_state_name(enum ck_state state)
{
	switch (state) {
#define STATE_CASE(name, value, to) \
	case CK_STATE_##name:             \
		return #name;
		CK_STATES(STATE_CASE)
#undef STATE_CASE
	}
	return "?";
}

bool ck_state_may_move(enum ck_state from, enum ck_state to)
{
	switch ((int)from) {
	case 0:
		/* begun; or found in the runtime (K27) */
		return to == CK_STATE_CREATING || to == CK_STATE_COMMITTED;
#define STATE_MOVES(name, value, moves) \
	case CK_STATE_##name:                 \
		return (unsigned)to <= CK_STATE_MAX && ((moves) & 1u << to);
		CK_STATES(STATE_MOVES)
#undef STATE_MOVES
	}
	return false;
}

const char *ck_reason_text(enum ck_reason reason)
{
	switch (reason) {
#define REASON_CASE(name, value, text) \
	case CK_REASON_##name:         \
		return text;
		CK_REASONS(REASON_CASE)
#undef REASON_CASE
	}
	return "?";
}

const char *ck_reason_name(enum ck_reason reason)
{
	switch (reason) {
#define REASON_NAME(name, value, text) \
	case CK_REASON_##name:         \
		return #name;
		CK_REASONS(REASON_NAME)
#undef REASON_NAME
	}
	return "?";
}

const char *ck_what_text(enum ck_what what)
{
	switch (what) {
#define WHAT_CASE(name, value, text) \
	case CK_WHAT_##name:         \
		return text;
		CK_WHATS(WHAT_CASE)
#undef WHAT_CASE
	}
	return "?";
}
