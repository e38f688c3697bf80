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

/* Bounds that keep the layout's arithmetic far from overflow. */
#define TROUPE_STAGE_MAX_WINDOW   (1 << 20)
#define TROUPE_STAGE_MAX_DISTANCE (1 << 20)
#define TROUPE_STAGE_MAX_PORTS    (1 << 20)

/* The unit of the layout: a cache line, so that no two cells share one. */
#define TROUPE_LINE 64

/* One iteration of one actor: what has arrived for it. Also the task that fires it and the
 * firing that its behaviour sees. The inputs and then the outputs follow the structure. */
struct troupe_firing {
    struct troupe_task task; /* its `next` is free while it fires: see deferred_flag */
    const struct troupe_actor *actor;
    _Atomic(int32_t) missing; /* inputs and signals still to come */
    _Atomic(uint16_t) fired;  /* low bits of 1 + the newest iteration that it has fired: a hint */
    _Atomic(bool) dead;       /* a dead token has arrived */
    bool is_dead : 1;         /* what the behaviour is told */
    bool has_failed : 1;      /* of a firing that was completed elsewhere */
    struct troupe_payload *tokens[];
};

/* Where most tokens go: a cell of the same iteration, by its place there. Copied from the consumer
 * so that sending touches nothing else of it. */
struct troupe_mailbox {
    uint32_t cell; /* lines from the iteration's start */
    int32_t need;  /* of the consumer; 0: `cell` is the place of a group that leads to it */
    int32_t from_port, to_port;
};

/* Arrivals at a consumer of very many are counted in groups, each in a line of its own: producers
 * on different workers would fight for the line of a single counter. */
#define TROUPE_GROUP 64
struct troupe_group {
    _Alignas(TROUPE_LINE) _Atomic(int32_t) missing;
    int32_t need;
    uint32_t cell; /* as in a mailbox */
    int32_t cell_need;
};

/* Where the others go: far cells, of this iteration or a later one. */
struct troupe_far_mailbox {
    const struct troupe_actor *to;
    uint32_t distance;
    uint32_t slot_mask, stride; /* of the consumer: cells - 1; lines of a cell with its prefix */
    int32_t from_port, to_port;
};

/* What a firing reads of its actor. A *far* actor has an edge
 * with a distance into it: its cells hold more iterations than the window, apart from the others,
 * each behind a line that says which iteration it serves. */
struct troupe_actor {
    troupe_behaviour_fn *behave;
    void *context;
    uint32_t cell; /* lines from the iteration's start; of a far actor, from the instance's */
    int32_t mailbox_count;
    int32_t input_count, output_count;
    int32_t need;      /* tokens and signals of one iteration, the admission's among them */
    int32_t consumers; /* of output 0 when there is no other */
    int32_t number;
    bool takes_dead, is_sink, is_far, has_far_mailboxes;
    struct troupe_mailbox mailboxes[]; /* by rising priority of the consumer */
};

/* What a firing rarely needs of its actor. */
struct troupe_actor_rest {
    struct troupe_far_mailbox *far; /* those of distance 0 last */
    int *consumers;                 /* of each output port */
    int32_t far_count;
    uint32_t slot_mask, stride; /* of a far actor: see troupe_far_mailbox */
    uint32_t groups;            /* lines from the iteration's start to the counters of groups */
    int32_t group_count;        /* 0: every arrival is counted in the cell */
    int32_t last_group_need;    /* the others: TROUPE_GROUP */
    bool is_source;
};

struct troupe_edge {
    int from, from_port, to, to_port, distance;
    int argument; /* of a frame: what the first iteration gets; -1: a plain signal */
};

struct troupe_actor_plan {
    char *name;
    struct troupe_actor_spec spec;
    bool *connected;           /* each input port */
    struct troupe_stage *body; /* of a frame; NULL: an actor */
    void *own_context;         /* freed with the stage, or NULL */
};

/* One iteration in flight; the cells of the actors that are not far follow, each at its place. */
struct troupe_iteration {
    _Alignas(TROUPE_LINE) struct troupe_instance *instance;
    uint64_t number;
    _Atomic(bool) drains; /* every actor fires dead */
    _Atomic(bool) failed;
    bool done; /* under the instance's lock */
    _Alignas(TROUPE_LINE) _Atomic(int64_t) sinks_left;
};

/* What leaves a frame: the newest token that is not dead, and whose it is. */
struct troupe_result {
    struct troupe_payload *token;
    uint64_t number; /* of the iteration */
};

/* A stage in action: the iterations in flight, and the far cells behind them. The root stage has
 * one; a frame has as many as its firings need at a time. */
struct troupe_instance {
    struct troupe_stage *stage;
    pthread_mutex_t lock;
    bool advancing; /* somebody is in instance_advance; it sees what others change */
    uint64_t end;
    _Atomic(uint64_t) admitted, completed; /* written under the lock */

    /* Of a frame's instance. */
    struct troupe_firing *caller;
    struct troupe_result *results; /* under the lock */
    struct troupe_iteration *root; /* what all this is part of */
    uint64_t path;                 /* tells this firing of the frame from all others of the step */
    uint64_t slot;                 /* among those that may be in flight at once */
    int depth;
    bool drains;                             /* every iteration */
    struct troupe_instance *next, *previous; /* free, or in use; under the stage's lock */
    _Alignas(TROUPE_LINE) char lines[];
};

