/* Which rank, and which of its devices, each node runs on. */
#ifndef TROUPE_COORDINATOR_PLACEMENT_H
#define TROUPE_COORDINATOR_PLACEMENT_H

#include "devices/stream.h"
#include "graph/graph.h"

/* Sets `rank` and `accelerator` of every node that `keep` marks, from the user's device
 * constraints, the `cluster` section (jobs and their tasks; without one, job "worker" whose task t
 * is rank t), and colocation: an op that updates state is where the state is. A free node follows
 * its first placed input, else its first placed user, else it is on rank 0; it is on an accelerator
 * only where it says so. `devices` are the accelerators of every rank, NULL: not known.
 * INVALID_ARGUMENT names the node, or the two in conflict. */
TROUPE_MUST_USE enum troupe_status troupe_place(struct troupe_graph *graph, int ranks,
                                                const struct troupe_device_table *devices,
                                                const bool *keep);

#endif
