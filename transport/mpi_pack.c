/* Small transfers over MPI, many to a message. What progress finds queued for a peer in one call is
 * copied into one pack (pack.h) and leaves as one message; what comes is matched here, by peer and
 * tag, with the receives that were queued, which MPI never hears of. A send that is synchronous is
 * done when an entry without bytes comes back that says that it was matched; any other when it has
 * been copied. Invariant: of one peer and tag there are receives that wait or entries that have
 * come, never both, each in order. Progress only. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "transport/mpi_transport.h"
#include "transport/pack.h"
#include "troupe/log.h"

#define TAG_PACK    3 /* beside those of mpi_message.c */
#define FIRST_LINES 64

struct pack {
    struct pack *next;
    MPI_Request request;
    size_t bytes;
    unsigned char data[TROUPE_PACK_BYTES];
};

/* An entry that came before its receive. */
struct arrival {
    struct arrival *next;
    unsigned flags;
    size_t bytes;
    unsigned char data[TROUPE_TRANSFER_SMALL];
};

/* All that is known of one peer and tag. */
struct line {
    struct line *next;
    int peer, tag;
    struct troupe_transfer *receives, **receives_end; /* that wait */
    struct troupe_transfer *sends, **sends_end;       /* synchronous, not matched yet */
    struct arrival *arrivals, **arrivals_end;
};

struct troupe_mpi_packs {
    struct pack **open; /* by peer: what the next message takes; NULL: nothing */
    int *touched;       /* peers with an open pack */
    int touched_count;
    struct pack *sending, *free_packs;
    struct arrival *free_arrivals;
    struct line **lines; /* a hash table of chains */
    size_t line_count, capacity;
    int64_t unmatched; /* synchronous sends not done */
    unsigned char block[TROUPE_PACK_BYTES];
    bool came; /* what the request was to receive, and is not taken */
    MPI_Status came_status;
};

/* What is wrong here cannot be mended: a rank would wait for ever. */
static void give_up(struct troupe_mpi_transport *transport, const char *what, int error)
{
    (void)troupe_mpi_fail(what, error);
    troupe_log(TROUPE_LOG_ERROR, "%s", troupe_status_message());
    transport->base.ops->abort(&transport->base, 3);
}

/* ---- Lines ---- */

static size_t line_slot(const struct troupe_mpi_packs *packs, int peer, int tag)
{
    /* Fibonacci hashing: neighbouring tags spread. */
    uint64_t key = (uint64_t)(uint32_t)peer << 32 | (uint32_t)tag;
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (packs->capacity - 1);
}

static bool lines_grow(struct troupe_mpi_packs *packs)
{
    size_t before = packs->capacity, capacity = before ? 2 * before : FIRST_LINES;
    struct line **old = packs->lines;
    struct line **grown = troupe_calloc(capacity, sizeof(struct line *));
    if (!grown)
        return false;
    packs->lines = grown;
    packs->capacity = capacity;
    for (size_t i = 0; i < before; i++) {
        for (struct line *line = old[i]; line;) {
            struct line *next = line->next;
            size_t slot = line_slot(packs, line->peer, line->tag);
            line->next = grown[slot];
            grown[slot] = line;
            line = next;
        }
    }
    free(old);
    return true;
}

/* The line of a peer and tag, made when it is new; ends the job without memory. */
static struct line *line_of(struct troupe_mpi_transport *transport, int peer, int tag)
{
    struct troupe_mpi_packs *packs = transport->packs;
    struct line *line = packs->lines[line_slot(packs, peer, tag)];
    while (line && (line->peer != peer || line->tag != tag))
        line = line->next;
    if (line)
        return line;
    line = troupe_calloc(1, sizeof(*line));
    if (!line || (packs->line_count >= packs->capacity && !lines_grow(packs)))
        give_up(transport, "memory for a small message", MPI_ERR_NO_MEM);
    line->peer = peer;
    line->tag = tag;
    line->receives_end = &line->receives;
    line->sends_end = &line->sends;
    line->arrivals_end = &line->arrivals;
    size_t slot = line_slot(packs, peer, tag);
    line->next = packs->lines[slot];
    packs->lines[slot] = line;
    packs->line_count++;
    return line;
}

