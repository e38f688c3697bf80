/* Ancestors, `train` and strategies: what the rewritten graph is, and what it computes when it is
 * run node after node. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evaluate.h"
#include "graph/sections.h"
#include "ops/tensor.h"

static int node_of(const struct troupe_graph *graph, const char *name)
{
    int number = troupe_graph_find(graph, name);
    cr_assert_geq(number, 0, "no node \"%s\"", name);
    return number;
}

static const struct troupe_node *get(const struct troupe_graph *graph, const char *name)
{
    return &graph->nodes[node_of(graph, name)];
}

static const struct troupe_attr *attr_of(const struct troupe_node *node, const char *name)
{
    const struct troupe_attr *attr = troupe_attr_find(node->attrs, node->attr_count, name);
    cr_assert_not_null(attr, "%s: no attr %s", node->name, name);
    return attr;
}

static bool has_control(const struct troupe_graph *graph, const char *name, const char *control)
{
    const struct troupe_node *node = get(graph, name);
    for (int i = 0; i < node->control_count; i++)
        if (strcmp(graph->nodes[node->controls[i]].name, control) == 0)
            return true;
    return false;
}

static int count_op(const struct troupe_graph *graph, const char *op)
{
    int count = 0;
    for (int i = 0; i < graph->node_count; i++)
        count += strcmp(graph->nodes[i].schema->op->name, op) == 0;
    return count;
}

/* Element `element` of a float32 variable. */
static double variable_element(struct evaluator *evaluator, const char *name, int element)
{
    struct troupe_tensor *value;
    int node = node_of(evaluator->graph, name);
    cr_assert_eq(troupe_variable_read(troupe_variable_of(evaluator->resources[node]), name, &value),
                 TROUPE_OK, "%s", troupe_status_message());
    cr_assert_eq(troupe_tensor_dtype(value), TROUPE_FLOAT32);
    cr_assert_lt(element, troupe_tensor_elements(value));
    double result = ((const float *)troupe_tensor_data(value))[element];
    troupe_tensor_unref(value);
    return result;
}

#define CONST(name, value)                                                                         \
    "{\"name\": \"" name                                                                           \
    "\", \"op\": \"Const\", \"attr\": {\"dtype\": \"float32\", \"value\": " value "}}"
#define INTS(name, value)                                                                          \
    "{\"name\": \"" name                                                                           \
    "\", \"op\": \"Const\", \"attr\": {\"dtype\": \"int32\", \"value\": " value "}}"
#define VARIABLE(name, shape, initial)                                                             \
    "{\"name\": \"" name "\", \"op\": \"Variable\", \"attr\": {\"dtype\": \"float32\", "           \
    "\"shape\": " shape ", \"initializer\": \"" initial "\"}}"
#define OP(name, op, inputs) "{\"name\": \"" name "\", \"op\": \"" op "\", \"input\": [" inputs "]}"

/* ---- Ancestors ---- */

Test(ancestors, follow_inputs_and_controls_up_to_a_cut)
{
    struct troupe_graph *graph =
        graph_of("{\"node\": [" CONST("a", "1.0") "," OP("b", "Neg", "\"a\"") "," OP(
            "c", "Neg", "\"b\"") "," CONST("d",
                                           "1.0") "," OP("e", "Neg",
                                                         "\"c\", \"^d\"") "," OP("f", "Neg",
                                                                                 "\"e\"") "]}");
    bool keep[6] = {false}, cut[6] = {false};
    int e = node_of(graph, "e");
    cr_assert_eq(troupe_graph_ancestors(graph, &e, 1, NULL, keep), TROUPE_OK);
    for (int i = 0; i < 5; i++)
        cr_expect(keep[i], "node %d", i);
    cr_expect_not(keep[node_of(graph, "f")]);
    memset(keep, 0, sizeof(keep));
    cut[node_of(graph, "c")] = true;
    cr_assert_eq(troupe_graph_ancestors(graph, &e, 1, cut, keep), TROUPE_OK);
    cr_expect(keep[node_of(graph, "c")]);
    cr_expect(keep[node_of(graph, "d")]);
    cr_expect_not(keep[node_of(graph, "b")]);
    cr_expect_not(keep[node_of(graph, "a")]);
    troupe_graph_destroy(graph);
}

