/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MODEL_SCRIPT_H
#define CK_TESTS_MODEL_SCRIPT_H
/* Playing a script, whether it is written already or made as it goes. */
#include "tests/model/history.h"

/* step @i of @h, or NULL: that was all; it may look at the world first */
typedef const struct step *next_step(struct world *w, struct history *h, unsigned i);

/* script_play - play and drain; @cells, @trace may be NULL. Returns false, and says why in @h, if
 * it ended in a complaint */
bool script_play(struct history *h, coverage *cells, next_step *next, FILE *trace);
#endif
