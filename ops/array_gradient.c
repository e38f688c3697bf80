/* Gradients of array ops, as nodes. Invariant: where an input's shape is known, the shape of its
 * gradient is known too, so that an all-reduce can be laid out before the run. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/array.h"
#include "ops/gradient.h"

/* ---- Shorthands ---- */

static struct troupe_value add3(struct troupe_gradient *gradient, const char *op,
                                struct troupe_value a, struct troupe_value b, struct troupe_value c)
{
    struct troupe_value inputs[] = {a, b, c};
    return troupe_gradient_add(gradient, op, inputs, 3, NULL, 0);
}

/* A node with an attr "axis". */
static struct troupe_value add_along(struct troupe_gradient *gradient, const char *op,
                                     const struct troupe_value *inputs, int count, int64_t axis)
{
    char name[] = "axis";
    struct troupe_named_attr attrs[] = {{name, troupe_attr_int(axis)}};
    return troupe_gradient_add(gradient, op, inputs, count, attrs, 1);
}

static struct troupe_value one_int(struct troupe_gradient *gradient, int32_t value)
{
    return troupe_gradient_ints(gradient, &value, 1);
}

static struct troupe_value int_scalar(struct troupe_gradient *gradient, double value)
{
    return troupe_gradient_scalar(gradient, TROUPE_INT32, value);
}

/* The ints from one scalar up to another. */
static struct troupe_value range(struct troupe_gradient *gradient, struct troupe_value begin,
                                 struct troupe_value end)
{
    return add3(gradient, "Range", begin, end, int_scalar(gradient, 1));
}

static bool is_none(struct troupe_value value)
{
    return value.node < 0;
}

/* An input that holds ints, as int32. */
static struct troupe_value int32_of(struct troupe_gradient *gradient, int input)
{
    char name[] = "DstT";
    struct troupe_named_attr attrs[] = {{name, troupe_attr_type(TROUPE_INT32)}};
    if (gradient->input_dtypes[input] == TROUPE_INT32)
        return gradient->inputs[input];
    return troupe_gradient_add(gradient, "Cast", &gradient->inputs[input], 1, attrs, 1);
}

/* A value reshaped to what input `input` is. */
static struct troupe_value reshaped(struct troupe_gradient *gradient, struct troupe_value value,
                                    int input)
{
    return troupe_gradient_binary(gradient, "Reshape", value,
                                  troupe_gradient_shape(gradient, gradient->inputs[input]));
}

/* A value that has the shape of input `input` in the run: says so where inference cannot tell. */
static struct troupe_value settled(struct troupe_gradient *gradient, struct troupe_value value,
                                   int input)
{
    const struct troupe_shape *wanted = &gradient->input_shapes[input];
    if (gradient->status != TROUPE_OK || !troupe_shape_is_known(wanted))
        return value;
    struct troupe_shape shape = gradient->shape_of(gradient, value);
    return troupe_shape_equal(&shape, wanted) ? value : reshaped(gradient, value, input);
}

/* The gradient of an output, or zeros where nothing flows. */
static struct troupe_value flow_or_zeros(struct troupe_gradient *gradient, int output)
{
    struct troupe_value flow = gradient->output_gradients[output];
    if (!is_none(flow))
        return flow;
    return troupe_gradient_binary(
        gradient, "Fill", troupe_gradient_shape(gradient, gradient->outputs[output]),
        troupe_gradient_scalar(gradient, gradient->output_dtypes[output], 0));
}

/* The gradients of all outputs, with room for one more value; free() frees. */
static struct troupe_value *all_flows(struct troupe_gradient *gradient)
{
    size_t count = (size_t)gradient->output_count;
    struct troupe_value *flows = troupe_calloc(count + 1, sizeof(*flows));
    for (int i = 0; flows && i < gradient->output_count; i++)
        flows[i] = flow_or_zeros(gradient, i);
    return flows;
}

/* ---- The same elements ---- */

enum troupe_status troupe_gradient_of_identity(struct troupe_gradient *gradient)
{
    gradient->input_gradients[0] = gradient->output_gradients[0];
    return TROUPE_OK;
}

