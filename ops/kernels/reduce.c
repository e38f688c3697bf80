/* Reductions over any axes. Invariant: each output is reduced in an order that depends on the
 * shape alone, never on how the work is split, so that results are the same for any number of
 * workers. Integers wrap. */
#include "ops/kernels/reduce.h"

#include <math.h>

#include "base/memory.h"
#include "ops/kernels/shapes.h"
#include "ops/reduce.h"
#include "ops/tensor.h"

/* Independent accumulators of a run, runs that are one chain, and those that are not halved. */
#define TROUPE_LANES 16
#define TROUPE_CHAIN 32
#define TROUPE_RUN   1024
/* Elements that are worth a worker; a reduction to one element is cut in pieces of as many. */
#define TROUPE_PIECE 32768
/* Outputs that stay in the cache while rows are joined into them. */
#define TROUPE_BLOCK 1024
#define TROUPE_ROWS  64

/* One function and dtype. */
struct reduction {
    void (*start)(void *out, int64_t count);                    /* identities */
    void (*chain)(void *out, const void *in, int64_t count);    /* a run into one output */
    void (*strips)(void *lanes, const void *in, int64_t count); /* strips of one per lane */
    void (*join)(void *out, const void *in, int64_t count);     /* in[i] into out[i] */
};

#define TROUPE_FLOAT_ROWS(X)                                                                       \
    X(sum, 0, a + b)                                                                               \
    X(prod, 1, a *b)                                                                               \
    X(max, -INFINITY, ((a > b) | (a != a)) ? a : b)                                                \
    X(min, INFINITY, ((a < b) | (a != a)) ? a : b)

#define TROUPE_INTEGER_ROWS(X)                                                                     \
    X(sum, 0, (WIDE)a + (WIDE)b)                                                                   \
    X(prod, 1, (WIDE)a *(WIDE)b)                                                                   \
    X(max, LEAST, a > b ? a : b)                                                                   \
    X(min, LARGEST, a < b ? a : b)

#define TROUPE_BOOL_ROWS(X)                                                                        \
    X(all, 1, a &b)                                                                                \
    X(any, 0, a | b)

/* One output index each, of a search along an axis. */
struct search {
    const void *in;
    void *out;
    int64_t count, inner; /* along the axis; behind it */
    bool wants_least, is_long;
};

#define IS_NAN(a)  isnan(a)
#define TYPE       float
#define NAME(stem) stem##_float32
#define ROWS       TROUPE_FLOAT_ROWS
#include "ops/kernels/reduce.inc.h"
#include "ops/kernels/reduce_arg.inc.h"
#undef TYPE
#undef NAME
#define TYPE       double
#define NAME(stem) stem##_float64
#include "ops/kernels/reduce.inc.h"
#include "ops/kernels/reduce_arg.inc.h"
#undef TYPE
#undef NAME
#undef ROWS
#undef IS_NAN
#define IS_NAN(a)  false
#define ROWS       TROUPE_INTEGER_ROWS
#define TYPE       int32_t
#define WIDE       uint32_t
#define LEAST      INT32_MIN
#define LARGEST    INT32_MAX
#define NAME(stem) stem##_int32
#include "ops/kernels/reduce.inc.h"
#include "ops/kernels/reduce_arg.inc.h"
#undef TYPE
#undef WIDE
#undef LEAST
#undef LARGEST
#undef NAME
#define TYPE       int64_t
#define WIDE       uint64_t
#define LEAST      INT64_MIN
#define LARGEST    INT64_MAX
#define NAME(stem) stem##_int64
#include "ops/kernels/reduce.inc.h"
#include "ops/kernels/reduce_arg.inc.h"
#undef TYPE
#undef WIDE
#undef LEAST
#undef LARGEST
#undef NAME
#define TYPE       uint8_t
#define WIDE       uint32_t
#define LEAST      0
#define LARGEST    UINT8_MAX
#define NAME(stem) stem##_uint8
#include "ops/kernels/reduce.inc.h"
#include "ops/kernels/reduce_arg.inc.h"
#undef ROWS
#undef NAME
#undef IS_NAN
#define ROWS       TROUPE_BOOL_ROWS
#define NAME(stem) stem##_bool
#include "ops/kernels/reduce.inc.h"
#undef TYPE
#undef WIDE
#undef LEAST
#undef LARGEST
#undef NAME
#undef ROWS

/* The input's axes, neighbours of one kind merged, as two loops: over outputs and into each. */
struct axes {
    int rank;
    int64_t dims[TROUPE_RANK_MAX], steps[TROUPE_RANK_MAX]; /* in elements of the input */
    int64_t total;
};

