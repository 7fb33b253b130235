/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_SIMULATE_REPORT_H
#define CK_CLI_SIMULATE_REPORT_H
/* The numbers of a simulation, for people and for machines. Times of pods that never became ready
 * count as infinite. */
#include "src/cli/output/print.h"
#include "src/cli/simulate/simulation.h"

/* ck_simulation_percentile - the smallest of @n ascending values that @percent of them do not
 * exceed.
 * Return: it, or UINT64_MAX: infinite, or there is none */
uint64_t ck_simulation_percentile(const uint64_t *values, size_t n, unsigned percent);
/* ck_simulation_report - the table, and what its columns and rows mean; fits into 80 columns */
void ck_simulation_report(FILE *out, const struct ck_simulation_options *options,
			  const struct ck_simulation_result *results, size_t n);
/* ck_simulation_tree - the same and more for ck_tree_print() */
struct json_object *ck_simulation_tree(const struct ck_simulation_options *options,
				       const struct ck_simulation_result *results, size_t n);
#endif
