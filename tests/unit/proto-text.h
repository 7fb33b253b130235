/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_PROTO_TEXT_H
#define CK_TESTS_PROTO_TEXT_H
/*
 * Messages as a test writes and reads them: the text format of protobuf, as much of it as is
 * needed.
 *
 *	adjust{annotations{key:'k' value:'v'} linux{oom_score_adj{value:-5}}}
 *
 * A map is written as its entries. A number may stand for an enumerator, and instead of a field's
 * name, for one nobody knows: 99:'text', 99:7. Syntax errors abort; they are the test's.
 */
#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

#include "src/base/bytes.h"

/* text_proto - the bytes of @text, appended to @out */
void text_proto(const ProtobufCMessageDescriptor *type, const char *text, struct ck_bytes *out);
/* proto_text - the text of these bytes, with single quotes and one blank between fields; to be
 * freed. "(malformed)" */
char *proto_text(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len);
#endif
