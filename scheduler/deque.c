/* The work-stealing deque. Invariant: tasks lie at the indices [top, bottom) of the ring, and
 * only the owner writes `bottom` and `ring`. A ring that was outgrown stays allocated until fini,
 * because a thief may still read it. */
#include "scheduler/deque.h"

#include <stdlib.h>

#include "base/memory.h"

#define FIRST_CAPACITY 256

struct troupe_deque_ring {
    struct troupe_deque_ring *previous;
    int64_t capacity; /* a power of two */
    _Atomic(struct troupe_task *) items[];
};

static struct troupe_deque_ring *ring_create(int64_t capacity)
{
    struct troupe_deque_ring *ring =
        troupe_calloc(1, sizeof *ring + (size_t)capacity * sizeof ring->items[0]);

    if (ring != NULL)
        ring->capacity = capacity;
    return ring;
}

/* Items are published by `bottom` and claimed by `top`: relaxed accesses are enough here. */
static struct troupe_task *ring_get(struct troupe_deque_ring *ring, int64_t index)
{
    return atomic_load_explicit(&ring->items[index & (ring->capacity - 1)], memory_order_relaxed);
}

static void ring_put(struct troupe_deque_ring *ring, int64_t index, struct troupe_task *task)
{
    /* Relaxed: see ring_get. */
    atomic_store_explicit(&ring->items[index & (ring->capacity - 1)], task, memory_order_relaxed);
}

enum troupe_status troupe_deque_init(struct troupe_deque *deque, bool shared)
{
    struct troupe_deque_ring *ring = ring_create(FIRST_CAPACITY);

    if (ring == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    atomic_init(&deque->top, 0);
    atomic_init(&deque->bottom, 0);
    atomic_init(&deque->ring, ring);
    deque->shared = shared;
    return TROUPE_OK;
}

void troupe_deque_fini(struct troupe_deque *deque)
{
    /* Relaxed: no other thread uses the deque any more. */
    struct troupe_deque_ring *ring = atomic_load_explicit(&deque->ring, memory_order_relaxed);

    while (ring != NULL) {
        struct troupe_deque_ring *previous = ring->previous;

        free(ring);
        ring = previous;
    }
}

static struct troupe_deque_ring *deque_grow(struct troupe_deque *deque, int64_t top, int64_t bottom)
{
    /* Relaxed: only the owner stores it. */
    struct troupe_deque_ring *old = atomic_load_explicit(&deque->ring, memory_order_relaxed);
    struct troupe_deque_ring *ring = ring_create(old->capacity * 2);

    if (ring == NULL)
        return NULL;
    for (int64_t i = top; i < bottom; i++)
        ring_put(ring, i, ring_get(old, i));
    ring->previous = old;
    /* Release: partner of the acquire load in steal. */
    atomic_store_explicit(&deque->ring, ring, memory_order_release);
    return ring;
}

bool troupe_deque_push(struct troupe_deque *deque, struct troupe_task *const *tasks, int count)
{
    /* Relaxed: the owner's own. Acquire of `top`: partner of the thieves' exchange, so that a slot
     * is overwritten only after it was read. */
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
    int64_t top = atomic_load_explicit(&deque->top, memory_order_acquire);
    struct troupe_deque_ring *ring = atomic_load_explicit(&deque->ring, memory_order_relaxed);

    while (bottom - top > ring->capacity - count) {
        ring = deque_grow(deque, top, bottom);
        if (ring == NULL)
            return false;
    }
    for (int i = 0; i < count; i++)
        ring_put(ring, bottom + i, tasks[i]);
    /* Relaxed: nobody else looks into a deque that is not shared. */
    if (deque->shared)
        atomic_store_explicit(&deque->bottom, bottom + count, memory_order_seq_cst);
    else
        atomic_store_explicit(&deque->bottom, bottom + count, memory_order_relaxed);
    return true;
}

/* The newest `count` tasks, which lie below `bottom`. */
static int ring_get_many(struct troupe_deque_ring *ring, int64_t bottom, int count,
                         struct troupe_task **tasks)
{
    for (int i = 0; i < count; i++)
        tasks[i] = ring_get(ring, bottom - count + i);
    return count;
}

static int deque_take_alone(struct troupe_deque *deque, struct troupe_task **tasks)
{
    /* Relaxed throughout: there is no other thread. */
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
    int64_t size = bottom - atomic_load_explicit(&deque->top, memory_order_relaxed);
    struct troupe_deque_ring *ring = atomic_load_explicit(&deque->ring, memory_order_relaxed);
    int count = size >= TROUPE_DEQUE_LONG ? TROUPE_DEQUE_BATCH : size > 0;

    atomic_store_explicit(&deque->bottom, bottom - count, memory_order_relaxed);
    return ring_get_many(ring, bottom, count, tasks);
}

/* Takes the last task, for which a thief may be reaching. */
static int deque_take_last(struct troupe_deque *deque, struct troupe_deque_ring *ring, int64_t top,
                           struct troupe_task **tasks)
{
    int64_t index = top;
    int count = 0;

