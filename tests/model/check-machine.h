/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEL_CHECK_MACHINE_H
#define CK_TESTS_MODEL_CHECK_MACHINE_H
#include "cache/machine/machine.h"

/* false: @why says what is wrong */
bool check_machine(const struct ck_machine *m, char *why, size_t size);
#endif
