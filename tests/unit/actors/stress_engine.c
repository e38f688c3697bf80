/* Random layered graphs with edges of distance 0 to 3, on pools of 1 to 4 workers, against a
 * sequential evaluation. A plain program, so that it runs under ThreadSanitizer.
 *
 *     stress_engine [SEED [GRAPHS]]
 *
 * Every actor mixes the numbers of its inputs, the iteration and its own number into one number;
 * all are added up per iteration. Some actors complete later, from another thread or from the
 * pool's poll function. A last run of each graph fails in some firings: it must end, with the
 * failure, and leave no payload. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actors/actors.h"

enum mode { MODE_THREAD, MODE_POLL, MODE_FAIL };

#define MAX_ACTORS     200
#define MAX_INPUTS     4
#define MAX_ITERATIONS 48

struct number {
    struct troupe_payload payload;
    uint64_t value;
};

struct input {
    int from, distance;
    bool signal;
};

struct node {
    struct graph *graph;
    int id, input_count;
    bool defers;
    struct input inputs[MAX_INPUTS];
};

struct graph {
    int count, iterations;
    bool fails; /* some firings */
    struct node nodes[MAX_ACTORS];
    _Atomic(uint64_t) sums[MAX_ITERATIONS];
    uint64_t expected[MAX_ITERATIONS];
    uint64_t values[MAX_ITERATIONS][MAX_ACTORS];
};

/* Firings that the other thread completes. */
struct later {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct troupe_firing *firings[MAX_ACTORS * MAX_ITERATIONS];
    uint64_t values[MAX_ACTORS * MAX_ITERATIONS];
    int count;
    bool polled; /* the pool's poll function completes them, not the thread */
    bool stop;
};

static struct later later = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER};
static _Atomic(int64_t) live_numbers, polls_pending;
static _Atomic(bool) later_fails;
static uint64_t state;

static uint64_t mix(uint64_t value)
{
    value ^= value >> 30;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    value ^= value >> 27;
    value *= UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static int pick(int below)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    return (int)(mix(state) % (uint64_t)below);
}

static void number_destroy(struct troupe_payload *payload)
{
    atomic_fetch_sub_explicit(&live_numbers, 1, memory_order_seq_cst);
    free(payload);
}

static struct troupe_payload *number_create(uint64_t value)
{
    struct number *number = malloc(sizeof *number);

    if (number == NULL)
        abort();
    troupe_payload_init(&number->payload, number_destroy);
    number->value = value;
    atomic_fetch_add_explicit(&live_numbers, 1, memory_order_seq_cst);
    return &number->payload;
}

static enum troupe_status node_behave(void *context, struct troupe_firing *firing)
{
    struct node *node = context;
    struct troupe_payload *const *inputs = troupe_firing_inputs(firing);
    uint64_t iteration = troupe_firing_iteration(firing);
    uint64_t value = mix((uint64_t)node->id * 1000003 + iteration);
    int port = 0;

    for (int i = 0; i < node->input_count; i++) {
        const struct number *number;

        if (node->inputs[i].signal)
            continue;
        number = (const struct number *)inputs[port++];
        value = mix(value * 31 + (number != NULL ? number->value : 7));
    }
    /* Relaxed: read after the wait. */
    atomic_fetch_add_explicit(&node->graph->sums[iteration], value, memory_order_relaxed);
    if (node->graph->fails && value % 64 == 0)
        return troupe_status_fail(TROUPE_ABORTED, "failed in iteration %d", (int)iteration);
    if (!node->defers) {
        troupe_firing_outputs(firing)[0] = number_create(value);
        return TROUPE_OK;
    }
    pthread_mutex_lock(&later.lock);
    later.firings[later.count] = troupe_firing_defer(firing);
    later.values[later.count++] = value;
    if (later.polled)
        atomic_fetch_add_explicit(&polls_pending, 1, memory_order_seq_cst);
    pthread_cond_signal(&later.changed);
    pthread_mutex_unlock(&later.lock);
    return TROUPE_OK;
}

