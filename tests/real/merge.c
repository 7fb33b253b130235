/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks/adjust/adjust.h behind frames on standard input and output, for tests/real/adjust to
 * compare with. A frame is its length, in four bytes, big-endian, and that many bytes.
 *
 *	in:   "create" or "update", Container or LinuxResources; then of each plugin its name
 *	      and its answer; at last an empty name
 *	out:  for each plugin what it was shown, and an error's text, with which the case ends,
 *	      or ""; at the end the result, OwningPlugins, and an UpdateContainersRequest with
 *	      the changes of others
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "hooks/adjust/adjust.h"
#include "src/base/wire-writer.h"

static void die(const char *what, const struct ck_error *err)
{
	fprintf(stderr, "merge: %s: %s\n", what, err ? err->text : "");
	exit(2);
}

/* false: the end of input */
static bool receive(struct ck_bytes *frame)
{
	uint32_t n;
	frame->len = 0;
	if (fread(&n, sizeof(n), 1, stdin) != 1)
		return false;
	n = ntohl(n);
	if (ck_bytes_room(frame, n + 1) < 0 || fread(frame->p, 1, n, stdin) != n)
		die("a frame", NULL);
	frame->len = n;
	frame->p[n] = 0;
	return true;
}

static void send_frame(const void *p, size_t len)
{
	uint32_t n = htonl((uint32_t)len);
	fwrite(&n, sizeof(n), 1, stdout);
	fwrite(p, 1, len, stdout);
	fflush(stdout); /* the next frame waits for it */
}

/* what @fn appends */
static void send_made(const struct ck_adjust *adjust,
		      int (*fn)(const struct ck_adjust *, struct ck_bytes *, struct ck_error *))
{
	CK_AUTO_BYTES struct ck_bytes bytes = { 0 };
	struct ck_error err;
	if (fn(adjust, &bytes, &err) < 0)
		die("a message", &err);
	send_frame(bytes.p, bytes.len);
}

static void send_others(struct ck_adjust *adjust)
{
	struct ck_writer out = { 0 };
	for (size_t i = 0; i < ck_adjust_others_n(adjust); i++) {
		struct ck_adjust_other other;
		if (ck_adjust_other(adjust, i, &other, NULL) < 0)
			die("another", NULL);
		size_t update = ck_writer_open(&out, 1), linux_part;
		ck_writer_text(&out, 1, other.container_id);
		linux_part = ck_writer_open(&out, 2);
		ck_writer_bytes(&out, 1, other.resources, other.len);
		ck_writer_close(&out, linux_part);
		ck_writer_number(&out, 3, other.ignore_failure);
		ck_writer_close(&out, update);
	}
	send_frame(out.bytes.p, out.bytes.len);
	ck_bytes_free(&out.bytes);
}

static void play(struct ck_adjust *adjust, enum ck_adjust_reply what)
{
	CK_AUTO_BYTES struct ck_bytes plugin = { 0 }, reply = { 0 };
	struct ck_error err;
	while (receive(&plugin) && plugin.len) {
		receive(&reply);
		send_made(adjust, ck_adjust_seen);
		if (ck_adjust_reply(adjust, what, (const char *)plugin.p, reply.p, reply.len,
				    &err) < 0) {
			send_frame(err.text, strlen(err.text));
			return;
		}
		send_frame("", 0);
	}
	send_made(adjust, ck_adjust_result);
	send_made(adjust, ck_adjust_owners);
	send_others(adjust);
}

int main(void)
{
	CK_AUTO_BYTES struct ck_bytes what = { 0 }, first = { 0 };
	while (receive(&what) && receive(&first)) {
		CK_AUTO(ck_adjust) *adjust = NULL;
		struct ck_error err;
		bool create = !strcmp((const char *)what.p, "create");
		if ((create ? ck_adjust_create(first.p, first.len, &adjust, &err)
			    : ck_adjust_update("c1", first.p, first.len, &adjust, &err)) < 0)
			die("begin", &err);
		play(adjust, create ? CK_REPLY_CREATE_CONTAINER : CK_REPLY_UPDATE_CONTAINER);
	}
	return 0;
}
