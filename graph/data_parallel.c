/* The strategy "data-parallel". Replica 0 keeps the names of the nodes, replica r > 0 has
 * "replica_r/NAME". Invariant: origins are those of replica 0, so that random initial values, whose
 * numbers follow the origin, are equal on every replica. */
#include "graph/data_parallel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/node.h"
#include "graph/rewrite.h"
#include "graph/sections.h"
#include "graph/train.h"

struct replicator {
    struct troupe_graph *graph;
    int replicas;
    int node_count; /* before replication */
    bool *keep;
    int *copies;     /* [replica][node]: its copy; replica 0: itself */
    double *weights; /* [replica]: its share of the global batch */
};

static int *copy_of(struct replicator *replicator, int replica, int node)
{
    return &replicator->copies[(size_t)replica * (size_t)replicator->node_count + (size_t)node];
}

static void replica_prefix(int replica, char out[32])
{
    if (replica == 0)
        out[0] = 0;
    else
        snprintf(out, 32, "replica_%d/", replica);
}

static const struct troupe_loop_section *train_loop(const struct troupe_graph *graph)
{
    for (int i = 0; i < graph->sections->loop_count; i++)
        for (int j = 0; j < graph->sections->loops[i].run_count; j++)
            if (strcmp(graph->sections->loops[i].run[j], "train") == 0)
                return &graph->sections->loops[i];
    return NULL;
}

/* ---- Which nodes are replicated ---- */

static enum troupe_status keep_value(struct replicator *replicator, const char *name)
{
    struct troupe_value value;
    enum troupe_status status = troupe_graph_value(replicator->graph, name, &value);
    if (status == TROUPE_OK)
        status = troupe_graph_ancestors(replicator->graph, &value.node, 1, NULL, replicator->keep);
    return status;
}

/* A node that is run, which need not have outputs. */
static enum troupe_status keep_node(struct replicator *replicator, const char *name)
{
    int node = troupe_graph_find(replicator->graph, name);
    if (node < 0)
        return keep_value(replicator, name);
    return troupe_graph_ancestors(replicator->graph, &node, 1, NULL, replicator->keep);
}

/* Initial values of kept variables, until no more are found. */
static enum troupe_status keep_initializers(struct replicator *replicator)
{
    const struct troupe_graph *graph = replicator->graph;
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < graph->node_count; i++) {
            const struct troupe_node *node = &graph->nodes[i];
            const struct troupe_attr *attr =
                troupe_attr_find(node->attrs, node->attr_count, "initializer");
            struct troupe_value value;
            if (!replicator->keep[i] || !attr || attr->count == 0)
                continue;
            enum troupe_status status = troupe_graph_value(graph, attr->value.s, &value);
            if (status != TROUPE_OK)
                return status;
            if (replicator->keep[value.node])
                continue;
            changed = true;
            status = troupe_graph_ancestors(graph, &value.node, 1, NULL, replicator->keep);
            if (status != TROUPE_OK)
                return status;
        }
    }
    return TROUPE_OK;
}

static enum troupe_status choose(struct replicator *replicator)
{
    const struct troupe_graph *graph = replicator->graph;
    const struct troupe_loop_section *loop = train_loop(graph);
    enum troupe_status status = keep_value(replicator, graph->sections->train->loss);
    for (int i = 0; loop && i < loop->show_count && status == TROUPE_OK; i++)
        status = keep_value(replicator, loop->show[i].value);
    for (int i = 0; loop && i < loop->mean_count && status == TROUPE_OK; i++)
        status = keep_value(replicator, loop->mean[i].value);
    for (int i = 0; loop && i < loop->run_count && status == TROUPE_OK; i++)
        if (strcmp(loop->run[i], "train") != 0)
            status = keep_node(replicator, loop->run[i]);
    if (status == TROUPE_OK)
        status = keep_initializers(replicator);
    for (int i = 0; i < graph->node_count && status == TROUPE_OK; i++) {
        char text[TROUPE_NODE_TEXT_MAX];
        if (replicator->keep[i] && graph->nodes[i].device[0])
            status =
                troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                   "%s: has device \"%s\", and data-parallel puts a replica "
                                   "on every rank: leave one of them out",
                                   troupe_node_describe(graph, i, text), graph->nodes[i].device);
    }
    return status;
}

