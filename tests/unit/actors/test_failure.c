/* Dead tokens, failure and its drain, poison, hold, hooks, stalls. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* Sends a number on output iteration % 2, a dead token on the other. */
static enum troupe_status switch_behave(void *context, struct troupe_firing *firing)
{
    int branch = (int)(troupe_firing_iteration(firing) % 2);

    (void)context;
    troupe_firing_outputs(firing)[branch] = number_create(1);
    troupe_firing_outputs(firing)[1 - branch] = &troupe_payload_dead;
    return TROUPE_OK;
}

/* Takes the living input; logs whether it was told of a dead one. */
static enum troupe_status merge_behave(void *context, struct troupe_firing *firing)
{
    struct adder *merge = context;
    struct troupe_payload *const *inputs = troupe_firing_inputs(firing);
    int living = inputs[0] == &troupe_payload_dead ? 1 : 0;

    cr_assert(troupe_firing_is_dead(firing));
    atomic_fetch_add(&merge->calls, 1);
    merge->values[troupe_firing_iteration(firing) % 256] = number_value(inputs[living]);
    troupe_payload_ref(inputs[living], 1);
    troupe_firing_outputs(firing)[0] = inputs[living];
    return TROUPE_OK;
}

Test(dead, switch_and_merge)
{
    struct adder branches[2] = {{.name = "even", .add = 10, .fail_at = -1},
                                {.name = "odd", .add = 20, .fail_at = -1}};
    struct adder merge = {.name = "merge", .fail_at = -1};
    struct adder after = {.name = "after", .fail_at = -1};
    struct troupe_actor_spec specs[2] = {
        {.name = "switch", .output_count = 2, .behave = switch_behave},
        {.name = "merge",
         .input_count = 2,
         .output_count = 1,
         .behave = merge_behave,
         .context = &merge,
         .takes_dead = true}};
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *stage = stage_of(4);

    add_actor(stage, &specs[0]);
    add_adder(stage, &branches[0], 1, 1);
    add_adder(stage, &branches[1], 1, 1);
    add_actor(stage, &specs[1]);
    add_adder(stage, &after, 0, 1);
    join(stage, 0, 0, 1, 0, 0);
    join(stage, 0, 1, 2, 0, 0);
    join(stage, 1, 0, 3, 0, 0);
    join(stage, 2, 0, 3, 1, 0);
    /* A signal of a merge is alive when its output is. */
    join(stage, 3, -1, 4, -1, 0);
    cast(stage, pool);
    troupe_stage_admit(stage, 100);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(atomic_load(&branches[0].calls), 50);
    cr_assert_eq(atomic_load(&branches[1].calls), 50);
    cr_assert_eq(atomic_load(&after.calls), 100);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(merge.values[i], i % 2 == 0 ? 11 : 21);
    finish(stage, pool);
}

Test(dead, near_signals_carry_it_and_far_ones_do_not)
{
    struct adder living = {.name = "living", .fail_at = -1};
    struct adder near = {.name = "near", .fail_at = -1};
    struct adder far = {.name = "far", .fail_at = -1};
    struct adder token = {.name = "token", .fail_at = -1};
    struct troupe_actor_spec spec = {.name = "switch", .output_count = 2, .behave = switch_behave};
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *stage = stage_of(2);

    add_actor(stage, &spec);
    add_adder(stage, &living, 1, 1);
    add_adder(stage, &near, 0, 1);
    add_adder(stage, &far, 0, 1);
    add_adder(stage, &token, 1, 1);
    join(stage, 0, 0, 1, 0, 0);
    join(stage, 1, -1, 2, -1, 0);
    join(stage, 1, -1, 3, -1, 1);
    join(stage, 1, 0, 4, 0, 1);
    cast(stage, pool);
    troupe_stage_admit(stage, 10);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(atomic_load(&living.calls), 5);
    cr_assert_eq(atomic_load(&near.calls), 5);
    cr_assert_eq(atomic_load(&far.calls), 10);
    /* The first has no producer, then those of iterations 0, 2, 4, 6, 8 live. */
    cr_assert_eq(atomic_load(&token.calls), 6);
    finish(stage, pool);
}

struct hooked {
    int failures;
    void *actor; /* its context */
    uint64_t iteration, completed;
    int out_of_order;
    enum troupe_status status;
    char message[128];
};

static void on_failed(void *context, uint64_t iteration, void *actor_context,
                      enum troupe_status status, const char *message)
{
    struct hooked *hooked = context;

    hooked->failures++;
    hooked->iteration = iteration;
    hooked->actor = actor_context;
    hooked->status = status;
    strncpy(hooked->message, message, sizeof hooked->message - 1);
}

static void on_completed(void *context, uint64_t iteration)
{
    struct hooked *hooked = context;

    hooked->out_of_order += hooked->completed++ != iteration;
}

Test(failure, drains_as_dead_and_leaves_the_stage_usable)
{
    for (int workers = 1; workers <= 3; workers++) {
        struct hooked hooked = {0};
        struct troupe_stage_hooks hooks = {
            .failed = on_failed, .completed = on_completed, .context = &hooked};
        struct adder source = {.name = "source", .add = 1, .fail_at = -1};
        struct adder middle = {.name = "middle", .fail_at = 3};
        struct adder sink = {.name = "sink", .fail_at = -1};
        struct troupe_pool *pool = pool_of(workers);
        struct troupe_stage *stage = stage_of(4);

        add_adder(stage, &source, 0, 1);
        add_adder(stage, &middle, 1, 1);
        add_adder(stage, &sink, 2, 1);
        join(stage, 0, 0, 1, 0, 0);
        join(stage, 1, 0, 2, 0, 0);
        join(stage, 0, 0, 2, 1, 0);
        troupe_stage_set_hooks(stage, &hooks);
        cast(stage, pool);
        troupe_stage_admit(stage, 10);
        cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_FAILED_PRECONDITION);
        cr_assert_str_eq(troupe_status_message(), "middle failed in iteration 3");
        cr_assert_eq(atomic_load(&sink.calls), 9);
        cr_assert_eq(hooked.failures, 1);
        cr_assert_eq(hooked.actor, &middle);
        cr_assert_eq(hooked.iteration, 3);
        cr_assert_eq(hooked.status, TROUPE_FAILED_PRECONDITION);
        cr_assert_str_eq(hooked.message, "middle failed in iteration 3");
        troupe_stage_admit(stage, 20);
        cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
        cr_assert_eq(atomic_load(&sink.calls), 19);
        cr_assert_eq(hooked.completed, 20);
        cr_assert_eq(hooked.out_of_order, 0);
        finish(stage, pool);
    }
}

