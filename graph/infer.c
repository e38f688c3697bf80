/* Dtypes and shapes of every node. Invariant: a node is inferred after its producers, so that what
 * it sees is final; only what comes out of a NextIteration is not known yet. A loop's Merge first
 * has its Enter's shape, and once everything is inferred it is widened to what the NextIteration
 * gives, and what follows from it is inferred again, until nothing changes: a Merge can be widened
 * once per dimension and once in its rank. A node with an error leaves those that depend on it
 * alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/node.h"

/* How far a known value is followed through Identity, Enter and Switch. */
#define KNOWN_DEPTH_MAX 8

struct inference {
    struct troupe_graph *graph;
    struct troupe_diagnostics *diagnostics;
    int first;
    bool *poisoned; /* per node from `first` on */
    bool *changed;  /* per node from `first` on: by widening, and not yet followed */
};

static const struct troupe_attr *node_attr(const struct troupe_node *node, const char *name)
{
    return troupe_attr_find(node->attrs, node->attr_count, name);
}

/* How many inputs or outputs an arg stands for; -1 when an attr that is not there yet says. */
static int arg_count(const struct troupe_node *node, const struct troupe_op_arg *arg)
{
    const struct troupe_attr *attr;

    if (arg->number_attr != NULL) {
        attr = node_attr(node, arg->number_attr);
        if (attr == NULL || attr->kind != TROUPE_ATTR_INT)
            return -1;
        return attr->value.i >= 0 && attr->value.i <= 1000000 ? (int)attr->value.i : -1;
    }
    if (arg->list_attr != NULL) {
        attr = node_attr(node, arg->list_attr);
        return attr != NULL && attr->kind == TROUPE_ATTR_LIST_TYPE ? (int)attr->count : -1;
    }
    return 1;
}

static const char *arg_length_attr(const struct troupe_op_arg *arg)
{
    return arg->number_attr != NULL ? arg->number_attr : arg->list_attr;
}

static enum troupe_status arity_wrong(const struct troupe_node *node)
{
    const struct troupe_op_schema *schema = node->schema;
    char names[256] = "";
    size_t used = 0;
    bool plain = true;

    for (int i = 0; i < schema->input_count; i++) {
        if (used < sizeof(names))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "",
                                     schema->inputs[i].name);
        plain &= arg_length_attr(&schema->inputs[i]) == NULL;
    }
    if (schema->input_count == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants no inputs, has %d",
                                  node->input_count);
    if (!plain)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants inputs \"%s\", has %d",
                                  schema->op->inputs, node->input_count);
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants %d input%s (%s), has %d",
                              schema->input_count, schema->input_count == 1 ? "" : "s", names,
                              node->input_count);
}

/* How many inputs belong to each arg. One length that no attr says is what the others leave. */
static enum troupe_status count_inputs(struct troupe_node *node, int *counts)
{
    const struct troupe_op_schema *schema = node->schema;
    const char *open = NULL; /* the attr that holds the length to be found */
    bool open_is_number = false;
    int left = node->input_count, sharing = 0;

    for (int i = 0; i < schema->input_count; i++) {
        const struct troupe_op_arg *arg = &schema->inputs[i];

        counts[i] = arg_count(node, arg);
        if (counts[i] >= 0) {
            left -= counts[i];
            continue;
        }
        if (open != NULL && strcmp(open, arg_length_attr(arg)) != 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants attr \"%s\" or attr \"%s\"",
                                      open, arg_length_attr(arg));
        open = arg_length_attr(arg);
        open_is_number = arg->number_attr != NULL;
        sharing++;
    }
    if (left < 0 || (sharing == 0 && left > 0) || (sharing > 0 && left % sharing != 0))
        return arity_wrong(node);
    for (int i = 0; i < schema->input_count; i++) {
        if (counts[i] < 0)
            counts[i] = left / sharing;
    }
    if (!open_is_number)
        return TROUPE_OK;
    if (troupe_op_attr_find(schema, open) != NULL) {
        struct troupe_attr number = troupe_attr_int(left / sharing);

        if (troupe_attr_check(troupe_op_attr_find(schema, open), &number) != TROUPE_OK)
            return arity_wrong(node);
    }
    return troupe_node_set_attr(node, open, troupe_attr_int(left / sharing));
}

