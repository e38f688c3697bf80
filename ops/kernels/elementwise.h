/* Element-wise kernels: runs over broadcast operands. Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_ELEMENTWISE_H
#define TROUPE_OPS_KERNELS_ELEMENTWISE_H

#include <stdint.h>

#include "ops/kernel.h"
#include "ops/tensor.h"

#define TROUPE_OPERAND_MAX 3

/* Elements that are worth a split, of a cheap function and of one like exp. */
#define TROUPE_GRAIN      16384
#define TROUPE_GRAIN_DEAR 2048

/* Before a loop whose iterations do not depend on each other: an output that is one of the inputs
 * is read at i before it is written at i, so vectors of iterations may overlap. */
#if defined(__clang__)
/* A loop that calls exp stays as it is, which is no news. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define TROUPE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TROUPE_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* One run along the innermost axis: out[i] = f(in[0][i * steps[0]], in[1][i * steps[1]], ...).
 * Steps are 0 or 1, in elements, and not all 0 unless count is 1. `out` may be one of the inputs
 * whose step is 1. */
typedef void troupe_run_fn(void *out, const void *const *in, const int64_t *steps, int64_t count);

/* A kernel and the runs that it makes for each dtype of its first input; NULL where there are none.
 * `row` is first, so that a kernel finds the rest from the row that it was chosen by. */
struct troupe_elementwise {
    struct troupe_kernel_row row;
    int64_t grain;
    troupe_run_fn *run[TROUPE_DTYPE_COUNT];
};

/* Output 0 of the given shape: the buffer of an input that the firing alone holds when dtype and
 * shape agree, otherwise a new one. */
TROUPE_MUST_USE enum troupe_status troupe_call_output_reusing(struct troupe_kernel_call *call,
                                                              const struct troupe_shape *shape,
                                                              struct troupe_tensor **out);
/* Inputs, each of which broadcasts to the output. A shape in `shapes`, unless that is NULL, stands
 * for the input's own. */
struct troupe_operands {
    int count; /* at most TROUPE_OPERAND_MAX */
    const struct troupe_tensor *const *inputs;
    const struct troupe_shape *shapes;
};
/* Applies `run` to the operands, split over workers in parts of `grain` elements. */
void troupe_elementwise_apply(struct troupe_parallel *parallel, troupe_run_fn *run, int64_t grain,
                              struct troupe_tensor *out, const struct troupe_operands *operands);
/* What belongs to the row of the kernel that is called. */
const struct troupe_elementwise *troupe_elementwise_of(const struct troupe_kernel_call *call);
/* Whole kernels, of one input and of two that broadcast. */
troupe_compute_fn troupe_call_unary;
troupe_compute_fn troupe_call_binary;

#endif
