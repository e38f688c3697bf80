/* Functions: what calls of them become, and what is said of those that are wrong. What lowered
 * graphs compute, tests/cli/test_control_flow.py runs. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/frames.h"
#include "graph/library.h"
#include "ops/tensor.h"

#define NODE(name, op, inputs, attrs)                                                              \
    "{\"name\": \"" name "\", \"op\": \"" op "\", \"input\": [" inputs "], \"attr\": {" attrs "}}"
#define INT(name, value)  NODE(name, "Const", "", "\"dtype\": \"int32\", \"value\": " value)
#define BOOL(name, value) NODE(name, "Const", "", "\"dtype\": \"bool\", \"value\": " value)
#define IN(name)          "{\"name\": \"" name "\", \"dtype\": \"int32\", \"shape\": []}"
#define OUT(value)        "{\"name\": \"out\", \"value\": \"" value "\", \"dtype\": \"int32\"}"
#define BOOL_OUT(value)   "{\"name\": \"out\", \"value\": \"" value "\", \"dtype\": \"bool\"}"
#define FUNCTION(name, inputs, outputs, nodes)                                                     \
    "{\"name\": \"" name "\", \"input\": [" inputs "], \"output\": [" outputs                      \
    "],\n\"node\": [" nodes "]}"
#define GRAPH(nodes, functions)                                                                    \
    "{\"node\": [" nodes "],\n\"library\": {\"function\": [" functions "]}}"

#define CONSTS               INT("one", "1") "," INT("two", "2") "," BOOL("yes", "true")
#define F(f)                 "\"f\": \"" f "\""
#define BRANCHES(one, other) "\"then_branch\": \"" one "\", \"else_branch\": \"" other "\""
#define LOOP(cond, body)     "\"cond\": \"" cond "\", \"body\": \"" body "\""

#define NEGATE  FUNCTION("negate", IN("x"), OUT("minus"), NODE("minus", "Neg", "\"x\"", ""))
#define ADD_TWO FUNCTION("add_two", IN("x"), OUT("sum"), NODE("sum", "Add", "\"x\", \"two\"", ""))
#define THREE                                                                                      \
    FUNCTION("three", IN("x"), OUT("sum"),                                                         \
             INT("three", "3") "," NODE("sum", "Add", "\"three\", \"x\"", ""))
#define SMALL                                                                                      \
    FUNCTION("small", IN("i"), BOOL_OUT("less"),                                                   \
             INT("ten", "10") "," NODE("less", "Less", "\"i\", \"ten\"", ""))

/* GraphDef's form. */
#define DEF(inputs, outputs, nodes, ret)                                                           \
    "{\"signature\": {\"name\": \"f\", \"inputArg\": [" inputs "], \"outputArg\": [" outputs       \
    "]},\n\"nodeDef\": [" nodes "], \"ret\": {" ret "}}"

static struct troupe_graph *parse(const char *text, struct troupe_diagnostics *diagnostics)
{
    struct troupe_graph *graph = NULL;
    troupe_diagnostics_init(diagnostics);
    (void)!troupe_graph_parse(text, strlen(text), "g.json", 0, diagnostics, &graph);
    return graph;
}

static struct troupe_graph *load(const char *text)
{
    struct troupe_diagnostics diagnostics;
    struct troupe_graph *graph = parse(text, &diagnostics);
    cr_assert_not_null(graph, "%s", troupe_status_message());
    troupe_diagnostics_fini(&diagnostics);
    return graph;
}

static const struct troupe_node *get(const struct troupe_graph *graph, const char *name)
{
    int number = troupe_graph_find(graph, name);
    cr_assert_geq(number, 0, "no node \"%s\"", name);
    return &graph->nodes[number];
}

static void expect_op(const struct troupe_graph *graph, const char *name, const char *op)
{
    cr_expect_str_eq(get(graph, name)->schema->op->name, op, "%s is %s", name,
                     get(graph, name)->schema->op->name);
}

/* Input `index` of a node is output `port` of another. */
static void expect_input(const struct troupe_graph *graph, const char *name, int index,
                         const char *from, int port)
{
    const struct troupe_node *node = get(graph, name);
    cr_assert_lt(index, node->input_count, "%s has %d inputs", name, node->input_count);
    cr_expect_str_eq(graph->nodes[node->inputs[index].node].name, from, "%s reads %s", name,
                     graph->nodes[node->inputs[index].node].name);
    cr_expect_eq(node->inputs[index].port, port);
}

static bool waits_for(const struct troupe_graph *graph, const char *name, const char *control)
{
    const struct troupe_node *node = get(graph, name);
    for (int i = 0; i < node->control_count; i++)
        if (strcmp(graph->nodes[node->controls[i]].name, control) == 0)
            return true;
    return false;
}

