/* Arrays of tensors. An array is a counted object that its handle, a scalar of dtype resource,
 * points to: each firing of TensorArrayV3 makes one, so that steps in flight have arrays of their
 * own, and it goes with the last token that holds the handle, however the step ends. Invariant: an
 * element is written once and, where reading clears, read once; the lock guards all that changes.
 */
#include "ops/kernels/tensor_array.h"

#include <string.h>

#include "base/memory.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/shapes.h"
#include "ops/list.h"
#include "ops/tensor.h"
#include "ops/tensor_list.h"

enum element_state { ELEMENT_UNSET = 0, ELEMENT_WRITTEN, ELEMENT_READ, ELEMENT_CLEARED };

struct tensor_array {
    struct troupe_payload payload; /* first */
    pthread_mutex_t lock;          /* guards all below */
    struct troupe_tensor_list *list;
    unsigned char *states; /* enum element_state, for each element that there is room for */
    int64_t state_capacity;
    bool is_dynamic, clears, is_identical, is_closed;
};

static void array_destroy(struct troupe_payload *payload)
{
    struct tensor_array *array = troupe_container_of(payload, struct tensor_array, payload);
    troupe_tensor_list_unref(array->list);
    troupe_memory_free(array->states, (size_t)array->state_capacity);
    pthread_mutex_destroy(&array->lock);
    troupe_memory_free(array, sizeof(*array));
}

/* Makes room for the states of all elements that the list has room for. */
static enum troupe_status resize_locked(struct tensor_array *array, int64_t length)
{
    enum troupe_status status = troupe_tensor_list_resize(array->list, length);
    int64_t capacity = array->list->capacity;
    if (status != TROUPE_OK || capacity <= array->state_capacity)
        return status;
    unsigned char *states = troupe_memory_alloc((size_t)capacity);
    if (!states)
        return TROUPE_RESOURCE_EXHAUSTED;
    memset(states, ELEMENT_UNSET, (size_t)capacity);
    if (array->state_capacity > 0)
        memcpy(states, array->states, (size_t)array->state_capacity);
    troupe_memory_free(array->states, (size_t)array->state_capacity);
    array->states = states;
    array->state_capacity = capacity;
    return TROUPE_OK;
}

static const struct troupe_tensor *input_named(const struct troupe_kernel_call *call,
                                               const char *name)
{
    return call->inputs[troupe_op_input_find(call->kernel->schema, name)];
}

/* ---- Making, finding ---- */

static enum troupe_status array_make(const struct troupe_kernel *kernel, int64_t size,
                                     struct tensor_array **out)
{
    struct tensor_array *array = troupe_memory_alloc(sizeof(*array));
    if (!array)
        return TROUPE_RESOURCE_EXHAUSTED;
    *array = (struct tensor_array){
        .is_dynamic = troupe_kernel_bool(kernel, "dynamic_size"),
        .clears = troupe_kernel_bool(kernel, "clear_after_read"),
        .is_identical = troupe_kernel_bool(kernel, "identical_element_shapes"),
    };
    troupe_payload_init(&array->payload, array_destroy);
    pthread_mutex_init(&array->lock, NULL);
    enum troupe_status status = troupe_tensor_list_create(
        troupe_kernel_type(kernel, "dtype"),
        &troupe_kernel_attr(kernel, "element_shape")->value.shape, 0, &array->list);
    if (status == TROUPE_OK)
        status = resize_locked(array, size);
    if (status != TROUPE_OK) {
        troupe_payload_unref(&array->payload);
        return status;
    }
    *out = array;
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_array_create(struct troupe_kernel_call *call)
{
    struct troupe_shape shapes[2];
    struct tensor_array *array;
    struct troupe_tensor *handle, *flow;
    enum troupe_status status = troupe_call_infer(call, shapes);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 0, 0, NULL, &handle);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 1, 0, NULL, &flow);
    if (status == TROUPE_OK)
        status = array_make(call->kernel, troupe_tensor_int(call->inputs[0], 0), &array);
    if (status != TROUPE_OK)
        return status;
    *(float *)troupe_tensor_data_mutable(flow) = 0;
    *(struct troupe_payload **)troupe_tensor_data_mutable(handle) = &array->payload;
    return TROUPE_OK;
}

