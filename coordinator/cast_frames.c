/* Casting loops: every frame with something on this rank becomes a stage, and an actor of the stage
 * around it. Invariant: argument i of the stage is input i of the actor, and a result likewise. */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/cast.h"

static const struct troupe_frame *frame_of(const struct troupe_caster *caster, int frame)
{
    return &caster->plan->partition.frames->frames[frame];
}

static bool is_entered(const struct troupe_caster *caster, int enter)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    return partition->keep[enter] &&
           *troupe_frame_use_entered(&partition->use, enter, caster->rank);
}

static bool has_exit(const struct troupe_caster *caster, int exit)
{
    return caster->plan->partition.keep[exit] && caster->graph->nodes[exit].rank == caster->rank;
}

const struct troupe_function *troupe_cast_function(const struct troupe_caster *caster, int frame)
{
    int function = frame_of(caster, frame)->function;
    return function > 0 ? &caster->graph->library->functions[function - 1] : NULL;
}

static enum troupe_status open_frame(struct troupe_caster *caster, int number)
{
    const struct troupe_frame *frame = frame_of(caster, number);
    const struct troupe_function *function = troupe_cast_function(caster, number);
    struct troupe_cast_frame *cast = &caster->frames[number];
    if (function) {
        cast->argument_count = function->input_count;
        cast->result_count = function->output_count;
    }
    for (int i = 0; i < frame->enters.count; i++)
        if (is_entered(caster, frame->enters.nodes[i]))
            caster->number_of_node[frame->enters.nodes[i]] = cast->argument_count++;
    for (int i = 0; i < frame->exits.count; i++)
        if (has_exit(caster, frame->exits.nodes[i]))
            caster->number_of_node[frame->exits.nodes[i]] = cast->result_count++;
    enum troupe_status status =
        troupe_stage_create_frame(caster->plan->partition.use.window[number], cast->argument_count,
                                  cast->result_count, &cast->stage);
    if (status == TROUPE_OK)
        status = troupe_plan_keep_stage(caster->plan, cast->stage);
    return status;
}

enum troupe_status troupe_cast_open_frames(struct troupe_caster *caster)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    enum troupe_status status = TROUPE_OK;
    caster->frames = troupe_calloc((size_t)partition->frames->count, sizeof(*caster->frames));
    if (!caster->frames)
        return TROUPE_RESOURCE_EXHAUSTED;
    caster->frames[0].stage = caster->plan->stage;
    for (int i = 1; i < partition->frames->count && status == TROUPE_OK; i++)
        if (troupe_frame_use_member(&partition->use, i, caster->rank))
            status = open_frame(caster, i);
    return status;
}

/* A constant Enter is an actor inside; a variable's value is where the loop's edge starts. */
static enum troupe_status add_arguments(struct troupe_caster *caster, int number)
{
    const struct troupe_frame *frame = frame_of(caster, number);
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < frame->enters.count && status == TROUPE_OK; i++) {
        int enter = frame->enters.nodes[i];
        const struct troupe_node *node = &caster->graph->nodes[enter];
        const struct troupe_attr *constant =
            troupe_attr_find(node->attrs, node->attr_count, "is_constant");
        if (is_entered(caster, enter) && constant->value.b)
            status = troupe_stage_add_argument(caster->frames[number].stage, node->name,
                                               caster->number_of_node[enter],
                                               &caster->actor_of_node[enter]);
    }
    return status;
}

static enum troupe_status add_results(struct troupe_caster *caster, int number)
{
    const struct troupe_frame *frame = frame_of(caster, number);
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < frame->exits.count && status == TROUPE_OK; i++) {
        int exit = frame->exits.nodes[i];
        if (has_exit(caster, exit))
            status = troupe_stage_add_result(
                caster->frames[number].stage, caster->graph->nodes[exit].name,
                caster->number_of_node[exit], &caster->actor_of_node[exit]);
    }
    return status;
}

/* A function's inputs are actors inside; its outputs are results. */
static enum troupe_status add_inputs(struct troupe_caster *caster, int number)
{
    const struct troupe_function *function = troupe_cast_function(caster, number);
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < function->input_count && status == TROUPE_OK; i++)
        status = troupe_stage_add_argument(caster->frames[number].stage,
                                           caster->graph->nodes[function->inputs[i]].name, i,
                                           &caster->actor_of_node[function->inputs[i]]);
    return status;
}

