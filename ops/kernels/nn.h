/* Kernels of the family "nn". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_NN_H
#define TROUPE_OPS_KERNELS_NN_H

#include "ops/kernel.h"

troupe_compute_fn troupe_kernel_bias_add;
troupe_compute_fn troupe_kernel_bias_add_grad;
troupe_compute_fn troupe_kernel_softmax;
troupe_compute_fn troupe_kernel_log_softmax;
troupe_compute_fn troupe_kernel_cross_entropy;
troupe_compute_fn troupe_kernel_sparse_cross_entropy;

#endif
