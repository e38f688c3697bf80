/* Who takes part in which frame. Invariant: a member of a frame is a member of all around it. */
#include "coordinator/frame_use.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

bool troupe_node_has_no_place(const struct troupe_node *node)
{
    enum troupe_flow flow = node->schema->op->flow;
    return flow == TROUPE_FLOW_ENTER || flow == TROUPE_FLOW_NEXT_ITERATION;
}

bool troupe_frame_use_member(const struct troupe_frame_use *use, int frame, int rank)
{
    return use->member[frame * use->ranks + rank];
}

bool troupe_frame_use_is_shared(const struct troupe_frame_use *use, int frame)
{
    int members = 0;
    for (int rank = 0; rank < use->ranks; rank++)
        members += troupe_frame_use_member(use, frame, rank);
    return members > 1;
}

bool *troupe_frame_use_entered(const struct troupe_frame_use *use, int enter, int rank)
{
    return &use->entered[use->enter_number[enter] * use->ranks + rank];
}

static void find_members(const struct troupe_graph *graph, const bool *keep,
                         struct troupe_frame_use *use)
{
    const struct troupe_frames *frames = use->frames;
    for (int i = 0; i < graph->node_count; i++) {
        if (!keep[i] || troupe_node_has_no_place(&graph->nodes[i]))
            continue;
        int rank = graph->nodes[i].rank;
        for (int frame = frames->frame_of[i];
             frame >= 0 && !troupe_frame_use_member(use, frame, rank);
             frame = frames->frames[frame].parent)
            use->member[frame * use->ranks + rank] = true;
    }
}

static void choose_windows(struct troupe_frame_use *use)
{
    const struct troupe_frames *frames = use->frames;
    use->window[0] = use->slots[0] = 1; /* of the root the session's window, as a factor of all */
    for (int i = 1; i < frames->count; i++) {
        int around = use->slots[frames->frames[i].parent];
        int window = frames->frames[i].parallel_iterations;
        if (troupe_frame_use_is_shared(use, i)) {
            if (window > TROUPE_FRAME_MAX_SHARED_WINDOW)
                window = TROUPE_FRAME_MAX_SHARED_WINDOW;
            if (window > TROUPE_FRAME_MAX_SLOTS / around)
                window = TROUPE_FRAME_MAX_SLOTS / around;
        }
        use->window[i] = window < 1 ? 1 : window;
        /* Only what is shared needs slots; a frame within one that is not is not either. */
        use->slots[i] = troupe_frame_use_is_shared(use, i) ? around * use->window[i] : around;
    }
}

static void number_enters(const bool *keep, struct troupe_frame_use *use)
{
    const struct troupe_frames *frames = use->frames;
    for (int i = 0; i < frames->count; i++) {
        const struct troupe_frame *frame = &frames->frames[i];
        use->ticket[i] = -1;
        for (int k = 0; k < frame->enters.count; k++) {
            int enter = frame->enters.nodes[k];
            use->enter_number[enter] = use->enter_count++;
            if (keep[enter] && use->ticket[i] < 0)
                use->ticket[i] = enter;
        }
        for (int k = 0; k < frame->merge_count; k++)
            use->is_head[frame->merges[k].node] = true;
    }
}

enum troupe_status troupe_frame_use_make(const struct troupe_graph *graph,
                                         const struct troupe_frames *frames, const bool *keep,
                                         int ranks, struct troupe_frame_use *out)
{
    struct troupe_frame_use use = {.frames = frames, .ranks = ranks};
    size_t count = (size_t)frames->count, nodes = (size_t)graph->node_count + 1, enters = 1;
    for (int i = 0; i < frames->count; i++)
        enters += (size_t)frames->frames[i].enters.count;
    use.member = troupe_calloc(count * (size_t)ranks, sizeof(bool));
    use.window = troupe_calloc(count, sizeof(int));
    use.slots = troupe_calloc(count, sizeof(int));
    use.ticket = troupe_calloc(count, sizeof(int));
    use.is_head = troupe_calloc(nodes, sizeof(bool));
    use.enter_number = troupe_calloc(nodes, sizeof(int));
    use.entered = troupe_calloc(enters * (size_t)ranks, sizeof(bool));
    if (!use.member || !use.window || !use.slots || !use.ticket || !use.is_head ||
        !use.enter_number || !use.entered) {
        troupe_frame_use_fini(&use);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    find_members(graph, keep, &use);
    choose_windows(&use);
    number_enters(keep, &use);
    *out = use;
    return TROUPE_OK;
}

void troupe_frame_use_fini(struct troupe_frame_use *use)
{
    free(use->member);
    free(use->window);
    free(use->slots);
    free(use->ticket);
    free(use->is_head);
    free(use->enter_number);
    free(use->entered);
    memset(use, 0, sizeof(*use));
}
