/* Kernels of neural networks. The loops are in nn.inc.h, one copy for each floating dtype.
 * Invariant: a row is reduced by one worker in one order, so that results do not depend on how rows
 * are split. */
#include "ops/kernels/nn.h"

#include <math.h>

#include "ops/kernels/math.h"
#include "ops/kernels/reduce.h"
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
static enum troupe_status run_rows(struct troupe_kernel_call *call, rows_fn *single, rows_fn *twice)
{
    struct troupe_tensor *out;
    struct troupe_shape shape;
    const void *in = troupe_tensor_data(call->inputs[0]);
    enum troupe_status status = troupe_call_shapes(call, &shape);
    if (status == TROUPE_OK)
        status = troupe_call_output_like(call, 0, 0, &out);
    if (status != TROUPE_OK)
        return status;
    struct rows rows = {.in = in, .out = troupe_tensor_data_mutable(out), .columns = last_of(out)};
    troupe_parallel_for(call->parallel, rows_of(out), grain_rows(rows.columns),
                        is_single(call) ? single : twice, &rows);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_softmax(struct troupe_kernel_call *call)
{
    return run_rows(call, softmax_float32, softmax_float64);
}

enum troupe_status troupe_kernel_log_softmax(struct troupe_kernel_call *call)
{
    return run_rows(call, log_softmax_float32, log_softmax_float64);
}

/* The axis of the channels. */
static int channel_axis(const struct troupe_kernel_call *call)
{
    const char *format = troupe_kernel_attr(call->kernel, "data_format")->value.s;
    int rank = troupe_tensor_rank(call->inputs[0]);
    return format[1] == 'C' && rank > 2 ? 1 : rank - 1;
}

enum troupe_status troupe_kernel_bias_add(struct troupe_kernel_call *call)
{
    const struct troupe_elementwise *add = &troupe_binary_kernels[TROUPE_BINARY_add];
    const struct troupe_tensor *inputs[] = {call->inputs[0], call->inputs[1]};
    struct troupe_tensor *out;
    struct troupe_shape shape;
    enum troupe_status status = troupe_call_shapes(call, &shape);
    if (status == TROUPE_OK)
        status = troupe_call_output_like(call, 0, 0, &out);
    if (status != TROUPE_OK)
        return status;
    /* The bias as a tensor that broadcasts: sizes of 1 behind the channels. */
    struct troupe_shape shapes[] = {shape, troupe_shape_scalar()};
    int axis = channel_axis(call);
    shapes[1].rank = shape.rank - axis;
    shapes[1].dims[0] = shape.dims[axis];
    for (int i = 1; i < shapes[1].rank; i++)
        shapes[1].dims[i] = 1;
    troupe_elementwise_apply(call->parallel, add->run[out->dtype], add->grain, out,
                             &(struct troupe_operands){2, inputs, shapes});
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_bias_add_grad(struct troupe_kernel_call *call)
{
    struct troupe_shape shape;
    enum troupe_status status = troupe_call_shapes(call, &shape);
    if (status == TROUPE_OK)
        status = troupe_call_sum(call, ~(1U << channel_axis(call)), &shape);
    return status;
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
