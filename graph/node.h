/* What the files of this folder share about nodes; private to graph/. */
#ifndef TROUPE_GRAPH_NODE_H
#define TROUPE_GRAPH_NODE_H

#include "graph/graph.h"

/* Makes room for `count` nodes in all. */
TROUPE_MUST_USE enum troupe_status troupe_graph_reserve(struct troupe_graph *graph, int count);
/* Frees what a node holds. */
void troupe_node_fini(struct troupe_node *node);
/* Frees what inference made. */
void troupe_node_clear_outputs(struct troupe_node *node);
/* Appends an input or a control input. */
TROUPE_MUST_USE enum troupe_status troupe_node_add_input(struct troupe_node *node,
                                                         struct troupe_value value);
TROUPE_MUST_USE enum troupe_status troupe_node_add_control(struct troupe_node *node, int control);
/* For many control inputs: appends without a look at those that are there; and, after the last,
 * leaves the first of each alone. */
TROUPE_MUST_USE enum troupe_status troupe_node_append_control(struct troupe_node *node,
                                                              int control);
TROUPE_MUST_USE enum troupe_status troupe_node_settle_controls(struct troupe_node *node);

/* Checks a value against what the schema allows: dtypes, strings, the minimum. `wants ...`. */
TROUPE_MUST_USE enum troupe_status troupe_attr_check(const struct troupe_op_attr *wanted,
                                                     const struct troupe_attr *value);

/* rewrite.c: makes the frame of an Enter another one, "PREFIX/FRAME", where its body is copied to;
 * other nodes are left alone. RESOURCE_EXHAUSTED. */
TROUPE_MUST_USE enum troupe_status troupe_node_prefix_frame(struct troupe_node *node,
                                                            const char *prefix);

/* True for an op whose output belongs to the next iteration, so that no order follows from it. */
bool troupe_op_is_back_edge(const struct troupe_op_schema *schema);

/* Orders the nodes from number `first` on into order[node_count - first]; `*count` is how many
 * could be ordered, the others being in or behind a cycle, one of which is described in the
 * thread's message, with `*in_cycle` a node of it. Fails only for want of memory. */
TROUPE_MUST_USE enum troupe_status troupe_graph_sort_from(const struct troupe_graph *graph,
                                                          int first, int *order, int *count,
                                                          int *in_cycle);

/* Adds the thread's message as an error of a node: `node "sum" (Add, examples/mlp.json:31): ...`.
 */
void troupe_graph_report(const struct troupe_graph *graph, int number,
                         struct troupe_diagnostics *diagnostics);

/* troupe_graph_infer without closing the diagnostics. A node without a schema, and what depends on
 * one or on a node with an error, is passed over. Fails only for want of memory. */
TROUPE_MUST_USE enum troupe_status troupe_graph_infer_all(struct troupe_graph *graph, int first,
                                                          struct troupe_diagnostics *diagnostics);

#endif
