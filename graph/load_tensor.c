/* GraphDef's TensorProto and TensorShapeProto in protobuf's JSON. Invariant: what the shape says
 * is checked against what the values say before memory is written, and a shape that asks for more
 * than protobuf could carry is refused before memory is asked for. */
#include <stdlib.h>
#include <string.h>

#include "graph/literal.h"
#include "graph/load.h"
#include "graph/load_base64.h"
#include "ops/cast.h"
#include "ops/string.h"

/* Protobuf's own limit of a message is 2 GiB; a splat of one value may not exceed it either. A
 * fuzzer would find nothing but that limit. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define TENSOR_BYTES_MAX (INT64_C(1) << 20)
#else
#define TENSOR_BYTES_MAX (INT64_C(1) << 31)
#endif

enum troupe_status troupe_int_from_proto(const json_t *json, int64_t *out)
{
    char text[TROUPE_JSON_TEXT_MAX];
    const char *digits = json_string_value(json);

    if (json_is_integer(json)) {
        *out = json_integer_value(json);
        return TROUPE_OK;
    }
    /* json_loads reads the digits, so that their range is checked in one place. */
    if (digits != NULL && digits[0] != '\0' && strspn(digits, "-0123456789") == strlen(digits)) {
        json_t *number = json_loads(digits, JSON_DECODE_ANY, NULL);

        if (json_is_integer(number)) {
            *out = json_integer_value(number);
            json_decref(number);
            return TROUPE_OK;
        }
        json_decref(number);
    }
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants an int, got %s",
                              troupe_json_describe(json, text));
}

enum troupe_status troupe_dtype_from_json(const json_t *json, enum troupe_dtype *out)
{
    char text[TROUPE_JSON_TEXT_MAX];

    if (json_is_string(json))
        return troupe_dtype_parse(json_string_value(json), out);
    if (json_is_integer(json) && json_integer_value(json) > 0 &&
        json_integer_value(json) < TROUPE_DTYPE_COUNT) {
        enum troupe_dtype dtype = (enum troupe_dtype)json_integer_value(json);

        if (troupe_dtype_size(dtype) > 0) {
            *out = dtype;
            return TROUPE_OK;
        }
    }
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "wants a dtype such as \"float32\" or \"DT_FLOAT\", got %s",
                              troupe_json_describe(json, text));
}

/* A field under its JSON name or its name in the .proto file, as protobuf's parsers do. */
static json_t *field(const json_t *object, const char *camel, const char *snake)
{
    json_t *value = json_object_get(object, camel);

    return value != NULL ? value : json_object_get(object, snake);
}

static enum troupe_status dim_from_proto(const json_t *json, int64_t *out)
{
    char text[TROUPE_JSON_TEXT_MAX];
    const json_t *size = json_object_get(json, "size");
    int64_t value = 0; /* protobuf leaves out what is zero */
    enum troupe_status status;

    if (!json_is_object(json))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants dims such as {\"size\": \"10\"}, got %s",
                                  troupe_json_describe(json, text));
    if (size != NULL) {
        status = troupe_int_from_proto(size, &value);
        if (status != TROUPE_OK)
            return status;
    }
    if (value < -1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants a size from 0, or -1 for unknown, got %lld",
                                  (long long)value);
    *out = value;
    return TROUPE_OK;
}

enum troupe_status troupe_shape_from_proto(const json_t *json, struct troupe_shape *out)
{
    const json_t *dims = json_object_get(json, "dim");
    struct troupe_shape shape = troupe_shape_scalar();
    char text[TROUPE_JSON_TEXT_MAX];

    if (!json_is_object(json) || (dims != NULL && !json_is_array(dims)))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants a shape such as {\"dim\": [{\"size\": \"10\"}]}, got %s",
                                  troupe_json_describe(json, text));
    if (json_is_true(field(json, "unknownRank", "unknown_rank"))) {
        *out = troupe_shape_unknown();
        return TROUPE_OK;
    }
    if (json_array_size(dims) > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a shape has at most %d dimensions, got %zu", TROUPE_RANK_MAX,
                                  json_array_size(dims));
    for (size_t i = 0; i < json_array_size(dims); i++) {
        enum troupe_status status = dim_from_proto(json_array_get(dims, i), &shape.dims[i]);

        if (status != TROUPE_OK)
            return status;
    }
    shape.rank = (int)json_array_size(dims);
    *out = shape;
    return TROUPE_OK;
}

