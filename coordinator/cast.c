/* Casting: a partition becomes the actors and edges of this rank.
 *
 * Invariant: every input port of an actor gets exactly one edge; every crossing that touches this
 * rank gets its Send or Receive; the order of state is edges like any other. */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/cast.h"

static enum troupe_status parts_room(struct troupe_plan *plan)
{
    if (plan->part_count < plan->part_capacity)
        return TROUPE_OK;
    int capacity = plan->part_capacity ? 2 * plan->part_capacity : 64;
    struct troupe_plan_part **grown =
        troupe_reallocarray(plan->parts, (size_t)capacity, sizeof(*plan->parts));
    if (!grown)
        return TROUPE_RESOURCE_EXHAUSTED;
    plan->parts = grown;
    plan->part_capacity = capacity;
    return TROUPE_OK;
}

enum troupe_status troupe_plan_keep_part(struct troupe_plan *plan, struct troupe_plan_part *part)
{
    enum troupe_status status = parts_room(plan);
    if (status == TROUPE_OK)
        plan->parts[plan->part_count++] = part;
    else
        part->destroy(part);
    return status;
}

enum troupe_status troupe_plan_keep_stage(struct troupe_plan *plan, struct troupe_stage *stage)
{
    struct troupe_stage **grown = troupe_reallocarray(
        plan->frame_stages, (size_t)plan->frame_stage_count + 1, sizeof(struct troupe_stage *));
    if (!grown) {
        troupe_stage_destroy(stage);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    plan->frame_stages = grown;
    plan->frame_stages[plan->frame_stage_count++] = stage;
    return TROUPE_OK;
}

enum troupe_status troupe_plan_add(struct troupe_plan *plan, struct troupe_stage *stage,
                                   struct troupe_plan_part *part,
                                   const struct troupe_actor_spec *spec, int *actor)
{
    enum troupe_status status = troupe_plan_keep_part(plan, part);
    if (status == TROUPE_OK)
        status = troupe_stage_add(stage, spec, actor);
    return status;
}

static int token_inputs(const struct troupe_node *node)
{
    int count = 0;
    for (int i = 0; i < node->input_count; i++)
        count += !troupe_node_input_is_ref(node, i);
    return count;
}

/* Critical-path ranks: of two ready actors the one with the longer way to go is fired first. */
static void measure_heights(struct troupe_caster *caster)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    for (int i = partition->order_count - 1; i >= 0; i--) {
        int number = partition->order[i], above = caster->height[number] + 1;
        const struct troupe_node *node = &caster->graph->nodes[number];
        for (int j = 0; j < node->input_count; j++)
            if (caster->height[node->inputs[j].node] < above)
                caster->height[node->inputs[j].node] = above;
        for (int j = 0; j < node->control_count; j++)
            if (caster->height[node->controls[j]] < above)
                caster->height[node->controls[j]] = above;
    }
}

/* Tags after those of the crossings, one for each group. */
static int all_reduce_tag(const struct troupe_caster *caster, int number)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    const char *key = troupe_node_all_reduce_key(&caster->graph->nodes[number]);
    return caster->plan->first_tag + partition->tag_count * caster->plan->session->window +
           troupe_name_map_get(&partition->groups, key);
}

static int frame_of(const struct troupe_caster *caster, int node)
{
    return caster->plan->partition.frames->frame_of[node];
}

static enum troupe_status add_node(struct troupe_caster *caster, int number)
{
    const struct troupe_node *node = &caster->graph->nodes[number];
    struct troupe_actor_spec spec = {0};
    struct troupe_plan_part *part;
    enum troupe_status status;
    if (node->schema->op->flow == TROUPE_FLOW_CALL)
        return troupe_cast_add_call(caster, number);
    if (troupe_node_is_all_reduce(node))
        status = troupe_all_reduce_part_create(caster->plan, number, all_reduce_tag(caster, number),
                                               &part, &spec);
    else if (node->accelerator > 0)
        status = troupe_sim_part_create(caster->plan, number, &part, &spec);
    else
        status = troupe_kernel_part_create(caster->plan, number, &part, &spec);
    if (status != TROUPE_OK)
        return status;
    spec.input_count = token_inputs(node);
    spec.output_count = node->output_count;
    spec.priority = caster->height[number];
    return troupe_plan_add(caster->plan, caster->frames[frame_of(caster, number)].stage, part,
                           &spec, &caster->actor_of_node[number]);
}

