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

struct ck_known *ck_know_find(struct ck_nri *nri, enum ck_kind kind, const char *id)
{
	struct ck_known *known = NULL;
	if (!id || !*id)
		return NULL;
	HASH_FIND(by_id, nri->by_id, id, strlen(id), known);
	if (!known)
		HASH_FIND(by_nri_id, nri->by_nri_id, id, strlen(id), known);
	return known && known->kind == kind ? known : NULL;
}

struct ck_known *ck_know_ref(struct ck_known *known)
{
	if (known)
		known->refs++;
	return known;
}

void ck_know_unref(struct ck_known *known)
{
	if (!known || --known->refs)
		return;
	for (struct ck_knower *k = known->knowers, *next; k; k = next) {
		next = k->next;
		free(k);
	}
	ck_blob_unref(known->object);
	free(known->id);
	free(known->nri_id);
	free(known->sandbox_id);
	free(known->name);
	free(known);
}

int ck_know_key(struct ck_known *known, const struct ck_told *told)
{
	struct ck_bytes bytes = { 0 };
	int r = ck_bytes_field_text(&bytes, 1, known->nri_id);
	if (known->kind == CK_SANDBOX) {
		if (r == 0 && told)
			r = ck_bytes_field_text(&bytes, 2, told->pod_name);
		if (r == 0 && told)
			r = ck_bytes_field_text(&bytes, 3, told->pod_uid);
		if (r == 0 && told)
			r = ck_bytes_field_text(&bytes, 4, told->pod_namespace);
	} else {
		if (r == 0)
			r = ck_bytes_field_text(&bytes, 2, known->sandbox_id);
		if (r == 0 && told)
			r = ck_bytes_field_text(&bytes, 3, told->container_name);
	}
	struct ck_blob *blob = r == 0 ? ck_blob_new(bytes.p, bytes.len) : NULL;
	ck_bytes_free(&bytes);
	if (!blob)
		return -CK_ENOMEM;
	ck_blob_unref(known->object);
	known->object = blob;
	return 0;
}

static int index_id(struct ck_nri *nri, struct ck_known *known)
{
	HASH_ADD_KEYPTR(by_id, nri->by_id, known->id, strlen(known->id), known);
	return known->by_id.tbl ? 0 : -CK_ENOMEM;
}

static void unindex_id(struct ck_nri *nri, struct ck_known *known)
{
	if (known->by_id.tbl)
		HASH_DELETE(by_id, nri->by_id, known);
	known->by_id.tbl = NULL;
}

/* most have one id, and are found by that */
static int index_nri_id(struct ck_nri *nri, struct ck_known *known)
{
	if (!strcmp(known->id, known->nri_id))
		return 0;
	HASH_ADD_KEYPTR(by_nri_id, nri->by_nri_id, known->nri_id, strlen(known->nri_id), known);
	return known->by_nri_id.tbl ? 0 : -CK_ENOMEM;
}

static void unindex_nri_id(struct ck_nri *nri, struct ck_known *known)
{
	if (known->by_nri_id.tbl)
		HASH_DELETE(by_nri_id, nri->by_nri_id, known);
	known->by_nri_id.tbl = NULL;
}

struct ck_known *ck_know_make(struct ck_nri *nri, enum ck_kind kind, const char *id,
			      const struct ck_told *told)
{
	struct ck_known *known = ck_know_find(nri, kind, id);
	if (known)
		return known;
	known = CK_NEW(struct ck_known);
	if (!known)
		return NULL;
	known->refs = 1;
	known->kind = kind;
	known->id = ck_strdup(id);
	known->nri_id = ck_strdup(id);
	known->sandbox_id = ck_strdup(told && told->sandbox_id ? told->sandbox_id : "");
	known->name = ck_strdup("");
	known->entry = told ? told->entry : 0;
	if (!known->id || !known->nri_id || !known->sandbox_id || !known->name ||
	    ck_know_key(known, told) < 0 || index_id(nri, known) < 0) {
		ck_know_unref(known);
		return NULL;
	}
	known->next = nri->known;
	if (known->next)
		known->next->prev = known;
	nri->known = known;
	return known;
}

int ck_know_unmade(struct ck_nri *nri, struct ck_known *known, const char *name, uint32_t attempt)
{
	char *copy = ck_strdup(name);
	if (!copy)
		return -CK_ENOMEM;
	unindex_id(nri, known);
	known->id[0] = '\0';
	nri->unmade++;
	free(known->name);
	known->name = copy;
	known->attempt = attempt;
	return index_nri_id(nri, known);
}

