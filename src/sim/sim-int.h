/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_SIM_SIM_INT_H
#define CK_SIM_SIM_INT_H
/*
 * What the parts of the simulated runtime share.
 *
 *   sim.c         the process: loop, clients, end
 *   sim-conf.c    the parameters
 *   sim-call.c    one call: bytes in, its handler, its delay, its answer
 *   sim-rpc.c     the table of calls, and the handlers that change something
 *   sim-list.c    the handlers that answer with lists, statuses, statistics
 *   sim-image.c   the image service
 *   sim-object.c  what exists: ids, names, states, counts
 *   sim-create.c  a creation, from its name to its end
 *   sim-write.c   messages of CRI
 *   sim-info.c    the JSON of verbose statuses
 *   sim-update.c  updates of resources, and containers that end by themselves
 *   sim-state.c   the log, and the file that outlives a kill
 *
 * An object keeps its request's config as it came, and answers copy fields out of it: what CRI adds
 * next year is told back too.
 */
#include "src/base/mem.h"
#include "src/base/wire-writer.h"
#include "src/cri/calls.h"
#include "src/cri/message.h"
#include "src/rpc/connection.h"
#include "src/rpc/grpc.h"

/* uthash: a failed allocation leaves the element out (hh.tbl NULL) instead of ending the process */
#define HASH_NONFATAL_OOM    1
#define uthash_malloc(size)  ck_alloc(size)
#define uthash_free(p, size) free(p)
#include <uthash.h>

#define CK_SIM_ID 64u /* digits of an id */

struct ck_sim;
struct ck_sim_call;

/* ---- parameters (crikeepd(8) has the list) --------------------------------------------------- */

struct ck_sim_conf { /* zeroed, then ck_sim_conf_parse(); ck_sim_conf_fini() */
	char *listen, *log, *state;
	char *images;                      /* pulled from the start, '+' between them */
	uint64_t create[CK_CONTAINER + 1]; /* by kind; ns, as all spans */
	uint64_t stop, remove, list;
	/* a container ends by itself so long after its start; 0: never */
	uint64_t exit;
	uint64_t fail[CK_CONTAINER + 1]; /* so many of the first creations fail */
	uint64_t fail_remove, fail_list;
	/* a creation whose caller left: true, it goes on; false, it is rolled back */
	bool finish;
	uint64_t made[CK_CONTAINER + 1]; /* exist from the start */
	uint64_t padding;                /* bytes of annotation in each of those */
	uint64_t error_text;             /* bytes; 0: a short sentence */
	/* instead: what was asked for, now and before, secrets and all */
	bool quotes;
	/* each connection gets GOAWAY after so many calls; 0: never */
	uint64_t goaway;
	uint64_t max_message;
};
int ck_sim_conf_parse(struct ck_sim_conf *conf, const char *parameters, struct ck_error *err);
void ck_sim_conf_fini(struct ck_sim_conf *conf);

/* ---- what exists ----------------------------------------------------------------------------- */

enum { /* states of a sandbox, of a container; events */
	CK_SIM_READY = CRI_PodSandboxState_SANDBOX_READY,
	CK_SIM_NOTREADY = CRI_PodSandboxState_SANDBOX_NOTREADY,
	CK_SIM_CREATED = CRI_ContainerState_CONTAINER_CREATED,
	CK_SIM_RUNNING = CRI_ContainerState_CONTAINER_RUNNING,
	CK_SIM_EXITED = CRI_ContainerState_CONTAINER_EXITED,
	CK_SIM_IS_CREATED = CRI_ContainerEventType_CONTAINER_CREATED_EVENT,
	CK_SIM_IS_STARTED = CRI_ContainerEventType_CONTAINER_STARTED_EVENT,
	CK_SIM_IS_STOPPED = CRI_ContainerEventType_CONTAINER_STOPPED_EVENT,
	CK_SIM_IS_DELETED = CRI_ContainerEventType_CONTAINER_DELETED_EVENT,
};

enum { CK_SIM_RESOURCES, CK_SIM_OVERHEAD, CK_SIM_USES }; /* a container has no overhead */

