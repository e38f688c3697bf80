/* Graphs as JSON in friendly form. Invariant: what is printed reads back as the same graph; where
 * the friendly form cannot say a value exactly (bytes, a tensor whose dtype or empty shape its
 * elements do not show), GraphDef's form is used. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "graph/library.h"
#include "graph/literal.h"
#include "graph/load_base64.h"
#include "graph/node.h"
#include "graph/sections.h"
#include "ops/string.h"

/* What is larger nobody reads, and base64 is shorter. */
#define LITERAL_ELEMENTS_MAX 4096

#define DUMP_FLAGS (JSON_ENCODE_ANY | JSON_REAL_PRECISION(17))

static json_t *base64_to_json(const void *bytes, size_t count)
{
    struct troupe_text text;
    json_t *json;

    troupe_text_init(&text);
    troupe_base64_encode(bytes, count, &text);
    json = text.failed ? NULL : json_string(text.data != NULL ? text.data : "");
    troupe_text_fini(&text);
    return json;
}

static json_t *float_to_json(double value)
{
    if (value != value)
        return json_string("NaN");
    if (value - value != 0)
        return json_string(value > 0 ? "Infinity" : "-Infinity");
    return json_real(value);
}

static json_t *shape_to_json(const struct troupe_shape *shape)
{
    json_t *list;

    if (shape->rank == TROUPE_RANK_UNKNOWN)
        return json_null();
    list = json_array();
    for (int i = 0; i < shape->rank; i++)
        (void)json_array_append_new(list, shape->dims[i] == TROUPE_DIM_UNKNOWN
                                              ? json_null()
                                              : json_integer(shape->dims[i]));
    return list;
}

/* {"shape": {...}} of TensorProto. */
static json_t *proto_shape(const struct troupe_tensor *tensor)
{
    json_t *dims = json_array();

    for (int i = 0; i < troupe_tensor_rank(tensor); i++)
        (void)json_array_append_new(
            dims, json_pack("{s:I}", "size", (json_int_t)troupe_tensor_dims(tensor)[i]));
    return json_pack("{s:o}", "dim", dims);
}

static json_t *proto_tensor(const struct troupe_tensor *tensor)
{
    json_t *values;

    if (troupe_tensor_dtype(tensor) != TROUPE_STRING)
        return json_pack("{s:{s:s, s:o, s:o}}", "tensor", "dtype",
                         troupe_dtype_name(troupe_tensor_dtype(tensor)), "tensorShape",
                         proto_shape(tensor), "tensorContent",
                         base64_to_json(troupe_tensor_data(tensor), troupe_tensor_bytes(tensor)));
    values = json_array();
    for (int64_t i = 0; i < troupe_tensor_elements(tensor); i++) {
        const struct troupe_string *string =
            ((struct troupe_string *const *)troupe_tensor_data(tensor))[i];

        (void)json_array_append_new(
            values, base64_to_json(troupe_string_data(string), troupe_string_length(string)));
    }
    return json_pack("{s:{s:s, s:o, s:o}}", "tensor", "dtype", "string", "tensorShape",
                     proto_shape(tensor), "stringVal", values);
}

/* JSON text holds no zero byte and no byte sequence that is not UTF-8. */
static bool string_is_text(const char *bytes, size_t count)
{
    json_t *json = memchr(bytes, '\0', count) == NULL ? json_stringn(bytes, count) : NULL;
    bool is_text = json != NULL;

    json_decref(json);
    return is_text;
}

static bool tensor_is_text(const struct troupe_tensor *tensor)
{
    for (int64_t i = 0; i < troupe_tensor_elements(tensor); i++) {
        const struct troupe_string *string =
            ((struct troupe_string *const *)troupe_tensor_data(tensor))[i];

        if (!string_is_text(troupe_string_data(string), troupe_string_length(string)))
            return false;
    }
    return true;
}

