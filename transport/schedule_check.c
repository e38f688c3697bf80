/* Proves an all-reduce schedule by running it on sets: every chunk of every rank is the multiset of
 * ranks whose contribution it holds. Messages between two ranks match in order. A rank that cannot
 * finish its round while nobody else moves waits for ever. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "transport/schedule.h"

struct check {
    struct troupe_schedule *const *schedules;
    int size, chunks;
    unsigned char *held; /* [rank][chunk][contributor]: how many times */
    unsigned char *mail; /* [from][to][slot][contributor]: in flight */
    int *chunk_of;       /* [from][to][slot]: its chunk */
    int *sent, *taken;   /* [from][to] */
    int *next;           /* [rank]: first step not begun */
    int *pending;        /* [rank]: first receive not done; == next when the round is done */
    int slots;
};

static unsigned char *held(const struct check *check, int rank, int chunk)
{
    return check->held +
           ((size_t)rank * (size_t)check->chunks + (size_t)chunk) * (size_t)check->size;
}

static size_t pair(const struct check *check, int from, int to)
{
    return (size_t)from * (size_t)check->size + (size_t)to;
}

static unsigned char *letter(const struct check *check, int from, int to, int slot)
{
    return check->mail +
           (pair(check, from, to) * (size_t)check->slots + (size_t)slot) * (size_t)check->size;
}

static enum troupe_status check_send(struct check *check, int rank,
                                     const struct troupe_schedule_step *step)
{
    size_t to = pair(check, rank, step->peer);
    if (check->sent[to] == check->slots)
        return troupe_status_fail(TROUPE_INTERNAL, "rank %d sends to %d more than %d times", rank,
                                  step->peer, check->slots);
    int slot = check->sent[to]++;
    memcpy(letter(check, rank, step->peer, slot), held(check, rank, step->chunk),
           (size_t)check->size);
    check->chunk_of[to * (size_t)check->slots + (size_t)slot] = step->chunk;
    return TROUPE_OK;
}

/* Takes a message when it is there; *done says so. */
static enum troupe_status check_receive(struct check *check, int rank,
                                        const struct troupe_schedule_step *step, bool *done)
{
    size_t from = pair(check, step->peer, rank);
    *done = check->taken[from] < check->sent[from];
    if (!*done)
        return TROUPE_OK;
    int slot = check->taken[from]++;
    int chunk = check->chunk_of[from * (size_t)check->slots + (size_t)slot];
    if (chunk != step->chunk)
        return troupe_status_fail(TROUPE_INTERNAL,
                                  "rank %d, round %d: wants chunk %d from rank %d, gets chunk %d",
                                  rank, step->round, step->chunk, step->peer, chunk);
    const unsigned char *came = letter(check, step->peer, rank, slot);
    unsigned char *mine = held(check, rank, step->chunk);
    for (int i = 0; i < check->size; i++)
        mine[i] = (unsigned char)((step->verb == TROUPE_SCHEDULE_REDUCE ? mine[i] : 0) + came[i]);
    return TROUPE_OK;
}

/* Moves one rank as far as it goes; *moved says whether it did. */
static enum troupe_status check_advance(struct check *check, int rank, bool *moved)
{
    const struct troupe_schedule *schedule = check->schedules[rank];
    for (;;) {
        if (check->pending[rank] == check->next[rank]) {
            if (check->next[rank] == schedule->step_count)
                return TROUPE_OK;
            int round = schedule->steps[check->next[rank]].round;
            *moved = true;
            while (check->next[rank] < schedule->step_count &&
                   schedule->steps[check->next[rank]].round == round) {
                const struct troupe_schedule_step *step = &schedule->steps[check->next[rank]++];
                if (step->verb != TROUPE_SCHEDULE_SEND)
                    continue;
                enum troupe_status status = check_send(check, rank, step);
                if (status != TROUPE_OK)
                    return status;
            }
        }
        const struct troupe_schedule_step *step = &schedule->steps[check->pending[rank]];
        bool done = true;
        if (step->verb != TROUPE_SCHEDULE_SEND) {
            enum troupe_status status = check_receive(check, rank, step, &done);
            if (status != TROUPE_OK)
                return status;
        }
        if (!done)
            return TROUPE_OK;
        *moved = true;
        check->pending[rank]++;
    }
}

static enum troupe_status check_result(const struct check *check)
{
    for (int rank = 0; rank < check->size; rank++) {
        int step = check->pending[rank];
        if (step < check->schedules[rank]->step_count)
            return troupe_status_fail(TROUPE_INTERNAL,
                                      "rank %d waits for ever in round %d for chunk %d of rank %d",
                                      rank, check->schedules[rank]->steps[step].round,
                                      check->schedules[rank]->steps[step].chunk,
                                      check->schedules[rank]->steps[step].peer);
        for (int chunk = 0; chunk < check->chunks; chunk++)
            for (int i = 0; i < check->size; i++)
                if (held(check, rank, chunk)[i] != 1)
                    return troupe_status_fail(
                        TROUPE_INTERNAL, "chunk %d on rank %d has rank %d's contribution %d times",
                        chunk, rank, i, held(check, rank, chunk)[i]);
    }
    return TROUPE_OK;
}

static enum troupe_status check_run(struct check *check)
{
    for (int rank = 0; rank < check->size; rank++)
        for (int chunk = 0; chunk < check->chunks; chunk++)
            held(check, rank, chunk)[rank] = 1;
    bool moved = true;
    while (moved) {
        moved = false;
        for (int rank = 0; rank < check->size; rank++) {
            enum troupe_status status = check_advance(check, rank, &moved);
            if (status != TROUPE_OK)
                return status;
        }
    }
    return check_result(check);
}

enum troupe_status troupe_schedule_check_allreduce(struct troupe_schedule *const *schedules,
                                                   int size)
{
    struct check check = {.schedules = schedules, .size = size, .chunks = schedules[0]->chunks};
    for (int i = 0; i < size; i++)
        if (schedules[i]->step_count > check.slots)
            check.slots = schedules[i]->step_count;
    check.slots++;
    size_t ranks = (size_t)size, pairs = ranks * ranks, slots = (size_t)check.slots;
    check.held = troupe_calloc(ranks * (size_t)check.chunks, ranks);
    check.mail = troupe_calloc(pairs * slots, ranks);
    check.chunk_of = troupe_calloc(pairs * slots, sizeof(int));
    check.sent = troupe_calloc(pairs, sizeof(int));
    check.taken = troupe_calloc(pairs, sizeof(int));
    check.next = troupe_calloc(ranks, sizeof(int));
    check.pending = troupe_calloc(ranks, sizeof(int));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (check.held && check.mail && check.chunk_of && check.sent && check.taken && check.next &&
        check.pending)
        status = check_run(&check);
    free(check.held);
    free(check.mail);
    free(check.chunk_of);
    free(check.sent);
    free(check.taken);
    free(check.next);
    free(check.pending);
    return status;
}
