/* Time. */
#ifndef TROUPE_BASE_CLOCK_H
#define TROUPE_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that never goes back; its zero means nothing. */
uint64_t troupe_clock_ns(void);

#endif
