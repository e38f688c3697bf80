/* `library` from JSON. Invariant: every function of the list has its place in the library, whatever
 * is wrong with it; one that is broken has no body that could be lowered, since a file with an
 * error is never lowered. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/literal.h"
#include "graph/load.h"

/* The search for recursion looks at every pair. */
#define FUNCTIONS_MAX 4096

static const char *const library_keys[] = {"function", "gradient", "registeredGradients"};
static const char *const function_keys[] = {"name", "input", "output", "node"};
static const char *const input_keys[] = {"name", "dtype", "shape"};
static const char *const output_keys[] = {"name", "value", "dtype", "shape"};

/* What is read of an input or an output. */
struct declaration {
    const char *name, *value;
    enum troupe_dtype dtype;
    struct troupe_shape shape;
};

static const char *function_name(const struct troupe_loader *loader)
{
    return loader->function->name != NULL ? loader->function->name : "?";
}

/* The name of the node in "node:port", in `name`; false when it does not fit. */
static bool value_node(const char *text, char *name, size_t size)
{
    size_t length = strcspn(text, ":");

    if (length >= size)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return true;
}

/* The capture of a value that is not the body's own; -1 when there is none. */
static int find_capture(const struct troupe_loader *loader, struct troupe_value outer)
{
    for (int i = 0; i < loader->function->capture_count; i++) {
        if (loader->function->captures[i].outer.node == outer.node &&
            loader->function->captures[i].outer.port == outer.port)
            return i;
    }
    return -1;
}

/* A node of the body that stands for a value of the graph around it. */
static bool is_stand_in(const struct troupe_loader *loader, int node)
{
    return loader->function->capture_count > 0 && node >= loader->function->captures[0].node;
}

enum troupe_status troupe_loader_value(const struct troupe_loader *loader, const char *text,
                                       struct troupe_value *out)
{
    enum troupe_status status;
    struct troupe_value outer;
    char name[TROUPE_NODE_TEXT_MAX];
    int capture = -1;

    if (loader->function == NULL || !value_node(text, name, sizeof(name)))
        return troupe_graph_value(loader->graph, text, out);
    if (troupe_graph_find(loader->graph, name) >= 0 &&
        !is_stand_in(loader, troupe_graph_find(loader->graph, name)))
        return troupe_graph_value(loader->graph, text, out);
    if (troupe_graph_find(loader->outer, name) < 0)
        return troupe_graph_value(loader->graph, text, out);
    status = troupe_graph_value(loader->outer, text, &outer);
    if (status != TROUPE_OK)
        return status;
    capture = find_capture(loader, outer);
    if (capture < 0)
        return troupe_status_fail(TROUPE_INTERNAL, "\"%s\" is not captured", text);
    *out = (struct troupe_value){loader->function->captures[capture].node, 0};
    return TROUPE_OK;
}

/* Adds a stand-in for what `text` names, if that is a value of the graph around. */
static enum troupe_status capture_value(struct troupe_loader *loader, const char *text)
{
    const struct troupe_op_schema *schema;
    struct troupe_value outer;
    char name[TROUPE_NODE_TEXT_MAX];
    struct troupe_node_spec spec = {.name = text, .op = "_Arg"};
    int number, capture;
    enum troupe_status status;

    if (!value_node(text, name, sizeof(name)) || troupe_graph_find(loader->outer, name) < 0)
        return TROUPE_OK;
    number = troupe_graph_find(loader->graph, name);
    if ((number >= 0 && !is_stand_in(loader, number)) ||
        troupe_graph_value(loader->outer, text, &outer) != TROUPE_OK ||
        find_capture(loader, outer) >= 0)
        return TROUPE_OK;
    status = troupe_function_capture(loader->function, outer, &capture);
    if (status != TROUPE_OK)
        return status;
    /* A variable is state: its stand-in is a variable too, so that it can be updated. */
    schema = loader->outer->nodes[outer.node].schema;
    if (schema != NULL && schema->output_count == 1 && schema->outputs[0].is_ref &&
        schema->input_count == 0)
        spec.op = schema->op->name;
    if (outer.port == 0)
        spec.name = name;
    status = troupe_graph_add(loader->graph, &spec, &number);
    if (status == TROUPE_OK)
        loader->function->captures[capture].node = number;
    return status;
}

