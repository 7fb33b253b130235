/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics text: every line of it, what it counts of a real cache, and the socket it is handed
 * out at. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "tests/flow/fixture.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/daemon/call.h"
#include "src/daemon/metrics.h"
#include "src/daemon/proc-stats.h"

#define S CK_NS_PER_S

/* the value of a series, as text; it must be there exactly once */
static const char *value_of(const char *text, const char *series)
{
	static char value[64];
	size_t len = strlen(series);
	unsigned found = 0;
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (strncmp(line, series, len) || line[len] != ' ')
			continue;
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + len + 1, "\n"),
			 line + len + 1);
		found++;
	}
	if (found != 1)
		fail_msg("%s: %u times", series, found);
	return value;
}

#define assert_value(text, series, value) assert_string_equal(value_of(text, series), value)

static bool is_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalpha((unsigned char)s[i]) && s[i] != '_' &&
		    (i == 0 || !isdigit((unsigned char)s[i])))
			return false;
	return len > 0;
}

/* Prometheus' text format 0.0.4, as much of it as is used here: HELP, TYPE, then the samples of
 * that name, each family once */
static unsigned check_format(const char *text)
{
	char family[128] = "", type[16] = "";
	char seen[65536] = "|";
	unsigned samples = 0;
	size_t len = strlen(text);
	assert_true(len > strlen(CK_METRICS_END));
	assert_string_equal(text + len - strlen(CK_METRICS_END), CK_METRICS_END);
	for (const char *line = text, *end; strcmp(line, CK_METRICS_END); line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		if (strncmp(line, "# HELP ", 7) == 0) {
			char marked[136];
			snprintf(family, sizeof(family), "%.*s", (int)strcspn(line + 7, " "),
				 line + 7);
			snprintf(marked, sizeof(marked), "|%s|", family);
			if (strstr(seen, marked))
				fail_msg("%s twice", family);
			strncat(seen, marked + 1, sizeof(seen) - strlen(seen) - 1);
			assert_true(is_name(family, strlen(family)));
			assert_true(end[-1] == '.' && end[-2] != '.'); /* a sentence */
			assert_null(memchr(line, '\\', (size_t)(end - line)));
			type[0] = '\0';
		} else if (strncmp(line, "# TYPE ", 7) == 0) {
			assert_int_equal(strncmp(line + 7, family, strlen(family)), 0);
			assert_int_equal(sscanf(line + 7 + strlen(family), " %15[a-z]", type), 1);
		} else {
			size_t name = strcspn(line, "{ ");
			const char *value = memchr(line, ' ', (size_t)(end - line));
			assert_true(is_name(line, name) && *type && value);
			/* of a histogram with a suffix */
			assert_int_equal(strncmp(line, family, strlen(family)), 0);
			if (strcmp(type, "histogram"))
				assert_int_equal(name, strlen(family));
			if (strcmp(type, "counter") == 0)
				assert_non_null(strstr(family, "_total"));
			assert_int_equal(strspn(value + 1, "0123456789."), end - value - 1);
			samples++;
		}
	}
	return samples;
}

/* ---- the daemon's ---------------------------------------------------------------------------- */

static void every_line_is_prometheus_text(void **state)
{
	struct ck_metrics metrics = { 0 };
	(void)state;
	CK_AUTO_FREE char *text = ck_metrics_print(&metrics, NULL, NULL);
	assert_non_null(text);
	assert_true(check_format(text) > 100);
	assert_null(strstr(text, "crikeep_entries"));
	assert_null(strstr(text, "process_"));
}

