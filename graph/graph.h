/* The graph in memory: nodes by number, values as (node, port). */
#ifndef TROUPE_GRAPH_GRAPH_H
#define TROUPE_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "devices/device.h"
#include "graph/diagnostics.h"
#include "ops/gradient.h"
#include "ops/op.h"

struct troupe_node {
    char *name;   /* unique in the graph */
    char *origin; /* the name of the JSON node it comes from; its own name there */
    const struct troupe_op_schema *schema;
    char *device; /* the user's constraint, "" for none */
    struct troupe_value *inputs;
    int input_count;
    int *controls; /* numbers of the nodes that must have fired before */
    int control_count;
    struct troupe_named_attr *attrs; /* after linking: complete, with defaults and types */
    int attr_count;
    int line, column; /* in the JSON file, from 1; 0 for a node that a rewrite made */
    int function;     /* 1 + number of the function whose body it is of (graph/splice.h); 0: none */
    /* After inference: */
    int output_count;
    enum troupe_dtype *output_dtypes;
    struct troupe_shape *output_shapes;
    /* After placement: */
    int rank;
    int accelerator; /* of the rank, from 1; 0: its CPU */
    /* After replication: which replica, -1 for none. */
    int replica;
};

/* `train`, `loop`, `cluster` and `strategy` of the JSON, decoded (graph/sections.h). */
struct troupe_sections;
/* Functions of `library` (graph/library.h). */
struct troupe_library;

struct troupe_graph {
    char *path; /* for messages: "examples/mlp.json" */
    struct troupe_node *nodes;
    int node_count, node_capacity;
    struct troupe_name_map names; /* node name -> number */
    struct troupe_sections *sections;
    struct troupe_library *library; /* NULL: none */
    uint64_t seed;
};

TROUPE_MUST_USE enum troupe_status troupe_graph_create(struct troupe_graph **out);
void troupe_graph_destroy(struct troupe_graph *graph);

/* Appends a node and returns its number in `*out`; name and op are checked (ALREADY_EXISTS,
 * NOT_FOUND); inputs, controls and attr values are copied. Pointers to nodes become stale. */
struct troupe_node_spec {
    const char *name, *op, *device, *origin; /* device, origin: NULL for none, the name */
    const struct troupe_value *inputs;
    int input_count;
    const int *controls;
    int control_count;
    const struct troupe_named_attr *attrs;
    int attr_count;
    int line, column;
};
TROUPE_MUST_USE enum troupe_status troupe_graph_add(struct troupe_graph *graph,
                                                    const struct troupe_node_spec *spec, int *out);
TROUPE_MUST_USE enum troupe_status troupe_graph_add_control(struct troupe_graph *graph, int node,
                                                            int control);
/* Sets or replaces an attr; moves the value. */
TROUPE_MUST_USE enum troupe_status troupe_node_set_attr(struct troupe_node *node, const char *name,
                                                        struct troupe_attr value);
int troupe_graph_find(const struct troupe_graph *graph, const char *name); /* -1: none */

/* Reads "name", "name:port" into a value. NOT_FOUND with the nearest name; INVALID_ARGUMENT for
 * a port that the node does not have. */
TROUPE_MUST_USE enum troupe_status troupe_graph_value(const struct troupe_graph *graph,
                                                      const char *text, struct troupe_value *out);

/* JSON in (graph/load.c): friendly form and GraphDef's protobuf-JSON form, sections decoded,
 * inputs and attrs linked. Every error of the file goes to `diagnostics`; INVALID_ARGUMENT when
 * there was one, UNAVAILABLE when the file could not be read. Relative file names in the graph
 * (datasets) stay as they are. */
TROUPE_MUST_USE enum troupe_status troupe_graph_load(const char *path, uint64_t seed,
                                                     struct troupe_diagnostics *diagnostics,
                                                     struct troupe_graph **out);
TROUPE_MUST_USE enum troupe_status troupe_graph_parse(const char *text, size_t length,
                                                      const char *path, uint64_t seed,
                                                      struct troupe_diagnostics *diagnostics,
                                                      struct troupe_graph **out);
/* JSON out: friendly form, so that what a rewrite made can be read and run again. */
TROUPE_MUST_USE enum troupe_status troupe_graph_print(const struct troupe_graph *graph,
                                                      struct troupe_text *out);

/* Fills in defaults and dtype attrs, checks arity and dtypes, infers dtypes and shapes of every
 * node from number `first` on, in topological order; cycles are errors with the cycle printed. */
TROUPE_MUST_USE enum troupe_status troupe_graph_infer(struct troupe_graph *graph, int first,
                                                      struct troupe_diagnostics *diagnostics);

/* Writes a topological order (inputs and controls first) of all nodes into order[node_count].
 * INVALID_ARGUMENT: "cycle without NextIteration: a -> b -> a". */
TROUPE_MUST_USE enum troupe_status troupe_graph_sort(const struct troupe_graph *graph, int *order);

/* Marks in keep[node_count] the ancestors of the given nodes; a node in `cut` (a feed) is kept
 * and its own inputs are not followed. */
TROUPE_MUST_USE enum troupe_status troupe_graph_ancestors(const struct troupe_graph *graph,
                                                          const int *nodes, int count,
                                                          const bool *cut, bool *keep);

/* Adds d loss / d xs[i] as nodes and writes the values (NONE where loss does not depend on
 * it) into gradients[]. INVALID_ARGUMENT names a node on the path without a gradient. */
TROUPE_MUST_USE enum troupe_status troupe_graph_gradients(struct troupe_graph *graph,
                                                          struct troupe_value loss,
                                                          const struct troupe_value *xs, int count,
                                                          struct troupe_value *gradients);

/* Applies the `train` section: gradients, one update node per variable, a NoOp named "train". */
TROUPE_MUST_USE enum troupe_status troupe_graph_train(struct troupe_graph *graph);

/* The tasks of job "worker" in a job of `ranks` ranks, and the rank of one: the `cluster`
 * section's, or all ranks where there is none. */
int troupe_graph_worker_count(const struct troupe_graph *graph, int ranks);
int troupe_graph_worker_rank(const struct troupe_graph *graph, int task);

/* Rewrites a training graph, `train` included, for `spec` ("data-parallel") over `ranks` ranks. */
TROUPE_MUST_USE enum troupe_status troupe_graph_strategy(struct troupe_graph *graph,
                                                         const char *spec, int ranks);

/* "examples/mlp.json:14:40: node \"logits\" (MatMul)" into out, for messages. */
#define TROUPE_NODE_TEXT_MAX 512
const char *troupe_node_describe(const struct troupe_graph *graph, int node,
                                 char out[TROUPE_NODE_TEXT_MAX]);

#endif
