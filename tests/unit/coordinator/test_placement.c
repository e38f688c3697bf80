/* Placement: constraints, clusters, colocation, and what free nodes follow. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/placement.h"

static struct troupe_graph *graph_of(const char *text)
{
    struct troupe_graph *graph = NULL;
    struct troupe_diagnostics diagnostics;
    troupe_diagnostics_init(&diagnostics);
    enum troupe_status status =
        troupe_graph_parse(text, strlen(text), "g.json", 0, &diagnostics, &graph);
    if (status == TROUPE_OK)
        status = troupe_graph_infer(graph, 0, &diagnostics);
    cr_assert_eq(status, TROUPE_OK, "%s", troupe_status_message());
    cr_assert_eq(diagnostics.count, 0u);
    troupe_diagnostics_fini(&diagnostics);
    return graph;
}

static enum troupe_status place(struct troupe_graph *graph, int ranks)
{
    bool *keep = malloc((size_t)graph->node_count);
    cr_assert_not_null(keep);
    memset(keep, 1, (size_t)graph->node_count);
    const struct troupe_device_table none = {0};
    enum troupe_status status = troupe_place(graph, ranks, &none, keep);
    free(keep);
    return status;
}

static int rank_of(const struct troupe_graph *graph, const char *name)
{
    int node = troupe_graph_find(graph, name);
    cr_assert_geq(node, 0, "%s", name);
    return graph->nodes[node].rank;
}

/* What is between the brackets of "node", and the members after it. */
static void expect_failure(const char *text, int ranks, const char *message)
{
    struct troupe_graph *graph = graph_of(text);
    cr_assert_eq(place(graph, ranks), TROUPE_INVALID_ARGUMENT, "%s", text);
    cr_assert_str_eq(troupe_status_message(), message);
    troupe_graph_destroy(graph);
}

#define CONST(name, device)                                                                        \
    "{\"name\": \"" name                                                                           \
    "\", \"op\": \"Const\", \"attr\": {\"value\": 1.0}, \"device\": \"" device "\"}"
#define VARIABLE(name, device)                                                                     \
    "{\"name\": \"" name "\", \"op\": \"Variable\", \"attr\": {\"dtype\": \"float32\", "           \
    "\"shape\": []}, \"device\": \"" device "\"}"
#define ADD(name, variable, value, device)                                                         \
    "{\"name\": \"" name "\", \"op\": \"AssignAdd\", \"input\": [\"" variable "\", \"" value       \
    "\"], \"device\": \"" device "\"}"

Test(placement, tasks_are_ranks_without_a_cluster)
{
    struct troupe_graph *graph = graph_of("{\"node\": [" CONST("a", "/job:worker/task:2") "," CONST(
        "b", "/task:1") "," CONST("c", "") "," CONST("d", "/job:worker/task:0/device:CPU:0") "]}");
    cr_assert_eq(place(graph, 3), TROUPE_OK, "%s", troupe_status_message());
    cr_expect_eq(rank_of(graph, "a"), 2);
    cr_expect_eq(rank_of(graph, "b"), 1);
    cr_expect_eq(rank_of(graph, "c"), 0);
    cr_expect_eq(rank_of(graph, "d"), 0);
    troupe_graph_destroy(graph);
}

Test(placement, a_cluster_says_the_ranks)
{
    struct troupe_graph *graph = graph_of(
        "{\"node\": [" CONST("a", "/job:ps") "," CONST("b", "/job:worker/task:1") "," CONST(
            "c", "/job:worker/task:0") "], \"cluster\": {\"ps\": [2], \"worker\": [1, 0]}}");
    cr_assert_eq(place(graph, 3), TROUPE_OK, "%s", troupe_status_message());
    cr_expect_eq(rank_of(graph, "a"), 2);
    cr_expect_eq(rank_of(graph, "b"), 0);
    cr_expect_eq(rank_of(graph, "c"), 1);
    troupe_graph_destroy(graph);
}

Test(placement, updates_are_where_the_state_is)
{
    struct troupe_graph *graph =
        graph_of("{\"node\": [" CONST("one", "") "," VARIABLE("v", "/job:worker/task:1") "," ADD(
            "next", "v", "one", "") "," VARIABLE("u", "") "," ADD("last", "u", "next",
                                                                  "/job:worker/task:2") "]}");
    cr_assert_eq(place(graph, 3), TROUPE_OK, "%s", troupe_status_message());
    cr_expect_eq(rank_of(graph, "next"), 1);
    cr_expect_eq(rank_of(graph, "one"), 1, "a constant goes to its user");
    cr_expect_eq(rank_of(graph, "u"), 2, "the constraint of the update holds for the variable");
    troupe_graph_destroy(graph);
}

Test(placement, free_nodes_follow_their_inputs)
{
    struct troupe_graph *graph =
        graph_of("{\"node\": [" CONST("a", "/job:worker/task:1") "," VARIABLE("v", "") "," ADD(
            "b", "v", "a", "") "," VARIABLE("w", "") "," ADD("c", "w", "b", "") "]}");
    cr_assert_eq(place(graph, 2), TROUPE_OK, "%s", troupe_status_message());
    cr_expect_eq(rank_of(graph, "b"), 1);
    cr_expect_eq(rank_of(graph, "v"), 1);
    cr_expect_eq(rank_of(graph, "c"), 1);
    troupe_graph_destroy(graph);
}

