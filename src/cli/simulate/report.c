/* SPDX-License-Identifier: Apache-2.0 */
/* Table and tree of a simulation's results; see report.h. */
#include "src/cli/simulate/report.h"
#include "src/base/mem.h"

uint64_t ck_simulation_percentile(const uint64_t *values, size_t n, unsigned percent)
{
	size_t rank = (n * percent + 99) / 100;
	return n ? values[rank ? rank - 1 : 0] : UINT64_MAX;
}

static uint64_t sum(const uint64_t by_kind[CK_CONTAINER + 1])
{
	return by_kind[CK_SANDBOX] + by_kind[CK_CONTAINER];
}

/* ---- for people ------------------------------------------------------------------------------ */

/* Below 100 s, tenths of seconds are shown. "" is printed as "-". */
static const char *span(uint64_t ns, char buf[CK_TEXT_SPAN])
{
	if (ns == UINT64_MAX)
		return "";
	if (ns >= 100 * CK_NS_PER_S)
		return ck_text_span(ns, buf);
	snprintf(buf, CK_TEXT_SPAN, "%.1fs", (double)ns / (double)CK_NS_PER_S);
	return buf;
}

static void cell_percentile(struct ck_table *table, const uint64_t *values, size_t n,
			    unsigned percent)
{
	char buf[CK_TEXT_SPAN];
	ck_table_cell(table, span(ck_simulation_percentile(values, n, percent), buf));
}

void ck_simulation_report(FILE *out, const struct ck_simulation_options *options,
			  const struct ck_simulation_result *results, size_t n)
{
	static const struct ck_column columns[] = {
		{ "POLICY", 0, 0 },
		{ "CREATES", CK_COLUMN_RIGHT, 0 },
		{ "REQUESTS", CK_COLUMN_RIGHT, 0 },
		{ "READY P50", CK_COLUMN_RIGHT, 0 },
		{ "P99", CK_COLUMN_RIGHT, 0 },
		{ "MAX", CK_COLUMN_RIGHT, 0 },
		{ "LAG P50", CK_COLUMN_RIGHT, 0 },
		{ "P99", CK_COLUMN_RIGHT, 0 },
		{ "LEAKS", CK_COLUMN_RIGHT, 0 },
		{ "NEVER", CK_COLUMN_RIGHT, 0 },
	};
	char buf[CK_TEXT_SPAN];
	struct ck_table *table = ck_table_new(columns, CK_COUNT(columns));
	for (size_t i = 0; i < n; i++) {
		const struct ck_simulation_result *r = &results[i];
		ck_table_cell(table, r->policy->name);
		ck_table_cellf(table, "%.2f", (double)sum(r->creates) / (double)r->pods);
		ck_table_cellf(table, "%.2f", (double)sum(r->requests) / (double)r->pods);
		cell_percentile(table, r->ready, r->pods, 50);
		cell_percentile(table, r->ready, r->pods, 99);
		cell_percentile(table, r->ready, r->pods, 100);
		cell_percentile(table, r->lag, r->lags, 50);
		cell_percentile(table, r->lag, r->lags, 99);
		ck_table_cellf(table, "%zu", r->left_hidden + r->left_visible);
		ck_table_cellf(table, "%zu", r->never);
	}
	ck_table_print(out, table, 0);
	fprintf(out,
		"\n"
		"CREATES, REQUESTS  per pod of 1 sandbox and %u container%s; %u of each at best\n"
		"READY              from the pod's creation to its last start; - means never\n"
		"LAG                from the end of a create until the kubelet has its id\n"
		"LEAKS              sandboxes and containers left at the end that no pod uses\n"
		"NEVER              pods that were given up after %s\n"
		"\n",
		options->containers, options->containers == 1 ? "" : "s", 1 + options->containers,
		ck_text_span(options->give_up, buf));
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%-8s %s\n", results[i].policy->name, results[i].policy->meaning);
	fputs("none and ram are models of containerd 1.6/2.x and CRI-O 1.26; crikeep is "
	      "the\nlibrary itself.\n",
	      out);
}

/* ---- for machines ---------------------------------------------------------------------------- */

