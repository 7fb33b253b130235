/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can this SQLite be used? A host may contain its own SQLite, and then its functions are called
 * instead of libsqlite3's. It may be older, or compiled or configured differently. Whatever could
 * harm the database or the host is refused before a file is touched.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cache/store/store-int.h"

#define VERSION_MIN 3037000 /* STRICT tables */

/* All functions that we call; tests/check-symbols.sh compares. */
#define FUNCTIONS(X) \
	X(backup_finish) X(backup_init) X(backup_step) X(bind_blob) X(bind_blob64) X(bind_int) \
	X(bind_int64) X(bind_null) X(bind_text) X(busy_timeout) X(changes) X(clear_bindings) \
	X(close) X(column_blob) X(column_bytes) X(column_int64) X(column_text) X(column_type) \
	X(compileoption_used) X(db_config) X(db_handle) X(db_mutex) X(db_readonly) \
	X(errcode) X(errmsg) X(errstr) X(exec) X(extended_errcode) \
	X(extended_result_codes) X(file_control) X(finalize) X(get_autocommit) \
	X(libversion) X(libversion_number) X(open_v2) X(prepare_v3) X(reset) X(step) \
	X(system_errno) X(threadsafe) X(vfs_find) X(wal_checkpoint_v2) X(wal_hook)

static const struct {
	const char *name;
	void (*fn)(void);
} functions[] = {
#define ENTRY(name) { "sqlite3_" #name, (void (*)(void))sqlite3_##name },
	FUNCTIONS(ENTRY)
#undef ENTRY
};

static bool contains(const struct dl_phdr_info *object, uintptr_t at)
{
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t begin = (uintptr_t)object->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_LOAD && at >= begin && at - begin < part->p_memsz)
			return true;
	}
	return false;
}

/* 1, and @userdata, a bool, says whether this object has them all; 0: it does not have the first */
static int look_at_object(struct dl_phdr_info *object, size_t size, void *userdata)
{
	bool *ret_all = userdata;
	(void)size;
	if (!contains(object, (uintptr_t)functions[0].fn))
		return 0;
	*ret_all = true;
	for (size_t i = 1; *ret_all && i < CK_COUNT(functions); i++)
		*ret_all = contains(object, (uintptr_t)functions[i].fn);
	return 1;
}

/*
 * If a copy was compiled without a function, the dynamic linker takes it from another copy, and
 * that one would misread the connections of the first. Only definitions count: if a program takes
 * the address of a function, that may be the address of the program's jump to it. Where all
 * addresses are in one object nobody needs to look for its symbols, of which a large program has
 * many thousands: that took longer than all the rest of opening a store.
 */
static int check_one(struct ck_error *err)
{
	static atomic_bool is_one; /* what the dynamic linker chose stays so */
	Dl_info first = { .dli_fbase = NULL }, info;
	const ElfW(Sym) *symbol = NULL;
	bool all = false;

	if (is_one)
		return 0;
	dl_iterate_phdr(look_at_object, &all);
	for (size_t i = 0; !all && i < CK_COUNT(functions); i++) {
		void *at = (void *)(uintptr_t)functions[i].fn;
		if (!dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
		    symbol->st_shndx == SHN_UNDEF)
			continue;
		if (!first.dli_fbase)
			first = info;
		if (info.dli_fbase != first.dli_fbase)
			return ck_fail(err, CK_EINVAL,
				       "two SQLites are mixed: %s() is of %s, %s() of %s",
				       first.dli_sname, first.dli_fname, functions[i].name,
				       info.dli_fname);
	}
	is_one = true;
	return 0;
}

/* The host may have set its SQLite to a single thread (SQLITE_CONFIG_SINGLETHREAD). Then even this
 * connection has no mutex. */
static int check_mutexes(struct ck_error *err)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY |
			  SQLITE_OPEN_FULLMUTEX;
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(":memory:", &db, flags, CK_SQL_VFS);
	int r = 0;

	if (rc != SQLITE_OK)
		r = ck_sql_fail(err, db, rc, "open");
	else if (!sqlite3_db_mutex(db))
		r = ck_fail(err, CK_EINVAL,
			    "this SQLite was set to one thread (SQLITE_CONFIG_SINGLETHREAD)");
	sqlite3_close(db);
	return r;
}

int ck_sqlite_check(struct ck_error *err)
{
	if (sqlite3_libversion_number() < VERSION_MIN)
		return ck_fail(err, CK_EINVAL, "SQLite %s is too old: 3.37 is needed",
			       sqlite3_libversion());
	if (!sqlite3_threadsafe())
		return ck_fail(err, CK_EINVAL, "this SQLite was compiled without threads");
	if (sqlite3_compileoption_used("OMIT_WAL"))
		return ck_fail(err, CK_EINVAL, "this SQLite was compiled without WAL");
	int r = check_one(err);
	if (r < 0)
		return r;
	if (!sqlite3_vfs_find(CK_SQL_VFS))
		return ck_fail(err, CK_EINVAL, "this SQLite has no VFS '%s'", CK_SQL_VFS);
	return check_mutexes(err);
}
