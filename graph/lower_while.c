/* While. Each input is a value that goes round: Enter, Merge, Switch, and from the body back by a
 * NextIteration; an Exit after the last iteration. What cond or body capture enters as a constant.
 *
 * Invariant: whatever the body reads has gone through a Switch on LoopCond, so that in the last
 * iteration the whole body is dead. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/lower_parts.h"

struct looping {
    struct troupe_lowering *lowering;
    const struct troupe_call *call;
    int parallel_iterations;
    int variable_count;         /* values that go round; the other inputs are constant */
    struct troupe_value *heads; /* per input: the Merge, or the constant Enter */
    struct troupe_value *args;  /* per input: behind its Switch */
    struct troupe_value *outputs;
    int loop_cond;
};

static enum troupe_status make_enter(struct looping *looping, int index, int *out)
{
    char frame_name[] = "frame_name", constant_name[] = "is_constant",
         parallel_name[] = "parallel_iterations";
    const struct troupe_call *call = looping->call;
    struct troupe_named_attr attrs[] = {
        {frame_name, troupe_attr_string(call->name)},
        {constant_name, troupe_attr_bool(index >= looping->variable_count)},
        {parallel_name, troupe_attr_int(looping->parallel_iterations)},
    };
    struct troupe_glue glue = {.op = "Enter",
                               .name = "enter",
                               .inputs = {call->inputs[index]},
                               .input_count = 1,
                               .controls = call->controls,
                               .control_count = call->control_count,
                               .attrs = attrs,
                               .attr_count = 3};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    if (attrs[0].value.kind != TROUPE_ATTR_NONE)
        status = troupe_lower_glue_at(looping->lowering, call, &glue, index, out);
    troupe_attr_fini(&attrs[0].value);
    return status;
}

/* Enters and Merges; a Merge gets its NextIteration when the body is there. */
static enum troupe_status make_heads(struct looping *looping)
{
    enum troupe_status status = TROUPE_OK;
    int number = -1;

    for (int i = 0; i < looping->call->input_count && status == TROUPE_OK; i++) {
        status = make_enter(looping, i, &number);
        if (status == TROUPE_OK && i < looping->variable_count) {
            struct troupe_glue glue = {
                .op = "Merge", .name = "merge", .inputs = {{number, 0}}, .input_count = 1};

            status = troupe_lower_glue_at(looping->lowering, looping->call, &glue, i, &number);
        }
        looping->heads[i] = (struct troupe_value){number, 0};
    }
    return status;
}

static enum troupe_status make_condition(struct looping *looping)
{
    struct troupe_value output = TROUPE_VALUE_NONE;
    struct troupe_inlining inlining = {.function = looping->call->functions[0],
                                       .name = "cond",
                                       .args = looping->heads,
                                       .pivot = looping->heads[0].node,
                                       .outputs = &output};
    enum troupe_status status = troupe_lower_inline(looping->lowering, looping->call, &inlining);

    if (status == TROUPE_OK) {
        struct troupe_glue glue = {.op = "LoopCond",
                                   .name = "loop_cond",
                                   .inputs = {output},
                                   .input_count = 1,
                                   .controls = inlining.effects.items,
                                   .control_count = inlining.effects.count};

        status = troupe_lower_glue(looping->lowering, looping->call, &glue, &looping->loop_cond);
    }
    free(inlining.effects.items);
    return status;
}

/* Switches, and the Exits of what goes round. */
static enum troupe_status make_switches(struct looping *looping, struct troupe_value *exits)
{
    enum troupe_status status = TROUPE_OK;
    int number = -1;

    for (int i = 0; i < looping->call->input_count && status == TROUPE_OK; i++) {
        struct troupe_glue glue = {.op = "Switch",
                                   .name = "switch",
                                   .inputs = {looping->heads[i], {looping->loop_cond, 0}},
                                   .input_count = 2};

        status = troupe_lower_glue_at(looping->lowering, looping->call, &glue, i, &number);
        looping->args[i] = (struct troupe_value){number, 1};
        if (status != TROUPE_OK || i >= looping->variable_count)
            continue;
        glue = (struct troupe_glue){
            .op = "Exit", .name = "exit", .inputs = {{number, 0}}, .input_count = 1};
        status = troupe_lower_glue_at(looping->lowering, looping->call, &glue, i, &number);
        exits[i] = (struct troupe_value){number, 0};
    }
    return status;
}

/* The body's outputs go round, once its effects are there. */
static enum troupe_status make_returns(struct looping *looping,
                                       const struct troupe_numbers *effects)
{
    struct troupe_glue done = {.op = "NoOp",
                               .name = "body/done",
                               .controls = effects->items,
                               .control_count = effects->count};
    enum troupe_status status = TROUPE_OK;
    int end = -1, number;

    if (effects->count > 0)
        status = troupe_lower_glue(looping->lowering, looping->call, &done, &end);
    for (int i = 0; i < looping->variable_count && status == TROUPE_OK; i++) {
        struct troupe_glue glue = {.op = "NextIteration",
                                   .name = "next_iteration",
                                   .inputs = {looping->outputs[i]},
                                   .input_count = 1,
                                   .controls = &end,
                                   .control_count = end >= 0 ? 1 : 0};

        status = troupe_lower_glue_at(looping->lowering, looping->call, &glue, i, &number);
        if (status == TROUPE_OK)
            status = troupe_node_add_input(&looping->lowering->graph->nodes[looping->heads[i].node],
                                           (struct troupe_value){number, 0});
    }
    return status;
}

static enum troupe_status make_body(struct looping *looping)
{
    struct troupe_glue glue = {
        .op = "Identity", .name = "body/pivot", .inputs = {looping->args[0]}, .input_count = 1};
    struct troupe_inlining inlining = {.function = looping->call->functions[1],
                                       .name = "body",
                                       .args = looping->args,
                                       .outputs = looping->outputs};
    enum troupe_status status =
        troupe_lower_glue(looping->lowering, looping->call, &glue, &inlining.pivot);

    if (status == TROUPE_OK)
        status = troupe_lower_inline(looping->lowering, looping->call, &inlining);
    if (status == TROUPE_OK)
        status = make_returns(looping, &inlining.effects);
    free(inlining.effects.items);
    return status;
}

enum troupe_status troupe_lower_while(struct troupe_lowering *lowering,
                                      const struct troupe_call *call, int parallel_iterations)
{
    size_t inputs = (size_t)call->input_count + 1;
    struct looping looping = {.lowering = lowering,
                              .call = call,
                              .parallel_iterations = parallel_iterations,
                              .variable_count =
                                  lowering->library->functions[call->functions[1]].input_count};
    struct troupe_value *exits = troupe_calloc(inputs, sizeof(*exits));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    looping.heads = troupe_calloc(inputs, sizeof(*looping.heads));
    looping.args = troupe_calloc(inputs, sizeof(*looping.args));
    looping.outputs = troupe_calloc(inputs, sizeof(*looping.outputs));
    if (exits == NULL || looping.heads == NULL || looping.args == NULL || looping.outputs == NULL)
        goto free_arrays;
    status = make_heads(&looping);
    if (status == TROUPE_OK)
        status = make_condition(&looping);
    if (status == TROUPE_OK)
        status = make_switches(&looping, exits);
    if (status == TROUPE_OK)
        status = make_body(&looping);
    if (status == TROUPE_OK)
        status = troupe_lower_finish(lowering, call, exits, looping.variable_count, NULL, 0);

free_arrays:
    free(exits);
    free(looping.heads);
    free(looping.args);
    free(looping.outputs);
    return status;
}
