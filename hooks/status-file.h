/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_HOOKS_STATUS_FILE_H
#define CK_HOOKS_STATUS_FILE_H
/*
 * Which plugins are connected: a file that the process with the sockets rewrites, and that
 * `crikeep plugins` reads, whether that process runs or not. Its lines are words NAME=VALUE, all of
 * them, in this order:
 *
 *	crikeep-plugins 1 boot=UUID time=NS wall=S pid=N plugins=1
 *	plugin name=10-logger state=ready policy=error keep=0 launched=0 pid=812
 *	 events=16383 adjusting=0 queued=0 since=NS overdue=0 sent=41 late=0 failed=0 error=
 *
 * (A plugin is one line; it is folded here.) In a value, \ and every byte that is no visible ASCII
 * character is written as \xNN. Times are the kernel's CLOCK_BOOTTIME, except wall, which is
 * seconds since 1970.
 *
 * A new file is renamed over the old one, so a reader always sees a complete file. It is not
 * flushed: the processes it describes do not survive a crash of the machine either. A reader does
 * not trust it: it reads at most CK_STATUS_FILE_MAX bytes and checks each.
 */
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/crikeep-nri.h"

#define CK_STATUS_FILE   "plugins" /* its name in a state directory */
/* the state of a required plugin that is not connected; its name may lack the index */
#define CK_STATUS_ABSENT "absent"
/* the state of a plugin that was disconnected with an error, and is not back */
#define CK_STATUS_GONE   "gone"

struct ck_nri_status {
	char boot[37];
	uint64_t now; /* when it was written */
	int64_t wall; /* the same, seconds since 1970 */
	long pid;     /* by whom */
	size_t n;
	struct ck_nri_plugin plugins[CK_NRI_PLUGINS_MAX]; /* their texts lie in @text */
	char *text;
};

/*
 * ck_status_write - rewrite the file at @path, mode 0600
 * @plugins: in the order in which they are shown; at most CK_NRI_PLUGINS_MAX are written. Texts are
 * cut at their limits
 * Return: 0, -CK_EIO, -CK_ENOMEM; a failure leaves the old file as it was
 */
int ck_status_write(const char *path, uint64_t now, const struct ck_nri_plugin *plugins, size_t n,
		    struct ck_error *err);
/* ck_status_read - Return: 0, -CK_ENOTFOUND (there is none), -CK_EMALFORMED, -CK_EIO, -CK_ENOMEM */
int ck_status_read(const char *path, struct ck_nri_status **ret_status, struct ck_error *err);
void ck_status_free(struct ck_nri_status *status);

/* the text, without files, for tests and fuzzing; ck_status_print() does not use @status->text */
int ck_status_print(const struct ck_nri_status *status, struct ck_bytes *bytes);
int ck_status_parse(const char *text, size_t len, struct ck_nri_status **ret_status,
		    struct ck_error *err);

/* ck_status_policy - "error" for CK_NRI_ERROR; "?" for none of them */
const char *ck_status_policy(enum ck_nri_policy policy);
#endif
