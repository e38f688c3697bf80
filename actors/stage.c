/* Describing a stage: actors and edges, each checked when it is added. Invariant: an edge names
 * existing actors and ports, and no input port has two. */
#include <stdlib.h>
#include <string.h>

#include "actors/stage.h"
#include "base/memory.h"

enum troupe_status troupe_pool_start(int workers, struct troupe_pool **out)
{
    struct troupe_pool_options options = {.workers = workers};

    if (workers == 0)
        options.workers = troupe_pool_default_workers(1);
    return troupe_pool_create(&options, out);
}

void troupe_pool_stop(struct troupe_pool *pool)
{
    troupe_pool_destroy(pool);
}

enum troupe_status troupe_stage_create(int window, struct troupe_stage **out)
{
    struct troupe_stage *stage;

    if (window < 1 || window > TROUPE_STAGE_MAX_WINDOW)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a window holds 1 to %d iterations, not %d",
                                  TROUPE_STAGE_MAX_WINDOW, window);
    stage = troupe_calloc(1, sizeof *stage);
    if (stage == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    stage->window = window;
    troupe_arena_init(&stage->arena);
    atomic_init(&stage->poison, UINT64_MAX);
    atomic_init(&stage->idle, 1);
    pthread_mutex_init(&stage->lock, NULL);
    pthread_mutex_init(&stage->failure_lock, NULL);
    *out = stage;
    return TROUPE_OK;
}

void troupe_stage_destroy(struct troupe_stage *stage)
{
    if (stage == NULL)
        return;
    troupe_instance_destroy(stage->root);
    while (stage->free != NULL) {
        struct troupe_instance *next = stage->free->next;

        troupe_instance_destroy(stage->free);
        stage->free = next;
    }
    for (int i = 0; i < stage->actor_count; i++) {
        free(stage->plans[i].name);
        free(stage->plans[i].connected);
        free(stage->plans[i].own_context);
    }
    free(stage->plans);
    free(stage->edges);
    troupe_arena_fini(&stage->arena);
    pthread_mutex_destroy(&stage->failure_lock);
    pthread_mutex_destroy(&stage->lock);
    free(stage);
}

static enum troupe_status spec_check(const struct troupe_actor_spec *spec)
{
    if (spec->name == NULL || spec->behave == NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "an actor needs a name and a behaviour");
    if (spec->input_count < 0 || spec->input_count > TROUPE_STAGE_MAX_PORTS ||
        spec->output_count < 0 || spec->output_count > TROUPE_STAGE_MAX_PORTS)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "actor \"%s\": 0 to %d inputs and outputs, not %d and %d",
            spec->name, TROUPE_STAGE_MAX_PORTS, spec->input_count, spec->output_count);
    return TROUPE_OK;
}

static enum troupe_status stage_reserve_actor(struct troupe_stage *stage)
{
    int capacity = stage->actor_capacity == 0 ? 16 : stage->actor_capacity * 2;
    struct troupe_actor_plan *plans;

    if (stage->actor_count < stage->actor_capacity)
        return TROUPE_OK;
    if (stage->actor_count >= INT32_MAX / 4)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "too many actors in one stage");
    plans = troupe_reallocarray(stage->plans, (size_t)capacity, sizeof *plans);
    if (plans == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    stage->plans = plans;
    stage->actor_capacity = capacity;
    return TROUPE_OK;
}

enum troupe_status troupe_stage_add(struct troupe_stage *stage,
                                    const struct troupe_actor_spec *spec, int *out)
{
    struct troupe_actor_plan plan = {.spec = *spec};
    enum troupe_status status = spec_check(spec);

    if (status != TROUPE_OK)
        return status;
    if (stage->pool != NULL)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "actor \"%s\": a stage takes no actor after its cast",
                                  spec->name);
    status = stage_reserve_actor(stage);
    if (status != TROUPE_OK)
        return status;
    plan.name = troupe_strdup(spec->name);
    plan.connected = troupe_calloc((size_t)spec->input_count + 1, sizeof *plan.connected);
    if (plan.name == NULL || plan.connected == NULL) {
        free(plan.name);
        free(plan.connected);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    plan.spec.name = plan.name;
    stage->plans[stage->actor_count] = plan;
    *out = stage->actor_count++;
    return TROUPE_OK;
}

