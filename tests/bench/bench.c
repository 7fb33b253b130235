/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What crikeep costs, as ratios measured in one run on one machine: a number alone says more about
 * the machine. A ratio is the median of a few repetitions, in which the things compared take turns.
 * Where there is a goal, it stands beside the ratio. Nothing here is a test; a slow day fails
 * nobody. CK_TEST_SCALE (per cent) makes it shorter or longer; arguments choose parts.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/cri-build.h"
#include "tests/bench/measure.h"
#include "cache/cache.h"
#include "cache/request/redact.h"
#include "cache/store/store-int.h"

#define S CK_NS_PER_S

/* ---- a directory and a host that answers at once --------------------------------------------- */

struct place {
	char dir[64];
	struct ck_host host;
	struct ck_options options;
	struct ck_cache *cache;
	uint64_t *destroyed_at; /* by the number in the id */
	unsigned destroyed;     /* atomic */
};

static void destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	struct place *p = userdata;
	struct ck_answer answer = { .size = sizeof(answer) };
	(void)kind;
	if (p->destroyed_at)
		p->destroyed_at[strtoul(id, NULL, 10)] = measure_now();
	ck_job_done(job, &answer);
	__atomic_add_fetch(&p->destroyed, 1, __ATOMIC_SEQ_CST);
}

