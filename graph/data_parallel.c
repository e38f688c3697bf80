/* The strategy "data-parallel". Replica 0 keeps the names of the nodes, replica r > 0 has
 * "replica_r/NAME". Invariant: origins are those of replica 0, so that random initial values, whose
 * numbers follow the origin, are equal on every replica. */
#include "graph/data_parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/rewrite.h"
#include "graph/sections.h"
#include "graph/train.h"

struct replicator {
    struct troupe_graph *graph;
    int replicas;
    int node_count; /* before replication */
    int *order;
    bool *keep;
    int *copies; /* [replica][node]: its copy; replica 0: itself */
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

static enum troupe_status set_initializer(struct troupe_node *node, const char *prefix)
{
    const struct troupe_attr *attr = troupe_attr_find(node->attrs, node->attr_count, "initializer");
    if (!attr || attr->count == 0)
        return TROUPE_OK;
    char *name = troupe_asprintf("%s%s", prefix, attr->value.s);
    if (!name)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = troupe_node_set_attr(node, "initializer", troupe_attr_string(name));
    free(name);
    return status;
}

static enum troupe_status copy_node(struct replicator *replicator, int number, int replica)
{
    struct troupe_graph *graph = replicator->graph;
    const struct troupe_node *node = &graph->nodes[number];
    char prefix[32];
    replica_prefix(replica, prefix);
    char *name = troupe_asprintf("%s%s", prefix, node->name);
    struct troupe_value *inputs = troupe_calloc((size_t)node->input_count + 1, sizeof(*inputs));
    int *controls = troupe_calloc((size_t)node->control_count + 1, sizeof(int));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    int copy = -1;
    if (name && inputs && controls) {
        for (int i = 0; i < node->input_count; i++)
            inputs[i] = (struct troupe_value){*copy_of(replicator, replica, node->inputs[i].node),
                                              node->inputs[i].port};
        for (int i = 0; i < node->control_count; i++)
            controls[i] = *copy_of(replicator, replica, node->controls[i]);
        struct troupe_node_spec spec = {.name = name,
                                        .op = node->schema->op->name,
                                        .origin = node->origin,
                                        .inputs = inputs,
                                        .input_count = node->input_count,
                                        .controls = controls,
                                        .control_count = node->control_count,
                                        .attrs = node->attrs,
                                        .attr_count = node->attr_count,
                                        .line = node->line,
                                        .column = node->column};
        status = troupe_graph_add(graph, &spec, &copy);
    }
    free(name);
    free(inputs);
    free(controls);
    if (status != TROUPE_OK)
        return status;
    *copy_of(replicator, replica, number) = copy;
    status = set_device(&graph->nodes[copy], replica);
    if (status == TROUPE_OK)
        status = set_initializer(&graph->nodes[copy], prefix);
    return status == TROUPE_OK ? set_shard(replicator, &graph->nodes[copy], replica) : status;
}

static enum troupe_status replicate(struct replicator *replicator)
{
    struct troupe_graph *graph = replicator->graph;
    enum troupe_status status = troupe_graph_sort(graph, replicator->order);
    for (int replica = 1; replica < replicator->replicas; replica++)
        for (int i = 0; i < replicator->node_count && status == TROUPE_OK; i++)
            if (replicator->keep[replicator->order[i]])
                status = copy_node(replicator, replicator->order[i], replica);
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

/* ---- Averages ---- */

/* The share of the global batch that a replica takes: of its rows when a sharded source says how
 * many there are, and equal otherwise. */
static double weight_of(const struct replicator *replicator, int replica)
{
    const struct troupe_graph *graph = replicator->graph;
    int replicas = replicator->replicas;
    for (int i = 0; i < replicator->node_count; i++) {
        const struct troupe_node *node = &graph->nodes[i];
        if (!replicator->keep[i] || !(node->schema->op->flags & TROUPE_OP_SHARDED))
            continue;
        const struct troupe_attr *batch = troupe_attr_find(node->attrs, node->attr_count, "batch");
        if (!batch || batch->value.i < 1)
            continue;
        int64_t rows = batch->value.i / replicas + (replica < batch->value.i % replicas ? 1 : 0);
        return (double)rows / (double)batch->value.i;
    }
    return 1.0 / replicas;
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
        char group_name[] = "group", key_name[] = "key", prefix[32];
        struct troupe_named_attr attrs[] = {
            {group_name, troupe_attr_list_int(group, (size_t)replicator->replicas)},
            {key_name, troupe_attr_string(key)},
        };
        replica_prefix(replica, prefix);
        char *name = troupe_asprintf("%s%s", prefix, key);
        int number;
        struct troupe_new_node node = {.name = name,
                                       .op = "AllReduce",
                                       .inputs = mine,
                                       .input_count = count,
                                       .attrs = attrs,
                                       .attr_count = 2,
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
        snprintf(key, sizeof(key), "train/%s/%s", what, troupe_dtype_name(dtypes[d]));
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
        status = troupe_train_differentiate(graph, prefix, weight_of(replicator, i), &all[i]);
        count = all[i].count;
    }
    if (status == TROUPE_OK) {
        values = troupe_calloc((size_t)replicas * (size_t)count, sizeof(*values));
        status = values ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < replicas && status == TROUPE_OK; i++)
        memcpy(values + i * count, all[i].gradients, (size_t)count * sizeof(*values));
    if (status == TROUPE_OK)
        status = reduce_all(replicator, "all_reduce", values, count);
    int trains[2] = {-1, -1}; /* of replica 0, and the one just made */
    for (int i = 0; i < replicas && status == TROUPE_OK; i++) {
        char prefix[32];
        replica_prefix(i, prefix);
        memcpy(all[i].gradients, values + i * count, (size_t)count * sizeof(*values));
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

/* value * weight on one replica. */
static enum troupe_status weigh(struct replicator *replicator, const char *name,
                                struct troupe_value value, int replica, struct troupe_value *out)
{
    struct troupe_graph *graph = replicator->graph;
    char prefix[32];
    replica_prefix(replica, prefix);
    char *weight_name = troupe_asprintf("%strain/show/%s/weight", prefix, name);
    char *product_name = troupe_asprintf("%strain/show/%s/weighted", prefix, name);
    int weight, product = -1;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (weight_name && product_name)
        status = troupe_graph_new_scalar(graph, weight_name, dtype_of(graph, value),
                                         weight_of(replicator, replica), value.node, &weight);
    if (status == TROUPE_OK) {
        struct troupe_value inputs[] = {value, {weight, 0}};
        struct troupe_new_node node = {.name = product_name,
                                       .op = "Mul",
                                       .inputs = inputs,
                                       .input_count = 2,
                                       .like = value.node};
        status = troupe_graph_new_node(graph, &node, &product);
    }
    free(weight_name);
    free(product_name);
    if (status == TROUPE_OK)
        *out = (struct troupe_value){product, 0};
    return status;
}

static bool can_be_averaged(const struct troupe_graph *graph, struct troupe_value value)
{
    const struct troupe_node *node = &graph->nodes[value.node];
    enum troupe_dtype dtype = node->output_dtypes[value.port];
    return (dtype == TROUPE_FLOAT32 || dtype == TROUPE_FLOAT64) &&
           troupe_shape_is_known(&node->output_shapes[value.port]);
}

static enum troupe_status rename_shown(const struct troupe_graph *graph,
                                       struct troupe_named_value *shown, struct troupe_value value)
{
    char *name = troupe_asprintf("%s:%d", graph->nodes[value.node].name, value.port);
    if (!name)
        return TROUPE_RESOURCE_EXHAUSTED;
    free(shown->value);
    shown->value = name;
    return TROUPE_OK;
}

/* Shown values become their averages over the replicas; what is no float of known shape stays that
 * of replica 0. */
static enum troupe_status average_shown(struct replicator *replicator)
{
    struct troupe_graph *graph = replicator->graph;
    const struct troupe_loop_section *loop = train_loop(graph);
    int replicas = replicator->replicas, count = 0;
    if (!loop || loop->show_count == 0)
        return TROUPE_OK;
    int *which = troupe_calloc((size_t)loop->show_count, sizeof(int));
    struct troupe_value *values =
        troupe_calloc((size_t)loop->show_count * (size_t)replicas, sizeof(*values));
    struct troupe_value *first = troupe_calloc((size_t)loop->show_count, sizeof(*first));
    enum troupe_status status = which && values && first ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < loop->show_count && status == TROUPE_OK; i++) {
        struct troupe_value value;
        status = troupe_graph_value(graph, loop->show[i].value, &value);
        if (status == TROUPE_OK && can_be_averaged(graph, value)) {
            first[count] = value;
            which[count++] = i;
        }
    }
    for (int replica = 0; replica < replicas; replica++)
        for (int i = 0; i < count && status == TROUPE_OK; i++) {
            struct troupe_value value = {*copy_of(replicator, replica, first[i].node),
                                         first[i].port};
            status = weigh(replicator, loop->show[which[i]].name, value, replica,
                           &values[replica * count + i]);
        }
    if (status == TROUPE_OK && count > 0)
        status = reduce_all(replicator, "show", values, count);
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = rename_shown(graph, &loop->show[which[i]], values[i]);
    free(which);
    free(values);
    free(first);
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
    replicator.order = troupe_calloc(nodes, sizeof(int));
    replicator.keep = troupe_calloc(nodes, sizeof(bool));
    replicator.copies = troupe_calloc(nodes * (size_t)replicator.replicas, sizeof(int));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (replicator.order && replicator.keep && replicator.copies)
        status = choose(&replicator);
    if (status == TROUPE_OK)
        status = replicate(&replicator);
    if (status == TROUPE_OK)
        status = train_replicas(&replicator);
    if (status == TROUPE_OK)
        status = average_shown(&replicator);
    free(replicator.order);
    free(replicator.keep);
    free(replicator.copies);
    return status;
}
