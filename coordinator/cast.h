/* Inside of the cast: what its files share. */
#ifndef TROUPE_COORDINATOR_CAST_H
#define TROUPE_COORDINATOR_CAST_H

#include "coordinator/plan.h"
#include "graph/splice.h"

/* What updates a variable within a frame, in order. */
struct troupe_cast_order {
    int owner; /* the variable's node */
    int first, last;
};

/* A frame on this rank; the root is frame 0. */
struct troupe_cast_frame {
    struct troupe_stage *stage; /* NULL: nothing of it is here */
    int actor;                  /* what stands for it in its parent's stage */
    int argument_count, result_count;
    bool is_ordered; /* something inside must see the steps in order */
    struct troupe_cast_order *orders;
    int order_count, order_capacity;
};

/* A value copied into another memory for users in a frame. */
struct troupe_cast_copy {
    struct troupe_value value;
    int frame;
    int memory; /* of this accelerator; 0: of the host */
    int actor;
    int next; /* of the same node; -1: none */
};

struct troupe_caster {
    struct troupe_plan *plan;
    const struct troupe_graph *graph;
    int rank;
    struct troupe_cast_frame *frames;
    int *actor_of_node;     /* in the stage of the node's frame; -1: not here */
    int *number_of_node;    /* of an Enter its argument, of an Exit its result; -1: not here */
    int *actor_of_feed;     /* rank 0 */
    int *actor_of_crossing; /* the Receive here, -1 */
    int *first_update;      /* in the root, of the variable with this node number */
    int *last_update;
    int *reader;     /* of the variable with this node number: its actor */
    int *height;     /* of a node: the longest way from it to an end of the plan, in nodes */
    int *first_copy; /* by node number, -1: none; NULL: no copies at all */
    struct troupe_cast_copy *copies;
    int copy_count, copy_capacity;
};

/* cast.c: an edge of distance 0 into an actor of `frame`, which works in the host's memory, from
 * where a value comes from. Where that is, in the frame of the value's users. */
TROUPE_MUST_USE enum troupe_status troupe_cast_connect(struct troupe_caster *caster, int frame,
                                                       struct troupe_value value, int to,
                                                       int to_port);
void troupe_cast_source(const struct troupe_caster *caster, struct troupe_value value, int *actor,
                        int *port);

/* cast_copies.c: as troupe_cast_source, for users in `frame` who want the value in the memory of an
 * accelerator (0: of the host): adds the actor that copies it there unless it is there. */
TROUPE_MUST_USE enum troupe_status troupe_cast_source_in(struct troupe_caster *caster, int frame,
                                                         struct troupe_value value, int memory,
                                                         int *actor, int *port);

/* cast_frames.c: makes the stages of this rank's frames, before any actor is added; adds their own
 * actors; connects the frames; casts the stages. A node at the head of a loop has its own actor and
 * edges. */
TROUPE_MUST_USE enum troupe_status troupe_cast_open_frames(struct troupe_caster *caster);
TROUPE_MUST_USE enum troupe_status troupe_cast_add_frames(struct troupe_caster *caster);
TROUPE_MUST_USE enum troupe_status troupe_cast_connect_frames(struct troupe_caster *caster);
TROUPE_MUST_USE enum troupe_status troupe_cast_stages(struct troupe_caster *caster);
void troupe_cast_close_frames(struct troupe_caster *caster);

/* The function that a frame is the body of; NULL for a loop. */
const struct troupe_function *troupe_cast_function(const struct troupe_caster *caster, int frame);
/* A node that calls a function, as the frame of the function. */
TROUPE_MUST_USE enum troupe_status troupe_cast_add_call(struct troupe_caster *caster, int number);

/* cast_state.c: an actor of `frame` updates a variable, after all that did before; an actor must
 * fire in the order of steps. The edges from step to step come last. */
TROUPE_MUST_USE enum troupe_status troupe_cast_update(struct troupe_caster *caster, int frame,
                                                      int actor, int owner);
TROUPE_MUST_USE enum troupe_status troupe_cast_in_order(struct troupe_caster *caster, int frame,
                                                        int actor);
TROUPE_MUST_USE enum troupe_status troupe_cast_next_step(struct troupe_caster *caster);

#endif
