/* Switch, Merge, Enter, Exit, NextIteration and LoopCond: what each passes on, and what is dead. */
#include <criterion/criterion.h>
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

static void call(struct op_node *node)
{
    cr_assert_eq(op_node_call(node, 0), TROUPE_OK, "%s", troupe_status_message());
}

/* Makes input `index` dead, as when the branch that it comes from was not taken. */
static void kill(struct op_node *node, int index)
{
    troupe_tensor_unref(node->inputs[index]);
    node->inputs[index] = troupe_tensor_dead();
}

Test(flow, a_dead_tensor_is_known_and_not_counted)
{
    struct troupe_tensor *dead = troupe_tensor_dead();
    cr_assert(troupe_tensor_is_dead(dead));
    cr_assert_not(troupe_tensor_is_dead(NULL));
    cr_assert_eq(troupe_tensor_payload(dead), &troupe_payload_dead);
    cr_assert_eq(troupe_tensor_ref(dead), dead);
    for (int i = 0; i < 3; i++)
        troupe_tensor_unref(dead);
    struct troupe_tensor *alive = op_tensor("int32 1");
    cr_assert_not(troupe_tensor_is_dead(alive));
    troupe_tensor_unref(alive);
}

Test(flow, switch_passes_to_one_side)
{
    static const char *const names[] = {"Switch", "RefSwitch"};
    for (int i = 0; i < 4; i++) {
        int taken = i % 2;
        struct op_node node;
        init(&node, names[i / 2], INPUTS("float32 [1, 2]", taken ? "bool true" : "bool false"),
             NULL, OP_KNOWS_SHAPES);
        cr_assert_eq(node.node->output_count, 2);
        for (int o = 0; o < 2; o++) {
            cr_assert_eq(node.node->output_dtypes[o], TROUPE_FLOAT32);
            cr_assert_eq(node.node->output_shapes[o].dims[0], 2);
        }
        call(&node);
        cr_assert_eq(node.outputs[taken], node.inputs[0]);
        cr_assert(troupe_tensor_is_dead(node.outputs[!taken]));
        op_node_fini(&node);
    }
}

Test(flow, switch_wants_a_scalar)
{
    struct op_node node;
    cr_assert_eq(
        op_node_init(&node, "Switch", INPUTS("int32 1", "bool [true]"), NULL, OP_KNOWS_SHAPES),
        TROUPE_INVALID_ARGUMENT);
    cr_assert(strstr(troupe_status_message(), "input \"pred\" wants a scalar, got shape [1]"), "%s",
              troupe_status_message());
    op_node_fini(&node);
    init(&node, "Switch", INPUTS("int32 1", "bool [true]"), NULL, OP_KNOWS_NOTHING);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "input \"pred\" wants a scalar, got shape [1]");
    op_node_fini(&node);
}

Test(flow, merge_passes_the_live_input)
{
    struct op_node node;
    for (int live = 0; live < 3; live++) {
        init(&node, "Merge", INPUTS("int32 [1]", "int32 [2]", "int32 [3]"), NULL, OP_KNOWS_SHAPES);
        for (int i = 0; i < 3; i++) {
            if (i != live)
                kill(&node, i);
        }
        call(&node);
        char index[16];
        snprintf(index, sizeof(index), "int32 %d", live);
        cr_assert_eq(node.outputs[0], node.inputs[live]);
        op_expect(node.outputs[1], index, 0, "value_index");
        op_node_fini(&node);
    }
}

Test(flow, merge_of_nothing_is_dead)
{
    struct op_node node;
    init(&node, "Merge", INPUTS("int32 1", "int32 2"), NULL, OP_KNOWS_SHAPES);
    kill(&node, 0);
    kill(&node, 1);
    call(&node);
    cr_assert(troupe_tensor_is_dead(node.outputs[0]));
    cr_assert(troupe_tensor_is_dead(node.outputs[1]));
    op_node_fini(&node);
}

