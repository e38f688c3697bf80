/* What lies in a queue, and what a dequeue makes of elements. Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_QUEUE_TAKE_H
#define TROUPE_OPS_KERNELS_QUEUE_TAKE_H

#include "ops/kernels/queue_state.h"

/* Elements: a ring for FIFO, any order for SHUFFLE, a heap for PRIORITY. */
struct troupe_queue_rows {
    struct troupe_queue_row **items;
    int64_t first, count, capacity; /* the ring starts at `first` */
};

/* Both take the row; false, with the row untouched, without memory. The second puts it before all
 * others of a ring. */
TROUPE_MUST_USE bool troupe_queue_rows_put(struct troupe_queue_rows *rows,
                                           enum troupe_queue_order order,
                                           struct troupe_queue_row *row);
TROUPE_MUST_USE bool troupe_queue_rows_put_back(struct troupe_queue_rows *rows,
                                                enum troupe_queue_order order,
                                                struct troupe_queue_row *row);
/* Of at least one; `random` chooses for SHUFFLE. */
struct troupe_queue_row *troupe_queue_rows_take(struct troupe_queue_rows *rows,
                                                enum troupe_queue_order order, uint64_t random);
/* One after the other, for freeing them. */
struct troupe_queue_row *troupe_queue_rows_at(const struct troupe_queue_rows *rows, int64_t index);

/* Completes a dequeue with the components of its `count` elements: as they are of one, stacked of
 * many, padded with zeros to the largest where the queue does that. */
void troupe_queue_give(const struct troupe_deferred *deferred, struct troupe_queue_row **rows,
                       int64_t count, bool stacks, bool pads);

#endif
