/* Tensors from and to JSON literals. Invariant: dims are measured along the first elements, and
 * every list on the way to a leaf is held to them before anything is written. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/literal.h"
#include "ops/cast.h"
#include "ops/string.h"
#include "ops/tensor_list.h"

const char *troupe_json_describe(const json_t *json, char out[TROUPE_JSON_TEXT_MAX])
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    size_t length = text != NULL ? strlen(text) : 0;

    if (length < TROUPE_JSON_TEXT_MAX) {
        snprintf(out, TROUPE_JSON_TEXT_MAX, "%s", text != NULL ? text : "?");
    } else {
        size_t keep = TROUPE_JSON_TEXT_MAX - 4;

        while (keep > 0 && ((unsigned char)text[keep] & 0xc0) == 0x80)
            keep--; /* not in the middle of a character */
        snprintf(out, TROUPE_JSON_TEXT_MAX, "%.*s...", (int)keep, text);
    }
    free(text);
    return out;
}

bool troupe_json_number(const json_t *json, double *out)
{
    const char *text = json_string_value(json);

    if (json_is_number(json))
        *out = json_number_value(json);
    else if (text != NULL && strcmp(text, "NaN") == 0)
        *out = (double)NAN;
    else if (text != NULL && strcmp(text, "Infinity") == 0)
        *out = (double)INFINITY;
    else if (text != NULL && strcmp(text, "-Infinity") == 0)
        *out = -(double)INFINITY;
    else
        return false;
    return true;
}

/* What the leaves are, to choose a dtype. */
struct literal {
    int rank;
    int64_t dims[TROUPE_RANK_MAX];
    bool has_real, has_integer, has_bool, has_string;
};

static enum troupe_status literal_measure(const json_t *json, struct literal *literal)
{
    literal->rank = 0;
    while (json_is_array(json)) {
        if (literal->rank == TROUPE_RANK_MAX)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "the list is nested too deep: a tensor has at most %d "
                                      "dimensions",
                                      TROUPE_RANK_MAX);
        literal->dims[literal->rank++] = (int64_t)json_array_size(json);
        json = json_array_get(json, 0);
    }
    return TROUPE_OK;
}

static enum troupe_status literal_check(const json_t *json, int level, struct literal *literal)
{
    char text[TROUPE_JSON_TEXT_MAX];
    size_t index;
    json_t *item;

    if (level == literal->rank) {
        literal->has_real |= json_is_real(json);
        literal->has_integer |= json_is_integer(json);
        literal->has_bool |= json_is_boolean(json);
        literal->has_string |= json_is_string(json);
        if (json_is_array(json))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "ragged list: got %s where an element was expected",
                                      troupe_json_describe(json, text));
        if (json_is_null(json) || json_is_object(json))
            return troupe_status_fail(
                TROUPE_INVALID_ARGUMENT,
                "wants numbers, bools or strings, or nested lists of them, got %s",
                troupe_json_describe(json, text));
        return TROUPE_OK;
    }
    if (!json_is_array(json))
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "ragged list: got %s where a list of %lld was expected",
            troupe_json_describe(json, text), (long long)literal->dims[level]);
    if ((int64_t)json_array_size(json) != literal->dims[level])
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "ragged list: got %zu elements where the first has %lld",
                                  json_array_size(json), (long long)literal->dims[level]);
    json_array_foreach(json, index, item)
    {
        enum troupe_status status = literal_check(item, level + 1, literal);

        if (status != TROUPE_OK)
            return status;
    }
    return TROUPE_OK;
}

static enum troupe_dtype literal_dtype(const struct literal *literal)
{
    if (literal->has_real || (literal->has_integer && literal->has_string))
        return TROUPE_FLOAT32;
    if (literal->has_integer)
        return TROUPE_INT32;
    if (literal->has_bool)
        return TROUPE_BOOL;
    return literal->has_string ? TROUPE_STRING : TROUPE_FLOAT32;
}

static enum troupe_status leaf_misfit(const json_t *json, enum troupe_dtype dtype)
{
    char text[TROUPE_JSON_TEXT_MAX];

    troupe_json_describe(json, text);
    if (json_is_number(json) && dtype != TROUPE_BOOL && dtype != TROUPE_STRING &&
        (json_is_integer(json) || troupe_dtype_is_floating(dtype)))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s does not fit %s", text,
                                  troupe_dtype_name(dtype));
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants elements of %s, got %s",
                              troupe_dtype_name(dtype), text);
}

