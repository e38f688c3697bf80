/* Frames: what is found in graphs that are right, and what is said of those that are not. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/frames.h"
#include "ops/tensor.h"

#define NODE(name, op, inputs, attrs)                                                              \
    "{\"name\": \"" name "\", \"op\": \"" op "\", \"input\": [" inputs "], \"attr\": {" attrs "}}"
#define INT(name, value) NODE(name, "Const", "", "\"dtype\": \"int32\", \"value\": " value)
#define INT_AFTER(name, value, after)                                                              \
    NODE(name, "Const", "\"^" after "\"", "\"dtype\": \"int32\", \"value\": " value)
#define ENTER(name, input, frame, more)                                                            \
    NODE(name, "Enter", "\"" input "\"", "\"frame_name\": \"" frame "\"" more)
#define CONSTANT ", \"is_constant\": true"

/* i = init; while (i < limit) i = i + one. The nodes' names begin with `p`. */
#define COUNT_LOOP(p, frame, init, limit, one)                                                     \
    COUNT_HEAD(p, frame, init, limit, one) "," COUNT_BODY(p)
#define COUNT_HEAD(p, frame, init, limit, one)                                                     \
    ENTER(p "enter", init, frame, "")                                                              \
    "," ENTER(p "limit", limit, frame, CONSTANT) "," ENTER(                                        \
        p "step", one, frame,                                                                      \
        CONSTANT) "," NODE(p "merge", "Merge", "\"" p "enter\", \"" p "next\"",                    \
                           "") "," NODE(p "less", "Less", "\"" p "merge\", \"" p "limit\"",        \
                                        "") "," NODE(p "cond", "LoopCond", "\"" p "less\"", "")
#define COUNT_BODY(p)                                                                              \
    NODE(p "switch", "Switch", "\"" p "merge\", \"" p "cond\"", "")                                \
    "," NODE(p "add", "Add", "\"" p "switch:1\", \"" p "step\"",                                   \
             "") "," NODE(p "next", "NextIteration", "\"" p "add\"",                               \
                          "") "," NODE(p "exit", "Exit", "\"" p "switch\"", "")
#define CONSTS INT("zero", "0") "," INT("one", "1") "," INT("ten", "10")

struct found {
    struct troupe_graph *graph;
    struct troupe_frames *frames;
};

static struct troupe_graph *parse(const char *text, struct troupe_diagnostics *diagnostics)
{
    struct troupe_graph *graph = NULL;
    troupe_diagnostics_init(diagnostics);
    (void)!troupe_graph_parse(text, strlen(text), "g.json", 0, diagnostics, &graph);
    return graph;
}

static void find(const char *text, struct found *found)
{
    struct troupe_diagnostics diagnostics;
    found->graph = parse(text, &diagnostics);
    cr_assert_not_null(found->graph, "%s", troupe_status_message());
    troupe_diagnostics_fini(&diagnostics);
    cr_assert_eq(troupe_frames_find(found->graph, &found->frames), TROUPE_OK, "%s",
                 troupe_status_message());
}

static void found_fini(struct found *found)
{
    troupe_frames_destroy(found->frames);
    troupe_graph_destroy(found->graph);
}

static int number_of(const struct found *found, const char *name)
{
    int number = troupe_graph_find(found->graph, name);
    cr_assert_geq(number, 0, "no node \"%s\"", name);
    return number;
}

static const char *frame_of(const struct found *found, const char *name)
{
    return found->frames->frames[found->frames->frame_of[number_of(found, name)]].name;
}

/* The names of a list, with spaces between. */
static const char *names_of(const struct found *found, struct troupe_frame_nodes list, char *out,
                            size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < list.count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? " " : "",
                                 found->graph->nodes[list.nodes[i]].name);
    return out;
}

/* What holds of the frames of any graph: each node is listed once, in its frame, after its
 * inputs; lists of kinds are complete. */
