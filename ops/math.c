/* Element-wise arithmetic: schemas and shape functions. Kernels are in kernels/unary.c, binary.c,
 * select.c, convert.c and fill.c, gradients in math_gradient.c. */
#include "ops/math.h"

#include "ops/array.h"
#include "ops/families.h"
#include "ops/kernels/math.h"

/* ---- Shapes ---- */

/* An op whose two inputs have one shape. */
static enum troupe_status infer_same(struct troupe_infer *infer)
{
    const struct troupe_shape *a = &infer->input_shapes[0], *b = &infer->input_shapes[1];
    char a_text[TROUPE_SHAPE_TEXT_MAX], b_text[TROUPE_SHAPE_TEXT_MAX];
    if (troupe_shape_merge(a, b, &infer->output_shapes[0]) == TROUPE_OK)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants inputs of one shape, got %s and %s",
                              troupe_shape_print(a, a_text), troupe_shape_print(b, b_text));
}

/* Equal and NotEqual, which may be told to take shapes that do not broadcast. */
static enum troupe_status infer_equal(struct troupe_infer *infer)
{
    const struct troupe_shape *x = &infer->input_shapes[0], *y = &infer->input_shapes[1];
    if (troupe_infer_bool(infer, "incompatible_shape_error"))
        return troupe_infer_broadcast(infer);
    if (!troupe_shape_is_known(x) || !troupe_shape_is_known(y))
        return troupe_infer_unknown(infer);
    if (troupe_infer_broadcast(infer) != TROUPE_OK)
        infer->output_shapes[0] = troupe_shape_scalar();
    return TROUPE_OK;
}

enum troupe_status troupe_add_n_check(const struct troupe_shape *first,
                                      const struct troupe_shape *other, int index)
{
    char a[TROUPE_SHAPE_TEXT_MAX], b[TROUPE_SHAPE_TEXT_MAX];
    struct troupe_shape merged;
    if (troupe_shape_merge(first, other, &merged) == TROUPE_OK)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "AddN wants inputs of one shape: input 0 is %s, input %d is %s",
                              troupe_shape_print(first, a), index, troupe_shape_print(other, b));
}

static enum troupe_status infer_add_n(struct troupe_infer *infer)
{
    struct troupe_shape shape = infer->input_shapes[0];
    for (int i = 1; i < infer->input_count; i++) {
        enum troupe_status status = troupe_add_n_check(&shape, &infer->input_shapes[i], i);
        if (status == TROUPE_OK)
            status = troupe_shape_merge(&shape, &infer->input_shapes[i], &shape);
        if (status != TROUPE_OK)
            return status;
    }
    infer->output_shapes[0] = shape;
    return TROUPE_OK;
}

static enum troupe_status infer_select(struct troupe_infer *infer)
{
    const struct troupe_shape *condition = &infer->input_shapes[0], *t = &infer->input_shapes[1];
    const struct troupe_shape *e = &infer->input_shapes[2];
    char c_text[TROUPE_SHAPE_TEXT_MAX], t_text[TROUPE_SHAPE_TEXT_MAX];
    char e_text[TROUPE_SHAPE_TEXT_MAX];
    struct troupe_shape out, both;
    if (troupe_shape_merge(t, e, &out) != TROUPE_OK)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "Select wants t and e of one shape, got %s and %s",
                                  troupe_shape_print(t, t_text), troupe_shape_print(e, e_text));
    bool fits = condition->rank == 0 || troupe_shape_merge(condition, &out, &both) == TROUPE_OK;
    if (condition->rank == 1 && out.rank >= 1)
        fits = condition->dims[0] < 0 || out.dims[0] < 0 || condition->dims[0] == out.dims[0];
    if (!fits)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT,
            "Select wants a condition that is a scalar, one for each row, or of shape %s, got %s",
            troupe_shape_print(&out, t_text), troupe_shape_print(condition, c_text));
    infer->output_shapes[0] = out;
    return TROUPE_OK;
}

static enum troupe_status infer_select_v2(struct troupe_infer *infer)
{
    struct troupe_shape values, all;
    enum troupe_status status =
        troupe_shape_broadcast(&infer->input_shapes[1], &infer->input_shapes[2], &values);
    if (status == TROUPE_OK)
        status = troupe_shape_broadcast(&infer->input_shapes[0], &values, &all);
    if (status == TROUPE_OK)
        infer->output_shapes[0] = all;
    return status;
}