static void each_call_has_its_own_counters(void **state)
{
	struct ck_metrics metrics = { 0 };
	const struct ck_cri_method *list =
		ck_cri_method_find("/runtime.v1.RuntimeService/ListPodSandbox", 41);
	const struct ck_cri_method *version =
		ck_cri_method_find("/runtime.v1.RuntimeService/Version", 34);
	size_t n = 0;
	(void)state;
	while (ck_cri_method_at(n)) {
		assert_int_equal(ck_metrics_method(ck_cri_method_at(n)), n);
		n++;
	}
	assert_true(n < CK_METRIC_METHODS); /* one is left for those not in the table */
	assert_int_equal(ck_metrics_method(NULL), CK_METRIC_METHODS - 1);
	metrics.calls[ck_metrics_method(list)] = 5;
	metrics.calls[ck_metrics_method(NULL)] = 2;
	metrics.filtered[ck_metrics_method(list)] = 7;
	metrics.calls[ck_metrics_method(version)] = 4;
	metrics.errors[ck_metrics_method(version)] = 3;
	CK_AUTO_FREE char *text = ck_metrics_print(&metrics, NULL, NULL);
	assert_value(text, "crikeepd_calls_total{rpc=\"ListPodSandbox\"}", "5");
	assert_value(text, "crikeepd_calls_total{rpc=\"other\"}", "2");
	assert_value(text, "crikeepd_calls_total{rpc=\"Version\"}", "4");
	assert_value(text, "crikeepd_filtered_items_total{rpc=\"ListPodSandbox\"}", "7");
	assert_value(text, "crikeepd_call_errors_total{rpc=\"Version\"}", "3");
	/* so that a first error is an increase */
	assert_value(text, "crikeepd_call_errors_total{rpc=\"ListPodSandbox\"}", "0");
	assert_value(text, "crikeepd_hidden_refused_total{rpc=\"ListPodSandbox\"}", "0");
	/* what was never called has no series */
	assert_null(strstr(text, "rpc=\"Status\""));
	assert_null(strstr(text, "errors_total{rpc=\"RunPodSandbox\""));
	/* nothing to refuse in it */
	assert_null(strstr(text, "hidden_refused_total{rpc=\"Version\"}"));
}

static void only_a_call_that_should_end_has_an_age(void **state)
{
	struct ck_metrics metrics = { 0 };
	uint64_t now = ck_loop_now();
	struct ck_h2_stream *stream = (struct ck_h2_stream *)state; /* any but NULL */
	struct ck_call calls[] = {
		{ .began = now - 90 * S, .stream = stream },
		{ .method = ck_cri_method_named("PullImage"), .began = now - 80 * S,
		  .stream = stream },
		{ .method = ck_cri_method_named("GetContainerEvents"), .began = now - 70 * S,
		  .stream = stream },
		{ .method = ck_cri_method_named("RunPodSandbox"), .began = now - 60 * S },
		{ .method = ck_cri_method_named("Version"), .stream = stream },
		{ .method = ck_cri_method_named("Status"), .began = now - 50 * S,
		  .stream = stream },
		{ .method = ck_cri_method_named("Version"), .began = now - 40 * S,
		  .stream = stream },
	};
	CK_AUTO_FREE char *none = ck_metrics_print(&metrics, NULL, NULL);
	assert_value(none, "crikeepd_oldest_call_seconds", "0.000000000");
	for (size_t i = 0; i < CK_COUNT(calls); i++)
		DL_APPEND(metrics.calls_open, &calls[i]);
	CK_AUTO_FREE char *text = ck_metrics_print(&metrics, NULL, NULL);
	check_format(text);
	/* the first is not in the table, two may take long, one was answered, one has no request */
	long age = atol(value_of(text, "crikeepd_oldest_call_seconds"));
	assert_true(age >= 50 && age < 60);
	assert_int_equal(atol(value_of(text, "crikeepd_pid")), getpid());
}

static void a_bound_belongs_to_its_bucket(void **state)
{
	struct ck_metrics metrics = { 0 };
	(void)state;
	ck_histogram_add(&metrics.wait[CK_SANDBOX], 0);
	ck_histogram_add(&metrics.wait[CK_SANDBOX], CK_NS_PER_MS);
	ck_histogram_add(&metrics.wait[CK_SANDBOX], CK_NS_PER_MS + 1);
	ck_histogram_add(&metrics.wait[CK_SANDBOX], 900 * S);
	ck_histogram_add(&metrics.wait[CK_SANDBOX], 900 * S + 1);
	CK_AUTO_FREE char *text = ck_metrics_print(&metrics, NULL, NULL);
	check_format(text);
	assert_value(text, "crikeepd_create_wait_seconds_bucket{kind=\"sandbox\",le=\"0.001\"}",
		     "2");
	assert_value(text, "crikeepd_create_wait_seconds_bucket{kind=\"sandbox\",le=\"0.005\"}",
		     "3");
	assert_value(text, "crikeepd_create_wait_seconds_bucket{kind=\"sandbox\",le=\"240\"}", "3");
	assert_value(text, "crikeepd_create_wait_seconds_bucket{kind=\"sandbox\",le=\"900\"}", "4");
	assert_value(text, "crikeepd_create_wait_seconds_bucket{kind=\"sandbox\",le=\"+Inf\"}",
		     "5");
	assert_value(text, "crikeepd_create_wait_seconds_count{kind=\"sandbox\"}", "5");
	assert_value(text, "crikeepd_create_wait_seconds_sum{kind=\"sandbox\"}", "1800.002000002");
	assert_value(text, "crikeepd_create_wait_seconds_count{kind=\"container\"}", "0");
}

