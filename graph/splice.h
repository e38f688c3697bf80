/* Functions that call themselves, put beside the graph's own nodes.
 *
 * After it one graph holds everything that runs: node i of a function's body has become node
 * `first` + i of the graph, under the name "FUNCTION/NAME", its loops' frames likewise, and the
 * function's inputs and outputs are numbers of the graph. A body is a frame of its own
 * (graph/frames.h), entered by every Call of the function. */
#ifndef TROUPE_GRAPH_SPLICE_H
#define TROUPE_GRAPH_SPLICE_H

#include "graph/library.h"

/* Splices the bodies of graph->library into a lowered graph, once, and empties them. Fails with
 * UNIMPLEMENTED for a body that names a variable: state in a recursion has no order. */
TROUPE_MUST_USE enum troupe_status troupe_graph_splice(struct troupe_graph *graph);
/* The function that a node of a spliced graph calls; NULL for any other node. */
const struct troupe_function *troupe_node_called(const struct troupe_graph *graph,
                                                 const struct troupe_node *node);

#endif