static enum troupe_status infer_cast(struct troupe_infer *infer)
{
    if (troupe_infer_bool(infer, "Truncate"))
        return troupe_status_fail(TROUPE_UNIMPLEMENTED,
                                  "Cast rounds to nearest: attr \"Truncate\" wants false");
    return troupe_infer_unchanged(infer);
}

/* ---- The table ---- */

enum {
    KERNEL_add_n,
    KERNEL_zeros_like,
    KERNEL_ones_like,
    KERNEL_l2_loss,
    KERNEL_cast,
    KERNEL_select,
    KERNEL_select_v2
};
static const struct troupe_kernel_row kernels[] = {
    [KERNEL_add_n] = {.device = "CPU", TROUPE_TAKES_NUMBERS, .compute = troupe_kernel_add_n},
    [KERNEL_zeros_like] = {.device = "CPU", .compute = troupe_kernel_zeros_like},
    [KERNEL_ones_like] = {.device = "CPU", .compute = troupe_kernel_ones_like},
    [KERNEL_l2_loss] = {.device = "CPU", TROUPE_TAKES_FLOATS, .compute = troupe_kernel_l2_loss},
    [KERNEL_cast] = {.device = "CPU", .compute = troupe_kernel_cast},
    [KERNEL_select] = {.device = "CPU", .compute = troupe_kernel_select},
    [KERNEL_select_v2] = {.device = "CPU", .compute = troupe_kernel_select_v2},
};

#define TROUPE_T_FLOATS  "T: {float32, float64}"
#define TROUPE_T_SIGNED  "T: {float32, float64, int32, int64}"
#define TROUPE_T_NUMBERS "T: {float32, float64, int32, int64, uint8}"
#define TROUPE_T_VALUES  "T: {float32, float64, int32, int64, uint8, bool}"
#define TROUPE_T_STORED  "{float32, float64, int32, int64, uint8, bool, float16, bfloat16}"
#define TROUPE_IS_BOOL   "its output is bool"

/* (op, kernel, dtypes, gradient, documentation) */
#define TROUPE_UNARY_OPS(X)                                                                        \
    X(Neg, neg, SIGNED, neg, "-x.")                                                                \
    X(Abs, abs, SIGNED, abs, "The absolute value of x.")                                           \
    X(Sign, sign, SIGNED, stop, "-1, 0 or 1, as x is negative, zero or positive; NaN stays NaN.")  \
    X(Square, square, NUMBERS, square, "x * x.")                                                   \
    X(Sqrt, sqrt, FLOATS, sqrt, "The square root of x.")                                           \
    X(Rsqrt, rsqrt, FLOATS, rsqrt, "1 / sqrt(x).")                                                 \
    X(Exp, exp, FLOATS, exp, "e to the power of x.")                                               \
    X(Log, log, FLOATS, log, "The natural logarithm of x.")                                        \
    X(Log1p, log1p, FLOATS, log1p, "log(1 + x), exact for small x.")                               \
    X(Reciprocal, reciprocal, FLOATS, reciprocal, "1 / x.")                                        \
    X(Floor, floor, FLOATS, stop, "The largest integer that is not above x.")                      \
    X(Ceil, ceil, FLOATS, stop, "The smallest integer that is not below x.")                       \
    X(Sin, sin, FLOATS, sin, "The sine of x, in radians.")                                         \
    X(Cos, cos, FLOATS, cos, "The cosine of x, in radians.")                                       \
    X(Tanh, tanh, FLOATS, tanh, "The hyperbolic tangent of x.")                                    \
    X(Sigmoid, sigmoid, FLOATS, sigmoid, "1 / (1 + exp(-x)).")                                     \
    X(Erf, erf, FLOATS, erf, "The error function of x.")

