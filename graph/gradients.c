/* Reverse-mode differentiation: the gradient of a loss as more nodes of the graph.
 *
 * Nodes between the xs and the loss are visited from the loss backwards; each hands the summed
 * gradient of its outputs to its op's gradient function, which adds nodes and says what flows to
 * the inputs. Invariant: when a node is visited all its consumers on the way to the loss have been.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/rewrite.h"

/* One contribution to the gradient of a node's output. */
struct flow {
    int port, next; /* next of the same node, -1 */
    struct troupe_value gradient;
};

struct differentiator {
    struct troupe_graph *graph;
    int forward_count; /* nodes before any gradient was added */
    int *order;
    bool *between;
    int *first; /* flow of a forward node, -1 */
    struct flow *flows;
    int flow_count, flow_capacity;
};

/* What the builder slots of a gradient know beside it. */
struct building {
    struct differentiator *differentiator;
    int forward;
};

bool troupe_value_is_none(struct troupe_value value)
{
    return value.node < 0;
}

static struct troupe_value gradient_node(struct troupe_gradient *self, const char *op,
                                         const struct troupe_value *inputs, int input_count,
                                         struct troupe_named_attr *attrs, int attr_count)
{
    const struct building *building = self->context;
    struct troupe_graph *graph = building->differentiator->graph;
    char *name = troupe_asprintf("gradients/%s_grad/%s", graph->nodes[building->forward].name, op);
    int number;
    struct troupe_new_node node = {.name = name,
                                   .op = op,
                                   .inputs = inputs,
                                   .input_count = input_count,
                                   .attrs = attrs,
                                   .attr_count = attr_count,
                                   .like = building->forward};
    self->status = name ? troupe_graph_new_node(graph, &node, &number) : TROUPE_RESOURCE_EXHAUSTED;
    free(name);
    return self->status == TROUPE_OK ? (struct troupe_value){number, 0} : TROUPE_VALUE_NONE;
}

static enum troupe_dtype gradient_dtype(const struct troupe_gradient *self,
                                        struct troupe_value value)
{
    const struct building *building = self->context;
    return building->differentiator->graph->nodes[value.node].output_dtypes[value.port];
}

static struct troupe_shape gradient_shape(const struct troupe_gradient *self,
                                          struct troupe_value value)
{
    const struct building *building = self->context;
    return building->differentiator->graph->nodes[value.node].output_shapes[value.port];
}

static enum troupe_status flow_add(struct differentiator *differentiator, struct troupe_value to,
                                   struct troupe_value gradient)
{
    if (differentiator->flow_count == differentiator->flow_capacity) {
        int capacity = differentiator->flow_capacity ? 2 * differentiator->flow_capacity : 64;
        struct flow *grown =
            troupe_reallocarray(differentiator->flows, (size_t)capacity, sizeof(*grown));
        if (!grown)
            return TROUPE_RESOURCE_EXHAUSTED;
        differentiator->flows = grown;
        differentiator->flow_capacity = capacity;
    }
    differentiator->flows[differentiator->flow_count] =
        (struct flow){to.port, differentiator->first[to.node], gradient};
    differentiator->first[to.node] = differentiator->flow_count++;
    return TROUPE_OK;
}

/* The sum of what flows into an output; NONE when nothing does. */
static enum troupe_status flow_sum(struct differentiator *differentiator, struct troupe_value of,
                                   struct troupe_value *out)
{
    *out = TROUPE_VALUE_NONE;
    int count = 0;
    for (int i = differentiator->first[of.node]; i >= 0; i = differentiator->flows[i].next)
        count += differentiator->flows[i].port == of.port;
    if (count == 0)
        return TROUPE_OK;
    struct troupe_value *values = troupe_calloc((size_t)count, sizeof(*values));
    if (!values)
        return TROUPE_RESOURCE_EXHAUSTED;
    /* The list is newest first; sums are in the order in which contributions came. */
    int at = count;
    for (int i = differentiator->first[of.node]; i >= 0; i = differentiator->flows[i].next)
        if (differentiator->flows[i].port == of.port)
            values[--at] = differentiator->flows[i].gradient;
    enum troupe_status status = TROUPE_OK;
    *out = values[0];
    if (count > 1) {
        int number = -1;
        char *name =
            troupe_asprintf("gradients/%s_grad/sum", differentiator->graph->nodes[of.node].name);
        struct troupe_new_node node = {
            .name = name, .op = "AddN", .inputs = values, .input_count = count, .like = of.node};
        status = name ? troupe_graph_new_node(differentiator->graph, &node, &number)
                      : TROUPE_RESOURCE_EXHAUSTED;
        free(name);
        *out = (struct troupe_value){number, 0};
    }
    free(values);
    return status;
}

