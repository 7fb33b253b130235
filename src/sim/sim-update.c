/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of an existing object other than start and stop: its resources are updated, or it exits
 * by itself. */
#include "src/base/limits.h"
#include "src/base/duration.h"
#include "src/sim/sim-int.h"

/* ---- resources ------------------------------------------------------------------------------- */

int ck_sim_uses_begin(struct ck_sim_object *object)
{
	static const struct {
		uint32_t linux_config, uses[CK_SIM_USES]; /* 0: none */
	} places[] = {
		[CK_SANDBOX] = { CRI_PodSandboxConfig_linux,
				 { CRI_LinuxPodSandboxConfig_resources,
				   CRI_LinuxPodSandboxConfig_overhead } },
		[CK_CONTAINER] = { CRI_ContainerConfig_linux,
				   { CRI_LinuxContainerConfig_resources, 0 } },
	};
	struct ck_fields config, asked;
	int r = ck_fields_read(ck_wire_begin(object->config.p, object->config.len), &config, NULL);
	r = r < 0 ? r : ck_fields_inside(&config, places[object->kind].linux_config, &asked, NULL);
	for (int i = 0; i < CK_SIM_USES && r == 0; i++) {
		uint32_t number = places[object->kind].uses[i];
		const struct ck_wire_field *field =
			number ? ck_fields_get(&asked, number) : NULL;
		if (field)
			r = ck_bytes_add(&object->uses[i], field->data, field->len);
	}
	return r == -CK_ENOMEM ? r : 0; /* a config that cannot be read has no resources */
}

/* the key of a map's entry, or the page size of a limit: the field number is the same */
static bool same_key(const struct ck_wire *a_outer, const struct ck_wire_field *a,
		     const struct ck_wire *b_outer, const struct ck_wire_field *b)
{
	struct ck_fields fields[2];
	const struct ck_wire_field *keys[2];
	if (ck_fields_read(ck_wire_inside(a_outer, a), &fields[0], NULL) < 0 ||
	    ck_fields_read(ck_wire_inside(b_outer, b), &fields[1], NULL) < 0)
		return false;
	for (int i = 0; i < 2; i++)
		keys[i] = ck_fields_get(&fields[i], CK_MAP_KEY);
	return keys[0] && keys[1] && keys[0]->len == keys[1]->len &&
	       !memcmp(keys[0]->data, keys[1]->data, keys[0]->len);
}

static bool is_replaced(const struct ck_wire *outer, const struct ck_wire_field *old,
			struct ck_wire update)
{
	struct ck_wire_field field;
	bool keyed = old->type == CK_WIRE_BYTES &&
		     (old->number == CRI_LinuxContainerResources_hugepage_limits ||
		      old->number == CRI_LinuxContainerResources_unified);
	while (ck_wire_next(&update, &field, NULL) > 0) {
		if (field.number != old->number)
			continue;
		if (!keyed ||
		    (field.type == CK_WIRE_BYTES && same_key(outer, old, &update, &field)))
			return true;
	}
	return false;
}

int ck_sim_uses_update(struct ck_bytes *uses, const void *update, size_t len, struct ck_error *err)
{
	struct ck_wire wire = ck_wire_begin(uses->p, uses->len), new = ck_wire_begin(update, len);
	struct ck_wire_field field;
	struct ck_fields all;
	struct ck_bytes merged = { 0 };
	const unsigned char *at = wire.p;
	int r = ck_fields_read(new, &all, err);
	while (r >= 0 && (r = ck_wire_next(&wire, &field, err)) > 0) {
		if (!is_replaced(&wire, &field, new))
			r = ck_bytes_add(&merged, at, (size_t)(wire.p - at));
		at = wire.p;
	}
	if (r == 0)
		r = ck_bytes_add(&merged, update, len);
	if (r < 0) {
		ck_bytes_free(&merged);
		return r;
	}
	ck_bytes_free(uses);
	*uses = merged;
	return 0;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static char *annotation(const struct ck_sim_object *container, const char *key)
{
	struct ck_wire_field value;
	int r = ck_cri_find(ck_wire_begin(container->config.p, container->config.len),
			    CRI_ContainerConfig_annotations, key, strlen(key), &value, NULL);
	return r > 0 && value.data ? ck_strndup((const char *)value.data, value.len) : NULL;
}

/* when it exits after its start, and with which code; false: never */
static bool exit_of(const struct ck_sim_object *container, uint64_t *ret_span, uint32_t *ret_code)
{
	CK_AUTO_FREE char *text = annotation(container, "crikeep.sim/exit");
	char *code = text ? strchr(text, ':') : NULL;
	*ret_span = container->sim->conf.exit;
	*ret_code = 0;
	if (code) {
		*code = '\0';
		*ret_code = (uint32_t)strtoul(code + 1, NULL, 10) & 0xff;
	}
	return text ? ck_duration_parse(text, ret_span) && *ret_span <= CK_DURATION_MAX
		    : *ret_span > 0;
}

static void exit_due(void *userdata)
{
	struct ck_sim_object *container = userdata;
	uint64_t span;
	uint32_t code;
	exit_of(container, &span, &code);
	ck_sim_container_exit(container, code);
}

void ck_sim_container_exit_plan(struct ck_sim_object *container)
{
	uint64_t span, now = ck_sim_wall();
	uint32_t code;
	if (container->state != CK_SIM_RUNNING || !exit_of(container, &span, &code))
		return;
	/* it should have exited before this process was started again */
	uint64_t ran = now > container->started_at ? now - container->started_at : 0;
	uint64_t left = span > ran ? span - ran : 0;
	if (ck_loop_timer(&container->sim->loop, &container->timer, ck_loop_now() + left, exit_due,
			  container) < 0)
		ck_sim_container_exit(container, code);
}
