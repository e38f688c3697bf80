/* The parts of the MPI transport. Private to transport/. */
#ifndef TROUPE_TRANSPORT_MPI_TRANSPORT_H
#define TROUPE_TRANSPORT_MPI_TRANSPORT_H

#include <mpi.h>

#include "transport/transport.h"

/* Transfers with the rank itself that wait for their partner, in order. Progress only. */
struct troupe_mpi_self {
    struct troupe_transfer *sends, **sends_end;
    struct troupe_transfer *receives, **receives_end;
};

struct troupe_mpi_transport {
    struct troupe_transport base;
    MPI_Comm channels; /* duplicates of the caller's communicator: no tag of ours meets */
    MPI_Comm messages; /* one of theirs, nor a message a channel */

    /* What workers hand to progress: a stack, newest first, that is taken whole and turned. */
    _Atomic(struct troupe_transfer *) commands;
    /* Started requests, dense; owners[i] is the transfer of requests[i]. The first are the receives
     * of messages and packs, which have no owner: one MPI call then tests everything, where a
     * second would run all of MPI's progress once more. Progress only. */
    MPI_Request *requests;
    struct troupe_transfer **owners;
    int *completed;
    MPI_Status *statuses;
    int count, capacity;

    struct troupe_mpi_self self;    /* mpi_self.c */
    struct troupe_mpi_mail *mail;   /* messages: mpi_message.c */
    struct troupe_mpi_packs *packs; /* small transfers: mpi_pack.c */
};

/* The places of the receives of messages and of packs among the requests. */
enum { TROUPE_MPI_MAIL_REQUEST = 0, TROUPE_MPI_PACK_REQUEST = 1, TROUPE_MPI_FIRST_REQUEST = 2 };

/* Messages. `create` wants room for its request; `came` takes note that it is done; `progress`
 * returns the number of events; `is_empty` says whether all have gone. */
TROUPE_MUST_USE enum troupe_status troupe_mpi_mail_create(struct troupe_mpi_transport *transport);
TROUPE_MUST_USE enum troupe_status troupe_mpi_mail_send(struct troupe_mpi_transport *transport,
                                                        int to, uint32_t kind, const void *data,
                                                        size_t bytes);
void troupe_mpi_mail_came(struct troupe_mpi_transport *transport, const MPI_Status *status,
                          int error);
int troupe_mpi_mail_progress(struct troupe_mpi_transport *transport);
bool troupe_mpi_mail_is_empty(struct troupe_mpi_transport *transport);
void troupe_mpi_mail_destroy(struct troupe_mpi_transport *transport);

/* Small transfers. `create` wants room for its request; `start` may call the transfer's callback;
 * `came` takes note that the request is done; `progress` handles
 * it and sends what is packed, as `flush` does alone; `release` forgets a peer's tag; `destroy`
 * ends what still waits. */
TROUPE_MUST_USE enum troupe_status troupe_mpi_pack_create(struct troupe_mpi_transport *transport);
void troupe_mpi_pack_start(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer,
                           bool is_send);
void troupe_mpi_pack_came(struct troupe_mpi_transport *transport, const MPI_Status *status,
                          int error);
int troupe_mpi_pack_progress(struct troupe_mpi_transport *transport);
void troupe_mpi_pack_flush(struct troupe_mpi_transport *transport);
void troupe_mpi_pack_release(struct troupe_mpi_transport *transport,
                             const struct troupe_transfer *transfer);
bool troupe_mpi_pack_is_empty(const struct troupe_mpi_transport *transport);
void troupe_mpi_pack_destroy(struct troupe_mpi_transport *transport);

/* Takes a posted receive back; true when MPI does not use its memory any more. */
bool troupe_mpi_cancel_receive(MPI_Request *request);

/* Transfers with the rank itself. `start` may call the callbacks of two transfers; `cancel` ends
 * what still waits. */
void troupe_mpi_self_init(struct troupe_mpi_transport *transport);
void troupe_mpi_self_start(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer,
                           bool is_send);
void troupe_mpi_self_cancel(struct troupe_mpi_transport *transport);

/* Gives a transfer back to its maker. */
void troupe_mpi_finish(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer,
                       enum troupe_status status, size_t bytes);

/* How long destroy waits for what does not leave. */
#define TROUPE_MPI_DRAIN_NS UINT64_C(5000000000)

/* "MPI_Send: message of MPI_Error_string", as the thread's message; UNAVAILABLE. */
enum troupe_status troupe_mpi_fail(const char *call, int error);

#endif
