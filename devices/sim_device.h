/* Inside of the simulated device: what its files share. */
#ifndef TROUPE_DEVICES_SIM_DEVICE_H
#define TROUPE_DEVICES_SIM_DEVICE_H

#include <stdatomic.h>

#include "devices/sim.h"
#include "devices/sim_memory.h"

struct troupe_sim {
    struct troupe_device device; /* first */
    struct troupe_sim_options options;
    struct troupe_sim_memory memory;
    _Atomic(uint32_t) streams; /* so far: each draws delays of its own */
};

/* sim_stream.c: the slots of the same names. */
enum troupe_status troupe_sim_stream_create(struct troupe_device *device,
                                            struct troupe_stream **out);
void troupe_sim_stream_destroy(struct troupe_stream *stream);
enum troupe_status troupe_sim_event_create(struct troupe_device *device, struct troupe_event **out);
void troupe_sim_event_destroy(struct troupe_event *event);
enum troupe_status troupe_sim_record(struct troupe_stream *stream, struct troupe_event *event);
enum troupe_status troupe_sim_wait(struct troupe_stream *stream, struct troupe_event *event);
enum troupe_status troupe_sim_copy(struct troupe_stream *stream, const struct troupe_copy *copy,
                                   struct troupe_completion completion);
enum troupe_status troupe_sim_launch(struct troupe_stream *stream, troupe_launch_fn *launch,
                                     void *context, struct troupe_completion completion);

#endif
