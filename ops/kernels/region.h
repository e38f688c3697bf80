/* Copies of boxes of elements between two layouts: what moves data in array ops. Private to ops/.
 */
#ifndef TROUPE_OPS_KERNELS_REGION_H
#define TROUPE_OPS_KERNELS_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "devices/device.h"
#include "troupe/tensor.h"

#define TROUPE_REGION_RANK_MAX (2 * TROUPE_RANK_MAX)

/* A box of dims[0] x dims[1] x ... elements, and how many elements apart neighbours along each
 * axis lie on both sides. A source distance of 0 repeats an element. Boxes on the target side do
 * not overlap themselves. */
struct troupe_region {
    int rank;
    int64_t dims[TROUPE_REGION_RANK_MAX];
    int64_t to[TROUPE_REGION_RANK_MAX];
    int64_t from[TROUPE_REGION_RANK_MAX];
};

/* Adds an axis inside those that are there. */
void troupe_region_add(struct troupe_region *region, int64_t size, int64_t to, int64_t from);

/* Copies a box of elements of `size` bytes; `to` and `from` are its first elements. An element of
 * a counted dtype is copied as the pointer that it is, and not counted. */
void troupe_region_copy(struct troupe_parallel *parallel, const struct troupe_region *region,
                        size_t size, void *to, const void *from);

/* Sets `count` elements of `size` bytes to the one at `value`. */
void troupe_region_fill(struct troupe_parallel *parallel, int64_t count, size_t size, void *to,
                        const void *value);

#endif
