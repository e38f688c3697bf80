/* Devices with memory of their own, and their streams: what the simulated accelerator and any real
 * one have in common.
 *
 * A device has memory that only it reaches: an address of it means nothing to the host, which moves
 * bytes by copies. A stream is a queue of work (copies, launches, records of events and waits for
 * them) that the device does one after the other, in the order in which it was queued; streams run
 * beside each other, and only events order work of one after work of another. Queueing never
 * blocks and does none of the work. What is done is told by a *completion*, called once from a
 * thread of the device, so that no worker waits: it must be short and must not block. The thread
 * that is told may use whatever the work wrote to the host's memory. */
#ifndef TROUPE_DEVICES_STREAM_H
#define TROUPE_DEVICES_STREAM_H

#include <stddef.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

struct troupe_device_ops;

/* Each implementation puts these first in a structure of its own. */
struct troupe_device {
    const struct troupe_device_ops *ops;
    char name[24]; /* "SIM:0" */
    int index;     /* among the devices of its type on this rank */
    size_t memory; /* bytes */
};
struct troupe_stream {
    struct troupe_device *device;
};
struct troupe_event {
    struct troupe_device *device;
};

/* TROUPE_OK, or why the work failed: `message` is valid during the call. NULL `done`: nobody asks.
 */
typedef void troupe_device_done_fn(void *context, enum troupe_status status, const char *message);
struct troupe_completion {
    troupe_device_done_fn *done;
    void *context;
};

/* Bytes from one memory to another; a NULL device is the host. Both memories stay as they are until
 * the completion. */
struct troupe_copy {
    struct troupe_device *to_device, *from_device;
    void *to;
    const void *from;
    size_t bytes;
};

/* What a launch does on the device. On a simulated one it does the work itself, in the stream's
 * thread; on a real one it queues kernels on the native stream. Returns a failure with the
 * thread's message. */
typedef enum troupe_status troupe_launch_fn(void *context, struct troupe_stream *stream);

/* All slots are required. Any thread may call them, but for destroy. */
struct troupe_device_ops {
    const char *type; /* as in device names */
    /* Waits for nothing: its streams and events are destroyed, its memory is freed. */
    void (*destroy)(struct troupe_device *device);
    /* An address of at least `bytes` bytes of device memory, aligned to 64. RESOURCE_EXHAUSTED with
     * what there is and what is in use. Never blocks for work. */
    enum troupe_status (*alloc)(struct troupe_device *device, size_t bytes, void **out);
    /* Work that uses it must be complete. NULL does nothing. */
    void (*free)(struct troupe_device *device, void *address);
    /* What a launched function uses for `bytes` bytes at a device address. INVALID_ARGUMENT unless
     * they lie in one allocation. */
    enum troupe_status (*reach)(struct troupe_device *device, const void *address, size_t bytes,
                                void **out);
    enum troupe_status (*stream_create)(struct troupe_device *device, struct troupe_stream **out);
    /* Waits until all that was queued is complete; not from a completion. */
    void (*stream_destroy)(struct troupe_stream *stream);
    enum troupe_status (*event_create)(struct troupe_device *device, struct troupe_event **out);
    /* Records and waits that are queued keep what they need. */
    void (*event_destroy)(struct troupe_event *event);

    /* The work. On failure nothing is queued and the completion is not called. A piece of work that
     * fails leaves the later ones of its stream as they are. All records of an event are on one
     * stream: INVALID_ARGUMENT. */
    enum troupe_status (*record)(struct troupe_stream *stream, struct troupe_event *event);
    /* What is queued later starts after the event's newest record so far; without one, at once. */
    enum troupe_status (*wait)(struct troupe_stream *stream, struct troupe_event *event);
    enum troupe_status (*copy)(struct troupe_stream *stream, const struct troupe_copy *copy,
                               struct troupe_completion completion);
    enum troupe_status (*launch)(struct troupe_stream *stream, troupe_launch_fn *launch,
                                 void *context, struct troupe_completion completion);
};

/* As the slots of the device's ops. NULL is destroyed to no effect. */
void troupe_device_destroy(struct troupe_device *device);
TROUPE_MUST_USE enum troupe_status troupe_device_alloc(struct troupe_device *device, size_t bytes,
                                                       void **out);
void troupe_device_free(struct troupe_device *device, void *address);
TROUPE_MUST_USE enum troupe_status
troupe_device_reach(struct troupe_device *device, const void *address, size_t bytes, void **out);
TROUPE_MUST_USE enum troupe_status troupe_stream_create(struct troupe_device *device,
                                                        struct troupe_stream **out);
void troupe_stream_destroy(struct troupe_stream *stream);
TROUPE_MUST_USE enum troupe_status troupe_event_create(struct troupe_device *device,
                                                       struct troupe_event **out);
void troupe_event_destroy(struct troupe_event *event);
/* INVALID_ARGUMENT: an event of a device of another type. */
TROUPE_MUST_USE enum troupe_status troupe_stream_record(struct troupe_stream *stream,
                                                        struct troupe_event *event);
TROUPE_MUST_USE enum troupe_status troupe_stream_wait(struct troupe_stream *stream,
                                                      struct troupe_event *event);
/* One of the two devices is the stream's. UNIMPLEMENTED: the other is of another type. */
TROUPE_MUST_USE enum troupe_status troupe_stream_copy(struct troupe_stream *stream,
                                                      const struct troupe_copy *copy,
                                                      struct troupe_completion completion);
TROUPE_MUST_USE enum troupe_status troupe_stream_launch(struct troupe_stream *stream,
                                                        troupe_launch_fn *launch, void *context,
                                                        struct troupe_completion completion);

/* The devices of a rank beside its CPU. */
struct troupe_device_table {
    struct troupe_device **devices;
    int count;
};
/* Adds a device, which it takes, also on failure. */
TROUPE_MUST_USE enum troupe_status troupe_device_table_add(struct troupe_device_table *table,
                                                           struct troupe_device *device);
/* Destroys the devices. */
void troupe_device_table_fini(struct troupe_device_table *table);
/* The place in the table of a device by type and index, -1 when there is none. */
int troupe_device_table_find(const struct troupe_device_table *table, const char *type, int index);

#endif
