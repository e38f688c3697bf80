/* Matrix products. */
#include "ops/kernels/matmul.h"
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

static struct troupe_value product(struct troupe_gradient *gradient, struct troupe_value a,
                                   struct troupe_value b, bool transpose_a, bool transpose_b)
{
    char first[] = "transpose_a", second[] = "transpose_b";
    struct troupe_named_attr attrs[] = {{first, troupe_attr_bool(transpose_a)},
                                        {second, troupe_attr_bool(transpose_b)}};
    struct troupe_value inputs[] = {a, b};
    return troupe_gradient_add(gradient, "MatMul", inputs, 2, attrs, 2);
}

/* c = op(a) op(b): da and db are products of dc with the other factor, transposed as needed. */
static enum troupe_status gradient_matmul(struct troupe_gradient *gradient)
{
    struct troupe_value a = gradient->inputs[0], b = gradient->inputs[1];
    struct troupe_value c = gradient->output_gradients[0];
    bool ta = troupe_attr_find(gradient->attrs, gradient->attr_count, "transpose_a")->value.b;
    bool tb = troupe_attr_find(gradient->attrs, gradient->attr_count, "transpose_b")->value.b;
    gradient->input_gradients[0] =
        ta ? product(gradient, b, c, tb, true) : product(gradient, c, b, false, !tb);
    gradient->input_gradients[1] =
        tb ? product(gradient, c, a, true, ta) : product(gradient, a, c, !ta, false);
    return gradient->status;
}

static const struct troupe_kernel_row matmul_kernels[] = {
    {.device = "CPU",
     .type_attr = "T",
     .dtypes = TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64) |
               TROUPE_DTYPE_BIT(TROUPE_INT32) | TROUPE_DTYPE_BIT(TROUPE_INT64),
     .compute = troupe_kernel_matmul}};

const struct troupe_op troupe_ops_matmul[] = {
    {.name = "MatMul",
     .doc = "The product of two matrices, either of which may be transposed first.",
     .inputs = "a: T, b: T",
     .outputs = "product: T",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; "
              "T: {float32, float64, int32, int64}",
     .infer = infer_matmul,
     .gradient = gradient_matmul,
     .kernels = matmul_kernels,
     .kernel_count = 1},
};
const size_t troupe_ops_matmul_count = sizeof(troupe_ops_matmul) / sizeof(troupe_ops_matmul[0]);
