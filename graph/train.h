/* The parts of `train` that a strategy does itself, once per replica; private to graph/. */
#ifndef TROUPE_GRAPH_TRAIN_H
#define TROUPE_GRAPH_TRAIN_H

#include "graph/graph.h"

/* The variables of one replica, and the gradient of the loss with respect to each. */
struct troupe_train_gradients {
    int *variables; /* node numbers */
    struct troupe_value *gradients;
    int count;
};

/* Finds the loss of the replica whose nodes' names start with `prefix` ("" for the graph itself),
 * and adds the gradients, scaled by `weight`. */
TROUPE_MUST_USE enum troupe_status troupe_train_differentiate(struct troupe_graph *graph,
                                                              const char *prefix, double weight,
                                                              struct troupe_train_gradients *out);
void troupe_train_gradients_fini(struct troupe_train_gradients *gradients);

/* Adds the updates and the NoOp PREFIXtrain, whose number is *train. */
TROUPE_MUST_USE enum troupe_status
troupe_train_update(struct troupe_graph *graph, const char *prefix,
                    const struct troupe_train_gradients *gradients, int *train);

#endif
