/* What the watchdog prints about a stage that does not get on. It reads the running stage without
 * stopping it: what it says is a hint, each word of it true at some moment. */
#include <stdlib.h>

#include "actors/stage.h"
#include "base/memory.h"
#include "base/text.h"

/* Producers named for one actor. */
#define PRODUCERS_NAMED 4

static bool actor_has_fired(const struct troupe_actor *actor, uint64_t iteration)
{
    /* Relaxed: partner of the store in firing_finish; a hint. */
    return atomic_load_explicit(&troupe_actor_cell(actor, iteration)->finished,
                                memory_order_relaxed) == iteration + 1;
}

/* Whether the edge's token of this iteration of its consumer was sent. */
static bool edge_has_sent(const struct troupe_stage *stage, const struct troupe_edge *edge,
                          uint64_t iteration)
{
    return iteration < (uint64_t)edge->distance ||
           actor_has_fired(&stage->actors[edge->from], iteration - (uint64_t)edge->distance);
}

static void describe_waiting(const struct troupe_stage *stage, const int *incoming, const int *next,
                             int actor, uint64_t iteration, struct troupe_text *text)
{
    int named = 0, missing = 0;

    troupe_text_addf(text, "actor \"%s\" waits in iteration %llu for", stage->plans[actor].name,
                     (unsigned long long)iteration);
    for (int i = incoming[actor]; i >= 0; i = next[i]) {
        const struct troupe_edge *edge = &stage->edges[i];

        if (edge_has_sent(stage, edge, iteration))
            continue;
        missing++;
        if (named == PRODUCERS_NAMED)
            continue;
        troupe_text_addf(text, "%s \"%s\"", named++ > 0 ? "," : "", stage->plans[edge->from].name);
        if (edge->to_port >= 0)
            troupe_text_addf(text, " (input %d)", edge->to_port);
        if (edge->distance > 0)
            troupe_text_addf(text, " (of iteration %llu)",
                             (unsigned long long)(iteration - (uint64_t)edge->distance));
    }
    if (missing > named)
        troupe_text_addf(text, " and %d more", missing - named);
    troupe_text_add(text, "\n");
}

static void stage_describe(const struct troupe_stage *stage, const int *incoming, const int *next,
                           int limit, struct troupe_text *text)
{
    uint64_t iteration = troupe_stage_completed(stage);

    if (iteration >= troupe_stage_admitted(stage))
        return;
    for (int i = 0; i < stage->actor_count && limit > 0; i++) {
        int there = 0, missing = 0;

        if (actor_has_fired(&stage->actors[i], iteration))
            continue;
        for (int k = incoming[i]; k >= 0; k = next[k]) {
            if (edge_has_sent(stage, &stage->edges[k], iteration))
                there++;
            else
                missing++;
        }
        if (there == 0 && missing > 0)
            continue;
        limit--;
        if (missing > 0)
            describe_waiting(stage, incoming, next, i, iteration, text);
        else
            troupe_text_addf(text,
                             "actor \"%s\" has all its inputs in iteration %llu and has not "
                             "completed\n",
                             stage->plans[i].name, (unsigned long long)iteration);
    }
}

char *troupe_stage_describe_stall(const struct troupe_stage *stage, int limit)
{
    /* Each actor's incoming edges as a list. */
    int *incoming = troupe_calloc((size_t)stage->actor_count + 1, sizeof *incoming);
    int *next = troupe_calloc((size_t)stage->edge_count + 1, sizeof *next);
    struct troupe_text text;
    char *result = NULL;

    if (incoming != NULL && next != NULL) {
        for (int i = 0; i < stage->actor_count; i++)
            incoming[i] = -1;
        for (int i = stage->edge_count - 1; i >= 0; i--) {
            next[i] = incoming[stage->edges[i].to];
            incoming[stage->edges[i].to] = i;
        }
        troupe_text_init(&text);
        if (stage->pool != NULL)
            stage_describe(stage, incoming, next, limit, &text);
        result = troupe_text_take(&text);
        troupe_text_fini(&text);
    }
    free(incoming);
    free(next);
    return result;
}
