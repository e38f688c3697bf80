/* Inlining, and the calls that it is enough for: Call, If and Case. Invariant: every node of a body
 * that is put into a branch depends on the branch's Switches, through an input or the pivot, so
 * that it is dead when the branch is not taken. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/lower_parts.h"

enum troupe_status troupe_lower_push(struct troupe_lowering *lowering, int node, int around)
{
    if (lowering->site_count == lowering->site_capacity) {
        int capacity = lowering->site_capacity > 0 ? 2 * lowering->site_capacity : 16;
        struct troupe_call_site *grown =
            troupe_reallocarray(lowering->sites, (size_t)capacity, sizeof(*grown));

        if (grown == NULL)
            return TROUPE_RESOURCE_EXHAUSTED;
        lowering->sites = grown;
        lowering->site_capacity = capacity;
    }
    lowering->sites[lowering->site_count++] = (struct troupe_call_site){node, around};
    return TROUPE_OK;
}

/* Adds a node under the name or, when that is taken, "name_1", "name_2", ... */
static enum troupe_status add_node(struct troupe_lowering *lowering, struct troupe_node_spec *spec,
                                   const char *name, int *out)
{
    char *unique = troupe_strdup(name);
    enum troupe_status status;

    for (int i = 1; unique != NULL && troupe_graph_find(lowering->graph, unique) >= 0; i++) {
        free(unique);
        unique = troupe_asprintf("%s_%d", name, i);
    }
    if (unique == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    spec->name = unique;
    status = troupe_graph_add(lowering->graph, spec, out);
    free(unique);
    return status;
}

enum troupe_status troupe_lower_glue(struct troupe_lowering *lowering,
                                     const struct troupe_call *call, const struct troupe_glue *glue,
                                     int *out)
{
    struct troupe_node_spec spec = {.op = glue->op,
                                    .device = call->device,
                                    .inputs = glue->inputs,
                                    .input_count = glue->input_count,
                                    .controls = glue->controls,
                                    .control_count = glue->control_count,
                                    .attrs = glue->attrs,
                                    .attr_count = glue->attr_count,
                                    .line = call->line,
                                    .column = call->column};
    char *name = troupe_asprintf("%s/%s", call->name, glue->name);
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    if (name != NULL)
        status = add_node(lowering, &spec, name, out);
    free(name);
    return status;
}

enum troupe_status troupe_lower_glue_at(struct troupe_lowering *lowering,
                                        const struct troupe_call *call,
                                        const struct troupe_glue *glue, int index, int *out)
{
    struct troupe_glue numbered = *glue;
    char *name = troupe_asprintf("%s_%d", glue->name, index);
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    numbered.name = name;
    if (name != NULL)
        status = troupe_lower_glue(lowering, call, &numbered, out);
    free(name);
    return status;
}

/* ---- Inlining ---- */

/* What a node of the body becomes. */
struct copying {
    struct troupe_lowering *lowering;
    const struct troupe_call *call;
    struct troupe_inlining *inlining;
    const struct troupe_function *function;
    int *stand_for;  /* by node of the body: which argument it is, -1 */
    int *new_number; /* by node of the body */
    char *prefix;
    int scope;
};

static bool takes_ref(const struct troupe_node *node, int input)
{
    const struct troupe_op_schema *schema = node->schema;

    for (int i = 0; i <= input && i < schema->input_count; i++) {
        if (schema->inputs[i].number_attr != NULL || schema->inputs[i].list_attr != NULL)
            return false;
    }
    return input < schema->input_count && schema->inputs[input].is_ref;
}

/* Where the argument of a capture is among all arguments. */
static int capture_argument(const struct copying *copying, int capture)
{
    const struct troupe_call *call = copying->call;

    return copying->function->input_count +
           troupe_value_index(call->captures, call->capture_count,
                              copying->function->captures[capture].outer);
}

/* State is no value that a Switch or an Enter could pass on: its users know it directly. */
static struct troupe_value captured_state(const struct copying *copying, int node)
{
    const struct troupe_function *function = copying->function, *around;
    int own = 0;

    while (function->captures[own].node != node)
        own++;
    if (copying->lowering->function < 0)
        return function->captures[own].outer;
    around = &copying->lowering->library->functions[copying->lowering->function];
    for (int i = 0; i < around->capture_count; i++) {
        if (around->captures[i].outer.node == function->captures[own].outer.node)
            return (struct troupe_value){around->captures[i].node, 0};
    }
    return TROUPE_VALUE_NONE; /* not reached: captures are closed */
}

static struct troupe_value map_value(const struct copying *copying, struct troupe_value value)
{
    int argument = copying->stand_for[value.node];

    if (argument >= 0)
        return copying->inlining->args[argument];
    return (struct troupe_value){copying->new_number[value.node], value.port};
}

static struct troupe_value map_input(const struct copying *copying, const struct troupe_node *node,
                                     int input)
{
    int from = node->inputs[input].node;

    if (copying->stand_for[from] >= copying->function->input_count && takes_ref(node, input))
        return captured_state(copying, from);
    return map_value(copying, node->inputs[input]);
}

/* A call inside of the body gets what its functions capture from this body's arguments. */
static enum troupe_status pass_captures(const struct copying *copying,
                                        const struct troupe_node *node, int number)
{
    const struct troupe_library *library = copying->lowering->library;
    int count = troupe_node_callee_count(node), capture_count = 0;
    int *functions = troupe_calloc((size_t)count + 1, sizeof(int));
    struct troupe_value *captures = NULL;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    const char *attr;

    if (functions == NULL)
        return status;
    for (int i = 0; i < count; i++)
        functions[i] = troupe_library_find(library, troupe_node_callee(node, i, &attr));
    status = troupe_lower_captures(library, functions, count, &captures, &capture_count);
    for (int i = 0; i < capture_count && status == TROUPE_OK; i++) {
        int argument =
            copying->function->input_count +
            troupe_value_index(copying->call->captures, copying->call->capture_count, captures[i]);

        status = troupe_node_add_input(&copying->lowering->graph->nodes[number],
                                       copying->inlining->args[argument]);
    }
    free(captures);
    free(functions);
    if (status == TROUPE_OK)
        status = troupe_lower_push(copying->lowering, number, copying->scope);
    return status;
}

/* What a copied node waits for: what it waited for in the body, or, without any input, the pivot.
 */
static enum troupe_status map_controls(const struct copying *copying,
                                       const struct troupe_node *node, int number)
{
    struct troupe_node *copy = &copying->lowering->graph->nodes[number];
    bool has_token = node->control_count > 0;
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; i < node->input_count; i++)
        has_token |= !takes_ref(node, i);
    for (int i = 0; i < node->control_count && status == TROUPE_OK; i++)
        status = troupe_node_add_control(
            copy, map_value(copying, (struct troupe_value){node->controls[i], 0}).node);
    if (!has_token && copying->inlining->pivot >= 0)
        status = troupe_node_add_control(copy, copying->inlining->pivot);
    return status;
}

