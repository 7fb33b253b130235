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

/* Field numbers of CRI; v1 and v1alpha2 have the same. */
enum {
	RUN_POD_SANDBOX_CONFIG = 1,
	CREATE_CONTAINER_SANDBOX_ID = 1,
	CREATE_CONTAINER_CONFIG = 2,
	CREATE_CONTAINER_SANDBOX_CONFIG = 3,
	CONFIG_METADATA = 1, /* of PodSandboxConfig and of ContainerConfig */
	SANDBOX_METADATA_NAME = 1,
	SANDBOX_METADATA_UID = 2,
	SANDBOX_METADATA_NAMESPACE = 3,
	SANDBOX_METADATA_ATTEMPT = 4,
	CONTAINER_METADATA_NAME = 1,
	CONTAINER_METADATA_ATTEMPT = 2,
};

struct span {
	const char *at; /* into the request or object; NULL: absent */
	size_t len;
};

struct parts { /* of a key, not copied yet */
	uint32_t attempt;
	struct span pod_namespace, pod_name, pod_uid, sandbox_id, container;
};

static void take_string(const struct ck_wire_field *field, struct span *span)
{
	if (field->type == CK_WIRE_BYTES)
		*span = (struct span){ (const char *)field->data, field->len };
}

/* A second field replaces the first, a second message is merged with the first: reading both into
 * the same parts does that. */
static int read_sandbox_metadata(struct ck_wire wire, uint32_t *attempt, struct parts *parts,
				 struct ck_error *err)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number == SANDBOX_METADATA_NAME)
			take_string(&field, &parts->pod_name);
		else if (field.number == SANDBOX_METADATA_UID)
			take_string(&field, &parts->pod_uid);
		else if (field.number == SANDBOX_METADATA_NAMESPACE)
			take_string(&field, &parts->pod_namespace);
		else if (field.number == SANDBOX_METADATA_ATTEMPT && field.type == CK_WIRE_VARINT)
			*attempt = (uint32_t)field.value;
	}
	return r;
}

static int read_container_metadata(struct ck_wire wire, struct parts *parts, struct ck_error *err)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number == CONTAINER_METADATA_NAME)
			take_string(&field, &parts->container);
		else if (field.number == CONTAINER_METADATA_ATTEMPT && field.type == CK_WIRE_VARINT)
			parts->attempt = (uint32_t)field.value;
	}
	return r;
}

static int read_sandbox_config(struct ck_wire wire, uint32_t *attempt, struct parts *parts,
			       struct ck_error *err)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number != CONFIG_METADATA || field.type != CK_WIRE_BYTES)
			continue;
		r = read_sandbox_metadata(ck_wire_inside(&wire, &field), attempt, parts, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_container_config(struct ck_wire wire, struct parts *parts, struct ck_error *err)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number != CONFIG_METADATA || field.type != CK_WIRE_BYTES)
			continue;
		r = read_container_metadata(ck_wire_inside(&wire, &field), parts, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_run_pod_sandbox(struct ck_wire wire, struct parts *parts, struct ck_error *err)
{
	struct ck_wire_field field;
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.number != RUN_POD_SANDBOX_CONFIG || field.type != CK_WIRE_BYTES)
			continue;
		r = read_sandbox_config(ck_wire_inside(&wire, &field), &parts->attempt, parts, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_create_container(struct ck_wire wire, struct parts *parts, struct ck_error *err)
{
	struct ck_wire_field field;
	uint32_t sandbox_attempt; /* not used: the container has its own */
	int r;

	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (field.type != CK_WIRE_BYTES)
			continue;
		int inner = 0;
		if (field.number == CREATE_CONTAINER_SANDBOX_ID)
			take_string(&field, &parts->sandbox_id);
		else if (field.number == CREATE_CONTAINER_CONFIG)
			inner = read_container_config(ck_wire_inside(&wire, &field), parts, err);
		else if (field.number == CREATE_CONTAINER_SANDBOX_CONFIG)
			inner = read_sandbox_config(ck_wire_inside(&wire, &field), &sandbox_attempt,
						    parts, err);
		if (inner < 0)
			return inner;
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
	if (sandbox)
		r = read_run_pod_sandbox(ck_wire_begin(bytes, len), &parts, err);
	else
		r = read_create_container(ck_wire_begin(bytes, len), &parts, err);
	if (r < 0)
		return r;
	if (!sandbox) {
		r = require(&parts.sandbox_id, "pod_sandbox_id", err);
		if (r < 0)
			return r;
		r = require(&parts.container, "config.metadata.name", err);
		if (r < 0)
			return r;
	}
	r = require(&parts.pod_name,
		    sandbox ? "config.metadata.name" : "sandbox_config.metadata.name", err);
	if (r < 0)
		return r;
	r = require(&parts.pod_uid, sandbox ? "config.metadata.uid" : "sandbox_config.metadata.uid",
		    err);
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
