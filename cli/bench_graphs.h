/* The graphs of the engine's benchmarks, as plain lists: for Troupe and for its peers. */
#ifndef TROUPE_CLI_BENCH_GRAPHS_H
#define TROUPE_CLI_BENCH_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum troupe_bench_graph_kind {
    TROUPE_BENCH_CHAIN = 0, /* 100,000 nodes, one after the other */
    TROUPE_BENCH_FAN,       /* 1 to 10,000 to 1 */
    TROUPE_BENCH_LAYERED, /* 1,000 layers of 100, each node with 3 inputs drawn from the one before
                           */
    TROUPE_BENCH_GRAPHS
};

extern const char *const troupe_bench_graph_names[TROUPE_BENCH_GRAPHS + 1]; /* ended by NULL */

struct troupe_bench_edge {
    int from, to, to_port;
};

/* Node 0 to node_count - 1, producers before consumers; inputs of a node are its ports 0, 1, ... */
struct troupe_bench_graph {
    int node_count, edge_count;
    int *inputs, *outputs; /* edges into and out of a node */
    struct troupe_bench_edge *edges;
};

/* False without memory. The same graph in every call. */
bool troupe_bench_graph_make(enum troupe_bench_graph_kind kind, struct troupe_bench_graph *out);
void troupe_bench_graph_fini(struct troupe_bench_graph *graph);

/* Median, least and most of what was measured, which is sorted by this. */
struct troupe_bench_range {
    double median, min, max;
};
struct troupe_bench_range troupe_bench_range_of(double *values, int count);
/* CLOCK_MONOTONIC; and a loop that lasts so long, for nodes that work. */
double troupe_bench_now_ns(void);
void troupe_bench_work(int64_t ns);

#ifdef __cplusplus
}
#endif

#endif