/* ---- train: w starts at 2, the loss is w * w ---- */

#define SQUARE_NODES                                                                               \
    "\"node\": [" CONST("w0", "2.0") ",\n" VARIABLE("w", "[]", "w0") ",\n" OP("loss", "Square",    \
                                                                              "\"w\"") "]"
#define SQUARE(optimizer)                                                                          \
    "{" SQUARE_NODES ",\n \"train\": {\"loss\": \"loss\", \"optimizer\": {" optimizer "}}}"

static void train(struct troupe_graph *graph)
{
    cr_assert_eq(troupe_graph_train(graph), TROUPE_OK, "%s", troupe_status_message());
}

/* Runs five steps and compares w after each with `next`, whose state starts at zero. */
static void compare_steps(const char *text, double (*next)(double w, double state[3]))
{
    struct troupe_graph *graph = graph_of(text);
    train(graph);
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph);
    evaluator_initialize(&evaluator);
    int target = node_of(graph, "train");
    double w = 2, state[3] = {0};
    for (int step = 0; step < 5; step++) {
        evaluator_run(&evaluator, &target, 1);
        w = next(w, state);
        cr_assert_float_eq(variable_element(&evaluator, "w", 0), w, 1e-5, "step %d: %.8f, not %.8f",
                           step, variable_element(&evaluator, "w", 0), w);
    }
    evaluator_fini(&evaluator);
    troupe_graph_destroy(graph);
}

static double descend(double w, double state[3])
{
    (void)state;
    return w - 0.1 * 2 * w;
}

static double momentum(double w, double state[3])
{
    state[0] = 0.9 * state[0] + 2 * w;
    return w - 0.1 * state[0];
}

static double nesterov(double w, double state[3])
{
    double gradient = 2 * w;
    state[0] = 0.9 * state[0] + gradient;
    return w - 0.1 * (gradient + 0.9 * state[0]);
}

/* Kingma and Ba, with bias corrections of step t = state[2]. */
static double adam(double w, double state[3])
{
    double gradient = 2 * w;
    state[2] += 1;
    state[0] = 0.9 * state[0] + 0.1 * gradient;
    state[1] = 0.999 * state[1] + 0.001 * gradient * gradient;
    double rate = 0.1 * sqrt(1 - pow(0.999, state[2])) / (1 - pow(0.9, state[2]));
    return w - rate * state[0] / (sqrt(state[1]) + 1e-8);
}

Test(train, gradient_descent)
{
    compare_steps(SQUARE("\"type\": \"GradientDescent\", \"learning_rate\": 0.1"), descend);
    compare_steps(SQUARE("\"type\": \"SGD\", \"learning_rate\": 0.1"), descend);
}

Test(train, momentum_updates)
{
    compare_steps(SQUARE("\"type\": \"Momentum\", \"learning_rate\": 0.1, \"momentum\": 0.9"),
                  momentum);
    compare_steps(SQUARE("\"type\": \"Momentum\", \"learning_rate\": 0.1, \"momentum\": 0.9, "
                         "\"use_nesterov\": true"),
                  nesterov);
}

Test(train, adam_updates)
{
    compare_steps(SQUARE("\"type\": \"Adam\", \"learning_rate\": 0.1"), adam);
}

