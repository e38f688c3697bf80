/* Kernels of the family "barrier". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_BARRIER_H
#define TROUPE_OPS_KERNELS_BARRIER_H

#include "ops/kernels/queue_state.h"

/* Components as of a queue, at most TROUPE_QUEUE_COMPONENTS_MAX - 2. */
TROUPE_MUST_USE enum troupe_status troupe_barrier_create(const struct troupe_kernel *kernel,
                                                         const struct troupe_queue_options *options,
                                                         struct troupe_resource **out);
troupe_compute_fn troupe_kernel_barrier_insert;
troupe_compute_fn troupe_kernel_barrier_take;
troupe_compute_fn troupe_kernel_barrier_close;
troupe_compute_fn troupe_kernel_barrier_ready;
troupe_compute_fn troupe_kernel_barrier_incomplete;

#endif
