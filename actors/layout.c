/* The layout: where actors, mailboxes and cells lie. Invariants: the cells of one iteration lie
 * together, each actor's at the same place in every iteration, so that a sender finds them without
 * looking at the consumer; cells of a far actor, of which more iterations are needed than the
 * window holds, lie behind the iterations, iteration i in slot i modulo their number. */
#include <stdlib.h>
#include <string.h>

#include "actors/stage.h"
#include "base/memory.h"

#define ITERATION_LINES (sizeof(struct troupe_iteration) / TROUPE_LINE)

/* What the edges say of an actor. */
struct usage {
    int distance;  /* the longest of an edge into it */
    int near_in;   /* edges of distance 0 into it */
    int in, out;   /* all edges */
    int mailboxes; /* of `out`, those of the fast kind */
    int seen;      /* edges into it that have a place in a group already */
};

struct layout {
    struct troupe_stage *stage;
    struct usage *usage;
    const int *first, *order; /* each actor's outgoing edges */
};

static void *layout_alloc(struct troupe_stage *stage, size_t count, size_t bytes)
{
    size_t total;
    void *block;

    if (__builtin_mul_overflow(count, bytes, &total) || total > SIZE_MAX / 4) {
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "a stage of %d actors is too large",
                                 stage->actor_count);
        return NULL;
    }
    /* One byte more than nothing: NULL means failure. */
    block = troupe_arena_alloc(&stage->arena, total + 1, TROUPE_LINE);
    if (block != NULL)
        stage->bytes += total;
    return block;
}

static uint64_t power_of_two(uint64_t least)
{
    uint64_t power = 1;

    while (power < least)
        power *= 2;
    return power;
}

static bool is_far(const struct usage *usage)
{
    return usage->distance > 0;
}

static bool is_wide(const struct usage *usage)
{
    return !is_far(usage) && usage->near_in > TROUPE_GROUP;
}

static void count_usage(struct layout *layout)
{
    const struct troupe_stage *stage = layout->stage;

    for (int i = 0; i < stage->edge_count; i++) {
        const struct troupe_edge *edge = &stage->edges[i];
        struct usage *to = &layout->usage[edge->to];

        to->in++;
        to->near_in += edge->distance == 0;
        layout->usage[edge->from].out++;
        if (edge->distance > to->distance)
            to->distance = edge->distance;
    }
    for (int i = 0; i < stage->edge_count; i++) {
        const struct usage *to = &layout->usage[stage->edges[i].to];

        layout->usage[stage->edges[i].from].mailboxes += !is_far(to);
    }
}

/* Room for an actor: one that fits a line lies in one, the others lie close together. */
static size_t actor_place(size_t *end, int mailboxes)
{
    size_t bytes = sizeof(struct troupe_actor) + (size_t)mailboxes * sizeof(struct troupe_mailbox);
    size_t place = *end;

    if (bytes <= TROUPE_LINE && place % TROUPE_LINE + bytes > TROUPE_LINE)
        place = (place + TROUPE_LINE - 1) / TROUPE_LINE * TROUPE_LINE;
    *end = place + bytes;
    return place;
}

static enum troupe_status place_actors(struct layout *layout)
{
    struct troupe_stage *stage = layout->stage;
    size_t end = 0, count = (size_t)stage->actor_count;
    char *block;

    for (int i = 0; i < stage->actor_count; i++)
        (void)actor_place(&end, layout->usage[i].mailboxes);
    block = layout_alloc(stage, end + sizeof(struct troupe_mailbox), 1);
    stage->actors = layout_alloc(stage, count, sizeof(struct troupe_actor *));
    stage->rest = layout_alloc(stage, count, sizeof *stage->rest);
    if (block == NULL || stage->actors == NULL || stage->rest == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    end = 0;
    for (int i = 0; i < stage->actor_count; i++)
        stage->actors[i] = (void *)(block + actor_place(&end, layout->usage[i].mailboxes));
    return TROUPE_OK;
}

/* Fills in what does not depend on places. */
static enum troupe_status describe_actor(struct layout *layout, int number)
{
    struct troupe_stage *stage = layout->stage;
    const struct troupe_actor_spec *spec = &stage->plans[number].spec;
    const struct usage *usage = &layout->usage[number];
    struct troupe_actor *actor = stage->actors[number];
    struct troupe_actor_rest *rest = &stage->rest[number];

