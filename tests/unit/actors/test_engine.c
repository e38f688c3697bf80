/* Firing rules, windows, distances, priorities, admission, deferral. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define CHAIN 50

static void run(struct troupe_stage *stage, uint64_t end)
{
    troupe_stage_admit(stage, end);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK, "%s", troupe_status_message());
    cr_assert_eq(troupe_stage_completed(stage), end);
    cr_assert_eq(troupe_stage_admitted(stage), end);
}

Test(engine, chain)
{
    static struct adder adders[CHAIN];
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *stage = stage_of(3);

    for (int i = 0; i < CHAIN; i++) {
        adders[i] = (struct adder){.name = "link", .add = 1, .fail_at = -1};
        add_adder(stage, &adders[i], i > 0, 1);
        if (i > 0)
            join(stage, i - 1, 0, i, 0, 0);
    }
    cast(stage, pool);
    run(stage, 20);
    for (int i = 0; i < CHAIN; i++) {
        cr_assert_eq(atomic_load(&adders[i].calls), 20);
        cr_assert_eq(atomic_load(&adders[i].last), i + 1);
    }
    finish(stage, pool);
}

Test(engine, fan_out_and_in_shares_one_token)
{
    enum { WIDTH = 300 };
    static struct adder adders[WIDTH + 2];
    struct troupe_pool *pool = pool_of(3);
    struct troupe_stage *stage = stage_of(2);

    for (int i = 0; i < WIDTH + 2; i++)
        adders[i] = (struct adder){.name = "fan", .add = i, .fail_at = -1};
    adders[0].add = 5;
    add_adder(stage, &adders[0], 0, 1);
    for (int i = 1; i <= WIDTH; i++)
        add_adder(stage, &adders[i], 1, 1);
    add_adder(stage, &adders[WIDTH + 1], WIDTH, 1);
    for (int i = 1; i <= WIDTH; i++) {
        join(stage, 0, 0, i, 0, 0);
        join(stage, i, 0, WIDTH + 1, i - 1, 0);
    }
    cast(stage, pool);
    run(stage, 7);
    cr_assert_eq(atomic_load(&adders[WIDTH + 1].last),
                 WIDTH * (WIDTH + 1) / 2 + 5 * WIDTH + WIDTH + 1);
    finish(stage, pool);
}

Test(engine, diamond_in_every_window)
{
    for (int window = 1; window <= 8; window++) {
        static struct adder adders[4];
        struct troupe_pool *pool = pool_of(1 + window % 4);
        struct troupe_stage *stage = stage_of(window);

        for (int i = 0; i < 4; i++) {
            adders[i] = (struct adder){.name = "corner", .add = 1 << i, .fail_at = -1};
            add_adder(stage, &adders[i], i == 0 ? 0 : i == 3 ? 2 : 1, 1);
        }
        join(stage, 0, 0, 1, 0, 0);
        join(stage, 0, 0, 2, 0, 0);
        join(stage, 1, 0, 3, 0, 0);
        join(stage, 2, 0, 3, 1, 0);
        cast(stage, pool);
        run(stage, 200);
        for (int i = 0; i < 200; i++)
            cr_assert_eq(adders[3].values[i], 2 * 1 + 2 + 4 + 8);
        finish(stage, pool);
    }
}

Test(engine, accumulator_over_distances_and_windows)
{
    for (int distance = 1; distance <= 4; distance++) {
        for (int window = 1; window <= 8; window++) {
            struct adder one = {.name = "one", .add = 1, .fail_at = -1};
            struct adder sum = {.name = "sum", .fail_at = -1};
            struct troupe_pool *pool = pool_of(2);
            struct troupe_stage *stage = stage_of(window);

            add_adder(stage, &one, 0, 1);
            add_adder(stage, &sum, 2, 1);
            join(stage, 0, 0, 1, 0, 0);
            join(stage, 1, 0, 1, 1, distance);
            cast(stage, pool);
            run(stage, 50);
            for (int i = 0; i < 50; i++)
                cr_assert_eq(sum.values[i], i / distance + 1, "distance %d, window %d: %d",
                             distance, window, i);
            finish(stage, pool);
        }
    }
}

/* An actor whose only inputs come over a distance must still wait for its admission. */
Test(engine, distance_inputs_alone_do_not_run_ahead)
{
    for (int window = 1; window <= 3; window++) {
        struct adder ring = {.name = "ring", .add = 1, .fail_at = -1};
        struct troupe_pool *pool = pool_of(2);
        struct troupe_stage *stage = stage_of(window);

        add_adder(stage, &ring, 1, 1);
        join(stage, 0, 0, 0, 0, 1);
        cast(stage, pool);
        run(stage, 3);
        cr_assert_eq(atomic_load(&ring.calls), 3);
        run(stage, 100);
        cr_assert_eq(atomic_load(&ring.calls), 100);
        cr_assert_eq(atomic_load(&ring.last), 100);
        finish(stage, pool);
    }
}

