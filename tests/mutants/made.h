/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MUTANTS_MADE_H
#define CK_TESTS_MUTANTS_MADE_H
/* What copies by mutate.py are compiled with. */
#include "tests/mutants/mutants.h"

/* is this mutant on? And a note that its place was reached */
#define CK_MUTANT(n) (ck_mutants_reached[n] = 1, ck_mutant_on == (n))

/* A byte for each mutant. It is the file that CK_MUTANTS_REACHED in the environment names, so that
 * what a process reached is known when it was killed, too; without that file, nobody's. */
extern volatile unsigned char *ck_mutants_reached;

extern unsigned char ck_mutants_unwatched[]; /* in list.c, as ck_mutants */
extern const size_t ck_mutants_size;
#endif