static enum troupe_status connect_outputs(struct troupe_caster *caster, int number)
{
    const struct troupe_function *function = troupe_cast_function(caster, number);
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < function->output_count && status == TROUPE_OK; i++) {
        int result;
        status = troupe_stage_add_result(caster->frames[number].stage, function->outputs[i].name, i,
                                         &result);
        if (status == TROUPE_OK)
            status = troupe_cast_connect(caster, number, function->outputs[i].value, result, 0);
    }
    return status;
}

enum troupe_status troupe_cast_add_call(struct troupe_caster *caster, int number)
{
    const struct troupe_node *node = &caster->graph->nodes[number];
    const struct troupe_frames *frames = caster->plan->partition.frames;
    const struct troupe_function *called = troupe_node_called(caster->graph, node);
    struct troupe_plan_part *part;
    enum troupe_status status = troupe_frame_part_create(caster->plan, number, &part);
    if (status == TROUPE_OK)
        status = troupe_plan_keep_part(caster->plan, part);
    if (status != TROUPE_OK)
        return status;
    struct troupe_frame_spec spec = {
        .name = node->name,
        .body = caster->frames[1 + (called - caster->graph->library->functions)].stage,
        .context = part,
        .priority = caster->height[number],
        .ticket = -1};
    return troupe_stage_add_frame(caster->frames[frames->frame_of[number]].stage, &spec,
                                  &caster->actor_of_node[number]);
}

/* By node: a head whose value_index somebody reads. */
static bool *find_index_users(const struct troupe_caster *caster)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    bool *uses = troupe_calloc((size_t)caster->graph->node_count + 1, sizeof(bool));
    for (int i = 0; uses && i < partition->order_count; i++) {
        const struct troupe_node *node = &caster->graph->nodes[partition->order[i]];
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k].port == 1)
                uses[node->inputs[k].node] = true;
    }
    return uses;
}

static enum troupe_status add_heads(struct troupe_caster *caster, int number, const bool *uses)
{
    const struct troupe_frame *frame = frame_of(caster, number);
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < frame->merge_count && status == TROUPE_OK; i++) {
        int node = frame->merges[i].node;
        if (!caster->plan->partition.keep[node] || caster->graph->nodes[node].rank != caster->rank)
            continue;
        struct troupe_actor_spec spec = {.priority = caster->height[node]};
        struct troupe_plan_part *part;
        status = troupe_head_part_create(caster->plan, &frame->merges[i], uses[node], &part, &spec);
        if (status == TROUPE_OK)
            status = troupe_plan_add(caster->plan, caster->frames[number].stage, part, &spec,
                                     &caster->actor_of_node[node]);
    }
    return status;
}

/* The actor that asks for another iteration, by what LoopCond says here or on another rank. Its
 * edge comes with the Receives there: add_frames runs before, connect_frames after them. */
static enum troupe_status connect_goes_on(struct troupe_caster *caster, int number)
{
    int cond = frame_of(caster, number)->loop_cond, actor;
    struct troupe_actor_spec spec = {.priority = INT64_MAX};
    struct troupe_plan_part *part;
    enum troupe_status status = troupe_goes_on_part_create(caster->plan, cond, &part, &spec);
    if (status == TROUPE_OK)
        status = troupe_plan_add(caster->plan, caster->frames[number].stage, part, &spec, &actor);
    if (status == TROUPE_OK)
        status = troupe_cast_connect(caster, number, (struct troupe_value){cond, 0}, actor, 0);
    return status;
}

static enum troupe_status add_actor(struct troupe_caster *caster, int number)
{
    const struct troupe_frame *frame = frame_of(caster, number);
    const struct troupe_frame_use *use = &caster->plan->partition.use;
    struct troupe_plan_part *part;
    enum troupe_status status = troupe_frame_part_create(caster->plan, frame->loop_cond, &part);
    if (status == TROUPE_OK)
        status = troupe_plan_keep_part(caster->plan, part);
    if (status != TROUPE_OK)
        return status;
    struct troupe_frame_spec spec = {.name = frame->name,
                                     .body = caster->frames[number].stage,
                                     .context = part,
                                     .priority = caster->height[frame->loop_cond],
                                     .ticket = -1};
    if (troupe_frame_use_is_shared(use, number))
        spec.ticket = caster->number_of_node[use->ticket[number]];
    return troupe_stage_add_frame(caster->frames[frame->parent].stage, &spec,
                                  &caster->frames[number].actor);
}

