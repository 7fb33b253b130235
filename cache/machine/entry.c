/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of states, reasons and events as text, and freeing a row. */
#include <stdlib.h>

#include "cache/machine/entry.h"

void ck_row_fini(struct ck_row *row)
{
	ck_key_free(row->key);
	ck_record_fini(&row->record);
	ck_shared_result_unref(row->result);
	free(row->told);
	*row = (struct ck_row){ 0 };
}

const char *ck_state_name(enum ck_state state)
{
	switch (state) {
#define STATE_CASE(name, value, to) \
	case CK_STATE_##name: \
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
		/* a creation begins, or a resource was found in the runtime (K27) */
		return to == CK_STATE_CREATING || ck_state_visible(to);
#define STATE_MOVES(name, value, moves) \
	case CK_STATE_##name: \
		return (unsigned)to <= CK_STATE_MAX && ((moves)&1u << to);
		CK_STATES(STATE_MOVES)
#undef STATE_MOVES
	}
	return false;
}

const char *ck_reason_text(enum ck_reason reason)
{
	switch (reason) {
#define REASON_CASE(name, value, text) \
	case CK_REASON_##name: \
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
	case CK_REASON_##name: \
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
	case CK_WHAT_##name: \
		return text;
		CK_WHATS(WHAT_CASE)
#undef WHAT_CASE
	}
	return "?";
}

const char *ck_what_name(enum ck_what what)
{
	switch (what) {
#define WHAT_NAME(name, value, text) \
	case CK_WHAT_##name: \
		return #name;
		CK_WHATS(WHAT_NAME)
#undef WHAT_NAME
	}
	return "?";
}
