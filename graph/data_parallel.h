/* The strategy "data-parallel"; private to graph/. */
#ifndef TROUPE_GRAPH_DATA_PARALLEL_H
#define TROUPE_GRAPH_DATA_PARALLEL_H

#include "graph/graph.h"

/* One replica of what the loss, the shown values and the initial values need on each rank of job
 * "worker"; sources take a shard each; gradients and shown values are averaged over the replicas by
 * their share of the rows; each replica updates its own variables, which stay the same. */
TROUPE_MUST_USE enum troupe_status troupe_graph_data_parallel(struct troupe_graph *graph,
                                                              int ranks);

#endif
