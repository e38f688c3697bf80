/* Attribute values. Invariant: a value owns what its kind's pointer points to; a list of no items
 * may have a NULL pointer. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "ops/attr.h"
#include "ops/op.h"
#include "ops/string.h"

static const char *const kind_names[TROUPE_ATTR_KIND_COUNT] = {
    [TROUPE_ATTR_NONE] = "none",
    [TROUPE_ATTR_STRING] = "string",
    [TROUPE_ATTR_INT] = "int",
    [TROUPE_ATTR_FLOAT] = "float",
    [TROUPE_ATTR_BOOL] = "bool",
    [TROUPE_ATTR_TYPE] = "type",
    [TROUPE_ATTR_SHAPE] = "shape",
    [TROUPE_ATTR_TENSOR] = "tensor",
    [TROUPE_ATTR_FUNC] = "func",
    [TROUPE_ATTR_LIST_STRING] = "list(string)",
    [TROUPE_ATTR_LIST_INT] = "list(int)",
    [TROUPE_ATTR_LIST_FLOAT] = "list(float)",
    [TROUPE_ATTR_LIST_BOOL] = "list(bool)",
    [TROUPE_ATTR_LIST_TYPE] = "list(type)",
    [TROUPE_ATTR_LIST_SHAPE] = "list(shape)",
};

const char *troupe_attr_kind_name(enum troupe_attr_kind kind)
{
    return (unsigned)kind < TROUPE_ATTR_KIND_COUNT ? kind_names[kind] : "?";
}

struct troupe_attr troupe_attr_int(int64_t value)
{
    return (struct troupe_attr){.kind = TROUPE_ATTR_INT, .value.i = value};
}

struct troupe_attr troupe_attr_float(double value)
{
    return (struct troupe_attr){.kind = TROUPE_ATTR_FLOAT, .value.f = value};
}

struct troupe_attr troupe_attr_bool(bool value)
{
    return (struct troupe_attr){.kind = TROUPE_ATTR_BOOL, .value.b = value};
}

struct troupe_attr troupe_attr_type(enum troupe_dtype value)
{
    return (struct troupe_attr){.kind = TROUPE_ATTR_TYPE, .value.type = value};
}

struct troupe_attr troupe_attr_shape(struct troupe_shape value)
{
    return (struct troupe_attr){.kind = TROUPE_ATTR_SHAPE, .value.shape = value};
}

struct troupe_attr troupe_attr_tensor(struct troupe_tensor *value)
{
    return (struct troupe_attr){.kind = TROUPE_ATTR_TENSOR,
                                .value.tensor = troupe_tensor_ref(value)};
}

/* A copy of `count` bytes with a zero byte behind them; NULL when there is no memory. */
static char *copy_text(const char *text, size_t count)
{
    char *copy = troupe_calloc(count + 1, 1);
    if (copy && count > 0)
        memcpy(copy, text, count);
    return copy;
}

static struct troupe_attr attr_text(enum troupe_attr_kind kind, const char *text, size_t count)
{
    struct troupe_attr attr = {.kind = kind, .count = count};
    attr.value.s = copy_text(text, count);
    return attr.value.s ? attr : (struct troupe_attr){0};
}

struct troupe_attr troupe_attr_string(const char *value)
{
    return attr_text(TROUPE_ATTR_STRING, value, strlen(value));
}

/* Bytes of a list's item; 0 for a kind that is no list of plain items. */
static size_t item_bytes(enum troupe_attr_kind kind)
{
    switch (kind) {
    case TROUPE_ATTR_LIST_INT:
        return sizeof(int64_t);
    case TROUPE_ATTR_LIST_FLOAT:
        return sizeof(double);
    case TROUPE_ATTR_LIST_BOOL:
        return sizeof(bool);
    case TROUPE_ATTR_LIST_TYPE:
        return sizeof(enum troupe_dtype);
    case TROUPE_ATTR_LIST_SHAPE:
        return sizeof(struct troupe_shape);
    default:
        return 0;
    }
}

/* The items of a list of plain items; the union's pointers are of different types. */
static const void *list_items(const struct troupe_attr *attr)
{
    switch (attr->kind) {
    case TROUPE_ATTR_LIST_INT:
        return attr->value.list_i;
    case TROUPE_ATTR_LIST_FLOAT:
        return attr->value.list_f;
    case TROUPE_ATTR_LIST_BOOL:
        return attr->value.list_b;
    case TROUPE_ATTR_LIST_TYPE:
        return attr->value.list_type;
    case TROUPE_ATTR_LIST_SHAPE:
        return attr->value.list_shape;
    default:
        return NULL;
    }
}