/* Arrays of a node for its gradient function, which outlive the growth of the node array. */
struct node_view {
    struct troupe_value *inputs, *outputs, *output_gradients, *input_gradients;
    enum troupe_dtype *input_dtypes, *output_dtypes;
    struct troupe_shape *input_shapes, *output_shapes;
    struct troupe_named_attr *attrs;
};

static void view_fini(struct node_view *view, int attr_count)
{
    for (int i = 0; view->attrs && i < attr_count; i++)
        troupe_attr_fini(&view->attrs[i].value);
    free(view->attrs);
    free(view->inputs);
    free(view->outputs);
    free(view->output_gradients);
    free(view->input_gradients);
    free(view->input_dtypes);
    free(view->output_dtypes);
    free(view->input_shapes);
    free(view->output_shapes);
}

static bool view_alloc(struct node_view *view, const struct troupe_node *node)
{
    size_t inputs = (size_t)node->input_count + 1, outputs = (size_t)node->output_count + 1;
    view->inputs = troupe_calloc(inputs, sizeof(*view->inputs));
    view->input_gradients = troupe_calloc(inputs, sizeof(*view->input_gradients));
    view->input_dtypes = troupe_calloc(inputs, sizeof(*view->input_dtypes));
    view->input_shapes = troupe_calloc(inputs, sizeof(*view->input_shapes));
    view->outputs = troupe_calloc(outputs, sizeof(*view->outputs));
    view->output_gradients = troupe_calloc(outputs, sizeof(*view->output_gradients));
    view->output_dtypes = troupe_calloc(outputs, sizeof(*view->output_dtypes));
    view->output_shapes = troupe_calloc(outputs, sizeof(*view->output_shapes));
    view->attrs = troupe_calloc((size_t)node->attr_count + 1, sizeof(*view->attrs));
    return view->inputs && view->input_gradients && view->input_dtypes && view->input_shapes &&
           view->outputs && view->output_gradients && view->output_dtypes && view->output_shapes &&
           view->attrs;
}

static void view_fill(struct node_view *view, const struct troupe_graph *graph, int number)
{
    const struct troupe_node *node = &graph->nodes[number];
    for (int i = 0; i < node->input_count; i++) {
        struct troupe_value value = node->inputs[i];
        view->inputs[i] = value;
        view->input_gradients[i] = TROUPE_VALUE_NONE;
        view->input_dtypes[i] = graph->nodes[value.node].output_dtypes[value.port];
        view->input_shapes[i] = graph->nodes[value.node].output_shapes[value.port];
    }
    for (int i = 0; i < node->output_count; i++) {
        view->outputs[i] = (struct troupe_value){number, i};
        view->output_dtypes[i] = node->output_dtypes[i];
        view->output_shapes[i] = node->output_shapes[i];
    }
    for (int i = 0; i < node->attr_count; i++) {
        view->attrs[i].name = node->attrs[i].name; /* the name's memory does not move */
        view->attrs[i].value = troupe_attr_copy(&node->attrs[i].value);
    }
}

static bool is_floating(enum troupe_dtype dtype)
{
    return dtype == TROUPE_FLOAT32 || dtype == TROUPE_FLOAT64 || dtype == TROUPE_FLOAT16 ||
           dtype == TROUPE_BFLOAT16;
}

/* True when an input carries a gradient to its producer: floating, and no stop was asked for. */
static bool input_carries(const struct troupe_graph *graph, const struct troupe_node *node,
                          int input)
{
    struct troupe_value value = node->inputs[input];
    return is_floating(graph->nodes[value.node].output_dtypes[value.port]) &&
           strcmp(node->schema->op->name, "StopGradient") != 0;
}

