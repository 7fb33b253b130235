/* SPDX-License-Identifier: Apache-2.0 */
#include "src/daemon/fields.h"
#include "src/daemon/resources.h"

/* a wrapper is there only with a value: CRI's 0 is "not set" */
static void put_set(struct ck_out *out, uint32_t field, uint64_t number)
{
	if (number)
		ck_out_value(out, field, number);
}

static void put_text(struct ck_out *out, uint32_t to, const struct ck_fields *cri, uint32_t from)
{
	const struct ck_wire_field *field = ck_fields_get(cri, from, CK_WIRE_BYTES);
	if (field && field->len)
		ck_out_utf8(out, to, field->data, field->len);
}

/* an entry of unified: key and value; or a limit of huge pages: size and number, at the same places in both */
static int put_entry(struct ck_out *out, uint32_t to, struct ck_wire inside, struct ck_error *err)
{
	struct ck_fields entry;
	int r = ck_fields_read(inside, &entry, err);
	if (r < 0)
		return r;
	size_t opened = ck_out_open(out, to);
	put_text(out, 1, &entry, 1);
	put_text(out, 2, &entry, 2);
	ck_out_number(out, 2, ck_fields_number(&entry, 2));
	ck_out_close(out, opened);
	return 0;
}

int ck_resources_from_cri(const void *cri, size_t len, struct ck_bytes *ret_resources, struct ck_error *err)
{
	enum { PERIOD = 1, QUOTA, SHARES, MEMORY, CPUS = 6, MEMS, HUGEPAGES, UNIFIED, SWAP };
	struct ck_fields fields;
	struct ck_wire_field field;
	struct ck_out out = { .bytes = *ret_resources };
	int r = ck_fields_read(ck_wire_begin(cri, len), &fields, err);
	if (r < 0)
		return r;
	if (ck_fields_number(&fields, MEMORY) || ck_fields_number(&fields, SWAP)) {
		size_t memory = ck_out_open(&out, 1);
		put_set(&out, 1, ck_fields_number(&fields, MEMORY));
		put_set(&out, 3, ck_fields_number(&fields, SWAP));
		ck_out_close(&out, memory);
	}
	size_t before = out.bytes.len, cpu = ck_out_open(&out, 2);
	put_set(&out, 1, ck_fields_number(&fields, SHARES));
	put_set(&out, 2, ck_fields_number(&fields, QUOTA));
	put_set(&out, 3, ck_fields_number(&fields, PERIOD));
	put_text(&out, 6, &fields, CPUS);
	put_text(&out, 7, &fields, MEMS);
	if (out.bytes.len == cpu)
		out.bytes.len = before; /* nothing is said of it */
	else
		ck_out_close(&out, cpu);
	struct ck_wire wire = fields.all;
	while (r == 0 && ck_wire_next(&wire, &field, NULL) > 0) {
		if (field.type == CK_WIRE_BYTES && (field.number == HUGEPAGES || field.number == UNIFIED))
			r = put_entry(&out, field.number == HUGEPAGES ? 3 : 6, ck_wire_inside(&wire, &field), err);
	}
	*ret_resources = out.bytes;
	return r < 0 ? r : out.r < 0 ? ck_nomem(err) : 0;
}
