/* The graph in memory. Invariant: nodes[0 .. node_count) are complete nodes, and `names` maps
 * each name to its number; the map borrows the names from the nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/library.h"
#include "graph/node.h"
#include "graph/sections.h"

static enum troupe_status no_memory(void)
{
    return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the graph");
}

enum troupe_status troupe_graph_create(struct troupe_graph **out)
{
    struct troupe_graph *graph = troupe_calloc(1, sizeof(*graph));

    if (graph == NULL)
        return no_memory();
    troupe_name_map_init(&graph->names);
    *out = graph;
    return TROUPE_OK;
}

void troupe_node_clear_outputs(struct troupe_node *node)
{
    free(node->output_dtypes);
    free(node->output_shapes);
    node->output_dtypes = NULL;
    node->output_shapes = NULL;
    node->output_count = 0;
}

void troupe_node_fini(struct troupe_node *node)
{
    free(node->name);
    free(node->origin);
    free(node->device);
    free(node->inputs);
    free(node->controls);
    for (int i = 0; i < node->attr_count; i++) {
        free(node->attrs[i].name);
        troupe_attr_fini(&node->attrs[i].value);
    }
    free(node->attrs);
    troupe_node_clear_outputs(node);
    *node = (struct troupe_node){0};
}

void troupe_graph_destroy(struct troupe_graph *graph)
{
    if (graph == NULL)
        return;
    troupe_name_map_fini(&graph->names);
    for (int i = 0; i < graph->node_count; i++)
        troupe_node_fini(&graph->nodes[i]);
    free(graph->nodes);
    troupe_sections_destroy(graph->sections);
    troupe_library_destroy(graph->library);
    free(graph->path);
    free(graph);
}

enum troupe_status troupe_graph_reserve(struct troupe_graph *graph, int count)
{
    struct troupe_node *nodes;
    int capacity = graph->node_capacity;

    if (count <= capacity)
        return TROUPE_OK;
    if (count < capacity + capacity / 2)
        count = capacity + capacity / 2;
    if (count < 16)
        count = 16;
    nodes = troupe_reallocarray(graph->nodes, (size_t)count, sizeof(*nodes));
    if (nodes == NULL)
        return no_memory();
    memset(nodes + capacity, 0, (size_t)(count - capacity) * sizeof(*nodes));
    graph->nodes = nodes;
    graph->node_capacity = count;
    return TROUPE_OK;
}

enum troupe_status troupe_node_add_input(struct troupe_node *node, struct troupe_value value)
{
    struct troupe_value *inputs =
        troupe_reallocarray(node->inputs, (size_t)node->input_count + 1, sizeof(*inputs));

    if (inputs == NULL)
        return no_memory();
    node->inputs = inputs;
    node->inputs[node->input_count++] = value;
    return TROUPE_OK;
}

enum troupe_status troupe_node_append_control(struct troupe_node *node, int control)
{
    int *controls =
        troupe_reallocarray(node->controls, (size_t)node->control_count + 1, sizeof(*controls));

    if (controls == NULL)
        return no_memory();
    node->controls = controls;
    node->controls[node->control_count++] = control;
    return TROUPE_OK;
}

/* A control input and where it stands. */
struct occurrence {
    int control, position;
};