Test(train, names_and_places_of_what_it_adds)
{
    struct troupe_graph *graph = graph_of("{\"node\": [" CONST(
        "w0",
        "2.0") ","
               "{\"name\": \"w\", \"op\": \"Variable\", \"device\": \"/job:ps/task:0\", \"attr\": "
               "{\"dtype\": \"float32\", \"shape\": [], \"initializer\": \"w0\"}}," OP(
                   "loss", "Square", "\"w\"") "], \"train\": {\"loss\": \"loss\", \"optimizer\": "
                                              "{\"type\": \"Adam\"}}}");
    int before = graph->node_count;
    train(graph);
    const struct troupe_node *update = get(graph, "train/update_w"), *m = get(graph, "train/w/m");
    cr_assert_str_eq(update->schema->op->name, "ApplyAdam");
    cr_assert_str_eq(update->device, "/job:ps/task:0");
    cr_assert_str_eq(m->schema->op->name, "Variable");
    cr_assert_str_eq(m->device, "/job:ps/task:0");
    cr_assert_not(attr_of(m, "trainable")->value.b);
    cr_assert_str_eq(attr_of(m, "initializer")->value.s, "train/w/m/initial");
    cr_assert_str_eq(get(graph, "train")->schema->op->name, "NoOp");
    cr_assert(has_control(graph, "train", "train/update_w"));
    cr_assert(has_control(graph, "train", "train/update_beta1_power"));
    cr_assert(has_control(graph, "train/update_beta1_power", "train/update_w"));
    for (int i = before; i < graph->node_count; i++) {
        cr_expect_eq(graph->nodes[i].line, 0);
        cr_expect(graph->nodes[i].output_count == 0 || graph->nodes[i].output_dtypes);
    }
    troupe_graph_destroy(graph);
}

Test(train, float32_and_float64_together)
{
    struct troupe_graph *graph = graph_of("{\"node\": [" CONST("v0", "2.0") "," VARIABLE(
        "v", "[]", "v0") ","
                         "{\"name\": \"d0\", \"op\": \"Const\", \"attr\": {\"dtype\": \"float64\", "
                         "\"value\": 3.0}},"
                         "{\"name\": \"d\", \"op\": \"Variable\", \"attr\": {\"dtype\": "
                         "\"float64\", \"shape\": [], "
                         "\"initializer\": \"d0\"}},"
                         "{\"name\": \"s\", \"op\": \"Cast\", \"input\": [\"d\"], \"attr\": "
                         "{\"DstT\": \"float32\"}}," OP(
                             "loss", "Mul",
                             "\"v\", \"s\"") "], \"train\": {\"loss\": \"loss\", \"optimizer\": "
                                             "{\"type\": \"Adam\", \"learning_rate\": 0.5}}}");
    train(graph);
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph);
    evaluator_initialize(&evaluator);
    int target = node_of(graph, "train");
    evaluator_run(&evaluator, &target, 1);
    /* Adam's first step is the learning rate, whatever the gradient. */
    cr_expect_float_eq(variable_element(&evaluator, "v", 0), 1.5, 1e-5);
    struct troupe_tensor *d;
    cr_assert_eq(
        troupe_variable_read(troupe_variable_of(evaluator.resources[node_of(graph, "d")]), "d", &d),
        TROUPE_OK);
    cr_expect_float_eq(*(const double *)troupe_tensor_data(d), 2.5, 1e-5);
    troupe_tensor_unref(d);
    evaluator_fini(&evaluator);
    troupe_graph_destroy(graph);
}

Test(train, chosen_variables_alone)
{
    struct troupe_graph *graph =
        graph_of("{\"node\": [" CONST("v0", "2.0") "," VARIABLE("v", "[]", "v0") "," VARIABLE(
            "u", "[]", "v0") "," OP("loss", "Mul", "\"v\", \"u\"") "], \"train\": {\"loss\": "
                                                                   "\"loss\", \"variables\": "
                                                                   "[\"u\"], \"optimizer\": "
                                                                   "{\"type\": \"SGD\", "
                                                                   "\"learning_rate\": 0.1}}}");
    train(graph);
    cr_assert_eq(count_op(graph, "ApplyGradientDescent"), 1);
    (void)get(graph, "train/update_u");
    troupe_graph_destroy(graph);
}