struct ck_sim_object {
	UT_hash_handle by_id, by_name;
	struct ck_sim_object *prev, *next; /* those of its kind that exist, the eldest first */
	struct ck_sim *sim;
	enum ck_kind kind;
	char id[CK_SIM_ID + 1];
	char sandbox_id[CK_SIM_ID + 1]; /* a container's */
	/* reserved from the first moment on, as containerd does it */
	char *name;
	char *handler;          /* a sandbox's runtime handler */
	struct ck_bytes config; /* PodSandboxConfig or ContainerConfig */
	/* LinuxContainerResources: of the config, then as they were updated */
	struct ck_bytes uses[CK_SIM_USES];
	bool exists; /* false: it is being made */
	unsigned state;
	uint64_t number;                              /* counted from 1: its address */
	uint64_t created_at, started_at, finished_at; /* ns of the wall clock */
	uint32_t exit_code;
	struct ck_loop_timer *timer; /* it is made, or unmade; or ends by itself */
	/* while it is being made, or unmade */
	struct ck_sim_call *caller; /* NULL: has left */
};

struct ck_sim_count { /* of one kind, since the process started */
	/* begun is the sum of the others and of those under way */
	uint64_t begun, finished, rolled_back, failed;
	uint64_t refused; /* not begun: the name was reserved */
	uint64_t destroyed;
	uint64_t existing; /* now */
};

/* ck_sim_object_new - reserve @name and choose an id. -CK_ECONFLICT: *@ret_object is who has the
 * name; -CK_ENOMEM */
int ck_sim_object_new(struct ck_sim *sim, enum ck_kind kind, const char *name,
		      struct ck_sim_object **ret_object);
int ck_sim_object_exists(struct ck_sim_object *object); /* from now on it is listed. -CK_ENOMEM */
void ck_sim_object_free(struct ck_sim_object *object);  /* its name is free again */
/* ck_sim_object_find - by id or by a prefix of it. -CK_ENOTFOUND, -CK_ECONFLICT: several have it */
int ck_sim_object_find(struct ck_sim *sim, enum ck_kind kind, const char *id, size_t len,
		       struct ck_sim_object **ret_object);
/* ck_sim_config_text - a text at @field, or at @field of the message at @outer (0: none); "" if
 * there is none. To be freed; NULL: out of memory */
char *ck_sim_config_text(const struct ck_bytes *config, uint32_t outer, uint32_t field);
/* the two kinds' field of labels in their config */
static inline uint32_t ck_sim_labels(enum ck_kind kind)
{
	return kind == CK_SANDBOX ? CRI_PodSandboxConfig_labels : CRI_ContainerConfig_labels;
}
bool ck_sim_in_host_network(const struct ck_sim_object *sandbox);
/* changes of state: each is logged, kept, and told to whoever listens for events */
void ck_sim_container_start(struct ck_sim_object *container);
/* a sandbox with its containers; what is stopped stays so */
void ck_sim_object_stop(struct ck_sim_object *object);
void ck_sim_container_exit(struct ck_sim_object *container, uint32_t code); /* it ends by itself */
/* stopped first; a sandbox with its containers. Freed */
void ck_sim_object_remove(struct ck_sim_object *object);
uint64_t ck_sim_wall(void); /* ns */

/* sim-update.c */
int ck_sim_uses_begin(struct ck_sim_object *object); /* as its config says. -CK_ENOMEM */
/* ck_sim_uses_update - the fields that are set in @update replace the old ones. -CK_EMALFORMED,
 * -CK_ENOMEM: nothing has changed */
int ck_sim_uses_update(struct ck_bytes *uses, const void *update, size_t len, struct ck_error *err);
/* the container runs: set the timer at which it ends by itself, if it does */
void ck_sim_container_exit_plan(struct ck_sim_object *container);

#define CK_SIM_IMAGE_ID (7 + CK_SIM_ID + 1) /* "sha256:..." */
struct ck_sim_image {
	UT_hash_handle by_id;
	char *name; /* "docker.io/library/busybox:latest", or with a digest */
	char id[CK_SIM_IMAGE_ID];
};
/* ck_sim_image_id - of a name in any of its spellings, or of an id: always the same. -CK_ENOMEM */
int ck_sim_image_id(const char *name, char ret_id[CK_SIM_IMAGE_ID]);
int ck_sim_images_pull(struct ck_sim *sim, const char *names); /* '+' between them. -CK_ENOMEM */
void ck_sim_images_free(struct ck_sim *sim);

