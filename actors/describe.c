/* What the watchdog prints about a stage that does not get on. It reads the running stage without
 * stopping it: what it says is a hint, each word of it true at some moment. */
#include <stdlib.h>

#include "actors/stage.h"
#include "base/memory.h"
#include "base/text.h"

/* Producers named for one actor. */
#define PRODUCERS_NAMED 4

/* Each actor's incoming edges as a list. */
struct incoming {
    int *first, *next; /* -1: no more */
};

/* What is being described, and how many lines there is room for. */
struct description {
    struct troupe_text *text;
    int limit;
};

static bool actor_has_fired(struct troupe_instance *instance, int actor, uint64_t iteration)
{
    const struct troupe_firing *cell = troupe_actor_cell(instance, actor, iteration);

    /* Relaxed: partner of the store in firing_end; a hint. */
    return atomic_load_explicit(&cell->fired, memory_order_relaxed) == (uint16_t)(iteration + 1);
}

/* Whether the edge's token of this iteration of its consumer was sent. */
static bool edge_has_sent(struct troupe_instance *instance, const struct troupe_edge *edge,
                          uint64_t iteration)
{
    return iteration < (uint64_t)edge->distance ||
           actor_has_fired(instance, edge->from, iteration - (uint64_t)edge->distance);
}

static void describe_waiting(struct troupe_instance *instance, const struct incoming *incoming,
                             int actor, uint64_t iteration, struct troupe_text *text)
{
    const struct troupe_stage *stage = instance->stage;
    int named = 0, missing = 0;

    troupe_text_addf(text, "actor \"%s\" waits in iteration %llu for", stage->plans[actor].name,
                     (unsigned long long)iteration);
    for (int i = incoming->first[actor]; i >= 0; i = incoming->next[i]) {
        const struct troupe_edge *edge = &stage->edges[i];

        if (edge_has_sent(instance, edge, iteration))
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

static void stage_describe(const struct troupe_stage *stage, struct troupe_instance *instance,
                           struct description *description);

/* The instances of a frame that this firing waits for. */
static void describe_frame(struct troupe_instance *instance, int actor, uint64_t iteration,
                           struct description *description)
{
    struct troupe_stage *body = instance->stage->plans[actor].body;
    const struct troupe_firing *caller = troupe_actor_cell(instance, actor, iteration);

    /* Recursion: the lock is held already, and the outer firings say enough. */
    if (body == instance->stage)
        return;
    pthread_mutex_lock(&body->lock);
    for (struct troupe_instance *inner = body->used; inner != NULL; inner = inner->next)
        if (inner->caller == caller)
            stage_describe(body, inner, description);
    pthread_mutex_unlock(&body->lock);
}

static void describe_actor(struct troupe_instance *instance, const struct incoming *incoming,
                           int actor, uint64_t iteration, struct description *description)
{
    const struct troupe_actor_plan *plan = &instance->stage->plans[actor];
    int there = 0, missing = 0;

    if (actor_has_fired(instance, actor, iteration))
        return;
    for (int k = incoming->first[actor]; k >= 0; k = incoming->next[k]) {
        if (edge_has_sent(instance, &instance->stage->edges[k], iteration))
            there++;
        else
            missing++;
    }
    if (there == 0 && missing > 0)
        return;
    description->limit--;
    if (missing > 0)
        describe_waiting(instance, incoming, actor, iteration, description->text);
    else
        troupe_text_addf(description->text,
                         "actor \"%s\" has all its inputs in iteration %llu and has not "
                         "completed\n",
                         plan->name, (unsigned long long)iteration);
    if (missing == 0 && plan->body != NULL)
        describe_frame(instance, actor, iteration, description);
}

static void incoming_list(const struct troupe_stage *stage, struct incoming *incoming)
{
    for (int i = 0; i < stage->actor_count; i++)
        incoming->first[i] = -1;
    for (int i = stage->edge_count - 1; i >= 0; i--) {
        incoming->next[i] = incoming->first[stage->edges[i].to];
        incoming->first[stage->edges[i].to] = i;
    }
}

/* The oldest iteration in flight of an instance. */
static void stage_describe(const struct troupe_stage *stage, struct troupe_instance *instance,
                           struct description *description)
{
    /* Acquire: partners of the releases in run.c. */
    uint64_t iteration = atomic_load_explicit(&instance->completed, memory_order_acquire);
    uint64_t admitted = atomic_load_explicit(&instance->admitted, memory_order_acquire);
    struct incoming incoming = {
        .first = troupe_calloc((size_t)stage->actor_count + 1, sizeof(int)),
        .next = troupe_calloc((size_t)stage->edge_count + 1, sizeof(int)),
    };

    if (iteration < admitted && incoming.first != NULL && incoming.next != NULL) {
        incoming_list(stage, &incoming);
        for (int i = 0; i < stage->actor_count && description->limit > 0; i++)
            describe_actor(instance, &incoming, i, iteration, description);
    }
    free(incoming.first);
    free(incoming.next);
}

char *troupe_stage_describe_stall(const struct troupe_stage *stage, int limit)
{
    struct troupe_text text;
    struct description description = {.text = &text, .limit = limit};
    char *result;

    troupe_text_init(&text);
    if (stage->root != NULL)
        stage_describe(stage, stage->root, &description);
    result = troupe_text_take(&text);
    troupe_text_fini(&text);
    return result;
}
