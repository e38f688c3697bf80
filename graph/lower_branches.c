/* If and Case. A Switch per argument and branch but the last: what a branch does not take goes on
 * to the next, so that exactly one branch is alive. Merges bring the branches' outputs together.
 *
 * Invariant: `rest` holds, per argument and last of all for the choice itself, the value that is
 * alive when none of the branches so far was taken. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/lower_parts.h"
#include "ops/tensor.h"

struct branching {
    struct troupe_lowering *lowering;
    const struct troupe_call *call;
    enum troupe_flow flow;
    struct troupe_value choice;  /* cond, or the index */
    struct troupe_value *rest;   /* per argument, and of the choice */
    struct troupe_value *taken;  /* as rest, for the branch at hand */
    int argument_count;          /* without the choice */
    struct troupe_value *merged; /* per output: the Merge so far; a chain is one Merge at last */
    int output_count, branch_count;
    struct troupe_value *outputs; /* branch after branch */
    int *done;                    /* per branch: the node that ends its effects */
    bool has_effects;
};

/* The name of a branch: "then", "else", "branch_0", ... */
static char *branch_name(const struct branching *branching, int branch)
{
    if (branching->flow == TROUPE_FLOW_IF)
        return troupe_strdup(branch == 0 ? "then" : "else");
    return troupe_asprintf("branch_%d", branch);
}

/* The choice, which comes after what the call waits for. */
static enum troupe_status make_choice(struct branching *branching)
{
    const struct troupe_call *call = branching->call;
    struct troupe_glue glue = {.op = "Identity",
                               .name = "choice",
                               .inputs = {call->inputs[0]},
                               .input_count = 1,
                               .controls = call->controls,
                               .control_count = call->control_count};
    int number = -1, choice = -1;
    enum troupe_status status = troupe_lower_glue(branching->lowering, call, &glue, &choice);

    branching->choice = (struct troupe_value){choice, 0};
    for (int i = 0; i < branching->argument_count && status == TROUPE_OK; i++) {
        branching->rest[i] = call->inputs[i + 1];
        if (branching->branch_count > 1)
            continue; /* a Switch waits for the choice */
        glue = (struct troupe_glue){.op = "Identity",
                                    .name = "input",
                                    .inputs = {call->inputs[i + 1]},
                                    .input_count = 1,
                                    .controls = &choice,
                                    .control_count = 1};
        status = troupe_lower_glue_at(branching->lowering, call, &glue, i, &number);
        branching->rest[i] = (struct troupe_value){number, 0};
    }
    branching->rest[branching->argument_count] = branching->choice;
    return status;
}

/* Whether a branch is the one: the cond itself, or index == branch. */
static enum troupe_status make_predicate(struct branching *branching, int branch,
                                         struct troupe_value *out)
{
    char dtype_name[] = "dtype", value_name[] = "value";
    int32_t index = branch;
    struct troupe_named_attr attrs[2];
    struct troupe_tensor *tensor;
    struct troupe_glue glue = {.op = "Const",
                               .name = "index",
                               .controls = &branching->choice.node,
                               .control_count = 1,
                               .attrs = attrs,
                               .attr_count = 2};
    enum troupe_status status;
    int number;

    *out = branching->choice;
    if (branching->flow == TROUPE_FLOW_IF)
        return TROUPE_OK;
    status = troupe_tensor_from_data(TROUPE_INT32, 0, NULL, &index, &tensor);
    if (status != TROUPE_OK)
        return status;
    attrs[0] = (struct troupe_named_attr){dtype_name, troupe_attr_type(TROUPE_INT32)};
    attrs[1] = (struct troupe_named_attr){value_name, troupe_attr_tensor(tensor)};
    status = troupe_lower_glue_at(branching->lowering, branching->call, &glue, branch, &number);
    troupe_attr_fini(&attrs[1].value);
    troupe_tensor_unref(tensor);
    if (status != TROUPE_OK)
        return status;
    glue = (struct troupe_glue){
        .op = "Equal", .name = "is", .inputs = {branching->choice, {number, 0}}, .input_count = 2};
    status = troupe_lower_glue_at(branching->lowering, branching->call, &glue, branch, &number);
    *out = (struct troupe_value){number, 0};
    return status;
}

/* Sets `taken` for a branch and `rest` for those behind it. The last takes what is left. */
static enum troupe_status split(struct branching *branching, int branch)
{
    struct troupe_value predicate = TROUPE_VALUE_NONE;
    enum troupe_status status;

    if (branch == branching->branch_count - 1) {
        memcpy(branching->taken, branching->rest,
               (size_t)(branching->argument_count + 1) * sizeof(*branching->taken));
        return TROUPE_OK;
    }
    status = make_predicate(branching, branch, &predicate);
    for (int i = 0; i <= branching->argument_count && status == TROUPE_OK; i++) {
        struct troupe_glue glue = {.op = "Switch",
                                   .name = "switch",
                                   .inputs = {branching->rest[i], predicate},
                                   .input_count = 2};
        int number;

        status = troupe_lower_glue_at(branching->lowering, branching->call, &glue,
                                      branch * (branching->argument_count + 1) + i, &number);
        branching->taken[i] = (struct troupe_value){number, 1};
        branching->rest[i] = (struct troupe_value){number, 0};
    }
    return status;
}