enum troupe_status troupe_gradient_of_stop(struct troupe_gradient *gradient)
{
    gradient->input_gradients[0] = TROUPE_VALUE_NONE;
    return TROUPE_OK;
}

enum troupe_status troupe_gradient_of_reshape(struct troupe_gradient *gradient)
{
    gradient->input_gradients[0] = reshaped(gradient, gradient->output_gradients[0], 0);
    return gradient->status;
}

enum troupe_status troupe_gradient_of_transpose(struct troupe_gradient *gradient)
{
    struct troupe_value inverse =
        troupe_gradient_unary(gradient, "InvertPermutation", gradient->inputs[1]);
    struct troupe_value back =
        troupe_gradient_binary(gradient, "Transpose", gradient->output_gradients[0], inverse);
    gradient->input_gradients[0] = settled(gradient, back, 0);
    return gradient->status;
}

/* ---- Joined and taken apart ---- */

static enum troupe_status gradient_of_concat(struct troupe_gradient *gradient, int first,
                                             int axis_input)
{
    int count = gradient->input_count - 1;
    struct troupe_value flow = gradient->output_gradients[0];
    struct troupe_value *inputs = troupe_calloc((size_t)count + 1, sizeof(*inputs));
    if (!inputs)
        return TROUPE_RESOURCE_EXHAUSTED;
    inputs[0] = int32_of(gradient, axis_input);
    for (int i = 0; i < count; i++)
        inputs[i + 1] = troupe_gradient_shape(gradient, gradient->inputs[first + i]);
    struct troupe_value offset =
        troupe_gradient_add(gradient, "ConcatOffset", inputs, count + 1, NULL, 0);
    for (int i = 0; i < count && gradient->status == TROUPE_OK; i++) {
        struct troupe_value begin = {offset.node, i};
        struct troupe_value part = add3(gradient, "Slice", flow, begin, inputs[i + 1]);
        gradient->input_gradients[first + i] = settled(gradient, part, first + i);
    }
    free(inputs);
    return gradient->status;
}

enum troupe_status troupe_gradient_of_concat(struct troupe_gradient *gradient)
{
    return gradient_of_concat(gradient, 1, 0);
}

enum troupe_status troupe_gradient_of_concat_v2(struct troupe_gradient *gradient)
{
    return gradient_of_concat(gradient, 0, gradient->input_count - 1);
}

static enum troupe_status gradient_of_split(struct troupe_gradient *gradient, int value,
                                            int axis_input)
{
    int count = gradient->output_count;
    struct troupe_value *flows = all_flows(gradient);
    if (!flows)
        return TROUPE_RESOURCE_EXHAUSTED;
    struct troupe_value joined = flows[0];
    flows[count] = gradient->inputs[axis_input];
    if (count > 1)
        joined = troupe_gradient_add(gradient, "ConcatV2", flows, count + 1, NULL, 0);
    free(flows);
    gradient->input_gradients[value] = settled(gradient, joined, value);
    return gradient->status;
}

enum troupe_status troupe_gradient_of_split(struct troupe_gradient *gradient)
{
    return gradient_of_split(gradient, 1, 0);
}

enum troupe_status troupe_gradient_of_split_v(struct troupe_gradient *gradient)
{
    return gradient_of_split(gradient, 0, 2);
}

static int64_t axis_of(const struct troupe_gradient *gradient)
{
    return troupe_attr_find(gradient->attrs, gradient->attr_count, "axis")->value.i;
}

enum troupe_status troupe_gradient_of_pack(struct troupe_gradient *gradient)
{
    char axis[] = "axis", num[] = "num";
    struct troupe_named_attr attrs[] = {{axis, troupe_attr_int(axis_of(gradient))},
                                        {num, troupe_attr_int(gradient->input_count)}};
    struct troupe_value parts =
        troupe_gradient_add(gradient, "Unpack", gradient->output_gradients, 1, attrs, 2);
    for (int i = 0; i < gradient->input_count && gradient->status == TROUPE_OK; i++)
        gradient->input_gradients[i] = settled(gradient, (struct troupe_value){parts.node, i}, i);
    return gradient->status;
}

