/* A graph, run one node after another. Invariant: values[n] is set exactly when node n has fired in
 * this evaluation, and holds all its outputs. */
#include "evaluate.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "ops/tensor.h"

struct troupe_graph *graph_of(const char *text)
{
    struct troupe_graph *graph = NULL;
    struct troupe_diagnostics diagnostics;
    troupe_diagnostics_init(&diagnostics);
    enum troupe_status status =
        troupe_graph_parse(text, strlen(text), "g.json", 7, &diagnostics, &graph);
    cr_assert_eq(status, TROUPE_OK, "%s\n%s", troupe_status_message(), text);
    status = troupe_graph_infer(graph, 0, &diagnostics);
    if (status == TROUPE_OK)
        status = troupe_diagnostics_close(&diagnostics);
    cr_assert_eq(status, TROUPE_OK, "%s\n%s", troupe_status_message(), text);
    troupe_diagnostics_fini(&diagnostics);
    return graph;
}

static void *zeros(int count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    cr_assert_not_null(memory);
    return memory;
}

void evaluator_init(struct evaluator *evaluator, const struct troupe_graph *graph)
{
    *evaluator = (struct evaluator){.graph = graph};
    evaluator->feeds = zeros(graph->node_count, sizeof(struct troupe_tensor *));
    evaluator->resources = zeros(graph->node_count, sizeof(struct troupe_resource *));
    evaluator->values = zeros(graph->node_count, sizeof(struct troupe_tensor **));
    evaluator->fired = zeros(graph->node_count, sizeof(bool));
}

static void forget(struct evaluator *evaluator)
{
    for (int i = 0; i < evaluator->graph->node_count; i++) {
        for (int j = 0; evaluator->values[i] && j < evaluator->graph->nodes[i].output_count; j++)
            troupe_tensor_unref(evaluator->values[i][j]);
        free(evaluator->values[i]);
        evaluator->values[i] = NULL;
        evaluator->fired[i] = false;
    }
}

void evaluator_fini(struct evaluator *evaluator)
{
    forget(evaluator);
    for (int i = 0; i < evaluator->graph->node_count; i++) {
        troupe_tensor_unref(evaluator->feeds[i]);
        if (evaluator->resources[i])
            evaluator->resources[i]->destroy(evaluator->resources[i]);
    }
    free(evaluator->feeds);
    free(evaluator->resources);
    free(evaluator->values);
    free(evaluator->fired);
}

void evaluator_feed(struct evaluator *evaluator, int node, struct troupe_tensor *value)
{
    troupe_tensor_unref(evaluator->feeds[node]);
    evaluator->feeds[node] = value;
}

/* True for an input that names state; no op has one after a list. */
static bool input_is_ref(const struct troupe_node *node, int index)
{
    return index < node->schema->input_count && node->schema->inputs[index].is_ref;
}

static int ref_owner(const struct troupe_graph *graph, int node)
{
    while (!graph->nodes[node].schema->op->resource_create)
        node = graph->nodes[node].inputs[0].node;
    return node;
}

static void describe(const struct troupe_graph *graph, int number, struct troupe_kernel *kernel)
{
    const struct troupe_node *node = &graph->nodes[number];
    *kernel = (struct troupe_kernel){.name = node->name,
                                     .origin = node->origin,
                                     .schema = node->schema,
                                     .attrs = node->attrs,
                                     .attr_count = node->attr_count,
                                     .input_count = node->input_count,
                                     .output_count = node->output_count,
                                     .output_dtypes = node->output_dtypes,
                                     .output_shapes = node->output_shapes,
                                     .seed = graph->seed,
                                     .stream = troupe_hash_string(TROUPE_HASH_START, node->origin)};
}

static struct troupe_resource *resource_of(struct evaluator *evaluator, int number)
{
    const struct troupe_op *op = evaluator->graph->nodes[number].schema->op;
    if (!evaluator->resources[number]) {
        struct troupe_kernel kernel;
        describe(evaluator->graph, number, &kernel);
        cr_assert_eq(op->resource_create(&kernel, &evaluator->resources[number]), TROUPE_OK, "%s",
                     troupe_status_message());
    }
    return evaluator->resources[number];
}

static void fire(struct evaluator *evaluator, int number);

static void add_into(struct troupe_tensor *sum, const struct troupe_tensor *term)
{
    cr_assert_eq(sum->elements, term->elements);
    void *to = troupe_tensor_data_mutable(sum);
    const void *from = troupe_tensor_data(term);
    for (int64_t i = 0; i < sum->elements; i++)
        if (sum->dtype == TROUPE_FLOAT32)
            ((float *)to)[i] += ((const float *)from)[i];
        else
            ((double *)to)[i] += ((const double *)from)[i];
}

static const char *key_of(const struct troupe_node *node)
{
    return troupe_attr_find(node->attrs, node->attr_count, "key")->value.s;
}

/* Adds up the inputs of all nodes with the same key. */
static void all_reduce(struct evaluator *evaluator, int number)
{
    const struct troupe_graph *graph = evaluator->graph;
    const struct troupe_node *node = &graph->nodes[number];
    for (int peer = 0; peer < graph->node_count; peer++) {
        const struct troupe_node *other = &graph->nodes[peer];
        if (other->schema != node->schema || strcmp(key_of(other), key_of(node)) != 0)
            continue;
        cr_assert_eq(other->input_count, node->input_count);
        for (int i = 0; i < node->input_count; i++) {
            struct troupe_value input = other->inputs[i];
            fire(evaluator, input.node);
            const struct troupe_tensor *term = evaluator->values[input.node][input.port];
            struct troupe_tensor **sum = &evaluator->values[number][i];
            if (*sum)
                add_into(*sum, term);
            else
                cr_assert_eq(troupe_tensor_copy(term, sum), TROUPE_OK);
        }
    }
}

