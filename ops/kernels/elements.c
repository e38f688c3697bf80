/* Elements of lists and arrays, as tensors that are joined or taken apart. Invariant: the sizes of
 * an output are multiplied with a check before there is room for it. */
#include "ops/kernels/elements.h"

#include <string.h>

#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

const struct troupe_tensor *troupe_elements_at(const struct troupe_elements *elements, int64_t i)
{
    return elements->items[elements->indices ? elements->indices[i] : i];
}

static enum troupe_status shape_is_open(const struct troupe_shape *shape)
{
    char text[TROUPE_SHAPE_TEXT_MAX];
    return troupe_status_fail(
        TROUPE_INVALID_ARGUMENT,
        "the element shape is %s and no element is set that would say the rest",
        troupe_shape_print(shape, text));
}

/* Merges the shapes of all elements into `*all`, but for their first dimension when `is_open`. */
static enum troupe_status merge_all(const struct troupe_elements *elements, bool is_open,
                                    struct troupe_shape *all)
{
    char a[TROUPE_SHAPE_TEXT_MAX], b[TROUPE_SHAPE_TEXT_MAX];
    for (int64_t i = 0; i < elements->count; i++) {
        const struct troupe_tensor *element = troupe_elements_at(elements, i);
        if (!element)
            continue;
        struct troupe_shape before = *all, its = troupe_shape_of(element);
        if (is_open && its.rank == 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "element %lld is a scalar: wants one with rows",
                                      (long long)i);
        if (is_open)
            its.dims[0] = TROUPE_DIM_UNKNOWN;
        if (troupe_shape_merge(&before, &its, all) != TROUPE_OK) {
            its = troupe_shape_of(element);
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "element %lld has shape %s: wants %s", (long long)i,
                                      troupe_shape_print(&its, a), troupe_shape_print(&before, b));
        }
    }
    return TROUPE_OK;
}

enum troupe_status troupe_elements_shape(const struct troupe_elements *elements,
                                         struct troupe_shape *shape)
{
    struct troupe_shape all = *shape;
    enum troupe_status status = merge_all(elements, false, &all);
    if (status == TROUPE_OK && !troupe_shape_is_known(&all))
        status = shape_is_open(&all);
    if (status == TROUPE_OK)
        *shape = all;
    return status;
}

enum troupe_status troupe_elements_rest(const struct troupe_elements *elements,
                                        struct troupe_shape *shape)
{
    struct troupe_shape all = *shape, rest;
    if (all.rank == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "the elements are scalars: wants elements with rows");
    if (all.rank > 0)
        all.dims[0] = TROUPE_DIM_UNKNOWN;
    enum troupe_status status = merge_all(elements, true, &all);
    rest = all;
    if (rest.rank > 0)
        rest.dims[0] = 0;
    if (status == TROUPE_OK && !troupe_shape_is_known(&rest))
        status = shape_is_open(&all);
    if (status != TROUPE_OK)
        return status;
    all.dims[0] = shape->rank > 0 ? shape->dims[0] : TROUPE_DIM_UNKNOWN;
    *shape = all;
    return TROUPE_OK;
}

/* Copies every element, of `lengths[i]` rows (NULL: 1), behind the one before it. */
static void copy_elements(const struct troupe_elements *elements, struct troupe_tensor *to,
                          const int64_t *lengths, size_t row_bytes)
{
    char *next = troupe_tensor_data_mutable(to);
    for (int64_t i = 0; i < elements->count; i++) {
        const struct troupe_tensor *from = troupe_elements_at(elements, i);
        size_t bytes = row_bytes * (lengths ? (size_t)lengths[i] : 1);
        if (bytes == 0)
            continue;
        if (from)
            memcpy(next, troupe_tensor_data(from), bytes);
        else
            memset(next, 0, bytes);
        next += bytes;
    }
    troupe_tensor_share_elements(to);
}

enum troupe_status troupe_elements_stack(struct troupe_kernel_call *call, int output,
                                         const struct troupe_elements *elements,
                                         const struct troupe_shape *shape)
{
    struct troupe_tensor *to;
    int64_t dims[TROUPE_RANK_MAX] = {elements->count};
    if (shape->rank >= TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor has at most %d dimensions",
                                  TROUPE_RANK_MAX);
    for (int i = 0; i < shape->rank; i++)
        dims[i + 1] = shape->dims[i];
    enum troupe_status status = troupe_call_output(call, output, shape->rank + 1, dims, &to);
    if (status == TROUPE_OK && elements->count > 0)
        copy_elements(elements, to, NULL, troupe_tensor_bytes(to) / (size_t)elements->count);
    return status;
}

enum troupe_status troupe_elements_concat(struct troupe_kernel_call *call, int output,
                                          const struct troupe_elements *elements,
                                          const int64_t *lengths, const struct troupe_shape *shape)
{
    struct troupe_shape whole = *shape;
    struct troupe_tensor *to;
    whole.dims[0] = 0;
    for (int64_t i = 0; i < elements->count; i++)
        if (__builtin_add_overflow(whole.dims[0], lengths[i], &whole.dims[0]))
            whole.dims[0] = INT64_MAX; /* more than any tensor has */
    enum troupe_status status = troupe_call_output(call, output, whole.rank, whole.dims, &to);
    if (status == TROUPE_OK && whole.dims[0] > 0)
        copy_elements(elements, to, lengths, troupe_tensor_bytes(to) / (size_t)whole.dims[0]);
    return status;
}

enum troupe_status troupe_tensor_zeros(enum troupe_dtype dtype, const struct troupe_shape *shape,
                                       struct troupe_tensor **out)
{
    struct troupe_tensor *tensor;
    enum troupe_status status = troupe_tensor_create(dtype, shape->rank, shape->dims, &tensor);
    if (status != TROUPE_OK)
        return status;
    /* All bits of a zero are 0, in every dtype. */
    if (tensor->elements > 0)
        memset(troupe_tensor_data_mutable(tensor), 0, troupe_tensor_bytes(tensor));
    *out = tensor;
    return TROUPE_OK;
}

enum troupe_status troupe_tensor_row(struct troupe_tensor *tensor, int64_t index,
                                     struct troupe_tensor **out)
{
    size_t row = tensor->dims[0] > 0 ? troupe_tensor_bytes(tensor) / (size_t)tensor->dims[0] : 0;
    return troupe_tensor_view(tensor->dtype, tensor->rank - 1, tensor->dims + 1, tensor->buffer,
                              tensor->offset + (size_t)index * row, out);
}
