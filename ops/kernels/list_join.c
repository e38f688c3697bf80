/* Ops between a list and one tensor of all its elements. Invariant: an element made of rows shares
 * the tensor's buffer. */
#include "ops/kernels/list.h"
#include "ops/kernels/shapes.h"
#include "ops/list.h"
#include "ops/tensor.h"

static struct troupe_tensor *input_named(const struct troupe_kernel_call *call, const char *name)
{
    return call->inputs[troupe_op_input_find(call->kernel->schema, name)];
}

enum troupe_status troupe_kernel_list_stack(struct troupe_kernel_call *call)
{
    const struct troupe_tensor_list *list;
    struct troupe_shape shape;
    enum troupe_status status = troupe_call_list(call, &list);
    if (status != TROUPE_OK)
        return status;
    int64_t wanted = troupe_kernel_int(call->kernel, "num_elements");
    struct troupe_elements all = troupe_list_elements(list);
    if (wanted >= 0 && wanted != all.count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "the list has %lld elements: attr \"num_elements\" is %lld",
                                  (long long)all.count, (long long)wanted);
    status = troupe_call_element_shape(call, list, &shape);
    if (status == TROUPE_OK)
        status = troupe_elements_shape(&all, &shape);
    return status == TROUPE_OK ? troupe_elements_stack(call, 0, &all, &shape) : status;
}

/* Checks indices against a number of elements. */
static enum troupe_status check_indices(const int32_t *indices, int64_t count, int64_t length)
{
    for (int64_t i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= length)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "index %d at %lld: the list has %lld elements",
                                      (int)indices[i], (long long)i, (long long)length);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_list_gather(struct troupe_kernel_call *call)
{
    const struct troupe_tensor_list *list;
    struct troupe_shape shape;
    enum troupe_status status = troupe_call_list(call, &list);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *indices = input_named(call, "indices");
    struct troupe_elements chosen = troupe_list_elements(list);
    chosen.indices = troupe_tensor_data(indices);
    chosen.count = indices->elements;
    status = check_indices(chosen.indices, chosen.count, list->length);
    if (status == TROUPE_OK)
        status = troupe_call_element_shape(call, list, &shape);
    if (status == TROUPE_OK)
        status = troupe_elements_shape(&chosen, &shape);
    return status == TROUPE_OK ? troupe_elements_stack(call, 0, &chosen, &shape) : status;
}

/* How many rows each element has: its own, or for one that is not set what "leading_dims" says, or
 * the element shape. */
static enum troupe_status row_counts(const struct troupe_elements *all,
                                     const struct troupe_tensor *leading_dims,
                                     const struct troupe_shape *shape, int64_t *out)
{
    for (int64_t i = 0; i < all->count; i++) {
        const struct troupe_tensor *element = troupe_elements_at(all, i);
        out[i] = element                      ? element->dims[0]
                 : i < leading_dims->elements ? troupe_tensor_int(leading_dims, i)
                                              : shape->dims[0];
        if (out[i] < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "element %lld is not set, and nothing says how many rows it "
                                      "has: \"leading_dims\" has %lld entries",
                                      (long long)i, (long long)leading_dims->elements);
        if (shape->dims[0] >= 0 && out[i] != shape->dims[0])
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "element %lld has %lld rows: \"element_shape\" wants %lld",
                                      (long long)i, (long long)out[i], (long long)shape->dims[0]);
    }
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_list_concat(struct troupe_kernel_call *call)
{
    const struct troupe_tensor_list *list;
    struct troupe_shape shape;
    struct troupe_tensor *lengths;
    enum troupe_status status = troupe_call_list(call, &list);
    if (status == TROUPE_OK)
        status = troupe_call_element_shape(call, list, &shape);
    if (status != TROUPE_OK)
        return status;
    struct troupe_elements all = troupe_list_elements(list);
    status = troupe_elements_rest(&all, &shape);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 1, 1, &all.count, &lengths);
    if (status != TROUPE_OK)
        return status;
    int64_t *counts = troupe_tensor_data_mutable(lengths);
    status = row_counts(&all, input_named(call, "leading_dims"), &shape, counts);
    return status == TROUPE_OK ? troupe_elements_concat(call, 0, &all, counts, &shape) : status;
}

/* A new list for the rows of input "tensor", whose dtype and element shape the op says. */
static enum troupe_status create(struct troupe_kernel_call *call, int64_t length,
                                 struct troupe_tensor_list **out)
{
    struct troupe_shape shape;
    enum troupe_status status =
        troupe_element_shape_read(input_named(call, "element_shape"), &shape);
    if (status != TROUPE_OK)
        return status;
    return troupe_tensor_list_create(input_named(call, "tensor")->dtype, &shape, length, out);
}

