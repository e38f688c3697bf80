/* Frames: loops, nested loops, functions that call themselves; failure and death inside them. */
#include <criterion/criterion.h>

#include "support.h"

/* Behaviours over numbers, by operation. */
enum operation { ADD, LESS, MULTIPLY, SWITCH, MERGE, CONTINUE, FAIL };

struct op {
    enum operation operation;
    int64_t constant;
};

static enum troupe_status switch_behave(struct troupe_firing *firing)
{
    struct troupe_payload **outputs = troupe_firing_outputs(firing);
    int taken = number_value(troupe_firing_inputs(firing)[1]) != 0;

    outputs[taken] = troupe_firing_take_input(firing, 0);
    outputs[!taken] = &troupe_payload_dead;
    return TROUPE_OK;
}

static enum troupe_status merge_behave(struct troupe_firing *firing)
{
    struct troupe_payload *const *inputs = troupe_firing_inputs(firing);
    int live = inputs[0] == &troupe_payload_dead;

    troupe_firing_outputs(firing)[0] = troupe_firing_take_input(firing, live);
    return TROUPE_OK;
}

static enum troupe_status op_behave(void *context, struct troupe_firing *firing)
{
    const struct op *op = context;
    struct troupe_payload *const *inputs = troupe_firing_inputs(firing);
    int64_t value = inputs[0] == &troupe_payload_dead ? 0 : number_value(inputs[0]);

    switch (op->operation) {
    case SWITCH:
        return switch_behave(firing);
    case MERGE:
        return merge_behave(firing);
    case CONTINUE:
        if (value != 0)
            troupe_firing_continue(firing);
        troupe_firing_outputs(firing)[0] = troupe_firing_take_input(firing, 0);
        return TROUPE_OK;
    case FAIL:
        if (value == op->constant)
            return troupe_status_fail(TROUPE_FAILED_PRECONDITION, "met %d", (int)value);
        troupe_firing_outputs(firing)[0] = troupe_firing_take_input(firing, 0);
        return TROUPE_OK;
    case LESS:
        value = value < op->constant;
        break;
    case ADD:
        value += op->constant == 0 ? number_value(inputs[1]) : op->constant;
        break;
    case MULTIPLY:
        value *= number_value(inputs[1]);
        break;
    }
    troupe_firing_outputs(firing)[0] = number_create(value);
    return TROUPE_OK;
}

static int add_op(struct troupe_stage *stage, struct op *op, int inputs, int outputs)
{
    struct troupe_actor_spec spec = {.name = "op",
                                     .input_count = inputs,
                                     .output_count = outputs,
                                     .behave = op_behave,
                                     .context = op,
                                     .takes_dead = op->operation == MERGE};

    return add_actor(stage, &spec);
}

static struct troupe_stage *frame_of(int window, int arguments, int results)
{
    struct troupe_stage *frame = NULL;

    cr_assert_eq(troupe_stage_create_frame(window, arguments, results, &frame), TROUPE_OK);
    return frame;
}

static int add_argument(struct troupe_stage *frame, int argument)
{
    int number = 0;

    cr_assert_eq(troupe_stage_add_argument(frame, "argument", argument, &number), TROUPE_OK);
    return number;
}

static int add_result(struct troupe_stage *frame, int result)
{
    int number = 0;

    cr_assert_eq(troupe_stage_add_result(frame, "result", result, &number), TROUPE_OK);
    return number;
}

static int add_frame(struct troupe_stage *parent, struct troupe_stage *body)
{
    struct troupe_frame_spec spec = {.name = "frame", .body = body, .ticket = -1};
    int number = 0;

    cr_assert_eq(troupe_stage_add_frame(parent, &spec, &number), TROUPE_OK);
    return number;
}

static struct op less = {.operation = LESS, .constant = 10}, add = {.operation = ADD};
static struct op switch_op = {.operation = SWITCH}, merge = {.operation = MERGE};
static struct op more = {.operation = CONTINUE};

/* while (x < less.constant) x += step; over a frame whose argument 0 is x and argument 1 the
 * step; result 0 is x. `body` comes between the switch and the addition. Returns the place where
 * it is to be connected: from the switch's output 1 to the addition's input 0. */
struct loop {
    struct troupe_stage *frame;
    int head, step, cond, gate, sum;
};

static struct loop loop_of(int window, struct op *compare)
{
    struct loop loop = {.frame = frame_of(window, 2, 1)};
    static struct op head = {.operation = FAIL, .constant = INT64_MIN};
    int test;