static enum troupe_status capture_values(struct troupe_loader *loader, const json_t *nodes,
                                         const json_t *outputs)
{
    enum troupe_status status = TROUPE_OK;
    const char *text;

    for (size_t i = 0; i < json_array_size(nodes) && status == TROUPE_OK; i++) {
        const json_t *inputs = json_object_get(json_array_get(nodes, i), "input");

        for (size_t k = 0; k < json_array_size(inputs) && status == TROUPE_OK; k++) {
            text = json_string_value(json_array_get(inputs, k));
            if (text != NULL && text[0] != '^')
                status = capture_value(loader, text);
        }
    }
    for (size_t i = 0; i < json_array_size(outputs) && status == TROUPE_OK; i++) {
        text = json_string_value(json_object_get(json_array_get(outputs, i), "value"));
        if (text != NULL)
            status = capture_value(loader, text);
    }
    return status;
}

/* A string member of an input or output. */
static const char *read_text(struct troupe_loader *loader, const struct troupe_json_path *path,
                             const json_t *json, const char *key)
{
    const struct troupe_json_path at = {path, key, 0};
    const char *text = json_string_value(json_object_get(json, key));

    if (text == NULL)
        troupe_loader_error(loader, &at, false, "function \"%s\": wants a \"%s\", a string",
                            function_name(loader), key);
    return text;
}

static bool read_attr(struct troupe_loader *loader, const struct troupe_json_path *path,
                      json_t *json, const char *key, enum troupe_attr_kind kind,
                      struct troupe_attr *out)
{
    const struct troupe_json_path at = {path, key, 0};
    const struct troupe_op_attr wanted = {.name = key, .kind = kind};

    if (troupe_attr_from_json(&wanted, TROUPE_DTYPE_INVALID, json, out) == TROUPE_OK)
        return true;
    troupe_loader_error(loader, &at, false, "function \"%s\": \"%s\" %s", function_name(loader),
                        key, troupe_status_message());
    return false;
}

static bool read_declaration(struct troupe_loader *loader, const struct troupe_json_path *path,
                             json_t *json, bool is_output, struct declaration *out)
{
    struct troupe_attr dtype = {0}, shape = troupe_attr_shape(troupe_shape_unknown());
    json_t *shape_json = json_object_get(json, "shape");
    char where[TROUPE_NODE_TEXT_MAX];
    bool right;

    if (!json_is_object(json)) {
        troupe_loader_error(loader, path, false, "function \"%s\": an %s wants an object with %s",
                            function_name(loader), is_output ? "output" : "input",
                            is_output ? "\"name\", \"value\" and \"dtype\""
                                      : "\"name\" and \"dtype\"");
        return false;
    }
    snprintf(where, sizeof(where), "function \"%.400s\": ", function_name(loader));
    right = troupe_loader_check_keys(loader, path, where, json,
                                     is_output ? output_keys : input_keys, is_output ? 4 : 3);
    out->name = read_text(loader, path, json, "name");
    out->value = is_output ? read_text(loader, path, json, "value") : "";
    right &= out->name != NULL && out->value != NULL;
    if (json_object_get(json, "dtype") == NULL) {
        troupe_loader_error(loader, path, false, "function \"%s\": an %s wants a \"dtype\"",
                            function_name(loader), is_output ? "output" : "input");
        return false;
    }
    right &=
        read_attr(loader, path, json_object_get(json, "dtype"), "dtype", TROUPE_ATTR_TYPE, &dtype);
    if (shape_json != NULL)
        right &= read_attr(loader, path, shape_json, "shape", TROUPE_ATTR_SHAPE, &shape);
    if (!right)
        return false;
    out->dtype = dtype.value.type;
    out->shape = shape.value.shape;
    return true;
}

static enum troupe_status add_input(struct troupe_loader *loader,
                                    const struct troupe_json_path *path,
                                    const struct declaration *input, int index)
{
    char type_name[] = "T", index_name[] = "index", shape_name[] = "shape";
    struct troupe_named_attr attrs[] = {
        {type_name, troupe_attr_type(input->dtype)},
        {index_name, troupe_attr_int(index)},
        {shape_name, troupe_attr_shape(input->shape)},
    };
    struct troupe_node_spec spec = {.name = input->name,
                                    .op = "_Arg",
                                    .attrs = attrs,
                                    .attr_count = 3,
                                    .line = loader->function->line,
                                    .column = loader->function->column};
    enum troupe_status status = TROUPE_ALREADY_EXISTS;

    if (!troupe_name_is_valid(input->name))
        troupe_loader_error(loader, path, false,
                            "function \"%s\": an input may not be called "
                            "\"%s\"",
                            function_name(loader), input->name);
    else
        status = troupe_graph_add(loader->graph, &spec, &loader->function->inputs[index]);
    if (status == TROUPE_RESOURCE_EXHAUSTED)
        return status;
    if (status != TROUPE_OK && troupe_name_is_valid(input->name))
        troupe_loader_error(loader, path, false, "function \"%s\": %s", function_name(loader),
                            troupe_status_message());
    return TROUPE_OK;
}

