/* Functions in GraphDef's form (FunctionDef), turned into the friendly form before they are read.
 *
 * There a value is "node:output:index", with the name of an output of the op, or the name of an
 * input of the function. Invariant: node i of nodeDef is node i of what is made, so that errors are
 * told at the node's place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/load.h"

static const char *const def_keys[] = {"signature", "attr", "argAttr",   "resourceArgUniqueId",
                                       "nodeDef",   "ret",  "controlRet"};

/* How many values an output arg of a node stands for, as its attrs say; 0 when they do not. */
static json_int_t arg_length(const json_t *node, const struct troupe_op_arg *arg)
{
    const json_t *attrs = json_object_get(node, "attr"), *attr;
    int64_t number = 0;

    if (arg->number_attr != NULL) {
        attr = json_object_get(json_object_get(attrs, arg->number_attr), "i");
        return attr != NULL && troupe_int_from_proto(attr, &number) == TROUPE_OK && number >= 0 &&
                       number <= INT32_MAX
                   ? number
                   : 0;
    }
    if (arg->list_attr != NULL) {
        attr = json_object_get(json_object_get(attrs, arg->list_attr), "list");
        return (json_int_t)json_array_size(json_object_get(attr, "type"));
    }
    return 1;
}

/* The port of output `index` of the op's output arg `name`; -1 when the op has no such output. */
static json_int_t find_port(const json_t *node, const char *name, json_int_t index)
{
    const char *op = json_string_value(json_object_get(node, "op"));
    const struct troupe_op_schema *schema = op != NULL ? troupe_op_find(op) : NULL;
    json_int_t port = 0;

    for (int i = 0; schema != NULL && i < schema->output_count; i++) {
        if (strcmp(schema->outputs[i].name, name) == 0)
            return port + index;
        port += arg_length(node, &schema->outputs[i]);
    }
    return schema == NULL ? index : -1; /* that there is no such op is told elsewhere */
}

/* "node:output:index" as "node:port", anything else as it is; NULL with a message. `named` maps the
 * names of the body's nodes to their JSON, here and below. */
static json_t *value_to_friendly(json_t *named, const char *text)
{
    const char *first = strchr(text, ':'), *second = first != NULL ? strchr(first + 1, ':') : NULL;
    char *node, *output, *end = NULL;
    json_t *result = NULL, *found;
    json_int_t index, port = -1;

    if (second == NULL)
        return json_string(text);
    index = strtoll(second + 1, &end, 10);
    node = strndup(text, (size_t)(first - text));
    output = strndup(first + 1, (size_t)(second - first - 1));
    found = node != NULL ? json_object_get(named, node) : NULL;
    if (found != NULL && output != NULL && end != second + 1 && *end == '\0' && index >= 0 &&
        index <= INT32_MAX)
        port = find_port(found, output, index);
    if (port >= 0)
        result = json_sprintf("%s:%lld", node, (long long)port);
    else
        (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                 "\"%s\" is no \"node:output:index\" of the function", text);
    free(node);
    free(output);
    return result;
}

/* A node with its inputs in friendly form; NULL with a message. */
static json_t *node_to_friendly(json_t *named, json_t *node)
{
    json_t *inputs = json_object_get(node, "input"), *copy, *list;

    if (!json_is_array(inputs))
        return json_incref(node); /* what is wrong with it is told by whoever reads it */
    copy = json_copy(node);
    list = json_array();
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        json_t *input = json_array_get(inputs, i), *value;

        value = json_is_string(input) ? value_to_friendly(named, json_string_value(input))
                                      : json_incref(input);
        if (value == NULL || json_array_append_new(list, value) != 0) {
            json_decref(list);
            json_decref(copy);
            return NULL;
        }
    }
    (void)json_object_set_new(copy, "input", list);
    return copy;
}

/* The inputs, or outputs with their values, of the signature; NULL with a message. */
static json_t *args_to_friendly(json_t *named, const json_t *args, const json_t *ret)
{
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(args); i++) {
        json_t *arg = json_array_get(args, i), *made = json_object(), *value = NULL;
        const char *name = json_string_value(json_object_get(arg, "name"));
        const char *from = json_string_value(json_object_get(ret, name != NULL ? name : ""));

        if (name != NULL && json_object_get(arg, "type") != NULL)
            (void)json_object_set(made, "dtype", json_object_get(arg, "type"));
        (void)json_object_set_new(made, "name", json_string(name != NULL ? name : ""));
        if (name == NULL || json_object_get(arg, "type") == NULL)
            (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                     "an arg of the signature wants a \"name\" and a \"type\"; one "
                                     "whose type follows from attrs is not read");
        else if (ret != NULL && from == NULL)
            (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"ret\" has no \"%s\"", name);
        else
            value = ret != NULL ? value_to_friendly(named, from) : json_null();
        if (value == NULL) {
            json_decref(made);
            json_decref(list);
            return NULL;
        }
        if (ret != NULL)
            (void)json_object_set(made, "value", value);
        json_decref(value);
        (void)json_array_append_new(list, made);
    }
    return list;
}

static json_t *def_to_friendly(json_t *named, json_t *def)
{
    const json_t *signature = json_object_get(def, "signature");
    json_t *nodes = json_object_get(def, "nodeDef"), *ret = json_object_get(def, "ret");
    json_t *list = json_array(), *none = json_object(), *made = json_object();
    json_t *inputs = args_to_friendly(named, json_object_get(signature, "inputArg"), NULL);
    json_t *outputs =
        args_to_friendly(named, json_object_get(signature, "outputArg"), ret != NULL ? ret : none);
    bool right = inputs != NULL && outputs != NULL;

    for (size_t i = 0; i < json_array_size(nodes) && right; i++) {
        json_t *node = node_to_friendly(named, json_array_get(nodes, i));

        right = node != NULL && json_array_append_new(list, node) == 0;
    }
    (void)json_object_set(made, "name", json_object_get(signature, "name"));
    (void)json_object_set(made, "input", inputs);
    (void)json_object_set(made, "output", outputs);
    (void)json_object_set(made, "node", list);
    json_decref(inputs);
    json_decref(outputs);
    json_decref(list);
    json_decref(none);
    if (right)
        return made;
    json_decref(made);
    return NULL;
}

json_t *troupe_function_from_proto(struct troupe_loader *loader,
                                   const struct troupe_json_path *path, json_t *def)
{
    json_t *nodes = json_object_get(def, "nodeDef"), *named = json_object(), *made;

    if (!troupe_loader_check_keys(loader, path, "function: ", def, def_keys,
                                  sizeof(def_keys) / sizeof(def_keys[0]))) {
        json_decref(named);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        json_t *node = json_array_get(nodes, i);
        const char *name = json_string_value(json_object_get(node, "name"));

        if (name != NULL)
            (void)json_object_set(named, name, node);
    }
    made = def_to_friendly(named, def);
    if (made == NULL)
        troupe_loader_error(loader, path, false, "function: %s", troupe_status_message());
    json_decref(named);
    return made;
}
