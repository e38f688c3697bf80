/* Reads of inputs that say shapes and axes, in shape functions. Private to ops/. */
#ifndef TROUPE_OPS_KERNELS_INFER_INPUTS_H
#define TROUPE_OPS_KERNELS_INFER_INPUTS_H

#include "ops/op.h"

/* An input that is a vector of ints: their number, -1 when that is not known, and their values
 * where these are known. INVALID_ARGUMENT names the input. */
struct troupe_infer_ints {
    int count;
    bool known;
    int64_t values[TROUPE_RANK_MAX];
};
TROUPE_MUST_USE enum troupe_status troupe_infer_read_ints(const struct troupe_infer *infer,
                                                          int input, const char *name,
                                                          struct troupe_infer_ints *out);
/* An input that is one int. */
TROUPE_MUST_USE enum troupe_status troupe_infer_read_int(const struct troupe_infer *infer,
                                                         int input, const char *name,
                                                         int64_t *value, bool *known);
/* Checks that an input is one number. */
TROUPE_MUST_USE enum troupe_status troupe_infer_want_scalar(const struct troupe_infer *infer,
                                                            int input, const char *name);
/* A shape of which only the rank is known; nothing is when it is -1. */
struct troupe_shape troupe_shape_of_rank(int rank);

#endif
