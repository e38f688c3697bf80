/* Checks of rows, each of which stands alone. */
#include "op_rows.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/memory.h"
#include "ops/tensor.h"

static void check_shape(const struct op_node *node, const struct op_row *row, int output,
                        enum op_known known)
{
    const struct troupe_shape *inferred = &node->node->output_shapes[output];
    struct troupe_shape computed = troupe_shape_of(node->outputs[output]), merged;
    char a[TROUPE_SHAPE_TEXT_MAX], b[TROUPE_SHAPE_TEXT_MAX];
    cr_assert_eq(troupe_shape_merge(inferred, &computed, &merged), TROUPE_OK,
                 "%s: inferred %s, computed %s", row->op, troupe_shape_print(inferred, a),
                 troupe_shape_print(&computed, b));
    cr_assert(known > row->exact || troupe_shape_equal(inferred, &computed),
              "%s (%s): inferred %s, computed %s", row->op, row->inputs[0],
              troupe_shape_print(inferred, a), troupe_shape_print(&computed, b));
}

static void check_outputs(const struct op_node *node, const struct op_row *row, enum op_known known)
{
    int count = 0;
    for (; row->outputs[count]; count++) {
        cr_assert_lt(count, node->node->output_count, "%s", row->op);
        check_shape(node, row, count, known);
        struct troupe_tensor *wanted = op_tensor(row->outputs[count]);
        /* JSON cannot say the sizes behind a 0, as in [0,1]: the shape was compared above. */
        bool is_beyond_json = wanted->elements == 0 && node->outputs[count]->elements == 0 &&
                              wanted->rank < node->outputs[count]->rank;
        troupe_tensor_unref(wanted);
        if (!is_beyond_json)
            op_expect(node->outputs[count], row->outputs[count], row->tolerance, row->op);
    }
    cr_assert_eq(count, node->node->output_count, "%s", row->op);
}

static void check_known(const struct op_row *row, enum op_known known)
{
    struct op_node node;
    cr_assert_eq(op_node_init(&node, row->op, row->inputs, row->attr, known), TROUPE_OK,
                 "%s (%s), known %d: %s", row->op, row->inputs[0], (int)known,
                 troupe_status_message());
    for (int pass = 0; pass < 2; pass++) {
        bool is_held = pass == 0;
        node.parallel = pass ? &op_backwards : NULL;
        for (int i = 0; i < node.input_count && is_held; i++)
            troupe_tensor_ref(node.inputs[i]);
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s (%s): %s", row->op, row->inputs[0],
                     troupe_status_message());
        check_outputs(&node, row, known);
        for (int i = 0; i < node.input_count && is_held; i++) {
            op_expect(node.inputs[i], row->inputs[i], 0, row->op); /* was not written */
            troupe_tensor_unref(node.inputs[i]);
        }
    }
    op_node_fini(&node);
}

void op_check_values(const struct op_row *row)
{
    struct troupe_memory_usage before, after;
    cr_assert(troupe_op_find(row->op), "%s", row->op); /* builds the registry */
    troupe_memory_usage_get(&before);
    for (int known = 0; known < OP_KNOWN_COUNT; known++)
        check_known(row, (enum op_known)known);
    troupe_memory_usage_get(&after);
    cr_assert_eq(after.live_bytes, before.live_bytes, "%s (%s) loses tensors or strings", row->op,
                 row->inputs[0]);
}

void op_check_message(const struct op_wrong *wrong)
{
    struct op_node node;
    cr_assert_eq(op_node_init(&node, wrong->op, wrong->inputs, wrong->attr, OP_KNOWS_NOTHING),
                 TROUPE_OK, "%s: %s", wrong->op, troupe_status_message());
    cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT, "%s wants: %s", wrong->op,
                 wrong->message);
    cr_assert_str_eq(troupe_status_message(), wrong->message);
    op_node_fini(&node);
    enum troupe_status status =
        op_node_init(&node, wrong->op, wrong->inputs, wrong->attr, OP_KNOWS_VALUES);
    cr_assert_eq(status == TROUPE_OK, wrong->by_value, "%s: %s", wrong->op, wrong->message);
    if (status != TROUPE_OK)
        cr_assert(strstr(troupe_status_message(), wrong->message), "%s\nwants: %s",
                  troupe_status_message(), wrong->message);
    op_node_fini(&node);
}