/* True when a node cannot fire before another. */
static bool follows(const struct troupe_graph *graph, const char *name, const char *first)
{
    bool *keep = calloc((size_t)graph->node_count, sizeof(bool));
    int node = troupe_graph_find(graph, name);
    cr_assert_geq(node, 0, "no node \"%s\"", name);
    cr_assert_eq(troupe_graph_ancestors(graph, &node, 1, NULL, keep), TROUPE_OK);
    bool result = keep[troupe_graph_find(graph, first)];
    free(keep);
    return result;
}

static int count_op(const struct troupe_graph *graph, const char *op)
{
    int count = 0;
    for (int i = 0; i < graph->node_count; i++)
        count += strcmp(graph->nodes[i].schema->op->name, op) == 0;
    return count;
}

/* ---- Call ---- */

Test(call, is_replaced_by_the_body)
{
    struct troupe_graph *graph = load(GRAPH(
        CONSTS "," NODE("y", "Call", "\"one\"", F("add_two")) "," NODE("z", "Neg", "\"y\"", ""),
        ADD_TWO));
    expect_op(graph, "y", "Identity");
    expect_input(graph, "y", 0, "y/sum", 0);
    expect_input(graph, "y/sum", 0, "one", 0);
    expect_input(graph, "y/sum", 1, "two", 0);
    expect_input(graph, "z", 0, "y/sum", 0);
    cr_assert_null(graph->library);
    cr_assert_eq(get(graph, "y/sum")->line, 3, "where the function has it");
    troupe_graph_destroy(graph);
}

Test(call, has_tensorflows_names)
{
    static const char *const ops[] = {"Call", "PartitionedCall", "StatefulPartitionedCall"};
    for (int i = 0; i < 3; i++) {
        char text[2048];
        snprintf(text, sizeof(text),
                 GRAPH(CONSTS "," NODE("y", "%s", "\"one\"", F("negate")), NEGATE), ops[i]);
        struct troupe_graph *graph = load(text);
        expect_input(graph, "y", 0, "y/minus", 0);
        troupe_graph_destroy(graph);
    }
}

Test(call, passes_through_what_the_body_passes_through)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "Call", "\"one\", \"two\"",
                                   F("swap")) "," NODE("z", "Sub", "\"y:0\", \"y:1\"", ""),
                   FUNCTION("swap", IN("a") "," IN("b"), OUT("b") "," OUT("a"), "")));
    expect_op(graph, "y", "IdentityN");
    expect_input(graph, "z", 0, "two", 0);
    expect_input(graph, "z", 1, "one", 0);
    troupe_graph_destroy(graph);
}

Test(call, keeps_devices_and_order)
{
    struct troupe_graph *graph = load(
        GRAPH(CONSTS ",{\"name\": \"y\", \"op\": \"Call\", \"input\": [\"one\", \"^yes\"], "
                     "\"device\": \"/job:worker/task:1\", \"attr\": {\"f\": \"f\"}}",
              FUNCTION("f", IN("x"), OUT("sum"),
                       "{\"name\": \"c\", \"op\": \"Const\", \"device\": \"/job:worker/task:0\", "
                       "\"attr\": {\"dtype\": \"int32\", \"value\": 1}}," NODE(
                           "sum", "Add", "\"x\", \"c\"", ""))));
    cr_expect_str_eq(get(graph, "y/sum")->device, "/job:worker/task:1");
    cr_expect_str_eq(get(graph, "y/c")->device, "/job:worker/task:0");
    cr_expect(follows(graph, "y/c", "yes"));
    cr_expect(follows(graph, "y/sum", "yes"));
    troupe_graph_destroy(graph);
}

Test(call, nests)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "Call", "\"one\"", F("outer")),
                   FUNCTION("outer", IN("x"), OUT("inner"),
                            NODE("inner", "Call", "\"x\"", F("add_two"))) "," ADD_TWO));
    expect_input(graph, "y/inner/sum", 0, "one", 0);
    expect_input(graph, "y/inner/sum", 1, "two", 0);
    expect_input(graph, "y", 0, "y/inner/sum", 0);
    troupe_graph_destroy(graph);
}

Test(call, reads_graphdefs_functions)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "PartitionedCall", "\"one\", \"two\"",
                                   "\"f\": {\"func\": {\"name\": \"f\"}}"),
                   DEF("{\"name\": \"a\", \"type\": \"DT_INT32\"}, "
                       "{\"name\": \"b\", \"type\": \"DT_INT32\"}",
                       "{\"name\": \"r\", \"type\": \"DT_INT32\"}, "
                       "{\"name\": \"s\", \"type\": \"DT_INT32\"}",
                       NODE("pair", "IdentityN", "\"a\", \"b\"",
                            "\"T\": {\"list\": {\"type\": [\"DT_INT32\", "
                            "\"DT_INT32\"]}}") "," NODE("sum", "AddV2",
                                                        "\"pair:output:1\","
                                                        " \"a\", \"^pair\"",
                                                        ""),
                       "\"r\": \"sum:z:0\", \"s\": \"b\"")));
    expect_input(graph, "y", 0, "y/sum", 0);
    expect_input(graph, "y", 1, "two", 0);
    expect_input(graph, "y/sum", 0, "y/pair", 1);
    cr_expect(waits_for(graph, "y/sum", "y/pair"));
    troupe_graph_destroy(graph);
}

