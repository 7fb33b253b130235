/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that show what exists: lists and their streams, statuses, statistics, metrics, events
 * and counts. */
#include <stdio.h>

#include <utlist.h>

#include "src/base/limits.h"
#include "src/sim/sim-int.h"

/* ---- filters --------------------------------------------------------------------------------- */

struct shape { /* field numbers of a filter; 0: it has no such field */
	uint32_t id, state, sandbox, labels;
};

static const struct shape object_filters[] = {
	[CK_SANDBOX] = { CRI_PodSandboxFilter_id, CRI_PodSandboxFilter_state, 0,
			 CRI_PodSandboxFilter_label_selector },
	[CK_CONTAINER] = { CRI_ContainerFilter_id, CRI_ContainerFilter_state,
			   CRI_ContainerFilter_pod_sandbox_id, CRI_ContainerFilter_label_selector },
};
static const struct shape stats_filters[] = {
	[CK_SANDBOX] = { CRI_PodSandboxStatsFilter_id, 0, 0,
			 CRI_PodSandboxStatsFilter_label_selector },
	[CK_CONTAINER] = { CRI_ContainerStatsFilter_id, 0, CRI_ContainerStatsFilter_pod_sandbox_id,
			   CRI_ContainerStatsFilter_label_selector },
};

struct filter {
	const struct shape *shape;
	struct ck_fields fields; /* the labels are read again for each object */
	bool by_id, by_sandbox, by_state;
	const struct ck_sim_object *id, *sandbox; /* with by_id, NULL means no object */
	uint64_t state;
};

/* true: the filter names an object in field @number. As in containerd, a prefix of several ids
 * matches nothing: *@ret_object is NULL */
static bool names(struct ck_sim *sim, const struct filter *filter, uint32_t number,
		  enum ck_kind kind, const struct ck_sim_object **ret_object)
{
	const struct ck_wire_field *id = ck_fields_get(&filter->fields, number);
	struct ck_sim_object *found = NULL;
	if (!id || !id->len)
		return false;
	ck_sim_object_find(sim, kind, (const char *)id->data, id->len, &found);
	*ret_object = found;
	return true;
}

static int filter_read(struct ck_sim_call *call, const struct shape *shape, struct filter *filter)
{
	struct ck_wire_field field = { .data = NULL };
	struct ck_fields state = { .all = ck_wire_begin(NULL, 0) };
	struct ck_error err;
	int r = ck_sim_request_field(call, CRI_ListContainersRequest_filter, &field);
	if (r < 0)
		return r;
	*filter = (struct filter){ .shape = shape };
	r = ck_fields_read(ck_wire_begin(field.data, field.len), &filter->fields, &err);
	if (r == 0)
		r = ck_fields_inside(&filter->fields, shape->state, &state, &err);
	if (r < 0)
		return ck_sim_fail(call, CK_GRPC_INTERNAL, "grpc: error unmarshalling request: %s",
				   err.text);
	filter->by_id = names(call->sim, filter, shape->id, call->method->kind, &filter->id);
	filter->by_sandbox =
		names(call->sim, filter, shape->sandbox, CK_SANDBOX, &filter->sandbox);
	/* An empty message means READY or CREATED. Both kinds have the same field number in it. */
	filter->by_state = ck_fields_get(&filter->fields, shape->state);
	filter->state = ck_fields_number(&state, CRI_ContainerStateValue_state);
	return 0;
}

/* true: the object has the label in this entry of a map */
static bool has_label(const struct ck_sim_object *object, struct ck_wire entry)
{
	struct ck_wire_field key = { 0 }, wanted = { 0 }, value;
	ck_cri_last(entry, CK_MAP_KEY, &key, NULL);
	ck_cri_last(entry, CK_MAP_VALUE, &wanted, NULL);
	return ck_cri_find(ck_wire_begin(object->config.p, object->config.len),
			   ck_sim_labels(object->kind), key.data, key.len, &value, NULL) > 0 &&
	       value.len == wanted.len &&
	       (!value.len || !memcmp(value.data, wanted.data, value.len));
}

static bool matches(const struct filter *filter, const struct ck_sim_object *object)
{
	struct ck_wire wire = filter->fields.all;
	struct ck_wire_field field;
	if (filter->by_id && object != filter->id)
		return false;
	if (filter->by_sandbox &&
	    (!filter->sandbox || strcmp(object->sandbox_id, filter->sandbox->id) != 0))
		return false;
	if (filter->by_state && object->state != filter->state)
		return false;
	while (ck_cri_each(&wire, filter->shape->labels, &field, NULL) > 0)
		if (!has_label(object, ck_wire_inside(&wire, &field)))
			return false;
	return true;
}

/* ---- lists ----------------------------------------------------------------------------------- */

typedef void put_fn(struct ck_writer *out, const struct ck_sim_object *object);

