/* Array ops: values, shapes and messages, with all, part or nothing of the inputs known before. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/memory.h"
#include "op_node.h"
#include "op_rows.h"
#include "ops/kernels/region.h"
#include "ops/tensor.h"

struct row {
    const char *op;
    const char *inputs[5];
    const char *attr;
    const char *outputs[4];
};

static const struct row rows[] = {
#include "array_rows.inc.h"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(array, values)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        op_check_values(&(struct op_row){.op = rows[i].op,
                                         .inputs = rows[i].inputs,
                                         .attr = rows[i].attr,
                                         .outputs = rows[i].outputs,
                                         .tolerance = 0,
                                         .exact = OP_KNOWS_VALUES});
    }
}

/* `message` is the end of what is said before a run, and all that is said in one. */
struct wrong {
    const char *op;
    const char *inputs[5];
    const char *attr;
    const char *message;
};

static const struct wrong wrongs[] = {
#include "array_wrongs.inc.h"
};

/* Whether only the values in a run tell what is wrong. */
static bool is_told_by_value(const char *message)
{
    return strstr(message, "\"indices\"") || strstr(message, "shape 1") ||
           strstr(message, "\"segment_ids\" has") || strstr(message, "\"x\" wants each");
}

Test(array, messages)
{
    int before_the_run = 0;
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        bool by_value = is_told_by_value(wrongs[i].message);
        op_check_message(&(struct op_wrong){.op = wrongs[i].op,
                                            .inputs = wrongs[i].inputs,
                                            .attr = wrongs[i].attr,
                                            .message = wrongs[i].message,
                                            .by_value = by_value});
        before_the_run += !by_value;
    }
    cr_assert_gt(before_the_run, 20);
}

Test(array, shares_the_buffer)
{
    static const struct {
        const char *op, *inputs[3], *attr;
    } shared[] = {
        {"Identity", {"float32 [1, 2]"}, NULL},
        {"Reshape", {"float32 [1, 2]", "int32 [2, 1]"}, NULL},
        {"ExpandDims", {"float32 [1, 2]", "int32 0"}, NULL},
        {"Squeeze", {"float32 [[1, 2]]"}, NULL},
        {"Transpose", {"float32 [[1, 2]]", "int32 [0, 1]"}, NULL},
    };
    for (size_t i = 0; i < COUNT(shared); i++) {
        struct op_node node;
        cr_assert_eq(
            op_node_init(&node, shared[i].op, shared[i].inputs, shared[i].attr, OP_KNOWS_SHAPES),
            TROUPE_OK);
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK);
        cr_assert_eq(node.outputs[0]->buffer, node.inputs[0]->buffer, "%s", shared[i].op);
        op_node_fini(&node);
    }
}

/* A large transpose, which is split, against the definition. */
Test(array, large_transpose)
{
    int64_t dims[] = {37, 211, 5};
    int32_t perm[] = {1, 2, 0};
    struct troupe_tensor *x;
    struct op_node node;
    static const char *const inputs[] = {"int32 [[[0]]]", "int32 [1, 2, 0]", NULL};
    cr_assert_eq(op_node_init(&node, "Transpose", inputs, NULL, OP_KNOWS_NOTHING), TROUPE_OK);
    cr_assert_eq(troupe_tensor_create(TROUPE_INT32, 3, dims, &x), TROUPE_OK);
    int32_t *data = troupe_tensor_data_mutable(x);
    for (int32_t i = 0; i < 37 * 211 * 5; i++)
        data[i] = i;
    troupe_tensor_unref(node.inputs[0]);
    node.inputs[0] = x;
    node.parallel = &op_backwards;
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
    const int32_t *out = troupe_tensor_data(node.outputs[0]);
    for (int a = 0; a < 3; a++)
        cr_assert_eq(node.outputs[0]->dims[a], dims[perm[a]]);
    for (int i = 0; i < 37; i++)
        for (int j = 0; j < 211; j++)
            for (int k = 0; k < 5; k++)
                cr_assert_eq(out[(j * 5 + k) * 37 + i], (i * 211 + j) * 5 + k);
    op_node_fini(&node);
}

/* Axes merge where both layouts are runs, and the result does not depend on it. */
Test(region, copies_boxes)
{
    int16_t from[4 * 6], to[4 * 6], wanted[4 * 6] = {0};
    for (int i = 0; i < 24; i++) {
        from[i] = (int16_t)(i + 1);
        to[i] = 0;
    }
    struct troupe_region region = {.rank = 0};
    troupe_region_add(&region, 1, 0, 0);
    troupe_region_add(&region, 2, 12, 6);
    troupe_region_add(&region, 3, 1, 2);
    troupe_region_copy(&op_backwards, &region, sizeof(int16_t), to + 1, from + 6);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            wanted[1 + 12 * i + j] = from[6 + 6 * i + 2 * j];
    cr_assert_arr_eq(to, wanted, sizeof(to));

    static int64_t many[40000];
    int64_t value = 9;
    troupe_region_fill(&op_backwards, 40000, sizeof(value), many, &value);
    for (int i = 0; i < 40000; i++)
        cr_assert_eq(many[i], 9);
    region.rank = 0;
    troupe_region_add(&region, 0, 1, 1);
    troupe_region_copy(NULL, &region, sizeof(int16_t), to, from); /* an empty box moves nothing */
    cr_assert_arr_eq(to, wanted, sizeof(to));
}
