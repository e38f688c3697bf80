/* Iterations: admission, completion in order, failure, waiting. Invariant: completed <= admitted
 * <= completed + window, and only the thread that set `advancing` moves them, in order. */
#include <string.h>

#include "actors/stage.h"

/* Whether an iteration that starts now is to drain: the root's one does, which also ends loops and
 * recursions that know nothing of the failure, or it comes after a failed one. */
static bool iteration_must_drain(const struct troupe_instance *instance, uint64_t number)
{
    /* Relaxed: see firing_fire; the poison is written under the lock that is held. */
    if (instance->caller != NULL)
        return instance->drains ||
               atomic_load_explicit(&instance->root->drains, memory_order_relaxed);
    return number >= atomic_load_explicit(&instance->stage->poison, memory_order_relaxed);
}

/* Starts one iteration. The lock is held; pushing does not block. */
static void iteration_start_locked(struct troupe_instance *instance, uint64_t number,
                                   struct troupe_ready *ready)
{
    const struct troupe_stage *stage = instance->stage;
    struct troupe_iteration *iteration = troupe_instance_iteration(instance, number);

    iteration->number = number;
    iteration->done = stage->sink_count == 0;
    /* Relaxed: the pushes that follow publish them. */
    atomic_store_explicit(&iteration->failed, false, memory_order_relaxed);
    atomic_store_explicit(&iteration->drains, iteration_must_drain(instance, number),
                          memory_order_relaxed);
    atomic_store_explicit(&iteration->sinks_left, stage->sink_count, memory_order_relaxed);
    /* Release: partner of troupe_stage_admitted. */
    atomic_store_explicit(&instance->admitted, number + 1, memory_order_release);
    for (int i = 0; i < stage->source_count; i++)
        troupe_actor_admit(stage->sources[i], iteration, ready);
}

/* Retires a complete iteration; gives the lock away while the hook runs. */
static void iteration_retire_locked(struct troupe_instance *instance,
                                    struct troupe_iteration *iteration)
{
    const struct troupe_stage_hooks *hooks = &instance->stage->hooks;
    uint64_t number = iteration->number;

    iteration->done = false;
    if (instance->caller == NULL && hooks->completed != NULL) {
        pthread_mutex_unlock(&instance->lock);
        hooks->completed(hooks->context, number);
        pthread_mutex_lock(&instance->lock);
    }
    /* Release: partner of troupe_stage_completed. */
    atomic_store_explicit(&instance->completed, number + 1, memory_order_release);
}

/* Retires and starts what can be. Returns true when all admitted iterations are complete: then
 * touch the instance no more after the unlock. */
static bool instance_advance_locked(struct troupe_instance *instance, struct troupe_ready *ready)
{
    uint64_t admitted, completed;

    if (instance->advancing)
        return false;
    instance->advancing = true;
    for (;;) {
        /* Relaxed: written under the lock that is held. */
        admitted = atomic_load_explicit(&instance->admitted, memory_order_relaxed);
        completed = atomic_load_explicit(&instance->completed, memory_order_relaxed);
        struct troupe_iteration *oldest = troupe_instance_iteration(instance, completed);
        if (completed < admitted && oldest->done)
            iteration_retire_locked(instance, oldest);
        else if (admitted < instance->end &&
                 admitted - completed < (uint64_t)instance->stage->window)
            iteration_start_locked(instance, admitted, ready);
        else
            break;
    }
    instance->advancing = false;
    return completed == instance->end;
}

/* Ends what instance_advance_locked has begun. The lock is held, and given back. */
static struct troupe_firing *instance_leave(struct troupe_instance *instance, bool is_complete)
{
    struct troupe_stage *stage = instance->stage;
    struct troupe_pool *pool = stage->pool;
    bool is_root = instance->caller == NULL;

    if (is_root)
        atomic_store_explicit(&stage->idle, is_complete, memory_order_seq_cst);
    /* Under the lock: troupe_stage_wait takes it before it lets stage and pool be destroyed. */
    if (is_root && is_complete)
        troupe_pool_wake(pool);
    pthread_mutex_unlock(&instance->lock);
    return is_complete && !is_root ? troupe_frame_return(instance) : NULL;
}

struct troupe_firing *troupe_iteration_finish(struct troupe_iteration *iteration,
                                              struct troupe_ready *ready)
{
    struct troupe_instance *instance = iteration->instance;

    pthread_mutex_lock(&instance->lock);
    iteration->done = true;
    return instance_leave(instance, instance_advance_locked(instance, ready));
}

struct troupe_firing *troupe_instance_admit(struct troupe_instance *instance, uint64_t end,
                                            struct troupe_ready *ready)
{
    bool is_complete = false;

    pthread_mutex_lock(&instance->lock);
    if (end <= instance->end) {
        pthread_mutex_unlock(&instance->lock);
        return NULL;
    }
    instance->end = end;
    is_complete = instance_advance_locked(instance, ready);
    /* Before the lock is given back: whoever waits may destroy what is ready. */
    troupe_ready_flush(ready);
    return instance_leave(instance, is_complete);
}

