/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of the metrics. A series exists from the first scrape on, if only with the value 0, so
 * that rate() misses nothing; but those of a call only once it was called, because most calls never
 * are. Label values come from tables in this program. The digits of a fraction are printed as an
 * integer, so no locale can put a comma into a number.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cache/gauges.h"
#include "hooks/status-file.h"
#include "src/base/bytes.h"
#include "src/base/duration.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/log.h"
#include "src/daemon/call.h"
#include "src/daemon/metrics.h"
#include "src/daemon/proc-stats.h"

#define LINE_MAX_LEN 512u /* of one line; the longest help has about 150 bytes */

/* Upper bounds. The deadline of a create is 120 or 240 s in a kubelet, 900 s in crikeepd, 2 s in
 * crictl. A hand-over takes 1 ms. */
static const struct {
	uint64_t ms;
	const char *le;
} bounds[] = {
	{ 1, "0.001" },  { 5, "0.005" },    { 25, "0.025" },   { 100, "0.1" },
	{ 250, "0.25" }, { 500, "0.5" },    { 1000, "1" },     { 2000, "2" },
	{ 5000, "5" },   { 10000, "10" },   { 20000, "20" },   { 30000, "30" },
	{ 60000, "60" }, { 120000, "120" }, { 240000, "240" }, { 900000, "900" },
};
_Static_assert(CK_COUNT(bounds) == CK_COUNT(((struct ck_histogram *)0)->bucket),
	       "a bucket for each bound");

void ck_histogram_add(struct ck_histogram *histogram, uint64_t ns)
{
	size_t i = 0;
	while (i < CK_COUNT(bounds) && ns > bounds[i].ms * CK_NS_PER_MS)
		i++;
	if (i < CK_COUNT(bounds)) /* else it is only in +Inf, which is the count */
		histogram->bucket[i]++;
	histogram->count++;
	histogram->sum_ns += ns;
}

size_t ck_metrics_method(const struct ck_cri_method *method)
{
	size_t i = 0;
	for (const struct ck_cri_method *known;
	     (known = ck_cri_method_at(i)) && i < CK_METRIC_METHODS - 1; i++)
		if (known == method)
			return i;
	return CK_METRIC_METHODS - 1;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct text {
	struct ck_bytes bytes;
	bool failed; /* out of memory: half a text must not be sent */
};

static void CK_PRINTF(2, 3) put(struct text *text, const char *fmt, ...)
{
	char line[LINE_MAX_LEN];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (CK_NEVER(n < 0 || (size_t)n >= sizeof(line)) ||
	    ck_bytes_add(&text->bytes, line, (size_t)n) < 0)
		text->failed = true;
}

static void put_family(struct text *text, const char *name, const char *type, const char *help)
{
	/* the texts of `crikeep stats` begin with a small letter */
	char first = (char)(*help >= 'a' && *help <= 'z' ? *help - 'a' + 'A' : *help);
	put(text, "# HELP %s %c%s.\n# TYPE %s %s\n", name, first, help + 1, name, type);
}

/* a value by itself, without labels */
static void put_one(struct text *text, const char *name, const char *type, const char *help,
		    uint64_t value)
{
	put_family(text, name, type, help);
	put(text, "%s %" PRIu64 "\n", name, value);
}

static void put_ns(struct text *text, const char *name, const char *labels, uint64_t ns)
{
	put(text, "%s%s %" PRIu64 ".%09" PRIu64 "\n", name, labels, ns / CK_NS_PER_S,
	    ns % CK_NS_PER_S);
}

static const char *const kinds[] = { [CK_SANDBOX] = "sandbox", [CK_CONTAINER] = "container" };

static void put_kinds(struct text *text, const char *name, const char *type, const char *help,
		      const uint64_t values[3])
{
	put_family(text, name, type, help);
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		put(text, "%s{kind=\"%s\"} %" PRIu64 "\n", name, kinds[kind], values[kind]);
}

static void put_kinds_size(struct text *text, const char *name, const char *help,
			   const size_t sizes[3])
{
	uint64_t values[] = { 0, sizes[CK_SANDBOX], sizes[CK_CONTAINER] };
	put_kinds(text, name, "gauge", help, values);
}

static void put_kinds_ns(struct text *text, const char *name, const char *help,
			 const uint64_t ns[3])
{
	put_family(text, name, "gauge", help);
	put_ns(text, name, "{kind=\"sandbox\"}", ns[CK_SANDBOX]);
	put_ns(text, name, "{kind=\"container\"}", ns[CK_CONTAINER]);
}

static void put_kinds_ms(struct text *text, const char *name, const char *help,
			 const uint64_t ms[3])
{
	put_family(text, name, "counter", help);
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		put(text, "%s{kind=\"%s\"} %" PRIu64 ".%03" PRIu64 "\n", name, kinds[kind],
		    ms[kind] / 1000, ms[kind] % 1000);
}

static void put_histograms(struct text *text, const char *name, const char *help,
			   const struct ck_histogram histograms[3])
{
	put_family(text, name, "histogram", help);
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++) {
		const struct ck_histogram *h = &histograms[kind];
		uint64_t sum = 0;
		for (size_t i = 0; i < CK_COUNT(bounds); i++) {
			sum += h->bucket[i];
			put(text, "%s_bucket{kind=\"%s\",le=\"%s\"} %" PRIu64 "\n", name,
			    kinds[kind], bounds[i].le, sum);
		}
		put(text, "%s_bucket{kind=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, kinds[kind],
		    h->count);
		put(text, "%s_sum{kind=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n", name, kinds[kind],
		    h->sum_ns / CK_NS_PER_S, h->sum_ns % CK_NS_PER_S);
		put(text, "%s_count{kind=\"%s\"} %" PRIu64 "\n", name, kinds[kind], h->count);
	}
}

