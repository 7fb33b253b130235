/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all files of hooks/ use: references and the lock, the clock, the log, the epoll set, and
 * bytes that several of them share.
 */
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "src/base/clock.h"
#include "hooks/nri-int.h"

void ck_nri_ref(struct ck_nri *nri)
{
	nri->refs++;
}

bool ck_nri_unref(struct ck_nri *nri)
{
	if (--nri->refs)
		return false;
	pthread_mutex_unlock(&nri->lock);
	pthread_mutex_destroy(&nri->lock);
	ck_host_process_fini(&nri->home);
	free(nri);
	return true;
}

void ck_nri_lock(struct ck_nri *nri)
{
	pthread_mutex_lock(&nri->lock);
}

void ck_nri_unlock(struct ck_nri *nri)
{
	bool ours = nri->processing && pthread_equal(nri->thread, pthread_self());
	if (!ours && !nri->signalled && nri->event_fd >= 0) {
		nri->signalled = true;
		eventfd_write(nri->event_fd, 1);
	}
	pthread_mutex_unlock(&nri->lock);
}

uint64_t ck_nri_now(const struct ck_nri *nri)
{
	if (nri->clock)
		return nri->clock(nri->clock_userdata);
	return ck_clock_ns(CLOCK_BOOTTIME);
}

void ck_nri_log(struct ck_nri *nri, enum ck_log_level level, const char *fmt, ...)
{
	va_list args;
	if (!nri->host.log)
		return;
	if (nri->log_n == CK_NRI_LOG_LINES) {
		nri->log_lost++;
		return;
	}
	nri->log[nri->log_n].level = level;
	va_start(args, fmt);
	vsnprintf(nri->log[nri->log_n++].text, CK_ERROR_TEXT, fmt, args);
	va_end(args);
}

int ck_nri_watch(struct ck_nri *nri, int fd, uint32_t events, void *what, bool again)
{
	struct epoll_event event = { .events = events, .data.ptr = what };
	return epoll_ctl(nri->epoll_fd, again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0
		       ? -CK_EIO
		       : 0;
}

/* ---- shared bytes ---------------------------------------------------------------------------- */

struct ck_blob *ck_blob_new(const void *p, size_t len)
{
	struct ck_blob *blob = ck_alloc(sizeof(*blob) + len);
	if (!blob)
		return NULL;
	blob->refs = 1;
	blob->len = len;
	if (len)
		memcpy(blob->bytes, p, len);
	return blob;
}

struct ck_blob *ck_blob_ref(struct ck_blob *blob)
{
	if (blob)
		blob->refs++;
	return blob;
}

void ck_blob_unref(struct ck_blob *blob)
{
	if (blob && --blob->refs == 0)
		free(blob);
}
