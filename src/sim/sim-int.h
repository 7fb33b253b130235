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
 * An object keeps the config of its request as bytes, and answers copy fields out of it. So fields
 * that CRI adds later come back too.
 */
#include "src/base/hash.h"
#include "src/base/mem.h"
#include "src/base/wire-writer.h"
#include "src/cri/calls.h"
#include "src/cri/message.h"
#include "src/rpc/connection.h"
#include "src/rpc/grpc.h"

#define CK_SIM_ID 64u /* digits of an id */

struct ck_sim;
struct ck_sim_call;

/* ---- parameters (crikeepd(8) has the list) --------------------------------------------------- */

enum ck_sim_quotes {
	CK_SIM_QUOTES_NOTHING,
	CK_SIM_QUOTES_TEXT,    /* what cannot be printed is a blank */
	CK_SIM_QUOTES_GO,      /* as %q of Go prints it */
	CK_SIM_QUOTES_PERCENT, /* as in a URL */
	CK_SIM_QUOTES_HEX,
	CK_SIM_QUOTES_BASE64,
};

struct ck_sim_conf { /* zeroed, then ck_sim_conf_parse(); ck_sim_conf_fini() */
	char *listen, *log, *state;
	char *images;                      /* exist from the start; separated by '+' */
	uint64_t create[CK_CONTAINER + 1]; /* by kind; ns, like all durations here */
	uint64_t start, stop, remove, list;
	uint64_t exit; /* from a container's start until it exits by itself; 0: never */
	uint64_t fail[CK_CONTAINER + 1]; /* how many of the first creations fail */
	uint64_t fail_start, fail_remove, fail_list;
	bool finish; /* a creation goes on after its caller has left; else it is rolled back */
	uint64_t made[CK_CONTAINER + 1]; /* how many exist from the start */
	uint64_t padding;                /* bytes of annotation in each of those */
	uint64_t error_text;             /* bytes; 0: a short sentence */
	/* error texts repeat all requests so far, with their secrets, in this form */
	enum ck_sim_quotes quotes;
	uint64_t goaway; /* a connection gets GOAWAY after this many calls; 0: never */
	uint64_t max_message;
};
int ck_sim_conf_parse(struct ck_sim_conf *conf, const char *parameters, struct ck_error *err);
void ck_sim_conf_fini(struct ck_sim_conf *conf);

/* ---- what exists ----------------------------------------------------------------------------- */

/* states of a sandbox, states of a container, events */
enum {
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
	struct ck_sim_object *prev, *next; /* existing objects of its kind, the oldest first */
	struct ck_sim *sim;
	enum ck_kind kind;
	char id[CK_SIM_ID + 1];
	char sandbox_id[CK_SIM_ID + 1]; /* a container's */
	char *name;                     /* reserved from the first moment on */
	char *handler;                  /* a sandbox's runtime handler */
	struct ck_bytes config;         /* PodSandboxConfig or ContainerConfig */
	/* LinuxContainerResources: of the config, then with the updates */
	struct ck_bytes uses[CK_SIM_USES];
	bool exists; /* false: it is being created */
	unsigned state;
	uint64_t number; /* counted from 1; its IP address comes from it */
	uint64_t created_at, started_at, finished_at; /* ns of the wall clock */
	uint32_t exit_code;
	struct ck_loop_timer *timer; /* end of its creation or rollback; or it exits by itself */
	struct ck_sim_call *caller;  /* during its creation; NULL: has left */
};

struct ck_sim_count { /* of one kind, since the process started */
	/* begun counts the others and the creations under way */
	uint64_t begun, finished, rolled_back, failed;
	uint64_t refused; /* not begun, because the name was reserved */
	uint64_t destroyed;
	uint64_t existing; /* now */
};

/* ck_sim_object_new - reserve @name and choose an id. -CK_ECONFLICT: *@ret_object has this name
 * already; -CK_ENOMEM */
int ck_sim_object_new(struct ck_sim *sim, enum ck_kind kind, const char *name,
		      struct ck_sim_object **ret_object);
int ck_sim_object_exists(struct ck_sim_object *object); /* list it from now on. -CK_ENOMEM */
void ck_sim_object_free(struct ck_sim_object *object);  /* also frees its name for others */
/* ck_sim_object_find - by an id or a prefix. -CK_ENOTFOUND; -CK_ECONFLICT: several have it */
int ck_sim_object_find(struct ck_sim *sim, enum ck_kind kind, const char *id, size_t len,
		       struct ck_sim_object **ret_object);
/* ck_sim_config_text - the text in @field, or in @field of the message in @outer if that is not 0;
 * "" if there is none. To be freed; NULL: out of memory */