static void place_make(struct place *p)
{
	*p = (struct place){
		.host = { .size = sizeof(p->host), .destroy = destroy, .userdata = p } };
	snprintf(p->dir, sizeof(p->dir), "%s/crikeep-bench.XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	measure_must(mkdtemp(p->dir), "mkdtemp");
	p->options = (struct ck_options){ .size = sizeof(p->options),
					  .state_dir = p->dir,
					  .host = &p->host };
}

static void place_open(struct place *p, bool thread)
{
	struct ck_error err;
	measure_must(ck_cache_open(&p->options, &p->cache, &err) == 0, "open: %s", err.text);
	measure_must(!thread || ck_cache_run_thread(p->cache, &err) == 0, "thread: %s", err.text);
}

static void place_close(struct place *p)
{
	measure_must(ck_cache_close(p->cache, NULL) == 0, "close");
	p->cache = NULL;
}

static void place_remove(struct place *p)
{
	static const char *const names[] = { "crikeep.db", "crikeep.db-wal", "crikeep.db-shm",
					     "key",        "owner",          "wishes" };
	char path[128];
	for (size_t i = 0; i < CK_COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", p->dir, names[i]);
		remove(path);
	}
	rmdir(p->dir);
}

/* ---- requests: a recorded RunPodSandbox, of another pod each --------------------------------- */

struct message {
	unsigned char *bytes;
	size_t len;
};

static struct message *requests; /* made before anything is timed */
static unsigned long requests_n;

static void requests_prepare(unsigned long n)
{
	static struct pb recorded;
	if (!recorded.len)
		load_recorded("002-RunPodSandbox-web.bin", &recorded);
	if (n > requests_n)
		requests = realloc(requests, n * sizeof(*requests));
	for (; requests_n < n; requests_n++) {
		struct pb metadata = { .len = 0 }, config = { .len = 0 }, whole = recorded;
		char name[32], uid[48];
		snprintf(name, sizeof(name), "pod-%lu", requests_n);
		snprintf(uid, sizeof(uid), "0f9d8c7b-0000-4000-8000-%012lu", requests_n);
		pb_text(&metadata, 1, name);
		pb_text(&metadata, 2, uid);
		pb_message(&config, 1, &metadata);
		pb_message(&whole, 1, &config); /* merged into what is there */
		struct message *message = &requests[requests_n];
		*message = (struct message){ malloc(whole.len), whole.len };
		measure_must(message->bytes, "no memory");
		memcpy(message->bytes, whole.bytes, whole.len);
	}
}

static struct ck_turn *begin(struct place *p, unsigned long i, uint64_t timeout, int wanted)
{
	measure_must(i < requests_n, "request %lu was not prepared", i);
	struct ck_request request = { .size = sizeof(request),
				      .kind = CK_SANDBOX,
				      .bytes = requests[i].bytes,
				      .len = requests[i].len,
				      .timeout = timeout };
	struct ck_turn *turn;
	struct ck_error err = { 0 };
	int r = ck_turn_begin(p->cache, &request, &turn, &err);
	measure_must(r == wanted, "begin: %d %s", r, err.text);
	return turn;
}

static int finish(struct ck_turn *turn, unsigned long i)
{
	char id[65];
	snprintf(id, sizeof(id), "%064lu", i);
	struct ck_result result = { .size = sizeof(result), .id = id };
	return ck_turn_finish(turn, &result, NULL);
}

static void one_turn(struct place *p, unsigned long i)
{
	struct ck_turn *turn = begin(p, i, 240 * S, CK_CREATE);
	measure_must(finish(turn, i) == CK_HAND_BACK, "finish");
	ck_turn_free(turn);
}

/* us for each of @n turns */
static double time_turns(struct place *p, unsigned long first, unsigned long n)
{
	uint64_t began = measure_now();
	for (unsigned long i = 0; i < n; i++)
		one_turn(p, first + i);
	return (double)(measure_now() - began) / (double)n / 1000;
}

enum { REPEATS = 15 }; /* of a measurement; the median counts */

/* ---- a durable turn against the same statements in the same transactions --------------------- */

struct counts {
	unsigned long statements, transactions;
};

static int traced(unsigned type, void *userdata, void *stmt, void *sql)
{
	struct counts *counts = userdata;
	(void)type, (void)stmt;
	counts->statements++;
	counts->transactions += !strcmp(sql, "COMMIT");
	return 0;
}

static struct counts count_statements(struct place *p, unsigned long first, unsigned long n)
{
	struct counts counts = { 0 };
	sqlite3 *db = p->cache->store->db;
	sqlite3_trace_v2(db, SQLITE_TRACE_STMT, traced, &counts);
	time_turns(p, first, n);
	sqlite3_trace_v2(db, 0, NULL, NULL);
	return counts;
}

struct raw {
	sqlite3 *db;
	sqlite3_stmt *begin, *commit, *insert, *digests, *update, *note;
	struct ck_row row;
	int64_t seq;
	int frames;
	struct counts counts;
};

static void run(struct raw *raw, sqlite3_stmt *stmt)
{
	measure_must(sqlite3_step(stmt) == SQLITE_DONE, "%s", sqlite3_errmsg(raw->db));
	sqlite3_reset(stmt);
	raw->counts.statements++;
}

static void raw_note(struct raw *raw, const char *who, int from, int to)
{
	sqlite3_stmt *stmt = raw->note;
	sqlite3_bind_int64(stmt, 1, ++raw->seq);
	sqlite3_bind_int64(stmt, 2, (sqlite3_int64)raw->row.id);
	sqlite3_bind_text(stmt, 3, who, -1, SQLITE_STATIC);
	sqlite3_bind_int(stmt, 4, CK_SANDBOX);
	sqlite3_bind_text(stmt, 5, raw->row.result->id, -1, SQLITE_STATIC);
	sqlite3_bind_int(stmt, 6, 1);
	sqlite3_bind_int(stmt, 7, from);
	sqlite3_bind_int(stmt, 8, to);
	sqlite3_bind_int(stmt, 9, 0);
	sqlite3_bind_int64(stmt, 10, (sqlite3_int64)raw->row.changed);
	sqlite3_bind_int64(stmt, 11, 1700000000);
	sqlite3_bind_int(stmt, 12, 0);
	sqlite3_bind_null(stmt, 13);
	sqlite3_bind_text(stmt, 14, raw->row.boot, -1, SQLITE_STATIC);
	run(raw, stmt);
}

static int raw_frames(void *userdata, sqlite3 *db, const char *name, int frames)
{
	(void)db, (void)name;
	((struct raw *)userdata)->frames = frames;
	return SQLITE_OK;
}

static void raw_commit(struct raw *raw)
{
	run(raw, raw->commit);
	raw->counts.transactions++;
	/* as the library bounds its WAL */
	if ((unsigned)raw->frames * CK_FRAME_SIZE >= CK_WAL_LIMIT / 2)
		sqlite3_wal_checkpoint_v2(raw->db, "main", SQLITE_CHECKPOINT_RESTART, NULL, NULL);
}

/* what one turn does to the database; the counts say whether it still is: insert, its digests, 1
 * line; update, 3 lines */
static void raw_turn(struct raw *raw, struct ck_key *key, unsigned long i)
{
	char who[512];
	struct ck_shared_result *result = raw->row.result;
	raw->row.key = key;
	raw->row.id = i + 1;
	ck_key_print(key, who, sizeof(who));
	run(raw, raw->begin);
	raw->row.state = CK_STATE_CREATING;
	raw->row.result = NULL;
	ck_row_bind(raw->insert, &raw->row, true);
	run(raw, raw->insert);
	raw->row.result = result;
	sqlite3_bind_int64(raw->digests, 1, (sqlite3_int64)raw->row.id);
	sqlite3_bind_blob(raw->digests, 2, raw->row.record.digests,
			  (int)raw->row.record.digests_len, SQLITE_STATIC);
	run(raw, raw->digests);
	raw_note(raw, who, 0, 0);
	raw_commit(raw);
	run(raw, raw->begin);
	raw->row.state = CK_STATE_COMMITTED;
	ck_row_bind(raw->update, &raw->row, false);
	run(raw, raw->update);
	raw_note(raw, who, 1, 3);
	raw_note(raw, who, 3, 4);
	raw_note(raw, who, 0, 0);
	raw_commit(raw);
}

static int take_row(struct ck_row *row, void *userdata)
{
	struct ck_row *to = userdata;
	if (to->id)
		return 0;
	*to = *row;
	*row = (struct ck_row){ 0 };
	return 0;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	measure_must(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) ==
			     SQLITE_OK,
		     "%s", sqlite3_errmsg(db));
	return stmt;
}

