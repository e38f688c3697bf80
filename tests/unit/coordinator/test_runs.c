/* Runs beside one another, and how they end: cancelled, out of time, stopped, closed upon, stalled,
 * deadlocked; on 1 to 4 ranks that are threads. A plain program, so that ThreadSanitizer can run
 * it. No time is asserted: what should end and does not ends with the test's time limit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/run.h"
#include "ranks.h"
#include "troupe/tensor.h"

static float scalar(const struct troupe_tensor *tensor)
{
    float value;
    CHECK(troupe_tensor_bytes(tensor) == sizeof(value));
    memcpy(&value, troupe_tensor_data(tensor), sizeof(value));
    return value;
}

static void nap(int milliseconds)
{
    struct timespec time = {.tv_nsec = milliseconds * 1000000L};
    (void)nanosleep(&time, NULL);
}

/* A variable on the last rank (%d) with two updates; y reads it through rank 0. */
static const char counter[] =
    "{\"node\": ["
    "{\"name\": \"zero\", \"op\": \"Const\", \"attr\": {\"value\": 0.0}},"
    "{\"name\": \"one\", \"op\": \"Const\", \"attr\": {\"value\": 1.0}},"
    "{\"name\": \"two\", \"op\": \"Const\", \"attr\": {\"value\": 2.0}},"
    "{\"name\": \"c\", \"op\": \"Variable\", \"attr\": {\"dtype\": \"float32\", \"shape\": [],"
    " \"initializer\": \"zero\"}, \"device\": \"/job:worker/task:%d\"},"
    "{\"name\": \"start\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": \"float32\","
    " \"shape\": []}},"
    "{\"name\": \"reset\", \"op\": \"Assign\", \"input\": [\"c\", \"start\"]},"
    "{\"name\": \"limit\", \"op\": \"Const\", \"attr\": {\"value\": 15.0}},"
    "{\"name\": \"enough\", \"op\": \"GreaterEqual\", \"input\": [\"y\", \"limit\"]},"
    "{\"name\": \"add_one\", \"op\": \"AssignAdd\", \"input\": [\"c\", \"one\"]},"
    "{\"name\": \"add_two\", \"op\": \"AssignAdd\", \"input\": [\"c\", \"two\"]},"
    "{\"name\": \"y\", \"op\": \"Mul\", \"input\": [\"c\", \"one\"],"
    " \"device\": \"/job:worker/task:0\"}]}";

static const char *counter_on(int rank)
{
    static char text[2048];
    snprintf(text, sizeof(text), counter, rank);
    return text;
}

static const char *const fetch_y[] = {"y"}, *const fetch_one[] = {"one"};
static const char *const add_one[] = {"add_one"}, *const add_two[] = {"add_two"};

static struct troupe_run run_of(const char *const *fetches, const char *const *targets,
                                int64_t steps)
{
    return (struct troupe_run){.fetches = fetches,
                               .fetch_count = fetches != NULL,
                               .targets = targets,
                               .target_count = targets != NULL,
                               .steps = steps};
}

static float value_of(struct troupe_session *session)
{
    struct troupe_run run = run_of(fetch_y, NULL, 1);
    struct troupe_tensor *y = NULL;
    CHECK(troupe_session_run(session, &run, &y, NULL) == TROUPE_OK);
    float value = y ? scalar(y) : 0;
    troupe_tensor_unref(y);
    return value;
}

/* ---- Beside one another ---- */

struct updater {
    pthread_t thread;
    struct troupe_session *session;
    const char *const *target;
    int runs;
    int64_t steps;
};

static void *update(void *argument)
{
    struct updater *updater = argument;
    for (int i = 0; i < updater->runs; i++) {
        struct troupe_run run = run_of(NULL, updater->target, updater->steps);
        int64_t done = 0;
        CHECK(troupe_session_run(updater->session, &run, NULL, &done) == TROUPE_OK);
        CHECK(done == updater->steps);
    }
    return NULL;
}

