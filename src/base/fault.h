/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_FAULT_H
#define CK_BASE_FAULT_H
/*
 * Is it this call's turn to fail? Every allocation and every store call of ours asks; a test arms
 * the n-th. A crash point stands before and after each durable change of state; a test that set
 * ck_crash_hook dies there. In a host's process nothing is ever armed, and a question costs one
 * load.
 */
#include <stdbool.h>

enum ck_fault { CK_FAULT_ALLOC = 1, CK_FAULT_STORE = 2 };

/* ck_fault - true: pretend that this call failed */
bool ck_fault(enum ck_fault what);
/* ck_fault_arm - let the @nth fault point from now fail (1: the next), among the kinds or-ed in
 * @what; 0 disarms. With @sticky all that follow fail too. Process-wide; armed while no other
 * thread runs. */
void ck_fault_arm(unsigned what, unsigned nth, bool sticky);
/* ck_fault_hit - has an armed fault happened since ck_fault_arm()? */
bool ck_fault_hit(void);

/* called with "before" or "after" and what changes, e.g. "CREATING>KEPT"; NULL outside of tests */
extern void (*ck_crash_hook)(const char *when, const char *what);
#endif