static bool is_effect(const struct copying *copying, const struct troupe_node *node)
{
    const char *attr;

    for (int i = 0; i < troupe_node_callee_count(node); i++) {
        if (copying->lowering->has_effects[troupe_library_find(copying->lowering->library,
                                                               troupe_node_callee(node, i, &attr))])
            return true;
    }
    return troupe_node_callee_count(node) == 0 &&
           (node->output_count == 0 || (node->schema->op->flags & TROUPE_OP_STATEFUL) != 0);
}

static enum troupe_status copy_node(struct copying *copying, int index)
{
    const struct troupe_node *node = &copying->function->body->nodes[index];
    struct troupe_node_spec spec = {.op = node->schema->op->name,
                                    .device = node->device[0] != '\0' ? node->device
                                                                      : copying->call->device,
                                    .attrs = node->attrs,
                                    .attr_count = node->attr_count,
                                    .line = node->line,
                                    .column = node->column};
    char *name = troupe_asprintf("%s/%s", copying->prefix, node->name);
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    int number = -1;

    if (name != NULL)
        status = add_node(copying->lowering, &spec, name, &number);
    free(name);
    for (int i = 0; i < node->input_count && status == TROUPE_OK; i++)
        status = troupe_node_add_input(&copying->lowering->graph->nodes[number],
                                       map_input(copying, node, i));
    if (status == TROUPE_OK)
        status = map_controls(copying, node, number);
    if (status == TROUPE_OK)
        status =
            troupe_node_prefix_frame(&copying->lowering->graph->nodes[number], copying->prefix);
    if (status == TROUPE_OK && troupe_node_callee_count(node) > 0)
        status = pass_captures(copying, node, number);
    if (status == TROUPE_OK && is_effect(copying, node))
        status = troupe_numbers_add(&copying->inlining->effects, number);
    return status;
}

