/* Calls against the signatures of the functions they call. Invariant: once nothing is reported,
 * every call has the arguments that its functions want and its functions agree with each other, so
 * that lowering asks no more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/lower_parts.h"

static const struct troupe_attr *node_attr(const struct troupe_node *node, const char *name)
{
    return troupe_attr_find(node->attrs, node->attr_count, name);
}

/* ---- Before inference ---- */

static enum troupe_status unknown_function(const struct troupe_library *library, const char *name,
                                           const char *attr)
{
    size_t count = library != NULL ? (size_t)library->count : 0;
    const char **names = troupe_calloc(count + 1, sizeof(*names)), *near = NULL;
    size_t known = 0;

    for (size_t i = 0; names != NULL && i < count; i++) {
        if (library->functions[i].name != NULL)
            names[known++] = library->functions[i].name;
    }
    if (names != NULL)
        near = troupe_text_nearest(name, names, known);
    (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                             "attr \"%s\": no function \"%s\" in \"library\"%s%s%s", attr, name,
                             near != NULL ? " (did you mean \"" : "", near != NULL ? near : "",
                             near != NULL ? "\"?)" : "");
    free(names);
    return TROUPE_INVALID_ARGUMENT;
}

/* Sets the dtypes of outputs that a file may leave out; what it says is checked. */
static enum troupe_status settle_outputs(struct troupe_node *node,
                                         const struct troupe_function *function)
{
    const struct troupe_attr *have = node_attr(node, "Tout");
    size_t count = (size_t)function->output_count;
    enum troupe_dtype *dtypes = troupe_calloc(count + 1, sizeof(*dtypes));
    bool same = have == NULL || have->count == count;
    enum troupe_status status = TROUPE_OK;

    if (dtypes == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < count; i++) {
        dtypes[i] = function->outputs[i].dtype;
        same &= have == NULL || have->value.list_type[i < have->count ? i : 0] == dtypes[i];
    }
    if (!same)
        status =
            troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                               "attr \"Tout\" is not what function \"%s\" gives", function->name);
    else if (have == NULL)
        status = troupe_node_set_attr(node, "Tout", troupe_attr_list_type(dtypes, count));
    free(dtypes);
    return status;
}

/* The shapes that the first of the functions with outputs declares. */
static enum troupe_status settle_shapes(struct troupe_node *node,
                                        const struct troupe_function *function)
{
    struct troupe_attr shapes = {.kind = TROUPE_ATTR_LIST_SHAPE,
                                 .count = (size_t)function->output_count};

    if (node_attr(node, "output_shapes") != NULL)
        return TROUPE_OK;
    shapes.value.list_shape = troupe_calloc(shapes.count + 1, sizeof(struct troupe_shape));
    if (shapes.value.list_shape == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < function->output_count; i++)
        shapes.value.list_shape[i] = function->outputs[i].shape;
    return troupe_node_set_attr(node, "output_shapes", shapes);
}

static enum troupe_status settle_call(const struct troupe_library *library,
                                      struct troupe_node *node)
{
    bool is_while = node->schema->op->flow == TROUPE_FLOW_WHILE;
    const struct troupe_function *function = NULL;
    enum troupe_status status = TROUPE_OK;
    const char *attr = "";

    for (int i = 0; i < troupe_node_callee_count(node); i++) {
        const char *name = troupe_node_callee(node, i, &attr);
        int found = troupe_library_find(library, name);

        if (node_attr(node, attr) == NULL)
            return TROUPE_OK; /* inference says that it is wanted */
        if (found < 0)
            return unknown_function(library, name, attr);
        function = &library->functions[found];
    }
    if (function == NULL)
        return TROUPE_OK;
    if (!is_while)
        status = settle_outputs(node, function);
    /* A loop's outputs have its body's shapes only if it goes round. */
    return status == TROUPE_OK && !is_while ? settle_shapes(node, function) : status;
}

/* False when a function of the call had an error in what it declares, which was told already. */
static bool signatures_are_whole(const struct troupe_library *library,
                                 const struct troupe_node *node)
{
    const char *attr;

    for (int i = 0; i < troupe_node_callee_count(node); i++) {
        int found = troupe_library_find(library, troupe_node_callee(node, i, &attr));

        for (int k = 0; found >= 0 && k < library->functions[found].output_count; k++) {
            if (library->functions[found].outputs[k].name == NULL)
                return false;
        }
    }
    return true;
}

