/* Topological order (Kahn, 1962: of nodes that are ready the one that became ready first).
 * Invariant: `missing` of a node counts its inputs and controls that are not in the order yet; an
 * edge out of a NextIteration belongs to the next iteration and counts nowhere. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/node.h"

/* A longer cycle is printed with its middle left out. */
#define CYCLE_SHOWN_MAX 16

struct sorter {
    const struct troupe_graph *graph;
    int first, count;
    int *missing; /* per node from `first` on */
    int *starts;  /* count + 1: where a node's consumers begin */
    int *consumers;
};

bool troupe_op_is_back_edge(const struct troupe_op_schema *schema)
{
    return schema != NULL && schema->op->flow == TROUPE_FLOW_NEXT_ITERATION;
}

static int node_edges(const struct troupe_node *node)
{
    return node->input_count + node->control_count;
}

/* The producer of edge `edge` of a node, or -1 when it imposes no order here. */
static int edge_producer(const struct sorter *sorter, const struct troupe_node *node, int edge)
{
    int producer = edge < node->input_count ? node->inputs[edge].node
                                            : node->controls[edge - node->input_count];

    if (producer < sorter->first || producer >= sorter->graph->node_count ||
        troupe_op_is_back_edge(sorter->graph->nodes[producer].schema))
        return -1;
    return producer;
}

static enum troupe_status sorter_init(struct sorter *sorter, const struct troupe_graph *graph,
                                      int first)
{
    size_t edges = 0;

    *sorter = (struct sorter){.graph = graph, .first = first, .count = graph->node_count - first};
    for (int i = first; i < graph->node_count; i++)
        edges += (size_t)node_edges(&graph->nodes[i]);
    sorter->missing = troupe_calloc((size_t)sorter->count + 1, sizeof(int));
    sorter->starts = troupe_calloc((size_t)sorter->count + 2, sizeof(int));
    sorter->consumers = troupe_calloc(edges + 1, sizeof(int));
    if (sorter->missing == NULL || sorter->starts == NULL || sorter->consumers == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < sorter->count; i++) {
        const struct troupe_node *node = &graph->nodes[first + i];

        for (int edge = 0; edge < node_edges(node); edge++) {
            int producer = edge_producer(sorter, node, edge);

            if (producer < 0)
                continue;
            sorter->missing[i]++;
            sorter->starts[producer - first + 2]++;
        }
    }
    for (int i = 2; i <= sorter->count + 1; i++)
        sorter->starts[i] += sorter->starts[i - 1];
    /* starts[i + 1] is where the next consumer of node i goes, and ends as where they end. */
    for (int i = 0; i < sorter->count; i++) {
        const struct troupe_node *node = &graph->nodes[first + i];

        for (int edge = 0; edge < node_edges(node); edge++) {
            int producer = edge_producer(sorter, node, edge);

            if (producer >= 0)
                sorter->consumers[sorter->starts[producer - first + 1]++] = i;
        }
    }
    return TROUPE_OK;
}

static void sorter_fini(struct sorter *sorter)
{
    free(sorter->missing);
    free(sorter->starts);
    free(sorter->consumers);
}

/* The order holds offsets from `first` while it is built. */
static int sorter_run(struct sorter *sorter, int *order)
{
    int ready = 0;

    for (int i = 0; i < sorter->count; i++) {
        if (sorter->missing[i] == 0)
            order[ready++] = i;
    }
    for (int done = 0; done < ready; done++) {
        int node = order[done];

        for (int i = sorter->starts[node]; i < sorter->starts[node + 1]; i++) {
            if (--sorter->missing[sorter->consumers[i]] == 0)
                order[ready++] = sorter->consumers[i];
        }
        order[done] = node + sorter->first;
    }
    return ready;
}

/* A producer of `node` that is not in the order either. */
static int sorter_stuck_producer(const struct sorter *sorter, int node)
{
    const struct troupe_node *self = &sorter->graph->nodes[node];

    for (int edge = 0; edge < node_edges(self); edge++) {
        int producer = edge_producer(sorter, self, edge);

        if (producer >= 0 && sorter->missing[producer - sorter->first] > 0)
            return producer;
    }
    return node; /* not reached: a stuck node misses a stuck producer */
}

/* Writes a cycle, in the direction of the data, as the thread's message. */
static enum troupe_status sorter_describe(const struct sorter *sorter, int *in_cycle)
{
    int *chain = troupe_calloc((size_t)sorter->count + 1, sizeof(int)); /* against the data */
    bool *seen = troupe_calloc((size_t)sorter->count + 1, sizeof(bool));
    struct troupe_text text;
    int node = sorter->first, length = 0, start = 0, lowest;

    if (chain == NULL || seen == NULL) {
        free(chain);
        free(seen);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    while (sorter->missing[node - sorter->first] <= 0)
        node++;
    for (; !seen[node - sorter->first]; node = sorter_stuck_producer(sorter, node)) {
        seen[node - sorter->first] = true;
        chain[length++] = node;
    }
    while (chain[start] != node)
        start++;
    lowest = start;
    for (int i = start; i < length; i++) {
        if (chain[i] < chain[lowest])
            lowest = i;
    }
    troupe_text_init(&text);
    for (int i = 0; i <= length - start; i++) {
        int at = start + (lowest - start + (length - start) - i) % (length - start);

        if (i >= CYCLE_SHOWN_MAX && i < length - start) {
            if (i == CYCLE_SHOWN_MAX)
                troupe_text_add(&text, " -> ...");
            continue;
        }
        troupe_text_addf(&text, "%s%s", i == 0 ? "" : " -> ", sorter->graph->nodes[chain[at]].name);
    }
    (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT, "cycle without NextIteration: %s",
                             text.data != NULL ? text.data : "?");
    *in_cycle = chain[lowest];
    troupe_text_fini(&text);
    free(chain);
    free(seen);
    return TROUPE_OK;
}

enum troupe_status troupe_graph_sort_from(const struct troupe_graph *graph, int first, int *order,
                                          int *count, int *in_cycle)
{
    struct sorter sorter;
    enum troupe_status status = sorter_init(&sorter, graph, first);

    if (status == TROUPE_OK) {
        *count = sorter_run(&sorter, order);
        if (*count < sorter.count)
            status = sorter_describe(&sorter, in_cycle);
    }
    sorter_fini(&sorter);
    return status;
}

enum troupe_status troupe_graph_sort(const struct troupe_graph *graph, int *order)
{
    int count = 0, in_cycle = 0;
    enum troupe_status status = troupe_graph_sort_from(graph, 0, order, &count, &in_cycle);

    if (status == TROUPE_OK && count < graph->node_count)
        return TROUPE_INVALID_ARGUMENT; /* the cycle is the thread's message */
    return status;
}