/* A NaN's bits are not in the literal "NaN". */
static bool tensor_has_nan(const struct troupe_tensor *tensor)
{
    int64_t elements = troupe_tensor_elements(tensor);

    for (int64_t i = 0; i < elements; i++) {
        float single = troupe_tensor_dtype(tensor) == TROUPE_FLOAT32
                           ? ((const float *)troupe_tensor_data(tensor))[i]
                           : 0;
        double twice = troupe_tensor_dtype(tensor) == TROUPE_FLOAT64
                           ? ((const double *)troupe_tensor_data(tensor))[i]
                           : 0;

        if (single != single || twice != twice)
            return true;
    }
    return false;
}

static json_t *tensor_to_json(const struct troupe_node *node, const struct troupe_tensor *tensor)
{
    const struct troupe_attr *dtype = troupe_attr_find(node->attrs, node->attr_count, "dtype");
    enum troupe_dtype have = troupe_tensor_dtype(tensor);

    if (dtype == NULL || dtype->kind != TROUPE_ATTR_TYPE || dtype->value.type != have ||
        (troupe_tensor_elements(tensor) == 0 && troupe_tensor_rank(tensor) != 1) ||
        (troupe_tensor_elements(tensor) > LITERAL_ELEMENTS_MAX && have != TROUPE_STRING) ||
        have == TROUPE_FLOAT16 || have == TROUPE_BFLOAT16 || tensor_has_nan(tensor) ||
        (have == TROUPE_STRING && !tensor_is_text(tensor)))
        return proto_tensor(tensor);
    return troupe_tensor_to_json(tensor);
}

