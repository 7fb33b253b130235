/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plugin puts into a message (the first byte says which, the rest is it): what can be read
 * is written and read again as the same, and what comes of it when two plugins answer it can be
 * read by a third. A host reads all of it by the names of fields. Seeds: answers of Go plugins.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/adjust/adjust.h"
#include "hooks/wire/nri.pb-c.h"
#include "src/base/arena.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"

static const ProtobufCMessageDescriptor *const messages[] = {
	/* the order of enum ck_adjust_reply, then the others */
	&ck__nri__create_container_response__descriptor,
	&ck__nri__update_container_response__descriptor,
	&ck__nri__stop_container_response__descriptor,
	&ck__nri__synchronize_response__descriptor,
	&ck__nri__update_containers_request__descriptor,
	&ck__nri__register_plugin_request__descriptor,
	&ck__nri__configure_response__descriptor,
	&ck__nri__validate_container_adjustment_response__descriptor,
	/* those that a host reads, from CK_NRI_POD_SANDBOX on */
	&ck__nri__pod_sandbox__descriptor,
	&ck__nri__container__descriptor,
	&ck__nri__linux_resources__descriptor,
	&ck__nri__container_adjustment__descriptor,
	&ck__nri__owning_plugins__descriptor,
};
enum { FIRST_READ = 8 };

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* 0 and what it packs to, or what is wrong with it */
static int repack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t size,
		  struct ck_bytes *out)
{
	struct ck_arena arena;
	struct ck_error err;
	void *message;
	ck_arena_init(&arena, CK_NRI_MERGE_MAX);
	int r = ck_unpack(&arena, descriptor, data, size, &message, &err);
	if (r == 0)
		check(ck_pack(message, out, &err) == 0);
	else
		check(err.code == -r && err.text[0]);
	ck_arena_fini(&arena);
	return r;
}

static void check_packing(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
			  size_t size)
{
	CK_AUTO_BYTES struct ck_bytes first = { 0 }, second = { 0 };
	int r = repack(descriptor, data, size, &first);
	check(r == 0 || r == -CK_EMALFORMED || r == -CK_ETOOBIG);
	if (r < 0)
		return;
	check(repack(descriptor, first.p, first.len, &second) == 0);
	check(first.len == second.len && (!first.len || !memcmp(first.p, second.p, first.len)));
}

/* and take it out of @bytes */
static void check_readable(const ProtobufCMessageDescriptor *descriptor, struct ck_bytes *bytes)
{
	CK_AUTO_BYTES struct ck_bytes again = { 0 };
	check(repack(descriptor, bytes->p, bytes->len, &again) == 0);
	bytes->len = 0;
}

enum what { CREATE, UPDATE, OTHERS };

static struct ck_adjust *begin(enum what what)
{
	/* Container: id "c", args ["sleep"], env ["A=B"], a mount on /etc/hosts; LinuxResources:
	 * memory limit 1, pids 7 */
	static const char container[] = "\n\1c\x12\1p\x3a\5sleep\x42\3A=B\x4a\x0c\n\n/etc/hosts";
	static const char resources[] = "\n\4\n\2\10\1\x42\2\10\7";
	struct ck_adjust *adjust = NULL;
	struct ck_error err;
	int r = what == CREATE ? ck_adjust_create(container, sizeof(container) - 1, &adjust, &err)
		: what == UPDATE
			? ck_adjust_update("c", resources, sizeof(resources) - 1, &adjust, &err)
			: ck_adjust_others(&adjust, &err);
	check(r == 0);
	return adjust;
}

