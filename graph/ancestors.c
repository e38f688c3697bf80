/* What a set of nodes depends on. */
#include <stdlib.h>

#include "base/memory.h"
#include "graph/graph.h"

static void push(int node, bool *keep, int *stack, int *depth)
{
    if (keep[node])
        return;
    keep[node] = true;
    stack[(*depth)++] = node;
}

enum troupe_status troupe_graph_ancestors(const struct troupe_graph *graph, const int *nodes,
                                          int count, const bool *cut, bool *keep)
{
    /* A node is pushed once: the stack never needs more than all of them. */
    int *stack = troupe_calloc((size_t)graph->node_count + 1, sizeof(int)), depth = 0;
    if (!stack)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++)
        push(nodes[i], keep, stack, &depth);
    while (depth > 0) {
        int number = stack[--depth];
        const struct troupe_node *node = &graph->nodes[number];
        if (cut && cut[number])
            continue;
        for (int i = 0; i < node->input_count; i++)
            push(node->inputs[i].node, keep, stack, &depth);
        for (int i = 0; i < node->control_count; i++)
            push(node->controls[i], keep, stack, &depth);
    }
    free(stack);
    return TROUPE_OK;
}
