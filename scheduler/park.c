/* Sleeping and waking. Invariant: a worker sleeps only after it has set its idle bit and then
 * found every queue empty; whoever publishes a task looks at the bits afterwards. Both sides are
 * sequentially consistent, so one of the two sees the other and no task is left to sleepers. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/pool.h"

#define NS_PER_S UINT64_C(1000000000)

static void futex_wake(_Atomic(uint32_t) *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
                               .tv_nsec = (long)(timeout_ns % NS_PER_S)};

    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns != 0 ? &timeout : NULL,
                  NULL, 0);
}

static void worker_signal(struct troupe_worker *worker)
{
    /* Release: partner of the acquire in park. */
    atomic_store_explicit(&worker->signal, 1, memory_order_release);
    futex_wake(&worker->signal);
}

void troupe_pool_wake_worker(struct troupe_pool *pool, int index)
{
    uint64_t bit = UINT64_C(1) << (index % 64);
    _Atomic(uint64_t) *word = &pool->idle[index / 64];

    if ((atomic_load_explicit(word, memory_order_seq_cst) & bit) != 0 &&
        (atomic_fetch_and_explicit(word, ~bit, memory_order_seq_cst) & bit) != 0)
        worker_signal(&pool->workers[index]);
}

void troupe_pool_wake_one(struct troupe_pool *pool)
{
    for (int i = 0; i < pool->idle_words; i++) {
        uint64_t word = atomic_load_explicit(&pool->idle[i], memory_order_seq_cst);

        while (word != 0) {
            int lowest = __builtin_ctzll(word);
            uint64_t bit = UINT64_C(1) << lowest;
            uint64_t old = atomic_fetch_and_explicit(&pool->idle[i], ~bit, memory_order_seq_cst);

            if ((old & bit) != 0) {
                worker_signal(&pool->workers[i * 64 + lowest]);
                return;
            }
            word = old & ~bit;
        }
    }
}

void troupe_pool_wake_parked(struct troupe_pool *pool)
{
    for (int i = 0; i < pool->idle_words; i++) {
        /* A read-modify-write, not a load: a worker that sets its bit later reads from it, and so
         * sees what the caller stored before. */
        uint64_t word = atomic_exchange_explicit(&pool->idle[i], 0, memory_order_seq_cst);

        for (; word != 0; word &= word - 1)
            worker_signal(&pool->workers[i * 64 + __builtin_ctzll(word)]);
    }
}

bool troupe_pool_has_work(struct troupe_pool *pool)
{
    if (atomic_load_explicit(&pool->injected, memory_order_seq_cst) != NULL)
        return true;
    for (int i = 0; i < pool->width; i++)
        if (!troupe_deque_is_empty(&pool->workers[i].deque))
            return true;
    return false;
}

bool troupe_worker_park(struct troupe_worker *worker, const struct troupe_worker_leave *leave,
                        uint64_t timeout_ns)
{
    struct troupe_pool *pool = worker->pool;
    uint64_t bit = UINT64_C(1) << (worker->index % 64);
    _Atomic(uint64_t) *word = &pool->idle[worker->index / 64];

    /* Relaxed: a waker writes `signal` only after it saw the bit set below. */
    atomic_store_explicit(&worker->signal, 0, memory_order_relaxed);
    atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
    atomic_fetch_sub_explicit(&pool->searching, 1, memory_order_seq_cst);
    if (!troupe_pool_has_work(pool) &&
        atomic_load_explicit(leave->flag, memory_order_seq_cst) == 0 &&
        atomic_load_explicit(&worker->signal, memory_order_acquire) == 0)
        futex_wait(&worker->signal, 0, timeout_ns);
    /* The bit is gone when a waker took it. Acquire: partner of the release in worker_signal. */
    return (atomic_fetch_and_explicit(word, ~bit, memory_order_seq_cst) & bit) == 0 ||
           atomic_load_explicit(&worker->signal, memory_order_acquire) != 0;
}

/* Whether all workers sleep; worker 0 also does when nobody lends it a thread. */
static bool pool_sleeps(struct troupe_pool *pool, bool is_driven)
{
    int awake = 0;

    for (int i = 0; i < pool->width; i++) {
        uint64_t word = atomic_load_explicit(&pool->idle[i / 64], memory_order_seq_cst);

        if ((i > 0 || is_driven) && (word >> (i % 64) & 1) == 0)
            awake++;
    }
    return awake == 0;
}

static bool pool_is_driven(struct troupe_pool *pool)
{
    bool is_driven;

    pthread_mutex_lock(&pool->turn_lock);
    is_driven = pool->driven;
    pthread_mutex_unlock(&pool->turn_lock);
    return is_driven;
}

bool troupe_pool_is_staffed(struct troupe_pool *pool)
{
    bool needs_driver =
        pool->width == 1 || (pool->options.poll != NULL && pool->options.poll_on_worker0_only);

    return !needs_driver || pool_is_driven(pool);
}

bool troupe_pool_is_idle(struct troupe_pool *pool)
{
    bool is_driven = pool_is_driven(pool);

    /* A task that was pushed and taken between two of the looks has a worker awake in the last, or
     * has been run: then what it did shows. */
    return pool_sleeps(pool, is_driven) && !troupe_pool_has_work(pool) &&
           pool_sleeps(pool, is_driven);
}
