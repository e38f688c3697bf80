/* `troupe bench`: measures what this machine makes of the engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_engine.h"
#include "cli/cli.h"

#define DEFAULT_RUNS 9

/* Where and how the figures are printed. */
struct report {
    bool json;
    int rows;
};

static void report_row(struct report *report, const char *graph, int nodes, int workers, int runs,
                       struct troupe_bench_range range)
{
    if (report->json)
        printf("%s{\"graph\": \"%s\", \"nodes\": %d, \"workers\": %d, \"runs\": %d, "
               "\"ns_per_node\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}}",
               report->rows == 0 ? "[" : ",\n ", graph, nodes, workers, runs, range.median,
               range.min, range.max);
    else {
        if (report->rows == 0)
            printf("%-8s %8s %8s %6s   ns per node: median, least, most\n", "graph", "nodes",
                   "workers", "runs");
        printf("%-8s %8d %8d %6d   %10.1f %10.1f %10.1f\n", graph, nodes, workers, runs,
               range.median, range.min, range.max);
    }
    report->rows++;
}

static enum troupe_status measure(enum troupe_bench_graph_kind kind, int workers,
                                  const struct troupe_arguments *arguments, struct report *report)
{
    int runs = arguments->runs > 0 ? arguments->runs : DEFAULT_RUNS;
    double *times = calloc((size_t)runs, sizeof *times), first;
    struct troupe_bench_graph graph = {0};
    struct troupe_bench_engine *engine = NULL;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    if (times == NULL || !troupe_bench_graph_make(kind, &graph)) {
        free(times);
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for a benchmark");
    }
    status = troupe_bench_engine_create(&graph, workers, arguments->work_ns, &engine);
    if (status == TROUPE_OK)
        status = troupe_bench_engine_run(engine, &first);
    for (int i = 0; i < runs && status == TROUPE_OK; i++) {
        status = troupe_bench_engine_run(engine, &times[i]);
        times[i] /= graph.node_count;
    }
    if (status == TROUPE_OK)
        report_row(report, troupe_bench_graph_names[kind], graph.node_count, workers, runs,
                   troupe_bench_range_of(times, runs));
    troupe_bench_engine_destroy(engine);
    troupe_bench_graph_fini(&graph);
    free(times);
    return status;
}

/* Each graph with one worker and with two, or with as many as were asked for. */
static enum troupe_status bench_engine(const struct troupe_arguments *arguments,
                                       struct report *report)
{
    int from = arguments->workers > 0 ? arguments->workers : 1;
    int to = arguments->workers > 0 ? arguments->workers : 2;
    enum troupe_status status = TROUPE_OK;

    for (int kind = 0; kind < TROUPE_BENCH_GRAPHS; kind++)
        for (int workers = from; workers <= to && status == TROUPE_OK; workers++)
            if (arguments->graph == NULL ||
                strcmp(arguments->graph, troupe_bench_graph_names[kind]) == 0)
                status = measure((enum troupe_bench_graph_kind)kind, workers, arguments, report);
    return status;
}

static enum troupe_status check(const struct troupe_arguments *arguments)
{
    static const char *const benchmarks[] = {"engine", NULL};
    const char *const *graphs = troupe_bench_graph_names;
    const char *format = arguments->format != NULL ? arguments->format : "text";

    if (strcmp(arguments->operand, benchmarks[0]) != 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "no benchmark \"%s\": there is \"engine\"", arguments->operand);
    if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "--format wants \"text\" or \"json\", got \"%s\"", format);
    for (; arguments->graph != NULL && *graphs != NULL; graphs++)
        if (strcmp(arguments->graph, *graphs) == 0)
            return TROUPE_OK;
    if (arguments->graph != NULL)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "--graph wants \"chain\", \"fan\" or \"layered\", got \"%s\"",
                                  arguments->graph);
    return TROUPE_OK;
}

static int command_bench(struct troupe_runtime *runtime, const struct troupe_arguments *arguments)
{
    struct report report = {.json = arguments->format != NULL &&
                                    strcmp(arguments->format, "json") == 0};
    enum troupe_status status = check(arguments);

    if (status != TROUPE_OK)
        return troupe_fail(runtime, status);
    if (troupe_runtime_rank(runtime) != 0)
        return TROUPE_EXIT_DONE;
    status = bench_engine(arguments, &report);
    if (report.json && report.rows > 0)
        printf("]\n");
    return status == TROUPE_OK ? TROUPE_EXIT_DONE : troupe_fail(runtime, status);
}

const struct troupe_command troupe_command_bench = {
    .name = "bench",
    .operand = "BENCHMARK",
    .operand_required = true,
    .summary = "measure this machine: \"engine\", the cost of a firing",
    .accepts = 1u << TROUPE_OPTION_FORMAT | 1u << TROUPE_OPTION_WORKERS | 1u << TROUPE_OPTION_RUNS |
               1u << TROUPE_OPTION_GRAPH | 1u << TROUPE_OPTION_WORK | 1u << TROUPE_OPTION_LOG,
    .run = command_bench,
};
