/* Shape functions of array ops that join tensors and take them apart. Invariant: with every input
 * known, every output shape is known, since kernels take their output shapes from here. */
#include "ops/array.h"
#include "ops/kernels/infer_inputs.h"
#include "ops/kernels/shapes.h"

static int64_t add_sizes(int64_t a, int64_t b)
{
    int64_t sum;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum))
        return TROUPE_DIM_UNKNOWN;
    return sum;
}

/* Two shapes that agree but for `axis`, along which `*sum` gets both. */
static enum troupe_status join(struct troupe_shape *sum, const struct troupe_shape *next, int axis)
{
    struct troupe_shape a = *sum, b = *next, merged;
    int64_t size = add_sizes(sum->dims[axis], next->dims[axis]);
    a.dims[axis] = b.dims[axis] = TROUPE_DIM_UNKNOWN;
    if (troupe_shape_merge(&a, &b, &merged) != TROUPE_OK) {
        char at[TROUPE_SHAPE_TEXT_MAX], bt[TROUPE_SHAPE_TEXT_MAX];
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT,
            "shapes %s and %s do not concatenate along axis %d: they differ elsewhere",
            troupe_shape_print(sum, at), troupe_shape_print(next, bt), axis);
    }
    merged.dims[axis] = size;
    *sum = merged;
    return TROUPE_OK;
}

static enum troupe_status infer_concat(struct troupe_infer *infer, int first, int axis_input,
                                       const char *axis_name)
{
    const struct troupe_shape *shapes = infer->input_shapes + first;
    int count = infer->input_count - 1, rank = TROUPE_RANK_UNKNOWN, at = -1;
    int64_t axis;
    bool known;
    char text[TROUPE_SHAPE_TEXT_MAX];
    enum troupe_status status = troupe_infer_read_int(infer, axis_input, axis_name, &axis, &known);
    for (int i = 0; i < count && status == TROUPE_OK; i++) {
        if (shapes[i].rank >= 0 && rank >= 0 && shapes[i].rank != rank)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "value %d has shape %s: wants rank %d, as those before", i,
                                      troupe_shape_print(&shapes[i], text), rank);
        rank = shapes[i].rank >= 0 ? shapes[i].rank : rank;
    }
    if (status != TROUPE_OK || rank < 0)
        return status;
    struct troupe_shape sum = troupe_shape_of_rank(rank);
    if (known) {
        status = troupe_axis_resolve(axis, rank, axis_name, &at);
        if (status != TROUPE_OK)
            return status;
        sum.dims[at] = 0;
    }
    for (int i = 0; i < count && known && status == TROUPE_OK; i++) {
        struct troupe_shape next = shapes[i].rank < 0 ? troupe_shape_of_rank(rank) : shapes[i];
        status = join(&sum, &next, at);
    }
    if (status == TROUPE_OK)
        infer->output_shapes[0] = sum;
    return status;
}

enum troupe_status troupe_infer_concat(struct troupe_infer *infer)
{
    return infer_concat(infer, 1, 0, "concat_dim");
}

enum troupe_status troupe_infer_concat_v2(struct troupe_infer *infer)
{
    return infer_concat(infer, 0, infer->input_count - 1, "axis");
}

enum troupe_status troupe_infer_concat_offset(struct troupe_infer *infer)
{
    int64_t axis;
    bool known;
    enum troupe_status status = troupe_infer_read_int(infer, 0, "concat_dim", &axis, &known);
    for (int i = 0; i < infer->output_count && status == TROUPE_OK; i++) {
        struct troupe_infer_ints ints;
        status = troupe_infer_read_ints(infer, i + 1, "shape", &ints);
        if (status != TROUPE_OK)
            return status;
        infer->output_shapes[i] = troupe_shape_of_rank(1);
        infer->output_shapes[i].dims[0] = ints.count;
    }
    return status;
}

/* What Split, SplitV and Unpack begin with: the axis, where rank and axis are known. */
static enum troupe_status split_axis(const struct troupe_infer *infer, int value, int input,
                                     int *at)
{
    int64_t axis;
    bool known;
    *at = -1;
    enum troupe_status status = troupe_infer_read_int(infer, input, "split_dim", &axis, &known);
    if (status != TROUPE_OK || !known || infer->input_shapes[value].rank < 0)
        return status;
    return troupe_axis_resolve(axis, infer->input_shapes[value].rank, "split_dim", at);
}

