/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>

#include "src/base/fault.h"

static atomic_uint fault_kinds; /* 0: nothing armed */
static atomic_uint fault_left;
static atomic_bool fault_sticky, fault_happened;

void (*ck_crash_hook)(const char *when, const char *what);

bool ck_fault(enum ck_fault what)
{
	if (!(atomic_load_explicit(&fault_kinds, memory_order_relaxed) & what))
		return false;
	unsigned left = atomic_load(&fault_left);
	if (left == 0) {
		if (!atomic_load(&fault_sticky))
			return false;
	} else {
		atomic_store(&fault_left, left - 1);
		if (left > 1)
			return false;
	}
	atomic_store(&fault_happened, true);
	return true;
}

void ck_fault_arm(unsigned what, unsigned nth, bool sticky)
{
	atomic_store(&fault_kinds, nth ? what : 0);
	atomic_store(&fault_left, nth);
	atomic_store(&fault_sticky, sticky);
	atomic_store(&fault_happened, false);
}

bool ck_fault_hit(void)
{
	return atomic_load(&fault_happened);
}
