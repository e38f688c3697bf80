/* Matrix products through OpenBLAS, with one BLAS thread: a large product is split over the workers
 * by rows of the result, or by columns where there are few rows. Invariant: the split depends on
 * the sizes and the number of workers alone, so that the same run gives the same bits. */
#include "ops/kernels/matmul.h"

#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

/* Floating-point operations below which a product is not split. */
#define TROUPE_MATMUL_SPLIT_FLOPS 8e6
/* Rows or columns that one worker takes at least: below, packing costs more than it gains. */
#define TROUPE_MATMUL_PART_MIN 16

struct product {
    const void *a, *b;
    void *c;
    enum troupe_dtype dtype;
    bool transpose_a, transpose_b;
    int64_t rows, columns, inner;
    int64_t a_stride, b_stride;
    int64_t c_stride; /* of the whole result, of which this may be a part */
};

static pthread_once_t blas_once = PTHREAD_ONCE_INIT;

/* OpenBLAS's own threads would compete with the workers. */
static void blas_start(void)
{
    openblas_set_num_threads(1);
}

static int64_t integer_at(const struct product *product, const void *data, int64_t at)
{
    return product->dtype == TROUPE_INT64 ? ((const int64_t *)data)[at]
                                          : ((const int32_t *)data)[at];
}

static void multiply_integers(const struct product *product)
{
    for (int64_t i = 0; i < product->rows; i++)
        for (int64_t j = 0; j < product->columns; j++) {
            uint64_t sum = 0; /* wraps, as integer overflow does in TensorFlow */
            for (int64_t k = 0; k < product->inner; k++) {
                int64_t at_a =
                    product->transpose_a ? k * product->a_stride + i : i * product->a_stride + k;
                int64_t at_b =
                    product->transpose_b ? j * product->b_stride + k : k * product->b_stride + j;
                sum += (uint64_t)integer_at(product, product->a, at_a) *
                       (uint64_t)integer_at(product, product->b, at_b);
            }
            if (product->dtype == TROUPE_INT64)
                ((int64_t *)product->c)[i * product->c_stride + j] = (int64_t)sum;
            else
                ((int32_t *)product->c)[i * product->c_stride + j] = (int32_t)(uint32_t)sum;
        }
}

static void multiply(const struct product *product)
{
    CBLAS_TRANSPOSE ta = product->transpose_a ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = product->transpose_b ? CblasTrans : CblasNoTrans;
    blasint rows = (blasint)product->rows, columns = (blasint)product->columns;
    blasint inner = (blasint)product->inner, a_stride = (blasint)product->a_stride;
    blasint b_stride = (blasint)product->b_stride, c_stride = (blasint)product->c_stride;
    if (product->dtype == TROUPE_FLOAT32)
        cblas_sgemm(CblasRowMajor, ta, tb, rows, columns, inner, 1.0f, product->a, a_stride,
                    product->b, b_stride, 0.0f, product->c, c_stride);
    else if (product->dtype == TROUPE_FLOAT64)
        cblas_dgemm(CblasRowMajor, ta, tb, rows, columns, inner, 1.0, product->a, a_stride,
                    product->b, b_stride, 0.0, product->c, c_stride);
    else
        multiply_integers(product);
}

static const void *const_at(const struct product *product, const void *data, int64_t elements)
{
    return (const char *)data + elements * (int64_t)troupe_dtype_size(product->dtype);
}

static void *mutable_at(const struct product *product, void *data, int64_t elements)
{
    return (char *)data + elements * (int64_t)troupe_dtype_size(product->dtype);
}

/* Rows [begin, end) of the result. */
static void multiply_rows(void *context, int64_t begin, int64_t end)
{
    const struct product *whole = context;
    struct product part = *whole;
    part.a = const_at(whole, whole->a, whole->transpose_a ? begin : begin * whole->a_stride);
    part.c = mutable_at(whole, whole->c, begin * whole->c_stride);
    part.rows = end - begin;
    multiply(&part);
}

/* Columns [begin, end) of the result. */
static void multiply_columns(void *context, int64_t begin, int64_t end)
{
    const struct product *whole = context;
    struct product part = *whole;
    part.b = const_at(whole, whole->b, whole->transpose_b ? begin * whole->b_stride : begin);
    part.c = mutable_at(whole, whole->c, begin);
    part.columns = end - begin;
    multiply(&part);
}

static double flops_of(const struct product *product)
{
    return 2.0 * (double)product->rows * (double)product->columns * (double)product->inner;
}

/* One product, split when it is large. */
static void multiply_split(struct troupe_parallel *parallel, struct product *product)
{
    int width = parallel ? parallel->width : 1;
    bool by_rows = product->rows >= product->columns || product->rows >= 64 * (int64_t)width;
    int64_t total = by_rows ? product->rows : product->columns;
    int64_t grain = (total + width - 1) / width;
    if (grain < TROUPE_MATMUL_PART_MIN)
        grain = TROUPE_MATMUL_PART_MIN;
    if (width < 2 || flops_of(product) < TROUPE_MATMUL_SPLIT_FLOPS)
        multiply(product);
    else
        troupe_parallel_for(parallel, total, grain, by_rows ? multiply_rows : multiply_columns,
                            product);
}