/* What a body has without inputs is in the frame, and the branch, of the call. */
Test(call, has_its_constants_where_it_is)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "While", "\"one\"", LOOP("small", "outer")),
                   SMALL "," THREE "," FUNCTION("outer", IN("x"), OUT("inner"),
                                                NODE("inner", "Call", "\"x\"", F("three")))));
    cr_expect(waits_for(graph, "y/body/inner/three", "y/body/inner/start"));
    expect_input(graph, "y/body/inner/start", 0, "y/switch_0", 1);
    troupe_graph_destroy(graph);
}

Test(call, takes_another_name_where_one_is_taken)
{
    struct troupe_graph *graph = load(GRAPH(
        CONSTS "," INT("y/minus", "7") "," NODE("y", "Call", "\"one\"", F("negate")), NEGATE));
    expect_op(graph, "y/minus", "Const");
    expect_op(graph, "y/minus_1", "Neg");
    troupe_graph_destroy(graph);
}

Test(call, of_a_function_with_an_effect_has_it)
{
    struct troupe_graph *graph = load(
        GRAPH(CONSTS "," NODE("y", "Call", "\"one\"", F("shout")) "," NODE("z", "Neg", "\"y\"", ""),
              FUNCTION("shout", IN("x"), OUT("x"), NODE("print", "Print", "\"x\", \"x\"", ""))));
    cr_expect(waits_for(graph, "y", "y/print"));
    expect_input(graph, "z", 0, "y", 0);
    troupe_graph_destroy(graph);
}

/* ---- If and Case ---- */

Test(branches, are_behind_switches)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "If", "\"yes\", \"one\"", BRANCHES("add_two", "three")),
                   ADD_TWO "," THREE));
    expect_op(graph, "y", "Identity");
    expect_op(graph, "y/merge_0", "Merge");
    expect_input(graph, "y", 0, "y/merge_0", 0);
    expect_input(graph, "y/merge_0", 0, "y/then/sum", 0);
    expect_input(graph, "y/merge_0", 1, "y/else/sum", 0);
    expect_input(graph, "y/then/sum", 0, "y/switch_0", 1);
    expect_input(graph, "y/else/sum", 1, "y/switch_0", 0);
    /* What is captured is a further argument. */
    expect_input(graph, "y/then/sum", 1, "y/switch_1", 1);
    expect_input(graph, "y/switch_1", 0, "two", 0);
    /* A constant must not fire in a branch that is not taken. */
    cr_expect(waits_for(graph, "y/else/three", "y/pivot_1"));
    expect_input(graph, "y/pivot_1", 0, "y/switch_2", 0);
    troupe_graph_destroy(graph);
}

Test(branches, wait_for_what_the_call_waits_for)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "StatelessIf", "\"yes\", \"one\", \"^two\"",
                                   BRANCHES("negate", "three")),
                   NEGATE "," THREE));
    cr_expect(follows(graph, "y/then/minus", "two"));
    cr_expect(follows(graph, "y/else/three", "two"));
    troupe_graph_destroy(graph);
}

Test(branches, have_effects_only_when_taken)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "If", "\"yes\", \"one\"",
                                   BRANCHES("shout", "negate")) "," NODE("z", "NoOp", "\"^y\"", ""),
                   FUNCTION("shout", IN("x"), OUT("x"),
                            NODE("print", "Print", "\"x\", \"x\"", "")) "," NEGATE));
    cr_expect(waits_for(graph, "y", "y/end_0"));
    expect_op(graph, "y/end_0", "Merge");
    cr_expect(waits_for(graph, "y/done_0", "y/then/print"));
    cr_expect(follows(graph, "z", "y/then/print"));
    expect_input(graph, "y/then/print", 0, "y/switch_0", 1);
    troupe_graph_destroy(graph);
}

Test(branches, without_outputs_are_waited_for)
{
    struct troupe_graph *graph = load(GRAPH(
        CONSTS "," NODE("y", "If", "\"yes\", \"one\"", BRANCHES("shout", "nothing")),
        FUNCTION("shout", IN("x"), "", NODE("print", "Print", "\"x\", \"x\"", "")) "," FUNCTION(
            "nothing", IN("x"), "", "")));
    expect_op(graph, "y", "NoOp");
    cr_expect(waits_for(graph, "y", "y/end_0"));
    cr_expect(follows(graph, "y", "y/then/print"));
    troupe_graph_destroy(graph);
}

