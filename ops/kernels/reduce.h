/* Kernels of the family "reduce". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_REDUCE_H
#define TROUPE_OPS_KERNELS_REDUCE_H

#include "ops/kernel.h"

/* Sums input 0 over the axes whose bits are set and makes the sum output 0, of the given shape. */
TROUPE_MUST_USE enum troupe_status troupe_call_sum(struct troupe_kernel_call *call, unsigned axes,
                                                   const struct troupe_shape *shape);

troupe_compute_fn troupe_kernel_sum;
troupe_compute_fn troupe_kernel_mean;
troupe_compute_fn troupe_kernel_prod;
troupe_compute_fn troupe_kernel_max;
troupe_compute_fn troupe_kernel_min;
troupe_compute_fn troupe_kernel_all;
troupe_compute_fn troupe_kernel_any;
troupe_compute_fn troupe_kernel_arg_max;
troupe_compute_fn troupe_kernel_arg_min;

#endif
