/* Opening, driving and closing a session. Invariant: every rank holds the same graph, prepared the
 * same way; only state differs. */
#include "coordinator/session.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/plan.h"
#include "coordinator/run.h"
#include "coordinator/watch.h"
#include "coordinator/wire.h"
#include "graph/file.h"
#include "graph/sections.h"

#define TROUPE_DEFAULT_WINDOW 2
#define TROUPE_WINDOW_MAX     1024

/* What rank 0 tells the others when a session opens. */
struct opening {
    char *path, *text, *strategy; /* strategy "": the file's */
    size_t length;
    uint64_t seed;
    int window;
};

static void opening_fini(struct opening *opening)
{
    free(opening->path);
    free(opening->text);
    free(opening->strategy);
}

static enum troupe_status opening_make(const char *path,
                                       const struct troupe_session_options *options,
                                       struct opening *opening)
{
    opening->window = options && options->window ? options->window : TROUPE_DEFAULT_WINDOW;
    opening->seed = options ? options->seed : 0;
    if (opening->window < 1 || opening->window > TROUPE_WINDOW_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "window is %d: wants 1 to %d",
                                  opening->window, TROUPE_WINDOW_MAX);
    opening->path = troupe_strdup(path);
    opening->strategy = troupe_strdup(options && options->strategy ? options->strategy : "");
    if (!opening->path || !opening->strategy)
        return TROUPE_RESOURCE_EXHAUSTED;
    return troupe_file_read(path, &opening->text, &opening->length);
}

static enum troupe_status opening_send(struct troupe_session *session,
                                       const struct opening *opening)
{
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_wire_put_string(&text, opening->path);
    troupe_wire_put_string(&text, opening->strategy);
    troupe_wire_put_u64(&text, opening->seed);
    troupe_wire_put_u64(&text, (uint64_t)opening->window);
    troupe_wire_put_string(&text, opening->text);
    enum troupe_status status = troupe_session_send_all(session, TROUPE_MESSAGE_GRAPH, &text);
    troupe_text_fini(&text);
    return status;
}

static enum troupe_status opening_receive(struct troupe_session *session, struct opening *opening)
{
    struct troupe_letter *letter;
    enum troupe_status status = troupe_session_await(session, TROUPE_MESSAGE_GRAPH, &letter);
    if (status != TROUPE_OK)
        return status;
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, letter->data, letter->bytes);
    opening->path = troupe_wire_get_string(&reader);
    opening->strategy = troupe_wire_get_string(&reader);
    opening->seed = troupe_wire_get_u64(&reader);
    opening->window = (int)troupe_wire_get_u64(&reader);
    opening->text = troupe_wire_get_string(&reader);
    status = troupe_wire_close(&reader, "graph");
    free(letter);
    if (!opening->path || !opening->strategy || !opening->text)
        return TROUPE_RESOURCE_EXHAUSTED;
    opening->length = strlen(opening->text);
    return status;
}

/* Loads and prepares the graph from what rank 0 read. */
static enum troupe_status load(struct troupe_session *session, const struct opening *opening)
{
    struct troupe_diagnostics diagnostics;
    troupe_diagnostics_init(&diagnostics);
    enum troupe_status status = troupe_graph_parse(opening->text, opening->length, opening->path,
                                                   opening->seed, &diagnostics, &session->graph);
    enum troupe_status closed = troupe_diagnostics_close(&diagnostics);
    troupe_diagnostics_fini(&diagnostics);
    if (closed != TROUPE_OK || status != TROUPE_OK)
        return closed != TROUPE_OK ? closed : status;
    session->window = opening->window;
    const char *used;
    status = troupe_graph_prepare(session->graph, opening->strategy[0] ? opening->strategy : NULL,
                                  session->runtime->transport->size,
                                  &session->runtime->accelerators.table, &used);
    if (status != TROUPE_OK)
        return status;
    session->strategy = troupe_strdup(used);
    if (!session->strategy)
        return TROUPE_RESOURCE_EXHAUSTED;
    return troupe_session_make_loops(session);
}