/* State is updated in a branch: the variable itself is reached, the value is behind the Switch. */
Test(branches, change_variables)
{
    struct troupe_graph *graph = load(
        GRAPH(CONSTS "," NODE("v", "Variable", "", "\"dtype\": \"int32\", \"shape\": []") "," NODE(
                  "y", "If", "\"yes\", \"one\"", BRANCHES("raise", "read")),
              FUNCTION("raise", IN("x"), OUT("update"),
                       NODE("update", "AssignAdd", "\"v\", \"x\"",
                            "")) "," FUNCTION("read", IN("x"), OUT("now"),
                                              NODE("now", "Identity", "\"v\"", ""))));
    expect_input(graph, "y/then/update", 0, "v", 0);
    expect_input(graph, "y/then/update", 1, "y/switch_0", 1);
    expect_input(graph, "y/else/now", 0, "y/switch_1", 0);
    expect_input(graph, "y/switch_1", 0, "v", 0);
    troupe_graph_destroy(graph);
}

Test(branches, of_a_case_are_a_chain)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "Case", "\"two\", \"one\"",
                                   "\"branches\": [\"negate\", \"add_two\", \"three\"]"),
                   NEGATE "," ADD_TWO "," THREE));
    cr_assert_eq(get(graph, "y/merge_0")->input_count, 3);
    expect_input(graph, "y/branch_0/minus", 0, "y/switch_0", 1);
    expect_input(graph, "y/branch_1/sum", 0, "y/switch_3", 1);
    expect_input(graph, "y/switch_3", 0, "y/switch_0", 0);
    expect_input(graph, "y/branch_2/sum", 1, "y/switch_3", 0);
    cr_assert_eq(count_op(graph, "Equal"), 2);
    troupe_graph_destroy(graph);
    graph = load(GRAPH(CONSTS "," NODE("y", "StatelessCase", "\"two\", \"one\", \"^yes\"",
                                       "\"branches\": {\"list\": {\"func\": [{\"name\": "
                                       "\"negate\"}]}}"),
                       NEGATE));
    cr_expect(follows(graph, "y/branch_0/minus", "yes"));
    cr_expect_eq(count_op(graph, "Switch"), 0);
    troupe_graph_destroy(graph);
}

/* ---- While ---- */

Test(loop, is_a_frame)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "While", "\"one\", \"^yes\"",
                                   LOOP("small", "add_two") ", \"parallel_iterations\": 3"),
                   SMALL "," ADD_TWO));
    struct troupe_frames *frames;
    cr_assert_eq(troupe_frames_find(graph, &frames), TROUPE_OK, "%s", troupe_status_message());
    cr_assert_eq(frames->count, 2);
    const struct troupe_frame *frame = &frames->frames[1];
    cr_expect_str_eq(frame->name, "y");
    cr_expect_eq(frame->parallel_iterations, 3);
    cr_expect_eq(frame->merge_count, 1);
    cr_expect_eq(frame->enters.count, 2, "one goes round, two is constant");
    cr_expect_eq(frame->exits.count, 1);
    expect_input(graph, "y", 0, "y/exit_0", 0);
    expect_input(graph, "y/merge_0", 1, "y/next_iteration_0", 0);
    expect_input(graph, "y/cond/less", 0, "y/merge_0", 0);
    cr_expect(waits_for(graph, "y/cond/ten", "y/merge_0"));
    expect_input(graph, "y/body/sum", 0, "y/switch_0", 1);
    expect_input(graph, "y/body/sum", 1, "y/switch_1", 1);
    expect_input(graph, "y/switch_1", 0, "y/enter_1", 0);
    cr_expect(waits_for(graph, "y/enter_0", "yes"));
    cr_expect(waits_for(graph, "y/enter_1", "yes"));
    troupe_frames_destroy(frames);
    troupe_graph_destroy(graph);
}

Test(loop, has_its_effects_in_every_iteration)
{
    struct troupe_graph *graph = load(
        GRAPH(CONSTS "," NODE("y", "StatelessWhile", "\"one\", \"two\"", LOOP("cond", "body")),
              FUNCTION("cond", IN("i") "," IN("x"), BOOL_OUT("yes"),
                       NODE("print", "Print", "\"i\", \"i\"",
                            "")) "," FUNCTION("body", IN("i") "," IN("x"), OUT("i") "," OUT("x"),
                                              NODE("print", "Print", "\"x\", \"x\"", ""))));
    cr_expect(waits_for(graph, "y/loop_cond", "y/cond/print"));
    cr_expect(waits_for(graph, "y/body/done", "y/body/print"));
    cr_expect(waits_for(graph, "y/next_iteration_0", "y/body/done"));
    cr_expect(waits_for(graph, "y/next_iteration_1", "y/body/done"));
    troupe_graph_destroy(graph);
}