static void transfer_append(struct troupe_transfer ***end, struct troupe_transfer *transfer)
{
    transfer->next = NULL;
    **end = transfer;
    *end = &transfer->next;
}

static struct troupe_transfer *transfer_take(struct troupe_transfer **first,
                                             struct troupe_transfer ***end)
{
    struct troupe_transfer *transfer = *first;
    if (transfer) {
        *first = transfer->next;
        if (!*first)
            *end = first;
    }
    return transfer;
}

/* ---- Sending ---- */

static struct pack *pack_make(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_packs *packs = transport->packs;
    struct pack *pack = packs->free_packs;
    if (pack)
        packs->free_packs = pack->next;
    else
        pack = troupe_calloc(1, sizeof(*pack));
    if (!pack)
        give_up(transport, "memory for small messages", MPI_ERR_NO_MEM);
    pack->bytes = 0;
    return pack;
}

static void pack_send(struct troupe_mpi_transport *transport, int peer)
{
    struct troupe_mpi_packs *packs = transport->packs;
    struct pack *pack = packs->open[peer];
    packs->open[peer] = NULL;
    int error = MPI_Isend(pack->data, (int)pack->bytes, MPI_BYTE, peer, TAG_PACK,
                          transport->messages, &pack->request);
    if (error != MPI_SUCCESS)
        give_up(transport, "MPI_Isend", error);
    pack->next = packs->sending;
    packs->sending = pack;
}

static void entry_add(struct troupe_mpi_transport *transport, int peer,
                      const struct troupe_pack_entry *entry)
{
    struct troupe_mpi_packs *packs = transport->packs;
    if (packs->open[peer] &&
        packs->open[peer]->bytes + TROUPE_PACK_ENTRY + entry->bytes > TROUPE_PACK_BYTES)
        pack_send(transport, peer);
    if (!packs->open[peer]) {
        packs->open[peer] = pack_make(transport);
        packs->touched[packs->touched_count++] = peer;
    }
    struct pack *pack = packs->open[peer];
    pack->bytes = troupe_pack_put(pack->data, pack->bytes, entry);
    /* A peer may be noted twice, when its pack was full in between: there is room for that. */
    if (packs->touched_count >= 2 * transport->base.size)
        troupe_mpi_pack_flush(transport);
}

void troupe_mpi_pack_flush(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_packs *packs = transport->packs;
    while (packs->touched_count > 0) {
        int peer = packs->touched[--packs->touched_count];
        if (packs->open[peer])
            pack_send(transport, peer);
    }
}

static int finish_sent(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_packs *packs = transport->packs;
    struct pack **link = &packs->sending;
    while (*link) {
        struct pack *pack = *link;
        int done = 0;
        int error = MPI_Test(&pack->request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS)
            give_up(transport, "MPI_Test", error);
        if (!done) {
            link = &pack->next;
            continue;
        }
        *link = pack->next;
        pack->next = packs->free_packs;
        packs->free_packs = pack;
    }
    return 0;
}

/* Gives an entry to its receive. The callback may queue, but starts nothing. */
static void match(struct troupe_mpi_transport *transport, struct troupe_transfer *receive,
                  unsigned flags, const unsigned char *data, size_t bytes)
{
    enum troupe_status status = bytes > receive->bytes ? TROUPE_DATA_LOSS : TROUPE_OK;
    size_t came = bytes < receive->bytes ? bytes : receive->bytes;
    if (came > 0)
        memcpy(receive->data, data, came);
    if (flags & TROUPE_PACK_SYNCHRONOUS) {
        struct troupe_pack_entry answer = {.tag = receive->tag, .flags = TROUPE_PACK_MATCHED};
        entry_add(transport, receive->peer, &answer);
    }
    troupe_mpi_finish(transport, receive, status, came);
}

