/* Shapes, in which a size, or the rank itself, may be unknown. */
#ifndef TROUPE_OPS_SHAPE_H
#define TROUPE_OPS_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "troupe/status.h"
#include "troupe/tensor.h"

#define TROUPE_DIM_UNKNOWN  (-1)
#define TROUPE_RANK_UNKNOWN (-1)

struct troupe_shape {
    int rank; /* TROUPE_RANK_UNKNOWN, or 0 to TROUPE_RANK_MAX */
    int64_t dims[TROUPE_RANK_MAX];
};

struct troupe_shape troupe_shape_unknown(void);
struct troupe_shape troupe_shape_scalar(void);
struct troupe_shape troupe_shape_make(int rank, const int64_t *dims);
struct troupe_shape troupe_shape_of(const struct troupe_tensor *tensor);

/* True when the rank and every size are known. */
bool troupe_shape_is_known(const struct troupe_shape *shape);
/* The product of known sizes; -1 when any is unknown. */
int64_t troupe_shape_elements(const struct troupe_shape *shape);
/* Equal in every part, unknown parts included. */
bool troupe_shape_equal(const struct troupe_shape *a, const struct troupe_shape *b);
/* The shape that both allow (an unknown part takes the other's). INVALID_ARGUMENT, without a
 * message, when they contradict each other. */
TROUPE_MUST_USE enum troupe_status troupe_shape_merge(const struct troupe_shape *a,
                                                      const struct troupe_shape *b,
                                                      struct troupe_shape *out);
/* The narrowest shape that allows whatever either allows: sizes that differ are unknown, and so
 * is the rank where ranks do. */
struct troupe_shape troupe_shape_widen(const struct troupe_shape *a, const struct troupe_shape *b);
/* Numpy's broadcasting. INVALID_ARGUMENT: "shapes [64,10] and [64,12] do not broadcast". */
TROUPE_MUST_USE enum troupe_status troupe_shape_broadcast(const struct troupe_shape *a,
                                                          const struct troupe_shape *b,
                                                          struct troupe_shape *out);
/* Writes "[64,?]", "[]", or "?" for an unknown rank. */
#define TROUPE_SHAPE_TEXT_MAX 192
const char *troupe_shape_print(const struct troupe_shape *shape, char out[TROUPE_SHAPE_TEXT_MAX]);

#endif
