/* Shorthands with which ops write their gradients. Invariant: after the first failure nothing is
 * added any more, and every shorthand returns NONE. */
#include "ops/gradient.h"

#include <string.h>

#include "ops/cast.h"

struct troupe_value troupe_gradient_add(struct troupe_gradient *gradient, const char *op,
                                        const struct troupe_value *inputs, int input_count,
                                        struct troupe_named_attr *attrs, int attr_count)
{
    for (int i = 0; i < input_count && gradient->status == TROUPE_OK; i++) {
        if (inputs[i].node < 0)
            gradient->status = troupe_status_fail(
                TROUPE_INTERNAL, "a gradient wants a %s of a value that is not there", op);
    }
    if (gradient->status == TROUPE_OK)
        return gradient->add(gradient, op, inputs, input_count, attrs, attr_count);
    for (int i = 0; i < attr_count; i++)
        troupe_attr_fini(&attrs[i].value);
    return TROUPE_VALUE_NONE;
}

struct troupe_value troupe_gradient_unary(struct troupe_gradient *gradient, const char *op,
                                          struct troupe_value x)
{
    return troupe_gradient_add(gradient, op, &x, 1, NULL, 0);
}

struct troupe_value troupe_gradient_binary(struct troupe_gradient *gradient, const char *op,
                                           struct troupe_value a, struct troupe_value b)
{
    struct troupe_value inputs[] = {a, b};
    return troupe_gradient_add(gradient, op, inputs, 2, NULL, 0);
}

/* A Const; drops the caller's reference. */
static struct troupe_value add_const(struct troupe_gradient *gradient, struct troupe_tensor *tensor)
{
    char value[] = "value", dtype[] = "dtype";
    struct troupe_named_attr attrs[] = {{value, troupe_attr_tensor(tensor)},
                                        {dtype, troupe_attr_type(troupe_tensor_dtype(tensor))}};
    troupe_tensor_unref(tensor);
    return troupe_gradient_add(gradient, "Const", NULL, 0, attrs, 2);
}

/* Writes a number as one element; false for a dtype without numbers. */
static bool number_store(enum troupe_dtype dtype, double value, void *out)
{
    switch (dtype) {
    case TROUPE_FLOAT32:
        *(float *)out = (float)value;
        return true;
    case TROUPE_FLOAT64:
        *(double *)out = value;
        return true;
    case TROUPE_INT32:
        *(int32_t *)out = (int32_t)value;
        return true;
    case TROUPE_INT64:
        *(int64_t *)out = (int64_t)value;
        return true;
    case TROUPE_UINT8:
    case TROUPE_BOOL:
        *(uint8_t *)out = (uint8_t)value;
        return true;
    case TROUPE_FLOAT16:
        *(uint16_t *)out = troupe_float16_from_float((float)value);
        return true;
    case TROUPE_BFLOAT16:
        *(uint16_t *)out = troupe_bfloat16_from_float((float)value);
        return true;
    default:
        return false;
    }
}

struct troupe_value troupe_gradient_scalar(struct troupe_gradient *gradient,
                                           enum troupe_dtype dtype, double value)
{
    struct troupe_tensor *tensor;
    if (gradient->status == TROUPE_OK)
        gradient->status = troupe_tensor_create(dtype, 0, NULL, &tensor);
    if (gradient->status != TROUPE_OK)
        return TROUPE_VALUE_NONE;
    if (!number_store(dtype, value, troupe_tensor_data_mutable(tensor))) {
        troupe_tensor_unref(tensor);
        gradient->status =
            troupe_status_fail(TROUPE_INVALID_ARGUMENT, "there is no number %g of dtype %s", value,
                               troupe_dtype_name(dtype));
        return TROUPE_VALUE_NONE;
    }
    return add_const(gradient, tensor);
}