Test(placement, says_what_cannot_be)
{
    expect_failure("{\"node\": [\n" CONST("a", "/job:worker/task:2") "]}", 2,
                   "g.json:2:1: node \"a\" (Const): device \"/job:worker/task:2\": the cluster has "
                   "worker tasks 0 to 1");
    expect_failure("{\"node\": [\n" CONST("w", "/job:ps/task:3") "], \"cluster\": {\"ps\": [0]}}",
                   1,
                   "g.json:2:1: node \"w\" (Const): device \"/job:ps/task:3\": the cluster has ps "
                   "tasks 0 to 0");
    expect_failure("{\"node\": [\n" CONST("a", "/job:ps") "]}", 2,
                   "g.json:2:1: node \"a\" (Const): device \"/job:ps\": the cluster has no job "
                   "\"ps\"");
    expect_failure("{\"node\": [\n" CONST("a", "/device:GPU:0") "]}", 1,
                   "g.json:2:1: node \"a\" (Const): device \"/device:GPU:0\": every rank has CPU:0 "
                   "and no GPU");
    expect_failure("{\"node\": [\n" CONST("a", "/device:CPU:1") "]}", 1,
                   "g.json:2:1: node \"a\" (Const): device \"/device:CPU:1\": every rank has CPU:0 "
                   "alone");
    expect_failure("{\"node\": [], \"cluster\": {\"worker\": [0, 2]}}", 2,
                   "g.json: cluster: job \"worker\" has rank 2: there are ranks 0 to 1");
}

Test(placement, names_both_nodes_of_a_conflict)
{
    expect_failure(
        "{\"node\": [" CONST("one", "") ",\n" VARIABLE("v", "/job:worker/task:0") ",\n" ADD(
            "next", "v", "one", "/job:worker/task:1") "]}",
        2,
        "g.json:2:1: node \"v\" (Variable) has device \"/job:worker/task:0\", and "
        "g.json:3:1: node \"next\" (AssignAdd), which must be on the same, has "
        "\"/job:worker/task:1\"");
}

Test(placement, leaves_what_is_not_kept)
{
    struct troupe_graph *graph = graph_of("{\"node\": [" CONST("a", "/job:no/task:9") "]}");
    bool keep[1] = {false};
    cr_assert_eq(troupe_place(graph, 1, NULL, keep), TROUPE_OK, "%s", troupe_status_message());
    troupe_graph_destroy(graph);
}

/* "/job:ps" and "/task:0": together one task, which each alone leaves open. */
Test(placement, partial_constraints_add_up)
{
    struct troupe_graph *graph =
        graph_of("{\"node\": [" CONST("one", "") "," VARIABLE("v", "/job:ps") "," ADD(
            "next", "v", "one", "/task:1") "], \"cluster\": {\"ps\": [0, 1], \"worker\": [2]}}");
    cr_assert_eq(place(graph, 3), TROUPE_OK, "%s", troupe_status_message());
    cr_expect_eq(rank_of(graph, "v"), 1);
    cr_expect_eq(rank_of(graph, "next"), 1);
    troupe_graph_destroy(graph);
    expect_failure("{\"node\": [" CONST("one", "") ",\n" VARIABLE("v", "/job:ps") "," ADD(
                       "next", "v", "one", "/task:1") "], \"cluster\": {\"ps\": [0], "
                                                      "\"worker\": [1, 2]}}",
                   3,
                   "g.json:2:1: node \"v\" (Variable): device \"/job:ps\": no rank has that and "
                   "what the nodes of the same state want");
}

/* A table of simulated devices without memory of theirs: placement only looks at their names. */
Test(placement, devices_of_the_nodes)
{
    static const struct troupe_device_ops sim = {.type = "SIM"};
    struct troupe_device devices[2] = {{.ops = &sim, .index = 0}, {.ops = &sim, .index = 1}};
    struct troupe_device *all[2] = {&devices[0], &devices[1]};
    const struct troupe_device_table table = {.devices = all, .count = 2};
    static const struct {
        const char *device;
        int rank, accelerator; /* -1: refused */
    } rows[] = {
        {"", 0, 0},
        {"CPU:0", 0, 0},
        {"/device:CPU", 0, 0},
        {"SIM:0", 0, 1},
        {"SIM:1", 0, 2},
        {"SIM:2", -1, 0},
        {"/task:1/device:SIM:1", 1, 2},
        {"sim:1", 0, 2},
        {"/device:SIM", 0, 1},
        {"CPU:1", -1, 0},
        {"CUDA:0", -1, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "{\"node\": [{\"name\": \"a\", \"op\": \"Const\", \"attr\": {\"value\": 1.0}, "
                 "\"device\": \"%s\"}]}",
                 rows[i].device);
        struct troupe_graph *graph = graph_of(text);
        const bool keep[1] = {true};
        enum troupe_status status = troupe_place(graph, 2, &table, keep);
        cr_assert_eq(status, rows[i].rank < 0 ? TROUPE_INVALID_ARGUMENT : TROUPE_OK, "%s: %s",
                     rows[i].device, troupe_status_message());
        if (status == TROUPE_OK) {
            cr_assert_eq(graph->nodes[0].rank, rows[i].rank, "%s", rows[i].device);
            cr_assert_eq(graph->nodes[0].accelerator, rows[i].accelerator, "%s", rows[i].device);
        }
        troupe_graph_destroy(graph);
    }
}
