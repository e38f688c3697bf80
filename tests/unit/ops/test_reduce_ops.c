/* Reductions: values, shapes and messages, and large ones against the definition. */
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
    const char *outputs[2];
};

static const struct row rows[] = {
#include "reduce_rows.inc.h"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INPUTS(...)  ((const char *[]){__VA_ARGS__, NULL})

Test(reduce, values)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        op_check_values(&(struct op_row){.op = rows[i].op,
                                         .inputs = rows[i].inputs,
                                         .attr = rows[i].attr,
                                         .outputs = rows[i].outputs,
                                         .tolerance = 1e-6,
                                         .exact = OP_KNOWS_VALUES});
    }
}

static const struct {
    const char *op;
    const char *inputs[3];
    const char *message;
} wrongs[] = {
    {"Sum", {"float32 [[1]]", "int32 [2]"}, "axis 2: wants -2 to 1"},
    {"Max", {"float32 [[1]]", "int64 -3"}, "axis -3: wants -2 to 1"},
    {"Mean", {"float32 1", "int32 0"}, "axis 0: a scalar has no axes"},
    {"Sum",
     {"float32 [[1]]", "int32 [0, -2]"},
     "axis 0 is there twice: \"reduction_indices\" wants different axes"},
    {"All",
     {"bool [true]", "int32 [[0]]"},
     "\"reduction_indices\" wants a scalar or a vector, got shape [1,1]"},
    {"ArgMax", {"float32 [1]", "int32 1"}, "dimension 1: wants -1 to 0"},
    {"ArgMax", {"float32 1", "int32 0"}, "ArgMax wants 1 dimension or more, got a scalar"},
    {"ArgMin",
     {"float32 [[], []]", "int32 1"},
     "ArgMin wants 1 entry or more along dimension 1, got shape [2,0]"},
    {"ArgMin", {"float32 [1]", "int32 [0, 0]"}, "\"dimension\" wants one number, got shape [2]"},
};

/* In a run, and before it in the same words. */
Test(reduce, messages)
{
    for (size_t i = 0; i < COUNT(wrongs); i++)
        op_check_message(&(struct op_wrong){
            .op = wrongs[i].op, .inputs = wrongs[i].inputs, .message = wrongs[i].message});
}

Test(reduce, mean_of_nothing)
{
    struct op_node node;
    cr_assert_eq(
        op_node_init(&node, "Mean", INPUTS("float32 []", "int32 0"), NULL, OP_KNOWS_VALUES),
        TROUPE_OK);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK);
    cr_assert(isnan(*(const float *)troupe_tensor_data(node.outputs[0])));
    op_node_fini(&node);
    cr_assert_eq(op_node_init(&node, "Mean", INPUTS("int32 []", "int32 0"), NULL, OP_KNOWS_VALUES),
                 TROUPE_OK);
    cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "the mean of no integers: Mean wants 1 or more");
    op_node_fini(&node);
}

/* Calls a node whose inputs are replaced by a tensor and axes. Drops `x`. */
static void call_on(struct op_node *node, const char *op, struct troupe_tensor *x, const char *axes)
{
    cr_assert_eq(op_node_init(node, op, INPUTS("float32 [1]", axes), NULL, OP_KNOWS_NOTHING),
                 TROUPE_OK, "%s", troupe_status_message());
    troupe_tensor_unref(node->inputs[0]);
    node->inputs[0] = x;
}

/* NaN among numbers, at every place of a run and of rows. */
Test(reduce, not_a_number)
{
    static const char *const ops[] = {"Sum", "Prod", "Max", "Min", "Mean"};
    for (size_t i = 0; i < COUNT(ops); i++) {
        for (int place = 0; place < 40; place++) {
            struct op_node node;
            struct troupe_tensor *x;
            float data[40];
            for (int j = 0; j < 40; j++)
                data[j] = j == place ? NAN : 1;
            for (int axis = 0; axis < 2; axis++) {
                int64_t dims[] = {axis == 0 ? 40 : 1, axis == 0 ? 1 : 40};
                cr_assert_eq(troupe_tensor_from_data(TROUPE_FLOAT32, 2, dims, data, &x), TROUPE_OK);
                call_on(&node, ops[i], x, axis == 0 ? "int32 0" : "int32 [0, 1]");
                cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
                cr_assert(isnan(*(const float *)troupe_tensor_data(node.outputs[0])), "%s", ops[i]);
                op_node_fini(&node);
            }
        }
    }
}

