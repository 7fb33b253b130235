/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written down. The log has a line for each thing that happened, for people and for tests
 * that want the runtime's own count. The state file has a record for each change, and is read at
 * the start: what a runtime made outlives its process.
 *
 *   record   a varint (its length), then: 1 change, 2 kind, 3 id, 4 time; for what was made 5 name, 6 sandbox's id, 7 handler,
 *            8 config; for what was updated 9 resources, 10 overhead; for what has ended 11 exit
 *            code
 *
 * A record is one write, so a kill leaves it whole or not there; a file that a full disk has cut is
 * used up to there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/sim/sim-int.h"

void ck_rt_log(struct ck_rt *rt, const char *verb, const struct ck_rt_object *object)
{
	if (rt->keep.log_fd < 0)
		return;
	uint64_t ms = (ck_loop_now() - rt->keep.began) / CK_NS_PER_MS;
	dprintf(rt->keep.log_fd, "%llu.%03llu %s %s %s %s\n", (unsigned long long)(ms / 1000),
		(unsigned long long)(ms % 1000), verb,
		object->kind == CK_SANDBOX ? "sandbox" : "container", object->id, object->name);
}

void ck_rt_keep(struct ck_rt_object *object, enum ck_rt_change change)
{
	int fd = object->rt->keep.state_fd;
	struct ck_writer record = { .r = 0 };
	struct ck_bytes whole = { 0 };
	if (fd < 0)
		return;
	ck_writer_number(&record, 1, change);
	ck_writer_number(&record, 2, object->kind);
	ck_writer_text(&record, 3, object->id);
	ck_writer_number(&record, 4, change == CK_RT_MADE ? object->created_at : ck_rt_wall());
	if (change == CK_RT_MADE) {
		ck_writer_text(&record, 5, object->name);
		ck_writer_text(&record, 6, object->sandbox_id);
		ck_writer_text(&record, 7, object->handler);
		if (record.r == 0)
			record.r = ck_bytes_field(&record.bytes, 8, object->config.p,
						  object->config.len);
	}
	if (change == CK_RT_UPDATED)
		for (uint32_t i = 0; i < CK_RT_USES; i++)
			ck_writer_bytes(&record, 9 + i, object->uses[i].p, object->uses[i].len);
	if (change == CK_RT_STOPPED)
		ck_writer_number(&record, 11, object->exit_code);
	if (record.r == 0 && ck_bytes_varint(&whole, record.bytes.len) == 0 &&
	    ck_bytes_add(&whole, record.bytes.p, record.bytes.len) == 0 &&
	    write(fd, whole.p, whole.len) != (ssize_t)whole.len)
		ck_log(CK_LOG_ERROR, "simulator: the state file is not written: %s",
		       strerror(errno));
	ck_bytes_free(&record.bytes);
	ck_bytes_free(&whole);
}

/* ---- reading it back ------------------------------------------------------------------------- */

struct record {
	struct ck_wire_field field[12];
};

static char *record_text(const struct record *record, unsigned i)
{
	return ck_strndup((const char *)record->field[i].data, record->field[i].len);
}

static int replay_made(struct ck_rt *rt, const struct record *record, enum ck_kind kind)
{
	struct ck_rt_object *object;
	CK_AUTO_FREE char *name = record_text(record, 5);
	int r = name ? ck_rt_object_new(rt, kind, name, &object) : -CK_ENOMEM;
	if (r < 0)
		return r;
	memcpy(object->id, record->field[3].data, CK_RT_ID);
	if (record->field[6].len == CK_RT_ID)
		memcpy(object->sandbox_id, record->field[6].data, CK_RT_ID);
	object->created_at = record->field[4].value;
	object->handler = record_text(record, 7);
	r = ck_bytes_add(&object->config, record->field[8].data, record->field[8].len);
	if (r == 0 && object->handler)
		r = ck_rt_object_exists(object);
	if (r == 0 && object->handler)
		return 0;
	ck_rt_object_free(object);
	return -CK_ENOMEM;
}

static int replay_updated(struct ck_rt_object *object, const struct record *record)
{
	int r = 0;
	for (int i = 0; i < CK_RT_USES && r == 0; i++) {
		object->uses[i].len = 0;
		r = ck_bytes_add(&object->uses[i], record->field[9 + i].data,
				 record->field[9 + i].len);
	}
	return r;
}