enum troupe_status troupe_gradient_of_unpack(struct troupe_gradient *gradient)
{
    struct troupe_value *flows = all_flows(gradient);
    if (!flows)
        return TROUPE_RESOURCE_EXHAUSTED;
    struct troupe_value packed =
        add_along(gradient, "Pack", flows, gradient->output_count, axis_of(gradient));
    free(flows);
    gradient->input_gradients[0] = settled(gradient, packed, 0);
    return gradient->status;
}

/* ---- Parts ---- */

enum troupe_status troupe_gradient_of_slice(struct troupe_gradient *gradient)
{
    struct troupe_value before = int32_of(gradient, 1);
    struct troupe_value whole = troupe_gradient_shape(gradient, gradient->inputs[0]);
    struct troupe_value part = troupe_gradient_shape(gradient, gradient->outputs[0]);
    struct troupe_value after = troupe_gradient_binary(
        gradient, "Sub", troupe_gradient_binary(gradient, "Sub", whole, before), part);
    struct troupe_value both[] = {before, after};
    struct troupe_value paddings = add_along(gradient, "Pack", both, 2, 1);
    struct troupe_value padded =
        troupe_gradient_binary(gradient, "Pad", gradient->output_gradients[0], paddings);
    gradient->input_gradients[0] = settled(gradient, padded, 0);
    return gradient->status;
}

/* ---- Repeated ---- */

/* The output's shape with each repeated dimension as two, and which axes are repetitions. False
 * when shapes are not known, or a tensor does not have that many dimensions. */
static bool repeated_shape(const struct troupe_gradient *gradient, int32_t dims[TROUPE_RANK_MAX],
                           int *rank, int32_t axes[TROUPE_RANK_MAX], int *axis_count)
{
    const struct troupe_shape *from = &gradient->input_shapes[0];
    const struct troupe_shape *to = &gradient->output_shapes[0];
    if (!troupe_shape_is_known(from) || !troupe_shape_is_known(to))
        return false;
    *rank = *axis_count = 0;
    for (int i = 0; i < from->rank; i++) {
        if (from->dims[i] == 0 || to->dims[i] > INT32_MAX || *rank + 2 > TROUPE_RANK_MAX)
            return false;
        if (to->dims[i] != from->dims[i]) {
            axes[(*axis_count)++] = *rank;
            dims[(*rank)++] = (int32_t)(to->dims[i] / from->dims[i]);
        }
        dims[(*rank)++] = (int32_t)from->dims[i];
    }
    return true;
}

enum troupe_status troupe_gradient_of_tile(struct troupe_gradient *gradient)
{
    int32_t dims[TROUPE_RANK_MAX], axes[TROUPE_RANK_MAX];
    int rank, axis_count;
    struct troupe_value flow = gradient->output_gradients[0], shape;
    if (repeated_shape(gradient, dims, &rank, axes, &axis_count)) {
        shape = troupe_gradient_ints(gradient, dims, rank);
    } else {
        rank = gradient->input_shapes[0].rank;
        if (rank < 0 || 2 * rank > TROUPE_RANK_MAX)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "the gradient of Tile wants known shapes, or a rank of 0 to "
                                      "%d",
                                      TROUPE_RANK_MAX / 2);
        struct troupe_value both[] = {int32_of(gradient, 1),
                                      troupe_gradient_shape(gradient, gradient->inputs[0])};
        shape = troupe_gradient_binary(gradient, "Reshape", add_along(gradient, "Pack", both, 2, 1),
                                       one_int(gradient, -1));
        axis_count = rank;
        for (int i = 0; i < rank; i++)
            axes[i] = 2 * i;
    }
    if (axis_count > 0)
        flow = troupe_gradient_binary(gradient, "Sum",
                                      troupe_gradient_binary(gradient, "Reshape", flow, shape),
                                      troupe_gradient_ints(gradient, axes, axis_count));
    gradient->input_gradients[0] = settled(gradient, flow, 0);
    return gradient->status;
}

/* The sum of all elements of a value that has the output's shape: the gradient of scalar input
 * `input`. */
static struct troupe_value sum_all(struct troupe_gradient *gradient, struct troupe_value value,
                                   int input)
{
    struct troupe_value axes;
    int32_t all[TROUPE_RANK_MAX];
    int rank = gradient->output_shapes[0].rank;
    for (int i = 0; i < rank; i++)
        all[i] = i;
    if (rank >= 0)
        axes = troupe_gradient_ints(gradient, all, rank);
    else
        axes = range(gradient, int_scalar(gradient, 0),
                     troupe_gradient_unary(gradient, "Rank", value));
    return settled(gradient, troupe_gradient_binary(gradient, "Sum", value, axes), input);
}