/* ---- Replication ---- */

static enum troupe_status set_device(struct troupe_node *node, int replica)
{
    char *device = troupe_asprintf("/job:worker/task:%d", replica);
    if (!device)
        return TROUPE_RESOURCE_EXHAUSTED;
    free(node->device);
    node->device = device;
    node->replica = replica;
    return TROUPE_OK;
}

static enum troupe_status set_shard(struct replicator *replicator, struct troupe_node *node,
                                    int replica)
{
    if (!(node->schema->op->flags & TROUPE_OP_SHARDED))
        return TROUPE_OK;
    enum troupe_status status = troupe_node_set_attr(node, "shard_index", troupe_attr_int(replica));
    if (status == TROUPE_OK)
        status = troupe_node_set_attr(node, "shard_count", troupe_attr_int(replicator->replicas));
    return status;
}

/* Puts the prefix before a name that an attr holds, if the node has it. */
static enum troupe_status set_prefix(struct troupe_node *node, const char *attr_name,
                                     const char *prefix)
{
    const struct troupe_attr *attr = troupe_attr_find(node->attrs, node->attr_count, attr_name);
    if (!attr || attr->count == 0)
        return TROUPE_OK;
    char *name = troupe_asprintf("%s%s", prefix, attr->value.s);
    if (!name)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = troupe_node_set_attr(node, attr_name, troupe_attr_string(name));
    free(name);
    return status;
}

/* Names of other nodes, and of a replica's own loops. */
static enum troupe_status set_names(struct troupe_node *node, const char *prefix)
{
    enum troupe_status status = set_prefix(node, "initializer", prefix);
    if (status == TROUPE_OK && node->schema->op->flow == TROUPE_FLOW_ENTER)
        status = set_prefix(node, "frame_name", prefix);
    return status;
}

/* Copies a node without its inputs, which may not be there yet. */
static enum troupe_status copy_node(struct replicator *replicator, int number, int replica)
{
    struct troupe_graph *graph = replicator->graph;
    const struct troupe_node *node = &graph->nodes[number];
    char prefix[32];
    replica_prefix(replica, prefix);
    char *name = troupe_asprintf("%s%s", prefix, node->name);
    if (!name)
        return TROUPE_RESOURCE_EXHAUSTED;
    struct troupe_node_spec spec = {.name = name,
                                    .op = node->schema->op->name,
                                    .origin = node->origin,
                                    .attrs = node->attrs,
                                    .attr_count = node->attr_count,
                                    .line = node->line,
                                    .column = node->column};
    int copy = -1;
    enum troupe_status status = troupe_graph_add(graph, &spec, &copy);
    free(name);
    if (status != TROUPE_OK)
        return status;
    *copy_of(replicator, replica, number) = copy;
    status = set_device(&graph->nodes[copy], replica);
    if (status == TROUPE_OK)
        status = set_names(&graph->nodes[copy], prefix);
    return status == TROUPE_OK ? set_shard(replicator, &graph->nodes[copy], replica) : status;
}

static enum troupe_status link_copy(struct replicator *replicator, int number, int replica)
{
    const struct troupe_node *node = &replicator->graph->nodes[number];
    struct troupe_node *copy = &replicator->graph->nodes[*copy_of(replicator, replica, number)];
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < node->input_count && status == TROUPE_OK; i++) {
        int from = *copy_of(replicator, replica, node->inputs[i].node);
        status = troupe_node_add_input(copy, (struct troupe_value){from, node->inputs[i].port});
    }
    for (int i = 0; i < node->control_count && status == TROUPE_OK; i++)
        status = troupe_node_append_control(copy, *copy_of(replicator, replica, node->controls[i]));
    return status == TROUPE_OK ? troupe_node_settle_controls(copy) : status;
}

static enum troupe_status copy_all(struct replicator *replicator, int replica)
{
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < replicator->node_count && status == TROUPE_OK; i++)
        if (replicator->keep[i])
            status = copy_node(replicator, i, replica);
    for (int i = 0; i < replicator->node_count && status == TROUPE_OK; i++)
        if (replicator->keep[i])
            status = link_copy(replicator, i, replica);
    return status;
}

