/* A session that has nothing to do between its steps: rank 0 runs a step for every line of standard
 * input and prints what it fetched; the others serve. Usage: idle GRAPH FETCH WORKERS. */
#include <stdio.h>
#include <stdlib.h>

#include "troupe/troupe.h"

static void fail(struct troupe_runtime *runtime, const char *what)
{
    fprintf(stderr, "idle: %s: %s\n", what, troupe_status_message());
    if (runtime)
        troupe_runtime_abort(runtime, 1);
    exit(1);
}

static enum troupe_status step(struct troupe_session *session, const char *fetch)
{
    struct troupe_run run = {.fetches = &fetch, .fetch_count = 1, .steps = 1};
    struct troupe_tensor *value;
    char *text;
    enum troupe_status status = troupe_session_run(session, &run, &value, NULL);
    if (status != TROUPE_OK)
        return status;
    status = troupe_tensor_print(value, &text);
    troupe_tensor_unref(value);
    if (status != TROUPE_OK)
        return status;
    printf("%s\n", text);
    fflush(stdout);
    free(text);
    return TROUPE_OK;
}

int main(int argc, char **argv)
{
    struct troupe_runtime *runtime = NULL;
    struct troupe_session *session;
    enum troupe_status status = TROUPE_OK;
    char line[16];
    if (argc != 4) {
        fprintf(stderr, "usage: idle GRAPH FETCH WORKERS\n");
        return 2;
    }
    if (troupe_runtime_launch(&argc, &argv, atoi(argv[3]), &runtime) != TROUPE_OK)
        fail(NULL, "runtime");
    if (troupe_session_open(runtime, argv[1], NULL, &session) != TROUPE_OK)
        fail(runtime, "open");
    if (troupe_runtime_rank(runtime) > 0)
        status = troupe_session_serve(session);
    while (troupe_runtime_rank(runtime) == 0 && status == TROUPE_OK &&
           fgets(line, sizeof(line), stdin))
        status = step(session, argv[2]);
    if (status != TROUPE_OK)
        fail(runtime, "run");
    troupe_session_close(session);
    troupe_runtime_destroy(runtime);
    return 0;
}
