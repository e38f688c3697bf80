/* Kernels of barriers. An element is known by a key, and its components come one by one; when it
 * has all it goes into a queue, behind those that were complete before. Invariant: an element that
 * is incomplete lacks at least one component; a key is that of one incomplete element at most. */
#include "ops/kernels/barrier.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/shapes.h"
#include "ops/kernels/waiting.h"
#include "ops/string.h"
#include "ops/tensor.h"

/* Before an element's own components in the queue: when its key first came, and the key. */
enum { COMPONENT_INDEX = 0, COMPONENT_KEY = 1, COMPONENTS_BEFORE = 2 };

struct incomplete {
    struct incomplete *next;
    struct troupe_string *key;
    int missing;
    struct troupe_queue_row *row; /* NULL for a component that has not come */
};

struct barrier {
    struct troupe_payload payload; /* first */
    struct troupe_queue *ready;
    int components; /* of an element, without those before */
    enum troupe_dtype dtypes[TROUPE_QUEUE_COMPONENTS_MAX];
    struct troupe_shape *shapes; /* NULL: any */
    pthread_mutex_t lock;        /* guards all below */
    struct incomplete *first;
    int64_t incomplete_count;
    int64_t next_index;
    bool is_closed;
};

static void incomplete_free(struct barrier *barrier, struct incomplete *element)
{
    troupe_string_unref(element->key);
    troupe_queue_row_free(element->row, barrier->components + COMPONENTS_BEFORE);
    free(element);
}

static void barrier_destroy(struct troupe_payload *payload)
{
    struct barrier *barrier = troupe_container_of(payload, struct barrier, payload);
    while (barrier->first) {
        struct incomplete *next = barrier->first->next;
        incomplete_free(barrier, barrier->first);
        barrier->first = next;
    }
    if (barrier->ready)
        troupe_payload_unref(troupe_queue_payload(barrier->ready));
    pthread_mutex_destroy(&barrier->lock);
    free(barrier->shapes);
    free(barrier);
}

enum troupe_status troupe_barrier_create(const struct troupe_kernel *kernel,
                                         const struct troupe_queue_options *options,
                                         struct troupe_resource **out)
{
    struct barrier *barrier = troupe_calloc(1, sizeof(*barrier));
    if (!barrier)
        return TROUPE_RESOURCE_EXHAUSTED;
    troupe_payload_init(&barrier->payload, barrier_destroy);
    pthread_mutex_init(&barrier->lock, NULL);
    barrier->components = options->components;
    barrier->next_index = INT64_MIN;
    barrier->dtypes[COMPONENT_INDEX] = TROUPE_INT64;
    barrier->dtypes[COMPONENT_KEY] = TROUPE_STRING;
    for (int i = 0; i < options->components; i++)
        barrier->dtypes[COMPONENTS_BEFORE + i] = options->dtypes[i];
    enum troupe_status status = TROUPE_OK;
    if (options->shapes) {
        barrier->shapes = troupe_calloc((size_t)options->components, sizeof(*barrier->shapes));
        status = barrier->shapes ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
        for (int i = 0; barrier->shapes && i < options->components; i++)
            barrier->shapes[i] = options->shapes[i];
    }
    struct troupe_queue_options queue = {.capacity = TROUPE_QUEUE_CAPACITY_MAX,
                                         .components = options->components + COMPONENTS_BEFORE,
                                         .dtypes = barrier->dtypes};
    if (status == TROUPE_OK)
        status = troupe_queue_create(kernel->name, &queue, &barrier->ready);
    if (status != TROUPE_OK) {
        troupe_payload_unref(&barrier->payload);
        return status;
    }
    *out = troupe_counted_resource(&barrier->payload);
    return *out ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

static enum troupe_status find(const struct troupe_kernel_call *call, struct barrier **out)
{
    struct troupe_payload *state = troupe_call_state(call);
    if (!state || state->destroy != barrier_destroy)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"handle\" names no barrier");
    *out = troupe_container_of(state, struct barrier, payload);
    return TROUPE_OK;
}

/* ---- Inserting ---- */

static bool same_key(const struct troupe_string *a, const struct troupe_string *b)
{
    size_t length = troupe_string_length(a);
    return length == troupe_string_length(b) &&
           memcmp(troupe_string_data(a), troupe_string_data(b), length) == 0;
}