static void put_ratio(struct json_object *object, const char *name, uint64_t a, uint64_t b)
{
	ck_tree_put(object, name, ck_tree_decimal((double)a / (double)b, 4));
}

static void put_seconds(struct json_object *object, const char *name, uint64_t ns)
{
	if (ns == UINT64_MAX)
		ck_tree_put(object, name, NULL);
	else
		ck_tree_put_seconds(object, name, (int64_t)ns);
}

static void put_kinds(struct json_object *object, const char *name,
		      const uint64_t by_kind[CK_CONTAINER + 1])
{
	struct json_object *kinds = ck_tree_object();
	ck_tree_put_count(kinds, "sandbox", by_kind[CK_SANDBOX]);
	ck_tree_put_count(kinds, "container", by_kind[CK_CONTAINER]);
	ck_tree_put(object, name, kinds);
}

static struct json_object *percentiles(const uint64_t *values, size_t n)
{
	struct json_object *object = ck_tree_object();
	put_seconds(object, "p50", ck_simulation_percentile(values, n, 50));
	put_seconds(object, "p99", ck_simulation_percentile(values, n, 99));
	put_seconds(object, "max", ck_simulation_percentile(values, n, 100));
	return object;
}

static struct json_object *parameters(const struct ck_simulation_options *o)
{
	struct json_object *object = ck_tree_object();
	const char *slow = !o->slow[CK_CONTAINER] ? "sandbox"
			   : !o->slow[CK_SANDBOX] ? "container"
						  : "both";
	put_seconds(object, "create_seconds", o->create);
	put_ratio(object, "jitter", (uint64_t)(o->jitter * 10000 + 0.5), 10000);
	ck_tree_put_text(object, "slow", slow);
	put_seconds(object, "deadline_seconds", o->deadline);
	ck_tree_put_count(object, "pods", o->pods);
	ck_tree_put_count(object, "containers", o->containers);
	put_seconds(object, "give_up_seconds", o->give_up);
	ck_tree_put_text(object, "hand_back", o->hand_back == CK_OFFER ? "offer" : "repeat");
	put_seconds(object, "restart_at_seconds", o->restart_at ? o->restart_at : UINT64_MAX);
	put_seconds(object, "kubelet_restart_at_seconds",
		    o->kubelet_restart_at ? o->kubelet_restart_at : UINT64_MAX);
	ck_tree_put_count(object, "seed", o->seed);
	return object;
}

struct json_object *ck_simulation_tree(const struct ck_simulation_options *options,
				       const struct ck_simulation_result *results, size_t n)
{
	struct json_object *tree = ck_tree_object(), *policies = ck_tree_array();
	ck_tree_put(tree, "parameters", parameters(options));
	for (size_t i = 0; i < n; i++) {
		const struct ck_simulation_result *r = &results[i];
		struct json_object *policy = ck_tree_object(), *leaks = ck_tree_object(),
				   *ready = ck_tree_array();
		uint64_t resources = (uint64_t)r->pods * (1 + options->containers);
		ck_tree_put_text(policy, "policy", r->policy->name);
		put_ratio(policy, "creates_per_pod", sum(r->creates), r->pods);
		put_ratio(policy, "creates_per_resource", sum(r->creates), resources);
		put_ratio(policy, "requests_per_pod", sum(r->requests), r->pods);
		put_kinds(policy, "creates", r->creates);
		put_kinds(policy, "requests", r->requests);
		ck_tree_put(policy, "ready_seconds", percentiles(r->ready, r->pods));
		ck_tree_put(policy, "lag_seconds", percentiles(r->lag, r->lags));
		ck_tree_put_count(leaks, "hidden", r->left_hidden);
		ck_tree_put_count(leaks, "listed", r->left_visible);
		ck_tree_put(policy, "leaks", leaks);
		ck_tree_put_count(policy, "never_ready", r->never);
		/* the cumulative curve: when the n-th pod was ready */
		for (size_t p = 0; p + r->never < r->pods; p++)
			ck_tree_add(ready, ck_tree_seconds((int64_t)r->ready[p]));
		ck_tree_put(policy, "ready_after_seconds", ready);
		ck_tree_add(policies, policy);
	}
	ck_tree_put(tree, "policies", policies);
	return tree;
}
