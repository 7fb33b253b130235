/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MUTANTS_MUTANTS_H
#define CK_TESTS_MUTANTS_MUTANTS_H
/* The mutants that are compiled into this program (README.md), and which of them is on. */
#include <stdbool.h>
#include <stddef.h>

struct ck_mutant {
	const char *name, *rule;
};
extern const struct ck_mutant ck_mutants[]; /* from 1; ends with a name of NULL */

/* its place in ck_mutants; 0: the product as it is. At the start of the program CRIKEEP_BREAK in
 * the environment names it. */
extern unsigned ck_mutant_on;
/* ck_mutant_choose - turn on the mutant @name, or none with NULL; false: there is none of this
 * name, and nothing changes. For use while no other thread runs. */
bool ck_mutant_choose(const char *name);
unsigned ck_mutant_count(void);
#endif
