/* Runs a schedule round by round. Invariant: `outstanding` is the number of this round's transfers
 * that are not done, plus one while the round is being started; whoever takes it to zero ends the
 * round, so that rounds never overlap on one rank. */
#include "transport/collective.h"

#include <stdlib.h>

#include "base/memory.h"

struct collective_slot {
    struct troupe_transfer transfer;
    struct troupe_collective *collective;
    const struct troupe_schedule_step *step;
    bool reduces;  /* in some round: it needs scratch */
    void *scratch; /* of a REDUCE */
};

struct troupe_collective {
    struct troupe_transport *transport;
    struct troupe_schedule *schedule;
    int *group;
    int tag;
    const struct troupe_reduction *reduction;

    struct collective_slot *slots; /* as many as the longest round has steps */
    int slot_count;
    size_t scratch_bytes; /* of each slot */

    /* Of the run in progress: */
    char *data;
    int64_t elements;
    int next_step;
    _Atomic(int) outstanding;
    _Atomic(int) status;
    void (*done)(void *context, enum troupe_status status);
    void *context;
};

/* Finds the slots that a REDUCE uses: a step's slot is its place in its round. */
static void mark_reducing_slots(struct troupe_collective *collective)
{
    const struct troupe_schedule *schedule = collective->schedule;
    for (int i = 0, place = 0; i < schedule->step_count; i++) {
        place = i > 0 && schedule->steps[i].round == schedule->steps[i - 1].round ? place + 1 : 0;
        if (schedule->steps[i].verb == TROUPE_SCHEDULE_REDUCE)
            collective->slots[place].reduces = true;
    }
}

static int longest_round(const struct troupe_schedule *schedule)
{
    int longest = 0, length = 0;
    for (int i = 0; i < schedule->step_count; i++) {
        length = i > 0 && schedule->steps[i].round == schedule->steps[i - 1].round ? length + 1 : 1;
        if (length > longest)
            longest = length;
    }
    return longest;
}

static void transfer_done(struct troupe_transfer *transfer, enum troupe_status status,
                          size_t bytes);

static char *chunk_data(const struct troupe_collective *collective, int chunk, int64_t *elements)
{
    int64_t begin, end;
    troupe_schedule_chunk(collective->schedule, collective->elements, chunk, &begin, &end);
    *elements = end - begin;
    return collective->data + (size_t)begin * collective->reduction->element_bytes;
}

static void record(struct troupe_collective *collective, enum troupe_status status)
{
    int expected = TROUPE_OK;
    if (status != TROUPE_OK)
        atomic_compare_exchange_strong(&collective->status, &expected, (int)status);
}

static void start_step(struct collective_slot *slot)
{
    struct troupe_collective *collective = slot->collective;
    struct troupe_transport *transport = collective->transport;
    int64_t elements;
    char *chunk = chunk_data(collective, slot->step->chunk, &elements);
    slot->transfer.done = transfer_done;
    slot->transfer.peer = collective->group[slot->step->peer];
    slot->transfer.tag = collective->tag;
    slot->transfer.bytes = (size_t)elements * collective->reduction->element_bytes;
    slot->transfer.data = slot->step->verb == TROUPE_SCHEDULE_REDUCE ? slot->scratch : chunk;
    if (slot->step->verb == TROUPE_SCHEDULE_SEND)
        transport->ops->send(transport, &slot->transfer);
    else
        transport->ops->receive(transport, &slot->transfer);
}

/* Reduces in the order of the round's steps, so that a result never depends on arrival. */
static void reduce_round(struct troupe_collective *collective, int count)
{
    for (int i = 0; i < count; i++) {
        const struct collective_slot *slot = &collective->slots[i];
        if (slot->step->verb != TROUPE_SCHEDULE_REDUCE)
            continue;
        int64_t elements;
        char *chunk = chunk_data(collective, slot->step->chunk, &elements);
        collective->reduction->reduce(chunk, slot->scratch, elements);
    }
}

static int round_length(const struct troupe_collective *collective, int first)
{
    const struct troupe_schedule *schedule = collective->schedule;
    int count = 0;
    while (first + count < schedule->step_count &&
           schedule->steps[first + count].round == schedule->steps[first].round)
        count++;
    return count;
}