static void expect_train_failure(const char *text, const char *message)
{
    struct troupe_graph *graph = graph_of(text);
    cr_assert_eq(troupe_graph_train(graph), TROUPE_INVALID_ARGUMENT, "%s", text);
    cr_assert_not_null(strstr(troupe_status_message(), message), "%s", troupe_status_message());
    troupe_graph_destroy(graph);
}

Test(train, says_what_is_wrong)
{
    expect_train_failure(SQUARE("\"type\": \"Momentum\", \"momentum\": 0.9"),
                         "g.json:4:2: train: optimizer \"Momentum\" wants \"learning_rate\"");
    expect_train_failure(SQUARE("\"type\": \"Momentum\", \"learning_rate\": 0.9"),
                         "g.json:4:2: train: optimizer \"Momentum\" wants \"momentum\"");
    expect_train_failure("{" SQUARE_NODES "}", "has no \"train\" section");
    expect_train_failure(
        "{\"node\": [" CONST("loss", "1.0") "], \"train\": {\"loss\": \"loss\", "
                                            "\"optimizer\": {\"type\": \"Adam\"}}}",
        "depends on no trainable variable");
    expect_train_failure("{\"node\": [" CONST("w0", "2.0") "," VARIABLE("w", "[]", "w0") "," OP(
                             "loss", "Square",
                             "\"w\"") "], \"train\": {\"loss\": \"loss\", \"variables\": [\"w0\"], "
                                      "\"optimizer\": {\"type\": \"Adam\"}}}",
                         "train: variables: wants a Variable");
    expect_train_failure(
        "{\"node\": [" CONST("w0", "[2.0, 1.0]") "," VARIABLE("w", "[2]", "w0") "," OP(
            "loss", "Square", "\"w\"") "], \"train\": {\"loss\": \"loss\", \"optimizer\": "
                                       "{\"type\": \"Adam\"}}}",
        "a loss wants a scalar");
}

/* A section that no file gave: the reader has the same checks, at the key that is wrong. */
Test(train, checks_sections_that_programs_make)
{
    struct troupe_graph *graph = graph_of(SQUARE("\"type\": \"SGD\", \"learning_rate\": 0.1"));
    struct troupe_train_section *section = graph->sections->train;
    strcpy(section->optimizer, "Adm"); /* as long as "SGD" */
    cr_assert_eq(troupe_graph_train(graph), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(),
                     "g.json:4:2: train: no optimizer \"Adm\" (did you mean \"Adam\"?): there are "
                     "GradientDescent, SGD, Momentum, Adam");
    strcpy(section->optimizer, "SGD");
    section->hyperparameters[0].name[12] = 'a';
    cr_assert_eq(troupe_graph_train(graph), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(),
                     "g.json:4:2: train: optimizer \"SGD\" wants \"learning_rate\"");
    troupe_graph_destroy(graph);
}

/* ---- data-parallel ---- */

/* 14 images of 2 by 2 pixels, and their labels, in idx files in a new folder. */
struct data {
    char folder[32], images[64], labels[64];
};

static void write_file(const char *path, const unsigned char *head, size_t head_size,
                       const unsigned char *body, size_t body_size)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(head, 1, head_size, file), head_size);
    cr_assert_eq(fwrite(body, 1, body_size, file), body_size);
    cr_assert_eq(fclose(file), 0);
}

static void data_init(struct data *data)
{
    static const unsigned char image_head[] = {0, 0, 8, 3, 0, 0, 0, 14, 0, 0, 0, 2, 0, 0, 0, 2};
    static const unsigned char label_head[] = {0, 0, 8, 1, 0, 0, 0, 14};
    unsigned char pixels[56], labels[14];
    for (int i = 0; i < 56; i++)
        pixels[i] = (unsigned char)(i * 97 % 251);
    for (int i = 0; i < 14; i++)
        labels[i] = (unsigned char)(i * 5 % 3);
    strcpy(data->folder, "/tmp/troupe-rewrites-XXXXXX");
    cr_assert_not_null(mkdtemp(data->folder));
    snprintf(data->images, sizeof(data->images), "%s/images", data->folder);
    snprintf(data->labels, sizeof(data->labels), "%s/labels", data->folder);
    write_file(data->images, image_head, sizeof(image_head), pixels, sizeof(pixels));
    write_file(data->labels, label_head, sizeof(label_head), labels, sizeof(labels));
}