static void the_process_is_described(void **state)
{
	struct ck_metrics metrics = { 0 };
	struct ck_process process;
	struct rlimit limit;
	char expected[32];
	(void)state;
	ck_process_open(&process);
	int fds = ck_test_descriptors() - 3; /* ".", ".." and its own; ck_cache_process holds two */
	CK_AUTO_FREE char *text = ck_metrics_print(&metrics, NULL, &process);
	ck_process_close(&process);
	check_format(text);
	snprintf(expected, sizeof(expected), "%d", fds - 1); /* one of the two is not counted */
	assert_value(text, "process_open_fds", expected);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	snprintf(expected, sizeof(expected), "%lu", (unsigned long)limit.rlim_cur);
	assert_value(text, "process_max_fds", expected);
	assert_true(atol(value_of(text, "process_resident_memory_bytes")) > 1 << 20);
	time_t started = (time_t)atol(value_of(text, "process_start_time_seconds")),
	       now = time(NULL);
	assert_true(started <= now + 1 &&
		    started > now - 300 * (time_t)(ck_test_env("CK_TEST_SLOW", 1) + 1));
}

static void without_memory_there_is_no_half_text(void **state)
{
	struct ck_metrics metrics = { 0 };
	(void)state;
	unsigned n = 1;
	for (;; n++) {
		ck_fault_arm(CK_FAULT_ALLOC, n, false);
		CK_AUTO_FREE char *text = ck_metrics_print(&metrics, NULL, NULL);
		bool hit = ck_fault_hit();
		ck_fault_arm(CK_FAULT_ALLOC, 0, false);
		assert_int_equal(text == NULL, hit);
		if (!hit)
			break;
	}
	assert_true(n > 5);
}

/* ---- the cache's ----------------------------------------------------------------------------- */

static char *print(struct fixture *f)
{
	static const struct ck_metrics metrics;
	char *text = ck_metrics_print(&metrics, f->cache, NULL);
	assert_non_null(text);
	check_format(text);
	return text;
}

static void the_oldest_creation_is_told(void **state)
{
	struct fixture *f = *state;
	struct fx_ask web = fx_sandbox("web"), db = fx_sandbox("db");
	web.timeout = db.timeout = 900 * S;
	fx_open(f);
	struct ck_turn *first = fx_create(f, &web);
	fx_advance(f, 60 * S);
	struct ck_turn *second = fx_create(f, &db), *again = fx_wait(f, &web);
	fx_advance(f, 5 * S);
	CK_AUTO_FREE char *text = print(f);
	assert_value(text, "crikeep_entries{kind=\"sandbox\",state=\"creating\"}", "2");
	assert_value(text, "crikeep_entries{kind=\"container\",state=\"creating\"}", "0");
	assert_value(text, "crikeep_oldest_creation_seconds{kind=\"sandbox\"}", "65.000000000");
	assert_value(text, "crikeep_oldest_creation_seconds{kind=\"container\"}", "0.000000000");
	assert_value(text, "crikeep_requests_creating{kind=\"sandbox\"}", "2");
	assert_value(text, "crikeep_requests_waiting{kind=\"sandbox\"}", "1");
	assert_value(text, "crikeep_requests_total{kind=\"sandbox\"}", "3");
	assert_value(text, "crikeep_created_total{kind=\"sandbox\"}", "2");
	assert_value(text, "crikeep_joined_total{kind=\"sandbox\"}", "1");
	ck_turn_free(again);
	ck_turn_free(second); /* nobody knows how it ends */
	CK_AUTO_FREE char *later = print(f);
	assert_value(later, "crikeep_creations_lost{kind=\"sandbox\"}", "1");
	assert_value(later, "crikeep_requests_waiting{kind=\"sandbox\"}", "0");
	ck_turn_free(first);
}

