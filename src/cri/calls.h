/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_CALLS_H
#define CK_CRI_CALLS_H
/*
 * The table of CRI's calls: what crikeepd does with each, and where in its messages ids and objects
 * lie. A call that is not in the table, of any service, passes untouched, so the next Kubernetes
 * does not break it. runtime.v1 and runtime.v1alpha2 have the same numbers and share the table.
 * Source: facts of cri-api v0.36, api.proto.
 */
#include <stdbool.h>

#include "src/crikeep.h"

enum ck_cri_class {
	CK_CRI_PASS,   /* nothing in it can be hidden */
	CK_CRI_GUARD,  /* acts on one id: NOT_FOUND if that is hidden */
	/* guarded, and its answer holds objects: filtered, and a look at what it tells */
	CK_CRI_STATUS,
	CK_CRI_FILTER, /* its answer is a list */
	CK_CRI_CREATE, /* RunPodSandbox, CreateContainer: through the cache */
	CK_CRI_START,  /* StartContainer */
	CK_CRI_STOP,   /* StopPodSandbox, StopContainer */
	CK_CRI_REMOVE, /* RemovePodSandbox, RemoveContainer */
	CK_CRI_EVENTS, /* GetContainerEvents */
};

struct ck_shape; /* where things lie in a message: shapes.h */

struct ck_cri_method {
	const char *rpc;      /* "ListPodSandbox" */
	enum ck_cri_class class;
	/* of the id it acts on, of the objects it lists, or of what it creates; 0: none */
	enum ck_kind kind;
	bool streams;         /* server streaming: many messages in one answer */
	bool read_only;       /* allowed on the unfiltered socket */
	/* without a filter its answer is all there is of its kind: ListPodSandbox,
	 * ListContainers */
	bool whole_list;
	const struct ck_shape *request, *response; /* NULL: nothing to look at */
};

/* ck_cri_method_find - of "/runtime.v1.RuntimeService/ListPodSandbox"; NULL: not in the table. Both
 * services, both versions */
const struct ck_cri_method *ck_cri_method_find(const char *path, size_t len);
/* ck_cri_method_named - a call of RuntimeService: "ListPodSandbox" */
const struct ck_cri_method *ck_cri_method_named(const char *rpc);
/* ck_cri_method_at - the i-th of the table, NULL after the last: for metrics and tests */
const struct ck_cri_method *ck_cri_method_at(size_t i);
#endif
