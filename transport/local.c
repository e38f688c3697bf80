/* Ranks inside one process. A hub holds, for each rank, sends that wait for a receive and receives
 * that wait for a send, in order. Invariant: for one (from, to, tag) at most one of the two lists
 * has entries, and a send in a list whose transfer is not done belongs to a rank that is alive.
 * Everything is under the hub's lock, but callbacks, which progress calls without it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "transport/transport.h"

/* How long destroy waits for sends that nobody receives. */
#define TROUPE_LOCAL_DRAIN_NS UINT64_C(5000000000)

/* A send or receive in one of the hub's lists, or one that is done. */
struct local_item {
    struct local_item *next;
    struct troupe_transfer *transfer; /* NULL: a send that has left, of which `copy` remains */
    int from, tag;
    char *copy;
    size_t bytes;
    enum troupe_status status; /* when done */
};

struct local_message {
    struct local_message *next;
    int from;
    uint32_t kind;
    size_t bytes;
    unsigned char data[];
};

struct local_list {
    struct local_item *first, **end;
};

struct local_endpoint {
    struct troupe_transport base;
    struct local_hub *hub;
    struct local_list sends, receives, done;
    int waiting; /* sends of this rank in lists of others, with their transfer */
    struct local_message *messages, **messages_end;
};

struct local_hub {
    pthread_mutex_t lock;
    int alive;
    int size;
    struct local_endpoint *endpoints[];
};

static struct local_endpoint *endpoint_of(struct troupe_transport *transport)
{
    return troupe_container_of(transport, struct local_endpoint, base);
}

