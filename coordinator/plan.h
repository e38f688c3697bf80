/* A plan: what a signature selects, partitioned, cast into actors of this rank, cached. */
#ifndef TROUPE_COORDINATOR_PLAN_H
#define TROUPE_COORDINATOR_PLAN_H

#include "actors/actors.h"
#include "coordinator/partition.h"
#include "coordinator/session.h"

/* How a part takes part in messages between ranks. */
enum troupe_part_role {
    TROUPE_PART_LOCAL = 0,
    TROUPE_PART_SEND,
    TROUPE_PART_RECEIVE,
    TROUPE_PART_COLLECTIVE
};

/* What a behaviour needs beside its own: the context of every actor starts with one of these. */
struct troupe_plan_part {
    struct troupe_plan *plan;
    int node; /* the graph node that it stands for, -1 for none */
    /* Frees the part. Required. */
    void (*destroy)(struct troupe_plan_part *self);
    /* Optional: ends those of its deferred firings from iteration `first` on that wait for others,
     * as ABORTED: the run has failed there, or (0) was interrupted. Called again and again, from
     * the watch's thread, until the run is over. */
    void (*release)(struct troupe_plan_part *self, uint64_t first);
    enum troupe_part_role role;
    bool blocks; /* while it is deferred it waits for other firings of the session: in a queue */
    int tag;     /* names the messages of a part that is not local: the same on every rank */
    int peer;    /* of a Send and a Receive: the other rank */
};

struct troupe_plan {
    struct troupe_session *session;
    struct troupe_signature signature;
    struct troupe_partition partition;
    struct troupe_stage *stage;
    struct troupe_stage **frame_stages;
    int frame_stage_count;
    struct troupe_parallel parallel;
    int first_tag;

    /* The contexts of all actors. */
    struct troupe_plan_part **parts;
    int part_count, part_capacity;

    /* Of the run in progress, set before its first iteration is admitted: */
    struct troupe_request *request;           /* NULL: none; written under the session's lock */
    uint64_t first_iteration;                 /* of the stage */
    uint64_t first_step;                      /* of the session */
    struct troupe_tensor *const *feed_values; /* borrowed; rank 0 */
    troupe_step_fn *on_step;
    void *on_step_context;
    bool has_until;              /* the last fetch ends the run when it is true */
    struct troupe_tensor **last; /* rank 0: fetch_count values of the newest live iteration */
    /* rank 0: the first step of the run with a fetched value that is dead, and which; -1: none. */
    int64_t dead_step;
    int dead_fetch;
};

/* dead_fetch.c: FAILED_PRECONDITION with a message for plan->dead_fetch, which is there. */
TROUPE_MUST_USE enum troupe_status troupe_fetch_dead(const struct troupe_plan *plan);

/* Reads of variables may be so many steps behind. */
#define TROUPE_STALENESS_MAX 1024

/* Checks the names of a run (whose last fetch is its `until`, if it has one) and, on rank 0, the
 * fed values, before anybody else hears of it. On success *idle is a plan for it in which no run is
 * in progress, NULL when there is none, and *instance the number of that plan, or of the next one
 * to be made, among those of the same signature. The order lock is held. */
TROUPE_MUST_USE enum troupe_status troupe_plan_check(struct troupe_session *session,
                                                     const struct troupe_run *run,
                                                     struct troupe_plan **idle, int *instance);

/* The plan of a run, from the cache or newly made: the `instance`-th of those with the same
 * signature. Collective when it is new: the ranks compare hashes of it. The order lock is held. */
TROUPE_MUST_USE enum troupe_status troupe_plan_get(struct troupe_session *session,
                                                   const struct troupe_run *run, int instance,
                                                   struct troupe_plan **out);
void troupe_plan_destroy(struct troupe_plan *plan);

/* cast.c: makes the stage with this rank's actors. */
TROUPE_MUST_USE enum troupe_status troupe_plan_cast(struct troupe_plan *plan);

