/* The engine's benchmark graphs, and how figures are taken. */
#include "cli/bench_graphs.h"

#include <stdlib.h>
#include <time.h>

#define CHAIN_LENGTH 100000
#define FAN_WIDTH    10000
#define LAYERS       1000
#define LAYER_WIDTH  100
#define LAYER_INPUTS 3

const char *const troupe_bench_graph_names[TROUPE_BENCH_GRAPHS + 1] = {"chain", "fan", "layered",
                                                                       NULL};

static void connect(struct troupe_bench_graph *graph, int from, int to)
{
    graph->edges[graph->edge_count++] =
        (struct troupe_bench_edge){.from = from, .to = to, .to_port = graph->inputs[to]++};
    graph->outputs[from]++;
}

static void connect_chain(struct troupe_bench_graph *graph)
{
    for (int i = 1; i < CHAIN_LENGTH; i++)
        connect(graph, i - 1, i);
}

static void connect_fan(struct troupe_bench_graph *graph)
{
    for (int i = 1; i <= FAN_WIDTH; i++) {
        connect(graph, 0, i);
        connect(graph, i, FAN_WIDTH + 1);
    }
}

static void connect_layers(struct troupe_bench_graph *graph)
{
    uint32_t random = 1; /* Numerical Recipes' generator: the same graph everywhere */

    for (int i = LAYER_WIDTH; i < LAYERS * LAYER_WIDTH; i++)
        for (int input = 0; input < LAYER_INPUTS; input++) {
            random = random * 1664525u + 1013904223u;
            connect(graph,
                    i / LAYER_WIDTH * LAYER_WIDTH - LAYER_WIDTH +
                        (int)((random >> 8) % LAYER_WIDTH),
                    i);
        }
}

static const struct {
    int nodes, edges;
    void (*connect)(struct troupe_bench_graph *graph);
} shapes[TROUPE_BENCH_GRAPHS] = {
    {CHAIN_LENGTH, CHAIN_LENGTH - 1, connect_chain},
    {FAN_WIDTH + 2, 2 * FAN_WIDTH, connect_fan},
    {LAYERS * LAYER_WIDTH, (LAYERS - 1) * LAYER_WIDTH *LAYER_INPUTS, connect_layers},
};

bool troupe_bench_graph_make(enum troupe_bench_graph_kind kind, struct troupe_bench_graph *out)
{
    size_t nodes = (size_t)shapes[kind].nodes;

    *out = (struct troupe_bench_graph){.node_count = shapes[kind].nodes};
    out->inputs = calloc(nodes, sizeof *out->inputs);
    out->outputs = calloc(nodes, sizeof *out->outputs);
    out->edges = calloc((size_t)shapes[kind].edges, sizeof *out->edges);
    if (out->inputs == NULL || out->outputs == NULL || out->edges == NULL) {
        troupe_bench_graph_fini(out);
        return false;
    }
    shapes[kind].connect(out);
    return true;
}

void troupe_bench_graph_fini(struct troupe_bench_graph *graph)
{
    free(graph->inputs);
    free(graph->outputs);
    free(graph->edges);
}

static int double_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

struct troupe_bench_range troupe_bench_range_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, double_compare);
    return (struct troupe_bench_range){
        .median = values[count / 2], .min = values[0], .max = values[count - 1]};
}

double troupe_bench_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void troupe_bench_work(int64_t ns)
{
    double end = troupe_bench_now_ns() + (double)ns;

    while (troupe_bench_now_ns() < end)
        continue;
}
