/* Workers: how a task is found, when a worker polls, naps and parks. Invariant: the thread that
 * runs worker i is the only one that touches the owner's end of deque i; worker 0 belongs to
 * whoever holds the drive turn. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/pool.h"

/* How long an idle worker stays awake, how often a busy one polls, and how long a polling one
 * naps at first and at last. */
#define SPIN_NS        200000
#define POLL_PERIOD_NS 20000
#define NAP_FIRST_NS   20000
#define NAP_LAST_NS    1000000
/* A wait that lasts makes naps longer, by a sixteenth each: a nap stays short beside the wait, and
 * idling costs next to nothing. */
#define NAP_IDLE_NS    10000000
#define NAP_IDLE_SHARE 16
/* Meanwhile, until a wait has lasted so long, what is awaited may well be the next step's message:
 * then naps stay short. */
#define NAP_SOON_NS 100000
#define SOON_NS     50000000
/* Every so many searches the injected tasks go first, so that a busy worker cannot starve them. */
#define INJECTED_PERIOD 61
/* Once between, the worker's own oldest task goes first: newest first alone, a run without an end
 * would keep the worker from all others. */
#define OLDEST_PHASE 30
/* A driver with a deadline reads the clock every so many tasks. */
#define DEADLINE_PERIOD 16

static _Thread_local struct troupe_worker *current_worker;

struct troupe_worker *troupe_worker_current(void)
{
    return current_worker;
}

int troupe_worker_index(const struct troupe_worker *worker)
{
    return worker->index;
}

struct troupe_pool *troupe_worker_pool(const struct troupe_worker *worker)
{
    return worker->pool;
}

int troupe_pool_workers(const struct troupe_pool *pool)
{
    return pool->width;
}

static void pool_inject(struct troupe_pool *pool, struct troupe_task *task)
{
    /* Relaxed: the exchange below orders it, and fails when it is old. */
    struct troupe_task *head = atomic_load_explicit(&pool->injected, memory_order_relaxed);

    do {
        task->next = head;
        /* Relaxed on failure: only the value is used. */
    } while (!atomic_compare_exchange_weak_explicit(&pool->injected, &head, task,
                                                    memory_order_seq_cst, memory_order_relaxed));
}

/* A searching worker will find the tasks, or wake another when it finds different ones. */
static void pool_call_worker(struct troupe_pool *pool)
{
    if (atomic_load_explicit(&pool->searching, memory_order_seq_cst) == 0)
        troupe_pool_wake_one(pool);
}

static void pool_inject_many(struct troupe_pool *pool, struct troupe_task *const *tasks, int count)
{
    /* A task may end the work and have the pool destroyed before this returns: destroy waits.
     * Relaxed: published with the task. */
    atomic_fetch_add_explicit(&pool->visitors, 1, memory_order_relaxed);
    for (int i = 0; i < count; i++)
        pool_inject(pool, tasks[i]);
    pool_call_worker(pool);
    /* Release: partner of the acquire in destroy. */
    atomic_fetch_sub_explicit(&pool->visitors, 1, memory_order_release);
}

void troupe_pool_push_many(struct troupe_pool *pool, struct troupe_worker *worker,
                           struct troupe_task *const *tasks, int count)
{
    if (worker == NULL || worker->pool != pool || !troupe_deque_push(&worker->deque, tasks, count))
        pool_inject_many(pool, tasks, count);
    else if (pool->width > 1) /* else the pusher is the only worker, and awake */
        pool_call_worker(pool);
}

void troupe_pool_push(struct troupe_pool *pool, struct troupe_worker *worker,
                      struct troupe_task *task)
{
    troupe_pool_push_many(pool, worker, &task, 1);
}

/* Takes all injected tasks: the newest to run, the others onto the worker's deque, newest on
 * top. */
static struct troupe_task *worker_take_injected(struct troupe_worker *worker)
{
    struct troupe_pool *pool = worker->pool;
    struct troupe_task *first, *rest, *reversed = NULL;

