/* SPDX-License-Identifier: Apache-2.0 */
/* crikeepd, all of it, as a function of this program. */
int crikeepd_main(int argc, char **argv);

#define main crikeepd_main
#include "src/daemon/main.c"
