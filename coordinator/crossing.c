/* Values that cross from rank to rank. Invariant: crossings are in the order in which a walk over
 * the nodes in topological order first meets them, then those that frames need, the same on every
 * rank. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/partition.h"

/* The crossings being found, with their room. */
struct finder {
    const struct troupe_graph *graph;
    const struct troupe_signature *signature;
    struct troupe_partition *partition;
    size_t capacity;
};

int troupe_partition_find(const struct troupe_partition *partition, struct troupe_value value,
                          int to_rank)
{
    for (int i = partition->first_crossing[value.node]; i >= 0; i = partition->crossings[i].next)
        if (partition->crossings[i].value.port == value.port &&
            partition->crossings[i].to_rank == to_rank)
            return i;
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

static enum troupe_status make_room(struct finder *finder)
{
    struct troupe_partition *partition = finder->partition;
    if ((size_t)partition->crossing_count < finder->capacity)
        return TROUPE_OK;
    size_t capacity = finder->capacity ? 2 * finder->capacity : 64;
    struct troupe_crossing *grown =
        troupe_reallocarray(partition->crossings, capacity, sizeof(*grown));
    if (!grown)
        return TROUPE_RESOURCE_EXHAUSTED;
    partition->crossings = grown;
    finder->capacity = capacity;
    return TROUPE_OK;
}

static enum troupe_status crossing_add(struct finder *finder, struct troupe_value value,
                                       int to_rank)
{
    const struct troupe_graph *graph = finder->graph;
    struct troupe_partition *partition = finder->partition;
    int from_rank = troupe_signature_source_rank(finder->signature, graph, value);
    if (from_rank == to_rank || troupe_partition_find(partition, value, to_rank) >= 0)
        return TROUPE_OK;
    const struct troupe_node *node = &graph->nodes[value.node];
    if (value.port >= 0 && node->output_dtypes[value.port] == TROUPE_RESOURCE) {
        char text[TROUPE_NODE_TEXT_MAX];
        return troupe_status_fail(
            TROUPE_UNIMPLEMENTED, "%s: a resource lives on rank %d and does not travel to rank %d",
            troupe_node_describe(graph, value.node, text), from_rank, to_rank);
    }
    enum troupe_status status = make_room(finder);
    if (status != TROUPE_OK)
        return status;
    int frame = troupe_frames_out(graph, partition->use.frames, value.node);
    struct troupe_crossing crossing = {
        .value = value,
        .from_rank = from_rank,
        .to_rank = to_rank,
        .next = partition->first_crossing[value.node],
        .frame = frame,
        .slots = partition->use.slots[frame],
        .tag = partition->tag_count,
        .is_control = value.port < 0,
    };
    crossing_set_size(graph, &crossing);
    /* A fed value may have any shape that its placeholder allows: its own is not known here. */
    if (value.port >= 0 && troupe_signature_feed(finder->signature, value) >= 0)
        crossing.is_static = false;
    partition->tag_count += (crossing.is_static ? 1 : 2) * crossing.slots;
    partition->first_crossing[value.node] = partition->crossing_count;
    partition->crossings[partition->crossing_count++] = crossing;
    return TROUPE_OK;
}

/* A node on a rank uses a value: it comes from its own node, or, when that has no place, from
 * where its node takes it. */
static enum troupe_status use_value(struct finder *finder, struct troupe_value value, int rank)
{
    const struct troupe_node *node = &finder->graph->nodes[value.node];
    if (!troupe_node_has_no_place(node))
        return crossing_add(finder, value, rank);
    bool is_enter = node->schema->op->flow == TROUPE_FLOW_ENTER;
    if (is_enter && *troupe_frame_use_entered(&finder->partition->use, value.node, rank))
        return TROUPE_OK;
    enum troupe_status status = use_value(finder, node->inputs[0], rank);
    for (int i = 0; i < node->control_count && status == TROUPE_OK; i++)
        status = use_value(finder, (struct troupe_value){node->controls[i], -1}, rank);
    if (is_enter)
        *troupe_frame_use_entered(&finder->partition->use, value.node, rank) = true;
    return status;
}

static enum troupe_status node_crossings(struct finder *finder, int number)
{
    const struct troupe_node *node = &finder->graph->nodes[number];
    enum troupe_status status = TROUPE_OK;
    if (troupe_node_has_no_place(node))
        return TROUPE_OK;
    for (int i = 0; i < node->input_count && status == TROUPE_OK; i++)
        if (!troupe_node_input_is_ref(node, i))
            status = use_value(finder, node->inputs[i], node->rank);
    for (int i = 0; i < node->control_count && status == TROUPE_OK; i++)
        status = use_value(finder, (struct troupe_value){node->controls[i], -1}, node->rank);
    return status;
}

/* On each rank that takes part in a frame its ticket, and whether there is another iteration. */
static enum troupe_status frame_crossings(struct finder *finder, int frame)
{
    const struct troupe_frame_use *use = &finder->partition->use;
    int ticket = use->ticket[frame], cond = use->frames->frames[frame].loop_cond;
    enum troupe_status status = TROUPE_OK;
    for (int rank = 0; rank < use->ranks && status == TROUPE_OK; rank++) {
        if (ticket < 0 || !troupe_frame_use_member(use, frame, rank))
            continue;
        status = use_value(finder, (struct troupe_value){ticket, 0}, rank);
        if (status == TROUPE_OK)
            status = crossing_add(finder, (struct troupe_value){cond, 0}, rank);
    }
    return status;
}

enum troupe_status troupe_crossings_find(const struct troupe_graph *graph,
                                         const struct troupe_signature *signature,
                                         struct troupe_partition *partition)
{
    struct finder finder = {.graph = graph, .signature = signature, .partition = partition};
    enum troupe_status status = TROUPE_OK;
    partition->first_crossing = troupe_calloc((size_t)graph->node_count + 1, sizeof(int));
    if (!partition->first_crossing)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < graph->node_count; i++)
        partition->first_crossing[i] = -1;
    for (int i = 0; i < partition->order_count && status == TROUPE_OK; i++)
        status = node_crossings(&finder, partition->order[i]);
    for (int i = 1; i < partition->use.frames->count && status == TROUPE_OK; i++)
        status = frame_crossings(&finder, i);
    for (int i = 0; i < signature->fetch_count && status == TROUPE_OK; i++)
        status = use_value(&finder, signature->fetches[i], 0);
    return status;
}
