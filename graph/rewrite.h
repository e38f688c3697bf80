/* What the rewrites of this folder share; private to graph/. */
#ifndef TROUPE_GRAPH_REWRITE_H
#define TROUPE_GRAPH_REWRITE_H

#include "graph/graph.h"

/* Adds a node that a rewrite makes, under `name` or, when that is taken, "name_1", "name_2", ...,
 * and infers it. Attr values are moved. `like`: the node whose device and replica it gets, -1 for
 * none. */
struct troupe_new_node {
    const char *name, *op, *origin; /* origin NULL: the name it gets */
    const struct troupe_value *inputs;
    int input_count;
    const int *controls;
    int control_count;
    struct troupe_named_attr *attrs; /* names are borrowed */
    int attr_count;
    int like;
};
TROUPE_MUST_USE enum troupe_status
troupe_graph_new_node(struct troupe_graph *graph, const struct troupe_new_node *wanted, int *out);

/* A scalar Const, and a vector of int32. */
TROUPE_MUST_USE enum troupe_status troupe_graph_new_scalar(struct troupe_graph *graph,
                                                           const char *name,
                                                           enum troupe_dtype dtype, double value,
                                                           int like, int *out);
TROUPE_MUST_USE enum troupe_status troupe_graph_new_ints(struct troupe_graph *graph,
                                                         const char *name, const int32_t *values,
                                                         int count, int like, int *out);

/* As troupe_graph_gradients, with the gradient of the loss itself `seed` instead of 1. */
TROUPE_MUST_USE enum troupe_status
troupe_graph_gradients_seeded(struct troupe_graph *graph, struct troupe_value loss, double seed,
                              const struct troupe_value *xs, int count,
                              struct troupe_value *gradients);

#endif