static json_t *list_to_json(const struct troupe_attr *value)
{
    json_t *list = json_array(), *item = NULL;

    for (size_t i = 0; i < value->count; i++) {
        switch (value->kind) {
        case TROUPE_ATTR_LIST_STRING:
            item = json_string(value->value.list_s[i]);
            break;
        case TROUPE_ATTR_LIST_INT:
            item = json_integer(value->value.list_i[i]);
            break;
        case TROUPE_ATTR_LIST_FLOAT:
            item = float_to_json(value->value.list_f[i]);
            break;
        case TROUPE_ATTR_LIST_BOOL:
            item = json_boolean(value->value.list_b[i]);
            break;
        case TROUPE_ATTR_LIST_TYPE:
            item = json_string(troupe_dtype_name(value->value.list_type[i]));
            break;
        default:
            item = shape_to_json(&value->value.list_shape[i]);
            break;
        }
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *attr_to_json(const struct troupe_node *node, const struct troupe_attr *value)
{
    switch (value->kind) {
    case TROUPE_ATTR_STRING:
        if (!string_is_text(value->value.s, value->count))
            return json_pack("{s:o}", "s", base64_to_json(value->value.s, value->count));
        return json_stringn(value->value.s, value->count);
    case TROUPE_ATTR_FUNC:
        return json_string(value->value.s);
    case TROUPE_ATTR_INT:
        return json_integer(value->value.i);
    case TROUPE_ATTR_FLOAT:
        return float_to_json(value->value.f);
    case TROUPE_ATTR_BOOL:
        return json_boolean(value->value.b);
    case TROUPE_ATTR_TYPE:
        return json_string(troupe_dtype_name(value->value.type));
    case TROUPE_ATTR_SHAPE:
        return shape_to_json(&value->value.shape);
    case TROUPE_ATTR_TENSOR:
        return tensor_to_json(node, value->value.tensor);
    default:
        return list_to_json(value);
    }
}

static json_t *inputs_to_json(const struct troupe_graph *graph, const struct troupe_node *node)
{
    json_t *list = json_array();

    for (int i = 0; i < node->input_count; i++) {
        const char *name = graph->nodes[node->inputs[i].node].name;

        (void)json_array_append_new(list, node->inputs[i].port == 0
                                              ? json_string(name)
                                              : json_sprintf("%s:%d", name, node->inputs[i].port));
    }
    for (int i = 0; i < node->control_count; i++)
        (void)json_array_append_new(list,
                                    json_sprintf("^%s", graph->nodes[node->controls[i]].name));
    return list;
}

/* A node on one line; NULL when there is no memory. */
static json_t *node_to_json(const struct troupe_graph *graph, const struct troupe_node *node)
{
    json_t *json = json_pack("{s:s, s:s}", "name", node->name, "op", node->schema->op->name);
    json_t *attrs = json_object();
    int failed = json == NULL || attrs == NULL;

    if (node->input_count + node->control_count > 0)
        failed |= json_object_set_new(json, "input", inputs_to_json(graph, node));
    if (node->device != NULL && node->device[0] != '\0')
        failed |= json_object_set_new(json, "device", json_string(node->device));
    for (int i = 0; i < node->attr_count; i++)
        failed |= json_object_set_new(attrs, node->attrs[i].name,
                                      attr_to_json(node, &node->attrs[i].value));
    if (node->attr_count > 0)
        failed |= json_object_set(json, "attr", attrs);
    json_decref(attrs);
    if (failed != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* An input or output of a function; takes `json`. */
static json_t *declaration_to_json(json_t *json, enum troupe_dtype dtype,
                                   const struct troupe_shape *shape)
{
    (void)json_object_set_new(json, "dtype", json_string(troupe_dtype_name(dtype)));
    (void)json_object_set_new(json, "shape", shape_to_json(shape));
    return json;
}

static json_t *value_to_json(const struct troupe_graph *graph, struct troupe_value value)
{
    const char *name = graph->nodes[value.node].name;

    return value.port == 0 ? json_string(name) : json_sprintf("%s:%d", name, value.port);
}

static json_t *function_to_json(const struct troupe_function *function)
{
    json_t *inputs = json_array(), *outputs = json_array(), *nodes = json_array();
    const struct troupe_graph *body = function->body;

    for (int i = 0; i < function->input_count; i++) {
        const struct troupe_node *input = &body->nodes[function->inputs[i]];

        (void)json_array_append_new(
            inputs, declaration_to_json(json_pack("{s:s}", "name", input->name),
                                        input->output_dtypes[0], &input->output_shapes[0]));
    }
    for (int i = 0; i < function->output_count; i++) {
        const struct troupe_function_output *output = &function->outputs[i];

        (void)json_array_append_new(
            outputs, declaration_to_json(json_pack("{s:s, s:o}", "name", output->name, "value",
                                                   value_to_json(body, output->value)),
                                         output->dtype, &output->shape));
    }
    for (int i = 0; i < body->node_count; i++) {
        if (body->nodes[i].schema->op->flow != TROUPE_FLOW_ARG)
            (void)json_array_append_new(nodes, node_to_json(body, &body->nodes[i]));
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "name", function->name, "input", inputs, "output",
                     outputs, "node", nodes);
}

static json_t *library_to_json(const struct troupe_library *library)
{
    json_t *functions = json_array();

    for (int i = 0; i < library->count; i++)
        (void)json_array_append_new(functions, function_to_json(&library->functions[i]));
    return json_pack("{s:o}", "function", functions);
}

static json_t *strings_to_json(char *const *strings, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        (void)json_array_append_new(list, json_string(strings[i]));
    return list;
}

static json_t *train_to_json(const struct troupe_train_section *train)
{
    json_t *optimizer = json_pack("{s:s}", "type", train->optimizer), *json;

    for (int i = 0; i < train->hyperparameter_count; i++) {
        const struct troupe_named_attr *attr = &train->hyperparameters[i];

        (void)json_object_set_new(optimizer, attr->name,
                                  attr->value.kind == TROUPE_ATTR_BOOL
                                      ? json_boolean(attr->value.value.b)
                                      : json_real(attr->value.value.f));
    }
    json = json_pack("{s:s, s:o}", "loss", train->loss, "optimizer", optimizer);
    if (train->variables != NULL)
        (void)json_object_set_new(json, "variables",
                                  strings_to_json(train->variables, train->variable_count));
    return json;
}

static json_t *named_values_to_json(const struct troupe_named_value *values, int count)
{
    json_t *json = json_object();

    for (int i = 0; i < count; i++)
        (void)json_object_set_new(json, values[i].name, json_string(values[i].value));
    return json;
}

static json_t *loop_to_json(const struct troupe_loop_section *loop)
{
    json_t *json = json_object();

    if (loop->after != NULL)
        (void)json_object_set_new(json, "after", json_string(loop->after));
    if (loop->with != NULL)
        (void)json_object_set_new(json, "with", json_string(loop->with));
    if (loop->until != NULL)
        (void)json_object_set_new(json, "until", json_string(loop->until));
    if (loop->timeout_ms != 0)
        (void)json_object_set_new(json, "timeout", json_real((double)loop->timeout_ms / 1000.0));
    if (loop->staleness != 0)
        (void)json_object_set_new(json, "staleness", json_integer(loop->staleness));
    if (loop->run != NULL)
        (void)json_object_set_new(json, "run", strings_to_json(loop->run, loop->run_count));
    if (loop->steps != 0)
        (void)json_object_set_new(json, "steps", json_integer(loop->steps));
    if (loop->every != 0)
        (void)json_object_set_new(json, "every", json_integer(loop->every));
    if (loop->examples != NULL)
        (void)json_object_set_new(json, "examples", json_string(loop->examples));
    if (loop->show != NULL)
        (void)json_object_set_new(json, "show", named_values_to_json(loop->show, loop->show_count));
    if (loop->mean != NULL)
        (void)json_object_set_new(json, "mean", named_values_to_json(loop->mean, loop->mean_count));
    return json;
}

/* Everything but the nodes. */
static json_t *sections_to_json(const struct troupe_graph *graph)
{
    const struct troupe_sections *sections = graph->sections;
    json_t *root = json_object(), *inner;

    if (graph->seed != 0 && graph->seed <= INT64_MAX)
        (void)json_object_set_new(root, "seed", json_integer((json_int_t)graph->seed));
    if (graph->library != NULL)
        (void)json_object_set_new(root, "library", library_to_json(graph->library));
    if (sections == NULL)
        return root;
    /* A graph in which the section was carried out has the node that it makes. */
    if (sections->train != NULL && troupe_graph_find(graph, "train") < 0)
        (void)json_object_set_new(root, "train", train_to_json(sections->train));
    if (sections->loop_count > 0) {
        inner = json_object();
        for (int i = 0; i < sections->loop_count; i++)
            (void)json_object_set_new(inner, sections->loops[i].name,
                                      loop_to_json(&sections->loops[i]));
        (void)json_object_set_new(root, "loop", inner);
    }
    if (sections->job_count > 0) {
        inner = json_object();
        for (int i = 0; i < sections->job_count; i++) {
            json_t *ranks = json_array();

            for (int r = 0; r < sections->jobs[i].rank_count; r++)
                (void)json_array_append_new(ranks, json_integer(sections->jobs[i].ranks[r]));
            (void)json_object_set_new(inner, sections->jobs[i].name, ranks);
        }
        (void)json_object_set_new(root, "cluster", inner);
    }
    if (sections->strategy != NULL)
        (void)json_object_set_new(root, "strategy", json_string(sections->strategy));
    return root;
}

/* Adds a value on one line and gives it back; false when there is no memory. */
static bool text_add_json(struct troupe_text *out, json_t *json)
{
    char *text = json != NULL ? json_dumps(json, DUMP_FLAGS) : NULL;

    json_decref(json);
    if (text == NULL)
        return false;
    troupe_text_add(out, text);
    free(text);
    return true;
}

enum troupe_status troupe_graph_print(const struct troupe_graph *graph, struct troupe_text *out)
{
    json_t *sections = sections_to_json(graph), *value;
    bool right = sections != NULL;
    const char *key;

    troupe_text_add(out, "{\"node\": [");
    for (int i = 0; i < graph->node_count && right; i++) {
        troupe_text_add(out, i == 0 ? "\n  " : ",\n  ");
        right = text_add_json(out, node_to_json(graph, &graph->nodes[i]));
    }
    troupe_text_add(out, "]");
    json_object_foreach(sections, key, value)
    {
        troupe_text_addf(out, ",\n \"%s\": ", key);
        right &= text_add_json(out, json_incref(value));
    }
    troupe_text_add(out, "}\n");
    json_decref(sections);
    if (!right || out->failed)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the graph's JSON");
    return TROUPE_OK;
}