    loop.head = add_op(loop.frame, &head, 1, 1);
    loop.step = add_argument(loop.frame, 1);
    test = add_op(loop.frame, compare, 1, 1);
    loop.cond = add_op(loop.frame, &more, 1, 1);
    loop.gate = add_op(loop.frame, &switch_op, 2, 2);
    loop.sum = add_op(loop.frame, &add, 2, 1);
    join(loop.frame, loop.head, 0, test, 0, 0);
    join(loop.frame, test, 0, loop.cond, 0, 0);
    join(loop.frame, loop.head, 0, loop.gate, 0, 0);
    join(loop.frame, loop.cond, 0, loop.gate, 1, 0);
    join(loop.frame, loop.step, 0, loop.sum, 1, 0);
    cr_assert_eq(troupe_stage_connect_loop(loop.frame, loop.sum, 0, loop.head, 0, 0), TROUPE_OK);
    join(loop.frame, loop.gate, 0, add_result(loop.frame, 0), 0, 0);
    return loop;
}

/* A root with two sources, one frame and a sink. */
struct root {
    struct troupe_stage *stage;
    struct adder first, second, sink;
    int frame;
};

static void root_of(struct root *root, int window, struct troupe_stage *body)
{
    root->first = (struct adder){.name = "first", .fail_at = -1};
    root->second = (struct adder){.name = "second", .add = 1, .fail_at = -1};
    root->sink = (struct adder){.name = "sink", .fail_at = -1};
    root->stage = stage_of(window);
    add_adder(root->stage, &root->first, 0, 1);
    add_adder(root->stage, &root->second, 0, 1);
    root->frame = add_frame(root->stage, body);
    add_adder(root->stage, &root->sink, 1, 1);
    join(root->stage, 0, 0, root->frame, 0, 0);
    join(root->stage, 1, 0, root->frame, 1, 0);
    join(root->stage, root->frame, 0, 3, 0, 0);
}

static void run(struct root *root, uint64_t end, enum troupe_status wanted)
{
    troupe_stage_admit(root->stage, end);
    cr_assert_eq(troupe_stage_wait(root->stage, soon()), wanted, "%s", troupe_status_message());
}

Test(frame, runs_a_loop_in_every_iteration)
{
    for (int workers = 1; workers <= 3; workers++)
        for (int window = 1; window <= 5; window += 2) {
            struct troupe_pool *pool = pool_of(workers);
            struct loop loop = loop_of(window, &less);
            struct root root;

            join(loop.frame, loop.gate, 1, loop.sum, 0, 0);
            root_of(&root, window, loop.frame);
            cast(loop.frame, pool);
            cast(root.stage, pool);
            run(&root, 50, TROUPE_OK);
            cr_assert_eq(atomic_load(&root.sink.calls), 50);
            for (int i = 0; i < 50; i++)
                cr_assert_eq(root.sink.values[i], 10);
            troupe_stage_destroy(root.stage);
            finish(loop.frame, pool);
        }
}

/* Sums the step ten times for each of the outer loop's ten iterations. */
Test(frame, runs_a_loop_within_a_loop)
{
    static struct op outer_less = {.operation = LESS, .constant = 1000};

    for (int workers = 1; workers <= 3; workers++) {
        struct troupe_pool *pool = pool_of(workers);
        struct loop inner = loop_of(3, &less), outer = loop_of(4, &outer_less);
        struct root root;
        int frame = add_frame(outer.frame, inner.frame);
        static struct op zero = {.operation = MULTIPLY};
        int nothing = add_op(outer.frame, &zero, 2, 1);
        int plus = add_op(outer.frame, &add, 2, 1);
        static struct op minus = {.operation = ADD, .constant = -1};
        int less_one = add_op(outer.frame, &minus, 1, 1);

        /* x += inner(0) + 0 * x, of which the addition at the end adds the step. */
        join(inner.frame, inner.gate, 1, inner.sum, 0, 0);
        join(outer.frame, outer.step, 0, less_one, 0, 0);
        join(outer.frame, outer.gate, 1, nothing, 0, 0);
        join(outer.frame, less_one, 0, nothing, 1, 0);
        join(outer.frame, nothing, 0, frame, 0, 0);
        join(outer.frame, outer.step, 0, frame, 1, 0);
        join(outer.frame, frame, 0, plus, 0, 0);
        join(outer.frame, outer.gate, 1, plus, 1, 0);
        join(outer.frame, plus, 0, outer.sum, 0, 0);
        root_of(&root, 2, outer.frame);
        cast(inner.frame, pool);
        cast(outer.frame, pool);
        cast(root.stage, pool);
        run(&root, 5, TROUPE_OK);
        for (int i = 0; i < 5; i++)
            cr_assert_eq(root.sink.values[i], 1001); /* 91 times 11 */
        troupe_stage_destroy(root.stage);
        troupe_stage_destroy(outer.frame);
        finish(inner.frame, pool);
    }
}

