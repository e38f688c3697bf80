/* Messages over MPI. A message is a header (kind, length: 8 bytes each, low byte first) and the
 * first bytes in one block of fixed size at most, then, when it is longer, the rest in a second one
 * with another tag. Invariant: the receive for blocks is posted again only when the message before
 * is whole, so that messages of one rank are delivered in order and only one rest is awaited at a
 * time. A message of the rank to itself goes from list to list. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "transport/mpi_transport.h"
#include "troupe/log.h"

#define BLOCK_BYTES  4096
#define HEADER_BYTES 16
#define FIRST_BYTES  (BLOCK_BYTES - HEADER_BYTES)
/* The longest message that is believed. */
#define MESSAGE_MAX (UINT64_C(1) << 30)
enum { TAG_BLOCK = 1, TAG_REST = 2 }; /* 3: mpi_pack.c */

struct outgoing {
    struct outgoing *next;
    int to;
    uint32_t kind;
    size_t bytes;
    MPI_Request requests[2];
    bool started;
    unsigned char data[]; /* header, then the message */
};

struct troupe_mpi_mail {
    _Atomic(struct outgoing *) queued; /* newest first */
    struct outgoing *sending;          /* progress only, as all below */
    struct outgoing *own, **own_end;   /* to this rank, oldest first */
    unsigned char block[BLOCK_BYTES];
    troupe_message_fn *handler; /* as this call of progress found it */
    bool came; /* what the transport's first request was to receive, and is not taken */
    MPI_Status came_status;
    unsigned char *whole; /* the message whose rest is awaited; NULL: a block is */
    uint64_t whole_bytes;
    int from;
    uint32_t kind;
};

/* What is wrong here cannot be mended: a rank would wait for ever. */
static void give_up(struct troupe_mpi_transport *transport, const char *what, int error)
{
    (void)troupe_mpi_fail(what, error);
    troupe_log(TROUPE_LOG_ERROR, "%s", troupe_status_message());
    transport->base.ops->abort(&transport->base, 3);
}

/* The receive of a block, or of the rest of a message. */
static MPI_Request *receive_of(struct troupe_mpi_transport *transport)
{
    return &transport->requests[TROUPE_MPI_MAIL_REQUEST];
}

static void post_block(struct troupe_mpi_transport *transport)
{
    int error = MPI_Irecv(transport->mail->block, BLOCK_BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG_BLOCK,
                          transport->messages, receive_of(transport));
    if (error != MPI_SUCCESS)
        give_up(transport, "MPI_Irecv", error);
}

enum troupe_status troupe_mpi_mail_create(struct troupe_mpi_transport *transport)
{
    transport->mail = troupe_calloc(1, sizeof(*transport->mail));
    if (!transport->mail)
        return TROUPE_RESOURCE_EXHAUSTED;
    transport->mail->own_end = &transport->mail->own;
    post_block(transport);
    return TROUPE_OK;
}

enum troupe_status troupe_mpi_mail_send(struct troupe_mpi_transport *transport, int to,
                                        uint32_t kind, const void *data, size_t bytes)
{
    if (bytes > MESSAGE_MAX)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED,
                                  "a message of %zu bytes is over the limit of %llu", bytes,
                                  (unsigned long long)MESSAGE_MAX);
    struct outgoing *message = troupe_calloc(1, sizeof(*message) + HEADER_BYTES + bytes);
    if (!message)
        return TROUPE_RESOURCE_EXHAUSTED;
    message->to = to;
    message->kind = kind;
    message->bytes = bytes;
    message->requests[0] = message->requests[1] = MPI_REQUEST_NULL;
    troupe_bytes_put_u64(message->data, kind);
    troupe_bytes_put_u64(message->data + 8, bytes);
    if (bytes > 0)
        memcpy(message->data + HEADER_BYTES, data, bytes);
    atomic_fetch_add(&transport->base.pending, 1);
    struct outgoing *top = atomic_load(&transport->mail->queued);
    do
        message->next = top;
    while (!atomic_compare_exchange_weak(&transport->mail->queued, &top, message));
    return TROUPE_OK;
}

