/* Graph files: the exact message for each way to write one wrongly, and the two forms of attrs. */
#include <criterion/criterion.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/sections.h"

static enum troupe_status try_parse(const char *text, struct troupe_graph **out)
{
    struct troupe_diagnostics diagnostics;
    enum troupe_status status;

    troupe_diagnostics_init(&diagnostics);
    status = troupe_graph_parse(text, strlen(text), "g.json", 0, &diagnostics, out);
    cr_assert_eq(status == TROUPE_OK, diagnostics.count == 0);
    troupe_diagnostics_fini(&diagnostics);
    return status;
}

static struct troupe_graph *parse(const char *text)
{
    struct troupe_graph *graph = NULL;

    cr_assert_eq(try_parse(text, &graph), TROUPE_OK, "%s", troupe_status_message());
    return graph;
}

static void expect_failure(const char *text, const char *message)
{
    struct troupe_graph *graph = NULL;

    cr_assert_eq(try_parse(text, &graph), TROUPE_INVALID_ARGUMENT, "%s", text);
    cr_assert_null(graph);
    cr_assert_str_eq(troupe_status_message(), message);
}

#define X "{\"name\": \"x\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": \"float32\"}}"

struct wrong {
    const char *text, *message;
};

static const struct wrong wrongs[] = {
    /* broken JSON, duplicate keys and names */
    {"{\"node\": [\n  {\"name\": \"x\",, }]}", "g.json:2:16: string or '}' expected near ','"},
    {"{\"node\": [], \"node\": []}", "g.json:1:19: duplicate object key near '\"node\"'"},
    {"[]", "g.json:1:1: a graph wants an object with \"node\""},
    {"{}", "g.json:1:1: a graph wants \"node\", a list of nodes"},
    {"{\"node\": [\n  " X ",\n  " X "]}", "g.json:3:12: there is a node \"x\" already, in line 2"},
    {"{\"node\": [{\"name\": \"a:0\", \"op\": \"NoOp\"}]}",
     "g.json:1:20: a node may not be called \"a:0\": a name has letters, digits and "
     "\"_ . / - > \\\", and starts with a letter, a digit, \".\" or \"_\""},
    {"{\"node\": [{\"op\": \"NoOp\"}]}", "g.json:1:11: a node wants a \"name\", a string"},
    {"{\"node\": [7]}", "g.json:1:11: a node wants an object with \"name\" and \"op\""},
    /* ops, keys, attrs */
    {"{\"node\": [" X ",\n    {\"name\": \"y\", \"op\": \"Matmul\", \"input\": [\"x\", \"x\"]}]}",
     "g.json:2:5: node \"y\": no op \"Matmul\" (did you mean \"MatMul\"?)"},
    {"{\"node\": [{\"name\": \"y\", \"op\": \"NoOp\", \"inputs\": []}]}",
     "g.json:1:39: node \"y\": no key \"inputs\" is known here (did you mean \"input\"?)"},
    {"{\"node\": [], \"nodes\": []}",
     "g.json:1:14: no key \"nodes\" is known here (did you mean \"node\"?)"},
    {"{\"node\": [" X ", {\"name\": \"y\", \"op\": \"MatMul\", \"input\": [\"x\", \"x\"],\n"
     " \"attr\": {\"transpose_a\": \"yes\"}}]}",
     "g.json:2:26: node \"y\": attr \"transpose_a\" wants a bool, got \"yes\""},
    {"{\"node\": [" X ", {\"name\": \"y\", \"op\": \"MatMul\", \"input\": [\"x\", \"x\"],\n"
     " \"attr\": {\"transpose\": true}}]}",
     "g.json:2:11: node \"y\": op MatMul has no attr \"transpose\" (did you mean "
     "\"transpose_a\"?)"},
    {"{\"node\": [{\"name\": \"x\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": \"flaot32\"}}]}",
     "g.json:1:64: node \"x\": attr \"dtype\": no dtype \"flaot32\": wants float32, float64, "
     "int32, int64, uint8, bool, string, float16, bfloat16, resource or variant"},
    {"{\"node\": [{\"name\": \"c\", \"op\": \"Const\", \"attr\": {\"value\": {\"tensor\": {"
     "\"dtype\": \"DT_VARIANT\", \"tensorContent\": \"AAAAAAAAAAA=\"}}}}]}",
     "g.json:1:58: node \"c\": attr \"value\": no tensor in a graph has dtype variant"},
    {"{\"node\": [{\"name\": \"x\", \"op\": \"Placeholder\"}]}",
     "node \"x\" (Placeholder, g.json:1): wants attr \"dtype\", a type"},
    {"{\"node\": [{\"name\": \"c\", \"op\": \"Const\", \"attr\": {\"value\": [[1, 2], [3]]}}]}",
     "g.json:1:58: node \"c\": attr \"value\": ragged list: got 1 elements where the first has 2"},
    {"{\"node\": [{\"name\": \"v\", \"op\": \"Variable\", \"attr\": {\"dtype\": \"float32\", "
     "\"shape\": [2], \"initializer\": \"w0\"}}]}",
     "g.json:1:101: node \"v\": attr \"initializer\": no node \"w0\""},
    /* inputs */
    {"{\"node\": [" X ",\n{\"name\": \"y\", \"op\": \"Identity\", \"input\": [\"z\"]}]}",
     "g.json:2:43: node \"y\": input \"z\": no node \"z\""},
    {"{\"node\": [" X ",\n{\"name\": \"y\", \"op\": \"Identity\", \"input\": [\"x:one\"]}]}",
     "g.json:2:43: node \"y\": input \"x:one\": wants \"node\" or \"node:port\", a port "
     "being a number from 0"},
    {"{\"node\": [" X ",\n{\"name\": \"y\", \"op\": \"Identity\", \"input\": [\"x:2\"]}]}",
     "node \"y\" (Identity, g.json:2): input \"input\" is \"x:2\", but node \"x\" (Placeholder) "
     "has "
     "1 output"},
    {"{\"node\": [" X ",\n{\"name\": \"y\", \"op\": \"Identity\", \"input\": [\"^x\", \"x\"]}]}",
     "g.json:2:49: node \"y\": input \"x\" comes after a control input; those come last"},
    {"{\"node\": [" X ",\n{\"name\": \"y\", \"op\": \"MatMul\", \"input\": [\"x\"]}]}",
     "node \"y\" (MatMul, g.json:2): wants 2 inputs (a, b), has 1"},
    {"{\"node\": [{\"name\": \"y\", \"op\": \"AddN\"}]}",
     "node \"y\" (AddN, g.json:1): wants inputs \"inputs: N * T\", has 0"},
    /* dtypes, shapes, refs, cycles */
    {"{\"node\": [\n"
     "{\"name\": \"a\", \"op\": \"Const\", \"attr\": {\"value\": [1.5, 2, 3]}},\n"
     "{\"name\": \"b\", \"op\": \"Const\", \"attr\": {\"value\": [1.5, 2]}},\n"
     "{\"name\": \"sum\", \"op\": \"Add\", \"input\": [\"a\", \"b\"]}]}",
     "node \"sum\" (Add, g.json:4): shapes [3] and [2] do not broadcast"},
    {"{\"node\": [\n"
     "{\"name\": \"a\", \"op\": \"Const\", \"attr\": {\"value\": [1.5]}},\n"
     "{\"name\": \"b\", \"op\": \"Const\", \"attr\": {\"value\": [1]}},\n"
     "{\"name\": \"sum\", \"op\": \"Add\", \"input\": [\"a\", \"b\"]}]}",
     "node \"sum\" (Add, g.json:4): input \"y\" wants float32, as attr \"T\" or the inputs before "
     "it say, got int32 from \"b\""},
    {"{\"node\": [" X ",\n{\"name\": \"u\", \"op\": \"Assign\", \"input\": [\"x\", \"x\"]}]}",
     "node \"u\" (Assign, g.json:2): input \"ref\" wants a variable, got \"x\" (Placeholder)"},
    {"{\"node\": [\n" X ",\n"
     "{\"name\": \"a\", \"op\": \"Add\", \"input\": [\"x\", \"b\"]},\n"
     "{\"name\": \"b\", \"op\": \"Identity\", \"input\": [\"a\"]}]}",
     "g.json:3:1: cycle without NextIteration: a -> b -> a"},
    /* sections */
    {"{\"node\": [" X "],\n \"train\": {\"loss\": \"los\"}}",
     "g.json:2:11: train: wants \"optimizer\", such as {\"type\": \"Momentum\", \"learning_rate\": "
     "0.1, \"momentum\": 0.9}\n"
     "g.json:2:20: train: no node \"los\""},
    {"{\"node\": [" X "],\n \"train\": {\"loss\": \"x\", \"optimizer\": {\"type\": \"Adm\"}}}",
     "g.json:2:47: train: optimizer: no type \"Adm\" (did you mean \"Adam\"?); there are "
     "GradientDescent, Momentum and Adam"},
    {"{\"node\": [" X "],\n \"loop\": {\"l\": {\"steps\": -1, \"after\": \"m\"}}}",
     "g.json:2:26: loop \"l\": \"steps\" wants an int from 0, got -1\n"
     "g.json:2:39: loop \"l\": \"after\" names no loop \"m\""},
    {"{\"node\": [],\n \"cluster\": {\"ps\": [0, \"one\"]}}",
     "g.json:2:24: cluster: job \"ps\" wants ranks, each an int from 0"},
};

