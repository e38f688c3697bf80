/* Random ops: distributions, and that a number depends on seeds, step and index alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op_node.h"
#include "ops/tensor.h"

#define INPUTS(...) ((const char *[]){__VA_ARGS__, NULL})
#define COUNT       20000

static const char *const ops[] = {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"};
static const char *const dtypes[] = {"float32", "float64"};

static void draw_init(struct op_node *node, const char *op, const char *dtype, const char *more)
{
    char attr[128];
    snprintf(attr, sizeof(attr), "\"dtype\": \"%s\"%s", dtype, more);
    cr_assert_eq(op_node_init(node, op, INPUTS("int32 [200, 100]"), attr, OP_KNOWS_VALUES),
                 TROUPE_OK, "%s", troupe_status_message());
    cr_assert_eq(node->node->output_shapes[0].dims[0], 200);
    cr_assert_eq(node->node->output_shapes[0].dims[1], 100);
}

static void draw(struct op_node *node, uint64_t step, double *out)
{
    cr_assert_eq(op_node_call(node, step), TROUPE_OK, "%s", troupe_status_message());
    const struct troupe_tensor *tensor = node->outputs[0];
    cr_assert_eq(tensor->elements, COUNT);
    const void *data = troupe_tensor_data(tensor);
    for (int i = 0; i < COUNT; i++)
        out[i] = tensor->dtype == TROUPE_FLOAT32 ? (double)((const float *)data)[i]
                                                 : ((const double *)data)[i];
}

struct moments {
    double low, high, mean, variance, correlation;
};

static struct moments moments_of(const double *values)
{
    struct moments m = {.low = values[0], .high = values[0]};
    for (int i = 0; i < COUNT; i++) {
        m.low = fmin(m.low, values[i]);
        m.high = fmax(m.high, values[i]);
        m.mean += values[i] / COUNT;
    }
    for (int i = 0; i < COUNT; i++)
        m.variance += (values[i] - m.mean) * (values[i] - m.mean) / COUNT;
    for (int i = 1; i < COUNT; i++)
        m.correlation += (values[i] - m.mean) * (values[i - 1] - m.mean) / COUNT / m.variance;
    return m;
}

/* Bounds are five standard errors; seeds are fixed, so that it does not fail by chance. */
Test(random, distributions)
{
    static double values[COUNT];
    static const double means[] = {0.5, 0, 0}, variances[] = {1.0 / 12, 1, 0.7737};
    static const double lows[] = {0, -6, -2}, highs[] = {1, 6, 2};
    for (int op = 0; op < 3; op++) {
        for (int dtype = 0; dtype < 2; dtype++) {
            struct op_node node;
            draw_init(&node, ops[op], dtypes[dtype], "");
            draw(&node, 0, values);
            struct moments m = moments_of(values);
            double error = 5 * sqrt(variances[op] / COUNT);
            cr_assert(fabs(m.mean - means[op]) < error, "%s: mean %g", ops[op], m.mean);
            cr_assert(fabs(m.variance / variances[op] - 1) < 0.05, "%s: variance %g", ops[op],
                      m.variance);
            cr_assert(fabs(m.correlation) < 5 / sqrt(COUNT), "%s: correlation %g", ops[op],
                      m.correlation);
            cr_assert(m.low >= lows[op] && m.high <= highs[op], "%s: %g to %g", ops[op], m.low,
                      m.high);
            cr_assert(op != 0 || m.high < 1, "uniform numbers are below 1");
            cr_assert(op != 1 || m.high > 3, "normal numbers have tails");
            op_node_fini(&node);
        }
    }
}

Test(random, depends_on_seeds_step_and_stream)
{
    static double first[COUNT], other[COUNT];
    for (int op = 0; op < 3; op++) {
        struct op_node node;
        draw_init(&node, ops[op], "float32", "");
        draw(&node, 5, first);
        node.parallel = &op_backwards;
        draw(&node, 5, other);
        cr_assert_eq(memcmp(first, other, sizeof(first)), 0, "%s: in pieces", ops[op]);
        draw(&node, 6, other);
        cr_assert_neq(memcmp(first, other, sizeof(first)), 0, "%s: another step", ops[op]);
        node.seed++;
        draw(&node, 5, other);
        cr_assert_neq(memcmp(first, other, sizeof(first)), 0, "%s: another graph seed", ops[op]);
        node.seed--;
        node.stream++;
        draw(&node, 5, other);
        cr_assert_neq(memcmp(first, other, sizeof(first)), 0, "%s: another node", ops[op]);
        op_node_fini(&node);
        draw_init(&node, ops[op], "float32", ", \"seed\": 1");
        draw(&node, 5, other);
        cr_assert_neq(memcmp(first, other, sizeof(first)), 0, "%s: another seed", ops[op]);
        op_node_fini(&node);
        draw_init(&node, ops[op], "float32", ", \"seed2\": 1");
        draw(&node, 5, first);
        cr_assert_neq(memcmp(first, other, sizeof(first)), 0, "%s: another seed2", ops[op]);
        op_node_fini(&node);
    }
}

Test(random, reads_shapes)
{
    static const char *const shapes[] = {"int32 []", "int64 [2, 3]", "int32 [0, 4]"};
    static const int64_t elements[] = {1, 6, 0};
    for (int i = 0; i < 3; i++) {
        for (int known = 0; known < OP_KNOWN_COUNT; known++) {
            struct op_node node;
            cr_assert_eq(op_node_init(&node, "RandomUniform", INPUTS(shapes[i]),
                                      "\"dtype\": \"float32\"", (enum op_known)known),
                         TROUPE_OK, "%s", troupe_status_message());
            cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s", troupe_status_message());
            cr_assert_eq(node.outputs[0]->elements, elements[i]);
            op_node_fini(&node);
        }
    }
}

Test(random, refuses_wrong_shapes)
{
    static const char *const shapes[] = {"int32 [2, -1]", "int32 [[2]]",
                                         "int32 [1, 1, 1, 1, 1, 1, 1, 1, 1]"};
    static const char *const messages[] = {"input \"shape\" wants sizes of 0 or more, got -1",
                                           "input \"shape\" wants a vector",
                                           "input \"shape\" wants a vector of at most 8 sizes"};
    for (int i = 0; i < 3; i++) {
        struct op_node node;
        cr_assert_eq(op_node_init(&node, "RandomUniform", INPUTS(shapes[i]),
                                  "\"dtype\": \"float32\"", OP_KNOWS_VALUES),
                     TROUPE_INVALID_ARGUMENT, "%s", shapes[i]);
        cr_assert(strstr(troupe_status_message(), messages[i]), "%s", troupe_status_message());
        op_node_fini(&node);
        cr_assert_eq(op_node_init(&node, "RandomUniform", INPUTS(shapes[i]),
                                  "\"dtype\": \"float32\"", OP_KNOWS_NOTHING),
                     TROUPE_OK);
        cr_assert_eq(op_node_call(&node, 0), TROUPE_INVALID_ARGUMENT, "%s", shapes[i]);
        cr_assert(strstr(troupe_status_message(), messages[i]), "%s", troupe_status_message());
        op_node_fini(&node);
    }
}
