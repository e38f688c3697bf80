/* The MPI transport's channels. Invariant: only progress, create and destroy call MPI, and one
 * thread at a time; a transfer is owned by the command stack, then by the request arrays, then by
 * its maker. */
#include "transport/mpi_transport.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "troupe/log.h"

/* What a transfer keeps in `internal`: a persistent request, and what it was made for. */
enum { INTERNAL_PERSISTENT = 0, INTERNAL_VERB = 1 };
static char verb_send, verb_receive; /* their addresses say what a queued transfer is */

struct persistent {
    MPI_Request request;
    void *data;
    size_t bytes;
    int peer, tag;
    bool is_send, synchronous;
};

static struct troupe_mpi_transport *mpi_of(struct troupe_transport *transport)
{
    return troupe_container_of(transport, struct troupe_mpi_transport, base);
}

enum troupe_status troupe_mpi_fail(const char *call, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    return troupe_status_fail(TROUPE_UNAVAILABLE, "%s: %s", call, text);
}

static void queue(struct troupe_transport *base, struct troupe_transfer *transfer, char *verb)
{
    struct troupe_mpi_transport *transport = mpi_of(base);
    transfer->internal[INTERNAL_VERB] = verb;
    atomic_fetch_add(&base->pending, 1);
    struct troupe_transfer *top = atomic_load(&transport->commands);
    do
        transfer->next = top;
    while (!atomic_compare_exchange_weak(&transport->commands, &top, transfer));
}

static void mpi_send(struct troupe_transport *base, struct troupe_transfer *transfer)
{
    queue(base, transfer, &verb_send);
}

static void mpi_receive(struct troupe_transport *base, struct troupe_transfer *transfer)
{
    queue(base, transfer, &verb_receive);
}

static enum troupe_status mpi_message(struct troupe_transport *base, int to, uint32_t kind,
                                      const void *data, size_t bytes)
{
    return troupe_mpi_mail_send(mpi_of(base), to, kind, data, bytes);
}

void troupe_mpi_finish(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer,
                       enum troupe_status status, size_t bytes)
{
    atomic_fetch_sub(&transport->base.pending, 1);
    transfer->done(transfer, status, bytes);
}

static void drop_persistent(struct troupe_transfer *transfer)
{
    struct persistent *persistent = transfer->internal[INTERNAL_PERSISTENT];
    if (!persistent)
        return;
    if (persistent->request != MPI_REQUEST_NULL)
        MPI_Request_free(&persistent->request);
    free(persistent);
    transfer->internal[INTERNAL_PERSISTENT] = NULL;
}

static void mpi_release(struct troupe_transport *base, struct troupe_transfer *transfer)
{
    drop_persistent(transfer);
    if (transfer->is_small)
        troupe_mpi_pack_release(mpi_of(base), transfer);
}

static bool persistent_fits(const struct persistent *persistent,
                            const struct troupe_transfer *transfer, bool is_send)
{
    return persistent && persistent->data == transfer->data &&
           persistent->bytes == transfer->bytes && persistent->peer == transfer->peer &&
           persistent->tag == transfer->tag && persistent->is_send == is_send &&
           persistent->synchronous == transfer->synchronous;
}

/* One element of so many bytes, for what is over MPI's count of bytes. */
static int large_type(size_t bytes, MPI_Datatype *out)
{
    const size_t block_bytes = (size_t)1 << 30;
    size_t blocks = bytes / block_bytes;
    MPI_Datatype block;
    int error = MPI_Type_contiguous((int)block_bytes, MPI_BYTE, &block);
    if (error != MPI_SUCCESS)
        return error;
    int lengths[] = {(int)blocks, (int)(bytes % block_bytes)};
    MPI_Aint places[] = {0, (MPI_Aint)(blocks * block_bytes)};
    MPI_Datatype types[] = {block, MPI_BYTE};
    error = MPI_Type_create_struct(2, lengths, places, types, out);
    MPI_Type_free(&block);
    return error == MPI_SUCCESS ? MPI_Type_commit(out) : error;
}

static int request_make(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer,
                        bool is_send, int count, MPI_Datatype type, MPI_Request *out)
{
    if (!is_send)
        return MPI_Recv_init(transfer->data, count, type, transfer->peer, transfer->tag,
                             transport->channels, out);
    if (transfer->synchronous)
        return MPI_Ssend_init(transfer->data, count, type, transfer->peer, transfer->tag,
                              transport->channels, out);
    return MPI_Send_init(transfer->data, count, type, transfer->peer, transfer->tag,
                         transport->channels, out);
}

