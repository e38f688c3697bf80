/* Ops of neural networks: bias, rectifier, softmax and the cross entropies. */
#include "ops/kernels/nn.h"
#include "ops/families.h"
#include "ops/gradient.h"
#include "ops/kernels/math.h"

/* ---- Shapes ---- */

/* The dimension that a bias is added along. */
static int channel_axis(const struct troupe_infer *infer, int rank)
{
    const struct troupe_attr *format = troupe_infer_attr(infer, "data_format");
    return format->value.s[1] == 'C' && rank > 2 ? 1 : rank - 1;
}

static enum troupe_status infer_bias_add(struct troupe_infer *infer)
{
    const struct troupe_shape *value = &infer->input_shapes[0], *bias = &infer->input_shapes[1];
    char value_text[TROUPE_SHAPE_TEXT_MAX], bias_text[TROUPE_SHAPE_TEXT_MAX];
    troupe_shape_print(value, value_text);
    troupe_shape_print(bias, bias_text);
    infer->output_shapes[0] = *value;
    if ((value->rank >= 0 && value->rank < 2) || (bias->rank >= 0 && bias->rank != 1))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "BiasAdd wants a value of 2 dimensions or more and a vector, got "
                                  "%s and %s",
                                  value_text, bias_text);
    if (value->rank < 0 || bias->rank < 0)
        return TROUPE_OK;
    int64_t *channels = &infer->output_shapes[0].dims[channel_axis(infer, value->rank)];
    if (*channels >= 0 && bias->dims[0] >= 0 && *channels != bias->dims[0])
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "BiasAdd wants a bias of %lld numbers for %s, got %s",
                                  (long long)*channels, value_text, bias_text);
    if (*channels < 0)
        *channels = bias->dims[0];
    return TROUPE_OK;
}

static enum troupe_status infer_bias_add_grad(struct troupe_infer *infer)
{
    const struct troupe_shape *shape = &infer->input_shapes[0];
    int64_t dims[] = {TROUPE_DIM_UNKNOWN};
    if (shape->rank == 0 || shape->rank == 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "BiasAddGrad wants 2 dimensions or more");
    if (shape->rank > 1)
        dims[0] = shape->dims[channel_axis(infer, shape->rank)];
    infer->output_shapes[0] = troupe_shape_make(1, dims);
    return TROUPE_OK;
}

static enum troupe_status infer_same_shapes(struct troupe_infer *infer)
{
    char first[TROUPE_SHAPE_TEXT_MAX], second[TROUPE_SHAPE_TEXT_MAX];
    if (troupe_shape_merge(&infer->input_shapes[0], &infer->input_shapes[1],
                           &infer->output_shapes[0]) == TROUPE_OK)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants inputs of one shape, got %s and %s",
                              troupe_shape_print(&infer->input_shapes[0], first),
                              troupe_shape_print(&infer->input_shapes[1], second));
}

static enum troupe_status infer_softmax(struct troupe_infer *infer)
{
    infer->output_shapes[0] = infer->input_shapes[0];
    if (infer->input_shapes[0].rank == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s wants 1 dimension or more, got a scalar",
                                  infer->schema->op->name);
    return TROUPE_OK;
}

/* features [rows, classes] and labels: of the same shape, or [rows] when sparse. */
static enum troupe_status infer_cross_entropy_of(struct troupe_infer *infer, bool is_sparse)
{
    const struct troupe_shape *features = &infer->input_shapes[0];
    const struct troupe_shape *labels = &infer->input_shapes[1];
    char features_text[TROUPE_SHAPE_TEXT_MAX], labels_text[TROUPE_SHAPE_TEXT_MAX];
    int64_t both[] = {TROUPE_DIM_UNKNOWN, TROUPE_DIM_UNKNOWN};
    struct troupe_shape matrix = troupe_shape_make(2, both), merged;
    enum troupe_status status = troupe_shape_merge(features, &matrix, &merged);
    struct troupe_shape wanted = merged;
    if (status == TROUPE_OK && is_sparse)
        wanted.rank = 1;
    struct troupe_shape agreed = wanted;
    if (status == TROUPE_OK)
        status = troupe_shape_merge(labels, &wanted, &agreed);
    if (status != TROUPE_OK)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s wants features [rows,classes] and labels %s, got %s and %s",
                                  infer->schema->op->name, is_sparse ? "[rows]" : "of that shape",
                                  troupe_shape_print(features, features_text),
                                  troupe_shape_print(labels, labels_text));
    merged.dims[0] = agreed.dims[0];
    if (!is_sparse)
        merged.dims[1] = agreed.dims[1];
    infer->output_shapes[0] = troupe_shape_make(1, merged.dims);
    infer->output_shapes[1] = merged;
    return TROUPE_OK;
}