static enum troupe_status leaf_store_floating(const json_t *json, enum troupe_dtype dtype,
                                              void *data, int64_t at)
{
    double value;
    float narrow;

    if (!troupe_json_number(json, &value))
        return leaf_misfit(json, dtype);
    if (dtype == TROUPE_FLOAT64) {
        ((double *)data)[at] = value;
        return TROUPE_OK;
    }
    narrow = (float)value;
    if (isinf(narrow) && !isinf(value))
        return leaf_misfit(json, dtype);
    if (dtype == TROUPE_FLOAT32) {
        ((float *)data)[at] = narrow;
        return TROUPE_OK;
    }
    if (dtype == TROUPE_BFLOAT16) {
        ((uint16_t *)data)[at] = troupe_bfloat16_from_float(narrow);
        return TROUPE_OK;
    }
    ((uint16_t *)data)[at] = troupe_float16_from_float(narrow);
    if (isinf(troupe_float16_to_float(((uint16_t *)data)[at])) && !isinf(value))
        return leaf_misfit(json, dtype);
    return TROUPE_OK;
}

static enum troupe_status leaf_store_integer(const json_t *json, enum troupe_dtype dtype,
                                             void *data, int64_t at)
{
    json_int_t value = json_integer_value(json);

    if (!json_is_integer(json))
        return leaf_misfit(json, dtype);
    if (dtype == TROUPE_INT64) {
        ((int64_t *)data)[at] = value;
    } else if (dtype == TROUPE_INT32) {
        if (value < INT32_MIN || value > INT32_MAX)
            return leaf_misfit(json, dtype);
        ((int32_t *)data)[at] = (int32_t)value;
    } else {
        if (value < 0 || value > UINT8_MAX)
            return leaf_misfit(json, dtype);
        ((uint8_t *)data)[at] = (uint8_t)value;
    }
    return TROUPE_OK;
}

static enum troupe_status leaf_store(const json_t *json, enum troupe_dtype dtype, void *data,
                                     int64_t at)
{
    switch (dtype) {
    case TROUPE_FLOAT32:
    case TROUPE_FLOAT64:
    case TROUPE_FLOAT16:
    case TROUPE_BFLOAT16:
        return leaf_store_floating(json, dtype, data, at);
    case TROUPE_INT32:
    case TROUPE_INT64:
    case TROUPE_UINT8:
        return leaf_store_integer(json, dtype, data, at);
    case TROUPE_BOOL:
        if (!json_is_boolean(json))
            return leaf_misfit(json, dtype);
        ((uint8_t *)data)[at] = json_is_true(json) ? 1 : 0;
        return TROUPE_OK;
    case TROUPE_STRING:
        if (!json_is_string(json))
            return leaf_misfit(json, dtype);
        return troupe_string_create(json_string_value(json), json_string_length(json),
                                    (struct troupe_string **)data + at);
    default:
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "no literal has dtype %s",
                                  troupe_dtype_name(dtype));
    }
}

static enum troupe_status literal_store(const json_t *json, int levels, enum troupe_dtype dtype,
                                        void *data, int64_t *at)
{
    enum troupe_status status = TROUPE_OK;
    size_t index;
    json_t *item;

    if (levels == 0)
        return leaf_store(json, dtype, data, (*at)++);
    json_array_foreach(json, index, item)
    {
        status = literal_store(item, levels - 1, dtype, data, at);
        if (status != TROUPE_OK)
            break;
    }
    return status;
}

enum troupe_status troupe_tensor_from_json(const json_t *json, enum troupe_dtype dtype,
                                           struct troupe_tensor **out)
{
    struct literal literal = {0};
    struct troupe_tensor *tensor;
    enum troupe_status status;
    int64_t at = 0;

    status = literal_measure(json, &literal);
    if (status == TROUPE_OK)
        status = literal_check(json, 0, &literal);
    if (status != TROUPE_OK)
        return status;
    if (dtype == TROUPE_DTYPE_INVALID)
        dtype = literal_dtype(&literal);
    status = troupe_tensor_create(dtype, literal.rank, literal.dims, &tensor);
    if (status != TROUPE_OK)
        return status;
    status = literal_store(json, literal.rank, dtype, troupe_tensor_data_mutable(tensor), &at);
    if (status != TROUPE_OK) {
        troupe_tensor_unref(tensor);
        return status;
    }
    *out = tensor;
    return TROUPE_OK;
}