static int persistent_make(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer,
                           bool is_send)
{
    drop_persistent(transfer);
    struct persistent *persistent = troupe_calloc(1, sizeof(*persistent));
    if (!persistent)
        return MPI_ERR_NO_MEM;
    *persistent = (struct persistent){.request = MPI_REQUEST_NULL,
                                      .data = transfer->data,
                                      .bytes = transfer->bytes,
                                      .peer = transfer->peer,
                                      .tag = transfer->tag,
                                      .is_send = is_send,
                                      .synchronous = transfer->synchronous};
    transfer->internal[INTERNAL_PERSISTENT] = persistent;
    if (transfer->bytes <= INT_MAX)
        return request_make(transport, transfer, is_send, (int)transfer->bytes, MPI_BYTE,
                            &persistent->request);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int error = large_type(transfer->bytes, &type);
    if (error == MPI_SUCCESS)
        error = request_make(transport, transfer, is_send, 1, type, &persistent->request);
    if (type != MPI_DATATYPE_NULL)
        MPI_Type_free(&type); /* the request keeps it */
    return error;
}

static bool grow(struct troupe_mpi_transport *transport)
{
    if (transport->count < transport->capacity)
        return true;
    size_t capacity = transport->capacity ? 2 * (size_t)transport->capacity : 64;
    MPI_Request *requests = troupe_reallocarray(transport->requests, capacity, sizeof(*requests));
    if (requests)
        transport->requests = requests;
    struct troupe_transfer **owners =
        troupe_reallocarray(transport->owners, capacity, sizeof(struct troupe_transfer *));
    if (owners)
        transport->owners = owners;
    int *completed = troupe_reallocarray(transport->completed, capacity, sizeof(*completed));
    if (completed)
        transport->completed = completed;
    MPI_Status *statuses = troupe_reallocarray(transport->statuses, capacity, sizeof(*statuses));
    if (statuses)
        transport->statuses = statuses;
    if (!requests || !owners || !completed || !statuses)
        return false;
    transport->capacity = (int)capacity;
    return true;
}

static void start(struct troupe_mpi_transport *transport, struct troupe_transfer *transfer)
{
    bool is_send = transfer->internal[INTERNAL_VERB] == &verb_send;
    if (transfer->peer == transport->base.rank) {
        troupe_mpi_self_start(transport, transfer, is_send);
        return;
    }
    if (transfer->is_small) {
        troupe_mpi_pack_start(transport, transfer, is_send);
        return;
    }
    int error = grow(transport) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS &&
        !persistent_fits(transfer->internal[INTERNAL_PERSISTENT], transfer, is_send))
        error = persistent_make(transport, transfer, is_send);
    struct persistent *persistent = transfer->internal[INTERNAL_PERSISTENT];
    if (error == MPI_SUCCESS)
        error = MPI_Start(&persistent->request);
    if (error != MPI_SUCCESS) {
        (void)troupe_mpi_fail("MPI_Start", error);
        troupe_log(TROUPE_LOG_ERROR, "%s", troupe_status_message());
        drop_persistent(transfer);
        troupe_mpi_finish(transport, transfer, TROUPE_UNAVAILABLE, 0);
        return;
    }
    transport->requests[transport->count] = persistent->request;
    transport->owners[transport->count++] = transfer;
}

/* Starts what workers queued, in their order. */
static int start_commands(struct troupe_mpi_transport *transport)
{
    if (!atomic_load(&transport->commands))
        return 0;
    struct troupe_transfer *stack = atomic_exchange(&transport->commands, NULL), *ordered = NULL;
    while (stack) {
        struct troupe_transfer *next = stack->next;
        stack->next = ordered;
        ordered = stack;
        stack = next;
    }
    int events = 0;
    while (ordered) {
        struct troupe_transfer *next = ordered->next;
        start(transport, ordered);
        ordered = next;
        events++;
    }
    return events;
}

static enum troupe_status status_of_error(int error)
{
    int class = MPI_SUCCESS;
    if (error == MPI_SUCCESS)
        return TROUPE_OK;
    MPI_Error_class(error, &class);
    return class == MPI_ERR_TRUNCATE ? TROUPE_DATA_LOSS : TROUPE_UNAVAILABLE;
}

/* Without a transfer: a message came. */
struct completion {
    struct troupe_transfer *transfer;
    enum troupe_status status;
    size_t bytes;
};

