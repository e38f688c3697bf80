/* An order of nodes in which every frame is one block. Invariant: an edge between two nodes stands,
 * in the innermost frame around both, for an edge between what they are there: themselves, or the
 * frames that they are in. Kahn's sort runs on these items, frame by frame. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/partition.h"

/* An item is a node, or, from node_count on, a frame. */
struct sorter {
    const struct troupe_graph *graph;
    const struct troupe_frames *frames;
    int items;
    int *missing;       /* of an item: items before it that are not placed yet; -1: not there */
    int *first, *edges; /* users of item i: edges[first[i]] to edges[first[i + 1] - 1] */
    int *waiting;       /* of a frame: the first item that may be placed, -1 */
    int *last, *next;   /* the last of them; after an item */
    int *order;
    int placed;
};

static bool is_back_edge(const struct troupe_graph *graph, int from)
{
    return graph->nodes[from].schema->op->flow == TROUPE_FLOW_NEXT_ITERATION;
}

/* Climbs from two nodes to the items that stand for them in the innermost frame around both; false
 * when they are the same. */
static bool lift(const struct sorter *sorter, int *from, int *to)
{
    const struct troupe_frames *frames = sorter->frames;
    int from_frame = frames->frame_of[*from], to_frame = frames->frame_of[*to];
    while (from_frame != to_frame) {
        bool deeper = frames->frames[from_frame].depth > frames->frames[to_frame].depth;
        int *item = deeper ? from : to, *frame = deeper ? &from_frame : &to_frame;
        *item = sorter->graph->node_count + *frame;
        *frame = frames->frames[*frame].parent;
    }
    return *from != *to;
}

typedef void edge_fn(struct sorter *sorter, int from, int to);

static void for_each_edge(struct sorter *sorter, const int *nodes, int count, edge_fn *visit)
{
    for (int i = 0; i < count; i++) {
        const struct troupe_node *node = &sorter->graph->nodes[nodes[i]];
        for (int k = 0; k < node->input_count + node->control_count; k++) {
            int from = k < node->input_count ? node->inputs[k].node
                                             : node->controls[k - node->input_count];
            int to = nodes[i];
            /* A node that the plan does not keep (fed) is nobody's predecessor. */
            if (sorter->missing[from] >= 0 && !is_back_edge(sorter->graph, from) &&
                lift(sorter, &from, &to))
                visit(sorter, from, to);
        }
    }
}

static void count_edge(struct sorter *sorter, int from, int to)
{
    sorter->first[from + 2]++;
    sorter->missing[to]++;
}

static void store_edge(struct sorter *sorter, int from, int to)
{
    sorter->edges[sorter->first[from + 1]++] = to;
}

static void may_place(struct sorter *sorter, int frame, int item)
{
    sorter->next[item] = -1;
    if (sorter->waiting[frame] < 0)
        sorter->waiting[frame] = item;
    else
        sorter->next[sorter->last[frame]] = item;
    sorter->last[frame] = item;
}

static int item_frame(const struct sorter *sorter, int item)
{
    int nodes = sorter->graph->node_count;
    return item < nodes ? sorter->frames->frame_of[item]
                        : sorter->frames->frames[item - nodes].parent;
}

/* As deep as frames are nested in the graph. */
static void place_frame(struct sorter *sorter, int frame)
{
    for (int item; (item = sorter->waiting[frame]) >= 0;) {
        sorter->waiting[frame] = sorter->next[item];
        if (item < sorter->graph->node_count)
            sorter->order[sorter->placed++] = item;
        else
            place_frame(sorter, item - sorter->graph->node_count);
        for (int i = sorter->first[item]; i < sorter->first[item + 1]; i++)
            if (--sorter->missing[sorter->edges[i]] == 0)
                may_place(sorter, frame, sorter->edges[i]);
    }
}

/* Marks the items that are there. */
static void find_items(struct sorter *sorter, const int *nodes, int count)
{
    memset(sorter->missing, -1, (size_t)sorter->items * sizeof(int));
    for (int i = 0; i < count; i++) {
        sorter->missing[nodes[i]] = 0;
        for (int frame = sorter->frames->frame_of[nodes[i]]; frame > 0;
             frame = sorter->frames->frames[frame].parent)
            sorter->missing[sorter->graph->node_count + frame] = 0;
    }
}

static enum troupe_status sort(struct sorter *sorter, const int *nodes, int count)
{
    find_items(sorter, nodes, count);
    for_each_edge(sorter, nodes, count, count_edge);
    for (int i = 2; i <= sorter->items + 1; i++)
        sorter->first[i] += sorter->first[i - 1];
    sorter->edges = troupe_calloc((size_t)sorter->first[sorter->items + 1] + 1, sizeof(int));
    if (!sorter->edges)
        return TROUPE_RESOURCE_EXHAUSTED;
    for_each_edge(sorter, nodes, count, store_edge);
    for (int i = 0; i < sorter->frames->count; i++)
        sorter->waiting[i] = -1;
    for (int i = 0; i < sorter->items; i++)
        if (sorter->missing[i] == 0)
            may_place(sorter, item_frame(sorter, i), i);
    place_frame(sorter, 0);
    if (sorter->placed < count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: a loop needs a value that itself depends on the loop",
                                  sorter->graph->path);
    return TROUPE_OK;
}

enum troupe_status troupe_frame_order(const struct troupe_graph *graph,
                                      const struct troupe_frames *frames, int *order, int count)
{
    if (frames->count == 1)
        return TROUPE_OK;
    struct sorter sorter = {.graph = graph, .frames = frames};
    sorter.items = graph->node_count + frames->count;
    size_t items = (size_t)sorter.items + 2, frame_count = (size_t)frames->count;
    sorter.missing = troupe_calloc(items, sizeof(int));
    sorter.first = troupe_calloc(items, sizeof(int));
    sorter.next = troupe_calloc(items, sizeof(int));
    sorter.order = troupe_calloc(items, sizeof(int));
    sorter.waiting = troupe_calloc(frame_count, sizeof(int));
    sorter.last = troupe_calloc(frame_count, sizeof(int));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (sorter.missing && sorter.first && sorter.next && sorter.order && sorter.waiting &&
        sorter.last)
        status = sort(&sorter, order, count);
    if (status == TROUPE_OK)
        memcpy(order, sorter.order, (size_t)count * sizeof(int));
    free(sorter.missing);
    free(sorter.first);
    free(sorter.next);
    free(sorter.order);
    free(sorter.waiting);
    free(sorter.last);
    free(sorter.edges);
    return status;
}
