/* Kernels of the family "math". Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_MATH_H
#define TROUPE_OPS_KERNELS_MATH_H

#include "ops/kernels/elementwise.h"

/* The dtypes that a row of kernels takes. */
#define TROUPE_SET_FLOATS (TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64))
#define TROUPE_SET_SIGNED                                                                          \
    (TROUPE_SET_FLOATS | TROUPE_DTYPE_BIT(TROUPE_INT32) | TROUPE_DTYPE_BIT(TROUPE_INT64))
#define TROUPE_SET_NUMBERS (TROUPE_SET_SIGNED | TROUPE_DTYPE_BIT(TROUPE_UINT8))
#define TROUPE_SET_VALUES  (TROUPE_SET_NUMBERS | TROUPE_DTYPE_BIT(TROUPE_BOOL))

#define TROUPE_TAKES_FLOATS  .type_attr = "T", .dtypes = TROUPE_SET_FLOATS
#define TROUPE_TAKES_SIGNED  .type_attr = "T", .dtypes = TROUPE_SET_SIGNED
#define TROUPE_TAKES_NUMBERS .type_attr = "T", .dtypes = TROUPE_SET_NUMBERS
#define TROUPE_TAKES_VALUES  .type_attr = "T", .dtypes = TROUPE_SET_VALUES
#define TROUPE_TAKES_BOOLS   .type_attr = NULL /* the op has no T */

/* (stem, elements worth a split, dtypes) */
#define TROUPE_UNARY_FUNCTIONS(X)                                                                  \
    X(neg, TROUPE_GRAIN, SIGNED)                                                                   \
    X(abs, TROUPE_GRAIN, SIGNED)                                                                   \
    X(sign, TROUPE_GRAIN, SIGNED)                                                                  \
    X(square, TROUPE_GRAIN, NUMBERS)                                                               \
    X(sqrt, TROUPE_GRAIN, FLOATS)                                                                  \
    X(rsqrt, TROUPE_GRAIN, FLOATS)                                                                 \
    X(exp, TROUPE_GRAIN_DEAR, FLOATS)                                                              \
    X(log, TROUPE_GRAIN_DEAR, FLOATS)                                                              \
    X(log1p, TROUPE_GRAIN_DEAR, FLOATS)                                                            \
    X(reciprocal, TROUPE_GRAIN, FLOATS)                                                            \
    X(floor, TROUPE_GRAIN, FLOATS)                                                                 \
    X(ceil, TROUPE_GRAIN, FLOATS)                                                                  \
    X(sin, TROUPE_GRAIN_DEAR, FLOATS)                                                              \
    X(cos, TROUPE_GRAIN_DEAR, FLOATS)                                                              \
    X(tanh, TROUPE_GRAIN_DEAR, FLOATS)                                                             \
    X(sigmoid, TROUPE_GRAIN_DEAR, FLOATS)                                                          \
    X(erf, TROUPE_GRAIN_DEAR, FLOATS)                                                              \
    X(relu, TROUPE_GRAIN, NUMBERS)                                                                 \
    X(logical_not, TROUPE_GRAIN, BOOLS)

/* (stem, elements worth a split, dtypes, the kernel's function in binary.c) */
#define TROUPE_BINARY_FUNCTIONS(X)                                                                 \
    X(add, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                              \
    X(sub, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                              \
    X(mul, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                              \
    X(real_div, TROUPE_GRAIN, FLOATS, troupe_call_binary)                                          \
    X(floor_div, TROUPE_GRAIN, NUMBERS, call_dividing)                                             \
    X(floor_mod, TROUPE_GRAIN_DEAR, NUMBERS, call_dividing)                                        \
    X(maximum, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                          \
    X(minimum, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                          \
    X(pow, TROUPE_GRAIN_DEAR, NUMBERS, call_raising)                                               \
    X(squared_difference, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                               \
    X(tanh_grad, TROUPE_GRAIN, FLOATS, call_same)                                                  \
    X(sigmoid_grad, TROUPE_GRAIN, FLOATS, call_same)                                               \
    X(relu_grad, TROUPE_GRAIN, NUMBERS, call_same)                                                 \
    X(equal, TROUPE_GRAIN, VALUES, call_equal)                                                     \
    X(not_equal, TROUPE_GRAIN, VALUES, call_equal)                                                 \
    X(less, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                             \
    X(less_equal, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                       \
    X(greater, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                          \
    X(greater_equal, TROUPE_GRAIN, NUMBERS, troupe_call_binary)                                    \
    X(logical_and, TROUPE_GRAIN, BOOLS, troupe_call_binary)                                        \
    X(logical_or, TROUPE_GRAIN, BOOLS, troupe_call_binary)

enum troupe_unary {
#define TROUPE_ROW(stem, ...) TROUPE_UNARY_##stem,
    TROUPE_UNARY_FUNCTIONS(TROUPE_ROW)
#undef TROUPE_ROW
};
enum troupe_binary {
#define TROUPE_ROW(stem, ...) TROUPE_BINARY_##stem,
    TROUPE_BINARY_FUNCTIONS(TROUPE_ROW)
#undef TROUPE_ROW
        TROUPE_BINARY_div
};
extern const struct troupe_elementwise troupe_unary_kernels[];
extern const struct troupe_elementwise troupe_binary_kernels[];

troupe_compute_fn troupe_kernel_add_n;
troupe_compute_fn troupe_kernel_zeros_like;
troupe_compute_fn troupe_kernel_ones_like;
troupe_compute_fn troupe_kernel_l2_loss;
troupe_compute_fn troupe_kernel_cast;
troupe_compute_fn troupe_kernel_select;
troupe_compute_fn troupe_kernel_select_v2;

#endif
