/* Element-wise functions of one input. Invariant: integers wrap and never trap, so that no input is
 * undefined behaviour; NaN stays NaN. */
#include <tgmath.h>

#include "ops/kernels/elementwise.h"
#include "ops/kernels/math.h"

#define TROUPE_FLOAT_ROWS(X)                                                                       \
    X(neg, -a)                                                                                     \
    X(abs, fabs(a))                                                                                \
    X(sign, a > 0 ? 1 : a < 0 ? -1 : a)                                                            \
    X(square, a *a)                                                                                \
    X(sqrt, sqrt(a))                                                                               \
    X(rsqrt, 1 / sqrt(a))                                                                          \
    X(exp, exp(a))                                                                                 \
    X(log, log(a))                                                                                 \
    X(log1p, log1p(a))                                                                             \
    X(reciprocal, 1 / a)                                                                           \
    X(floor, floor(a))                                                                             \
    X(ceil, ceil(a))                                                                               \
    X(sin, sin(a))                                                                                 \
    X(cos, cos(a))                                                                                 \
    X(tanh, tanh(a))                                                                               \
    X(sigmoid, 1 / (1 + exp(-a)))                                                                  \
    X(erf, erf(a))                                                                                 \
    X(relu, a < 0 ? 0 : a)

#define TROUPE_SIGNED_ROWS(X)                                                                      \
    X(neg, 0 - (WIDE)a)                                                                            \
    X(abs, a < 0 ? 0 - (WIDE)a : (WIDE)a)                                                          \
    X(sign, (a > 0) - (a < 0))                                                                     \
    X(square, (WIDE)a *(WIDE)a)                                                                    \
    X(relu, a > 0 ? a : 0)

#define TROUPE_UNSIGNED_ROWS(X)                                                                    \
    X(square, (WIDE)a *(WIDE)a)                                                                    \
    X(relu, a)

#define TROUPE_BOOL_ROWS(X) X(logical_not, !a)

#define TYPE       float
#define NAME(stem) stem##_float32
#define ROWS       TROUPE_FLOAT_ROWS
#include "ops/kernels/unary.inc.h"
#undef TYPE
#undef NAME
#define TYPE       double
#define NAME(stem) stem##_float64
#include "ops/kernels/unary.inc.h"
#undef TYPE
#undef NAME
#undef ROWS
#define TYPE       int32_t
#define WIDE       uint32_t
#define NAME(stem) stem##_int32
#define ROWS       TROUPE_SIGNED_ROWS
#include "ops/kernels/unary.inc.h"
#undef TYPE
#undef WIDE
#undef NAME
#define TYPE       int64_t
#define WIDE       uint64_t
#define NAME(stem) stem##_int64
#include "ops/kernels/unary.inc.h"
#undef TYPE
#undef WIDE
#undef NAME
#undef ROWS
#define TYPE       uint8_t
#define WIDE       uint32_t
#define NAME(stem) stem##_uint8
#define ROWS       TROUPE_UNSIGNED_ROWS
#include "ops/kernels/unary.inc.h"
#undef NAME
#undef ROWS
#define NAME(stem) stem##_bool
#define ROWS       TROUPE_BOOL_ROWS
#include "ops/kernels/unary.inc.h"
#undef TYPE
#undef WIDE
#undef NAME
#undef ROWS

#define TROUPE_RUN_FLOATS(stem) [TROUPE_FLOAT32] = stem##_float32, [TROUPE_FLOAT64] = stem##_float64
#define TROUPE_RUN_SIGNED(stem)                                                                    \
    TROUPE_RUN_FLOATS(stem), [TROUPE_INT32] = stem##_int32, [TROUPE_INT64] = stem##_int64
#define TROUPE_RUN_NUMBERS(stem) TROUPE_RUN_SIGNED(stem), [TROUPE_UINT8] = stem##_uint8
#define TROUPE_RUN_BOOLS(stem)   [TROUPE_BOOL] = stem##_bool

const struct troupe_elementwise troupe_unary_kernels[] = {
#define TROUPE_ROW(stem, cost, types)                                                              \
    [TROUPE_UNARY_##                                                                               \
        stem] = {{.device = "CPU", TROUPE_TAKES_##types, .compute = troupe_call_unary},            \
                 .grain = (cost),                                                                  \
                 .run = {TROUPE_RUN_##types(stem)}},
    TROUPE_UNARY_FUNCTIONS(TROUPE_ROW)
#undef TROUPE_ROW
};
