/* Queues of tensors: elements of one or more components, and the firings that wait for room or for
 * elements. Private to ops/.
 *
 * Whoever puts in or takes out waits in the order of coming; nobody holds a worker meanwhile. A
 * dequeue of many takes elements as they come and is done when it has all. */
#ifndef TROUPE_OPS_KERNELS_QUEUE_STATE_H
#define TROUPE_OPS_KERNELS_QUEUE_STATE_H

#include "ops/kernel.h"

/* Which element a dequeue takes. */
enum troupe_queue_order {
    TROUPE_QUEUE_FIFO = 0,
    TROUPE_QUEUE_SHUFFLE, /* one drawn at random, while more than min_after_dequeue are there */
    TROUPE_QUEUE_PRIORITY /* the one with the lowest component 0, an int64; of equals the oldest */
};

#define TROUPE_QUEUE_COMPONENTS_MAX 256
/* The most elements of a queue whose capacity is not limited. */
#define TROUPE_QUEUE_CAPACITY_MAX (INT64_C(1) << 30)

struct troupe_queue_options {
    enum troupe_queue_order order;
    bool pads;        /* components of one dequeue of many may differ in shape */
    int64_t capacity; /* 1 to TROUPE_QUEUE_CAPACITY_MAX */
    int64_t min_after_dequeue;
    uint64_t seed;
    int components;
    const enum troupe_dtype *dtypes;
    const struct troupe_shape *shapes; /* NULL: any */
};

/* A counted object, so that handles keep it. */
struct troupe_queue;
TROUPE_MUST_USE enum troupe_status troupe_queue_create(const char *name,
                                                       const struct troupe_queue_options *options,
                                                       struct troupe_queue **out);
struct troupe_payload *troupe_queue_payload(struct troupe_queue *queue);
/* The queue that an element of a resource tensor is; NULL when it is none. */
struct troupe_queue *troupe_queue_of(struct troupe_payload *element);
const struct troupe_queue_options *troupe_queue_options_of(const struct troupe_queue *queue);

/* One element: `components` counted tensors, in memory of malloc. */
struct troupe_queue_row {
    uint64_t number; /* the order of coming */
    struct troupe_tensor *components[];
};
/* Copies references; NULL without memory. */
struct troupe_queue_row *troupe_queue_row_create(struct troupe_tensor *const *components,
                                                 int count);
void troupe_queue_row_free(struct troupe_queue_row *row, int components);

/* Each ends the deferred firing, now or later. Enqueue takes the `count` rows and their array. A
 * dequeue that stacks gives each component of all its elements as one tensor; `up_to` is content
 * with fewer of a queue that is closed. */
void troupe_queue_enqueue(struct troupe_queue *queue, const struct troupe_deferred *deferred,
                          struct troupe_queue_row **rows, int64_t count);
void troupe_queue_dequeue(struct troupe_queue *queue, const struct troupe_deferred *deferred,
                          int64_t count, bool stacks, bool up_to);
/* Puts a row in, which it takes, into a queue without a limit. CANCELLED: the queue is closed;
 * RESOURCE_EXHAUSTED. */
TROUPE_MUST_USE enum troupe_status troupe_queue_put(struct troupe_queue *queue,
                                                    struct troupe_queue_row *row);
/* No element goes in any more; with `cancels` none that waits for room either. */
void troupe_queue_close(struct troupe_queue *queue, bool cancels);
int64_t troupe_queue_size(struct troupe_queue *queue);
bool troupe_queue_is_closed(struct troupe_queue *queue);
/* Ends what a kernel's firings from iteration `first` on wait for, as ABORTED. */
void troupe_queue_release(struct troupe_queue *queue, const struct troupe_kernel *kernel,
                          uint64_t first);

#endif
