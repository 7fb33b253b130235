/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_COMMIT_EVENTS_H
#define CK_DAEMON_COMMIT_EVENTS_H
/*
 * Events made at a commit. The runtime sent its events when it created the sandbox or container,
 * and crikeepd did not pass them on. After the commit the events are made again, from a status that
 * is asked for then. The commit does not wait for them.
 */
#include "src/daemon/daemon.h"

enum ck_event_type { /* ContainerEventType of CRI */
		     CK_EVENT_CREATED = 0,
		     CK_EVENT_STARTED = 1,
		     CK_EVENT_STOPPED = 2,
		     CK_EVENT_DELETED = 3,
};

struct ck_announcer;

/* @message: a ContainerEventResponse, borrowed for the call */
typedef void ck_announce_fn(const char *id, enum ck_event_type type, const void *message,
			    size_t len, void *userdata);

int ck_announcer_new(struct ck_daemon *daemon, ck_announce_fn *fn, void *userdata,
		     struct ck_announcer **ret_announcer, struct ck_error *err);
/* ck_announcer_listen - are there subscribers? Without them no status is asked for, and events
 * under way are dropped */
void ck_announcer_listen(struct ck_announcer *announcer, bool wanted);
/* ck_announcer_committed - of struct ck_host, called during a round of the cache. The work is done
 * later, from the loop */
void ck_announcer_committed(struct ck_announcer *announcer, const struct ck_told *entry);
void ck_announcer_free(struct ck_announcer *announcer); /* before the cache is closed */
#endif