static void start(struct troupe_mpi_transport *transport, struct outgoing *message)
{
    size_t first = HEADER_BYTES + message->bytes;
    if (first > BLOCK_BYTES)
        first = BLOCK_BYTES;
    int error = MPI_Isend(message->data, (int)first, MPI_BYTE, message->to, TAG_BLOCK,
                          transport->messages, &message->requests[0]);
    size_t rest = HEADER_BYTES + message->bytes - first;
    if (error == MPI_SUCCESS && rest > 0)
        error = MPI_Isend(message->data + first, (int)rest, MPI_BYTE, message->to, TAG_REST,
                          transport->messages, &message->requests[1]);
    if (error != MPI_SUCCESS)
        give_up(transport, "MPI_Isend", error);
    message->started = true;
}

static int start_queued(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_mail *mail = transport->mail;
    if (!atomic_load(&mail->queued))
        return 0;
    struct outgoing *stack = atomic_exchange(&mail->queued, NULL), *ordered = NULL;
    while (stack) {
        struct outgoing *next = stack->next;
        stack->next = ordered;
        ordered = stack;
        stack = next;
    }
    int events = 0;
    while (ordered) {
        struct outgoing *next = ordered->next;
        if (ordered->to == transport->base.rank) {
            ordered->next = NULL;
            *mail->own_end = ordered;
            mail->own_end = &ordered->next;
        } else {
            start(transport, ordered);
            ordered->next = mail->sending;
            mail->sending = ordered;
        }
        ordered = next;
        events++;
    }
    return events;
}

static int finish_sent(struct troupe_mpi_transport *transport)
{
    int events = 0;
    struct outgoing **link = &transport->mail->sending;
    while (*link) {
        struct outgoing *message = *link;
        int done = 0;
        int error = MPI_Testall(2, message->requests, &done, MPI_STATUSES_IGNORE);
        if (error != MPI_SUCCESS)
            give_up(transport, "MPI_Testall", error);
        if (!done) {
            link = &message->next;
            continue;
        }
        *link = message->next;
        free(message);
        atomic_fetch_sub(&transport->base.pending, 1);
        events++;
    }
    return events;
}

/* Hands over what the rank sent to itself before this call; more may come from the handler. */
static int deliver_own(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_mail *mail = transport->mail;
    troupe_message_fn *handler = atomic_load(&transport->base.handler);
    if (!handler)
        return 0;
    struct outgoing *message = mail->own;
    mail->own = NULL;
    mail->own_end = &mail->own;
    int events = 0;
    while (message) {
        struct outgoing *next = message->next;
        handler(transport->base.handler_context, message->to, message->kind,
                message->data + HEADER_BYTES, message->bytes);
        free(message);
        atomic_fetch_sub(&transport->base.pending, 1);
        message = next;
        events++;
    }
    return events;
}

static void deliver(struct troupe_mpi_transport *transport, const unsigned char *data,
                    uint64_t bytes)
{
    struct troupe_mpi_mail *mail = transport->mail;
    mail->handler(transport->base.handler_context, mail->from, mail->kind, data, (size_t)bytes);
}

