/* Attr values from JSON, in the friendly form and in GraphDef's. Invariant: which form a value has
 * is decided by its outside alone (an object with exactly one key of AttrValue is GraphDef's), and
 * the kind that the schema wants decides the rest. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/literal.h"
#include "graph/load.h"
#include "graph/load_base64.h"

/* AttrValue's keys in the protobuf form, by kind. */
static const char *kind_key(enum troupe_attr_kind kind)
{
    switch (kind) {
    case TROUPE_ATTR_STRING:
    case TROUPE_ATTR_LIST_STRING:
        return "s";
    case TROUPE_ATTR_INT:
    case TROUPE_ATTR_LIST_INT:
        return "i";
    case TROUPE_ATTR_FLOAT:
    case TROUPE_ATTR_LIST_FLOAT:
        return "f";
    case TROUPE_ATTR_BOOL:
    case TROUPE_ATTR_LIST_BOOL:
        return "b";
    case TROUPE_ATTR_TYPE:
    case TROUPE_ATTR_LIST_TYPE:
        return "type";
    case TROUPE_ATTR_SHAPE:
    case TROUPE_ATTR_LIST_SHAPE:
        return "shape";
    case TROUPE_ATTR_TENSOR:
        return "tensor";
    case TROUPE_ATTR_FUNC:
        return "func";
    default:
        return NULL;
    }
}

static enum troupe_attr_kind item_kind(enum troupe_attr_kind kind)
{
    switch (kind) {
    case TROUPE_ATTR_LIST_STRING:
        return TROUPE_ATTR_STRING;
    case TROUPE_ATTR_LIST_INT:
        return TROUPE_ATTR_INT;
    case TROUPE_ATTR_LIST_FLOAT:
        return TROUPE_ATTR_FLOAT;
    case TROUPE_ATTR_LIST_BOOL:
        return TROUPE_ATTR_BOOL;
    case TROUPE_ATTR_LIST_TYPE:
        return TROUPE_ATTR_TYPE;
    case TROUPE_ATTR_LIST_SHAPE:
        return TROUPE_ATTR_SHAPE;
    default:
        return TROUPE_ATTR_NONE;
    }
}

static bool is_attr_key(const char *key)
{
    static const char *const keys[] = {"s",     "i",      "f",    "b",    "type",
                                       "shape", "tensor", "list", "func", "placeholder"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(keys[i], key) == 0)
            return true;
    }
    return false;
}

/* "wants a bool, got "yes"". */
static enum troupe_status kind_misfit(enum troupe_attr_kind kind, const json_t *json)
{
    static const char *const wants[TROUPE_ATTR_KIND_COUNT] = {
        [TROUPE_ATTR_STRING] = "a string",
        [TROUPE_ATTR_INT] = "an int",
        [TROUPE_ATTR_FLOAT] = "a float",
        [TROUPE_ATTR_BOOL] = "a bool",
        [TROUPE_ATTR_TYPE] = "a dtype such as \"float32\" or \"DT_FLOAT\"",
        [TROUPE_ATTR_SHAPE] = "a shape such as [null, 784]",
        [TROUPE_ATTR_TENSOR] = "a tensor, that is numbers, bools or strings in nested lists",
        [TROUPE_ATTR_FUNC] = "the name of a function",
        [TROUPE_ATTR_LIST_STRING] = "a list of strings",
        [TROUPE_ATTR_LIST_INT] = "a list of ints",
        [TROUPE_ATTR_LIST_FLOAT] = "a list of floats",
        [TROUPE_ATTR_LIST_BOOL] = "a list of bools",
        [TROUPE_ATTR_LIST_TYPE] = "a list of dtypes",
        [TROUPE_ATTR_LIST_SHAPE] = "a list of shapes",
    };
    char text[TROUPE_JSON_TEXT_MAX];

    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants %s, got %s",
                              wants[kind] != NULL ? wants[kind] : "another kind",
                              troupe_json_describe(json, text));
}

