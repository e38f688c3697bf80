/* Array kernels that move elements: each says which box of the input goes where (region.h), and
 * checks nothing that the shape function has checked. */
#include <string.h>

#include "ops/kernels/array.h"
#include "ops/kernels/region.h"
#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

static void copy(const struct troupe_kernel_call *call, const struct troupe_region *region,
                 struct troupe_tensor *to, int64_t to_first, const struct troupe_tensor *from,
                 int64_t from_first)
{
    int64_t size = (int64_t)troupe_dtype_size(to->dtype);
    troupe_region_copy(call->parallel, region, (size_t)size,
                       (char *)troupe_tensor_data_mutable(to) + to_first * size,
                       (const char *)troupe_tensor_data(from) + from_first * size);
}

static bool same_dims(const struct troupe_tensor *a, const struct troupe_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof(int64_t) * (size_t)a->rank) == 0;
}

/* The output is the input itself. */
static void share(struct troupe_kernel_call *call, struct troupe_tensor *input)
{
    troupe_tensor_unref(call->outputs[0]);
    call->outputs[0] = troupe_tensor_ref(input);
}

enum troupe_status troupe_kernel_transpose(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor *from = call->inputs[0], *to = call->outputs[0];
    int64_t from_strides[TROUPE_RANK_MAX], to_strides[TROUPE_RANK_MAX];
    troupe_dims_strides(from->dims, from->rank, from_strides);
    troupe_dims_strides(to->dims, to->rank, to_strides);
    struct troupe_region region = {.rank = 0};
    bool moves = false;
    for (int i = 0; i < to->rank; i++) {
        int64_t axis = troupe_tensor_int(call->inputs[1], i);
        moves = moves || axis != i;
        troupe_region_add(&region, to->dims[i], to_strides[i], from_strides[axis]);
    }
    if (!moves) {
        share(call, from);
        return TROUPE_OK;
    }
    copy(call, &region, to, 0, from, 0);
    troupe_tensor_share_elements(to);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_broadcast_to(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *from = call->inputs[0];
    struct troupe_tensor *to = call->outputs[0];
    int64_t from_strides[TROUPE_RANK_MAX], to_strides[TROUPE_RANK_MAX];
    int missing = to->rank - from->rank;
    troupe_dims_strides(from->dims, from->rank, from_strides);
    troupe_dims_strides(to->dims, to->rank, to_strides);
    struct troupe_region region = {.rank = 0};
    for (int i = 0; i < to->rank; i++) {
        bool repeats = i < missing || from->dims[i - missing] == 1;
        troupe_region_add(&region, to->dims[i], to_strides[i],
                          repeats ? 0 : from_strides[i - missing]);
    }
    copy(call, &region, to, 0, from, 0);
    troupe_tensor_share_elements(to);
    return TROUPE_OK;
}

/* Copies between a whole tensor, seen as [outer, whole], and a part of it, [outer, part], that
 * begins at element `begin` of each row. */
static void copy_part(const struct troupe_kernel_call *call, struct troupe_tensor *to,
                      const struct troupe_tensor *from, int64_t outer, int64_t begin,
                      bool into_whole)
{
    int64_t to_row = outer > 0 ? to->elements / outer : 0;
    int64_t from_row = outer > 0 ? from->elements / outer : 0;
    struct troupe_region region = {.rank = 0};
    troupe_region_add(&region, outer, to_row, from_row);
    troupe_region_add(&region, into_whole ? from_row : to_row, 1, 1);
    copy(call, &region, to, into_whole ? begin : 0, from, into_whole ? 0 : begin);
}

/* Joins inputs [first, first + count) along what is left of `axis`. */
static enum troupe_status join(struct troupe_kernel_call *call, int first, int count, int axis)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor *to = call->outputs[0];
    int64_t outer = troupe_dims_product(to->dims, 0, axis), begin = 0;
    for (int i = first; i < first + count && outer > 0; i++) {
        copy_part(call, to, call->inputs[i], outer, begin, true);
        begin += call->inputs[i]->elements / outer;
    }
    troupe_tensor_share_elements(to);
    return TROUPE_OK;
}

/* The inverse: every output is a part of input `from`. */
static enum troupe_status part(struct troupe_kernel_call *call, int from, int axis)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *whole = call->inputs[from];
    int64_t outer = troupe_dims_product(whole->dims, 0, axis), begin = 0;
    for (int i = 0; i < call->kernel->output_count && outer > 0; i++) {
        copy_part(call, call->outputs[i], whole, outer, begin, false);
        begin += call->outputs[i]->elements / outer;
        troupe_tensor_share_elements(call->outputs[i]);
    }
    return TROUPE_OK;
}

