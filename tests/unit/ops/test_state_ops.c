/* Placeholders, variables and updates: values against the formulas, and what is refused. */
#include <criterion/criterion.h>
#include <string.h>

#include "op_node.h"
#include "ops/tensor.h"

#define INPUTS(...) ((const char *[]){__VA_ARGS__, NULL})

/* An update, fired once: the new values of its variables, the first of which is its output. */
struct row {
    const char *op;
    const char *inputs[OP_INPUTS_MAX + 1];
    const char *attr;
    const char *states[4];
};

static const struct row rows[] = {
    {"Assign", {"ref float32 [1, 2]", "float32 [3, 4]"}, NULL, {"float32 [3, 4]"}},
    {"Assign", {"ref string \"a\"", "string \"b\""}, NULL, {"string \"b\""}},
    {"AssignAdd", {"ref float32 [1, 2]", "float32 [3, 4]"}, NULL, {"float32 [4, 6]"}},
    {"AssignAdd", {"ref float64 [1, 2]", "float64 [3, 4]"}, NULL, {"float64 [4, 6]"}},
    {"AssignAdd", {"ref int32 [[1, 2]]", "int32 [[3, -4]]"}, NULL, {"int32 [[4, -2]]"}},
    {"AssignAdd", {"ref int64 9007199254740992", "int64 1"}, NULL, {"int64 9007199254740993"}},
    {"AssignAdd", {"ref uint8 [200]", "uint8 [100]"}, NULL, {"uint8 [44]"}},
    {"AssignSub", {"ref float32 [1, 2]", "float32 [3, 5]"}, NULL, {"float32 [-2, -3]"}},
    {"AssignSub", {"ref float64 1", "float64 0.5"}, NULL, {"float64 0.5"}},
    {"AssignSub", {"ref int32 [1]", "int32 [3]"}, NULL, {"int32 [-2]"}},
    {"AssignSub", {"ref int64 [1]", "int64 [3]"}, NULL, {"int64 [-2]"}},
    {"AssignSub", {"ref uint8 [1]", "uint8 [3]"}, NULL, {"uint8 [254]"}},
    {"ApplyGradientDescent",
     {"ref float32 [1, 2]", "float32 0.5", "float32 [4, -2]"},
     NULL,
     {"float32 [-1, 3]"}},
    {"ApplyGradientDescent",
     {"ref float64 [1, 2]", "float64 0.5", "float64 [4, -2]"},
     NULL,
     {"float64 [-1, 3]"}},
    /* accum = 0.5 * 2 + 4 = 5, var = 1 - 0.25 * 5 */
    {"ApplyMomentum",
     {"ref float64 [1]", "ref float64 [2]", "float64 0.25", "float64 [4]", "float64 0.5"},
     NULL,
     {"float64 [-0.25]", "float64 [5]"}},
    {"ApplyMomentum",
     {"ref float32 [1]", "ref float32 [2]", "float32 0.25", "float32 [4]", "float32 0.5"},
     NULL,
     {"float32 [-0.25]", "float32 [5]"}},
    /* var = 1 - 0.25 * (4 + 0.5 * 5) */
    {"ApplyMomentum",
     {"ref float64 [1]", "ref float64 [2]", "float64 0.25", "float64 [4]", "float64 0.5"},
     "\"use_nesterov\": true",
     {"float64 [-0.625]", "float64 [5]"}},
    /* m = 2 + (4 - 2) * 0.5 = 3, v = 8 + (16 - 8) * 0.125 = 9, rate = 0.1 * sqrt(0.64) / 0.5 =
     * 0.16, var = 1 - 0.16 * 3 / (3 + 1) */
    {"ApplyAdam",
     {"ref float64 [1]", "ref float64 [2]", "ref float64 [8]", "float64 0.5", "float64 0.36",
      "float64 0.1", "float64 0.5", "float64 0.875", "float64 1", "float64 [4]"},
     NULL,
     {"float64 [0.88]", "float64 [3]", "float64 [9]"}},
    /* var = 1 - 0.16 * (4 * 0.5 + 0.5 * 3) / (3 + 1) */
    {"ApplyAdam",
     {"ref float64 [1]", "ref float64 [2]", "ref float64 [8]", "float64 0.5", "float64 0.36",
      "float64 0.1", "float64 0.5", "float64 0.875", "float64 1", "float64 [4]"},
     "\"use_nesterov\": true",
     {"float64 [0.86]", "float64 [3]", "float64 [9]"}},
    {"ApplyAdam",
     {"ref float32 [1]", "ref float32 [2]", "ref float32 [8]", "float32 0.5", "float32 0.36",
      "float32 0.1", "float32 0.5", "float32 0.875", "float32 1", "float32 [4]"},
     NULL,
     {"float32 [0.88]", "float32 [3]", "float32 [9]"}},
};