/* Two plans and two threads of each, on one variable: no update is lost. */
static void several_threads(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    struct updater updaters[4];
    for (int i = 0; i < 4; i++) {
        updaters[i] = (struct updater){
            .session = session, .target = i % 2 ? add_two : add_one, .runs = 10, .steps = 20};
        CHECK(pthread_create(&updaters[i].thread, NULL, update, &updaters[i]) == 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(updaters[i].thread, NULL);
    CHECK(fabsf(value_of(session) - 2 * 10 * 20 * (1 + 2)) < 0.5f);
}

/* Several runs of one thread, of the same plan and of another one; every rank starts them in the
 * same order. */
static void several_requests(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK);
    enum { COUNT = 6 };
    struct troupe_request *requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct troupe_run run = run_of(NULL, i % 3 ? add_one : add_two, 50);
        CHECK(troupe_session_start(session, &run, &requests[i]) == TROUPE_OK);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        int64_t done = 0;
        CHECK(troupe_request_wait(requests[i], NULL, &done) == TROUPE_OK);
        CHECK(done == 50 && troupe_request_test(requests[i]));
        CHECK(troupe_request_wait(requests[i], NULL, &done) == TROUPE_OK); /* again */
        troupe_request_free(requests[i]);
    }
    float value = value_of(session);
    if (rank == 0)
        CHECK(fabsf(value - 50 * (4 * 1 + 2 * 2)) < 0.5f);
}

/* Three runs of different lengths: the shortest is over first, and each is found once. */
static void any_of_several(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    static const int64_t steps[] = {0, 40, 0};
    struct troupe_request *requests[3];
    for (int i = 0; i < 3; i++) {
        struct troupe_run run = run_of(NULL, i == 2 ? add_two : add_one, steps[i]);
        CHECK(troupe_session_start(session, &run, &requests[i]) == TROUPE_OK);
    }
    int index = -1;
    CHECK(troupe_request_wait_any(requests, 3, &index) == TROUPE_OK && index == 1);
    CHECK(!troupe_request_test(requests[0]) && !troupe_request_test(requests[2]));
    troupe_request_free(requests[1]);
    requests[1] = requests[2];
    troupe_request_stop(requests[1]);
    CHECK(troupe_request_wait_any(requests, 2, &index) == TROUPE_OK && index == 1);
    CHECK(troupe_request_wait(requests[1], NULL, NULL) == TROUPE_OK);
    troupe_request_cancel(requests[0]);
    CHECK(troupe_request_wait_any(requests, 1, &index) == TROUPE_OK && index == 0);
    CHECK(troupe_request_wait_any(requests, 0, &index) == TROUPE_INVALID_ARGUMENT);
    CHECK(troupe_request_wait(requests[0], NULL, NULL) == TROUPE_CANCELLED);
    troupe_request_free(requests[0]);
    troupe_request_free(requests[1]);
}

/* Ends when a value says so; what is in flight then, on any rank, completes. The window is 2. */
static void until_value(int rank, struct troupe_session *session, enum troupe_status opened)
{
    (void)rank;
    CHECK(opened == TROUPE_OK);
    struct troupe_run run = run_of(fetch_y, add_one, 0);
    run.until = "enough";
    struct troupe_tensor *y = NULL;
    int64_t done = 0;
    CHECK(troupe_session_run(session, &run, &y, &done) == TROUPE_OK);
    CHECK(done >= 16);                     /* c is 15 in step 15 */
    CHECK(done <= 16 + RANKS_MAX * 2 * 2); /* a rank is at most two windows ahead of the next */
    troupe_tensor_unref(y);
    run.until = "one";
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_INVALID_ARGUMENT);
    CHECK(strstr(troupe_status_message(), "until \"one\": wants a bool scalar, is float32"));
}

/* ---- Staleness ---- */

struct seen {
    int64_t steps;
    int64_t behind; /* the most that a read was behind the step before it */
};

static void see_value(void *context, int64_t step, struct troupe_tensor *const *fetched)
{
    struct seen *seen = context;
    int64_t value = (int64_t)scalar(fetched[0]);
    CHECK(step == seen->steps++);
    CHECK(value <= step); /* no read sees its own step's update, or a later one's */
    if (step - value > seen->behind)
        seen->behind = step - value;
}