/* Runs the shape function, finds the array of input 0 and locks it. INVALID_ARGUMENT, unlocked:
 * there is none, it was closed, or its dtype is not the op's. */
static enum troupe_status array_lock(struct troupe_kernel_call *call, const char *type_attr,
                                     struct tensor_array **out)
{
    struct troupe_shape shapes[2];
    enum troupe_status status = troupe_call_infer(call, shapes);
    if (status != TROUPE_OK)
        return status;
    struct troupe_payload *element =
        *(struct troupe_payload *const *)troupe_tensor_data(call->inputs[0]);
    if (!element || element->destroy != array_destroy)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"handle\" names no array of tensors");
    struct tensor_array *array = troupe_container_of(element, struct tensor_array, payload);
    pthread_mutex_lock(&array->lock);
    enum troupe_dtype its = array->list->dtype;
    if (array->is_closed)
        status = troupe_status_fail(TROUPE_INVALID_ARGUMENT, "the array has been closed");
    else if (type_attr && troupe_kernel_type(call->kernel, type_attr) != its)
        status =
            troupe_status_fail(TROUPE_INVALID_ARGUMENT, "the array holds %s: attr \"%s\" is %s",
                               troupe_dtype_name(its), type_attr,
                               troupe_dtype_name(troupe_kernel_type(call->kernel, type_attr)));
    if (status != TROUPE_OK) {
        pthread_mutex_unlock(&array->lock);
        return status;
    }
    *out = array;
    return TROUPE_OK;
}

/* Unlocks, and ends a firing whose output is the flow. */
static enum troupe_status finish_write(struct troupe_kernel_call *call, struct tensor_array *array,
                                       enum troupe_status status)
{
    pthread_mutex_unlock(&array->lock);
    if (status == TROUPE_OK)
        call->outputs[0] = troupe_tensor_ref(call->inputs[call->kernel->input_count - 1]);
    return status;
}

static enum troupe_status no_element(const struct tensor_array *array, int64_t index)
{
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "index %lld: the array has %lld elements%s",
                              (long long)index, (long long)array->list->length,
                              array->is_dynamic ? "" : " and no dynamic_size");
}

/* ---- Writing ---- */

static enum troupe_status write_locked(struct tensor_array *array, int64_t index,
                                       struct troupe_tensor *value)
{
    struct troupe_tensor_list *list = array->list;
    if (index < 0 || (index >= list->length && !array->is_dynamic))
        return no_element(array, index);
    enum troupe_status status = TROUPE_OK;
    if (index >= list->length)
        status = resize_locked(array, index + 1);
    if (status != TROUPE_OK)
        return status;
    if (array->states[index] != ELEMENT_UNSET)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "element %lld has been %s: it is written once", (long long)index,
                                  array->states[index] == ELEMENT_WRITTEN ? "written" : "read");
    status = troupe_tensor_list_set(list, index, value);
    if (status != TROUPE_OK)
        return status;
    array->states[index] = ELEMENT_WRITTEN;
    if (array->is_identical)
        list->element_shape = troupe_shape_of(value);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_array_write(struct troupe_kernel_call *call)
{
    struct tensor_array *array;
    enum troupe_status status = array_lock(call, "T", &array);
    if (status != TROUPE_OK)
        return status;
    int64_t index = troupe_tensor_int(input_named(call, "index"), 0);
    return finish_write(call, array, write_locked(array, index, call->inputs[2]));
}

enum troupe_status troupe_kernel_array_scatter(struct troupe_kernel_call *call)
{
    struct tensor_array *array;
    enum troupe_status status = array_lock(call, "T", &array);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *indices = input_named(call, "indices");
    for (int64_t i = 0; i < indices->elements && status == TROUPE_OK; i++) {
        struct troupe_tensor *row;
        status = troupe_tensor_row(call->inputs[2], i, &row);
        if (status != TROUPE_OK)
            break;
        status = write_locked(array, troupe_tensor_int(indices, i), row);
        troupe_tensor_unref(row);
    }
    return finish_write(call, array, status);
}

