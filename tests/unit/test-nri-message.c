/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of NRI by the names of their fields: what is written is what protobuf-c reads, for every
 * field there is; what it wrote is read; and nothing that is set is passed over in silence. */
#include <inttypes.h>
#include <string.h>

#include "tests/unit/harness.h"

#include "hooks/wire/nri.pb-c.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/crikeep-nri.h"
#include "tests/unit/message-text.h"

static const struct {
	enum ck_nri_type type;
	const ProtobufCMessageDescriptor *descriptor;
} types[] = {
	{ CK_NRI_POD_SANDBOX, &ck__nri__pod_sandbox__descriptor },
	{ CK_NRI_CONTAINER, &ck__nri__container__descriptor },
	{ CK_NRI_RESOURCES, &ck__nri__linux_resources__descriptor },
	{ CK_NRI_ADJUSTMENT, &ck__nri__container_adjustment__descriptor },
	{ CK_NRI_OWNERS, &ck__nri__owning_plugins__descriptor },
};

static char *text_of(struct ck_nri_message *message, const ProtobufCMessageDescriptor *descriptor)
{
	const void *bytes;
	size_t len;
	struct ck_error err = { 0 };
	if (ck_nri_message_bytes(message, &bytes, &len, &err) < 0)
		fail_msg("%s", err.text);
	return message_text(descriptor, bytes, len);
}

/* ---- every field ----------------------------------------------------------------------------- */

/* Plays every field of a type: writes it and what it is in message_text(), or reads it. */
struct play {
	FILE *lines;    /* of message_text(); NULL: read */
	unsigned next;  /* each value is another number */
	unsigned leave; /* the number of the value that is not read; 0: none */
	char left[256]; /* and its path */
};

static bool is_wrapper(const ProtobufCFieldDescriptor *field)
{
	const ProtobufCMessageDescriptor *inner = field->descriptor;
	return field->type == PROTOBUF_C_TYPE_MESSAGE &&
	       !strncmp(inner->short_name, "Optional", strlen("Optional"));
}

static bool is_map(const ProtobufCFieldDescriptor *field)
{
	const ProtobufCMessageDescriptor *inner = field->descriptor;
	return field->type == PROTOBUF_C_TYPE_MESSAGE && inner->n_fields == 2 &&
	       strstr(inner->short_name, "Entry");
}

/* one value: @path for the functions, @line as message_text() writes it, @name for what is left */
static void play_value(struct play *play, struct ck_nri_message *at,
		       const ProtobufCFieldDescriptor *field, const char *path, const char *line,
		       size_t i, const char *name)
{
	char text[16];
	int64_t number = ++play->next, read;
	if (field->type == PROTOBUF_C_TYPE_BOOL)
		number = 1;
	snprintf(text, sizeof(text), "%u", play->next);
	if (play->next == play->leave && !*play->left) {
		snprintf(play->left, sizeof(play->left), "%s", name);
		return;
	}
	if (!play->lines && field->type == PROTOBUF_C_TYPE_STRING) {
		const char *found = ck_nri_get_text(at, path, i);
		assert_non_null(found);
		assert_string_equal(found, text);
	} else if (!play->lines) {
		assert_int_equal(ck_nri_get_number(at, path, i, &read), 1);
		assert_int_equal(read, number);
	} else if (field->type == PROTOBUF_C_TYPE_STRING) {
		ck_nri_put_text(at, path, text);
		fprintf(play->lines, "%s: %s\n", line, text);
	} else {
		ck_nri_put_number(at, path, number);
		if (field->type == PROTOBUF_C_TYPE_BOOL)
			fprintf(play->lines, "%s: true\n", line);
		else
			fprintf(play->lines, "%s: %" PRIi64 "\n", line, number);
	}
}

static void play_all(struct play *play, struct ck_nri_message *at,
		     const ProtobufCMessageDescriptor *type, const char *prefix, const char *line,
		     const char *name);

static struct ck_nri_message *item(const struct play *play, struct ck_nri_message *at,
				   const char *path, size_t i)
{
	struct ck_nri_message *item =
		play->lines ? ck_nri_put_item(at, path) : ck_nri_get_item(at, path, i);
	assert_non_null(item);
	return item;
}