/* the items have the same field number in all lists and streams */
static int list(struct ck_sim_call *call, const struct shape *shape, put_fn *put)
{
	const struct ck_sim_object *object;
	struct filter filter;
	int r = filter_read(call, shape, &filter);
	if (r < 0)
		return r;
	DL_FOREACH (call->sim->list[call->method->kind], object) {
		if (!matches(&filter, object))
			continue;
		size_t opened = ck_writer_open(&call->out, CRI_ListPodSandboxResponse_items);
		put(&call->out, object);
		ck_writer_close(&call->out, opened);
		ck_sim_item(call);
	}
	return CK_SIM_DONE;
}

int ck_sim_list_objects(struct ck_sim_call *call)
{
	enum ck_kind kind = call->method->kind;
	return list(call, &object_filters[kind],
		    kind == CK_SANDBOX ? ck_sim_put_sandbox : ck_sim_put_container);
}

int ck_sim_list_stats(struct ck_sim_call *call)
{
	enum ck_kind kind = call->method->kind;
	return list(call, &stats_filters[kind],
		    kind == CK_SANDBOX ? ck_sim_put_sandbox_stats : ck_sim_put_container_stats);
}

/* ---- metrics --------------------------------------------------------------------------------- */

#define METRIC "container_start_time_seconds"

static void put_metric(struct ck_writer *out, uint32_t field, const struct ck_sim_object *object)
{
	size_t metric = ck_writer_open(out, field);
	ck_writer_text(out, CRI_Metric_name, METRIC);
	ck_writer_number(out, CRI_Metric_timestamp, ck_sim_wall());
	ck_writer_number(out, CRI_Metric_metric_type, CRI_MetricType_GAUGE);
	ck_writer_text(out, CRI_Metric_label_values, object->id);
	ck_writer_value(out, CRI_Metric_value, object->created_at / CK_NS_PER_S);
	ck_writer_close(out, metric);
}

static void put_container_metrics(struct ck_writer *out, const struct ck_sim_object *container)
{
	ck_writer_text(out, CRI_ContainerMetrics_container_id, container->id);
	put_metric(out, CRI_ContainerMetrics_metrics, container);
}

static void put_sandbox_metrics(struct ck_writer *out, const struct ck_sim_object *sandbox)
{
	ck_writer_text(out, CRI_PodSandboxMetrics_pod_sandbox_id, sandbox->id);
	put_metric(out, CRI_PodSandboxMetrics_metrics, sandbox);
	ck_sim_put_containers_of(out, CRI_PodSandboxMetrics_container_metrics, sandbox,
				 put_container_metrics);
}

int ck_sim_list_metrics(struct ck_sim_call *call)
{
	static const struct shape no_filter = { 0 };
	return list(call, &no_filter, put_sandbox_metrics);
}

int ck_sim_metric_descriptors(struct ck_sim_call *call)
{
	size_t descriptor =
		ck_writer_open(&call->out, CRI_ListMetricDescriptorsResponse_descriptors);
	ck_writer_text(&call->out, CRI_MetricDescriptor_name, METRIC);
	ck_writer_text(&call->out, CRI_MetricDescriptor_help,
		       "When it was made, in seconds since 1970.");
	ck_writer_text(&call->out, CRI_MetricDescriptor_label_keys, "id");
	ck_writer_close(&call->out, descriptor);
	return CK_SIM_DONE;
}

/* ---- one object ------------------------------------------------------------------------------ */

static bool is_verbose(struct ck_sim_call *call, uint32_t number)
{
	struct ck_wire_field field = { .value = 0 };
	return ck_sim_request_field(call, number, &field) > 0 && field.value;
}

static int one(struct ck_sim_call *call, put_fn *put, struct ck_sim_object **ret_object)
{
	int r = ck_sim_request_object(call, call->method->kind, true, ret_object);
	if (r < 0)
		return r;
	/* the same field number in all such answers */
	size_t opened = ck_writer_open(&call->out, CRI_PodSandboxStatusResponse_status);
	put(&call->out, *ret_object);
	ck_writer_close(&call->out, opened);
	return CK_SIM_DONE;
}

int ck_sim_sandbox_status(struct ck_sim_call *call)
{
	struct ck_sim_object *sandbox;
	int r = one(call, ck_sim_put_sandbox_status, &sandbox);
	if (r < 0)
		return r;
	if (is_verbose(call, CRI_PodSandboxStatusRequest_verbose))
		ck_sim_put_info(&call->out, CRI_PodSandboxStatusResponse_info, sandbox);
	ck_sim_put_containers_of(&call->out, CRI_PodSandboxStatusResponse_containers_statuses,
				 sandbox, ck_sim_put_container_status);
	ck_writer_number(&call->out, CRI_PodSandboxStatusResponse_timestamp, ck_sim_wall());
	return CK_SIM_DONE;
}

int ck_sim_container_status(struct ck_sim_call *call)
{
	struct ck_sim_object *container;
	int r = one(call, ck_sim_put_container_status, &container);
	if (r == CK_SIM_DONE && is_verbose(call, CRI_ContainerStatusRequest_verbose))
		ck_sim_put_info(&call->out, CRI_ContainerStatusResponse_info, container);
	return r;
}

