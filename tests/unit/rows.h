/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_ROWS_H
#define CK_TESTS_ROWS_H
/* Rows and state directories for tests of the store. */
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/store/store-int.h"

#define BOOT "6f9f0b1c-52a4-4e43-9c2e-3b9f8a1d7c10"

struct place { /* a state directory inside a temporary directory */
	char top[256], dir[300];
};

static inline void place_make_in(struct place *place, const char *where)
{
	snprintf(place->top, sizeof(place->top), "%.200s/ck-store-XXXXXX", where);
	if (!mkdtemp(place->top))
		abort();
	snprintf(place->dir, sizeof(place->dir), "%s/state", place->top);
}

static inline void place_make(struct place *place)
{
	const char *tmp = getenv("TMPDIR");
	place_make_in(place, tmp && *tmp ? tmp : "/tmp");
}

static inline int place_remove_one(const char *path, const struct stat *st, int type,
				   struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void place_remove(struct place *place)
{
	nftw(place->top, place_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *place_file(const struct place *place, const char *name)
{
	static char path[8][1024];
	static unsigned n;
	char *p = path[n++ % 8];
	snprintf(p, sizeof(path[0]), "%s/%s", place->dir, name);
	return p;
}

/* RunPodSandbox of a pod with this name and one label: config { metadata { name, uid, namespace },
 * labels { "tier": label } } */
static inline size_t request_make(unsigned char *out, const char *name, const char *label)
{
	unsigned char metadata[128], config[256];
	int m = snprintf((char *)metadata, sizeof(metadata), "\n%c%s\022\003uid\032\002ns",
			 (int)strlen(name), name);
	int c = snprintf((char *)config, sizeof(config), "\n%c%.*s2%c\n\004tier\022%c%s", m, m,
			 metadata, (int)strlen(label) + 8, (int)strlen(label), label);
	out[0] = '\n'; /* both are shorter than 128 bytes: one byte of length */
	out[1] = (unsigned char)c;
	memcpy(out + 2, config, (size_t)c);
	return (size_t)c + 2;
}

/* A row as a sandbox's entry has it in @state; free with ck_row_fini(). */
static inline struct ck_row row_make(struct ck_store *store, const char *name, enum ck_state state)
{
	struct ck_object object = { .size = sizeof(object),
				    .kind = CK_SANDBOX,
				    .pod_namespace = "ns",
				    .pod_name = name,
				    .pod_uid = "uid" };
	struct ck_row row = {
		.id = ck_store_next_id(store),
		.state = state,
		.origin = CK_ORIGIN_CACHE,
		.requests = 1,
		.created = 1000,
		.changed = 1000,
		.asked = 999,
		.interest = 1000,
		.boot = BOOT,
	};
	unsigned char bytes[256];
	struct ck_fingerprint *fp;
	if (ck_key_from_object(&object, &row.key, NULL) < 0 ||
	    ck_fingerprint_make(ck_store_key(store), CK_SANDBOX, bytes,
				request_make(bytes, name, "front"), &fp, NULL) < 0 ||
	    ck_record_make(fp, &row.record, NULL) < 0)
		abort();
	ck_fingerprint_free(fp);
	if (state != CK_STATE_CREATING)
		row.result = ck_shared_result_new("0f1e2d3c4b5a", NULL, 0);
	return row;
}

/* The rows of a store, in memory. */
struct rows {
	struct ck_row row[4096];
	size_t n;
};

static inline int rows_add(struct ck_row *row, void *userdata)
{
	struct rows *rows = userdata;
	if (rows->n == CK_COUNT(rows->row))
		abort();
	rows->row[rows->n++] = *row;
	memset(row, 0, sizeof(*row));
	return 0;
}

static inline void rows_fini(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		ck_row_fini(&rows->row[i]);
	rows->n = 0;
}
#endif