struct reducing {
    const struct reduction *reduction;
    const char *in;
    char *out;
    int64_t size;           /* of an element, in bytes */
    struct axes kept, gone; /* without the run */
    int64_t run;            /* the innermost axis: merged, contiguous */
    bool run_is_kept;
};

static void axes_add(struct axes *axes, int64_t dim, int64_t step)
{
    axes->dims[axes->rank] = dim;
    axes->steps[axes->rank++] = step;
    axes->total *= dim;
}

/* Splits the axes of `shape` into those that are kept and those that are reduced. */
static void split_axes(struct reducing *self, const struct troupe_shape *shape, unsigned reduced)
{
    int64_t dims[TROUPE_RANK_MAX];
    bool gone[TROUPE_RANK_MAX];
    int count = 0;
    for (int i = 0; i < shape->rank; i++) {
        bool is_gone = (reduced & (1U << i)) != 0;
        if (shape->dims[i] == 1)
            continue;
        if (count > 0 && gone[count - 1] == is_gone) {
            dims[count - 1] *= shape->dims[i];
        } else {
            dims[count] = shape->dims[i];
            gone[count++] = is_gone;
        }
    }
    self->kept.total = self->gone.total = self->run = 1;
    if (count == 0)
        return;
    self->run = dims[count - 1];
    self->run_is_kept = !gone[count - 1];
    int64_t steps[TROUPE_RANK_MAX];
    troupe_dims_strides(dims, count, steps);
    for (int i = 0; i < count - 1; i++)
        axes_add(gone[i] ? &self->gone : &self->kept, dims[i], steps[i]);
}

/* Where index number `number` of a loop nest is. */
static int64_t axes_offset(const struct axes *axes, int64_t number)
{
    int64_t offset = 0;
    for (int i = axes->rank - 1; i >= 0; i--) {
        offset += number % axes->dims[i] * axes->steps[i];
        number /= axes->dims[i];
    }
    return offset;
}

/* Reduces a run into one output. Long ones are halved, so that rounding errors grow with the
 * logarithm of the length. */
static void fold(const struct reducing *self, char *out, const char *in, int64_t count)
{
    const struct reduction *reduction = self->reduction;
    _Alignas(64) char lanes[TROUPE_LANES * sizeof(double)];
    if (count <= TROUPE_CHAIN) {
        reduction->chain(out, in, count);
        return;
    }
    if (count > TROUPE_RUN) {
        int64_t half = (count / 2 + TROUPE_RUN - 1) / TROUPE_RUN * TROUPE_RUN;
        reduction->start(lanes, 1);
        fold(self, lanes, in, half);
        reduction->join(out, lanes, 1);
        reduction->start(lanes, 1);
        fold(self, lanes, in + half * self->size, count - half);
        reduction->join(out, lanes, 1);
        return;
    }
    int64_t strips = count / TROUPE_LANES, done = strips * TROUPE_LANES;
    reduction->start(lanes, TROUPE_LANES);
    reduction->strips(lanes, in, strips);
    reduction->join(lanes, in + done * self->size, count - done);
    for (int width = TROUPE_LANES / 2; width > 0; width /= 2)
        reduction->join(lanes, lanes + width * self->size, width);
    reduction->join(out, lanes, 1);
}

/* Outputs [begin, end), the run being reduced. */
static void reduce_runs(void *context, int64_t begin, int64_t end)
{
    const struct reducing *self = context;
    self->reduction->start(self->out + begin * self->size, end - begin);
    for (int64_t i = begin; i < end; i++) {
        int64_t base = axes_offset(&self->kept, i);
        for (int64_t j = 0; j < self->gone.total; j++)
            fold(self, self->out + i * self->size,
                 self->in + (base + axes_offset(&self->gone, j)) * self->size, self->run);
    }
}

/* Reduces `count` neighbours of a row in all rows. Every so many rows go through a sum of their
 * own, for the sake of rounding errors, as runs are halved. */
static void join_rows(const struct reducing *self, char *out, const char *in, int64_t count)
{
    const struct reduction *reduction = self->reduction;
    _Alignas(64) char part[TROUPE_BLOCK * sizeof(double)];
    int64_t rows = self->gone.total;
    for (int64_t first = 0; first < rows; first += TROUPE_ROWS) {
        int64_t end = rows - first < TROUPE_ROWS ? rows : first + TROUPE_ROWS;
        char *sum = rows > TROUPE_ROWS ? part : out;
        if (sum == part)
            reduction->start(part, count);
        for (int64_t row = first; row < end; row++)
            reduction->join(sum, in + axes_offset(&self->gone, row) * self->size, count);
        if (sum == part)
            reduction->join(out, part, count);
    }
}