void ck_know_forget(struct ck_nri *nri, struct ck_known *known)
{
	if (known->gone)
		return;
	known->gone = true;
	nri->unmade -= !*known->id;
	unindex_id(nri, known);
	unindex_nri_id(nri, known);
	*(known->prev ? &known->prev->next : &nri->known) = known->next;
	if (known->next)
		known->next->prev = known->prev;
	ck_know_unref(known);
}

int ck_know_described(struct ck_nri *nri, struct ck_known *known, const void *bytes, size_t len,
		      struct ck_error *err)
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
	if (strlen(known->nri_id) != id_len || memcmp(known->nri_id, id, id_len)) {
		char *nri_id = ck_strndup((const char *)id, id_len);
		struct ck_known *other = nri_id ? ck_know_find(nri, known->kind, nri_id) : NULL;
		if (!nri_id || other || known->gone) {
			free(nri_id);
			ck_blob_unref(blob);
			return other ? ck_fail(err, CK_EMALFORMED,
					       "a description with another object's id")
				     : ck_nomem(err);
		}
		char *before = known->nri_id;
		unindex_nri_id(nri, known);
		known->nri_id = nri_id;
		/* its id so far, by which it may not be found until the next try */
		if (index_nri_id(nri, known) < 0) {
			known->nri_id = before;
			index_nri_id(nri, known);
			free(nri_id);
			ck_blob_unref(blob);
			return ck_nomem(err);
		}
		free(before);
	}
	ck_blob_unref(known->object);
	known->object = blob;
	known->described = true;
	return 0;
}

/* ---- knowers --------------------------------------------------------------------------------- */

struct ck_knower *ck_know_who(const struct ck_known *known, const struct ck_plugin *plugin)
{
	struct ck_knower *k = known->knowers;
	while (k && k->serial != plugin->serial)
		k = k->next;
	return k;
}

struct ck_knower *ck_know_add(struct ck_known *known, struct ck_plugin *plugin)
{
	struct ck_knower *k = CK_NEW(struct ck_knower);
	if (!k)
		return NULL;
	k->plugin = plugin;
	k->serial = plugin->serial;
	k->next = known->knowers;
	known->knowers = k;
	return k;
}

void ck_know_drop(struct ck_known *known, const struct ck_plugin *plugin)
{
	for (struct ck_knower **at = &known->knowers; *at; at = &(*at)->next) {
		struct ck_knower *k = *at;
		if (k->serial != plugin->serial)
			continue;
		*at = k->next;
		free(k);
		return;
	}
}

void ck_know_plugin_gone(struct ck_nri *nri, const struct ck_plugin *plugin)
{
	for (struct ck_known *known = nri->known; known; known = known->next)
		ck_know_drop(known, plugin);
	/* those out of the index live on in tours, and in queues, which know connections by
	 * number */
	for (struct ck_tour *tour = nri->tours; tour; tour = tour->next)
		if (tour->known)
			ck_know_drop(tour->known, plugin);
}

/* ---- the cache's seam ------------------------------------------------------------------------ */

/* a container plugins were asked about before it existed (H7) */
static struct ck_known *find_unmade(struct ck_nri *nri, const struct ck_told *told)
{
	if (!nri->unmade || told->kind != CK_CONTAINER || !told->sandbox_id ||
	    !told->container_name)
		return NULL;
	for (struct ck_known *known = nri->known; known; known = known->next)
		if (!*known->id && known->attempt == told->attempt &&
		    !strcmp(known->sandbox_id, told->sandbox_id) &&
		    !strcmp(known->name, told->container_name))
			return known;
	return NULL;
}

bool ck_know_has(const struct ck_nri *nri, const char *name)
{
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_plugin_joined(plugin) && ck_plugin_name_is(plugin->name, name))
			return true;
	return false;
}

/* the name of a required plugin that is absent (H4); NULL: all are there */
const char *ck_know_absent(const struct ck_nri *nri)
{
	for (size_t i = 0; i < nri->rules_n; i++)
		if (nri->rules[i].policy == CK_NRI_REQUIRED &&
		    !ck_know_has(nri, nri->rules[i].name) && !CK_BROKEN(H4))
			return nri->rules[i].name;
	return NULL;
}