static enum troupe_status add_feeds(struct troupe_caster *caster)
{
    const struct troupe_signature *signature = &caster->plan->signature;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < signature->feed_count && status == TROUPE_OK; i++) {
        int node = signature->feeds[i].node;
        struct troupe_actor_spec spec = {.output_count = 1, .priority = caster->height[node]};
        struct troupe_plan_part *part;
        status = troupe_feed_part_create(caster->plan, i, &part, &spec);
        if (status == TROUPE_OK)
            status = troupe_plan_add(caster->plan, caster->plan->stage, part, &spec,
                                     &caster->actor_of_feed[i]);
    }
    return status;
}

static enum troupe_status add_receives(struct troupe_caster *caster)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < partition->crossing_count && status == TROUPE_OK; i++) {
        const struct troupe_crossing *crossing = &partition->crossings[i];
        caster->actor_of_crossing[i] = -1;
        if (crossing->to_rank != caster->rank)
            continue;
        /* A control edge's token is nothing but alive or dead. */
        struct troupe_actor_spec spec = {.output_count = 1,
                                         .priority = caster->height[crossing->value.node]};
        struct troupe_plan_part *part;
        status = troupe_receive_part_create(caster->plan, i, &part, &spec);
        if (status == TROUPE_OK)
            status = troupe_plan_add(caster->plan, caster->frames[crossing->frame].stage, part,
                                     &spec, &caster->actor_of_crossing[i]);
    }
    return status;
}

/* Where a value comes from on this rank: a feed, a Receive, a frame, or its node's own actor. */
void troupe_cast_source(const struct troupe_caster *caster, struct troupe_value value, int *actor,
                        int *port)
{
    const struct troupe_plan *plan = caster->plan;
    const struct troupe_node *node = &caster->graph->nodes[value.node];
    enum troupe_flow flow = node->schema->op->flow;
    if (flow == TROUPE_FLOW_NEXT_ITERATION) {
        struct troupe_value input = node->inputs[0];
        if (value.port < 0)
            input.port = -1;
        troupe_cast_source(caster, input, actor, port);
        return;
    }
    *port = value.port;
    if (flow == TROUPE_FLOW_ENTER) {
        *actor = caster->actor_of_node[value.node];
        return;
    }
    if (troupe_signature_source_rank(&plan->signature, caster->graph, value) != caster->rank) {
        int crossing = troupe_partition_find(&plan->partition, value, caster->rank);
        *actor = caster->actor_of_crossing[crossing];
        *port = value.port < 0 ? -1 : 0;
        return;
    }
    int feed = value.port < 0 ? -1 : troupe_signature_feed(&plan->signature, value);
    if (feed >= 0) {
        *actor = caster->actor_of_feed[feed];
        *port = 0;
    } else if (flow == TROUPE_FLOW_EXIT) {
        *actor = caster->frames[frame_of(caster, value.node)].actor;
        *port = value.port < 0 ? -1 : caster->number_of_node[value.node];
    } else {
        *actor = caster->actor_of_node[value.node];
    }
}

/* As troupe_cast_connect, for an actor that works in the memory of an accelerator. */
static enum troupe_status connect_in(struct troupe_caster *caster, int frame,
                                     struct troupe_value value, int memory, int to, int to_port)
{
    int from, from_port;
    enum troupe_status status =
        troupe_cast_source_in(caster, frame, value, memory, &from, &from_port);
    if (status != TROUPE_OK)
        return status;
    return troupe_stage_connect(caster->frames[frame].stage, from, from_port, to, to_port, 0);
}

enum troupe_status troupe_cast_connect(struct troupe_caster *caster, int frame,
                                       struct troupe_value value, int to, int to_port)
{
    if (to_port < 0)
        value.port = -1;
    return connect_in(caster, frame, value, 0, to, to_port);
}

