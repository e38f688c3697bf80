/* A cast plan's steps do not allocate: tensors come from the caches of their size classes, and all
 * that the graph's machinery needs is laid out when it is cast. A plain program: it counts what its
 * own allocator is asked for.
 *
 * A call that runs steps allocates a request and what it returns; what is asserted there is that
 * it allocates no more for many steps than for few. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "ranks.h"
#include "troupe/actor.h"

#define STEPS 1000

/* ---- The engine alone: scalars through actors, and through a loop ---- */

static enum troupe_status send_scalar(struct troupe_firing *firing, int port, float value)
{
    struct troupe_tensor *tensor;
    enum troupe_status status = troupe_tensor_from_data(TROUPE_FLOAT32, 0, NULL, &value, &tensor);
    if (status == TROUPE_OK)
        troupe_firing_outputs(firing)[port] = troupe_tensor_payload(tensor);
    return status;
}

static float input_value(struct troupe_firing *firing, int port)
{
    struct troupe_tensor *tensor = troupe_tensor_of_payload(troupe_firing_inputs(firing)[port]);
    float value;
    memcpy(&value, troupe_tensor_data(tensor), sizeof(value));
    return value;
}

/* Sends the sum of its `*context` inputs, or 1 without. */
static enum troupe_status sum(void *context, struct troupe_firing *firing)
{
    const int *inputs = context;
    float total = *inputs == 0;
    for (int i = 0; i < *inputs; i++)
        total += input_value(firing, i);
    return send_scalar(firing, 0, total);
}

/* A loop's body: adds 1 until it is 10. Output 0 goes on to the next iteration, output 1 out. */
static enum troupe_status count_up(void *context, struct troupe_firing *firing)
{
    (void)context;
    float value = input_value(firing, 0) + 1;
    bool is_last = value >= 10;
    if (!is_last)
        troupe_firing_continue(firing);
    troupe_firing_outputs(firing)[!is_last] = &troupe_payload_dead;
    return send_scalar(firing, is_last, value);
}

static enum troupe_status keep(void *context, struct troupe_firing *firing)
{
    *(float *)context = input_value(firing, 0);
    return TROUPE_OK;
}

static int add_actor(struct troupe_stage *stage, troupe_behaviour_fn *behave, void *context,
                     int inputs, int outputs)
{
    struct troupe_actor_spec spec = {.name = "actor",
                                     .input_count = inputs,
                                     .output_count = outputs,
                                     .behave = behave,
                                     .context = context};
    int number;
    CHECK(troupe_stage_add(stage, &spec, &number) == TROUPE_OK);
    return number;
}

static void join(struct troupe_stage *stage, int from, int from_port, int to, int to_port)
{
    CHECK(troupe_stage_connect(stage, from, from_port, to, to_port, 0) == TROUPE_OK);
}

static struct troupe_stage *loop_of(int window, struct troupe_pool *pool)
{
    struct troupe_stage *body;
    int result;
    CHECK(troupe_stage_create_frame(window, 1, 1, &body) == TROUPE_OK);
    int counter = add_actor(body, count_up, NULL, 1, 2);
    CHECK(troupe_stage_add_result(body, "result", 0, &result) == TROUPE_OK);
    CHECK(troupe_stage_connect_loop(body, counter, 0, counter, 0, 0) == TROUPE_OK);
    join(body, counter, 1, result, 0);
    CHECK(troupe_stage_cast(body, pool) == TROUPE_OK);
    return body;
}

#define WIDTH 100

/* A source, a fan of sums, their sum, a loop that counts on from one of them, and what keeps both.
 */
static struct troupe_stage *stage_of(int window, struct troupe_stage *body,
                                     struct troupe_pool *pool, float kept[2])
{
    static int none = 0, one = 1, width = WIDTH;
    struct troupe_stage *stage;
    CHECK(troupe_stage_create(window, &stage) == TROUPE_OK);
    int source = add_actor(stage, sum, &none, 0, 1),
        total = add_actor(stage, sum, &width, WIDTH, 1);
    for (int i = 0; i < WIDTH; i++) {
        int middle = add_actor(stage, sum, &one, 1, 1);
        join(stage, source, 0, middle, 0);
        join(stage, middle, 0, total, i);
    }
    struct troupe_frame_spec loop = {.name = "loop", .body = body, .ticket = -1};
    int frame;
    CHECK(troupe_stage_add_frame(stage, &loop, &frame) == TROUPE_OK);
    join(stage, source, 0, frame, 0);
    join(stage, total, 0, add_actor(stage, keep, &kept[0], 1, 0), 0);
    join(stage, frame, 0, add_actor(stage, keep, &kept[1], 1, 0), 0);
    CHECK(troupe_stage_cast(stage, pool) == TROUPE_OK);
    return stage;
}

