/* What is done to a loaded graph before plans are made of it: `train`, inference, the strategy,
 * initialisers, placement. Deterministic: every rank does the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/placement.h"
#include "coordinator/session.h"
#include "graph/sections.h"
#include "graph/splice.h"

static const char *initializer_of(const struct troupe_node *node)
{
    const struct troupe_attr *attr = troupe_attr_find(node->attrs, node->attr_count, "initializer");
    if (!attr || attr->kind != TROUPE_ATTR_STRING || attr->count == 0)
        return NULL;
    return attr->value.s;
}

/* Adds "init/NAME": Assign(variable, initializer). */
static enum troupe_status add_assign(struct troupe_graph *graph, int variable, int *out)
{
    const struct troupe_node *node = &graph->nodes[variable];
    struct troupe_value inputs[2] = {{variable, 0}, {-1, 0}};
    enum troupe_status status = troupe_graph_value(graph, initializer_of(node), &inputs[1]);
    if (status != TROUPE_OK) {
        char text[TROUPE_NODE_TEXT_MAX];
        return troupe_status_prefix(
            status, "%s: initializer: ", troupe_node_describe(graph, variable, text));
    }
    char *name = troupe_asprintf("init/%s", node->name);
    if (!name)
        return TROUPE_RESOURCE_EXHAUSTED;
    struct troupe_node_spec spec = {.name = name,
                                    .op = "Assign",
                                    .device = node->device,
                                    .origin = name,
                                    .inputs = inputs,
                                    .input_count = 2,
                                    .line = node->line,
                                    .column = node->column};
    status = troupe_graph_add(graph, &spec, out);
    free(name);
    return status;
}

static enum troupe_status add_initializers(struct troupe_graph *graph)
{
    int count = graph->node_count, assigned = 0;
    int *controls = troupe_calloc((size_t)count + 1, sizeof(int));
    if (!controls)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        if (initializer_of(&graph->nodes[i]))
            status = add_assign(graph, i, &controls[assigned++]);
    if (status == TROUPE_OK && assigned > 0) {
        int number;
        struct troupe_node_spec spec = {.name = TROUPE_INIT_NODE,
                                        .op = "NoOp",
                                        .controls = controls,
                                        .control_count = assigned};
        status = troupe_graph_add(graph, &spec, &number);
    }
    free(controls);
    return status;
}

static enum troupe_status infer_from(struct troupe_graph *graph, int first)
{
    struct troupe_diagnostics diagnostics;
    troupe_diagnostics_init(&diagnostics);
    enum troupe_status status = troupe_graph_infer(graph, first, &diagnostics);
    enum troupe_status closed = troupe_diagnostics_close(&diagnostics);
    troupe_diagnostics_fini(&diagnostics);
    return closed != TROUPE_OK ? closed : status;
}

enum troupe_status troupe_graph_prepare(struct troupe_graph *graph, const char *strategy, int ranks,
                                        const struct troupe_device_table *devices,
                                        const char **used)
{
    if (!strategy)
        strategy =
            graph->sections && graph->sections->strategy ? graph->sections->strategy : "none";
    enum troupe_status status = TROUPE_OK; /* loading inferred the graph */
    if (strcmp(strategy, "none") != 0)
        status = troupe_graph_strategy(graph, strategy, ranks);
    else if (graph->sections && graph->sections->train)
        status = troupe_graph_train(graph);
    int first = graph->node_count;
    if (status == TROUPE_OK)
        status = add_initializers(graph);
    if (status == TROUPE_OK)
        status = troupe_graph_splice(graph);
    if (status == TROUPE_OK)
        status = infer_from(graph, first);
    bool *keep = troupe_calloc((size_t)graph->node_count + 1, sizeof(bool));
    if (!keep)
        return TROUPE_RESOURCE_EXHAUSTED;
    memset(keep, 1, (size_t)graph->node_count * sizeof(bool));
    if (status == TROUPE_OK)
        status = troupe_place(graph, ranks, devices, keep);
    free(keep);
    if (status == TROUPE_OK)
        *used = strategy;
    return status;
}
