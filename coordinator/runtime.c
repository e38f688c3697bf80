/* A runtime: one transport and one pool. Invariant: the transport's progress is called by the
 * pool's idle workers alone, one at a time. */
#include "coordinator/runtime.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "devices/sim.h"
#include "troupe/log.h"
#include "troupe/version.h"

static int runtime_poll(void *context)
{
    struct troupe_runtime *runtime = context;
    return runtime->transport->ops->progress(runtime->transport);
}

static enum troupe_status create_transport(const void *communicator, struct troupe_transport **out)
{
    if (!communicator)
        return troupe_transport_local_create(1, out);
    return troupe_transport_mpi_create(communicator, out);
}

enum troupe_status troupe_runtime_wrap(struct troupe_transport *transport, int workers,
                                       struct troupe_runtime **out)
{
    struct troupe_runtime *runtime = troupe_calloc(1, sizeof(*runtime));
    if (!runtime)
        return TROUPE_RESOURCE_EXHAUSTED;
    runtime->transport = transport;
    pthread_mutex_init(&runtime->lock, NULL);
    transport->handler_context = runtime;
    transport->handler = troupe_runtime_receive;
    if (workers == 0)
        workers = troupe_pool_default_workers(transport->ranks_on_host);
    struct troupe_pool_options pool = {
        .workers = workers,
        .poll = transport->size > 1 ? runtime_poll : NULL,
        .poll_context = runtime,
        .poll_on_worker0_only = transport->main_thread_only,
        .poll_pending = &transport->pending,
    };
    /* Its threads may receive before it is known here. */
    pthread_mutex_lock(&runtime->lock);
    enum troupe_status status = troupe_pool_create(&pool, &runtime->pool);
    pthread_mutex_unlock(&runtime->lock);
    if (status != TROUPE_OK) {
        atomic_store(&transport->handler, NULL);
        pthread_mutex_destroy(&runtime->lock);
        free(runtime);
        return status;
    }
    *out = runtime;
    return TROUPE_OK;
}

enum troupe_status troupe_runtime_create(const struct troupe_runtime_options *options,
                                         struct troupe_runtime **out)
{
    if (options->workers < 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "workers is %d: wants 1 or more",
                                  options->workers);
    struct troupe_transport *transport;
    enum troupe_status status = create_transport(options->communicator, &transport);
    if (status != TROUPE_OK)
        return status;
    if (transport->rank == 0 && options->communicator)
        troupe_log(TROUPE_LOG_INFO, "%s: %s", troupe_transport_mpi_describe(),
                   transport->main_thread_only
                       ? "messages progress in the main thread, while it waits in the library"
                       : "any idle worker progresses messages");
    status = troupe_runtime_wrap(transport, options->workers, out);
    if (status != TROUPE_OK)
        transport->ops->destroy(transport);
    return status;
}

enum troupe_status troupe_runtime_launch(int *argc, char ***argv, int workers,
                                         struct troupe_runtime **out)
{
    struct troupe_runtime_options options = {.workers = workers};
    bool launched = troupe_transport_mpi_is_launched();
    if (launched) {
        enum troupe_status status = troupe_transport_mpi_init(argc, argv);
        if (status != TROUPE_OK)
            return status;
        options.communicator = troupe_transport_mpi_world();
    }
    enum troupe_status status = troupe_runtime_create(&options, out);
    if (status != TROUPE_OK) {
        if (launched)
            troupe_transport_mpi_fini();
        return status;
    }
    (*out)->owns_mpi = launched;
    return TROUPE_OK;
}

enum troupe_status troupe_runtime_add_sim(struct troupe_runtime *runtime, const char *spec)
{
    struct troupe_sim_options options;
    struct troupe_accelerators accelerators = {0};
    if (runtime->session || runtime->accelerators.table.count > 0)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "simulated devices are added once, before a session is opened");
    enum troupe_status status = troupe_sim_options_parse(spec, &options);
    if (status == TROUPE_OK)
        status = troupe_sim_add_all(&options, &accelerators.table);
    if (status == TROUPE_OK)
        status = troupe_accelerators_open(&accelerators);
    if (status == TROUPE_OK)
        runtime->accelerators = accelerators;
    else
        troupe_accelerators_fini(&accelerators);
    return status;
}

void troupe_runtime_destroy(struct troupe_runtime *runtime)
{
    if (!runtime)
        return;
    bool owns_mpi = runtime->owns_mpi;
    troupe_accelerators_fini(&runtime->accelerators); /* their threads may still wake the pool */
    troupe_pool_destroy(runtime->pool);
    runtime->pool = NULL; /* messages may still come while the transport ends */
    runtime->transport->ops->destroy(runtime->transport);
    troupe_runtime_drop_letters(runtime);
    pthread_mutex_destroy(&runtime->lock);
    free(runtime);
    if (owns_mpi)
        troupe_transport_mpi_fini();
}

int troupe_runtime_rank(const struct troupe_runtime *runtime)
{
    return runtime->transport->rank;
}

int troupe_runtime_size(const struct troupe_runtime *runtime)
{
    return runtime->transport->size;
}

int troupe_runtime_workers(const struct troupe_runtime *runtime)
{
    return troupe_pool_workers(runtime->pool);
}

void troupe_runtime_abort(struct troupe_runtime *runtime, int exit_status)
{
    runtime->transport->ops->abort(runtime->transport, exit_status);
}

void troupe_runtime_await(struct troupe_runtime *runtime)
{
    atomic_fetch_add(&runtime->transport->pending, 1);
}

void troupe_runtime_unawait(struct troupe_runtime *runtime)
{
    atomic_fetch_sub(&runtime->transport->pending, 1);
}

enum troupe_status troupe_runtime_take_tags(struct troupe_runtime *runtime, int count, int *first)
{
    if (count > runtime->transport->tag_limit - runtime->next_tag)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED,
                                  "the plan wants %d message tags and %d of %d are left", count,
                                  runtime->transport->tag_limit - runtime->next_tag,
                                  runtime->transport->tag_limit);
    *first = runtime->next_tag;
    runtime->next_tag += count;
    return TROUPE_OK;
}
