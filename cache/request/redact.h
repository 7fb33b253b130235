/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_REDACT_H
#define CK_CACHE_REQUEST_REDACT_H
/*
 * Text from a runtime, CNI or plugin often repeats what the request said. Before it is stored,
 * logged or shown, "***" replaces every string of CK_REDACT_MIN bytes or more from the request's
 * env values, args, command, annotation values and mount sources, and every single word of
 * CK_REDACT_WORD bytes or more (a key, a token or an id; prose has no such words). Control
 * characters and bad UTF-8 become '?'. The text is cut to CK_TEXT_MAX bytes, between two
 * characters.
 */
#include "src/crikeep.h"

/* ck_redact - @request NULL: there is none at hand, so only long words are replaced. Without memory
 * the whole text becomes "***". @out has CK_TEXT_MAX + 1 bytes and is always terminated. Of
 * overlapping strings nothing shows */
void ck_redact(const char *text, enum ck_kind kind, const void *request, size_t len, char *out);
#endif
