/* Ops of neural networks: values, shapes and messages, and that splits change nothing. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "op_node.h"
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

static void check_row(const struct row *row, enum op_known known)
{
    struct op_node node;
    struct troupe_shape merged;
    cr_assert_eq(op_node_init(&node, row->op, row->inputs, row->attr, known), TROUPE_OK,
                 "%s (%s): %s", row->op, row->inputs[0], troupe_status_message());
    /* The second pass may write in place: only then nobody else has the inputs. */
    for (int pass = 0; pass < 2; pass++) {
        node.parallel = pass ? &op_backwards : NULL;
        for (int i = 0; i < node.input_count; i++) {
            if (pass == 0)
                troupe_tensor_ref(node.inputs[i]);
            else
                troupe_tensor_unref(node.inputs[i]);
        }
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s (%s): %s", row->op, row->inputs[0],
                     troupe_status_message());
        int count = 0;
        for (; row->outputs[count]; count++) {
            op_expect(node.outputs[count], row->outputs[count], 1e-6, row->op);
            struct troupe_shape shape = troupe_shape_of(node.outputs[count]);
            cr_assert_eq(troupe_shape_merge(&node.node->output_shapes[count], &shape, &merged),
                         TROUPE_OK, "%s", row->op);
        }
        cr_assert_eq(count, node.node->output_count, "%s", row->op);
    }
    op_node_fini(&node);
}

Test(nn, values)
{
    struct troupe_memory_usage before, after;
    check_row(&rows[0], OP_KNOWS_VALUES); /* builds the registry */
    troupe_memory_usage_get(&before);
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int known = 0; known < OP_KNOWN_COUNT; known++)
            check_row(&rows[i], (enum op_known)known);
    }
    troupe_memory_usage_get(&after);
    cr_assert_eq(after.live_bytes, before.live_bytes, "tensors are lost");
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
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        struct op_node node;
        cr_assert_eq(op_node_init(&node, wrongs[i].op, wrongs[i].inputs, NULL, OP_KNOWS_NOTHING),
                     TROUPE_OK, "%s", troupe_status_message());
        cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT, "%s", wrongs[i].message);
        cr_assert_str_eq(troupe_status_message(), wrongs[i].message);
        op_node_fini(&node);
        enum troupe_status status =
            op_node_init(&node, wrongs[i].op, wrongs[i].inputs, NULL, OP_KNOWS_VALUES);
        cr_assert_eq(status == TROUPE_OK, wrongs[i].by_value, "%s", wrongs[i].message);
        if (status != TROUPE_OK)
            cr_assert(strstr(troupe_status_message(), wrongs[i].message), "%s\nwants: %s",
                      troupe_status_message(), wrongs[i].message);
        op_node_fini(&node);
    }
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
