/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_COMMIT_EVENTS_H
#define CK_DAEMON_COMMIT_EVENTS_H
/*
 * Events made at a commit. The runtime told of a sandbox or container when it made it, and crikeepd
 * kept that to itself; now that it is the kubelet's, the events are made anew, from a status asked
 * for after the commit. A commit never waits for that.
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
/* ck_announcer_listen - somebody wants events; or nobody does any more: nothing is asked, and what
 * is under way is dropped */
void ck_announcer_listen(struct ck_announcer *announcer, bool wanted);
/* ck_announcer_committed - of struct ck_host, from inside a round of the cache: looked at later,
 * from the loop */
void ck_announcer_committed(struct ck_announcer *announcer, const struct ck_told *entry);
void ck_announcer_free(struct ck_announcer *announcer); /* before the cache is closed */
#endif
