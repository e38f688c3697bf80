/* Kernels of the family "matmul". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_MATMUL_H
#define TROUPE_OPS_KERNELS_MATMUL_H

#include "ops/kernel.h"

troupe_compute_fn troupe_kernel_matmul;
troupe_compute_fn troupe_kernel_batch_matmul;

#endif
