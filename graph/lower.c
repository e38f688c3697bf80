/* Lowering. Invariant: nodes keep their numbers; a call is rewritten where it stands and what it is
 * made of is added at the end, so that values of the graph name the same thing at any time. Of a
 * function with captures every call has them as its last inputs. */
#include "graph/lower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/lower_parts.h"

enum troupe_status troupe_numbers_add(struct troupe_numbers *numbers, int number)
{
    if (numbers->count == numbers->capacity) {
        int capacity = numbers->capacity > 0 ? 2 * numbers->capacity : 8;
        int *grown = troupe_reallocarray(numbers->items, (size_t)capacity, sizeof(int));

        if (grown == NULL)
            return TROUPE_RESOURCE_EXHAUSTED;
        numbers->items = grown;
        numbers->capacity = capacity;
    }
    numbers->items[numbers->count++] = number;
    return TROUPE_OK;
}

int troupe_value_index(const struct troupe_value *values, int count, struct troupe_value value)
{
    for (int i = 0; i < count; i++) {
        if (values[i].node == value.node && values[i].port == value.port)
            return i;
    }
    return -1;
}

static int callee_number(const struct troupe_library *library, const struct troupe_node *node,
                         int index)
{
    const char *attr;

    return troupe_library_find(library, troupe_node_callee(node, index, &attr));
}

