/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kind, slot and attempt from the bytes of a create request. Only the few fields of a key are read;
 * the fingerprint covers the rest.
 */
#include <stdio.h>
#include <string.h>

#include "cache/request/key.h"
#include "src/base/wire.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

struct span {
	const char *at; /* into the request or object; NULL: absent */
	size_t len;
};

struct parts { /* of a key, not copied yet */
	uint32_t attempt, sandbox_attempt;
	struct span pod_namespace, pod_name, pod_uid, sandbox_id, container;
};

/* The fields that make a key, by message of CRI; v1 and v1alpha2 have the same numbers. */
struct member {
	uint32_t number; /* 0: the end of the list */
	enum ck_wire_type type;
	const struct member *inside; /* a message; NULL: a part */
	size_t at;
};

#define STRING(number, part) { number, CK_WIRE_BYTES, NULL, offsetof(struct parts, part) }
#define NUMBER(number, part) { number, CK_WIRE_VARINT, NULL, offsetof(struct parts, part) }
#define MESSAGE(number, members) { number, CK_WIRE_BYTES, members, 0 }

static const struct member sandbox_metadata[] = {
	STRING(1, pod_name),
	STRING(2, pod_uid),
	STRING(3, pod_namespace),
	NUMBER(4, sandbox_attempt),
	{ .number = 0 },
};
static const struct member container_metadata[] = {
	STRING(1, container),
	NUMBER(2, attempt),
	{ .number = 0 },
};
static const struct member sandbox_config[] = { MESSAGE(1, sandbox_metadata), { .number = 0 } };
static const struct member container_config[] = { MESSAGE(1, container_metadata), { .number = 0 } };
static const struct member run_pod_sandbox[] = { MESSAGE(1, sandbox_config), { .number = 0 } };
static const struct member create_container[] = {
	STRING(1, sandbox_id),
	MESSAGE(2, container_config),
	MESSAGE(3, sandbox_config),
	{ .number = 0 },
};

/* A second field replaces the first, a second message is merged with the first: reading both into
 * the same parts does that. */
static int read_message(struct ck_wire wire, const struct member *members, struct parts *parts,
			struct ck_error *err)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		const struct member *member = members;
		while (member->number && member->number != field.number)
			member++;
		if (!member->number || member->type != field.type)
			continue;
		void *part = (char *)parts + member->at;
		if (member->inside)
			r = read_message(ck_wire_inside(&wire, &field), member->inside, parts, err);
		else if (member->type == CK_WIRE_BYTES)
			*(struct span *)part = (struct span){ (const char *)field.data, field.len };
		else
			*(uint32_t *)part = (uint32_t)field.value;
		if (r < 0)
			return r;
	}
	return r;
}

/* Every string of a key, and its name in an error text. */
#define KEY_STRINGS(X) \
	X(pod_namespace, "pod namespace") \
	X(pod_name, "pod name") \
	X(pod_uid, "pod uid") \
	X(sandbox_id, "pod sandbox id") \
	X(container, "container name")

static int check_string(const struct span *span, const char *what, struct ck_error *err)
{
	if (span->len > CK_NAME_MAX_LEN)
		return ck_fail(err, CK_ETOOBIG, "%s: %zu bytes, at most %u are possible", what,
			       span->len, CK_NAME_MAX_LEN);
	if (span->len && memchr(span->at, '\0', span->len))
		return ck_fail(err, CK_EMALFORMED, "%s: a NUL byte inside", what);
	return 0;
}

static int require(const struct span *span, const char *path, struct ck_error *err)
{
	return span->len ? 0 : ck_fail(err, CK_EMALFORMED, "%s is missing", path);
}

static const char *copy_string(char **p, const struct span *span)
{
	char *copy = *p;

	if (span->len)
		memcpy(copy, span->at, span->len);
	copy[span->len] = '\0';
	*p += span->len + 1;
	return copy;
}

static int key_new(enum ck_kind kind, const struct parts *parts, struct ck_key **ret_key,
		   struct ck_error *err)
{
	size_t size = sizeof(struct ck_key);
	struct ck_key *key;
	int r;

#define CHECK(member, what) \
	r = check_string(&parts->member, what, err); \
	if (r < 0) \
		return r; \
	size += parts->member.len + 1;
	KEY_STRINGS(CHECK)
#undef CHECK