static void data_fini(const struct data *data)
{
    (void)unlink(data->images);
    (void)unlink(data->labels);
    (void)rmdir(data->folder);
}

static const char classifier[] =
    "{\"node\": ["
    "{\"name\": \"data\", \"op\": \"IdxDataset\", \"attr\": {\"images\": \"%s\", \"labels\": "
    "\"%s\","
    " \"batch\": %d, \"shuffle\": true, \"repeat\": true}}," INTS("flat", "[-1, 4]") "," OP("x", "Reshape", "\"data\", \"flat\"") "," INTS(
        "w_shape",
        "[4, 3]") ","
                  "{\"name\": \"w0\", \"op\": \"TruncatedNormal\", \"input\": [\"w_shape\"], "
                  "\"attr\": "
                  "{\"dtype\": \"float32\"}}," VARIABLE("w", "[4, 3]", "w0") "," CONST(
                      "b0",
                      "[0.0,"
                      " 0.0,"
                      " 0."
                      "0]") "," VARIABLE("b", "[3]",
                                         "b0") "," OP("m", "MatMul",
                                                      "\"x\", \"w\"") "," OP("logits", "BiasAdd",
                                                                             "\"m\", \"b\"") "," OP("losses",
                                                                                                    "SparseSoftmaxCros"
                                                                                                    "sEntropyWithLogit"
                                                                                                    "s",
                                                                                                    "\"logits\", "
                                                                                                    "\"data:1\"") "," INTS("axis",
                                                                                                                           "[0]") "," OP("loss",
                                                                                                                                         "Mean",
                                                                                                                                         "\"losses\", \"axis\"") "],"
                                                                                                                                                                 "\"train\": {\"loss\": \"loss\", \"optimizer\": {\"type\": \"%s\", \"learning_rate\": 0.1}},"
                                                                                                                                                                 "\"loop\": {\"train\": {\"run\": [\"train\"], \"steps\": 10, \"examples\": \"data\","
                                                                                                                                                                 " \"show\": {\"loss\": \"loss\"}, \"mean\": {\"all\": \"losses\"}}}}";

static struct troupe_graph *classifier_of(const struct data *data, int batch, const char *optimizer)
{
    char text[4096];
    snprintf(text, sizeof(text), classifier, data->images, data->labels, batch, optimizer);
    return graph_of(text);
}

static void spread_over(struct troupe_graph *graph, int ranks)
{
    cr_assert_eq(troupe_graph_strategy(graph, "data-parallel", ranks), TROUPE_OK, "%s",
                 troupe_status_message());
}

/* Trains for some steps; writes the shown losses, the means, and w in the end. */
static void run_steps(struct troupe_graph *graph, int steps, double *losses, double *means,
                      double w[12])
{
    const struct troupe_loop_section *loop = &graph->sections->loops[0];
    struct troupe_value shown, mean;
    cr_assert_eq(troupe_graph_value(graph, loop->show[0].value, &shown), TROUPE_OK);
    cr_assert_eq(troupe_graph_value(graph, loop->mean[0].value, &mean), TROUPE_OK);
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph);
    evaluator_initialize(&evaluator);
    int nodes[] = {shown.node, mean.node, node_of(graph, "train")};
    for (int i = 0; i < steps; i++) {
        evaluator_run(&evaluator, nodes, 3);
        losses[i] = ((const float *)troupe_tensor_data(evaluator_value(&evaluator, shown)))[0];
        const struct troupe_tensor *all = evaluator_value(&evaluator, mean);
        means[i] = 0;
        for (int64_t j = 0; j < all->elements; j++)
            means[i] += (double)((const float *)troupe_tensor_data(all))[j] / (double)all->elements;
    }
    for (int i = 0; i < 12; i++)
        w[i] = variable_element(&evaluator, "w", i);
    for (int replica = 1; troupe_graph_find(graph, "replica_1/w") >= 0; replica++) {
        char name[32];
        snprintf(name, sizeof(name), "replica_%d/w", replica);
        if (troupe_graph_find(graph, name) < 0)
            break;
        for (int i = 0; i < 12; i++)
            cr_assert_eq(variable_element(&evaluator, name, i), w[i], "%s differs from w", name);
    }
    evaluator_fini(&evaluator);
}

