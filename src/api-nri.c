/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported functions of crikeep-nri.h: each checks its arguments. This is the only file that
 * knows both struct ck_hooks of the cache and the dispatches of hooks/.
 */
#include <stdio.h>
#include <string.h>

#include "cache/cache.h"
#include "hooks/nri-int.h"
#include "hooks/wire/nri-message.h"

static bool is_child(const struct ck_nri *nri)
{
	return ck_host_process_left(&nri->home);
}

static int bad(struct ck_error *err, const char *what)
{
	return ck_fail(err, CK_EINVAL, "%s", what);
}

static int forked(struct ck_error *err)
{
	return ck_fail(err, CK_EFORK, "in a child of the process that opened it");
}

static bool id_ok(const char *id)
{
	return id && id[0] && strnlen(id, CK_ID_MAX + 1) <= CK_ID_MAX;
}

static bool policy_ok(enum ck_nri_policy policy)
{
	return policy >= CK_NRI_IGNORE && policy <= CK_NRI_REQUIRED;
}

static bool full_name_ok(const char *name)
{
	return name && strlen(name) <= CK_NRI_NAME_MAX && strlen(name) > 3 && name[0] >= '0' &&
	       name[0] <= '9' && name[1] >= '0' && name[1] <= '9' && name[2] == '-' &&
	       !strpbrk(name, " \t\n");
}

/* ---- open and close -------------------------------------------------------------------------- */

static int check_lists(const struct ck_nri_options *options, struct ck_error *err)
{
	for (size_t i = 0; i < options->rules_n; i++)
		if (!options->rules || !options->rules[i].name || !*options->rules[i].name ||
		    strlen(options->rules[i].name) > CK_NRI_NAME_MAX ||
		    strpbrk(options->rules[i].name, " \t\n") ||
		    !policy_ok(options->rules[i].policy))
			return bad(err, "options.rules: a name is missing or too long, or a policy "
					"is not one of its values");
	for (size_t i = 0; i < options->launched_n; i++)
		if (!options->launched || !full_name_ok(options->launched[i].name))
			return bad(err, "options.launched: a name is not NN-name, or too long");
	if (options->launched_n > CK_NRI_PLUGINS_MAX)
		return ck_fail(err, CK_EINVAL, "options.launched: at most %u", CK_NRI_PLUGINS_MAX);
	if (options->allow_uids_n && !options->allow_uids)
		return bad(err, "options.allow_uids is missing");
	return 0;
}

int ck_nri_open(const struct ck_nri_options *options, struct ck_nri **ret_nri, struct ck_error *err)
{
	if (!options || options->size < CK_NRI_OPTIONS_SIZE_0_1 || !ret_nri)
		return bad(err, "options: size is not set, or ret_nri is missing");
	const struct ck_nri_host *host = options->host;
	if (!host || host->size < CK_NRI_HOST_SIZE_0_1 || !host->describe)
		return bad(err, "options.host: missing, size not set, or no describe");
	if ((options->policy && !policy_ok(options->policy)) || options->policy == CK_NRI_REQUIRED)
		return bad(err, "options.policy is not ignore, error or fail");
	if (options->adjust != CK_NRI_ON_COMMIT && options->adjust != CK_NRI_BEFORE_CREATE)
		return bad(err, "options.adjust is not one of its values");
	const uint64_t durations[] = { options->registration_timeout, options->request_timeout,
				       options->synchronize_timeout };
	for (size_t i = 0; i < CK_COUNT(durations); i++)
		if (durations[i] > CK_DURATION_MAX)
			return bad(err, "options: a duration is longer than a year");
	int r = check_lists(options, err);
	return r < 0 ? r : ck_nri_open_impl(options, ret_nri, err);
}

static int cache_snapshot(int (*fn)(const struct ck_told *object, void *arg), void *arg,
			  void *source)
{
	return ck_snapshot(source, fn, arg);
}

static int host_snapshot(int (*fn)(const struct ck_told *object, void *arg), void *arg,
			 void *source)
{
	const struct ck_nri *nri = source;
	return nri->host.snapshot(fn, arg, nri->host.userdata);
}

/* the cache that it serves; NULL: none */
static struct ck_cache *cache_of(const struct ck_nri *nri)
{
	return nri->snapshot == cache_snapshot ? nri->snapshot_source : NULL;
}