enum troupe_status troupe_lower_captures(const struct troupe_library *library, const int *functions,
                                         int count, struct troupe_value **out, int *count_out)
{
    struct troupe_value *values;
    size_t most = 1;

    for (int i = 0; i < count; i++)
        most += (size_t)library->functions[functions[i]].capture_count;
    values = troupe_calloc(most, sizeof(*values));
    if (values == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    *count_out = 0;
    for (int i = 0; i < count; i++) {
        const struct troupe_function *function = &library->functions[functions[i]];

        for (int k = 0; k < function->capture_count; k++) {
            if (troupe_value_index(values, *count_out, function->captures[k].outer) < 0)
                values[(*count_out)++] = function->captures[k].outer;
        }
    }
    *out = values;
    return TROUPE_OK;
}

/* ---- What functions call ---- */

struct facts {
    struct troupe_numbers *calls; /* by function: those that it calls, each once */
    bool *recursive, *has_effects, *marks;
    int *stack;
};

/* Lists what each function calls. */
static enum troupe_status find_calls(const struct troupe_library *library, struct facts *facts)
{
    enum troupe_status status = TROUPE_OK;

    for (int f = 0; f < library->count; f++) {
        const struct troupe_graph *body = library->functions[f].body;

        memset(facts->marks, 0, (size_t)library->count * sizeof(bool));
        for (int i = 0; i < body->node_count; i++) {
            for (int k = 0; k < troupe_node_callee_count(&body->nodes[i]); k++) {
                int called = callee_number(library, &body->nodes[i], k);

                if (facts->marks[called])
                    continue;
                facts->marks[called] = true;
                status = troupe_numbers_add(&facts->calls[f], called);
                if (status != TROUPE_OK)
                    return status;
            }
        }
    }
    return TROUPE_OK;
}

/* Marks what a function calls, directly or not. */
static void mark_called(const struct troupe_library *library, int function, struct facts *facts)
{
    int depth = 0;

    memset(facts->marks, 0, (size_t)library->count * sizeof(bool));
    facts->stack[depth++] = function;
    while (depth > 0) {
        const struct troupe_numbers *calls = &facts->calls[facts->stack[--depth]];

        for (int i = 0; i < calls->count; i++) {
            int called = calls->items[i];

            if (facts->marks[called])
                continue;
            facts->marks[called] = true;
            facts->stack[depth++] = called;
        }
    }
}

/* A node that has to fire though nothing may read it. */
static bool node_has_effect(const struct troupe_node *node)
{
    if (troupe_node_callee_count(node) > 0 || node->schema->op->flow == TROUPE_FLOW_ARG)
        return false;
    if (node->schema->input_count == 0 && node->schema->output_count == 1 &&
        node->schema->outputs[0].is_ref)
        return false; /* a variable, which is only read */
    return node->output_count == 0 || (node->schema->op->flags & TROUPE_OP_STATEFUL) != 0;
}

/* Which functions may call themselves, and which have effects, by what they call as well. */
static void find_facts(const struct troupe_library *library, struct facts *facts)
{
    for (int i = 0; i < library->count; i++) {
        const struct troupe_graph *body = library->functions[i].body;

        for (int n = 0; n < body->node_count; n++)
            facts->has_effects[i] |= node_has_effect(&body->nodes[n]);
    }
    for (int i = 0; i < library->count; i++) {
        mark_called(library, i, facts);
        facts->recursive[i] = facts->marks[i];
        for (int k = 0; k < library->count; k++)
            facts->has_effects[i] |= facts->marks[k] && facts->has_effects[k];
    }
}

/* A function captures what those that it calls capture. */
static enum troupe_status close_captures(struct troupe_library *library, struct facts *facts)
{
    int number;

    for (int i = 0; i < library->count; i++) {
        mark_called(library, i, facts);
        for (int k = 0; k < library->count; k++) {
            const struct troupe_function *called = &library->functions[k];

            for (int c = 0; facts->marks[k] && k != i && c < called->capture_count; c++) {
                if (troupe_function_capture(&library->functions[i], called->captures[c].outer,
                                            &number) != TROUPE_OK)
                    return TROUPE_RESOURCE_EXHAUSTED;
            }
        }
    }
    return TROUPE_OK;
}

/* ---- Bodies ---- */

/* Gives a stand-in the attrs that make it the value it stands for; adds one where there is none. */
static enum troupe_status complete_stand_in(const struct troupe_graph *graph,
                                            struct troupe_function *function,
                                            struct troupe_capture *capture)
{
    const struct troupe_node *outer = &graph->nodes[capture->outer.node];
    struct troupe_node_spec spec = {.op = "_Arg"};
    enum troupe_status status = TROUPE_OK;
    struct troupe_node *node;
    char name[64];

    if (capture->node < 0) {
        snprintf(name, sizeof(name), "capture:%d:%d", capture->outer.node, capture->outer.port);
        spec.name = name;
        status = troupe_graph_add(function->body, &spec, &capture->node);
    }
    if (status != TROUPE_OK)
        return status;
    node = &function->body->nodes[capture->node];
    if (node->schema->op->flow != TROUPE_FLOW_ARG) {
        for (int i = 0; i < outer->attr_count && status == TROUPE_OK; i++)
            status = troupe_node_set_attr(node, outer->attrs[i].name,
                                          troupe_attr_copy(&outer->attrs[i].value));
        return status;
    }
    status = troupe_node_set_attr(node, "T",
                                  troupe_attr_type(outer->output_dtypes[capture->outer.port]));
    if (status == TROUPE_OK)
        status = troupe_node_set_attr(node, "shape",
                                      troupe_attr_shape(outer->output_shapes[capture->outer.port]));
    return status == TROUPE_OK ? troupe_node_set_attr(node, "index", troupe_attr_int(0)) : status;
}

static enum troupe_status infer_bodies(const struct troupe_graph *graph,
                                       struct troupe_diagnostics *diagnostics)
{
    struct troupe_library *library = graph->library;
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; i < library->count && status == TROUPE_OK; i++) {
        struct troupe_function *function = &library->functions[i];
        size_t before = diagnostics->count;

        for (int c = 0; c < function->capture_count && status == TROUPE_OK; c++)
            status = complete_stand_in(graph, function, &function->captures[c]);
        if (status == TROUPE_OK)
            status = troupe_graph_infer_all(function->body, 0, diagnostics);
        if (status == TROUPE_OK && diagnostics->count == before)
            troupe_lower_check_outputs(function, diagnostics);
    }
    if (status != TROUPE_OK || diagnostics->count > 0)
        return status;
    troupe_lower_check(graph, library, diagnostics);
    for (int i = 0; i < library->count; i++)
        troupe_lower_check(library->functions[i].body, library, diagnostics);
    return TROUPE_OK;
}

/* ---- One graph ---- */

static void call_fini(struct troupe_call *call)
{
    free(call->name);
    free(call->device);
    free(call->functions);
    free(call->inputs);
    free(call->controls);
    free(call->captures);
}

static void *copy_array(const void *items, int count, size_t size)
{
    void *copy = troupe_calloc((size_t)count + 1, size);

    if (copy != NULL && count > 0)
        memcpy(copy, items, (size_t)count * size);
    return copy;
}

static enum troupe_status call_init(const struct troupe_lowering *lowering,
                                    const struct troupe_call_site *site, struct troupe_call *call)
{
    const struct troupe_node *node = &lowering->graph->nodes[site->node];
    int count = troupe_node_callee_count(node);

    *call = (struct troupe_call){.node = site->node,
                                 .around = site->around,
                                 .line = node->line,
                                 .column = node->column,
                                 .functions_count = count,
                                 .input_count = node->input_count,
                                 .control_count = node->control_count};
    call->name = troupe_strdup(node->name);
    call->device = troupe_strdup(node->device);
    call->functions = troupe_calloc((size_t)count + 1, sizeof(int));
    call->inputs = copy_array(node->inputs, node->input_count, sizeof(*node->inputs));
    call->controls = copy_array(node->controls, node->control_count, sizeof(int));
    if (call->name == NULL || call->device == NULL || call->functions == NULL ||
        call->inputs == NULL || call->controls == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++)
        call->functions[i] = callee_number(lowering->library, node, i);
    return troupe_lower_captures(lowering->library, call->functions, count, &call->captures,
                                 &call->capture_count);
}

