/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block of digests: its bytes, the order of the names in it, and the names as text.
 *
 *	kind (1)  { flags (1)  path_len (1)  key_len (4, little endian)  tail (2)
 *		    path  key  digest (16) } ...
 */
#include <stdio.h>
#include <string.h>

#include "cache/request/cri.pb-c.h"
#include "cache/request/digests.h"

#define DIGEST_HEAD 8u /* bytes of a digest before its path */
/* printed bytes of one key; the name of a Kubernetes annotation has at most 317 */
#define KEY_SHOWN  320u
#define STEP_LONG  0x80 /* set in the first byte of a field number: three more follow */

bool ck_field_name_step(struct ck_field_name *name, uint32_t number)
{
	unsigned size = number < STEP_LONG ? 1 : 4;

	if (name->path_len + size > sizeof(name->path))
		return false;
	unsigned char *p = name->path + name->path_len;
	if (size == 1) {
		p[0] = (unsigned char)number;
	} else {
		p[0] = (unsigned char)(STEP_LONG | number >> 24);
		p[1] = (unsigned char)(number >> 16);
		p[2] = (unsigned char)(number >> 8);
		p[3] = (unsigned char)number;
	}
	name->path_len = (unsigned char)(name->path_len + size);
	return true;
}

/* The number at *@at, which moves behind it; 0: ck_field_name_step() writes no such number. */
static uint32_t take_step(const struct ck_field_name *name, unsigned *at)
{
	const unsigned char *p = name->path + *at;

	if (p[0] < STEP_LONG) {
		*at += 1;
		return p[0];
	}
	if (*at + 4 > name->path_len)
		return 0;
	uint32_t number =
		(uint32_t)(p[0] & 0x1f) << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	*at += 4;
	return p[0] < 0xa0 && number >= STEP_LONG ? number : 0;
}

static bool same_element(const struct ck_field_name *a, const struct ck_field_name *b)
{
	return a->path_len == b->path_len && !memcmp(a->path, b->path, sizeof(a->path)) &&
	       a->keyed == b->keyed && a->key_len == b->key_len &&
	       (!a->key_len || !memcmp(a->key, b->key, a->key_len));
}

bool ck_field_name_under(const struct ck_field_name *name, const struct ck_field_name *top)
{
	if (same_element(name, top))
		return !top->tail[0] || !memcmp(name->tail, top->tail, sizeof(top->tail));
	return !top->keyed && name->path_len > top->path_len &&
	       !memcmp(name->path, top->path, top->path_len);
}

bool ck_field_name_is(const struct ck_field_name *name, const char *path)
{
	size_t len = strlen(path);

	return name->path_len == len && !memcmp(name->path, path, len);
}

/* ---- names as text --------------------------------------------------------------------------- */

struct text {
	char *buf;
	size_t size, len; /* len: of the whole text, even if it does not fit */
};

static void add(struct text *text, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++, text->len++)
		if (text->len + 1 < text->size)
			text->buf[text->len] = s[i];
}

static void add_step(struct text *text, const ProtobufCFieldDescriptor *field, uint32_t number)
{
	char unknown[16];

	if (text->len)
		add(text, ".", 1);
	if (field) {
		add(text, field->name, strlen(field->name));
		return;
	}
	int n = snprintf(unknown, sizeof(unknown), "#%u", number);
	add(text, unknown, (size_t)n);
}

static void add_key(struct text *text, const struct ck_field_name *name)
{
	static const char hex[] = "0123456789abcdef";
	size_t begin = text->len;

	add(text, "[", 1);
	for (uint32_t i = 0; i < name->key_len; i++) {
		unsigned char c = name->key[i];
		if (text->len - begin > KEY_SHOWN) {
			add(text, "...", 3);
			break;
		}
		if (c >= 0x20 && c < 0x7f && c != '\\')
			add(text, (const char *)&c, 1);
		else
			add(text, (char[]){ '\\', 'x', hex[c >> 4], hex[c & 15] }, 4);
	}
	add(text, "]", 1);
}

/* The field @number of *@type, or NULL if it is unknown. *@type becomes the type of the message in
 * that field, or NULL. */
static const ProtobufCFieldDescriptor *go_down(const ProtobufCMessageDescriptor **type,
					       uint32_t number)
{
	const ProtobufCFieldDescriptor *field =
		*type ? protobuf_c_message_descriptor_get_field(*type, number) : NULL;

	*type = field && field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : NULL;
	return field;
}