static enum troupe_status string_copy(const char *bytes, size_t count, struct troupe_attr *out)
{
    char *copy = troupe_calloc(count + 1, 1);

    if (copy == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a string");
    memcpy(copy, bytes, count);
    *out = (struct troupe_attr){.kind = TROUPE_ATTR_STRING, .count = count, .value.s = copy};
    return TROUPE_OK;
}

static enum troupe_status string_from_json(const json_t *json, bool proto, struct troupe_attr *out)
{
    char *bytes;
    size_t count;
    enum troupe_status status;

    if (!json_is_string(json))
        return kind_misfit(TROUPE_ATTR_STRING, json);
    if (!proto)
        return string_copy(json_string_value(json), json_string_length(json), out);
    status =
        troupe_base64_decode(json_string_value(json), json_string_length(json), &bytes, &count);
    if (status != TROUPE_OK)
        return status;
    *out = (struct troupe_attr){.kind = TROUPE_ATTR_STRING, .count = count, .value.s = bytes};
    return TROUPE_OK;
}

static enum troupe_status shape_from_json(const json_t *json, struct troupe_shape *out)
{
    struct troupe_shape shape = troupe_shape_scalar();

    if (json_is_null(json)) { /* nothing is known */
        *out = troupe_shape_unknown();
        return TROUPE_OK;
    }
    if (!json_is_array(json))
        return kind_misfit(TROUPE_ATTR_SHAPE, json);
    if (json_array_size(json) > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a shape has at most %d dimensions, got %zu", TROUPE_RANK_MAX,
                                  json_array_size(json));
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *size = json_array_get(json, i);

        if (json_is_null(size) || (json_is_integer(size) && json_integer_value(size) == -1))
            shape.dims[i] = TROUPE_DIM_UNKNOWN;
        else if (json_is_integer(size) && json_integer_value(size) >= 0)
            shape.dims[i] = json_integer_value(size);
        else
            return kind_misfit(TROUPE_ATTR_SHAPE, json);
    }
    shape.rank = (int)json_array_size(json);
    *out = shape;
    return TROUPE_OK;
}

static enum troupe_status func_from_json(const json_t *json, bool proto, struct troupe_attr *out)
{
    const json_t *name = proto ? json_object_get(json, "name") : json;
    enum troupe_status status;

    if (!json_is_string(name))
        return kind_misfit(TROUPE_ATTR_FUNC, json);
    status = string_copy(json_string_value(name), json_string_length(name), out);
    if (status == TROUPE_OK)
        out->kind = TROUPE_ATTR_FUNC;
    return status;
}

/* Like troupe_int_from_proto in the protobuf form; a plain number in the friendly one. */
static enum troupe_status int_from_json(const json_t *json, bool proto, struct troupe_attr *out)
{
    int64_t value;

    if (!json_is_integer(json) && (!proto || troupe_int_from_proto(json, &value) != TROUPE_OK))
        return kind_misfit(TROUPE_ATTR_INT, json);
    if (json_is_integer(json))
        value = json_integer_value(json);
    *out = troupe_attr_int(value);
    return TROUPE_OK;
}

static enum troupe_status dtype_attr_from_json(const json_t *json, bool proto,
                                               struct troupe_attr *out)
{
    enum troupe_dtype dtype;
    enum troupe_status status;

    if (!json_is_string(json) && !(proto && json_is_integer(json)))
        return kind_misfit(TROUPE_ATTR_TYPE, json);
    status = troupe_dtype_from_json(json, &dtype);
    if (status == TROUPE_OK)
        *out = troupe_attr_type(dtype);
    return status;
}

static enum troupe_status tensor_attr_from_json(json_t *json, enum troupe_dtype hint, bool proto,
                                                struct troupe_attr *out)
{
    struct troupe_tensor *tensor;
    enum troupe_status status;

