/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRI's messages about what exists. What the caller sent comes back as it came: metadata, labels,
 * annotations, mounts are copied out of the config as bytes, so nothing is lost that this file does
 * not know. The kubelet's conditions hold: created_at is not 0, a sandbox has a network, a
 * container an image and an image_ref.
 */
#include <stdio.h>

#include "src/base/limits.h"
#include "src/sim/sim-int.h"

#define MIB (UINT64_C(1) << 20)

struct move { /* a field of the config, and its place in the answer */
	uint32_t from, to;
};

static void put_fields(struct ck_writer *out, const struct ck_bytes *config,
		       const struct move *moves, size_t n)
{
	struct ck_wire wire = ck_wire_begin(config->p, config->len);
	struct ck_wire_field field;
	while (ck_wire_next(&wire, &field, NULL) > 0) { /* it was well-formed when it came */
		for (size_t i = 0; i < n; i++) {
			if (moves[i].from != field.number)
				continue;
			if (field.type == CK_WIRE_BYTES)
				ck_writer_bytes(out, moves[i].to, field.data, field.len);
			else if (field.type == CK_WIRE_VARINT)
				ck_writer_number(out, moves[i].to, field.value);
		}
	}
}

/* ---- looking into a config ------------------------------------------------------------------- */

/* the last @number in a message, as proto3 has it */
static bool last_field(const unsigned char *p, size_t len, uint32_t number,
		       struct ck_wire_field *ret_field)
{
	struct ck_wire wire = ck_wire_begin(p, len);
	struct ck_wire_field field;
	bool found = false;
	while (ck_wire_next(&wire, &field, NULL) > 0) {
		if (field.number == number) {
			*ret_field = field;
			found = true;
		}
	}
	return found;
}

char *ck_sim_config_text(const struct ck_bytes *config, uint32_t outer, uint32_t number)
{
	struct ck_wire_field field = { .data = config->p, .len = config->len };
	bool found = (!outer || last_field(field.data, field.len, outer, &field)) &&
		     last_field(field.data, field.len, number, &field) &&
		     field.type == CK_WIRE_BYTES;
	return found ? ck_strndup((const char *)field.data, field.len) : ck_strdup("");
}

