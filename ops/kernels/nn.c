/* Kernels of neural networks. The loops are in nn.inc.h, one copy for each floating dtype.
 * Invariant: a row is reduced by one worker in one order, so that results do not depend on how rows
 * are split. */
#include "ops/kernels/nn.h"

#include <math.h>
#include <string.h>

#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

/* Elements that one worker takes at least. */
#define TROUPE_NN_GRAIN 8192

/* What a loop over rows works on. Which fields count is up to the loop. */
struct rows {
    const void *in, *other; /* features; labels, a bias, or gradients */
    void *out, *second;
    int64_t columns;
    bool labels_are_long;
};

typedef void rows_fn(void *context, int64_t begin, int64_t end);

#define TYPE       float
#define NAME(stem) stem##_float32
#define EXP        expf
#define LOG        logf
#include "ops/kernels/nn.inc.h"
#undef TYPE
#undef NAME
#undef EXP
#undef LOG
#define TYPE       double
#define NAME(stem) stem##_float64
#define EXP        exp
#define LOG        log
#include "ops/kernels/nn.inc.h"
#undef TYPE
#undef NAME
#undef EXP
#undef LOG

static bool is_single(const struct troupe_kernel_call *call)
{
    return call->kernel->output_dtypes[0] == TROUPE_FLOAT32;
}

static int64_t grain_rows(int64_t columns)
{
    int64_t grain = columns > 0 ? TROUPE_NN_GRAIN / columns : TROUPE_NN_GRAIN;
    return grain > 0 ? grain : 1;
}

/* Rows and columns of a tensor whose last dimension is a row. */
static int64_t last_of(const struct troupe_tensor *tensor)
{
    return troupe_tensor_dims(tensor)[troupe_tensor_rank(tensor) - 1];
}

static int64_t rows_of(const struct troupe_tensor *tensor)
{
    int64_t columns = last_of(tensor);
    return columns > 0 ? troupe_tensor_elements(tensor) / columns : 0;
}

