/* The floor: what a graph costs one thread that does nothing but what it must. */
#include <stdlib.h>

#include "bench/engine/peers.h"

struct floor_edge {
    int to;
    int input; /* where the consumer's value lies */
};

struct floor_node {
    int missing, need;
    int first_edge, edges;
    int first_input;
};

struct floor {
    struct floor_node *nodes;
    struct floor_edge *edges;
    void **values;
    int *ready;
    int node_count;
    int64_t work_ns;
};

static void floor_destroy(void *self)
{
    struct floor *floor = self;

    free(floor->nodes);
    free(floor->edges);
    free(floor->values);
    free(floor->ready);
    free(floor);
}

static void *floor_create(const struct troupe_bench_graph *graph, int workers, int64_t work_ns)
{
    struct floor *floor = calloc(1, sizeof *floor);
    size_t nodes = (size_t)graph->node_count, edges = (size_t)graph->edge_count;
    int edge = 0, input = 0;

    (void)workers;
    if (floor == NULL)
        return NULL;
    floor->nodes = calloc(nodes, sizeof *floor->nodes);
    floor->edges = calloc(edges, sizeof *floor->edges);
    floor->values = calloc(edges, sizeof *floor->values);
    floor->ready = calloc(nodes, sizeof *floor->ready);
    if (!floor->nodes || !floor->edges || !floor->values || !floor->ready) {
        floor_destroy(floor);
        return NULL;
    }
    floor->node_count = graph->node_count;
    floor->work_ns = work_ns;
    for (int i = 0; i < graph->node_count; i++) {
        floor->nodes[i] = (struct floor_node){.missing = graph->inputs[i],
                                              .need = graph->inputs[i],
                                              .first_edge = edge,
                                              .first_input = input};
        edge += graph->outputs[i];
        input += graph->inputs[i];
    }
    for (int i = 0; i < graph->edge_count; i++) {
        const struct troupe_bench_edge *from = &graph->edges[i];
        struct floor_node *node = &floor->nodes[from->from];

        floor->edges[node->first_edge + node->edges++] =
            (struct floor_edge){from->to, floor->nodes[from->to].first_input + from->to_port};
    }
    return floor;
}

static double floor_run(void *self)
{
    struct floor *floor = self;
    double start = troupe_bench_now_ns();
    int count = 0;

    for (int i = 0; i < floor->node_count; i++)
        if (floor->nodes[i].need == 0)
            floor->ready[count++] = i;
    while (count > 0) {
        struct floor_node *node = &floor->nodes[floor->ready[--count]];
        void *value = node->need > 0 ? floor->values[node->first_input] : node;

        if (floor->work_ns > 0)
            troupe_bench_work(floor->work_ns);
        node->missing = node->need;
        for (int i = node->first_edge; i < node->first_edge + node->edges; i++) {
            const struct floor_edge *edge = &floor->edges[i];

            floor->values[edge->input] = value;
            if (--floor->nodes[edge->to].missing == 0)
                floor->ready[count++] = edge->to;
        }
    }
    return troupe_bench_now_ns() - start;
}

const struct peer peer_floor = {"floor", 1, floor_create, floor_run, floor_destroy};
