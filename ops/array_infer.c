/* Shape functions of array ops that say or change a shape. Invariant: with every input known, every
 * output shape is known, since kernels take their output shapes from here. */
#include <math.h>
#include <string.h>

#include "ops/array.h"
#include "ops/kernels/infer_inputs.h"
#include "ops/kernels/shapes.h"

enum troupe_status troupe_infer_const(struct troupe_infer *infer)
{
    const struct troupe_tensor *value = troupe_infer_attr(infer, "value")->value.tensor;
    enum troupe_dtype dtype = troupe_infer_attr(infer, "dtype")->value.type;
    if (troupe_tensor_dtype(value) != dtype)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "attr \"value\" is of %s, and attr \"dtype\" says %s",
            troupe_dtype_name(troupe_tensor_dtype(value)), troupe_dtype_name(dtype));
    infer->output_shapes[0] = troupe_shape_of(value);
    return TROUPE_OK;
}

/* Reads sizes of a wanted shape; `open` is the position of a -1, where that is allowed. */
static enum troupe_status read_sizes(const struct troupe_infer_ints *ints, const char *name,
                                     bool may_be_open, struct troupe_shape *out, int *open)
{
    *open = -1;
    *out = troupe_shape_of_rank(ints->count);
    for (int i = 0; ints->known && i < ints->count; i++) {
        int64_t size = ints->values[i];
        if (size < 0 && (!may_be_open || size != -1))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"%s\" has a size of %lld: wants %s", name, (long long)size,
                                      may_be_open ? "0 or more, or one -1" : "0 or more");
        if (size == -1 && *open >= 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"%s\" has more than one -1", name);
        if (size == -1)
            *open = i;
        else
            out->dims[i] = size;
    }
    return TROUPE_OK;
}

/* The product of the sizes that are known and not at `skip`; false when it overflows. */
static bool known_product(const struct troupe_shape *shape, int skip, int64_t *out)
{
    *out = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (i != skip && __builtin_mul_overflow(*out, shape->dims[i], out))
            return false;
    }
    return true;
}

static enum troupe_status reshape_fails(const struct troupe_shape *from,
                                        const struct troupe_shape *to, const char *why)
{
    char from_text[TROUPE_SHAPE_TEXT_MAX], to_text[TROUPE_SHAPE_TEXT_MAX];
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "shape %s does not reshape to %s: %s",
                              troupe_shape_print(from, from_text), troupe_shape_print(to, to_text),
                              why);
}