static void play_list(struct play *play, struct ck_nri_message *at,
		      const ProtobufCFieldDescriptor *field, const char *path, const char *line,
		      const char *name)
{
	const ProtobufCMessageDescriptor *inner = field->descriptor;
	char deeper[512];
	for (size_t i = 0; i < 5; i++) { /* more than the first room of a list */
		if (is_map(field)) {
			struct ck_nri_message *pair = item(play, at, path, i);
			bool text = inner->fields[0].type == PROTOBUF_C_TYPE_STRING;
			FILE *lines = play->lines, *none = lines ? fopen("/dev/null", "w") : NULL;
			char key[16], of_key[256], of_value[256];
			snprintf(of_key, sizeof(of_key), "%s.key", name);
			snprintf(of_value, sizeof(of_value), "%s.value", name);
			play->lines = none; /* the key stands in the line of the value */
			play_value(play, pair, &inner->fields[0], "key", "", 0, of_key);
			play->lines = lines;
			if (none)
				fclose(none);
			snprintf(key, sizeof(key), "%u", play->next);
			/* message_text() knows texts as keys only */
			snprintf(deeper, sizeof(deeper), "%s{%s}", line, text ? key : "?");
			if (inner->fields[1].type == PROTOBUF_C_TYPE_MESSAGE)
				play_all(play, item(play, pair, "value", 0),
					 inner->fields[1].descriptor, "", deeper, of_value);
			else
				play_value(play, pair, &inner->fields[1], "value", deeper, 0,
					   of_value);
		} else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
			snprintf(deeper, sizeof(deeper), "%s[%zu]", line, i);
			play_all(play, item(play, at, path, i), inner, "", deeper, name);
		} else {
			snprintf(deeper, sizeof(deeper), "%s[%zu]", line, i);
			play_value(play, at, field, path, deeper, i, name);
		}
	}
	if (!play->lines)
		assert_int_equal(ck_nri_get_count(at, path), 5);
}

static void play_all(struct play *play, struct ck_nri_message *at,
		     const ProtobufCMessageDescriptor *type, const char *prefix, const char *line,
		     const char *name)
{
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		const ProtobufCMessageDescriptor *inner = field->descriptor;
		char path[256], deeper[512], whole[256];
		snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", field->name);
		snprintf(whole, sizeof(whole), "%s%s%s", name, *name ? "." : "", field->name);
		snprintf(deeper, sizeof(deeper), "%s%s%s%s", line, *line ? "." : "", field->name,
			 is_wrapper(field) ? ".value" : "");
		if (field->label == PROTOBUF_C_LABEL_REPEATED)
			play_list(play, at, field, path, deeper, whole);
		else if (is_wrapper(field) &&
			 inner->fields[0].label == PROTOBUF_C_LABEL_REPEATED)
			play_list(play, at, &inner->fields[0], path, deeper, whole);
		else if (is_wrapper(field))
			play_value(play, at, &inner->fields[0], path, deeper, 0, whole);
		else if (field->type == PROTOBUF_C_TYPE_MESSAGE)
			play_all(play, at, inner, path, deeper, whole);
		else
			play_value(play, at, field, path, deeper, 0, whole);
	}
}

/* every field of @t, written; its lines are *ret_lines */
static struct ck_nri_message *filled(size_t t, char **ret_lines)
{
	size_t size;
	struct play play = { .lines = open_memstream(ret_lines, &size) };
	struct ck_nri_message *message = ck_nri_message_new(types[t].type);
	assert_non_null(message);
	play_all(&play, message, types[t].descriptor, "", "", "");
	fclose(play.lines);
	return message;
}

static void every_field_is_written(void **state)
{
	(void)state;
	for (size_t t = 0; t < CK_COUNT(types); t++) {
		char *lines;
		struct ck_nri_message *message = filled(t, &lines);
		if (types[t].type != CK_NRI_OWNERS) { /* see play_list() */
			char *text = text_of(message, types[t].descriptor);
			assert_string_equal(text, lines);
			free(text);
		}
		free(lines);
		ck_nri_message_free(message);
	}
}

/* every field of @t, packed by protobuf-c */
static uint8_t *packed(size_t t, size_t *ret_len)
{
	char *lines;
	const void *bytes;
	struct ck_nri_message *message = filled(t, &lines);
	struct ck_error err;
	assert_int_equal(ck_nri_message_bytes(message, &bytes, ret_len, &err), 0);
	ProtobufCMessage *base =
		protobuf_c_message_unpack(types[t].descriptor, NULL, *ret_len, bytes);
	assert_non_null(base);
	uint8_t *again = malloc(*ret_len);
	assert_int_equal(protobuf_c_message_pack(base, again), *ret_len);
	protobuf_c_message_free_unpacked(base, NULL);
	ck_nri_message_free(message);
	free(lines);
	return again;
}