    actor->behave = spec->behave;
    actor->context = spec->context;
    actor->input_count = spec->input_count;
    actor->output_count = spec->output_count;
    actor->takes_dead = spec->takes_dead;
    actor->number = number;
    actor->is_far = is_far(usage);
    rest->is_source = usage->near_in == 0;
    if (is_wide(usage)) {
        rest->group_count = (usage->near_in + TROUPE_GROUP - 1) / TROUPE_GROUP;
        rest->last_group_need = usage->near_in - (rest->group_count - 1) * TROUPE_GROUP;
        actor->need = rest->group_count;
    } else {
        actor->need = usage->in + rest->is_source;
    }
    actor->is_sink = true;
    if (spec->output_count <= 1)
        return TROUPE_OK;
    rest->consumers = layout_alloc(stage, (size_t)spec->output_count, sizeof(int));
    return rest->consumers != NULL ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

static void count_consumers(struct troupe_stage *stage)
{
    for (int i = 0; i < stage->edge_count; i++) {
        const struct troupe_edge *edge = &stage->edges[i];
        struct troupe_actor *from = stage->actors[edge->from];

        if (edge->distance == 0)
            from->is_sink = false;
        if (edge->from_port < 0 || edge->to_port < 0)
            continue;
        if (from->output_count == 1)
            from->consumers++;
        else
            stage->rest[edge->from].consumers[edge->from_port]++;
    }
}

static size_t cell_lines(const struct troupe_actor *actor)
{
    size_t tokens = (size_t)actor->input_count + (size_t)actor->output_count;
    size_t bytes = sizeof(struct troupe_firing) + tokens * sizeof(struct troupe_payload *);

    return (bytes + TROUPE_LINE - 1) / TROUPE_LINE;
}

/* Gives every cell its place: those of an iteration, then, behind all iterations, the far ones. */
static enum troupe_status place_cells(struct layout *layout)
{
    struct troupe_stage *stage = layout->stage;
    size_t lines = ITERATION_LINES;

    for (int i = 0; i < stage->actor_count; i++) {
        if (stage->actors[i]->is_far)
            continue;
        stage->actors[i]->cell = (uint32_t)lines;
        lines += cell_lines(stage->actors[i]);
        stage->rest[i].groups = (uint32_t)lines;
        lines += (size_t)stage->rest[i].group_count;
        if (lines > UINT32_MAX / 2)
            goto too_large;
    }
    stage->iteration_lines = lines;
    stage->slot_mask = power_of_two((uint64_t)stage->window) - 1;
    lines *= stage->slot_mask + 1;
    for (int i = 0; i < stage->actor_count; i++) {
        struct troupe_actor_rest *rest = &stage->rest[i];
        uint64_t slots = (uint64_t)stage->window + (uint64_t)layout->usage[i].distance;

        if (!stage->actors[i]->is_far)
            continue;
        if (lines > UINT32_MAX)
            goto too_large;
        stage->actors[i]->cell = (uint32_t)lines;
        rest->stride = (uint32_t)(1 + cell_lines(stage->actors[i]));
        rest->slot_mask = (uint32_t)(power_of_two(slots) - 1);
        /* Below 2^22 slots of below 2^20 lines each: the sum cannot overflow. */
        lines += ((size_t)rest->slot_mask + 1) * rest->stride;
    }
    if (lines > SIZE_MAX / 4 / TROUPE_LINE)
        goto too_large;
    stage->instance_lines = lines;
    return TROUPE_OK;

too_large:
    return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED,
                              "a stage of %d actors with a window of %d is too large",
                              stage->actor_count, stage->window);
}

/* Order of sending: edges with a distance first, then by rising priority of the consumer, and the
 * first declared last. */
struct edge_key {
    int64_t priority;
    int near, index;
};

static int edge_key_compare(const void *left, const void *right)
{
    const struct edge_key *a = left, *b = right;

    if (a->near != b->near)
        return a->near < b->near ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    return (a->index < b->index) - (a->index > b->index);
}

static struct troupe_far_mailbox far_mailbox(const struct troupe_stage *stage,
                                             const struct troupe_edge *edge)
{
    return (struct troupe_far_mailbox){.to = stage->actors[edge->to],
                                       .distance = (uint32_t)edge->distance,
                                       .slot_mask = stage->rest[edge->to].slot_mask,
                                       .stride = stage->rest[edge->to].stride,
                                       .from_port = edge->from_port,
                                       .to_port = edge->to_port};
}

static struct troupe_mailbox near_mailbox(struct layout *layout, const struct troupe_edge *edge)
{
    const struct troupe_actor *to = layout->stage->actors[edge->to];
    const struct troupe_actor_rest *rest = &layout->stage->rest[edge->to];
    struct troupe_mailbox mailbox = {
        .cell = to->cell, .need = to->need, .from_port = edge->from_port, .to_port = edge->to_port};

