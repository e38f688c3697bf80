/* Streams and events of the simulated device. Invariant: the thread of a stream takes one piece of
 * work at a time, in the order in which they were queued, and calls its completion before it takes
 * the next; nothing of a queue is touched while the work is done. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/philox.h"
#include "devices/sim_device.h"

#define DELAY_MAX_NS 200000u

/* Counted: queued records and waits hold it. */
struct sim_event {
    struct troupe_event event; /* first */
    _Atomic(uint32_t) references;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const struct troupe_stream *recorder; /* NULL: not recorded yet; under the lock, as the rest */
    uint64_t queued, reached;             /* records */
};

enum work_kind { WORK_RECORD, WORK_WAIT, WORK_COPY, WORK_LAUNCH };

struct work {
    struct work *next;
    enum work_kind kind;
    struct sim_event *event; /* of a record or a wait */
    uint64_t record;         /* which one of the event */
    struct troupe_copy copy;
    troupe_launch_fn *launch;
    void *context;
    struct troupe_completion completion;
};

struct sim_stream {
    struct troupe_stream stream; /* first */
    struct troupe_sim *sim;
    uint64_t number; /* of the device's streams: keys the delays */
    uint64_t draws;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t queued;
    struct work *first, *last;
    bool closing;
};

static struct sim_stream *stream_of(struct troupe_stream *stream)
{
    return troupe_container_of(stream, struct sim_stream, stream);
}

static struct sim_event *event_of(struct troupe_event *event)
{
    return troupe_container_of(event, struct sim_event, event);
}

/* ---- Time ---- */

