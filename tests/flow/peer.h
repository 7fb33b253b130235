/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_PEER_H
#define CK_TESTS_PEER_H
/*
 * The parts of crikeepd between two sockets, all on one loop in one thread: its own code from
 * listener to upstream, over a runtime that does what the test says to each call (answer, fail,
 * hold back, answer nonsense, hang up). The cache's clock is the test's; nothing sleeps,
 * world_settle() turns the loop until nothing moves any more.
 */
#include "tests/unit/harness.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/call.h"
#include "src/daemon/daemon.h"
#include "src/daemon/nri/discover-plugins.h"
#include "src/daemon/proc-stats.h"

/* ---- the runtime ----------------------------------------------------------------------------- */

struct peer_object {
	enum ck_kind kind;
	enum ck_condition condition;
	char id[80], name[64], ns[64], uid[64], sandbox[80], container[64], image[64];
	char nri_id[80]; /* the annotation that a container was created with */
	uint32_t attempt;
	uint64_t created_at;
};

struct peer_plan {
	char rpc[32];
	int grpc;    /* answer with this status */
	bool hold;   /* until peer_release() */
	bool garble; /* answer with bytes that are no message */
	bool hang_up;
	bool other_id; /* a status is that of another object */
	bool mute;     /* answer OK without a message */
	bool early;    /* answer at the headers, whatever else would come */
	bool deaf;     /* give no window back */
	/* make the answer, send so many of its bytes, and the rest at peer_release(). At least 1:
	 * its headers alone */
	size_t part;
};

struct peer_call;
struct peer_line;
struct peer {
	struct ck_loop *loop;
	int fd;
	sd_event_source *source;
	struct peer_line *lines; /* connections */
	struct peer_call *calls; /* under way, oldest first */
	struct peer_object *objects;
	size_t objects_n, objects_room;
	struct peer_plan plans[16];
	size_t plans_n;
	char *heard; /* "StopPodSandbox s1\n", one call a line */
	size_t heard_len;
	unsigned made;               /* sandboxes and containers, by creates */
	bool may_compress;           /* a subscriber said that it takes compressed events */
	bool no_containers_statuses; /* PodSandboxStatus leaves them out, as containerd does */
	char image_id[128];          /* what every image reference means; "": unknown */
	const char *padding;         /* an annotation in each status of a sandbox; NULL: none */
};

struct peer_plan *peer_plan(struct peer *peer, const char *rpc);
size_t peer_release(struct peer *peer, const char *rpc); /* how many */
void peer_hang_up(struct peer *peer);                    /* every connection ends */
/* GOAWAY on every connection; calls under way go on */
void peer_goaway(struct peer *peer);
void peer_stop_listening(struct peer *peer);             /* nobody is there to connect to */
void peer_listen(struct peer *peer, const char *path);
size_t peer_streams(const struct peer *peer);            /* open ones, on all connections */
/* how often; "ListPodSandbox": any of it */
unsigned peer_heard(const struct peer *peer, const char *line);
/* of the oldest such call under way */
uint64_t peer_timeout(const struct peer *peer, const char *rpc);
/* peer_request - of the oldest such call that is held; NULL: none */
const struct ck_bytes *peer_request(const struct peer *peer, const char *rpc);
size_t peer_subscribers(const struct peer *peer);
struct peer_object *peer_has(struct peer *peer, const char *id); /* NULL: no */
/* READY; uid "uid-NAME", ns "shop" */
struct peer_object *peer_sandbox(struct peer *peer, const char *id, const char *name);
/* CREATED */
struct peer_object *peer_container(struct peer *peer, const char *id, const char *sandbox,
				   const char *container);
/* the runtime tells of @id, with statuses as they are now, to all who listen */
void peer_event(struct peer *peer, const char *id, const char *sandbox, int type);
void peer_event_bytes(struct peer *peer, const void *message, size_t len);

/* ---- the daemon ------------------------------------------------------------------------------ */

struct world {
	char dir[256];
	uint64_t now; /* of the cache */
	struct ck_daemon daemon;
	struct peer peer;
	struct ck_listener *listener;
	/* whoever else must move for it to settle: did anything? NULL: nobody */
	bool (*step)(struct world *w);
	void *userdata;
	unsigned ups, downs;
	struct ck_error err;
};

struct world *world_new(void); /* connected, both lists done */
/* world_new_with - the same; @configure may change its configuration first. With NRI it serves
 * plugins at nri.sock */
struct world *world_new_with(void (*configure)(struct ck_conf *conf));
void world_free(struct world *w);
void world_settle(struct world *w);
/* wait until the upstream is up again: its pauses are real time, 100 ms at first */
void world_connect(struct world *w);
/* the cache's clock; settles at each timer on the way */
void world_advance(struct world *w, uint64_t by);

struct world_ear { /* what a turn hears */
	int n, outcome;
};
/* at once what it has heard already */
void world_listen(struct world_ear *ear, struct ck_turn *turn);
/* a create begun straight in the cache; 10 s. NULL: an error, in w->err */
struct ck_turn *world_begin(struct world *w, const struct peer_object *o);
/* begun, and then made in the runtime and committed; or kept */
void world_commit(struct world *w, const struct peer_object *o);
void world_keep(struct world *w, const struct peer_object *o);
int world_hides(struct world *w, const struct peer_object *o);

/* ---- a client of the daemon's socket --------------------------------------------------------- */

struct client {
	struct world *w;
	struct ck_connection *conn;
	struct ck_h2_stream *stream;
	struct ck_grpc_reader reader;
	/* events: "CREATED s1[s1 c1]\n": subject, its sandbox and the containers told of */
	char seen[16384];
	bool headers, ended, reads;
	uint32_t reset;    /* the code the stream was reset with */
	int grpc;          /* -1: none yet */
	size_t unread;            /* not given back to its window */
	uint64_t created_at; /* of the last event */
};

struct client *client_subscribe(struct world *w); /* to events; reads what comes */
void client_stop_reading(struct client *c);
void client_read_on(struct client *c);
void client_free(struct client *c);
unsigned client_saw(const struct client *c, const char *line);
#endif