/* ---- the daemon ------------------------------------------------------------------------------ */

/* A subscription never ends, and a pull may take long without anything being wrong. */
static bool should_end_soon(const struct ck_call *call)
{
	return call->stream && call->began && call->method && !call->method->streams &&
	       strcmp(call->method->rpc, "PullImage") != 0;
}

static uint64_t oldest_call(const struct ck_metrics *m)
{
	const struct ck_call *call = m->calls_open;
	while (call && !should_end_soon(call))
		call = call->next;
	return call ? ck_duration_between(call->began, ck_loop_now()) : 0;
}

/* Of methods that were called. @acts: only of those that are not simply passed on */
static void put_routes(struct text *text, const struct ck_metrics *m, const char *name,
		       const char *help, bool acts, const uint64_t values[CK_METRIC_METHODS])
{
	const size_t other = CK_METRIC_METHODS - 1;
	const struct ck_cri_method *method;
	put_family(text, name, "counter", help);
	for (size_t i = 0; (method = ck_cri_method_at(i)) && i < other; i++)
		if (m->calls[i] && (!acts || method->class != CK_CRI_PASS))
			put(text, "%s{rpc=\"%s\"} %" PRIu64 "\n", name, method->rpc, values[i]);
	if (m->calls[other] && !acts)
		put(text, "%s{rpc=\"other\"} %" PRIu64 "\n", name, values[other]);
}

/* ---- plugins --------------------------------------------------------------------------------- */

static const char *const plugin_states[] = { "connected", "registered", "synchronizing",
					     "ready",     "overdue",    CK_STATUS_ABSENT,
					     CK_STATUS_GONE };

struct plugins { /* by name; two connections may have the same name */
	struct {
		char name[CK_NRI_NAME_MAX + 1];
		uint64_t sent, late, failed;
	} all[CK_NRI_PLUGINS_MAX];
	size_t n;
	uint64_t states[CK_COUNT(plugin_states)];
};

