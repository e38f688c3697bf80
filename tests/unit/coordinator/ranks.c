/* Ranks as threads. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct troupe_session_options ranks_options = {.seed = 7};

struct rank {
    pthread_t thread;
    int number, workers;
    const char *path, *strategy;
    bool collective;
    struct troupe_transport *transport;
    rank_fn *body;
};

void check(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: check failed: %s (last message: %s)\n", file, line, text,
            troupe_status_message());
    abort();
}

static void *rank_main(void *argument)
{
    struct rank *rank = argument;
    struct troupe_runtime *runtime;
    CHECK(troupe_runtime_wrap(rank->transport, rank->workers, &runtime) == TROUPE_OK);
    struct troupe_session_options options = ranks_options;
    options.strategy = rank->strategy;
    struct troupe_session *session = NULL;
    enum troupe_status status = troupe_session_open(runtime, rank->number == 0 ? rank->path : NULL,
                                                    rank->number == 0 ? &options : NULL, &session);
    if (status == TROUPE_OK && rank->collective)
        troupe_session_set_collective(session);
    if (rank->number == 0 || rank->collective || status != TROUPE_OK)
        rank->body(rank->number, session, status);
    else
        CHECK(troupe_session_serve(session) == TROUPE_OK);
    troupe_session_close(session);
    troupe_runtime_destroy(runtime);
    return NULL;
}

void ranks_run(int ranks, int workers, const char *graph, const char *strategy, bool collective,
               rank_fn *body)
{
    char path[] = "/tmp/troupe_ranks_XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    CHECK(write(file, graph, strlen(graph)) == (ssize_t)strlen(graph));
    close(file);
    struct troupe_transport *transports[RANKS_MAX];
    struct rank all[RANKS_MAX];
    CHECK(troupe_transport_local_create(ranks, transports) == TROUPE_OK);
    for (int i = 0; i < ranks; i++) {
        all[i] = (struct rank){.number = i,
                               .workers = workers,
                               .path = path,
                               .strategy = strategy,
                               .collective = collective,
                               .transport = transports[i],
                               .body = body};
        CHECK(pthread_create(&all[i].thread, NULL, rank_main, &all[i]) == 0);
    }
    for (int i = 0; i < ranks; i++)
        pthread_join(all[i].thread, NULL);
    unlink(path);
}