/* all values but number @leave are read. Return: how many there are */
static unsigned read_but_one(size_t t, const uint8_t *bytes, size_t len, unsigned leave)
{
	struct play play = { .leave = leave };
	struct ck_nri_message *message;
	struct ck_error err;
	assert_int_equal(ck_nri_message_read(types[t].type, bytes, len, &message, &err), 0);
	play_all(&play, message, types[t].descriptor, "", "", "");
	assert_int_equal(ck_nri_message_check(message, &err), leave ? -CK_EFAILED : 0);
	if (leave) { /* a message of which nothing was read stands for all in it */
		const char *named = strstr(err.text, ": ") + 2;
		char *end = strstr(err.text, " is set, and was not read");
		assert_non_null(end);
		*end = '\0';
		assert_memory_equal(play.left, named, strlen(named));
	}
	ck_nri_message_free(message);
	return play.next;
}

static void every_field_is_read_or_named(void **state)
{
	(void)state;
	for (size_t t = 0; t < CK_COUNT(types); t++) {
		size_t len;
		uint8_t *bytes = packed(t, &len);
		unsigned last = read_but_one(t, bytes, len, 0);
		assert_true(last > 5);
		for (unsigned leave = 1; leave <= last; leave++)
			read_but_one(t, bytes, len, leave);
		free(bytes);
	}
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void a_pod_is_built(void **state)
{
	(void)state;
	struct ck_nri_message *pod = ck_nri_message_new(CK_NRI_POD_SANDBOX);
	ck_nri_put_text(pod, "id", "p1");
	ck_nri_put_text(pod, "name", "web-\xff");
	ck_nri_put_text(pod, "uid", NULL);
	ck_nri_put_text(pod, "namespace", "");
	ck_nri_put_pair(pod, "labels", "app", "web");
	ck_nri_put_pair(pod, "annotations", "empty", NULL);
	ck_nri_put_number(pod, "pid", 0);
	ck_nri_put_text(pod, "ips", "10.0.0.1");
	ck_nri_put_text(pod, "ips", "fd00::1");
	ck_nri_put_number(pod, "linux.pod_overhead.memory.limit", 0);
	ck_nri_put_number(pod, "linux.resources.cpu.quota", -1);
	struct ck_nri_message *ns = ck_nri_put_item(pod, "linux.namespaces");
	ck_nri_put_text(ns, "type", "network");
	ck_nri_put_text(ns, "path", "/run/netns/1");
	char *text = text_of(pod, &ck__nri__pod_sandbox__descriptor);
	assert_string_equal(text, "id: p1\n"
				  "name: web-\xEF\xBF\xBD\n"
				  "labels{app}: web\n"
				  "annotations{empty}: \n"
				  "linux.pod_overhead.memory.limit: {}\n"
				  "linux.namespaces[0].type: network\n"
				  "linux.namespaces[0].path: /run/netns/1\n"
				  "linux.resources.cpu.quota.value: -1\n"
				  "ips[0]: 10.0.0.1\n"
				  "ips[1]: fd00::1\n");
	free(text);
	ck_nri_message_free(pod);
}

/* an adjustment, as a plugin in C would write it */
static struct ck_nri_message *adjusted(void)
{
	Ck__Nri__KeyValue set = CK__NRI__KEY_VALUE__INIT, removed = CK__NRI__KEY_VALUE__INIT;
	Ck__Nri__KeyValue *env[] = { &set, &removed };
	Ck__Nri__OptionalInt64 zero = CK__NRI__OPTIONAL_INT64__INIT;
	Ck__Nri__OptionalString none = CK__NRI__OPTIONAL_STRING__INIT;
	Ck__Nri__LinuxMemory memory = CK__NRI__LINUX_MEMORY__INIT;
	Ck__Nri__LinuxPids pids = CK__NRI__LINUX_PIDS__INIT;
	Ck__Nri__LinuxResources resources = CK__NRI__LINUX_RESOURCES__INIT;
	Ck__Nri__LinuxContainerAdjustment linux_part = CK__NRI__LINUX_CONTAINER_ADJUSTMENT__INIT;
	Ck__Nri__ContainerAdjustment whole = CK__NRI__CONTAINER_ADJUSTMENT__INIT;
	Ck__Nri__POSIXRlimit limit = CK__NRI__POSIXRLIMIT__INIT, *limits[] = { &limit };
	uint8_t bytes[256];
	struct ck_nri_message *message;
	struct ck_error err;
	set.key = (char *)"A";
	set.value = (char *)"1";
	removed.key = (char *)"-B";
	memory.limit = &zero;
	resources.memory = &memory;
	resources.pids = &pids;
	resources.blockio_class = &none;
	linux_part.resources = &resources;
	limit.type = (char *)"RLIMIT_CORE";
	limit.has_hard = 1;
	limit.hard = UINT64_MAX;
	whole.env = env;
	whole.n_env = 2;
	whole.rlimits = limits;
	whole.n_rlimits = 1;
	whole.linux = &linux_part;
	size_t len = ck__nri__container_adjustment__pack(&whole, bytes);
	assert_true(len < sizeof(bytes));
	assert_int_equal(ck_nri_message_read(CK_NRI_ADJUSTMENT, bytes, len, &message, &err), 0);
	return message;
}

static void zero_is_not_nothing(void **state)
{
	(void)state;
	struct ck_nri_message *message = adjusted(), *limit;
	int64_t number = 7;
	struct ck_error err;
	assert_int_equal(ck_nri_get_count(message, "env"), 2);
	assert_string_equal(ck_nri_get_text(ck_nri_get_item(message, "env", 1), "key", 0), "-B");
	assert_null(ck_nri_get_text(ck_nri_get_item(message, "env", 1), "value", 0));
	assert_null(ck_nri_get_item(message, "env", 2));
	assert_null(ck_nri_get_text(ck_nri_get_item(message, "env", 2), "key", 0));
	assert_int_equal(
		ck_nri_get_number(message, "linux.resources.memory.limit", 0, &number), 1);
	assert_int_equal(ck_nri_get_number(message, "linux.resources.memory.limit", 0, NULL), 1);
	assert_int_equal(ck_nri_get_number(message, "linux.resources.memory.swap", 0, NULL), 0);
	assert_int_equal(number, 0);
	assert_int_equal(
		ck_nri_get_number(message, "linux.resources.memory.swap", 0, &number), 0);
	assert_int_equal(ck_nri_get_number(message, "linux.resources.pids.limit", 0, &number), 1);
	assert_string_equal(ck_nri_get_text(message, "linux.resources.blockio_class", 0), "");
	assert_null(ck_nri_get_text(message, "linux.resources.rdt_class", 0));
	assert_null(ck_nri_get_text(message, "linux.cgroups_path", 0));
	limit = ck_nri_get_item(message, "rlimits", 0);
	assert_int_equal(ck_nri_get_number(limit, "hard", 0, &number), 1);
	assert_int_equal((uint64_t)number, UINT64_MAX);
	/* the first variable has not been read, nor has the limit's type */
	assert_int_equal(ck_nri_message_check(message, &err), -CK_EFAILED);
	assert_string_equal(err.text,
			    "ContainerAdjustment: env is set, and was not read");
	limit = ck_nri_get_item(message, "env", 0);
	assert_string_equal(ck_nri_get_text(limit, "key", 0), "A");
	assert_int_equal(ck_nri_message_check(message, &err), -CK_EFAILED);
	assert_string_equal(err.text,
			    "ContainerAdjustment: env.value is set, and was not read");
	assert_string_equal(ck_nri_get_text(limit, "value", 0), "1");
	assert_int_equal(ck_nri_message_check(message, &err), -CK_EFAILED);
	assert_string_equal(err.text,
			    "ContainerAdjustment: rlimits.type is set, and was not read");
	assert_string_equal(
		ck_nri_get_text(ck_nri_get_item(message, "rlimits", 0), "type", 0), "RLIMIT_CORE");
	assert_int_equal(ck_nri_message_check(message, &err), 0);
	ck_nri_message_free(message);
}

static void a_later_nri_is_named(void **state)
{
	(void)state;
	/* linux (6) with field 31, a text */
	static const char bytes[] = "\x32\x04\xfa\x01\x01x";
	struct ck_nri_message *message;
	struct ck_error err;
	assert_int_equal(ck_nri_message_read(CK_NRI_ADJUSTMENT, bytes, sizeof(bytes) - 1, &message,
					     &err),
			 0);
	assert_null(ck_nri_get_text(message, "linux.cgroups_path", 0));
	assert_int_equal(ck_nri_message_check(message, &err), -CK_EFAILED);
	assert_string_equal(err.text, "ContainerAdjustment: linux.field 31, of a later NRI is set, "
				      "and was not read");
	ck_nri_message_free(message);
}

/* ---- what fails ------------------------------------------------------------------------------ */

static void wrong_paths_are_named(void **state)
{
	(void)state;
	enum { TEXT, NUMBER, PAIR, ITEM };
	static const struct {
		int how;
		const char *path, *why;
		int64_t number;
	} wrong[] = {
		{ TEXT, "nmae", "nmae: NRI has no such field", 0 },
		{ TEXT, "", ": NRI has no such field", 0 },
		{ TEXT, NULL, "NULL: it is no path", 0 },
		{ TEXT, "linux..cgroups_path", "linux..cgroups_path: NRI has no such field", 0 },
		{ TEXT, "linux.cgroups_pth", "linux.cgroups_pth: NRI has no such field", 0 },
		{ TEXT, "name.x", "name.x: there is nothing inside", 0 },
		{ TEXT, "linux.namespaces.type", "linux.namespaces.type: there is nothing inside",
		  0 },
		{ TEXT, "pid", "pid: it is no text", 0 },
		{ TEXT, "linux", "linux: it is no text", 0 },
		{ NUMBER, "name", "name: it is no number", 1 },
		{ NUMBER, "pid", "pid: the number is out of range", -1 },
		{ NUMBER, "pid", "pid: the number is out of range", INT64_C(1) << 32 },
		{ PAIR, "name", "name: it is no message", 0 },
		{ PAIR, "linux.namespaces", "key: NRI has no such field", 0 },
		{ ITEM, "ips", "ips: it is no message", 0 },
	};
	for (size_t i = 0; i < CK_COUNT(wrong); i++) {
		struct ck_nri_message *pod = ck_nri_message_new(CK_NRI_POD_SANDBOX);
		struct ck_error err = { 0 };
		const void *bytes;
		size_t len;
		ck_nri_put_text(pod, "id", "p1");
		if (wrong[i].how == TEXT)
			ck_nri_put_text(pod, wrong[i].path, "x");
		else if (wrong[i].how == NUMBER)
			ck_nri_put_number(pod, wrong[i].path, wrong[i].number);
		else if (wrong[i].how == PAIR)
			ck_nri_put_pair(pod, wrong[i].path, "k", "v");
		else
			assert_null(ck_nri_put_item(pod, wrong[i].path));
		ck_nri_put_text(pod, "another", "of which nothing is said");
		assert_int_equal(ck_nri_message_bytes(pod, &bytes, &len, &err), -CK_EINVAL);
		assert_non_null(strstr(err.text, wrong[i].why));
		assert_null(strstr(err.text, "another"));
		ck_nri_message_free(pod);
	}
}

/* where nothing is set, too */
static void wrong_paths_are_found_when_read(void **state)
{
	(void)state;
	int64_t number;
	for (int i = 0; i < 6; i++) {
		struct ck_nri_message *message = ck_nri_message_new(CK_NRI_ADJUSTMENT);
		struct ck_error err;
		assert_int_equal(ck_nri_message_check(message, &err), 0);
		switch (i) {
		case 0:
			assert_null(ck_nri_get_text(message, "linux.resources.memroy.limit", 0));
			break;
		case 1:
			assert_null(ck_nri_get_text(message, "linux.oom_score_adj", 0));
			break;
		case 2:
			assert_int_equal(ck_nri_get_number(message, "args", 0, &number), 0);
			break;
		case 3:
			assert_null(ck_nri_get_item(message, "args", 0));
			break;
		case 4:
			assert_int_equal(ck_nri_get_count(message, "mount"), 0);
			break;
		default:
			assert_null(ck_nri_get_text(message, "mounts.destination", 0));
			break;
		}
		assert_int_equal(ck_nri_message_check(message, &err), -CK_EINVAL);
		assert_non_null(strstr(err.text, "ContainerAdjustment: "));
		ck_nri_message_free(message);
	}
}

static void rubbish_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *bytes, *why;
	} rubbish[] = {
		{ "\x32", "byte " },               /* cut off */
		{ "\x32\x7f", "byte " },           /* longer than it is */
		{ "\x4a\x02\xff\xfe", "UTF-8" },   /* args */
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "byte " },
		{ "\x33", "byte " },               /* a group */
	};
	struct ck_nri_message *message = NULL;
	struct ck_error err;
	for (size_t i = 0; i < CK_COUNT(rubbish); i++) {
		assert_int_equal(ck_nri_message_read(CK_NRI_ADJUSTMENT, rubbish[i].bytes,
						     strlen(rubbish[i].bytes), &message, &err),
				 -CK_EMALFORMED);
		assert_non_null(strstr(err.text, rubbish[i].why));
		assert_null(message);
	}
	assert_int_equal(ck_nri_message_read((enum ck_nri_type)6, "", 0, &message, &err),
			 -CK_EINVAL);
	assert_int_equal(ck_nri_message_read((enum ck_nri_type)0, "", 0, &message, &err),
			 -CK_EINVAL);
	assert_int_equal(ck_nri_message_read(CK_NRI_OWNERS, NULL, 1, &message, &err), -CK_EINVAL);
	assert_int_equal(ck_nri_message_read(CK_NRI_OWNERS, NULL, 0, NULL, &err), -CK_EINVAL);
}