int ck_nri_start(struct ck_nri *nri, struct ck_cache *cache, struct ck_error *err)
{
	if (!nri || (!cache && !nri->host.snapshot))
		return bad(err, "neither a cache nor a snapshot");
	if (is_child(nri))
		return forked(err);
	if (!cache)
		return ck_nri_start_impl(nri, host_snapshot, nri, err);
	ck_cache_ref(cache); /* events that end in ck_nri_close() are noted in it, closed or not */
	int r = ck_nri_start_impl(nri, cache_snapshot, cache, err);
	if (r < 0)
		ck_cache_unref(cache);
	return r;
}

void ck_nri_stop(struct ck_nri *nri)
{
	if (nri && !is_child(nri))
		ck_nri_stop_impl(nri);
}

void ck_nri_close(struct ck_nri *nri)
{
	if (!nri || is_child(nri))
		return;
	struct ck_cache *cache = cache_of(nri);
	ck_nri_close_impl(nri);
	if (cache)
		ck_cache_unref(cache);
}

int ck_nri_fd(struct ck_nri *nri)
{
	return !nri ? -CK_EINVAL : is_child(nri) ? -CK_EFORK : nri->epoll_fd;
}

int ck_nri_process(struct ck_nri *nri, struct ck_error *err)
{
	if (!nri)
		return bad(err, "no nri");
	if (is_child(nri))
		return forked(err);
	int r = ck_nri_process_impl(nri);
	return r < 0 ? ck_fail(err, -r, "ck_nri_process() is running already") : r;
}

uint64_t ck_nri_timeout(struct ck_nri *nri)
{
	return !nri || is_child(nri) ? UINT64_MAX : ck_nri_timeout_impl(nri);
}

/* ---- what the cache calls -------------------------------------------------------------------- */

static int hooks_choose(const struct ck_told *entry, char *names, size_t size, void *userdata)
{
	struct ck_nri *nri = userdata;
	if (is_child(nri))
		return -CK_EFORK; /* a host without a cache may call it in a child */
	ck_nri_lock(nri);
	int r = ck_recipients_choose(nri, entry, names, size);
	ck_nri_leave(nri);
	return r;
}

static void fired(const struct ck_nri_result *result, void *userdata)
{
	ck_hook_done(userdata, result->told_names, result->refusal);
}

static void hooks_fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *entry,
		       void *userdata)
{
	static const enum ck_nri_event events[][2] = {
		/* of a sandbox, of a container */
		[CK_HOOK_RUN] = { CK_NRI_RUN_POD_SANDBOX, CK_NRI_CREATE_CONTAINER },
		[CK_HOOK_STOP] = { CK_NRI_STOP_POD_SANDBOX, CK_NRI_STOP_CONTAINER },
		[CK_HOOK_REMOVE] = { CK_NRI_REMOVE_POD_SANDBOX, CK_NRI_REMOVE_CONTAINER },
	};
	struct ck_nri *nri = userdata;
	struct ck_error err;
	bool container = entry->kind == CK_CONTAINER;
	const struct ck_nri_call call = {
		.size = sizeof(call),
		.event = events[event][container],
		.pod_id = container ? entry->sandbox_id : entry->id,
		.container_id = container ? entry->id : NULL,
	};
	ck_nri_lock(nri);
	int r = nri->closed ? -CK_ECLOSED
			    : ck_dispatch_begin(nri, &call, entry,
						container && event == CK_HOOK_RUN
							? CK_NRI_POST_CREATE_CONTAINER
							: 0,
						fired, job, &err);
	ck_nri_send_now(nri);
	ck_nri_leave(nri);
	if (r < 0)
		ck_hook_done(job, NULL, event == CK_HOOK_RUN ? "plugins cannot be told" : NULL);
}

static void hooks_cancel(uint64_t entry, void *userdata)
{
	struct ck_nri *nri = userdata;
	ck_nri_lock(nri);
	ck_dispatch_cancel(nri, entry);
	ck_nri_leave(nri);
}

static void hooks_released(const struct ck_told *entry, void *userdata)
{
	struct ck_nri *nri = userdata;
	if (is_child(nri))
		return;
	ck_nri_lock(nri);
	ck_recipients_released(nri, entry);
	ck_nri_leave(nri);
}

