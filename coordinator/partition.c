/* Prune and partition. Invariant: crossings are in the order in which a walk over the nodes in
 * topological order first meets them, the same on every rank. */
#include "coordinator/partition.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int troupe_signature_feed(const struct troupe_signature *signature, struct troupe_value value)
{
    for (int i = 0; i < signature->feed_count; i++)
        if (signature->feeds[i].node == value.node && signature->feeds[i].port == value.port)
            return i;
    return -1;
}

int troupe_signature_source_rank(const struct troupe_signature *signature,
                                 const struct troupe_graph *graph, struct troupe_value value)
{
    if (value.port >= 0 && troupe_signature_feed(signature, value) >= 0)
        return 0;
    return graph->nodes[value.node].rank;
}

bool troupe_node_input_is_ref(const struct troupe_node *node, int index)
{
    /* Only single arguments are refs, so that argument and input numbers agree up to the first
     * list; no op has a ref after a list. */
    const struct troupe_op_schema *schema = node->schema;
    if (index >= schema->input_count)
        return false;
    for (int i = 0; i <= index; i++)
        if (schema->inputs[i].number_attr || schema->inputs[i].list_attr)
            return false;
    return schema->inputs[index].is_ref;
}

int troupe_node_ref_owner(const struct troupe_graph *graph, int node, int index)
{
    int owner = graph->nodes[node].inputs[index].node;
    while (graph->nodes[owner].input_count > 0 && troupe_node_input_is_ref(&graph->nodes[owner], 0))
        owner = graph->nodes[owner].inputs[0].node;
    return owner;
}

bool troupe_node_is_all_reduce(const struct troupe_node *node)
{
    return strcmp(node->schema->op->name, "AllReduce") == 0;
}

/* A depth-first walk with its own stack, for graphs of any depth. */
struct walk {
    const struct troupe_graph *graph;
    const struct troupe_signature *signature;
    bool *keep;
    int *stack;
    int depth;
};

static void walk_push(struct walk *walk, int node)
{
    if (!walk->keep[node]) {
        walk->keep[node] = true;
        walk->stack[walk->depth++] = node;
    }
}

static void walk_push_value(struct walk *walk, struct troupe_value value)
{
    if (troupe_signature_feed(walk->signature, value) < 0)
        walk_push(walk, value.node);
}

static void walk_inputs(struct walk *walk, int number)
{
    const struct troupe_node *node = &walk->graph->nodes[number];
    for (int i = 0; i < node->input_count; i++) {
        if (!troupe_node_input_is_ref(node, i)) {
            walk_push_value(walk, node->inputs[i]);
            continue;
        }
        /* The ref itself is no token; but an op that updates it before (Assign) must run. */
        int from = node->inputs[i].node;
        if (from != troupe_node_ref_owner(walk->graph, number, i))
            walk_push(walk, from);
    }
    for (int i = 0; i < node->control_count; i++)
        walk_push(walk, node->controls[i]);
}

/* A collective runs on all its ranks or on none. */
static void walk_group(struct walk *walk, int number)
{
    const struct troupe_graph *graph = walk->graph;
    const struct troupe_node *node = &graph->nodes[number];
    if (!troupe_node_is_all_reduce(node))
        return;
    const struct troupe_attr *key = troupe_attr_find(node->attrs, node->attr_count, "key");
    for (int i = 0; i < graph->node_count; i++) {
        const struct troupe_node *other = &graph->nodes[i];
        if (other->schema != node->schema)
            continue;
        const struct troupe_attr *its = troupe_attr_find(other->attrs, other->attr_count, "key");
        if (strcmp(its->value.s, key->value.s) == 0)
            walk_push(walk, i);
    }
}

static enum troupe_status prune(const struct troupe_graph *graph,
                                const struct troupe_signature *signature, bool *keep)
{
    struct walk walk = {.graph = graph, .signature = signature, .keep = keep};
    walk.stack = troupe_calloc((size_t)graph->node_count + 1, sizeof(int));
    if (!walk.stack)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < signature->fetch_count; i++)
        walk_push_value(&walk, signature->fetches[i]);
    for (int i = 0; i < signature->target_count; i++)
        walk_push(&walk, signature->targets[i]);
    while (walk.depth > 0) {
        int number = walk.stack[--walk.depth];
        walk_inputs(&walk, number);
        walk_group(&walk, number);
    }
    free(walk.stack);
    return TROUPE_OK;
}

/* The partition being made, with the room of its crossings. */
struct crossing_set {
    struct troupe_partition *partition;
    size_t capacity;
};

int troupe_partition_find(const struct troupe_partition *partition, struct troupe_value value,
                          int to_rank)
{
    /* Crossings of one node lie close together; a plan has few thousands at most. */
    for (int i = partition->crossing_count - 1; i >= 0; i--) {
        const struct troupe_crossing *crossing = &partition->crossings[i];
        if (crossing->value.node == value.node && crossing->value.port == value.port &&
            crossing->to_rank == to_rank)
            return i;
    }
    return -1;
}

