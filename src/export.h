/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included first in every source by the build (-include). Everything is compiled hidden; only what
 * crikeep.h and crikeep-nri.h declare is visible, and of that libcrikeep.sym exports what it names.
 * So the installed headers need no macro before each function.
 */
#pragma GCC visibility push(default)
#include "src/crikeep.h"
#include "src/crikeep-nri.h"
#pragma GCC visibility pop
