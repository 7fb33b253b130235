/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_NRI_WORLD_H
#define CK_TESTS_NRI_WORLD_H
/*
 * hooks/ on a socket of its own, with a clock that only the test moves, scripted plugins, and a
 * host that is a table in memory. There is no cache, unless nw_over() takes that of a fixture. One
 * thread.
 */
#include <stdbool.h>

#include "tests/flow/fixture.h"
#include "tests/flow/nri-peer.h"
#include "src/base/limits.h"

enum { NW_PLUGINS = 256, NW_OBJECTS = 512 };
enum nw_call { NW_DESCRIBE, NW_UPDATE, NW_EVICT, NW_CALLS };

struct nw_object {
	struct ck_told told; /* its strings are those below */
	char id[80], pod[80], name[64];
	bool visible;        /* in the snapshot, without a cache */
	bool gone;           /* describe does not find it */
	unsigned state;      /* a container's ContainerState; 0: not said */
	size_t fat;          /* so many bytes of an annotation */
	unsigned pid;        /* of a container; 0: none */
};

struct nw_held {
	enum nw_call call;
	struct ck_nri_job *job;
	enum ck_kind kind;
	char id[80];
};

/* an event on its way */
struct nw_sent {
	unsigned ended;     /* times the callback came */
	uint64_t at;        /* when it came */
	char refusal[600];  /* "" agreed */
	unsigned told;
	struct plugin_buffer adjustment, owners, resources;
	bool has_resources;
	bool within;        /* the callback came from within ck_nri_send() */
};

struct nw {
	char dir[64], socket[100];
	struct fixture *f; /* whose cache; NULL: none */
	uint64_t now;      /* without a cache; else the fixture's */
	struct ck_nri_host host;
	struct ck_nri_options options;
	struct ck_hooks hooks; /* of ck_nri_hooks() */
	struct ck_nri *nri;
	struct ck_error err;
	struct plugin *plugins[NW_PLUGINS];
	size_t plugins_n;
	/* not 0: cache, hooks and plugins run in random order, in random steps */
	unsigned rng;

	/* the host */
	struct nw_object *objects[NW_OBJECTS];
	size_t objects_n;
	bool hold[NW_CALLS];   /* keep the job until nw_release() */
	int fail[NW_CALLS];    /* a gRPC code to answer with */
	struct nw_held held[1024];
	size_t held_n;
	unsigned asked[NW_CALLS];
	char changes[4096];    /* "update c1 [hex] evict c2 [why] ..." */
	int launched[8];       /* descriptors of host.launch, -1: none */
	int launch_fails;      /* -CK_E... */
	char log[16384];
	void (*in_call)(struct nw *w, void *userdata); /* from within each describe */
	void *in_call_data;
};

struct nw *nw_new(void);              /* not open yet; the clock stands at 1,000 s */
/* before nw_open(); its cache is opened between that and nw_start() */
void nw_over(struct nw *w, struct fixture *f);
/* ck_nri_open() and what ck_nri_hooks() gives; what it returned */
int nw_open(struct nw *w);
void nw_start(struct nw *w);          /* ck_nri_start() */
struct nw *nw_started(void);          /* all three, without a cache */
void nw_close(struct nw *w);          /* ck_nri_close(); jobs that are held back end afterwards */
void nw_free(struct nw *w);

uint64_t nw_now(const struct nw *w);
void nw_set_now(struct nw *w, uint64_t now);
/* cache, hooks and plugins once. Return: whether anything was due */
bool nw_turn(struct nw *w);
void nw_shuffle(struct nw *w, unsigned n); /* @n random small steps */
void nw_settle(struct nw *w);         /* until nothing is due */
void nw_advance(struct nw *w, uint64_t by); /* stops at each timer on the way */

/* nw_join - a plugin connects; nw_turn() steps it from now on; it is freed with the world */
struct plugin *nw_join(struct nw *w, const char *name);
/* the same, and it has finished its handshake and its list */
struct plugin *nw_ready(struct nw *w, const char *name);
void nw_adopt(struct nw *w, struct plugin *plugin);
/* what ck_nri_plugins() says; static; NULL: nothing */
struct ck_nri_plugin *nw_plugin(struct nw *w, const char *name);
size_t nw_connected(struct nw *w); /* how many it lists that are not gone */

/* objects. nw_pod(), nw_container(): known to the host and not visible yet */
struct nw_object *nw_pod(struct nw *w, const char *id);
struct nw_object *nw_container(struct nw *w, const char *id, const char *pod);
struct nw_object *nw_find(struct nw *w, const char *id);
/* nw_choose - as the hook; if it agrees the object is visible from now on. @names may be NULL */
int nw_choose(struct nw *w, const char *id, char *names, size_t size);
void nw_released(struct nw *w, const char *id, bool gone);
/* a pod, or a container, that exists and that all connected plugins were told of */
struct nw_object *nw_run(struct nw *w, const char *id);
struct nw_object *nw_create(struct nw *w, const char *id, const char *pod);
void nw_message(const struct nw_object *o, struct plugin_buffer *to); /* PodSandbox or Container */

struct ck_nri_call nw_call_of(const struct nw *w, enum ck_nri_event event, const char *id);
int nw_send_call(struct nw *w, const struct ck_nri_call *call, struct nw_sent *sent);
/* nw_send - the event about @id, described by the host. @sent: zeroed here; may be NULL */
void nw_send(struct nw *w, enum ck_nri_event event, const char *id, struct nw_sent *sent);
void nw_sent_free(struct nw_sent *sent);
size_t nw_release(struct nw *w, enum nw_call call); /* answer what was held back; how many */

uint32_t nw_random(struct nw *w, uint32_t n); /* below @n; w->rng is its state */
#endif
