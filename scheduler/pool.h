/* Inside of the pool, for the files of this folder. */
#ifndef TROUPE_SCHEDULER_POOL_H
#define TROUPE_SCHEDULER_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "scheduler/deque.h"
#include "scheduler/scheduler.h"

#define TROUPE_POOL_MAX_WORKERS 256
#define TROUPE_POOL_IDLE_WORDS  (TROUPE_POOL_MAX_WORKERS / 64)

struct troupe_worker {
    struct troupe_pool *pool;
    int index;
    uint32_t random; /* where the next search for a victim starts */
    uint32_t ticks;  /* searches so far */
    uint64_t polled_ns;
    int batch_count; /* tasks taken out of a deque, newest last: the next one */
    struct troupe_task *batch[TROUPE_DEQUE_BATCH];
    pthread_t thread;                      /* not of worker 0 */
    _Alignas(64) _Atomic(uint32_t) signal; /* futex: 1 wakes the parked worker */
    struct troupe_deque deque;
};

struct troupe_pool {
    struct troupe_pool_options options;
    struct troupe_worker *workers;
    int width;
    int started; /* threads that exist */
    int idle_words;
    _Alignas(64) _Atomic(struct troupe_task *) injected; /* newest first */
    /* A parked worker's bit. Whoever clears it owes the worker a signal. */
    _Alignas(64) _Atomic(uint64_t) idle[TROUPE_POOL_IDLE_WORDS];
    _Atomic(int) searching; /* awake workers that look for a task */
    _Atomic(int) napping;   /* 1 while a worker sleeps for a bounded time in order to poll */
    _Alignas(64) _Atomic(int) poll_lock;
    _Atomic(int) stopping;
    pthread_mutex_t turn_lock;
    pthread_cond_t turn;
    bool driven; /* under turn_lock */
    _Atomic(int) turn_waiters;
    _Atomic(int) visitors; /* threads outside the pool that are inside a push */
};

/* park.c. Wakes one parked worker when there is one, one certain worker, or all of them. */
void troupe_pool_wake_one(struct troupe_pool *pool);
void troupe_pool_wake_worker(struct troupe_pool *pool, int index);
void troupe_pool_wake_parked(struct troupe_pool *pool);
/* True when some queue holds a task. */
bool troupe_pool_has_work(struct troupe_pool *pool);

/* Parks a searching worker (which stops counting as one) until it is woken, `timeout_ns` passes
 * (0: no limit), or `leaves` says so in the last look before sleeping. True: it was woken. */
struct troupe_worker_leave {
    const _Atomic(int) *flag; /* nonzero: leave */
    uint64_t deadline_ns;     /* 0: none */
};
bool troupe_worker_park(struct troupe_worker *worker, const struct troupe_worker_leave *leave,
                        uint64_t timeout_ns);

#endif
