/* NoOp, Print, Assert, and the ops that no graph names. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <string.h>

#include "op_node.h"
#include "ops/tensor.h"

#define INPUTS(...) ((const char *[]){__VA_ARGS__, NULL})

static void init(struct op_node *node, const char *op, const char *const *inputs, const char *attr,
                 enum op_known known)
{
    cr_assert_eq(op_node_init(node, op, inputs, attr, known), TROUPE_OK, "%s: %s", op,
                 troupe_status_message());
}

Test(control, does_nothing)
{
    struct op_node node;
    init(&node, "NoOp", INPUTS(NULL), NULL, OP_KNOWS_VALUES);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK);
    op_node_fini(&node);
}

/* One line for each of the first two steps, the data shortened; the input comes through. */
Test(control, prints, .init = cr_redirect_stderr)
{
    struct op_node node;
    init(&node, "Print", INPUTS("float32 [1, 2]", "int32 [1, 2, 3]", "float64 [1, 2, 3, 4]"),
         "\"message\": \"data: \", \"first_n\": 2", OP_KNOWS_VALUES);
    for (uint64_t step = 0; step < 4; step++) {
        cr_assert_eq(op_node_call(&node, step), TROUPE_OK, "%s", troupe_status_message());
        cr_assert_eq(node.outputs[0], node.inputs[0]);
    }
    op_node_fini(&node);
    (void)fflush(stderr);
    cr_assert_stderr_eq_str("data: [1, 2, 3], float64[4]\ndata: [1, 2, 3], float64[4]\n");
}

Test(control, asserts)
{
    struct op_node node;
    init(&node, "Assert", INPUTS("bool true", "int32 [1]"), NULL, OP_KNOWS_VALUES);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK);
    op_node_fini(&node);
    init(&node, "Assert", INPUTS("bool false", "string \"loss is too high\"", "int32 [1, 2]"), NULL,
         OP_KNOWS_VALUES);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_FAILED_PRECONDITION);
    cr_assert_str_eq(troupe_status_message(), "assertion failed: \"loss is too high\", [1, 2]");
    op_node_fini(&node);
}

Test(control, wants_one_condition)
{
    static const char *const conditions[] = {"bool [true, true]", "bool []"};
    static const char *const messages[] = {"input \"condition\" wants a scalar, got shape [2]",
                                           "input \"condition\" wants a scalar, got shape [0]"};
    for (int i = 0; i < 2; i++) {
        struct op_node node;
        cr_assert_eq(
            op_node_init(&node, "Assert", INPUTS(conditions[i], "int32 1"), NULL, OP_KNOWS_SHAPES),
            TROUPE_INVALID_ARGUMENT);
        cr_assert(strstr(troupe_status_message(), messages[i]), "%s", troupe_status_message());
        op_node_fini(&node);
        init(&node, "Assert", INPUTS(conditions[i], "int32 1"), NULL, OP_KNOWS_NOTHING);
        cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT);
        cr_assert_str_eq(troupe_status_message(), messages[i]);
        op_node_fini(&node);
    }
}

Test(collective, all_reduce_keeps_shapes)
{
    struct op_node node;
    init(&node, "AllReduce", INPUTS("float32 [1, 2]", "float32 [[1]]"),
         "\"group\": [0, 1], \"key\": \"k\"", OP_KNOWS_SHAPES);
    cr_assert_eq(node.node->output_count, 2);
    cr_assert_eq(node.node->output_shapes[0].rank, 1);
    cr_assert_eq(node.node->output_shapes[0].dims[0], 2);
    cr_assert_eq(node.node->output_shapes[1].rank, 2);
    op_node_fini(&node);
}

Test(collective, refuses_what_only_the_runtime_makes)
{
    struct op_node node;
    cr_assert_eq(op_node_init(&node, "Send", INPUTS("float32 [1, 2]"),
                              "\"key\": \"k\", \"recv_rank\": 1", OP_KNOWS_SHAPES),
                 TROUPE_INVALID_ARGUMENT);
    cr_assert(strstr(troupe_status_message(), "Send is made by the runtime where an edge crosses "
                                              "between ranks"),
              "%s", troupe_status_message());
    op_node_fini(&node);
    cr_assert_eq(op_node_init(&node, "Recv", INPUTS(NULL),
                              "\"T\": \"float32\", \"key\": \"k\", \"send_rank\": 1",
                              OP_KNOWS_SHAPES),
                 TROUPE_INVALID_ARGUMENT);
    cr_assert(strstr(troupe_status_message(), "Recv is made by the runtime"), "%s",
              troupe_status_message());
    op_node_fini(&node);
}