static int count_plugin(const struct ck_nri_plugin *plugin, void *userdata)
{
	struct plugins *plugins = userdata;
	size_t i = 0;
	for (size_t state = 0; state < CK_COUNT(plugin_states); state++)
		plugins->states[state] += !strcmp(plugin->state, plugin_states[state]);
	while (i < plugins->n && strcmp(plugins->all[i].name, plugin->name) != 0)
		i++;
	if (!*plugin->name || !strcmp(plugin->state, CK_STATUS_ABSENT) ||
	    i == CK_COUNT(plugins->all))
		return 0;
	if (i == plugins->n)
		snprintf(plugins->all[plugins->n++].name, sizeof(plugins->all[i].name), "%s",
			 plugin->name);
	plugins->all[i].sent += plugin->sent;
	plugins->all[i].late += plugin->late;
	plugins->all[i].failed += plugin->failed;
	return 0;
}

/* a plugin's name consists of letters, digits, '_', '.', '+' and '-', so it needs no escaping */
static void put_plugins(struct text *text, const char *name, const char *help,
			const struct plugins *plugins, size_t at)
{
	put_family(text, name, "counter", help);
	for (size_t i = 0; i < plugins->n; i++) {
		uint64_t value;
		memcpy(&value, (const char *)&plugins->all[i] + at, sizeof(value));
		put(text, "%s{plugin=\"%s\"} %" PRIu64 "\n", name, plugins->all[i].name, value);
	}
}

#define OF_PLUGIN(member) (offsetof(struct plugins, all[0].member) - offsetof(struct plugins, all))

