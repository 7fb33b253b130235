/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEL_SCRIPT_H
#define CK_TESTS_MODEL_SCRIPT_H
/* Playing a script that is complete, or that is made while it is played. */
#include "tests/model/history.h"

/* step @i of @h, which may depend on the world; NULL: the script ends */
typedef const struct step *next_step(struct world *w, struct history *h, unsigned i);

/* script_play - play and drain; @cells and @trace may be NULL. false: it ended in the complaint
 * that @h holds */
bool script_play(struct history *h, coverage *cells, next_step *next, FILE *trace);
#endif