void troupe_stage_admit(struct troupe_stage *stage, uint64_t end)
{
    struct troupe_ready ready;

    if (stage->root == NULL)
        return; /* before the cast there is nothing to start */
    troupe_ready_init(&ready, stage->pool);
    (void)troupe_instance_admit(stage->root, end, &ready);
}

uint64_t troupe_stage_hold(struct troupe_stage *stage)
{
    struct troupe_instance *root = stage->root;
    uint64_t end;
    bool idle;

    if (root == NULL)
        return 0;
    pthread_mutex_lock(&root->lock);
    /* Relaxed: written under the lock that is held. An advancing thread looks at `end` again. */
    end = atomic_load_explicit(&root->admitted, memory_order_relaxed);
    root->end = end;
    idle = !root->advancing && atomic_load_explicit(&root->completed, memory_order_relaxed) == end;
    (void)instance_leave(root, idle);
    return end;
}

void troupe_stage_poison(struct troupe_stage *stage, uint64_t first)
{
    struct troupe_instance *root = stage->root;

    if (root == NULL)
        return;
    pthread_mutex_lock(&root->lock);
    /* Relaxed: see iteration_must_drain and firing_fire. */
    atomic_store_explicit(&stage->poison, first, memory_order_relaxed);
    for (uint64_t number = atomic_load_explicit(&root->completed, memory_order_relaxed);
         number < atomic_load_explicit(&root->admitted, memory_order_relaxed); number++)
        if (number >= first)
            atomic_store_explicit(&troupe_instance_iteration(root, number)->drains, true,
                                  memory_order_relaxed);
    pthread_mutex_unlock(&root->lock);
}

/* Keeps the earliest failure for the next wait. The failure lock is held. */
static void stage_record_failure_locked(struct troupe_stage *stage, uint64_t number,
                                        enum troupe_status status, const char *message)
{
    size_t length = strnlen(message, sizeof stage->failure_message - 1);

    if (stage->failure != TROUPE_OK && number >= stage->failure_iteration)
        return;
    stage->failure = status;
    stage->failure_iteration = number;
    memcpy(stage->failure_message, message, length);
    stage->failure_message[length] = '\0';
}

void troupe_firing_fail(struct troupe_firing *firing, enum troupe_status status,
                        const char *message)
{
    struct troupe_iteration *iteration = troupe_firing_record(firing);
    void *context = troupe_actor_context(firing->actor);
    struct troupe_stage *stage;

    /* Relaxed: draining is a hint, and none of these iterations can complete before the firing. */
    atomic_store_explicit(&iteration->drains, true, memory_order_relaxed);
    if (iteration->instance->caller != NULL)
        iteration = iteration->instance->root;
    atomic_store_explicit(&iteration->drains, true, memory_order_relaxed);
    stage = iteration->instance->stage;
    pthread_mutex_lock(&stage->failure_lock);
    /* Relaxed: set under this lock. */
    if (!atomic_load_explicit(&iteration->failed, memory_order_relaxed)) {
        atomic_store_explicit(&iteration->failed, true, memory_order_relaxed);
        stage_record_failure_locked(stage, iteration->number, status, message);
        if (stage->hooks.failed != NULL)
            stage->hooks.failed(stage->hooks.context, iteration->number, context, status, message);
    }
    pthread_mutex_unlock(&stage->failure_lock);
}

/* Takes the recorded failure out. */
static enum troupe_status stage_take_failure(struct troupe_stage *stage)
{
    enum troupe_status status;

    /* Whoever made the stage idle has left it once it has given this lock back. */
    pthread_mutex_lock(&stage->root->lock);
    pthread_mutex_unlock(&stage->root->lock);
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

    if (stage->root == NULL)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "troupe_stage_wait needs a stage that was cast, and no frame");
    status = troupe_pool_drive(stage->pool, &stage->idle, deadline_ns);
    if (status == TROUPE_DEADLINE_EXCEEDED)
        return troupe_status_fail(
            status, "the deadline passed with %llu of %llu admitted iterations complete",
            (unsigned long long)troupe_stage_completed(stage),
            (unsigned long long)troupe_stage_admitted(stage));
    if (status != TROUPE_OK)
        return status;
    return stage_take_failure(stage);
}

uint64_t troupe_stage_completed(const struct troupe_stage *stage)
{
    /* Acquire: partner of the release in iteration_retire_locked. */
    return stage->root == NULL
               ? 0
               : atomic_load_explicit(&stage->root->completed, memory_order_acquire);
}

uint64_t troupe_stage_admitted(const struct troupe_stage *stage)
{
    /* Acquire: partner of the release in iteration_start_locked. */
    return stage->root == NULL ? 0
                               : atomic_load_explicit(&stage->root->admitted, memory_order_acquire);
}
