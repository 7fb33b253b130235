/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_H2_LIFE_H
#define CK_TESTS_H2_LIFE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * h2_lives - feeds what a peer sends to a server that answers gRPC calls, or to a client that has
 * made three, several times: at once, and in pieces. It aborts if what is told depends on how the
 * bytes were cut, a stream is not told its end once, or something is queued for streams that are
 * gone.
 */
void h2_lives(bool server, const uint8_t *data, size_t size);
#endif