static void a_result_is_followed_from_kept_to_gone(void **state)
{
	struct fixture *f = *state;
	struct fx_ask web = fx_sandbox("web"), db = fx_sandbox("db");
	fx_open(f);
	fx_keep(f, &web, "s1");
	fx_commit(f, &db, "s2");
	fx_advance(f, 30 * S);
	CK_AUTO_FREE char *text = print(f);
	assert_value(text, "crikeep_entries{kind=\"sandbox\",state=\"kept\"}", "1");
	assert_value(text, "crikeep_entries{kind=\"sandbox\",state=\"committed\"}", "1");
	assert_true(atof(value_of(text, "crikeep_oldest_kept_seconds{kind=\"sandbox\"}")) >= 30);
	assert_value(text, "crikeep_kept_total{kind=\"sandbox\"}", "1");
	assert_value(text, "crikeep_degraded", "0");
	assert_true(atol(value_of(text, "crikeep_database_bytes")) >= 4096);
	assert_true(atol(value_of(text, "crikeep_wal_bytes")) > 4096);

	/* somebody asks, and goes before the runtime says that it is alive */
	f->hold[FX_INSPECT] = true;
	struct ck_turn *turn = fx_wait(f, &web);
	ck_turn_free(turn);
	CK_AUTO_FREE char *asked = print(f);
	assert_value(asked, "crikeep_entries{kind=\"sandbox\",state=\"kept\"}", "1");
	assert_value(asked, "crikeep_oldest_kept_seconds{kind=\"sandbox\"}", "0.000000000");
	f->hold[FX_INSPECT] = false;
	fx_release(f, FX_INSPECT);

	f->fail[FX_DESTROY] = 13;
	fx_advance(f, 700 * S); /* the TTL, and back-off up to a minute */
	CK_AUTO_FREE char *stuck = print(f);
	assert_value(stuck, "crikeep_entries{kind=\"sandbox\",state=\"evicting\"}", "1");
	assert_value(stuck, "crikeep_destroys_failing{kind=\"sandbox\"}", "1");
	assert_true(atol(value_of(stuck, "crikeep_destroy_tries{kind=\"sandbox\"}")) >= 3);
	double age = atof(value_of(stuck, "crikeep_oldest_eviction_seconds{kind=\"sandbox\"}"));
	assert_true(age > 60 && age < 140);
	assert_value(stuck, "crikeep_oldest_kept_seconds{kind=\"sandbox\"}", "0.000000000");

	f->fail[FX_DESTROY] = 0;
	fx_advance(f, 120 * S); /* the next try comes within a minute and its jitter */
	CK_AUTO_FREE char *gone = print(f);
	assert_value(gone, "crikeep_entries{kind=\"sandbox\",state=\"evicting\"}", "0");
	assert_value(gone, "crikeep_destroyed_total{kind=\"sandbox\"}", "1");
	assert_value(gone, "crikeep_destroy_tries{kind=\"sandbox\"}", "0");
}

static void a_removal_that_waits_is_no_create(void **state)
{
	struct fixture *f = *state;
	struct fx_ask app = fx_container("web", "s1", "app");
	struct ck_turn *turn, *removal = fx_removal_waits(f, &app, 10 * S, &turn);
	CK_AUTO_FREE char *text = print(f);
	assert_value(text, "crikeep_requests_waiting{kind=\"sandbox\"}", "0");
	assert_value(text, "crikeep_requests_waiting{kind=\"container\"}", "0");
	assert_value(text, "crikeep_entries{kind=\"container\",state=\"evicting\"}", "1");
	ck_turn_free(removal);
	ck_turn_free(turn);
}

/* how many creations were saved, and how long they had taken */
static void assert_saved(struct fixture *f, const char *kind, const char *n, const char *seconds)
{
	char series[64];
	CK_AUTO_FREE char *text = print(f);
	snprintf(series, sizeof(series), "crikeep_saved_total{kind=\"%s\"}", kind);
	assert_value(text, series, n);
	snprintf(series, sizeof(series), "crikeep_saved_seconds_total{kind=\"%s\"}", kind);
	assert_value(text, series, seconds);
}

static void a_creation_in_time_is_not_saved(void **state)
{
	struct fixture *f = *state;
	struct fx_ask web = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	fx_open(f);
	struct ck_turn *turn = fx_create(f, &web);
	fx_advance(f, S);
	assert_int_equal(fx_make(f, turn, &web, "s1"), CK_HAND_BACK);
	/* a container is asked for before it is known that the answer arrived */
	struct ck_turn *next = fx_create(f, &app);
	ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
	assert_int_equal(fx_make(f, next, &app, "c1"), CK_HAND_BACK);
	ck_container_starting(f->cache, "c1");
	ck_turn_answered(next, CK_DELIVERED);
	ck_turn_free(next);
	assert_saved(f, "sandbox", "0", "0.000");
	assert_saved(f, "container", "0", "0.000");
	/* nor after a restart, which does not know who had it */
	fx_reopen(f);
	fx_settle(f);
	struct fx_ask other = fx_container("web", "s1", "other");
	ck_turn_free(fx_create(f, &other));
	assert_saved(f, "sandbox", "0", "0.000");
}

