/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_CRI_BUILD_H
#define CK_TESTS_CRI_BUILD_H
/*
 * Create requests, built byte by byte, so that a test can write what no protobuf library would:
 * fields twice, in any order, or of the wrong type. And recorded requests, from CK_TEST_DATA (a
 * directory; otherwise tests/data of the source).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pb { /* a message under construction */
	unsigned char bytes[32768];
	size_t len;
};

static inline void pb_varint(struct pb *pb, uint64_t value)
{
	do
		pb->bytes[pb->len++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
	while (value >>= 7);
}

static inline void pb_number(struct pb *pb, uint32_t field, uint64_t value)
{
	pb_varint(pb, field << 3);
	pb_varint(pb, value);
}

static inline void pb_bytes(struct pb *pb, uint32_t field, const void *bytes, size_t len)
{
	pb_varint(pb, field << 3 | 2);
	pb_varint(pb, len);
	memcpy(pb->bytes + pb->len, bytes, len);
	pb->len += len;
}

static inline void pb_text(struct pb *pb, uint32_t field, const char *text)
{
	pb_bytes(pb, field, text, strlen(text));
}

static inline void pb_message(struct pb *pb, uint32_t field, const struct pb *inner)
{
	pb_bytes(pb, field, inner->bytes, inner->len);
}

/* fields 1 and 2: a map's entry, or an env */
static inline void pb_pair(struct pb *pb, uint32_t field, const char *key, const char *value)
{
	struct pb pair = { .len = 0 };

	pb_text(&pair, 1, key);
	pb_text(&pair, 2, value);
	pb_message(pb, field, &pair);
}

static inline void pb_mount(struct pb *pb, const char *container_path, const char *host_path)
{
	pb_pair(pb, 7, container_path, host_path);
}

/* ---- a sandbox and a container that have all a key needs, and nothing else ------------------- */

static inline void build_sandbox_metadata(struct pb *config, const char *name, const char *uid,
					  const char *ns, uint32_t attempt)
{
	struct pb metadata = { .len = 0 };

	pb_text(&metadata, 1, name);
	pb_text(&metadata, 2, uid);
	pb_text(&metadata, 3, ns);
	if (attempt)
		pb_number(&metadata, 4, attempt);
	pb_message(config, 1, &metadata);
}

static inline void build_container_metadata(struct pb *config, const char *name, uint32_t attempt)
{
	struct pb metadata = { .len = 0 };

	pb_text(&metadata, 1, name);
	if (attempt)
		pb_number(&metadata, 2, attempt);
	pb_message(config, 1, &metadata);
}

/* @config comes after the metadata; NULL: nothing does */
static inline void build_sandbox(struct pb *request, const struct pb *config)
{
	struct pb whole = { .len = 0 };

	request->len = 0;
	build_sandbox_metadata(&whole, "web", "uid-1", "shop", 0);
	if (config) {
		memcpy(whole.bytes + whole.len, config->bytes, config->len);
		whole.len += config->len;
	}
	pb_message(request, 1, &whole);
}

static inline void build_container(struct pb *request, const struct pb *config,
				   const struct pb *sandbox_config)
{
	struct pb whole = { .len = 0 };

	request->len = 0;
	pb_text(request, 1, "sandbox-1");
	build_container_metadata(&whole, "app", 0);
	pb_message(request, 2, &whole);
	if (config)
		pb_message(request, 2, config); /* repeated: merged */
	whole.len = 0;
	build_sandbox_metadata(&whole, "web", "uid-1", "shop", 0);
	pb_message(request, 3, &whole);
	if (sandbox_config)
		pb_message(request, 3, sandbox_config);
}

/* ---- recorded requests ----------------------------------------------------------------------- */

static inline FILE *data_open(const char *name)
{
	const char *data = getenv("CK_TEST_DATA"), *srcdir = getenv("CK_TEST_SRCDIR");
	char path[4096];

	if (!srcdir)
		srcdir = getenv("srcdir");
	if (data)
		snprintf(path, sizeof(path), "%s/%s", data, name);
	else
		snprintf(path, sizeof(path), "%s/tests/data/%s", srcdir ? srcdir : ".", name);
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		abort();
	}
	return f;
}

static inline void load_recorded(const char *name, struct pb *ret_request)
{
	char path[256];

	snprintf(path, sizeof(path), "kubelet-retries/%s", name);
	FILE *f = data_open(path);
	ret_request->len = fread(ret_request->bytes, 1, sizeof(ret_request->bytes), f);
	fclose(f);
}

#endif
