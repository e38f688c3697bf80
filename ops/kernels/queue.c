/* Kernels of queues. Invariant: what an enqueue is given has been checked against the queue before
 * it waits; a firing that waits has given its elements away or takes none yet. */
#include "ops/kernels/queue.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/shapes.h"
#include "ops/kernels/waiting.h"
#include "ops/tensor.h"

/* ---- State ---- */

enum troupe_status troupe_queue_resource_create(const struct troupe_kernel *kernel,
                                                const struct troupe_queue_options *options,
                                                struct troupe_resource **out)
{
    struct troupe_queue *queue;
    enum troupe_status status = troupe_queue_create(kernel->name, options, &queue);
    if (status != TROUPE_OK)
        return status;
    *out = troupe_counted_resource(troupe_queue_payload(queue));
    return *out ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

static void release(struct troupe_payload *state, const struct troupe_kernel *kernel,
                    uint64_t first)
{
    troupe_queue_release(troupe_queue_of(state), kernel, first);
}

static enum troupe_status find_queue(const struct troupe_kernel_call *call,
                                     struct troupe_queue **out)
{
    *out = troupe_queue_of(troupe_call_state(call));
    if (*out)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"handle\" names no queue");
}

/* Finds the queue, and keeps it for whoever has to release the firing. */
static enum troupe_status enter_queue(const struct troupe_kernel_call *call,
                                      struct troupe_queue **out)
{
    enum troupe_status status = find_queue(call, out);
    if (status == TROUPE_OK)
        troupe_waiting_enter(call->kernel, troupe_queue_payload(*out), release);
    return status;
}

/* ---- Putting in ---- */

static enum troupe_status check_count(const struct troupe_queue *queue, int count, const char *what)
{
    int components = troupe_queue_options_of(queue)->components;
    if (count == components)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "the queue's elements have %d components: %s %d", components, what,
                              count);
}

static enum troupe_status check_dtype(const struct troupe_queue *queue, int component,
                                      enum troupe_dtype dtype)
{
    enum troupe_dtype wanted = troupe_queue_options_of(queue)->dtypes[component];
    if (dtype == wanted)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "component %d is %s: the queue holds %s",
                              component, troupe_dtype_name(dtype), troupe_dtype_name(wanted));
}

/* `rows`: a first dimension that is not the element's. */
static enum troupe_status check_component(const struct troupe_queue *queue, int component,
                                          const struct troupe_tensor *tensor, bool rows)
{
    const struct troupe_queue_options *options = troupe_queue_options_of(queue);
    struct troupe_shape shape = troupe_shape_of(tensor), merged;
    char wanted[TROUPE_SHAPE_TEXT_MAX], given[TROUPE_SHAPE_TEXT_MAX];
    enum troupe_status status = check_dtype(queue, component, tensor->dtype);
    if (status != TROUPE_OK)
        return status;
    if (rows && shape.rank == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "component %d is a scalar: wants a row for each element",
                                  component);
    if (rows) {
        shape.rank--;
        for (int d = 0; d < shape.rank; d++)
            shape.dims[d] = shape.dims[d + 1];
    }
    if (!options->shapes ||
        troupe_shape_merge(&shape, &options->shapes[component], &merged) == TROUPE_OK)
        return TROUPE_OK;
    return troupe_status_fail(
        TROUPE_INVALID_ARGUMENT, "component %d has shape %s: the queue holds %s", component,
        troupe_shape_print(&shape, given), troupe_shape_print(&options->shapes[component], wanted));
}

static void rows_free(struct troupe_queue_row **rows, int64_t count, int components)
{
    for (int64_t i = 0; i < count; i++)
        troupe_queue_row_free(rows[i], components);
    free(rows);
}

