/* SPDX-License-Identifier: Apache-2.0 */
/* What a mutant of nri.tsv gives to NRI in place of a callback. */
#include "src/crikeep-nri.h"

ck_nri_cb ck_mutant_nobody_waits;

void ck_mutant_nobody_waits(const struct ck_nri_result *result, void *userdata)
{
	(void)result;
	(void)userdata;
}
