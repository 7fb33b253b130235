/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_FUZZ_H
#define CK_TESTS_FUZZ_H
/* The one function of a fuzz target. libFuzzer calls it (make fuzz T=name), or driver.c (make
 * check). Return 0. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#endif
