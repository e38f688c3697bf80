/* Kernels of the family "accumulator". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_ACCUMULATOR_H
#define TROUPE_OPS_KERNELS_ACCUMULATOR_H

#include "ops/kernel.h"

TROUPE_MUST_USE enum troupe_status troupe_accumulator_create(const struct troupe_kernel *kernel,
                                                             struct troupe_resource **out);
troupe_compute_fn troupe_kernel_accumulator_apply;
troupe_compute_fn troupe_kernel_accumulator_take;
troupe_compute_fn troupe_kernel_accumulator_count;
troupe_compute_fn troupe_kernel_accumulator_set_step;

#endif
