/* The cast: from the description to actors, mailboxes and cells in one arena. Invariant: the
 * cell of iteration i is slot i % (window + d), d being the longest distance of an edge into its
 * actor, and it lacks exactly the tokens that will be sent to it. */
#include <stdlib.h>
#include <string.h>

#include "actors/stage.h"
#include "base/memory.h"
#include "base/text.h"

#define CELL_ALIGNMENT 64
/* Names of a cycle that fit a message. */
#define CYCLE_NAMES 16

static void *cast_alloc(struct troupe_stage *stage, size_t count, size_t bytes)
{
    size_t total;
    void *block;

    if (__builtin_mul_overflow(count, bytes, &total) || total > SIZE_MAX / 4) {
        (void)troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "a stage of %d actors is too large",
                                 stage->actor_count);
        return NULL;
    }
    /* One byte more than nothing: NULL means failure. */
    block = troupe_arena_alloc(&stage->arena, total + 1, CELL_ALIGNMENT);
    if (block != NULL)
        stage->bytes += total;
    return block;
}

static enum troupe_status cast_check_inputs(const struct troupe_stage *stage)
{
    for (int i = 0; i < stage->actor_count; i++)
        for (int port = 0; port < stage->plans[i].spec.input_count; port++)
            if (!stage->plans[i].connected[port])
                return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                          "actor \"%s\": input %d has no edge; each input needs "
                                          "one",
                                          stage->plans[i].name, port);
    return TROUPE_OK;
}

/* Among actors that wait for each other: follows waits until an actor comes twice. `waits_for`
 * holds for each actor one that it waits for. */
static enum troupe_status cycle_fail(const struct troupe_stage *stage, const int *waits_for,
                                     int start)
{
    struct troupe_text text;
    int at = start, names = 0;
    enum troupe_status status;

    for (int i = 0; i < stage->actor_count; i++)
        at = waits_for[at];
    start = at;
    troupe_text_init(&text);
    do {
        troupe_text_addf(&text, "\"%s\" <- ", stage->plans[at].name);
        at = waits_for[at];
    } while (at != start && ++names < CYCLE_NAMES);
    troupe_text_addf(&text, "%s\"%s\"", at != start ? "... <- " : "", stage->plans[start].name);
    status = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                "a cycle of distance 0: %s; one of its edges needs a distance of "
                                "1 or more",
                                text.failed ? "?" : text.data);
    troupe_text_fini(&text);
    return status;
}

/* Kahn's topological sort over the edges of distance 0. `first` and `order` list each actor's
 * outgoing edges. */
static enum troupe_status cast_check_cycles(const struct troupe_stage *stage, const int *first,
                                            const int *order)
{
    size_t count = (size_t)stage->actor_count;
    int *missing = troupe_calloc(count + 1, sizeof *missing);
    int *queue = troupe_calloc(count + 1, sizeof *queue);
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    int tail = 0;

    if (missing == NULL || queue == NULL)
        goto free_arrays;
    for (int i = 0; i < stage->edge_count; i++)
        missing[stage->edges[i].to] += stage->edges[i].distance == 0;
    for (int i = 0; i < stage->actor_count; i++)
        if (missing[i] == 0)
            queue[tail++] = i;
    for (int head = 0; head < tail; head++) {
        for (int i = first[queue[head]]; i < first[queue[head] + 1]; i++) {
            const struct troupe_edge *edge = &stage->edges[order[i]];

            if (edge->distance == 0 && --missing[edge->to] == 0)
                queue[tail++] = edge->to;
        }
    }
    status = TROUPE_OK;
    if (tail < stage->actor_count) {
        /* The queue's memory now holds, for each actor left over, one that it waits for. */
        int stuck = 0;

        for (int i = 0; i < stage->edge_count; i++)
            if (stage->edges[i].distance == 0 && missing[stage->edges[i].from] > 0)
                queue[stage->edges[i].to] = stage->edges[i].from;
        while (missing[stuck] == 0)
            stuck++;
        status = cycle_fail(stage, queue, stuck);
    }
free_arrays:
    free(queue);
    free(missing);
    return status;
}

