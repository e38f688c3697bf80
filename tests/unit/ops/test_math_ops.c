/* Element-wise ops: values and messages, in place and not, split and not. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/memory.h"
#include "op_node.h"
#include "op_rows.h"
#include "ops/tensor.h"

struct row {
    const char *op;
    const char *inputs[4];
    const char *attr;
    const char *output;
};

static const struct row rows[] = {
#include "math_rows.inc.h"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(math, values)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *outputs[] = {rows[i].output, NULL};
        op_check_values(&(struct op_row){.op = rows[i].op,
                                         .inputs = rows[i].inputs,
                                         .attr = rows[i].attr,
                                         .outputs = outputs,
                                         .tolerance = 1e-15,
                                         .exact = OP_KNOWS_SHAPES});
    }
}

/* What is said in a run, and, where the shapes tell, at the end of what is said before. */
static const struct {
    const char *op;
    const char *inputs[4];
    const char *attr;
    const char *message;
    bool by_value;
} wrongs[] = {
    {"Add",
     {"float32 [1, 2]", "float32 [1, 2, 3]"},
     NULL,
     "shapes [2] and [3] do not broadcast",
     false},
    {"Equal",
     {"int32 [[1], [2]]", "int32 [[1], [2], [3]]"},
     NULL,
     "shapes [2,1] and [3,1] do not broadcast",
     false},
    {"Div", {"int32 [1, 2]", "int32 [1, 0]"}, NULL, "integer division by zero: y has a 0", true},
    {"FloorDiv", {"int64 [[1]]", "int64 0"}, NULL, "integer division by zero: y has a 0", true},
    {"FloorMod", {"uint8 [1, 2]", "uint8 0"}, NULL, "integer division by zero: y has a 0", true},
    {"Pow",
     {"int32 [1, 2]", "int32 [0, -1]"},
     NULL,
     "an integer to a negative power: integers want y of 0 or more",
     true},
    {"TanhGrad",
     {"float32 [1, 2]", "float32 [1]"},
     NULL,
     "wants inputs of one shape, got [2] and [1]",
     false},
    {"AddN",
     {"float32 [1, 2]", "float32 [3, 4]", "float32 [1]"},
     NULL,
     "AddN wants inputs of one shape: input 0 is [2], input 2 is [1]",
     false},
    {"Select",
     {"bool [true]", "int32 [1, 2]", "int32 [3]"},
     NULL,
     "Select wants t and e of one shape, got [2] and [1]",
     false},
    {"Select",
     {"bool [true]", "int32 [1, 2]", "int32 [3, 4]"},
     NULL,
     "Select wants a condition that is a scalar, one for each row, or of shape [2], got [1]",
     false},
    {"SelectV2",
     {"bool [true, false]", "int32 [1, 2, 3]", "int32 0"},
     NULL,
     "shapes [2] and [3] do not broadcast",
     false},
};

Test(math, messages)
{
    for (size_t i = 0; i < COUNT(wrongs); i++)
        op_check_message(&(struct op_wrong){.op = wrongs[i].op,
                                            .inputs = wrongs[i].inputs,
                                            .attr = wrongs[i].attr,
                                            .message = wrongs[i].message,
                                            .by_value = wrongs[i].by_value});
}

Test(math, messages_before_the_run)
{
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        struct op_node node;
        enum troupe_status status =
            op_node_init(&node, wrongs[i].op, wrongs[i].inputs, wrongs[i].attr, OP_KNOWS_SHAPES);
        cr_assert_eq(status, wrongs[i].by_value ? TROUPE_OK : TROUPE_INVALID_ARGUMENT, "%s",
                     wrongs[i].op);
        if (!wrongs[i].by_value)
            cr_assert(strstr(troupe_status_message(), wrongs[i].message), "%s\nwants: %s",
                      troupe_status_message(), wrongs[i].message);
        op_node_fini(&node);
    }
}

Test(math, cast_rounds)
{
    static const char *const inputs[] = {"float32 [1]", NULL};
    struct op_node node;
    enum troupe_status status = op_node_init(
        &node, "Cast", inputs, "\"DstT\": \"bfloat16\", \"Truncate\": true", OP_KNOWS_SHAPES);
    cr_assert_neq(status, TROUPE_OK);
    cr_assert(
        strstr(troupe_status_message(), "Cast rounds to nearest: attr \"Truncate\" wants false"));
    op_node_fini(&node);
}

Test(math, writes_in_place_when_nobody_else_reads)
{
    static const struct {
        const char *op, *inputs[4];
        int taken; /* the input whose buffer is taken over; -1: none fits */
    } cases[] = {
        {"Exp", {"float32 [1, 2]"}, 0},
        {"Add", {"float32 [1, 2]", "float32 [3, 4]"}, 0},
        {"Add", {"float32 1", "float32 [3, 4]"}, 1},
        {"Add", {"float32 [[1], [2]]", "float32 [[3, 4]]"}, -1},
        {"Less", {"float32 [1, 2]", "float32 [3, 4]"}, -1},
        {"AddN", {"float32 [1, 2]", "float32 [3, 4]"}, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct op_node node;
        cr_assert_eq(op_node_init(&node, cases[i].op, cases[i].inputs, NULL, OP_KNOWS_NOTHING), 0);
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
        for (int j = 0; j < node.input_count; j++)
            cr_assert_eq(node.outputs[0]->buffer == node.inputs[j]->buffer, cases[i].taken == j,
                         "%s, input %d", cases[i].op, j);
        op_node_fini(&node);
    }
}

static struct troupe_tensor *numbers(int rank, const int64_t *dims)
{
    struct troupe_tensor *tensor;
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, rank, dims, &tensor), TROUPE_OK);
    float *data = troupe_tensor_data_mutable(tensor);
    for (int64_t i = 0; i < tensor->elements; i++)
        data[i] = (float)(i % 1009) - 500;
    return tensor;
}

