/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_ATTACKS_H
#define CK_TESTS_ATTACKS_H
/*
 * What one client can do to a server of HTTP/2 and gRPC, with frames that it writes by itself. Each
 * attack is a function that writes one burst of frames, and is called for ever.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/bytes.h"

struct attacker {
	const char *socket;
	int fd;               /* -1: connected anew before the next burst */
	bool reads_nothing;   /* its answers stay in the socket */
	uint32_t next_stream; /* client's streams are odd */
	struct ck_bytes out;  /* the burst */
	unsigned long bursts; /* on this connection */
	bool reached;         /* the burst: something of it came to the socket */
};

struct attack {
	const char *name;
	void (*burst)(struct attacker *attacker);
};
extern const struct attack attacks[];
extern const size_t attacks_n;

/* attack_begin - in a process of its own, until attack_end(). *@ret_bursts: how many have reached
 * the socket so far, in shared memory */
pid_t attack_begin(const struct attack *attack, const char *socket,
		   const volatile unsigned long **ret_bursts);
void attack_end(pid_t pid, const volatile unsigned long *bursts);
#endif