struct troupe_value troupe_gradient_ints(struct troupe_gradient *gradient, const int32_t *values,
                                         int count)
{
    struct troupe_tensor *tensor;
    int64_t dim = count;
    if (gradient->status == TROUPE_OK)
        gradient->status = troupe_tensor_create(TROUPE_INT32, 1, &dim, &tensor);
    if (gradient->status != TROUPE_OK)
        return TROUPE_VALUE_NONE;
    if (count > 0)
        memcpy(troupe_tensor_data_mutable(tensor), values, (size_t)count * sizeof(*values));
    return add_const(gradient, tensor);
}

struct troupe_value troupe_gradient_shape(struct troupe_gradient *gradient,
                                          struct troupe_value value)
{
    int32_t dims[TROUPE_RANK_MAX];
    if (gradient->status != TROUPE_OK || value.node < 0)
        return troupe_gradient_unary(gradient, "Shape", value);
    struct troupe_shape shape = gradient->shape_of(gradient, value);
    bool known = troupe_shape_is_known(&shape);
    for (int i = 0; known && i < shape.rank; i++) {
        known = shape.dims[i] <= INT32_MAX;
        dims[i] = (int32_t)shape.dims[i];
    }
    return known ? troupe_gradient_ints(gradient, dims, shape.rank)
                 : troupe_gradient_unary(gradient, "Shape", value);
}

enum repeats { REPEATS_NO, REPEATS_YES, REPEATS_UNKNOWN };

/* Whether an input of size `mine` (0: it does not have the dimension) is repeated against a peer
 * of size `other` (0 likewise). Repeating once counts as no repetition when both have it. */
static enum repeats dim_repeats(int64_t mine, int64_t other, bool is_mine, bool is_other)
{
    if (!is_mine)
        return REPEATS_YES;
    if (!is_other || other == 1 || mine > 1 || mine == 0)
        return REPEATS_NO;
    if (mine == 1 && other >= 0)
        return REPEATS_YES;
    return REPEATS_UNKNOWN;
}

/* The axes of the broadcast shape along which `mine` was repeated; -1 when that is not known. */
static int repeated_axes(const struct troupe_shape *mine, const struct troupe_shape *other,
                         int32_t axes[TROUPE_RANK_MAX])
{
    if (mine->rank < 0 || other->rank < 0)
        return -1;
    int rank = mine->rank > other->rank ? mine->rank : other->rank, count = 0;
    for (int i = 0; i < rank; i++) {
        int a = i - (rank - mine->rank), b = i - (rank - other->rank);
        enum repeats repeats =
            dim_repeats(a < 0 ? 0 : mine->dims[a], b < 0 ? 0 : other->dims[b], a >= 0, b >= 0);
        if (repeats == REPEATS_UNKNOWN)
            return -1;
        if (repeats == REPEATS_YES)
            axes[count++] = i;
    }
    return count;
}

struct troupe_value troupe_gradient_unbroadcast(struct troupe_gradient *gradient,
                                                struct troupe_value gradient_value,
                                                struct troupe_value input, struct troupe_value peer)
{
    if (gradient->status != TROUPE_OK)
        return TROUPE_VALUE_NONE;
    if (input.node == peer.node && input.port == peer.port)
        return gradient_value;
    struct troupe_shape mine = gradient->shape_of(gradient, input);
    struct troupe_shape other = gradient->shape_of(gradient, peer);
    int32_t axes[TROUPE_RANK_MAX];
    int count = repeated_axes(&mine, &other, axes);
    if (count == 0)
        return gradient_value;
    struct troupe_value shape = troupe_gradient_shape(gradient, input), along;
    if (count > 0)
        along = troupe_gradient_ints(gradient, axes, count);
    else
        along = troupe_gradient_binary(gradient, "BroadcastGradientArgs", shape,
                                       troupe_gradient_shape(gradient, peer));
    struct troupe_value sum = troupe_gradient_binary(gradient, "Sum", gradient_value, along);
    return troupe_gradient_binary(gradient, "Reshape", sum, shape);
}