Test(loop, nests)
{
    struct troupe_graph *graph = load(
        GRAPH(CONSTS "," NODE("y", "While", "\"one\"", LOOP("small", "outer")), SMALL
              "," ADD_TWO "," FUNCTION("outer", IN("i"), OUT("inner"),
                                       NODE("inner", "While", "\"i\"", LOOP("small", "add_two")))));
    struct troupe_frames *frames;
    cr_assert_eq(troupe_frames_find(graph, &frames), TROUPE_OK, "%s", troupe_status_message());
    cr_assert_eq(frames->count, 3);
    cr_expect_str_eq(frames->frames[2].name, "y/body/inner");
    cr_expect_eq(frames->frames[2].parent, 1);
    /* The constant is handed from frame to frame. */
    expect_input(graph, "y/body/inner/enter_1", 0, "y/switch_1", 1);
    expect_input(graph, "y/switch_1", 0, "y/enter_1", 0);
    expect_input(graph, "y/enter_1", 0, "two", 0);
    troupe_frames_destroy(frames);
    troupe_graph_destroy(graph);
}

/* A loop of primitives in a function is another frame wherever the function is called. */
Test(loop, of_primitives_in_a_function_is_told_apart)
{
    struct troupe_graph *graph = load(GRAPH(
        CONSTS "," NODE("a", "Call", "\"one\"", F("f")) "," NODE("b", "Call", "\"one\"", F("f")),
        FUNCTION(
            "f", IN("x"), OUT("exit"),
            NODE("enter", "Enter", "\"x\"", "\"frame_name\": \"frame\"") "," NODE(
                "merge", "Merge", "\"enter\", \"next\"",
                "") ","
                    "{\"name\": \"no\", \"op\": \"Const\", \"input\": [\"^merge\"], \"attr\": "
                    "{\"dtype\": \"bool\", \"value\": false}}," NODE(
                        "cond", "LoopCond", "\"no\"",
                        "") "," NODE("switch", "Switch", "\"merge\", \"cond\"",
                                     "") "," NODE("next", "NextIteration", "\"switch:1\"",
                                                  "") "," NODE("exit", "Exit", "\"switch\"", ""))));
    struct troupe_frames *frames;
    cr_assert_eq(troupe_frames_find(graph, &frames), TROUPE_OK, "%s", troupe_status_message());
    cr_assert_eq(frames->count, 3);
    troupe_frames_destroy(frames);
    troupe_graph_destroy(graph);
}

/* ---- Recursion ---- */

#define FACTORIAL                                                                                  \
    FUNCTION("fact", IN("n"), OUT("y"),                                                            \
             NODE("small", "LessEqual", "\"n\", \"one\"",                                          \
                  "") "," NODE("y", "If", "\"small\", \"n\"", BRANCHES("first", "further")))       \
    "," FUNCTION("first", IN("n"), OUT("one"), "") "," FUNCTION(                                   \
        "further", IN("n"), OUT("product"),                                                        \
        NODE("before", "Sub", "\"n\", \"one\"",                                                    \
             "") "," NODE("rest", "Call", "\"before\"",                                            \
                          F("fact")) "," NODE("product", "Mul", "\"n\", \"rest\"", ""))

Test(recursion, stays_a_call)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "Call", "\"two\"", F("fact")), FACTORIAL));
    expect_op(graph, "y", "Call");
    expect_input(graph, "y", 0, "two", 0);
    expect_input(graph, "y", 1, "one", 0); /* what is captured is given */
    cr_assert_not_null(graph->library);
    int number = troupe_library_find(graph->library, "fact");
    cr_assert_geq(number, 0);
    cr_assert_lt(troupe_library_find(graph->library, "first"), 0, "it does not call itself");
    const struct troupe_function *function = &graph->library->functions[number];
    cr_assert_eq(function->input_count, 2);
    cr_assert_eq(function->capture_count, 0);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(function->body->nodes[function->inputs[i]].schema->op->flow, TROUPE_FLOW_ARG);
    expect_op(function->body, "y/else/rest", "Call");
    cr_expect_eq(get(function->body, "y/else/rest")->input_count, 2);
    expect_input(function->body, "y/else/rest", 0, "y/else/before", 0);
    expect_input(function->body, "y/else/rest", 1, "y/switch_1", 0);
    cr_expect_eq(get(function->body, "y/else/product")->output_dtypes[0], TROUPE_INT32);
    troupe_graph_destroy(graph);
}

Test(recursion, through_a_branch_becomes_a_call)
{
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "If", "\"yes\", \"two\"", BRANCHES("down", "negate")),
                   NEGATE "," FUNCTION("down", IN("n"), OUT("y"),
                                       NODE("small", "LessEqual", "\"n\", \"one\"", "") "," NODE(
                                           "less", "Sub", "\"n\", \"one\"",
                                           "") "," NODE("y", "If", "\"small\", \"less\"",
                                                        BRANCHES("negate", "down")))));
    expect_op(graph, "y/then/y/else", "Call");
    cr_assert_not_null(graph->library);
    cr_assert_eq(graph->library->count, 1);
    expect_op(graph->library->functions[0].body, "y/else", "Call");
    troupe_graph_destroy(graph);
}