static enum troupe_status add_send(struct troupe_caster *caster, int number, bool paces)
{
    const struct troupe_crossing *crossing = &caster->plan->partition.crossings[number];
    /* Another rank waits for it: what leaves, leaves first. */
    struct troupe_actor_spec spec = {.input_count = crossing->is_control ? 0 : 1,
                                     .priority = INT64_MAX};
    struct troupe_plan_part *part;
    int actor;
    enum troupe_status status = troupe_send_part_create(caster->plan, number, paces, &part, &spec);
    if (status == TROUPE_OK)
        status = troupe_plan_add(caster->plan, caster->frames[crossing->frame].stage, part, &spec,
                                 &actor);
    if (status == TROUPE_OK)
        status = troupe_cast_connect(caster, crossing->frame, crossing->value, actor,
                                     crossing->is_control ? -1 : 0);
    return status;
}

/* Of all that goes to a rank in the iterations of a frame, the first Send holds this rank back. */
static enum troupe_status add_sends(struct troupe_caster *caster)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    size_t ranks = (size_t)partition->use.ranks;
    bool *paced = troupe_calloc((size_t)partition->frames->count * ranks, sizeof(bool));
    enum troupe_status status = paced ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < partition->crossing_count && status == TROUPE_OK; i++) {
        const struct troupe_crossing *crossing = &partition->crossings[i];
        size_t pair = (size_t)crossing->frame * ranks + (size_t)crossing->to_rank;
        if (crossing->from_rank != caster->rank)
            continue;
        status = add_send(caster, i, !paced[pair]);
        paced[pair] = true;
    }
    free(paced);
    return status;
}

static enum troupe_status connect_node(struct troupe_caster *caster, int number)
{
    const struct troupe_node *node = &caster->graph->nodes[number];
    int actor = caster->actor_of_node[number], frame = frame_of(caster, number), port = 0;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < node->input_count && status == TROUPE_OK; i++) {
        if (!troupe_node_input_is_ref(node, i)) {
            status = connect_in(caster, frame, node->inputs[i], node->accelerator, actor, port++);
            continue;
        }
        int owner = troupe_node_ref_owner(caster->graph, number, i);
        status = troupe_cast_update(caster, frame, actor, owner);
    }
    for (int i = 0; i < node->control_count && status == TROUPE_OK; i++)
        status = troupe_cast_connect(caster, frame, (struct troupe_value){node->controls[i], -1},
                                     actor, -1);
    /* A stateful actor fires in the order of steps. Variables are ordered by their updates. */
    bool ordered =
        (node->schema->op->flags & TROUPE_OP_STATEFUL) || troupe_node_is_all_reduce(node);
    if (status == TROUPE_OK && ordered && caster->reader[number] < 0 &&
        token_inputs(node) == node->input_count)
        status = troupe_cast_in_order(caster, frame, actor);
    return status;
}

static enum troupe_status add_fetches(struct troupe_caster *caster)
{
    const struct troupe_signature *signature = &caster->plan->signature;
    if (caster->rank != 0 || signature->fetch_count == 0)
        return TROUPE_OK;
    struct troupe_actor_spec spec = {.input_count = signature->fetch_count};
    struct troupe_plan_part *part;
    int actor;
    enum troupe_status status = troupe_fetch_part_create(caster->plan, &part, &spec);
    if (status == TROUPE_OK)
        status = troupe_plan_add(caster->plan, caster->plan->stage, part, &spec, &actor);
    for (int i = 0; i < signature->fetch_count && status == TROUPE_OK; i++)
        status = troupe_cast_connect(caster, 0, signature->fetches[i], actor, i);
    if (status == TROUPE_OK)
        status = troupe_stage_connect(caster->plan->stage, actor, -1, actor, -1, 1);
    return status;
}

/* Whether a node is an actor of this rank with its own kernel. What belongs to a loop has been
 * added with it. */
