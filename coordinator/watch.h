/* The watch: a thread of a session that looks after runs in progress: deadlines, stops that do not
 * come, what waits in queues when a run has failed, stalls and deadlocks. Private to coordinator/.
 *
 * Only rank 0 judges. While a run of its does not get on, it asks all ranks for a census (census.h)
 * every tenth of a second. A run in which no rank has completed a firing for as long as the
 * watchdog waits is stalled. When in two censuses one after the other all workers of all ranks
 * sleep, no firing has completed between, no message is on its way and nothing outside of the
 * session is waited for, nothing can ever fire again: a deadlock. */
#ifndef TROUPE_COORDINATOR_WATCH_H
#define TROUPE_COORDINATOR_WATCH_H

#include "coordinator/session.h"

/* `options` NULL: the defaults. */
TROUPE_MUST_USE enum troupe_status troupe_watch_create(struct troupe_session *session,
                                                       const struct troupe_session_options *options,
                                                       struct troupe_watch **out);
/* Ends the thread. NULL does nothing. */
void troupe_watch_destroy(struct troupe_watch *watch);
/* A run has begun; `is_urgent`: it has a deadline. Any thread. */
void troupe_watch_began(struct troupe_watch *watch, bool is_urgent);
/* Something has happened that the watch is to look at now. Any thread, also from a stage's hook. */
void troupe_watch_wake(struct troupe_watch *watch);

#endif
