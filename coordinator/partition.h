/* Pruning and partition: which nodes a run needs, and which values cross from rank to rank. A
 * function of graph and names alone, so that every rank gets the same. */
#ifndef TROUPE_COORDINATOR_PARTITION_H
#define TROUPE_COORDINATOR_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "coordinator/frame_use.h"
#include "graph/graph.h"

/* What a run selects. Names are copied by whoever keeps it. */
struct troupe_signature {
    struct troupe_value *feeds;
    int feed_count;
    struct troupe_value *fetches;
    int fetch_count;
    int *targets;
    int target_count;
    int staleness; /* steps that a read of a variable may be behind */
};

/* One value (port -1: a control edge) that goes from a rank to another, once however many nodes
 * there want it. */
struct troupe_crossing {
    struct troupe_value value;
    int from_rank, to_rank;
    int next;        /* of the same node; -1: none */
    int frame;       /* whose iterations it belongs to */
    int slots;       /* messages in flight within one step: 1 outside of frames */
    int tag;         /* its first tag of a window of one, counted from the plan's first */
    bool is_static;  /* bytes known: one message of `bytes` bytes; else header + bytes */
    bool is_control; /* no data */
    size_t bytes;
};

struct troupe_partition {
    int *order; /* kept nodes, inputs before users, the nodes of a frame next to each other */
    int order_count;
    bool *keep; /* by node number */
    struct troupe_crossing *crossings;
    int crossing_count;
    int *first_crossing; /* by node number, -1: none; linked by `next` */
    struct troupe_frames *frames;
    struct troupe_frame_use use;
    int tag_count; /* for each iteration in flight */
    /* The groups of kept AllReduce nodes by `key`, numbered in order of nodes; borrows the keys
     * from the graph. */
    struct troupe_name_map groups;
};

/* FAILED: NOT_FOUND and INVALID_ARGUMENT come from the graph's own functions. */
TROUPE_MUST_USE enum troupe_status troupe_partition_make(const struct troupe_graph *graph,
                                                         int ranks,
                                                         const struct troupe_signature *signature,
                                                         struct troupe_partition *out);
void troupe_partition_fini(struct troupe_partition *partition);

/* frame_order.c: sorts `count` nodes, which are in topological order, so that the nodes of a frame
 * lie next to each other: what comes before the frame as a whole, before all of them. */
TROUPE_MUST_USE enum troupe_status troupe_frame_order(const struct troupe_graph *graph,
                                                      const struct troupe_frames *frames,
                                                      int *order, int count);
/* crossing.c: fills in the crossings of a partition that has all the rest. */
TROUPE_MUST_USE enum troupe_status troupe_crossings_find(const struct troupe_graph *graph,
                                                         const struct troupe_signature *signature,
                                                         struct troupe_partition *partition);

/* The crossing of a value to a rank, -1 when there is none. */
int troupe_partition_find(const struct troupe_partition *partition, struct troupe_value value,
                          int to_rank);
/* The rank a value comes from: 0 for a feed, else its node's. */
int troupe_signature_source_rank(const struct troupe_signature *signature,
                                 const struct troupe_graph *graph, struct troupe_value value);
/* The number of the feed of a value, -1 when it is not fed. */
int troupe_signature_feed(const struct troupe_signature *signature, struct troupe_value value);
/* True when input `index` of a node is of ref type: the kernel reaches the state itself, and no
 * token is sent. */
bool troupe_node_input_is_ref(const struct troupe_node *node, int index);
bool troupe_node_is_all_reduce(const struct troupe_node *node);
/* What the AllReduce nodes of one group have in common. */
const char *troupe_node_all_reduce_key(const struct troupe_node *node);
/* The node whose state the ref input names: through ops that pass a ref on. */
int troupe_node_ref_owner(const struct troupe_graph *graph, int node, int index);

#endif
