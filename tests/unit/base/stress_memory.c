/* Two threads hand each other blocks; each checks what the other wrote. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ROUNDS 200000
#define SLOTS  64

struct parcel {
    size_t bytes;
    unsigned char fill;
};

static _Atomic(struct parcel *) slots[SLOTS];
static _Atomic(int) wrong;

static void open_parcel(struct parcel *parcel)
{
    const unsigned char *bytes = (const unsigned char *)(parcel + 1);
    for (size_t i = 0; i < parcel->bytes - sizeof(*parcel); i++) {
        /* Relaxed: read after the threads are joined. */
        if (bytes[i] != parcel->fill)
            atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
    }
    troupe_memory_free(parcel, parcel->bytes);
}

static void *swap_parcels(void *seed)
{
    unsigned state = *(const unsigned *)seed;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * 1664525 + 1013904223;
        size_t bytes = sizeof(struct parcel) + (state >> 8) % (i % 100 == 0 ? 100000 : 600);
        struct parcel *parcel = troupe_memory_alloc(bytes);
        if (!parcel)
            abort();
        parcel->bytes = bytes;
        parcel->fill = (unsigned char)(state >> 16);
        memset(parcel + 1, parcel->fill, bytes - sizeof(*parcel));
        /* Acquire and release: partner of itself in the other thread. */
        parcel =
            atomic_exchange_explicit(&slots[(state >> 24) % SLOTS], parcel, memory_order_acq_rel);
        if (parcel)
            open_parcel(parcel);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    unsigned seeds[3] = {1, 2, 3};
    for (int i = 0; i < 3; i++) {
        if (pthread_create(&threads[i], NULL, swap_parcels, &seeds[i]) != 0)
            return 1;
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) {
        /* Relaxed: the other threads have ended. */
        struct parcel *parcel = atomic_load_explicit(&slots[i], memory_order_relaxed);
        if (parcel)
            open_parcel(parcel);
    }
    struct troupe_memory_usage usage;
    troupe_memory_usage_get(&usage);
    if (wrong != 0 || usage.live_bytes != 0) {
        fprintf(stderr, "%d wrong bytes, %llu bytes lost\n", wrong,
                (unsigned long long)usage.live_bytes);
        return 1;
    }
    if (usage.system_allocations > ROUNDS / 10) {
        fprintf(stderr, "%llu calls of the system's allocator\n",
                (unsigned long long)usage.system_allocations);
        return 1;
    }
    return 0;
}