    if (rest->group_count > 0) {
        int group = layout->usage[edge->to].seen++ / TROUPE_GROUP;

        mailbox.cell = rest->groups + (uint32_t)group;
        mailbox.need = 0;
    }
    return mailbox;
}

static void write_mailboxes(struct layout *layout, int number, const struct edge_key *keys,
                            int count)
{
    struct troupe_stage *stage = layout->stage;
    struct troupe_actor *actor = stage->actors[number];
    struct troupe_actor_rest *rest = &stage->rest[number];

    for (int i = 0; i < count; i++) {
        const struct troupe_edge *edge = &stage->edges[keys[i].index];

        if (is_far(&layout->usage[edge->to]))
            rest->far[rest->far_count++] = far_mailbox(stage, edge);
        else
            actor->mailboxes[actor->mailbox_count++] = near_mailbox(layout, edge);
    }
    actor->has_far_mailboxes = rest->far_count > 0;
}

static enum troupe_status place_mailboxes(struct layout *layout)
{
    struct troupe_stage *stage = layout->stage;
    struct edge_key *keys = troupe_calloc((size_t)stage->edge_count + 1, sizeof *keys);
    struct troupe_far_mailbox *far;
    size_t far_count = 0;

    for (int i = 0; i < stage->actor_count; i++)
        far_count += (size_t)(layout->usage[i].out - layout->usage[i].mailboxes);
    far = layout_alloc(stage, far_count, sizeof *far);
    if (keys == NULL || far == NULL) {
        free(keys);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < stage->actor_count; i++) {
        int first = layout->first[i], count = layout->first[i + 1] - first;

        for (int k = 0; k < count; k++) {
            const struct troupe_edge *edge = &stage->edges[layout->order[first + k]];

            keys[k] = (struct edge_key){.priority = stage->plans[edge->to].spec.priority,
                                        .near = edge->distance == 0,
                                        .index = layout->order[first + k]};
        }
        if (count > 1)
            qsort(keys, (size_t)count, sizeof *keys, edge_key_compare);
        stage->rest[i].far = far;
        write_mailboxes(layout, i, keys, count);
        far += stage->rest[i].far_count;
    }
    free(keys);
    return TROUPE_OK;
}

static int source_compare(const void *left, const void *right)
{
    const struct edge_key *a = left, *b = right;

    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    return (a->index < b->index) - (a->index > b->index);
}

/* Lists the sources by rising priority. */
static enum troupe_status list_sources(struct troupe_stage *stage)
{
    struct edge_key *keys = troupe_calloc((size_t)stage->actor_count + 1, sizeof *keys);
    int count = 0;

    if (keys == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < stage->actor_count; i++)
        if (stage->rest[i].is_source)
            keys[count++] =
                (struct edge_key){.priority = stage->plans[i].spec.priority, .index = i};
    qsort(keys, (size_t)count, sizeof *keys, source_compare);
    stage->sources = layout_alloc(stage, (size_t)count, sizeof(struct troupe_actor *));
    for (int i = 0; stage->sources != NULL && i < count; i++)
        stage->sources[i] = stage->actors[keys[i].index];
    stage->source_count = count;
    free(keys);
    return stage->sources != NULL ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

static enum troupe_status list_others(struct troupe_stage *stage)
{
    for (int i = 0; i < stage->actor_count; i++) {
        stage->sink_count += stage->actors[i]->is_sink;
        stage->far_count += stage->actors[i]->is_far;
    }
    for (int i = 0; i < stage->edge_count; i++)
        stage->early_count += stage->edges[i].distance > 0;
    stage->far_actors = layout_alloc(stage, (size_t)stage->far_count, sizeof(int));
    stage->early_edges = layout_alloc(stage, (size_t)stage->early_count, sizeof(int));
    if (stage->far_actors == NULL || stage->early_edges == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0, count = 0; i < stage->actor_count; i++)
        if (stage->actors[i]->is_far)
            stage->far_actors[count++] = i;
    for (int i = 0, count = 0; i < stage->edge_count; i++)
        if (stage->edges[i].distance > 0)
            stage->early_edges[count++] = i;
    return TROUPE_OK;
}

enum troupe_status troupe_stage_lay_out(struct troupe_stage *stage, const int *first,
                                        const int *order)
{
    struct layout layout = {.stage = stage, .first = first, .order = order};
    enum troupe_status status;

    layout.usage = troupe_calloc((size_t)stage->actor_count + 1, sizeof *layout.usage);
    if (layout.usage == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    count_usage(&layout);
    status = place_actors(&layout);
    for (int i = 0; i < stage->actor_count && status == TROUPE_OK; i++)
        status = describe_actor(&layout, i);
    if (status == TROUPE_OK) {
        count_consumers(stage);
        status = place_cells(&layout);
    }
    if (status == TROUPE_OK)
        status = place_mailboxes(&layout);
    if (status == TROUPE_OK)
        status = list_sources(stage);
    if (status == TROUPE_OK)
        status = list_others(stage);
    free(layout.usage);
    return status;
}
