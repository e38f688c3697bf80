/* Matrix products. */
#include "ops/kernels/matmul.h"

#include <stdio.h>
#include <string.h>

#include "ops/families.h"
#include "ops/gradient.h"

static enum troupe_status infer_matmul(struct troupe_infer *infer)
{
    const struct troupe_shape *a = &infer->input_shapes[0], *b = &infer->input_shapes[1];
    bool transpose_a = troupe_infer_bool(infer, "transpose_a");
    bool transpose_b = troupe_infer_bool(infer, "transpose_b");
    char a_text[TROUPE_SHAPE_TEXT_MAX], b_text[TROUPE_SHAPE_TEXT_MAX];
    troupe_shape_print(a, a_text);
    troupe_shape_print(b, b_text);
    if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "MatMul wants two matrices, got %s x %s",
                                  a_text, b_text);
    int64_t rows = TROUPE_DIM_UNKNOWN, columns = TROUPE_DIM_UNKNOWN;
    int64_t inner_a = TROUPE_DIM_UNKNOWN, inner_b = TROUPE_DIM_UNKNOWN;
    if (a->rank == 2) {
        rows = a->dims[transpose_a ? 1 : 0];
        inner_a = a->dims[transpose_a ? 0 : 1];
    }
    if (b->rank == 2) {
        columns = b->dims[transpose_b ? 0 : 1];
        inner_b = b->dims[transpose_b ? 1 : 0];
    }
    if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "MatMul wants a's %s (%lld) equal to b's %s (%lld): %s x %s",
            transpose_a ? "rows" : "columns", (long long)inner_a, transpose_b ? "columns" : "rows",
            (long long)inner_b, a_text, b_text);
    int64_t dims[] = {rows, columns};
    infer->output_shapes[0] = troupe_shape_make(2, dims);
    return TROUPE_OK;
}

/* The leading dimensions of a shape whose last two are a matrix. */
static struct troupe_shape batch_of(const struct troupe_shape *shape)
{
    return troupe_shape_make(shape->rank - 2, shape->dims);
}

static enum troupe_status infer_batch_matmul(struct troupe_infer *infer)
{
    const struct troupe_shape *x = &infer->input_shapes[0], *y = &infer->input_shapes[1];
    bool adj_x = troupe_infer_bool(infer, "adj_x"), adj_y = troupe_infer_bool(infer, "adj_y");
    char x_text[TROUPE_SHAPE_TEXT_MAX], y_text[TROUPE_SHAPE_TEXT_MAX];
    troupe_shape_print(x, x_text);
    troupe_shape_print(y, y_text);
    if ((x->rank >= 0 && x->rank < 2) || (y->rank >= 0 && y->rank < 2))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "BatchMatMulV2 wants 2 dimensions or more, got %s x %s", x_text,
                                  y_text);
    if (x->rank < 0 || y->rank < 0)
        return TROUPE_OK;
    int64_t inner_x = x->dims[x->rank - (adj_x ? 2 : 1)];
    int64_t inner_y = y->dims[y->rank - (adj_y ? 1 : 2)];
    if (inner_x >= 0 && inner_y >= 0 && inner_x != inner_y)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "BatchMatMulV2 wants x's %s (%lld) equal to y's %s (%lld): "
                                  "%s x %s",
                                  adj_x ? "rows" : "columns", (long long)inner_x,
                                  adj_y ? "columns" : "rows", (long long)inner_y, x_text, y_text);
    struct troupe_shape x_batch = batch_of(x), y_batch = batch_of(y), out;
    enum troupe_status status = troupe_shape_broadcast(&x_batch, &y_batch, &out);
    if (status != TROUPE_OK)
        return troupe_status_prefix(status, "BatchMatMulV2 wants batches that broadcast: ");
    out.dims[out.rank] = x->dims[x->rank - (adj_x ? 1 : 2)];
    out.dims[out.rank + 1] = y->dims[y->rank - (adj_y ? 2 : 1)];
    out.rank += 2;
    infer->output_shapes[0] = out;
    return TROUPE_OK;
}

