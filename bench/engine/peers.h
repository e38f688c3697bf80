/* The peers of the engine's benchmark: each builds a graph once and runs it again and again, one
 * value passed along every edge. */
#ifndef TROUPE_BENCH_ENGINE_PEERS_H
#define TROUPE_BENCH_ENGINE_PEERS_H

#include "cli/bench_graphs.h"

#ifdef __cplusplus
extern "C" {
#endif

struct peer {
    const char *name;
    int most_workers; /* 1: it has one thread */
    /* NULL without memory. */
    void *(*create)(const struct troupe_bench_graph *graph, int workers, int64_t work_ns);
    double (*run)(void *self); /* nanoseconds */
    void (*destroy)(void *self);
};

/* A ready queue, pending counters and one thread: as little as such a graph can cost. */
extern const struct peer peer_floor;
/* Task dependences, created anew in every run. Where the compiler has OpenMP. */
extern const struct peer peer_openmp;
/* continue_nodes of oneTBB's flow graph. Where libtbb-dev is installed. */
extern const struct peer peer_onetbb;

#ifdef __cplusplus
}
#endif

#endif
