/* Memory in size classes, aligned to 64 bytes, cached per thread. */
#ifndef TROUPE_BASE_MEMORY_H
#define TROUPE_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "troupe/attributes.h"

#define TROUPE_MEMORY_ALIGNMENT 64

/* At least `bytes` bytes, uninitialised; NULL when there is no memory (and then a message is
 * set). A freed block of the same class is reused without malloc. Any thread. */
TROUPE_MUST_USE void *troupe_memory_alloc(size_t bytes);

/* Frees a block of troupe_memory_alloc; `bytes` is what was asked for. NULL does nothing. Any
 * thread, also another than the one that allocated. */
void troupe_memory_free(void *pointer, size_t bytes);

/* The bytes of blocks handed out and not freed (rounded up to their size classes), now and at
 * most since the start (the peak to within 64 KiB for each thread); the bytes of free blocks
 * that all threads share and that could go back to the system; calls that reached the system's
 * allocator. */
struct troupe_memory_usage {
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t cached_bytes;
    uint64_t system_allocations;
};
void troupe_memory_usage_get(struct troupe_memory_usage *out);

/* The bytes of the block that a request for `bytes` gets. */
size_t troupe_memory_block_bytes(size_t bytes);

/* Zero-filled malloc, realloc of `count` items (overflow checked), strdup and a printf into new
 * memory: each returns NULL with the message set when there is no memory; free() frees. */
TROUPE_MUST_USE void *troupe_calloc(size_t count, size_t bytes);
TROUPE_MUST_USE void *troupe_reallocarray(void *old, size_t count, size_t bytes);
TROUPE_MUST_USE char *troupe_strdup(const char *text);
TROUPE_MUST_USE char *troupe_asprintf(const char *format, ...) TROUPE_PRINTF(1, 2);

#endif