/* The repeated field that holds the values of a dtype. */
static const json_t *value_list(const json_t *json, enum troupe_dtype dtype)
{
    switch (dtype) {
    case TROUPE_FLOAT32:
        return field(json, "floatVal", "float_val");
    case TROUPE_FLOAT64:
        return field(json, "doubleVal", "double_val");
    case TROUPE_INT32:
    case TROUPE_UINT8:
        return field(json, "intVal", "int_val");
    case TROUPE_INT64:
        return field(json, "int64Val", "int64_val");
    case TROUPE_BOOL:
        return field(json, "boolVal", "bool_val");
    case TROUPE_FLOAT16:
    case TROUPE_BFLOAT16:
        return field(json, "halfVal", "half_val");
    case TROUPE_STRING:
        return field(json, "stringVal", "string_val");
    default:
        return NULL;
    }
}

static enum troupe_status store_integer(const json_t *json, enum troupe_dtype dtype, void *data,
                                        int64_t at)
{
    int64_t value, low = INT64_MIN, high = INT64_MAX;
    enum troupe_status status = troupe_int_from_proto(json, &value);

    if (status != TROUPE_OK)
        return status;
    if (dtype == TROUPE_INT32) {
        low = INT32_MIN;
        high = INT32_MAX;
    } else if (dtype != TROUPE_INT64) {
        low = 0;
        high = dtype == TROUPE_UINT8 ? UINT8_MAX : UINT16_MAX;
    }
    if (value < low || value > high)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%lld does not fit %s", (long long)value,
                                  troupe_dtype_name(dtype));
    if (dtype == TROUPE_INT64)
        ((int64_t *)data)[at] = value;
    else if (dtype == TROUPE_INT32)
        ((int32_t *)data)[at] = (int32_t)value;
    else if (dtype == TROUPE_UINT8)
        ((uint8_t *)data)[at] = (uint8_t)value;
    else
        ((uint16_t *)data)[at] = (uint16_t)value; /* halfVal holds the bits */
    return TROUPE_OK;
}

static enum troupe_status store_string(const json_t *json, void *data, int64_t at)
{
    char text[TROUPE_JSON_TEXT_MAX], *bytes;
    size_t count;
    enum troupe_status status;

    if (!json_is_string(json))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants a string in base64, got %s",
                                  troupe_json_describe(json, text));
    status =
        troupe_base64_decode(json_string_value(json), json_string_length(json), &bytes, &count);
    if (status != TROUPE_OK)
        return status;
    status = troupe_string_create(bytes, count, (struct troupe_string **)data + at);
    free(bytes);
    return status;
}

static enum troupe_status store_value(const json_t *json, enum troupe_dtype dtype, void *data,
                                      int64_t at)
{
    char text[TROUPE_JSON_TEXT_MAX];
    double number = 0;

    if (dtype == TROUPE_STRING)
        return store_string(json, data, at);
    if (dtype == TROUPE_BOOL && json_is_boolean(json)) {
        ((uint8_t *)data)[at] = json_is_true(json) ? 1 : 0;
        return TROUPE_OK;
    }
    if (dtype == TROUPE_FLOAT32 || dtype == TROUPE_FLOAT64) {
        if (!troupe_json_number(json, &number))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants a number, got %s",
                                      troupe_json_describe(json, text));
        if (dtype == TROUPE_FLOAT32)
            ((float *)data)[at] = (float)number;
        else
            ((double *)data)[at] = number;
        return TROUPE_OK;
    }
    if (dtype == TROUPE_BOOL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants a bool, got %s",
                                  troupe_json_describe(json, text));
    return store_integer(json, dtype, data, at);
}

/* Fewer values than elements: the last one fills the rest; none at all: zeros. */
static enum troupe_status store_list(const json_t *list, struct troupe_tensor *tensor)
{
    enum troupe_dtype dtype = troupe_tensor_dtype(tensor);
    unsigned char *data = troupe_tensor_data_mutable(tensor);
    int64_t elements = troupe_tensor_elements(tensor);
    int64_t count = (int64_t)json_array_size(list);
    size_t size = troupe_dtype_size(dtype);

    if (list != NULL && !json_is_array(list))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants the tensor's values in a list");
    if (count > elements)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "the tensor has %lld elements, but %lld values",
                                  (long long)elements, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        enum troupe_status status = store_value(json_array_get(list, (size_t)i), dtype, data, i);