static enum troupe_status no_gradient(const struct troupe_graph *graph, int number)
{
    char text[TROUPE_NODE_TEXT_MAX];
    const struct troupe_op *op = graph->nodes[number].schema->op;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s: has no gradient: %s",
                              troupe_node_describe(graph, number, text), op->no_gradient);
}

static enum troupe_status call_gradient(struct differentiator *differentiator, int number,
                                        struct node_view *view)
{
    struct troupe_graph *graph = differentiator->graph;
    const struct troupe_node *node = &graph->nodes[number];
    int input_count = node->input_count;
    struct building building = {differentiator, number};
    struct troupe_gradient gradient = {.schema = node->schema,
                                       .attrs = view->attrs,
                                       .attr_count = node->attr_count,
                                       .input_count = input_count,
                                       .inputs = view->inputs,
                                       .input_dtypes = view->input_dtypes,
                                       .input_shapes = view->input_shapes,
                                       .output_count = node->output_count,
                                       .outputs = view->outputs,
                                       .output_dtypes = view->output_dtypes,
                                       .output_shapes = view->output_shapes,
                                       .output_gradients = view->output_gradients,
                                       .input_gradients = view->input_gradients,
                                       .add = gradient_node,
                                       .dtype_of = gradient_dtype,
                                       .shape_of = gradient_shape,
                                       .context = &building};
    enum troupe_status status = node->schema->op->gradient(&gradient);
    if (status == TROUPE_OK)
        status = gradient.status;
    if (status != TROUPE_OK) {
        char text[TROUPE_NODE_TEXT_MAX];
        return troupe_status_prefix(status,
                                    "gradient of %s: ", troupe_node_describe(graph, number, text));
    }
    for (int i = 0; i < input_count && status == TROUPE_OK; i++)
        if (!troupe_value_is_none(view->input_gradients[i]) &&
            differentiator->between[view->inputs[i].node] && is_floating(view->input_dtypes[i]))
            status = flow_add(differentiator, view->inputs[i], view->input_gradients[i]);
    return status;
}

static enum troupe_status visit(struct differentiator *differentiator, int number)
{
    if (differentiator->first[number] < 0)
        return TROUPE_OK;
    const struct troupe_node *node = &differentiator->graph->nodes[number];
    bool leads_on = false;
    for (int i = 0; i < node->input_count; i++)
        leads_on = leads_on || (differentiator->between[node->inputs[i].node] &&
                                input_carries(differentiator->graph, node, i));
    if (!leads_on)
        return TROUPE_OK; /* one of the xs, or behind a stop */
    if (!node->schema->op->gradient)
        return no_gradient(differentiator->graph, number);
    int output_count = node->output_count, attr_count = node->attr_count;
    struct node_view view = {0};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (view_alloc(&view, node)) {
        view_fill(&view, differentiator->graph, number);
        status = TROUPE_OK;
    }
    for (int i = 0; i < output_count && status == TROUPE_OK; i++)
        status =
            flow_sum(differentiator, (struct troupe_value){number, i}, &view.output_gradients[i]);
    if (status == TROUPE_OK)
        status = call_gradient(differentiator, number, &view);
    view_fini(&view, attr_count);
    return status;
}

/* Marks the nodes that depend on an x through floating values, and on which the loss depends. */
static enum troupe_status find_between(struct differentiator *differentiator,
                                       struct troupe_value loss, const struct troupe_value *xs,
                                       int count)
{
    const struct troupe_graph *graph = differentiator->graph;
    bool *leads = troupe_calloc((size_t)graph->node_count + 1, sizeof(bool));
    if (!leads)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = troupe_graph_ancestors(graph, &loss.node, 1, NULL, leads);
    if (status == TROUPE_OK)
        status = troupe_graph_sort(graph, differentiator->order);
    for (int i = 0; i < count; i++)
        differentiator->between[xs[i].node] = leads[xs[i].node];
    for (int i = 0; i < graph->node_count && status == TROUPE_OK; i++) {
        int number = differentiator->order[i];
        const struct troupe_node *node = &graph->nodes[number];
        for (int j = 0; j < node->input_count && leads[number]; j++)
            if (differentiator->between[node->inputs[j].node] && input_carries(graph, node, j))
                differentiator->between[number] = true;
    }
    free(leads);
    return status;
}

