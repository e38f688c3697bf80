/* Element types. Invariant: every dtype has one row here, and nothing else lists them. */
#include <string.h>

#include "troupe/dtype.h"

struct dtype_row {
    const char *name;
    size_t size;
    /* Other spellings: the protobuf name, TensorFlow's, C's, numpy's. NULL-terminated. */
    const char *aliases[7];
};

static const struct dtype_row rows[TROUPE_DTYPE_COUNT] = {
    [TROUPE_FLOAT32] = {"float32", 4, {"DT_FLOAT", "float", "<f4", "f4"}},
    [TROUPE_FLOAT64] = {"float64", 8, {"DT_DOUBLE", "double", "<f8", "f8"}},
    [TROUPE_INT32] = {"int32", 4, {"DT_INT32", "int", "<i4", "i4"}},
    [TROUPE_UINT8] = {"uint8", 1, {"DT_UINT8", "|u1", "<u1", "u1"}},
    [TROUPE_STRING] = {"string", sizeof(void *), {"DT_STRING", "str"}},
    [TROUPE_INT64] = {"int64", 8, {"DT_INT64", "long", "<i8", "i8"}},
    [TROUPE_BOOL] = {"bool", 1, {"DT_BOOL", "|b1", "<b1", "b1"}},
    [TROUPE_BFLOAT16] = {"bfloat16", 2, {"DT_BFLOAT16"}},
    [TROUPE_FLOAT16] = {"float16", 2, {"DT_HALF", "half", "DT_FLOAT16", "<f2", "f2"}},
    [TROUPE_RESOURCE] = {"resource", sizeof(void *), {"DT_RESOURCE"}},
    [TROUPE_VARIANT] = {"variant", sizeof(void *), {"DT_VARIANT"}},
};

static const struct dtype_row *dtype_row(enum troupe_dtype dtype)
{
    return (unsigned)dtype < TROUPE_DTYPE_COUNT && rows[dtype].name ? &rows[dtype] : NULL;
}

const char *troupe_dtype_name(enum troupe_dtype dtype)
{
    const struct dtype_row *row = dtype_row(dtype);
    return row ? row->name : "?";
}

size_t troupe_dtype_size(enum troupe_dtype dtype)
{
    const struct dtype_row *row = dtype_row(dtype);
    return row ? row->size : 0;
}

static bool row_has(const struct dtype_row *row, const char *name)
{
    if (strcmp(row->name, name) == 0)
        return true;
    for (const char *const *alias = row->aliases; *alias; alias++) {
        if (strcmp(*alias, name) == 0)
            return true;
    }
    return false;
}

enum troupe_status troupe_dtype_parse(const char *name, enum troupe_dtype *dtype_out)
{
    for (int dtype = 0; dtype < TROUPE_DTYPE_COUNT; dtype++) {
        if (rows[dtype].name && row_has(&rows[dtype], name)) {
            *dtype_out = (enum troupe_dtype)dtype;
            return TROUPE_OK;
        }
    }
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "no dtype \"%s\": wants float32, float64, int32, int64, uint8, "
                              "bool, string, float16, bfloat16, resource or variant",
                              name);
}

bool troupe_dtype_is_counted(enum troupe_dtype dtype)
{
    return dtype == TROUPE_STRING || dtype == TROUPE_RESOURCE || dtype == TROUPE_VARIANT;
}

bool troupe_dtype_is_floating(enum troupe_dtype dtype)
{
    return dtype == TROUPE_FLOAT32 || dtype == TROUPE_FLOAT64 || dtype == TROUPE_FLOAT16 ||
           dtype == TROUPE_BFLOAT16;
}
