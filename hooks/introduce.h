/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_INTRODUCE_H
#define CK_HOOKS_INTRODUCE_H
/* For a host that learns what its runtime is after ck_nri_open(). */
#include <stdbool.h>

#include "src/crikeep-nri.h"

/*
 * ck_nri_introduce - what plugins that register from now on are told of the runtime
 * @starts_late: it makes the process of a container in StartContainer, so this event has no pid.
 * A plugin that subscribes to it is warned about
 * Return: 0, -CK_ENOMEM
 */
int ck_nri_introduce(struct ck_nri *nri, const char *name, const char *version, bool starts_late);
#endif
