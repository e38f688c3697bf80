/* Runs beside one another in another program, and how they end. Every rank runs collectively: the
 * ranks start the same runs in the same order. Usage: mpirun -n 3 embed_runs GRAPH, where the graph
 * is examples/concurrent_loops.json.
 *
 * Of three runs one ends by itself, one is stopped, and one is cancelled from another thread;
 * another one has a deadline. Then a session is closed with a run in flight, and a new one works.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "troupe/troupe.h"

static void check(enum troupe_status got, enum troupe_status wanted, const char *what)
{
    if (got == wanted)
        return;
    fprintf(stderr, "%s: %s, not %s: %s\n", what, troupe_status_name(got),
            troupe_status_name(wanted), troupe_status_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static struct troupe_run run_of(const char *const *target, int64_t steps)
{
    return (struct troupe_run){.targets = target, .target_count = 1, .steps = steps};
}

static void *cancel(void *request)
{
    troupe_request_cancel(request);
    return NULL;
}

static void say(const struct troupe_runtime *runtime, const char *what)
{
    if (troupe_runtime_rank(runtime) == 0)
        printf("%s: %s\n", what, troupe_status_message());
}

/* Three runs, the second and third without an end of their own. */
static void beside_one_another(struct troupe_runtime *runtime, struct troupe_session *session)
{
    static const char *const train = "train_one", *const read = "read_one",
                             *const test = "test_one";
    struct troupe_run runs[] = {run_of(&train, 200), run_of(&read, 0), run_of(&test, 0)};
    struct troupe_request *requests[3];
    for (int i = 0; i < 3; i++)
        check(troupe_session_start(session, &runs[i], &requests[i]), TROUPE_OK, "start");
    int first = -1;
    int64_t steps;
    check(troupe_request_wait_any(requests, 3, &first), TROUPE_OK, "wait for any");
    check(troupe_request_wait(requests[0], NULL, &steps), TROUPE_OK, "train");
    if (first != 0 || steps != 200)
        check(TROUPE_INTERNAL, TROUPE_OK, "the run of 200 steps is over first");
    troupe_request_stop(requests[1]);
    check(troupe_request_wait(requests[1], NULL, &steps), TROUPE_OK, "read");
    pthread_t thread;
    if (pthread_create(&thread, NULL, cancel, requests[2]) != 0)
        check(TROUPE_RESOURCE_EXHAUSTED, TROUPE_OK, "a thread");
    check(troupe_request_wait(requests[2], NULL, &steps), TROUPE_CANCELLED, "test");
    say(runtime, "test");
    pthread_join(thread, NULL);
    for (int i = 0; i < 3; i++)
        troupe_request_free(requests[i]);
}

static void out_of_time(struct troupe_runtime *runtime, struct troupe_session *session)
{
    static const char *const read = "read_one";
    struct troupe_run run = run_of(&read, 0);
    run.timeout_ms = 100;
    check(troupe_session_run(session, &run, NULL, NULL), TROUPE_DEADLINE_EXCEEDED, "a deadline");
    say(runtime, "a deadline");
}

/* The run's last word is kept for its request, whose session is gone. */
static void close_while_running(struct troupe_runtime *runtime, struct troupe_session *session)
{
    static const char *const read = "read_one";
    struct troupe_run run = run_of(&read, 0);
    struct troupe_request *request;
    check(troupe_session_start(session, &run, &request), TROUPE_OK, "start");
    troupe_session_close(session);
    check(troupe_request_wait(request, NULL, NULL), TROUPE_CANCELLED, "a run closed upon");
    say(runtime, "a run closed upon");
    troupe_request_free(request);
}

static struct troupe_session *open_session(struct troupe_runtime *runtime, const char *path)
{
    struct troupe_session *session;
    check(troupe_session_open(runtime, path, NULL, &session), TROUPE_OK, "open");
    troupe_session_set_collective(session);
    return session;
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (argc != 2) {
        fprintf(stderr, "usage: %s GRAPH\n", argv[0]);
        MPI_Finalize();
        return 2;
    }
    MPI_Comm comm = MPI_COMM_WORLD;
    struct troupe_runtime_options options = {.communicator = &comm, .workers = 2};
    struct troupe_runtime *runtime;
    check(troupe_runtime_create(&options, &runtime), TROUPE_OK, "runtime");
    struct troupe_session *session = open_session(runtime, argv[1]);
    beside_one_another(runtime, session);
    out_of_time(runtime, session);
    close_while_running(runtime, session);
    session = open_session(runtime, argv[1]);
    beside_one_another(runtime, session);
    troupe_session_close(session);
    troupe_runtime_destroy(runtime);
    MPI_Finalize();
    return 0;
}
