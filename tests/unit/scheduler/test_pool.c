/* The pool: tasks from inside and outside, waking, polling, turns, parallel loops. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "scheduler/scheduler.h"

#define MANY 5000
#define MS   UINT64_C(1000000)

struct counting {
    struct troupe_task task;
    struct troupe_pool *pool;
    _Atomic(int) *left;
    _Atomic(int) *done;
    int children;
    struct counting *first_child;
};

static struct counting items[MANY];
static _Atomic(int) left, done;

static void counting_run(struct troupe_task *task, struct troupe_worker *worker)
{
    struct counting *item = (struct counting *)task;

    cr_assert_eq(troupe_worker_current(), worker);
    for (int i = 0; i < item->children; i++)
        troupe_pool_push(item->pool, worker, &item->first_child[i].task);
    if (atomic_fetch_sub_explicit(item->left, 1, memory_order_seq_cst) == 1) {
        atomic_store_explicit(item->done, 1, memory_order_seq_cst);
        troupe_pool_wake(item->pool);
    }
}

static struct troupe_pool *pool_of(int workers)
{
    struct troupe_pool_options options = {.workers = workers};
    struct troupe_pool *pool = NULL;

    cr_assert_eq(troupe_pool_create(&options, &pool), TROUPE_OK);
    cr_assert_eq(troupe_pool_workers(pool), workers);
    return pool;
}

static void items_set(struct troupe_pool *pool)
{
    memset(items, 0, sizeof items);
    atomic_store_explicit(&left, MANY, memory_order_seq_cst);
    atomic_store_explicit(&done, 0, memory_order_seq_cst);
    for (int i = 0; i < MANY; i++) {
        items[i].task.run = counting_run;
        items[i].pool = pool;
        items[i].left = &left;
        items[i].done = &done;
    }
}

Test(pool, runs_what_is_pushed_from_outside)
{
    for (int workers = 1; workers <= 4; workers++) {
        struct troupe_pool *pool = pool_of(workers);

        items_set(pool);
        for (int i = 0; i < MANY; i++)
            troupe_pool_push(pool, NULL, &items[i].task);
        cr_assert_eq(troupe_pool_drive(pool, &done, troupe_clock_ns() + 10000 * MS), TROUPE_OK);
        cr_assert_eq(atomic_load_explicit(&left, memory_order_seq_cst), 0);
        troupe_pool_destroy(pool);
    }
}

Test(pool, runs_what_tasks_push)
{
    for (int workers = 1; workers <= 4; workers++) {
        struct troupe_pool *pool = pool_of(workers);

        items_set(pool);
        items[0].children = MANY - 1;
        items[0].first_child = &items[1];
        troupe_pool_push(pool, NULL, &items[0].task);
        cr_assert_eq(troupe_pool_drive(pool, &done, troupe_clock_ns() + 10000 * MS), TROUPE_OK);
        troupe_pool_destroy(pool);
    }
}

Test(pool, works_without_a_driver)
{
    struct troupe_pool *pool = pool_of(2);

    items_set(pool);
    items[0].children = MANY - 1;
    items[0].first_child = &items[1];
    troupe_pool_push(pool, NULL, &items[0].task);
    for (int i = 0; i < 10000 && atomic_load_explicit(&done, memory_order_seq_cst) == 0; i++)
        usleep(1000);
    cr_assert_eq(atomic_load_explicit(&done, memory_order_seq_cst), 1);
    troupe_pool_destroy(pool);
}

Test(pool, refuses_a_wrong_number_of_workers)
{
    struct troupe_pool_options options = {.workers = 0};
    struct troupe_pool *pool = NULL;

    cr_assert_eq(troupe_pool_create(&options, &pool), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "a pool has 1 to 256 workers, not 0");
    cr_assert_null(pool);
    troupe_pool_destroy(NULL);
}

Test(pool, drive_ends_at_the_deadline)
{
    struct troupe_pool *pool = pool_of(1);
    _Atomic(int) never = 0;
    uint64_t start = troupe_clock_ns();

    cr_assert_eq(troupe_pool_drive(pool, &never, start + 20 * MS), TROUPE_DEADLINE_EXCEEDED);
    cr_assert_geq(troupe_clock_ns() - start, 20 * MS);
    cr_assert_lt(troupe_clock_ns() - start, 2000 * MS);
    troupe_pool_destroy(pool);
}

static void *set_done(void *pool)
{
    usleep(30000);
    atomic_store_explicit(&done, 1, memory_order_release);
    troupe_pool_wake(pool);
    return NULL;
}

static void *drive(void *pool)
{
    return troupe_pool_drive(pool, &done, troupe_clock_ns() + 10000 * MS) == TROUPE_OK ? NULL
                                                                                       : pool;
}

Test(pool, wake_ends_the_driver_and_whoever_waits_for_its_turn)
{
    struct troupe_pool *pool = pool_of(2);
    pthread_t threads[3];
    void *result;

    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, i == 2 ? set_done : drive, pool), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        cr_assert_null(result);
    }
    troupe_pool_destroy(pool);
}

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

Test(pool, idles_without_cpu)
{
    struct troupe_pool *pool = pool_of(3);
    _Atomic(int) never = 0;
    double before = cpu_seconds();

    cr_assert_eq(troupe_pool_drive(pool, &never, troupe_clock_ns() + 500 * MS),
                 TROUPE_DEADLINE_EXCEEDED);
    cr_assert_lt(cpu_seconds() - before, 0.010, "an idle pool took %g s of 0.5 s",
                 cpu_seconds() - before);
    troupe_pool_destroy(pool);
}

struct polling {
    _Atomic(int64_t) pending;
    _Atomic(int) calls, inside, worst, elsewhere;
};

static int poll_count(void *context)
{
    struct polling *polling = context;
    int inside = atomic_fetch_add_explicit(&polling->inside, 1, memory_order_seq_cst) + 1;

    if (inside > 1)
        atomic_store_explicit(&polling->worst, inside, memory_order_seq_cst);
    if (troupe_worker_index(troupe_worker_current()) != 0)
        atomic_fetch_add_explicit(&polling->elsewhere, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&polling->calls, 1, memory_order_seq_cst);
    atomic_fetch_sub_explicit(&polling->inside, 1, memory_order_seq_cst);
    return 0;
}

Test(pool, polls_at_bounded_intervals_while_events_are_awaited)
{
    for (int only0 = 0; only0 < 2; only0++) {
        struct polling polling = {.pending = 1};
        struct troupe_pool_options options = {.workers = 2,
                                              .poll = poll_count,
                                              .poll_context = &polling,
                                              .poll_on_worker0_only = only0 != 0,
                                              .poll_pending = &polling.pending};
        struct troupe_pool *pool = NULL;
        _Atomic(int) never = 0;
        double before = cpu_seconds();

        cr_assert_eq(troupe_pool_create(&options, &pool), TROUPE_OK);
        cr_assert_eq(troupe_pool_drive(pool, &never, troupe_clock_ns() + 300 * MS),
                     TROUPE_DEADLINE_EXCEEDED);
        /* Naps of at most 1 ms: 300 of them, less what a loaded machine takes away. */
        cr_assert_gt(atomic_load(&polling.calls), 60);
        cr_assert_lt(cpu_seconds() - before, 0.06);
        cr_assert_eq(atomic_load(&polling.worst), 0);
        if (only0)
            cr_assert_eq(atomic_load(&polling.elsewhere), 0);
        troupe_pool_destroy(pool);
    }
}

