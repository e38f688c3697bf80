/* Casting copies: where a value is in one memory and wanted in another, an actor between the two.
 * Invariant: a value is copied once into each memory in which it is wanted, in the frame of those
 * who want it. */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/cast.h"

/* The value whose token an edge carries: what a NextIteration passes on is its input. */
static struct troupe_value carried(const struct troupe_graph *graph, struct troupe_value value)
{
    while (graph->nodes[value.node].schema->op->flow == TROUPE_FLOW_NEXT_ITERATION)
        value = graph->nodes[value.node].inputs[0];
    return value;
}

/* The accelerator in whose memory a value is on this rank; 0: the host. What is fed or received
 * comes to the host, and control flow passes on what is there. */
static int memory_of(const struct troupe_caster *caster, struct troupe_value value)
{
    const struct troupe_node *node = &caster->graph->nodes[value.node];
    const struct troupe_signature *signature = &caster->plan->signature;
    if (node->schema->op->flow != TROUPE_FLOW_NONE ||
        troupe_signature_source_rank(signature, caster->graph, value) != caster->rank ||
        troupe_signature_feed(signature, value) >= 0)
        return 0;
    return node->accelerator;
}

static enum troupe_status copies_room(struct troupe_caster *caster)
{
    if (!caster->first_copy) {
        caster->first_copy = troupe_calloc((size_t)caster->graph->node_count + 1, sizeof(int));
        if (!caster->first_copy)
            return TROUPE_RESOURCE_EXHAUSTED;
        for (int i = 0; i < caster->graph->node_count; i++)
            caster->first_copy[i] = -1;
    }
    if (caster->copy_count < caster->copy_capacity)
        return TROUPE_OK;
    int capacity = caster->copy_capacity ? 2 * caster->copy_capacity : 16;
    struct troupe_cast_copy *grown =
        troupe_reallocarray(caster->copies, (size_t)capacity, sizeof(*grown));
    if (!grown)
        return TROUPE_RESOURCE_EXHAUSTED;
    caster->copies = grown;
    caster->copy_capacity = capacity;
    return TROUPE_OK;
}

static enum troupe_status copy_add(struct troupe_caster *caster,
                                   const struct troupe_cast_copy *want, int from, int from_port,
                                   int *actor)
{
    struct troupe_stage *stage = caster->frames[want->frame].stage;
    int node = want->value.node;
    struct troupe_actor_spec spec;
    struct troupe_plan_part *part;
    enum troupe_status status = copies_room(caster);
    if (status == TROUPE_OK)
        status = troupe_copy_part_create(caster->plan, node, memory_of(caster, want->value),
                                         want->memory, &part, &spec);
    if (status != TROUPE_OK)
        return status;
    spec.priority = caster->height[node];
    struct troupe_cast_copy *copy = &caster->copies[caster->copy_count];
    *copy = *want;
    status = troupe_plan_add(caster->plan, stage, part, &spec, &copy->actor);
    if (status == TROUPE_OK)
        status = troupe_stage_connect(stage, from, from_port, copy->actor, 0, 0);
    if (status != TROUPE_OK)
        return status;
    copy->next = caster->first_copy[node];
    caster->first_copy[node] = caster->copy_count++;
    *actor = copy->actor;
    return TROUPE_OK;
}

enum troupe_status troupe_cast_source_in(struct troupe_caster *caster, int frame,
                                         struct troupe_value value, int memory, int *actor,
                                         int *port)
{
    troupe_cast_source(caster, value, actor, port);
    if (caster->plan->session->runtime->accelerators.table.count == 0)
        return TROUPE_OK;
    value = value.port < 0 ? value : carried(caster->graph, value);
    if (value.port < 0 || memory_of(caster, value) == memory)
        return TROUPE_OK;
    int from = *actor, from_port = *port;
    *port = 0;
    for (int i = caster->first_copy ? caster->first_copy[value.node] : -1; i >= 0;
         i = caster->copies[i].next) {
        const struct troupe_cast_copy *copy = &caster->copies[i];
        if (copy->value.port == value.port && copy->frame == frame && copy->memory == memory) {
            *actor = copy->actor;
            return TROUPE_OK;
        }
    }
    struct troupe_cast_copy want = {.value = value, .frame = frame, .memory = memory};
    return copy_add(caster, &want, from, from_port, actor);
}
