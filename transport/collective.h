/* Runs a schedule on a transport. */
#ifndef TROUPE_TRANSPORT_COLLECTIVE_H
#define TROUPE_TRANSPORT_COLLECTIVE_H

#include "transport/schedule.h"
#include "transport/transport.h"

struct troupe_collective;

/* How elements are combined: target[i] = target[i] (op) source[i]. */
struct troupe_reduction {
    size_t element_bytes;
    void (*reduce)(void *target, const void *source, int64_t elements);
};

/* A collective between the ranks group[0..schedule->size) of the transport (schedule ranks are
 * positions in `group`)  on messages with the given tag, reused run after run. Takes the schedule
 * and shares the reduction. */
TROUPE_MUST_USE enum troupe_status
troupe_collective_create(struct troupe_transport *transport, struct troupe_schedule *schedule,
                         const int *group, int tag, const struct troupe_reduction *reduction,
                         struct troupe_collective **out);
void troupe_collective_destroy(struct troupe_collective *collective);

/* Starts one run in place on `data`; one at a time. `done` is called once, from progress or
 * before this returns. Shares `data` until then. Any thread. */
void troupe_collective_start(struct troupe_collective *collective, void *data, int64_t elements,
                             void (*done)(void *context, enum troupe_status status), void *context);

#endif
