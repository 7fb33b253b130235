/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_REPORT_H
#define CK_CLI_SIMULATE_REPORT_H
/* The numbers of a simulation, for people and for machines. A pod that never became ready has an
 * infinite time. */
#include "src/cli/output/print.h"
#include "src/cli/simulate/simulation.h"

/* ck_simulation_percentile - the smallest of @n ascending values that @percent of them do not
 * exceed. Return: this value, or UINT64_MAX if it is infinite or @n is 0 */
uint64_t ck_simulation_percentile(const uint64_t *values, size_t n, unsigned percent);
/* ck_simulation_report - the table and the meaning of its columns and rows, in 80 columns */
void ck_simulation_report(FILE *out, const struct ck_simulation_options *options,
			  const struct ck_simulation_result *results, size_t n);
/* ck_simulation_tree - the same and more, for ck_tree_print() */
struct json_object *ck_simulation_tree(const struct ck_simulation_options *options,
				       const struct ck_simulation_result *results, size_t n);
#endif