static void check_lists(const struct found *found)
{
    const struct troupe_frames *frames = found->frames;
    int count = found->graph->node_count, total = 0;
    int *position = calloc((size_t)count + 1, sizeof(int));
    for (int f = 0; f < frames->count; f++) {
        const struct troupe_frame *frame = &frames->frames[f];
        int kinds = 0;
        cr_assert_lt(frame->parent, f);
        for (int i = 0; i < frame->nodes.count; i++) {
            int number = frame->nodes.nodes[i];
            enum troupe_flow flow = found->graph->nodes[number].schema->op->flow;
            cr_assert_eq(frames->frame_of[number], f);
            cr_assert_eq(position[number], 0, "listed twice");
            position[number] = ++total;
            kinds += flow == TROUPE_FLOW_ENTER || flow == TROUPE_FLOW_EXIT ||
                     flow == TROUPE_FLOW_NEXT_ITERATION;
        }
        cr_assert_eq(kinds,
                     frame->enters.count + frame->exits.count + frame->next_iterations.count);
        cr_assert_eq(frame->loop_cond >= 0, f > 0);
        for (int i = 0; i < frame->merge_count; i++) {
            const struct troupe_loop_merge *merge = &frame->merges[i];
            const struct troupe_node *node = &found->graph->nodes[merge->node];
            int enter = node->inputs[merge->enter_input].node;
            int next = node->inputs[merge->next_input].node;
            cr_assert_eq(found->graph->nodes[enter].schema->op->flow, TROUPE_FLOW_ENTER);
            cr_assert_eq(found->graph->nodes[next].schema->op->flow, TROUPE_FLOW_NEXT_ITERATION);
            cr_assert_eq(frames->frame_of[enter], f);
            cr_assert_eq(frames->frame_of[next], f);
        }
    }
    cr_assert_eq(total, count);
    free(position);
}

Test(frames, a_graph_without_loops_is_the_root)
{
    struct found found;
    find("{\"node\": [" CONSTS "," NODE("sum", "Add", "\"one\", \"ten\"", "") "]}", &found);
    cr_assert_eq(found.frames->count, 1);
    cr_assert_eq(found.frames->frames[0].parent, -1);
    cr_assert_eq(found.frames->frames[0].nodes.count, 4);
    cr_assert_eq(found.frames->frames[0].loop_cond, -1);
    check_lists(&found);
    found_fini(&found);
    find("{\"node\": []}", &found);
    cr_assert_eq(found.frames->count, 1);
    cr_assert_eq(found.frames->frames[0].nodes.count, 0);
    found_fini(&found);
}

Test(frames, a_loop_is_a_frame)
{
    struct found found;
    char text[512];
    find("{\"node\": [" CONSTS
         "," COUNT_LOOP("", "f", "zero", "ten", "one") "," NODE("y", "Neg", "\"exit\"", "") "]}",
         &found);
    cr_assert_eq(found.frames->count, 2);
    const struct troupe_frame *frame = &found.frames->frames[1];
    cr_assert_str_eq(frame->name, "f");
    cr_assert_eq(frame->parent, 0);
    cr_assert_eq(frame->depth, 1);
    cr_assert_eq(frame->parallel_iterations, 10);
    cr_assert_eq(frame->loop_cond, number_of(&found, "cond"));
    cr_assert_str_eq(names_of(&found, frame->enters, text, sizeof(text)), "enter step limit");
    cr_assert_str_eq(names_of(&found, frame->exits, text, sizeof(text)), "exit");
    cr_assert_str_eq(names_of(&found, frame->next_iterations, text, sizeof(text)), "next");
    cr_assert_eq(frame->merge_count, 1);
    cr_assert_eq(frame->merges[0].node, number_of(&found, "merge"));
    cr_assert_eq(frame->merges[0].enter_input, 0);
    cr_assert_eq(frame->merges[0].next_input, 1);
    cr_assert_str_eq(frame_of(&found, "add"), "f");
    cr_assert_str_eq(frame_of(&found, "exit"), "f");
    cr_assert_str_eq(frame_of(&found, "y"), "");
    cr_assert_eq(troupe_frames_out(found.graph, found.frames, number_of(&found, "exit")), 0);
    cr_assert_eq(troupe_frames_out(found.graph, found.frames, number_of(&found, "add")), 1);
    check_lists(&found);
    found_fini(&found);
}

