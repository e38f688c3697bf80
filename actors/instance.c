/* Instances: the memory of iterations in flight. Invariant: in a new or reset instance every cell
 * lacks exactly the tokens that will be sent to it. */
#include <stdlib.h>
#include <string.h>

#include "actors/stage.h"

struct troupe_firing *troupe_actor_cell(struct troupe_instance *instance, int actor,
                                        uint64_t iteration)
{
    const struct troupe_actor *of = instance->stage->actors[actor];
    const struct troupe_actor_rest *rest = &instance->stage->rest[actor];

    if (of->is_far)
        return troupe_far_cell(instance, of->cell, rest->stride, iteration & rest->slot_mask);
    return troupe_iteration_cell(troupe_instance_iteration(instance, iteration), of->cell);
}

static void cell_init(struct troupe_firing *cell, const struct troupe_actor *actor)
{
    cell->task.run = troupe_firing_run;
    cell->actor = actor;
    atomic_init(&cell->missing, actor->need);
}

static void groups_init(struct troupe_iteration *iteration, const struct troupe_actor *actor,
                        const struct troupe_actor_rest *rest)
{
    struct troupe_group *groups = (void *)((char *)iteration + (size_t)rest->groups * TROUPE_LINE);

    for (int i = 0; i < rest->group_count; i++) {
        groups[i].need = i + 1 < rest->group_count ? TROUPE_GROUP : rest->last_group_need;
        groups[i].cell = actor->cell;
        groups[i].cell_need = actor->need;
        atomic_init(&groups[i].missing, groups[i].need);
    }
}

static void iterations_init(struct troupe_instance *instance)
{
    const struct troupe_stage *stage = instance->stage;

    for (uint64_t slot = 0; slot <= stage->slot_mask; slot++) {
        struct troupe_iteration *iteration = troupe_instance_iteration(instance, slot);

        iteration->instance = instance;
        for (int i = 0; i < stage->actor_count; i++) {
            if (stage->actors[i]->is_far)
                continue;
            cell_init(troupe_iteration_cell(iteration, stage->actors[i]->cell), stage->actors[i]);
            groups_init(iteration, stage->actors[i], &stage->rest[i]);
        }
    }
}

/* The first iterations get no token over an edge with a distance: it counts as arrived. */
static void early_tokens_arrive(struct troupe_instance *instance)
{
    const struct troupe_stage *stage = instance->stage;

    for (int i = 0; i < stage->early_count; i++) {
        const struct troupe_edge *edge = &stage->edges[stage->early_edges[i]];

        for (int early = 0; early < edge->distance; early++)
            /* Relaxed: no other thread uses the instance. */
            atomic_fetch_sub_explicit(
                &troupe_actor_cell(instance, edge->to, (uint64_t)early)->missing, 1,
                memory_order_relaxed);
    }
}

static void far_cells_init(struct troupe_instance *instance)
{
    const struct troupe_stage *stage = instance->stage;

    for (int i = 0; i < stage->far_count; i++) {
        int actor = stage->far_actors[i];

        for (uint64_t slot = 0; slot <= stage->rest[actor].slot_mask; slot++)
            cell_init(troupe_actor_cell(instance, actor, slot), stage->actors[actor]);
    }
}

enum troupe_status troupe_instance_create(struct troupe_stage *stage, struct troupe_instance **out)
{
    size_t results = (size_t)stage->result_count * sizeof(struct troupe_result);
    size_t bytes = sizeof(struct troupe_instance) + stage->instance_lines * TROUPE_LINE;
    struct troupe_instance *instance;

    bytes += (results + TROUPE_LINE - 1) / TROUPE_LINE * TROUPE_LINE;
    instance = aligned_alloc(TROUPE_LINE, bytes);
    if (instance == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu bytes of mailboxes",
                                  bytes);
    memset(instance, 0, bytes);
    instance->stage = stage;
    pthread_mutex_init(&instance->lock, NULL);
    instance->results = (void *)(instance->lines + stage->instance_lines * TROUPE_LINE);
    for (int i = 0; i < stage->result_count; i++)
        instance->results[i].token = &troupe_payload_dead;
    iterations_init(instance);
    far_cells_init(instance);
    early_tokens_arrive(instance);
    *out = instance;
    return TROUPE_OK;
}

static void cell_drop_tokens(struct troupe_firing *cell)
{
    for (int port = 0; port < cell->actor->input_count; port++) {
        troupe_payload_unref(cell->tokens[port]);
        cell->tokens[port] = NULL;
    }
}

/* Drops the tokens that lie in far cells for iterations that never came. */
static void far_cells_drop_tokens(struct troupe_instance *instance)
{
    const struct troupe_stage *stage = instance->stage;

    for (int i = 0; i < stage->far_count; i++)
        for (uint64_t slot = 0; slot <= stage->rest[stage->far_actors[i]].slot_mask; slot++)
            cell_drop_tokens(troupe_actor_cell(instance, stage->far_actors[i], slot));
}

void troupe_instance_reset(struct troupe_instance *instance)
{
    const struct troupe_stage *stage = instance->stage;

    far_cells_drop_tokens(instance);
    for (int i = 0; i < stage->far_count; i++) {
        int actor = stage->far_actors[i];

        for (uint64_t slot = 0; slot <= stage->rest[actor].slot_mask; slot++) {
            struct troupe_firing *cell = troupe_actor_cell(instance, actor, slot);

            /* Relaxed: no other thread uses the instance. */
            atomic_store_explicit(&cell->missing, stage->actors[actor]->need, memory_order_relaxed);
            atomic_store_explicit(&cell->dead, false, memory_order_relaxed);
        }
    }
    early_tokens_arrive(instance);
    instance->caller = NULL;
    instance->end = 0;
    /* Relaxed: as above. */
    atomic_store_explicit(&instance->admitted, 0, memory_order_relaxed);
    atomic_store_explicit(&instance->completed, 0, memory_order_relaxed);
}

/* Drops what lies in cells of iterations that were admitted and never completed. */
static void iterations_drop_tokens(struct troupe_instance *instance)
{
    const struct troupe_stage *stage = instance->stage;

    for (uint64_t slot = 0; slot <= stage->slot_mask; slot++)
        for (int i = 0; i < stage->actor_count; i++)
            if (!stage->actors[i]->is_far)
                cell_drop_tokens(troupe_actor_cell(instance, i, slot));
}

void troupe_instance_destroy(struct troupe_instance *instance)
{
    if (instance == NULL)
        return;
    far_cells_drop_tokens(instance);
    iterations_drop_tokens(instance);
    for (int i = 0; i < instance->stage->result_count; i++)
        troupe_payload_unref(instance->results[i].token);
    pthread_mutex_destroy(&instance->lock);
    free(instance);
}
