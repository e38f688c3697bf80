/* Variables. Invariant: a value that anybody else can see is never written; an update holds the
 * lock, so that it is one with respect to reads and other updates. */
#include "base/memory.h"
#include "ops/kernel.h"
#include "ops/tensor.h"

struct troupe_variable *troupe_variable_of(struct troupe_resource *resource)
{
    return troupe_container_of(resource, struct troupe_variable, resource);
}

static void variable_destroy(struct troupe_resource *resource)
{
    struct troupe_variable *variable = troupe_variable_of(resource);
    troupe_tensor_unref(variable->value);
    pthread_mutex_destroy(&variable->lock);
    troupe_memory_free(variable, sizeof(*variable));
}

enum troupe_status troupe_variable_create(enum troupe_dtype dtype, const struct troupe_shape *shape,
                                          struct troupe_variable **out)
{
    struct troupe_variable *variable = troupe_memory_alloc(sizeof(*variable));
    if (!variable)
        return TROUPE_RESOURCE_EXHAUSTED;
    variable->resource.destroy = variable_destroy;
    pthread_mutex_init(&variable->lock, NULL);
    variable->value = NULL;
    variable->dtype = dtype;
    variable->shape = *shape;
    *out = variable;
    return TROUPE_OK;
}

static enum troupe_status not_initialised(const char *name)
{
    return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                              "variable \"%s\" is not initialised: run its initialiser, or give "
                              "it the attr \"initializer\"",
                              name);
}

enum troupe_status troupe_variable_read(struct troupe_variable *variable, const char *name,
                                        struct troupe_tensor **out)
{
    pthread_mutex_lock(&variable->lock);
    struct troupe_tensor *value = troupe_tensor_ref(variable->value);
    pthread_mutex_unlock(&variable->lock);
    if (!value)
        return not_initialised(name);
    *out = value;
    return TROUPE_OK;
}

void troupe_variable_set(struct troupe_variable *variable, struct troupe_tensor *value)
{
    troupe_tensor_ref(value);
    pthread_mutex_lock(&variable->lock);
    struct troupe_tensor *old = variable->value;
    variable->value = value;
    pthread_mutex_unlock(&variable->lock);
    troupe_tensor_unref(old);
}

enum troupe_status troupe_variable_begin_update(struct troupe_variable *variable, const char *name,
                                                struct troupe_tensor **out)
{
    pthread_mutex_lock(&variable->lock);
    struct troupe_tensor *value = variable->value;
    enum troupe_status status = value ? TROUPE_OK : not_initialised(name);
    if (status == TROUPE_OK && !troupe_tensor_is_unique(value)) {
        status = troupe_tensor_copy(variable->value, &value);
        if (status == TROUPE_OK)
            troupe_tensor_unref(variable->value);
    }
    if (status != TROUPE_OK) {
        pthread_mutex_unlock(&variable->lock);
        return status;
    }
    variable->value = NULL;
    *out = value;
    return TROUPE_OK;
}

void troupe_variable_end_update(struct troupe_variable *variable, struct troupe_tensor *value)
{
    variable->value = value;
    pthread_mutex_unlock(&variable->lock);
}
