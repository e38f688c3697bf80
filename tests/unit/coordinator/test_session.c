/* Sessions on 1 to 4 ranks that are threads: a plain program, so that ThreadSanitizer can run it.
 * Every case runs with 1 and 2 workers a rank. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/run.h"
#include "coordinator/wire.h"
#include "ranks.h"
#include "troupe/tensor.h"

static float scalar(const struct troupe_tensor *tensor)
{
    float value;
    CHECK(troupe_tensor_bytes(tensor) == sizeof(value));
    memcpy(&value, troupe_tensor_data(tensor), sizeof(value));
    return value;
}

/* y = (x + 1) * 2 with the two ops on two ranks; x is fed. */
static const char two_ranks[] =
    "{\"node\": ["
    "{\"name\": \"x\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": \"float32\", \"shape\": []}},"
    "{\"name\": \"one\", \"op\": \"Const\", \"attr\": {\"value\": 1.0}},"
    "{\"name\": \"two\", \"op\": \"Const\", \"attr\": {\"value\": 2.0}},"
    "{\"name\": \"a\", \"op\": \"Add\", \"input\": [\"x\", \"one\"],"
    " \"device\": \"/job:worker/task:1\"},"
    "{\"name\": \"y\", \"op\": \"Mul\", \"input\": [\"a\", \"two\"],"
    " \"device\": \"/job:worker/task:0\"}]}";

static struct troupe_run run_of(const char *const *feeds, struct troupe_tensor *const *values,
                                int feed_count, const char *const *fetches, int64_t steps)
{
    return (struct troupe_run){.feeds = feeds,
                               .feed_values = values,
                               .feed_count = feed_count,
                               .fetches = fetches,
                               .fetch_count = 1,
                               .steps = steps};
}

static void feed_and_fetch(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK);
    const char *feed = "x", *fetch = "y";
    for (int i = 0; i < 50; i++) {
        float x = (float)i;
        struct troupe_tensor *value, *y = NULL;
        CHECK(troupe_tensor_from_data(TROUPE_FLOAT32, 0, NULL, &x, &value) == TROUPE_OK);
        struct troupe_run run = run_of(&feed, &value, 1, &fetch, 1);
        int64_t done;
        CHECK(troupe_session_run(session, &run, &y, &done) == TROUPE_OK);
        CHECK(done == 1);
        if (rank == 0)
            CHECK(fabsf(scalar(y) - 2 * (x + 1)) < 1e-6f);
        troupe_tensor_unref(y);
        troupe_tensor_unref(value);
    }
}

/* A counter on the last rank: a loop of many steps reads what the step before wrote. */
static const char counter[] =
    "{\"node\": ["
    "{\"name\": \"zero\", \"op\": \"Const\", \"attr\": {\"value\": 0.0}},"
    "{\"name\": \"one\", \"op\": \"Const\", \"attr\": {\"value\": 1.0}},"
    "{\"name\": \"c\", \"op\": \"Variable\", \"attr\": {\"dtype\": \"float32\", \"shape\": [],"
    " \"initializer\": \"zero\"}, \"device\": \"/job:worker/task:%d\"},"
    "{\"name\": \"next\", \"op\": \"AssignAdd\", \"input\": [\"c\", \"one\"]},"
    "{\"name\": \"y\", \"op\": \"Mul\", \"input\": [\"c\", \"one\"],"
    " \"device\": \"/job:worker/task:0\"}]}";

static int64_t steps_seen;

static void count_step(void *context, int64_t step, struct troupe_tensor *const *fetched)
{
    (void)context;
    CHECK(step == steps_seen);
    CHECK(fabsf(scalar(fetched[0]) - (float)step) < 1e-6f);
    steps_seen++;
}

static void loop_in_order(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    const char *fetch = "y", *target = "next";
    struct troupe_run run = run_of(NULL, NULL, 0, &fetch, 500);
    run.targets = &target;
    run.target_count = 1;
    run.on_step = count_step;
    steps_seen = 0;
    struct troupe_tensor *y;
    int64_t done;
    CHECK(troupe_session_run(session, &run, &y, &done) == TROUPE_OK);
    CHECK(done == 500 && steps_seen == 500);
    CHECK(fabsf(scalar(y) - 499) < 1e-6f);
    troupe_tensor_unref(y);
}

