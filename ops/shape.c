/* Shapes with unknown parts. Invariant: dims beyond the rank are not read. */
#include <stdio.h>
#include <string.h>

#include "ops/shape.h"

struct troupe_shape troupe_shape_unknown(void)
{
    return (struct troupe_shape){.rank = TROUPE_RANK_UNKNOWN};
}

struct troupe_shape troupe_shape_scalar(void)
{
    return (struct troupe_shape){.rank = 0};
}

struct troupe_shape troupe_shape_make(int rank, const int64_t *dims)
{
    struct troupe_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    return shape;
}

struct troupe_shape troupe_shape_of(const struct troupe_tensor *tensor)
{
    return troupe_shape_make(troupe_tensor_rank(tensor), troupe_tensor_dims(tensor));
}

bool troupe_shape_is_known(const struct troupe_shape *shape)
{
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0)
            return false;
    }
    return shape->rank >= 0;
}

int64_t troupe_shape_elements(const struct troupe_shape *shape)
{
    if (!troupe_shape_is_known(shape))
        return -1;
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == 0)
            return 0;
        if (__builtin_mul_overflow(elements, shape->dims[i], &elements))
            elements = INT64_MAX;
    }
    return elements;
}

bool troupe_shape_equal(const struct troupe_shape *a, const struct troupe_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i])
            return false;
    }
    return true;
}

enum troupe_status troupe_shape_merge(const struct troupe_shape *a, const struct troupe_shape *b,
                                      struct troupe_shape *out)
{
    if (a->rank < 0 || b->rank < 0) {
        *out = a->rank < 0 ? *b : *a;
        return TROUPE_OK;
    }
    if (a->rank != b->rank)
        return TROUPE_INVALID_ARGUMENT;
    struct troupe_shape merged = *a;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i])
            return TROUPE_INVALID_ARGUMENT;
        if (merged.dims[i] < 0)
            merged.dims[i] = b->dims[i];
    }
    *out = merged;
    return TROUPE_OK;
}

struct troupe_shape troupe_shape_widen(const struct troupe_shape *a, const struct troupe_shape *b)
{
    if (a->rank < 0 || a->rank != b->rank)
        return troupe_shape_unknown();
    struct troupe_shape wide = *a;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i])
            wide.dims[i] = TROUPE_DIM_UNKNOWN;
    }
    return wide;
}

/* One dimension of a broadcast: 1 gives way, and an unknown one is what the other says unless
 * that is 1. False when they do not agree. */
static bool broadcast_dim(int64_t a, int64_t b, int64_t *out)
{
    if (a == 1 || b == 1)
        *out = a == 1 ? b : a;
    else if (a < 0 || b < 0)
        *out = a < 0 ? b : a;
    else if (a == b)
        *out = a;
    else
        return false;
    return true;
}

enum troupe_status troupe_shape_broadcast(const struct troupe_shape *a,
                                          const struct troupe_shape *b, struct troupe_shape *out)
{
    if (a->rank < 0 || b->rank < 0) {
        *out = troupe_shape_unknown();
        return TROUPE_OK;
    }
    int rank = a->rank > b->rank ? a->rank : b->rank;
    struct troupe_shape wide = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - a->rank), ib = i - (rank - b->rank);
        if (!broadcast_dim(ia < 0 ? 1 : a->dims[ia], ib < 0 ? 1 : b->dims[ib], &wide.dims[i])) {
            char at[TROUPE_SHAPE_TEXT_MAX], bt[TROUPE_SHAPE_TEXT_MAX];
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "shapes %s and %s do not broadcast",
                                      troupe_shape_print(a, at), troupe_shape_print(b, bt));
        }
    }
    *out = wide;
    return TROUPE_OK;
}

const char *troupe_shape_print(const struct troupe_shape *shape, char out[TROUPE_SHAPE_TEXT_MAX])
{
    if (shape->rank < 0) {
        memcpy(out, "?", 2);
        return out;
    }
    size_t used = 0;
    out[used++] = '[';
    for (int i = 0; i < shape->rank; i++) {
        /* 8 sizes of at most 20 characters each fit. */
        const char *comma = i > 0 ? "," : "";
        int length = shape->dims[i] < 0
                         ? snprintf(out + used, TROUPE_SHAPE_TEXT_MAX - used, "%s?", comma)
                         : snprintf(out + used, TROUPE_SHAPE_TEXT_MAX - used, "%s%lld", comma,
                                    (long long)shape->dims[i]);
        used += (size_t)length;
    }
    memcpy(out + used, "]", 2);
    return out;
}