static void raw_open(struct raw *raw, struct place *like, struct place *p)
{
	struct ck_store_opened opened;
	struct ck_store *store;
	char path[128];
	*raw = (struct raw){ 0 };
	measure_must(ck_store_open(like->dir, &store, &opened, NULL) == 0 &&
			     ck_store_load(store, take_row, &raw->row, NULL) == 0 &&
			     ck_store_digests(store, raw->row.id, &raw->row.record, NULL) == 0,
		     "load a row");
	ck_store_close(store);
	measure_must(ck_store_open(p->dir, &store, &opened, NULL) == 0, "make a schema");
	ck_store_close(store);
	snprintf(path, sizeof(path), "%s/crikeep.db", p->dir);
	measure_must(sqlite3_open_v2(path, &raw->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
				     NULL) == SQLITE_OK,
		     "open");
	measure_must(sqlite3_exec(raw->db,
				  "PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA "
				  "cell_size_check=ON; PRAGMA synchronous=OFF;"
				  "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=1048576; "
				  "PRAGMA journal_mode=WAL",
				  NULL, NULL, NULL) == SQLITE_OK,
		     "pragmas");
	sqlite3_wal_hook(raw->db, raw_frames, raw);
	raw->begin = prepare(raw->db, "BEGIN IMMEDIATE");
	raw->commit = prepare(raw->db, "COMMIT");
	raw->insert = prepare(raw->db, ck_row_insert);
	raw->digests = prepare(raw->db, "INSERT INTO fingerprint (entry, leaves) VALUES (?1, ?2)");
	raw->update = prepare(raw->db, ck_row_update);
	raw->note = prepare(raw->db, ck_history_insert);
}

static void raw_close(struct raw *raw)
{
	sqlite3_stmt *stmts[] = { raw->begin,   raw->commit, raw->insert,
				  raw->digests, raw->update, raw->note };
	for (size_t i = 0; i < CK_COUNT(stmts); i++)
		sqlite3_finalize(stmts[i]);
	sqlite3_close(raw->db);
	raw->row.key = NULL; /* is one of the caller's */
	ck_row_fini(&raw->row);
}

/* us for each of @n */
static double time_straight(struct raw *raw, struct ck_key **keys, unsigned long first,
			    unsigned long n)
{
	uint64_t began = measure_now();
	for (unsigned long i = first; i < first + n; i++)
		raw_turn(raw, keys[i], i);
	return (double)(measure_now() - began) / (double)n / 1000;
}

enum { THREADS = 16 };

struct worker {
	pthread_t thread;
	struct place *p;
	unsigned long first, n;
};

static void *work(void *userdata)
{
	struct worker *w = userdata;
	time_turns(w->p, w->first, w->n);
	return NULL;
}

/* us for each of @n turns, of THREADS threads at once */
static double time_crowd(struct place *p, unsigned long first, unsigned long n)
{
	struct worker workers[THREADS];
	unsigned long each = n / THREADS;
	uint64_t began = measure_now();
	for (unsigned t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){ .p = p, .first = first + t * each, .n = each };
		measure_must(pthread_create(&workers[t].thread, NULL, work, &workers[t]) == 0,
			     "thread");
	}
	for (unsigned t = 0; t < THREADS; t++)
		pthread_join(workers[t].thread, NULL);
	return (double)(measure_now() - began) / (double)(each * THREADS) / 1000;
}

static struct ck_key **keys_make(unsigned long n)
{
	struct ck_key **keys = calloc(n, sizeof(struct ck_key *));
	measure_must(keys, "no memory");
	for (unsigned long i = 0; i < n; i++)
		measure_must(ck_key_from_request(CK_SANDBOX, requests[i].bytes, requests[i].len,
						 &keys[i], NULL) == 0,
			     "key");
	return keys;
}