Test(recursion, may_be_mutual)
{
    struct troupe_graph *graph = load(GRAPH(
        CONSTS "," NODE("y", "Call", "\"two\"", F("even")),
        FUNCTION("even", IN("n"), OUT("y"), NODE("y", "Call", "\"n\"", F("odd"))) "," FUNCTION(
            "odd", IN("n"), OUT("y"), NODE("y", "Call", "\"n\"", F("even")))));
    cr_assert_eq(graph->library->count, 2);
    expect_op(graph->library->functions[0].body, "y", "Call");
    expect_op(graph->library->functions[1].body, "y", "Call");
    troupe_graph_destroy(graph);
}

static void print(const struct troupe_graph *graph, struct troupe_text *out)
{
    troupe_text_init(out);
    cr_assert_eq(troupe_graph_print(graph, out), TROUPE_OK);
}

/* What is printed is complete: reading it adds nothing any more. */
Test(recursion, is_printed_and_read_again)
{
    struct troupe_text texts[3];
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("y", "Call", "\"two\"", F("fact")), FACTORIAL));
    for (int i = 0; i < 3; i++) {
        print(graph, &texts[i]);
        cr_expect_eq(graph->node_count, 4);
        cr_expect_eq(graph->library->functions[0].body->node_count, 16);
        troupe_graph_destroy(graph);
        graph = load(texts[i].data);
    }
    cr_expect_str_eq(texts[1].data, texts[2].data);
    cr_expect(strstr(texts[0].data, "\"library\""));
    troupe_graph_destroy(graph);
    for (int i = 0; i < 3; i++)
        troupe_text_fini(&texts[i]);
}

Test(recursion, captures_outputs_by_port)
{
    struct troupe_text text;
    struct troupe_graph *graph =
        load(GRAPH(CONSTS "," NODE("pair", "Switch", "\"one\", \"yes\"",
                                   "") "," NODE("y", "Call", "\"two\"", F("f")),
                   FUNCTION("f", IN("n"), OUT("z"),
                            NODE("z", "Call", "\"sum\"",
                                 F("f")) "," NODE("sum", "Add", "\"pair:1\", \"pair:0\"", ""))));
    expect_input(graph, "y", 1, "pair", 1);
    expect_input(graph, "y", 2, "pair", 0);
    print(graph, &text);
    troupe_graph_destroy(graph);
    graph = load(text.data);
    cr_assert_eq(graph->library->functions[0].input_count, 3);
    troupe_graph_destroy(graph);
    troupe_text_fini(&text);
}

/* ---- What is wrong ---- */

static void expect_wrong(const char *text, const char *says)
{
    struct troupe_diagnostics diagnostics;
    struct troupe_graph *graph = parse(text, &diagnostics);
    troupe_diagnostics_fini(&diagnostics);
    cr_expect_null(graph, "wants: %s", says);
    cr_expect(strstr(troupe_status_message(), says), "\"%s\" does not say \"%s\"",
              troupe_status_message(), says);
    troupe_graph_destroy(graph);
}

#define CALL_OF(inputs, functions) GRAPH(CONSTS "," NODE("y", "Call", inputs, F("f")), functions)
#define LIBRARY(functions)         "{\"node\": [],\n\"library\": " functions "}"