char *ck_sim_config_text(const struct ck_bytes *config, uint32_t outer, uint32_t field);
/* the number of the field with the labels, in the config of this kind */
static inline uint32_t ck_sim_labels(enum ck_kind kind)
{
	return kind == CK_SANDBOX ? CRI_PodSandboxConfig_labels : CRI_ContainerConfig_labels;
}
bool ck_sim_in_host_network(const struct ck_sim_object *sandbox);
/* Each change of state is logged, written to the state file and sent as an event. */
void ck_sim_container_start(struct ck_sim_object *container);
/* a sandbox with its containers; no effect on what has stopped */
void ck_sim_object_stop(struct ck_sim_object *object);
void ck_sim_container_exit(struct ck_sim_object *container, uint32_t code); /* it ends by itself */
/* stops it first, and frees it; a sandbox with its containers */
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
/* ck_sim_image_id - the same for all spellings of a name, and for the id itself. -CK_ENOMEM */
int ck_sim_image_id(const char *name, char ret_id[CK_SIM_IMAGE_ID]);
int ck_sim_images_pull(struct ck_sim *sim, const char *names); /* separated by '+'. -CK_ENOMEM */
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
/* opens the files and reads the state. 0, -CK_EIO, -CK_ENOMEM */
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

/* the parameter that delays a call */
enum ck_sim_pause { CK_SIM_NOW, CK_SIM_START, CK_SIM_STOP, CK_SIM_REMOVE, CK_SIM_LIST };

struct ck_sim_rpc {
	const char *name;
	/* CK_SIM_DONE: call->out is the answer. CK_SIM_LATER: the handler keeps the call and
	 * answers it itself. < 0: it failed, and ck_sim_fail() said how */
	int (*run)(struct ck_sim_call *call);
	enum ck_sim_pause pause;
};
enum { CK_SIM_DONE = 0, CK_SIM_LATER = 1 };

/* ck_sim_rpc_find - also counts the call. NULL: not served */
const struct ck_sim_rpc *ck_sim_rpc_find(struct ck_sim *sim, const struct ck_cri_method *method);
const struct ck_sim_rpc *ck_sim_rpc_at(unsigned i); /* NULL after the last */
#define CK_SIM_RPCS 48u                             /* at least as many as the table has */

struct ck_sim_client { /* a connection */
	struct ck_sim *sim;
	struct ck_connection *conn;
	struct ck_sim_client *prev, *next;
	uint64_t calls;
};

struct ck_sim_call { /* until it is answered; if its caller leaves, until its work has ended */
	struct ck_sim *sim;
	struct ck_sim_call *prev, *next;
	struct ck_h2_stream *stream; /* NULL: the caller has left */
	const struct ck_cri_method *method;
	const struct ck_sim_rpc *rpc;
	const char *version;          /* "v1" or "v1alpha2" */
	struct ck_grpc_reader reader; /* of the request */
	bool whole;                   /* the request is complete, in reader.message */
	/* the answer; or the next message of a stream */
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
/* ck_sim_call_open - a stream begins. -CK_ENOMEM: the stream is refused */
int ck_sim_call_open(struct ck_sim *sim, struct ck_h2_stream *stream);
void ck_sim_call_free(struct ck_sim_call *call);
/* ck_sim_fail - set the status of the answer. Returns -CK_EFAILED, for the caller to return */
int ck_sim_fail(struct ck_sim_call *call, int code, const char *fmt, ...) CK_PRINTF(3, 4);
int ck_sim_nomem(struct ck_sim_call *call);
/* the failure that fail.* and error_text ask for */
int ck_sim_fail_as_told(struct ck_sim_call *call);
/* ck_sim_answer - send the answer, or the status of ck_sim_fail(), and free the call */
void ck_sim_answer(struct ck_sim_call *call);
/* ck_sim_item - call->out has one more item of a list; a stream sends some items at a time */
void ck_sim_item(struct ck_sim_call *call);
/* ck_sim_event_send - one event to a subscriber. May free the call */
void ck_sim_event_send(struct ck_sim_call *call, const struct ck_bytes *event);
/* ck_sim_request_field - 1 and the last @field of the request; 0: it has none; -CK_EFAILED: it is
 * not a message */
int ck_sim_request_field(struct ck_sim_call *call, uint32_t field, struct ck_wire_field *ret_field);
/* ck_sim_request_object - the object that the request names; NULL if there is none, and with @must
 * a failure. 0, -CK_EFAILED */
int ck_sim_request_object(struct ck_sim_call *call, enum ck_kind kind, bool must,
			  struct ck_sim_object **ret_object);

/* handlers, by file */
int ck_sim_run_sandbox(struct ck_sim_call *call); /* sim-create.c */
int ck_sim_create_container(struct ck_sim_call *call);
void ck_sim_create_left(struct ck_sim_object *object); /* its caller has gone */
int ck_sim_premake(struct ck_sim *sim); /* create what exists from the start. -CK_ENOMEM */

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
/* ck_sim_open - with its loop, which nobody runs yet. After a failure, too: ck_sim_close() */
int ck_sim_open(struct ck_sim *sim, const char *parameters, struct ck_error *err);
/* ck_sim_listen - serve clients of @fd, a listening socket (taken). -CK_EIO, -CK_ENOMEM */
int ck_sim_listen(struct ck_sim *sim, int fd, struct ck_error *err);
void ck_sim_close(struct ck_sim *sim);
#endif
