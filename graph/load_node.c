/* Nodes from JSON. Invariant: node i of the JSON becomes node i of the graph whatever is wrong
 * with it; a node with an error loses its schema, and nothing that follows from it is reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/load.h"

static const char *const node_keys[] = {"name",   "op",   "input",
                                        "device", "attr", "experimentalDebugInfo"};

/* TensorFlow's rule for names, and a leading underscore. */
bool troupe_name_is_valid(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";

    return name[0] != '\0' && strchr(letters, name[0]) != NULL &&
           name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                             "._>/\\-")] == '\0';
}

/* The name, kept with its node; false when there is none to use. */
static bool load_name(struct troupe_loader *loader, const struct troupe_json_path *path,
                      const json_t *json, struct troupe_node *node, int number)
{
    const struct troupe_json_path at = {path, "name", 0};
    const char *name = json_string_value(json_object_get(json, "name"));
    int first;

    if (name == NULL) {
        troupe_loader_error(loader, &at, false, "a node wants a \"name\", a string");
        return false;
    }
    first = troupe_graph_find(loader->graph, name);
    if (first >= 0) {
        troupe_loader_error(loader, &at, false, "there is a node \"%s\" already, in line %d", name,
                            loader->graph->nodes[first].line);
        return false;
    }
    if (!troupe_name_is_valid(name)) {
        troupe_loader_error(loader, &at, false,
                            "a node may not be called \"%s\": a name has letters, digits and "
                            "\"_ . / - > \\\", and starts with a letter, a digit, \".\" or \"_\"",
                            name);
        return false;
    }
    free(node->name);
    node->name = troupe_strdup(name);
    return node->name != NULL &&
           troupe_name_map_put(&loader->graph->names, node->name, number) == 0;
}

static bool load_op(struct troupe_loader *loader, const struct troupe_json_path *path,
                    const json_t *json, struct troupe_node *node)
{
    const struct troupe_json_path at = {path, "op", 0};
    const char *op = json_string_value(json_object_get(json, "op"));
    const char *near;

    if (op == NULL) {
        troupe_loader_error(loader, &at, false, "node \"%s\": wants an \"op\", a string",
                            node->name);
        return false;
    }
    node->schema = troupe_op_find(op);
    if (node->schema != NULL)
        return true;
    near = troupe_op_suggest(op);
    troupe_loader_error(loader, path, false, "node \"%s\": no op \"%s\"%s%s%s", node->name, op,
                        near != NULL ? " (did you mean \"" : "", near != NULL ? near : "",
                        near != NULL ? "\"?)" : "");
    return false;
}

static bool load_device(struct troupe_loader *loader, const struct troupe_json_path *path,
                        const json_t *json, struct troupe_node *node)
{
    const struct troupe_json_path at = {path, "device", 0};
    const json_t *device = json_object_get(json, "device");
    struct troupe_device_spec spec;
    char *copy;

    if (device == NULL)
        return true;
    if (!json_is_string(device)) {
        troupe_loader_error(loader, &at, false, "node \"%s\": \"device\" wants a string",
                            node->name);
        return false;
    }
    if (troupe_device_spec_parse(json_string_value(device), &spec) != TROUPE_OK) {
        troupe_loader_error(loader, &at, false, "node \"%s\": %s", node->name,
                            troupe_status_message());
        return false;
    }
    copy = troupe_strdup(json_string_value(device));
    if (copy == NULL)
        return false;
    free(node->device);
    node->device = copy;
    return true;
}

/* What comes before the messages is made only where there is one. */
static bool check_node_keys(struct troupe_loader *loader, const struct troupe_json_path *path,
                            json_t *json, const char *name)
{
    const size_t count = sizeof(node_keys) / sizeof(node_keys[0]);
    char where[TROUPE_NODE_TEXT_MAX] = "node: ";
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        known += json_object_get(json, node_keys[i]) != NULL;
    if (known == json_object_size(json))
        return true;
    if (name != NULL)
        snprintf(where, sizeof(where), "node \"%.400s\": ", name);
    return troupe_loader_check_keys(loader, path, where, json, node_keys, count);
}

static enum troupe_status load_one_name(struct troupe_loader *loader, json_t *json, int number)
{
    const struct troupe_json_path path = {loader->nodes, NULL, (size_t)number};
    struct troupe_place place = troupe_positions_find(&loader->positions, &path, false);
    struct troupe_node *node = &loader->graph->nodes[number];
    bool right;

