/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_METRICS_H
#define CK_DAEMON_METRICS_H
/*
 * The metrics, and their text in Prometheus' exposition format (0.0.4). Each connection to the
 * metrics socket gets one text. Names end in base units. Labels have values of closed sets, never
 * ids or names of pods. crikeepd(8) lists the metrics.
 */
#include "src/daemon/conf/conf.h"
#include "src/rpc/connection.h"
#include "src/cri/calls.h"

struct ck_call;
struct ck_nri;

struct ck_histogram { /* of seconds; buckets in metrics.c */
	uint64_t count, sum_ns, bucket[16];
};
void ck_histogram_add(struct ck_histogram *histogram, uint64_t ns);

/* at least one more than the table has: the last one counts methods that are not in it */
#define CK_METRIC_METHODS 64u

/* a connection whose user may not connect, or for which there is no place; and a call */
enum ck_refusal { CK_REFUSED_UID, CK_REFUSED_CLIENT, CK_REFUSED_CALL };
#define CK_REFUSALS 3

struct ck_metrics { /* zeroed; the files that do the work count here */
	/* by method: ck_metrics_method() */
	uint64_t calls[CK_METRIC_METHODS];          /* crikeepd_calls_total{rpc} */
	uint64_t refused_hidden[CK_METRIC_METHODS]; /* crikeepd_hidden_refused_total{rpc} */
	uint64_t filtered[CK_METRIC_METHODS];       /* crikeepd_filtered_items_total{rpc} */
	/* crikeepd_call_errors_total{rpc}: errors of our own */
	uint64_t errors[CK_METRIC_METHODS];
	/* creates, by kind */
	/* crikeepd_creates_total{kind}: calls that were sent to the runtime */
	uint64_t creates[3];
	uint64_t answered[3]; /* crikeepd_answers_total{kind}: creates answered with an id */
	/* crikeepd_runtime_create_seconds{kind}: from its sending to the runtime's id */
	struct ck_histogram runtime[3];
	/* crikeepd_create_wait_seconds{kind}: from the request to its answer */
	struct ck_histogram wait[3];
	/* crikeepd_delivery_seconds{kind}: from the runtime's answer to its hand-over */
	struct ck_histogram delivery[3];
	/* with shadow: true: crikeepd_shadow_cut_total{kind}, crikeepd_shadow_saved_total{kind} */
	uint64_t shadow_cut[3], shadow_saved[3];
	/* crikeepd_starts_total: sent to the runtime; crikeepd_starts_joined_total */
	uint64_t starts, starts_joined;
	uint64_t teardowns_joined[3]; /* crikeepd_teardowns_joined_total{kind} */
	/* calls of clients until they are freed, oldest first; also those that were answered */
	struct ck_call *calls_open;
	/* connections */
	uint64_t clients_total; /* crikeepd_clients_total */
	uint64_t clients; /* gauge crikeepd_clients */
	uint64_t serving; /* gauge */
	/* ..._total, ..._total, gauge crikeepd_upstream_up */
	uint64_t upstream_connects, upstream_failures, upstream_up;
	uint64_t upstream_silent; /* since when; 0: it answers. ..._silent_seconds */
	uint64_t uid_conflicts; /* crikeepd_uid_conflicts_total (K26) */
	/* crikeepd_events_total{what="sent"|"hidden"|"made"} */
	uint64_t events_sent, events_hidden;
	uint64_t events_made;
	/* crikeepd_nri_refused_total{kind}: creates that plugins refused */
	uint64_t nri_refused[3];
	struct ck_nri *nri; /* for its plugins; NULL: NRI is off */
	/* by enum ck_refusal: crikeepd_clients_refused_total, crikeepd_clients_limited_total,
	 * crikeepd_calls_limited_total */
	uint64_t refused[CK_REFUSALS];
	/* for crikeepd_limit and crikeepd_limit_used; NULL: they are left out */
	const struct ck_daemon *daemon;
	/* crikeepd_calls_waiting: questions whose process has enough others at the runtime */
	uint64_t calls_waiting;
	/* crikeepd_clients_cut_total: over client_memory */
	uint64_t clients_cut;
};
size_t ck_metrics_method(const struct ck_cri_method *method); /* NULL: not in the table */

/*
 * ck_metrics_print - the daemon's metrics. With @cache also its entries, counters, ages, sizes and
 * whether it is degraded, with names in crikeep_. With @process also memory, descriptors and times.
 * The last line is CK_METRICS_END. To be freed; NULL: out of memory
 */
struct ck_process;
char *ck_metrics_print(const struct ck_metrics *metrics, struct ck_cache *cache,
		       const struct ck_process *process);

/* The socket. A client that the mode of the file admits gets one text, and the connection ends. The
 * daemon never waits for a client to read. */
struct ck_metrics_server;
/* ck_metrics_serve - on @fd, a listening socket that is taken, or at conf->metrics if it is -1.
 * @metrics, @cache: borrowed. 0, -CK_EIO, -CK_ENOMEM */
int ck_metrics_serve(struct ck_loop *loop, const struct ck_conf *conf, int fd,
		     const struct ck_metrics *metrics, struct ck_cache *cache,
		     struct ck_metrics_server **ret_server, struct ck_error *err);
void ck_metrics_server_free(struct ck_metrics_server *server); /* and its path; NULL is fine */
#endif
