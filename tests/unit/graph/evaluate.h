/* Runs the nodes of a graph one after another in one thread, without actors: what the tests of
 * rewrites compare with. */
#ifndef TROUPE_TESTS_EVALUATE_H
#define TROUPE_TESTS_EVALUATE_H

#include "graph/graph.h"
#include "ops/kernel.h"

/* State is kept from one evaluation to the next. Borrows the graph, which must not grow. */
struct evaluator {
    const struct troupe_graph *graph;
    struct troupe_tensor **feeds;       /* by node: a value for its output 0, owned, or NULL */
    struct troupe_resource **resources; /* by node: made when first needed */
    struct troupe_tensor ***values;     /* by node: outputs in this evaluation, NULL before */
    bool *fired;                        /* by node */
    uint64_t step;
};

/* Parses and infers graph JSON; a failure ends the test with its message. */
struct troupe_graph *graph_of(const char *text);

void evaluator_init(struct evaluator *evaluator, const struct troupe_graph *graph);
void evaluator_fini(struct evaluator *evaluator);
/* Feeds a node; takes the tensor. */
void evaluator_feed(struct evaluator *evaluator, int node, struct troupe_tensor *value);
/* Gives every variable that has an initializer its first value. */
void evaluator_initialize(struct evaluator *evaluator);
/* Runs what the nodes depend on, each node once; values are read before any is updated. The
 * results stay until the next call. An AllReduce adds up its peers' inputs. */
void evaluator_run(struct evaluator *evaluator, const int *nodes, int count);
/* A result of the last run, borrowed. */
const struct troupe_tensor *evaluator_value(const struct evaluator *evaluator,
                                            struct troupe_value value);

#endif
