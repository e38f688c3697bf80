/* Plans and their cache. Invariant: plans are made in the same order on every rank, so that tags
 * agree; a plan is used only after all ranks found the same hash for each of its nodes. */
#include "coordinator/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "coordinator/run.h"
#include "coordinator/wire.h"

static void signature_fini(struct troupe_signature *signature)
{
    free(signature->feeds);
    free(signature->fetches);
    free(signature->targets);
}

static enum troupe_status signature_values(const struct troupe_graph *graph,
                                           const char *const *names, int count, const char *what,
                                           struct troupe_value **out)
{
    struct troupe_value *values = troupe_calloc((size_t)count + 1, sizeof(*values));
    if (!values)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++) {
        enum troupe_status status = troupe_graph_value(graph, names[i], &values[i]);
        if (status != TROUPE_OK) {
            free(values);
            return troupe_status_prefix(status, "%s \"%s\": ", what, names[i]);
        }
    }
    *out = values;
    return TROUPE_OK;
}

static enum troupe_status signature_targets(const struct troupe_graph *graph,
                                            const char *const *names, int count, int **out)
{
    int *targets = troupe_calloc((size_t)count + 1, sizeof(int));
    if (!targets)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++) {
        targets[i] = troupe_graph_find(graph, names[i]);
        if (targets[i] >= 0)
            continue;
        struct troupe_value value;
        enum troupe_status status = troupe_graph_value(graph, names[i], &value);
        free(targets);
        if (status == TROUPE_OK)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "target \"%s\": wants a node's name without a port",
                                      names[i]);
        return troupe_status_prefix(status, "target \"%s\": ", names[i]);
    }
    *out = targets;
    return TROUPE_OK;
}

static enum troupe_status signature_make(const struct troupe_graph *graph,
                                         const struct troupe_run *run, struct troupe_signature *out)
{
    struct troupe_signature signature = {.feed_count = run->feed_count,
                                         .fetch_count = run->fetch_count,
                                         .target_count = run->target_count,
                                         .staleness = run->staleness};
    enum troupe_status status =
        signature_values(graph, run->feeds, run->feed_count, "feed", &signature.feeds);
    if (status == TROUPE_OK)
        status =
            signature_values(graph, run->fetches, run->fetch_count, "fetch", &signature.fetches);
    if (status == TROUPE_OK)
        status = signature_targets(graph, run->targets, run->target_count, &signature.targets);
    for (int i = 1; i < run->feed_count && status == TROUPE_OK; i++)
        for (int j = 0; j < i && status == TROUPE_OK; j++)
            if (signature.feeds[i].node == signature.feeds[j].node &&
                signature.feeds[i].port == signature.feeds[j].port)
                status = troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"%s\" is fed twice",
                                            run->feeds[i]);
    if (status == TROUPE_OK && run->fetch_count == 0 && run->target_count == 0)
        status =
            troupe_status_fail(TROUPE_INVALID_ARGUMENT, "nothing to run: give a fetch or a target");
    if (status != TROUPE_OK) {
        signature_fini(&signature);
        return status;
    }
    *out = signature;
    return TROUPE_OK;
}

static bool same_values(const struct troupe_value *a, const struct troupe_value *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i].node != b[i].node || a[i].port != b[i].port)
            return false;
    return true;
}

static bool same_signature(const struct troupe_signature *a, const struct troupe_signature *b)
{
    return a->feed_count == b->feed_count && a->fetch_count == b->fetch_count &&
           a->target_count == b->target_count && a->staleness == b->staleness &&
           same_values(a->feeds, b->feeds, a->feed_count) &&
           same_values(a->fetches, b->fetches, a->fetch_count) &&
           memcmp(a->targets, b->targets, (size_t)a->target_count * sizeof(int)) == 0;
}

/* What of a node must be the same on every rank. */
static uint64_t node_hash(const struct troupe_graph *graph, int number)
{
    const struct troupe_node *node = &graph->nodes[number];
    uint64_t hash = troupe_hash_string(TROUPE_HASH_START, node->name);
    hash = troupe_hash_string(hash, node->schema->op->name);
    hash = troupe_hash_u64(hash, (uint64_t)node->rank);
    for (int i = 0; i < node->input_count; i++) {
        hash = troupe_hash_string(hash, graph->nodes[node->inputs[i].node].name);
        hash = troupe_hash_u64(hash, (uint64_t)node->inputs[i].port);
    }
    for (int i = 0; i < node->control_count; i++)
        hash = troupe_hash_string(hash, graph->nodes[node->controls[i]].name);
    for (int i = 0; i < node->attr_count; i++) {
        hash = troupe_hash_string(hash, node->attrs[i].name);
        hash = troupe_attr_hash(hash, &node->attrs[i].value);
    }
    return hash;
}