/* Which argument each node of the body stands for, and the numbers that the others get. */
static enum troupe_status number_nodes(struct copying *copying)
{
    const struct troupe_function *function = copying->function;
    int count = function->body->node_count, next = copying->lowering->graph->node_count;

    copying->stand_for = troupe_calloc((size_t)count + 1, sizeof(int));
    copying->new_number = troupe_calloc((size_t)count + 1, sizeof(int));
    if (copying->stand_for == NULL || copying->new_number == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++)
        copying->stand_for[i] = -1;
    for (int i = 0; i < function->input_count; i++)
        copying->stand_for[function->inputs[i]] = i;
    for (int i = 0; i < function->capture_count; i++)
        copying->stand_for[function->captures[i].node] = capture_argument(copying, i);
    for (int i = 0; i < count; i++)
        copying->new_number[i] = copying->stand_for[i] < 0 ? next++ : -1;
    *copying->lowering->made += next - copying->lowering->graph->node_count;
    if (*copying->lowering->made > TROUPE_LOWERED_NODES_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "node \"%s\": calls of functions, put in place, make more than "
                                  "%d nodes; function \"%s\" was the last",
                                  copying->call->name, TROUPE_LOWERED_NODES_MAX, function->name);
    return TROUPE_OK;
}

static enum troupe_status push_scope(struct troupe_lowering *lowering, int function, int around,
                                     int *out)
{
    if (lowering->scope_count == lowering->scope_capacity) {
        int capacity = lowering->scope_capacity > 0 ? 2 * lowering->scope_capacity : 16;
        struct troupe_scope *grown =
            troupe_reallocarray(lowering->scopes, (size_t)capacity, sizeof(*grown));

        if (grown == NULL)
            return TROUPE_RESOURCE_EXHAUSTED;
        lowering->scopes = grown;
        lowering->scope_capacity = capacity;
    }
    lowering->scopes[lowering->scope_count] = (struct troupe_scope){function, around};
    *out = lowering->scope_count++;
    return TROUPE_OK;
}

/* True when the function is being inlined around the call already. */
static bool is_around(const struct troupe_lowering *lowering, int around, int function)
{
    for (; around >= 0; around = lowering->scopes[around].around) {
        if (lowering->scopes[around].function == function)
            return true;
    }
    return lowering->function == function;
}

static enum troupe_status inline_body(struct copying *copying)
{
    const struct troupe_function *function = copying->function;
    enum troupe_status status = push_scope(copying->lowering, copying->inlining->function,
                                           copying->call->around, &copying->scope);

    if (status == TROUPE_OK)
        status = number_nodes(copying);
    for (int i = 0; i < function->body->node_count && status == TROUPE_OK; i++) {
        if (copying->stand_for[i] < 0)
            status = copy_node(copying, i);
    }
    for (int i = 0; i < function->output_count && status == TROUPE_OK; i++)
        copying->inlining->outputs[i] = map_value(copying, function->outputs[i].value);
    return status;
}

