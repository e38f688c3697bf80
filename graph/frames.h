/* Which nodes of a graph fire once per iteration of which loop.
 *
 * A frame is a context of iterations. The root, frame 0, has the steps as its iterations; every
 * while-loop is a frame whose parent is the frame around it. In terms of its parent a frame is
 * one actor: its inputs are those of its Enters, its outputs those of its Exits. Inside, the loop
 * is a graph without cycles and these rules:
 *
 *   Enter            gives its input in iteration 0; when is_constant, in every iteration
 *   loop Merge       gives the Enter's value in iteration 0 and in iteration i > 0 the value that
 *                    its NextIteration had in iteration i - 1: an edge of distance 1
 *   LoopCond         one per frame: true admits the next iteration, false makes this one the last
 *   Exit             gives its input, where that is alive; in a proper loop it is dead in every
 *                    iteration but the last
 *   NextIteration    read by loop Merges alone; in the last iteration it is dead
 *
 * The body of a function that calls itself (graph/splice.h) is a frame as well, without a parent's
 * place of its own: its Calls enter it, each with inputs for its _Arg nodes and outputs, for one
 * iteration.
 *
 * An Enter, an Exit and a NextIteration are nodes of the frame that they lead into, out of, or
 * around in; the inputs of an Enter belong to the parent, and so do the users of an Exit. A node
 * without inputs is in the root. A ref input (the variable that an Assign changes) carries no
 * value and may come from any frame.
 *
 * What troupe_frames_find guarantees besides: every input and control input of a node is of the
 * node's own frame, but for those of an Enter (the parent's) and those that come from an Exit (of
 * a child); an Enter that is not constant is read by loop Merges alone; a loop Merge has exactly
 * two inputs, an Enter that is not constant and a NextIteration, both of its own frame. */
#ifndef TROUPE_GRAPH_FRAMES_H
#define TROUPE_GRAPH_FRAMES_H

#include "graph/graph.h"

/* What an Enter may ask for. */
#define TROUPE_PARALLEL_ITERATIONS_MAX (1 << 16)

/* A Merge at the head of a loop, and which of its two inputs is which. */
struct troupe_loop_merge {
    int node;
    int enter_input, next_input;
};

/* Node numbers, in topological order. */
struct troupe_frame_nodes {
    const int *nodes;
    int count;
};

struct troupe_frame {
    const char *name; /* the Enters' frame_name, borrowed from the graph; "" for the root */
    int parent;       /* lower than the frame's own number; -1 for the root; of a function 0 */
    int depth;        /* 0 for the root */
    int parallel_iterations; /* 1 for the root */
    int loop_cond;           /* node number; -1 for the root and for a function */
    int function;            /* 1 + number of the function that it is the body of; 0: none */
    struct troupe_frame_nodes nodes; /* all nodes of the frame, not those of its children */
    struct troupe_frame_nodes enters, exits, next_iterations; /* of this frame: part of `nodes` */
    const struct troupe_loop_merge *merges;                   /* as `enters` */
    int merge_count;
};

struct troupe_frames {
    int *frame_of;               /* by node number */
    struct troupe_frame *frames; /* a parent before its children; frames[0] is the root */
    int count;
    /* What the lists above point into. */
    int *pool;
    struct troupe_loop_merge *merges;
};

/* Finds the frames of an inferred graph, in time linear in its edges. INVALID_ARGUMENT, with a
 * message that names the nodes, when a rule above is broken. The result borrows names from the
 * graph and holds as long as no node is added. Free it with troupe_frames_destroy. */
TROUPE_MUST_USE enum troupe_status troupe_frames_find(const struct troupe_graph *graph,
                                                      struct troupe_frames **out);
void troupe_frames_destroy(struct troupe_frames *frames);

/* The frame that the users of a node's outputs are in: its own, for an Exit the parent. */
int troupe_frames_out(const struct troupe_graph *graph, const struct troupe_frames *frames,
                      int node);

#endif
