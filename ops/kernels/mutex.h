/* Kernels of the family "mutex". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_MUTEX_H
#define TROUPE_OPS_KERNELS_MUTEX_H

#include "ops/kernel.h"

TROUPE_MUST_USE enum troupe_status troupe_mutex_create(const struct troupe_kernel *kernel,
                                                       struct troupe_resource **out);
troupe_compute_fn troupe_kernel_mutex_lock;
troupe_compute_fn troupe_kernel_mutex_consume;

#endif
