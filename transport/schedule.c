/* Schedules: how a buffer is cut into chunks, and their storage. */
#include "transport/schedule.h"

#include <stdlib.h>

void troupe_schedule_destroy(struct troupe_schedule *schedule)
{
    if (!schedule)
        return;
    free(schedule->steps);
    free(schedule);
}

void troupe_schedule_chunk(const struct troupe_schedule *schedule, int64_t elements, int chunk,
                           int64_t *begin, int64_t *end)
{
    int64_t base = elements / schedule->chunks, extra = elements % schedule->chunks;
    int64_t before = chunk < extra ? chunk : extra;
    *begin = chunk * base + before;
    *end = *begin + base + (chunk < extra ? 1 : 0);
}
