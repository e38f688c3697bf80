/* Kernels of the family "state". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_STATE_H
#define TROUPE_OPS_KERNELS_STATE_H

#include "ops/kernel.h"

troupe_compute_fn troupe_kernel_placeholder;
troupe_compute_fn troupe_kernel_variable;
troupe_compute_fn troupe_kernel_assign;
troupe_compute_fn troupe_kernel_assign_add;
troupe_compute_fn troupe_kernel_assign_sub;
troupe_compute_fn troupe_kernel_apply_gradient_descent;
troupe_compute_fn troupe_kernel_apply_momentum;
troupe_compute_fn troupe_kernel_apply_adam;

#endif
