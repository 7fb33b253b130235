/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods and containers that plugins know, found by the runtime's id or by the id that plugins
 * know. An object leaves the index when nobody will ask for it any more; dispatches and deliveries
 * may hold it for longer.
 */
#include "hooks/nri-int.h"
#include "src/base/wire.h"

struct ck_nri_object *ck_nri_object_find(struct ck_nri *nri, enum ck_kind kind, const char *id)
{
	struct ck_nri_object *object = NULL;
	if (!id || !*id)
		return NULL;
	HASH_FIND(by_id, nri->by_id, id, strlen(id), object);
	if (!object)
		HASH_FIND(by_nri_id, nri->by_nri_id, id, strlen(id), object);
	return object && object->kind == kind ? object : NULL;
}

struct ck_nri_object *ck_nri_object_ref(struct ck_nri_object *object)
{
	if (object)
		object->refs++;
	return object;
}

void ck_nri_object_unref(struct ck_nri_object *object)
{
	if (!object || --object->refs)
		return;
	struct ck_recipient *recipient, *next;
	LL_FOREACH_SAFE (object->recipients, recipient, next)
		free(recipient);
	ck_blob_unref(object->description);
	free(object->id);
	free(object->nri_id);
	free(object->sandbox_id);
	free(object->name);
	free(object);
}

/* what it is called while nobody has described it: id, name, uid, namespace */
static int describe_by_key(struct ck_nri_object *object, const struct ck_told *told)
{
	struct ck_bytes bytes = { 0 };
	int r = ck_bytes_field_text(&bytes, 1, object->nri_id);
	if (object->kind == CK_SANDBOX) {
		if (r == 0 && told)
			r = ck_bytes_field_text(&bytes, 2, told->pod_name);
		if (r == 0 && told)
			r = ck_bytes_field_text(&bytes, 3, told->pod_uid);
		if (r == 0 && told)
			r = ck_bytes_field_text(&bytes, 4, told->pod_namespace);
	} else {
		if (r == 0)
			r = ck_bytes_field_text(&bytes, 2, object->sandbox_id);
		if (r == 0 && told)
			r = ck_bytes_field_text(&bytes, 3, told->container_name);
	}
	struct ck_blob *blob = r == 0 ? ck_blob_new(bytes.p, bytes.len) : NULL;
	ck_bytes_free(&bytes);
	if (!blob)
		return -CK_ENOMEM;
	ck_blob_unref(object->description);
	object->description = blob;
	return 0;
}

static int index_id(struct ck_nri *nri, struct ck_nri_object *object)
{
	HASH_ADD_KEYPTR(by_id, nri->by_id, object->id, strlen(object->id), object);
	return object->by_id.tbl ? 0 : -CK_ENOMEM;
}

static void unindex_id(struct ck_nri *nri, struct ck_nri_object *object)
{
	if (object->by_id.tbl)
		HASH_DELETE(by_id, nri->by_id, object);
	object->by_id.tbl = NULL;
}

/* most have one id, and are found by that */
static int index_nri_id(struct ck_nri *nri, struct ck_nri_object *object)
{
	if (!strcmp(object->id, object->nri_id))
		return 0;
	HASH_ADD_KEYPTR(by_nri_id, nri->by_nri_id, object->nri_id, strlen(object->nri_id), object);
	return object->by_nri_id.tbl ? 0 : -CK_ENOMEM;
}

static void unindex_nri_id(struct ck_nri *nri, struct ck_nri_object *object)
{
	if (object->by_nri_id.tbl)
		HASH_DELETE(by_nri_id, nri->by_nri_id, object);
	object->by_nri_id.tbl = NULL;
}