static void sleep_ns(uint64_t ns)
{
    if (ns == 0)
        return;
    uint64_t end = troupe_clock_ns() + ns;
    struct timespec until = {.tv_sec = (time_t)(end / 1000000000u),
                             .tv_nsec = (long)(end % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

/* Half of the draws are no delay, so that work both waits and does not. */
static void inject_delay(struct sim_stream *self)
{
    uint64_t seed = self->sim->options.delay_seed;
    if (seed == 0)
        return;
    uint32_t drawn[4];
    uint64_t who = (uint64_t)self->sim->device.index << 32 | self->number;
    troupe_philox(seed, self->draws++, who, drawn);
    if (drawn[0] & 1)
        sleep_ns(drawn[1] % DELAY_MAX_NS);
}

static uint64_t copy_ns(const struct troupe_sim_options *options, size_t bytes)
{
    double transfer =
        options->bandwidth > 0 ? (double)bytes * 1e9 / (double)options->bandwidth : 0.0;
    return options->latency_ns + (uint64_t)transfer;
}

/* ---- Work ---- */

static void event_unref(struct sim_event *event)
{
    /* Acquire and release: who frees it comes after all who used it. */
    if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

static void event_reach(struct sim_event *event, uint64_t record)
{
    pthread_mutex_lock(&event->lock);
    if (event->reached < record)
        event->reached = record;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

static void event_await(struct sim_event *event, uint64_t record)
{
    pthread_mutex_lock(&event->lock);
    while (event->reached < record)
        pthread_cond_wait(&event->changed, &event->lock);
    pthread_mutex_unlock(&event->lock);
}

/* Reads and writes at the end of the time that it takes: what lets go of either memory too early
 * is found. */
static enum troupe_status do_copy(struct sim_stream *self, const struct troupe_copy *copy)
{
    sleep_ns(copy_ns(&self->sim->options, copy->bytes));
    if (copy->bytes == 0)
        return TROUPE_OK;
    void *to = copy->to, *from = NULL;
    enum troupe_status status = TROUPE_OK;
    if (copy->to_device)
        status = troupe_device_reach(copy->to_device, copy->to, copy->bytes, &to);
    if (copy->from_device && status == TROUPE_OK)
        status = troupe_device_reach(copy->from_device, copy->from, copy->bytes, &from);
    if (status == TROUPE_OK)
        memmove(to, copy->from_device ? from : copy->from, copy->bytes);
    return status;
}

static enum troupe_status do_work(struct sim_stream *self, struct work *work)
{
    switch (work->kind) {
    case WORK_RECORD:
        event_reach(work->event, work->record);
        return TROUPE_OK;
    case WORK_WAIT:
        event_await(work->event, work->record);
        return TROUPE_OK;
    case WORK_COPY:
        return do_copy(self, &work->copy);
    default:
        return work->launch(work->context, &self->stream);
    }
}

static struct work *next_work(struct sim_stream *self)
{
    pthread_mutex_lock(&self->lock);
    while (!self->first && !self->closing)
        pthread_cond_wait(&self->queued, &self->lock);
    struct work *work = self->first;
    if (work) {
        self->first = work->next;
        if (!self->first)
            self->last = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    return work;
}

static void *run_stream(void *context)
{
    struct sim_stream *self = context;
    struct work *work;
    while ((work = next_work(self)) != NULL) {
        inject_delay(self);
        enum troupe_status status = do_work(self, work);
        if (work->completion.done) {
            inject_delay(self);
            work->completion.done(work->completion.context, status,
                                  status == TROUPE_OK ? "" : troupe_status_message());
        }
        if (work->event)
            event_unref(work->event);
        free(work);
    }
    return NULL;
}

/* ---- The slots ---- */

enum troupe_status troupe_sim_stream_create(struct troupe_device *device,
                                            struct troupe_stream **out)
{
    struct troupe_sim *sim = troupe_container_of(device, struct troupe_sim, device);
    struct sim_stream *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    self->stream.device = device;
    self->sim = sim;
    /* Relaxed: only that the numbers differ. */
    self->number = atomic_fetch_add_explicit(&sim->streams, 1, memory_order_relaxed);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->queued, NULL);
    int error = pthread_create(&self->thread, NULL, run_stream, self);
    if (error != 0) {
        pthread_cond_destroy(&self->queued);
        pthread_mutex_destroy(&self->lock);
        free(self);
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "%s: no thread for a stream: %s",
                                  device->name, strerror(error));
    }
    *out = &self->stream;
    return TROUPE_OK;
}

void troupe_sim_stream_destroy(struct troupe_stream *stream)
{
    struct sim_stream *self = stream_of(stream);
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    pthread_cond_signal(&self->queued);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    pthread_cond_destroy(&self->queued);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

enum troupe_status troupe_sim_event_create(struct troupe_device *device, struct troupe_event **out)
{
    struct sim_event *event = troupe_calloc(1, sizeof(*event));
    if (!event)
        return TROUPE_RESOURCE_EXHAUSTED;
    event->event.device = device;
    atomic_init(&event->references, 1);
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
    *out = &event->event;
    return TROUPE_OK;
}

void troupe_sim_event_destroy(struct troupe_event *event)
{
    event_unref(event_of(event));
}

static enum troupe_status enqueue(struct troupe_stream *stream, const struct work *described)
{
    struct sim_stream *self = stream_of(stream);
    struct work *work = troupe_calloc(1, sizeof(*work));
    if (!work)
        return TROUPE_RESOURCE_EXHAUSTED;
    *work = *described;
    pthread_mutex_lock(&self->lock);
    if (self->last)
        self->last->next = work;
    else
        self->first = work;
    self->last = work;
    pthread_cond_signal(&self->queued);
    pthread_mutex_unlock(&self->lock);
    return TROUPE_OK;
}

/* A record and a wait: the event's lock is held, so that a wait never waits for a record that is
 * not queued yet. */
static enum troupe_status enqueue_event(struct troupe_stream *stream, struct troupe_event *event,
                                        enum work_kind kind)
{
    struct sim_event *self = event_of(event);
    pthread_mutex_lock(&self->lock);
    if (kind == WORK_RECORD && self->recorder && self->recorder != stream) {
        pthread_mutex_unlock(&self->lock);
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: an event is recorded on a second stream",
                                  stream->device->name);
    }
    struct work work = {
        .kind = kind, .event = self, .record = self->queued + (kind == WORK_RECORD ? 1 : 0)};
    atomic_fetch_add_explicit(&self->references, 1, memory_order_acq_rel);
    enum troupe_status status = enqueue(stream, &work);
    if (status == TROUPE_OK && kind == WORK_RECORD) {
        self->queued = work.record;
        self->recorder = stream;
    }
    pthread_mutex_unlock(&self->lock);
    if (status != TROUPE_OK)
        event_unref(self);
    return status;
}

enum troupe_status troupe_sim_record(struct troupe_stream *stream, struct troupe_event *event)
{
    return enqueue_event(stream, event, WORK_RECORD);
}

enum troupe_status troupe_sim_wait(struct troupe_stream *stream, struct troupe_event *event)
{
    return enqueue_event(stream, event, WORK_WAIT);
}

enum troupe_status troupe_sim_copy(struct troupe_stream *stream, const struct troupe_copy *copy,
                                   struct troupe_completion completion)
{
    struct work work = {.kind = WORK_COPY, .copy = *copy, .completion = completion};
    return enqueue(stream, &work);
}

enum troupe_status troupe_sim_launch(struct troupe_stream *stream, troupe_launch_fn *launch,
                                     void *context, struct troupe_completion completion)
{
    struct work work = {
        .kind = WORK_LAUNCH, .launch = launch, .context = context, .completion = completion};
    return enqueue(stream, &work);
}