/* A branch that leads back into a function around it becomes a call of that. */
static enum troupe_status call_body(struct copying *copying)
{
    const struct troupe_function *function = copying->function;
    char f_name[] = "f", tout_name[] = "Tout", shapes_name[] = "output_shapes";
    size_t count = (size_t)function->output_count;
    enum troupe_dtype *dtypes = troupe_calloc(count + 1, sizeof(*dtypes));
    struct troupe_shape *shapes = troupe_calloc(count + 1, sizeof(*shapes));
    struct troupe_named_attr attrs[] = {
        {f_name, troupe_attr_string(function->name)},
        {tout_name, {.kind = TROUPE_ATTR_LIST_TYPE, .count = count, .value.list_type = dtypes}},
        {shapes_name, {.kind = TROUPE_ATTR_LIST_SHAPE, .count = count, .value.list_shape = shapes}},
    };
    struct troupe_glue glue = {.op = "Call",
                               .name = copying->inlining->name,
                               .controls = &copying->inlining->pivot,
                               .control_count = copying->inlining->pivot >= 0 ? 1 : 0,
                               .attrs = attrs,
                               .attr_count = 3};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    int number = -1;

    attrs[0].value.kind = TROUPE_ATTR_FUNC;
    for (size_t i = 0; i < count && dtypes != NULL && shapes != NULL; i++) {
        dtypes[i] = function->outputs[i].dtype;
        shapes[i] = function->outputs[i].shape;
    }
    if (dtypes != NULL && shapes != NULL && attrs[0].value.value.s != NULL)
        status = troupe_lower_glue(copying->lowering, copying->call, &glue, &number);
    for (int i = 0; i < function->input_count && status == TROUPE_OK; i++)
        status = troupe_node_add_input(&copying->lowering->graph->nodes[number],
                                       copying->inlining->args[i]);
    for (int i = 0; i < function->capture_count && status == TROUPE_OK; i++)
        status = troupe_node_add_input(&copying->lowering->graph->nodes[number],
                                       copying->inlining->args[capture_argument(copying, i)]);
    for (int i = 0; i < function->output_count; i++)
        copying->inlining->outputs[i] = (struct troupe_value){number, i};
    if (status == TROUPE_OK && copying->lowering->has_effects[copying->inlining->function])
        status = troupe_numbers_add(&copying->inlining->effects, number);
    for (int i = 0; i < 3; i++)
        troupe_attr_fini(&attrs[i].value);
    return status;
}

enum troupe_status troupe_lower_inline(struct troupe_lowering *lowering,
                                       const struct troupe_call *call,
                                       struct troupe_inlining *inlining)
{
    struct copying copying = {.lowering = lowering,
                              .call = call,
                              .inlining = inlining,
                              .function = &lowering->library->functions[inlining->function]};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    inlining->effects = (struct troupe_numbers){0};
    copying.prefix = inlining->name[0] != '\0'
                         ? troupe_asprintf("%s/%s", call->name, inlining->name)
                         : troupe_strdup(call->name);
    if (copying.prefix != NULL)
        status = is_around(lowering, call->around, inlining->function) ? call_body(&copying)
                                                                       : inline_body(&copying);
    free(copying.prefix);
    free(copying.stand_for);
    free(copying.new_number);
    return status;
}

/* ---- The calling node ---- */