static void a_creation_that_another_request_gets_is_saved(void **state)
{
	struct fixture *f = *state;
	struct fx_ask web = fx_sandbox("web"), app = fx_container("web", "s1", "app");
	fx_open(f);
	struct ck_turn *first = fx_create(f, &web);
	fx_advance(f, 2 * S);
	ck_turn_leave(first);
	struct ck_turn *second = fx_wait(f, &web);
	fx_advance(f, 3 * S);
	assert_int_equal(fx_make(f, first, &web, "s1"), CK_KEPT);
	fx_answered_with(f, second, "s1");
	assert_saved(f, "sandbox", "0", "0.000"); /* the answer may get lost */
	ck_turn_answered(second, CK_DELIVERED);
	ck_turn_free(first);
	ck_turn_free(second);
	assert_saved(f, "sandbox", "1", "5.000");

	/* a container is kept, and handed back */
	first = fx_create(f, &app);
	fx_advance(f, S);
	ck_turn_leave(first);
	fx_advance(f, 500 * CK_NS_PER_MS);
	assert_int_equal(fx_make(f, first, &app, "c1"), CK_KEPT);
	ck_turn_free(first);
	fx_reopen(f);
	fx_settle(f);
	second = fx_wait(f, &app);
	fx_answered_with(f, second, "c1");
	ck_turn_answered(second, CK_DELIVERED);
	ck_turn_free(second);
	ck_container_starting(f->cache, "c1");
	assert_saved(f, "container", "1", "1.500");
	assert_saved(f, "sandbox", "1", "5.000"); /* it was used before, too */
}

static void a_listed_sandbox_is_saved_once_it_is_used(void **state)
{
	struct fixture *f = *state;
	struct fx_ask web = fx_sandbox("web"), app = fx_container("web", "s1", "app"),
		      db = fx_sandbox("db");
	f->options.hand_back = CK_OFFER;
	fx_open(f);
	fx_keep(f, &web, "s1");
	fx_keep(f, &db, "s2");
	fx_settle(f);
	assert_int_equal(ck_sandbox_stopping(f->cache, "s2"), 0); /* the kubelet did not want it */
	assert_saved(f, "sandbox", "0", "0.000");
	struct ck_turn *turn = fx_create(f, &app);
	assert_saved(f, "sandbox", "1", "11.000");
	ck_turn_free(turn);
}

static void a_database_that_refuses_writes_is_told(void **state)
{
	struct fixture *f = *state;
	struct fx_ask web = fx_sandbox("web");
	fx_open(f);
	ck_fault_arm(CK_FAULT_STORE, 1, true);
	struct ck_turn *turn = fx_create(f, &web);
	CK_AUTO_FREE char *text = print(f);
	ck_fault_arm(CK_FAULT_STORE, 0, false);
	assert_value(text, "crikeep_degraded", "1");
	fx_advance(f, 2 * S);
	CK_AUTO_FREE char *later = print(f);
	assert_value(later, "crikeep_degraded", "0");
	assert_true(atol(value_of(later, "crikeep_write_failures_total")) >= 0);
	ck_turn_free(turn);
}

/* ---- the socket ------------------------------------------------------------------------------ */

struct place {
	struct ck_loop loop;
	struct ck_conf conf;
	struct ck_metrics metrics;
	struct ck_metrics_server *server;
	char path[128];
};

static void place_open(struct place *p)
{
	struct ck_error err = { 0 };
	const char *tmp = getenv("TMPDIR");
	memset(p, 0, sizeof(*p));
	snprintf(p->path, sizeof(p->path), "%s/metrics.%d", tmp && *tmp ? tmp : "/tmp",
		 (int)getpid());
	p->conf.metrics = p->path;
	p->conf.metrics_socket.mode = 0640;
	p->conf.metrics_socket.group.gid = (gid_t)-1;
	assert_int_equal(ck_loop_init(&p->loop, &err), 0);
	if (ck_metrics_serve(&p->loop, &p->conf, -1, &p->metrics, NULL, &p->server, &err) < 0)
		fail_msg("%s", err.text);
}

