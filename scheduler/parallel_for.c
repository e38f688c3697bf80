/* One loop split over the pool. Invariant: the helpers live on the caller's stack, so it returns
 * only when each was taken back from its deque or has finished. */
#include <sched.h>

#include "scheduler/pool.h"

/* Ranges per worker: more than one evens out unequal speeds. */
#define RANGES_PER_WORKER 2

struct parallel_job {
    void (*body)(void *context, int64_t begin, int64_t end);
    void *context;
    int64_t total, range;
    _Atomic(int64_t) next; /* where the next range begins */
    _Atomic(int) helpers;  /* that may still touch the job */
};

struct parallel_helper {
    struct troupe_task task;
    struct parallel_job *job;
};

static void job_work(struct parallel_job *job)
{
    for (;;) {
        /* Relaxed: the ranges are disjoint; `helpers` publishes what the bodies wrote. */
        int64_t begin = atomic_fetch_add_explicit(&job->next, job->range, memory_order_relaxed);

        if (begin >= job->total)
            return;
        job->body(job->context, begin,
                  job->total - begin < job->range ? job->total : begin + job->range);
    }
}

static void helper_run(struct troupe_task *task, struct troupe_worker *worker)
{
    struct parallel_helper *helper = (struct parallel_helper *)task;
    struct parallel_job *job = helper->job;

    (void)worker;
    job_work(job);
    /* Release: partner of the acquire in job_wait. The job may be gone afterwards. */
    atomic_fetch_sub_explicit(&job->helpers, 1, memory_order_release);
}

static bool job_owns(const struct parallel_job *job, struct troupe_task *task)
{
    return task->run == helper_run && ((struct parallel_helper *)task)->job == job;
}

/* Takes back the helpers that nobody stole: they are the newest tasks of the caller's deque. A
 * thief takes them before older tasks too: nobody waits for one behind other work. */
static void job_take_back(struct parallel_job *job, struct troupe_worker *worker)
{
    struct troupe_task *tasks[TROUPE_DEQUE_BATCH];
    int count;

    do {
        count = troupe_deque_take(&worker->deque, tasks);
        if (count == 0)
            return;
        for (; count > 0 && job_owns(job, tasks[count - 1]); count--)
            /* Relaxed: this helper has written nothing. */
            atomic_fetch_sub_explicit(&job->helpers, 1, memory_order_relaxed);
    } while (count == 0);
    troupe_pool_push_many(worker->pool, worker, tasks, count);
}

static void job_wait(struct parallel_job *job)
{
    /* Acquire: partner of the release in helper_run. */
    for (int round = 0; atomic_load_explicit(&job->helpers, memory_order_acquire) != 0; round++)
        if (round > 100)
            sched_yield();
}

/* The size of a range, a multiple of the grain; `width` workers share them. */
static int64_t range_size(int64_t total, int64_t grain, int width)
{
    int64_t grains = (total - 1) / grain + 1;
    int64_t ranges = width == 1 ? 1 : (int64_t)width * RANGES_PER_WORKER;
    int64_t each;

    if (ranges >= grains)
        return grain;
    each = (grains - 1) / ranges + 1;
    return each > total / grain ? total : each * grain;
}

void troupe_pool_parallel_for(struct troupe_pool *pool, struct troupe_worker *worker, int64_t total,
                              int64_t grain,
                              void (*body)(void *context, int64_t begin, int64_t end),
                              void *context)
{
    struct parallel_helper helpers[TROUPE_POOL_MAX_WORKERS];
    struct parallel_job job = {.body = body, .context = context, .total = total};
    int64_t ranges;

    if (total <= 0)
        return;
    job.range = range_size(total, grain < 1 ? 1 : grain, pool != NULL ? pool->width : 1);
    ranges = (total - 1) / job.range + 1;
    if (worker != NULL && worker->pool == pool) {
        int count = (int)(ranges - 1 < pool->width - 1 ? ranges - 1 : pool->width - 1);

        for (int i = 0; i < count; i++) {
            struct troupe_task *task = &helpers[i].task;

            helpers[i].task.run = helper_run;
            helpers[i].job = &job;
            /* Relaxed: the push publishes it. */
            atomic_fetch_add_explicit(&job.helpers, 1, memory_order_relaxed);
            if (!troupe_deque_push(&worker->deque, &task, 1)) {
                /* Relaxed: nobody saw this helper; fewer share the ranges. */
                atomic_fetch_sub_explicit(&job.helpers, 1, memory_order_relaxed);
                break;
            }
            if (atomic_load_explicit(&pool->searching, memory_order_seq_cst) <= i)
                troupe_pool_wake_one(pool);
        }
    }
    job_work(&job);
    if (worker != NULL && worker->pool == pool && pool->width > 1) {
        job_take_back(&job, worker);
        job_wait(&job);
    }
}