static void crossing_set_size(const struct troupe_graph *graph, struct troupe_crossing *crossing)
{
    if (crossing->is_control) {
        crossing->is_static = true;
        return;
    }
    const struct troupe_node *node = &graph->nodes[crossing->value.node];
    enum troupe_dtype dtype = node->output_dtypes[crossing->value.port];
    const struct troupe_shape *shape = &node->output_shapes[crossing->value.port];
    /* How many bytes counted elements make is known when they are packed. */
    if (!troupe_shape_is_known(shape) || troupe_dtype_is_counted(dtype))
        return;
    crossing->is_static = true;
    crossing->bytes = (size_t)troupe_shape_elements(shape) * troupe_dtype_size(dtype);
}

static enum troupe_status crossing_add(const struct troupe_graph *graph,
                                       const struct troupe_signature *signature,
                                       struct crossing_set *set, struct troupe_value value,
                                       int to_rank)
{
    struct troupe_partition *partition = set->partition;
    int from_rank = troupe_signature_source_rank(signature, graph, value);
    if (from_rank == to_rank || troupe_partition_find(partition, value, to_rank) >= 0)
        return TROUPE_OK;
    const struct troupe_node *node = &graph->nodes[value.node];
    if (value.port >= 0 && node->output_dtypes[value.port] == TROUPE_RESOURCE) {
        char text[TROUPE_NODE_TEXT_MAX];
        return troupe_status_fail(
            TROUPE_UNIMPLEMENTED, "%s: a resource lives on rank %d and does not travel to rank %d",
            troupe_node_describe(graph, value.node, text), from_rank, to_rank);
    }
    if ((size_t)partition->crossing_count == set->capacity) {
        size_t capacity = set->capacity ? 2 * set->capacity : 64;
        struct troupe_crossing *grown =
            troupe_reallocarray(partition->crossings, capacity, sizeof(*grown));
        if (!grown)
            return TROUPE_RESOURCE_EXHAUSTED;
        partition->crossings = grown;
        set->capacity = capacity;
    }
    struct troupe_crossing crossing = {
        .value = value,
        .from_rank = from_rank,
        .to_rank = to_rank,
        .tag = partition->tag_count,
        .is_control = value.port < 0,
    };
    crossing_set_size(graph, &crossing);
    /* A fed value may have any shape that its placeholder allows: its own is not known here. */
    if (value.port >= 0 && troupe_signature_feed(signature, value) >= 0)
        crossing.is_static = false;
    partition->tag_count += crossing.is_static ? 1 : 2;
    partition->crossings[partition->crossing_count++] = crossing;
    return TROUPE_OK;
}

static enum troupe_status node_crossings(const struct troupe_graph *graph,
                                         const struct troupe_signature *signature,
                                         struct crossing_set *set, int number)
{
    const struct troupe_node *node = &graph->nodes[number];
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < node->input_count && status == TROUPE_OK; i++)
        if (!troupe_node_input_is_ref(node, i))
            status = crossing_add(graph, signature, set, node->inputs[i], node->rank);
    for (int i = 0; i < node->control_count && status == TROUPE_OK; i++)
        status = crossing_add(graph, signature, set, (struct troupe_value){node->controls[i], -1},
                              node->rank);
    return status;
}

static enum troupe_status find_crossings(const struct troupe_graph *graph,
                                         const struct troupe_signature *signature,
                                         struct troupe_partition *partition)
{
    struct crossing_set set = {.partition = partition};
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < partition->order_count && status == TROUPE_OK; i++)
        status = node_crossings(graph, signature, &set, partition->order[i]);
    for (int i = 0; i < signature->fetch_count && status == TROUPE_OK; i++)
        status = crossing_add(graph, signature, &set, signature->fetches[i], 0);
    return status;
}

enum troupe_status troupe_partition_make(const struct troupe_graph *graph,
                                         const struct troupe_signature *signature,
                                         struct troupe_partition *out)
{
    struct troupe_partition partition = {0};
    size_t count = (size_t)graph->node_count + 1;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    partition.keep = troupe_calloc(count, sizeof(bool));
    partition.order = troupe_calloc(count, sizeof(int));
    if (!partition.keep || !partition.order)
        goto fini;
    status = prune(graph, signature, partition.keep);
    if (status == TROUPE_OK)
        status = troupe_graph_sort(graph, partition.order);
    if (status != TROUPE_OK)
        goto fini;
    for (int i = 0; i < graph->node_count; i++)
        if (partition.keep[partition.order[i]])
            partition.order[partition.order_count++] = partition.order[i];
    status = find_crossings(graph, signature, &partition);
    if (status != TROUPE_OK)
        goto fini;
    *out = partition;
    return TROUPE_OK;

fini:
    troupe_partition_fini(&partition);
    return status;
}

void troupe_partition_fini(struct troupe_partition *partition)
{
    free(partition->order);
    free(partition->keep);
    free(partition->crossings);
    memset(partition, 0, sizeof(*partition));
}