enum troupe_status troupe_infer_split(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[1];
    int at;
    enum troupe_status status = split_axis(infer, 1, 0, &at);
    if (status != TROUPE_OK)
        return status;
    struct troupe_shape part = at < 0 ? troupe_shape_of_rank(from->rank) : *from;
    if (at >= 0 && from->dims[at] >= 0) {
        char text[TROUPE_SHAPE_TEXT_MAX];
        if (from->dims[at] % infer->output_count != 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "shape %s does not split into %d equal parts along axis %d",
                                      troupe_shape_print(from, text), infer->output_count, at);
        part.dims[at] = from->dims[at] / infer->output_count;
    }
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = part;
    return TROUPE_OK;
}

/* The sizes of the parts, of which one may be -1: the rest of `total`. */
static enum troupe_status split_sizes(const struct troupe_tensor *sizes, int count, int64_t total,
                                      struct troupe_shape *parts, int at)
{
    int64_t sum = 0;
    int open = -1;
    for (int i = 0; i < count; i++) {
        int64_t size = troupe_tensor_int(sizes, i);
        if (size < -1 || (size == -1 && open >= 0))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"size_splits\" has %lld at %d: wants 0 or more, or one -1",
                                      (long long)size, i);
        parts[i].dims[at] = size;
        if (size == -1)
            open = i;
        else if (__builtin_add_overflow(sum, size, &sum))
            sum = INT64_MAX;
    }
    if (total < 0)
        return TROUPE_OK;
    if (open >= 0 ? sum > total : sum != total)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"size_splits\" sums to %lld: the dimension has %lld",
                                  (long long)sum, (long long)total);
    if (open >= 0)
        parts[open].dims[at] = total - sum;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_split_v(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0], *sizes = &infer->input_shapes[1];
    int at;
    char text[TROUPE_SHAPE_TEXT_MAX];
    enum troupe_status status = split_axis(infer, 0, 2, &at);
    if (status != TROUPE_OK)
        return status;
    if (sizes->rank >= 0 &&
        (sizes->rank != 1 || (sizes->dims[0] >= 0 && sizes->dims[0] != infer->output_count)))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"size_splits\" wants a vector of %d (num_split), got shape %s",
                                  infer->output_count, troupe_shape_print(sizes, text));
    for (int i = 0; i < infer->output_count; i++) {
        infer->output_shapes[i] = at < 0 ? troupe_shape_of_rank(from->rank) : *from;
        if (at >= 0)
            infer->output_shapes[i].dims[at] = TROUPE_DIM_UNKNOWN;
    }
    if (at < 0 || !infer->input_values[1])
        return TROUPE_OK;
    return split_sizes(infer->input_values[1], infer->output_count, from->dims[at],
                       infer->output_shapes, at);
}

static enum troupe_status slice_fails(const struct troupe_shape *from, int axis, int64_t begin,
                                      int64_t size)
{
    char text[TROUPE_SHAPE_TEXT_MAX];
    return troupe_status_fail(
        TROUPE_INVALID_ARGUMENT, "begin %lld and size %lld do not lie in dimension %d of shape %s",
        (long long)begin, (long long)size, axis, troupe_shape_print(from, text));
}

enum troupe_status troupe_infer_slice(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0];
    struct troupe_infer_ints begin, size;
    enum troupe_status status = troupe_infer_read_ints(infer, 1, "begin", &begin);
    if (status == TROUPE_OK)
        status = troupe_infer_read_ints(infer, 2, "size", &size);
    if (status != TROUPE_OK)
        return status;
    int rank = from->rank >= 0 ? from->rank : begin.count >= 0 ? begin.count : size.count;
    if ((begin.count >= 0 && begin.count != rank) || (size.count >= 0 && size.count != rank))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"begin\" has %d entries and \"size\" %d: wants one for each of "
                                  "%d dimensions",
                                  begin.count, size.count, rank);
    struct troupe_shape to = troupe_shape_of_rank(rank);
    for (int i = 0; i < rank && size.known; i++) {
        int64_t whole = from->rank < 0 ? TROUPE_DIM_UNKNOWN : from->dims[i], end;
        int64_t first = begin.known ? begin.values[i] : 0;
        to.dims[i] = size.values[i];
        if (size.values[i] == -1 && begin.known && whole >= 0)
            to.dims[i] = whole - first;
        bool fits = first >= 0 && size.values[i] >= -1 && (whole < 0 || first <= whole) &&
                    !__builtin_add_overflow(first, size.values[i], &end) &&
                    (whole < 0 || end <= whole);
        if (!fits)
            return slice_fails(from, i, first, size.values[i]);
    }
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_tile(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0];
    struct troupe_infer_ints multiples;
    enum troupe_status status = troupe_infer_read_ints(infer, 1, "multiples", &multiples);
    if (status != TROUPE_OK)
        return status;
    int rank = from->rank >= 0 ? from->rank : multiples.count;
    if (multiples.count >= 0 && multiples.count != rank)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"multiples\" has %d entries: wants one for each of %d "
                                  "dimensions",
                                  multiples.count, rank);
    struct troupe_shape to = troupe_shape_of_rank(rank);
    for (int i = 0; i < rank && multiples.known; i++) {
        int64_t by = multiples.values[i];
        if (by < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"multiples\" has %lld at %d: wants 0 or more",
                                      (long long)by, i);
        if (from->rank >= 0 && from->dims[i] >= 0 &&
            __builtin_mul_overflow(from->dims[i], by, &to.dims[i]))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "%lld times %lld is more than a dimension holds",
                                      (long long)by, (long long)from->dims[i]);
    }
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

