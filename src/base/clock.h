/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_CLOCK_H
#define CK_BASE_CLOCK_H
/* The kernel's clocks, in ns. A deadline is on CLOCK_BOOTTIME, as all times of the database are. */
#include <stdint.h>
#include <time.h>

#include "src/base/limits.h"

static inline uint64_t ck_clock_ns(clockid_t clock)
{
	struct timespec ts = { 0 };
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * CK_NS_PER_S + (uint64_t)ts.tv_nsec;
}
#endif