/* ---- the log and the state file -------------------------------------------------------------- */

struct ck_sim_keep {
	int log_fd, state_fd;
	uint64_t began; /* ns of CLOCK_BOOTTIME */
};
enum ck_sim_change {
	CK_SIM_MADE = 1,
	CK_SIM_STARTED,
	CK_SIM_STOPPED,
	CK_SIM_REMOVED,
	CK_SIM_UPDATED
};
/* replays what is there. 0, -CK_EIO, -CK_ENOMEM */
int ck_sim_keep_open(struct ck_sim *sim, struct ck_error *err);
void ck_sim_keep_close(struct ck_sim *sim);
void ck_sim_log(struct ck_sim *sim, const char *verb, const struct ck_sim_object *object);
void ck_sim_keep(struct ck_sim_object *object, enum ck_sim_change change);

/* ---- messages -------------------------------------------------------------------------------- */

/* PodSandbox */
void ck_sim_put_sandbox(struct ck_writer *out, const struct ck_sim_object *sandbox);
/* PodSandboxStatus */
void ck_sim_put_sandbox_status(struct ck_writer *out, const struct ck_sim_object *sandbox);
/* Container */
void ck_sim_put_container(struct ck_writer *out, const struct ck_sim_object *container);
/* ContainerStatus */
void ck_sim_put_container_status(struct ck_writer *out, const struct ck_sim_object *container);
/* ContainerStats */
void ck_sim_put_container_stats(struct ck_writer *out, const struct ck_sim_object *container);
/* PodSandboxStats */
void ck_sim_put_sandbox_stats(struct ck_writer *out, const struct ck_sim_object *sandbox);
/* FilesystemUsage */
void ck_sim_put_filesystem(struct ck_writer *out, uint32_t field, uint64_t used);
/* the map's entry "info" */
void ck_sim_put_info(struct ck_writer *out, uint32_t field, const struct ck_sim_object *object);
/* statuses of the containers of @sandbox, at @field */
void ck_sim_put_containers_of(struct ck_writer *out, uint32_t field,
			      const struct ck_sim_object *sandbox,
			      void (*put)(struct ck_writer *out,
					  const struct ck_sim_object *container));

/* ---- calls ----------------------------------------------------------------------------------- */

/* which parameter delays it */
enum ck_sim_pause { CK_SIM_NOW, CK_SIM_STOP, CK_SIM_REMOVE, CK_SIM_LIST };

struct ck_sim_rpc {
	const char *name;
	/* CK_SIM_DONE: call->out is the answer. CK_SIM_LATER: the handler keeps the call and
	 * answers it itself. < 0: it failed, and ck_sim_fail() said how */
	int (*run)(struct ck_sim_call *call);
	enum ck_sim_pause pause;
};
enum { CK_SIM_DONE = 0, CK_SIM_LATER = 1 };

/* ck_sim_rpc_find - NULL: not served. Counted */
const struct ck_sim_rpc *ck_sim_rpc_find(struct ck_sim *sim, const struct ck_cri_method *method);
const struct ck_sim_rpc *ck_sim_rpc_at(unsigned i); /* NULL after the last */
#define CK_SIM_RPCS 48u                             /* at least as many as the table has */

struct ck_sim_client { /* a connection */
	struct ck_sim *sim;
	struct ck_connection *conn;
	struct ck_sim_client *prev, *next;
	uint64_t calls;
};

