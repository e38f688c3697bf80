/* Every gradient against central differences in float64: a row for each op that has one. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "evaluate.h"
#include "ops/tensor.h"

#define X_MAX 3

/* z = OP(inputs), where x0, x1, x2 are float64 with values from `low` to `high` and c0, c1, c2
 * are Consts. The loss is the sum of z's first `outputs` outputs (0: all), each element times a
 * weight of its own. */
struct row {
    const char *op;
    const char *x[X_MAX]; /* shapes */
    const char *c[X_MAX]; /* int32 literals */
    const char *before;   /* a node that makes an input of x, NULL for none */
    const char *inputs;   /* NULL: all of x, then all of c */
    const char *attr;     /* members of the attr object */
    double low, high;     /* both 0: -1 to 1 */
    int outputs;
    int skips;        /* so many of the first x have no gradient */
    bool stops;       /* no gradient flows */
    bool wants_shape; /* only with shapes known before the run */
};

static const struct row rows[] = {
#include "gradient_rows.inc.h"
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* "[2,3]" with every size unknown: "[null,null]". */
static void add_unknown(struct troupe_text *text, const char *shape)
{
    for (const char *at = shape; *at; at++)
        if (*at < '0' || *at > '9')
            troupe_text_addf(text, "%c", *at);
        else if (at[1] < '0' || at[1] > '9')
            troupe_text_add(text, "null");
}

static void add_inputs(struct troupe_text *text, const struct row *row)
{
    if (row->inputs) {
        troupe_text_add(text, row->inputs);
        return;
    }
    const char *comma = "";
    for (int i = 0; i < X_MAX && row->x[i]; i++, comma = ", ")
        troupe_text_addf(text, "%s\"x%d\"", comma, i);
    for (int i = 0; i < X_MAX && row->c[i]; i++, comma = ", ")
        troupe_text_addf(text, "%s\"c%d\"", comma, i);
}

static struct troupe_graph *row_graph(const struct row *row, bool is_known)
{
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_text_add(&text, "{\"node\": [\n");
    for (int i = 0; i < X_MAX && row->x[i]; i++) {
        troupe_text_addf(&text,
                         "{\"name\": \"x%d\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": "
                         "\"float64\", \"shape\": ",
                         i);
        if (is_known)
            troupe_text_add(&text, row->x[i]);
        else
            add_unknown(&text, row->x[i]);
        troupe_text_add(&text, "}},\n");
    }
    for (int i = 0; i < X_MAX && row->c[i]; i++)
        troupe_text_addf(&text,
                         "{\"name\": \"c%d\", \"op\": \"Const\", \"attr\": {\"dtype\": \"int32\", "
                         "\"value\": %s}},\n",
                         i, row->c[i]);
    if (row->before)
        troupe_text_addf(&text, "%s,\n", row->before);
    troupe_text_addf(&text, "{\"name\": \"z\", \"op\": \"%s\", \"input\": [", row->op);
    add_inputs(&text, row);
    troupe_text_addf(&text, "], \"attr\": {%s}}]}", row->attr ? row->attr : "");
    cr_assert(!text.failed);
    struct troupe_graph *graph = graph_of(text.data);
    troupe_text_fini(&text);
    return graph;
}

/* Adds a node and infers it. */
static int add_node(struct troupe_graph *graph, const struct troupe_node_spec *spec)
{
    int number;
    struct troupe_diagnostics diagnostics;
    cr_assert_eq(troupe_graph_add(graph, spec, &number), TROUPE_OK, "%s", troupe_status_message());
    troupe_diagnostics_init(&diagnostics);
    enum troupe_status status = troupe_graph_infer(graph, number, &diagnostics);
    if (status == TROUPE_OK)
        status = troupe_diagnostics_close(&diagnostics);
    cr_assert_eq(status, TROUPE_OK, "%s", troupe_status_message());
    troupe_diagnostics_fini(&diagnostics);
    return number;
}

static int add_op(struct troupe_graph *graph, const char *name, const char *op, int a, int b)
{
    struct troupe_value inputs[] = {{a, 0}, {b, 0}};
    struct troupe_node_spec spec = {.name = name, .op = op, .inputs = inputs, .input_count = 2};
    return add_node(graph, &spec);
}

static int add_ints(struct troupe_graph *graph, const char *name, int32_t value)
{
    struct troupe_tensor *tensor;
    int64_t one = 1;
    char value_name[] = "value", dtype_name[] = "dtype";
    cr_assert_eq(troupe_tensor_from_data(TROUPE_INT32, 1, &one, &value, &tensor), TROUPE_OK);
    struct troupe_named_attr attrs[] = {{value_name, troupe_attr_tensor(tensor)},
                                        {dtype_name, troupe_attr_type(TROUPE_INT32)}};
    struct troupe_node_spec spec = {.name = name, .op = "Const", .attrs = attrs, .attr_count = 2};
    int number = add_node(graph, &spec);
    troupe_attr_fini(&attrs[0].value);
    troupe_tensor_unref(tensor);
    return number;
}

/* The sum of one output's elements, each times its weight: a number, of float64. */
static int add_weighted_sum(struct troupe_graph *graph, struct troupe_value output, int index)
{
    char name[64], dtype_name[] = "dtype", shape_name[] = "shape";
    struct troupe_named_attr attrs[] = {
        {dtype_name, troupe_attr_type(TROUPE_FLOAT64)},
        {shape_name, troupe_attr_shape(graph->nodes[output.node].output_shapes[output.port])}};
    snprintf(name, sizeof(name), "weights%d", index);
    struct troupe_node_spec spec = {
        .name = name, .op = "Placeholder", .attrs = attrs, .attr_count = 2};
    int weights = add_node(graph, &spec);
    snprintf(name, sizeof(name), "weighted%d", index);
    struct troupe_value inputs[] = {output, {weights, 0}};
    spec = (struct troupe_node_spec){.name = name, .op = "Mul", .inputs = inputs, .input_count = 2};
    int weighted = add_node(graph, &spec);
    snprintf(name, sizeof(name), "flat%d", index);
    int flat = add_op(graph, name, "Reshape", weighted, troupe_graph_find(graph, "all"));
    snprintf(name, sizeof(name), "sum%d", index);
    return add_op(graph, name, "Sum", flat, troupe_graph_find(graph, "axis"));
}

static int add_loss(struct troupe_graph *graph, const struct row *row)
{
    int z = troupe_graph_find(graph, "z"), loss = -1;
    int outputs = row->outputs ? row->outputs : graph->nodes[z].output_count;
    (void)add_ints(graph, "all", -1);
    (void)add_ints(graph, "axis", 0);
    for (int i = 0; i < outputs; i++) {
        cr_assert_eq(graph->nodes[z].output_dtypes[i], TROUPE_FLOAT64, "%s", row->op);
        int sum = add_weighted_sum(graph, (struct troupe_value){z, i}, i);
        char name[32];
        snprintf(name, sizeof(name), "loss%d", i);
        loss = loss < 0 ? sum : add_op(graph, name, "Add", loss, sum);
    }
    return loss;
}

/* Values that lie apart from each other and from 0, where some ops have a corner. */
static struct troupe_tensor *spread(const struct troupe_shape *shape, double low, double high,
                                    double start)
{
    struct troupe_tensor *tensor;
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT64, shape->rank, shape->dims, &tensor),
                 TROUPE_OK);
    double *data = troupe_tensor_data_mutable(tensor);
    for (int64_t i = 0; i < tensor->elements; i++)
        data[i] = low + (high - low) * fmod(start + 0.6180339887498949 * (double)(i + 1), 1.0);
    return tensor;
}

