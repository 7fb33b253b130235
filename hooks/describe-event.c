/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plugins are told: the pod and the container of an event, as the host describes them. Of what
 * is announced nothing is sent before it is complete; of what ends, what was known of it has to do.
 */
#include "hooks/nri-int.h"

static const char *pod_id_of(const struct ck_tour *tour)
{
	return tour->pod_id ? tour->pod_id : tour->known->sandbox_id;
}

static struct ck_known *pod_of(const struct ck_tour *tour)
{
	return tour->known->kind == CK_SANDBOX
		       ? tour->known
		       : ck_know_find(tour->nri, CK_SANDBOX, pod_id_of(tour));
}

/* of a pod that nobody describes, at least the id. NULL: out of memory */
static struct ck_blob *what_is_known_of_pod(const struct ck_tour *tour)
{
	struct ck_bytes bytes = { 0 };
	struct ck_blob *blob = NULL;
	const struct ck_known *pod = pod_of(tour);
	if (pod)
		return ck_blob_ref(pod->object);
	if (ck_bytes_field_text(&bytes, 1, pod_id_of(tour)) == 0)
		blob = ck_blob_new(bytes.p, bytes.len);
	ck_bytes_free(&bytes);
	return blob;
}

static void not_described(struct ck_tour *tour, enum ck_kind kind, int grpc)
{
	uint64_t now = ck_nri_now(tour->nri);
	bool needed = ck_nri_event_announces(tour->event) || CK_BROKEN(R27);
	if (!needed) { /* what was known of it has to do */
		struct ck_blob **at = kind == CK_CONTAINER ? &tour->container : &tour->pod;
		*at = kind == CK_CONTAINER ? ck_blob_ref(tour->known->object) : what_is_known_of_pod(tour);
		if (*at) {
			ck_tour_describe(tour);
			return;
		}
	}
	if (needed && grpc == CK_GRPC_NOT_FOUND) {
		ck_tour_refuse(tour, "it is gone");
		ck_tour_end_refused(tour);
	} else if (needed && now - tour->began >= CK_NRI_DESCRIBE_MAX) {
		ck_tour_refuse(tour, "the runtime does not tell what it has made: %s",
			       ck_grpc_name(grpc));
		ck_tour_end_refused(tour);
	} else { /* asked again; half a description would never be put right (R3) */
		tour->pause = tour->pause ? tour->pause * 2 : CK_NRI_DESCRIBE_AGAIN;
		if (tour->pause > 8 * CK_NRI_DESCRIBE_AGAIN)
			tour->pause = 8 * CK_NRI_DESCRIBE_AGAIN;
		tour->due = now + tour->pause;
	}
}

static void described(struct ck_nri_job *job, int grpc, const void *bytes, size_t len)
{
	struct ck_tour *tour = job->owner;
	struct ck_nri *nri = tour->nri;
	struct ck_error err = { 0 };
	tour->job = NULL;
	if (tour->phase != CK_TOUR_DESCRIBE)
		return;
	if (grpc != CK_GRPC_OK || !bytes) {
		not_described(tour, job->kind, grpc ? grpc : CK_GRPC_INTERNAL);
		return;
	}
	struct ck_known *known = job->kind == tour->known->kind
					 ? tour->known
					 : ck_know_find(nri, job->kind, job->id);
	struct ck_blob **at = job->kind == CK_SANDBOX ? &tour->pod : &tour->container;
	int r = known ? ck_know_described(nri, known, bytes, len, &err) : 0;
	if (r >= 0)
		*at = known ? ck_blob_ref(known->object) : ck_blob_new(bytes, len);
	if (!*at) {
		ck_nri_log(nri, CK_LOG_ERROR, "the description of %.64s cannot be used: %s",
			   job->id, err.text);
		not_described(tour, job->kind,
			      r == -CK_EMALFORMED ? CK_GRPC_NOT_FOUND : CK_GRPC_RESOURCE_EXHAUSTED);
		return;
	}
	ck_tour_describe(tour);
}

static void ask(struct ck_tour *tour, enum ck_kind kind, const char *id)
{
	tour->phase = CK_TOUR_DESCRIBE;
	tour->due = CK_NRI_FOREVER;
	tour->job = ck_nri_job_new(tour->nri, CK_NRI_JOB_DESCRIBE, kind, id, NULL, NULL, described,
				   tour);
	if (!tour->job)
		not_described(tour, kind, CK_GRPC_RESOURCE_EXHAUSTED);
}

static int begin_merging(struct ck_tour *tour, struct ck_error *err)
{
	const struct ck_blob *resources = tour->resources;
	switch (tour->event) {
	case CK_NRI_CREATE_CONTAINER:
		return ck_adjust_create(tour->container->bytes, tour->container->len, &tour->adjust,
					err);
	case CK_NRI_UPDATE_CONTAINER:
		return ck_adjust_update(tour->known->nri_id, resources ? resources->bytes : NULL,
					resources ? resources->len : 0, &tour->adjust, err);
	case CK_NRI_STOP_CONTAINER:
		return ck_adjust_others(&tour->adjust, err);
	default:
		return 0;
	}
}

/* pod, then container; then it goes out */
void ck_tour_describe(struct ck_tour *tour)
{
	struct ck_known *known = tour->known;
	struct ck_known *pod = pod_of(tour);
	struct ck_error err = { 0 };
	bool fresh = ck_nri_event_needs_fresh(tour->event);
	if (!tour->pod && pod && ((pod->described && !(fresh && pod == known)) || CK_BROKEN(R8)))
		tour->pod = ck_blob_ref(pod->object);
	if (!tour->pod) {
		ask(tour, CK_SANDBOX, pod ? pod->id : pod_id_of(tour));
		return;
	}
	if (known->kind == CK_CONTAINER && !tour->container &&
	    (!*known->id || (known->described && !fresh)))
		tour->container = ck_blob_ref(known->object);
	if (known->kind == CK_CONTAINER && !tour->container) {
		ask(tour, CK_CONTAINER, known->id);
		return;
	}
	if (begin_merging(tour, &err) < 0) {
		ck_nri_log(tour->nri, CK_LOG_ERROR, "%s: %s", ck_nri_event_name(tour->event),
			   err.text);
		ck_tour_refuse(tour, "%s", err.text);
		ck_tour_end_refused(tour);
		return;
	}
	tour->phase = CK_TOUR_GOING;
	ck_tour_go_on(tour);
}