struct ck_nri_object *ck_nri_object_ensure(struct ck_nri *nri, enum ck_kind kind, const char *id,
					   const struct ck_told *told)
{
	struct ck_nri_object *object = ck_nri_object_find(nri, kind, id);
	if (object)
		return object;
	object = CK_NEW(struct ck_nri_object);
	if (!object)
		return NULL;
	object->refs = 1;
	object->kind = kind;
	object->id = ck_strdup(id);
	object->nri_id = ck_strdup(id);
	object->sandbox_id = ck_strdup(told && told->sandbox_id ? told->sandbox_id : "");
	object->name = ck_strdup("");
	object->entry = told ? told->entry : 0;
	if (!object->id || !object->nri_id || !object->sandbox_id || !object->name ||
	    describe_by_key(object, told) < 0 || index_id(nri, object) < 0) {
		ck_nri_object_unref(object);
		return NULL;
	}
	DL_PREPEND(nri->objects, object);
	return object;
}

void ck_nri_object_forget(struct ck_nri *nri, struct ck_nri_object *object)
{
	if (object->gone)
		return;
	object->gone = true;
	nri->not_created -= !*object->id;
	unindex_id(nri, object);
	unindex_nri_id(nri, object);
	DL_DELETE(nri->objects, object);
	ck_nri_object_unref(object);
}

bool ck_nri_object_is_in(const struct ck_nri_object *container, const struct ck_nri_object *pod)
{
	return container && pod && container->kind == CK_CONTAINER && pod->kind == CK_SANDBOX &&
	       !strcmp(container->sandbox_id, pod->id);
}

void ck_nri_objects_free(struct ck_nri *nri)
{
	struct ck_nri_object *object, *next;
	while (nri->objects)
		ck_nri_object_forget(nri, nri->objects);
	DL_FOREACH_SAFE (nri->ended, object, next)
		ck_nri_object_unref(object);
	nri->ended = NULL;
}

/* ---- before it is created (H7) --------------------------------------------------------------- */

int ck_nri_object_not_created(struct ck_nri *nri, struct ck_nri_object *object, const char *name,
			      uint32_t attempt)
{
	char *copy = ck_strdup(name);
	if (!copy)
		return -CK_ENOMEM;
	unindex_id(nri, object);
	object->id[0] = '\0';
	nri->not_created++;
	free(object->name);
	object->name = copy;
	object->attempt = attempt;
	return index_nri_id(nri, object);
}

struct ck_nri_object *ck_nri_object_find_not_created(struct ck_nri *nri, const struct ck_told *told)
{
	if (!nri->not_created || told->kind != CK_CONTAINER || !told->sandbox_id ||
	    !told->container_name)
		return NULL;
	struct ck_nri_object *object;
	DL_FOREACH (nri->objects, object)
		if (!*object->id && object->attempt == told->attempt &&
		    !strcmp(object->sandbox_id, told->sandbox_id) &&
		    !strcmp(object->name, told->container_name))
			return object;
	return NULL;
}

int ck_nri_object_created(struct ck_nri *nri, struct ck_nri_object *object, const char *id)
{
	char *copy = ck_strdup(id), *none = object->id;
	if (!copy)
		return -CK_ENOMEM;
	object->id = copy;
	if (index_id(nri, object) < 0) {
		object->id = none;
		free(copy);
		return -CK_ENOMEM;
	}
	free(none);
	object->described = false; /* only the request has been described so far */
	nri->not_created--;
	return 0;
}

static struct ck_nri_object *copy_of(const struct ck_nri_object *object)
{
	struct ck_nri_object *copy = CK_NEW(struct ck_nri_object);
	if (!copy)
		return NULL;
	copy->refs = 1;
	copy->kind = object->kind;
	copy->id = ck_strdup("");
	copy->nri_id = ck_strdup(object->nri_id);
	copy->sandbox_id = ck_strdup(object->sandbox_id);
	copy->name = ck_strdup(object->name);
	copy->attempt = object->attempt;
	copy->description = ck_blob_ref(object->description);
	copy->ours = copy->gone = true;
	if (copy->id && copy->nri_id && copy->sandbox_id && copy->name)
		return copy;
	ck_nri_object_unref(copy);
	return NULL;
}

