/* Splicing. Invariant: the nodes of one body stay together and in order, so that a number of the
 * body and the number of its first node make a number of the graph. */
#include "graph/splice.h"

#include <stdlib.h>

#include "base/memory.h"
#include "graph/node.h"

static enum troupe_status refuse_state(const struct troupe_graph *body, int node,
                                       const struct troupe_function *function)
{
    char text[TROUPE_NODE_TEXT_MAX];

    return troupe_status_fail(TROUPE_UNIMPLEMENTED,
                              "%s: function \"%s\" calls itself and cannot name a variable: pass "
                              "its value as an input",
                              troupe_node_describe(body, node, text), function->name);
}

static bool is_state(const struct troupe_node *node)
{
    return node->schema->output_count > 0 && node->schema->outputs[0].is_ref;
}

static enum troupe_status add_node(struct troupe_graph *graph,
                                   const struct troupe_function *function, int index)
{
    const struct troupe_node *node = &function->body->nodes[index];
    struct troupe_node_spec spec = {.op = node->schema->op->name,
                                    .device = node->device[0] != '\0' ? node->device : NULL,
                                    .attrs = node->attrs,
                                    .attr_count = node->attr_count,
                                    .line = node->line,
                                    .column = node->column};
    char *name;
    enum troupe_status status;
    int number = -1;

    if (is_state(node))
        return refuse_state(function->body, index, function);
    name = troupe_asprintf("%s/%s", function->name, node->name);
    if (name == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    spec.name = name;
    status = troupe_graph_add(graph, &spec, &number);
    free(name);
    if (status != TROUPE_OK)
        return status;
    return troupe_node_prefix_frame(&graph->nodes[number], function->name);
}

/* Inputs and control inputs come once every node of the body is there. */
static enum troupe_status link_node(struct troupe_graph *graph,
                                    const struct troupe_function *function, int index)
{
    const struct troupe_node *node = &function->body->nodes[index];
    struct troupe_node *copy = &graph->nodes[function->first + index];
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; i < node->input_count && status == TROUPE_OK; i++)
        status = troupe_node_add_input(
            copy,
            (struct troupe_value){function->first + node->inputs[i].node, node->inputs[i].port});
    for (int i = 0; i < node->control_count && status == TROUPE_OK; i++)
        status = troupe_node_add_control(copy, function->first + node->controls[i]);
    return status;
}

static enum troupe_status splice_function(struct troupe_graph *graph, int number)
{
    struct troupe_function *function = &graph->library->functions[number];
    int count = function->body->node_count;
    enum troupe_status status = TROUPE_OK;

    function->first = graph->node_count;
    function->node_count = count;
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = add_node(graph, function, i);
    for (int i = 0; i < count && status == TROUPE_OK; i++) {
        graph->nodes[function->first + i].function = number + 1;
        status = link_node(graph, function, i);
    }
    if (status != TROUPE_OK)
        return status;
    for (int i = 0; i < function->input_count; i++)
        function->inputs[i] += function->first;
    for (int i = 0; i < function->output_count; i++)
        function->outputs[i].value.node += function->first;
    troupe_graph_destroy(function->body);
    function->body = NULL;
    return TROUPE_OK;
}

enum troupe_status troupe_graph_splice(struct troupe_graph *graph)
{
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; graph->library != NULL && i < graph->library->count && status == TROUPE_OK; i++)
        if (graph->library->functions[i].body != NULL)
            status = splice_function(graph, i);
    return status;
}

const struct troupe_function *troupe_node_called(const struct troupe_graph *graph,
                                                 const struct troupe_node *node)
{
    const char *attr;

    if (node->schema->op->flow != TROUPE_FLOW_CALL)
        return NULL;
    return &graph->library->functions[troupe_library_find(graph->library,
                                                          troupe_node_callee(node, 0, &attr))];
}