/* Fails on rank 1 in the step in which the counter reaches 20; rank 0 waits for rank 1's value. */
static const char failing[] =
    "{\"node\": ["
    "{\"name\": \"zero\", \"op\": \"Const\", \"attr\": {\"value\": 0.0}},"
    "{\"name\": \"one\", \"op\": \"Const\", \"attr\": {\"value\": 1.0}},"
    "{\"name\": \"limit\", \"op\": \"Const\", \"attr\": {\"value\": 20.0}},"
    "{\"name\": \"c\", \"op\": \"Variable\", \"attr\": {\"dtype\": \"float32\", \"shape\": [],"
    " \"initializer\": \"zero\"}, \"device\": \"/job:worker/task:1\"},"
    "{\"name\": \"next\", \"op\": \"AssignAdd\", \"input\": [\"c\", \"one\"]},"
    "{\"name\": \"small\", \"op\": \"Less\", \"input\": [\"c\", \"limit\"],"
    " \"device\": \"/job:worker/task:1\"},"
    "{\"name\": \"guard\", \"op\": \"Assert\", \"input\": [\"small\", \"c\"],"
    " \"device\": \"/job:worker/task:1\"},"
    "{\"name\": \"z\", \"op\": \"Mul\", \"input\": [\"c\", \"one\", \"^guard\"],"
    " \"device\": \"/job:worker/task:1\"},"
    "{\"name\": \"y\", \"op\": \"Mul\", \"input\": [\"z\", \"one\"],"
    " \"device\": \"/job:worker/task:0\"}]}";

static void failure_everywhere(int rank, struct troupe_session *session, enum troupe_status opened)
{
    (void)rank;
    CHECK(opened == TROUPE_OK);
    const char *fetch = "y", *target = "next";
    struct troupe_run run = run_of(NULL, NULL, 0, &fetch, 100);
    run.targets = &target;
    run.target_count = 1;
    struct troupe_tensor *y = NULL;
    int64_t done = -1;
    CHECK(troupe_session_run(session, &run, &y, &done) == TROUPE_FAILED_PRECONDITION);
    CHECK(done == 20 && !y);
    CHECK(strstr(troupe_status_message(), "node \"guard\""));
    CHECK(strstr(troupe_status_message(), "on rank 1, device CPU:0"));
    /* The session goes on: other plans run. */
    const char *other = "one";
    run = run_of(NULL, NULL, 0, &other, 3);
    CHECK(troupe_session_run(session, &run, &y, &done) == TROUPE_OK);
    CHECK(done == 3);
    troupe_tensor_unref(y);
}

static void bad_graph(int rank, struct troupe_session *session, enum troupe_status opened)
{
    (void)rank;
    CHECK(opened == TROUPE_INVALID_ARGUMENT && !session);
    CHECK(strstr(troupe_status_message(), "did you mean \"MatMul\"?"));
}

static void unknown_fetch(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    const char *fetch = "yy";
    struct troupe_run run = run_of(NULL, NULL, 0, &fetch, 1);
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_NOT_FOUND);
    fetch = "y"; /* the placeholder is not fed */
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_FAILED_PRECONDITION);
    feed_and_fetch(rank, session, opened);
}

static void stopped(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    const char *fetch = "y", *target = "next";
    struct troupe_run run = run_of(NULL, NULL, 0, &fetch, 0);
    run.targets = &target;
    run.target_count = 1;
    troupe_session_stop(session);
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_CANCELLED);
}

/* Ranks that do not call the same are told so; nobody waits for ever. */
static void different_calls(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK);
    const char *fetch = rank == 1 ? "two" : "one";
    struct troupe_run run = run_of(NULL, NULL, 0, &fetch, 1);
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_INVALID_ARGUMENT);
    CHECK(strstr(troupe_status_message(), "rank 1 asks for another run than rank 0"));
    fetch = "one";
    run = run_of(NULL, NULL, 0, &fetch, rank == 1 ? 3 : 2); /* another number of steps */
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_INVALID_ARGUMENT);
    fetch = rank == 0 ? "one" : "nothing";
    run = run_of(NULL, NULL, 0, &fetch, 1);
    CHECK(troupe_session_run(session, &run, NULL, NULL) != TROUPE_OK);
}

