/* Shapes and small integer inputs, as shape functions and kernels both read them. Private to
 * ops/. */
#ifndef TROUPE_OPS_KERNELS_SHAPES_H
#define TROUPE_OPS_KERNELS_SHAPES_H

#include "ops/kernel.h"

/* Runs the op's shape function on what the inputs of a firing are, values included, so that what
 * is checked before a run and in it is the same. Writes one shape for each output. */
TROUPE_MUST_USE enum troupe_status troupe_call_infer(struct troupe_kernel_call *call,
                                                     struct troupe_shape *shapes);
/* The same for an op whose shape function knows every output's shape then. */
TROUPE_MUST_USE enum troupe_status troupe_call_shapes(struct troupe_kernel_call *call,
                                                      struct troupe_shape *shapes);
/* Makes every output with the shape that the shape function gives. */
TROUPE_MUST_USE enum troupe_status troupe_call_outputs(struct troupe_kernel_call *call);

/* Element `index` of a tensor of int32, int64 or uint8. */
int64_t troupe_tensor_int(const struct troupe_tensor *tensor, int64_t index);
/* Reads a vector of at most TROUPE_RANK_MAX ints. INVALID_ARGUMENT: `"perm" has 9 entries: wants
 * at most 8`. */
TROUPE_MUST_USE enum troupe_status troupe_tensor_ints(const struct troupe_tensor *tensor,
                                                      const char *name,
                                                      int64_t out[TROUPE_RANK_MAX], int *count);
/* Turns an axis that may count from the end into one that does not. INVALID_ARGUMENT: "axis 3:
 * wants -2 to 1". */
TROUPE_MUST_USE enum troupe_status troupe_axis_resolve(int64_t axis, int rank, const char *name,
                                                       int *out);

/* The product of dims[begin..end), and the distances of a row-major layout. */
int64_t troupe_dims_product(const int64_t *dims, int begin, int end);
void troupe_dims_strides(const int64_t *dims, int rank, int64_t *strides);

#endif