static enum troupe_status replicate(struct replicator *replicator)
{
    struct troupe_graph *graph = replicator->graph;
    enum troupe_status status = TROUPE_OK;
    for (int replica = 1; replica < replicator->replicas && status == TROUPE_OK; replica++)
        status = copy_all(replicator, replica);
    for (int i = 0; i < replicator->node_count && status == TROUPE_OK; i++) {
        *copy_of(replicator, 0, i) = i;
        if (!replicator->keep[i])
            continue;
        status = set_device(&graph->nodes[i], 0);
        if (status == TROUPE_OK)
            status = set_shard(replicator, &graph->nodes[i], 0);
    }
    if (status != TROUPE_OK)
        return status;
    /* Shards have other shapes than the whole batch. */
    struct troupe_diagnostics diagnostics;
    troupe_diagnostics_init(&diagnostics);
    status = troupe_graph_infer(graph, 0, &diagnostics);
    enum troupe_status closed = troupe_diagnostics_close(&diagnostics);
    troupe_diagnostics_fini(&diagnostics);
    return closed != TROUPE_OK ? closed : status;
}

/* What the loop runs beside "train" it runs on every replica. */
static enum troupe_status tie_targets(struct replicator *replicator)
{
    struct troupe_graph *graph = replicator->graph;
    const struct troupe_loop_section *loop = train_loop(graph);
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; loop && i < loop->run_count; i++) {
        int target = troupe_graph_find(graph, loop->run[i]);
        if (target < 0 || target >= replicator->node_count)
            continue;
        for (int replica = 1; replica < replicator->replicas && status == TROUPE_OK; replica++)
            status = troupe_graph_add_control(graph, target, *copy_of(replicator, replica, target));
    }
    return status;
}

/* ---- Averages ---- */

/* Equal shares, until a sharded source says how many rows each replica gets: the first ones one
 * more where they cannot be equal. All sources must agree, since there is one loss to average. */
static enum troupe_status find_weights(struct replicator *replicator)
{
    const struct troupe_graph *graph = replicator->graph;
    int replicas = replicator->replicas, known = -1;
    char text[TROUPE_NODE_TEXT_MAX], other[TROUPE_NODE_TEXT_MAX];
    for (int replica = 0; replica < replicas; replica++)
        replicator->weights[replica] = 1.0 / replicas;
    for (int i = 0; i < replicator->node_count; i++) {
        const struct troupe_node *node = &graph->nodes[i];
        const struct troupe_attr *attr = troupe_attr_find(node->attrs, node->attr_count, "batch");
        if (!replicator->keep[i] || !(node->schema->op->flags & TROUPE_OP_SHARDED) || !attr)
            continue;
        int64_t batch = attr->value.i;
        if (batch < replicas)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "%s: data-parallel over %d replicas wants a batch of %d or "
                                      "more, this is %lld",
                                      troupe_node_describe(graph, i, text), replicas, replicas,
                                      (long long)batch);
        for (int replica = 0; replica < replicas; replica++) {
            int64_t rows = batch / replicas + (replica < batch % replicas ? 1 : 0);
            double weight = (double)rows / (double)batch;
            if (known >= 0 && fabs(weight - replicator->weights[replica]) > 1e-12)
                return troupe_status_fail(
                    TROUPE_INVALID_ARGUMENT,
                    "%s and %s divide their batches differently over %d replicas: batches that %d "
                    "divides would do",
                    troupe_node_describe(graph, known, other), troupe_node_describe(graph, i, text),
                    replicas, replicas);
            replicator->weights[replica] = weight;
        }
        known = i;
    }
    return TROUPE_OK;
}

/* One AllReduce on each replica over the values of one dtype: values[replica * count + i]. On
 * success they are replaced by its outputs. */
