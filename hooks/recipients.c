/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who knows which object. A connection gets into an object's list once, either because it was
 * chosen when the object was committed or because the object was listed when the connection took
 * its snapshot; whoever comes second finds it there. All the promises of "exactly once" (R1, H2)
 * are this one list.
 */
#include "hooks/nri-int.h"
#include "src/base/wire.h"

/* ---- bytes ----------------------------------------------------------------------------------- */

struct ck_blob *ck_blob_new(const void *p, size_t len)
{
	struct ck_blob *blob = ck_alloc(sizeof(*blob) + len);
	if (!blob)
		return NULL;
	blob->refs = 1;
	blob->len = len;
	if (len)
		memcpy(blob->bytes, p, len);
	return blob;
}

struct ck_blob *ck_blob_ref(struct ck_blob *blob)
{
	if (blob)
		blob->refs++;
	return blob;
}

void ck_blob_unref(struct ck_blob *blob)
{
	if (blob && --blob->refs == 0)
		free(blob);
}

void ck_blob_set(struct ck_blob **at, struct ck_blob *blob)
{
	struct ck_blob *old = *at;
	*at = ck_blob_ref(blob);
	ck_blob_unref(old);
}

/* ---- objects --------------------------------------------------------------------------------- */

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
	for (struct ck_recipient *recipient = object->recipients, *next; recipient;
	     recipient = next) {
		next = recipient->next;
		free(recipient);
	}
	ck_blob_unref(object->description);
	free(object->id);
	free(object->nri_id);
	free(object->sandbox_id);
	free(object->name);
	free(object);
}

int ck_nri_object_describe_by_key(struct ck_nri_object *object, const struct ck_told *told)
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
	    ck_nri_object_describe_by_key(object, told) < 0 || index_id(nri, object) < 0) {
		ck_nri_object_unref(object);
		return NULL;
	}
	object->next = nri->objects;
	if (object->next)
		object->next->prev = object;
	nri->objects = object;
	return object;
}

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

void ck_nri_object_forget(struct ck_nri *nri, struct ck_nri_object *object)
{
	if (object->gone)
		return;
	object->gone = true;
	nri->not_created -= !*object->id;
	unindex_id(nri, object);
	unindex_nri_id(nri, object);
	*(object->prev ? &object->prev->next : &nri->objects) = object->next;
	if (object->next)
		object->next->prev = object->prev;
	ck_nri_object_unref(object);
}

int ck_nri_object_described(struct ck_nri *nri, struct ck_nri_object *object, const void *bytes,
			    size_t len, struct ck_error *err)
{
	struct ck_wire wire = ck_wire_begin(bytes, len);
	struct ck_wire_field field;
	const unsigned char *id = NULL;
	size_t id_len = 0;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
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
		if (!nri_id || other || object->gone) {
			free(nri_id);
			ck_blob_unref(blob);
			return other ? ck_fail(err, CK_EMALFORMED,
					       "a description with another object's id")
				     : ck_nomem(err);
		}
		char *before = object->nri_id;
		unindex_nri_id(nri, object);
		object->nri_id = nri_id;
		/* its id so far, by which it may not be found until the next try */
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
	object->described = true;
	return 0;
}

/* ---- recipients --------------------------------------------------------------------------------- */

struct ck_recipient *ck_recipient_find(const struct ck_nri_object *object,
				       const struct ck_plugin *plugin)
{
	struct ck_recipient *recipient = object->recipients;
	while (recipient && recipient->serial != plugin->serial)
		recipient = recipient->next;
	return recipient;
}

struct ck_recipient *ck_recipient_add(struct ck_nri_object *object, struct ck_plugin *plugin)
{
	struct ck_recipient *recipient = CK_NEW(struct ck_recipient);
	if (!recipient)
		return NULL;
	recipient->plugin = plugin;
	recipient->serial = plugin->serial;
	recipient->next = object->recipients;
	object->recipients = recipient;
	return recipient;
}

void ck_recipient_drop(struct ck_nri_object *object, const struct ck_plugin *plugin)
{
	for (struct ck_recipient **at = &object->recipients; *at; at = &(*at)->next) {
		struct ck_recipient *recipient = *at;
		if (recipient->serial != plugin->serial)
			continue;
		*at = recipient->next;
		free(recipient);
		return;
	}
}

void ck_recipients_plugin_gone(struct ck_nri *nri, const struct ck_plugin *plugin)
{
	for (struct ck_nri_object *object = nri->objects; object; object = object->next)
		ck_recipient_drop(object, plugin);
	/* those out of the index live on in dispatches, and in queues, which know connections by
	 * number */
	for (struct ck_dispatch *dispatch = nri->dispatches; dispatch; dispatch = dispatch->next)
		if (dispatch->object)
			ck_recipient_drop(dispatch->object, plugin);
}

/* ---- the cache's seam ------------------------------------------------------------------------ */

/* a container plugins were asked about before it existed (H7) */
static struct ck_nri_object *find_not_created(struct ck_nri *nri, const struct ck_told *told)
{
	if (!nri->not_created || told->kind != CK_CONTAINER || !told->sandbox_id ||
	    !told->container_name)
		return NULL;
	for (struct ck_nri_object *object = nri->objects; object; object = object->next)
		if (!*object->id && object->attempt == told->attempt &&
		    !strcmp(object->sandbox_id, told->sandbox_id) &&
		    !strcmp(object->name, told->container_name))
			return object;
	return NULL;
}

bool ck_plugins_has(const struct ck_nri *nri, const char *name)
{
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_plugin_joined(plugin) && ck_plugin_name_is(plugin->name, name))
			return true;
	return false;
}

