/* What a cast stage takes of memory: at most 256 bytes an actor, and 64 for each edge and iteration
 * in flight. */
#include <criterion/criterion.h>

#include "support.h"

#define ACTORS 1000
#define LAYER  50
#define INPUTS 3

static struct adder adder = {.name = "adder", .fail_at = -1};

static void add(struct troupe_stage *stage, int inputs)
{
    add_adder(stage, &adder, inputs, 1);
}

static void describe_chain(struct troupe_stage *stage)
{
    for (int i = 0; i < ACTORS; i++) {
        add(stage, i > 0);
        if (i > 0)
            join(stage, i - 1, 0, i, 0, 0);
    }
}

static void describe_fan(struct troupe_stage *stage)
{
    add(stage, 0);
    for (int i = 1; i <= ACTORS; i++)
        add(stage, 1);
    add(stage, ACTORS);
    for (int i = 1; i <= ACTORS; i++) {
        join(stage, 0, 0, i, 0, 0);
        join(stage, i, 0, ACTORS + 1, i - 1, 0);
    }
}

static void describe_layers(struct troupe_stage *stage)
{
    for (int i = 0; i < ACTORS; i++)
        add(stage, i < LAYER ? 0 : INPUTS);
    for (int i = LAYER; i < ACTORS; i++)
        for (int input = 0; input < INPUTS; input++)
            join(stage, i - i % LAYER - LAYER + (i * 7 + input * 13) % LAYER, 0, i, input, 0);
}

static void expect_small(const char *name, void (*describe)(struct troupe_stage *), int window)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = stage_of(window);
    struct troupe_stage_size size;
    size_t most;

    describe(stage);
    cast(stage, pool);
    troupe_stage_size_get(stage, &size);
    cr_assert_geq(size.actors, ACTORS);
    cr_assert_geq(size.edges, ACTORS - 1);
    most = 256 * (size_t)size.actors + 64 * (size_t)window * (size_t)size.edges;
    cr_assert_leq(size.bytes, most, "%s, window %d: %zu bytes, at most %zu", name, window,
                  size.bytes, most);
    /* All of it is counted: every actor has a cell for each iteration in flight. */
    cr_assert_geq(size.bytes, 64 * (size_t)window * (size_t)size.actors);
    finish(stage, pool);
}

static void expect_small_in_windows(const char *name, void (*describe)(struct troupe_stage *))
{
    expect_small(name, describe, 1);
    expect_small(name, describe, 4);
}

Test(size, chain)
{
    expect_small_in_windows("chain", describe_chain);
}

Test(size, fan)
{
    expect_small_in_windows("fan", describe_fan);
}

Test(size, layers)
{
    expect_small_in_windows("layers", describe_layers);
}
