/* The stream layer: what is the same for every device. Invariant: an implementation sees only its
 * own objects, and those of other devices of its type. */
#include "devices/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void troupe_device_destroy(struct troupe_device *device)
{
    if (device)
        device->ops->destroy(device);
}

enum troupe_status troupe_device_alloc(struct troupe_device *device, size_t bytes, void **out)
{
    return device->ops->alloc(device, bytes, out);
}

void troupe_device_free(struct troupe_device *device, void *address)
{
    if (address)
        device->ops->free(device, address);
}

enum troupe_status troupe_device_reach(struct troupe_device *device, const void *address,
                                       size_t bytes, void **out)
{
    return device->ops->reach(device, address, bytes, out);
}

enum troupe_status troupe_stream_create(struct troupe_device *device, struct troupe_stream **out)
{
    return device->ops->stream_create(device, out);
}

void troupe_stream_destroy(struct troupe_stream *stream)
{
    if (stream)
        stream->device->ops->stream_destroy(stream);
}

enum troupe_status troupe_event_create(struct troupe_device *device, struct troupe_event **out)
{
    return device->ops->event_create(device, out);
}

void troupe_event_destroy(struct troupe_event *event)
{
    if (event)
        event->device->ops->event_destroy(event);
}

static enum troupe_status check_event(const struct troupe_stream *stream,
                                      const struct troupe_event *event)
{
    if (stream->device->ops == event->device->ops)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "an event of %s on a stream of %s",
                              event->device->name, stream->device->name);
}

enum troupe_status troupe_stream_record(struct troupe_stream *stream, struct troupe_event *event)
{
    enum troupe_status status = check_event(stream, event);
    return status == TROUPE_OK ? stream->device->ops->record(stream, event) : status;
}

enum troupe_status troupe_stream_wait(struct troupe_stream *stream, struct troupe_event *event)
{
    enum troupe_status status = check_event(stream, event);
    return status == TROUPE_OK ? stream->device->ops->wait(stream, event) : status;
}

static const char *device_name(const struct troupe_device *device)
{
    return device ? device->name : "the host";
}

enum troupe_status troupe_stream_copy(struct troupe_stream *stream, const struct troupe_copy *copy,
                                      struct troupe_completion completion)
{
    const struct troupe_device *device = stream->device;
    const struct troupe_device *to = copy->to_device, *from = copy->from_device;
    if (to != device && from != device)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a copy from %s to %s on a stream of %s",
                                  device_name(from), device_name(to), device->name);
    if ((to && to->ops != device->ops) || (from && from->ops != device->ops))
        return troupe_status_fail(TROUPE_UNIMPLEMENTED, "a copy from %s to %s goes by the host",
                                  device_name(from), device_name(to));
    return device->ops->copy(stream, copy, completion);
}

enum troupe_status troupe_stream_launch(struct troupe_stream *stream, troupe_launch_fn *launch,
                                        void *context, struct troupe_completion completion)
{
    return stream->device->ops->launch(stream, launch, context, completion);
}

enum troupe_status troupe_device_table_add(struct troupe_device_table *table,
                                           struct troupe_device *device)
{
    struct troupe_device **grown = troupe_reallocarray(table->devices, (size_t)table->count + 1,
                                                       sizeof(struct troupe_device *));
    if (!grown) {
        troupe_device_destroy(device);
        return TROUPE_RESOURCE_EXHAUSTED;
    }
    table->devices = grown;
    table->devices[table->count++] = device;
    return TROUPE_OK;
}

void troupe_device_table_fini(struct troupe_device_table *table)
{
    for (int i = 0; i < table->count; i++)
        troupe_device_destroy(table->devices[i]);
    free(table->devices);
    *table = (struct troupe_device_table){0};
}

int troupe_device_table_find(const struct troupe_device_table *table, const char *type, int index)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->devices[i]->ops->type, type) == 0 && table->devices[i]->index == index)
            return i;
    return -1;
}
