/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mutants/mutants.h"

unsigned ck_mutant_on;

unsigned ck_mutant_count(void)
{
	unsigned n = 0;
	while (ck_mutants[n + 1].name)
		n++;
	return n;
}

bool ck_mutant_choose(const char *name)
{
	unsigned i = name ? 1 : 0;
	while (name && ck_mutants[i].name && strcmp(ck_mutants[i].name, name))
		i++;
	if (name && !ck_mutants[i].name)
		return false;
	ck_mutant_on = i;
	return true;
}

__attribute__((constructor)) static void choose_from_environment(void)
{
	const char *name = getenv("CRIKEEP_BREAK");
	if (!name || !*name || ck_mutant_choose(name))
		return;
	fprintf(stderr, "CRIKEEP_BREAK=%s: there is no such mutant\n", name);
	exit(99);
}