enum troupe_status troupe_gradient_of_pad(struct troupe_gradient *gradient)
{
    static const int32_t corner[] = {0, 0}, column[] = {-1, 1};
    struct troupe_value before =
        add3(gradient, "Slice", int32_of(gradient, 1), troupe_gradient_ints(gradient, corner, 2),
             troupe_gradient_ints(gradient, column, 2));
    before = troupe_gradient_binary(gradient, "Reshape", before, one_int(gradient, -1));
    struct troupe_value part = add3(gradient, "Slice", gradient->output_gradients[0], before,
                                    troupe_gradient_shape(gradient, gradient->inputs[0]));
    gradient->input_gradients[0] = settled(gradient, part, 0);
    /* PadV2's value is in every element that is not the input's. */
    if (gradient->input_count > 2)
        gradient->input_gradients[2] = troupe_gradient_binary(
            gradient, "Sub", sum_all(gradient, gradient->output_gradients[0], 2),
            sum_all(gradient, part, 2));
    return gradient->status;
}

enum troupe_status troupe_gradient_of_fill(struct troupe_gradient *gradient)
{
    gradient->input_gradients[1] = sum_all(gradient, gradient->output_gradients[0], 1);
    return gradient->status;
}

/* Each of the two constants gets the sum of what is at its places. */
enum troupe_status troupe_gradient_of_one_hot(struct troupe_gradient *gradient)
{
    struct troupe_value zero = troupe_gradient_scalar(gradient, gradient->output_dtypes[0], 0);
    struct troupe_value one = troupe_gradient_scalar(gradient, gradient->output_dtypes[0], 1);
    for (int i = 2; i < 4; i++) {
        struct troupe_value inputs[] = {gradient->inputs[0], gradient->inputs[1],
                                        i == 2 ? one : zero, i == 2 ? zero : one};
        struct troupe_value places = add_along(gradient, "OneHot", inputs, 4, axis_of(gradient));
        struct troupe_value flow =
            troupe_gradient_binary(gradient, "Mul", gradient->output_gradients[0], places);
        gradient->input_gradients[i] = sum_all(gradient, flow, i);
    }
    return gradient->status;
}

enum troupe_status troupe_gradient_of_broadcast_to(struct troupe_gradient *gradient)
{
    struct troupe_value sum = troupe_gradient_unbroadcast(
        gradient, gradient->output_gradients[0], gradient->inputs[0], gradient->outputs[0]);
    gradient->input_gradients[0] = settled(gradient, sum, 0);
    return gradient->status;
}

/* ---- Picked by index ---- */

enum troupe_status troupe_gradient_of_gather(struct troupe_gradient *gradient)
{
    struct troupe_value shape = troupe_gradient_shape(gradient, gradient->inputs[0]);
    struct troupe_value rows =
        add3(gradient, "Slice", shape, one_int(gradient, 0), one_int(gradient, 1));
    struct troupe_value sum = add3(gradient, "UnsortedSegmentSum", gradient->output_gradients[0],
                                   gradient->inputs[1], rows);
    gradient->input_gradients[0] = settled(gradient, sum, 0);
    return gradient->status;
}

static struct troupe_value joined(struct troupe_gradient *gradient, struct troupe_value a,
                                  struct troupe_value b, struct troupe_value c)
{
    struct troupe_value inputs[] = {a, b, c, int_scalar(gradient, 0)};
    return troupe_gradient_add(gradient, "ConcatV2", inputs, 4, NULL, 0);
}

