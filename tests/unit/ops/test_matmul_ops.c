/* Matrix products: values, shapes and messages, and large ones against the definition. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "op_node.h"
#include "op_rows.h"
#include "ops/tensor.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TA           "\"transpose_a\": true"
#define TB           "\"transpose_b\": true"

static const struct {
    const char *inputs[3];
    const char *attr;
    const char *output;
} rows[] = {
    {{"float32 [[1, 2], [3, 4]]", "float32 [[5, 6], [7, 8]]"},
     NULL,
     "float32 [[19, 22], [43, 50]]"},
    {{"float64 [[1, 2, 3]]", "float64 [[4], [5], [6]]"}, NULL, "float64 [[32]]"},
    {{"float64 [[1], [2], [3]]", "float64 [[4, 5]]"}, NULL, "float64 [[4, 5], [8, 10], [12, 15]]"},
    {{"float32 [[1, 2], [3, 4], [5, 6]]", "float32 [[1], [0], [2]]"}, TA, "float32 [[11], [14]]"},
    {{"float32 [[1, 2], [3, 4], [5, 6]]", "float32 [[1, -1]]"}, TB, "float32 [[-1], [-1], [-1]]"},
    {{"float64 [[1, 2], [3, 4], [5, 6]]", "float64 [[1, 0, 2], [0, 1, 0]]"},
     TA ", " TB,
     "float64 [[11, 3], [14, 4]]"},
    {{"int32 [[1, 2], [3, 4], [5, 6]]", "int32 [[1, 0, 2], [0, 1, 0]]"},
     TA ", " TB,
     "int32 [[11, 3], [14, 4]]"},
    {{"int64 [[2, 3]]", "int64 [[5], [7]]"}, NULL, "int64 [[31]]"},
    {{"int32 [[65536]]", "int32 [[65536]]"}, NULL, "int32 [[0]]"},
    /* empty sums, and no results */
    {{"float32 [[], []]", "float32 [[], [], []]"}, TB, "float32 [[0, 0, 0], [0, 0, 0]]"},
    {{"float32 [[1, 2]]", "float32 [[], []]"}, NULL, "float32 [[]]"},
};

Test(matmul, values)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *outputs[] = {rows[i].output, NULL};
        op_check_values(&(struct op_row){.op = "MatMul",
                                         .inputs = rows[i].inputs,
                                         .attr = rows[i].attr,
                                         .outputs = outputs,
                                         .tolerance = 1e-6,
                                         .exact = OP_KNOWS_SHAPES});
    }
}

static const struct {
    const char *inputs[3];
    const char *attr;
    const char *message;
} wrongs[] = {
    {{"float32 [[1, 2]]", "float32 [[1], [2], [3]]"},
     NULL,
     "MatMul wants a's columns (2) equal to b's rows (3): [1,2] x [3,1]"},
    {{"float32 [[1, 2]]", "float32 [[1], [2], [3]]"},
     TA,
     "MatMul wants a's rows (1) equal to b's rows (3): [1,2] x [3,1]"},
    {{"float32 [[1, 2]]", "float32 [[1], [2], [3]]"},
     TB,
     "MatMul wants a's columns (2) equal to b's columns (1): [1,2] x [3,1]"},
    {{"float64 [1, 2]", "float64 [[1], [2]]"}, NULL, "MatMul wants two matrices, got [2] x [2,1]"},
};

Test(matmul, messages)
{
    for (size_t i = 0; i < COUNT(wrongs); i++)
        op_check_message(&(struct op_wrong){.op = "MatMul",
                                            .inputs = wrongs[i].inputs,
                                            .attr = wrongs[i].attr,
                                            .message = wrongs[i].message});
}

#define ROWS    181
#define COLUMNS 160
#define INNER   150

/* A matrix of numbers that depend on their place alone. */
static struct troupe_tensor *matrix(int64_t high, int64_t wide, bool transposed)
{
    const int64_t dims[] = {transposed ? wide : high, transposed ? high : wide};
    struct troupe_tensor *x;
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 2, dims, &x), TROUPE_OK);
    float *data = troupe_tensor_data_mutable(x);
    for (int64_t i = 0; i < high; i++)
        for (int64_t j = 0; j < wide; j++)
            data[transposed ? j * high + i : i * wide + j] =
                (float)((i * 7919 + j * 104729) % 1009) / 1009;
    return x;
}

/* A product that is split over workers, in all four layouts. */
Test(matmul, large)
{
    static const char *const attrs[] = {NULL, TA, TB, TA ", " TB};
    struct troupe_tensor *a = matrix(ROWS, INNER, false), *b = matrix(INNER, COLUMNS, false);
    const float *x = troupe_tensor_data(a), *y = troupe_tensor_data(b);
    for (int layout = 0; layout < 4; layout++) {
        struct op_node node;
        cr_assert_eq(op_node_init(&node, "MatMul",
                                  (const char *[]){"float32 [[1]]", "float32 [[1]]", NULL},
                                  attrs[layout], OP_KNOWS_NOTHING),
                     TROUPE_OK, "%s", troupe_status_message());
        troupe_tensor_unref(node.inputs[0]);
        troupe_tensor_unref(node.inputs[1]);
        node.inputs[0] = matrix(ROWS, INNER, (layout & 1) != 0);
        node.inputs[1] = matrix(INNER, COLUMNS, (layout & 2) != 0);
        node.parallel = &op_backwards;
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
        const float *got = troupe_tensor_data(node.outputs[0]);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) {
                double wanted = 0;
                for (int k = 0; k < INNER; k++)
                    wanted += (double)x[i * INNER + k] * (double)y[k * COLUMNS + j];
                cr_assert_float_eq((double)got[i * COLUMNS + j], wanted, 1e-3, "%d, %d", i, j);
            }
        op_node_fini(&node);
    }
    troupe_tensor_unref(a);
    troupe_tensor_unref(b);
}
