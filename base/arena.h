/* Memory that is freed all at once. Not for several threads at a time. */
#ifndef TROUPE_BASE_ARENA_H
#define TROUPE_BASE_ARENA_H

#include <stddef.h>

#include "troupe/attributes.h"

struct troupe_arena_block;
struct troupe_arena {
    struct troupe_arena_block *blocks;
    size_t used;     /* in the newest block */
    size_t capacity; /* of the newest block */
};

void troupe_arena_init(struct troupe_arena *arena);
void troupe_arena_fini(struct troupe_arena *arena);

/* Zero-filled, aligned to `alignment` (a power of two, at most 64); NULL with the message set
 * when there is no memory. Lives until troupe_arena_fini. */
TROUPE_MUST_USE void *troupe_arena_alloc(struct troupe_arena *arena, size_t bytes,
                                         size_t alignment);
TROUPE_MUST_USE char *troupe_arena_strdup(struct troupe_arena *arena, const char *text);

#endif