struct ordered {
    int64_t next;
    int wrong;
};

static enum troupe_status ordered_behave(void *context, struct troupe_firing *firing)
{
    struct ordered *ordered = context;

    /* No atomics: the signal of distance 1 orders the firings. */
    ordered->wrong += (uint64_t)ordered->next++ != troupe_firing_iteration(firing);
    return TROUPE_OK;
}

Test(engine, a_signal_of_distance_1_orders_a_stateful_actor)
{
    struct ordered ordered = {0};
    struct troupe_actor_spec spec = {
        .name = "state", .behave = ordered_behave, .context = &ordered};
    struct troupe_pool *pool = pool_of(4);
    struct troupe_stage *stage = stage_of(8);

    add_actor(stage, &spec);
    join(stage, 0, -1, 0, -1, 1);
    cast(stage, pool);
    run(stage, 5000);
    cr_assert_eq(ordered.wrong, 0);
    cr_assert_eq(ordered.next, 5000);
    finish(stage, pool);
}

static int order[8], order_count;

static enum troupe_status order_behave(void *context, struct troupe_firing *firing)
{
    (void)firing;
    order[order_count++] = *(int *)context;
    return TROUPE_OK;
}

Test(engine, the_higher_priority_goes_first)
{
    static const int64_t priorities[6] = {2, 9, -4, 9, 5, 0};
    static const int expected[6] = {1, 3, 4, 0, 5, 2};
    struct adder first = {.name = "first", .fail_at = -1};

    /* Woken by one actor, and started by the admission. */
    for (int with_first = 0; with_first < 2; with_first++) {
        struct troupe_pool *pool = pool_of(1);
        struct troupe_stage *stage = stage_of(1);
        static int numbers[6];

        order_count = 0;
        for (int i = 0; i < 6; i++) {
            struct troupe_actor_spec spec = {.name = "x",
                                             .behave = order_behave,
                                             .context = &numbers[i],
                                             .priority = priorities[i]};

            numbers[i] = i;
            add_actor(stage, &spec);
        }
        if (with_first) {
            add_adder(stage, &first, 0, 1);
            for (int i = 0; i < 6; i++)
                join(stage, 6, -1, i, -1, 0);
        }
        cast(stage, pool);
        run(stage, 1);
        for (int i = 0; i < 6; i++)
            cr_assert_eq(order[i], expected[i], "place %d: actor %d", i, order[i]);
        finish(stage, pool);
    }
}

struct grower {
    struct troupe_stage *stage;
    uint64_t until;
};

static enum troupe_status grower_behave(void *context, struct troupe_firing *firing)
{
    struct grower *grower = context;
    uint64_t next = troupe_firing_iteration(firing) + 2;

    if (next <= grower->until)
        troupe_stage_admit(grower->stage, next);
    return TROUPE_OK;
}

Test(engine, admission_grows_while_running)
{
    struct grower grower = {.until = 300};
    struct troupe_actor_spec spec = {.name = "grower", .behave = grower_behave, .context = &grower};
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *stage = grower.stage = stage_of(2);

    add_actor(stage, &spec);
    cast(stage, pool);
    troupe_stage_admit(stage, 1);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(troupe_stage_completed(stage), 300);
    finish(stage, pool);
}

Test(engine, a_stage_without_actors_completes)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = stage_of(2);

    cast(stage, pool);
    run(stage, 10);
    finish(stage, pool);
}

/* Deferral: from another thread, and before the behaviour has returned. */
static struct troupe_firing *slot_firing;
static pthread_mutex_t slot_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t slot_changed = PTHREAD_COND_INITIALIZER;
static int64_t slot_total;

static enum troupe_status defer_behave(void *context, struct troupe_firing *firing)
{
    struct troupe_firing *deferred = troupe_firing_defer(firing);

    if (context != NULL) {
        struct troupe_payload *output = number_create(40);

        troupe_firing_complete(deferred, TROUPE_OK, NULL, &output);
        return TROUPE_OK;
    }
    pthread_mutex_lock(&slot_lock);
    slot_firing = deferred;
    pthread_cond_signal(&slot_changed);
    pthread_mutex_unlock(&slot_lock);
    return TROUPE_OK;
}