/* Input 2 as a scalar that counts from the front: axis + rank * min(1, max(0, -axis)). */
static struct troupe_value axis_from_front(struct troupe_gradient *gradient)
{
    struct troupe_value axis = int32_of(gradient, 2);
    struct troupe_value rank = troupe_gradient_unary(gradient, "Rank", gradient->inputs[0]);
    struct troupe_value negative = troupe_gradient_binary(
        gradient, "Minimum", int_scalar(gradient, 1),
        troupe_gradient_binary(gradient, "Maximum", int_scalar(gradient, 0),
                               troupe_gradient_unary(gradient, "Neg", axis)));
    struct troupe_value sum = troupe_gradient_binary(
        gradient, "Add", axis, troupe_gradient_binary(gradient, "Mul", rank, negative));
    return troupe_gradient_binary(gradient, "Reshape", sum,
                                  troupe_gradient_ints(gradient, NULL, 0));
}

/* The gathered axes go to the front, rows are summed by index, and the axis goes back. */
enum troupe_status troupe_gradient_of_gather_v2(struct troupe_gradient *gradient)
{
    const struct troupe_attr *batch =
        troupe_attr_find(gradient->attrs, gradient->attr_count, "batch_dims");
    if (batch->value.i != 0)
        return troupe_status_fail(TROUPE_UNIMPLEMENTED,
                                  "there is no gradient of GatherV2 with attr \"batch_dims\" other "
                                  "than 0");
    struct troupe_value flow = gradient->output_gradients[0], params = gradient->inputs[0];
    struct troupe_value zero = int_scalar(gradient, 0), one = int_scalar(gradient, 1);
    struct troupe_value axis = axis_from_front(gradient);
    struct troupe_value next = troupe_gradient_binary(gradient, "Add", axis, one);
    struct troupe_value end = troupe_gradient_binary(
        gradient, "Add", axis, troupe_gradient_unary(gradient, "Rank", gradient->inputs[1]));
    struct troupe_value to_front =
        joined(gradient, range(gradient, axis, end), range(gradient, zero, axis),
               range(gradient, end, troupe_gradient_unary(gradient, "Rank", flow)));
    struct troupe_value to_back =
        joined(gradient, range(gradient, one, next), one_int(gradient, 0),
               range(gradient, next, troupe_gradient_unary(gradient, "Rank", params)));
    struct troupe_value vector =
        troupe_gradient_binary(gradient, "Reshape", axis, one_int(gradient, 1));
    struct troupe_value rows = add3(gradient, "Slice", troupe_gradient_shape(gradient, params),
                                    vector, one_int(gradient, 1));
    struct troupe_value sum = add3(gradient, "UnsortedSegmentSum",
                                   troupe_gradient_binary(gradient, "Transpose", flow, to_front),
                                   gradient->inputs[1], rows);
    sum = troupe_gradient_binary(gradient, "Transpose", sum, to_back);
    gradient->input_gradients[0] = settled(gradient, sum, 0);
    return gradient->status;
}

/* Each row gets its segment's gradient, and a dropped row none. */
enum troupe_status troupe_gradient_of_unsorted_segment_sum(struct troupe_gradient *gradient)
{
    int rank = gradient->input_shapes[0].rank, id_rank = gradient->input_shapes[1].rank;
    if (rank < 0 || id_rank < 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "the gradient of UnsortedSegmentSum wants known ranks");
    char name[] = "DstT";
    struct troupe_named_attr attrs[] = {{name, troupe_attr_type(gradient->input_dtypes[0])}};
    struct troupe_value ids = int32_of(gradient, 1), zero = int_scalar(gradient, 0);
    struct troupe_value rows =
        troupe_gradient_binary(gradient, "Gather", gradient->output_gradients[0],
                               troupe_gradient_binary(gradient, "Maximum", ids, zero));
    /* max(0, min(1, id + 1)) is 1 for an id that counts and 0 for a negative one. */
    struct troupe_value one = int_scalar(gradient, 1);
    struct troupe_value kept = troupe_gradient_binary(
        gradient, "Maximum",
        troupe_gradient_binary(gradient, "Minimum",
                               troupe_gradient_binary(gradient, "Add", ids, one), one),
        zero);
    kept = troupe_gradient_add(gradient, "Cast", &kept, 1, attrs, 1);
    for (int i = id_rank; i < rank; i++)
        kept = troupe_gradient_binary(gradient, "ExpandDims", kept, int_scalar(gradient, -1));
    gradient->input_gradients[0] =
        settled(gradient, troupe_gradient_binary(gradient, "Mul", rows, kept), 0);
    return gradient->status;
}