struct ck_sim_call { /* until it is answered, or its caller has left and nothing goes on for it */
	struct ck_sim *sim;
	struct ck_sim_call *prev, *next;
	struct ck_h2_stream *stream; /* NULL: the caller has left */
	const struct ck_cri_method *method;
	const struct ck_sim_rpc *rpc;
	const char *version;          /* "v1" or "v1alpha2" */
	struct ck_grpc_reader reader; /* its message is the request ... */
	bool whole;                   /* ... now */
	/* the answer, or the message of a stream that is being filled */
	struct ck_writer out;
	unsigned filled; /* items in it */
	bool begun;      /* response headers are out */
	bool paused, subscribed;
	int code; /* the answer's status, and its text */
	char *text;
	uint64_t deadline; /* ns of CLOCK_BOOTTIME; UINT64_MAX: none */
	struct ck_loop_timer *timer, *deadline_timer;
	struct ck_sim_object *making;
};
/* ck_sim_call_open - a stream begins. -CK_ENOMEM: it is not taken */
int ck_sim_call_open(struct ck_sim *sim, struct ck_h2_stream *stream);
void ck_sim_call_free(struct ck_sim_call *call);
/* ck_sim_fail - the answer will be this status. Returns -CK_EFAILED, so that it can be returned */
int ck_sim_fail(struct ck_sim_call *call, int code, const char *fmt, ...) CK_PRINTF(3, 4);
int ck_sim_nomem(struct ck_sim_call *call);
int ck_sim_fail_as_told(struct ck_sim_call *call); /* by fail.*; as error_text says */
/* ck_sim_answer - the answer, or the status if ck_sim_fail() was called; the call is freed */
void ck_sim_answer(struct ck_sim_call *call);
/* ck_sim_item - one more item of a list is in call->out: a stream sends every now and then */
void ck_sim_item(struct ck_sim_call *call);
/* ck_sim_event_send - one event to a subscriber; the call may be gone after it */
void ck_sim_event_send(struct ck_sim_call *call, const struct ck_bytes *event);
/* ck_sim_request_field - 1 and the last @field of the request, or 0; -CK_EFAILED: it is no
 * message */
int ck_sim_request_field(struct ck_sim_call *call, uint32_t field, struct ck_wire_field *ret_field);
/* ck_sim_request_object - whom the request names; *ret_object NULL: nobody, which is a
 * failure only if @must. 0, -CK_EFAILED */
int ck_sim_request_object(struct ck_sim_call *call, enum ck_kind kind, bool must,
			  struct ck_sim_object **ret_object);

/* handlers, by file */
int ck_sim_run_sandbox(struct ck_sim_call *call); /* sim-create.c */
int ck_sim_create_container(struct ck_sim_call *call);
void ck_sim_create_left(struct ck_sim_object *object); /* its caller has gone */
int ck_sim_premake(struct ck_sim *sim);                /* what exists from the start. -CK_ENOMEM */

int ck_sim_list_objects(struct ck_sim_call *call); /* sim-list.c; of the method's kind */
int ck_sim_list_stats(struct ck_sim_call *call);
int ck_sim_list_metrics(struct ck_sim_call *call);
int ck_sim_metric_descriptors(struct ck_sim_call *call);
int ck_sim_sandbox_status(struct ck_sim_call *call);
int ck_sim_container_status(struct ck_sim_call *call);
int ck_sim_stats(struct ck_sim_call *call);
int ck_sim_status(struct ck_sim_call *call);
int ck_sim_events(struct ck_sim_call *call);

int ck_sim_list_images(struct ck_sim_call *call); /* sim-image.c */
int ck_sim_image_status(struct ck_sim_call *call);
int ck_sim_pull_image(struct ck_sim_call *call);
int ck_sim_remove_image(struct ck_sim_call *call);
int ck_sim_image_fs(struct ck_sim_call *call);

void ck_sim_event(struct ck_sim_object *object, int type); /* sim-list.c: to every subscriber */

/* ---- the runtime ----------------------------------------------------------------------------- */

struct ck_sim {
	struct ck_loop loop;
	struct ck_sim_conf conf;
	struct ck_sim_keep keep;
	struct ck_sim_object *by_id[CK_CONTAINER + 1];
	struct ck_sim_object *by_name[CK_CONTAINER + 1];
	struct ck_sim_object *list[CK_CONTAINER + 1]; /* those that exist */
	struct ck_sim_count count[CK_CONTAINER + 1];
	uint64_t numbers;
	struct ck_sim_image *images;
	struct ck_acceptor *acceptor;
	struct ck_sim_client *clients;
	struct ck_sim_call *calls;
	unsigned subscribers;         /* among them, to events */
	uint64_t called[CK_SIM_RPCS]; /* by place in the table */
};
#endif
