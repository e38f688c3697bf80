/* Streams of simulated devices under load, as a plain program for ThreadSanitizer: numbers go
 * through a chain of devices, each of which adds its own to every one, several at a time, in
 * an order that completions and events alone make. Exits with 1 when a number comes back wrong. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "devices/sim.h"

#define DEVICES 3
#define WAVES   40
#define NUMBERS 64

static struct troupe_device *devices[DEVICES];
static struct troupe_stream *copies[DEVICES], *works[DEVICES];
static _Atomic(int) waves_left = WAVES;
static _Atomic(int) failures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;

struct wave {
    int number;
    int32_t host[NUMBERS];
    void *memory[DEVICES];
    struct troupe_event *arrived[DEVICES], *added[DEVICES];
};

static void check(enum troupe_status status)
{
    if (status == TROUPE_OK)
        return;
    fprintf(stderr, "stress_sim: %s\n", troupe_status_message());
    exit(1);
}

static enum troupe_status add_all(void *context, struct troupe_stream *on)
{
    int32_t *numbers;
    void *inside;
    enum troupe_status status =
        troupe_device_reach(on->device, context, NUMBERS * sizeof(*numbers), &inside);
    if (status != TROUPE_OK)
        return status;
    numbers = inside;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = 3 * numbers[i] + on->device->index;
    return TROUPE_OK;
}

static int32_t expected(int32_t number)
{
    for (int i = 0; i < DEVICES; i++)
        number = 3 * number + i;
    return number;
}

/* The numbers are back: the memory goes, and the last wave wakes main. */
static void wave_done(void *context, enum troupe_status status, const char *message)
{
    struct wave *wave = context;
    if (status != TROUPE_OK) {
        fprintf(stderr, "stress_sim: %s\n", message);
        atomic_fetch_add(&failures, 1);
    }
    for (int i = 0; i < NUMBERS; i++)
        if (wave->host[i] != expected(wave->number + i))
            atomic_fetch_add(&failures, 1);
    for (int i = 0; i < DEVICES; i++) {
        troupe_device_free(devices[i], wave->memory[i]);
        troupe_event_destroy(wave->arrived[i]);
        troupe_event_destroy(wave->added[i]);
    }
    free(wave);
    if (atomic_fetch_sub(&waves_left, 1) != 1)
        return;
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&all_done);
    pthread_mutex_unlock(&lock);
}

/* Queues all of a wave at once: only events hold its parts apart. */
static void wave_start(int number)
{
    struct troupe_completion none = {0};
    struct wave *wave = calloc(1, sizeof(*wave));
    if (!wave)
        exit(1);
    wave->number = number;
    for (int i = 0; i < NUMBERS; i++)
        wave->host[i] = number + i;
    for (int i = 0; i < DEVICES; i++) {
        check(troupe_device_alloc(devices[i], sizeof(wave->host), &wave->memory[i]));
        check(troupe_event_create(devices[i], &wave->arrived[i]));
        check(troupe_event_create(devices[i], &wave->added[i]));
    }
    for (int i = 0; i < DEVICES; i++) {
        struct troupe_copy copy = {.to_device = devices[i],
                                   .from_device = i > 0 ? devices[i - 1] : NULL,
                                   .to = wave->memory[i],
                                   .from = i > 0 ? wave->memory[i - 1] : (void *)wave->host,
                                   .bytes = sizeof(wave->host)};
        if (i > 0)
            check(troupe_stream_wait(copies[i], wave->added[i - 1]));
        check(troupe_stream_copy(copies[i], &copy, none));
        check(troupe_stream_record(copies[i], wave->arrived[i]));
        check(troupe_stream_wait(works[i], wave->arrived[i]));
        check(troupe_stream_launch(works[i], add_all, wave->memory[i], none));
        check(troupe_stream_record(works[i], wave->added[i]));
    }
    struct troupe_copy back = {.from_device = devices[DEVICES - 1],
                               .to = wave->host,
                               .from = wave->memory[DEVICES - 1],
                               .bytes = sizeof(wave->host)};
    check(troupe_stream_wait(copies[DEVICES - 1], wave->added[DEVICES - 1]));
    check(troupe_stream_copy(copies[DEVICES - 1], &back,
                             (struct troupe_completion){.done = wave_done, .context = wave}));
}

int main(void)
{
    struct troupe_sim_options options;
    check(troupe_sim_options_parse("3,latency=1us,bandwidth=1GB/s,delays=11,memory=1MB", &options));
    for (int i = 0; i < DEVICES; i++) {
        check(troupe_sim_create(&options, i, &devices[i]));
        check(troupe_stream_create(devices[i], &copies[i]));
        check(troupe_stream_create(devices[i], &works[i]));
    }
    for (int i = 0; i < WAVES; i++)
        wave_start(i);
    pthread_mutex_lock(&lock);
    while (atomic_load(&waves_left) > 0)
        pthread_cond_wait(&all_done, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < DEVICES; i++) {
        troupe_stream_destroy(copies[i]);
        troupe_stream_destroy(works[i]);
    }
    for (int i = 0; i < DEVICES; i++)
        troupe_device_destroy(devices[i]);
    if (atomic_load(&failures) > 0)
        fprintf(stderr, "stress_sim: %d wrong\n", atomic_load(&failures));
    return atomic_load(&failures) > 0;
}