#define STEPS 6

static void compare_replicas(const struct data *data, int batch, const char *optimizer, int ranks)
{
    double losses[2][STEPS], means[2][STEPS], w[2][12];
    struct troupe_graph *one = classifier_of(data, batch, optimizer);
    train(one);
    run_steps(one, STEPS, losses[0], means[0], w[0]);
    struct troupe_graph *many = classifier_of(data, batch, optimizer);
    spread_over(many, ranks);
    run_steps(many, STEPS, losses[1], means[1], w[1]);
    for (int i = 0; i < STEPS; i++) {
        cr_expect_float_eq(losses[1][i], losses[0][i], 1e-5, "%s, %d of %d: loss %.8f, not %.8f",
                           optimizer, ranks, batch, losses[1][i], losses[0][i]);
        cr_expect_float_eq(means[1][i], means[0][i], 1e-5, "%s, %d of %d: mean %.8f, not %.8f",
                           optimizer, ranks, batch, means[1][i], means[0][i]);
    }
    cr_expect_lt(losses[0][STEPS - 1], losses[0][0] + 1, "the loss explodes");
    for (int i = 0; i < 12; i++)
        cr_expect_float_eq(w[1][i], w[0][i], 1e-4, "%s, %d of %d: w[%d] is %.8f, not %.8f",
                           optimizer, ranks, batch, i, w[1][i], w[0][i]);
    troupe_graph_destroy(one);
    troupe_graph_destroy(many);
}

Test(data_parallel, trains_as_one_process_does)
{
    struct data data;
    data_init(&data);
    for (int ranks = 1; ranks <= 4; ranks++) {
        compare_replicas(&data, 12, "SGD", ranks);
        compare_replicas(&data, 7, "SGD", ranks); /* shards of unequal size */
        compare_replicas(&data, 7, "Adam", ranks);
    }
    data_fini(&data);
}

Test(data_parallel, replicates_by_name_device_and_shard)
{
    struct data data;
    data_init(&data);
    struct troupe_graph *graph = classifier_of(&data, 7, "SGD");
    spread_over(graph, 3);
    static const int64_t rows[] = {3, 2, 2};
    for (int replica = 0; replica < 3; replica++) {
        char prefix[16] = "", name[64], device[32];
        if (replica > 0)
            snprintf(prefix, sizeof(prefix), "replica_%d/", replica);
        snprintf(device, sizeof(device), "/job:worker/task:%d", replica);
        snprintf(name, sizeof(name), "%sdata", prefix);
        const struct troupe_node *source = get(graph, name);
        cr_expect_str_eq(source->device, device);
        cr_expect_str_eq(source->origin, "data");
        cr_expect_eq(source->replica, replica);
        cr_expect_eq(attr_of(source, "shard_index")->value.i, replica);
        cr_expect_eq(attr_of(source, "shard_count")->value.i, 3);
        cr_expect_eq(source->output_shapes[1].dims[0], rows[replica]);
        snprintf(name, sizeof(name), "%sw", prefix);
        char initial[64];
        snprintf(initial, sizeof(initial), "%sw0", prefix);
        cr_expect_str_eq(attr_of(get(graph, name), "initializer")->value.s, initial);
        cr_expect_str_eq(get(graph, initial)->origin, "w0");
        snprintf(name, sizeof(name), "%strain/update_w", prefix);
        cr_expect_str_eq(get(graph, name)->device, device);
        snprintf(name, sizeof(name), "%strain/w", prefix);
        cr_expect_eq(troupe_graph_find(graph, name), -1);
    }
    cr_expect(has_control(graph, "train", "replica_1/train"));
    cr_expect(has_control(graph, "train", "replica_2/train"));
    troupe_graph_destroy(graph);
    data_fini(&data);
}

