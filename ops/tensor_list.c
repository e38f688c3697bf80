/* Lists of tensors. Invariant: every element that is set has the list's dtype and a shape that its
 * element shape allows, and no list is its own element, since a list is whole before another gets
 * it. */
#include "ops/tensor_list.h"

#include <string.h>

#include "base/memory.h"
#include "ops/tensor.h"

static size_t elements_bytes(int64_t count)
{
    return (size_t)count * sizeof(struct troupe_tensor *);
}

static void list_destroy(struct troupe_payload *payload)
{
    struct troupe_tensor_list *list =
        troupe_container_of(payload, struct troupe_tensor_list, payload);
    for (int64_t i = 0; i < list->length; i++)
        troupe_tensor_unref(list->elements[i]);
    troupe_memory_free(list->elements, elements_bytes(list->capacity));
    troupe_memory_free(list, sizeof(*list));
}

static enum troupe_status check_length(int64_t length, int64_t max_length)
{
    if (max_length >= 0 && length > max_length)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%lld elements: wants at most %lld",
                                  (long long)length, (long long)max_length);
    if (length < 0 || length > TROUPE_TENSOR_LIST_LENGTH_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%lld elements: wants 0 to %lld",
                                  (long long)length, (long long)TROUPE_TENSOR_LIST_LENGTH_MAX);
    return TROUPE_OK;
}

/* Room for `capacity` elements, of which those there are move over. */
static enum troupe_status reserve(struct troupe_tensor_list *list, int64_t capacity)
{
    struct troupe_tensor **elements = troupe_memory_alloc(elements_bytes(capacity));
    if (!elements)
        return TROUPE_RESOURCE_EXHAUSTED;
    if (list->length > 0)
        memcpy(elements, list->elements, elements_bytes(list->length));
    troupe_memory_free(list->elements, elements_bytes(list->capacity));
    list->elements = elements;
    list->capacity = capacity;
    return TROUPE_OK;
}

enum troupe_status troupe_tensor_list_create(enum troupe_dtype dtype,
                                             const struct troupe_shape *element_shape,
                                             int64_t length, struct troupe_tensor_list **out)
{
    struct troupe_tensor_list *list = troupe_memory_alloc(sizeof(*list));
    if (!list)
        return TROUPE_RESOURCE_EXHAUSTED;
    *list = (struct troupe_tensor_list){
        .dtype = dtype, .element_shape = *element_shape, .max_length = -1, .depth = 1};
    troupe_payload_init(&list->payload, list_destroy);
    enum troupe_status status = troupe_tensor_list_resize(list, length);
    if (status != TROUPE_OK) {
        troupe_tensor_list_unref(list);
        return status;
    }
    *out = list;
    return TROUPE_OK;
}

enum troupe_status troupe_tensor_list_copy(const struct troupe_tensor_list *list,
                                           struct troupe_tensor_list **out)
{
    struct troupe_tensor_list *copy;
    enum troupe_status status =
        troupe_tensor_list_create(list->dtype, &list->element_shape, list->length, &copy);
    if (status != TROUPE_OK)
        return status;
    copy->max_length = list->max_length;
    copy->depth = list->depth;
    for (int64_t i = 0; i < list->length; i++)
        copy->elements[i] = troupe_tensor_ref(list->elements[i]);
    *out = copy;
    return TROUPE_OK;
}

void troupe_tensor_list_unref(struct troupe_tensor_list *list)
{
    if (list)
        troupe_payload_unref(&list->payload);
}

struct troupe_tensor_list *troupe_tensor_list_of(struct troupe_payload *element)
{
    /* What destroys a payload is what made it. */
    if (!element || element->destroy != list_destroy)
        return NULL;
    return troupe_container_of(element, struct troupe_tensor_list, payload);
}

enum troupe_status troupe_tensor_list_resize(struct troupe_tensor_list *list, int64_t length)
{
    enum troupe_status status = check_length(length, list->max_length);
    if (status == TROUPE_OK && length > list->capacity) {
        /* Doubling makes a list that grows one by one cost constant time for each. */
        int64_t doubled = list->capacity < TROUPE_TENSOR_LIST_LENGTH_MAX / 2
                              ? 2 * list->capacity
                              : TROUPE_TENSOR_LIST_LENGTH_MAX;
        status = reserve(list, length > doubled ? length : doubled);
    }
    if (status != TROUPE_OK)
        return status;
    for (int64_t i = length; i < list->length; i++)
        troupe_tensor_unref(list->elements[i]);
    if (length > list->length)
        memset(list->elements + list->length, 0, elements_bytes(length - list->length));
    list->length = length;
    return TROUPE_OK;
}

/* The depth that a list with this element has at least. */
static int depth_with(const struct troupe_tensor *tensor)
{
    int depth = 1;
    struct troupe_payload *const *inner = troupe_tensor_data(tensor);
    for (int64_t i = 0; tensor->dtype == TROUPE_VARIANT && i < tensor->elements; i++) {
        const struct troupe_tensor_list *list = troupe_tensor_list_of(inner[i]);
        if (list && list->depth + 1 > depth)
            depth = list->depth + 1;
    }
    return depth;
}

enum troupe_status troupe_tensor_list_set(struct troupe_tensor_list *list, int64_t index,
                                          struct troupe_tensor *tensor)
{
    if (tensor) {
        struct troupe_shape shape = troupe_shape_of(tensor), merged;
        int depth = depth_with(tensor);
        char wanted[TROUPE_SHAPE_TEXT_MAX], given[TROUPE_SHAPE_TEXT_MAX];
        if (tensor->dtype != list->dtype)
            return troupe_status_fail(
                TROUPE_INVALID_ARGUMENT, "the elements are %s: one cannot be %s",
                troupe_dtype_name(list->dtype), troupe_dtype_name(tensor->dtype));
        if (troupe_shape_merge(&list->element_shape, &shape, &merged) != TROUPE_OK)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "the elements have shape %s: one cannot have %s",
                                      troupe_shape_print(&list->element_shape, wanted),
                                      troupe_shape_print(&shape, given));
        if (depth > TROUPE_TENSOR_LIST_DEPTH_MAX)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "lists lie in lists at most %d deep",
                                      TROUPE_TENSOR_LIST_DEPTH_MAX);
        if (depth > list->depth)
            list->depth = depth;
    }
    troupe_tensor_ref(tensor);
    troupe_tensor_unref(list->elements[index]);
    list->elements[index] = tensor;
    return TROUPE_OK;
}

bool troupe_tensor_list_is_valid(const struct troupe_tensor_list *list)
{
    bool is_valid = list->length >= 0 && list->length <= list->capacity && list->depth >= 1 &&
                    list->depth <= TROUPE_TENSOR_LIST_DEPTH_MAX &&
                    (list->max_length < 0 || list->length <= list->max_length);
    for (int64_t i = 0; is_valid && i < list->length; i++) {
        const struct troupe_tensor *element = list->elements[i];
        if (!element)
            continue;
        struct troupe_shape shape = troupe_shape_of(element), merged;
        is_valid = element->dtype == list->dtype && depth_with(element) <= list->depth &&
                   troupe_shape_merge(&list->element_shape, &shape, &merged) == TROUPE_OK;
    }
    return is_valid;
}
