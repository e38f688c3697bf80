/* Troupe's engine inside a program of your own, with no tensor in sight.
 *
 * A pipeline of three actors, fired 100 times with up to 4 iterations in flight:
 *
 *     source --number--> square --number--> sum --,
 *                                            ^____|  its own result of the iteration before
 *
 * The edge from `sum` to itself has a distance of 1: what it sends in iteration i arrives in
 * iteration i + 1, which makes it an accumulator without any shared variable. */
#include <stdio.h>
#include <stdlib.h>

#include "troupe/actor.h"

#define ITERATIONS 100

/* A token of ours: the payload comes first. */
struct number {
    struct troupe_payload payload;
    long value;
};

static void number_destroy(struct troupe_payload *payload)
{
    free(payload);
}

static enum troupe_status number_send(struct troupe_payload **output, long value)
{
    struct number *number = malloc(sizeof *number);

    if (number == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a number");
    troupe_payload_init(&number->payload, number_destroy);
    number->value = value;
    *output = &number->payload;
    return TROUPE_OK;
}

/* The first iteration finds no token of the iteration before: NULL. */
static long number_value(const struct troupe_payload *payload)
{
    return payload != NULL ? ((const struct number *)payload)->value : 0;
}

static enum troupe_status source(void *context, struct troupe_firing *firing)
{
    (void)context;
    return number_send(troupe_firing_outputs(firing), (long)troupe_firing_iteration(firing) + 1);
}

static enum troupe_status square(void *context, struct troupe_firing *firing)
{
    long value = number_value(troupe_firing_inputs(firing)[0]);

    (void)context;
    return number_send(troupe_firing_outputs(firing), value * value);
}

static enum troupe_status sum(void *context, struct troupe_firing *firing)
{
    struct troupe_payload *const *inputs = troupe_firing_inputs(firing);
    long *total = context;

    *total = number_value(inputs[0]) + number_value(inputs[1]);
    return number_send(troupe_firing_outputs(firing), *total);
}

static enum troupe_status pipeline_describe(struct troupe_stage *stage, long *total)
{
    const struct troupe_actor_spec specs[] = {
        {.name = "source", .output_count = 1, .behave = source},
        {.name = "square", .input_count = 1, .output_count = 1, .behave = square},
        {.name = "sum", .input_count = 2, .output_count = 1, .behave = sum, .context = total},
    };
    int actors[3] = {0};
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; i < 3 && status == TROUPE_OK; i++)
        status = troupe_stage_add(stage, &specs[i], &actors[i]);
    if (status == TROUPE_OK)
        status = troupe_stage_connect(stage, actors[0], 0, actors[1], 0, 0);
    if (status == TROUPE_OK)
        status = troupe_stage_connect(stage, actors[1], 0, actors[2], 0, 0);
    if (status == TROUPE_OK)
        status = troupe_stage_connect(stage, actors[2], 0, actors[2], 1, 1);
    return status;
}

static enum troupe_status pipeline_run(struct troupe_pool *pool, long *total)
{
    struct troupe_stage *stage = NULL;
    enum troupe_status status = troupe_stage_create(4, &stage);

    if (status != TROUPE_OK)
        return status;
    status = pipeline_describe(stage, total);
    if (status == TROUPE_OK)
        status = troupe_stage_cast(stage, pool);
    if (status == TROUPE_OK) {
        troupe_stage_admit(stage, ITERATIONS);
        status = troupe_stage_wait(stage, 0);
    }
    troupe_stage_destroy(stage);
    return status;
}

int main(void)
{
    const long expected = (long)ITERATIONS * (ITERATIONS + 1) * (2 * ITERATIONS + 1) / 6;
    struct troupe_pool *pool = NULL;
    long total = 0;
    enum troupe_status status = troupe_pool_start(0, &pool);

    if (status == TROUPE_OK)
        status = pipeline_run(pool, &total);
    troupe_pool_stop(pool);
    if (status != TROUPE_OK) {
        fprintf(stderr, "embed_actors: %s\n", troupe_status_message());
        return 1;
    }
    printf("sum of the first %d squares: %ld (expected %ld)\n", ITERATIONS, total, expected);
    return total == expected ? 0 : 1;
}
