/* Whether a stage gets on, and which of its firings have begun: for the watchdog and for finding
 * deadlocks. It reads the running stage without stopping it: exact only while nothing fires. */
#include <stdlib.h>

#include "actors/stage.h"
#include "base/hash.h"
#include "base/memory.h"

/* More kinds of frames than these inside of one stage are not looked into. */
#define FRAMES_MAX 256
/* FNV's, here for whole numbers at a time: there are many. */
#define HASH_PRIME UINT64_C(1099511628211)

struct frames {
    struct troupe_stage *stages[FRAMES_MAX];
    int count;
};

static void frames_add(struct frames *frames, struct troupe_stage *stage)
{
    for (int i = 0; i < frames->count; i++)
        if (frames->stages[i] == stage)
            return;
    if (frames->count < FRAMES_MAX)
        frames->stages[frames->count++] = stage;
}

static bool actor_has_fired(struct troupe_instance *instance, int actor, uint64_t iteration)
{
    const struct troupe_firing *cell = troupe_actor_cell(instance, actor, iteration);

    /* Relaxed: partner of the store in firing_end. */
    return atomic_load_explicit(&cell->fired, memory_order_relaxed) == (uint16_t)(iteration + 1);
}

/* What has fired, and what has arrived: in an instance that is used again cells look as if they had
 * fired already. */
static uint64_t cell_state(struct troupe_instance *instance, int actor, uint64_t iteration)
{
    const struct troupe_firing *cell = troupe_actor_cell(instance, actor, iteration);

    /* Relaxed: hints. */
    return (uint64_t)atomic_load_explicit(&cell->fired, memory_order_relaxed) << 32 ^
           (uint32_t)atomic_load_explicit(&cell->missing, memory_order_relaxed);
}

static uint64_t instance_hash(struct troupe_instance *instance, uint64_t hash)
{
    /* Acquire: partners of the releases in run.c. */
    uint64_t iteration = atomic_load_explicit(&instance->completed, memory_order_acquire);
    uint64_t admitted = atomic_load_explicit(&instance->admitted, memory_order_acquire);

    hash = troupe_hash_u64(troupe_hash_u64(hash, iteration), admitted);
    for (; iteration < admitted; iteration++)
        for (int i = 0; i < instance->stage->actor_count; i++)
            hash = (hash ^ cell_state(instance, i, iteration)) * HASH_PRIME;
    return hash;
}

uint64_t troupe_stage_activity(const struct troupe_stage *stage)
{
    struct frames frames = {.count = 0};
    uint64_t hash = TROUPE_HASH_START;

    if (stage->root == NULL)
        return 0;
    hash = instance_hash(stage->root, hash);
    for (int i = 0; i < stage->actor_count; i++)
        if (stage->plans[i].body != NULL)
            frames_add(&frames, stage->plans[i].body);
    for (int f = 0; f < frames.count; f++) {
        struct troupe_stage *body = frames.stages[f];

        for (int i = 0; i < body->actor_count; i++)
            if (body->plans[i].body != NULL)
                frames_add(&frames, body->plans[i].body);
        pthread_mutex_lock(&body->lock);
        for (struct troupe_instance *inner = body->used; inner != NULL; inner = inner->next)
            hash = instance_hash(inner, hash);
        pthread_mutex_unlock(&body->lock);
    }
    return hash;
}

/* Counts, by actor, the tokens of an iteration that have not been sent. */
static void count_missing(const struct troupe_stage *stage, uint64_t iteration, int *missing)
{
    for (int i = 0; i < stage->actor_count; i++)
        missing[i] = 0;
    for (int i = 0; i < stage->edge_count; i++) {
        const struct troupe_edge *edge = &stage->edges[i];

        if (iteration >= (uint64_t)edge->distance &&
            !actor_has_fired(stage->root, edge->from, iteration - (uint64_t)edge->distance))
            missing[edge->to]++;
    }
}

bool troupe_stage_each_begun(const struct troupe_stage *stage, troupe_stage_begun_fn *visit,
                             void *context)
{
    int *missing = troupe_calloc((size_t)stage->actor_count + 1, sizeof *missing);
    uint64_t admitted = troupe_stage_admitted(stage);

    if (missing == NULL)
        return false;
    for (uint64_t at = troupe_stage_completed(stage); at < admitted; at++) {
        count_missing(stage, at, missing);
        for (int i = 0; i < stage->actor_count; i++) {
            bool is_complete = actor_has_fired(stage->root, i, at);

            if (is_complete || missing[i] == 0)
                visit(context, stage->plans[i].body == NULL ? stage->plans[i].spec.context : NULL,
                      at, is_complete);
        }
    }
    free(missing);
    return true;
}
