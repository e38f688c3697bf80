/* The work-stealing deque: order, growth, and that every task is taken exactly once. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "scheduler/deque.h"
#include "scheduler/scheduler.h"

#define MANY 20000

static struct troupe_task tasks[MANY];
static _Atomic(int) taken[MANY];
static _Atomic(int) over;

static void push(struct troupe_deque *deque, struct troupe_task *task)
{
    cr_assert(troupe_deque_push(deque, &task, 1));
}

Test(deque, takes_newest_and_steals_oldest)
{
    struct troupe_task *some[TROUPE_DEQUE_BATCH];
    struct troupe_deque deque;

    cr_assert_eq(troupe_deque_init(&deque, true), TROUPE_OK);
    cr_assert(troupe_deque_is_empty(&deque));
    for (int i = 0; i < 3; i++)
        push(&deque, &tasks[i]);
    cr_assert_eq(troupe_deque_steal(&deque, some), 2);
    cr_assert_eq(some[0], &tasks[0]);
    cr_assert_eq(some[1], &tasks[1]);
    cr_assert_eq(troupe_deque_take(&deque, some), 1);
    cr_assert_eq(some[0], &tasks[2]);
    cr_assert_eq(troupe_deque_take(&deque, some), 0);
    cr_assert_eq(troupe_deque_steal(&deque, some), 0);
    troupe_deque_fini(&deque);
}

Test(deque, grows_and_keeps_the_order)
{
    for (int shared = 0; shared < 2; shared++) {
        struct troupe_task *some[TROUPE_DEQUE_BATCH];
        struct troupe_deque deque;

        cr_assert_eq(troupe_deque_init(&deque, shared != 0), TROUPE_OK);
        for (int i = 0; i < MANY; i++)
            push(&deque, &tasks[i]);
        for (int left = MANY; left > 0;) {
            int count = troupe_deque_take(&deque, some);

            cr_assert_eq(count, left >= TROUPE_DEQUE_LONG ? TROUPE_DEQUE_BATCH : 1);
            left -= count;
            for (int i = 0; i < count; i++)
                cr_assert_eq(some[i], &tasks[left + i]);
        }
        cr_assert_eq(troupe_deque_take(&deque, some), 0);
        troupe_deque_fini(&deque);
    }
}

static void count(struct troupe_task *const *some, int number)
{
    for (int i = 0; i < number; i++)
        atomic_fetch_add_explicit(&taken[some[i] - tasks], 1, memory_order_seq_cst);
}

static void *thief(void *deque)
{
    struct troupe_task *some[TROUPE_DEQUE_BATCH];

    while (atomic_load_explicit(&over, memory_order_seq_cst) == 0)
        count(some, troupe_deque_steal(deque, some));
    return NULL;
}

Test(deque, hands_out_each_task_once)
{
    struct troupe_task *some[TROUPE_DEQUE_BATCH];
    struct troupe_deque deque;
    pthread_t threads[2];

    cr_assert_eq(troupe_deque_init(&deque, true), TROUPE_OK);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, thief, &deque), 0);
    for (int i = 0; i < MANY; i++) {
        push(&deque, &tasks[i]);
        /* Short for a while, then long enough for batches. */
        if (i % 3 == 0 || i < MANY / 2)
            count(some, troupe_deque_take(&deque, some));
    }
    while (!troupe_deque_is_empty(&deque))
        count(some, troupe_deque_take(&deque, some));
    atomic_store_explicit(&over, 1, memory_order_seq_cst);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(atomic_load_explicit(&taken[i], memory_order_seq_cst), 1, "task %d", i);
    troupe_deque_fini(&deque);
}
