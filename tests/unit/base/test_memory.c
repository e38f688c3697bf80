/* Blocks, buffers, arenas and payloads. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "troupe/payload.h"
#include "troupe/status.h"

static struct troupe_memory_usage usage(void)
{
    struct troupe_memory_usage now;
    troupe_memory_usage_get(&now);
    return now;
}

Test(memory, classes_waste_at_most_a_quarter)
{
    for (size_t bytes = 1; bytes < (size_t)1 << 30; bytes += bytes / 7 + 1) {
        size_t block = troupe_memory_block_bytes(bytes);
        cr_assert(block >= bytes && block % TROUPE_MEMORY_ALIGNMENT == 0, "%zu", bytes);
        cr_assert(block <= bytes + bytes / 4 + TROUPE_MEMORY_ALIGNMENT, "%zu: %zu", bytes, block);
        cr_assert_eq(troupe_memory_block_bytes(block), block, "%zu is a class of its own", block);
    }
}

Test(memory, a_freed_block_comes_back_without_the_system)
{
    size_t sizes[] = {0, 1, 64, 65, 1000, 40000, 65536, 65537, 1 << 20, 10 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        void *first = troupe_memory_alloc(sizes[i]);
        cr_assert(first);
        cr_assert_eq((uintptr_t)first % TROUPE_MEMORY_ALIGNMENT, 0);
        memset(first, 0xab, sizes[i]);
        troupe_memory_free(first, sizes[i]);
        uint64_t before = usage().system_allocations;
        for (int round = 0; round < 1000; round++) {
            void *again = troupe_memory_alloc(sizes[i]);
            cr_assert_eq(again, first, "%zu bytes", sizes[i]);
            troupe_memory_free(again, sizes[i]);
        }
        cr_assert_eq(usage().system_allocations, before, "%zu bytes", sizes[i]);
    }
    troupe_memory_free(NULL, 64);
}

Test(memory, many_blocks_come_back_without_the_system)
{
    enum { COUNT = 1000 };
    static void *blocks[COUNT];
    for (int round = 0; round < 3; round++) {
        uint64_t before = usage().system_allocations;
        for (int i = 0; i < COUNT; i++)
            cr_assert(blocks[i] = troupe_memory_alloc(300));
        for (int i = 0; i < COUNT; i++) {
            memset(blocks[i], i, 300);
            troupe_memory_free(blocks[i], 300);
        }
        cr_assert_eq(usage().system_allocations - before, round == 0 ? COUNT : 0);
    }
}

#if defined(__SANITIZE_ADDRESS__)
#define BLOCKS_PER_CALL 1
#else
#define BLOCKS_PER_CALL 16
#endif

/* Small blocks share calls of the system's allocator, and nothing else. */
Test(memory, small_blocks_come_in_chunks)
{
    enum { COUNT = 1024 };
    static unsigned char *blocks[COUNT];
    for (size_t bytes = 64; bytes <= 256; bytes += 64)
        for (int round = 0; round < 3; round++) {
            uint64_t before = usage().system_allocations;
            for (int i = 0; i < COUNT; i++) {
                cr_assert(blocks[i] = troupe_memory_alloc(bytes));
                cr_assert_eq((uintptr_t)blocks[i] % TROUPE_MEMORY_ALIGNMENT, 0);
                memset(blocks[i], i % 251, bytes);
            }
            for (int i = 0; i < COUNT; i++) {
                for (size_t j = 0; j < bytes; j++)
                    cr_assert_eq(blocks[i][j], i % 251);
                troupe_memory_free(blocks[i], bytes);
            }
            cr_assert_leq(usage().system_allocations - before,
                          round == 0 ? COUNT / BLOCKS_PER_CALL : 0, "%zu bytes", bytes);
        }
}

Test(memory, usage_counts_live_bytes_exactly)
{
    struct troupe_memory_usage before = usage();
    void *small = troupe_memory_alloc(100), *large = troupe_memory_alloc(1 << 20);
    struct troupe_memory_usage during = usage();
    cr_assert_eq(during.live_bytes - before.live_bytes, 128 + (1 << 20));
    cr_assert(during.peak_bytes >= during.live_bytes);
    troupe_memory_free(small, 100);
    troupe_memory_free(large, 1 << 20);
    cr_assert_eq(usage().live_bytes, before.live_bytes);
    cr_assert(usage().peak_bytes >= (1 << 20));
}