static struct troupe_shape read_shape(const char *text)
{
    struct troupe_shape shape = troupe_shape_scalar();
    for (const char *at = text; *at;) {
        char *end;
        long long size = strtoll(at, &end, 10);
        if (end != at)
            shape.dims[shape.rank++] = size;
        at = end == at ? at + 1 : end;
    }
    return shape;
}

static void feed_all(struct evaluator *evaluator, const struct row *row, int outputs)
{
    double low = row->low, high = row->high;
    if (low == 0 && high == 0)
        low = -1, high = 1;
    for (int i = 0; i < X_MAX && row->x[i]; i++) {
        char name[8];
        snprintf(name, sizeof(name), "x%d", i);
        struct troupe_shape shape = read_shape(row->x[i]);
        evaluator_feed(evaluator, troupe_graph_find(evaluator->graph, name),
                       spread(&shape, low, high, 0.1 + 0.37 * i));
    }
    int z = troupe_graph_find(evaluator->graph, "z");
    evaluator_run(evaluator, &z, 1);
    for (int i = 0; i < outputs; i++) {
        char name[32];
        snprintf(name, sizeof(name), "weights%d", i);
        struct troupe_shape shape =
            troupe_shape_of(evaluator_value(evaluator, (struct troupe_value){z, i}));
        evaluator_feed(evaluator, troupe_graph_find(evaluator->graph, name),
                       spread(&shape, 0.5, 2, 0.77 + 0.13 * i));
    }
}

static double loss_of(struct evaluator *evaluator, int loss)
{
    evaluator_run(evaluator, &loss, 1);
    const struct troupe_tensor *value = evaluator_value(evaluator, (struct troupe_value){loss, 0});
    cr_assert_eq(troupe_tensor_elements(value), 1);
    return *(const double *)troupe_tensor_data(value);
}

