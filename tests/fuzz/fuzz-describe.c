/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the status of a pod, the status of a container, and a request. The result is a
 * message that a plugin can read: its first field is the id, and every text in it is UTF-8.
 */
#include <stdlib.h>

#include "hooks/wire/nri.pb-c.h"
#include "src/base/utf8.h"
#include "src/base/wire.h"
#include "src/daemon/nri/describe.h"
#include "tests/fuzz/fuzz.h"

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_message(const ProtobufCMessage *message);

static void check_field(const ProtobufCFieldDescriptor *field, const void *value)
{
	uint32_t c;
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		check_message(*(ProtobufCMessage *const *)value);
	if (field->type != PROTOBUF_C_TYPE_STRING)
		return;
	size_t n = 1;
	for (const char *text = *(char *const *)value; text && *text; text += n)
		check((n = ck_utf8_next(text, &c)) > 0);
}

static void check_message(const ProtobufCMessage *message)
{
	if (!message)
		return;
	check(!message->n_unknown_fields);
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		const void *value = (const char *)message + field->offset;
		const void *quantity = (const char *)message + field->quantifier_offset;
		bool pointers = field->type == PROTOBUF_C_TYPE_MESSAGE ||
				field->type == PROTOBUF_C_TYPE_STRING;
		if (field->label != PROTOBUF_C_LABEL_REPEATED)
			check_field(field, value);
		else if (pointers)
			for (size_t n = 0; n < *(const size_t *)quantity; n++)
				check_field(field,
					    *(const char *const *)value + n * sizeof(void *));
	}
}

static void check_told(int r, struct ck_bytes *bytes, const ProtobufCMessageDescriptor *descriptor)
{
	check(r == 0 || r == -CK_EMALFORMED || r == -CK_ETOOBIG || r == -CK_ENOMEM);
	check(r == 0 || !bytes->p);
	if (r < 0)
		return;
	check(bytes->p[0] == (1 << 3 | CK_WIRE_BYTES));
	ProtobufCMessage *message =
		protobuf_c_message_unpack(descriptor, NULL, bytes->len, bytes->p);
	check(message != NULL);
	check_message(message);
	protobuf_c_message_free_unpacked(message, NULL);
	ck_bytes_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_bytes bytes = { 0 };
	struct ck_error err;

	check_told(ck_describe_pod(data, size, &bytes, &err), &bytes,
		   &ck__nri__pod_sandbox__descriptor);
	check_told(ck_describe_container(data, size, NULL, &bytes, &err), &bytes,
		   &ck__nri__container__descriptor);
	check_told(ck_describe_container(data, size, "\xff", &bytes, &err), &bytes,
		   &ck__nri__container__descriptor);
	check_told(ck_describe_request(data, size, "c1", &bytes, &err), &bytes,
		   &ck__nri__container__descriptor);
	return 0;
}