Test(wrong, libraries)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {LIBRARY("[]"), "g.json:2:12: \"library\" wants an object"},
        {LIBRARY("{\"functions\": []}"),
         "g.json:2:13: library: no key \"functions\" is known here (did you mean \"function\"?)"},
        {LIBRARY("{\"function\": {}}"), "g.json:2:25: \"function\" wants a list of at most 4096"},
        {LIBRARY("{\"function\": [1]}"), "a function wants a \"name\""},
        {LIBRARY("{\"function\": [{\"name\": \"f g\", \"node\": []}]}"),
         "g.json:2:35: a function wants a \"name\""},
        {LIBRARY("{\"function\": [{\"name\": \"f\", \"node\": []}, {\"name\": \"f\"}]}"),
         "there is a function \"f\" already, in line 2"},
        {LIBRARY("{\"function\": [{\"name\": \"f\"}]}"),
         "function \"f\": wants \"node\", a list of nodes"},
        {LIBRARY("{\"function\": [{\"name\": \"f\", \"nodes\": []}]}"),
         "function: no key \"nodes\" is known here (did you mean \"node\"?)"},
        {LIBRARY("{\"function\": [{\"signature\": {}, \"nodeDef\": []}]}"),
         "g.json:2:26: a function wants a \"name\""},
        {LIBRARY("{\"function\": [{\"signature\": {\"name\": \"f\"}, \"nodes\": []}]}"),
         "function: no key \"nodes\" is known here"},
        {LIBRARY("{\"function\": [" DEF("{\"name\": \"x\"}", "", "", "") "]}"),
         "an arg of the signature wants a \"name\" and a \"type\""},
        {LIBRARY(
             "{\"function\": [" DEF("", "{\"name\": \"y\", \"type\": \"DT_INT32\"}", "", "") "]}"),
         "g.json:2:26: function: \"ret\" has no \"y\""},
        {LIBRARY("{\"function\": [" DEF("", "", NODE("n", "Neg", "\"a:y:0\"", ""), "") "]}"),
         "function: \"a:y:0\" is no \"node:output:index\" of the function"},
        {LIBRARY("{\"function\": [" DEF("", "", NODE("a", "Neg", "\"a:z:0\"", ""), "") "]}"),
         "function: \"a:z:0\" is no \"node:output:index\" of the function"},
        {LIBRARY("{\"function\": [" DEF("", "", NODE("a", "Nag", "", ""), "") "]}"),
         "g.json:3:13: node \"a\": no op \"Nag\" (did you mean \"Neg\"?)"},
        {LIBRARY(
             "{\"function\": [{\"name\": \"f\", \"node\": [], \"input\": [{\"name\": \"x\"}]}]}"),
         "function \"f\": an input wants a \"dtype\""},
        {LIBRARY("{\"function\": [{\"name\": \"f\", \"node\": [], \"input\": [{\"name\": \"x\", "
                 "\"dtype\": \"int33\"}]}]}"),
         "function \"f\": \"dtype\" "},
        {LIBRARY("{\"function\": [{\"name\": \"f\", \"node\": [], \"input\": [{\"name\": \"x\", "
                 "\"dtype\": \"int32\", \"shape\": 3}]}]}"),
         "function \"f\": \"shape\" wants a shape"},
        {LIBRARY("{\"function\": [{\"name\": \"f\", \"node\": [], \"output\": [{\"name\": \"x\", "
                 "\"dtype\": \"int32\"}]}]}"),
         "function \"f\": wants a \"value\", a string"},
        {LIBRARY("{\"function\": [{\"name\": \"f\", \"node\": [], \"output\": [3]}]}"),
         "function \"f\": an output wants an object with \"name\", \"value\" and \"dtype\""},
        {LIBRARY("{\"function\": [" FUNCTION("f", IN("x") "," IN("x"), "", "") "]}"),
         "function \"f\": there is a node \"x\" already"},
        {LIBRARY("{\"function\": [" FUNCTION("f", IN("x"), OUT("y"), "") "]}"),
         "function \"f\": output \"out\": no node \"y\""},
        {LIBRARY("{\"function\": [" FUNCTION("f", IN("x"), "", NODE("y", "Neg", "\"z\"", "")) "]}"),
         "g.json:3:47: node \"y\": input \"z\": no node \"z\""},
        {LIBRARY("{\"function\": [" FUNCTION("f", IN("x"), "", NODE("y", "Nag", "\"x\"", "")) "]}"),
         "g.json:3:10: node \"y\": no op \"Nag\" (did you mean \"Neg\"?)"},
        {LIBRARY("{\"function\": [" FUNCTION(
             "f", "", "", NODE("v", "Variable", "", "\"dtype\": \"int32\", \"shape\": []")) "]}"),
         "function \"f\": node \"v\" (Variable) is state, which belongs to the graph"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_wrong(rows[i].text, rows[i].says);
}

Test(wrong, bodies)
{
    expect_wrong(CALL_OF("\"one\"",
                         FUNCTION("f", IN("x"), OUT("y"), NODE("y", "Add", "\"x\", \"yes\"", ""))),
                 "node \"y\" (Add, g.json:3): input \"y\" wants int32");
    expect_wrong(CALL_OF("\"one\"", FUNCTION("f", IN("x"), OUT("y"),
                                             NODE("y", "Equal", "\"x\", \"one\"", ""))),
                 "function \"f\": output \"out\" is declared int32, but \"y\" gives bool");
    expect_wrong(
        CALL_OF("\"one\"", FUNCTION("f", IN("x"), OUT("y:2"), NODE("y", "Neg", "\"x\"", ""))),
        "function \"f\": output \"out\" node \"y\" (Neg) has 1 output");
    expect_wrong(
        CALL_OF(
            "\"one\"",
            FUNCTION("f", IN("x"),
                     "{\"name\": \"out\", \"value\": \"x\", \"dtype\": \"int32\", \"shape\": [2]}",
                     "")),
        "function \"f\": output \"out\" is declared with shape [2], but \"x\" gives []");
}