enum troupe_status troupe_infer_reshape(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0];
    struct troupe_infer_ints ints;
    struct troupe_shape to;
    int open;
    enum troupe_status status = troupe_infer_read_ints(infer, 1, "shape", &ints);
    if (status == TROUPE_OK)
        status = read_sizes(&ints, "shape", true, &to, &open);
    if (status != TROUPE_OK)
        return status;
    int64_t elements, product;
    if (ints.known && troupe_shape_is_known(from)) {
        elements = troupe_shape_elements(from);
        if (!known_product(&to, open, &product))
            return reshape_fails(from, &to, "its sizes multiply to too much");
        if (open < 0 && product != elements)
            return reshape_fails(from, &to, "the numbers of elements differ");
        if (open >= 0 && product == 0)
            return reshape_fails(from, &to, "a -1 beside a 0 could be any size");
        if (open >= 0 && elements % product != 0)
            return reshape_fails(from, &to, "the number of elements does not divide");
        if (open >= 0)
            to.dims[open] = elements / product;
    }
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_transpose(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0];
    struct troupe_infer_ints perm;
    enum troupe_status status = troupe_infer_read_ints(infer, 1, "perm", &perm);
    if (status != TROUPE_OK)
        return status;
    if (perm.count >= 0 && from->rank >= 0 && perm.count != from->rank) {
        char text[TROUPE_SHAPE_TEXT_MAX];
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"perm\" has %d entries: shape %s wants %d", perm.count,
                                  troupe_shape_print(from, text), from->rank);
    }
    struct troupe_shape to = troupe_shape_of_rank(perm.count >= 0 ? perm.count : from->rank);
    unsigned seen = 0;
    for (int i = 0; perm.known && i < perm.count; i++) {
        int64_t axis = perm.values[i];
        if (axis < 0 || axis >= perm.count || (seen & 1u << axis))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"perm\" wants each of 0 to %d once: entry %d is %lld",
                                      perm.count - 1, i, (long long)axis);
        seen |= 1u << axis;
        if (from->rank >= 0)
            to.dims[i] = from->dims[axis];
    }
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_expand_dims(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0];
    int64_t axis;
    bool known;
    int at;
    enum troupe_status status = troupe_infer_read_int(infer, 1, "dim", &axis, &known);
    if (status != TROUPE_OK || from->rank < 0)
        return status;
    if (from->rank == TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor has at most %d dimensions",
                                  TROUPE_RANK_MAX);
    struct troupe_shape to = troupe_shape_of_rank(from->rank + 1);
    if (known) {
        status = troupe_axis_resolve(axis, to.rank, "dim", &at);
        if (status != TROUPE_OK)
            return status;
        for (int i = 0; i < to.rank; i++)
            to.dims[i] = i < at ? from->dims[i] : i == at ? 1 : from->dims[i - 1];
    }
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_squeeze(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0];
    const struct troupe_attr *dims = troupe_infer_attr(infer, "squeeze_dims");
    unsigned drop = 0;
    char text[TROUPE_SHAPE_TEXT_MAX];
    if (from->rank < 0)
        return TROUPE_OK;
    for (size_t i = 0; i < dims->count; i++) {
        int axis;
        enum troupe_status status =
            troupe_axis_resolve(dims->value.list_i[i], from->rank, "squeeze_dims", &axis);
        if (status != TROUPE_OK)
            return status;
        if (from->dims[axis] >= 0 && from->dims[axis] != 1)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "shape %s: dimension %d is not 1 and cannot be dropped",
                                      troupe_shape_print(from, text), axis);
        drop |= 1u << axis;
    }
    struct troupe_shape to = {.rank = 0};
    for (int i = 0; i < from->rank; i++) {
        if (dims->count == 0 && from->dims[i] < 0)
            return TROUPE_OK; /* it may be 1, so that not even the rank is known */
        if (dims->count == 0 ? from->dims[i] != 1 : !(drop & 1u << i))
            to.dims[to.rank++] = from->dims[i];
    }
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_fill(struct troupe_infer *infer)
{
    struct troupe_infer_ints ints;
    int open;
    enum troupe_status status = troupe_infer_read_ints(infer, 0, "dims", &ints);
    if (status == TROUPE_OK)
        status = troupe_infer_want_scalar(infer, 1, "value");
    if (status == TROUPE_OK)
        status = read_sizes(&ints, "dims", false, &infer->output_shapes[0], &open);
    return status;
}

enum troupe_status troupe_infer_broadcast_to(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0];
    struct troupe_infer_ints ints;
    struct troupe_shape to, both;
    int open;
    char from_text[TROUPE_SHAPE_TEXT_MAX], to_text[TROUPE_SHAPE_TEXT_MAX];
    enum troupe_status status = troupe_infer_read_ints(infer, 1, "shape", &ints);
    if (status == TROUPE_OK)
        status = read_sizes(&ints, "shape", false, &to, &open);
    if (status != TROUPE_OK)
        return status;
    if (to.rank >= 0 && from->rank >= 0) {
        bool fits = troupe_shape_broadcast(from, &to, &both) == TROUPE_OK && both.rank == to.rank;
        for (int i = 0; fits && i < to.rank; i++)
            fits = to.dims[i] < 0 || both.dims[i] < 0 || both.dims[i] == to.dims[i];
        if (!fits)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "shape %s does not broadcast to %s",
                                      troupe_shape_print(from, from_text),
                                      troupe_shape_print(&to, to_text));
    }
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

static double number_of(const struct troupe_tensor *tensor)
{
    const void *data = troupe_tensor_data(tensor);
    switch (troupe_tensor_dtype(tensor)) {
    case TROUPE_FLOAT32:
        return (double)((const float *)data)[0];
    case TROUPE_FLOAT64:
        return ((const double *)data)[0];
    default:
        return (double)troupe_tensor_int(tensor, 0);
    }
}

/* How many numbers lie in [start, limit) at distances of delta. */
static enum troupe_status range_count(const struct troupe_tensor *const *values, int64_t *out)
{
    double start = number_of(values[0]), limit = number_of(values[1]), delta = number_of(values[2]);
    bool whole = !troupe_dtype_is_floating(troupe_tensor_dtype(values[0]));
    if (!(fabs(delta) > 0))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"delta\" is %g: wants not 0", delta);
    if (delta > 0 ? start > limit : start < limit)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "from \"start\" %g by \"delta\" %g never comes to \"limit\" %g",
                                  start, delta, limit);
    double count = ceil(fabs((limit - start) / delta));
    if (!(count < 0x1p53))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "from %g to %g by %g are more numbers than a tensor holds", start,
                                  limit, delta);
    *out = (int64_t)count;
    if (whole) {
        /* Exact beyond 2^53: unsigned differences of two's complement numbers do not overflow. */
        uint64_t from = (uint64_t)troupe_tensor_int(values[0], 0);
        uint64_t to = (uint64_t)troupe_tensor_int(values[1], 0);
        uint64_t step = (uint64_t)troupe_tensor_int(values[2], 0);
        uint64_t distance = delta > 0 ? to - from : from - to, by = delta > 0 ? step : 0 - step;
        *out = (int64_t)(distance / by + (distance % by != 0));
    }
    return TROUPE_OK;
}

