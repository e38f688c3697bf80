/* Ops on one element of a list, and on its length. Invariant: what an op reads of a list it has
 * before it changes it, since both may be one. */
#include "ops/kernels/list.h"

#include "ops/kernels/shapes.h"
#include "ops/list.h"
#include "ops/tensor.h"

/* The most outputs that an op on lists has. */
#define LIST_OUTPUTS 2

static const struct troupe_tensor *input_named(const struct troupe_kernel_call *call,
                                               const char *name)
{
    return call->inputs[troupe_op_input_find(call->kernel->schema, name)];
}

static int64_t int_named(const struct troupe_kernel_call *call, const char *name)
{
    return troupe_tensor_int(input_named(call, name), 0);
}

static struct troupe_tensor_list *list_of(const struct troupe_tensor *handle)
{
    return troupe_tensor_list_of(*(struct troupe_payload *const *)troupe_tensor_data(handle));
}

/* Runs the shape function and finds the list of input 0. */
static enum troupe_status find_list(struct troupe_kernel_call *call,
                                    struct troupe_tensor_list **out)
{
    struct troupe_shape shapes[LIST_OUTPUTS];
    enum troupe_status status = troupe_call_infer(call, shapes);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor_list *list = list_of(call->inputs[0]);
    const struct troupe_attr *dtype = troupe_kernel_attr(call->kernel, "element_dtype");
    if (!list)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"input_handle\" holds no list");
    if (dtype && dtype->value.type != list->dtype)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "the list holds %s: attr \"element_dtype\" is %s",
            troupe_dtype_name(list->dtype), troupe_dtype_name(dtype->value.type));
    *out = list;
    return TROUPE_OK;
}

enum troupe_status troupe_call_list(struct troupe_kernel_call *call,
                                    const struct troupe_tensor_list **out)
{
    struct troupe_tensor_list *list;
    enum troupe_status status = find_list(call, &list);
    if (status == TROUPE_OK)
        *out = list;
    return status;
}

enum troupe_status troupe_call_output_list(struct troupe_kernel_call *call,
                                           struct troupe_tensor_list *list)
{
    struct troupe_tensor *handle;
    enum troupe_status status = troupe_call_output(call, 0, 0, NULL, &handle);
    if (status != TROUPE_OK) {
        troupe_tensor_list_unref(list);
        return status;
    }
    *(struct troupe_payload **)troupe_tensor_data_mutable(handle) = &list->payload;
    return TROUPE_OK;
}

enum troupe_status troupe_call_take_list(struct troupe_kernel_call *call,
                                         struct troupe_tensor_list **out)
{
    struct troupe_tensor_list *list, *copy;
    enum troupe_status status = find_list(call, &list);
    if (status != TROUPE_OK)
        return status;
    /* Acquire: partner of the release in troupe_payload_unref, so that the change comes after the
     * last read under another reference. */
    bool is_own = troupe_tensor_is_unique(call->inputs[0]) &&
                  atomic_load_explicit(&list->payload.references, memory_order_acquire) == 1;
    if (is_own) {
        call->outputs[0] = troupe_tensor_ref(call->inputs[0]);
        *out = list;
        return TROUPE_OK;
    }
    status = troupe_tensor_list_copy(list, &copy);
    if (status == TROUPE_OK)
        status = troupe_call_output_list(call, copy);
    if (status == TROUPE_OK)
        *out = copy;
    return status;
}

enum troupe_status troupe_call_element_shape(const struct troupe_kernel_call *call,
                                             const struct troupe_tensor_list *list,
                                             struct troupe_shape *out)
{
    struct troupe_shape wanted;
    enum troupe_status status =
        troupe_element_shape_read(input_named(call, "element_shape"), &wanted);
    if (status != TROUPE_OK)
        return status;
    if (troupe_shape_merge(&wanted, &list->element_shape, out) == TROUPE_OK)
        return TROUPE_OK;
    char given[TROUPE_SHAPE_TEXT_MAX], its[TROUPE_SHAPE_TEXT_MAX];
    return troupe_status_fail(
        TROUPE_INVALID_ARGUMENT, "\"element_shape\" is %s: the list holds elements of shape %s",
        troupe_shape_print(&wanted, given), troupe_shape_print(&list->element_shape, its));
}

struct troupe_elements troupe_list_elements(const struct troupe_tensor_list *list)
{
    return (struct troupe_elements){
        .items = list->elements, .count = list->length, .dtype = list->dtype};
}

/* Makes output 0: a list of `length` unset elements of the shape that the op says. */
static enum troupe_status create(struct troupe_kernel_call *call, int64_t length,
                                 int64_t max_length)
{
    struct troupe_shape shape;
    struct troupe_tensor_list *list;
    enum troupe_status status =
        troupe_element_shape_read(input_named(call, "element_shape"), &shape);
    if (status == TROUPE_OK)
        status = troupe_tensor_list_create(troupe_kernel_type(call->kernel, "element_dtype"),
                                           &shape, length, &list);
    if (status != TROUPE_OK)
        return status;
    list->max_length = max_length < 0 ? -1 : max_length;
    return troupe_call_output_list(call, list);
}

enum troupe_status troupe_kernel_list_empty(struct troupe_kernel_call *call)
{
    struct troupe_shape handle;
    enum troupe_status status = troupe_call_infer(call, &handle);
    return status == TROUPE_OK ? create(call, 0, int_named(call, "max_num_elements")) : status;
}

