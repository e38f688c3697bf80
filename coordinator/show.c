/* `check` and `show`: a graph and its plan without running it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/accelerator.h"
#include "coordinator/partition.h"
#include "coordinator/session.h"
#include "graph/file.h"
#include "graph/sections.h"

#define TROUPE_RANKS_MAX 65536

static enum troupe_status load_prepared(const char *path, const char *strategy, int ranks,
                                        struct troupe_graph **out)
{
    if (ranks < 1 || ranks > TROUPE_RANKS_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "ranks is %d: wants 1 to %d", ranks,
                                  TROUPE_RANKS_MAX);
    struct troupe_diagnostics diagnostics;
    troupe_diagnostics_init(&diagnostics);
    struct troupe_graph *graph = NULL;
    enum troupe_status status = troupe_graph_load(path, 0, &diagnostics, &graph);
    enum troupe_status closed = troupe_diagnostics_close(&diagnostics);
    troupe_diagnostics_fini(&diagnostics);
    if (closed != TROUPE_OK || status != TROUPE_OK)
        return closed != TROUPE_OK ? closed : status;
    const char *used;
    status = troupe_graph_prepare(graph, strategy, ranks, NULL, &used);
    if (status != TROUPE_OK) {
        troupe_graph_destroy(graph);
        return status;
    }
    *out = graph;
    return TROUPE_OK;
}

enum troupe_status troupe_graph_check(const char *path, const char *strategy, int ranks,
                                      int *nodes_out)
{
    struct troupe_graph *graph = NULL;
    enum troupe_status status = load_prepared(path, strategy, ranks, &graph);
    if (status != TROUPE_OK)
        return status;
    if (nodes_out)
        *nodes_out = graph->node_count;
    troupe_graph_destroy(graph);
    return TROUPE_OK;
}

/* Everything is shown: every node is a target. */
static enum troupe_status partition_all(const struct troupe_graph *graph, int ranks,
                                        struct troupe_partition *out)
{
    int *targets = troupe_calloc((size_t)graph->node_count + 1, sizeof(int));
    if (!targets)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < graph->node_count; i++)
        targets[i] = i;
    struct troupe_signature signature = {.targets = targets, .target_count = graph->node_count};
    enum troupe_status status = troupe_partition_make(graph, ranks, &signature, out);
    free(targets);
    return status;
}

/* "loss:1", "^train", for messages about what crosses. */
static void print_value(const struct troupe_graph *graph, struct troupe_value value,
                        struct troupe_text *out)
{
    const char *name = graph->nodes[value.node].name;
    if (value.port < 0)
        troupe_text_addf(out, "^%s", name);
    else if (value.port == 0)
        troupe_text_add(out, name);
    else
        troupe_text_addf(out, "%s:%d", name, value.port);
}

static void print_type(const struct troupe_node *node, int port, struct troupe_text *out)
{
    char shape[TROUPE_SHAPE_TEXT_MAX];
    troupe_text_addf(out, "%s%s", troupe_dtype_name(node->output_dtypes[port]),
                     troupe_shape_print(&node->output_shapes[port], shape));
}

static void show_node_text(const struct troupe_graph *graph, int number, struct troupe_text *out)
{
    const struct troupe_node *node = &graph->nodes[number];
    troupe_text_addf(out, "  %s = %s(", node->name, node->schema->op->name);
    for (int i = 0; i < node->input_count; i++) {
        troupe_text_add(out, i ? ", " : "");
        print_value(graph, node->inputs[i], out);
    }
    for (int i = 0; i < node->control_count; i++) {
        troupe_text_add(out, i + node->input_count ? ", " : "");
        print_value(graph, (struct troupe_value){node->controls[i], -1}, out);
    }
    troupe_text_add(out, ")");
    for (int i = 0; i < node->output_count; i++) {
        troupe_text_add(out, i ? ", " : " -> ");
        print_type(node, i, out);
    }
    char device[24];
    if (node->accelerator > 0)
        troupe_text_addf(out, " on %s", troupe_node_device_name(node, device, sizeof(device)));
    troupe_text_add(out, "\n");
}