Test(memory, the_cache_is_bounded)
{
    /* Each size is another class; freed at once, they would pile up without a bound. */
    for (size_t bytes = (size_t)1 << 20; bytes < (size_t)48 << 20; bytes += bytes / 4) {
        void *block = troupe_memory_alloc(bytes);
        cr_assert(block);
        troupe_memory_free(block, bytes);
        struct troupe_memory_usage now = usage();
        cr_assert(now.cached_bytes + now.live_bytes <= now.peak_bytes + ((size_t)64 << 20),
                  "%zu cached", (size_t)now.cached_bytes);
    }
}

Test(memory, too_much_is_an_error)
{
    cr_assert_null(troupe_memory_alloc(SIZE_MAX));
    cr_assert_str_not_empty(troupe_status_message());
    cr_assert_null(troupe_calloc(SIZE_MAX / 2, 4));
    cr_assert_null(troupe_reallocarray(NULL, SIZE_MAX / 2, 4));
    struct troupe_buffer *buffer = NULL;
    cr_assert_eq(troupe_buffer_create(SIZE_MAX - 3, &buffer), TROUPE_RESOURCE_EXHAUSTED);
    cr_assert_null(buffer);
}

static void *free_there(void *block)
{
    troupe_memory_free(block, 300);
    return NULL;
}

Test(memory, an_ended_thread_gives_its_cache_back)
{
    uint64_t before = usage().live_bytes;
    void *block = troupe_memory_alloc(300);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, free_there, block), 0);
    pthread_join(thread, NULL);
    cr_assert_eq(usage().live_bytes, before);
    cr_assert_eq(usage().cached_bytes, troupe_memory_block_bytes(300));
    void *again = troupe_memory_alloc(300);
    cr_assert_eq(again, block);
    troupe_memory_free(again, 300);
}

static void note_release(void *context, void *data, size_t bytes)
{
    *(size_t *)context += bytes;
    memset(data, 0, bytes);
}

Test(buffer, release_happens_with_the_last_reference)
{
    char bytes[8] = "abcdefg";
    size_t released = 0;
    struct troupe_buffer *buffer;
    cr_assert_eq(troupe_buffer_wrap(bytes, sizeof(bytes), note_release, &released, &buffer), 0);
    cr_assert(troupe_buffer_is_unique(buffer));
    troupe_buffer_ref(buffer);
    cr_assert_not(troupe_buffer_is_unique(buffer));
    troupe_buffer_unref(buffer);
    cr_assert_eq(released, 0);
    troupe_buffer_unref(buffer);
    cr_assert_eq(released, sizeof(bytes));
    cr_assert_eq(bytes[0], 0);
    troupe_buffer_unref(NULL);
}

Test(arena, blocks_are_zero_aligned_and_apart)
{
    struct troupe_arena arena;
    troupe_arena_init(&arena);
    unsigned char *last = NULL;
    for (size_t i = 1; i < 3000; i++) {
        size_t alignment = (size_t)1 << i % 7;
        unsigned char *block = troupe_arena_alloc(&arena, i, alignment);
        cr_assert(block);
        cr_assert_eq((uintptr_t)block % alignment, 0);
        for (size_t j = 0; j < i; j++)
            cr_assert_eq(block[j], 0, "byte %zu of block %zu", j, i);
        memset(block, 0xff, i);
        if (last)
            cr_assert_eq(last[0], 0xff);
        last = block;
    }
    cr_assert(troupe_arena_alloc(&arena, (size_t)20 << 20, 64));
    cr_assert_str_eq(troupe_arena_strdup(&arena, "kept"), "kept");
    cr_assert_null(troupe_arena_alloc(&arena, SIZE_MAX, 1));
    troupe_arena_fini(&arena);
    cr_assert_null(arena.blocks);
}

static int destroyed;

static void count_destroy(struct troupe_payload *payload)
{
    (void)payload;
    destroyed++;
}

Test(payload, is_destroyed_once)
{
    struct troupe_payload payload;
    troupe_payload_init(&payload, count_destroy);
    troupe_payload_ref(&payload, 3);
    for (int i = 0; i < 3; i++)
        troupe_payload_unref(&payload);
    cr_assert_eq(destroyed, 0);
    troupe_payload_unref(&payload);
    cr_assert_eq(destroyed, 1);
    for (int i = 0; i < 10; i++)
        troupe_payload_unref(&troupe_payload_dead);
    cr_assert_eq(troupe_payload_dead.references, 1);
    troupe_payload_ref(NULL, 1);
    troupe_payload_unref(NULL);
}