/* The output's shape from paddings of [rank, 2], where their values are known. */
static enum troupe_status pad_shape(const struct troupe_shape *from,
                                    const struct troupe_tensor *paddings, struct troupe_shape *to)
{
    for (int i = 0; i < to->rank; i++) {
        int64_t before = troupe_tensor_int(paddings, 2 * (int64_t)i);
        int64_t after = troupe_tensor_int(paddings, 2 * (int64_t)i + 1), size;
        if (before < 0 || after < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"paddings\" of dimension %d are %lld and %lld: wants 0 or "
                                      "more",
                                      i, (long long)before, (long long)after);
        if (from->rank < 0 || from->dims[i] < 0)
            continue;
        size = add_sizes(add_sizes(before, from->dims[i]), after);
        if (size < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"paddings\" of dimension %d are more than it holds", i);
        to->dims[i] = size;
    }
    return TROUPE_OK;
}

enum troupe_status troupe_infer_pad(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0], *paddings = &infer->input_shapes[1];
    int rank =
        from->rank >= 0 ? from->rank
        : paddings->rank == 2 && paddings->dims[0] >= 0 && paddings->dims[0] <= TROUPE_RANK_MAX
            ? (int)paddings->dims[0]
            : TROUPE_RANK_UNKNOWN;
    struct troupe_shape wanted = troupe_shape_of_rank(2), merged;
    char text[TROUPE_SHAPE_TEXT_MAX], wanted_text[TROUPE_SHAPE_TEXT_MAX];
    wanted.dims[0] = rank;
    wanted.dims[1] = 2;
    if (troupe_shape_merge(&wanted, paddings, &merged) != TROUPE_OK)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"paddings\" wants shape %s, got %s",
                                  troupe_shape_print(&wanted, wanted_text),
                                  troupe_shape_print(paddings, text));
    if (infer->input_count > 2) {
        enum troupe_status status = troupe_infer_want_scalar(infer, 2, "constant_values");
        if (status != TROUPE_OK)
            return status;
    }
    struct troupe_shape to = troupe_shape_of_rank(rank);
    enum troupe_status status = TROUPE_OK;
    if (infer->input_values[1] && rank >= 0)
        status = pad_shape(from, infer->input_values[1], &to);
    if (status == TROUPE_OK)
        infer->output_shapes[0] = to;
    return status;
}