static enum troupe_status nested_status;

static void nested_run(struct troupe_task *task, struct troupe_worker *worker)
{
    (void)task;
    nested_status = troupe_pool_drive(troupe_worker_pool(worker), &done, 0);
    atomic_store_explicit(&done, 1, memory_order_seq_cst);
    troupe_pool_wake(troupe_worker_pool(worker));
}

Test(pool, refuses_to_drive_from_a_task)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_task task = {.run = nested_run};

    troupe_pool_push(pool, NULL, &task);
    cr_assert_eq(troupe_pool_drive(pool, &done, troupe_clock_ns() + 10000 * MS), TROUPE_OK);
    cr_assert_eq(nested_status, TROUPE_FAILED_PRECONDITION);
    troupe_pool_destroy(pool);
}

struct loop {
    struct troupe_task task;
    struct troupe_pool *pool;
    int64_t total, grain;
    _Atomic(int) visits[MANY];
    _Atomic(int) begins[MANY]; /* 1 where a range began */
};

static struct loop loop;

static void loop_body(void *context, int64_t begin, int64_t end)
{
    struct loop *self = context;

    atomic_fetch_add_explicit(&self->begins[begin], 1, memory_order_seq_cst);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add_explicit(&self->visits[i], 1, memory_order_seq_cst);
}

static void loop_run(struct troupe_task *task, struct troupe_worker *worker)
{
    struct loop *self = (struct loop *)task;

    troupe_pool_parallel_for(self->pool, worker, self->total, self->grain, loop_body, self);
    atomic_store_explicit(&done, 1, memory_order_seq_cst);
    troupe_pool_wake(self->pool);
}

static void loop_check(struct troupe_pool *pool, int64_t total, int64_t grain)
{
    static int ranges_alone[MANY];

    memset(&loop, 0, sizeof loop);
    loop = (struct loop){.task.run = loop_run, .pool = pool, .total = total, .grain = grain};
    troupe_pool_parallel_for(pool, NULL, total, grain, loop_body, &loop);
    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(atomic_load(&loop.visits[i]), i < total, "index %d", i);
        ranges_alone[i] = atomic_load(&loop.begins[i]);
        atomic_store(&loop.begins[i], 0);
        atomic_store(&loop.visits[i], 0);
    }
    atomic_store_explicit(&done, 0, memory_order_seq_cst);
    troupe_pool_push(pool, NULL, &loop.task);
    cr_assert_eq(troupe_pool_drive(pool, &done, troupe_clock_ns() + 10000 * MS), TROUPE_OK);
    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(atomic_load(&loop.visits[i]), i < total, "index %d", i);
        cr_assert_eq(atomic_load(&loop.begins[i]), ranges_alone[i], "range at %d", i);
    }
}

Test(parallel_for, covers_each_index_once_in_the_same_ranges)
{
    for (int workers = 1; workers <= 4; workers++) {
        struct troupe_pool *pool = pool_of(workers);

        loop_check(pool, 0, 1);
        loop_check(pool, 1, 1);
        loop_check(pool, 7, 100);
        loop_check(pool, MANY, 1);
        loop_check(pool, MANY - 1, 64);
        loop_check(pool, 97, 10);
        troupe_pool_destroy(pool);
    }
}

Test(pool, default_workers_share_the_host)
{
    int all = troupe_pool_default_workers(1);

    cr_assert_geq(all, 1);
    cr_assert_leq(all, (int)sysconf(_SC_NPROCESSORS_CONF));
    cr_assert_eq(troupe_pool_default_workers(2), all / 2 > 0 ? all / 2 : 1);
    cr_assert_eq(troupe_pool_default_workers(100000), 1);
}