static int occurrence_compare(const void *a, const void *b)
{
    const struct occurrence *x = a, *y = b;

    if (x->control != y->control)
        return x->control < y->control ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

enum troupe_status troupe_node_settle_controls(struct troupe_node *node)
{
    size_t count = (size_t)node->control_count;
    struct occurrence *sorted;
    int kept = 0;

    if (count < 2)
        return TROUPE_OK;
    sorted = troupe_calloc(count, sizeof(*sorted));
    if (sorted == NULL)
        return no_memory();
    for (int i = 0; i < node->control_count; i++)
        sorted[i] = (struct occurrence){node->controls[i], i};
    qsort(sorted, count, sizeof(*sorted), occurrence_compare);
    for (size_t i = 1; i < count; i++) {
        if (sorted[i].control == sorted[i - 1].control)
            node->controls[sorted[i].position] = -1;
    }
    free(sorted);
    for (int i = 0; i < node->control_count; i++) {
        if (node->controls[i] >= 0)
            node->controls[kept++] = node->controls[i];
    }
    node->control_count = kept;
    return TROUPE_OK;
}

enum troupe_status troupe_node_add_control(struct troupe_node *node, int control)
{
    for (int i = 0; i < node->control_count; i++) {
        if (node->controls[i] == control)
            return TROUPE_OK;
    }
    return troupe_node_append_control(node, control);
}

enum troupe_status troupe_graph_add_control(struct troupe_graph *graph, int node, int control)
{
    if (node < 0 || node >= graph->node_count || control < 0 || control >= graph->node_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "control input %d of node %d: the graph has %d nodes", control,
                                  node, graph->node_count);
    return troupe_node_add_control(&graph->nodes[node], control);
}

enum troupe_status troupe_node_set_attr(struct troupe_node *node, const char *name,
                                        struct troupe_attr value)
{
    struct troupe_named_attr *attrs;
    char *copy;

    for (int i = 0; i < node->attr_count; i++) {
        if (strcmp(node->attrs[i].name, name) == 0) {
            troupe_attr_fini(&node->attrs[i].value);
            node->attrs[i].value = value;
            return TROUPE_OK;
        }
    }
    copy = troupe_strdup(name);
    attrs = troupe_reallocarray(node->attrs, (size_t)node->attr_count + 1, sizeof(*attrs));
    if (attrs != NULL)
        node->attrs = attrs;
    if (copy == NULL || attrs == NULL) {
        free(copy);
        troupe_attr_fini(&value);
        return no_memory();
    }
    attrs[node->attr_count++] = (struct troupe_named_attr){copy, value};
    return TROUPE_OK;
}

static enum troupe_status node_fill(struct troupe_node *node, const struct troupe_node_spec *spec)
{
    enum troupe_status status = TROUPE_OK;

    node->name = troupe_strdup(spec->name);
    node->origin = troupe_strdup(spec->origin != NULL ? spec->origin : spec->name);
    node->device = troupe_strdup(spec->device != NULL ? spec->device : "");
    if (node->name == NULL || node->origin == NULL || node->device == NULL)
        return no_memory();
    for (int i = 0; i < spec->input_count && status == TROUPE_OK; i++)
        status = troupe_node_add_input(node, spec->inputs[i]);
    for (int i = 0; i < spec->control_count && status == TROUPE_OK; i++)
        status = troupe_node_append_control(node, spec->controls[i]);
    if (status == TROUPE_OK)
        status = troupe_node_settle_controls(node);
    for (int i = 0; i < spec->attr_count && status == TROUPE_OK; i++) {
        struct troupe_attr value = troupe_attr_copy(&spec->attrs[i].value);

        if (value.kind == TROUPE_ATTR_NONE && spec->attrs[i].value.kind != TROUPE_ATTR_NONE)
            return no_memory();
        status = troupe_node_set_attr(node, spec->attrs[i].name, value);
    }
    node->line = spec->line;
    node->column = spec->column;
    node->replica = -1;
    return status;
}

static enum troupe_status op_unknown(const char *node, const char *op)
{
    const char *near = troupe_op_suggest(op);

    if (near == NULL)
        return troupe_status_fail(TROUPE_NOT_FOUND, "node \"%s\": no op \"%s\"", node, op);
    return troupe_status_fail(TROUPE_NOT_FOUND, "node \"%s\": no op \"%s\" (did you mean \"%s\"?)",
                              node, op, near);
}

enum troupe_status troupe_graph_add(struct troupe_graph *graph, const struct troupe_node_spec *spec,
                                    int *out)
{
    const struct troupe_op_schema *schema = troupe_op_find(spec->op);
    struct troupe_node node = {0};
    enum troupe_status status;

    if (schema == NULL)
        return op_unknown(spec->name, spec->op);
    if (troupe_graph_find(graph, spec->name) >= 0)
        return troupe_status_fail(TROUPE_ALREADY_EXISTS, "there is a node \"%s\" already",
                                  spec->name);
    status = troupe_graph_reserve(graph, graph->node_count + 1);
    if (status != TROUPE_OK)
        return status;
    node.schema = schema;
    status = node_fill(&node, spec);
    if (status != TROUPE_OK)
        goto fini_node;
    if (troupe_name_map_put(&graph->names, node.name, graph->node_count) != 0) {
        status = no_memory();
        goto fini_node;
    }
    graph->nodes[graph->node_count] = node;
    *out = graph->node_count++;
    return TROUPE_OK;

fini_node:
    troupe_node_fini(&node);
    return status;
}

int troupe_graph_find(const struct troupe_graph *graph, const char *name)
{
    return troupe_name_map_get(&graph->names, name);
}

static enum troupe_status name_unknown(const struct troupe_graph *graph, const char *name)
{
    const char **names = troupe_calloc((size_t)graph->node_count + 1, sizeof(*names));
    const char *near = NULL;

    if (names != NULL) {
        for (int i = 0; i < graph->node_count; i++)
            names[i] = graph->nodes[i].name;
        near = troupe_text_nearest(name, names, (size_t)graph->node_count);
    }
    if (near != NULL)
        (void)troupe_status_fail(TROUPE_NOT_FOUND, "no node \"%s\" (did you mean \"%s\"?)", name,
                                 near);
    else
        (void)troupe_status_fail(TROUPE_NOT_FOUND, "no node \"%s\"", name);
    free(names);
    return TROUPE_NOT_FOUND;
}

/* Reads the digits after the colon; -1 when they are no port. */
static int port_parse(const char *digits)
{
    int port = 0;

    if (*digits == '\0')
        return -1;
    for (; *digits != '\0'; digits++) {
        if (*digits < '0' || *digits > '9' || port > 100000)
            return -1;
        port = port * 10 + (*digits - '0');
    }
    return port;
}

enum troupe_status troupe_graph_value(const struct troupe_graph *graph, const char *text,
                                      struct troupe_value *out)
{
    const char *colon = strchr(text, ':');
    char *name = strndup(text, colon != NULL ? (size_t)(colon - text) : strlen(text));
    int port = colon != NULL ? port_parse(colon + 1) : 0;
    enum troupe_status status = TROUPE_OK;
    int node;

    if (name == NULL)
        return no_memory();
    node = troupe_graph_find(graph, name);
    if (node < 0)
        status = name_unknown(graph, name);
    else if (port < 0)
        status = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                    "\"%s\": wants \"node\" or \"node:port\", a port being a "
                                    "number from 0",
                                    text);
    else if (graph->nodes[node].output_dtypes != NULL && port >= graph->nodes[node].output_count)
        status = troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "\"%s\": node \"%s\" (%s) has %d output%s", text, name,
            graph->nodes[node].schema->op->name, graph->nodes[node].output_count,
            graph->nodes[node].output_count == 1 ? "" : "s");
    free(name);
    if (status == TROUPE_OK)
        *out = (struct troupe_value){node, port};
    return status;
}

const char *troupe_node_describe(const struct troupe_graph *graph, int node,
                                 char out[TROUPE_NODE_TEXT_MAX])
{
    const struct troupe_node *self = &graph->nodes[node];
    const char *op = self->schema != NULL ? self->schema->op->name : "?";
    const char *path = graph->path != NULL ? graph->path : "graph";

    if (self->line > 0)
        snprintf(out, TROUPE_NODE_TEXT_MAX, "%s:%d:%d: node \"%s\" (%s)", path, self->line,
                 self->column, self->name, op);
    else
        snprintf(out, TROUPE_NODE_TEXT_MAX, "node \"%s\" (%s)", self->name, op);
    return out;
}