/* f(n, one) = n < 2 ? n * one : f(n - 1, one) + f(n - 2, one): Fibonacci's numbers; `deeper`
 * takes n towards 2 or away from it. */
static struct troupe_stage *fibonacci_of(int64_t deeper)
{
    static struct op small = {.operation = LESS, .constant = 2};
    static struct op minus_one = {.operation = ADD}, minus_two = {.operation = ADD};
    static struct op pass = {.operation = FAIL, .constant = INT64_MIN};
    struct troupe_stage *frame = frame_of(1, 2, 1);
    int n = add_argument(frame, 0), one = add_argument(frame, 1);
    int test = add_op(frame, &small, 1, 1);
    int gate = add_op(frame, &switch_op, 2, 2), gate_one = add_op(frame, &switch_op, 2, 2);
    int first = add_op(frame, &minus_one, 1, 1), second = add_op(frame, &minus_two, 1, 1);
    int call = add_frame(frame, frame), other = add_frame(frame, frame);
    int sum = add_op(frame, &add, 2, 1), join_up = add_op(frame, &merge, 2, 1);
    int leaf = add_op(frame, &pass, 1, 1);

    minus_one.constant = deeper;
    minus_two.constant = 2 * deeper;
    join(frame, n, 0, test, 0, 0);
    join(frame, n, 0, gate, 0, 0);
    join(frame, test, 0, gate, 1, 0);
    join(frame, one, 0, gate_one, 0, 0);
    join(frame, test, 0, gate_one, 1, 0);
    join(frame, gate, 0, first, 0, 0);
    join(frame, gate, 0, second, 0, 0);
    join(frame, first, 0, call, 0, 0);
    join(frame, gate_one, 0, call, 1, 0);
    join(frame, second, 0, other, 0, 0);
    join(frame, gate_one, 0, other, 1, 0);
    join(frame, call, 0, sum, 0, 0);
    join(frame, other, 0, sum, 1, 0);
    join(frame, gate, 1, leaf, 0, 0);
    join(frame, sum, 0, join_up, 0, 0);
    join(frame, leaf, 0, join_up, 1, 0);
    join(frame, join_up, 0, add_result(frame, 0), 0, 0);
    return frame;
}

Test(frame, calls_itself)
{
    for (int workers = 1; workers <= 3; workers++) {
        struct troupe_pool *pool = pool_of(workers);
        struct troupe_stage *fibonacci = fibonacci_of(-1);
        struct root root;

        root_of(&root, 3, fibonacci);
        root.first.add = 15;
        cast(fibonacci, pool);
        cast(root.stage, pool);
        run(&root, 4, TROUPE_OK);
        for (int i = 0; i < 4; i++)
            cr_assert_eq(root.sink.values[i], 610);
        troupe_stage_destroy(root.stage);
        finish(fibonacci, pool);
    }
}

Test(frame, refuses_a_recursion_without_end)
{
    struct troupe_pool *pool = pool_of(2);
    struct troupe_stage *endless = fibonacci_of(0);
    struct root root;

    root_of(&root, 1, endless);
    root.first.add = 2;
    cast(endless, pool);
    cast(root.stage, pool);
    run(&root, 1, TROUPE_RESOURCE_EXHAUSTED);
    cr_assert_str_eq(troupe_status_message(),
                     "frames are nested 10000 deep: does the recursion end?");
    cr_assert_eq(atomic_load(&root.sink.calls), 0);
    troupe_stage_destroy(root.stage);
    finish(endless, pool);
}

/* Of a result that is live in every iteration the newest counts, in whatever order they fire. */
Test(frame, gives_the_newest_result)
{
    for (int workers = 1; workers <= 4; workers++) {
        struct troupe_pool *pool = pool_of(workers);
        struct loop loop = {.frame = frame_of(8, 2, 1)};
        static struct op head = {.operation = FAIL, .constant = INT64_MIN};
        static struct op many = {.operation = LESS, .constant = 200};
        int first = add_op(loop.frame, &head, 1, 1), step = add_argument(loop.frame, 1);
        int test = add_op(loop.frame, &many, 1, 1), cond = add_op(loop.frame, &more, 1, 1);
        int sum = add_op(loop.frame, &add, 2, 1);
        struct root root;

        join(loop.frame, first, 0, test, 0, 0);
        join(loop.frame, test, 0, cond, 0, 0);
        join(loop.frame, first, 0, sum, 0, 0);
        join(loop.frame, step, 0, sum, 1, 0);
        cr_assert_eq(troupe_stage_connect_loop(loop.frame, sum, 0, first, 0, 0), TROUPE_OK);
        join(loop.frame, sum, 0, add_result(loop.frame, 0), 0, 0);
        root_of(&root, 3, loop.frame);
        cast(loop.frame, pool);
        cast(root.stage, pool);
        run(&root, 100, TROUPE_OK);
        for (int i = 0; i < 100; i++)
            cr_assert_eq(root.sink.values[i], 201);
        troupe_stage_destroy(root.stage);
        finish(loop.frame, pool);
    }
}

