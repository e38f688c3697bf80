/* Waiting. Invariant: a kernel's state is kept from the first firing that may have waited in it to
 * the end of the kernel. */
#include "ops/kernels/waiting.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ops/tensor.h"

struct waiting {
    pthread_mutex_t lock; /* guards all below */
    struct troupe_payload *state;
    troupe_waiting_release_fn *release;
};

enum troupe_status troupe_waiting_init(struct troupe_kernel *kernel)
{
    struct waiting *waiting = troupe_calloc(1, sizeof(*waiting));
    if (!waiting)
        return TROUPE_RESOURCE_EXHAUSTED;
    pthread_mutex_init(&waiting->lock, NULL);
    kernel->state = waiting;
    return TROUPE_OK;
}

void troupe_waiting_fini(struct troupe_kernel *kernel)
{
    struct waiting *waiting = kernel->state;
    troupe_payload_unref(waiting->state);
    pthread_mutex_destroy(&waiting->lock);
    free(waiting);
}

void troupe_waiting_release(struct troupe_kernel *kernel, uint64_t first)
{
    struct waiting *waiting = kernel->state;
    pthread_mutex_lock(&waiting->lock);
    struct troupe_payload *state = waiting->state;
    troupe_payload_ref(state, 1);
    pthread_mutex_unlock(&waiting->lock);
    if (state)
        waiting->release(state, kernel, first);
    troupe_payload_unref(state);
}

void troupe_waiting_enter(struct troupe_kernel *kernel, struct troupe_payload *state,
                          troupe_waiting_release_fn *release)
{
    struct waiting *waiting = kernel->state;
    struct troupe_payload *before = state;
    pthread_mutex_lock(&waiting->lock);
    if (waiting->state != state) {
        before = waiting->state;
        troupe_payload_ref(state, 1);
        waiting->state = state;
        waiting->release = release;
    } else {
        before = NULL;
    }
    pthread_mutex_unlock(&waiting->lock);
    troupe_payload_unref(before);
}

enum troupe_status troupe_call_handle(struct troupe_kernel_call *call, struct troupe_payload *state)
{
    struct troupe_tensor *handle;
    enum troupe_status status = troupe_call_output(call, 0, 0, NULL, &handle);
    if (status != TROUPE_OK)
        return status;
    troupe_payload_ref(state, 1);
    *(struct troupe_payload **)troupe_tensor_data_mutable(handle) = state;
    return TROUPE_OK;
}

struct troupe_payload *troupe_call_state(const struct troupe_kernel_call *call)
{
    return *(struct troupe_payload *const *)troupe_tensor_data(call->inputs[0]);
}

/* ---- Resources ---- */

struct counted_resource {
    struct troupe_resource resource; /* first */
    struct troupe_payload *state;
};

static void resource_destroy(struct troupe_resource *resource)
{
    struct counted_resource *self =
        troupe_container_of(resource, struct counted_resource, resource);
    troupe_payload_unref(self->state);
    free(self);
}

struct troupe_resource *troupe_counted_resource(struct troupe_payload *state)
{
    struct counted_resource *self = troupe_calloc(1, sizeof(*self));
    if (!self) {
        troupe_payload_unref(state);
        return NULL;
    }
    self->resource.destroy = resource_destroy;
    self->state = state;
    return &self->resource;
}

struct troupe_payload *troupe_counted_state(struct troupe_resource *resource)
{
    return troupe_container_of(resource, struct counted_resource, resource)->state;
}

enum troupe_status troupe_kernel_state_handle(struct troupe_kernel_call *call)
{
    return troupe_call_handle(call, troupe_counted_state(call->kernel->own_resource));
}

/* ---- Lists ---- */

void troupe_waiters_init(struct troupe_waiters *waiters)
{
    waiters->first = NULL;
    waiters->end = &waiters->first;
}

void troupe_waiters_append(struct troupe_waiters *waiters, struct troupe_waiter *waiter)
{
    waiter->next = NULL;
    *waiters->end = waiter;
    waiters->end = &waiter->next;
}

struct troupe_waiter *troupe_waiters_take(struct troupe_waiters *waiters)
{
    struct troupe_waiter *waiter = waiters->first;
    if (waiter) {
        waiters->first = waiter->next;
        if (!waiters->first)
            waiters->end = &waiters->first;
    }
    return waiter;
}

void troupe_waiters_split(struct troupe_waiters *waiters, const struct troupe_kernel *kernel,
                          uint64_t first, struct troupe_waiters *out)
{
    struct troupe_waiters rest;
    troupe_waiters_init(&rest);
    for (struct troupe_waiter *waiter; (waiter = troupe_waiters_take(waiters)) != NULL;) {
        bool goes = waiter->deferred.kernel == kernel && waiter->deferred.iteration >= first;
        troupe_waiters_append(goes ? out : &rest, waiter);
    }
    for (struct troupe_waiter *waiter; (waiter = troupe_waiters_take(&rest)) != NULL;)
        troupe_waiters_append(waiters, waiter);
}

void troupe_waiters_abort(struct troupe_waiters *waiters)
{
    for (struct troupe_waiter *waiter; (waiter = troupe_waiters_take(waiters)) != NULL;) {
        troupe_deferred_complete(&waiter->deferred, TROUPE_ABORTED, "the run has ended", NULL);
        free(waiter);
    }
}
