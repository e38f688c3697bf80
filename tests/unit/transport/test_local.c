/* The local transport beyond what the conformance suite asks of every transport: what happens when
 * ranks leave. Both ranks are driven from one thread, so that each order is certain. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "transport/transport.h"

struct item {
    struct troupe_transfer transfer;
    int done;
    enum troupe_status status;
    size_t bytes;
};

static void item_done(struct troupe_transfer *transfer, enum troupe_status status, size_t bytes)
{
    struct item *item = troupe_container_of(transfer, struct item, transfer);
    item->done++;
    item->status = status;
    item->bytes = bytes;
}

static struct item item_of(int peer, void *data, size_t bytes)
{
    return (struct item){
        .transfer = {.done = item_done, .data = data, .bytes = bytes, .peer = peer, .tag = 1}};
}

static void destroy(struct troupe_transport *transport)
{
    transport->ops->destroy(transport);
}

static int progress(struct troupe_transport *transport)
{
    return transport->ops->progress(transport);
}

static void start(struct troupe_transport **ranks)
{
    cr_assert_eq(troupe_transport_local_create(2, ranks), TROUPE_OK);
    cr_assert_eq(ranks[1]->rank, 1);
    cr_assert_eq(ranks[1]->size, 2);
    cr_assert_eq(ranks[1]->ranks_on_host, 2);
}

Test(local, wants_a_rank)
{
    struct troupe_transport *ranks[1] = {NULL};
    cr_assert_eq(troupe_transport_local_create(0, ranks), TROUPE_INVALID_ARGUMENT);
    cr_assert_null(ranks[0]);
}

Test(local, a_plain_send_leaves_a_copy)
{
    struct troupe_transport *ranks[2];
    char out[4] = "abc", in[4] = "";
    struct item send = item_of(1, out, 4), receive = item_of(0, in, 4);
    start(ranks);
    ranks[0]->ops->send(ranks[0], &send.transfer);
    cr_assert_eq(atomic_load(&ranks[0]->pending), 1);
    cr_assert_eq(send.done, 0, "done is called from progress alone");
    progress(ranks[0]);
    cr_assert_eq(send.done, 1);
    cr_assert_eq(atomic_load(&ranks[0]->pending), 0);
    memset(out, 'x', sizeof(out));
    destroy(ranks[0]);
    ranks[1]->ops->receive(ranks[1], &receive.transfer);
    progress(ranks[1]);
    cr_assert_eq(receive.status, TROUPE_OK);
    cr_assert_str_eq(in, "abc");
    destroy(ranks[1]);
}

Test(local, posted_receives_are_cancelled)
{
    struct troupe_transport *ranks[2];
    char in[4];
    struct item receive = item_of(0, in, 4);
    start(ranks);
    ranks[1]->ops->receive(ranks[1], &receive.transfer);
    destroy(ranks[1]);
    cr_assert_eq(receive.done, 1);
    cr_assert_eq(receive.status, TROUPE_CANCELLED);
    destroy(ranks[0]);
}

Test(local, a_send_to_a_rank_that_left_fails)
{
    struct troupe_transport *ranks[2];
    char out[4] = "abc";
    struct item early = item_of(1, out, 4), late = item_of(1, out, 4), receive = item_of(1, out, 4);
    early.transfer.synchronous = true;
    start(ranks);
    ranks[0]->ops->send(ranks[0], &early.transfer);
    destroy(ranks[1]);
    ranks[0]->ops->send(ranks[0], &late.transfer);
    ranks[0]->ops->receive(ranks[0], &receive.transfer);
    cr_assert_eq(ranks[0]->ops->message(ranks[0], 1, 7, out, 4), TROUPE_OK);
    cr_assert_eq(progress(ranks[0]), 3);
    cr_assert_eq(early.status, TROUPE_UNAVAILABLE);
    cr_assert_eq(late.status, TROUPE_UNAVAILABLE);
    cr_assert_eq(receive.status, TROUPE_UNAVAILABLE);
    destroy(ranks[0]);
}

/* The rank that leaves takes its send back: the other must never read its memory. */
Test(local, a_synchronous_send_is_waited_for_and_withdrawn, .timeout = 30)
{
    struct troupe_transport *ranks[2];
    char out[4] = "abc", in[4] = "";
    struct item send = item_of(1, out, 4), receive = item_of(0, in, 4);
    send.transfer.synchronous = true;
    start(ranks);
    ranks[0]->ops->send(ranks[0], &send.transfer);
    uint64_t before = troupe_clock_ns();
    destroy(ranks[0]);
    uint64_t waited = troupe_clock_ns() - before;
    cr_assert(waited > UINT64_C(1000000000) && waited < UINT64_C(20000000000));
    cr_assert_eq(send.done, 1);
    cr_assert_eq(send.status, TROUPE_CANCELLED);
    ranks[1]->ops->receive(ranks[1], &receive.transfer);
    progress(ranks[1]);
    cr_assert_eq(receive.status, TROUPE_UNAVAILABLE);
    cr_assert_eq(in[0], 0);
    destroy(ranks[1]);
}

static void count_message(void *context, int from, uint32_t kind, const void *data, size_t bytes)
{
    int *count = context;
    cr_assert_eq(from, 0);
    cr_assert_eq(kind, 5u + (uint32_t)*count);
    cr_assert_eq(bytes, 3);
    cr_assert(memcmp(data, "abc", 3) == 0);
    (*count)++;
}

Test(local, messages_wait_for_a_handler)
{
    struct troupe_transport *ranks[2];
    int count = 0;
    start(ranks);
    cr_assert_eq(ranks[0]->ops->message(ranks[0], 1, 5, "abc", 3), TROUPE_OK);
    cr_assert_eq(progress(ranks[1]), 0);
    ranks[1]->handler_context = &count;
    atomic_store(&ranks[1]->handler, count_message);
    cr_assert_eq(ranks[0]->ops->message(ranks[0], 1, 6, "abc", 3), TROUPE_OK);
    cr_assert_eq(progress(ranks[1]), 2);
    cr_assert_eq(count, 2);
    destroy(ranks[0]);
    destroy(ranks[1]);
}