static enum troupe_status add_all_reduce(struct replicator *replicator, const char *key,
                                         struct troupe_value *values, int count)
{
    struct troupe_graph *graph = replicator->graph;
    int64_t *group = troupe_calloc((size_t)replicator->replicas, sizeof(*group));
    if (!group)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < replicator->replicas; i++)
        group[i] = troupe_graph_worker_rank(graph, i);
    for (int replica = 0; replica < replicator->replicas && status == TROUPE_OK; replica++) {
        struct troupe_value *mine = values + (size_t)replica * (size_t)count;
        char group_name[] = "group", key_name[] = "key", reduction_name[] = "reduction";
        char prefix[32];
        struct troupe_named_attr attrs[] = {
            {group_name, troupe_attr_list_int(group, (size_t)replicator->replicas)},
            {key_name, troupe_attr_string(key)},
            {reduction_name, troupe_attr_string("sum")},
        };
        replica_prefix(replica, prefix);
        char *name = troupe_asprintf("%s%s", prefix, key);
        int number;
        struct troupe_new_node node = {.name = name,
                                       .op = "AllReduce",
                                       .inputs = mine,
                                       .input_count = count,
                                       .attrs = attrs,
                                       .attr_count = 3,
                                       .like = mine[0].node};
        status = name ? troupe_graph_new_node(graph, &node, &number) : TROUPE_RESOURCE_EXHAUSTED;
        free(name);
        for (int i = 0; i < count && status == TROUPE_OK; i++)
            mine[i] = (struct troupe_value){number, i};
    }
    free(group);
    return status;
}

static enum troupe_dtype dtype_of(const struct troupe_graph *graph, struct troupe_value value)
{
    return graph->nodes[value.node].output_dtypes[value.port];
}

/* Reduces values[replica * count + i] over the replicas, dtype by dtype. */
static enum troupe_status reduce_all(struct replicator *replicator, const char *what,
                                     struct troupe_value *values, int count)
{
    static const enum troupe_dtype dtypes[] = {TROUPE_FLOAT32, TROUPE_FLOAT64};
    struct troupe_graph *graph = replicator->graph;
    int replicas = replicator->replicas;
    struct troupe_value *some = troupe_calloc((size_t)count * (size_t)replicas + 1, sizeof(*some));
    enum troupe_status status = some ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    for (int d = 0; d < 2 && status == TROUPE_OK; d++) {
        int chosen = 0;
        for (int i = 0; i < count; i++)
            chosen += dtype_of(graph, values[i]) == dtypes[d];
        if (chosen == 0)
            continue;
        for (int replica = 0; replica < replicas; replica++)
            for (int i = 0, at = 0; i < count; i++)
                if (dtype_of(graph, values[i]) == dtypes[d])
                    some[replica * chosen + at++] = values[replica * count + i];
        char key[64];
        snprintf(key, sizeof(key), "%s/%s", what, troupe_dtype_name(dtypes[d]));
        status = add_all_reduce(replicator, key, some, chosen);
        for (int replica = 0; replica < replicas && status == TROUPE_OK; replica++)
            for (int i = 0, at = 0; i < count; i++)
                if (dtype_of(graph, values[i]) == dtypes[d])
                    values[replica * count + i] = some[replica * chosen + at++];
        /* What was replaced keeps its dtype, so that the next round passes over it. */
    }
    free(some);
    return status;
}

static enum troupe_status train_replicas(struct replicator *replicator)
{
    struct troupe_graph *graph = replicator->graph;
    int replicas = replicator->replicas, count = 0;
    struct troupe_train_gradients *all = troupe_calloc((size_t)replicas, sizeof(*all));
    struct troupe_value *values = NULL;
    enum troupe_status status = all ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < replicas && status == TROUPE_OK; i++) {
        char prefix[32];
        replica_prefix(i, prefix);
        status = troupe_train_differentiate(graph, prefix, replicator->weights[i], &all[i]);
        count = all[i].count;
    }
    if (status == TROUPE_OK) {
        values = troupe_calloc((size_t)replicas * (size_t)count, sizeof(*values));
        status = values ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < replicas && status == TROUPE_OK; i++)
        memcpy(values + (size_t)i * (size_t)count, all[i].gradients,
               (size_t)count * sizeof(*values));
    if (status == TROUPE_OK)
        status = reduce_all(replicator, "train/all_reduce", values, count);
    int trains[2] = {-1, -1}; /* of replica 0, and the one just made */
    for (int i = 0; i < replicas && status == TROUPE_OK; i++) {
        char prefix[32];
        replica_prefix(i, prefix);
        memcpy(all[i].gradients, values + (size_t)i * (size_t)count,
               (size_t)count * sizeof(*values));
        status = troupe_train_update(graph, prefix, &all[i], &trains[i > 0]);
        if (status == TROUPE_OK && i > 0)
            status = troupe_graph_add_control(graph, trains[0], trains[1]);
    }
    for (int i = 0; all && i < replicas; i++)
        troupe_train_gradients_fini(&all[i]);
    free(all);
    free(values);
    return status;
}

