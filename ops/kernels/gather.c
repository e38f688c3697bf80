/* Rows picked by index, and sums of rows by index, which is the gradient. Invariant: every index is
 * checked before anything is copied, so that no string is lost when one is wrong. */
#include <stdbool.h>
#include <string.h>

#include "ops/kernels/array.h"
#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

/* Indices that are worth a split. */
#define GATHER_GRAIN 256

#define TYPE       float
#define NAME(stem) stem##_float32
#include "ops/kernels/segment_add.inc.h"
#undef TYPE
#undef NAME
#define TYPE       double
#define NAME(stem) stem##_float64
#include "ops/kernels/segment_add.inc.h"
#undef TYPE
#undef NAME
#define TYPE       int32_t
#define NAME(stem) stem##_int32
#include "ops/kernels/segment_add.inc.h"
#undef TYPE
#undef NAME
#define TYPE       int64_t
#define NAME(stem) stem##_int64
#include "ops/kernels/segment_add.inc.h"
#undef TYPE
#undef NAME

static enum troupe_status check_indices(const struct troupe_tensor *indices, const char *name,
                                        int64_t least, int64_t limit)
{
    for (int64_t i = 0; i < indices->elements; i++) {
        int64_t index = troupe_tensor_int(indices, i);
        if ((index < 0 && least == 0) || index >= limit)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"%s\" has %lld at %lld: wants 0 to %lld", name,
                                      (long long)index, (long long)i, (long long)limit - 1);
    }
    return TROUPE_OK;
}

/* params as [batches, outer, limit, inner], indices as [batches, count], and the output as
 * [batches, outer, count, inner]. */
struct gathering {
    const struct troupe_tensor *indices;
    char *to;
    const char *from;
    int64_t outer, limit, count;
    size_t inner; /* in bytes */
};

static void gather_rows(void *context, int64_t begin, int64_t end)
{
    const struct gathering *g = context;
    for (int64_t row = begin; row < end; row++) {
        int64_t block = row / g->count, position = row % g->count;
        int64_t batch = block / g->outer;
        int64_t index = troupe_tensor_int(g->indices, batch * g->count + position);
        memcpy(g->to + (size_t)row * g->inner,
               g->from + (size_t)(block * g->limit + index) * g->inner, g->inner);
    }
}

static enum troupe_status gather(struct troupe_kernel_call *call, int64_t axis, int64_t batch_dims)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *params = call->inputs[0], *indices = call->inputs[1];
    struct troupe_tensor *out = call->outputs[0];
    int at = (int)(axis < 0 ? axis + params->rank : axis);
    int batch = (int)(batch_dims < 0 ? batch_dims + indices->rank : batch_dims);
    status = check_indices(indices, "indices", 0, params->dims[at]);
    if (status != TROUPE_OK || out->elements == 0)
        return status;
    struct gathering gathering = {
        .indices = indices,
        .to = troupe_tensor_data_mutable(out),
        .from = troupe_tensor_data(params),
        .outer = troupe_dims_product(params->dims, batch, at),
        .limit = params->dims[at],
        .count = troupe_dims_product(indices->dims, batch, indices->rank),
        .inner = troupe_dtype_size(out->dtype) *
                 (size_t)troupe_dims_product(params->dims, at + 1, params->rank),
    };
    int64_t rows = troupe_dims_product(params->dims, 0, at) * gathering.count;
    troupe_parallel_for(call->parallel, rows, GATHER_GRAIN, gather_rows, &gathering);
    troupe_tensor_share_elements(out);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_gather(struct troupe_kernel_call *call)
{
    return gather(call, 0, 0);
}

enum troupe_status troupe_kernel_gather_v2(struct troupe_kernel_call *call)
{
    const struct troupe_tensor *axis = call->inputs[2];
    return gather(call, axis->elements > 0 ? troupe_tensor_int(axis, 0) : 0,
                  troupe_kernel_int(call->kernel, "batch_dims"));
}

/* Rows are added in their order, so that sums do not depend on the workers. */
enum troupe_status troupe_kernel_unsorted_segment_sum(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *data = call->inputs[0], *ids = call->inputs[1];
    struct troupe_tensor *out = call->outputs[0];
    status = check_indices(ids, "segment_ids", INT64_MIN, out->dims[0]);
    if (status != TROUPE_OK || out->elements == 0)
        return status;
    void (*add)(void *, const void *, int64_t) = out->dtype == TROUPE_FLOAT32   ? add_row_float32
                                                 : out->dtype == TROUPE_FLOAT64 ? add_row_float64
                                                 : out->dtype == TROUPE_INT32   ? add_row_int32
                                                                                : add_row_int64;
    int64_t row = out->elements / out->dims[0];
    size_t bytes = (size_t)row * troupe_dtype_size(out->dtype);
    char *to = troupe_tensor_data_mutable(out);
    const char *from = troupe_tensor_data(data);
    memset(to, 0, troupe_tensor_bytes(out));
    for (int64_t i = 0; i < ids->elements; i++) {
        int64_t id = troupe_tensor_int(ids, i);
        if (id >= 0) /* a negative id drops its row */
            add(to + (size_t)id * bytes, from + (size_t)i * bytes, row);
    }
    return TROUPE_OK;
}