    /* Relaxed: a hint; parking looks again with an order. */
    if (atomic_load_explicit(&pool->injected, memory_order_relaxed) == NULL)
        return NULL;
    first = atomic_exchange_explicit(&pool->injected, NULL, memory_order_seq_cst);
    if (first == NULL)
        return NULL;
    rest = first->next;
    while (rest != NULL) {
        struct troupe_task *next = rest->next;

        rest->next = reversed;
        reversed = rest;
        rest = next;
    }
    while (reversed != NULL) {
        struct troupe_task *next = reversed->next;

        troupe_pool_push(pool, worker, reversed);
        reversed = next;
    }
    return first;
}

/* Makes the worker's batch visible to thieves again. */
static void worker_return_batch(struct troupe_worker *worker)
{
    int count = worker->batch_count;

    worker->batch_count = 0;
    if (count > 0)
        troupe_pool_push_many(worker->pool, worker, worker->batch, count);
}

static struct troupe_task *worker_steal(struct troupe_worker *worker)
{
    struct troupe_pool *pool = worker->pool;
    struct troupe_task *task;
    int start;

    if (pool->width == 1)
        return NULL;
    /* Numerical Recipes' linear congruential generator: victims need no better. */
    worker->random = worker->random * 1664525u + 1013904223u;
    start = (int)((worker->random >> 8) % (uint32_t)pool->width);
    for (int i = 0; i < pool->width && worker->batch_count == 0; i++) {
        int victim = (start + i) % pool->width;

        if (victim != worker->index)
            worker->batch_count = troupe_deque_steal(&pool->workers[victim].deque, worker->batch);
    }
    if (worker->batch_count == 0)
        return NULL;
    /* The newest runs; the others are there for whoever is faster. */
    worker->batch_count--;
    task = worker->batch[worker->batch_count];
    worker_return_batch(worker);
    return task;
}

struct troupe_task *troupe_worker_take(struct troupe_worker *worker)
{
    /* Others must find what they could run: a batch is kept back only behind a longer deque. */
    if (worker->batch_count > 1 && worker->pool->width > 1 && troupe_deque_is_empty(&worker->deque))
        worker_return_batch(worker);
    if (worker->batch_count == 0) {
        worker->batch_count = troupe_deque_take(&worker->deque, worker->batch);
        /* On their way from memory while the first of them run. */
        for (int i = 0; i < worker->batch_count - 1; i++)
            __builtin_prefetch(worker->batch[i], 1);
    }
    return worker->batch_count > 0 ? worker->batch[--worker->batch_count] : NULL;
}

static struct troupe_task *worker_find(struct troupe_worker *worker)
{
    struct troupe_task *task = NULL;

    worker->ticks++;
    if (worker->ticks % INJECTED_PERIOD == 0)
        task = worker_take_injected(worker);
    else if (worker->ticks % INJECTED_PERIOD == OLDEST_PHASE)
        task = troupe_deque_take_oldest(&worker->deque);
    if (task == NULL)
        task = troupe_worker_take(worker);
    if (task == NULL)
        task = worker_take_injected(worker);
    if (task == NULL)
        task = worker_steal(worker);
    return task;
}

static bool pool_awaits_events(const struct troupe_pool *pool)
{
    /* Relaxed: a hint, looked at again and again. */
    return pool->options.poll != NULL && pool->options.poll_pending != NULL &&
           atomic_load_explicit(pool->options.poll_pending, memory_order_relaxed) > 0;
}

static bool worker_may_poll(const struct troupe_worker *worker)
{
    return worker->pool->options.poll != NULL &&
           (worker->index == 0 || !worker->pool->options.poll_on_worker0_only);
}

/* The number of events, 0 too when another worker polls. */
static int worker_poll_now(struct troupe_worker *worker)
{
    struct troupe_pool *pool = worker->pool;
    int events;

    if (!worker_may_poll(worker))
        return 0;
    /* Relaxed: a hint that saves the exchange. Acquire and release: partners of each other. */
    if (atomic_load_explicit(&pool->poll_lock, memory_order_relaxed) != 0 ||
        atomic_exchange_explicit(&pool->poll_lock, 1, memory_order_acquire) != 0)
        return 0;
    events = pool->options.poll(pool->options.poll_context);
    atomic_store_explicit(&pool->poll_lock, 0, memory_order_release);
    return events;
}

