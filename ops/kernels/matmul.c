/* Matrix products through OpenBLAS, with one BLAS thread: a large product is split over the workers
 * by rows of the result. Invariant: the split depends on the sizes and the number of workers alone,
 * so that the same run gives the same bits. */
#include "ops/kernels/matmul.h"

#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

/* Floating-point operations below which a product is not split. */
#define TROUPE_MATMUL_SPLIT_FLOPS 8e6
/* Rows that one worker takes at least: below, packing costs more than it gains. */
#define TROUPE_MATMUL_ROWS_MIN 16

struct product {
    const void *a, *b;
    void *c;
    enum troupe_dtype dtype;
    bool transpose_a, transpose_b;
    int64_t rows, columns, inner;
    int64_t a_stride, b_stride;
};

static pthread_once_t blas_once = PTHREAD_ONCE_INIT;

/* OpenBLAS's own threads would compete with the workers. */
static void blas_start(void)
{
    openblas_set_num_threads(1);
}

static void multiply_integers(const struct product *product, int64_t begin, int64_t end)
{
    bool is_long = product->dtype == TROUPE_INT64;
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < product->columns; j++) {
            uint64_t sum = 0; /* wraps, as integer overflow does in TensorFlow */
            for (int64_t k = 0; k < product->inner; k++) {
                int64_t at_a =
                    product->transpose_a ? k * product->a_stride + i : i * product->a_stride + k;
                int64_t at_b =
                    product->transpose_b ? j * product->b_stride + k : k * product->b_stride + j;
                int64_t a = is_long ? ((const int64_t *)product->a)[at_a]
                                    : ((const int32_t *)product->a)[at_a];
                int64_t b = is_long ? ((const int64_t *)product->b)[at_b]
                                    : ((const int32_t *)product->b)[at_b];
                sum += (uint64_t)a * (uint64_t)b;
            }
            if (is_long)
                ((int64_t *)product->c)[i * product->columns + j] = (int64_t)sum;
            else
                ((int32_t *)product->c)[i * product->columns + j] = (int32_t)(uint32_t)sum;
        }
}

/* Rows [begin, end) of the result. */
static void multiply_rows(void *context, int64_t begin, int64_t end)
{
    const struct product *product = context;
    CBLAS_TRANSPOSE ta = product->transpose_a ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = product->transpose_b ? CblasTrans : CblasNoTrans;
    int64_t first_a = product->transpose_a ? begin : begin * product->a_stride;
    blasint rows = (blasint)(end - begin), columns = (blasint)product->columns;
    blasint inner = (blasint)product->inner, a_stride = (blasint)product->a_stride;
    blasint b_stride = (blasint)product->b_stride;
    if (product->dtype == TROUPE_FLOAT32)
        cblas_sgemm(CblasRowMajor, ta, tb, rows, columns, inner, 1.0f,
                    (const float *)product->a + first_a, a_stride, product->b, b_stride, 0.0f,
                    (float *)product->c + begin * product->columns, columns);
    else if (product->dtype == TROUPE_FLOAT64)
        cblas_dgemm(CblasRowMajor, ta, tb, rows, columns, inner, 1.0,
                    (const double *)product->a + first_a, a_stride, product->b, b_stride, 0.0,
                    (double *)product->c + begin * product->columns, columns);
    else
        multiply_integers(product, begin, end);
}

static int64_t grain_of(const struct troupe_kernel_call *call, const struct product *product)
{
    double flops = 2.0 * (double)product->rows * (double)product->columns * (double)product->inner;
    int width = call->parallel ? call->parallel->width : 1;
    if (width < 2 || flops < TROUPE_MATMUL_SPLIT_FLOPS)
        return product->rows;
    int64_t grain = (product->rows + width - 1) / width;
    return grain < TROUPE_MATMUL_ROWS_MIN ? TROUPE_MATMUL_ROWS_MIN : grain;
}

enum troupe_status troupe_kernel_matmul(struct troupe_kernel_call *call)
{
    struct troupe_tensor *a = call->inputs[0], *b = call->inputs[1];
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor *c = call->outputs[0];
    struct product product = {.a = troupe_tensor_data(a),
                              .b = troupe_tensor_data(b),
                              .c = troupe_tensor_data_mutable(c),
                              .dtype = troupe_tensor_dtype(c),
                              .transpose_a = troupe_kernel_bool(call->kernel, "transpose_a"),
                              .transpose_b = troupe_kernel_bool(call->kernel, "transpose_b"),
                              .rows = troupe_tensor_dims(c)[0],
                              .columns = troupe_tensor_dims(c)[1],
                              .a_stride = troupe_tensor_dims(a)[1],
                              .b_stride = troupe_tensor_dims(b)[1]};
    product.inner = troupe_tensor_dims(a)[product.transpose_a ? 0 : 1];
    if (product.rows > INT_MAX || product.columns > INT_MAX || product.inner > INT_MAX)
        return troupe_status_fail(TROUPE_UNIMPLEMENTED,
                                  "a matrix has more than %d rows or columns, BLAS's limit",
                                  INT_MAX);
    if (troupe_tensor_elements(c) == 0)
        return TROUPE_OK;
    if (product.inner == 0) { /* an empty sum */
        memset(product.c, 0, troupe_tensor_bytes(c));
        return TROUPE_OK;
    }
    pthread_once(&blas_once, blas_start);
    troupe_parallel_for(call->parallel, product.rows, grain_of(call, &product), multiply_rows,
                        &product);
    return TROUPE_OK;
}