static enum troupe_status load_inputs(struct troupe_loader *loader,
                                      const struct troupe_json_path *path, const json_t *inputs)
{
    const struct troupe_json_path inputs_path = {path, "input", 0};
    size_t count = json_array_size(inputs);
    enum troupe_status status = TROUPE_OK;

    if (inputs != NULL && !json_is_array(inputs))
        troupe_loader_error(loader, &inputs_path, false, "function \"%s\": \"input\" wants a list",
                            function_name(loader));
    loader->function->inputs = troupe_calloc(count + 1, sizeof(int));
    if (loader->function->inputs == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    loader->function->input_count = (int)count;
    for (size_t i = 0; i < count && status == TROUPE_OK; i++) {
        const struct troupe_json_path at = {&inputs_path, NULL, i};
        struct declaration input;

        if (read_declaration(loader, &at, json_array_get(inputs, i), false, &input))
            status = add_input(loader, &at, &input, (int)i);
    }
    return status;
}

static enum troupe_status load_outputs(struct troupe_loader *loader,
                                       const struct troupe_json_path *path, const json_t *outputs)
{
    const struct troupe_json_path outputs_path = {path, "output", 0};
    struct troupe_function *function = loader->function;
    size_t count = json_array_size(outputs);

    if (outputs != NULL && !json_is_array(outputs))
        troupe_loader_error(loader, &outputs_path, false,
                            "function \"%s\": \"output\" wants a list", function_name(loader));
    function->outputs = troupe_calloc(count + 1, sizeof(*function->outputs));
    if (function->outputs == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < count; i++) {
        const struct troupe_json_path at = {&outputs_path, NULL, i}, value_at = {&at, "value", 0};
        struct troupe_function_output *output = &function->outputs[i];
        struct declaration read;

        function->output_count = (int)i + 1;
        if (!read_declaration(loader, &at, json_array_get(outputs, i), true, &read))
            continue;
        output->name = troupe_strdup(read.name);
        if (output->name == NULL)
            return TROUPE_RESOURCE_EXHAUSTED;
        output->dtype = read.dtype;
        output->shape = read.shape;
        if (troupe_loader_value(loader, read.value, &output->value) != TROUPE_OK)
            troupe_loader_error(loader, &value_at, false, "function \"%s\": output \"%s\": %s",
                                function_name(loader), read.name, troupe_status_message());
    }
    return TROUPE_OK;
}

/* State belongs to the graph: a function may be inlined many times, or never. */
static void refuse_variables(struct troupe_loader *loader, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct troupe_json_path path = {loader->nodes, NULL, i};
        const struct troupe_node *node = &loader->graph->nodes[i];

        if (node->schema == NULL || node->schema->input_count > 0 ||
            node->schema->output_count != 1 || !node->schema->outputs[0].is_ref)
            continue;
        troupe_loader_error(loader, &path, false,
                            "function \"%s\": node \"%s\" (%s) is state, which belongs to the "
                            "graph; a function may use the graph's by name",
                            function_name(loader), node->name, node->schema->op->name);
    }
}

