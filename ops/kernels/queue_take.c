/* Elements of queues. Invariant: of a heap no row comes before its parent, by priority and then by
 * the order of coming. */
#include "ops/kernels/queue_take.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/kernels/elements.h"
#include "ops/tensor.h"

static struct troupe_queue_row **rows_slot(const struct troupe_queue_rows *rows, int64_t index)
{
    return &rows->items[(rows->first + index) % rows->capacity];
}

struct troupe_queue_row *troupe_queue_rows_at(const struct troupe_queue_rows *rows, int64_t index)
{
    return *rows_slot(rows, index);
}

static bool rows_grow(struct troupe_queue_rows *rows)
{
    if (rows->count < rows->capacity)
        return true;
    int64_t capacity = rows->capacity ? 2 * rows->capacity : 16;
    struct troupe_queue_row **items =
        troupe_calloc((size_t)capacity, sizeof(struct troupe_queue_row *));
    if (!items)
        return false;
    for (int64_t i = 0; i < rows->count; i++)
        items[i] = *rows_slot(rows, i);
    free(rows->items);
    rows->items = items;
    rows->first = 0;
    rows->capacity = capacity;
    return true;
}

/* ---- The heap: a ring that starts at 0 ---- */

static bool row_before(const struct troupe_queue_row *a, const struct troupe_queue_row *b)
{
    int64_t x = *(const int64_t *)troupe_tensor_data(a->components[0]);
    int64_t y = *(const int64_t *)troupe_tensor_data(b->components[0]);
    return x < y || (x == y && a->number < b->number);
}

static void rows_swap(struct troupe_queue_rows *rows, int64_t a, int64_t b)
{
    struct troupe_queue_row *row = rows->items[a];
    rows->items[a] = rows->items[b];
    rows->items[b] = row;
}

static void heap_raise(struct troupe_queue_rows *rows, int64_t at)
{
    for (; at > 0 && row_before(rows->items[at], rows->items[(at - 1) / 2]); at = (at - 1) / 2)
        rows_swap(rows, at, (at - 1) / 2);
}

static void heap_lower(struct troupe_queue_rows *rows)
{
    for (int64_t at = 0, child = 1; child < rows->count; at = child, child = 2 * at + 1) {
        if (child + 1 < rows->count && row_before(rows->items[child + 1], rows->items[child]))
            child++;
        if (!row_before(rows->items[child], rows->items[at]))
            return;
        rows_swap(rows, at, child);
    }
}

/* ---- Putting and taking ---- */

bool troupe_queue_rows_put(struct troupe_queue_rows *rows, enum troupe_queue_order order,
                           struct troupe_queue_row *row)
{
    if (!rows_grow(rows))
        return false;
    *rows_slot(rows, rows->count++) = row;
    if (order == TROUPE_QUEUE_PRIORITY)
        heap_raise(rows, rows->count - 1);
    return true;
}

bool troupe_queue_rows_put_back(struct troupe_queue_rows *rows, enum troupe_queue_order order,
                                struct troupe_queue_row *row)
{
    if (order != TROUPE_QUEUE_FIFO)
        return troupe_queue_rows_put(rows, order, row);
    if (!rows_grow(rows))
        return false;
    rows->first = (rows->first + rows->capacity - 1) % rows->capacity;
    rows->count++;
    *rows_slot(rows, 0) = row;
    return true;
}

struct troupe_queue_row *troupe_queue_rows_take(struct troupe_queue_rows *rows,
                                                enum troupe_queue_order order, uint64_t random)
{
    int64_t chosen = order == TROUPE_QUEUE_SHUFFLE ? (int64_t)(random % (uint64_t)rows->count) : 0;
    struct troupe_queue_row *row = *rows_slot(rows, chosen);
    rows->count--;
    if (order == TROUPE_QUEUE_FIFO) {
        rows->first = (rows->first + 1) % rows->capacity;
        return row;
    }
    *rows_slot(rows, chosen) = *rows_slot(rows, rows->count);
    if (order == TROUPE_QUEUE_PRIORITY)
        heap_lower(rows);
    return row;
}

/* ---- What a dequeue gives ---- */

/* The smallest shape that all have room in. */
static enum troupe_status padded_shape(const struct troupe_elements *elements,
                                       struct troupe_shape *out)
{
    *out = troupe_shape_of(elements->items[0]);
    for (int64_t i = 1; i < elements->count; i++) {
        struct troupe_shape shape = troupe_shape_of(elements->items[i]);
        if (shape.rank != out->rank)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "elements of %d and %d dimensions are not padded to each "
                                      "other",
                                      out->rank, shape.rank);
        for (int d = 0; d < shape.rank; d++)
            if (shape.dims[d] > out->dims[d])
                out->dims[d] = shape.dims[d];
    }
    return TROUPE_OK;
}

