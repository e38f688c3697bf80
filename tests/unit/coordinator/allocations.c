/* An allocator that counts, in front of glibc's own. The program's definitions of malloc and its
 * kin go before the C library's, for every library that it loads. */
#include "allocations.h"

#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "troupe/attributes.h"

#define CALLERS 16 /* calls whose stacks are kept */
#define DEPTH   24 /* of a stack */

/* glibc's names for its own. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static _Atomic(bool) counts;
static _Atomic(int64_t) calls;
static void *stacks[CALLERS][DEPTH];
static int depths[CALLERS];
static _Thread_local bool is_inside; /* backtrace may allocate */

/* A session's watch looks at its runs ten times a second, however many steps they make. */
static bool is_watch(void)
{
    static _Thread_local enum { UNKNOWN, WATCH, OTHER } self;
    char name[16] = "";

    if (self == UNKNOWN) {
        (void)pthread_getname_np(pthread_self(), name, sizeof name);
        self = strcmp(name, "troupe-watch") == 0 ? WATCH : OTHER;
    }
    return self == WATCH;
}

static void count(void)
{
    int64_t call;

    if (!atomic_load(&counts) || is_inside || is_watch())
        return;
    is_inside = true;
    call = atomic_fetch_add(&calls, 1);
    if (call < CALLERS)
        depths[call] = backtrace(stacks[call], DEPTH);
    is_inside = false;
}

TROUPE_API void *malloc(size_t bytes)
{
    count();
    return __libc_malloc(bytes);
}

TROUPE_API void *calloc(size_t number, size_t bytes)
{
    count();
    return __libc_calloc(number, bytes);
}

TROUPE_API void *realloc(void *old, size_t bytes)
{
    count();
    return __libc_realloc(old, bytes);
}

TROUPE_API void *memalign(size_t alignment, size_t bytes)
{
    count();
    return __libc_memalign(alignment, bytes);
}

TROUPE_API void *aligned_alloc(size_t alignment, size_t bytes)
{
    count();
    return __libc_memalign(alignment, bytes);
}

TROUPE_API int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *block;

    count();
    block = __libc_memalign(alignment, bytes);
    if (block == NULL)
        return ENOMEM;
    *out = block;
    return 0;
}

void allocations_start(void)
{
    atomic_store(&calls, 0);
    atomic_store(&counts, true);
}

int64_t allocations_stop(void)
{
    atomic_store(&counts, false);
    return atomic_load(&calls);
}

void allocations_explain(void)
{
    int64_t made = atomic_load(&calls);

    for (int i = 0; i < CALLERS && i < made; i++) {
        (void)!write(STDERR_FILENO, "allocated by\n", 13);
        backtrace_symbols_fd(stacks[i], depths[i], STDERR_FILENO);
    }
}