static struct incomplete **find_key(struct barrier *barrier, const struct troupe_string *key)
{
    struct incomplete **link = &barrier->first;
    while (*link && !same_key((*link)->key, key))
        link = &(*link)->next;
    return link;
}

static enum troupe_status scalar(enum troupe_dtype dtype, struct troupe_tensor **out)
{
    return troupe_tensor_create(dtype, 0, NULL, out);
}

static enum troupe_status begin_element(struct barrier *barrier, struct troupe_string *key,
                                        struct incomplete **link)
{
    struct troupe_tensor *parts[TROUPE_QUEUE_COMPONENTS_MAX] = {NULL};
    struct incomplete *element = troupe_calloc(1, sizeof(*element));
    enum troupe_status status = element ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK)
        status = scalar(TROUPE_INT64, &parts[COMPONENT_INDEX]);
    if (status == TROUPE_OK)
        status = scalar(TROUPE_STRING, &parts[COMPONENT_KEY]);
    if (status == TROUPE_OK) {
        *(int64_t *)troupe_tensor_data_mutable(parts[COMPONENT_INDEX]) = barrier->next_index;
        *(struct troupe_string **)troupe_tensor_data_mutable(parts[COMPONENT_KEY]) =
            troupe_string_ref(key);
        element->row = troupe_queue_row_create(parts, barrier->components + COMPONENTS_BEFORE);
        status = element->row ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    }
    troupe_tensor_unref(parts[COMPONENT_INDEX]);
    troupe_tensor_unref(parts[COMPONENT_KEY]);
    if (status != TROUPE_OK) {
        free(element);
        return status;
    }
    element->key = troupe_string_ref(key);
    element->missing = barrier->components;
    barrier->next_index++;
    barrier->incomplete_count++;
    *link = element;
    return TROUPE_OK;
}

/* Gives a component to the element of a key; the row of one that is complete then goes to *done. */
static enum troupe_status insert_locked(struct barrier *barrier, struct troupe_string *key,
                                        int component, struct troupe_tensor *value,
                                        struct troupe_queue_row **done)
{
    struct incomplete **link = find_key(barrier, key);
    const char *text = troupe_string_data(key);
    if (barrier->is_closed && !*link)
        return troupe_status_fail(TROUPE_CANCELLED, "the barrier is closed to new keys: \"%s\"",
                                  text);
    enum troupe_status status = *link ? TROUPE_OK : begin_element(barrier, key, link);
    if (status != TROUPE_OK)
        return status;
    struct incomplete *element = *link;
    struct troupe_tensor **place = &element->row->components[COMPONENTS_BEFORE + component];
    if (*place)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "key \"%s\" has component %d already",
                                  text, component);
    *place = troupe_tensor_ref(value);
    if (--element->missing > 0)
        return TROUPE_OK;
    *link = element->next;
    barrier->incomplete_count--;
    *done = element->row;
    element->row = NULL;
    incomplete_free(barrier, element);
    return TROUPE_OK;
}

static enum troupe_status check_insert(const struct barrier *barrier,
                                       const struct troupe_kernel_call *call, int64_t component)
{
    const struct troupe_tensor *keys = call->inputs[1], *values = call->inputs[2];
    char given[TROUPE_SHAPE_TEXT_MAX], wanted[TROUPE_SHAPE_TEXT_MAX];
    if (component < 0 || component >= barrier->components)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"component_index\" is %lld: the barrier has components 0 to %d",
                                  (long long)component, barrier->components - 1);
    if (values->dtype != barrier->dtypes[COMPONENTS_BEFORE + component])
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "component %lld is %s: the barrier holds %s",
            (long long)component, troupe_dtype_name(values->dtype),
            troupe_dtype_name(barrier->dtypes[COMPONENTS_BEFORE + component]));
    if (keys->rank != 1 || values->rank < 1 || values->dims[0] != keys->dims[0])
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"values\" wants a row for each of the keys, a vector");
    struct troupe_shape shape = troupe_shape_make(values->rank - 1, values->dims + 1), merged;
    if (!barrier->shapes ||
        troupe_shape_merge(&shape, &barrier->shapes[component], &merged) == TROUPE_OK)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "component %lld has shape %s: the barrier holds %s",
                              (long long)component, troupe_shape_print(&shape, given),
                              troupe_shape_print(&barrier->shapes[component], wanted));
}

