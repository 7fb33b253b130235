/* SPDX-License-Identifier: Apache-2.0 */
//go:build linux && cgo && !no_libcrikeep

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bridge.h"

static _Thread_local int inside;

int ckgo_inside(void)
{
	return inside;
}

/* ---- from the library to Go ------------------------------------------------------------------ */

static void destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	ckgoDestroy((uintptr_t)userdata, job, (int)kind, (char *)id);
}

static void inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	ckgoInspect((uintptr_t)userdata, job, (int)kind, (char *)id);
}

static void list(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	ckgoList((uintptr_t)userdata, job, (struct ck_filter *)filter);
}

static void resolve_image(struct ck_job *job, const char *image, void *userdata)
{
	ckgoResolve((uintptr_t)userdata, job, (char *)image);
}

static void log_line(enum ck_log_level level, const char *text, void *userdata)
{
	ckgoLog((uintptr_t)userdata, (int)level, (char *)text);
}

static void committed(const struct ck_told *entry, void *userdata)
{
	ckgoCommitted((uintptr_t)userdata, (struct ck_told *)entry);
}

static uint64_t ask_clock(void *userdata)
{
	inside++;
	uint64_t now = ckgoClock((uintptr_t)userdata);
	inside--;
	return now;
}

static int choose(const struct ck_told *entry, char *names, size_t size, void *userdata)
{
	inside++;
	int r = ckgoChoose((uintptr_t)userdata, (struct ck_told *)entry, names, size);
	inside--;
	return r;
}

static void fire(struct ck_job *job, enum ck_hook_event event, const struct ck_told *entry,
		 void *userdata)
{
	ckgoFire((uintptr_t)userdata, job, (int)event, (struct ck_told *)entry);
}

static void cancel(uint64_t entry, void *userdata)
{
	inside++;
	ckgoCancel((uintptr_t)userdata, entry);
	inside--;
}

static void released(const struct ck_told *entry, void *userdata)
{
	inside++;
	ckgoReleased((uintptr_t)userdata, (struct ck_told *)entry);
	inside--;
}

static int snapshot(const struct ck_told *entry, void *userdata)
{
	inside++;
	int r = ckgoSnapshot((uintptr_t)userdata, (struct ck_told *)entry);
	inside--;
	return r;
}

static int entry_info(const struct ck_entry_info *entry, void *userdata)
{
	ckgoEntry((uintptr_t)userdata, (struct ck_entry_info *)entry);
	return 0;
}

static void decided(struct ck_turn *turn, int outcome, void *userdata)
{
	(void)turn;
	ckgoDecided((uintptr_t)userdata, outcome);
}

/* ---- the cache ------------------------------------------------------------------------------- */

int ckgo_open(const char *state_dir, int flags, const struct ckgo_durations *durations, int mode,
	      int hand_back, int on_annotation_change, const char *patterns, int n_patterns,
	      uintptr_t handle, struct ck_cache **ret_cache, struct ck_error *err)
{
	struct ck_host host = {
		.size = sizeof(host),
		.userdata = (void *)handle,
		.destroy = destroy,
		.inspect = flags & CKGO_INSPECT ? inspect : NULL,
		.list = flags & CKGO_LIST ? list : NULL,
		.resolve_image = flags & CKGO_RESOLVE ? resolve_image : NULL,
		.log = log_line,
		.committed = flags & CKGO_COMMITTED ? committed : NULL,
	};
	struct ck_hooks hooks = {
		.size = sizeof(hooks),
		.userdata = (void *)handle,
		.choose = choose,
		.fire = fire,
		.cancel = cancel,
		.released = released,
	};
	struct ck_options options = {
		.size = sizeof(options),
		.state_dir = *state_dir ? state_dir : NULL,
		.host = &host,
		.hooks = flags & CKGO_HOOKS ? &hooks : NULL,
		.ttl = durations->ttl,
		.create_deadline = durations->create_deadline,
		.lost_grace = durations->lost_grace,
		.supersede_wait = durations->supersede_wait,
		.destroy_timeout = durations->destroy_timeout,
		.mode = (enum ck_mode)mode,
		.hand_back = (enum ck_hand_back)hand_back,
		.on_annotation_change = (enum ck_annotation_change)on_annotation_change,
		.compare_sandbox_config = !!(flags & CKGO_SANDBOX_CONFIG),
		.is_runtime = !!(flags & CKGO_IS_RUNTIME),
		.clock = flags & CKGO_CLOCK ? ask_clock : NULL,
		.clock_userdata = (void *)handle,
	};
	const char **ignore = NULL;
	if (n_patterns >= 0) {
		ignore = calloc((size_t)n_patterns + 1, sizeof(*ignore));
		if (!ignore)
			return -CK_ENOMEM;
		for (int i = 0; i < n_patterns; i++) {
			ignore[i] = patterns;
			patterns += strlen(patterns) + 1;
		}
		options.ignore_annotations = ignore;
	}
	int r = ck_cache_open(&options, ret_cache, err);
	free(ignore);
	return r;
}

int ckgo_snapshot(struct ck_cache *cache, uintptr_t handle)
{
	return ck_snapshot(cache, snapshot, (void *)handle);
}

int ckgo_entries(struct ck_cache *cache, uintptr_t handle)
{
	return ck_entries(cache, entry_info, (void *)handle);
}