enum troupe_status troupe_infer_pack(struct troupe_infer *infer)
{
    struct troupe_shape one = infer->input_shapes[0];
    int at;
    for (int i = 1; i < infer->input_count; i++) {
        char a[TROUPE_SHAPE_TEXT_MAX], b[TROUPE_SHAPE_TEXT_MAX];
        struct troupe_shape before = one;
        if (troupe_shape_merge(&before, &infer->input_shapes[i], &one) != TROUPE_OK)
            return troupe_status_fail(
                TROUPE_INVALID_ARGUMENT, "values to pack want one shape, got %s and %s",
                troupe_shape_print(&before, a), troupe_shape_print(&infer->input_shapes[i], b));
    }
    if (one.rank < 0)
        return TROUPE_OK;
    if (one.rank == TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor has at most %d dimensions",
                                  TROUPE_RANK_MAX);
    enum troupe_status status =
        troupe_axis_resolve(troupe_infer_int(infer, "axis"), one.rank + 1, "attr \"axis\"", &at);
    if (status != TROUPE_OK)
        return status;
    struct troupe_shape to = troupe_shape_of_rank(one.rank + 1);
    for (int i = 0; i < to.rank; i++)
        to.dims[i] = i < at ? one.dims[i] : i == at ? infer->input_count : one.dims[i - 1];
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_unpack(struct troupe_infer *infer)
{
    const struct troupe_shape *from = &infer->input_shapes[0];
    int at;
    if (from->rank < 0)
        return TROUPE_OK;
    enum troupe_status status =
        troupe_axis_resolve(troupe_infer_int(infer, "axis"), from->rank, "attr \"axis\"", &at);
    if (status != TROUPE_OK)
        return status;
    char text[TROUPE_SHAPE_TEXT_MAX];
    if (from->dims[at] >= 0 && from->dims[at] != infer->output_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "shape %s has %lld entries along axis %d, attr \"num\" says %d",
                                  troupe_shape_print(from, text), (long long)from->dims[at], at,
                                  infer->output_count);
    struct troupe_shape to = troupe_shape_of_rank(from->rank - 1);
    for (int i = 0; i < to.rank; i++)
        to.dims[i] = from->dims[i < at ? i : i + 1];
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = to;
    return TROUPE_OK;
}

/* params[:axis] + indices[batch:] + params[axis + 1:], once the first `batch` dimensions agree. */
static enum troupe_status gather_shape(struct troupe_infer *infer, int axis, int batch)
{
    const struct troupe_shape *params = &infer->input_shapes[0];
    const struct troupe_shape *indices = &infer->input_shapes[1];
    struct troupe_shape to = {.rank = 0};
    if (params->rank - 1 + indices->rank - batch > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor has at most %d dimensions",
                                  TROUPE_RANK_MAX);
    for (int i = 0; i < batch; i++) {
        if (params->dims[i] >= 0 && indices->dims[i] >= 0 && params->dims[i] != indices->dims[i]) {
            char a[TROUPE_SHAPE_TEXT_MAX], b[TROUPE_SHAPE_TEXT_MAX];
            return troupe_status_fail(
                TROUPE_INVALID_ARGUMENT, "shapes %s and %s differ in batch dimension %d",
                troupe_shape_print(params, a), troupe_shape_print(indices, b), i);
        }
    }
    for (int i = 0; i < axis; i++)
        to.dims[to.rank++] = params->dims[i];
    for (int i = batch; i < indices->rank; i++)
        to.dims[to.rank++] = indices->dims[i];
    for (int i = axis + 1; i < params->rank; i++)
        to.dims[to.rank++] = params->dims[i];
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}

static enum troupe_status infer_gather(struct troupe_infer *infer, int64_t axis, int64_t batch)
{
    const struct troupe_shape *params = &infer->input_shapes[0];
    const struct troupe_shape *indices = &infer->input_shapes[1];
    int at;
    if (params->rank < 0)
        return TROUPE_OK;
    enum troupe_status status = troupe_axis_resolve(axis, params->rank, "axis", &at);
    if (status != TROUPE_OK || indices->rank < 0)
        return status;
    int most = indices->rank < at ? indices->rank : at;
    if (batch < -indices->rank || (batch < 0 ? batch + indices->rank : batch) > most)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "attr \"batch_dims\" is %lld: wants at most %d, the axis and the "
                                  "rank of indices",
                                  (long long)batch, most);
    return gather_shape(infer, at, (int)(batch < 0 ? batch + indices->rank : batch));
}

enum troupe_status troupe_infer_gather(struct troupe_infer *infer)
{
    return infer_gather(infer, 0, 0);
}

enum troupe_status troupe_infer_gather_v2(struct troupe_infer *infer)
{
    int64_t axis;
    bool known;
    enum troupe_status status = troupe_infer_read_int(infer, 2, "axis", &axis, &known);
    if (status != TROUPE_OK || !known)
        return status;
    return infer_gather(infer, axis, troupe_infer_int(infer, "batch_dims"));
}

/* [num_segments] + data[rank of segment_ids:]. */
enum troupe_status troupe_infer_unsorted_segment_sum(struct troupe_infer *infer)
{
    const struct troupe_shape *data = &infer->input_shapes[0], *ids = &infer->input_shapes[1];
    struct troupe_shape merged, front = *ids, prefix = *data, to = {.rank = 1};
    int64_t segments;
    bool known;
    char a[TROUPE_SHAPE_TEXT_MAX], b[TROUPE_SHAPE_TEXT_MAX];
    enum troupe_status status = troupe_infer_read_int(infer, 2, "num_segments", &segments, &known);
    if (status != TROUPE_OK)
        return status;
    if (known && segments < 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"num_segments\" is %lld: wants 0 or more", (long long)segments);
    if (data->rank < 0 || ids->rank < 0)
        return TROUPE_OK;
    prefix.rank = ids->rank;
    if (ids->rank > data->rank || troupe_shape_merge(&front, &prefix, &merged) != TROUPE_OK)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT,
            "\"segment_ids\" of shape %s wants to be a prefix of \"data\"'s %s",
            troupe_shape_print(ids, a), troupe_shape_print(data, b));
    if (data->rank - ids->rank + 1 > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a tensor has at most %d dimensions",
                                  TROUPE_RANK_MAX);
    to.dims[0] = known ? segments : TROUPE_DIM_UNKNOWN;
    for (int i = ids->rank; i < data->rank; i++)
        to.dims[to.rank++] = data->dims[i];
    infer->output_shapes[0] = to;
    return TROUPE_OK;
}
