/* A graph inside another MPI program: the program keeps its communicator and its MPI, every rank
 * opens the session and runs the same steps (collective use). Usage: mpirun -n 2 embed_session
 * GRAPH FETCH; the graph has no placeholders. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "troupe/troupe.h"

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, troupe_status_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 3) {
        fprintf(stderr, "usage: %s GRAPH FETCH\n", argv[0]);
        MPI_Finalize();
        return 2;
    }
    MPI_Comm comm = MPI_COMM_WORLD;
    struct troupe_runtime_options options = {.communicator = &comm, .workers = 1};
    struct troupe_runtime *runtime;
    if (troupe_runtime_create(&options, &runtime) != TROUPE_OK)
        return fail("runtime");
    struct troupe_session *session;
    if (troupe_session_open(runtime, argv[1], NULL, &session) != TROUPE_OK)
        return fail("open");
    troupe_session_set_collective(session);
    const char *fetch = argv[2];
    struct troupe_run run = {.fetches = &fetch, .fetch_count = 1, .steps = 3};
    struct troupe_tensor *value = NULL;
    int64_t steps;
    if (troupe_session_run(session, &run, &value, &steps) != TROUPE_OK)
        return fail("run");
    char *text = NULL;
    if (troupe_runtime_rank(runtime) == 0 && troupe_tensor_print(value, &text) == TROUPE_OK)
        printf("%s after %lld steps: %s\n", fetch, (long long)steps, text);
    free(text);
    troupe_tensor_unref(value);
    troupe_session_close(session);
    troupe_runtime_destroy(runtime);
    MPI_Finalize();
    return 0;
}