/* It has another id than the one plugins were asked about: the runtime has created it for an
 * earlier request, about which nobody was asked. What they were asked about never comes to be, and
 * this one they do not know. */
static int split_off_asked(struct ck_nri *nri, struct ck_nri_object *object)
{
	struct ck_nri_object *asked = NULL;
	struct ck_recipient *recipient;
	struct ck_plugin *plugin;
	LL_FOREACH (object->recipients, recipient) {
		if (!recipient->told || !ck_recipient_consulted(recipient))
			continue;
		asked = asked ? asked : copy_of(object);
		struct ck_recipient *told =
			asked ? ck_recipient_add(asked, recipient->plugin) : NULL;
		if (!told) {
			ck_nri_object_unref(asked);
			return -CK_ENOMEM;
		}
		told->told = true;
	}
	DL_FOREACH (nri->plugins, plugin)
		ck_plugin_unqueue(plugin, object);
	if (!asked)
		return 0;
	LL_FOREACH (object->recipients, recipient)
		recipient->told = recipient->told && !ck_recipient_consulted(recipient);
	object->name[0] = '\0';
	DL_APPEND(nri->ended, asked);
	return 0;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

static int take_description(struct ck_nri *nri, struct ck_nri_object *object, const void *bytes,
			    size_t len, struct ck_error *err)
{
	struct ck_wire wire = ck_wire_begin(bytes, len);
	struct ck_wire_field field;
	const unsigned char *id = NULL;
	size_t id_len = 0;
	uint64_t pid = object->pid;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		if (object->kind == CK_CONTAINER && field.number == CK_NRI_CONTAINER_PID &&
		    field.type == CK_WIRE_VARINT && field.value)
			pid = field.value;
		if (field.number != 1 || field.type != CK_WIRE_BYTES)
			continue;
		id = field.data;
		id_len = field.len;
	}
	if (r < 0)
		return r;
	if (!id_len || id_len > CK_ID_MAX || memchr(id, '\0', id_len))
		return ck_fail(err, CK_EMALFORMED, "a description without an id");
	struct ck_blob *blob = ck_blob_new(bytes, len);
	if (!blob)
		return ck_nomem(err);
	if (strlen(object->nri_id) != id_len || memcmp(object->nri_id, id, id_len)) {
		char *nri_id = ck_strndup((const char *)id, id_len);
		struct ck_nri_object *other =
			nri_id ? ck_nri_object_find(nri, object->kind, nri_id) : NULL;
		if (other == object) /* from the id it was asked about to the runtime's */
			other = NULL;
		if (!nri_id || other || object->gone ||
		    (*object->name && split_off_asked(nri, object) < 0)) {
			free(nri_id);
			ck_blob_unref(blob);
			return other ? ck_fail(err, CK_EMALFORMED,
					       "a description with another object's id")
				     : ck_nomem(err);
		}
		char *before = object->nri_id;
		unindex_nri_id(nri, object);
		object->nri_id = nri_id;
		/* it keeps its old id; without memory it may not be found by that either */
		if (index_nri_id(nri, object) < 0) {
			object->nri_id = before;
			index_nri_id(nri, object);
			free(nri_id);
			ck_blob_unref(blob);
			return ck_nomem(err);
		}
		free(before);
	}
	ck_blob_unref(object->description);
	object->description = blob;
	object->pid = pid;
	return 0;
}

int ck_nri_object_described(struct ck_nri *nri, struct ck_nri_object *object, const void *bytes,
			    size_t len, struct ck_error *err)
{
	int r = take_description(nri, object, bytes, len, err);
	object->described = object->described || r >= 0;
	return r;
}

void ck_nri_object_known(struct ck_nri *nri, struct ck_nri_object *object, const void *bytes,
			 size_t len)
{
	if (bytes && !object->described && !strcmp(object->nri_id, object->id))
		take_description(nri, object, bytes, len, NULL);
}
