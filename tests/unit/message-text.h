/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_MESSAGE_TEXT_H
#define CK_TESTS_MESSAGE_TEXT_H
/*
 * A message as text, one line for each value: "linux.resources.memory.limit.value: 5", "args[1]:
 * -v". A message without any value is "name: {}"; a map's entry has its key in its name,
 * "labels{app}: web". In the order of the .proto file.
 */
#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

/* message_text - to be freed; aborts if @bytes are no such message, or have fields that it does not
 * know */
char *message_text(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len);
/* has_line - does @text have exactly this line? */
bool has_line(const char *text, const char *line);
#endif