/* The loss with element `element` of x moved by `by`. */
static double loss_moved(struct evaluator *evaluator, int loss, int x, int64_t element, double by)
{
    struct troupe_tensor *kept = troupe_tensor_ref(evaluator->feeds[x]), *moved;
    cr_assert_eq(troupe_tensor_copy(kept, &moved), TROUPE_OK);
    ((double *)troupe_tensor_data_mutable(moved))[element] += by;
    evaluator_feed(evaluator, x, moved);
    double value = loss_of(evaluator, loss);
    evaluator_feed(evaluator, x, kept);
    return value;
}

static void compare(struct evaluator *evaluator, const struct row *row, int loss, int x,
                    struct troupe_value gradient)
{
    const double h = 1e-5;
    const char *name = evaluator->graph->nodes[x].name;
    evaluator_run(evaluator, &gradient.node, 1);
    struct troupe_tensor *computed;
    const struct troupe_tensor *result = evaluator_value(evaluator, gradient);
    struct troupe_shape shape = troupe_shape_of(result),
                        wanted = troupe_shape_of(evaluator->feeds[x]);
    cr_assert(troupe_shape_equal(&shape, &wanted), "%s: gradient of %s has another shape", row->op,
              name);
    cr_assert_eq(troupe_tensor_dtype(result), TROUPE_FLOAT64);
    cr_assert_eq(troupe_tensor_copy(result, &computed), TROUPE_OK);
    for (int64_t i = 0; i < troupe_tensor_elements(computed); i++) {
        double expected =
            (loss_moved(evaluator, loss, x, i, h) - loss_moved(evaluator, loss, x, i, -h)) /
            (2 * h);
        double got = ((const double *)troupe_tensor_data(computed))[i];
        cr_expect(fabs(got - expected) <= 1e-6 * (1 + fabs(expected)),
                  "%s: d loss / d %s[%lld] is %.12g, by differences %.12g", row->op, name,
                  (long long)i, got, expected);
    }
    troupe_tensor_unref(computed);
}

static void check_row(const struct row *row, bool is_known)
{
    struct troupe_graph *graph = row_graph(row, is_known);
    int loss = add_loss(graph, row), count = 0;
    int outputs =
        row->outputs ? row->outputs : graph->nodes[troupe_graph_find(graph, "z")].output_count;
    struct troupe_value xs[X_MAX], gradients[X_MAX];
    for (; count < X_MAX && row->x[count]; count++) {
        char name[8];
        snprintf(name, sizeof(name), "x%d", count);
        xs[count] = (struct troupe_value){troupe_graph_find(graph, name), 0};
    }
    cr_assert_eq(
        troupe_graph_gradients(graph, (struct troupe_value){loss, 0}, xs, count, gradients),
        TROUPE_OK, "%s: %s", row->op, troupe_status_message());
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph);
    feed_all(&evaluator, row, outputs);
    for (int i = 0; i < count; i++) {
        bool stops = row->stops || i < row->skips;
        cr_assert_eq(troupe_value_is_none(gradients[i]), stops, "%s: gradient of x%d", row->op, i);
        if (!stops)
            compare(&evaluator, row, loss, xs[i].node, gradients[i]);
    }
    evaluator_fini(&evaluator);
    troupe_graph_destroy(graph);
}

Test(gradients, agree_with_differences)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        check_row(&rows[i], true);
}

Test(gradients, agree_where_shapes_are_known_in_the_run_only)
{
    int checked = 0;
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (!rows[i].wants_shape) {
            check_row(&rows[i], false);
            checked++;
        }
    cr_assert_gt(checked, 0);
}

Test(gradients, every_op_with_a_gradient_has_a_row)
{
    size_t count, with = 0;
    const struct troupe_op_schema *const *schemas = troupe_op_list(&count);
    for (size_t i = 0; i < count; i++) {
        const struct troupe_op *op = schemas[i]->op;
        bool found = false;
        if (!op->gradient)
            continue;
        with++;
        for (size_t j = 0; j < ROW_COUNT; j++)
            found = found || strcmp(rows[j].op, op->name) == 0;
        cr_expect(found, "op %s has a gradient that no row checks", op->name);
    }
    cr_assert_gt(with, 20);
}

static struct troupe_value value_of(const struct troupe_graph *graph, const char *name)
{
    struct troupe_value value;
    cr_assert_eq(troupe_graph_value(graph, name, &value), TROUPE_OK, "%s", troupe_status_message());
    return value;
}

#define PLACEHOLDER(name, shape)                                                                   \
    "{\"name\": \"" name "\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": \"float64\", "        \
    "\"shape\": " shape "}}"
#define UNARY(name, op, input)                                                                     \
    "{\"name\": \"" name "\", \"op\": \"" op "\", \"input\": [\"" input "\"]}"