static struct completion completion_of(struct troupe_mpi_transport *transport, int which,
                                       bool has_errors)
{
    int index = transport->completed[which];
    struct completion done = {.transfer = transport->owners[index]};
    const MPI_Status *status = &transport->statuses[which];
    if (index == TROUPE_MPI_MAIL_REQUEST) {
        troupe_mpi_mail_came(transport, status, has_errors ? status->MPI_ERROR : MPI_SUCCESS);
        return done;
    }
    if (index == TROUPE_MPI_PACK_REQUEST) {
        troupe_mpi_pack_came(transport, status, has_errors ? status->MPI_ERROR : MPI_SUCCESS);
        return done;
    }
    done.status = has_errors ? status_of_error(status->MPI_ERROR) : TROUPE_OK;
    MPI_Count count = 0;
    int cancelled = 0;
    MPI_Test_cancelled(status, &cancelled);
    if (cancelled)
        done.status = TROUPE_CANCELLED;
    /* A send's bytes are its own; a message that was too long fills all of the room. */
    if (done.transfer->internal[INTERNAL_VERB] == &verb_send || done.status == TROUPE_DATA_LOSS)
        done.bytes = done.transfer->bytes;
    else if (done.status == TROUPE_OK &&
             MPI_Get_elements_x(status, MPI_BYTE, &count) == MPI_SUCCESS)
        done.bytes = (size_t)count;
    /* Open MPI frees a persistent request that ended in an error; one that was cancelled is of a
     * transport that closes, which cannot be asked to release it later. */
    struct persistent *persistent = done.transfer->internal[INTERNAL_PERSISTENT];
    persistent->request = transport->requests[index];
    if (cancelled || persistent->request == MPI_REQUEST_NULL)
        drop_persistent(done.transfer);
    transport->owners[index] = NULL;
    return done;
}

static void compact(struct troupe_mpi_transport *transport)
{
    int kept = TROUPE_MPI_FIRST_REQUEST;
    for (int i = kept; i < transport->count; i++) {
        if (!transport->owners[i])
            continue;
        transport->owners[kept] = transport->owners[i];
        transport->requests[kept++] = transport->requests[i];
    }
    transport->count = kept;
}

/* The most completions handled in one call: the rest comes with the next. */
#define TROUPE_MPI_BATCH 64

static int test_requests(struct troupe_mpi_transport *transport)
{
    int count = 0, events = 0;
    int error = MPI_Testsome(transport->count, transport->requests, &count, transport->completed,
                             transport->statuses);
    if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS) {
        (void)troupe_mpi_fail("MPI_Testsome", error);
        troupe_log(TROUPE_LOG_ERROR, "%s", troupe_status_message());
        transport->base.ops->abort(&transport->base, 3);
    }
    if (count == MPI_UNDEFINED || count <= 0)
        return 0;
    struct completion few[TROUPE_MPI_BATCH], *all = few;
    if (count > TROUPE_MPI_BATCH)
        all = troupe_calloc((size_t)count, sizeof(*all));
    if (!all)
        transport->base.ops->abort(&transport->base, 3);
    for (int i = 0; i < count; i++)
        all[i] = completion_of(transport, i, error == MPI_ERR_IN_STATUS);
    compact(transport);
    for (int i = 0; i < count; i++) {
        if (!all[i].transfer)
            continue;
        troupe_mpi_finish(transport, all[i].transfer, all[i].status, all[i].bytes);
        events++;
    }
    if (all != few)
        free(all);
    return events;
}

static int mpi_progress(struct troupe_transport *base)
{
    struct troupe_mpi_transport *transport = mpi_of(base);
    int events = start_commands(transport);
    troupe_mpi_pack_flush(transport);
    events += test_requests(transport);
    /* What callbacks queued leaves at once. */
    events += start_commands(transport);
    events += troupe_mpi_pack_progress(transport);
    events += troupe_mpi_mail_progress(transport);
    return events;
}

static bool has_sends(const struct troupe_mpi_transport *transport)
{
    for (int i = TROUPE_MPI_FIRST_REQUEST; i < transport->count; i++)
        if (transport->owners[i]->internal[INTERNAL_VERB] == &verb_send)
            return true;
    return false;
}

static void drain(struct troupe_mpi_transport *transport)
{
    uint64_t deadline = troupe_clock_ns() + TROUPE_MPI_DRAIN_NS;
    while (troupe_clock_ns() < deadline) {
        mpi_progress(&transport->base);
        if (!atomic_load(&transport->commands) && !has_sends(transport) &&
            troupe_mpi_pack_is_empty(transport) && troupe_mpi_mail_is_empty(transport))
            return;
    }
    troupe_log(TROUPE_LOG_WARNING, "messages to other ranks did not leave within 5 s");
}