enum troupe_status troupe_kernel_array_split(struct troupe_kernel_call *call)
{
    struct tensor_array *array;
    enum troupe_status status = array_lock(call, "T", &array);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *lengths = input_named(call, "lengths");
    int64_t begin = 0;
    if (lengths->elements != array->list->length && !array->is_dynamic)
        status = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                    "\"lengths\" has %lld entries: the array has %lld elements and "
                                    "no dynamic_size",
                                    (long long)lengths->elements, (long long)array->list->length);
    for (int64_t i = 0; i < lengths->elements && status == TROUPE_OK; i++) {
        struct troupe_tensor *part;
        int64_t end = begin + troupe_tensor_int(lengths, i);
        status = troupe_tensor_rows(call->inputs[1], begin, end, &part);
        if (status != TROUPE_OK)
            break;
        status = write_locked(array, i, part);
        troupe_tensor_unref(part);
        begin = end;
    }
    return finish_write(call, array, status);
}

/* ---- Reading ---- */

/* Takes a reference to element `index`; NULL for one that is not set, which reads as zeros. */
static enum troupe_status read_locked(struct tensor_array *array, int64_t index,
                                      struct troupe_tensor **out)
{
    struct troupe_tensor_list *list = array->list;
    char text[TROUPE_SHAPE_TEXT_MAX];
    if (index < 0 || index >= list->length)
        return no_element(array, index);
    if (array->states[index] == ELEMENT_CLEARED)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "element %lld has been read, and clear_after_read is true: it is "
                                  "read once",
                                  (long long)index);
    if (!list->elements[index] && !troupe_shape_is_known(&list->element_shape))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "element %lld is not set, and the element shape is only known as "
                                  "%s",
                                  (long long)index, troupe_shape_print(&list->element_shape, text));
    *out = troupe_tensor_ref(list->elements[index]);
    array->states[index] = array->clears ? ELEMENT_CLEARED : ELEMENT_READ;
    return array->clears ? troupe_tensor_list_set(list, index, NULL) : TROUPE_OK;
}

enum troupe_status troupe_kernel_array_read(struct troupe_kernel_call *call)
{
    struct tensor_array *array;
    struct troupe_tensor *element;
    enum troupe_status status = array_lock(call, "dtype", &array);
    if (status != TROUPE_OK)
        return status;
    status = read_locked(array, troupe_tensor_int(input_named(call, "index"), 0), &element);
    if (status == TROUPE_OK && !element)
        status = troupe_tensor_zeros(array->list->dtype, &array->list->element_shape, &element);
    pthread_mutex_unlock(&array->lock);
    if (status == TROUPE_OK)
        call->outputs[0] = element;
    return status;
}

/* Elements that were read: `count` references, some NULL. */
struct read_elements {
    struct troupe_tensor **items;
    int64_t count;
    struct troupe_elements all;
    struct troupe_shape shape; /* what the array and the op know of every element's */
};

static void read_elements_fini(struct read_elements *read)
{
    for (int64_t i = 0; i < read->count; i++)
        troupe_tensor_unref(read->items[i]);
    troupe_memory_free(read->items, (size_t)read->count * sizeof(struct troupe_tensor *));
}

