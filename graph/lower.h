/* Functions and the ops that call them, lowered onto Switch, Merge, Enter, Exit and the like.
 *
 * A Call becomes the nodes of its function, an If or Case Switches before its branches and Merges
 * behind them, a While a frame (graph/frames.h). The calling node stays under its name as an
 * Identity, an IdentityN or, without outputs, a NoOp, so that it can be fetched and waited for;
 * what it is made of is named "NODE/...". What a body captured is passed along: as one more
 * argument of a branch, as a constant Enter of a loop. A call of a function that calls itself stays
 * a call. */
#ifndef TROUPE_GRAPH_LOWER_H
#define TROUPE_GRAPH_LOWER_H

#include "graph/library.h"

/* More nodes than this from the bodies of functions are refused. */
#define TROUPE_LOWERED_NODES_MAX 250000

/* Before inference: sets the attrs of calls that follow from the signatures of their functions,
 * in the graph and in all bodies. An unknown function is reported, and its node loses its
 * schema. Fails only for want of memory. */
TROUPE_MUST_USE enum troupe_status troupe_lower_signatures(struct troupe_graph *graph,
                                                           struct troupe_diagnostics *diagnostics);

/* After inference, of a graph without errors: infers the bodies, checks every call against its
 * functions, lowers, and infers again. Afterwards graph->library holds recursive functions alone,
 * and is NULL when there are none. Fails only for want of memory. */
TROUPE_MUST_USE enum troupe_status troupe_lower(struct troupe_graph *graph,
                                                struct troupe_diagnostics *diagnostics);

#endif
