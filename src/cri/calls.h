/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CRI_CALLS_H
#define CK_CRI_CALLS_H
/*
 * The table of CRI's calls: what crikeepd does with each, and where the ids and objects lie in its
 * messages. A call that is not in the table, of any service, passes untouched, so that the next
 * Kubernetes works. runtime.v1 and runtime.v1alpha2 have the same numbers and share the table.
 */
#include <stdbool.h>

#include "src/crikeep.h"

enum ck_cri_class {
	CK_CRI_PASS,   /* nothing in it can be hidden */
	CK_CRI_GUARD,  /* acts on one id: NOT_FOUND if that is hidden */
	CK_CRI_STATUS, /* guarded; its answer holds objects, which are filtered and learnt from */
	CK_CRI_FILTER, /* its answer is a list */
	CK_CRI_CREATE, /* RunPodSandbox, CreateContainer: through the cache */
	CK_CRI_START,  /* StartContainer */
	CK_CRI_STOP,   /* StopPodSandbox, StopContainer */
	CK_CRI_REMOVE, /* RemovePodSandbox, RemoveContainer */
	CK_CRI_EVENTS, /* GetContainerEvents */
};

struct ck_shape; /* shapes.h */

struct ck_cri_method {
	const char *service;     /* "RuntimeService/", "ImageService/" */
	const char *rpc;         /* "ListPodSandbox" */
	size_t rpc_len;
	enum ck_cri_class class;
	enum ck_kind kind;       /* of what it acts on, lists or creates; 0: none */
	bool streams;            /* server streaming: many messages in one answer */
	bool read_only;          /* allowed on the unfiltered socket */
	bool whole_list;         /* without a filter it lists all there are of its kind */
	const struct ck_shape *request, *response; /* NULL: nothing to look at */
};

/* ck_cri_method_find - @path: "/runtime.v1.RuntimeService/ListPodSandbox"; either service, either
 * version. NULL: not in the table */
const struct ck_cri_method *ck_cri_method_find(const char *path, size_t len);
/* ck_cri_method_named - of either service: "ListPodSandbox". NULL: not in the table */
const struct ck_cri_method *ck_cri_method_named(const char *rpc);
/* ck_cri_method_at - the method at place @i of the table, for metrics and tests; NULL after the
 * last */
const struct ck_cri_method *ck_cri_method_at(size_t i);
#endif