int ck_nri_hooks(struct ck_nri *nri, struct ck_hooks *ret_hooks)
{
	if (!nri || !ret_hooks || ret_hooks->size < CK_HOOKS_SIZE_0_1)
		return -CK_EINVAL;
	if (is_child(nri))
		return -CK_EFORK;
	*ret_hooks = (struct ck_hooks){
		.size = sizeof(*ret_hooks),
		.userdata = nri,
		.choose = hooks_choose,
		.fire = hooks_fire,
		.cancel = hooks_cancel,
		.released = hooks_released,
	};
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Stop and Remove that the host sends, because the kubelet wants the resource to end: no hook is
 * fired, so the history of the cache learns here who was told. */
struct ending {
	struct ck_cache *cache;
	enum ck_hook_event event;
	enum ck_kind kind;
	ck_nri_cb *cb;
	void *userdata;
	char id[];
};

static void ended(const struct ck_nri_result *result, void *userdata)
{
	struct ending *ending = userdata;
	const char *names = result->told_names ? result->told_names : "";
	if (ck_round_enter(ending->cache, NULL) >= 0) {
		ck_machine_note_told(ending->cache->machine, ending->kind, ending->id,
				     ending->event, names);
		ck_round_leave(ending->cache);
	}
	ending->cb(result, ending->userdata);
	ck_cache_unref(ending->cache);
	free(ending);
}

static int send_end(struct ck_nri *nri, const struct ck_nri_call *call, ck_nri_cb *cb,
		    void *userdata, struct ck_error *err)
{
	bool container =
		call->event == CK_NRI_STOP_CONTAINER || call->event == CK_NRI_REMOVE_CONTAINER;
	const char *id = container ? call->container_id : call->pod_id;
	if (CK_NEVER(!id))
		return bad(err, "call: an id is missing");
	struct ending *ending = ck_alloc(sizeof(*ending) + strlen(id) + 1);
	if (!ending)
		return ck_nomem(err);
	*ending = (struct ending){ .cache = ck_cache_ref(cache_of(nri)),
				   .event = ck_nri_event_removes(call->event) ? CK_HOOK_REMOVE
									      : CK_HOOK_STOP,
				   .kind = container ? CK_CONTAINER : CK_SANDBOX,
				   .cb = cb,
				   .userdata = userdata };
	memcpy(ending->id, id, strlen(id) + 1);
	int r = ck_dispatch_begin(nri, call, NULL, 0, ended, ending, err);
	if (r < 0) {
		ck_cache_unref(ending->cache);
		free(ending);
	}
	return r;
}

int ck_nri_send(struct ck_nri *nri, const struct ck_nri_call *call, ck_nri_cb *cb, void *userdata,
		struct ck_error *err)
{
	if (!nri || !call || call->size < CK_NRI_CALL_SIZE_0_1 || !cb)
		return bad(err, "call: size is not set, or something is missing");
	if (is_child(nri))
		return forked(err);
	if (call->event < CK_NRI_RUN_POD_SANDBOX ||
	    call->event >= CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		return bad(err, "call.event is not one that can be sent");
	bool of_pod = call->event <= CK_NRI_REMOVE_POD_SANDBOX ||
		      call->event >= CK_NRI_UPDATE_POD_SANDBOX;
	if ((of_pod || call->pod_id || call->event == CK_NRI_CREATE_CONTAINER) &&
	    !id_ok(call->pod_id))
		return bad(err, "call.pod_id is missing or too long");
	if (!of_pod && !id_ok(call->container_id))
		return bad(err, "call.container_id is missing or too long");
	if (call->pod_len > CK_TTRPC_MAX || call->container_len > CK_TTRPC_MAX ||
	    call->resources_len > CK_TTRPC_MAX || call->overhead_len > CK_TTRPC_MAX ||
	    (call->container_name && strlen(call->container_name) > CK_NAME_MAX_LEN))
		return bad(err, "call: a message is over 4 MiB, or a name too long");
	ck_nri_lock(nri);
	bool ends = ck_nri_event_stops(call->event) || ck_nri_event_removes(call->event);
	int r = nri->closed             ? ck_fail(err, CK_ECLOSED, "it is closing")
		: ends && cache_of(nri) ? send_end(nri, call, cb, userdata, err)
					: ck_dispatch_begin(nri, call, NULL, 0, cb, userdata, err);
	ck_nri_send_now(nri);
	ck_nri_leave(nri);
	return r;
}

int ck_nri_adjusting(struct ck_nri *nri, char *name, size_t size)
{
	int r = 0;
	if (!nri || !name || !size)
		return -CK_EINVAL;
	if (is_child(nri))
		return -CK_EFORK;
	ck_nri_lock(nri);
	for (const struct ck_plugin *plugin = nri->adjust == CK_NRI_ON_COMMIT ? nri->plugins : NULL;
	     plugin; plugin = plugin->next) {
		if (!plugin->adjusting || !ck_plugin_joined(plugin))
			continue;
		snprintf(name, size, "%s", plugin->name);
		r = 1;
		break;
	}
	ck_nri_leave(nri);
	return r;
}

int ck_nri_listens(struct ck_nri *nri, enum ck_nri_event event, enum ck_kind kind, const char *id)
{
	if (!nri || is_child(nri) || event < CK_NRI_RUN_POD_SANDBOX ||
	    event > CK_NRI_VALIDATE_CONTAINER_ADJUSTMENT)
		return 0;
	ck_nri_lock(nri);
	const struct ck_nri_object *object = ck_nri_object_find(nri, kind, id);
	int r = 0;
	for (const struct ck_recipient *recipient = object ? object->recipients : NULL;
	     recipient && !r; recipient = recipient->next)
		r = ck_recipient_needs(event, recipient) && ck_plugin_joined(recipient->plugin) &&
		    ck_plugin_wants(recipient->plugin, event);
	ck_nri_leave(nri);
	return r;
}

int ck_nri_plugins(struct ck_nri *nri,
		   int (*fn)(const struct ck_nri_plugin *plugin, void *userdata), void *userdata)
{
	if (!nri || !fn)
		return -CK_EINVAL;
	return is_child(nri) ? -CK_EFORK : ck_nri_plugins_impl(nri, fn, userdata);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct ck_nri_message *ck_nri_message_new(enum ck_nri_type type)
{
	struct ck_nri_message *message;
	return ck_message_new(type, &message, NULL) < 0 ? NULL : message;
}

int ck_nri_message_read(enum ck_nri_type type, const void *bytes, size_t len,
			struct ck_nri_message **ret_message, struct ck_error *err)
{
	if (!ret_message || (!bytes && len))
		return bad(err, "bytes or ret_message are missing");
	return ck_message_read(type, bytes, len, ret_message, err);
}

void ck_nri_message_free(struct ck_nri_message *message)
{
	ck_message_free(message);
}

int ck_nri_message_bytes(struct ck_nri_message *message, const void **ret_bytes, size_t *ret_len,
			 struct ck_error *err)
{
	if (!message || !ret_bytes || !ret_len)
		return bad(err, "no message, or ret_bytes or ret_len are missing");
	return ck_message_borrow(message, ret_bytes, ret_len, err);
}

void ck_nri_job_described(struct ck_nri_job *job, struct ck_nri_message *message)
{
	const void *bytes = NULL;
	size_t len = 0;
	struct ck_error err;
	if (job && ck_nri_message_bytes(message, &bytes, &len, &err) == 0)
		ck_nri_job_done(job, CK_GRPC_OK, bytes, len);
	else if (job)
		ck_host_call_fail(job, err.text);
	ck_message_free(message);
}

void ck_nri_put_text(struct ck_nri_message *message, const char *path, const char *text)
{
	if (text)
		ck_message_text(message, path, text, strlen(text));
}

void ck_nri_put_number(struct ck_nri_message *message, const char *path, int64_t number)
{
	ck_message_number(message, path, number);
}

void ck_nri_put_pair(struct ck_nri_message *message, const char *path, const char *key,
		     const char *value)
{
	struct ck_nri_message *pair = ck_message_item(message, path);
	ck_nri_put_text(pair, "key", key);
	ck_nri_put_text(pair, "value", value);
}

struct ck_nri_message *ck_nri_put_item(struct ck_nri_message *message, const char *path)
{
	return ck_message_item(message, path);
}

size_t ck_nri_get_count(struct ck_nri_message *message, const char *path)
{
	return ck_message_count(message, path);
}

const char *ck_nri_get_text(struct ck_nri_message *message, const char *path, size_t i)
{
	return ck_message_get_text(message, path, i);
}

int ck_nri_get_number(struct ck_nri_message *message, const char *path, size_t i,
		      int64_t *ret_number)
{
	int64_t unused;
	return ck_message_get_number(message, path, i, ret_number ? ret_number : &unused);
}

struct ck_nri_message *ck_nri_get_item(struct ck_nri_message *message, const char *path, size_t i)
{
	return ck_message_get_item(message, path, i);
}

int ck_nri_message_check(const struct ck_nri_message *message, struct ck_error *err)
{
	return message ? ck_message_check(message, err) : bad(err, "no message");
}
