/* Counted blocks of bytes. Invariant: the data goes back with the last reference, and only the
 * holder of a single reference writes. */
#include <stdlib.h>

#include "base/buffer.h"
#include "base/memory.h"

static enum troupe_status buffer_make(void *data, size_t bytes,
                                      void (*release)(void *context, void *data, size_t bytes),
                                      void *context, struct troupe_buffer **out)
{
    struct troupe_buffer *buffer = troupe_memory_alloc(sizeof(*buffer));
    if (!buffer)
        return TROUPE_RESOURCE_EXHAUSTED;
    atomic_init(&buffer->references, 1);
    buffer->bytes = bytes;
    buffer->data = data;
    buffer->release = release;
    buffer->context = context;
    *out = buffer;
    return TROUPE_OK;
}

enum troupe_status troupe_buffer_create(size_t bytes, struct troupe_buffer **out)
{
    void *data = troupe_memory_alloc(bytes);
    if (!data)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = buffer_make(data, bytes, NULL, NULL, out);
    if (status != TROUPE_OK)
        troupe_memory_free(data, bytes);
    return status;
}

enum troupe_status troupe_buffer_wrap(void *data, size_t bytes,
                                      void (*release)(void *context, void *data, size_t bytes),
                                      void *context, struct troupe_buffer **out)
{
    return buffer_make(data, bytes, release, context, out);
}

struct troupe_buffer *troupe_buffer_ref(struct troupe_buffer *buffer)
{
    /* Relaxed: the caller's own reference keeps the buffer alive meanwhile. */
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

void troupe_buffer_unref(struct troupe_buffer *buffer)
{
    if (!buffer)
        return;
    /* Acquire and release: partner of itself in other threads and of the acquire in
     * troupe_buffer_is_unique. */
    if (atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1)
        return;
    if (buffer->release)
        buffer->release(buffer->context, buffer->data, buffer->bytes);
    else
        troupe_memory_free(buffer->data, buffer->bytes);
    troupe_memory_free(buffer, sizeof(*buffer));
}

bool troupe_buffer_is_unique(const struct troupe_buffer *buffer)
{
    /* Acquire: partner of the release in troupe_buffer_unref, so that a writer in place comes
     * after the last read under another reference. */
    return atomic_load_explicit(&buffer->references, memory_order_acquire) == 1;
}