/* Reads are at most `staleness` steps behind, and with 0 not at all; no update is lost. */
static void stale_reads(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    float start = 0;
    for (int staleness = 0; staleness <= 3; staleness++) {
        struct seen seen = {0};
        struct troupe_run run = run_of(fetch_y, add_one, 200);
        struct troupe_tensor *zero, *dropped = NULL;
        const char *feed = "start", *reset = "reset";
        CHECK(troupe_tensor_from_data(TROUPE_FLOAT32, 0, NULL, &start, &zero) == TROUPE_OK);
        struct troupe_run clear = {.feeds = &feed,
                                   .feed_values = &zero,
                                   .feed_count = 1,
                                   .targets = &reset,
                                   .target_count = 1,
                                   .steps = 1};
        CHECK(troupe_session_run(session, &clear, NULL, NULL) == TROUPE_OK);
        troupe_tensor_unref(zero);
        run.staleness = staleness;
        run.on_step = see_value;
        run.on_step_context = &seen;
        CHECK(troupe_session_run(session, &run, &dropped, NULL) == TROUPE_OK);
        troupe_tensor_unref(dropped);
        CHECK(seen.steps == 200 && seen.behind <= staleness);
        CHECK(fabsf(value_of(session) - 200) < 0.5f);
    }
    struct troupe_run run = run_of(fetch_y, NULL, 1);
    run.staleness = -1;
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_INVALID_ARGUMENT);
}

/* ---- Ended from outside ---- */

static _Atomic(int64_t) steps_seen;

static void see_step(void *context, int64_t step, struct troupe_tensor *const *fetched)
{
    (void)context;
    (void)fetched;
    atomic_store(&steps_seen, step + 1);
}

static struct troupe_run endless(void)
{
    struct troupe_run run = run_of(fetch_y, add_one, 0);
    run.on_step = see_step;
    atomic_store(&steps_seen, 0);
    return run;
}

static void *cancel_when_running(void *session)
{
    while (atomic_load(&steps_seen) < 5)
        nap(1);
    troupe_session_cancel(session);
    return NULL;
}

static void cancelled(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    for (int i = 0; i < 3; i++) {
        struct troupe_run run = endless();
        pthread_t thread;
        int64_t done = 0;
        CHECK(pthread_create(&thread, NULL, cancel_when_running, session) == 0);
        CHECK(troupe_session_run(session, &run, NULL, &done) == TROUPE_CANCELLED);
        CHECK(strcmp(troupe_status_message(), "the run was cancelled") == 0);
        CHECK(done >= 3); /* the window's steps in flight are lost */
        pthread_join(thread, NULL);
        (void)value_of(session); /* the session goes on */
    }
}

static void stopped(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    struct troupe_run run = endless();
    struct troupe_request *request;
    struct troupe_tensor *y = NULL;
    int64_t done = 0, limit;
    CHECK(troupe_session_start(session, &run, &request) == TROUPE_OK);
    run = run_of(NULL, add_two, 30); /* beside it */
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_OK);
    troupe_request_stop(request);
    CHECK(troupe_request_wait(request, &y, &done) == TROUPE_OK);
    limit = atomic_load(&steps_seen);
    CHECK(done == limit); /* what was in flight has completed */
    troupe_tensor_unref(y);
    troupe_request_free(request);
    CHECK(fabsf(value_of(session) - (float)(done + 60)) < 0.5f);
}

static void out_of_time(int rank, struct troupe_session *session, enum troupe_status opened)
{
    (void)rank;
    CHECK(opened == TROUPE_OK);
    struct troupe_run run = endless();
    run.timeout_ms = 150;
    int64_t done = 0;
    CHECK(troupe_session_run(session, &run, NULL, &done) == TROUPE_DEADLINE_EXCEEDED);
    CHECK(strstr(troupe_status_message(), "the run's time of 150 ms is up, in step "));
    run = run_of(fetch_one, NULL, 3);
    run.timeout_ms = 60000; /* is no hindrance */
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_OK);
    run.timeout_ms = -1;
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_INVALID_ARGUMENT);
}

static struct troupe_request *left;
static struct updater waiter;

static void *wait_left(void *argument)
{
    (void)argument;
    CHECK(troupe_request_wait(left, NULL, NULL) == TROUPE_CANCELLED);
    return NULL;
}

/* Returns with a run in flight, and a thread that waits for it: closing ends both. */
static void left_running(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    struct troupe_run run = endless();
    CHECK(troupe_session_start(session, &run, &left) == TROUPE_OK);
    CHECK(pthread_create(&waiter.thread, NULL, wait_left, NULL) == 0);
    while (atomic_load(&steps_seen) < 3)
        nap(1);
}