static void bench_turns(void)
{
	unsigned long n = ck_test_rounds(400) / THREADS * THREADS + THREADS, all = n * REPEATS;
	double turn[REPEATS], straight[REPEATS], crowd[REPEATS], x[REPEATS], gain[REPEATS];
	struct place like, lib, threads, raw_place;
	struct raw raw;
	requests_prepare(all + 101);
	place_make(&like);
	place_open(&like, false);
	one_turn(&like, 0);
	place_close(&like);
	place_make(&raw_place);
	raw_open(&raw, &like, &raw_place);
	ck_key_free(raw.row.key);
	struct ck_key **keys = keys_make(all);
	place_make(&lib);
	place_open(&lib, true);
	one_turn(&lib, all); /* what is made once */
	place_make(&threads);
	place_open(&threads, true);
	one_turn(&threads, all);
	for (unsigned i = 0; i < REPEATS; i++) {
		turn[i] = time_turns(&lib, i * n, n);
		straight[i] = time_straight(&raw, keys, i * n, n);
		crowd[i] = time_crowd(&threads, i * n, n);
		x[i] = turn[i] / straight[i];
		gain[i] = turn[i] / crowd[i];
	}
	struct counts counts = count_statements(&lib, all + 1, 100);
	measure_line("a durable turn: begin, finish, free", measure_median(turn, REPEATS),
		     "us    %.2f x straight SQLite (at most 1.40)", measure_median(x, REPEATS));
	measure_line("the same rows straight in SQLite", measure_median(straight, REPEATS),
		     "us    %.1f statements in %.1f", (double)raw.counts.statements / (double)all,
		     (double)raw.counts.transactions / (double)all);
	measure_line("  statements the library ran per turn", (double)counts.statements / 100,
		     "      in %.2f transactions", (double)counts.transactions / 100);
	measure_line("a durable turn, 16 threads at once", measure_median(crowd, REPEATS),
		     "us    %.2f x turns/s of 1 thread (at least 1.20)",
		     measure_median(gain, REPEATS));
	for (unsigned long i = 0; i < all; i++)
		ck_key_free(keys[i]);
	free(keys);
	raw_close(&raw);
	place_close(&lib);
	place_close(&threads);
	place_remove(&raw_place);
	place_remove(&like);
	place_remove(&lib);
	place_remove(&threads);
}

/* A turn among few entries and among many. */
static void bench_entries(void)
{
	unsigned long few = 10, many = ck_test_rounds(10000), n = ck_test_rounds(200);
	double among_few[REPEATS], among_many[REPEATS], x[REPEATS];
	struct place small, large;
	requests_prepare(many + n * REPEATS);
	place_make(&small);
	place_open(&small, true);
	time_turns(&small, 0, few);
	place_make(&large);
	place_open(&large, true);
	time_turns(&large, 0, many);
	for (unsigned i = 0; i < REPEATS; i++) {
		among_few[i] = time_turns(&small, few + i * n, n);
		among_many[i] = time_turns(&large, many + i * n, n);
		x[i] = among_many[i] / among_few[i];
	}
	measure_line("a durable turn among 10,000 entries", measure_median(among_many, REPEATS),
		     "us    %.2f x one among 10 (as much)", measure_median(x, REPEATS));
	place_close(&small);
	place_close(&large);
	place_remove(&small);
	place_remove(&large);
}

/* ---- the fingerprint ------------------------------------------------------------------------- */

/* a CreateContainer of 20 KiB and about 240 fields */
static void large_container(struct pb *request)
{
	static struct pb config;
	char name[64], value[128];
	config.len = 0;
	for (int i = 0; i < 120; i++) {
		snprintf(name, sizeof(name), "SERVICE_%03d_PORT_8443_TCP_ADDR", i);
		snprintf(value, sizeof(value),
			 "tcp://10.96.%d.%d:8443/some/longer/path/of/a/service/endpoint", i,
			 255 - i);
		pb_pair(&config, 6, name, value);
	}
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "/var/lib/app/volume-%02d", i);
		snprintf(value, sizeof(value),
			 "/var/lib/kubelet/pods/0f9d8c7b/volumes/kubernetes.io~csi/volume-%02d/"
			 "mount",
			 i);
		pb_mount(&config, name, value);
	}
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "label.example.com/key-%02d", i);
		snprintf(value, sizeof(value), "value-of-some-length-%02d", i);
		pb_pair(&config, 9, name, value);
		pb_pair(&config, 10, name, value);
	}
	build_container(request, &config, NULL);
}

static double time_compare(const struct ck_digest_key *key, const struct pb *request,
			   const struct ck_record *record, unsigned long n)
{
	struct ck_compare_rules rules = { 0 };
	struct ck_fingerprint *fp;
	uint64_t began = measure_now();
	for (unsigned long i = 0; i < n; i++) {
		ck_fingerprint_make(key, CK_CONTAINER, request->bytes, request->len, &fp, NULL);
		measure_must(ck_record_compare(record, fp, &rules, NULL) == CK_RELATION_SAME,
			     "not the same");
		ck_fingerprint_free(fp);
	}
	return (double)(measure_now() - began) / (double)n / 1000;
}