enum troupe_status troupe_kernel_list_reserve(struct troupe_kernel_call *call)
{
    struct troupe_shape handle;
    enum troupe_status status = troupe_call_infer(call, &handle);
    return status == TROUPE_OK ? create(call, int_named(call, "num_elements"), -1) : status;
}

static enum troupe_status no_element(const struct troupe_tensor_list *list, int64_t index)
{
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "index %lld: the list has %lld elements",
                              (long long)index, (long long)list->length);
}

/* Element `index` as an output: zeros when it is not set and its shape follows from the op, the
 * list or the other elements. */
static enum troupe_status output_element(struct troupe_kernel_call *call, int output,
                                         const struct troupe_tensor_list *list, int64_t index)
{
    struct troupe_shape shape;
    struct troupe_elements all = troupe_list_elements(list);
    enum troupe_status status = troupe_call_element_shape(call, list, &shape);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor *element = list->elements[index];
    if (!element) {
        if (!troupe_shape_is_known(&shape))
            status = troupe_elements_shape(&all, &shape);
        if (status == TROUPE_OK)
            status = troupe_tensor_zeros(list->dtype, &shape, &call->outputs[output]);
        return status;
    }
    struct troupe_elements one = {.items = &element, .count = 1, .dtype = list->dtype};
    status = troupe_elements_shape(&one, &shape);
    if (status == TROUPE_OK)
        call->outputs[output] = troupe_tensor_ref(element);
    return status;
}

enum troupe_status troupe_kernel_list_get_item(struct troupe_kernel_call *call)
{
    const struct troupe_tensor_list *list;
    enum troupe_status status = troupe_call_list(call, &list);
    if (status != TROUPE_OK)
        return status;
    int64_t index = int_named(call, "index");
    if (index < 0 || index >= list->length)
        return no_element(list, index);
    return output_element(call, 0, list, index);
}

enum troupe_status troupe_kernel_list_set_item(struct troupe_kernel_call *call)
{
    struct troupe_tensor_list *list;
    enum troupe_status status = troupe_call_take_list(call, &list);
    if (status != TROUPE_OK)
        return status;
    int64_t index = int_named(call, "index");
    bool grows = troupe_kernel_bool(call->kernel, "resize_if_index_out_of_bounds");
    if (index < 0 || (index >= list->length && !grows))
        return no_element(list, index);
    if (index >= list->length)
        status = troupe_tensor_list_resize(list, index + 1);
    return status == TROUPE_OK ? troupe_tensor_list_set(list, index, call->inputs[2]) : status;
}

enum troupe_status troupe_kernel_list_push_back(struct troupe_kernel_call *call)
{
    struct troupe_tensor_list *list;
    enum troupe_status status = troupe_call_take_list(call, &list);
    if (status == TROUPE_OK)
        status = troupe_tensor_list_resize(list, list->length + 1);
    return status == TROUPE_OK ? troupe_tensor_list_set(list, list->length - 1, call->inputs[1])
                               : status;
}

enum troupe_status troupe_kernel_list_pop_back(struct troupe_kernel_call *call)
{
    const struct troupe_tensor_list *list;
    struct troupe_tensor_list *rest;
    enum troupe_status status = troupe_call_list(call, &list);
    if (status != TROUPE_OK)
        return status;
    if (list->length == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "the list has no element to pop");
    status = output_element(call, 1, list, list->length - 1);
    if (status == TROUPE_OK)
        status = troupe_call_take_list(call, &rest);
    return status == TROUPE_OK ? troupe_tensor_list_resize(rest, rest->length - 1) : status;
}

enum troupe_status troupe_kernel_list_length(struct troupe_kernel_call *call)
{
    const struct troupe_tensor_list *list;
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_list(call, &list);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 0, 0, NULL, &out);
    if (status == TROUPE_OK)
        *(int32_t *)troupe_tensor_data_mutable(out) = (int32_t)list->length;
    return status;
}

enum troupe_status troupe_kernel_list_resize(struct troupe_kernel_call *call)
{
    struct troupe_tensor_list *list;
    enum troupe_status status = troupe_call_take_list(call, &list);
    return status == TROUPE_OK ? troupe_tensor_list_resize(list, int_named(call, "size")) : status;
}

enum troupe_status troupe_kernel_list_element_shape(struct troupe_kernel_call *call)
{
    const struct troupe_tensor_list *list;
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_list(call, &list);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_shape *shape = &list->element_shape;
    int64_t count = shape->rank;
    status = troupe_call_output(call, 0, count < 0 ? 0 : 1, &count, &out);
    if (status != TROUPE_OK)
        return status;
    void *data = troupe_tensor_data_mutable(out);
    for (int i = 0; i < (count < 0 ? 1 : (int)count); i++) {
        int64_t size = count < 0 ? -1 : shape->dims[i];
        if (out->dtype == TROUPE_INT32 && size > INT32_MAX)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "%lld does not fit int32: ask for int64 (attr "
                                      "\"shape_type\")",
                                      (long long)size);
        if (out->dtype == TROUPE_INT32)
            ((int32_t *)data)[i] = (int32_t)size;
        else
            ((int64_t *)data)[i] = size;
    }
    return TROUPE_OK;
}
