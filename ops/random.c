/* Random tensors. Element i of step s of a node has its own counter of one Philox stream, so that a
 * value depends on nothing but the seeds, the node's origin, the step and the index. */
#include <string.h>

#include "base/hash.h"
#include "base/philox.h"
#include "ops/families.h"
#include "ops/kernel.h"
#include "ops/tensor.h"

/* Counters that one element of one step may use: TruncatedNormal draws again and again. */
#define TROUPE_RANDOM_BLOCK 4

struct draw {
    uint64_t key, step;
    void *data;
    enum troupe_dtype dtype;
};

typedef void draw_fn(void *context, int64_t begin, int64_t end);

static void words(const struct draw *draw, int64_t index, int attempt, uint32_t out[4])
{
    troupe_philox(draw->key, (uint64_t)index * TROUPE_RANDOM_BLOCK + (uint64_t)attempt, draw->step,
                  out);
}

static void store(const struct draw *draw, int64_t index, double value)
{
    if (draw->dtype == TROUPE_FLOAT32)
        ((float *)draw->data)[index] = (float)value;
    else
        ((double *)draw->data)[index] = value;
}

static void draw_uniform(void *context, int64_t begin, int64_t end)
{
    const struct draw *draw = context;
    for (int64_t i = begin; i < end; i++) {
        uint32_t bits[4];
        words(draw, i, 0, bits);
        if (draw->dtype == TROUPE_FLOAT32)
            ((float *)draw->data)[i] = troupe_philox_uniform_float(bits[0]);
        else
            ((double *)draw->data)[i] = troupe_philox_uniform_double(bits[0], bits[1]);
    }
}

static void draw_normal(void *context, int64_t begin, int64_t end)
{
    const struct draw *draw = context;
    for (int64_t i = begin; i < end; i++) {
        uint32_t bits[4];
        float pair[2];
        words(draw, i, 0, bits);
        troupe_philox_normal(bits[0], bits[1], pair);
        store(draw, i, (double)pair[0]);
    }
}

/* Normal numbers within two standard deviations: 95% of the first draws are; after 16 the last is
 * cut to the limit, which happens once in 10^21. */
static void draw_truncated(void *context, int64_t begin, int64_t end)
{
    const struct draw *draw = context;
    for (int64_t i = begin; i < end; i++) {
        float value = 3;
        for (int attempt = 0; attempt < TROUPE_RANDOM_BLOCK && (value > 2 || value < -2);
             attempt++) {
            uint32_t bits[4];
            float pairs[4];
            words(draw, i, attempt, bits);
            troupe_philox_normal(bits[0], bits[1], pairs);
            troupe_philox_normal(bits[2], bits[3], pairs + 2);
            for (int j = 0; j < 4 && (value > 2 || value < -2); j++)
                value = pairs[j];
        }
        store(draw, i, (double)(value > 2 ? 2 : value < -2 ? -2 : value));
    }
}

/* The dims that a shape tensor (int32 or int64) states. */
static enum troupe_status read_dims(const struct troupe_tensor *shape, int *rank,
                                    int64_t dims[TROUPE_RANK_MAX])
{
    int64_t count = troupe_tensor_elements(shape);
    if (troupe_tensor_rank(shape) != 1 || count > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "input \"shape\" wants a vector of at most %d sizes",
                                  TROUPE_RANK_MAX);
    for (int64_t i = 0; i < count; i++) {
        dims[i] = troupe_tensor_dtype(shape) == TROUPE_INT64
                      ? ((const int64_t *)troupe_tensor_data(shape))[i]
                      : ((const int32_t *)troupe_tensor_data(shape))[i];
        if (dims[i] < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "input \"shape\" wants sizes of 0 or more, got %lld",
                                      (long long)dims[i]);
    }
    *rank = (int)count;
    return TROUPE_OK;
}

#define TROUPE_RANDOM_GRAIN 4096