static enum troupe_status infer_cross_entropy(struct troupe_infer *infer)
{
    return infer_cross_entropy_of(infer, false);
}

static enum troupe_status infer_sparse_cross_entropy(struct troupe_infer *infer)
{
    return infer_cross_entropy_of(infer, true);
}

/* ---- Gradients ---- */

static enum troupe_status gradient_bias_add(struct troupe_gradient *gradient)
{
    const struct troupe_attr *format =
        troupe_attr_find(gradient->attrs, gradient->attr_count, "data_format");
    char name[] = "data_format";
    struct troupe_named_attr attrs[] = {{name, troupe_attr_copy(format)}};
    gradient->input_gradients[0] = gradient->output_gradients[0];
    gradient->input_gradients[1] =
        troupe_gradient_add(gradient, "BiasAddGrad", &gradient->output_gradients[0], 1, attrs, 1);
    return gradient->status;
}

static enum troupe_status gradient_relu(struct troupe_gradient *gradient)
{
    gradient->input_gradients[0] = troupe_gradient_binary(
        gradient, "ReluGrad", gradient->output_gradients[0], gradient->inputs[0]);
    return gradient->status;
}

/* The sum over the last dimension, kept with size 1. */
static struct troupe_value sum_last(struct troupe_gradient *gradient, struct troupe_value value)
{
    char name[] = "keep_dims";
    struct troupe_named_attr attrs[] = {{name, troupe_attr_bool(true)}};
    struct troupe_value inputs[] = {value, troupe_gradient_scalar(gradient, TROUPE_INT32, -1)};
    return troupe_gradient_add(gradient, "Sum", inputs, 2, attrs, 1);
}

/* y = softmax(x): dx = (dy - sum(dy * y)) * y. */
static enum troupe_status gradient_softmax(struct troupe_gradient *gradient)
{
    struct troupe_value y = gradient->outputs[0], dy = gradient->output_gradients[0];
    struct troupe_value sum = sum_last(gradient, troupe_gradient_binary(gradient, "Mul", dy, y));
    gradient->input_gradients[0] = troupe_gradient_binary(
        gradient, "Mul", troupe_gradient_binary(gradient, "Sub", dy, sum), y);
    return gradient->status;
}

/* y = log(softmax(x)): dx = dy - sum(dy) * exp(y). */
static enum troupe_status gradient_log_softmax(struct troupe_gradient *gradient)
{
    struct troupe_value y = gradient->outputs[0], dy = gradient->output_gradients[0];
    struct troupe_value share = troupe_gradient_binary(gradient, "Mul", sum_last(gradient, dy),
                                                       troupe_gradient_unary(gradient, "Exp", y));
    gradient->input_gradients[0] = troupe_gradient_binary(gradient, "Sub", dy, share);
    return gradient->status;
}

/* The op's second output is d loss / d features: each row is scaled by what flows into its loss. */
static struct troupe_value scale_rows(struct troupe_gradient *gradient, struct troupe_value rows,
                                      struct troupe_value matrix)
{
    struct troupe_value column = troupe_gradient_binary(
        gradient, "ExpandDims", rows, troupe_gradient_scalar(gradient, TROUPE_INT32, -1));
    return troupe_gradient_binary(gradient, "Mul", matrix, column);
}

static enum troupe_status check_first_order(const struct troupe_gradient *gradient)
{
    if (gradient->output_gradients[1].node < 0)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_UNIMPLEMENTED,
                              "%s has no second derivative: its output \"backprop\" is used",
                              gradient->schema->op->name);
}

static enum troupe_status gradient_sparse_cross_entropy(struct troupe_gradient *gradient)
{
    enum troupe_status status = check_first_order(gradient);
    if (status != TROUPE_OK)
        return status;
    gradient->input_gradients[0] =
        scale_rows(gradient, gradient->output_gradients[0], gradient->outputs[1]);
    return gradient->status;
}

/* d loss / d labels = -log(softmax(features)). */
static enum troupe_status gradient_cross_entropy(struct troupe_gradient *gradient)
{
    enum troupe_status status = check_first_order(gradient);
    if (status != TROUPE_OK)
        return status;
    struct troupe_value flow = gradient->output_gradients[0];
    gradient->input_gradients[0] = scale_rows(gradient, flow, gradient->outputs[1]);
    struct troupe_value log = troupe_gradient_unary(
        gradient, "Neg", troupe_gradient_unary(gradient, "LogSoftmax", gradient->inputs[0]));
    gradient->input_gradients[1] = scale_rows(gradient, flow, log);
    return gradient->status;
}

