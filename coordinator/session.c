/* Opening, driving and closing a session. Invariant: every rank holds the same graph, prepared the
 * same way; only state differs. */
#include "coordinator/session.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "coordinator/plan.h"
#include "coordinator/run.h"
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
                                  session->runtime->transport->size, &used);
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
    struct troupe_plan *plan;
    enum troupe_status status = troupe_plan_get(session, &run, &plan);
    if (status == TROUPE_OK)
        status = troupe_run_execute(plan, &run, NULL, NULL);
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

static void session_free(struct troupe_session *session)
{
    pthread_mutex_lock(&session->runtime->lock);
    session->runtime->session = NULL;
    pthread_mutex_unlock(&session->runtime->lock);
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
    troupe_run_state_destroy(session->run);
    troupe_graph_destroy(session->graph);
    free(session->strategy);
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
    enum troupe_status status = troupe_run_state_create(&session->run);
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
    bool is_first = session->runtime->transport->rank == 0;
    enum troupe_status status = TROUPE_OK;
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

static void put_names(struct troupe_text *text, const char *const *names, int count)
{
    troupe_wire_put_u64(text, (uint64_t)count);
    for (int i = 0; i < count; i++)
        troupe_wire_put_string(text, names[i]);
}

static enum troupe_status announce(struct troupe_session *session, const struct troupe_run *run)
{
    if (session->runtime->transport->size == 1)
        return TROUPE_OK;
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_wire_put_u64(&text, (uint64_t)run->steps);
    put_names(&text, run->feeds, run->feed_count);
    put_names(&text, run->fetches, run->fetch_count);
    put_names(&text, run->targets, run->target_count);
    enum troupe_status status = troupe_session_send_all(session, TROUPE_MESSAGE_RUN, &text);
    troupe_text_fini(&text);
    return status;
}

static uint64_t hash_names(uint64_t hash, const char *const *names, int count)
{
    hash = troupe_hash_u64(hash, (uint64_t)count);
    for (int i = 0; i < count; i++)
        hash = troupe_hash_string(hash, names[i]);
    return hash;
}

/* What all ranks must give alike in collective use. */
static uint64_t run_hash(const struct troupe_run *run)
{
    uint64_t hash = troupe_hash_u64(TROUPE_HASH_START, (uint64_t)run->steps);
    hash = hash_names(hash, run->feeds, run->feed_count);
    hash = hash_names(hash, run->fetches, run->fetch_count);
    return hash_names(hash, run->targets, run->target_count);
}

enum troupe_status troupe_session_run(struct troupe_session *session, const struct troupe_run *run,
                                      struct troupe_tensor **fetched, int64_t *steps_done)
{
    enum troupe_status status = troupe_plan_check(session, run);
    if (session->collective)
        status = troupe_session_agree(session, status, run_hash(run));
    else if (status == TROUPE_OK)
        status = announce(session, run);
    struct troupe_plan *plan;
    if (status == TROUPE_OK)
        status = troupe_plan_get(session, run, &plan);
    if (status != TROUPE_OK)
        return status;
    return troupe_run_execute(plan, run, fetched, steps_done);
}

/* A run as it came in a letter; owns the names. */
struct request {
    struct troupe_run run;
    char **names;
    int name_count;
};

static void request_fini(struct request *request)
{
    for (int i = 0; i < request->name_count; i++)
        free(request->names[i]);
    free(request->names);
}

static enum troupe_status get_names(struct troupe_wire_reader *reader, struct request *request,
                                    int *count)
{
    uint64_t wanted = troupe_wire_get_u64(reader);
    /* A name takes 8 bytes at least: a larger number is not to be believed. */
    if (wanted > reader->bytes / 8)
        return troupe_status_fail(TROUPE_DATA_LOSS, "message \"run\" counts %llu names",
                                  (unsigned long long)wanted);
    char **grown = troupe_reallocarray(
        request->names, (size_t)request->name_count + (size_t)wanted + 1, sizeof(char *));
    if (!grown)
        return TROUPE_RESOURCE_EXHAUSTED;
    request->names = grown;
    for (uint64_t i = 0; i < wanted; i++) {
        char *name = troupe_wire_get_string(reader);
        if (!name)
            return TROUPE_RESOURCE_EXHAUSTED;
        request->names[request->name_count++] = name;
    }
    *count = (int)wanted;
    return TROUPE_OK;
}

static enum troupe_status request_read(const struct troupe_letter *letter, struct request *request)
{
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, letter->data, letter->bytes);
    request->run.steps = (int64_t)troupe_wire_get_u64(&reader);
    enum troupe_status status = get_names(&reader, request, &request->run.feed_count);
    if (status == TROUPE_OK)
        status = get_names(&reader, request, &request->run.fetch_count);
    if (status == TROUPE_OK)
        status = get_names(&reader, request, &request->run.target_count);
    if (status == TROUPE_OK)
        status = troupe_wire_close(&reader, "run");
    if (status != TROUPE_OK)
        return status;
    const char *const *names = (const char *const *)request->names;
    request->run.feeds = names;
    request->run.fetches = names + request->run.feed_count;
    request->run.targets = request->run.fetches + request->run.fetch_count;
    return TROUPE_OK;
}

static enum troupe_status serve_one(struct troupe_session *session,
                                    const struct troupe_letter *letter)
{
    struct request request = {0};
    struct troupe_plan *plan;
    enum troupe_status status = request_read(letter, &request);
    if (status == TROUPE_OK)
        status = troupe_plan_get(session, &request.run, &plan);
    /* A failed run is rank 0's to report; here it only means that this one is over. */
    if (status == TROUPE_OK)
        (void)(troupe_run_execute(plan, &request.run, NULL, NULL) == TROUPE_OK);
    request_fini(&request);
    return TROUPE_OK;
}

enum troupe_status troupe_session_serve(struct troupe_session *session)
{
    if (session->runtime->transport->rank == 0)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "rank 0 runs: only other ranks serve");
    for (;;) {
        struct troupe_letter *letter;
        enum troupe_status status = troupe_session_await(session, 0, &letter);
        if (status != TROUPE_OK)
            return status;
        if (letter->kind == TROUPE_MESSAGE_RUN)
            status = serve_one(session, letter);
        bool is_over = letter->kind == TROUPE_MESSAGE_CLOSE;
        free(letter);
        if (status != TROUPE_OK || is_over)
            return status;
    }
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