static void list_init(struct local_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void list_append(struct local_list *list, struct local_item *item)
{
    item->next = NULL;
    *list->end = item;
    list->end = &item->next;
}

/* Empties `from` into `to`, whose entries are forgotten. */
static void list_move(struct local_list *to, const struct local_list *from)
{
    to->first = from->first;
    to->end = from->first ? from->end : &to->first;
}

static struct local_item *list_take(struct local_list *list, int from, int tag)
{
    for (struct local_item **link = &list->first; *link; link = &(*link)->next) {
        struct local_item *item = *link;
        if (item->from != from || item->tag != tag)
            continue;
        *link = item->next;
        if (list->end == &item->next)
            list->end = link;
        return item;
    }
    return NULL;
}

static struct local_item *item_create(struct local_endpoint *owner, int from,
                                      struct troupe_transfer *transfer)
{
    struct local_item *item = troupe_calloc(1, sizeof(*item));
    if (!item) /* a lost transfer cannot be reported: its owner would wait for ever */
        owner->base.ops->abort(&owner->base, 3);
    item->transfer = transfer;
    item->from = from;
    item->tag = transfer->tag;
    item->bytes = transfer->bytes;
    return item;
}

static void finish_locked(struct local_endpoint *endpoint, struct local_item *item,
                          enum troupe_status status, size_t bytes)
{
    item->status = status;
    item->bytes = bytes;
    list_append(&endpoint->done, item);
}

/* Moves the bytes of a send into its receive, and ends both. */
static void match_locked(struct local_endpoint *sender, struct local_item *send,
                         struct local_endpoint *receiver, struct local_item *receive)
{
    size_t bytes = send->bytes, room = receive->transfer->bytes;
    const void *from = send->copy ? send->copy : send->transfer->data;
    if (bytes > 0 && room > 0)
        memcpy(receive->transfer->data, from, bytes < room ? bytes : room);
    finish_locked(receiver, receive, bytes > room ? TROUPE_DATA_LOSS : TROUPE_OK,
                  bytes < room ? bytes : room);
    free(send->copy);
    send->copy = NULL;
    if (send->transfer)
        finish_locked(sender, send, TROUPE_OK, bytes);
    else
        free(send);
}

/* A send has left the list in which it waited. */
static void count_left_locked(struct local_endpoint *sender, const struct local_item *send)
{
    if (send->transfer)
        sender->waiting--;
}

/* A send that need not wait for its receive leaves a copy behind and is done. */
static void leave_copy_locked(struct local_endpoint *sender, struct local_item *send)
{
    struct troupe_transfer *transfer = send->transfer;
    send->copy = malloc(send->bytes + 1);
    if (!send->copy)
        return; /* then it waits for its receive */
    if (send->bytes > 0)
        memcpy(send->copy, transfer->data, send->bytes);
    struct local_item *left = item_create(sender, send->from, transfer);
    finish_locked(sender, left, TROUPE_OK, send->bytes);
    send->transfer = NULL;
}

static void local_send(struct troupe_transport *transport, struct troupe_transfer *transfer)
{
    struct local_endpoint *sender = endpoint_of(transport);
    atomic_fetch_add(&transport->pending, 1);
    pthread_mutex_lock(&sender->hub->lock);
    struct local_endpoint *receiver = sender->hub->endpoints[transfer->peer];
    struct local_item *send = item_create(sender, transport->rank, transfer);
    struct local_item *receive =
        receiver ? list_take(&receiver->receives, transport->rank, transfer->tag) : NULL;
    if (!receiver) {
        finish_locked(sender, send, TROUPE_UNAVAILABLE, 0);
    } else if (receive) {
        match_locked(sender, send, receiver, receive);
    } else {
        if (!transfer->synchronous)
            leave_copy_locked(sender, send);
        if (send->transfer)
            sender->waiting++;
        list_append(&receiver->sends, send);
    }
    pthread_mutex_unlock(&sender->hub->lock);
}

static void local_receive(struct troupe_transport *transport, struct troupe_transfer *transfer)
{
    struct local_endpoint *receiver = endpoint_of(transport);
    atomic_fetch_add(&transport->pending, 1);
    pthread_mutex_lock(&receiver->hub->lock);
    struct local_endpoint *sender = receiver->hub->endpoints[transfer->peer];
    struct local_item *receive = item_create(receiver, transfer->peer, transfer);
    struct local_item *send = list_take(&receiver->sends, transfer->peer, transfer->tag);
    if (send) {
        count_left_locked(sender, send);
        match_locked(sender, send, receiver, receive);
    } else if (!sender) {
        finish_locked(receiver, receive, TROUPE_UNAVAILABLE, 0);
    } else {
        list_append(&receiver->receives, receive);
    }
    pthread_mutex_unlock(&receiver->hub->lock);
}

static void local_release(struct troupe_transport *transport, struct troupe_transfer *transfer)
{
    (void)transport; /* nothing is kept with a transfer */
    (void)transfer;
}

static enum troupe_status local_message(struct troupe_transport *transport, int to, uint32_t kind,
                                        const void *data, size_t bytes)
{
    struct local_endpoint *sender = endpoint_of(transport);
    struct local_message *message = troupe_calloc(1, sizeof(*message) + bytes);
    if (!message)
        return TROUPE_RESOURCE_EXHAUSTED;
    message->from = transport->rank;
    message->kind = kind;
    message->bytes = bytes;
    if (bytes > 0)
        memcpy(message->data, data, bytes);
    pthread_mutex_lock(&sender->hub->lock);
    struct local_endpoint *receiver = sender->hub->endpoints[to];
    if (receiver) {
        *receiver->messages_end = message;
        receiver->messages_end = &message->next;
    }
    pthread_mutex_unlock(&sender->hub->lock);
    if (!receiver)
        free(message); /* as a message to a rank that has finished: nobody is there to miss it */
    return TROUPE_OK;
}

static int local_progress(struct troupe_transport *transport)
{
    struct local_endpoint *endpoint = endpoint_of(transport);
    pthread_mutex_lock(&endpoint->hub->lock);
    struct local_item *item = endpoint->done.first;
    struct local_message *message = NULL;
    list_init(&endpoint->done);
    troupe_message_fn *handler = atomic_load(&transport->handler);
    if (handler) { /* otherwise they are kept until somebody can be told of them */
        message = endpoint->messages;
        endpoint->messages = NULL;
        endpoint->messages_end = &endpoint->messages;
    }
    pthread_mutex_unlock(&endpoint->hub->lock);
    int events = 0;
    while (item) {
        struct local_item *next = item->next;
        atomic_fetch_sub(&transport->pending, 1);
        item->transfer->done(item->transfer, item->status, item->bytes);
        free(item);
        item = next;
        events++;
    }
    while (message) {
        struct local_message *next = message->next;
        handler(transport->handler_context, message->from, message->kind, message->data,
                message->bytes);
        free(message);
        message = next;
        events++;
    }
    return events;
}

static void drop_list(struct local_list *list)
{
    while (list->first) {
        struct local_item *item = list->first;
        list->first = item->next;
        free(item->copy);
        free(item);
    }
    list_init(list);
}

/* Sends that nobody will receive now end as lost, when their owner still waits. */
static void refuse_sends_locked(struct local_endpoint *endpoint)
{
    while (endpoint->sends.first) {
        struct local_item *item = endpoint->sends.first;
        struct local_endpoint *sender = endpoint->hub->endpoints[item->from];
        endpoint->sends.first = item->next;
        if (item->transfer) {
            sender->waiting--;
            finish_locked(sender, item, TROUPE_UNAVAILABLE, 0);
            continue;
        }
        free(item->copy);
        free(item);
    }
    list_init(&endpoint->sends);
}

/* Ends the receives that are still posted. */
static void cancel_receives(struct local_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->hub->lock);
    while (endpoint->receives.first) {
        struct local_item *item = endpoint->receives.first;
        endpoint->receives.first = item->next;
        finish_locked(endpoint, item, TROUPE_CANCELLED, 0);
    }
    list_init(&endpoint->receives);
    pthread_mutex_unlock(&endpoint->hub->lock);
}