/* Outputs [begin, end), the run being kept: whole rows are joined, block by block. */
static void reduce_rows(void *context, int64_t begin, int64_t end)
{
    const struct reducing *self = context;
    self->reduction->start(self->out + begin * self->size, end - begin);
    for (int64_t i = begin; i < end;) {
        int64_t at = i % self->run, count = self->run - at;
        count = count < TROUPE_BLOCK ? count : TROUPE_BLOCK;
        count = count < end - i ? count : end - i;
        int64_t offset = axes_offset(&self->kept, i / self->run) + at;
        join_rows(self, self->out + i * self->size, self->in + offset * self->size, count);
        i += count;
    }
}

/* Pieces [begin, end) of the one run, each into a place of its own. */
static void reduce_pieces(void *context, int64_t begin, int64_t end)
{
    const struct reducing *self = context;
    self->reduction->start(self->out + begin * self->size, end - begin);
    for (int64_t i = begin; i < end; i++) {
        int64_t left = self->run - i * TROUPE_PIECE;
        fold(self, self->out + i * self->size, self->in + i * TROUPE_PIECE * self->size,
             left < TROUPE_PIECE ? left : TROUPE_PIECE);
    }
}

static enum troupe_status reduce_to_one(struct reducing *self, struct troupe_parallel *parallel)
{
    int64_t pieces = (self->run + TROUPE_PIECE - 1) / TROUPE_PIECE;
    size_t bytes = (size_t)(pieces * self->size);
    char *out = self->out, *parts = troupe_memory_alloc(bytes);
    if (!parts)
        return TROUPE_RESOURCE_EXHAUSTED;
    self->out = parts;
    troupe_parallel_for(parallel, pieces, 1, reduce_pieces, self);
    self->reduction->start(out, 1);
    fold(self, out, parts, pieces);
    troupe_memory_free(parts, bytes);
    return TROUPE_OK;
}

/* Makes output 0, of shape `out_shape`, and reduces input 0 into it. */
static enum troupe_status reduce_into(struct troupe_kernel_call *call,
                                      const struct reduction *reduction, unsigned axes,
                                      const struct troupe_shape *out_shape)
{
    const struct troupe_tensor *in = call->inputs[0];
    struct troupe_shape shape = troupe_shape_of(in);
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_output(call, 0, out_shape->rank, out_shape->dims, &out);
    if (status != TROUPE_OK || out->elements == 0)
        return status;
    struct reducing self = {.reduction = reduction,
                            .in = troupe_tensor_data(in),
                            .out = troupe_tensor_data_mutable(out),
                            .size = (int64_t)troupe_dtype_size(in->dtype)};
    if (in->elements == 0) {
        reduction->start(self.out, out->elements);
        return TROUPE_OK;
    }
    split_axes(&self, &shape, axes);
    if (out->elements == 1 && !self.run_is_kept && self.run > TROUPE_PIECE)
        return reduce_to_one(&self, call->parallel);
    int64_t each = in->elements / out->elements;
    int64_t grain = each < TROUPE_PIECE ? TROUPE_PIECE / each : 1;
    /* Short parts of rows would be read without any use of the cache's lines. */
    if (self.run_is_kept && grain < TROUPE_LANES)
        grain = TROUPE_LANES;
    troupe_parallel_for(call->parallel, out->elements, grain,
                        self.run_is_kept ? reduce_rows : reduce_runs, &self);
    return TROUPE_OK;
}

static enum troupe_status call_reduce(struct troupe_kernel_call *call,
                                      const struct reduction *const *of_dtype)
{
    const struct troupe_tensor *in = call->inputs[0];
    struct troupe_shape shape;
    unsigned axes;
    enum troupe_status status = troupe_call_shapes(call, &shape);
    if (status == TROUPE_OK)
        status = troupe_reduce_axes(call->inputs[1], in->rank, &axes);
    if (status == TROUPE_OK)
        status = reduce_into(call, of_dtype[in->dtype], axes, &shape);
    return status;
}

#define TROUPE_NUMBERS(stem)                                                                       \
    [TROUPE_FLOAT32] = &stem##_float32, [TROUPE_FLOAT64] = &stem##_float64,                        \
    [TROUPE_INT32] = &stem##_int32, [TROUPE_INT64] = &stem##_int64, [TROUPE_UINT8] = &stem##_uint8
#define TROUPE_BOOLS(stem) [TROUPE_BOOL] = &stem##_bool