static void run_stage(struct troupe_stage *stage, uint64_t iterations)
{
    troupe_stage_admit(stage, troupe_stage_admitted(stage) + iterations);
    CHECK(troupe_stage_wait(stage, 0) == TROUPE_OK);
}

static void expect(const char *what, int64_t allocations, int64_t most)
{
    printf("%s: %lld allocations\n", what, (long long)allocations);
    if (allocations > most)
        allocations_explain();
    CHECK(allocations <= most);
}

/* With several workers a tensor is freed by another thread than the one that made it, and how many
 * free ones lie in the threads' caches, which hold 64 each, depends on who ran what. */
static void stage_does_not_allocate(int workers, int window)
{
    struct troupe_pool *pool;
    float kept[2] = {0};
    char what[64];
    CHECK(troupe_pool_start(workers, &pool) == TROUPE_OK);
    struct troupe_stage *body = loop_of(window, pool);
    struct troupe_stage *stage = stage_of(window, body, pool, kept);
    run_stage(stage, STEPS);
    allocations_start();
    run_stage(stage, STEPS);
    int64_t allocations = allocations_stop();
    CHECK(kept[0] == WIDTH && kept[1] == 10);
    snprintf(what, sizeof(what), "stage, %d workers, window %d", workers, window);
    expect(what, allocations, workers == 1 ? 0 : 2 * 64 * workers);
    troupe_stage_destroy(stage);
    troupe_stage_destroy(body);
    troupe_pool_stop(pool);
}

/* ---- Sessions ---- */

/* Allocations of `steps` steps of a plan that has run before. */
static int64_t of_run(struct troupe_session *session, struct troupe_run *run, int64_t steps)
{
    struct troupe_tensor *fetched = NULL;
    int64_t done = 0;
    run->steps = steps;
    allocations_start();
    enum troupe_status status = troupe_session_run(session, run, &fetched, &done);
    int64_t allocations = allocations_stop();
    CHECK(status == TROUPE_OK && done == steps);
    troupe_tensor_unref(fetched);
    return allocations;
}

/* One more step allocates nothing: a call of many steps allocates what one of few does. */
static void steps_do_not_allocate(struct troupe_session *session, struct troupe_run *run,
                                  const char *what)
{
    (void)of_run(session, run, STEPS);
    int64_t few = of_run(session, run, 10);
    printf("%s, 10 steps: %lld allocations\n", what, (long long)few);
    expect(what, of_run(session, run, 10 + STEPS), few);
}

static const char scale[] =
    "{\"node\": ["
    "{\"name\": \"x\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": \"float32\", \"shape\": []}},"
    "{\"name\": \"two\", \"op\": \"Const\", \"attr\": {\"value\": 2.0}},"
    "{\"name\": \"y\", \"op\": \"Mul\", \"input\": [\"x\", \"two\"]}]}";

/* A call of one step with a feed and a fetch: what it allocates is the same every time, and little.
 */
#define MOST_PER_CALL 16

static void feed_and_fetch(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    const float three = 3;
    struct troupe_tensor *fed;
    const char *feed = "x", *fetch = "y";
    CHECK(troupe_tensor_from_data(TROUPE_FLOAT32, 0, NULL, &three, &fed) == TROUPE_OK);
    struct troupe_run run = {
        .feeds = &feed, .feed_values = &fed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
    steps_do_not_allocate(session, &run, "feed and fetch");
    int64_t once = of_run(session, &run, 1), most = once;
    for (int i = 0; i < STEPS; i++) {
        int64_t again = of_run(session, &run, 1);
        most = again > most ? again : most;
    }
    expect("a call of one step", most, MOST_PER_CALL);
    CHECK(most == once);
    troupe_tensor_unref(fed);
}

static char *text_of_file(const char *path)
{
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    char *text = calloc(1, 1 << 20);
    CHECK(text != NULL && fread(text, 1, (1 << 20) - 1, file) > 0 && feof(file));
    fclose(file);
    return text;
}

static void train(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    const char *target = "train", *fetch = "loss";
    struct troupe_run run = {
        .targets = &target, .target_count = 1, .fetches = &fetch, .fetch_count = 1};
    steps_do_not_allocate(session, &run, "train");
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int workers = 1; workers <= 2; workers++)
        for (int window = 1; window <= 4; window += 3)
            stage_does_not_allocate(workers, window);
    ranks_run(1, 1, scale, NULL, false, feed_and_fetch);
    CHECK(argc == 2);
    char *graph = text_of_file(argv[1]);
    ranks_run(1, 1, graph, NULL, false, train);
    free(graph);
    return 0;
}