static int replay_change(struct ck_rt_object *object, enum ck_rt_change change,
			 const struct record *record)
{
	uint64_t when = record->field[4].value;
	switch (change) {
	case CK_RT_STARTED:
		object->state = CK_RT_RUNNING;
		object->started_at = when;
		break;
	case CK_RT_STOPPED:
		object->state = object->kind == CK_CONTAINER ? CK_RT_EXITED : CK_RT_NOTREADY;
		object->finished_at = when;
		object->exit_code = (uint32_t)record->field[11].value;
		break;
	case CK_RT_REMOVED:
		ck_rt_object_free(object);
		break;
	case CK_RT_UPDATED:
		return replay_updated(object, record);
	case CK_RT_MADE:
		break;
	}
	return 0;
}

/* 1, or 0: it is none of ours */
static int replay(struct ck_rt *rt, struct ck_wire wire)
{
	struct record record = { 0 };
	struct ck_wire_field field;
	struct ck_rt_object *object;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0)
		if (field.number < CK_COUNT(record.field))
			record.field[field.number] = field;
	uint64_t change = record.field[1].value, kind = record.field[2].value;
	if (r < 0 || change < CK_RT_MADE || change > CK_RT_UPDATED ||
	    (kind != CK_SANDBOX && kind != CK_CONTAINER) || record.field[3].len != CK_RT_ID)
		return 0;
	if (change == CK_RT_MADE) {
		r = replay_made(rt, &record, (enum ck_kind)kind);
		return r == -CK_ECONFLICT ? 0 : r < 0 ? r : 1;
	}
	if (ck_rt_find(rt, (enum ck_kind)kind, (const char *)record.field[3].data, CK_RT_ID,
		       &object) < 0)
		return 0;
	r = replay_change(object, (enum ck_rt_change)change, &record);
	return r < 0 ? r : 1;
}

static int file_read(int fd, struct ck_bytes *ret_bytes)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -CK_EIO;
	int r = ck_bytes_room(ret_bytes, (size_t)st.st_size);
	if (r < 0)
		return r;
	while (ret_bytes->len < (size_t)st.st_size) {
		ssize_t n = pread(fd, ret_bytes->p + ret_bytes->len,
				  (size_t)st.st_size - ret_bytes->len, (off_t)ret_bytes->len);
		if (n < 0 && errno != EINTR)
			return -CK_EIO;
		if (n == 0)
			break;
		ret_bytes->len += n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

/* the records are read as the fields of one message are: each is a number (its length), then so
 * many bytes */
static int state_read(struct ck_rt *rt, int fd)
{
	struct ck_bytes bytes = { 0 };
	size_t at = 0;
	int r = file_read(fd, &bytes);
	while (r >= 0 && at < bytes.len) {
		struct ck_wire wire = ck_wire_begin(bytes.p + at, bytes.len - at);
		uint64_t len;
		r = ck_wire_next_packed(&wire, &len, NULL);
		size_t head = (size_t)(wire.p - (bytes.p + at));
		if (r <= 0 || len > bytes.len - at - head) {
			r = 0;
			break;
		}
		r = replay(rt, ck_wire_begin(wire.p, (size_t)len));
		if (r <= 0)
			break;
		at += head + (size_t)len;
	}
	if (r >= 0 && at < bytes.len && ftruncate(fd, (off_t)at) < 0)
		r = -CK_EIO;
	ck_bytes_free(&bytes);
	return r < 0 ? r : 0;
}

int ck_rt_keep_open(struct ck_rt *rt, struct ck_error *err)
{
	static const int flags = O_CREAT | O_APPEND | O_CLOEXEC;
	const struct ck_rt_conf *conf = &rt->conf;
	rt->keep = (struct ck_rt_keep){ .log_fd = -1, .state_fd = -1, .began = ck_loop_now() };
	if (conf->log) {
		rt->keep.log_fd = open(conf->log, flags | O_WRONLY, 0644);
		if (rt->keep.log_fd < 0)
			return ck_fail_errno(err, CK_EIO, errno, "log '%s'", conf->log);
	}
	if (conf->state) {
		int fd = open(conf->state, flags | O_RDWR, 0600);
		if (fd < 0)
			return ck_fail_errno(err, CK_EIO, errno, "state '%s'", conf->state);
		int r = state_read(rt, fd);
		rt->keep.state_fd = fd; /* only now: what was read is not written again */
		for (struct ck_rt_object *c = rt->list[CK_CONTAINER]; c; c = c->next)
			ck_rt_exit_plan(c);
		if (r < 0)
			return ck_fail(err, -r, "read the state '%s': %s", conf->state,
				       ck_strerror(r));
	}
	return 0;
}

void ck_rt_keep_close(struct ck_rt *rt)
{
	if (rt->keep.log_fd >= 0)
		close(rt->keep.log_fd);
	if (rt->keep.state_fd >= 0)
		close(rt->keep.state_fd);
}
