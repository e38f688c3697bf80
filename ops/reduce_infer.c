/* Shapes of reductions. Invariant: axes are checked wherever both they and the rank are known, and
 * what is known of one alone is told. */
#include "ops/reduce.h"

#include "ops/kernels/infer_inputs.h"
#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

enum troupe_status troupe_reduce_axes(const struct troupe_tensor *axes, int rank, unsigned *out)
{
    unsigned set = 0;
    for (int64_t i = 0; i < axes->elements; i++) {
        int axis;
        enum troupe_status status =
            troupe_axis_resolve(troupe_tensor_int(axes, i), rank, "axis", &axis);
        if (status != TROUPE_OK)
            return status;
        if (set & (1U << axis))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "axis %d is there twice: \"reduction_indices\" wants "
                                      "different axes",
                                      axis);
        set |= 1U << axis;
    }
    *out = set;
    return TROUPE_OK;
}

/* The shape that is left of `shape` without the axes of a set. */
static struct troupe_shape shape_without(const struct troupe_shape *shape, unsigned axes,
                                         bool keeps)
{
    struct troupe_shape left = troupe_shape_scalar();
    for (int i = 0; i < shape->rank; i++) {
        bool is_reduced = (axes & (1U << i)) != 0;
        if (!is_reduced || keeps)
            left.dims[left.rank++] = is_reduced ? 1 : shape->dims[i];
    }
    return left;
}

enum troupe_status troupe_infer_reduce(struct troupe_infer *infer)
{
    const struct troupe_shape *in = &infer->input_shapes[0], *axes = &infer->input_shapes[1];
    const struct troupe_tensor *value = infer->input_values[1];
    bool keeps = troupe_infer_bool(infer, "keep_dims");
    char text[TROUPE_SHAPE_TEXT_MAX];
    unsigned set = 0;
    if (axes->rank > 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"reduction_indices\" wants a scalar or a vector, got shape %s",
                                  troupe_shape_print(axes, text));
    if (in->rank < 0)
        return TROUPE_OK;
    if (value) {
        enum troupe_status status = troupe_reduce_axes(value, in->rank, &set);
        if (status == TROUPE_OK)
            infer->output_shapes[0] = shape_without(in, set, keeps);
        return status;
    }
    int64_t count = axes->rank == 0 ? 1 : axes->rank == 1 ? axes->dims[0] : TROUPE_DIM_UNKNOWN;
    if (count > in->rank)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"reduction_indices\" has %lld axes: wants at most the %d of %s",
                                  (long long)count, in->rank, troupe_shape_print(in, text));
    if (count == 0)
        infer->output_shapes[0] = *in;
    else if (count == in->rank)
        infer->output_shapes[0] = shape_without(in, ~0U, keeps);
    else if (keeps)
        infer->output_shapes[0] = troupe_shape_of_rank(in->rank);
    else if (count > 0)
        infer->output_shapes[0] = troupe_shape_of_rank(in->rank - (int)count);
    return TROUPE_OK;
}

enum troupe_status troupe_infer_arg(struct troupe_infer *infer)
{
    const struct troupe_shape *in = &infer->input_shapes[0];
    char text[TROUPE_SHAPE_TEXT_MAX];
    bool known;
    int64_t dimension;
    int axis;
    enum troupe_status status = troupe_infer_read_int(infer, 1, "dimension", &dimension, &known);
    if (status != TROUPE_OK || in->rank < 0)
        return status;
    if (in->rank == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s wants 1 dimension or more, got a scalar",
                                  infer->schema->op->name);
    infer->output_shapes[0] = troupe_shape_of_rank(in->rank - 1);
    if (!known)
        return TROUPE_OK;
    status = troupe_axis_resolve(dimension, in->rank, "dimension", &axis);
    if (status != TROUPE_OK)
        return status;
    infer->output_shapes[0] = shape_without(in, 1U << axis, false);
    if (in->dims[axis] == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s wants 1 entry or more along dimension %d, got shape %s",
                                  infer->schema->op->name, axis, troupe_shape_print(in, text));
    return TROUPE_OK;
}
