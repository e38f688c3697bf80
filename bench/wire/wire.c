/* Ping-pong between ranks 0 and 1: raw MPI against a channel and a message of the MPI transport.
 * The three run alternately in blocks, so that drift of the machine falls on all of them, and what
 * is printed of each ratio is the median over the blocks with its range. Other ranks wait. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "transport/transport.h"

#define BLOCKS_MAX 101
enum { KIND_PING = 1, TAG = 3 };

struct bench {
    struct troupe_transport *transport;
    char *data;
    size_t bytes;
    int peer;
    int round_trips;
    struct troupe_transfer send, receive;
    int sent, received; /* completions */
    int messages;
};

static void send_done(struct troupe_transfer *transfer, enum troupe_status status, size_t bytes)
{
    struct bench *bench = troupe_container_of(transfer, struct bench, send);
    if (status != TROUPE_OK || bytes != bench->bytes)
        bench->transport->ops->abort(bench->transport, 1);
    bench->sent++;
}

static void receive_done(struct troupe_transfer *transfer, enum troupe_status status, size_t bytes)
{
    struct bench *bench = troupe_container_of(transfer, struct bench, receive);
    if (status != TROUPE_OK || bytes != bench->bytes)
        bench->transport->ops->abort(bench->transport, 1);
    bench->received++;
}

static void take_message(void *context, int from, uint32_t kind, const void *data, size_t bytes)
{
    struct bench *bench = context;
    (void)data;
    if (from != bench->peer || kind != KIND_PING || bytes != bench->bytes)
        bench->transport->ops->abort(bench->transport, 1);
    bench->messages++;
}

static void wait_for(struct bench *bench, const int *counter, int wanted)
{
    while (*counter < wanted)
        bench->transport->ops->progress(bench->transport);
}

static void raw_round_trips(struct bench *bench, bool is_first)
{
    int count = (int)bench->bytes;
    for (int i = 0; i < bench->round_trips; i++) {
        if (is_first)
            MPI_Send(bench->data, count, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(bench->data, count, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!is_first)
            MPI_Send(bench->data, count, MPI_BYTE, bench->peer, TAG, MPI_COMM_WORLD);
    }
}

static void channel_round_trips(struct bench *bench, bool is_first)
{
    struct troupe_transport *transport = bench->transport;
    bench->send = (struct troupe_transfer){.done = send_done,
                                           .data = bench->data,
                                           .bytes = bench->bytes,
                                           .peer = bench->peer,
                                           .tag = TAG};
    bench->receive = bench->send;
    bench->receive.done = receive_done;
    bench->sent = bench->received = 0;
    for (int i = 1; i <= bench->round_trips; i++) {
        if (is_first) {
            transport->ops->send(transport, &bench->send);
            wait_for(bench, &bench->sent, i);
        }
        transport->ops->receive(transport, &bench->receive);
        wait_for(bench, &bench->received, i);
        if (!is_first) {
            transport->ops->send(transport, &bench->send);
            wait_for(bench, &bench->sent, i);
        }
    }
    troupe_transfer_release(transport, &bench->send);
    troupe_transfer_release(transport, &bench->receive);
}

static void send_message(struct bench *bench)
{
    struct troupe_transport *transport = bench->transport;
    if (transport->ops->message(transport, bench->peer, KIND_PING, bench->data, bench->bytes) !=
        TROUPE_OK)
        transport->ops->abort(transport, 1);
}

static void message_round_trips(struct bench *bench, bool is_first)
{
    bench->messages = 0;
    for (int i = 1; i <= bench->round_trips; i++) {
        if (is_first)
            send_message(bench);
        wait_for(bench, &bench->messages, i);
        if (!is_first)
            send_message(bench);
    }
    while (atomic_load(&bench->transport->pending) > 0)
        bench->transport->ops->progress(bench->transport);
}

/* Microseconds of half a round trip. */
static double measure(struct bench *bench, void (*run)(struct bench *bench, bool is_first),
                      bool is_first)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (bench->transport->rank > 1)
        return 0;
    uint64_t begin = troupe_clock_ns();
    run(bench, is_first);
    return (double)(troupe_clock_ns() - begin) / 2e3 / bench->round_trips;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(struct bench *bench, double times[3][BLOCKS_MAX], int blocks)
{
    double ratios[2][BLOCKS_MAX];
    for (int i = 0; i < blocks; i++)
        for (int k = 0; k < 2; k++)
            ratios[k][i] = times[k + 1][i] / times[0][i];
    for (int k = 0; k < 3; k++)
        qsort(times[k], (size_t)blocks, sizeof(double), compare);
    for (int k = 0; k < 2; k++)
        qsort(ratios[k], (size_t)blocks, sizeof(double), compare);
    printf("%8zu %10.2f", bench->bytes, times[0][blocks / 2]);
    for (int k = 0; k < 2; k++)
        printf(" %10.2f %6.2f (%.2f..%.2f)", times[k + 1][blocks / 2], ratios[k][blocks / 2],
               ratios[k][0], ratios[k][blocks - 1]);
    printf("\n");
}

static void run_sizes(struct bench *bench, int blocks)
{
    static const struct {
        size_t bytes;
        int round_trips;
    } rows[] = {{8, 2000}, {1024, 2000}, {65536, 300}, {1 << 20, 40}};
    bool is_first = bench->transport->rank == 0;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        double times[3][BLOCKS_MAX];
        bench->bytes = rows[r].bytes;
        bench->round_trips = rows[r].round_trips;
        for (int i = -1; i < blocks; i++) { /* the first block warms up */
            int at = i < 0 ? 0 : i;
            times[0][at] = measure(bench, raw_round_trips, is_first);
            times[1][at] = measure(bench, channel_round_trips, is_first);
            times[2][at] = measure(bench, message_round_trips, is_first);
        }
        if (is_first)
            print_row(bench, times, blocks);
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    if (troupe_transport_mpi_init(&argc, &argv) != TROUPE_OK ||
        troupe_transport_mpi_create(troupe_transport_mpi_world(), &bench.transport) != TROUPE_OK) {
        fprintf(stderr, "bench_wire: %s\n", troupe_status_message());
        return 3;
    }
    int blocks = argc > 1 ? atoi(argv[1]) : 11;
    bench.data = calloc(1, 1 << 20);
    bench.peer = 1 - bench.transport->rank;
    if (bench.transport->size < 2 || blocks < 1 || blocks > BLOCKS_MAX || !bench.data) {
        fprintf(stderr, "usage: mpirun -n 2 bench_wire [BLOCKS, 1 to %d]\n", BLOCKS_MAX);
        bench.transport->ops->abort(bench.transport, 2);
    }
    bench.transport->handler_context = &bench;
    atomic_store(&bench.transport->handler, take_message);
    if (bench.transport->rank == 0)
        printf("microseconds one way: median; ratio to raw MPI: median (range) of %d blocks\n"
               "%8s %10s %10s %6s %21s %6s\n",
               blocks, "bytes", "raw", "channel", "ratio", "message", "ratio");
    run_sizes(&bench, blocks);
    MPI_Barrier(MPI_COMM_WORLD);
    bench.transport->ops->destroy(bench.transport);
    free(bench.data);
    troupe_transport_mpi_fini();
    return 0;
}