static double time_record(const struct ck_digest_key *key, const struct pb *request,
			  unsigned long n)
{
	struct ck_fingerprint *fp;
	struct ck_record record;
	uint64_t began = measure_now();
	for (unsigned long i = 0; i < n; i++) {
		ck_fingerprint_make(key, CK_CONTAINER, request->bytes, request->len, &fp, NULL);
		ck_record_make(fp, &record, NULL);
		ck_fingerprint_free(fp);
		ck_record_fini(&record);
	}
	return (double)(measure_now() - began) / (double)n / 1000;
}

static double time_copy(const struct pb *request, unsigned long n)
{
	volatile unsigned char sink[sizeof(request->bytes)];
	uint64_t began = measure_now();
	for (unsigned long i = 0; i < n; i++)
		for (size_t k = 0; k < request->len; k++)
			sink[k] = request->bytes[k];
	(void)sink;
	return (double)(measure_now() - began) / (double)n / 1000;
}

static void bench_fingerprint(void)
{
	static struct pb request;
	unsigned long n = ck_test_rounds(300);
	double compare[REPEATS], make[REPEATS], copy[REPEATS], x[REPEATS];
	struct ck_digest_key key = { .bytes = { 1, 2, 3 } };
	struct ck_fingerprint *fp;
	struct ck_record record;
	large_container(&request);
	measure_must(ck_digest_key_derive(&key), "key");
	measure_must(
		ck_fingerprint_make(&key, CK_CONTAINER, request.bytes, request.len, &fp, NULL) == 0,
		"fingerprint");
	measure_must(ck_record_make(fp, &record, NULL) == 0, "record");
	ck_fingerprint_free(fp);
	for (unsigned i = 0; i < REPEATS; i++) {
		compare[i] = time_compare(&key, &request, &record, n);
		make[i] = time_record(&key, &request, n);
		copy[i] = time_copy(&request, n);
		x[i] = compare[i] / make[i];
	}
	double us = measure_median(compare, REPEATS);
	measure_line("a request of", (double)request.len / 1024, "KiB   with %.1f KiB of digests",
		     (double)record.digests_len / 1024);
	measure_line("  fingerprint and compare: the same", us,
		     "us    %.2f x recording it (at most 0.60)", measure_median(x, REPEATS));
	measure_line("  fingerprint and record", measure_median(make, REPEATS),
		     "us    %.1f x a bytewise copy",
		     measure_median(make, REPEATS) / measure_median(copy, REPEATS));
	ck_record_fini(&record);
}

/* The request of above, again and again up to 1 MiB */
static void bench_redact(void)
{
	static const char text[] = "failed to create shim task: open /var/lib/app: exit status 137";
	static struct pb request;
	static unsigned char bytes[1u << 20], copied[sizeof(bytes)];
	double redact[REPEATS], copy[REPEATS];
	struct ck_known known = { .kind = CK_CONTAINER, .request = bytes };
	char out[CK_TEXT_MAX + 1];

	large_container(&request);
	for (; known.len + request.len <= sizeof(bytes); known.len += request.len)
		memcpy(bytes + known.len, request.bytes, request.len);
	for (unsigned i = 0; i < REPEATS; i++) {
		uint64_t began = measure_now();
		ck_redact(text, &known, out);
		uint64_t redacted = measure_now();
		for (size_t k = 0; k < known.len; k++)
			((volatile unsigned char *)copied)[k] = bytes[k];
		redact[i] = (double)(redacted - began) / 1e6;
		copy[i] = (double)(measure_now() - redacted) / 1e6;
		measure_must(strcmp(out, "***") != 0, "redact");
	}
	measure_line("redact, request of 1 MiB", measure_median(redact, REPEATS),
		     "ms    %.1f x a bytewise copy",
		     measure_median(redact, REPEATS) / measure_median(copy, REPEATS));
}

/* ---- 10,000 entries -------------------------------------------------------------------------- */

static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

static void keep_all(struct place *p, unsigned long n, uint64_t *kept_at)
{
	for (unsigned long i = 0; i < n; i++) {
		struct ck_turn *turn = begin(p, i, 0, CK_CREATE);
		ck_turn_leave(turn);
		if (kept_at)
			kept_at[i] = measure_now();
		measure_must(finish(turn, i) == CK_KEPT, "kept");
		ck_turn_free(turn);
	}
}

static double time_open(struct place *p)
{
	uint64_t began = measure_now();
	place_open(p, false);
	double ms = (double)(measure_now() - began) / 1e6;
	place_close(p);
	return ms;
}

static int drop_row(struct ck_row *row, void *userdata)
{
	(void)row;
	++*(unsigned long *)userdata;
	return 0;
}