/* Copies a tensor into the corner of a larger one of zeros, row by row of the last dimension. */
static enum troupe_status pad(const struct troupe_tensor *from, const struct troupe_shape *shape,
                              struct troupe_tensor **out)
{
    struct troupe_tensor *to;
    enum troupe_status status = troupe_tensor_zeros(from->dtype, shape, &to);
    if (status != TROUPE_OK)
        return status;
    size_t element = troupe_dtype_size(from->dtype);
    int rank = shape->rank;
    int64_t row = rank > 0 ? from->dims[rank - 1] : 1, rows = row > 0 ? 1 : 0;
    int64_t at[TROUPE_RANK_MAX] = {0};
    for (int d = 0; d + 1 < rank; d++)
        rows *= from->dims[d];
    const char *source = troupe_tensor_data(from);
    for (int64_t r = 0; r < rows; r++, source += (size_t)row * element) {
        int64_t offset = 0;
        for (int d = 0; d < rank; d++)
            offset = offset * shape->dims[d] + (d + 1 < rank ? at[d] : 0);
        memcpy((char *)troupe_tensor_data_mutable(to) + (size_t)offset * element, source,
               (size_t)row * element);
        for (int d = rank - 2; d >= 0 && ++at[d] == from->dims[d]; d--)
            at[d] = 0;
    }
    *out = to;
    return TROUPE_OK;
}

static enum troupe_status pad_all(struct troupe_tensor **items, int64_t count,
                                  const struct troupe_shape *shape)
{
    enum troupe_status status = TROUPE_OK;
    for (int64_t i = 0; i < count && status == TROUPE_OK; i++) {
        struct troupe_shape its = troupe_shape_of(items[i]);
        struct troupe_tensor *padded;
        if (troupe_shape_equal(&its, shape))
            continue;
        status = pad(items[i], shape, &padded);
        if (status != TROUPE_OK)
            return status;
        troupe_tensor_unref(items[i]);
        items[i] = padded;
    }
    return status;
}

/* One component of all elements, as one output. */
static enum troupe_status stack_component(struct troupe_kernel_call *call, int component,
                                          struct troupe_queue_row **rows, int64_t count, bool pads)
{
    struct troupe_tensor **items = troupe_calloc((size_t)count + 1, sizeof(struct troupe_tensor *));
    struct troupe_elements elements = {
        .items = items, .count = count, .dtype = call->kernel->output_dtypes[component]};
    /* Of no elements the shape is what the graph says, with sizes of 0 where it says nothing. */
    struct troupe_shape shape = call->kernel->output_shapes[component];
    enum troupe_status status = TROUPE_OK;
    if (!items)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int64_t i = 0; i < count; i++)
        items[i] = troupe_tensor_ref(rows[i]->components[component]);
    if (count > 0) {
        shape = troupe_shape_unknown();
        status = pads && !troupe_dtype_is_counted(elements.dtype)
                     ? padded_shape(&elements, &shape)
                     : troupe_elements_shape(&elements, &shape);
    } else {
        shape.rank = shape.rank > 0 ? shape.rank - 1 : 0;
        for (int d = 0; d < shape.rank; d++)
            shape.dims[d] = shape.dims[d + 1] > 0 ? shape.dims[d + 1] : 0;
    }
    if (status == TROUPE_OK && pads && !troupe_dtype_is_counted(elements.dtype))
        status = pad_all(items, count, &shape);
    if (status == TROUPE_OK)
        status = troupe_elements_stack(call, component, &elements, &shape);
    for (int64_t i = 0; i < count; i++)
        troupe_tensor_unref(items[i]);
    free(items);
    return status;
}

void troupe_queue_give(const struct troupe_deferred *deferred, struct troupe_queue_row **rows,
                       int64_t count, bool stacks, bool pads)
{
    struct troupe_tensor *outputs[TROUPE_QUEUE_COMPONENTS_MAX] = {NULL};
    struct troupe_kernel kernel = *deferred->kernel;
    struct troupe_kernel_call call = {.kernel = &kernel, .outputs = outputs};
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < kernel.output_count && status == TROUPE_OK; i++) {
        if (stacks)
            status = stack_component(&call, i, rows, count, pads);
        else
            outputs[i] = troupe_tensor_ref(rows[0]->components[i]);
    }
    for (int i = 0; i < kernel.output_count && status != TROUPE_OK; i++)
        troupe_tensor_unref(outputs[i]);
    troupe_deferred_complete(deferred, status, NULL, outputs);
}