Test(reduce, places_of_not_a_number)
{
    static const struct {
        float data[3];
        int64_t largest, least;
    } cases[] = {
        {{NAN, 1, 2}, 2, 1}, {{1, NAN, 2}, 2, 0}, {{NAN, NAN, NAN}, 0, 0}, {{2, 1, NAN}, 0, 1}};
    int64_t dim = 3;
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int least = 0; least < 2; least++) {
            struct op_node node;
            struct troupe_tensor *x;
            cr_assert_eq(troupe_tensor_from_data(TROUPE_FLOAT32, 1, &dim, cases[i].data, &x),
                         TROUPE_OK);
            call_on(&node, least ? "ArgMin" : "ArgMax", x, "int32 0");
            cr_assert_eq(op_node_call(&node, 0), TROUPE_OK);
            cr_assert_eq(*(const int64_t *)troupe_tensor_data(node.outputs[0]),
                         least ? cases[i].least : cases[i].largest, "case %zu", i);
            op_node_fini(&node);
        }
    }
}

/* Large ones: every set of axes of [37, 5, 70, 41] against sums in double, whole and in pieces,
 * which must agree to the bit. */
Test(reduce, large)
{
    static const char *const axes[] = {"int32 [0]",       "int32 [1]",       "int32 [2]",
                                       "int32 [3]",       "int32 [0, 1]",    "int32 [0, 2]",
                                       "int32 [1, 3]",    "int32 [2, 3]",    "int32 [0, 2, 3]",
                                       "int32 [1, 2, 3]", "int32 [0, 1, 3]", "int32 [0, 1, 2, 3]"};
    static const unsigned sets[] = {1, 2, 4, 8, 3, 5, 10, 12, 13, 14, 11, 15};
    const int64_t dims[] = {37, 5, 70, 41};
    int64_t total = dims[0] * dims[1] * dims[2] * dims[3];
    for (size_t i = 0; i < COUNT(sets); i++) {
        struct op_node node;
        struct troupe_tensor *x;
        cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 4, dims, &x), TROUPE_OK);
        float *data = troupe_tensor_data_mutable(x);
        for (int64_t j = 0; j < total; j++)
            data[j] = (float)((j * 7919) % 1009) / 1009;
        double *wanted = calloc((size_t)total, sizeof(*wanted));
        for (int64_t j = 0; j < total; j++) {
            int64_t at = 0, rest = j, step = 1;
            for (int axis = 3; axis >= 0; axis--) {
                if (!(sets[i] & (1U << axis))) {
                    at += rest % dims[axis] * step;
                    step *= dims[axis];
                }
                rest /= dims[axis];
            }
            wanted[at] += (double)data[j];
        }
        call_on(&node, "Sum", x, axes[i]);
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
        struct troupe_tensor *whole = troupe_tensor_ref(node.outputs[0]);
        const float *got = troupe_tensor_data(whole);
        for (int64_t j = 0; j < whole->elements; j++)
            cr_assert_float_eq((double)got[j], wanted[j], 5e-6 * wanted[j], "%s at %lld", axes[i],
                               (long long)j);
        node.parallel = &op_backwards;
        cr_assert_eq(op_node_call(&node, 0), TROUPE_OK);
        cr_assert_eq(memcmp(got, troupe_tensor_data(node.outputs[0]), troupe_tensor_bytes(whole)),
                     0, "%s", axes[i]);
        troupe_tensor_unref(whole);
        free(wanted);
        op_node_fini(&node);
    }
}
