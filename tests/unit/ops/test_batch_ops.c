/* Products of batches of matrices: values and messages; large ones, of all shapes that are split in
 * different ways, against the definition. */
#include <criterion/criterion.h>
#include <string.h>

#include "op_node.h"
#include "op_rows.h"
#include "ops/tensor.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct row {
    const char *op;
    const char *inputs[3];
    const char *attr;
    const char *output;
} rows[] = {
    {"MatMul",
     {"float32 [[\"NaN\", 0]]", "float32 [[1, 2], [3, 4]]"},
     NULL,
     "float32 [[\"NaN\", \"NaN\"]]"},
    {"MatMul", {"float32 [[], []]", "float32 [[1], [2]]"}, "\"transpose_a\": true", "float32 []"},
    {"BatchMatMulV2",
     {"float32 [[1, 2], [3, 4]]", "float32 [[5, 6], [7, 8]]"},
     NULL,
     "float32 [[19, 22], [43, 50]]"},
    {"BatchMatMulV2",
     {"float64 [[[1, 2]], [[3, 4]]]", "float64 [[[5], [6]], [[7], [8]]]"},
     NULL,
     "float64 [[[17]], [[53]]]"},
    {"BatchMatMulV2",
     {"int32 [[[1, 2]], [[3, 4]]]", "int32 [[5], [6]]"},
     NULL,
     "int32 [[[17]], [[39]]]"},
    {"BatchMatMulV2",
     {"float32 [[5, 6]]", "float32 [[[1], [2]], [[3], [4]]]"},
     NULL,
     "float32 [[[17]], [[39]]]"},
    {"BatchMatMulV2",
     {"float32 [[[[1]], [[2]]]]", "float32 [[[[10]]], [[[100]]]]"},
     NULL,
     "float32 [[[[10]], [[20]]], [[[100]], [[200]]]]"},
    {"BatchMatMulV2",
     {"float32 [[[1], [2]]]", "float32 [[[5, 6]]]"},
     "\"adj_x\": true, \"adj_y\": true",
     "float32 [[[17]]]"},
    {"BatchMatMulV2",
     {"float32 [[[], []]]", "float32 [[[], []]]"},
     "\"adj_y\": true",
     "float32 [[[0, 0], [0, 0]]]"},
};

Test(batch, values)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *outputs[] = {rows[i].output, NULL};
        op_check_values(&(struct op_row){.op = rows[i].op,
                                         .inputs = rows[i].inputs,
                                         .attr = rows[i].attr,
                                         .outputs = outputs,
                                         .tolerance = 0,
                                         .exact = OP_KNOWS_SHAPES});
    }
}

Test(batch, messages)
{
    static const struct {
        const char *op;
        const char *inputs[3];
        const char *attr, *message;
    } wrongs[] = {
        {"BatchMatMulV2",
         {"float32 [1]", "float32 [[1]]"},
         NULL,
         "BatchMatMulV2 wants 2 dimensions or more, got [1] x [1,1]"},
        {"BatchMatMulV2",
         {"float32 [[1, 2]]", "float32 [[[1]]]"},
         NULL,
         "BatchMatMulV2 wants x's columns (2) equal to y's rows (1): [1,2] x [1,1,1]"},
        {"BatchMatMulV2",
         {"float32 [[[1]], [[2]]]", "float32 [[[1]], [[2]], [[3]]]"},
         NULL,
         "BatchMatMulV2 wants batches that broadcast: shapes [2] and [3] do not broadcast"},
    };
    for (size_t i = 0; i < COUNT(wrongs); i++)
        op_check_message(&(struct op_wrong){.op = wrongs[i].op,
                                            .inputs = wrongs[i].inputs,
                                            .attr = wrongs[i].attr,
                                            .message = wrongs[i].message});
}

static void set(struct op_node *node, int input, int64_t batch, int64_t rows_, int64_t columns)
{
    int64_t dims[] = {batch, rows_, columns};
    bool is_batch = batch > 0;
    troupe_tensor_unref(node->inputs[input]);
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, is_batch ? 3 : 2, is_batch ? dims : dims + 1,
                                      &node->inputs[input]),
                 TROUPE_OK);
    float *data = troupe_tensor_data_mutable(node->inputs[input]);
    for (int64_t i = 0; i < node->inputs[input]->elements; i++)
        data[i] = (float)((i * 7 + i / 11) % 13 - 6); /* sums of products are exact */
}

/* Element (i, j) of product `b`, by the definition. */
static float wanted(const struct op_node *node, bool ta, bool tb, const int64_t at[3],
                    const int64_t sizes[3])
{
    const float *x = troupe_tensor_data(node->inputs[0]), *y = troupe_tensor_data(node->inputs[1]);
    int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    float sum = 0;
    x += at[0] * m * k;
    y += at[0] * k * n;
    for (int64_t l = 0; l < k; l++)
        sum += x[ta ? l * m + at[1] : at[1] * k + l] * y[tb ? at[2] * k + l : l * n + at[2]];
    return sum;
}

static void check_large(int64_t batch, const int64_t sizes[3], bool ta, bool tb)
{
    static const char *const matrices[] = {"float32 [[0]]", "float32 [[0]]", NULL};
    static const char *const batches[] = {"float32 [[[0]]]", "float32 [[[0]]]", NULL};
    static const char *const attrs[2][4] = {{"\"adj_x\": false", "\"adj_x\": true",
                                             "\"adj_y\": true", "\"adj_x\": true, \"adj_y\": true"},
                                            {"\"transpose_a\": false", "\"transpose_a\": true",
                                             "\"transpose_b\": true",
                                             "\"transpose_a\": true, \"transpose_b\": true"}};
    int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    struct op_node node;
    cr_assert_eq(op_node_init(&node, batch ? "BatchMatMulV2" : "MatMul", batch ? batches : matrices,
                              attrs[batch == 0][ta + 2 * tb], OP_KNOWS_NOTHING),
                 TROUPE_OK, "%s", troupe_status_message());
    set(&node, 0, batch, ta ? k : m, ta ? m : k);
    set(&node, 1, batch, tb ? n : k, tb ? k : n);
    node.parallel = &op_backwards;
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
    const float *out = troupe_tensor_data(node.outputs[0]);
    for (int64_t b = 0; b < (batch ? batch : 1); b++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t at[] = {b, i, j};
                cr_assert_eq(out[(b * m + i) * n + j], wanted(&node, ta, tb, at, sizes),
                             "%lld x %lld x %lld, %d %d: (%lld, %lld)", (long long)m, (long long)n,
                             (long long)k, ta, tb, (long long)i, (long long)j);
            }
    op_node_fini(&node);
}

Test(batch, large_products)
{
    static const int64_t sizes[][3] = {{300, 70, 210}, {7, 1030, 600}, {65, 66, 1003}};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int transposed = 0; transposed < 4; transposed++)
            check_large(0, sizes[i], transposed & 1, transposed & 2);
}

Test(batch, large_batches)
{
    static const int64_t sizes[][3] = {{30, 20, 50}, {200, 100, 110}, {5, 1, 3}};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int transposed = 0; transposed < 4; transposed++) {
            check_large(1, sizes[i], transposed & 1, transposed & 2);
            check_large(101, sizes[i], transposed & 1, transposed & 2);
        }
}
