/* The simulated device's memory. Invariant: the blocks cover it from its first byte to its last, in
 * order; `used` is the sum of those in use. */
#include "devices/sim_memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "troupe/log.h"

/* A float of this is about -1.4e-13 and an int32 negative: wrong, and easy to know again. */
#define FILL_ALLOCATED 0xAA
#define FILL_FREED     0xDB

static enum troupe_status map_twice(struct troupe_sim_memory *memory)
{
    int file = memfd_create("troupe-sim", MFD_CLOEXEC);
    if (file < 0)
        return troupe_status_fail(TROUPE_UNAVAILABLE, "%s: memfd_create: %s", memory->name,
                                  strerror(errno));
    void *window = MAP_FAILED, *inside = MAP_FAILED;
    if (ftruncate(file, (off_t)memory->bytes) == 0)
        window = mmap(NULL, memory->bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (window != MAP_FAILED)
        inside =
            mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    int error = errno;
    close(file);
    if (inside == MAP_FAILED) {
        if (window != MAP_FAILED)
            munmap(window, memory->bytes);
        return troupe_status_fail(TROUPE_UNAVAILABLE, "%s: mapping %zu bytes twice: %s",
                                  memory->name, memory->bytes, strerror(error));
    }
    memory->window = window;
    memory->inside = inside;
    return TROUPE_OK;
}

enum troupe_status troupe_sim_memory_init(struct troupe_sim_memory *memory, size_t bytes,
                                          bool fills, const char *name)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *memory = (struct troupe_sim_memory){
        .bytes = (bytes + page - 1) / page * page, .fills = fills, .name = name};
    struct troupe_sim_block *block = troupe_calloc(1, sizeof(*block));
    if (!block)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = map_twice(memory);
    if (status != TROUPE_OK) {
        free(block);
        return status;
    }
    block->bytes = memory->bytes;
    memory->blocks = block;
    pthread_mutex_init(&memory->lock, NULL);
    return TROUPE_OK;
}

void troupe_sim_memory_fini(struct troupe_sim_memory *memory)
{
    if (memory->used > 0)
        troupe_log(TROUPE_LOG_ERROR, "%s: %zu bytes are in use at its end", memory->name,
                   memory->used);
    while (memory->blocks) {
        struct troupe_sim_block *block = memory->blocks;
        memory->blocks = block->next;
        free(block);
    }
    munmap(memory->window, memory->bytes);
    munmap(memory->inside, memory->bytes);
    pthread_mutex_destroy(&memory->lock);
}

static struct troupe_sim_block *first_fit(struct troupe_sim_memory *memory, size_t bytes)
{
    struct troupe_sim_block *block = memory->blocks;
    while (block && (block->used || block->bytes < bytes))
        block = block->next;
    return block;
}

/* Cuts off what is more than `bytes`. */
static enum troupe_status block_split(struct troupe_sim_block *block, size_t bytes)
{
    if (block->bytes == bytes)
        return TROUPE_OK;
    struct troupe_sim_block *rest = troupe_calloc(1, sizeof(*rest));
    if (!rest)
        return TROUPE_RESOURCE_EXHAUSTED;
    rest->offset = block->offset + bytes;
    rest->bytes = block->bytes - bytes;
    rest->previous = block;
    rest->next = block->next;
    if (rest->next)
        rest->next->previous = rest;
    block->next = rest;
    block->bytes = bytes;
    return TROUPE_OK;
}

/* Takes the next block into this one. */
static void block_merge(struct troupe_sim_block *block)
{
    struct troupe_sim_block *next = block->next;
    block->bytes += next->bytes;
    block->next = next->next;
    if (block->next)
        block->next->previous = block;
    free(next);
}

static void fill(const struct troupe_sim_memory *memory, const struct troupe_sim_block *block,
                 int pattern)
{
    if (memory->fills)
        memset(memory->inside + block->offset, pattern, block->bytes);
}

static enum troupe_status alloc_locked(struct troupe_sim_memory *memory, size_t wanted, void **out)
{
    size_t unit = TROUPE_MEMORY_ALIGNMENT, bytes = SIZE_MAX;
    if (wanted <= memory->bytes)
        bytes = wanted > 0 ? (wanted + unit - 1) / unit * unit : unit;
    struct troupe_sim_block *block = first_fit(memory, bytes);
    if (!block)
        return troupe_status_fail(
            TROUPE_RESOURCE_EXHAUSTED, "%s has no room for %zu bytes: %zu of its %zu are in use%s",
            memory->name, wanted, memory->used, memory->bytes,
            bytes <= memory->bytes - memory->used ? ", and no gap between them is as large" : "");
    enum troupe_status status = block_split(block, bytes);
    if (status != TROUPE_OK)
        return status;
    block->used = true;
    block->wanted = wanted;
    memory->used += bytes;
    fill(memory, block, FILL_ALLOCATED);
    *out = memory->window + block->offset;
    return TROUPE_OK;
}

enum troupe_status troupe_sim_memory_alloc(struct troupe_sim_memory *memory, size_t bytes,
                                           void **out)
{
    pthread_mutex_lock(&memory->lock);
    enum troupe_status status = alloc_locked(memory, bytes, out);
    pthread_mutex_unlock(&memory->lock);
    return status;
}

/* The block in use that `address` lies in, NULL. */
static struct troupe_sim_block *find_locked(struct troupe_sim_memory *memory, const void *address)
{
    uintptr_t at = (uintptr_t)address, start = (uintptr_t)memory->window;
    if (at < start || at - start >= memory->bytes)
        return NULL;
    struct troupe_sim_block *block = memory->blocks;
    while (at - start >= block->offset + block->bytes)
        block = block->next;
    return block->used ? block : NULL;
}

void troupe_sim_memory_free(struct troupe_sim_memory *memory, void *address)
{
    pthread_mutex_lock(&memory->lock);
    struct troupe_sim_block *block = find_locked(memory, address);
    if (!block || memory->window + block->offset != (char *)address) {
        troupe_log(TROUPE_LOG_ERROR, "%s: %p is freed and is no allocation of it", memory->name,
                   address);
        abort();
    }
    fill(memory, block, FILL_FREED);
    memory->used -= block->bytes;
    block->used = false;
    if (block->next && !block->next->used)
        block_merge(block);
    if (block->previous && !block->previous->used)
        block_merge(block->previous);
    pthread_mutex_unlock(&memory->lock);
}

enum troupe_status troupe_sim_memory_reach(struct troupe_sim_memory *memory, const void *address,
                                           size_t bytes, void **out)
{
    pthread_mutex_lock(&memory->lock);
    const struct troupe_sim_block *block = find_locked(memory, address);
    size_t offset = block ? (size_t)((uintptr_t)address - (uintptr_t)memory->window) : 0;
    size_t within = block ? offset - block->offset : 0;
    bool right = block && within <= block->wanted && bytes <= block->wanted - within;
    pthread_mutex_unlock(&memory->lock);
    if (!right)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%zu bytes at %p are not in one allocation of %s", bytes, address,
                                  memory->name);
    *out = memory->inside + offset;
    return TROUPE_OK;
}
