/* Shape functions, gradients and axes of the family "reduce". Private to ops/. */
#ifndef TROUPE_OPS_REDUCE_H
#define TROUPE_OPS_REDUCE_H

#include "ops/op.h"

/* Reads the axes of a reduction: bit n is set when axis n is reduced. `axes` is a scalar or a
 * vector of int32 or int64. INVALID_ARGUMENT: out of range, or twice the same. */
TROUPE_MUST_USE enum troupe_status troupe_reduce_axes(const struct troupe_tensor *axes, int rank,
                                                      unsigned *out);

troupe_infer_fn troupe_infer_reduce;
troupe_infer_fn troupe_infer_arg; /* ArgMax and ArgMin */

troupe_gradient_fn troupe_gradient_of_sum;
troupe_gradient_fn troupe_gradient_of_mean;
troupe_gradient_fn troupe_gradient_of_extreme; /* Max and Min */

#endif