bool troupe_worker_polls(const struct troupe_worker *worker)
{
    return worker->pool->options.poll != NULL;
}

void troupe_worker_poll(struct troupe_worker *worker)
{
    uint64_t now;

    if (worker->pool->options.poll == NULL || !pool_awaits_events(worker->pool) ||
        !worker_may_poll(worker))
        return;
    now = troupe_clock_ns();
    if (now - worker->polled_ns < POLL_PERIOD_NS)
        return;
    worker->polled_ns = now;
    (void)worker_poll_now(worker);
}

/* While events are awaited and nobody is awake to poll, somebody parked must be. */
static void worker_call_poller(struct troupe_worker *worker)
{
    struct troupe_pool *pool = worker->pool;

    if (pool->width == 1 || !pool_awaits_events(pool) ||
        atomic_load_explicit(&pool->napping, memory_order_seq_cst) != 0)
        return;
    if (pool->options.poll_on_worker0_only)
        troupe_pool_wake_worker(pool, 0);
    else if (atomic_load_explicit(&pool->searching, memory_order_seq_cst) == 0)
        troupe_pool_wake_one(pool);
}

static bool worker_must_leave(const struct troupe_worker_leave *leave, bool look_at_clock)
{
    return atomic_load_explicit(leave->flag, memory_order_seq_cst) != 0 ||
           (leave->deadline_ns != 0 && look_at_clock && troupe_clock_ns() >= leave->deadline_ns);
}

static void worker_relax(uint32_t round)
{
    for (int i = 0; i < 32; i++)
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
    if (round % 4 == 3)
        sched_yield();
}

/* Sleeps: for a bounded time when this worker is the one that polls meanwhile. Returns how long
 * the next nap is. */
static uint64_t worker_sleep(struct troupe_worker *worker, const struct troupe_worker_leave *leave,
                             uint64_t nap_ns, bool *woken_out)
{
    struct troupe_pool *pool = worker->pool;
    bool naps = worker_may_poll(worker) && pool_awaits_events(pool) &&
                atomic_exchange_explicit(&pool->napping, 1, memory_order_seq_cst) == 0;
    uint64_t timeout = naps ? nap_ns : 0;

    if (leave->deadline_ns != 0) {
        uint64_t now = troupe_clock_ns();
        uint64_t left = now < leave->deadline_ns ? leave->deadline_ns - now : 1;

        if (timeout == 0 || left < timeout)
            timeout = left;
    }
    *woken_out = troupe_worker_park(worker, leave, timeout);
    if (naps)
        atomic_store_explicit(&pool->napping, 0, memory_order_seq_cst);
    if (!naps || *woken_out)
        return NAP_FIRST_NS;
    uint64_t next = nap_ns < NAP_LAST_NS ? nap_ns * 2 : nap_ns + nap_ns / NAP_IDLE_SHARE;
    return next < NAP_IDLE_NS ? next : NAP_IDLE_NS;
}

/* Ends a search. The last searcher to find a task looks for somebody to search on. */
static void worker_stop_searching(struct troupe_worker *worker)
{
    struct troupe_pool *pool = worker->pool;

    if (atomic_fetch_sub_explicit(&pool->searching, 1, memory_order_seq_cst) == 1 &&
        pool->width > 1 && troupe_pool_has_work(pool))
        troupe_pool_wake_one(pool);
    worker_call_poller(worker);
}