void troupe_mpi_pack_start(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer,
                           bool is_send)
{
    struct troupe_mpi_packs *packs = transport->packs;
    int peer = transfer->peer, tag = transfer->tag;
    if (is_send) {
        struct troupe_pack_entry entry = {.tag = tag,
                                          .flags =
                                              transfer->synchronous ? TROUPE_PACK_SYNCHRONOUS : 0,
                                          .data = transfer->data,
                                          .bytes = transfer->bytes};
        entry_add(transport, peer, &entry);
        if (!transfer->synchronous) {
            troupe_mpi_finish(transport, transfer, TROUPE_OK, transfer->bytes);
            return;
        }
        packs->unmatched++;
        transfer_append(&line_of(transport, peer, tag)->sends_end, transfer);
        return;
    }
    struct line *line = line_of(transport, peer, tag);
    struct arrival *arrival = line->arrivals;
    if (!arrival) {
        transfer_append(&line->receives_end, transfer);
        return;
    }
    line->arrivals = arrival->next;
    if (!line->arrivals)
        line->arrivals_end = &line->arrivals;
    arrival->next = packs->free_arrivals;
    packs->free_arrivals = arrival;
    match(transport, transfer, arrival->flags, arrival->data, arrival->bytes);
}

/* ---- Receiving ---- */

static void arrival_keep(struct troupe_mpi_transport *transport, struct line *line,
                         const struct troupe_pack_entry *entry)
{
    struct troupe_mpi_packs *packs = transport->packs;
    struct arrival *arrival = packs->free_arrivals;
    if (arrival)
        packs->free_arrivals = arrival->next;
    else
        arrival = troupe_calloc(1, sizeof(*arrival));
    if (!arrival)
        give_up(transport, "memory for a small message", MPI_ERR_NO_MEM);
    arrival->next = NULL;
    arrival->flags = entry->flags;
    arrival->bytes = entry->bytes;
    memcpy(arrival->data, entry->data, entry->bytes);
    *line->arrivals_end = arrival;
    line->arrivals_end = &arrival->next;
}

/* False for an entry that nobody could have sent. */
static bool take_entry(struct troupe_mpi_transport *transport, int from,
                       const struct troupe_pack_entry *entry)
{
    struct troupe_mpi_packs *packs = transport->packs;
    if (entry->tag >= transport->base.tag_limit)
        return false;
    struct line *line = line_of(transport, from, entry->tag);
    if (entry->flags & TROUPE_PACK_MATCHED) {
        struct troupe_transfer *send = transfer_take(&line->sends, &line->sends_end);
        if (!send)
            return false;
        packs->unmatched--;
        troupe_mpi_finish(transport, send, TROUPE_OK, send->bytes);
        return true;
    }
    struct troupe_transfer *receive = transfer_take(&line->receives, &line->receives_end);
    if (receive)
        match(transport, receive, entry->flags, entry->data, entry->bytes);
    else
        arrival_keep(transport, line, entry);
    return true;
}

/* The number of entries; ends the job when the pack is malformed. */
static int take_pack(struct troupe_mpi_transport *transport, int from, size_t count)
{
    struct troupe_pack_entry entry;
    size_t at = 0;
    int entries = 0;
    for (; at < count; entries++) {
        if (troupe_pack_get(transport->packs->block, count, &at, &entry) &&
            take_entry(transport, from, &entry))
            continue;
        troupe_log(TROUPE_LOG_ERROR, "rank %d sent a malformed pack of %zu bytes", from, count);
        transport->base.ops->abort(&transport->base, 3);
    }
    return entries;
}

static void post(struct troupe_mpi_transport *transport)
{
    int error =
        MPI_Irecv(transport->packs->block, TROUPE_PACK_BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_PACK,
                  transport->messages, &transport->requests[TROUPE_MPI_PACK_REQUEST]);
    if (error != MPI_SUCCESS)
        give_up(transport, "MPI_Irecv", error);
}

