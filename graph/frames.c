/* Frames. Invariant: nodes are looked at in topological order, so that the frames of what a node
 * reads are known when it is its turn; the way back from a NextIteration is no part of that order
 * and is checked afterwards. */
#include "graph/frames.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/library.h"
#include "graph/node.h"

#define FRAME_TEXT_MAX 128

struct finder {
    const struct troupe_graph *graph;
    struct troupe_frames *frames;
    int *order;
    int capacity;                   /* of frames->frames */
    struct troupe_name_map by_name; /* frame_name -> frame */
};

static enum troupe_flow flow_of(const struct troupe_node *node)
{
    return node->schema->op->flow;
}

static const struct troupe_attr *node_attr(const struct troupe_node *node, const char *name)
{
    return troupe_attr_find(node->attrs, node->attr_count, name);
}

static bool enter_is_constant(const struct troupe_node *node)
{
    return node_attr(node, "is_constant")->value.b;
}

/* A ref is no value: the kernel reaches the state itself. Ops have no ref behind a list. */
static bool input_is_ref(const struct troupe_node *node, int index)
{
    const struct troupe_op_schema *schema = node->schema;

    for (int i = 0; i <= index && i < schema->input_count; i++) {
        if (schema->inputs[i].number_attr != NULL || schema->inputs[i].list_attr != NULL)
            return false;
    }
    return index < schema->input_count && schema->inputs[index].is_ref;
}

/* The producer of edge `edge` of a node, inputs first; -1 for a ref. */
static int edge_producer(const struct troupe_node *node, int edge)
{
    if (edge >= node->input_count)
        return node->controls[edge - node->input_count];
    return input_is_ref(node, edge) ? -1 : node->inputs[edge].node;
}

static int edge_count(const struct troupe_node *node)
{
    return node->input_count + node->control_count;
}

/* "node \"x\" (Add)", with its place where it has one. */
static enum troupe_status fail_at(const struct finder *finder, int node, const char *format, ...)
    TROUPE_PRINTF(3, 4);
static enum troupe_status fail_at(const struct finder *finder, int node, const char *format, ...)
{
    char where[TROUPE_NODE_TEXT_MAX], *message = NULL;
    enum troupe_status status;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&message, format, arguments) < 0)
        message = NULL;
    va_end(arguments);
    status = troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s: %s",
                                troupe_node_describe(finder->graph, node, where),
                                message != NULL ? message : "(no memory for the message)");
    free(message);
    return status;
}

static const char *frame_text(const struct finder *finder, int frame, char out[FRAME_TEXT_MAX])
{
    if (frame == 0)
        return "outside of all frames";
    if (finder->frames->frames[frame].function > 0) {
        snprintf(out, FRAME_TEXT_MAX, "in function \"%.100s\"", finder->frames->frames[frame].name);
        return out;
    }
    snprintf(out, FRAME_TEXT_MAX, "in frame \"%.100s\"", finder->frames->frames[frame].name);
    return out;
}

int troupe_frames_out(const struct troupe_graph *graph, const struct troupe_frames *frames,
                      int node)
{
    int frame = frames->frame_of[node];

    return flow_of(&graph->nodes[node]) == TROUPE_FLOW_EXIT && frame > 0
               ? frames->frames[frame].parent
               : frame;
}

/* The frame that a node's inputs are in; they have to agree. */
static enum troupe_status find_input_frame(const struct finder *finder, int number, int *out)
{
    const struct troupe_node *node = &finder->graph->nodes[number];
    int first = -1, found = node->function; /* functions have frames 1, 2, ... */

    for (int edge = 0; edge < edge_count(node); edge++) {
        int producer = edge_producer(node, edge), frame;
        char one[FRAME_TEXT_MAX], other[FRAME_TEXT_MAX];

        if (producer < 0 || troupe_op_is_back_edge(finder->graph->nodes[producer].schema))
            continue;
        frame = troupe_frames_out(finder->graph, finder->frames, producer);
        if (first < 0) {
            first = producer;
            found = frame;
        }
        if (frame != found)
            return fail_at(finder, number,
                           "its inputs are in different frames: \"%s\" is %s, \"%s\" %s; a value "
                           "goes into a frame through an Enter and comes out through an Exit",
                           finder->graph->nodes[first].name, frame_text(finder, found, one),
                           finder->graph->nodes[producer].name, frame_text(finder, frame, other));
    }
    *out = found;
    return TROUPE_OK;
}