static enum troupe_status fill(struct troupe_kernel_call *call, draw_fn *draw)
{
    const struct troupe_kernel *kernel = call->kernel;
    int64_t dims[TROUPE_RANK_MAX];
    int rank;
    struct troupe_tensor *out;
    enum troupe_status status = read_dims(call->inputs[0], &rank, dims);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 0, rank, dims, &out);
    if (status != TROUPE_OK)
        return status;
    uint64_t key = troupe_hash_u64(TROUPE_HASH_START, kernel->seed);
    key = troupe_hash_u64(key, kernel->stream);
    key = troupe_hash_u64(key, (uint64_t)troupe_kernel_int(kernel, "seed"));
    key = troupe_hash_u64(key, (uint64_t)troupe_kernel_int(kernel, "seed2"));
    /* Outside of loops the path is 0, and the numbers are those of a graph without loops. */
    if (call->path != 0)
        key = troupe_hash_u64(key, call->path);
    struct draw work = {.key = key,
                        .step = call->step,
                        .data = troupe_tensor_data_mutable(out),
                        .dtype = troupe_tensor_dtype(out)};
    troupe_parallel_for(call->parallel, troupe_tensor_elements(out), TROUPE_RANDOM_GRAIN, draw,
                        &work);
    return TROUPE_OK;
}

static enum troupe_status compute_uniform(struct troupe_kernel_call *call)
{
    return fill(call, draw_uniform);
}

static enum troupe_status compute_normal(struct troupe_kernel_call *call)
{
    return fill(call, draw_normal);
}

static enum troupe_status compute_truncated(struct troupe_kernel_call *call)
{
    return fill(call, draw_truncated);
}

static enum troupe_status infer_random(struct troupe_infer *infer)
{
    const struct troupe_tensor *value = infer->input_values[0];
    const struct troupe_shape *shape = &infer->input_shapes[0];
    if (value) {
        struct troupe_shape result = {0};
        enum troupe_status status = read_dims(value, &result.rank, result.dims);
        if (status == TROUPE_OK)
            infer->output_shapes[0] = result;
        return status;
    }
    if (shape->rank > 1) {
        char text[TROUPE_SHAPE_TEXT_MAX];
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "input \"shape\" wants a vector, got shape %s",
                                  troupe_shape_print(shape, text));
    }
    if (shape->rank == 1 && shape->dims[0] >= 0 && shape->dims[0] <= TROUPE_RANK_MAX) {
        infer->output_shapes[0].rank = (int)shape->dims[0];
        for (int i = 0; i < infer->output_shapes[0].rank; i++)
            infer->output_shapes[0].dims[i] = TROUPE_DIM_UNKNOWN;
    }
    return TROUPE_OK;
}

#define TROUPE_FLOATS (TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64))
#define TROUPE_RANDOM_ATTRS                                                                        \
    "dtype: {float32, float64}; T: {int32, int64}; seed: int = 0; seed2: int = 0"

static const struct troupe_kernel_row uniform_kernels[] = {
    {.device = "CPU", .type_attr = "dtype", .dtypes = TROUPE_FLOATS, .compute = compute_uniform}};
static const struct troupe_kernel_row normal_kernels[] = {
    {.device = "CPU", .type_attr = "dtype", .dtypes = TROUPE_FLOATS, .compute = compute_normal}};
static const struct troupe_kernel_row truncated_kernels[] = {
    {.device = "CPU", .type_attr = "dtype", .dtypes = TROUPE_FLOATS, .compute = compute_truncated}};

#define ROW(title, text, rows)                                                                     \
    {                                                                                              \
        .name = title, .doc = text, .inputs = "shape: T", .outputs = "output: dtype",              \
        .attrs = TROUPE_RANDOM_ATTRS, .flags = TROUPE_OP_STATEFUL | TROUPE_OP_NUMBERED,            \
        .infer = infer_random, .no_gradient = "it does not depend on its input's values",          \
        .kernels = rows, .kernel_count = 1                                                         \
    }
const struct troupe_op troupe_ops_random[] = {
    ROW("RandomUniform", "Numbers uniform in [0, 1), new ones in each step.", uniform_kernels),
    ROW("RandomStandardNormal", "Normal numbers of mean 0 and deviation 1, new in each step.",
        normal_kernels),
    ROW("TruncatedNormal", "Normal numbers of mean 0 and deviation 1, drawn again beyond 2.",
        truncated_kernels),
};
#undef ROW
const size_t troupe_ops_random_count = sizeof(troupe_ops_random) / sizeof(troupe_ops_random[0]);