/* A list of plain items, copied; kind NONE when there is no memory. */
static struct troupe_attr attr_list(enum troupe_attr_kind kind, const void *items, size_t count)
{
    struct troupe_attr attr = {.kind = kind, .count = count};
    void *copy = troupe_calloc(count, item_bytes(kind));
    if (!copy)
        return (struct troupe_attr){0};
    if (count > 0)
        memcpy(copy, items, count * item_bytes(kind));
    switch (kind) {
    case TROUPE_ATTR_LIST_INT:
        attr.value.list_i = copy;
        break;
    case TROUPE_ATTR_LIST_FLOAT:
        attr.value.list_f = copy;
        break;
    case TROUPE_ATTR_LIST_BOOL:
        attr.value.list_b = copy;
        break;
    case TROUPE_ATTR_LIST_TYPE:
        attr.value.list_type = copy;
        break;
    default:
        attr.value.list_shape = copy;
        break;
    }
    return attr;
}

struct troupe_attr troupe_attr_list_int(const int64_t *values, size_t count)
{
    return attr_list(TROUPE_ATTR_LIST_INT, values, count);
}

struct troupe_attr troupe_attr_list_type(const enum troupe_dtype *values, size_t count)
{
    return attr_list(TROUPE_ATTR_LIST_TYPE, values, count);
}

static struct troupe_attr copy_strings(const struct troupe_attr *value)
{
    struct troupe_attr attr = {.kind = TROUPE_ATTR_LIST_STRING};
    attr.value.list_s = troupe_calloc(value->count, sizeof(char *));
    if (!attr.value.list_s)
        return (struct troupe_attr){0};
    for (; attr.count < value->count; attr.count++) {
        attr.value.list_s[attr.count] = troupe_strdup(value->value.list_s[attr.count]);
        if (!attr.value.list_s[attr.count]) {
            troupe_attr_fini(&attr);
            return (struct troupe_attr){0};
        }
    }
    return attr;
}

struct troupe_attr troupe_attr_copy(const struct troupe_attr *value)
{
    if (value->kind == TROUPE_ATTR_STRING || value->kind == TROUPE_ATTR_FUNC)
        return attr_text(value->kind, value->value.s, value->count);
    if (value->kind == TROUPE_ATTR_TENSOR)
        return troupe_attr_tensor(value->value.tensor);
    if (value->kind == TROUPE_ATTR_LIST_STRING)
        return copy_strings(value);
    if (item_bytes(value->kind) > 0)
        return attr_list(value->kind, list_items(value), value->count);
    return *value;
}

void troupe_attr_fini(struct troupe_attr *value)
{
    switch (value->kind) {
    case TROUPE_ATTR_STRING:
    case TROUPE_ATTR_FUNC:
        free(value->value.s);
        break;
    case TROUPE_ATTR_TENSOR:
        troupe_tensor_unref(value->value.tensor);
        break;
    case TROUPE_ATTR_LIST_STRING:
        for (size_t i = 0; i < value->count; i++)
            free(value->value.list_s[i]);
        free(value->value.list_s);
        break;
    case TROUPE_ATTR_LIST_INT:
        free(value->value.list_i);
        break;
    case TROUPE_ATTR_LIST_FLOAT:
        free(value->value.list_f);
        break;
    case TROUPE_ATTR_LIST_BOOL:
        free(value->value.list_b);
        break;
    case TROUPE_ATTR_LIST_TYPE:
        free(value->value.list_type);
        break;
    case TROUPE_ATTR_LIST_SHAPE:
        free(value->value.list_shape);
        break;
    default:
        break;
    }
    *value = (struct troupe_attr){0};
}

/* Two tensors, bit for bit: NaN equals itself, and 0 is not -0, as folding wants it. */
static bool tensors_equal(const struct troupe_tensor *a, const struct troupe_tensor *b)
{
    struct troupe_shape a_shape, b_shape;
    if (a == b)
        return true;
    if (!a || !b || troupe_tensor_dtype(a) != troupe_tensor_dtype(b))
        return false;
    a_shape = troupe_shape_of(a);
    b_shape = troupe_shape_of(b);
    if (!troupe_shape_equal(&a_shape, &b_shape))
        return false;
    if (troupe_tensor_dtype(a) != TROUPE_STRING)
        return memcmp(troupe_tensor_data(a), troupe_tensor_data(b), troupe_tensor_bytes(a)) == 0;
    struct troupe_string *const *x = troupe_tensor_data(a), *const *y = troupe_tensor_data(b);
    for (int64_t i = 0; i < troupe_tensor_elements(a); i++) {
        size_t length = troupe_string_length(x[i]);
        if (length != troupe_string_length(y[i]) ||
            memcmp(troupe_string_data(x[i]), troupe_string_data(y[i]), length) != 0)
            return false;
    }
    return true;
}

static bool lists_equal(const struct troupe_attr *a, const struct troupe_attr *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (a->kind == TROUPE_ATTR_LIST_STRING &&
            strcmp(a->value.list_s[i], b->value.list_s[i]) != 0)
            return false;
        if (a->kind == TROUPE_ATTR_LIST_SHAPE &&
            !troupe_shape_equal(&a->value.list_shape[i], &b->value.list_shape[i]))
            return false;
    }
    return a->kind == TROUPE_ATTR_LIST_STRING || a->kind == TROUPE_ATTR_LIST_SHAPE ||
           a->count == 0 ||
           memcmp(list_items(a), list_items(b), a->count * item_bytes(a->kind)) == 0;
}