/* Rank 0: compares another rank's hashes with its own. */
static enum troupe_status compare_hashes(const struct troupe_plan *plan,
                                         const struct troupe_letter *letter)
{
    const struct troupe_graph *graph = plan->session->graph;
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, letter->data, letter->bytes);
    uint64_t count = troupe_wire_get_u64(&reader);
    if (count != (uint64_t)plan->partition.order_count)
        return troupe_status_fail(
            TROUPE_INTERNAL, "the plan of rank %d has %llu nodes and that of rank 0 has %d",
            letter->from, (unsigned long long)count, plan->partition.order_count);
    for (int i = 0; i < plan->partition.order_count; i++) {
        int node = plan->partition.order[i];
        if (troupe_wire_get_u64(&reader) != node_hash(graph, node))
            return troupe_status_fail(TROUPE_INTERNAL,
                                      "the plans of rank 0 and rank %d differ, first at node "
                                      "\"%s\"",
                                      letter->from, graph->nodes[node].name);
    }
    return troupe_wire_close(&reader, "plan hashes");
}

static enum troupe_status send_hashes(const struct troupe_plan *plan)
{
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_wire_put_u64(&text, (uint64_t)plan->partition.order_count);
    for (int i = 0; i < plan->partition.order_count; i++)
        troupe_wire_put_u64(&text, node_hash(plan->session->graph, plan->partition.order[i]));
    enum troupe_status status = troupe_session_send(plan->session, 0, TROUPE_MESSAGE_HASHES, &text);
    troupe_text_fini(&text);
    return status;
}

/* All ranks find out whether all of them made the plan, and the same one. `status` says whether
 * this rank did. */
static enum troupe_status agree_on_plan(struct troupe_plan *plan, enum troupe_status status)
{
    struct troupe_session *session = plan->session;
    int size = session->runtime->transport->size;
    if (size == 1)
        return status;
    if (session->runtime->transport->rank == 0) {
        for (int i = 1; i < size; i++) {
            struct troupe_letter *letter;
            enum troupe_status other =
                troupe_session_await(session, TROUPE_MESSAGE_HASHES, &letter);
            if (other == TROUPE_OK) {
                if (status == TROUPE_OK)
                    status = compare_hashes(plan, letter);
                free(letter);
            } else if (status == TROUPE_OK) {
                status = other;
            }
        }
    } else {
        enum troupe_status sent = send_hashes(plan);
        if (sent != TROUPE_OK)
            return sent;
    }
    return troupe_session_agree(session, status, 0);
}

static enum troupe_status check_feed_shapes(const struct troupe_session *session,
                                            const struct troupe_run *run,
                                            const struct troupe_signature *signature)
{
    for (int i = 0; i < run->feed_count; i++) {
        const struct troupe_node *node = &session->graph->nodes[signature->feeds[i].node];
        int port = signature->feeds[i].port;
        const struct troupe_tensor *value = run->feed_values[i];
        if (troupe_tensor_dtype(value) != node->output_dtypes[port])
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "feed \"%s\": wants %s, got %s",
                                      run->feeds[i], troupe_dtype_name(node->output_dtypes[port]),
                                      troupe_dtype_name(troupe_tensor_dtype(value)));
        struct troupe_shape merged, given = troupe_shape_of(value);
        if (troupe_shape_merge(&node->output_shapes[port], &given, &merged) == TROUPE_OK)
            continue;
        char want[TROUPE_SHAPE_TEXT_MAX], got[TROUPE_SHAPE_TEXT_MAX];
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "feed \"%s\": wants shape %s, got %s", run->feeds[i],
            troupe_shape_print(&node->output_shapes[port], want), troupe_shape_print(&given, got));
    }
    return TROUPE_OK;
}

/* The last fetch is what the run goes on until. */
static enum troupe_status check_until(const struct troupe_session *session,
                                      const struct troupe_run *run, struct troupe_value value)
{
    const struct troupe_node *node = &session->graph->nodes[value.node];
    const struct troupe_shape *shape = &node->output_shapes[value.port];
    char text[TROUPE_SHAPE_TEXT_MAX];
    if (node->output_dtypes[value.port] == TROUPE_BOOL && shape->rank <= 0)
        return TROUPE_OK;
    return troupe_status_fail(
        TROUPE_INVALID_ARGUMENT, "until \"%s\": wants a bool scalar, is %s of shape %s", run->until,
        troupe_dtype_name(node->output_dtypes[value.port]), troupe_shape_print(shape, text));
}

/* The `instance`-th plan of a signature; with -1 the first in which no run is in progress. Its
 * number is *found, which without such a plan is that of the next one to be made. */
static struct troupe_plan *find_plan(const struct troupe_session *session,
                                     const struct troupe_signature *signature, int instance,
                                     int *found)
{
    *found = 0;
    for (int i = 0; i < session->plan_count; i++) {
        struct troupe_plan *plan = session->plans[i];
        if (!same_signature(&plan->signature, signature))
            continue;
        if (*found == instance || (instance < 0 && !plan->request))
            return plan;
        (*found)++;
    }
    return NULL;
}