static enum troupe_status enqueue_rows(struct troupe_kernel_call *call, struct troupe_queue *queue,
                                       struct troupe_queue_row **rows, int64_t count)
{
    struct troupe_deferred deferred;
    enum troupe_status status = troupe_call_defer(call, &deferred);
    if (status != TROUPE_OK) {
        rows_free(rows, count, troupe_queue_options_of(queue)->components);
        return status;
    }
    troupe_queue_enqueue(queue, &deferred, rows, count);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_queue_enqueue(struct troupe_kernel_call *call)
{
    int components = call->kernel->input_count - 1;
    struct troupe_queue *queue;
    enum troupe_status status = enter_queue(call, &queue);
    if (status == TROUPE_OK)
        status = check_count(queue, components, "got");
    for (int i = 0; i < components && status == TROUPE_OK; i++)
        status = check_component(queue, i, call->inputs[i + 1], false);
    if (status != TROUPE_OK)
        return status;
    struct troupe_queue_row **rows = troupe_calloc(1, sizeof(struct troupe_queue_row *));
    if (rows)
        rows[0] = troupe_queue_row_create(call->inputs + 1, components);
    if (!rows || !rows[0]) {
        free(rows);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    return enqueue_rows(call, queue, rows, 1);
}

static enum troupe_status split_row(struct troupe_kernel_call *call, int64_t index, int components,
                                    struct troupe_queue_row **out)
{
    struct troupe_tensor *parts[TROUPE_QUEUE_COMPONENTS_MAX] = {NULL};
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < components && status == TROUPE_OK; i++)
        status = troupe_tensor_row(call->inputs[i + 1], index, &parts[i]);
    if (status == TROUPE_OK) {
        *out = troupe_queue_row_create(parts, components);
        status = *out ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < components; i++)
        troupe_tensor_unref(parts[i]);
    return status;
}

enum troupe_status troupe_kernel_queue_enqueue_many(struct troupe_kernel_call *call)
{
    int components = call->kernel->input_count - 1;
    struct troupe_queue *queue;
    enum troupe_status status = enter_queue(call, &queue);
    if (status == TROUPE_OK)
        status = check_count(queue, components, "got");
    for (int i = 0; i < components && status == TROUPE_OK; i++)
        status = check_component(queue, i, call->inputs[i + 1], true);
    int64_t count = status == TROUPE_OK ? call->inputs[1]->dims[0] : 0;
    for (int i = 1; i < components && status == TROUPE_OK; i++)
        if (call->inputs[i + 1]->dims[0] != count)
            status = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                        "component %d has %lld rows: component 0 has %lld", i,
                                        (long long)call->inputs[i + 1]->dims[0], (long long)count);
    if (status != TROUPE_OK)
        return status;
    struct troupe_queue_row **rows =
        troupe_calloc((size_t)count + 1, sizeof(struct troupe_queue_row *));
    if (!rows)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int64_t i = 0; i < count && status == TROUPE_OK; i++)
        status = split_row(call, i, components, &rows[i]);
    if (status != TROUPE_OK) {
        rows_free(rows, count, components);
        return status;
    }
    return enqueue_rows(call, queue, rows, count);
}

/* ---- Taking out ---- */

static enum troupe_status dequeue(struct troupe_kernel_call *call, int64_t count, bool stacks,
                                  bool up_to)
{
    int components = call->kernel->output_count;
    struct troupe_deferred deferred;
    struct troupe_queue *queue;
    enum troupe_status status = enter_queue(call, &queue);
    if (status == TROUPE_OK)
        status = check_count(queue, components, "the op has");
    for (int i = 0; i < components && status == TROUPE_OK; i++)
        status = check_dtype(queue, i, call->kernel->output_dtypes[i]);
    if (status == TROUPE_OK && (count < 0 || count > TROUPE_QUEUE_CAPACITY_MAX))
        status = troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"n\" is %lld: wants 0 to %lld",
                                    (long long)count, (long long)TROUPE_QUEUE_CAPACITY_MAX);
    if (status == TROUPE_OK)
        status = troupe_call_defer(call, &deferred);
    if (status == TROUPE_OK)
        troupe_queue_dequeue(queue, &deferred, count, stacks, up_to);
    return status;
}

enum troupe_status troupe_kernel_queue_dequeue(struct troupe_kernel_call *call)
{
    return dequeue(call, 1, false, false);
}

enum troupe_status troupe_kernel_queue_dequeue_many(struct troupe_kernel_call *call)
{
    return dequeue(call, troupe_tensor_int(call->inputs[1], 0), true, false);
}

enum troupe_status troupe_kernel_queue_dequeue_up_to(struct troupe_kernel_call *call)
{
    return dequeue(call, troupe_tensor_int(call->inputs[1], 0), true, true);
}

/* ---- The rest ---- */

enum troupe_status troupe_kernel_queue_close(struct troupe_kernel_call *call)
{
    struct troupe_queue *queue;
    enum troupe_status status = find_queue(call, &queue);
    if (status == TROUPE_OK)
        troupe_queue_close(queue, troupe_kernel_bool(call->kernel, "cancel_pending_enqueues"));
    return status;
}

enum troupe_status troupe_kernel_queue_size(struct troupe_kernel_call *call)
{
    struct troupe_queue *queue;
    struct troupe_tensor *size;
    enum troupe_status status = find_queue(call, &queue);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 0, 0, NULL, &size);
    if (status == TROUPE_OK)
        *(int32_t *)troupe_tensor_data_mutable(size) = (int32_t)troupe_queue_size(queue);
    return status;
}

enum troupe_status troupe_kernel_queue_is_closed(struct troupe_kernel_call *call)
{
    struct troupe_queue *queue;
    struct troupe_tensor *is_closed;
    enum troupe_status status = find_queue(call, &queue);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 0, 0, NULL, &is_closed);
    if (status == TROUPE_OK)
        *(bool *)troupe_tensor_data_mutable(is_closed) = troupe_queue_is_closed(queue);
    return status;
}