	key = ck_alloc(size);
	if (!key)
		return ck_nomem(err);
	char *p = (char *)(key + 1);
	key->kind = kind;
	key->attempt = parts->attempt;
#define COPY(member, what) key->member = copy_string(&p, &parts->member);
	KEY_STRINGS(COPY)
#undef COPY
	*ret_key = key;
	return 0;
}

int ck_key_from_request(enum ck_kind kind, const void *bytes, size_t len, struct ck_key **ret_key,
			struct ck_error *err)
{
	struct parts parts = { 0 };
	bool sandbox = kind == CK_SANDBOX;
	int r;

	if (len > CK_REQUEST_MAX)
		return ck_fail(err, CK_ETOOBIG, "a request of %zu bytes, at most %u are possible",
			       len, CK_REQUEST_MAX);
	r = read_message(ck_wire_begin(bytes, len), sandbox ? run_pod_sandbox : create_container,
			 &parts, err);
	if (sandbox) /* a container in it has its own */
		parts.attempt = parts.sandbox_attempt;
	if (r >= 0 && !sandbox)
		r = require(&parts.sandbox_id, "pod_sandbox_id", err);
	if (r >= 0 && !sandbox)
		r = require(&parts.container, "config.metadata.name", err);
	if (r >= 0)
		r = require(&parts.pod_name,
			    sandbox ? "config.metadata.name" : "sandbox_config.metadata.name", err);
	if (r >= 0)
		r = require(&parts.pod_uid,
			    sandbox ? "config.metadata.uid" : "sandbox_config.metadata.uid", err);
	if (r < 0)
		return r;
	return key_new(kind, &parts, ret_key, err);
}

static struct span span_of(const char *s)
{
	return (struct span){ s, s ? strlen(s) : 0 };
}

int ck_key_from_object(const struct ck_object *object, struct ck_key **ret_key,
		       struct ck_error *err)
{
	bool container = object->kind == CK_CONTAINER;
	struct parts parts = {
		.attempt = object->attempt,
		.pod_namespace = span_of(object->pod_namespace),
		.pod_name = span_of(object->pod_name),
		.pod_uid = span_of(object->pod_uid),
		.sandbox_id = span_of(container ? object->sandbox_id : NULL),
		.container = span_of(container ? object->container_name : NULL),
	};

	if (!container && object->kind != CK_SANDBOX)
		return ck_fail(err, CK_EINVAL, "an object that is neither sandbox nor container");
	return key_new(object->kind, &parts, ret_key, err);
}

int ck_key_dup(const struct ck_key *key, struct ck_key **ret_key)
{
	struct parts parts = { .attempt = key->attempt };

#define SPAN(member, what) parts.member = span_of(key->member);
	KEY_STRINGS(SPAN)
#undef SPAN
	return key_new(key->kind, &parts, ret_key, NULL);
}

void ck_key_free(struct ck_key *key)
{
	free(key);
}

bool ck_key_same_slot(const struct ck_key *a, const struct ck_key *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == CK_SANDBOX)
		return !strcmp(a->pod_uid, b->pod_uid) && !strcmp(a->pod_name, b->pod_name) &&
		       !strcmp(a->pod_namespace, b->pod_namespace);
	return !strcmp(a->sandbox_id, b->sandbox_id) && !strcmp(a->container, b->container);
}

bool ck_key_same(const struct ck_key *a, const struct ck_key *b)
{
	return a->attempt == b->attempt && ck_key_same_slot(a, b);
}

bool ck_key_same_runtime_name(const struct ck_key *a, const struct ck_key *b)
{
	return a->kind == b->kind && a->attempt == b->attempt && !strcmp(a->pod_uid, b->pod_uid) &&
	       !strcmp(a->pod_name, b->pod_name) && !strcmp(a->pod_namespace, b->pod_namespace) &&
	       !strcmp(a->container, b->container);
}

const char *ck_key_print(const struct ck_key *key, char *buf, size_t size)
{
	bool sandbox = key->kind == CK_SANDBOX;

	snprintf(buf, size, "%s %s/%s%s%s attempt %u", sandbox ? "sandbox" : "container",
		 key->pod_namespace, key->pod_name, sandbox ? "" : "/", key->container,
		 key->attempt);
	for (char *p = buf; size && *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?'; /* names come from the client: none may control a terminal */
	return buf;
}