    if (json_is_null(json) || (json_is_object(json) && !proto))
        return kind_misfit(TROUPE_ATTR_TENSOR, json);
    status = proto ? troupe_tensor_from_proto(json, &tensor)
                   : troupe_tensor_from_json(json, hint, &tensor);
    if (status != TROUPE_OK)
        return status;
    *out = troupe_attr_tensor(tensor);
    troupe_tensor_unref(tensor);
    return TROUPE_OK;
}

/* One value that is no list. */
static enum troupe_status item_from_json(enum troupe_attr_kind kind, enum troupe_dtype hint,
                                         json_t *json, bool proto, struct troupe_attr *out)
{
    struct troupe_shape shape;
    enum troupe_status status;
    double number;

    switch (kind) {
    case TROUPE_ATTR_STRING:
        return string_from_json(json, proto, out);
    case TROUPE_ATTR_INT:
        return int_from_json(json, proto, out);
    case TROUPE_ATTR_FLOAT:
        if (!troupe_json_number(json, &number))
            return kind_misfit(kind, json);
        *out = troupe_attr_float(number);
        return TROUPE_OK;
    case TROUPE_ATTR_BOOL:
        if (!json_is_boolean(json))
            return kind_misfit(kind, json);
        *out = troupe_attr_bool(json_is_true(json));
        return TROUPE_OK;
    case TROUPE_ATTR_TYPE:
        return dtype_attr_from_json(json, proto, out);
    case TROUPE_ATTR_SHAPE:
        status = proto ? troupe_shape_from_proto(json, &shape) : shape_from_json(json, &shape);
        if (status == TROUPE_OK)
            *out = troupe_attr_shape(shape);
        return status;
    case TROUPE_ATTR_TENSOR:
        return tensor_attr_from_json(json, hint, proto, out);
    case TROUPE_ATTR_FUNC:
        return func_from_json(json, proto, out);
    default:
        return kind_misfit(kind, json);
    }
}

/* Room for `count` items of a list; at least one, so that NULL means no memory. */
static enum troupe_status list_create(enum troupe_attr_kind kind, size_t count,
                                      struct troupe_attr *out)
{
    static const size_t sizes[TROUPE_ATTR_KIND_COUNT] = {
        [TROUPE_ATTR_LIST_STRING] = sizeof(char *),
        [TROUPE_ATTR_LIST_INT] = sizeof(int64_t),
        [TROUPE_ATTR_LIST_FLOAT] = sizeof(double),
        [TROUPE_ATTR_LIST_BOOL] = sizeof(bool),
        [TROUPE_ATTR_LIST_TYPE] = sizeof(enum troupe_dtype),
        [TROUPE_ATTR_LIST_SHAPE] = sizeof(struct troupe_shape),
    };
    void *items = troupe_calloc(count > 0 ? count : 1, sizes[kind]);

    if (items == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a list");
    *out = (struct troupe_attr){.kind = kind, .count = 0};
    switch (kind) {
    case TROUPE_ATTR_LIST_STRING:
        out->value.list_s = items;
        break;
    case TROUPE_ATTR_LIST_INT:
        out->value.list_i = items;
        break;
    case TROUPE_ATTR_LIST_FLOAT:
        out->value.list_f = items;
        break;
    case TROUPE_ATTR_LIST_BOOL:
        out->value.list_b = items;
        break;
    case TROUPE_ATTR_LIST_TYPE:
        out->value.list_type = items;
        break;
    default:
        out->value.list_shape = items;
        break;
    }
    return TROUPE_OK;
}

/* Moves one item to the end of a list that has room. */
static void list_append(struct troupe_attr *list, const struct troupe_attr *item)
{
    size_t at = list->count++;

    switch (list->kind) {
    case TROUPE_ATTR_LIST_STRING:
        list->value.list_s[at] = item->value.s;
        break;
    case TROUPE_ATTR_LIST_INT:
        list->value.list_i[at] = item->value.i;
        break;
    case TROUPE_ATTR_LIST_FLOAT:
        list->value.list_f[at] = item->value.f;
        break;
    case TROUPE_ATTR_LIST_BOOL:
        list->value.list_b[at] = item->value.b;
        break;
    case TROUPE_ATTR_LIST_TYPE:
        list->value.list_type[at] = item->value.type;
        break;
    default:
        list->value.list_shape[at] = item->value.shape;
        break;
    }
}

static enum troupe_status list_from_json(enum troupe_attr_kind kind, json_t *json, bool proto,
                                         struct troupe_attr *out)
{
    struct troupe_attr list, item;
    enum troupe_status status;

