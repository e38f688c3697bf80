/* Moving bytes between ranks: `local` (threads of one process) and `mpi`.
 *
 * Two services. Channels carry the tokens of static edges: sizes and tags are agreed beforehand,
 * and a receive is posted straight into the consumer's buffer. Messages carry control traffic: a
 * header, then bytes, to a handler.
 *
 * All slots that are marked "serial" are called by one thread at a time, which the caller
 * ensures (the try-lock around progress); the others from any thread. Completions are reported
 * from inside progress. */
#ifndef TROUPE_TRANSPORT_TRANSPORT_H
#define TROUPE_TRANSPORT_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

struct troupe_transport;

/* The most bytes of a transfer that may share a message with others. */
#define TROUPE_TRANSFER_SMALL 512

/* One send or receive. Storage is the caller's and stays until `done` was called. */
struct troupe_transfer {
    /* Called once from progress. For a receive `bytes` is what came. status: OK, DATA_LOSS when the
     * message was longer than `capacity`, UNAVAILABLE when the peer is lost, CANCELLED on close. */
    void (*done)(struct troupe_transfer *self, enum troupe_status status, size_t bytes);
    void *data;
    size_t bytes;                 /* to send, or the receive's capacity */
    int peer;                     /* rank */
    int tag;                      /* 0 to tag_limit - 1 */
    bool synchronous;             /* of a send: done only when the receiver has matched it */
    bool is_small;                /* of at most TROUPE_TRANSFER_SMALL bytes, at both ends: may
                                     travel with others in one message */
    void *internal[4];            /* of the transport */
    struct troupe_transfer *next; /* of the transport's command queue */
};

/* Receives a message. Borrows `data`, which is not aligned; decode field by field. From progress.
 */
typedef void troupe_message_fn(void *context, int from, uint32_t kind, const void *data,
                               size_t bytes);

struct troupe_transport_ops {
    const char *name;
    /* Required. Queues a send; shares transfer and data until done. Never blocks. Transfers with
     * the same peer and tag match in order. Any thread. */
    void (*send)(struct troupe_transport *self, struct troupe_transfer *transfer);
    /* Required. Queues a receive into data. As send. */
    void (*receive)(struct troupe_transport *self, struct troupe_transfer *transfer);
    /* Required. Frees what the transport keeps with a transfer that is done and will not be used
     * again (a persistent request). Serial. */
    void (*release)(struct troupe_transport *self, struct troupe_transfer *transfer);
    /* Required. Sends a copy of `data` to the peer's message handler, in order per peer; kinds are
     * the caller's. A rank may send to itself. RESOURCE_EXHAUSTED. Never blocks. Any thread. */
    enum troupe_status (*message)(struct troupe_transport *self, int to, uint32_t kind,
                                  const void *data, size_t bytes);
    /* Required. Hands queued commands to the network, tests for completions, calls done and the
     * message handler. Returns how many events it handled. Serial. Never blocks. */
    int (*progress)(struct troupe_transport *self);
    /* Required. Waits (driving progress) until what was sent has left, cancels posted receives, and
     * frees. Collective when the ranks are healthy. Serial. */
    void (*destroy)(struct troupe_transport *self);
    /* Required. Ends every rank of the job with the exit status; does not return. Any thread. */
    void (*abort)(struct troupe_transport *self, int exit_status);
};

struct troupe_transport {
    const struct troupe_transport_ops *ops;
    int rank, size;
    int ranks_on_host; /* how many of them share this host */
    int tag_limit;
    bool main_thread_only;    /* progress must be called by the thread that created it */
    _Atomic(int64_t) pending; /* transfers queued and not done: the pool's poll_pending */
    /* Of messages, which are kept while it is NULL. Threads may be in progress when the owner sets
     * it: all that it reads, handler_context first, is to be in place before. */
    troupe_message_fn *_Atomic handler;
    void *handler_context;
};

/* As ops->release. */
void troupe_transfer_release(struct troupe_transport *transport, struct troupe_transfer *transfer);

/* `size` endpoints in this process, one per rank: out[0..size). Each may be driven by a thread of
 * its own. The last destroyed frees what they share. */
TROUPE_MUST_USE enum troupe_status troupe_transport_local_create(int size,
                                                                 struct troupe_transport **out);

/* Over a duplicate of the communicator (an MPI_Comm behind a pointer, so that this header needs
 * no mpi.h). Does not initialise or finalise MPI. FAILED_PRECONDITION: MPI is not initialised;
 * UNAVAILABLE. Collective. */
TROUPE_MUST_USE enum troupe_status troupe_transport_mpi_create(const void *communicator,
                                                               struct troupe_transport **out);

/* True when the environment says that a launcher (mpirun, srun, mpiexec) started this process. */
bool troupe_transport_mpi_is_launched(void);
/* Initialises MPI with the highest thread level it gives, for the command `troupe`; finalises it.
 * `init` does nothing when it is initialised already, `fini` only what `init` did. */
TROUPE_MUST_USE enum troupe_status troupe_transport_mpi_init(int *argc, char ***argv);
void troupe_transport_mpi_fini(void);
/* "Open MPI 4.1.4, MPI_THREAD_MULTIPLE": for `troupe info`. Static. */
const char *troupe_transport_mpi_describe(void);
/* MPI_COMM_WORLD behind a pointer. */
const void *troupe_transport_mpi_world(void);

#endif