static enum troupe_status check_loss(const struct troupe_graph *graph, struct troupe_value loss)
{
    const struct troupe_node *node = &graph->nodes[loss.node];
    enum troupe_dtype dtype = node->output_dtypes[loss.port];
    const struct troupe_shape *shape = &node->output_shapes[loss.port];
    char text[TROUPE_NODE_TEXT_MAX], printed[TROUPE_SHAPE_TEXT_MAX];
    if (dtype != TROUPE_FLOAT32 && dtype != TROUPE_FLOAT64)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "%s: a loss wants float32 or float64, this is %s",
            troupe_node_describe(graph, loss.node, text), troupe_dtype_name(dtype));
    if (shape->rank > 0)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "%s: a loss wants a scalar, this has shape %s: add a Mean",
            troupe_node_describe(graph, loss.node, text), troupe_shape_print(shape, printed));
    return TROUPE_OK;
}

/* A gradient has the shape of what it is for, which is known where a shape on the way was not. */
static enum troupe_status agree_on_shape(struct troupe_graph *graph, struct troupe_value x,
                                         struct troupe_value gradient)
{
    if (gradient.node < 0)
        return TROUPE_OK;
    const struct troupe_shape *wanted = &graph->nodes[x.node].output_shapes[x.port];
    struct troupe_shape *shape = &graph->nodes[gradient.node].output_shapes[gradient.port], before;
    char text[TROUPE_NODE_TEXT_MAX], first[TROUPE_SHAPE_TEXT_MAX], second[TROUPE_SHAPE_TEXT_MAX];
    before = *shape;
    if (troupe_shape_merge(&before, wanted, shape) == TROUPE_OK)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INTERNAL, "the gradient of %s has shape %s, and it has %s",
                              troupe_node_describe(graph, x.node, text),
                              troupe_shape_print(&before, first),
                              troupe_shape_print(wanted, second));
}

static enum troupe_status differentiate(struct differentiator *differentiator,
                                        struct troupe_value loss, double seed,
                                        const struct troupe_value *xs, int count,
                                        struct troupe_value *gradients)
{
    struct troupe_graph *graph = differentiator->graph;
    enum troupe_status status = find_between(differentiator, loss, xs, count);
    int number;
    if (status == TROUPE_OK)
        status = troupe_graph_new_scalar(graph, "gradients/seed",
                                         graph->nodes[loss.node].output_dtypes[loss.port], seed,
                                         loss.node, &number);
    if (status == TROUPE_OK && differentiator->between[loss.node])
        status = flow_add(differentiator, loss, (struct troupe_value){number, 0});
    for (int i = differentiator->forward_count - 1; i >= 0 && status == TROUPE_OK; i--)
        if (differentiator->between[differentiator->order[i]])
            status = visit(differentiator, differentiator->order[i]);
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = flow_sum(differentiator, xs[i], &gradients[i]);
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = agree_on_shape(graph, xs[i], gradients[i]);
    return status;
}

enum troupe_status troupe_graph_gradients_seeded(struct troupe_graph *graph,
                                                 struct troupe_value loss, double seed,
                                                 const struct troupe_value *xs, int count,
                                                 struct troupe_value *gradients)
{
    enum troupe_status status = check_loss(graph, loss);
    if (status != TROUPE_OK)
        return status;
    size_t nodes = (size_t)graph->node_count + 1;
    struct differentiator differentiator = {.graph = graph, .forward_count = graph->node_count};
    differentiator.order = troupe_calloc(nodes, sizeof(int));
    differentiator.between = troupe_calloc(nodes, sizeof(bool));
    differentiator.first = troupe_calloc(nodes, sizeof(int));
    status = TROUPE_RESOURCE_EXHAUSTED;
    if (differentiator.order && differentiator.between && differentiator.first) {
        for (int i = 0; i < graph->node_count; i++)
            differentiator.first[i] = -1;
        status = differentiate(&differentiator, loss, seed, xs, count, gradients);
    }
    free(differentiator.order);
    free(differentiator.between);
    free(differentiator.first);
    free(differentiator.flows);
    return status;
}

enum troupe_status troupe_graph_gradients(struct troupe_graph *graph, struct troupe_value loss,
                                          const struct troupe_value *xs, int count,
                                          struct troupe_value *gradients)
{
    return troupe_graph_gradients_seeded(graph, loss, 1.0, xs, count, gradients);
}