/* ---- What the training loop shows ---- */

/* A result to average: where its name is kept, and whether it is a mean over all elements. */
struct result {
    const char *name;
    char **value;
    bool is_mean;
    struct troupe_value source; /* on replica 0 */
};

static enum troupe_status new_like(struct troupe_graph *graph, char *name, const char *op,
                                   struct troupe_value a, int b, struct troupe_value *out)
{
    struct troupe_value inputs[] = {a, {b, 0}};
    struct troupe_new_node node = {
        .name = name, .op = op, .inputs = inputs, .input_count = 2, .like = a.node};
    int number;
    enum troupe_status status =
        name ? troupe_graph_new_node(graph, &node, &number) : TROUPE_RESOURCE_EXHAUSTED;
    free(name);
    if (status == TROUPE_OK)
        *out = (struct troupe_value){number, 0};
    return status;
}

/* The mean of all elements: replicas have different numbers of them, and the weights make up for
 * it. */
static enum troupe_status flatten(struct troupe_graph *graph, const char *base,
                                  struct troupe_value *value)
{
    int32_t axes[TROUPE_RANK_MAX];
    int rank = graph->nodes[value->node].output_shapes[value->port].rank, number;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    char *name = troupe_asprintf("%s/axes", base);
    enum troupe_status status =
        name ? troupe_graph_new_ints(graph, name, axes, rank, value->node, &number)
             : TROUPE_RESOURCE_EXHAUSTED;
    free(name);
    return status == TROUPE_OK
               ? new_like(graph, troupe_asprintf("%s/mean", base), "Mean", *value, number, value)
               : status;
}

/* A result on one replica, times the replica's weight. */
static enum troupe_status weigh(struct replicator *replicator, const struct result *result,
                                int replica, struct troupe_value *out)
{
    struct troupe_graph *graph = replicator->graph;
    struct troupe_value value = {*copy_of(replicator, replica, result->source.node),
                                 result->source.port};
    char prefix[32];
    replica_prefix(replica, prefix);
    char *base = troupe_asprintf("%sshow/%s", prefix, result->name);
    char *name = base ? troupe_asprintf("%s/weight", base) : NULL;
    int weight;
    enum troupe_status status = name ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK && result->is_mean)
        status = flatten(graph, base, &value);
    if (status == TROUPE_OK)
        status = troupe_graph_new_scalar(graph, name, dtype_of(graph, value),
                                         replicator->weights[replica], value.node, &weight);
    if (status == TROUPE_OK)
        status = new_like(graph, troupe_asprintf("%s/weighted", base), "Mul", value, weight, out);
    free(name);
    free(base);
    return status;
}

/* Floating, and of one shape on every replica, or to be made a scalar. */
static bool can_be_averaged(struct replicator *replicator, const struct result *result)
{
    const struct troupe_graph *graph = replicator->graph;
    struct troupe_value value = result->source;
    enum troupe_dtype dtype = dtype_of(graph, value);
    const struct troupe_shape *shape = &graph->nodes[value.node].output_shapes[value.port];
    if (!replicator->keep[value.node] || (dtype != TROUPE_FLOAT32 && dtype != TROUPE_FLOAT64))
        return false;
    if (result->is_mean)
        return shape->rank >= 0;
    for (int replica = 0; replica < replicator->replicas; replica++) {
        int copy = *copy_of(replicator, replica, value.node);
        if (!troupe_shape_equal(shape, &graph->nodes[copy].output_shapes[value.port]))
            return false;
    }
    return troupe_shape_is_known(shape);
}