enum troupe_status troupe_tensor_from_json_text(const char *text, enum troupe_dtype dtype,
                                                struct troupe_tensor **out)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &error);
    enum troupe_status status;

    if (json == NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants a JSON literal such as [[1, 2], [3, 4]], got \"%.40s%s\": "
                                  "%s",
                                  text, strlen(text) > 40 ? "..." : "", error.text);
    status = troupe_tensor_from_json(json, dtype, out);
    json_decref(json);
    return status;
}

static json_t *number_to_json(double value)
{
    if (isnan(value))
        return json_string("NaN");
    if (isinf(value))
        return json_string(value > 0 ? "Infinity" : "-Infinity");
    return json_real(value);
}

/* The double nearest to the shortest decimal that reads back as `value`: 0.1f becomes 0.1. */
static double float_shortest(float value)
{
    char text[32];

    for (int digits = 6; digits < 9; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            return strtod(text, NULL);
    }
    return (double)value;
}

/* A list of tensors, null for one that is not set; null for no list at all. */
static json_t *list_to_json(const struct troupe_tensor_list *list)
{
    json_t *json = list != NULL ? json_array() : json_null();

    for (int64_t i = 0; json != NULL && list != NULL && i < list->length; i++) {
        const struct troupe_tensor *element = list->elements[i];
        json_t *item = element != NULL ? troupe_tensor_to_json(element) : json_null();

        /* Takes the item also when it fails. */
        if (json_array_append_new(json, item) != 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

static json_t *leaf_to_json(const struct troupe_tensor *tensor, int64_t at)
{
    const void *data = troupe_tensor_data(tensor);

    switch (troupe_tensor_dtype(tensor)) {
    case TROUPE_FLOAT32:
        return number_to_json(float_shortest(((const float *)data)[at]));
    case TROUPE_FLOAT64:
        return number_to_json(((const double *)data)[at]);
    case TROUPE_FLOAT16:
        return number_to_json(
            float_shortest(troupe_float16_to_float(((const uint16_t *)data)[at])));
    case TROUPE_BFLOAT16:
        return number_to_json(
            float_shortest(troupe_bfloat16_to_float(((const uint16_t *)data)[at])));
    case TROUPE_INT32:
        return json_integer(((const int32_t *)data)[at]);
    case TROUPE_INT64:
        return json_integer(((const int64_t *)data)[at]);
    case TROUPE_UINT8:
        return json_integer(((const uint8_t *)data)[at]);
    case TROUPE_BOOL:
        return json_boolean(((const uint8_t *)data)[at] != 0);
    case TROUPE_STRING: {
        const struct troupe_string *string = ((struct troupe_string *const *)data)[at];

        json_t *text = json_stringn(troupe_string_data(string), troupe_string_length(string));
        if (text == NULL)
            (void)troupe_status_fail(
                TROUPE_INVALID_ARGUMENT,
                "a string of the tensor is not UTF-8, which JSON text has to be");
        return text;
    }
    case TROUPE_VARIANT:
        return list_to_json(troupe_tensor_list_of(((struct troupe_payload *const *)data)[at]));
    default:
        (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT, "JSON has no form of a %s",
                                 troupe_dtype_name(troupe_tensor_dtype(tensor)));
        return NULL;
    }
}

static json_t *level_to_json(const struct troupe_tensor *tensor, int level, int64_t *at)
{
    json_t *list;

    if (level == troupe_tensor_rank(tensor))
        return leaf_to_json(tensor, (*at)++);
    list = json_array();
    if (list == NULL)
        return NULL;
    for (int64_t i = 0; i < troupe_tensor_dims(tensor)[level]; i++) {
        if (json_array_append_new(list, level_to_json(tensor, level + 1, at)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *troupe_tensor_to_json(const struct troupe_tensor *tensor)
{
    int64_t at = 0;
    json_t *json = level_to_json(tensor, 0, &at);

    /* Counted elements say themselves what JSON cannot show; numbers only want memory. */
    if (json == NULL && !troupe_dtype_is_counted(troupe_tensor_dtype(tensor)))
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a tensor's JSON");
    return json;
}