/* A node that fires when the branch is taken and its effects are there. */
static enum troupe_status end_branch(struct branching *branching, int branch,
                                     const struct troupe_numbers *effects)
{
    struct troupe_glue glue = {.op = "Identity",
                               .name = "done",
                               .inputs = {branching->taken[branching->argument_count]},
                               .input_count = 1,
                               .controls = effects->items,
                               .control_count = effects->count};

    branching->has_effects |= effects->count > 0;
    return troupe_lower_glue_at(branching->lowering, branching->call, &glue, branch,
                                &branching->done[branch]);
}

static enum troupe_status make_branch(struct branching *branching, int branch)
{
    struct troupe_inlining inlining = {.function = branching->call->functions[branch],
                                       .args = branching->taken,
                                       .outputs = branching->outputs +
                                                  (size_t)branch * (size_t)branching->output_count};
    char *name = branch_name(branching, branch);
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    int pivot;

    if (name == NULL)
        return status;
    inlining.name = name;
    status = split(branching, branch);
    if (status == TROUPE_OK) {
        struct troupe_glue glue = {.op = "Identity",
                                   .name = "pivot",
                                   .inputs = {branching->taken[branching->argument_count]},
                                   .input_count = 1};

        status = troupe_lower_glue_at(branching->lowering, branching->call, &glue, branch, &pivot);
        inlining.pivot = pivot;
    }
    if (status == TROUPE_OK)
        status = troupe_lower_inline(branching->lowering, branching->call, &inlining);
    if (status == TROUPE_OK)
        status = end_branch(branching, branch, &inlining.effects);
    free(inlining.effects.items);
    free(name);
    return status;
}

/* Merges one value of each branch. */
static enum troupe_status merge(struct branching *branching, const char *name, int index,
                                const struct troupe_value *values, size_t stride, int *out)
{
    struct troupe_glue glue = {
        .op = "Merge", .name = name, .inputs = {values[0]}, .input_count = 1};
    enum troupe_status status =
        troupe_lower_glue_at(branching->lowering, branching->call, &glue, index, out);

    for (int i = 1; i < branching->branch_count && status == TROUPE_OK; i++)
        status = troupe_node_add_input(&branching->lowering->graph->nodes[*out],
                                       values[(size_t)i * stride]);
    return status;
}

static enum troupe_status finish(struct branching *branching)
{
    int count = branching->output_count, number = -1, ends = 0;
    struct troupe_value *done = troupe_calloc((size_t)branching->branch_count, sizeof(*done));
    enum troupe_status status = done != NULL ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;

    for (int i = 0; i < count && status == TROUPE_OK; i++) {
        status = merge(branching, "merge", i, branching->outputs + i, (size_t)count, &number);
        branching->merged[i] = (struct troupe_value){number, 0};
    }
    if (status == TROUPE_OK && (branching->has_effects || count == 0)) {
        for (int i = 0; i < branching->branch_count; i++)
            done[i] = (struct troupe_value){branching->done[i], 0};
        status = merge(branching, "end", 0, done, 1, &number);
        ends = 1;
    }
    if (status == TROUPE_OK)
        status = troupe_lower_finish(branching->lowering, branching->call, branching->merged, count,
                                     &number, ends);
    free(done);
    return status;
}

static enum troupe_status branch_all(struct branching *branching)
{
    enum troupe_status status = make_choice(branching);

    for (int i = 0; i < branching->branch_count && status == TROUPE_OK; i++)
        status = make_branch(branching, i);
    return status == TROUPE_OK ? finish(branching) : status;
}

enum troupe_status troupe_lower_branches(struct troupe_lowering *lowering,
                                         const struct troupe_call *call, enum troupe_flow flow)
{
    int outputs = lowering->library->functions[call->functions[0]].output_count;
    size_t arguments = (size_t)call->input_count + 1, branches = (size_t)call->functions_count;
    struct branching branching = {.lowering = lowering,
                                  .call = call,
                                  .flow = flow,
                                  .argument_count = call->input_count - 1,
                                  .output_count = outputs,
                                  .branch_count = call->functions_count};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    branching.rest = troupe_calloc(arguments, sizeof(*branching.rest));
    branching.taken = troupe_calloc(arguments, sizeof(*branching.taken));
    branching.merged = troupe_calloc((size_t)outputs + 1, sizeof(*branching.merged));
    branching.outputs = troupe_calloc(((size_t)outputs + 1) * branches, sizeof(*branching.outputs));
    branching.done = troupe_calloc(branches + 1, sizeof(int));
    if (branching.rest != NULL && branching.taken != NULL && branching.merged != NULL &&
        branching.outputs != NULL && branching.done != NULL)
        status = branch_all(&branching);
    free(branching.rest);
    free(branching.taken);
    free(branching.merged);
    free(branching.outputs);
    free(branching.done);
    return status;
}
