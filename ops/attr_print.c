/* Attribute values as friendly JSON. Invariant: what is printed is valid JSON, but for the "..."
 * string that stands for the rest of a large tensor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/attr.h"
#include "ops/cast.h"
#include "ops/string.h"
#include "ops/tensor_list.h"

/* Elements of a tensor that are printed. */
#define PRINT_ELEMENTS 16

static void print_text(const char *bytes, size_t count, struct troupe_text *out)
{
    troupe_text_add(out, "\"");
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte == '"' || byte == '\\')
            troupe_text_addf(out, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            troupe_text_addf(out, "\\u%04x", byte);
        else
            troupe_text_add_bytes(out, &bytes[i], 1);
    }
    troupe_text_add(out, "\"");
}

/* The shortest digits that read back as the same number; a float's when `single`. */
static void print_number(double value, bool single, struct troupe_text *out)
{
    char digits[40];
    if (!isfinite(value)) {
        troupe_text_add(out, isnan(value) ? "\"NaN\""
                             : value > 0  ? "\"Infinity\""
                                          : "\"-Infinity\"");
        return;
    }
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*g", precision, value);
        double back = strtod(digits, NULL);
        if (back == value || (single && (float)back == (float)value))
            break;
    }
    troupe_text_add(out, digits);
    if (!strpbrk(digits, ".e"))
        troupe_text_add(out, ".0");
}

static void print_shape(const struct troupe_shape *shape, struct troupe_text *out)
{
    if (shape->rank < 0) {
        troupe_text_add(out, "null");
        return;
    }
    troupe_text_add(out, "[");
    for (int i = 0; i < shape->rank; i++) {
        troupe_text_add(out, i > 0 ? ", " : "");
        if (shape->dims[i] < 0)
            troupe_text_add(out, "null");
        else
            troupe_text_addf(out, "%lld", (long long)shape->dims[i]);
    }
    troupe_text_add(out, "]");
}

static void print_list(const struct troupe_tensor_list *list, struct troupe_text *out)
{
    if (list)
        troupe_text_addf(out, "\"list of %lld %s\"", (long long)list->length,
                         troupe_dtype_name(list->dtype));
    else
        troupe_text_add(out, "null");
}

static void print_element(const struct troupe_tensor *tensor, int64_t i, struct troupe_text *out)
{
    const void *data = troupe_tensor_data(tensor);
    switch (troupe_tensor_dtype(tensor)) {
    case TROUPE_FLOAT32:
        print_number((double)((const float *)data)[i], true, out);
        break;
    case TROUPE_FLOAT64:
        print_number(((const double *)data)[i], false, out);
        break;
    case TROUPE_FLOAT16:
        print_number((double)troupe_float16_to_float(((const uint16_t *)data)[i]), true, out);
        break;
    case TROUPE_BFLOAT16:
        print_number((double)troupe_bfloat16_to_float(((const uint16_t *)data)[i]), true, out);
        break;
    case TROUPE_INT32:
        troupe_text_addf(out, "%d", (int)((const int32_t *)data)[i]);
        break;
    case TROUPE_INT64:
        troupe_text_addf(out, "%lld", (long long)((const int64_t *)data)[i]);
        break;
    case TROUPE_UINT8:
        troupe_text_addf(out, "%u", (unsigned)((const uint8_t *)data)[i]);
        break;
    case TROUPE_BOOL:
        troupe_text_add(out, ((const bool *)data)[i] ? "true" : "false");
        break;
    case TROUPE_STRING: {
        const struct troupe_string *string = ((struct troupe_string *const *)data)[i];
        print_text(troupe_string_data(string), troupe_string_length(string), out);
        break;
    }
    case TROUPE_VARIANT:
        print_list(troupe_tensor_list_of(((struct troupe_payload *const *)data)[i]), out);
        break;
    case TROUPE_RESOURCE:
        troupe_text_add(out, "\"resource\"");
        break;
    default:
        troupe_text_add(out, "null");
        break;
    }
}

/* Prints the nested list from dimension `axis` on; `*next` is the next element. */
static void print_nested(const struct troupe_tensor *tensor, int axis, int64_t *next,
                         struct troupe_text *out)
{
    if (axis == troupe_tensor_rank(tensor)) {
        print_element(tensor, (*next)++, out);
        return;
    }
    troupe_text_add(out, "[");
    /* An empty tensor prints its sizes as far as they hold something. */
    for (int64_t i = 0; i < troupe_tensor_dims(tensor)[axis]; i++) {
        troupe_text_add(out, i > 0 ? ", " : "");
        if (*next >= PRINT_ELEMENTS || (troupe_tensor_elements(tensor) == 0 && i > 0)) {
            troupe_text_add(out, "\"...\"");
            break;
        }
        print_nested(tensor, axis + 1, next, out);
    }
    troupe_text_add(out, "]");
}

static void print_item(const struct troupe_attr *list, size_t i, struct troupe_text *out)
{
    switch (list->kind) {
    case TROUPE_ATTR_LIST_STRING:
        print_text(list->value.list_s[i], strlen(list->value.list_s[i]), out);
        break;
    case TROUPE_ATTR_LIST_INT:
        troupe_text_addf(out, "%lld", (long long)list->value.list_i[i]);
        break;
    case TROUPE_ATTR_LIST_FLOAT:
        print_number(list->value.list_f[i], false, out);
        break;
    case TROUPE_ATTR_LIST_BOOL:
        troupe_text_add(out, list->value.list_b[i] ? "true" : "false");
        break;
    case TROUPE_ATTR_LIST_TYPE:
        troupe_text_addf(out, "\"%s\"", troupe_dtype_name(list->value.list_type[i]));
        break;
    default:
        print_shape(&list->value.list_shape[i], out);
        break;
    }
}

void troupe_attr_print(const struct troupe_attr *value, struct troupe_text *out)
{
    int64_t next = 0;
    switch (value->kind) {
    case TROUPE_ATTR_NONE:
        troupe_text_add(out, "null");
        break;
    case TROUPE_ATTR_STRING:
    case TROUPE_ATTR_FUNC:
        print_text(value->value.s, value->count, out);
        break;
    case TROUPE_ATTR_INT:
        troupe_text_addf(out, "%lld", (long long)value->value.i);
        break;
    case TROUPE_ATTR_FLOAT:
        print_number(value->value.f, false, out);
        break;
    case TROUPE_ATTR_BOOL:
        troupe_text_add(out, value->value.b ? "true" : "false");
        break;
    case TROUPE_ATTR_TYPE:
        troupe_text_addf(out, "\"%s\"", troupe_dtype_name(value->value.type));
        break;
    case TROUPE_ATTR_SHAPE:
        print_shape(&value->value.shape, out);
        break;
    case TROUPE_ATTR_TENSOR:
        if (value->value.tensor)
            print_nested(value->value.tensor, 0, &next, out);
        else
            troupe_text_add(out, "null");
        break;
    default:
        troupe_text_add(out, "[");
        for (size_t i = 0; i < value->count; i++) {
            troupe_text_add(out, i > 0 ? ", " : "");
            print_item(value, i, out);
        }
        troupe_text_add(out, "]");
        break;
    }
}
