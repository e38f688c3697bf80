/* Memory in size classes. A free block waits in a list of its class: small ones in a cache of the
 * thread, the others, and what overflows, in central lists under a lock per class.
 *
 * Invariant: live and centrally cached bytes together stay below the peak of the live bytes plus
 * MEMORY_SLACK; what would exceed it goes back to the system. So a steady state never reaches
 * malloc, and what is kept is bounded by what was once needed.
 *
 * The smallest blocks, those of scalars and of the structures of tensors, are parts of chunks that
 * stay: the system takes long for many small aligned blocks. They are not counted as cached; of
 * each of their classes as many are kept as were once needed, to the chunk. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "troupe/status.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

/* Four classes between powers of two, in units of the alignment: 1 2 3 4 5 6 7 8 10 12 14 16 20
 * ... The small ones, up to 64 KiB, are cached per thread. */
#define MEMORY_CLASSES       156
#define MEMORY_SMALL_CLASSES 36
#define MEMORY_LARGEST       ((size_t)1 << 45)
/* The smallest classes come in chunks; not where AddressSanitizer is to see the end of each block.
 */
#define MEMORY_CHUNK ((size_t)4 << 10)
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_PACKED_CLASSES 0
#else
#define MEMORY_PACKED_CLASSES 4
#endif
/* A thread keeps this many bytes of each small class, but 2 to 64 blocks. */
#define MEMORY_THREAD_BYTES ((size_t)64 << 10)
#define MEMORY_SLACK        ((int64_t)64 << 20)
/* A thread reports its change of the live bytes when it exceeds this. */
#define MEMORY_REPORT ((int64_t)64 << 10)

struct memory_block {
    struct memory_block *next;
};

struct memory_list {
    struct memory_block *first;
    size_t count;
};

struct memory_central {
    _Alignas(64) pthread_mutex_t lock;
    struct memory_list list;
};

enum memory_thread_state {
    MEMORY_THREAD_NEW = 0,
    MEMORY_THREAD_LIVE,
    MEMORY_THREAD_GONE /* its cache is given back; it goes to the central lists */
};

struct memory_thread {
    struct memory_list lists[MEMORY_SMALL_CLASSES];
    _Atomic(int64_t) unreported; /* change of the live bytes; written by its thread alone */
    enum memory_thread_state state;
    struct memory_thread *previous, *next; /* in `threads`, guarded by threads_lock */
};

static struct memory_central centrals[MEMORY_CLASSES];
static _Thread_local struct memory_thread self;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory_thread *threads;
static _Atomic(int64_t) live, peak, cached;
static _Atomic(uint64_t) system_allocations;

/* Free blocks are poisoned but for their link, so that AddressSanitizer sees a use after free. */
static void block_poison(struct memory_block *block, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(block + 1, bytes - sizeof(*block));
#else
    (void)block;
    (void)bytes;
#endif
}

static void block_unpoison(struct memory_block *block, size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(block, bytes);
#else
    (void)block;
    (void)bytes;
#endif
}

static int class_of(size_t bytes, size_t *class_bytes)
{
    size_t units = bytes ? (bytes - 1) / TROUPE_MEMORY_ALIGNMENT + 1 : 1;
    if (units <= 4) {
        *class_bytes = units * TROUPE_MEMORY_ALIGNMENT;
        return (int)units - 1;
    }
    int shift = 63 - __builtin_clzll(units - 1) - 2;
    size_t quarter = (units - 1) >> shift; /* 4 to 7 */
    *class_bytes = ((quarter + 1) << shift) * TROUPE_MEMORY_ALIGNMENT;
    return 4 * shift + (int)quarter;
}

size_t troupe_memory_block_bytes(size_t bytes)
{
    size_t class_bytes;
    class_of(bytes, &class_bytes);
    return class_bytes;
}

static void list_push(struct memory_list *list, struct memory_block *block)
{
    block->next = list->first;
    list->first = block;
    list->count++;
}

static struct memory_block *list_pop(struct memory_list *list)
{
    struct memory_block *block = list->first;
    if (block) {
        list->first = block->next;
        list->count--;
    }
    return block;
}

/* Blocks of a small class that a thread keeps. */
static size_t thread_limit(size_t class_bytes)
{
    size_t limit = MEMORY_THREAD_BYTES / class_bytes;
    return limit < 2 ? 2 : limit > 64 ? 64 : limit;
}

