/* Which ranks take part in the frames of a graph, in one plan. The same on every rank.
 *
 * A rank takes part in a frame when it holds a node of it, or of one within. There the frame is an
 * actor with an input for each Enter whose value is used there, and an output for each Exit placed
 * there. An Enter and a NextIteration have no place of their own: what they pass on goes straight
 * to whoever uses it. */
#ifndef TROUPE_COORDINATOR_FRAME_USE_H
#define TROUPE_COORDINATOR_FRAME_USE_H

#include <stdbool.h>

#include "graph/frames.h"

/* Iterations of a frame in flight when it runs on several ranks: each has buffers for messages. */
#define TROUPE_FRAME_MAX_SHARED_WINDOW 32
/* The most messages of one edge in flight within one step. */
#define TROUPE_FRAME_MAX_SLOTS 1024

struct troupe_frame_use {
    const struct troupe_frames *frames; /* borrowed */
    int ranks;
    bool *member;      /* [frame * ranks + rank] */
    int *window;       /* by frame: iterations in flight */
    int *slots;        /* by frame: the product of the windows of it and all around it */
    int *ticket;       /* by frame: the Enter whose value says on all ranks whether the frame runs;
                          -1: the root, or a frame that the plan does not use */
    bool *is_head;     /* by node: a Merge at the head of a loop */
    int *enter_number; /* by node: of an Enter, from 0 */
    int enter_count;
    bool *entered; /* [enter number * ranks + rank]: its value is used there */
};

/* `keep` says which nodes the plan has, each with its rank. */
TROUPE_MUST_USE enum troupe_status troupe_frame_use_make(const struct troupe_graph *graph,
                                                         const struct troupe_frames *frames,
                                                         const bool *keep, int ranks,
                                                         struct troupe_frame_use *out);
void troupe_frame_use_fini(struct troupe_frame_use *use);

bool troupe_frame_use_member(const struct troupe_frame_use *use, int frame, int rank);
/* Whether a frame runs on more than one rank. */
bool troupe_frame_use_is_shared(const struct troupe_frame_use *use, int frame);
/* The entry of `entered`. */
bool *troupe_frame_use_entered(const struct troupe_frame_use *use, int enter, int rank);
/* Enter and NextIteration: see above. */
bool troupe_node_has_no_place(const struct troupe_node *node);

#endif