/* The output arg of a producer that a port belongs to. */
static const struct troupe_op_arg *port_arg(const struct troupe_node *node, int port)
{
    for (int i = 0; i < node->schema->output_count; i++) {
        int count = arg_count(node, &node->schema->outputs[i]);

        if (port < count)
            return &node->schema->outputs[i];
        port -= count > 0 ? count : 0;
    }
    return NULL;
}

/* Checks that a value is there; its dtype, INVALID when it is not known yet. */
static enum troupe_status value_dtype(const struct troupe_graph *graph, struct troupe_value value,
                                      const struct troupe_op_arg *arg, enum troupe_dtype *out)
{
    const struct troupe_node *producer;
    const struct troupe_op_arg *from;

    if (value.node < 0 || value.node >= graph->node_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "input \"%s\": no node has number %d",
                                  arg->name, value.node);
    producer = &graph->nodes[value.node];
    *out = TROUPE_DTYPE_INVALID;
    if (producer->output_dtypes == NULL)
        return TROUPE_OK;
    if (value.port < 0 || value.port >= producer->output_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "input \"%s\" is \"%s:%d\", but node \"%s\" (%s) has %d output%s",
                                  arg->name, producer->name, value.port, producer->name,
                                  producer->schema->op->name, producer->output_count,
                                  producer->output_count == 1 ? "" : "s");
    from = port_arg(producer, value.port);
    if (arg->is_ref && (from == NULL || !from->is_ref))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "input \"%s\" wants a variable, got \"%s\" (%s)", arg->name,
                                  producer->name, producer->schema->op->name);
    *out = producer->output_dtypes[value.port];
    return TROUPE_OK;
}

static enum troupe_status dtype_wrong(const struct troupe_graph *graph,
                                      const struct troupe_node *node,
                                      const struct troupe_op_arg *arg, int input,
                                      enum troupe_dtype want, enum troupe_dtype got)
{
    const char *from = graph->nodes[node->inputs[input].node].name;

    if (arg->type_attr != NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "input \"%s\" wants %s, as attr \"%s\" or the inputs before it "
                                  "say, got %s from \"%s\"",
                                  arg->name, troupe_dtype_name(want), arg->type_attr,
                                  troupe_dtype_name(got), from);
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "input \"%s\" wants %s, got %s from \"%s\"",
                              arg->name, troupe_dtype_name(want), troupe_dtype_name(got), from);
}

/* Holds one input to the arg's dtype, or settles the attr that holds it. */
static enum troupe_status settle_input(const struct troupe_graph *graph, struct troupe_node *node,
                                       const struct troupe_op_arg *arg, int input,
                                       enum troupe_dtype got)
{
    const struct troupe_attr *attr = NULL;
    const struct troupe_op_attr *wanted;
    struct troupe_attr value = troupe_attr_type(got);

    if (got == TROUPE_DTYPE_INVALID || arg->list_attr != NULL)
        return TROUPE_OK;
    if (arg->type_attr == NULL)
        return got == arg->dtype ? TROUPE_OK
                                 : dtype_wrong(graph, node, arg, input, arg->dtype, got);
    attr = node_attr(node, arg->type_attr);
    if (attr != NULL && attr->kind == TROUPE_ATTR_TYPE)
        return got == attr->value.type
                   ? TROUPE_OK
                   : dtype_wrong(graph, node, arg, input, attr->value.type, got);
    wanted = troupe_op_attr_find(node->schema, arg->type_attr);
    if (wanted != NULL && troupe_attr_check(wanted, &value) != TROUPE_OK)
        return troupe_status_prefix(TROUPE_INVALID_ARGUMENT, "input \"%s\" ", arg->name);
    return troupe_node_set_attr(node, arg->type_attr, value);
}