static void *completer(void *unused)
{
    (void)unused;
    for (int i = 0; i < 500; i++) {
        struct troupe_payload *output = number_create(i);
        struct troupe_firing *firing;

        pthread_mutex_lock(&slot_lock);
        while (slot_firing == NULL)
            pthread_cond_wait(&slot_changed, &slot_lock);
        firing = slot_firing;
        slot_firing = NULL;
        slot_total += i;
        pthread_mutex_unlock(&slot_lock);
        if (i % 50 == 0)
            usleep(2000); /* lets the workers park */
        troupe_firing_complete(firing, TROUPE_OK, NULL, &output);
    }
    return NULL;
}

Test(engine, deferred_firings_complete_from_another_thread)
{
    struct adder sum = {.name = "sum", .fail_at = -1};
    struct troupe_actor_spec spec = {.name = "later", .output_count = 1, .behave = defer_behave};
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *stage = stage_of(1);
    pthread_t thread;

    add_actor(stage, &spec);
    add_adder(stage, &sum, 2, 1);
    join(stage, 0, 0, 1, 0, 0);
    join(stage, 1, 0, 1, 1, 1);
    cast(stage, pool);
    cr_assert_eq(pthread_create(&thread, NULL, completer, NULL), 0);
    run(stage, 500);
    pthread_join(thread, NULL);
    cr_assert_eq(atomic_load(&sum.last), slot_total);
    finish(stage, pool);
}

Test(engine, a_deferred_firing_may_complete_inside_its_behaviour)
{
    struct adder sum = {.name = "sum", .fail_at = -1};
    int inside = 1;
    struct troupe_actor_spec spec = {
        .name = "at once", .output_count = 1, .behave = defer_behave, .context = &inside};
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *stage = stage_of(2);

    add_actor(stage, &spec);
    add_adder(stage, &sum, 1, 1);
    join(stage, 0, 0, 1, 0, 0);
    cast(stage, pool);
    run(stage, 100);
    cr_assert_eq(atomic_load(&sum.calls), 100);
    cr_assert_eq(atomic_load(&sum.last), 40);
    finish(stage, pool);
}

/* From inside the poll function, as a transport does. */
struct polled {
    _Atomic(int64_t) pending;
    struct troupe_firing *_Atomic firing;
};

static enum troupe_status polled_behave(void *context, struct troupe_firing *firing)
{
    struct polled *polled = context;

    atomic_store(&polled->firing, troupe_firing_defer(firing));
    atomic_fetch_add(&polled->pending, 1);
    return TROUPE_OK;
}

static int poll_complete(void *context)
{
    struct polled *polled = context;
    struct troupe_firing *firing = atomic_exchange(&polled->firing, NULL);
    struct troupe_payload *output;

    if (firing == NULL)
        return 0;
    output = number_create(3);
    atomic_fetch_sub(&polled->pending, 1);
    troupe_firing_complete(firing, TROUPE_OK, NULL, &output);
    return 1;
}

Test(engine, deferred_firings_complete_from_the_poll_function)
{
    for (int mode = 0; mode < 4; mode++) {
        struct polled polled = {0};
        struct adder sum = {.name = "sum", .fail_at = -1};
        struct troupe_actor_spec spec = {
            .name = "recv", .output_count = 1, .behave = polled_behave, .context = &polled};
        struct troupe_pool_options options = {.workers = 1 + mode % 2,
                                              .poll = poll_complete,
                                              .poll_context = &polled,
                                              .poll_on_worker0_only = mode / 2 != 0,
                                              .poll_pending = &polled.pending};
        struct troupe_pool *pool = NULL;
        struct troupe_stage *stage = stage_of(1);

        cr_assert_eq(troupe_pool_create(&options, &pool), TROUPE_OK);
        add_actor(stage, &spec);
        add_adder(stage, &sum, 1, 1);
        join(stage, 0, 0, 1, 0, 0);
        cast(stage, pool);
        run(stage, 300);
        cr_assert_eq(atomic_load(&sum.calls), 300);
        finish(stage, pool);
    }
}

Test(engine, wait_ends_at_the_deadline_and_can_be_resumed)
{
    struct troupe_actor_spec spec = {.name = "later", .output_count = 1, .behave = defer_behave};
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = stage_of(1);
    struct troupe_payload *output = NULL;
    uint64_t now = soon() - UINT64_C(20000000000);

    add_actor(stage, &spec);
    cast(stage, pool);
    troupe_stage_admit(stage, 1);
    cr_assert_eq(troupe_stage_wait(stage, now + 20000000), TROUPE_DEADLINE_EXCEEDED);
    cr_assert_str_eq(troupe_status_message(),
                     "the deadline passed with 0 of 1 admitted iterations complete");
    troupe_firing_complete(slot_firing, TROUPE_OK, NULL, &output);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    finish(stage, pool);
}