/* Completes the newest firing; gives the lock away meanwhile. */
static void later_complete_locked(void)
{
    struct troupe_firing *firing = later.firings[--later.count];
    uint64_t value = later.values[later.count];
    struct troupe_payload *output;

    pthread_mutex_unlock(&later.lock);
    if (value % 8 == 0 && atomic_load_explicit(&later_fails, memory_order_seq_cst)) {
        troupe_firing_complete(firing, TROUPE_UNAVAILABLE, "failed later", NULL);
    } else {
        output = number_create(value);
        troupe_firing_complete(firing, TROUPE_OK, NULL, &output);
    }
    pthread_mutex_lock(&later.lock);
}

static void *later_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&later.lock);
    for (;;) {
        while ((later.count == 0 || later.polled) && !later.stop)
            pthread_cond_wait(&later.changed, &later.lock);
        if (later.stop)
            break;
        later_complete_locked();
    }
    pthread_mutex_unlock(&later.lock);
    return NULL;
}

static int later_poll(void *unused)
{
    int events = 0;

    (void)unused;
    pthread_mutex_lock(&later.lock);
    while (later.polled && later.count > 0) {
        atomic_fetch_sub_explicit(&polls_pending, 1, memory_order_seq_cst);
        later_complete_locked();
        events++;
    }
    pthread_mutex_unlock(&later.lock);
    return events;
}

static void graph_random(struct graph *graph)
{
    memset(graph, 0, sizeof *graph);
    graph->count = 2 + pick(MAX_ACTORS - 2);
    graph->iterations = 1 + pick(MAX_ITERATIONS);
    for (int i = 0; i < graph->count; i++) {
        struct node *node = &graph->nodes[i];

        node->graph = graph;
        node->id = i;
        node->defers = pick(12) == 0;
        node->input_count = pick(MAX_INPUTS + 1);
        for (int k = 0; k < node->input_count; k++) {
            struct input *input = &node->inputs[k];

            input->distance = pick(4) == 0 || i == 0 ? 1 + pick(3) : 0;
            /* Nearby actors mostly, so that graphs have depth. */
            if (input->distance > 0)
                input->from = pick(graph->count);
            else
                input->from = pick(2) == 0 ? pick(i) : i - 1 - pick(i < 8 ? i : 8);
            input->signal = pick(5) == 0;
        }
    }
}

static void graph_evaluate(struct graph *graph)
{
    for (int iteration = 0; iteration < graph->iterations; iteration++) {
        for (int i = 0; i < graph->count; i++) {
            const struct node *node = &graph->nodes[i];
            uint64_t value = mix((uint64_t)i * 1000003 + (uint64_t)iteration);

            for (int k = 0; k < node->input_count; k++) {
                const struct input *input = &node->inputs[k];
                int from = iteration - input->distance;

                if (!input->signal)
                    value = mix(value * 31 + (from >= 0 ? graph->values[from][input->from] : 7));
            }
            graph->values[iteration][i] = value;
            graph->expected[iteration] += value;
        }
    }
}

static void check(enum troupe_status status)
{
    if (status == TROUPE_OK)
        return;
    fprintf(stderr, "stress_engine: %s\n", troupe_status_message());
    exit(1);
}

static struct troupe_stage *graph_cast(struct graph *graph, struct troupe_pool *pool, int window)
{
    struct troupe_stage *stage;

    check(troupe_stage_create(window, &stage));
    for (int i = 0; i < graph->count; i++) {
        struct troupe_actor_spec spec = {.name = "node",
                                         .output_count = 1,
                                         .behave = node_behave,
                                         .context = &graph->nodes[i],
                                         .priority = i % 5};
        int number;

        for (int k = 0; k < graph->nodes[i].input_count; k++)
            spec.input_count += !graph->nodes[i].inputs[k].signal;
        check(troupe_stage_add(stage, &spec, &number));
    }
    for (int i = 0; i < graph->count; i++) {
        int port = 0;

        for (int k = 0; k < graph->nodes[i].input_count; k++) {
            const struct input *input = &graph->nodes[i].inputs[k];

            check(troupe_stage_connect(stage, input->from, input->signal ? -1 : 0, i,
                                       input->signal ? -1 : port++, input->distance));
        }
    }
    check(troupe_stage_cast(stage, pool));
    return stage;
}