static void nothing_is_fine(void **state)
{
	(void)state;
	const void *bytes;
	size_t len;
	int64_t number = 1;
	struct ck_error err;
	assert_null(ck_nri_message_new((enum ck_nri_type)99));
	ck_nri_put_text(NULL, "id", "x");
	ck_nri_put_number(NULL, "pid", 1);
	ck_nri_put_pair(NULL, "labels", "k", "v");
	assert_null(ck_nri_put_item(NULL, "linux"));
	assert_null(ck_nri_get_item(NULL, "linux", 0));
	assert_null(ck_nri_get_text(NULL, "id", 0));
	assert_int_equal(ck_nri_get_number(NULL, "pid", 0, &number), 0);
	assert_int_equal(number, 0);
	assert_int_equal(ck_nri_get_count(NULL, "ips"), 0);
	assert_int_equal(ck_nri_message_bytes(NULL, &bytes, &len, &err), -CK_EINVAL);
	assert_int_equal(ck_nri_message_check(NULL, &err), -CK_EINVAL);
	ck_nri_message_free(NULL);
	ck_nri_job_described(NULL, ck_nri_message_new(CK_NRI_CONTAINER));
}

/* whatever allocation fails, the whole fails, and says so */
static void memory_may_end(void **state)
{
	(void)state;
	for (unsigned nth = 1;; nth++) {
		const void *bytes;
		size_t len;
		struct ck_error err = { 0 };
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		struct ck_nri_message *pod = ck_nri_message_new(CK_NRI_POD_SANDBOX), *ns;
		ck_nri_put_text(pod, "id", "p1");
		ck_nri_put_pair(pod, "labels", "app", "web");
		ns = ck_nri_put_item(pod, "linux.namespaces");
		ck_nri_put_text(ns, "type", "network");
		ck_nri_put_text(pod, "ips", "10.0.0.1");
		int r = ck_nri_message_bytes(pod, &bytes, &len, &err);
		bool hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		if (pod)
			assert_int_equal(r, hit ? -CK_ENOMEM : 0);
		ck_nri_message_free(pod);
		if (!hit)
			break;
		assert_true(nth < 100);
	}
	for (unsigned nth = 1;; nth++) {
		struct ck_nri_message *message = adjusted();
		struct ck_error err;
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		ck_nri_get_text(ck_nri_get_item(message, "env", 1), "key", 0);
		int r = ck_nri_message_check(message, &err);
		bool hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_int_equal(r, hit ? -CK_ENOMEM : -CK_EFAILED);
		ck_nri_message_free(message);
		if (!hit)
			break;
	}
}

static void a_message_has_a_bound(void **state)
{
	(void)state;
	struct ck_nri_message *container = ck_nri_message_new(CK_NRI_CONTAINER);
	char *text = test_malloc(1 << 20);
	const void *bytes;
	size_t len;
	struct ck_error err;
	memset(text, 'x', (1 << 20) - 1);
	text[(1 << 20) - 1] = '\0';
	for (int i = 0; i < 65; i++)
		ck_nri_put_text(container, "args", text);
	assert_int_equal(ck_nri_message_bytes(container, &bytes, &len, &err), -CK_ETOOBIG);
	ck_nri_message_free(container);
	test_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_written),
		cmocka_unit_test(every_field_is_read_or_named),
		cmocka_unit_test(a_pod_is_built),
		cmocka_unit_test(zero_is_not_nothing),
		cmocka_unit_test(a_later_nri_is_named),
		cmocka_unit_test(wrong_paths_are_named),
		cmocka_unit_test(wrong_paths_are_found_when_read),
		cmocka_unit_test(rubbish_is_refused),
		cmocka_unit_test(nothing_is_fine),
		cmocka_unit_test(memory_may_end),
		cmocka_unit_test(a_message_has_a_bound),
	};
	return CK_TEST_MAIN(tests);
}
