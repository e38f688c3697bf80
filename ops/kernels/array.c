/* Array kernels that share a buffer, or make values from shapes and numbers. */
#include "ops/kernels/array.h"

#include <stdbool.h>
#include <string.h>

#include "ops/kernels/region.h"
#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

enum troupe_status troupe_kernel_const(struct troupe_kernel_call *call)
{
    call->outputs[0] = troupe_tensor_ref(troupe_kernel_attr(call->kernel, "value")->value.tensor);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_identity(struct troupe_kernel_call *call)
{
    call->outputs[0] = troupe_tensor_ref(call->inputs[0]);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_view(struct troupe_kernel_call *call)
{
    struct troupe_shape shape;
    enum troupe_status status = troupe_call_shapes(call, &shape);
    if (status != TROUPE_OK)
        return status;
    return troupe_tensor_reshape(call->inputs[0], shape.rank, shape.dims, &call->outputs[0]);
}

/* Sets an element of an output of int32 or int64. INVALID_ARGUMENT: it does not fit. */
static enum troupe_status set_int(struct troupe_tensor *out, int64_t index, int64_t value)
{
    void *data = troupe_tensor_data_mutable(out);
    if (out->dtype == TROUPE_INT64) {
        ((int64_t *)data)[index] = value;
        return TROUPE_OK;
    }
    if (value < INT32_MIN || value > INT32_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%lld does not fit int32: ask for int64 (attr \"out_type\")",
                                  (long long)value);
    ((int32_t *)data)[index] = (int32_t)value;
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_shape(struct troupe_kernel_call *call)
{
    const struct troupe_tensor *input = call->inputs[0];
    struct troupe_tensor *out;
    int64_t rank = input->rank;
    enum troupe_status status = troupe_call_output(call, 0, 1, &rank, &out);
    for (int i = 0; i < input->rank && status == TROUPE_OK; i++)
        status = set_int(out, i, input->dims[i]);
    return status;
}

enum troupe_status troupe_kernel_size(struct troupe_kernel_call *call)
{
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_output(call, 0, 0, NULL, &out);
    return status == TROUPE_OK ? set_int(out, 0, call->inputs[0]->elements) : status;
}

enum troupe_status troupe_kernel_rank(struct troupe_kernel_call *call)
{
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_output(call, 0, 0, NULL, &out);
    return status == TROUPE_OK ? set_int(out, 0, call->inputs[0]->rank) : status;
}

enum troupe_status troupe_kernel_fill(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor *out = call->outputs[0];
    troupe_region_fill(call->parallel, out->elements, troupe_dtype_size(out->dtype),
                       troupe_tensor_data_mutable(out), troupe_tensor_data(call->inputs[1]));
    troupe_tensor_share_elements(out);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_range(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor *out = call->outputs[0];
    const void *start = troupe_tensor_data(call->inputs[0]);
    const void *delta = troupe_tensor_data(call->inputs[2]);
    void *data = troupe_tensor_data_mutable(out);
    for (int64_t i = 0; i < out->elements; i++) {
        switch (out->dtype) {
        case TROUPE_FLOAT32:
            ((float *)data)[i] = *(const float *)start + (float)i * *(const float *)delta;
            break;
        case TROUPE_FLOAT64:
            ((double *)data)[i] = *(const double *)start + (double)i * *(const double *)delta;
            break;
        case TROUPE_INT64:
            ((int64_t *)data)[i] = *(const int64_t *)start + i * *(const int64_t *)delta;
            break;
        default:
            ((int32_t *)data)[i] = (int32_t)(*(const int32_t *)start + i * *(const int32_t *)delta);
            break;
        }
    }
    return TROUPE_OK;
}

/* An index outside of the depth is no error: its row is off everywhere. */
enum troupe_status troupe_kernel_one_hot(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *indices = call->inputs[0];
    struct troupe_tensor *out = call->outputs[0];
    size_t size = troupe_dtype_size(out->dtype);
    char *data = troupe_tensor_data_mutable(out);
    const void *on = troupe_tensor_data(call->inputs[2]);
    int64_t axis = troupe_kernel_int(call->kernel, "axis");
    int at = axis < 0 ? indices->rank : (int)axis;
    int64_t suffix = troupe_dims_product(indices->dims, at, indices->rank), depth = out->dims[at];
    troupe_region_fill(call->parallel, out->elements, size, data,
                       troupe_tensor_data(call->inputs[3]));
    for (int64_t i = 0; i < indices->elements; i++) {
        int64_t index = troupe_tensor_int(indices, i);
        if (index >= 0 && index < depth)
            memcpy(data + (((i / suffix) * depth + index) * suffix + i % suffix) * (int64_t)size,
                   on, size);
    }
    troupe_tensor_share_elements(out);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_invert_permutation(struct troupe_kernel_call *call)
{
    const struct troupe_tensor *input = call->inputs[0];
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    out = call->outputs[0];
    for (int64_t i = 0; i < out->elements && status == TROUPE_OK; i++)
        status = set_int(out, i, -1);
    for (int64_t i = 0; i < out->elements && status == TROUPE_OK; i++) {
        int64_t to = troupe_tensor_int(input, i);
        if (to < 0 || to >= out->elements || troupe_tensor_int(out, to) >= 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"x\" wants each of 0 to %lld once: entry %lld is %lld",
                                      (long long)out->elements - 1, (long long)i, (long long)to);
        status = set_int(out, to, i);
    }
    return status;
}

/* Where each of the shapes begins when all are joined along the axis. */
enum troupe_status troupe_kernel_concat_offset(struct troupe_kernel_call *call)
{
    int at, count = call->kernel->output_count;
    int64_t begin = 0;
    enum troupe_status status = troupe_call_outputs(call);
    if (status == TROUPE_OK)
        status = troupe_axis_resolve(troupe_tensor_int(call->inputs[0], 0),
                                     (int)call->inputs[1]->elements, "concat_dim", &at);
    for (int i = 0; i < count && status == TROUPE_OK; i++) {
        const struct troupe_tensor *shape = call->inputs[i + 1], *first = call->inputs[1];
        if (shape->elements != first->elements)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "shape %d has %lld entries: wants %lld, as the first", i,
                                      (long long)shape->elements, (long long)first->elements);
        for (int64_t j = 0; j < shape->elements && status == TROUPE_OK; j++) {
            if (j != at && troupe_tensor_int(shape, j) != troupe_tensor_int(first, j))
                return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                          "shape %d has %lld at %lld: wants %lld, as the first", i,
                                          (long long)troupe_tensor_int(shape, j), (long long)j,
                                          (long long)troupe_tensor_int(first, j));
            status = set_int(call->outputs[i], j, j == at ? begin : 0);
        }
        if (__builtin_add_overflow(begin, troupe_tensor_int(shape, at), &begin))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "the sizes sum to more than a dimension holds");
    }
    return status;
}

enum troupe_status troupe_kernel_broadcast_gradient_args(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    int64_t rank = call->inputs[0]->elements > call->inputs[1]->elements
                       ? call->inputs[0]->elements
                       : call->inputs[1]->elements;
    for (int i = 0; i < 2 && status == TROUPE_OK; i++) {
        const struct troupe_tensor *shape = call->inputs[i];
        int64_t missing = rank - shape->elements, next = 0;
        for (int64_t j = 0; j < rank && status == TROUPE_OK; j++) {
            if (j < missing || troupe_tensor_int(shape, j - missing) == 1)
                status = set_int(call->outputs[i], next++, j);
        }
    }
    return status;
}