static void place_close(struct place *p)
{
	ck_metrics_server_free(p->server);
	ck_loop_fini(&p->loop);
	assert_int_equal(access(p->path, F_OK), -1);
}

static void place_turn(struct place *p)
{
	while (sd_event_run(p->loop.event, 0) > 0)
		;
}

static size_t read_all(int fd, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n;
	while ((n = read(fd, buf + len, size - len - 1)) > 0)
		len += (size_t)n;
	assert_int_equal(n, 0);
	buf[len] = '\0';
	return len;
}

static void who_connects_gets_the_text_and_the_end(void **state)
{
	static char text[CK_METRICS_MAX];
	struct place p;
	struct stat st;
	(void)state;
	place_open(&p);
	assert_int_equal(stat(p.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	for (unsigned i = 1; i <= 3; i++) {
		char expected[16];
		int fd = ck_unix_connect(p.path, NULL);
		assert_true(fd >= 0);
		p.metrics.clients = i;
		place_turn(&p);
		read_all(fd, text, sizeof(text));
		check_format(text);
		snprintf(expected, sizeof(expected), "%u", i);
		assert_value(text, "crikeepd_clients", expected);
		assert_true(atol(value_of(text, "process_resident_memory_bytes")) > 0);
		close(fd);
	}
	place_close(&p);
}

static void nobody_is_waited_for(void **state)
{
	static char text[CK_METRICS_MAX];
	struct place p;
	int fds[200], before = ck_test_descriptors();
	(void)state;
	place_open(&p);
	int served = ck_test_descriptors();
	/* connect, and read nothing, or go away at once */
	for (size_t i = 0; i < CK_COUNT(fds); i++) {
		fds[i] = ck_unix_connect(p.path, NULL);
		assert_true(fds[i] >= 0);
		if (i % 2) {
			close(fds[i]);
			fds[i] = -1;
		}
		if (i % 10 == 9)
			place_turn(&p);
	}
	/* those of the test: ours are closed */
	assert_int_equal(ck_test_descriptors(), served + 100);
	int fd = ck_unix_connect(p.path, NULL);
	place_turn(&p);
	read_all(fd, text, sizeof(text));
	check_format(text);
	close(fd);
	for (size_t i = 0; i < CK_COUNT(fds); i += 2)
		close(fds[i]);
	place_close(&p);
	assert_int_equal(ck_test_descriptors(), before);
}

static void without_a_free_descriptor_the_loop_rests(void **state)
{
	static char text[CK_METRICS_MAX];
	struct rlimit limit, low;
	struct place p;
	(void)state;
	place_open(&p);
	int fd = ck_unix_connect(p.path, NULL), turns = 0;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)fd + 1; /* of those below some may be free */
	int fillers[64], n = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (n < 64 && (fillers[n] = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	while (turns < 100 && sd_event_run(p.loop.event, 0) > 0)
		turns++;
	assert_in_range(turns, 1, 10);
	while (n > 0)
		close(fillers[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(sd_event_run(p.loop.event, 5000000) > 0); /* the timer */
	place_turn(&p);
	read_all(fd, text, sizeof(text));
	check_format(text);
	close(fd);
	place_close(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_line_is_prometheus_text),
		cmocka_unit_test(each_call_has_its_own_counters),
		cmocka_unit_test(only_a_call_that_should_end_has_an_age),
		cmocka_unit_test(a_bound_belongs_to_its_bucket),
		cmocka_unit_test(the_process_is_described),
		cmocka_unit_test(without_memory_there_is_no_half_text),
		ON_FIXTURE(the_oldest_creation_is_told),
		ON_FIXTURE(a_result_is_followed_from_kept_to_gone),
		ON_FIXTURE(a_removal_that_waits_is_no_create),
		ON_FIXTURE(a_creation_in_time_is_not_saved),
		ON_FIXTURE(a_creation_that_another_request_gets_is_saved),
		ON_FIXTURE(a_listed_sandbox_is_saved_once_it_is_used),
		ON_FIXTURE(a_database_that_refuses_writes_is_told),
		cmocka_unit_test(who_connects_gets_the_text_and_the_end),
		cmocka_unit_test(nobody_is_waited_for),
		cmocka_unit_test(without_a_free_descriptor_the_loop_rests),
	};
	return CK_TEST_MAIN(tests);
}
