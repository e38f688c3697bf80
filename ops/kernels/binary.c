/* Element-wise functions of two inputs that broadcast. Invariant: integers wrap and never trap: a
 * divisor of 0 and a negative exponent are found before anything is computed. */
#include <tgmath.h>

#include "ops/kernels/elementwise.h"
#include "ops/kernels/math.h"
#include "ops/math.h"

static inline float modulus_float32(float a, float b)
{
    float rest = fmodf(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline double modulus_float64(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

#define TROUPE_FLOAT_ROWS(X)                                                                       \
    X(add, a + b)                                                                                  \
    X(sub, a - b)                                                                                  \
    X(mul, a *b)                                                                                   \
    X(real_div, a / b)                                                                             \
    X(floor_div, floor(a / b))                                                                     \
    X(floor_mod, NAME(modulus)(a, b))                                                              \
    X(maximum, ((a > b) | (a != a)) ? a : b)                                                       \
    X(minimum, ((a < b) | (a != a)) ? a : b)                                                       \
    X(pow, pow(a, b))                                                                              \
    X(squared_difference, (a - b) * (a - b))                                                       \
    X(tanh_grad, b *(1 - a * a))                                                                   \
    X(sigmoid_grad, b *a *(1 - a))                                                                 \
    X(relu_grad, b > 0 ? a : 0)

#define TROUPE_INTEGER_ROWS(X)                                                                     \
    X(add, (WIDE)a + (WIDE)b)                                                                      \
    X(sub, (WIDE)a - (WIDE)b)                                                                      \
    X(mul, (WIDE)a *(WIDE)b)                                                                       \
    X(div, NAME(quotient)(a, b))                                                                   \
    X(floor_div, NAME(floored)(a, b))                                                              \
    X(floor_mod, NAME(modulus)(a, b))                                                              \
    X(maximum, a > b ? a : b)                                                                      \
    X(minimum, a < b ? a : b)                                                                      \
    X(pow, NAME(power)(a, b))                                                                      \
    X(squared_difference, ((WIDE)a - (WIDE)b) * ((WIDE)a - (WIDE)b))                               \
    X(relu_grad, b > 0 ? a : 0)

#define TROUPE_COMPARE_ROWS(X)                                                                     \
    X(equal, a == b)                                                                               \
    X(not_equal, a != b)                                                                           \
    X(less, a < b)                                                                                 \
    X(less_equal, a <= b)                                                                          \
    X(greater, a > b)                                                                              \
    X(greater_equal, a >= b)

#define TROUPE_BOOL_ROWS(X)                                                                        \
    X(logical_and, a &b)                                                                           \
    X(logical_or, a | b)

#define TYPE       float
#define OUT        float
#define NAME(stem) stem##_float32
#define ROWS       TROUPE_FLOAT_ROWS
#include "ops/kernels/binary.inc.h"
#undef OUT
#undef ROWS
#define OUT  uint8_t
#define ROWS TROUPE_COMPARE_ROWS
#include "ops/kernels/binary.inc.h"
#undef TYPE
#undef NAME
#define TYPE       double
#define NAME(stem) stem##_float64
#include "ops/kernels/binary.inc.h"
#undef OUT
#undef ROWS
#define OUT  double
#define ROWS TROUPE_FLOAT_ROWS
#include "ops/kernels/binary.inc.h"
#undef TYPE
#undef NAME
#undef OUT
#undef ROWS

#define TYPE       int32_t
#define WIDE       uint32_t
#define OUT        int32_t
#define IS_SIGNED  1
#define NAME(stem) stem##_int32
#define ROWS       TROUPE_INTEGER_ROWS
#include "ops/kernels/integers.inc.h"

#include "ops/kernels/binary.inc.h"
#undef OUT
#undef ROWS
#define OUT  uint8_t
#define ROWS TROUPE_COMPARE_ROWS
#include "ops/kernels/binary.inc.h"
#undef TYPE
#undef WIDE
#undef NAME
#define TYPE       int64_t
#define WIDE       uint64_t
#define NAME(stem) stem##_int64
#include "ops/kernels/binary.inc.h"
#undef OUT
#undef ROWS
#define OUT  int64_t
#define ROWS TROUPE_INTEGER_ROWS
#include "ops/kernels/integers.inc.h"

#include "ops/kernels/binary.inc.h"
#undef TYPE
#undef WIDE
#undef OUT
#undef IS_SIGNED
#undef NAME

#define TYPE       uint8_t
#define WIDE       uint32_t
#define OUT        uint8_t
#define IS_SIGNED  0
#define NAME(stem) stem##_uint8
#include "ops/kernels/integers.inc.h"

#include "ops/kernels/binary.inc.h"
#undef ROWS
#define ROWS TROUPE_COMPARE_ROWS
#include "ops/kernels/binary.inc.h"
#undef NAME
#undef ROWS
#define NAME(stem) stem##_bool
#define ROWS       TROUPE_BOOL_ROWS
#include "ops/kernels/binary.inc.h"
#undef TYPE
#undef WIDE
#undef OUT
#undef IS_SIGNED
#undef NAME
#undef ROWS

/* The dtypes that a function has. */
#define TROUPE_RUN_FLOATS(stem) [TROUPE_FLOAT32] = stem##_float32, [TROUPE_FLOAT64] = stem##_float64
#define TROUPE_RUN_INTEGERS(stem)                                                                  \
    [TROUPE_INT32] = stem##_int32, [TROUPE_INT64] = stem##_int64, [TROUPE_UINT8] = stem##_uint8
#define TROUPE_RUN_NUMBERS(stem) TROUPE_RUN_FLOATS(stem), TROUPE_RUN_INTEGERS(stem)
#define TROUPE_RUN_VALUES(stem)  TROUPE_RUN_NUMBERS(stem), [TROUPE_BOOL] = stem##_uint8
#define TROUPE_RUN_BOOLS(stem)   [TROUPE_BOOL] = stem##_bool

typedef bool any_fn(const void *data, int64_t count);

/* Fails when an integer operand y has an element that the function cannot take. An empty x has
 * nothing to compute. */
static enum troupe_status check_y(const struct troupe_kernel_call *call, any_fn *const *has,
                                  const char *message)
{
    const struct troupe_tensor *x = call->inputs[0], *y = call->inputs[1];
    any_fn *any = has[y->dtype];
    if (!any || x->elements == 0 || !any(troupe_tensor_data(y), y->elements))
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s", message);
}

static enum troupe_status call_dividing(struct troupe_kernel_call *call)
{
    static any_fn *const has[TROUPE_DTYPE_COUNT] = {TROUPE_RUN_INTEGERS(has_zero)};
    enum troupe_status status = check_y(call, has, "integer division by zero: y has a 0");
    return status == TROUPE_OK ? troupe_call_binary(call) : status;
}

static enum troupe_status call_raising(struct troupe_kernel_call *call)
{
    static any_fn *const has[TROUPE_DTYPE_COUNT] = {
        [TROUPE_INT32] = has_negative_int32, [TROUPE_INT64] = has_negative_int64};
    enum troupe_status status =
        check_y(call, has, "an integer to a negative power: integers want y of 0 or more");
    return status == TROUPE_OK ? troupe_call_binary(call) : status;
}

/* Two inputs of one shape, which the shape function may not have known. */
static enum troupe_status call_same(struct troupe_kernel_call *call)
{
    struct troupe_shape x = troupe_shape_of(call->inputs[0]), y = troupe_shape_of(call->inputs[1]);
    char x_text[TROUPE_SHAPE_TEXT_MAX], y_text[TROUPE_SHAPE_TEXT_MAX];
    if (troupe_shape_equal(&x, &y))
        return troupe_call_binary(call);
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants inputs of one shape, got %s and %s",
                              troupe_shape_print(&x, x_text), troupe_shape_print(&y, y_text));
}

/* Shapes that do not broadcast are unequal, if the node says that this is no error. */
static enum troupe_status call_equal(struct troupe_kernel_call *call)
{
    struct troupe_shape x = troupe_shape_of(call->inputs[0]), y = troupe_shape_of(call->inputs[1]);
    struct troupe_shape shape;
    struct troupe_tensor *out;
    if (troupe_kernel_bool(call->kernel, "incompatible_shape_error") ||
        troupe_shape_broadcast(&x, &y, &shape) == TROUPE_OK)
        return troupe_call_binary(call);
    enum troupe_status status = troupe_call_output(call, 0, 0, NULL, &out);
    if (status == TROUPE_OK)
        *(uint8_t *)troupe_tensor_data_mutable(out) =
            call->kernel->row == &troupe_binary_kernels[TROUPE_BINARY_not_equal].row;
    return status;
}

const struct troupe_elementwise troupe_binary_kernels[] = {
#define TROUPE_ROW(stem, cost, types, call)                                                        \
    [TROUPE_BINARY_##stem] = {{.device = "CPU", TROUPE_TAKES_##types, .compute = call},            \
                              .grain = (cost),                                                     \
                              .run = {TROUPE_RUN_##types(stem)}},
    TROUPE_BINARY_FUNCTIONS(TROUPE_ROW)
#undef TROUPE_ROW
        /* Rounds towards zero for integers, and not at all for floats. */
        [TROUPE_BINARY_div] = {{.device = "CPU", TROUPE_TAKES_NUMBERS, .compute = call_dividing},
                               .grain = TROUPE_GRAIN,
                               .run = {TROUPE_RUN_FLOATS(real_div), TROUPE_RUN_INTEGERS(div)}},
};

/* A sum of any number of inputs, block by block so that the sum stays in the cache. */
struct summing {
    const struct troupe_kernel_call *call;
    troupe_run_fn *add;
};

static void sum_range(void *context, int64_t begin, int64_t end)
{
    const struct summing *summing = context;
    const struct troupe_kernel_call *call = summing->call;
    const int64_t steps[] = {1, 1}, block = 4096;
    int64_t size = (int64_t)troupe_dtype_size(call->outputs[0]->dtype);
    for (int64_t at = begin; at < end; at += block) {
        int64_t count = end - at < block ? end - at : block;
        char *sum = (char *)troupe_tensor_data_mutable(call->outputs[0]) + at * size;
        const char *first = troupe_tensor_data(call->inputs[0]);
        const void *in[] = {first + at * size, NULL};
        for (int i = 1; i < call->kernel->input_count; i++) {
            const char *term = troupe_tensor_data(call->inputs[i]);
            in[1] = term + at * size;
            summing->add(sum, in, steps, count);
            in[0] = sum;
        }
    }
}

enum troupe_status troupe_kernel_add_n(struct troupe_kernel_call *call)
{
    struct troupe_shape shape = troupe_shape_of(call->inputs[0]);
    struct troupe_tensor *out;
    for (int i = 1; i < call->kernel->input_count; i++) {
        struct troupe_shape other = troupe_shape_of(call->inputs[i]);
        enum troupe_status status = troupe_add_n_check(&shape, &other, i);
        if (status != TROUPE_OK)
            return status;
    }
    if (call->kernel->input_count == 1) {
        call->outputs[0] = troupe_tensor_ref(call->inputs[0]);
        return TROUPE_OK;
    }
    /* Only input 0 may be written in place: the others are read after the first addition. */
    enum troupe_status status = troupe_call_output_like(call, 0, 0, &out);
    struct summing summing = {call,
                              troupe_binary_kernels[TROUPE_BINARY_add].run[call->inputs[0]->dtype]};
    if (status == TROUPE_OK)
        troupe_parallel_for(call->parallel, out->elements, TROUPE_GRAIN, sum_range, &summing);
    return status;
}