static enum troupe_status settle_graph(struct troupe_graph *graph,
                                       const struct troupe_library *library,
                                       struct troupe_diagnostics *diagnostics)
{
    for (int i = 0; i < graph->node_count; i++) {
        struct troupe_node *node = &graph->nodes[i];
        enum troupe_status status = TROUPE_OK;

        if (troupe_node_callee_count(node) == 0)
            continue;
        if (!signatures_are_whole(library, node)) {
            node->schema = NULL;
            continue;
        }
        status = settle_call(library, node);
        if (status == TROUPE_RESOURCE_EXHAUSTED)
            return status;
        if (status != TROUPE_OK) {
            troupe_graph_report(graph, i, diagnostics);
            node->schema = NULL;
        }
    }
    return TROUPE_OK;
}

enum troupe_status troupe_lower_signatures(struct troupe_graph *graph,
                                           struct troupe_diagnostics *diagnostics)
{
    enum troupe_status status = settle_graph(graph, graph->library, diagnostics);

    for (int i = 0; graph->library != NULL && i < graph->library->count; i++) {
        if (status == TROUPE_OK && graph->library->functions[i].body != NULL)
            status = settle_graph(graph->library->functions[i].body, graph->library, diagnostics);
    }
    return status;
}

/* ---- After inference ---- */

static const struct troupe_function *callee(const struct troupe_library *library,
                                            const struct troupe_node *node, int index)
{
    const char *attr, *name = troupe_node_callee(node, index, &attr);

    return &library->functions[troupe_library_find(library, name)];
}

/* One argument against the input that it is for. */
static enum troupe_status check_argument(const struct troupe_graph *graph,
                                         const struct troupe_node *node,
                                         const struct troupe_function *function, int index,
                                         struct troupe_value value)
{
    const struct troupe_node *producer = &graph->nodes[value.node];
    const struct troupe_node *input = &function->body->nodes[function->inputs[index]];
    const struct troupe_shape *declared = &input->output_shapes[0], *given;
    char want[TROUPE_SHAPE_TEXT_MAX], got[TROUPE_SHAPE_TEXT_MAX];
    struct troupe_shape merged;

    (void)node;
    if (producer->output_dtypes[value.port] != input->output_dtypes[0])
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "input \"%s\" of function \"%s\" wants %s, got %s from \"%s\"",
            input->name, function->name, troupe_dtype_name(input->output_dtypes[0]),
            troupe_dtype_name(producer->output_dtypes[value.port]), producer->name);
    given = &producer->output_shapes[value.port];
    if (troupe_shape_merge(declared, given, &merged) != TROUPE_OK)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "input \"%s\" of function \"%s\" wants shape %s, got %s from "
                                  "\"%s\"",
                                  input->name, function->name, troupe_shape_print(declared, want),
                                  troupe_shape_print(given, got), producer->name);
    return TROUPE_OK;
}

static enum troupe_status check_arguments(const struct troupe_graph *graph,
                                          const struct troupe_node *node, int first,
                                          const struct troupe_function *function)
{
    enum troupe_status status = TROUPE_OK;

    if (node->input_count - first != function->input_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "function \"%s\" wants %d input%s, got %d", function->name,
                                  function->input_count, function->input_count == 1 ? "" : "s",
                                  node->input_count - first);
    for (int i = 0; i < function->input_count && status == TROUPE_OK; i++)
        status = check_argument(graph, node, function, i, node->inputs[first + i]);
    return status;
}

/* Branches give the same. */
static enum troupe_status check_agreement(const struct troupe_function *one,
                                          const struct troupe_function *other)
{
    if (one->output_count != other->output_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "functions \"%s\" and \"%s\" want the same outputs, but have %d "
                                  "and %d",
                                  one->name, other->name, one->output_count, other->output_count);
    for (int i = 0; i < one->output_count; i++) {
        if (one->outputs[i].dtype != other->outputs[i].dtype)
            return troupe_status_fail(
                TROUPE_INVALID_ARGUMENT,
                "functions \"%s\" and \"%s\" want the same outputs, but output %d is %s and %s",
                one->name, other->name, i, troupe_dtype_name(one->outputs[i].dtype),
                troupe_dtype_name(other->outputs[i].dtype));
    }
    return TROUPE_OK;
}

/* A body gives what it takes. */
static enum troupe_status check_body(const struct troupe_function *body)
{
    if (body->output_count != body->input_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "body \"%s\" wants as many outputs as inputs, has %d and %d",
                                  body->name, body->output_count, body->input_count);
    for (int i = 0; i < body->input_count; i++) {
        const struct troupe_node *input = &body->body->nodes[body->inputs[i]];

        if (input->output_dtypes[0] != body->outputs[i].dtype)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "body \"%s\" takes %s as input \"%s\" and gives %s as output "
                                      "\"%s\"; the next iteration wants the same",
                                      body->name, troupe_dtype_name(input->output_dtypes[0]),
                                      input->name, troupe_dtype_name(body->outputs[i].dtype),
                                      body->outputs[i].name);
    }
    return TROUPE_OK;
}