#define BINARY(name, op, a, b)                                                                     \
    "{\"name\": \"" name "\", \"op\": \"" op "\", \"input\": [\"" a "\", \"" b "\"]}"

Test(gradients, contributions_are_summed_and_named)
{
    /* x * x + x */
    struct troupe_graph *graph = graph_of("{\"node\": [" PLACEHOLDER("x", "[]") "," BINARY(
        "m", "Mul", "x", "x") "," BINARY("loss", "Add", "m", "x") "]}");
    struct troupe_value x = value_of(graph, "x"), gradient;
    int before = graph->node_count;
    cr_assert_eq(troupe_graph_gradients(graph, value_of(graph, "loss"), &x, 1, &gradient),
                 TROUPE_OK);
    cr_assert_str_eq(graph->nodes[gradient.node].schema->op->name, "AddN");
    cr_assert_eq(graph->nodes[gradient.node].input_count, 3);
    for (int i = before; i < graph->node_count; i++) {
        cr_expect_eq(strncmp(graph->nodes[i].name, "gradients/", 10), 0);
        cr_expect_eq(graph->nodes[i].line, 0);
        cr_expect(graph->nodes[i].output_dtypes != NULL);
    }
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph);
    struct troupe_shape scalar = troupe_shape_scalar();
    evaluator_feed(&evaluator, x.node, spread(&scalar, 3, 3, 0));
    evaluator_run(&evaluator, &gradient.node, 1);
    cr_assert_float_eq(*(const double *)troupe_tensor_data(evaluator_value(&evaluator, gradient)),
                       7.0, 1e-12);
    evaluator_fini(&evaluator);
    troupe_graph_destroy(graph);
}

Test(gradients, nothing_flows_where_nothing_depends)
{
    struct troupe_graph *graph = graph_of("{\"node\": [" PLACEHOLDER("x", "[]") "," PLACEHOLDER(
        "y", "[]") "," UNARY("loss", "Square", "x") "]}");
    struct troupe_value xs[] = {value_of(graph, "x"), value_of(graph, "y")}, gradients[2];
    cr_assert_eq(troupe_graph_gradients(graph, value_of(graph, "loss"), xs, 2, gradients),
                 TROUPE_OK);
    cr_assert(!troupe_value_is_none(gradients[0]));
    cr_assert(troupe_value_is_none(gradients[1]));
    troupe_graph_destroy(graph);
}

Test(gradients, go_with_the_forward_node)
{
    struct troupe_graph *graph = graph_of("{\"node\": [" PLACEHOLDER(
        "x", "[]") ","
                   "{\"name\": \"s\", \"op\": \"Square\", \"input\": [\"x\"], \"device\": "
                   "\"/job:worker/task:1\"}," UNARY("loss", "Exp", "s") "]}");
    struct troupe_value x = value_of(graph, "x"), gradient;
    cr_assert_eq(troupe_graph_gradients(graph, value_of(graph, "loss"), &x, 1, &gradient),
                 TROUPE_OK);
    cr_assert_str_eq(graph->nodes[gradient.node].device, "/job:worker/task:1");
    cr_assert_eq(strncmp(graph->nodes[gradient.node].name, "gradients/s_grad/", 17), 0);
    troupe_graph_destroy(graph);
}

Test(gradients, integers_and_stops_end_the_path)
{
    struct troupe_graph *graph = graph_of("{\"node\": [" PLACEHOLDER(
        "x", "[]") ","
                   "{\"name\": \"i\", \"op\": \"Cast\", \"input\": [\"x\"], \"attr\": {\"DstT\": "
                   "\"int32\"}},"
                   "{\"name\": \"f\", \"op\": \"Cast\", \"input\": [\"i\"], \"attr\": {\"DstT\": "
                   "\"float64\"}}," UNARY("s", "StopGradient", "x") "," BINARY("loss", "Mul", "f",
                                                                               "s") "]}");
    struct troupe_value x = value_of(graph, "x"), gradient;
    cr_assert_eq(troupe_graph_gradients(graph, value_of(graph, "loss"), &x, 1, &gradient),
                 TROUPE_OK, "%s", troupe_status_message());
    cr_assert(troupe_value_is_none(gradient));
    troupe_graph_destroy(graph);
}

Test(gradients, a_loss_is_a_floating_scalar)
{
    struct troupe_graph *graph =
        graph_of("{\"node\": [\n" PLACEHOLDER("x", "[3]") ",\n" UNARY("y", "Square", "x") "]}");
    struct troupe_value x = value_of(graph, "x"), gradient;
    cr_assert_eq(troupe_graph_gradients(graph, value_of(graph, "y"), &x, 1, &gradient),
                 TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "g.json:3:1: node \"y\" (Square): a loss wants a "
                                              "scalar, this has shape [3]: add a Mean");
    troupe_graph_destroy(graph);
}
