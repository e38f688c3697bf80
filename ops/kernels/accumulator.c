/* Kernels of accumulators: gradients of many workers are added up until enough are there for a
 * step; those of an earlier step are dropped. Invariant: while a take waits, fewer gradients are
 * there than it wants. */
#include "ops/kernels/accumulator.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/kernels/shapes.h"
#include "ops/kernels/waiting.h"
#include "ops/tensor.h"

struct accumulator {
    struct troupe_payload payload; /* first */
    enum troupe_dtype dtype;
    struct troupe_shape shape; /* as far as it is known */
    bool means;
    pthread_mutex_t lock; /* guards all below */
    struct troupe_tensor *sum;
    int64_t count; /* gradients in the sum */
    int64_t step;  /* gradients of earlier ones are dropped */
    struct troupe_waiters waiters;
};

static void accumulator_destroy(struct troupe_payload *payload)
{
    struct accumulator *self = troupe_container_of(payload, struct accumulator, payload);
    troupe_tensor_unref(self->sum);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

enum troupe_status troupe_accumulator_create(const struct troupe_kernel *kernel,
                                             struct troupe_resource **out)
{
    struct accumulator *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    troupe_payload_init(&self->payload, accumulator_destroy);
    self->dtype = troupe_kernel_type(kernel, "dtype");
    self->shape = troupe_kernel_attr(kernel, "shape")->value.shape;
    self->means = strcmp(troupe_kernel_attr(kernel, "reduction_type")->value.s, "MEAN") == 0;
    pthread_mutex_init(&self->lock, NULL);
    troupe_waiters_init(&self->waiters);
    *out = troupe_counted_resource(&self->payload);
    return *out ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

/* ---- Arithmetic ---- */

/* For each element of the target, which is to[i]. */
#define FOR_EACH(type, statement)                                                                  \
    {                                                                                              \
        type *to = troupe_tensor_data_mutable(target);                                             \
        for (int64_t i = 0; i < elements; i++)                                                     \
            statement;                                                                             \
    }

static void add_into(struct troupe_tensor *target, const struct troupe_tensor *other)
{
    int64_t elements = troupe_tensor_elements(target);
    const void *from = troupe_tensor_data(other);
    switch (target->dtype) {
    case TROUPE_FLOAT32:
        FOR_EACH(float, to[i] += ((const float *)from)[i])
        break;
    case TROUPE_FLOAT64:
        FOR_EACH(double, to[i] += ((const double *)from)[i])
        break;
    case TROUPE_INT32:
        FOR_EACH(int32_t, to[i] = (int32_t)((uint32_t)to[i] + (uint32_t)((const int32_t *)from)[i]))
        break;
    default:
        FOR_EACH(int64_t, to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)((const int64_t *)from)[i]))
        break;
    }
}

static void divide_by(struct troupe_tensor *target, int64_t count)
{
    int64_t elements = troupe_tensor_elements(target);
    switch (target->dtype) {
    case TROUPE_FLOAT32:
        FOR_EACH(float, to[i] /= (float)count)
        break;
    case TROUPE_FLOAT64:
        FOR_EACH(double, to[i] /= (double)count)
        break;
    case TROUPE_INT32:
        FOR_EACH(int32_t, to[i] = (int32_t)(to[i] / count))
        break;
    default:
        FOR_EACH(int64_t, to[i] /= count)
        break;
    }
}

/* ---- Giving and taking ---- */

static enum troupe_status find(const struct troupe_kernel_call *call, struct accumulator **out)
{
    struct troupe_payload *state = troupe_call_state(call);
    if (!state || state->destroy != accumulator_destroy)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"handle\" names no accumulator");
    *out = troupe_container_of(state, struct accumulator, payload);
    return TROUPE_OK;
}

/* The oldest take that has enough, with what it gets; NULL. */
static struct troupe_waiter *serve_locked(struct accumulator *self, struct troupe_tensor **out)
{
    struct troupe_waiter *waiter = self->waiters.first;
    if (!waiter || self->count == 0 || self->count < waiter->wanted)
        return NULL;
    (void)troupe_waiters_take(&self->waiters);
    if (self->means)
        divide_by(self->sum, self->count);
    *out = self->sum;
    self->sum = NULL;
    self->count = 0;
    self->step++;
    return waiter;
}

static void finish(struct troupe_waiter *waiter, struct troupe_tensor *gradient)
{
    if (!waiter)
        return;
    troupe_deferred_complete(&waiter->deferred, TROUPE_OK, NULL, &gradient);
    free(waiter);
}