/* (op, kernel, dtypes, gradient, documentation); the inputs broadcast. */
#define TROUPE_BINARY_OPS(X)                                                                       \
    X(Add, add, NUMBERS, add, "x + y, broadcast.")                                                 \
    X(AddV2, add, NUMBERS, add, "x + y, broadcast.")                                               \
    X(Sub, sub, NUMBERS, sub, "x - y, broadcast.")                                                 \
    X(Mul, mul, NUMBERS, mul, "x * y, broadcast.")                                                 \
    X(RealDiv, real_div, FLOATS, real_div, "x / y of floats, broadcast.")                          \
    X(Div, div, NUMBERS, real_div, "x / y, broadcast; integers are rounded towards zero.")         \
    X(FloorDiv, floor_div, NUMBERS, stop, "x / y rounded down, broadcast.")                        \
    X(FloorMod, floor_mod, NUMBERS, floor_mod, "x - y * floor(x / y), broadcast.")                 \
    X(Maximum, maximum, NUMBERS, maximum, "The larger of x and y, broadcast; NaN wins.")           \
    X(Minimum, minimum, NUMBERS, minimum, "The smaller of x and y, broadcast; NaN wins.")          \
    X(Pow, pow, NUMBERS, pow, "x to the power of y, broadcast; integers want y of 0 or more.")     \
    X(SquaredDifference, squared_difference, NUMBERS, squared_difference,                          \
      "(x - y) * (x - y), broadcast.")

/* (op, kernel, documentation); the inputs broadcast. */
#define TROUPE_ORDER_OPS(X)                                                                        \
    X(Less, less, "x < y, broadcast; false for NaN.")                                              \
    X(LessEqual, less_equal, "x <= y, broadcast; false for NaN.")                                  \
    X(Greater, greater, "x > y, broadcast; false for NaN.")                                        \
    X(GreaterEqual, greater_equal, "x >= y, broadcast; false for NaN.")
#define TROUPE_EQUAL_OPS(X)                                                                        \
    X(Equal, equal, "x == y, broadcast; NaN equals nothing.")                                      \
    X(NotEqual, not_equal, "x != y, broadcast; NaN equals nothing.")
#define TROUPE_LOGICAL_OPS(X)                                                                      \
    X(LogicalAnd, logical_and, "x and y, broadcast.")                                              \
    X(LogicalOr, logical_or, "x or y, broadcast.")

#define TROUPE_BY(table, stem) .kernels = &table[stem].row, .kernel_count = 1
#define TROUPE_OWN(stem)       .kernels = &kernels[KERNEL_##stem], .kernel_count = 1

