/* Nodes that rewrites make. Invariant: each is inferred as soon as it is there, so that the next
 * one may ask for its dtype and shape. */
#include "graph/rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/node.h"

/* The name, or the first of name_1, name_2, ... that is free. New memory. */
static char *free_name(const struct troupe_graph *graph, const char *name)
{
    char *candidate = troupe_strdup(name);
    for (int i = 1; candidate && troupe_graph_find(graph, candidate) >= 0; i++) {
        free(candidate);
        candidate = troupe_asprintf("%s_%d", name, i);
    }
    return candidate;
}

static enum troupe_status infer_new(struct troupe_graph *graph, int number)
{
    struct troupe_diagnostics diagnostics;
    troupe_diagnostics_init(&diagnostics);
    enum troupe_status status = troupe_graph_infer(graph, number, &diagnostics);
    enum troupe_status closed = troupe_diagnostics_close(&diagnostics);
    troupe_diagnostics_fini(&diagnostics);
    return closed != TROUPE_OK ? closed : status;
}

enum troupe_status troupe_graph_new_node(struct troupe_graph *graph,
                                         const struct troupe_new_node *wanted, int *out)
{
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    char *name = free_name(graph, wanted->name), *device = NULL;
    int number = -1;
    if (wanted->like >= 0)
        device = troupe_strdup(graph->nodes[wanted->like].device);
    if (name && (device || wanted->like < 0)) {
        struct troupe_node_spec spec = {.name = name,
                                        .op = wanted->op,
                                        .device = device,
                                        .origin = wanted->origin,
                                        .inputs = wanted->inputs,
                                        .input_count = wanted->input_count,
                                        .controls = wanted->controls,
                                        .control_count = wanted->control_count,
                                        .attrs = wanted->attrs,
                                        .attr_count = wanted->attr_count};
        status = troupe_graph_add(graph, &spec, &number);
    }
    free(name);
    free(device);
    for (int i = 0; i < wanted->attr_count; i++)
        troupe_attr_fini(&wanted->attrs[i].value);
    if (status != TROUPE_OK)
        return status;
    graph->nodes[number].replica = wanted->like >= 0 ? graph->nodes[wanted->like].replica : -1;
    status = infer_new(graph, number);
    if (status != TROUPE_OK)
        return status;
    *out = number;
    return TROUPE_OK;
}

static enum troupe_status new_const(struct troupe_graph *graph, const char *name,
                                    struct troupe_tensor *tensor, int like, int *out)
{
    char value[] = "value", dtype[] = "dtype";
    struct troupe_named_attr attrs[] = {
        {value, troupe_attr_tensor(tensor)},
        {dtype, troupe_attr_type(troupe_tensor_dtype(tensor))},
    };
    struct troupe_new_node node = {
        .name = name, .op = "Const", .attrs = attrs, .attr_count = 2, .like = like};
    troupe_tensor_unref(tensor);
    return troupe_graph_new_node(graph, &node, out);
}

enum troupe_status troupe_graph_new_scalar(struct troupe_graph *graph, const char *name,
                                           enum troupe_dtype dtype, double value, int like,
                                           int *out)
{
    struct troupe_tensor *tensor;
    float single = (float)value;
    int32_t integer = (int32_t)value;
    const void *data = dtype == TROUPE_FLOAT32 ? (const void *)&single
                       : dtype == TROUPE_INT32 ? (const void *)&integer
                                               : (const void *)&value;
    if (dtype != TROUPE_FLOAT32 && dtype != TROUPE_FLOAT64 && dtype != TROUPE_INT32)
        return troupe_status_fail(TROUPE_UNIMPLEMENTED, "no %s constant for \"%s\"",
                                  troupe_dtype_name(dtype), name);
    enum troupe_status status = troupe_tensor_from_data(dtype, 0, NULL, data, &tensor);
    return status == TROUPE_OK ? new_const(graph, name, tensor, like, out) : status;
}

enum troupe_status troupe_graph_new_ints(struct troupe_graph *graph, const char *name,
                                         const int32_t *values, int count, int like, int *out)
{
    struct troupe_tensor *tensor;
    int64_t dim = count;
    enum troupe_status status = troupe_tensor_from_data(TROUPE_INT32, 1, &dim, values, &tensor);
    return status == TROUPE_OK ? new_const(graph, name, tensor, like, out) : status;
}

enum troupe_status troupe_node_prefix_frame(struct troupe_node *node, const char *prefix)
{
    const struct troupe_attr *frame;
    struct troupe_attr renamed;
    char *name;

    if (node->schema->op->flow != TROUPE_FLOW_ENTER)
        return TROUPE_OK;
    frame = troupe_attr_find(node->attrs, node->attr_count, "frame_name");
    name = troupe_asprintf("%s/%s", prefix, frame->value.s);
    if (name == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    renamed = troupe_attr_string(name);
    free(name);
    if (renamed.kind == TROUPE_ATTR_NONE)
        return TROUPE_RESOURCE_EXHAUSTED;
    return troupe_node_set_attr(node, "frame_name", renamed);
}