/* what must be read: the pages are checked, and every row is decoded */
static double time_read(struct place *p, unsigned long n)
{
	struct ck_store_opened opened;
	struct ck_store *store;
	unsigned long rows = 0;
	uint64_t began = measure_now();
	measure_must(ck_store_open(p->dir, &store, &opened, NULL) == 0 &&
			     ck_store_load(store, drop_row, &rows, NULL) == 0 && rows == n,
		     "read the rows");
	double ms = (double)(measure_now() - began) / 1e6;
	ck_store_close(store);
	return ms;
}

static void bench_open(void)
{
	unsigned long n = ck_test_rounds(10000);
	double full[REPEATS], empty[REPEATS], read[REPEATS], x[REPEATS];
	struct place p, none;
	struct stat st;
	char path[128];
	requests_prepare(n);
	place_make(&p);
	p.options.ttl = 600 * S;
	place_open(&p, true);
	size_t before = in_use();
	keep_all(&p, n, NULL);
	double memory = (double)(in_use() - before) / (double)n;
	place_close(&p);
	snprintf(path, sizeof(path), "%s/crikeep.db", p.dir);
	measure_must(stat(path, &st) == 0, "stat");
	place_make(&none);
	time_open(&none);
	for (unsigned i = 0; i < REPEATS; i++) {
		full[i] = time_open(&p) * 10000 / (double)n;
		read[i] = time_read(&p, n) * 10000 / (double)n;
		empty[i] = time_open(&none);
		x[i] = full[i] / read[i];
	}
	place_remove(&none);
	place_remove(&p);
	measure_line("open with 10,000 entries", measure_median(full, REPEATS),
		     "ms (at most 150), %.2f x checking and reading them",
		     measure_median(x, REPEATS));
	measure_line("  open without entries", measure_median(empty, REPEATS), "ms");
	measure_line("memory of an entry", memory, "bytes %.2f x its request",
		     memory / (double)requests[0].len);
	measure_line("database for an entry and its history", (double)st.st_size / (double)n,
		     "bytes %.2f x its request",
		     (double)st.st_size / (double)n / (double)requests[0].len);
}

static void bench_expiry(void)
{
	unsigned long n = ck_test_rounds(10000);
	uint64_t ttl = 3 * S, *kept_at = calloc(n, sizeof(*kept_at));
	struct place p;
	measure_must(kept_at, "no memory");
	requests_prepare(n);
	place_make(&p);
	p.options.ttl = ttl;
	p.destroyed_at = calloc(n, sizeof(uint64_t));
	measure_must(p.destroyed_at, "no memory");
	place_open(&p, true);
	uint64_t began = measure_now();
	keep_all(&p, n, kept_at);
	double spread = (double)(measure_now() - began) / 1e9;
	while (__atomic_load_n(&p.destroyed, __ATOMIC_SEQ_CST) < n)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	place_close(&p);
	uint64_t early = 0;
	for (unsigned long i = 0; i < n; i++) {
		uint64_t due = kept_at[i] + ttl;
		early += p.destroyed_at[i] < due;
		kept_at[i] = p.destroyed_at[i] < due ? 0 : p.destroyed_at[i] - due;
	}
	measure_line("expiry of 10,000 entries, p99 late",
		     (double)measure_quantile(kept_at, n, 0.99) / 1e6,
		     "ms    ttl %.0f s, spread %.1f s", (double)ttl / 1e9, spread);
	measure_line("  the latest", (double)kept_at[n - 1] / 1e6,
		     "ms    median %.2f ms, %lu early", (double)kept_at[n / 2] / 1e6,
		     (unsigned long)early);
	free(p.destroyed_at);
	place_remove(&p);
	free(kept_at);
}

/* ---- from the finish to the thread that waits ------------------------------------------------ */

struct hand_over {
	struct place *p;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned long asked, n; /* rounds begun by the waiting thread */
	bool plain, given;      /* a bare condition variable, to compare with */
	uint64_t *woken;
};

static void *wait_for_it(void *userdata)
{
	struct hand_over *h = userdata;
	for (unsigned long i = 0; i < h->n; i++) {
		struct ck_turn *turn = NULL;
		if (!h->plain)
			turn = begin(h->p, i, 240 * S, CK_WAIT);
		pthread_mutex_lock(&h->lock);
		h->asked = i + 1;
		pthread_cond_broadcast(&h->changed);
		while (h->plain && !h->given)
			pthread_cond_wait(&h->changed, &h->lock);
		h->given = false;
		pthread_mutex_unlock(&h->lock);
		measure_must(h->plain || ck_turn_wait(turn, NULL) == CK_HAND_BACK, "wait");
		h->woken[i] = measure_now();
		ck_turn_free(turn);
	}
	return NULL;
}