/* A wrong feed is known to rank 0 alone, and is every rank's failure. */
static void wrong_feed(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK);
    const char *feed = "x", *fetch = "y";
    int64_t dims[] = {2};
    float data[] = {1, 2};
    struct troupe_tensor *value;
    CHECK(troupe_tensor_from_data(TROUPE_FLOAT32, 1, dims, data, &value) == TROUPE_OK);
    struct troupe_run run = run_of(&feed, &value, 1, &fetch, 1);
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_INVALID_ARGUMENT);
    CHECK(strstr(troupe_status_message(), "wants shape [], got [2]"));
    troupe_tensor_unref(value);
    feed_and_fetch(rank, session, opened);
}

/* A stop ends one run, not the session. */
static void stopped_once(int rank, struct troupe_session *session, enum troupe_status opened)
{
    stopped(rank, session, opened);
    const char *fetch = "one";
    struct troupe_run run = run_of(NULL, NULL, 0, &fetch, 5);
    struct troupe_tensor *value;
    int64_t done;
    CHECK(troupe_session_run(session, &run, &value, &done) == TROUPE_OK);
    CHECK(done == 5);
    troupe_tensor_unref(value);
}

/* Waiting for a session from inside one of its actors is refused, not waited for. */
static void run_inside_step(void *context, int64_t step, struct troupe_tensor *const *fetched)
{
    (void)step;
    (void)fetched;
    const char *fetch = "one";
    struct troupe_run run = run_of(NULL, NULL, 0, &fetch, 1);
    CHECK(troupe_session_run(context, &run, NULL, NULL) == TROUPE_FAILED_PRECONDITION);
    CHECK(strstr(troupe_status_message(), "from inside an actor"));
}

static void run_inside(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    const char *fetch = "one";
    struct troupe_run run = run_of(NULL, NULL, 0, &fetch, 3);
    run.on_step = run_inside_step;
    run.on_step_context = session;
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_OK);
}

/* Messages that no rank sends: cut short, or with numbers that mean nothing. */
static void malformed_letters(int rank, struct troupe_session *session, enum troupe_status opened)
{
    (void)rank;
    CHECK(opened == TROUPE_OK);
    struct troupe_run_failure failure = {0};
    struct troupe_text text;
    troupe_text_init(&text);
    for (int i = 0; i < 4; i++) /* is set, iteration, rank 0, status 2^40 */
        troupe_wire_put_u64(&text, i == 0 ? 1 : i == 3 ? UINT64_C(1) << 40 : 0);
    troupe_wire_put_string(&text, "no such status");
    CHECK(troupe_run_failure_read(text.data, text.length, session, &failure) == TROUPE_DATA_LOSS);
    CHECK(troupe_run_failure_read(text.data, 20, session, &failure) == TROUPE_DATA_LOSS);
    CHECK(!failure.is_set);
    troupe_text_fini(&text);
    troupe_text_init(&text);
    for (int i = 0; i < 4; i++) /* a rank that is not there */
        troupe_wire_put_u64(&text, i == 2 ? 99 : 1);
    troupe_wire_put_string(&text, "no such rank");
    CHECK(troupe_run_failure_read(text.data, text.length, session, &failure) == TROUPE_DATA_LOSS);
    CHECK(!failure.is_set);
    troupe_text_fini(&text);
}

int main(void)
{
    char graph[2048];
    for (int workers = 1; workers <= 2; workers++) {
        ranks_run(2, workers, two_ranks, NULL, false, feed_and_fetch);
        ranks_run(3, workers, two_ranks, NULL, true, feed_and_fetch);
        for (int ranks = 1; ranks <= 4; ranks++) {
            snprintf(graph, sizeof(graph), counter, ranks - 1);
            ranks_run(ranks, workers, graph, NULL, false, loop_in_order);
            ranks_run(ranks, workers, graph, NULL, false, stopped_once);
        }
        for (int repeat = 0; repeat < 10; repeat++) {
            ranks_run(2, workers, failing, NULL, false, failure_everywhere);
            ranks_run(4, workers, failing, NULL, true, failure_everywhere);
        }
        ranks_run(3, workers, "{\"node\": [{\"name\": \"y\", \"op\": \"Matmul\"}]}", NULL, false,
                  bad_graph);
        ranks_run(2, workers, two_ranks, NULL, false, unknown_fetch);
        ranks_run(2, workers, two_ranks, NULL, false, run_inside);
        ranks_run(3, workers, two_ranks, NULL, true, different_calls);
        ranks_run(3, workers, two_ranks, NULL, true, wrong_feed);
        ranks_run(2, workers, two_ranks, NULL, true, malformed_letters);
    }
    puts("sessions on 1 to 4 ranks: ok");
    return 0;
}