    tasks[0] = ring_get(ring, index);
    /* Relaxed on failure: the task is then not used. */
    if (atomic_compare_exchange_strong_explicit(&deque->top, &top, index + 1, memory_order_seq_cst,
                                                memory_order_relaxed))
        count = 1;
    /* Release: a thief that reads this value must still see the tasks pushed before. */
    atomic_store_explicit(&deque->bottom, index + 1, memory_order_release);
    return count;
}

int troupe_deque_take(struct troupe_deque *deque, struct troupe_task **tasks)
{
    struct troupe_deque_ring *ring;
    int64_t bottom, top;
    int count;

    if (!deque->shared)
        return deque_take_alone(deque, tasks);
    /* Relaxed: the owner's own. An old `top` can only make the deque look fuller. */
    bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
    top = atomic_load_explicit(&deque->top, memory_order_relaxed);
    if (bottom <= top)
        return 0;
    count = bottom - top >= TROUPE_DEQUE_LONG ? TROUPE_DEQUE_BATCH : 1;
    ring = atomic_load_explicit(&deque->ring, memory_order_relaxed);
    for (;;) {
        atomic_store_explicit(&deque->bottom, bottom - count, memory_order_seq_cst);
        top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
        /* A thief that takes one of these must have read a `top` at least as high after this, and
         * then a `bottom` that leaves it none. */
        if (top < bottom - count)
            return ring_get_many(ring, bottom, count, tasks);
        if (count == 1)
            break;
        count = 1;
    }
    if (top == bottom - 1)
        return deque_take_last(deque, ring, top, tasks);
    /* Release: as in deque_take_last. */
    atomic_store_explicit(&deque->bottom, bottom, memory_order_release);
    return 0;
}

/* The oldest task, into *out; false when another thief was faster. */
static bool deque_steal_one(struct troupe_deque *deque, int64_t top, struct troupe_task **out)
{
    /* Acquire: partner of the release in deque_grow. */
    struct troupe_deque_ring *ring = atomic_load_explicit(&deque->ring, memory_order_acquire);

    *out = ring_get(ring, top);
    /* Relaxed on failure: the task is then not used. */
    return atomic_compare_exchange_strong_explicit(&deque->top, &top, top + 1, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

struct troupe_task *troupe_deque_take_oldest(struct troupe_deque *deque)
{
    int64_t top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
    struct troupe_task *task = NULL;

    /* Relaxed: the owner's own. */
    if (top >= atomic_load_explicit(&deque->bottom, memory_order_relaxed))
        return NULL;
    /* The owner is a thief like the others here, whether there are any or not. */
    return deque_steal_one(deque, top, &task) ? task : NULL;
}

int troupe_deque_steal(struct troupe_deque *deque, struct troupe_task **tasks)
{
    int64_t top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_seq_cst);
    int64_t half = (bottom - top + 1) / 2;
    int count = 0;

    /* One at a time: the owner claims its end without looking at more than `top`. */
    while (count < half && count < TROUPE_DEQUE_BATCH && top < bottom) {
        if (!deque_steal_one(deque, top, &tasks[count]))
            break;
        count++;
        top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
        bottom = atomic_load_explicit(&deque->bottom, memory_order_seq_cst);
    }
    return count;
}

bool troupe_deque_is_empty(struct troupe_deque *deque)
{
    int64_t top = atomic_load_explicit(&deque->top, memory_order_seq_cst);

    return top >= atomic_load_explicit(&deque->bottom, memory_order_seq_cst);
}