static void check_row(const struct row *row, enum op_known known)
{
    struct op_node node;
    cr_assert_eq(op_node_init(&node, row->op, row->inputs, row->attr, known), TROUPE_OK, "%s: %s",
                 row->op, troupe_status_message());
    node.parallel = &op_backwards;
    /* A reader's snapshot, which the update may not touch. */
    struct troupe_tensor *snapshot;
    cr_assert_eq(troupe_variable_read(troupe_variable_of(node.states[0]), "i0", &snapshot), 0);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s: %s", row->op, troupe_status_message());
    op_expect(node.outputs[0], row->states[0], 1e-6, row->op);
    op_expect(snapshot, row->inputs[0] + strlen("ref "), 0, row->op);
    troupe_tensor_unref(snapshot);
    for (int i = 0; i < 4 && row->states[i]; i++) {
        struct troupe_variable *variable = troupe_variable_of(node.states[i]);
        op_expect(variable->value, row->states[i], 1e-6, row->op);
    }
    op_node_fini(&node);
}

Test(state, updates)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int known = 0; known < OP_KNOWN_COUNT; known++)
            check_row(&rows[i], (enum op_known)known);
}

/* Many elements are split over the workers, and come out as one by one. */
Test(state, updates_in_pieces)
{
    enum { COUNT = 100001 };
    static float data[COUNT];
    struct op_node node;
    cr_assert_eq(op_node_init(&node, "AssignAdd", INPUTS("ref float32 [0]", "float32 [0]"), NULL,
                              OP_KNOWS_NOTHING),
                 TROUPE_OK, "%s", troupe_status_message());
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)i;
    int64_t dims = COUNT;
    struct troupe_tensor *value;
    cr_assert_eq(troupe_tensor_from_data(TROUPE_FLOAT32, 1, &dims, data, &value), TROUPE_OK);
    troupe_variable_set(troupe_variable_of(node.states[0]), value);
    troupe_tensor_unref(node.inputs[1]);
    node.inputs[1] = value;
    node.parallel = &op_backwards;
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
    const float *sum = troupe_tensor_data(node.outputs[0]);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(sum[i], 2.0f * (float)i, "element %d is %g", i, (double)sum[i]);
    op_node_fini(&node);
}

static void expect_refused(const char *op, const char *const *inputs, const char *attr,
                           const char *message)
{
    struct op_node node;
    cr_assert_eq(op_node_init(&node, op, inputs, attr, OP_KNOWS_SHAPES), TROUPE_INVALID_ARGUMENT,
                 "%s is not refused", op);
    cr_assert(strstr(troupe_status_message(), message), "%s: got \"%s\", wants \"%s\"", op,
              troupe_status_message(), message);
    op_node_fini(&node);
    /* Where the shapes come only with the values, the kernel refuses them. */
    cr_assert_eq(op_node_init(&node, op, inputs, attr, OP_KNOWS_NOTHING), TROUPE_OK, "%s: %s", op,
                 troupe_status_message());
    cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT, "%s fires", op);
    cr_assert(strstr(troupe_status_message(), message) ||
                  strstr(troupe_status_message(), "the variable wants a value of shape [2], got "
                                                  "[3]"),
              "%s: got \"%s\", wants \"%s\"", op, troupe_status_message(), message);
    op_node_fini(&node);
}

Test(state, refuses_wrong_shapes)
{
    expect_refused("Assign", INPUTS("ref float32 [1, 2]", "float32 [1, 2, 3]"), NULL,
                   "input \"value\" wants the variable's shape [2], got [3]");
    expect_refused("AssignAdd", INPUTS("ref float32 [1, 2]", "float32 [1, 2, 3]"), NULL,
                   "input \"value\" wants the variable's shape [2], got [3]");
    expect_refused("ApplyGradientDescent",
                   INPUTS("ref float32 [1, 2]", "float32 0.1", "float32 [[1, 2]]"), NULL,
                   "input \"delta\" wants the variable's shape [2], got [1,2]");
    expect_refused("ApplyGradientDescent",
                   INPUTS("ref float32 [1, 2]", "float32 []", "float32 [1, 2]"), NULL,
                   "input \"alpha\" wants a scalar, got shape [0]");
    expect_refused(
        "ApplyMomentum",
        INPUTS("ref float32 [1]", "ref float32 [1]", "float32 1", "float32 [1]", "float32 [1]"),
        NULL, "input \"momentum\" wants a scalar, got shape [1]");
}