static enum troupe_status load_body(struct troupe_loader *loader,
                                    const struct troupe_json_path *path, const json_t *json)
{
    const json_t *nodes = json_object_get(json, "node"), *outputs = json_object_get(json, "output");
    size_t count = json_array_size(nodes);
    enum troupe_status status;

    if (!json_is_array(nodes) || count > INT_MAX / 4) {
        troupe_loader_error(loader, loader->nodes, false,
                            "function \"%s\": wants \"node\", a list of nodes",
                            function_name(loader));
        count = 0;
        nodes = NULL;
    }
    loader->broken = troupe_calloc(count + 1, sizeof(*loader->broken));
    if (loader->broken == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    status = troupe_graph_reserve(loader->graph, (int)count);
    if (status == TROUPE_OK)
        status = troupe_load_names(loader, nodes);
    if (status == TROUPE_OK)
        status = load_inputs(loader, path, json_object_get(json, "input"));
    if (status == TROUPE_OK)
        status = capture_values(loader, nodes, outputs);
    if (status == TROUPE_OK)
        status = troupe_load_nodes(loader, nodes);
    if (status != TROUPE_OK)
        return status;
    refuse_variables(loader, count);
    return load_outputs(loader, path, outputs);
}

/* The name, kept with its function. */
static enum troupe_status load_function_name(struct troupe_loader *loader,
                                             struct troupe_loader *inner,
                                             const struct troupe_json_path *path,
                                             const json_t *json, int number)
{
    const struct troupe_json_path at = {path, "name", 0};
    const char *name = json_string_value(json_object_get(json, "name"));
    struct troupe_library *library = loader->graph->library;

    if (name == NULL || !troupe_name_is_valid(name)) {
        troupe_loader_error(loader, &at, false,
                            "a function wants a \"name\", a string of letters, "
                            "digits and \"_ . / - > \\\"");
        return TROUPE_INVALID_ARGUMENT;
    }
    if (troupe_library_find(library, name) >= 0) {
        troupe_loader_error(loader, &at, false, "there is a function \"%s\" already, in line %d",
                            name, library->functions[troupe_library_find(library, name)].line);
        return TROUPE_INVALID_ARGUMENT;
    }
    inner->function->name = troupe_strdup(name);
    if (inner->function->name == NULL ||
        troupe_name_map_put(&library->names, inner->function->name, number) != 0)
        return TROUPE_RESOURCE_EXHAUSTED;
    return TROUPE_OK;
}

/* Reads a function in friendly form, whose nodes are at `nodes_path`. */
static enum troupe_status load_friendly(struct troupe_loader *loader,
                                        const struct troupe_positions *functions,
                                        const struct troupe_json_path *path,
                                        const struct troupe_json_path *nodes_path, json_t *json,
                                        int number)
{
    struct troupe_place place = troupe_positions_find(functions, path, false);
    struct troupe_loader inner = {.path = loader->path,
                                  .nodes = nodes_path,
                                  .diagnostics = loader->diagnostics,
                                  .function = &loader->graph->library->functions[number],
                                  .outer = loader->graph};
    enum troupe_status status = troupe_graph_create(&inner.graph);

    if (status != TROUPE_OK)
        return status;
    inner.function->body = inner.graph;
    inner.function->line = place.line;
    inner.function->column = place.column;
    inner.graph->seed = loader->graph->seed;
    inner.graph->path = troupe_strdup(loader->path);
    if (inner.graph->path == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    status = load_function_name(loader, &inner, path, json, number);
    if (status != TROUPE_OK)
        return status == TROUPE_RESOURCE_EXHAUSTED ? status : TROUPE_OK;
    if (!troupe_loader_check_keys(loader, path, "function: ", json, function_keys, 4))
        return TROUPE_OK;
    status = troupe_positions_init(&inner.positions, functions, nodes_path,
                                   json_array_size(json_object_get(json, "node")));
    if (status == TROUPE_OK)
        status = load_body(&inner, path, json);
    troupe_positions_fini(&inner.positions);
    free(inner.broken);
    return status;
}

static enum troupe_status load_function(struct troupe_loader *loader,
                                        const struct troupe_positions *functions, json_t *json,
                                        int number)
{
    const struct troupe_json_path library_path = {NULL, "library", 0};
    const struct troupe_json_path functions_path = {&library_path, "function", 0};
    const struct troupe_json_path path = {&functions_path, NULL, (size_t)number};
    bool is_proto = json_object_get(json, "signature") != NULL;
    const struct troupe_json_path nodes_path = {&path, is_proto ? "nodeDef" : "node", 0};
    json_t *friendly =
        is_proto ? troupe_function_from_proto(loader, &path, json) : json_incref(json);
    enum troupe_status status = TROUPE_OK;

    if (friendly == NULL)
        return loader->diagnostics->count > 0 ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    status = load_friendly(loader, functions, &path, &nodes_path, friendly, number);
    json_decref(friendly);
    return status;
}

enum troupe_status troupe_load_library(struct troupe_loader *loader, json_t *root)
{
    const struct troupe_json_path at = {NULL, "library", 0}, functions_at = {&at, "function", 0};
    json_t *library = json_object_get(root, "library"), *functions;
    struct troupe_positions positions;
    enum troupe_status status;

    if (library == NULL)
        return TROUPE_OK;
    if (!json_is_object(library)) {
        troupe_loader_error(loader, &at, false, "\"library\" wants an object");
        return TROUPE_OK;
    }
    (void)troupe_loader_check_keys(loader, &at, "library: ", library, library_keys, 3);
    functions = json_object_get(library, "function");
    if (functions == NULL)
        return TROUPE_OK;
    if (!json_is_array(functions) || json_array_size(functions) > FUNCTIONS_MAX) {
        troupe_loader_error(loader, &functions_at, false,
                            "\"function\" wants a list of at most %d functions", FUNCTIONS_MAX);
        return TROUPE_OK;
    }
    if (json_array_size(functions) == 0)
        return TROUPE_OK;
    status = troupe_positions_init(&positions, &loader->positions, &functions_at,
                                   json_array_size(functions));
    if (status == TROUPE_OK)
        status = troupe_library_create((int)json_array_size(functions), &loader->graph->library);
    for (size_t i = 0; i < json_array_size(functions) && status == TROUPE_OK; i++)
        status = load_function(loader, &positions, json_array_get(functions, i), (int)i);
    troupe_positions_fini(&positions);
    return status;
}