/* A call of a recursive function stays; its captures are arguments like any other. */
static enum troupe_status keep_call(const struct troupe_lowering *lowering,
                                    const struct troupe_call *call)
{
    struct troupe_node *node = &lowering->graph->nodes[call->node];
    const struct troupe_function *function = &lowering->library->functions[call->functions[0]];
    int declared = function->input_count, count = call->input_count;
    enum troupe_dtype *dtypes = troupe_calloc((size_t)count + 1, sizeof(*dtypes));
    enum troupe_status status;

    if (dtypes == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++) {
        int stand_in = i < declared ? function->inputs[i] : function->captures[i - declared].node;

        dtypes[i] = function->body->nodes[stand_in].output_dtypes[0];
    }
    status = troupe_node_set_attr(node, "Tin", troupe_attr_list_type(dtypes, (size_t)count));
    free(dtypes);
    return status;
}

static enum troupe_status lower_site(struct troupe_lowering *lowering,
                                     const struct troupe_call_site *site)
{
    const struct troupe_node *node = &lowering->graph->nodes[site->node];
    enum troupe_flow flow = node->schema->op->flow;
    const struct troupe_attr *parallel =
        troupe_attr_find(node->attrs, node->attr_count, "parallel_iterations");
    struct troupe_call call;
    enum troupe_status status = call_init(lowering, site, &call);

    if (status == TROUPE_OK && flow == TROUPE_FLOW_WHILE)
        status = troupe_lower_while(lowering, &call, (int)parallel->value.i);
    else if (status == TROUPE_OK && (flow == TROUPE_FLOW_IF || flow == TROUPE_FLOW_CASE))
        status = troupe_lower_branches(lowering, &call, flow);
    else if (status == TROUPE_OK && lowering->recursive[call.functions[0]])
        status = keep_call(lowering, &call);
    else if (status == TROUPE_OK)
        status = troupe_lower_call(lowering, &call);
    call_fini(&call);
    return status;
}

/* What a captured value is in the graph being lowered. */
static struct troupe_value captured_value(const struct troupe_lowering *lowering,
                                          struct troupe_value outer)
{
    const struct troupe_function *function;

    if (lowering->function < 0)
        return outer;
    function = &lowering->library->functions[lowering->function];
    for (int i = 0; i < function->capture_count; i++) {
        if (function->captures[i].outer.node == outer.node &&
            function->captures[i].outer.port == outer.port)
            return (struct troupe_value){function->captures[i].node, 0};
    }
    return TROUPE_VALUE_NONE; /* not reached: captures are closed */
}

/* Lists the calls that are in the graph before any is lowered, their captures added as inputs. */
static enum troupe_status find_sites(struct troupe_lowering *lowering)
{
    struct troupe_graph *graph = lowering->graph;
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; i < graph->node_count && status == TROUPE_OK; i++) {
        int count = troupe_node_callee_count(&graph->nodes[i]);
        struct troupe_call call = {0};

        if (count == 0)
            continue;
        status = call_init(lowering, &(struct troupe_call_site){i, -1}, &call);
        for (int c = 0; c < call.capture_count && status == TROUPE_OK; c++)
            status =
                troupe_node_add_input(&graph->nodes[i], captured_value(lowering, call.captures[c]));
        call_fini(&call);
        if (status == TROUPE_OK)
            status = troupe_lower_push(lowering, i, -1);
    }
    return status;
}

/* Users of a node that only passes values on read what it reads. */
static enum troupe_status read_past(const struct troupe_lowering *lowering)
{
    struct troupe_graph *graph = lowering->graph;
    bool *passes = troupe_calloc((size_t)graph->node_count + 1, sizeof(bool));

    if (passes == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < lowering->passed.count; i++)
        passes[lowering->passed.items[i]] = true;
    for (int i = 0; i < graph->node_count; i++) {
        for (int k = 0; k < graph->nodes[i].input_count; k++) {
            struct troupe_value *value = &graph->nodes[i].inputs[k];

            while (passes[value->node])
                *value = graph->nodes[value->node].inputs[value->port];
        }
    }
    free(passes);
    return TROUPE_OK;
}