/* A failure in a loop within a loop ends both, and the step; the next step runs. */
Test(frame, fails_the_iterations_around_it)
{
    static struct op fail = {.operation = FAIL, .constant = 7};

    for (int workers = 1; workers <= 3; workers++) {
        struct troupe_pool *pool = pool_of(workers);
        struct loop loop = loop_of(2, &less);
        int trap = add_op(loop.frame, &fail, 1, 1);
        struct root root;

        join(loop.frame, loop.gate, 1, trap, 0, 0);
        join(loop.frame, trap, 0, loop.sum, 0, 0);
        root_of(&root, 1, loop.frame);
        root.first.values[0] = 0;
        cast(loop.frame, pool);
        cast(root.stage, pool);
        run(&root, 1, TROUPE_FAILED_PRECONDITION);
        cr_assert_str_eq(troupe_status_message(), "met 7");
        cr_assert_eq(atomic_load(&root.sink.calls), 0);
        root.first.add = 8; /* past the trap */
        run(&root, 2, TROUPE_OK);
        cr_assert_eq(root.sink.values[1], 10);
        troupe_stage_destroy(root.stage);
        finish(loop.frame, pool);
    }
}

/* A frame with a dead argument does not run: its results are dead. */
Test(frame, is_dead_when_an_argument_is)
{
    static struct op never = {.operation = LESS, .constant = -1};
    struct troupe_pool *pool = pool_of(1);
    struct loop loop = loop_of(2, &less);
    struct adder first = {.name = "first", .fail_at = -1}, one = {.name = "one", .fail_at = -1};
    struct adder sink = {.name = "sink", .fail_at = -1};
    struct troupe_stage *stage = stage_of(1);
    int test, gate, frame, last;

    join(loop.frame, loop.gate, 1, loop.sum, 0, 0);
    add_adder(stage, &first, 0, 1);
    add_adder(stage, &one, 0, 1);
    test = add_op(stage, &never, 1, 1);
    gate = add_op(stage, &switch_op, 2, 2);
    frame = add_frame(stage, loop.frame);
    last = add_adder(stage, &sink, 1, 1);
    join(stage, 0, 0, test, 0, 0);
    join(stage, 0, 0, gate, 0, 0);
    join(stage, test, 0, gate, 1, 0);
    join(stage, gate, 1, frame, 0, 0);
    join(stage, 1, 0, frame, 1, 0);
    join(stage, frame, 0, last, 0, 0);
    cast(loop.frame, pool);
    cast(stage, pool);
    troupe_stage_admit(stage, 3);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(atomic_load(&sink.calls), 0);
    troupe_stage_destroy(stage);
    finish(loop.frame, pool);
}

/* With a ticket: an actor inside fires, dead, although another argument is dead. */
static _Atomic(int) dead_calls, live_calls;

static enum troupe_status watch_behave(void *context, struct troupe_firing *firing)
{
    (void)context;
    atomic_fetch_add(troupe_firing_is_dead(firing) ? &dead_calls : &live_calls, 1);
    return TROUPE_OK;
}