Test(flow, merge_knows_what_its_inputs_have_in_common)
{
    static const struct {
        const char *a, *b, *shape;
    } rows[] = {
        {"int32 [[1, 2]]", "int32 [[3, 4]]", "[1,2]"},
        {"int32 [[1, 2]]", "int32 [[3, 4], [5, 6]]", "[?,2]"},
        {"int32 [[1, 2]]", "int32 [1, 2]", "?"},
        {"int32 1", "int32 2", "[]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct op_node node;
        char text[TROUPE_SHAPE_TEXT_MAX];
        init(&node, "Merge", INPUTS(rows[i].a, rows[i].b), NULL, OP_KNOWS_SHAPES);
        cr_expect_str_eq(troupe_shape_print(&node.node->output_shapes[0], text), rows[i].shape);
        cr_expect_eq(node.node->output_shapes[1].rank, 0);
        cr_expect_eq(node.node->output_dtypes[1], TROUPE_INT32);
        op_node_fini(&node);
    }
}

/* A node alone, which no file may have: a loop has all of its parts. */
static void init_alone(struct op_node *node, const char *op, const char *input)
{
    struct troupe_diagnostics diagnostics;
    struct troupe_shape shape = troupe_shape_make(1, (const int64_t[]){2});
    const struct troupe_value value = {0, 0};
    struct troupe_named_attr attrs[2];
    char dtype_name[] = "dtype", shape_name[] = "shape", frame_name[] = "frame_name";
    int number;
    *node = (struct op_node){.input_count = 1, .inputs = {op_tensor(input)}};
    bool is_scalar = troupe_tensor_rank(node->inputs[0]) == 0;
    node->input_dtypes[0] = troupe_tensor_dtype(node->inputs[0]);
    attrs[0] = (struct troupe_named_attr){dtype_name, troupe_attr_type(node->input_dtypes[0])};
    attrs[1] = (struct troupe_named_attr){
        shape_name, troupe_attr_shape(is_scalar ? troupe_shape_scalar() : shape)};
    cr_assert_eq(troupe_graph_create(&node->graph), TROUPE_OK);
    struct troupe_node_spec spec = {
        .name = "i", .op = "Placeholder", .attrs = attrs, .attr_count = 2};
    cr_assert_eq(troupe_graph_add(node->graph, &spec, &number), TROUPE_OK);
    attrs[0] = (struct troupe_named_attr){frame_name, troupe_attr_string("f")};
    spec = (struct troupe_node_spec){.name = "z",
                                     .op = op,
                                     .inputs = &value,
                                     .input_count = 1,
                                     .attrs = attrs,
                                     .attr_count = strstr(op, "Enter") != NULL};
    cr_assert_eq(troupe_graph_add(node->graph, &spec, &number), TROUPE_OK);
    troupe_attr_fini(&attrs[0].value);
    troupe_diagnostics_init(&diagnostics);
    cr_assert_eq(troupe_graph_infer(node->graph, 0, &diagnostics), TROUPE_OK, "%s",
                 troupe_status_message());
    troupe_diagnostics_fini(&diagnostics);
    node->node = &node->graph->nodes[number];
}

Test(flow, the_others_pass_their_input_on)
{
    static const char *const names[] = {"Enter",         "RefEnter",         "Exit", "RefExit",
                                        "NextIteration", "RefNextIteration", NULL};
    for (int i = 0; names[i]; i++) {
        struct op_node node;
        init_alone(&node, names[i], "float32 [1, 2]");
        cr_assert_eq(node.node->output_shapes[0].dims[0], 2);
        call(&node);
        cr_assert_eq(node.outputs[0], node.inputs[0]);
        op_node_fini(&node);
    }
}

Test(flow, loop_cond_wants_one_bool)
{
    struct op_node node;
    init_alone(&node, "LoopCond", "bool false");
    call(&node);
    cr_assert_eq(node.outputs[0], node.inputs[0]);
    troupe_tensor_unref(node.inputs[0]);
    node.inputs[0] = op_tensor("bool [true, false]");
    cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "input \"input\" wants a scalar, got shape [2]");
    op_node_fini(&node);
    cr_assert_eq(op_node_init(&node, "LoopCond", INPUTS("bool [true]"), NULL, OP_KNOWS_SHAPES),
                 TROUPE_INVALID_ARGUMENT);
    cr_assert(strstr(troupe_status_message(), "input \"input\" wants a scalar, got shape [1]"),
              "%s", troupe_status_message());
    op_node_fini(&node);
}