static struct troupe_pool *pool_create(int workers, enum mode mode)
{
    struct troupe_pool_options options = {.workers = workers};
    struct troupe_pool *pool;

    if (mode == MODE_POLL) {
        options.poll = later_poll;
        options.poll_pending = &polls_pending;
        options.poll_on_worker0_only = workers == 3;
    }
    check(troupe_pool_create(&options, &pool));
    return pool;
}

/* True when the sums are right, or the failure was reported. */
static bool graph_ended_well(struct graph *graph, enum mode mode, enum troupe_status status)
{
    int wrong = 0;

    if (mode == MODE_FAIL)
        return status == TROUPE_OK || status == TROUPE_ABORTED || status == TROUPE_UNAVAILABLE;
    check(status);
    for (int i = 0; i < graph->iterations; i++)
        wrong += atomic_load_explicit(&graph->sums[i], memory_order_seq_cst) != graph->expected[i];
    if (wrong > 0)
        fprintf(stderr, "stress_engine: %d of %d iterations are wrong\n", wrong, graph->iterations);
    return wrong == 0;
}

static bool graph_run(struct graph *graph, int workers, int window, enum mode mode)
{
    struct troupe_pool *pool = pool_create(workers, mode);
    struct troupe_stage *stage = graph_cast(graph, pool, window);
    enum troupe_status status;

    for (int i = 0; i < MAX_ITERATIONS; i++)
        atomic_store_explicit(&graph->sums[i], 0, memory_order_seq_cst);
    graph->fails = mode == MODE_FAIL;
    atomic_store_explicit(&later_fails, mode == MODE_FAIL, memory_order_seq_cst);
    pthread_mutex_lock(&later.lock);
    later.polled = mode == MODE_POLL;
    pthread_mutex_unlock(&later.lock);
    /* Half first, the rest while it runs. */
    troupe_stage_admit(stage, (uint64_t)graph->iterations / 2);
    troupe_stage_admit(stage, (uint64_t)graph->iterations);
    status = troupe_stage_wait(stage, 0);
    troupe_stage_destroy(stage);
    troupe_pool_destroy(pool);
    return graph_ended_well(graph, mode, status);
}

static bool graph_test(struct graph *graph, uint64_t seed, int number)
{
    int window;

    state = mix(seed + (uint64_t)number * 977);
    graph_random(graph);
    graph_evaluate(graph);
    window = 1 + pick(8);
    for (int workers = 1; workers <= 4; workers++) {
        for (int mode = MODE_THREAD; mode <= MODE_FAIL; mode++) {
            if (graph_run(graph, workers, window, (enum mode)mode))
                continue;
            fprintf(stderr,
                    "stress_engine: seed %llu, graph %d, %d workers, window %d, mode %d: wrong\n",
                    (unsigned long long)seed, number, workers, window, mode);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int graphs = argc > 2 ? atoi(argv[2]) : 12;
    struct graph *graph = malloc(sizeof *graph);
    bool good = true;
    pthread_t thread;

    if (graph == NULL || pthread_create(&thread, NULL, later_main, NULL) != 0)
        return 1;
    for (int i = 0; i < graphs && good; i++)
        good = graph_test(graph, seed, i);
    pthread_mutex_lock(&later.lock);
    later.stop = true;
    pthread_cond_signal(&later.changed);
    pthread_mutex_unlock(&later.lock);
    pthread_join(thread, NULL);
    free(graph);
    if (atomic_load_explicit(&live_numbers, memory_order_seq_cst) != 0) {
        fprintf(stderr, "stress_engine: %lld payloads were not released\n",
                (long long)atomic_load_explicit(&live_numbers, memory_order_seq_cst));
        return 1;
    }
    return good ? 0 : 1;
}