/* Fails in iterations 2 and later, the latest first: wait reports the earliest. */
static struct troupe_firing *held[4];

static enum troupe_status hold_behave(void *context, struct troupe_firing *firing)
{
    (void)context;
    held[troupe_firing_iteration(firing)] = troupe_firing_defer(firing);
    return TROUPE_OK;
}

Test(failure, the_earliest_iteration_wins)
{
    struct troupe_actor_spec spec = {.name = "held", .behave = hold_behave};
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = stage_of(4);
    uint64_t past = 1;

    add_actor(stage, &spec);
    cast(stage, pool);
    troupe_stage_admit(stage, 4);
    /* One worker with a short deadline defers all four. */
    for (int i = 0; i < 100 && (!held[0] || !held[1] || !held[2] || !held[3]); i++)
        cr_assert_eq(troupe_stage_wait(stage, soon() - UINT64_C(20000000000) + 5000000 * past),
                     TROUPE_DEADLINE_EXCEEDED);
    troupe_firing_complete(held[3], TROUPE_ABORTED, "third", NULL);
    troupe_firing_complete(held[1], TROUPE_DATA_LOSS, "first", NULL);
    troupe_firing_complete(held[2], TROUPE_UNKNOWN, "second", NULL);
    troupe_firing_complete(held[0], TROUPE_OK, NULL, NULL);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_DATA_LOSS);
    cr_assert_str_eq(troupe_status_message(), "first");
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    finish(stage, pool);
}

Test(poison, drains_from_an_iteration_on)
{
    struct adder source = {.name = "source", .add = 1, .fail_at = -1};
    struct adder sink = {.name = "sink", .fail_at = -1};
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *stage = stage_of(3);

    add_adder(stage, &source, 0, 1);
    add_adder(stage, &sink, 1, 1);
    join(stage, 0, 0, 1, 0, 0);
    cast(stage, pool);
    troupe_stage_poison(stage, 6);
    troupe_stage_admit(stage, 20);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(atomic_load(&source.calls), 6);
    cr_assert_eq(atomic_load(&sink.calls), 6);
    troupe_stage_poison(stage, UINT64_MAX);
    troupe_stage_admit(stage, 30);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(atomic_load(&sink.calls), 16);
    finish(stage, pool);
}

struct holder {
    struct troupe_stage *stage;
    uint64_t end;
};

static void hold_after_5(void *context, uint64_t iteration)
{
    struct holder *holder = context;

    if (iteration == 5)
        holder->end = troupe_stage_hold(holder->stage);
}

Test(hold, stops_admission_and_admit_raises_it_again)
{
    struct adder source = {.name = "source", .add = 1, .fail_at = -1};
    struct holder holder = {0};
    struct troupe_stage_hooks hooks = {.completed = hold_after_5, .context = &holder};
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *stage = holder.stage = stage_of(3);

    add_adder(stage, &source, 0, 1);
    troupe_stage_set_hooks(stage, &hooks);
    cast(stage, pool);
    troupe_stage_admit(stage, 1000);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(troupe_stage_completed(stage), holder.end);
    cr_assert_geq(holder.end, 6);
    cr_assert_leq(holder.end, 8);
    troupe_stage_admit(stage, 40);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(atomic_load(&source.calls), 40);
    finish(stage, pool);
}

Test(stall, names_who_waits_for_whom)
{
    struct adder ready = {.name = "ready", .add = 1, .fail_at = -1};
    struct adder waiting = {.name = "waiting", .fail_at = -1};
    struct troupe_actor_spec spec = {.name = "recv", .output_count = 1, .behave = hold_behave};
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *stage = stage_of(1);
    struct troupe_payload *output = NULL;
    char *text;

    add_adder(stage, &ready, 0, 1);
    add_actor(stage, &spec);
    add_adder(stage, &waiting, 2, 1);
    join(stage, 0, 0, 2, 0, 0);
    join(stage, 1, 0, 2, 1, 0);
    cast(stage, pool);
    troupe_stage_admit(stage, 1);
    cr_assert_eq(troupe_stage_wait(stage, soon() - UINT64_C(20000000000) + 20000000),
                 TROUPE_DEADLINE_EXCEEDED);
    text = troupe_stage_describe_stall(stage, 10);
    cr_assert_str_eq(text,
                     "actor \"recv\" has all its inputs in iteration 0 and has not completed\n"
                     "actor \"waiting\" waits in iteration 0 for \"recv\" (input 1)\n");
    free(text);
    text = troupe_stage_describe_stall(stage, 1);
    cr_assert_str_eq(text,
                     "actor \"recv\" has all its inputs in iteration 0 and has not completed\n");
    free(text);
    troupe_firing_complete(held[0], TROUPE_OK, NULL, &output);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    text = troupe_stage_describe_stall(stage, 10);
    cr_assert_str_eq(text, "");
    free(text);
    finish(stage, pool);
}
