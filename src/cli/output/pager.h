/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_OUTPUT_PAGER_H
#define CK_CLI_OUTPUT_PAGER_H
/*
 * Standard output, and standard error if it is a terminal, through a pager, as git does it. The
 * pager is $CRIKEEP_PAGER, else $PAGER, else less, which prints what fits on the terminal and ends.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ck_pager_start - nothing happens if standard output is no terminal, or no pager can be started */
void ck_pager_start(void);
/* ck_pager_end - standard output was closed: wait until the pager ends. Return: was there one? */
bool ck_pager_end(void);
/* ck_pager_columns - of the terminal on which @out appears, also through a pager; 0: on none */
size_t ck_pager_columns(FILE *out);
#endif