/* ---- Inside ---- */

struct inside {
    struct troupe_session *session;
    struct troupe_request *request;
    _Atomic(bool) is_started;
};

static void inside_step(void *context, int64_t step, struct troupe_tensor *const *fetched)
{
    struct inside *inside = context;
    struct troupe_run run = run_of(fetch_one, NULL, 1);
    struct troupe_request *other;
    (void)fetched;
    while (!atomic_load(&inside->is_started))
        nap(1);
    CHECK(troupe_session_run(inside->session, &run, NULL, NULL) == TROUPE_FAILED_PRECONDITION);
    CHECK(strstr(troupe_status_message(), "from inside an actor"));
    CHECK(troupe_session_start(inside->session, &run, &other) == TROUPE_FAILED_PRECONDITION);
    CHECK(troupe_request_wait(inside->request, NULL, NULL) == TROUPE_FAILED_PRECONDITION);
    CHECK(strstr(troupe_status_message(), "from inside an actor"));
    troupe_session_close(inside->session); /* is refused, with a line in the log */
    if (step == 2)
        troupe_request_cancel(inside->request); /* this one does not wait */
}

static void wait_inside(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    struct inside inside = {.session = session};
    struct troupe_run run = run_of(fetch_y, NULL, 0);
    run.on_step = inside_step;
    run.on_step_context = &inside;
    CHECK(troupe_session_start(session, &run, &inside.request) == TROUPE_OK);
    atomic_store(&inside.is_started, true);
    CHECK(troupe_request_wait(inside.request, NULL, NULL) == TROUPE_CANCELLED);
    troupe_request_free(inside.request);
}

/* ---- Stalls and deadlocks ---- */

static void slow_step(void *context, int64_t step, struct troupe_tensor *const *fetched)
{
    struct inside *inside = context;
    (void)fetched;
    if (step != 1)
        return;
    while (!atomic_load(&inside->is_started))
        nap(1);
    /* Until the run is interrupted. */
    while (!atomic_load(&inside->request->drains))
        nap(10);
}

static void stalled(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    struct inside inside = {.session = session};
    struct troupe_run run = run_of(fetch_y, NULL, 100);
    run.on_step = slow_step;
    run.on_step_context = &inside;
    CHECK(troupe_session_start(session, &run, &inside.request) == TROUPE_OK);
    atomic_store(&inside.is_started, true);
    CHECK(troupe_request_wait(inside.request, NULL, NULL) == TROUPE_DEADLINE_EXCEEDED);
    CHECK(strstr(troupe_status_message(), "stalled: no firing has completed for "));
    CHECK(strstr(troupe_status_message(), "the fetch on rank 0 has all its inputs in step 1"));
    troupe_request_free(inside.request);
    (void)value_of(session);
}

/* A stop that the steps in flight do not let take effect becomes a cancellation. */
static void stopped_in_step(int rank, struct troupe_session *session, enum troupe_status opened)
{
    CHECK(opened == TROUPE_OK && rank == 0);
    struct inside inside = {.session = session};
    struct troupe_run run = run_of(fetch_y, NULL, 100);
    run.on_step = slow_step;
    run.on_step_context = &inside;
    CHECK(troupe_session_start(session, &run, &inside.request) == TROUPE_OK);
    atomic_store(&inside.is_started, true);
    troupe_session_stop(session);
    CHECK(troupe_request_wait(inside.request, NULL, NULL) == TROUPE_CANCELLED);
    CHECK(strncmp(troupe_status_message(), "stopped", 7) == 0);
    troupe_request_free(inside.request);
    (void)value_of(session);
}

