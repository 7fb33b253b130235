/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEL_WORLD_INT_H
#define CK_TESTS_MODEL_WORLD_INT_H
/* What the files of the world share. */
#include "tests/model/world.h"

#define FOR_ENTRIES(e, w) \
	for (struct ck_entry *e = ck_machine_entries((w)->m); e; e = e->by_row.next)

/* world.c */
struct ck_key *key_of_request(struct world *w, const struct request *req);
void row_copy(struct ck_row *to, const struct ck_row *from);
void row_forget(struct stored *stored);
void write_rows(struct world *w);
bool alive(const struct object *o);
struct object *object_new(struct world *w, int label, const struct request *req, int key,
			  uint64_t row);
void object_gone(struct world *w, struct object *o);
bool name_in_use(const struct world *w, int key);
void job_remove(struct world *w, struct job *job);
void snapshot(struct world *w, struct job *job);
size_t listed_objects(struct world *w, const struct job *job, struct ck_object *o);
void close_round(struct world *w);
void feed(struct world *w);
void fed(struct world *w);
void machine_start(struct world *w);
void machine_end(struct world *w);

/* world-events.c */
struct caller *caller(struct world *w, int label);
#endif
