/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_REQUEST_REDACT_H
#define CK_CACHE_REQUEST_REDACT_H
/*
 * Text from a runtime, CNI or plugin often repeats what the request said. Before it is stored,
 * logged or shown, a list decides what may stay. Everything else becomes "***".
 *
 * What may stay:
 * - the words of words.c, whole or as the parts of a name like RunPodSandbox;
 * - numbers with or without a unit, ids of 64 hex digits, and UUIDs;
 * - the names, ids, image and runtime handler of the entry itself, where they stand as whole words,
 *   and the directories of the runtimes, of the kubelet and of CNI;
 * - the name of a plugin at the beginning of the text ("plugin 10-name: ..."), which the operator
 *   has chosen: base64 in it is not looked for;
 * - blanks and the punctuation of prose, a few in a row.
 *
 * What does not stay although it is on the list:
 * - two neighbours that are neighbours in a value of the request, too. Only the words count, so
 *   quotes, escapes, blanks and case between and in them change nothing;
 * - a number that has CK_REDACT_MIN digits of a value in a row, also in groups ("1,234,567"), and
 *   an id or a plugin's name that has six characters of one in either case;
 * - eight hexadecimal digits that are a piece of a value's bytes in hexadecimal, wherever it is cut
 *   and whatever else is in the number or id; and neighbours that have such digits together;
 * - three neighbours that are three bytes of a value in decimal numbers;
 * - a word of CK_REDACT_LONG letters or more that is a whole value, or all that follows its '='.
 * A single shorter word stays ("true", "default", "device"), and so do fewer digits: they tell
 * nothing, and a text without such words cannot be read. Six hexadecimal digits, three bytes, are
 * in an id of the runtime by chance.
 *
 * A value is every string of the request but the entry's names and the keys of maps: env, args,
 * mounts, annotations, labels, sysctls and all others. Without the request, only the list decides.
 */
#include "src/crikeep.h"

struct ck_known { /* what is known of the entry; zeroed: nothing */
	enum ck_kind kind;
	const void *request; /* NULL: not at hand */
	size_t len;
	const char *const *names; /* names and ids, several separated by ' '; each may be NULL */
	size_t n;
};

/* ck_redact - @known: NULL is allowed. @out has CK_TEXT_MAX + 1 bytes; it gets printable ASCII,
 * always terminated and cut to CK_TEXT_MAX bytes. It is "***" if memory is gone or the request is
 * malformed */
void ck_redact(const char *text, const struct ck_known *known, char *out);
#endif