Test(frame, runs_by_its_ticket)
{
    static struct op even = {.operation = LESS, .constant = 1};
    struct troupe_pool *pool = pool_of(2);
    struct troupe_actor_spec watch = {
        .name = "watch", .input_count = 1, .behave = watch_behave, .takes_dead = true};
    struct troupe_stage *stage = stage_of(1), *frame = frame_of(1, 2, 1);
    struct troupe_frame_spec spec = {.name = "frame", .body = frame, .ticket = 0};
    struct adder first = {.name = "first", .fail_at = -1}, sink = {.name = "sink", .fail_at = -1};
    int watcher = add_actor(frame, &watch), other = add_argument(frame, 1);
    int test, gate, number = 0;

    join(frame, other, 0, watcher, 0, 0);
    join(frame, other, 0, add_result(frame, 0), 0, 0);
    add_adder(stage, &first, 0, 1);
    test = add_op(stage, &even, 1, 1);
    gate = add_op(stage, &switch_op, 2, 2);
    cr_assert_eq(troupe_stage_add_frame(stage, &spec, &number), TROUPE_OK);
    join(stage, 0, 0, test, 0, 0);
    join(stage, test, 0, gate, 1, 0);
    join(stage, 0, 0, gate, 0, 0);
    join(stage, test, 0, number, 0, 0);
    join(stage, gate, 1, number, 1, 0);
    join(stage, number, 0, add_adder(stage, &sink, 1, 1), 0, 0);
    cast(frame, pool);
    cast(stage, pool);
    troupe_stage_admit(stage, 1);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(atomic_load(&live_calls), 1);
    cr_assert_eq(atomic_load(&sink.calls), 1);
    first.add = 5; /* the gate's output dies */
    troupe_stage_admit(stage, 2);
    cr_assert_eq(troupe_stage_wait(stage, soon()), TROUPE_OK);
    cr_assert_eq(atomic_load(&dead_calls), 1);
    cr_assert_eq(atomic_load(&sink.calls), 1);
    troupe_stage_destroy(stage);
    finish(frame, pool);
}

/* What random numbers and messages inside loops are told apart by. */
static uint64_t seen_paths[3][16], seen_slots[16];

static enum troupe_status look_behave(void *context, struct troupe_firing *firing)
{
    uint64_t iteration = troupe_firing_iteration(firing);

    (void)context;
    seen_paths[troupe_firing_step(firing)][iteration] = troupe_firing_path(firing);
    seen_slots[troupe_firing_slot(firing)]++;
    return TROUPE_OK;
}

Test(frame, tells_firings_apart)
{
    struct troupe_pool *pool = pool_of(1);
    struct loop loop = loop_of(2, &less);
    struct troupe_actor_spec look = {.name = "look", .behave = look_behave};
    int looker = add_actor(loop.frame, &look);
    struct root root;

    join(loop.frame, loop.gate, 1, loop.sum, 0, 0);
    join(loop.frame, loop.cond, -1, looker, -1, 0);
    root_of(&root, 2, loop.frame);
    cast(loop.frame, pool);
    cast(root.stage, pool);
    run(&root, 3, TROUPE_OK);
    for (int i = 0; i < 11; i++) {
        cr_assert_eq(seen_paths[1][i], seen_paths[0][i]);
        cr_assert_eq(seen_paths[2][i], seen_paths[0][i]);
        for (int j = 0; j < i; j++)
            cr_assert_neq(seen_paths[0][i], seen_paths[0][j]);
    }
    for (int slot = 0; slot < 16; slot++)
        cr_assert_eq(seen_slots[slot] > 0, slot < 4);
    troupe_stage_destroy(root.stage);
    finish(loop.frame, pool);
}

Test(frame, refuses_wrong_descriptions)
{
    struct troupe_stage *stage = stage_of(1), *frame = frame_of(1, 1, 1);
    struct troupe_frame_spec spec = {.name = "loop", .body = stage, .ticket = -1};
    int number = 0;

    cr_assert_eq(troupe_stage_add_frame(stage, &spec, &number), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(),
                     "frame \"loop\": its body must be made by troupe_stage_create_frame");
    spec.body = frame;
    spec.ticket = 1;
    cr_assert_eq(troupe_stage_add_frame(stage, &spec, &number), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(),
                     "frame \"loop\" has 1 arguments: 1 cannot be its ticket");
    cr_assert_eq(troupe_stage_add_argument(frame, "a", 1, &number), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "a frame with 1 arguments has no argument 1");
    cr_assert_eq(troupe_stage_add_result(frame, "r", -1, &number), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_stage_add_argument(frame, "a", 0, &number), TROUPE_OK);
    cr_assert_eq(troupe_stage_connect_loop(frame, 0, 0, 0, 0, 5), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_stage_connect_loop(frame, 0, -1, 0, 0, 0), TROUPE_INVALID_ARGUMENT);
    troupe_stage_destroy(frame);
    troupe_stage_destroy(stage);
}

Test(frame, needs_a_body_that_was_cast)
{
    struct troupe_pool *pool = pool_of(1);
    struct troupe_stage *frame = frame_of(1, 2, 1);
    struct adder inner = {.name = "inner", .fail_at = -1};
    struct root root;

    add_adder(frame, &inner, 0, 1);
    join(frame, 0, 0, add_result(frame, 0), 0, 0);
    root_of(&root, 1, frame);
    cast(root.stage, pool);
    run(&root, 1, TROUPE_FAILED_PRECONDITION);
    cr_assert_str_eq(troupe_status_message(), "the frame's body was never cast");
    troupe_stage_destroy(root.stage);
    finish(frame, pool);
}
