/* Memory freed all at once. Invariant: `blocks` is a chain whose head is the newest block, and
 * `used` bytes of that one are handed out; all bytes behind are zero. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "troupe/status.h"

#define ARENA_ALIGNMENT   64
#define ARENA_FIRST_BLOCK ((size_t)16 << 10)
#define ARENA_LARGEST     ((size_t)4 << 20) /* of what grows by doubling */

struct troupe_arena_block {
    struct troupe_arena_block *next;
    _Alignas(ARENA_ALIGNMENT) unsigned char data[];
};

void troupe_arena_init(struct troupe_arena *arena)
{
    *arena = (struct troupe_arena){0};
}

void troupe_arena_fini(struct troupe_arena *arena)
{
    for (struct troupe_arena_block *block = arena->blocks; block;) {
        struct troupe_arena_block *next = block->next;
        free(block);
        block = next;
    }
    troupe_arena_init(arena);
}

static bool arena_grow(struct troupe_arena *arena, size_t bytes)
{
    size_t capacity = arena->capacity ? 2 * arena->capacity : ARENA_FIRST_BLOCK;
    if (capacity > ARENA_LARGEST)
        capacity = ARENA_LARGEST;
    if (capacity < bytes)
        capacity = (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    size_t total = sizeof(struct troupe_arena_block) + capacity;
    struct troupe_arena_block *block = aligned_alloc(ARENA_ALIGNMENT, total);
    if (!block)
        return false;
    memset(block, 0, total);
    block->next = arena->blocks;
    arena->blocks = block;
    arena->used = 0;
    arena->capacity = capacity;
    return true;
}

void *troupe_arena_alloc(struct troupe_arena *arena, size_t bytes, size_t alignment)
{
    size_t start = (arena->used + alignment - 1) & ~(alignment - 1);
    if (!arena->blocks || start > arena->capacity || bytes > arena->capacity - start) {
        if (bytes > SIZE_MAX / 4 || !arena_grow(arena, bytes)) {
            (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu bytes of a plan",
                                     bytes);
            return NULL;
        }
        start = 0;
    }
    arena->used = start + bytes;
    return arena->blocks->data + start;
}

char *troupe_arena_strdup(struct troupe_arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = troupe_arena_alloc(arena, bytes, 1);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}