/* A list(type) attr is what its inputs are, or has to agree with them. */
static enum troupe_status settle_list(const struct troupe_graph *graph, struct troupe_node *node,
                                      const struct troupe_op_arg *arg, int from, int count,
                                      const enum troupe_dtype *dtypes)
{
    const struct troupe_attr *attr = node_attr(node, arg->list_attr);

    for (int i = 0; i < count; i++) {
        if (dtypes[from + i] == TROUPE_DTYPE_INVALID && attr == NULL)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants attr \"%s\"", arg->list_attr);
        if (attr != NULL && dtypes[from + i] != TROUPE_DTYPE_INVALID &&
            attr->value.list_type[i] != dtypes[from + i])
            return dtype_wrong(graph, node, arg, from + i, attr->value.list_type[i],
                               dtypes[from + i]);
    }
    if (attr != NULL)
        return TROUPE_OK;
    return troupe_node_set_attr(node, arg->list_attr,
                                troupe_attr_list_type(dtypes + from, (size_t)count));
}

/* Checks the inputs and completes the attrs that follow from them. */
static enum troupe_status settle_inputs(const struct troupe_graph *graph, struct troupe_node *node,
                                        enum troupe_dtype *dtypes, int *counts)
{
    enum troupe_status status = count_inputs(node, counts);
    int input = 0;

    for (int a = 0; a < node->schema->input_count && status == TROUPE_OK; a++) {
        const struct troupe_op_arg *arg = &node->schema->inputs[a];
        int from = input;

        for (; input < from + counts[a] && status == TROUPE_OK; input++) {
            status = value_dtype(graph, node->inputs[input], arg, &dtypes[input]);
            if (status == TROUPE_OK)
                status = settle_input(graph, node, arg, input, dtypes[input]);
        }
        if (status == TROUPE_OK && arg->list_attr != NULL)
            status = settle_list(graph, node, arg, from, counts[a], dtypes);
    }
    return status;
}

static enum troupe_status fill_defaults(struct troupe_node *node)
{
    for (int i = 0; i < node->schema->attr_count; i++) {
        const struct troupe_op_attr *wanted = &node->schema->attrs[i];
        const struct troupe_attr *have = node_attr(node, wanted->name);
        enum troupe_status status = TROUPE_OK;

        if (have != NULL) {
            status = troupe_attr_check(wanted, have);
            if (status != TROUPE_OK)
                return troupe_status_prefix(status, "attr \"%s\" ", wanted->name);
            continue;
        }
        if (!wanted->has_default)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants attr \"%s\", a %s",
                                      wanted->name, troupe_attr_kind_name(wanted->kind));
        status = troupe_node_set_attr(node, wanted->name, troupe_attr_copy(&wanted->default_value));
        if (status != TROUPE_OK)
            return status;
    }
    return TROUPE_OK;
}

static enum troupe_dtype arg_dtype(const struct troupe_node *node, const struct troupe_op_arg *arg,
                                   int index)
{
    const struct troupe_attr *attr;

    if (arg->list_attr != NULL) {
        attr = node_attr(node, arg->list_attr);
        return attr != NULL && (size_t)index < attr->count ? attr->value.list_type[index]
                                                           : TROUPE_DTYPE_INVALID;
    }
    if (arg->type_attr == NULL)
        return arg->dtype;
    attr = node_attr(node, arg->type_attr);
    return attr != NULL && attr->kind == TROUPE_ATTR_TYPE ? attr->value.type : TROUPE_DTYPE_INVALID;
}

/* How many outputs there are and of what dtypes; their shapes start as unknown. */
static enum troupe_status make_outputs(const struct troupe_node *node, struct troupe_node *out)
{
    int count = 0, output = 0;