static enum troupe_status insert_row(struct barrier *barrier, struct troupe_kernel_call *call,
                                     int64_t component, int64_t index)
{
    struct troupe_string *const *keys = troupe_tensor_data(call->inputs[1]);
    struct troupe_queue_row *done = NULL;
    struct troupe_tensor *value;
    enum troupe_status status = troupe_tensor_row(call->inputs[2], index, &value);
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&barrier->lock);
    status = insert_locked(barrier, keys[index], (int)component, value, &done);
    bool is_last = barrier->is_closed && barrier->incomplete_count == 0;
    pthread_mutex_unlock(&barrier->lock);
    troupe_tensor_unref(value);
    if (done)
        status = troupe_queue_put(barrier->ready, done);
    if (is_last)
        troupe_queue_close(barrier->ready, false);
    return status;
}

enum troupe_status troupe_kernel_barrier_insert(struct troupe_kernel_call *call)
{
    int64_t component = troupe_kernel_int(call->kernel, "component_index");
    struct barrier *barrier = NULL;
    enum troupe_status status = find(call, &barrier);
    if (status == TROUPE_OK)
        status = check_insert(barrier, call, component);
    int64_t count = status == TROUPE_OK ? call->inputs[1]->dims[0] : 0;
    for (int64_t i = 0; i < count && status == TROUPE_OK; i++)
        status = insert_row(barrier, call, component, i);
    return status;
}

/* ---- The rest ---- */

static void release(struct troupe_payload *state, const struct troupe_kernel *kernel,
                    uint64_t first)
{
    troupe_queue_release(troupe_container_of(state, struct barrier, payload)->ready, kernel, first);
}

enum troupe_status troupe_kernel_barrier_take(struct troupe_kernel_call *call)
{
    struct barrier *barrier = NULL;
    struct troupe_deferred deferred;
    enum troupe_status status = find(call, &barrier);
    if (status != TROUPE_OK)
        return status;
    int64_t count = troupe_tensor_int(call->inputs[1], 0);
    if (count < 1 || count > TROUPE_QUEUE_CAPACITY_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"num_elements\" is %lld: wants 1 to %lld", (long long)count,
                                  (long long)TROUPE_QUEUE_CAPACITY_MAX);
    for (int i = 0; i < call->kernel->output_count; i++)
        if (call->kernel->output_count != barrier->components + COMPONENTS_BEFORE ||
            call->kernel->output_dtypes[i] != barrier->dtypes[i])
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "attr \"component_types\" is not the barrier's");
    troupe_waiting_enter(call->kernel, &barrier->payload, release);
    status = troupe_call_defer(call, &deferred);
    if (status == TROUPE_OK)
        troupe_queue_dequeue(barrier->ready, &deferred, count, true,
                             troupe_kernel_bool(call->kernel, "allow_small_batch"));
    return status;
}

enum troupe_status troupe_kernel_barrier_close(struct troupe_kernel_call *call)
{
    bool cancels = troupe_kernel_bool(call->kernel, "cancel_pending_enqueues");
    struct barrier *barrier = NULL;
    enum troupe_status status = find(call, &barrier);
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&barrier->lock);
    barrier->is_closed = true;
    bool is_last = cancels || barrier->incomplete_count == 0;
    pthread_mutex_unlock(&barrier->lock);
    if (is_last)
        troupe_queue_close(barrier->ready, cancels);
    return TROUPE_OK;
}

static enum troupe_status give_count(struct troupe_kernel_call *call, int64_t count)
{
    struct troupe_tensor *size;
    enum troupe_status status = troupe_call_output(call, 0, 0, NULL, &size);
    if (status == TROUPE_OK)
        *(int32_t *)troupe_tensor_data_mutable(size) = (int32_t)count;
    return status;
}

enum troupe_status troupe_kernel_barrier_ready(struct troupe_kernel_call *call)
{
    struct barrier *barrier = NULL;
    enum troupe_status status = find(call, &barrier);
    return status == TROUPE_OK ? give_count(call, troupe_queue_size(barrier->ready)) : status;
}

enum troupe_status troupe_kernel_barrier_incomplete(struct troupe_kernel_call *call)
{
    struct barrier *barrier = NULL;
    enum troupe_status status = find(call, &barrier);
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&barrier->lock);
    int64_t count = barrier->incomplete_count;
    pthread_mutex_unlock(&barrier->lock);
    return give_count(call, count);
}
