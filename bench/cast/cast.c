/* Milliseconds from a graph file to actors that run, phase by phase, with one worker.
 * Usage: bench_cast GRAPH FETCH [SAMPLES]; the graphs are those of graphs.py.
 *
 *   load   reading the JSON, checks, dtypes and shapes
 *   open   load, and what comes after it: initialisers, placement
 *   plan   prune, partition, cast
 *   total  open and plan
 *   step   one step of the plan
 *   close  the session's end */
#include <stdio.h>
#include <stdlib.h>

#include "actors/actors.h"
#include "base/clock.h"
#include "coordinator/plan.h"
#include "graph/diagnostics.h"
#include "troupe/troupe.h"

enum phase { LOAD, OPEN, PLAN, TOTAL, STEP, CLOSE, PHASES };
static const char *const phase_names[PHASES] = {"load", "open", "plan", "total", "step", "close"};

#define SAMPLES_MAX 101

/* What of a plan is the same in every sample. */
struct made {
    struct troupe_stage_size size;
    int nodes;
};

static double now_ms(void)
{
    return (double)troupe_clock_ns() * 1e-6;
}

static enum troupe_status load(const char *path)
{
    struct troupe_diagnostics diagnostics;
    troupe_diagnostics_init(&diagnostics);
    struct troupe_graph *graph;
    enum troupe_status status = troupe_graph_load(path, 0, &diagnostics, &graph);
    if (status == TROUPE_OK)
        troupe_graph_destroy(graph);
    troupe_diagnostics_fini(&diagnostics);
    return status;
}

/* State is set before the plan is timed, by a plan of its own. */
static enum troupe_status initialise(struct troupe_session *session)
{
    const char *target = TROUPE_INIT_NODE;
    struct troupe_run run = {.targets = &target, .target_count = 1, .steps = 1};
    if (troupe_graph_find(session->graph, target) < 0)
        return TROUPE_OK;
    return troupe_session_run(session, &run, NULL, NULL);
}

static enum troupe_status run_session(struct troupe_session *session, const char *fetch,
                                      double *times, struct made *made)
{
    struct troupe_run run = {.fetches = &fetch, .fetch_count = 1, .steps = 1};
    enum troupe_status status = initialise(session);
    if (status != TROUPE_OK)
        return status;
    struct troupe_plan *plan;
    struct troupe_tensor *value;
    double start = now_ms();
    status = troupe_plan_get(session, &run, 0, &plan);
    double planned = now_ms();
    if (status == TROUPE_OK)
        status = troupe_session_run(session, &run, &value, NULL);
    if (status != TROUPE_OK)
        return status;
    troupe_tensor_unref(value);
    times[STEP] = now_ms() - planned;
    times[PLAN] = planned - start;
    made->nodes = plan->partition.order_count;
    troupe_stage_size_get(plan->stage, &made->size);
    return TROUPE_OK;
}

static enum troupe_status sample(struct troupe_runtime *runtime, const char *path,
                                 const char *fetch, double *times, struct made *made)
{
    struct troupe_session *session;
    double start = now_ms();
    enum troupe_status status = load(path);
    double loaded = now_ms();
    if (status == TROUPE_OK)
        status = troupe_session_open(runtime, path, NULL, &session);
    if (status != TROUPE_OK)
        return status;
    times[LOAD] = loaded - start;
    times[OPEN] = now_ms() - loaded;
    status = run_session(session, fetch, times, made);
    times[TOTAL] = times[OPEN] + times[PLAN];
    double done = now_ms();
    troupe_session_close(session);
    times[CLOSE] = now_ms() - done;
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static enum troupe_status measure(struct troupe_runtime *runtime, const char *path,
                                  const char *fetch, int samples)
{
    double times[PHASES][SAMPLES_MAX], row[PHASES] = {0};
    struct made made = {0};
    for (int i = 0; i < samples; i++) {
        enum troupe_status status = sample(runtime, path, fetch, row, &made);
        if (status != TROUPE_OK)
            return status;
        for (int phase = 0; phase < PHASES; phase++)
            times[phase][i] = row[phase];
    }
    printf("{\"nodes\": %d, \"actors\": %d, \"edges\": %d, \"bytes_per_actor\": %.1f, \"ms\": {",
           made.nodes, made.size.actors, made.size.edges,
           (double)made.size.bytes / made.size.actors);
    for (int phase = 0; phase < PHASES; phase++) {
        double *own = times[phase];
        qsort(own, (size_t)samples, sizeof(*own), compare);
        printf("%s\"%s\": {\"median\": %.1f, \"min\": %.1f, \"max\": %.1f}", phase ? ", " : "",
               phase_names[phase], own[samples / 2], own[0], own[samples - 1]);
    }
    printf("}}\n");
    return TROUPE_OK;
}

int main(int argc, char **argv)
{
    struct troupe_runtime *runtime;
    int samples = argc > 3 ? atoi(argv[3]) : 5;
    if (argc < 3 || samples < 1 || samples > SAMPLES_MAX) {
        fprintf(stderr, "usage: bench_cast GRAPH FETCH [SAMPLES]\n");
        return 2;
    }
    if (troupe_runtime_launch(&argc, &argv, 1, &runtime) != TROUPE_OK)
        return 3;
    enum troupe_status status = measure(runtime, argv[1], argv[2], samples);
    if (status != TROUPE_OK)
        fprintf(stderr, "bench_cast: %s\n", troupe_status_message());
    troupe_runtime_destroy(runtime);
    return status == TROUPE_OK ? 0 : 1;
}