static void free_all(struct troupe_mpi_transport *transport)
{
    if (transport->channels != MPI_COMM_NULL)
        MPI_Comm_free(&transport->channels);
    if (transport->messages != MPI_COMM_NULL)
        MPI_Comm_free(&transport->messages);
    free(transport->requests);
    free(transport->owners);
    free(transport->completed);
    free(transport->statuses);
    free(transport);
}

static void mpi_destroy(struct troupe_transport *base)
{
    struct troupe_mpi_transport *transport = mpi_of(base);
    drain(transport);
    troupe_mpi_self_cancel(transport);
    for (int i = TROUPE_MPI_FIRST_REQUEST; i < transport->count; i++)
        if (transport->owners[i]->internal[INTERNAL_VERB] == &verb_receive)
            MPI_Cancel(&transport->requests[i]);
    uint64_t deadline = troupe_clock_ns() + TROUPE_MPI_DRAIN_NS;
    while (transport->count > TROUPE_MPI_FIRST_REQUEST && troupe_clock_ns() < deadline)
        test_requests(transport);
    troupe_mpi_pack_destroy(transport);
    troupe_mpi_mail_destroy(transport);
    free_all(transport);
}

static void mpi_abort(struct troupe_transport *base, int exit_status)
{
    MPI_Abort(mpi_of(base)->channels, exit_status);
    _Exit(exit_status);
}

static const struct troupe_transport_ops mpi_ops = {
    .name = "mpi",
    .send = mpi_send,
    .receive = mpi_receive,
    .release = mpi_release,
    .message = mpi_message,
    .progress = mpi_progress,
    .destroy = mpi_destroy,
    .abort = mpi_abort,
};

static int count_on_host(MPI_Comm comm, int *count)
{
    MPI_Comm host = MPI_COMM_NULL;
    int error = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    if (error != MPI_SUCCESS)
        return error;
    error = MPI_Comm_size(host, count);
    MPI_Comm_free(&host);
    return error;
}

static int read_communicator(struct troupe_mpi_transport *transport, MPI_Comm caller)
{
    struct troupe_transport *base = &transport->base;
    int error = MPI_Comm_dup(caller, &transport->channels);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_errhandler(transport->channels, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_dup(transport->channels, &transport->messages);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_rank(transport->channels, &base->rank);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_size(transport->channels, &base->size);
    if (error == MPI_SUCCESS)
        error = count_on_host(transport->channels, &base->ranks_on_host);
    int *limit = NULL, found = 0;
    if (error == MPI_SUCCESS)
        error = MPI_Comm_get_attr(transport->channels, MPI_TAG_UB, &limit, &found);
    /* The standard promises 32767 at least. */
    base->tag_limit = found && *limit < INT_MAX ? *limit + 1 : found ? INT_MAX : 32768;
    int level = MPI_THREAD_SINGLE;
    if (error == MPI_SUCCESS)
        error = MPI_Query_thread(&level);
    base->main_thread_only = level < MPI_THREAD_SERIALIZED;
    return error;
}

enum troupe_status troupe_transport_mpi_create(const void *communicator,
                                               struct troupe_transport **out)
{
    int initialised = 0;
    MPI_Initialized(&initialised);
    if (!initialised)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "MPI is not initialised: call MPI_Init_thread first");
    struct troupe_mpi_transport *transport = troupe_calloc(1, sizeof(*transport));
    if (!transport)
        return TROUPE_RESOURCE_EXHAUSTED;
    transport->base.ops = &mpi_ops;
    transport->channels = transport->messages = MPI_COMM_NULL;
    troupe_mpi_self_init(transport);
    MPI_Comm caller;
    memcpy(&caller, communicator, sizeof(caller));
    int error = read_communicator(transport, caller);
    enum troupe_status status =
        error == MPI_SUCCESS ? TROUPE_OK : troupe_mpi_fail("duplicating the communicator", error);
    if (status == TROUPE_OK && !grow(transport))
        status = TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK) {
        transport->count = TROUPE_MPI_FIRST_REQUEST;
        for (int i = 0; i < TROUPE_MPI_FIRST_REQUEST; i++) {
            transport->requests[i] = MPI_REQUEST_NULL;
            transport->owners[i] = NULL;
        }
        status = troupe_mpi_mail_create(transport);
    }
    if (status == TROUPE_OK)
        status = troupe_mpi_pack_create(transport);
    if (status != TROUPE_OK) {
        free_all(transport);
        return status;
    }
    *out = &transport->base;
    return TROUPE_OK;
}
