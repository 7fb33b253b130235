/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an HTTP/2 peer: what begins with the client's preface is fed to a server, all else
 * to a client (h2-life.h). Seeds: crictl's and containerd's side of Version, ListPodSandbox and an
 * error. fuzz-h2-frames makes whole frames.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/h2-life.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	h2_lives(size >= 3 && !memcmp(data, "PRI", 3), data, size);
	return 0;
}
