/* Troupe's engine beside its peers, alternately in one run, so that what else the machine does is
 * shared: nanoseconds per node, and how many times Troupe's they are.
 *
 *     engine_peers [--format text|json] [--runs N] [--workers N] [--work-ns N] [--graph NAME]
 *                  [--peer NAME]
 *
 * A run takes each of them once; the first does not count. Workers: 1 and 2 unless given. All
 * graphs and all peers unless one is named. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/engine/peers.h"
#include "cli/bench_engine.h"

#define MAX_RUNS 1000

static void *troupe_create(const struct troupe_bench_graph *graph, int workers, int64_t work_ns)
{
    struct troupe_bench_engine *engine = NULL;

    return troupe_bench_engine_create(graph, workers, work_ns, &engine) == TROUPE_OK ? engine
                                                                                     : NULL;
}

static double troupe_run(void *self)
{
    double ns = 0;

    if (troupe_bench_engine_run(self, &ns) != TROUPE_OK) {
        fprintf(stderr, "engine_peers: %s\n", troupe_status_message());
        exit(1);
    }
    return ns;
}

static void troupe_destroy(void *self)
{
    troupe_bench_engine_destroy(self);
}

static const struct peer peer_troupe = {"troupe", 256, troupe_create, troupe_run, troupe_destroy};

static const struct peer *const peers[] = {
    &peer_troupe,
    &peer_floor,
#ifdef TROUPE_BENCH_ONETBB
    &peer_onetbb,
#endif
#ifdef TROUPE_BENCH_OPENMP
    &peer_openmp,
#endif
};
#define PEERS ((int)(sizeof peers / sizeof peers[0]))

struct options {
    int runs, workers, work_ns;
    bool json;
    const char *graph, *peer; /* NULL: all */
};

static bool is_chosen(int peer, const struct options *options)
{
    return peer == 0 || options->peer == NULL || strcmp(options->peer, peers[peer]->name) == 0;
}

static void report(const char *graph, int workers, const struct options *options,
                   struct troupe_bench_range *ranges)
{
    static int rows;

    for (int i = 0; i < PEERS; i++) {
        if (!is_chosen(i, options))
            continue;
        double ratio = ranges[i].median / ranges[0].median;
        int own = workers < peers[i]->most_workers ? workers : peers[i]->most_workers;

        if (options->json)
            printf("%s{\"graph\": \"%s\", \"peer\": \"%s\", \"workers\": %d, \"runs\": %d, "
                   "\"ns_per_node\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}, "
                   "\"times_troupe\": %.3f}",
                   rows == 0 ? "[" : ",\n ", graph, peers[i]->name, own, options->runs,
                   ranges[i].median, ranges[i].min, ranges[i].max, ratio);
        else
            printf("%-8s %-7s %d workers  %9.1f ns per node (%.1f to %.1f)  %6.2f times Troupe's\n",
                   graph, peers[i]->name, own, ranges[i].median, ranges[i].min, ranges[i].max,
                   ratio);
        rows++;
    }
    fflush(stdout);
}

static bool measure(enum troupe_bench_graph_kind kind, int workers, const struct options *options)
{
    struct troupe_bench_graph graph;
    struct troupe_bench_range ranges[PEERS];
    void *selves[PEERS] = {NULL};
    double *times = calloc((size_t)(PEERS * options->runs), sizeof *times);
    bool is_made = times != NULL && troupe_bench_graph_make(kind, &graph);

    if (!is_made) {
        free(times);
        return false;
    }
    for (int i = 0; i < PEERS && is_made; i++)
        if (is_chosen(i, options))
            is_made = (selves[i] = peers[i]->create(&graph, workers, options->work_ns)) != NULL;
    for (int run = -1; run < options->runs && is_made; run++)
        for (int i = 0; i < PEERS; i++) {
            double ns = is_chosen(i, options) ? peers[i]->run(selves[i]) / graph.node_count : 0;

            if (run >= 0)
                times[i * options->runs + run] = ns;
        }
    for (int i = 0; i < PEERS; i++) {
        if (selves[i] != NULL)
            peers[i]->destroy(selves[i]);
        ranges[i] = troupe_bench_range_of(times + i * options->runs, options->runs);
    }
    if (is_made)
        report(troupe_bench_graph_names[kind], workers, options, ranges);
    troupe_bench_graph_fini(&graph);
    free(times);
    return is_made;
}

/* The number in `text`, or -1 when it is none up to `most`. */
static int number_parse(const char *text, int most)
{
    char *end;
    long value = strtol(text, &end, 10);

    return *text != '\0' && *end == '\0' && value >= 0 && value <= most ? (int)value : -1;
}

static bool peer_exists(const char *name)
{
    for (int i = 1; i < PEERS; i++)
        if (strcmp(peers[i]->name, name) == 0)
            return true;
    return false;
}

static bool graph_exists(const char *name)
{
    const char *const *names = troupe_bench_graph_names;

    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool option_parse(const char *name, const char *value, struct options *options)
{
    if (strcmp(name, "--format") == 0) {
        options->json = strcmp(value, "json") == 0;
        return options->json || strcmp(value, "text") == 0;
    }
    if (strcmp(name, "--graph") == 0) {
        options->graph = value;
        return graph_exists(value);
    }
    if (strcmp(name, "--peer") == 0) {
        options->peer = value;
        return peer_exists(value);
    }
    if (strcmp(name, "--runs") == 0)
        return (options->runs = number_parse(value, MAX_RUNS)) > 0;
    if (strcmp(name, "--workers") == 0)
        return (options->workers = number_parse(value, 64)) > 0;
    if (strcmp(name, "--work-ns") == 0)
        return (options->work_ns = number_parse(value, 1000000)) >= 0;
    return false;
}

static bool options_parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i += 2)
        if (!option_parse(argv[i], i + 1 < argc ? argv[i + 1] : "", options))
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct options options = {.runs = 9};
    int from, to;

    if (!options_parse(argc, argv, &options)) {
        fprintf(stderr,
                "usage: engine_peers [--format text|json] [--runs 1..%d] [--workers 1..64] "
                "[--work-ns 0..1000000] [--graph chain|fan|layered] [--peer",
                MAX_RUNS);
        for (int i = 1; i < PEERS; i++)
            fprintf(stderr, "%s%s", i == 1 ? " " : "|", peers[i]->name);
        fprintf(stderr, "]\n");
        return 2;
    }
    from = options.workers > 0 ? options.workers : 1;
    to = options.workers > 0 ? options.workers : 2;
    for (int kind = 0; kind < TROUPE_BENCH_GRAPHS; kind++)
        for (int workers = from; workers <= to; workers++) {
            if (options.graph != NULL && strcmp(options.graph, troupe_bench_graph_names[kind]) != 0)
                continue;
            if (!measure((enum troupe_bench_graph_kind)kind, workers, &options)) {
                fprintf(stderr, "engine_peers: no memory\n");
                return 1;
            }
        }
    if (options.json)
        printf("]\n");
    return 0;
}