static enum troupe_status frame_add(struct finder *finder, const struct troupe_frame *frame,
                                    int *out)
{
    struct troupe_frames *frames = finder->frames;

    if (frames->count == finder->capacity) {
        int capacity = finder->capacity > 0 ? 2 * finder->capacity : 4;
        struct troupe_frame *grown =
            troupe_reallocarray(frames->frames, (size_t)capacity, sizeof(*grown));

        if (grown == NULL)
            return TROUPE_RESOURCE_EXHAUSTED;
        frames->frames = grown;
        finder->capacity = capacity;
    }
    frames->frames[frames->count] = *frame;
    *out = frames->count++;
    return TROUPE_OK;
}

/* The frame that an Enter leads into: a new one, or the one that an Enter before it made. */
static enum troupe_status find_entered(struct finder *finder, int number, int parent, int *out)
{
    const struct troupe_node *node = &finder->graph->nodes[number];
    const char *name = node_attr(node, "frame_name")->value.s;
    int64_t parallel = node_attr(node, "parallel_iterations")->value.i;
    int found = troupe_name_map_get(&finder->by_name, name);
    struct troupe_frame frame = {
        .name = name, .parent = parent, .parallel_iterations = (int)parallel, .loop_cond = -1};
    enum troupe_status status;
    char one[FRAME_TEXT_MAX], other[FRAME_TEXT_MAX];

    if (name[0] == '\0')
        return fail_at(finder, number, "wants a \"frame_name\" that is not empty");
    if (parallel > TROUPE_PARALLEL_ITERATIONS_MAX)
        return fail_at(finder, number, "\"parallel_iterations\" wants at most %d, got %lld",
                       TROUPE_PARALLEL_ITERATIONS_MAX, (long long)parallel);
    if (found < 0) {
        frame.depth = finder->frames->frames[parent].depth + 1;
        status = frame_add(finder, &frame, out);
        if (status == TROUPE_OK && troupe_name_map_put(&finder->by_name, name, *out) != 0)
            status = TROUPE_RESOURCE_EXHAUSTED;
        return status;
    }
    *out = found;
    if (finder->frames->frames[found].parent != parent)
        return fail_at(finder, number,
                       "enters frame \"%s\" from a node %s, but others enter it from one %s: a "
                       "frame has one parent",
                       name, frame_text(finder, parent, one),
                       frame_text(finder, finder->frames->frames[found].parent, other));
    if (finder->frames->frames[found].parallel_iterations != parallel)
        return fail_at(finder, number,
                       "enters frame \"%s\" with \"parallel_iterations\" %lld, but others with %d",
                       name, (long long)parallel,
                       finder->frames->frames[found].parallel_iterations);
    return TROUPE_OK;
}

static enum troupe_status take_loop_cond(struct finder *finder, int number, int frame)
{
    int *loop_cond = &finder->frames->frames[frame].loop_cond;

    if (*loop_cond >= 0)
        return fail_at(finder, number, "frame \"%s\" has a LoopCond already, \"%s\"",
                       finder->frames->frames[frame].name, finder->graph->nodes[*loop_cond].name);
    *loop_cond = number;
    return TROUPE_OK;
}

static enum troupe_status place_node(struct finder *finder, int number)
{
    const struct troupe_node *node = &finder->graph->nodes[number];
    enum troupe_flow flow = flow_of(node);
    int frame = 0;
    enum troupe_status status = find_input_frame(finder, number, &frame);

    if (status == TROUPE_OK && flow == TROUPE_FLOW_ENTER)
        status = find_entered(finder, number, frame, &frame);
    if (status != TROUPE_OK)
        return status;
    finder->frames->frame_of[number] = frame;
    bool is_loop = frame > 0 && finder->frames->frames[frame].function == 0;
    if (!is_loop && (flow == TROUPE_FLOW_EXIT || flow == TROUPE_FLOW_NEXT_ITERATION ||
                     flow == TROUPE_FLOW_LOOP_COND))
        return fail_at(finder, number, "is in no frame: nothing before it is an Enter");
    if (flow == TROUPE_FLOW_LOOP_COND)
        return take_loop_cond(finder, number, frame);
    return TROUPE_OK;
}

/* A Merge that reads a NextIteration: its two inputs. */
static enum troupe_status check_loop_merge(const struct finder *finder, int number,
                                           struct troupe_loop_merge *out)
{
    const struct troupe_node *nodes = finder->graph->nodes, *node = &nodes[number], *enter;
    int next;