enum troupe_status troupe_infer_range(struct troupe_infer *infer)
{
    static const char *const names[] = {"start", "limit", "delta"};
    bool known = true;
    for (int i = 0; i < 3; i++) {
        enum troupe_status status = troupe_infer_want_scalar(infer, i, names[i]);
        if (status != TROUPE_OK)
            return status;
        known = known && infer->input_values[i];
    }
    struct troupe_shape to = troupe_shape_of_rank(1);
    enum troupe_status status = known ? range_count(infer->input_values, &to.dims[0]) : TROUPE_OK;
    if (status == TROUPE_OK)
        infer->output_shapes[0] = to;
    return status;
}

enum troupe_status troupe_infer_one_hot(struct troupe_infer *infer)
{
    static const char *const names[] = {"indices", "depth", "on_value", "off_value"};
    const struct troupe_shape *from = &infer->input_shapes[0];
    int64_t axis = troupe_infer_int(infer, "axis");
    int at;
    for (int i = 1; i < 4; i++) {
        enum troupe_status status = troupe_infer_want_scalar(infer, i, names[i]);
        if (status != TROUPE_OK)
            return status;
    }
    if (from->rank < 0)
        return TROUPE_OK;
    if (from->rank == TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor has at most %d dimensions",
                                  TROUPE_RANK_MAX);
    struct troupe_shape to = troupe_shape_of_rank(from->rank + 1);
    if (axis < -1 || axis > from->rank)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "attr \"axis\" is %lld: wants -1 to %d",
                                  (long long)axis, from->rank);
    enum troupe_status status = troupe_axis_resolve(axis, to.rank, "attr \"axis\"", &at);
    if (status != TROUPE_OK)
        return status;
    int64_t depth = TROUPE_DIM_UNKNOWN;
    if (infer->input_values[1]) {
        depth = troupe_tensor_int(infer->input_values[1], 0);
        if (depth < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"depth\" is %lld: wants 0 or more",
                                      (long long)depth);
    }
    for (int i = 0; i < to.rank; i++)
        to.dims[i] = i < at ? from->dims[i] : i == at ? depth : from->dims[i - 1];
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_shape(struct troupe_infer *infer)
{
    struct troupe_shape to = troupe_shape_of_rank(1);
    to.dims[0] = infer->input_shapes[0].rank < 0 ? TROUPE_DIM_UNKNOWN : infer->input_shapes[0].rank;
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_invert_permutation(struct troupe_infer *infer)
{
    struct troupe_shape vector = troupe_shape_of_rank(1);
    char text[TROUPE_SHAPE_TEXT_MAX];
    if (troupe_shape_merge(&vector, &infer->input_shapes[0], &infer->output_shapes[0]) != TROUPE_OK)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"x\" wants a vector, got shape %s",
                                  troupe_shape_print(&infer->input_shapes[0], text));
    return TROUPE_OK;
}

/* The axes along which s0 and s1 are broadcast against each other. */
enum troupe_status troupe_infer_broadcast_gradient_args(struct troupe_infer *infer)
{
    static const char *const names[] = {"s0", "s1"};
    struct troupe_infer_ints ints[2];
    struct troupe_shape shapes[2], wide;
    int open;
    bool known = true;
    for (int i = 0; i < 2; i++) {
        enum troupe_status status = troupe_infer_read_ints(infer, i, names[i], &ints[i]);
        if (status == TROUPE_OK)
            status = read_sizes(&ints[i], names[i], false, &shapes[i], &open);
        if (status != TROUPE_OK)
            return status;
        known = known && ints[i].known;
        infer->output_shapes[i] = troupe_shape_of_rank(1);
    }
    if (!known)
        return TROUPE_OK;
    enum troupe_status status = troupe_shape_broadcast(&shapes[0], &shapes[1], &wide);
    for (int i = 0; i < 2 && status == TROUPE_OK; i++) {
        int64_t axes = 0;
        for (int j = 0; j < wide.rank; j++) {
            int mine = j - (wide.rank - shapes[i].rank);
            axes += mine < 0 || shapes[i].dims[mine] == 1;
        }
        infer->output_shapes[i].dims[0] = axes;
    }
    return status;
}