/* The NextIteration may come first, and a Const may be in the frame through a control input. */
Test(frames, inputs_of_a_merge_come_in_either_order)
{
    struct found found;
    find(
        "{\"node\": [" CONSTS
        "," ENTER("enter", "zero", "f", ", \"parallel_iterations\": 1") "," NODE("merge", "Merge", "\"next\", \"enter\"", "") "," INT_AFTER(
            "limit", "3",
            "merge") "," NODE("less", "Less", "\"merge\", \"limit\"",
                              "") "," NODE("cond", "LoopCond", "\"less\"",
                                           "") "," NODE("switch", "Switch", "\"merge\", \"cond\"",
                                                        "") "," NODE("pivot", "Identity",
                                                                     "\"switch:1\"",
                                                                     "") "," INT_AFTER("step", "1",
                                                                                       "pivot") "," NODE("add",
                                                                                                         "Add",
                                                                                                         "\"switch:1\", \"step\"",
                                                                                                         "") "," NODE("next",
                                                                                                                      "NextIteration",
                                                                                                                      "\"add\", \"^pivot\"",
                                                                                                                      "") "]}",
        &found);
    cr_assert_eq(found.frames->count, 2);
    cr_assert_eq(found.frames->frames[1].parallel_iterations, 1);
    cr_assert_eq(found.frames->frames[1].merges[0].enter_input, 1);
    cr_assert_eq(found.frames->frames[1].merges[0].next_input, 0);
    cr_assert_eq(found.frames->frames[1].exits.count, 0);
    cr_assert_str_eq(frame_of(&found, "limit"), "f");
    cr_assert_str_eq(frame_of(&found, "step"), "f");
    check_lists(&found);
    found_fini(&found);
}

/* An inner loop starts anew in every iteration of the outer one. */
#define NESTED                                                                                                                                      \
    "{\"node\": [" CONSTS                                                                                                                           \
    "," ENTER("enter", "zero", "outer", "") "," ENTER("limit", "ten", "outer", CONSTANT) "," ENTER("one_outer", "one", "outer", CONSTANT) "," NODE( \
        "merge", "Merge", "\"enter\", \"next\"",                                                                                                    \
        "") "," NODE("less", "Less", "\"merge\", \"limit\"",                                                                                        \
                     "") "," NODE("cond", "LoopCond", "\"less\"",                                                                                   \
                                  "") "," NODE("switch", "Switch", "\"merge\", \"cond\"",                                                           \
                                               "") "," COUNT_LOOP("in/", "inner", "switch:1",                                                       \
                                                                  "limit",                                                                          \
                                                                  "one_outer") "," NODE("add",                                                      \
                                                                                        "Add",                                                      \
                                                                                        "\"in/"                                                     \
                                                                                        "exit\", "                                                  \
                                                                                        "\"one_"                                                    \
                                                                                        "outer\"",                                                  \
                                                                                        "") "," NODE("next",                                        \
                                                                                                     "NextIteration",                               \
                                                                                                     "\"add\"",                                     \
                                                                                                     "") "," NODE("exit",                           \
                                                                                                                  "Exit",                           \
                                                                                                                  "\"switch\"",                     \
                                                                                                                  "") "," COUNT_LOOP("after/",      \
                                                                                                                                     "after",       \
                                                                                                                                     "exit",        \
                                                                                                                                     "ten",         \
                                                                                                                                     "one") "]}"

