/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRIKEEP_GO_BRIDGE_H
#define CRIKEEP_GO_BRIDGE_H
/*
 * The layer between crikeep.h and cgo. Arguments are flat, because a pointer to Go memory may be an
 * argument of a call, but must not be stored in memory that is passed. The library keeps numbers
 * (runtime/cgo.Handle), never pointers to Go memory.
 */
#include <crikeep.h>

enum { /* flags of ckgo_open() and ckgo_begin() */
	CKGO_INSPECT = 1 << 0,
	CKGO_LIST = 1 << 1,
	CKGO_RESOLVE = 1 << 2,
	CKGO_HOOKS = 1 << 3,
	CKGO_CLOCK = 1 << 4,
	CKGO_SANDBOX_CONFIG = 1 << 5,
	CKGO_IS_RUNTIME = 1 << 6,
	CKGO_COMMITTED = 1 << 7,
	CKGO_EXPIRED = 1 << 8,
	CKGO_KEY_ONLY = 1 << 9,
};

struct ckgo_durations {
	uint64_t ttl, create_deadline, lost_grace, supersede_wait, destroy_timeout;
};

/* A struct ck_object without pointers. @at are places in a text, 0 for none: id, pod name,
 * namespace, uid, sandbox, container. */
struct ckgo_object {
	uint64_t created_at;
	uint32_t at[6];
	uint32_t kind, condition, attempt;
};

/* @patterns: @n_patterns strings, one after the other; negative: the default */
int ckgo_open(const char *state_dir, int flags, const struct ckgo_durations *durations, int mode,
	      int hand_back, int on_annotation_change, const char *patterns, int n_patterns,
	      uintptr_t handle, struct ck_cache **ret_cache, struct ck_error *err);
/* A turn that must wait or create is watched; ckgoDecided() gets @handle. */
int ckgo_begin(struct ck_cache *cache, int kind, const void *bytes, size_t len, uint64_t timeout,
	       int flags, uintptr_t handle, struct ck_turn **ret_turn, struct ck_error *err);
int ckgo_remove(struct ck_cache *cache, int kind, const char *id, uint64_t timeout,
		uintptr_t handle, struct ck_turn **ret_turn, struct ck_error *err);
int ckgo_finish(struct ck_turn *turn, const char *id, const void *reply, size_t len,
		struct ck_error *err);
int ckgo_fail(struct ck_turn *turn, int grpc, const char *message, const void *details, size_t len,
	      struct ck_error *err);
int ckgo_reply(struct ck_turn *turn, struct ck_reply *ret_reply);
int ckgo_status(struct ck_turn *turn, struct ck_status *ret_status);
void ckgo_why(struct ck_turn *turn, struct ck_error *ret_err);
int ckgo_begun(struct ck_turn *turn);
/* @heard: what the caller knows about the decision */
enum { CKGO_NOTHING, CKGO_CREATE, CKGO_HEARD };
void ckgo_free(struct ck_turn *turn, int heard);
int ckgo_grpc(int code, int sub);

void ckgo_done(struct ck_job *job, int grpc, int condition, const char *image_id,
	       const char *message);
int ckgo_listed(struct ck_job *job, const struct ckgo_object *objects, size_t n, const char *text);
int ckgo_snapshot(struct ck_cache *cache, uintptr_t handle);
int ckgo_entries(struct ck_cache *cache, uintptr_t handle);
uint64_t ckgo_boottime(void);

int ckgo_view_hides(struct ck_view *view, const struct ckgo_object *object, const char *text);
int ckgo_view_listed(struct ck_view *view, int kind, const struct ckgo_object *objects, size_t n,
		     const char *text);

/* Is this thread in a callback that must not call the library? A goroutine in a callback keeps its
 * thread. */
int ckgo_inside(void);

/* ---- exported by Go -------------------------------------------------------------------------- */

extern void ckgoDestroy(uintptr_t handle, struct ck_job *job, int kind, char *id);
extern void ckgoInspect(uintptr_t handle, struct ck_job *job, int kind, char *id);
extern void ckgoList(uintptr_t handle, struct ck_job *job, struct ck_filter *filter);
extern void ckgoResolve(uintptr_t handle, struct ck_job *job, char *image);
extern void ckgoCommitted(uintptr_t handle, struct ck_told *entry);
extern void ckgoLog(uintptr_t handle, int level, char *text);
extern void ckgoDecided(uintptr_t handle, int outcome);
extern uint64_t ckgoClock(uintptr_t handle);
extern int ckgoChoose(uintptr_t handle, struct ck_told *entry, char *names, size_t size);
extern void ckgoFire(uintptr_t handle, struct ck_job *job, int event, struct ck_told *entry);
extern void ckgoCancel(uintptr_t handle, uint64_t entry);
extern void ckgoReleased(uintptr_t handle, struct ck_told *entry);
extern int ckgoSnapshot(uintptr_t handle, struct ck_told *entry);
extern void ckgoEntry(uintptr_t handle, struct ck_entry_info *entry);
#endif