static double hand_over(struct place *p, unsigned long n, bool plain)
{
	struct hand_over h = { .p = p,
			       .lock = PTHREAD_MUTEX_INITIALIZER,
			       .changed = PTHREAD_COND_INITIALIZER,
			       .n = n,
			       .plain = plain };
	uint64_t *finished = calloc(n, sizeof(*finished));
	struct ck_turn **turns = calloc(n, sizeof(struct ck_turn *));
	pthread_t thread;
	h.woken = calloc(n, sizeof(uint64_t));
	measure_must(finished && turns && h.woken, "no memory");
	for (unsigned long i = 0; i < n && !plain; i++)
		turns[i] = begin(p, i, 240 * S, CK_CREATE);
	measure_must(pthread_create(&thread, NULL, wait_for_it, &h) == 0, "thread");
	for (unsigned long i = 0; i < n; i++) {
		pthread_mutex_lock(&h.lock);
		while (h.asked <= i)
			pthread_cond_wait(&h.changed, &h.lock);
		pthread_mutex_unlock(&h.lock);
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL); /* it sleeps by now */
		finished[i] = measure_now();
		if (plain) {
			pthread_mutex_lock(&h.lock);
			h.given = true;
			pthread_cond_broadcast(&h.changed);
			pthread_mutex_unlock(&h.lock);
		} else {
			measure_must(finish(turns[i], i) == CK_HAND_BACK, "finish");
		}
	}
	pthread_join(thread, NULL);
	for (unsigned long i = 0; i < n; i++) {
		ck_turn_free(turns[i]);
		finished[i] = h.woken[i] - finished[i];
	}
	double median = (double)measure_quantile(finished, n, 0.5) / 1000;
	free(finished);
	free(turns);
	free(h.woken);
	return median;
}

static void bench_hand_over(void)
{
	unsigned long n = ck_test_rounds(1000);
	struct place p;
	requests_prepare(n);
	place_make(&p);
	place_open(&p, true);
	double durable = hand_over(&p, n, false), plain = hand_over(&p, n, true);
	measure_line("finish to the waiting thread, median", durable, "us    %.1f x a bare condvar",
		     durable / plain);
	place_close(&p);
	place_remove(&p);
}

/* ---- how cost grows: the same among 10, 100, 1,000 and 10,000 ------------------------------- */

enum { SIZES = 4, TURNS = 10, FRESH = 10000 }; /* FRESH: the first request of no kept entry */

/* what is made of the entries of a cache, as a runtime lists them */
struct listing {
	struct ck_object *objects;
	size_t n;
};

static int add_object(const struct ck_entry_info *entry, void *userdata)
{
	struct listing *listing = userdata;
	listing->objects[listing->n++] =
		(struct ck_object){ .size = sizeof(struct ck_object),
				    .kind = entry->kind,
				    .condition = CK_CONDITION_READY,
				    .id = strdup(entry->id),
				    .pod_name = strdup(entry->pod_name),
				    .pod_namespace = strdup(entry->pod_namespace),
				    .pod_uid = strdup(entry->pod_uid),
				    .attempt = entry->attempt };
	return 0;
}

static struct listing listing_make(struct place *p, size_t n)
{
	struct listing listing = { .objects = calloc(n, sizeof(struct ck_object)) };
	measure_must(listing.objects && ck_entries(p->cache, add_object, &listing) == 0 &&
			     listing.n == n,
		     "list the entries");
	return listing;
}

static void listing_free(struct listing *listing)
{
	for (size_t i = 0; i < listing->n; i++) {
		free((char *)listing->objects[i].id);
		free((char *)listing->objects[i].pod_name);
		free((char *)listing->objects[i].pod_namespace);
		free((char *)listing->objects[i].pod_uid);
	}
	free(listing->objects);
}

/* us of a turn among @n entries; what is made is removed again, so that they stay as many */
static double grow_turn(struct place *p)
{
	static unsigned long next = FRESH;
	double us[REPEATS];
	char id[65];
	for (unsigned i = 0; i < REPEATS; i++, next += TURNS) {
		requests_prepare(next + TURNS);
		us[i] = time_turns(p, next, TURNS);
		for (unsigned k = 0; k < TURNS; k++) {
			snprintf(id, sizeof(id), "%064lu", next + k);
			measure_must(ck_object_removed(p->cache, CK_SANDBOX, id) == 0, "removed");
		}
	}
	return measure_median(us, REPEATS);
}

/* us of one list that holds all entries, none of which may be shown */
static double grow_list(struct place *p, const struct listing *listing)
{
	double us[REPEATS];
	for (unsigned i = 0; i < REPEATS; i++) {
		struct ck_view *view;
		uint64_t began = measure_now();
		measure_must(ck_view_begin(p->cache, &view, NULL) == 0, "view");
		for (size_t k = 0; k < listing->n; k++)
			measure_must(ck_view_hides(view, &listing->objects[k]) == 1, "hides");
		ck_view_free(view);
		us[i] = (double)(measure_now() - began) / 1e3;
	}
	return measure_median(us, REPEATS);
}