/* Runs the initialisers: collective. */
static enum troupe_status initialise(struct troupe_session *session)
{
    if (troupe_graph_find(session->graph, TROUPE_INIT_NODE) < 0)
        return TROUPE_OK;
    const char *target = TROUPE_INIT_NODE;
    struct troupe_run run = {.targets = &target, .target_count = 1, .steps = 1};
    struct troupe_run_order order = {.number = ++session->runtime->runs};
    struct troupe_request *request = NULL;
    struct troupe_plan *plan;
    pthread_mutex_lock(&session->order);
    enum troupe_status status = troupe_plan_get(session, &run, order.instance, &plan);
    if (status == TROUPE_OK)
        status = troupe_request_begin(plan, &run, &order, &request);
    pthread_mutex_unlock(&session->order);
    if (status != TROUPE_OK)
        return status;
    status = troupe_request_wait(request, NULL, NULL);
    troupe_request_free(request);
    session->step = 0;
    return status;
}

static enum troupe_status open_here(struct troupe_session *session, const char *path,
                                    const struct troupe_session_options *options)
{
    struct opening opening = {0};
    bool first = session->runtime->transport->rank == 0;
    enum troupe_status status =
        first ? opening_make(path, options, &opening) : opening_receive(session, &opening);
    /* A file that rank 0 cannot read is known before anything is sent: the others get a graph that
     * is empty, and then the verdict. */
    if (first) {
        struct opening nothing = {
            .path = (char[]){""}, .text = (char[]){""}, .strategy = (char[]){""}};
        enum troupe_status sent = opening_send(session, status == TROUPE_OK ? &opening : &nothing);
        if (status == TROUPE_OK)
            status = sent;
    }
    if (status == TROUPE_OK)
        status = load(session, &opening);
    opening_fini(&opening);
    status = troupe_session_agree(session, status, 0);
    if (status == TROUPE_OK)
        status = initialise(session);
    return status;
}

/* Messages do not find the session any more. */
static void session_hide(struct troupe_session *session)
{
    pthread_mutex_lock(&session->runtime->lock);
    session->runtime->session = NULL;
    pthread_mutex_unlock(&session->runtime->lock);
}

static void session_free(struct troupe_session *session)
{
    session_hide(session);
    troupe_watch_destroy(session->watch);
    for (int i = 0; i < session->plan_count; i++)
        troupe_plan_destroy(session->plans[i]);
    free(session->plans);
    for (int i = 0; i < session->resource_count; i++) {
        session->resources[i].resource->destroy(session->resources[i].resource);
        free(session->resources[i].name);
    }
    free(session->resources);
    troupe_name_map_fini(&session->resource_of);
    troupe_session_free_loops(session);
    troupe_graph_destroy(session->graph);
    free(session->strategy);
    pthread_mutex_destroy(&session->order);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

enum troupe_status troupe_session_open(struct troupe_runtime *runtime, const char *path,
                                       const struct troupe_session_options *options,
                                       struct troupe_session **out)
{
    if (runtime->session)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "the runtime has a session: close it before opening another");
    struct troupe_session *session = troupe_calloc(1, sizeof(*session));
    if (!session)
        return TROUPE_RESOURCE_EXHAUSTED;
    session->runtime = runtime;
    pthread_mutex_init(&session->order, NULL);
    pthread_mutex_init(&session->lock, NULL);
    enum troupe_status status = troupe_watch_create(session, options, &session->watch);
    if (status != TROUPE_OK) {
        session_free(session);
        return status;
    }
    pthread_mutex_lock(&runtime->lock);
    runtime->session = session;
    pthread_mutex_unlock(&runtime->lock);
    status = open_here(session, path, options);
    if (status != TROUPE_OK) {
        session_free(session);
        return status;
    }
    *out = session;
    return TROUPE_OK;
}

