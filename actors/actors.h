/* What the coordinator uses of the engine beyond include/troupe/actor.h. */
#ifndef TROUPE_ACTORS_ACTORS_H
#define TROUPE_ACTORS_ACTORS_H

#include <stddef.h>
#include <stdint.h>

#include "scheduler/scheduler.h"
#include "troupe/actor.h"

/* Called once when an iteration first fails, from the worker that knows (never two at a time for
 * one stage): the context of the actor, which may be one of a frame inside, and what it said. For
 * telling other ranks. */
typedef void troupe_stage_failed_fn(void *context, uint64_t iteration, void *actor_context,
                                    enum troupe_status status, const char *message);
/* Called after an iteration is complete (in order of iterations), before the next is admitted. */
typedef void troupe_stage_completed_fn(void *context, uint64_t iteration);
struct troupe_stage_hooks {
    troupe_stage_failed_fn *failed;       /* or NULL */
    troupe_stage_completed_fn *completed; /* or NULL */
    void *context;
};
/* Before the cast. */
void troupe_stage_set_hooks(struct troupe_stage *stage, const struct troupe_stage_hooks *hooks);

/* From iteration `first` on every actor fires dead (its behaviour is not called, unless it takes
 * dead tokens): how a failed loop drains. UINT64_MAX: none. Any thread. */
void troupe_stage_poison(struct troupe_stage *stage, uint64_t first);
/* Stops admitting iterations that are not admitted yet (sets the end to what is admitted) and
 * returns that end. troupe_stage_admit may raise it again. Any thread. */
uint64_t troupe_stage_hold(struct troupe_stage *stage);

/* Bytes of the arena; actors; edges. */
struct troupe_stage_size {
    size_t bytes;
    int actors, edges;
};
void troupe_stage_size_get(const struct troupe_stage *stage, struct troupe_stage_size *out);

/* Describes each actor that has not fired in the oldest incomplete iteration although some of its
 * inputs are there, with the producers it waits for, one a line, at most `limit`: for the watchdog.
 * free() frees; NULL without memory. */
char *troupe_stage_describe_stall(const struct troupe_stage *stage, int limit);

/* A number that changes when firings complete, those inside of frames included (but for a chance
 * of 2^-64). Takes time in proportion to the actors and iterations in flight. Any thread. */
uint64_t troupe_stage_activity(const struct troupe_stage *stage);
/* Calls `visit` for each actor and iteration in flight whose inputs are all there, with the context
 * of the actor, NULL for a frame (whose inside is not looked into): `is_complete` says that it has
 * fired, else it fires, or is deferred. False without memory. Exact while nothing fires. */
typedef void troupe_stage_begun_fn(void *context, void *actor_context, uint64_t iteration,
                                   bool is_complete);
TROUPE_MUST_USE bool troupe_stage_each_begun(const struct troupe_stage *stage,
                                             troupe_stage_begun_fn *visit, void *context);

#endif
