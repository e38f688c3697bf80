/* The ring all-reduce. In round k of the first half a rank sends chunk rank - k and adds what comes
 * into chunk rank - k - 1; after size - 1 rounds it holds the whole sum of chunk rank + 1, which
 * the second half passes around. */
#include <stdlib.h>

#include "base/memory.h"
#include "transport/schedule.h"

static int modulo(int value, int size)
{
    return ((value % size) + size) % size;
}

static void add_round(struct troupe_schedule *schedule, int send, int receive,
                      enum troupe_schedule_verb verb)
{
    int size = schedule->size;
    struct troupe_schedule_step *step = &schedule->steps[schedule->step_count];
    step[0] = (struct troupe_schedule_step){.round = schedule->rounds,
                                            .verb = TROUPE_SCHEDULE_SEND,
                                            .peer = modulo(schedule->rank + 1, size),
                                            .chunk = modulo(send, size)};
    step[1] = (struct troupe_schedule_step){.round = schedule->rounds,
                                            .verb = verb,
                                            .peer = modulo(schedule->rank - 1, size),
                                            .chunk = modulo(receive, size)};
    schedule->step_count += 2;
    schedule->rounds++;
}

enum troupe_status troupe_schedule_ring_allreduce(int rank, int size, struct troupe_schedule **out)
{
    if (size < 1 || rank < 0 || rank >= size)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a ring of %d ranks has no rank %d: wants 0 to size - 1", size,
                                  rank);
    struct troupe_schedule *schedule = troupe_calloc(1, sizeof(*schedule));
    if (!schedule)
        return TROUPE_RESOURCE_EXHAUSTED;
    schedule->rank = rank;
    schedule->size = size;
    schedule->chunks = size;
    schedule->steps = troupe_calloc((size_t)size * 4, sizeof(*schedule->steps));
    if (!schedule->steps) {
        free(schedule);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    for (int k = 0; k < size - 1; k++)
        add_round(schedule, rank - k, rank - k - 1, TROUPE_SCHEDULE_REDUCE);
    for (int k = 0; k < size - 1; k++)
        add_round(schedule, rank + 1 - k, rank - k, TROUPE_SCHEDULE_RECEIVE);
    *out = schedule;
    return TROUPE_OK;
}