struct troupe_stage {
    /* The description. */
    int window;
    int argument_count, result_count; /* of a frame */
    bool is_frame;
    struct troupe_actor_plan *plans;
    struct troupe_edge *edges;
    int actor_count, actor_capacity, edge_count, edge_capacity;
    struct troupe_stage_hooks hooks;

    /* The cast. */
    struct troupe_pool *pool; /* NULL before it */
    struct troupe_arena arena;
    size_t bytes;
    struct troupe_actor **actors;
    struct troupe_actor_rest *rest;
    struct troupe_actor **sources; /* by rising priority */
    int *far_actors;               /* their numbers */
    int *early_edges;              /* edges with a distance, by number */
    int source_count, far_count, early_count;
    int64_t sink_count;
    uint64_t slot_mask;                     /* iterations with room in an instance - 1 */
    size_t iteration_lines, instance_lines; /* behind the structure */

    /* The run. */
    struct troupe_instance *root; /* NULL of a frame */
    _Atomic(uint64_t) poison;     /* written under the root's lock */
    _Atomic(int) idle;            /* 1: completed == end */

    /* Of a frame: its instances. */
    pthread_mutex_t lock;
    struct troupe_instance *free, *used;

    pthread_mutex_t failure_lock;
    enum troupe_status failure; /* of the earliest failed iteration since the last wait */
    uint64_t failure_iteration;
    char failure_message[TROUPE_MESSAGE_MAX];
};

/* Firings found ready by one piece of work, by rising priority: they are pushed together. */
#define TROUPE_READY_ROOM 32
struct troupe_ready {
    struct troupe_worker *worker; /* of the calling thread, or NULL */
    struct troupe_pool *pool;
    bool alone; /* the worker is the pool's only one: nobody else counts arrivals */
    int count;
    struct troupe_task *tasks[TROUPE_READY_ROOM];
};

static inline struct troupe_iteration *troupe_instance_iteration(struct troupe_instance *instance,
                                                                 uint64_t number)
{
    const struct troupe_stage *stage = instance->stage;

    return (void *)(instance->lines +
                    (number & stage->slot_mask) * stage->iteration_lines * TROUPE_LINE);
}

/* The cell of an actor that is not far. */
static inline struct troupe_firing *troupe_iteration_cell(struct troupe_iteration *iteration,
                                                          uint32_t cell)
{
    return (void *)((char *)iteration + (size_t)cell * TROUPE_LINE);
}

/* Which iteration a cell of a far actor serves: set when it is found ready. */
static inline struct troupe_iteration **
troupe_far_cell_iteration(const struct troupe_firing *firing)
{
    return (void *)((uintptr_t)firing - TROUPE_LINE);
}

static inline struct troupe_firing *troupe_far_cell(struct troupe_instance *instance, uint32_t cell,
                                                    uint32_t stride, uint64_t slot)
{
    return (void *)(instance->lines + ((size_t)cell + slot * stride + 1) * TROUPE_LINE);
}

static inline struct troupe_iteration *troupe_firing_record(const struct troupe_firing *firing)
{
    const struct troupe_actor *actor = firing->actor;

    if (actor->is_far)
        return *troupe_far_cell_iteration(firing);
    return (void *)((uintptr_t)firing - (size_t)actor->cell * TROUPE_LINE);
}

/* The cell of any actor. */
struct troupe_firing *troupe_actor_cell(struct troupe_instance *instance, int actor,
                                        uint64_t iteration);

/* layout.c. Places everything in the arena. `first` and `order` list each actor's outgoing edges:
 * order[first[a]] to order[first[a + 1] - 1]. */
TROUPE_MUST_USE enum troupe_status troupe_stage_lay_out(struct troupe_stage *stage,
                                                        const int *first, const int *order);

/* instance.c. Makes an instance with all its cells; makes one that has completed as new. */
TROUPE_MUST_USE enum troupe_status troupe_instance_create(struct troupe_stage *stage,
                                                          struct troupe_instance **out);
void troupe_instance_reset(struct troupe_instance *instance);
void troupe_instance_destroy(struct troupe_instance *instance);

/* fire.c. The task of a cell, and the admission's signal to a source. Ends a firing whose outputs
 * are set. */
void troupe_firing_run(struct troupe_task *task, struct troupe_worker *worker);
void troupe_actor_admit(const struct troupe_actor *actor, struct troupe_iteration *iteration,
                        struct troupe_ready *ready);
void troupe_firing_finish(struct troupe_firing *firing, bool failed, struct troupe_ready *ready);
/* For the calling thread; pushes what is ready. */
void troupe_ready_init(struct troupe_ready *ready, struct troupe_pool *pool);
void troupe_ready_flush(struct troupe_ready *ready);

/* run.c. The last sink of an iteration has fired: what holds it may be gone when it returns and no
 * ready firing of it is held. Returns a frame's firing that this has ended, to be finished. */
struct troupe_firing *troupe_iteration_finish(struct troupe_iteration *iteration,
                                              struct troupe_ready *ready);
/* Raises an instance's end, and starts and retires what can be; returns as above. */
struct troupe_firing *troupe_instance_admit(struct troupe_instance *instance, uint64_t end,
                                            struct troupe_ready *ready);
/* Records a failure of a firing, in its iteration and the root's. */
void troupe_firing_fail(struct troupe_firing *firing, enum troupe_status status,
                        const char *message);

/* frame.c. Gives the results to the caller, and the instance back. */
struct troupe_firing *troupe_frame_return(struct troupe_instance *instance);
/* What hooks are told of an actor. */
void *troupe_actor_context(const struct troupe_actor *actor);

#endif
