/* What a description is refused for, and the sizes after the cast. */
#include <criterion/criterion.h>

#include "support.h"

static struct adder adder = {.name = "adder", .fail_at = -1};

static int named(struct troupe_stage *stage, const char *name, int inputs)
{
    struct troupe_actor_spec spec = {.name = name,
                                     .input_count = inputs,
                                     .output_count = 1,
                                     .behave = adder_behave,
                                     .context = &adder};

    return add_actor(stage, &spec);
}

static void expect_fail(enum troupe_status got, enum troupe_status wanted, const char *message)
{
    cr_assert_eq(got, wanted);
    cr_assert_str_eq(troupe_status_message(), message);
}

Test(cast, names_an_input_without_an_edge)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = stage_of(1);

    named(stage, "a", 0);
    named(stage, "b", 2);
    join(stage, 0, 0, 1, 0, 0);
    expect_fail(troupe_stage_cast(stage, pool), TROUPE_INVALID_ARGUMENT,
                "actor \"b\": input 1 has no edge; each input needs one");
    /* The stage is as before: complete it. */
    join(stage, 0, 0, 1, 1, 0);
    cast(stage, pool);
    finish(stage, pool);
}

Test(cast, names_the_actors_of_a_cycle)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = stage_of(1);

    named(stage, "tail", 1);
    named(stage, "a", 1);
    named(stage, "b", 1);
    named(stage, "c", 1);
    join(stage, 3, 0, 0, 0, 0);
    join(stage, 1, 0, 2, 0, 0);
    join(stage, 2, 0, 3, 0, 0);
    join(stage, 3, 0, 1, 0, 0);
    cr_assert_eq(troupe_stage_cast(stage, pool), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(),
                     "a cycle of distance 0: \"c\" <- \"b\" <- \"a\" <- \"c\"; one of its edges "
                     "needs a distance of 1 or more");
    finish(stage, pool);
}

Test(cast, names_an_actor_that_waits_for_itself)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = stage_of(1);

    named(stage, "me", 0);
    join(stage, 0, -1, 0, -1, 0);
    expect_fail(troupe_stage_cast(stage, pool), TROUPE_INVALID_ARGUMENT,
                "a cycle of distance 0: \"me\" <- \"me\"; one of its edges needs a distance of 1 "
                "or more");
    finish(stage, pool);
}

Test(connect, refuses_wrong_edges)
{
    struct troupe_stage *stage = stage_of(1);

    named(stage, "a", 1);
    expect_fail(troupe_stage_connect(stage, 0, 0, 1, 0, 0), TROUPE_INVALID_ARGUMENT,
                "an edge from actor 0 to actor 1: there are 1 actors");
    expect_fail(troupe_stage_connect(stage, 0, 1, 0, 0, 1), TROUPE_INVALID_ARGUMENT,
                "actor \"a\" has 1 outputs: no output 1");
    expect_fail(troupe_stage_connect(stage, 0, 0, 0, 1, 1), TROUPE_INVALID_ARGUMENT,
                "actor \"a\" has 1 inputs: no input 1");
    expect_fail(troupe_stage_connect(stage, 0, 0, 0, 0, -1), TROUPE_INVALID_ARGUMENT,
                "the edge from \"a\" to \"a\": a distance of 0 to 1048576, not -1");
    join(stage, 0, 0, 0, 0, 1);
    expect_fail(troupe_stage_connect(stage, 0, 0, 0, 0, 1), TROUPE_ALREADY_EXISTS,
                "input 0 of actor \"a\" has an edge already: each takes one");
    troupe_stage_destroy(stage);
}

Test(stage, refuses_a_window_of_0_and_a_late_actor)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = NULL;
    struct troupe_actor_spec spec = {.name = "late", .behave = adder_behave};
    int number = 77;

    expect_fail(troupe_stage_create(0, &stage), TROUPE_INVALID_ARGUMENT,
                "a window holds 1 to 1048576 iterations, not 0");
    cr_assert_null(stage);
    stage = stage_of(1);
    cr_assert_eq(troupe_stage_wait(stage, 0), TROUPE_FAILED_PRECONDITION);
    cast(stage, pool);
    cr_assert_eq(troupe_stage_add(stage, &spec, &number), TROUPE_FAILED_PRECONDITION);
    cr_assert_eq(number, 77);
    cr_assert_eq(troupe_stage_cast(stage, pool), TROUPE_FAILED_PRECONDITION);
    finish(stage, pool);
    troupe_stage_destroy(NULL);
}

Test(stage, tells_its_size)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *narrow = stage_of(1), *wide = stage_of(4);
    struct troupe_stage_size small, large;

    named(narrow, "a", 0);
    named(narrow, "b", 1);
    join(narrow, 0, 0, 1, 0, 0);
    named(wide, "a", 0);
    named(wide, "b", 1);
    join(wide, 0, 0, 1, 0, 0);
    cast(narrow, pool);
    cast(wide, pool);
    troupe_stage_size_get(narrow, &small);
    troupe_stage_size_get(wide, &large);
    cr_assert_eq(small.actors, 2);
    cr_assert_eq(small.edges, 1);
    cr_assert_gt(large.bytes, small.bytes);
    troupe_stage_destroy(narrow);
    finish(wide, pool);
}
