/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/wire-writer.h"
#include "src/cri/message.h"
#include "src/daemon/nri/resources.h"

const struct ck_resource ck_resources[] = {
#define NUMBER(name, path) { #name, CRI_LinuxContainerResources_##name, false, path }
#define TEXT_OF(name, path) { #name, CRI_LinuxContainerResources_##name, true, path }
	NUMBER(memory_limit_in_bytes, "memory.limit"),
	NUMBER(memory_swap_limit_in_bytes, "memory.swap"),
	NUMBER(cpu_shares, "cpu.shares"),
	NUMBER(cpu_quota, "cpu.quota"),
	NUMBER(cpu_period, "cpu.period"),
	TEXT_OF(cpuset_cpus, "cpu.cpus"),
	TEXT_OF(cpuset_mems, "cpu.mems"),
	{ NULL, 0, false, NULL },
};

/* an entry of unified: key and value; or a limit of huge pages: size and number */
static int put_inner(struct ck_nri_message *to, bool unified, struct ck_wire inside,
		     struct ck_error *err)
{
	struct ck_fields entry;
	int r = ck_fields_read(inside, &entry, err);
	if (r < 0)
		return r;
	const struct ck_wire_field *key = ck_fields_get(&entry, CK_MAP_KEY),
				   *value = ck_fields_get(&entry, CK_MAP_VALUE);
	struct ck_nri_message *item = ck_message_item(to, unified ? "unified" : "hugepage_limits");
	if (key)
		ck_message_text(item, unified ? "key" : "page_size", key->data, key->len);
	if (unified && value)
		ck_message_text(item, "value", value->data, value->len);
	if (!unified)
		ck_message_number(item, "limit",
				  (int64_t)ck_fields_number(&entry, CK_MAP_VALUE));
	return 0;
}

int ck_resources_put(struct ck_nri_message *to, const void *cri, size_t len, struct ck_error *err)
{
	struct ck_fields fields;
	struct ck_wire_field field;
	int r = ck_fields_read(ck_wire_begin(cri, len), &fields, err);
	if (r < 0)
		return r;
	for (const struct ck_resource *resource = ck_resources; resource->cri; resource++) {
		const struct ck_wire_field *text = ck_fields_get(&fields, resource->cri);
		int64_t number = (int64_t)ck_fields_number(&fields, resource->cri);
		if (resource->text && text && text->len)
			ck_message_text(to, resource->path, text->data, text->len);
		else if (!resource->text && number)
			ck_message_number(to, resource->path, number);
	}
	struct ck_wire wire = fields.all;
	while (r == 0 && ck_wire_next(&wire, &field, NULL) > 0) {
		bool unified = field.number == CRI_LinuxContainerResources_unified;
		if (field.type == CK_WIRE_BYTES &&
		    (unified || field.number == CRI_LinuxContainerResources_hugepage_limits))
			r = put_inner(to, unified, ck_wire_inside(&wire, &field), err);
	}
	return r;
}

int ck_resources_from_cri(const void *cri, size_t len, struct ck_bytes *ret_resources,
			  struct ck_error *err)
{
	CK_AUTO_MESSAGE *resources = NULL;
	int r = ck_message_new(CK_NRI_RESOURCES, &resources, err);
	if (r == 0)
		r = ck_resources_put(resources, cri, len, err);
	return r < 0 ? r : ck_message_bytes(resources, ret_resources, err);
}

/* ---- to CRI ---------------------------------------------------------------------------------- */

static void put_text(struct ck_writer *out, uint32_t to, const struct ck_fields *from_fields,
		     uint32_t from)
{
	const struct ck_wire_field *field = ck_fields_get(from_fields, from);
	if (field && field->len)
		ck_writer_utf8(out, to, field->data, field->len);
}

/* An entry of unified: key and value; or a limit of huge pages: size and number. They have the same
 * field numbers, in CRI and in NRI. */
static int put_entry(struct ck_writer *out, uint32_t to, struct ck_wire inside,
		     struct ck_error *err)
{
	struct ck_fields entry;
	int r = ck_fields_read(inside, &entry, err);
	if (r < 0)
		return r;
	size_t opened = ck_writer_open(out, to);
	put_text(out, CK_MAP_KEY, &entry, CK_MAP_KEY);
	put_text(out, CK_MAP_VALUE, &entry, CK_MAP_VALUE);
	ck_writer_number(out, CK_MAP_VALUE, ck_fields_number(&entry, CK_MAP_VALUE));
	ck_writer_close(out, opened);
	return 0;
}

enum { NOWHERE, WRAPPED, TEXT, INSIDE, ENTRIES };

/* of a message of NRI's: its field in CRI, or its name in NRI's list of fields */
struct part {
	uint32_t number;
	int how;
	uint32_t to;
	const struct part *parts;
	const char *name;
};