/* Sets one element from a tensor, whose reference it takes. */
static enum troupe_status set_new(struct troupe_tensor_list *list, int64_t index,
                                  struct troupe_tensor *element)
{
    enum troupe_status status = troupe_tensor_list_set(list, index, element);
    troupe_tensor_unref(element);
    return status;
}

/* Sets elements indices[i] (NULL: i) from the rows of a tensor. */
static enum troupe_status set_rows(struct troupe_tensor_list *list, struct troupe_tensor *tensor,
                                   const int32_t *indices)
{
    enum troupe_status status = TROUPE_OK;
    for (int64_t i = 0; i < tensor->dims[0] && status == TROUPE_OK; i++) {
        struct troupe_tensor *row;
        status = troupe_tensor_row(tensor, i, &row);
        if (status == TROUPE_OK)
            status = set_new(list, indices ? indices[i] : i, row);
    }
    return status;
}

enum troupe_status troupe_kernel_list_from_tensor(struct troupe_kernel_call *call)
{
    struct troupe_shape handle;
    struct troupe_tensor_list *list;
    struct troupe_tensor *tensor = input_named(call, "tensor");
    enum troupe_status status = troupe_call_infer(call, &handle);
    if (status == TROUPE_OK)
        status = create(call, tensor->dims[0], &list);
    if (status == TROUPE_OK)
        status = troupe_call_output_list(call, list);
    return status == TROUPE_OK ? set_rows(list, tensor, NULL) : status;
}

/* One more than the largest of the indices, none of which is negative. */
static enum troupe_status length_for(const struct troupe_tensor *indices, int64_t *out)
{
    const int32_t *data = troupe_tensor_data(indices);
    int64_t length = 0;
    for (int64_t i = 0; i < indices->elements; i++) {
        if (data[i] < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "index %d at %lld: wants 0 or more",
                                      (int)data[i], (long long)i);
        if (data[i] >= length)
            length = (int64_t)data[i] + 1;
    }
    *out = length;
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_list_scatter(struct troupe_kernel_call *call)
{
    struct troupe_shape handle;
    struct troupe_tensor_list *list;
    const struct troupe_tensor *indices = input_named(call, "indices");
    int64_t least = 0;
    enum troupe_status status = troupe_call_infer(call, &handle);
    if (status == TROUPE_OK)
        status = length_for(indices, &least);
    if (status != TROUPE_OK)
        return status;
    int64_t length = troupe_tensor_int(input_named(call, "num_elements"), 0);
    if (length == -1)
        length = least;
    status = check_indices(troupe_tensor_data(indices), indices->elements, length);
    if (status == TROUPE_OK)
        status = create(call, length, &list);
    if (status == TROUPE_OK)
        status = troupe_call_output_list(call, list);
    return status == TROUPE_OK
               ? set_rows(list, input_named(call, "tensor"), troupe_tensor_data(indices))
               : status;
}

enum troupe_status troupe_kernel_list_scatter_into(struct troupe_kernel_call *call)
{
    struct troupe_tensor_list *list;
    const struct troupe_tensor *indices = input_named(call, "indices");
    int64_t least = 0;
    enum troupe_status status = troupe_call_take_list(call, &list);
    if (status == TROUPE_OK)
        status = length_for(indices, &least);
    if (status == TROUPE_OK && least > list->length)
        status = troupe_tensor_list_resize(list, least);
    return status == TROUPE_OK
               ? set_rows(list, input_named(call, "tensor"), troupe_tensor_data(indices))
               : status;
}

enum troupe_status troupe_kernel_list_split(struct troupe_kernel_call *call)
{
    struct troupe_shape handle;
    struct troupe_tensor_list *list;
    const struct troupe_tensor *lengths = input_named(call, "lengths");
    int64_t begin = 0;
    enum troupe_status status = troupe_call_infer(call, &handle);
    if (status == TROUPE_OK)
        status = create(call, lengths->elements, &list);
    if (status == TROUPE_OK)
        status = troupe_call_output_list(call, list);
    for (int64_t i = 0; status == TROUPE_OK && i < lengths->elements; i++) {
        struct troupe_tensor *part;
        int64_t end = begin + troupe_tensor_int(lengths, i);
        status = troupe_tensor_rows(input_named(call, "tensor"), begin, end, &part);
        if (status == TROUPE_OK)
            status = set_new(list, i, part);
        begin = end;
    }
    return status;
}