        if (status != TROUPE_OK)
            return status;
    }
    if (count == 0 && dtype != TROUPE_STRING && elements > 0) {
        memset(data, 0, (size_t)elements * size);
        return TROUPE_OK;
    }
    for (int64_t i = count; count > 0 && i < elements; i++) {
        if (dtype == TROUPE_STRING)
            ((struct troupe_string **)(void *)data)[i] =
                troupe_string_ref(((struct troupe_string **)(void *)data)[count - 1]);
        else
            memcpy(data + (size_t)i * size, data + (size_t)(count - 1) * size, size);
    }
    return TROUPE_OK;
}

static enum troupe_status store_content(const json_t *content, struct troupe_tensor *tensor)
{
    char *bytes;
    size_t count;
    enum troupe_status status;

    if (!json_is_string(content) || troupe_tensor_dtype(tensor) == TROUPE_STRING)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants tensorContent in base64, of a dtype that is no string");
    status = troupe_base64_decode(json_string_value(content), json_string_length(content), &bytes,
                                  &count);
    if (status != TROUPE_OK)
        return status;
    if (count != troupe_tensor_bytes(tensor))
        status = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                    "tensorContent wants %zu bytes for its shape, has %zu",
                                    troupe_tensor_bytes(tensor), count);
    else if (count > 0)
        memcpy(troupe_tensor_data_mutable(tensor), bytes, count);
    free(bytes);
    return status;
}

/* What dtype and shape say, checked. */
static enum troupe_status header_from_proto(json_t *json, enum troupe_dtype *dtype,
                                            struct troupe_shape *shape)
{
    static const char *const keys[] = {
        "dtype",         "tensorShape", "tensor_shape", "versionNumber", "version_number",
        "floatVal",      "float_val",   "doubleVal",    "double_val",    "intVal",
        "int_val",       "int64Val",    "int64_val",    "boolVal",       "bool_val",
        "halfVal",       "half_val",    "stringVal",    "string_val",    "tensorContent",
        "tensor_content"};
    const json_t *json_shape = field(json, "tensorShape", "tensor_shape");
    char suggestion[TROUPE_SUGGESTION_MAX];
    enum troupe_status status;
    const char *key;
    json_t *value;

    json_object_foreach(json, key, value)
    {
        size_t i = 0;

        while (i < sizeof(keys) / sizeof(keys[0]) && strcmp(keys[i], key) != 0)
            i++;
        if (i == sizeof(keys) / sizeof(keys[0]))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor has no key \"%s\"%s", key,
                                      troupe_loader_suggest(key, keys, i, suggestion));
    }
    if (json_object_get(json, "dtype") == NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor wants a \"dtype\"");
    status = troupe_dtype_from_json(json_object_get(json, "dtype"), dtype);
    if (status != TROUPE_OK)
        return status;
    *shape = troupe_shape_scalar();
    return json_shape != NULL ? troupe_shape_from_proto(json_shape, shape) : TROUPE_OK;
}

enum troupe_status troupe_tensor_from_proto(json_t *json, struct troupe_tensor **out)
{
    const json_t *content = field(json, "tensorContent", "tensor_content");
    char text[TROUPE_JSON_TEXT_MAX];
    struct troupe_tensor *tensor;
    struct troupe_shape shape;
    enum troupe_dtype dtype;
    enum troupe_status status;
    int64_t elements = 1;

    if (!json_is_object(json))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants {\"dtype\": ..., \"tensorShape\": ...}, got %s",
                                  troupe_json_describe(json, text));
    status = header_from_proto(json, &dtype, &shape);
    if (status != TROUPE_OK)
        return status;
    if (dtype == TROUPE_RESOURCE || dtype == TROUPE_VARIANT)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "no tensor in a graph has dtype %s",
                                  troupe_dtype_name(dtype));
    if (!troupe_shape_is_known(&shape))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor's shape has to be known");
    for (int i = 0; i < shape.rank; i++) {
        if (__builtin_mul_overflow(elements, shape.dims[i], &elements) ||
            elements > TENSOR_BYTES_MAX / (int64_t)troupe_dtype_size(dtype))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "a tensor in a graph holds at most 2 GiB");
    }
    status = troupe_tensor_create(dtype, shape.rank, shape.dims, &tensor);
    if (status != TROUPE_OK)
        return status;
    status = content != NULL && json_string_length(content) > 0
                 ? store_content(content, tensor)
                 : store_list(value_list(json, dtype), tensor);
    if (status != TROUPE_OK) {
        troupe_tensor_unref(tensor);
        return status;
    }
    *out = tensor;
    return TROUPE_OK;
}
