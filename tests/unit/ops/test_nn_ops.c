/* Ops of neural networks: values, shapes and messages, and that splits change nothing. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "op_node.h"
#include "op_rows.h"
#include "ops/tensor.h"

struct row {
    const char *op;
    const char *inputs[3];
    const char *attr;
    const char *outputs[3];
};

static const struct row rows[] = {
#include "nn_rows.inc.h"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INPUTS(...)  ((const char *[]){__VA_ARGS__, NULL})

Test(nn, values)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        op_check_values(&(struct op_row){.op = rows[i].op,
                                         .inputs = rows[i].inputs,
                                         .attr = rows[i].attr,
                                         .outputs = rows[i].outputs,
                                         .tolerance = 1e-6,
                                         .exact = OP_KNOWS_SHAPES});
    }
}

static const struct {
    const char *op;
    const char *inputs[3];
    const char *message;
    bool by_value; /* only the run can tell */
} wrongs[] = {
    {"BiasAdd",
     {"float32 [1]", "float32 [1]"},
     "BiasAdd wants a value of 2 dimensions or more and a vector, got [1] and [1]",
     false},
    {"BiasAdd",
     {"float32 [[1, 2]]", "float32 [1]"},
     "BiasAdd wants a bias of 2 numbers for [1,2], got [1]",
     false},
    {"BiasAddGrad", {"float32 [1]"}, "BiasAddGrad wants 2 dimensions or more", false},
    {"Softmax", {"float32 1"}, "Softmax wants 1 dimension or more, got a scalar", false},
    {"SoftmaxCrossEntropyWithLogits",
     {"float32 [[1, 2]]", "float32 [[1]]"},
     "SoftmaxCrossEntropyWithLogits wants features [rows,classes] and labels of that shape, got "
     "[1,2] and [1,1]",
     false},
    {"SparseSoftmaxCrossEntropyWithLogits",
     {"float32 [[1, 2]]", "int32 [0, 1]"},
     "SparseSoftmaxCrossEntropyWithLogits wants features [rows,classes] and labels [rows], got "
     "[1,2] and [2]",
     false},
    {"SparseSoftmaxCrossEntropyWithLogits",
     {"float32 [[1, 2], [3, 4]]", "int32 [0, 2]"},
     "label 2 in row 1: wants 0 to 1",
     true},
    {"SparseSoftmaxCrossEntropyWithLogits",
     {"float32 [[1, 2], [3, 4]]", "int64 [-1, 0]"},
     "label -1 in row 0: wants 0 to 1",
     true},
};

Test(nn, messages)
{
    for (size_t i = 0; i < COUNT(wrongs); i++)
        op_check_message(&(struct op_wrong){.op = wrongs[i].op,
                                            .inputs = wrongs[i].inputs,
                                            .message = wrongs[i].message,
                                            .by_value = wrongs[i].by_value});
}

/* [1000, 33] numbers from -2 to 2. */
static struct troupe_tensor *large_features(void)
{
    const int64_t dims[] = {1000, 33};
    struct troupe_tensor *x;
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 2, dims, &x), TROUPE_OK);
    float *data = troupe_tensor_data_mutable(x);
    for (int64_t i = 0; i < x->elements; i++)
        data[i] = (float)((i * 7919) % 1009) / 252.25f - 2;
    return x;
}

/* Calls a node on large features; `other` (or NULL) is the text of its second input. */
static void call_large(struct op_node *node, const char *op, const char *other)
{
    cr_assert_eq(op_node_init(node, op, INPUTS("float32 [[1]]", other), NULL, OP_KNOWS_NOTHING),
                 TROUPE_OK, "%s", troupe_status_message());
    troupe_tensor_unref(node->inputs[0]);
    node->inputs[0] = large_features();
    node->parallel = &op_backwards;
}

Test(nn, large_softmax)
{
    struct op_node node;
    call_large(&node, "Softmax", NULL);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
    struct troupe_tensor *x = large_features();
    const float *in = troupe_tensor_data(x), *out = troupe_tensor_data(node.outputs[0]);
    for (int row = 0; row < 1000; row++) {
        double sum = 0;
        for (int i = 0; i < 33; i++)
            sum += exp((double)in[row * 33 + i]);
        for (int i = 0; i < 33; i++)
            cr_assert_float_eq((double)out[row * 33 + i], exp((double)in[row * 33 + i]) / sum,
                               1e-6);
    }
    troupe_tensor_unref(x);
    op_node_fini(&node);
}

Test(nn, large_bias)
{
    struct op_node node;
    struct troupe_tensor *bias;
    int64_t channels = 33;
    call_large(&node, "BiasAdd", "float32 [1]");
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 1, &channels, &bias), TROUPE_OK);
    for (int i = 0; i < 33; i++)
        ((float *)troupe_tensor_data_mutable(bias))[i] = (float)i;
    troupe_tensor_unref(node.inputs[1]);
    node.inputs[1] = bias;
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
    struct troupe_tensor *x = large_features();
    const float *in = troupe_tensor_data(x), *out = troupe_tensor_data(node.outputs[0]);
    for (int i = 0; i < 33000; i++)
        cr_assert_eq(out[i], in[i] + (float)(i % 33), "element %d", i);
    op_node_fini(&node);
    call_large(&node, "BiasAddGrad", NULL);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
    out = troupe_tensor_data(node.outputs[0]);
    for (int channel = 0; channel < 33; channel++) {
        double sum = 0;
        for (int row = 0; row < 1000; row++)
            sum += (double)in[row * 33 + channel];
        cr_assert_float_eq((double)out[channel], sum, 1e-3, "channel %d", channel);
    }
    troupe_tensor_unref(x);
    op_node_fini(&node);
}

/* A NaN stays one in its row, and in no other. */
Test(nn, not_a_number)
{
    static const char *const ops[] = {"Softmax", "LogSoftmax", "Relu"};
    for (size_t i = 0; i < COUNT(ops); i++) {
        struct op_node node;
        call_large(&node, ops[i], NULL);
        ((float *)troupe_tensor_data_mutable(node.inputs[0]))[33 * 7 + 4] = NAN;
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
        const float *out = troupe_tensor_data(node.outputs[0]);
        cr_assert(isnan(out[33 * 7 + 4]), "%s", ops[i]);
        for (int j = 0; j < 33000; j++)
            cr_assert(j / 33 == 7 || !isnan(out[j]), "%s", ops[i]);
        op_node_fini(&node);
    }
}
