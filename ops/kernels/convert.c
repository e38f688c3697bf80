/* Conversions between dtypes. Invariant: none is undefined behaviour: a float that an integer dtype
 * cannot hold becomes the nearest integer that it can, and NaN becomes 0. The two 16-bit formats
 * are converted by way of float. */
#include "ops/cast.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/math.h"

/* A float beyond the limits of an integer dtype; the upper limit itself is 2 to some power. */
static inline int64_t clamp_int64(double value)
{
    if (value >= 0x1p63)
        return INT64_MAX;
    return value > -0x1p63 ? (int64_t)value : value <= -0x1p63 ? INT64_MIN : 0;
}

static inline int32_t clamp_int32(double value)
{
    double low = value > INT32_MIN ? value : INT32_MIN;
    double held = low < INT32_MAX ? low : INT32_MAX;
    return value != value ? 0 : (int32_t)held;
}

static inline uint8_t clamp_uint8(double value)
{
    double low = value > 0 ? value : 0; /* NaN becomes 0 */
    return (uint8_t)(low < UINT8_MAX ? low : UINT8_MAX);
}

/* (dtype, its type in C, the value of a in it) */
#define TROUPE_FLOAT_ROWS(X)                                                                       \
    X(float32, float, a)                                                                           \
    X(float64, double, a)                                                                          \
    X(int32, int32_t, clamp_int32((double)a))                                                      \
    X(int64, int64_t, clamp_int64((double)a))                                                      \
    X(uint8, uint8_t, clamp_uint8((double)a))                                                      \
    X(truth, uint8_t, a != 0)

#define TROUPE_INTEGER_ROWS(X)                                                                     \
    X(float32, float, a)                                                                           \
    X(float64, double, a)                                                                          \
    X(int32, int32_t, (uint32_t)a)                                                                 \
    X(int64, int64_t, a)                                                                           \
    X(uint8, uint8_t, a)                                                                           \
    X(truth, uint8_t, a != 0)

#define FROM       float
#define NAME(stem) float32_to_##stem
#define ROWS       TROUPE_FLOAT_ROWS
#include "ops/kernels/cast_from.inc.h"
#undef FROM
#undef NAME
#define FROM       double
#define NAME(stem) float64_to_##stem
#include "ops/kernels/cast_from.inc.h"
#undef FROM
#undef NAME
#undef ROWS
#define FROM       int32_t
#define NAME(stem) int32_to_##stem
#define ROWS       TROUPE_INTEGER_ROWS
#include "ops/kernels/cast_from.inc.h"
#undef FROM
#undef NAME
#define FROM       int64_t
#define NAME(stem) int64_to_##stem
#include "ops/kernels/cast_from.inc.h"
#undef FROM
#undef NAME
#define FROM       uint8_t
#define NAME(stem) uint8_to_##stem
#include "ops/kernels/cast_from.inc.h"
#undef FROM
#undef NAME
#undef ROWS

#define TROUPE_TO(from)                                                                            \
    {                                                                                              \
        [TROUPE_FLOAT32] = from##_to_float32, [TROUPE_FLOAT64] = from##_to_float64,                \
        [TROUPE_INT32] = from##_to_int32, [TROUPE_INT64] = from##_to_int64,                        \
        [TROUPE_UINT8] = from##_to_uint8, [TROUPE_BOOL] = from##_to_truth                          \
    }
static troupe_run_fn *const conversions[TROUPE_DTYPE_COUNT][TROUPE_DTYPE_COUNT] = {
    [TROUPE_FLOAT32] = TROUPE_TO(float32), [TROUPE_FLOAT64] = TROUPE_TO(float64),
    [TROUPE_INT32] = TROUPE_TO(int32),     [TROUPE_INT64] = TROUPE_TO(int64),
    [TROUPE_UINT8] = TROUPE_TO(uint8),     [TROUPE_BOOL] = TROUPE_TO(uint8),
};

/* Floats at a time that are converted on the way from or to a 16-bit format. */
#define CONVERT_BLOCK 512

struct converting {
    enum troupe_dtype from, to;
    size_t from_size, to_size;
    const char *in;
    char *out;
};

static bool is_half(enum troupe_dtype dtype)
{
    return dtype == TROUPE_FLOAT16 || dtype == TROUPE_BFLOAT16;
}

static void convert_run(enum troupe_dtype from, enum troupe_dtype to, void *out, const void *in,
                        int64_t count)
{
    const int64_t steps[] = {1};
    conversions[from][to](out, &in, steps, count);
}

static void convert_block(const struct converting *converting, int64_t at, int64_t count)
{
    float values[CONVERT_BLOCK];
    const char *in = converting->in + (size_t)at * converting->from_size;
    char *out = converting->out + (size_t)at * converting->to_size;
    if (is_half(converting->from)) {
        const void *data = in;
        const uint16_t *halves = data;
        for (int64_t i = 0; i < count; i++)
            values[i] = converting->from == TROUPE_FLOAT16 ? troupe_float16_to_float(halves[i])
                                                           : troupe_bfloat16_to_float(halves[i]);
    } else {
        convert_run(converting->from, TROUPE_FLOAT32, values, in, count);
    }
    if (is_half(converting->to)) {
        void *data = out;
        uint16_t *halves = data;
        for (int64_t i = 0; i < count; i++)
            halves[i] = converting->to == TROUPE_FLOAT16 ? troupe_float16_from_float(values[i])
                                                         : troupe_bfloat16_from_float(values[i]);
    } else {
        convert_run(TROUPE_FLOAT32, converting->to, out, values, count);
    }
}

static void convert_range(void *context, int64_t begin, int64_t end)
{
    const struct converting *converting = context;
    if (!is_half(converting->from) && !is_half(converting->to)) {
        convert_run(converting->from, converting->to,
                    converting->out + (size_t)begin * converting->to_size,
                    converting->in + (size_t)begin * converting->from_size, end - begin);
        return;
    }
    for (int64_t at = begin; at < end; at += CONVERT_BLOCK)
        convert_block(converting, at, end - at < CONVERT_BLOCK ? end - at : CONVERT_BLOCK);
}

enum troupe_status troupe_kernel_cast(struct troupe_kernel_call *call)
{
    struct troupe_tensor *in = call->inputs[0], *out;
    enum troupe_dtype to = call->kernel->output_dtypes[0];
    if (in->dtype == to) {
        call->outputs[0] = troupe_tensor_ref(in);
        return TROUPE_OK;
    }
    enum troupe_status status = troupe_call_output(call, 0, in->rank, in->dims, &out);
    if (status != TROUPE_OK)
        return status;
    struct converting converting = {
        .from = in->dtype,
        .to = to,
        .from_size = troupe_dtype_size(in->dtype),
        .to_size = troupe_dtype_size(to),
        .in = troupe_tensor_data(in),
        .out = troupe_tensor_data_mutable(out),
    };
    troupe_parallel_for(call->parallel, in->elements, TROUPE_GRAIN, convert_range, &converting);
    return TROUPE_OK;
}