static enum troupe_status lower_graph(struct troupe_lowering *lowering)
{
    enum troupe_status status = find_sites(lowering);

    while (status == TROUPE_OK && lowering->site_count > 0) {
        struct troupe_call_site site = lowering->sites[--lowering->site_count];

        status = lower_site(lowering, &site);
    }
    if (status == TROUPE_OK)
        status = read_past(lowering);
    free(lowering->sites);
    free(lowering->scopes);
    free(lowering->passed.items);
    return status;
}

/* ---- All ---- */

static int find_stand_in(const struct troupe_function *function, int node)
{
    for (int i = 0; i < function->capture_count; i++) {
        if (function->captures[i].node == node)
            return i;
    }
    return -1;
}

/* Adds an input in place of a stand-in, under a name that a file may have. */
static enum troupe_status copy_stand_in(const struct troupe_function *function, int capture,
                                        struct troupe_graph *copy)
{
    const struct troupe_node *node = &function->body->nodes[function->captures[capture].node];
    char type_name[] = "T", shape_name[] = "shape", index_name[] = "index";
    struct troupe_named_attr attrs[] = {
        {type_name, troupe_attr_type(node->output_dtypes[0])},
        {shape_name, troupe_attr_shape(node->output_shapes[0])},
        {index_name, troupe_attr_int(function->input_count + capture)},
    };
    struct troupe_node_spec spec = {.op = "_Arg", .attrs = attrs, .attr_count = 3};
    char *name = troupe_strdup(node->name);
    enum troupe_status status;
    int number;

    for (char *at = name; at != NULL && *at != '\0'; at++) {
        if (*at == ':')
            *at = '_';
    }
    for (int i = 1; name != NULL && (troupe_graph_find(copy, name) >= 0 ||
                                     (troupe_graph_find(function->body, name) >= 0 &&
                                      strcmp(name, node->name) != 0));
         i++) {
        free(name);
        name = troupe_asprintf("capture_%d_%d", capture, i);
    }
    if (name == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    spec.name = name;
    status = troupe_graph_add(copy, &spec, &number);
    free(name);
    return status;
}

/* The body with the same numbers, and what was captured as further inputs. */
static enum troupe_status copy_body(const struct troupe_function *function,
                                    struct troupe_graph **out)
{
    const struct troupe_graph *body = function->body;
    struct troupe_graph *copy;
    enum troupe_status status = troupe_graph_create(&copy);
    int number;

    if (status != TROUPE_OK)
        return status;
    copy->seed = body->seed;
    copy->path = troupe_strdup(body->path);
    for (int i = 0; i < body->node_count && status == TROUPE_OK; i++) {
        const struct troupe_node *node = &body->nodes[i];
        int stand_in = find_stand_in(function, i);
        struct troupe_node_spec spec = {.name = node->name,
                                        .op = node->schema->op->name,
                                        .device = node->device,
                                        .origin = node->origin,
                                        .inputs = node->inputs,
                                        .input_count = node->input_count,
                                        .controls = node->controls,
                                        .control_count = node->control_count,
                                        .attrs = node->attrs,
                                        .attr_count = node->attr_count,
                                        .line = node->line,
                                        .column = node->column};

        status = stand_in >= 0 ? copy_stand_in(function, stand_in, copy)
                               : troupe_graph_add(copy, &spec, &number);
    }
    if (status == TROUPE_OK && copy->path == NULL)
        status = TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK)
        *out = copy;
    else
        troupe_graph_destroy(copy);
    return status;
}

/* Gives a recursive function its lowered body; what it captured is given to it from now on. */
static enum troupe_status adopt_body(struct troupe_function *function, struct troupe_graph *body)
{
    int total = function->input_count + function->capture_count;
    int *inputs = troupe_reallocarray(function->inputs, (size_t)total + 1, sizeof(int));

    troupe_graph_destroy(function->body);
    function->body = body;
    if (inputs == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    function->inputs = inputs;
    for (int i = 0; i < function->capture_count; i++)
        inputs[function->input_count++] = function->captures[i].node;
    free(function->captures);
    function->captures = NULL;
    function->capture_count = 0;
    return TROUPE_OK;
}

/* Keeps the functions with a new body, in `bodies`, and drops the others. */
static enum troupe_status keep_recursive(struct troupe_graph *graph, struct troupe_graph **bodies)
{
    struct troupe_library *library = graph->library, *kept = NULL;
    enum troupe_status status = TROUPE_OK;
    int count = 0, next = 0;