    for (int a = 0; a < node->schema->output_count; a++) {
        int items = arg_count(node, &node->schema->outputs[a]);

        if (items < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants attr \"%s\"",
                                      arg_length_attr(&node->schema->outputs[a]));
        count += items;
    }
    out->output_dtypes = troupe_calloc((size_t)count, sizeof(*out->output_dtypes));
    out->output_shapes = troupe_calloc((size_t)count, sizeof(*out->output_shapes));
    if (out->output_dtypes == NULL || out->output_shapes == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int a = 0; a < node->schema->output_count; a++) {
        int items = arg_count(node, &node->schema->outputs[a]);

        for (int i = 0; i < items; i++, output++) {
            out->output_dtypes[output] = arg_dtype(node, &node->schema->outputs[a], i);
            out->output_shapes[output] = troupe_shape_unknown();
        }
    }
    out->output_count = count;
    return TROUPE_OK;
}

/* The value of Shape of a known shape; NULL when it is not known or there is no memory. */
static struct troupe_tensor *known_shape(const struct troupe_node *node,
                                         const struct troupe_node *producer, int port)
{
    struct troupe_tensor *tensor;
    int64_t rank;

    if (port >= producer->output_count || !troupe_shape_is_known(&producer->output_shapes[port]))
        return NULL;
    rank = producer->output_shapes[port].rank;
    if (troupe_tensor_create(node->output_dtypes[0], 1, &rank, &tensor) != TROUPE_OK)
        return NULL;
    for (int64_t i = 0; i < rank; i++) {
        int64_t size = producer->output_shapes[port].dims[i];

        if (node->output_dtypes[0] == TROUPE_INT64)
            ((int64_t *)troupe_tensor_data_mutable(tensor))[i] = size;
        else
            ((int32_t *)troupe_tensor_data_mutable(tensor))[i] = (int32_t)size;
    }
    return tensor;
}

/* A value that is known before the run, with a reference for the caller; else NULL. */
static struct troupe_tensor *known_value(const struct troupe_graph *graph,
                                         struct troupe_value value)
{
    for (int depth = 0; depth < KNOWN_DEPTH_MAX; depth++) {
        const struct troupe_node *node = &graph->nodes[value.node];
        const struct troupe_attr *attr;

        if (node->schema == NULL || node->output_dtypes == NULL)
            return NULL;
        if (node->schema->op->flow == TROUPE_FLOW_ENTER ||
            node->schema->op->flow == TROUPE_FLOW_SWITCH) {
            value = node->inputs[0]; /* whenever it fires, with this value */
            continue;
        }
        if (value.port != 0)
            return NULL;
        if (strcmp(node->schema->op->name, "Const") == 0) {
            attr = node_attr(node, "value");
            return attr != NULL && attr->kind == TROUPE_ATTR_TENSOR
                       ? troupe_tensor_ref(attr->value.tensor)
                       : NULL;
        }
        if (node->input_count != 1)
            return NULL;
        if (strcmp(node->schema->op->name, "Shape") == 0)
            return graph->nodes[node->inputs[0].node].output_shapes != NULL
                       ? known_shape(node, &graph->nodes[node->inputs[0].node],
                                     node->inputs[0].port)
                       : NULL;
        if (strcmp(node->schema->op->name, "Identity") != 0)
            return NULL;
        value = node->inputs[0];
    }
    return NULL;
}

/* The shape that a value of the next iteration is taken for as long as it is not known: that of the
 * first input of the node that is, which is a loop's Merge. */
static struct troupe_shape shape_before(const struct troupe_graph *graph,
                                        const struct troupe_node *node)
{
    for (int i = 0; i < node->input_count && node->schema->op->flow == TROUPE_FLOW_MERGE; i++) {
        const struct troupe_node *producer = &graph->nodes[node->inputs[i].node];

        if (producer->output_shapes != NULL)
            return producer->output_shapes[node->inputs[i].port];
    }
    return troupe_shape_unknown();
}