/* Lists the edges by the actor they leave: order[first[a]] to order[first[a + 1] - 1]. */
static void cast_sort_edges(const struct troupe_stage *stage, int *first, int *order)
{
    memset(first, 0, ((size_t)stage->actor_count + 2) * sizeof *first);
    for (int i = 0; i < stage->edge_count; i++)
        first[stage->edges[i].from + 2]++;
    for (int i = 2; i <= stage->actor_count + 1; i++)
        first[i] += first[i - 1];
    for (int i = 0; i < stage->edge_count; i++)
        order[first[stage->edges[i].from + 1]++] = i;
}

/* Fills in what does not depend on other actors; adds up the bytes of the cells. */
static enum troupe_status cast_actors(struct troupe_stage *stage, size_t *cell_bytes_out)
{
    size_t total = 0;

    for (int i = 0; i < stage->actor_count; i++) {
        const struct troupe_actor_spec *spec = &stage->plans[i].spec;
        struct troupe_actor *actor = &stage->actors[i];
        size_t tokens = (size_t)spec->input_count + (size_t)spec->output_count;
        size_t bytes = sizeof(struct troupe_firing) + tokens * sizeof(struct troupe_payload *);

        actor->stage = stage;
        actor->behave = spec->behave;
        actor->context = spec->context;
        actor->priority = spec->priority;
        actor->input_count = spec->input_count;
        actor->output_count = spec->output_count;
        actor->takes_dead = spec->takes_dead;
        actor->number = i;
        actor->is_sink = actor->is_source = true;
        actor->slots = (uint32_t)stage->window;
        actor->stride = (uint32_t)((bytes + CELL_ALIGNMENT - 1) / CELL_ALIGNMENT * CELL_ALIGNMENT);
        actor->consumers = cast_alloc(stage, (size_t)spec->output_count, sizeof(int));
        if (actor->consumers == NULL)
            return TROUPE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < stage->edge_count; i++) {
        const struct troupe_edge *edge = &stage->edges[i];
        struct troupe_actor *from = &stage->actors[edge->from], *to = &stage->actors[edge->to];

        to->need++;
        if (edge->from_port >= 0 && edge->to_port >= 0)
            from->consumers[edge->from_port]++;
        if (edge->distance == 0)
            from->is_sink = to->is_source = false;
        if (to->slots < (uint32_t)(stage->window + edge->distance))
            to->slots = (uint32_t)(stage->window + edge->distance);
    }
    for (int i = 0; i < stage->actor_count; i++) {
        const struct troupe_actor *actor = &stage->actors[i];

        /* Below 2^21 slots of below 2^25 bytes each: the product cannot overflow. */
        if (__builtin_add_overflow(total, (size_t)actor->slots * actor->stride, &total))
            return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "the mailboxes are too large");
    }
    *cell_bytes_out = total;
    return TROUPE_OK;
}

/* Lays out the cells and gives every source the admission's signal as one more need. */
static enum troupe_status cast_cells(struct troupe_stage *stage, size_t cell_bytes)
{
    char *cells = cast_alloc(stage, cell_bytes, 1);

    if (cells == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < stage->actor_count; i++) {
        struct troupe_actor *actor = &stage->actors[i];

        actor->cells = cells;
        cells += (size_t)actor->slots * actor->stride;
        actor->need += actor->is_source;
        stage->source_count += actor->is_source;
        stage->sink_count += actor->is_sink;
        for (uint32_t slot = 0; slot < actor->slots; slot++) {
            struct troupe_firing *cell = troupe_actor_cell(actor, slot);

            cell->task.run = troupe_firing_run;
            cell->actor = actor;
            cell->slot = slot;
            atomic_init(&cell->missing, actor->need);
        }
    }
    /* The first iterations get no token over an edge with a distance: it counts as arrived. */
    for (int i = 0; i < stage->edge_count; i++) {
        struct troupe_actor *to = &stage->actors[stage->edges[i].to];

        for (int early = 0; early < stage->edges[i].distance; early++)
            /* Relaxed: no other thread knows the stage yet. */
            atomic_fetch_sub_explicit(&troupe_actor_cell(to, (uint64_t)early)->missing, 1,
                                      memory_order_relaxed);
    }
    return TROUPE_OK;
}

/* Order of sending, of indices into an array that starts with the edges' keys: edges with a
 * distance first, then by rising priority of the consumer, and the first declared last. */
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