#define TROUPE_ROW(stem, types)                                                                    \
    static const struct reduction *const stem##_of[TROUPE_DTYPE_COUNT] = {types(stem)};
TROUPE_ROW(sum, TROUPE_NUMBERS)
TROUPE_ROW(prod, TROUPE_NUMBERS)
TROUPE_ROW(max, TROUPE_NUMBERS)
TROUPE_ROW(min, TROUPE_NUMBERS)
TROUPE_ROW(all, TROUPE_BOOLS)
TROUPE_ROW(any, TROUPE_BOOLS)
#undef TROUPE_ROW

enum troupe_status troupe_call_sum(struct troupe_kernel_call *call, unsigned axes,
                                   const struct troupe_shape *shape)
{
    return reduce_into(call, sum_of[call->inputs[0]->dtype], axes, shape);
}

enum troupe_status troupe_kernel_sum(struct troupe_kernel_call *call)
{
    return call_reduce(call, sum_of);
}

enum troupe_status troupe_kernel_prod(struct troupe_kernel_call *call)
{
    return call_reduce(call, prod_of);
}

enum troupe_status troupe_kernel_max(struct troupe_kernel_call *call)
{
    return call_reduce(call, max_of);
}

enum troupe_status troupe_kernel_min(struct troupe_kernel_call *call)
{
    return call_reduce(call, min_of);
}

enum troupe_status troupe_kernel_all(struct troupe_kernel_call *call)
{
    return call_reduce(call, all_of);
}

enum troupe_status troupe_kernel_any(struct troupe_kernel_call *call)
{
    return call_reduce(call, any_of);
}

static void divide(struct troupe_tensor *tensor, int64_t count)
{
    void *data = troupe_tensor_data_mutable(tensor);
    for (int64_t i = 0; i < tensor->elements; i++) {
        switch (tensor->dtype) {
        case TROUPE_FLOAT32:
            ((float *)data)[i] /= (float)count;
            break;
        case TROUPE_FLOAT64:
            ((double *)data)[i] /= (double)count;
            break;
        case TROUPE_INT32:
            ((int32_t *)data)[i] = (int32_t)(((int32_t *)data)[i] / count);
            break;
        default:
            ((int64_t *)data)[i] /= count;
        }
    }
}

/* The mean of no floats is NaN; integers have none. */
enum troupe_status troupe_kernel_mean(struct troupe_kernel_call *call)
{
    enum troupe_status status = call_reduce(call, sum_of);
    if (status != TROUPE_OK || call->outputs[0]->elements == 0)
        return status;
    int64_t count = call->inputs[0]->elements / call->outputs[0]->elements;
    if (count == 0 && !troupe_dtype_is_floating(call->outputs[0]->dtype))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "the mean of no integers: Mean wants 1 or more");
    divide(call->outputs[0], count);
    return TROUPE_OK;
}

static enum troupe_status call_arg(struct troupe_kernel_call *call, bool wants_least)
{
    static void (*const places[TROUPE_DTYPE_COUNT])(void *, int64_t, int64_t) = {
        [TROUPE_FLOAT32] = places_float32, [TROUPE_FLOAT64] = places_float64,
        [TROUPE_INT32] = places_int32,     [TROUPE_INT64] = places_int64,
        [TROUPE_UINT8] = places_uint8,
    };
    const struct troupe_tensor *in = call->inputs[0];
    struct troupe_tensor *out;
    int axis;
    enum troupe_status status = troupe_call_outputs(call);
    if (status == TROUPE_OK)
        status = troupe_axis_resolve(troupe_tensor_int(call->inputs[1], 0), in->rank, "dimension",
                                     &axis);
    if (status != TROUPE_OK)
        return status;
    out = call->outputs[0];
    if (out->dtype == TROUPE_INT32 && in->dims[axis] > INT32_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%lld entries do not count as int32: output_type wants int64",
                                  (long long)in->dims[axis]);
    struct search search = {.in = troupe_tensor_data(in),
                            .out = troupe_tensor_data_mutable(out),
                            .count = in->dims[axis],
                            .inner = troupe_dims_product(in->dims, axis + 1, in->rank),
                            .wants_least = wants_least,
                            .is_long = out->dtype == TROUPE_INT64};
    if (out->elements > 0)
        troupe_parallel_for(call->parallel, out->elements,
                            search.count < TROUPE_PIECE ? TROUPE_PIECE / search.count : 1,
                            places[in->dtype], &search);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_arg_max(struct troupe_kernel_call *call)
{
    return call_arg(call, false);
}

enum troupe_status troupe_kernel_arg_min(struct troupe_kernel_call *call)
{
    return call_arg(call, true);
}