/* Runs the op's shape function. */
static enum troupe_status infer_shapes(const struct troupe_graph *graph,
                                       const struct troupe_node *node,
                                       const enum troupe_dtype *dtypes, struct troupe_node *out)
{
    size_t count = (size_t)node->input_count + 1;
    struct troupe_shape *shapes = troupe_calloc(count, sizeof(*shapes));
    struct troupe_tensor **values = troupe_calloc(count, sizeof(struct troupe_tensor *));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    if (shapes != NULL && values != NULL) {
        struct troupe_infer infer = {
            .schema = node->schema,
            .attrs = node->attrs,
            .attr_count = node->attr_count,
            .input_count = node->input_count,
            .input_dtypes = dtypes,
            .input_shapes = shapes,
            .input_values = (const struct troupe_tensor *const *)values,
            .output_count = out->output_count,
            .output_dtypes = out->output_dtypes,
            .output_shapes = out->output_shapes,
        };

        for (int i = 0; i < node->input_count; i++) {
            const struct troupe_node *producer = &graph->nodes[node->inputs[i].node];

            if (producer->output_shapes != NULL)
                shapes[i] = producer->output_shapes[node->inputs[i].port];
            else
                shapes[i] = shape_before(graph, node);
            values[i] = known_value(graph, node->inputs[i]);
        }
        status = node->schema->op->infer(&infer);
    }
    for (int i = 0; values != NULL && i < node->input_count; i++)
        troupe_tensor_unref(values[i]);
    free(values);
    free(shapes);
    return status;
}

/* What is not known yet (of the next iteration) has the dtype that the arg says. */
static void complete_dtypes(const struct troupe_node *node, const int *counts,
                            enum troupe_dtype *dtypes)
{
    int input = 0;

    for (int a = 0; a < node->schema->input_count; a++) {
        for (int i = 0; i < counts[a]; i++, input++) {
            if (dtypes[input] == TROUPE_DTYPE_INVALID)
                dtypes[input] = arg_dtype(node, &node->schema->inputs[a], i);
        }
    }
}

static enum troupe_status check_back_edges(const struct troupe_graph *graph,
                                           const struct troupe_node *node)
{
    for (int i = 0; i < node->input_count && node->schema->op->flow != TROUPE_FLOW_MERGE; i++) {
        int producer = node->inputs[i].node;

        if (producer >= 0 && producer < graph->node_count &&
            troupe_op_is_back_edge(graph->nodes[producer].schema))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "reads NextIteration \"%s\"; only a Merge at the head of "
                                      "its loop may",
                                      graph->nodes[producer].name);
    }
    return TROUPE_OK;
}

static enum troupe_status infer_node(struct troupe_graph *graph, struct troupe_node *node)
{
    enum troupe_dtype *dtypes = troupe_calloc((size_t)node->input_count + 1, sizeof(*dtypes));
    int *counts = troupe_calloc((size_t)node->schema->input_count + 1, sizeof(*counts));
    struct troupe_node made = {0};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    if (dtypes == NULL || counts == NULL)
        goto free_arrays;
    status = check_back_edges(graph, node);
    if (status == TROUPE_OK)
        status = settle_inputs(graph, node, dtypes, counts);
    if (status == TROUPE_OK)
        status = fill_defaults(node);
    if (status == TROUPE_OK) {
        complete_dtypes(node, counts, dtypes);
        status = make_outputs(node, &made);
    }
    if (status == TROUPE_OK)
        status = infer_shapes(graph, node, dtypes, &made);
    if (status != TROUPE_OK) {
        troupe_node_clear_outputs(&made);
        goto free_arrays;
    }
    troupe_node_clear_outputs(node);
    node->output_count = made.output_count;
    node->output_dtypes = made.output_dtypes;
    node->output_shapes = made.output_shapes;

free_arrays:
    free(dtypes);
    free(counts);
    return status;
}