static const struct part memory_parts[] = {
	{ 1, WRAPPED, CRI_LinuxContainerResources_memory_limit_in_bytes, NULL, "MemLimit" },
	{ 2, NOWHERE, 0, NULL, "MemReservation" },
	{ 3, WRAPPED, CRI_LinuxContainerResources_memory_swap_limit_in_bytes, NULL,
	  "MemSwapLimit" },
	{ 4, NOWHERE, 0, NULL, "MemKernelLimit" },
	{ 5, NOWHERE, 0, NULL, "MemTCPLimit" },
	{ 6, NOWHERE, 0, NULL, "MemSwappiness" },
	{ 7, NOWHERE, 0, NULL, "MemDisableOomKiller" },
	{ 8, NOWHERE, 0, NULL, "MemUseHierarchy" },
	{ 0 },
};
static const struct part cpu_parts[] = {
	{ 1, WRAPPED, CRI_LinuxContainerResources_cpu_shares, NULL, "CPUShares" },
	{ 2, WRAPPED, CRI_LinuxContainerResources_cpu_quota, NULL, "CPUQuota" },
	{ 3, WRAPPED, CRI_LinuxContainerResources_cpu_period, NULL, "CPUPeriod" },
	{ 4, NOWHERE, 0, NULL, "CPURealtimeRuntime" },
	{ 5, NOWHERE, 0, NULL, "CPURealtimePeriod" },
	{ 6, TEXT, CRI_LinuxContainerResources_cpuset_cpus, NULL, "CPUSetCPUs" },
	{ 7, TEXT, CRI_LinuxContainerResources_cpuset_mems, NULL, "CPUSetMems" },
	{ 0 },
};
static const struct part resources_parts[] = {
	{ 1, INSIDE, 0, memory_parts, NULL },
	{ 2, INSIDE, 0, cpu_parts, NULL },
	{ 3, ENTRIES, CRI_LinuxContainerResources_hugepage_limits, NULL, "HugepageLimits" },
	{ 4, NOWHERE, 0, NULL, "BlockioClass" },
	{ 5, NOWHERE, 0, NULL, "RdtClass" },
	{ 6, ENTRIES, CRI_LinuxContainerResources_unified, NULL, "CgroupsUnified" },
	{ 7, NOWHERE, 0, NULL, "Devices" },
	{ 8, NOWHERE, 0, NULL, "PidsLimit" },
	{ 0 },
};

static int cannot(const char *name, struct ck_error *err)
{
	return ck_fail(err, CK_EINVAL, "field %s cannot be applied through CRI", name);
}

static int put_parts(struct ck_writer *out, struct ck_wire wire, const struct part *parts,
		     struct ck_error *err);

static int put_part(struct ck_writer *out, const struct part *part, const struct ck_wire *wire,
		    const struct ck_wire_field *field, struct ck_error *err)
{
	struct ck_fields inside;
	int r;
	switch (part->how) {
	case TEXT:
		if (field->len)
			ck_writer_utf8(out, part->to, field->data, field->len);
		return 0;
	case ENTRIES:
		return put_entry(out, part->to, ck_wire_inside(wire, field), err);
	case INSIDE:
		return put_parts(out, ck_wire_inside(wire, field), part->parts, err);
	case WRAPPED:
		r = ck_fields_read(ck_wire_inside(wire, field), &inside, err);
		if (r == 0 && !ck_fields_number(&inside, 1))
			return ck_fail(err, CK_EINVAL, "field %s cannot be set to 0 through CRI",
				       part->name);
		if (r == 0)
			ck_writer_number(out, part->to, ck_fields_number(&inside, 1));
		return r;
	default:
		return cannot(part->name, err);
	}
}

static int put_parts(struct ck_writer *out, struct ck_wire wire, const struct part *parts,
		     struct ck_error *err)
{
	struct ck_wire_field field;
	int r;
	while ((r = ck_wire_next(&wire, &field, err)) > 0) {
		const struct part *part = parts;
		while (part->number && part->number != field.number)
			part++;
		if (!part->number || field.type != CK_WIRE_BYTES)
			return ck_fail(err, CK_EINVAL,
				       "a field of resources that is not known (%u) cannot be "
				       "applied through CRI",
				       (unsigned)field.number);
		r = put_part(out, part, &wire, &field, err);
		if (r < 0)
			return r;
	}
	return r;
}

int ck_resources_to_cri(const void *resources, size_t len, struct ck_bytes *ret_cri,
			struct ck_error *err)
{
	struct ck_writer out = { .bytes = *ret_cri };
	size_t before = out.bytes.len;
	int r = put_parts(&out, ck_wire_begin(resources, len), resources_parts, err);
	if (r == 0 && out.r < 0)
		r = ck_nomem(err);
	*ret_cri = out.bytes; /* its memory may have moved */
	if (r < 0)
		ret_cri->len = before;
	return r;
}