static bool has_own_actor(const struct troupe_caster *caster, int number)
{
    const struct troupe_node *node = &caster->graph->nodes[number];
    return node->rank == caster->rank && !troupe_node_has_no_place(node) &&
           node->schema->op->flow != TROUPE_FLOW_EXIT &&
           node->schema->op->flow != TROUPE_FLOW_ARG &&
           !caster->plan->partition.use.is_head[number];
}

/* An Exit's actor is there; its edges are those of other nodes. */
static bool has_node_edges(const struct troupe_caster *caster, int number)
{
    const struct troupe_node *node = &caster->graph->nodes[number];
    return has_own_actor(caster, number) ||
           (node->rank == caster->rank && node->schema->op->flow == TROUPE_FLOW_EXIT);
}

static enum troupe_status add_nodes(struct troupe_caster *caster)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < partition->order_count && status == TROUPE_OK; i++) {
        int number = partition->order[i];
        const struct troupe_node *node = &caster->graph->nodes[number];
        if (!has_own_actor(caster, number))
            continue;
        status = add_node(caster, number);
        bool is_variable = node->schema->output_count == 1 && node->schema->outputs[0].is_ref &&
                           node->input_count == 0;
        if (status == TROUPE_OK && is_variable)
            caster->reader[number] = caster->actor_of_node[number];
    }
    return status;
}

static enum troupe_status cast_all(struct troupe_caster *caster)
{
    const struct troupe_partition *partition = &caster->plan->partition;
    enum troupe_status status = TROUPE_OK;
    measure_heights(caster);
    status = troupe_cast_open_frames(caster);
    if (status == TROUPE_OK)
        status = troupe_cast_add_frames(caster);
    if (status == TROUPE_OK && caster->rank == 0)
        status = add_feeds(caster);
    if (status == TROUPE_OK)
        status = add_receives(caster);
    if (status == TROUPE_OK)
        status = add_nodes(caster);
    if (status == TROUPE_OK)
        status = add_sends(caster);
    for (int i = 0; i < partition->order_count && status == TROUPE_OK; i++)
        if (has_node_edges(caster, partition->order[i]))
            status = connect_node(caster, partition->order[i]);
    if (status == TROUPE_OK)
        status = troupe_cast_connect_frames(caster);
    if (status == TROUPE_OK)
        status = troupe_cast_next_step(caster);
    if (status == TROUPE_OK)
        status = add_fetches(caster);
    return status;
}

/* An array of `count` times -1; NULL without memory. */
static int *minus_ones(int count)
{
    int *array = troupe_calloc((size_t)count + 1, sizeof(int));
    for (int i = 0; array && i < count; i++)
        array[i] = -1;
    return array;
}

enum troupe_status troupe_plan_cast(struct troupe_plan *plan)
{
    const struct troupe_graph *graph = plan->session->graph;
    struct troupe_caster caster = {
        .plan = plan,
        .graph = graph,
        .rank = plan->session->runtime->transport->rank,
        .actor_of_node = minus_ones(graph->node_count),
        .number_of_node = minus_ones(graph->node_count),
        .actor_of_feed = minus_ones(plan->signature.feed_count),
        .actor_of_crossing = minus_ones(plan->partition.crossing_count),
        .first_update = minus_ones(graph->node_count),
        .last_update = minus_ones(graph->node_count),
        .reader = minus_ones(graph->node_count),
        .height = minus_ones(graph->node_count),
    };
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (caster.actor_of_node && caster.number_of_node && caster.actor_of_feed &&
        caster.actor_of_crossing && caster.first_update && caster.last_update && caster.reader &&
        caster.height)
        status = cast_all(&caster);
    if (status == TROUPE_OK)
        status = troupe_cast_stages(&caster);
    troupe_cast_close_frames(&caster);
    free(caster.actor_of_node);
    free(caster.number_of_node);
    free(caster.actor_of_feed);
    free(caster.actor_of_crossing);
    free(caster.first_update);
    free(caster.last_update);
    free(caster.reader);
    free(caster.height);
    free(caster.first_copy);
    free(caster.copies);
    return status;
}
