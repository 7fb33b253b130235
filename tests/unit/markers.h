/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MARKERS_H
#define CK_TESTS_MARKERS_H
/*
 * Requests carry secrets: in env values, args, annotations and mount sources, and runtimes quote
 * them in their errors. A marker of 32 bytes stands for each; it is looked for as it is,
 * escaped, cut, in hexadecimal and in base64.
 */
#include <stdbool.h>
#include <stddef.h>

#define MARKER_LEN 32

enum marker {
	MARKER_ENV,
	MARKER_ARG,
	MARKER_ANNOTATION,
	MARKER_MOUNT,
	MARKER_POD_ANNOTATION,
	MARKER_ERROR,
	MARKER_COMMAND,
	MARKER_ESCAPED, /* begins with a quote, a newline and a backslash; its words are short */
	MARKERS
};

const char *marker_text(enum marker marker);
/* marker_in - what it stands for ("an env value"), if any form of a marker, or half of it, is in
 * there; NULL: none is */
const char *marker_in(const void *bytes, size_t len);
/* marker_in_files - "PATH holds an arg", good until the next call; NULL: no file below @dir does.
 * @skip: a path, or NULL */
const char *marker_in_files(const char *dir, const char *skip, unsigned *ret_files);
/* marker_control - would each marker be found there in each of its forms? */
bool marker_control(const char *dir);
#endif