static enum troupe_status check_gradient(const struct accumulator *self,
                                         const struct troupe_tensor *gradient)
{
    struct troupe_shape shape = troupe_shape_of(gradient), merged;
    char given[TROUPE_SHAPE_TEXT_MAX], wanted[TROUPE_SHAPE_TEXT_MAX];
    if (gradient->dtype != self->dtype)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "the gradient is %s: the accumulator holds %s",
            troupe_dtype_name(gradient->dtype), troupe_dtype_name(self->dtype));
    if (troupe_shape_merge(&shape, &self->shape, &merged) == TROUPE_OK)
        return TROUPE_OK;
    return troupe_status_fail(
        TROUPE_INVALID_ARGUMENT, "the gradient has shape %s: the accumulator holds %s",
        troupe_shape_print(&shape, given), troupe_shape_print(&self->shape, wanted));
}

static enum troupe_status add_locked(struct accumulator *self, struct troupe_tensor *gradient)
{
    enum troupe_status status = TROUPE_OK;
    if (!self->sum) {
        status = troupe_tensor_create(gradient->dtype, gradient->rank, gradient->dims, &self->sum);
        if (status == TROUPE_OK)
            memcpy(troupe_tensor_data_mutable(self->sum), troupe_tensor_data(gradient),
                   troupe_tensor_bytes(gradient));
    } else {
        struct troupe_shape shape = troupe_shape_of(gradient), its = troupe_shape_of(self->sum);
        if (!troupe_shape_equal(&shape, &its))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "the gradient's shape is not that of those before");
        add_into(self->sum, gradient);
    }
    self->count += status == TROUPE_OK;
    return status;
}

enum troupe_status troupe_kernel_accumulator_apply(struct troupe_kernel_call *call)
{
    struct accumulator *self = NULL;
    struct troupe_tensor *gradient = NULL;
    struct troupe_waiter *waiter = NULL;
    enum troupe_status status = find(call, &self);
    if (status == TROUPE_OK)
        status = check_gradient(self, call->inputs[2]);
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&self->lock);
    if (troupe_tensor_int(call->inputs[1], 0) >= self->step)
        status = add_locked(self, call->inputs[2]);
    if (status == TROUPE_OK)
        waiter = serve_locked(self, &gradient);
    pthread_mutex_unlock(&self->lock);
    finish(waiter, gradient);
    return status;
}

static void release(struct troupe_payload *state, const struct troupe_kernel *kernel,
                    uint64_t first)
{
    struct accumulator *self = troupe_container_of(state, struct accumulator, payload);
    struct troupe_waiters over;
    troupe_waiters_init(&over);
    pthread_mutex_lock(&self->lock);
    troupe_waiters_split(&self->waiters, kernel, first, &over);
    pthread_mutex_unlock(&self->lock);
    troupe_waiters_abort(&over);
}

enum troupe_status troupe_kernel_accumulator_take(struct troupe_kernel_call *call)
{
    struct accumulator *self = NULL;
    struct troupe_tensor *gradient = NULL;
    enum troupe_status status = find(call, &self);
    if (status != TROUPE_OK)
        return status;
    if (call->kernel->output_dtypes[0] != self->dtype)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "attr \"dtype\" is %s: the accumulator holds %s",
            troupe_dtype_name(call->kernel->output_dtypes[0]), troupe_dtype_name(self->dtype));
    int64_t wanted = troupe_tensor_int(call->inputs[1], 0);
    if (wanted < 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"num_required\" is %lld: wants 1 or more", (long long)wanted);
    struct troupe_waiter *waiter = troupe_calloc(1, sizeof(*waiter));
    if (!waiter)
        return TROUPE_RESOURCE_EXHAUSTED;
    waiter->wanted = wanted;
    troupe_waiting_enter(call->kernel, &self->payload, release);
    status = troupe_call_defer(call, &waiter->deferred);
    if (status != TROUPE_OK) {
        free(waiter);
        return status;
    }
    pthread_mutex_lock(&self->lock);
    troupe_waiters_append(&self->waiters, waiter);
    waiter = serve_locked(self, &gradient);
    pthread_mutex_unlock(&self->lock);
    finish(waiter, gradient);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_accumulator_count(struct troupe_kernel_call *call)
{
    struct accumulator *self = NULL;
    struct troupe_tensor *count;
    enum troupe_status status = find(call, &self);
    if (status == TROUPE_OK)
        status = troupe_call_output(call, 0, 0, NULL, &count);
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&self->lock);
    *(int32_t *)troupe_tensor_data_mutable(count) = (int32_t)self->count;
    pthread_mutex_unlock(&self->lock);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_accumulator_set_step(struct troupe_kernel_call *call)
{
    struct accumulator *self = NULL;
    enum troupe_status status = find(call, &self);
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&self->lock);
    self->step = troupe_tensor_int(call->inputs[1], 0);
    pthread_mutex_unlock(&self->lock);
    return TROUPE_OK;
}
