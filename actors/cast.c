/* The cast: checks a description, and lays it out for its pool. Invariant: a stage whose cast is
 * refused is as before, and may be completed and cast again. */
#include <stdlib.h>
#include <string.h>

#include "actors/stage.h"
#include "base/memory.h"
#include "base/text.h"

/* Names of a cycle that fit a message. */
#define CYCLE_NAMES 16

static enum troupe_status cast_check_inputs(const struct troupe_stage *stage)
{
    for (int i = 0; i < stage->actor_count; i++)
        for (int port = 0; port < stage->plans[i].spec.input_count; port++)
            if (!stage->plans[i].connected[port])
                return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                          "actor \"%s\": input %d has no edge; each input needs "
                                          "one",
                                          stage->plans[i].name, port);
    return TROUPE_OK;
}

/* Among actors that wait for each other: follows waits until an actor comes twice. `waits_for`
 * holds for each actor one that it waits for. */
static enum troupe_status cycle_fail(const struct troupe_stage *stage, const int *waits_for,
                                     int start)
{
    struct troupe_text text;
    int at = start, names = 0;
    enum troupe_status status;

    for (int i = 0; i < stage->actor_count; i++)
        at = waits_for[at];
    start = at;
    troupe_text_init(&text);
    do {
        troupe_text_addf(&text, "\"%s\" <- ", stage->plans[at].name);
        at = waits_for[at];
    } while (at != start && ++names < CYCLE_NAMES);
    troupe_text_addf(&text, "%s\"%s\"", at != start ? "... <- " : "", stage->plans[start].name);
    status = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                "a cycle of distance 0: %s; one of its edges needs a distance of "
                                "1 or more",
                                text.failed ? "?" : text.data);
    troupe_text_fini(&text);
    return status;
}

/* Kahn's topological sort over the edges of distance 0. `first` and `order` list each actor's
 * outgoing edges. */
static enum troupe_status cast_check_cycles(const struct troupe_stage *stage, const int *first,
                                            const int *order)
{
    size_t count = (size_t)stage->actor_count;
    int *missing = troupe_calloc(count + 1, sizeof *missing);
    int *queue = troupe_calloc(count + 1, sizeof *queue);
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    int tail = 0;

    if (missing == NULL || queue == NULL)
        goto free_arrays;
    for (int i = 0; i < stage->edge_count; i++)
        missing[stage->edges[i].to] += stage->edges[i].distance == 0;
    for (int i = 0; i < stage->actor_count; i++)
        if (missing[i] == 0)
            queue[tail++] = i;
    for (int head = 0; head < tail; head++) {
        for (int i = first[queue[head]]; i < first[queue[head] + 1]; i++) {
            const struct troupe_edge *edge = &stage->edges[order[i]];

            if (edge->distance == 0 && --missing[edge->to] == 0)
                queue[tail++] = edge->to;
        }
    }
    status = TROUPE_OK;
    if (tail < stage->actor_count) {
        /* The queue's memory now holds, for each actor left over, one that it waits for. */
        int stuck = 0;

        for (int i = 0; i < stage->edge_count; i++)
            if (stage->edges[i].distance == 0 && missing[stage->edges[i].from] > 0)
                queue[stage->edges[i].to] = stage->edges[i].from;
        while (missing[stuck] == 0)
            stuck++;
        status = cycle_fail(stage, queue, stuck);
    }
free_arrays:
    free(queue);
    free(missing);
    return status;
}

/* Lists the edges by the actor they leave: order[first[a]] to order[first[a + 1] - 1]. */
static void cast_sort_edges(const struct troupe_stage *stage, int *first, int *order)
{
    memset(first, 0, ((size_t)stage->actor_count + 2) * sizeof *first);
    for (int i = 0; i < stage->edge_count; i++)
        first[stage->edges[i].from + 2]++;
    for (int i = 2; i <= stage->actor_count + 1; i++)
        first[i] += first[i - 1];
    for (int i = 0; i < stage->edge_count; i++)
        order[first[stage->edges[i].from + 1]++] = i;
}

/* Takes a failed layout back, so that the stage is as before the cast. */
static void cast_undo(struct troupe_stage *stage)
{
    troupe_arena_fini(&stage->arena);
    troupe_arena_init(&stage->arena);
    stage->bytes = 0;
    stage->actors = NULL;
    stage->source_count = stage->far_count = stage->early_count = 0;
    stage->sink_count = 0;
}

/* A frame gets its instances when its actors fire; any other stage has one. */
static enum troupe_status cast_instance(struct troupe_stage *stage)
{
    if (stage->is_frame)
        return TROUPE_OK;
    stage->bytes += stage->instance_lines * TROUPE_LINE;
    return troupe_instance_create(stage, &stage->root);
}

enum troupe_status troupe_stage_cast(struct troupe_stage *stage, struct troupe_pool *pool)
{
    enum troupe_status status;
    int *first, *order;

    if (pool == NULL || stage->pool != NULL)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION, "a stage is cast once, onto a pool");
    status = cast_check_inputs(stage);
    if (status != TROUPE_OK)
        return status;
    first = troupe_calloc((size_t)stage->actor_count + 2, sizeof *first);
    order = troupe_calloc((size_t)stage->edge_count + 1, sizeof *order);
    if (first == NULL || order == NULL) {
        status = TROUPE_RESOURCE_EXHAUSTED;
        goto free_lists;
    }
    cast_sort_edges(stage, first, order);
    status = cast_check_cycles(stage, first, order);
    if (status == TROUPE_OK)
        status = troupe_stage_lay_out(stage, first, order);
    if (status == TROUPE_OK)
        status = cast_instance(stage);
    if (status == TROUPE_OK)
        stage->pool = pool;
    else
        cast_undo(stage);
free_lists:
    free(order);
    free(first);
    return status;
}