static void show_crossing_text(const struct troupe_graph *graph,
                               const struct troupe_crossing *crossing, int rank,
                               struct troupe_text *out)
{
    if (crossing->from_rank == rank) {
        troupe_text_add(out, "  Send ");
        print_value(graph, crossing->value, out);
        troupe_text_addf(out, " to rank %d", crossing->to_rank);
    } else if (crossing->to_rank == rank) {
        troupe_text_add(out, "  Recv ");
        print_value(graph, crossing->value, out);
        troupe_text_addf(out, " from rank %d", crossing->from_rank);
    } else {
        return;
    }
    if (crossing->is_control)
        troupe_text_add(out, " (a signal)\n");
    else if (crossing->is_static)
        troupe_text_addf(out, " (%zu bytes)\n", crossing->bytes);
    else
        troupe_text_add(out, " (size known at run time)\n");
}

static void show_text(const struct troupe_graph *graph, const struct troupe_partition *partition,
                      int ranks, struct troupe_text *out)
{
    troupe_text_addf(out, "%s: %d nodes, %d crossings on %d rank%s\n", graph->path,
                     partition->order_count, partition->crossing_count, ranks,
                     ranks == 1 ? "" : "s");
    for (int rank = 0; rank < ranks; rank++) {
        int count = 0;
        for (int i = 0; i < partition->order_count; i++)
            count += graph->nodes[partition->order[i]].rank == rank;
        troupe_text_addf(out, "rank %d, CPU:0: %d nodes\n", rank, count);
        for (int i = 0; i < partition->order_count; i++)
            if (graph->nodes[partition->order[i]].rank == rank)
                show_node_text(graph, partition->order[i], out);
        for (int i = 0; i < partition->crossing_count; i++)
            show_crossing_text(graph, &partition->crossings[i], rank, out);
    }
}

static json_t *value_json(const struct troupe_graph *graph, struct troupe_value value)
{
    struct troupe_text text;
    troupe_text_init(&text);
    print_value(graph, value, &text);
    json_t *json = json_string(text.data ? text.data : "");
    troupe_text_fini(&text);
    return json;
}

static json_t *node_json(const struct troupe_graph *graph, const struct troupe_node *node)
{
    json_t *inputs = json_array(), *outputs = json_array();
    for (int i = 0; i < node->input_count; i++)
        json_array_append_new(inputs, value_json(graph, node->inputs[i]));
    for (int i = 0; i < node->control_count; i++)
        json_array_append_new(inputs,
                              value_json(graph, (struct troupe_value){node->controls[i], -1}));
    for (int i = 0; i < node->output_count; i++) {
        const struct troupe_shape *shape = &node->output_shapes[i];
        json_t *dims = shape->rank < 0 ? json_null() : json_array();
        for (int d = 0; d < shape->rank; d++)
            json_array_append_new(dims,
                                  shape->dims[d] < 0 ? json_null() : json_integer(shape->dims[d]));
        json_array_append_new(outputs,
                              json_pack("{s:s, s:o}", "dtype",
                                        troupe_dtype_name(node->output_dtypes[i]), "shape", dims));
    }
    char device[24];
    return json_pack("{s:s, s:s, s:o, s:o, s:i, s:s}", "name", node->name, "op",
                     node->schema->op->name, "input", inputs, "output", outputs, "rank", node->rank,
                     "device", troupe_node_device_name(node, device, sizeof(device)));
}

static enum troupe_status show_json(const struct troupe_graph *graph,
                                    const struct troupe_partition *partition, int ranks,
                                    struct troupe_text *out)
{
    json_t *nodes = json_array(), *crossings = json_array();
    for (int i = 0; i < partition->order_count; i++)
        json_array_append_new(nodes, node_json(graph, &graph->nodes[partition->order[i]]));
    for (int i = 0; i < partition->crossing_count; i++) {
        const struct troupe_crossing *crossing = &partition->crossings[i];
        json_array_append_new(
            crossings,
            json_pack("{s:o, s:i, s:i, s:o}", "value", value_json(graph, crossing->value),
                      "send_rank", crossing->from_rank, "recv_rank", crossing->to_rank, "bytes",
                      crossing->is_static ? json_integer((json_int_t)crossing->bytes)
                                          : json_null()));
    }
    json_t *root = json_pack("{s:s, s:i, s:o, s:o}", "graph", graph->path, "ranks", ranks, "node",
                             nodes, "send_recv", crossings);
    char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (!text)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the plan as JSON");
    troupe_text_addf(out, "%s\n", text);
    free(text);
    return TROUPE_OK;
}

/* A string in DOT's quotes. */
static void dot_quote(const char *text, struct troupe_text *out)
{
    troupe_text_add(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            troupe_text_add(out, "\\");
        troupe_text_add_bytes(out, text, 1);
    }
    troupe_text_add(out, "\"");
}

