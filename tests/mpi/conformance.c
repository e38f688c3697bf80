/* What every transport must do, as cases that all ranks run together. A case waits with a deadline
 * that a loaded machine meets. */
#include "conformance.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "transport/collective.h"

#define DEADLINE_NS UINT64_C(60000000000)

static void fail(const struct troupe_transport *transport, const char *what, const char *file,
                 int line)
{
    fprintf(stderr, "%s:%d: rank %d of %d (%s): %s\n", file, line, transport->rank, transport->size,
            transport->ops->name, what);
    abort();
}

#define CHECK(transport, condition)                                                                \
    ((condition) ? (void)0 : fail(transport, #condition, __FILE__, __LINE__))

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

/* Whether small transfers of this rank, which is a thread, may share messages. */
static _Thread_local bool sharing;

static void item_init(struct item *item, int peer, int tag, void *data, size_t bytes)
{
    *item = (struct item){.transfer = {.done = item_done,
                                       .data = data,
                                       .bytes = bytes,
                                       .peer = peer,
                                       .tag = tag,
                                       .is_small = sharing && bytes <= TROUPE_TRANSFER_SMALL}};
}

static void wait_for(struct troupe_transport *transport, const int *counter, int wanted)
{
    uint64_t deadline = troupe_clock_ns() + DEADLINE_NS;
    while (*counter < wanted) {
        if (transport->ops->progress(transport) == 0)
            sched_yield();
        CHECK(transport, troupe_clock_ns() < deadline);
    }
}

static void finish(struct troupe_transport *transport, struct item *item, size_t bytes)
{
    wait_for(transport, &item->done, 1);
    CHECK(transport, item->done == 1 && item->status == TROUPE_OK && item->bytes == bytes);
    troupe_transfer_release(transport, &item->transfer);
}

/* ---- Messages ---- */

struct inbox {
    struct troupe_transport *transport;
    int next[64]; /* by sender: the number that its next message carries */
};

static unsigned char pattern(int from, size_t index)
{
    return (unsigned char)((size_t)from * 31 + index * 7);
}

static void take_message(void *context, int from, uint32_t kind, const void *data, size_t bytes)
{
    struct inbox *inbox = context;
    const unsigned char *text = data;
    CHECK(inbox->transport, (int)kind == inbox->next[from]);
    for (size_t i = 0; i < bytes; i++)
        CHECK(inbox->transport, text[i] == pattern(from, i));
    inbox->next[from]++;
}

/* Until every rank has sent so many; a rank that is ahead may have sent more. */
static void wait_for_messages(struct troupe_transport *transport, const struct inbox *inbox,
                              int wanted)
{
    for (int from = 0; from < transport->size; from++)
        wait_for(transport, &inbox->next[from], wanted);
}

static void case_messages(struct troupe_transport *transport, struct inbox *inbox)
{
    static const size_t sizes[] = {0, 1, 100, 4079, 4080, 4081, 70000, 3};
    int count = (int)(sizeof(sizes) / sizeof(sizes[0]));
    unsigned char *data = malloc(70000);
    CHECK(transport, data != NULL);
    for (size_t i = 0; i < 70000; i++)
        data[i] = pattern(transport->rank, i);
    int first = inbox->next[transport->rank];
    for (int i = 0; i < count; i++)
        for (int to = 0; to < transport->size; to++)
            CHECK(transport, transport->ops->message(transport, to, (uint32_t)(first + i), data,
                                                     sizes[i]) == TROUPE_OK);
    free(data);
    wait_for_messages(transport, inbox, first + count);
}

/* All ranks have come here. */
static void barrier(struct troupe_transport *transport, struct inbox *inbox)
{
    int number = inbox->next[transport->rank];
    for (int to = 0; to < transport->size; to++)
        CHECK(transport,
              transport->ops->message(transport, to, (uint32_t)number, NULL, 0) == TROUPE_OK);
    wait_for_messages(transport, inbox, number + 1);
}

/* What comes before there is a handler waits for it, in order. */
static void case_no_handler(struct troupe_transport *transport, struct inbox *inbox)
{
    unsigned char data[64];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = pattern(transport->rank, i);
    for (uint32_t kind = 0; kind < 3; kind++)
        for (int to = 0; to < transport->size; to++)
            CHECK(transport,
                  transport->ops->message(transport, to, kind, data, sizeof(data)) == TROUPE_OK);
    uint64_t end = troupe_clock_ns() + UINT64_C(20000000);
    while (troupe_clock_ns() < end)
        transport->ops->progress(transport);
    CHECK(transport, inbox->next[transport->rank] == 0);
    transport->handler_context = inbox;
    atomic_store(&transport->handler, take_message);
    wait_for_messages(transport, inbox, 3);
}

/* ---- Channels ---- */

static int right(const struct troupe_transport *transport)
{
    return (transport->rank + 1) % transport->size;
}

static int left(const struct troupe_transport *transport)
{
    return (transport->rank + transport->size - 1) % transport->size;
}

static void case_sizes(struct troupe_transport *transport)
{
    static const size_t sizes[] = {0, 1, 2, 1000, 4096, 65536, 4 << 20};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        size_t bytes = sizes[s];
        unsigned char *out = malloc(bytes + 1), *in = calloc(bytes + 1, 1);
        CHECK(transport, out && in);
        for (size_t i = 0; i < bytes; i++)
            out[i] = pattern(transport->rank, i);
        struct item send, receive;
        item_init(&receive, left(transport), 5, in, bytes);
        item_init(&send, right(transport), 5, out, bytes);
        send.transfer.synchronous = s % 2;
        transport->ops->receive(transport, &receive.transfer);
        transport->ops->send(transport, &send.transfer);
        finish(transport, &receive, bytes);
        finish(transport, &send, bytes);
        for (size_t i = 0; i < bytes; i++)
            CHECK(transport, in[i] == pattern(left(transport), i));
        free(out);
        free(in);
    }
}

/* Many transfers of several tags in flight: those of one tag match in order. */
static void case_order(struct troupe_transport *transport)
{
    enum { TAGS = 5, EACH = 20 };
    static __thread struct item sends[TAGS][EACH], receives[TAGS][EACH];
    int out[TAGS][EACH], in[TAGS][EACH];
    for (int i = 0; i < EACH; i++)
        for (int tag = 0; tag < TAGS; tag++) {
            out[tag][i] = tag * 1000 + i;
            item_init(&receives[tag][i], left(transport), tag, &in[tag][i], sizeof(int));
            transport->ops->receive(transport, &receives[tag][i].transfer);
        }
    for (int tag = TAGS - 1; tag >= 0; tag--)
        for (int i = 0; i < EACH; i++) {
            item_init(&sends[tag][i], right(transport), tag, &out[tag][i], sizeof(int));
            transport->ops->send(transport, &sends[tag][i].transfer);
        }
    for (int tag = 0; tag < TAGS; tag++)
        for (int i = 0; i < EACH; i++) {
            finish(transport, &receives[tag][i], sizeof(int));
            finish(transport, &sends[tag][i], sizeof(int));
            CHECK(transport, in[tag][i] == tag * 1000 + i);
        }
}

/* One pair of transfers used again and again, sometimes with other memory. */
static void case_reuse(struct troupe_transport *transport)
{
    int out[2], in[2];
    struct item send, receive;
    item_init(&receive, left(transport), 9, &in[0], sizeof(int));
    item_init(&send, right(transport), 9, &out[0], sizeof(int));
    for (int i = 0; i < 200; i++) {
        int which = i / 50 % 2;
        receive.transfer.data = &in[which];
        send.transfer.data = &out[which];
        out[which] = i * 10 + transport->rank;
        receive.done = send.done = 0;
        transport->ops->receive(transport, &receive.transfer);
        transport->ops->send(transport, &send.transfer);
        wait_for(transport, &receive.done, 1);
        wait_for(transport, &send.done, 1);
        CHECK(transport, in[which] == i * 10 + left(transport));
    }
    troupe_transfer_release(transport, &send.transfer);
    troupe_transfer_release(transport, &receive.transfer);
}

/* A message longer than the receive is DATA_LOSS there, and later ones still match. */
static void case_truncation(struct troupe_transport *transport)
{
    for (int round = 0; round < 6; round++) {
        bool cut = round % 3 != 2;
        char out[64] = "a message longer than what is there for it", in[64] = "";
        struct item send, receive;
        item_init(&receive, left(transport), 11, in, cut ? 8 : sizeof(in));
        item_init(&send, right(transport), 11, out, sizeof(out));
        if (round % 2)
            transport->ops->send(transport, &send.transfer);
        transport->ops->receive(transport, &receive.transfer);
        if (round % 2 == 0)
            transport->ops->send(transport, &send.transfer);
        wait_for(transport, &receive.done, 1);
        wait_for(transport, &send.done, 1);
        CHECK(transport, receive.status == (cut ? TROUPE_DATA_LOSS : TROUPE_OK));
        CHECK(transport, send.status == TROUPE_OK);
        CHECK(transport, cut ? in[8] == 0 : memcmp(in, out, sizeof(in)) == 0);
        /* Used again after a failure: the transport must not keep what failed. */
        receive.done = send.done = 0;
        receive.transfer.bytes = sizeof(in);
        transport->ops->send(transport, &send.transfer);
        transport->ops->receive(transport, &receive.transfer);
        finish(transport, &receive, sizeof(in));
        finish(transport, &send, sizeof(out));
        CHECK(transport, memcmp(in, out, sizeof(in)) == 0);
    }
}

/* More tags in flight than any table of fixed size would hold, the last sent first. */
static void case_many_tags(struct troupe_transport *transport)
{
    enum { TAGS = 700 };
    struct item *sends = calloc(TAGS, sizeof(*sends)), *receives = calloc(TAGS, sizeof(*receives));
    int *out = calloc(TAGS, sizeof(int)), *in = calloc(TAGS, sizeof(int));
    CHECK(transport, sends && receives && out && in && transport->tag_limit > 32767);
    int top = transport->tag_limit - TAGS;
    for (int i = 0; i < TAGS; i++) {
        item_init(&receives[i], left(transport), top + i, &in[i], sizeof(int));
        transport->ops->receive(transport, &receives[i].transfer);
    }
    for (int i = TAGS - 1; i >= 0; i--) {
        out[i] = transport->rank * TAGS + i;
        item_init(&sends[i], right(transport), top + i, &out[i], sizeof(int));
        sends[i].transfer.synchronous = i % 3 == 0;
        transport->ops->send(transport, &sends[i].transfer);
    }
    for (int i = 0; i < TAGS; i++) {
        finish(transport, &receives[i], sizeof(int));
        finish(transport, &sends[i], sizeof(int));
        CHECK(transport, in[i] == left(transport) * TAGS + i);
    }
    free(sends);
    free(receives);
    free(out);
    free(in);
}

/* The rank itself is a peer like others, for both kinds of send and either order. */
static void case_self(struct troupe_transport *transport)
{
    for (int way = 0; way < 4; way++) {
        int out = 77 + way, in = 0;
        struct item send, receive;
        item_init(&send, transport->rank, 15, &out, sizeof(out));
        item_init(&receive, transport->rank, 15, &in, sizeof(in));
        send.transfer.synchronous = way % 2;
        if (way < 2)
            transport->ops->send(transport, &send.transfer);
        transport->ops->receive(transport, &receive.transfer);
        if (way >= 2)
            transport->ops->send(transport, &send.transfer);
        finish(transport, &receive, sizeof(in));
        finish(transport, &send, sizeof(out));
        CHECK(transport, in == 77 + way);
    }
}

/* A synchronous send is not done before its receive is posted. */
static void case_synchronous(struct troupe_transport *transport, struct inbox *inbox)
{
    int out = transport->rank, in = -1;
    struct item send, receive;
    item_init(&send, right(transport), 13, &out, sizeof(out));
    send.transfer.synchronous = true;
    transport->ops->send(transport, &send.transfer);
    for (int i = 0; i < 100; i++)
        transport->ops->progress(transport);
    barrier(transport, inbox);
    CHECK(transport, send.done == 0);
    barrier(transport, inbox);
    item_init(&receive, left(transport), 13, &in, sizeof(in));
    transport->ops->receive(transport, &receive.transfer);
    finish(transport, &receive, sizeof(in));
    finish(transport, &send, sizeof(out));
    CHECK(transport, in == left(transport));
}

static int count_done(const struct item *items, int count)
{
    int done = 0;
    for (int i = 0; i < count; i++)
        done += items[i].done;
    return done;
}

/* A receiver that posts few receives holds a sender of synchronous sends to as many. */
static void case_back_pressure(struct troupe_transport *transport, struct inbox *inbox)
{
    enum { ALL = 24, WINDOW = 6, BYTES = 20000 };
    char *out = calloc(ALL, BYTES), *in = calloc(ALL, BYTES);
    struct item sends[ALL], receives[ALL];
    CHECK(transport, out && in);
    for (int i = 0; i < ALL; i++) {
        memset(out + i * BYTES, i + transport->rank, BYTES);
        item_init(&receives[i], left(transport), 17, in + i * BYTES, BYTES);
        item_init(&sends[i], right(transport), 17, out + i * BYTES, BYTES);
        sends[i].transfer.synchronous = true;
        transport->ops->send(transport, &sends[i].transfer);
    }
    for (int posted = 0; posted < ALL; posted += WINDOW) {
        barrier(transport, inbox);
        CHECK(transport, count_done(sends, ALL) == posted);
        barrier(transport, inbox);
        for (int i = posted; i < posted + WINDOW; i++)
            transport->ops->receive(transport, &receives[i].transfer);
        for (int i = posted; i < posted + WINDOW; i++) {
            finish(transport, &receives[i], BYTES);
            finish(transport, &sends[i], BYTES);
            CHECK(transport, in[i * BYTES] == (char)(i + left(transport)));
            CHECK(transport, in[(i + 1) * BYTES - 1] == (char)(i + left(transport)));
        }
    }
    free(out);
    free(in);
}

/* A flood that nobody receives for a while is neither lost nor reordered, and blocks nobody. */
static void case_flood(struct troupe_transport *transport, struct inbox *inbox)
{
    enum { ALL = 1500, WORDS = 128 };
    int(*out)[WORDS] = calloc(ALL, sizeof(*out)), in[WORDS];
    struct item *sends = calloc(ALL, sizeof(*sends)), receive;
    CHECK(transport, out && sends);
    for (int i = 0; i < ALL; i++) {
        out[i][0] = out[i][WORDS - 1] = i;
        item_init(&sends[i], right(transport), 19, out[i], sizeof(out[i]));
        transport->ops->send(transport, &sends[i].transfer);
    }
    barrier(transport, inbox);
    for (int i = 0; i < ALL; i++) {
        item_init(&receive, left(transport), 19, in, sizeof(in));
        transport->ops->receive(transport, &receive.transfer);
        finish(transport, &receive, sizeof(in));
        CHECK(transport, in[0] == i && in[WORDS - 1] == i);
    }
    for (int i = 0; i < ALL; i++)
        finish(transport, &sends[i], sizeof(out[i]));
    free(out);
    free(sends);
}

/* ---- Collectives ---- */

static void add(void *target, const void *source, int64_t elements)
{
    int64_t *a = target;
    const int64_t *b = source;
    for (int64_t i = 0; i < elements; i++)
        a[i] += b[i];
}

struct outcome {
    int done;
    enum troupe_status status;
};

static void collective_done(void *context, enum troupe_status status)
{
    struct outcome *outcome = context;
    outcome->done++;
    outcome->status = status;
}

static void case_all_reduce(struct troupe_transport *transport)
{
    static const int64_t counts[] = {0, 1, 2, 3, 7, 1000, 100003};
    static const struct troupe_reduction sum = {sizeof(int64_t), add};
    enum { IN_FLIGHT = 3 };
    int size = transport->size, group[64];
    struct troupe_collective *collectives[IN_FLIGHT];
    for (int i = 0; i < size; i++)
        group[i] = size - 1 - i; /* ranks in another order than their numbers */
    for (int i = 0; i < IN_FLIGHT; i++) {
        struct troupe_schedule *schedule;
        CHECK(transport, troupe_schedule_ring_allreduce(size - 1 - transport->rank, size,
                                                        &schedule) == TROUPE_OK);
        CHECK(transport, troupe_collective_create(transport, schedule, group, 20 + i, &sum,
                                                  &collectives[i]) == TROUPE_OK);
    }
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        struct outcome outcomes[IN_FLIGHT] = {{0}};
        int64_t *data[IN_FLIGHT];
        for (int i = 0; i < IN_FLIGHT; i++) {
            data[i] = malloc((size_t)(counts[c] + 1) * sizeof(int64_t));
            CHECK(transport, data[i] != NULL);
            for (int64_t e = 0; e < counts[c]; e++)
                data[i][e] = (transport->rank + 1) * (e + i);
            troupe_collective_start(collectives[i], data[i], counts[c], collective_done,
                                    &outcomes[i]);
        }
        for (int i = 0; i < IN_FLIGHT; i++) {
            wait_for(transport, &outcomes[i].done, 1);
            CHECK(transport, outcomes[i].status == TROUPE_OK);
            for (int64_t e = 0; e < counts[c]; e++)
                CHECK(transport, data[i][e] == (e + i) * size * (size + 1) / 2);
            free(data[i]);
        }
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        troupe_collective_destroy(collectives[i]);
}

static void run_channels(struct troupe_transport *transport, struct inbox *inbox)
{
    case_sizes(transport);
    case_order(transport);
    case_reuse(transport);
    case_truncation(transport);
    case_many_tags(transport);
    case_self(transport);
    case_synchronous(transport, inbox);
    case_back_pressure(transport, inbox);
    case_flood(transport, inbox);
}

void conformance_run(struct troupe_transport *transport)
{
    struct inbox inbox = {.transport = transport};
    case_no_handler(transport, &inbox);
    case_messages(transport, &inbox);
    run_channels(transport, &inbox);
    sharing = true;
    run_channels(transport, &inbox);
    sharing = false;
    case_all_reduce(transport);
    case_messages(transport, &inbox);
    /* A rank that sends nothing more may still be asked for acknowledgements. */
    barrier(transport, &inbox);
    uint64_t deadline = troupe_clock_ns() + DEADLINE_NS;
    while (atomic_load(&transport->pending) > 0 && troupe_clock_ns() < deadline)
        transport->ops->progress(transport);
    CHECK(transport, atomic_load(&transport->pending) == 0);
    troupe_message_fn *none = NULL;
    atomic_store(&transport->handler, none);
}
