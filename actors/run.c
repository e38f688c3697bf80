/* Iterations: admission, completion in order, failure, waiting. Invariant: completed <= admitted
 * <= completed + window, and only the thread that set `advancing` moves them, in order. */
#include <string.h>

#include "actors/stage.h"

/* Starts one iteration. The lock is held; pushing does not block. */
static void stage_start_locked(struct troupe_stage *stage, uint64_t iteration,
                               struct troupe_ready *ready)
{
    struct troupe_iteration *record = &stage->iterations[iteration % stage->window];

    record->done = stage->sink_count == 0;
    /* Relaxed: the pushes that follow publish it. */
    atomic_store_explicit(&record->sinks_left, stage->sink_count, memory_order_relaxed);
    /* Release: partner of troupe_stage_admitted. */
    atomic_store_explicit(&stage->admitted, iteration + 1, memory_order_release);
    for (int i = 0; i < stage->source_count; i++)
        troupe_actor_admit(stage->sources[i], iteration, ready);
}

/* Retires a complete iteration; gives the lock away while the hook runs. */
static void stage_retire_locked(struct troupe_stage *stage, uint64_t iteration)
{
    struct troupe_iteration *record = &stage->iterations[iteration % stage->window];

    record->done = false;
    if (stage->hooks.completed != NULL) {
        pthread_mutex_unlock(&stage->lock);
        stage->hooks.completed(stage->hooks.context, iteration);
        pthread_mutex_lock(&stage->lock);
    }
    /* Relaxed: all firings that could fail are done, and the lock orders the next ones. */
    if (atomic_load_explicit(&record->failed, memory_order_relaxed)) {
        atomic_store_explicit(&record->failed, false, memory_order_relaxed);
        atomic_fetch_sub_explicit(&stage->failed_iterations, 1, memory_order_relaxed);
    }
    /* Release: partner of troupe_stage_completed. */
    atomic_store_explicit(&stage->completed, iteration + 1, memory_order_release);
}

/* Retires and starts what can be. Returns true when the stage became idle: then wake the pool,
 * and touch the stage no more after the unlock. */
static bool stage_advance_locked(struct troupe_stage *stage, struct troupe_ready *ready)
{
    uint64_t admitted, completed;
    bool idle;

    if (stage->advancing)
        return false;
    stage->advancing = true;
    for (;;) {
        /* Relaxed: written under the lock that is held. */
        admitted = atomic_load_explicit(&stage->admitted, memory_order_relaxed);
        completed = atomic_load_explicit(&stage->completed, memory_order_relaxed);
        if (completed < admitted && stage->iterations[completed % stage->window].done)
            stage_retire_locked(stage, completed);
        else if (admitted < stage->end && admitted - completed < (uint64_t)stage->window)
            stage_start_locked(stage, admitted, ready);
        else
            break;
    }
    stage->advancing = false;
    idle = completed == stage->end;
    atomic_store_explicit(&stage->idle, idle, memory_order_seq_cst);
    return idle;
}

void troupe_stage_finish_iteration(struct troupe_stage *stage, uint64_t iteration,
                                   struct troupe_ready *ready)
{
    struct troupe_pool *pool = stage->pool;
    bool idle;

    pthread_mutex_lock(&stage->lock);
    stage->iterations[iteration % stage->window].done = true;
    idle = stage_advance_locked(stage, ready);
    /* Under the lock: troupe_stage_wait takes it before it lets stage and pool be destroyed. */
    if (idle)
        troupe_pool_wake(pool);
    pthread_mutex_unlock(&stage->lock);
}

void troupe_stage_admit(struct troupe_stage *stage, uint64_t end)
{
    struct troupe_pool *pool = stage->pool;
    struct troupe_worker *worker = troupe_worker_current();
    struct troupe_ready ready = {0};
    bool idle = false;

    if (pool == NULL)
        return; /* before the cast there is nothing to start */
    if (worker != NULL && troupe_worker_pool(worker) == pool)
        ready.worker = worker;
    pthread_mutex_lock(&stage->lock);
    if (end > stage->end) {
        stage->end = end;
        atomic_store_explicit(&stage->idle, 0, memory_order_seq_cst);
        idle = stage_advance_locked(stage, &ready);
    }
    troupe_ready_flush(&ready, pool);
    /* Under the lock: troupe_stage_wait takes it before it lets stage and pool be destroyed. */
    if (idle)
        troupe_pool_wake(pool);
    pthread_mutex_unlock(&stage->lock);
}

