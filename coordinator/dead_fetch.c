/* Why a fetched value never came: the branch that was not taken. Invariant: of the Switches before
 * a value the one that is fewest edges away is named. */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/plan.h"

static bool is_switch(const struct troupe_graph *graph, int node)
{
    return graph->nodes[node].schema->op->flow == TROUPE_FLOW_SWITCH;
}

/* The nearest output of a Switch before a value, itself included; node -1 when there is none. */
static enum troupe_status find_switch(const struct troupe_graph *graph, struct troupe_value value,
                                      struct troupe_value *out)
{
    size_t count = (size_t)graph->node_count + 1;
    int *queue = troupe_calloc(count, sizeof(int)), first = 0, last = 0;
    bool *seen = troupe_calloc(count, sizeof(bool));
    enum troupe_status status = queue && seen ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    *out = is_switch(graph, value.node) ? value : TROUPE_VALUE_NONE;
    if (status == TROUPE_OK) {
        queue[last++] = value.node;
        seen[value.node] = true;
    }
    while (status == TROUPE_OK && troupe_value_is_none(*out) && first < last) {
        const struct troupe_node *node = &graph->nodes[queue[first++]];
        for (int i = 0; i < node->input_count + node->control_count; i++) {
            struct troupe_value from =
                i < node->input_count
                    ? node->inputs[i]
                    : (struct troupe_value){node->controls[i - node->input_count], 0};
            if (seen[from.node])
                continue;
            seen[from.node] = true;
            queue[last++] = from.node;
            if (i < node->input_count && is_switch(graph, from.node) && troupe_value_is_none(*out))
                *out = from;
        }
    }
    free(queue);
    free(seen);
    return status;
}

enum troupe_status troupe_fetch_dead(const struct troupe_plan *plan)
{
    const struct troupe_graph *graph = plan->session->graph;
    struct troupe_value value = plan->signature.fetches[plan->dead_fetch], from;
    char text[TROUPE_NODE_TEXT_MAX], switch_text[TROUPE_NODE_TEXT_MAX];
    enum troupe_status status = find_switch(graph, value, &from);
    if (status != TROUPE_OK)
        return status;
    (void)troupe_node_describe(graph, value.node, text);
    if (troupe_value_is_none(from))
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "%s: fetched output %d has no value in step %lld", text,
                                  value.port, (long long)plan->dead_step);
    return troupe_status_fail(
        TROUPE_FAILED_PRECONDITION,
        "%s: fetched output %d has no value in step %lld: it is behind output %d (%s) of %s, a "
        "branch that was not taken; fetch the Merge behind the branches",
        text, value.port, (long long)plan->dead_step, from.port, from.port == 0 ? "false" : "true",
        troupe_node_describe(graph, from.node, switch_text));
}
