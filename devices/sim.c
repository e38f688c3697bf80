/* The simulated accelerator as a device. Invariant: its memory is reached through
 * troupe_sim_memory_reach alone. */
#include "devices/sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "devices/sim_device.h"

static struct troupe_sim *sim_of(struct troupe_device *device)
{
    return troupe_container_of(device, struct troupe_sim, device);
}

static void sim_destroy(struct troupe_device *device)
{
    struct troupe_sim *sim = sim_of(device);
    troupe_sim_memory_fini(&sim->memory);
    free(sim);
}

static enum troupe_status sim_alloc(struct troupe_device *device, size_t bytes, void **out)
{
    return troupe_sim_memory_alloc(&sim_of(device)->memory, bytes, out);
}

static void sim_free(struct troupe_device *device, void *address)
{
    troupe_sim_memory_free(&sim_of(device)->memory, address);
}

static enum troupe_status sim_reach(struct troupe_device *device, const void *address, size_t bytes,
                                    void **out)
{
    return troupe_sim_memory_reach(&sim_of(device)->memory, address, bytes, out);
}

static const struct troupe_device_ops sim_ops = {
    .type = "SIM",
    .destroy = sim_destroy,
    .alloc = sim_alloc,
    .free = sim_free,
    .reach = sim_reach,
    .stream_create = troupe_sim_stream_create,
    .stream_destroy = troupe_sim_stream_destroy,
    .event_create = troupe_sim_event_create,
    .event_destroy = troupe_sim_event_destroy,
    .record = troupe_sim_record,
    .wait = troupe_sim_wait,
    .copy = troupe_sim_copy,
    .launch = troupe_sim_launch,
};

enum troupe_status troupe_sim_create(const struct troupe_sim_options *options, int index,
                                     struct troupe_device **out)
{
    struct troupe_sim *sim = troupe_calloc(1, sizeof(*sim));
    if (!sim)
        return TROUPE_RESOURCE_EXHAUSTED;
    sim->options = *options;
    sim->device = (struct troupe_device){.ops = &sim_ops, .index = index};
    snprintf(sim->device.name, sizeof(sim->device.name), "SIM:%d", index);
    enum troupe_status status = troupe_sim_memory_init(&sim->memory, options->memory,
                                                       options->delay_seed != 0, sim->device.name);
    if (status != TROUPE_OK) {
        free(sim);
        return status;
    }
    sim->device.memory = sim->memory.bytes;
    *out = &sim->device;
    return TROUPE_OK;
}

enum troupe_status troupe_sim_add_all(const struct troupe_sim_options *options,
                                      struct troupe_device_table *table)
{
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < options->count && status == TROUPE_OK; i++) {
        struct troupe_device *device;
        status = troupe_sim_create(options, i, &device);
        if (status == TROUPE_OK)
            status = troupe_device_table_add(table, device);
    }
    return status;
}