    if (node->input_count != 2)
        return fail_at(finder, number,
                       "reads a NextIteration and so wants two inputs, an Enter and a "
                       "NextIteration; it has %d",
                       node->input_count);
    next = troupe_op_is_back_edge(nodes[node->inputs[1].node].schema) ? 1 : 0;
    enter = &nodes[node->inputs[1 - next].node];
    if (flow_of(enter) != TROUPE_FLOW_ENTER || enter_is_constant(enter))
        return fail_at(finder, number,
                       "reads NextIteration \"%s\" and so wants an Enter that is not constant "
                       "beside it, got \"%s\" (%s)",
                       nodes[node->inputs[next].node].name, enter->name, enter->schema->op->name);
    *out = (struct troupe_loop_merge){number, 1 - next, next};
    return TROUPE_OK;
}

/* An edge that leads around a loop, or out of an Enter: only a loop's Merge may be at its end. */
static enum troupe_status check_edge(const struct finder *finder, int number, int from,
                                     bool is_loop_merge)
{
    const struct troupe_node *producer = &finder->graph->nodes[from];
    int frame = finder->frames->frame_of[number];
    bool is_back = troupe_op_is_back_edge(producer->schema);
    char one[FRAME_TEXT_MAX], other[FRAME_TEXT_MAX];

    if (is_back && !is_loop_merge)
        return fail_at(finder, number,
                       "reads NextIteration \"%s\"; only a Merge at the head of its loop may",
                       producer->name);
    if (is_back && finder->frames->frame_of[from] != frame)
        return fail_at(finder, number, "is %s, but NextIteration \"%s\" that it reads is %s",
                       frame_text(finder, frame, one), producer->name,
                       frame_text(finder, finder->frames->frame_of[from], other));
    if (is_back || is_loop_merge || flow_of(producer) != TROUPE_FLOW_ENTER ||
        enter_is_constant(producer))
        return TROUPE_OK;
    return fail_at(finder, number,
                   "reads Enter \"%s\", which has a value in the first iteration alone; wants a "
                   "Merge with a NextIteration between them, or \"is_constant\" true",
                   producer->name);
}

static bool is_at_loop_head(const struct finder *finder, const struct troupe_node *node)
{
    for (int i = 0; flow_of(node) == TROUPE_FLOW_MERGE && i < node->input_count; i++) {
        if (troupe_op_is_back_edge(finder->graph->nodes[node->inputs[i].node].schema))
            return true;
    }
    return false;
}

static enum troupe_status check_edges(const struct finder *finder, int number, bool is_loop_merge)
{
    const struct troupe_node *node = &finder->graph->nodes[number];
    enum troupe_status status = TROUPE_OK;

    for (int edge = 0; edge < edge_count(node) && status == TROUPE_OK; edge++) {
        int from = edge_producer(node, edge);

        if (from >= 0)
            status = check_edge(finder, number, from, is_loop_merge && edge < node->input_count);
    }
    return status;
}

/* The order, stably sorted by frame: each frame's nodes. */
static enum troupe_status list_nodes(const struct finder *finder)
{
    struct troupe_frames *frames = finder->frames;
    int *next = troupe_calloc((size_t)frames->count + 1, sizeof(*next)), used = 0;

    if (next == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < finder->graph->node_count; i++)
        frames->frames[frames->frame_of[i]].nodes.count++;
    for (int i = 0; i < frames->count; i++) {
        next[i] = used;
        frames->frames[i].nodes.nodes = frames->pool + used;
        used += frames->frames[i].nodes.count;
    }
    for (int i = 0; i < finder->graph->node_count; i++)
        frames->pool[next[frames->frame_of[finder->order[i]]]++] = finder->order[i];
    free(next);
    return TROUPE_OK;
}

/* The frame's nodes of one kind, from `pool` on. */
static struct troupe_frame_nodes list_kind(const struct finder *finder,
                                           const struct troupe_frame *frame, enum troupe_flow flow,
                                           int *pool)
{
    struct troupe_frame_nodes list = {pool, 0};

    for (int i = 0; i < frame->nodes.count; i++) {
        if (flow_of(&finder->graph->nodes[frame->nodes.nodes[i]]) == flow)
            pool[list.count++] = frame->nodes.nodes[i];
    }
    return list;
}