Test(load, tells_what_is_wrong)
{
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
        expect_failure(wrongs[i].text, wrongs[i].message);
}

/* One run shows every error, in the order of the file, and none that only follows from another. */
Test(load, tells_all_errors_at_once)
{
    expect_failure(
        "{\"node\": [\n"
        "  " X ",\n"
        "  {\"name\": \"a\", \"op\": \"Matmul\", \"input\": [\"x\", \"x\"]},\n"
        "  {\"name\": \"b\", \"op\": \"Add\", \"input\": [\"a\", \"x\"]},\n"
        "  {\"name\": \"c\", \"op\": \"MatMul\", \"input\": [\"x\"]},\n"
        "  {\"name\": \"d\", \"op\": \"Identity\", \"input\": [\"nothing\"], \"colour\": 1}],\n"
        " \"sed\": 1}",
        "g.json:3:3: node \"a\": no op \"Matmul\" (did you mean \"MatMul\"?)\n"
        "node \"c\" (MatMul, g.json:5): wants 2 inputs (a, b), has 1\n"
        "g.json:6:45: node \"d\": input \"nothing\": no node \"nothing\"\n"
        "g.json:6:57: node \"d\": no key \"colour\" is known here\n"
        "g.json:7:2: no key \"sed\" is known here (did you mean \"seed\"?)");
}

