/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_EXAMPLE_TOY_H
#define CK_EXAMPLE_TOY_H
/*
 * The runtime's own side of the examples, which every real runtime has already: sandboxes and
 * containers, and how they are made and destroyed. An object is a small file in DIR/objects, so it
 * outlives the runtime as a container does. DIR/creations is the log of what was made and
 * destroyed: milliseconds since boot, begin | exists | failed | destroyed, id, label, key.
 *
 * Whatever takes time is done by a child process, the shim: start it, get a descriptor, and when
 * that becomes readable the work is done, as with containerd-shim or conmon. With --shim it goes on
 * when the runtime is killed; otherwise it dies with it.
 */
#include <stdbool.h>

#include <crikeep.h>

#include "wire.h"

#define TOY_ID 32

struct toy_object {
	struct ck_object o; /* what a list tells of it; the texts are in @text */
	char text[1024];
};

/* toy_options - the command line, also into @ret_options; makes the directories, or is the shim and
 * does not return */
void toy_options(int argc, char **argv, struct ck_options *ret_options);
int toy_listen(void); /* on DIR/socket */

enum ck_kind toy_kind(const char *id);
bool toy_get(const char *id, struct toy_object *ret_object); /* false: there is none of that id */
void toy_each(void (*fn)(const struct ck_object *object, void *userdata), void *userdata);
bool toy_set(const char *id, enum ck_condition condition);

/* each returns a descriptor for toy_result(); toy_create() also the id the object will have */
int toy_create(const struct wire_request *request, char ret_id[TOY_ID]);
int toy_destroy(const char *id);
enum toy_end { TOY_DONE, TOY_FAILED, TOY_UNKNOWN };
/* waits for it and closes @fd; @text: why it failed */
enum toy_end toy_result(int fd, char *text, size_t size);

void toy_log(enum ck_log_level level, const char *text, void *userdata);

/* ---- common.c: what both examples do in the same way ----------------------------------------- */

void common_done(struct ck_job *job, int grpc);
/* ck_host.inspect */
void common_inspect(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata);
/* ck_host.list */
void common_list(struct ck_job *job, const struct ck_filter *filter, void *userdata);
/* LIST, LIST-ALL, START, STOP; to be freed */
char *common_answer(struct ck_cache *cache, const struct wire_request *request);
/* has this caller gone? */
bool common_hung_up(int fd);
/* the guard of REMOVE */
bool common_may_see(struct ck_cache *cache, const char *id);
#endif
