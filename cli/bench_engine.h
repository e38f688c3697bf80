/* The engine's benchmark: the cost of a firing in graphs of nodes that pass tensors on. */
#ifndef TROUPE_CLI_BENCH_ENGINE_H
#define TROUPE_CLI_BENCH_ENGINE_H

#include "cli/bench_graphs.h"
#include "troupe/actor.h"
#include "troupe/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the graphs, cast onto a pool of its own. A node passes its first input on, which is a
 * scalar tensor that the graph's sources make, and works for `work_ns` before. */
struct troupe_bench_engine;
enum troupe_status troupe_bench_engine_create(const struct troupe_bench_graph *graph, int workers,
                                              int64_t work_ns, struct troupe_bench_engine **out);
/* Runs every node once; the nanoseconds that it took. */
enum troupe_status troupe_bench_engine_run(struct troupe_bench_engine *engine, double *ns_out);
void troupe_bench_engine_destroy(struct troupe_bench_engine *engine);

#ifdef __cplusplus
}
#endif

#endif
