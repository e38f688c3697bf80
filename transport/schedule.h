/* Collective algorithms as data: for each rank, rounds of send, receive, reduce and copy over
 * chunks of one buffer. A generator writes a schedule; the runner (transport/collective.h) drives
 * it; the checker proves it symbolically. */
#ifndef TROUPE_TRANSPORT_SCHEDULE_H
#define TROUPE_TRANSPORT_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

enum troupe_schedule_verb {
    TROUPE_SCHEDULE_SEND,    /* chunk -> peer */
    TROUPE_SCHEDULE_RECEIVE, /* peer -> chunk, replacing it */
    TROUPE_SCHEDULE_REDUCE   /* peer -> scratch, then chunk = chunk (op) scratch */
};

/* Steps of the same round run at once; a round starts when the one before it is done. */
struct troupe_schedule_step {
    int round;
    enum troupe_schedule_verb verb;
    int peer;
    int chunk;
};

struct troupe_schedule {
    int rank, size;
    int chunks; /* the buffer is cut into this many, sizes differing by at most one element */
    int rounds;
    struct troupe_schedule_step *steps; /* by round */
    int step_count;
};

/* Ring all-reduce: reduce-scatter, then all-gather, 2 (size - 1) rounds of 1 / size of the data.
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations" (2009). */
TROUPE_MUST_USE enum troupe_status troupe_schedule_ring_allreduce(int rank, int size,
                                                                  struct troupe_schedule **out);
void troupe_schedule_destroy(struct troupe_schedule *schedule);

/* Element range [begin, end) of a chunk of `elements` elements. */
void troupe_schedule_chunk(const struct troupe_schedule *schedule, int64_t elements, int chunk,
                           int64_t *begin, int64_t *end);

/* Proves that after all rounds every chunk on every rank holds every rank's contribution exactly
 * once and that no rank waits for ever; schedules[r] is rank r's. INTERNAL names the first fault.
 */
TROUPE_MUST_USE enum troupe_status
troupe_schedule_check_allreduce(struct troupe_schedule *const *schedules, int size);

#endif
