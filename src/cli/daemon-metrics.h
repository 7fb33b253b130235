/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_CLI_DAEMON_METRICS_H
#define CK_CLI_DAEMON_METRICS_H
/* What crikeepd tells of itself at its metrics socket. crikeepd(8) lists the metrics. */
#include <stdbool.h>

#include "src/base/bytes.h"
#include "src/base/error.h"

#define CK_METRICS_SOCKET "/run/crikeep/metrics.sock" /* crikeepd's default */

/* ck_daemon_metrics_fetch - read the text at the socket @path, which fits into a sockaddr_un. It
 * ends with a NUL that is not counted. -CK_EIO: nobody listens there (err->sys is ENOENT or
 * ECONNREFUSED), or there is no whole text within CK_METRICS_WAIT; -CK_ETOOBIG, -CK_ENOMEM */
int ck_daemon_metrics_fetch(const char *path, struct ck_bytes *text, struct ck_error *err);
/* ck_daemon_metrics_find - what follows @series at the beginning of a line, up to its end; NULL:
 * there is no such line */
const char *ck_daemon_metrics_find(const struct ck_bytes *text, const char *series);
/* ck_daemon_metrics_value - of a series without labels; 0: there is none */
double ck_daemon_metrics_value(const struct ck_bytes *text, const char *series);
#endif