Test(wrong, calls)
{
    expect_wrong(CALL_OF("\"one\"", NEGATE),
                 "node \"y\" (Call, g.json:1): attr \"f\": no function \"f\" in \"library\"");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "Call", "\"one\"", F("negat")), NEGATE),
                 "no function \"negat\" in \"library\" (did you mean \"negate\"?)");
    expect_wrong("{\"node\": [" CONSTS "," NODE("y", "Call", "\"one\"", F("f")) "]}",
                 "no function \"f\" in \"library\"");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "Call", "\"one\"", ""), NEGATE),
                 "wants attr \"f\", a func");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "Call", "\"one\", \"two\"", F("negate")), NEGATE),
                 "function \"negate\" wants 1 input, got 2");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "Call", "\"yes\"", F("negate")), NEGATE),
                 "input \"x\" of function \"negate\" wants int32, got bool from \"yes\"");
    expect_wrong(
        GRAPH(INT("ones", "[1, 1]") "," NODE("y", "Call", "\"ones\"", F("negate")), NEGATE),
        "input \"x\" of function \"negate\" wants shape [], got [2] from \"ones\"");
    expect_wrong(GRAPH(CONSTS
                       "," NODE("y", "Call", "\"one\"", F("negate") ", \"Tout\": [\"float32\"]"),
                       NEGATE),
                 "attr \"Tout\" is not what function \"negate\" gives");
    expect_wrong(
        GRAPH(CONSTS "," NODE("y", "If", "\"one\", \"one\"", BRANCHES("negate", "negate")), NEGATE),
        "input \"cond\" wants bool, got int32");
    expect_wrong(GRAPH(BOOL("many", "[true]") "," INT("one", "1") "," NODE(
                           "y", "If", "\"many\", \"one\"", BRANCHES("negate", "negate")),
                       NEGATE),
                 "input \"cond\" wants a scalar, got shape [1]");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "If", "\"yes\", \"one\"", BRANCHES("negate", "none")),
                       NEGATE "," FUNCTION("none", IN("x"), "", "")),
                 "functions \"negate\" and \"none\" want the same outputs, but have 1 and 0");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "If", "\"yes\", \"one\"", BRANCHES("negate", "test")),
                       NEGATE "," FUNCTION("test", IN("x"), BOOL_OUT("yes"), "")),
                 "functions \"negate\" and \"test\" want the same outputs, but output 0 is int32 "
                 "and bool");
}

Test(wrong, loops)
{
    expect_wrong(
        GRAPH(CONSTS "," NODE("y", "While", "", LOOP("small", "negate")), SMALL "," NEGATE),
        "wants at least one input, which goes round the loop");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "While", "\"one\"", LOOP("negate", "negate")), NEGATE),
                 "cond \"negate\" wants one output, a bool scalar");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "While", "\"one\"", LOOP("small", "none")),
                       SMALL "," FUNCTION("none", IN("x"), "", "")),
                 "body \"none\" wants as many outputs as inputs, has 0 and 1");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "While", "\"one\"", LOOP("small", "test")),
                       SMALL "," FUNCTION("test", IN("x"), BOOL_OUT("yes"), "")),
                 "body \"test\" takes int32 as input \"x\" and gives bool as output \"out\"; the "
                 "next iteration wants the same");
    expect_wrong(GRAPH(CONSTS "," NODE("y", "While", "\"one\"",
                                       LOOP("small", "negate") ", \"parallel_iterations\": 100000"),
                       SMALL "," NEGATE),
                 "\"parallel_iterations\" wants at most 65536, got 100000");
}

/* A recursive function gets the values that it captures, and so cannot change a variable. */
Test(wrong, recursive_updates)
{
    expect_wrong(
        GRAPH(CONSTS "," NODE("v", "Variable", "", "\"dtype\": \"int32\", \"shape\": []") "," NODE(
                  "y", "Call", "\"one\"", F("f")),
              FUNCTION("f", IN("x"), OUT("z"),
                       NODE("z", "Call", "\"update\"", F("f")) "," NODE("update", "AssignAdd",
                                                                        "\"v\", \"x\"", ""))),
        "wants a variable, got \"v\" (_Arg)");
}

/* Each function calls the next twice: 2^30 bodies, were all put in place. */
Test(wrong, too_many_nodes)
{
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_text_add(&text, "{\"node\": [" CONSTS "," NODE(
                               "y", "Call", "\"one\"", F("f0")) "], \"library\": {\"function\": [");
    for (int i = 0; i < 30; i++)
        troupe_text_addf(&text,
                         FUNCTION("f%d", IN("x"), OUT("b"),
                                  NODE("a", "Call", "\"x\"",
                                       F("f%d")) "," NODE("b", "Call", "\"a\"", F("f%d"))) ",",
                         i, i + 1, i + 1);
    troupe_text_add(&text, FUNCTION("f30", IN("x"), OUT("b"), NODE("b", "Neg", "\"x\"", "")) "]}}");
    expect_wrong(text.data, "put in place, make more than 250000 nodes; function \"f");
    troupe_text_fini(&text);
}