static enum troupe_status add_result(struct replicator *replicator, const char *name, char **value,
                                     bool is_mean, struct result *results, int *count)
{
    struct result result = {name, value, is_mean, TROUPE_VALUE_NONE};
    enum troupe_status status = troupe_graph_value(replicator->graph, *value, &result.source);
    if (status == TROUPE_OK && can_be_averaged(replicator, &result))
        results[(*count)++] = result;
    return status;
}

/* What there is to average: the loop's results, or the loss where no loop is written. */
static enum troupe_status find_results(struct replicator *replicator, struct result *results,
                                       int *count)
{
    const struct troupe_graph *graph = replicator->graph;
    const struct troupe_loop_section *loop = train_loop(graph);
    enum troupe_status status = TROUPE_OK;
    *count = 0;
    if (!loop)
        return add_result(replicator, "loss", &graph->sections->train->loss, false, results, count);
    for (int i = 0; i < loop->show_count && status == TROUPE_OK; i++)
        status =
            add_result(replicator, loop->show[i].name, &loop->show[i].value, false, results, count);
    for (int i = 0; i < loop->mean_count && status == TROUPE_OK; i++)
        status =
            add_result(replicator, loop->mean[i].name, &loop->mean[i].value, true, results, count);
    return status;
}

static enum troupe_status replace_name(const struct troupe_graph *graph, char **value,
                                       struct troupe_value by)
{
    char *name = troupe_asprintf("%s:%d", graph->nodes[by.node].name, by.port);
    if (!name)
        return TROUPE_RESOURCE_EXHAUSTED;
    free(*value);
    *value = name;
    return TROUPE_OK;
}

/* Results become their averages over the replicas; what cannot be averaged stays that of replica
 * 0. */
static enum troupe_status average_results(struct replicator *replicator)
{
    struct troupe_graph *graph = replicator->graph;
    const struct troupe_loop_section *loop = train_loop(graph);
    int replicas = replicator->replicas, count = 0;
    size_t room = loop ? (size_t)loop->show_count + (size_t)loop->mean_count + 1 : 1;
    struct result *results = troupe_calloc(room, sizeof(*results));
    struct troupe_value *values = troupe_calloc(room * (size_t)replicas, sizeof(*values));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (results && values)
        status = find_results(replicator, results, &count);
    for (int replica = 0; replica < replicas; replica++)
        for (int i = 0; i < count && status == TROUPE_OK; i++)
            status = weigh(replicator, &results[i], replica, &values[replica * count + i]);
    if (status == TROUPE_OK && count > 0)
        status = reduce_all(replicator, "show/all_reduce", values, count);
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = replace_name(graph, results[i].value, values[i]);
    free(results);
    free(values);
    return status;
}

enum troupe_status troupe_graph_data_parallel(struct troupe_graph *graph, int ranks)
{
    struct replicator replicator = {.graph = graph,
                                    .replicas = troupe_graph_worker_count(graph, ranks),
                                    .node_count = graph->node_count};
    if (replicator.replicas < 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "data-parallel: the cluster has no job \"worker\"");
    if (replicator.replicas == 1)
        return troupe_graph_train(graph);
    size_t nodes = (size_t)graph->node_count + 1;
    replicator.keep = troupe_calloc(nodes, sizeof(bool));
    replicator.copies = troupe_calloc(nodes * (size_t)replicator.replicas, sizeof(int));
    replicator.weights = troupe_calloc((size_t)replicator.replicas, sizeof(double));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (replicator.keep && replicator.copies && replicator.weights)
        status = choose(&replicator);
    if (status == TROUPE_OK)
        status = find_weights(&replicator);
    if (status == TROUPE_OK)
        status = replicate(&replicator);
    if (status == TROUPE_OK)
        status = tie_targets(&replicator);
    if (status == TROUPE_OK)
        status = train_replicas(&replicator);
    if (status == TROUPE_OK)
        status = average_results(&replicator);
    free(replicator.keep);
    free(replicator.copies);
    free(replicator.weights);
    return status;
}