int ck_sim_stats(struct ck_sim_call *call)
{
	struct ck_sim_object *object;
	return one(call,
		   call->method->kind == CK_SANDBOX ? ck_sim_put_sandbox_stats
						    : ck_sim_put_container_stats,
		   &object);
}

/* ---- the runtime ----------------------------------------------------------------------------- */

#define JSON_MAX 512u /* for the counts of one kind */

static int json_counts(struct ck_sim *sim, struct ck_bytes *json)
{
	static const char *const names[] = {
		[CK_SANDBOX] = "sandbox", [CK_CONTAINER] = "container"
	};
	char text[JSON_MAX];
	int r = ck_bytes_add_text(json, "{");
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER && r == 0; kind++) {
		const struct ck_sim_count *c = &sim->count[kind];
		snprintf(text, sizeof(text),
			 "\"%s\":{\"begun\":%llu,\"finished\":%llu,\"failed\":%llu,\"rolled_back\":"
			 "%llu,\"refused\":%llu,"
			 "\"destroyed\":%llu,\"existing\":%llu},",
			 names[kind], (unsigned long long)c->begun, (unsigned long long)c->finished,
			 (unsigned long long)c->failed, (unsigned long long)c->rolled_back,
			 (unsigned long long)c->refused, (unsigned long long)c->destroyed,
			 (unsigned long long)c->existing);
		r = ck_bytes_add_text(json, text);
	}
	r = r < 0 ? r : ck_bytes_add_text(json, "\"calls\":{");
	const char *between = "";
	for (unsigned i = 0; ck_sim_rpc_at(i) && r == 0; i++) {
		if (!sim->called[i])
			continue;
		snprintf(text, sizeof(text), "%s\"%s\":%llu", between, ck_sim_rpc_at(i)->name,
			 (unsigned long long)sim->called[i]);
		r = ck_bytes_add_text(json, text);
		between = ",";
	}
	r = r < 0 ? r : ck_bytes_add(json, "}}", sizeof("}}")); /* with its NUL */
	return r;
}

int ck_sim_status(struct ck_sim_call *call)
{
	static const char *const conditions[] = { "RuntimeReady", "NetworkReady" };
	struct ck_writer *out = &call->out;
	size_t status = ck_writer_open(out, CRI_StatusResponse_status);
	for (size_t i = 0; i < CK_COUNT(conditions); i++) {
		size_t condition = ck_writer_open(out, CRI_RuntimeStatus_conditions);
		ck_writer_text(out, CRI_RuntimeCondition_type, conditions[i]);
		ck_writer_number(out, CRI_RuntimeCondition_status, true);
		ck_writer_close(out, condition);
	}
	ck_writer_close(out, status);
	if (is_verbose(call, CRI_StatusRequest_verbose)) {
		struct ck_bytes json = { 0 };
		if (json_counts(call->sim, &json) == 0)
			ck_writer_pair(out, CRI_StatusResponse_info, "sim", (const char *)json.p);
		else
			out->r = -CK_ENOMEM;
		ck_bytes_free(&json);
	}
	/* the default handler, which has no name */
	size_t handler = ck_writer_open(out, CRI_StatusResponse_runtime_handlers);
	ck_writer_close(out, handler);
	return CK_SIM_DONE;
}

/* ---- events ---------------------------------------------------------------------------------- */

int ck_sim_events(struct ck_sim_call *call)
{
	call->subscribed = true;
	call->sim->subscribers++;
	return CK_SIM_LATER;
}

void ck_sim_event(struct ck_sim_object *object, int type)
{
	struct ck_sim *sim = object->sim;
	struct ck_sim_object *sandbox = NULL;
	struct ck_writer event = { .r = 0 };
	struct ck_sim_call *call, *next;
	if (!sim->subscribers)
		return;
	ck_writer_text(&event, CRI_ContainerEventResponse_container_id, object->id);
	ck_writer_number(&event, CRI_ContainerEventResponse_container_event_type, (uint64_t)type);
	ck_writer_number(&event, CRI_ContainerEventResponse_created_at, ck_sim_wall());
	HASH_FIND(by_id, sim->by_id[CK_SANDBOX],
		  object->kind == CK_SANDBOX ? object->id : object->sandbox_id, CK_SIM_ID, sandbox);
	if (sandbox) { /* no status after DELETED */
		size_t status =
			ck_writer_open(&event, CRI_ContainerEventResponse_pod_sandbox_status);
		ck_sim_put_sandbox_status(&event, sandbox);
		ck_writer_close(&event, status);
		ck_sim_put_containers_of(&event, CRI_ContainerEventResponse_containers_statuses,
					 sandbox, ck_sim_put_container_status);
	}
	DL_FOREACH_SAFE (sim->calls, call, next) {
		if (call->subscribed && event.r == 0)
			ck_sim_event_send(call, &event.bytes);
	}
	ck_bytes_free(&event.bytes);
}