/* The next task of a worker that found none; NULL when it must leave. */
static struct troupe_task *worker_search(struct troupe_worker *worker,
                                         const struct troupe_worker_leave *leave)
{
    struct troupe_pool *pool = worker->pool;
    struct troupe_task *task = NULL;
    uint64_t start = troupe_clock_ns(), nap_ns = NAP_FIRST_NS;
    bool woken;

    atomic_fetch_add_explicit(&pool->searching, 1, memory_order_seq_cst);
    for (uint32_t round = 0; !worker_must_leave(leave, true); round++) {
        task = worker_find(worker);
        if (task != NULL)
            break;
        if (worker_poll_now(worker) > 0) {
            start = troupe_clock_ns();
            nap_ns = NAP_FIRST_NS;
            continue;
        }
        if (troupe_clock_ns() - start < SPIN_NS) {
            worker_relax(round);
            continue;
        }
        nap_ns = worker_sleep(worker, leave, nap_ns, &woken);
        if (nap_ns > NAP_SOON_NS && troupe_clock_ns() - start < SOON_NS)
            nap_ns = NAP_SOON_NS;
        atomic_fetch_add_explicit(&pool->searching, 1, memory_order_seq_cst);
        if (woken)
            start = troupe_clock_ns();
    }
    worker_stop_searching(worker);
    return task;
}

static void worker_run(struct troupe_worker *worker, const struct troupe_worker_leave *leave)
{
    struct troupe_pool *pool = worker->pool;

    while (!worker_must_leave(leave, worker->ticks % DEADLINE_PERIOD == 0)) {
        struct troupe_task *task = worker_find(worker);

        if (task == NULL)
            task = worker_search(worker, leave);
        if (task == NULL)
            break;
        task->run(task, worker);
        if (pool->options.poll != NULL) {
            troupe_worker_poll(worker);
            worker_call_poller(worker);
        }
    }
    worker_return_batch(worker);
    /* A task that only this worker was told about must not wait for it. */
    if (pool->width > 1 && troupe_pool_has_work(pool))
        troupe_pool_wake_one(pool);
}

static void *worker_main(void *argument)
{
    struct troupe_worker *worker = argument;
    struct troupe_worker_leave leave = {.flag = &worker->pool->stopping};

    current_worker = worker;
    worker_run(worker, &leave);
    return NULL;
}

static enum troupe_status pool_start_threads(struct troupe_pool *pool)
{
    sigset_t all, before;
    int error = 0;

    /* Signals are the caller's business: threads of the pool take none. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < pool->width && error == 0; i++) {
        char name[24];

        error = pthread_create(&pool->workers[i].thread, NULL, worker_main, &pool->workers[i]);
        if (error != 0)
            break;
        pool->started++;
        (void)snprintf(name, sizeof name, "troupe-%d", i);
        (void)pthread_setname_np(pool->workers[i].thread, name);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED,
                                  "cannot start thread %d of a pool of %d workers: %s",
                                  pool->started + 1, pool->width, strerror(error));
    return TROUPE_OK;
}

static enum troupe_status pool_init_turn(struct troupe_pool *pool)
{
    pthread_condattr_t attributes;
    int error;

    pthread_mutex_init(&pool->turn_lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    error = pthread_cond_init(&pool->turn, &attributes);
    pthread_condattr_destroy(&attributes);
    if (error != 0) {
        pthread_mutex_destroy(&pool->turn_lock);
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "cannot create a condition: %s",
                                  strerror(error));
    }
    return TROUPE_OK;
}

/* Frees a pool whose threads do not run, with its first `deques` deques. */
static void pool_free(struct troupe_pool *pool, int deques)
{
    for (int i = 0; i < deques; i++)
        troupe_deque_fini(&pool->workers[i].deque);
    free(pool->workers);
    free(pool);
}

static struct troupe_pool *pool_alloc(const struct troupe_pool_options *options)
{
    size_t workers_bytes = (size_t)options->workers * sizeof(struct troupe_worker);
    struct troupe_pool *pool = aligned_alloc(_Alignof(struct troupe_pool), sizeof *pool);
    struct troupe_worker *workers = aligned_alloc(_Alignof(struct troupe_worker), workers_bytes);

    if (pool == NULL || workers == NULL) {
        free(pool);
        free(workers);
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a pool of %d workers",
                                 options->workers);
        return NULL;
    }
    memset(pool, 0, sizeof *pool);
    memset(workers, 0, workers_bytes);
    pool->options = *options;
    pool->width = options->workers;
    pool->idle_words = (options->workers + 63) / 64;
    pool->workers = workers;
    for (int i = 0; i < pool->width; i++) {
        workers[i].pool = pool;
        workers[i].index = i;
        workers[i].random = (uint32_t)i * 2654435761u;
    }
    return pool;
}