static enum troupe_status edge_check(const struct troupe_stage *stage,
                                     const struct troupe_edge *edge)
{
    const struct troupe_actor_plan *from, *to;

    if (stage->pool != NULL)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "a stage takes no edge after its cast");
    if (edge->from < 0 || edge->from >= stage->actor_count || edge->to < 0 ||
        edge->to >= stage->actor_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "an edge from actor %d to actor %d: there are %d actors",
                                  edge->from, edge->to, stage->actor_count);
    from = &stage->plans[edge->from];
    to = &stage->plans[edge->to];
    if (edge->from_port < -1 || edge->from_port >= from->spec.output_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "actor \"%s\" has %d outputs: no output %d", from->name,
                                  from->spec.output_count, edge->from_port);
    if (edge->to_port < -1 || edge->to_port >= to->spec.input_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "actor \"%s\" has %d inputs: no input %d", to->name,
                                  to->spec.input_count, edge->to_port);
    if (edge->to_port >= 0 && to->connected[edge->to_port])
        return troupe_status_fail(TROUPE_ALREADY_EXISTS,
                                  "input %d of actor \"%s\" has an edge already: each takes one",
                                  edge->to_port, to->name);
    if (edge->distance < 0 || edge->distance > TROUPE_STAGE_MAX_DISTANCE)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "the edge from \"%s\" to \"%s\": a distance of 0 to %d, not %d",
                                  from->name, to->name, TROUPE_STAGE_MAX_DISTANCE, edge->distance);
    return TROUPE_OK;
}

static enum troupe_status stage_add_edge(struct troupe_stage *stage, struct troupe_edge edge)
{
    enum troupe_status status = edge_check(stage, &edge);

    if (status != TROUPE_OK)
        return status;
    if (stage->edge_count == stage->edge_capacity) {
        int capacity = stage->edge_capacity == 0 ? 64 : stage->edge_capacity * 2;
        struct troupe_edge *edges;

        if (stage->edge_count >= INT32_MAX / 4)
            return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "too many edges in one stage");
        edges = troupe_reallocarray(stage->edges, (size_t)capacity, sizeof *edges);
        if (edges == NULL)
            return TROUPE_RESOURCE_EXHAUSTED;
        stage->edges = edges;
        stage->edge_capacity = capacity;
    }
    stage->edges[stage->edge_count++] = edge;
    if (edge.to_port >= 0)
        stage->plans[edge.to].connected[edge.to_port] = true;
    return TROUPE_OK;
}

enum troupe_status troupe_stage_connect(struct troupe_stage *stage, int from, int from_port, int to,
                                        int to_port, int distance)
{
    struct troupe_edge edge = {.from = from,
                               .from_port = from_port,
                               .to = to,
                               .to_port = to_port,
                               .distance = distance,
                               .argument = -1};

    return stage_add_edge(stage, edge);
}

enum troupe_status troupe_stage_connect_loop(struct troupe_stage *frame, int from, int from_port,
                                             int to, int to_port, int argument)
{
    struct troupe_edge edge = {.from = from,
                               .from_port = from_port,
                               .to = to,
                               .to_port = to_port,
                               .distance = 1,
                               .argument = argument};

    if (from_port < 0 || to_port < 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a loop's edge goes from an output to an input");
    if (argument < 0 || argument >= frame->argument_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a frame with %d arguments has no argument %d",
                                  frame->argument_count, argument);
    return stage_add_edge(frame, edge);
}

void troupe_stage_set_hooks(struct troupe_stage *stage, const struct troupe_stage_hooks *hooks)
{
    stage->hooks = *hooks;
}

void troupe_stage_size_get(const struct troupe_stage *stage, struct troupe_stage_size *out)
{
    out->bytes = stage->bytes;
    out->actors = stage->actor_count;
    out->edges = stage->edge_count;
}