/* Each takes what it is given, also on failure: a part; a frame's stage; a part as the context of
 * an actor that is added to a stage of the plan. */
TROUPE_MUST_USE enum troupe_status troupe_plan_keep_part(struct troupe_plan *plan,
                                                         struct troupe_plan_part *part);
TROUPE_MUST_USE enum troupe_status troupe_plan_keep_stage(struct troupe_plan *plan,
                                                          struct troupe_stage *stage);
TROUPE_MUST_USE enum troupe_status
troupe_plan_add(struct troupe_plan *plan, struct troupe_stage *stage, struct troupe_plan_part *part,
                const struct troupe_actor_spec *spec, int *actor);

/* The parts (one file each): what they make is an actor's context; `spec` is filled in but for
 * counts of inputs and outputs. */
TROUPE_MUST_USE enum troupe_status troupe_kernel_part_create(struct troupe_plan *plan, int node,
                                                             struct troupe_plan_part **out,
                                                             struct troupe_actor_spec *spec);
/* As a kernel part, on the simulated accelerator of the node. */
TROUPE_MUST_USE enum troupe_status troupe_sim_part_create(struct troupe_plan *plan, int node,
                                                          struct troupe_plan_part **out,
                                                          struct troupe_actor_spec *spec);
/* Copies a value of a node from the memory of accelerator `from` to that of `to` (0: the host's);
 * fills in the counts too. */
TROUPE_MUST_USE enum troupe_status troupe_copy_part_create(struct troupe_plan *plan, int node,
                                                           int from, int to,
                                                           struct troupe_plan_part **out,
                                                           struct troupe_actor_spec *spec);
TROUPE_MUST_USE enum troupe_status troupe_feed_part_create(struct troupe_plan *plan, int feed,
                                                           struct troupe_plan_part **out,
                                                           struct troupe_actor_spec *spec);
TROUPE_MUST_USE enum troupe_status troupe_fetch_part_create(struct troupe_plan *plan,
                                                            struct troupe_plan_part **out,
                                                            struct troupe_actor_spec *spec);
/* A send that paces waits, once a window, until the other rank has matched it. */
TROUPE_MUST_USE enum troupe_status troupe_send_part_create(struct troupe_plan *plan, int crossing,
                                                           bool paces,
                                                           struct troupe_plan_part **out,
                                                           struct troupe_actor_spec *spec);
TROUPE_MUST_USE enum troupe_status troupe_receive_part_create(struct troupe_plan *plan,
                                                              int crossing,
                                                              struct troupe_plan_part **out,
                                                              struct troupe_actor_spec *spec);
TROUPE_MUST_USE enum troupe_status troupe_all_reduce_part_create(struct troupe_plan *plan, int node,
                                                                 int tag,
                                                                 struct troupe_plan_part **out,
                                                                 struct troupe_actor_spec *spec);

/* These fill in the counts too. The head of a loop variable; the actor that asks for another
 * iteration; what stands for a frame in messages. */
TROUPE_MUST_USE enum troupe_status troupe_head_part_create(struct troupe_plan *plan,
                                                           const struct troupe_loop_merge *merge,
                                                           bool uses_index,
                                                           struct troupe_plan_part **out,
                                                           struct troupe_actor_spec *spec);
TROUPE_MUST_USE enum troupe_status troupe_goes_on_part_create(struct troupe_plan *plan,
                                                              int loop_cond,
                                                              struct troupe_plan_part **out,
                                                              struct troupe_actor_spec *spec);
TROUPE_MUST_USE enum troupe_status troupe_frame_part_create(struct troupe_plan *plan, int loop_cond,
                                                            struct troupe_plan_part **out);

/* The kernel of a kernel part. */
struct troupe_kernel *troupe_kernel_part_kernel(struct troupe_plan_part *part);
/* Fills in a kernel for a node (its arrays borrow from the graph). */
void troupe_kernel_describe(const struct troupe_graph *graph, int number,
                            struct troupe_kernel *kernel);

#endif