enum troupe_status troupe_cast_add_frames(struct troupe_caster *caster)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    bool *uses = find_index_users(caster);
    enum troupe_status status = uses ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 1; i < partition->frames->count && status == TROUPE_OK; i++) {
        if (!caster->frames[i].stage)
            continue;
        if (troupe_cast_function(caster, i)) {
            status = add_inputs(caster, i);
            continue;
        }
        status = add_arguments(caster, i);
        if (status == TROUPE_OK)
            status = add_results(caster, i);
        if (status == TROUPE_OK)
            status = add_heads(caster, i, uses);
        if (status == TROUPE_OK)
            status = add_actor(caster, i);
    }
    free(uses);
    return status;
}

static enum troupe_status connect_head(struct troupe_caster *caster, int number,
                                       const struct troupe_loop_merge *merge)
{
    const struct troupe_node *node = &caster->graph->nodes[merge->node];
    struct troupe_stage *stage = caster->frames[number].stage;
    int next = node->inputs[merge->next_input].node;
    int enter = node->inputs[merge->enter_input].node;
    int head = caster->actor_of_node[merge->node], from, from_port;
    enum troupe_status status =
        troupe_cast_source_in(caster, number, (struct troupe_value){next, 0}, 0, &from, &from_port);
    if (status == TROUPE_OK)
        status = troupe_stage_connect_loop(stage, from, from_port, head, 0,
                                           caster->number_of_node[enter]);
    const struct troupe_node *next_node = &caster->graph->nodes[next];
    for (int i = 0; i < next_node->control_count && status == TROUPE_OK; i++) {
        troupe_cast_source(caster, (struct troupe_value){next_node->controls[i], -1}, &from,
                           &from_port);
        status = troupe_stage_connect(stage, from, -1, head, -1, 1);
    }
    for (int i = 0; i < node->control_count && status == TROUPE_OK; i++)
        status = troupe_cast_connect(caster, number, (struct troupe_value){node->controls[i], -1},
                                     head, -1);
    return status;
}

static enum troupe_status connect_heads(struct troupe_caster *caster, int number)
{
    const struct troupe_frame *frame = frame_of(caster, number);
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < frame->merge_count && status == TROUPE_OK; i++)
        if (caster->actor_of_node[frame->merges[i].node] >= 0)
            status = connect_head(caster, number, &frame->merges[i]);
    return status;
}

static enum troupe_status connect_arguments(struct troupe_caster *caster, int number)
{
    const struct troupe_frame *frame = frame_of(caster, number);
    int actor = caster->frames[number].actor;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < frame->enters.count && status == TROUPE_OK; i++) {
        int enter = frame->enters.nodes[i];
        const struct troupe_node *node = &caster->graph->nodes[enter];
        if (!is_entered(caster, enter))
            continue;
        status = troupe_cast_connect(caster, frame->parent, node->inputs[0], actor,
                                     caster->number_of_node[enter]);
        for (int k = 0; k < node->control_count && status == TROUPE_OK; k++)
            status = troupe_cast_connect(caster, frame->parent,
                                         (struct troupe_value){node->controls[k], -1}, actor, -1);
    }
    return status;
}

enum troupe_status troupe_cast_connect_frames(struct troupe_caster *caster)
{
    enum troupe_status status = TROUPE_OK;
    for (int i = 1; i < caster->plan->partition.frames->count && status == TROUPE_OK; i++) {
        if (!caster->frames[i].stage)
            continue;
        if (troupe_cast_function(caster, i)) {
            status = connect_outputs(caster, i);
            continue;
        }
        status = connect_goes_on(caster, i);
        if (status == TROUPE_OK)
            status = connect_heads(caster, i);
        if (status == TROUPE_OK)
            status = connect_arguments(caster, i);
    }
    return status;
}

enum troupe_status troupe_cast_stages(struct troupe_caster *caster)
{
    enum troupe_status status = TROUPE_OK;
    for (int i = caster->plan->partition.frames->count - 1; i >= 0 && status == TROUPE_OK; i--)
        if (caster->frames[i].stage)
            status =
                troupe_stage_cast(caster->frames[i].stage, caster->plan->session->runtime->pool);
    return status;
}

void troupe_cast_close_frames(struct troupe_caster *caster)
{
    for (int i = 0; caster->frames && i < caster->plan->partition.frames->count; i++)
        free(caster->frames[i].orders);
    free(caster->frames);
}
