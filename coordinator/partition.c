/* Prune and partition. Invariant: what a plan keeps is closed: with a node, all that it needs. */
#include "coordinator/partition.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/splice.h"

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

const char *troupe_node_all_reduce_key(const struct troupe_node *node)
{
    return troupe_attr_find(node->attrs, node->attr_count, "key")->value.s;
}

/* A depth-first walk with its own stack, for graphs of any depth. */
struct walk {
    const struct troupe_graph *graph;
    const struct troupe_frames *frames;
    const struct troupe_signature *signature;
    bool *keep;
    int *stack;
    int depth;
    struct troupe_name_map groups; /* of AllReduce nodes, by key: the last node of each */
    int *group_next;               /* by node number: the one before it in its group, -1 */
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

/* A loop needs whoever says when it ends, a call all of its function. */
static void walk_frame(struct walk *walk, int number)
{
    const struct troupe_frame *frame = &walk->frames->frames[walk->frames->frame_of[number]];
    const struct troupe_function *called =
        troupe_node_called(walk->graph, &walk->graph->nodes[number]);
    if (frame->loop_cond >= 0)
        walk_push(walk, frame->loop_cond);
    for (int i = 0; called && i < called->node_count; i++)
        walk_push(walk, called->first + i);
}

static enum troupe_status find_groups(struct walk *walk)
{
    for (int i = 0; i < walk->graph->node_count; i++) {
        const struct troupe_node *node = &walk->graph->nodes[i];
        if (!troupe_node_is_all_reduce(node))
            continue;
        const char *key = troupe_node_all_reduce_key(node);
        walk->group_next[i] = troupe_name_map_get(&walk->groups, key);
        if (troupe_name_map_put(&walk->groups, key, i) != 0)
            return TROUPE_RESOURCE_EXHAUSTED;
    }
    return TROUPE_OK;
}

/* A collective runs on all its ranks or on none. */
static void walk_group(struct walk *walk, int number)
{
    const struct troupe_node *node = &walk->graph->nodes[number];
    if (!troupe_node_is_all_reduce(node))
        return;
    int other = troupe_name_map_get(&walk->groups, troupe_node_all_reduce_key(node));
    for (; other >= 0; other = walk->group_next[other])
        walk_push(walk, other);
}

static void walk_all(struct walk *walk)
{
    const struct troupe_signature *signature = walk->signature;
    for (int i = 0; i < signature->fetch_count; i++)
        walk_push_value(walk, signature->fetches[i]);
    for (int i = 0; i < signature->target_count; i++)
        walk_push(walk, signature->targets[i]);
    while (walk->depth > 0) {
        int number = walk->stack[--walk->depth];
        walk_inputs(walk, number);
        walk_frame(walk, number);
        walk_group(walk, number);
    }
}

static enum troupe_status prune(const struct troupe_graph *graph,
                                const struct troupe_frames *frames,
                                const struct troupe_signature *signature, bool *keep)
{
    struct walk walk = {.graph = graph, .frames = frames, .signature = signature, .keep = keep};
    size_t count = (size_t)graph->node_count + 1;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    troupe_name_map_init(&walk.groups);
    walk.stack = troupe_calloc(count, sizeof(int));
    walk.group_next = troupe_calloc(count, sizeof(int));
    if (walk.stack && walk.group_next)
        status = find_groups(&walk);
    if (status == TROUPE_OK)
        walk_all(&walk);
    troupe_name_map_fini(&walk.groups);
    free(walk.group_next);
    free(walk.stack);
    return status;
}

/* Values inside a frame have one value per iteration: none to feed, none to fetch. */
static enum troupe_status check_signature(const struct troupe_graph *graph,
                                          const struct troupe_frames *frames,
                                          const struct troupe_signature *signature)
{
    const char *what = NULL;
    int node = -1;
    for (int i = 0; i < signature->feed_count && !what; i++)
        if (troupe_frames_out(graph, frames, signature->feeds[i].node) != 0) {
            what = "fed";
            node = signature->feeds[i].node;
        }
    for (int i = 0; i < signature->fetch_count && !what; i++)
        if (troupe_frames_out(graph, frames, signature->fetches[i].node) != 0) {
            what = "fetched";
            node = signature->fetches[i].node;
        }
    if (!what)
        return TROUPE_OK;
    char text[TROUPE_NODE_TEXT_MAX];
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "%s is inside of %s \"%s\" and cannot be %s: only what comes out of "
                              "it can",
                              troupe_node_describe(graph, node, text),
                              graph->nodes[node].function > 0 ? "function" : "loop",
                              frames->frames[frames->frame_of[node]].name, what);
}

static enum troupe_status number_groups(const struct troupe_graph *graph,
                                        struct troupe_partition *partition)
{
    for (int i = 0; i < partition->order_count; i++) {
        const struct troupe_node *node = &graph->nodes[partition->order[i]];
        if (!troupe_node_is_all_reduce(node))
            continue;
        const char *key = troupe_node_all_reduce_key(node);
        if (troupe_name_map_get(&partition->groups, key) < 0 &&
            troupe_name_map_put(&partition->groups, key, (int)partition->groups.count) != 0)
            return TROUPE_RESOURCE_EXHAUSTED;
    }
    return TROUPE_OK;
}

enum troupe_status troupe_partition_make(const struct troupe_graph *graph, int ranks,
                                         const struct troupe_signature *signature,
                                         struct troupe_partition *out)
{
    struct troupe_partition partition = {0};
    size_t count = (size_t)graph->node_count + 1;
    enum troupe_status status = troupe_frames_find(graph, &partition.frames);
    if (status == TROUPE_OK)
        status = check_signature(graph, partition.frames, signature);
    if (status != TROUPE_OK)
        goto fini;
    partition.keep = troupe_calloc(count, sizeof(bool));
    partition.order = troupe_calloc(count, sizeof(int));
    status = TROUPE_RESOURCE_EXHAUSTED;
    if (!partition.keep || !partition.order)
        goto fini;
    status = prune(graph, partition.frames, signature, partition.keep);
    if (status == TROUPE_OK)
        status = troupe_graph_sort(graph, partition.order);
    if (status != TROUPE_OK)
        goto fini;
    for (int i = 0; i < graph->node_count; i++)
        if (partition.keep[partition.order[i]])
            partition.order[partition.order_count++] = partition.order[i];
    status = number_groups(graph, &partition);
    if (status == TROUPE_OK)
        status =
            troupe_frame_order(graph, partition.frames, partition.order, partition.order_count);
    if (status == TROUPE_OK)
        status =
            troupe_frame_use_make(graph, partition.frames, partition.keep, ranks, &partition.use);
    if (status == TROUPE_OK)
        status = troupe_crossings_find(graph, signature, &partition);
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
    free(partition->first_crossing);
    troupe_name_map_fini(&partition->groups);
    troupe_frame_use_fini(&partition->use);
    troupe_frames_destroy(partition->frames);
    memset(partition, 0, sizeof(*partition));
}