Test(data_parallel, one_all_reduce_of_all_gradients)
{
    struct data data;
    data_init(&data);
    struct troupe_graph *graph = classifier_of(&data, 12, "SGD");
    spread_over(graph, 2);
    /* One for the gradients, one for what is shown, on each replica. */
    cr_expect_eq(count_op(graph, "AllReduce"), 4);
    const struct troupe_node *update = get(graph, "train/update_w");
    const struct troupe_node *reduce = &graph->nodes[update->inputs[2].node];
    cr_assert_str_eq(reduce->schema->op->name, "AllReduce");
    cr_expect_eq(reduce->input_count, 2);
    cr_expect_eq(attr_of(reduce, "group")->count, 2u);
    cr_expect_eq(attr_of(reduce, "group")->value.list_i[1], 1);
    cr_expect_str_eq(attr_of(reduce, "reduction")->value.s, "sum");
    cr_expect_eq(get(graph, "train/update_b")->inputs[2].node, update->inputs[2].node);
    cr_expect_neq(get(graph, "replica_1/train/update_w")->inputs[2].node, update->inputs[2].node);
    troupe_graph_destroy(graph);
    data_fini(&data);
}

Test(data_parallel, uses_the_ranks_of_job_worker)
{
    struct data data;
    data_init(&data);
    char text[4096], *end;
    snprintf(text, sizeof(text), classifier, data.images, data.labels, 12, "SGD");
    end = strrchr(text, '}');
    strcpy(end, ", \"cluster\": {\"ps\": [0], \"worker\": [2, 1]}}");
    struct troupe_graph *graph = graph_of(text);
    spread_over(graph, 3);
    cr_expect_eq(troupe_graph_find(graph, "replica_2/w"), -1);
    const struct troupe_attr *group =
        attr_of(&graph->nodes[get(graph, "train/update_w")->inputs[2].node], "group");
    cr_assert_eq(group->count, 2u);
    cr_expect_eq(group->value.list_i[0], 2);
    cr_expect_eq(group->value.list_i[1], 1);
    troupe_graph_destroy(graph);
    data_fini(&data);
}

static void expect_strategy_failure(struct troupe_graph *graph, const char *spec, int ranks,
                                    const char *message)
{
    cr_assert_eq(troupe_graph_strategy(graph, spec, ranks), TROUPE_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(troupe_status_message(), message), "%s", troupe_status_message());
    troupe_graph_destroy(graph);
}

Test(strategy, says_what_is_wrong)
{
    struct data data = {.folder = "", .images = "i", .labels = "l"};
    expect_strategy_failure(classifier_of(&data, 12, "SGD"), "data-paralel", 2,
                            "no strategy \"data-paralel\" (did you mean \"data-parallel\"?)");
    expect_strategy_failure(graph_of("{" SQUARE_NODES "}"), "data-parallel", 2,
                            "g.json has no \"train\" section to distribute");
    expect_strategy_failure(classifier_of(&data, 3, "SGD"), "data-parallel", 4,
                            "node \"data\" (IdxDataset): data-parallel over 4 replicas wants a "
                            "batch of 4 or more, this is 3");
    expect_strategy_failure(
        graph_of("{\"node\": [" CONST("w0", "2.0") "," VARIABLE(
            "w", "[]",
            "w0") ","
                  "{\"name\": \"loss\", \"op\": \"Square\", \"input\": [\"w\"], \"device\": "
                  "\"/job:worker/task:1\"}], \"train\": {\"loss\": \"loss\", \"optimizer\": "
                  "{\"type\": \"Adam\"}}}"),
        "data-parallel", 2, "node \"loss\" (Square): has device \"/job:worker/task:1\"");
}
