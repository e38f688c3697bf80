/* Kernels of the family "tensor_array". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_TENSOR_ARRAY_H
#define TROUPE_OPS_KERNELS_TENSOR_ARRAY_H

#include "ops/kernel.h"

troupe_compute_fn troupe_kernel_array_create;
troupe_compute_fn troupe_kernel_array_write;
troupe_compute_fn troupe_kernel_array_read;
troupe_compute_fn troupe_kernel_array_gather;
troupe_compute_fn troupe_kernel_array_scatter;
troupe_compute_fn troupe_kernel_array_concat;
troupe_compute_fn troupe_kernel_array_split;
troupe_compute_fn troupe_kernel_array_size;
troupe_compute_fn troupe_kernel_array_close;

#endif
