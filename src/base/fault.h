/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_FAULT_H
#define CK_BASE_FAULT_H
/*
 * Every allocation and every store call asks whether it is to fail. A test arms the n-th of them.
 * Before and after each durable change of state stands a crash point; a test that sets
 * ck_crash_hook can die there. In a host's process nothing is armed, and asking costs one load.
 */
#include <stdbool.h>

enum ck_fault { CK_FAULT_ALLOC = 1, CK_FAULT_STORE = 2 };

/* ck_fault - true: pretend that this call failed */
bool ck_fault(enum ck_fault what);
/* ck_fault_arm - of the kinds or-ed in @what, the @nth question from now fails (1: the next); 0
 * disarms. With @sticky all that follow fail too. For the whole process; call it while no other
 * thread runs. */
void ck_fault_arm(unsigned what, unsigned nth, bool sticky);
/* ck_fault_hit - has an armed fault happened since ck_fault_arm()? */
bool ck_fault_hit(void);

/* called with "before" or "after" and what changes, e.g. "CREATING>KEPT"; NULL outside of tests */
extern void (*ck_crash_hook)(const char *when, const char *what);
#endif