/* the name of a required plugin that is absent (H4); NULL: all are there */
const char *ck_plugins_absent(const struct ck_nri *nri)
{
	for (size_t i = 0; i < nri->rules_n; i++)
		if (nri->rules[i].policy == CK_NRI_REQUIRED &&
		    !ck_plugins_has(nri, nri->rules[i].name) && !CK_BROKEN(H4))
			return nri->rules[i].name;
	return NULL;
}

int ck_recipients_add_all(struct ck_nri *nri, struct ck_nri_object *object)
{
	object->ours = true;
	for (struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_plugin_joined(plugin) && !ck_recipient_find(object, plugin) &&
		    !(CK_BROKEN(R6) && object->kind == CK_CONTAINER &&
		      plugin->state != CK_PLUGIN_READY) &&
		    !ck_recipient_add(object, plugin))
			return -CK_ENOMEM;
	return 0;
}

/* the runtime's id of a container that was asked about before it existed */
static int now_created(struct ck_nri *nri, struct ck_nri_object *object, const char *id)
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
	object->described = false; /* that was as it was asked for, not as it is */
	nri->not_created--;
	return 0;
}

static void add_name(char *names, size_t size, const char *name)
{
	size_t len = strlen(names), n = strlen(name);
	if (len + n + 2 > size)
		return; /* cannot be: CK_NRI_PLUGINS_MAX */
	if (len)
		names[len++] = ' ';
	memcpy(names + len, name, n + 1);
}

int ck_recipients_choose(struct ck_nri *nri, const struct ck_told *told, char *names, size_t size)
{
	const char *absent = ck_plugins_absent(nri);
	bool anybody = false;
	names[0] = '\0';
	if (absent) {
		add_name(names, size, absent);
		return 1;
	}
	struct ck_nri_object *object = ck_nri_object_find(nri, told->kind, told->id);
	if (!object)
		object = find_not_created(nri, told);
	if (object && !*object->id && now_created(nri, object, told->id) < 0)
		goto nomem;
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		anybody = anybody || ck_plugin_joined(plugin);
	if (!anybody && !object)
		return 0;
	if (!object)
		object = ck_nri_object_ensure(nri, told->kind, told->id, told);
	if (!object || (!CK_BROKEN(R1) && ck_recipients_add_all(nri, object) < 0))
		goto nomem;
	object->entry = told->entry;
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_recipient_find(object, plugin))
			add_name(names, size, plugin->name);
	return 0;
nomem:
	names[0] = '\0';
	add_name(names, size, "(out of memory)");
	return 1;
}

/* its commit was not written: whoever has not heard of it does not know it. A snapshot may have
 * seen it in between, when memory was gone; who has it in a list that is out by now would get it
 * twice, and has to begin anew */
static void unchoose(struct ck_nri *nri, struct ck_nri_object *object)
{
	for (struct ck_recipient **at = &object->recipients; *at;) {
		struct ck_recipient *recipient = *at;
		if (recipient->listed && recipient->told)
			ck_plugin_close(
				recipient->plugin, CK_LOG_ERROR,
				"out of memory: it was told of something that is not committed");
		if (recipient->told || recipient->announcing) {
			at = &recipient->next;
			continue;
		}
		*at = recipient->next;
		free(recipient);
	}
	if (!object->recipients && object->refs == 1)
		ck_nri_object_forget(nri, object);
}

static void nobody_waits(const struct ck_nri_result *result, void *userdata)
{
	(void)result;
	(void)userdata;
}

/* somebody was told that it exists, and not that it does no more */
static bool owes_its_end(const struct ck_nri_object *object)
{
	if (CK_BROKEN(R14) || CK_BROKEN(R28) || CK_BROKEN(R40))
		return false; /* it would make good for them */
	for (const struct ck_recipient *recipient = object->recipients; recipient;
	     recipient = recipient->next)
		if ((recipient->told || recipient->listed || recipient->announcing) &&
		    !recipient->removed)
			return true;
	return false;
}

/* plugins were asked about it and it never came to be (H7), or it has vanished from the runtime:
 * its Stop and Remove */
static void end(struct ck_nri *nri, struct ck_nri_object *object)
{
	bool container = object->kind == CK_CONTAINER;
	const struct ck_nri_call call = {
		.size = sizeof(call),
		.event = container ? CK_NRI_STOP_CONTAINER : CK_NRI_STOP_POD_SANDBOX,
		.pod_id = container ? object->sandbox_id : object->nri_id,
		.container_id = container ? object->nri_id : NULL,
	};
	enum ck_nri_event then = container ? CK_NRI_REMOVE_CONTAINER : CK_NRI_REMOVE_POD_SANDBOX;
	struct ck_error err;
	if (ck_dispatch_begin(nri, &call, NULL, then, nobody_waits, NULL, &err) < 0)
		ck_nri_log(nri, CK_LOG_ERROR, "plugins are not told that %.64s is gone: %s",
			   object->nri_id, err.text);
}

void ck_recipients_released(struct ck_nri *nri, const struct ck_told *told)
{
	struct ck_nri_object *object = ck_nri_object_find(nri, told->kind, told->id);
	bool not_created = !object;
	if (!object)
		object = find_not_created(nri, told);
	if (!object)
		return;
	if (!told->gone) {
		unchoose(nri, object);
		return;
	}
	if ((owes_its_end(object) || CK_BROKEN(R29)) && !(not_created && CK_BROKEN(H7)) &&
	    !CK_BROKEN(R14) && !CK_BROKEN(R40))
		end(nri, object);
	ck_nri_object_forget(nri, object);
}

void ck_nri_objects_free(struct ck_nri *nri)
{
	while (nri->objects)
		ck_nri_object_forget(nri, nri->objects);
}
