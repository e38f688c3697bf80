/* The monotonic clock. */
#include <time.h>

#include "base/clock.h"

uint64_t troupe_clock_ns(void)
{
    struct timespec now;
    /* It fails only for a clock that does not exist. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
