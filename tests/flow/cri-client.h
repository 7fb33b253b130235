/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_CRI_CLIENT_H
#define CK_TESTS_CRI_CLIENT_H
/*
 * A client of CRI for tests, on src/rpc: a blocking one, that gives up after some seconds by
 * failing the test. And the simulated runtime as a process, in TMPDIR.
 *
 * Besides src/rpc/client.h and tests/load/load.h, because a test of a server must see what the
 * server did: both of these keep deadlines themselves, as grpc-go does, and so never see its answer
 * to one; the first knows no streams, dials again by itself and gives a reset a status; the second
 * keeps the beginning of a status text, and ends the program where a test should fail. The clients
 * of tests/flow/peer.h live in the loop of the server that they are to test, and cannot wait for
 * it.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "src/base/bytes.h"
#include "src/rpc/grpc.h"

struct cri_call {
	struct cri_client *client;
	struct ck_h2_stream *stream;   /* NULL: over */
	struct ck_grpc_reader reader;
	struct ck_bytes reply;         /* the last message */
	unsigned messages;
	unsigned items;                /* fields 1 of all messages */
	bool empty;                    /* a message without anything came */
	struct ck_grpc_status status;
	bool answered;                 /* a status came */
	/* how the stream ended; of RST_STREAM if there was no answer */
	uint32_t error;
};

struct cri_client {
	int fd;                        /* -1: the connection is over */
	struct ck_h2 *h2;
	const char *version;           /* "v1", to begin with */
	const char *root;              /* what a path begins with: "/" */
	bool draining;                 /* GOAWAY came */
	bool deaf;                     /* does not give back what it received: a stalled reader */
};

struct sim { /* the simulated runtime in a child */
	pid_t pid;
	char path[108];
};
/* sim_start - it listens when this returns */
void sim_start(struct sim *sim, const char *parameters);
void sim_restart(struct sim *sim, const char *parameters); /* at the same path, after sim_kill() */
void sim_kill(struct sim *sim);  /* SIGKILL */
/* SIGTERM; it must end well, which under ASan means: without a leak */
void sim_stop(struct sim *sim);

void cri_open(struct cri_client *client, const char *path);
void cri_close(struct cri_client *client);
/* cri_start - @rpc: "RunPodSandbox", "ImageService/ListImages". @timeout: "2S"; NULL: none.
 * *@request is used up */
void cri_start(struct cri_client *client, struct cri_call *call, const char *rpc,
	       struct ck_bytes *request, const char *timeout);
void cri_wait(struct cri_call *call);                      /* until it is over */
/* until so many have come, or it is over */
void cri_wait_messages(struct cri_call *call, unsigned n);
void cri_cancel(struct cri_call *call);                    /* RST_STREAM(CANCEL), sent */
void cri_end(struct cri_call *call);                       /* frees what it holds */
/* cri_do - a whole call. Its status; -1: the stream was reset, or the connection went. @ret_reply:
 * may be NULL */
int cri_do(struct cri_client *client, const char *rpc, struct ck_bytes *request,
	   struct ck_bytes *ret_reply);
/* a request with only an id */
int cri_do_id(struct cri_client *client, const char *rpc, const char *id);

/* ---- looking into a message: "1.2#3.1" is field 1, in it the fourth field 2, in that field 1 - */

bool cri_has(const struct ck_bytes *message, const char *path);
/* how many there are of the last field */
unsigned cri_count(const struct ck_bytes *message, const char *path);
uint64_t cri_number(const struct ck_bytes *message, const char *path);  /* 0: not there */
/* "": not there; good for 255 more calls */
const char *cri_text(const struct ck_bytes *message, const char *path);

/* ---- requests -------------------------------------------------------------------------------- */

/* a pod of namespace "ns" with uid "uid-NAME", labels io.kubernetes.pod.* and app=NAME */
void cri_pod_config(struct ck_bytes *config, const char *name, unsigned attempt);
struct ck_bytes cri_run_request(const char *name, unsigned attempt);
struct ck_bytes cri_create_request(const char *sandbox_id, const char *pod_name, const char *name,
				   unsigned attempt);
/* the id of a new sandbox, or container; good for 255 more calls */
const char *cri_run(struct cri_client *client, const char *name);
const char *cri_create(struct cri_client *client, const char *sandbox_id, const char *pod_name,
		       const char *name);
#endif