static void check_results(struct ck_adjust *adjust, enum what what)
{
	static const char *const plugins[] = { "10-a", "20-b" };
	CK_AUTO_BYTES struct ck_bytes out = { 0 };
	struct ck_error err;
	check(ck_adjust_seen(adjust, &out, &err) == 0);
	check_readable(what == CREATE ? &ck__nri__container__descriptor
				      : &ck__nri__linux_resources__descriptor,
		       &out);
	check(ck_adjust_result(adjust, &out, &err) == 0);
	check(what != CREATE || ck_adjust_is_empty(adjust) == (out.len == 0));
	check_readable(what == CREATE ? &ck__nri__container_adjustment__descriptor
				      : &ck__nri__linux_resources__descriptor,
		       &out);
	check(ck_adjust_owners(adjust, &out, &err) == 0);
	check_readable(&ck__nri__owning_plugins__descriptor, &out);
	if (what == CREATE) {
		check(ck_adjust_validation(adjust, "\n\1p", 3, plugins, CK_COUNT(plugins), &out,
					   &err) == 0);
		check_readable(&ck__nri__validate_container_adjustment_request__descriptor, &out);
	}
	bool *failed = calloc(ck_adjust_others_n(adjust) + 1, sizeof(*failed));
	check(failed != NULL);
	for (size_t i = 0; i < ck_adjust_others_n(adjust); i++) {
		struct ck_adjust_other other;
		check(ck_adjust_other(adjust, i, &other, &err) == 0);
		check(other.container_id && *other.plugins &&
		      (what == OTHERS || strcmp(other.container_id, "c")));
		check(ck_bytes_add(&out, other.resources, other.len) == 0);
		check_readable(&ck__nri__linux_resources__descriptor, &out);
		failed[i] = i % 2 == 0;
	}
	check(ck_adjust_failed(adjust, failed, &out, &err) == 0);
	check_readable(&ck__nri__update_containers_response__descriptor, &out);
	free(failed);
	for (size_t i = 0; i < ck_adjust_evictions_n(adjust); i++) {
		struct ck_adjust_eviction eviction = ck_adjust_eviction(adjust, i);
		check(eviction.container_id && eviction.reason && *eviction.plugin);
	}
}

/* one plugin says it, then a second one, which is agreed or a conflict */
static void check_merge(enum what what, enum ck_adjust_reply kind, const uint8_t *data, size_t size)
{
	struct ck_adjust *adjust = begin(what);
	struct ck_error err;
	for (int i = 0; i < 2; i++) {
		err.text[0] = '\0';
		int r = ck_adjust_reply(adjust, kind, i ? "20-b" : "10-a", data, size, &err);
		if (r < 0) {
			check(r == -CK_EMALFORMED || r == -CK_EINVAL || r == -CK_ETOOBIG ||
			      r == -CK_ECONFLICT);
			check(err.code == -r && err.text[0]);
			break;
		}
		check_results(adjust, what);
	}
	ck_adjust_free(adjust);
}

static void read_all(struct ck_nri_message *message, const ProtobufCMessageDescriptor *type)
{
	int64_t number;
	for (unsigned f = 0; f < type->n_fields; f++) {
		const ProtobufCFieldDescriptor *field = &type->fields[f];
		size_t n = ck_nri_get_count(message, field->name);
		for (size_t i = 0; i < n; i++) {
			if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
				struct ck_nri_message *item =
					ck_nri_get_item(message, field->name, i);
				if (item)
					read_all(item, field->descriptor);
			} else if (field->type == PROTOBUF_C_TYPE_STRING) {
				check(ck_nri_get_text(message, field->name, i) != NULL);
			} else {
				check(ck_nri_get_number(message, field->name, i, &number) == 1);
			}
		}
	}
}

/* what is read by name is all there is, or what is left is named */
static void check_reading(enum ck_nri_type type, const uint8_t *data, size_t size)
{
	struct ck_nri_message *message;
	struct ck_error err = { 0 };
	int r = ck_nri_message_read(type, data, size, &message, &err);
	check(r == 0 || (err.code == -r && err.text[0]));
	if (r < 0)
		return;
	ck_nri_get_text(message, "linux.resources.blockio_class", 0);
	ck_nri_message_free(message);
	check(ck_nri_message_read(type, data, size, &message, &err) == 0);
	read_all(message, messages[FIRST_READ + type - CK_NRI_POD_SANDBOX]);
	r = ck_nri_message_check(message, &err);
	check(r == 0 || r == -CK_ETOOBIG || r == -CK_EINVAL ||
	      (r == -CK_EFAILED && strstr(err.text, "of a later NRI")));
	ck_nri_message_free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	size_t kind = data[0] % CK_COUNT(messages);
	data++;
	size--;
	check_packing(messages[kind], data, size);
	if (kind >= FIRST_READ)
		check_reading((enum ck_nri_type)(kind - FIRST_READ + CK_NRI_POD_SANDBOX), data,
			      size);
	else if (kind == CK_REPLY_CREATE_CONTAINER)
		check_merge(CREATE, CK_REPLY_CREATE_CONTAINER, data, size);
	else if (kind == CK_REPLY_UPDATE_CONTAINER)
		check_merge(UPDATE, CK_REPLY_UPDATE_CONTAINER, data, size);
	else if (kind <= CK_REPLY_UPDATE_CONTAINERS)
		check_merge(OTHERS, (enum ck_adjust_reply)kind, data, size);
	return 0;
}