size_t ck_field_name_print(enum ck_kind kind, const struct ck_field_name *name, char *buf,
			   size_t size)
{
	const ProtobufCMessageDescriptor *type =
		kind == CK_SANDBOX ? &ck__cri__run_pod_sandbox_request__descriptor
				   : &ck__cri__create_container_request__descriptor;
	struct text text = { buf, size, 0 };

	for (unsigned at = 0; at < name->path_len;) {
		uint32_t number = take_step(name, &at);
		if (!number)
			break;
		add_step(&text, go_down(&type, number), number);
	}
	if (name->keyed)
		add_key(&text, name);
	for (unsigned i = 0; i < sizeof(name->tail) && name->tail[i]; i++)
		add_step(&text, go_down(&type, name->tail[i]), name->tail[i]);
	if (size)
		buf[text.len < size ? text.len : size - 1] = '\0';
	return text.len;
}

/* ---- the block ------------------------------------------------------------------------------- */

size_t ck_field_digest_size(const struct ck_field_name *name)
{
	return DIGEST_HEAD + name->path_len + name->key_len + CK_DIGEST_BYTES;
}

unsigned char *ck_field_digest_write(unsigned char *p, const struct ck_field_name *name,
				     unsigned char flags)
{
	*p++ = (unsigned char)(flags | (name->keyed ? CK_DIGEST_KEYED : 0));
	*p++ = name->path_len;
	for (unsigned i = 0; i < 4; i++)
		*p++ = (unsigned char)(name->key_len >> (8 * i));
	memcpy(p, name->tail, sizeof(name->tail));
	p += sizeof(name->tail);
	memcpy(p, name->path, name->path_len);
	p += name->path_len;
	if (name->key_len)
		memcpy(p, name->key, name->key_len);
	return p + name->key_len;
}

bool ck_digests_begin(struct ck_digests *digests, const unsigned char *block, size_t len)
{
	if (len < CK_DIGESTS_HEAD || (block[0] != CK_SANDBOX && block[0] != CK_CONTAINER))
		return false;
	*digests =
		(struct ck_digests){ block + CK_DIGESTS_HEAD, block + len, (enum ck_kind)block[0] };
	return true;
}

static bool name_is_sound(const struct ck_field_name *name)
{
	if (!name->path_len || (name->key_len && !name->keyed) || (name->tail[0] && !name->keyed))
		return false;
	for (unsigned at = 0; at < name->path_len;)
		if (!take_step(name, &at))
			return false;
	return name->tail[0] < STEP_LONG && name->tail[1] < STEP_LONG &&
	       (name->tail[0] || !name->tail[1]);
}

int ck_digests_next(struct ck_digests *digests, struct ck_field_digest *ret_digest)
{
	const unsigned char *p = digests->p;
	size_t left = (size_t)(digests->end - p);
	struct ck_field_digest digest = { 0 };

	if (!left)
		return 0;
	if (left < DIGEST_HEAD + CK_DIGEST_BYTES)
		return -CK_EDAMAGED;
	left -= DIGEST_HEAD + CK_DIGEST_BYTES;
	digest.flags = p[0];
	digest.name.keyed = digest.flags & CK_DIGEST_KEYED;
	digest.name.path_len = p[1];
	digest.name.key_len =
		(uint32_t)p[2] | (uint32_t)p[3] << 8 | (uint32_t)p[4] << 16 | (uint32_t)p[5] << 24;
	memcpy(digest.name.tail, p + 6, sizeof(digest.name.tail));
	if (digest.flags & ~CK_DIGEST_FLAGS || digest.name.path_len > sizeof(digest.name.path) ||
	    digest.name.path_len > left || digest.name.key_len > left - digest.name.path_len)
		return -CK_EDAMAGED;
	p += DIGEST_HEAD;
	memcpy(digest.name.path, p, digest.name.path_len);
	digest.name.key = p + digest.name.path_len;
	digest.bytes = digest.name.key + digest.name.key_len;
	if (!name_is_sound(&digest.name))
		return -CK_EDAMAGED;
	digests->p = digest.bytes + CK_DIGEST_BYTES;
	*ret_digest = digest;
	return 1;
}

bool ck_digests_check(const unsigned char *block, size_t len)
{
	struct ck_digests digests;
	struct ck_field_digest digest,
		before = { .flags = 0 }; /* an empty name: the first of all */
	unsigned n = 0;
	int r;

	if (!ck_digests_begin(&digests, block, len))
		return false;
	while ((r = ck_digests_next(&digests, &digest)) > 0) {
		if (n++ >= CK_FIELDS_MAX || ck_field_name_order(&before.name, &digest.name) > 0)
			return false;
		before = digest;
	}
	return r == 0;
}
