/* A pool of workers that run tasks. Knows no tensor, no actor.
 *
 * A pool of `workers` has workers - 1 threads of its own; worker 0 is whoever waits in
 * troupe_pool_drive, so that a caller's thread works instead of sleeping and a pool of one
 * worker runs everything inside the caller (the host-driven mode). */
#ifndef TROUPE_SCHEDULER_SCHEDULER_H
#define TROUPE_SCHEDULER_SCHEDULER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

struct troupe_pool;
struct troupe_worker;

/* Put first in whatever is scheduled. A task is in at most one queue at a time; the pool owns
 * no task. */
struct troupe_task {
    void (*run)(struct troupe_task *self, struct troupe_worker *worker);
    union {
        struct troupe_task *next; /* of the pool's injection list */
        bool *flag;               /* for the task's own use while it runs */
    };
};

/* Called by idle workers, one at a time (try-lock), to make progress elsewhere (MPI). Returns
 * how many events it handled, 0 when idle. Must not block. */
typedef int troupe_poll_fn(void *context);

struct troupe_pool_options {
    int workers;          /* at least 1 */
    troupe_poll_fn *poll; /* NULL: idle workers only park */
    void *poll_context;
    bool poll_on_worker0_only; /* MPI_THREAD_FUNNELED */
    /* Number of events awaited from `poll` (pending receives); while it is above 0 an idle worker
     * keeps polling (yielding, then sleeping for 0.1 ms at most, and after 50 ms for up to 10 ms)
     * instead of parking. NULL: never. */
    const _Atomic(int64_t) *poll_pending;
};

TROUPE_MUST_USE enum troupe_status troupe_pool_create(const struct troupe_pool_options *options,
                                                      struct troupe_pool **out);
/* Stops and joins the threads. Tasks still queued are not run. NULL does nothing. */
void troupe_pool_destroy(struct troupe_pool *pool);
int troupe_pool_workers(const struct troupe_pool *pool);

/* Schedules a task: from a worker's own task onto its deque (newest first), with worker NULL
 * through the pool's injection queue. Wakes a parked worker when there is one. Never blocks. */
void troupe_pool_push(struct troupe_pool *pool, struct troupe_worker *worker,
                      struct troupe_task *task);
/* The same for several at once, which others see together; the last is run first. */
void troupe_pool_push_many(struct troupe_pool *pool, struct troupe_worker *worker,
                           struct troupe_task *const *tasks, int count);

/* Makes the calling thread worker 0 until *done becomes nonzero (acquire) or `deadline_ns`
 * (troupe_clock_ns; 0: none) passes: runs tasks, polls, parks. One thread at a time; a second
 * caller waits its turn. DEADLINE_EXCEEDED. After setting *done call troupe_pool_wake. */
TROUPE_MUST_USE enum troupe_status
troupe_pool_drive(struct troupe_pool *pool, const _Atomic(int) *done, uint64_t deadline_ns);
/* Wakes the driver and parked workers to look again. Any thread. */
void troupe_pool_wake(struct troupe_pool *pool);
/* True when no task is queued and every worker sleeps (for a moment, when it is the one that
 * polls). A worker that is awake without a task makes it false: ask again. Any thread. */
bool troupe_pool_is_idle(struct troupe_pool *pool);
/* False while nothing gets on because nobody drives: with one worker, or when only worker 0 may
 * poll. Any thread. */
bool troupe_pool_is_staffed(struct troupe_pool *pool);

/* Runs body over [0, total) in ranges that depend on total, grain and the pool's width alone; the
 * calling worker takes part and returns when all are done. `worker` NULL: runs alone. */
void troupe_pool_parallel_for(struct troupe_pool *pool, struct troupe_worker *worker, int64_t total,
                              int64_t grain,
                              void (*body)(void *context, int64_t begin, int64_t end),
                              void *context);

/* The worker's own next task, which its caller runs; NULL when it has none. For a task that is one
 * of many of a kind, which would be asked for next anyway. */
struct troupe_task *troupe_worker_take(struct troupe_worker *worker);
/* The calling thread's worker, NULL outside a task or poll; its number and pool. */
struct troupe_worker *troupe_worker_current(void);
/* Polls when events are awaited and some time has passed since the last poll: for a task that
 * runs long, between its pieces. The poll function must not run tasks. */
void troupe_worker_poll(struct troupe_worker *worker);
/* False when there is nothing that it ever polls. */
bool troupe_worker_polls(const struct troupe_worker *worker);
int troupe_worker_index(const struct troupe_worker *worker);
struct troupe_pool *troupe_worker_pool(const struct troupe_worker *worker);

/* Cores (CPUs, without hwloc) of the process's cpuset divided by `processes_on_host` (at least 1):
 * the default number of workers. */
int troupe_pool_default_workers(int processes_on_host);

#endif
