/* Functions. Invariant: names maps the name of every function that has one to its number; the map
 * borrows the names. */
#include "graph/library.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum troupe_status troupe_library_create(int count, struct troupe_library **out)
{
    struct troupe_library *library = troupe_calloc(1, sizeof(*library));

    if (library == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    troupe_name_map_init(&library->names);
    library->functions = troupe_calloc((size_t)count + 1, sizeof(*library->functions));
    if (library->functions == NULL) {
        free(library);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    library->count = count;
    *out = library;
    return TROUPE_OK;
}

void troupe_function_fini(struct troupe_function *function)
{
    for (int i = 0; i < function->output_count; i++)
        free(function->outputs[i].name);
    troupe_graph_destroy(function->body);
    free(function->name);
    free(function->inputs);
    free(function->outputs);
    free(function->captures);
    *function = (struct troupe_function){0};
}

void troupe_library_destroy(struct troupe_library *library)
{
    if (library == NULL)
        return;
    troupe_name_map_fini(&library->names);
    for (int i = 0; i < library->count; i++)
        troupe_function_fini(&library->functions[i]);
    free(library->functions);
    free(library);
}

int troupe_library_find(const struct troupe_library *library, const char *name)
{
    return library != NULL ? troupe_name_map_get(&library->names, name) : -1;
}

enum troupe_status troupe_function_capture(struct troupe_function *function,
                                           struct troupe_value outer, int *out)
{
    struct troupe_capture *captures;

    for (int i = 0; i < function->capture_count; i++) {
        if (function->captures[i].outer.node == outer.node &&
            function->captures[i].outer.port == outer.port) {
            *out = i;
            return TROUPE_OK;
        }
    }
    captures = troupe_reallocarray(function->captures, (size_t)function->capture_count + 1,
                                   sizeof(*captures));
    if (captures == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    function->captures = captures;
    captures[function->capture_count] = (struct troupe_capture){outer, -1};
    *out = function->capture_count++;
    return TROUPE_OK;
}

static const struct troupe_attr *branches_of(const struct troupe_node *node)
{
    return troupe_attr_find(node->attrs, node->attr_count, "branches");
}

int troupe_node_callee_count(const struct troupe_node *node)
{
    switch (node->schema != NULL ? node->schema->op->flow : TROUPE_FLOW_NONE) {
    case TROUPE_FLOW_WHILE:
    case TROUPE_FLOW_IF:
        return 2;
    case TROUPE_FLOW_CASE:
        return branches_of(node) != NULL ? (int)branches_of(node)->count : 0;
    case TROUPE_FLOW_CALL:
        return 1;
    default:
        return 0;
    }
}

const char *troupe_node_callee(const struct troupe_node *node, int index, const char **attr)
{
    static const char *const while_attrs[] = {"cond", "body"};
    static const char *const if_attrs[] = {"then_branch", "else_branch"};
    const struct troupe_attr *value;

    switch (node->schema->op->flow) {
    case TROUPE_FLOW_WHILE:
        *attr = while_attrs[index];
        break;
    case TROUPE_FLOW_IF:
        *attr = if_attrs[index];
        break;
    case TROUPE_FLOW_CASE:
        *attr = "branches";
        return branches_of(node)->value.list_s[index];
    default:
        *attr = "f";
        break;
    }
    value = troupe_attr_find(node->attrs, node->attr_count, *attr);
    return value != NULL ? value->value.s : "";
}
