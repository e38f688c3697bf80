/* What a firing costs when it does nothing: nanoseconds per actor of three graphs.
 *
 *     bench_engine [--format text|json] [--runs N] [--workers N]...
 *
 * chain     100,000 actors, one after the other
 * fan       1 -> 10,000 -> 1
 * layered   1,000 layers of 100 actors, each with 3 inputs from the layer before, drawn at random
 *
 * A run is one iteration of the whole graph; the first is not counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "troupe/actor.h"

#define CHAIN_LENGTH      100000
#define FAN_WIDTH         10000
#define LAYERS            1000
#define LAYER_WIDTH       100
#define LAYER_INPUTS      3
#define MAX_RUNS          1000
#define MAX_WORKER_COUNTS 8

enum graph_kind { GRAPH_CHAIN, GRAPH_FAN, GRAPH_LAYERED, GRAPH_COUNT };

static const char *const graph_names[GRAPH_COUNT] = {"chain", "fan", "layered"};

struct options {
    int runs, worker_count;
    int workers[MAX_WORKER_COUNTS];
    bool json;
};

static void check(enum troupe_status status)
{
    if (status == TROUPE_OK)
        return;
    fprintf(stderr, "bench_engine: %s\n", troupe_status_message());
    exit(1);
}

static enum troupe_status null_behave(void *context, struct troupe_firing *firing)
{
    (void)context;
    (void)firing;
    return TROUPE_OK;
}

static int add(struct troupe_stage *stage, int inputs, int outputs)
{
    struct troupe_actor_spec spec = {
        .name = "null", .input_count = inputs, .output_count = outputs, .behave = null_behave};
    int number = 0;

    check(troupe_stage_add(stage, &spec, &number));
    return number;
}

static void chain_describe(struct troupe_stage *stage)
{
    int before = add(stage, 0, 1);

    for (int i = 1; i < CHAIN_LENGTH; i++) {
        int now = add(stage, 1, 1);

        check(troupe_stage_connect(stage, before, 0, now, 0, 0));
        before = now;
    }
}

static void fan_describe(struct troupe_stage *stage)
{
    int first = add(stage, 0, 1), last = add(stage, FAN_WIDTH, 0);

    for (int i = 0; i < FAN_WIDTH; i++) {
        int now = add(stage, 1, 1);

        check(troupe_stage_connect(stage, first, 0, now, 0, 0));
        check(troupe_stage_connect(stage, now, 0, last, i, 0));
    }
}

static void layered_describe(struct troupe_stage *stage)
{
    uint32_t random = 1;

    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < LAYER_WIDTH; i++) {
            int now = add(stage, layer > 0 ? LAYER_INPUTS : 0, 1);

            for (int port = 0; layer > 0 && port < LAYER_INPUTS; port++) {
                random = random * 1664525u + 1013904223u;
                check(troupe_stage_connect(
                    stage, (layer - 1) * LAYER_WIDTH + (int)((random >> 8) % LAYER_WIDTH), 0, now,
                    port, 0));
            }
        }
    }
}

static int graph_describe(enum graph_kind kind, struct troupe_stage *stage)
{
    switch (kind) {
    case GRAPH_CHAIN:
        chain_describe(stage);
        return CHAIN_LENGTH;
    case GRAPH_FAN:
        fan_describe(stage);
        return FAN_WIDTH + 2;
    default:
        layered_describe(stage);
        return LAYERS * LAYER_WIDTH;
    }
}

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int double_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void graph_measure(enum graph_kind kind, int workers, const struct options *options,
                          bool *first)
{
    struct troupe_pool *pool = NULL;
    struct troupe_stage *stage = NULL;
    double times[MAX_RUNS];
    int actors;

    check(troupe_pool_start(workers, &pool));
    check(troupe_stage_create(1, &stage));
    actors = graph_describe(kind, stage);
    check(troupe_stage_cast(stage, pool));
    for (int run = -1; run < options->runs; run++) {
        double start = now_ns();

        troupe_stage_admit(stage, (uint64_t)run + 2);
        check(troupe_stage_wait(stage, 0));
        if (run >= 0)
            times[run] = (now_ns() - start) / actors;
    }
    troupe_stage_destroy(stage);
    troupe_pool_stop(pool);
    qsort(times, (size_t)options->runs, sizeof times[0], double_compare);
    if (options->json)
        printf("%s{\"graph\": \"%s\", \"actors\": %d, \"workers\": %d, \"runs\": %d, "
               "\"ns_per_actor\": %.1f, \"min\": %.1f, \"max\": %.1f}",
               *first ? "" : ",\n ", graph_names[kind], actors, workers, options->runs,
               times[options->runs / 2], times[0], times[options->runs - 1]);
    else
        printf("%-8s %7d actors %2d workers: %7.1f ns per actor (%.1f to %.1f in %d runs)\n",
               graph_names[kind], actors, workers, times[options->runs / 2], times[0],
               times[options->runs - 1], options->runs);
    *first = false;
}

/* The number in `text`, or -1 when it is none from 1 to `most`. */
static int number_parse(const char *text, int most)
{
    char *end;
    long value = strtol(text, &end, 10);

    return *text != '\0' && *end == '\0' && value >= 1 && value <= most ? (int)value : -1;
}

static bool options_parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        int number;

        if (strcmp(argv[i], "--format") == 0) {
            options->json = strcmp(value, "json") == 0;
            if (!options->json && strcmp(value, "text") != 0)
                return false;
        } else if (strcmp(argv[i], "--runs") == 0) {
            options->runs = number = number_parse(value, MAX_RUNS);
            if (number < 0)
                return false;
        } else if (strcmp(argv[i], "--workers") == 0) {
            number = number_parse(value, 256);
            if (number < 0 || options->worker_count == MAX_WORKER_COUNTS)
                return false;
            options->workers[options->worker_count++] = number;
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options options = {.runs = 9};
    bool first = true;

    if (!options_parse(argc, argv, &options)) {
        fprintf(stderr,
                "usage: bench_engine [--format text|json] [--runs 1..%d] [--workers N]...\n",
                MAX_RUNS);
        return 2;
    }
    if (options.worker_count == 0) {
        options.worker_count = 2;
        options.workers[0] = 1;
        options.workers[1] = 2;
    }
    if (options.json)
        printf("[");
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        for (int i = 0; i < options.worker_count; i++)
            graph_measure((enum graph_kind)kind, options.workers[i], &options, &first);
    if (options.json)
        printf("]\n");
    return 0;
}