void troupe_session_close(struct troupe_session *session)
{
    if (!session)
        return;
    if (troupe_session_is_inside(session)) {
        troupe_log(TROUPE_LOG_ERROR, "a session is not closed from inside one of its own actors");
        return;
    }
    bool is_first = session->runtime->transport->rank == 0;
    enum troupe_status status = troupe_session_finish(session);
    if (status != TROUPE_OK) {
        troupe_log(TROUPE_LOG_ERROR, "closing the session: %s", troupe_status_message());
        session_hide(session);
        return;
    }
    if (is_first && !session->collective)
        status = troupe_session_send_all(session, TROUPE_MESSAGE_CLOSE, NULL);
    /* No rank leaves before all have come, so that letters of a later session find it open. */
    status = troupe_session_agree(session, status, 0);
    if (status != TROUPE_OK)
        troupe_log(TROUPE_LOG_WARNING, "closing the session: %s", troupe_status_message());
    session_free(session);
}

void troupe_session_set_collective(struct troupe_session *session)
{
    session->collective = true;
}

void troupe_session_stop(struct troupe_session *session)
{
    atomic_store(&session->stop_requested, 1);
}

const char *troupe_session_strategy(const struct troupe_session *session)
{
    return session->strategy;
}

uint64_t troupe_session_seed(const struct troupe_session *session)
{
    return session->graph->seed;
}

enum troupe_status troupe_session_serve(struct troupe_session *session)
{
    if (session->runtime->transport->rank == 0)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "rank 0 runs: only other ranks serve");
    enum troupe_status status = TROUPE_OK;
    bool is_over = false;
    troupe_runtime_await(session->runtime);
    while (status == TROUPE_OK && !is_over) {
        struct troupe_letter *letter = troupe_session_take(session, 0);
        troupe_session_settle(session);
        if (!letter) {
            status = troupe_pool_drive(session->runtime->pool, &session->runtime->letter_came, 0);
            continue;
        }
        if (letter->kind == TROUPE_MESSAGE_RUN)
            status = troupe_session_follow(session, letter);
        is_over = letter->kind == TROUPE_MESSAGE_CLOSE;
        free(letter);
    }
    troupe_runtime_unawait(session->runtime);
    return status;
}

enum troupe_status troupe_session_value(const struct troupe_session *session, const char *name,
                                        enum troupe_dtype *dtype_out, int *rank_out,
                                        int64_t *dims_out)
{
    struct troupe_value value;
    enum troupe_status status = troupe_graph_value(session->graph, name, &value);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_node *node = &session->graph->nodes[value.node];
    *dtype_out = node->output_dtypes[value.port];
    *rank_out = node->output_shapes[value.port].rank;
    for (int i = 0; i < *rank_out; i++)
        dims_out[i] = node->output_shapes[value.port].dims[i];
    return TROUPE_OK;
}

static struct troupe_resource *find_resource(const struct troupe_session *session, const char *name)
{
    int index = troupe_name_map_get(&session->resource_of, name);
    return index < 0 ? NULL : session->resources[index].resource;
}

enum troupe_status troupe_session_resource(struct troupe_session *session, int number,
                                           struct troupe_resource **out)
{
    const struct troupe_node *node = &session->graph->nodes[number];
    *out = find_resource(session, node->name);
    if (*out)
        return TROUPE_OK;
    if (session->resource_count == session->resource_capacity) {
        int capacity = session->resource_capacity ? 2 * session->resource_capacity : 16;
        struct troupe_session_resource *grown =
            troupe_reallocarray(session->resources, (size_t)capacity, sizeof(*grown));
        if (!grown)
            return TROUPE_RESOURCE_EXHAUSTED;
        session->resources = grown;
        session->resource_capacity = capacity;
    }
    struct troupe_kernel kernel = {0};
    troupe_kernel_describe(session->graph, number, &kernel);
    char *name = troupe_strdup(node->name);
    if (!name)
        return TROUPE_RESOURCE_EXHAUSTED;
    struct troupe_resource *resource;
    enum troupe_status status = node->schema->op->resource_create(&kernel, &resource);
    if (status != TROUPE_OK) {
        free(name);
        char text[TROUPE_NODE_TEXT_MAX];
        return troupe_status_prefix(status,
                                    "%s: ", troupe_node_describe(session->graph, number, text));
    }
    if (troupe_name_map_put(&session->resource_of, name, session->resource_count) != 0) {
        resource->destroy(resource);
        free(name);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    session->resources[session->resource_count++] =
        (struct troupe_session_resource){name, resource};
    *out = resource;
    return TROUPE_OK;
}
