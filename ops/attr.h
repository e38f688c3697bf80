/* Attribute values: TensorFlow's AttrValue. */
#ifndef TROUPE_OPS_ATTR_H
#define TROUPE_OPS_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/shape.h"
#include "troupe/dtype.h"

enum troupe_attr_kind {
    TROUPE_ATTR_NONE = 0,
    TROUPE_ATTR_STRING,
    TROUPE_ATTR_INT,
    TROUPE_ATTR_FLOAT,
    TROUPE_ATTR_BOOL,
    TROUPE_ATTR_TYPE,
    TROUPE_ATTR_SHAPE,
    TROUPE_ATTR_TENSOR,
    TROUPE_ATTR_FUNC, /* the name of a function in `library`, in `s` */
    TROUPE_ATTR_LIST_STRING,
    TROUPE_ATTR_LIST_INT,
    TROUPE_ATTR_LIST_FLOAT,
    TROUPE_ATTR_LIST_BOOL,
    TROUPE_ATTR_LIST_TYPE,
    TROUPE_ATTR_LIST_SHAPE,
    TROUPE_ATTR_KIND_COUNT
};

/* A value owns what it points to. In a list `count` items lie behind the pointer of its kind. */
struct troupe_attr {
    enum troupe_attr_kind kind;
    size_t count; /* of a list; of the bytes of a string */
    union {
        char *s; /* zero-terminated besides its count */
        int64_t i;
        double f;
        bool b;
        enum troupe_dtype type;
        struct troupe_shape shape;
        struct troupe_tensor *tensor;
        char **list_s;
        int64_t *list_i;
        double *list_f;
        bool *list_b;
        enum troupe_dtype *list_type;
        struct troupe_shape *list_shape;
    } value;
};

/* The kind's name as schemas write it: "string", "int", "float", "bool", "type", "shape",
 * "tensor", "func", "list(int)", ... */
const char *troupe_attr_kind_name(enum troupe_attr_kind kind);

struct troupe_attr troupe_attr_int(int64_t value);
struct troupe_attr troupe_attr_float(double value);
struct troupe_attr troupe_attr_bool(bool value);
struct troupe_attr troupe_attr_type(enum troupe_dtype value);
struct troupe_attr troupe_attr_shape(struct troupe_shape value);
/* Shares the tensor. */
struct troupe_attr troupe_attr_tensor(struct troupe_tensor *value);
/* Copy; kind NONE when there is no memory. */
struct troupe_attr troupe_attr_string(const char *value);
struct troupe_attr troupe_attr_list_int(const int64_t *values, size_t count);
struct troupe_attr troupe_attr_list_type(const enum troupe_dtype *values, size_t count);
struct troupe_attr troupe_attr_copy(const struct troupe_attr *value);
void troupe_attr_fini(struct troupe_attr *value);
bool troupe_attr_equal(const struct troupe_attr *a, const struct troupe_attr *b);
/* Folds a value into a hash, the same on every rank. */
uint64_t troupe_attr_hash(uint64_t hash, const struct troupe_attr *value);
/* Adds a value as friendly JSON ("float32", [1, 2], true, a large tensor shortened). */
void troupe_attr_print(const struct troupe_attr *value, struct troupe_text *out);

/* A named value; a node's attrs are an array of these. */
struct troupe_named_attr {
    char *name; /* owned */
    struct troupe_attr value;
};

#endif
