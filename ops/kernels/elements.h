/* What ops on lists and on arrays of tensors share: elements taken from the rows of a tensor, and
 * joined into one. Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_ELEMENTS_H
#define TROUPE_OPS_KERNELS_ELEMENTS_H

#include "ops/kernel.h"

/* Counted tensors of one dtype, some of which may be NULL: not set. */
struct troupe_elements {
    struct troupe_tensor *const *items;
    int64_t count;
    const int32_t *indices; /* element i is items[indices[i]]; NULL: items[i] */
    enum troupe_dtype dtype;
};
/* Element `i`. */
const struct troupe_tensor *troupe_elements_at(const struct troupe_elements *elements, int64_t i);

/* Completes `shape` with the one shape of all elements. INVALID_ARGUMENT: "element 2 has shape [3]:
 * wants [2], as the others", or nothing says a part of it. */
TROUPE_MUST_USE enum troupe_status troupe_elements_shape(const struct troupe_elements *elements,
                                                         struct troupe_shape *shape);
/* The same for elements that differ in their first dimension, which stays as it is in `shape`. */
TROUPE_MUST_USE enum troupe_status troupe_elements_rest(const struct troupe_elements *elements,
                                                        struct troupe_shape *shape);
/* Makes output `output`: the elements, of `shape` each, one behind the other along a new first
 * dimension; zeros for those that are not set. */
TROUPE_MUST_USE enum troupe_status troupe_elements_stack(struct troupe_kernel_call *call,
                                                         int output,
                                                         const struct troupe_elements *elements,
                                                         const struct troupe_shape *shape);
/* Makes output `output`: the elements one behind the other along their first dimension, whose sizes
 * are `lengths` and behind which they have the sizes of `shape`. Zeros for those that are not set.
 */
TROUPE_MUST_USE enum troupe_status troupe_elements_concat(struct troupe_kernel_call *call,
                                                          int output,
                                                          const struct troupe_elements *elements,
                                                          const int64_t *lengths,
                                                          const struct troupe_shape *shape);

/* A tensor of zeros (of empty strings, of no lists). */
TROUPE_MUST_USE enum troupe_status troupe_tensor_zeros(enum troupe_dtype dtype,
                                                       const struct troupe_shape *shape,
                                                       struct troupe_tensor **out);
/* Row `index` of a tensor of rank 1 or more, without its first dimension; shares the buffer. */
TROUPE_MUST_USE enum troupe_status troupe_tensor_row(struct troupe_tensor *tensor, int64_t index,
                                                     struct troupe_tensor **out);

#endif