    *node = (struct troupe_node){.line = place.line, .column = place.column, .replica = -1};
    node->name = troupe_strdup("");
    node->device = troupe_strdup("");
    if (node->name == NULL || node->device == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    if (!json_is_object(json)) {
        loader->broken[number] = true;
        troupe_loader_error(loader, &path, false,
                            "a node wants an object with \"name\" and \"op\"");
        return TROUPE_OK;
    }
    right = load_name(loader, &path, json, node, number);
    right &= check_node_keys(loader, &path, json, right ? node->name : NULL);
    if (node->name[0] != '\0') {
        right &= load_op(loader, &path, json, node);
        right &= load_device(loader, &path, json, node);
    }
    loader->broken[number] = !right; /* its attrs and inputs are checked all the same */
    node->origin = troupe_strdup(node->name);
    return node->origin != NULL ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

enum troupe_status troupe_load_names(struct troupe_loader *loader, const json_t *nodes)
{
    enum troupe_status status;

    for (size_t i = 0; i < json_array_size(nodes); i++) {
        loader->graph->node_count = (int)i + 1;
        status = load_one_name(loader, json_array_get(nodes, i), (int)i);
        if (status != TROUPE_OK)
            return status;
    }
    return TROUPE_OK;
}

/* The nearest attr of the op, for a name that it does not have. */
static void attr_unknown(struct troupe_loader *loader, const struct troupe_json_path *at,
                         const struct troupe_node *node, const char *name)
{
    size_t count = (size_t)node->schema->attr_count;
    const char **names = troupe_calloc(count + 1, sizeof(*names));
    char suggestion[TROUPE_SUGGESTION_MAX];

    for (size_t i = 0; names != NULL && i < count; i++)
        names[i] = node->schema->attrs[i].name;
    troupe_loader_error(loader, at, true, "node \"%s\": op %s has no attr \"%s\"%s", node->name,
                        node->schema->op->name, name,
                        troupe_loader_suggest(name, names, names != NULL ? count : 0, suggestion));
    free(names);
}

/* What a tensor in friendly form takes its dtype from. */
static enum troupe_dtype dtype_hint(const struct troupe_node *node, const json_t *attrs)
{
    const struct troupe_op_attr *wanted = troupe_op_attr_find(node->schema, "dtype");
    json_t *json = json_object_get(attrs, "dtype");
    struct troupe_attr value;

    if (wanted == NULL || wanted->kind != TROUPE_ATTR_TYPE || json == NULL ||
        troupe_attr_from_json(wanted, TROUPE_DTYPE_INVALID, json, &value) != TROUPE_OK)
        return TROUPE_DTYPE_INVALID;
    return value.value.type;
}

/* A tensor's dtype is the node's `dtype` where that was left out, and has to agree with it. */
static bool settle_dtype(struct troupe_loader *loader, const struct troupe_json_path *at,
                         struct troupe_node *node, enum troupe_dtype hint,
                         const struct troupe_attr *value)
{
    const struct troupe_op_attr *wanted = troupe_op_attr_find(node->schema, "dtype");
    enum troupe_dtype dtype;

    if (value->kind != TROUPE_ATTR_TENSOR || wanted == NULL || wanted->kind != TROUPE_ATTR_TYPE)
        return true;
    dtype = troupe_tensor_dtype(value->value.tensor);
    if (hint == TROUPE_DTYPE_INVALID)
        return troupe_node_set_attr(node, "dtype", troupe_attr_type(dtype)) == TROUPE_OK;
    if (dtype == hint)
        return true;
    troupe_loader_error(loader, at, false,
                        "node \"%s\": attr \"%s\" is a tensor of %s, but attr \"dtype\" says %s",
                        node->name, at->key, troupe_dtype_name(dtype), troupe_dtype_name(hint));
    return false;
}

/* A variable's initial value is the output of the node that this attr names. */
static bool check_initializer(struct troupe_loader *loader, const struct troupe_json_path *at,
                              const struct troupe_node *node, const struct troupe_attr *value)
{
    struct troupe_value initial;

    if (value->kind != TROUPE_ATTR_STRING || strcmp(at->key, "initializer") != 0 ||
        value->count == 0 ||
        troupe_graph_value(loader->graph, value->value.s, &initial) == TROUPE_OK)
        return true;
    troupe_loader_error(loader, at, false, "node \"%s\": attr \"initializer\": %s", node->name,
                        troupe_status_message());
    return false;
}

static bool load_attr(struct troupe_loader *loader, const struct troupe_json_path *at,
                      struct troupe_node *node, enum troupe_dtype hint, json_t *json)
{
    const struct troupe_op_attr *wanted = troupe_op_attr_find(node->schema, at->key);
    struct troupe_attr value;

    if (at->key[0] == '_')
        return true; /* a remark of whoever exported the graph */
    if (wanted == NULL) {
        attr_unknown(loader, at, node, at->key);
        return false;
    }
    if (troupe_attr_from_json(wanted, hint, json, &value) != TROUPE_OK) {
        const char *message = troupe_status_message();
        bool is_sentence = strncmp(message, "wants ", 6) == 0 || strncmp(message, "is ", 3) == 0;

        troupe_loader_error(loader, at, false, "node \"%s\": attr \"%s\"%s %s", node->name, at->key,
                            is_sentence ? "" : ":", message);
        return false;
    }
    if (!settle_dtype(loader, at, node, hint, &value) ||
        !check_initializer(loader, at, node, &value)) {
        troupe_attr_fini(&value);
        return false;
    }
    return troupe_node_set_attr(node, at->key, value) == TROUPE_OK;
}

static bool load_attrs(struct troupe_loader *loader, const struct troupe_json_path *path,
                       struct troupe_node *node, json_t *json)
{
    const struct troupe_json_path attrs_path = {path, "attr", 0};
    json_t *attrs = json_object_get(json, "attr"), *value;
    enum troupe_dtype hint;
    bool right = true;
    const char *key;

    if (attrs == NULL)
        return true;
    if (!json_is_object(attrs)) {
        troupe_loader_error(loader, &attrs_path, false,
                            "node \"%s\": \"attr\" wants an object of names and values",
                            node->name);
        return false;
    }
    hint = dtype_hint(node, attrs);
    json_object_foreach(attrs, key, value)
    {
        const struct troupe_json_path at = {&attrs_path, key, 0};

        right &= load_attr(loader, &at, node, hint, value);
    }
    return right;
}

/* True when the thread's message begins with the value that it is about. */
static bool value_is_named(void)
{
    return troupe_status_message()[0] == '"';
}

static bool load_input(struct troupe_loader *loader, const struct troupe_json_path *at,
                       struct troupe_node *node, const json_t *json)
{
    const char *text = json_string_value(json);
    struct troupe_value value;
    bool control = text != NULL && text[0] == '^';
    enum troupe_status status;

    if (text == NULL) {
        troupe_loader_error(loader, at, false,
                            "node \"%s\": an input wants \"node\", \"node:port\" or \"^node\"",
                            node->name);
        return false;
    }
    if (!control && node->control_count > 0) {
        troupe_loader_error(loader, at, false,
                            "node \"%s\": input \"%s\" comes after a control input; those come "
                            "last",
                            node->name, text);
        return false;
    }
    if (control && strchr(text, ':') != NULL) {
        troupe_loader_error(loader, at, false,
                            "node \"%s\": control input \"%s\" has a port; wants \"^node\"",
                            node->name, text);
        return false;
    }
    status = control ? troupe_graph_value(loader->graph, text + 1, &value)
                     : troupe_loader_value(loader, text, &value);
    if (status != TROUPE_OK) {
        troupe_loader_error(loader, at, false, "node \"%s\": input %s%s%s%s", node->name,
                            value_is_named() ? "" : "\"", value_is_named() ? "" : text,
                            value_is_named() ? "" : "\": ", troupe_status_message());
        return false;
    }
    return (control ? troupe_node_append_control(node, value.node)
                    : troupe_node_add_input(node, value)) == TROUPE_OK;
}

static bool load_inputs(struct troupe_loader *loader, const struct troupe_json_path *path,
                        struct troupe_node *node, const json_t *json)
{
    const struct troupe_json_path inputs_path = {path, "input", 0};
    const json_t *inputs = json_object_get(json, "input");
    bool right = true;

    if (inputs == NULL)
        return true;
    if (!json_is_array(inputs)) {
        troupe_loader_error(loader, &inputs_path, false,
                            "node \"%s\": \"input\" wants a list of strings", node->name);
        return false;
    }
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const struct troupe_json_path at = {&inputs_path, NULL, i};

        right &= load_input(loader, &at, node, json_array_get(inputs, i));
    }
    return right && troupe_node_settle_controls(node) == TROUPE_OK;
}

enum troupe_status troupe_load_nodes(struct troupe_loader *loader, const json_t *nodes)
{

    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const struct troupe_json_path path = {loader->nodes, NULL, i};
        struct troupe_node *node = &loader->graph->nodes[i];
        json_t *json = json_array_get(nodes, i);
        bool right = !loader->broken[i];

        if (node->name[0] == '\0')
            continue;
        if (node->schema != NULL)
            right &= load_attrs(loader, &path, node, json);
        right &= load_inputs(loader, &path, node, json);
        if (!right)
            node->schema = NULL;
    }
    return TROUPE_OK;
}
