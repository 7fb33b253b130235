/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts with a SQLite of their own, or one they have set up their way. test-hosts.sh compiles this
 * once for each:
 *
 *	OWN      all of it is linked in, and its functions are exported (-rdynamic): they are called
 *	         in place of libsqlite3's
 *	OLD, NO_THREADS, NO_WAL   the same; it says that it is too old, or was compiled without
 *	MIXED    one function is the host's, the others are libsqlite3's
 *	SINGLE   the host has set it to one thread
 *	VFS      the host's default VFS opens nothing
 *	JUMPS    nothing is the host's, but it takes the addresses of functions (-no-pie)
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include <sqlite3.h>

#include "host.h"

#ifdef OLD
int sqlite3_libversion_number(void)
{
	return 3036000;
}
const char *sqlite3_libversion(void)
{
	return "3.36.0";
}
#endif
#ifdef NO_THREADS
int sqlite3_threadsafe(void)
{
	return 0;
}
#endif
#ifdef NO_WAL
int sqlite3_compileoption_used(const char *name)
{
	return !strcmp(name, "OMIT_WAL");
}
#endif
#ifdef MIXED
int sqlite3_db_readonly(sqlite3 *db, const char *schema)
{
	(void)db, (void)schema;
	return SQLITE_MISUSE;
}
#endif

#ifdef VFS
static int opens_nothing(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			 int *ret_flags)
{
	(void)vfs, (void)name, (void)flags, (void)ret_flags;
	file->pMethods = NULL;
	return SQLITE_CANTOPEN;
}
#endif

#ifdef OWN
static int connections; /* that this copy has opened */

static int count_connection(sqlite3 *db, const char **ret_error,
			    const struct sqlite3_api_routines *api)
{
	(void)db, (void)ret_error, (void)api;
	connections++;
	return SQLITE_OK;
}

static void own_database(sqlite3 **ret_db, const char *dir)
{
	char path[300];
	snprintf(path, sizeof(path), "%s.host.db", dir);
	HOST_EXPECT(sqlite3_open(path, ret_db) == SQLITE_OK);
	HOST_EXPECT(sqlite3_exec(*ret_db,
				 "PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS t(x)", NULL,
				 NULL, NULL) == SQLITE_OK);
}
#endif

static void set_up(void)
{
#ifdef OWN
	void *other = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_NOLOAD);
	HOST_EXPECT(other); /* the library needs it, so it is there, too */
	HOST_EXPECT(dlsym(other, "sqlite3_open_v2") != dlsym(RTLD_DEFAULT, "sqlite3_open_v2"));
	HOST_EXPECT(sqlite3_auto_extension((void (*)(void))count_connection) == SQLITE_OK);
#endif
#ifdef SINGLE
	HOST_EXPECT(sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) == SQLITE_OK);
#endif
#ifdef VFS
	static sqlite3_vfs odd;
	odd = *sqlite3_vfs_find(NULL);
	odd.zName = "odd";
	odd.xOpen = opens_nothing;
	HOST_EXPECT(sqlite3_vfs_register(&odd, 1) == SQLITE_OK);
#endif
#ifdef JUMPS
	/* its address is that of the program's jump to it, in the library as well */
	HOST_EXPECT(((uintptr_t)sqlite3_step ^ (uintptr_t)set_up) < 1 << 24);
#endif
}

static void no_destroy(struct ck_job *job, enum ck_kind kind, const char *id, void *userdata)
{
	(void)job, (void)kind, (void)id, (void)userdata;
}

static int begin(struct ck_cache *cache, struct ck_turn **ret_turn)
{
	const struct ck_request request = { .size = sizeof(request),
					    .kind = CK_SANDBOX,
					    .bytes = HOST_REQUEST,
					    .len = sizeof(HOST_REQUEST) - 1 };
	return ck_turn_begin(cache, &request, ret_turn, NULL);
}

int main(int argc, char **argv)
{
	const struct ck_host host = { .size = sizeof(host), .destroy = no_destroy };
	const struct ck_options options = { .size = sizeof(options),
					    .state_dir = argv[1],
					    .host = &host };
	const struct ck_result result = { .size = sizeof(result), .id = "s1" };
	(void)argc;
	set_up();
	for (int life = 0; life < 2; life++) {
		struct ck_cache *cache;
		struct ck_turn *turn;
		struct ck_error err;
		if (ck_cache_open(&options, &cache, &err) < 0) {
			puts(err.text);
			HOST_EXPECT(host_count(argv[1]) == 0); /* nothing was touched, nor made */
			return 0;
		}
		HOST_EXPECT(ck_cache_run_thread(cache, NULL) == 0);
#ifdef OWN
		sqlite3 *db;
		HOST_EXPECT(connections > 0);
		own_database(&db, argv[1]);
#endif
		HOST_EXPECT(begin(cache, &turn) == (life ? CK_HAND_BACK : CK_CREATE));
		if (!life)
			HOST_EXPECT(ck_turn_finish(turn, &result, NULL) == CK_HAND_BACK);
		ck_turn_free(turn);
#ifdef OWN
		HOST_EXPECT(sqlite3_exec(db, "INSERT INTO t VALUES(1)", NULL, NULL, NULL) ==
			    SQLITE_OK);
		HOST_EXPECT(sqlite3_close(db) == SQLITE_OK);
#endif
		HOST_EXPECT(ck_cache_close(cache, NULL) == 0);
	}
	puts("handed back");
	return 0;
}