enum troupe_status troupe_lower_finish(struct troupe_lowering *lowering,
                                       const struct troupe_call *call,
                                       const struct troupe_value *values, int count,
                                       const int *controls, int control_count)
{
    struct troupe_node *node = &lowering->graph->nodes[call->node];
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; i < node->attr_count; i++) {
        free(node->attrs[i].name);
        troupe_attr_fini(&node->attrs[i].value);
    }
    free(node->attrs);
    node->attrs = NULL;
    node->attr_count = node->input_count = node->control_count = 0;
    node->schema = troupe_op_find(count == 0 ? "NoOp" : count == 1 ? "Identity" : "IdentityN");
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = troupe_node_add_input(node, values[i]);
    for (int i = 0; i < control_count && status == TROUPE_OK; i++)
        status = troupe_node_add_control(node, controls[i]);
    if (status == TROUPE_OK && count > 0 && control_count == 0)
        status = troupe_numbers_add(&lowering->passed, call->node);
    return status;
}

/* ---- Call ---- */

/* True when a node of the body has no input at all, by which it would be where the call is. */
static bool has_source(const struct troupe_function *function)
{
    for (int i = 0; i < function->body->node_count; i++) {
        const struct troupe_node *node = &function->body->nodes[i];
        bool has_token = node->control_count > 0 || node->schema->op->flow == TROUPE_FLOW_ARG;

        for (int k = 0; k < node->input_count; k++)
            has_token |= !takes_ref(node, k);
        if (!has_token)
            return true;
    }
    return false;
}

/* The pivot is alive when the call is, in the call's frame, and after what the call waits for; the
 * arguments are held back likewise. -1 where nothing needs one. */
static enum troupe_status make_pivot(struct troupe_lowering *lowering,
                                     const struct troupe_call *call, int *pivot)
{
    const struct troupe_function *function = &lowering->library->functions[call->functions[0]];
    bool has_input = call->input_count > 0;
    struct troupe_glue glue = {.op = has_input ? "Identity" : "NoOp",
                               .name = "start",
                               .input_count = has_input ? 1 : 0,
                               .controls = call->controls,
                               .control_count = call->control_count};

    *pivot = -1;
    if (call->control_count == 0 && !(has_input && has_source(function)))
        return TROUPE_OK;
    if (has_input)
        glue.inputs[0] = call->inputs[0];
    return troupe_lower_glue(lowering, call, &glue, pivot);
}

static enum troupe_status gate_arguments(struct troupe_lowering *lowering,
                                         const struct troupe_call *call, struct troupe_value *args,
                                         int pivot)
{
    enum troupe_status status = TROUPE_OK;
    int number = -1;

    for (int i = 0; i < call->input_count && call->control_count > 0 && status == TROUPE_OK; i++) {
        struct troupe_glue glue = {.op = "Identity",
                                   .name = "input",
                                   .inputs = {args[i]},
                                   .input_count = 1,
                                   .controls = &pivot,
                                   .control_count = 1};

        status = troupe_lower_glue_at(lowering, call, &glue, i, &number);
        args[i] = (struct troupe_value){number, 0};
    }
    return status;
}

enum troupe_status troupe_lower_call(struct troupe_lowering *lowering,
                                     const struct troupe_call *call)
{
    int outputs = lowering->library->functions[call->functions[0]].output_count;
    struct troupe_inlining inlining = {
        .function = call->functions[0], .name = "", .args = call->inputs};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    inlining.outputs = troupe_calloc((size_t)outputs + 1, sizeof(*inlining.outputs));
    if (inlining.outputs == NULL)
        return status;
    status = make_pivot(lowering, call, &inlining.pivot);
    if (status == TROUPE_OK)
        status = gate_arguments(lowering, call, call->inputs, inlining.pivot);
    if (status == TROUPE_OK)
        status = troupe_lower_inline(lowering, call, &inlining);
    /* Without effects and outputs it still comes after what it waits for. */
    if (status == TROUPE_OK && outputs == 0 && inlining.pivot >= 0)
        status = troupe_numbers_add(&inlining.effects, inlining.pivot);
    if (status == TROUPE_OK)
        status = troupe_lower_finish(lowering, call, inlining.outputs, outputs,
                                     inlining.effects.items, inlining.effects.count);
    free(inlining.effects.items);
    free(inlining.outputs);
    return status;
}