static bool inference_is_poisoned(const struct inference *inference, int node)
{
    return node >= inference->first && node < inference->graph->node_count &&
           inference->poisoned[node - inference->first];
}

/* True when the node or one of its producers had an error that was told already. */
static bool inference_skips(const struct inference *inference, int number)
{
    const struct troupe_node *node = &inference->graph->nodes[number];

    if (node->schema == NULL || inference_is_poisoned(inference, number))
        return true;
    for (int i = 0; i < node->input_count; i++) {
        int producer = node->inputs[i].node;

        if (inference_is_poisoned(inference, producer) &&
            !troupe_op_is_back_edge(inference->graph->nodes[producer].schema))
            return true;
    }
    return false;
}

void troupe_graph_report(const struct troupe_graph *graph, int number,
                         struct troupe_diagnostics *diagnostics)
{
    const struct troupe_node *node = &graph->nodes[number];
    const char *path = graph->path != NULL ? graph->path : "graph";
    const char *op = node->schema->op->name;

    if (node->line > 0)
        troupe_diagnostics_add(diagnostics, NULL, node->line, node->column,
                               "node \"%s\" (%s, %s:%d): %s", node->name, op, path, node->line,
                               troupe_status_message());
    else if (strcmp(node->origin, node->name) != 0)
        troupe_diagnostics_add(diagnostics, NULL, 0, 0, "node \"%s\" (%s, made for \"%s\"): %s",
                               node->name, op, node->origin, troupe_status_message());
    else
        troupe_diagnostics_add(diagnostics, NULL, 0, 0, "node \"%s\" (%s): %s", node->name, op,
                               troupe_status_message());
}

static void inference_report(const struct inference *inference, int number)
{
    troupe_graph_report(inference->graph, number, inference->diagnostics);
}

static enum troupe_status infer_in_order(struct inference *inference, const int *order, int count)
{
    for (int i = 0; i < count; i++) {
        struct troupe_node *node = &inference->graph->nodes[order[i]];
        enum troupe_status status;

        if (inference_skips(inference, order[i])) {
            inference->poisoned[order[i] - inference->first] = true;
            continue;
        }
        status = infer_node(inference->graph, node);
        if (status == TROUPE_RESOURCE_EXHAUSTED)
            return status;
        if (status != TROUPE_OK) {
            inference->poisoned[order[i] - inference->first] = true;
            inference_report(inference, order[i]);
        }
    }
    return TROUPE_OK;
}

static bool node_has_back_edge(const struct troupe_graph *graph, const struct troupe_node *node)
{
    for (int i = 0; i < node->input_count && node->schema != NULL; i++) {
        int producer = node->inputs[i].node;

        if (producer >= 0 && producer < graph->node_count &&
            troupe_op_is_back_edge(graph->nodes[producer].schema))
            return true;
    }
    return false;
}

static bool node_follows_change(const struct inference *inference, const struct troupe_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        int producer = node->inputs[i].node - inference->first;

        if (producer >= 0 && inference->changed[producer])
            return true;
    }
    return false;
}

/* Infers a node once more, where a shape before it was widened; `*changed`: its own shapes are
 * others now. A Merge is never narrowed, so that widening ends. */
static enum troupe_status infer_again(struct inference *inference, int number, bool *changed)
{
    struct troupe_node *node = &inference->graph->nodes[number];
    int count = node->output_count;
    size_t bytes = (size_t)count * sizeof(*node->output_shapes);
    struct troupe_shape *before = troupe_calloc((size_t)count + 1, sizeof(*before));
    enum troupe_status status;