static void cast_mailboxes_of(struct troupe_stage *stage, struct troupe_actor *actor,
                              const struct edge_key *keys)
{
    for (int i = 0; i < actor->mailbox_count; i++) {
        const struct troupe_edge *edge = &stage->edges[keys[i].index];
        const struct troupe_actor *to = &stage->actors[edge->to];

        actor->mailboxes[i] = (struct troupe_mailbox){.cells = to->cells,
                                                      .stride = to->stride,
                                                      .slots = to->slots,
                                                      .from_port = edge->from_port,
                                                      .to_port = edge->to_port,
                                                      .distance = (uint32_t)edge->distance,
                                                      .need = to->need};
    }
}

static enum troupe_status cast_mailboxes(struct troupe_stage *stage, const int *first,
                                         const int *order)
{
    struct troupe_mailbox *mailboxes =
        cast_alloc(stage, (size_t)stage->edge_count, sizeof *mailboxes);
    struct edge_key *keys = troupe_calloc((size_t)stage->edge_count + 1, sizeof *keys);

    if (mailboxes == NULL || keys == NULL) {
        free(keys);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < stage->actor_count; i++) {
        struct troupe_actor *actor = &stage->actors[i];
        int count = first[i + 1] - first[i];

        for (int k = 0; k < count; k++) {
            const struct troupe_edge *edge = &stage->edges[order[first[i] + k]];

            keys[k] = (struct edge_key){.priority = stage->actors[edge->to].priority,
                                        .near = edge->distance == 0,
                                        .index = order[first[i] + k]};
        }
        qsort(keys, (size_t)count, sizeof *keys, edge_key_compare);
        actor->mailboxes = mailboxes + first[i];
        actor->mailbox_count = count;
        cast_mailboxes_of(stage, actor, keys);
    }
    free(keys);
    return TROUPE_OK;
}

static int source_compare(const void *left, const void *right)
{
    const struct troupe_actor *a = *(struct troupe_actor *const *)left;
    const struct troupe_actor *b = *(struct troupe_actor *const *)right;

    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    return (a->number < b->number) - (a->number > b->number);
}

static enum troupe_status cast_iterations(struct troupe_stage *stage)
{
    int count = 0;

    stage->iterations = cast_alloc(stage, (size_t)stage->window, sizeof *stage->iterations);
    stage->sources = cast_alloc(stage, (size_t)stage->source_count, sizeof(struct troupe_actor *));
    if (stage->iterations == NULL || stage->sources == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < stage->actor_count; i++)
        if (stage->actors[i].is_source)
            stage->sources[count++] = &stage->actors[i];
    qsort(stage->sources, (size_t)count, sizeof(struct troupe_actor *), source_compare);
    return TROUPE_OK;
}

static enum troupe_status cast_lay_out(struct troupe_stage *stage, const int *first,
                                       const int *order)
{
    size_t cell_bytes = 0;
    enum troupe_status status;

    stage->actors = cast_alloc(stage, (size_t)stage->actor_count, sizeof *stage->actors);
    if (stage->actors == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    status = cast_actors(stage, &cell_bytes);
    if (status == TROUPE_OK)
        status = cast_cells(stage, cell_bytes);
    if (status == TROUPE_OK)
        status = cast_mailboxes(stage, first, order);
    if (status == TROUPE_OK)
        status = cast_iterations(stage);
    return status;
}

/* Takes a failed layout back, so that the stage is as before the cast. */
static void cast_undo(struct troupe_stage *stage)
{
    troupe_arena_fini(&stage->arena);
    troupe_arena_init(&stage->arena);
    stage->bytes = 0;
    stage->actors = NULL;
    stage->source_count = 0;
    stage->sink_count = 0;
}

enum troupe_status troupe_stage_cast(struct troupe_stage *stage, struct troupe_pool *pool)
{
    enum troupe_status status;
    int *first, *order;

    if (pool == NULL || stage->pool != NULL)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION, "a stage is cast once, onto a pool");
    status = cast_check_inputs(stage);
    if (status != TROUPE_OK)
        return status;
    first = troupe_calloc((size_t)stage->actor_count + 2, sizeof *first);
    order = troupe_calloc((size_t)stage->edge_count + 1, sizeof *order);
    if (first == NULL || order == NULL) {
        status = TROUPE_RESOURCE_EXHAUSTED;
        goto free_lists;
    }
    cast_sort_edges(stage, first, order);
    status = cast_check_cycles(stage, first, order);
    if (status == TROUPE_OK)
        status = cast_lay_out(stage, first, order);
    if (status == TROUPE_OK)
        stage->pool = pool;
    else
        cast_undo(stage);
free_lists:
    free(order);
    free(first);
    return status;
}