/* A block has come: the message is whole, or its rest is posted. */
static void take_block(struct troupe_mpi_transport *transport, int from, int count)
{
    struct troupe_mpi_mail *mail = transport->mail;
    uint64_t kind = count >= HEADER_BYTES ? troupe_bytes_get_u64(mail->block) : UINT64_MAX;
    uint64_t bytes = count >= HEADER_BYTES ? troupe_bytes_get_u64(mail->block + 8) : 0;
    uint64_t first = bytes < FIRST_BYTES ? bytes : FIRST_BYTES;
    if (kind > UINT32_MAX || bytes > MESSAGE_MAX || (uint64_t)count != HEADER_BYTES + first) {
        troupe_log(TROUPE_LOG_ERROR, "rank %d sent a malformed message of %d bytes", from, count);
        transport->base.ops->abort(&transport->base, 3);
    }
    mail->from = from;
    mail->kind = (uint32_t)kind;
    if (first == bytes) {
        deliver(transport, mail->block + HEADER_BYTES, bytes);
        post_block(transport);
        return;
    }
    mail->whole = malloc((size_t)bytes);
    if (!mail->whole)
        give_up(transport, "memory for a message", MPI_ERR_NO_MEM);
    memcpy(mail->whole, mail->block + HEADER_BYTES, (size_t)first);
    mail->whole_bytes = bytes;
    int error = MPI_Irecv(mail->whole + first, (int)(bytes - first), MPI_BYTE, from, TAG_REST,
                          transport->messages, receive_of(transport));
    if (error != MPI_SUCCESS)
        give_up(transport, "MPI_Irecv", error);
}

static void take_rest(struct troupe_mpi_transport *transport, int count)
{
    struct troupe_mpi_mail *mail = transport->mail;
    if ((uint64_t)count + FIRST_BYTES != mail->whole_bytes) {
        troupe_log(TROUPE_LOG_ERROR, "rank %d sent %d bytes of a message and %llu were announced",
                   mail->from, count, (unsigned long long)mail->whole_bytes);
        transport->base.ops->abort(&transport->base, 3);
    }
    unsigned char *whole = mail->whole;
    mail->whole = NULL;
    deliver(transport, whole, mail->whole_bytes);
    free(whole);
    post_block(transport);
}

void troupe_mpi_mail_came(struct troupe_mpi_transport *transport, const MPI_Status *status,
                          int error)
{
    if (error != MPI_SUCCESS)
        give_up(transport, "receiving a message", error);
    transport->mail->came = true;
    transport->mail->came_status = *status;
}

/* Takes what came; it is kept until somebody can be told of it. */
static int receive(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_mail *mail = transport->mail;
    int count = 0;
    mail->handler = atomic_load(&transport->base.handler);
    if (!mail->came || !mail->handler)
        return 0;
    int error = MPI_Get_count(&mail->came_status, MPI_BYTE, &count);
    if (error != MPI_SUCCESS)
        give_up(transport, "MPI_Get_count", error);
    mail->came = false;
    if (mail->whole)
        take_rest(transport, count);
    else
        take_block(transport, mail->came_status.MPI_SOURCE, count);
    return 1;
}

int troupe_mpi_mail_progress(struct troupe_mpi_transport *transport)
{
    int events = start_queued(transport);
    events += finish_sent(transport);
    events += deliver_own(transport);
    events += receive(transport);
    return events + start_queued(transport);
}

bool troupe_mpi_mail_is_empty(struct troupe_mpi_transport *transport)
{
    return !atomic_load(&transport->mail->queued) && !transport->mail->sending;
}

bool troupe_mpi_cancel_receive(MPI_Request *request)
{
    if (*request == MPI_REQUEST_NULL)
        return true;
    int done = 0, error = MPI_Cancel(request);
    uint64_t deadline = troupe_clock_ns() + TROUPE_MPI_DRAIN_NS;
    while (error == MPI_SUCCESS && !done && troupe_clock_ns() < deadline)
        error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    return done;
}

void troupe_mpi_mail_destroy(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_mail *mail = transport->mail;
    transport->mail = NULL;
    while (mail->own) {
        struct outgoing *message = mail->own;
        mail->own = message->next;
        free(message);
    }
    while (mail->sending) {
        struct outgoing *message = mail->sending;
        mail->sending = message->next;
        /* Its buffer stays MPI's: the send may still read it. */
        for (int i = 0; i < 2; i++)
            if (message->requests[i] != MPI_REQUEST_NULL)
                MPI_Request_free(&message->requests[i]);
    }
    /* A rest that a lost rank will not send cannot be waited for: its memory stays MPI's. */
    if (!troupe_mpi_cancel_receive(receive_of(transport)))
        return;
    free(mail->whole);
    free(mail);
}