uint64_t ckgo_boottime(void)
{
	struct timespec ts = { 0 };
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int ckgo_grpc(int code, int sub)
{
	struct ck_error err = { .code = code, .sub = sub };
	return ck_error_grpc(&err);
}

/* ---- turns ----------------------------------------------------------------------------------- */

int ckgo_begin(struct ck_cache *cache, int kind, const void *bytes, size_t len, uint64_t timeout,
	       int flags, uintptr_t handle, struct ck_turn **ret_turn, struct ck_error *err)
{
	struct ck_request request = {
		.size = sizeof(request),
		.kind = (enum ck_kind)kind,
		.bytes = bytes,
		.len = len,
		.timeout = timeout,
		.expired = !!(flags & CKGO_EXPIRED),
		.key_only = !!(flags & CKGO_KEY_ONLY),
	};
	int r = ck_turn_begin(cache, &request, ret_turn, err);
	if (r == CK_WAIT || r == CK_CREATE)
		ck_turn_watch(*ret_turn, decided, (void *)handle);
	return r;
}

int ckgo_remove(struct ck_cache *cache, int kind, const char *id, uint64_t timeout,
		uintptr_t handle, struct ck_turn **ret_turn, struct ck_error *err)
{
	int r = ck_remove_begin(cache, (enum ck_kind)kind, id, timeout, ret_turn, err);
	if (r == CK_WAIT)
		ck_turn_watch(*ret_turn, decided, (void *)handle);
	return r;
}

int ckgo_finish(struct ck_turn *turn, const char *id, const void *reply, size_t len,
		struct ck_error *err)
{
	struct ck_result result = {
		.size = sizeof(result), .id = id, .reply = reply, .reply_len = len
	};
	return ck_turn_finish(turn, &result, err);
}

int ckgo_fail(struct ck_turn *turn, int grpc, const char *message, const void *details, size_t len,
	      struct ck_error *err)
{
	struct ck_status why = {
		.size = sizeof(why),
		.grpc = grpc,
		.message = message,
		.details = details,
		.details_len = len,
	};
	return ck_turn_fail(turn, &why, err);
}

int ckgo_reply(struct ck_turn *turn, struct ck_reply *ret_reply)
{
	ret_reply->size = sizeof(*ret_reply);
	return ck_turn_reply(turn, ret_reply);
}

int ckgo_status(struct ck_turn *turn, struct ck_status *ret_status)
{
	ret_status->size = sizeof(*ret_status);
	return ck_turn_status(turn, ret_status);
}

void ckgo_why(struct ck_turn *turn, struct ck_error *ret_err)
{
	const struct ck_error *err = ck_turn_error(turn);
	if (err)
		*ret_err = *err;
}

int ckgo_begun(struct ck_turn *turn)
{
	return ck_turn_stage(turn, "") == 0; /* a turn that creates nothing has no stage */
}

void ckgo_free(struct ck_turn *turn, int heard)
{
	/* no callback begins any more; a running one has taken the decision with it */
	ck_turn_watch(turn, NULL, NULL);
	if (heard != CKGO_HEARD)
		ck_turn_answered(turn, CK_LOST); /* no effect if it was not handed back */
	/*
	 * If CK_CREATE was never received, nothing was begun. A lost creation would be looked for
	 * for a long time, while all callers wait. But a creation that was to be sent again stays
	 * lost: the first one may still be running (K8).
	 */
	if (heard == CKGO_NOTHING && ckgo_begun(turn))
		ckgo_fail(turn, 1, "its caller had gone before it was begun", NULL, 0, NULL);
	ck_turn_free(turn);
}

/* ---- jobs, lists ----------------------------------------------------------------------------- */

void ckgo_done(struct ck_job *job, int grpc, int condition, const char *image_id,
	       const char *message)
{
	struct ck_answer answer = {
		.size = sizeof(answer),
		.grpc = grpc,
		.condition = (enum ck_condition)condition,
		.image_id = image_id,
		.message = message,
	};
	ck_job_done(job, &answer);
}

static const char *text_at(const char *text, uint32_t at)
{
	return at ? text + at : NULL;
}

static struct ck_object object_of(const struct ckgo_object *o, const char *text)
{
	return (struct ck_object){
		.size = sizeof(struct ck_object),
		.kind = (enum ck_kind)o->kind,
		.condition = (enum ck_condition)o->condition,
		.id = text_at(text, o->at[0]),
		.pod_name = text_at(text, o->at[1]),
		.pod_namespace = text_at(text, o->at[2]),
		.pod_uid = text_at(text, o->at[3]),
		.sandbox_id = text_at(text, o->at[4]),
		.container_name = text_at(text, o->at[5]),
		.attempt = o->attempt,
		.created_at = o->created_at,
	};
}

int ckgo_listed(struct ck_job *job, const struct ckgo_object *objects, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		struct ck_object object = object_of(&objects[i], text);
		int r = ck_job_listed(job, &object);
		if (r < 0)
			return r;
	}
	return 0;
}

int ckgo_view_hides(struct ck_view *view, const struct ckgo_object *object, const char *text)
{
	struct ck_object o = object_of(object, text);
	return ck_view_hides(view, &o);
}

int ckgo_view_listed(struct ck_view *view, int kind, const struct ckgo_object *objects, size_t n,
		     const char *text)
{
	struct ck_object *list_of = calloc(n ? n : 1, sizeof(*list_of));
	if (!list_of)
		return -CK_ENOMEM;
	for (size_t i = 0; i < n; i++)
		list_of[i] = object_of(&objects[i], text);
	int r = ck_view_listed(view, (enum ck_kind)kind, list_of, n);
	free(list_of);
	return r;
}
