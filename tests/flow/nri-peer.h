/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_NRI_PEER_H
#define CK_TESTS_NRI_PEER_H
/*
 * A plugin that uses no code of hooks/, so that both sides cannot have the same error. It
 * registers, answers calls as a test has scripted it, and records everything. Nothing blocks:
 * plugin_step() does what can be done now. It reads as Go does, which gives up on frames it does
 * not expect. If the other side breaks a rule of the wire, wrong[] says so.
 *
 * It uses plain malloc(), so ck_fault_arm() does not affect it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/crikeep-nri.h"

/* what it can be called with: enum ck_nri_event, and the rest of the service */
enum plugin_call { PLUGIN_CONFIGURE = 16, PLUGIN_SYNCHRONIZE, PLUGIN_SHUTDOWN, PLUGIN_CALLS };

enum plugin_does {
	PLUGIN_AGREES = 0, /* answers with nothing, or with reply[] */
	PLUGIN_FAILS,      /* with code and text */
	PLUGIN_HOLDS,      /* answers when plugin_release() says so, or never */
	PLUGIN_WRITES,     /* reply[], as it is, onto the socket, and no answer */
	PLUGIN_CLOSES,     /* the connection, without an answer */
	PLUGIN_BREAKS_OFF, /* the same in the middle of its answer's frame */
	PLUGIN_SHUTS,      /* its writing half only */
};

struct plugin_rule {
	enum plugin_does does;
	unsigned times;    /* then it agrees again; 0: for ever */
	int code;          /* PLUGIN_FAILS; google.rpc.Code */
	const char *text;
	const void *reply; /* borrowed */
	size_t len;
};

/* one call that came in */
struct plugin_heard {
	/* enum ck_nri_event of an event, in either form; else enum plugin_call */
	int call;
	bool state_change; /* it came as StateChange */
	bool answered;     /* or it never will be: an answer was written in its place */
	uint32_t stream;
	uint64_t at;       /* a number that grows with each call any plugin hears */
	int64_t timeout;   /* ns, of the envelope */
	char pod[80], container[80]; /* their ids; "" there is none */
	unsigned char *payload;      /* the request's message */
	size_t len;
};

/* of a Synchronize list */
struct plugin_item {
	enum ck_kind kind;
	char id[80], pod[80]; /* pod: of a container */
	uint64_t at;
	unsigned char *payload; /* the PodSandbox or Container */
	size_t len;
};

/* what a call of its own was answered with: RegisterPlugin, UpdateContainers */
struct plugin_answer {
	uint32_t stream;
	int code;
	char text[512];
	unsigned char *payload;
	size_t len;
};

struct plugin_buffer {
	unsigned char *p;
	size_t len, room;
};

struct plugin {
	/* set by the test, before they take effect */
	char index[16], base[300];
	const char *version;    /* NRI_version ["v0.12.5"]; old plugins send none */
	uint32_t mask;          /* [0x1fff: all but validation] */
	/* a stub before v0.12: StateChange, and before v0.7: no lists in pieces */
	bool old;
	bool knows_pieces;      /* old, but not that old */
	bool fail_request, keep_connected; /* its failure policy */
	bool mute;              /* does not register; plugin_register() does */
	bool deaf;              /* does not read, so the socket gets full */
	size_t cut;             /* its frames carry at most so many bytes; 0: as Go writes them */
	size_t at_most;         /* bytes written and read in a step; 0: all there are */
	struct plugin_rule rules[PLUGIN_CALLS];
	/* before it answers */
	void (*called)(struct plugin *plugin, const struct plugin_heard *heard, void *userdata);
	void *userdata;

	/* read by the test */
	int fd; /* -1: closed by us */
	/* the other side has closed, or broke it off */
	bool ended;
	bool registered, configured, synchronized;   /* it was told so, and it said so */
	char config[256], runtime_name[64], runtime_version[64], runtime_nri[32];
	int64_t registration_timeout, request_timeout; /* ms, as Configure tells them */
	struct plugin_heard *heard;
	size_t heard_n;
	struct plugin_item *items; /* of all lists */
	size_t items_n;
	unsigned chunks, lists;    /* Synchronize messages, and those without `more` */
	struct plugin_answer *answers;
	size_t answers_n;
	unsigned unimplemented;    /* calls an old plugin did not know */
	unsigned in_flight, in_flight_most;
	char wrong[200];           /* "" the other side has kept the rules of the wire */

	/* internal */
	struct plugin_buffer trunk, conn[3], out;
	uint32_t last_stream, next_stream;
	size_t heard_room, items_room, answers_room;
	bool began, more;
};

/* plugin_dial - connect to @path; @name is "NN-name". It registers with its first step. NULL:
 * nobody listens */
struct plugin *plugin_dial(const char *path, const char *name);
/* plugin_on - the same on one end of a socket pair. @fd: taken */
struct plugin *plugin_on(int fd, const char *name);
void plugin_free(struct plugin *plugin);
/* plugin_step - read, answer, write, as far as it goes. Return: whether anything moved */
bool plugin_step(struct plugin *plugin);
void plugin_close(struct plugin *plugin); /* as if it had died */

/* plugin_register - RegisterPlugin, which a mute one does not send by itself, or once more */
void plugin_register(struct plugin *plugin);
/* plugin_rule - what it does from now on when it is called with @call; @times 0: for ever */
void plugin_rule(struct plugin *plugin, int call, enum plugin_does does, unsigned times);
/* @reply: borrowed */
void plugin_replies(struct plugin *plugin, int call, const void *reply, size_t len);
void plugin_fails(struct plugin *plugin, int call, int code, const char *text);
/* plugin_release - answer the calls that are held back, as its rules are now. Return: how many */
size_t plugin_release(struct plugin *plugin);
/* plugin_ask - a call of its own. Return: the stream, to find the answer by */
uint32_t plugin_ask(struct plugin *plugin, const char *service, const char *method,
		    const void *payload, size_t len);
#define PLUGIN_RUNTIME_SERVICE "nri.pkg.api.v1alpha1.Runtime"
/* plugin_answer_to - of that call; NULL: none yet */
const struct plugin_answer *plugin_answer_to(const struct plugin *plugin, uint32_t stream);
/* plugin_write - any bytes onto the socket */
void plugin_write(struct plugin *plugin, const void *bytes, size_t len);
/* plugin_frame - one mux frame; the length may be another one than there are bytes */
void plugin_frame(struct plugin *plugin, uint32_t conn, uint32_t length, const void *bytes,
		  size_t len);
void plugin_shut(struct plugin *plugin); /* its writing half */

/* plugin_count - how often it heard @call about @id (pod or container); NULL: about anything */
unsigned plugin_count(const struct plugin *plugin, int call, const char *id);
/* plugin_listed - how often @id was in its Synchronize lists */
unsigned plugin_listed(const struct plugin *plugin, const char *id);
const struct plugin_heard *plugin_last(const struct plugin *plugin, int call); /* NULL: never */
/* plugin_story - "Synchronize(s1 c1) RunPodSandbox(s2) ..."; Configure is left out. Static, until
 * the next call of it */
const char *plugin_story(const struct plugin *plugin);

/* messages: each appends to @to, which is zeroed at first and freed by plugin_bytes_free() */
void plugin_varint(struct plugin_buffer *to, uint64_t value);
void plugin_number(struct plugin_buffer *to, uint32_t field, uint64_t value);
void plugin_bytes(struct plugin_buffer *to, uint32_t field, const void *bytes, size_t len);
void plugin_text(struct plugin_buffer *to, uint32_t field, const char *text);
void plugin_bytes_free(struct plugin_buffer *bytes);
#endif
