/* Inside of the engine, for the files of this folder: the description of a stage, and what the
 * cast makes of it. */
#ifndef TROUPE_ACTORS_STAGE_H
#define TROUPE_ACTORS_STAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "actors/actors.h"
#include "base/arena.h"

/* Bounds that keep the arena's arithmetic far from overflow. */
#define TROUPE_STAGE_MAX_WINDOW   (1 << 20)
#define TROUPE_STAGE_MAX_DISTANCE (1 << 20)
#define TROUPE_STAGE_MAX_PORTS    (1 << 20)

/* One iteration of one actor: what has arrived for it. Also the task that fires it and the
 * firing that its behaviour sees. The inputs and then the outputs follow the structure. */
struct troupe_firing {
    struct troupe_task task;
    struct troupe_actor *actor;
    uint64_t iteration;         /* set by whoever found it ready */
    _Atomic(uint64_t) finished; /* 1 + the newest iteration that this cell has fired */
    bool *deferred;             /* a local of the code that called the behaviour */
    _Atomic(int32_t) missing;   /* inputs and signals still to come */
    uint32_t slot;              /* which of the actor's cells this is */
    _Atomic(bool) dead;         /* a dead token has arrived */
    bool is_dead;               /* what the behaviour is told */
    struct troupe_payload *tokens[];
};

/* Where a token goes, copied from the consumer so that sending touches nothing else of it. */
struct troupe_mailbox {
    char *cells;
    uint32_t stride, slots; /* bytes of a cell; cells */
    int32_t from_port, to_port;
    uint32_t distance;
    int32_t need; /* of the consumer */
};

struct troupe_actor {
    struct troupe_stage *stage;
    troupe_behaviour_fn *behave;
    void *context;
    int64_t priority;
    char *cells;
    struct troupe_mailbox *mailboxes; /* the far ones first, then those of distance 0 */
    int *consumers;                   /* of each output port */
    int32_t mailbox_count;
    int32_t input_count, output_count;
    int32_t need; /* tokens and signals of one iteration, the admission's among them */
    uint32_t stride, slots;
    int number;
    bool takes_dead, is_sink, is_source;
};

struct troupe_edge {
    int from, from_port, to, to_port, distance;
};

struct troupe_actor_plan {
    char *name;
    struct troupe_actor_spec spec;
    bool *connected; /* each input port */
};

struct troupe_iteration {
    _Alignas(64) _Atomic(int64_t) sinks_left;
    _Atomic(bool) failed;
    bool done; /* under the stage's lock */
};

struct troupe_stage {
    /* The description. */
    int window;
    struct troupe_actor_plan *plans;
    struct troupe_edge *edges;
    int actor_count, actor_capacity, edge_count, edge_capacity;
    struct troupe_stage_hooks hooks;

    /* The cast. */
    struct troupe_pool *pool; /* NULL before it */
    struct troupe_arena arena;
    size_t bytes;
    struct troupe_actor *actors;
    struct troupe_iteration *iterations; /* `window` of them */
    struct troupe_actor **sources;       /* by rising priority */
    int source_count;
    int64_t sink_count;

    /* The run. `poison` and `failed_iterations` are read by every firing. */
    _Alignas(64) _Atomic(uint64_t) poison;
    _Atomic(int) failed_iterations; /* incomplete ones */
    _Alignas(64) pthread_mutex_t lock;
    bool advancing; /* somebody is in stage_advance; it sees what others change */
    uint64_t end;
    _Atomic(uint64_t) admitted, completed; /* written under the lock */
    _Atomic(int) idle;                     /* 1: completed == end */

    pthread_mutex_t failure_lock;
    enum troupe_status failure; /* of the earliest failed iteration since the last wait */
    uint64_t failure_iteration;
    char failure_message[TROUPE_MESSAGE_MAX];
};

/* Firings found ready by one piece of work: the best is kept, the others are pushed. */
struct troupe_ready {
    struct troupe_worker *worker; /* of the calling thread, or NULL */
    struct troupe_firing *best;
};

struct troupe_firing *troupe_actor_cell(const struct troupe_actor *actor, uint64_t iteration);

/* fire.c. The task of a cell, and the admission's signal to a source. */
void troupe_firing_run(struct troupe_task *task, struct troupe_worker *worker);
void troupe_actor_admit(struct troupe_actor *actor, uint64_t iteration, struct troupe_ready *ready);
/* Pushes what is ready. */
void troupe_ready_flush(struct troupe_ready *ready, struct troupe_pool *pool);

/* run.c. The last sink of an iteration has fired: the stage may be gone when it returns and no
 * ready firing of it is held. Records a failure. */
void troupe_stage_finish_iteration(struct troupe_stage *stage, uint64_t iteration,
                                   struct troupe_ready *ready);
void troupe_stage_fail(struct troupe_stage *stage, const struct troupe_actor *actor,
                       uint64_t iteration, enum troupe_status status, const char *message);

#endif
