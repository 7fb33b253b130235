/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two files of the runtime. The log has a line for each thing that happened, for people and for
 * tests that want the runtime's own count. The state file has a record for each change and is read
 * at the start, so that objects outlive the process.
 *
 *   record   a varint (its length), then the fields of a message:
 *            1 change, 2 kind, 3 id, 4 time
 *            5 name, 6 sandbox's id, 7 handler, 8 config   if the object was made
 *            9 resources, 10 overhead                      if it was updated
 *            11 exit code                                  if it was stopped
 *
 * A record is one write, so after a kill it is whole or not there. A file that a full disk has cut
 * is read up to the cut.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/sim/sim-int.h"

void ck_sim_log(struct ck_sim *sim, const char *verb, const struct ck_sim_object *object)
{
	if (sim->keep.log_fd < 0)
		return;
	uint64_t ms = (ck_loop_now() - sim->keep.began) / CK_NS_PER_MS;
	dprintf(sim->keep.log_fd, "%llu.%03llu %s %s %s %s\n", (unsigned long long)(ms / 1000),
		(unsigned long long)(ms % 1000), verb,
		object->kind == CK_SANDBOX ? "sandbox" : "container", object->id, object->name);
}

void ck_sim_keep(struct ck_sim_object *object, enum ck_sim_change change)
{
	int fd = object->sim->keep.state_fd;
	struct ck_writer record = { .r = 0 };
	struct ck_bytes whole = { 0 };
	if (fd < 0)
		return;
	ck_writer_number(&record, 1, change);
	ck_writer_number(&record, 2, object->kind);
	ck_writer_text(&record, 3, object->id);
	ck_writer_number(&record, 4, change == CK_SIM_MADE ? object->created_at : ck_sim_wall());
	if (change == CK_SIM_MADE) {
		ck_writer_text(&record, 5, object->name);
		ck_writer_text(&record, 6, object->sandbox_id);
		ck_writer_text(&record, 7, object->handler);
		if (record.r == 0)
			record.r = ck_bytes_field(&record.bytes, 8, object->config.p,
						  object->config.len);
	}
	if (change == CK_SIM_UPDATED)
		for (uint32_t i = 0; i < CK_SIM_USES; i++)
			ck_writer_bytes(&record, 9 + i, object->uses[i].p, object->uses[i].len);
	if (change == CK_SIM_STOPPED)
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

static int replay_made(struct ck_sim *sim, const struct record *record, enum ck_kind kind)
{
	struct ck_sim_object *object;
	CK_AUTO_FREE char *name = record_text(record, 5);
	int r = name ? ck_sim_object_new(sim, kind, name, &object) : -CK_ENOMEM;
	if (r < 0)
		return r;
	memcpy(object->id, record->field[3].data, CK_SIM_ID);
	if (record->field[6].len == CK_SIM_ID)
		memcpy(object->sandbox_id, record->field[6].data, CK_SIM_ID);
	object->created_at = record->field[4].value;
	object->handler = record_text(record, 7);
	r = ck_bytes_add(&object->config, record->field[8].data, record->field[8].len);
	if (r == 0 && object->handler)
		r = ck_sim_object_exists(object);
	if (r == 0 && object->handler)
		return 0;
	ck_sim_object_free(object);
	return -CK_ENOMEM;
}

static int replay_updated(struct ck_sim_object *object, const struct record *record)
{
	int r = 0;
	for (int i = 0; i < CK_SIM_USES && r == 0; i++) {
		object->uses[i].len = 0;
		r = ck_bytes_add(&object->uses[i], record->field[9 + i].data,
				 record->field[9 + i].len);
	}
	return r;
}

static int replay_change(struct ck_sim_object *object, enum ck_sim_change change,
			 const struct record *record)
{
	uint64_t when = record->field[4].value;
	switch (change) {
	case CK_SIM_STARTED:
		object->state = CK_SIM_RUNNING;
		object->started_at = when;
		break;
	case CK_SIM_STOPPED:
		object->state = object->kind == CK_CONTAINER ? CK_SIM_EXITED : CK_SIM_NOTREADY;
		object->finished_at = when;
		object->exit_code = (uint32_t)record->field[11].value;
		break;
	case CK_SIM_REMOVED:
		ck_sim_object_free(object);
		break;
	case CK_SIM_UPDATED:
		return replay_updated(object, record);
	case CK_SIM_MADE:
		break;
	}
	return 0;
}

/* 1; 0: not a record of ours */
static int replay(struct ck_sim *sim, struct ck_wire wire)
{
	struct record record = { 0 };
	struct ck_wire_field field;
	struct ck_sim_object *object;
	int r;
	while ((r = ck_wire_next(&wire, &field, NULL)) > 0)
		if (field.number < CK_COUNT(record.field))
			record.field[field.number] = field;
	uint64_t change = record.field[1].value, kind = record.field[2].value;
	if (r < 0 || change < CK_SIM_MADE || change > CK_SIM_UPDATED ||
	    (kind != CK_SANDBOX && kind != CK_CONTAINER) || record.field[3].len != CK_SIM_ID)
		return 0;
	if (change == CK_SIM_MADE) {
		r = replay_made(sim, &record, (enum ck_kind)kind);
		return r == -CK_ECONFLICT ? 0 : r < 0 ? r : 1;
	}
	if (ck_sim_object_find(sim, (enum ck_kind)kind, (const char *)record.field[3].data,
			       CK_SIM_ID, &object) < 0)
		return 0;
	r = replay_change(object, (enum ck_sim_change)change, &record);
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

/* each record is a number, its length, and then that many bytes */
static int state_read(struct ck_sim *sim, int fd)
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
		r = replay(sim, ck_wire_begin(wire.p, (size_t)len));
		if (r <= 0)
			break;
		at += head + (size_t)len;
	}
	if (r >= 0 && at < bytes.len && ftruncate(fd, (off_t)at) < 0)
		r = -CK_EIO;
	ck_bytes_free(&bytes);
	return r < 0 ? r : 0;
}

int ck_sim_keep_open(struct ck_sim *sim, struct ck_error *err)
{
	static const int flags = O_CREAT | O_APPEND | O_CLOEXEC;
	const struct ck_sim_conf *conf = &sim->conf;
	sim->keep = (struct ck_sim_keep){ .log_fd = -1, .state_fd = -1, .began = ck_loop_now() };
	if (conf->log) {
		sim->keep.log_fd = open(conf->log, flags | O_WRONLY, 0644);
		if (sim->keep.log_fd < 0)
			return ck_fail_errno(err, CK_EIO, errno, "log '%s'", conf->log);
	}
	if (conf->state) {
		int fd = open(conf->state, flags | O_RDWR, 0600);
		if (fd < 0)
			return ck_fail_errno(err, CK_EIO, errno, "state '%s'", conf->state);
		int r = state_read(sim, fd);
		sim->keep.state_fd = fd; /* not earlier: what is read must not be written again */
		for (struct ck_sim_object *c = sim->list[CK_CONTAINER]; c; c = c->next)
			ck_sim_container_exit_plan(c);
		if (r < 0)
			return ck_fail(err, -r, "read the state '%s': %s", conf->state,
				       ck_strerror(r));
	}
	return 0;
}

void ck_sim_keep_close(struct ck_sim *sim)
{
	if (sim->keep.log_fd >= 0)
		close(sim->keep.log_fd);
	if (sim->keep.state_fd >= 0)
		close(sim->keep.state_fd);
}
