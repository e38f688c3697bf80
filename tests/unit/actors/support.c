/* Shared by the tests of the actors. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/clock.h"

struct number {
    struct troupe_payload payload;
    int64_t value;
};

_Atomic(int) support_live;

uint64_t soon(void)
{
    return troupe_clock_ns() + UINT64_C(20000000000);
}

static void number_destroy(struct troupe_payload *payload)
{
    atomic_fetch_sub_explicit(&support_live, 1, memory_order_seq_cst);
    free(payload);
}

struct troupe_payload *number_create(int64_t value)
{
    struct number *number = malloc(sizeof *number);

    cr_assert_not_null(number);
    troupe_payload_init(&number->payload, number_destroy);
    number->value = value;
    atomic_fetch_add_explicit(&support_live, 1, memory_order_seq_cst);
    return &number->payload;
}

int64_t number_value(const struct troupe_payload *payload)
{
    cr_assert_neq(payload, &troupe_payload_dead);
    return payload != NULL ? ((const struct number *)payload)->value : 0;
}

enum troupe_status adder_behave(void *context, struct troupe_firing *firing)
{
    struct adder *adder = context;
    uint64_t iteration = troupe_firing_iteration(firing);
    int64_t sum = adder->add;

    atomic_fetch_add_explicit(&adder->calls, 1, memory_order_seq_cst);
    if (adder->fail_at >= 0 && iteration == (uint64_t)adder->fail_at)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION, "%s failed in iteration %d",
                                  adder->name, (int)iteration);
    for (int i = 0; i < adder->inputs; i++)
        sum += number_value(troupe_firing_inputs(firing)[i]);
    adder->values[iteration % 256] = sum;
    atomic_store_explicit(&adder->last, sum, memory_order_seq_cst);
    troupe_firing_outputs(firing)[0] = number_create(sum);
    return TROUPE_OK;
}

struct troupe_pool *pool_of(int workers)
{
    struct troupe_pool *pool = NULL;

    cr_assert_eq(troupe_pool_start(workers, &pool), TROUPE_OK);
    return pool;
}

struct troupe_stage *stage_of(int window)
{
    struct troupe_stage *stage = NULL;

    cr_assert_eq(troupe_stage_create(window, &stage), TROUPE_OK);
    return stage;
}

int add_actor(struct troupe_stage *stage, const struct troupe_actor_spec *spec)
{
    int number = -1;

    cr_assert_eq(troupe_stage_add(stage, spec, &number), TROUPE_OK);
    return number;
}

int add_adder(struct troupe_stage *stage, struct adder *adder, int inputs, int outputs)
{
    struct troupe_actor_spec spec = {.name = adder->name,
                                     .input_count = inputs,
                                     .output_count = outputs,
                                     .behave = adder_behave,
                                     .context = adder};

    cr_assert_geq(outputs, 1);
    adder->inputs = inputs;
    return add_actor(stage, &spec);
}

void join(struct troupe_stage *stage, int from, int from_port, int to, int to_port, int distance)
{
    cr_assert_eq(troupe_stage_connect(stage, from, from_port, to, to_port, distance), TROUPE_OK,
                 "%s", troupe_status_message());
}

void cast(struct troupe_stage *stage, struct troupe_pool *pool)
{
    cr_assert_eq(troupe_stage_cast(stage, pool), TROUPE_OK, "%s", troupe_status_message());
}

void finish(struct troupe_stage *stage, struct troupe_pool *pool)
{
    troupe_stage_destroy(stage);
    troupe_pool_stop(pool);
    cr_assert_eq(atomic_load_explicit(&support_live, memory_order_seq_cst), 0);
}