/* A refused update leaves its variables as they were, and free. */
Test(state, refused_updates_change_nothing)
{
    struct op_node node;
    cr_assert_eq(op_node_init(&node, "ApplyMomentum",
                              INPUTS("ref float64 [1, 2]", "ref float64 [3]", "float64 1",
                                     "float64 [1, 1]", "float64 1"),
                              NULL, OP_KNOWS_NOTHING),
                 TROUPE_OK);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT);
    op_expect(troupe_variable_of(node.states[0])->value, "float64 [1, 2]", 0, "var");
    op_expect(troupe_variable_of(node.states[1])->value, "float64 [3]", 0, "accum");
    op_node_fini(&node);
}

Test(state, refuses_one_variable_for_two, .timeout = 20)
{
    struct op_node node;
    cr_assert_eq(op_node_init(&node, "ApplyMomentum",
                              INPUTS("ref float64 [1]", "ref float64 [3]", "float64 1",
                                     "float64 [1]", "float64 1"),
                              NULL, OP_KNOWS_SHAPES),
                 TROUPE_OK);
    struct troupe_resource *second = node.states[1];
    node.states[1] = node.states[0];
    cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(),
                     "inputs \"var\" and \"accum\" are the same variable: wants one for each");
    node.states[1] = second;
    op_node_fini(&node);
}

Test(state, wants_a_value_first)
{
    static const char *const ops[] = {"AssignAdd", "AssignSub", "Assign"};
    for (int i = 0; i < 3; i++) {
        struct op_node node;
        struct troupe_shape shape = troupe_shape_make(1, (int64_t[]){1});
        struct troupe_variable *empty;
        cr_assert_eq(op_node_init(&node, ops[i], INPUTS("ref float32 [1]", "float32 [5]"), NULL,
                                  OP_KNOWS_SHAPES),
                     TROUPE_OK);
        node.states[0]->destroy(node.states[0]);
        cr_assert_eq(troupe_variable_create(TROUPE_FLOAT32, &shape, &empty), TROUPE_OK);
        node.states[0] = &empty->resource;
        enum troupe_status status = op_node_call(&node, 0);
        if (strcmp(ops[i], "Assign") == 0) {
            cr_assert_eq(status, TROUPE_OK);
            op_expect(empty->value, "float32 [5]", 0, "Assign");
        } else {
            cr_assert_eq(status, TROUPE_FAILED_PRECONDITION, "%s", ops[i]);
            cr_assert(strstr(troupe_status_message(), "is not initialised"));
        }
        op_node_fini(&node);
    }
}

Test(state, variables_and_placeholders)
{
    struct op_node node;
    static const char *const ops[] = {"Variable", "VariableV2"};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(op_node_init(&node, ops[i], INPUTS(NULL),
                                  "\"dtype\": \"int32\", \"shape\": [2]", OP_KNOWS_VALUES),
                     TROUPE_OK, "%s", troupe_status_message());
        cr_assert_eq(op_node_call(&node, 0), TROUPE_FAILED_PRECONDITION);
        cr_assert(strstr(troupe_status_message(), "variable \"z\" is not initialised"));
        struct troupe_tensor *value = op_tensor("int32 [1, 2]");
        troupe_variable_set(troupe_variable_of(node.own), value);
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK);
        cr_assert_eq(node.outputs[0], value, "a snapshot shares the value");
        troupe_tensor_unref(value);
        op_node_fini(&node);
    }
    cr_assert_eq(op_node_init(&node, "Placeholder", INPUTS(NULL),
                              "\"dtype\": \"int32\", \"shape\": [null, 2]", OP_KNOWS_VALUES),
                 TROUPE_OK);
    cr_assert_eq(node.node->output_shapes[0].rank, 2);
    cr_assert_eq(node.node->output_shapes[0].dims[0], TROUPE_DIM_UNKNOWN);
    cr_assert_eq(node.node->output_shapes[0].dims[1], 2);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_FAILED_PRECONDITION);
    cr_assert_str_eq(troupe_status_message(),
                     "placeholder \"z\" needs a value: feed it with --feed z=...");
    op_node_fini(&node);
}