/* The sizes of one product from the last two dimensions of its operands. UNIMPLEMENTED when they
 * are beyond BLAS. */
static enum troupe_status product_init(struct product *product, const struct troupe_tensor *a,
                                       const struct troupe_tensor *b, struct troupe_tensor *c)
{
    const int64_t *a_dims = a->dims + a->rank - 2, *b_dims = b->dims + b->rank - 2;
    const int64_t *c_dims = c->dims + c->rank - 2;
    product->a = troupe_tensor_data(a);
    product->b = troupe_tensor_data(b);
    product->c = troupe_tensor_data_mutable(c);
    product->dtype = c->dtype;
    product->rows = c_dims[0];
    product->columns = c_dims[1];
    product->inner = a_dims[product->transpose_a ? 0 : 1];
    product->a_stride = a_dims[1];
    product->b_stride = b_dims[1];
    product->c_stride = c_dims[1];
    if (product->rows > INT_MAX || product->columns > INT_MAX || product->inner > INT_MAX)
        return troupe_status_fail(TROUPE_UNIMPLEMENTED,
                                  "a matrix has more than %d rows or columns, BLAS's limit",
                                  INT_MAX);
    if (c->elements > 0 && product->inner == 0) /* empty sums */
        memset(product->c, 0, troupe_tensor_bytes(c));
    pthread_once(&blas_once, blas_start);
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_matmul(struct troupe_kernel_call *call)
{
    struct product product = {.transpose_a = troupe_kernel_bool(call->kernel, "transpose_a"),
                              .transpose_b = troupe_kernel_bool(call->kernel, "transpose_b")};
    enum troupe_status status = troupe_call_outputs(call);
    if (status == TROUPE_OK)
        status = product_init(&product, call->inputs[0], call->inputs[1], call->outputs[0]);
    if (status == TROUPE_OK && call->outputs[0]->elements > 0 && product.inner > 0)
        multiply_split(call->parallel, &product);
    return status;
}

/* ---- Batches ---- */

/* Products whose operands broadcast in the leading dimensions. */
struct batch {
    struct product first;
    int rank; /* of the leading dimensions of the result */
    int64_t dims[TROUPE_RANK_MAX];
    int64_t a_steps[TROUPE_RANK_MAX], b_steps[TROUPE_RANK_MAX]; /* in elements */
};

/* How far apart the matrices of an operand are, along each leading dimension of the result. */
static void batch_steps(const struct batch *batch, const struct troupe_tensor *operand,
                        int64_t *steps)
{
    int missing = batch->rank - (operand->rank - 2);
    int64_t distance = operand->dims[operand->rank - 2] * operand->dims[operand->rank - 1];
    for (int i = batch->rank - 1; i >= 0; i--) {
        int64_t size = i < missing ? 1 : operand->dims[i - missing];
        steps[i] = size == 1 ? 0 : distance;
        distance *= size;
    }
}

/* Product number `index`. */
static struct product batch_product(const struct batch *batch, int64_t index)
{
    struct product product = batch->first;
    int64_t rest = index, a = 0, b = 0;
    for (int i = batch->rank - 1; i >= 0; i--) {
        a += rest % batch->dims[i] * batch->a_steps[i];
        b += rest % batch->dims[i] * batch->b_steps[i];
        rest /= batch->dims[i];
    }
    product.a = const_at(&product, product.a, a);
    product.b = const_at(&product, product.b, b);
    product.c = mutable_at(&product, product.c, index * product.rows * product.columns);
    return product;
}

static void multiply_batch(void *context, int64_t begin, int64_t end)
{
    const struct batch *batch = context;
    for (int64_t index = begin; index < end; index++) {
        struct product product = batch_product(batch, index);
        multiply(&product);
    }
}

enum troupe_status troupe_kernel_batch_matmul(struct troupe_kernel_call *call)
{
    struct batch batch = {.first = {.transpose_a = troupe_kernel_bool(call->kernel, "adj_x"),
                                    .transpose_b = troupe_kernel_bool(call->kernel, "adj_y")}};
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_tensor *x = call->inputs[0], *y = call->inputs[1];
    struct troupe_tensor *out = call->outputs[0];
    status = product_init(&batch.first, x, y, out);
    if (status != TROUPE_OK || out->elements == 0 || batch.first.inner == 0)
        return status;
    batch.rank = out->rank - 2;
    for (int i = 0; i < batch.rank; i++)
        batch.dims[i] = out->dims[i];
    batch_steps(&batch, x, batch.a_steps);
    batch_steps(&batch, y, batch.b_steps);
    int64_t count = out->elements / (batch.first.rows * batch.first.columns);
    if (count == 1) {
        multiply_split(call->parallel, &batch.first);
        return TROUPE_OK;
    }
    double flops = flops_of(&batch.first);
    int64_t grain = flops < TROUPE_MATMUL_SPLIT_FLOPS / 2
                        ? (int64_t)(TROUPE_MATMUL_SPLIT_FLOPS / 2 / flops)
                        : 1;
    troupe_parallel_for(call->parallel, count, grain, multiply_batch, &batch);
    return TROUPE_OK;
}