static const char friendly[] =
    "{\"node\": ["
    "{\"name\": \"x\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": \"float32\", "
    "\"shape\": [null, 2]}},"
    "{\"name\": \"w\", \"op\": \"Const\", \"attr\": {\"dtype\": \"float32\", "
    "\"value\": [[1, 2], [3, 4]]}},"
    "{\"name\": \"s\", \"op\": \"Const\", \"attr\": {\"dtype\": \"int64\", \"value\": [5, 5, 5]}},"
    "{\"name\": \"t\", \"op\": \"Const\", \"attr\": {\"dtype\": \"string\", \"value\": \"hi\"}},"
    "{\"name\": \"h\", \"op\": \"Const\", \"attr\": {\"dtype\": \"float16\", \"value\": 1}},"
    "{\"name\": \"y\", \"op\": \"MatMul\", \"input\": [\"x\", \"w\"], \"attr\": "
    "{\"transpose_b\": true}},"
    "{\"name\": \"sum\", \"op\": \"AddN\", \"input\": [\"y\", \"y:0\", \"^s\"]}]}";

static const char protobuf[] =
    "{\"node\": ["
    "{\"name\": \"x\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": {\"type\": \"DT_FLOAT\"}, "
    "\"shape\": {\"shape\": {\"dim\": [{\"size\": \"-1\"}, {\"size\": \"2\"}]}}, "
    "\"_output_shapes\": {\"list\": {\"shape\": [{}]}}}},"
    "{\"name\": \"w\", \"op\": \"Const\", \"attr\": {\"dtype\": {\"type\": \"DT_FLOAT\"}, "
    "\"value\": {\"tensor\": {\"dtype\": \"DT_FLOAT\", \"tensorShape\": {\"dim\": [{\"size\": "
    "\"2\"}, {\"size\": \"2\"}]}, \"tensorContent\": \"AACAPwAAAEAAAEBAAACAQA==\"}}}},"
    "{\"name\": \"s\", \"op\": \"Const\", \"attr\": {\"dtype\": {\"type\": \"DT_INT64\"}, "
    "\"value\": {\"tensor\": {\"dtype\": \"DT_INT64\", \"tensorShape\": {\"dim\": [{\"size\": "
    "\"3\"}]}, \"int64Val\": [\"5\"]}}}},"
    "{\"name\": \"t\", \"op\": \"Const\", \"attr\": {\"dtype\": {\"type\": \"DT_STRING\"}, "
    "\"value\": {\"tensor\": {\"dtype\": \"DT_STRING\", \"tensorShape\": {}, \"stringVal\": "
    "[\"aGk=\"]}}}},"
    "{\"name\": \"h\", \"op\": \"Const\", \"attr\": {\"dtype\": {\"type\": \"DT_HALF\"}, "
    "\"value\": {\"tensor\": {\"dtype\": \"DT_HALF\", \"tensorShape\": {}, \"halfVal\": "
    "[15360]}}}},"
    "{\"name\": \"y\", \"op\": \"MatMul\", \"input\": [\"x\", \"w\"], \"attr\": {\"T\": {\"type\": "
    "\"DT_FLOAT\"}, \"transpose_b\": {\"b\": true}}},"
    "{\"name\": \"sum\", \"op\": \"AddN\", \"input\": [\"y\", \"y:0\", \"^s\"], \"attr\": {\"N\": "
    "{\"i\": \"2\"}, \"T\": {\"type\": \"DT_FLOAT\"}}, \"experimentalDebugInfo\": {}}], "
    "\"versions\": {\"producer\": 1}, \"library\": {}}";

static void expect_same_node(const struct troupe_node *a, const struct troupe_node *b)
{
    cr_assert_str_eq(a->name, b->name);
    cr_assert_eq(a->schema, b->schema);
    cr_assert_str_eq(a->device, b->device);
    cr_assert_eq(a->input_count, b->input_count);
    for (int i = 0; i < a->input_count; i++) {
        cr_assert_eq(a->inputs[i].node, b->inputs[i].node);
        cr_assert_eq(a->inputs[i].port, b->inputs[i].port);
    }
    cr_assert_eq(a->control_count, b->control_count);
    cr_assert_eq(a->attr_count, b->attr_count, "%s", a->name);
    for (int i = 0; i < a->attr_count; i++) {
        const struct troupe_attr *other =
            troupe_attr_find(b->attrs, b->attr_count, a->attrs[i].name);

        cr_assert_not_null(other, "%s", a->attrs[i].name);
        cr_assert(troupe_attr_equal(&a->attrs[i].value, other), "%s %s", a->name, a->attrs[i].name);
    }
    cr_assert_eq(a->output_count, b->output_count);
    for (int i = 0; i < a->output_count; i++) {
        cr_assert_eq(a->output_dtypes[i], b->output_dtypes[i]);
        cr_assert(troupe_shape_equal(&a->output_shapes[i], &b->output_shapes[i]));
    }
}

static void expect_same_graph(const struct troupe_graph *a, const struct troupe_graph *b)
{
    cr_assert_eq(a->node_count, b->node_count);
    for (int i = 0; i < a->node_count; i++)
        expect_same_node(&a->nodes[i], &b->nodes[i]);
}

Test(load, reads_both_forms_as_the_same_graph)
{
    struct troupe_graph *a = parse(friendly), *b = parse(protobuf);

    expect_same_graph(a, b);
    troupe_graph_destroy(a);
    troupe_graph_destroy(b);
}

Test(load, infers_attrs_dtypes_and_shapes)
{
    struct troupe_graph *graph = parse(friendly);
    const struct troupe_node *sum = &graph->nodes[troupe_graph_find(graph, "sum")];
    const struct troupe_attr *number = troupe_attr_find(sum->attrs, sum->attr_count, "N");
    char text[TROUPE_SHAPE_TEXT_MAX];

    cr_assert_not_null(number);
    cr_assert_eq(number->value.i, 2);
    cr_assert_eq(troupe_attr_find(sum->attrs, sum->attr_count, "T")->value.type, TROUPE_FLOAT32);
    cr_assert_eq(sum->output_dtypes[0], TROUPE_FLOAT32);
    cr_assert_eq(sum->control_count, 1);
    cr_assert_str_eq(troupe_shape_print(&graph->nodes[0].output_shapes[0], text), "[?,2]");
    cr_assert_eq(sum->line, 1);
    troupe_graph_destroy(graph);
}

Test(load, prints_what_it_reads)
{
    struct troupe_graph *graph = parse(friendly), *again;
    struct troupe_text text;

    troupe_text_init(&text);
    cr_assert_eq(troupe_graph_print(graph, &text), TROUPE_OK);
    again = parse(text.data);
    expect_same_graph(graph, again);
    troupe_graph_destroy(graph);
    troupe_graph_destroy(again);
    troupe_text_fini(&text);
}

Test(load, prints_sections_and_values_that_literals_cannot_hold)
{
    static const char text[] =
        "{\"seed\": 7, \"node\": ["
        "{\"name\": \"e\", \"op\": \"Const\", \"attr\": {\"value\": {\"tensor\": {\"dtype\": 2, "
        "\"tensorShape\": {\"dim\": [{\"size\": \"0\"}, {\"size\": \"3\"}]}}}}},"
        "{\"name\": \"n\", \"op\": \"Const\", \"attr\": {\"value\": {\"tensor\": {\"dtype\": "
        "\"float\", \"floatVal\": [\"NaN\"]}}}},"
        "{\"name\": \"b\", \"op\": \"Const\", \"attr\": {\"value\": {\"tensor\": {\"dtype\": "
        "\"string\", \"stringVal\": [\"AP8=\"]}}}},"
        "{\"name\": \"f\", \"op\": \"Const\", \"attr\": {\"value\": [0.1, \"-Infinity\", "
        "1e-45]}}],"
        "\"train\": {\"loss\": \"f\", \"optimizer\": {\"type\": \"Momentum\", \"learning_rate\": "
        "0.1, \"momentum\": 0.9, \"use_nesterov\": true}, \"variables\": [\"e\"]},"
        "\"loop\": {\"train\": {\"run\": [\"train\"], \"steps\": 10, \"every\": 5, \"examples\": "
        "\"f\", \"show\": {\"loss\": \"f:0\"}}, \"test\": {\"after\": \"train\", \"mean\": "
        "{\"acc\": \"n\"}}, \"beside\": {\"with\": \"train\", \"until\": \"b\", \"timeout\": 1.5, "
        "\"staleness\": 3}}, \"cluster\": {\"ps\": [0], \"worker\": [1, 2]}, \"strategy\": "
        "\"data-parallel\"}";
    struct troupe_graph *graph = parse(text), *again;
    struct troupe_text first, second;

    cr_assert_eq(graph->seed, 7);
    cr_assert_eq(graph->sections->train->hyperparameter_count, 3);
    cr_assert_eq(graph->sections->loop_count, 3);
    cr_assert_str_eq(graph->sections->loops[2].with, "train");
    cr_assert_str_eq(graph->sections->loops[2].until, "b");
    cr_assert_eq(graph->sections->loops[2].timeout_ms, 1500);
    cr_assert_eq(graph->sections->loops[2].staleness, 3);
    cr_assert_str_eq(graph->sections->loops[0].show[0].value, "f:0");
    cr_assert_str_eq(graph->sections->loops[1].after, "train");
    cr_assert_eq(graph->sections->jobs[1].ranks[1], 2);
    troupe_text_init(&first);
    troupe_text_init(&second);
    cr_assert_eq(troupe_graph_print(graph, &first), TROUPE_OK);
    again = parse(first.data);
    cr_assert_eq(troupe_graph_print(again, &second), TROUPE_OK);
    cr_assert_str_eq(first.data, second.data);
    expect_same_graph(graph, again);
    troupe_graph_destroy(graph);
    troupe_graph_destroy(again);
    troupe_text_fini(&first);
    troupe_text_fini(&second);
}

Test(load, sorts_and_describes)
{
    struct troupe_graph *graph = parse(
        "{\"node\": [{\"name\": \"late\", \"op\": \"Identity\", \"input\": [\"x\"]},\n" X "]}");
    char text[TROUPE_NODE_TEXT_MAX];
    struct troupe_value value;
    int order[2];

    cr_assert_eq(troupe_graph_sort(graph, order), TROUPE_OK);
    cr_assert_eq(order[0], 1);
    cr_assert_eq(order[1], 0);
    cr_assert_str_eq(troupe_node_describe(graph, 1, text), "g.json:2:1: node \"x\" (Placeholder)");
    cr_assert_eq(troupe_graph_value(graph, "late:1", &value), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "\"late:1\": node \"late\" (Identity) has 1 output");
    cr_assert_eq(troupe_graph_value(graph, "lat", &value), TROUPE_NOT_FOUND);
    cr_assert_str_eq(troupe_status_message(), "no node \"lat\" (did you mean \"late\"?)");
    troupe_graph_destroy(graph);
}

Test(load, infers_only_from_the_first_new_node)
{
    struct troupe_graph *graph = parse("{\"node\": [" X "]}");
    const struct troupe_value inputs[2] = {{0, 0}, {0, 0}};
    const struct troupe_node_spec spec = {
        .name = "y", .op = "Add", .inputs = inputs, .input_count = 2};
    struct troupe_diagnostics diagnostics;
    int number = -1;

    troupe_diagnostics_init(&diagnostics);
    cr_assert_eq(troupe_graph_add(graph, &spec, &number), TROUPE_OK);
    cr_assert_eq(number, 1);
    cr_assert_eq(troupe_graph_add(graph, &spec, &number), TROUPE_ALREADY_EXISTS);
    cr_assert_eq(troupe_graph_infer(graph, 1, &diagnostics), TROUPE_OK);
    cr_assert_eq(graph->nodes[1].output_dtypes[0], TROUPE_FLOAT32);
    troupe_diagnostics_fini(&diagnostics);
    troupe_graph_destroy(graph);
}

Test(load, tells_that_a_file_cannot_be_read)
{
    struct troupe_diagnostics diagnostics;
    struct troupe_graph *graph = NULL;

    troupe_diagnostics_init(&diagnostics);
    cr_assert_eq(troupe_graph_load("/nowhere/g.json", 0, &diagnostics, &graph), TROUPE_UNAVAILABLE);
    cr_assert_str_eq(troupe_status_message(), "/nowhere/g.json: No such file or directory");
    troupe_diagnostics_fini(&diagnostics);
}

/* A control input that is there twice counts once, where it came first. */
Test(load, repeated_controls)
{
    struct troupe_graph *graph =
        parse("{\"node\": [" X ", {\"name\": \"a\", \"op\": \"NoOp\"},"
              "{\"name\": \"b\", \"op\": \"NoOp\"}, {\"name\": \"y\", \"op\": \"Neg\", "
              "\"input\": [\"x\", \"^b\", \"^a\", \"^b\", \"^x\", \"^a\"]}]}");
    const struct troupe_node *node = &graph->nodes[troupe_graph_find(graph, "y")];
    const int wanted[] = {troupe_graph_find(graph, "b"), troupe_graph_find(graph, "a"),
                          troupe_graph_find(graph, "x")};

    cr_assert_eq(node->input_count, 1);
    cr_assert_eq(node->control_count, 3);
    cr_assert_arr_eq(node->controls, wanted, sizeof(wanted));
    troupe_graph_destroy(graph);
}