    for (int i = 0; i < library->count; i++)
        count += bodies[i] != NULL;
    if (count > 0)
        status = troupe_library_create(count, &kept);
    for (int i = 0; i < library->count && status == TROUPE_OK; i++) {
        struct troupe_function *function;

        if (bodies[i] == NULL)
            continue;
        function = &kept->functions[next];
        *function = library->functions[i];
        library->functions[i] = (struct troupe_function){0};
        if (troupe_name_map_put(&kept->names, function->name, next++) != 0)
            status = TROUPE_RESOURCE_EXHAUSTED;
        if (status == TROUPE_OK)
            status = adopt_body(function, bodies[i]);
        bodies[i] = NULL;
    }
    troupe_library_destroy(library);
    graph->library = kept;
    return status;
}

/* Lowers the graph, and copies of the bodies that stay: a body is inlined as it was read. */
static enum troupe_status lower_graphs(struct troupe_graph *graph, const struct facts *facts,
                                       struct troupe_graph **bodies)
{
    struct troupe_library *library = graph->library;
    int made = 0;
    struct troupe_lowering start = {.graph = graph,
                                    .library = library,
                                    .function = -1,
                                    .recursive = facts->recursive,
                                    .has_effects = facts->has_effects,
                                    .made = &made};
    struct troupe_lowering lowering = start;
    enum troupe_status status = lower_graph(&lowering);

    for (int i = 0; i < library->count && status == TROUPE_OK; i++) {
        if (!facts->recursive[i])
            continue;
        status = copy_body(&library->functions[i], &bodies[i]);
        if (status != TROUPE_OK)
            break;
        lowering = start;
        lowering.graph = bodies[i];
        lowering.function = i;
        status = lower_graph(&lowering);
    }
    return status;
}

static enum troupe_status facts_init(const struct troupe_library *library, struct facts *facts)
{
    size_t count = (size_t)library->count + 1;

    *facts = (struct facts){.calls = troupe_calloc(count, sizeof(struct troupe_numbers)),
                            .recursive = troupe_calloc(count, sizeof(bool)),
                            .has_effects = troupe_calloc(count, sizeof(bool)),
                            .marks = troupe_calloc(count, sizeof(bool)),
                            .stack = troupe_calloc(count, sizeof(int))};
    if (facts->calls == NULL || facts->recursive == NULL || facts->has_effects == NULL ||
        facts->marks == NULL || facts->stack == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    return find_calls(library, facts);
}

static void facts_fini(struct facts *facts, int count)
{
    for (int i = 0; facts->calls != NULL && i < count; i++)
        free(facts->calls[i].items);
    free(facts->calls);
    free(facts->recursive);
    free(facts->has_effects);
    free(facts->marks);
    free(facts->stack);
}

static enum troupe_status lower_library(struct troupe_graph *graph,
                                        struct troupe_diagnostics *diagnostics)
{
    int count = graph->library->count;
    struct troupe_graph **bodies = troupe_calloc((size_t)count + 1, sizeof(struct troupe_graph *));
    struct facts facts;
    enum troupe_status status = facts_init(graph->library, &facts);

    if (bodies == NULL)
        status = TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK)
        status = close_captures(graph->library, &facts);
    if (status == TROUPE_OK)
        status = infer_bodies(graph, diagnostics);
    if (status == TROUPE_OK && diagnostics->count == 0) {
        find_facts(graph->library, &facts);
        status = lower_graphs(graph, &facts, bodies);
        if (status == TROUPE_OK)
            status = keep_recursive(graph, bodies);
    }
    for (int i = 0; bodies != NULL && i < count; i++)
        troupe_graph_destroy(bodies[i]);
    free(bodies);
    facts_fini(&facts, count);
    return status;
}

enum troupe_status troupe_lower(struct troupe_graph *graph, struct troupe_diagnostics *diagnostics)
{
    enum troupe_status status;

    if (graph->library == NULL)
        return TROUPE_OK; /* nothing can be called */
    status = lower_library(graph, diagnostics);
    if (status == TROUPE_INVALID_ARGUMENT) { /* too many nodes: the message says where */
        troupe_diagnostics_add(diagnostics, NULL, 0, 0, "%s", troupe_status_message());
        return TROUPE_OK;
    }
    if (status != TROUPE_OK || diagnostics->count > 0)
        return status;
    status = troupe_graph_infer_all(graph, 0, diagnostics);
    for (int i = 0; graph->library != NULL && i < graph->library->count; i++) {
        if (status == TROUPE_OK)
            status = troupe_graph_infer_all(graph->library->functions[i].body, 0, diagnostics);
    }
    return status;
}
