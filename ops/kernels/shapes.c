/* What array kernels share. Invariant: a kernel's outputs have the shapes that the op's shape
 * function gives for the inputs of the firing, so there is one set of checks. */
#include "ops/kernels/shapes.h"

#include <string.h>

#include "base/memory.h"
#include "ops/tensor.h"

/* Inputs or outputs for which the stack has room. */
#define SHAPES_INLINE 8

enum troupe_status troupe_call_infer(struct troupe_kernel_call *call, struct troupe_shape *shapes)
{
    const struct troupe_kernel *kernel = call->kernel;
    struct troupe_shape few[SHAPES_INLINE], *inputs = few;
    size_t bytes = (size_t)kernel->input_count * sizeof(*inputs);
    if (kernel->input_count > SHAPES_INLINE)
        inputs = troupe_memory_alloc(bytes);
    if (!inputs)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < kernel->input_count; i++)
        inputs[i] = troupe_shape_of(call->inputs[i]);
    for (int i = 0; i < kernel->output_count; i++)
        shapes[i] = troupe_shape_unknown();
    struct troupe_infer infer = {
        .schema = kernel->schema,
        .attrs = kernel->attrs,
        .attr_count = kernel->attr_count,
        .input_count = kernel->input_count,
        .input_dtypes = kernel->input_dtypes,
        .input_shapes = inputs,
        .input_values = (const struct troupe_tensor *const *)call->inputs,
        .output_count = kernel->output_count,
        .output_dtypes = kernel->output_dtypes,
        .output_shapes = shapes,
    };
    enum troupe_status status = kernel->schema->op->infer(&infer);
    if (inputs != few)
        troupe_memory_free(inputs, bytes);
    return status;
}

enum troupe_status troupe_call_shapes(struct troupe_kernel_call *call, struct troupe_shape *shapes)
{
    enum troupe_status status = troupe_call_infer(call, shapes);
    for (int i = 0; i < call->kernel->output_count && status == TROUPE_OK; i++) {
        if (!troupe_shape_is_known(&shapes[i]))
            status = troupe_status_fail(TROUPE_INTERNAL, "the shape of output %d is not known", i);
    }
    return status;
}

enum troupe_status troupe_call_outputs(struct troupe_kernel_call *call)
{
    int count = call->kernel->output_count;
    struct troupe_shape few[SHAPES_INLINE], *shapes = few;
    size_t bytes = (size_t)count * sizeof(*shapes);
    if (count > SHAPES_INLINE)
        shapes = troupe_memory_alloc(bytes);
    if (!shapes)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = troupe_call_shapes(call, shapes);
    for (int i = 0; i < count && status == TROUPE_OK; i++) {
        struct troupe_tensor *out;
        status = troupe_call_output(call, i, shapes[i].rank, shapes[i].dims, &out);
    }
    if (shapes != few)
        troupe_memory_free(shapes, bytes);
    return status;
}

int64_t troupe_tensor_int(const struct troupe_tensor *tensor, int64_t index)
{
    const void *data = troupe_tensor_data(tensor);
    switch (tensor->dtype) {
    case TROUPE_INT64:
        return ((const int64_t *)data)[index];
    case TROUPE_UINT8:
        return ((const uint8_t *)data)[index];
    default:
        return ((const int32_t *)data)[index];
    }
}

enum troupe_status troupe_tensor_ints(const struct troupe_tensor *tensor, const char *name,
                                      int64_t out[TROUPE_RANK_MAX], int *count)
{
    if (tensor->elements > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"%s\" has %lld entries: wants at most %d", name,
                                  (long long)tensor->elements, TROUPE_RANK_MAX);
    for (int64_t i = 0; i < tensor->elements; i++)
        out[i] = troupe_tensor_int(tensor, i);
    *count = (int)tensor->elements;
    return TROUPE_OK;
}

enum troupe_status troupe_axis_resolve(int64_t axis, int rank, const char *name, int *out)
{
    if (rank == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s %lld: a scalar has no axes", name,
                                  (long long)axis);
    if (axis < -rank || axis >= rank)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s %lld: wants %d to %d", name,
                                  (long long)axis, -rank, rank - 1);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TROUPE_OK;
}

int64_t troupe_dims_product(const int64_t *dims, int begin, int end)
{
    int64_t product = 1;
    for (int i = begin; i < end; i++)
        product *= dims[i];
    return product;
}

void troupe_dims_strides(const int64_t *dims, int rank, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}