static void report(int64_t change)
{
    /* Relaxed, here and below: counters that publish no other data. */
    int64_t now = atomic_fetch_add_explicit(&live, change, memory_order_relaxed) + change;
    int64_t most = atomic_load_explicit(&peak, memory_order_relaxed);
    while (now > most && !atomic_compare_exchange_weak_explicit(
                             &peak, &most, now, memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* Counts a change of what the central list of a class holds and could give back; returns the sum.
 */
static int64_t count_cached(int index, int64_t change)
{
    if (index < MEMORY_PACKED_CLASSES)
        change = 0;
    /* Relaxed: a counter that publishes no other data. */
    return atomic_fetch_add_explicit(&cached, change, memory_order_relaxed) + change;
}

/* Takes blocks from a central list, up to `count`. */
static struct memory_list central_take(int index, size_t class_bytes, size_t count)
{
    struct memory_list taken = {NULL, 0};
    struct memory_central *central = &centrals[index];
    pthread_mutex_lock(&central->lock);
    while (taken.count < count && central->list.first)
        list_push(&taken, list_pop(&central->list));
    pthread_mutex_unlock(&central->lock);
    if (taken.count > 0)
        (void)count_cached(index, -(int64_t)(taken.count * class_bytes));
    return taken;
}

/* Puts a block into a central list, or gives it back to the system when enough is kept. */
static void central_give(int index, size_t class_bytes, struct memory_block *block)
{
    int64_t bytes = (int64_t)class_bytes;
    int64_t kept = count_cached(index, bytes);
    if (index >= MEMORY_PACKED_CLASSES &&
        kept + atomic_load_explicit(&live, memory_order_relaxed) >
            atomic_load_explicit(&peak, memory_order_relaxed) + MEMORY_SLACK) {
        (void)count_cached(index, -bytes);
        block_unpoison(block, class_bytes);
        free(block);
        return;
    }
    struct memory_central *central = &centrals[index];
    pthread_mutex_lock(&central->lock);
    list_push(&central->list, block);
    pthread_mutex_unlock(&central->lock);
}

/* Gives back what a thread cached, when it ends. */
static void thread_end(void *pointer)
{
    struct memory_thread *thread = pointer;
    pthread_mutex_lock(&threads_lock);
    if (thread->previous)
        thread->previous->next = thread->next;
    else
        threads = thread->next;
    if (thread->next)
        thread->next->previous = thread->previous;
    report(atomic_exchange_explicit(&thread->unreported, 0, memory_order_relaxed));
    pthread_mutex_unlock(&threads_lock);
    for (size_t bytes = TROUPE_MEMORY_ALIGNMENT;;) {
        size_t class_bytes;
        int index = class_of(bytes, &class_bytes);
        if (index >= MEMORY_SMALL_CLASSES)
            break;
        struct memory_block *block;
        while ((block = list_pop(&thread->lists[index])))
            central_give(index, class_bytes, block);
        bytes = class_bytes + 1;
    }
    thread->state = MEMORY_THREAD_GONE;
}

static void memory_start(void)
{
    for (int i = 0; i < MEMORY_CLASSES; i++)
        pthread_mutex_init(&centrals[i].lock, NULL);
    /* Without a key a thread's cache is not given back when it ends, so it gets none. */
    if (pthread_key_create(&thread_key, thread_end) != 0)
        abort();
}

static void thread_start(void)
{
    pthread_once(&once, memory_start);
    if (pthread_setspecific(thread_key, &self) != 0) {
        self.state = MEMORY_THREAD_GONE;
        return;
    }
    pthread_mutex_lock(&threads_lock);
    self.previous = NULL;
    self.next = threads;
    if (threads)
        threads->previous = &self;
    threads = &self;
    pthread_mutex_unlock(&threads_lock);
    self.state = MEMORY_THREAD_LIVE;
}

/* Counts a change of the live bytes of this thread. */
static void count_live(int64_t change)
{
    if (self.state != MEMORY_THREAD_LIVE) {
        report(change);
        return;
    }
    /* Relaxed: only this thread writes; troupe_memory_usage_get reads a recent value. */
    int64_t sum = atomic_load_explicit(&self.unreported, memory_order_relaxed) + change;
    if (sum > MEMORY_REPORT || sum < -MEMORY_REPORT) {
        report(sum);
        sum = 0;
    }
    atomic_store_explicit(&self.unreported, sum, memory_order_relaxed);
}

static void *system_take(size_t bytes)
{
    /* Relaxed: a counter that publishes no other data. */
    atomic_fetch_add_explicit(&system_allocations, 1, memory_order_relaxed);
    return aligned_alloc(TROUPE_MEMORY_ALIGNMENT, bytes);
}

/* A new block; of a packed class the first of a chunk, whose others go to the central list. */
static struct memory_block *block_make(int index, size_t class_bytes)
{
    struct memory_central *central = &centrals[index];
    char *chunk;
    if (index >= MEMORY_PACKED_CLASSES)
        return system_take(class_bytes);
    chunk = system_take(MEMORY_CHUNK);
    if (!chunk)
        return NULL;
    pthread_mutex_lock(&central->lock);
    /* From its end, so that they are handed out in the order of their addresses. */
    for (size_t i = MEMORY_CHUNK / class_bytes - 1; i > 0; i--)
        list_push(&central->list, (struct memory_block *)(void *)(chunk + i * class_bytes));
    pthread_mutex_unlock(&central->lock);
    return (struct memory_block *)(void *)chunk;
}

/* Gives the system every block that it can have of the central lists: the last resort before
 * failing. */
static void central_release_all(void)
{
    for (size_t bytes = TROUPE_MEMORY_ALIGNMENT; bytes <= MEMORY_LARGEST;) {
        size_t class_bytes;
        int index = class_of(bytes, &class_bytes);
        bytes = class_bytes + 1;
        if (index < MEMORY_PACKED_CLASSES)
            continue;
        struct memory_list all = central_take(index, class_bytes, SIZE_MAX);
        struct memory_block *block;
        while ((block = list_pop(&all))) {
            block_unpoison(block, class_bytes);
            free(block);
        }
    }
}

void *troupe_memory_alloc(size_t bytes)
{
    if (bytes > MEMORY_LARGEST) {
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu bytes", bytes);
        return NULL;
    }
    if (self.state == MEMORY_THREAD_NEW)
        thread_start();
    size_t class_bytes;
    int index = class_of(bytes, &class_bytes);
    struct memory_block *block;
    if (index < MEMORY_SMALL_CLASSES && self.state == MEMORY_THREAD_LIVE) {
        struct memory_list *list = &self.lists[index];
        if (!list->first)
            *list = central_take(index, class_bytes, thread_limit(class_bytes) / 2);
        block = list_pop(list);
    } else {
        block = central_take(index, class_bytes, 1).first;
    }
    if (!block)
        block = block_make(index, class_bytes);
    if (!block) {
        central_release_all();
        block = block_make(index, class_bytes);
    }
    if (!block) {
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu bytes", bytes);
        return NULL;
    }
    block_unpoison(block, class_bytes);
    count_live((int64_t)class_bytes);
    return block;
}

void troupe_memory_free(void *pointer, size_t bytes)
{
    if (!pointer)
        return;
    if (self.state == MEMORY_THREAD_NEW)
        thread_start();
    struct memory_block *block = pointer;
    size_t class_bytes;
    int index = class_of(bytes, &class_bytes);
    count_live(-(int64_t)class_bytes);
    block_poison(block, class_bytes);
    if (index >= MEMORY_SMALL_CLASSES || self.state != MEMORY_THREAD_LIVE) {
        central_give(index, class_bytes, block);
        return;
    }
    struct memory_list *list = &self.lists[index];
    list_push(list, block);
    size_t limit = thread_limit(class_bytes);
    if (list->count <= limit)
        return;
    while (list->count > limit / 2)
        central_give(index, class_bytes, list_pop(list));
}

void troupe_memory_usage_get(struct troupe_memory_usage *out)
{
    pthread_mutex_lock(&threads_lock);
    /* Relaxed, here and below: counters that publish no other data. */
    int64_t now = atomic_load_explicit(&live, memory_order_relaxed);
    for (const struct memory_thread *thread = threads; thread; thread = thread->next)
        now += atomic_load_explicit(&thread->unreported, memory_order_relaxed);
    pthread_mutex_unlock(&threads_lock);
    /* Relaxed, as above. Threads report at different times, so a sum may be off by what is under
     * way. */
    int64_t most = atomic_load_explicit(&peak, memory_order_relaxed);
    out->live_bytes = now > 0 ? (uint64_t)now : 0;
    out->peak_bytes = (uint64_t)(most > now ? most : now);
    /* Relaxed, as above. */
    out->cached_bytes = (uint64_t)atomic_load_explicit(&cached, memory_order_relaxed);
    out->system_allocations = atomic_load_explicit(&system_allocations, memory_order_relaxed);
}

void *troupe_calloc(size_t count, size_t bytes)
{
    void *data = calloc(count ? count : 1, bytes ? bytes : 1);
    if (!data)
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu items of %zu bytes",
                                 count, bytes);
    return data;
}

void *troupe_reallocarray(void *old, size_t count, size_t bytes)
{
    void *data = reallocarray(old, count ? count : 1, bytes ? bytes : 1);
    if (!data)
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu items of %zu bytes",
                                 count, bytes);
    return data;
}

char *troupe_strdup(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu bytes",
                                 strlen(text) + 1);
    return copy;
}

char *troupe_asprintf(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a text");
        return NULL;
    }
    return text;
}