/* What a product is called, and its attrs that say which factor is transposed. */
struct product_op {
    const char *name, *first, *second;
};
static const struct product_op matmul = {"MatMul", "transpose_a", "transpose_b"};
static const struct product_op batch_matmul = {"BatchMatMulV2", "adj_x", "adj_y"};

static struct troupe_value product(struct troupe_gradient *gradient, const struct product_op *op,
                                   const struct troupe_value factors[2], bool transpose_a,
                                   bool transpose_b)
{
    char first[16], second[16];
    snprintf(first, sizeof(first), "%s", op->first);
    snprintf(second, sizeof(second), "%s", op->second);
    struct troupe_named_attr attrs[] = {{first, troupe_attr_bool(transpose_a)},
                                        {second, troupe_attr_bool(transpose_b)}};
    return troupe_gradient_add(gradient, op->name, factors, 2, attrs, 2);
}

/* c = op(a) op(b): da and db are products of dc with the other factor, transposed as needed. */
static void factors_of(struct troupe_gradient *gradient, const struct product_op *op,
                       struct troupe_value *da, struct troupe_value *db)
{
    struct troupe_value a = gradient->inputs[0], b = gradient->inputs[1];
    struct troupe_value c = gradient->output_gradients[0];
    struct troupe_value bc[] = {b, c}, cb[] = {c, b}, ca[] = {c, a}, ac[] = {a, c};
    bool ta = troupe_attr_find(gradient->attrs, gradient->attr_count, op->first)->value.b;
    bool tb = troupe_attr_find(gradient->attrs, gradient->attr_count, op->second)->value.b;
    *da = ta ? product(gradient, op, bc, tb, true) : product(gradient, op, cb, false, !tb);
    *db = tb ? product(gradient, op, ca, true, ta) : product(gradient, op, ac, !ta, false);
}

static enum troupe_status gradient_matmul(struct troupe_gradient *gradient)
{
    factors_of(gradient, &matmul, &gradient->input_gradients[0], &gradient->input_gradients[1]);
    return gradient->status;
}

/* The products have the batches of the output: they are summed where an input's was repeated. */
static enum troupe_status gradient_batch_matmul(struct troupe_gradient *gradient)
{
    struct troupe_value flows[2];
    factors_of(gradient, &batch_matmul, &flows[0], &flows[1]);
    for (int i = 0; i < 2; i++)
        gradient->input_gradients[i] =
            troupe_gradient_unbroadcast(gradient, flows[i], gradient->inputs[i], flows[i]);
    return gradient->status;
}

static const struct troupe_kernel_row matmul_kernels[] = {
    {.device = "CPU",
     .type_attr = "T",
     .dtypes = TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64) |
               TROUPE_DTYPE_BIT(TROUPE_INT32) | TROUPE_DTYPE_BIT(TROUPE_INT64),
     .compute = troupe_kernel_matmul},
    {.device = "CPU",
     .type_attr = "T",
     .dtypes = TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64) |
               TROUPE_DTYPE_BIT(TROUPE_INT32) | TROUPE_DTYPE_BIT(TROUPE_INT64),
     .compute = troupe_kernel_batch_matmul}};

const struct troupe_op troupe_ops_matmul[] = {
    {.name = "MatMul",
     .doc = "The product of two matrices, either of which may be transposed first.",
     .inputs = "a: T, b: T",
     .outputs = "product: T",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; "
              "T: {float32, float64, int32, int64}",
     .infer = infer_matmul,
     .gradient = gradient_matmul,
     .kernels = &matmul_kernels[0],
     .kernel_count = 1},
    {.name = "BatchMatMulV2",
     .doc = "The products of matrices that are the last two dimensions; the others broadcast.",
     .inputs = "x: T, y: T",
     .outputs = "output: T",
     .attrs = "adj_x: bool = false; adj_y: bool = false; T: {float32, float64, int32, int64}",
     .infer = infer_batch_matmul,
     .gradient = gradient_batch_matmul,
     .kernels = &matmul_kernels[1],
     .kernel_count = 1},
};
const size_t troupe_ops_matmul_count = sizeof(troupe_ops_matmul) / sizeof(troupe_ops_matmul[0]);