static const struct listing *host_lists;

static void list_all(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	struct ck_answer answer = { .size = sizeof(answer) };
	(void)userdata;
	for (size_t i = 0; filter->kind == CK_SANDBOX && i < host_lists->n; i++)
		measure_must(ck_job_listed(job, &host_lists->objects[i]) == 0, "listed");
	ck_job_done(job, &answer);
}

/* us to open a database with the entries, and then to compare them with the host's list */
static void grow_open(struct place *p, const struct listing *listing, double *ret_open,
		      double *ret_reconcile)
{
	double open[REPEATS], reconcile[REPEATS];
	host_lists = listing;
	p->host.list = list_all;
	for (unsigned i = 0; i < REPEATS; i++) {
		uint64_t began = measure_now();
		place_open(p, false);
		uint64_t opened = measure_now();
		while (ck_reconciled(p->cache) != 1)
			measure_must(ck_cache_process(p->cache, NULL) >= 0, "process");
		open[i] = (double)(opened - began) / 1e3;
		reconcile[i] = (double)(measure_now() - opened) / 1e3;
		place_close(p);
	}
	*ret_open = measure_median(open, REPEATS);
	*ret_reconcile = measure_median(reconcile, REPEATS);
}

static void count_answer(struct ck_turn *turn, int outcome, void *userdata)
{
	(void)turn;
	measure_must(outcome == CK_HAND_BACK, "outcome %d", outcome);
	++*(size_t *)userdata;
}

/* us from the finish until @n callers have their answer, and the bytes of each while it waits */
static void grow_round(size_t n, double *ret_us, double *ret_bytes)
{
	double us[REPEATS];
	struct ck_turn **turns = calloc(n, sizeof(struct ck_turn *));
	struct place p;
	measure_must(turns, "no memory");
	place_make(&p);
	place_open(&p, false);
	for (unsigned i = 0; i < REPEATS; i++) {
		size_t answered = 1, before = in_use();
		for (size_t k = 0; k < n; k++) {
			turns[k] = begin(&p, i, 240 * S, k ? CK_WAIT : CK_CREATE);
			if (k)
				ck_turn_watch(turns[k], count_answer, &answered);
		}
		*ret_bytes = (double)(in_use() - before) / (double)n;
		uint64_t began = measure_now();
		measure_must(finish(turns[0], i) == CK_HAND_BACK, "finish");
		while (answered < n)
			measure_must(ck_cache_process(p.cache, NULL) >= 0, "process");
		us[i] = (double)(measure_now() - began) / 1e3;
		for (size_t k = 0; k < n; k++)
			ck_turn_free(turns[k]);
	}
	*ret_us = measure_median(us, REPEATS);
	place_close(&p);
	place_remove(&p);
	free(turns);
}

/* For tests/bench/plot.sh: a line is name, unit, and a value for each size. */
static void bench_growth(void)
{
	static const char *const names[][2] = {
		{ "turn", "us" },      { "list", "us" },     { "round", "us" },   { "open", "us" },
		{ "reconcile", "us" }, { "entry", "bytes" }, { "caller", "bytes" },
	};
	double values[CK_COUNT(names)][SIZES];
	unsigned long n = 10;
	requests_prepare(FRESH);
	for (unsigned i = 0; i < SIZES; i++, n *= 10) {
		struct place p;
		place_make(&p);
		p.options.ttl = 600 * S;
		place_open(&p, true);
		size_t before = in_use();
		keep_all(&p, n, NULL);
		values[5][i] = (double)(in_use() - before) / (double)n;
		struct listing listing = listing_make(&p, n);
		values[1][i] = grow_list(&p, &listing);
		values[0][i] = grow_turn(&p);
		place_close(&p);
		grow_open(&p, &listing, &values[3][i], &values[4][i]);
		grow_round(n, &values[2][i], &values[6][i]);
		listing_free(&listing);
		place_remove(&p);
	}
	for (size_t k = 0; k < CK_COUNT(names); k++)
		printf("grows %-10s %-6s %12.1f %12.1f %12.1f %12.1f\n", names[k][0], names[k][1],
		       values[k][0], values[k][1], values[k][2], values[k][3]);
}

/* bench [PART ...]: only these */
int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "turns", bench_turns },         { "entries", bench_entries },
		{ "hand-over", bench_hand_over }, { "fingerprint", bench_fingerprint },
		{ "redact", bench_redact },       { "open", bench_open },
		{ "expiry", bench_expiry },       { "growth", bench_growth },
	};
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < CK_COUNT(parts); i++) {
		bool wanted = argc < 2;
		for (int k = 1; k < argc; k++)
			wanted = wanted || !strcmp(argv[k], parts[i].name);
		if (wanted)
			parts[i].run();
	}
	return 0;
}
