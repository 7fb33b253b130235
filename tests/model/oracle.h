/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEL_ORACLE_H
#define CK_TESTS_MODEL_ORACLE_H
/*
 * The oracle knows the rules. world.c calls it around each event. It compares what the machine
 * shows with what the rules say must follow, and with the world as it is. The first disagreement is
 * kept in world->failure.
 *
 * Between an event and oracle_observe() the shadows show the state before the event, and the
 * machine the state after it.
 */
#include "tests/model/world.h"

void oracle_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void oracle_feeding(struct world *w); /* before each event */
void oracle_observe(struct world *w); /* after each event: moves, new and vanished entries */
void oracle_written(struct world *w); /* the rows are on disk */
void oracle_settling(struct world *w, bool written);
void oracle_settled(struct world *w);
void oracle_round(struct world *w); /* what holds after each round */
void oracle_crashed(struct world *w, bool reboot);
void oracle_restored(struct world *w, const struct ck_row *row, bool same_boot);
void oracle_drained(struct world *w); /* what holds in the end */

/* answers and wants of a round */
void oracle_create(struct world *w, struct caller *c);
void oracle_heard(struct world *w, struct caller *c);
void oracle_wanted(struct world *w, struct ck_entry *e, unsigned want);

/* after the event of that name and before oracle_observe(); ...ing: before the event */
void oracle_begun(struct world *w, struct caller *c, int r, bool expired);
void oracle_draining(struct world *w, struct caller *c, struct object *o, int r);
void oracle_left(struct world *w, struct caller *c);
void oracle_dropped(struct world *w, struct caller *c);
void oracle_unheard(struct world *w, struct caller *c); /* nothing was begun */
void oracle_reported(struct world *w, struct caller *c, bool delivered);
void oracle_finishing(struct world *w, struct caller *c);
void oracle_finished(struct world *w, struct caller *c, int r);
void oracle_failed(struct world *w, struct caller *c, const struct creation *creation, int grpc,
		   int r);
void oracle_lost(struct world *w, struct caller *c);
void oracle_inspected(struct world *w, const struct job *job, enum ck_condition condition);
void oracle_listed_entry(struct world *w, const struct job *job, bool ok);
void oracle_listed(struct world *w, const struct job *job, bool ok);
void oracle_viewed(struct world *w, const struct job *list);
void oracle_destroyed(struct world *w, uint64_t row, int grpc);
void oracle_hooking(struct world *w, uint64_t row, enum ck_hook_event event);
void oracle_hooked(struct world *w, uint64_t row, enum ck_hook_event event, bool agree);
void oracle_seen(struct world *w, struct object *o, enum ck_condition condition, int r);
void oracle_used(struct world *w, struct object *o);
void oracle_starting(struct world *w, struct object *o, int r);
void oracle_stopping(struct world *w, struct object *o, int r);
/* oracle-start.c */
void oracle_start_begun(struct world *w, struct object *o, int r);
void oracle_start_ended(struct world *w, struct object *o, enum ck_start_end end);
void oracle_forgotten(struct world *w, struct object *o);
void oracle_evicted(struct world *w, uint64_t row, bool release, int r);
void oracle_expiring(struct world *w);
void oracle_expired(struct world *w);

bool oracle_shown(struct world *w, const struct object *o); /* would a list show it? */
#endif