int ck_know_all(struct ck_nri *nri, struct ck_known *known)
{
	known->ours = true;
	for (struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_plugin_joined(plugin) && !ck_know_who(known, plugin) &&
		    !(CK_BROKEN(R6) && known->kind == CK_CONTAINER &&
		      plugin->state != CK_PLUGIN_READY) &&
		    !ck_know_add(known, plugin))
			return -CK_ENOMEM;
	return 0;
}

/* the runtime's id of a container that was asked about before it existed */
static int now_made(struct ck_nri *nri, struct ck_known *known, const char *id)
{
	char *copy = ck_strdup(id), *none = known->id;
	if (!copy)
		return -CK_ENOMEM;
	known->id = copy;
	if (index_id(nri, known) < 0) {
		known->id = none;
		free(copy);
		return -CK_ENOMEM;
	}
	free(none);
	known->described = false; /* that was as it was asked for, not as it is */
	nri->unmade--;
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

int ck_know_choose(struct ck_nri *nri, const struct ck_told *told, char *names, size_t size)
{
	const char *absent = ck_know_absent(nri);
	bool anybody = false;
	names[0] = '\0';
	if (absent) {
		add_name(names, size, absent);
		return 1;
	}
	struct ck_known *known = ck_know_find(nri, told->kind, told->id);
	if (!known)
		known = find_unmade(nri, told);
	if (known && !*known->id && now_made(nri, known, told->id) < 0)
		goto nomem;
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		anybody = anybody || ck_plugin_joined(plugin);
	if (!anybody && !known)
		return 0;
	if (!known)
		known = ck_know_make(nri, told->kind, told->id, told);
	if (!known || (!CK_BROKEN(R1) && ck_know_all(nri, known) < 0))
		goto nomem;
	known->entry = told->entry;
	for (const struct ck_plugin *plugin = nri->plugins; plugin; plugin = plugin->next)
		if (ck_know_who(known, plugin))
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
static void unchoose(struct ck_nri *nri, struct ck_known *known)
{
	for (struct ck_knower **at = &known->knowers; *at;) {
		struct ck_knower *k = *at;
		if (k->listed && k->told)
			ck_plugin_close(
				k->plugin, CK_LOG_ERROR,
				"out of memory: it was told of something that is not committed");
		if (k->told || k->announcing) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		free(k);
	}
	if (!known->knowers && known->refs == 1)
		ck_know_forget(nri, known);
}

static void nobody_waits(const struct ck_nri_result *result, void *userdata)
{
	(void)result;
	(void)userdata;
}

/* somebody was told that it exists, and not that it does no more */
static bool owes_its_end(const struct ck_known *known)
{
	if (CK_BROKEN(R14) || CK_BROKEN(R28) || CK_BROKEN(R40))
		return false; /* it would make good for them */
	for (const struct ck_knower *k = known->knowers; k; k = k->next)
		if ((k->told || k->listed || k->announcing) && !k->removed)
			return true;
	return false;
}

/* plugins were asked about it and it never came to be (H7), or it has vanished from the runtime:
 * its Stop and Remove */
static void end(struct ck_nri *nri, struct ck_known *known)
{
	bool container = known->kind == CK_CONTAINER;
	const struct ck_nri_call call = {
		.size = sizeof(call),
		.event = container ? CK_NRI_STOP_CONTAINER : CK_NRI_STOP_POD_SANDBOX,
		.pod_id = container ? known->sandbox_id : known->nri_id,
		.container_id = container ? known->nri_id : NULL,
	};
	enum ck_nri_event then = container ? CK_NRI_REMOVE_CONTAINER : CK_NRI_REMOVE_POD_SANDBOX;
	struct ck_error err;
	if (ck_tour_begin(nri, &call, NULL, then, nobody_waits, NULL, &err) < 0)
		ck_nri_log(nri, CK_LOG_ERROR, "plugins are not told that %.64s is gone: %s",
			   known->nri_id, err.text);
}

void ck_know_released(struct ck_nri *nri, const struct ck_told *told)
{
	struct ck_known *known = ck_know_find(nri, told->kind, told->id);
	bool unmade = !known;
	if (!known)
		known = find_unmade(nri, told);
	if (!known)
		return;
	if (!told->gone) {
		unchoose(nri, known);
		return;
	}
	if ((owes_its_end(known) || CK_BROKEN(R29)) && !(unmade && CK_BROKEN(H7)) &&
	    !CK_BROKEN(R14) && !CK_BROKEN(R40))
		end(nri, known);
	ck_know_forget(nri, known);
}

void ck_know_free_all(struct ck_nri *nri)
{
	while (nri->known)
		ck_know_forget(nri, nri->known);
}