static enum troupe_status check_condition(const struct troupe_function *condition)
{
    const struct troupe_function_output *output = &condition->outputs[0];

    if (condition->output_count == 1 && output->dtype == TROUPE_BOOL && output->shape.rank <= 0)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "cond \"%s\" wants one output, a bool scalar", condition->name);
}

static enum troupe_status check_while(const struct troupe_graph *graph,
                                      const struct troupe_library *library,
                                      const struct troupe_node *node)
{
    const struct troupe_function *condition = callee(library, node, 0);
    const struct troupe_function *body = callee(library, node, 1);
    const struct troupe_attr *parallel = node_attr(node, "parallel_iterations");
    enum troupe_status status = TROUPE_OK;

    if (node->input_count == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants at least one input, which goes round the loop");
    if (parallel->value.i > INT32_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "attr \"parallel_iterations\" wants at most %d", INT32_MAX);
    status = check_arguments(graph, node, 0, condition);
    if (status == TROUPE_OK)
        status = check_arguments(graph, node, 0, body);
    if (status == TROUPE_OK)
        status = check_condition(condition);
    return status == TROUPE_OK ? check_body(body) : status;
}

static enum troupe_status check_call(const struct troupe_graph *graph,
                                     const struct troupe_library *library,
                                     const struct troupe_node *node)
{
    enum troupe_flow flow = node->schema->op->flow;
    int first = flow == TROUPE_FLOW_IF || flow == TROUPE_FLOW_CASE ? 1 : 0;
    enum troupe_status status = TROUPE_OK;

    if (flow == TROUPE_FLOW_WHILE)
        return check_while(graph, library, node);
    for (int i = 0; i < troupe_node_callee_count(node) && status == TROUPE_OK; i++) {
        status = check_arguments(graph, node, first, callee(library, node, i));
        if (status == TROUPE_OK && i > 0)
            status = check_agreement(callee(library, node, 0), callee(library, node, i));
    }
    if (status == TROUPE_OK && first == 1) {
        const struct troupe_value *value = &node->inputs[0];
        const struct troupe_shape *shape = &graph->nodes[value->node].output_shapes[value->port];
        char text[TROUPE_SHAPE_TEXT_MAX];

        if (shape->rank > 0)
            status = troupe_status_fail(
                TROUPE_INVALID_ARGUMENT, "input \"%s\" wants a scalar, got shape %s",
                node->schema->inputs[0].name, troupe_shape_print(shape, text));
    }
    return status;
}

void troupe_lower_check(const struct troupe_graph *graph, const struct troupe_library *library,
                        struct troupe_diagnostics *diagnostics)
{
    for (int i = 0; i < graph->node_count; i++) {
        const struct troupe_node *node = &graph->nodes[i];

        if (troupe_node_callee_count(node) > 0 && check_call(graph, library, node) != TROUPE_OK)
            troupe_graph_report(graph, i, diagnostics);
    }
}

/* One declared output against the value that it is. */
static enum troupe_status check_output(const struct troupe_function *function,
                                       const struct troupe_function_output *output)
{
    const struct troupe_node *producer = &function->body->nodes[output->value.node];
    int port = output->value.port;
    char want[TROUPE_SHAPE_TEXT_MAX], got[TROUPE_SHAPE_TEXT_MAX];
    struct troupe_shape merged;

    if (port >= producer->output_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "node \"%s\" (%s) has %d output%s",
                                  producer->name, producer->schema->op->name,
                                  producer->output_count, producer->output_count == 1 ? "" : "s");
    if (producer->output_dtypes[port] != output->dtype)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "is declared %s, but \"%s\" gives %s",
                                  troupe_dtype_name(output->dtype), producer->name,
                                  troupe_dtype_name(producer->output_dtypes[port]));
    if (troupe_shape_merge(&producer->output_shapes[port], &output->shape, &merged) != TROUPE_OK)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "is declared with shape %s, but \"%s\" gives %s",
                                  troupe_shape_print(&output->shape, want), producer->name,
                                  troupe_shape_print(&producer->output_shapes[port], got));
    return TROUPE_OK;
}

void troupe_lower_check_outputs(const struct troupe_function *function,
                                struct troupe_diagnostics *diagnostics)
{
    for (int i = 0; i < function->output_count; i++) {
        const struct troupe_function_output *output = &function->outputs[i];

        if (check_output(function, output) != TROUPE_OK)
            troupe_diagnostics_add(diagnostics, function->body->path, function->line,
                                   function->column, "function \"%s\": output \"%s\" %s",
                                   function->name, output->name, troupe_status_message());
    }
}