Test(frames, loops_nest_and_follow_one_another)
{
    struct found found;
    find(NESTED, &found);
    cr_assert_eq(found.frames->count, 4);
    int outer = found.frames->frame_of[number_of(&found, "merge")];
    int inner = found.frames->frame_of[number_of(&found, "in/merge")];
    int after = found.frames->frame_of[number_of(&found, "after/merge")];
    cr_assert_str_eq(found.frames->frames[outer].name, "outer");
    cr_assert_str_eq(found.frames->frames[inner].name, "inner");
    cr_assert_str_eq(found.frames->frames[after].name, "after");
    cr_assert_eq(found.frames->frames[inner].parent, outer);
    cr_assert_eq(found.frames->frames[inner].depth, 2);
    cr_assert_eq(found.frames->frames[after].parent, 0);
    cr_assert_eq(troupe_frames_out(found.graph, found.frames, number_of(&found, "in/exit")), outer);
    cr_assert_str_eq(frame_of(&found, "in/enter"), "inner");
    cr_assert_str_eq(frame_of(&found, "add"), "outer");
    check_lists(&found);
    found_fini(&found);
}

/* A variable is updated inside of a loop: the ref is no value and needs no Enter. */
Test(frames, refs_cross_frames)
{
    struct found found;
    find("{\"node\": [" CONSTS
         "," NODE("v", "Variable", "", "\"dtype\": \"int32\", \"shape\": []") "," COUNT_LOOP(
             "", "f", "zero", "ten", "one") "," NODE("assign", "AssignAdd", "\"v\", \"one\"",
                                                     "") "]}",
         &found);
    cr_assert_str_eq(frame_of(&found, "assign"), "");
    found_fini(&found);
    find("{\"node\": [" CONSTS
         "," NODE("v", "Variable", "", "\"dtype\": \"int32\", \"shape\": []") "," COUNT_LOOP(
             "in/", "f", "zero", "ten", "one") "," NODE("assign", "AssignAdd", "\"v\", \"in/add\"",
                                                        "") "]}",
         &found);
    cr_assert_str_eq(frame_of(&found, "assign"), "f");
    cr_assert_str_eq(frame_of(&found, "v"), "");
    found_fini(&found);
}