uint64_t troupe_stage_hold(struct troupe_stage *stage)
{
    struct troupe_pool *pool = stage->pool;
    uint64_t end;
    bool idle;

    pthread_mutex_lock(&stage->lock);
    /* Relaxed: written under the lock that is held. An advancing thread looks at `end` again. */
    end = atomic_load_explicit(&stage->admitted, memory_order_relaxed);
    stage->end = end;
    idle =
        !stage->advancing && atomic_load_explicit(&stage->completed, memory_order_relaxed) == end;
    if (idle)
        atomic_store_explicit(&stage->idle, 1, memory_order_seq_cst);
    if (idle && pool != NULL)
        troupe_pool_wake(pool);
    pthread_mutex_unlock(&stage->lock);
    return end;
}

void troupe_stage_poison(struct troupe_stage *stage, uint64_t first)
{
    /* Relaxed: see firing_must_drain. */
    atomic_store_explicit(&stage->poison, first, memory_order_relaxed);
}

void troupe_stage_fail(struct troupe_stage *stage, const struct troupe_actor *actor,
                       uint64_t iteration, enum troupe_status status, const char *message)
{
    struct troupe_iteration *record = &stage->iterations[iteration % stage->window];

    pthread_mutex_lock(&stage->failure_lock);
    /* Relaxed: set under this lock; the iteration cannot complete before this firing does. */
    if (!atomic_load_explicit(&record->failed, memory_order_relaxed)) {
        atomic_store_explicit(&record->failed, true, memory_order_relaxed);
        atomic_fetch_add_explicit(&stage->failed_iterations, 1, memory_order_relaxed);
        if (stage->failure == TROUPE_OK || iteration < stage->failure_iteration) {
            size_t length = strnlen(message, sizeof stage->failure_message - 1);

            stage->failure = status;
            stage->failure_iteration = iteration;
            memcpy(stage->failure_message, message, length);
            stage->failure_message[length] = '\0';
        }
        if (stage->hooks.failed != NULL)
            stage->hooks.failed(stage->hooks.context, iteration, actor->number, status, message);
    }
    pthread_mutex_unlock(&stage->failure_lock);
}

/* Takes the recorded failure out. */
static enum troupe_status stage_take_failure(struct troupe_stage *stage)
{
    enum troupe_status status;

    /* Whoever made the stage idle has left it once it has given this lock back. */
    pthread_mutex_lock(&stage->lock);
    pthread_mutex_unlock(&stage->lock);
    pthread_mutex_lock(&stage->failure_lock);
    status = stage->failure;
    if (status != TROUPE_OK)
        (void)troupe_status_fail(status, "%s", stage->failure_message);
    stage->failure = TROUPE_OK;
    pthread_mutex_unlock(&stage->failure_lock);
    return status;
}

enum troupe_status troupe_stage_wait(struct troupe_stage *stage, uint64_t deadline_ns)
{
    enum troupe_status status;

    if (stage->pool == NULL)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "troupe_stage_wait needs a stage that was cast");
    status = troupe_pool_drive(stage->pool, &stage->idle, deadline_ns);
    if (status == TROUPE_DEADLINE_EXCEEDED)
        /* Relaxed: figures for a message. */
        return troupe_status_fail(
            status, "the deadline passed with %llu of %llu admitted iterations complete",
            (unsigned long long)atomic_load_explicit(&stage->completed, memory_order_relaxed),
            (unsigned long long)atomic_load_explicit(&stage->admitted, memory_order_relaxed));
    if (status != TROUPE_OK)
        return status;
    return stage_take_failure(stage);
}

uint64_t troupe_stage_completed(const struct troupe_stage *stage)
{
    /* Acquire: partner of the release in stage_retire_locked. */
    return atomic_load_explicit(&stage->completed, memory_order_acquire);
}

uint64_t troupe_stage_admitted(const struct troupe_stage *stage)
{
    /* Acquire: partner of the release in stage_start_locked. */
    return atomic_load_explicit(&stage->admitted, memory_order_acquire);
}
