/* Microseconds of a null step: x is fed on rank 0, goes through one op on the last rank, and is
 * fetched on rank 0. One step a call (a coordinated step), and many steps a call (a loop). With
 * SCALARS above 1 as many values cross, each to an op of its own on the last rank.
 * Usage: mpirun -n N null_step [CALLS [SCALARS]] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "troupe/troupe.h"

#define SAMPLES 7

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, int ranks, int scalars, double *samples)
{
    qsort(samples, SAMPLES, sizeof(*samples), compare);
    printf("{\"what\": \"%s\", \"ranks\": %d, \"scalars\": %d, \"us_per_step\": {\"median\": %.2f, "
           "\"min\": %.2f, \"max\": %.2f}}\n",
           what, ranks, scalars, samples[SAMPLES / 2], samples[0], samples[SAMPLES - 1]);
}

static enum troupe_status run(struct troupe_session *session, struct troupe_tensor *x, int calls,
                              int64_t steps)
{
    const char *feed = "x", *fetch = "y";
    struct troupe_run run = {.feeds = &feed,
                             .feed_values = &x,
                             .feed_count = 1,
                             .fetches = &fetch,
                             .fetch_count = 1,
                             .steps = steps};
    for (int i = 0; i < calls; i++) {
        struct troupe_tensor *y;
        enum troupe_status status = troupe_session_run(session, &run, &y, NULL);
        if (status != TROUPE_OK)
            return status;
        troupe_tensor_unref(y);
    }
    return TROUPE_OK;
}

static enum troupe_status measure(struct troupe_session *session, int ranks, int calls, int scalars)
{
    float value = 1;
    struct troupe_tensor *x;
    enum troupe_status status = troupe_tensor_from_data(TROUPE_FLOAT32, 0, NULL, &value, &x);
    double single[SAMPLES], loop[SAMPLES];
    for (int i = -1; i < SAMPLES && status == TROUPE_OK; i++) {
        double start = now_us();
        status = run(session, x, calls, 1);
        double middle = now_us();
        if (status == TROUPE_OK)
            status = run(session, x, 1, calls);
        if (i < 0)
            continue; /* the plan is made */
        single[i] = (middle - start) / calls;
        loop[i] = (now_us() - middle) / calls;
    }
    troupe_tensor_unref(x);
    if (status != TROUPE_OK)
        return status;
    report("a step a call", ranks, scalars, single);
    report("a loop of steps", ranks, scalars, loop);
    return TROUPE_OK;
}

static bool write_graph(int file, int last_rank, int scalars)
{
    bool is_written = dprintf(file, "{\"node\": [{\"name\": \"x\", \"op\": \"Placeholder\", "
                                    "\"attr\": {\"dtype\": \"float32\", \"shape\": []}}") > 0;
    if (scalars == 1)
        return is_written && dprintf(file,
                                     ", {\"name\": \"y\", \"op\": \"Neg\", \"input\": [\"x\"], "
                                     "\"device\": \"/task:%d\"}]}",
                                     last_rank) > 0;
    for (int i = 0; i < scalars && is_written; i++)
        is_written = dprintf(file,
                             ", {\"name\": \"a%d\", \"op\": \"Neg\", \"input\": [\"x\"], "
                             "\"device\": \"/task:0\"}",
                             i) > 0;
    is_written = is_written && dprintf(file,
                                       ", {\"name\": \"y\", \"op\": \"AddN\", "
                                       "\"device\": \"/task:%d\", \"input\": [",
                                       last_rank) > 0;
    for (int i = 0; i < scalars && is_written; i++)
        is_written = dprintf(file, "%s\"a%d\"", i > 0 ? ", " : "", i) > 0;
    return is_written && dprintf(file, "]}]}") > 0;
}

int main(int argc, char **argv)
{
    struct troupe_runtime *runtime;
    if (troupe_runtime_launch(&argc, &argv, 1, &runtime) != TROUPE_OK)
        return 3;
    int rank = troupe_runtime_rank(runtime), size = troupe_runtime_size(runtime);
    int calls = argc > 1 ? atoi(argv[1]) : 2000, scalars = argc > 2 ? atoi(argv[2]) : 1;
    char path[] = "/tmp/troupe_null_step_XXXXXX";
    if (rank == 0) {
        int file = mkstemp(path);
        if (file < 0 || !write_graph(file, size - 1, scalars))
            troupe_runtime_abort(runtime, 3);
        close(file);
    }
    struct troupe_session *session = NULL;
    enum troupe_status status =
        troupe_session_open(runtime, rank == 0 ? path : NULL, NULL, &session);
    if (status == TROUPE_OK)
        status = rank == 0 ? measure(session, size, calls, scalars) : troupe_session_serve(session);
    if (status != TROUPE_OK)
        fprintf(stderr, "rank %d: %s\n", rank, troupe_status_message());
    troupe_session_close(session);
    if (rank == 0)
        unlink(path);
    troupe_runtime_destroy(runtime);
    return status == TROUPE_OK ? 0 : 1;
}