/* Two all-reduces that the two ranks start in opposite order. */
static const char crossed[] =
    "{\"node\": ["
    "{\"name\": \"one\", \"op\": \"Const\", \"attr\": {\"value\": 1.0}},"
    "{\"name\": \"a0\", \"op\": \"AllReduce\", \"input\": [\"one\"], \"attr\": {\"key\": \"a\","
    " \"group\": [0, 1], \"reduction\": \"sum\"}, \"device\": \"/job:worker/task:0\"},"
    "{\"name\": \"b0\", \"op\": \"AllReduce\", \"input\": [\"a0\"], \"attr\": {\"key\": \"b\","
    " \"group\": [0, 1], \"reduction\": \"sum\"}, \"device\": \"/job:worker/task:0\"},"
    "{\"name\": \"b1\", \"op\": \"AllReduce\", \"input\": [\"one\"], \"attr\": {\"key\": \"b\","
    " \"group\": [0, 1], \"reduction\": \"sum\"}, \"device\": \"/job:worker/task:1\"},"
    "{\"name\": \"a1\", \"op\": \"AllReduce\", \"input\": [\"b1\"], \"attr\": {\"key\": \"a\","
    " \"group\": [0, 1], \"reduction\": \"sum\"}, \"device\": \"/job:worker/task:1\"},"
    "{\"name\": \"y\", \"op\": \"Add\", \"input\": [\"a1\", \"b0\"],"
    " \"device\": \"/job:worker/task:%d\"}]}";

static void deadlocked(int rank, struct troupe_session *session, enum troupe_status opened)
{
    (void)rank;
    CHECK(opened == TROUPE_OK);
    struct troupe_run run = run_of(fetch_y, NULL, 10);
    int64_t done = -1;
    CHECK(troupe_session_run(session, &run, NULL, &done) == TROUPE_FAILED_PRECONDITION);
    CHECK(done == 0);
    CHECK(strstr(troupe_status_message(), "deadlock: no firing can complete any more"));
    CHECK(strstr(troupe_status_message(), "node \"a0\" (AllReduce) on rank 0 has all "));
    CHECK(strstr(troupe_status_message(), "its inputs in step 0 and waits for its other ranks"));
    CHECK(strstr(troupe_status_message(), "; rank 0 waits in step 0 for "));
    CHECK(strstr(troupe_status_message(), "on rank 0 actor \"b0\" waits in step 0 for \"a0\""));
    CHECK(strstr(troupe_status_message(), "node \"b1\" (AllReduce) on rank 1 has all "));
    run = run_of(fetch_one, NULL, 3); /* the session goes on */
    CHECK(troupe_session_run(session, &run, NULL, NULL) == TROUPE_OK);
}

int main(void)
{
    char graph[4096];
    for (int workers = 1; workers <= 2; workers++) {
        for (int ranks = 1; ranks <= 4; ranks++) {
            const char *text = counter_on(ranks - 1);
            ranks_run(ranks, workers, text, NULL, false, several_threads);
            ranks_run(ranks, workers, text, NULL, ranks % 2 == 0, several_requests);
            ranks_run(ranks, workers, text, NULL, false, any_of_several);
            ranks_run(ranks, workers, text, NULL, ranks % 2 == 0, until_value);
            ranks_options.window = 4;
            ranks_run(ranks, workers, text, NULL, false, stale_reads);
            ranks_options.window = 0;
            ranks_run(ranks, workers, text, NULL, false, cancelled);
            ranks_run(ranks, workers, text, NULL, false, stopped);
            ranks_run(ranks, workers, text, NULL, ranks % 2 == 0, out_of_time);
            ranks_run(ranks, workers, text, NULL, false, left_running);
            pthread_join(waiter.thread, NULL);
            CHECK(troupe_request_wait(left, NULL, NULL) == TROUPE_CANCELLED);
            troupe_request_free(left);
            ranks_run(ranks, workers, text, NULL, false, wait_inside);
        }
        ranks_options.watchdog_ms = 300;
        ranks_run(1, workers, counter_on(0), NULL, false, stalled);
        ranks_run(3, workers, counter_on(2), NULL, false, stalled);
        ranks_options.watchdog_ms = -1;
        ranks_run(1, workers, counter_on(0), NULL, false, stopped_in_step);
        ranks_run(3, workers, counter_on(2), NULL, false, stopped_in_step);
        for (int ranks = 2; ranks <= 4; ranks++) {
            snprintf(graph, sizeof(graph), crossed, ranks - 1);
            ranks_run(ranks, workers, graph, NULL, ranks % 2 == 0, deadlocked);
        }
        ranks_options.watchdog_ms = 0;
    }
    puts("runs on 1 to 4 ranks: ok");
    return 0;
}
