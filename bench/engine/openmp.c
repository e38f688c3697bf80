/* OpenMP's task dependences: an `in` for each input, an `out` for the node. OpenMP has no graph
 * that is built once: creation is part of every run. */
#include <omp.h>
#include <stdlib.h>

#include "bench/engine/peers.h"

struct openmp {
    const struct troupe_bench_graph *graph;
    int *first, *producers; /* of node i: producers[first[i]] to producers[first[i + 1] - 1] */
    void **values;          /* of each node */
    int workers;
    int64_t work_ns;
};

static void openmp_destroy(void *self)
{
    struct openmp *openmp = self;

    free(openmp->first);
    free(openmp->producers);
    free(openmp->values);
    free(openmp);
}

static void *openmp_create(const struct troupe_bench_graph *graph, int workers, int64_t work_ns)
{
    struct openmp *openmp = calloc(1, sizeof *openmp);

    if (openmp == NULL)
        return NULL;
    openmp->graph = graph;
    openmp->workers = workers;
    openmp->work_ns = work_ns;
    openmp->first = calloc((size_t)graph->node_count + 1, sizeof *openmp->first);
    openmp->producers = calloc((size_t)graph->edge_count, sizeof *openmp->producers);
    openmp->values = calloc((size_t)graph->node_count, sizeof *openmp->values);
    if (!openmp->first || !openmp->producers || !openmp->values) {
        openmp_destroy(openmp);
        return NULL;
    }
    for (int i = 0; i < graph->node_count; i++)
        openmp->first[i + 1] = openmp->first[i] + graph->inputs[i];
    for (int i = 0; i < graph->edge_count; i++)
        openmp->producers[openmp->first[graph->edges[i].to] + graph->edges[i].to_port] =
            graph->edges[i].from;
    return openmp;
}

static void create_task(const struct openmp *openmp, int node)
{
    void **values = openmp->values;
    const int *producers = openmp->producers + openmp->first[node];
    int count = openmp->first[node + 1] - openmp->first[node];
    int64_t work_ns = openmp->work_ns;

#pragma omp task depend(iterator(int i = 0                                                         \
                                 : count),                                                         \
                        in                                                                         \
                        : values[producers[i]]) depend(out                                         \
                                                       : values[node])                             \
    firstprivate(values, producers, count, node, work_ns)
    {
        if (work_ns > 0)
            troupe_bench_work(work_ns);
        values[node] = count > 0 ? values[producers[0]] : &values[node];
    }
}

static double openmp_run(void *self)
{
    struct openmp *openmp = self;
    double start = troupe_bench_now_ns();

#pragma omp parallel num_threads(openmp->workers)
#pragma omp single
    for (int i = 0; i < openmp->graph->node_count; i++)
        create_task(openmp, i);
    return troupe_bench_now_ns() - start;
}

const struct peer peer_openmp = {"openmp", 64, openmp_create, openmp_run, openmp_destroy};