static void put_nri(struct text *text, const struct ck_metrics *m)
{
	struct plugins plugins = { 0 };
	if (!m->nri)
		return; /* NRI is off as long as this process runs */
	ck_nri_plugins(m->nri, count_plugin, &plugins);
	put_family(
		text, "crikeepd_nri_plugins", "gauge",
		"NRI plugins by state; absent: required and not connected; gone: disconnected with "
		"an error and not back");
	for (size_t i = 0; i < CK_COUNT(plugin_states); i++)
		put(text, "crikeepd_nri_plugins{state=\"%s\"} %" PRIu64 "\n", plugin_states[i],
		    plugins.states[i]);
	put_plugins(text, "crikeepd_nri_events_total", "Events sent to a plugin since it connected",
		    &plugins, OF_PLUGIN(sent));
	put_plugins(text, "crikeepd_nri_late_total", "Events that a plugin did not answer in time",
		    &plugins, OF_PLUGIN(late));
	put_plugins(text, "crikeepd_nri_failed_total",
		    "Events that a plugin answered with an error", &plugins, OF_PLUGIN(failed));
	put_kinds(text, "crikeepd_nri_refused_total", "counter", "Creates that plugins refused",
		  m->nri_refused);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void put_upstream(struct text *text, const struct ck_metrics *m)
{
	put_one(text, "crikeepd_upstream_up", "gauge",
		"1 while the runtime is connected and answers", m->upstream_up);
	put_family(text, "crikeepd_upstream_silent_seconds", "gauge",
		   "Time for which the connected runtime has answered nothing; 0 if it answers");
	put_ns(text, "crikeepd_upstream_silent_seconds", "",
	       m->upstream_silent ? ck_duration_between(m->upstream_silent, ck_loop_now()) : 0);
	put_one(text, "crikeepd_upstream_connects_total", "counter",
		"Connections made to the runtime", m->upstream_connects);
	put_one(text, "crikeepd_upstream_failures_total", "counter",
		"Connections to the runtime that could not be made or were lost",
		m->upstream_failures);
}

static void put_clients(struct text *text, const struct ck_metrics *m)
{
	put_one(text, "crikeepd_clients", "gauge", "Open connections of clients", m->clients);
	put_one(text, "crikeepd_clients_total", "counter", "Accepted connections of clients",
		m->clients_total);
	put_one(text, "crikeepd_clients_refused_total", "counter",
		"Connections closed because of the peer's uid", m->refused[CK_REFUSED_UID]);
	put_one(text, "crikeepd_clients_limited_total", "counter",
		"Connections closed because their process, or all together, had too many",
		m->refused[CK_REFUSED_CLIENT]);
	put_one(text, "crikeepd_calls_limited_total", "counter",
		"Calls refused because their process, or all together, had too many",
		m->refused[CK_REFUSED_CALL]);
	put_one(text, "crikeepd_clients_cut_total", "counter",
		"Calls cut off because their client did not read", m->clients_cut);
	put_one(text, "crikeepd_calls_waiting", "gauge",
		"Lists and statuses that wait because their process has many others under way",
		m->calls_waiting);
}

/* how much is used of what crikeep.yaml limits */
static void put_limits(struct text *text, const struct ck_metrics *m)
{
	struct ck_clients_use use;
	if (!m->daemon)
		return;
	const struct ck_conf *conf = &m->daemon->conf;
	ck_clients_use(m->daemon, &use);
	const struct {
		const char *of;
		uint64_t limit, used;
	} limits[] = {
		{ "connections", conf->connections, m->clients },
		{ "process_connections", conf->process_connections, use.process_connections },
		{ "process_calls", conf->process_calls, use.process_calls },
		{ "calls", CK_CALLS_MAX, use.calls },
	};
	put_family(text, "crikeepd_limit", "gauge",
		   "How many connections and calls clients may have; process: one process");
	for (size_t i = 0; i < CK_COUNT(limits); i++)
		put(text, "crikeepd_limit{of=\"%s\"} %" PRIu64 "\n", limits[i].of,
		    limits[i].limit);
	put_family(text, "crikeepd_limit_used", "gauge",
		   "How many they have; process: the one process that has most");
	for (size_t i = 0; i < CK_COUNT(limits); i++)
		put(text, "crikeepd_limit_used{of=\"%s\"} %" PRIu64 "\n", limits[i].of,
		    limits[i].used);
}

static void put_shadow(struct text *text, const struct ck_metrics *m)
{
	bool shadow = m->daemon && m->daemon->conf.shadow;
	put_one(text, "crikeepd_shadow", "gauge",
		"1 while creations are only counted, and none is kept (shadow: true)", shadow);
	if (!shadow)
		return;
	put_kinds(text, "crikeepd_shadow_cut_total", "counter",
		  "Creations cut off by the end of their call, so that their work was lost",
		  m->shadow_cut);
	put_kinds(text, "crikeepd_shadow_saved_total", "counter",
		  "Creations for what was cut off before: full use would have saved them",
		  m->shadow_saved);
}

static void put_daemon(struct text *text, const struct ck_metrics *m)
{
	put_family(text, "crikeepd_build_info", "gauge", "Always 1; the version is the label");
	put(text, "crikeepd_build_info{version=\"%s\"} 1\n", ck_version());
	put_one(text, "crikeepd_pid", "gauge", "Process id of crikeepd", (uint64_t)getpid());
	put_one(text, "crikeepd_serving", "gauge",
		"1 once clients are served: the runtime has told what exists", m->serving);

	put_routes(text, m, "crikeepd_calls_total",
		   "Calls from clients; other: calls that this version does not know", false,
		   m->calls);
	put_routes(text, m, "crikeepd_call_errors_total",
		   "Calls that crikeepd itself answered with an error", false, m->errors);
	put_routes(text, m, "crikeepd_hidden_refused_total",
		   "Calls answered NOT_FOUND because they name a hidden object", true,
		   m->refused_hidden);
	put_routes(text, m, "crikeepd_filtered_items_total",
		   "Hidden sandboxes and containers left out of answers", true, m->filtered);

	put_family(text, "crikeepd_oldest_call_seconds", "gauge",
		   "Age of the oldest unanswered call of a client, without streams and pulls of "
		   "images; 0 if none");
	put_ns(text, "crikeepd_oldest_call_seconds", "", oldest_call(m));

	put_kinds(text, "crikeepd_creates_total", "counter", "Creates sent to the runtime",
		  m->creates);
	put_kinds(text, "crikeepd_answers_total", "counter", "Creates answered with an id",
		  m->answered);
	put_histograms(text, "crikeepd_runtime_create_seconds",
		       "Time that the runtime took for a create that it answered with an id",
		       m->runtime);
	put_histograms(text, "crikeepd_create_wait_seconds",
		       "Time from a create's request to its answer with an id", m->wait);
	put_histograms(text, "crikeepd_delivery_seconds",
		       "Time from the runtime's answer to the hand-over", m->delivery);

	put_one(text, "crikeepd_starts_total", "counter", "Starts sent to the runtime", m->starts);
	put_one(text, "crikeepd_starts_joined_total", "counter",
		"Calls that joined a start under way", m->starts_joined);
	put_kinds(text, "crikeepd_teardowns_joined_total", "counter",
		  "Stops and removals that joined an identical one under way", m->teardowns_joined);

	put_shadow(text, m);
	put_clients(text, m);
	put_limits(text, m);
	put_upstream(text, m);
	put_one(text, "crikeepd_uid_conflicts_total", "counter",
		"Pod uids seen with two READY sandboxes or as two pods", m->uid_conflicts);
	put_family(text, "crikeepd_events_total", "counter",
		   "Container events for clients, by what happened to them");
	put(text, "crikeepd_events_total{what=\"sent\"} %" PRIu64 "\n", m->events_sent);
	put(text, "crikeepd_events_total{what=\"hidden\"} %" PRIu64 "\n", m->events_hidden);
	put(text, "crikeepd_events_total{what=\"made\"} %" PRIu64 "\n", m->events_made);
	put_nri(text, m);
	put_one(text, "crikeepd_log_dropped_total", "counter",
		"Log lines dropped because writing them would have blocked", ck_log_dropped());
}

/* ---- the cache ------------------------------------------------------------------------------- */

static const struct {
	const char *name, *help;
	size_t at;
	bool kinds;
} counters[] = {
#define COUNTER(name, kinds, what) \
	{ "crikeep_" #name "_total", what, offsetof(struct ck_counters, name), kinds },
	CK_COUNTERS(COUNTER)
#undef COUNTER
};

static void put_entries(struct text *text, const struct ck_gauges *gauges)
{
	static const char *const states[] = {
		[CK_STATE_CREATING] = "creating",     [CK_STATE_KEPT] = "kept",
		[CK_STATE_COMMITTING] = "committing", [CK_STATE_COMMITTED] = "committed",
		[CK_STATE_EVICTING] = "evicting",     [CK_STATE_GONE] = "gone",
		[CK_STATE_UNKNOWN] = "unknown",       [CK_STATE_ENDED] = "ended",
	};
	put_family(text, "crikeep_entries", "gauge",
		   "Entries of the cache; gone entries stay hidden for a minute");
	for (int kind = CK_SANDBOX; kind <= CK_CONTAINER; kind++)
		for (int state = CK_STATE_CREATING; state <= CK_STATE_MAX; state++)
			put(text, "crikeep_entries{kind=\"%s\",state=\"%s\"} %zu\n", kinds[kind],
			    states[state], gauges->entries[kind][state]);
}

static void put_counters(struct text *text, const struct ck_counters *all)
{
	for (size_t i = 0; i < CK_COUNT(counters); i++) {
		uint64_t values[CK_CONTAINER + 1];
		if (counters[i].at == offsetof(struct ck_counters, saved_ms))
			continue; /* below, in seconds */
		memcpy(values, (const char *)all + counters[i].at, sizeof(values));
		if (counters[i].kinds)
			put_kinds(text, counters[i].name, "counter", counters[i].help, values);
		else
			put_one(text, counters[i].name, "counter", counters[i].help,
				ck_counter_sum(values));
	}
	put_kinds_ms(text, "crikeep_saved_seconds_total",
		     "Time that the runtime took for saved creations", all->saved_ms);
}

static void put_cache(struct text *text, const struct ck_gauges *gauges)
{
	uint64_t tries[] = { 0, gauges->tries[CK_SANDBOX], gauges->tries[CK_CONTAINER] };
	put_entries(text, gauges);
	put_kinds_size(text, "crikeep_creations_lost", "Creations whose outcome is unknown",
		       gauges->lost);
	put_kinds_ns(text, "crikeep_oldest_creation_seconds",
		     "Age of the oldest running creation; 0 if none", gauges->creating_ns);
	put_kinds_ns(text, "crikeep_oldest_kept_seconds",
		     "Seconds since the most idle kept result was last requested; 0 if none",
		     gauges->kept_ns);
	put_kinds_ns(text, "crikeep_oldest_eviction_seconds",
		     "Age of the oldest unfinished eviction; 0 if none", gauges->evicting_ns);
	put_kinds_size(text, "crikeep_destroys_failing",
		       "Evicted results that the runtime has failed to destroy so far",
		       gauges->failing);
	put_kinds(text, "crikeep_destroy_tries", "gauge",
		  "Highest number of failed attempts to destroy one of these", tries);
	put_kinds_size(text, "crikeep_requests_waiting", "Requests that are waiting for a result",
		       gauges->waiting);
	put_kinds_size(text, "crikeep_requests_creating", "Requests that are creating a result",
		       gauges->creating);
	put_one(text, "crikeep_degraded", "gauge",
		"1 while the database cannot be written and memory is ahead of it",
		gauges->degraded);
	put_one(text, "crikeep_database_bytes", "gauge", "Size of the database",
		gauges->database < 0 ? 0 : gauges->database);
	put_one(text, "crikeep_wal_bytes", "gauge", "Size of its write-ahead log",
		gauges->wal < 0 ? 0 : gauges->wal);
	put_one(text, "crikeep_wal_held_by_pid", "gauge",
		"Process that reads the database and makes its log grow; 0 if none",
		gauges->wal_pid);
	put_counters(text, &gauges->counters);
}

/* ---- the process, with the names that every Prometheus client library uses ------------------- */

static void put_process(struct text *text, const struct ck_process *process)
{
	struct ck_process_figures figures;
	ck_process_look(process, &figures);
	if (figures.resident) {
		put_one(text, "process_resident_memory_bytes", "gauge",
			"Resident memory size in bytes", figures.resident);
		put_one(text, "process_virtual_memory_bytes", "gauge",
			"Virtual memory size in bytes", figures.virtual_size);
	}
	if (figures.fds)
		put_one(text, "process_open_fds", "gauge", "Number of open file descriptors",
			figures.fds);
	put_one(text, "process_max_fds", "gauge", "Maximum number of open file descriptors",
		figures.fds_max);
	put_family(text, "process_cpu_seconds_total", "counter",
		   "Total user and system CPU time spent in seconds");
	put_ns(text, "process_cpu_seconds_total", "", figures.cpu_ns);
	if (!figures.started_ns)
		return;
	put_family(text, "process_start_time_seconds", "gauge",
		   "Start time of the process since unix epoch in seconds");
	put_ns(text, "process_start_time_seconds", "", figures.started_ns);
}

char *ck_metrics_print(const struct ck_metrics *metrics, struct ck_cache *cache,
		       const struct ck_process *process)
{
	struct text text = { 0 };
	struct ck_gauges gauges;
	put_daemon(&text, metrics);
	if (cache && ck_gauges_read(cache, &gauges) >= 0)
		put_cache(&text, &gauges);
	if (process)
		put_process(&text, process);
	put(&text, CK_METRICS_END);
	if (text.failed || ck_bytes_add(&text.bytes, "", 1) < 0) {
		ck_bytes_free(&text.bytes);
		return NULL;
	}
	return (char *)text.bytes.p;
}