void troupe_mpi_pack_came(struct troupe_mpi_transport *transport, const MPI_Status *status,
                          int error)
{
    if (error != MPI_SUCCESS)
        give_up(transport, "receiving small messages", error);
    transport->packs->came = true;
    transport->packs->came_status = *status;
}

int troupe_mpi_pack_progress(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_packs *packs = transport->packs;
    int events = finish_sent(transport);
    if (packs->came) {
        int count = 0;
        int error = MPI_Get_count(&packs->came_status, MPI_BYTE, &count);
        if (error != MPI_SUCCESS)
            give_up(transport, "MPI_Get_count", error);
        packs->came = false;
        events += take_pack(transport, packs->came_status.MPI_SOURCE, (size_t)count);
        post(transport);
    }
    troupe_mpi_pack_flush(transport);
    return events;
}

/* ---- Begin and end ---- */

enum troupe_status troupe_mpi_pack_create(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_packs *packs = troupe_calloc(1, sizeof(*packs));
    if (!packs)
        return TROUPE_RESOURCE_EXHAUSTED;
    transport->packs = packs;
    size_t size = (size_t)transport->base.size;
    packs->open = troupe_calloc(size, sizeof(struct pack *));
    packs->touched = troupe_calloc(2 * size + 1, sizeof(int));
    if (!packs->open || !packs->touched || !lines_grow(packs))
        return TROUPE_RESOURCE_EXHAUSTED;
    post(transport);
    return TROUPE_OK;
}

void troupe_mpi_pack_release(struct troupe_mpi_transport *transport,
                             const struct troupe_transfer *transfer)
{
    struct troupe_mpi_packs *packs = transport->packs;
    struct line **link = &packs->lines[line_slot(packs, transfer->peer, transfer->tag)];
    while (*link && ((*link)->peer != transfer->peer || (*link)->tag != transfer->tag))
        link = &(*link)->next;
    struct line *line = *link;
    if (!line || line->receives || line->sends || line->arrivals)
        return;
    *link = line->next;
    free(line);
    packs->line_count--;
}

bool troupe_mpi_pack_is_empty(const struct troupe_mpi_transport *transport)
{
    const struct troupe_mpi_packs *packs = transport->packs;
    return packs->touched_count == 0 && !packs->sending && packs->unmatched == 0;
}

static void cancel(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer)
{
    while (transfer) {
        struct troupe_transfer *next = transfer->next;
        troupe_mpi_finish(transport, transfer, TROUPE_CANCELLED, 0);
        transfer = next;
    }
}

static void line_free(struct troupe_mpi_transport *transport, struct line *line)
{
    cancel(transport, line->receives);
    cancel(transport, line->sends);
    for (struct arrival *arrival = line->arrivals; arrival;) {
        struct arrival *next = arrival->next;
        free(arrival);
        arrival = next;
    }
    free(line);
}

static void packs_free(struct pack *pack)
{
    while (pack) {
        struct pack *next = pack->next;
        free(pack);
        pack = next;
    }
}

void troupe_mpi_pack_destroy(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_packs *packs = transport->packs;
    if (!packs)
        return;
    for (size_t i = 0; i < packs->capacity; i++) {
        for (struct line *line = packs->lines[i]; line;) {
            struct line *next = line->next;
            line_free(transport, line);
            line = next;
        }
    }
    while (packs->free_arrivals) {
        struct arrival *next = packs->free_arrivals->next;
        free(packs->free_arrivals);
        packs->free_arrivals = next;
    }
    packs_free(packs->free_packs);
    for (int peer = 0; packs->open && peer < transport->base.size; peer++)
        packs_free(packs->open[peer]);
    /* A pack that has not left stays MPI's. */
    for (struct pack *pack = packs->sending; pack; pack = pack->next)
        MPI_Request_free(&pack->request);
    free(packs->open);
    free(packs->touched);
    free(packs->lines);
    /* Nor may the block go while MPI would write into it. */
    if (troupe_mpi_cancel_receive(&transport->requests[TROUPE_MPI_PACK_REQUEST]))
        free(packs);
    transport->packs = NULL;
}