const struct troupe_op troupe_ops_math[] = {
#define TROUPE_ROW(op, stem, types, derivative, text)                                              \
    {.name = #op,                                                                                  \
     .doc = text,                                                                                  \
     .inputs = "x: T",                                                                             \
     .outputs = "y: T",                                                                            \
     .attrs = TROUPE_T_##types,                                                                    \
     .infer = troupe_infer_unchanged,                                                              \
     .gradient = troupe_gradient_of_##derivative,                                                  \
     TROUPE_BY(troupe_unary_kernels, TROUPE_UNARY_##stem)},
    TROUPE_UNARY_OPS(TROUPE_ROW)
#undef TROUPE_ROW
#define TROUPE_ROW(op, stem, types, derivative, text)                                              \
    {.name = #op,                                                                                  \
     .doc = text,                                                                                  \
     .inputs = "x: T, y: T",                                                                       \
     .outputs = "z: T",                                                                            \
     .attrs = TROUPE_T_##types,                                                                    \
     .infer = troupe_infer_broadcast,                                                              \
     .gradient = troupe_gradient_of_##derivative,                                                  \
     TROUPE_BY(troupe_binary_kernels, TROUPE_BINARY_##stem)},
        TROUPE_BINARY_OPS(TROUPE_ROW)
#undef TROUPE_ROW
#define TROUPE_ROW(op, stem, text)                                                                 \
    {.name = #op,                                                                                  \
     .doc = text,                                                                                  \
     .inputs = "x: T, y: T",                                                                       \
     .outputs = "z: bool",                                                                         \
     .attrs = TROUPE_T_NUMBERS,                                                                    \
     .infer = troupe_infer_broadcast,                                                              \
     .no_gradient = TROUPE_IS_BOOL,                                                                \
     TROUPE_BY(troupe_binary_kernels, TROUPE_BINARY_##stem)},
            TROUPE_ORDER_OPS(TROUPE_ROW)
#undef TROUPE_ROW
#define TROUPE_ROW(op, stem, text)                                                                 \
    {.name = #op,                                                                                  \
     .doc = text,                                                                                  \
     .inputs = "x: T, y: T",                                                                       \
     .outputs = "z: bool",                                                                         \
     .attrs = TROUPE_T_VALUES "; incompatible_shape_error: bool = true",                           \
     .infer = infer_equal,                                                                         \
     .no_gradient = TROUPE_IS_BOOL,                                                                \
     TROUPE_BY(troupe_binary_kernels, TROUPE_BINARY_##stem)},
                TROUPE_EQUAL_OPS(TROUPE_ROW)
#undef TROUPE_ROW
#define TROUPE_ROW(op, stem, text)                                                                 \
    {.name = #op,                                                                                  \
     .doc = text,                                                                                  \
     .inputs = "x: bool, y: bool",                                                                 \
     .outputs = "z: bool",                                                                         \
     .attrs = "",                                                                                  \
     .infer = troupe_infer_broadcast,                                                              \
     .no_gradient = TROUPE_IS_BOOL,                                                                \
     TROUPE_BY(troupe_binary_kernels, TROUPE_BINARY_##stem)},
                    TROUPE_LOGICAL_OPS(TROUPE_ROW)
#undef TROUPE_ROW
                        {.name = "LogicalNot",
                         .doc = "not x.",
                         .inputs = "x: bool",
                         .outputs = "y: bool",
                         .attrs = "",
                         .infer = troupe_infer_unchanged,
                         .no_gradient = TROUPE_IS_BOOL,
                         TROUPE_BY(troupe_unary_kernels, TROUPE_UNARY_logical_not)},
    {.name = "TanhGrad",
     .doc = "The gradient of Tanh from its output: dy * (1 - y * y).",
     .inputs = "y: T, dy: T",
     .outputs = "z: T",
     .attrs = TROUPE_T_FLOATS,
     .infer = infer_same,
     .gradient = troupe_gradient_of_tanh_grad,
     TROUPE_BY(troupe_binary_kernels, TROUPE_BINARY_tanh_grad)},
    {.name = "SigmoidGrad",
     .doc = "The gradient of Sigmoid from its output: dy * y * (1 - y).",
     .inputs = "y: T, dy: T",
     .outputs = "z: T",
     .attrs = TROUPE_T_FLOATS,
     .infer = infer_same,
     .gradient = troupe_gradient_of_sigmoid_grad,
     TROUPE_BY(troupe_binary_kernels, TROUPE_BINARY_sigmoid_grad)},
    {.name = "AddN",
     .doc = "The sum of all inputs, which have one shape.",
     .inputs = "inputs: N * T",
     .outputs = "sum: T",
     .attrs = "N: int >= 1; " TROUPE_T_NUMBERS,
     .infer = infer_add_n,
     .gradient = troupe_gradient_of_add_n,
     TROUPE_OWN(add_n)},
    {.name = "Select",
     .doc = "t where the condition holds, else e; a vector of conditions chooses rows.",
     .inputs = "condition: bool, t: T, e: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .infer = infer_select,
     .gradient = troupe_gradient_of_select,
     TROUPE_OWN(select)},
    {.name = "SelectV2",
     .doc = "t where the condition holds, else e, all three broadcast.",
     .inputs = "condition: bool, t: T, e: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .infer = infer_select_v2,
     .gradient = troupe_gradient_of_select_v2,
     TROUPE_OWN(select_v2)},
    {.name = "Cast",
     .doc =
         "x in another dtype: floats are cut to integers, and beyond their range to the nearest.",
     .inputs = "x: SrcT",
     .outputs = "y: DstT",
     .attrs = "SrcT: " TROUPE_T_STORED "; DstT: " TROUPE_T_STORED "; Truncate: bool = false",
     .infer = infer_cast,
     .gradient = troupe_gradient_of_cast,
     TROUPE_OWN(cast)},
    {.name = "ZerosLike",
     .doc = "Zeros of x's shape and dtype.",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " TROUPE_T_STORED,
     .infer = troupe_infer_unchanged,
     .gradient = troupe_gradient_of_stop,
     TROUPE_OWN(zeros_like)},
    {.name = "OnesLike",
     .doc = "Ones of x's shape and dtype.",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " TROUPE_T_STORED,
     .infer = troupe_infer_unchanged,
     .gradient = troupe_gradient_of_stop,
     TROUPE_OWN(ones_like)},
    {.name = "L2Loss",
     .doc = "Half the sum of the squares of t.",
     .inputs = "t: T",
     .outputs = "output: T",
     .attrs = TROUPE_T_FLOATS,
     .infer = troupe_infer_scalar,
     .gradient = troupe_gradient_of_l2_loss,
     TROUPE_OWN(l2_loss)},
};
const size_t troupe_ops_math_count = sizeof(troupe_ops_math) / sizeof(troupe_ops_math[0]);