/* Reads the elements at `indices` (NULL: the first `count`), whose shape `shape` allows. */
static enum troupe_status read_elements_locked(struct tensor_array *array, const int32_t *indices,
                                               int64_t count, const struct troupe_shape *shape,
                                               struct read_elements *out)
{
    const struct troupe_tensor_list *list = array->list;
    char given[TROUPE_SHAPE_TEXT_MAX], its[TROUPE_SHAPE_TEXT_MAX];
    struct read_elements read = {.count = count};
    if (troupe_shape_merge(shape, &list->element_shape, &read.shape) != TROUPE_OK)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "the array holds elements of shape %s: the op wants %s",
            troupe_shape_print(&list->element_shape, its), troupe_shape_print(shape, given));
    size_t bytes = (size_t)count * sizeof(struct troupe_tensor *);
    read.items = troupe_memory_alloc(bytes);
    if (!read.items)
        return TROUPE_RESOURCE_EXHAUSTED;
    memset(read.items, 0, bytes);
    enum troupe_status status = TROUPE_OK;
    for (int64_t i = 0; i < count && status == TROUPE_OK; i++)
        status = read_locked(array, indices ? indices[i] : i, &read.items[i]);
    if (status != TROUPE_OK) {
        read_elements_fini(&read);
        return status;
    }
    read.all = (struct troupe_elements){.items = read.items, .count = count, .dtype = list->dtype};
    *out = read;
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_array_gather(struct troupe_kernel_call *call)
{
    struct tensor_array *array;
    struct read_elements read;
    enum troupe_status status = array_lock(call, "dtype", &array);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *indices = input_named(call, "indices");
    status = read_elements_locked(array, troupe_tensor_data(indices), indices->elements,
                                  &troupe_kernel_attr(call->kernel, "element_shape")->value.shape,
                                  &read);
    pthread_mutex_unlock(&array->lock);
    if (status != TROUPE_OK)
        return status;
    status = troupe_elements_shape(&read.all, &read.shape);
    if (status == TROUPE_OK)
        status = troupe_elements_stack(call, 0, &read.all, &read.shape);
    read_elements_fini(&read);
    return status;
}

/* The shape of elements that have any number of rows of a shape. */
static struct troupe_shape with_rows(const struct troupe_shape *row)
{
    if (row->rank < 0 || row->rank >= TROUPE_RANK_MAX)
        return troupe_shape_unknown();
    struct troupe_shape shape = {.rank = row->rank + 1, .dims = {TROUPE_DIM_UNKNOWN}};
    memcpy(shape.dims + 1, row->dims, sizeof(int64_t) * (size_t)row->rank);
    return shape;
}

/* Joins what was read, and says how many rows each has. */
static enum troupe_status concat_read(struct troupe_kernel_call *call, struct read_elements *read)
{
    struct troupe_tensor *lengths;
    enum troupe_status status = troupe_elements_rest(&read->all, &read->shape);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 1, 1, &read->count, &lengths);
    if (status != TROUPE_OK)
        return status;
    int64_t *counts = troupe_tensor_data_mutable(lengths);
    /* One that is not set was read as zeros, so that the whole element shape is known. */
    for (int64_t i = 0; i < read->count; i++)
        counts[i] = read->items[i] ? read->items[i]->dims[0] : read->shape.dims[0];
    return troupe_elements_concat(call, 0, &read->all, counts, &read->shape);
}

enum troupe_status troupe_kernel_array_concat(struct troupe_kernel_call *call)
{
    struct tensor_array *array;
    struct read_elements read;
    enum troupe_status status = array_lock(call, "dtype", &array);
    if (status != TROUPE_OK)
        return status;
    struct troupe_shape shape =
        with_rows(&troupe_kernel_attr(call->kernel, "element_shape_except0")->value.shape);
    status = read_elements_locked(array, NULL, array->list->length, &shape, &read);
    pthread_mutex_unlock(&array->lock);
    if (status != TROUPE_OK)
        return status;
    status = concat_read(call, &read);
    read_elements_fini(&read);
    return status;
}

/* ---- Size, end ---- */

enum troupe_status troupe_kernel_array_size(struct troupe_kernel_call *call)
{
    struct tensor_array *array = NULL;
    struct troupe_tensor *out;
    enum troupe_status status = array_lock(call, NULL, &array);
    if (status != TROUPE_OK)
        return status;
    int64_t length = array->list->length;
    pthread_mutex_unlock(&array->lock);
    status = troupe_call_output(call, 0, 0, NULL, &out);
    if (status == TROUPE_OK)
        *(int32_t *)troupe_tensor_data_mutable(out) = (int32_t)length;
    return status;
}

enum troupe_status troupe_kernel_array_close(struct troupe_kernel_call *call)
{
    struct tensor_array *array = NULL;
    enum troupe_status status = array_lock(call, NULL, &array);
    if (status != TROUPE_OK)
        return status;
    array->is_closed = true;
    status = troupe_tensor_list_resize(array->list, 0);
    pthread_mutex_unlock(&array->lock);
    return status;
}