    if (!json_is_array(json))
        return kind_misfit(kind, json);
    status = list_create(kind, json_array_size(json), &list);
    if (status != TROUPE_OK)
        return status;
    for (size_t i = 0; i < json_array_size(json); i++) {
        status = item_from_json(item_kind(kind), TROUPE_DTYPE_INVALID, json_array_get(json, i),
                                proto, &item);
        if (status != TROUPE_OK) {
            troupe_attr_fini(&list);
            return troupe_status_prefix(status, "item %zu ", i);
        }
        list_append(&list, &item);
    }
    *out = list;
    return TROUPE_OK;
}

/* [{"name": "f"}, ...], a list of functions: their names. */
static enum troupe_status function_names(const json_t *list, struct troupe_attr *out)
{
    struct troupe_attr names, name;
    enum troupe_status status = list_create(TROUPE_ATTR_LIST_STRING, json_array_size(list), &names);

    for (size_t i = 0; i < json_array_size(list) && status == TROUPE_OK; i++) {
        status = func_from_json(json_array_get(list, i), true, &name);
        if (status != TROUPE_OK)
            troupe_attr_fini(&names);
        else
            list_append(&names, &name);
    }
    if (status == TROUPE_OK)
        *out = names;
    return status;
}

/* {"list": {"i": [...]}}; an empty list may leave its key out. */
static enum troupe_status proto_list(enum troupe_attr_kind kind, json_t *list,
                                     struct troupe_attr *out)
{
    json_t *items = json_object_get(list, kind_key(kind));

    if (kind == TROUPE_ATTR_LIST_STRING && json_object_get(list, "func") != NULL)
        return function_names(json_object_get(list, "func"), out);

    if (json_is_object(list) && json_object_size(list) == 0)
        return list_create(kind, 0, out);
    if (items == NULL || json_object_size(list) != 1)
        return kind_misfit(kind, list);
    return list_from_json(kind, items, true, out);
}

static enum troupe_status proto_from_json(enum troupe_attr_kind kind, json_t *json,
                                          struct troupe_attr *out)
{
    json_t *value = json_object_get(json, kind_key(kind));

    if (json_object_get(json, "placeholder") != NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "is a placeholder, which only a function's body may have");
    if (item_kind(kind) != TROUPE_ATTR_NONE) {
        value = json_object_get(json, "list");
        return value != NULL ? proto_list(kind, value, out) : kind_misfit(kind, json);
    }
    if (value == NULL)
        return kind_misfit(kind, json);
    return item_from_json(kind, TROUPE_DTYPE_INVALID, value, true, out);
}

enum troupe_status troupe_attr_from_json(const struct troupe_op_attr *wanted,
                                         enum troupe_dtype hint, json_t *json,
                                         struct troupe_attr *out)
{
    struct troupe_attr value;
    enum troupe_status status;

    if (json_is_object(json) && json_object_size(json) == 1 &&
        is_attr_key(json_object_iter_key(json_object_iter(json))))
        status = proto_from_json(wanted->kind, json, &value);
    else if (item_kind(wanted->kind) != TROUPE_ATTR_NONE)
        status = list_from_json(wanted->kind, json, false, &value);
    else
        status = item_from_json(wanted->kind, hint, json, false, &value);
    if (status != TROUPE_OK)
        return status;
    status = troupe_attr_check(wanted, &value);
    if (status != TROUPE_OK) {
        troupe_attr_fini(&value);
        return status;
    }
    *out = value;
    return TROUPE_OK;
}