/* ---- The table ---- */

#define TROUPE_FLOATS (TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64))
#define TROUPE_KERNEL(function)                                                                    \
    {                                                                                              \
        .device = "CPU", .type_attr = "T", .dtypes = TROUPE_FLOATS, .compute = function            \
    }

static const struct troupe_kernel_row bias_add_row = TROUPE_KERNEL(troupe_kernel_bias_add);
static const struct troupe_kernel_row bias_add_grad_row =
    TROUPE_KERNEL(troupe_kernel_bias_add_grad);
static const struct troupe_kernel_row softmax_row = TROUPE_KERNEL(troupe_kernel_softmax);
static const struct troupe_kernel_row log_softmax_row = TROUPE_KERNEL(troupe_kernel_log_softmax);
static const struct troupe_kernel_row cross_entropy_row =
    TROUPE_KERNEL(troupe_kernel_cross_entropy);
static const struct troupe_kernel_row sparse_cross_entropy_row =
    TROUPE_KERNEL(troupe_kernel_sparse_cross_entropy);

#define TROUPE_FORMAT "data_format: {'NHWC', 'NCHW'} = 'NHWC'"

const struct troupe_op troupe_ops_nn[] = {
    {.name = "BiasAdd",
     .doc = "Adds a vector along the channels: the last dimension, or the second with NCHW.",
     .inputs = "value: T, bias: T",
     .outputs = "output: T",
     .attrs = "T: {float32, float64}; " TROUPE_FORMAT,
     .infer = infer_bias_add,
     .gradient = gradient_bias_add,
     .kernels = &bias_add_row,
     .kernel_count = 1},
    {.name = "BiasAddGrad",
     .doc = "The gradient of BiasAdd for its bias: the sum over all dimensions but the channels.",
     .inputs = "out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: {float32, float64}; " TROUPE_FORMAT,
     .infer = infer_bias_add_grad,
     .no_gradient = "second derivatives of BiasAdd are not there",
     .kernels = &bias_add_grad_row,
     .kernel_count = 1},
    {.name = "Relu",
     .doc = "max(features, 0); NaN stays NaN.",
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: {float32, float64, int32, int64, uint8}",
     .infer = troupe_infer_unchanged,
     .gradient = gradient_relu,
     .kernels = &troupe_unary_kernels[TROUPE_UNARY_relu].row,
     .kernel_count = 1},
    {.name = "ReluGrad",
     .doc = "The gradient of Relu: gradients where features > 0, else 0.",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "T: {float32, float64, int32, int64, uint8}",
     .infer = infer_same_shapes,
     .no_gradient = "second derivatives of Relu are not there",
     .kernels = &troupe_binary_kernels[TROUPE_BINARY_relu_grad].row,
     .kernel_count = 1},
    {.name = "Softmax",
     .doc = "exp(logits) over its sum along the last dimension.",
     .inputs = "logits: T",
     .outputs = "softmax: T",
     .attrs = "T: {float32, float64}",
     .infer = infer_softmax,
     .gradient = gradient_softmax,
     .kernels = &softmax_row,
     .kernel_count = 1},
    {.name = "LogSoftmax",
     .doc = "The logarithm of Softmax, without its loss of digits.",
     .inputs = "logits: T",
     .outputs = "logsoftmax: T",
     .attrs = "T: {float32, float64}",
     .infer = infer_softmax,
     .gradient = gradient_log_softmax,
     .kernels = &log_softmax_row,
     .kernel_count = 1},
    {.name = "SoftmaxCrossEntropyWithLogits",
     .doc = "The cross entropy of each row's softmax with its label distribution, and the gradient "
            "for the features.",
     .inputs = "features: T, labels: T",
     .outputs = "loss: T, backprop: T",
     .attrs = "T: {float32, float64}",
     .infer = infer_cross_entropy,
     .gradient = gradient_cross_entropy,
     .kernels = &cross_entropy_row,
     .kernel_count = 1},
    {.name = "SparseSoftmaxCrossEntropyWithLogits",
     .doc = "The cross entropy of each row's softmax with the class that its label names, and the "
            "gradient for the features.",
     .inputs = "features: T, labels: Tlabels",
     .outputs = "loss: T, backprop: T",
     .attrs = "T: {float32, float64}; Tlabels: {int32, int64} = int64",
     .infer = infer_sparse_cross_entropy,
     .gradient = gradient_sparse_cross_entropy,
     .kernels = &sparse_cross_entropy_row,
     .kernel_count = 1},
};
const size_t troupe_ops_nn_count = sizeof(troupe_ops_nn) / sizeof(troupe_ops_nn[0]);
