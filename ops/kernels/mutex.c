/* Kernels of mutexes. A lock is a token: the mutex is free again when the last reference to it
 * goes, however the step ends. Invariant: while the mutex is held by nobody, nobody waits. */
#include "ops/kernels/mutex.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ops/kernels/waiting.h"
#include "ops/tensor.h"

struct mutex {
    struct troupe_payload payload; /* first */
    pthread_mutex_t lock;          /* guards all below */
    struct troupe_waiters waiters;
    bool is_held;
};

struct hold {
    struct troupe_payload payload; /* first */
    struct mutex *mutex;           /* counted */
};

static void give(struct mutex *mutex, struct troupe_waiter *waiter);

static void hold_destroy(struct troupe_payload *payload)
{
    struct hold *hold = troupe_container_of(payload, struct hold, payload);
    struct mutex *mutex = hold->mutex;
    pthread_mutex_lock(&mutex->lock);
    struct troupe_waiter *next = troupe_waiters_take(&mutex->waiters);
    mutex->is_held = next != NULL;
    pthread_mutex_unlock(&mutex->lock);
    free(hold);
    if (next)
        give(mutex, next);
    troupe_payload_unref(&mutex->payload);
}

/* Ends a waiter's firing with the mutex, which is held for it. */
static void give(struct mutex *mutex, struct troupe_waiter *waiter)
{
    struct troupe_deferred deferred = waiter->deferred;
    struct hold *hold = troupe_calloc(1, sizeof(*hold));
    struct troupe_tensor *token = NULL;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    free(waiter);
    if (hold)
        status = troupe_tensor_create(TROUPE_RESOURCE, 0, NULL, &token);
    if (status != TROUPE_OK) {
        free(hold);
        pthread_mutex_lock(&mutex->lock);
        mutex->is_held = false; /* the others go with their run */
        pthread_mutex_unlock(&mutex->lock);
        troupe_deferred_complete(&deferred, status, NULL, NULL);
        return;
    }
    troupe_payload_init(&hold->payload, hold_destroy);
    troupe_payload_ref(&mutex->payload, 1);
    hold->mutex = mutex;
    *(struct troupe_payload **)troupe_tensor_data_mutable(token) = &hold->payload;
    troupe_deferred_complete(&deferred, TROUPE_OK, NULL, &token);
}

static void mutex_destroy(struct troupe_payload *payload)
{
    struct mutex *mutex = troupe_container_of(payload, struct mutex, payload);
    pthread_mutex_destroy(&mutex->lock);
    free(mutex);
}

enum troupe_status troupe_mutex_create(const struct troupe_kernel *kernel,
                                       struct troupe_resource **out)
{
    struct mutex *mutex = troupe_calloc(1, sizeof(*mutex));
    (void)kernel;
    if (!mutex)
        return TROUPE_RESOURCE_EXHAUSTED;
    troupe_payload_init(&mutex->payload, mutex_destroy);
    pthread_mutex_init(&mutex->lock, NULL);
    troupe_waiters_init(&mutex->waiters);
    *out = troupe_counted_resource(&mutex->payload);
    return *out ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

static void release(struct troupe_payload *state, const struct troupe_kernel *kernel,
                    uint64_t first)
{
    struct mutex *mutex = troupe_container_of(state, struct mutex, payload);
    struct troupe_waiters over;
    troupe_waiters_init(&over);
    pthread_mutex_lock(&mutex->lock);
    troupe_waiters_split(&mutex->waiters, kernel, first, &over);
    pthread_mutex_unlock(&mutex->lock);
    troupe_waiters_abort(&over);
}

enum troupe_status troupe_kernel_mutex_lock(struct troupe_kernel_call *call)
{
    struct troupe_payload *state = troupe_call_state(call);
    if (!state || state->destroy != mutex_destroy)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"mutex\" names no mutex");
    struct mutex *mutex = troupe_container_of(state, struct mutex, payload);
    struct troupe_waiter *waiter = troupe_calloc(1, sizeof(*waiter));
    if (!waiter)
        return TROUPE_RESOURCE_EXHAUSTED;
    troupe_waiting_enter(call->kernel, state, release);
    enum troupe_status status = troupe_call_defer(call, &waiter->deferred);
    if (status != TROUPE_OK) {
        free(waiter);
        return status;
    }
    pthread_mutex_lock(&mutex->lock);
    bool waits = mutex->is_held;
    if (waits)
        troupe_waiters_append(&mutex->waiters, waiter);
    mutex->is_held = true;
    pthread_mutex_unlock(&mutex->lock);
    if (!waits)
        give(mutex, waiter);
    return TROUPE_OK;
}

/* The token goes with the firing's input. */
enum troupe_status troupe_kernel_mutex_consume(struct troupe_kernel_call *call)
{
    struct troupe_payload *state = troupe_call_state(call);
    if (state && state->destroy == hold_destroy)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"mutex_lock\" is no lock of a mutex");
}