/* An axis that is an input; the shape function reports one that is wrong, with the rest. */
static int axis_of(const struct troupe_tensor *axis, const struct troupe_tensor *tensor)
{
    int64_t value = axis->elements > 0 ? troupe_tensor_int(axis, 0) : 0;
    value += value < 0 ? tensor->rank : 0;
    return value < 0 || value >= tensor->rank ? 0 : (int)value;
}

enum troupe_status troupe_kernel_concat(struct troupe_kernel_call *call)
{
    int count = call->kernel->input_count - 1;
    return join(call, 1, count, axis_of(call->inputs[0], call->inputs[1]));
}

enum troupe_status troupe_kernel_concat_v2(struct troupe_kernel_call *call)
{
    int count = call->kernel->input_count - 1;
    return join(call, 0, count, axis_of(call->inputs[count], call->inputs[0]));
}

enum troupe_status troupe_kernel_pack(struct troupe_kernel_call *call)
{
    int64_t axis = troupe_kernel_int(call->kernel, "axis");
    axis += axis < 0 ? call->inputs[0]->rank + 1 : 0;
    return join(call, 0, call->kernel->input_count, (int)axis);
}

enum troupe_status troupe_kernel_split(struct troupe_kernel_call *call)
{
    return part(call, 1, axis_of(call->inputs[0], call->inputs[1]));
}

enum troupe_status troupe_kernel_split_v(struct troupe_kernel_call *call)
{
    return part(call, 0, axis_of(call->inputs[2], call->inputs[0]));
}

enum troupe_status troupe_kernel_unpack(struct troupe_kernel_call *call)
{
    int64_t axis = troupe_kernel_int(call->kernel, "axis");
    axis += axis < 0 ? call->inputs[0]->rank : 0;
    return part(call, 0, (int)axis);
}

enum troupe_status troupe_kernel_slice(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor *from = call->inputs[0], *to = call->outputs[0];
    if (same_dims(from, to)) {
        share(call, from);
        return TROUPE_OK;
    }
    int64_t from_strides[TROUPE_RANK_MAX], to_strides[TROUPE_RANK_MAX], first = 0;
    troupe_dims_strides(from->dims, from->rank, from_strides);
    troupe_dims_strides(to->dims, to->rank, to_strides);
    struct troupe_region region = {.rank = 0};
    for (int i = 0; i < to->rank; i++) {
        troupe_region_add(&region, to->dims[i], to_strides[i], from_strides[i]);
        first += troupe_tensor_int(call->inputs[1], i) * from_strides[i];
    }
    copy(call, &region, to, 0, from, first);
    troupe_tensor_share_elements(to);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_tile(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *from = call->inputs[0];
    struct troupe_tensor *to = call->outputs[0];
    int64_t from_strides[TROUPE_RANK_MAX], to_strides[TROUPE_RANK_MAX];
    troupe_dims_strides(from->dims, from->rank, from_strides);
    troupe_dims_strides(to->dims, to->rank, to_strides);
    struct troupe_region region = {.rank = 0};
    for (int i = 0; i < to->rank; i++) {
        int64_t times = troupe_tensor_int(call->inputs[1], i);
        troupe_region_add(&region, times, to_strides[i] * from->dims[i], 0);
        troupe_region_add(&region, from->dims[i], to_strides[i], from_strides[i]);
    }
    copy(call, &region, to, 0, from, 0);
    troupe_tensor_share_elements(to);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_pad(struct troupe_kernel_call *call)
{
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *from = call->inputs[0];
    struct troupe_tensor *to = call->outputs[0];
    size_t size = troupe_dtype_size(to->dtype);
    char *data = troupe_tensor_data_mutable(to);
    if (call->kernel->input_count > 2)
        troupe_region_fill(call->parallel, to->elements, size, data,
                           troupe_tensor_data(call->inputs[2]));
    else if (to->elements > 0)
        memset(data, 0, troupe_tensor_bytes(to)); /* a string that is not set counts as "" */
    int64_t from_strides[TROUPE_RANK_MAX], to_strides[TROUPE_RANK_MAX], first = 0;
    troupe_dims_strides(from->dims, from->rank, from_strides);
    troupe_dims_strides(to->dims, to->rank, to_strides);
    struct troupe_region region = {.rank = 0};
    for (int i = 0; i < to->rank; i++) {
        troupe_region_add(&region, from->dims[i], to_strides[i], from_strides[i]);
        first += troupe_tensor_int(call->inputs[1], 2 * (int64_t)i) * to_strides[i];
    }
    copy(call, &region, to, first, from, 0);
    troupe_tensor_share_elements(to);
    return TROUPE_OK;
}
