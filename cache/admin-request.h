/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CACHE_ADMIN_REQUEST_H
#define CK_CACHE_ADMIN_REQUEST_H
/*
 * Requests of an administrator. Only the owner writes the database, so crikeep(1) asks it with a
 * small file: renamed into state_dir/wishes/ as NAME.wish. The owner watches the directory, renames
 * NAME.answer into it and removes the request. Without an owner, requests wait for the next one. A
 * NAME is 32 hex digits; every other file in the directory is left alone. The format has kept the
 * older word for a request, "wish".
 *
 * Files, and not a socket: they also reach an owner that is down or does not answer, they need
 * nothing of a host that embeds the library, and who may make requests is who may write to the
 * directory.
 *
 *	crikeep-wish 1          crikeep-answer 1
 *	verb evict              done yes
 *	entry 42                text begun; the history tells its end
 *
 * The lines come in this order, each with a newline at its end, and nothing else. A request is
 * untrusted: it must be a regular file of at most CK_ADMIN_REQUEST_MAX bytes, and every byte is
 * checked. The answer to a bad one is its error. An answer that nobody fetches within an hour is
 * removed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "src/crikeep.h"

enum ck_admin_verb { CK_ADMIN_EVICT = 1, CK_ADMIN_RELEASE = 2 };

struct ck_admin_request {
	enum ck_admin_verb verb;
	uint64_t entry; /* row id */
	char name[33];
};

struct ck_admin_answer {
	bool done;      /* accepted; an eviction has begun, and the history tells how it ended */
	char text[256]; /* one sentence for people */
};

/* Parsing without files, also for fuzzing. -CK_EMALFORMED says what is expected. */
int ck_admin_request_parse(const char *text, size_t len, struct ck_admin_request *ret_request,
			   struct ck_error *err);
int ck_admin_answer_parse(const char *text, size_t len, struct ck_admin_answer *ret_answer,
			  struct ck_error *err);

/* The side that asks. @ret_name: 33 bytes. -CK_EIO, -CK_ENOTFOUND (no such state directory) */
int ck_admin_request_make(const char *state_dir, const struct ck_admin_request *request,
			  char *ret_name, struct ck_error *err);
/* 1: @ret_answer is filled, and the answer is removed; 0: there is none yet; negative as above */
int ck_admin_answer_fetch(const char *state_dir, const char *name,
			  struct ck_admin_answer *ret_answer, struct ck_error *err);

/* The owner's side. */
struct ck_admin_requests;
/* ck_admin_requests_open - make and watch the directory. Where it cannot be made, @ret_requests is
 * still valid and finds nothing */
int ck_admin_requests_open(const char *state_dir, struct ck_admin_requests **ret_requests,
			   struct ck_error *err);
/* an inotify descriptor: readable when there may be requests; -1: none */
int ck_admin_requests_fd(const struct ck_admin_requests *requests);
/* ck_admin_requests_take - 1: the next request; answer it before the next call. 0: none now. Bad
 * requests are answered here */
int ck_admin_requests_take(struct ck_admin_requests *requests,
			   struct ck_admin_request *ret_request);
void ck_admin_requests_answer(struct ck_admin_requests *requests,
			      const struct ck_admin_request *request,
			      const struct ck_admin_answer *answer);
void ck_admin_requests_close(struct ck_admin_requests *requests);
#endif
