/* Transfers of a rank with itself. They are matched here and copied, never given to MPI: Open MPI
 * cuts a message to the rank itself without a word when it is longer than a receive that was
 * posted before. Invariant: for one tag at most one of the two lists has entries. */
#include <string.h>

#include "transport/mpi_transport.h"

void troupe_mpi_self_init(struct troupe_mpi_transport *transport)
{
    struct troupe_mpi_self *self = &transport->self;
    self->sends = self->receives = NULL;
    self->sends_end = &self->sends;
    self->receives_end = &self->receives;
}

/* Takes the first transfer with the tag out of a list. */
static struct troupe_transfer *take(struct troupe_transfer **first, struct troupe_transfer ***end,
                                    int tag)
{
    for (struct troupe_transfer **link = first; *link; link = &(*link)->next) {
        struct troupe_transfer *transfer = *link;
        if (transfer->tag != tag)
            continue;
        *link = transfer->next;
        if (*end == &transfer->next)
            *end = link;
        return transfer;
    }
    return NULL;
}

static void append(struct troupe_transfer ***end, struct troupe_transfer *transfer)
{
    transfer->next = NULL;
    **end = transfer;
    *end = &transfer->next;
}

void troupe_mpi_self_start(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer,
                           bool is_send)
{
    struct troupe_mpi_self *self = &transport->self;
    struct troupe_transfer *other = is_send
                                        ? take(&self->receives, &self->receives_end, transfer->tag)
                                        : take(&self->sends, &self->sends_end, transfer->tag);
    if (!other) {
        append(is_send ? &self->sends_end : &self->receives_end, transfer);
        return;
    }
    struct troupe_transfer *send = is_send ? transfer : other;
    struct troupe_transfer *receive = is_send ? other : transfer;
    size_t sent = send->bytes, came = sent < receive->bytes ? sent : receive->bytes;
    enum troupe_status status = sent > receive->bytes ? TROUPE_DATA_LOSS : TROUPE_OK;
    if (came > 0)
        memcpy(receive->data, send->data, came);
    troupe_mpi_finish(transport, receive, status, came);
    troupe_mpi_finish(transport, send, TROUPE_OK, sent);
}

static void cancel(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer)
{
    while (transfer) {
        struct troupe_transfer *next = transfer->next;
        troupe_mpi_finish(transport, transfer, TROUPE_CANCELLED, 0);
        transfer = next;
    }
}

void troupe_mpi_self_cancel(struct troupe_mpi_transport *transport)
{
    struct troupe_transfer *sends = transport->self.sends, *receives = transport->self.receives;
    troupe_mpi_self_init(transport);
    cancel(transport, sends);
    cancel(transport, receives);
}
