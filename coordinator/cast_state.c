/* The order of state, as edges without tokens. Invariant: a variable's read comes before its
 * updates in a step, updates follow one another in the order of nodes, and the next step reads what
 * the last one wrote. What happens inside a frame happens, for its parent, where the frame is. */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/cast.h"

static int parent_of(const struct troupe_caster *caster, int frame)
{
    return caster->plan->partition.frames->frames[frame].parent;
}

static enum troupe_status update_root(struct troupe_caster *caster, int actor, int owner)
{
    int before =
        caster->last_update[owner] >= 0 ? caster->last_update[owner] : caster->reader[owner];
    enum troupe_status status = TROUPE_OK;
    if (before >= 0)
        status = troupe_stage_connect(caster->plan->stage, before, -1, actor, -1, 0);
    if (caster->first_update[owner] < 0)
        caster->first_update[owner] = actor;
    caster->last_update[owner] = actor;
    return status;
}

/* The order of a variable in a frame; NULL without memory. A loop updates few variables. */
static struct troupe_cast_order *order_of(struct troupe_cast_frame *frame, int owner)
{
    for (int i = 0; i < frame->order_count; i++)
        if (frame->orders[i].owner == owner)
            return &frame->orders[i];
    if (frame->order_count == frame->order_capacity) {
        int capacity = frame->order_capacity ? 2 * frame->order_capacity : 8;
        struct troupe_cast_order *grown =
            troupe_reallocarray(frame->orders, (size_t)capacity, sizeof(*grown));
        if (!grown)
            return NULL;
        frame->orders = grown;
        frame->order_capacity = capacity;
    }
    frame->orders[frame->order_count] = (struct troupe_cast_order){owner, -1, -1};
    return &frame->orders[frame->order_count++];
}

enum troupe_status troupe_cast_update(struct troupe_caster *caster, int frame, int actor, int owner)
{
    enum troupe_status status = TROUPE_OK;
    /* A function that calls itself names no variable (graph/splice.h): these frames are loops. */
    for (; frame > 0 && status == TROUPE_OK; frame = parent_of(caster, frame)) {
        struct troupe_cast_order *order = order_of(&caster->frames[frame], owner);
        if (!order)
            return TROUPE_RESOURCE_EXHAUSTED;
        if (order->last == actor)
            return TROUPE_OK;
        int before = order->last;
        order->last = actor;
        if (before >= 0)
            return troupe_stage_connect(caster->frames[frame].stage, before, -1, actor, -1, 0);
        order->first = actor;
        actor = caster->frames[frame].actor;
    }
    return update_root(caster, actor, owner);
}

enum troupe_status troupe_cast_in_order(struct troupe_caster *caster, int frame, int actor)
{
    enum troupe_status status =
        troupe_stage_connect(caster->frames[frame].stage, actor, -1, actor, -1, 1);
    /* Calls of functions are in order themselves. */
    for (; frame > 0 && status == TROUPE_OK && !caster->frames[frame].is_ordered &&
           !troupe_cast_function(caster, frame);
         frame = parent_of(caster, frame)) {
        struct troupe_stage *around = caster->frames[parent_of(caster, frame)].stage;
        caster->frames[frame].is_ordered = true;
        actor = caster->frames[frame].actor;
        status = troupe_stage_connect(around, actor, -1, actor, -1, 1);
    }
    return status;
}

/* From the last update of a step to the next read: by `staleness` steps later than it might be.
 * Then updates have an edge of their own, as the read orders them no longer. */
static enum troupe_status connect_next_step(struct troupe_caster *caster, int owner)
{
    struct troupe_stage *stage = caster->plan->stage;
    int update = caster->last_update[owner], reader = caster->reader[owner];
    int staleness = caster->plan->signature.staleness;
    enum troupe_status status = TROUPE_OK;
    if (reader >= 0)
        status = troupe_stage_connect(stage, update, -1, reader, -1, 1 + staleness);
    if (status == TROUPE_OK && (reader < 0 || staleness > 0))
        status = troupe_stage_connect(stage, update, -1, caster->first_update[owner], -1, 1);
    return status;
}

enum troupe_status troupe_cast_next_step(struct troupe_caster *caster)
{
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < caster->graph->node_count && status == TROUPE_OK; i++)
        if (caster->last_update[i] >= 0)
            status = connect_next_step(caster, i);
    for (int i = 1; i < caster->plan->partition.frames->count; i++) {
        const struct troupe_cast_frame *frame = &caster->frames[i];
        for (int k = 0; k < frame->order_count && status == TROUPE_OK; k++)
            status = troupe_stage_connect(frame->stage, frame->orders[k].last, -1,
                                          frame->orders[k].first, -1, 1);
    }
    return status;
}