static int waiting_sends(struct local_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->hub->lock);
    int waiting = endpoint->waiting;
    pthread_mutex_unlock(&endpoint->hub->lock);
    return waiting;
}

/* Takes the sends of this rank back that no receive has matched. */
static void withdraw_sends_locked(struct local_endpoint *endpoint)
{
    struct local_hub *hub = endpoint->hub;
    for (int i = 0; i < hub->size && endpoint->waiting > 0; i++) {
        struct local_list kept, *sends = hub->endpoints[i] ? &hub->endpoints[i]->sends : NULL;
        struct local_item *item = sends ? sends->first : NULL;
        list_init(&kept);
        while (item) {
            struct local_item *next = item->next;
            if (item->transfer && item->from == endpoint->base.rank) {
                endpoint->waiting--;
                finish_locked(endpoint, item, TROUPE_CANCELLED, 0);
            } else {
                list_append(&kept, item);
            }
            item = next;
        }
        if (sends)
            list_move(sends, &kept);
    }
}

/* Waits until all sends of this rank are matched, a while at most. */
static void drain(struct local_endpoint *endpoint)
{
    uint64_t deadline = troupe_clock_ns() + TROUPE_LOCAL_DRAIN_NS;
    while (waiting_sends(endpoint) > 0 && troupe_clock_ns() < deadline)
        if (local_progress(&endpoint->base) == 0)
            sched_yield();
    pthread_mutex_lock(&endpoint->hub->lock);
    withdraw_sends_locked(endpoint);
    pthread_mutex_unlock(&endpoint->hub->lock);
}

static void local_destroy(struct troupe_transport *transport)
{
    struct local_endpoint *endpoint = endpoint_of(transport);
    struct local_hub *hub = endpoint->hub;
    drain(endpoint);
    cancel_receives(endpoint);
    while (local_progress(transport) > 0) {
    }
    pthread_mutex_lock(&hub->lock);
    withdraw_sends_locked(endpoint); /* what callbacks sent meanwhile */
    hub->endpoints[transport->rank] = NULL;
    refuse_sends_locked(endpoint);
    drop_list(&endpoint->done);
    while (endpoint->messages) {
        struct local_message *message = endpoint->messages;
        endpoint->messages = message->next;
        free(message);
    }
    bool is_last = --hub->alive == 0;
    pthread_mutex_unlock(&hub->lock);
    free(endpoint);
    if (!is_last)
        return;
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

static void local_abort(struct troupe_transport *transport, int exit_status)
{
    (void)transport;
    _Exit(exit_status);
}

static const struct troupe_transport_ops local_ops = {
    .name = "local",
    .send = local_send,
    .receive = local_receive,
    .release = local_release,
    .message = local_message,
    .progress = local_progress,
    .destroy = local_destroy,
    .abort = local_abort,
};

enum troupe_status troupe_transport_local_create(int size, struct troupe_transport **out)
{
    if (size < 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%d local ranks: wants 1 or more", size);
    struct local_hub *hub =
        troupe_calloc(1, sizeof(*hub) + (size_t)size * sizeof(struct local_endpoint *));
    if (!hub)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < size; i++) {
        struct local_endpoint *endpoint = troupe_calloc(1, sizeof(*endpoint));
        if (!endpoint)
            goto free_hub;
        endpoint->base = (struct troupe_transport){.ops = &local_ops,
                                                   .rank = i,
                                                   .size = size,
                                                   .ranks_on_host = size,
                                                   .tag_limit = INT32_MAX};
        endpoint->hub = hub;
        list_init(&endpoint->sends);
        list_init(&endpoint->receives);
        list_init(&endpoint->done);
        endpoint->messages_end = &endpoint->messages;
        hub->endpoints[i] = endpoint;
    }
    pthread_mutex_init(&hub->lock, NULL);
    hub->alive = size;
    hub->size = size;
    for (int i = 0; i < size; i++)
        out[i] = &hub->endpoints[i]->base;
    return TROUPE_OK;

free_hub:
    for (int i = 0; i < size; i++)
        free(hub->endpoints[i]);
    free(hub);
    return TROUPE_RESOURCE_EXHAUSTED;
}