bool troupe_attr_equal(const struct troupe_attr *a, const struct troupe_attr *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    switch (a->kind) {
    case TROUPE_ATTR_NONE:
        return true;
    case TROUPE_ATTR_STRING:
    case TROUPE_ATTR_FUNC:
        return memcmp(a->value.s, b->value.s, a->count) == 0;
    case TROUPE_ATTR_INT:
        return a->value.i == b->value.i;
    case TROUPE_ATTR_FLOAT:
        return memcmp(&a->value.f, &b->value.f, sizeof(double)) == 0;
    case TROUPE_ATTR_BOOL:
        return a->value.b == b->value.b;
    case TROUPE_ATTR_TYPE:
        return a->value.type == b->value.type;
    case TROUPE_ATTR_SHAPE:
        return troupe_shape_equal(&a->value.shape, &b->value.shape);
    case TROUPE_ATTR_TENSOR:
        return tensors_equal(a->value.tensor, b->value.tensor);
    default:
        return lists_equal(a, b);
    }
}

static uint64_t hash_float(uint64_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return troupe_hash_u64(hash, bits);
}

static uint64_t hash_shape(uint64_t hash, const struct troupe_shape *shape)
{
    hash = troupe_hash_u64(hash, (uint64_t)shape->rank);
    for (int i = 0; i < shape->rank; i++)
        hash = troupe_hash_u64(hash, (uint64_t)shape->dims[i]);
    return hash;
}

static uint64_t hash_tensor(uint64_t hash, const struct troupe_tensor *tensor)
{
    if (!tensor)
        return troupe_hash_u64(hash, 0);
    struct troupe_shape shape = troupe_shape_of(tensor);
    hash = hash_shape(troupe_hash_u64(hash, (uint64_t)troupe_tensor_dtype(tensor)), &shape);
    if (troupe_tensor_dtype(tensor) != TROUPE_STRING)
        return troupe_hash_bytes(hash, troupe_tensor_data(tensor), troupe_tensor_bytes(tensor));
    struct troupe_string *const *strings = troupe_tensor_data(tensor);
    for (int64_t i = 0; i < troupe_tensor_elements(tensor); i++) {
        hash = troupe_hash_u64(hash, troupe_string_length(strings[i]));
        hash = troupe_hash_bytes(hash, troupe_string_data(strings[i]),
                                 troupe_string_length(strings[i]));
    }
    return hash;
}

static uint64_t hash_item(uint64_t hash, const struct troupe_attr *list, size_t i)
{
    switch (list->kind) {
    case TROUPE_ATTR_LIST_STRING:
        return troupe_hash_string(hash, list->value.list_s[i]);
    case TROUPE_ATTR_LIST_INT:
        return troupe_hash_u64(hash, (uint64_t)list->value.list_i[i]);
    case TROUPE_ATTR_LIST_FLOAT:
        return hash_float(hash, list->value.list_f[i]);
    case TROUPE_ATTR_LIST_BOOL:
        return troupe_hash_u64(hash, list->value.list_b[i]);
    case TROUPE_ATTR_LIST_TYPE:
        return troupe_hash_u64(hash, (uint64_t)list->value.list_type[i]);
    default:
        return hash_shape(hash, &list->value.list_shape[i]);
    }
}

uint64_t troupe_attr_hash(uint64_t hash, const struct troupe_attr *value)
{
    hash = troupe_hash_u64(troupe_hash_u64(hash, (uint64_t)value->kind), value->count);
    switch (value->kind) {
    case TROUPE_ATTR_NONE:
        return hash;
    case TROUPE_ATTR_STRING:
    case TROUPE_ATTR_FUNC:
        return troupe_hash_bytes(hash, value->value.s, value->count);
    case TROUPE_ATTR_INT:
        return troupe_hash_u64(hash, (uint64_t)value->value.i);
    case TROUPE_ATTR_FLOAT:
        return hash_float(hash, value->value.f);
    case TROUPE_ATTR_BOOL:
        return troupe_hash_u64(hash, value->value.b);
    case TROUPE_ATTR_TYPE:
        return troupe_hash_u64(hash, (uint64_t)value->value.type);
    case TROUPE_ATTR_SHAPE:
        return hash_shape(hash, &value->value.shape);
    case TROUPE_ATTR_TENSOR:
        return hash_tensor(hash, value->value.tensor);
    default:
        for (size_t i = 0; i < value->count; i++)
            hash = hash_item(hash, value, i);
        return hash;
    }
}

const struct troupe_attr *troupe_attr_find(const struct troupe_named_attr *attrs, int count,
                                           const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(attrs[i].name, name) == 0)
            return &attrs[i].value;
    }
    return NULL;
}