static void replace(struct op_node *node, int input, int rank, const int64_t *dims)
{
    troupe_tensor_unref(node->inputs[input]);
    node->inputs[input] = numbers(rank, dims);
}

static float element(const struct op_node *node, int input, int64_t i)
{
    return ((const float *)troupe_tensor_data(node->inputs[input]))[i];
}

/* Loops that are split, against the definition: one run, and many. */
Test(math, large_sub)
{
    static const char *const inputs[] = {"float32 [[[0]]]", "float32 [[0]]", NULL};
    enum { I = 37, J = 61, K = 53 };
    static const int64_t shapes[][3] = {{I, J, K}, {1, J, K}, {I, 1, K}, {I, J, 1},
                                        {1, 1, 1}, {1, J, 1}, {I, 1, 1}};
    for (size_t a = 0; a < COUNT(shapes); a++) {
        for (size_t b = 0; b < COUNT(shapes); b++) {
            const int64_t *x = shapes[a], *y = shapes[b];
            struct op_node node;
            cr_assert_eq(op_node_init(&node, "Sub", inputs, NULL, OP_KNOWS_NOTHING), TROUPE_OK);
            replace(&node, 0, 3, x);
            replace(&node, 1, 3, y);
            troupe_tensor_ref(node.inputs[0]);
            troupe_tensor_ref(node.inputs[1]);
            node.parallel = &op_backwards;
            cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
            const int64_t *z = node.outputs[0]->dims;
            const float *out = troupe_tensor_data(node.outputs[0]);
            for (int64_t i = 0; i < z[0]; i++)
                for (int64_t j = 0; j < z[1]; j++)
                    for (int64_t k = 0; k < z[2]; k++) {
                        int64_t at_x = (i % x[0] * x[1] + j % x[1]) * x[2] + k % x[2];
                        int64_t at_y = (i % y[0] * y[1] + j % y[1]) * y[2] + k % y[2];
                        cr_assert_eq(out[(i * z[1] + j) * z[2] + k],
                                     element(&node, 0, at_x) - element(&node, 1, at_y));
                    }
            troupe_tensor_unref(node.inputs[0]);
            troupe_tensor_unref(node.inputs[1]);
            op_node_fini(&node);
        }
    }
}

/* The same bits, however the loop is split; AddN and L2Loss go block by block. */
Test(math, large_sums_do_not_depend_on_the_split)
{
    static const char *const inputs[] = {"float32 [0]", "float32 [0]", "float32 [0]", NULL};
    const int64_t count = 100003;
    struct op_node sum, half;
    cr_assert_eq(op_node_init(&sum, "AddN", inputs, NULL, OP_KNOWS_NOTHING), TROUPE_OK);
    for (int i = 0; i < 3; i++)
        replace(&sum, i, 1, &count);
    troupe_tensor_ref(sum.inputs[0]);
    sum.parallel = &op_backwards;
    cr_assert_eq(op_node_call(&sum, 0), TROUPE_OK, "%s", troupe_status_message());
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(((const float *)troupe_tensor_data(sum.outputs[0]))[i],
                     3 * element(&sum, 0, i));
    troupe_tensor_unref(sum.inputs[0]);
    op_node_fini(&sum);

    static const char *const one[] = {"float32 [0]", NULL};
    double wanted = 0;
    float got[2];
    cr_assert_eq(op_node_init(&half, "L2Loss", one, NULL, OP_KNOWS_NOTHING), TROUPE_OK);
    replace(&half, 0, 1, &count);
    for (int64_t i = 0; i < count; i++)
        wanted += (double)element(&half, 0, i) * (double)element(&half, 0, i) / 2;
    for (int pass = 0; pass < 2; pass++) {
        half.parallel = pass ? &op_backwards : NULL;
        cr_assert_eq(op_node_call(&half, 0), TROUPE_OK, "%s", troupe_status_message());
        got[pass] = *(const float *)troupe_tensor_data(half.outputs[0]);
    }
    cr_assert_eq(got[0], (float)wanted);
    cr_assert_eq(got[0], got[1]);
    op_node_fini(&half);
}

/* A conversion by way of float, in blocks that do not divide the tensor. */
Test(math, large_cast)
{
    static const char *const inputs[] = {"float32 [0]", NULL};
    const int64_t count = 40001;
    struct op_node narrow, wide;
    cr_assert_eq(op_node_init(&narrow, "Cast", inputs, "\"DstT\": \"float16\"", OP_KNOWS_NOTHING),
                 TROUPE_OK);
    replace(&narrow, 0, 1, &count);
    narrow.parallel = &op_backwards;
    cr_assert_eq(op_node_call(&narrow, 0), TROUPE_OK, "%s", troupe_status_message());
    static const char *const halves[] = {"float16 [0]", NULL};
    cr_assert_eq(op_node_init(&wide, "Cast", halves, "\"DstT\": \"int32\"", OP_KNOWS_NOTHING),
                 TROUPE_OK);
    troupe_tensor_unref(wide.inputs[0]);
    wide.inputs[0] = troupe_tensor_ref(narrow.outputs[0]);
    wide.parallel = &op_backwards;
    cr_assert_eq(op_node_call(&wide, 0), TROUPE_OK, "%s", troupe_status_message());
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq((float)((const int32_t *)troupe_tensor_data(wide.outputs[0]))[i],
                     element(&narrow, 0, i));
    op_node_fini(&narrow);
    op_node_fini(&wide);
}