/* An op whose output has the shape of input 0, in place when that is free. */
static enum troupe_status run_rows(struct troupe_kernel_call *call, rows_fn *single, rows_fn *twice,
                                   int other)
{
    struct troupe_tensor *out;
    const void *in = troupe_tensor_data(call->inputs[0]);
    enum troupe_status status = troupe_call_output_like(call, 0, 0, &out);
    if (status != TROUPE_OK)
        return status;
    struct rows rows = {.in = in,
                        .other = other ? troupe_tensor_data(call->inputs[other]) : NULL,
                        .out = troupe_tensor_data_mutable(out),
                        .columns = last_of(out)};
    troupe_parallel_for(call->parallel, rows_of(out), grain_rows(rows.columns),
                        is_single(call) ? single : twice, &rows);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_softmax(struct troupe_kernel_call *call)
{
    return run_rows(call, softmax_float32, softmax_float64, 0);
}

enum troupe_status troupe_kernel_log_softmax(struct troupe_kernel_call *call)
{
    return run_rows(call, log_softmax_float32, log_softmax_float64, 0);
}

/* Element by element over the whole tensor. */
static enum troupe_status run_elements(struct troupe_kernel_call *call, rows_fn *single,
                                       rows_fn *twice, int other)
{
    struct troupe_tensor *out;
    const void *in = troupe_tensor_data(call->inputs[0]);
    enum troupe_status status = troupe_call_output_like(call, 0, 0, &out);
    if (status != TROUPE_OK)
        return status;
    struct rows rows = {.in = in,
                        .other = other ? troupe_tensor_data(call->inputs[other]) : NULL,
                        .out = troupe_tensor_data_mutable(out)};
    troupe_parallel_for(call->parallel, troupe_tensor_elements(out), TROUPE_NN_GRAIN,
                        is_single(call) ? single : twice, &rows);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_relu(struct troupe_kernel_call *call)
{
    return run_elements(call, relu_float32, relu_float64, 0);
}

enum troupe_status troupe_kernel_relu_grad(struct troupe_kernel_call *call)
{
    struct troupe_shape gradients = troupe_shape_of(call->inputs[0]);
    struct troupe_shape features = troupe_shape_of(call->inputs[1]);
    if (!troupe_shape_equal(&gradients, &features)) {
        char first[TROUPE_SHAPE_TEXT_MAX], second[TROUPE_SHAPE_TEXT_MAX];
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "wants inputs of one shape, got %s and %s",
            troupe_shape_print(&gradients, first), troupe_shape_print(&features, second));
    }
    return run_elements(call, relu_grad_float32, relu_grad_float64, 1);
}

/* A tensor with channels as [outer, channels, inner]. */
static void split_channels(const struct troupe_kernel_call *call,
                           const struct troupe_tensor *tensor, int64_t *outer, int64_t *channels,
                           int64_t *inner)
{
    const char *format = troupe_kernel_attr(call->kernel, "data_format")->value.s;
    int rank = troupe_tensor_rank(tensor);
    int axis = format[1] == 'C' && rank > 2 ? 1 : rank - 1;
    const int64_t *dims = troupe_tensor_dims(tensor);
    *outer = troupe_dims_product(dims, 0, axis);
    *channels = dims[axis];
    *inner = troupe_dims_product(dims, axis + 1, rank);
}

enum troupe_status troupe_kernel_bias_add(struct troupe_kernel_call *call)
{
    struct troupe_shape shape[1];
    enum troupe_status status = troupe_call_shapes(call, shape);
    if (status != TROUPE_OK)
        return status;
    int64_t outer, channels, inner;
    split_channels(call, call->inputs[0], &outer, &channels, &inner);
    const void *in = troupe_tensor_data(call->inputs[0]);
    struct troupe_tensor *out;
    status = troupe_call_output_like(call, 0, 0, &out);
    if (status != TROUPE_OK)
        return status;
    if (is_single(call))
        bias_add_float32(in, troupe_tensor_data(call->inputs[1]), troupe_tensor_data_mutable(out),
                         outer, channels, inner);
    else
        bias_add_float64(in, troupe_tensor_data(call->inputs[1]), troupe_tensor_data_mutable(out),
                         outer, channels, inner);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_bias_add_grad(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    int64_t outer, channels, inner;
    split_channels(call, call->inputs[0], &outer, &channels, &inner);
    struct troupe_tensor *out = call->outputs[0];
    memset(troupe_tensor_data_mutable(out), 0, troupe_tensor_bytes(out));
    if (is_single(call))
        bias_add_grad_float32(troupe_tensor_data(call->inputs[0]), troupe_tensor_data_mutable(out),
                              outer, channels, inner);
    else
        bias_add_grad_float64(troupe_tensor_data(call->inputs[0]), troupe_tensor_data_mutable(out),
                              outer, channels, inner);
    return TROUPE_OK;
}

/* ---- Cross entropies ---- */

static enum troupe_status run_cross_entropy(struct troupe_kernel_call *call, rows_fn *single,
                                            rows_fn *twice)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    struct rows rows = {.in = troupe_tensor_data(call->inputs[0]),
                        .other = troupe_tensor_data(call->inputs[1]),
                        .out = troupe_tensor_data_mutable(call->outputs[0]),
                        .second = troupe_tensor_data_mutable(call->outputs[1]),
                        .columns = troupe_tensor_dims(call->inputs[0])[1],
                        .labels_are_long = troupe_tensor_dtype(call->inputs[1]) == TROUPE_INT64};
    troupe_parallel_for(call->parallel, troupe_tensor_dims(call->inputs[0])[0],
                        grain_rows(rows.columns), is_single(call) ? single : twice, &rows);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_cross_entropy(struct troupe_kernel_call *call)
{
    return run_cross_entropy(call, cross_entropy_float32, cross_entropy_float64);
}

enum troupe_status troupe_kernel_sparse_cross_entropy(struct troupe_kernel_call *call)
{
    const struct troupe_tensor *labels = call->inputs[1];
    int64_t classes =
        troupe_tensor_rank(call->inputs[0]) == 2 ? troupe_tensor_dims(call->inputs[0])[1] : 0;
    for (int64_t i = 0; i < troupe_tensor_elements(labels); i++) {
        int64_t label = troupe_tensor_int(labels, i);
        if (label < 0 || label >= classes)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "label %lld in row %lld: wants 0 to %lld", (long long)label,
                                      (long long)i, (long long)classes - 1);
    }
    return run_cross_entropy(call, sparse_cross_entropy_float32, sparse_cross_entropy_float64);
}
