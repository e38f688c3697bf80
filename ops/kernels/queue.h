/* Kernels of the family "queue". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_QUEUE_H
#define TROUPE_OPS_KERNELS_QUEUE_H

#include "ops/kernels/queue_state.h"

/* A queue that outlives steps, from a node's attrs. */
TROUPE_MUST_USE enum troupe_status
troupe_queue_resource_create(const struct troupe_kernel *kernel,
                             const struct troupe_queue_options *options,
                             struct troupe_resource **out);

troupe_compute_fn troupe_kernel_queue_enqueue;
troupe_compute_fn troupe_kernel_queue_enqueue_many;
troupe_compute_fn troupe_kernel_queue_dequeue;
troupe_compute_fn troupe_kernel_queue_dequeue_many;
troupe_compute_fn troupe_kernel_queue_dequeue_up_to;
troupe_compute_fn troupe_kernel_queue_close;
troupe_compute_fn troupe_kernel_queue_size;
troupe_compute_fn troupe_kernel_queue_is_closed;

#endif