/* linux.security_context.namespace_options, or nothing */
static bool namespace_options(const struct ck_bytes *config, struct ck_wire_field *ret_field)
{
	return last_field(config->p, config->len, 8, ret_field) &&
	       last_field(ret_field->data, ret_field->len, 2, ret_field) &&
	       last_field(ret_field->data, ret_field->len, 1, ret_field) &&
	       ret_field->type == CK_WIRE_BYTES;
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

void ck_sim_put_sandbox(struct ck_writer *out, const struct ck_sim_object *sandbox)
{
	static const struct move moves[] = { { 1, 2 }, { 6, 5 }, { 7, 6 } };
	ck_writer_text(out, 1, sandbox->id);
	put_fields(out, &sandbox->config, moves, CK_COUNT(moves));
	ck_writer_number(out, 3, sandbox->state);
	ck_writer_number(out, 4, sandbox->created_at);
	ck_writer_text(out, 7, sandbox->handler);
}

bool ck_sim_in_host_network(const struct ck_sim_object *sandbox)
{
	enum { NODE = 2 };
	struct ck_wire_field options, mode;
	return namespace_options(&sandbox->config, &options) &&
	       last_field(options.data, options.len, 1, &mode) && mode.type == CK_WIRE_VARINT &&
	       mode.value == NODE;
}

static void put_network(struct ck_writer *out, uint32_t number, const struct ck_sim_object *sandbox)
{
	struct ck_wire_field options = { .data = NULL };
	char ip[32];
	bool known = namespace_options(&sandbox->config, &options);
	snprintf(ip, sizeof(ip), "10.%u.%u.%u", 64 + (unsigned)(sandbox->number >> 16 & 63),
		 (unsigned)(sandbox->number >> 8 & 255), (unsigned)(sandbox->number & 255));
	size_t network = ck_writer_open(out, number);
	if (!ck_sim_in_host_network(sandbox) && sandbox->state == CK_SIM_READY)
		ck_writer_text(out, 1, ip);
	ck_writer_close(out, network);
	size_t linux_status = ck_writer_open(out, number + 1), namespaces = ck_writer_open(out, 1);
	ck_writer_bytes(out, 2, options.data, known ? options.len : 0);
	ck_writer_close(out, namespaces);
	ck_writer_close(out, linux_status);
}

void ck_sim_put_sandbox_status(struct ck_writer *out, const struct ck_sim_object *sandbox)
{
	static const struct move moves[] = { { 1, 2 }, { 6, 7 }, { 7, 8 } };
	ck_writer_text(out, 1, sandbox->id);
	put_fields(out, &sandbox->config, moves, CK_COUNT(moves));
	ck_writer_number(out, 3, sandbox->state);
	ck_writer_number(out, 4, sandbox->created_at);
	put_network(out, 5, sandbox);
	ck_writer_text(out, 9, sandbox->handler);
}

void ck_sim_put_containers_of(struct ck_writer *out, uint32_t field,
			      const struct ck_sim_object *sandbox,
			      void (*put)(struct ck_writer *out,
					  const struct ck_sim_object *container))
{
	for (struct ck_sim_object *c = sandbox->sim->list[CK_CONTAINER]; c; c = c->next) {
		if (strcmp(c->sandbox_id, sandbox->id) != 0)
			continue;
		size_t opened = ck_writer_open(out, field);
		put(out, c);
		ck_writer_close(out, opened);
	}
}

/* ---- containers ------------------------------------------------------------------------------ */

static void put_image_id(struct ck_writer *out, uint32_t ref, uint32_t id,
			 const struct ck_sim_object *container)
{
	char digest[CK_SIM_IMAGE_ID];
	CK_AUTO_FREE char *image = ck_sim_config_text(&container->config, 2, 1);
	if (!image || ck_sim_image_id(image, digest) < 0) {
		out->r = -CK_ENOMEM;
		return;
	}
	ck_writer_text(out, ref, digest);
	ck_writer_text(out, id, digest);
}

void ck_sim_put_container(struct ck_writer *out, const struct ck_sim_object *container)
{
	static const struct move moves[] = { { 1, 3 }, { 2, 4 }, { 9, 8 }, { 10, 9 } };
	ck_writer_text(out, 1, container->id);
	ck_writer_text(out, 2, container->sandbox_id);
	put_fields(out, &container->config, moves, CK_COUNT(moves));
	put_image_id(out, 5, 10, container);
	ck_writer_number(out, 6, container->state);
	ck_writer_number(out, 7, container->created_at);
}

/* the kubelet reads logs there: the sandbox says in which directory */
static void put_log_path(struct ck_writer *out, uint32_t number,
			 const struct ck_sim_object *container)
{
	struct ck_sim_object *sandbox;
	CK_AUTO_FREE char *path = ck_sim_config_text(&container->config, 0, 11), *directory = NULL;
	HASH_FIND(by_id, container->sim->by_id[CK_SANDBOX], container->sandbox_id, CK_SIM_ID,
		  sandbox);
	directory = sandbox ? ck_sim_config_text(&sandbox->config, 0, 3) : ck_strdup("");
	if (!path || !directory) {
		out->r = -CK_ENOMEM;
		return;
	}
	struct ck_bytes whole = { 0 };
	if (*path && *directory &&
	    (ck_bytes_add_text(&whole, directory) < 0 || ck_bytes_add_text(&whole, "/") < 0))
		out->r = -CK_ENOMEM;
	if (ck_bytes_add_text(&whole, path) < 0)
		out->r = -CK_ENOMEM;
	if (whole.len)
		ck_writer_bytes(out, number, whole.p, whole.len);
	ck_bytes_free(&whole);
}

void ck_sim_put_container_status(struct ck_writer *out, const struct ck_sim_object *container)
{
	static const struct move moves[] = { { 1, 2 },  { 2, 8 },   { 7, 14 },
					     { 9, 12 }, { 10, 13 }, { 18, 19 } };
	ck_writer_text(out, 1, container->id);
	put_fields(out, &container->config, moves, CK_COUNT(moves));
	ck_writer_number(out, 3, container->state);
	ck_writer_number(out, 4, container->created_at);
	ck_writer_number(out, 5, container->started_at);
	if (container->state == CK_SIM_EXITED) {
		ck_writer_number(out, 6, container->finished_at);
		ck_writer_number(out, 7, container->exit_code);
		ck_writer_text(out, 10, container->exit_code ? "Error" : "Completed");
	}
	put_image_id(out, 9, 17, container);
	put_log_path(out, 15, container);
	if (container->uses[CK_SIM_RESOURCES].len) {
		size_t resources = ck_writer_open(out, 16);
		ck_writer_bytes(out, 1, container->uses[CK_SIM_RESOURCES].p,
				container->uses[CK_SIM_RESOURCES].len);
		ck_writer_close(out, resources);
	}
}

/* ---- statistics: made up, but never falling -------------------------------------------------- */

static uint64_t cpu_time(const struct ck_sim_object *container)
{
	uint64_t until =
		container->state == CK_SIM_RUNNING ? ck_sim_wall() : container->finished_at;
	return container->started_at && until > container->started_at
		       ? (until - container->started_at) / 1000
		       : 0;
}

static void put_cpu(struct ck_writer *out, uint32_t field, uint64_t now, uint64_t used)
{
	size_t cpu = ck_writer_open(out, field);
	ck_writer_number(out, 1, now);
	ck_writer_value(out, 2, used);
	ck_writer_value(out, 3, CK_NS_PER_MS); /* of each second: a thousandth of a core */
	ck_writer_close(out, cpu);
}

static void put_memory(struct ck_writer *out, uint32_t field, uint64_t now, uint64_t bytes)
{
	static const uint32_t fields[] = { 2, 4, 5 }; /* working set, usage, resident */
	size_t memory = ck_writer_open(out, field);
	ck_writer_number(out, 1, now);
	for (size_t i = 0; i < CK_COUNT(fields); i++)
		ck_writer_value(out, fields[i], bytes);
	ck_writer_close(out, memory);
}

void ck_sim_put_filesystem(struct ck_writer *out, uint32_t field, uint64_t used)
{
	size_t filesystem = ck_writer_open(out, field);
	ck_writer_number(out, 1, ck_sim_wall());
	size_t id = ck_writer_open(out, 2);
	ck_writer_text(out, 1, "/var/lib/crikeep-sim");
	ck_writer_close(out, id);
	ck_writer_value(out, 3, used);
	ck_writer_value(out, 4, used / 4096);
	ck_writer_close(out, filesystem);
}

void ck_sim_put_container_stats(struct ck_writer *out, const struct ck_sim_object *container)
{
	static const struct move moves[] = { { 1, 2 }, { 9, 3 }, { 10, 4 } };
	uint64_t now = ck_sim_wall();
	size_t attributes = ck_writer_open(out, 1);
	ck_writer_text(out, 1, container->id);
	put_fields(out, &container->config, moves, CK_COUNT(moves));
	ck_writer_close(out, attributes);
	put_cpu(out, 2, now, cpu_time(container));
	put_memory(out, 3, now, container->state == CK_SIM_RUNNING ? 4 * MIB : 0);
	ck_sim_put_filesystem(out, 4, 8192);
}

static void put_interface(struct ck_writer *out, uint32_t field)
{
	size_t interface = ck_writer_open(out, field);
	ck_writer_text(out, 1, "eth0");
	for (uint32_t i = 2; i <= 5; i++) /* received, errors, sent, errors */
		ck_writer_value(out, i, i % 2 ? 0 : 1024);
	ck_writer_close(out, interface);
}

void ck_sim_put_sandbox_stats(struct ck_writer *out, const struct ck_sim_object *sandbox)
{
	static const struct move moves[] = { { 1, 2 }, { 6, 3 }, { 7, 4 } };
	uint64_t now = ck_sim_wall(), used = 0, running = 0;
	for (struct ck_sim_object *c = sandbox->sim->list[CK_CONTAINER]; c; c = c->next) {
		if (strcmp(c->sandbox_id, sandbox->id) != 0)
			continue;
		used += cpu_time(c);
		running += c->state == CK_SIM_RUNNING;
	}
	size_t attributes = ck_writer_open(out, 1);
	ck_writer_text(out, 1, sandbox->id);
	put_fields(out, &sandbox->config, moves, CK_COUNT(moves));
	ck_writer_close(out, attributes);
	size_t stats = ck_writer_open(out, 2);
	put_cpu(out, 1, now, used);
	put_memory(out, 2, now, MIB + running * 4 * MIB);
	size_t network = ck_writer_open(out, 3);
	ck_writer_number(out, 1, now);
	put_interface(out, 2);
	ck_writer_close(out, network);
	size_t processes = ck_writer_open(out, 4);
	ck_writer_number(out, 1, now);
	ck_writer_value(out, 2, 1 + running);
	ck_writer_close(out, processes);
	ck_sim_put_containers_of(out, 5, sandbox, ck_sim_put_container_stats);
	ck_writer_close(out, stats);
}