/* Starts rounds until one is left to its transfers, or all are done. */
static void advance(struct troupe_collective *collective)
{
    for (;;) {
        int first = collective->next_step, count = round_length(collective, first);
        if (count == 0 || atomic_load(&collective->status) != TROUPE_OK) {
            collective->done(collective->context,
                             (enum troupe_status)atomic_load(&collective->status));
            return;
        }
        atomic_store(&collective->outstanding, count + 1);
        for (int i = 0; i < count; i++) {
            collective->slots[i].step = &collective->schedule->steps[first + i];
            start_step(&collective->slots[i]);
        }
        if (atomic_fetch_sub(&collective->outstanding, 1) != 1)
            return;
        reduce_round(collective, count);
        collective->next_step = first + count;
    }
}

static void transfer_done(struct troupe_transfer *transfer, enum troupe_status status, size_t bytes)
{
    struct collective_slot *slot = troupe_container_of(transfer, struct collective_slot, transfer);
    struct troupe_collective *collective = slot->collective;
    if (status == TROUPE_OK && bytes != transfer->bytes)
        status = TROUPE_DATA_LOSS;
    record(collective, status);
    if (atomic_fetch_sub(&collective->outstanding, 1) != 1)
        return;
    int first = collective->next_step, count = round_length(collective, first);
    if (atomic_load(&collective->status) == TROUPE_OK)
        reduce_round(collective, count);
    collective->next_step = first + count;
    advance(collective);
}

enum troupe_status troupe_collective_create(struct troupe_transport *transport,
                                            struct troupe_schedule *schedule, const int *group,
                                            int tag, const struct troupe_reduction *reduction,
                                            struct troupe_collective **out)
{
    struct troupe_collective *collective = troupe_calloc(1, sizeof(*collective));
    if (!collective) {
        troupe_schedule_destroy(schedule);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    collective->transport = transport;
    collective->schedule = schedule;
    collective->tag = tag;
    collective->reduction = reduction;
    collective->slot_count = longest_round(schedule);
    collective->group = troupe_calloc((size_t)schedule->size, sizeof(int));
    collective->slots =
        troupe_calloc((size_t)collective->slot_count + 1, sizeof(*collective->slots));
    if (!collective->group || !collective->slots) {
        troupe_collective_destroy(collective);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < schedule->size; i++)
        collective->group[i] = group[i];
    for (int i = 0; i < collective->slot_count; i++)
        collective->slots[i].collective = collective;
    mark_reducing_slots(collective);
    *out = collective;
    return TROUPE_OK;
}

void troupe_collective_destroy(struct troupe_collective *collective)
{
    if (!collective)
        return;
    for (int i = 0; collective->slots && i < collective->slot_count; i++) {
        troupe_transfer_release(collective->transport, &collective->slots[i].transfer);
        free(collective->slots[i].scratch);
    }
    free(collective->slots);
    free(collective->group);
    troupe_schedule_destroy(collective->schedule);
    free(collective);
}

/* Room for the largest chunk in every slot. */
static enum troupe_status grow_scratch(struct troupe_collective *collective, int64_t elements)
{
    int64_t begin, end;
    troupe_schedule_chunk(collective->schedule, elements, 0, &begin, &end);
    size_t bytes = (size_t)(end - begin) * collective->reduction->element_bytes;
    if (bytes <= collective->scratch_bytes)
        return TROUPE_OK;
    for (int i = 0; i < collective->slot_count; i++) {
        if (!collective->slots[i].reduces)
            continue;
        void *grown = troupe_reallocarray(collective->slots[i].scratch, 1, bytes);
        if (!grown)
            return TROUPE_RESOURCE_EXHAUSTED;
        collective->slots[i].scratch = grown;
    }
    collective->scratch_bytes = bytes;
    return TROUPE_OK;
}

void troupe_collective_start(struct troupe_collective *collective, void *data, int64_t elements,
                             void (*done)(void *context, enum troupe_status status), void *context)
{
    enum troupe_status status = grow_scratch(collective, elements);
    if (status != TROUPE_OK) {
        done(context, status);
        return;
    }
    collective->data = data;
    collective->elements = elements;
    collective->next_step = 0;
    atomic_store(&collective->status, TROUPE_OK);
    collective->done = done;
    collective->context = context;
    advance(collective);
}
