/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_REDACT_H
#define CK_CACHE_REQUEST_REDACT_H
/*
 * Text from a runtime, CNI or plugin often repeats what the request said. Before it is stored,
 * logged or shown, every string of CK_SCRUB_MIN bytes or more from the request's env values, args,
 * command, annotation values and mount sources becomes "***", and so does every single word of
 * CK_SCRUB_WORD bytes or more (keys, tokens, ids: never prose). Control characters and bad UTF-8
 * become '?'; cut at CK_TEXT_MAX on a character border.
 */
#include "src/crikeep.h"

/* ck_scrub - @request NULL: no request in hand, only words are scrubbed. If memory is gone: "***".
 * Always terminates @out, which has CK_TEXT_MAX + 1 bytes. Longer strings are replaced before
 * shorter ones they contain. */
void ck_scrub(const char *text, enum ck_kind kind, const void *request, size_t len, char *out);
#endif
