/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEL_ORACLE_INT_H
#define CK_TESTS_MODEL_ORACLE_INT_H
/* What the files of the oracle share. */
#include "tests/model/oracle.h"

#define FOR_ENTRIES(e, w) \
	for (struct ck_entry *e = ck_machine_entries((w)->m); e; e = e->by_row.next)
#define FOR_SHADOWS(s, w) \
	for (struct shadow *s = &(w)->shadows[1]; s <= &(w)->shadows[(w)->rows_n]; s++) \
		if (s->alive)
#define FOR_CALLERS(c, w) \
	for (struct caller *c = (w)->callers; c < (w)->callers + WORLD_LABELS; c++) \
		if (c->used && !c->drain)

#define MUST(w, condition, ...) \
	do { \
		if (!(condition)) \
			oracle_fail(w, __VA_ARGS__); \
	} while (0)

/* coverage.c */
void cell(struct world *w, enum cell_row row, enum column col);

/* oracle.c */
enum column column_of(const struct shadow *s);
enum column making_column(const struct shadow *s);
unsigned long row_of(const struct world *w, const struct shadow *s);
struct ck_entry *entry_of(struct world *w, const struct shadow *s);
struct shadow *shadow_of_key(struct world *w, int key);
bool undecided(const struct caller *c);
bool shares(const struct caller *c);
bool live(const struct world *w, const struct caller *c);
bool takes(const struct world *w, const struct caller *c);
bool somebody_takes(const struct world *w, int key, const struct caller *but);
uint64_t waits_until(const struct world *w, const struct caller *c);
int newest_live(struct world *w, int key);
bool somebody_waits(struct world *w, int key);
void oracle_offered(struct world *w, unsigned long row);
bool asking(const struct ck_entry *e, unsigned want);
bool open_or_evicting(enum ck_state state);
bool given_up(const struct shadow *s, const struct ck_entry *e);
bool unchanged(const struct shadow *s, const struct ck_entry *e);
bool object_alive(const struct object *o);
/* begun before it was found in use */
bool destroy_in_flight(struct world *w, const struct shadow *s);
/* or its removal, perhaps: that may have begun before its creation was found (K16) */
bool end_in_flight(struct world *w, const struct shadow *s);
bool removal_in_flight(struct world *w, const struct shadow *s);
bool in_sandbox(struct world *w, const struct shadow *s, const char *id);
struct shadow *shadow_of_object(struct world *w, const struct object *o);
bool ours_uncommitted(struct world *w, const struct object *o);
bool still_exists(struct world *w, const struct shadow *s);
void exempt(struct world *w, const struct shadow *s);

/* oracle-turns.c */
/* does an entry or a caller have its uid and another name? (K9) */
bool uid_has_another_name(struct world *w, const struct caller *c);
void all_unchanged(struct world *w, const char *rule, bool phases);

/* oracle-start.c (K34) */
void oracle_look_at_start(struct world *w, struct shadow *s, const struct ck_entry *e);
void oracle_inspected_start(struct world *w, const struct shadow *s, const struct job *job,
			    enum ck_condition condition);
void oracle_create_beside(struct world *w, const struct caller *c);
/* was another attempt of the slot started, and does it run? */
bool oracle_conflicts_beside(struct world *w, const struct caller *c);
/* is another attempt of the slot being started? */
bool oracle_waits_beside(struct world *w, const struct caller *c);
#endif