/* The loop of a converted model: six values, two of which are read after it. */
Test(frames, finds_the_loop_of_a_real_model)
{
    struct troupe_diagnostics diagnostics;
    struct found found;
    char text[512];
    troupe_diagnostics_init(&diagnostics);
    cr_assert_eq(
        troupe_graph_load(GRAPHS_PATH "/handtrack_loop.json", 0, &diagnostics, &found.graph),
        TROUPE_OK, "%s", troupe_status_message());
    troupe_diagnostics_fini(&diagnostics);
    cr_assert_eq(troupe_frames_find(found.graph, &found.frames), TROUPE_OK, "%s",
                 troupe_status_message());
    cr_assert_eq(found.frames->count, 2);
    const struct troupe_frame *frame = &found.frames->frames[1];
    cr_assert_str_eq(frame->name, "map/while");
    cr_assert_eq(frame->parallel_iterations, 32);
    cr_assert_eq(frame->enters.count, 6);
    cr_assert_eq(frame->merge_count, 6);
    cr_assert_eq(frame->next_iterations.count, 6);
    cr_assert_str_eq(names_of(&found, frame->exits, text, sizeof(text)),
                     "while/exit/_434 while/exit/_435");
    cr_assert_str_eq(found.graph->nodes[frame->loop_cond].name, "while/LoopCond/_423");
    cr_assert_str_eq(frame_of(&found, "while/body/Preprocessor/mul/x"), "map/while");
    cr_assert_str_eq(frame_of(&found, "first"), "");
    check_lists(&found);
    found_fini(&found);
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

#define LOOP_AND(more)                                                                             \
    "{\"node\": [" CONSTS "," COUNT_LOOP("", "f", "zero", "ten", "one") ",\n" more "]}"

Test(frames, inputs_are_of_one_frame)
{
    expect_wrong(LOOP_AND(NODE("y", "Add", "\"add\", \"ten\"", "")),
                 "g.json:2:1: node \"y\" (Add): its inputs are in different frames: \"add\" is in "
                 "frame \"f\", \"ten\" outside of all frames; a value goes into a frame through an "
                 "Enter and comes out through an Exit");
    expect_wrong(LOOP_AND(NODE("y", "Neg", "\"ten\", \"^add\"", "")),
                 "\"ten\" is outside of all frames, \"add\" in frame \"f\"");
    expect_wrong(LOOP_AND(COUNT_LOOP("g/", "g", "zero", "ten",
                                     "one") ",\n" NODE("y", "Add", "\"add\", \"g/add\"", "")),
                 "\"add\" is in frame \"f\", \"g/add\" in frame \"g\"");
}

Test(frames, a_next_iteration_leads_to_a_merge)
{
    expect_wrong(
        LOOP_AND(NODE("y", "Neg", "\"next\"", "")),
        "node \"y\" (Neg, g.json:2): reads NextIteration \"next\"; only a Merge at the head of its "
        "loop may");
    expect_wrong(LOOP_AND(NODE("y", "Neg", "\"add\", \"^next\"", "")),
                 "reads NextIteration \"next\"; only a Merge");
    expect_wrong(LOOP_AND(NODE("y", "Merge", "\"enter\", \"next\", \"next\"", "")),
                 "node \"y\" (Merge): reads a NextIteration and so wants two inputs, an Enter and "
                 "a NextIteration; it has 3");
    expect_wrong(LOOP_AND(NODE("y", "Merge", "\"add\", \"next\"", "")),
                 "wants an Enter that is not constant beside it, got \"add\" (Add)");
    expect_wrong(LOOP_AND(NODE("y", "Merge", "\"limit\", \"next\"", "")),
                 "wants an Enter that is not constant beside it, got \"limit\" (Enter)");
    expect_wrong(LOOP_AND(COUNT_LOOP("g/", "g", "zero", "ten",
                                     "one") ",\n" NODE("y", "Merge", "\"g/enter\", \"next\"", "")),
                 "node \"y\" (Merge): is in frame \"g\", but NextIteration \"next\" that it reads "
                 "is in frame \"f\"");
}

Test(frames, an_enter_that_is_not_constant_leads_to_a_merge)
{
    expect_wrong(LOOP_AND(NODE("y", "Neg", "\"enter\"", "")),
                 "node \"y\" (Neg): reads Enter \"enter\", which has a value in the first "
                 "iteration alone; wants a Merge with a NextIteration between them, or "
                 "\"is_constant\" true");
    expect_wrong(LOOP_AND(NODE("y", "Neg", "\"add\", \"^enter\"", "")),
                 "reads Enter \"enter\", which has a value in the first iteration alone");
}

Test(frames, a_frame_has_one_loop_cond)
{
    expect_wrong(LOOP_AND(NODE("y", "LoopCond", "\"less\"", "")),
                 "node \"y\" (LoopCond): frame \"f\" has a LoopCond already, \"cond\"");
    expect_wrong("{\"node\": [" CONSTS "," ENTER("e", "one", "f", CONSTANT) "]}",
                 "frame \"f\", which node \"e\" enters, has no LoopCond to say when it ends");
}

Test(frames, a_frame_is_entered_in_one_way)
{
    expect_wrong(LOOP_AND(ENTER("y", "one", "f", ", \"parallel_iterations\": 3")),
                 "node \"y\" (Enter): enters frame \"f\" with \"parallel_iterations\" 3, but "
                 "others with 10");
    expect_wrong(LOOP_AND(ENTER("y", "add", "f", "")),
                 "node \"y\" (Enter): enters frame \"f\" from a node in frame \"f\", but others "
                 "enter it from one outside of all frames: a frame has one parent");
    expect_wrong(LOOP_AND(ENTER("y", "one", "", "")),
                 "node \"y\" (Enter): wants a \"frame_name\" that is not empty");
    expect_wrong(LOOP_AND(ENTER("y", "one", "g", ", \"parallel_iterations\": 1000000")),
                 "node \"y\" (Enter): \"parallel_iterations\" wants at most 65536, got 1000000");
}

Test(frames, what_is_in_no_frame_cannot_leave_one)
{
    expect_wrong("{\"node\": [" CONSTS "," NODE("y", "Exit", "\"one\"", "") "]}",
                 "node \"y\" (Exit): is in no frame: nothing before it is an Enter");
    expect_wrong("{\"node\": [" CONSTS "," NODE("y", "NextIteration", "\"one\"", "") "]}",
                 "node \"y\" (NextIteration): is in no frame");
}

Test(frames, other_cycles_remain_wrong)
{
    expect_wrong(LOOP_AND(NODE("a", "Neg", "\"b\"", "") "," NODE("b", "Neg", "\"a\"", "")),
                 "cycle without NextIteration: a -> b -> a");
}

/* ---- Shapes around a loop ---- */

static const char *shape_of(const struct found *found, const char *name, int port,
                            char out[TROUPE_SHAPE_TEXT_MAX])
{
    return troupe_shape_print(&found->graph->nodes[number_of(found, name)].output_shapes[port],
                              out);
}

/* while (cond) v = body of v; v starts as [1, 2]. */
#define SHAPE_LOOP(body)                                                                                                                                                 \
    "{\"node\": [" NODE("v", "Const", "", "\"dtype\": \"float32\", \"value\": [[1, 2]]") "," NODE("no", "Const", "", "\"dtype\": \"bool\", \"value\": false") "," ENTER( \
        "enter", "v", "f",                                                                                                                                               \
        "") "," ENTER("goes", "no", "f",                                                                                                                                 \
                      CONSTANT) "," NODE("merge", "Merge", "\"enter\", \"next\"",                                                                                        \
                                         "") "," NODE("cond", "LoopCond", "\"goes\"",                                                                                    \
                                                      "") "," NODE("switch", "Switch",                                                                                   \
                                                                   "\"merge\", \"cond\"",                                                                                \
                                                                   "") "," body                                                                                          \
                                                                       "," NODE(                                                                                         \
                                                                           "next",                                                                                       \
                                                                           "NextIteration",                                                                              \
                                                                           "\"body\"",                                                                                   \
                                                                           "") "," NODE("exit",                                                                          \
                                                                                        "Exit",                                                                          \
                                                                                        "\"switch"                                                                       \
                                                                                        "\"",                                                                            \
                                                                                        "") "," NODE("y",                                                                \
                                                                                                     "Neg",                                                              \
                                                                                                     "\"exit\"",                                                         \
                                                                                                     "") "]}"
#define AXIS(value) NODE("axis", "Const", "\"^switch\"", "\"dtype\": \"int32\", \"value\": " value)

Test(loop_shapes, are_widened_to_what_comes_back)
{
    static const struct {
        const char *text, *shape;
    } rows[] = {
        {SHAPE_LOOP(NODE("body", "Neg", "\"switch:1\"", "")), "[1,2]"},
        {SHAPE_LOOP(
             AXIS("0") "," NODE("body", "ConcatV2", "\"switch:1\", \"switch:1\", \"axis\"", "")),
         "[?,2]"},
        {SHAPE_LOOP(AXIS("1") "," NODE(
             "two", "ConcatV2", "\"switch:1\", \"switch:1\", \"axis\"",
             "") "," NODE("body", "Transpose", "\"two\", \"turn\"",
                          "") "," NODE("turn", "Const", "\"^switch\"",
                                       "\"dtype\": \"int32\", \"value\": [1, 0]")),
         "[?,?]"},
        {SHAPE_LOOP(AXIS("0") "," NODE("body", "ExpandDims", "\"switch:1\", \"axis\"", "")), "?"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct found found;
        char text[TROUPE_SHAPE_TEXT_MAX];
        find(rows[i].text, &found);
        cr_expect_str_eq(shape_of(&found, "merge", 0, text), rows[i].shape, "row %zu: %s", i, text);
        cr_expect_str_eq(shape_of(&found, "y", 0, text), rows[i].shape, "row %zu: %s", i, text);
        cr_expect_str_eq(shape_of(&found, "merge", 1, text), "[]");
        found_fini(&found);
    }
}

Test(loop_shapes, dtypes_agree)
{
    expect_wrong(SHAPE_LOOP(NODE("body", "Cast", "\"switch:1\"", "\"DstT\": \"int32\"")),
                 "node \"merge\" (Merge, g.json:1): input \"inputs\" wants float32, as attr \"T\" "
                 "or the inputs before it say, got int32 from \"next\"");
}

Test(loop_shapes, what_does_not_fit_when_widened_is_told_once)
{
    struct troupe_diagnostics diagnostics;
    struct troupe_graph *graph =
        parse(SHAPE_LOOP(AXIS("0") "," NODE(
                  "body", "ConcatV2", "\"switch:1\", \"switch:1\", \"axis\"",
                  "") "," NODE("mul", "MatMul", "\"switch:1\", \"switch:1\"", "")),
              &diagnostics);
    cr_assert_null(graph);
    cr_assert_eq(diagnostics.count, 1, "%s", troupe_status_message());
    cr_assert(strstr(troupe_status_message(), "node \"mul\" (MatMul"), "%s",
              troupe_status_message());
    troupe_diagnostics_fini(&diagnostics);
}

/* Loops in each other: a change in the inner one reaches the outer one's head and comes back. */
Test(loop_shapes, reach_a_fixed_point_in_nested_loops)
{
    struct found found;
    char text[TROUPE_SHAPE_TEXT_MAX];
    find("{\"node\": [" NODE("v", "Const", "", "\"dtype\": \"float32\", \"value\": [[1, 2]]") "," NODE("no", "Const", "", "\"dtype\": \"bool\", \"value\": false") "," ENTER(
             "oe", "v", "o",
             "") "," ENTER("og", "no", "o",
                           CONSTANT) "," NODE("om", "Merge", "\"oe\", \"on\"",
                                              "") "," NODE("oc", "LoopCond", "\"og\"",
                                                           "") "," NODE("os", "Switch",
                                                                        "\"om\", \"oc\"",
                                                                        "") "," ENTER("ie", "os:1",
                                                                                      "i",
                                                                                      "") "," ENTER("ig",
                                                                                                    "og",
                                                                                                    "i",
                                                                                                    CONSTANT) "," NODE("im",
                                                                                                                       "Merge",
                                                                                                                       "\"ie\", \"in\"",
                                                                                                                       "") "," NODE("ic",
                                                                                                                                    "LoopCond",
                                                                                                                                    "\"ig\"",
                                                                                                                                    "") "," NODE("is",
                                                                                                                                                 "Switch", "\"im\", \"ic\"", "") "," NODE("axis", "Const", "\"^is\"", "\"dtype\": \"int32\", \"value\": 0") "," NODE("two", "ConcatV2", "\"is:1\", \"is:1\", \"axis\"", "") "," NODE("in",
                                                                                                                                                                                                                                                                                                                                     "NextIteration", "\"two\"", "") "," NODE("ix",
                                                                                                                                                                                                                                                                                                                                                                              "Exit",
                                                                                                                                                                                                                                                                                                                                                                              "\"is\"", "") "," NODE("on",
                                                                                                                                                                                                                                                                                                                                                                                                     "NextIteration", "\"ix\"", "") "," NODE("ox",
                                                                                                                                                                                                                                                                                                                                                                                                                                             "Exit",
                                                                                                                                                                                                                                                                                                                                                                                                                                             "\"os\"", "") "," NODE("y",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                    "Neg", "\"ox\"", "") "]}",
         &found);
    cr_expect_str_eq(shape_of(&found, "im", 0, text), "[?,2]");
    cr_expect_str_eq(shape_of(&found, "om", 0, text), "[?,2]");
    cr_expect_str_eq(shape_of(&found, "y", 0, text), "[?,2]");
    found_fini(&found);
}
