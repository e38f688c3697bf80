/* Counts the calls of the program's allocator. */
#ifndef TROUPE_TESTS_ALLOCATIONS_H
#define TROUPE_TESTS_ALLOCATIONS_H

#include <stdint.h>

/* From start to stop, calls of malloc and its kin are counted, by any thread but a session's watch.
 * Those of free are not: what is freed was allocated. */
void allocations_start(void);
int64_t allocations_stop(void);
/* Writes who made the first of those calls to standard error. */
void allocations_explain(void);

#endif