static void dot_edge(const struct troupe_graph *graph, const struct troupe_partition *partition,
                     struct troupe_value value, const struct troupe_node *to,
                     struct troupe_text *out)
{
    const char *style = value.port < 0 ? "style=dashed" : "";
    int crossing = graph->nodes[value.node].rank == to->rank
                       ? -1
                       : troupe_partition_find(partition, value, to->rank);
    troupe_text_add(out, "  ");
    if (crossing >= 0)
        troupe_text_addf(out, "\"recv %d\"", crossing);
    else
        dot_quote(graph->nodes[value.node].name, out);
    troupe_text_add(out, " -> ");
    dot_quote(to->name, out);
    troupe_text_addf(out, " [%s];\n", style);
}

static void dot_crossings(const struct troupe_graph *graph,
                          const struct troupe_partition *partition, int rank,
                          struct troupe_text *out)
{
    for (int i = 0; i < partition->crossing_count; i++) {
        const struct troupe_crossing *crossing = &partition->crossings[i];
        if (crossing->from_rank == rank)
            troupe_text_addf(out, "    \"send %d\" [label=\"Send to %d\", shape=rarrow];\n", i,
                             crossing->to_rank);
        if (crossing->to_rank == rank)
            troupe_text_addf(out, "    \"recv %d\" [label=\"Recv from %d\", shape=rarrow];\n", i,
                             crossing->from_rank);
    }
    (void)graph;
}

static void show_dot(const struct troupe_graph *graph, const struct troupe_partition *partition,
                     int ranks, struct troupe_text *out)
{
    troupe_text_add(out, "digraph troupe {\n  node [shape=box];\n");
    for (int rank = 0; rank < ranks; rank++) {
        troupe_text_addf(out, "  subgraph \"cluster_%d\" {\n    label=\"rank %d, CPU:0\";\n", rank,
                         rank);
        for (int i = 0; i < partition->order_count; i++) {
            const struct troupe_node *node = &graph->nodes[partition->order[i]];
            if (node->rank != rank)
                continue;
            troupe_text_add(out, "    ");
            dot_quote(node->name, out);
            troupe_text_addf(out, " [tooltip=\"%s\"];\n", node->schema->op->name);
        }
        dot_crossings(graph, partition, rank, out);
        troupe_text_add(out, "  }\n");
    }
    for (int i = 0; i < partition->crossing_count; i++) {
        troupe_text_add(out, "  ");
        dot_quote(graph->nodes[partition->crossings[i].value.node].name, out);
        troupe_text_addf(out, " -> \"send %d\";\n  \"send %d\" -> \"recv %d\" [color=blue];\n", i,
                         i, i);
    }
    for (int i = 0; i < partition->order_count; i++) {
        const struct troupe_node *node = &graph->nodes[partition->order[i]];
        for (int j = 0; j < node->input_count; j++)
            if (!troupe_node_input_is_ref(node, j))
                dot_edge(graph, partition, node->inputs[j], node, out);
        for (int j = 0; j < node->control_count; j++)
            dot_edge(graph, partition, (struct troupe_value){node->controls[j], -1}, node, out);
    }
    troupe_text_add(out, "}\n");
}

enum troupe_status troupe_graph_show(const char *path, const char *strategy, int ranks,
                                     const char *format, char **out)
{
    bool json = strcmp(format, "json") == 0, dot = strcmp(format, "dot") == 0;
    if (!json && !dot && strcmp(format, "text") != 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "format \"%s\": wants text, json or dot",
                                  format);
    struct troupe_graph *graph = NULL;
    enum troupe_status status = load_prepared(path, strategy, ranks, &graph);
    if (status != TROUPE_OK)
        return status;
    struct troupe_partition partition;
    status = partition_all(graph, ranks, &partition);
    if (status != TROUPE_OK)
        goto destroy_graph;
    struct troupe_text text;
    troupe_text_init(&text);
    if (json)
        status = show_json(graph, &partition, ranks, &text);
    else if (dot)
        show_dot(graph, &partition, ranks, &text);
    else
        show_text(graph, &partition, ranks, &text);
    char *result = status == TROUPE_OK ? troupe_text_take(&text) : NULL;
    if (status == TROUPE_OK && !result)
        status = troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the plan's text");
    if (status == TROUPE_OK)
        *out = result;
    troupe_text_fini(&text);
    troupe_partition_fini(&partition);
destroy_graph:
    troupe_graph_destroy(graph);
    return status;
}