static void compute(struct evaluator *evaluator, int number)
{
    const struct troupe_graph *graph = evaluator->graph;
    const struct troupe_node *node = &graph->nodes[number];
    struct troupe_kernel kernel;
    describe(graph, number, &kernel);
    struct troupe_tensor **inputs = zeros(node->input_count, sizeof(struct troupe_tensor *));
    struct troupe_resource **states = zeros(node->input_count, sizeof(struct troupe_resource *));
    enum troupe_dtype *dtypes = zeros(node->input_count, sizeof(enum troupe_dtype));
    for (int i = 0; i < node->input_count; i++) {
        struct troupe_value input = node->inputs[i];
        dtypes[i] = graph->nodes[input.node].output_dtypes[input.port];
        if (input_is_ref(node, i))
            states[i] = resource_of(evaluator, ref_owner(graph, input.node));
        else /* a second reference, so that no kernel writes in place what others will read */
            inputs[i] = troupe_tensor_ref(evaluator->values[input.node][input.port]);
    }
    kernel.input_dtypes = dtypes;
    kernel.input_resources = states;
    if (node->schema->op->resource_create)
        kernel.own_resource = resource_of(evaluator, number);
    kernel.row = troupe_kernel_row_find(node->schema, "CPU", node->attrs, node->attr_count);
    cr_assert_not_null(kernel.row, "%s: %s", node->name, troupe_status_message());
    if (kernel.row->init)
        cr_assert_eq(kernel.row->init(&kernel), TROUPE_OK, "%s: %s", node->name,
                     troupe_status_message());
    struct troupe_kernel_call call = {.kernel = &kernel,
                                      .inputs = inputs,
                                      .outputs = evaluator->values[number],
                                      .step = evaluator->step};
    cr_assert_eq(troupe_call_compute(&call), TROUPE_OK, "%s (%s): %s", node->name,
                 node->schema->op->name, troupe_status_message());
    if (kernel.row->fini)
        kernel.row->fini(&kernel);
    for (int i = 0; i < node->input_count; i++)
        troupe_tensor_unref(inputs[i]);
    free(inputs);
    free(states);
    free(dtypes);
}

/* What was inferred must be what came out. */
static void check_outputs(const struct evaluator *evaluator, int number)
{
    const struct troupe_node *node = &evaluator->graph->nodes[number];
    for (int i = 0; i < node->output_count; i++) {
        const struct troupe_tensor *value = evaluator->values[number][i];
        struct troupe_shape merged, shape = troupe_shape_of(value);
        char inferred[TROUPE_SHAPE_TEXT_MAX], computed[TROUPE_SHAPE_TEXT_MAX];
        cr_assert_eq(value->dtype, node->output_dtypes[i], "%s", node->name);
        cr_assert_eq(troupe_shape_merge(&node->output_shapes[i], &shape, &merged), TROUPE_OK,
                     "%s (%s): inferred %s, computed %s", node->name, node->schema->op->name,
                     troupe_shape_print(&node->output_shapes[i], inferred),
                     troupe_shape_print(&shape, computed));
    }
}

static void fire(struct evaluator *evaluator, int number)
{
    const struct troupe_node *node = &evaluator->graph->nodes[number];
    if (evaluator->fired[number])
        return;
    evaluator->fired[number] = true;
    if (!evaluator->feeds[number]) {
        for (int i = 0; i < node->control_count; i++)
            fire(evaluator, node->controls[i]);
        for (int i = 0; i < node->input_count; i++)
            if (!input_is_ref(node, i) ||
                !evaluator->graph->nodes[node->inputs[i].node].schema->op->resource_create)
                fire(evaluator, node->inputs[i].node);
    }
    evaluator->values[number] = zeros(node->output_count, sizeof(struct troupe_tensor *));
    if (evaluator->feeds[number])
        evaluator->values[number][0] = troupe_tensor_ref(evaluator->feeds[number]);
    else if (strcmp(node->schema->op->name, "AllReduce") == 0)
        all_reduce(evaluator, number);
    else
        compute(evaluator, number);
    check_outputs(evaluator, number);
}

void evaluator_run(struct evaluator *evaluator, const int *nodes, int count)
{
    forget(evaluator);
    /* Reads come before the updates of a step. */
    for (int i = 0; i < evaluator->graph->node_count; i++)
        if (evaluator->resources[i])
            fire(evaluator, i);
    for (int i = 0; i < count; i++)
        fire(evaluator, nodes[i]);
    evaluator->step++;
}

const struct troupe_tensor *evaluator_value(const struct evaluator *evaluator,
                                            struct troupe_value value)
{
    cr_assert(evaluator->fired[value.node], "%s", evaluator->graph->nodes[value.node].name);
    return evaluator->values[value.node][value.port];
}

void evaluator_initialize(struct evaluator *evaluator)
{
    const struct troupe_graph *graph = evaluator->graph;
    for (int i = 0; i < graph->node_count; i++) {
        const struct troupe_node *node = &graph->nodes[i];
        const struct troupe_attr *attr =
            troupe_attr_find(node->attrs, node->attr_count, "initializer");
        if (!attr || attr->count == 0)
            continue;
        struct troupe_value value;
        cr_assert_eq(troupe_graph_value(graph, attr->value.s, &value), TROUPE_OK);
        forget(evaluator);
        fire(evaluator, value.node);
        struct troupe_tensor *copy;
        cr_assert_eq(troupe_tensor_copy(evaluator->values[value.node][value.port], &copy),
                     TROUPE_OK);
        troupe_variable_set(troupe_variable_of(resource_of(evaluator, i)), copy);
        troupe_tensor_unref(copy);
    }
    forget(evaluator);
}