    *changed = false;
    if (before == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    memcpy(before, node->output_shapes, bytes);
    status = infer_node(inference->graph, node);
    if (status == TROUPE_OK && node->schema->op->flow == TROUPE_FLOW_MERGE)
        node->output_shapes[0] = troupe_shape_widen(&before[0], &node->output_shapes[0]);
    for (int i = 0; status == TROUPE_OK && i < count; i++)
        *changed |= !troupe_shape_equal(&before[i], &node->output_shapes[i]);
    if (status != TROUPE_OK && status != TROUPE_RESOURCE_EXHAUSTED) {
        inference->poisoned[number - inference->first] = true;
        inference_report(inference, number);
        status = TROUPE_OK;
    }
    free(before);
    return status;
}

/* One walk over the order; `*again`: something before a back edge has changed, perhaps. */
static enum troupe_status widen_once(struct inference *inference, const int *order, int count,
                                     bool is_first, bool *again)
{
    struct troupe_graph *graph = inference->graph;

    *again = false;
    for (int i = 0; i < count; i++) {
        const struct troupe_node *node = &graph->nodes[order[i]];
        bool is_back = troupe_op_is_back_edge(node->schema), changed = false;
        enum troupe_status status = TROUPE_OK;

        if (inference_skips(inference, order[i]))
            continue;
        if (node_follows_change(inference, node) || (is_first && node_has_back_edge(graph, node)))
            status = infer_again(inference, order[i], &changed);
        if (status != TROUPE_OK)
            return status;
        inference->changed[order[i] - inference->first] = changed;
        *again |= changed && is_back;
    }
    return TROUPE_OK;
}

/* Once all is inferred: a loop's Merge has to allow what its NextIteration gives. */
static enum troupe_status widen_loops(struct inference *inference, const int *order, int count)
{
    bool again = false;
    enum troupe_status status;

    for (int i = 0; i < count && !again; i++)
        again = node_has_back_edge(inference->graph, &inference->graph->nodes[order[i]]);
    if (!again)
        return TROUPE_OK;
    status = widen_once(inference, order, count, true, &again);
    while (status == TROUPE_OK && again)
        status = widen_once(inference, order, count, false, &again);
    return status;
}

enum troupe_status troupe_graph_infer_all(struct troupe_graph *graph, int first,
                                          struct troupe_diagnostics *diagnostics)
{
    struct inference inference = {.graph = graph, .diagnostics = diagnostics, .first = first};
    size_t nodes = (size_t)(graph->node_count - first);
    int *order = troupe_calloc(nodes + 1, sizeof(*order));
    int count = 0, in_cycle = 0;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    inference.poisoned = troupe_calloc(nodes + 1, sizeof(bool));
    inference.changed = troupe_calloc(nodes + 1, sizeof(bool));
    if (order == NULL || inference.poisoned == NULL || inference.changed == NULL)
        goto free_arrays;
    for (int i = first; i < graph->node_count; i++)
        troupe_node_clear_outputs(&graph->nodes[i]);
    status = troupe_graph_sort_from(graph, first, order, &count, &in_cycle);
    if (status != TROUPE_OK)
        goto free_arrays;
    if ((size_t)count < nodes) {
        for (int i = 0; i < (int)nodes; i++)
            inference.poisoned[i] = true;
        for (int i = 0; i < count; i++)
            inference.poisoned[order[i] - first] = false;
        troupe_diagnostics_add(diagnostics, graph->path != NULL ? graph->path : "graph",
                               graph->nodes[in_cycle].line, graph->nodes[in_cycle].column, "%s",
                               troupe_status_message());
    }
    status = infer_in_order(&inference, order, count);
    if (status == TROUPE_OK)
        status = widen_loops(&inference, order, count);

free_arrays:
    free(inference.changed);
    free(inference.poisoned);
    free(order);
    return status;
}

enum troupe_status troupe_graph_infer(struct troupe_graph *graph, int first,
                                      struct troupe_diagnostics *diagnostics)
{
    enum troupe_status status = troupe_graph_infer_all(graph, first, diagnostics);

    return status == TROUPE_OK ? troupe_diagnostics_close(diagnostics) : status;
}
