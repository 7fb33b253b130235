/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included first in every source by the build (-include). Everything is compiled hidden; only what crikeep.h declares is
 * visible, and of that libcrikeep.sym exports what it names. So the installed header needs no macro before each function.
 */
#pragma GCC visibility push(default)
#include "src/crikeep.h"
#pragma GCC visibility pop
