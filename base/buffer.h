/* A counted block of bytes, which several tensors may share (a reshape, a slice of rows). */
#ifndef TROUPE_BASE_BUFFER_H
#define TROUPE_BASE_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

struct troupe_buffer {
    _Atomic(uint32_t) references;
    size_t bytes;
    void *data; /* aligned to TROUPE_MEMORY_ALIGNMENT */
    /* What frees `data` with the last reference; NULL: troupe_memory_free. */
    void (*release)(void *context, void *data, size_t bytes);
    void *context;
};

/* A buffer with one reference and unset bytes. RESOURCE_EXHAUSTED. Any thread. */
TROUPE_MUST_USE enum troupe_status troupe_buffer_create(size_t bytes, struct troupe_buffer **out);

/* A buffer over memory of the caller's, which `release` gets back with the last reference. */
TROUPE_MUST_USE enum troupe_status troupe_buffer_wrap(void *data, size_t bytes,
                                                      void (*release)(void *context, void *data,
                                                                      size_t bytes),
                                                      void *context, struct troupe_buffer **out);

struct troupe_buffer *troupe_buffer_ref(struct troupe_buffer *buffer);
void troupe_buffer_unref(struct troupe_buffer *buffer);

/* True when the caller holds the only reference, so that it may write in place. */
bool troupe_buffer_is_unique(const struct troupe_buffer *buffer);

#endif