enum troupe_status troupe_plan_check(struct troupe_session *session, const struct troupe_run *run,
                                     struct troupe_plan **idle, int *instance)
{
    struct troupe_signature signature;
    if (run->steps < 0 || run->timeout_ms < 0 || run->first_step < 0)
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT,
            "steps is %lld, timeout_ms %lld, first_step %lld: each wants 0 or "
            "more",
            (long long)run->steps, (long long)run->timeout_ms, (long long)run->first_step);
    if (run->staleness < 0 || run->staleness > TROUPE_STALENESS_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "staleness is %d: wants 0 to %d",
                                  run->staleness, TROUPE_STALENESS_MAX);
    enum troupe_status status = signature_make(session->graph, run, &signature);
    if (status != TROUPE_OK)
        return status;
    if (run->until)
        status = check_until(session, run, signature.fetches[run->fetch_count - 1]);
    if (status == TROUPE_OK && session->runtime->transport->rank == 0)
        status = check_feed_shapes(session, run, &signature);
    if (status == TROUPE_OK) {
        pthread_mutex_lock(&session->lock);
        *idle = find_plan(session, &signature, -1, instance);
        pthread_mutex_unlock(&session->lock);
    }
    signature_fini(&signature);
    return status;
}

static void parallel_run(struct troupe_parallel *self, int64_t total, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end), void *context)
{
    struct troupe_plan *plan = troupe_container_of(self, struct troupe_plan, parallel);
    troupe_pool_parallel_for(plan->session->runtime->pool, troupe_worker_current(), total, grain,
                             body, context);
}

static enum troupe_status build(struct troupe_plan *plan)
{
    struct troupe_session *session = plan->session;
    enum troupe_status status = troupe_partition_make(
        session->graph, session->runtime->transport->size, &plan->signature, &plan->partition);
    if (status == TROUPE_OK)
        status = troupe_runtime_take_tags(session->runtime,
                                          plan->partition.tag_count * session->window +
                                              (int)plan->partition.groups.count,
                                          &plan->first_tag);
    if (status == TROUPE_OK)
        status = troupe_stage_create(session->window, &plan->stage);
    if (status != TROUPE_OK)
        return status;
    struct troupe_stage_hooks hooks = {
        .failed = troupe_run_failed, .completed = troupe_run_completed, .context = plan};
    troupe_stage_set_hooks(plan->stage, &hooks);
    return troupe_plan_cast(plan);
}

static enum troupe_status plan_create(struct troupe_session *session,
                                      struct troupe_signature *signature, struct troupe_plan **out)
{
    struct troupe_plan *plan = troupe_calloc(1, sizeof(*plan));
    if (!plan) {
        signature_fini(signature);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    plan->session = session;
    plan->signature = *signature;
    plan->parallel.width = troupe_pool_workers(session->runtime->pool);
    plan->parallel.run = parallel_run;
    plan->last = troupe_calloc((size_t)signature->fetch_count + 1, sizeof(*plan->last));
    enum troupe_status status = plan->last ? build(plan) : TROUPE_RESOURCE_EXHAUSTED;
    status = agree_on_plan(plan, status);
    if (status != TROUPE_OK) {
        troupe_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TROUPE_OK;
}

static enum troupe_status cache_room(struct troupe_session *session)
{
    if (session->plan_count < session->plan_capacity)
        return TROUPE_OK;
    int capacity = session->plan_capacity ? 2 * session->plan_capacity : 8;
    struct troupe_plan **grown =
        troupe_reallocarray(session->plans, (size_t)capacity, sizeof(struct troupe_plan *));
    if (!grown)
        return TROUPE_RESOURCE_EXHAUSTED;
    session->plans = grown;
    session->plan_capacity = capacity;
    return TROUPE_OK;
}

enum troupe_status troupe_plan_get(struct troupe_session *session, const struct troupe_run *run,
                                   int instance, struct troupe_plan **out)
{
    struct troupe_signature signature;
    int found;
    enum troupe_status status = signature_make(session->graph, run, &signature);
    if (status != TROUPE_OK)
        return status;
    struct troupe_plan *plan = find_plan(session, &signature, instance, &found);
    if (plan) {
        signature_fini(&signature);
        *out = plan;
        return TROUPE_OK;
    }
    status = cache_room(session);
    if (status != TROUPE_OK) {
        signature_fini(&signature);
        return status;
    }
    status = plan_create(session, &signature, &plan);
    if (status != TROUPE_OK)
        return status;
    session->plans[session->plan_count++] = plan;
    *out = plan;
    return TROUPE_OK;
}

void troupe_plan_destroy(struct troupe_plan *plan)
{
    if (!plan)
        return;
    troupe_stage_destroy(plan->stage);
    for (int i = 0; i < plan->frame_stage_count; i++)
        troupe_stage_destroy(plan->frame_stages[i]);
    free(plan->frame_stages);
    for (int i = 0; i < plan->part_count; i++)
        plan->parts[i]->destroy(plan->parts[i]);
    free(plan->parts);
    for (int i = 0; plan->last && i < plan->signature.fetch_count; i++)
        troupe_tensor_unref(plan->last[i]);
    free(plan->last);
    troupe_partition_fini(&plan->partition);
    signature_fini(&plan->signature);
    free(plan);
}
