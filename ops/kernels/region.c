/* Copies of boxes. Invariant: axes are merged first, so that the innermost loop is as long as the
 * two layouts allow, and every target element is written once, whatever the split. */
#include "ops/kernels/region.h"

#include <stdbool.h>
#include <string.h>

/* Elements that are worth a split. */
#define REGION_GRAIN 16384

struct copying {
    struct troupe_region region; /* rank at least 1 */
    size_t size;
    char *to;
    const char *from;
};

void troupe_region_add(struct troupe_region *region, int64_t size, int64_t to, int64_t from)
{
    region->dims[region->rank] = size;
    region->to[region->rank] = to;
    region->from[region->rank] = from;
    region->rank++;
}

/* Drops axes of size 1 and joins neighbours that are one run on both sides. */
static struct troupe_region region_merge(const struct troupe_region *region)
{
    struct troupe_region merged = {.rank = 0};
    for (int i = 0; i < region->rank; i++) {
        int last = merged.rank - 1;
        int64_t size = region->dims[i];
        if (size == 1)
            continue;
        if (last >= 0 && merged.to[last] == region->to[i] * size &&
            merged.from[last] == region->from[i] * size) {
            merged.dims[last] *= size;
            merged.to[last] = region->to[i];
            merged.from[last] = region->from[i];
        } else {
            troupe_region_add(&merged, size, region->to[i], region->from[i]);
        }
    }
    if (merged.rank == 0)
        troupe_region_add(&merged, 1, 1, 1);
    return merged;
}

/* Inlined with a constant size, so that each element is one load and one store. */
static inline void row_steps(char *to, const char *from, int64_t count, int64_t to_step,
                             int64_t from_step, size_t size)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * to_step * (int64_t)size, from + i * from_step * (int64_t)size, size);
}

static void row_copy(const struct copying *copying, char *to, const char *from, int64_t count)
{
    const struct troupe_region *region = &copying->region;
    int64_t to_step = region->to[region->rank - 1], from_step = region->from[region->rank - 1];
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)count * copying->size);
        return;
    }
    switch (copying->size) {
    case 1:
        row_steps(to, from, count, to_step, from_step, 1);
        break;
    case 2:
        row_steps(to, from, count, to_step, from_step, 2);
        break;
    case 4:
        row_steps(to, from, count, to_step, from_step, 4);
        break;
    case 8:
        row_steps(to, from, count, to_step, from_step, 8);
        break;
    default:
        row_steps(to, from, count, to_step, from_step, copying->size);
        break;
    }
}

/* Copies the rows (runs along the innermost axis) from number `begin` to before `end`. */
static void copy_rows(void *context, int64_t begin, int64_t end)
{
    const struct copying *copying = context;
    const struct troupe_region *region = &copying->region;
    int outer = region->rank - 1;
    int64_t at[TROUPE_REGION_RANK_MAX] = {0}, to = 0, from = 0, rest = begin;
    for (int i = outer - 1; i >= 0; i--) {
        at[i] = rest % region->dims[i];
        rest /= region->dims[i];
        to += at[i] * region->to[i];
        from += at[i] * region->from[i];
    }
    for (int64_t row = begin; row < end; row++) {
        row_copy(copying, copying->to + to * (int64_t)copying->size,
                 copying->from + from * (int64_t)copying->size, region->dims[outer]);
        for (int i = outer - 1; i >= 0; i--) {
            to += region->to[i];
            from += region->from[i];
            if (++at[i] < region->dims[i])
                break;
            to -= at[i] * region->to[i];
            from -= at[i] * region->from[i];
            at[i] = 0;
        }
    }
}

/* One row: its elements are split. */
static void copy_part(void *context, int64_t begin, int64_t end)
{
    const struct copying *copying = context;
    int64_t size = (int64_t)copying->size;
    row_copy(copying, copying->to + begin * copying->region.to[0] * size,
             copying->from + begin * copying->region.from[0] * size, end - begin);
}

void troupe_region_copy(struct troupe_parallel *parallel, const struct troupe_region *region,
                        size_t size, void *to, const void *from)
{
    struct copying copying = {region_merge(region), size, to, from};
    const struct troupe_region *merged = &copying.region;
    int64_t rows = 1, run = merged->dims[merged->rank - 1];
    for (int i = 0; i < merged->rank - 1; i++)
        rows *= merged->dims[i];
    if (rows == 0 || run == 0)
        return;
    if (merged->rank == 1)
        troupe_parallel_for(parallel, run, REGION_GRAIN, copy_part, &copying);
    else
        troupe_parallel_for(parallel, rows, run < REGION_GRAIN ? REGION_GRAIN / run : 1, copy_rows,
                            &copying);
}

void troupe_region_fill(struct troupe_parallel *parallel, int64_t count, size_t size, void *to,
                        const void *value)
{
    struct troupe_region region = {.rank = 0};
    troupe_region_add(&region, count, 1, 0);
    troupe_region_copy(parallel, &region, size, to, value);
}