enum troupe_status troupe_pool_create(const struct troupe_pool_options *options,
                                      struct troupe_pool **out)
{
    enum troupe_status status;
    struct troupe_pool *pool;
    int deques = 0;

    if (options->workers < 1 || options->workers > TROUPE_POOL_MAX_WORKERS)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a pool has 1 to %d workers, not %d",
                                  TROUPE_POOL_MAX_WORKERS, options->workers);
    pool = pool_alloc(options);
    if (pool == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (; deques < pool->width; deques++) {
        status = troupe_deque_init(&pool->workers[deques].deque, pool->width > 1);
        if (status != TROUPE_OK)
            goto free_pool;
    }
    status = pool_init_turn(pool);
    if (status != TROUPE_OK)
        goto free_pool;
    status = pool_start_threads(pool);
    if (status != TROUPE_OK) {
        troupe_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return TROUPE_OK;

free_pool:
    pool_free(pool, deques);
    return status;
}

void troupe_pool_destroy(struct troupe_pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store_explicit(&pool->stopping, 1, memory_order_seq_cst);
    troupe_pool_wake_parked(pool);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    /* Acquire: partner of the release in push, which is about to return. */
    while (atomic_load_explicit(&pool->visitors, memory_order_acquire) != 0)
        sched_yield();
    pthread_cond_destroy(&pool->turn);
    pthread_mutex_destroy(&pool->turn_lock);
    pool_free(pool, pool->width);
}

/* Waits until nobody drives, and takes the turn; false when there is no need to any more. */
static bool pool_take_turn(struct troupe_pool *pool, const struct troupe_worker_leave *leave)
{
    struct timespec until = {.tv_sec = (time_t)(leave->deadline_ns / UINT64_C(1000000000)),
                             .tv_nsec = (long)(leave->deadline_ns % UINT64_C(1000000000))};
    bool taken;

    pthread_mutex_lock(&pool->turn_lock);
    atomic_fetch_add_explicit(&pool->turn_waiters, 1, memory_order_seq_cst);
    while (pool->driven && !worker_must_leave(leave, true)) {
        if (leave->deadline_ns == 0)
            pthread_cond_wait(&pool->turn, &pool->turn_lock);
        else
            (void)pthread_cond_timedwait(&pool->turn, &pool->turn_lock, &until);
    }
    atomic_fetch_sub_explicit(&pool->turn_waiters, 1, memory_order_seq_cst);
    taken = !pool->driven;
    pool->driven = true;
    pthread_mutex_unlock(&pool->turn_lock);
    return taken;
}

enum troupe_status troupe_pool_drive(struct troupe_pool *pool, const _Atomic(int) *done,
                                     uint64_t deadline_ns)
{
    struct troupe_worker_leave leave = {.flag = done, .deadline_ns = deadline_ns};
    struct troupe_worker *before = current_worker;

    if (before != NULL && before->pool == pool)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "a task must not wait for the pool that runs it");
    if (pool_take_turn(pool, &leave)) {
        current_worker = &pool->workers[0];
        worker_run(current_worker, &leave);
        current_worker = before;
        pthread_mutex_lock(&pool->turn_lock);
        pool->driven = false;
        pthread_cond_broadcast(&pool->turn);
        pthread_mutex_unlock(&pool->turn_lock);
    }
    if (atomic_load_explicit(done, memory_order_seq_cst) == 0)
        return troupe_status_fail(TROUPE_DEADLINE_EXCEEDED, "the deadline passed");
    return TROUPE_OK;
}

void troupe_pool_wake(struct troupe_pool *pool)
{
    troupe_pool_wake_parked(pool);
    /* A read-modify-write, as in wake_parked: a later waiter sees what the caller stored. */
    if (atomic_fetch_add_explicit(&pool->turn_waiters, 0, memory_order_seq_cst) > 0) {
        pthread_mutex_lock(&pool->turn_lock);
        pthread_cond_broadcast(&pool->turn);
        pthread_mutex_unlock(&pool->turn_lock);
    }
}