static void list_kinds(const struct finder *finder)
{
    int *pool = finder->frames->pool + finder->graph->node_count;

    for (int i = 1; i < finder->frames->count; i++) {
        struct troupe_frame *frame = &finder->frames->frames[i];

        frame->enters = list_kind(finder, frame, TROUPE_FLOW_ENTER, pool);
        pool += frame->enters.count;
        frame->exits = list_kind(finder, frame, TROUPE_FLOW_EXIT, pool);
        pool += frame->exits.count;
        frame->next_iterations = list_kind(finder, frame, TROUPE_FLOW_NEXT_ITERATION, pool);
        pool += frame->next_iterations.count;
    }
}

/* Looks at every edge once more, now that all frames are known, and lists the loops' Merges. */
static enum troupe_status list_merges(struct finder *finder)
{
    struct troupe_loop_merge *merges = finder->frames->merges;
    enum troupe_status status = TROUPE_OK;

    for (int i = 0; i < finder->frames->count && status == TROUPE_OK; i++) {
        struct troupe_frame *frame = &finder->frames->frames[i];

        frame->merges = merges;
        for (int n = 0; n < frame->nodes.count && status == TROUPE_OK; n++) {
            int number = frame->nodes.nodes[n];
            bool is_loop_merge = is_at_loop_head(finder, &finder->graph->nodes[number]);

            status = check_edges(finder, number, is_loop_merge);
            if (status == TROUPE_OK && is_loop_merge)
                status = check_loop_merge(finder, number, &merges[frame->merge_count++]);
        }
        merges += frame->merge_count;
        if (status == TROUPE_OK && i > 0 && frame->function == 0 && frame->loop_cond < 0)
            status =
                troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                   "frame \"%s\", which node \"%s\" enters, has no "
                                   "LoopCond to say when it ends",
                                   frame->name, finder->graph->nodes[frame->enters.nodes[0]].name);
    }
    return status;
}

static enum troupe_status add_functions(struct finder *finder)
{
    const struct troupe_library *library = finder->graph->library;
    enum troupe_status status = TROUPE_OK;
    int number;

    for (int i = 0; library != NULL && i < library->count && status == TROUPE_OK; i++) {
        struct troupe_frame frame = {.name = library->functions[i].name,
                                     .parent = 0,
                                     .depth = 1,
                                     .parallel_iterations = 1,
                                     .loop_cond = -1,
                                     .function = i + 1};

        status = frame_add(finder, &frame, &number);
    }
    return status;
}

static enum troupe_status find_all(struct finder *finder)
{
    const struct troupe_frame root = {
        .name = "", .parent = -1, .parallel_iterations = 1, .loop_cond = -1};
    int number;
    enum troupe_status status = troupe_graph_sort(finder->graph, finder->order);

    if (status == TROUPE_OK)
        status = frame_add(finder, &root, &number);
    if (status == TROUPE_OK)
        status = add_functions(finder);
    for (int i = 0; i < finder->graph->node_count && status == TROUPE_OK; i++)
        status = place_node(finder, finder->order[i]);
    if (status == TROUPE_OK)
        status = list_nodes(finder);
    if (status != TROUPE_OK)
        return status;
    list_kinds(finder);
    return list_merges(finder);
}

enum troupe_status troupe_frames_find(const struct troupe_graph *graph, struct troupe_frames **out)
{
    size_t count = (size_t)graph->node_count + 1;
    struct finder finder = {.graph = graph};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;

    troupe_name_map_init(&finder.by_name);
    finder.order = troupe_calloc(count, sizeof(*finder.order));
    finder.frames = troupe_calloc(1, sizeof(*finder.frames));
    if (finder.order == NULL || finder.frames == NULL)
        goto finish;
    finder.frames->frame_of = troupe_calloc(count, sizeof(int));
    finder.frames->pool = troupe_calloc(2 * count, sizeof(int));
    finder.frames->merges = troupe_calloc(count, sizeof(*finder.frames->merges));
    if (finder.frames->frame_of != NULL && finder.frames->pool != NULL &&
        finder.frames->merges != NULL)
        status = find_all(&finder);

finish:
    troupe_name_map_fini(&finder.by_name);
    free(finder.order);
    if (status == TROUPE_OK)
        *out = finder.frames;
    else
        troupe_frames_destroy(finder.frames);
    return status;
}

void troupe_frames_destroy(struct troupe_frames *frames)
{
    if (frames == NULL)
        return;
    free(frames->frame_of);
    free(frames->frames);
    free(frames->pool);
    free(frames->merges);
    free(frames);
}
